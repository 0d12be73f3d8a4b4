"""Standardised effects, the interval of the empathy gap, agreement: by hand, SciPy, coverage."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ingroup.stats import effects as standardised
from ingroup.stats.effects import bootstrap_interval

EYE = np.eye(4, dtype=bool)
ENDS = [0.025, 0.975]


def seeded(seed=0):
    return np.random.default_rng(seed)


# --- effects of groups


def test_an_effect_is_the_mean_over_the_sd():
    items = pd.DataFrame({"a": [1.0, 2, 3, 6], "b": [np.nan, 4, np.nan, np.nan], "c": np.nan})

    effects, draws = standardised.measure(items, 2.0, seeded(), 400, together=False)

    assert effects.effect.tolist()[:2] == [1.5, 2.0]
    assert effects["items"].tolist() == [4, 1, 0]
    assert effects.loc["a", "low"] < 1.5 < effects.loc["a", "high"]
    assert effects.loc[["b", "c"], ["low", "high"]].isna().all(axis=None)
    assert draws.b.eq(2.0).all()
    assert draws.c.isna().all()


def test_where_all_answers_are_the_same_so_are_the_effects():
    items = pd.DataFrame({"a": [0.0, 0]})

    effects = standardised.measure(items, 0.0, seeded(), 10).effects

    assert effects.loc["a"].tolist() == [0, 0, 0, 2]


@pytest.mark.parametrize("sd", [np.nan, -1.0])
def test_an_sd_that_is_none_is_refused(sd):
    items = pd.DataFrame({"a": [1.0, 2]})

    with pytest.raises(ValueError, match=f"sd is {sd}, expected a number of at least 0"):
        standardised.measure(items, sd, seeded())


def test_a_small_sd_is_a_unit():
    items = pd.DataFrame({"a": [1.0, 2]})

    effects = standardised.measure(items, 0.25, seeded(), 10).effects

    assert effects.effect["a"] == 6


def test_draws_take_the_same_items_for_all_groups():
    x = seeded(1).normal(size=30)
    positive = np.where(x > 0, x, np.nan)
    items = pd.DataFrame({"a": x, "b": 2 * x + 1, "c": positive})

    draws = standardised.measure(items, 1.0, seeded(), 450).draws

    picks = seeded().integers(30, size=(200, 30))
    np.testing.assert_allclose(draws.b, 2 * draws.a + 1)
    np.testing.assert_allclose(draws.a[:200], x[picks].mean(axis=1))
    np.testing.assert_allclose(draws.c[:200], np.nanmean(positive[picks], axis=1))
    assert len(draws) == 450


def test_two_thousand_draws_of_the_same_items_unless_told_otherwise():
    items = pd.DataFrame({"a": [1.0, 2, 4], "b": [2.0, 3, 5]})

    draws = standardised.measure(items, 1.0, seeded()).draws

    assert len(draws) == 2000
    np.testing.assert_allclose(draws.b, draws.a + 1)


def test_apart_each_group_draws_its_own_items():
    """Group b lacks an item, which it never draws: the means of two draws of 2 and 4."""
    items = pd.DataFrame({"a": [1.0, 2, 4], "b": [2.0, np.nan, 4]})

    draws = standardised.measure(items, 1.0, seeded(), 4000, together=False).draws

    assert set(draws.b) == {2, 3, 4}
    assert draws.b.eq(3).mean() == pytest.approx(0.5, abs=0.04)
    assert draws.a.mean() == pytest.approx(7 / 3, abs=0.06)
    assert abs(draws.corr().loc["a", "b"]) < 0.06


def test_two_items_have_an_interval():
    """Its percentiles are almost 0 and 1: the draws of two items of 1, and of two of 3."""
    items = pd.DataFrame({"a": [1.0, 3]})

    effects = standardised.measure(items, 1.0, seeded(), 100).effects

    assert effects.loc["a", ["low", "high"]].tolist() == pytest.approx([1, 3])


def test_the_interval_of_many_items_is_scipys():
    x = seeded(2).exponential(size=400)
    items = pd.DataFrame({"a": x})

    effects = standardised.measure(items, 1.0, seeded(), 5000).effects

    theirs = stats.bootstrap((x,), np.mean, n_resamples=5000, method="percentile", rng=seeded(1))
    ends = effects.loc["a", ["low", "high"]]
    np.testing.assert_allclose(ends, theirs.confidence_interval, rtol=0.01)


def test_the_interval_of_few_items_covers():
    """Five items: the plain percentile interval holds the mean in 0.83 of the cases."""
    rng = seeded(3)
    items = pd.DataFrame(rng.normal(size=(5, 800)))

    effects, draws = standardised.measure(items, 1.0, rng, 1000)

    low, high = np.quantile(draws, ENDS, axis=0)
    plain = (low <= 0) & (high >= 0)
    held = (effects.low <= 0) & (effects.high >= 0)
    assert 0.78 < plain.mean() < 0.87
    assert 0.9 < held.mean() < 0.97


def test_expanded_percentiles_by_hand():
    """Student's t of 4 degrees of freedom has the quantile 2.77645, times sqrt(5 / 4) 3.10417."""
    low, high = standardised.expanded_percentiles(5)

    assert low == pytest.approx(stats.norm.cdf(-3.10417), rel=1e-4)
    assert high == pytest.approx(1 - low, rel=1e-12)


