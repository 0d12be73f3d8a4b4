"""Group profiles of the first study: empathy by hand, path options against the direct call."""

from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ingroup.commands.run_parameters import merged_parameters
from ingroup.stats import multiverse
from ingroup.stats.effects import bootstrap_interval
from ingroup.stats.permutation import permutation_test
from ingroup.studies.empathy_gap import answers, group_profile, stimuli
from ingroup.studies.empathy_gap import statistics as ratings
from toy import ABOUT_RELIGION

EYE = np.eye(4, dtype=bool)
GAP = {
    "exclusion": "listwise",
    "rounding": "none",
    "matrix": "with a person",
    "unit": "identities",
}


def test_empathy_by_hand():
    """Two names of A and one of B, "a person" first, two events."""
    groups = ["", "A", "A", "B"]
    values = np.zeros((4, 4, 2))
    values[0] = 1e6  # a person, who is left out
    values[:, 0] = -1e6
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

    received, given = group_profile.empathy(values, groups)

    # Event 0: B[A, A] = 25, B[A, B] = 2, B[B, A] = 6, B[B, B] = 100.
    assert received.A.tolist() == [(25 + 6) / 2 - (2 + 100) / 2, (0 + 2) / 2 - (8 + 4) / 2]
    assert given.A.tolist() == [(25 + 2) / 2 - (6 + 100) / 2, (0 + 8) / 2 - (2 + 4) / 2]
    assert received.B.tolist() == (-received.A).tolist()

    values[1, 1, 0] = np.nan  # B[A, A] is 30 then
    received, _ = group_profile.empathy(values, groups)
    assert received.A[0] == (30 + 6) / 2 - (2 + 100) / 2


def test_empathy_is_that_of_the_matrix_where_each_group_has_one_name():
    rng = np.random.default_rng(0)
    values = rng.normal(50, 10, (5, 5, 7))
    means = ratings.cell_means(values)
    z = ratings.zscore(means)

    received, _ = group_profile.empathy(values, list("abcde"))

    for k, name in enumerate("abcde"):
        of_others = np.delete(z, k, axis=1)
        expected = z[:, k].mean() - of_others.mean()
        assert received[name].mean() / means.std() == pytest.approx(expected)


def test_empathy_of_a_large_group_holds_no_more_of_the_gap():
    """Nothing but a bonus within groups: nobody receives more, whatever the size of the group."""
    groups = list("aaaaab")
    same = ratings.same_group(groups)
    values = np.repeat(7.0 * same[:, :, None], 3, axis=2)

    received, given = group_profile.empathy(values, groups)

    np.testing.assert_allclose(received, 0)
    np.testing.assert_allclose(given, 0)


def some_ratings(missing=0.02):
    rng = np.random.default_rng(5)
    cells = 8 * rng.normal(size=(5, 5, 1))
    noise = rng.normal(size=(5, 5, 30))
    values = 50 + cells + noise
    for name in range(1, 5):
        values[name, name] += 12
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
    z = ratings.gap_matrix(values, exclusion, decimals, separate)
    test = permutation_test(z, EYE, 300, 3)
    cells = values[1:, 1:] if separate else values
    interval = bootstrap_interval(ratings.exclude(cells, exclusion), EYE, rng=3)

    effect = group_profile.gap(values, EYE, **path, n_resamples=300, seed=3)

    assert effect.estimate == pytest.approx(test.statistic)
    assert effect.low == pytest.approx(interval.low)
    assert effect.high == pytest.approx(interval.high)
    assert effect.p == pytest.approx(test.pvalue)


def test_the_gap_by_groups_takes_their_mean_cells():
    names = ["a", "a", "b", "c"]
    same = ratings.same_group(names)
    z = ratings.gap_matrix(some_ratings(), "listwise")
    of_perceivers = pd.DataFrame(z).groupby(pd.Series(names)).mean()
    means = of_perceivers.T.groupby(pd.Series(names)).mean().to_numpy()
    gaps = []
    for order in permutations(range(3)):
        gaps.append(np.trace(means[:, list(order)]))
    deviations = np.abs(np.array(gaps) - means.sum() / 3)
    expected = np.mean(deviations >= deviations[0] - 1e-9)  # of 3! orders

    effect = group_profile.gap(
        some_ratings(), same, **GAP | {"unit": "groups"}, n_resamples=99, seed=3
    )

    assert effect.p == pytest.approx(expected)
    assert effect.estimate == pytest.approx(ratings.empathy_gap(z, same))


