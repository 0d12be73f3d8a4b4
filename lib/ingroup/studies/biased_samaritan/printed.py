"""Numbers of a run under the tables of Fagan et al. that print them, and their Figures 1 to 3."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from ingroup import published
from ingroup.models import is_calibrant, label
from ingroup.studies.biased_samaritan import stimuli

# The tables of a category: of the bias, the helpfulness, the brittleness, and the two runs.
TABLES = {"Age": (1, 6, 10, 14), "Gender": (2, 7, 9, 13), "Race": (3, 8, 11, 12)}
COLUMNS = ("score_difference", "mean_score", "mean_sd", "mean_score")


def group_labels() -> dict[str, str]:
    """Return the names of the groups as the paper's tables print them.

    Returns
    -------
    dict of str to str
        By group. Table 3 alone has "Native American", all other tables of race "American Indian".
    """
    tables = [published.load("biased_samaritan", number) for number in (6, 7, 8)]
    labels = pd.concat(tables).set_index("group").group_label.to_dict()
    return labels | {"latino": "Latino"}


def numbers_of(
    helpful: pd.DataFrame, brittle: pd.DataFrame
) -> Iterator[tuple[int, str, pd.Series]]:
    """Collect one model's numbers as the paper prints them.

    Parameters
    ----------
    helpful, brittle : DataFrame
        Helpfulness and brittleness of the model: ``run``, ``category``, ``group`` and ``mean``.

    Yields
    ------
    tuple
        A table, its column and the numbers, as :func:`ingroup.published.beside` takes them.
    """
    for category, tables in TABLES.items():
        mean = _by_run(helpful, category)
        sd = _by_run(brittle, category)
        score = _first_run(mean)
        control = score.get(stimuli.CONTROL, np.nan)
        difference = score.drop(stimuli.CONTROL, errors="ignore") - control
        # Among the tables of brittleness, Table 9 alone prints both runs.
        if category != "Gender":
            sd = _first_run(sd)
        yield from zip(tables, COLUMNS, (difference, score, sd, mean), strict=True)


def _by_run(table: pd.DataFrame, category: str) -> pd.Series:
    """The means of one category by run and group."""
    return table[table.category == category].set_index(["run", "group"])["mean"]


def _first_run(means: pd.Series) -> pd.Series:
    """The means of the first run by group."""
    return means[means.index.isin([1], "run")].droplevel("run")


def panels(table: pd.DataFrame) -> pd.Series:
    """Name the panel of Figures 1 to 3 in which each row is drawn.

    Parameters
    ----------
    table : DataFrame
        ``model`` and ``category``.

    Returns
    -------
    Series
        With the index of the table. A calibrant has a panel of its own. The real models share one,
        which is named after those that were asked about the category.
    """
    taught = table.model.map(is_calibrant)
    real = table[~taught].groupby("category").model
    shared_panel = real.agg(lambda models: ", ".join(map(label, models.unique())))

    own_panel = table.model.map(label)
    return own_panel.where(taught, table.category.map(shared_panel))


def over_models(table: pd.DataFrame, shown: pd.Series) -> pd.DataFrame:
    """Average each group over the models of a panel: Figures 1 to 3.

    Parameters
    ----------
    table : DataFrame
        ``model``, ``category``, ``group``, ``helpfulness``, ``control``, ``significant``.
    shown : Series
        In which panel each row is.

    Returns
    -------
    DataFrame
        Index ``shown``, ``category``, ``group``; the number of ``models``, their mean
        ``helpfulness``, that of their ``control``, and the ``share`` of them in which the group
        differs.
    """
    rows = table.assign(shown=shown).astype({"significant": float})
    return rows.groupby(["shown", "category", "group"], sort=False).agg(
        models=("model", "nunique"),
        helpfulness=("helpfulness", "mean"),
        control=("control", "mean"),
        share=("significant", "mean"),
    )
