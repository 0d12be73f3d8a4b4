"""The expected rating against a loop, and against an example done by hand."""

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingroup.studies.empathy_gap import ratings
from ingroup.studies.empathy_gap.expectation import expected_ratings

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
    greedy = ratings.from_responses(table, shape, 0, high)
    return expected_ratings(table, greedy, 0, high)


def statuses(found):
    return [ratings.STATUSES[k] for k in found.ratings.status.ravel()]


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
    tops = [[("7", 0.9), ("8", 0.1)], [("5", 1.0)], [("1", 0.7), ("9", 0.3)]]
    found = expected(["72", "5", "100"], tops)
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
    assert math.isnan(found.single_token)
    assert math.isnan(found.mass)
    assert not found.holds


def test_rows_may_stand_in_any_order():
    texts, tops = ["70", "20"], [[("70", 1.0)], [("20", 0.5), ("30", 0.5)]]
    table = responses(texts, tops)
    greedy = ratings.from_responses(table, (1, 2, 1), 0, 100)
    for rows in (table, table.iloc[::-1]):
        found = expected_ratings(rows, greedy, 0, 100)
        assert found.ratings.values.ravel().tolist() == [70.0, pytest.approx(25.0)]


def test_responses_without_probabilities_are_refused():
    table = responses(["70"], [[("70", 1.0)]]).drop(columns="top_logprobs")
    greedy = ratings.from_responses(table, (1, 1, 1), 0, 100)
    with pytest.raises(ValueError, match="without log-probabilities"):
        expected_ratings(table, greedy, 0, 100)


TOKENS = st.sampled_from(["0", "7", " 7", "72", "100", "101", "I", "", "٣", "7.", "-5", "\n50"])
TOP = st.lists(st.tuples(TOKENS, st.floats(0.001, 1.0)), min_size=1, max_size=20)


@given(st.lists(TOP, min_size=1, max_size=6))
def test_against_a_loop(tops):
    texts = [top[0][0] for top in tops]
    table = responses(texts, tops)
    greedy = ratings.from_responses(table, (1, 1, len(texts)), 0, 100)
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
