"""Readings of scored answers: by hand, and against a loop over rows."""

import numpy as np
import pytest
from scipy import stats

from ingroup.inference import Reply, Sampling, Store, StoreError
from ingroup.inference.choices import Tree
from ingroup.inference.reading import Reading, ratings_from_scores, readings, three_readings
from ingroup.tables import InputError

CHOICES = ("1", "10", "2")
GREEDY_SAMPLING = Sampling(choices=CHOICES)
SAMPLING = Sampling(choices=CHOICES, temperature=1.0, seed=5)

# The choices digit by digit: tokens 1 and 2, then 0 behind 1.
SPELT = [[1], [1, 0], [2]]


def log_steps(first_digit, behind_1):
    """Stored steps of one reply: of 1 and 2; then of 0, the end and a newline behind 1."""
    return [*np.log(first_digit), *np.log(behind_1)]


def reply_of(steps):
    """The reply with these steps; None stands for a call that failed."""
    if steps is None:
        return Reply(None, "failed")

    tree = Tree(SPELT)
    split_steps = tree.split(np.array([steps]))
    chances = tree.probabilities(split_steps)[0]
    return Reply(
        "",
        "stop",
        probabilities=tuple(chances),
        mass=(1,),
        steps=tuple(steps),
    )


def store_of(folder, rows, spelling):
    """A store with one reply per row of steps; without a spelling as older stores are."""
    manifest = {
        "trials": len(rows),
        "shard_size": len(rows),
        "sampling_choices": list(CHOICES),
    }
    if spelling is not None:
        manifest["spelling"] = {"": spelling}

    store = Store(folder, manifest)
    replies = [reply_of(steps) for steps in rows]
    with store.writing():
        store.write(0, replies)

    return store


def test_each_reading_by_hand(tmp_path):
    """1 begins with .6; behind it come 0 with .45, the end with .1 and a newline with .15."""
    steps = log_steps([0.6, 0.4], [0.45, 0.1, 0.15])
    store = store_of(tmp_path, [steps, None], SPELT)
    table = store.read()

    # What ends 1: .1 beside .45; .25 with a newline; .55 with everything that is no 0.
    share_ended = {
        "turn": 0.1 / 0.55,
        "newline": 0.25 / 0.7,
        "any": 0.55,
    }
    greedy_answers = {
        "turn": 10,
        "newline": 10,
        "any": 1,
    }

    for ending, ended in share_ended.items():
        expected = ratings_from_scores(table, store, SAMPLING, Reading("expected", ending))[0]
        greedy = ratings_from_scores(table, store, SAMPLING, Reading("greedy", ending))[0]

        chance_of_1 = 0.6 * ended
        chance_of_10 = 0.6 * (1 - ended)
        mean = chance_of_1 * 1 + chance_of_10 * 10 + 0.4 * 2
        assert expected.tolist() == pytest.approx([mean, np.nan], rel=2e-3, nan_ok=True)
        assert greedy.tolist() == pytest.approx([greedy_answers[ending], np.nan], nan_ok=True)


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_draws_have_the_tempered_distribution(temperature, tmp_path):
    steps = log_steps([0.6, 0.4], [0.5, 0.1, 0.15])
    store = store_of(tmp_path, [steps] * 4_000, SPELT)
    sampling = Sampling(choices=CHOICES, temperature=temperature, seed=5)

    drawn = ratings_from_scores(store.read(), store, sampling, Reading("drawn"))[0]

    first_digit = np.array([0.6, 0.4]) ** (1 / temperature)
    first_digit /= first_digit.sum()
    end_or_0 = np.array([0.1, 0.5]) ** (1 / temperature)
    end_or_0 /= end_or_0.sum()
    chances = np.array(
        [
            first_digit[0] * end_or_0[0],
            first_digit[0] * end_or_0[1],
            first_digit[1],
        ]
    )
    counts = drawn.value_counts().reindex([1.0, 10.0, 2.0])
    assert stats.chisquare(counts, chances * 4_000).pvalue > 0.001


def test_a_draw_depends_on_its_trial_alone(tmp_path):
    steps = log_steps([0.6, 0.4], [0.5, 0.1, 0.15])
    store = store_of(tmp_path, [steps] * 4_000, SPELT)
    table = store.read()
    part = table.iloc[1_234:1_300]

    drawn = ratings_from_scores(table, store, SAMPLING, Reading("drawn"))[0]
    drawn_from_part = ratings_from_scores(part, store, SAMPLING, Reading("drawn"))[0]

    assert drawn_from_part.equals(drawn.loc[part.index])


def test_the_stored_mean_needs_no_steps_and_every_other_reading_does(tmp_path):
    steps = log_steps([0.6, 0.4], [0.5, 0.1, 0.15])
    store = store_of(tmp_path, [steps], spelling=None)
    table = store.read()

    means = ratings_from_scores(table, store, SAMPLING)[0]

    assert means.tolist() == pytest.approx([5.9], rel=2e-3)
    assert readings(store, SAMPLING) == [Reading("expected", "turn")]
    with pytest.raises(StoreError, match="without their steps, which greedy, turn is read from"):
        ratings_from_scores(table, store, SAMPLING, Reading("greedy"))


def test_where_no_answer_begins_another_no_rule_of_its_end_is_offered(tmp_path):
    letters = store_of(tmp_path / "letters", [None], spelling=[[1], [2], [3]])

    offered = readings(letters, GREEDY_SAMPLING)

    names = [str(reading) for reading in offered]
    assert names == ["greedy, turn", "expected, turn"]


def test_where_an_answer_begins_another_each_reading_has_three_rules_of_its_end(tmp_path):
    digits = store_of(tmp_path, [None], SPELT)

    assert len(readings(digits, GREEDY_SAMPLING)) == 6
    assert len(readings(digits, SAMPLING)) == 9


def test_nothing_is_drawn_at_temperature_0(tmp_path):
    steps = log_steps([0.6, 0.4], [0.45, 0.1, 0.15])
    store = store_of(tmp_path, [steps], SPELT)
    table = store.read()

    with pytest.raises(InputError, match="READING=drawn needs a TEMPERATURE above 0"):
        ratings_from_scores(table, store, GREEDY_SAMPLING, Reading("drawn"))


def test_three_numbers_sum_up_an_answer(tmp_path):
    """1 begins with .6, then 10 is likelier than 1; but .35 of 10 is less than .4 of 2."""
    steps = log_steps([0.6, 0.4], [0.35, 0.25, 0.15])
    store = store_of(tmp_path, [steps, None], SPELT)

    table = three_readings(store.read(), store, SAMPLING)

    chance_of_10 = 0.6 * 0.35 / 0.6
    chance_of_1 = 0.6 - chance_of_10
    mean = chance_of_1 * 1 + chance_of_10 * 10 + 0.4 * 2
    assert table.loc[0].tolist() == pytest.approx([2, 10, mean], rel=2e-3)
    assert table.loc[1].isna().all()


def test_a_store_without_steps_has_no_greedy_answer(tmp_path):
    steps = log_steps([0.6, 0.4], [0.35, 0.25, 0.15])
    store = store_of(tmp_path, [steps], spelling=None)

    table = three_readings(store.read(), store, SAMPLING)

    assert np.isnan(table.greedy[0])
