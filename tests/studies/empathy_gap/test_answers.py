"""Responses to arrays, against a loop over rows; means over choices by hand."""

import itertools
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingroup import paths
from ingroup.inference import Call, Reply, Sampling, ask, call, there
from ingroup.parsing import parse_rating
from ingroup.studies.empathy_gap import stimuli
from ingroup.studies.empathy_gap.answers import (
    STATUSES,
    Ratings,
    by_block,
    free_beside_scored,
    from_parts,
    load,
    load_rounds,
    mean_distribution,
    mean_of_rounds,
    read_by_both_rules,
)
from ingroup.studies.empathy_gap.design import calls, trials
from toy import Toy

NAN = np.nan
ASKED = {
    "MODELS": ["org/one"], "ENGINE": "vllm", "CORPUS": "sample", "N_EVENTS": 2,
    "SETTINGS": ["P0,S0,T0"], "CATEGORIES": ["Religion"], "REASONING": "", "TEMPERATURE": 1.0,
    "MAX_TOKENS": 128, "SEED": 0, "READING": "",
    "ENDING": "turn", "REWRITER": "", "REWRITE_TOKENS": 300,
}  # fmt: skip


def table(texts, trial, failed=()):
    """Responses in the order of `texts`; the positions in `failed` are calls that failed."""
    reason = ["failed" if i in failed else "stop" for i in range(len(texts))]
    told = pd.DataFrame({"trial": list(trial), "text": texts, "finish_reason": reason})
    told["reasoning"] = ""
    return told.astype({"trial": int})


def test_the_rule_and_the_scale_reach_the_parser():
    told = table(["on a scale of 0 to 10, 8", "85", "8.5"], range(3))
    for rule, expected in (("sound", [8, NAN, 8.5]), ("released", [0, 85, 8])):
        found = from_parts([told], (1, 1, 3), 0, 10, rule)
        np.testing.assert_array_equal(found.values.ravel(), expected)


def test_a_rating_is_the_mean_of_the_rounds_that_have_one():
    first = from_parts([table(["80", "I cannot", "I cannot", ""], range(4))], (1, 1, 5), 0, 100)
    second = from_parts([table(["70", "50", "no idea", "x", "9"], range(5))], (1, 1, 5), 0, 100)
    third = from_parts([table(["60", "60", None], range(3), failed=[2])], (1, 1, 5), 0, 100)
    pooled = mean_of_rounds([first, second, third])
    np.testing.assert_array_equal(pooled.values.ravel(), [70, 55, NAN, NAN, 9])
    words = [STATUSES[code] for code in pooled.status.ravel()]
    assert words == ["ok", "ok", "refused", "unparsable", "ok"]
    assert pooled.status.dtype == first.status.dtype
    assert mean_of_rounds([first]) is first


def test_rounds_are_asked_loaded_and_averaged(tmp_path, monkeypatch):
    """From the parameters to a block: what each round said is in the mean."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    rounds = itertools.count(1)
    said = iter(["30", "60", "I cannot"])
    engines = {}

    def engine(*_, **__):
        return Toy(lambda chat, before, asked: engines["said"], model="org/one")

    monkeypatch.setattr(call, "make_engine", engine)
    asked = calls(ASKED | {"ROUNDS": 3})
    for one in asked:
        engines["said"] = next(said)
        ask([one], ASKED)
        assert one.round == next(rounds)
    ((key, block),) = by_block(asked).items()
    assert key == ("org/one", "P0,S0,T0", "Religion")
    assert block == asked
    found = load_rounds(block)
    assert isinstance(found, Ratings)
    assert found.values.shape == (6, 6, 2)
    assert (found.values == 45).all()  # the mean of 30 and 60; the third round refuses
    assert found.counts["ok"] == 72


@settings(max_examples=40)
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


# --- over choices


def test_ratings_over_choices_are_means_of_the_stored_distributions(tmp_path, monkeypatch):
    """Halves and quarters, which the store keeps exactly; a failed call has no rating."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    monkeypatch.setattr(paths, "RECORDINGS", tmp_path / "recorded")
    events = stimuli.load_events("sample", 2)
    design = trials(events, ["P0,S1,T0"], ["Religion"])
    told = [{0: 0.5, 10: 0.5}, {7: 0.75, 3: 0.25}, None] + [{4: 1.0}] * (len(design) - 3)

    def say(chat, again, number):
        if told[number] is None:
            return None
        p = [told[number].get(choice, 0.0) for choice in range(11)]
        return Reply(str(np.argmax(p)), "stop", probabilities=p, mass=(0.25,))

    monkeypatch.setattr(call, "make_engine", lambda *_, **__: Toy(say))
    sampling = Sampling(choices=tuple(map(str, range(11))))
    labels = {"setting": "P0,S1,T0", "category": "Religion"}
    one = Call("empathy_gap", "s", "m", "vllm", "x", design, sampling, labels)
    assert there([one]) == []
    ask([one], {})
    assert there([one]) == [one]
    for rule in ("sound", "released"):  # nothing is parsed
        found = load(one, rule)
        assert found.values.shape == (6, 6, 2)
        np.testing.assert_array_equal(found.values.ravel()[:5], [5, 6, NAN, 4, 4])
        assert found.counts.to_dict() == {
            "ok": 71, "refused": 0, "unparsable": 0, "cut": 0, "failed": 1, "missing": 0
        }  # fmt: skip
    distribution = mean_distribution(one).set_index("rating").probability
    assert distribution.sum() == pytest.approx(1)
    assert distribution[[0, 3, 4]].tolist() == pytest.approx([0.5 / 71, 0.25 / 71, 69 / 71])

    (tmp_path / one.address / "part-00000.parquet").unlink()
    assert there([one]) == []


def test_free_text_stands_beside_the_scored_answers_to_the_same_events(tmp_path, monkeypatch):
    """Scored: sure of 3 for the first of two events, of 4 for the second, which is asked freely."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    monkeypatch.setattr(paths, "RECORDINGS", tmp_path / "recorded")
    events = stimuli.load_events("sample", 2)
    labels = {"setting": "P0,S1,T0", "category": "Religion"}

    def scored(chat, again, number):
        choice = 3 + number % 2
        p = [float(k == choice) for k in range(11)]
        return Reply(str(choice), "stop", probabilities=p, mass=(0.25,))

    def freely(chat, again, number):
        return ["4", "4 of 10", "I rate it 5", "no"][number % 4]

    plans = {}
    for name, of, say in (("scored", events, scored), ("free", events.iloc[1:], freely)):
        design = trials(of, ["P0,S1,T0"], ["Religion"])
        choices = tuple(map(str, range(11))) if name == "scored" else ()
        sampling = Sampling(choices=choices)
        plans[name] = Call("empathy_gap", "s", "m", "vllm", name, design, sampling, labels)
        monkeypatch.setattr(call, "make_engine", lambda *_, say=say, **__: Toy(say))
        ask([plans[name]], {})

    values = load(plans["free"]).values
    row = free_beside_scored(plans["scored"], plans["free"], values)
    n = 36
    assert (row["asked"], row["answered"], row["agree"]) == (n, n / 2, n / 4)
    assert row["begin"] == n / 2
    assert row["mean_apart"] == 0.5
    assert row["mass"] == 25

    table = read_by_both_rules([plans["free"]])
    assert table.replies.tolist() == [n / 4] * 4
    assert table.set_index("text").sound.dropna().to_dict() == {"4": 4, "I rate it 5": 5}
    is_rated = table.sound.notna() | table.released.notna()
    assert table.differ.tolist() == (is_rated & (table.sound != table.released)).tolist()
    assert read_by_both_rules([]).empty
