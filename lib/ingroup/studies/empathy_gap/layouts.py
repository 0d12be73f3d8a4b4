"""Layouts of a run's tables in its notebooks: columns, formats and colours."""

import pandas as pd
from pandas.io.formats.style import Styler

from ingroup.studies.empathy_gap.blocks import KEY

# Columns of Table 2 that only its file has. The notebook compares the released code's columns with
# the printed ones below the table.
_NOT_SHOWN = [
    "flat",
    "events",
    "delta_released",
    "null_low_released",
    "null_low_spread",
    "null_high_released",
    "null_high_spread",
    "highlight",
]
_HOLM = (
    "p_holm, p_groups_holm: Holm's correction over the holm_tests categories of a model and setting"
)
_OF_BOTH_SCOPES = [
    "estimate",
    "low",
    "high",
    "low_like_these",
    "high_like_these",
    "p_like_these",
    "p_like_these_holm",
    "reason",
]
MOST_LOST = 20.0  # percent of events; above it the paper marks a cell of Table 6


def losses(table: pd.DataFrame) -> Styler:
    """Lay out Table 6 as the paper does.

    Parameters
    ----------
    table : DataFrame
        `KEY` and ``percent_of_events``.

    Returns
    -------
    Styler
        Settings by model and category. Percentages above `MOST_LOST` have a colour.
    """
    by_block = table.set_index(["model", "category", "setting"])
    percent = by_block.percent_of_events.unstack(sort=False)
    style = percent.style.format("{:.2f} %", na_rep="")
    style.format_index(escape="html")
    return style.highlight_between(
        left=MOST_LOST,
        inclusive="neither",
        color="#FFD9D9",
    )


def gaps(table: pd.DataFrame) -> Styler:
    """Lay out Table 2 of a run, without the columns that only other cells of the notebook use.

    Parameters
    ----------
    table : DataFrame
        From `statistics.with_corrections`, with the columns that the notebook adds.

    Returns
    -------
    Styler
        With a caption that says which tests Holm's correction covers.
    """
    shown = table.drop(columns=_NOT_SHOWN)
    style = shown.style.set_caption(_HOLM)
    return style.format(precision=4, na_rep="", escape="html")


def readings(table: pd.DataFrame) -> Styler:
    """Lay out the gap of each block under every reading.

    Parameters
    ----------
    table : DataFrame
        `KEY`, ``reading``, ``ending`` and ``points``.

    Returns
    -------
    Styler
        Blocks by reading and ending, in points.
    """
    reading = ["reading", "ending"]
    by_reading = table.set_index([*KEY, *reading])
    points = by_reading.points.unstack(reading)
    # The z writes a value that rounds to zero as 0.00, not as -0.00.
    style = points.style.format("{:z.2f}", na_rep="")
    return style.format_index(escape="html")


def kinds(table: pd.DataFrame) -> pd.DataFrame:
    """Lay out the effects of pairs of one name and of two names.

    Parameters
    ----------
    table : DataFrame
        `KEY`, ``pairs``, ``difference``, ``low`` and ``high``.

    Returns
    -------
    DataFrame
        Blocks by kind of pair. Each kind has its difference and the ends of its interval.
    """
    wide = table.pivot(
        index=KEY,
        columns="pairs",
        values=["difference", "low", "high"],
    )
    # The kind comes first, and its three numbers stay together.
    by_kind = wide.swaplevel(axis=1)
    by_kind = by_kind.sort_index(axis=1, level=0, sort_remaining=False)
    return by_kind.round(2)


def scopes(table: pd.DataFrame) -> Styler:
    """Lay out the own-group effect of each block, without the tests of single categories.

    Parameters
    ----------
    table : DataFrame
        `KEY`, the columns of :func:`~.statistics.scopes`, and ``p_like_these_holm``.

    Returns
    -------
    Styler
        The effect with both intervals, and the reason where there is no wide one.
    """
    columns = [*KEY, *_OF_BOTH_SCOPES]
    style = table[columns].style
    style.format(precision=3, na_rep="", escape="html")
    return style.hide()
