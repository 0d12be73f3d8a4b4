"""Paired t-tests, corrections for their number, Wilson's interval, means of what is there."""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

METHODS = ("bonferroni", "holm")
TINY = 1e-9  # points of the scale: differences below are rounding errors of averages

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class PairedTest:
    """What `paired_test` returns: numbers, or arrays of them."""

    statistic: Numbers
    pvalue: Numbers
    difference: Numbers
    low: Numbers
    high: Numbers
    effect_size: Numbers
    n: NDArray[np.int64]


@dataclass(frozen=True)
class PairedCells:
    """Each cell against the `perceiver`'s in-group cell and the `experiencer`'s."""

    perceiver: PairedTest
    experiencer: PairedTest


def paired_test(one: ArrayLike, other: ArrayLike = 0.0, confidence: float = 0.95) -> PairedTest:
    """Paired t-test over the last axis, by scipy.stats.ttest_1samp of the differences.

    With d = one - other over the n pairs that have both::

        t = mean(d) / (sd(d) / sqrt(n)),  d_z = mean(d) / sd(d),  sd with n - 1, df = n - 1

    `one` and `other` are of shape (..., pairs) in points of the scale, NaN where one is missing;
    `other` is 0 to test `one` itself. The fields are of shape (...): t, two-sided p, mean(d) with
    its interval ``low`` to ``high``, d_z and n. Where all d are the same, t and d_z are infinite
    and p is 0; where all are 0, these are 0, 0 and 1; with fewer than 2 pairs all but the mean and
    n is NaN. Raises ValueError for a `confidence` that is not above 0 and below 1.
    """
    checked_confidence(confidence)
    d = np.subtract(one, other, dtype=float)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        # Too few pairs, or pairs without spread: what is returned says so.
        warnings.simplefilter("ignore", RuntimeWarning)
        test = stats.ttest_1samp(d, 0, axis=-1, nan_policy="omit")
        low, high = test.confidence_interval(confidence)
        mean, sd = np.nanmean(d, axis=-1), np.nanstd(d, axis=-1, ddof=1)
        effect_size = mean / sd
    same = sd < TINY
    mean = np.where(same & (np.abs(mean) < TINY), 0.0, mean)
    alike = np.where(mean == 0, 0.0, np.copysign(np.inf, mean))
    instead = [alike, mean == 0, mean, mean, mean, alike]
    numbers = [test.statistic, test.pvalue, mean, low, high, effect_size]
    numbers = [np.where(same, *pair) for pair in zip(instead, numbers, strict=True)]
    # Of one row of pairs, numbers and no arrays without axes.
    return PairedTest(*(number[()] for number in numbers), np.count_nonzero(~np.isnan(d), axis=-1))


def paired_cells(ratings: ArrayLike, confidence: float = 0.95) -> PairedCells:
    """Compare cells (p, x) with (p, p) and (x, x), event by event (Hou et al. 2025, section 3.4).

    `ratings` are of shape (n, n, events), perceivers by experiencers by events, NaN where one is
    missing; the fields of the tests are of shape (n, n), their diagonals NaN, with `n` 0. Raises
    ValueError for another shape, a single identity or event, an infinite rating, and a comparison
    of fewer than 2 pairs (the sentence names the cell and the reference).
    """
    ratings = np.asarray(ratings, dtype=float)
    shape = ratings.shape
    if len(shape) != 3 or shape[0] != shape[1] or min(shape) < 2:
        expected = "(n, n, events), at least 2 identities and 2 events"
        raise ValueError(f"ratings have shape {shape}, expected {expected}")
    for p, x, event in np.argwhere(np.isinf(ratings)):
        found = f"{ratings[p, x, event]} in row {p}, column {x}, event {event}"
        raise ValueError(f"ratings hold {found}, expected finite numbers or NaN")
    own = ratings[np.diag_indices(len(ratings))]
    both = []
    for name, reference in (("perceiver", own[:, None]), ("experiencer", own)):
        tests = paired_test(ratings, reference, confidence)
        for p, x in np.argwhere(tests.n < 2):
            found = f"row {p}, column {x} and its {name} in-group cell share {tests.n[p, x]}"
            raise ValueError(f"{found} events with a rating, expected at least 2 for a paired test")
        for field, numbers in vars(tests).items():
            np.fill_diagonal(numbers, 0 if field == "n" else np.nan)
        both.append(tests)
    return PairedCells(*both)


