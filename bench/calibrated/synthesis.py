"""Simulations of the claims of the synthesis' intervals and tests, at the default run's sizes."""

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from ingroup.stats import effects
from ingroup.studies.empathy_gap import group_profile, statistics, stimuli

DRAWS = 1000
PAIRS = 500
FAMILIES = 400
LEVEL = 0.05
RESAMPLES = 1000  # of notebook 60
# Gains of the third study: half of the questions do not change.
VERDICTS = np.array([-1.0, 0, 0, 0, 0, 0, 1, 1, 1, 1])


def interval_of_effect(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate how often the interval of an effect holds the true effect, by study.

    Each simulation has one group. The SD of the answers is held fixed.
    """
    # The claims for few items are those of the docstring of `ingroup.stats.effects.measure`.
    yield _row_of_effect(
        rng,
        "rounds, means of four whole numbers",
        n_items=5,
        claimed=0.92,
        draw=lambda n: whole_numbers(n, rng),
    )
    yield _row_of_effect(
        rng,
        "events",
        n_items=10,
        claimed=0.95,
        draw=lambda n: rng.normal(0.3, 1, (n, DRAWS)),
    )
    yield _row_of_effect(
        rng,
        "scenarios, skewed",
        n_items=103,
        claimed=0.95,
        draw=lambda n: rng.gamma(2, 1, (n, DRAWS)),
    )
    yield _row_of_effect(
        rng,
        "verdicts gained (two questions)",
        n_items=2,
        claimed=0.50,
        draw=lambda n: rng.choice(VERDICTS, (n, DRAWS)),
    )
    yield _row_of_effect(
        rng,
        "verdicts gained (three questions)",
        n_items=3,
        claimed=0.72,
        draw=lambda n: rng.choice(VERDICTS, (n, DRAWS)),
    )


def _row_of_effect(
    rng: np.random.Generator,
    name: str,
    n_items: int,
    claimed: float,
    draw: Callable[[int], np.ndarray],
) -> dict:
    """Simulate the interval of an effect, for items that `draw` makes, (item, simulation)."""
    # Each column is one simulation, so one call measures all of them.
    items = pd.DataFrame(draw(n_items))
    # The mean of 200 items in each of the simulations is close to the true mean.
    truth = draw(200).mean()
    table = effects.measure(items, 1.0, rng, RESAMPLES).effects
    return {
        "what": f"interval of an effect, {name}",
        "n": n_items,
        "claimed": claimed,
        "inside": (table.low <= truth) & (truth <= table.high),
    }


def whole_numbers(n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw scores of a group, (round, simulation): each the mean of four answers from 1 to 5."""
    answers = np.round(rng.normal(3.2, 0.9, (4, n, DRAWS)))
    return np.clip(answers, 1, 5).mean(axis=0)


def instruments(
    share: float, noise: float, groups: int, items: tuple[int, int], rng: np.random.Generator
) -> tuple[pd.DataFrame, dict[str, pd.DataFrame], float]:
    """Draw two measures of some groups whose true effects share a part.

    Parameters
    ----------
    share : float
        SD of the shared part; the part of one measure alone has SD 1.
    noise : float
        SD of the mean of the items, in parts of the spread of the groups.
    groups : int
        Number of groups.
    items : tuple of int
        Number of items of either measure.
    rng : numpy.random.Generator
        Source of effects and items.

    Returns
    -------
    tuple
        The measured effects (a column per measure), their bootstrap draws by measure, and the rank
        correlation of the true effects.
    """
    shared = rng.normal(0, 1, groups)
    true = {
        "one": share * shared + rng.normal(0, 1, groups),
        "other": share * shared + rng.normal(0, 1, groups),
    }

    measured = {}
    draws = {}
    for (name, effect), n in zip(true.items(), items, strict=True):
        # The mean of n such items has an error of `noise` times the spread of the groups.
        spread = noise * effect.std() * np.sqrt(n)
        answers = effect + rng.normal(0, spread, (n, groups))
        measure = effects.measure(pd.DataFrame(answers), 1.0, rng, 500)
        measured[name] = measure.effects.effect
        draws[name] = measure.draws

    rho = pd.DataFrame(true).corr("spearman").loc["one", "other"]
    return pd.DataFrame(measured), draws, rho


def interval_of_agreement(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate twelve groups, twelve events and five rounds.

    The interval is about these groups and other items.
    """
    for noise, claimed in ((0.1, 0.92), (0.3, 0.89), (1.0, 0.72)):
        inside = []
        for _ in range(PAIRS):
            table, draws, rho = instruments(1.0, noise, 12, (12, 5), rng)
            agreement = effects.rank_correlations(table, draws, 0, 99).iloc[0]
            inside.append(agreement.low <= rho <= agreement.high)

        yield {
            "what": f"interval of agreement, errors {noise:g} of the spread of the groups",
            "n": 12,
            "claimed": claimed,
            "inside": inside,
        }


def test_of_agreement(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate groups in random order: pairs of measures, and any of fifteen pairs after Holm."""
    by_pair = []
    by_family = []
    for seed in range(FAMILIES):
        # Six measures make the fifteen pairs over which notebook 60 corrects.
        table = pd.DataFrame(rng.normal(0, 1, (12, 6)), columns=list("abcdef"))
        # There is one draw, equal to the table, because only the test is looked at.
        draws = {name: table[[name]].T.reset_index(drop=True) for name in table}
        agreement = effects.rank_correlations(table, draws, seed, 999)
        by_pair += list(agreement.p < LEVEL)
        by_family.append((agreement.p_holm < LEVEL).any())

    yield {
        "what": "test of agreement",
        "n": 12,
        "claimed": LEVEL,
        "inside": by_pair,
    }
    yield {
        "what": "test of agreement, any of 15 pairs, Holm",
        "n": 12,
        "claimed": LEVEL,
        "inside": by_family,
    }


def test_of_claims(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate the multiverse's gap on one path by each unit, where no group favours itself."""
    for category, unit, n_events in (
        ("Religion", "identities", 12),
        ("Religion", "events", 12),
        ("Religion", "events", 10),
        ("Race or Ethnicity", "groups", 12),
        ("Race or Ethnicity", "events", 12),
    ):
        same = statistics.same_group(stimuli.identities(category).group[1:])
        rejected = []
        for seed in range(FAMILIES):
            ratings = _ratings_without_gap(rng, same, unit, n_events)
            gap = group_profile.gap(
                ratings,
                same,
                exclusion="listwise",
                matrix="with a person",
                rounding="none",
                unit=unit,
                n_resamples=RESAMPLES,
                seed=seed,
            )
            rejected.append(gap.p < LEVEL)

        yield {
            "what": f"test of the claim of a gap, {category.lower()}, {unit}",
            "n": n_events,
            "claimed": LEVEL,
            "inside": rejected,
        }


def _ratings_without_gap(
    rng: np.random.Generator, same: np.ndarray, unit: str, n_events: int
) -> np.ndarray:
    """Draw ratings in which no group favours itself.

    The unit of the test decides which cells are alike, and whether the gap varies by event.
    """
    # There is one more for "a person", who comes first and belongs to no group.
    n = len(same) + 1
    ratings = rng.normal(0, 1, (n, n, n_events))
    cells = rng.normal(0, 1, same.shape)
    # Names of a group are alike: each has the cells of the first, and a little of its own.
    if unit == "groups":
        first_name = np.argmax(same, axis=0)
        cells = cells[np.ix_(first_name, first_name)] + rng.normal(0, 0.1, same.shape)
    # The mean gap over events is taken out, and one that varies by event is added.
    if unit == "events":
        in_group = cells[same].mean()
        out_group = cells[~same].mean()
        cells -= np.where(same, in_group, out_group)
        is_in_group = np.pad(same, (1, 0))
        ratings += rng.normal(0, 0.3, n_events) * is_in_group[..., None]

    ratings[1:, 1:] += cells[..., None]
    return ratings


ROWS = (interval_of_effect, interval_of_agreement, test_of_agreement, test_of_claims)
