"""What study 1's intervals and tests claim, simulated."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from ingroup.stats.effects import bootstrap_interval
from ingroup.stats.permutation import permutation_test
from ingroup.studies.empathy_gap import statistics, stimuli

DRAWS = 1000
LEVEL = 0.05


def rated(same: np.ndarray, events: int, rng: np.random.Generator, cells: np.ndarray) -> np.ndarray:
    """Ratings of some events: cells, noise of its own in each, and a gap that varies by event."""
    noise = rng.normal(0, 1, (*cells.shape, events))
    moved = rng.normal(0, 0.3, events) * same[..., None]
    return cells[..., None] + noise + moved


def interval_of_delta(rng: np.random.Generator) -> Iterator[dict]:
    """The bootstrap over events, for religion; the truth is the mean of delta at that number."""
    same = np.eye(5, dtype=bool)
    for events in (4, 7, 12, 24, 48):
        cells = rng.normal(0, 1, same.shape) + same
        found = [
            bootstrap_interval(rated(same, events, rng, cells), same, rng=rng) for _ in range(DRAWS)
        ]
        truth = np.mean([one.statistic for one in found])
        inside = [one.low <= truth <= one.high for one in found]
        what = f"interval of delta, {events} events"
        yield {"what": what, "n": events, "claimed": 1 - LEVEL, "inside": inside}


def test_of_delta(rng: np.random.Generator) -> Iterator[dict]:
    """Names of a group behave alike and no group favours itself: race, by names and by groups."""
    groups = stimuli.identities("Race or Ethnicity").group[1:]
    same, place = statistics.same_group(groups), pd.factorize(groups)[0]
    rejected = {"names": [], "groups": []}
    for _ in range(DRAWS):
        blocks = rng.normal(0, 1, (4, 4))
        matrix = blocks[np.ix_(place, place)] + rng.normal(0, 0.1, same.shape)
        whole = statistics.by_group(matrix, same)
        for unit, one, pairs in (("names", matrix, same), ("groups", whole, np.eye(4))):
            rejected[unit].append(permutation_test(one, pairs, 999, rng).pvalue < LEVEL)
    for unit, told in rejected.items():
        what = f"test of delta, race, {unit} in random order"
        yield {"what": what, "n": len(groups) if unit == "names" else 4, "claimed": LEVEL,
               "inside": told}  # fmt: skip


ROWS = (interval_of_delta, test_of_delta)
