"""Tables as the notebooks show them: the texts of their cells."""

import re

import pandas as pd
import pytest

from ingroup.studies.empathy_gap import layouts

BLOCK = {"model": "<m>", "setting": "P0,S0,T0", "category": "Religion"}


def test_losses_are_percentages_by_setting_and_high_ones_are_marked():
    table = pd.DataFrame([BLOCK | {"percent_of_events": 20.0}])
    higher = BLOCK | {"setting": "P1,S0,T0", "percent_of_events": 20.5}
    table = pd.concat([table, pd.DataFrame([higher])])

    style = layouts.losses(table)

    html = style.to_html()
    assert "20.00 %" in html
    assert "20.50 %" in html
    assert "&lt;m&gt;" in html
    assert style.data.columns.tolist() == ["P0,S0,T0", "P1,S0,T0"]
    (cells,) = re.findall(r"([^}]*){\s*background-color: #FFD9D9", html)
    assert re.findall(r"row0_col(\d)", cells) == ["1"]


def test_gaps_leave_out_what_other_cells_show_and_keep_the_rest():
    numbers = dict.fromkeys(["delta", "low", "points", "finding", "p_holm"], 0.123456)
    released = ["delta", "null_low", "null_high"]
    hidden = ["flat", "events", "highlight", "null_low_spread", "null_high_spread"]
    hidden += [f"{column}_released" for column in released]

    style = layouts.gaps(pd.DataFrame([BLOCK | dict.fromkeys(hidden, 1.0) | numbers]))

    assert style.data.columns.tolist() == [*BLOCK, *numbers]
    html = style.to_html()
    assert "0.1235" in html
    assert "correction over the holm_tests categories of a model and setting" in html
    assert "&lt;m&gt;" in html


def test_readings_stand_side_by_side_in_points():
    rows = [
        BLOCK | {"reading": "greedy", "ending": "turn", "points": -0.001},
        BLOCK | {"reading": "expected", "ending": "turn", "points": 1.256},
    ]

    style = layouts.readings(pd.DataFrame(rows))

    assert style.data.columns.tolist() == [("greedy", "turn"), ("expected", "turn")]
    html = style.to_html()
    assert "-0.00" not in html
    assert "1.26" in html
    assert "&lt;m&gt;" in html


def test_each_kind_of_pair_has_its_difference_and_its_interval():
    rows = [
        BLOCK | {"pairs": "one name", "difference": 1.234, "low": 0.5, "high": 2.0},
        BLOCK | {"pairs": "two names", "difference": 0.3, "low": -0.5, "high": 1.0},
    ]

    (row,) = layouts.kinds(pd.DataFrame(rows)).to_dict("records")

    assert list(row)[:3] == [("one name", name) for name in ("difference", "low", "high")]
    assert row["one name", "difference"] == 1.23
    assert row["two names", "high"] == 1


@pytest.mark.parametrize("reason", ["", "too few groups: <2>"])
def test_scopes_have_both_intervals_and_the_reason(reason):
    shown = [
        "estimate",
        "low",
        "high",
        "low_like_these",
        "high_like_these",
        "p_like_these",
        "p_like_these_holm",
    ]
    row = BLOCK | dict.fromkeys(shown, 0.12345) | {"reason": reason, "by_group_p": 0.77777}

    style = layouts.scopes(pd.DataFrame([row]))

    html = style.to_html()
    assert style.data.columns.tolist() == [*BLOCK, *shown, "reason"]
    assert "0.123" in html
    assert "0.778" not in html
    assert "<2>" not in html
