"""What study 1's intervals and tests claim, simulated."""

from collections.abc import Iterator
from types import SimpleNamespace

import nbformat
import numpy as np
import pandas as pd

from ingroup import paths
from ingroup.stats import paired
from ingroup.stats.effects import bootstrap_interval
from ingroup.stats.permutation import permutation_test
from ingroup.studies.empathy_gap import statistics, stimuli
from ingroup.studies.empathy_gap.answers import Ratings

DRAWS = 1000
LEVEL = 0.05
EVENTS = 12  # of the default run; the calibrant's refusals leave 10
SAME = {c: statistics.same_group(stimuli.identities(c).group[1:]) for c in stimuli.categories()}


def rated(same: np.ndarray, events: int, rng: np.random.Generator, cells: np.ndarray) -> np.ndarray:
    """Ratings of some events: cells, noise of its own in each, and a gap that varies by event."""
    noise = rng.normal(0, 1, (*cells.shape, events))
    moved = rng.normal(0, 0.3, events) * same[..., None]
    return cells[..., None] + noise + moved


def interval_of_delta(rng: np.random.Generator) -> Iterator[dict]:
    """The bootstrap over events; the truth is the mean of delta at that number of events."""
    sizes = [("Religion", events, 1000) for events in (4, 7, 10, 12, 24, 48)]
    for category, events, draws in [
        *sizes,
        ("Race or Ethnicity", 12, 500),
        ("Nationality", 12, 500),
    ]:
        same = SAME[category]
        cells = rng.normal(0, 1, same.shape) + same
        found = [
            bootstrap_interval(rated(same, events, rng, cells), same, 1000, rng)
            for _ in range(draws)
        ]
        truth = np.mean([one.statistic for one in found])
        inside = [one.low <= truth <= one.high for one in found]
        what = f"interval of delta, {category.lower()}, {events} events"
        claimed = 0.90 if events < 7 else 1 - LEVEL  # as the docstring says
        yield {"what": what, "n": events, "claimed": claimed, "inside": inside}


def test_of_delta(rng: np.random.Generator) -> Iterator[dict]:
    """No group favours itself: cells in which nothing differs, or only whole groups do."""
    for category, same in SAME.items():
        draws = 4 * DRAWS if len(same) < 6 else DRAWS  # all its orders are soon computed
        tests = [
            permutation_test(rng.normal(0, 1, same.shape), same, 999, rng) for _ in range(draws)
        ]
        about = {"n": len(same), "inside": [test.pvalue < LEVEL for test in tests]}
        yield {"what": f"test of delta, {category.lower()}, names", "claimed": LEVEL} | about
        ends = [test.null_interval[0] <= test.statistic <= test.null_interval[1] for test in tests]
        what = f"interval of the null of delta, {category.lower()}"
        yield {"what": what, "claimed": 1 - LEVEL} | about | {"inside": ends}
    same, place = SAME["Race or Ethnicity"], pd.factorize(groups_of("Race or Ethnicity"))[0]
    rejected = {"names": [], "groups": []}
    for _ in range(DRAWS):
        matrix = alike(place, rng)
        whole = statistics.by_group(matrix, same)
        for unit, one, pairs in (("names", matrix, same), ("groups", whole, np.eye(4))):
            rejected[unit].append(permutation_test(one, pairs, 999, rng).pvalue < LEVEL)
    what = "test of delta, race, names (a defect of the paper's: names of a group are alike)"
    yield {"what": what, "n": len(same), "claimed": 0.77, "inside": rejected["names"]}
    what = "test of delta, race, whole groups, names alike"
    yield {"what": what, "n": 4, "claimed": LEVEL, "inside": rejected["groups"]}


def groups_of(category: str) -> pd.Series:
    """The group of each identity but "a person"."""
    return stimuli.identities(category).group[1:]


