"""The third study as a lens: by hand, and the options of a path against the direct call."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ingroup import paths
from ingroup.inference import Reply, StoreError, ask, call
from ingroup.studies.giebench import design, lens, stimuli
from ingroup.studies.giebench import statistics as accuracy
from toy import Toy

NAMING = {
    "order": "0",
    "silence": "wrong",
    "unit": "item",
    "shares": "paper",
}


def test_naming_by_hand():
    rows = [("k1", "Raw", "A", "A"), ("k1", "Raw", "B", "A"), ("k1", "ID", "A", "A"),
            ("k1", "ID", "B", "B"), ("k2", "Raw", "C", "C"), ("k2", "ID", "C", ""),
            ("k3", "Raw", "D", "A"), ("k3", "ID", "D", "D")]  # fmt: skip
    answers = pd.DataFrame(rows, columns=["key", "prompt", "correct", "letter"])
    answers["identity"] = answers.key.map({"k1": "Female", "k2": "Islam", "k3": "Chef"})
    table = lens.gained(answers, {"Female": "Women", "Islam": "Muslims"})

    assert table.loc["k1", "Women"] == 1 - 0.5
    assert table.loc["k2", "Muslims"] == -1
    assert np.isnan(table.loc["k1", "Muslims"])
    assert list(table.index) == ["k1", "k2"]
    assert lens.gained(answers, {}).empty


def some_answers():
    """Eight items in two categories and four orders; one item has no verdict under Raw."""
    rows = []
    right = {"Raw": 2, "ID": 5, "COT": 8}

    for prompt, item, shift in product(right, range(8), range(4)):
        correct = "ABCD"[(item + shift) % 4]
        hit = item < right[prompt] and (item, shift) != (4, 2)
        letter = correct if hit else "ABCD"[(item + shift + 1) % 4]
        letter = "" if (prompt, item, shift) == ("Raw", 7, 0) else letter
        rows.append((prompt, "xy"[item % 2], str(item), shift, correct, letter))

    return pd.DataFrame(rows, columns=["prompt", "category", "key", "shift", "correct", "letter"])


@pytest.mark.parametrize(
    ("option", "n", "gained"),
    [
        ({}, 8, 3),
        ({"order": "2"}, 8, 2),  # item 4 is wrong there
        ({"silence": "pairwise"}, 7, 3),
        ({"silence": "listwise"}, 7, 3),
        ({"silence": "pairwise", "order": "1"}, 8, 3),  # in this order nobody is silent
        ({"silence": "listwise", "order": "1"}, 7, 3),
    ],
)
def test_naming_the_identity_by_hand(option, n, gained):
    found = lens.claims(some_answers(), **(NAMING | option))
    assert found["ID over Raw"].estimate == pytest.approx(100 * gained / n)
    assert found["ID over Raw"].p == pytest.approx(min(1, 2 * 0.5**gained))
    assert list(found) == ["ID over Raw", "COT over Raw"]


@pytest.mark.parametrize(
    ("silence", "n"),
    [
        ("wrong", 8),
        ("pairwise", 7),
        ("listwise", 7),
    ],
)
def test_over_all_orders_an_item_counts_with_its_share(silence, n):
    """Items 2 and 3 gain in each order, item 4 in three of four; item 7 is silent once."""
    path = NAMING | {"order": "mean", "silence": silence}
    found = lens.claims(some_answers(), **path)["ID over Raw"]
    gains = [1, 1, 0.75] + [0] * (n - 3)
    test = stats.ttest_1samp(gains, 0)
    interval = test.confidence_interval()

    assert found.estimate == pytest.approx(100 * 2.75 / n)
    assert found.p == pytest.approx(test.pvalue)
    assert found.low == pytest.approx(100 * interval.low)
    assert found.high == pytest.approx(100 * interval.high)

    by_category = lens.claims(some_answers(), **(path | {"unit": "category"}))["ID over Raw"]
    whole = [1.75 / 4, 1 / 4] if n == 8 else [1.75 / 4, 1 / 3]  # item 7 is of the second

    assert by_category.estimate == pytest.approx(100 * sum(whole) / 2)


def test_naming_the_identity_is_the_change_of_accuracy():
    answers = some_answers()
    once = answers[answers["shift"] == 0]
    row = accuracy.changes(once, "Raw", "ID").set_index("category").loc[accuracy.OVERALL]
    found = lens.claims(answers, **NAMING)["ID over Raw"]

    assert found == (row.change, row.low, row.high, row.p, "", row.p_least)

    rounded = lens.claims(answers, **(NAMING | {"shares": "released"}))["COT over Raw"]
    assert rounded.estimate == pytest.approx(75.0)


def test_a_claim_on_few_items_says_that_it_could_not_stand():
    """Five items: p is at least 1 / 16, whatever they say; eight could give 1 / 128."""
    answers = some_answers()
    few = lens.claims(answers[answers.key < "5"], **NAMING)["COT over Raw"]

    assert few.p == 0.25
    assert few.reason == "could not have been significant: p of 5 items is at least 0.0625"
    assert lens.claims(answers, **NAMING)["COT over Raw"].reason == ""


def test_naming_the_identity_by_category():
    """Raw 1 of 4 in both; ID 3 of 4 and 2 of 4; as released of 5."""
    path = NAMING | {"unit": "category"}
    found = lens.claims(some_answers(), **path)["ID over Raw"]

    assert found.estimate == pytest.approx((50 + 25) / 2)
    assert found.p == pytest.approx(stats.ttest_rel([75, 50], [25, 25]).pvalue)

    released = lens.claims(some_answers(), **(path | {"shares": "released"}))
    assert released["ID over Raw"].estimate == pytest.approx((40 + 20) / 2)


@pytest.mark.parametrize("silence", ["pairwise", "listwise"])
@pytest.mark.parametrize("order", ["mean", "0"])
def test_replies_without_any_verdict_have_no_result(silence, order):
    path = NAMING | {"silence": silence, "order": order}
    found = lens.claims(some_answers().assign(letter=""), **path)
    assert all(np.isnan(result.p) and result.reason for result in found.values())


class Says(Toy):
    """Freely always B, over choices most probably C, and a call fails nowhere."""

    def answer(self, conversations, sampling):
        said = {"probabilities": (0.1, 0.2, 0.4, 0.3), "mass": (0.5,)} if sampling.choices else {}
        text = "[[C]]" if said else "[[A]] or [[B]]? [[B]]"
        return [Reply(text, "stop", **said) for _ in conversations]


RUN = {"MODELS": ["m"], "ENGINE": "vllm", "READING": "expected"}
RUN |= {"ENDING": "turn", "QUESTIONS": "sample"}
RUN |= {
    "ORDER": "given",
    "WORDING": "straight",
    "TEMPLATE": "chat",
    "MISMATCH": False,
}
RUN |= {
    "PARSING": "sound",
    "TEMPERATURE": 0.0,
    "TOP_P": 1.0,
    "MAX_TOKENS": 9,
    "REASONING": "",
    "SEED": 0,
}


@pytest.fixture
def answered(tmp_path, monkeypatch):
    """The calls of `RUN`, of which those that are named by place are answered."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    monkeypatch.setattr(call, "make_engine", lambda *_, **__: Says(say=None))
    calls = design.calls(RUN)
    return lambda *places: ask([calls[place] for place in places], RUN)


