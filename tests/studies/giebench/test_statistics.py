"""Accuracy by hand and against SciPy; gains, rotations and identities as they must be."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ingroup.studies.giebench import statistics
from ingroup.studies.giebench.answers import CHANCES
from ingroup.studies.giebench.statistics import (
    accuracy,
    by_position,
    changes,
    consistency,
    mismatch,
    p_right,
    position_test,
)


def answers_of(rows, columns=("prompt", "category", "key", "correct", "letter")):
    """Answers from rows of these columns; asked once, and ok where there is a letter."""
    table = pd.DataFrame(rows, columns=list(columns))
    for column, usual in {"shift": 0, "category": "Age", "prompt": "COT"}.items():
        table[column] = table.get(column, usual)

    status = np.where(table["letter"].eq(""), "no verdict", "ok")
    return table.assign(status=table.get("status", pd.Series(status)))


def counted(prompts, kept, gained, lost, never, category="Age"):
    """Answers of two prompts with so many items right in both, the second, the first and none."""
    right = [(1, 1)] * kept + [(0, 1)] * gained + [(1, 0)] * lost + [(0, 0)] * never
    return answers_of(
        (prompt, category, f"{category} {key}", "C", "BC"[sides[side]])
        for key, sides in enumerate(right)
        for side, prompt in enumerate(prompts)
    )


def rotated(pick, items=4, prompt="COT", category="Age"):
    """Every item in four rotations; `pick(key, correct)` is the letter chosen."""
    return answers_of(
        [
            (prompt, category, f"{category} {key}", shift, correct, pick(key, correct))
            for key in range(items)
            for shift in range(4)
            for correct in ["ABCD"[(key + shift) % 4]]
        ],
        ("prompt", "category", "key", "shift", "correct", "letter"),
    )


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
        *[("Raw", "Age", 0, "A", "A", "ok"), ("Raw", "Skin", 1, "B", "B", "ok")],
        *[("Raw", "Age", 2, "C", "Z", "ok"), ("Raw", "Skin", 3, "D", "D", "ok")],
        *[("Raw", "Age", 4, "A", "", "refused"), ("COT", "Age", 4, "A", "A", "ok")],
        *[("COT", "Skin", 3, "D", "", "failed"), ("COT", "Age", 0, "A", "A", "ok")],
        *[("COT", "Skin", 1, "B", "B", "ok"), ("COT", "Age", 2, "C", "C", "ok")],
    ],
    ("prompt", "category", "key", "correct", "letter", "status"),
)


def test_accuracy_by_hand():
    before = BY_HAND.copy()
    table = accuracy(BY_HAND)

    pd.testing.assert_frame_equal(BY_HAND, before)  # what is given is left as it is
    assert table["prompt"].tolist() == ["Raw"] * 3 + ["COT"] * 3
    assert table["category"].tolist() == ["Age", "Skin", "Overall"] * 2
    holds(table, n=[3, 2, 5] * 2, right=[1, 2, 3, 3, 1, 4], without=[1, 0, 1, 0, 1, 1])
    holds(table, refused=[1, 0, 1, 0, 0, 0], failed=[0, 0, 0, 0, 1, 1])
    holds(table, accuracy=[100 / 3, 100, 60, 100, 50, 80])

    for row in table.itertuples():
        np.testing.assert_allclose([row.low, row.high], wilson(row.right, row.n))


def test_denominators_and_rounding_by_hand():
    released = accuracy(BY_HAND, denominator="released")
    holds(released, accuracy=[25, 200 / 3, 60, 75, 100 / 3, 80])

    # The interval is of right / n.
    pd.testing.assert_frame_equal(released[["low", "high"]], accuracy(BY_HAND)[["low", "high"]])

    printed = accuracy(BY_HAND, denominator="released", decimals=3)["accuracy"]
    assert [f"{number:.10g}" for number in printed] == ["25", "66.7", "60", "75", "33.3", "80"]

    # 1 / 80 is a little more than 0.0125 in binary; numpy.round, which multiplies, gives 0.012.
    eighty = counted(("Raw", "COT"), 1, 0, 0, 79)
    assert accuracy(eighty, decimals=3)["accuracy"].tolist() == pytest.approx([1.3] * 4)


def test_changes_by_hand():
    table = changes(BY_HAND, "Raw", "COT")

    assert table["category"].tolist() == ["Age", "Skin", "Overall"]
    holds(table, n=[3, 2, 5], gained=[2, 0, 2], lost=[0, 1, 1], change=[200 / 3, -50, 20])
    holds(table, before=[100 / 3, 100, 60], after=[100, 50, 80])
    # 2 of 2, 1 of 1 and 2 of 3 coins, two-sided; Holm takes the smallest of two twice.
    holds(table, p=[0.5, 1, 1], p_holm=[1, 1, np.nan])


def test_a_printed_cell_of_table_4():
    # GPT-3.5-turbo, Country: 46.4 %, 41.2 %, -5.2 %, +17/-22, of 96 items divided by 97.
    table = changes(counted(("Raw", "COT"), 23, 17, 22, 34), "Raw", "COT", "released", 3)
    holds(table[:1], n=96, before=46.4, after=41.2, change=-5.2, gained=17, lost=22)
    holds(table[:1], p=stats.binomtest(17, 39).pvalue)

    # The difference of the rounded, not the rounded difference: -5 / 96 is -5.21, and here -5.3.
    table = changes(counted(("Raw", "COT"), 23, 17, 22, 34), "Raw", "COT", "paper", 3)
    holds(table, before=46.9, after=41.7, change=-5.2)


@pytest.mark.parametrize("n", [1, 2, 6, 9])
def test_a_change_and_its_test_agree_in_every_small_table(n):
    """Newcombe's interval, which stood here, leaves out 0 of 4 of 6 gained, where p is 0.125."""
    tables = [(g, lost) for g in range(n + 1) for lost in range(n + 1 - g)]
    parts = [counted(("Raw", "ID"), 0, *t, n - sum(t), f"{k}") for k, t in enumerate(tables)]
    table = changes(pd.concat(parts), "Raw", "ID")[:-1]
    beyond = (table.low > 0) | (table.high < 0)

    np.testing.assert_array_equal(beyond, table.p < 0.05)
    assert table.change.between(table.low - 1e-9, table.high + 1e-9).all()
    holds(table, p_least=2.0 ** (1 - n))


