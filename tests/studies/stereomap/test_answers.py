"""Answers of StereoMap over choices, by hand from small stores; the lens on one round of them."""

import numpy as np
import pandas as pd
import pytest

from ingroup import paths
from ingroup.inference import Engine, Reply, StoreError, ask, call, rated, there
from ingroup.studies.stereomap import answers, design, lens, stimuli

ASKED = {
    "MODELS": ["small"], "ENGINE": "", "READING": "expected",
    "ENDING": "turn", "GROUPS": ["Men", "Nurses"],
    "ORIGINAL_GROUPS": "paper", "ROUNDS": 2, "ABLATION_ROUNDS": 0, "FORM": "released",
    "WORDING": "paper", "CALLS": "together", "TEMPERATURE": -1.0, "TOP_P": 1.0,
    "MAX_TOKENS": 400, "REASONING": "", "SEED": 0,
    "INCOMPLETE": "drop", "PARSING": "sound", "CLUSTERS": 2, "ALPHA": 0.05,
}  # fmt: skip
NUMBERS = np.arange(1, 6)


class Scale(Engine):
    """An engine whose k-th prompt is sure of 1 + k modulo 5 at every lead but the first."""

    asks_again = False

    def answer(self, conversations, sampling):
        if not sampling.choices:
            return [Reply("Friendly: 4\nOverall rating: 2", "stop") for _ in conversations]
        leads, replies = len(sampling.leads), []
        for k, _ in enumerate(conversations):
            rows = np.eye(5)[[k % 5] * leads]
            rows[0] = [0.5, 0.25, 0, 0, 0.25]
            mass = (0.5,) * leads
            replies.append(Reply("", "stop", probabilities=tuple(rows.ravel()), mass=mass))
        return replies

    def identity(self):
        return {}

    def close(self):
        pass


@pytest.fixture
def asked(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    monkeypatch.setattr(call, "make_engine", lambda *_, **__: Scale())
    return ask(design.calls(ASKED), ASKED)


def test_a_words_value_is_the_mean_of_its_distribution(asked):
    loaded = answers.load(asked[0])
    assert asked[0].over_choices
    assert loaded.group.tolist() == ["Men", "Nurses"]
    assert loaded.status.tolist() == ["ok", "ok"]
    assert loaded.keywords.tolist() == loaded.reasons.tolist() == [(), ()]
    words = stimuli.prompts()[design.FIRST].words
    for place, values in enumerate(loaded["values"]):
        assert tuple(values) == words
        assert values["Friendly"] == pytest.approx(0.5 + 2 * 0.25 + 5 * 0.25)
        assert {values[word] for word in words[1:]} == {1 + place}


def test_the_most_probable_number_of_each_word_and_how_probable_all_are(asked):
    weighed = answers.weighed(asked[0])
    words = stimuli.prompts()[design.FIRST].words
    assert weighed.index.tolist() == [
        (group, "Warmth-Competence", word) for group in ("Men", "Nurses") for word in words
    ]
    assert weighed[NUMBERS].sum(axis=1).to_numpy() == pytest.approx(1)
    assert weighed.chosen.tolist() == [1.0] * len(words) + [1.0] + [2.0] * (len(words) - 1)
    assert weighed.loc[("Nurses", "Warmth-Competence", "Friendly"), 5.0] == 0.25
    assert (weighed.mass == 0.5).all()


def test_a_failed_call_has_no_number(asked, monkeypatch):
    """Of the second of two prompts no answer came."""
    answer = Scale.answer

    def failing(self, conversations, sampling):
        return [*answer(self, conversations[:-1], sampling), Reply(None, "failed", error="gone")]

    monkeypatch.setattr(Scale, "answer", failing)
    (one,) = ask(design.calls(ASKED | {"FORM": "grammatical"})[:1], ASKED)
    weighed = answers.weighed(one)
    assert weighed.loc["Men"].notna().all(axis=None)
    assert weighed.loc["Nurses"].isna().all(axis=None)
    loaded = answers.load(one)
    assert loaded.status.tolist() == ["ok", "failed"]
    assert all(np.isnan(list(loaded["values"][1].values())))


def test_ratings_are_those_over_choices_in_one_round_and_words_those_of_the_text(asked):
    of_map = [one for one in rated(asked) if one.labels["version"] == "EXTENDED"]
    assert all(one.over_choices for one in of_map)
    table = lens._ratings(ASKED, "small")
    assert table["round"].tolist() == [1, 1]
    assert table.group.tolist() == ["Men", "Nurses"]
    assert table.Sociable.tolist() == [1, 2]
    assert table.Overall.tolist() == [1, 2]
    text = next(one for one in asked if not one.over_choices)
    assert answers.load(text)["values"][0]["Friendly"] == 4


def test_what_is_not_stored_is_left_out_and_a_model_without_answers_named(asked):
    """The engine "stored" reads what another one asked, and nothing else."""
    stored = ASKED | {"MODELS": ["small@stored"]}
    calls = design.calls(stored)
    assert there(calls) == calls
    gone = next(one for one in calls if one.over_choices).folder
    (gone / "manifest.json").unlink()
    assert len(there(design.calls(stored))) == len(calls) - 1
    with pytest.raises(StoreError, match=r"nobody@stored.* holds no answers"):
        lens._ratings(ASKED | {"MODELS": ["nobody@stored"]}, "nobody")


def test_of_one_round_no_path_needs_another(asked):
    found = lens.paths(ASKED, "small", {"CLUSTER_SEEDS": 1, "SEED": 0})
    assert set(found.rounds) == {"the only one"}
    assert set(found.test) <= {lens.EXCHANGED, lens.OVER_GROUPS}
    views = lens.portrait(ASKED, "small", {"Men": "men", "Nurses": "nurses"})
    warmth = views[0].items  # Nurses minus men: all words but the first are 2 and 1
    assert warmth.index.tolist() == [1]
    assert (warmth.nurses - warmth.men).tolist() == [pytest.approx(2 * (0.5 * 0.5 + 0.5))]


def test_replies_without_an_answer_are_read_first():
    """Of nine replies with an answer every third, so that they are evenly spread."""
    status = ["ok"] * 9 + ["refused", "cut", "refused"]
    replies = pd.DataFrame({"model": "a", "status": status})
    picked = answers.examples(replies)
    assert picked.index.tolist() == [9, 10, 0, 3, 6]
    assert answers.examples(replies.head(0)).empty
