"""Figures of the empathy gap: what they draw, from cells made by hand."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from ingroup.studies.empathy_gap import drawing, stimuli


def cells_of(category, setting):
    """Cells of one block whose z-scores count up, every second one shown."""
    names = stimuli.identities(category).identity
    z = np.arange(len(names) ** 2, dtype=float)
    return pd.DataFrame(
        {
            "model": "some/own", "setting": setting, "category": category,
            "z": z, "shown_released": z % 2 == 0,
        }
    )  # fmt: skip


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_a_column_of_cells_is_a_matrix_of_perceivers_by_experiencers():
    cells = pd.DataFrame({"z": [1, 2, 3, 4]})
    assert drawing.square(cells, "z").tolist() == [[1, 2], [3, 4]]


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
    fig = drawing.enlarged(cells, 5.0, "sound")
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
