"""Effects of groups and the agreement of instruments: hand-worked, against SciPy, and coverage."""

import numpy as np
import pandas as pd
import pytest

from ingroup import portrait
from ingroup.studies.biased_samaritan import stimuli as scenarios
from ingroup.studies.empathy_gap import ratings, stimuli
from ingroup.studies.stereomap import stimuli as social_groups


def test_shared_groups_are_identities_of_the_studies():
    """Every name is one that the study's own files have, and every group is of two studies."""
    table = portrait.shared_groups()
    known = {
        "empathy_gap": {i for c in stimuli.categories() for i in stimuli.identities(c).identity},
        "biased_samaritan": {
            text for c in scenarios.categories() for text in scenarios.phrasings(c, True).text
        },
        "giebench": set(pd.read_csv(stimuli.paths.STIMULI / "giebench/identities.csv").identity),
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
        ("study,category,identity\n", "line 1: found no column 'group'"),
        ("study,category,group,identity\na,age,Old,\n", "line 2: found an empty cell"),
        ("study,category,group,identity\na,c,X,x\na,c,Y,x\n", "line 3: found 'x' of a again"),
        ("study,category,group,identity\na,c,X,x\nb,d,X,x\n", "line 3: found 'X' in 'd' and 'c'"),
    ],
)
def test_a_table_of_groups_that_is_wrong_says_where(tmp_path, text, found):
    file = tmp_path / "groups.csv"
    file.write_text(text, "utf8")
    with pytest.raises(ValueError, match=found):
        portrait.shared_groups(file)


def test_empathy_by_hand():
    """Two names of A and one of B, "a person" first, two events."""
    values = np.zeros((4, 4, 2))
    values[1:, 1:, 0] = [[10, 20, 1], [30, 40, 3], [5, 7, 100]]
    values[1:, 1:, 1] = [[0, 0, 8], [0, 0, 8], [2, 2, 4]]
    values[0], values[:, 0] = 1e6, -1e6  # left out
    # Event 0: B[A, A] = 25, B[A, B] = 2, B[B, A] = 6, B[B, B] = 100.
    groups = ["", "A", "A", "B"]
    received = portrait.empathy(values, groups, "received")
    given_ = portrait.empathy(values, groups, "given")
    assert received.A.tolist() == [(25 + 6) / 2 - (2 + 100) / 2, (0 + 2) / 2 - (8 + 4) / 2]
    assert given_.A.tolist() == [(25 + 2) / 2 - (6 + 100) / 2, (0 + 8) / 2 - (2 + 4) / 2]
    assert received.B.tolist() == (-received.A).tolist()
    values[1, 1, 0] = np.nan  # B[A, A] is 30 then
    assert portrait.empathy(values, groups, "received").A[0] == (30 + 6) / 2 - (2 + 100) / 2
    with pytest.raises(ValueError, match=r"expected \(3, 3, events\)"):
        portrait.empathy(values, groups[:3], "given")
    with pytest.raises(ValueError, match="'received' or 'given'"):
        portrait.empathy(values, groups, "taken")


def test_empathy_is_that_of_the_matrix_where_each_group_has_one_name():
    rng = np.random.default_rng(0)
    values = rng.normal(50, 10, (5, 5, 7))
    z = ratings.zscore(ratings.cell_means(values))
    table = portrait.empathy(values, list("abcde"), "received")
    sd = ratings.cell_means(values).std()
    for k, name in enumerate("abcde"):
        wanted = z[:, k].mean() - np.delete(z, k, axis=1).mean()
        assert table[name].mean() / sd == pytest.approx(wanted)


def test_empathy_of_a_large_group_holds_no_more_of_the_gap():
    """Nothing but a bonus within groups: nobody receives more, whatever the size of the group."""
    groups = list("aaaaab")
    same = np.array(groups)[:, None] == np.array(groups)
    table = portrait.empathy(np.repeat(7.0 * same[:, :, None], 3, axis=2), groups, "received")
    np.testing.assert_allclose(table, 0)


def test_relative_to_the_others():
    table = pd.DataFrame([[1.0, 2, 6], [4, np.nan, 6], [3, np.nan, np.nan]], columns=list("abc"))
    wanted = [[-3, -1.5, 4.5], [-2, np.nan, 2], [np.nan, np.nan, np.nan]]
    np.testing.assert_allclose(portrait.relative(table), wanted)


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
    phrases = {"old": "Older", "aged": "Older", "young": "Teens", "nobody": "None"}
    table = portrait.helpfulness(prompts, phrases, "control")
    assert list(table) == ["Older", "Teens"]
    assert table.Older.tolist() == [(70 + 90) / 2 - 55, 42 - 40]
    assert table.Teens[1] == 10 - 55
    assert np.isnan(table.Teens[2])


def test_naming_by_hand():
    rows = [("k1", "Raw", "A", "A"), ("k1", "Raw", "B", "A"), ("k1", "ID", "A", "A"),
            ("k1", "ID", "B", "B"), ("k2", "Raw", "C", "C"), ("k2", "ID", "C", ""),
            ("k3", "Raw", "D", "A"), ("k3", "ID", "D", "D")]  # fmt: skip
    answers = pd.DataFrame(rows, columns=["key", "prompt", "correct", "letter"])
    answers["identity"] = answers.key.map({"k1": "Female", "k2": "Islam", "k3": "Chef"})
    table = portrait.naming(answers, {"Female": "Women", "Islam": "Muslims"})
    assert table.loc["k1", "Women"] == 1 - 0.5
    assert table.loc["k2", "Muslims"] == -1
    assert np.isnan(table.loc["k1", "Muslims"])
    assert list(table.index) == ["k1", "k2"]
    assert portrait.naming(answers, {}).empty


def test_position_by_hand():
    """Relative to all groups that were asked, not to the shared ones alone."""
    rows = [("Men", 1, 4.0), ("Women", 1, 2.0), ("Nerds", 1, 0.0), ("Men", 2, np.nan),
            ("Women", 2, 5.0), ("Nerds", 2, 1.0)]  # fmt: skip
    scores = pd.DataFrame(rows, columns=["group", "round", "Warmth"])
    table = portrait.position(scores, "Warmth", {"Women": "W", "Men": "M", "Elves": "E"})
    assert list(table) == ["W", "M"]
    assert table.W.tolist() == [0, 4]
    assert table.M[1] == 3
    assert np.isnan(table.M[2])
