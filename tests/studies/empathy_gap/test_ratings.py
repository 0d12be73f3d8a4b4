"""Responses to arrays and matrices: by hand on 2 x 2 x 3, against loops, NumPy and SciPy."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from ingroup.parsing import parse_rating
from ingroup.studies.empathy_gap.ratings import (
    STATUSES,
    cell_means,
    exclude,
    from_parts,
    from_responses,
    gap_matrix,
    zscore,
)

NAN = np.nan


def table(texts, trial=None, failed=()):
    """Responses in the order of `texts`; the positions in `failed` are calls that failed."""
    reason = ["failed" if i in failed else "stop" for i in range(len(texts))]
    trial = range(len(texts)) if trial is None else trial
    return pd.DataFrame({"trial": list(trial), "text": texts, "finish_reason": reason})


# Two perceivers, two experiencers, three events; trial 11 was never answered.
TEXTS = [
    *["10", "20", "30"],
    *["40", "I can't answer that.", "60"],
    *["!!!!![]!!", "80", "90"],
    *["100", None],
]
VALUES = np.array([[[10, 20, 30], [40, NAN, 60]], [[NAN, 80, 90], [100, NAN, NAN]]])


def test_a_block_by_hand():
    ratings = from_responses(table(TEXTS, failed=[10]), (2, 2, 3), 0, 100)
    np.testing.assert_array_equal(ratings.values, VALUES)
    assert [[[STATUSES[s] for s in event] for event in row] for row in ratings.status.tolist()] == [
        [["ok", "ok", "ok"], ["ok", "refused", "ok"]],
        [["unparsable", "ok", "ok"], ["ok", "failed", "missing"]],
    ]
    counts = {"ok": 8, "refused": 1, "unparsable": 1, "failed": 1, "missing": 1}
    assert ratings.counts.to_dict() == counts
    assert ratings.counts_by_cell().loc[(1, 1)].tolist() == [1, 0, 0, 1, 1]
    assert ratings.counts_by_cell().loc[(0, 1)].tolist() == [2, 1, 0, 0, 0]


def test_the_rule_and_the_scale_reach_the_parser():
    texts = ["on a scale of 0 to 10, 8", "85", "8.5"]
    sound = from_responses(table(texts), (1, 1, 3), 0, 10)
    authors = from_responses(table(texts), (1, 1, 3), 0, 10, rule="released")
    np.testing.assert_array_equal(sound.values.ravel(), [8, NAN, 8.5])
    np.testing.assert_array_equal(authors.values.ravel(), [0, 85, 8])


def test_a_failed_call_is_failed_whatever_text_it_left():
    ratings = from_responses(table(["85", None, "85"], failed=[0]), (1, 1, 3), 0, 100)
    np.testing.assert_array_equal(ratings.values.ravel(), [NAN, NAN, 85])
    assert ratings.counts.to_dict()["failed"] == 2


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_block_equals_a_loop_over_its_rows(data):
    """Any order, any trials absent, text as strings or dictionary-encoded."""
    shape = data.draw(st.tuples(*[st.integers(1, 3)] * 3))
    trial = data.draw(st.lists(st.integers(0, np.prod(shape) - 1), unique=True))
    text = st.sampled_from(["85", "8", "I cannot", "??", "", None])
    texts = data.draw(st.lists(text, min_size=len(trial), max_size=len(trial)))
    failed = data.draw(st.sets(st.integers(0, len(trial))))
    responses = table(texts, trial, failed).astype({"trial": int})
    if data.draw(st.booleans()):
        responses = responses.astype({"text": "category", "finish_reason": "category"})
    ratings = from_responses(responses, shape, 0, 100)

    expected = {cell: (NAN, "missing") for cell in itertools.product(*map(range, shape))}
    for row, (position, reply) in enumerate(zip(trial, texts, strict=True)):
        none = reply is None or row in failed
        cell = np.unravel_index(position, shape)
        expected[cell] = (NAN, "failed") if none else parse_rating(reply, 0, 100)
    for cell, (value, status) in expected.items():
        np.testing.assert_equal(ratings.values[cell], value)
        assert STATUSES[ratings.status[cell]] == status
    assert ratings.counts.sum() == np.prod(shape)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_table_in_parts_is_the_table(data):
    """Parts of any size, in any order, each with categories of its own; some are empty."""
    shape = data.draw(st.tuples(*[st.integers(1, 3)] * 3))
    trial = data.draw(st.lists(st.integers(0, np.prod(shape) - 1), unique=True))
    texts = st.sampled_from(["85", "8", "I cannot", "??", None])
    whole = table([data.draw(texts) for _ in trial], trial, data.draw(st.sets(st.integers(0, 9))))
    whole = whole.astype({"trial": int, "text": "category"})
    cuts = sorted(data.draw(st.lists(st.integers(0, len(trial)), max_size=4)))
    places = zip([0, *cuts], [*cuts, len(trial)], strict=True)
    parts = [whole.iloc[low:high].astype({"text": object}) for low, high in places]
    parts = data.draw(st.permutations([part.astype({"text": "category"}) for part in parts]))
    expected, found = from_responses(whole, shape, 0, 100), from_parts(iter(parts), shape, 0, 100)
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(found.status, expected.status)


def test_a_text_of_many_parts_is_read_once(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "ingroup.studies.empathy_gap.ratings.parse_rating",
        lambda text, *how: asked.append(text) or parse_rating(text, *how),
    )
    parts = (table(["85", "8", None], [3 * k, 3 * k + 1, 3 * k + 2]) for k in range(4))
    found = from_parts(parts, (2, 2, 3), 0, 100)
    assert asked == ["85", "8"]
    np.testing.assert_array_equal(found.values, np.tile([85, 8, NAN], (2, 2, 1)))


def test_a_trial_of_two_parts_is_an_error():
    parts = [table(["1", "2"], [4, 2]), table(["1", "2", "3"], [3, 4, 2])]
    with pytest.raises(ValueError, match="trial 2 stands more than once"):
        from_parts(parts, (1, 1, 5), 0, 100)
    failed = [table([None], [4], failed=[0]), table(["1"], [4])]
    with pytest.raises(ValueError, match="trial 4 stands more than once"):
        from_parts(failed, (1, 1, 5), 0, 100)


@pytest.mark.parametrize(
    ("responses", "shape", "sentence"),
    [
        (table(["1"]).drop(columns="text"), (1, 1, 1), "no column 'text'"),
        (table(["1"]).drop(columns="trial"), (1, 1, 1), "no column 'trial'"),
        (table(["1"]), (1, 1), r"\(perceivers, experiencers, events\), found \(1, 1\)"),
        (table(["1"]), (1, 0, 1), r"found \(1, 0, 1\)"),
        (table(["1", "2"]), (1, 1, 1), "0 to 0, found 1"),
        (table(["1"], [-1]), (1, 1, 1), "0 to 0, found -1"),
        (table(["1", "2"], [1, 1]), (1, 1, 2), "trial 1 stands more than once"),
        (table(["1"], [0.5]), (1, 1, 1), "whole numbers, found float64"),
        (table(["1"]).assign(trial=pd.array([None], dtype="Int64")), (1, 1, 1), "whole numbers"),
        (table([85]), (1, 1, 1), "text or null, found 85"),
    ],
)
def test_a_table_that_is_no_block_is_an_error(responses, shape, sentence):
    with pytest.raises(ValueError, match=sentence):
        from_responses(responses, shape, 0, 100)


def test_exclusion_by_hand():
    # Event 0 is whole, event 1 has no rating in cell (0, 1), event 2 none in cell (1, 1).
    values = np.array([[[10, 20, 30], [40, NAN, 60]], [[70, 80, 90], [100, 110, NAN]]])
    strict = exclude(values)
    np.testing.assert_array_equal(strict.values[:, :, 0], [[10, 40], [70, 100]])
    assert strict.values.shape == (2, 2, 1)
    assert strict.kept.tolist() == [True, False, False]
    assert (strict.events_lost, strict.answers_lost) == (2, 8)
    assert strict.percent_lost == pytest.approx(66.6667, abs=1e-4)

    loose = exclude(values, "pairwise")
    np.testing.assert_array_equal(loose.values, values)
    assert (loose.events_lost, loose.answers_lost, loose.percent_lost) == (0, 2, 0)

    np.testing.assert_array_equal(cell_means(strict.values), [[10, 40], [70, 100]])
    np.testing.assert_array_equal(cell_means(loose.values), [[20, 50], [80, 105]])


def test_pairwise_loses_an_event_that_no_cell_has():
    values = VALUES.copy()
    values[:, :, 1] = NAN
    loose = exclude(values, "pairwise")
    assert loose.kept.tolist() == [True, False, True]
    assert (loose.events_lost, loose.answers_lost) == (1, 6)  # event 1's four, and two more


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(
        float,
        hnp.array_shapes(min_dims=3, max_dims=3, max_side=4),
        elements=st.one_of(st.just(NAN), st.integers(0, 100)),
    )
)
def test_exclusion_equals_a_loop_over_events(values):
    whole = [k for k in range(values.shape[2]) if not np.isnan(values[:, :, k]).any()]
    if whole:
        strict = exclude(values, "any")
        np.testing.assert_array_equal(strict.values, values[:, :, whole])
        assert np.flatnonzero(strict.kept).tolist() == whole
        assert strict.events_lost == values.shape[2] - len(whole)
        assert strict.answers_lost == values.size - strict.values.size
    else:
        with pytest.raises(ValueError, match="event"):
            exclude(values, "any")
    if not np.isnan(values).all():
        loose = exclude(values, "pairwise")
        assert loose.answers_lost == np.isnan(values).sum()
        assert np.isfinite(loose.values).sum() == np.isfinite(values).sum()


def test_a_category_in_which_every_event_is_lost_is_an_error():
    with pytest.raises(ValueError, match=r"every one of the 3 events is lost .* use 'pairwise'"):
        exclude(VALUES)
    for rule in "any", "pairwise":
        with pytest.raises(ValueError, match="none of the 3 events has a rating in any cell"):
            exclude(np.full((2, 2, 3), NAN), rule)
    with pytest.raises(ValueError, match='"any" or "pairwise", found \'all\''):
        exclude(VALUES, "all")
    with pytest.raises(ValueError, match=r"found \(2, 3\)"):
        exclude(VALUES[0])
    with pytest.raises(ValueError, match=r"found \(2, 2, 0\)"):
        exclude(VALUES[:, :, :0])


def test_cell_means_by_hand():
    np.testing.assert_array_equal(cell_means(VALUES), [[20, 50], [85, 100]])
    # 200 events of mean 2.675, a number that binary floats hold just below: 2.67 as released.
    values = np.r_[np.full(65, 2.0), np.full(135, 3.0)].reshape(1, 1, 200)
    assert cell_means(values) == 2.675
    assert cell_means(values, decimals=2) == 2.67
    assert cell_means(values, decimals=1) == 2.7


def test_one_event_is_its_own_mean():
    np.testing.assert_array_equal(cell_means(VALUES[:, :, 2:][:1]), [[30, 60]])


def test_an_empty_cell_has_no_mean():
    values = VALUES.copy()
    values[1, 0] = NAN
    with pytest.raises(ValueError, match="perceiver 1 and experiencer 0 is empty"):
        cell_means(values)


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(float, (3, 4), elements=st.integers(0, 10_000).map(lambda n: n / 100)))
def test_zscore_equals_scipy_and_the_formula(matrix):
    if np.ptp(matrix) == 0:
        with pytest.raises(ValueError, match="cells that differ"):
            zscore(matrix)
        return
    np.testing.assert_allclose(zscore(matrix), stats.zscore(matrix, axis=None))
    np.testing.assert_allclose(
        zscore(matrix), (matrix - np.mean(matrix)) / np.std(matrix), atol=1e-9
    )


def test_zscore_by_hand():
    # mean 4, squares 9 + 1 + 1 + 9 over 4 cells: standard deviation sqrt(5)
    np.testing.assert_allclose(zscore([[1, 3], [5, 7]]) * np.sqrt(5), [[-3, -1], [1, 3]])


@pytest.mark.parametrize(
    ("matrix", "sentence"),
    [
        ([[5.1, 5.1], [5.1, 5.1]], "found 5.1 in all of them"),
        ([[0.3, 0.1 + 0.2], [0.3, 0.3]], "found 0.3 in all of them"),
        ([[0, 0], [0, 0]], "found 0 in all of them"),
        ([[1, 2], [NAN, 3]], r"found none at \(1, 0\)"),
        ([1, 2, 3], r"found shape \(3,\)"),
        (np.zeros((0, 0)), r"found shape \(0, 0\)"),
    ],
)
def test_a_matrix_without_zscores_is_an_error(matrix, sentence):
    with pytest.raises(ValueError, match=sentence):
        zscore(matrix)


def block(seed=1, n=4, events=8):
    """Ratings of `n` identities; only "a person", at 0, lacks event 0; a named pair lacks 1."""
    values = np.random.default_rng(seed).integers(0, 101, (n, n, events)).astype(float)
    values[0, 2, 0] = values[1, 3, 1] = NAN
    return values


def test_gap_matrix_keeps_the_unspecified_identity_in_the_zscore():
    values = block()
    means = values[:, :, 2:].mean(axis=2)
    expected = ((means - means.mean()) / means.std())[1:, 1:]
    np.testing.assert_allclose(gap_matrix(values), expected)
    np.testing.assert_allclose(gap_matrix(values[::-1, ::-1], unspecified=3), expected[::-1, ::-1])


def test_gap_matrix_as_printed_is_the_released_way():
    """Loops over named pairs: events excluded without "a person", means of two decimals."""
    values = block()
    refused = set()
    for i, j in itertools.product(range(1, 4), repeat=2):
        refused |= {k for k in range(8) if np.isnan(values[i, j, k])}
    assert refused == {1}
    expected = np.zeros((3, 3))
    for i, j in itertools.product(range(3), repeat=2):
        kept = [values[i + 1, j + 1, k] for k in range(8) if k not in refused]
        expected[i, j] = round(sum(kept) / len(kept), 2)
    expected = (expected - np.mean(expected)) / np.std(expected)
    np.testing.assert_allclose(gap_matrix(values, as_printed=True), expected, rtol=1e-12)
    np.testing.assert_allclose(gap_matrix(values, decimals=2, separate=True), expected, rtol=1e-12)


def test_the_options_of_gap_matrix_part_from_as_printed():
    values = block()
    printed, sound = gap_matrix(values, as_printed=True), gap_matrix(values)
    unrounded = gap_matrix(values, as_printed=True, decimals=None)
    joint = gap_matrix(values, as_printed=True, separate=False)
    assert 0 < abs(unrounded - printed).max() < 1e-3
    np.testing.assert_allclose(joint, sound, atol=1e-3)
    assert abs(joint - sound).max() > 0
    assert abs(printed - sound).max() > 0.1
    np.testing.assert_allclose(unrounded, gap_matrix(values[1:, 1:], unspecified=None))


def test_gap_matrix_pairwise():
    values = block()
    expected = stats.zscore(np.nanmean(values, axis=2), axis=None)[1:, 1:]
    np.testing.assert_allclose(gap_matrix(values, exclusion="pairwise"), expected)


@pytest.mark.parametrize(
    ("values", "unspecified", "sentence"),
    [
        (block()[:3], 0, r"same identities twice, found shape \(3, 4, 8\)"),
        (block()[0], 0, r"found \(4, 8\)"),
        (block(), 4, "0 to 3, found 4"),
        (block(), -1, "0 to 3, found -1"),
        (block()[:, :, :2], 0, "every one of the 2 events is lost"),
        (np.full((3, 3, 2), 50), 0, "found 50 in all of them"),
    ],
)
def test_a_block_without_a_gap_is_an_error(values, unspecified, sentence):
    with pytest.raises(ValueError, match=sentence):
        gap_matrix(values, unspecified)
