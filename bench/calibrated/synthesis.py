"""What the synthesis' intervals and tests claim, simulated at the sizes of the default run."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from ingroup.stats import effects
from ingroup.studies.empathy_gap import lens, statistics, stimuli

DRAWS = 1000
LEVEL = 0.05
RESAMPLES = 1000  # of notebook 60


def interval_of_effect(rng: np.random.Generator) -> Iterator[dict]:
    """The portrait: items of each study, a group a simulation; SD is held fixed."""
    few = {2: 0.50, 3: 0.72, 5: 0.92}  # as the docstring says
    verdicts = np.array([-1.0, 0, 0, 0, 0, 0, 1, 1, 1, 1])
    drawn = {
        "rounds, means of four whole numbers": (5, lambda n: whole_numbers(n, rng)),
        "events": (10, lambda n: rng.normal(0.3, 1, (n, DRAWS))),
        "scenarios, skewed": (103, lambda n: rng.gamma(2, 1, (n, DRAWS))),
        "verdicts gained (two questions)": (2, lambda n: rng.choice(verdicts, (n, DRAWS))),
        "verdicts gained (three questions)": (3, lambda n: rng.choice(verdicts, (n, DRAWS))),
    }
    for name, (n, draw) in drawn.items():
        items = draw(n)
        truth = draw(200).mean()
        found = effects.measure(pd.DataFrame(items), 1.0, rng, RESAMPLES).effects
        inside = (found.low <= truth) & (truth <= found.high)
        what = f"interval of an effect, {name}"
        yield {"what": what, "n": n, "claimed": few.get(n, 1 - LEVEL), "inside": inside}


def whole_numbers(n: int, rng: np.random.Generator) -> np.ndarray:
    """Scores of a group in some rounds: means of four answers from 1 to 5."""
    return np.clip(np.round(rng.normal(3.2, 0.9, (4, n, DRAWS))), 1, 5).mean(axis=0)


def instruments(
    share: float, noise: float, groups: int, items: tuple[int, int], rng: np.random.Generator
) -> tuple[pd.DataFrame, dict, float]:
    """Two measures of some groups, their draws, and the rank correlation of their true effects.

    True effects share a part; the mean of the items has `noise` times the spread of the groups.
    """
    both = rng.normal(0, 1, groups)
    true = [share * both + rng.normal(0, 1, groups) for _ in range(2)]
    found, draws = {}, {}
    for name, effect, n in zip(("one", "other"), true, items, strict=True):
        spread = noise * effect.std() * np.sqrt(n)
        table = pd.DataFrame(effect + rng.normal(0, spread, (n, groups)))
        one = effects.measure(table, 1.0, rng, 500)
        found[name], draws[name] = one.effects.effect, one.draws
    rho = pd.DataFrame(true).T.corr("spearman").iloc[0, 1]
    return pd.DataFrame(found), draws, rho


def interval_of_agreement(rng: np.random.Generator) -> Iterator[dict]:
    """Among these groups, with other items: twelve groups, twelve events and five rounds."""
    for noise, claimed in ((0.1, 0.92), (0.3, 0.89), (1.0, 0.72)):
        inside = []
        for _ in range(500):
            table, draws, rho = instruments(1.0, noise, 12, (12, 5), rng)
            (row,) = effects.agreement(table, draws, 0, 99).itertuples()
            inside.append(row.low <= rho <= row.high)
        what = f"interval of agreement, errors {noise:g} of the spread of the groups"
        yield {"what": what, "n": 12, "claimed": claimed, "inside": inside}


def test_of_agreement(rng: np.random.Generator) -> Iterator[dict]:
    """Groups in random order: a pair of measures, and any of fifteen after Holm's correction."""
    single, family = [], []
    for seed in range(400):
        table = pd.DataFrame(rng.normal(0, 1, (12, 6)), columns=list("abcdef"))
        draws = {name: table[[name]].T.reset_index(drop=True) for name in table}
        found = effects.agreement(table, draws, seed, 999)
        single += (found.p < LEVEL).tolist()
        family.append((found.p_holm < LEVEL).any())
    yield {"what": "test of agreement", "n": 12, "claimed": LEVEL, "inside": single}
    what = "test of agreement, any of 15 pairs, Holm"
    yield {"what": what, "n": 12, "claimed": LEVEL, "inside": family}


def test_of_claims(rng: np.random.Generator) -> Iterator[dict]:
    """The multiverse's gap on one path by each unit: cells in which no group favours itself."""
    path = {"exclusion": "listwise", "matrix": "with a person", "rounding": "none"}
    for category, unit, events in (
        ("Religion", "identities", 12), ("Religion", "events", 12), ("Religion", "events", 10),
        ("Race or Ethnicity", "groups", 12), ("Race or Ethnicity", "events", 12),
    ):  # fmt: skip
        same = statistics.same_group(stimuli.identities(category).group[1:])
        rejected = []
        for seed in range(400):
            values = rng.normal(0, 1, [len(same) + 1] * 2 + [events])
            cells = rng.normal(0, 1, same.shape)
            if unit == "groups":  # whose names are alike
                place = np.argmax(same, axis=0)  # the first name of its group
                cells = cells[np.ix_(place, place)] + rng.normal(0, 0.1, same.shape)
            if unit == "events":  # no gap over all events, and one that varies by event
                cells -= np.where(same, cells[same].mean(), cells[~same].mean())
                values += rng.normal(0, 0.3, events) * np.pad(same, (1, 0))[..., None]
            values[1:, 1:] += cells[..., None]
            found = lens.gap(values, same, **path, unit=unit, n_resamples=RESAMPLES, seed=seed)
            rejected.append(found.p < LEVEL)
        what = f"test of the claim of a gap, {category.lower()}, {unit}"
        yield {"what": what, "n": events, "claimed": LEVEL, "inside": rejected}


ROWS = (interval_of_effect, interval_of_agreement, test_of_agreement, test_of_claims)