def test_what_could_not_have_been_significant_says_so():
    """Six items and eleven categories: whatever changes, p is at least 11 / 32 after Holm."""
    parts = [counted(("Raw", "ID"), 0, 6, 0, 0, f"c{k}") for k in range(11)]
    table = changes(pd.concat(parts), "Raw", "ID")

    holds(table[:-1], p=1 / 32, p_least=1 / 32, p_holm=11 / 32, p_holm_least=11 / 32)
    assert table.finding.tolist() == ["could not have been significant"] * 11 + ["significant"]

    # Two categories of 8 items: the first finds something, the second could have.
    parts = [counted(("Raw", "ID"), 0, *c) for c in ((8, 0, 0, "x"), (1, 1, 6, "y"))]
    table = changes(pd.concat(parts), "Raw", "ID")

    holds(table[:-1], p_holm=[2 / 128, 1], p_holm_least=2 / 128)
    assert table.finding.tolist() == ["significant", "not significant", "significant"]


def test_holm_over_categories():
    parts = [
        ("Age", 1, 9, 1, 2),
        ("Skin", 3, 12, 1, 0),
        ("Faith", 4, 2, 2, 2),
    ]
    answers = [counted(("Raw", "ID"), *counts, category) for category, *counts in parts]
    table = changes(pd.concat(answers), "Raw", "ID")
    p = [stats.binomtest(gained, gained + lost).pvalue for _, _, gained, lost, _ in parts]

    holds(table, p=[*p, stats.binomtest(23, 27).pvalue], p_holm=[2 * p[0], 3 * p[1], 1, np.nan])


@settings(max_examples=6)
@given(st.lists(st.tuples(*[st.integers(0, 8)] * 4).filter(any), min_size=1, max_size=3))
def test_gains_and_losses_are_the_change(categories):
    answers = pd.concat([counted(("Raw", "COT"), *c, f"c{k}") for k, c in enumerate(categories)])
    table = changes(answers, "Raw", "COT")

    holds(table, change=100 * (table["gained"] - table["lost"]) / table["n"])
    assert table["change"].between(table["low"] - 1e-9, table["high"] + 1e-9).all()

    by_prompt = accuracy(answers).set_index(["prompt", "category"])["accuracy"]
    holds(table, before=by_prompt["Raw"], after=by_prompt["COT"])

    mirrored = changes(answers[::-1], "COT", "Raw").set_index("category").loc[table["category"]]
    np.testing.assert_array_equal(mirrored[["lost", "gained"]], table[["gained", "lost"]])

    numbers = -mirrored[["change", "high", "low"]]
    np.testing.assert_allclose(numbers, table[["change", "low", "high"]], atol=1e-9)
    np.testing.assert_array_equal(mirrored["p_holm"], table["p_holm"])


