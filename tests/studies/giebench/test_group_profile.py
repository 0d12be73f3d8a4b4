"""Group profiles of the third study: by hand, and the options of a path against the direct call."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ingroup import paths
from ingroup.inference import Reply, StoreError, ask, job
from ingroup.stats import multiverse
from ingroup.studies.giebench import design, group_profile, stimuli
from ingroup.studies.giebench import statistics as accuracy
from toy import Toy

PATH = {
    "order": "0",
    "silence": "wrong",
    "unit": "item",
    "shares": "paper",
}
LETTERS = "ABCD"
ITEMS = stimuli.load_questions()


def test_naming_by_hand():
    rows = [
        ("k1", "Female", "Raw", "A", "A"),
        ("k1", "Female", "Raw", "B", "A"),
        ("k1", "Female", "ID", "A", "A"),
        ("k1", "Female", "ID", "B", "B"),
        ("k2", "Islam", "Raw", "C", "C"),
        ("k2", "Islam", "ID", "C", ""),
        ("k3", "Chef", "Raw", "D", "A"),
        ("k3", "Chef", "ID", "D", "D"),
    ]
    answers = pd.DataFrame(rows, columns=["key", "identity", "prompt", "correct", "letter"])

    table = group_profile.gain_by_item(answers, {"Female": "Women", "Islam": "Muslims"})
    without_names = group_profile.gain_by_item(answers, {})

    assert list(table.index) == ["k1", "k2"]
    assert table.loc["k1", "Women"] == 1 - 0.5
    assert table.loc["k2", "Muslims"] == -1
    assert np.isnan(table.loc["k1", "Muslims"])
    assert without_names.empty


def some_answers():
    """Eight items in two categories and four orders; one item has no verdict under Raw."""
    n_right = {"Raw": 2, "ID": 5, "COT": 8}

    rows = []
    for prompt, item, shift in product(n_right, range(8), range(4)):
        category = "x" if item % 2 == 0 else "y"
        correct = LETTERS[(item + shift) % 4]
        wrong = LETTERS[(item + shift + 1) % 4]
        is_right = item < n_right[prompt] and (item, shift) != (4, 2)
        letter = correct if is_right else wrong
        if (prompt, item, shift) == ("Raw", 7, 0):
            letter = ""
        rows.append((prompt, category, str(item), shift, correct, letter))

    return pd.DataFrame(rows, columns=["prompt", "category", "key", "shift", "correct", "letter"])


def claims(answers, **options):
    """Claims along the path, except for these options."""
    return group_profile.claims(answers, **(PATH | options))


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
    effects = claims(some_answers(), **option)

    assert list(effects) == ["ID over Raw", "COT over Raw"]
    effect = effects["ID over Raw"]
    assert effect.estimate == pytest.approx(100 * gained / n)
    assert effect.p == pytest.approx(min(1, 2 * 0.5**gained))


@pytest.mark.parametrize(
    ("silence", "n", "gain_of_y"),
    [
        ("wrong", 8, 1 / 4),
        ("pairwise", 7, 1 / 3),  # item 7 is of this category
        ("listwise", 7, 1 / 3),
    ],
)
def test_over_all_orders_an_item_counts_with_its_share(silence, n, gain_of_y):
    """Items 2 and 3 gain in each order, item 4 in three of four; item 7 is silent once."""
    gains = [1, 1, 0.75] + [0] * (n - 3)
    test = stats.ttest_1samp(gains, 0)
    interval = test.confidence_interval()

    effects = claims(some_answers(), order="mean", silence=silence)
    by_category = claims(some_answers(), order="mean", silence=silence, unit="category")

    effect = effects["ID over Raw"]
    assert effect.estimate == pytest.approx(100 * 2.75 / n)
    assert effect.p == pytest.approx(test.pvalue)
    assert effect.low == pytest.approx(100 * interval.low)
    assert effect.high == pytest.approx(100 * interval.high)

    gain_of_x = 1.75 / 4
    mean_gain = (gain_of_x + gain_of_y) / 2
    assert by_category["ID over Raw"].estimate == pytest.approx(100 * mean_gain)


def test_naming_the_identity_is_the_change_of_accuracy():
    answers = some_answers()
    once = answers[answers["shift"] == 0]
    changes = accuracy.changes(once, "Raw", "ID").set_index("category")
    overall = changes.loc[accuracy.OVERALL]

    effect = claims(answers)["ID over Raw"]

    assert effect.estimate == overall.change
    assert effect.low == overall.low
    assert effect.high == overall.high
    assert effect.p == overall.p
    assert effect.reason == ""
    assert effect.least == overall.p_least


def test_shares_are_rounded_as_released():
    effect = claims(some_answers(), shares="released")["COT over Raw"]
    assert effect.estimate == pytest.approx(75.0)


def test_a_claim_on_few_items_says_that_it_could_not_stand():
    """Five items: p is at least 1 / 16, whatever they say; eight could give 1 / 128."""
    eight_items = some_answers()
    five_items = eight_items[eight_items.key < "5"]

    of_five = claims(five_items)["COT over Raw"]
    of_eight = claims(eight_items)["COT over Raw"]

    assert of_five.p == 0.25
    assert of_five.reason == "could not have been significant: p of 5 items is at least 0.0625"
    assert of_eight.reason == ""


def test_naming_the_identity_by_category():
    """Raw 1 of 4 in both; ID 3 of 4 and 2 of 4; as released of 5."""
    test = stats.ttest_rel([75, 50], [25, 25])

    paper = claims(some_answers(), unit="category")["ID over Raw"]
    released = claims(some_answers(), unit="category", shares="released")["ID over Raw"]

    assert paper.estimate == pytest.approx((50 + 25) / 2)
    assert paper.p == pytest.approx(test.pvalue)
    assert released.estimate == pytest.approx((40 + 20) / 2)


@pytest.mark.parametrize("silence", ["pairwise", "listwise"])
@pytest.mark.parametrize("order", ["mean", "0"])
def test_replies_without_any_verdict_have_no_result(silence, order):
    without_verdict = some_answers().assign(letter="")

    effects = claims(without_verdict, silence=silence, order=order)

    for effect in effects.values():
        assert np.isnan(effect.p)
        assert effect.reason


def letters_by(rule):
    """Some answers whose letter a rule gives, from the prompt, the item and the order."""
    answers = some_answers()
    answers["letter"] = [
        rule(row.prompt, int(row.key), row.shift) for row in answers.itertuples(index=False)
    ]
    return answers


@pytest.mark.parametrize("order", ["mean", "0"])
@pytest.mark.parametrize(
    "rule",
    [
        lambda prompt, item, shift: "A",
        lambda prompt, item, shift: "",  # and no verdict is wrong
        lambda prompt, item, shift: LETTERS[shift],
        lambda prompt, item, shift: "A" if prompt == "Raw" else "B",
    ],
)
def test_verdicts_that_ignore_the_question_cannot_bear_on_the_claim(rule, order):
    """Of eight items two have the right answer in each place: any letter is right in two."""
    effects = claims(letters_by(rule), order=order)

    for effect in effects.values():
        assert effect.estimate == 0
        assert effect.least == 1
        assert effect.reason == "all questions get the same verdict or none"


@pytest.mark.parametrize("order", ["mean", "0"])
@pytest.mark.parametrize(
    "rule",
    [
        lambda prompt, item, shift: "B" if item == 7 else "A",
        # Under Raw alone it ignores the question.
        lambda prompt, item, shift: "A" if prompt == "Raw" else LETTERS[(item + shift) % 4],
    ],
)
def test_verdicts_that_differ_with_one_question_bear_on_the_claim(rule, order):
    effects = claims(letters_by(rule), order=order)

    for effect in effects.values():
        assert effect.least < 0.05
        assert effect.reason == ""


def test_a_judge_who_always_says_the_same_letter_cannot_be_told():
    """On every path; one that differs in a single question is not shown to gain."""
    level = 0.05
    found = []
    for last in "AB":
        answers = letters_by(lambda prompt, item, shift, last=last: last if item == 7 else "A")
        table = multiverse.evaluate(
            {"reading": ["free"]},
            lambda reading, answers=answers: answers,
            {"order": ["mean"], "silence": ["wrong"], "unit": ["item"], "shares": ["paper"]},
            group_profile.claims,
            level,
        )
        shares = multiverse.shares(table)
        found.append(multiverse.verdicts(shares, ["above"] * 2).verdict.tolist())
    assert found == [["cannot be told"] * 2, ["not shown"] * 2]


class AlwaysTheSame(Toy):
    """In free text always B, scored most probably C, and a call fails nowhere."""

    def answer(self, conversations, sampling):
        if sampling.choices:
            probabilities = (0.1, 0.2, 0.4, 0.3)
            reply = Reply("[[C]]", "stop", probabilities=probabilities, mass=(0.5,))
        else:
            reply = Reply("[[A]] or [[B]]? [[B]]", "stop")
        return [reply] * len(conversations)


PARAMETERS = {
    "MODELS": ["m"],
    "ENGINE": "vllm",
    "READING": "expected",
    "ENDING": "turn",
    "QUESTIONS": "sample",
    "ORDER": "given",
    "WORDING": "straight",
    "TEMPLATE": "chat",
    "MISMATCH": False,
    "PARSING": "sound",
    "TEMPERATURE": 0.0,
    "TOP_P": 1.0,
    "MAX_TOKENS": 9,
    "REASONING": "",
    "SEED": 0,
}


@pytest.fixture
def ask_jobs(tmp_path, monkeypatch):
    """A function that asks the calls of `PARAMETERS` with these numbers."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    monkeypatch.setattr(job, "make_engine", lambda *_, **__: AlwaysTheSame(say=None))
    jobs = design.jobs(PARAMETERS)

    def ask_some(*numbers):
        ask([jobs[number] for number in numbers], PARAMETERS)

    return ask_some


