"""Accuracy by hand and against SciPy; gains, rotations and identities as they must be."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ingroup.studies.giebench import statistics
from ingroup.studies.giebench.answers import LETTER_PROBABILITIES
from ingroup.studies.giebench.statistics import (
    accuracy,
    by_position,
    changes,
    consistency,
    mismatch,
    position_test,
    right_letter_probability,
)

LETTERS = "ABCD"


def answers_of(rows, columns=("prompt", "category", "key", "correct", "letter")):
    """Answers from rows of these columns; asked once, and ok where there is a letter."""
    table = pd.DataFrame(rows, columns=list(columns))
    for column, usual in {"shift": 0, "category": "Age", "prompt": "COT"}.items():
        table[column] = table.get(column, usual)

    status = np.where(table["letter"].eq(""), "no verdict", "ok")
    return table.assign(status=table.get("status", pd.Series(status)))


def counted(prompts, kept, gained, lost, never, category="Age"):
    """Answers of two prompts with so many items right in both, the second, the first and none."""
    first, second = prompts
    right_in = [prompts] * kept + [[second]] * gained + [[first]] * lost + [[]] * never

    rows = []
    for key, right_prompts in enumerate(right_in):
        for prompt in prompts:
            letter = "C" if prompt in right_prompts else "B"
            rows.append((prompt, category, f"{category} {key}", "C", letter))

    return answers_of(rows)


def rotated(pick, items=4, prompt="COT", category="Age"):
    """Every item in four rotations; `pick(key, correct)` is the letter chosen."""
    rows = []
    for key in range(items):
        for shift in range(4):
            correct = LETTERS[(key + shift) % 4]
            letter = pick(key, correct)
            rows.append((prompt, category, f"{category} {key}", shift, correct, letter))

    return answers_of(rows, ["prompt", "category", "key", "shift", "correct", "letter"])


def pick_first(key, right):
    """Always A."""
    return "A"


def pick_right(key, right):
    """Always the right letter."""
    return right


def pick_none(key, right):
    """Never a letter."""
    return ""


def holds(table, **columns):
    """Whether the columns have these values, in any number of rows."""
    for name, values in columns.items():
        np.testing.assert_allclose(table[name], values, err_msg=name)


def wilson(right, n):
    interval = stats.binomtest(right, n).proportion_ci(0.95, method="wilson")
    return [100 * interval.low, 100 * interval.high]


# Raw: Age has one right, one wrong and one refusal, Skin two right. COT: all right but a failure.
BY_HAND = answers_of(
    [
        ("Raw", "Age", 0, "A", "A", "ok"),
        ("Raw", "Skin", 1, "B", "B", "ok"),
        ("Raw", "Age", 2, "C", "Z", "ok"),
        ("Raw", "Skin", 3, "D", "D", "ok"),
        ("Raw", "Age", 4, "A", "", "refused"),
        ("COT", "Age", 4, "A", "A", "ok"),
        ("COT", "Skin", 3, "D", "", "failed"),
        ("COT", "Age", 0, "A", "A", "ok"),
        ("COT", "Skin", 1, "B", "B", "ok"),
        ("COT", "Age", 2, "C", "C", "ok"),
    ],
    ("prompt", "category", "key", "correct", "letter", "status"),
)


def test_accuracy_by_hand():
    before = BY_HAND.copy()
    table = accuracy(BY_HAND)

    pd.testing.assert_frame_equal(BY_HAND, before)  # the input is not changed
    assert table["prompt"].tolist() == ["Raw", "Raw", "Raw", "COT", "COT", "COT"]
    assert table["category"].tolist() == ["Age", "Skin", "Overall", "Age", "Skin", "Overall"]
    holds(
        table,
        n=[3, 2, 5, 3, 2, 5],
        right=[1, 2, 3, 3, 1, 4],
        without=[1, 0, 1, 0, 1, 1],
        refused=[1, 0, 1, 0, 0, 0],
        failed=[0, 0, 0, 0, 1, 1],
        accuracy=[100 / 3, 100, 60, 100, 50, 80],
    )

    for row in table.itertuples():
        np.testing.assert_allclose([row.low, row.high], wilson(row.right, row.n))


def test_denominators_and_rounding_by_hand():
    usual = accuracy(BY_HAND)
    released = accuracy(BY_HAND, denominator="released")

    holds(released, accuracy=[25, 200 / 3, 60, 75, 100 / 3, 80])
    # The interval is of right / n.
    pd.testing.assert_frame_equal(released[["low", "high"]], usual[["low", "high"]])

    rounded = accuracy(BY_HAND, denominator="released", decimals=3)
    printed = [f"{number:.10g}" for number in rounded["accuracy"]]
    assert printed == ["25", "66.7", "60", "75", "33.3", "80"]

    # 1 / 80 is a little more than 0.0125 in binary; numpy.round, which multiplies, gives 0.012.
    one_of_eighty = counted(("Raw", "COT"), kept=1, gained=0, lost=0, never=79)
    rounded = accuracy(one_of_eighty, decimals=3)
    assert rounded["accuracy"].tolist() == pytest.approx([1.3, 1.3, 1.3, 1.3])


def test_changes_by_hand():
    table = changes(BY_HAND, "Raw", "COT")

    assert table["category"].tolist() == ["Age", "Skin", "Overall"]
    holds(
        table,
        n=[3, 2, 5],
        gained=[2, 0, 2],
        lost=[0, 1, 1],
        change=[200 / 3, -50, 20],
        before=[100 / 3, 100, 60],
        after=[100, 50, 80],
    )
    # 2 of 2, 1 of 1 and 2 of 3 coins, two-sided; Holm takes the smallest of two twice.
    holds(table, p=[0.5, 1, 1], p_holm=[1, 1, np.nan])


def test_a_printed_cell_of_table_4():
    # GPT-3.5-turbo, Country: 46.4 %, 41.2 %, -5.2 %, +17/-22, of 96 items divided by 97.
    answers = counted(("Raw", "COT"), kept=23, gained=17, lost=22, never=34)

    released = changes(answers, "Raw", "COT", "released", 3)
    holds(
        released[:1],
        n=96,
        before=46.4,
        after=41.2,
        change=-5.2,
        gained=17,
        lost=22,
        p=stats.binomtest(17, 39).pvalue,
    )

    # The difference of the rounded, not the rounded difference: -5 / 96 is -5.21, and here -5.3.
    paper = changes(answers, "Raw", "COT", "paper", 3)
    holds(paper, before=46.9, after=41.7, change=-5.2)


@pytest.mark.parametrize("n", [1, 2, 6, 9])
def test_a_change_and_its_test_agree_in_every_small_table(n):
    """Newcombe's interval, which stood here, leaves out 0 of 4 of 6 gained, where p is 0.125."""
    parts = []
    for gained in range(n + 1):
        for lost in range(n + 1 - gained):
            never = n - gained - lost
            category = f"+{gained} -{lost}"
            parts.append(counted(("Raw", "ID"), 0, gained, lost, never, category))

    table = changes(pd.concat(parts), "Raw", "ID")
    categories = table[:-1]

    assert len(categories) == len(parts)
    excludes_zero = (categories.low > 0) | (categories.high < 0)
    np.testing.assert_array_equal(excludes_zero, categories.p < 0.05)
    least = categories.low - 1e-9
    most = categories.high + 1e-9
    assert categories.change.between(least, most).all()
    holds(categories, p_least=2.0 ** (1 - n))


