"""Figures of GIEBench: what they draw, from tables made by hand."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from ingroup.studies.giebench import drawing, statistics


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_a_share_that_is_left_by_other_categories_is_hollow():
    share = pd.DataFrame(
        {
            "items here": [60.0, 40.0],
            "questions of the paper": [70.0, 30.0],
            "in Table 8": [True, False],
        },
        index=["Gender", "Faith"],
    )
    (ax,) = drawing.shares_of_items(share).axes
    filled = [line for line in ax.lines if line.get_markerfacecolor() != "white"]
    hollow = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    assert [line.get_xdata().tolist() for line in filled] == [[60, 40], [70]]
    assert [line.get_xdata().tolist() for line in hollow] == [[], [30]]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["Gender", "Faith"]
    assert [text.get_text() for text in ax.texts] == ["not in Table 8: what is left"]


def test_a_radar_is_closed_and_has_print_beside_it():
    categories = ["Gender", "Faith", "Economy"]
    rows = pd.DataFrame(
        {
            "model": "some/own",
            "category": [*categories, statistics.OVERALL],
            "accuracy": [10.0, 20.0, 30.0, 20.0],
            "in_print": np.nan,
        }
    )
    printed = rows.assign(model="some/other", in_print=[40.0, 50.0, 60.0, 50.0])
    fig = drawing.radars(pd.concat([rows, printed]), categories)
    one, two = fig.axes
    own, guess = one.lines
    assert own.get_ydata().tolist() == [10, 20, 30, 10]
    np.testing.assert_allclose(own.get_xdata(), [0, 2 * np.pi / 3, 4 * np.pi / 3, 2 * np.pi])
    assert set(guess.get_ydata()) == {100 * statistics.CHANCE}
    assert [text.get_text() for text in two.get_legend().get_texts()] == [
        "other",
        "other, in print",
        "by chance",
    ]
    assert two.lines[1].get_ydata().tolist() == [40, 50, 60, 40]


COLOURS = {"Raw": "#000000", "COT": "#ff0000"}


def test_a_line_divides_the_categories_from_overall():
    table = pd.DataFrame(
        {
            "model": "some/own",
            "prompt": ["Raw", "COT", "Raw"],
            "category": ["Gender", "Gender", "Overall"],
            "accuracy": [10.0, 20.0, 30.0],
            "low": 5.0,
            "high": 40.0,
        }
    )
    fig = drawing.by_category(table, "accuracy", COLOURS, "accuracy (%)", chance=25)

    (ax,) = fig.axes
    horizontal = [line for line in ax.lines if list(line.get_ydata()) == [10.5, 10.5]]
    vertical = [line for line in ax.lines if list(line.get_xdata()) == [25, 25]]
    assert len(horizontal) == len(vertical) == 1
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["Gender", "Overall"]


def test_tuples_of_a_mismatch_stand_by_category():
    """Gender comes before Economy in the paper; each ends in a line."""
    table = pd.DataFrame(
        {
            "model": "some/own",
            "category": ["Economy", "Gender", "Economy"],
            "identity_i": ["Low", "Male", "High"],
            "identity_j": ["High", "Female", "Middle"],
            "n": [4, 6, 3],
            "cot_change": [-50.0, 10.0, 0.0],
            "cot_low": [-80.0, 0.0, -20.0],
            "cot_high": [-10.0, 30.0, 20.0],
            "cot_finding": ["significant", "not significant", "could not have been significant"],
        }
    )
    fig = drawing.mismatch(table)

    (ax,) = fig.axes
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    assert names == ["Male, Female (6)", "Low, High (4)", "High, Middle (3)"]
    assert [(text.get_text(), text.xy[1]) for text in ax.texts] == [("Gender", 0), ("Economy", 1.5)]
    ends = [line.get_ydata()[0] for line in ax.lines if line.get_color() == "#BBBBBB"]
    assert ends == [0.5, 2.5]
    (dots,) = [dots for dots in ax.collections if len(dots.get_offsets()) == 3]
    opacities = dots.get_facecolors()[:, 3]
    assert (opacities > 0).tolist() == [True, True, False]


def test_letters_are_bars_in_percent():
    letters = pd.DataFrame({"model": "some/own", "prompt": ["Raw", "COT"], "A": [0.4, 0.1]})
    letters = letters.assign(B=0.2, C=0.3, D=[0.1, 0.4])

    (ax,) = drawing.mean_probabilities(letters, COLOURS).axes

    heights = [[bar.get_height() for bar in bars] for bars in ax.containers]
    np.testing.assert_allclose(heights, [[40, 20, 30, 10], [10, 20, 30, 40]])
    assert ax.get_legend() is None
    assert ax.get_xlabel() == "letter"
    (key,) = ax.figure.legends
    assert [text.get_text() for text in key.get_texts()] == ["Raw", "COT", "guessing"]


def test_a_model_of_unknown_size_is_hollow_at_the_right():
    table = pd.DataFrame(
        {"one": [1.0, 2.0], "two": [3.0, 4.0], "billions": [10.0, np.nan]},
        index=["known", "unknown"],
    )
    upper, lower = drawing.printed_landscape(table, ["one", "two"]).axes

    (dots,) = upper.collections
    np.testing.assert_allclose(dots.get_offsets(), [[10, 1], [22, 2]])
    known, unknown = dots.get_facecolors().tolist()
    assert known != unknown == [1, 1, 1, 1]
    assert upper.get_title() == "one, as printed"
    assert sorted(text.get_text() for text in lower.texts) == ["known", "unknown"]


def test_ground_truth_accuracies_are_across_and_those_of_here_up():
    table = pd.DataFrame(
        {
            "model": "some/own",
            "prompt": ["Raw", "COT"],
            "accuracy_ground_truth": [10.0, 20.0],
            "accuracy": [11.0, 22.0],
        }
    )
    (ax,) = drawing.ground_truth_versus_here(table, COLOURS).axes

    np.testing.assert_allclose(ax.collections[0].get_offsets(), [[10, 11], [20, 22]])
    assert ax.get_xlabel() == "ground-truth accuracy (%)"
