"""A model that answers the same to every prompt: each study's notebook says so, and none breaks."""

import warnings
from importlib import import_module

import numpy as np
import pandas as pd
import pytest

from cells import run
from ingroup import models, notebook, paths
from ingroup.commands.parameters import merged
from ingroup.inference import Engine, Reply, ask, call
from ingroup.studies.giebench import stimuli
from ingroup.tables import InputError

KNOWN = "gpt-3.5-turbo"  # is in printed tables of two studies
WORDS = (
    "Friendly Sociable Trustworthy Honest Competent Skilled Confident Assertive Traditional "
    "Conservative Wealthy High-status Rating"
)
SHEET = "\n".join(f"{word}: 3" for word in WORDS.split())
REASONS = "\n1. Work: they work.\n2. Wealth: they are rich.\n3. Kindness: they are kind."


class Constant(Engine):
    """An engine that gives one text, or fails, whatever it is asked."""

    asks_again = False

    def __init__(self, text):
        self.text = text

    def answer(self, conversations, sampling):
        reason = "failed" if self.text is None else "stop"
        return [Reply(self.text, reason) for _ in conversations]

    def identity(self):
        return {}

    def close(self):
        pass


@pytest.fixture
def answered(tmp_path, monkeypatch):
    """Run a notebook with a model that answers `text` to everything; its names."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")

    def run_with(name, text, model="my/own", **small):
        monkeypatch.setattr(call, "make_engine", lambda *_, **__: Constant(text))
        asked = {"MODELS": [model], "ENGINE": "openai", "READING": "free", "RUN": "constant"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas and NumPy, of columns without a number
            return run(name, **merged(name, "demo", small) | asked)

    return run_with


def test_the_empathy_gap_of_one_rating_is_not_a_number(answered):
    small = {"N_EVENTS": "2", "SETTINGS": "P0,S0,T0", "CATEGORIES": "Religion"}
    names = answered("10_empathy_gap", "50", "Qwen/Qwen2-7B-Instruct", **small)
    table = names["table02"]
    assert len(table) == 1
    assert {*table.finding} == {"no cell differs"}
    assert table[["delta", "p_two_sided", "p_holm", "delta_released"]].isna().all(axis=None)
    assert (names["cells"]["mean"] == 50).all()
    compared = names["versus"].query("number == 'delta'")
    assert {*compared.verdict} == {"nothing to compare"}
    beyond = answered("11_empathy_gap_beyond", "50", "Qwen/Qwen2-7B-Instruct", **small)
    assert beyond["RUN"] == "constant"


def test_a_rater_of_one_number_has_no_bias(answered):
    names = answered("20_biased_samaritan", "50", "deepseek-ai/DeepSeek-V3-0324", RUNS="1")
    table = names["table01to03"]
    assert len(table) == 12
    assert (table.bias == 0).all()
    assert (table.p == 1).all()
    assert not table.significant.any()
    assert (names["table06to08"]["mean"] == 50).all()
    written = names["out"].read("printed_versus_here")
    (sentence,) = written.checkpoint.dropna()
    assert sentence == models.checkpoint("deepseek-ai/DeepSeek-V3-0324")
    assert written.checkpoint.first_valid_index() == 0
    beyond = answered("21_biased_samaritan_beyond", "50", "deepseek-ai/DeepSeek-V3-0324", RUNS="1")
    assert beyond["RUN"] == "constant"


@pytest.mark.parametrize(("text", "letter"), [("[[A]]", "A"), (None, "")])
def test_one_letter_is_right_as_often_as_it_is_the_key(answered, text, letter):
    names = answered("30_giebench", text, "gpt-4-turbo", ORDER="given")
    table = names["table01_02_06"].reset_index()
    keys = [(item.category, item.correct == letter) for item in stimuli.load_questions("sample")]
    right = pd.DataFrame(keys, columns=["category", "right"]).groupby("category").right.sum()
    assert (right.sum() > 0) == (letter == "A")
    for prompt in ("Raw", "ID", "COT"):
        own = table[table.prompt == prompt].set_index("category").right
        assert own[right.index].tolist() == right.tolist()
    beyond = answered("32_giebench_beyond", text, "gpt-4-turbo", ORDER="given")
    assert beyond["RUN"] == "constant"


def test_a_map_of_one_position_is_one_sentence(answered):
    small = {"ROUNDS": "2", "ABLATION_ROUNDS": "1"}
    with pytest.raises(InputError, match=r"^no map has 5 different positions; more groups"):
        answered("40_stereomap", SHEET + REASONS, KNOWN, **small)
    names = answered("41_stereomap_keywords", SHEET + REASONS, KNOWN, **small)
    assert np.isfinite(names["versus"].here).any()


def test_the_synthesis_of_one_answer_finds_no_difference(answered, monkeypatch):
    """By lens: no group stands out, and no claim stands on any path."""
    texts = {"empathy_gap": "50", "giebench": "[[A]]"}
    small = {"empathy_gap": {"N_EVENTS": "2", "SETTINGS": "P0,S0,T0", "CATEGORIES": "Religion"}}
    ran = {}
    for place, study in ((1, "empathy_gap"), (3, "giebench")):
        name = f"{place}0_{study}"
        parameters = merged(name, "demo", small.get(study, {"ORDER": "given"}))
        ran[name] = parameters | {"MODELS": ["my/own"], "ENGINE": "openai", "READING": "free"}
        monkeypatch.setattr(call, "make_engine", lambda *_, s=study, **__: Constant(texts[s]))
        asked = import_module(f"ingroup.studies.{study}.design").calls(ran[name])
        ask(asked, ran[name])
        lens = import_module(f"ingroup.studies.{study}.lens")
        for tested in lens.power(ran[name], ran[name], "my/own"):
            assert tested.spread == pytest.approx(0, abs=1e-9)
    monkeypatch.setattr(notebook, "ran", lambda name, run: ran.get(name))
    names = run("60_synthesis", MODELS=["my/own"], N_RESAMPLES=50, CLUSTER_SEEDS=2, RUN="constant")
    assert len(names["effects"]) > 5
    assert (names["effects"].effect == 0).all()
    gap = names["shares"].loc["my/own", "empathy_gap"]
    assert (gap.undefined == gap.paths).all()
    assert (gap[["stands", "reversed"]] == 0).all(axis=None)
    ways = names["shares"][["stands", "reversed"]]
    contested = ((ways > 0) & (ways < 100)).any(axis=1)
    assert names["decisive"].empty == (not contested.any())
