"""The first study as a lens: empathy by hand, the options of a path against the direct call."""

from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ingroup.commands.parameters import merged
from ingroup.stats import multiverse
from ingroup.stats.effects import bootstrap_interval
from ingroup.stats.permutation import permutation_test
from ingroup.studies.empathy_gap import answers, lens, stimuli
from ingroup.studies.empathy_gap import statistics as ratings

EYE = np.eye(4, dtype=bool)
GAP = {
    "exclusion": "listwise",
    "rounding": "none",
    "matrix": "with a person",
    "unit": "identities",
}


def test_empathy_by_hand():
    """Two names of A and one of B, "a person" first, two events."""
    values = np.zeros((4, 4, 2))
    values[1:, 1:, 0] = [
        [10, 20, 1],
        [30, 40, 3],
        [5, 7, 100],
    ]
    values[1:, 1:, 1] = [
        [0, 0, 8],
        [0, 0, 8],
        [2, 2, 4],
    ]

    # left out
    values[0] = 1e6
    values[:, 0] = -1e6

    # Event 0: B[A, A] = 25, B[A, B] = 2, B[B, A] = 6, B[B, B] = 100.
    groups = ["", "A", "A", "B"]
    received, given = lens.empathy(values, groups)

    assert received.A.tolist() == [(25 + 6) / 2 - (2 + 100) / 2, (0 + 2) / 2 - (8 + 4) / 2]
    assert given.A.tolist() == [(25 + 2) / 2 - (6 + 100) / 2, (0 + 8) / 2 - (2 + 4) / 2]
    assert received.B.tolist() == (-received.A).tolist()

    values[1, 1, 0] = np.nan  # B[A, A] is 30 then
    assert lens.empathy(values, groups)[0].A[0] == (30 + 6) / 2 - (2 + 100) / 2


def test_empathy_is_that_of_the_matrix_where_each_group_has_one_name():
    rng = np.random.default_rng(0)
    values = rng.normal(50, 10, (5, 5, 7))
    z = ratings.zscore(ratings.cell_means(values))
    table, _ = lens.empathy(values, list("abcde"))
    sd = ratings.cell_means(values).std()

    for k, name in enumerate("abcde"):
        wanted = z[:, k].mean() - np.delete(z, k, axis=1).mean()
        assert table[name].mean() / sd == pytest.approx(wanted)


def test_empathy_of_a_large_group_holds_no_more_of_the_gap():
    """Nothing but a bonus within groups: nobody receives more, whatever the size of the group."""
    groups = list("aaaaab")
    same = np.array(groups)[:, None] == np.array(groups)
    for table in lens.empathy(np.repeat(7.0 * same[:, :, None], 3, axis=2), groups):
        np.testing.assert_allclose(table, 0)


def some_ratings(missing=0.02):
    rng = np.random.default_rng(5)
    values = 50 + 8 * rng.normal(size=(5, 5, 1)) + rng.normal(size=(5, 5, 30))
    values[np.arange(1, 5), np.arange(1, 5)] += 12
    values[rng.random(values.shape) < missing] = np.nan
    return values


@pytest.mark.parametrize("exclusion", ["listwise", "pairwise"])
@pytest.mark.parametrize(("rounding", "decimals"), [("none", None), ("cell means", 2)])
@pytest.mark.parametrize(("matrix", "separate"), [("with a person", False), ("without", True)])
def test_the_gap_by_identities(exclusion, rounding, decimals, matrix, separate):
    values = some_ratings()
    path = {
        "exclusion": exclusion,
        "rounding": rounding,
        "matrix": matrix,
        "unit": "identities",
    }
    found = lens.gap(values, EYE, **path, n_resamples=300, seed=3)
    z = ratings.gap_matrix(values, exclusion, decimals, separate)
    kept = ratings.exclude(values[1:, 1:] if separate else values, exclusion)
    wanted = bootstrap_interval(kept, EYE, rng=3)
    test = permutation_test(z, EYE, 300, 3)

    assert found[:4] == pytest.approx((test.statistic, wanted.low, wanted.high, test.pvalue))