def test_relative_to_the_others():
    nan = np.nan
    table = pd.DataFrame([[1.0, 2, 6], [4, nan, 6], [3, nan, nan]], columns=list("abc"))

    differences = standardised.relative_to_others(table)

    expected = [[-3, -1.5, 4.5], [-2, nan, 2], [nan, nan, nan]]
    np.testing.assert_allclose(differences, expected)


# --- agreement


def test_agreement_by_scipy():
    rng = seeded(4)
    effects = pd.DataFrame(rng.normal(size=(9, 3)), columns=["x", "y", "z"])
    effects["y"] = effects.x + 0.3 * effects.y
    effects.loc[:3, "z"] = np.nan
    draws = {}
    for name, values in effects.items():
        noise = 0.3 * rng.normal(size=(100, 9))
        draws[name] = pd.DataFrame(values.to_numpy() + noise)

    table = standardised.rank_correlations(effects, draws, 0, 5039)

    pairs = table[["one", "other", "n"]].to_numpy().tolist()
    assert pairs == [["x", "y", 9], ["x", "z", 5], ["y", "z", 5]]
    for row in table.itertuples():
        both = effects[[row.one, row.other]].dropna()
        theirs = stats.spearmanr(both[row.one], both[row.other])
        assert row.rho == pytest.approx(theirs.statistic)

        rhos = []
        for draw in range(100):
            one = draws[row.one].loc[draw, both.index]
            other = draws[row.other].loc[draw, both.index]
            rhos.append(stats.spearmanr(one, other).statistic)
        np.testing.assert_allclose([row.low, row.high], np.quantile(rhos, ENDS))
    smallest = 3 * table.p.min()
    assert smallest < 1
    assert table.p_holm.min() == pytest.approx(smallest)


def test_agreement_of_four_groups_by_hand():
    """The same order: 1 of 24 orders agrees as much, and 1 is its reverse."""
    effects = pd.DataFrame({"x": [1.0, 2, 3, 4], "y": [2.0, 3, 5, 9], "z": [7.0, 7, 7, 7]})
    effects.loc[4] = [5.0, np.nan, 7.0]
    draws = {name: pd.DataFrame(np.tile(effects[name], (3, 1))) for name in effects}

    table = standardised.rank_correlations(effects, draws, 0).set_index(["one", "other"])
    nothing = standardised.rank_correlations(effects[["x", "z"]], draws, 0)

    p = pytest.approx(2 / 24)
    assert table.loc[("x", "y")].tolist() == [4, 1, 1, 1, p, p]
    assert table.loc[("x", "z")].isna().tolist() == [False, *[True] * 5]
    assert nothing.p_holm.isna().all()


