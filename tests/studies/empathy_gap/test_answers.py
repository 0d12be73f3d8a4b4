"""Responses to arrays, against a loop over rows; means of scored answers by hand."""

import itertools
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingroup import paths
from ingroup.inference import Job, Reply, Sampling, answered_jobs, ask, job
from ingroup.parsing import parse_rating
from ingroup.studies.empathy_gap import answers, stimuli
from ingroup.studies.empathy_gap.answers import (
    STATUSES,
    Ratings,
    by_block,
    free_beside_scored,
    load,
    load_every_reading,
    load_ratings,
    load_rounds,
    load_texts,
    mean_distribution,
    mean_of_rounds,
    parse_parts,
    read_by_both_rules,
)
from ingroup.studies.empathy_gap.design import jobs, trials
from toy import ABOUT_RELIGION, Toy

NAN = np.nan


def table(texts, trial=None, failed=()):
    """Responses in the order of `texts`; the positions in `failed` are calls that failed."""
    positions = range(len(texts))
    return pd.DataFrame(
        {
            "trial": np.array(positions if trial is None else trial, dtype=int),
            "text": texts,
            "finish_reason": ["failed" if k in failed else "stop" for k in positions],
            "reasoning": "",
        }
    )


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("sound", [8, NAN, 8.5]),
        ("released", [0, 85, 8]),
    ],
)
def test_the_rule_and_the_scale_reach_the_parser(rule, expected):
    responses = table(["on a scale of 0 to 10, 8", "85", "8.5"])

    ratings = parse_parts([responses], (1, 1, 3), 0, 10, rule)

    np.testing.assert_array_equal(ratings.values.ravel(), expected)


def test_a_rating_is_the_mean_of_the_rounds_that_have_one():
    first_round = table(["80", "I cannot", "I cannot", ""])
    second_round = table(["70", "50", "no idea", "x", "9"])
    third_round = table(["60", "60", None], failed=[2])
    first = parse_parts([first_round], (1, 1, 5), 0, 100)
    second = parse_parts([second_round], (1, 1, 5), 0, 100)
    third = parse_parts([third_round], (1, 1, 5), 0, 100)

    mean = mean_of_rounds([first, second, third])

    np.testing.assert_array_equal(mean.values.ravel(), [70, 55, NAN, NAN, 9])
    statuses = [STATUSES[code] for code in mean.status.ravel()]
    assert statuses == ["ok", "ok", "refused", "unparsable", "ok"]
    assert mean.status.dtype == first.status.dtype
    assert mean_of_rounds([first]) is first