def test_the_gap_by_groups_takes_their_mean_cells():
    same = ratings.same_group(["a", "a", "b", "c"])
    found = lens.gap(some_ratings(), same, **GAP | {"unit": "groups"}, n_resamples=99, seed=3)
    z = pd.DataFrame(ratings.gap_matrix(some_ratings(), "listwise"))
    names = pd.Series([*"aabc"])
    means = z.groupby(names).mean().T.groupby(names).mean().to_numpy()
    gaps = [np.trace(means[:, order]) for order in map(list, permutations(range(3)))]
    far = np.abs(np.array(gaps) - means.sum() / 3)

    assert found.p == pytest.approx(np.mean(far >= far[0] - 1e-9))  # of 3! orders
    assert found.estimate == pytest.approx(ratings.empathy_gap(z, same))


@pytest.mark.parametrize("matrix", ["with a person", "without"])
def test_the_gap_by_events(matrix):
    values = some_ratings()
    path = GAP | {"matrix": matrix, "unit": "events"}
    found = lens.gap(values, EYE, **path, n_resamples=300, seed=3)
    inner = values if matrix == "with a person" else values[1:, 1:]
    kept = inner[:, :, ~np.isnan(inner).any(axis=(0, 1))]
    wanted = bootstrap_interval(kept, EYE, rng=3)

    assert found[:3] == pytest.approx((wanted.statistic, wanted.low, wanted.high))

    share = stats.norm.ppf(1 / 2001)  # no draw at or below 0; one is added
    n = kept.shape[2]

    assert found.p == pytest.approx(2 * stats.t.sf(-share * ((n - 1) / n) ** 0.5, n - 1))


def test_over_events_interval_and_p_agree_where_events_are_few():
    """At 7 events the draws themselves reject a true null in one of eight cases, not of twenty."""
    rng = np.random.default_rng(2)
    apart = 0
    rejected = []
    path = GAP | {"unit": "events"}

    for seed in range(200):
        values = rng.normal(size=(5, 5, 7))
        one = lens.gap(values, EYE, **path, n_resamples=9, seed=seed)
        apart += (one.p < 0.05) != (one.low > 0 or one.high < 0)
        rejected.append(one.p < 0.05)

    assert apart <= 6  # where an end is within a draw of 0
    assert np.mean(rejected) < 0.10  # three standard errors


def test_paths_on_equal_ratings_draw_one_bootstrap(monkeypatch):
    """Five paths of rounding and unit, and two ways of leaving out that lose nothing: one."""
    drawn = []
    values = some_ratings(missing=0)

    def counted(*arguments, rng):
        drawn.append(arguments)
        return bootstrap_interval(*arguments, 20, rng)

    monkeypatch.setattr(lens, "bootstrap_interval", counted)
    lens._drawn.cache_clear()
    choices = {name: lens.CHOICES[name] for name in ("exclusion", "rounding", "unit")}

    for path in multiverse.paths(choices):
        lens.gap(values, EYE, **GAP | path, n_resamples=20, seed=1)

    assert len(drawn) == 1


def test_a_gap_without_any_difference_has_a_reason():
    path = GAP | {"n_resamples": 10, "seed": 0}
    found = lens.claims({"one": np.full((5, 5, 3), 7.0)}, {"one": EYE}, **path)["one"]
    assert np.isnan(found[:4]).all()
    assert "all cells have the same mean" in found.reason


def test_claims_are_of_the_categories_that_have_answers():
    values = some_ratings()
    path = GAP | {"n_resamples": 50, "seed": 0}
    found = lens.claims({"one": values}, {"one": EYE, "two": EYE}, **path)
    assert found == {"one": lens.gap(values, EYE, **path)}


OPTIONS = {"N_RESAMPLES": 20, "SEED": 0}
ASKED = {
    "MODELS": ["org/one"], "ENGINE": "vllm", "CORPUS": "sample", "N_EVENTS": 2,
    "REWRITER": "", "REWRITE_TOKENS": 9,
    "SETTINGS": ["P0,S0,T0", "P1,S0,T0"], "CATEGORIES": [], "PARSING": "sound",
    "EXCLUSION": "listwise", "READING": "", "ENDING": "turn", "REASONING": "", "TEMPERATURE": 0.0,
    "MAX_TOKENS": 128, "SEED": 0,
}  # fmt: skip


