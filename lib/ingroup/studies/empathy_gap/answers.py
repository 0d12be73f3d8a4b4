"""Answers of the study: responses to arrays (perceiver, experiencer, event).

A block is one category in one setting: every perceiver with every experiencer and every event.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod

import numpy as np
import pandas as pd

from ingroup.inference import Call, parts, stored
from ingroup.inference.reading import Reading, numbers
from ingroup.parsing import (
    CUT,
    FAILED,
    OK,
    REFUSED,
    UNPARSABLE,
    Rule,
    ends_in_cut_number,
    final_status,
    parse_rating,
)
from ingroup.stats.paired import nan_mean
from ingroup.studies.empathy_gap import stimuli

MISSING = "missing"  # the trial was never answered
STATUSES = (OK, REFUSED, UNPARSABLE, CUT, FAILED, MISSING)


@dataclass(frozen=True, eq=False)
class Ratings:
    """The ratings of one block, (perceiver, experiencer, event), and why some are missing."""

    values: np.ndarray  # float, on the scale of the prompt; NaN where there is none
    status: np.ndarray  # int8, position in `STATUSES`

    @property
    def counts(self) -> pd.Series:
        """Number of trials of each of the six statuses; they sum to ``values.size``."""
        numbers = np.bincount(self.status.ravel(), minlength=len(STATUSES))
        return pd.Series(numbers, STATUSES, name="trials")

    @property
    def rows(self) -> pd.DataFrame:
        """``rating`` and ``status`` of each trial, in the order of the design."""
        status = pd.Categorical.from_codes(self.status.ravel(), STATUSES)
        return pd.DataFrame({"rating": self.values.ravel(), "status": status})


def load(call: Call, rule: Rule = "sound", reading: Reading | None = None) -> Ratings:
    """The ratings of one call that was asked: its category, in its setting.

    Free text is parsed by a `rule` as in `from_parts`, scored answers are read as the `reading`
    says, else as the call does. StoreError where there are no answers to these prompts, or not what
    the reading needs.
    """
    (block,), store = call.design.blocks, stored(call)
    if call.over_choices:
        reading = reading or call.reading
        values = np.full(prod(block.shape), np.nan)
        status = np.full(prod(block.shape), STATUSES.index(MISSING), dtype=np.int8)
        for part in parts(store, columns=[*reading.columns, "text", "reasoning"]):
            rated = numbers(part, store, call.sampling, reading)[0]
            # A server may tell no admissible answer among its most probable tokens.
            settled = final_status(part, np.where(rated.isna(), UNPARSABLE, OK))
            values[part["trial"]] = rated.where(settled == OK)
            status[part["trial"]] = pd.Categorical(settled, STATUSES).codes
        return Ratings(values.reshape(block.shape), status.reshape(block.shape))
    scale = stimuli.setting(call.labels["setting"])
    read = parts(store, columns=["text", "reasoning"])
    return from_parts(read, block.shape, scale.low, scale.high, rule)


def by_block(calls: Iterable[Call]) -> dict[tuple[str, str, str], list[Call]]:
    """Calls by model, setting and category: those of one key are the rounds of a block."""
    blocks = defaultdict(list)
    for call in calls:
        key = call.key[:3]  # without the round
        blocks[key].append(call)
    return dict(blocks)


def load_rounds(
    calls: Sequence[Call], rule: Rule = "sound", reading: Reading | None = None
) -> Ratings:
    """The ratings of a block by all its rounds, see `load` and `mean_of_rounds`."""
    return mean_of_rounds([load(call, rule, reading) for call in calls])


def mean_of_rounds(rounds: Sequence[Ratings]) -> Ratings:
    """Mean rating of each trial, over the rounds that have one.

    The status is "ok" where a round has a rating, else that of the first round. So an event is lost
    only where every round of a trial lacks a rating.
    """
    if len(rounds) == 1:
        return rounds[0]

    values = nan_mean([one.values for one in rounds])
    status = np.where(np.isnan(values), rounds[0].status, STATUSES.index(OK))
    return Ratings(values, status.astype(np.int8))


def from_parts(
    tables: Iterable[pd.DataFrame], shape: tuple[int, int, int], low: float, high: float,
    rule: Rule = "sound",
) -> Ratings:  # fmt: skip
    """Parse the responses of one block, of `shape` (perceivers, experiencers, events), into arrays.

    `tables` are its parts, one held at a time: ``trial`` (int, position within the block, C order),
    ``text`` (str, or categorical of str; null where the call failed), ``reasoning`` and
    ``finish_reason``. Parts and rows stand in any order; a trial without a row is "missing". The
    others are those of :func:`ingroup.parsing.final_status`; a number at which a reply was cut is
    no answer. Under "released" a value may be 0 to 100 whatever the scale. Checked against a loop
    over rows.
    """
    values = np.full(prod(shape), np.nan)
    status = np.full(prod(shape), STATUSES.index(MISSING), dtype=np.int8)
    read = cache(lambda text: parse_rating(text, low, high, rule))
    for responses in tables:
        codes, texts = pd.factorize(responses["text"])
        # A failed call has no text: the code -1 looks up the last place.
        value_of, status_of = zip(*map(read, texts), (np.nan, FAILED), strict=True)
        parsed = np.array(status_of, dtype=object)[codes]
        parsed[ends_in_cut_number(responses)] = UNPARSABLE
        settled = final_status(responses, parsed)

        trial = responses["trial"].to_numpy()
        values[trial] = np.where(settled == OK, np.array(value_of)[codes], np.nan)
        status[trial] = pd.Categorical(settled, STATUSES).codes
    return Ratings(values.reshape(shape), status.reshape(shape))