def test_rounds_are_asked_loaded_and_averaged(tmp_path, monkeypatch):
    """From the parameters to a block: what each round said is in the mean."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    rounds = jobs(ABOUT_RELIGION | {"ROUNDS": 3})
    replies = ["30", "60", "I cannot"]

    for number, (job_of_round, reply) in enumerate(zip(rounds, replies, strict=True), start=1):
        engine = Toy(lambda *_, reply=reply: reply, model="org/one")
        monkeypatch.setattr(job, "make_engine", lambda *_, engine=engine, **__: engine)
        ask([job_of_round], ABOUT_RELIGION)
        assert job_of_round.round == number

    ((key, block),) = by_block(rounds).items()
    ratings = load_rounds(block)

    assert key == ("org/one", "P0,S0,T0", "Religion")
    assert block == rounds
    assert isinstance(ratings, Ratings)
    assert ratings.values.shape == (6, 6, 2)
    assert (ratings.values == 45).all()  # the mean of 30 and 60; the third round refuses
    assert ratings.counts["ok"] == 72


def test_texts_are_averaged_over_rounds_and_all_replies_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    rounds = jobs(ABOUT_RELIGION | {"ROUNDS": 2})
    for job_of_round, reply in zip(rounds, ["30", "I cannot"], strict=True):
        engine = Toy(lambda *_, reply=reply: reply, model="org/one")
        monkeypatch.setattr(job, "make_engine", lambda *_, engine=engine, **__: engine)
        ask([job_of_round], ABOUT_RELIGION)

    texts, counts = load_texts(rounds)
    ratings = load_ratings(rounds, texts)

    key = ("org/one", "P0,S0,T0", "Religion")
    assert list(texts) == list(counts) == [key]
    assert (texts[key].values == 30).all()
    assert counts[key][["ok", "refused", "missing"]].tolist() == [72, 72, 0]
    assert ratings[key] is texts[key]  # and is not parsed again


@st.composite
def responses_in_parts(draw):
    """A shape, responses to some of its trials in any order, and the same in parts of any size."""
    side = st.integers(1, 3)
    shape = draw(st.tuples(side, side, side))
    trial = draw(st.lists(st.integers(0, np.prod(shape) - 1), unique=True))
    n = len(trial)
    text = st.sampled_from(["85", "8", "I cannot", "??", "", None])
    texts = draw(st.lists(text, min_size=n, max_size=n))
    failed = draw(st.sets(st.integers(0, n)))
    whole = table(texts, trial, failed)

    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=4)))
    parts = []
    for low, high in itertools.pairwise([0, *cuts, n]):
        parts.append(whole.iloc[low:high])
    if draw(st.booleans()):
        # Categories of its own in each part.
        parts = [part.astype({"text": "category", "finish_reason": "category"}) for part in parts]

    return shape, whole, draw(st.permutations(parts))


@settings(max_examples=40)
@given(responses_in_parts())
def test_a_block_equals_a_loop_over_its_rows(responses):
    shape, whole, parts = responses
    expected = dict.fromkeys(np.ndindex(shape), (NAN, "missing"))
    for row in whole.itertuples():
        cell = np.unravel_index(row.trial, shape)
        if pd.isna(row.text) or row.finish_reason == "failed":
            expected[cell] = (NAN, "failed")
        else:
            expected[cell] = parse_rating(row.text, 0, 100)

    ratings = parse_parts(iter(parts), shape, 0, 100)

    for cell, (value, status) in expected.items():
        np.testing.assert_equal(ratings.values[cell], value)
        assert STATUSES[ratings.status[cell]] == status
    counts = Counter(status for _, status in expected.values())
    assert +Counter(ratings.counts.to_dict()) == counts


def test_a_text_of_many_parts_is_read_once(monkeypatch):
    texts_read = []

    def counting_parser(text, *options):
        texts_read.append(text)
        return parse_rating(text, *options)

    monkeypatch.setattr(answers, "parse_rating", counting_parser)
    parts = []
    for start in (0, 3, 6, 9):
        parts.append(table(["85", "8", None], [start, start + 1, start + 2]))

    ratings = parse_parts(iter(parts), (2, 2, 3), 0, 100)

    assert texts_read == ["85", "8"]
    expected = np.tile([85, 8, NAN], (2, 2, 1))
    np.testing.assert_array_equal(ratings.values, expected)


# --- scored


def scored_toy(distributions):
    """An engine whose k-th answer has the k-th of these distributions over 0 to 10; None fails."""

    def say(chat, again, number):
        distribution = distributions[number]
        if distribution is None:
            return None
        probabilities = [distribution.get(choice, 0.0) for choice in range(11)]
        text = str(np.argmax(probabilities))
        return Reply(text, "stop", probabilities=probabilities, mass=(0.25,))

    return Toy(say)


@pytest.fixture
def scored_job(tmp_path, monkeypatch):
    """A call whose answers are distributions: halves and quarters, and a failed one."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    monkeypatch.setattr(paths, "RECORDINGS", tmp_path / "recorded")
    design = trials(stimuli.load_events("sample", 2), ["P0,S1,T0"], ["Religion"])
    first_three = [{0: 0.5, 10: 0.5}, {7: 0.75, 3: 0.25}, None]
    others = [{4: 1.0}] * (len(design) - 3)
    engine = scored_toy(first_three + others)
    monkeypatch.setattr(job, "make_engine", lambda *_, **__: engine)

    sampling = Sampling(choices=tuple(str(number) for number in range(11)))
    labels = {"setting": "P0,S1,T0", "category": "Religion"}
    return Job("empathy_gap", "s", "m", "vllm", "x", design, sampling, labels)


@pytest.mark.parametrize("rule", ["sound", "released"])
def test_scored_ratings_are_means_of_the_stored_distributions(scored_job, rule):
    """Halves and quarters, which the store keeps exactly; a failed call has no rating."""
    ask([scored_job], {})

    ratings = load(scored_job, rule)  # nothing is parsed

    assert ratings.values.shape == (6, 6, 2)
    np.testing.assert_array_equal(ratings.values.ravel()[:5], [5, 6, NAN, 4, 4])
    assert ratings.counts.to_dict() == {
        "ok": 71,
        "refused": 0,
        "unparsable": 0,
        "cut": 0,
        "failed": 1,
        "missing": 0,
    }


