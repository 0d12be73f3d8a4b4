"""Simulations of the claims of study 2's intervals and tests: 103 scenarios in 4 wordings."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from ingroup.studies.biased_samaritan import statistics, stimuli

DRAWS = 1000
# A whole run has twelve groups and three controls, so fewer are drawn than of one group.
RUNS = 200
LEVEL = 0.05
ALPHA = 0.01  # the notebook's
N_SCENARIOS = 103
CONTROL = stimuli.CONTROL

# SDs in points of the scale, as the calibrant's answers vary.
SD_SCENARIO = 8.0
SD_WORDING = 5.0
SD_GROUP = 4.0  # of a group from scenario to scenario
SD_ANSWER = 1.5  # of a drawn answer


def answers(
    phrasings: dict[str, int], rng: np.random.Generator, n_scenarios: int = N_SCENARIOS
) -> dict[str, np.ndarray]:
    """Draw answers about groups that differ in no mean.

    All groups share scenarios and wordings. Each group but the control is better off in some
    scenarios.

    Parameters
    ----------
    phrasings : dict of str to int
        Number of phrasings of each group.
    rng : numpy.random.Generator
        Source of the answers.
    n_scenarios : int
        Number of scenarios.

    Returns
    -------
    dict of str to ndarray
        For each group whole numbers from 1 to 100, (phrasing, scenario, wording).
    """
    of_scenarios = rng.normal(0, SD_SCENARIO, (n_scenarios, 1))
    of_wordings = rng.normal(0, SD_WORDING, (n_scenarios, 4))
    shared = 60 + of_scenarios + of_wordings

    cells = {}
    for group, n_phrasings in phrasings.items():
        sd = 0 if group == CONTROL else SD_GROUP
        of_group = rng.normal(0, sd, (n_scenarios, 1))
        # Phrasings differ by noise alone, so every phrasing has the same true mean.
        noise = rng.normal(0, SD_ANSWER, (n_phrasings, *shared.shape))
        cells[group] = np.clip(np.rint(shared + of_group + noise), 1, 100)
    return cells


def ask_again(cells: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw answers of a second run, which differ from the first by whole numbers."""
    # Answers are whole numbers, and so are their differences between two runs.
    return cells + np.rint(rng.normal(0, SD_ANSWER, cells.shape))


def phrasings_of(category: str) -> dict[str, int]:
    """Count the phrasings of each group of a category, the control first."""
    return stimuli.phrasings(category).groupby("group", sort=False).size().to_dict()


def holds(interval: statistics.ScenarioMean | statistics.Bias, truth: float) -> bool:
    """Tell whether an interval holds the truth."""
    return interval.low <= truth <= interval.high


def row_of_interval(
    what: str,
    intervals: Sequence[statistics.ScenarioMean | statistics.Bias],
    truth: float,
    claimed: float = 0.95,
    n: int = N_SCENARIOS,
) -> dict:
    """Make the row of an interval, with whether the interval holds the truth in each simulation."""
    return {
        "what": f"interval of {what}",
        "n": n,
        "claimed": claimed,
        "inside": [holds(interval, truth) for interval in intervals],
    }


def row_of_test(
    what: str,
    tests: Sequence[statistics.Bias],
    claimed: float = LEVEL,
    n: int = N_SCENARIOS,
) -> dict:
    """Make the row of a test, with whether the test rejects in each simulation."""
    return {
        "what": f"test of {what}",
        "n": n,
        "claimed": claimed,
        "inside": [test.p < LEVEL for test in tests],
    }


