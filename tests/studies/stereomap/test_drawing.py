"""Figures of the maps: what they draw, from tables made by hand."""

import pandas as pd
import pytest
from matplotlib import pyplot as plt

from ingroup import figures
from ingroup.studies.stereomap import drawing


@pytest.fixture
def of():
    about = {"model": "some/own", "version": "EXTENDED"}
    positions = pd.DataFrame(
        {
            "group": ["Men", "Rich people", "Nurses", "refused"],
            "Competence": [1.0, 4.0, 3.0, None],
            "Warmth": [2.0, 2.5, 4.5, None],
            "cluster": [0, 7, 7, None],
            "PassiveHarm": [1.0, 2.0, None, None],
            "Envy": [None] * 4,
        }
    ).assign(**about)
    centroids = pd.DataFrame(
        {
            "cluster": [0, 7],
            "Competence": [1, 3.5],
            "Warmth": [2, 3.5],
            "name": ["Men", "near Nurses"],
        }
    ).assign(**about)
    (one,) = drawing.split_maps(positions, centroids).values()
    yield one
    plt.close("all")


def test_a_map_has_its_placed_groups_and_its_centroids(of):
    assert (of.model, of.version) == ("some/own", "EXTENDED")
    assert of.positions.group.tolist() == ["Men", "Rich people", "Nurses"]
    assert of.positions.cluster.tolist() == [0, 7, 7]
    assert of.centroids.name.tolist() == ["Men", "near Nurses"]


def test_colours_start_again_behind_the_last():
    n = len(figures.COLOURS)
    assert drawing.colours_of([0, n]) == [figures.COLOURS[0]] * 2


def test_a_map_draws_groups_then_centroids_and_says_how_wide_it_is(of):
    _, ax = plt.subplots()
    drawing.draw_map(ax, of)
    groups, centres = ax.collections
    assert groups.get_offsets().tolist() == [[1, 2], [4, 2.5], [3, 4.5]]
    assert centres.get_offsets().tolist() == [[1, 2], [3.5, 3.5]]
    assert ax.get_title() == "own, EXTENDED\nspread over 3.0 of the scale's 4 points"
    drawing.draw_map(ax, of, "ALL: mean of two")
    assert ax.get_title().startswith("ALL: mean of two\n")
    drawing.name_clusters(ax, of, 5)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["Men", "near Nurses"]


def test_each_axis_of_a_map_shows_a_point_of_the_scale_or_more(of):
    close = of.positions.assign(Competence=[3.0, 3.1, 3.3], Warmth=[2.0, 4.0, 3.0])
    centroids = of.centroids.assign(Competence=[3.0, 3.2], Warmth=[2.0, 3.5])
    _, ax = plt.subplots()

    drawing.draw_map(ax, of._replace(positions=close, centroids=centroids))

    low, high = ax.get_xlim()
    assert high - low >= 1
    assert (low + high) / 2 == pytest.approx(3.15)
    # Two points of warmth fill their axis as before.
    low, high = ax.get_ylim()
    assert high - low == pytest.approx(2 * 1.1)


def test_all_groups_are_listed_the_most_competent_first(of):
    fig = drawing.map_with_list(of)
    texts = [text.get_text() for text in fig.axes[1].texts]
    assert texts == ["Men (1 groups)", "Men", "near Nurses (2 groups)", "Rich\xa0people, Nurses"]
    named = {text.get_text() for text in fig.axes[0].texts}
    assert named == {"Men", "Rich people", "Nurses"}


def test_scores_have_a_panel_each_unless_no_group_has_one(of):
    fig = drawing.scores_by_cluster(of, ["PassiveHarm", "Envy"], seed=0)
    (ax,) = fig.axes
    assert ax.get_title() == "Passive Harm"
    points = [line for line in ax.lines if line.get_marker() == "."]
    assert [line.get_ydata().tolist() for line in points] == [[1], [2]]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["Men", "near Nurses"]


def test_the_groups_that_are_refused_most_stand_on_top():
    rates = pd.DataFrame(
        {
            "model": "some/own",
            "group": [f"group {k}" for k in range(12)],
            "rate": [0.5 - 0.01 * k for k in range(12)],
            "low": 0.1,
            "high": 0.6,
        }
    )
    (ax,) = drawing.refusals(rates).axes
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    assert names == [f"group {k}" for k in range(9, -1, -1)]
    assert ax.lines[0].get_xdata()[-1] == 0.5
    plt.close("all")


def test_ground_truth_positions_stand_beside_those_here():
    sides = pd.DataFrame(
        {
            "version": ["EXTENDED", "EXTENDED", "ORIGINAL"],
            "Competence ground truth": [1.0, 2.0, 3.0],
            "Competence here": [1.5, 2.5, 3.5],
            "Warmth ground truth": [4.0, 3.0, 2.0],
            "Warmth here": [4.0, 3.0, 2.0],
        }
    )
    errors = {"error, Competence": 0.5, "error, Warmth": 0.0}
    recovered = pd.DataFrame({"version": ["ORIGINAL", "EXTENDED"], **errors})
    first, second = drawing.ground_truth_versus_here(sides, recovered).axes
    assert (first.get_title(), second.get_title()) == ("EXTENDED", "ORIGINAL")
    competence, warmth = first.lines[:2]
    assert (competence.get_ydata() - competence.get_xdata()).tolist() == [0.5, 0.5]
    assert warmth.get_ydata().tolist() == [4, 3]
    assert first.texts[0].get_text().endswith("Competence 0.50, Warmth 0.00")
    plt.close("all")


def test_a_mean_of_models_is_named_beside_single_maps(of):
    mean = of._replace(model="ALL", version="ORIGINAL")
    fig = drawing.maps_beside_each_other([of, mean], ["a/one", "two"])
    titles = [ax.get_title().split("\n")[0] for ax in fig.axes]
    assert titles == ["own, EXTENDED", "ALL: mean of one, two"]
    named = {text.get_text() for text in fig.axes[1].texts}
    assert named == {"Men", "Rich people", "Nurses"}


def test_maps_on_one_scale_share_their_limits(of):
    wide = of._replace(model="wide", positions=of.positions.assign(Warmth=[1.0, 5.0, 3.0]))
    first, second = drawing.maps_on_one_scale([of, wide]).axes
    assert first.get_ylim() == second.get_ylim()
    assert (first.get_title(), second.get_title()) == ("own", "wide")
    assert (first.get_ylabel(), second.get_ylabel()) == ("Warmth", "")


def test_scored_and_free_ratings_are_bars_side_by_side():
    shares = pd.DataFrame(
        {
            "model": "own",
            "mode": ["scored", "scored", "free text", "free text"],
            "n": [1200, 1200, 3, 3],
            "rating": [1, 2, 1, 2],
            "share": [0.25, 0.75, 1.0, 0.0],
        }
    )
    (ax,) = drawing.rating_distribution(shares).axes
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["scored (1,200)", "free text (3)"]
    heights = [[bar.get_height() for bar in bars] for bars in ax.containers]
    assert heights == [[0.25, 0.75], [1, 0]]
    plt.close("all")


def test_maps_are_selected_by_version_and_scores_by_any_number(of):
    drawn = {("a", "EXTENDED"): of, ("a", "ORIGINAL"): of._replace(version="ORIGINAL")}
    assert [one.version for one in drawing.of_version(drawn, "ORIGINAL")] == ["ORIGINAL"]
    assert drawing.has_scores(of, ["Envy", "PassiveHarm"])
    assert not drawing.has_scores(of, ["Envy"])
