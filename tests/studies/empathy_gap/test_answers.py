"""Responses to arrays: by hand on 2 x 2 x 3, against loops; the expected rating too."""

import itertools
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingroup.parsing import parse_rating
from ingroup.studies.empathy_gap.answers import (
    STATUSES,
    expected_ratings,
    from_parts,
    from_responses,
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


def test_the_rule_and_the_scale_reach_the_parser():
    texts = ["on a scale of 0 to 10, 8", "85", "8.5"]
    sound = from_responses(table(texts), (1, 1, 3), 0, 10)
    released = from_responses(table(texts), (1, 1, 3), 0, 10, rule="released")
    np.testing.assert_array_equal(sound.values.ravel(), [8, NAN, 8.5])
    np.testing.assert_array_equal(released.values.ravel(), [0, 85, 8])


def test_a_failed_call_is_failed_whatever_text_it_left():
    ratings = from_responses(table(["85", None, "85"], failed=[0]), (1, 1, 3), 0, 100)
    np.testing.assert_array_equal(ratings.values.ravel(), [NAN, NAN, 85])
    assert ratings.counts["failed"] == 2


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
        "ingroup.studies.empathy_gap.answers.parse_rating",
        lambda text, *how: asked.append(text) or parse_rating(text, *how),
    )
    parts = (table(["85", "8", None], [3 * k, 3 * k + 1, 3 * k + 2]) for k in range(4))
    found = from_parts(parts, (2, 2, 3), 0, 100)
    assert asked == ["85", "8"]
    np.testing.assert_array_equal(found.values, np.tile([85, 8, NAN], (2, 2, 1)))


@pytest.mark.parametrize(
    ("tables", "trial"),
    [
        ([table(["1", "2"], [4, 2]), table(["1", "2", "3"], [3, 4, 2])], 2),
        ([table([None], [4], failed=[0]), table(["1"], [4])], 4),
    ],
)
def test_a_trial_of_two_parts_is_an_error(tables, trial):
    with pytest.raises(ValueError, match=f"trial {trial} stands more than once"):
        from_parts(tables, (1, 1, 5), 0, 100)


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


TYPE = pa.list_(pa.struct([("token", pa.string()), ("logprob", pa.float32())]))


def responses(texts, tops):
    column = pa.array(
        [top and [{"token": t, "logprob": math.log(p)} for t, p in top] for top in tops], TYPE
    )
    return pd.DataFrame(
        {
            "trial": range(len(texts)),
            "text": texts,
            "finish_reason": ["failed" if text is None else "stop" for text in texts],
            "top_logprobs": pd.array(column, dtype=pd.ArrowDtype(TYPE)),
        }
    )


def expected(texts, tops, high=100):
    table = responses(texts, tops)
    shape = (1, 1, len(texts))
    greedy = from_responses(table, shape, 0, high)
    return expected_ratings(table, greedy, 0, high)


def statuses(found):
    return [STATUSES[k] for k in found.ratings.status.ravel()]


def test_by_hand():
    """(0.5 x 70 + 0.25 x 80 + 0.125 x 40) / 0.875 = 60 / 0.875."""
    top = [("70", 0.5), (" 80", 0.25), ("40", 0.125), ("I", 0.0625), ("400", 0.03)]
    found = expected(["70"], [top])
    assert found.ratings.values.item() == pytest.approx(60 / 0.875, rel=1e-6)
    assert found.mass == pytest.approx(0.875)
    assert (found.single_token, found.holds) == (1.0, True)


def test_only_numbers_of_the_scale_count():
    found = expected(["7"], [[("7", 0.6), ("9", 0.2), ("70", 0.2)]], high=10)
    assert found.ratings.values.item() == pytest.approx((4.2 + 1.8) / 0.8, rel=1e-6)


def test_what_is_no_rating_stays_what_it_was():
    top = [("70", 0.9), ("I", 0.1)]
    texts = ["70", "I cannot answer that.", "no idea", None, "I would say 70", "70"]
    tops = [top, [("I", 1.0)], [("no", 1.0)], None, [("I", 0.9), ("70", 0.1)], None]
    found = expected(texts, tops)
    # The last two: words before the number, and a server that sent no probabilities.
    assert statuses(found) == ["ok", "refused", "unparsable", "failed", "unparsable", "unparsable"]
    assert np.isnan(found.ratings.values.ravel()).tolist() == [False] + [True] * 5
    assert found.single_token == pytest.approx(1 / 3)
    assert not found.holds


def test_numbers_spelt_digit_by_digit_do_not_hold():
    found = expected(["72", "5", "100"], [[("7", 0.9), ("8", 0.1)], [("5", 1.0)], [("1", 0.7)]])
    assert found.single_token == pytest.approx(1 / 3)
    assert not found.holds


def test_single_digits_alone_do_not_show_that_ten_is_one_token():
    """Spelt digit by digit, 10 begins with "1": only its own token tells that it is one."""
    spelt = [[("8", 0.5), ("1", 0.45)], [("7", 0.9), ("1", 0.1)]]
    found = expected(["8", "7"], spelt, high=10)
    assert (found.single_token, found.holds) == (1.0, False)
    assert expected(["8", "7"], [[*spelt[0], ("10", 0.01)], spelt[1]], high=10).holds


def test_a_block_without_ratings():
    found = expected(["I cannot answer that."], [[("I", 1.0)]])
    assert np.isnan([found.single_token, found.mass]).all()
    assert not found.holds


def test_rows_may_stand_in_any_order():
    texts, tops = ["70", "20"], [[("70", 1.0)], [("20", 0.5), ("30", 0.5)]]
    table = responses(texts, tops)
    greedy = from_responses(table, (1, 2, 1), 0, 100)
    for rows in (table, table.iloc[::-1]):
        found = expected_ratings(rows, greedy, 0, 100)
        assert found.ratings.values.ravel().tolist() == [70.0, pytest.approx(25.0)]


def test_responses_without_probabilities_are_refused():
    table = responses(["70"], [[("70", 1.0)]]).drop(columns="top_logprobs")
    greedy = from_responses(table, (1, 1, 1), 0, 100)
    with pytest.raises(ValueError, match="without log-probabilities"):
        expected_ratings(table, greedy, 0, 100)


TOKENS = st.sampled_from(["0", "7", " 7", "72", "100", "101", "I", "", "٣", "7.", "-5", "\n50"])
TOP = st.lists(st.tuples(TOKENS, st.floats(0.001, 1.0)), min_size=1, max_size=20)


@given(st.lists(TOP, min_size=1, max_size=6))
def test_against_a_loop(tops):
    texts = [top[0][0] for top in tops]
    table = responses(texts, tops)
    greedy = from_responses(table, (1, 1, len(texts)), 0, 100)
    found = expected_ratings(table, greedy, 0, 100).ratings.values.ravel()
    for top, rating, value in zip(tops, greedy.values.ravel(), found, strict=True):
        pairs = [(int(t), p) for t, p in top if t.strip().isascii() and t.strip().isdigit()]
        pairs = [(v, p) for v, p in pairs if 0 <= v <= 100]
        word = top[0][0].strip()
        if word.isascii() and word.isdigit() and int(word) == rating:
            assert value == pytest.approx(sum(v * p for v, p in pairs) / sum(p for _, p in pairs))
            assert min(v for v, _ in pairs) - 1e-6 <= value <= max(v for v, _ in pairs) + 1e-6
        else:
            assert math.isnan(value)
