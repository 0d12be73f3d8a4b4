"""Answers over choices: a tree of tokens, and what is read from the stored probabilities."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax

from ingroup.inference import Reply, Store
from ingroup.inference.choices import Place, Tree, agreement, expected, probabilities
from slow import defined

END = 9


def test_probabilities_by_hand():
    """Answers 1, 10 and 2, digit by digit: behind 1 comes a 0 or the end of the reply."""
    tree = Tree([(1,), (1, 0), (2,)], [END])
    assert tree.places == [Place((), (1, 2), 0), Place((1,), (0, END), 1)]
    # Of 1 and 2 the model gives 0.3 and 0.1, behind 1 it gives 0.2 to 0 and 0.05 to the end.
    logits = [np.log([[0.3, 0.1]]), np.log([[0.2, 0.05]])]
    assert tree.probabilities(logits) == pytest.approx(np.array([[0.15, 0.6, 0.25]]))
    shifted = [logits[0] + 7, logits[1] - 3]  # a constant for each prompt tells nothing
    assert tree.probabilities(shifted) == pytest.approx(tree.probabilities(logits))


def test_several_end_tokens_are_one_way_to_end():
    tree = Tree([(1,), (1, 0)], [8, END, END])
    assert tree.places[1] == Place((1,), (0, 8, END), 2)
    found = tree.probabilities([np.log([[0.5]]), np.log([[0.3, 0.2, 0.1]])])
    assert found == pytest.approx(np.array([[0.5, 0.5]]))


def test_a_way_without_another_is_no_choice():
    """[[A]] and [[B]]: only in one place is there anything to choose."""
    tree = Tree([(5, 1, 6), (5, 2, 6)], [END])
    assert tree.places == [Place((), (5,), 0), Place((5,), (1, 2), 0)]
    found = tree.probabilities([np.array([[-9.0], [-1.0]]), np.log([[0.1, 0.3], [0.2, 0.2]])])
    assert found == pytest.approx(np.array([[0.25, 0.75], [0.5, 0.5]]))


@pytest.mark.parametrize(
    ("spelt", "ends", "reason"),
    [
        ([(1, 2), (1, 2)], [END], "tokens of its own"),
        ([(1,), ()], [END], "tokens of its own"),
        ([(1, 2), (1,)], [], "no token that ends a reply"),
    ],
)
def test_answers_that_cannot_be_told_apart_are_refused(spelt, ends, reason):
    with pytest.raises(ValueError, match=reason):
        Tree(spelt, ends)
    assert len(Tree([(1, 2), (3,)], ()).places) == 1  # no answer begins another: no end is needed


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
        return rows[row].setdefault(path, log_softmax(rng.normal(scale=3, size=7)))

    tree = Tree(spelt, ends)
    logits = [np.stack([model(r, p.path)[list(p.tokens)] for r in (0, 1)]) for p in tree.places]
    found = tree.probabilities(logits)
    for row in (0, 1):
        wanted = defined(lambda path, row=row: model(row, path), spelt, ends)
        assert found[row] == pytest.approx(wanted, abs=1e-12)
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
