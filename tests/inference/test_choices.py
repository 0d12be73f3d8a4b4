"""Scored answers: a tree of tokens, and what is read from the stored probabilities."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax

from ingroup.inference import Reply, Store
from ingroup.inference.choices import (
    Endings,
    Place,
    Tree,
    agreement,
    beginnings,
    expected_values,
    probabilities,
)
from slow import defined, greedy

END = 9
NEWLINE = 8
ENDINGS = Endings((END,), (NEWLINE,))

# Answers 1, 10 and 2, digit by digit: behind 1 comes a 0 or the end of the reply.
DIGITS = [(1,), (1, 0), (2,)]


def logs(*probabilities):
    """Logarithms of the probabilities of one row."""
    return np.log([probabilities])


def test_an_end_is_looked_up_where_an_answer_may_go_on():
    tree = Tree(DIGITS)

    at_start, behind_1 = tree.places

    assert at_start == Place((), (1, 2), False)
    assert behind_1 == Place((1,), (0,), True)
    assert at_start.ids_to_look_up(ENDINGS) == [1, 2]
    assert behind_1.ids_to_look_up(ENDINGS) == [0, END, NEWLINE]


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        ("turn", [0.15, 0.6, 0.25]),
        ("newline", [0.375, 0.375, 0.25]),
        ("any", [0.6, 0.15, 0.25]),
    ],
)
def test_probabilities_by_hand(ending, expected):
    tree = Tree(DIGITS)
    first_digit = logs(0.3, 0.1)

    # Behind 1: 0.2 for 0, 0.05 for the end of the turn, 0.15 for a newline, so 0.6 for the rest.
    behind_1 = logs(0.2, 0.05, 0.15)

    probabilities = tree.probabilities([first_digit, behind_1], ending)

    assert probabilities == pytest.approx(np.array([expected]))


def test_the_end_of_the_turn_is_the_default_rule():
    tree = Tree(DIGITS)
    steps = [logs(0.3, 0.1), logs(0.2, 0.05, 0.15)]

    assert np.array_equal(tree.probabilities(steps), tree.probabilities(steps, "turn"))


@pytest.mark.parametrize(
    ("first_digit", "behind_1", "expected"),
    [
        ((0.4, 0.4), (0.1, 0.3, 0.0), True),  # 1 and 2
        ((0.5, 0.4), (0.2, 0.2, 0.0), True),  # 10 and the end behind 1
        ((0.4, 0.5), (0.2, 0.2, 0.0), False),  # the answer is 2, and that tie is behind 1
        ((0.5, 0.4), (0.3, 0.2, 0.2), False),  # a newline ends no number here
    ],
)
def test_a_tie_counts_on_the_way_of_the_greedy_answer_alone(first_digit, behind_1, expected):
    tree = Tree(DIGITS)
    steps = [logs(*first_digit), np.log([np.maximum(behind_1, 1e-30)])]

    assert tree.is_tied(steps).tolist() == [expected]


def test_the_greedy_answer_need_not_be_the_most_probable():
    """1 is the likelier digit, but what follows it is shared by 1 and 10."""
    tree = Tree(DIGITS)
    steps = [logs(0.5, 0.4), logs(0.3, 0.28, 0.01)]

    assert tree.probabilities(steps)[0].argmax() == 2
    assert tree.greedy_answers(steps).tolist() == [1]
    assert tree.greedy_answers(steps, "any").tolist() == [0]


def test_several_end_tokens_are_one_way_to_end():
    tree = Tree([(1,), (1, 0)])
    endings = Endings((7, END), (8,))
    behind_1 = tree.places[1]

    steps = behind_1.merge_ends(logs(0.3, 0.2, 0.1, 0.25), endings)
    probabilities = tree.probabilities([logs(0.5), steps])

    assert behind_1.ids_to_look_up(endings) == [0, 7, END, 8]
    assert np.exp(steps) == pytest.approx(np.array([[0.3, 0.3, 0.25]]))
    assert probabilities == pytest.approx(np.array([[0.5, 0.5]]))


def test_a_model_without_a_newline_ends_with_its_turn_alone():
    tree = Tree([(1,), (1, 0)])
    no_newline = Endings((END,), ())

    behind_1 = tree.places[1].merge_ends(logs(0.3, 0.1), no_newline)
    steps = [logs(0.5), behind_1]

    assert np.isfinite(behind_1).all()
    assert tree.probabilities(steps, "newline") == pytest.approx(tree.probabilities(steps))


def test_a_token_without_an_alternative_is_certain():
    """[[A]] and [[B]]: only between the brackets is there anything to choose."""
    tree = Tree([(5, 1, 6), (5, 2, 6)])
    brackets = np.array([[-9.0], [-1.0]])
    letters = np.log([[0.1, 0.3], [0.2, 0.2]])

    probabilities = tree.probabilities([brackets, letters])

    assert tree.places == [Place((), (5,), False), Place((5,), (1, 2), False)]
    assert probabilities == pytest.approx(np.array([[0.25, 0.75], [0.5, 0.5]]))


@pytest.mark.parametrize("spelt", [[(1, 2), (1, 2)], [(1,), ()]])
def test_answers_that_cannot_be_told_apart_are_refused(spelt):
    with pytest.raises(ValueError, match="tokens of its own"):
        Tree(spelt)


def test_an_end_is_needed_where_one_answer_begins_another():
    assert Tree([(1, 2), (1,)]).needs_an_end
    assert not Tree([(1, 2), (3,)]).needs_an_end


answers = st.lists(
    st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple),
    min_size=1,
    max_size=12,
    unique=True,
)
end_tokens = st.lists(st.integers(4, 6), min_size=1, max_size=3)
NEWLINES = (7, 8)
ROWS = (0, 1)


class RandomModel:
    """Random logits of nine tokens behind each beginning, the same whenever they are asked for."""

    def __init__(self, rng):
        self.rng = rng
        self.known = {}

    def __call__(self, row, path):
        if (row, path) not in self.known:
            self.known[row, path] = log_softmax(self.rng.normal(scale=3, size=9))
        return self.known[row, path]


@given(answers, end_tokens, st.integers(0, 2**32 - 1))
def test_they_are_those_of_the_definition_and_sum_to_1(spelt, ends, seed):
    model = RandomModel(np.random.default_rng(seed))
    tree = Tree(spelt)
    endings = Endings(tuple(dict.fromkeys(ends)), NEWLINES)

    steps = []
    for place in tree.places:
        looked_up = place.ids_to_look_up(endings)
        logits = [model(row, place.path)[looked_up] for row in ROWS]
        steps.append(place.merge_ends(np.stack(logits), endings))
    stored = tree.split(np.hstack(steps))

    for ending in ("turn", "newline", "any"):
        probabilities = tree.probabilities(stored, ending)
        greedy_answers = tree.greedy_answers(stored, ending)

        assert probabilities.sum(axis=1) == pytest.approx([1, 1])
        for row in ROWS:
            logits_of_row = partial(model, row)
            expected = defined(logits_of_row, spelt, ends, NEWLINES, ending)
            expected_greedy = greedy(logits_of_row, spelt, ends, NEWLINES, ending)
            assert probabilities[row] == pytest.approx(expected, abs=1e-12)
            assert greedy_answers[row] == expected_greedy


def stored_and_read(folder, replies, leads=1):
    """Replies as a store gives them back."""
    manifest = {
        "trials": len(replies),
        "shard_size": 2,
        "sampling_choices": ["1", "3", "5"],
        "sampling_leads": [""] * leads,
    }
    store = Store(folder, manifest)

    with store.writing() as state:
        for shard in state.missing:
            start, stop = store.bounds(shard)
            store.write(shard, replies[start:stop])

    return store.read()


FAILED = Reply(None, "failed", error="too long")


@pytest.fixture
def responses(tmp_path):
    """A scored reply, a failed call and a reply that is certainly 5."""
    replies = [
        Reply("1", "stop", probabilities=(0.5, 0.25, 0.25), mass=(1,)),
        FAILED,
        Reply("1", "stop", probabilities=(0.0, 0.0, 1.0), mass=(1,)),
    ]
    return stored_and_read(tmp_path, replies)


def test_stored_probabilities_are_read_and_a_failed_call_has_none(responses):
    read = probabilities(responses, "135")

    assert read.shape == (3, 1, 3)
    assert np.array_equal(read[0, 0], [0.5, 0.25, 0.25])
    assert np.isnan(read[1]).all()
    assert np.array_equal(read[2, 0], [0.0, 0.0, 1.0])


def test_the_mean_weighs_each_choice_by_its_probability(responses):
    mean = expected_values(responses, "135")

    assert mean[0][0] == 0.5 * 1 + 0.25 * 3 + 0.25 * 5


def test_the_mean_of_a_part_keeps_its_index(responses):
    mean = expected_values(responses.iloc[1:], "135")

    assert mean.index.tolist() == [1, 2]
    assert mean[0].tolist() == pytest.approx([np.nan, 5], nan_ok=True)


def test_several_leads_are_columns(tmp_path):
    reply = Reply("1 5", "stop", probabilities=(1, 0, 0, 0, 0.5, 0.5), mass=(1, 1))
    responses = stored_and_read(tmp_path, [reply, reply], leads=2)

    mean = expected_values(responses, "135", n_prefixes=2)

    assert mean.to_numpy().tolist() == [[1, 4], [1, 4]]


def test_where_every_call_failed_there_is_no_number(tmp_path):
    responses = stored_and_read(tmp_path, [FAILED, FAILED])

    assert np.isnan(probabilities(responses, "135")).all()
    assert probabilities(responses, "135", n_prefixes=2).shape == (2, 2, 3)


def test_agreement_counts_free_answers_and_how_many_are_the_chosen():
    free = [5, np.nan, 3, ""]
    chosen = [5, 2, 4, 1]

    counts = agreement(free, chosen, [0.1, 0.2, 0.3, 0.4])

    assert counts == {
        "asked": 4,
        "answered": 2,
        "percent_answered": 50,
        "agree": 1,
        "percent_agree": 50,
        "option_mass": pytest.approx(25),
    }


def test_without_a_free_answer_the_share_that_agrees_is_unknown():
    counts = agreement([np.nan], [5], pd.Series([0.5]))

    assert counts["answered"] == 0
    assert counts["agree"] == 0
    assert np.isnan(counts["percent_agree"])


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("100", "100"),
        (" \n10", "10"),
        ("10% of people", "10"),
        ("10.", "10"),
        ("1, or 10", "1"),
        ("1000", None),  # not 100, nor 10
        ("10.5", None),
        ("7", None),  # not a choice
        ("My answer is 10", None),
        ("", None),
        (None, None),
        (np.nan, None),
    ],
)
def test_beginnings_finds_whole_choices_at_the_beginning(text, begins):
    assert beginnings([text], ["1", "10", "100"]) == [begins]


def test_beginnings_takes_letters_literally():
    texts = ["[[B]]: it", "[B]", "A"]

    assert beginnings(texts, ["[[A]]", "[[B]]"]) == ["[[B]]", None, None]


def test_agreement_counts_texts_that_begin_with_the_greedy_answer():
    """Four texts: 5 and 3 begin with an answer, "it is 4" does not."""
    free = [5, 3, 4, ""]
    most_probable = [5, 2, 4, 1]
    first_choices = [5, 3, None, None]

    counts = agreement(
        free,
        most_probable,
        [0.2] * 4,
        greedy=most_probable,
        begun=first_choices,
    )

    assert counts["agree_greedy"] == 2
    assert counts["begin"] == 2
    assert counts["begin_greedy"] == 1


def test_where_one_token_decides_the_most_probable_answer_is_the_greedy_one():
    counts = agreement([5], [5], [0.2], begun=[5])

    assert counts["begin_greedy"] == 1


def test_agreement_compares_the_greedy_number_and_the_mean_too():
    """5 and 3 were written; greedily 5 and 2, and the means are 1.5 below and 0.5 above."""
    counts = agreement(
        [5, np.nan, 3],
        [4, 2, 3],
        [0.2] * 3,
        greedy=[5, 2, 2],
        mean=[3.5, 9, 3.5],
    )

    assert counts["agree"] == 1
    assert counts["agree_greedy"] == 1
    assert counts["percent_agree_greedy"] == 50
    assert counts["mean_above"] == pytest.approx((-1.5 + 0.5) / 2)
    assert counts["mean_apart"] == pytest.approx((1.5 + 0.5) / 2)