def test_a_draw_without_a_correlation_does_not_count():
    """In one draw of three all groups have the same effect."""
    effects = pd.DataFrame({"x": [1.0, 2, 3, 4], "y": [2.0, 1, 3, 4]})
    same = pd.DataFrame([[1.0, 2, 3, 4], [1.0, 2, 3, 4], [5.0, 5, 5, 5]])
    draws = {"x": same, "y": pd.DataFrame(np.tile([1.0, 2, 4, 3], (3, 1)))}

    table = standardised.rank_correlations(effects, draws, 0)

    assert table.loc[0, ["low", "high"]].tolist() == pytest.approx([0.8, 0.8])


def test_one_measure_agrees_with_none():
    table = standardised.rank_correlations(pd.DataFrame({"x": [1.0, 2]}), {}, 0)

    columns = ["one", "other", "n", "rho", "low", "high", "p", "p_holm"]
    assert table.columns.tolist() == columns
    assert table.empty


def test_a_pair_that_lacks_a_number_is_left_out_of_spearmans():
    x = [1.0, 2, 3, 4, np.nan, 5]
    y = [1.0, 2, 4, 3, 7, np.nan]

    found = standardised.spearman(x, y, 0)

    assert found == standardised.spearman(x[:4], y[:4], 0)
    assert found == pytest.approx((0.8, 8 / 24, 2 / 24))


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([np.nan] * 6, range(6)),
        ([1, 2, 3], [1, 2, 4]),
        ([1, 2, 3, 4], [5, 5, 5, 5]),
        ([5, 5, 5, 5], [1, 2, 3, 4]),
    ],
)
def test_what_has_no_correlation_is_nan(x, y):
    assert np.isnan(standardised.spearman(x, y, 0)).all()


@pytest.mark.parametrize(
    ("pairs", "orders", "least"),
    [
        (5, {}, 2 / 120),
        (5, {"n_permutations": 120}, 2 / 120),
        (5, {"n_permutations": 119}, 2 / 120),
        (5, {"n_permutations": 49}, 2 / 50),
        (8, {}, 2 / 10_000),
    ],
)
def test_the_smallest_p_of_as_many_pairs(pairs, orders, least):
    """The same order on both sides: of all orders this one and its reverse agree as much."""
    x = np.arange(pairs)

    rho, p, smallest = standardised.spearman(x, 2 * x, 0, **orders)

    assert rho == pytest.approx(1)
    assert smallest == pytest.approx(least)
    assert p >= smallest or p == pytest.approx(smallest)


def test_ties_share_their_rank():
    x = [1, 2, 2, 3, 5, 5]
    y = [2, 1, 4, 4, 9, 7]

    rho, _, _ = standardised.spearman(x, y, 0)

    assert rho == pytest.approx(stats.spearmanr(x, y).statistic)


def test_the_p_of_two_measures_does_not_depend_on_which_others_there_are():
    effects = pd.DataFrame(seeded(4).normal(size=(12, 4)), columns=list("wxyz"))
    draws = {name: effects[[name]].T.reset_index(drop=True) for name in effects}

    whole = standardised.rank_correlations(effects, draws, 0, 99)
    alone = standardised.rank_correlations(effects[["y", "z"]], draws, 0, 99)

    assert alone.p[0] == whole.p.iloc[-1]


def test_agreement_takes_9999_orders_unless_told_otherwise():
    effects = pd.DataFrame({"x": np.arange(9.0), "y": np.arange(9.0)})
    draws = {name: effects[[name]].T for name in effects}

    table = standardised.rank_correlations(effects, draws, 0)

    assert table.p[0] == pytest.approx(2 / 10_000)


# --- p of draws


@pytest.mark.parametrize("n", [7, 12, 60])
def test_p_of_draws_is_below_a_twentieth_where_the_interval_ends_beyond_0(n):
    draws = seeded().normal(size=4000)
    low, high = np.quantile(draws, standardised.expanded_percentiles(n))

    p_low_inside = standardised.bootstrap_pvalue(draws - low - 0.1, n)
    p_low_outside = standardised.bootstrap_pvalue(draws - low + 0.1, n)
    p_high_inside = standardised.bootstrap_pvalue(draws - high + 0.1, n)
    p_high_outside = standardised.bootstrap_pvalue(draws - high - 0.1, n)

    assert p_low_inside > 0.05
    assert p_low_outside < 0.05
    assert p_high_inside > 0.05
    assert p_high_outside < 0.05


