"""Free text beside scored verdicts on the same prompts of GIEBench."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from ingroup.inference import Call, stored
from ingroup.inference.choices import agreement, beginnings, probabilities
from ingroup.parsing import CUT, FAILED, REFUSED, Rule
from ingroup.studies.giebench import stimuli
from ingroup.studies.giebench.answers import NO_VERDICT, SEVERAL, load

KEYS = ["model", "plan"]
REASONS = [NO_VERDICT, SEVERAL, REFUSED, CUT, FAILED]
_PROMPT = ["key", "shift", "told"]  # what tells the prompts of a plan apart


def mean_probabilities(calls: Sequence[Call]) -> pd.DataFrame:
    """Average the probability of each letter, whatever answer stands there.

    Parameters
    ----------
    calls : sequence of Call
        Calls with stored answers; those in free text are left out.

    Returns
    -------
    DataFrame
        `KEYS`, and the mean over all prompts for each letter, 0 to 1.
    """
    rows = []
    for call in calls:
        if not call.over_choices:
            continue
        replies = stored(call).read(columns=["probabilities"])
        # A reply is one verdict, so the second axis has the length 1.
        by_letter = probabilities(replies, call.sampling.choices)[:, 0]
        means = by_letter.mean(axis=0)
        of_letter = dict(zip(stimuli.LETTERS, means, strict=True))
        rows.append({"model": call.model, "plan": call.labels["plan"], **of_letter})
    return pd.DataFrame(rows, columns=[*KEYS, *stimuli.LETTERS])


def free_beside_choices(calls: Sequence[Call], rule: Rule = "sound") -> pd.DataFrame:
    """Compare the free text with the most probable verdict, for each model and plan.

    Parameters
    ----------
    calls : sequence of Call
        Calls with stored answers, in free text and over choices.
    rule : {"sound", "released"}
        How a verdict is read from a text; see :func:`answers.parse_verdict`.

    Returns
    -------
    DataFrame
        Index `KEYS`; the columns of :func:`ingroup.inference.choices.agreement`, and the number of
        replies without a verdict for each of `REASONS`. A model that was asked in one way only has
        no row.
    """
    in_text = {call.key: call for call in calls if not call.over_choices}
    rows = []
    for call in calls:
        if call.over_choices and call.key in in_text:
            row = {"model": call.model, "plan": call.labels["plan"]}
            row |= _compared(in_text[call.key], call, rule)
            rows.append(row)

    if not rows:
        # The table still has its index.
        return pd.DataFrame(columns=KEYS).set_index(KEYS)
    return pd.DataFrame(rows).set_index(KEYS)


def _compared(in_text: Call, scored: Call, rule: Rule) -> dict[str, Any]:
    """A row of `free_beside_choices`: a plan's call in free text beside the one over choices."""
    masses = stored(scored).read(columns=["mass"]).mass
    chosen = load(scored, rule)[[*_PROMPT, "letter"]]
    # A reply's mass is a list, of one number here.
    chosen["mass"] = masses.list.flatten().astype(float)
    written = load(in_text, rule)
    both = written.merge(chosen, on=_PROMPT, suffixes=("", "_chosen"))

    # A verdict is a letter in brackets; a text that begins with none has None.
    begun = []
    for verdict in beginnings(both.reply, scored.sampling.choices):
        letter = verdict.strip("[]") if verdict else None
        begun.append(letter)

    row = agreement(both.letter, both.letter_chosen, both["mass"], begun=begun)
    for reason in REASONS:
        has_reason = both.status == reason
        row[reason] = int(has_reason.sum())
    return row
