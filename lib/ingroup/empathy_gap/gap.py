"""The matrix M, the empathy gap and its tests (section 3.4), from the table of ratings."""

import numpy as np
import pandas as pd
from scipy import stats

from ingroup.empathy_gap.stimuli import UNSPECIFIED, same_group
from ingroup.inference.answers import MISSING
from ingroup.stats.intervals import holm, interval_over_events, mean_over_items
from ingroup.stats.paired import cell_pvalues, sign_test
from ingroup.stats.permutation import mean_difference, own_generator, permutation_test
from ingroup.tables import InputError

BLOCK = ["model", "reading", "setting", "category"]  # one matrix
EVENT = [*BLOCK, "event"]
PAIR = ["perceiver", "experiencer"]
ALPHA = 0.05


def blocks(table: pd.DataFrame):
    """Group a table by `BLOCK`, in its own order."""
    return table.groupby(BLOCK, observed=True, sort=False)


def named(table: pd.DataFrame) -> pd.DataFrame:
    """Leave out "a person", who is in no group (footnote 7)."""
    return table[(table.perceiver != UNSPECIFIED) & (table.experiencer != UNSPECIFIED)]


def exclude(ratings: pd.DataFrame) -> pd.DataFrame:
    """Drop an event from all cells of a block if one cell has no rating of it.

    Parameters
    ----------
    ratings : DataFrame
        From `answers.load_all`.

    Returns
    -------
    DataFrame
        All cells of a block rest on the same events (footnote 5 and appendix C.1).
    """
    event = [ratings[name] for name in EVENT]
    is_missing = ratings.rating.isna()
    is_lost = is_missing.groupby(event, observed=True).transform("any")
    return ratings[~is_lost]


def losses(ratings: pd.DataFrame) -> pd.DataFrame:
    """Count what each block loses because ratings are missing (Table 6).

    Parameters
    ----------
    ratings : DataFrame
        From `answers.load_all`.

    Returns
    -------
    DataFrame
        Index `BLOCK`; ``events``, ``events_lost`` and ``percent_of_events``, which the paper calls
        the refusal rate; ``percent_of_answers``. A block that was not asked in full has no row.
    """
    asked = blocks(ratings).filter(lambda block: (block.status != MISSING).all())
    asked = asked.assign(is_lost=asked.rating.isna())
    by_event = asked.groupby(EVENT, observed=True, sort=False).is_lost.any()
    table = blocks(by_event.reset_index()).is_lost.agg(events="size", events_lost="sum")
    table["percent_of_events"] = 100 * table.events_lost / table.events
    table["percent_of_answers"] = 100 * blocks(asked).is_lost.mean()
    return table


def cube(block: pd.DataFrame) -> np.ndarray:
    """Turn the ratings of one block into an array.

    Parameters
    ----------
    block : DataFrame
        Ratings of one block, in the order of the design.

    Returns
    -------
    ndarray, (perceivers, experiencers, events)
        Points of the scale.
    """
    n = block.perceiver.nunique()
    return block.rating.to_numpy().reshape(n, n, -1)


def matrix(cells: pd.DataFrame, column: str = "z") -> np.ndarray:
    """Turn a column of the cells of one block into a matrix, whose rows are perceivers."""
    n = cells.perceiver.nunique()
    return cells[column].to_numpy().reshape(n, n)


def is_flat(means: np.ndarray) -> bool:
    """Tell whether no cell differs from any other beyond rounding, so that M does not exist."""
    return np.ptp(means) <= 1e-12 * np.abs(means).max()


def standardise(means: np.ndarray) -> np.ndarray:
    """Compute M, the z-scores of the matrix of means M0 over all its cells.

    Parameters
    ----------
    means : ndarray, (perceivers, experiencers)
        Means over events.

    Returns
    -------
    ndarray, of the same shape
        (M0 - mean(M0)) / std(M0), with the population's standard deviation as in the released code.
        NaN if the matrix is flat.
    """
    if is_flat(means):
        return np.full(means.shape, np.nan)
    return stats.zscore(means, axis=None)


def rounded(means: np.ndarray) -> np.ndarray:
    """Round to 2 decimals by Python's round, as released; NumPy's differs at 2.675."""
    numbers = [round(mean, 2) for mean in means.ravel().tolist()]
    return np.reshape(numbers, means.shape)


