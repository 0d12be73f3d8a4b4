"""Paired t-tests of a perceiver-by-experiencer table of ratings, and their correction.

Hou et al. 2025, section 3.4: the ratings of a pair are compared, event by event, with those of the
perceiver's own in-group cell and of the experiencer's own; a cell is shown where both differ.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from statsmodels.stats.multitest import multipletests

METHODS = ("bonferroni", "holm")


@dataclass(frozen=True)
class PairedTests:
    """One paired t-test a cell, against one in-group reference; every field has shape (n, n).

    The diagonal is not tested and NaN (0 in `n`). See `paired_cells` for each number.
    """

    statistic: NDArray[np.float64]
    pvalue: NDArray[np.float64]
    difference: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    effect_size: NDArray[np.float64]
    n: NDArray[np.int64]


@dataclass(frozen=True)
class PairedCells:
    """Each cell against the `perceiver`'s in-group cell and the `experiencer`'s."""

    perceiver: PairedTests
    experiencer: PairedTests


def paired_cells(ratings: ArrayLike, confidence: float = 0.95) -> PairedCells:
    """Compare every cell (p, x) with the in-group cells (p, p) and (x, x), paired over events.

    With the differences d = rating(p, x) - rating(reference) over the events that have both::

        t = mean(d) / (sd(d) / sqrt(n)),  d_z = mean(d) / sd(d),  sd with n - 1, df = n - 1

    Two-sided. Checked against scipy.stats.ttest_rel with ``nan_policy="omit"`` and its
    ``confidence_interval``.

    Parameters
    ----------
    ratings : array_like, shape (n, n, events)
        Ratings, perceivers by experiencers by events; NaN where an answer is missing.
    confidence : float
        Coverage of the interval of the mean difference, above 0 and below 1.

    Returns
    -------
    PairedCells
        ``perceiver`` (reference (p, p)) and ``experiencer`` (reference (x, x)), each with arrays of
        shape (n, n): ``statistic``, ``pvalue``, ``difference`` (the mean, in rating points) with
        its interval ``low`` to ``high``, ``effect_size`` (d_z) and ``n`` (pairs of ratings).
        Where all differences are 0, the statistic is NaN, the p-value 1 and d_z 0; where they are
        all the same but not 0, the statistic and d_z are infinite and the p-value is 0.

    Raises
    ------
    ValueError
        If `ratings` is not of shape (n, n, events), has a single identity or fewer than 2 events,
        an infinite rating, or a comparison with fewer than 2 complete pairs (the sentence names
        the cell and the reference), or `confidence` is outside its range.
    """
    ratings = np.asarray(ratings, dtype=float)
    shape = ratings.shape
    if len(shape) != 3 or shape[0] != shape[1] or min(shape) < 2:
        expected = "(n, n, events), at least 2 identities and 2 events"
        raise ValueError(f"ratings have shape {shape}, expected {expected}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence!r}, expected a number between 0 and 1")
    own = np.arange(len(ratings))
    in_group = ratings[own, own]
    perceiver, experiencer = [], []
    # Row by row: a row and its differences stay in the processor's cache.
    for p, row in enumerate(ratings):
        if np.isinf(row).any():
            x, event = np.argwhere(np.isinf(row))[0]
            found = f"{row[x, event]} in row {p}, column {x}, event {event}"
            raise ValueError(f"ratings hold {found}, expected finite numbers or NaN")
        perceiver.append(_moments(row - row[p], p, "perceiver"))
        experiencer.append(_moments(row - in_group, p, "experiencer"))
    return PairedCells(_tests(perceiver, confidence), _tests(experiencer, confidence))


def adjust(
    pvalues: ArrayLike, method: str = "bonferroni", n_tests: int | None = None
) -> NDArray[np.float64]:
    """p-values corrected for the number of tests, by statsmodels.

    Parameters
    ----------
    pvalues : array_like
        p-values of any shape; NaN where nothing was tested, which stays NaN and does not count.
    method : {"bonferroni", "holm"}
        Both hold the chance of any false positive; Holm's finds at least as much.
    n_tests : int, optional
        Size of the family where it is larger than the number of p-values: the tests that were not
        made count as p = 1. The released code of Hou et al. divides by (N + 1)**2 (361, 484, 36),
        which counts the diagonal and "a person", although these are not tested.

    Returns
    -------
    ndarray
        Corrected p-values, at most 1, in the shape of `pvalues`.

    Raises
    ------
    ValueError
        If there is no p-value, one outside 0 to 1, an unknown `method`, or an `n_tests` below the
        number of p-values.
    """
    pvalues = np.array(pvalues, dtype=float)
    tested = ~np.isnan(pvalues)
    made = pvalues[tested]
    if not made.size:
        raise ValueError("there is no p-value to correct, expected at least one that is not NaN")
    if made.min() < 0 or made.max() > 1:
        worst = made.min() if made.min() < 0 else made.max()
        raise ValueError(f"a p-value is {worst}, expected numbers between 0 and 1")
    if method not in METHODS:
        raise ValueError(f"method is {method!r}, expected one of {METHODS}")
    not_made = 0 if n_tests is None else n_tests - made.size
    if not_made < 0:
        raise ValueError(f"n_tests is {n_tests}, expected at least the {made.size} tests made")
    family = np.append(made, np.ones(not_made))
    pvalues[tested] = multipletests(family, method=method)[1][: made.size]
    return pvalues


def significant_cells(
    tests: PairedCells,
    alpha: float = 0.05,
    method: str = "bonferroni",
    unspecified: int | None = None,
    as_printed: bool = False,
) -> NDArray[np.bool_]:
    """Cells that differ from both in-group references: the ones that the heatmaps show.

    A cell needs both tests, so that its p-value is the larger of the two, and a category is one
    family of cells.

    Parameters
    ----------
    tests : PairedCells
        From `paired_cells`.
    alpha : float
        Level of the family.
    method : {"bonferroni", "holm"}
        See `adjust`.
    unspecified : int, optional
        Position of the unspecified identity ("a person") where it is in the matrix: its row and
        column are never masked and do not count as tested, as in the released code.
    as_printed : bool
        Bonferroni as released: p < alpha / (N + 1)**2 for N identities beside the unspecified one.
        False counts the cells that were tested.

    Returns
    -------
    ndarray of bool, shape (n, n)
        True for the cells to show; the diagonal is always True.

    Raises
    ------
    ValueError
        As for `adjust`, for an `unspecified` that is no position, and for `as_printed` with a
        method other than Bonferroni's.
    """
    pvalues = np.maximum(tests.perceiver.pvalue, tests.experiencer.pvalue)
    n = len(pvalues)
    if unspecified is not None:
        if unspecified not in range(n):
            raise ValueError(f"unspecified is {unspecified!r}, expected a position below {n}")
        pvalues[unspecified, :] = pvalues[:, unspecified] = np.nan
    if as_printed and method != "bonferroni":
        raise ValueError(f"method is {method!r}, expected 'bonferroni' as it was printed")
    with_unspecified = n + 1 if unspecified is None else n
    n_tests = with_unspecified**2 if as_printed else None
    # Cells that were not tested are NaN, for which no comparison holds.
    return ~(adjust(pvalues, method, n_tests) >= alpha)


def _moments(
    differences: NDArray[np.float64], p: int, reference: str
) -> tuple[NDArray[np.float64], ...]:
    """Mean, standard deviation and number of the differences of perceiver p, by experiencer."""
    # An infinite rating of another row has no spread; it is refused when its own row comes.
    with np.errstate(invalid="ignore"):
        mean, sd = differences.mean(axis=1), differences.std(axis=1, ddof=1)
    n = np.full(mean.shape, differences.shape[1])
    if np.isnan(mean).any():
        n = np.count_nonzero(~np.isnan(differences), axis=1)
        for x in np.flatnonzero(n < 2):
            found = f"row {p}, column {x} and its {reference} in-group cell share {n[x]} events"
            raise ValueError(f"{found} with a rating, expected at least 2 for a paired test")
        mean, sd = np.nanmean(differences, axis=1), np.nanstd(differences, axis=1, ddof=1)
    return mean, sd, n


def _tests(rows: list[tuple[NDArray[np.float64], ...]], confidence: float) -> PairedTests:
    """The tests that follow from the moments of every row of cells."""
    mean, sd, n = (np.array(part) for part in zip(*rows, strict=True))
    # Differences that are all the same come out with a spread of rounding errors.
    sd[sd <= 1e-10 * np.abs(mean)] = 0
    with np.errstate(divide="ignore", invalid="ignore"):
        effect_size = mean / sd
    statistic = effect_size * np.sqrt(n)
    none = np.isnan(effect_size)
    pvalue = np.where(none, 1.0, 2 * special.stdtr(n - 1, -np.abs(statistic)))
    effect_size[none] = 0
    margin = special.stdtrit(n - 1, (1 + confidence) / 2) * sd / np.sqrt(n)
    numbers = [statistic, pvalue, mean, mean - margin, mean + margin, effect_size]
    for number in numbers:
        np.fill_diagonal(number, np.nan)
    np.fill_diagonal(n, 0)
    return PairedTests(*numbers, n)
