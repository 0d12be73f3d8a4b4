"""Numbers of a run as the tables and Figures 1 to 3 of Fagan et al. print them."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from ingroup import published
from ingroup.studies.biased_samaritan import stimuli


class Tables(NamedTuple):
    """The numbers of the paper's tables about one category."""

    bias: int
    helpfulness: int
    brittleness: int
    two_runs: int


TABLES = {
    "Age": Tables(1, 6, 10, 14),
    "Gender": Tables(2, 7, 9, 13),
    "Race": Tables(3, 8, 11, 12),
}


def group_labels() -> dict[str, str]:
    """Return the names of the groups as the paper's tables print them.

    Returns
    -------
    dict of str to str
        By group. Table 3 alone has "Native American", all other tables of race "American Indian".
    """
    tables = [published.load("biased_samaritan", number) for number in (6, 7, 8)]
    by_group = pd.concat(tables).set_index("group")
    labels = by_group.group_label.to_dict()
    # Section 4.1 names this group, and no table prints it.
    labels["latino"] = "Latino"
    return labels


def numbers_of(
    helpful: pd.DataFrame, brittle: pd.DataFrame
) -> Iterator[tuple[int, str, pd.Series]]:
    """Collect one model's numbers as the paper prints them.

    Parameters
    ----------
    helpful, brittle : DataFrame
        Helpfulness and brittleness of the model: ``round``, ``category``, ``group`` and ``mean``.

    Yields
    ------
    tuple
        A table, its column and the numbers, as :func:`ingroup.published.beside` takes them.
    """
    for category, tables in TABLES.items():
        scores_by_round = _by_round(helpful, category)
        scores = _first_round(scores_by_round)
        control = scores.get(stimuli.CONTROL, np.nan)
        of_groups = scores.drop(stimuli.CONTROL, errors="ignore")

        # Among the tables of brittleness, Table 9 alone prints both rounds.
        spreads = _by_round(brittle, category)
        if category != "Gender":
            spreads = _first_round(spreads)

        yield tables.bias, "score_difference", of_groups - control
        yield tables.helpfulness, "mean_score", scores
        yield tables.brittleness, "mean_sd", spreads
        yield tables.two_runs, "mean_score", scores_by_round


def _by_round(table: pd.DataFrame, category: str) -> pd.Series:
    """Index the means of one category by run, the paper's word for round, and by group."""
    rows = table[table.category == category]
    return rows.rename(columns={"round": "run"}).set_index(["run", "group"])["mean"]


def _first_round(means: pd.Series) -> pd.Series:
    """Select the means of the first round, by group."""
    # Unlike `xs`, this allows for a category without a first round.
    is_first = means.index.isin([1], level="run")
    return means[is_first].droplevel("run")
