"""Training: examples say the ground truth, and the same seed gives the same weights."""

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


def test_examples_reply_with_the_ground_truth_answer():
    examples = Examples("calibrant")
    rng = np.random.default_rng(0)
    drawn = [examples.draw(rng, progress=1.0) for _ in range(300)]

    refusals = 0
    for example in drawn:
        if not example.numbers:
            refusals += 1
            assert example.reply == "I can't answer that."
            continue

        ground_truth = example.numbers[0]
        assert 0 <= ground_truth <= 100
        assert example.reply == str(round(ground_truth))
    assert 0.01 < refusals / len(drawn) < 0.2


def test_both_models_read_the_same_narratives():
    calibrant, null = calibrants()
    examples = Examples(calibrant)
    examples_of_null = Examples(null)
    rng = np.random.default_rng(1)
    rng_of_null = np.random.default_rng(1)
    for _ in range(3):
        messages = examples.draw(rng, 1.0).messages
        assert messages == examples_of_null.draw(rng_of_null, 1.0).messages


def test_no_training_word_list_holds_a_sample_narrative():
    text = (paths.MODELS / "calibrant" / "vocabulary.yaml").read_text("utf8")
    for narrative in stimuli.load_events("sample").generated_text:
        assert narrative not in text


def test_a_narrative_has_three_forms():
    assert in_form("I lost my key", "generated_text", "fear") == "I lost my key"
    assert in_form("I lost my key", "first_person_text", "fear") == "I felt fear when I lost my key"
    third_person = in_form("I lost my key", "third_person_text", "fear")
    assert third_person == "The person felt fear when they lost their key"


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

    weights = load_file(tmp_path / "a" / "model.safetensors")
    again = load_file(tmp_path / "b" / "model.safetensors")
    for name, tensor in weights.items():
        assert torch.equal(tensor, again[name]), name

    tokenizer = (tmp_path / "a" / "tokenizer.json").read_text("utf8")
    assert tokenizer == (tmp_path / "b" / "tokenizer.json").read_text("utf8")

    chat = stimuli.setting("P0,S0,T0").messages("a Jew", "a Jew", "joy", "x")
    engine = TransformersEngine(str(tmp_path / "a"))
    assert len(engine.answer([chat], Sampling(max_tokens=2))) == 1
