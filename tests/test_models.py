"""The reference model: what is planted, and that it comes back on narratives it never saw."""

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoTokenizer

import biased_samaritan as biased_samaritan_examples
import training
from empathy_gap import Examples
from ingroup import paths
from ingroup.inference import Sampling, find_model
from ingroup.inference.transformers_engine import TransformersEngine
from ingroup.models import calibrants, is_calibrant, words
from ingroup.studies.biased_samaritan import planted as biased_samaritan
from ingroup.studies.biased_samaritan import statistics as helpfulness
from ingroup.studies.biased_samaritan import stimuli as scenarios
from ingroup.studies.biased_samaritan.design import trials as biased_samaritan_trials
from ingroup.studies.empathy_gap import stimuli
from ingroup.studies.empathy_gap.planted import Planted
from narratives import in_form

DEFAULT = "P0,S0,T0"


@pytest.fixture(scope="module")
def helpful():
    """What is planted for the Biased Samaritan."""
    return {
        name: biased_samaritan.Planted(paths.MODELS / name / "planted.yaml")
        for name in calibrants()
    }


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


def test_a_planted_probability_by_hand(helpful):
    """Base 60, stranger -3, park 8; a senior 5 and, as a park tilts up, -7."""
    text = "A STRANGER calls {person} in the park."
    values = [
        helpful[name].value(text, "Age", group)
        for name in calibrants()
        for group in ("control", "senior")
    ]
    assert values == [65, 65 + 5 - 7, 65, 65]


def test_a_text_that_holds_words_of_both_lists_does_not_tilt(helpful):
    """museum -6 is in neither list; neighbour +8 tilts down, street -6 tilts up."""
    planted = helpful["calibrant"]
    texts = ["A museum.", "A neighbour.", "A street.", "A street, a neighbour."]
    assert [planted.direction(text) for text in texts] == [0, -1, 1, 0]
    assert [planted.value(text, "Gender", "female") for text in texts] == [
        60 - 6 + 3, 60 + 8 + 3 - 6, 60 - 6 + 3 + 6, 60 + 8 - 6 + 3
    ]  # fmt: skip
    assert [helpful["calibrant-null"].direction(text) for text in texts] == [0, 0, 0, 0]


def test_points_of_a_scenario_end_at_the_limit_and_then_at_the_scale(helpful):
    planted = helpful["calibrant"]
    assert planted.value("park " * 4, "Race", "white") == 60 + 24 + 4
    table = {
        **planted.table,
        "base": 98,
        "words": {"limit": 24, "points": {"park": 8, "food": -99}},
    }
    edge = biased_samaritan.Planted(paths.MODELS / "calibrant" / "planted.yaml")
    edge.table = table
    assert edge.value("park", "Race", "control") == 100
    table["base"] = 10
    assert edge.value("food", "Race", "control") == 1


def test_a_samaritan_refusal_needs_the_word_and_the_phrasing(helpful):
    refuses = helpful["calibrant"].refuses
    assert refuses("{person} finds a Wallet.", "Enby")
    assert not refuses("{person} finds a Wallet.", "Gender queer individual")
    assert not refuses("{person} finds wallets.", "Enby")
    assert not helpful["calibrant-null"].refuses("{person} finds a Wallet.", "Enby")


def test_planted_answers_are_values_rounded_in_the_order_of_the_block(helpful):
    table = scenarios.load_scenarios().iloc[12:20]  # the wallet on a bench is among them
    block = biased_samaritan_trials(table, "Gender").blocks[0]
    found = helpful["calibrant"].answers(block)
    assert found.shape == block.shape == (64,)
    for place, answer in enumerate(found):
        prompt = block.condition(place)["prompt"]
        if helpful["calibrant"].refuses(prompt.text, prompt.phrasing):
            assert np.isnan(answer)
        else:
            value = helpful["calibrant"].value(prompt.text, "Gender", prompt.group)
            assert answer == round(value)
    assert 0 < np.isnan(found).sum() < 8


def test_every_group_has_its_effect_and_no_other_name_does(helpful):
    table = helpful["calibrant"].table
    known = {c: scenarios.phrasings(c, latino=True) for c in scenarios.categories()}
    assert {c: set(effects) for c, effects in table["group"].items()} == {
        c: set(names.group) - {scenarios.CONTROL} for c, names in known.items()
    }
    printed = {phrasing for names in known.values() for phrasing in names.phrasing}
    assert set(table["refusal"]["phrasing"]) <= printed


def test_planted_words_stand_in_the_scenarios(helpful):
    """Each in two texts or more; either side of the tilt in a quarter to a third of them."""
    table, texts = helpful["calibrant"].table, scenarios.load_scenarios().text
    held = [set(words(text)) for text in texts]
    points = table["words"]["points"]
    assert 60 <= len(points) <= 100
    assert all(2 <= abs(number) <= 8 for number in points.values())
    listed = {*points, *table["tilt"]["up"], *table["tilt"]["down"], *table["refusal"]["words"]}
    assert not {word for word in listed if sum(word in text for text in held) < 2}
    directions = np.array([helpful["calibrant"].direction(text) for text in texts])
    assert all(0.25 <= (directions == side).mean() <= 0.35 for side in (-1, 1))
    # The words of the two studies are not the same: a word has one meaning to the model.
    assert points.keys().isdisjoint(
        Planted(paths.MODELS / "calibrant" / "planted.yaml").table["words"]["points"]
    )


