"""Standardised effects and agreement: hand-worked, against SciPy, and coverage."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ingroup.stats import effects as standardised


def test_an_effect_is_the_mean_over_the_sd():
    items = pd.DataFrame({"a": [1.0, 2, 3, 6], "b": [np.nan, 4, np.nan, np.nan], "c": np.nan})
    found = standardised.measure(items, 2.0, np.random.default_rng(0), 400, together=False)
    assert found.effects.effect.tolist()[:2] == [1.5, 2.0]
    assert found.effects["items"].tolist() == [4, 1, 0]
    assert found.effects.loc["a", "low"] < 1.5 < found.effects.loc["a", "high"]
    assert np.isnan(found.effects.loc[["b", "c"], ["low", "high"]].to_numpy()).all()
    assert found.draws.b.eq(2.0).all()
    assert found.draws.c.isna().all()
    with pytest.raises(ValueError, match="sd is nan"):
        standardised.measure(items, np.nan, np.random.default_rng(0))
    with pytest.raises(ValueError, match="confidence is 1"):
        standardised.measure(items, 1.0, np.random.default_rng(0), confidence=1)


def test_all_answers_the_same_have_no_effect():
    found = standardised.measure(pd.DataFrame({"a": [0.0, 0]}), 0.0, np.random.default_rng(0), 10)
    assert found.effects.loc["a"].tolist() == [0, 0, 0, 2]


def test_draws_take_the_same_items_for_all_groups():
    x = np.random.default_rng(1).normal(size=30)
    items = pd.DataFrame({"a": x, "b": 2 * x + 1, "c": np.where(x > 0, x, np.nan)})
    draws = standardised.measure(items, 1.0, np.random.default_rng(0), 450).draws
    np.testing.assert_allclose(draws.b, 2 * draws.a + 1)
    picks = np.random.default_rng(0).integers(30, size=(200, 30))
    np.testing.assert_allclose(draws.a[:200], x[picks].mean(axis=1))
    np.testing.assert_allclose(draws.c[:200], np.nanmean(items.c.to_numpy()[picks], axis=1))


def test_the_interval_of_many_items_is_scipys():
    x = np.random.default_rng(2).exponential(size=400)
    found = standardised.measure(pd.DataFrame({"a": x}), 1.0, np.random.default_rng(0), 5000)
    wanted = stats.bootstrap(
        (x,), np.mean, n_resamples=5000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    np.testing.assert_allclose(found.effects.loc["a", ["low", "high"]], wanted, rtol=0.01)


def test_the_interval_of_few_items_covers():
    """Five items: the plain percentile interval holds the mean in 0.83 of the cases."""
    rng = np.random.default_rng(3)
    items = pd.DataFrame(rng.normal(size=(5, 1500)))
    found = standardised.measure(items, 1.0, rng, 1000)
    low, high = np.quantile(found.draws, [0.025, 0.975], axis=0)
    plain = ((low <= 0) & (high >= 0)).mean()
    held = ((found.effects.low <= 0) & (found.effects.high >= 0)).mean()
    assert 0.78 < plain < 0.87
    assert 0.9 < held < 0.97


def test_agreement_by_scipy():
    rng = np.random.default_rng(4)
    effects = pd.DataFrame(rng.normal(size=(9, 3)), columns=["x", "y", "z"])
    effects["y"] += effects.x
    effects.loc[:3, "z"] = np.nan
    draws = {
        name: pd.DataFrame(effects[name].to_numpy() + 0.3 * rng.normal(size=(300, 9)))
        for name in effects
    }
    table = standardised.agreement(effects, draws, np.random.default_rng(0), 5039)
    assert table[["one", "other", "n"]].to_numpy().tolist() == [
        ["x", "y", 9], ["x", "z", 5], ["y", "z", 5],
    ]  # fmt: skip
    for row in table.itertuples():
        both = effects[[row.one, row.other]].dropna()
        assert row.rho == pytest.approx(stats.spearmanr(*both.to_numpy().T).statistic)
        rhos = [
            stats.spearmanr(draws[row.one].loc[k, both.index], draws[row.other].loc[k, both.index])
            for k in range(300)
        ]
        wanted = np.quantile([r.statistic for r in rhos], [0.025, 0.975])
        np.testing.assert_allclose([row.low, row.high], wanted)
    smallest = table.p.min()
    assert table.p_holm.min() == pytest.approx(min(1, 3 * smallest))


def test_agreement_of_four_groups_by_hand():
    """The same order: 1 of 24 orders agrees as much, and 1 is its reverse."""
    effects = pd.DataFrame({"x": [1.0, 2, 3, 4], "y": [2.0, 3, 5, 9], "z": [7.0, 7, 7, 7]})
    effects.loc[4] = [5.0, np.nan, 7.0]
    draws = {name: pd.DataFrame(np.tile(effects[name], (3, 1))) for name in effects}
    table = standardised.agreement(effects, draws, np.random.default_rng(0)).set_index(
        ["one", "other"]
    )
    assert table.loc[("x", "y")].tolist() == [
        4,
        1,
        1,
        1,
        pytest.approx(2 / 24),
        pytest.approx(2 / 24),
    ]
    assert table.loc[("x", "z")].isna().tolist() == [False, *[True] * 5]
    nothing = standardised.agreement(effects[["x", "z"]], draws, np.random.default_rng(0))
    assert nothing.p_holm.isna().all()


@settings(max_examples=10, deadline=None)
@given(st.permutations(range(6)), st.floats(0.1, 10))
def test_agreement_knows_only_ranks(order, power):
    x, y = np.arange(1.0, 7), np.array(order, dtype=float)
    effects = pd.DataFrame({"x": x, "y": y})
    bent = effects.assign(x=x**power)
    draws = {"x": effects[["x"]].T, "y": effects[["y"]].T}
    one, other = (
        standardised.agreement(table, draws, np.random.default_rng(0), 50)
        for table in (effects, bent)
    )
    pd.testing.assert_frame_equal(one, other)
    assert one.rho[0] == pytest.approx(stats.spearmanr(x, y).statistic)


def test_relative_to_the_others():
    table = pd.DataFrame([[1.0, 2, 6], [4, np.nan, 6], [3, np.nan, np.nan]], columns=list("abc"))
    wanted = [[-3, -1.5, 4.5], [-2, np.nan, 2], [np.nan, np.nan, np.nan]]
    np.testing.assert_allclose(standardised.relative(table), wanted)
