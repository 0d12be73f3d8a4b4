"""Free text beside scored verdicts on the same prompts of GIEBench."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from ingroup.inference import Job, stored
from ingroup.inference.choices import agreement, beginnings, probabilities
from ingroup.parsing import CUT, FAILED, REFUSED, Rule
from ingroup.studies.giebench import stimuli
from ingroup.studies.giebench.answers import NO_VERDICT, SEVERAL_VERDICTS, load

KEYS = ["model", "plan"]
REASONS = [NO_VERDICT, SEVERAL_VERDICTS, REFUSED, CUT, FAILED]
_PROMPT = ["key", "shift", "told"]  # columns that tell prompts apart


def mean_probabilities(jobs: Sequence[Job]) -> pd.DataFrame:
    """Average the probability of each letter over all prompts.

    Parameters
    ----------
    jobs : sequence of Job
        Jobs with stored answers; jobs in free text are left out.

    Returns
    -------
    DataFrame
        `KEYS`, and the mean over all prompts for each letter, 0 to 1.
    """
    rows = []
    for job in jobs:
        if not job.is_scored:
            continue
        replies = stored(job).read(columns=["probabilities"])
        # A reply is one verdict, so the second axis has the length 1.
        by_letter = probabilities(replies, job.sampling.choices)[:, 0]
        means = by_letter.mean(axis=0)
        row = {"model": job.model, "plan": job.labels["plan"]}
        row.update(zip(stimuli.LETTERS, means, strict=True))
        rows.append(row)
    return pd.DataFrame(rows, columns=[*KEYS, *stimuli.LETTERS])


def free_beside_choices(jobs: Sequence[Job], rule: Rule = "sound") -> pd.DataFrame:
    """Compare the free text with the most probable verdict, for each model and plan.

    Parameters
    ----------
    jobs : sequence of Job
        Jobs with stored answers, in free text and scored.
    rule : {"sound", "released"}
        How a verdict is read from a text; see :func:`answers.parse_verdict`.

    Returns
    -------
    DataFrame
        Index `KEYS`; the columns of :func:`ingroup.inference.choices.agreement`, and the number of
        replies without a verdict for each of `REASONS`. A model that was asked in one way only has
        no row.
    """
    in_text = {job.key: job for job in jobs if not job.is_scored}
    rows = []
    for job in jobs:
        if job.is_scored and job.key in in_text:
            row = {"model": job.model, "plan": job.labels["plan"]}
            row |= _compared(in_text[job.key], job, rule)
            rows.append(row)

    if not rows:
        # The table still has its index.
        return pd.DataFrame(columns=KEYS).set_index(KEYS)
    return pd.DataFrame(rows).set_index(KEYS)


def _compared(in_text: Job, scored: Job, rule: Rule) -> dict[str, Any]:
    """Compare a plan's job in free text with its scored job: a row of `free_beside_choices`."""
    chosen = load(scored, rule)[[*_PROMPT, "letter"]]
    # A reply's mass is a list, of one number here.
    masses = stored(scored).read(columns=["mass"]).mass
    chosen["option_mass"] = masses.list.flatten().astype(float)

    written = load(in_text, rule)
    both = written.merge(chosen, on=_PROMPT, suffixes=("", "_chosen"))

    # A verdict is a letter in brackets; a text that begins with none has None.
    first_letters = []
    for verdict in beginnings(both.reply, scored.sampling.choices):
        letter = verdict.strip("[]") if verdict else None
        first_letters.append(letter)

    row = agreement(both.letter, both.letter_chosen, both["option_mass"], begun=first_letters)
    for reason in REASONS:
        has_reason = both.status == reason
        row[reason] = int(has_reason.sum())
    return row