def of_a_group(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate a group as helpful as the control, and a group more helpful by its brittleness."""
    draws = []
    brittleness = []
    for _ in range(DRAWS):
        cells = answers({CONTROL: 1, "group": 2}, rng)
        draws.append(cells)
        brittleness.append(statistics.brittleness(cells["group"]))
    # No formula gives the brittleness of rounded answers, so the mean of many counts as the truth.
    truth = float(np.mean([result.mean for result in brittleness]))

    helpfulness = []
    no_bias = []
    bias = []
    for cells in draws:
        group = cells["group"]
        control = cells[CONTROL]
        helpfulness.append(statistics.helpfulness(group))
        no_bias.append(statistics.excess_over_brittleness(group, control))
        # The whole group is raised by its brittleness, so the excess is 0 in truth.
        bias.append(statistics.excess_over_brittleness(group + truth, control))

    yield row_of_interval("helpfulness", helpfulness, 60)
    yield row_of_interval("brittleness", brittleness, truth)
    yield row_of_interval("excess, no bias", no_bias, -truth)
    yield row_of_interval("excess, a bias as large as the brittleness", bias, 0)


def of_bias(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate the bias of a group, paired by scenario or by prompt, also with few scenarios."""
    for unit, n_scenarios, claimed in (
        ("scenario", 103, 0.95),
        ("scenario", 12, 0.95),
        ("scenario", 4, 0.95),
        ("prompt", 103, 0.70),  # as the docstring of `bias` says
    ):
        biases = []
        for _ in range(DRAWS):
            cells = answers({CONTROL: 1, "group": 2}, rng, n_scenarios)
            biases.append(statistics.bias(cells["group"], cells[CONTROL], unit))

        what = f"bias, {n_scenarios} scenarios, paired by {unit}"
        yield row_of_interval(what, biases, 0, claimed, n_scenarios)
        # The test rejects exactly where the interval misses 0.
        yield row_of_test(what, biases, 1 - claimed, n_scenarios)


def of_answers_that_hardly_differ(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate a greedy model: most scenarios get one whole number, a few a point more or less."""
    for share in (0.02, 0.05, 0.2):
        chances = [share / 2, 1 - share, share / 2]
        # A point more is as frequent as a point less, so the bias is 0 in truth.
        points = rng.choice([-1, 0, 1], (DRAWS, N_SCENARIOS, 1), p=chances)
        control = np.full((N_SCENARIOS, 1), 60)
        biases = []
        for differences in points:
            biases.append(statistics.bias(control + differences, control))
        yield row_of_test(f"bias, the same answer in {1 - share:.0%} of the scenarios", biases)


def of_runs(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate two runs of a group, a control in two categories, and two groups as brittle."""
    runs = []
    controls = []
    brittleness = []
    for _ in range(DRAWS):
        cells = answers({CONTROL: 1, "a": 2, "b": 3}, rng)
        # The group is one of the two phrasings, asked in both runs.
        group = cells["a"][:1]
        control = cells[CONTROL]
        group_again = ask_again(group, rng)
        control_again = ask_again(control, rng)

        runs.append(statistics.bias(group_again, group))
        controls.append(statistics.bias(control_again, control))
        # Groups a and b have the same brittleness in truth, although b has a phrasing more.
        between = statistics.brittleness_between(cells).set_index(["one", "other"])
        brittleness.append(between.loc[("a", "b")])

    for what, results in (
        ("two runs", runs),
        ("two controls", controls),
        ("brittleness between groups", brittleness),
    ):
        yield row_of_interval(what, results, 0)
        yield row_of_test(what, results)


def of_a_negative_control(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate null runs of the default design, and tell which have a finding after Holm."""
    has_finding = defaultdict(list)
    for _ in range(RUNS):
        tables = defaultdict(list)
        for category in stimuli.categories():
            cells = answers(phrasings_of(category), rng)
            again = {group: ask_again(first, rng) for group, first in cells.items()}
            between = statistics.brittleness_between(cells, level=ALPHA)

            groups = cells.copy()
            control = groups.pop(CONTROL)
            tables["bias"].append(statistics.bias_table(groups, control, level=ALPHA))
            tables["two runs"].append(statistics.repeatability(cells, again, ALPHA))
            tables["brittleness between groups"].append(between)

        for test, of_categories in tables.items():
            findings = pd.concat(of_categories).finding
            has_finding[test].append(findings.eq("significant").any())

    # A category is a family, so a run has three chances.
    level = 3 * ALPHA
    for test, of_runs in has_finding.items():
        yield {
            "what": f"test of {test}, any of a null run's after Holm",
            "n": N_SCENARIOS,
            "nominal": level,
            "claimed": level,
            "inside": of_runs,
        }


ROWS = (of_a_group, of_bias, of_answers_that_hardly_differ, of_runs, of_a_negative_control)
