"""Paired tests against SciPy and by hand, Wilson's interval."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from ingroup.stats.paired import (
    cell_pvalues,
    cells_to_show,
    clustered_share,
    mcnemar,
    nan_mean,
    paired_test,
    sign_test,
)

NAN = np.nan


def some_ratings(n=4, events=30, seed=0, missing=0.0):
    """Ratings from 0 to 100 with an event effect, so that pairing matters."""
    rng = np.random.default_rng(seed)
    of_events = 15 * rng.standard_normal(events)
    noise = 8 * rng.standard_normal((n, n, events))
    of_cells = 5 * rng.standard_normal((n, n, 1))
    ratings = np.round(50 + of_events + noise + of_cells, 1)

    is_missing = rng.random(ratings.shape) < missing
    ratings[is_missing] = NAN
    return ratings


# --- pairs


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_pairs_against_scipy(missing):
    one, other = some_ratings(missing=missing)[:2]

    found = paired_test(one, other)

    for row in range(4):
        theirs = stats.ttest_rel(one[row], other[row], nan_policy="omit")
        low, high = theirs.confidence_interval(0.95)
        d = one[row] - other[row]
        mean = np.nanmean(d)
        sd = np.nanstd(d, ddof=1)
        assert found.statistic[row] == pytest.approx(theirs.statistic, rel=1e-9)
        assert found.pvalue[row] == pytest.approx(theirs.pvalue, rel=1e-9)
        assert found.difference[row] == pytest.approx(mean, rel=1e-9)
        assert found.low[row] == pytest.approx(low, rel=1e-9)
        assert found.high[row] == pytest.approx(high, rel=1e-9)
        assert found.effect_size[row] == pytest.approx(mean / sd, rel=1e-9)
        assert found.n[row] == theirs.df + 1
        assert found.least[row] == 0


@pytest.mark.filterwarnings("error")
def test_pairs_by_hand():
    """Differences 1, 2, 3, 6: mean 3, sd sqrt(14/3) = 2.1602, t = 3 / (2.1602 / 2) = 2.7775.

    For 3 degrees of freedom t(0.975) = 3.1824.
    """
    found = paired_test([11, 22, 33, 46], [10, 20, 30, 40])

    reach = 3.1824 * 2.1602 / 2
    assert found.difference == 3
    assert found.n == 4
    assert found.statistic == pytest.approx(2.7775, abs=1e-4)
    assert found.effect_size == pytest.approx(3 / 2.1602, abs=1e-4)
    assert found.low == pytest.approx(3 - reach, abs=1e-3)
    assert found.high == pytest.approx(3 + reach, abs=1e-3)


THIRDS = np.arange(20) / 3  # which differ by rounding errors from what they are


@pytest.mark.filterwarnings("error")
def test_pairs_that_are_the_same_have_no_difference():
    same = paired_test(THIRDS + 0.1 - 0.1, THIRDS)

    assert list(same) == [0, 1, 0, 0, 0, 0, 20, 0.5**19]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("difference", [0.1, -0.1, 1e-8])
def test_pairs_that_all_differ_alike_have_the_sign_tests_p(difference):
    found = paired_test(THIRDS + difference, THIRDS)

    assert found.statistic == np.sign(difference) * np.inf
    assert found.pvalue == pytest.approx(0.5**19)
    assert found.difference == pytest.approx(difference)
    assert found.low == found.difference
    assert found.high == found.difference
    assert np.isnan(found.effect_size)
    assert found.n == 20
    assert found.least == 0.5**19


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("few", [[3.0], [3.0, NAN], []])
def test_fewer_than_two_pairs_have_no_test(few):
    found = paired_test(few)

    assert found.n == len(few[:1])
    untold = [found.statistic, found.pvalue, found.low, found.effect_size, found.least]
    assert np.isnan(untold).all()


def test_two_pairs_have_a_test():
    """Differences 1 and 3: t is 2 of an error of 1, and p = 1 - 2 arctan(2) / pi (Cauchy)."""
    found = paired_test([1.0, 3.0])

    assert found.statistic == pytest.approx(2)
    assert found.pvalue == pytest.approx(1 - 2 * np.arctan(2) / np.pi)
    assert found.least == 0


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_signs_against_scipy(missing):
    """Of whole numbers, which tie now and then."""
    one, other = np.round(some_ratings(missing=missing)[:2] / 10)

    found = sign_test(one, other)

    for row in range(4):
        d = one[row] - other[row]
        up = np.count_nonzero(d > 0)
        n = np.count_nonzero(np.abs(d) > 0)
        theirs = stats.binomtest(up, n)
        assert found[row] == pytest.approx(theirs.pvalue)


def test_signs_by_hand():
    assert sign_test([2, 2, 2]) == 0.25
    assert sign_test([-2, -2, -2]) == 0.25
    assert sign_test([0, NAN]) == 1
    assert sign_test([5e-10, -5e-10, 2, 2, 2]) == 0.25  # rounding errors are ties
    assert sign_test([2e-9, -2e-9, 2, 2, 2]) == 2 * (1 + 5) / 32


def test_small_differences_of_large_ratings():
    """Around a million, with differences of a thousandth: sums of squares would lose them."""
    rng = np.random.default_rng(1)
    levels = 1e6 + 100 * rng.standard_normal(50)
    one, other = levels + 1e-3 * rng.standard_normal((2, 50))

    found = paired_test(one, other)

    theirs = stats.ttest_rel(one, other)
    assert found.statistic == pytest.approx(theirs.statistic)
    assert found.pvalue == pytest.approx(theirs.pvalue)


@pytest.mark.filterwarnings("error")
def test_a_mean_of_nothing_is_nan():
    values = [[1, NAN, NAN], [2, 5, NAN]]

    np.testing.assert_array_equal(nan_mean(values), [1.5, 5, NAN])
    np.testing.assert_array_equal(nan_mean(values, axis=1), [1, 3.5])


# --- findings


# --- cells


def worse_by_scipy(ratings):
    """The definition: the larger p of the two tests of each cell, NaN on the diagonal."""
    n = len(ratings)
    worse = np.full((n, n), NAN)
    for row, column in np.ndindex(n, n):
        if row == column:
            continue
        cell = ratings[row, column]
        by_row = stats.ttest_rel(cell, ratings[row, row], nan_policy="omit")
        by_column = stats.ttest_rel(cell, ratings[column, column], nan_policy="omit")
        worse[row, column] = max(by_row.pvalue, by_column.pvalue)
    return worse


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_every_cell_against_scipy(missing):
    ratings = some_ratings(missing=missing)
    before = ratings.copy()

    found = cell_pvalues(ratings)

    np.testing.assert_allclose(found, worse_by_scipy(ratings), rtol=1e-9)
    np.testing.assert_array_equal(ratings, before)


def test_cells_by_signs_are_never_surer_than_their_number_of_events_allows():
    """Seven whole numbers that are all one higher: 0 by t, and 2 / 2^7 by signs."""
    numbers = np.arange(7.0)
    ratings = np.tile(numbers, (3, 3, 1))
    ratings[1, 2] += 1

    by_t = cell_pvalues(ratings)
    by_sign = cell_pvalues(ratings, "sign")

    assert by_t[1, 2] == 0
    assert by_t[2, 1] == 1
    assert by_sign[1, 2] == 2 / 2**7
    assert by_sign[2, 1] == 1


def test_cells_by_signs_have_the_larger_p_of_both():
    ratings = some_ratings()

    found = cell_pvalues(ratings, "sign")

    cell = ratings[2, 3]
    perceiver = sign_test(cell, ratings[2, 2])
    experiencer = sign_test(cell, ratings[3, 3])
    assert found[2, 3] == max(perceiver, experiencer)


def test_two_events_are_a_test():
    ratings = some_ratings(events=2)

    found = cell_pvalues(ratings)

    np.testing.assert_allclose(found, worse_by_scipy(ratings), rtol=1e-9)


def without(*places):
    ratings = some_ratings()
    for place in places:
        ratings[place] = NAN
    return ratings


@pytest.mark.parametrize(
    ("ratings", "message"),
    [
        (some_ratings(events=1), "row 0, column 0 .* share 1 events"),
        (np.full((3, 3, 9), NAN), "share 0 events"),
        (without(np.s_[2, 3, 1:]), "row 2, column 3 and its perceiver .* 1 events"),
        (without(np.s_[3, 3, 1:]), "row 3, column 0 and its perceiver"),
        # Cells (0, 3) and (3, 3) have the two halves of the events.
        (without(np.s_[3, 3, :15], np.s_[0, 3, 15:]), "row 0, column 3 and its exp.* 0 events"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_what_cannot_be_paired_is_refused(ratings, message):
    with pytest.raises(ValueError, match=message):
        cell_pvalues(ratings)


@pytest.mark.parametrize("seed", range(4))
def test_mask_as_released(seed):
    """As released: both p < 0.05 / (N + 1)**2; the unspecified identity (0) is shown."""
    ratings = some_ratings(n=8, events=120, seed=seed)
    expected = ~(worse_by_scipy(ratings) >= 0.05 / 8**2)
    expected[0, :] = True
    expected[:, 0] = True
    assert 8 < np.count_nonzero(~expected) < 40
    pvalues = cell_pvalues(ratings)
    before = pvalues.copy()

    mask = cells_to_show(pvalues, "released")

    np.testing.assert_array_equal(mask, expected)
    np.testing.assert_array_equal(pvalues, before)


def test_mask_counts_the_cells_that_were_tested():
    """Of eight identities one is unspecified: 7 x 6 cells."""
    worse = cell_pvalues(some_ratings(n=8, events=120, seed=8))
    expected = np.ones((8, 8), dtype=bool)
    expected[1:, 1:] = ~(worse[1:, 1:] * 42 >= 0.05)

    bonferroni = cells_to_show(worse)
    released = cells_to_show(worse, "released")
    holm = cells_to_show(worse, "holm")

    np.testing.assert_array_equal(bonferroni, expected)
    assert (released <= expected).all()
    assert (expected <= holm).all()
    assert np.count_nonzero(released) == 37
    assert np.count_nonzero(expected) == 38
    assert np.count_nonzero(holm) == 41
    assert np.diag(released).all()


def test_a_p_at_the_level_masks_its_cell():
    pvalues = np.full((3, 3), NAN)
    pvalues[1, 2] = 0.05
    pvalues[2, 1] = 0.0499

    mask = cells_to_show(pvalues, "none")

    assert not mask[1, 2]
    assert mask[2, 1]


# --- corrections


# --- shares in clusters

HITS = np.array([1, 0, 0, 1, 0])
NAMES = np.array([*"abcde"])


def wilson(share, n, z):
    """Wilson's interval, written out."""
    squared = z**2
    middle = share + squared / (2 * n)
    half = np.sqrt(squared * (share * (1 - share) / n + squared / (4 * n * n)))
    whole = 1 + squared / n
    return (middle - half) / whole, (middle + half) / whole


