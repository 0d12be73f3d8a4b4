"""One model through four lenses: what each study says of the groups that several of them ask.

Every instrument is brought to the same form, a table of numbers with a row for each repeated *item*
(event, scenario, question, round) and a column for each group, NaN where an item says nothing of a
group. With x the numbers of a group::

    effect = mean(x) / SD

where SD is that of the single answers from which the numbers come (ratings in points, verdicts as 1
and 0), so that an effect of 1 is as large as one answer lies from another. It is not the SD of the
numbers themselves, nor that of the cells: where nothing differs, as in the negative control, those
hold noise alone, and noise divided by itself is of size 1.

Every function raises ValueError for what it cannot use.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from ingroup import paths

COLUMNS = ("study", "category", "group", "identity")


def shared_groups(file: Path = paths.STIMULI / "shared_groups.csv") -> pd.DataFrame:
    """Which identities of each study belong to a group that several studies ask.

    Returns
    -------
    DataFrame
        ``study``, ``category`` (of this table, not the study's), ``group``, ``identity`` (as the
        study's own files name it).

    Raises
    ------
    ValueError
        Naming file and line: for a missing column, an empty cell, an identity that a study has
        twice, or a group in two categories.
    """
    table = pd.read_csv(file, dtype=str, keep_default_na=False)
    for column in COLUMNS:
        if column not in table:
            expected = ", ".join(COLUMNS)
            raise ValueError(f"{file}, line 1: found no column {column!r}, expected {expected}.")
    category: dict[str, str] = {}
    seen = set()
    for line, row in enumerate(table.itertuples(), start=2):
        if not all(getattr(row, column) for column in COLUMNS):
            raise ValueError(f"{file}, line {line}: found an empty cell, expected a text in each.")
        if (row.study, row.identity) in seen:
            found = f"{row.identity!r} of {row.study} again"
            raise ValueError(f"{file}, line {line}: found {found}, expected it once.")
        if category.setdefault(row.group, row.category) != row.category:
            found = f"{row.group!r} in {row.category!r} and {category[row.group]!r}"
            raise ValueError(f"{file}, line {line}: found {found}, expected one category.")
        seen.add((row.study, row.identity))
    return table[list(COLUMNS)]


def empathy(values: ArrayLike, groups: Sequence[str], side: str) -> pd.DataFrame:
    """Empathy that groups receive, or give, by event, relative to the other groups.

    Cells are averaged within pairs of groups first, so that a group with many names has no more
    in-group cells than one with few. With B[g, h] the mean rating of perceivers of g of
    experiencers of h in one event, over G groups::

        received(h) = mean_g B[g, h] - mean over the other h' of mean_g B[g, h']

    and given(g) likewise with rows and columns exchanged. Where each group has one name and no
    rating is missing, the mean over events is that of a column (row) of cell means minus the mean
    of the other columns (rows).

    Parameters
    ----------
    values : array_like, shape (n, n, events)
        Ratings, perceivers by experiencers by events, in points; NaN where one is missing.
    groups : sequence of str, length n
        Group of each identity; "" for one that is left out, such as "a person".
    side : {"received", "given"}
        Columns or rows.

    Returns
    -------
    DataFrame
        Events by groups, in points.
    """
    values = np.asarray(values, dtype=float)
    if values.ndim != 3 or values.shape[:2] != (len(groups),) * 2:
        found = f"{values.shape}, expected ({len(groups)}, {len(groups)}, events) for these groups"
        raise ValueError(f"ratings have shape {found}")
    if side not in ("received", "given"):
        raise ValueError(f"side is {side!r}, expected 'received' or 'given'")
    names = [name for name in dict.fromkeys(groups) if name]
    places = [np.flatnonzero(np.asarray(groups) == name) for name in names]
    blocks = np.array(
        [[_mean(values[np.ix_(p, x)].reshape(-1, values.shape[2])) for x in places] for p in places]
    )
    table = pd.DataFrame(_mean(blocks, axis=0 if side == "received" else 1).T, columns=names)
    return relative(table)


def relative(table: pd.DataFrame) -> pd.DataFrame:
    """Each column minus the mean of the other columns, row by row; NaN is left out."""
    there = table.notna().sum(axis=1)
    others = table.rsub(table.sum(axis=1), axis=0).div(there - 1, axis=0)
    return table - others.where(there > 1, axis=0)


def helpfulness(prompts: pd.DataFrame, phrases: Mapping[str, str], control: str) -> pd.DataFrame:
    """Rating of each group minus the control's, by scenario, as the bias score is made.

    Phrasings are averaged first, then the wordings of a scenario; see `ingroup.helpfulness`.

    Parameters
    ----------
    prompts : DataFrame
        ``scenario``, ``wording``, ``group``, ``phrase``, ``rating``, from
        `ingroup.commands.reread.samaritan_ratings`.
    phrases : mapping
        Phrase to shared group.
    control : str
        The study's group with which all are compared.

    Returns
    -------
    DataFrame
        Scenarios by groups, in points.
    """
    named = prompts.phrase.map(phrases).where(prompts.group != control, control)
    asked = prompts.assign(named=named).dropna(subset="named")
    wordings = asked.groupby(["scenario", "wording", "named"], sort=False).rating.mean()
    table = wordings.groupby(["scenario", "named"], sort=False).mean().unstack("named")
    names = [name for name in dict.fromkeys(phrases.values()) if name in table]
    return table[names].sub(table[control], axis=0)


def naming(answers: pd.DataFrame, groups: Mapping[str, str]) -> pd.DataFrame:
    """Right under ID minus right under Raw, by item, mean over the orders of its answers.

    Parameters
    ----------
    answers : DataFrame
        From `ingroup.commands.reread.giebench_answers`; an answer without a verdict is wrong.
    groups : mapping
        Identity to shared group.

    Returns
    -------
    DataFrame
        Items by groups: -1 to 1, NaN outside the item's own group.
    """
    right = answers.assign(right=answers.letter.eq(answers.correct).astype(float))
    share = right.groupby(["key", "prompt"], sort=False).right.mean().unstack("prompt")
    group = answers.drop_duplicates("key").set_index("key").identity.map(groups).dropna()
    if group.empty:
        return pd.DataFrame(index=group.index)
    table = pd.DataFrame({"group": group, "gain": (share.ID - share.Raw).loc[group.index]})
    return table.set_index("group", append=True).gain.unstack("group")


def position(scores: pd.DataFrame, axis: str, groups: Mapping[str, str]) -> pd.DataFrame:
    """Warmth or competence of groups by round, relative to all other groups that were asked.

    Parameters
    ----------
    scores : DataFrame
        From `ingroup.studies.stereomap.statistics.round_scores`.
    axis : str
        One of its columns.
    groups : mapping
        Name of a group there to shared group.

    Returns
    -------
    DataFrame
        Rounds by groups, in points; NaN where a round has no score.
    """
    table = relative(scores.pivot(index="round", columns="group", values=axis))
    known = [name for name in groups if name in table]
    return table[known].rename(columns=groups).T.groupby(level=0, sort=False).mean().T


def _mean(values: NDArray[np.float64], axis: int = 0) -> NDArray[np.float64]:
    """Mean of what is not NaN; NaN where there is nothing."""
    number = np.count_nonzero(~np.isnan(values), axis=axis)
    empty = np.full(number.shape, np.nan)
    return np.divide(np.nansum(values, axis=axis), number, out=empty, where=number > 0)
