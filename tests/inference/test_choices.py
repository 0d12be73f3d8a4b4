"""Answers over choices: a tree of tokens, and what is read from the stored probabilities."""

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
    expected,
    probabilities,
)
from slow import defined, greedy

END, NEWLINE = 9, 8
ENDINGS = Endings((END,), (NEWLINE,))


def test_probabilities_by_hand():
    """Answers 1, 10 and 2, digit by digit: behind 1 comes a 0 or the end of the reply."""
    tree = Tree([(1,), (1, 0), (2,)])
    assert tree.places == [Place((), (1, 2), False), Place((1,), (0,), True)]
    assert [place.looked_up(ENDINGS) for place in tree.places] == [[1, 2], [0, END, NEWLINE]]

    # Of 1 and 2 the model gives 0.3 and 0.1; behind 1 it gives 0.2 to 0, 0.05 to the end of the
    # turn, 0.15 to a newline, and so 0.6 to something else.
    steps = [np.log([[0.3, 0.1]]), np.log([[0.2, 0.05, 0.15]])]
    assert tree.probabilities(steps) == pytest.approx(np.array([[0.15, 0.6, 0.25]]))
    assert tree.probabilities(steps, "newline") == pytest.approx(np.array([[0.375, 0.375, 0.25]]))
    assert tree.probabilities(steps, "any") == pytest.approx(np.array([[0.6, 0.15, 0.25]]))


def test_the_greedy_answer_need_not_be_the_most_probable():
    """1 is the likelier digit, but what follows it is shared by 1 and 10."""
    tree = Tree([(1,), (1, 0), (2,)])
    steps = [np.log([[0.5, 0.4]]), np.log([[0.3, 0.28, 0.01]])]
    assert tree.probabilities(steps)[0].argmax() == 2
    assert tree.greedy(steps).tolist() == [1]
    assert tree.greedy(steps, "any").tolist() == [0]


def test_several_end_tokens_are_one_way_to_end():
    tree = Tree([(1,), (1, 0)])
    endings = Endings((7, END), (8,))
    assert tree.places[1].looked_up(endings) == [0, 7, END, 8]
    told = tree.places[1].steps(np.log([[0.3, 0.2, 0.1, 0.25]]), endings)
    assert np.exp(told) == pytest.approx(np.array([[0.3, 0.3, 0.25]]))
    assert tree.probabilities([np.log([[0.5]]), told]) == pytest.approx(np.array([[0.5, 0.5]]))


def test_a_model_without_a_newline_ends_with_its_turn_alone():
    tree = Tree([(1,), (1, 0)])
    told = tree.places[1].steps(np.log([[0.3, 0.1]]), Endings((END,), ()))
    steps = [np.log([[0.5]]), told]
    assert np.isfinite(told).all()
    assert tree.probabilities(steps, "newline") == pytest.approx(tree.probabilities(steps))


def test_a_way_without_another_is_no_choice():
    """[[A]] and [[B]]: only in one place is there anything to choose."""
    tree = Tree([(5, 1, 6), (5, 2, 6)])
    assert tree.places == [Place((), (5,), False), Place((5,), (1, 2), False)]
    found = tree.probabilities([np.array([[-9.0], [-1.0]]), np.log([[0.1, 0.3], [0.2, 0.2]])])
    assert found == pytest.approx(np.array([[0.25, 0.75], [0.5, 0.5]]))


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


@given(answers, end_tokens, st.integers(0, 2**32 - 1))
def test_they_are_those_of_the_definition_and_sum_to_1(spelt, ends, seed):
    rng = np.random.default_rng(seed)
    rows = [{}, {}]

    def model(row, path):
        return rows[row].setdefault(path, log_softmax(rng.normal(scale=3, size=9)))

    tree = Tree(spelt)
    endings = Endings(tuple(dict.fromkeys(ends)), (7, 8))
    steps = []
    for place in tree.places:
        asked = [model(row, place.path)[place.looked_up(endings)] for row in (0, 1)]
        steps.append(place.steps(np.stack(asked), endings))
    stored = np.hstack(steps)

    for ending in ("turn", "newline", "any"):
        found = tree.probabilities(tree.split(stored), ending)
        taken = tree.greedy(tree.split(stored), ending)
        for row in (0, 1):
            logits = partial(model, row)
            wanted = defined(logits, spelt, ends, (7, 8), ending)
            assert found[row] == pytest.approx(wanted, abs=1e-12)
            assert taken[row] == greedy(logits, spelt, ends, (7, 8), ending)
        assert found.sum(axis=1) == pytest.approx([1, 1])


