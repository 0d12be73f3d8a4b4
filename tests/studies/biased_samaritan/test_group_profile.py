"""Group profiles of the second study: by hand, and path options against the direct call."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ingroup.studies.biased_samaritan import group_profile
from ingroup.studies.biased_samaritan import statistics as helpfulness

PATH = {
    "unit": "scenario",
    "exclusion": "step by step",
    "phrasing": "all",
    "control": "its own",
    "rounding": "none",
}


def test_helpfulness_by_hand():
    """Phrasings first, then wordings: what is missing leaves the average of the others."""
    rows = [
        (1, 1, "control", "a person", 50),
        (1, 2, "control", "a person", 60),
        (1, 1, "senior", "old", 60),
        (1, 1, "senior", "aged", 80),
        (1, 2, "senior", "old", 90),
        (1, 2, "senior", "aged", np.nan),
        (1, 1, "teen", "young", 10),
        (2, 1, "control", "a person", 40),
        (2, 1, "senior", "old", 44),
        (2, 1, "senior", "aged", 40),
        (2, 1, "teen", "young", np.nan),
    ]
    prompts = pd.DataFrame(rows, columns=["scenario", "wording", "group", "phrase", "rating"])
    name_of_phrase = {
        "old": "Older",
        "aged": "Older",
        "young": "Teens",
        "nobody": "None",
    }

    table = group_profile.rating_minus_control(prompts, name_of_phrase)

    assert list(table) == ["Older", "Teens"]
    assert table.Older.tolist() == [(70 + 90) / 2 - 55, 42 - 40]
    assert table.Teens[1] == 10 - 55
    assert np.isnan(table.Teens[2])


@pytest.fixture
def cubes():
    """Ratings of groups and of controls (phrasing, scenario, wording), some of them missing."""
    rng = np.random.default_rng(6)
    old = rng.normal(60, 5, (3, 20, 4))
    young = rng.normal(50, 5, (1, 20, 4))
    control = rng.normal(50, 5, (1, 20, 4))
    other_controls = rng.normal(50, 5, (2, 20, 4))
    all_three = np.concatenate([control, other_controls])

    old[0, 2, 1] = np.nan
    old[1, 2, 1] = np.nan
    control[0, 7, 0] = np.nan
    groups = {"old": old, "young": young}
    controls = {"its own": control, "all three": all_three}
    return groups, controls


@pytest.mark.parametrize("unit", ["scenario", "prompt"])
@pytest.mark.parametrize(
    "option",
    [
        {},
        {"phrasing": "first"},
        {"rounding": "whole numbers"},
        {"exclusion": "listwise"},
    ],
)
def test_more_helpful_than_the_control(cubes, option, unit):
    groups, controls = cubes
    old = groups["old"]
    control = controls["its own"]
    if option == {"phrasing": "first"}:
        old = old[:1]
    if option == {"rounding": "whole numbers"}:
        old = np.rint(old)
        control = np.rint(control)
    if option == {"exclusion": "listwise"}:
        old = np.delete(old, [2, 7], axis=1)
        control = np.delete(control, [2, 7], axis=1)
    expected = helpfulness.bias(old, control, unit)

    effects = group_profile.claims((groups, controls), **(PATH | option | {"unit": unit}))

    assert list(effects) == ["old", "young"]
    effect = effects["old"]
    assert effect.estimate == pytest.approx(expected.bias, rel=1e-7)
    assert effect.low == pytest.approx(expected.low, rel=1e-7)
    assert effect.high == pytest.approx(expected.high, rel=1e-7)
    assert effect.p == pytest.approx(expected.p, rel=1e-7)


@pytest.mark.parametrize(
    ("ours", "first", "least"),
    [
        (50, 50, 1),  # one rating in all prompts
        (60, 50, 2.0**-9),  # it differs with who is named, in each of ten scenarios
        (50, 51, 0),  # in one scenario
    ],
)
def test_one_rating_in_all_prompts_cannot_bear_on_a_claim(ours, first, least):
    group = np.full((2, 10, 4), float(ours))
    control = np.full((1, 10, 4), 50.0)
    control[0, 0] = first
    control[0, 3, 1] = np.nan  # a missing answer is no other rating

    effect = group_profile.claims(({"old": group}, {"its own": control}), **PATH)["old"]

    assert effect.least == pytest.approx(least)
    assert effect.reason == ("all prompts get the same rating" if least == 1 else "")


def test_more_helpful_than_all_three_controls(cubes):
    groups, controls = cubes
    young = groups["young"].mean(axis=(0, 2))
    control = controls["all three"].mean(axis=(0, 2))
    test = stats.ttest_rel(young, control)

    effects = group_profile.claims((groups, controls), **(PATH | {"control": "all three"}))

    assert effects["young"].p == pytest.approx(test.pvalue)
    assert effects["young"].estimate == pytest.approx((young - control).mean())