@pytest.mark.parametrize("sign", [1, -1])
def test_p_of_draws_by_the_definition(sign):
    """Three draws below 0 and one at 0, which counts to both sides: 4 of 100, one added."""
    draws = sign * np.array([-1.0] * 3 + [0.0] + [2.0] * 96)

    p = standardised.bootstrap_pvalue(draws, 5)

    quantile = stats.norm.ppf(5 / 101) * np.sqrt(4 / 5)
    assert p == pytest.approx(2 * stats.t.cdf(quantile, 4))


def test_p_of_draws_is_at_most_1():
    draws = np.array([-1.0, 1.0])

    assert standardised.bootstrap_pvalue(draws, 2) == 1


def test_an_interval_covers_the_ground_truth_ends_included():
    cases = {
        (1, 1, 2): "covers the ground truth",
        (2, 1, 2): "covers the ground truth",
        (2.01, 1, 2): "misses the ground truth",
        (0.99, 1, 2): "misses the ground truth",
        (np.nan, 0, 1): "",
        (0, np.nan, 1): "",
        (0, 0, np.nan): "",
    }
    ground_truth, low, high = np.transpose(list(cases))

    found = standardised.coverage_text(ground_truth, low, high)

    assert found.tolist() == list(cases.values())


# --- the interval of the empathy gap


def some_ratings(n=4, events=25, missing=0.0):
    rng = seeded()
    of_events = 15 * rng.standard_normal(events)
    noise = 6 * rng.standard_normal((n, n, events))
    of_cells = 10 * rng.standard_normal((n, n, 1))
    own = 10 * np.eye(n)[:, :, None]
    ratings = 50 + of_events + noise + of_cells + own

    is_missing = rng.random(ratings.shape) < missing
    ratings[is_missing] = np.nan
    return ratings


def gap_and_spread(ratings, same, events):
    """The definition for one draw of events."""
    means = np.zeros(same.shape)
    for row, column in np.ndindex(same.shape):
        drawn = ratings[row, column, events]
        means[row, column] = np.nanmean(drawn)
    gap = means[same].mean() - means[~same].mean()
    return gap, means.std()


def gap_of_z_scores(means, same):
    """The gap of the paper: that of its z-scored matrix."""
    z = stats.zscore(means, axis=None)
    z = z[-len(same) :, -len(same) :]
    return z[same].mean() - z[~same].mean()


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_a_gap_against_the_definition(missing):
    """The quantile of Student's t for 24 degrees of freedom is a table's, 2.06390."""
    ratings = some_ratings(missing=missing)
    gap, spread = gap_and_spread(ratings, EYE, np.arange(25))
    picks = seeded(1).integers(25, size=(150, 25))
    of_draws = np.array([gap_and_spread(ratings, EYE, events) for events in picks])
    gaps = of_draws[:, 0]
    spreads = of_draws[:, 1]

    result = bootstrap_interval(ratings, EYE, 150, seeded(1))

    assert result.statistic == pytest.approx(gap / spread)
    of_paper = gap_of_z_scores(np.nanmean(ratings, axis=2), EYE)
    assert result.statistic == pytest.approx(of_paper)
    draws = gaps / spreads * spreads.mean() / spread
    np.testing.assert_allclose(result.draws, draws, rtol=1e-10)
    reach = 2.06390 * np.sqrt(25 / 24)
    ends = np.quantile(draws, stats.norm.cdf([-reach, reach]))
    np.testing.assert_allclose([result.low, result.high], ends, rtol=1e-6)


def test_two_thousand_draws_of_events_unless_told_otherwise():
    result = bootstrap_interval(some_ratings(), EYE, rng=0)

    assert len(result.draws) == 2000


def test_a_draw_without_any_difference_has_no_gap():
    """One cell differs in one event of six: a third of the draws miss it, and their delta is 0."""
    ratings = np.full((5, 5, 6), 60.0)
    ratings[1, 2, 3] += 1

    result = bootstrap_interval(ratings, EYE, 2000, seeded(1))

    is_zero = result.draws == 0
    assert is_zero.mean() == pytest.approx((5 / 6) ** 6, abs=0.03)
    assert result.low == pytest.approx(result.statistic, rel=0.05)
    assert result.high == 0


