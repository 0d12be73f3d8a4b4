"""What the empathy gap's printed numbers say about each other, counted by hand."""

import pandas as pd
import pytest

from ingroup.studies.empathy_gap import consistency


def test_the_cells_of_a_matrix_are_counted():
    names = pd.DataFrame(
        {
            "category": ["Race"] * 5 + ["Religion"] * 2,
            "group": ["white", "white", "white", "black", "black", "x", "y"],
        }
    )

    sizes = consistency.matrix_sizes(names)

    # 5 x 5 cells, 3 x 3 + 2 x 2 of them in a group, and 6 x 6 with "a person".
    race = {"names": 5, "cells": 25, "in_group": 13, "with_person": 36}
    assert sizes.loc["Race"].to_dict() == race
    religion = {"names": 2, "cells": 4, "in_group": 2, "with_person": 9}
    assert sizes.loc["Religion"].to_dict() == religion


@pytest.fixture
def spread():
    return pd.DataFrame(
        {
            "model": "a",
            "category": "Race",
            "prompt_setting": ["P0,S0,T0", "P0,S1,T0"],
            "mean": [60.0, 6.0],
            "std": [10.0, 2.0],
        }
    )


def test_extremes_are_put_back_on_the_scale_of_their_setting(spread):
    extremes = spread.drop(columns=["mean", "std"]).assign(z_min=[-2.0, -1.0], z_max=[3.0, 2.5])

    scale = consistency.on_rating_scale(spread, extremes)

    assert scale["low"].to_list() == [40.0, 4.0]
    assert scale["high"].to_list() == [90.0, 11.0]
    assert scale["top"].to_list() == [100, 10]


def test_tables_with_other_rows_are_refused(spread):
    with pytest.raises(ValueError, match="other rows"):
        consistency.on_rating_scale(spread, spread.iloc[::-1].reset_index(drop=True))


def test_settings_stand_side_by_side(spread):
    wide = consistency.by_setting(spread, "mean")

    assert wide.loc[("a", "Race")].to_dict() == {"P0,S0,T0": 60.0, "P0,S1,T0": 6.0}
