"""Phrasings and pairs of groups as samples: values, coverage and size."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.regression.mixed_linear_model import MixedLM

from ingroup.stats.crossed import (
    group_means,
    kinds_of_pair,
    over_levels,
    own_group,
    variance_components,
)
from ingroup.stats.intervals import mean_over_items

GROUP_OF_NAME = np.repeat(range(4), [5, 4, 3, 6])
SAME = GROUP_OF_NAME[:, None] == GROUP_OF_NAME
PHRASINGS = {"white": 3, "black": 2, "asian": 2, "native": 2, "pacific": 2}


def draw_category(rng, phrasing_sd, n_items=103):
    """Draw differences from the control where no group differs from it."""
    of_items = rng.normal(0, 2, n_items)
    groups = {}
    for name, count in PHRASINGS.items():
        of_phrasings = rng.normal(0, phrasing_sd, (count, 1))
        groups[name] = of_items + of_phrasings + rng.normal(0, 5, (count, n_items))
    return groups


def test_a_hand_example_of_two_phrasings_and_two_groups():
    # Phrasings have the means 1, 3 and 2, 6: their squares are 2 and 8, so S_phrasing = 10 / 2.
    groups = {"a": [[1, 1, 1], [3, 3, 3]], "b": [[2, 2, 2], [6, 6, 6]]}
    effect = over_levels(groups)["a"]
    t = 2 / np.sqrt(5 / 2)
    assert effect.estimate == 2
    assert effect.statistic == pytest.approx(t)
    assert effect.p == pytest.approx(2 * stats.t.sf(t, 2))
    assert (effect.df, effect.n) == (2, 2)
    assert effect.effect_size == pytest.approx(2 / np.sqrt(5))
    # With four phrasings a group, three items have fewer degrees of freedom.
    twice = {name: rows * 2 for name, rows in groups.items()}
    assert over_levels(twice)["a"].df == 2


def test_one_phrasing_a_group_says_nothing_about_phrasings_like_these():
    """One phrasing a group leaves no variance of phrasings: nothing can be told."""
    effects = over_levels({"a": [[1.0, 2.0, 4.0]], "b": [[0.0, 1.0, 1.0]]})
    assert effects["a"].estimate == pytest.approx(7 / 3)
    assert np.isnan(effects["a"].p)


def test_variances_are_those_of_a_mixed_model():
    """Random intercepts of phrasings and items, fitted by REML to one group."""
    rng = np.random.default_rng(3)
    n_levels, n_items = 8, 30
    values = rng.normal(0, 3, (n_levels, 1)) + rng.normal(0, 4, n_items)
    values = values + rng.normal(0, 2, (n_levels, n_items))
    levels, items = np.indices(values.shape)
    data = pd.DataFrame({"y": values.ravel(), "level": levels.ravel(), "item": items.ravel()})
    parts = {"level": "0 + C(level)", "item": "0 + C(item)"}
    one_group = np.ones(len(data))
    fit = MixedLM.from_formula("y ~ 1", data, groups=one_group, vc_formula=parts).fit()

    effect = over_levels({"a": values})["a"]
    error = effect.estimate / effect.statistic
    assert effect.estimate == pytest.approx(fit.params["Intercept"])
    assert error == pytest.approx(fit.bse["Intercept"], rel=1e-3)
    components = variance_components(data, "y", {"item": ["item"], "level": ["level"]})
    assert components.to_numpy() == pytest.approx([*fit.vcomp, fit.scale], rel=1e-3)


def test_variance_components_recover_known_ones():
    """Phrasings are nested in groups, models and items are crossed; a third of answers is lost."""
    rng = np.random.default_rng(0)
    factors = {"model": 30, "item": 30, "group": 20, "phrasing": 3}
    index = pd.MultiIndex.from_product(map(range, factors.values()), names=factors)
    table = index.to_frame(index=False).sample(frac=2 / 3, random_state=0)
    phrasing = rng.normal(0, 1.5, (20, 3))[table.group, table.phrasing]
    both = rng.normal(0, 1, (30, 30))[table.model, table["item"]]
    table["y"] = 50 + phrasing + both + rng.normal(0, 3, len(table))
    table["y"] += 2 * stats.zscore(rng.normal(size=30), ddof=1)[table["item"]]
    terms = {
        "item": ["item"],
        "group": ["group"],
        "phrasing": ["group", "phrasing"],
        "model x item": ["model", "item"],
    }
    components = variance_components(table, "y", terms)
    assert components.to_numpy() == pytest.approx([4, 0, 2.25, 1, 9], abs=0.8)


def test_intervals_hold_for_phrasings_like_these_where_a_t_test_over_items_fails():
    rng = np.random.default_rng(0)
    hits = {"like these": 0, "these": 0}
    runs = 300
    for _ in range(runs):
        groups = draw_category(rng, phrasing_sd=1)
        effect = over_levels(groups)["black"]
        mean = mean_over_items(groups["black"].mean(axis=0))
        hits["like these"] += effect.low <= 0 <= effect.high
        hits["these"] += mean.low <= 0 <= mean.high
    assert hits["like these"] / runs >= 0.93
    assert hits["these"] / runs <= 0.8


def test_an_item_without_all_phrasings_is_left_out():
    complete = {"a": [[1.0, 2.0], [3.0, 5.0]], "b": [[1.0, 2.0], [2.0, 1.0]]}
    with_gap = {"a": [[1.0, 2.0, 9.0], [3.0, 5.0, np.nan]], "b": complete["b"]}
    assert over_levels(with_gap) == over_levels(complete)
    nothing = over_levels({"a": [[np.nan, np.nan]], "b": complete["b"]})["a"]
    assert np.isnan(nothing.estimate)


def test_own_group_is_the_diagonal_beyond_rows_and_columns():
    rng = np.random.default_rng(1)
    n = 5
    matrix = rng.normal(size=(n, n)) + rng.normal(size=(n, 1)) + rng.normal(size=(1, n))
    effect = own_group(matrix)
    by_hand = (np.trace(matrix) - matrix.sum() / n) / (n - 1)
    assert effect.estimate == pytest.approx(by_hand)
    assert effect.df == n * n - 2 * n
    # Levels of perceivers and targets cancel out.
    shifted = matrix + 7 * np.arange(n) - 3 * np.arange(n)[:, None]
    assert own_group(shifted).p == pytest.approx(effect.p)
    assert own_group(matrix[:3, :3]).p > 0  # three groups are enough


def rejections(n, own=0.0, alike=0.0, similarity=None, runs=400):
    """Compute the share of simulated matrices with p < .05."""
    rng = np.random.default_rng(0)
    near = np.exp(-np.abs(np.subtract.outer(np.arange(n), np.arange(n))))
    rejected = 0
    for _ in range(runs):
        matrix = rng.normal(size=(n, 1)) + rng.normal(size=(1, n)) + rng.normal(size=(n, n))
        matrix += own * np.eye(n) + alike * near
        rejected += own_group(matrix, near if similarity else None).p < 0.05
    return rejected / runs


def test_own_group_keeps_its_size_and_finds_an_effect():
    assert rejections(5) <= 0.07
    assert rejections(5, own=2) >= 0.9


def test_similar_groups_look_like_an_own_group_effect_unless_similarity_is_given():
    assert rejections(10, alike=2) >= 0.5
    assert rejections(10, alike=2, similarity=True) <= 0.08


def test_what_cannot_be_told_is_not_a_number():
    assert np.isnan(own_group(np.eye(2)).estimate)
    flat = own_group(np.ones((4, 4)))
    assert flat.estimate == pytest.approx(0)
    assert np.isnan(flat.p)


def test_kinds_of_pairs_recover_known_effects():
    """Levels of perceivers and experiencers leave the effects of both kinds alone."""
    rng = np.random.default_rng(7)
    one_name = np.eye(len(SAME))
    levels = rng.normal(size=(18, 1, 12)) + rng.normal(size=(1, 18, 12))
    values = 50 + levels + (3 * one_name + 1.5 * (SAME - one_name))[:, :, None]
    one, two = kinds_of_pair(values, SAME)
    assert one == pytest.approx(3)
    assert two == pytest.approx(1.5)


def test_group_means_average_pairs_of_names():
    """A cell is the mean of all pairs of names of two groups."""
    values = np.arange(18 * 18.0).reshape(18, 18)
    means = group_means(values, SAME)
    assert means.shape == (4, 4)
    blocks = {values[:5, 5:9].mean(), values[9:12, 9:12].mean()}
    assert blocks <= set(means.ravel().round(9))