def test_a_share_of_lone_answers_is_wilsons_of_one_less_with_students_t():
    share, low, high = clustered_share(HITS, NAMES)

    t = stats.t.isf(0.025, 4)
    assert share == pytest.approx(0.4)
    assert (low, high) == pytest.approx(wilson(0.4, 4, t))


def test_repeated_answers_tell_nothing_new():
    once = clustered_share(HITS, NAMES)

    repeated = clustered_share(np.repeat(HITS, 9), np.repeat(NAMES, 9))

    assert repeated == pytest.approx(once)


def test_answers_that_differ_within_clusters_count_as_independent_at_most():
    """Each of three clusters has one hit of two, so that the clusters do not vary at all."""
    share, low, high = clustered_share([1, 0, 0, 1, 1, 0], [*"aabbcc"])

    t = stats.t.isf(0.025, 2)
    assert share == pytest.approx(0.5)
    assert (low, high) == pytest.approx(wilson(0.5, 6, t))


@pytest.mark.parametrize("clusters", ["aabb", "aabbccdddd"])
def test_a_share_of_no_hits_counts_the_clusters(clusters):
    labels = [*clusters]
    count = len(set(clusters))

    share, low, high = clustered_share(np.zeros(len(labels)), labels)

    t = stats.t.isf(0.025, count - 1)
    expected = proportion_confint(0, count, 2 * stats.norm.sf(t), method="wilson")
    assert share == 0
    assert (low, high) == pytest.approx(expected, abs=1e-12)
    assert high == pytest.approx(t**2 / (count + t**2))