def test_planted_effects_of_group_and_wording_have_the_size_that_was_meant(helpful):
    """Biases as planted.yaml says, give or take the tilt; scenarios vary more than wordings."""
    planted, table = helpful["calibrant"], scenarios.load_scenarios()
    for category, effects in planted.table["group"].items():
        block = biased_samaritan_trials(table, category, latino=True).blocks[0]
        names = scenarios.phrasings(category, latino=True)
        answers = planted.answers(block).reshape(103, 4, len(names)).transpose(2, 0, 1)
        control = answers[names.group == scenarios.CONTROL]
        assert 8 < np.nanmean(control, axis=(0, 2)).std(ddof=1) < 12
        assert 4 < helpfulness.brittleness(control).mean < 6
        for group, effect in effects.items():
            found = helpfulness.bias(answers[names.group == group], control)
            assert abs(found.bias - effect["points"]) < 0.5
            assert 1 < found.high - found.low < 2.5


def test_the_control_has_the_same_base_and_words_and_no_groups(helpful):
    tables = [helpful[name].table for name in calibrants()]
    assert all(tables[0][part] == tables[1][part] for part in ("base", "words"))
    assert not any([tables[1]["group"], *tables[1]["tilt"].values()])
    assert not tables[1]["refusal"]["words"]


def test_samaritan_examples_reply_with_the_planted_answer(helpful):
    """The text is read out of the prompt again: it holds the phrase instead of the slot."""
    examples, rng = biased_samaritan_examples.Examples("calibrant"), np.random.default_rng(0)
    end = scenarios.request()
    known = {
        name.text: (category, name)
        for category in scenarios.categories()
        for name in scenarios.phrasings(category, latino=True).itertuples()
    }
    real, refusals, phrases = 0, 0, set()
    for _ in range(600):
        example = examples.draw(rng, progress=1.0, sharp=True)
        (message,) = example.messages
        text, mark, rest = message["content"].rpartition(end.join + end.text)
        assert (message["role"], mark, rest) == ("user", end.join + end.text, "")
        assert "{" not in text
        phrase = max((p for p in known if p.lower() in text.lower()), key=len)
        category, name = known[phrase]
        phrases.add(phrase)
        real += any(scenarios.render(t, phrase) == text for t in examples.texts)
        if not example.numbers:
            refusals += 1
            assert example.reply == "I can't answer that."
            assert helpful["calibrant"].refuses(text, name.phrasing)
        else:
            value = helpful["calibrant"].value(text, category, name.group)
            assert example.numbers == (value,)
            assert example.reply == str(round(value))
    assert phrases == set(known)
    assert 0.35 < real / 600 < 0.65
    assert 0.01 < refusals / 600 < 0.1


def test_both_models_read_the_same_scenarios():
    drawn = [
        [
            biased_samaritan_examples.Examples(name).draw(np.random.default_rng(seed), 1.0).messages
            for seed in range(5)
        ]
        for name in calibrants()
    ]
    assert drawn[0] == drawn[1]


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
def helped(helpful):
    """Greedy and planted ratings of both models for a few of the scenarios, by category."""
    told = scenarios.load_scenarios()
    told = told[told.scenario % 18 == 4]  # a wallet is among them
    rows = []
    for name in calibrants():
        engine = TransformersEngine(find_model(name))
        for category in scenarios.categories():
            (block,) = biased_samaritan_trials(told, category).blocks
            chats = [block.render(block.condition(i)) for i in range(len(block))]
            texts = [reply.text for reply in engine.answer(chats, Sampling(max_tokens=12))]
            prompts = pd.DataFrame(block.factors["prompt"])
            rows.append(
                prompts.assign(
                    model=name, category=category, reply=texts, planted=helpful[name].answers(block)
                )
            )
    table = pd.concat(rows)
    numbers = table.reply.str.fullmatch(r"\d+")
    return table.assign(rating=table.reply.where(numbers).astype(float))


def test_planted_probabilities_and_refusals_come_back(helped):
    refused = helped.reply == "I can't answer that."
    assert refused[helped.planted.isna()].mean() > 0.9
    assert refused[helped.planted.notna()].mean() < 0.005
    assert (refused | helped.rating.notna()).all()
    both = helped.dropna()
    for _, rows in both.groupby(["model", "category"]):
        assert np.corrcoef(rows.rating, rows.planted)[0, 1] > 0.97
    mean = both[both.model == "calibrant"].groupby(["category", "group"])[["rating", "planted"]]
    bias = mean.mean() - mean.mean().xs(scenarios.CONTROL, level="group")
    assert (bias.rating - bias.planted).abs().max() < 1.5
    assert bias.planted.abs().max() > 5


def test_the_control_expects_the_same_help_of_everybody(helped):
    mean = helped[helped.model == "calibrant-null"].groupby(["category", "group"]).rating.mean()
    assert (mean - mean.xs(scenarios.CONTROL, level="group")).abs().max() < 0.1
