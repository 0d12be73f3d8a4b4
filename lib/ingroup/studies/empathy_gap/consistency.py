"""Consistency of the numbers that the empathy gap's paper prints, for the paper's audit."""

import numpy as np
import pandas as pd

KEYS = ["model", "category", "prompt_setting"]


def matrix_sizes(names: pd.DataFrame) -> pd.DataFrame:
    """Count the cells of each category's matrix of perceivers by experiencers.

    Parameters
    ----------
    names : DataFrame
        Table 1, one row per identity name.

    Returns
    -------
    DataFrame
        By category: the number of ``names``; the number of ``cells``, and of the cells
        ``in_group``, whose two names are of one group. ``with_person`` is the number of cells with
        the unspecified "a person" as one more name.
    """
    n_names = names.groupby("category").size()
    n_of_group = names.groupby(["category", "group"]).size()
    in_group = n_of_group**2
    return pd.DataFrame(
        {
            "names": n_names,
            "cells": n_names**2,
            "in_group": in_group.groupby("category").sum(),
            "with_person": (n_names + 1) ** 2,
        }
    )


def on_rating_scale(spread: pd.DataFrame, extremes: pd.DataFrame) -> pd.DataFrame:
    """Put the smallest and the largest z-score of a matrix back on the rating scale.

    Parameters
    ----------
    spread : DataFrame
        One of tables 3, 8, 10 and 12, with ``mean`` and ``std``.
    extremes : DataFrame
        The table of the same model with ``z_min`` and ``z_max``, its rows in the same order.

    Returns
    -------
    DataFrame
        `spread` with the ratings ``low`` and ``high``, and ``top``, the end of the scale.

    Raises
    ------
    ValueError
        If the rows of the two tables differ.
    """
    if not spread[KEYS].equals(extremes[KEYS]):
        raise ValueError("The tables of means and of extremes have other rows.")

    # Scale S1 ends at 10, the others at 100.
    is_short = spread["prompt_setting"].str.contains("S1")
    return spread.assign(
        low=spread["mean"] + extremes["z_min"] * spread["std"],
        high=spread["mean"] + extremes["z_max"] * spread["std"],
        top=np.where(is_short, 10, 100),
    )


def by_setting(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Lay out a column with one row per model and category, and one column per prompt setting.

    Parameters
    ----------
    table : DataFrame
        A table with ``model``, ``category`` and ``prompt_setting``.
    column : str
        The column of numbers.

    Returns
    -------
    DataFrame
        The numbers.
    """
    return table.pivot(
        index=["model", "category"],
        columns="prompt_setting",
        values=column,
    )