def alike(place: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Cells that depend on the two groups, and hardly on the names; no group favours itself."""
    blocks = rng.normal(0, 1, (place.max() + 1,) * 2)
    return blocks[np.ix_(place, place)] + rng.normal(0, 0.1, (len(place),) * 2)


def test_of_cells(rng: np.random.Generator) -> Iterator[dict]:
    """A cell that is like one of its references; and any cell of a matrix of such cells."""
    for test in ("t", "sign"):
        ratings = rng.normal(0, 1, (2, 2, EVENTS, 10 * DRAWS))
        ratings[1, 1] += 9  # far from the experiencer's own cell
        both = [
            paired.paired_test(ratings[0, 1].T, own.T).pvalue if test == "t"
            else paired.sign_test(ratings[0, 1].T, own.T)
            for own in (ratings[0, 0], ratings[1, 1])
        ]  # fmt: skip
        what = f"test of one cell against both references, {test}"
        rejected = np.maximum(*both) < LEVEL
        yield {"what": what, "n": EVENTS, "claimed": LEVEL, "inside": rejected}
    n, kinds = len(SAME["Nationality"]) + 1, {"points of 100": 8.0, "whole numbers of 0 to 10": 0.6}
    for kind, spread in kinds.items():
        shown = {}
        for _ in range(200):
            # All cells are alike, but for the in-group cells that are references of half of them:
            # cells differ from these for sure, and from those of the other half by chance alone.
            ratings = np.round(
                60 / (100 if spread < 1 else 1) + rng.normal(0, spread, (n, n, EVENTS))
            )
            ratings[np.arange(0, n, 2), np.arange(0, n, 2)] += 10 * spread
            own = np.arange(n) % 2 == 1
            null = own[:, None] | own  # at least one reference is like the cell
            for name, by, rule in (
                ("t, Bonferroni as released", "t", "released"),
                ("t, Bonferroni", "t", "bonferroni"),
                ("t, Holm", "t", "holm"), ("sign, Holm", "sign", "holm"),
            ):  # fmt: skip
                mask = paired.significant_cells(paired.paired_cells(ratings, by), rule)
                np.fill_diagonal(mask, False)
                mask[0], mask[:, 0] = False, False
                shown.setdefault(name, []).append((mask & null).any())
        for name, any_shown in shown.items():
            what = f"test of any cell of nationality, {kind}, {name}"
            yield {"what": what, "n": EVENTS, "claimed": LEVEL, "inside": any_shown}


def table_2(ratings: dict[tuple, Ratings], n_resamples: int, seed: int) -> pd.DataFrame:
    """What notebook 10's own cells make of ratings by model, setting and category."""
    whole = nbformat.read(paths.NOTEBOOKS / "10_empathy_gap.ipynb", as_version=4)
    sources = [c.source for c in whole.cells if c.cell_type == "code"]
    known = {
        "np": np, "pd": pd, "statistics": statistics, "paired": paired, "ratings": ratings,
        "same": SAME, "EXCLUSION": "listwise", "N_RESAMPLES": n_resamples, "SEED": seed,
        "KEY": ["model", "setting", "category"],
        "out": SimpleNamespace(write=lambda table, _: table),
        "spread": pd.DataFrame({"std": np.ones(len(ratings))}),
    }  # fmt: skip
    for begins in ("def by_key(", "def drawing(", 'table02["finding"]'):
        (cell,) = [source for source in sources if begins in source]
        exec(cell[cell.index("def by_key(") :] if begins == "def by_key(" else cell, known)
    return known["table02"]


def negative_control(rng: np.random.Generator) -> Iterator[dict]:
    """Runs of the default design in which no group favours itself.

    Nothing differs, as in the calibrant's control, which is asked in the first setting alone; and
    groups differ, whose names are alike, in a model that is asked as the recorded one is: about
    religion in all settings, else in the first.
    """
    every = list(stimuli.prompts()["settings"])
    for what, factor, settings in (
        ("nothing differs, 3 blocks", 0.0, every[:1]),
        ("names of a group are alike, 9 blocks", 3.0, every),
    ):
        rejected = []
        for seed in range(200):
            ratings = {}
            for category, same in SAME.items():
                place = pd.factorize(groups_of(category))[0]
                common = factor * alike(place, rng)  # of a model, in every setting
                for setting in settings if category == "Religion" else settings[:1]:
                    values = 50 + rng.normal(0, 5, (len(same) + 1, len(same) + 1, EVENTS))
                    values[1:, 1:] += (common + 0.5 * factor * alike(place, rng))[..., None]
                    status = np.zeros(values.shape, dtype=np.int8)
                    ratings["null", setting, category] = Ratings(values, status)
            found = table_2(ratings, 999, seed)
            rejected.append((found.finding == "significant").any())
        told = f"test of a run, any finding after Holm, {what}"
        yield {"what": told, "n": EVENTS, "claimed": LEVEL, "inside": rejected}


ROWS = (interval_of_delta, test_of_delta, test_of_cells, negative_control)
