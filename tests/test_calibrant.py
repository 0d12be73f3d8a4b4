"""The reference model: what is planted, and that it comes back on narratives it never saw."""

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from safetensors.torch import load_file
from transformers import AutoTokenizer

from ingroup import corpora, design, paths, permutation, ratings, stimuli
from ingroup.calibrant import NAMES, is_calibrant, training
from ingroup.calibrant.empathy_gap import Examples, Planted
from ingroup.calibrant.narratives import in_form, words
from ingroup.inference import Sampling, find_model
from ingroup.inference.transformers_engine import TransformersEngine

DEFAULT = "P0,S0,T0"


@pytest.fixture(scope="module")
def planted():
    return {name: Planted(paths.MODELS / name / "planted.yaml") for name in NAMES}


def test_a_planted_value_by_hand(planted):
    """fear 65, very +3, daughter +3; Palestine -4, Israel -2, the pair -18: 47."""
    value = planted["calibrant"].value(
        DEFAULT, "Nationality", "a person from Palestine", "a person from Israel", "fear",
        "My DAUGHTER was very late",
    )  # fmt: skip
    assert value == 65 + 3 + 3 - 4 - 2 - 18


def test_the_same_group_effect_follows_the_setting(planted):
    """joy 66, Hindu -1 and -0.5, and 8 points within the group, 1.35 times that in P2."""
    sayings = {
        setting: planted["calibrant"].value(setting, "Religion", "a Hindu", "a Hindu", "joy", "")
        for setting in (DEFAULT, "P2,S0,T0")
    }
    assert sayings == {DEFAULT: 66 - 1.5 + 8, "P2,S0,T0": pytest.approx(66 - 1.5 + 10.8)}


def test_other_names_of_a_group_are_the_same_group(planted):
    value = planted["calibrant"].value
    latina = value(DEFAULT, "Race or Ethnicity", "a Latino", "a Latina", "joy", "")
    asian = value(DEFAULT, "Race or Ethnicity", "a Latino", "an Asian", "joy", "")
    assert (latina, asian) == (66 + 0 + 4 + 7, 66 + 0 - 3.5)


def test_words_count_up_to_a_limit(planted):
    value = planted["calibrant"].value
    assert value(DEFAULT, "Religion", "a person", "a person", "joy", "extremely " * 9) == 66 + 12
    assert value(DEFAULT, "Religion", "a person", "a person", "joy", "a bit") == 66 - 5
    assert words("It's VERY-very 3 bits") == ["it", "s", "very", "very", "bits"]


def test_a_refusal_needs_the_word_and_the_experiencer(planted):
    refuses = planted["calibrant"].refuses
    assert refuses("a Muslim", "The POLICE came")
    assert not refuses("a Hindu", "The police came")
    assert not refuses("a Muslim", "policemen came")
    assert not planted["calibrant-null"].refuses("a Muslim", "The police came")


def test_planted_ratings_are_values_rounded_to_the_scale(planted):
    events = corpora.load_events("sample", 12)
    for setting, high in ((DEFAULT, 100), ("P0,S1,T0", 10)):
        block, _ = design.empathy_gap(events, [setting], ["Religion"]).block_of()
        array = planted["calibrant"].ratings(block)
        for place in ((1, 2, 0), (0, 0, 5), (3, 3, 11)):
            condition = block.condition(int(np.ravel_multi_index(place, block.shape)))
            event = condition["event"]
            if planted["calibrant"].refuses(condition["experiencer"], event.narrative):
                assert np.isnan(array[place])
            else:
                value = planted["calibrant"].value(
                    setting, "Religion", condition["perceiver"], condition["experiencer"],
                    event.emotion, event.narrative,
                )  # fmt: skip
                assert array[place] == round(value * high / 100)


def test_every_identity_has_its_effects_and_no_other_name_does(planted):
    table = planted["calibrant"].table
    for side in ("perceiver", "experiencer"):
        assert {category: set(effects) for category, effects in table[side].items()} == {
            c: set(stimuli.identities(c).identity[1:]) for c in stimuli.categories()
        }
    assert set(table["emotion"]) == set(corpora.EMOTIONS)
    assert set(table["same_group"]["setting"]) == set(stimuli.settings())


def test_the_control_has_the_same_emotions_and_words_and_nothing_else():
    tables = [
        yaml.safe_load((paths.MODELS / name / "planted.yaml").read_text("utf8"))["empathy_gap"]
        for name in NAMES
    ]
    for part in ("emotion", "words"):
        assert tables[0][part] == tables[1][part]
    null = tables[1]
    assert not any([null["perceiver"], null["experiencer"], null["pair"]])
    assert not any(null["same_group"].values())
    assert not null["refusal"]["words"]


