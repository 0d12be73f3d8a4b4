"""Paired tests against SciPy and by hand, corrections against statsmodels, Wilson's interval."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from ingroup.stats.paired import (
    adjust,
    clustered_share,
    mcnemar,
    nan_mean,
    paired_cells,
    paired_test,
    sign_test,
    significant_cells,
)


def some_ratings(n=4, events=30, seed=0, missing=0.0):
    """Ratings from 0 to 100 with an event effect, so that pairing matters."""
    rng = np.random.default_rng(seed)
    ratings = 50 + 15 * rng.standard_normal(events) + 8 * rng.standard_normal((n, n, events))
    ratings = np.round(ratings + 5 * rng.standard_normal((n, n, 1)), 1)
    ratings[rng.random(ratings.shape) < missing] = np.nan
    return ratings


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_pairs_against_scipy(missing):
    one, other = some_ratings(missing=missing)[:2]
    found = paired_test(one, other)
    for row in range(4):
        theirs = stats.ttest_rel(one[row], other[row], nan_policy="omit")
        d = one[row] - other[row]
        here = [numbers[row] for numbers in found]
        expected = [
            *(theirs.statistic, theirs.pvalue, np.nanmean(d), *theirs.confidence_interval(0.95)),
            *(np.nanmean(d) / np.nanstd(d, ddof=1), theirs.df + 1, 0),
        ]
        np.testing.assert_allclose(here, expected, rtol=1e-9)


# Differences 1, 2, 3, 6: mean 3, sd sqrt(14/3) = 2.1602, t = 3 / (2.1602 / 2) = 2.7775, and for 3
# degrees of freedom t(0.975) = 3.1824.
@pytest.mark.filterwarnings("error")
def test_pairs_by_hand():
    found = paired_test([11, 22, 33, 46], [10, 20, 30, 40])
    assert (found.difference, found.n) == (3, 4)
    assert found.statistic == pytest.approx(2.7775, abs=1e-4)
    assert found.effect_size == pytest.approx(3 / 2.1602, abs=1e-4)
    assert found.low == pytest.approx(3 - 3.1824 * 2.1602 / 2, abs=1e-3)
    assert found.high == pytest.approx(3 + 3.1824 * 2.1602 / 2, abs=1e-3)
    # Up to rounding errors, a third is a third; and what is too little to test is no error.
    thirds = np.arange(20) / 3
    same = paired_test(thirds + 0.1 - 0.1, thirds)
    assert list(same) == [0, 1, 0, 0, 0, 0, 20, 0.5**19]
    for sign in (1, -1):
        apart = paired_test(thirds + 0.1 * sign, thirds)
        mean, far = pytest.approx(0.1 * sign), sign * np.inf
        *numbers, effect_size, n, least = apart
        assert numbers == [far, pytest.approx(0.5**19), mean, mean, mean]
        assert np.isnan(effect_size)
        assert (n, least) == (20, 0.5**19)
    for few in ([3.0], [3.0, np.nan], []):
        found = paired_test(few)
        assert found.n == len(few[:1])
        assert np.isnan([found.statistic, found.pvalue, found.low, found.effect_size]).all()


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_signs_against_scipy(missing):
    """Of whole numbers, which tie now and then."""
    one, other = np.round(some_ratings(missing=missing)[:2] / 10)
    for row, found in enumerate(sign_test(one, other)):
        d = one[row] - other[row]
        up, n = np.count_nonzero(d > 0), np.count_nonzero(np.abs(d) > 0)
        assert found == pytest.approx(stats.binomtest(up, n).pvalue)
    assert (sign_test([2, 2, 2]), sign_test([0, np.nan])) == (0.25, 1)


# Ratings around a million with differences around a thousandth: sums of squares would lose them.
def test_small_differences_of_large_ratings():
    rng = np.random.default_rng(1)
    one, other = 1e6 + 100 * rng.standard_normal(50) + 1e-3 * rng.standard_normal((2, 50))
    found, theirs = paired_test(one, other), stats.ttest_rel(one, other)
    assert (found.statistic, found.pvalue) == pytest.approx((theirs.statistic, theirs.pvalue))


@pytest.mark.filterwarnings("error")
def test_a_mean_of_nothing_is_nan():
    values = [[1, np.nan, np.nan], [2, 5, np.nan]]
    np.testing.assert_array_equal(nan_mean(values), [1.5, 5, np.nan])
    np.testing.assert_array_equal(nan_mean(values, axis=1), [1, 3.5])


def worse_by_scipy(ratings):
    """The definition: the larger p of the two tests of each cell, NaN on the diagonal."""
    worse = np.full(ratings.shape[:2], np.nan)
    for p, x in zip(*np.where(~np.eye(len(ratings), dtype=bool)), strict=True):
        both = (
            stats.ttest_rel(ratings[p, x], ratings[own, own], nan_policy="omit").pvalue
            for own in (p, x)
        )
        worse[p, x] = max(both)
    return worse


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_every_cell_against_scipy(missing):
    ratings = some_ratings(missing=missing)
    before = ratings.copy()
    np.testing.assert_allclose(paired_cells(ratings), worse_by_scipy(ratings), rtol=1e-9)
    np.testing.assert_array_equal(ratings, before)


def test_cells_by_signs_are_never_surer_than_their_number_of_events_allows():
    """Seven whole numbers that are all one higher: 0 by t, and 2 / 2^7 by signs."""
    ratings = np.repeat(np.arange(7.0)[None], 9, axis=0).reshape(3, 3, 7)
    ratings[1, 2] += 1
    by_t, by_sign = paired_cells(ratings), paired_cells(ratings, "sign")
    assert (by_t[1, 2], by_sign[1, 2], by_sign[2, 1]) == (0, 2 / 2**7, 1)
    ratings = some_ratings()
    expected = max(sign_test(ratings[2, 3], ratings[own, own]) for own in (2, 3))
    assert paired_cells(ratings, "sign")[2, 3] == expected


def without(*places):
    ratings = some_ratings()
    for place in places:
        ratings[place] = np.nan
    return ratings


@pytest.mark.parametrize(
    ("ratings", "message"),
    [
        (some_ratings(events=1), "row 0, column 0 .* share 1 events"),
        (np.full((3, 3, 9), np.nan), "share 0 events"),
        (without(np.s_[2, 3, 1:]), "row 2, column 3 and its perceiver .* 1 events"),
        (without(np.s_[3, 3, 1:]), "row 3, column 0 and its perceiver"),
        # Cells (0, 3) and (3, 3) have the two halves of the events.
        (without(np.s_[3, 3, :15], np.s_[0, 3, 15:]), "row 0, column 3 and its exp.* 0 events"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_what_cannot_be_paired_is_refused(ratings, message):
    with pytest.raises(ValueError, match=message):
        paired_cells(ratings)


# Holm by hand: 0.01 x 3, then 0.02 x 2, then 0.04 x 1 (not below its predecessor).
# Benjamini and Hochberg: 0.04 x 3/3, then 0.02 x 3/2, then 0.01 x 3/1 (not above).
def test_adjust_by_hand():
    pvalues = np.array([[0.02, np.nan], [0.04, 0.01]])
    kept = pvalues.copy()
    for method, expected in {
        "bonferroni": [[0.06, np.nan], [0.12, 0.03]],
        "holm": [[0.04, np.nan], [0.04, 0.03]],
        "benjamini-hochberg": [[0.03, np.nan], [0.04, 0.03]],
    }.items():
        np.testing.assert_allclose(adjust(pvalues, method), expected)
        assert np.isnan(adjust([np.nan, np.nan], method)).all()
    np.testing.assert_array_equal(adjust(pvalues, "none"), kept)
    np.testing.assert_array_equal(kept, pvalues)


@settings(max_examples=30)
@given(st.lists(st.sampled_from([0, 1e-9, 0.01, 0.02, 0.3, 1]), min_size=1))
def test_adjust_against_statsmodels(pvalues):
    with patch("gc.collect"):  # theirs collects garbage at every call, half a second each
        for method in ("bonferroni", "holm"):
            theirs = multipletests(pvalues, method=method)[1]
            np.testing.assert_array_equal(adjust([*pvalues, np.nan], method), [*theirs, np.nan])
        theirs = multipletests(pvalues, method="fdr_bh")[1]
        np.testing.assert_allclose(adjust(pvalues, "benjamini-hochberg"), theirs)


@pytest.mark.parametrize("seed", range(4))
def test_mask_as_released(seed):
    """As released: both p < 0.05 / (N + 1)**2; the unspecified identity (0) is shown."""
    ratings = some_ratings(n=8, events=120, seed=seed)
    expected = ~(worse_by_scipy(ratings) >= 0.05 / 8**2)
    expected[0, :] = expected[:, 0] = True
    assert 8 < (~expected).sum() < 40
    pvalues = paired_cells(ratings)
    before = pvalues.copy()
    np.testing.assert_array_equal(significant_cells(pvalues, "released"), expected)
    np.testing.assert_array_equal(pvalues, before)


def test_mask_counts_the_cells_that_were_tested():
    worse = paired_cells(some_ratings(n=8, events=120, seed=8))
    expected = np.ones((8, 8), dtype=bool)
    expected[1:, 1:] = ~(worse[1:, 1:] * 42 >= 0.05)
    released, holm = (significant_cells(worse, correction) for correction in ("released", "holm"))
    np.testing.assert_array_equal(significant_cells(worse), expected)
    assert (released <= expected).all()
    assert (expected <= holm).all()
    assert (released.sum(), expected.sum(), holm.sum()) == (37, 38, 41)
    assert np.diag(released).all()


def test_a_share_in_clusters():
    """Repeated answers tell nothing new; lone ones what Wilson says of n - 1, with Student's t."""
    hits, names = np.array([1, 0, 0, 1, 0]), np.array(list("abcde"))
    once = clustered_share(hits, names)
    assert clustered_share(np.repeat(hits, 9), np.repeat(names, 9)) == pytest.approx(once)
    z2, p, n = stats.t.isf(0.025, 4) ** 2, 0.4, 4
    half = np.sqrt(z2 * (p * (1 - p) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    assert once == pytest.approx((p, middle - half, middle + half))
    share, low, high = clustered_share([0, 0, 0, 0], list("aabb"))
    assert (share, low) == (0, pytest.approx(0, abs=1e-12))
    assert 0.5 < high < 1
    assert np.isnan(clustered_share([1, 0], ["a", "a"])[1:]).all()


@pytest.mark.parametrize("counts", [(12, 2, 50), (30, 0, 66), (3, 5, 6 + 3), (6, 0, 6), (0, 0, 6)])
def test_interval_of_mcnemar_against_draws(counts):
    """Fay and Lumbard 2021, as they define it: quantiles of T (2 B - 1), the outer of two."""
    gained, lost, n = counts
    m, rng = gained + lost, np.random.default_rng(7)

    def beta(a, b):
        return np.full(400_000, float(a > 0)) if 0 in (a, b) else rng.beta(a, b, 400_000)

    shares = beta(m, n - m + 1), beta(m + 1, n - m)
    low = min(np.quantile(t * (2 * beta(gained, lost + 1) - 1), 0.025) for t in shares)
    high = max(np.quantile(t * (2 * beta(gained + 1, lost) - 1), 0.975) for t in shares)
    found = mcnemar(gained, lost, n)
    np.testing.assert_allclose(found[:2], [low, high], atol=0.003)
    assert found[2] == pytest.approx(stats.binomtest(gained, m).pvalue if m else 1)


def test_interval_of_mcnemar_agrees_with_its_test():
    """Over all tables of 1 to 12 pairs; the mirrored table has the mirrored interval."""
    for n in range(1, 13):
        for gained in range(n + 1):
            for lost in range(n + 1 - gained):
                low, high, p = mcnemar(gained, lost, n)
                assert (low > 0 or high < 0) == (p < 0.05), (gained, lost, n)
                assert -1 <= low <= (gained - lost) / n <= high <= 1
                assert mcnemar(lost, gained, n) == (-high, -low, p)


@pytest.mark.parametrize(("gain", "loss"), [(0.1, 0.02), (0.3, 0.1), (0.45, 0.0), (0.05, 0.05)])
def test_interval_of_mcnemar_holds_the_change(gain, loss):
    """The exact coverage, every table of 12 pairs with its probability: at least 0.95."""
    held, n = 0.0, 12
    for gained in range(n + 1):
        for lost in range(n + 1 - gained):
            low, high, _ = mcnemar(gained, lost, n)
            cells = [gained, lost, n - gained - lost]
            chance = stats.multinomial.pmf(cells, n, [gain, loss, 1 - gain - loss])
            held += chance * (low <= gain - loss <= high)
    assert 0.95 <= held <= 1.0 + 1e-9
