"""Answers of GIEBench: responses to a table of verdicts, one row a trial."""

import pandas as pd

from ingroup.inference import Call, stored
from ingroup.studies.giebench import stimuli
from ingroup.studies.giebench.verdicts import Rule, parse_verdict


def load(call: Call, rule: Rule = "sound") -> pd.DataFrame:
    """The trials of one call, each with its reply and verdict.

    Parameters
    ----------
    call : Call
        One of :func:`ingroup.studies.giebench.design.calls` that was asked.
    rule : str
        How a verdict is read, see :func:`ingroup.studies.giebench.verdicts.parse_verdict`.

    Returns
    -------
    pandas.DataFrame
        In the order of the design, as :mod:`ingroup.studies.giebench.statistics` takes it:
        ``model``, ``prompt``, ``category``, ``key``, ``shift`` (places by which the answers were
        moved), ``correct`` and ``letter`` ("" without a verdict), ``status``, ``identity`` (whose
        item it is), ``told`` (who stands in the prompt) and ``reply``.

    Raises
    ------
    StoreError
        Where there are no answers to these prompts.
    """
    (block,), table, rows = call.design.blocks, stored(call).read(), []
    for asked, text, reason in zip(
        block.factors["asked"], table.text, table.finish_reason, strict=True
    ):
        turned, verdict = stimuli.rotate(asked.question, asked.shift), parse_verdict(text, rule)
        status = "failed" if reason == "failed" else verdict.status
        told = asked.identity or turned.identity
        rows.append(
            (call.model, asked.prompt, turned.category, turned.key, asked.shift, turned.correct,
             verdict.letter, status, turned.identity, told, text)
        )  # fmt: skip
    columns = "model prompt category key shift correct letter status identity told reply"
    return pd.DataFrame(rows, columns=columns.split())
