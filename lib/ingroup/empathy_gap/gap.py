"""The matrix M, the empathy gap and its tests (section 3.4), from the table of ratings."""

import numpy as np
import pandas as pd
from scipy import stats

from ingroup import published
from ingroup.empathy_gap.stimuli import UNSPECIFIED, same_group
from ingroup.stats.crossed import kinds_of_pair
from ingroup.stats.intervals import holm, interval_over_events
from ingroup.stats.paired import cell_pvalues
from ingroup.stats.permutation import own_generator, permutation_test
from ingroup.tables import InputError

BLOCK = ["model", "reading", "setting", "category"]  # one matrix
EVENT = [*BLOCK, "event"]
PAIR = ["perceiver", "experiencer"]
TESTED = ["delta", "null_low", "null_high"]
GAP = [*TESTED, "p", "points", "low", "high", "events"]
ALPHA = 0.05
rounded = np.vectorize(round)  # by Python's round, as released; NumPy's differs at 2.675


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


def cube(block: pd.DataFrame, column: str = "rating") -> np.ndarray:
    """Turn a column of one block into an array.

    Parameters
    ----------
    block : DataFrame
        Ratings or cells of one block, in the order of the design.
    column : str
        The column.

    Returns
    -------
    ndarray, (perceivers, experiencers, events)
        Cells have one number in place of those of the events.
    """
    n = block.perceiver.nunique()
    numbers = block[column].to_numpy()
    return numbers.reshape(n, n, -1)


def matrix(cells: pd.DataFrame, column: str = "z") -> np.ndarray:
    """Turn a column of the cells of one block into a matrix, whose rows are perceivers."""
    return cube(cells, column).squeeze(axis=2)


def is_flat(means: np.ndarray) -> bool:
    """Tell whether no cell differs from any other beyond rounding, so that M does not exist."""
    largest = np.abs(means).max()
    width = np.ptp(means)
    return width <= 1e-12 * largest


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


