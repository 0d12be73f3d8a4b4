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
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from ingroup import paths
from ingroup.comparison import adjust

COLUMNS = ("study", "category", "group", "identity")
BLOCK = 200  # draws at a time: 200 x 6,050 events are 10 MB


@dataclass(frozen=True)
class Measure:
    """What `measure` returns: ``effects`` by group, and ``draws`` (draw, group)."""

    effects: pd.DataFrame
    draws: pd.DataFrame


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


# ---- from answers to items ---------------------------------------------------------------------


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
        `ingroup.reread.samaritan_ratings`.
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
        From `ingroup.reread.giebench_answers`; an answer without a verdict is wrong.
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
        From `ingroup.content_model.round_scores`.
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


# ---- from items to effects ---------------------------------------------------------------------


def measure(
    items: pd.DataFrame,
    sd: float,
    rng: np.random.Generator,
    n_resamples: int = 2000,
    confidence: float = 0.95,
    together: bool = True,
) -> Measure:
    """Standardised effect of each group with its interval: see the module for the formula.

    The interval is the percentile bootstrap's over items; SD is held fixed. Of few items the
    percentiles are too close together, so that those of the expanded interval are taken (Hesterberg
    2015, The American Statistician 69:371): with n items and the coverage 1 - a those at
    Phi(-+ sqrt(n / (n - 1)) t), t the 1 - a / 2 quantile of Student's t with n - 1 degrees of
    freedom. A single item has no interval. Checked against scipy.stats.bootstrap where n is large.

    Parameters
    ----------
    items : DataFrame
        Items by groups; see the module.
    sd : float
        In the unit of the items. Where it is 0 all answers were the same, and so are the effects.
    rng : numpy.random.Generator
        Source of the draws.
    n_resamples : int
        Number of draws.
    confidence : float
        Coverage, above 0 and below 1.
    together : bool
        Whether a draw takes the same items for all groups, which all have; else each group's own.

    Returns
    -------
    Measure
        ``effects``: by group, ``effect``, ``low``, ``high`` and ``items`` (how many it has).
        ``draws``: effect of each draw; NaN where it met no item of a group.
    """
    if not sd >= 0:
        raise ValueError(f"sd is {sd!r}, expected a number of at least 0")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence!r}, expected a number between 0 and 1")
    unit = sd if sd > 0 else 1.0
    values = items.to_numpy(dtype=float)
    counts = (~np.isnan(values)).sum(axis=0)
    if together:
        drawn = _together(values, rng, n_resamples)
    else:
        drawn = np.full((n_resamples, len(counts)), np.nan)
        for column, n in enumerate(counts):
            own = values[~np.isnan(values[:, column]), column]
            if n:
                drawn[:, column] = own[rng.integers(n, size=(n_resamples, n))].mean(axis=1)
    rows = []
    for column, n in enumerate(counts):
        ends = _expanded(drawn[:, column], n, confidence) if n > 1 else (np.nan, np.nan)
        mean = np.nanmean(values[:, column]) if n else np.nan
        rows.append((mean / unit, ends[0] / unit, ends[1] / unit, n))
    index = pd.Index(items.columns, name="group")
    effects = pd.DataFrame(rows, index, ["effect", "low", "high", "items"])
    return Measure(effects, pd.DataFrame(drawn / unit, columns=index))


def agreement(
    effects: pd.DataFrame,
    draws: Mapping[str, pd.DataFrame],
    rng: np.random.Generator,
    n_permutations: int = 9999,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Spearman's correlation, over groups, of every pair of measures.

    Interval and p answer two questions. The interval: with other events, scenarios, questions or
    rounds, what would it be among *these* groups? It holds the middle of the correlations of the
    bootstrap draws; these carry the noise of the items twice, and so lie nearer to 0 than the
    correlation itself where items are few. p: could groups in random order agree as much? Exact
    where all orders are at most `n_permutations`, by scipy.stats.permutation_test, two-sided.

    Parameters
    ----------
    effects : DataFrame
        Groups by measures, NaN where a measure does not have a group.
    draws : mapping
        Measure to `Measure.draws`, all with the same number of draws.
    rng, n_permutations, confidence
        Of the permutations, and of the interval.

    Returns
    -------
    DataFrame
        ``one``, ``other``, ``n`` (groups with both), ``rho``, ``low``, ``high``, ``p``, ``p_holm``
        (all pairs are one family). NaN with fewer than 4 groups, or where a measure is the same for
        all of them.
    """
    rows = []
    for one, other in combinations(effects, 2):
        both = effects[[one, other]].dropna()
        row = {"one": one, "other": other, "n": len(both)}
        row |= dict.fromkeys(("rho", "low", "high", "p"), np.nan)
        if len(both) >= 4 and (both.nunique() > 1).all():
            x, y = (stats.rankdata(both[name]) for name in (one, other))
            test = stats.permutation_test(
                (x,), lambda x, axis, y=y: _correlation(x, y), permutation_type="pairings",
                vectorized=True, n_resamples=n_permutations, rng=rng,
            )  # fmt: skip
            row |= {"rho": float(test.statistic), "p": float(test.pvalue)}
            ranks = [stats.rankdata(draws[name][both.index], axis=1) for name in (one, other)]
            row |= zip(("low", "high"), _middle(_correlation(*ranks), confidence), strict=True)
        rows.append(row)
    table = pd.DataFrame(rows)
    return table.assign(p_holm=adjust(table.p, "holm") if table.p.notna().any() else np.nan)


def _mean(values: NDArray[np.float64], axis: int = 0) -> NDArray[np.float64]:
    """Mean of what is not NaN; NaN where there is nothing."""
    number = np.count_nonzero(~np.isnan(values), axis=axis)
    empty = np.full(number.shape, np.nan)
    return np.divide(np.nansum(values, axis=axis), number, out=empty, where=number > 0)


def _together(
    values: NDArray[np.float64], rng: np.random.Generator, n_resamples: int
) -> NDArray[np.float64]:
    """Means of each column in draws of rows, the same rows for all columns."""
    n, there = len(values), ~np.isnan(values)
    filled, blocks = np.where(there, values, 0.0), []
    for start in range(0, n_resamples, BLOCK):
        size = min(BLOCK, n_resamples - start)
        picks = rng.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
        times = np.bincount(picks.ravel(), minlength=picks.size).reshape(size, n).astype(float)
        number = times @ there
        empty = np.full(number.shape, np.nan)
        blocks.append(np.divide(times @ filled, number, out=empty, where=number > 0))
    return np.concatenate(blocks)


def _expanded(draws: NDArray[np.float64], n: int, confidence: float) -> tuple[float, float]:
    """Percentiles of the draws, further apart the fewer items there are."""
    reach = np.sqrt(n / (n - 1)) * stats.t.ppf((1 + confidence) / 2, n - 1)
    low, high = np.nanquantile(draws, [stats.norm.sf(reach), stats.norm.cdf(reach)])
    return float(low), float(high)


def _middle(draws: NDArray[np.float64], confidence: float) -> tuple[float, float]:
    """Percentiles of the draws that are defined."""
    known = draws[~np.isnan(draws)]
    if not known.size:
        return np.nan, np.nan
    low, high = np.quantile(known, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def _correlation(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pearson's correlation over the last axis: of ranks, Spearman's. NaN where one is constant."""
    x, y = (part - part.mean(axis=-1, keepdims=True) for part in (x, y))
    size = np.sqrt((x**2).sum(axis=-1) * (y**2).sum(axis=-1))
    product = (x * y).sum(axis=-1)
    return np.divide(product, size, out=np.full(size.shape, np.nan), where=size > 0)
