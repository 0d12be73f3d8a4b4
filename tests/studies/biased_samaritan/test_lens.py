"""The second study as a lens: by hand, and the options of a path against the direct call."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ingroup.studies.biased_samaritan import lens
from ingroup.studies.biased_samaritan import statistics as helpfulness

HELP = {
    "unit": "scenario", "exclusion": "step by step", "phrasing": "all", "control": "its own",
    "rounding": "none",
}  # fmt: skip


def test_helpfulness_by_hand():
    """Phrasings first, then wordings: what is missing leaves the average of what is there."""
    rows = [
        (1, 1, "control", "a person", 50), (1, 2, "control", "a person", 60),
        (1, 1, "senior", "old", 60), (1, 1, "senior", "aged", 80), (1, 2, "senior", "old", 90),
        (1, 2, "senior", "aged", np.nan), (1, 1, "teen", "young", 10),
        (2, 1, "control", "a person", 40), (2, 1, "senior", "old", 44),
        (2, 1, "senior", "aged", 40), (2, 1, "teen", "young", np.nan),
    ]  # fmt: skip
    prompts = pd.DataFrame(rows, columns=["scenario", "wording", "group", "phrase", "rating"])
    phrases = {
        "old": "Older",
        "aged": "Older",
        "young": "Teens",
        "nobody": "None",
    }
    table = lens.above_control(prompts, phrases)

    assert list(table) == ["Older", "Teens"]
    assert table.Older.tolist() == [(70 + 90) / 2 - 55, 42 - 40]
    assert table.Teens[1] == 10 - 55
    assert np.isnan(table.Teens[2])


def some_cubes():
    rng = np.random.default_rng(6)
    cubes = {"old": rng.normal(60, 5, (3, 20, 4)), "young": rng.normal(50, 5, (1, 20, 4))}
    cubes["old"][0, 2, 1] = cubes["old"][1, 2, 1] = np.nan
    controls = {"its own": rng.normal(50, 5, (1, 20, 4))}
    controls["all three"] = np.concatenate([controls["its own"], rng.normal(50, 5, (2, 20, 4))])
    controls["its own"][0, 7, 0] = np.nan
    return cubes, controls


@pytest.mark.parametrize(
    ("option", "changed"),
    [
        ({}, lambda *both: both),
        ({"phrasing": "first"}, lambda ours, theirs: (ours[:1], theirs)),
        ({"rounding": "whole numbers"}, lambda *both: map(np.rint, both)),
        ({"exclusion": "listwise"}, lambda *both: (np.delete(x, [2, 7], 1) for x in both)),
    ],
)
@pytest.mark.parametrize("unit", ["scenario", "prompt"])
def test_more_helpful_than_the_control(option, changed, unit):
    cubes, controls = some_cubes()
    found = lens.claims((cubes, controls), **(HELP | option | {"unit": unit}))
    wanted = helpfulness.bias(*changed(cubes["old"], controls["its own"]), unit)

    np.testing.assert_allclose(found["old"][:4], [wanted.bias, wanted.low, wanted.high, wanted.p])
    assert list(found) == ["old", "young"]


def test_more_helpful_than_all_three_controls():
    cubes, controls = some_cubes()
    found = lens.claims((cubes, controls), **(HELP | {"control": "all three"}))
    ours, theirs = (x.mean(axis=(0, 2)) for x in (cubes["young"], controls["all three"]))
    test = stats.ttest_rel(ours, theirs)

    assert found["young"].p == pytest.approx(test.pvalue)
    assert found["young"].estimate == pytest.approx((ours - theirs).mean())