def cells(ratings: pd.DataFrame) -> pd.DataFrame:
    """Average the ratings of each cell over events, and test it against its in-group cells.

    Parameters
    ----------
    ratings : DataFrame
        From `answers.load_all`; `exclude` is applied.

    Returns
    -------
    DataFrame
        `BLOCK` and `PAIR`; ``mean`` (M0, points) and ``z`` (M); ``p`` and ``p_sign`` of
        `cell_pvalues`, NaN where nothing is tested; ``is_shown``, as the heatmaps of the paper show
        it. Blocks without a complete event have no rows.

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
    table = blocks(kept).apply(_cells)
    return table.reset_index()


def _cells(block):
    """Compute the columns of `cells` of one block."""
    pairs = block.groupby(PAIR, observed=True, sort=False)
    table = pairs.rating.mean().to_frame("mean")
    table["z"] = standardise(table["mean"])

    values = cube(block)
    pvalues = cell_pvalues(values[1:, 1:])
    for name, of_test in zip(["p", "p_sign"], pvalues, strict=True):
        # "A person" has no in-group.
        padded = np.pad(of_test, (1, 0), constant_values=np.nan)
        table[name] = padded.ravel()
    # Cells without a test (NaN) are shown.
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
    released = cells.assign(mean=rounded(cells["mean"], 2))
    released["z"] = blocks(released)["mean"].transform(standardise)
    table = _spread(cells)
    return table.join(_spread(released).add_suffix("_released"))


def _spread(cells):
    """Summarise M0 and M of each block."""
    return blocks(cells).agg(
        mean=("mean", "mean"),
        std=("mean", lambda means: means.std(ddof=0)),
        z_min=("z", "min"),
        z_max=("z", "max"),
    )


def layout(printed: pd.DataFrame, here: pd.DataFrame, number: str, template: str) -> pd.DataFrame:
    """Lay out printed numbers above ours, as in the paper.

    Parameters
    ----------
    printed : DataFrame
        Printed tables, with the columns `BLOCK`. Rows without `number` are of other tables.
    here : DataFrame
        The same numbers, computed; its index is `BLOCK`.
    number : str
        A column that both have.
    template : str
        The text of a block, with columns in braces, e.g. ``{mean:.2f}±{std:.2f}``.

    Returns
    -------
    DataFrame of str
        A row for each model, reading and category, a column for each setting. "flat" where a
        number is NaN, "" where a block was not asked.
    """
    theirs = printed.dropna(subset=number)
    ours = here.reset_index()
    rows = ["model", "reading", "category"]
    table = published.layout(theirs, ours, rows, ["setting"], template)
    return table.replace(".*nan.*", "flat", regex=True)


def gaps(ratings: pd.DataFrame, n_resamples: int = 10_000, seed: int = 0) -> pd.DataFrame:
    """Compute and test the empathy gap of each block (Table 2).

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
        Index `BLOCK`; ``delta`` of M without "a person", in standard deviations of M0, with
        ``null_low``, ``null_high`` and ``p`` of `permutation_test`; ``points``, the gap in points
        of the scale; ``low`` and ``high``, the 95 % interval of delta over ``events``; ``p_holm``,
        corrected over the categories of one model, reading and setting; ``delta_released``,
        ``null_low_released`` and ``null_high_released``. Where the named cells are flat, only
        ``points`` and ``events`` are numbers. Blocks without a complete event have no rows.

    Notes
    -----
    The released code drops "a person" first, so it may keep other events. It standardises the other
    cells alone, after rounding. The paper prints these numbers.
    """
    kept = exclude(ratings)
    table = blocks(kept).apply(_gap, n_resamples, seed)
    families = table.groupby(BLOCK[:-1], sort=False)
    table["p_holm"] = families.p.transform(holm)

    of_named = named(ratings)
    kept = exclude(of_named)
    released = blocks(kept).apply(_gap, n_resamples, seed, is_released=True)
    tested = released[TESTED]
    return table.join(tested.add_suffix("_released"))


def _gap(block, n_resamples, seed, is_released=False):
    """Compute the columns of `gaps` of one block, which has "a person" unless released."""
    same = same_group(block.name[-1])
    n = len(same)
    values = cube(block)
    n_events = values.shape[2]
    points = _gap_by_event(values, same)
    row = {
        "points": points.mean(),
        "events": n_events,
    }
    means = values.mean(axis=2)
    if is_released:
        means = rounded(means, 2)
    # The last n are named identities; "a person" may stand before them.
    if is_flat(means[-n:, -n:]):
        return pd.Series(row, GAP)

    m = standardise(means)
    m = m[-n:, -n:]
    rng = own_generator(seed, *block.name)
    test = permutation_test(m, same, n_resamples, rng)
    low, high = test.null_interval
    row["delta"] = test.statistic
    row["null_low"] = low
    row["null_high"] = high
    row["p"] = test.pvalue
    if n_events > 1 and not is_released:
        low, high = interval_over_events(values, same, rng=rng)
        row["low"] = low
        row["high"] = high
    return pd.Series(row, GAP)


def _gap_by_event(values, same):
    """Compute the gap in each event, in points: (events,). Their mean is that of M0."""
    n = len(same)
    of_named = values[-n:, -n:]
    within = of_named[same]
    between = of_named[~same]
    return within.mean(axis=0) - between.mean(axis=0)


def by_event(ratings: pd.DataFrame) -> pd.DataFrame:
    """Compute the gap in each event, and what one name and two names of a group add to a rating.

    Parameters
    ----------
    ratings : DataFrame
        From `answers.load_all`; `exclude` is applied.

    Returns
    -------
    DataFrame
        Index `EVENT`; ``delta`` in standard deviations of M0, NaN if the named cells are flat. In
        points: "one name", and where groups have several names also "two names" and "one name
        beyond two".

    Notes
    -----
    In each event the ratings are regressed by least squares on both kinds of pair and on a level of
    each perceiver and of each experiencer. So a group that is rated high by all has no effect.
    """
    kept = exclude(ratings)
    return blocks(kept).apply(_by_event)


def _by_event(block):
    """Compute the columns of `by_event` of one block."""
    same = same_group(block.name[-1])
    values = cube(block)
    of_named = values[1:, 1:]
    means = values.mean(axis=2)
    sd = means.std()
    if is_flat(of_named.mean(axis=2)):
        sd = np.nan
    points = _gap_by_event(values, same)

    one_name, two_names = kinds_of_pair(of_named, same)
    has_one_each = same.sum() == len(same)
    if has_one_each:
        two_names = np.nan

    columns = {
        "delta": points / sd,
        "one name": one_name,
        "two names": two_names,
        "one name beyond two": one_name - two_names,
    }
    events = pd.Index(block.event.unique(), name="event")
    return pd.DataFrame(columns, events)