def test_what_could_not_have_been_significant_says_so():
    """Six items and eleven categories: whatever changes, p is at least 11 / 32 after Holm."""
    parts = [counted(("Raw", "ID"), 0, 6, 0, 0, f"category {k}") for k in range(11)]
    table = changes(pd.concat(parts), "Raw", "ID")

    holds(
        table[:-1],
        p=1 / 32,
        p_least=1 / 32,
        p_holm=11 / 32,
        p_holm_least=11 / 32,
    )
    assert table.finding.tolist() == ["could not have been significant"] * 11 + ["significant"]


def test_the_smaller_of_two_categories_could_have_been_significant():
    """Two categories of 8 items: the first finds something, the second could have."""
    all_gained = counted(("Raw", "ID"), kept=0, gained=8, lost=0, never=0, category="x")
    one_each = counted(("Raw", "ID"), kept=0, gained=1, lost=1, never=6, category="y")

    table = changes(pd.concat([all_gained, one_each]), "Raw", "ID")

    holds(table[:-1], p_holm=[2 / 128, 1], p_holm_least=2 / 128)
    assert table.finding.tolist() == ["significant", "not significant", "significant"]


def test_holm_over_categories():
    prompts = ("Raw", "ID")
    answers = [
        counted(prompts, kept=1, gained=9, lost=1, never=2, category="Age"),
        counted(prompts, kept=3, gained=12, lost=1, never=0, category="Skin"),
        counted(prompts, kept=4, gained=2, lost=2, never=2, category="Faith"),
    ]
    age = stats.binomtest(9, 10).pvalue
    skin = stats.binomtest(12, 13).pvalue
    faith = stats.binomtest(2, 4).pvalue
    overall = stats.binomtest(23, 27).pvalue

    table = changes(pd.concat(answers), *prompts)

    holds(
        table,
        p=[age, skin, faith, overall],
        p_holm=[2 * age, 3 * skin, 1, np.nan],
    )


