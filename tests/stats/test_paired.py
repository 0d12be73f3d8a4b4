"""Paired tests against SciPy and by hand, corrections against statsmodels, Wilson's interval."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from ingroup.stats.paired import (
    adjust,
    nan_mean,
    paired_cells,
    paired_test,
    significant_cells,
    wilson,
)


def some_ratings(n=4, events=30, seed=0, missing=0.0):
    """Ratings from 0 to 100 with an event effect, so that pairing matters."""
    rng = np.random.default_rng(seed)
    ratings = 50 + 15 * rng.standard_normal(events) + 8 * rng.standard_normal((n, n, events))
    ratings = np.round(ratings + 5 * rng.standard_normal((n, n, 1)), 1)
    ratings[rng.random(ratings.shape) < missing] = np.nan
    return ratings


@pytest.mark.filterwarnings("error")
def test_pairs_against_scipy_and_by_hand():
    one, other = some_ratings(missing=0.2)[0, :2]
    theirs = stats.ttest_rel(one, other, nan_policy="omit")
    found = paired_test(one, other, 0.9)
    np.testing.assert_allclose(
        [found.statistic, found.pvalue, found.low, found.high, found.n - 1],
        [theirs.statistic, theirs.pvalue, *theirs.confidence_interval(0.9), theirs.df],
        rtol=1e-12,
    )
    assert found.effect_size == pytest.approx(found.statistic / np.sqrt(found.n))
    # Up to rounding errors, a third is a third; and what is too little to test is no error.
    thirds = np.arange(20) / 3
    same = vars(paired_test(thirds + 0.1 - 0.1, thirds))
    assert list(same.values()) == [0, 1, 0, 0, 0, 0, 20]
    above = paired_test(thirds + 0.1, thirds)
    assert (above.statistic, above.pvalue, above.effect_size) == (np.inf, 0, np.inf)
    assert above.low == above.high == pytest.approx(0.1)
    for few in ([3.0], [3.0, np.nan], []):
        found = paired_test(few)
        assert found.n == len(few[:1])
        assert np.isnan([found.statistic, found.pvalue, found.low, found.effect_size]).all()
    with pytest.raises(ValueError, match="confidence is 0, expected a number between 0 and 1"):
        paired_test([1, 2], confidence=0)


@pytest.mark.parametrize(("count", "n"), [(0, 7), (3, 7), (276, 276)])
def test_wilson_against_scipy(count, n):
    expected = stats.binomtest(count, n).proportion_ci(0.9, method="wilson")
    assert wilson(count, n, 0.9) == pytest.approx(tuple(expected), abs=1e-12)
    with pytest.raises(ValueError, match="confidence is 95"):
        wilson(count, n, 95)


@pytest.mark.filterwarnings("error")
def test_a_mean_of_nothing_is_nan():
    values = [[1, np.nan, np.nan], [2, 5, np.nan]]
    np.testing.assert_array_equal(nan_mean(values), [1.5, 5, np.nan])
    np.testing.assert_array_equal(nan_mean(values, axis=1), [1, 3.5])


def off_diagonal(n):
    return [(p, x) for p in range(n) for x in range(n) if p != x]


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_every_cell_against_scipy(missing):
    ratings = some_ratings(missing=missing)
    cells = paired_cells(ratings, confidence=0.9)
    for tests, own in ((cells.perceiver, 0), (cells.experiencer, 1)):
        for cell in off_diagonal(4):
            reference = ratings[cell[own], cell[own]]
            theirs = stats.ttest_rel(ratings[cell], reference, nan_policy="omit")
            differences = ratings[cell] - reference
            differences = differences[~np.isnan(differences)]
            interval = theirs.confidence_interval(0.9)
            here = (
                tests.statistic[cell],
                tests.pvalue[cell],
                tests.n[cell] - 1,
                tests.difference[cell],
                tests.low[cell],
                tests.high[cell],
                tests.effect_size[cell],
            )
            expected = (
                theirs.statistic,
                theirs.pvalue,
                theirs.df,
                differences.mean(),
                interval.low,
                interval.high,
                differences.mean() / differences.std(ddof=1),
            )
            np.testing.assert_allclose(here, expected, rtol=1e-9)
        for number in (tests.statistic, tests.pvalue, tests.low, tests.high, tests.effect_size):
            assert np.isnan(np.diag(number)).all()
            assert np.isfinite(number[~np.eye(4, dtype=bool)]).all()
        assert (np.diag(tests.n) == 0).all()


# Differences 1, 2, 3, 6 from the perceiver's own cell: mean 3, sd sqrt(14/3) = 2.1602,
# t = 3 / (2.1602 / 2) = 2.7775, and for 3 degrees of freedom t(0.975) = 3.1824.
def test_by_hand():
    ratings = np.zeros((2, 2, 4))
    ratings[0, 0] = 10, 20, 30, 40
    ratings[0, 1] = 11, 22, 33, 46
    ratings[1, 0] = ratings[1, 1] = 50, 60, 50, 70
    tests = paired_cells(ratings).perceiver
    assert tests.difference[0, 1] == 3
    assert tests.statistic[0, 1] == pytest.approx(2.7775, abs=1e-4)
    assert tests.effect_size[0, 1] == pytest.approx(3 / 2.1602, abs=1e-4)
    assert tests.low[0, 1] == pytest.approx(3 - 3.1824 * 2.1602 / 2, abs=1e-3)
    assert tests.high[0, 1] == pytest.approx(3 + 3.1824 * 2.1602 / 2, abs=1e-3)
    assert tests.n[0, 1] == 4


# Ratings around a million with differences around a thousandth: sums of squares would lose them.
def test_small_differences_of_large_ratings():
    rng = np.random.default_rng(1)
    ratings = 1e6 + 100 * rng.standard_normal(50) + 1e-3 * rng.standard_normal((3, 3, 50))
    tests = paired_cells(ratings).experiencer
    for p, x in off_diagonal(3):
        theirs = stats.ttest_rel(ratings[p, x], ratings[x, x])
        assert tests.statistic[p, x] == pytest.approx(theirs.statistic, rel=1e-9)
        assert tests.pvalue[p, x] == pytest.approx(theirs.pvalue, rel=1e-9)


def test_differences_without_spread():
    # Adding 0.1 rounds differently from rating to rating: the differences are equal up to that.
    ratings = np.tile(np.arange(100) / 3, (2, 2, 1))
    ratings[0, 1] += 0.1
    ratings[1, 1] += 0.1
    cells = paired_cells(ratings)
    # Cell (0, 1) is 0.1 above (0, 0) in all events and equal to (1, 1).
    assert cells.perceiver.statistic[0, 1] == np.inf
    assert cells.perceiver.effect_size[0, 1] == np.inf
    assert cells.perceiver.pvalue[0, 1] == 0
    assert cells.perceiver.low[0, 1] == cells.perceiver.high[0, 1] == pytest.approx(0.1)
    assert cells.experiencer.statistic[0, 1] == 0
    assert cells.experiencer.effect_size[0, 1] == 0
    assert cells.experiencer.pvalue[0, 1] == 1
    assert cells.perceiver.statistic[1, 0] == -np.inf
    assert not significant_cells(cells)[0, 1]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.permutations(range(4)))
def test_order_of_identities_and_events_does_not_matter(seed, order):
    ratings = some_ratings(seed=seed, missing=0.1)
    shuffled = ratings[:, :, np.random.default_rng(seed).permutation(30)]
    shuffled = shuffled[np.ix_(order, order)]
    for side in ("perceiver", "experiencer"):
        one = getattr(paired_cells(ratings), side)
        other = getattr(paired_cells(shuffled), side)
        np.testing.assert_allclose(
            one.statistic[np.ix_(order, order)], other.statistic, rtol=1e-9, atol=1e-12
        )


def test_ratings_are_left_as_they_are():
    ratings = some_ratings(missing=0.1)
    before = ratings.copy()
    cells = paired_cells(ratings)
    pvalues = cells.perceiver.pvalue.copy()
    significant_cells(cells, unspecified=0)
    np.testing.assert_array_equal(ratings, before)
    np.testing.assert_array_equal(cells.perceiver.pvalue, pvalues)


def changed(place, value):
    ratings = some_ratings()
    ratings[place] = value
    return ratings


def apart():
    """Cells (0, 3) and (3, 3) have the two halves of the events."""
    ratings = changed((3, 3, slice(15)), np.nan)
    ratings[0, 3, 15:] = np.nan
    return ratings


@pytest.mark.parametrize(
    ("ratings", "message"),
    [
        (some_ratings(events=1), r"shape \(4, 4, 1\), expected .* at least .* 2 events"),
        (np.zeros((3, 4, 9)), r"shape \(3, 4, 9\)"),
        (np.zeros((4, 4)), r"shape \(4, 4\)"),
        (np.zeros((1, 1, 9)), "at least 2 identities"),
        (np.full((3, 3, 9), np.nan), "share 0 events"),
        (changed((2, 3, slice(1, None)), np.nan), "row 2, column 3 and its perceiver .* 1 events"),
        (changed((3, 3, slice(1, None)), np.nan), "row 3, column 0 and its perceiver"),
        (apart(), "row 0, column 3 and its experiencer .* 0 events"),
        (changed((2, 1, 7), np.inf), "inf in row 2, column 1, event 7"),
        (changed((3, 3, 2), -np.inf), "-inf in row 3, column 3, event 2"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_what_cannot_be_paired_is_refused(ratings, message):
    with pytest.raises(ValueError, match=message):
        paired_cells(ratings)


def test_confidence_out_of_range():
    with pytest.raises(ValueError, match="confidence is 95"):
        paired_cells(some_ratings(), confidence=95)


# Holm by hand: 0.01 x 3, then 0.02 x 2, then 0.04 x 1 (not below its predecessor).
def test_adjust_by_hand():
    pvalues = [[0.02, np.nan], [0.04, 0.01]]
    np.testing.assert_allclose(adjust(pvalues), [[0.06, np.nan], [0.12, 0.03]])
    kept = np.array(pvalues)
    adjust(kept)
    np.testing.assert_array_equal(kept, pvalues)
    np.testing.assert_allclose(adjust(pvalues, "holm"), [[0.04, np.nan], [0.04, 0.03]])
    np.testing.assert_allclose(adjust(pvalues, n_tests=36), [[0.72, np.nan], [1, 0.36]])
    np.testing.assert_allclose(adjust(pvalues, "holm", n_tests=10), [[0.18, np.nan], [0.32, 0.1]])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([0, 1e-9, 0.01, 0.02, 0.3, 1]), min_size=1), st.integers(0, 9))
def test_adjust_against_statsmodels(pvalues, not_made):
    for method in ("bonferroni", "holm"):
        theirs = multipletests(pvalues + [1] * not_made, method=method)[1][: len(pvalues)]
        here = adjust([*pvalues, np.nan], method, len(pvalues) + not_made)
        np.testing.assert_array_equal(here, [*theirs, np.nan])
    assert np.isnan(adjust([np.nan, np.nan], "holm")).all()


@pytest.mark.parametrize(
    ("pvalues", "options", "message"),
    [
        ([0.5, 1.5], {}, "a p-value is 1.5"),
        ([-0.5, 0.5], {}, "a p-value is -0.5"),
        ([0.5], {"method": "none"}, "method is 'none'"),
        ([0.5, 0.5], {"n_tests": 1}, "n_tests is 1, expected at least the 2"),
    ],
)
def test_adjust_refuses(pvalues, options, message):
    with pytest.raises(ValueError, match=message):
        adjust(pvalues, **options)


def released_mask(ratings):
    """As released: both p < 0.05 / (N + 1)**2; the unspecified identity (0) stays at p = 0."""
    n = len(ratings)
    shown = np.ones((n, n), dtype=bool)
    for p, x in off_diagonal(n):
        if 0 not in (p, x):
            both = (
                stats.ttest_rel(ratings[p, x], ratings[p, p]).pvalue,
                stats.ttest_rel(ratings[p, x], ratings[x, x]).pvalue,
            )
            shown[p, x] = max(both) < 0.05 / n**2
    return shown


@pytest.mark.parametrize("seed", range(4))
def test_mask_as_released(seed):
    ratings = some_ratings(n=8, events=120, seed=seed)
    expected = released_mask(ratings)
    assert 8 < (~expected).sum() < 40
    shown = significant_cells(paired_cells(ratings), unspecified=0, way="released")
    np.testing.assert_array_equal(shown, expected)
    # The same without the unspecified identity in the table: the divisor still counts it.
    shown = significant_cells(paired_cells(ratings[1:, 1:]), way="released")
    np.testing.assert_array_equal(shown, expected[1:, 1:])


def test_mask_counts_the_cells_that_were_tested():
    cells = paired_cells(some_ratings(n=8, events=120))
    worse = np.maximum(cells.perceiver.pvalue, cells.experiencer.pvalue)
    np.testing.assert_array_equal(significant_cells(cells), ~(worse * 56 >= 0.05))
    inner = np.ones((8, 8), dtype=bool)
    inner[1:, 1:] = ~(worse[1:, 1:] * 42 >= 0.05)
    np.testing.assert_array_equal(significant_cells(cells, unspecified=0), inner)
    holm = significant_cells(cells, method="holm")
    assert (holm | significant_cells(cells) == holm).all()
    assert holm.sum() > significant_cells(cells, way="released").sum()
    assert np.diag(significant_cells(cells, alpha=1e-300)).all()
    assert significant_cells(cells, alpha=1e-300).sum() == 8


def test_no_difference_is_seldom_shown():
    rng = np.random.default_rng(3)
    shown = [
        significant_cells(paired_cells(rng.standard_normal((5, 5, 20)))).sum() > 5
        for _ in range(300)
    ]
    assert np.mean(shown) <= 0.05


def test_mask_refuses():
    cells = paired_cells(some_ratings())
    with pytest.raises(ValueError, match="unspecified is 4, expected a position below 4"):
        significant_cells(cells, unspecified=4)
    with pytest.raises(ValueError, match="method is 'holm', expected 'bonferroni'"):
        significant_cells(cells, method="holm", way="released")
    with pytest.raises(ValueError, match="method is 'bh'"):
        significant_cells(cells, method="bh")
    with pytest.raises(ValueError, match="way is 'paper', expected 'sound' or 'released'"):
        significant_cells(cells, way="paper")