@pytest.mark.parametrize(("hits", "expected"), [([1, 0], 0.5), ([], NAN)])
@pytest.mark.filterwarnings("error")
def test_a_share_of_one_cluster_or_none_has_no_interval(hits, expected):
    share, low, high = clustered_share(hits, ["a"] * len(hits))

    assert share == pytest.approx(expected, nan_ok=True)
    assert np.isnan([low, high]).all()


# --- McNemar


def mcnemar_by_draws(gained, lost, n):
    """Fay and Lumbard 2021, as they define it: quantiles of T (2 B - 1), the outer of two."""
    rng = np.random.default_rng(7)

    def beta(a, b):
        if 0 in (a, b):
            return np.full(400_000, float(a > 0))
        return rng.beta(a, b, 400_000)

    m = gained + lost
    lows = []
    highs = []
    for shares in (beta(m, n - m + 1), beta(m + 1, n - m)):
        below = shares * (2 * beta(gained, lost + 1) - 1)
        above = shares * (2 * beta(gained + 1, lost) - 1)
        lows.append(np.quantile(below, 0.025))
        highs.append(np.quantile(above, 0.975))
    return min(lows), max(highs)


@pytest.mark.parametrize(
    "counts",
    [
        (12, 2, 50),
        (30, 0, 66),
        (3, 5, 9),
        (6, 0, 6),
        (0, 0, 6),
        (5, 2, 20),
        (0, 3, 10),
        (1, 0, 1),
        (3, 2, 5),
    ],
)
def test_interval_of_mcnemar_against_draws(counts):
    gained, lost, _ = counts
    changed = gained + lost

    low, high, p = mcnemar(*counts)

    assert (low, high) == pytest.approx(mcnemar_by_draws(*counts), abs=0.004)
    expected = stats.binomtest(gained, changed).pvalue if changed else 1
    assert p == pytest.approx(expected)


