"""Figures of the Biased Samaritan: what they draw, from tables made by hand."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from ingroup.studies.biased_samaritan import drawing


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_helpfulness_has_a_panel_for_single_models_and_one_for_several():
    rows = pd.DataFrame(
        {
            "shown": ["own", "own", "two models"],
            "category": "Age",
            "group": ["senior", "teenager", "senior"],
            "models": [1, 1, 2],
            "helpfulness": [60.0, 50.0, 70.0],
            "control": [55.0, 55.0, 66.0],
            "share": [1.0, 0.0, 0.5],
        }
    )
    fig = drawing.helpfulness(rows, 0.01)
    one, two = fig.axes
    assert [ax.get_title() for ax in fig.axes] == ["own", "two models"]
    assert one.collections[0].get_offsets().tolist() == [[1, 60], [0, 50]]
    assert one.lines[0].get_ydata()[0] == 55
    assert [tick.get_text() for tick in one.get_xticklabels()] == ["no", "yes"]
    assert two.get_xlabel() == "share of models that differ"
    names = {text.get_text(): text.get_position()[1] for text in one.texts}
    assert len(names) == 2
    assert names["Senior"] > names["Teenager"]
    heights = {ax.get_ylim()[1] - ax.get_ylim()[0] for ax in fig.axes}
    assert max(heights) - min(heights) < 1e-9  # equal effects look equal
    assert fig.legends[0].get_title().get_text() == "Age (differs from the control: p < 0.01)"


def test_a_bias_stands_before_the_brittleness_of_its_group():
    keys = {"model": "own", "round": [1, 1, 2], "category": ["Age", "Gender", "Age"]}
    about = pd.DataFrame(keys).assign(group=["senior", "male", "senior"])
    biases = about.assign(
        bias=[2.0, -1.0, 9.0],
        low=[1.0, -3.0, 8.0],
        high=[3.0, 1.0, 9.5],
        significant_holm=[True, False, True],
    )
    fig = drawing.bias_overview(biases, about.assign(mean=[0.5, 4.0, 1.0]), 0.01)
    (ax,) = fig.axes
    assert [(bar.get_x(), bar.get_width()) for bar in ax.patches] == [(-0.5, 1.0), (-4.0, 8.0)]
    assert ax.get_xlim() == pytest.approx((-1.05 * 4, 1.05 * 4))
    texts = [text.get_text() for text in fig.legends[0].get_texts()]
    assert "p < 0.01 after Holm's correction" in texts


def test_a_group_without_brittleness_has_its_bias_alone():
    """With CROSSING=totals, a phrasing has one wording per scenario."""
    about = pd.DataFrame(
        {"model": "own", "round": 1, "category": "Age", "group": ["senior", "teen"]}
    )
    biases = about.assign(bias=1.0, low=0.0, high=2.0, significant_holm=False)

    fig = drawing.bias_overview(biases, about.assign(mean=[4.0, np.nan]), 0.01)

    (ax,) = fig.axes
    assert ax.get_xlim() == pytest.approx((-1.05 * 4, 1.05 * 4))


def test_the_printed_landscape_keeps_the_order_of_groups():
    table = pd.DataFrame(
        {
            "model_label": ["M", "M", "L", "L"],
            "group_label": ["White", "Asian", "White", "Asian"],
            "score_difference": [1.0, -2.0, 3.0, -0.01],
        }
    )

    fig = drawing.printed_landscape(table)

    ax = fig.axes[0]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["White", "Asian"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["L", "M"]
    assert [text.get_text() for text in ax.texts] == ["3.0", "0.0", "1.0", "-2.0"]


def test_ground_truth_and_recovered_biases_are_drawn_with_the_models_own_error():
    table = pd.DataFrame(
        {
            "model": ["calibrant", "calibrant"],
            "bias": [2.0, -1.0],
            "low": [1.0, -3.0],
            "high": [3.5, 1.0],
            "ground_truth_bias": [2.5, -1.5],
            "brittleness": [4.0, 5.0],
            "ground_truth_brittleness": [4.5, 5.5],
            "model_error": [3.0, -4.0],
        }
    )

    fig = drawing.ground_truth_versus_here(table)

    bias_ax, brittleness_ax = fig.axes
    assert bias_ax.lines[0].get_xydata().tolist() == [[2.5, 2.0], [-1.5, -1.0]]
    assert brittleness_ax.lines[0].get_xydata().tolist() == [[4.5, 4.0], [5.5, 5.0]]
    (text,) = fig.legends[0].get_texts()
    assert text.get_text() == "calibrant: its own error 3.54 points of bias"


def test_a_distribution_has_a_step_around_each_number():
    shares = pd.DataFrame({"own": [0.25, 0.75]}, pd.Index([1, 2], name="answer"))

    fig = drawing.distribution(shares)

    (steps,) = fig.axes[0].patches
    assert steps.get_data().values.tolist() == [25, 75]
    assert steps.get_data().edges.tolist() == [0.5, 1.5, 2.5]