@settings(max_examples=6)
@given(st.lists(st.tuples(*[st.integers(0, 8)] * 4).filter(any), min_size=1, max_size=3))
def test_gains_and_losses_are_the_change(categories):
    parts = []
    for k, counts in enumerate(categories):
        parts.append(counted(("Raw", "COT"), *counts, category=f"category {k}"))
    answers = pd.concat(parts)

    table = changes(answers, "Raw", "COT")

    share = (table["gained"] - table["lost"]) / table["n"]
    holds(table, change=100 * share)
    least = table["low"] - 1e-9
    most = table["high"] + 1e-9
    assert table["change"].between(least, most).all()

    by_prompt = accuracy(answers).set_index(["prompt", "category"])["accuracy"]
    holds(table, before=by_prompt["Raw"], after=by_prompt["COT"])

    mirrored = changes(answers[::-1], "COT", "Raw").set_index("category")
    mirrored = mirrored.loc[table["category"]]
    np.testing.assert_array_equal(mirrored["lost"], table["gained"])
    np.testing.assert_array_equal(mirrored["gained"], table["lost"])
    np.testing.assert_array_equal(mirrored["p_holm"], table["p_holm"])
    negated = -mirrored[["change", "high", "low"]]
    np.testing.assert_allclose(negated, table[["change", "low", "high"]], atol=1e-9)


def pick_when_lucky(key, right):
    """The answers of SOME: "" is no verdict."""
    if key == 0:
        return "A" if right == "A" else ""
    if key == 1:
        return right if right in "AB" else "A"
    return right


# Item 0 is right at A and without a verdict elsewhere, 1 at A and B and says A elsewhere, 2 always.
SOME = rotated(pick_when_lucky, items=3)


def next_answer(key, right):
    """Always the answer that stands behind the right one."""
    return LETTERS[LETTERS.index(right) - 3]


def test_positions_by_hand():
    right = np.array([3, 2, 1, 1])
    chosen = np.array([5, 2, 1, 1])

    table = by_position(SOME)

    assert table["position"].tolist() == ["A", "B", "C", "D"]
    holds(
        table,
        n=3,
        right=right,
        accuracy=right / 0.03,
        chosen=chosen,
        chosen_percent=chosen / 0.12,
    )
    at_b = table.loc[1]
    np.testing.assert_allclose([at_b["low"], at_b["high"]], wilson(2, 3))


def test_position_test_by_hand():
    # G = 3, 2, 1, 1 and L = 1, 2, 4: Q = 3 (4 x 15 - 49) / (28 - 21).
    some = position_test(SOME).loc[0]
    assert some["statistic"] == pytest.approx(33 / 7)
    assert some["p"] == pytest.approx(stats.chi2.sf(33 / 7, 3))
    assert some["prompt"] == "COT"
    assert some["df"] == 3
    assert some["n"] == 3
    assert some["n_informative"] == 2
    assert some["finding"] == "not significant"

    # At most 3 n: all right at A and nowhere else.
    always_a = position_test(rotated(pick_first, items=3)).loc[0]
    assert always_a["statistic"] == pytest.approx(9)
    assert always_a["p"] == pytest.approx(stats.chi2.sf(9, 3))
    assert always_a["p_least"] == stats.chi2.sf(9, 3)
    assert some["p_least"] == stats.chi2.sf(9, 3)
    assert always_a["finding"] == "significant"

    two_items = position_test(rotated(pick_first, items=2)).loc[0]
    assert two_items["finding"] == "could not have been significant"


