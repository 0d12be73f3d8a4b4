"""From ratings (perceiver, experiencer, event) to the paper's matrices and the empathy gap.

Section 3.4 of Hou et al.: the cells' means over events are M0, its z-scores M; delta is the mean of
M over the pairs of one group, less the mean over the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from ingroup.stats.intervals import bootstrap_interval
from ingroup.stats.permutation import checked, permutation_test

Exclusion = Literal["listwise", "pairwise"]
Way = Literal["paper", "released"]


@dataclass(frozen=True, eq=False)
class Excluded:
    """What is left after exclusion, and what it cost.

    Attributes
    ----------
    values : ndarray of float, shape (perceiver, experiencer, kept event)
        Ratings of the events that are kept; NaN only under "pairwise".
    kept : ndarray of bool, shape (event,)
        Which of the events are kept.
    """

    values: np.ndarray
    kept: np.ndarray

    @property
    def events_lost(self) -> int:
        """How many events are not kept."""
        return int((~self.kept).sum())

    @property
    def percent_lost(self) -> float:
        """Percent of the events that are lost; under "listwise" the refusal rate of Table 6."""
        return 100 * self.events_lost / self.kept.size


def exclude(values: np.ndarray, rule: Exclusion = "listwise") -> Excluded:
    """Leave out what has no rating (NaN) of ratings (perceiver, experiencer, event).

    "listwise" is the paper's rule (footnote 5, appendix C.1): an event without a rating in any cell
    is left out of all cells, so that all rest on the same events. "pairwise": only the missing
    ratings are left out, and an event goes only if no cell has a rating of it.

    Raises
    ------
    ValueError
        If `values` has not three dimensions, `rule` is unknown, or no event is left.
    """
    values = _block(values)
    missing = np.isnan(values)
    if rule not in ("listwise", "pairwise"):
        raise ValueError(f'the exclusion rule has to be "listwise" or "pairwise", found {rule!r}')
    lost = (missing.any if rule == "listwise" else missing.all)(axis=(0, 1))
    if missing.all():
        raise ValueError(f"none of the {lost.size} events has a rating in any cell")
    if lost.all():
        raise ValueError(f"every one of the {lost.size} events is lost listwise: use 'pairwise'")
    return Excluded(values[:, :, ~lost], ~lost)


def cell_means(values: np.ndarray, decimals: int | None = None) -> np.ndarray:
    """Mean rating of each cell over its events: the matrix M0 of section 3.4.

    Parameters
    ----------
    values : ndarray of float, shape (perceiver, experiencer, event)
        Ratings; NaN is left out of its cell.
    decimals : int, optional
        To which each mean is rounded: 2 in the released code, none by default.

    Returns
    -------
    ndarray of float, shape (perceiver, experiencer)
        On the scale of the prompt; rows are perceivers, as in Figure 2.

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

    The standard deviation is the population's (ddof 0), as in the released code.

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
    if is_flat(matrix):
        raise ValueError(f"z-scores need cells that differ, found {matrix[0, 0]:g} in all of them")
    return stats.zscore(matrix, axis=None)


def is_flat(matrix: np.ndarray) -> bool:
    """Whether no cell differs from any other, beyond rounding: there is nothing to standardise."""
    return bool(np.ptp(matrix) <= 1e-12 * np.abs(matrix).max())


def cells(means: np.ndarray, names: Sequence[str]) -> pd.DataFrame:
    """The matrices M0 and M as a table: ``perceiver``, ``experiencer``, ``mean`` and ``z``.

    One row a cell, row by row of `means` (n, n), whose identities are `names`; where it is flat all
    z-scores are 0.
    """
    z = np.zeros_like(means) if is_flat(means) else zscore(means)
    names, n = np.asarray(names, dtype=object), len(names)
    sides = {"perceiver": np.repeat(names, n), "experiencer": np.tile(names, n)}
    return pd.DataFrame(sides | {"mean": means.ravel(), "z": z.ravel()})


