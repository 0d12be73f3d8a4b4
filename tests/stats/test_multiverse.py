"""Paths and shares; test_paired holds the corrections."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingroup.stats import multiverse
from ingroup.stats.multiverse import Result
from ingroup.studies.biased_samaritan import statistics as helpfulness


@settings(max_examples=30)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_as_many_paths_as_the_product_of_the_options(sizes):
    choices = {f"choice {k}": list(range(size)) for k, size in enumerate(sizes)}
    found = multiverse.paths(choices)
    different = {tuple(path.items()) for path in found}
    assert len(found) == np.prod(sizes)
    assert len(different) == len(found)
    assert all(list(path) == list(choices) for path in found)


def test_the_last_choice_changes_fastest_and_a_rule_leaves_combinations_out():
    choices = {"one": "ab", "other": [1, 2]}

    found = multiverse.paths(choices, lambda one, other: one == "a" or other == 2)

    expected = [("a", 1), ("a", 2), ("b", 2)]
    assert [tuple(path.values()) for path in found] == expected


@pytest.mark.parametrize(
    ("estimate", "p", "stands", "is_reversed"),
    [
        (0.1, 0.049, True, False),
        (-0.1, 0.049, False, True),
        (0.0, 0.049, False, False),
        (0.1, 0.05, False, False),
        (-0.1, 0.05, False, False),
        (np.nan, np.nan, False, False),
    ],
)
def test_a_claim_stands_below_alpha_and_above_0(estimate, p, stands, is_reversed):
    def claims(answers):
        return {"claim": Result(estimate, 0.0, 0.0, p)}

    table = multiverse.evaluate({}, dict, {}, claims, 0.05, corrections=["none"])

    assert table.stands.tolist() == [stands]
    assert table.reversed.tolist() == [is_reversed]


def test_a_least_p_at_the_level_could_not_show_a_claim():
    def claims(answers, least):
        return {"claim": Result(1.0, 0.0, 2.0, 0.2, least=least)}

    choices = {"least": [0.049, 0.05]}

    table = multiverse.evaluate({}, dict, choices, claims, 0.05, corrections=["none"])

    assert table.testable.tolist() == [True, False]


def test_a_refusal_is_a_result_without_numbers():
    def refuse(numbers, at_least):
        raise ValueError(f"found {len(numbers)}, expected {at_least}")

    found = multiverse.attempt(refuse, [1], at_least=2)

    assert found.reason == "found 1, expected 2"
    assert np.isnan(found[:4]).all()
    assert found.least == 0


def by_correction(table, claim):
    """The rows of a claim by their correction."""
    rows = table[table.claim == claim]
    return rows.set_index("correction")


def test_one_path_is_the_direct_call():
    def claims(answers, **path):
        one = Result(2.0, 1.0, 3.0, 0.02)
        other = Result(-1.0, -2.0, 0.0, 0.04)
        return {"one": one, "other": other}

    table = multiverse.evaluate({}, dict, {"way": ["only"]}, claims, 0.05)

    expected = [name for name in multiverse.CORRECTIONS for _ in range(2)]
    assert table.correction.tolist() == expected
    one = by_correction(table, "one")
    assert one.p_corrected.tolist() == pytest.approx([0.02, 0.04, 0.04, 0.04])
    assert one.stands.all()
    assert not one.reversed.any()
    other = by_correction(table, "other")
    assert not other.stands.any()
    assert other.reversed.tolist() == [True, False, True, True]


@pytest.fixture
def three_ways():
    """A claim that is undefined one way, sure another and unsure the third, on either side."""

    def claims(way, side):
        if way == "none":
            return {"claim": multiverse.attempt(helpfulness.bias, [[1]], [[2]])}
        p = 0.001 if way == "sure" else 0.5
        return {"claim": Result(side * 1.5, 0, 0, p)}

    reading = {"way": ["none", "sure", "unsure"]}
    others = {"side": [1, -1]}
    return multiverse.evaluate(reading, lambda way: way, others, claims, 0.05)


def test_shares_by_hand(three_ways):
    """Three ways, two sides and four corrections: a sixth is sure on one side."""
    row = multiverse.shares(three_ways).loc["claim"]

    assert row[["paths", "undefined", "testable"]].tolist() == [3 * 2 * 4, 2 * 4, 4 * 4]
    assert row[["stands", "reversed"]].tolist() == pytest.approx([100 / 6, 100 / 6])
    assert row[["median", "lowest", "highest"]].tolist() == [0, -1.5, 1.5]
    assert "expected at least 2" in three_ways.reason[0]


def test_shares_by_option_by_hand(three_ways):
    options = multiverse.by_option(three_ways, ["way", "side"])

    stands = options.stands["claim"]
    assert stands.loc["way"].to_dict() == {"none": 0, "sure": 50, "unsure": 0}
    assert stands.loc["side"].to_dict() == pytest.approx({"1": 100 / 3, "-1": 0})
    assert stands.loc["correction"].to_dict() == pytest.approx(
        dict.fromkeys(multiverse.CORRECTIONS, 100 / 6)
    )


def least_of_two_hundredths(answers, side):
    """Two tests, of which the first has p .02, its least."""
    one = Result(side, 0, 0, 0.02, least=0.02)
    other = Result(1.0, 0, 0, 0.5)
    return {"one": one, "other": other}


def test_a_path_that_could_not_show_a_claim_counts_neither_for_nor_against_it():
    """Least p .02 of two tests: .04 after Bonferroni, which is above a level of .03.

    Without a correction .02 is below .03; Holm and Benjamini-Hochberg make .04 of p.
    """
    choices = {"side": [1.0, -1.0]}

    table = multiverse.evaluate({}, dict, choices, least_of_two_hundredths, 0.03)

    one = by_correction(table, "one")
    assert one.testable.tolist() == [True, False, True, True] * 2
    row = multiverse.shares(table).loc["one"]
    assert row[["paths", "testable"]].tolist() == [8, 6]
    assert row.stands == pytest.approx(100 / 6)
    assert row.reversed == pytest.approx(100 / 6)


def test_a_claim_that_no_path_could_show_has_no_share():
    table = multiverse.evaluate({}, dict, {"side": [1.0]}, least_of_two_hundredths, 0.01)

    row = multiverse.shares(table).loc["one"]
    assert row.testable == 0
    assert np.isnan(row.stands)


def test_a_choice_without_an_effect_changes_no_share():
    """Three rules that change nothing, and three sides of which two stand."""

    def claims(answers, rule, side):
        one = Result(side, 0, 0, 0.01)
        other = Result(1.0, 0, 0, 0.3)
        return {"one": one, "other": other}

    choices = {"rule": ["a", "b", "c"], "side": [1.0, -1.0, 2.0]}
    table = multiverse.evaluate({}, dict, choices, claims, 0.05)

    row = multiverse.shares(table).loc["one"]
    of_one_rule = multiverse.shares(table[table.rule == "a"]).loc["one"]
    assert row.paths == 3 * of_one_rule.paths == 3 * 3 * 4
    assert row.stands == of_one_rule.stands == pytest.approx(200 / 3)


def test_options_that_agree_count_as_much_as_options_that_differ():
    """Three greedy readings give one rating and three means give three: each has a sixth."""
    estimates = {"greedy 1": -1.0, "greedy 2": -1.0, "greedy 3": -1.0}
    estimates |= {"mean 1": 1.0, "mean 2": 2.0, "mean 3": 3.0}

    def claims(answers):
        return {"claim": Result(answers, 0, 0, 0.001)}

    def read(reading):
        return estimates[reading]

    table = multiverse.evaluate({"reading": list(estimates)}, read, {}, claims, 0.05)

    row = multiverse.shares(table).loc["claim"]
    assert row[["stands", "reversed"]].tolist() == [50, 50]
    assert row["median"] == 0


def test_paths_count_alike_whatever_they_find():
    """A correction that makes every p 1 counts as another that does."""
    pvalues = {"a": 0.001, "b": 0.002, "c": 0.003}

    def claims(answers, side):
        factor = 1 if side == "sure" else 300
        return {name: Result(1.0, 0, 0, factor * p) for name, p in pvalues.items()}

    table = multiverse.evaluate({}, dict, {"side": ["sure", "unsure"]}, claims, 0.05)

    assert multiverse.shares(table).stands.tolist() == [50, 50, 50]


def test_a_true_effect_stands_and_a_null_does_on_about_alpha_of_the_paths():
    """A claim a seed, so that the paths share no data; the effect is four standard errors."""

    def claims(seed, effect):
        rng = np.random.default_rng(seed)
        group = rng.normal(effect, 1, (50, 1))
        test = helpfulness.bias(group, np.zeros((50, 1)))
        return {"claim": Result(test.bias, test.low, test.high, test.p)}

    reading = {"seed": list(range(200))}
    others = {"effect": [0.0, 0.8]}
    table = multiverse.evaluate(reading, lambda seed: seed, others, claims, 0.05)

    found = multiverse.by_option(table, others).loc[("claim", "effect")]
    assert found.stands["0.8"] == 100
    assert 0.5 < found.stands["0.0"] < 5  # 2.5 are to be expected
    assert 0.5 < found.reversed["0.0"] < 5


def test_equal_answers_are_tested_once():
    """Two rules that read alike: equal arrays and tables, wherever they lie in memory."""
    asked = []

    def read(rule):
        letters = pd.DataFrame({"letter": ["A", rule[:1]]})
        return {"x": np.array([1.0, np.nan]), "y": letters}

    def claims(answers, side):
        letter = answers["y"].letter[1]
        asked.append((letter, side))
        return {"claim": Result(1.0, 0.0, 2.0, 0.01)}

    rules = ["same", "similar", "other"]
    sides = {"side": [0, 1]}
    table = multiverse.evaluate({"rule": rules}, read, sides, claims, 0.05, lambda side: side < 1)

    assert asked == [("s", 0), ("o", 0)]
    assert table.rule.drop_duplicates().tolist() == rules
    assert len(table) == 3 * len(multiverse.CORRECTIONS)


@pytest.mark.parametrize(
    ("stands", "reverse", "undefined", "testable", "above", "below", "none"),
    [
        (100, 0, 0, 8, "stands", "reversed", "differs"),
        (0, 100, 0, 8, "reversed", "stands", "differs"),
        (51, 0, 0, 8, "mostly stands", "mostly reversed", "depends"),
        (51, 5, 0, 8, "mostly stands", "mostly reversed", "depends"),  # 5 % come by chance
        (75, 5.1, 0, 8, "depends", "depends", "depends"),
        (96, 4, 0, 8, "mostly stands", "mostly reversed", "differs"),
        (50, 0, 0, 8, "stands on half", "reversed on half", "depends"),  # half is not most
        (40, 60, 0, 8, "depends", "depends", "differs"),
        (3, 2, 0, 8, "mostly not shown", "mostly not shown", "mostly stands"),
        (0, 0, 0, 8, "not shown", "not shown", "stands"),
        (0, 74, 0, 8, "mostly reversed", "mostly stands", "depends"),
        (3, 93, 0, 8, "mostly reversed", "mostly stands", "mostly differs"),
        (0, 50, 0, 8, "reversed on half", "stands on half", "depends"),
        (49, 0, 0, 8, "mostly not shown", "mostly not shown", "depends"),
        (0, 0, 2, 6, "not shown", "not shown", "mostly stands"),
        (75, 0, 2, 6, "mostly stands", "mostly reversed", "mostly differs"),
        (0, 0, 5, 3, "not shown", "not shown", "mostly not shown"),
        (np.nan, np.nan, 0, 0, *["cannot be told"] * 3),
        (0, 0, 8, 0, *["undefined"] * 3),
    ],
)
def test_what_paths_make_of_a_sentence(stands, reverse, undefined, testable, above, below, none):
    row = {"paths": 8, "undefined": undefined, "testable": testable, "stands": stands}
    table = pd.DataFrame([row | {"reversed": reverse}] * 3)
    found = multiverse.verdicts(table, ["above", "below", "no difference"])
    assert found.verdict.tolist() == [above, below, none]
    if testable:
        calm = 100 - stands - reverse - 100 * undefined / (testable + undefined)
        assert found.share.tolist() == pytest.approx([stands, reverse, calm])
        assert (found.counted == testable + undefined).all()
        assert found.against.tolist() == [reverse, stands, stands + reverse]


def test_a_share_of_zero_has_no_sign():
    """Shares with ten digits can sum to a little more than 100, which rounds to -0."""
    row = {
        "paths": 3,
        "undefined": 0,
        "testable": 3,
        "stands": 33.33333334,
        "reversed": 66.66666667,
    }
    found = multiverse.verdicts(pd.DataFrame([row]), ["no difference"])
    assert found.share.tolist() == [0]
    assert not np.signbit(found.share).any()


@pytest.mark.parametrize(
    ("share_from", "share_to", "decides"),
    [
        (0, 100, True),
        (5, 50.1, True),  # 5 % come by chance
        (5.1, 100, False),
        (0, 50, False),  # half is not more than half
        (60, 100, False),  # the claim holds under each option
        (np.nan, np.nan, False),
    ],
)
def test_a_choice_decides_if_one_option_finds_nothing_and_another_most(
    share_from, share_to, decides
):
    assert multiverse.decides(share_from, share_to) is decides
