"""What study 2's intervals and tests claim, simulated: 103 scenarios in 4 wordings."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from ingroup.studies.biased_samaritan import statistics, stimuli

DRAWS = 1000
RUNS = 200
ALPHA = 0.01  # the notebook's
SCENARIOS = 103
CONTROL = stimuli.CONTROL
# Points of the scale. As the calibrant's answers spread: those of its scenarios, of their wordings,
# of a group from scenario to scenario, of a drawn answer.
SCENARIO, WORDING, GROUP, ANSWER = 8.0, 5.0, 4.0, 1.5


def answers(names: dict[str, int], rng: np.random.Generator, scenarios: int = SCENARIOS) -> dict:
    """Whole numbers of groups that differ in no mean: each (phrasing, scenario, wording).

    All share scenarios and wordings; a group, but for the control, is better off in some scenarios.
    """
    shared = 60 + rng.normal(0, SCENARIO, (scenarios, 1)) + rng.normal(0, WORDING, (scenarios, 4))
    found = {}
    for name, phrasings in names.items():
        own = rng.normal(0, 0 if name == CONTROL else GROUP, (scenarios, 1))
        drawn = rng.normal(0, ANSWER, (phrasings, *shared.shape))
        found[name] = np.clip(np.rint(shared + own + drawn), 1, 100)
    return found


def named(category: str) -> dict[str, int]:
    """How many phrasings each group of a category has, the control first."""
    return stimuli.phrasings(category).groupby("group", sort=False).size().to_dict()


def held(result: statistics.ScenarioMean | statistics.Bias, truth: float) -> bool:
    """Whether an interval holds the truth."""
    return result.low <= truth <= result.high


def told(kind: str, what: str, inside: list[bool], claimed: float, n: int = SCENARIOS) -> dict:
    """One row."""
    return {"what": f"{kind} of {what}", "n": n, "claimed": claimed, "inside": inside}


def of_a_group(rng: np.random.Generator) -> Iterator[dict]:
    """A group as helpful as the control, and one that is more so by its brittleness."""
    draws = [answers({CONTROL: 1, "group": 2}, rng) for _ in range(DRAWS)]
    found = [(statistics.brittleness(one["group"]), one["group"], one[CONTROL]) for one in draws]
    brittle = float(np.mean([own.mean for own, *_ in found]))
    inside = {
        "helpfulness": [held(statistics.helpfulness(group), 60) for _, group, _ in found],
        "brittleness": [held(own, brittle) for own, *_ in found],
        "excess, no bias": [
            held(statistics.excess_over_brittleness(group, control), -brittle)
            for _, group, control in found
        ],
        "excess, a bias as large as the brittleness": [
            held(statistics.excess_over_brittleness(group + brittle, control), 0)
            for _, group, control in found
        ],
    }
    for what, those in inside.items():
        yield told("interval", what, those, 0.95)


def of_bias(rng: np.random.Generator) -> Iterator[dict]:
    """By what is paired; and by scenarios where these are few."""
    ways = (("scenario", 103, 0.95), ("scenario", 12, 0.95), ("scenario", 4, 0.95))
    for unit, scenarios, claimed in (*ways, ("prompt", 103, 0.70)):  # as `bias` says
        draws = (answers({CONTROL: 1, "group": 2}, rng, scenarios) for _ in range(DRAWS))
        found = [statistics.bias(one["group"], one[CONTROL], unit) for one in draws]
        what = f"bias, {scenarios} scenarios, paired by {unit}"
        yield told("interval", what, [held(one, 0) for one in found], claimed, scenarios)
        yield told("test", what, [one.p < 0.05 for one in found], 1 - claimed, scenarios)


def of_answers_that_hardly_differ(rng: np.random.Generator) -> Iterator[dict]:
    """A greedy model: in most scenarios the same whole number, in few a point more or less."""
    for share in (0.02, 0.05, 0.2):
        points = rng.choice([-1, 0, 1], (DRAWS, SCENARIOS, 1), p=[share / 2, 1 - share, share / 2])
        rejected = [statistics.bias(60 + one, 60 + 0 * one).p < 0.05 for one in points]
        what = f"bias, the same answer in {1 - share:.0%} of the scenarios"
        yield told("test", what, rejected, 0.05)


def of_runs(rng: np.random.Generator) -> Iterator[dict]:
    """Asked twice: the same group again, the control in another category, and the brittleness."""
    found = {"two runs": [], "two controls": [], "brittleness between groups": []}
    for _ in range(DRAWS):
        one = answers({CONTROL: 1, "a": 2, "b": 3}, rng)
        again = one["a"][:1] + np.rint(rng.normal(0, ANSWER, one["a"][:1].shape))
        control = one[CONTROL] + np.rint(rng.normal(0, ANSWER, one[CONTROL].shape))
        found["two runs"].append(statistics.bias(again, one["a"][:1]))
        found["two controls"].append(statistics.bias(control, one[CONTROL]))
        between = statistics.brittleness_between(one).set_index(["one", "other"])
        found["brittleness between groups"].append(between.loc[("a", "b")])
    for what, those in found.items():
        yield told("interval", what, [held(one, 0) for one in those], 0.95)
        yield told("test", what, [one.p < 0.05 for one in those], 0.05)


def of_a_negative_control(rng: np.random.Generator) -> Iterator[dict]:
    """Whole runs of the default design, no group above another: which hold a finding after Holm?"""
    found = {"bias": [], "two runs": [], "brittleness between groups": []}
    for _ in range(RUNS):
        tables = {what: [] for what in found}
        for category in stimuli.categories():
            cells = answers(named(category), rng)
            again = {k: v + np.rint(rng.normal(0, ANSWER, v.shape)) for k, v in cells.items()}
            tables["two runs"].append(statistics.repeatability(cells, again, ALPHA))
            between = statistics.brittleness_between(cells, alpha=ALPHA)
            tables["brittleness between groups"].append(between)
            control = cells.pop(CONTROL)
            tables["bias"].append(statistics.bias_table(cells, control, alpha=ALPHA))
        for what, three in tables.items():
            found[what].append(pd.concat(three).finding.eq("significant").any())
    for what, those in found.items():
        # A category is a family: a run has three chances.
        row = told("test", f"{what}, any of a null run's after Holm", those, 3 * ALPHA)
        yield row | {"nominal": 3 * ALPHA}


ROWS = (of_a_group, of_bias, of_answers_that_hardly_differ, of_runs, of_a_negative_control)
