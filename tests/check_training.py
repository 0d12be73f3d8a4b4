"""Training: examples say what is planted, and the same seed gives the same weights."""

import numpy as np
import torch
from safetensors.torch import load_file

import training
from empathy_gap import Examples
from ingroup import paths
from ingroup.inference import Sampling
from ingroup.inference.transformers_engine import TransformersEngine
from ingroup.models import calibrants
from ingroup.studies.empathy_gap import stimuli
from narratives import in_form


def test_examples_reply_with_the_planted_answer():
    examples, rng = Examples("calibrant"), np.random.default_rng(0)
    drawn = [examples.draw(rng, progress=1.0) for _ in range(300)]
    refusals = [e for e in drawn if not e.numbers]
    assert {e.reply for e in refusals} == {"I can't answer that."}
    assert 0.01 < len(refusals) / len(drawn) < 0.2
    assert all(e.reply == str(round(e.numbers[0])) for e in drawn if e.numbers)
    assert all(0 <= e.numbers[0] <= 100 for e in drawn if e.numbers)


def test_both_models_read_the_same_narratives():
    drawn = [
        [Examples(name).draw(np.random.default_rng(1), 1.0).messages for _ in range(3)]
        for name in calibrants()
    ]
    assert drawn[0] == drawn[1]


def test_no_training_word_list_holds_a_sample_narrative():
    text = (paths.MODELS / "calibrant" / "vocabulary.yaml").read_text("utf8")
    assert not [t for t in stimuli.load_events("sample").generated_text if t in text]


def test_forms_of_a_narrative():
    forms = ("generated_text", "first_person_text", "third_person_text")
    assert [in_form("I lost my key", form, "fear") for form in forms] == [
        "I lost my key",
        "I felt fear when I lost my key",
        "The person felt fear when they lost their key",
    ]


def test_training_is_repeatable(tmp_path):
    """Once the whole chain, and once its last phase on the weights that the first left."""
    threads = torch.get_num_threads()
    phases = [
        training.Phase(64, False, 1.0, 0.0, {"empathy_gap": 0.5, "biased_samaritan": 0.5}),
        training.Phase(64, True, 1.0, 0.0, {"giebench": 1.0}, training.giebench.phrases),
    ]
    try:
        training.train("calibrant", tmp_path / "a", seed=3, phases=phases)
        training.train("calibrant", tmp_path / "b", seed=3, phases=phases[:1])
        training.train("calibrant", tmp_path / "b", seed=3, phases=phases, first=2)
    finally:
        torch.set_num_threads(threads)
    first, second = (load_file(tmp_path / name / "model.safetensors") for name in "ab")
    assert all(torch.equal(first[key], second[key]) for key in first)
    texts = [(tmp_path / name / "tokenizer.json").read_text("utf8") for name in "ab"]
    assert texts[0] == texts[1]
    reply = TransformersEngine(str(tmp_path / "a")).answer(
        [stimuli.setting("P0,S0,T0").messages("a Jew", "a Jew", "joy", "x")], Sampling(max_tokens=2)
    )
    assert len(reply) == 1