@pytest.fixture
def answered(monkeypatch):
    """Answers to all but P1,S0,T0 of two categories, and what was read of them."""
    read = []

    def load(call, rule="sound", reading=None):
        read.append((*call.labels.values(), call.way, rule))
        rng = np.random.default_rng(len(call.design))
        values = rng.normal(50, 10, call.design.blocks[0].shape)
        return answers.Ratings(values, np.zeros(values.shape, dtype=np.int8))

    def stored(calls):
        return [c for c in calls if c.key[1:] in (*FIRST, ("P1,S0,T0", "Religion"))]

    monkeypatch.setattr(answers, "load", load)
    monkeypatch.setattr("ingroup.inference.call.there", stored)
    without_steps = SimpleNamespace(manifest={})
    monkeypatch.setattr("ingroup.synthesis.stored", lambda call: without_steps)
    return read


FIRST = [("P0,S0,T0", category) for category in stimuli.categories()]


def test_a_portrait_reads_every_category_of_the_first_setting(answered):
    names = [stimuli.identities(category).identity[1] for category in stimuli.categories()]
    views = lens.portrait(ASKED, "org/one", dict.fromkeys(names, "shared"))

    assert answered == [(*key, "freely", "sound") for key in FIRST]
    assert [(view.measure, view.draw) for view in views] == [
        (measure, category) for category in stimuli.categories() for measure in lens.MEASURES
    ]
    assert [view.items.shape for view in views[::2]] == [
        (2, 5),
        (2, 21),
        (2, 5),
    ]
    assert all("shared" in view.items for view in views)


def test_effects_are_those_of_events_in_the_first_setting(answered):
    effects = lens.effects(ASKED, "org/one")
    assert list(effects) == list(stimuli.categories())
    assert len(effects) == 2

    groups = stimuli.identities("Religion").group[1:]
    design_of_religion = 36 * 2
    values = np.random.default_rng(design_of_religion).normal(50, 10, (6, 6, 2))[1:, 1:]
    tested = ratings.gap_of_these(values, groups)

    assert effects.Religion.mean() == pytest.approx(tested.difference)


@pytest.mark.parametrize(
    ("reading", "rules"), [("free", ["sound", "released"]), ("expected", ["sound"])]
)
def test_paths_are_of_what_is_stored_and_rules_of_reading_are_a_choice_for_texts(
    answered, reading, rules
):
    table = lens.paths(ASKED | {"READING": reading}, "org/one", OPTIONS)
    way = "freely" if reading == "free" else "over choices"
    keys = [*FIRST, ("P1,S0,T0", "Religion")]

    assert set(answered) == {(*key, way, rule) for key in keys for rule in rules}
    assert set(map(tuple, table[["setting", "claim"]].values)) == set(keys)
    assert table.parsing.unique().tolist() == [*rules]
    assert set(table.reading) == {"free" if reading == "free" else "expected, turn"}

    # exclusion x matrix x (two roundings by identities and groups, one by events) x corrections
    assert len(table) == len(keys) * len(rules) * 2 * 2 * 5 * 4


def test_a_reading_that_one_category_lacks_leaves_the_others_theirs(monkeypatch):
    """Greedy paths are of the categories whose answers have steps; here of religion alone."""
    parameters = merged("10_empathy_gap", "demo", {"SETTINGS": "P0,S0,T0"})
    whole = lens.ways_to_read

    def without_steps(calls):
        ways = whole(calls)
        if calls[0].labels["category"] == "Religion":
            return ways
        return {name: way for name, way in ways.items() if name == "expected, turn"}

    monkeypatch.setattr(lens, "ways_to_read", without_steps)
    table = lens.paths(parameters, "smollm2-135m-instruct", {"N_RESAMPLES": 50, "SEED": 0})
    by_reading = table.groupby("reading").claim.unique().map(list)

    assert by_reading["expected, turn"] == ["Race or Ethnicity", "Nationality", "Religion"]
    assert by_reading["greedy, turn"] == ["Religion"]
    assert table.claim.unique().tolist() == by_reading["expected, turn"]