def test_scored_answers_are_looked_at_and_read_in_one_way(ask_jobs):
    """Always C: no item gains; in free text it would be B, which the released rule reads as A."""
    ask_jobs(0, 1, 2, 3, 4, 5)
    is_right = np.array([item.correct == "C" for item in ITEMS])
    keys = [item.key for item in ITEMS]

    table = group_profile.paths(PARAMETERS, "m", {})
    (view,) = group_profile.views(PARAMETERS, "m", {item.identity: "all" for item in ITEMS})
    effects = group_profile.effects(PARAMETERS, "m")

    assert set(table.parsing) == {"sound"}
    assert table.estimate.dropna().eq(0).all()
    under_two_prompts = np.tile(is_right, 2)
    assert view.sd == pytest.approx(under_two_prompts.std(ddof=1))
    expected = 100.0 * is_right
    assert effects.loc[keys, "right under ID"].tolist() == expected.tolist()
    assert (effects["COT over Raw"] == 0).all()


def test_free_text_is_read_by_both_rules(ask_jobs):
    ask_jobs(0, 1, 2, 3, 4, 5)
    free_text_parameters = PARAMETERS | {"READING": "free"}
    ask(design.jobs(free_text_parameters), free_text_parameters)

    table = group_profile.paths(free_text_parameters, "m", {})

    assert set(table.parsing) == {"sound", "released"}


def test_texts_are_looked_at_where_nothing_else_is_stored(ask_jobs):
    ask_jobs(3, 4, 5)

    table = group_profile.paths(PARAMETERS, "m", {})

    assert set(table.parsing) == {"sound", "released"}


def test_a_model_without_all_three_prompts_is_named(ask_jobs):
    ask_jobs(0, 2)

    with pytest.raises(StoreError, match="m has no stored answers under ID; run the study again"):
        group_profile.views(PARAMETERS, "m", {})
    with pytest.raises(StoreError, match="other has no stored answers under COT, ID, Raw"):
        group_profile.paths(PARAMETERS, "other", {})
