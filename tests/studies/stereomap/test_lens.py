"""The fourth study as a lens: by hand, and the options of a path against SciPy."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ingroup import published
from ingroup.inference.reading import FREE
from ingroup.studies.stereomap import clustering, lens, stimuli
from ingroup.studies.stereomap import statistics as content_model


def test_position_by_hand():
    """Relative to all groups that were asked, not to the shared ones alone."""
    rows = [("Men", 1, 4.0), ("Women", 1, 2.0), ("Nerds", 1, 0.0), ("Men", 2, np.nan),
            ("Women", 2, 5.0), ("Nerds", 2, 1.0)]  # fmt: skip
    scores = pd.DataFrame(rows, columns=["group", "round", "Warmth"])
    table = lens.position(scores, "Warmth", {"Women": "W", "Men": "M", "Elves": "E"})

    assert list(table) == ["W", "M"]
    assert table.W.tolist() == [0, 4]
    assert table.M[1] == 3
    assert np.isnan(table.M[2])


def some_scores(rounds=4):
    """Three tight clusters: of A warm, of B competent, of C neither; D has no position."""
    rng = np.random.default_rng(7)
    rows = []

    for name, warmth, competence in (
        ("A", 4.0, 2.0),
        ("B", 2.0, 4.0),
        ("C", 3.0, 3.0),
    ):
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
    second, labels = lens.clustered(scores, rounds, 1, 5, n_clusters=3)
    found = lens.claims((second, labels), lens.OVER_GROUPS, ["A", "B", "C", "D"])
    tested = scores

    if rounds == "other":
        _, tested = clustering.halves(scores, np.random.default_rng(1))
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


def test_warmer_than_competent_with_exchanged_axes():
    """The p of the whole family, from the same draws; a cluster of five groups reaches little."""
    second, labels = lens.clustered(some_scores(), "same", 0, 5, n_clusters=3)
    found = lens.claims((second, labels), lens.EXCHANGED, ["A", "B"], n_clusters=3, seed=4)
    paired = lens.claims((second, labels), lens.OVER_GROUPS, ["A", "B"])

    means = content_model.group_means(second)
    rng = np.random.default_rng(4)
    null = clustering.exchange_null(means.dropna().sort_index(), 3, rng, lens.DRAWS)
    table = clustering.axis_tests(means, labels, null=null)

    for name in ("A", "B"):
        assert found[name].estimate == pytest.approx(paired[name].estimate)
        assert found[name].p == table.p_exchanged[labels[name]]
        assert found[name].least == table.p_least[labels[name]]
        assert found[name].least > paired[name].least == 0


def test_warmer_than_competent_over_rounds():
    scores = some_scores()
    second, labels = lens.clustered(scores, "same", 0, 5, n_clusters=3)
    found = lens.claims((second, labels), lens.OVER_ROUNDS, ["A"])["A"]
    own = scores[scores.group.str.startswith("A")].groupby("round")[["Warmth", "Competence"]].mean()

    assert found.p == pytest.approx(stats.ttest_rel(own.Warmth, own.Competence).pvalue)


def test_claims_name_their_prompts_and_a_single_round(monkeypatch):
    rng = np.random.default_rng(0)
    words = published.load("stereomap", 4).word
    groups = [*stimuli.ANCHORS["EXTENDED"], "Men", "Women", "Nerds"]
    table = pd.DataFrame(rng.uniform(1, 5, (8, len(words))), columns=words)
    table.insert(0, "group", groups)

    for rounds, named in ((1, {"the only one"}), (2, {"same", "other"})):
        several = [table.assign(round=turn) for turn in range(rounds)]
        monkeypatch.setattr(lens, "_ratings", lambda *_, of=several: pd.concat(of))
        monkeypatch.setattr(lens, "_calls", lambda *_: [])
        monkeypatch.setattr(lens, "ways_to_read", lambda calls: {"free": FREE})
        found = lens.paths({"CLUSTERS": 3, "ALPHA": 0.05}, "", {"CLUSTER_SEEDS": 1, "SEED": 0})

        assert set(found["rounds"]) == named
        assert set(found.claim) == {f"{group} (EXTENDED)" for group in groups[:5]}


def test_effects_are_the_scores_of_groups_and_their_difference(monkeypatch):
    words = published.load("stereomap", 4)
    warm = set(words.word[words.family == "Warmth"])
    rated = {word: [4.0, 2.0] if word in warm else [1.0, 5.0] for word in words.word}
    table = pd.DataFrame({"group": ["Men", "Women"], "round": 1, **rated})
    monkeypatch.setattr(lens, "_ratings", lambda *_: table)
    effects = lens.effects({"INCOMPLETE": "drop"}, "")

    assert effects.loc["Men"].to_dict() == {
        "Competence": 1, "Warmth": 4, "Warmth minus Competence": 3,
    }  # fmt: skip
    assert effects.loc["Women", "Warmth minus Competence"] == -3


def test_clusters_that_cannot_be_made_have_a_reason():
    scores = some_scores(rounds=1)
    found = lens.claims(lens.clustered(scores, "other", 0, 1, 5), lens.OVER_GROUPS, ["A", "B"])

    assert {one.reason for one in found.values()} == {
        "no group has 2 rounds with both axes, expected at least one to halve"
    }

    flat = scores.assign(Warmth=3.0, Competence=3.0)
    found = lens.claims(lens.clustered(flat, "same", 0, 1, 5), lens.OVER_GROUPS, ["A"])

    assert "distinct positions" in found["A"].reason

    one = lens.claims(lens.clustered(scores, "same", 0, 5, 3), lens.OVER_ROUNDS, ["A"])
    assert one["A"].reason == "the cluster of A has one of the rounds, expected at least 2"
