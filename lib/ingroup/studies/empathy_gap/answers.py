"""Answers of the study: responses to arrays (perceiver, experiencer, event).

A block is one category in one setting: every perceiver with every experiencer and every event.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

import numpy as np
import pandas as pd
import pyarrow as pa

from ingroup.inference import Call, parts, stored
from ingroup.parsing import OK, REFUSED, UNPARSABLE, Rule, parse_rating
from ingroup.studies.empathy_gap import stimuli

FAILED = "failed"  # the engine gave no text
MISSING = "missing"  # the trial was never answered
STATUSES = (OK, REFUSED, UNPARSABLE, FAILED, MISSING)
SINGLE = 0.99


@dataclass(frozen=True, eq=False)
class Ratings:
    """The ratings of one block, (perceiver, experiencer, event), and why some are missing."""

    values: np.ndarray  # float, on the scale of the prompt; NaN where there is none
    status: np.ndarray  # int8, position in `STATUSES`

    @property
    def counts(self) -> pd.Series:
        """Number of trials of each of the five statuses; they sum to ``values.size``."""
        numbers = np.bincount(self.status.ravel(), minlength=len(STATUSES))
        return pd.Series(numbers, STATUSES, name="trials")


def load(call: Call, rule: Rule = "sound") -> dict[str, Ratings]:
    """The ratings of one call that was asked, by category in the order of the design.

    A few shards are held at a time; `rule` is that of :func:`ingroup.parsing.parse_rating`. Raises
    StoreError where there are no answers to these prompts.
    """
    store, scale = stored(call), stimuli.setting(call.labels["setting"])
    found = {}
    for category in [block.labels["category"] for block in call.design.blocks]:
        block, numbers = call.design.block_of(category=category)
        read = parts(store, numbers.start, numbers.stop, columns=["text"])
        found[category] = from_parts(read, block.shape, scale.low, scale.high, rule)
    return found


def from_parts(
    tables: Iterable[pd.DataFrame],
    shape: tuple[int, int, int],
    low: float,
    high: float,
    rule: Rule = "sound",
) -> Ratings:
    """Parse the responses of one block, which come in parts, into an array.

    A part is let go before the next is taken; what stays is 9 bytes a trial and the distinct texts
    of the block, each of which is read once. Checked against a loop over rows.

    Parameters
    ----------
    tables : iterable of DataFrame
        Columns ``trial`` (int, position within the block, C order over `shape`), ``text`` (str, or
        categorical of str; null where the call failed) and ``finish_reason``. Parts and rows stand
        in any order; a trial without a row is "missing".
    shape : tuple of int
        Numbers of perceivers, experiencers and events.
    low, high, rule
        As for :func:`ingroup.parsing.parse_rating`; under "released" a value may be 0 to 100
        whatever the scale.
    """
    values = np.full(prod(shape), np.nan)
    status = np.full(prod(shape), STATUSES.index(MISSING), dtype=np.int8)
    read: dict[str, tuple[float, int]] = {}
    for responses in tables:
        codes, texts = pd.factorize(responses["text"])
        for text in texts:
            if text not in read:
                parsed = parse_rating(text, low, high, rule)
                read[text] = parsed.value, STATUSES.index(parsed.status)
        # A failed call has the code -1, which looks up the last place.
        found = [read[text] for text in texts] + [(np.nan, STATUSES.index(FAILED))]
        value_of, status_of = (np.array(column) for column in zip(*found, strict=True))
        codes = np.where(responses["finish_reason"] == FAILED, -1, codes)
        trial = responses["trial"].to_numpy()
        values[trial], status[trial] = value_of[codes], status_of[codes]
    return Ratings(values.reshape(shape), status.reshape(shape))


@dataclass(frozen=True, eq=False)
class Expected:
    """Expected ratings of one block: beyond the most probable number alone."""

    ratings: Ratings  # a reply that does not begin with its rating as one token: "unparsable"
    single_token: float  # share of the greedy ratings that do, 0 to 1; NaN without any
    mass: float  # mean probability of the tokens that the expectation rests on; NaN without any
    two_digits: bool  # whether a number above 9 is among the first tokens, or the scale has none

    @property
    def holds(self) -> bool:
        """Whether the scale's numbers are single tokens: 99 % of the greedy, and two digits."""
        return self.single_token >= SINGLE and self.two_digits