# Item 0 is right at A and without a verdict elsewhere, 1 at A and B and says A elsewhere, 2 always.
SOME = rotated(lambda k, right: right if right in ["A", "AB", "ABCD"][k] else ["", "A"][k], items=3)


def next_answer(key, right):
    """Always the answer that stands behind the right one."""
    return "ABCD"["ABCD".index(right) - 3]


def test_positions_by_hand():
    table = by_position(SOME)
    assert table["position"].tolist() == list("ABCD")

    right = np.array([3, 2, 1, 1])
    chosen = np.array([5, 2, 1, 1])

    holds(
        table, n=3, right=right, accuracy=right / 0.03, chosen=chosen, chosen_percent=chosen / 0.12
    )
    np.testing.assert_allclose(table.loc[1, ["low", "high"]].to_list(), wilson(2, 3))


def test_position_test_by_hand():
    # G = 3, 2, 1, 1 and L = 1, 2, 4: Q = 3 (4 x 15 - 49) / (28 - 21).
    row = position_test(SOME).loc[0]
    assert row["statistic"] == pytest.approx(33 / 7)
    assert row["p"] == pytest.approx(stats.chi2.sf(33 / 7, 3))
    assert row[["prompt", "df", "n", "n_informative"]].tolist() == ["COT", 3, 3, 2]

    # At most 3 n: all right at A and nowhere else.
    always_a = position_test(rotated(lambda key, right: "A", 3)).loc[0]
    assert always_a["statistic"] == pytest.approx(9)
    assert always_a["p"] == pytest.approx(stats.chi2.sf(9, 3))
    assert always_a["p_least"] == row["p_least"] == stats.chi2.sf(9, 3)
    assert always_a["finding"] == "significant"
    assert row["finding"] == "not significant"

    few = position_test(rotated(lambda key, right: "A", 2)).loc[0]
    assert few["finding"] == "could not have been significant"

    for pick in (lambda key, right: right, lambda key, right: "", next_answer):
        row = position_test(rotated(pick)).loc[0]
        assert np.isnan(row["statistic"])
        assert row[["p", "n", "n_informative"]].tolist() == [1, 4, 0]


def test_position_test_finds_a_bias_and_no_other():
    # Of 100 tests at 0.05 of a judge without position bias 5 find one, with a deviation of 2.2.
    rng = np.random.default_rng(3)
    skill = rng.random(40)

    def judges(names, guess):
        def pick(key, right):
            return right if rng.random() < skill[key] else guess

        return pd.concat([rotated(pick, 40, prompt=str(name)) for name in names])

    table = position_test(judges(range(100), ""))

    assert table["prompt"].tolist() == [str(name) for name in range(100)]
    assert 1 <= (table["p"] < 0.05).sum() <= 11

    # One that says A wherever it does not know.
    assert position_test(judges(["COT"], "A")).loc[0, "p"] < 1e-4


def test_consistency_by_hand():
    skin = rotated(next_answer, 1, category="Skin")
    faith = rotated(lambda key, right: "", 1, category="Faith")
    table = consistency(pd.concat([SOME, skin, faith]))

    assert table["category"].tolist() == ["Age", "Skin", "Faith", "Overall"]
    holds(table, n=[3, 1, 1, 5], consistent=[1, 1, 0, 2], right=[1, 0, 0, 1])
    holds(table, consistency=[100 / 3, 100, 0, 40], accuracy=[700 / 12, 0, 0, 35])
    holds(table, accuracy_strict=[100 / 3, 0, 0, 20], accuracy_among=[100, 0, np.nan, 50])
    np.testing.assert_allclose(table.loc[3, ["low", "high"]].to_list(), wilson(2, 5))
    np.testing.assert_allclose(table.loc[3, ["strict_low", "strict_high"]].to_list(), wilson(1, 5))

    # A letter that no assistant has is no answer, however often it comes.
    table = consistency(rotated(lambda key, right: "E"))
    assert table["consistent"].tolist() == [0, 0]