def gap_matrix(
    values: np.ndarray,
    unspecified: int | None = 0,
    exclusion: Exclusion = "listwise",
    way: Way = "paper",
    *,
    decimals: int | None = None,
    separate: bool = False,
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
    exclusion : {"listwise", "pairwise"}
        See `exclude`.
    way : {"paper", "released"}
        "released" is ``decimals=2, separate=True``.
    decimals, separate : int or None, bool
        Rounding of the cell means, and dropping the unspecified identity first.

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
    if way == "released":
        decimals, separate = 2, True
    named = np.ix_(*[np.delete(np.arange(n), [] if unspecified is None else unspecified)] * 2)
    if separate:
        return zscore(cell_means(exclude(values[named], exclusion).values, decimals))
    return zscore(cell_means(exclude(values, exclusion).values, decimals))[named]


def same_group(groups: Sequence[object]) -> np.ndarray:
    """Which pairs of n identities share one of `groups`: bool, shape (n, n), True on the diagonal.

    Raises
    ------
    ValueError
        If an identity has no group (None, NaN or an empty text); the sentence names its position.
    """
    labels = pd.Series(list(groups), dtype=object)
    for position in np.flatnonzero(labels.isna() | (labels.astype(str).str.strip() == "")):
        found = f"the identity at position {position} has no group ({labels[position]!r})"
        raise ValueError(f"{found}, expected one for every identity of the matrix")
    codes, _ = pd.factorize(labels)
    return codes[:, None] == codes


def empathy_gap(matrix: ArrayLike, same: ArrayLike) -> float:
    """delta = mean(matrix[same]) - mean(matrix[~same]) (section 3.4), in the unit of the matrix.

    `matrix` (n, n) is from `gap_matrix`, `same` from `same_group`; raises as
    :func:`ingroup.stats.permutation.checked`.
    """
    matrix, same = checked(matrix, same)
    return float(matrix[same].mean() - matrix[~same].mean())


def delta(
    values: np.ndarray, same: np.ndarray, exclusion: Exclusion = "listwise", way: Way = "paper"
) -> float:
    """`empathy_gap` of `gap_matrix`, "a person" at position 0; NaN where the matrix is flat."""
    if is_flat(cell_means(exclude(values, exclusion).values)):
        return np.nan
    return empathy_gap(gap_matrix(values, exclusion=exclusion, way=way), same)


def gap(
    values: np.ndarray,
    same: np.ndarray,
    exclusion: Exclusion = "listwise",
    n_resamples: int = 10_000,
    rng: np.random.Generator | None = None,
) -> dict[str, Any]:
    """One row of Table 2: delta and its two intervals, which answer two questions.

    Parameters
    ----------
    values : ndarray of float, shape (n + 1, n + 1, event)
        Ratings before exclusion, "a person" at position 0.
    same : ndarray of bool, shape (n, n)
        From `same_group`, without "a person".
    exclusion, n_resamples, rng
        See `exclude`; number of arrangements; source of these and then of the bootstrap.

    Returns
    -------
    dict
        ``flat`` and ``events`` (left); unless flat, ``delta`` with ``low`` and ``high``
        (:func:`ingroup.stats.intervals.bootstrap_interval`), ``null_low``, ``null_high``,
        ``p_two_sided`` and ``p_greater`` (:func:`ingroup.stats.permutation.permutation_test`), and
        ``delta_released``, that of the released way.
    """
    left = exclude(values, exclusion).values
    row = {"flat": is_flat(cell_means(left)), "events": left.shape[2]}
    if row["flat"]:
        return row
    matrix = gap_matrix(values, exclusion=exclusion)
    test = permutation_test(matrix, same, n_resamples, rng)
    interval = bootstrap_interval(left, same, unspecified=0, rng=rng)
    return row | {
        "delta": test.statistic,
        "low": interval.low,
        "high": interval.high,
        "null_low": test.null_interval[0],
        "null_high": test.null_interval[1],
        "p_two_sided": test.pvalues["two-sided"],
        "p_greater": test.pvalues["greater"],
        "delta_released": delta(values, same, exclusion, "released"),
    }


def _block(values: np.ndarray) -> np.ndarray:
    """Ratings as an array of three dimensions."""
    values = np.asarray(values, dtype=float)
    if values.ndim != 3 or 0 in values.shape:
        expected = "the shape (perceivers, experiencers, events)"
        raise ValueError(f"ratings need {expected}, found {values.shape}")
    return values