def cells(ratings: pd.DataFrame) -> pd.DataFrame:
    """Average the ratings of each cell over events, and test it against its in-group cells.

    Parameters
    ----------
    ratings : DataFrame
        From `answers.load_all`; `exclude` is applied.

    Returns
    -------
    DataFrame
        `BLOCK` and `PAIR`; ``mean`` (M0, points) and ``z`` (M), and the same of rounded means
        (``mean_released``, ``z_released``); ``p`` of the paired t-tests (`cell_pvalues`) and
        ``p_sign`` of sign tests, NaN where nothing is tested; ``is_shown``, as the heatmaps of the
        paper show it. Blocks without a complete event have no rows.

    Raises
    ------
    InputError
        No block has a complete event.

    Notes
    -----
    The released code divides `ALPHA` by the number of all cells, although it does not test the
    diagonal and "a person". A heatmap always shows these.
    """
    kept = exclude(ratings)
    if kept.empty:
        raise InputError("no block has an event that is rated in all cells: nothing to analyse")
    return blocks(kept).apply(_cells).reset_index()


def _cells(block: pd.DataFrame) -> pd.DataFrame:
    """Compute the columns of `cells` of one block."""
    values = cube(block)
    means = values.mean(axis=2)
    rounded_means = rounded(means)
    p = cell_pvalues(values)
    p_sign = cell_pvalues(values, sign_test)
    for pvalues in (p, p_sign):
        # "A person" has no in-group.
        pvalues[0, :] = np.nan
        pvalues[:, 0] = np.nan

    columns = {
        "mean": means,
        "z": standardise(means),
        "mean_released": rounded_means,
        "z_released": standardise(rounded_means),
        "p": p,
        "p_sign": p_sign,
        "is_shown": ~(p * p.size >= ALPHA),
    }
    names = list(block.perceiver.unique())
    pairs = pd.MultiIndex.from_product([names, names], names=PAIR)
    return pd.DataFrame({name: numbers.ravel() for name, numbers in columns.items()}, pairs)


def spread(cells: pd.DataFrame) -> pd.DataFrame:
    """Summarise each block (Tables 3 and 7 to 13).

    Parameters
    ----------
    cells : DataFrame
        From `cells`.

    Returns
    -------
    DataFrame
        Index `BLOCK`; ``mean`` and ``std`` of M0, ``z_min`` and ``z_max`` of M, and the same of
        rounded means (``mean_released`` ...), which the paper prints.
    """
    summary = {}
    for suffix in ("", "_released"):
        means = blocks(cells)[f"mean{suffix}"]
        z = blocks(cells)[f"z{suffix}"]
        summary[f"mean{suffix}"] = means.mean()
        summary[f"std{suffix}"] = means.std(ddof=0)
        summary[f"z_min{suffix}"] = z.min()
        summary[f"z_max{suffix}"] = z.max()
    return pd.DataFrame(summary)


def gaps(ratings: pd.DataFrame, n_resamples: int = 10_000, seed: int = 0) -> pd.DataFrame:
    """Test the empathy gap of each block (Table 2).

    Parameters
    ----------
    ratings : DataFrame
        From `answers.load_all`; `exclude` is applied.
    n_resamples : int
        Arrangements of a permutation test.
    seed : int
        The seed of the run; each block has draws of its own.

    Returns
    -------
    DataFrame
        Index `BLOCK`; ``events`` kept; the columns of `gap`; ``p_holm``, corrected over the
        categories of one model, reading and setting; ``delta_released``, ``null_low_released``,
        ``null_high_released``. Blocks without a complete event have no rows.

    Notes
    -----
    The released code drops "a person" first, so it may keep other events. It standardises the other
    cells alone, after rounding. The paper prints these numbers.
    """

    def as_written(block):
        rng = own_generator(seed, *block.name)
        return gap(cube(block), same_group(block.name[-1]), n_resamples, rng)

    def as_released(block):
        rng = own_generator(seed, *block.name)
        z = standardise(rounded(cube(block).mean(axis=2)))
        return _tested(z, same_group(block.name[-1]), n_resamples, rng)

    table = blocks(exclude(ratings)).apply(as_written).astype({"events": int})
    table["p_holm"] = table.groupby(BLOCK[:-1], sort=False).p.transform(holm)
    released = blocks(exclude(named(ratings))).apply(as_released)
    return table.join(released.drop(columns="p").add_suffix("_released"))


def gap(
    values: np.ndarray, same: np.ndarray, n_resamples: int, rng: np.random.Generator
) -> pd.Series:
    """Compute and test the empathy gap of one block.

    Parameters
    ----------
    values : ndarray, (1 + n, 1 + n, events)
        Ratings of one block, "a person" first.
    same : ndarray of bool, (n, n)
        From `stimuli.same_group`.
    n_resamples : int
        Arrangements of a permutation test.
    rng : Generator
        Draws arrangements and events.

    Returns
    -------
    Series
        ``delta`` of M without "a person", in standard deviations of M0, with ``null_low``,
        ``null_high`` and ``p`` of `permutation_test`; ``p_groups`` of whole groups in random order;
        ``points``, the gap in points of the scale; ``low`` and ``high``, the 95 % interval of delta
        over events. All but ``events`` and ``points`` are NaN if the named cells are flat.
    """
    means = values.mean(axis=2)
    z = standardise(means)[1:, 1:]
    if is_flat(means[1:, 1:]):
        z = np.full(z.shape, np.nan)
    row = _tested(z, same, n_resamples, rng)
    row["p_groups"] = row.p
    row["points"] = mean_difference(means[1:, 1:], same)
    row["low"] = np.nan
    row["high"] = np.nan
    row["events"] = values.shape[2]
    if np.isnan(z).any():
        return row

    if values.shape[2] > 1:
        row["low"], row["high"] = interval_over_events(values, same, rng=rng)
    of_groups = group_means(z, same)
    # Where each group has one name, both tests are the same.
    if len(of_groups) < len(z):
        row["p_groups"] = _tested(of_groups, np.eye(len(of_groups)), n_resamples, rng).p
    return row


