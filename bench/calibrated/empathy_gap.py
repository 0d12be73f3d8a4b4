"""Simulations of the claims of study 1's intervals and tests."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import NamedTuple

import nbformat
import numpy as np
import pandas as pd

from ingroup import paths
from ingroup.families import corrected, families
from ingroup.stats import paired
from ingroup.stats.effects import bootstrap_interval
from ingroup.stats.permutation import permutation_test
from ingroup.studies.empathy_gap import statistics, stimuli
from ingroup.studies.empathy_gap.answers import Ratings

DRAWS = 1000
RUNS = 200
LEVEL = 0.05
EVENTS = 12  # of the default run; the calibrant's refusals leave 10
GROUPS = {name: stimuli.identities(name).group[1:] for name in stimuli.categories()}
SAME = {name: statistics.same_group(group) for name, group in GROUPS.items()}


def draw_ratings(
    same: np.ndarray, n_events: int, rng: np.random.Generator, cells: np.ndarray
) -> np.ndarray:
    """Draw ratings of some events.

    Parameters
    ----------
    same : ndarray of bool
        Whether perceiver and experiencer share a group, (n, n).
    n_events : int
        Number of events.
    rng : numpy.random.Generator
        Source of the ratings.
    cells : ndarray
        Mean of each pair, (n, n).

    Returns
    -------
    ndarray
        Cells with noise and with a gap that varies by event, (n, n, event).
    """
    noise = rng.normal(0, 1, (*cells.shape, n_events))
    gap = rng.normal(0, 0.3, n_events) * same[..., None]
    return cells[..., None] + noise + gap


def interval_of_delta(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate the bootstrap over events.

    The truth is the mean of delta at that number of events.
    """
    for n_events in (4, 7, 10, 12, 24, 48):
        # As the docstring of `bootstrap_interval` says.
        claimed = 0.90 if n_events < 7 else 1 - LEVEL
        yield _row_of_delta(rng, "Religion", n_events, DRAWS, claimed)
    yield _row_of_delta(rng, "Race or Ethnicity", EVENTS, DRAWS // 2, 1 - LEVEL)
    yield _row_of_delta(rng, "Nationality", EVENTS, DRAWS // 2, 1 - LEVEL)


def _row_of_delta(
    rng: np.random.Generator, category: str, n_events: int, draws: int, claimed: float
) -> dict:
    """Simulate the interval of delta of one category at one number of events."""
    same = SAME[category]
    # Cells are drawn once, as these groups stay and events are the sample.
    cells = rng.normal(0, 1, same.shape) + same
    intervals = []
    for _ in range(draws):
        ratings = draw_ratings(same, n_events, rng, cells)
        intervals.append(bootstrap_interval(ratings, same, 1000, rng))

    truth = np.mean([interval.statistic for interval in intervals])
    return {
        "what": f"interval of delta, {category.lower()}, {n_events} events",
        "n": n_events,
        "claimed": claimed,
        "inside": [interval.low <= truth <= interval.high for interval in intervals],
    }


def test_of_delta(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate cells in which no group favours itself.

    Cells differ by chance, or whole groups differ.
    """
    for category, same in SAME.items():
        # For few identities the test goes through all their orders, which is fast.
        draws = 4 * DRAWS if len(same) < 6 else DRAWS
        rejected = []
        in_null = []
        for _ in range(draws):
            test = permutation_test(rng.normal(0, 1, same.shape), same, 999, rng)
            low, high = test.null_interval
            rejected.append(test.pvalue < LEVEL)
            in_null.append(low <= test.statistic <= high)

        yield {
            "what": f"test of delta, {category.lower()}, names",
            "n": len(same),
            "claimed": LEVEL,
            "inside": rejected,
        }
        yield {
            "what": f"interval of the null of delta, {category.lower()}",
            "n": len(same),
            "claimed": 1 - LEVEL,
            "inside": in_null,
        }

    same = SAME["Race or Ethnicity"]
    group, _ = pd.factorize(GROUPS["Race or Ethnicity"])
    by_names = []
    by_groups = []
    for _ in range(DRAWS):
        matrix = draw_alike_names(group, rng)
        test = permutation_test(matrix, same, 999, rng)
        by_names.append(test.pvalue < LEVEL)
        test = permutation_test(statistics.matrix_of_groups(matrix, same), np.eye(4), 999, rng)
        by_groups.append(test.pvalue < LEVEL)

    yield {
        "what": "test of delta, race, names (a defect of the paper's: names of a group are alike)",
        "n": len(same),
        "claimed": 0.77,
        "inside": by_names,
    }
    yield {
        "what": "test of delta, race, whole groups, names alike",
        "n": 4,
        "claimed": LEVEL,
        "inside": by_groups,
    }


def draw_alike_names(group: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw cells that depend on the two groups, and hardly on the names.

    Parameters
    ----------
    group : ndarray of int
        Number of the group of each name, from 0.
    rng : numpy.random.Generator
        Source of the cells.

    Returns
    -------
    ndarray
        Cells, (n, n), in which no group favours itself.
    """
    n_names = len(group)
    n_groups = group.max() + 1
    pairs = rng.normal(0, 1, (n_groups, n_groups))
    return pairs[np.ix_(group, group)] + rng.normal(0, 0.1, (n_names, n_names))


def test_of_cells(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate a cell that is like one of its references, and a matrix of such cells."""
    for test in ("t", "sign"):
        # The shape is (perceiver, experiencer, event, simulation). The 2 x 2 are one cell, its two
        # references, and a fourth.
        ratings = rng.normal(0, 1, (2, 2, EVENTS, 10 * DRAWS))
        # The cell differs from the experiencer's own cell for sure, and from the perceiver's by
        # chance.
        ratings[1, 1] += 9
        # Cells are turned to (simulation, event), because the tests run over the last axis.
        cell = ratings[0, 1].T
        of_perceiver = ratings[0, 0].T
        of_experiencer = ratings[1, 1].T
        if test == "t":
            p_perceiver = paired.paired_test(cell, of_perceiver).pvalue
            p_experiencer = paired.paired_test(cell, of_experiencer).pvalue
        else:
            p_perceiver = paired.sign_test(cell, of_perceiver)
            p_experiencer = paired.sign_test(cell, of_experiencer)

        yield {
            "what": f"test of one cell against both references, {test}",
            "n": EVENTS,
            "claimed": LEVEL,
            # A cell counts where both tests reject.
            "inside": np.maximum(p_perceiver, p_experiencer) < LEVEL,
        }

    yield from _any_cell_of_nationality(rng, "points of 100", mean=60.0, sd=8.0)
    yield from _any_cell_of_nationality(rng, "whole numbers of 0 to 10", mean=0.6, sd=0.6)


class CellTest(NamedTuple):
    """A test of cells and its correction."""

    name: str
    test: str
    correction: str


CELL_TESTS = (
    CellTest("t, Bonferroni as released", "t", "released"),
    CellTest("t, Bonferroni", "t", "bonferroni"),
    CellTest("t, Holm", "t", "holm"),
    CellTest("sign, Holm", "sign", "holm"),
)


def _any_cell_of_nationality(
    rng: np.random.Generator, scale: str, mean: float, sd: float
) -> Iterator[dict]:
    """Simulate a matrix in which each cell that counts is like at least one of its references.

    All cells are alike, except for every second in-group cell. Other cells differ from these
    in-group cells for sure, and from the remaining in-group cells by chance alone.
    """
    n = len(SAME["Nationality"]) + 1
    shifted = np.arange(0, n, 2)
    is_like_others = np.arange(n) % 2 == 1
    is_null = is_like_others[:, None] | is_like_others

    has_finding = defaultdict(list)
    for _ in range(RUNS):
        ratings = np.round(mean + rng.normal(0, sd, (n, n, EVENTS)))
        ratings[shifted, shifted] += 10 * sd
        for name, test, correction in CELL_TESTS:
            pvalues = paired.cell_pvalues(ratings, test)
            is_significant = paired.cells_to_show(pvalues, correction)
            # Own cells and those of "a person", the first identity, do not count.
            np.fill_diagonal(is_significant, False)
            is_significant[0] = False
            is_significant[:, 0] = False
            has_finding[name].append((is_significant & is_null).any())

    for name, inside in has_finding.items():
        yield {
            "what": f"test of any cell of nationality, {scale}, {name}",
            "n": EVENTS,
            "claimed": LEVEL,
            "inside": inside,
        }


def table_2(ratings: dict[tuple, Ratings], n_resamples: int, seed: int) -> pd.DataFrame:
    """Compute Table 2 with the cells of notebook 10.

    Parameters
    ----------
    ratings : dict of tuple to Ratings
        Ratings of each model, setting and category.
    n_resamples : int
        Number of permutations and of bootstrap draws.
    seed : int
        Seed of the permutations and draws.

    Returns
    -------
    DataFrame
        One row per model, setting and category.
    """
    notebook = nbformat.read(paths.NOTEBOOKS / "10_empathy_gap.ipynb", as_version=4)
    sources = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    names = {
        "np": np,
        "pd": pd,
        "corrected": corrected,
        "families": families,
        "paired": paired,
        "statistics": statistics,
        "ratings": ratings,
        "same": SAME,
        "spread": pd.DataFrame({"std": np.ones(len(ratings))}),
        "out": SimpleNamespace(write=lambda table, _: table),
        "EXCLUSION": "listwise",
        "KEY": ["model", "setting", "category"],
        "N_RESAMPLES": n_resamples,
        "SEED": seed,
    }

    # Above `by_key` its cell reads the parameters of a run. `names` has them already.
    by_key = _cell_with("def by_key(", sources)
    # Each cell finds in `names` what the cells before it made.
    exec(by_key[by_key.index("def by_key(") :], names)
    exec(_cell_with("def drawing(", sources), names)
    exec(_cell_with('table02["finding"]', sources), names)
    return names["table02"]


def _cell_with(text: str, sources: Sequence[str]) -> str:
    """Return the one cell that holds a text."""
    (cell,) = [source for source in sources if text in source]
    return cell


def negative_control(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate runs of the default design in which no group favours itself.

    The first kind of run has no differences. The calibrant's control answers so, in the first
    setting alone. The second kind has groups that differ and names of a group that are alike. Its
    model answers as the recorded model does: about religion in all settings, else in the first.

    Each setting is a family of its own (``data/families.yaml``). So a run of seven settings has a
    finding more often than a single setting.
    """
    settings = list(stimuli.prompts()["settings"])
    yield _row_of_runs(rng, "nothing differs, 3 blocks", 0.0, settings[:1], LEVEL)
    several = "names of a group are alike, 9 blocks in 7 settings, each a family"
    yield _row_of_runs(rng, several, 3.0, settings, 0.14)


def _row_of_runs(
    rng: np.random.Generator,
    condition: str,
    factor: float,
    settings: Sequence[str],
    claimed: float,
) -> dict:
    """Simulate in how many runs Table 2 has a finding after Holm's correction."""
    has_finding = []
    for seed in range(RUNS):
        ratings = {}
        for category in SAME:
            group, _ = pd.factorize(GROUPS[category])
            # There is one more for "a person", who comes first and belongs to no group.
            n = len(group) + 1
            # Groups differ in the same way in all settings, and half as much anew in each setting.
            in_all_settings = factor * draw_alike_names(group, rng)
            asked = settings if category == "Religion" else settings[:1]
            for setting in asked:
                values = 50 + rng.normal(0, 5, (n, n, EVENTS))
                in_setting = 0.5 * factor * draw_alike_names(group, rng)
                values[1:, 1:] += (in_all_settings + in_setting)[..., None]
                status = np.zeros(values.shape, dtype=np.int8)
                ratings["null", setting, category] = Ratings(values, status)

        table = table_2(ratings, 999, seed)
        has_finding.append((table.finding == "significant").any())

    return {
        "what": f"test of a run, any finding after Holm, {condition}",
        "n": EVENTS,
        "claimed": claimed,
        "inside": has_finding,
    }


ROWS = (interval_of_delta, test_of_delta, test_of_cells, negative_control)