def test_the_smallest_difference_that_rounding_leaves_is_one():
    """A billionth of the scale differs, ten times what a float can hold of a mean."""
    ratings = np.full((4, 4, 6), 60.0)
    ratings[0, 0] += 6e-8

    result = bootstrap_interval(ratings, EYE, 20, seeded(1))

    # The cell's z is 15 / sqrt(15), the others' -1 / sqrt(15).
    assert result.statistic == pytest.approx(4 / np.sqrt(15), rel=1e-5)


def test_the_interval_of_a_gap_over_few_events_is_wider_than_its_percentiles():
    ratings = some_ratings()[:, :, :5]

    result = bootstrap_interval(ratings, EYE, 400, seeded(1))

    low, high = np.quantile(result.draws, ENDS)
    assert result.low < low < result.statistic < high < result.high


def test_two_events_have_an_interval():
    ratings = some_ratings()[:, :, :2]

    result = bootstrap_interval(ratings, EYE, 100, seeded(1))

    assert result.low == pytest.approx(result.draws.min())
    assert result.high == pytest.approx(result.draws.max())


@pytest.mark.parametrize(("amplitude", "noise"), [(1, 0.1), (1, 0.5), (0, 1)])
def test_coverage_of_the_gap(amplitude, noise):
    """150 intervals at 0.95 hold 0.89 to 1 of the gaps to be expected from so many events."""
    n = 10
    events = 40
    rng = seeded(2)
    same = np.eye(n, dtype=bool)

    held = 0
    for _ in range(150):
        ground_truth = amplitude * (rng.standard_normal((n, n)) + same)
        variance = ground_truth.var() + noise**2 * (1 - n**-2)
        gap = ground_truth[same].mean() - ground_truth[~same].mean()
        expected = gap / np.sqrt(variance)
        of_events = 3 * rng.standard_normal(events)
        rest = noise * np.sqrt(events) * rng.standard_normal((n, n, events))
        ratings = ground_truth[:, :, None] + of_events + rest

        result = bootstrap_interval(ratings, same, 300, rng)

        held += result.low <= expected <= result.high
    assert held / 150 > 0.89  # three standard errors


def test_draws_meet_a_cell_without_rating():
    """A given event is missing from a draw of ten with probability 0.9^10 = 0.349."""
    ratings = some_ratings(events=10)
    ratings[1, 2, 1:] = np.nan

    result = bootstrap_interval(ratings, EYE, 1000, seeded(3))

    left_out = 1000 - len(result.draws)
    assert left_out == pytest.approx(349, abs=60)
    assert np.isfinite([result.low, result.high, *result.draws]).all()


def test_the_unspecified_identity_counts_in_the_spread_alone():
    ratings = some_ratings(n=5)

    result = bootstrap_interval(ratings, EYE, 50, seeded(1))

    of_paper = gap_of_z_scores(ratings.mean(axis=2), EYE)
    assert result.statistic == pytest.approx(of_paper)
    assert result.low < result.statistic < result.high


# The same values in another order have equal means, up to the rounding of their sums.
SHUFFLED = seeded(9).permuted(np.tile(seeded(8).random(50) * 100, (16, 1)), axis=1)
LACKING = some_ratings()
LACKING[2, 3] = np.nan
# Each cell in another event: no draw of few is likely to have a rating in all cells.
APART = np.where(np.eye(16, dtype=bool), np.arange(16.0), np.nan)


@pytest.mark.parametrize(
    ("ratings", "message"),
    [
        (some_ratings(events=1), r"shape \(4, 4, 1\), expected at least 2 events"),
        (np.full((4, 4, 9), 0.1), "all cells have the same mean"),
        (SHUFFLED.reshape(4, 4, 50), "all cells have the same mean"),
        (np.full((4, 4, 9), np.nan), "row 0, column 0 has no rating in any of 9 events"),
        (LACKING, "row 2, column 3 has no rating"),
        (APART.reshape(4, 4, 16), "none of 5 draws"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_what_has_no_interval_is_refused(ratings, message):
    with pytest.raises(ValueError, match=message):
        bootstrap_interval(ratings, EYE, 5, seeded(7))
