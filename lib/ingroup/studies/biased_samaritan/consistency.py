"""Consistency of the numbers that the Biased Samaritan's paper prints, for the paper's audit."""

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
    by_group = scores.set_index(KEYS)
    groups_of_rows = pd.MultiIndex.from_frame(rows[KEYS])
    scores_of_rows = by_group.mean_score.reindex(groups_of_rows)
    return scores_of_rows.to_numpy()


def score_minus_control(scores: pd.DataFrame, rows: pd.DataFrame) -> np.ndarray:
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
    control_rows = rows.assign(group="control")
    of_groups = score_of(scores, rows)
    of_controls = score_of(scores, control_rows)
    return of_groups - of_controls


def largest_spread(mean: np.ndarray, n: int) -> np.ndarray:
    """Compute the largest standard deviation of n scores from 1 to 100 with a given mean.

    Parameters
    ----------
    mean : array
        The means. A mean off the scale counts as the nearest end of the scale.
    n : int
        How many scores.

    Returns
    -------
    array
        The deviation of scores that are all 1 or 100, with n - 1 in the denominator.
    """
    on_scale = mean.clip(1, 100)
    # With the share p of scores at 100 and the others at 1, the variance is 99 p times 99 (1 - p).
    from_low = on_scale - 1
    from_high = 100 - on_scale
    variance = from_low * from_high

    # The variance above has n in its denominator.
    ratio = n / (n - 1)
    return np.sqrt(ratio * variance)


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
    words_of_ids = rows.model.str.split("-")
    rows["maker"] = words_of_ids.str[0]
    return rows


def check_range(
    rows: pd.DataFrame, makers: Sequence[str], low: float, high: float, names: pd.DataFrame
) -> tuple[str, bool, str]:
    """Check whether averages by model and category, and single cells, are in a range of the text.

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
        The averages that are outside, and the number of cells that are outside.
    """
    is_of_makers = rows.maker.isin(makers)
    of_makers = rows[is_of_makers]
    cells = of_makers.mean_sd
    n_cells = len(cells)
    n_cells_inside = cells.between(low, high).sum()
    n_cells_outside = n_cells - n_cells_inside

    by_model = of_makers.groupby(["maker", "model", "category"])
    averages = by_model.mean_sd.mean()
    is_inside = averages.between(low, high)
    all_inside = bool(is_inside.all())
    averages_outside = averages[~is_inside]
    named = _named(averages_outside, names)
    verdicts = [
        f"By model and category {named}",
        f"{n_cells_outside} of {n_cells} cells are outside",
    ]

    # The text may mean the average over models, so this most favourable reading is named, too.
    over_models = averages.groupby("category").mean()
    is_mean_inside = over_models.between(low, high)
    if is_mean_inside.all() and not all_inside:
        n_models = of_makers.model.nunique()
        verdicts.append(f"only the mean of the {n_models} models is inside for each category")
    sentence = "; ".join(verdicts)

    lowest = averages.min()
    highest = averages.max()
    range_of_averages = f"{lowest:.2f} to {highest:.2f} by model and category"
    range_of_cells = f"{cells.min()} to {cells.max()} by cell"
    ranges = f"{range_of_averages}, {range_of_cells}"
    return ranges, all_inside, f"{sentence}."


def _named(averages: pd.Series, names: pd.DataFrame) -> str:
    """Write the averages outside a range as text, with the models' printed names.

    Without averages the text is "all are inside".
    """
    if averages.empty:
        return "all are inside"

    by_model = names.drop_duplicates("model").set_index("model")
    labels = by_model.model_label

    parts = []
    for model, of_model in averages.groupby("model", sort=False):
        texts = []
        for (_, _, category), average in of_model.items():
            text = f"{average:.2f} ({category})"
            texts.append(text)

        joined = " and ".join(texts)
        part = f"{labels[model]} has {joined}"
        parts.append(part)

    return ", ".join(parts)
