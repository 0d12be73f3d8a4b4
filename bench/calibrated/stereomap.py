"""What study 4's intervals and tests claim, simulated."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from ingroup import published
from ingroup.stats.effects import spearman
from ingroup.studies.stereomap import clustering, statistics

DRAWS, MAPS, LEVEL = 1000, 200, 0.05
GROUPS, ORIGINAL, ROUNDS, CLUSTERS, PROMPTS = 98, 24, 5, 5, 7  # as in the default run
CONSTRUCT = np.array([0, 1, 1, 1, 1, 2, 3])  # of each EXTENDED prompt
AXES = statistics.AXES


def groups_of(points: np.ndarray, columns: list[str] = AXES) -> pd.DataFrame:
    """Positions of groups that have names, as `group_means` returns them."""
    names = pd.Index([f"group {k}" for k in range(len(points))], name="group")
    return pd.DataFrame(points, names, columns)


def test_of_clusters(rng: np.random.Generator) -> Iterator[dict]:
    """Competence is rated as warmth is: groups without a place of their own, and with one."""
    for kind, apart in (("alike", 0.0), ("with a place of their own", 0.8)):
        told = {"printed": [], "other rounds": [], "any": [], "holds": [], "whole": [], "map": []}
        for draw in range(MAPS):
            places = rng.normal(3, apart, (GROUPS, 2))
            rounds = places[:, None] + rng.normal(0, 0.3, (GROUPS, ROUNDS, 2))
            means, half, other = (
                groups_of(part.mean(axis=1)) for part in (rounds, rounds[:, :3], rounds[:, 3:])
            )
            labels = clustering.clusters(means, CLUSTERS, 20, draw).labels
            null = clustering.exchange_null(means, CLUSTERS, rng, n_draws=99)
            table = clustering.axis_tests(means, labels, null=null)
            again = clustering.clusters(half, CLUSTERS, 20, draw).labels
            told["printed"] += [*(table.p < 0.001)]
            told["other rounds"] += [*(clustering.axis_tests(other, again).p < 0.001)]
            told["any"].append((table.p_exchanged < LEVEL).any())
            truth = pd.Series(places[:, 0] - places[:, 1], means.index).groupby(labels).mean()
            null = clustering.exchange_null(means, 1, rng, n_draws=99)
            row = clustering.axis_tests(means, labels * 0, null=null).loc[0]
            told["whole"].append(row.p_exchanged < LEVEL)
            told["map"].append(row.low <= 0 <= row.high)
            told["holds"] += [*((table.low <= truth) & (truth <= table.high))[table.n > 1]]
        # The paper's test and interval choose and judge by the same answers: defects, so claimed is
        # what the notebook and the docstrings say that they do. Other rounds remove noise alone.
        row, what = {"n": GROUPS, "claimed": 0.7}, "test of a cluster, groups " + kind
        row["nominal"] = 0.001
        yield {"what": f"{what}, as printed (a defect)", **row, "inside": told["printed"]}
        row["claimed"] = 0.62 if apart else 0.001
        defect = " (a defect: places stay)" if apart else ""
        yield {"what": f"{what}, other rounds{defect}", **row, "inside": told["other rounds"]}
        del row["nominal"]
        row["claimed"] = LEVEL
        yield {"what": f"{what}, axes exchanged", **row, "inside": told["any"]}
        yield {"what": f"test of a whole map, groups {kind}", **row, "inside": told["whole"]}
        row["claimed"] = 1 - LEVEL
        what = f"interval of a whole map's difference, groups {kind}"
        yield {"what": what, **row, "inside": told["map"]}
        row["claimed"] = 1 if apart else 0.15
        what = f"interval of a cluster's difference, groups {kind}, as printed (a defect)"
        yield {"what": what, **row, "inside": told["holds"]}


def correlation_over_groups(rng: np.random.Generator) -> Iterator[dict]:
    """Normal scores that go together (interval) and do not (test)."""
    for n in (GROUPS, ORIGINAL):
        r, found, rejected = 0.6, [], []
        truth = 6 / np.pi * np.arcsin(r / 2)
        for _ in range(DRAWS):
            both = groups_of(rng.multivariate_normal([0, 0], [[1, r], [r, 1]], n), ["x", "y"])
            row = statistics.correlations(both, ["x"], ["y"], rng, 9).loc[0]
            found.append(row.low <= truth <= row.high)
            rejected.append(spearman(*rng.normal(0, 1, (2, n)), rng, 199)[1] < LEVEL)
        what = f"correlation over {n} groups"
        yield {"what": f"interval of a {what}", "n": n, "claimed": 1 - LEVEL, "inside": found}
        yield {"what": f"test of a {what}", "n": n, "claimed": LEVEL, "inside": rejected}


def agreement_with_people(rng: np.random.Generator) -> Iterator[dict]:
    """The people's 24 groups share five places; the model's have none, or five of its own."""
    people = published.load("stereomap", 2).query("source.str.startswith('Fiske')")
    people = people.set_index("group").rename(columns=str.capitalize)[AXES]
    cluster = pd.factorize(people.Warmth)[0]
    for kind, shared in (("each", False), ("by five", True)):
        rejected = []
        for _ in range(2 * MAPS):
            places = rng.normal(3, 0.5, (len(people), 2))
            places = (places[cluster] if shared else places) + rng.normal(0, 0.1, places.shape)
            mine = pd.DataFrame(places, people.index, AXES)
            rejected.append(statistics.agreement(mine, people, rng, 199)["p"] < LEVEL)
        what = f"test of agreement with people, places drawn {kind}"
        yield {"what": what, "n": len(people), "claimed": LEVEL, "inside": rejected}


def interval_of_refusals(rng: np.random.Generator) -> Iterator[dict]:
    """Rounds of a prompt are independent, or nearly the same."""
    group, prompt = np.divmod(np.repeat(np.arange(GROUPS * PROMPTS), ROUNDS), PROMPTS)
    for kind, size in (("independent", 1e6), ("alike", 2.0)):
        inside = []
        for _ in range(30):
            rate = rng.uniform(0.1, 0.5, GROUPS)
            of_prompt = rng.beta(*(np.repeat(share, PROMPTS) * size for share in (rate, 1 - rate)))
            refused = rng.random(len(group)) < np.repeat(of_prompt, ROUNDS)
            told = {"group": group, "prompt": prompt, "construct": CONSTRUCT[prompt]}
            told["status"] = np.where(refused, "refused", "ok")
            table = statistics.refusal_rates(pd.DataFrame(told)).set_index("group").sort_index()
            inside += [*((table.low <= rate) & (rate <= table.high))]
        what = f"interval of a refusal rate, rounds of a prompt {kind}"
        yield {"what": what, "n": ROUNDS * PROMPTS, "claimed": 1 - LEVEL, "inside": inside}


def negative_control(rng: np.random.Generator) -> Iterator[dict]:
    """Runs of the default design on a model that rates every group alike: a finding in a table."""
    words = published.load("stereomap", 4)
    families = words.groupby("family", sort=False).dimension.unique()
    people = groups_of(rng.normal(3, 1, (ORIGINAL, 2)))
    found = {"clusters": [], "Table 8": [], "structure": [], "people": []}
    index = groups_of(np.zeros((GROUPS, 2))).index.repeat(ROUNDS)
    for draw in range(MAPS):
        ratings = rng.choice(5, (len(index), len(words)), p=[0.05, 0.1, 0.35, 0.35, 0.15]) + 1.0
        ratings = pd.DataFrame(ratings, index, words.word).reset_index()
        ratings.insert(1, "round", np.tile(np.arange(ROUNDS), GROUPS))
        means = statistics.group_means(statistics.round_scores(ratings, words))
        labels = clustering.clusters(means, CLUSTERS, 20, draw).labels
        null = clustering.exchange_null(means, CLUSTERS, rng, n_draws=99)
        table = clustering.axis_tests(means, labels, null=null)
        found["clusters"].append((table.p_exchanged < LEVEL).any())
        rows, some = [*AXES, *families["Emotion"]], means[:ORIGINAL]
        table = statistics.correlations(means, rows, families["Behavior"], rng, 1999)
        found["Table 8"].append((table.p_holm < LEVEL).any())
        table = statistics.correlations(some, families["Emotion"][:2], AXES, rng, 499)
        found["structure"].append((table.p_holm < LEVEL).any())
        found["people"].append(statistics.agreement(some, people, rng, 499)["p"] < LEVEL)
    for of, inside in found.items():
        what = f"test of the negative control, {of}: any finding in a run"
        yield {"what": what, "n": GROUPS, "claimed": LEVEL, "inside": inside}


ROWS = (
    test_of_clusters,
    correlation_over_groups,
    agreement_with_people,
    interval_of_refusals,
    negative_control,
)
