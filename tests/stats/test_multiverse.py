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

    assert table.could.tolist() == [True, False]


def test_a_refusal_is_a_result_without_numbers():
    def refuse(numbers, at_least):
        raise ValueError(f"found {len(numbers)}, expected {at_least}")

    found = multiverse.attempt(refuse, [1], at_least=2)

    assert found.reason == "found 1, expected 2"
    assert np.isnan(found[:4]).all()
    assert found.least == 0


def test_one_path_is_the_direct_call():
    def claims(answers, **path):
        return {"one": Result(2.0, 1.0, 3.0, 0.02), "other": Result(-1.0, -2.0, 0.0, 0.04)}

    table = multiverse.evaluate({}, dict, {"way": ["only"]}, claims, 0.05)
    assert list(table.correction) == [c for c in multiverse.CORRECTIONS for _ in range(2)]
    one = table[table.claim == "one"].set_index("correction")
    assert one.p_corrected.to_dict() == pytest.approx(
        {"none": 0.02, "Bonferroni": 0.04, "Holm": 0.04, "Benjamini-Hochberg": 0.04}
    )
    assert one.stands.all()
    assert not one.reversed.any()
    other = table[table.claim == "other"].set_index("correction")
    assert not other.stands.any()
    assert other.reversed.to_dict() == {
        "none": True, "Bonferroni": False, "Holm": True, "Benjamini-Hochberg": True,
    }  # fmt: skip


def test_shares_by_hand():
    def claims(way, side):
        if way == "none":
            return {"claim": multiverse.attempt(helpfulness.bias, [[1]], [[2]])}
        return {"claim": Result(side * 1.5, 0, 0, 0.001 if way == "sure" else 0.5)}

    reading, others = {"way": ["none", "sure", "unsure"]}, {"side": [1, -1]}
    table = multiverse.evaluate(reading, lambda way: way, others, claims, 0.05)
    row = multiverse.shares(table).loc["claim"]
    # Four corrections of one test are one result, and both sides of "none" are the same one.
    assert row[["listed", "paths", "undefined", "could"]].tolist() == [6 * 4, 5, 1, 4]
    assert row[["stands", "reversed"]].tolist() == pytest.approx([20, 20])
    assert row[["median", "lowest", "highest"]].tolist() == [0, -1.5, 1.5]
    assert "expected at least 2" in table.reason[0]
    options = multiverse.by_option(table, [*reading, *others]).stands["claim"]
    assert options.loc["way"].to_dict() == {"none": 0, "sure": 50, "unsure": 0}
    assert options.loc["side"].to_dict() == pytest.approx({"1": 100 / 3, "-1": 0})
    assert options.loc["correction"].to_dict() == dict.fromkeys(multiverse.CORRECTIONS, 20)


def test_a_path_that_could_not_show_a_claim_counts_neither_for_nor_against_it():
    """Least p .02 of two tests: .04 after Bonferroni, which is above a level of .03."""

    def claims(answers, side):
        return {"one": Result(side, 0, 0, 0.02, least=0.02), "other": Result(1.0, 0, 0, 0.5)}

    table = multiverse.evaluate({}, dict, {"side": [1.0, -1.0]}, claims, 0.03)
    by_correction = table[table.claim == "one"].groupby("correction").could.unique().map(list)
    assert by_correction.to_dict() == {
        "none": [True], "Bonferroni": [False], "Holm": [True], "Benjamini-Hochberg": [True],
    }  # fmt: skip
    row = multiverse.shares(table).loc["one"]
    # Without a correction .02 is below .03; Holm and Benjamini-Hochberg make .04 of it.
    assert row[["paths", "could"]].tolist() == [8, 6]
    assert (row.stands, row.reversed) == pytest.approx((100 / 6, 100 / 6))

    table = multiverse.evaluate({}, dict, {"side": [1.0]}, claims, 0.01)
    assert multiverse.shares(table).loc["one", "could"] == 0
    assert np.isnan(multiverse.shares(table).loc["one", "stands"])


