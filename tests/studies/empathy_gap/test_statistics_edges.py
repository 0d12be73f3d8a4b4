"""What is estimated beside the gap, by the definition, and where nothing can be tested."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.formula.api import ols

from ingroup.studies.empathy_gap import statistics

NAN = np.nan
GROUPS = ["a", "b", "c", "d"]


def some_ratings(n=4, events=6, seed=0):
    rng = np.random.default_rng(seed)
    cells = 50 + 10 * rng.normal(size=(n, n, 1))
    return cells + rng.normal(size=(n, n, events))


def test_the_sd_of_relationships_is_that_of_least_squares():
    """Cells of two groups, with a level for each perceiver and for each experiencer."""
    values = some_ratings()
    table = pd.DataFrame(
        [
            {"row": row, "column": column, "x": values[row, column].mean()}
            for row, column in np.ndindex(4, 4)
            if row != column
        ]
    )

    found = statistics.relationship_sd(values, GROUPS)

    fit = ols("x ~ C(row) + C(column)", table).fit()
    assert found == pytest.approx(np.sqrt(fit.mse_resid))


def own_of(matrix):
    """The own-group effect in closed form."""
    n = len(matrix)
    return (np.trace(matrix) - matrix.sum() / n) / (n - 1)


def test_an_event_without_a_pair_of_groups_has_no_effect():
    values = some_ratings()
    values[0, 1, 2] = NAN

    found = statistics.own_group_by_event(values, GROUPS)

    expected = [own_of(values[..., event]) for event in range(6)]
    np.testing.assert_allclose(found, expected)
    assert np.isnan(found[2])
    assert np.isfinite(np.delete(found, 2)).all()


def test_a_gap_of_these_is_a_t_test_over_events():
    values = some_ratings()

    found = statistics.gap_of_these(values, GROUPS)

    effects = [own_of(values[..., event]) for event in range(6)]
    expected = stats.ttest_1samp(effects, 0)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.pvalue == pytest.approx(expected.pvalue)
    assert found.n == 6


def alike(events, *later):
    """The same effect of 1 in every event, and one more event for each later effect."""
    effects = [1.0] * events + [*later]
    return 50 + np.eye(4)[..., None] * np.array(effects)


@pytest.mark.parametrize("values", [alike(3), alike(2, 1 + 1e-11)])
def test_events_that_are_answered_alike_are_no_sample(values):
    found = statistics.gap_of_these(values, GROUPS)

    assert found.difference == pytest.approx(1)
    untold = [found.statistic, found.pvalue, found.low, found.high, found.least]
    assert np.isnan(untold).all()
    assert found.n == 3


def test_two_events_that_differ_are_a_sample():
    found = statistics.gap_of_these(alike(1, 3.0), GROUPS)

    assert found.difference == pytest.approx(2)
    assert found.statistic == pytest.approx(2)


def test_one_event_has_an_effect_and_no_test():
    found = statistics.gap_of_these(alike(1), GROUPS)

    assert found.difference == pytest.approx(1)
    assert np.isnan(found.pvalue)


def test_without_a_complete_event_there_is_no_gap_of_these():
    values = some_ratings(events=2)
    values[0, 1, 0] = NAN
    values[1, 0, 1] = NAN

    with pytest.raises(ValueError, match="no event has ratings of all pairs of groups"):
        statistics.gap_of_these(values, GROUPS)


def test_an_event_that_cannot_tell_both_kinds_has_no_effect():
    """Two groups of two names: one event lacks all cells of one name."""
    same = statistics.same_group(["a", "a", "b", "b"])
    values = some_ratings(events=5)
    own = np.eye(4, dtype=bool)
    values[own, 0] = NAN

    found = statistics.effects_by_kind(values, same)

    whole = statistics.effects_by_kind(values[..., 1:], same)
    assert found["one name"].n == 4
    assert found["two names"].difference == pytest.approx(whole["two names"].difference)
    beyond = whole["one name"].difference - whole["two names"].difference
    assert found["one name beyond two names"].difference == pytest.approx(beyond)


def test_kinds_of_pairs_give_back_what_was_put_in():
    """4 for the same name and -3 for another of its group, beside levels of both sides."""
    same = statistics.same_group([*"aaabbb"])
    rng = np.random.default_rng(1)
    levels = rng.normal(size=(6, 1, 4)) + rng.normal(size=(1, 6, 4))
    own = np.eye(6)
    values = levels + (4 * own - 3 * (same - own))[..., None]

    found = statistics.effects_by_kind(values, same)

    assert found["one name"].difference == pytest.approx(4)
    assert found["two names"].difference == pytest.approx(-3)
    assert found["one name beyond two names"].difference == pytest.approx(7)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_a_matrix_is_flat_up_to_rounding(unit):
    flat = unit * np.array([[3.0, 3 + 1e-12], [3, 3]])
    differs = unit * np.array([[3.0, 3 + 1e-10], [3, 3]])

    assert statistics.is_flat(flat)
    assert not statistics.is_flat(differs)


def test_the_first_empty_cell_is_named():
    values = some_ratings()
    values[1, 2] = NAN
    values[3, 0] = NAN

    with pytest.raises(ValueError, match="the cell of perceiver 1 and experiencer 2 is empty"):
        statistics.cell_means(values)


@pytest.mark.parametrize("cell", [(1, 2), (2, 1), (3, 3), (3, 1)])
def test_one_cell_of_named_identities_that_differs_makes_a_gap(cell):
    values = np.full((4, 4, 5), 50.0)
    values[cell] = 60
    same = np.eye(3, dtype=bool)

    row = statistics.gap(values, same, n_resamples=5, rng=np.random.default_rng(0))

    assert not row["flat"]
    in_group = cell[0] == cell[1]
    assert np.sign(row["delta"]) == (1 if in_group else -1)


@pytest.mark.parametrize("cell", [(0, 0), (0, 3), (3, 0)])
def test_a_person_alone_makes_no_gap(cell):
    values = np.full((4, 4, 5), 50.0)
    values[cell] = 60

    row = statistics.gap(values, np.eye(3, dtype=bool))

    assert row["flat"]
    assert np.isnan(row["delta"])
