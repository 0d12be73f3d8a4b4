"""Checks of the numbers that a paper prints against its other numbers.

Each check is a row of ``data/published/checks.csv`` with a formula. The formulas use the printed
tables (``t[2]`` is Table 2) and the functions of this module. No model is asked.
"""

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from ingroup.paths import PUBLISHED

FLOAT_ERROR = 1e-9
ONE_DECIMAL = 0.05  # half a unit of the last printed digit
MARK_LEVELS = np.array([0.05, 0.01, 0.001])  # one, two and three stars
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
        texts = pd.read_csv(file, dtype=str, keep_default_na=False)
        table = pd.read_csv(file, keep_default_na=False, na_values=[""])
        for column in table.select_dtypes("number"):
            decimals = texts[column].str.extract(r"\.(\d+)")[0].str.len()
            # A table that drops zeros at the end has as many decimals as its longest number.
            most = decimals.fillna(0).max()
            table[f"{column}_half"] = 0.5 * 10.0**-most

        names = [name for name in NAMES_OF_ROWS if name in texts]
        items = texts[names].agg(", ".join, axis=1)
        table.index = pd.Index(items, name="item")
        number = int(file.stem.removeprefix("table")[:2])
        tables[number] = table
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
    return pd.Series(distance <= allowed, printed.index)


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
    keys = ["model", "group"] if "group" in table else ["model", "category"]
    wanted = pd.MultiIndex.from_frame(rows.assign(**changed)[keys])
    numbers = table.set_index(keys)[column]
    return numbers.reindex(wanted).to_numpy(float)


def whole(percent: pd.Series, n: ArrayLike) -> pd.Series:
    """Tell which percentages, printed with one decimal, are k/n of a whole number k."""
    total = np.asarray(n)
    k = np.round(percent.to_numpy(float) * total / 100)
    return near(percent, 100 * k / total, ONE_DECIMAL)


def best_n(percent: pd.Series, candidates: range) -> int:
    """Find the n with which most percentages are k/n, the smallest of several."""
    counts = []
    for n in candidates:
        counts.append(whole(percent, n).sum())
    return candidates[int(np.argmax(counts))]


def denominators(t: dict[int, pd.DataFrame]) -> pd.Series:
    """Find the n behind GIEBench's accuracies (Tables 1, 2 and 6), by category."""
    cells = pd.concat([t[1], t[2], t[6]])
    cells = cells[cells.category != "Overall"]
    by_category = cells.groupby("category", sort=False)
    return by_category.accuracy_pct.apply(best_n, candidates=range(50, 121))


def in_either_order(t: dict[int, pd.DataFrame]) -> pd.DataFrame:
    """Put the accuracies of GIEBench's Tables 3 and 7 side by side, whatever a tuple's order."""
    columns = []
    for number in (3, 7):
        table = t[number]
        pairs = table[["identity_i", "identity_j"]].agg(frozenset, axis=1)
        by_pair = table.set_index([pairs.to_numpy(), "condition"])
        columns.append(by_pair.accuracy_pct.rename(f"printed_{number}"))
    return pd.concat(columns, axis=1, join="inner")


def largest_sd(mean: ArrayLike, low: float, high: float, n: int) -> NDArray:
    """Compute the largest sample SD of n numbers from low to high with a given mean.

    All numbers then lie at an end of the scale: n/(n - 1) times (mean - low)(high - mean).
    """
    inside = np.clip(np.asarray(mean, dtype=float), low, high)
    variance = (inside - low) * (high - inside)
    return np.sqrt(n / (n - 1) * variance)


def nearest_variance(mean: pd.Series, variance: pd.Series, n: int) -> NDArray:
    """Find the sample variance of n whole numbers that is nearest to a printed one."""
    total = np.round(n * mean.to_numpy(float))
    of_mean = total**2 / n
    squares = (n - 1) * variance.to_numpy(float) + of_mean

    # The sum of whole numbers and the sum of their squares are both even or both odd.
    odd = total % 2
    half = np.round((squares - odd) / 2)
    possible = 2 * half + odd
    return (possible - of_mean) / (n - 1)


def stars(rho: ArrayLike, n: int) -> NDArray:
    """Count the stars of a correlation over n groups, by its two-sided t-test."""
    size = np.clip(np.abs(rho), 0, 0.999)
    t = size * np.sqrt((n - 2) / (1 - size**2))
    p = 2 * stats.t.sf(t, n - 2)
    return (p[..., None] < MARK_LEVELS).sum(axis=-1)


def stars_in_order(table: pd.DataFrame) -> pd.Series:
    """Tell which correlations have no five others of their source against their stars.

    A larger correlation cannot have fewer stars than a smaller one of the same n.
    """
    n_stars = table.significance.str.len().to_numpy()
    size = table.spearman_rho.abs().to_numpy()
    half = table.spearman_rho_half.to_numpy()
    source = table.source.to_numpy()

    # Rounding must not decide which of two correlations is larger.
    least = size - half
    most = size + half
    is_larger = least[:, None] >= most - FLOAT_ERROR
    has_fewer = n_stars[:, None] < n_stars
    is_larger_with_fewer = is_larger & has_fewer
    is_against = is_larger_with_fewer | is_larger_with_fewer.T

    is_same_source = source[:, None] == source
    n_against = (is_against & is_same_source).sum(axis=1)
    return pd.Series(n_against < 5, table.index)


def clusters(table: pd.DataFrame, group: str) -> pd.DataFrame:
    """Find the cluster of a group in each source of StereoMap's Tables 2 and 5."""
    one_spelling = table.group.replace({"Elderly people": "Elderly", "Woman": "Women"})
    rows = table.assign(group=one_spelling)
    keys = ["source", "cluster_order"]
    members = rows.groupby(keys).group.agg(frozenset).rename("members")
    found = rows[rows.group == group].merge(members, on=keys)
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
    checks = pd.read_csv(PUBLISHED / "checks.csv", dtype=str, keep_default_na=False)
    checks = checks[checks.paper == paper].reset_index(drop=True)
    names = {**globals(), "t": printed_tables(paper)}

    rows = []
    for check in checks.itertuples():
        # A formula gives truth values, one or one for each row, or the value to compare.
        value = eval(check.formula, {**names, "printed": check.printed})
        recomputed = ""
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            recomputed = value if isinstance(value, str) else f"{value:.6g}"
            value = agrees(check.printed, value)

        holds = pd.Series(np.ravel(value), getattr(value, "index", None)).astype(bool)
        failing = holds.index[~holds].map(str).unique()
        row = {
            "numbers": len(holds),
            "failed": int((~holds).sum()),
            "recomputed": recomputed,
            "items": "; ".join(failing) if len(holds) > 1 else "",
        }
        rows.append(row)
    return checks.join(pd.DataFrame(rows))


def agrees(printed: str, value: float | str) -> bool:
    """Compare a printed number with a value, rounded or cut to the last printed digit."""
    if isinstance(value, str):
        return value == printed

    decimals = printed.partition(".")[2]
    unit = 10.0 ** -len(decimals)
    number = float(printed)
    is_rounded = abs(number - value) <= unit / 2 + FLOAT_ERROR
    cut = np.trunc(value / unit + np.sign(value) * FLOAT_ERROR) * unit
    is_cut = abs(number - cut) <= FLOAT_ERROR
    return bool(is_rounded or is_cut)
