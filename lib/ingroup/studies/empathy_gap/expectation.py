"""Ratings beyond the argmax: the mean of the scale under the first token's probabilities.

A greedy rating is the most probable number alone. Where the numbers of a scale are single tokens,
the model has a probability for each of them, and their mean moves where the greedy number cannot.
"""

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from ingroup.parsing import OK, UNPARSABLE
from ingroup.studies.empathy_gap.ratings import STATUSES, Ratings

SINGLE = 0.99


@dataclass(frozen=True, eq=False)
class Expected:
    """Expected ratings of one block.

    Attributes
    ----------
    ratings : ingroup.studies.empathy_gap.ratings.Ratings
        The shape of the greedy ones. A greedy rating whose reply does not begin with it as one
        token has no expected one: it is "unparsable" here. Other statuses stay.
    single_token : float
        Share, 0 to 1, of the greedy ratings that are their reply's first token; NaN if there are no
        greedy ratings.
    mass : float
        Mean probability, 0 to 1, of the tokens that the expectation rests on; the rest are words,
        or numbers beyond the most probable tokens. NaN if there are no expected ratings.
    two_digits : bool
        Whether a number above 9 is among the first tokens, or the scale has none.
    """

    ratings: Ratings
    single_token: float
    mass: float
    two_digits: bool

    @property
    def holds(self) -> bool:
        """Whether the scale's numbers are single tokens.

        99 % of the greedy ratings or more are, and so is a number of two digits, where the scale
        has one: single digits are tokens of every model.
        """
        return self.single_token >= SINGLE and self.two_digits


def expected_ratings(responses: pd.DataFrame, greedy: Ratings, low: float, high: float) -> Expected:
    r"""Expectation of the rating over the first token's most probable values.

    .. math:: E = \frac{\sum_k p_k v_k}{\sum_k p_k}

    over those of the stored tokens k (20 at most) that spell a whole number :math:`v_k` from `low`
    to `high`, white space around it aside; :math:`p_k` is the token's probability at temperature 1.
    Not in the paper, whose ratings are greedy. Where numbers are spelt digit by digit, a first
    token "7" may go on to 72, so E would mean nothing: `Expected.holds` tells.

    Parameters
    ----------
    responses : pandas.DataFrame
        Columns ``trial`` (place in the block, each once) and ``top_logprobs`` (Arrow list of token
        and logprob), as :meth:`ingroup.inference.store.Store.read` gives them.
    greedy : ingroup.studies.empathy_gap.ratings.Ratings
        From :func:`ingroup.studies.empathy_gap.ratings.from_responses`, of the same rows.
    low, high : float
        The two ends of the scale.

    Returns
    -------
    Expected

    Raises
    ------
    ValueError
        Where the responses have no log-probabilities.

    Notes
    -----
    Checked against a loop over the tokens, and a worked example (its test).
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
    """Number of the most probable token, expectation, and probability of all numbers, by row.

    Last, the largest number of all.
    """
    lists = pa.array(column)
    lists = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    counts = lists.value_lengths().fill_null(0).to_numpy()
    tokens = lists.flatten()
    spelt = tokens.field("token").dictionary_encode()
    number_of = np.array([_number(text, low, high) for text in spelt.dictionary.to_pylist()])
    number = number_of[spelt.indices.to_numpy()] if len(spelt) else np.empty(0)
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


def _number(token: str, low: float, high: float) -> float:
    written = re.fullmatch(r"\s*([0-9]+)\s*", token)
    value = float(written[1]) if written else np.nan
    return value if low <= value <= high else np.nan