def kept(folder, replies, leads=1):
    """Replies as a store gives them back."""
    manifest = {"trials": len(replies), "shard_size": 2, "sampling_choices": ["1", "3", "5"]}
    manifest["sampling_leads"] = [""] * leads
    store = Store(folder, manifest)
    with store.writing() as state:
        for shard in state.missing:
            store.write(shard, replies[slice(*store.bounds(shard))])
    return store.read()


def test_what_is_stored_is_read_again_and_a_failed_call_has_no_number(tmp_path):
    given = [(0.5, 0.25, 0.25), None, (0.0, 0.0, 1.0)]
    failed = Reply(None, "failed", error="too long")
    replies = [Reply("1", "stop", probabilities=p, mass=(1,)) if p else failed for p in given]
    responses = kept(tmp_path, replies)
    found = probabilities(responses, "135")
    assert found.shape == (3, 1, 3)
    assert np.array_equal(found[[0, 2], 0], [given[0], given[2]])
    assert np.isnan(found[1]).all()
    mean = expected(responses.iloc[1:], "135")  # a part of them too, with its index
    assert mean.index.tolist() == [1, 2]
    assert mean[0].tolist() == pytest.approx([np.nan, 5], nan_ok=True)
    assert expected(responses, "135")[0][0] == 0.5 * 1 + 0.25 * 3 + 0.25 * 5


def test_several_leads_are_columns(tmp_path):
    told = Reply("1 5", "stop", probabilities=(1, 0, 0, 0, 0.5, 0.5), mass=(1, 1))
    mean = expected(kept(tmp_path, [told, told], leads=2), "135", leads=2)
    assert mean.to_numpy().tolist() == [[1, 4], [1, 4]]


def test_where_every_call_failed_there_is_no_number(tmp_path):
    responses = kept(tmp_path, [Reply(None, "failed", error="too long")] * 2)
    assert np.isnan(probabilities(responses, "135")).all()
    assert probabilities(responses, "135", leads=2).shape == (2, 2, 3)


def test_agreement_counts_free_answers_and_how_many_are_the_chosen():
    found = agreement([5, np.nan, 3, ""], [5, 2, 4, 1], [0.1, 0.2, 0.3, 0.4])
    assert found == {
        "asked": 4, "answered": 2, "percent_answered": 50, "agree": 1, "percent_agree": 50,
        "mass": pytest.approx(25),
    }  # fmt: skip
    none = agreement([np.nan], [5], pd.Series([0.5]))
    assert (none["answered"], none["agree"]) == (0, 0)
    assert np.isnan(none["percent_agree"])


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
    ],
)
def test_beginnings_finds_whole_choices_at_the_beginning(text, begins):
    assert beginnings([text], ["1", "10", "100"]) == [begins]


def test_beginnings_takes_letters_literally():
    letters = ["[[A]]", "[[B]]"]
    assert beginnings(["[[B]]: it", "[B]", "A"], letters) == ["[[B]]", None, None]


def test_agreement_counts_texts_that_begin_with_the_greedy_answer():
    """Four texts: 5 and 3 begin with an answer, "it is 4" does not; greedily 5, 2, 4 and 1."""
    found = agreement(
        [5, 3, 4, ""], [5, 2, 4, 1], [0.2] * 4, greedy=[5, 2, 4, 1], begun=[5, 3, None, None]
    )
    assert (found["agree_greedy"], found["begin"], found["begin_greedy"]) == (2, 2, 1)
    assert agreement([5], [5], [0.2], begun=[5])["begin_greedy"] == 1  # one token decides


def test_agreement_compares_the_greedy_number_and_the_mean_too():
    """5 and 3 were written; greedily 5 and 2, and the means are 1.5 below and 0.5 above."""
    free = [5, np.nan, 3]
    found = agreement(free, [4, 2, 3], [0.2] * 3, greedy=[5, 2, 2], mean=[3.5, 9, 3.5])
    assert (found["agree"], found["agree_greedy"], found["percent_agree_greedy"]) == (1, 1, 50)
    assert found["mean_above"] == pytest.approx((-1.5 + 0.5) / 2)
    assert found["mean_apart"] == pytest.approx((1.5 + 0.5) / 2)
