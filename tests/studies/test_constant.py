"""A model that answers the same to every prompt: each study's notebook says so, and none breaks."""

import warnings
from collections import Counter

import numpy as np
import pytest

from cells import run
from ingroup import models, notebook, paths
from ingroup.commands.run_parameters import merged_parameters
from ingroup.inference import Engine, Reply, ask, job
from ingroup.studies.empathy_gap import design as gap_design
from ingroup.studies.empathy_gap import group_profile as gap_profile
from ingroup.studies.giebench import design as giebench_design
from ingroup.studies.giebench import group_profile as giebench_profile
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
def run_constant(tmp_path, monkeypatch):
    """Run a notebook with a model that answers `text` to everything; its names."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")

    def run_notebook(name, text, model="my/own", **small):
        monkeypatch.setattr(job, "make_engine", lambda *_, **__: Constant(text))
        parameters = merged_parameters(name, "demo", small) | {
            "MODELS": [model],
            "ENGINE": "openai",
            "READING": "free",
            "RUN": "constant",
        }

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas and NumPy, of columns without a number
            return run(name, **parameters)

    return run_notebook


def test_the_empathy_gap_of_one_rating_is_not_a_number(run_constant):
    model = "Qwen/Qwen2-7B-Instruct"
    small = {"N_EVENTS": "2", "SETTINGS": "P0,S0,T0", "CATEGORIES": "Religion"}

    names = run_constant("10_empathy_gap", "50", model, **small)
    beyond = run_constant("11_empathy_gap_beyond", "50", model, **small)

    table = names["table02"]
    assert len(table) == 1
    assert set(table.finding) == {"no cell differs"}
    assert table[["delta", "p_two_sided", "p_holm", "delta_released"]].isna().all(axis=None)
    assert (names["cells"]["mean"] == 50).all()

    versus = names["versus"]
    of_delta = versus[versus.number == "delta"]
    assert set(of_delta.verdict) == {"nothing to compare"}
    assert beyond["RUN"] == "constant"


def test_a_rater_of_one_number_has_no_bias(run_constant):
    model = "deepseek-ai/DeepSeek-V3-0324"

    names = run_constant("20_biased_samaritan", "50", model, ROUNDS="1")
    beyond = run_constant("21_biased_samaritan_beyond", "50", model, ROUNDS="1")

    table = names["table01to03"]
    assert len(table) == 12
    assert (table.bias == 0).all()
    assert (table.p == 1).all()
    assert not table.significant.any()
    assert (names["table06to08"]["mean"] == 50).all()

    checkpoint = names["out"].read("printed_versus_here").checkpoint
    (sentence,) = checkpoint.dropna()
    assert sentence == models.checkpoint_caution(model)
    assert checkpoint.first_valid_index() == 0
    assert beyond["RUN"] == "constant"


@pytest.mark.parametrize(("text", "letter"), [("[[A]]", "A"), (None, "")])
def test_one_letter_is_right_as_often_as_it_is_the_key(run_constant, text, letter):
    n_right = Counter()
    for item in stimuli.load_questions("sample"):
        n_right[item.category] += item.correct == letter

    names = run_constant("30_giebench", text, "gpt-4-turbo", ORDER="given")
    beyond = run_constant("32_giebench_beyond", text, "gpt-4-turbo", ORDER="given")

    assert (n_right.total() > 0) == (letter == "A")
    table = names["table01_02_06"].reset_index()
    for prompt in ("Raw", "ID", "COT"):
        right = table[table.prompt == prompt].set_index("category").right
        assert right[list(n_right)].to_dict() == dict(n_right)

    assert beyond["RUN"] == "constant"


def test_a_map_of_one_position_is_one_sentence(run_constant):
    small = {"ROUNDS": "2", "ABLATION_ROUNDS": "1"}

    with pytest.raises(InputError, match=r"^no map has 5 different positions; more groups"):
        run_constant("40_stereomap", SHEET + REASONS, KNOWN, **small)

    names = run_constant("41_stereomap_keywords", SHEET + REASONS, KNOWN, **small)
    assert np.isfinite(names["versus"].here).any()


@pytest.fixture
def asked_studies(tmp_path, monkeypatch):
    """Parameters of two studies whose jobs a model of one answer was asked."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    own_model = {"MODELS": ["my/own"], "ENGINE": "openai", "READING": "free"}
    small_gap = {"N_EVENTS": "2", "SETTINGS": "P0,S0,T0", "CATEGORIES": "Religion"}
    gap_parameters = merged_parameters("10_empathy_gap", "demo", small_gap) | own_model
    giebench_parameters = merged_parameters("30_giebench", "demo", {"ORDER": "given"}) | own_model

    monkeypatch.setattr(job, "make_engine", lambda *_, **__: Constant("50"))
    ask(gap_design.jobs(gap_parameters), gap_parameters)
    monkeypatch.setattr(job, "make_engine", lambda *_, **__: Constant("[[A]]"))
    ask(giebench_design.jobs(giebench_parameters), giebench_parameters)
    return {"10_empathy_gap": gap_parameters, "30_giebench": giebench_parameters}


@pytest.mark.parametrize(
    ("name", "group_profile"),
    [
        ("10_empathy_gap", gap_profile),
        ("30_giebench", giebench_profile),
    ],
)
def test_effects_of_one_answer_have_no_spread(asked_studies, name, group_profile):
    parameters = asked_studies[name]
    for tested in group_profile.power(parameters, parameters, "my/own"):
        assert tested.spread == pytest.approx(0, abs=1e-9)


def test_the_synthesis_of_one_answer_finds_no_difference(asked_studies, monkeypatch):
    """By study: no group stands out, and no claim stands on any path."""
    monkeypatch.setattr(notebook, "parameters_of_run", lambda name, run: asked_studies.get(name))

    names = run("60_synthesis", MODELS=["my/own"], N_RESAMPLES=50, CLUSTER_SEEDS=2, RUN="constant")

    effects = names["effects"]
    assert len(effects) > 5
    assert (effects.effect == 0).all()

    gap = names["shares"].loc["my/own", "empathy_gap"]
    assert (gap.undefined == gap.paths).all()
    assert (gap[["stands", "reversed"]] == 0).all(axis=None)
    ways = names["shares"][["stands", "reversed"]]
    contested = ((ways > 0) & (ways < 100)).any(axis=1)
    assert names["decisive"].empty == (not contested.any())
