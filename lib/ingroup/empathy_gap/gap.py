"""The matrix M, the empathy gap and its tests (section 3.4), from the table of ratings."""

import numpy as np
import pandas as pd
from scipy import stats

from ingroup.empathy_gap.stimuli import UNSPECIFIED, same_group
from ingroup.inference.answers import MISSING
from ingroup.stats.intervals import holm, interval_over_events, means_by
from ingroup.stats.paired import cell_pvalues, sign_test, t_test
from ingroup.stats.permutation import own_generator, permutation_test
from ingroup.tables import InputError

BLOCK = ["model", "reading", "setting", "category"]  # one matrix
EVENT = [*BLOCK, "event"]
PAIR = ["perceiver", "experiencer"]
TESTED = ["delta", "null_low", "null_high"]
GAP = [*TESTED, "p", "points", "low", "high", "events"]
ALPHA = 0.05


def blocks(table):
    """Group a table by `BLOCK`, in its own order."""
    return table.groupby(BLOCK, observed=True, sort=False)


def named(table: pd.DataFrame) -> pd.DataFrame:
    """Leave out "a person", who is in no group (footnote 7)."""
    is_named = table[PAIR] != UNSPECIFIED
    has_two = is_named.all(axis=1)
    return table[has_two]


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
    events = ratings.groupby(EVENT, observed=True)
    n_rated = events.rating.transform("count")
    n_cells = events.rating.transform("size")
    return ratings[n_rated == n_cells]


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
    by_event = asked.groupby(EVENT, observed=True, sort=False)
    is_lost = by_event.is_lost.any()
    events = is_lost.reset_index()
    by_block = blocks(events).is_lost
    table = by_block.agg(events="size", events_lost="sum")

    of_events = by_block.mean()
    of_answers = blocks(asked).is_lost.mean()
    table["percent_of_events"] = 100 * of_events
    table["percent_of_answers"] = 100 * of_answers
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
    ratings = block.rating.to_numpy()
    return ratings.reshape(n, n, -1)


def matrix(cells: pd.DataFrame, column: str = "z") -> np.ndarray:
    """Turn a column of the cells of one block into a matrix, whose rows are perceivers."""
    n = cells.perceiver.nunique()
    numbers = cells[column].to_numpy()
    return numbers.reshape(n, n)


def is_flat(means: np.ndarray) -> bool:
    """Tell whether no cell differs from any other beyond rounding, so that M does not exist."""
    largest = np.abs(means).max()
    return np.ptp(means) <= 1e-12 * largest


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
    numbers = np.asarray(means)
    if is_flat(numbers):
        return np.full(numbers.shape, np.nan)
    return stats.zscore(numbers, axis=None)


@np.vectorize
def rounded(mean: float) -> float:
    """Round each number to 2 decimals by Python's round, as released; NumPy's differs at 2.675."""
    return round(float(mean), 2)


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


def _cells(block):
    """Compute the columns of `cells` of one block."""
    pairs = block.groupby(PAIR, observed=True, sort=False)
    table = pairs.rating.mean().to_frame("mean")
    table["z"] = standardise(table["mean"])
    table["mean_released"] = rounded(table["mean"])
    table["z_released"] = standardise(table.mean_released)

    of_named = cube(block)[1:, 1:]
    tests = {"p": t_test, "p_sign": sign_test}
    for name, test in tests.items():
        pvalues = cell_pvalues(of_named, test)
        # "A person" has no in-group.
        padded = np.pad(pvalues, (1, 0), constant_values=np.nan)
        table[name] = padded.ravel()
    corrected = table.p * len(table)
    table["is_shown"] = ~(corrected >= ALPHA)
    return table


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
    by_block = blocks(cells)
    table = _spread(by_block["mean"], by_block["z"])
    released = _spread(by_block["mean_released"], by_block["z_released"])
    return table.join(released.add_suffix("_released"))


