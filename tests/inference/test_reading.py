"""Readings of scored answers: by hand, and against a loop over rows."""

import numpy as np
import pytest
from scipy import stats

from ingroup.inference import Reply, Sampling, Store, StoreError
from ingroup.inference.choices import Tree
from ingroup.inference.reading import Reading, numbers, readings, summaries
from ingroup.tables import InputError

# 1, 10 and 2, digit by digit: tokens 1 and 2, then 0 behind 1.
SAMPLING = Sampling(choices=("1", "10", "2"), temperature=1.0, seed=5)
SPELT = [[1], [1, 0], [2]]


def store_of(folder, rows, sampling=SAMPLING, spelling=None):
    """A store of one reply a row of steps; None for a call that failed."""
    tree = Tree(SPELT)
    replies = []
    for steps in rows:
        if steps is None:
            replies.append(Reply(None, "failed"))
            continue
        (chances,) = tree.probabilities(tree.split(np.array([steps])))
        replies.append(
            Reply("", "stop", probabilities=tuple(chances), mass=(1,), steps=tuple(steps))
        )
    manifest = {"trials": len(rows), "shard_size": len(rows), "sampling_choices": ["1", "10", "2"]}
    manifest |= {"spelling": {"": SPELT} if spelling is None else spelling}
    store = Store(folder, {name: told for name, told in manifest.items() if told != {}})
    with store.writing():
        store.write(0, replies)
    return store


def test_each_reading_by_hand(tmp_path):
    """1 begins with .6; behind it come 0 with .45, the end with .1 and a newline with .15."""
    steps = [*np.log([0.6, 0.4]), *np.log([0.45, 0.1, 0.15])]
    store = store_of(tmp_path, [steps, None])
    table = store.read()

    def read(how, ending):
        return numbers(table, store, SAMPLING, Reading(how, ending))[0].tolist()

    # What ends 1: .1 beside .45; .25 with a newline; .55 with everything that is no 0.
    ends = {"turn": 0.1 / 0.55, "newline": 0.25 / 0.7, "any": 0.55}
    greedy = {"turn": 10, "newline": 10, "any": 1}
    for ending, end in ends.items():
        mean = 0.6 * end * 1 + 0.6 * (1 - end) * 10 + 0.4 * 2
        assert read("expected", ending) == pytest.approx([mean, np.nan], rel=2e-3, nan_ok=True)
        assert read("greedy", ending) == pytest.approx([greedy[ending], np.nan], nan_ok=True)


def test_draws_have_the_tempered_distribution_and_depend_on_their_trial_alone(tmp_path):
    steps = [*np.log([0.6, 0.4]), *np.log([0.5, 0.1, 0.15])]
    store = store_of(tmp_path, [steps] * 4_000)
    table = store.read()
    for temperature in (0.5, 1.0):
        sampling = Sampling(choices=SAMPLING.choices, temperature=temperature, seed=5)
        drawn = numbers(table, store, sampling, Reading("drawn"))[0]
        first = np.array([0.6, 0.4]) ** (1 / temperature)
        second = np.array([0.1, 0.5]) ** (1 / temperature)
        first, second = first / first.sum(), second / second.sum()
        chances = [first[0] * second[0], first[0] * second[1], first[1]]
        counts = drawn.value_counts().reindex([1.0, 10.0, 2.0])
        assert stats.chisquare(counts, np.array(chances) * 4_000).pvalue > 0.001

    part = table.iloc[1_234:1_300]
    again = numbers(part, store, SAMPLING, Reading("drawn"))[0]
    assert again.equals(numbers(table, store, SAMPLING, Reading("drawn"))[0].loc[part.index])


def test_the_stored_mean_needs_no_steps_and_every_other_reading_does(tmp_path):
    steps = [*np.log([0.6, 0.4]), *np.log([0.5, 0.1, 0.15])]
    store = store_of(tmp_path, [steps], spelling={})
    table = store.read()
    assert numbers(table, store, SAMPLING)[0].tolist() == pytest.approx([5.9], rel=2e-3)
    assert readings(store, SAMPLING) == [Reading("expected", "turn")]
    with pytest.raises(StoreError, match="without their steps, which greedy, turn is read from"):
        numbers(table, store, SAMPLING, Reading("greedy"))


def test_where_no_answer_begins_another_no_rule_of_its_end_is_offered(tmp_path):
    letters = store_of(tmp_path / "letters", [None], spelling={"": [[1], [2], [3]]})
    spelt = store_of(tmp_path / "spelt", [None])
    greedy = Sampling(choices=SAMPLING.choices)
    assert [str(one) for one in readings(letters, greedy)] == ["greedy, turn", "expected, turn"]
    assert len(readings(spelt, greedy)) == 6
    assert len(readings(spelt, SAMPLING)) == 9


def test_nothing_is_drawn_at_temperature_0(tmp_path):
    store = store_of(tmp_path, [[*np.log([0.6, 0.4]), *np.log([0.45, 0.1, 0.15])]])
    with pytest.raises(InputError, match="READING=drawn needs a TEMPERATURE above 0"):
        numbers(store.read(), store, Sampling(choices=SAMPLING.choices), Reading("drawn"))


def test_three_numbers_sum_up_an_answer(tmp_path):
    """1 begins with .6, then 10 is likelier than 1; but .35 of 10 is less than .4 of 2."""
    steps = [*np.log([0.6, 0.4]), *np.log([0.35, 0.25, 0.15])]
    store = store_of(tmp_path, [steps, None])
    (table,) = [summaries(store.read(), store, SAMPLING)]
    ten = 0.6 * 0.35 / 0.6
    mean = (0.6 - ten) * 1 + ten * 10 + 0.4 * 2
    assert table.loc[0].tolist() == pytest.approx([2, 10, mean], rel=2e-3)
    assert table.loc[1].isna().all()

    older = store_of(tmp_path / "older", [steps], spelling={})
    assert np.isnan(summaries(older.read(), older, SAMPLING).greedy[0])
