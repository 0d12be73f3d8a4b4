"""Checks of the numbers that a paper prints against its other numbers.

Each check is a row of ``data/published/checks.csv`` with a formula. The formulas use the printed
tables (``t[2]`` is Table 2) and the functions of this module. No model is asked.
"""

from math import copysign

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from ingroup import PUBLISHED

FLOAT_ERROR = 1e-9
ONE_DECIMAL = 0.05  # half a unit of the last printed digit
NAMES_OF_ROWS = [  # columns that name a row of a printed table
    "model",
    "category",
    "prompt_setting",
    "group",
    "identity_tuple",
    "condition",
    "source",
    "predictor",
    "behavior",
    "dimension",
    "end",
    "rank",
    "criterion",
    "prompt_type",
    "metric",
]


def printed_tables(paper: str) -> dict[int, pd.DataFrame]:
    """Read the printed tables of a paper by their numbers.

    Returns
    -------
    dict of DataFrame
        Rows are indexed by their names. Each column of numbers has a column ``<name>_half``, half
        a unit of its last printed digit: how far rounding can have moved it.
    """
    tables = {}
    for file in sorted((PUBLISHED / paper).glob("table*.csv")):
        table = pd.read_csv(file, keep_default_na=False, na_values=[""])
        texts = pd.read_csv(file, dtype=str, keep_default_na=False)
        for column in table.select_dtypes("number"):
            decimals = texts[column].str.partition(".")[2]
            # A table that drops zeros at the end has as many decimals as its longest number.
            most = decimals.str.len().max()
            table[f"{column}_half"] = 0.5 * 10.0**-most

        names = [name for name in NAMES_OF_ROWS if name in texts]
        items = texts[names].agg(", ".join, axis=1)
        table.index = pd.Index(items)
        digits = file.stem.removeprefix("table")[:2]
        tables[int(digits)] = table
    return tables


def near(printed: pd.Series, value: ArrayLike, slack: ArrayLike = 0.0) -> pd.Series:
    """Tell whether printed numbers agree with a value that other printed numbers give.

    Parameters
    ----------
    printed : Series
        A column of a printed table.
    value : array_like
        What it should be, one value or one for each row.
    slack : array_like
        How far rounding can have moved the value and the printed number together.

    Returns
    -------
    Series of bool
        With the index of `printed`.
    """
    expected = np.asarray(value, dtype=float)
    distance = np.abs(printed.to_numpy(float) - expected)
    allowed = np.asarray(slack) + FLOAT_ERROR
    is_near = distance <= allowed
    return pd.Series(is_near, printed.index)


def lookup(table: pd.DataFrame, rows: pd.DataFrame, column: str, **changed: str) -> NDArray:
    """Look up the number of each row's model and group (or category) in another table.

    Parameters
    ----------
    table : DataFrame
        The table that is looked up.
    rows : DataFrame
        The rows of the other table.
    column : str
        The column of numbers.
    **changed : str
        Columns of `rows` with another value, e.g. ``group="control"``.

    Returns
    -------
    ndarray
        One number for each row, NaN where the table has none.
    """
    level = "group" if "group" in table else "category"
    keys = ["model", level]
    rows = rows.assign(**changed)
    wanted = pd.MultiIndex.from_frame(rows[keys])
    numbers = table.set_index(keys)[column]
    return numbers.reindex(wanted).to_numpy(float)


def whole(percent: pd.Series, n: ArrayLike) -> pd.Series:
    """Tell which percentages, printed with one decimal, are k/n of a whole number k."""
    share = percent.to_numpy() / 100
    k = np.round(share * n)
    exact = 100 * k / n
    return near(percent, exact, ONE_DECIMAL)


def best_n(percent: pd.Series) -> int:
    """Find the n from 50 to 120 with which most percentages are k/n, the smallest of several."""
    most = 0
    best = 0
    for n in range(50, 121):
        count = whole(percent, n).sum()
        if count > most:
            most = count
            best = n
    return best


def denominators(t: dict[int, pd.DataFrame]) -> pd.Series:
    """Find the n behind GIEBench's accuracies (Tables 1, 2 and 6), by category."""
    cells = pd.concat([t[1], t[2], t[6]])
    cells = cells[cells.category != "Overall"]
    by_category = cells.groupby("category", sort=False)
    return by_category.accuracy_pct.apply(best_n)


