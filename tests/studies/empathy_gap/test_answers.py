"""Responses to arrays, against a loop over rows; the expected rating, by hand and a loop."""

import itertools
import math
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingroup.parsing import parse_rating
from ingroup.studies.empathy_gap.answers import STATUSES, expected_ratings, from_parts

NAN = np.nan


def table(texts, trial=None, failed=()):
    """Responses in the order of `texts`; the positions in `failed` are calls that failed."""
    reason = ["failed" if i in failed else "stop" for i in range(len(texts))]
    trial = range(len(texts)) if trial is None else trial
    told = pd.DataFrame({"trial": list(trial), "text": texts, "finish_reason": reason})
    return told.astype({"trial": int})


def one_row(texts, high=100, failed=(), rule="sound"):
    """The ratings of one perceiver and experiencer."""
    return from_parts([table(texts, None, failed)], (1, 1, len(texts)), 0, high, rule)


def test_the_rule_and_the_scale_reach_the_parser():
    texts = ["on a scale of 0 to 10, 8", "85", "8.5"]
    np.testing.assert_array_equal(one_row(texts, 10).values.ravel(), [8, NAN, 8.5])
    np.testing.assert_array_equal(one_row(texts, 10, rule="released").values.ravel(), [0, 85, 8])


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_block_equals_a_loop_over_its_rows(data):
    """Any trials absent, in parts of any size and order, each with categories of its own."""
    shape = data.draw(st.tuples(*[st.integers(1, 3)] * 3))
    trial = data.draw(st.lists(st.integers(0, np.prod(shape) - 1), unique=True))
    text = st.sampled_from(["85", "8", "I cannot", "??", "", None])
    texts = data.draw(st.lists(text, min_size=len(trial), max_size=len(trial)))
    failed = data.draw(st.sets(st.integers(0, len(trial))))
    whole = table(texts, trial, failed)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(trial)), max_size=4)))
    parts = [whole.iloc[low:high] for low, high in itertools.pairwise([0, *cuts, len(trial)])]
    if data.draw(st.booleans()):
        parts = [part.astype({"text": "category", "finish_reason": "category"}) for part in parts]
    ratings = from_parts(iter(data.draw(st.permutations(parts))), shape, 0, 100)

    expected = {cell: (NAN, "missing") for cell in itertools.product(*map(range, shape))}
    for row, (position, reply) in enumerate(zip(trial, texts, strict=True)):
        none = reply is None or row in failed
        cell = np.unravel_index(position, shape)
        expected[cell] = (NAN, "failed") if none else parse_rating(reply, 0, 100)
    for cell, (value, status) in expected.items():
        np.testing.assert_equal(ratings.values[cell], value)
        assert STATUSES[ratings.status[cell]] == status
    assert +Counter(ratings.counts.to_dict()) == Counter(s for _, s in expected.values())


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


# --- the expected rating

TYPE = pa.list_(pa.struct([("token", pa.string()), ("logprob", pa.float32())]))


def expected(texts, tops, high=100, order=slice(None)):
    """Of replies and the probabilities of their first tokens, the rows in some order."""
    lists = [top and [{"token": t, "logprob": math.log(p)} for t, p in top] for top in tops]
    column = pd.array(pa.array(lists, TYPE), dtype=pd.ArrowDtype(TYPE))
    rows = table(texts, failed=[i for i, text in enumerate(texts) if text is None])
    rows = rows.assign(top_logprobs=column).iloc[order]
    return expected_ratings(rows, from_parts([rows], (1, 1, len(texts)), 0, high), 0, high)


def test_an_expected_rating_by_hand():
    """(0.5 x 70 + 0.25 x 80 + 0.125 x 40) / 0.875 = 60 / 0.875."""
    top = [("70", 0.5), (" 80", 0.25), ("40", 0.125), ("I", 0.0625), ("400", 0.03)]
    found = expected(["70"], [top])
    assert found.ratings.values.item() == pytest.approx(60 / 0.875, rel=1e-6)
    assert found.mass == pytest.approx(0.875)
    assert (found.single_token, found.holds) == (1.0, True)
    # Only numbers of the scale count.
    found = expected(["7"], [[("7", 0.6), ("9", 0.2), ("70", 0.2)]], high=10)
    assert found.ratings.values.item() == pytest.approx((4.2 + 1.8) / 0.8, rel=1e-6)


def test_what_is_no_rating_stays_what_it_was():
    top = [("70", 0.9), ("I", 0.1)]
    texts = ["70", "I cannot answer that.", "no idea", None, "I would say 70", "70"]
    tops = [top, [("I", 1.0)], [("no", 1.0)], None, [("I", 0.9), ("70", 0.1)], None]
    found = expected(texts, tops)
    # The last two: words before the number, and a server that sent no probabilities.
    statuses = [STATUSES[k] for k in found.ratings.status.ravel()]
    assert statuses == ["ok", "refused", "unparsable", "failed", "unparsable", "unparsable"]
    assert np.isnan(found.ratings.values.ravel()).tolist() == [False] + [True] * 5
    assert found.single_token == pytest.approx(1 / 3)
    assert not found.holds


def test_numbers_spelt_digit_by_digit_do_not_hold():
    found = expected(["72", "5", "100"], [[("7", 0.9), ("8", 0.1)], [("5", 1.0)], [("1", 0.7)]])
    assert found.single_token == pytest.approx(1 / 3)
    assert not found.holds
    # 10 begins with "1": only its own token tells that it is one.
    spelt = [[("8", 0.5), ("1", 0.45)], [("7", 0.9), ("1", 0.1)]]
    found = expected(["8", "7"], spelt, high=10)
    assert (found.single_token, found.holds) == (1.0, False)
    assert expected(["8", "7"], [[*spelt[0], ("10", 0.01)], spelt[1]], high=10).holds


def test_a_block_without_ratings_or_probabilities():
    found = expected(["I cannot answer that."], [[("I", 1.0)]])
    assert np.isnan([found.single_token, found.mass]).all()
    assert not found.holds
    with pytest.raises(ValueError, match="without log-probabilities"):
        expected_ratings(table(["70"]), one_row(["70"]), 0, 100)


def test_rows_may_stand_in_any_order():
    for order in (slice(None), slice(None, None, -1)):
        found = expected(["70", "20"], [[("70", 1.0)], [("20", 0.5), ("30", 0.5)]], order=order)
        assert found.ratings.values.ravel().tolist() == [70.0, pytest.approx(25.0)]


TOKENS = st.sampled_from(["0", "7", " 7", "72", "100", "101", "I", "", "٣", "7.", "-5", "\n50"])
TOP = st.lists(st.tuples(TOKENS, st.floats(0.001, 1.0)), min_size=1, max_size=20)


@settings(max_examples=50, deadline=None)
@given(st.lists(TOP, min_size=1, max_size=6))
def test_an_expected_rating_against_a_loop(tops):
    texts = [top[0][0] for top in tops]
    greedy, found = one_row(texts).values.ravel(), expected(texts, tops).ratings.values.ravel()
    for top, rating, value in zip(tops, greedy, found, strict=True):
        pairs = [(int(t), p) for t, p in top if t.strip().isascii() and t.strip().isdigit()]
        pairs = [(v, p) for v, p in pairs if 0 <= v <= 100]
        word = top[0][0].strip()
        if word.isascii() and word.isdigit() and int(word) == rating:
            assert value == pytest.approx(sum(v * p for v, p in pairs) / sum(p for _, p in pairs))
            assert min(v for v, _ in pairs) - 1e-6 <= value <= max(v for v, _ in pairs) + 1e-6
        else:
            assert math.isnan(value)
