"""Each study's options on a path against the direct call of its statistic."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ingroup import claims
from ingroup.stats import multiverse, permutation
from ingroup.stats.intervals import bootstrap_interval
from ingroup.studies.biased_samaritan import statistics as helpfulness
from ingroup.studies.empathy_gap import ratings
from ingroup.studies.giebench import statistics as accuracy
from ingroup.studies.stereomap import statistics as content_model

EYE = np.eye(4, dtype=bool)
GAP = {"exclusion": "any", "rounding": "none", "matrix": "with a person", "unit": "identities"}


def some_ratings(missing=0.02):
    rng = np.random.default_rng(5)
    values = 50 + 8 * rng.normal(size=(5, 5, 1)) + rng.normal(size=(5, 5, 30))
    values[np.arange(1, 5), np.arange(1, 5)] += 12
    values[rng.random(values.shape) < missing] = np.nan
    return values


@pytest.mark.parametrize("exclusion", ["any", "pairwise"])
@pytest.mark.parametrize(("rounding", "decimals"), [("none", None), ("cell means", 2)])
@pytest.mark.parametrize(("matrix", "separate"), [("with a person", False), ("without", True)])
def test_the_gap_by_identities(exclusion, rounding, decimals, matrix, separate):
    values = some_ratings()
    path = {"exclusion": exclusion, "rounding": rounding, "matrix": matrix, "unit": "identities"}
    found = claims.gap(values, EYE, **path, n_resamples=300, seed=3)
    z = ratings.gap_matrix(values, 0, exclusion, decimals=decimals, separate=separate)
    test = permutation.permutation_test(z, EYE, 300, np.random.default_rng(3))
    low, high = test.null_interval
    assert found[:4] == (test.statistic, test.statistic - high, test.statistic - low, test.pvalue)


@pytest.mark.parametrize("matrix", ["with a person", "without"])
def test_the_gap_by_events(matrix):
    values = some_ratings()
    path = GAP | {"matrix": matrix, "unit": "events"}
    found = claims.gap(values, EYE, **path, n_resamples=300, seed=3)
    inner = values if matrix == "with a person" else values[1:, 1:]
    kept = inner[:, :, ~np.isnan(inner).any(axis=(0, 1))]
    wanted = bootstrap_interval(
        kept, EYE, 300, np.random.default_rng(3), unspecified=0 if inner is values else None
    )
    assert found[:3] == (wanted.statistic, wanted.low, wanted.high)
    assert found.p == pytest.approx(2 / 301)  # no draw at or below 0


def test_a_gap_without_any_difference_has_a_reason():
    path = GAP | {"n_resamples": 10, "seed": 0}
    found = multiverse.attempt(claims.gap, np.full((5, 5, 3), 7.0), EYE, **path)
    assert np.isnan(found[:4]).all()
    assert "found 7 in all of them" in found.reason


HELP = {
    "unit": "scenario", "exclusion": "step by step", "phrasing": "all", "control": "its own",
    "rounding": "none",
}  # fmt: skip


def some_cubes():
    rng = np.random.default_rng(6)
    cubes = {"old": rng.normal(60, 5, (3, 20, 4)), "young": rng.normal(50, 5, (1, 20, 4))}
    cubes["old"][0, 2, 1] = cubes["old"][1, 2, 1] = np.nan
    controls = {"its own": rng.normal(50, 5, (1, 20, 4))}
    controls["all three"] = np.concatenate([controls["its own"], rng.normal(50, 5, (2, 20, 4))])
    controls["its own"][0, 7, 0] = np.nan
    return cubes, controls


@pytest.mark.parametrize(
    ("option", "ours", "theirs"),
    [
        ({}, lambda x: x, lambda x: x),
        ({"phrasing": "first"}, lambda x: x[:1], lambda x: x),
        ({"rounding": "whole numbers"}, np.rint, np.rint),
        (
            {"exclusion": "any"},
            lambda x: np.delete(x, [2, 7], 1),
            lambda x: np.delete(x, [2, 7], 1),
        ),
    ],
)
@pytest.mark.parametrize("unit", ["scenario", "prompt"])
def test_more_helpful_than_the_control(option, ours, theirs, unit):
    cubes, controls = some_cubes()
    found = claims.helpful(cubes, controls, **(HELP | option | {"unit": unit}))
    wanted = helpfulness.bias(ours(cubes["old"]), theirs(controls["its own"]), unit)
    np.testing.assert_allclose(found["old"][:4], [wanted.bias, wanted.low, wanted.high, wanted.p])
    assert list(found) == ["old", "young"]


def test_more_helpful_than_all_three_controls():
    cubes, controls = some_cubes()
    found = claims.helpful(cubes, controls, **(HELP | {"control": "all three"}))
    ours, theirs = (x.mean(axis=(0, 2)) for x in (cubes["young"], controls["all three"]))
    test = stats.ttest_rel(ours, theirs)
    assert found["young"].p == pytest.approx(test.pvalue)
    assert found["young"].estimate == pytest.approx((ours - theirs).mean())


def some_answers():
    """Eight items in two categories and four orders; one item has no verdict under Raw."""
    rows = []
    for prompt, right in (("Raw", 2), ("ID", 5), ("COT", 8)):
        for item in range(8):
            for shift in range(4):
                correct = "ABCD"[(item + shift) % 4]
                hit = item < right and not (item == 4 and shift == 2)
                letter = correct if hit else "ABCD"[(item + shift + 1) % 4]
                letter = "" if (prompt, item, shift) == ("Raw", 7, 0) else letter
                status = "ok" if letter else "refused"
                rows.append((prompt, "xy"[item % 2], str(item), shift, correct, letter, status))
    columns = ["prompt", "category", "key", "shift", "correct", "letter", "status"]
    return pd.DataFrame(rows, columns=columns)


NAMING = {"order": "0", "silence": "wrong", "unit": "item", "shares": "right / n"}


@pytest.mark.parametrize(
    ("option", "n", "gained"),
    [
        ({}, 8, 3),
        ({"order": "2"}, 8, 2),  # item 4 is wrong there
        ({"order": "all four"}, 8, 2),
        ({"silence": "pairwise"}, 7, 3),
        ({"silence": "any"}, 7, 3),
        ({"silence": "pairwise", "order": "1"}, 8, 3),  # in this order nobody is silent
        ({"silence": "any", "order": "1"}, 7, 3),
        ({"silence": "pairwise", "order": "all four"}, 7, 2),
    ],
)
def test_naming_the_identity_by_hand(option, n, gained):
    found = claims.naming(some_answers(), **(NAMING | option))
    assert found["ID over Raw"].estimate == pytest.approx(100 * gained / n)
    assert found["ID over Raw"].p == pytest.approx(min(1, 2 * 0.5**gained))
    assert list(found) == ["ID over Raw", "COT over Raw"]


def test_naming_the_identity_is_the_change_of_accuracy():
    answers = some_answers()
    once = answers[answers["shift"] == 0]
    row = accuracy.changes(once, "Raw", "ID").set_index("category").loc[accuracy.OVERALL]
    found = claims.naming(answers, **NAMING)["ID over Raw"]
    assert found[:4] == (row.change, row.low, row.high, row.p)
    rounded = claims.naming(answers, **(NAMING | {"shares": "as released"}))["COT over Raw"]
    assert rounded.estimate == pytest.approx(75.0)


def test_naming_the_identity_by_category():
    """Raw 1 of 4 in both; ID 3 of 4 and 2 of 4; as released of 5."""
    path = NAMING | {"unit": "category"}
    found = claims.naming(some_answers(), **path)["ID over Raw"]
    assert found.estimate == pytest.approx((50 + 25) / 2)
    assert found.p == pytest.approx(stats.ttest_rel([75, 50], [25, 25]).pvalue)
    released = claims.naming(some_answers(), **(path | {"shares": "as released"}))
    assert released["ID over Raw"].estimate == pytest.approx((40 + 20) / 2)


def some_scores(rounds=4):
    """Three tight clusters: of A warm, of B competent, of C neither; D has no position."""
    rng, rows = np.random.default_rng(7), []
    for name, warmth, competence in (("A", 4.0, 2.0), ("B", 2.0, 4.0), ("C", 3.0, 3.0)):
        for member in range(5):
            for turn in range(rounds):
                noise = rng.normal(0, 0.1, 2)
                group = name if member == 0 else f"{name}{member}"
                rows.append((group, turn, competence + noise[0], warmth + noise[1]))
    rows += [("D", turn, np.nan, np.nan) for turn in range(rounds)]
    return pd.DataFrame(rows, columns=["group", "round", "Competence", "Warmth"])


@pytest.mark.parametrize("rounds", ["same", "other"])
def test_warmer_than_competent_over_groups(rounds):
    scores = some_scores()
    second, labels = claims.clustered(scores, rounds, 1, 5, n_clusters=3)
    found = claims.warmer(second, labels, ["A", "B", "C", "D"], "groups")
    tested = scores
    if rounds == "other":
        _, tested = content_model.halves(scores, np.random.default_rng(1))
        assert len(second) == len(tested) == 30
    means = content_model.group_means(tested)
    for name, sign in (("A", 1), ("B", -1)):
        own = means[means.index.str.startswith(name)]
        test = stats.ttest_rel(own.Warmth, own.Competence)
        assert found[name].p == pytest.approx(test.pvalue)
        assert found[name].estimate == pytest.approx((own.Warmth - own.Competence).mean())
        assert found[name].low < found[name].estimate < found[name].high
        assert np.sign(found[name].estimate) == sign
    assert abs(found["C"].estimate) < 0.2
    assert found["D"].reason == "D has no position, so no cluster"


def test_warmer_than_competent_over_rounds():
    scores = some_scores()
    second, labels = claims.clustered(scores, "same", 0, 5, n_clusters=3)
    found = claims.warmer(second, labels, ["A"], "rounds")["A"]
    own = scores[scores.group.str.startswith("A")].groupby("round")[["Warmth", "Competence"]].mean()
    assert found.p == pytest.approx(stats.ttest_rel(own.Warmth, own.Competence).pvalue)


def test_clusters_that_cannot_be_made_have_a_reason():
    scores = some_scores(rounds=1)
    found = claims.warmer(*claims.clustered(scores, "other", 0, 1), ["A", "B"], "groups")
    assert {one.reason for one in found.values()} == {
        "no group has 2 rounds with both axes, expected at least one to halve"
    }
    flat = scores.assign(Warmth=3.0, Competence=3.0)
    found = claims.warmer(*claims.clustered(flat, "same", 0, 1), ["A"], "groups")
    assert "distinct positions" in found["A"].reason
    one = claims.warmer(*claims.clustered(scores, "same", 0, 5, 3), ["A"], "rounds")
    assert one["A"].reason == "the cluster of A has one of the rounds, expected at least 2"