def significant_cells(
    tests: PairedCells,
    alpha: float = 0.05,
    method: str = "bonferroni",
    unspecified: int | None = None,
    way: str = "sound",
) -> NDArray[np.bool_]:
    """Cells that differ from both in-group references: (n, n), True for those to show.

    The p-value of a cell is the larger of its two; a category is one family of cells, with the
    level `alpha`. The diagonal is always True. Raises ValueError as `adjust` does, for an
    `unspecified` that is no position, an unknown `way`, and the released one with Holm's method.

    Parameters
    ----------
    tests, alpha, method : PairedCells, float, str
        See `paired_cells` and `adjust`.
    unspecified : int, optional
        Position of the unspecified identity ("a person") where it is in the matrix: its row and
        column are never masked and do not count as tested, as in the released code.
    way : {"sound", "released"}
        "sound" counts the cells that were tested; "released" is Bonferroni's with (N + 1)**2 tests
        for N identities beside the unspecified one (361, 484, 36), which counts the diagonal and
        "a person", although these are not tested.
    """
    pvalues = np.maximum(tests.perceiver.pvalue, tests.experiencer.pvalue)
    n = len(pvalues)
    if unspecified is not None:
        if unspecified not in range(n):
            raise ValueError(f"unspecified is {unspecified!r}, expected a position below {n}")
        pvalues[unspecified, :] = pvalues[:, unspecified] = np.nan
    if way not in ("sound", "released"):
        raise ValueError(f"way is {way!r}, expected 'sound' or 'released'")
    if way == "released" and method != "bonferroni":
        raise ValueError(f"method is {method!r}, expected 'bonferroni' as in the released code")
    n_tests = (n + (unspecified is None)) ** 2 if way == "released" else None
    # Cells that were not tested are NaN, for which no comparison holds.
    return ~(adjust(pvalues, method, n_tests) >= alpha)


def adjust(pvalues: ArrayLike, method: str = "bonferroni", n_tests: int | None = None) -> Numbers:
    """p-values corrected for the number of tests, in their shape and at most 1.

    NaN, where nothing was tested, stays NaN and does not count. "bonferroni" and "holm" both hold
    the chance of any false positive; Holm's finds at least as much. `n_tests` is the size of the
    family where it is larger than the number of p-values: tests that were not made count as p = 1.
    Checked against statsmodels' multipletests, which collects garbage at every call. Raises
    ValueError for a p-value outside 0 to 1, an unknown `method`, and an `n_tests` below their
    number.
    """
    pvalues = np.array(pvalues, dtype=float)
    tested = ~np.isnan(pvalues)
    made = pvalues[tested]
    for p in made[(made < 0) | (made > 1)]:
        raise ValueError(f"a p-value is {p}, expected numbers between 0 and 1")
    if method not in METHODS:
        raise ValueError(f"method is {method!r}, expected one of {METHODS}")
    n_tests = made.size if n_tests is None else n_tests
    if n_tests < made.size:
        raise ValueError(f"n_tests is {n_tests}, expected at least the {made.size} tests made")
    order = np.argsort(made)
    times = n_tests - np.arange(made.size) if method == "holm" else n_tests
    made[order] = np.minimum(np.maximum.accumulate(made[order] * times), 1)
    pvalues[tested] = made
    return pvalues


def wilson(count: float, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of the share count / n, from 0 to 1, by statsmodels."""
    checked_confidence(confidence)
    low, high = proportion_confint(count, n, 1 - confidence, method="wilson")
    return float(low), float(high)


def nan_mean(values: ArrayLike, axis: int = 0) -> Numbers:
    """Mean of what is not NaN; NaN, without a warning, where there is nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanmean(values, axis=axis)


def checked_confidence(confidence: float) -> None:
    """Raise ValueError for a coverage that is not above 0 and below 1."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence!r}, expected a number between 0 and 1")
