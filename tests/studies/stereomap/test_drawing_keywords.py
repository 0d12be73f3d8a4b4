"""Figures of keywords: what they draw, from tables made by hand."""

import pandas as pd
import pytest
from matplotlib import pyplot as plt

from ingroup.studies.stereomap import drawing_keywords


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def scores(by, values):
    """Scores of dimensions by group or cluster, each with a share."""
    rows = [
        ("some/own", name, dimension, score, abs(score))
        for name, dimensions in values.items()
        for dimension, score in dimensions.items()
    ]
    return pd.DataFrame(rows, columns=["model", by, "dimension", "score", "share"])


def names_of(ax):
    return [tick.get_text() for tick in ax.get_yticklabels()]


def test_each_cluster_has_a_panel_with_its_strongest_dimensions_on_top():
    table = scores("cluster", {0: {"ability": 0.2, "Morality": -0.5}, 3: {"Status": 0.1}})
    names = {("some/own", 0): "Men", ("some/own", 3): "near Women"}
    fig = drawing_keywords.dimensions_by_cluster(table, "a score", names)
    first, second = fig.axes
    assert [ax.get_title() for ax in fig.axes] == ["Men", "near\nWomen"]
    assert names_of(first) == ["Morality", "Ability"]
    assert [bar.get_width() for bar in first.patches] == [-0.5, 0.2]
    assert [bar.get_y() + bar.get_height() / 2 for bar in first.patches] == [1, 0]
    assert second.get_xlabel() == "a score"
    fig.draw_without_rendering()
    assert "−.5" in {tick.get_text() for tick in first.get_xticklabels()}


def test_a_pair_shares_keywords_in_the_middle_and_dimensions_side_by_side():
    counts = pd.DataFrame(
        [("Men", "strong", 2), ("Men", "kind", 1), ("Women", "kind", 3), ("Women", "$1", 1)],
        columns=["group", "keyword", "count"],
    )
    dimensions = scores(
        "group", {"Men": {"ability": 0.5}, "Women": {"ability": 0.0, "Status": 0.2}}
    )
    dimensions.loc[dimensions.score == 0, "share"] = 0.1
    fig = drawing_keywords.keyword_pairs([("Men", "Women")], counts, dimensions, "score", "share")
    circles, bars = fig.axes
    places = {text.get_text(): text.get_position()[0] for text in circles.texts}
    assert places == {"strong": -0.87, "kind": 0, "\\$1": 0.87, "Men": -0.95, "Women": 0.95}
    assert names_of(bars) == ["Ability", "Status"]
    assert [bar.get_width() for bar in bars.patches] == [0.5, 0, 0, 0.2]
    # No keyword of men is about status; those of women about ability have no direction together.
    assert sorted(text.get_text().strip() for text in bars.texts) == ["0", "none"]


def test_the_first_model_has_a_figure_of_its_own():
    table = pd.DataFrame({"model": ["b", "a", "b", "c"], "score": [1, 2, 3, 4]})
    rows = drawing_keywords.by_figure(table, "figure4", "figure8")
    assert rows["figure4"].score.tolist() == [1, 3]
    assert rows["figure8"].score.tolist() == [2, 4]
    assert list(drawing_keywords.by_figure(table[table.model == "b"], "x", "y")) == ["x"]
    assert drawing_keywords.by_figure(table.head(0), "x", "y") == {}


def test_a_pair_needs_keywords_of_both_groups():
    counts = pd.DataFrame(
        [("a", "Men"), ("a", "Women"), ("a", "Nurses"), ("b", "Men"), ("b", "Nurses")],
        columns=["model", "group"],
    )
    pairs = [("Women", "Men"), ("Nurses", "Doctors")]
    selected = drawing_keywords.pairs_with_keywords(counts, ["a", "b"], pairs)
    assert selected == {"a": [("Women", "Men")]}


def test_a_tick_has_no_zero_before_its_point_and_keeps_every_other_zero():
    ticks = [-10.5, -0.25, 0.0, 0.5, 1.05, 10.5, 20.0]

    labels = [drawing_keywords._short_number(tick, 0) for tick in ticks]

    assert labels == ["−10.5", "−.25", "0", ".5", "1.05", "10.5", "20"]
