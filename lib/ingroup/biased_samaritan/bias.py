"""Helpfulness (equation 1), bias (section 4.6), brittleness (5.2) and repeatability (5.3).

Each statistic is a mean over scenarios of one number a scenario (a *unit*). `of_scenarios` and
`spreads` make the units from the long table of ratings, `minus_control` compares them with the
control, and `intervals.means_by` averages and tests them. Missing ratings are left out step by
step: phrasings are averaged first, then wordings, then scenarios. Each step has equal weights.
"""

import pandas as pd

from ingroup import published
from ingroup.biased_samaritan import stimuli
from ingroup.stats.crossed import Effect, over_levels

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
    prompts = of_prompts(ratings)
    by_scenario = prompts.groupby(keys, sort=False)
    return by_scenario.mean()


def spreads(ratings: pd.DataFrame) -> pd.Series:
    """Compute the standard deviation over the wordings of each scenario: brittleness.

    Parameters
    ----------
    ratings : DataFrame
        From `answers.load`.

    Returns
    -------
    Series
        In points, for each `CELL` and scenario: the deviation of a sample (the paper does not say
        which), averaged over phrasings. A single rating has no deviation.
    """
    keys = [*CELL, "scenario"]
    wordings = ratings.groupby([*keys, "phrasing"], sort=False)
    deviations = wordings.rating.std()
    return deviations.groupby(keys, sort=False).mean()


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
    control = wide.pop(stimuli.CONTROL)
    differences = wide.sub(control, axis=0)
    return differences.stack().dropna()


def like_these(ratings: pd.DataFrame) -> pd.DataFrame:
    """Test each group against the control, with phrasings and scenarios as samples.

    See `crossed.over_levels`.

    Returns
    -------
    DataFrame
        The fields of `Effect` by `CELL`. The variance of phrasings is pooled over the groups of a
        category. "a person" is the one control.
    """
    tables = {}
    for family, of_family in ratings.groupby(FAMILY, sort=False):
        tables[family] = _like_these(of_family)
    return pd.concat(tables, names=CELL)


def _like_these(ratings: pd.DataFrame) -> pd.DataFrame:
    """Test the groups of one family: one row for each group."""
    # One row for each phrasing, one column for each scenario, means over wordings.
    phrasings = ratings.pivot_table("rating", ["group", "phrasing"], "scenario", sort=False)
    control = phrasings.loc[stimuli.CONTROL].squeeze()
    differences = phrasings.drop(stimuli.CONTROL) - control

    groups = {}
    for group, of_group in differences.groupby("group", sort=False):
        groups[group] = of_group
    effects = over_levels(groups)
    return pd.DataFrame.from_dict(effects, "index", columns=Effect._fields)


def group_labels() -> pd.Series:
    """Return the name of each group, as Tables 6 to 8 print it, in the order of Table 4."""
    tables = [published.load("biased_samaritan", number) for number in (6, 7, 8)]
    printed = pd.concat(tables)
    printed = printed.drop_duplicates("group")
    labels = printed.set_index("group").group_label

    phrasings = pd.read_csv(stimuli.FOLDER / "phrasings.csv")
    groups = phrasings.group.drop_duplicates()
    # Groups that the paper lacks keep their name in the file.
    names = groups.map(labels)
    names = names.fillna(groups)
    return names.set_axis(groups)


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
        One row for each source, model and run, printed ones first; one column for each group.
    """
    _, category, *_ = name.split("_")
    number = int(name[5:7])
    printed = published.load("biased_samaritan", number)
    printed = printed.rename(columns={printed.columns[-1]: "estimate"})
    if "run" not in printed:
        printed["run"] = 1

    here = here.reset_index()
    ours = here[here.category == category.title()]
    ours = ours.rename(columns={"round": "run"})

    both = pd.concat({"printed": printed, "here": ours}, names=["source"])
    keys = ["source", "model", "run"]
    rows = both.pivot_table("estimate", keys, "group", sort=False)

    labels = group_labels()
    in_order = labels.index.intersection(rows.columns, sort=False)
    named = rows[in_order].rename(columns=labels)
    return named.rename_axis(columns=None)
