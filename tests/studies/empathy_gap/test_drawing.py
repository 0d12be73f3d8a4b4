"""Figures of the empathy gap: what they draw, from cells made by hand."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from ingroup import figures
from ingroup.studies.empathy_gap import drawing, printed, stimuli


def cells_of(category, setting):
    """Cells of one block whose z-scores count up, every second one shown."""
    names = stimuli.identities(category).identity
    z = np.arange(len(names) ** 2, dtype=float)
    return pd.DataFrame(
        {
            "model": "some/own",
            "setting": setting,
            "category": category,
            "z": z,
            "shown_released": z % 2 == 0,
        }
    )


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_a_column_of_cells_is_a_matrix_of_perceivers_by_experiencers():
    cells = pd.DataFrame({"z": [1, 2, 3, 4]})
    assert drawing.cell_matrix(cells, "z").tolist() == [[1, 2], [3, 4]]


def test_heatmaps_have_a_panel_per_block_and_no_empty_ones():
    blocks = [("Religion", "P0,S0,T0"), ("Religion", "P1,S0,T0"), ("Nationality", "P0,S0,T0")]
    cells = pd.concat([cells_of(*block) for block in blocks])
    order = ["Nationality", "Religion"], ["P0,S0,T0", "P1,S0,T0"]
    fig = drawing.heatmaps(cells, *order, "sound")
    titles = [ax.get_title() for ax in fig.axes if ax.get_title()]
    assert titles == ["Nationality\nP0,S0,T0", "Religion\nP0,S0,T0", "Religion\nP1,S0,T0"]
    limits = {ax.collections[0].get_clim() for ax in fig.axes[:3]}
    assert limits == {tuple(np.percentile(cells.z, [1, 99]))}
    released = drawing.heatmaps(cells, *order, "released")
    assert released.axes[0].collections[0].get_clim() == (0, len(cells_of(*blocks[2])) - 1)


def test_an_enlarged_matrix_names_its_identities():
    cells = cells_of("Nationality", "P0,S0,T0")
    fig = drawing.enlarged_heatmap(cells, 5.0, "sound")
    ax = fig.axes[0]
    assert ax.get_title() == "own, setting P0,S0,T0"
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    assert "France" in names
    assert len(names) == 1 + 21
    shown = ~np.ma.getmaskarray(ax.collections[0].get_array()).ravel()
    assert shown.tolist() == (cells.z % 2 == 0).tolist()


def test_countries_have_the_colours_of_their_cultural_cluster():
    clusters = list(drawing.CULTURAL_MAP)[:2]
    positions = pd.DataFrame(
        {"model": "own", "label": ["A", "B"], "cluster": clusters, "x": [0.0, 1.0], "y": [1.0, 0]}
    )
    fig = drawing.countries(positions, "released")
    (ax,) = fig.axes
    points = ax.collections[0]
    assert points.get_offsets().tolist() == [[0, 1], [1, 0]]
    colours = [plt.matplotlib.colors.to_hex(colour).upper() for colour in points.get_facecolors()]
    assert colours == [drawing.CULTURAL_MAP[cluster] for cluster in clusters]


def drawn_overview():
    """Two gaps of a run, one small and with a large p of whole groups, beside the paper's."""
    gaps = pd.DataFrame(
        {
            "model": "some/own",
            "category": ["Religion", "Nationality"],
            "setting": "P0,S0,T0",
            "delta": [0.5, 0.2],
            "low": 0.1,
            "high": 0.9,
            "null_low": -0.3,
            "null_high": 0.3,
            "points": [3.0, 0.05],
            "p_groups": [0.01, 0.2],
        }
    )
    categories = ["Nationality", "Religion"]
    return drawing.gap_overview(gaps, printed.gaps_of_the_paper(), categories, ["P0,S0,T0"])


@pytest.fixture
def overview():
    return drawn_overview()


