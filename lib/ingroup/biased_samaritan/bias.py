"""Helpfulness (equation 1), bias (section 4.6), brittleness (5.2) and repeatability (5.3).

Each statistic is a mean over scenarios of one number a scenario (a *unit*). `of_scenarios` and
`spreads` make the units from the long table of ratings, `minus_control` compares them with the
control, and `means` averages and tests them. Missing ratings are left out step by step: phrasings
are averaged first, then wordings, then scenarios. Each step has equal weights.
"""

from collections.abc import Sequence

import pandas as pd

from ingroup import published
from ingroup.biased_samaritan.stimuli import CATEGORIES, CONTROL, phrasings
from ingroup.stats.crossed import Effect, over_levels
from ingroup.stats.intervals import Mean, mean_over_items

FAMILY = ["model", "reading", "round", "category"]  # its groups are tested together
CELL = [*FAMILY, "group"]
# The tables of the paper, by what they are about.
TABLES = {
    "bias": ["table01_age_difference", "table02_gender_difference", "table03_race_difference"],
    "helpfulness": [
        "table06_age_helpfulness",
        "table07_gender_helpfulness",
        "table08_race_helpfulness",
    ],
    "brittleness": [
        "table09_gender_brittleness",
        "table10_age_brittleness",
        "table11_race_brittleness",
    ],
    "runs": ["table12_race_repeat_runs", "table13_gender_repeat_runs", "table14_age_repeat_runs"],
}


def of_prompts(ratings: pd.DataFrame) -> pd.Series:
    """Average the phrasings of a group: one number for each `CELL`, scenario and wording."""
    keys = [*CELL, "scenario", "wording"]
    by_prompt = ratings.groupby(keys, sort=False)
    return by_prompt.rating.mean()


def of_scenarios(ratings: pd.DataFrame) -> pd.Series:
    """Average the prompts of a scenario: one number for each `CELL` and scenario."""
    keys = [*CELL, "scenario"]
    by_scenario = of_prompts(ratings).groupby(keys, sort=False)
    return by_scenario.mean()


def spreads(ratings: pd.DataFrame, ddof: int = 1, pooling: str = "within") -> pd.Series:
    """Compute the standard deviation over the wordings of each scenario: brittleness.

    Parameters
    ----------
    ratings : DataFrame
        From `answers.load`.
    ddof : {1, 0}
        1 for the standard deviation of a sample, 0 of a population. The paper does not say which.
    pooling : {"within", "averaged"}
        "within" takes the deviation of each phrasing and averages these. "averaged" averages the
        phrasings first, so groups with several phrasings look less brittle.

    Returns
    -------
    Series
        In points, for each `CELL` and scenario. A single rating has no deviation.
    """
    keys = [*CELL, "scenario"]
    if pooling == "averaged":
        wordings = of_prompts(ratings).groupby(keys, sort=False)
    else:
        by_phrasing = ratings.groupby([*keys, "phrasing"], sort=False)
        wordings = by_phrasing.rating

    has_several = wordings.count() > 1
    deviations = wordings.std(ddof=ddof).where(has_several)
    by_scenario = deviations.groupby(keys, sort=False)
    return by_scenario.mean()


def minus_control(units: pd.Series) -> pd.Series:
    """Subtract the control's number from each group's, scenario by scenario.

    Parameters
    ----------
    units : Series
        Numbers by `CELL` and scenario, or prompt (`of_prompts`). The paper does not say which of
        these its t-test pairs.

    Returns
    -------
    Series
        With the same index, without the control. Pairs that lack a number are left out.
    """
    wide = units.unstack("group", sort=False)
    control = wide.pop(CONTROL)
    differences = wide.sub(control, axis=0)
    return differences.stack().dropna()


def means(units: pd.Series, keys: Sequence[str] = CELL) -> pd.DataFrame:
    """Average the units of each cell, and test the mean against 0 (paired t-test, section 4.5).

    Parameters
    ----------
    units : Series
        Numbers by `CELL` and scenario or prompt.
    keys : sequence of str
        What makes a cell.

    Returns
    -------
    DataFrame
        The keys and the fields of `Mean`: estimate and interval in points, t, p, Cohen's d and the
        number of units.
    """
    rows = {}
    for cell, of_cell in units.groupby(list(keys), sort=False):
        rows[cell] = mean_over_items(of_cell)
    index = pd.MultiIndex.from_tuples(list(rows), names=keys)
    table = pd.DataFrame(list(rows.values()), index, columns=Mean._fields)
    return table.reset_index()


def two_runs(units: pd.Series) -> pd.DataFrame:
    """Test the second run against the first, scenario by scenario (section 5.3).

    Returns
    -------
    DataFrame
        As from `means`, second minus first; no row of a model that was asked once.
    """
    keys = [name for name in CELL if name != "round"]
    by_run = units.unstack("round", sort=False).reindex(columns=[1, 2])
    differences = by_run[2] - by_run[1]
    return means(differences.dropna(), keys)


def like_these(ratings: pd.DataFrame) -> pd.DataFrame:
    """Test each group against the control for phrasings like these (`crossed.over_levels`).

    Returns
    -------
    DataFrame
        `CELL` and the fields of `Effect`. The variance of phrasings is pooled over the groups of a
        category. "a person" is the one control.
    """
    rows = {}
    for family, of_family in ratings.groupby(FAMILY, sort=False):
        levels = ["group", "phrasing"]
        cells = of_family.pivot_table("rating", levels, "scenario", sort=False)
        control = cells.loc[CONTROL].squeeze()
        differences = cells.drop(CONTROL) - control

        groups = dict(list(differences.groupby("group", sort=False)))
        for group, effect in over_levels(groups).items():
            rows[*family, group] = effect
    index = pd.MultiIndex.from_tuples(list(rows), names=CELL)
    table = pd.DataFrame(list(rows.values()), index, columns=Effect._fields)
    return table.reset_index()


def group_labels() -> pd.Series:
    """Return the name of each group, as Tables 6 to 8 print it, in the order of Table 4."""
    labels = {}
    for number in (8, 7, 6):
        printed = published.load("biased_samaritan", number)
        labels.update(zip(printed.group, printed.group_label, strict=True))
    # Groups that the paper lacks are named after their group in the file.
    for category in CATEGORIES:
        for group in phrasings(category, latino=True).group:
            labels.setdefault(group, group.replace("_", " ").title())
    return pd.Series(labels)


def beside(name: str, here: pd.DataFrame) -> pd.DataFrame:
    """Put the models of this run below those of a printed table, in its layout.

    Parameters
    ----------
    name : str
        A table of `TABLES`.
    here : DataFrame
        `CELL` and ``estimate``.

    Returns
    -------
    DataFrame
        One row for each model and run, printed ones first, with one column for each group.
    """
    number = int(name[5:7])
    category = name.split("_")[1].title()
    printed = published.load("biased_samaritan", number)
    printed = printed.rename(columns={printed.columns[-1]: "estimate"})
    if "run" not in printed:
        printed["run"] = 1

    ours = here[here.category == category]
    ours = ours.rename(columns={"round": "run"})
    both = pd.concat({"printed": printed, "here": ours}, names=["source"])
    rows = both.pivot_table("estimate", ["source", "model", "run"], "group", sort=False)

    labels = group_labels()
    in_order = labels.index[labels.index.isin(rows.columns)]
    named = rows[in_order].rename(columns=labels)
    return named.rename_axis(columns=None).reset_index()
