"""Standardised effects, the interval of the empathy gap, agreement: by hand, SciPy, coverage."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ingroup.stats import effects as standardised
from ingroup.stats.effects import bootstrap_interval

EYE = np.eye(4, dtype=bool)


def seeded(seed=0):
    return np.random.default_rng(seed)


def test_an_effect_is_the_mean_over_the_sd():
    items = pd.DataFrame({"a": [1.0, 2, 3, 6], "b": [np.nan, 4, np.nan, np.nan], "c": np.nan})
    found = standardised.measure(items, 2.0, seeded(), 400, together=False)
    assert found.effects.effect.tolist()[:2] == [1.5, 2.0]
    assert found.effects["items"].tolist() == [4, 1, 0]
    assert found.effects.loc["a", "low"] < 1.5 < found.effects.loc["a", "high"]
    assert np.isnan(found.effects.loc[["b", "c"], ["low", "high"]].to_numpy()).all()
    assert found.draws.b.eq(2.0).all()
    assert found.draws.c.isna().all()
    with pytest.raises(ValueError, match="sd is nan"):
        standardised.measure(items, np.nan, seeded())
    same = standardised.measure(pd.DataFrame({"a": [0.0, 0]}), 0.0, seeded(), 10)
    assert same.effects.loc["a"].tolist() == [0, 0, 0, 2]  # all answers were


def test_draws_take_the_same_items_for_all_groups():
    x = seeded(1).normal(size=30)
    items = pd.DataFrame({"a": x, "b": 2 * x + 1, "c": np.where(x > 0, x, np.nan)})
    draws = standardised.measure(items, 1.0, seeded(), 450).draws
    np.testing.assert_allclose(draws.b, 2 * draws.a + 1)
    picks = seeded().integers(30, size=(200, 30))
    np.testing.assert_allclose(draws.a[:200], x[picks].mean(axis=1))
    np.testing.assert_allclose(draws.c[:200], np.nanmean(items.c.to_numpy()[picks], axis=1))


def test_the_interval_of_many_items_is_scipys():
    x = seeded(2).exponential(size=400)
    found = standardised.measure(pd.DataFrame({"a": x}), 1.0, seeded(), 5000)
    wanted = stats.bootstrap((x,), np.mean, n_resamples=5000, method="percentile", rng=seeded(1))
    ends = found.effects.loc["a", ["low", "high"]]
    np.testing.assert_allclose(ends, wanted.confidence_interval, rtol=0.01)


def test_the_interval_of_few_items_covers():
    """Five items: the plain percentile interval holds the mean in 0.83 of the cases."""
    rng = seeded(3)
    found = standardised.measure(pd.DataFrame(rng.normal(size=(5, 800))), 1.0, rng, 1000)
    low, high = np.quantile(found.draws, [0.025, 0.975], axis=0)
    plain = ((low <= 0) & (high >= 0)).mean()
    held = ((found.effects.low <= 0) & (found.effects.high >= 0)).mean()
    assert 0.78 < plain < 0.87
    assert 0.9 < held < 0.97


def test_relative_to_the_others():
    table = pd.DataFrame([[1.0, 2, 6], [4, np.nan, 6], [3, np.nan, np.nan]], columns=list("abc"))
    wanted = [[-3, -1.5, 4.5], [-2, np.nan, 2], [np.nan, np.nan, np.nan]]
    np.testing.assert_allclose(standardised.relative(table), wanted)


# --- agreement


def test_agreement_by_scipy():
    rng = seeded(4)
    effects = pd.DataFrame(rng.normal(size=(9, 3)), columns=["x", "y", "z"])
    effects["y"] += effects.x
    effects.loc[:3, "z"] = np.nan
    draws = {
        name: pd.DataFrame(effects[name].to_numpy() + 0.3 * rng.normal(size=(100, 9)))
        for name in effects
    }
    table = standardised.agreement(effects, draws, 0, 5039)
    assert table[["one", "other", "n"]].to_numpy().tolist() == [
        ["x", "y", 9], ["x", "z", 5], ["y", "z", 5],
    ]  # fmt: skip
    for row in table.itertuples():
        both = effects[[row.one, row.other]].dropna()
        assert row.rho == pytest.approx(stats.spearmanr(*both.to_numpy().T).statistic)
        pairs = (draws[name][both.index].to_numpy() for name in (row.one, row.other))
        rhos = [stats.spearmanr(*pair).statistic for pair in zip(*pairs, strict=True)]
        np.testing.assert_allclose([row.low, row.high], np.quantile(rhos, [0.025, 0.975]))
    assert table.p_holm.min() == pytest.approx(min(1, 3 * table.p.min()))


def test_agreement_of_four_groups_by_hand():
    """The same order: 1 of 24 orders agrees as much, and 1 is its reverse."""
    effects = pd.DataFrame({"x": [1.0, 2, 3, 4], "y": [2.0, 3, 5, 9], "z": [7.0, 7, 7, 7]})
    effects.loc[4] = [5.0, np.nan, 7.0]
    draws = {name: pd.DataFrame(np.tile(effects[name], (3, 1))) for name in effects}
    table = standardised.agreement(effects, draws, 0).set_index(["one", "other"])
    assert table.loc[("x", "y")].tolist() == [4, 1, 1, 1, *[pytest.approx(2 / 24)] * 2]
    assert table.loc[("x", "z")].isna().tolist() == [False, *[True] * 5]
    nothing = standardised.agreement(effects[["x", "z"]], draws, 0)
    assert nothing.p_holm.isna().all()


def test_a_pair_that_lacks_a_number_is_left_out_of_spearmans():
    x = [1.0, 2, 3, 4, np.nan, 5]
    y = [1.0, 2, 4, 3, 7, np.nan]
    assert standardised.spearman(x, y, 0) == standardised.spearman(x[:4], y[:4], 0)
    assert standardised.spearman(x, y, 0)[1] == pytest.approx(8 / 24)
    assert np.isnan(standardised.spearman([np.nan] * 6, range(6), 0)).all()


def test_the_p_of_two_measures_does_not_depend_on_which_others_there_are():
    effects = pd.DataFrame(seeded(4).normal(size=(12, 4)), columns=list("wxyz"))
    draws = {name: effects[[name]].T.reset_index(drop=True) for name in effects}
    whole = standardised.agreement(effects, draws, 0, 99)
    alone = standardised.agreement(effects[["y", "z"]], draws, 0, 99)
    assert alone.p[0] == whole.p.iloc[-1]


def test_p_of_draws_is_below_a_twentieth_where_the_interval_ends_beyond_0():
    draws = seeded().normal(size=4000)
    for n in (7, 12, 60):
        low, high = np.quantile(draws, standardised.expanded(n))
        for end, side in ((low, -1), (high, 1)):
            inside, outside = (draws - end - side * step for step in (-0.1, 0.1))
            assert standardised.bootstrap_pvalue(inside, n) > 0.05
            assert standardised.bootstrap_pvalue(outside, n) < 0.05
    assert standardised.bootstrap_pvalue(np.array([-1.0, 1.0]), 2) == 1


def test_as_planted_is_inside_the_interval_ends_included():
    planted, low, high = [1, 2, 2.01, np.nan, 0, 0], [1, 1, 1, 0, 0, np.nan], [2, 2, 2, 1, 0, 1]
    found = standardised.as_planted(planted, low, high)
    assert found.tolist() == ["as planted"] * 2 + ["not as planted", "", "as planted", ""]


# --- the interval of the empathy gap


def some_ratings(n=4, events=25, missing=0.0):
    rng = seeded()
    ratings = 50 + 15 * rng.standard_normal(events) + 6 * rng.standard_normal((n, n, events))
    ratings += 10 * rng.standard_normal((n, n, 1)) + 10 * np.eye(n)[:, :, None]
    ratings[rng.random(ratings.shape) < missing] = np.nan
    return ratings


def gap_and_spread(ratings, same, events):
    """The definition for one draw of events."""
    means = np.array([[np.nanmean(cell[events]) for cell in row] for row in ratings])
    return means[same].mean() - means[~same].mean(), means.std()


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_a_gap_against_the_definition(missing):
    ratings = some_ratings(missing=missing)
    result = bootstrap_interval(ratings, EYE, 150, seeded(1))
    gap, spread = gap_and_spread(ratings, EYE, np.arange(25))
    assert result.statistic == pytest.approx(gap / spread)
    # The z-scored matrix of the paper has the same gap.
    z = stats.zscore(np.nanmean(ratings, axis=2), axis=None)
    assert result.statistic == pytest.approx(z[EYE].mean() - z[~EYE].mean())
    picks = seeded(1).integers(25, size=(150, 25))
    gaps, spreads = np.array([gap_and_spread(ratings, EYE, events) for events in picks]).T
    draws = gaps / spreads * spreads.mean() / spread
    np.testing.assert_allclose(result.draws, draws, rtol=1e-10)
    # Of 25 events those of the expanded interval, computed here with a table's t for 24 degrees.
    ends = np.quantile(draws, stats.norm.cdf(np.multiply([-2.06390, 2.06390], np.sqrt(25 / 24))))
    np.testing.assert_allclose([result.low, result.high], ends, rtol=1e-6)


def test_a_draw_without_any_difference_has_no_gap():
    """One cell differs in one event of six: a third of the draws miss it, and their delta is 0."""
    ratings = np.full((5, 5, 6), 60.0)
    ratings[1, 2, 3] += 1
    result = bootstrap_interval(ratings, EYE, 2000, seeded(1))
    assert np.mean(result.draws == 0) == pytest.approx((5 / 6) ** 6, abs=0.03)
    assert result.low == pytest.approx(result.statistic, rel=0.05)
    assert result.high == 0


def test_the_interval_of_a_gap_over_few_events_is_wider_than_its_percentiles():
    result = bootstrap_interval(some_ratings()[:, :, :5], EYE, 400, seeded(1))
    low, high = np.quantile(result.draws, [0.025, 0.975])
    assert result.low < low < result.statistic < high < result.high


@pytest.mark.parametrize(("amplitude", "noise"), [(1, 0.1), (1, 0.5), (0, 1)])
def test_coverage_of_the_gap(amplitude, noise):
    """150 intervals at 0.95 hold 0.89 to 1 of the gaps to be expected from so many events."""
    n, events, rng, held = 10, 40, seeded(2), 0
    same = np.eye(n, dtype=bool)
    for _ in range(150):
        planted = amplitude * (rng.standard_normal((n, n)) + same)
        spread = np.sqrt(planted.var() + noise**2 * (1 - n**-2))
        expected = (planted[same].mean() - planted[~same].mean()) / spread
        ratings = planted[:, :, None] + 3 * rng.standard_normal(events)
        ratings = ratings + noise * np.sqrt(events) * rng.standard_normal((n, n, events))
        result = bootstrap_interval(ratings, same, 300, rng)
        held += result.low <= expected <= result.high
    assert held / 150 > 0.89  # three standard errors


def test_draws_meet_a_cell_without_rating():
    ratings = some_ratings(events=10)
    ratings[1, 2, 1:] = np.nan
    result = bootstrap_interval(ratings, EYE, 1000, seeded(3))
    # A given event is missing from a draw of ten with probability 0.9**10 = 0.349.
    assert 1000 - len(result.draws) == pytest.approx(349, abs=60)
    assert np.isfinite([result.low, result.high, *result.draws]).all()


def test_the_unspecified_identity_counts_in_the_spread_alone():
    ratings = some_ratings(n=5)
    result = bootstrap_interval(ratings, EYE, 50, seeded(1))
    z = stats.zscore(ratings.mean(axis=2), axis=None)[1:, 1:]
    assert result.statistic == pytest.approx(z[EYE].mean() - z[~EYE].mean())
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