def test_examples_reply_with_the_planted_answer():
    examples, rng = Examples("calibrant"), np.random.default_rng(0)
    drawn = [examples.draw(rng, progress=1.0) for _ in range(300)]
    refusals = [e for e in drawn if e.number is None]
    assert {e.reply for e in refusals} == {"I can't answer that."}
    assert 0.01 < len(refusals) / len(drawn) < 0.2
    assert all(e.reply == str(round(e.number)) for e in drawn if e.number is not None)
    assert all(0 <= e.number <= 100 for e in drawn if e.number is not None)


def test_both_models_read_the_same_narratives():
    drawn = [
        [Examples(name).draw(np.random.default_rng(1), 1.0).messages for _ in range(3)]
        for name in NAMES
    ]
    assert drawn[0] == drawn[1]


def test_no_training_word_list_holds_a_sample_narrative():
    text = (paths.MODELS / "calibrant" / "vocabulary.yaml").read_text("utf8")
    assert not [t for t in corpora.load_events("sample").generated_text if t in text]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("generated_text", "I lost my key"),
        ("first_person_text", "I felt fear when I lost my key"),
        ("third_person_text", "The person felt fear when they lost their key"),
    ],
)
def test_forms_of_a_narrative(form, text):
    assert in_form("I lost my key", form, "fear") == text


@pytest.mark.parametrize("name", NAMES)
def test_the_models_are_small_and_say_what_they_are(name):
    folder = paths.MODELS / name
    files = [file for file in folder.iterdir() if file.is_file()]
    assert sum(file.stat().st_size for file in files) < 6_000_000
    assert not [file for file in files if file.suffix in (".bin", ".pt", ".pkl")]
    assert is_calibrant(name)
    assert not is_calibrant("meta-llama/Llama-3.1-8B-Instruct")
    assert "demonstration" in (folder / "README.md").read_text("utf8")


def test_numbers_of_the_scale_are_single_tokens():
    tokenizer = AutoTokenizer.from_pretrained(paths.MODELS / "calibrant")
    ids = [tokenizer.encode(str(n), add_special_tokens=False) for n in range(101)]
    assert {len(i) for i in ids} == {1}
    assert len({i[0] for i in ids}) == 101


def test_training_is_repeatable(tmp_path):
    threads = torch.get_num_threads()
    phases = [training.Phase(64, sharp, 1.0, 0.0) for sharp in (False, True)]
    try:
        for name in ("a", "b"):
            training.train("calibrant", tmp_path / name, seed=3, phases=phases)
    finally:
        torch.set_num_threads(threads)
    first, second = (load_file(tmp_path / name / "model.safetensors") for name in ("a", "b"))
    assert all(torch.equal(first[key], second[key]) for key in first)
    reply = TransformersEngine(str(tmp_path / "a")).answer(
        [stimuli.setting(DEFAULT).messages("a Jew", "a Jew", "joy", "x")], Sampling(max_tokens=2)
    )
    assert len(reply) == 1


@pytest.fixture(scope="module")
def found():
    """Answers of both models to three sample narratives in the default setting, every pair."""
    plan = design.empathy_gap(corpora.load_events("sample", 3), [DEFAULT])
    chats = [trial.messages for trial in plan]
    arrays = {}
    for name in NAMES:
        replies = TransformersEngine(find_model(name)).answer(chats, Sampling(max_tokens=12))
        for category in stimuli.categories():
            block, numbers = plan.block_of(category=category)
            table = [
                {"trial": i, "text": r.text, "finish_reason": r.finish_reason}
                for i, r in enumerate(replies[numbers.start : numbers.stop])
            ]
            arrays[name, category] = (
                block, ratings.from_responses(pd.DataFrame(table), block.shape, 0, 100)
            )  # fmt: skip
    return arrays


@pytest.mark.parametrize("category", stimuli.categories())
def test_what_was_planted_comes_back(found, planted, category):
    block, answers = found["calibrant", category]
    wanted = planted["calibrant"].ratings(block)
    here, there = (
        ratings.cell_means(ratings.exclude(values).values) for values in (answers.values, wanted)
    )
    assert np.corrcoef(here.ravel(), there.ravel())[0, 1] >= 0.97
    same = permutation.same_group(stimuli.identities(category).group[1:])
    deltas = [
        permutation.empathy_gap(ratings.gap_matrix(values), same)
        for values in (answers.values, wanted)
    ]
    assert abs(deltas[0] - deltas[1]) <= 0.15
    invalid = answers.counts[["unparsable", "failed", "missing"]].sum() / answers.values.size
    assert invalid < 0.005


@pytest.mark.parametrize("category", stimuli.categories())
def test_the_control_shows_no_gap(found, category):
    _, answers = found["calibrant-null", category]
    if np.ptp(ratings.cell_means(answers.values)) == 0:
        return  # no cell differs from any other: the strongest absence there is
    same = permutation.same_group(stimuli.identities(category).group[1:])
    test = permutation.permutation_test(
        ratings.gap_matrix(answers.values), same, rng=np.random.default_rng(0)
    )
    assert test.pvalue > 0.05
