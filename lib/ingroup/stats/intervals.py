"""Bootstrap over events: an interval of the empathy gap itself, which the first paper lacks.

The paper's interval (Hou et al. 2025, table 2) is that of the permutation null. Here the events
are the sample: another set of events would have given other cell means and another gap.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ingroup.stats.permutation import checked_pairs, generator

BLOCK = 100  # draws at a time: 100 x 6,050 events are 5 MB


@dataclass(frozen=True)
class BootstrapInterval:
    """What `bootstrap_interval` returns."""

    statistic: float
    low: float
    high: float
    draws: NDArray[np.float64]
    n_undefined: int


def bootstrap_interval(
    ratings: ArrayLike,
    same: ArrayLike,
    n_resamples: int = 2000,
    rng: np.random.Generator | None = None,
    confidence: float = 0.95,
    unspecified: int | None = None,
) -> BootstrapInterval:
    """Percentile bootstrap interval of the empathy gap, over events.

    Each draw takes as many events as there are, with replacement and the same ones for all cells,
    and computes the cell means M0 and from them the gap of section 3.4, which is that of the
    z-scores (population standard deviation over all cells)::

        delta = (mean(M0[same]) - mean(M0[~same])) / std(M0)

    In a draw M0 carries the noise of the events twice, which widens std(M0); uncorrected, that
    pulls the interval towards 0 (simulated, 18 identities, noise 0.3 of the spread: 0.75 of the
    95 % intervals hold delta). So std(M0) is taken relative to its mean over the draws, times that
    of the events as they are (0.95 of the intervals hold the delta to be expected from as many
    events). Checked against the definition draw by draw.

    Parameters
    ----------
    ratings : array_like, shape (n, n, events)
        Ratings, perceivers by experiencers by events; NaN where an answer is missing: the event
        still counts in other cells.
    same : array_like of bool, shape (n, n)
        True for in-group pairs; without the row and column of the unspecified identity, if any.
    n_resamples, rng
        Number of draws, and their source; None takes a fresh, unseeded generator.
    confidence : float
        Coverage of the interval, above 0 and below 1.
    unspecified : int, optional
        Position of the unspecified identity in `ratings`: its cells count in std(M0) and in neither
        mean.

    Returns
    -------
    BootstrapInterval
        ``statistic``: delta of the events as they are, from the same code as the draws; ``low`` and
        ``high``: the interval; ``draws``: delta of each draw, without the ``n_undefined`` ones that
        met a cell without any rating, or cells that were all equal.

    Raises
    ------
    ValueError
        If `ratings` is not of shape (n, n, events), has fewer than 2 events, an infinite rating, a
        cell without ratings (the sentence names the cell) or the same mean in all cells; for a
        `confidence` outside its range; if no draw is defined; and as `checked_pairs` and
        `generator` of :mod:`ingroup.stats.permutation`.
    """
    ratings = _checked(np.asarray(ratings, dtype=float), unspecified)
    same = checked_pairs(same, len(ratings) - (unspecified is not None))
    inside, outside = same.ravel(), ~same.ravel()
    if unspecified is not None:
        inside, outside = (
            np.insert(np.insert(side, unspecified, False, 0), unspecified, False, 1).ravel()
            for side in (same, ~same)
        )
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence!r}, expected a number between 0 and 1")
    rng = generator(rng, n_resamples)
    n_events = ratings.shape[2]
    # One row an event, one column a cell.
    cells = ratings.reshape(-1, n_events).T
    present = ~np.isnan(cells)
    values = np.where(present, cells, 0.0)
    counted = None if present.all() else present.astype(float)
    (gap,), (spread,) = _gaps(np.ones((1, n_events)), values, counted, inside, outside)
    if np.isnan(spread):
        raise ValueError("all cells have the same mean, expected several: there is no gap")
    blocks = []
    for start in range(0, n_resamples, BLOCK):
        n_draws = min(BLOCK, n_resamples - start)
        picks = rng.integers(n_events, size=(n_draws, n_events))
        picks += n_events * np.arange(n_draws)[:, None]
        times = np.bincount(picks.ravel(), minlength=picks.size).reshape(picks.shape)
        blocks.append(_gaps(times.astype(float), values, counted, inside, outside))
    gaps, spreads = np.concatenate(blocks, axis=1)
    gaps, spreads = gaps[~np.isnan(spreads)], spreads[~np.isnan(spreads)]
    if not gaps.size:
        raise ValueError(f"none of {n_resamples} draws has a rating in every cell, expected some")
    draws = gaps / spreads * (spreads.mean() / spread)
    low, high = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2]).tolist()
    n_undefined = n_resamples - len(draws)
    return BootstrapInterval(float(gap / spread), low, high, draws, n_undefined)


def _gaps(
    times: NDArray, values: NDArray, counted: NDArray | None, inside: NDArray, outside: NDArray
) -> NDArray[np.float64]:
    """Gap and spread of the cell means, for each row of `times`: how often each event counts."""
    numbers = times.sum(axis=1, keepdims=True) if counted is None else times @ counted
    with np.errstate(invalid="ignore"):
        means = times @ values / numbers
    gap = means[:, inside].mean(axis=1) - means[:, outside].mean(axis=1)
    spread = means.std(axis=1)
    # Equal cells may differ by rounding; a cell without ratings is NaN, which compares as false.
    spread[~(spread > 1e-12 * np.abs(means).max(axis=1))] = np.nan
    return np.stack([gap, spread])


def _checked(ratings: NDArray[np.float64], unspecified: int | None) -> NDArray[np.float64]:
    """The ratings, or a sentence on what is wrong with them."""
    shape = ratings.shape
    if len(shape) != 3 or shape[0] != shape[1] or shape[2] < 2:
        raise ValueError(f"ratings have shape {shape}, expected (n, n, events), at least 2 events")
    if unspecified is not None and unspecified not in range(shape[0]):
        raise ValueError(f"unspecified is {unspecified!r}, expected a position below {shape[0]}")
    for row, column, event in np.argwhere(np.isinf(ratings)):
        found = f"{ratings[row, column, event]} in row {row}, column {column}, event {event}"
        raise ValueError(f"ratings hold {found}, expected finite numbers or NaN")
    for row, column in np.argwhere(np.isnan(ratings).all(axis=2)):
        found = f"row {row}, column {column} has no rating in any of {shape[2]} events"
        raise ValueError(f"{found}, expected at least one in every cell")
    return ratings