@settings(max_examples=4)
@given(st.data(), st.sampled_from("ABCD"), st.integers(1, 6))
def test_extreme_judges_under_rotation(data, letter, items):
    # One that always says the same letter: a quarter right, all at one position, never consistent.
    table = rotated(lambda key, right: letter, items)
    assert by_position(table)["right"].tolist() == [items * (letter == at) for at in "ABCD"]
    assert by_position(table)["chosen"].tolist() == [4 * items * (letter == at) for at in "ABCD"]
    holds(consistency(table), accuracy=25, consistency=0)

    # One that always picks the same answer of an item: consistent, and right in all or none.
    answer = data.draw(st.lists(st.integers(0, 3), min_size=items, max_size=items))
    table = rotated(lambda key, right: "ABCD"[("ABCD".index(right) + answer[key]) % 4], items)
    table = consistency(table.sample(frac=1, random_state=items))
    share = 100 * answer.count(0) / items

    holds(table, consistency=100, accuracy=share, accuracy_strict=share, accuracy_among=share)


# own and other are the letters chosen with the own identity and the other one; A is right.
TOLD = [  # prompt, identity, key, own, other
    *[("COT", "Male", "m1", "A", "B"), ("COT", "Male", "m2", "A", "B")],
    *[("COT", "Female", "f1", "A", "A"), ("COT", "Female", "f2", "C", "A")],
    *[("ID", "Male", "m1", "A", "A"), ("ID", "Male", "m2", "A", "")],
    *[("ID", "Female", "f1", "B", "B"), ("ID", "Female", "f2", "B", "B")],
]


def told(rows, other):
    """Each item told its own identity and the other one of a pair."""
    return answers_of(
        [
            (prompt, key, identity, told, "A", letter)
            for prompt, identity, key, *letters in rows
            for told, letter in zip((identity, other[identity]), letters, strict=True)
        ],
        ("prompt", "key", "identity", "told", "correct", "letter"),
    )


GENDER = told(TOLD, {"Male": "Female", "Female": "Male"})


def test_mismatch_by_hand():
    table = mismatch(GENDER, [("Male", "Female")])
    assert table.iloc[0, :2].tolist() == ["Male", "Female"]

    # COT: m1 and m2 lost, f2 gained; ID: m2 lost.
    holds(table, n=4, cot_prompt_mismatch=50, id_prompt_mismatch=25)
    holds(table, no_mismatch=75, no_mismatch_id=50)
    holds(table, cot_change=-25, cot_gained=1, cot_lost=2, cot_p=1)
    holds(table, id_change=-25, id_gained=0, id_lost=1, id_p=1)

    # The same pairs as two prompts.
    same = changes(counted(("own", "other"), 1, 1, 2, 0), "own", "other").loc[0]
    holds(table, cot_low=same.low, cot_high=same.high)

    # Four items: 2 / 2**4 at least, and one tuple is a family of its own.
    holds(table, cot_p_least=1 / 8, id_p_holm_least=1 / 8)
    assert table.cot_finding.tolist() == ["could not have been significant"]

    swapped = mismatch(GENDER, [("Female", "Male")])
    pd.testing.assert_frame_equal(swapped.iloc[:, 2:], table.iloc[:, 2:])


def test_mismatch_without_tuples_has_no_row():
    table = mismatch(GENDER, [])
    assert len(table) == 0
    assert table.columns.equals(mismatch(GENDER, [("Male", "Female")]).columns)


def test_mismatch_of_several_tuples():
    # Ten Young items lost with Old, none with Middle-aged; the tuples share their own answers.
    young = [(prompt, "Young", key, "A", "B") for prompt in ("COT", "ID") for key in range(10)]
    lost = told(young, {"Young": "Old"})
    kept = told([(*row[:4], "A") for row in young], {"Young": "Middle-aged"})
    answers = pd.concat([lost, kept[kept["told"] != "Young"]])
    table = mismatch(answers, [("Young", "Old"), ("Middle-aged", "Young")])

    holds(table, n=10, cot_prompt_mismatch=[0, 100], no_mismatch=100)
    holds(table, id_p=[2 / 2**10, 1], id_p_holm=[4 / 2**10, 1], cot_p_holm_least=4 / 2**10)
    assert table.id_finding.tolist() == ["significant", "not significant"]