def _tested(z, same, n_resamples, rng) -> pd.Series:
    """Test the gap of a matrix; all is NaN if the matrix is flat."""
    if np.isnan(z).any():
        return pd.Series(np.nan, ["delta", "null_low", "null_high", "p"])
    test = permutation_test(z, same, n_resamples, rng)
    null_low, null_high = test.null_interval
    return pd.Series(
        {
            "delta": test.statistic,
            "null_low": null_low,
            "null_high": null_high,
            "p": test.pvalue,
        }
    )


def group_means(values: np.ndarray, same: np.ndarray) -> np.ndarray:
    """Average a matrix of identities into one of groups.

    Parameters
    ----------
    values : ndarray, (n, n)
        A number for each pair of identities.
    same : ndarray of bool, (n, n)
        From `stimuli.same_group`.

    Returns
    -------
    ndarray, (groups, groups)
        Means over the pairs of names of two groups.
    """
    members = np.unique(same, axis=0)
    weights = members / members.sum(axis=1, keepdims=True)
    return weights @ values @ weights.T


def mean_gap(ratings: pd.DataFrame) -> pd.DataFrame:
    """Average the gaps of each model over its settings and categories (section 4).

    Parameters
    ----------
    ratings : DataFrame
        From `answers.load_all`; `exclude` is applied.

    Returns
    -------
    DataFrame
        Index ``model`` and ``reading``; the `Mean` over events of the gap in an event, in standard
        deviations of M0, averaged over the blocks that are not flat. Its ``estimate`` is the mean
        delta if no event is lost.
    """

    def by_event(block):
        values = cube(block)
        same = same_group(block.name[-1])
        means = values.mean(axis=2)
        sd = np.nan if is_flat(means[1:, 1:]) else means.std()
        within = values[1:, 1:][same].mean(axis=0)
        between = values[1:, 1:][~same].mean(axis=0)
        events = pd.Index(block.event.unique(), name="event")
        return pd.DataFrame({"delta": (within - between) / sd}, events)

    deltas = blocks(exclude(ratings)).apply(by_event).delta
    of_events = deltas.groupby(["model", "reading", "event"], observed=True, sort=False).mean()
    rows = {}
    for key, of_model in of_events.groupby(["model", "reading"], observed=True, sort=False):
        rows[key] = mean_over_items(of_model)._asdict()
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["model", "reading"])


def kinds(ratings: pd.DataFrame) -> pd.DataFrame:
    """Test pairs of one name and pairs of two names of a group, beyond pairs of two groups.

    Parameters
    ----------
    ratings : DataFrame
        From `answers.load_all`; `exclude` is applied.

    Returns
    -------
    DataFrame
        Index `BLOCK` and ``pairs``: "one name", and where groups have several names also "two
        names" and "one name beyond two"; the `Mean` over events, in points, for these names.

    Notes
    -----
    In each event the ratings are regressed by least squares on both kinds of pair and on a level of
    each perceiver and of each experiencer. So a group that is rated high by all has no gap.
    """

    def of_block(block):
        values = cube(block)[1:, 1:]
        same = same_group(block.name[-1])
        one_name, two_names = effects_by_event(values, same)
        rows = {"one name": mean_over_items(one_name)}
        if same.sum() > len(same):
            rows["two names"] = mean_over_items(two_names)
            rows["one name beyond two"] = mean_over_items(one_name - two_names)
        return pd.DataFrame(rows.values(), pd.Index(rows, name="pairs"))

    return blocks(exclude(ratings)).apply(of_block)


def effects_by_event(values: np.ndarray, same: np.ndarray) -> np.ndarray:
    """Estimate the effects of both kinds of pair in each event, in points: (2, events)."""
    n = len(values)
    one_name = np.eye(n)
    two_names = same - one_name
    perceivers = np.repeat(np.eye(n), n, axis=0)
    experiencers = np.tile(np.eye(n), (n, 1))
    predictors = [one_name.ravel(), two_names.ravel(), perceivers, experiencers]
    weights, *_ = np.linalg.lstsq(np.column_stack(predictors), values.reshape(n * n, -1))
    return weights[:2]