def test_what_was_asked_over_choices_is_looked_at_and_read_in_one_way(answered):
    """Always C: an item gains nothing; freely it would be B, which the released rule reads as A."""
    answered(0, 1, 2, 3, 4, 5)
    walked = lens.paths(RUN, "m", {})

    assert set(walked.parsing) == {"sound"}
    assert walked.estimate.dropna().eq(0).all()

    (view,) = lens.portrait(RUN, "m", {item.identity: "all" for item in stimuli.load_questions()})
    right = np.array([item.correct == "C" for item in stimuli.load_questions()] * 2)

    assert view.sd == pytest.approx(right.std(ddof=1))

    effects = lens.effects(RUN, "m")
    expected = [100.0 * (item.correct == "C") for item in stimuli.load_questions()]
    keys = [item.key for item in stimuli.load_questions()]

    assert effects.loc[keys, "right under ID"].tolist() == expected
    assert (effects["COT over Raw"] == 0).all()

    freely = RUN | {"READING": "free"}
    ask(design.calls(freely), freely)

    assert set(lens.paths(freely, "m", {}).parsing) == {"sound", "released"}


def test_texts_are_looked_at_where_nothing_else_is_stored(answered):
    answered(3, 4, 5)
    assert set(lens.paths(RUN, "m", {}).parsing) == {"sound", "released"}


def test_a_model_without_all_three_prompts_is_named(answered):
    answered(0, 2)

    with pytest.raises(StoreError, match="m has no stored answers under ID; run the study again"):
        lens.portrait(RUN, "m", {})
    with pytest.raises(StoreError, match="other has no stored answers under COT, ID, Raw"):
        lens.paths(RUN, "other", {})
