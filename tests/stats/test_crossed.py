"""Crossed effects: by hand, against a mixed model, against closed forms, and size by simulation."""

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.formula.api import ols
from statsmodels.regression.mixed_linear_model import MixedLM

from ingroup.stats import crossed

NAN = np.nan


def seeded(seed=0):
    return np.random.default_rng(seed)


def error_of(effect):
    """The standard error of an effect, from its interval."""
    reach = effect.high - effect.estimate
    return reach / stats.t.ppf(0.975, effect.df)


def mixed_model(table, formula, parts):
    """REML fit of crossed variance components: one group of all, one component a factor."""
    table = table.assign(whole=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MixedLM.from_formula(
            formula,
            table,
            groups="whole",
            re_formula="0",
            vc_formula=parts,
        )
        return model.fit(reml=True, method=["bfgs", "powell"])


def factors(*names):
    """Components of a mixed model, one for each factor."""
    return {name: f"0 + C({name})" for name in names}


# --- phrasings crossed with items


def test_phrasings_by_hand():
    """Two groups of two phrasings and three items, worked on paper.

    Group a: phrasings 0 3 3 and 4 5 9, means 2 and 6, items 2 4 6; b: 1 1 1 and 1 1 1.
    Between: ((-2)^2 + 2^2 + 0 + 0) / 2 = 4. Rest: residuals 0 1 -1 and 0 -1 1, 4 / (2 + 2) = 1.
    Group a: 4 / 2 + max(0, 4 - 1 / 2) / 3 = 19 / 6. Group b: 4 / 2.
    """
    ones = np.ones((2, 3))

    found = crossed.over_levels({"a": [[0, 3, 3], [4, 5, 9]], "b": ones})

    quantile = stats.t.ppf(0.975, 2)
    error_of_a = np.sqrt(19 / 6)
    error_of_b = np.sqrt(2)
    a = found["a"]
    assert a.estimate == pytest.approx(4)
    assert a.high == pytest.approx(4 + quantile * error_of_a)
    assert a.p == pytest.approx(2 * stats.t.sf(4 / error_of_a, 2))
    assert a.df == 2
    assert a.reason == ""
    b = found["b"]
    assert b.estimate == pytest.approx(1)
    assert b.low == pytest.approx(1 - quantile * error_of_b)


def phrased(rng, groups, levels, items, word=1.5, scenario=2.0, own=1.0, noise=1.0):
    """Balanced numbers of groups, a shared effect of scenarios and one of group and scenario."""
    shared = rng.normal(0, scenario, items)
    cells = {}
    for name in groups:
        words = rng.normal(0, word, (levels, 1))
        scenarios = shared + rng.normal(0, own, items)
        rest = rng.normal(0, noise, (levels, items))
        cells[name] = words + scenarios + rest
    return cells


def test_phrasings_are_those_of_a_mixed_model():
    """Balanced: the mean of the variances over groups is the mixed model's, the same in each."""
    cells = phrased(seeded(1), "abc", levels=4, items=7)
    rows = []
    for name, values in cells.items():
        for level, item in np.ndindex(4, 7):
            row = {
                "group": name,
                "phrasing": f"{name}{level}",
                "item": item,
                "both": f"{name}{item}",
                "x": values[level, item],
            }
            rows.append(row)
    table = pd.DataFrame(rows)

    found = crossed.over_levels(cells)

    fit = mixed_model(table, "x ~ 0 + C(group)", factors("phrasing", "item", "both"))
    means = [effect.estimate for effect in found.values()]
    errors = np.array([error_of(effect) for effect in found.values()])
    np.testing.assert_allclose(fit.fe_params, means, rtol=1e-6)
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(fit.bse_fe.iloc[0], rel=2e-3)


WHOLE = np.add.outer([0.0, 4.0, 8.0], [1.0, 2, 5, 9, 20])


def test_a_level_that_lacks_an_item_is_compared_over_shared_items():
    """Numbers that add up exactly leave nothing, and their phrasings are 4 apart."""
    lacking = WHOLE.copy()
    lacking[0, 4] = NAN
    lacking[2, :2] = NAN

    crossing = crossed._cross("a", lacking)

    np.testing.assert_allclose(crossing.levels, [-4, 0, 4], atol=1e-12)
    assert crossing.rest_squares == pytest.approx(0, abs=1e-18)
    assert crossing.rest_freedom == 12 - 5 - 2


def test_a_level_without_any_number_is_left_out():
    empty = np.full((1, 5), NAN)
    with_empty = np.vstack([WHOLE, empty])

    found = crossed.over_levels({"a": with_empty})

    assert found == crossed.over_levels({"a": WHOLE})


def some_levels(count):
    return seeded(count).normal(size=(count, 9))


def test_two_groups_of_one_phrasing_cannot_be_told():
    cells = {"a": some_levels(1), "b": some_levels(1)}

    told = crossed.over_levels(cells)

    a = told["a"]
    assert a.reason == "cannot be told: one phrasing"
    assert a.estimate == pytest.approx(cells["a"].mean())
    assert np.isnan([a.low, a.high, a.p, a.df]).all()


def test_one_degree_of_freedom_tells_nothing_and_two_do():
    two = {"a": some_levels(1), "b": some_levels(2)}
    three = two | {"c": some_levels(2)}

    of_two = crossed.over_levels(two, "setting")
    of_three = crossed.over_levels(three)

    for effect in of_two.values():
        assert effect.reason == "cannot be told: two settings"
    for effect in of_three.values():
        assert effect.reason == ""


def test_one_item_or_the_same_answers_cannot_be_told():
    short = crossed.over_levels({"a": [[1.0], [2], [4]]})
    same = crossed.over_levels({"a": np.full((3, 4), 7.0)})

    assert short["a"].reason == "cannot be told: one item"
    assert same["a"].estimate == pytest.approx(7)
    assert same["a"].reason == "cannot be told: the answers do not vary"


def test_a_group_without_a_number_is_refused():
    cells = {"a": np.ones((2, 2)), "b": np.full((1, 2), NAN)}

    with pytest.raises(ValueError, match="b: found no number"):
        crossed.over_levels(cells)


def test_phrasings_cover_where_items_alone_do_not():
    """Two phrasings a group, SD 1: over items .7 hold, over phrasings .95 (500 intervals)."""
    rng = seeded(5)

    held = []
    alone = []
    for _ in range(100):
        cells = phrased(rng, "abcde", levels=2, items=103, own=0.0, noise=5.0, word=1.0)
        found = crossed.over_levels(cells)
        for name, effect in found.items():
            over_items = stats.ttest_1samp(cells[name].mean(axis=0), 0)
            held.append(effect.low <= 0 <= effect.high)
            alone.append(over_items.pvalue > 0.05)

    assert np.mean(alone) < 0.8
    assert np.mean(held) > 0.91


# --- the social relations model


def related(rng, n, own=0.0, events=None):
    """A matrix of n groups, or one of each event."""
    perceivers = 2 * rng.normal(size=(n, 1))
    targets = 2 * rng.normal(size=(1, n))
    matrix = perceivers + targets + rng.normal(size=(n, n))
    matrix = matrix + own * np.eye(n)
    if events is None:
        return matrix
    return matrix[..., None] + rng.normal(size=(n, n, events))


def as_table(matrix, **columns):
    """A row for each cell: x, perceiver i, target j, whether it is of an own group, and others."""
    n = len(matrix)
    i, j = np.indices((n, n)).reshape(2, -1)
    table = pd.DataFrame({"x": matrix.ravel(), "i": i, "j": j})
    table["own"] = (i == j) * 1.0
    for name, values in columns.items():
        table[name] = np.ravel(values) * 1.0
    return table


def test_relations_are_those_of_warner_kenny_and_stoto():
    """Their formulas of effects without own cells, written out."""
    n = 6
    matrix = related(seeded(2), n, own=3)
    apart = ~np.eye(n, dtype=bool)
    other = np.where(apart, matrix, 0)
    rows = other.sum(axis=1) / (n - 1)
    columns = other.sum(axis=0) / (n - 1)
    mean = other.sum() / (n * (n - 1))
    scale = (n - 1) / (n * (n - 2))
    level = (n - 1) / (n - 2) * mean

    found = crossed.relations(matrix)

    perceivers = scale * ((n - 1) * rows + columns) - level
    targets = scale * ((n - 1) * columns + rows) - level
    own = np.diag(matrix) - mean - perceivers - targets
    whole = mean + perceivers[:, None] + targets + found.relationships
    assert found.mean == pytest.approx(mean)
    np.testing.assert_allclose(found.perceivers, perceivers)
    np.testing.assert_allclose(found.targets, targets)
    np.testing.assert_allclose(found.own, own)
    np.testing.assert_allclose(whole[apart], matrix[apart])
    assert np.isnan(found.relationships.diagonal()).all()


def test_an_own_group_effect_is_that_of_least_squares():
    matrix = related(seeded(3), 5, own=1)

    found = crossed.own_group(matrix)

    fit = ols("x ~ own + C(i) + C(j)", as_table(matrix)).fit()
    low, high = fit.conf_int().loc["own"]
    assert found.estimate == pytest.approx(fit.params["own"])
    assert found.p == pytest.approx(fit.pvalues["own"])
    assert found.low == pytest.approx(low)
    assert found.high == pytest.approx(high)
    assert found.df == pytest.approx(15)
    assert found.estimate == pytest.approx(crossed.relations(matrix).own.mean())


def test_an_own_group_effect_over_events_is_that_of_a_mixed_model():
    """Perceivers, targets, pairs, and the effect by event random; cells by event are the rest."""
    n = 5
    rng = seeded(7)
    cube = related(rng, n, own=1, events=6)
    cube = cube + 2 * rng.normal(size=6) * np.eye(n)[..., None]
    tables = []
    for event in range(6):
        of_event = as_table(cube[..., event])
        # Levels of events are the same in all cells: taken out, they leave own effects by event.
        of_event["x"] -= of_event["x"].mean()
        tables.append(of_event.assign(event=event))
    table = pd.concat(tables, ignore_index=True)
    table["pair"] = n * table.i + table.j
    table["centred"] = table.own - 1 / n

    found = crossed.own_group(cube)

    parts = factors("i", "j", "pair")
    parts["event"] = "0 + C(event):centred"
    fit = mixed_model(table, "x ~ own", parts)
    assert found.estimate == pytest.approx(fit.fe_params["own"], rel=1e-6)
    assert error_of(found) == pytest.approx(fit.bse_fe["own"], rel=0.02)


def test_a_jump_beyond_similarity():
    """Clusters of two: what they share is no jump at one's own group, and is if nobody asks."""
    n = 8
    clusters = np.repeat(range(4), 2)
    alike = clusters[:, None] == clusters
    matrix = related(seeded(4), n) + 6.0 * alike
    higher = matrix + 5 * np.eye(n)

    without = crossed.own_group(matrix)
    beyond = crossed.own_group(matrix, alike)
    jump = crossed.own_group(higher, alike)

    assert without.p < 0.001
    assert beyond.p > 0.05
    table = as_table(matrix, alike=alike)
    fit = ols("x ~ own + alike + C(i) + C(j)", table).fit()
    assert beyond.estimate == pytest.approx(fit.params["own"])
    assert beyond.p == pytest.approx(fit.pvalues["own"])
    assert jump.estimate == pytest.approx(beyond.estimate + 5)
    assert jump.p < 0.001


def test_similarity_of_no_two_groups_says_nothing():
    alone = crossed.own_group(related(seeded(4), 8), np.eye(8))

    assert alone.reason == "cannot be told: no two groups are alike"


@pytest.mark.parametrize("n", [4, 5])
def test_size_of_the_own_group_test(n):
    """1,000 matrices: .05 within four standard errors of .0069."""
    rng = seeded(n)

    rejected = []
    for _ in range(1000):
        effect = crossed.own_group(related(rng, n))
        rejected.append(effect.p < 0.05)

    assert 0.022 < np.mean(rejected) < 0.078


def test_events_that_vary_alike_do_not_reject_too_often():
    """An effect that varies by event, 0 on average: pairs alone would reject half of the time."""
    rng = seeded(6)
    own = np.eye(5)[..., None]

    rejected = []
    of_means = []
    for _ in range(500):
        effects = 4 * rng.normal(size=8)
        cube = related(rng, 5, events=8) + effects * own
        rejected.append(crossed.own_group(cube).p < 0.05)
        of_means.append(crossed.own_group(cube.mean(axis=2)).p < 0.05)

    assert np.mean(rejected) < 0.09
    assert np.mean(of_means) > 0.25


def test_own_cells_that_vary_more_need_the_test_by_group():
    rng = seeded(8)

    pooled = []
    by_group = []
    for _ in range(500):
        own = 3 * rng.normal(size=5)
        matrix = related(rng, 5) + np.diag(own)
        pooled.append(crossed.own_group(matrix).p < 0.05)
        by_group.append(crossed.own_group_by_group(matrix).p < 0.05)

    assert np.mean(pooled) > 0.14
    assert np.mean(by_group) < 0.09


def test_own_groups_one_by_one_are_a_t_test():
    matrix = related(seeded(8), 5)

    found = crossed.own_group_by_group(matrix)

    own = crossed.relations(matrix).own
    assert found.p == pytest.approx(stats.ttest_1samp(own, 0).pvalue)


def test_one_complete_event_cannot_be_told():
    lacking = related(seeded(), 4, events=3)
    lacking[0, 1, 0] = NAN
    lacking[2, 1, 1] = NAN

    told = crossed.own_group(lacking)

    means = np.nanmean(lacking, axis=2)
    assert told.reason == "cannot be told: one complete event"
    assert told.estimate == pytest.approx(crossed.own_group(means).estimate)


def test_what_own_groups_cannot_tell():
    two = crossed.own_group(np.eye(2))
    same = crossed.own_group(np.eye(4))

    assert two.reason == "cannot be told: two groups"
    assert np.isnan(two.estimate)
    assert same.reason == "cannot be told: the answers do not vary"
    assert same.estimate == pytest.approx(1)


def test_matrices_that_have_no_own_groups_are_refused():
    with pytest.raises(ValueError, match=r"shape \(2, 3\)"):
        crossed.own_group(np.ones((2, 3)))
    with pytest.raises(ValueError, match="2 groups and 1 matrices"):
        crossed.relations(np.eye(2))


# --- two sets of levels, and clusters of items


def test_a_difference_of_levels_by_the_definition():
    """Means, sums of squares and Satterthwaite-free degrees of freedom, written out in loops."""
    rng = seeded(12)
    one = rng.normal(size=(4, 9))
    other = 1 + rng.normal(size=(3, 9))
    n = 9

    squares_of_levels = 0.0
    squares_of_rest = 0.0
    for side in (one, other):
        for level in side:
            squares_of_levels += (level.mean() - side.mean()) ** 2
            for item in range(n):
                expected = level.mean() + side[:, item].mean() - side.mean()
                squares_of_rest += (level[item] - expected) ** 2
    of_levels = squares_of_levels / 5
    rest = squares_of_rest / (3 * 8 + 2 * 8)
    differences = one.mean(axis=0) - other.mean(axis=0)
    pairs = 1 / 4 + 1 / 3
    variance = of_levels * pairs + max(differences.var(ddof=1) - rest * pairs, 0) / n

    effect = crossed.difference_of_levels(one, other)
    assert effect.estimate == pytest.approx(one.mean() - other.mean())
    assert effect.df == 5
    assert effect.high - effect.estimate == pytest.approx(stats.t.ppf(0.975, 5) * np.sqrt(variance))


def test_a_difference_of_levels_is_that_of_a_mixed_model():
    """Balanced words of two axes by groups, with a difference of the axes in each group."""
    rng = seeded(19)
    groups = rng.normal(size=(2, 8))
    axes = {}
    for axis, name in enumerate(("competence", "warmth")):
        words = 0.7 * rng.normal(size=(4, 1))
        axes[name] = words + 2 * groups[axis] + rng.normal(0, 0.5, (4, 8))

    rows = []
    for name, numbers in axes.items():
        for word, group in product(range(4), range(8)):
            rows.append((name, f"{name}{word}", group, f"{name}{group}", numbers[word, group]))
    table = pd.DataFrame(rows, columns=["axis", "word", "group", "both", "x"])
    fit = mixed_model(table, "x ~ C(axis)", factors("word", "group", "both"))

    effect = crossed.difference_of_levels(axes["warmth"], axes["competence"])
    error = (effect.high - effect.estimate) / stats.t.ppf(0.975, effect.df)
    assert effect.estimate == pytest.approx(fit.fe_params.iloc[1])
    assert error == pytest.approx(fit.bse_fe.iloc[1], rel=2e-3)


def test_a_difference_of_levels_is_scipys_where_items_are_alike():
    rng = seeded(13)
    one = rng.normal(size=(4, 1))
    other = rng.normal(size=(6, 1))
    effect = crossed.difference_of_levels(np.tile(one, 20), np.tile(other, 20))
    expected = stats.ttest_ind(one[:, 0], other[:, 0])
    assert effect.p == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval()
    assert (effect.low, effect.high) == pytest.approx((interval.low, interval.high))


def test_a_difference_of_levels_changes_sign_with_its_sides():
    rng = seeded(14)
    one = rng.normal(size=(4, 12))
    other = rng.normal(size=(4, 12))
    effect = crossed.difference_of_levels(one, other)
    turned = crossed.difference_of_levels(other, one)
    assert (turned.estimate, turned.low, turned.high) == pytest.approx(
        (-effect.estimate, -effect.high, -effect.low)
    )
    assert turned.p == pytest.approx(effect.p)


def test_an_item_that_one_side_lacks_is_left_out():
    rng = seeded(15)
    one = rng.normal(size=(3, 6))
    other = rng.normal(size=(3, 6))
    expected = crossed.difference_of_levels(one[:, 1:], other[:, 1:])
    other[:, 0] = np.nan
    assert crossed.difference_of_levels(one, other) == expected


def test_few_levels_or_items_cannot_be_told():
    rng = seeded()
    word = rng.normal(size=(1, 5))
    assert crossed.difference_of_levels(word, 1 - word).reason == "cannot be told: two words"
    words = rng.normal(size=(2, 1))
    assert crossed.difference_of_levels(words, 1 - words).reason == "cannot be told: one item"
    with pytest.raises(ValueError, match="found 5 and 1 items, expected the same items twice"):
        crossed.difference_of_levels(word, words)


def test_clusters_of_one_item_are_a_t_test():
    numbers = 0.3 + seeded(16).normal(size=15)
    effect = crossed.over_clusters(numbers, [str(item) for item in range(15)])
    expected = stats.ttest_1samp(numbers, 0)
    interval = expected.confidence_interval()
    assert effect.p == pytest.approx(expected.pvalue)
    assert (effect.low, effect.high) == pytest.approx((interval.low, interval.high))


def test_clusters_by_the_definition():
    clusters = [*"aabbbbcddddd"]
    numbers = seeded(17).normal(size=12)
    residuals = numbers - numbers.mean()
    squares = 0.0
    for cluster in "abcd":
        inside = [r for r, name in zip(residuals, clusters, strict=True) if name == cluster]
        squares += sum(inside) ** 2
    error = np.sqrt(4 / 3 * squares) / 12

    effect = crossed.over_clusters(numbers, clusters)
    assert effect.estimate == pytest.approx(numbers.mean())
    assert effect.df == 3
    assert effect.low == pytest.approx(numbers.mean() - stats.t.ppf(0.975, 3) * error)


def test_items_asked_twice_tell_no_more_than_once():
    """Copies of every item, in its own cluster, leave the interval as it is."""
    numbers = seeded(18).normal(size=10)
    clusters = [*"abcdefghij"]
    once = crossed.over_clusters(numbers, clusters)
    twice = crossed.over_clusters(np.repeat(numbers, 2), np.repeat(clusters, 2))
    assert (twice.low, twice.high, twice.p) == pytest.approx((once.low, once.high, once.p))


def test_few_clusters_cannot_be_told():
    effect = crossed.over_clusters([1.0, 2.0, 4.0], ["a", "b", "b"], "identity")
    assert effect.reason == "cannot be told: two identities"
    assert effect.estimate == pytest.approx(7 / 3)
    same = crossed.over_clusters([1.0, 1.0, 1.0], [*"abc"])
    assert same.reason == "cannot be told: the answers do not vary"


# --- names within groups

GROUPS = [*"aaabbbbccccc"]


def test_names_give_back_what_was_put_in():
    """Levels of names cancel out exactly, whatever the number of names."""
    groups = np.array(GROUPS)
    n = len(groups)
    same = groups[:, None] == groups
    levels = 5 * seeded().normal(size=(n, 1)) + 5 * seeded(1).normal(size=(1, n))
    matrix = levels + 3.0 * np.eye(n) - 2.0 * (same & ~np.eye(n, dtype=bool))
    found = crossed.own_group_of_names(matrix, GROUPS)
    assert found["one name"].estimate == pytest.approx(3)
    assert found["two names"].estimate == pytest.approx(-2)
    assert found["one name beyond two names"].estimate == pytest.approx(5)
    assert found["one name"].reason == "cannot be told: the answers do not vary"


def test_names_by_the_definition():
    """Means by group, and the jackknife, written out."""
    groups = np.array(GROUPS)
    matrix = related(seeded(9), len(groups))

    def two_names(kept):
        means = np.zeros((3, 3))
        for g, h in product(range(3), range(3)):
            rows = [i for i in kept if groups[i] == "abc"[g]]
            columns = [j for j in kept if groups[j] == "abc"[h]]
            cells = [matrix[i, j] for i in rows for j in columns if i != j]
            means[g, h] = np.mean(cells)
        return (np.trace(means) - means.sum() / 3) / 2

    every = range(len(groups))
    without = np.array([two_names([i for i in every if i != name]) for name in every])
    parts = [without[groups == g] for g in "abc"]
    variances = np.array([(len(part) - 1) * np.var(part) for part in parts])
    df = variances.sum() ** 2 / (variances**2 / np.array([2, 3, 4])).sum()

    found = crossed.own_group_of_names(matrix, GROUPS)["two names"]
    assert found.estimate == pytest.approx(two_names(every))
    assert found.df == pytest.approx(df)
    assert found.high - found.estimate == pytest.approx(
        stats.t.ppf(0.975, df) * np.sqrt(variances.sum())
    )


def test_names_of_too_small_groups_cannot_be_told():
    matrix = related(seeded(), 6)
    told = crossed.own_group_of_names(matrix, [*"aaaabb"])
    assert told["two names"].reason == "cannot be told: two names of b"
    assert (
        crossed.own_group_of_names(matrix, ["a"] * 6)["one name"].reason
        == "cannot be told: one group"
    )
    with pytest.raises(ValueError, match="found 5 groups, expected one for each of 6 names"):
        crossed.own_group_of_names(matrix, [*"aaabb"])


def test_names_that_vary_reject_as_often_as_they_may():
    """Names have tastes of their own for groups; by events alone nine in ten tests reject."""
    rng = seeded(10)
    place = np.unique(GROUPS, return_inverse=True)[1]
    n = len(place)
    rejected = []
    by_events = []
    for _ in range(300):
        tastes = rng.normal(size=(n, 3))[:, place] + rng.normal(size=(3, n))[place]
        cube = tastes[..., None] + 0.3 * rng.normal(size=(n, n, 6))
        rejected.append(crossed.own_group_of_names(cube, GROUPS)["two names"].p < 0.05)
        weights = crossed._name_weights(tuple(place.tolist()))[1, 0]
        by_events.append(stats.ttest_1samp(weights @ cube.reshape(n * n, 6), 0).pvalue < 0.05)
    assert np.mean(by_events) > 0.6
    assert np.mean(rejected) < 0.11


# --- intervals and degrees of freedom, written out


def reach_of(parts, freedoms):
    """How far an interval reaches whose variance is a sum of parts, and Satterthwaite's freedom."""
    parts = np.array(parts)
    variance = parts.sum()
    df = variance**2 / np.sum(parts**2 / freedoms)
    return stats.t.ppf(0.975, df) * np.sqrt(variance), df


def own_of(matrix):
    """The own-group effect of a matrix in closed form."""
    n = len(matrix)
    return (np.trace(matrix) - matrix.sum() / n) / (n - 1)


def left_over(matrix, *terms):
    """The sum of squares that least squares leave of a matrix, perceivers and targets beside."""
    columns = {f"term{number}": term for number, term in enumerate(terms)}
    table = as_table(matrix, **columns)
    formula = " + ".join(["x ~ C(i) + C(j)", *columns])
    return ols(formula, table).fit().ssr


def left_over_by_event(cube, *terms):
    """The variance over events of what least squares leave of each event."""
    events = cube.shape[2]
    centred = cube - cube.mean(axis=2, keepdims=True)
    squares = [left_over(centred[..., event], *terms) for event in range(events)]
    return sum(squares) / (events - 1)


@pytest.mark.parametrize(("n", "events"), [(3, 2), (4, 3), (5, 7)])
def test_an_own_group_effect_over_events_by_the_definition(n, events):
    rng = seeded(20)
    effects = 3 * rng.normal(size=events)
    cube = related(rng, n, own=1, events=events) + effects * np.eye(n)[..., None]
    freedom = n**2 - 2 * n

    found = crossed.own_group(cube)

    weight = 1 / (n - 1)
    relationship = left_over(cube.mean(axis=2), np.eye(n)) / freedom
    noise = left_over_by_event(cube, np.eye(n)) / freedom
    by_event = np.var([own_of(cube[..., k]) for k in range(events)], ddof=1)
    excess = by_event - weight * noise
    assert excess > 0
    parts = [weight * relationship, excess / events]
    reach, df = reach_of(parts, [freedom, events - 1])
    assert found.estimate == pytest.approx(own_of(cube.mean(axis=2)))
    assert found.df == pytest.approx(df)
    assert found.high - found.estimate == pytest.approx(reach)
    assert found.estimate - found.low == pytest.approx(reach)


def test_events_that_vary_less_than_their_noise_add_nothing():
    """The same effect in both events, whose cells differ otherwise."""
    n = 4
    matrix = related(seeded(21), n)
    noise = seeded(22).normal(size=(n, n))
    noise = noise - np.diag(np.full(n, own_of(noise)))
    assert own_of(noise) == pytest.approx(0)
    cube = np.stack([matrix + noise, matrix - noise], axis=2)

    found = crossed.own_group(cube)
    of_means = crossed.own_group(matrix)

    assert found[:4] == pytest.approx(of_means[:4])


def test_own_groups_one_by_one_over_events_by_the_definition():
    n = 4
    events = 5
    rng = seeded(23)
    effects = 4 * rng.normal(size=events)
    cube = related(rng, n, events=events) + effects * np.eye(n)[..., None]

    found = crossed.own_group_by_group(cube)

    own = crossed.relations(cube.mean(axis=2)).own
    noise = left_over_by_event(cube, np.eye(n)) / (n**2 - 2 * n)
    by_event = np.var([own_of(cube[..., k]) for k in range(events)], ddof=1)
    excess = by_event - noise / (n - 1)
    assert excess > 0
    reach, df = reach_of([own.var(ddof=1) / n, excess / events], [n - 1, events - 1])
    assert found.estimate == pytest.approx(own.mean())
    assert found.df == pytest.approx(df)
    assert found.high - found.estimate == pytest.approx(reach)


def test_relations_of_three_groups_give_back_what_was_put_in():
    perceivers = np.array([2.0, -3, 1])
    targets = np.array([-1.0, -4, 5])
    own = np.array([7.0, 0, -1])
    matrix = 10 + perceivers[:, None] + targets + np.diag(own)

    found = crossed.relations(matrix)

    assert found.mean == pytest.approx(10)
    np.testing.assert_allclose(found.perceivers, perceivers)
    np.testing.assert_allclose(found.targets, targets)
    np.testing.assert_allclose(found.own, own, atol=1e-12)


def test_names_over_events_by_the_definition():
    """One of two kinds: pairs of two names, whose effect differs from event to event."""
    groups = np.array(GROUPS)
    n = len(groups)
    same = groups[:, None] == groups
    one = np.eye(n)
    two = same & ~np.eye(n, dtype=bool)
    rng = seeded(24)
    cube = related(rng, n, events=4) + 5 * rng.normal(size=4) * two[..., None]
    weights = crossed._name_weights(tuple(np.unique(groups, return_inverse=True)[1]))[1]
    weights = weights.reshape(1 + n, n, n)

    found = crossed.own_group_of_names(cube, GROUPS)["two names"]

    means = cube.mean(axis=2)
    without = np.tensordot(weights[1:], means, 2)
    parts = []
    freedoms = []
    for group in "abc":
        own = without[groups == group]
        parts.append((len(own) - 1) * own.var())
        freedoms.append(len(own) - 1)
    freedom = n**2 - (2 * n - 1) - 2
    noise = left_over_by_event(cube, one, two) / freedom
    by_event = np.tensordot(weights[0], cube, 2).var(ddof=1)
    excess = by_event - np.sum(weights[0] ** 2) * noise
    assert excess > 0
    reach, df = reach_of([*parts, excess / 4], [*freedoms, 3])
    assert found.df == pytest.approx(df)
    assert found.high - found.estimate == pytest.approx(reach)


def test_few_items_limit_the_freedom_of_phrasings():
    """Five groups of two phrasings have five degrees of freedom, three items have two."""
    cells = phrased(seeded(25), "abcde", levels=2, items=3)

    found = crossed.over_levels(cells)

    assert {effect.df for effect in found.values()} == {2}


def test_few_items_limit_the_freedom_of_a_difference():
    rng = seeded(26)

    found = crossed.difference_of_levels(rng.normal(size=(4, 3)), rng.normal(size=(4, 3)))

    assert found.df == 2


def test_three_words_and_two_items_can_be_told():
    """One word on a side, two on the other: 1 degree of freedom; two on both have 2."""
    rng = seeded(27)
    words = rng.normal(size=(2, 2))

    three = crossed.difference_of_levels(words, words[:1])
    four = crossed.difference_of_levels(words, 1 - words)

    assert three.reason == "cannot be told: three words"
    assert four.reason == ""
    assert four.df == 1


def test_three_clusters_can_be_told():
    found = crossed.over_clusters([1.0, 2, 4], [*"abc"])

    expected = stats.ttest_1samp([1.0, 2, 4], 0)
    assert found.p == pytest.approx(expected.pvalue)
    assert found.df == 2


def test_no_event_is_complete():
    cube = related(seeded(), 3, events=2)
    cube[0, 1, 0] = NAN
    cube[1, 0, 1] = NAN

    found = crossed.own_group(cube)

    assert found.reason == "cannot be told: no complete events"
    assert np.isnan(found[1:5]).all()


def test_counts_are_words_up_to_four():
    assert crossed._too_few(3, "city") == "cannot be told: three cities"
    assert crossed._too_few(4, "name") == "cannot be told: four names"
    assert crossed._too_few(5, "name") == "cannot be told: 5 names"


def test_groups_of_three_names_can_be_told_and_of_one_cannot():
    matrix = related(seeded(28), 6)

    three = crossed.own_group_of_names(matrix, [*"aaabbb"])
    one = crossed.own_group_of_names(matrix, [*"aaaaab"])

    assert three["one name"].reason == ""
    assert one["one name"].reason == "cannot be told: one name of b"
    assert np.isnan(one["one name"].estimate)


def test_a_cell_is_named_by_its_row_and_column():
    cube = related(seeded(), 4, events=2)
    cube[2, 1] = NAN

    with pytest.raises(ValueError, match="row 2, column 1 has no rating, expected one"):
        crossed.own_group(cube)


@pytest.mark.parametrize("shape", [(4,), (2, 2, 2, 2)])
def test_what_is_no_matrix_is_refused(shape):
    with pytest.raises(ValueError, match=r"expected \(n, n\) or \(n, n, events\)"):
        crossed.own_group(np.ones(shape))


def test_several_matrices_have_no_relations():
    with pytest.raises(ValueError, match="found 3 groups and 2 matrices, expected one matrix"):
        crossed.relations(np.ones((3, 3, 2)))