def test_options_without_an_effect_count_once():
    """Two rules that change nothing: a claim has the paths of the choice that matters."""

    def claims(answers, rule, side):
        return {"one": Result(side, 0, 0, 0.01), "other": Result(1.0, 0, 0, 0.3)}

    choices = {"rule": ["a", "b", "c"], "side": [1.0, -1.0, 2.0]}
    row = multiverse.shares(multiverse.evaluate({}, dict, choices, claims, 0.05)).loc["one"]
    assert (row.listed, row.paths) == (3 * 3 * 4, 3 * 4)
    assert row.stands == pytest.approx(200 / 3)


def test_paths_count_alike_whatever_they_find():
    """A correction that makes every p 1 is not the same result as another that does."""

    def claims(answers, side):
        factor = 1 if side == "sure" else 300
        return {name: Result(1.0, 0, 0, factor * p) for name, p in zip("abc", LOW, strict=True)}

    LOW = [0.001, 0.002, 0.003]
    table = multiverse.evaluate({}, dict, {"side": ["sure", "unsure"]}, claims, 0.05)
    assert multiverse.shares(table).stands.tolist() == [50, 50, 50]


def test_a_planted_effect_stands_and_a_null_does_on_about_alpha_of_the_paths():
    """A claim a seed, so that the paths share no data; the effect is four standard errors."""

    def claims(seed, effect):
        rng = np.random.default_rng(seed)
        group, control = rng.normal(effect, 1, (50, 1)), np.zeros((50, 1))
        test = helpfulness.bias(group, control)
        return {"claim": Result(test.bias, test.low, test.high, test.p)}

    reading, others = {"seed": list(range(200))}, {"effect": [0.0, 0.8]}
    table = multiverse.evaluate(reading, lambda seed: seed, others, claims, 0.05)
    found = multiverse.by_option(table, others).loc[("claim", "effect")]
    assert found.stands["0.8"] == 100
    assert 0.5 < found.stands["0.0"] < 5  # 2.5 are to be expected
    assert 0.5 < found.reversed["0.0"] < 5


def test_equal_answers_are_tested_once():
    """Two rules that read alike: equal arrays and tables, wherever they lie in memory."""
    asked = []

    def read(rule):
        return {"x": np.array([1.0, np.nan]), "y": pd.DataFrame({"letter": ["A", rule[:1]]})}

    def claims(answers, side):
        asked.append((answers["y"].letter[1], side))
        return {"claim": Result(1.0, 0.0, 2.0, 0.01)}

    rules = {"rule": ["same", "similar", "other"]}
    table = multiverse.evaluate(rules, read, {"side": [0, 1]}, claims, 0.05, lambda side: side < 1)
    assert asked == [("s", 0), ("o", 0)]
    assert table.rule.drop_duplicates().tolist() == rules["rule"]
    assert len(table) == 3 * len(multiverse.CORRECTIONS)


@pytest.mark.parametrize(
    ("stands", "reverse", "undefined", "could", "above", "below", "none"),
    [
        (100, 0, 0, 8, "stands", "reversed", "differs"),
        (0, 100, 0, 8, "reversed", "stands", "differs"),
        (40, 0, 0, 8, "depends", "not shown", "depends"),
        (40, 60, 0, 8, "depends", "depends", "differs"),
        (0, 0, 0, 8, "not shown", "not shown", "stands"),
        (0, 74, 0, 8, "mostly reversed", "depends", "depends"),
        (0, 50, 0, 8, "mostly reversed", "depends", "depends"),
        (0, 49.9, 0, 8, "not shown", "depends", "depends"),
        (0, 0, 2, 6, "not shown", "not shown", "depends"),
        (75, 0, 2, 6, "depends", "mostly reversed", "mostly differs"),
        (np.nan, np.nan, 0, 0, *["cannot be told"] * 3),
        (0, 0, 8, 0, *["undefined"] * 3),
    ],
)
def test_what_paths_make_of_a_sentence(stands, reverse, undefined, could, above, below, none):
    row = {"paths": 8, "undefined": undefined, "could": could, "stands": stands}
    table = pd.DataFrame([row | {"reversed": reverse}] * 3)
    found = multiverse.verdicts(table, ["above", "below", "no difference"])
    assert found.verdict.tolist() == [above, below, none]
    if could:
        calm = 100 - stands - reverse - 100 * undefined / (could + undefined)
        assert found.share.tolist() == pytest.approx([stands, reverse, calm])
        assert (found.counted == could + undefined).all()
        assert found.against.tolist() == [reverse, stands, stands + reverse]
