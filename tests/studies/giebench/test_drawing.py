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
            "model": "some/own", "category": [*categories, statistics.OVERALL],
            "accuracy": [10.0, 20.0, 30.0, 20.0], "in_print": np.nan,
        }
    )  # fmt: skip
    printed = rows.assign(model="some/other", in_print=[40.0, 50.0, 60.0, 50.0])
    fig = drawing.radars(pd.concat([rows, printed]), categories)
    one, two = fig.axes
    own, guess = one.lines
    assert own.get_ydata().tolist() == [10, 20, 30, 10]
    np.testing.assert_allclose(own.get_xdata(), [0, 2 * np.pi / 3, 4 * np.pi / 3, 2 * np.pi])
    assert set(guess.get_ydata()) == {100 * statistics.CHANCE}
    assert [text.get_text() for text in two.get_legend().get_texts()] == [
        "other", "other, in print", "by chance",
    ]  # fmt: skip
    assert two.lines[1].get_ydata().tolist() == [40, 50, 60, 40]