def _spread(means, z):
    """Summarise both columns of each block."""
    return pd.DataFrame(
        {
            "mean": means.mean(),
            "std": means.std(ddof=0),
            "z_min": z.min(),
            "z_max": z.max(),
        }
    )


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
        Index `BLOCK`; the columns of `gap`; ``p_holm``, corrected over the categories of one model,
        reading and setting; ``delta_released``, ``null_low_released`` and ``null_high_released``.
        Blocks without a complete event have no rows.

    Notes
    -----
    The released code drops "a person" first, so it may keep other events. It standardises the other
    cells alone, after rounding. The paper prints these numbers.
    """

    def as_written(block):
        same = same_group(block.name[-1])
        rng = own_generator(seed, *block.name)
        return gap(cube(block), same, n_resamples, rng)

    def as_released(block):
        same = same_group(block.name[-1])
        rng = own_generator(seed, *block.name)
        means = cube(block).mean(axis=2)
        z = standardise(rounded(means))
        tested = _tested(z, same, n_resamples, rng)
        return pd.Series(tested, TESTED)

    kept = exclude(ratings)
    table = blocks(kept).apply(as_written)
    families = table.groupby(BLOCK[:-1], sort=False)
    table["p_holm"] = families.p.transform(holm)

    of_named = named(ratings)
    kept = exclude(of_named)
    released = blocks(kept).apply(as_released)
    return table.join(released.add_suffix("_released"))


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
        ``null_high`` and ``p`` of `permutation_test`; ``points``, the gap in points of the scale;
        ``low`` and ``high``, the 95 % interval of delta over ``events``. All but ``events`` and
        ``points`` are NaN if the named cells are flat.
    """
    n_events = values.shape[2]
    means = values.mean(axis=2)
    points = gap_by_event(values, same)
    row = {
        "points": points.mean(),
        "events": n_events,
    }
    if is_flat(means[1:, 1:]):
        return pd.Series(row, GAP)

    z = standardise(means)
    z = z[1:, 1:]
    row |= _tested(z, same, n_resamples, rng)
    if n_events > 1:
        low, high = interval_over_events(values, same, rng=rng)
        row |= {"low": low, "high": high}
    return pd.Series(row, GAP)


def _tested(z, same, n_resamples, rng):
    """Test the gap of a matrix; a flat one has no numbers."""
    if np.isnan(z).any():
        return {}
    test = permutation_test(z, same, n_resamples, rng)
    low, high = test.null_interval
    return {
        "delta": test.statistic,
        "null_low": low,
        "null_high": high,
        "p": test.pvalue,
    }


def gap_by_event(values: np.ndarray, same: np.ndarray) -> np.ndarray:
    """Compute the gap in each event, in points: (events,). Their mean is that of M0."""
    of_named = values[1:, 1:]
    within = of_named[same].mean(axis=0)
    between = of_named[~same].mean(axis=0)
    return within - between


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
        points = gap_by_event(values, same)
        means = values.mean(axis=2)
        sd = means.std()
        if is_flat(means[1:, 1:]):
            sd = np.nan

        events = pd.Index(block.event.unique(), name="event")
        return pd.DataFrame({"delta": points / sd}, events)

    kept = exclude(ratings)
    table = blocks(kept).apply(by_event)
    keys = ["model", "reading"]
    by_model = table.groupby([*keys, "event"], observed=True, sort=False)
    of_events = by_model.delta.mean()
    return means_by(of_events, keys)


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

    def by_event(block):
        of_named = cube(block)[1:, 1:]
        same = same_group(block.name[-1])
        one_name, two_names = effects_by_event(of_named, same)
        effects = {"one name": one_name}
        if same.sum() > len(same):
            effects["two names"] = two_names
            effects["one name beyond two"] = one_name - two_names
        return pd.DataFrame(effects)

    kept = exclude(ratings)
    effects = blocks(kept).apply(by_event)
    effects = effects.rename_axis(columns="pairs")
    by_pairs = effects.stack()
    return means_by(by_pairs.dropna(), [*BLOCK, "pairs"])


def effects_by_event(values: np.ndarray, same: np.ndarray) -> np.ndarray:
    """Estimate the effects of both kinds of pair in each event, in points: (2, events)."""
    n = len(values)
    one_name = np.eye(n)
    two_names = same - one_name
    perceivers = np.repeat(one_name, n, axis=0)
    experiencers = np.tile(one_name, (n, 1))
    columns = [
        one_name.ravel(),
        two_names.ravel(),
        perceivers,
        experiencers,
    ]
    predictors = np.column_stack(columns)

    of_pairs = values.reshape(n * n, -1)
    weights, *_ = np.linalg.lstsq(predictors, of_pairs)
    return weights[:2]
