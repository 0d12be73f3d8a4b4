"""The groups that several studies ask."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from scipy import stats

from cells import defined
from ingroup import figures, paths, synthesis
from ingroup.inference import Sampling
from ingroup.stats import multiverse
from ingroup.studies.biased_samaritan import stimuli as scenarios
from ingroup.studies.empathy_gap import stimuli
from ingroup.studies.stereomap import stimuli as social_groups
from ingroup.tables import InputError


def test_shared_groups_are_identities_of_the_studies():
    """Every name is one that the study's own files have, and every group is of two studies."""
    table = synthesis.shared_groups()
    known = {
        "empathy_gap": {i for c in stimuli.categories() for i in stimuli.identities(c).identity},
        "biased_samaritan": {
            text for c in scenarios.categories() for text in scenarios.phrasings(c, True).text
        },
        "giebench": set(pd.read_csv(paths.STIMULI / "giebench/identities.csv").identity),
        "stereomap": set(social_groups.names("EXTENDED")),
    }
    for study, rows in table.groupby("study"):
        assert set(rows.identity) <= known[study]
    assert (table.groupby("group").study.nunique() >= 2).all()
    kinds = {"race_or_ethnicity", "gender", "age", "religion", "nationality"}
    assert set(table.category) == kinds
    # The identities of a group of the first study belong to one group there too, all of them.
    for category in stimuli.categories():
        people = stimuli.identities(category).merge(table[table.study == "empathy_gap"])
        whole = stimuli.identities(category).groupby("group").size()
        assert people.groupby("group").size().eq(whole).loc[people.group.unique()].all()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("study,category,identity\n", "line 1, column 'group': found only"),
        ("study,category,group,identity\na,age,Old,\n", "line 2, column 'identity': found '', exp"),
        (
            "study,category,group,identity\na,c,X,x\na,c,Y,x\n",
            "line 3: found .* 'x' again, expected",
        ),
        ("study,category,group,identity\na,c,X,x\nb,d,X,x\n", "line 3: found 'X' in 'd' and 'c'"),
    ],
)
def test_a_table_of_groups_that_is_wrong_says_where(tmp_path, text, found):
    file = tmp_path / "groups.csv"
    file.write_text(text, "utf8")
    with pytest.raises(InputError, match=found):
        synthesis.shared_groups(file)


def test_a_claim_that_is_reversed_is_not_one_that_stands_nowhere():
    outcome = defined("60_synthesis", "outcome", figures=figures, multiverse=multiverse, np=np)
    paths_of = pd.DataFrame({"stands": [False] * 4, "reversed": [True] * 4})
    paths_of = paths_of.assign(claim="x", could=True, result=range(4), p=0.1, estimate=1)
    assert outcome(paths_of) == "reversed on 100 %"
    assert outcome(paths_of.assign(reversed=False)) == "stands on no path"
    mixed = paths_of.assign(stands=[True, False, False, False], reversed=[False, True, True, False])
    assert outcome(mixed) == "stands on 25 %,\nreversed on 50 %"
    # Two paths with the same result are one, and one that could show nothing is none.
    assert outcome(mixed.assign(result=[0, 1, 1, 2])) == "stands on 33 %,\nreversed on 33 %"
    able = mixed.assign(could=[True, True, True, False])
    assert outcome(able) == "stands on 33 %,\nreversed on 67 %"
    assert outcome(mixed.assign(could=False)) == "cannot be told"


def test_neighbouring_paths_share_a_mark():
    """320 paths of two options in turn: an even grey and no stripes thinner than a printer's."""
    marks = defined("60_synthesis", "marks", plt=plt, np=np)
    rows = pd.DataFrame({"rule": ["a", "b"] * 160, "side": ["x"] * 160 + ["y"] * 160})
    _, ax = plt.subplots()
    marks(ax, rows, {"rule": ["a", "b"], "side": ["x", "y"]}, True)
    shown = ax.images[0].get_array()
    plt.close()
    assert shown.shape == (4, 40, 3)
    np.testing.assert_allclose(shown[:2], (1 + 0x33 / 255) / 2)
    assert (shown[2, 20:] == 1).all()
    assert (shown[3, :20] == 1).all()
    assert (shown[2, :20] < 1).any(axis=-1).all()


def test_answers_are_read_in_the_ways_that_all_of_them_allow(monkeypatch):
    """Two stores keep the steps of digits, one has its probabilities alone, texts are texts."""
    digits = {"": [[1], [1, 0], [2]]}
    stores = {
        "digits": SimpleNamespace(manifest={"spelling": digits}),
        "mean": SimpleNamespace(manifest={}),
    }

    def call(part, temperature=0.0, choices=("1", "10", "2")):
        return SimpleNamespace(
            part=part, over_choices=bool(choices), sampling=Sampling(temperature, choices=choices)
        )

    monkeypatch.setattr(synthesis, "stored", lambda call: stores[call.part])
    every = ["greedy", "expected"]
    of_digits = [f"{how}, {ending}" for ending in ("turn", "newline", "any") for how in every]
    assert list(synthesis.ways_to_read([call("digits"), call("digits")])) == of_digits
    assert list(synthesis.ways_to_read([call("digits"), call("mean")])) == ["expected, turn"]
    assert len(synthesis.ways_to_read([call("digits", temperature=1.0)])) == 9
    assert list(synthesis.ways_to_read([call("no", choices=())])) == ["free"]


def test_two_models_are_compared_over_the_items_that_both_answered():
    one = pd.DataFrame({"gap": [1.0, 3.0, 5.0, np.nan], "own": 0.0}, index=list("abcd"))
    other = pd.DataFrame({"gap": [0.0, 1.0, 1.0, 9.0], "else": 1.0}, index=list("bcad"))
    (row,) = synthesis.compared(one, other).itertuples(index=False)
    # The items a, b and c: 1 and 1, 3 and 0, 5 and 1.
    assert (row.effect, row.one, row.items) == ("gap", 3, 3)
    assert row.other == pytest.approx(2 / 3)
    assert row.difference == pytest.approx(7 / 3)
    expected = stats.ttest_rel([1, 3, 5], [1, 0, 1])
    assert row.p == pytest.approx(expected.pvalue)
    low, high = expected.confidence_interval()
    assert (row.low, row.high) == pytest.approx((low, high))
    assert synthesis.compared(one, other.iloc[:0]).empty
