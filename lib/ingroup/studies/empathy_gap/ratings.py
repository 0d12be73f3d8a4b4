"""Responses to an array (perceiver, experiencer, event), and the array to the paper's matrices.

A block is one category in one setting: every perceiver with every experiencer and every event. Its
ratings are an array with NaN where there is no rating, and beside it the reason for each NaN.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Literal

import numpy as np
import pandas as pd
from scipy import stats

from ingroup.parsing import OK, REFUSED, UNPARSABLE, Rule, parse_rating

FAILED = "failed"  # the engine gave no text
MISSING = "missing"  # the trial was never answered
STATUSES = (OK, REFUSED, UNPARSABLE, FAILED, MISSING)

Exclusion = Literal["any", "pairwise"]


@dataclass(frozen=True, eq=False)
class Ratings:
    """The ratings of one block, and why the missing ones are missing.

    Attributes
    ----------
    values : ndarray of float, shape (perceiver, experiencer, event)
        Ratings on the scale of the prompt, NaN where there is none.
    status : ndarray of int8, same shape
        Position in ``STATUSES``: ok, refused, unparsable, failed, missing.
    """

    values: np.ndarray
    status: np.ndarray

    @property
    def counts(self) -> pd.Series:
        """Number of trials of each of the five statuses; they sum to ``values.size``."""
        return self.counts_by_cell().sum().rename("trials")

    def counts_by_cell(self) -> pd.DataFrame:
        """Number of events of each status, a row for each (perceiver, experiencer) position."""
        cells = pd.MultiIndex.from_product(
            map(range, self.status.shape[:2]), names=["perceiver", "experiencer"]
        )
        counts = {s: (self.status == k).sum(axis=2).ravel() for k, s in enumerate(STATUSES)}
        return pd.DataFrame(counts, index=cells)


def from_responses(
    responses: pd.DataFrame,
    shape: tuple[int, int, int],
    low: float,
    high: float,
    rule: Rule = "sound",
) -> Ratings:
    """Parse the responses of one block into an array.

    Parameters
    ----------
    responses : DataFrame
        Columns ``trial`` (int, position within the block, C order over `shape`), ``text`` (str, or
        categorical of str; null where the call failed) and ``finish_reason`` ("failed" where the
        call failed). Rows stand in any order; a trial without a row is "missing".
    shape : tuple of int
        Numbers of perceivers, experiencers and events.
    low, high : float
        The two ends of the scale.
    rule : {"sound", "released"}
        How `ingroup.parsing.parse_rating` reads a text; each distinct text is read once.

    Returns
    -------
    Ratings
        Values within the scale (0 to 100 under "released", whatever the scale) and their status.

    Raises
    ------
    ValueError
        If a column is missing, `shape` is not three positive numbers, a trial is not a whole
        number, outside the block or there twice, or a text is not text.
    """
    return from_parts([responses], shape, low, high, rule)


def from_parts(
    parts: Iterable[pd.DataFrame],
    shape: tuple[int, int, int],
    low: float,
    high: float,
    rule: Rule = "sound",
) -> Ratings:
    """`from_responses` of a table that comes in parts, so that millions of rows need no room.

    A part is let go before the next is taken; what stays is 9 bytes a trial and the distinct texts
    of the block, each of which is read once.

    Parameters
    ----------
    parts : iterable of DataFrame
        Tables as `from_responses` takes them, in any order, e.g. from
        `ingroup.inference.reading.parts`.
    shape, low, high, rule
        As for `from_responses`.

    Returns
    -------
    Ratings
        As of the whole table, which it is tested against.

    Raises
    ------
    ValueError
        As for `from_responses`.
    """
    if len(shape) != 3 or min(shape) < 1:
        raise ValueError(f"shape has to be (perceivers, experiencers, events), found {shape}")
    values = np.full(prod(shape), np.nan)
    status = np.full(prod(shape), STATUSES.index(MISSING), dtype=np.int8)
    read: dict[str, tuple[float, int]] = {}
    for responses in parts:
        trial = _trials(responses, status)
        codes, texts = pd.factorize(responses["text"])
        if strangers := [text for text in texts if not isinstance(text, str)]:
            raise ValueError(f"the column 'text' has to hold text or null, found {strangers[0]!r}")
        for text in texts:
            if text not in read:
                parsed = parse_rating(text, low, high, rule)
                read[text] = parsed.value, STATUSES.index(parsed.status)
        # A failed call has the code -1, which looks up the last place.
        found = [read[text] for text in texts] + [(np.nan, STATUSES.index(FAILED))]
        value_of, status_of = (np.array(column) for column in zip(*found, strict=True))
        codes = np.where(responses["finish_reason"] == FAILED, -1, codes)
        values[trial] = value_of[codes]
        status[trial] = status_of[codes]
    return Ratings(values.reshape(shape), status.reshape(shape))


def _trials(responses: pd.DataFrame, status: np.ndarray) -> np.ndarray:
    """The column ``trial``, checked against the status, so far, of all trials of the block."""
    if absent := [c for c in ("trial", "text", "finish_reason") if c not in responses]:
        raise ValueError(
            f"the table of responses has no column {absent[0]!r}, only {list(responses.columns)}"
        )
    trial = responses["trial"]
    if not pd.api.types.is_integer_dtype(trial) or trial.hasnans:
        raise ValueError(f"the column 'trial' has to hold whole numbers, found {trial.dtype}")
    trial = trial.to_numpy(np.int64)
    if (outside := trial[(trial < 0) | (trial >= status.size)]).size:
        raise ValueError(f"a trial of this block is 0 to {status.size - 1}, found {outside[0]}")
    twice = trial[status[trial] != STATUSES.index(MISSING)]  # in an earlier part
    if not (np.diff(trial) > 0).all():
        distinct, times = np.unique(trial, return_counts=True)
        twice = np.append(twice, distinct[times > 1])
    if twice.size:
        raise ValueError(f"trial {twice.min()} stands more than once in the table of responses")
    return trial


@dataclass(frozen=True, eq=False)
class Excluded:
    """What is left after exclusion, and what it cost.

    Attributes
    ----------
    values : ndarray of float, shape (perceiver, experiencer, kept event)
        Ratings of the events that are kept; NaN only under "pairwise".
    kept : ndarray of bool, shape (event,)
        Which of the events are kept.
    events_lost, answers_lost : int
        Events that are not kept; trials that give no rating to `values`, because they have none or
        because their event is not kept.
    """

    values: np.ndarray
    kept: np.ndarray
    events_lost: int
    answers_lost: int

    @property
    def percent_lost(self) -> float:
        """Percent of the events that are lost; under "any" the refusal rate of Table 6."""
        return 100 * self.events_lost / self.kept.size


def exclude(values: np.ndarray, rule: Exclusion = "any") -> Excluded:
    """Leave out what has no rating.

    Parameters
    ----------
    values : ndarray of float, shape (perceiver, experiencer, event)
        Ratings, NaN where there is none.
    rule : {"any", "pairwise"}
        "any", the paper's (footnote 5, appendix C.1): an event without a rating in any cell is left
        out of all cells, so that all rest on the same events. "pairwise": only the missing ratings
        are left out, and an event goes only if no cell has a rating of it.

    Returns
    -------
    Excluded

    Raises
    ------
    ValueError
        If `values` has not three dimensions, `rule` is unknown, or no event is left.
    """
    values = _block(values)
    missing = np.isnan(values)
    if rule not in ("any", "pairwise"):
        raise ValueError(f'the exclusion rule has to be "any" or "pairwise", found {rule!r}')
    lost = (missing.any if rule == "any" else missing.all)(axis=(0, 1))
    if missing.all():
        raise ValueError(f"none of the {lost.size} events has a rating in any cell")
    if lost.all():
        raise ValueError(
            f"every one of the {lost.size} events is lost under the 'any' rule: use 'pairwise'"
        )
    answers_left = np.count_nonzero(~missing[:, :, ~lost])
    return Excluded(values[:, :, ~lost], ~lost, int(lost.sum()), values.size - answers_left)


def cell_means(values: np.ndarray, decimals: int | None = None) -> np.ndarray:
    """Mean rating of each cell over its events: the matrix M0 of section 3.4.

    Parameters
    ----------
    values : ndarray of float, shape (perceiver, experiencer, event)
        Ratings; NaN is left out of its cell.
    decimals : int, optional
        Decimals to which each mean is rounded: 2 in the released code, none by default.

    Returns
    -------
    ndarray of float, shape (perceiver, experiencer)
        Means on the scale of the prompt; rows are perceivers, as in Figure 2.

    Raises
    ------
    ValueError
        If `values` has not three dimensions, or a cell has no rating.
    """
    values = _block(values)
    if (empty := np.argwhere(np.isnan(values).all(axis=2))).size:
        raise ValueError("the cell of perceiver {} and experiencer {} is empty".format(*empty[0]))
    means = np.nanmean(values, axis=2)
    if decimals is None:
        return means
    # Python's round, as released: of 2.675, which is just below, it makes 2.67; np.round 2.68.
    return np.reshape([round(mean, decimals) for mean in means.ravel().tolist()], means.shape)


def zscore(matrix: np.ndarray) -> np.ndarray:
    """z-scores over all cells: M = (M0 - mean(M0)) / std(M0), section 3.4.

    Parameters
    ----------
    matrix : ndarray of float, shape (perceiver, experiencer)
        Cell means.

    Returns
    -------
    ndarray of float, same shape
        Standard deviations from the mean; the standard deviation is the population's (ddof 0), as
        in the released code. Checked against NumPy's mean and std.

    Raises
    ------
    ValueError
        If `matrix` has not two dimensions, holds NaN, or has the same value in every cell.
    """
    matrix = np.asarray(matrix, dtype=float)
    if matrix.ndim != 2 or not matrix.size:
        raise ValueError(f"z-scores need a matrix of cell means, found shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        cell = tuple(np.argwhere(~np.isfinite(matrix))[0].tolist())
        raise ValueError(f"z-scores need a mean in every cell, found none at {cell}")
    if np.ptp(matrix) <= 1e-12 * np.abs(matrix).max():
        raise ValueError(f"z-scores need cells that differ, found {matrix[0, 0]:g} in all of them")
    return stats.zscore(matrix, axis=None)


def gap_matrix(
    values: np.ndarray,
    unspecified: int | None = 0,
    exclusion: Exclusion = "any",
    *,
    as_printed: bool = False,
    decimals: int | Literal["auto"] | None = "auto",
    separate: bool | Literal["auto"] = "auto",
) -> np.ndarray:
    """Matrix of z-scores for the empathy gap delta, without the unspecified identity.

    In the paper's text M is z-scored with "a person", whom delta then leaves out (footnote 7). The
    released code behind Table 2 drops "a person" first, then excludes events, rounds the cell means
    and z-scores what is left: its delta has another standard deviation and may have other events.

    Parameters
    ----------
    values : ndarray of float, shape (identity, identity, event)
        Ratings before exclusion, NaN where there is none.
    unspecified : int or None
        Position of the unspecified identity; None if there is none.
    exclusion : {"any", "pairwise"}
        See `exclude`.
    as_printed : bool
        Take the released code's way in the two options that are "auto".
    decimals, separate : int or None, bool
        Rounding of the cell means, and dropping the unspecified identity first: "auto" is 2 and
        True as printed, else None and False.

    Returns
    -------
    ndarray of float, shape (identity - 1, identity - 1)
        z-scores, ready for `ingroup.stats.permutation.empathy_gap`.

    Raises
    ------
    ValueError
        If `values` is not square, `unspecified` is no position in it, and as `exclude`,
        `cell_means` and `zscore` raise.
    """
    values = _block(values)
    n = len(values)
    if values.shape[1] != n:
        raise ValueError(f"the gap needs the same identities twice, found shape {values.shape}")
    if unspecified is not None and not 0 <= unspecified < n:
        raise ValueError(f"unspecified has to be a position from 0 to {n - 1}, found {unspecified}")
    decimals = (2 if as_printed else None) if decimals == "auto" else decimals
    separate = as_printed if separate == "auto" else separate
    named = np.ix_(*[np.delete(np.arange(n), [] if unspecified is None else unspecified)] * 2)
    if separate:
        return zscore(cell_means(exclude(values[named], exclusion).values, decimals))
    return zscore(cell_means(exclude(values, exclusion).values, decimals))[named]


def _block(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    if values.ndim != 3 or 0 in values.shape:
        raise ValueError(
            f"ratings need the shape (perceivers, experiencers, events), found {values.shape}"
        )
    return values
