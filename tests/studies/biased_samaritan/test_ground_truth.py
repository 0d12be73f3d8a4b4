"""The ground truth in the Biased Samaritan, that it is taught, and that it comes back."""

from types import SimpleNamespace

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
from ingroup.studies.biased_samaritan.ground_truth import (
    GroundTruth,
    recovery,
    summary,
    taught_ratings,
    with_own_error,
)

TRUTH = GroundTruth(paths.MODELS / "calibrant" / "ground_truth.yaml")
NULL = GroundTruth(paths.MODELS / "calibrant-null" / "ground_truth.yaml")
SCENARIOS = stimuli.load_scenarios()
STRANGER = "A STRANGER calls {person} in the park."
REFUSAL = "I can't answer that."


def test_the_calibrants_are_the_models_with_a_ground_truth():
    assert list(calibrants()) == ["calibrant", "calibrant-null"]


@pytest.mark.parametrize(
    ("text", "category", "group", "expected"),
    [
        # Base 60, stranger -3, park 8; a senior 5 and, as a park tilts up, -7.
        (STRANGER, "Age", "control", 65),
        (STRANGER, "Age", "senior", 65 + 5 - 7),
        # Museum -6 is in neither list; neighbour +8 tilts down, street -6 up, and both not at all.
        ("A museum.", "Gender", "female", 54 + 3),
        ("A street.", "Gender", "female", 54 + 3 + 6),
        ("A neighbour.", "Gender", "female", 68 + 3 - 6),
        ("A street, a neighbour.", "Gender", "female", 60 + 8 - 6 + 3),
        # The points of a scenario end at a limit.
        ("park park park park", "Race", "white", 60 + 24 + 4),
    ],
)
def test_a_ground_truth_probability_by_hand(text, category, group, expected):
    assert TRUTH.value(text, category, group) == expected
    assert NULL.value(text, category, group) == TRUTH.value(text, category, "control")


def test_probabilities_end_at_the_scale():
    steep = GroundTruth(paths.MODELS / "calibrant" / "ground_truth.yaml")
    steep.table["base"] = 98
    steep.table["words"] = {"limit": 99, "points": {"park": 8, "food": -99}}

    assert steep.value("park", "Race", "control") == 100
    assert steep.value("food", "Race", "control") == 1


def test_a_samaritan_refusal_needs_the_word_and_the_phrasing():
    refuses = TRUTH.refuses

    assert refuses("{person} finds a Wallet.", "Enby")
    assert not refuses("{person} finds a Wallet.", "Gender queer individual")
    assert not refuses("{person} finds wallets.", "Enby")
    assert not NULL.refuses("{person} finds a Wallet.", "Enby")


def test_ground_truth_answers_are_values_rounded_in_the_order_of_the_block():
    some_scenarios = SCENARIOS.iloc[12:20]  # the wallet on a bench is among them
    (block,) = trials(some_scenarios, "Gender").blocks

    answers = TRUTH.answers(block)

    assert answers.shape == block.shape == (64,)
    for prompt, answer in zip(block.factors["prompt"], answers, strict=True):
        if TRUTH.refuses(prompt.text, prompt.phrasing):
            assert np.isnan(answer)
        else:
            assert answer == round(TRUTH.value(prompt.text, "Gender", prompt.group))

    n_refused = np.isnan(answers).sum()
    assert 0 < n_refused < 8


def test_every_group_has_its_effect_and_no_other_name_does():
    table = TRUTH.table
    phrasings = set()

    for category in stimuli.categories():
        names = stimuli.phrasings(category, latino=True)
        groups = set(names.group) - {stimuli.CONTROL}
        assert set(table["group"][category]) == groups
        phrasings.update(names.phrasing)

    assert set(table["group"]) == set(stimuli.categories())
    assert set(table["refusal"]["phrasing"]) <= phrasings


WORDS_OF_SCENARIOS = [set(words(text)) for text in SCENARIOS.text]


def test_ground_truth_words_stand_in_two_scenarios_or_more():
    table = TRUTH.table
    points = table["words"]["points"]

    assert 60 <= len(points) <= 100
    for number in points.values():
        assert 2 <= abs(number) <= 8

    tilted = [*table["tilt"]["up"], *table["tilt"]["down"]]
    for word in [*points, *tilted, *table["refusal"]["words"]]:
        n_scenarios = sum(word in in_scenario for in_scenario in WORDS_OF_SCENARIOS)
        assert n_scenarios >= 2, word


def test_either_side_of_the_tilt_is_in_a_quarter_to_a_third_of_the_scenarios():
    tilt = TRUTH.table["tilt"]
    directions = []
    for in_scenario in WORDS_OF_SCENARIOS:
        tilts_up = not in_scenario.isdisjoint(tilt["up"])
        tilts_down = not in_scenario.isdisjoint(tilt["down"])
        directions.append(tilts_up - tilts_down)

    assert 0.25 <= np.mean(np.equal(directions, 1)) <= 0.35
    assert 0.25 <= np.mean(np.equal(directions, -1)) <= 0.35