def test_an_item_counts_once_over_all_other_identities():
    # Item 0 is right with its own identity, and with one of two others; item 1 is as before: 100,
    # 100 before, 50, 100 after. A third item has no other identity, and is left out.
    rows = [("Young", key, "A", "A") for key in range(3)]
    own = answers_of(rows, ("identity", "key", "correct", "letter")).assign(told="Young")
    lost = own[:2].assign(told="Old", letter=["B", "A"])
    kept = own[:2].assign(told="Middle-aged")
    cot = pd.concat([own, lost, kept])
    plain = pd.concat([own, kept]).assign(prompt="ID")
    row, other_prompt = statistics.mismatch_over_items(pd.concat([cot, plain])).itertuples()

    assert other_prompt.prompt == "ID"
    assert other_prompt.n == 2
    assert other_prompt.change == 0
    assert row.prompt == "COT"
    assert row.n == 2
    assert row.before == 100
    assert row.after == 75
    assert row.change == -25
    assert row.reason == "cannot be told: one identity"

    half = stats.t.ppf(0.975, 1) * stats.sem([-50, 0])
    assert row.low == pytest.approx(-25 - half)
    assert row.high == pytest.approx(-25 + half)


def changed(column, value, answers=BY_HAND):
    """The answers with another value in the second row."""
    values = answers[column].tolist()
    return answers.assign(**{column: [values[0], value, *values[2:]]})


