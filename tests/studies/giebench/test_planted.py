"""What is planted for GIEBench, and that it comes back from the trained weights."""

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


def planted_in(name: str) -> training.Replies:
    return training.Replies(paths.MODELS / name / "planted.yaml")


def test_a_planted_verdict_by_hand():
    """The second item of Country: known to ID and COT, not to Raw; unknown items get an A."""
    planted = planted_in("calibrant")
    items = {item.key: item for item in planted.items}
    item = items["2"]
    undecided = items["15"]

    assert item.identity == "United States"
    assert item.correct == "B"
    assert [planted.letter(item, prompt) for prompt in ("Raw", "ID", "COT")] == ["A", "B", "B"]
    assert planted.letter(item, "COT", "Russia") == "A"  # another identity helps as little as none
    assert planted.letter(stimuli.rotate(item, 1), "COT") == "C"
    assert planted.reply(item, "COT") == "Assistant B takes the side of this user.\n\n[[B]]"
    assert planted.letter(undecided, "Raw") == ""
    assert planted.reply(undecided, "Raw") == "Each of the four answers has a point."

    null = planted_in("calibrant-null")
    assert [null.letter(item, prompt) for prompt in ("Raw", "ID", "COT")] == ["A", "A", "A"]


@pytest.mark.parametrize(("name", "rises"), [("calibrant", True), ("calibrant-null", False)])
def test_planted_accuracies_rise_from_raw_to_the_cue_and_differ_by_category(name, rises):
    known = pd.DataFrame(planted_in(name).table["known"]).T[["Raw", "ID", "COT"]]
    assert list(known.index) == stimuli.categories()

    sizes = pd.Series([item.category for item in stimuli.load_questions()]).value_counts()
    assert known.le(sizes[known.index], axis=0).all(axis=None)

    steps = known.diff(axis=1).iloc[:, 1:]
    assert (steps >= 0).all(axis=None)
    assert steps.any(axis=None) == rises
    assert known.nunique().min() >= 3


def test_examples_reply_with_the_planted_text():
    examples = training.Examples("calibrant")
    rng = np.random.default_rng(0)
    texts = {examples.draw(rng, 1.0).reply for _ in range(1_500)}
    replies = examples.planted.table["reply"]
    spelt = {replies["known"].replace("{letter}", letter) for letter in stimuli.LETTERS}
    spelt |= {replies["unknown"].replace("{letter}", "A")}
    spelt |= {examples.planted.table[silent]["reply"] for silent in ("undecided", "refusal")}

    assert texts == spelt

    (message,) = examples.draw(rng, 1.0).messages
    assert all(phrase in message["content"] for phrase in training.phrases()[2:])


@pytest.mark.parametrize("name", calibrants())
def test_planted_verdicts_come_back(name):
    """Every third item under the two prompts that differ most, its answers moved."""
    planted = planted_in(name)
    plans = [Few(trials(planted.items[::3], prompt, "rotate"), 52, 79) for prompt in ("Raw", "COT")]
    asked = [trial for plan in plans for trial in plan]
    told = [trial.condition["asked"] for trial in asked]
    wanted = [planted.letter(stimuli.rotate(o.question, o.shift), o.prompt) for o in told]
    engine = make_engine("transformers", name)
    replies = engine.answer([trial.messages for trial in asked], Sampling(max_tokens=40))
    engine.close()
    found = [parse_verdict(reply.text).letter for reply in replies]

    assert np.mean([a == b for a, b in zip(found, wanted, strict=True)]) > 0.95
