"""The bootstrap interval of the empathy gap against its definition, and its coverage."""

import numpy as np
import pytest

from ingroup.stats.intervals import bootstrap_interval

EYE = np.eye(4, dtype=bool)


def some_ratings(n=4, events=25, seed=0, missing=0.0):
    rng = np.random.default_rng(seed)
    ratings = 50 + 15 * rng.standard_normal(events) + 6 * rng.standard_normal((n, n, events))
    ratings += 10 * rng.standard_normal((n, n, 1)) + 10 * np.eye(n)[:, :, None]
    ratings[rng.random(ratings.shape) < missing] = np.nan
    return ratings


def gap_and_spread(ratings, same, events):
    """The definition for one draw of events."""
    means = np.array([[np.nanmean(cell[events]) for cell in row] for row in ratings])
    return means[same].mean() - means[~same].mean(), means.std()


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_against_the_definition(missing):
    ratings = some_ratings(missing=missing)
    result = bootstrap_interval(ratings, EYE, 150, np.random.default_rng(1), confidence=0.9)
    gap, spread = gap_and_spread(ratings, EYE, np.arange(25))
    assert result.statistic == pytest.approx(gap / spread)
    # The z-scored matrix of the paper has the same gap.
    means = np.nanmean(ratings, axis=2)
    z = (means - means.mean()) / means.std()
    assert result.statistic == pytest.approx(z[EYE].mean() - z[~EYE].mean())
    picks = np.random.default_rng(1).integers(25, size=(150, 25))
    gaps, spreads = np.array([gap_and_spread(ratings, EYE, events) for events in picks]).T
    draws = gaps / spreads * spreads.mean() / spread
    np.testing.assert_allclose(result.draws, draws, rtol=1e-10)
    np.testing.assert_allclose([result.low, result.high], np.quantile(draws, [0.05, 0.95]))
    assert result.n_undefined == 0


def coverage(amplitude, noise, n=10, events=40, repeats=150):
    """Share of 95 % intervals that hold the gap to be expected from so many events."""
    rng = np.random.default_rng(2)
    same = np.eye(n, dtype=bool)
    held = 0
    for _ in range(repeats):
        planted = amplitude * (rng.standard_normal((n, n)) + same)
        spread = np.sqrt(planted.var() + noise**2 * (1 - n**-2))
        expected = (planted[same].mean() - planted[~same].mean()) / spread
        ratings = planted[:, :, None] + 3 * rng.standard_normal(events)
        ratings = ratings + noise * np.sqrt(events) * rng.standard_normal((n, n, events))
        result = bootstrap_interval(ratings, same, 300, rng)
        held += result.low <= expected <= result.high
    return held / repeats


@pytest.mark.parametrize(("amplitude", "noise"), [(1, 0.1), (1, 0.5), (0, 1)])
def test_coverage(amplitude, noise):
    # 150 intervals at 0.95 hold between 0.89 and 1 of their targets (three standard errors).
    assert coverage(amplitude, noise) > 0.89


def test_draws_meet_a_cell_without_rating():
    ratings = some_ratings(events=10)
    ratings[1, 2, 1:] = np.nan
    result = bootstrap_interval(ratings, EYE, 1000, np.random.default_rng(3))
    # A given event is missing from a draw of ten with probability 0.9**10 = 0.349.
    assert result.n_undefined == pytest.approx(349, abs=60)
    assert len(result.draws) == 1000 - result.n_undefined
    assert np.isfinite([result.low, result.high, *result.draws]).all()


def test_generator_decides():
    ratings = some_ratings()
    one, again, other = (
        bootstrap_interval(ratings, EYE, 120, np.random.default_rng(seed)) for seed in (4, 4, 5)
    )
    assert (one.low, one.high) == (again.low, again.high)
    assert one.low != other.low
    assert one.statistic == other.statistic
    assert one.low < one.statistic < one.high


def test_more_events_more_precise():
    few, many = (
        bootstrap_interval(
            some_ratings(events=1600)[:, :, :events], EYE, 500, np.random.default_rng(6)
        )
        for events in (100, 1600)
    )
    assert (few.high - few.low) / (many.high - many.low) == pytest.approx(4, rel=0.25)


def same_values_in_other_order():
    """Cells with equal means, up to the rounding of their sums."""
    values = np.tile(np.random.default_rng(8).random(50) * 100, (16, 1))
    return np.random.default_rng(9).permuted(values, axis=1).reshape(4, 4, 50)


def changed(place, value):
    ratings = some_ratings()
    ratings[place] = value
    return ratings


@pytest.mark.parametrize(
    ("ratings", "same", "message"),
    [
        (some_ratings(events=1), EYE, r"shape \(4, 4, 1\), expected .* at least 2 events"),
        (np.zeros((4, 4)), EYE, r"shape \(4, 4\)"),
        (np.zeros((3, 4, 9)), EYE, r"shape \(3, 4, 9\)"),
        (np.full((4, 4, 9), 0.1), EYE, "all cells have the same mean"),
        (same_values_in_other_order(), EYE, "all cells have the same mean"),
        (np.full((4, 4, 9), np.nan), EYE, "row 0, column 0 has no rating in any of 9 events"),
        (changed((2, 3), np.nan), EYE, "row 2, column 3 has no rating"),
        (changed((2, 3, 5), np.inf), EYE, "inf in row 2, column 3, event 5"),
        (some_ratings(), np.eye(4), "same is float64"),
        (some_ratings(), np.eye(3, dtype=bool), r"same is bool of shape \(3, 3\)"),
        (some_ratings(), EYE | True, "same is True for all"),
        (some_ratings(), EYE & False, "same is False for all"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_what_has_no_interval_is_refused(ratings, same, message):
    with pytest.raises(ValueError, match=message):
        bootstrap_interval(ratings, same, 10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_resamples": 0}, "n_resamples is 0"),
        ({"n_resamples": 2e3}, "n_resamples is 2000.0"),
        ({"confidence": 95}, "confidence is 95"),
        ({"rng": 1}, "rng is 1, expected a numpy.random.Generator"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        bootstrap_interval(some_ratings(), EYE, **arguments)


def test_no_draw_is_defined():
    # Each cell has one rating only, each in another event: no draw is likely to have them all.
    ratings = np.full((4, 4, 16), np.nan)
    ratings.reshape(16, 16)[np.arange(16), np.arange(16)] = np.arange(16)
    with pytest.raises(ValueError, match="none of 5 draws"):
        bootstrap_interval(ratings, EYE, 5, np.random.default_rng(7))


@pytest.mark.parametrize("place", [0, 2])
def test_the_unspecified_identity_counts_in_the_spread_alone(place):
    ratings = some_ratings(n=5)
    result = bootstrap_interval(ratings, EYE, 50, np.random.default_rng(1), unspecified=place)
    means = ratings.mean(axis=2)
    z = np.delete(np.delete((means - means.mean()) / means.std(), place, 0), place, 1)
    assert result.statistic == pytest.approx(z[EYE].mean() - z[~EYE].mean())
    assert result.low < result.statistic < result.high
    with pytest.raises(ValueError, match="unspecified is 5, expected a position below 5"):
        bootstrap_interval(ratings, EYE, unspecified=5)