def load_expected(call: Call, greedy: dict[str, Ratings]) -> dict[str, Expected]:
    """:func:`expected_ratings` of each category of a call asked with log-probabilities."""
    store, scale = stored(call), stimuli.setting(call.labels["setting"])
    found = {}
    for category, ratings in greedy.items():
        _, numbers = call.design.block_of(category=category)
        rows = store.read(numbers.start, numbers.stop)  # probabilities of one block at a time
        found[category] = expected_ratings(rows, ratings, scale.low, scale.high)
    return found


def expected_ratings(responses: pd.DataFrame, greedy: Ratings, low: float, high: float) -> Expected:
    r"""Expectation of the rating over the first token's most probable values.

    .. math:: E = \frac{\sum_k p_k v_k}{\sum_k p_k}

    over those of the stored tokens k (20 at most) that spell a whole number :math:`v_k` from `low`
    to `high`, white space around it aside; :math:`p_k` is the token's probability at temperature 1.
    Not in the paper, whose ratings are greedy. Where numbers are spelt digit by digit, a first
    token "7" may go on to 72, so E would mean nothing: `Expected.holds` tells. Checked against a
    loop over the tokens.

    `responses` have the columns ``trial`` (place in the block) and ``top_logprobs`` (Arrow list of
    token, logprob; ValueError without it), `greedy` is of the same rows.
    """
    if "top_logprobs" not in responses:
        raise ValueError("these responses were asked without log-probabilities (RATING=expected)")
    first, mean, mass, largest = _by_row(responses["top_logprobs"], low, high)
    trial = responses["trial"].to_numpy()
    status, values = greedy.status.ravel().copy(), np.full(greedy.values.size, np.nan)
    was_ok = status[trial] == STATUSES.index(OK)
    single = was_ok & (first == greedy.values.ravel()[trial])
    values[trial[single]] = mean[single]
    status[trial[was_ok & ~single]] = STATUSES.index(UNPARSABLE)
    shape = greedy.values.shape
    return Expected(
        Ratings(values.reshape(shape), status.reshape(shape)),
        single_token=float(single.sum() / was_ok.sum()) if was_ok.any() else np.nan,
        mass=float(mass[single].mean()) if single.any() else np.nan,
        two_digits=bool(high < 10 or largest >= 10),
    )


def _by_row(
    column: pd.Series, low: float, high: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """First number, expectation, and probability of all numbers by row; the largest number."""
    lists = pa.array(column)
    lists = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    counts = lists.value_lengths().fill_null(0).to_numpy()
    tokens = lists.flatten()
    spelt = tokens.field("token").dictionary_encode()
    texts = pd.Series(spelt.dictionary.to_pylist(), dtype=object).astype("str")
    numbers = texts.str.extract(r"^\s*([0-9]+)\s*$")[0].astype(float)
    number = numbers.where(numbers.between(low, high)).to_numpy()[spelt.indices.to_numpy()]
    # A probability of 1 may be stored as a logarithm a little above 0.
    p = np.exp(np.minimum(tokens.field("logprob").to_numpy().astype(float), 0.0))
    p = np.where(np.isnan(number), 0.0, p)
    row = np.repeat(np.arange(len(counts)), counts)
    mass = np.bincount(row, weights=p, minlength=len(counts))
    total = np.bincount(row, weights=p * np.nan_to_num(number), minlength=len(counts))
    mean = np.divide(total, mass, out=np.full(len(counts), np.nan), where=mass > 0)
    first = np.full(len(counts), np.nan)
    first[counts > 0] = number[(np.cumsum(counts) - counts)[counts > 0]]
    return first, mean, mass, max(number[~np.isnan(number)], default=-np.inf)
