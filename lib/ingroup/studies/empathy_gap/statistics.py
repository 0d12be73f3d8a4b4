"""The paper's matrices and the empathy gap, from ratings (perceiver, experiencer, event).

Section 3.4 of Hou et al.: the cells' means over events are M0, its z-scores M. Delta is the mean of
M over the pairs of one group, less the mean over the other pairs. Ratings are in points of the
scale, NaN where one is missing. The first perceiver and experiencer is "a person", who is in no
group.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from ingroup.families import corrected, families
from ingroup.stats.crossed import (
    ONE_BEYOND_TWO,
    Effect,
    own_group,
    own_group_by_group,
    own_group_of_names,
    relations,
)
from ingroup.stats.effects import bootstrap_interval
from ingroup.stats.paired import (
    TINY,
    PairedTest,
    cell_pvalues,
    cells_to_show,
    nan_mean,
    paired_test,
)
from ingroup.stats.permutation import checked_matrix, permutation_test

Exclusion = Literal["listwise", "pairwise"]
SIDES = ("perceiver", "experiencer")  # of the matrices: rows and columns
RULES = ("released", "bonferroni", "holm")  # how cells are called significant, first as released
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
RELEASED: dict[str, Any] = {"decimals": 2, "separate": True}  # the released code's `gap_matrix`


def exclude(values: np.ndarray, rule: Exclusion = "listwise") -> np.ndarray:
    """Leave out the events that lack ratings.

    Parameters
    ----------
    values : ndarray, (perceivers, experiencers, events)
        Ratings in points, NaN where a rating is missing.
    rule : {"listwise", "pairwise"}
        "listwise" is the paper's rule (footnote 5, appendix C.1). An event without a rating in any
        cell is left out of all cells, so that all rest on the same events. "pairwise" leaves out
        only the missing ratings, and an event only where no cell has a rating of it.

    Returns
    -------
    ndarray, (perceivers, experiencers, kept events)
        The ratings of the events that are kept.

    Raises
    ------
    ValueError
        Where no event is left. The message tells how many events or cells have no rating.
    """
    missing = np.isnan(values)
    if missing.all():
        n_events = values.shape[2]
        raise ValueError(f"none of the {n_events} events has a rating in any cell")

    is_lost = _is_lost(missing, rule)
    if is_lost.all():
        raise ValueError(_why_all_are_lost(missing))
    return values[:, :, ~is_lost]


def _is_lost(missing: np.ndarray, rule: Exclusion) -> np.ndarray:
    """Mark the events that miss the rating of any cell (listwise) or of all (pairwise)."""
    over_cells = np.any if rule == "listwise" else np.all
    return over_cells(missing, axis=(0, 1))


def _why_all_are_lost(missing: np.ndarray) -> str:
    """Say why no event is kept, and which parameter keeps some."""
    is_empty = missing.all(axis=2)
    n_empty = np.count_nonzero(is_empty)
    if n_empty:
        cells = f"{n_empty} of {is_empty.size} cells have no rating of any event"
        return f"{cells}: ask or record them, or name other CATEGORIES"

    n_events = missing.shape[2]
    return f"all {n_events} events lack an answer: EXCLUSION=pairwise keeps others"


def cell_means(values: np.ndarray, decimals: int | None = None) -> np.ndarray:
    """Average the ratings of each cell over events: the matrix M0.

    Parameters
    ----------
    values : ndarray, (perceivers, experiencers, events)
        Ratings in points, NaN where a rating is missing.
    decimals : int, optional
        To how many decimals the means are rounded. The released code rounds to 2.

    Returns
    -------
    ndarray, (perceivers, experiencers)
        Means on the scale of the prompt. Rows are perceivers, as in Figure 2.

    Raises
    ------
    ValueError
        For a cell without a rating. The message gives the row and the column of the first one.
    """
    empty = np.argwhere(np.isnan(values).all(axis=2))
    if len(empty):
        perceiver, experiencer = empty[0]
        cell = f"perceiver {perceiver} and experiencer {experiencer}"
        raise ValueError(f"the cell of {cell} is empty")

    means = np.nanmean(values, axis=2)
    if decimals is None:
        return means

    # The released code uses Python's round. The float 2.675 lies just below 2.675: round gives
    # 2.67, and np.round 2.68.
    rounded = [round(mean, decimals) for mean in means.ravel().tolist()]
    return np.reshape(rounded, means.shape)


def zscore(matrix: ArrayLike) -> np.ndarray:
    """Standardise a matrix over all its cells: M = (M0 - mean(M0)) / std(M0), section 3.4.

    Parameters
    ----------
    matrix : array_like, two-dimensional
        The cell means M0.

    Returns
    -------
    ndarray, of the same shape
        The z-scores. The standard deviation is the population's (ddof 0), as in the released code.

    Raises
    ------
    ValueError
        Where all cells have the same value, which the message gives.
    """
    matrix = np.asarray(matrix, dtype=float)
    if is_flat(matrix):
        raise ValueError(f"z-scores need cells that differ, found {matrix[0, 0]:g} in all of them")
    return stats.zscore(matrix, axis=None)


def is_flat(matrix: np.ndarray) -> bool:
    """Tell whether no cell differs from any other, beyond rounding.

    Such a matrix has no z-scores.

    Parameters
    ----------
    matrix : ndarray
        Numbers without NaN.

    Returns
    -------
    bool
        True if the largest and the smallest cell differ by no more than rounding.
    """
    rounding = 1e-12 * np.abs(matrix).max()
    return bool(np.ptp(matrix) <= rounding)


def cells(values: np.ndarray, names: Sequence[str]) -> pd.DataFrame:
    """Make one table of the matrices M0 and M.

    Parameters
    ----------
    values : ndarray, (n, n, events)
        Ratings after exclusion.
    names : sequence of str
        The n identities.

    Returns
    -------
    DataFrame
        One row per cell, row by row: ``perceiver``, ``experiencer``, ``mean`` and ``z``. Then
        ``mean_released`` and ``z_released``, which come from the rounded means of the released
        code. Where a matrix is flat, all its z-scores are 0.
    """
    index = pd.MultiIndex.from_product([names, names], names=SIDES)
    table = pd.DataFrame(index=index)
    decimals_of = {"": None, "_released": RELEASED["decimals"]}
    for suffix, decimals in decimals_of.items():
        means = cell_means(values, decimals)
        z = np.zeros_like(means)
        if not is_flat(means):
            z = zscore(means)

        table[f"mean{suffix}"] = means.ravel()
        table[f"z{suffix}"] = z.ravel()
    return table.reset_index()


def gap_matrix(
    values: np.ndarray,
    exclusion: Exclusion = "listwise",
    decimals: int | None = None,
    separate: bool = False,
) -> np.ndarray:
    """Compute the z-scores of the named identities, whose empathy gap is delta.

    Parameters
    ----------
    values : ndarray, (1 + n, 1 + n, events)
        Ratings before exclusion, "a person" first.
    exclusion : {"listwise", "pairwise"}
        See `exclude`.
    decimals : int, optional
        To how many decimals the cell means are rounded.
    separate : bool
        Whether "a person" is dropped before events are excluded and cells are z-scored. Otherwise
        the z-scores are computed with "a person", whose row and column are dropped last.

    Returns
    -------
    ndarray, (n, n)
        The z-scores, without "a person".

    Raises
    ------
    ValueError
        As `exclude`, `cell_means` and `zscore`.

    Notes
    -----
    In the paper's text, M is z-scored with "a person", which delta then leaves out (footnote 7).
    The released code behind Table 2 (`RELEASED`) drops "a person" first (`separate`). It then
    excludes events, rounds the cell means to 2 `decimals` and z-scores the rest. So its delta has
    another standard deviation and may have other events.
    """
    if separate:
        named = exclude(values[1:, 1:], exclusion)
        return zscore(cell_means(named, decimals))

    kept = exclude(values, exclusion)
    z = zscore(cell_means(kept, decimals))
    return z[1:, 1:]


def same_group(groups: Sequence[str]) -> np.ndarray:
    """Mark the pairs of identities that share a group.

    Parameters
    ----------
    groups : sequence of str
        The group of each of n identities.

    Returns
    -------
    ndarray of bool, (n, n)
        True for a pair of one group, the diagonal included.
    """
    names = np.asarray(groups, dtype=object)
    return names[:, None] == names


def matrix_of_groups(matrix: np.ndarray, same: np.ndarray) -> np.ndarray:
    """Average a matrix of identities into a matrix of groups, one cell per pair of groups.

    Parameters
    ----------
    matrix : ndarray, (n, n)
        A value for each pair of identities.
    same : ndarray of bool, (n, n)
        From `same_group`.

    Returns
    -------
    ndarray, (groups, groups)
        Means, with the means of in-group cells on the diagonal. The groups stand in the order of
        ``np.unique``, not in the order of any list.
    """
    # Members of one group have equal rows in `same`, so each distinct row marks one group.
    members = np.unique(same, axis=0)
    # The weights of a group's members are equal and sum to 1, so the products below are means.
    weights = members / members.sum(axis=1, keepdims=True)
    return weights @ matrix @ weights.T


def empathy_gap(matrix: ArrayLike, same: ArrayLike) -> float:
    """Compute delta = mean(matrix[same]) - mean(matrix[~same]), section 3.4.

    Parameters
    ----------
    matrix : array_like, (n, n)
        From `gap_matrix`.
    same : array_like of bool, (n, n)
        From `same_group`.

    Returns
    -------
    float
        In the unit of the matrix.

    Raises
    ------
    ValueError
        As :func:`ingroup.stats.permutation.checked_matrix`.
    """
    matrix, same = checked_matrix(matrix, same)
    in_group = matrix[same].mean()
    out_group = matrix[~same].mean()
    return float(in_group - out_group)


def effects_by_kind(values: np.ndarray, same: np.ndarray) -> dict[str, PairedTest]:
    """Test by how much pairs within a group exceed pairs of two groups, by kind of pair.

    A pair within a group is one name twice, or two names.

    Parameters
    ----------
    values : ndarray, (n, n, events)
        Ratings left by `exclude`, without "a person".
    same : ndarray of bool, (n, n)
        From `same_group`.

    Returns
    -------
    dict of str to PairedTest
        ``one name``, ``two names`` and ``one name beyond two names``, which is their difference:
        t-tests over events of the effects in points. Where each group has one name, there is only
        ``one name``, and its difference is delta in points. Where a model answers all events
        alike, the events are not a sample, so statistic, p, interval and ``least`` are NaN.

    Notes
    -----
    delta counts "a Latina" with herself and with "a Latino" as one kind of pair. A group of many
    names that rate everybody high also looks to delta like one that favours itself. Here each event
    k is regressed by least squares on both kinds of pair, and on a level for each perceiver i and
    each experiencer j::

        x_ijk = perceiver_ik + experiencer_jk + one_k [i = j] + two_k [same_ij, i != j] + rest

    The tests are of one_k, of two_k and of one_k - two_k. An event is left out where it lacks too
    many cells for these effects to be estimated. Checked against statsmodels and against known
    effects.

    The test is for *these* names and pairs of groups. Let the ratings between two groups vary from
    pair to pair (SD 1, events' noise 1, 12 events) while no group favours itself. Then it rejects
    at 0.05 in 0.50 to 0.56 of the cases, and in 0.88 for two names of race (``make calibration``).
    The difference of one name and two names rejects in 0.32 where pairs of names vary (SD 0.5).
    For names or groups like these, see :func:`ingroup.stats.crossed.own_group_of_names` and
    :func:`~ingroup.stats.crossed.own_group`.
    """
    is_one_name = np.eye(len(same), dtype=bool)
    is_two_names = same & ~is_one_name
    kinds = {"one name": is_one_name}
    if is_two_names.any():
        kinds["two names"] = is_two_names

    # The effects are (events, kinds); turned, each kind has its numbers by event.
    effects = _effects_of_kinds(values, list(kinds.values()))
    by_event = dict(zip(kinds, effects.T, strict=True))
    if is_two_names.any():
        by_event[ONE_BEYOND_TWO] = by_event["one name"] - by_event["two names"]

    tests = {}
    for kind, effects_of_kind in by_event.items():
        tests[kind] = _unless_alike(effects_of_kind)
    return tests


def _effects_of_kinds(values: np.ndarray, kinds: Sequence[np.ndarray]) -> np.ndarray:
    """Estimate the effects of the kinds of pair in each event, as `effects_by_kind` explains.

    The result is (events, kinds). An event that lacks too many cells has NaN.
    """
    # A row of the design is a cell, row by row; its columns are the kinds, the perceivers and the
    # experiencers.
    n = len(values)
    of_kinds = [kind.ravel() for kind in kinds]
    perceivers = np.repeat(np.eye(n), n, axis=0)
    experiencers = np.tile(np.eye(n), (n, 1))
    design = np.column_stack([*of_kinds, perceivers, experiencers])
    # The perceivers' levels and the experiencers' both add up to the mean, so one column is spare.
    full_rank = design.shape[1] - 1

    effects = []
    # One row per event, with the cells in the order of the design.
    for ratings in np.moveaxis(values, 2, 0).reshape(-1, n * n):
        is_rated = ~np.isnan(ratings)
        weights, _, rank, _ = np.linalg.lstsq(design[is_rated], ratings[is_rated])
        # Below full rank, least squares would divide one effect between terms.
        if rank < full_rank:
            weights = np.full_like(weights, np.nan)
        effects.append(weights[: len(kinds)])
    return np.array(effects)


def _unless_alike(by_event: np.ndarray) -> PairedTest:
    """Test whether the mean effect over events is 0.

    Statistic, p, interval and least are NaN if all effects are the same.
    """
    test = paired_test(by_event)
    if test.n < 2:
        return test

    spread = np.nanmax(by_event) - np.nanmin(by_event)
    if spread > TINY:
        return test
    # `paired_test` gives these the p of a sign test, as if the events were a sample.
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
        A t-test over the effects of `own_group_by_event`. Where a model answers all events alike,
        its effects are not a sample. Statistic, interval, p and least are NaN then.

    Raises
    ------
    ValueError
        Where there are fewer than 3 groups, or no event has ratings of all pairs of groups.
    """
    by_event = own_group_by_event(values, groups)
    if np.isnan(by_event).all():
        raise ValueError("no event has ratings of all pairs of groups, expected at least one")
    return _unless_alike(by_event)


def own_group_by_event(values: np.ndarray, groups: Sequence[str]) -> np.ndarray:
    """Estimate the own-group effect of each event alone.

    The effect is the one that `gap_like_these` calls "own group".

    Parameters
    ----------
    values : ndarray, (n, n, events)
        As in `gap_of_these`.
    groups : sequence of str
        As in `gap_of_these`.

    Returns
    -------
    ndarray, (events,)
        Points of the scale, NaN for an event that lacks a pair of groups.
    """
    means = pair_means(values, groups)
    by_event = np.full(means.shape[2], np.nan)
    # `own_group` refuses the matrix of an event that lacks a pair of groups.
    is_complete = np.isfinite(means).all(axis=(0, 1))
    for event in np.flatnonzero(is_complete):
        effect = own_group(means[..., event])
        by_event[event] = effect.estimate
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
        "beyond clusters": by how much ratings of the own group exceed those of the other groups of
        its cluster. Where groups have several names also "one name" and "two names", for these
        groups and names like these (`own_group_of_names`).

    Raises
    ------
    ValueError
        Where a pair of identities has no rating, or there are fewer than 3 groups.
    """
    means = pair_means(values, groups)
    effects = {
        "own group": own_group(means),
        "own group, by group": own_group_by_group(means),
    }
    if clusters is not None:
        # Each group has one identity here, so clusters of identities are clusters of groups.
        effects["beyond clusters"] = own_group(means, same_group(clusters))
    # Where each group has one name, there are no pairs of two names.
    if len(means) < len(values):
        effects |= own_group_of_names(values, groups)
    return effects


def relationship_sd(values: np.ndarray, groups: Sequence[str]) -> float:
    """Estimate how much ratings between two groups vary beyond both groups' levels.

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

    Notes
    -----
    With n groups, and the residuals r of the means by pair of two groups
    (:func:`ingroup.stats.crossed.relations`)::

        sqrt(sum(r**2) / (n**2 - 3 n + 1))
    """
    by_event = pair_means(values, groups)
    matrix = nan_mean(by_event, axis=2)
    residuals = relations(matrix).relationships
    sum_of_squares = np.nansum(residuals**2)
    n = len(matrix)
    df = n**2 - 3 * n + 1
    return float(np.sqrt(sum_of_squares / df))


def pair_means(values: np.ndarray, groups: Sequence[str]) -> np.ndarray:
    """Average the ratings of each pair of groups in each event.

    Parameters
    ----------
    values : ndarray, (n, n, events)
        Ratings in points, NaN where a rating is missing.
    groups : sequence of str
        The group of each of the n identities.

    Returns
    -------
    ndarray, (groups, groups, events)
        Means, NaN for a pair without a rating. The groups keep the order of the identities, unlike
        those of `matrix_of_groups`.
    """
    names = np.asarray(groups, dtype=object)
    labels = pd.unique(names)
    members = [np.flatnonzero(names == label) for label in labels]

    means = np.full((len(labels), len(labels), values.shape[2]), np.nan)
    for row, perceivers in enumerate(members):
        for column, experiencers in enumerate(members):
            block = values[np.ix_(perceivers, experiencers)]
            means[row, column] = nan_mean(block, axis=(0, 1))
    return means


def gap(
    values: np.ndarray,
    same: np.ndarray,
    exclusion: Exclusion = "listwise",
    n_resamples: int = 10_000,
    rng: np.random.Generator | None = None,
) -> dict[str, Any]:
    """Compute one row of Table 2: delta, its interval over events and its null interval.

    Parameters
    ----------
    values : ndarray, (1 + n, 1 + n, events)
        Ratings before exclusion, "a person" first.
    same : ndarray of bool, (n, n)
        From `same_group`, without "a person".
    exclusion : {"listwise", "pairwise"}
        See `exclude`.
    n_resamples : int
        How many arrangements a permutation test draws.
    rng : numpy.random.Generator, optional
        Draws the arrangements, then the bootstrap, then the arrangements of the other tests.

    Returns
    -------
    dict
        One value for each of `GAP_COLUMNS`; all but the first two are NaN where ``flat``.

        ``flat``, ``events``
            Whether the named identities' cell means are all equal, and how many events are kept.
        ``delta``, ``low``, ``high``
            The gap and its interval (:func:`ingroup.stats.effects.bootstrap_interval`).
        ``null_low``, ``null_high``, ``p_two_sided``, ``p_least``
            Of :func:`ingroup.stats.permutation.permutation_test`; the last is the smallest p
            possible.
        ``p_groups``, ``p_groups_least``
            The same test on the matrix `matrix_of_groups`, with whole groups in random order.
        ``delta_released``, ``null_low_released``, ``null_high_released``
            As the released code computes them and Table 2 prints them.
        ``null_low_spread``, ``null_high_spread``
            How far each end of the released interval may differ when others draw the arrangements.
            These five are NaN where the released means are flat.

    Raises
    ------
    ValueError
        As `exclude`, `cell_means` and :func:`ingroup.stats.effects.bootstrap_interval`.

    Notes
    -----
    The test of ``p_two_sided`` takes names of one group as unrelated. Where they behave alike and
    no group favours itself, it rejects at 0.05 for race in 0.77 of the cases
    (``make calibration``).
    """
    kept = exclude(values, exclusion)
    named_means = cell_means(kept)[1:, 1:]
    row = dict.fromkeys(GAP_COLUMNS, np.nan)
    row["flat"] = is_flat(named_means)
    row["events"] = kept.shape[2]
    # Where only "a person" differs from the others, nothing can be tested among the others.
    if row["flat"]:
        return row

    matrix = gap_matrix(values, exclusion)
    test = permutation_test(matrix, same, n_resamples, rng)
    interval = bootstrap_interval(kept, same, rng=rng)
    row["delta"] = test.statistic
    row["low"] = interval.low
    row["high"] = interval.high
    row["null_low"], row["null_high"] = test.null_interval
    row["p_two_sided"] = test.pvalue
    row["p_least"] = test.least

    group_matrix = matrix_of_groups(matrix, same)
    n_groups = len(group_matrix)
    # Where each group has one name, both tests are the same.
    test_of_groups = test
    if n_groups < len(matrix):
        test_of_groups = permutation_test(group_matrix, np.eye(n_groups), n_resamples, rng)
    row["p_groups"] = test_of_groups.pvalue
    row["p_groups_least"] = test_of_groups.least

    return row | _released_gap(values, same, exclusion, n_resamples, rng)


def _released_gap(
    values: np.ndarray,
    same: np.ndarray,
    exclusion: Exclusion,
    n_resamples: int,
    rng: np.random.Generator | None,
) -> dict[str, float]:
    """Compute the columns of `gap` that the released code has. Return {} for flat means."""
    # Means that differ may be equal once they are rounded.
    kept = exclude(values, exclusion)
    means = cell_means(kept, RELEASED["decimals"])
    if is_flat(means):
        return {}

    matrix = gap_matrix(values, exclusion, **RELEASED)
    test = permutation_test(matrix, same, n_resamples, rng)
    low, high = test.null_interval
    low_spread, high_spread = test.null_spread()
    return {
        "delta_released": test.statistic,
        "null_low_released": low,
        "null_low_spread": low_spread,
        "null_high_released": high,
        "null_high_spread": high_spread,
    }


def lost_events(values: np.ndarray, exclusion: Exclusion = "listwise") -> dict[str, float]:
    """Count the events that are left out, and the ratings that are missing: Table 6.

    Parameters
    ----------
    values : ndarray, (perceivers, experiencers, events)
        Ratings before exclusion, NaN where a rating is missing.
    exclusion : {"listwise", "pairwise"}
        See `exclude`.

    Returns
    -------
    dict
        ``events``, ``events_lost``, ``percent_of_events`` and ``percent_of_answers``.
    """
    missing = np.isnan(values)
    is_lost = _is_lost(missing, exclusion)
    return {
        "events": is_lost.size,
        "events_lost": is_lost.sum(),
        "percent_of_events": 100 * is_lost.mean(),
        "percent_of_answers": 100 * missing.mean(),
    }


def least_rated_pairs(values: np.ndarray, names: Sequence[str], n: int = 3) -> pd.DataFrame:
    """Find the pairs of identities that lack the most ratings.

    Parameters
    ----------
    values : ndarray, (perceivers, experiencers, events)
        Ratings before exclusion, NaN where a rating is missing.
    names : sequence of str
        The identities.
    n : int
        How many pairs are returned.

    Returns
    -------
    DataFrame
        ``perceiver``, ``experiencer`` and ``percent_lost``, the largest first; no row where no
        rating is missing.
    """
    missing = np.isnan(values)
    percent = 100 * missing.mean(axis=2)
    pairs = pd.MultiIndex.from_product([names, names], names=SIDES)
    by_pair = pd.Series(percent.ravel(), pairs, name="percent_lost")
    if not missing.any():
        return by_pair.head(0).reset_index()
    return by_pair.nlargest(n).reset_index()


def cell_summary(cells: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Summarise the cells of each block: Tables 3 and 7 to 13.

    Parameters
    ----------
    cells : DataFrame
        From `cells`, with the columns of `by`.
    by : sequence of str
        The columns that name a block.

    Returns
    -------
    DataFrame
        Index `by`; ``mean`` and ``std`` (of the population) of the cell means, ``z_min`` and
        ``z_max``; the same from the rounded means of the released code (``mean_released`` ...).
    """
    blocks = cells.groupby(list(by), sort=False)
    parts = []
    for suffix in ("", "_released"):
        means = blocks[f"mean{suffix}"]
        z = blocks[f"z{suffix}"]
        columns = {
            "mean": means.mean(),
            "std": means.std(ddof=0),
            "z_min": z.min(),
            "z_max": z.max(),
        }
        part = pd.DataFrame(columns)
        parts.append(part.add_suffix(suffix))
    return pd.concat(parts, axis=1)


def with_corrections(gaps: pd.DataFrame) -> pd.DataFrame:
    """Correct the tests of Table 2 by Holm, within a model and setting.

    Parameters
    ----------
    gaps : DataFrame
        ``model``, ``setting``, ``category`` and `GAP_COLUMNS`. A flat block is in no family.

    Returns
    -------
    DataFrame
        With ``p_holm``, ``p_holm_least``, ``p_groups_holm``, ``p_groups_holm_least`` and
        ``holm_tests``, the size of the family.
    """
    table = gaps.copy()
    differing = gaps[~gaps.flat]
    tests = {
        "p_holm": ("p_two_sided", "p_least"),
        "p_groups_holm": ("p_groups", "p_groups_least"),
    }
    # Both p are NaN in the same rows, so the families of both tests are of one size.
    for name, (p, least) in tests.items():
        family = corrected(differing, "empathy_gap", p, least)
        # Flat blocks are not among these and stay NaN, as pandas assigns by index.
        table[name] = family.holm
        table[f"{name}_least"] = family.least
        table["holm_tests"] = family.tests
    return table


def band(delta: pd.Series) -> np.ndarray:
    """Sort gaps into the three bands that Table 2 marks.

    Parameters
    ----------
    delta : Series
        Empathy gaps.

    Returns
    -------
    ndarray of str
        "above_1", "0_to_1" or "negative"; "" where there is no gap.
    """
    # The first condition that holds is taken; none holds for NaN.
    conditions = {
        "above_1": delta > 1,
        "0_to_1": delta >= 0,
        "negative": delta < 0,
    }
    return np.select(list(conditions.values()), list(conditions), default="")


def finding(gaps: pd.DataFrame) -> np.ndarray:
    """Put the row of each block of Table 2 into words.

    Parameters
    ----------
    gaps : DataFrame
        From `with_corrections`.

    Returns
    -------
    ndarray of str
        "significant" where the corrected p of names is below the level of the family, the interval
        over events excludes 0, and the corrected p of whole groups is below the level. "not beyond
        its events" and "not beyond its groups" where p of names is below the level, and the second
        or the third condition fails. "not significant" where p of names is not below the level.
        "could not have been ..." where the smallest possible p is not below it either. "no cell
        differs" where the block is flat.
    """
    level = families()["empathy_gap"].level
    is_of_names = gaps.p_holm < level
    excludes_zero = (gaps.low > 0) | (gaps.high < 0)
    # The first that holds is taken: a gap is "significant" once it passes all before it.
    conditions = {
        "no cell differs": gaps.flat,
        "not beyond its events": is_of_names & ~excludes_zero,
        "could not have been beyond its groups": is_of_names & (gaps.p_groups_holm_least >= level),
        "not beyond its groups": is_of_names & (gaps.p_groups_holm >= level),
        "significant": is_of_names,
        "could not have been significant": gaps.p_holm_least >= level,
    }
    return np.select(list(conditions.values()), list(conditions), default="not significant")


def delta_or_nan(values: np.ndarray, same: np.ndarray, exclusion: Exclusion) -> float:
    """Compute the empathy gap of some ratings, or NaN where they have no gap.

    Parameters
    ----------
    values : ndarray, (1 + n, 1 + n, events)
        Ratings before exclusion, "a person" first.
    same : ndarray of bool, (n, n)
        From `same_group`, without "a person".
    exclusion : {"listwise", "pairwise"}
        See `exclude`.

    Returns
    -------
    float
        The gap; NaN where a cell has no rating, or no cell differs from another.
    """
    try:
        matrix = gap_matrix(values, exclusion)
        return empathy_gap(matrix, same)
    except ValueError:
        return np.nan


def cells_to_show_by_rule(pvalues: np.ndarray) -> pd.DataFrame:
    """Mark the cells of a heatmap that differ from their in-group cells, under each rule.

    Parameters
    ----------
    pvalues : ndarray, (perceivers, experiencers)
        From :func:`ingroup.stats.paired.cell_pvalues`.

    Returns
    -------
    DataFrame
        One row per cell, row by row: ``shown_released``, ``shown_bonferroni``, ``shown_holm``.
    """
    columns = {}
    for rule in RULES:
        columns[f"shown_{rule}"] = cells_to_show(pvalues, rule).ravel()
    return pd.DataFrame(columns)


def shares_shown(values: np.ndarray, pvalues: np.ndarray) -> dict[str, float]:
    """Compute which share of the tested cells is shown, under each rule and test.

    Parameters
    ----------
    values : ndarray, (1 + n, 1 + n, events)
        Ratings left by `exclude`, "a person" first.
    pvalues : ndarray, (1 + n, 1 + n)
        Of these ratings, as for `cells_to_show_by_rule`.

    Returns
    -------
    dict
        Shares of the cells that are neither on the diagonal nor of "a person". ``released``,
        ``bonferroni`` and ``holm`` of the t-test; ``sign`` of a sign test after Holm; ``testable``
        of the same test, if all rated events of every cell had the same sign.
    """
    # The diagonal is NaN; the first row and column are those of "a person".
    is_tested = ~np.isnan(pvalues)
    is_tested[0] = False
    is_tested[:, 0] = False

    shares = {}
    for rule in RULES:
        shares[rule] = cells_to_show(pvalues, rule)[is_tested].mean()
    signs = cell_pvalues(values, "sign")
    shares["sign"] = cells_to_show(signs, "holm")[is_tested].mean()

    # A sign test has its least p where all ratings off the diagonal (here 1) are above all on it
    # (here 0). Missing ratings stay missing, as fewer events give a larger least p.
    off_diagonal = 1.0 - np.eye(len(values))
    one_sided = np.where(np.isnan(values), np.nan, off_diagonal[:, :, None])
    least = cell_pvalues(one_sided, "sign")
    shares["testable"] = cells_to_show(least, "holm")[is_tested].mean()
    return shares


def named_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """Select the cells of named identities, in categories where some cell differs.

    Parameters
    ----------
    cells : DataFrame
        From `cells`, of one setting, with ``model`` and ``category``.

    Returns
    -------
    DataFrame
        Without "a person", and without blocks whose cells are all the same.
    """
    z = cells.groupby(["model", "category"]).z
    # `cells` gives a flat block z-scores of 0.
    is_varied = (z.transform("max") - z.transform("min")) > 0
    is_named = (cells.perceiver != "a person") & (cells.experiencer != "a person")
    return cells[is_varied & is_named]


def z_by_identity(
    cells: pd.DataFrame, groups: Mapping[str, Mapping[str, str]] | None = None
) -> pd.DataFrame:
    """Average the z-scores of each identity as perceiver and as experiencer: section 5.

    Parameters
    ----------
    cells : DataFrame
        From `named_cells`.
    groups : mapping, optional
        The group of each identity, by category; the averages are then over groups.

    Returns
    -------
    DataFrame
        ``side``, ``model``, ``category``, ``name`` (groups in alphabetical order); ``mean`` and
        ``sd`` (standard deviation) of the z-scores of the name's cells.
    """
    tables = []
    for side in SIDES:
        for (model, category), rows in cells.groupby(["model", "category"], sort=False):
            names = rows[side]
            if groups is not None:
                names = names.map(groups[category])

            # Groups are sorted; identities stay in the order of the cells.
            z = rows.groupby(names, sort=groups is not None).z
            by_name = z.agg(mean="mean", sd="std").rename_axis("name")
            table = by_name.reset_index()
            tables.append(table.assign(side=side, model=model, category=category))

    columns = ["side", "model", "category", "name", "mean", "sd"]
    if not tables:
        return pd.DataFrame(columns=columns)
    return pd.concat(tables, ignore_index=True)[columns]


def means_by_side(z_means: pd.DataFrame) -> pd.DataFrame:
    """Put the mean of each name as perceiver beside its mean as experiencer.

    Parameters
    ----------
    z_means : DataFrame
        From `z_by_identity`.

    Returns
    -------
    DataFrame
        ``model``, ``category``, ``name``, ``perceiver`` and ``experiencer``.
    """
    by_side = z_means.set_index(["model", "category", "name", "side"])
    # The names stay in the order of `z_means`.
    means = by_side["mean"].unstack(sort=False)
    return means.reset_index()


def lowest_pairs(cells: pd.DataFrame, n: int = 3) -> pd.DataFrame:
    """Find the pairs with the lowest z-scores: section 5.3.

    Parameters
    ----------
    cells : DataFrame
        From `named_cells`.
    n : int
        How many pairs of each model and category are returned.

    Returns
    -------
    DataFrame
        ``model``, ``category``, ``perceiver``, ``experiencer``, ``mean`` and ``z``, the lowest of
        a category first.
    """
    # Pairs of equal z stay in the order of the matrix, on every machine.
    in_order = cells.sort_values("z", kind="stable")
    matrix = ["model", "category"]
    lowest = in_order.groupby(matrix, sort=False).head(n)
    by_matrix = lowest.sort_values([*matrix, "z"])
    columns = [*matrix, *SIDES, "mean", "z"]
    return by_matrix[columns]


def farthest_own_cell(cells: pd.DataFrame) -> Any:
    """Find the persona whose rating of its own identity is farthest from the mean of its row.

    Parameters
    ----------
    cells : DataFrame
        From `named_cells`.

    Returns
    -------
    int or None
        The index of this cell; None without cells.
    """
    is_own = cells.perceiver == cells.experiencer
    if not is_own.any():
        return None

    matrix_rows = cells.groupby(["model", "category", "perceiver"])
    row_means = matrix_rows["mean"].transform("mean")
    distances = (cells["mean"] - row_means).abs()
    return distances[is_own].idxmax()


def extremes(z_means: pd.DataFrame) -> pd.DataFrame:
    """Find the names with the highest, lowest and most even z-scores on each side of the matrix.

    Parameters
    ----------
    z_means : DataFrame
        From `z_by_identity`.

    Returns
    -------
    DataFrame
        Index ``model``, ``side``, ``category``; ``darkest`` and ``lightest``, the names with the
        ``highest`` and ``lowest`` mean z-score, and ``evenest``, the name with the smallest
        standard deviation.
    """
    # With the names as index, idxmax gives a name.
    by_name = z_means.set_index("name")
    blocks = by_name.groupby(["model", "side", "category"], sort=False)
    return pd.DataFrame(
        {
            "darkest": blocks["mean"].idxmax(),
            "lightest": blocks["mean"].idxmin(),
            "highest": blocks["mean"].max(),
            "lowest": blocks["mean"].min(),
            "evenest": blocks.sd.idxmin(),
        }
    )


def gap_in_points(
    values: np.ndarray,
    same: np.ndarray,
    exclusion: Exclusion,
    n_resamples: int,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Compute the gap of a block in points of the scale, with its test and interval.

    Parameters
    ----------
    values : ndarray, (1 + n, 1 + n, events)
        Ratings before exclusion, "a person" first.
    same : ndarray of bool, (n, n)
        From `same_group`, without "a person".
    exclusion : {"listwise", "pairwise"}
        See `exclude`.
    n_resamples : int
        How many arrangements a permutation test draws.
    rng : numpy.random.Generator
        Draws the arrangements.

    Returns
    -------
    dict
        ``points``, the gap of the cell means; ``low`` and ``high`` of a t-test over events;
        ``delta``, ``p_two_sided`` and ``events`` of `gap`. Only ``events``, 0, where none is left.
    """
    try:
        kept = exclude(values, exclusion)
    except ValueError:
        return {"events": 0}

    tested = gap(values, same, exclusion, n_resamples, rng)
    means = cell_means(kept)[1:, 1:]
    by_event = _gap_over_events(kept, same)
    return {
        "points": means[same].mean() - means[~same].mean(),
        "low": by_event.low,
        "high": by_event.high,
        "delta": tested["delta"],
        "p_two_sided": tested["p_two_sided"],
        "events": tested["events"],
    }


def _gap_over_events(values: np.ndarray, same: np.ndarray) -> PairedTest:
    """Test the gap in points over events, without "a person"."""
    named = values[1:, 1:]
    in_group = nan_mean(named[same])
    out_group = nan_mean(named[~same])
    return paired_test(in_group, out_group)


def difference_of_gaps(
    first: np.ndarray, second: np.ndarray, same: np.ndarray, exclusion: Exclusion
) -> dict[str, float]:
    """Test whether the gaps of two readings of the same answers differ, events being a sample.

    Two gaps may be equal although the interval of one holds 0 and that of the other does not.

    Parameters
    ----------
    first, second : ndarray, (1 + n, 1 + n, events)
        Ratings of the same block before exclusion, "a person" first.
    same : ndarray of bool, (n, n)
        From `same_group`, without "a person".
    exclusion : {"listwise", "pairwise"}
        See `exclude`. An event is left out of both readings.

    Returns
    -------
    dict
        ``difference`` of the gaps in points, the first minus the second, with ``low``, ``high`` and
        ``p`` of a paired t-test over events. Empty where no event is left.
    """
    try:
        # What one reading lacks is NaN in the difference, so both readings lose the event.
        kept = exclude(first - second, exclusion)
    except ValueError:
        return {}

    tested = _gap_over_events(kept, same)
    return {
        "difference": tested.difference,
        "low": tested.low,
        "high": tested.high,
        "p": tested.pvalue,
    }


def scopes(
    values: np.ndarray, groups: Sequence[str], clusters: Sequence[str] | None = None
) -> dict[str, Any]:
    """Estimate the own-group effect of a block for these groups, and for groups like these.

    Parameters
    ----------
    values : ndarray, (n, n, events)
        Ratings left by `exclude`, without "a person".
    groups : sequence of str
        The group of each of the n identities.
    clusters : sequence of str, optional
        As in `gap_like_these`.

    Returns
    -------
    dict
        Of `gap_of_these` ``estimate``, ``low``, ``high`` and ``p``; of `gap_like_these` the "own
        group" as ``low_like_these``, ``high_like_these``, ``p_like_these`` and ``reason``,
        ``by_group_p``, and the estimate and p of every other effect, by its name.

    Raises
    ------
    ValueError
        As `gap_of_these` and `gap_like_these`.
    """
    these = gap_of_these(values, groups)
    like = gap_like_these(values, groups, clusters)
    own_group_like = like.pop("own group")
    row = {
        "estimate": these.difference,
        "low": these.low,
        "high": these.high,
        "p": these.pvalue,
        "low_like_these": own_group_like.low,
        "high_like_these": own_group_like.high,
        "p_like_these": own_group_like.p,
        "reason": own_group_like.reason,
        "by_group_p": like.pop("own group, by group").p,
    }
    # What is left depends on the category: clusters of nationality, kinds of pairs where groups
    # have several names.
    for name, effect in like.items():
        column = name.replace(" ", "_")
        row[column] = effect.estimate
        row[f"{column}_p"] = effect.p
    return row


def over_settings(
    ratings: Sequence[np.ndarray], groups: Sequence[str], exclusion: Exclusion
) -> dict[str, Any]:
    """Estimate the own-group effect for groups and settings like these.

    Parameters
    ----------
    ratings : sequence of ndarray, (1 + n, 1 + n, events)
        The ratings of each setting, before exclusion, "a person" first.
    groups : sequence of str
        The group of each of the n named identities.
    exclusion : {"listwise", "pairwise"}
        See `exclude`.

    Returns
    -------
    dict
        The number of ``settings``; ``estimate``, ``low``, ``high``, ``p`` and ``reason`` of the
        "own group" of `gap_like_these` on each `gap_matrix`, settings being a sample; the ``least``
        and the ``greatest`` estimate of a single setting. Where there is no such estimate, the
        reason alone.
    """
    try:
        # Settings may have scales of different length, so their z-scores are compared.
        matrices = [gap_matrix(values, exclusion) for values in ratings]
        if len(matrices) < 2:
            return {"settings": len(matrices), "reason": "cannot be told: one setting"}
        # The settings take the place of events, the last axis.
        like = gap_like_these(np.stack(matrices, axis=-1), groups)["own group"]
    except ValueError as error:
        return {"reason": str(error)}

    estimates = []
    for matrix in matrices:
        # A single setting is one place on the last axis.
        of_setting = gap_like_these(matrix[..., np.newaxis], groups)
        estimates.append(of_setting["own group"].estimate)
    return {
        "settings": len(matrices),
        "estimate": like.estimate,
        "low": like.low,
        "high": like.high,
        "p": like.p,
        "least": min(estimates),
        "greatest": max(estimates),
        "reason": like.reason,
    }


def shared_blocks(gaps: pd.DataFrame) -> pd.DataFrame:
    """Mark the settings and categories in which all models have a gap.

    Parameters
    ----------
    gaps : DataFrame
        ``model``, ``setting``, ``category`` and ``delta``, NaN without a gap.

    Returns
    -------
    DataFrame
        The rows with a gap, and whether their block is ``common`` to all models.
    """
    defined = gaps[gaps.delta.notna()]
    by_block = defined.groupby(["setting", "category"])
    n_models = by_block.model.transform("nunique")
    is_common = n_models == defined.model.nunique()
    return defined.assign(common=is_common)


def mean_gaps(gaps: pd.DataFrame) -> pd.DataFrame:
    """Average the gaps of each model over its blocks: section 4.

    Parameters
    ----------
    gaps : DataFrame
        From `shared_blocks`.

    Returns
    -------
    DataFrame
        Index ``model``; the number of ``blocks``, their ``mean``, ``min`` and ``max``, and
        ``mean_common``, the mean over the blocks that all models have.
    """
    by_model = gaps.groupby("model", sort=False)
    means = by_model.delta.agg(["size", "mean", "min", "max"])
    means = means.rename(columns={"size": "blocks"})

    common = gaps[gaps.common]
    # A model without a common block gets NaN, as pandas assigns by index.
    means["mean_common"] = common.groupby("model").delta.mean()
    return means


def root_mean_square(errors: pd.Series) -> float:
    """Compute the root of the mean square of some errors.

    Parameters
    ----------
    errors : Series
        Errors in any unit. NaN is left out.

    Returns
    -------
    float
        In the same unit.
    """
    squares = errors**2
    return float(np.sqrt(squares.mean()))