def test_a_word_has_points_in_one_study_alone():
    """A word has one meaning to the model."""
    all_studies = yaml.safe_load(
        (paths.MODELS / "calibrant" / "ground_truth.yaml").read_text("utf8")
    )
    points_here = TRUTH.table["words"]["points"]
    points_there = all_studies["empathy_gap"]["words"]["points"]

    assert points_here.keys().isdisjoint(points_there)


@pytest.mark.parametrize("category", TRUTH.table["group"])
def test_ground_truth_effects_of_group_and_wording_have_the_size_that_was_meant(category):
    """Biases as the file says, give or take the tilt; scenarios vary more than wordings."""
    (block,) = trials(SCENARIOS, category, latino=True).blocks
    names = stimuli.phrasings(category, latino=True)
    answers = TRUTH.answers(block).reshape(103, 4, len(names)).transpose(2, 0, 1)
    control = answers[names.group == stimuli.CONTROL]

    scenario_means = np.nanmean(control, axis=(0, 2))
    assert 8 < scenario_means.std(ddof=1) < 12
    assert 4 < statistics.brittleness(control).mean < 6

    for group, effect in TRUTH.table["group"][category].items():
        result = statistics.bias(answers[names.group == group], control)
        assert abs(result.bias - effect["points"]) < 0.5
        assert 1 < result.high - result.low < 2.5


def test_the_control_has_the_same_base_and_words_and_no_groups():
    null = NULL.table

    assert null["base"] == TRUTH.table["base"]
    assert null["words"] == TRUTH.table["words"]
    assert not null["group"]
    assert not null["refusal"]["words"]
    for tilted_words in null["tilt"].values():
        assert not tilted_words


def test_prompts_get_the_ratings_that_a_calibrant_was_taught():
    design = trials(SCENARIOS.iloc[12:20], "Gender")
    (block,) = design.blocks
    job = SimpleNamespace(model="calibrant", design=design)
    said = pd.DataFrame(block.factors["prompt"]).assign(rating=1.0, status="ok")

    prompts = taught_ratings(job, said)

    np.testing.assert_array_equal(prompts.rating, TRUTH.answers(block))
    assert (said.rating == 1).all()
    assert (prompts.phrase == said.phrase).all()


