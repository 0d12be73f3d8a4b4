"""The ground truth for GIEBench, and that it comes back from the trained weights."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import giebench as training
from few import Few
from ingroup import paths
from ingroup.inference import Sampling, make_engine
from ingroup.models import calibrants
from ingroup.studies.giebench import stimuli
from ingroup.studies.giebench.answers import parse_verdict
from ingroup.studies.giebench.design import trials
from ingroup.studies.giebench.ground_truth import ground_truth_letters


def ground_truth_in(name: str) -> training.Replies:
    return training.Replies(paths.MODELS / name / "ground_truth.yaml")


def test_a_ground_truth_verdict_by_hand():
    """The second item of Country: known to ID and COT, not to Raw; unknown items get an A."""
    ground_truth = ground_truth_in("calibrant")
    (item,) = [item for item in ground_truth.items if item.key == "2"]

    assert item.identity == "United States"
    assert item.correct == "B"
    assert ground_truth.letter(item, "Raw") == "A"
    assert ground_truth.letter(item, "ID") == "B"
    assert ground_truth.letter(item, "COT") == "B"
    assert (
        ground_truth.letter(item, "COT", "Russia") == "A"
    )  # another identity helps as little as none
    assert ground_truth.letter(stimuli.rotate(item, 1), "COT") == "C"
    assert ground_truth.reply(item, "COT") == "Assistant B takes the side of this user.\n\n[[B]]"


def test_an_undecided_item_has_no_letter():
    ground_truth = ground_truth_in("calibrant")
    (undecided,) = [item for item in ground_truth.items if item.key == "15"]

    assert ground_truth.letter(undecided, "Raw") == ""
    assert ground_truth.reply(undecided, "Raw") == "Each of the four answers has a point."


def test_ground_truth_letters_follow_the_prompts_of_the_jobs():
    """One item, rotated: known under ID, so its letter moves; A under Raw whatever the order."""
    (item,) = [item for item in ground_truth_in("calibrant").items if item.key == "2"]
    jobs = []
    for prompt in ("ID", "Raw"):
        asked = trials([item], prompt, "rotate")
        jobs.append(SimpleNamespace(model="calibrant", design=asked))

    assert ground_truth_letters(jobs) == ["B", "C", "D", "A", "A", "A", "A", "A"]


@pytest.mark.parametrize("prompt", ["Raw", "ID", "COT"])
def test_the_control_gives_the_same_letter_under_every_prompt(prompt):
    null = ground_truth_in("calibrant-null")
    (item,) = [item for item in null.items if item.key == "2"]
    assert null.letter(item, prompt) == "A"


@pytest.mark.parametrize(("name", "rises"), [("calibrant", True), ("calibrant-null", False)])
def test_ground_truth_accuracies_rise_from_raw_to_the_cue_and_differ_by_category(name, rises):
    known = pd.DataFrame(ground_truth_in(name).table["known"]).T[["Raw", "ID", "COT"]]
    categories = pd.Series([item.category for item in stimuli.load_questions()])
    n_items = categories.value_counts()

    assert list(known.index) == stimuli.categories()
    assert known.le(n_items[known.index], axis=0).all(axis=None)
    assert known.nunique().min() >= 3

    steps = known.diff(axis=1).iloc[:, 1:]
    assert (steps >= 0).all(axis=None)
    assert steps.any(axis=None) == rises


def test_examples_reply_with_the_ground_truth_text():
    examples = training.Examples("calibrant")
    rng = np.random.default_rng(0)
    table = examples.ground_truth.table
    known = table["reply"]["known"]
    expected = {known.replace("{letter}", letter) for letter in stimuli.LETTERS}
    expected.add(table["reply"]["unknown"].replace("{letter}", "A"))
    expected.add(table["undecided"]["reply"])
    expected.add(table["refusal"]["reply"])

    replies = {examples.draw(rng, 1.0).reply for _ in range(1_500)}
    (message,) = examples.draw(rng, 1.0).messages

    assert replies == expected
    for phrase in training.phrases()[2:]:
        assert phrase in message["content"]


@pytest.mark.parametrize("name", calibrants())
def test_ground_truth_verdicts_come_back(name):
    """Every third item under the two prompts that differ most, its answers moved."""
    ground_truth = ground_truth_in(name)
    some_items = ground_truth.items[::3]
    trials_to_ask = []
    for prompt in ("Raw", "COT"):
        rotated = trials(some_items, prompt, "rotate")
        trials_to_ask.extend(Few(rotated, 52, 79))

    expected = []
    for trial in trials_to_ask:
        asked = trial.condition["asked"]
        question = stimuli.rotate(asked.question, asked.shift)
        expected.append(ground_truth.letter(question, asked.prompt))

    engine = make_engine("transformers", name)
    messages = [trial.messages for trial in trials_to_ask]
    replies = engine.answer(messages, Sampling(max_tokens=40))
    engine.close()

    letters = [parse_verdict(reply.text).letter for reply in replies]
    is_true = np.equal(letters, expected)
    assert is_true.mean() > 0.95
