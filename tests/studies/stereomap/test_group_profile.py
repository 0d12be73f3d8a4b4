"""Group profiles of the fourth study: by hand, and the options of a path against SciPy."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ingroup import published
from ingroup.inference.reading import FREE
from ingroup.studies.stereomap import clustering, group_profile, stimuli
from ingroup.studies.stereomap import statistics as content_model


def test_position_by_hand():
    """Relative to all groups that were asked, not to the shared ones alone."""
    rows = [
        ("Men", 1, 4.0),
        ("Women", 1, 2.0),
        ("Nerds", 1, 0.0),
        ("Men", 2, np.nan),
        ("Women", 2, 5.0),
        ("Nerds", 2, 1.0),
    ]
    scores = pd.DataFrame(rows, columns=["group", "round", "Warmth"])

    table = group_profile.position(scores, "Warmth", {"Women": "W", "Men": "M", "Elves": "E"})

    assert list(table) == ["W", "M"]
    assert table.W.tolist() == [0, 4]
    assert table.M[1] == 3
    assert np.isnan(table.M[2])


def some_scores(rounds=4):
    """Three tight clusters: of A warm, of B competent, of C neither; D has no position."""
    rng = np.random.default_rng(7)
    positions = [
        (["A", "A1", "A2", "A3", "A4"], 4.0, 2.0),
        (["B", "B1", "B2", "B3", "B4"], 2.0, 4.0),
        (["C", "C1", "C2", "C3", "C4"], 3.0, 3.0),
        (["D"], np.nan, np.nan),
    ]

    rows = []
    for groups, warmth, competence in positions:
        for group in groups:
            for turn in range(rounds):
                competence_noise, warmth_noise = rng.normal(0, 0.1, 2)
                rows.append((group, turn, competence + competence_noise, warmth + warmth_noise))

    return pd.DataFrame(rows, columns=["group", "round", "Competence", "Warmth"])


@pytest.mark.parametrize("rounds", ["same", "other"])
def test_warmer_than_competent_over_groups(rounds):
    scores = some_scores()
    rated, labels = group_profile.scores_and_clusters(scores, rounds, 1, 5, n_clusters=3)

    effects = group_profile.claims((rated, labels), group_profile.OVER_GROUPS, ["A", "B", "C", "D"])

    tested = scores
    if rounds == "other":
        _, tested = clustering.halves(scores, np.random.default_rng(1))
        assert len(tested) == 30
        assert len(rated) == 30

    means = content_model.group_means(tested)
    for name in ("A", "B"):
        members = means[means.index.str.startswith(name)]
        test = stats.ttest_rel(members.Warmth, members.Competence)
        differences = members.Warmth - members.Competence
        effect = effects[name]
        assert effect.p == pytest.approx(test.pvalue)
        assert effect.estimate == pytest.approx(differences.mean())
        assert effect.low < effect.estimate < effect.high

    assert effects["A"].estimate > 0
    assert effects["B"].estimate < 0
    assert abs(effects["C"].estimate) < 0.2
    assert effects["D"].reason == "D has no position, so no cluster"


def test_warmer_than_competent_with_exchanged_axes():
    """The p of the whole family, from the same draws; a cluster of five groups reaches little."""
    rated, labels = group_profile.scores_and_clusters(some_scores(), "same", 0, 5, n_clusters=3)
    means = content_model.group_means(rated)
    placed = means.dropna().sort_index()
    null = clustering.exchange_null(
        placed, 3, np.random.default_rng(4), group_profile.N_EXCHANGED_MAPS
    )
    table = clustering.axis_tests(means, labels, null=null)

    exchanged = group_profile.claims(
        (rated, labels), group_profile.EXCHANGED, ["A", "B"], n_clusters=3, seed=4
    )
    paired = group_profile.claims((rated, labels), group_profile.OVER_GROUPS, ["A", "B"])

    for name in ("A", "B"):
        effect = exchanged[name]
        cluster = labels[name]
        assert effect.estimate == pytest.approx(paired[name].estimate)
        assert effect.p == table.p_exchanged[cluster]
        assert effect.least == table.p_least[cluster]
        assert effect.least > 0
        assert paired[name].least == 0


def test_warmer_than_competent_over_rounds():
    scores = some_scores()
    clustered = group_profile.scores_and_clusters(scores, "same", 0, 5, n_clusters=3)
    members = scores[scores.group.str.startswith("A")]
    by_round = members.groupby("round")[["Warmth", "Competence"]].mean()
    test = stats.ttest_rel(by_round.Warmth, by_round.Competence)

    effects = group_profile.claims(clustered, group_profile.OVER_ROUNDS, ["A"])

    assert effects["A"].p == pytest.approx(test.pvalue)


@pytest.mark.parametrize(
    ("n_rounds", "names"),
    [
        (1, {"the only one"}),
        (2, {"same", "other"}),
    ],
)
def test_claims_name_their_prompts_and_a_single_round(n_rounds, names, monkeypatch):
    rng = np.random.default_rng(0)
    words = published.load("stereomap", 4).word
    anchors = list(stimuli.ANCHORS["EXTENDED"])
    ratings = pd.DataFrame(rng.uniform(1, 5, (8, len(words))), columns=words)
    ratings.insert(0, "group", [*anchors, "Men", "Women", "Nerds"])
    of_rounds = pd.concat([ratings.assign(round=turn) for turn in range(n_rounds)])
    monkeypatch.setattr(group_profile, "_ratings", lambda *_: of_rounds)
    monkeypatch.setattr(group_profile, "_jobs", lambda *_: [])
    monkeypatch.setattr(group_profile, "ways_to_read", lambda jobs: {"free": FREE})

    table = group_profile.paths({"CLUSTERS": 3, "ALPHA": 0.05}, "", {"CLUSTER_SEEDS": 1, "SEED": 0})

    assert len(anchors) == 5
    assert set(table["rounds"]) == names
    assert set(table.claim) == {f"{group} (EXTENDED)" for group in anchors}


def test_effects_are_the_scores_of_groups_and_their_difference(monkeypatch):
    words = published.load("stereomap", 4)
    ratings = {"group": ["Men", "Women"], "round": 1}
    for word, family in zip(words.word, words.family, strict=True):
        ratings[word] = [4.0, 2.0] if family == "Warmth" else [1.0, 5.0]
    table = pd.DataFrame(ratings)
    monkeypatch.setattr(group_profile, "_ratings", lambda *_: table)

    effects = group_profile.effects({"INCOMPLETE": "drop"}, "")

    assert effects.loc["Men"].to_dict() == {
        "Competence": 1,
        "Warmth": 4,
        "Warmth minus Competence": 3,
    }
    assert effects.loc["Women", "Warmth minus Competence"] == -3


def test_one_round_has_no_halves():
    one_round = group_profile.scores_and_clusters(some_scores(rounds=1), "other", 0, 1, 5)
    reason = "no group has 2 rounds with both axes, expected at least one to halve"

    effects = group_profile.claims(one_round, group_profile.OVER_GROUPS, ["A", "B"])

    assert effects["A"].reason == reason
    assert effects["B"].reason == reason


def test_groups_of_one_position_have_no_clusters():
    flat = some_scores(rounds=1).assign(Warmth=3.0, Competence=3.0)
    clustered = group_profile.scores_and_clusters(flat, "same", 0, 1, 5)

    effects = group_profile.claims(clustered, group_profile.OVER_GROUPS, ["A"])

    assert "distinct positions" in effects["A"].reason


def test_one_round_is_no_sample_of_rounds():
    one_round = group_profile.scores_and_clusters(some_scores(rounds=1), "same", 0, 5, 3)

    effects = group_profile.claims(one_round, group_profile.OVER_ROUNDS, ["A"])

    assert effects["A"].reason == "the cluster of A has one of the rounds, expected at least 2"