def test_a_job_is_stored_once_it_was_asked_and_while_its_store_is_whole(scored_job):
    assert answered_jobs([scored_job]) == []

    ask([scored_job], {})
    assert answered_jobs([scored_job]) == [scored_job]

    (scored_job.folder / "part-00000.parquet").unlink()
    assert answered_jobs([scored_job]) == []


def test_the_mean_distribution_is_that_of_the_answers_that_did_not_fail(scored_job):
    ask([scored_job], {})

    distribution = mean_distribution(scored_job).set_index("rating").probability

    assert distribution.sum() == pytest.approx(1)
    assert distribution[0] == pytest.approx(0.5 / 71)
    assert distribution[3] == pytest.approx(0.25 / 71)
    assert distribution[4] == pytest.approx(69 / 71)


# --- scored and in free text


def answered_job(monkeypatch, engine, part, events, choices):
    """A job about Religion that this engine has answered."""
    design = trials(events, ["P0,S1,T0"], ["Religion"])
    sampling = Sampling(choices=choices)
    labels = {"setting": "P0,S1,T0", "category": "Religion"}
    one = Job("empathy_gap", "s", "m", "vllm", part, design, sampling, labels)
    monkeypatch.setattr(job, "make_engine", lambda *_, **__: engine)
    ask([one], {})
    return one


@pytest.fixture
def scored_and_free(tmp_path, monkeypatch):
    """Two scored events, sure of 3 and of 4; the second is asked in free text, too."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    monkeypatch.setattr(paths, "RECORDINGS", tmp_path / "recorded")
    events = stimuli.load_events("sample", 2)
    choices = tuple(str(number) for number in range(11))
    scored_engine = scored_toy([{3: 1.0}, {4: 1.0}] * 36)
    texts = ["4", "4 of 10", "I rate it 5", "no"]
    free_engine = Toy(lambda chat, again, number: texts[number % 4])

    scored = answered_job(monkeypatch, scored_engine, "scored", events, choices)
    free = answered_job(monkeypatch, free_engine, "free", events.iloc[1:], ())
    return scored, free


def test_free_text_stands_beside_the_scored_answers_to_the_same_events(scored_and_free):
    scored, free = scored_and_free
    values = load(free).values

    row = free_beside_scored(scored, free, values)

    assert row["asked"] == 36
    assert row["answered"] == 18
    assert row["agree"] == 9
    assert row["begin"] == 18
    assert row["mean_apart"] == 0.5
    assert row["option_mass"] == 25


def test_free_text_is_read_by_both_rules(scored_and_free):
    _, free = scored_and_free

    table = read_by_both_rules([free])

    sound = table.set_index("text").sound.dropna()
    is_rated = table.sound.notna() | table.released.notna()
    differ = is_rated & (table.sound != table.released)
    assert table.replies.tolist() == [9, 9, 9, 9]
    assert sound.to_dict() == {"4": 4, "I rate it 5": 5}
    assert table.differ.tolist() == differ.tolist()


def test_no_free_text_has_no_rows():
    assert read_by_both_rules([]).empty


def test_scored_answers_are_analysed_where_there_is_free_text_too(scored_and_free):
    scored, free = scored_and_free
    key = scored.key[:3]
    texts, _ = load_texts([free])

    ratings = load_ratings([scored], texts)

    assert texts[key].values.shape == (6, 6, 1)
    assert ratings[key].values[0, 0].tolist() == [3, 4]


def test_every_reading_begins_with_the_free_text(scored_and_free):
    """These answers were stored without steps, so their mean is the one reading of the scores."""
    scored, free = scored_and_free

    alone = load_every_reading([scored])
    with_text = load_every_reading([scored], load(free))

    assert list(alone) == [("expected", "turn")]
    assert list(with_text) == [("free", ""), ("expected", "turn")]
    assert with_text["expected", "turn"][0, 0].tolist() == [3, 4]
    assert with_text["free", ""][0, :4, 0].tolist()[0] == 4