def test_a_panel_of_the_overview_above_the_other_has_all_labels(monkeypatch):
    monkeypatch.setattr(figures, "ONE_COLUMN", 3.03)
    monkeypatch.setattr(figures, "TWO_COLUMNS", 3.03)
    fig = drawn_overview()
    fig.draw_without_rendering()

    for ax in fig.axes:
        categories = [text.get_text() for text in ax.texts if text.get_visible()]
        assert categories == ["Nationality", "Religion"]
        assert ax.yaxis.label.get_visible()
        numbers = [tick.label1.get_visible() for tick in ax.xaxis.get_major_ticks()]
        assert all(numbers)


def test_gaps_stand_on_the_line_of_their_block(overview):
    here, paper = overview.axes
    assert [ax.get_title() for ax in overview.axes] == list(drawing.PANELS)
    dots = here.lines[0]
    assert dots.get_xdata().tolist() == [0.5, 0.2]
    assert dots.get_ydata().round().tolist() == [1, 0]
    crosses = [line for line in here.lines if line.get_marker() == "x"]
    assert [line.get_xdata().tolist() for line in crosses] == [[0.2]]
    assert [text.get_text() for text in here.get_legend().get_texts()] == ["own"]
    assert len(paper.get_legend().get_texts()) == 4


def test_a_panel_of_the_overview_alone_has_its_labels_and_its_models(overview, monkeypatch):
    """Side by side the names of the categories stand once; alone each panel has them."""
    here, paper = overview.axes
    assert not any(text.get_visible() for text in here.texts)
    assert all(text.get_visible() for text in paper.texts)
    monkeypatch.setitem(figures.OPTIONS_GIVEN, "panel", drawing.PANELS[0])
    figures.finish(overview, "gap_overview")
    assert overview.axes == [here]
    shown = [text.get_text() for text in here.texts if text.get_visible()]
    assert shown == ["Nationality", "Religion"]
    models = {drawing.PANELS[0]: ["calibrant"], drawing.PANELS[1]: ["GPT-4o"]}
    assert figures.models_note(models) == figures.DEMONSTRATION_NOTE
    monkeypatch.setitem(figures.OPTIONS_GIVEN, "panel", drawing.PANELS[1])
    assert figures.models_note(models) == ""
    monkeypatch.delitem(figures.OPTIONS_GIVEN, "panel")
    assert figures.models_note(models).startswith("Real: GPT-4o. Demonstration")


def test_mean_gaps_mark_the_mean_of_common_blocks():
    gaps = pd.DataFrame(
        {
            "model": ["own", "own", "GPT (printed)"],
            "category": ["Religion", "Nationality", "Religion"],
            "delta": [1.0, 3.0, 2.0],
            "points": [1.0, 0.01, None],
            "common": [True, False, True],
        }
    )
    (ax,) = drawing.mean_gaps(gaps, ["Religion", "Nationality"]).axes
    (bars,) = (line for line in ax.lines if line.get_marker() == "|")
    assert bars.get_xdata().tolist() == [1, 2]


def test_ground_truth_cells_are_in_two_colours_with_the_models_own_error():
    cells = cells_of("Religion", "P0,S0,T0").rename(columns={"z": "ground_truth"})
    cells["mean"] = cells.ground_truth + 1
    recovered = pd.DataFrame(
        {
            "model": "some/own",
            "setting": "P0,S0,T0",
            "category": ["Nationality", "Religion"],
            "ground_truth_delta": 0.5,
            "delta": 0.4,
            "model_error": -0.1,
            "cell_error": 1.0,
            "verdict": "covers the ground truth",
        }
    )
    (ax,) = drawing.ground_truth_cells(cells, recovered, ["Religion"]).axes
    other, own = ax.lines[:2]
    n = len(stimuli.identities("Religion"))
    assert (len(own.get_xdata()), len(other.get_xdata())) == (n, n * n - n)
    assert (own.get_ydata() - own.get_xdata() == 1).all()
    assert "the model's own error: -0.10" in ax.texts[0].get_text()