@pytest.mark.parametrize("pick", [pick_right, pick_none, next_answer])
def test_position_test_without_an_informative_item(pick):
    row = position_test(rotated(pick)).loc[0]

    assert np.isnan(row["statistic"])
    assert row["p"] == 1
    assert row["n"] == 4
    assert row["n_informative"] == 0


def test_position_test_finds_a_bias_and_no_other():
    # Of 100 tests at 0.05 of a judge without position bias 5 find one, with a deviation of 2.2.
    rng = np.random.default_rng(3)
    skill = rng.random(40)

    def right_or_none(key, right):
        return right if rng.random() < skill[key] else ""

    def right_or_a(key, right):
        return right if rng.random() < skill[key] else "A"

    names = [str(k) for k in range(100)]
    fair = [rotated(right_or_none, items=40, prompt=name) for name in names]
    table = position_test(pd.concat(fair))

    assert table["prompt"].tolist() == names
    n_significant = (table["p"] < 0.05).sum()
    assert 1 <= n_significant <= 11

    biased = position_test(rotated(right_or_a, items=40))
    assert biased.loc[0, "p"] < 1e-4


def test_consistency_by_hand():
    skin = rotated(next_answer, 1, category="Skin")
    faith = rotated(pick_none, 1, category="Faith")

    table = consistency(pd.concat([SOME, skin, faith]))

    assert table["category"].tolist() == ["Age", "Skin", "Faith", "Overall"]
    holds(
        table,
        n=[3, 1, 1, 5],
        consistent=[1, 1, 0, 2],
        right=[1, 0, 0, 1],
        consistency=[100 / 3, 100, 0, 40],
        accuracy=[700 / 12, 0, 0, 35],
        accuracy_strict=[100 / 3, 0, 0, 20],
        accuracy_among=[100, 0, np.nan, 50],
    )
    overall = table.loc[3]
    np.testing.assert_allclose([overall["low"], overall["high"]], wilson(2, 5))
    np.testing.assert_allclose([overall["strict_low"], overall["strict_high"]], wilson(1, 5))


def test_a_letter_that_no_answer_has_is_not_consistent():
    table = consistency(rotated(lambda key, right: "E"))
    assert table["consistent"].tolist() == [0, 0]


@settings(max_examples=4)
@given(st.sampled_from(LETTERS), st.integers(1, 6))
def test_a_judge_of_one_letter_is_right_in_a_quarter_and_never_consistent(letter, items):
    answers = rotated(lambda key, right: letter, items)
    right = dict.fromkeys(LETTERS, 0) | {letter: items}
    chosen = dict.fromkeys(LETTERS, 0) | {letter: 4 * items}

    positions = by_position(answers).set_index("position")

    assert positions["right"].to_dict() == right
    assert positions["chosen"].to_dict() == chosen
    holds(consistency(answers), accuracy=25, consistency=0)


@settings(max_examples=4)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=6))
def test_a_judge_of_one_answer_is_consistent_and_right_in_all_orders_or_none(distances):
    """`distances`: how far behind the right answer of an item stands the one that is picked."""

    def pick(key, right):
        return LETTERS[(LETTERS.index(right) + distances[key]) % 4]

    items = len(distances)
    shuffled = rotated(pick, items).sample(frac=1, random_state=items)
    table = consistency(shuffled)

    share = 100 * distances.count(0) / items
    holds(
        table,
        consistency=100,
        accuracy=share,
        accuracy_strict=share,
        accuracy_among=share,
    )