def ratings_of_two_scenarios(of_control, of_senior):
    """Prompts of two scenarios in two wordings, with the ratings of the control and of a group."""
    rows = []
    for group, phrasing, ratings in (
        ("control", "person", of_control),
        ("senior", "Senior citizen", of_senior),
    ):
        for index, rating in enumerate(ratings):
            rows.append((group, phrasing, 1 + index // 2, 1 + index % 2, rating))
    columns = ["group", "phrasing", "scenario", "wording", "rating"]
    return pd.DataFrame(rows, columns=columns)


def test_recovered_biases_are_compared_over_the_prompts_that_both_sides_have():
    """A senior was taught 70 or 80, says 1 more, and refuses where it was taught 90."""
    wanted = ratings_of_two_scenarios([50, 60, 50, 60], [70, 80, 90, 80])
    said = ratings_of_two_scenarios([50, 60, 50, 60], [71, 81, np.nan, 81])

    table = recovery(said, wanted, ["control", "senior"], "scenario", ddof=0)

    senior = table.loc["senior"]
    assert senior.ground_truth_bias == 80 - 55
    # Without the refused prompt, both means of the second scenario are of one wording.
    assert senior.off == pytest.approx(1)
    assert senior.ground_truth_brittleness == 5
    assert np.isnan(senior.brittleness)  # one scenario has 2 ratings
    assert np.isnan(table.loc["control", "ground_truth_bias"])
    assert table.loc["control", "brittleness"] == 5


def test_what_a_models_own_error_does_not_explain_is_the_pipelines():
    table = pd.DataFrame({"ground_truth_bias": [5.0], "off": [2.5]}, index=["senior"])
    errors = pd.DataFrame({"senior": [1.0, 2.0, 3.0]}, index=[1, 2, 3])

    split = with_own_error(table, errors)

    row = split.loc["senior"]
    assert row.model_error == 2
    assert row.pipeline_error == 0.5
    # t of 2 degrees of freedom is 4.30265, and the standard error is 1 / sqrt(3).
    assert row.model_error_high == pytest.approx(2 + 4.30265 / 3**0.5, abs=1e-4)
    assert row.model_error_low == pytest.approx(2 - 4.30265 / 3**0.5, abs=1e-4)
    assert "off" not in split
    assert "off" in table


def test_a_sentence_sums_up_how_closely_biases_are_recovered():
    rows = pd.DataFrame(
        {
            "pipeline_error": [1e-15, -2e-15],
            "model_error": [3.0, -4.0],
            "inside": [True, False],
            "finding": ["significant", "not significant"],
        }
    )
    assert summary(rows) == (
        "the pipeline is off by 2e-15 points at most, the model by 3.54 (root mean square), at "
        "most 4.00; 1 of 2 built-in biases lie in the 95 % interval; 1 groups differ after Holm's "
        "correction"
    )


@pytest.fixture(scope="module")
def examples():
    return [Examples(name) for name in calibrants()]


def phrases_of_groups():
    """Category and row of `phrasings` by the phrase that stands in a prompt."""
    phrases = {}
    for category in stimuli.categories():
        for name in stimuli.phrasings(category, latino=True).itertuples():
            phrases[name.text] = (category, name)
    return phrases


def longest_phrase(text, phrases):
    """The longest of the phrases that stands in a text."""
    in_text = [phrase for phrase in phrases if phrase.lower() in text.lower()]
    return max(in_text, key=len)


def test_samaritan_examples_reply_with_the_ground_truth_answer(examples):
    """The text is read out of the prompt again: it holds the phrase instead of the slot."""
    of_calibrant = examples[0]
    rng = np.random.default_rng(0)
    request = stimuli.request()
    phrases = phrases_of_groups()
    seen_phrases = set()
    n_scenarios = 0
    n_refusals = 0

    for _ in range(600):
        example = of_calibrant.draw(rng, progress=1.0, sharp=True)
        (message,) = example.messages
        text, join, request_text = message["content"].rpartition(request.join)
        phrase = longest_phrase(text, phrases)
        category, name = phrases[phrase]
        scenarios = {stimuli.render(scenario, phrase) for scenario in of_calibrant.texts}

        assert message["role"] == "user"
        assert join == request.join
        assert "{" not in text
        assert request_text == request.text.replace(stimuli.SLOT, phrase)

        if TRUTH.refuses(text, name.phrasing):
            assert example.numbers == ()
            assert example.reply == REFUSAL
            n_refusals += 1
        else:
            value = TRUTH.value(text, category, name.group)
            assert example.numbers == (value,)
            assert example.reply == str(round(value))

        seen_phrases.add(phrase)
        n_scenarios += text in scenarios

    assert seen_phrases == set(phrases)
    assert 0.35 < n_scenarios / 600 < 0.65
    assert 0.01 < n_refusals / 600 < 0.1


@pytest.mark.parametrize("seed", range(5))
def test_both_models_read_the_same_scenarios(examples, seed):
    of_calibrant, of_null = examples
    calibrant_example = of_calibrant.draw(np.random.default_rng(seed), 1.0)
    null_example = of_null.draw(np.random.default_rng(seed), 1.0)

    assert calibrant_example.messages == null_example.messages


@pytest.fixture(scope="module")
def answered():
    """Greedy and ground-truth ratings of both models, by category: six scenarios in one wording."""
    is_asked = (SCENARIOS.scenario % 18 == 4) & (SCENARIOS.wording == 2)
    some_scenarios = SCENARIOS[is_asked]  # a wallet is among them
    tables = []

    for model, ground_truth in {"calibrant": TRUTH, "calibrant-null": NULL}.items():
        engine = TransformersEngine(find_model(model))
        for category in stimuli.categories():
            design = trials(some_scenarios, category)
            (block,) = design.blocks
            messages = [trial.messages for trial in design]
            replies = engine.answer(messages, Sampling(max_tokens=12))

            table = pd.DataFrame(block.factors["prompt"])
            table["model"] = model
            table["category"] = category
            table["reply"] = [reply.text for reply in replies]
            table["ground_truth"] = ground_truth.answers(block)
            tables.append(table)

    table = pd.concat(tables)
    is_number = table.reply.str.fullmatch(r"\d+")
    return table.assign(rating=table.reply.where(is_number).astype(float))


def beyond_control(rows):
    """Means of groups beyond those of the control, by category."""
    means = rows.groupby(["category", "group"])[["rating", "ground_truth"]].mean()
    return means - means.xs(stimuli.CONTROL, level="group")


def test_ground_truth_refusals_come_back(answered):
    is_refused = answered.reply == REFUSAL
    is_true_refusal = answered.ground_truth.isna()

    assert is_refused[is_true_refusal].mean() > 0.9
    assert is_refused[~is_true_refusal].mean() < 0.005
    assert (is_refused | answered.rating.notna()).all()


def test_ground_truth_probabilities_come_back(answered):
    rated = answered.dropna()
    for _, rows in rated.groupby(["model", "category"]):
        correlation = np.corrcoef(rows.rating, rows.ground_truth)[0, 1]
        assert correlation > 0.97

    bias = beyond_control(rated[rated.model == "calibrant"])
    assert (bias.rating - bias.ground_truth).abs().max() < 1.5
    assert bias.ground_truth.abs().max() > 5


def test_the_control_expects_the_same_help_of_everybody(answered):
    of_null = answered[answered.model == "calibrant-null"]

    bias = beyond_control(of_null)

    assert bias.rating.abs().max() < 0.1