REFUSED = [
    (lambda: accuracy(pd.concat([BY_HAND, BY_HAND[:1].assign(shift=2)])),
     r"item 0 \(prompt Raw\) was asked twice, expected once: take the rows of one shift"),
    (lambda: accuracy(changed("key", 0)), r"item 0 \(prompt Raw\) was asked twice"),
    (lambda: changes(BY_HAND, "Raw", "ID"), "item 0 was not asked with 'ID', expected both"),
    (lambda: changes(BY_HAND[:-1], "Raw", "COT"), "item 2 was not asked with 'COT', expected"),
    (lambda: changes(BY_HAND[1:], "Raw", "COT"), "item 0 was not asked with 'Raw'"),
    (lambda: by_position(BY_HAND),
     r"item 0 \(prompt Raw\) was asked with the shifts \[0\] .* at \['A'\], expected 0 to 3"),
    (lambda: position_test(SOME[:-1]), r"item Age 2 .* the shifts \[0, 1, 2\]"),
    (lambda: consistency(changed("correct", "A", SOME)), r"at \['A', 'A', 'C', 'D'\]"),
    (lambda: consistency(changed("shift", 4, SOME)), r"the shifts \[0, 2, 3, 4\]"),
    (lambda: mismatch(GENDER[:-1], [("Male", "Female")]), "item f2 was not asked with 'other'"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED)
@pytest.mark.filterwarnings("error")
def test_what_cannot_be_used_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def four(p):
    """The probability of the right letter; the others share what it leaves, as 3 to 2 to 1."""
    return [p, *((1 - p) * share / 6 for share in (3, 2, 1))]


def chances(given):
    """Answers over choices: the probability of the right letter by prompt, item and order."""
    rows = [
        (prompt, "Age" if key < 2 else "Skin", f"{key}", shift, *four(p))
        for (prompt, key), order in given.items()
        for shift, p in enumerate(order)
    ]
    return pd.DataFrame(rows, columns=["prompt", "category", "key", "shift", *CHANCES])


def test_the_right_letter_has_a_mean_probability_over_orders_and_items():
    """By hand: means of items 0.25, 0.35 and 0.5; what ID gains over Raw is 0.1, 0.3 and 0.5."""
    raw = {("Raw", 0): [0.4, 0.3, 0.2, 0.1], ("Raw", 1): [0.5, 0.4, 0.3, 0.2],
           ("Raw", 2): [0.5] * 4}  # fmt: skip
    own = {("ID", 0): [0.35] * 4, ("ID", 1): [0.8, 0.7, 0.6, 0.5], ("ID", 2): [1.0] * 4}
    table = p_right(chances(raw | own)).set_index(["prompt", "category"])

    holds(table.loc["Raw"], n=[2, 1, 3], p_right=[0.3, 0.5, 1.1 / 3])
    holds(table.loc["ID"], n=[2, 1, 3], p_right=[0.5, 1.0, 2 / 3], gain=[0.2, 0.5, 0.3])

    one = stats.ttest_1samp([0.25, 0.35, 0.5], 0.25)
    interval = one.confidence_interval(0.95)
    overall = table.loc[("Raw", "Overall")]

    # Of each item any of the four answers: all 64 choices.
    means = np.mean(list(product(four(0.25), four(0.35), four(0.5))), axis=1)
    exact = np.mean(np.abs(means - 0.25) >= np.mean([0.25, 0.35, 0.5]) - 0.25 - 1e-12)

    assert overall.p == pytest.approx(exact, abs=0.015)
    assert [overall.low, overall.high] == pytest.approx([*interval])

    own = table.loc[("ID", "Overall")]
    two = stats.ttest_rel([0.35, 0.65, 1.0], [0.25, 0.35, 0.5])

    assert own.gain_p == pytest.approx(two.pvalue)
    assert [own.gain_low, own.gain_high] == pytest.approx([*two.confidence_interval(0.95)])
    assert table.loc["Raw"][["gain", "gain_low", "gain_high", "gain_p"]].isna().all(axis=None)
    assert np.isnan(own.gain_p_holm)  # Overall is none of the family
    assert table.loc[("ID", "Age"), "gain_p_holm"] == table.loc[("ID", "Age"), "gain_p"]


def test_the_p_of_the_right_letter_is_that_of_scipy():
    """Its permutations of four samples within each observation, whose first has the mean."""
    given = np.random.default_rng(2).dirichlet([0.3] * 4, size=12)
    theirs = stats.permutation_test(
        given.T, lambda right, *_, axis: right.mean(axis=axis), permutation_type="samples",
        vectorized=True, n_resamples=9999, rng=0,
    )  # fmt: skip
    off = np.abs(theirs.null_distribution - 0.25) >= abs(given[:, 0].mean() - 0.25)

    assert statistics._any_right(given) == pytest.approx(off.mean(), abs=0.02)
    assert statistics._any_right(given[:, [1, 0, 2, 3]]) != statistics._any_right(given)

    sure = np.eye(4)[np.zeros(6, int)]  # always right: each of 6 items by chance in one of four
    assert statistics._any_right(sure) == pytest.approx(4.0**-6, abs=0.0008)
    assert np.isnan(statistics._any_right(sure[:0]))


def test_an_item_with_a_failed_call_has_no_probability():
    """Three of four orders would lean to where the answers stand."""
    given = {
        ("ID", 0): [0.9, 0.1, np.nan, 0.1],
        ("ID", 1): [0.5, 0.2, 0.2, 0.2],
        ("ID", 2): [0.3],
    }
    table = p_right(chances(given)).set_index("category")

    assert table.n.to_dict() == {"Age": 1, "Skin": 1, "Overall": 2}
    holds(table, p_right=[0.275, 0.3, 0.2875])
    assert table.gain.isna().all()  # Raw was not asked


@pytest.mark.parametrize("seed", range(3))
def test_over_all_four_orders_a_judge_of_places_has_a_quarter(seed):
    """Whatever it gives to A, B, C and D: the right letter stands at each once."""
    rng = np.random.default_rng(seed)
    given = {("COT", key): rng.dirichlet(np.ones(4)) for key in range(4)}
    table = p_right(chances(given))
    holds(table, p_right=0.25, p=1.0)


def test_a_gain_over_all_orders_by_hand():
    """Three items, about two identities each asked twice; the third identity has one item.

    ID is right in 4, 2, 1 of four orders and Raw in 2, 2, 2: gains of 50, 0 and -25 points.
    """
    rights = {
        "Raw": {"a": 2, "b": 2, "c": 2},
        "ID": {"a": 4, "b": 2, "c": 1},
    }
    rows = [
        (prompt, key, shift, "A", "A" if shift < right else "B")
        for prompt, items in rights.items()
        for key, right in items.items()
        for shift in range(4)
    ]
    answers = answers_of(rows, ("prompt", "key", "shift", "correct", "letter"))
    one_each = answers.assign(identity=answers.key.map({"a": "x", "b": "y", "c": "z"}))
    (row,) = statistics.over_orders(one_each).itertuples()
    test = stats.ttest_1samp([50, 0, -25], 0)
    interval = test.confidence_interval()

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
    assert row.low_like == pytest.approx(row.low)
    assert row.high_like == pytest.approx(row.high)
    assert row.p_like == pytest.approx(row.p)

    two = answers.assign(identity=answers.key.map({"a": "x", "b": "y", "c": "y"}))
    (row,) = statistics.over_orders(two).itertuples()

    assert row.reason == "cannot be told: two identities"
    assert np.isnan(row.p_like)
