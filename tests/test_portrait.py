"""Effects of groups and the agreement of instruments: hand-worked, against SciPy, and coverage."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ingroup import portrait, ratings, scenarios, social_groups, stimuli


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


def test_an_effect_is_the_mean_over_the_sd():
    items = pd.DataFrame({"a": [1.0, 2, 3, 6], "b": [np.nan, 4, np.nan, np.nan], "c": np.nan})
    found = portrait.measure(items, 2.0, np.random.default_rng(0), 400, together=False)
    assert found.effects.effect.tolist()[:2] == [1.5, 2.0]
    assert found.effects["items"].tolist() == [4, 1, 0]
    assert found.effects.loc["a", "low"] < 1.5 < found.effects.loc["a", "high"]
    assert np.isnan(found.effects.loc[["b", "c"], ["low", "high"]].to_numpy()).all()
    assert found.draws.b.eq(2.0).all()
    assert found.draws.c.isna().all()
    with pytest.raises(ValueError, match="sd is nan"):
        portrait.measure(items, np.nan, np.random.default_rng(0))
    with pytest.raises(ValueError, match="confidence is 1"):
        portrait.measure(items, 1.0, np.random.default_rng(0), confidence=1)


def test_all_answers_the_same_have_no_effect():
    found = portrait.measure(pd.DataFrame({"a": [0.0, 0]}), 0.0, np.random.default_rng(0), 10)
    assert found.effects.loc["a"].tolist() == [0, 0, 0, 2]


def test_draws_take_the_same_items_for_all_groups():
    x = np.random.default_rng(1).normal(size=30)
    items = pd.DataFrame({"a": x, "b": 2 * x + 1, "c": np.where(x > 0, x, np.nan)})
    draws = portrait.measure(items, 1.0, np.random.default_rng(0), 450).draws
    np.testing.assert_allclose(draws.b, 2 * draws.a + 1)
    picks = np.random.default_rng(0).integers(30, size=(200, 30))
    np.testing.assert_allclose(draws.a[:200], x[picks].mean(axis=1))
    np.testing.assert_allclose(draws.c[:200], np.nanmean(items.c.to_numpy()[picks], axis=1))


def test_the_interval_of_many_items_is_scipys():
    x = np.random.default_rng(2).exponential(size=400)
    found = portrait.measure(pd.DataFrame({"a": x}), 1.0, np.random.default_rng(0), 5000)
    wanted = stats.bootstrap(
        (x,), np.mean, n_resamples=5000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    np.testing.assert_allclose(found.effects.loc["a", ["low", "high"]], wanted, rtol=0.01)


def test_the_interval_of_few_items_covers():
    """Five items: the plain percentile interval holds the mean in 0.83 of the cases."""
    rng = np.random.default_rng(3)
    items = pd.DataFrame(rng.normal(size=(5, 1500)))
    found = portrait.measure(items, 1.0, rng, 1000)
    low, high = np.quantile(found.draws, [0.025, 0.975], axis=0)
    plain = ((low <= 0) & (high >= 0)).mean()
    held = ((found.effects.low <= 0) & (found.effects.high >= 0)).mean()
    assert 0.78 < plain < 0.87
    assert 0.9 < held < 0.97


def test_agreement_by_scipy():
    rng = np.random.default_rng(4)
    effects = pd.DataFrame(rng.normal(size=(9, 3)), columns=["x", "y", "z"])
    effects["y"] += effects.x
    effects.loc[:3, "z"] = np.nan
    draws = {
        name: pd.DataFrame(effects[name].to_numpy() + 0.3 * rng.normal(size=(300, 9)))
        for name in effects
    }
    table = portrait.agreement(effects, draws, np.random.default_rng(0), 5039)
    assert table[["one", "other", "n"]].to_numpy().tolist() == [
        ["x", "y", 9], ["x", "z", 5], ["y", "z", 5],
    ]  # fmt: skip
    for row in table.itertuples():
        both = effects[[row.one, row.other]].dropna()
        assert row.rho == pytest.approx(stats.spearmanr(*both.to_numpy().T).statistic)
        rhos = [
            stats.spearmanr(draws[row.one].loc[k, both.index], draws[row.other].loc[k, both.index])
            for k in range(300)
        ]
        wanted = np.quantile([r.statistic for r in rhos], [0.025, 0.975])
        np.testing.assert_allclose([row.low, row.high], wanted)
    smallest = table.p.min()
    assert table.p_holm.min() == pytest.approx(min(1, 3 * smallest))


def test_agreement_of_four_groups_by_hand():
    """The same order: 1 of 24 orders agrees as much, and 1 is its reverse."""
    effects = pd.DataFrame({"x": [1.0, 2, 3, 4], "y": [2.0, 3, 5, 9], "z": [7.0, 7, 7, 7]})
    effects.loc[4] = [5.0, np.nan, 7.0]
    draws = {name: pd.DataFrame(np.tile(effects[name], (3, 1))) for name in effects}
    table = portrait.agreement(effects, draws, np.random.default_rng(0)).set_index(["one", "other"])
    assert table.loc[("x", "y")].tolist() == [
        4,
        1,
        1,
        1,
        pytest.approx(2 / 24),
        pytest.approx(2 / 24),
    ]
    assert table.loc[("x", "z")].isna().tolist() == [False, *[True] * 5]
    nothing = portrait.agreement(effects[["x", "z"]], draws, np.random.default_rng(0))
    assert nothing.p_holm.isna().all()


@settings(max_examples=10, deadline=None)
@given(st.permutations(range(6)), st.floats(0.1, 10))
def test_agreement_knows_only_ranks(order, power):
    x, y = np.arange(1.0, 7), np.array(order, dtype=float)
    effects = pd.DataFrame({"x": x, "y": y})
    bent = effects.assign(x=x**power)
    draws = {"x": effects[["x"]].T, "y": effects[["y"]].T}
    one, other = (
        portrait.agreement(table, draws, np.random.default_rng(0), 50) for table in (effects, bent)
    )
    pd.testing.assert_frame_equal(one, other)
    assert one.rho[0] == pytest.approx(stats.spearmanr(x, y).statistic)
