"""From stored answers to values, or the reason why there is none."""

from types import SimpleNamespace

import numpy as np
import pandas as pd

from ingroup.inference import jobs
from ingroup.inference.answers import FAILED, Reply, Sampling
from ingroup.inference.store import Store
from ingroup.ratings import greedy_choices, load, numbers, read_answers, read_ratings


def test_endings_are_never_merged():
    texts = ["85", "85\n\nHe lost", "Emotion intensity: 8", "100\n" * 20, "", None, "No.", None]
    endings = ["stop", "length", "length", "length", "stop", "failed", "filtered", "missing"]
    answers = pd.DataFrame({"text": texts, "finish_reason": endings, "reasoning": ""})
    answers.loc[4, "reasoning"] = "The loss is"
    ratings = read_ratings(answers, 0, 100)

    assert ratings["rating"].dropna().to_dict() == {0: 85, 1: 85}
    reasons = ["cut", "cut", "cut", "failed", "refused", "missing"]
    assert ratings["status"].tolist() == ["ok", "ok", *reasons]


def test_only_reasoning_without_an_answer_is_cut():
    texts = ["It hurts.\nRating: 85", "", ""]
    reasoning = ["The loss is", "The loss is", ""]
    answers = pd.DataFrame({"text": texts, "reasoning": reasoning, "finish_reason": "stop"})
    assert read_ratings(answers, 0, 100)["status"].tolist() == ["ok", "cut", "unparsable"]


def test_a_cut_reply_counts_only_with_the_rating_with_which_it_begins():
    texts = [
        "So the rating is 85.\nBut then",
        "It hurts.\nRating: 85\nThis",
        "85\n90\nor",
        "8/10 is",
    ]
    answers = pd.DataFrame({"text": texts, "finish_reason": "length"})
    assert read_ratings(answers, 0, 100)["status"].tolist() == ["ok", "cut", "cut", "cut"]


def test_each_different_text_is_parsed_once():
    seen = []
    answers = pd.DataFrame({"text": ["A", "B", "A"], "finish_reason": "stop"}, index=[3, 1, 2])
    table = read_answers(answers, lambda text: (seen.append(text) or text, "ok"))
    assert sorted(seen) == ["A", "B"]
    assert table["value"].to_dict() == {3: "A", 1: "B", 2: "A"}


def test_ratings_are_means_and_greedy_texts_behind_each_prefix(tmp_path):
    sampling = Sampling(choices=("1", "2", "3"), prefixes=("warm: ", "\ncompetent: "))
    reply = Reply(
        "warm: 3\ncompetent: 1",
        probabilities=[0.1, 0.2, 0.7, 0.5, 0.25, 0.25],
        option_mass=[0.9, 0.8],
    )
    store = Store(tmp_path, {"trials": 3})
    with store.writing():
        store.add([0, 1], [5, 6], [reply, Reply(None, FAILED, error="no")])
    frame = store.read(["text", "probabilities"])

    expected = numbers(frame, sampling)
    np.testing.assert_allclose(expected.loc[0], [2.6, 1.75], atol=1e-3)
    assert expected.loc[1:].isna().all(axis=None)
    greedy = numbers(frame, sampling, "greedy")
    assert greedy.loc[0].tolist() == [3, 1]
    assert greedy.loc[1:].isna().all(axis=None)
    assert greedy_choices(frame, sampling).loc[0].tolist() == ["3", "1"]


def test_ratings_of_answers_that_are_all_missing():
    columns = {"text": None, "probabilities": None, "finish_reason": "missing"}
    answers = pd.DataFrame(columns, index=[0, 1])
    assert numbers(answers, Sampling(choices=("1", "2"))).isna().all(axis=None)


def test_what_a_server_writes_beside_the_choices_is_no_rating(monkeypatch):
    endings = ["stop", "stop", "stop", "stop", "filtered", "missing"]
    columns = {
        "text": ["85", "850", "3.5", "I cannot say", "85", None],
        "probabilities": [[0.25, 0.75], [], [], [], [], []],
        "option_mass": [[0.5], [0.0], [0.0], [0.0], [], []],
        "finish_reason": endings,
    }
    monkeypatch.setattr(jobs, "answers", lambda job, names: pd.DataFrame(columns))
    sampling = Sampling(choices=("80", "85"))
    job = SimpleNamespace(model=SimpleNamespace(name="m"), sampling=sampling)
    table = load(job, pd.DataFrame({"event": range(6)}), 0, 100)

    by_reading = table.groupby("reading", sort=False)
    assert by_reading.rating.first().to_dict() == {"expected": 83.75, "greedy": 85}
    assert by_reading.rating.count().tolist() == [1, 1]
    reasons = ["ok", "unparsable", "unparsable", "unparsable", "refused", "missing"]
    for _, of_reading in by_reading:
        assert of_reading.status.tolist() == reasons
        assert of_reading.event.tolist() == [0, 1, 2, 3, 4, 5]