def by_pair(table: pd.DataFrame) -> pd.Series:
    """Index the accuracies of GIEBench's Tables 3 and 7 by pairs, whatever a pair's order."""
    sides = table[["identity_i", "identity_j"]]
    pairs = sides.agg(sorted, axis=1).str.join(" and ")
    keys = [pairs.to_numpy(), "condition"]
    return table.set_index(keys).accuracy_pct


def largest_sd(mean: ArrayLike, low: float, high: float, n: int) -> NDArray:
    """Compute the largest sample SD of n numbers from low to high with a given mean.

    All numbers then lie at an end of the scale: n/(n - 1) times (mean - low)(high - mean).
    """
    inside = np.clip(mean, low, high)
    above = inside - low
    below = high - inside
    correction = n / (n - 1)
    return np.sqrt(correction * above * below)


def stars_in_order(table: pd.DataFrame) -> pd.Series:
    """Tell which correlations have no five others of their source against their stars.

    A larger correlation cannot have fewer stars than a smaller one of the same n.
    """
    n_stars = table.significance.str.len().to_numpy()
    size = table.spearman_rho.abs().to_numpy()
    source = table.source.to_numpy()
    # Rounding must not decide which of two correlations is larger.
    unit = 2 * table.spearman_rho_half.iloc[0]

    difference = np.subtract.outer(size, size)
    is_larger = difference >= unit - FLOAT_ERROR
    has_fewer = np.less.outer(n_stars, n_stars)
    is_same_source = np.equal.outer(source, source)
    is_against = is_larger & has_fewer & is_same_source
    smaller_ones = is_against.sum(axis=1)
    larger_ones = is_against.sum(axis=0)
    has_few = smaller_ones + larger_ones < 5
    return pd.Series(has_few, table.index)


def clusters(table: pd.DataFrame, group: str) -> pd.DataFrame:
    """Find the cluster of a group in each source of StereoMap's Tables 2 and 5."""
    spellings = {"Elderly people": "Elderly", "Woman": "Women"}
    rows = table.replace({"group": spellings})
    keys = ["source", "cluster_order"]
    members = rows.groupby(keys).group.agg(frozenset)
    members.name = "members"
    of_group = rows[rows.group == group]
    found = of_group.merge(members, on=keys)
    return found.set_index("source")


def check_all(paper: str) -> pd.DataFrame:
    """Compute all checks of a paper.

    Returns
    -------
    DataFrame
        The rows of ``checks.csv`` with ``numbers`` (how many were compared), ``failed`` (how many
        do not hold), ``recomputed`` (the value that the other numbers give) and ``items`` (the
        rows of the table that do not hold).
    """
    every = pd.read_csv(PUBLISHED / "checks.csv", dtype=str, keep_default_na=False)
    of_paper = every[every.paper == paper]
    checks = of_paper.reset_index(drop=True)
    names = {**globals(), "t": printed_tables(paper)}

    rows = []
    for check in checks.itertuples():
        names["printed"] = check.printed
        value = eval(check.formula, names)
        row = outcome(check.printed, value)
        rows.append(row)
    outcomes = pd.DataFrame(rows)
    return checks.join(outcomes)


def outcome(printed: str, value: object) -> dict[str, object]:
    """Compare what a formula gives: a value with the printed one, or truth values with True.

    Parameters
    ----------
    printed : str
        As in ``checks.csv``.
    value : object
        A text or a number to compare, or a truth value, or a Series of these, one for each row.

    Returns
    -------
    dict
        The columns that `check_all` adds.
    """
    items = ""
    recomputed = ""
    if isinstance(value, pd.Series):
        failing = value.index[~value]
        items = "; ".join(failing.map(str).unique())
    elif not isinstance(value, bool | np.bool_):
        recomputed = value if isinstance(value, str) else f"{value:.6g}"
        value = agrees(printed, value)

    holds = np.atleast_1d(value)
    failed = np.count_nonzero(~holds)
    return {
        "numbers": holds.size,
        "failed": failed,
        "recomputed": recomputed,
        "items": items,
    }


def agrees(printed: str, value: float | str) -> bool:
    """Compare a printed number with a value, rounded or cut to the last printed digit."""
    if isinstance(value, str):
        return value == printed

    decimals = printed.partition(".")[2]
    scale = 10 ** len(decimals)
    # In units of the last printed digit, the printed number is whole.
    units = value * scale
    printed_units = round(float(printed) * scale)
    is_rounded = abs(printed_units - units) <= 0.5 + FLOAT_ERROR
    away_from_0 = copysign(FLOAT_ERROR, units)
    cut = int(units + away_from_0)
    return is_rounded or cut == printed_units
