"""What is planted in the Biased Samaritan, that it is taught, and that it comes back."""

import numpy as np
import pandas as pd
import pytest
import yaml

from biased_samaritan import Examples
from ingroup import paths
from ingroup.inference import Sampling, find_model
from ingroup.inference.transformers_engine import TransformersEngine
from ingroup.models import calibrants, words
from ingroup.studies.biased_samaritan import statistics, stimuli
from ingroup.studies.biased_samaritan.design import trials
from ingroup.studies.biased_samaritan.planted import Planted

PLANTED, NULL = (Planted(paths.MODELS / name / "planted.yaml") for name in calibrants())


STRANGER = "A STRANGER calls {person} in the park."


@pytest.mark.parametrize(
    ("text", "category", "group", "expected"),
    [
        # Base 60, stranger -3, park 8; a senior 5 and, as a park tilts up, -7.
        *[(STRANGER, "Age", "control", 65), (STRANGER, "Age", "senior", 65 + 5 - 7)],
        # Museum -6 is in neither list; neighbour +8 tilts down, street -6 up, and both not at all.
        *[("A museum.", "Gender", "female", 54 + 3), ("A street.", "Gender", "female", 54 + 3 + 6)],
        ("A neighbour.", "Gender", "female", 68 + 3 - 6),
        ("A street, a neighbour.", "Gender", "female", 60 + 8 - 6 + 3),
        ("park " * 4, "Race", "white", 60 + 24 + 4),  # the points of a scenario end at a limit
    ],
)
def test_a_planted_probability_by_hand(text, category, group, expected):
    assert PLANTED.value(text, category, group) == expected
    assert NULL.value(text, category, group) == PLANTED.value(text, category, "control")


def test_probabilities_end_at_the_scale():
    edge = Planted(paths.MODELS / "calibrant" / "planted.yaml")
    edge.table |= {"base": 98, "words": {"limit": 99, "points": {"park": 8, "food": -99}}}
    assert [edge.value(text, "Race", "control") for text in ("park", "food")] == [100, 1]


def test_a_samaritan_refusal_needs_the_word_and_the_phrasing():
    refuses = PLANTED.refuses

    assert refuses("{person} finds a Wallet.", "Enby")
    assert not refuses("{person} finds a Wallet.", "Gender queer individual")
    assert not refuses("{person} finds wallets.", "Enby")
    assert not NULL.refuses("{person} finds a Wallet.", "Enby")


def test_planted_answers_are_values_rounded_in_the_order_of_the_block():
    table = stimuli.load_scenarios().iloc[12:20]  # the wallet on a bench is among them
    block = trials(table, "Gender").blocks[0]
    found = PLANTED.answers(block)

    assert found.shape == block.shape == (64,)

    for prompt, answer in zip(block.factors["prompt"], found, strict=True):
        refused = PLANTED.refuses(prompt.text, prompt.phrasing)
        value = round(PLANTED.value(prompt.text, "Gender", prompt.group))
        assert np.isnan(answer) if refused else answer == value

    assert 0 < np.isnan(found).sum() < 8


def test_every_group_has_its_effect_and_no_other_name_does():
    table = PLANTED.table
    known = {c: stimuli.phrasings(c, latino=True) for c in stimuli.categories()}

    assert {c: set(effects) for c, effects in table["group"].items()} == {
        c: set(names.group) - {stimuli.CONTROL} for c, names in known.items()
    }

    printed = {phrasing for names in known.values() for phrasing in names.phrasing}
    assert set(table["refusal"]["phrasing"]) <= printed


def test_planted_words_stand_in_the_scenarios():
    """Each in two texts or more; either side of the tilt in a quarter to a third of them."""
    table = PLANTED.table
    texts = stimuli.load_scenarios().text
    held = [set(words(text)) for text in texts]
    points = table["words"]["points"]

    assert 60 <= len(points) <= 100
    assert all(2 <= abs(number) <= 8 for number in points.values())

    listed = {*points, *table["tilt"]["up"], *table["tilt"]["down"], *table["refusal"]["words"]}
    assert not {word for word in listed if sum(word in text for text in held) < 2}

    up, down = (
        [not own.isdisjoint(table["tilt"][side]) for own in held] for side in ("up", "down")
    )
    directions = np.subtract(up, down, dtype=int)

    assert all(0.25 <= (directions == side).mean() <= 0.35 for side in (-1, 1))

    # The words of the two studies are not the same: a word has one meaning to the model.
    whole = yaml.safe_load((paths.MODELS / "calibrant" / "planted.yaml").read_text("utf8"))
    assert points.keys().isdisjoint(whole["empathy_gap"]["words"]["points"])


