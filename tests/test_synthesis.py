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
    people = pd.concat(
        stimuli.identities(category).assign(category=category) for category in stimuli.categories()
    )
    phrasings = pd.concat(
        scenarios.phrasings(category, True) for category in scenarios.categories()
    )
    giebench = pd.read_csv(paths.STIMULI / "giebench/identities.csv")
    known = {
        "empathy_gap": set(people.identity),
        "biased_samaritan": set(phrasings.text),
        "giebench": set(giebench.identity),
        "stereomap": set(social_groups.names("EXTENDED")),
    }
    for study, rows in table.groupby("study"):
        assert set(rows.identity) <= known[study]

    studies_of_group = table.groupby("group").study.nunique()
    assert (studies_of_group >= 2).all()
    assert set(table.category) == {"race_or_ethnicity", "gender", "age", "religion", "nationality"}

    # The identities of a group of the first study belong to one group there too, all of them.
    of_study = table[table.study == "empathy_gap"]
    for _, identities in people.groupby("category"):
        sizes = identities[["group", "identity"]].merge(of_study).groupby("group").size()
        whole = identities.groupby("group").size()
        assert (sizes == whole[sizes.index]).all()


@pytest.mark.parametrize(
    ("text", "message"),
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
def test_a_table_of_groups_that_is_wrong_says_where(tmp_path, text, message):
    file = tmp_path / "groups.csv"
    file.write_text(text, "utf8")

    with pytest.raises(InputError, match=message):
        synthesis.shared_groups(file)


def test_a_reversed_claim_differs_from_one_that_stands_nowhere():
    outcome = defined("60_synthesis", "outcome", figures=figures, multiverse=multiverse, np=np)

    all_reversed = pd.DataFrame({"stands": [False] * 4, "reversed": [True] * 4})
    all_reversed = all_reversed.assign(claim="x", could=True, result=range(4), p=0.1, estimate=1)
    assert outcome(all_reversed) == "reversed on 100 %"

    nowhere = all_reversed.assign(reversed=False)
    assert outcome(nowhere) == "stands on no path"

    mixed = nowhere.assign(
        stands=[True, False, False, False],
        reversed=[False, True, True, False],
    )
    assert outcome(mixed) == "stands on 25 %,\nreversed on 50 %"

    # Two paths with the same result are one, and one that could show nothing is none.
    with_a_repeat = mixed.assign(result=[0, 1, 1, 2])
    assert outcome(with_a_repeat) == "stands on 33 %,\nreversed on 33 %"
    with_one_unable = mixed.assign(could=[True, True, True, False])
    assert outcome(with_one_unable) == "stands on 33 %,\nreversed on 67 %"
    all_unable = mixed.assign(could=False)
    assert outcome(all_unable) == "cannot be told"


def test_neighbouring_paths_share_a_mark():
    """320 paths of two options in turn: an even grey and no stripes thinner than a printer's."""
    marks = defined("60_synthesis", "marks", plt=plt, np=np)
    rows = pd.DataFrame({"rule": ["a", "b"] * 160, "side": ["x"] * 160 + ["y"] * 160})
    _, ax = plt.subplots()

    marks(ax, rows, {"rule": ["a", "b"], "side": ["x", "y"]}, True)

    pixels = ax.images[0].get_array()
    plt.close()
    assert pixels.shape == (4, 40, 3)
    even_grey = (1 + 0x33 / 255) / 2
    np.testing.assert_allclose(pixels[:2], even_grey)
    assert (pixels[2, 20:] == 1).all()
    assert (pixels[3, :20] == 1).all()
    is_marked = (pixels[2, :20] < 1).any(axis=-1)
    assert is_marked.all()


def test_answers_are_read_only_in_ways_that_all_stores_allow(monkeypatch):
    """Two stores keep the steps of digits, one has its probabilities alone, texts are texts."""
    digits = {"": [[1], [1, 0], [2]]}
    stores = {
        "digits": SimpleNamespace(manifest={"spelling": digits}),
        "mean": SimpleNamespace(manifest={}),
    }

    def call(part, temperature=0.0, choices=("1", "10", "2")):
        sampling = Sampling(temperature, choices=choices)
        return SimpleNamespace(part=part, over_choices=bool(choices), sampling=sampling)

    monkeypatch.setattr(synthesis, "stored", lambda call: stores[call.part])

    of_digits = synthesis.ways_to_read([call("digits"), call("digits")])
    assert list(of_digits) == [
        "greedy, turn",
        "expected, turn",
        "greedy, newline",
        "expected, newline",
        "greedy, any",
        "expected, any",
    ]

    of_both = synthesis.ways_to_read([call("digits"), call("mean")])
    assert list(of_both) == ["expected, turn"]

    of_draws = synthesis.ways_to_read([call("digits", temperature=1.0)])
    assert len(of_draws) == 9

    of_texts = synthesis.ways_to_read([call("no", choices=())])
    assert list(of_texts) == ["free"]


def test_two_models_are_compared_over_the_items_that_both_answered():
    first = pd.DataFrame({"gap": [1.0, 3.0, 5.0, np.nan], "own": 0.0}, index=list("abcd"))
    second = pd.DataFrame({"gap": [0.0, 1.0, 1.0, 9.0], "else": 1.0}, index=list("bcad"))

    (row,) = synthesis.compared(first, second).itertuples(index=False)

    # The items a, b and c: 1 and 1, 3 and 0, 5 and 1.
    assert row.effect == "gap"
    assert row.items == 3
    assert row.one == 3
    assert row.other == pytest.approx(2 / 3)
    assert row.difference == pytest.approx(7 / 3)

    expected = stats.ttest_rel([1, 3, 5], [1, 0, 1])
    interval = expected.confidence_interval()
    assert row.p == pytest.approx(expected.pvalue)
    assert row.low == pytest.approx(interval.low)
    assert row.high == pytest.approx(interval.high)

    assert synthesis.compared(first, second.iloc[:0]).empty