@pytest.mark.parametrize("matrix", ["with a person", "without"])
def test_the_gap_by_events(matrix):
    values = some_ratings()
    path = GAP | {"matrix": matrix, "unit": "events"}
    cells = values if matrix == "with a person" else values[1:, 1:]
    is_complete = ~np.isnan(cells).any(axis=(0, 1))
    complete = cells[:, :, is_complete]
    interval = bootstrap_interval(complete, EYE, rng=3)
    n = complete.shape[2]
    z = stats.norm.ppf(1 / 2001)  # no draw at or below 0; one is added
    t = -z * ((n - 1) / n) ** 0.5

    effect = group_profile.gap(values, EYE, **path, n_resamples=300, seed=3)

    assert effect.estimate == pytest.approx(interval.statistic)
    assert effect.low == pytest.approx(interval.low)
    assert effect.high == pytest.approx(interval.high)
    assert effect.p == pytest.approx(2 * stats.t.sf(t, n - 1))


def test_over_events_interval_and_p_agree_where_events_are_few():
    """At 7 events the draws themselves reject a true null in one of eight cases, not of twenty."""
    rng = np.random.default_rng(2)
    path = GAP | {"unit": "events"}
    n_disagreeing = 0
    rejected = []

    for seed in range(200):
        values = rng.normal(size=(5, 5, 7))
        effect = group_profile.gap(values, EYE, **path, n_resamples=9, seed=seed)
        excludes_zero = effect.low > 0 or effect.high < 0
        is_significant = effect.p < 0.05
        n_disagreeing += is_significant != excludes_zero
        rejected.append(is_significant)

    assert n_disagreeing <= 6  # where an end is within a draw of 0
    assert np.mean(rejected) < 0.10  # three standard errors


def test_paths_on_equal_ratings_draw_one_bootstrap(monkeypatch):
    """Five paths of rounding and unit, and two ways of leaving out that lose nothing: one."""
    drawn = []
    values = some_ratings(missing=0)

    def counted(*arguments, rng):
        drawn.append(arguments)
        return bootstrap_interval(*arguments, 20, rng)

    monkeypatch.setattr(group_profile, "bootstrap_interval", counted)
    group_profile._cached_interval.cache_clear()
    choices = {name: group_profile.CHOICES[name] for name in ("exclusion", "rounding", "unit")}

    for path in multiverse.paths(choices):
        group_profile.gap(values, EYE, **GAP | path, n_resamples=20, seed=1)

    assert len(drawn) == 1


def test_a_gap_without_any_difference_has_a_reason():
    values = np.full((5, 5, 3), 7.0)

    effects = group_profile.claims({"one": values}, {"one": EYE}, **GAP, n_resamples=10, seed=0)

    effect = effects["one"]
    assert np.isnan([effect.estimate, effect.low, effect.high, effect.p]).all()
    assert "all cells have the same mean" in effect.reason


def test_claims_are_of_the_categories_that_have_answers():
    values = some_ratings()
    path = GAP | {"n_resamples": 50, "seed": 0}

    effects = group_profile.claims({"one": values}, {"one": EYE, "two": EYE}, **path)

    assert effects == {"one": group_profile.gap(values, EYE, **path)}


OPTIONS = {"N_RESAMPLES": 20, "SEED": 0}
PARAMETERS = ABOUT_RELIGION | {
    "SETTINGS": ["P0,S0,T0", "P1,S0,T0"],
    "CATEGORIES": [],
    "PARSING": "sound",
    "EXCLUSION": "listwise",
    "TEMPERATURE": 0.0,
}
CATEGORIES = list(stimuli.categories())
FIRST_SETTING = [("P0,S0,T0", category) for category in CATEGORIES]
STORED = [*FIRST_SETTING, ("P1,S0,T0", "Religion")]


