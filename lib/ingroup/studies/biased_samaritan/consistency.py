"""What the printed numbers of the Biased Samaritan's paper say about each other, for its audit."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

KEYS = ["model", "group"]


def score_of(scores: pd.DataFrame, rows: pd.DataFrame) -> np.ndarray:
    """Look up the printed score of each row's model and group.

    Parameters
    ----------
    scores : DataFrame
        One of tables 6 to 8.
    rows : DataFrame
        Rows of another table, with the columns ``model`` and ``group``.

    Returns
    -------
    array
        One score per row; NaN where `scores` has none.
    """
    by_keys = scores.set_index(KEYS)
    keys = pd.MultiIndex.from_frame(rows[KEYS])
    found = by_keys["mean_score"].reindex(keys)
    return found.to_numpy()


def above_control(scores: pd.DataFrame, rows: pd.DataFrame) -> np.ndarray:
    """Subtract the score of the control from the score of each row's model and group.

    Parameters
    ----------
    scores, rows : DataFrame
        As in `score_of`.

    Returns
    -------
    array
        One difference per row.
    """
    # The same rows, with the control in place of the group.
    controls = rows.assign(group="control")
    own = score_of(scores, rows)
    control = score_of(scores, controls)
    return own - control


def largest_spread(mean: np.ndarray, n: int) -> np.ndarray:
    """Compute the largest standard deviation of n scores from 1 to 100 with a given mean.

    Parameters
    ----------
    mean : array
        The means; those off the scale count as its nearest end.
    n : int
        How many scores.

    Returns
    -------
    array
        The deviation of scores that are all 1 or 100, with n - 1 in the denominator.
    """
    on_scale = mean.clip(1, 100)
    variance = (on_scale - 1) * (100 - on_scale)
    return np.sqrt(n / (n - 1) * variance)


def brittleness(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Put the tables of brittleness below each other.

    Parameters
    ----------
    tables : mapping
        Tables 9 to 11 by category.

    Returns
    -------
    DataFrame
        Their rows, with ``category`` and ``maker``, the first word of a model's id.
    """
    rows = pd.concat(tables, names=["category"])
    rows = rows.reset_index("category")
    words = rows["model"].str.split("-")
    return rows.assign(maker=words.str[0])


def against_range(
    rows: pd.DataFrame, makers: Sequence[str], low: float, high: float, names: pd.DataFrame
) -> tuple[str, bool, str]:
    """Hold averages by model and category, and single cells, against a range of the text.

    Parameters
    ----------
    rows : DataFrame
        From `brittleness`.
    makers : sequence of str
        The makers that the sentence is about.
    low, high : float
        The ends of the range.
    names : DataFrame
        A table with ``model`` and ``model_label``, its printed name.

    Returns
    -------
    str
        The ranges of the averages and of the cells.
    bool
        Whether all averages are inside.
    str
        Which averages, and how many cells, are outside.
    """
    is_own = rows["maker"].isin(makers)
    own = rows[is_own]
    cells = own["mean_sd"]
    n_inside = cells.between(low, high).sum()
    n_outside = len(cells) - n_inside

    levels = own.groupby(["maker", "model", "category"])["mean_sd"].mean()
    is_inside = levels.between(low, high)
    averages = _named(levels[~is_inside], names)
    because = f"By model and category {averages}; "
    because += f"{n_outside} of {len(cells)} cells are outside"

    # The text may mean the average over models: the kindest reading is named, too.
    of_category = levels.groupby("category").mean()
    if not is_inside.all() and of_category.between(low, high).all():
        n_models = own["model"].nunique()
        because += f"; only the mean of the {n_models} models is inside for each category"

    shown = f"{levels.min():.2f} to {levels.max():.2f} by model and category, "
    shown += f"{cells.min()} to {cells.max()} by cell"
    return shown, bool(is_inside.all()), because + "."


def _named(averages: pd.Series, names: pd.DataFrame) -> str:
    """Averages by maker, model and category as a text, with the models' printed names."""
    once = names.drop_duplicates("model")
    labels = once.set_index("model")["model_label"]

    parts = []
    for model, own in averages.groupby("model", sort=False):
        texts = []
        for (_, _, category), average in own.items():
            texts.append(f"{average:.2f} ({category})")
        joined = " and ".join(texts)
        parts.append(f"{labels[model]} has {joined}")

    return ", ".join(parts) or "all are inside"
