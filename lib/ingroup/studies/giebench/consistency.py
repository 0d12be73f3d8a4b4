"""Checks of the printed numbers of GIEBench's paper against each other, for its audit."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from ingroup import published
from ingroup.published import FLOAT_ERROR

TUPLE = ["identity_i", "identity_j", "condition"]


def can_be_whole(printed: pd.Series, numbers: np.ndarray) -> np.ndarray:
    """Tell which printed percentages can be k / n of a whole number k, for several n.

    Parameters
    ----------
    printed : Series
        Percentages as texts.
    numbers : array
        The n to try.

    Returns
    -------
    array
        A truth value by percentage (row) and n (column): whether a k/n rounds to the percentage.
    """
    percent = printed.astype(float).to_numpy()
    half = published.tolerance(printed).to_numpy()
    # Percentages are rows and n are columns, so that each percentage meets each n.
    percent = percent[:, np.newaxis]
    half = half[:, np.newaxis]

    k = percent * numbers / 100
    nearest_k = k.round()
    nearest = 100 * nearest_k / numbers
    distance = np.abs(nearest - percent)
    return distance <= half + FLOAT_ERROR


def fitting_n(cells: pd.DataFrame, numbers: np.ndarray) -> pd.DataFrame:
    """Count the accuracies of each category that can be k / n of a whole number k, for several n.

    Parameters
    ----------
    cells : DataFrame
        Rows of tables 1, 2 and 6.
    numbers : array
        The n to try.

    Returns
    -------
    DataFrame
        Counts by n and category.
    """
    counts = {}
    for category, rows in cells.groupby("category", sort=False):
        is_whole = can_be_whole(rows.accuracy_pct_printed, numbers)
        counts[category] = is_whole.sum(axis=0)
    return pd.DataFrame(counts, index=numbers)


def accuracies(tables: Mapping[int, pd.DataFrame]) -> pd.DataFrame:
    """Lay out the accuracies of several tables, one row per table and model.

    Parameters
    ----------
    tables : mapping
        Tables 1, 2 and 6 by number.

    Returns
    -------
    DataFrame
        Percentages; one row per table and model, one column per category.
    """
    rows = pd.concat(tables, names=["table"])
    rows = rows.reset_index("table")
    return rows.pivot(
        index=["table", "model"],
        columns="category",
        values="accuracy_pct",
    )


def number_of_each_row(wide: pd.DataFrame, rows: pd.DataFrame) -> np.ndarray:
    """Look up the number of each row's model and category.

    Parameters
    ----------
    wide : DataFrame
        Numbers by model and category.
    rows : DataFrame
        Rows with the columns ``model`` and ``category``.

    Returns
    -------
    array
        One number per row.
    """
    keys = pd.MultiIndex.from_frame(rows[["model", "category"]])
    numbers = wide.stack()
    return numbers.reindex(keys).to_numpy()


def match_tuples(table: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """Find the tuples of one table in another, in either order of their identities.

    Parameters
    ----------
    table : DataFrame
        Table 3.
    other : DataFrame
        Table 7.

    Returns
    -------
    DataFrame
        By row of `table`: ``order``, "same", "reversed" or "" (not there), and ``accuracy_pct``,
        the number that `other` prints for it.
    """
    by_tuple = other.set_index(TUPLE)
    accuracy = by_tuple.accuracy_pct
    keys = pd.MultiIndex.from_frame(table[TUPLE])
    is_same = keys.isin(accuracy.index)
    of_same = accuracy.reindex(keys)

    reversed_keys = keys.reorder_levels(["identity_j", "identity_i", "condition"])
    is_reversed = reversed_keys.isin(accuracy.index)
    of_reversed = accuracy.reindex(reversed_keys)

    # A tuple that stands there in both orders counts as the same.
    order = np.where(is_reversed, "reversed", "")
    order = np.where(is_same, "same", order)
    matches = {
        "order": order,
        "accuracy_pct": np.where(is_same, of_same, of_reversed),
    }
    return pd.DataFrame(matches, index=table.index)


def common_n(table: pd.DataFrame, numbers: np.ndarray) -> pd.Series:
    """Find the smallest n that fits all conditions of a tuple.

    Parameters
    ----------
    table : DataFrame
        Table 3 or 7.
    numbers : array
        The n to try, the smallest first.

    Returns
    -------
    Series
        The n of each row's tuple; 0 where none fits.
    """
    smallest = {}
    for name, rows in table.groupby("identity_tuple"):
        smallest[name] = 0
        is_whole = can_be_whole(rows.accuracy_pct_printed, numbers)
        fits_all = is_whole.all(axis=0)
        fitting = numbers[fits_all]
        if fitting.size:
            smallest[name] = fitting[0]
    return table.identity_tuple.map(smallest)


def questions_of_tuples(
    tuples: pd.DataFrame, identities: pd.DataFrame, numbers: np.ndarray
) -> pd.DataFrame:
    """Compute the number of questions of a category from the n of its tuples.

    A tuple has the questions of both its identities. If all identities of a category are in equally
    many tuples, the n add up to that many times the category's questions.

    Parameters
    ----------
    tuples : DataFrame
        Rows as in table 7.
    identities : DataFrame
        Table 8.
    numbers : array
        The n to try.

    Returns
    -------
    DataFrame
        By category ``from table 7``, the possible sum that is nearest to table 8, and ``table 8``.
        Categories whose identities are in different numbers of tuples are left out.
    """
    names = _plain(identities.identity)
    by_name = identities.set_index(names)
    # The two identities of a tuple are of one category.
    first_names = _plain(tuples.identity_i)
    categories = first_names.map(by_name.category)

    rows = {}
    for category, of_category in tuples.groupby(categories):
        is_member = identities.category == category
        members = identities[is_member]
        # A tuple has a row for each condition.
        distinct = of_category.drop_duplicates("identity_tuple")
        both_sides = pd.concat([distinct.identity_i, distinct.identity_j])
        n_tuples = both_sides.value_counts()

        differ = n_tuples.nunique() > 1
        lacks_some = len(n_tuples) < len(members)
        if differ or lacks_some:
            continue

        sums = _possible_sums(of_category, numbers)
        # All identities are in equally many tuples.
        questions = sums / n_tuples.iloc[0]
        printed = float(members.n_topics.iloc[0])
        distance = np.abs(questions - printed)
        nearest = questions[distance.argmin()]
        rows[category] = {
            "from table 7": nearest,
            "table 8": printed,
        }

    table = pd.DataFrame.from_dict(rows, orient="index")
    return table.convert_dtypes()


def _plain(names: pd.Series) -> pd.Series:
    """Write names in lower case without apostrophes, which differ between tables 3, 7 and 8."""
    lower = names.str.casefold()
    return lower.str.replace("'", "")


def _possible_sums(tuples: pd.DataFrame, numbers: np.ndarray) -> np.ndarray:
    """List all sums of one n per tuple, out of the n that fit most of its accuracies."""
    sums = {0}
    for _, rows in tuples.groupby("identity_tuple"):
        is_whole = can_be_whole(rows.accuracy_pct_printed, numbers)
        n_fits = is_whole.sum(axis=0)
        is_likely = n_fits == n_fits.max()
        likely = numbers[is_likely]

        # Two tuples with two n each have up to four sums.
        longer_sums = set()
        for total in sums:
            longer_sums.update(total + likely)
        sums = longer_sums
    return np.array(sorted(sums))