@pytest.fixture
def jobs_read(monkeypatch):
    """Jobs whose answers were read; there are none to P1,S0,T0 of two categories."""
    read = []

    def load(job, rule="sound", reading=None):
        read.append((*job.labels.values(), job.mode, rule))
        rng = np.random.default_rng(len(job.design))
        values = rng.normal(50, 10, job.design.blocks[0].shape)
        statuses = np.zeros(values.shape, dtype=np.int8)
        return answers.Ratings(values, statuses)

    def stored(jobs):
        return [job for job in jobs if job.key[1:] in STORED]

    monkeypatch.setattr(answers, "load", load)
    monkeypatch.setattr("ingroup.inference.job.answered_jobs", stored)
    without_steps = SimpleNamespace(manifest={})
    monkeypatch.setattr("ingroup.synthesis.stored", lambda job: without_steps)
    return read


def test_views_read_every_category_of_the_first_setting(jobs_read):
    first_names = [stimuli.identities(category).identity[1] for category in CATEGORIES]

    views = group_profile.views(PARAMETERS, "org/one", dict.fromkeys(first_names, "shared"))

    assert jobs_read == [(*key, "free text", "sound") for key in FIRST_SETTING]
    views_of = [(view.measure, view.draw) for view in views]
    assert views_of == [
        (measure, name) for name in CATEGORIES for measure in group_profile.MEASURES
    ]
    shapes = [view.items.shape for view in views[::2]]
    assert shapes == [(2, 5), (2, 21), (2, 5)]
    for view in views:
        assert "shared" in view.items


@pytest.mark.usefixtures("jobs_read")
def test_effects_are_those_of_events_in_the_first_setting():
    trials_of_religion = 36 * 2
    values = np.random.default_rng(trials_of_religion).normal(50, 10, (6, 6, 2))
    groups = stimuli.identities("Religion").group[1:]
    test = ratings.gap_of_these(values[1:, 1:], groups)

    effects = group_profile.effects(PARAMETERS, "org/one")

    assert list(effects) == CATEGORIES
    assert len(effects) == 2
    assert effects.Religion.mean() == pytest.approx(test.difference)


@pytest.mark.parametrize(
    ("reading", "way", "name", "rules"),
    [
        ("free", "free text", "free", ["sound", "released"]),
        ("expected", "scored", "expected, turn", ["sound"]),
    ],
)
def test_paths_are_of_what_is_stored_and_rules_of_reading_are_a_choice_for_texts(
    jobs_read, reading, way, name, rules
):
    table = group_profile.paths(PARAMETERS | {"READING": reading}, "org/one", OPTIONS)

    assert set(jobs_read) == {(*key, way, rule) for key in STORED for rule in rules}
    assert set(zip(table.setting, table.claim, strict=True)) == set(STORED)
    assert table.parsing.unique().tolist() == rules
    assert set(table.reading) == {name}
    # exclusion x matrix x (two roundings by identities and groups, one by events) x corrections
    assert len(table) == len(STORED) * len(rules) * 2 * 2 * 5 * 4


def test_a_reading_that_one_category_lacks_leaves_the_others_theirs(monkeypatch):
    """Greedy paths are of the categories whose answers have steps; here of religion alone."""
    parameters = merged_parameters("10_empathy_gap", "demo", {"SETTINGS": "P0,S0,T0"})
    ways_to_read = group_profile.ways_to_read

    def without_steps(jobs):
        ways = ways_to_read(jobs)
        if jobs[0].labels["category"] == "Religion":
            return ways
        return {name: way for name, way in ways.items() if name == "expected, turn"}

    monkeypatch.setattr(group_profile, "ways_to_read", without_steps)

    table = group_profile.paths(parameters, "smollm2-135m-instruct", {"N_RESAMPLES": 50, "SEED": 0})

    claims = table.groupby("reading").claim.unique().map(list)
    assert claims["expected, turn"] == ["Race or Ethnicity", "Nationality", "Religion"]
    assert claims["greedy, turn"] == ["Religion"]
    assert table.claim.unique().tolist() == claims["expected, turn"]