def test_planted_effects_of_group_and_wording_have_the_size_that_was_meant():
    """Biases as planted.yaml says, give or take the tilt; scenarios vary more than wordings."""
    table = stimuli.load_scenarios()
    for category, effects in PLANTED.table["group"].items():
        block = trials(table, category, latino=True).blocks[0]
        names = stimuli.phrasings(category, latino=True)
        answers = PLANTED.answers(block).reshape(103, 4, len(names)).transpose(2, 0, 1)
        control = answers[names.group == stimuli.CONTROL]

        assert 8 < np.nanmean(control, axis=(0, 2)).std(ddof=1) < 12
        assert 4 < statistics.brittleness(control).mean < 6

        for group, effect in effects.items():
            found = statistics.bias(answers[names.group == group], control)
            assert abs(found.bias - effect["points"]) < 0.5
            assert 1 < found.high - found.low < 2.5


def test_the_control_has_the_same_base_and_words_and_no_groups():
    assert all(PLANTED.table[part] == NULL.table[part] for part in ("base", "words"))
    assert not any([NULL.table["group"], *NULL.table["tilt"].values()])
    assert not NULL.table["refusal"]["words"]


@pytest.fixture(scope="module")
def examples():
    return [Examples(name) for name in calibrants()]


def test_samaritan_examples_reply_with_the_planted_answer(examples):
    """The text is read out of the prompt again: it holds the phrase instead of the slot."""
    own = examples[0]
    rng = np.random.default_rng(0)
    end = stimuli.request()
    names = {c: stimuli.phrasings(c, latino=True).itertuples() for c in stimuli.categories()}
    known = {name.text: (category, name) for category in names for name in names[category]}
    untold = {phrase: {stimuli.render(text, phrase) for text in own.texts} for phrase in known}
    real = 0
    refusals = 0
    phrases = set()

    for _ in range(600):
        example = own.draw(rng, progress=1.0, sharp=True)
        (message,) = example.messages
        text, mark, asked = message["content"].rpartition(end.join)

        assert message["role"] == "user"
        assert mark == end.join
        assert "{" not in text

        phrase = max((p for p in known if p.lower() in text.lower()), key=len)
        category, name = known[phrase]

        assert asked == end.text.replace(stimuli.SLOT, phrase)

        phrases.add(phrase)
        refused = PLANTED.refuses(text, name.phrasing)
        real = real + (text in untold[phrase])
        refusals = refusals + refused
        value = PLANTED.value(text, category, name.group)

        assert example.numbers == (() if refused else (value,))
        assert example.reply == ("I can't answer that." if refused else str(round(value)))

    assert phrases == set(known)
    assert 0.35 < real / 600 < 0.65
    assert 0.01 < refusals / 600 < 0.1


def test_both_models_read_the_same_scenarios(examples):
    for seed in range(5):
        one, other = (part.draw(np.random.default_rng(seed), 1.0).messages for part in examples)
        assert one == other


@pytest.fixture(scope="module")
def helped():
    """Greedy and planted ratings of both models for a wording of six scenarios, by category."""
    told = stimuli.load_scenarios()
    told = told[(told.scenario % 18 == 4) & (told.wording == 2)]  # a wallet is among them
    rows = []

    for name, one in zip(calibrants(), (PLANTED, NULL), strict=True):
        engine = TransformersEngine(find_model(name))
        for category in stimuli.categories():
            plan = trials(told, category)
            replies = engine.answer([trial.messages for trial in plan], Sampling(max_tokens=12))
            prompts = pd.DataFrame(plan.blocks[0].factors["prompt"]).assign(model=name)
            prompts["reply"] = [reply.text for reply in replies]
            prompts["category"] = category
            rows.append(prompts.assign(planted=one.answers(*plan.blocks)))

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
    bias = mean.mean() - mean.mean().xs(stimuli.CONTROL, level="group")

    assert (bias.rating - bias.planted).abs().max() < 1.5
    assert bias.planted.abs().max() > 5


def test_the_control_expects_the_same_help_of_everybody(helped):
    mean = helped[helped.model == "calibrant-null"].groupby(["category", "group"]).rating.mean()
    assert (mean - mean.xs(stimuli.CONTROL, level="group")).abs().max() < 0.1
