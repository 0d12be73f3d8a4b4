"""Tables over all blocks of a run, a block being one model in one setting and category.

The functions of `statistics` take the ratings of one block. The functions of this module apply them
to all blocks of a run, and put the results into one table.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping

import numpy as np
import pandas as pd

from ingroup.inference import Job
from ingroup.notebook import by_key
from ingroup.parsing import Rule
from ingroup.studies.empathy_gap import answers, statistics, stimuli
from ingroup.studies.empathy_gap.answers import BlockKey, Ratings
from ingroup.studies.empathy_gap.statistics import Exclusion

KEY = ["model", "setting", "category"]  # the columns that tell blocks apart

_LOST = ["events", "events_lost", "percent_of_events", "percent_of_answers"]
_OVER_SETTINGS = ["settings", "estimate", "low", "high", "p", "least", "greatest", "reason"]


def stack_blocks(tables: Mapping[BlockKey, pd.DataFrame]) -> pd.DataFrame:
    """Put the tables of blocks below one another.

    Parameters
    ----------
    tables : mapping
        The table of each block.

    Returns
    -------
    DataFrame
        The columns `KEY`, then the columns of the tables. Each row keeps its index. No rows
        without a table.
    """
    if not tables:
        return pd.DataFrame(columns=KEY)
    return pd.concat(tables, names=KEY).reset_index(KEY)


def cells(
    ratings: Mapping[BlockKey, Ratings], exclusion: Exclusion, stores: Mapping[BlockKey, str]
) -> pd.DataFrame:
    """Make one table of the matrices of all blocks, with the address of each cell's answers.

    Parameters
    ----------
    ratings : mapping
        The ratings of each block, before exclusion.
    exclusion : {"listwise", "pairwise"}
        See `statistics.exclude`.
    stores : mapping
        The name of the folder with each block's answers.

    Returns
    -------
    DataFrame
        `KEY`, the columns of `statistics.cells`, ``store``, and ``first_trial``, the number of the
        cell's first answer in this store.
    """
    tables = {}
    for key, of_block in ratings.items():
        _, _, category = key
        names = stimuli.identities(category).identity
        values = of_block.values
        kept = statistics.exclude(values, exclusion)
        table = statistics.cells(kept, names)

        # Events are the fastest factor, so a cell's answers follow one another, one per event.
        n_events = values.shape[2]
        table["store"] = stores[key]
        table["first_trial"] = n_events * np.arange(len(table))
        tables[key] = table
    return stack_blocks(tables).reset_index(drop=True)


def losses(ratings: Mapping[BlockKey, Ratings], exclusion: Exclusion) -> pd.DataFrame:
    """Count the events and answers that each block loses: Table 6.

    Parameters
    ----------
    ratings : mapping
        The ratings of each block, before exclusion.
    exclusion : {"listwise", "pairwise"}
        See `statistics.exclude`.

    Returns
    -------
    DataFrame
        `KEY` and the columns of :func:`~.statistics.lost_events`; no rows without a block.
    """
    rows: dict[tuple, dict] = {}
    for key, of_block in ratings.items():
        rows[key] = statistics.lost_events(of_block.values, exclusion)

    table = by_key(rows, KEY)
    columns = [*KEY, *_LOST]
    return table.reindex(columns=columns)


def least_rated_pairs(ratings: Mapping[BlockKey, Ratings]) -> pd.DataFrame:
    """Find the pairs of identities that lack the most ratings, in each block that lacks any.

    Parameters
    ----------
    ratings : mapping
        The ratings of each block, before exclusion.

    Returns
    -------
    DataFrame
        `KEY` and the columns of :func:`~.statistics.least_rated_pairs`; no rows where every pair
        has all its ratings.
    """
    tables = {}
    for key, of_block in ratings.items():
        _, _, category = key
        names = stimuli.identities(category).identity
        tables[key] = statistics.least_rated_pairs(of_block.values, names)
    return stack_blocks(tables)


def gaps_by_round(
    jobs: Iterable[Job], keys: Container[BlockKey], rule: Rule, exclusion: Exclusion
) -> pd.DataFrame:
    """Compute the empathy gap of each round, for the blocks with several rounds.

    Parameters
    ----------
    jobs : iterable of Job
        Jobs with stored answers.
    keys : container
        The blocks that are analysed. Other blocks are left out.
    rule : {"sound", "released"}
        How free text is parsed.
    exclusion : {"listwise", "pairwise"}
        See `statistics.exclude`.

    Returns
    -------
    DataFrame
        `KEY`, ``round`` and ``delta``, NaN for a round without a gap.
    """
    rows = []
    for key, rounds in answers.by_block(jobs).items():
        if key not in keys or len(rounds) == 1:
            continue

        _, _, category = key
        # The first identity is "a person", who is in no group.
        named = stimuli.identities(category)[1:]
        same = statistics.same_group(named.group)
        for job in rounds:
            of_round = answers.load(job, rule)
            delta = statistics.delta_or_nan(of_round.values, same, exclusion)
            row = [*key, job.round, delta]
            rows.append(row)

    columns = [*KEY, "round", "delta"]
    return pd.DataFrame(rows, columns=columns)


def ranges_of_gaps(by_round: pd.DataFrame) -> pd.DataFrame:
    """Compute how much the gap of each block varies from round to round.

    Parameters
    ----------
    by_round : DataFrame
        From `gaps_by_round`.

    Returns
    -------
    DataFrame
        Index `KEY`; the ``count`` of rounds, the ``min``, ``mean`` and ``max`` of their gaps, and
        ``range``, the largest minus the smallest. The widest range comes first.
    """
    blocks = by_round.groupby(KEY, sort=False)
    ranges = blocks.delta.agg(["count", "min", "mean", "max"])
    ranges["range"] = ranges["max"] - ranges["min"]
    return ranges.sort_values(
        "range",
        ascending=False,
        kind="stable",  # blocks of equal ranges stay in the order of the run
    )


def mean_distributions(jobs: Iterable[Job]) -> pd.DataFrame:
    """Average the probability of each number of the scale over the prompts of each block.

    Parameters
    ----------
    jobs : iterable of Job
        Scored jobs, with stored answers.

    Returns
    -------
    DataFrame
        `KEY` and the columns of :func:`~.answers.mean_distribution`.
    """
    tables = {}
    for key, jobs_of_block in answers.by_block(jobs).items():
        # Scored answers have one round.
        job = jobs_of_block[0]
        tables[key] = answers.mean_distribution(job)
    return stack_blocks(tables)


def over_settings(ratings: Mapping[BlockKey, Ratings], exclusion: Exclusion) -> pd.DataFrame:
    """Estimate the own-group effect of each model and category for settings like these.

    Parameters
    ----------
    ratings : mapping
        The ratings of each block, before exclusion.
    exclusion : {"listwise", "pairwise"}
        See `statistics.exclude`.

    Returns
    -------
    DataFrame
        ``model``, ``category`` and the columns of :func:`~.statistics.over_settings`.
    """
    values_of = defaultdict(list)
    for key, of_block in ratings.items():
        model, _, category = key
        values_of[model, category].append(of_block.values)

    rows: dict[tuple, dict] = {}
    for (model, category), values_by_setting in values_of.items():
        groups = stimuli.identities(category).group[1:]
        rows[model, category] = statistics.over_settings(values_by_setting, groups, exclusion)

    names = ["model", "category"]
    table = by_key(rows, names)
    # A run of one setting has reasons alone, and its table still has all columns.
    columns = [*names, *_OVER_SETTINGS]
    return table.reindex(columns=columns)