# own and other are the letters chosen with the own identity and the other one; A is right.
TOLD = [  # prompt, identity, key, own, other
    ("COT", "Male", "m1", "A", "B"),
    ("COT", "Male", "m2", "A", "B"),
    ("COT", "Female", "f1", "A", "A"),
    ("COT", "Female", "f2", "C", "A"),
    ("ID", "Male", "m1", "A", "A"),
    ("ID", "Male", "m2", "A", ""),
    ("ID", "Female", "f1", "B", "B"),
    ("ID", "Female", "f2", "B", "B"),
]


def with_both_identities(rows, other_of):
    """Answers about each item with its own identity and with the other one of a pair."""
    answers = []
    for prompt, identity, key, own_letter, other_letter in rows:
        answers.append((prompt, key, identity, identity, "A", own_letter))
        answers.append((prompt, key, identity, other_of[identity], "A", other_letter))

    return answers_of(answers, ["prompt", "key", "identity", "told", "correct", "letter"])


GENDER = with_both_identities(TOLD, {"Male": "Female", "Female": "Male"})


def test_mismatch_by_hand():
    table = mismatch(GENDER, [("Male", "Female")])

    first = table.iloc[0]
    assert first.iloc[0] == "Male"
    assert first.iloc[1] == "Female"
    # COT: m1 and m2 lost, f2 gained; ID: m2 lost.
    holds(
        table,
        n=4,
        cot_prompt_mismatch=50,
        id_prompt_mismatch=25,
        no_mismatch=75,
        no_mismatch_id=50,
        cot_change=-25,
        cot_gained=1,
        cot_lost=2,
        cot_p=1,
        id_change=-25,
        id_gained=0,
        id_lost=1,
        id_p=1,
    )
    # Four items: 2 / 2**4 at least, and one tuple is a family of its own.
    holds(table, cot_p_least=1 / 8, id_p_holm_least=1 / 8)
    assert table.cot_finding.tolist() == ["could not have been significant"]

    as_two_prompts = counted(("own", "other"), kept=1, gained=1, lost=2, never=0)
    same = changes(as_two_prompts, "own", "other").loc[0]
    holds(table, cot_low=same.low, cot_high=same.high)

    swapped = mismatch(GENDER, [("Female", "Male")])
    pd.testing.assert_frame_equal(swapped.iloc[:, 2:], table.iloc[:, 2:])


def test_mismatch_without_tuples_has_no_row():
    with_a_tuple = mismatch(GENDER, [("Male", "Female")])

    table = mismatch(GENDER, [])

    assert len(table) == 0
    assert table.columns.equals(with_a_tuple.columns)


def test_mismatch_of_several_tuples():
    # Ten Young items lost with Old, none with Middle-aged; the tuples share their own answers.
    lost_rows = []
    kept_rows = []
    for prompt in ("COT", "ID"):
        for key in range(10):
            lost_rows.append((prompt, "Young", key, "A", "B"))
            kept_rows.append((prompt, "Young", key, "A", "A"))
    lost = with_both_identities(lost_rows, {"Young": "Old"})
    kept = with_both_identities(kept_rows, {"Young": "Middle-aged"})
    answers = pd.concat([lost, kept[kept["told"] != "Young"]])

    table = mismatch(answers, [("Young", "Old"), ("Middle-aged", "Young")])

    holds(
        table,
        n=10,
        cot_prompt_mismatch=[0, 100],
        no_mismatch=100,
        id_p=[2 / 2**10, 1],
        id_p_holm=[4 / 2**10, 1],
        cot_p_holm_least=4 / 2**10,
    )
    assert table.id_finding.tolist() == ["significant", "not significant"]


def test_an_item_counts_once_over_all_other_identities():
    # Item 0 is right with its own identity, and with one of two others; item 1 is as before: 100,
    # 100 before, 50, 100 after. A third item has no other identity, and is left out.
    rows = [
        ("Young", 0, "A", "A"),
        ("Young", 1, "A", "A"),
        ("Young", 2, "A", "A"),
    ]
    own_answers = answers_of(rows, ("identity", "key", "correct", "letter")).assign(told="Young")
    lost = own_answers[:2].assign(told="Old", letter=["B", "A"])
    kept = own_answers[:2].assign(told="Middle-aged")
    with_cot = pd.concat([own_answers, lost, kept])
    with_id = pd.concat([own_answers, kept]).assign(prompt="ID")
    answers = pd.concat([with_cot, with_id])

    cot_row, id_row = statistics.mismatch_over_items(answers).itertuples()

    assert id_row.prompt == "ID"
    assert id_row.n == 2
    assert id_row.change == 0

    assert cot_row.prompt == "COT"
    assert cot_row.n == 2
    assert cot_row.before == 100
    assert cot_row.after == 75
    assert cot_row.change == -25
    assert cot_row.reason == "cannot be told: one identity"
    half_width = stats.t.ppf(0.975, 1) * stats.sem([-50, 0])
    assert cot_row.low == pytest.approx(-25 - half_width)
    assert cot_row.high == pytest.approx(-25 + half_width)


