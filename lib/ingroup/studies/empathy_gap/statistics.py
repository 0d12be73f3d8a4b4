"""From ratings (perceiver, experiencer, event) to the paper's matrices and the empathy gap.

Section 3.4 of Hou et al.: the cells' means over events are M0, its z-scores M; delta is the mean of
M over the pairs of one group, less the mean over the others. Ratings are in points of the scale,
NaN where there is none; the first perceiver and experiencer is "a person", who is in no group.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from ingroup.stats.crossed import (
    Effect,
    own_group,
    own_group_by_group,
    own_group_of_names,
    relations,
)
from ingroup.stats.effects import bootstrap_interval
from ingroup.stats.paired import TINY, PairedTest, nan_mean, paired_test
from ingroup.stats.permutation import checked, permutation_test

Exclusion = Literal["listwise", "pairwise"]
# A row of `gap`, in the order of the table.
GAP_COLUMNS = (
    "flat",
    "events",
    "delta",
    "low",
    "high",
    "null_low",
    "null_high",
    "p_two_sided",
    "p_least",
    "p_groups",
    "p_groups_least",
    "delta_released",
    "null_low_released",
    "null_low_spread",
    "null_high_released",
    "null_high_spread",
)
RELEASED = {"decimals": 2, "separate": True}  # how the released code makes `gap_matrix`


def exclude(values: np.ndarray, rule: Exclusion = "listwise") -> np.ndarray:
    """The ratings of the events that are kept.

    "listwise" is the paper's rule (footnote 5, appendix C.1): an event without a rating in any cell
    is left out of all cells, so that all rest on the same events. "pairwise": only the missing
    ratings are left out, and an event goes only if no cell has a rating of it. ValueError where no
    event is left.
    """
    missing = np.isnan(values)
    lost = (missing.any if rule == "listwise" else missing.all)(axis=(0, 1))
    if missing.all():
        raise ValueError(f"none of the {lost.size} events has a rating in any cell")
    if lost.all():
        if never := np.count_nonzero(missing.all(axis=2)):
            cells = f"{never} of {missing[..., 0].size} cells have no rating of any event"
            raise ValueError(f"{cells}: ask or record them, or name other CATEGORIES")
        raise ValueError(f"all {lost.size} events lack an answer: EXCLUSION=pairwise keeps others")
    return values[:, :, ~lost]


def cell_means(values: np.ndarray, decimals: int | None = None) -> np.ndarray:
    """M0: mean rating of each cell over the events that it has, on the scale of the prompt.

    Rows are perceivers, as in Figure 2. The released code rounds to 2 `decimals`. ValueError for a
    cell without a rating.
    """
    if (empty := np.argwhere(np.isnan(values).all(axis=2))).size:
        raise ValueError("the cell of perceiver {} and experiencer {} is empty".format(*empty[0]))
    means = np.nanmean(values, axis=2)
    if decimals is None:
        return means
    # Python's round, as released: of 2.675, which is just below, it makes 2.67; np.round 2.68.
    return np.reshape([round(mean, decimals) for mean in means.ravel().tolist()], means.shape)


def zscore(matrix: ArrayLike) -> np.ndarray:
    """z-scores over all cells: M = (M0 - mean(M0)) / std(M0), section 3.4.

    The standard deviation is the population's (ddof 0), as in the released code. ValueError where
    all cells have the same value.
    """
    matrix = np.asarray(matrix, dtype=float)
    if is_flat(matrix):
        raise ValueError(f"z-scores need cells that differ, found {matrix[0, 0]:g} in all of them")
    return stats.zscore(matrix, axis=None)


def is_flat(matrix: np.ndarray) -> bool:
    """Whether no cell differs from any other, beyond rounding: there is nothing to standardise."""
    return bool(np.ptp(matrix) <= 1e-12 * np.abs(matrix).max())


def cells(values: np.ndarray, names: Sequence[str]) -> pd.DataFrame:
    """The matrices M0 and M as a table: ``perceiver``, ``experiencer``, ``mean`` and ``z``.

    One row a cell, row by row, of `values` after exclusion, whose identities are `names`; where a
    matrix is flat all its z-scores are 0. ``mean_released`` and ``z_released`` are of the rounded
    means of the released code.
    """
    index = pd.MultiIndex.from_product([names, names], names=["perceiver", "experiencer"])
    table = pd.DataFrame(index=index)
    for decimals, suffix in ((None, ""), (RELEASED["decimals"], "_released")):
        means = cell_means(values, decimals)
        z = np.zeros_like(means) if is_flat(means) else zscore(means)
        table[f"mean{suffix}"], table[f"z{suffix}"] = means.ravel(), z.ravel()
    return table.reset_index()


def gap_matrix(
    values: np.ndarray, exclusion: Exclusion = "listwise", decimals: int | None = None,
    separate: bool = False,
) -> np.ndarray:  # fmt: skip
    """z-scores (n, n) for the empathy gap delta, without "a person", of ratings before exclusion.

    In the paper's text M is z-scored with "a person", whom delta then leaves out (footnote 7). The
    released code behind Table 2 (`RELEASED`) drops "a person" first (`separate`), then excludes
    events, rounds the cell means to `decimals` and z-scores what is left: its delta has another
    standard deviation and may have other events. Raises as `exclude`, `cell_means`, `zscore`.
    """
    if separate:
        return zscore(cell_means(exclude(values[1:, 1:], exclusion), decimals))
    return zscore(cell_means(exclude(values, exclusion), decimals))[1:, 1:]


def same_group(groups: Sequence[str]) -> np.ndarray:
    """Which pairs of identities share one of `groups`: bool, (n, n), True on the diagonal."""
    groups = np.asarray(groups, dtype=object)
    return groups[:, None] == groups


def by_group(matrix: np.ndarray, same: np.ndarray) -> np.ndarray:
    """Mean of the cells of each pair of groups, (groups, groups), in-group cells on the diagonal.

    `same` is from `same_group`; the order of the groups is that of no list.
    """
    members = np.unique(same, axis=0).astype(float)
    members /= members.sum(axis=1, keepdims=True)
    return members @ matrix @ members.T


def empathy_gap(matrix: ArrayLike, same: ArrayLike) -> float:
    """delta = mean(matrix[same]) - mean(matrix[~same]) (section 3.4), in the unit of the matrix.

    `matrix` (n, n) is from `gap_matrix`, `same` from `same_group`; raises as
    :func:`ingroup.stats.permutation.checked`.
    """
    matrix, same = checked(matrix, same)
    return float(matrix[same].mean() - matrix[~same].mean())


def by_kind(values: np.ndarray, same: np.ndarray) -> dict[str, PairedTest]:
    """What pairs of one group get beyond those of two, in points: of one name, and of two names.

    delta takes "a Latina" with herself and with "a Latino" as one kind of pair, and a group of many
    names that is rated high by all as one that favours itself. Here each event k is regressed on
    both kinds and on a level for each perceiver i and each experiencer j, by least squares::

        x_ijk = perceiver_ik + experiencer_jk + one_k [i = j] + two_k [same_ij, i != j] + rest

    and ``one name`` and ``two names`` are t-tests of one_k and two_k over events. `values` (n, n,
    events) are left by `exclude`, without "a person"; an event that lacks so many cells that it
    tells nothing counts for nothing. Where each group has one name, there is but ``one name``, and
    its difference is delta in points. Checked against statsmodels and what was put in. Where a
    model answers all events alike, these are no sample: statistic, interval, p and least are NaN.

    The test is for *these* names and pairs of groups. Where what a pair of groups gets varies from
    pair to pair (SD 1, events' noise 1, 12 events) and no group favours itself, it rejects at 0.05
    in 0.50 to 0.56 of the cases, and in 0.88 for two names of race (``make calibration``). For
    names or groups like these, see :func:`ingroup.stats.crossed.own_group_of_names` and
    :func:`~ingroup.stats.crossed.own_group`.
    """
    n, one = len(same), np.eye(len(same), dtype=bool)
    kinds = {"one name": one, "two names": same & ~one}
    kinds = {kind: pairs.ravel() for kind, pairs in kinds.items() if pairs.any()}
    levels = np.repeat(one, n, axis=0), np.tile(one, (n, 1))
    terms = np.column_stack([*kinds.values(), *levels]).astype(float)
    found = []
    for ratings in np.moveaxis(values, 2, 0).reshape(-1, n * n):
        there = ~np.isnan(ratings)
        weights, _, rank, _ = np.linalg.lstsq(terms[there], ratings[there])
        found.append(weights if rank == 2 * n - 1 + len(kinds) else weights * np.nan)
    tests = map(_unless_alike, np.transpose(found))
    return dict(zip(kinds, tests, strict=False))


def _unless_alike(by_event: np.ndarray) -> PairedTest:
    """Test the effects of events against 0, unless all are the same."""
    test = paired_test(by_event)
    if test.n < 2 or np.nanmax(by_event) - np.nanmin(by_event) > TINY:
        return test
    return test._replace(statistic=np.nan, pvalue=np.nan, low=np.nan, high=np.nan, least=np.nan)


def gap_of_these(values: np.ndarray, groups: Sequence[str]) -> PairedTest:
    """Test the gap of a category for these names and groups, events being a sample.

    Parameters
    ----------
    values : ndarray, (n, n, events)
        Ratings left by `exclude`, without "a person".
    groups : sequence of str
        The group of each of the n identities.

    Returns
    -------
    PairedTest
        A t-test over the effects of `own_by_event`. Where a model answers all events alike, these
        are no sample: statistic, interval and p are NaN.

    Raises
    ------
    ValueError
        Where there are fewer than 3 groups, or no event has ratings of all pairs of groups.
    """
    by_event = own_by_event(values, groups)
    if np.isnan(by_event).all():
        raise ValueError("no event has ratings of all pairs of groups, expected at least one")
    return _unless_alike(by_event)


def own_by_event(values: np.ndarray, groups: Sequence[str]) -> np.ndarray:
    """Own-group effect of each event alone: the estimate that `gap_like_these` calls "own group".

    Parameters
    ----------
    values, groups
        As in `gap_of_these`.

    Returns
    -------
    ndarray, (events,)
        Points of the scale, NaN for an event that lacks a pair of groups.
    """
    means = _pair_means(values, groups)
    by_event = np.full(means.shape[2], np.nan)
    complete = np.isfinite(means).all(axis=(0, 1))
    for event in np.flatnonzero(complete):
        by_event[event] = own_group(means[..., event]).estimate
    return by_event


def gap_like_these(
    values: np.ndarray, groups: Sequence[str], clusters: Sequence[str] | None = None
) -> dict[str, Effect]:
    """Test the gap of a category for names and groups like these, in points of the scale.

    Parameters
    ----------
    values : ndarray, (n, n, events)
        Ratings left by `exclude`, without "a person". For settings like these, the last axis holds
        a matrix of each setting instead: `cell_means`, or `gap_matrix` where scales differ.
    groups : sequence of str
        The group of each of the n identities.
    clusters : sequence of str, optional
        The cluster of each identity, where each group has one identity
        (:func:`ingroup.studies.empathy_gap.stimuli.clusters`).

    Returns
    -------
    dict of str to Effect
        "own group" and "own group, by group" of the means by pair of groups, a pair being a random
        draw (:func:`ingroup.stats.crossed.own_group`, `own_group_by_group`). With clusters also
        "beyond clusters", what an own group has beyond the groups of its cluster. Where groups
        have several names also "one name" and "two names", for these groups and names like these
        (`own_group_of_names`).

    Raises
    ------
    ValueError
        Where a pair of identities has no rating, or there are fewer than 3 groups.
    """
    means = _pair_means(values, groups)
    effects = {
        "own group": own_group(means),
        "own group, by group": own_group_by_group(means),
    }
    if clusters is not None:
        effects["beyond clusters"] = own_group(means, same_group(clusters))
    if len(means) < len(values):
        effects |= own_group_of_names(values, groups)
    return effects


def relationship_sd(values: np.ndarray, groups: Sequence[str]) -> float:
    """Estimate how much what two groups feel for each other varies beyond both groups' levels.

    Of the means by pair of groups, with n groups and the residuals r of the pairs of two groups
    (:func:`ingroup.stats.crossed.relations`)::

        sqrt(sum(r**2) / (n**2 - 3 n + 1))

    Parameters
    ----------
    values : ndarray, (n, n, events)
        As in `gap_like_these`.
    groups : sequence of str
        The group of each of the n identities; at least 3 groups.

    Returns
    -------
    float
        A standard deviation in points of the scale.
    """
    matrix = nan_mean(_pair_means(values, groups), axis=2)
    n = len(matrix)
    squares = np.nansum(relations(matrix).relationships ** 2)
    return float(np.sqrt(squares / (n**2 - 3 * n + 1)))


def _pair_means(values: np.ndarray, groups: Sequence[str]) -> np.ndarray:
    """Mean rating of each pair of groups in each event: (groups, groups, events)."""
    labels = pd.unique(np.asarray(groups, dtype=object))
    members = [np.flatnonzero(np.asarray(groups) == label) for label in labels]
    means = np.full((len(labels), len(labels), values.shape[2]), np.nan)
    for row, perceivers in enumerate(members):
        for column, experiencers in enumerate(members):
            block = values[np.ix_(perceivers, experiencers)]
            means[row, column] = nan_mean(block, axis=(0, 1))
    return means


def gap(
    values: np.ndarray, same: np.ndarray, exclusion: Exclusion = "listwise",
    n_resamples: int = 10_000, rng: np.random.Generator | None = None,
) -> dict[str, Any]:  # fmt: skip
    """One row of Table 2: delta and its two intervals, which answer two questions.

    `values` are ratings before exclusion, `same` is without "a person"; `rng` draws `n_resamples`
    arrangements and then the bootstrap.

    ``flat`` and ``events`` (left); where flat all else is NaN. ``delta`` with ``low`` and ``high``
    (:func:`ingroup.stats.effects.bootstrap_interval`), ``null_low``, ``null_high``, ``p_two_sided``
    (:func:`ingroup.stats.permutation.permutation_test`) and ``p_least``, the smallest that p can
    be. That test takes names of one group as unrelated: where they behave alike and no group
    favours itself, it rejects at 0.05 for race in 0.77 of the cases (``make calibration``).
    ``p_groups`` and ``p_groups_least`` are of the same test on the matrix `by_group`, with whole
    groups in random order. ``delta_released``, ``null_low_released`` and ``null_high_released`` are
    those of the released way, which Table 2 prints; draws of others may move the ends by
    ``null_low_spread`` and ``null_high_spread``. They are NaN where the released means are flat.
    """
    left = exclude(values, exclusion)
    row = dict.fromkeys(GAP_COLUMNS, np.nan)
    # Where only "a person" differs from the others, there is nothing to test among these.
    row |= {"flat": is_flat(cell_means(left)[1:, 1:]), "events": left.shape[2]}
    if row["flat"]:
        return row
    matrix = gap_matrix(values, exclusion)
    test = permutation_test(matrix, same, n_resamples, rng)
    interval = bootstrap_interval(left, same, rng=rng)
    row |= {"delta": test.statistic, "low": interval.low, "high": interval.high}
    row |= dict(zip(("null_low", "null_high"), test.null_interval, strict=True))
    row |= {"p_two_sided": test.pvalue, "p_least": test.least}
    if len(groups := by_group(matrix, same)) < len(matrix):  # else a group is a name
        test = permutation_test(groups, np.eye(len(groups)), n_resamples, rng)
    row |= {"p_groups": test.pvalue, "p_groups_least": test.least}

    # "a person" alone may differ, or the second decimal may hide what differs.
    released = cell_means(exclude(values[1:, 1:], exclusion), RELEASED["decimals"])
    if is_flat(released):
        return row
    matrix = gap_matrix(values, exclusion, **RELEASED)
    test = permutation_test(matrix, same, n_resamples, rng)
    row["delta_released"] = test.statistic
    ends = zip(("low", "high"), test.null_interval, test.null_spread(), strict=True)
    for end, at, spread in ends:
        row |= {f"null_{end}_released": at, f"null_{end}_spread": spread}
    return row