def test_settings_stand_in_the_order_of_the_paper_or_of_the_user():
    table = pd.DataFrame({"setting": ["P2,S0,T0", "P0,S0,T0", "P0,S0,T0"]})

    assert drawing.settings_of(table) == ["P0,S0,T0", "P2,S0,T0"]
    wanted = ["P1,S0,T0", "P2,S0,T0", "P0,S0,T0"]
    assert drawing.settings_of(table, wanted) == ["P2,S0,T0", "P0,S0,T0"]


def test_a_model_is_visible_if_one_of_its_blocks_has_cells_a_point_apart():
    cells = pd.DataFrame(
        {
            "model": ["wide", "wide", "wide", "wide", "alike", "alike"],
            "setting": ["P0,S0,T0", "P0,S0,T0", "P1,S0,T0", "P1,S0,T0", "P0,S0,T0", "P0,S0,T0"],
            "category": "Religion",
            "mean": [50.0, 50.1, 70.0, 71.0, 40.0, 40.9],
        }
    )

    assert drawing.visible_models(cells) == ["wide"]


def test_each_model_has_a_panel_and_each_category_a_line_of_probabilities():
    table = pd.DataFrame(
        {
            "model": ["some/own"] * 4 + ["other"] * 2,
            "category": ["Religion", "Religion", "Nationality", "Nationality"]
            + ["Nationality"] * 2,
            "rating": [0, 1] * 3,
            "probability": [0.25, 0.75, 0.5, 0.5, 0.4, 0.6],
        }
    )

    fig = drawing.distributions(table)

    own, other = fig.axes
    lines = [line.get_ydata().tolist() for line in own.lines if len(line.get_ydata())]
    assert lines == [[0.25, 0.75], [0.5, 0.5]]
    assert [ax.get_title() for ax in fig.axes] == ["own", "other"]
    (key,) = fig.legends
    assert [text.get_text() for text in key.get_texts()] == ["Religion", "Nationality"]
    # A category has one colour in all panels and in the legend.
    (line,) = other.lines
    assert line.get_color() == own.lines[1].get_color() == key.get_lines()[1].get_color()
    assert own.get_yscale() == "log"


def test_each_dot_of_two_precisions_is_a_pair_of_ratings():
    rows = [
        ("some/own", "expected", 50.0, 52.0),
        ("some/own", "expected", 50.0, 52.0),
        ("some/own", "greedy", 10.0, 0.0),
        ("other", "greedy", 1.0, 2.0),
    ]
    ratings = pd.DataFrame(rows, columns=["model", "reading", "float32", "bfloat16"])

    means, greedy = drawing.precisions(ratings, ["some/own"]).axes

    assert means.get_title() == "own, expected"
    assert [means.get_xlabel(), means.get_ylabel()] == ["rating in float32", "rating in bfloat16"]
    # One size of dots needs no legend.
    assert greedy.get_legend() is None
    assert means.collections[0].get_offsets().tolist() == [[50, 52]]
    assert greedy.get_title() == "own, greedy"
    assert greedy.collections[0].get_offsets().tolist() == [[10, 0]]


def test_effects_over_settings_have_their_interval_and_the_range_of_settings():
    table = pd.DataFrame(
        {
            "model": ["some/own"],
            "category": ["Religion"],
            "estimate": [0.5],
            "low": [0.1],
            "high": [0.9],
            "least": [0.3],
            "greatest": [0.7],
        }
    )

    (ax,) = drawing.over_settings(table).axes

    spans = set()
    for collection in ax.collections:
        for path in collection.get_paths():
            ends = path.vertices[:, 0]
            spans.add((ends.min(), ends.max()))
    assert {(0.1, 0.9), (0.3, 0.7)} <= spans
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["own, Religion"]
    (key,) = ax.figure.legends
    names = [text.get_text() for text in key.get_texts()]
    assert names == ["lowest to highest of the settings", "95 % interval"]