def test_pairs_have_their_categories():
    pairs = pd.DataFrame({"identity_i": ["Male"], "identity_j": ["Female"], "category": ["Gender"]})

    table = statistics.mismatch_of_pairs(GENDER, pairs)

    assert table.category.tolist() == ["Gender"]
    plain = mismatch(GENDER, [("Male", "Female")])
    pd.testing.assert_frame_equal(table.drop(columns="category"), plain)


def test_a_table_of_models_has_each_models_own_rows():
    silent = BY_HAND.assign(letter="", model="a")
    both = pd.concat([BY_HAND.assign(model="z"), silent])

    table = statistics.by_model(both, accuracy, "released")

    assert table.index.tolist() == ["z"] * 6 + ["a"] * 6
    assert table.index.name == "model"
    own = table.loc["z"].reset_index(drop=True)
    pd.testing.assert_frame_equal(own, accuracy(BY_HAND, "released"))
    assert set(table.loc["a"].right) == {0}


def test_changes_over_raw_are_those_of_both_prompts():
    of_id = BY_HAND[BY_HAND.prompt == "COT"].assign(prompt="ID", letter="A")
    answers = pd.concat([BY_HAND, of_id])

    table = statistics.changes_over_raw(answers, "released", 3)

    assert table.columns[0] == "prompt"
    assert table.prompt.tolist() == ["COT"] * 3 + ["ID"] * 3
    for prompt, rows in table.groupby("prompt"):
        expected = changes(answers, "Raw", prompt, "released", 3)
        pd.testing.assert_frame_equal(rows.drop(columns="prompt").reset_index(drop=True), expected)


def test_findings_are_counted():
    findings = pd.Series(["not significant", "significant", "not significant"])
    assert statistics.counts_in_words(findings) == "2 not significant, 1 significant"


def changed(column, value, answers=BY_HAND):
    """The answers with another value in the second row."""
    values = answers[column].tolist()
    values[1] = value
    return answers.assign(**{column: values})