def tables(n):
    """How many pairs changed to either side, of n."""
    for gained in range(n + 1):
        for lost in range(n + 1 - gained):
            yield gained, lost


def test_interval_of_mcnemar_agrees_with_its_test():
    """Over all tables of 1 to 12 pairs; the mirrored table has the mirrored interval."""
    for n in range(1, 13):
        for gained, lost in tables(n):
            low, high, p = mcnemar(gained, lost, n)

            change = (gained - lost) / n
            excludes_zero = low > 0 or high < 0
            assert excludes_zero == (p < 0.05), (gained, lost, n)
            assert -1 <= low <= change <= high <= 1
            assert mcnemar(lost, gained, n) == (-high, -low, p)


@pytest.mark.parametrize(("gain", "loss"), [(0.1, 0.02), (0.3, 0.1), (0.45, 0.0), (0.05, 0.05)])
def test_interval_of_mcnemar_holds_the_change(gain, loss):
    """The exact coverage, every table of 12 pairs with its probability: at least 0.95."""
    n = 12
    shares = [gain, loss, 1 - gain - loss]

    held = 0.0
    for gained, lost in tables(n):
        low, high, _ = mcnemar(gained, lost, n)
        cells = [gained, lost, n - gained - lost]
        if low <= gain - loss <= high:
            held += stats.multinomial.pmf(cells, n, shares)

    assert 0.95 <= held <= 1.0 + 1e-9
