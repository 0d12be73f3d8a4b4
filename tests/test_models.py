"""The reference model: what is planted, and that it comes back on narratives it never saw."""

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from safetensors.torch import load_file
from transformers import AutoTokenizer

import giebench as giebench_examples
import training
from empathy_gap import Examples
from ingroup import corpora, paths
from ingroup.inference import Sampling, find_model
from ingroup.inference.transformers_engine import TransformersEngine
from ingroup.models import calibrants, is_calibrant, words
from ingroup.stats import permutation
from ingroup.studies.empathy_gap import ratings, stimuli
from ingroup.studies.empathy_gap.design import trials as empathy_gap_trials
from ingroup.studies.empathy_gap.planted import Planted
from ingroup.studies.giebench import planted as giebench
from ingroup.studies.giebench import stimuli as questions
from ingroup.studies.giebench.design import trials as giebench_trials
from ingroup.studies.giebench.verdicts import parse_verdict
from narratives import in_form

DEFAULT = "P0,S0,T0"


@pytest.fixture(scope="module")
def planted():
    return {name: Planted(paths.MODELS / name / "planted.yaml") for name in calibrants()}


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
        block, _ = empathy_gap_trials(events, [setting], ["Religion"]).block_of()
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
        for name in calibrants()
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
    assert not [t for t in corpora.load_events("sample").generated_text if t in text]


def test_a_planted_verdict_by_hand():
    """The second item of Country: known to ID and COT, not to Raw; unknown items get an A."""
    planted = giebench.Planted(paths.MODELS / "calibrant" / "planted.yaml")
    item = next(i for i in planted.items if i.key == "2")
    assert (item.identity, item.correct) == ("United States", "B")
    assert [planted.letter(item, prompt) for prompt in ("Raw", "ID", "COT")] == ["A", "B", "B"]
    assert planted.letter(item, "COT", "Russia") == "A"  # another identity helps as little as none
    assert planted.letter(questions.rotate(item, 1), "COT") == "C"
    assert planted.reply(item, "COT") == "Assistant B takes the side of this user.\n\n[[B]]"
    undecided = next(i for i in planted.items if i.key == "15")
    assert planted.letter(undecided, "Raw") == ""
    assert planted.reply(undecided, "Raw") == "Each of the four answers has a point."
    null = giebench.Planted(paths.MODELS / "calibrant-null" / "planted.yaml")
    assert [null.letter(item, prompt) for prompt in ("Raw", "ID", "COT")] == ["A", "A", "A"]


def test_planted_accuracies_rise_from_raw_to_the_cue_and_differ_by_category():
    for name, rises in zip(calibrants(), (True, False), strict=True):
        planted = giebench.Planted(paths.MODELS / name / "planted.yaml")
        known = pd.DataFrame(planted.table["known"]).T[["Raw", "ID", "COT"]]
        assert list(known.index) == questions.categories()
        assert known.le(6).all(axis=None)
        steps = known.diff(axis=1).iloc[:, 1:]
        assert (steps >= 0).all(axis=None)
        assert steps.any(axis=None) == rises
        assert known.nunique().min() >= 3


def test_giebench_examples_reply_with_the_planted_text():
    examples, rng = giebench_examples.Examples("calibrant"), np.random.default_rng(0)
    texts = {examples.draw(rng, 1.0).reply for _ in range(400)}
    replies = examples.planted.table["reply"]
    spelt = {replies["known"].replace("{letter}", letter) for letter in questions.LETTERS}
    spelt |= {replies["unknown"].replace("{letter}", "A")}
    spelt |= {examples.planted.table[silent]["reply"] for silent in ("undecided", "refusal")}
    assert texts == spelt
    example = examples.draw(rng, 1.0)
    (message,) = example.messages
    assert all(phrase in message["content"] for phrase in giebench.phrases()[2:])


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


@pytest.mark.parametrize("name", calibrants())
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


def test_the_tokenizer_knows_the_words_of_every_study():
    tokenizer = AutoTokenizer.from_pretrained(paths.MODELS / "calibrant")
    for word in (" Hindu", " geriatric", " supermarket", " Palestine"):
        assert len(tokenizer.encode(word, add_special_tokens=False)) == 1
    for phases in training.PHASES.values():
        assert set().union(*(phase.shares for phase in phases)) == set(training.STUDIES)


def test_training_is_repeatable(tmp_path):
    """Once the whole chain, and once its last phase on the weights that the first left."""
    threads = torch.get_num_threads()
    both = {"empathy_gap": 0.5, "biased_samaritan": 0.5}
    more = {"giebench": 1.0}
    phases = [
        training.Phase(64, False, 1.0, 0.0, both),
        training.Phase(64, True, 1.0, 0.0, more, training.giebench.phrases),
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
        [stimuli.setting(DEFAULT).messages("a Jew", "a Jew", "joy", "x")], Sampling(max_tokens=2)
    )
    assert len(reply) == 1


@pytest.fixture(scope="module")
def found():
    """Answers of both models to two sample narratives in the default setting, every pair."""
    plan = empathy_gap_trials(corpora.load_events("sample", 2), [DEFAULT])
    chats = [trial.messages for trial in plan]
    arrays = {}
    for name in calibrants():
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


@pytest.mark.parametrize("name", calibrants())
def test_planted_verdicts_come_back(name):
    """Every item of the sample under the two prompts that differ most, its answers moved."""
    planted = giebench.Planted(paths.MODELS / name / "planted.yaml")
    wanted, chats = [], []
    for prompt in ("Raw", "COT"):
        (block,) = giebench_trials(planted.items, prompt, "rotate").blocks
        asked = [i for i, one in enumerate(block.factors["asked"]) if one.shift == 2]
        letters = planted.letters(block)
        wanted += [letters[i] for i in asked]
        chats += [block.render(block.condition(i)) for i in asked]
    replies = TransformersEngine(find_model(name)).answer(chats, Sampling(max_tokens=40))
    found = [parse_verdict(reply.text).letter for reply in replies]
    assert np.mean([a == b for a, b in zip(found, wanted, strict=True)]) > 0.95


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