REFUSED = [
    (
        lambda: accuracy(pd.concat([BY_HAND, BY_HAND[:1].assign(shift=2)])),
        r"item 0 \(prompt Raw\) was asked twice, expected once: take the rows of one shift",
    ),
    (lambda: accuracy(changed("key", 0)), r"item 0 \(prompt Raw\) was asked twice"),
    (lambda: changes(BY_HAND, "Raw", "ID"), "item 0 was not asked with 'ID', expected both"),
    (lambda: changes(BY_HAND[:-1], "Raw", "COT"), "item 2 was not asked with 'COT', expected"),
    (lambda: changes(BY_HAND[1:], "Raw", "COT"), "item 0 was not asked with 'Raw'"),
    (
        lambda: by_position(BY_HAND),
        r"item 0 \(prompt Raw\) was asked with the shifts \[0\] .* at \['A'\], expected 0 to 3",
    ),
    (lambda: position_test(SOME[:-1]), r"item Age 2 .* the shifts \[0, 1, 2\]"),
    (lambda: consistency(changed("correct", "A", SOME)), r"at \['A', 'A', 'C', 'D'\]"),
    (lambda: consistency(changed("shift", 4, SOME)), r"the shifts \[0, 2, 3, 4\]"),
    (lambda: mismatch(GENDER[:-1], [("Male", "Female")]), "item f2 was not asked with 'other'"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
@pytest.mark.filterwarnings("error")
def test_what_cannot_be_used_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def four(p_of_right):
    """The probability of the right letter; the others share what it leaves, as 3 to 2 to 1."""
    sixth = (1 - p_of_right) / 6
    return [p_of_right, 3 * sixth, 2 * sixth, sixth]


def chances(p_of_right):
    """Scored answers: the probability of the right letter by prompt, item and order."""
    rows = []
    for (prompt, key), orders in p_of_right.items():
        category = "Age" if key < 2 else "Skin"
        for shift, p in enumerate(orders):
            rows.append((prompt, category, f"{key}", shift, *four(p)))

    return pd.DataFrame(rows, columns=["prompt", "category", "key", "shift", *LETTER_PROBABILITIES])


def test_the_right_letter_has_a_mean_probability_over_orders_and_items():
    """By hand: means of items 0.25, 0.35 and 0.5; what ID gains over Raw is 0.1, 0.3 and 0.5."""
    answers = chances(
        {
            ("Raw", 0): [0.4, 0.3, 0.2, 0.1],
            ("Raw", 1): [0.5, 0.4, 0.3, 0.2],
            ("Raw", 2): [0.5, 0.5, 0.5, 0.5],
            ("ID", 0): [0.35, 0.35, 0.35, 0.35],
            ("ID", 1): [0.8, 0.7, 0.6, 0.5],
            ("ID", 2): [1.0, 1.0, 1.0, 1.0],
        }
    )
    raw_means = [0.25, 0.35, 0.5]
    id_means = [0.35, 0.65, 1.0]

    table = right_letter_probability(answers).set_index(["prompt", "category"])

    raw = table.loc["Raw"]
    holds(raw, n=[2, 1, 3], p_right=[0.3, 0.5, 1.1 / 3])
    assert raw[["gain", "gain_low", "gain_high", "gain_p"]].isna().all(axis=None)
    holds(
        table.loc["ID"],
        n=[2, 1, 3],
        p_right=[0.5, 1.0, 2 / 3],
        gain=[0.2, 0.5, 0.3],
    )

    # Of each item any of the four answers: all 64 choices.
    choices = list(product(four(0.25), four(0.35), four(0.5)))
    deviations = np.abs(np.mean(choices, axis=1) - 0.25)
    observed = np.mean(raw_means) - 0.25
    exact_p = np.mean(deviations >= observed - 1e-12)
    interval = stats.ttest_1samp(raw_means, 0.25).confidence_interval(0.95)
    raw_overall = table.loc[("Raw", "Overall")]
    assert raw_overall.p == pytest.approx(exact_p, abs=0.015)
    assert raw_overall.low == pytest.approx(interval.low)
    assert raw_overall.high == pytest.approx(interval.high)

    paired = stats.ttest_rel(id_means, raw_means)
    interval = paired.confidence_interval(0.95)
    id_overall = table.loc[("ID", "Overall")]
    assert id_overall.gain_p == pytest.approx(paired.pvalue)
    assert id_overall.gain_low == pytest.approx(interval.low)
    assert id_overall.gain_high == pytest.approx(interval.high)

    assert np.isnan(id_overall.gain_p_holm)  # Overall is not in the family
    id_age = table.loc[("ID", "Age")]
    assert id_age.gain_p_holm == id_age.gain_p


def test_the_p_of_the_right_letter_is_that_of_scipy():
    """Its permutations of four samples within each observation, whose first has the mean."""

    def mean_of_right(right, *others, axis):
        return right.mean(axis=axis)

    probabilities = np.random.default_rng(2).dirichlet([0.3, 0.3, 0.3, 0.3], size=12)
    by_scipy = stats.permutation_test(
        probabilities.T,
        mean_of_right,
        permutation_type="samples",
        vectorized=True,
        n_resamples=9999,
        rng=0,
    )
    null_deviations = np.abs(by_scipy.null_distribution - 0.25)
    observed = abs(probabilities[:, 0].mean() - 0.25)
    expected = np.mean(null_deviations >= observed)

    p = statistics.right_against_random(probabilities)

    assert p == pytest.approx(expected, abs=0.02)
    assert statistics.right_against_random(probabilities[:, [1, 0, 2, 3]]) != p

    # Always right: each of 6 items by chance in one of four.
    always_right = np.zeros((6, 4))
    always_right[:, 0] = 1
    assert statistics.right_against_random(always_right) == pytest.approx(4.0**-6, abs=0.0008)

    no_item = always_right[:0]
    assert np.isnan(statistics.right_against_random(no_item))


def test_an_item_with_a_failed_call_has_no_probability():
    """Three of four orders would lean to where the answers stand."""
    answers = chances(
        {
            ("ID", 0): [0.9, 0.1, np.nan, 0.1],
            ("ID", 1): [0.5, 0.2, 0.2, 0.2],
            ("ID", 2): [0.3],
        }
    )

    table = right_letter_probability(answers).set_index("category")

    assert table.n.to_dict() == {"Age": 1, "Skin": 1, "Overall": 2}
    holds(table, p_right=[0.275, 0.3, 0.2875])
    assert table.gain.isna().all()  # Raw was not asked


@pytest.mark.parametrize("seed", range(3))
def test_over_all_four_orders_a_judge_of_places_has_a_quarter(seed):
    """Whatever it gives to A, B, C and D: the right letter stands at each once."""
    rng = np.random.default_rng(seed)
    answers = {("COT", key): rng.dirichlet(np.ones(4)) for key in range(4)}

    table = right_letter_probability(chances(answers))

    holds(table, p_right=0.25, p=1.0)


def test_a_gain_over_all_orders_by_hand():
    """Three items, about two identities each asked twice; the third identity has one item.

    ID is right in 4, 2, 1 of four orders and Raw in 2, 2, 2: gains of 50, 0 and -25 points.
    """
    orders_right = {
        ("Raw", "a"): 2,
        ("Raw", "b"): 2,
        ("Raw", "c"): 2,
        ("ID", "a"): 4,
        ("ID", "b"): 2,
        ("ID", "c"): 1,
    }
    rows = []
    for (prompt, key), right in orders_right.items():
        for shift in range(4):
            letter = "A" if shift < right else "B"
            rows.append((prompt, key, shift, "A", letter))
    answers = answers_of(rows, ("prompt", "key", "shift", "correct", "letter"))

    test = stats.ttest_1samp([50, 0, -25], 0)
    interval = test.confidence_interval()

    three_identities = answers.key.map({"a": "x", "b": "y", "c": "z"})
    table = statistics.over_orders(answers.assign(identity=three_identities))
    (row,) = table.itertuples()

    assert row.prompt == "ID"
    assert row.n == 3
    assert row.identities == 3
    assert row.reason == ""
    assert row.before == pytest.approx(50)
    assert row.change == pytest.approx(25 / 3)
    assert row.low == pytest.approx(interval.low)
    assert row.high == pytest.approx(interval.high)
    assert row.p == pytest.approx(test.pvalue)

    # With one item each, identities are a sample as items are.
    assert row.low_like_these == pytest.approx(row.low)
    assert row.high_like_these == pytest.approx(row.high)
    assert row.p_like_these == pytest.approx(row.p)

    two_identities = answers.key.map({"a": "x", "b": "y", "c": "y"})
    table = statistics.over_orders(answers.assign(identity=two_identities))
    (row,) = table.itertuples()

    assert row.reason == "cannot be told: two identities"
    assert np.isnan(row.p_like_these)


def test_a_judge_of_one_letter_is_said_to_be_one():
    """Three of four say A under Raw, all under ID; A is right in one item of four."""
    rows = [
        ("Raw", 0, "A", "A"),
        ("Raw", 1, "B", "A"),
        ("Raw", 2, "C", "A"),
        ("Raw", 3, "D", "B"),
        ("ID", 0, "A", "A"),
        ("ID", 1, "B", "A"),
        ("ID", 2, "C", "A"),
        ("ID", 3, "D", "A"),
    ]
    verdicts = pd.DataFrame(rows, columns=["prompt", "key", "correct", "letter"])
    without_letter = verdicts.assign(letter="")
    one_letter = statistics.favourite_letter

    assert one_letter(verdicts) == "A is 75 % under Raw, 100 % under ID; A is right in 25 %"
    assert one_letter(without_letter) == "no verdicts"
