"""Where claims hold and where they break: conditions that the other modules do not simulate.

Each condition is simulated for the interval or test of the notebooks (scope "these") and, where
there is one, for that of names, phrasings and groups like these (:mod:`ingroup.stats.crossed`).

Four conditions were made stronger until they failed as badly as reported elsewhere. They show how
badly a claim can fail, not how badly it fails for real answers. Weaker ones gave, first the weaker:

- 3 % of scenarios shift by 30 points: ratings of SD 5 reject in .067 of cases, of SD 1 in .12.
- Scenarios in families of ten: families of SD 2 reject in .26, of SD 4 in .41.
- Clusters of unequal spread: twice the spread rejects in .16, three times in .46.
- A clustered share with one large cluster: of 30 beside 30 items alone it covers .78, of 100 beside
  10 it covers .16.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from calibrated.stereomap import groups_of
from calibrated.synthesis import instruments
from ingroup.stats import crossed, effects, paired, power
from ingroup.stats.effects import bootstrap_interval, spearman
from ingroup.stats.permutation import permutation_test
from ingroup.studies.biased_samaritan import statistics as helpfulness
from ingroup.studies.empathy_gap import statistics, stimuli
from ingroup.studies.giebench import stimuli as questions
from ingroup.studies.stereomap import clustering

DRAWS = 1000
FEW = 400  # of what takes longer
LEVEL = 0.05
EVENTS = 12
SCENARIOS = 103
PHRASINGS = {"a": 3, "b": 2, "c": 2, "d": 2, "e": 2}  # of the groups of race
PEOPLE = {name: stimuli.identities(name)[1:] for name in stimuli.categories()}
SAME = {name: statistics.same_group(people.group) for name, people in PEOPLE.items()}
STUDY_1 = {"study": "empathy_gap"}
STUDY_2 = {"study": "biased_samaritan", "n": SCENARIOS}
LIKE = {"scope": "like these"}


def holds(effect: crossed.Effect, truth: float = 0.0) -> bool:
    """Tell whether an interval holds the truth."""
    return bool(effect.low <= truth <= effect.high)


def rejects(effect: crossed.Effect) -> bool:
    """Tell whether a test rejects."""
    return bool(effect.p < LEVEL)


def levels(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw what perceivers give and targets get, (n, n), with SD 1."""
    return rng.normal(0, 1, (n, 1)) + rng.normal(0, 1, (1, n))


def gap_in_few_events(rng: np.random.Generator) -> Iterator[dict]:
    """One event of ten has a gap of 10 points, the others none."""
    same = SAME["Religion"]
    n = len(same)
    cells = rng.normal(0, 1, same.shape)
    for events, claimed, like in ((12, 0.7, 0.88), (5, 0.5, 0.78)):
        found = []
        inside = []
        for _ in range(DRAWS):
            moved = 10 * (rng.random(events) < 0.1) * same[..., None]
            noise = rng.normal(0, 1, (n, n, events))
            found.append(bootstrap_interval(cells[..., None] + noise + moved, same, 500, rng))
            pairs = levels(rng, n) + rng.normal(0, 1, (n, n))
            inside.append(holds(crossed.own_group(pairs[..., None] + noise + moved), 1.0))
        truth = np.mean([one.statistic for one in found])
        told = STUDY_1 | {"condition": f"a gap in 1 of 10 events, {events} events", "n": events}
        now = [one.low <= truth <= one.high for one in found]
        yield told | {"what": "interval of delta", "claimed": claimed, "inside": now}
        what = "interval of the own-group effect"
        yield told | LIKE | {"what": what, "claimed": like, "inside": inside}


def heavy_tails(rng: np.random.Generator) -> Iterator[dict]:
    """Events' noise is Student's t with 3 degrees of freedom; pairs of groups are normal."""
    same = SAME["Religion"]
    n = len(same)
    cells = rng.normal(0, 1, same.shape)
    found = []
    inside = []
    for _ in range(DRAWS):
        noise = rng.standard_t(3, (n, n, EVENTS))
        found.append(bootstrap_interval(cells[..., None] + noise, same, 500, rng))
        pairs = levels(rng, n) + rng.normal(0, 1, (n, n))
        inside.append(holds(crossed.own_group(pairs[..., None] + noise)))
    truth = np.mean([one.statistic for one in found])
    told = STUDY_1 | {"condition": "heavy-tailed events (t with 3 degrees)", "n": EVENTS}
    now = [one.low <= truth <= one.high for one in found]
    yield told | {"what": "interval of delta", "claimed": 0.95, "inside": now}
    what = "interval of the own-group effect"
    yield told | LIKE | {"what": what, "claimed": 0.95, "inside": inside}


def own_cells_vary_more(rng: np.random.Generator) -> Iterator[dict]:
    """No group favours itself on average; own-group cells have three times the SD of others."""
    claims = {"Race or Ethnicity": (0.15, 0.25, 0.05), "Nationality": (0.43, 0.43, 0.05)}
    claims["Religion"] = (0.24, 0.27, 0.05)
    for category, (today, pooled, by_group) in claims.items():
        same = SAME[category]
        draws = FEW if len(same) > 9 else 4 * DRAWS
        found = {"today": [], "pooled": [], "by group": []}
        for _ in range(draws):
            spread = np.where(same, 3, 1)
            matrix = levels(rng, len(same)) + spread * rng.normal(0, 1, same.shape)
            means = statistics.by_group(matrix, same)
            found["today"].append(permutation_test(matrix, same, 499, rng).pvalue < LEVEL)
            found["pooled"].append(rejects(crossed.own_group(means)))
            found["by group"].append(rejects(crossed.own_group_by_group(means)))
        told = STUDY_1 | {"n": len(same)}
        told["condition"] = f"{category.lower()}, own-group cells vary three times as much"
        yield told | {"what": "test of delta", "claimed": today, "inside": found["today"]}
        what = "test of the own-group effect"
        yield told | LIKE | {"what": what, "claimed": pooled, "inside": found["pooled"]}
        what = "test of the own-group effect, by group"
        yield told | LIKE | {"what": what, "claimed": by_group, "inside": found["by group"]}


def similar_groups(rng: np.random.Generator) -> Iterator[dict]:
    """Similar groups resemble each other, and no group has a jump at its own beyond it."""
    cluster = np.array(stimuli.clusters("Nationality"))
    clusters = (cluster[:, None] == cluster).astype(float)
    line = np.arange(len(cluster))
    near = np.exp(-np.abs(np.subtract.outer(line, line)))
    for kind, similarity, given in (
        ("within cultural clusters", clusters, (0.99, 0.98, 0.05)),
        ("between neighbours on a line", near, (1.0, 1.0, 0.05)),
    ):
        found = {"today": [], "pooled": [], "similarity": [], "clusters": []}
        n = len(cluster)
        for _ in range(FEW):
            matrix = levels(rng, n) + rng.normal(0, 1, (n, n)) + similarity
            found["today"].append(permutation_test(matrix, np.eye(n), 499, rng).pvalue < LEVEL)
            found["pooled"].append(rejects(crossed.own_group(matrix)))
            found["similarity"].append(rejects(crossed.own_group(matrix, similarity)))
            found["clusters"].append(rejects(crossed.own_group(matrix, clusters)))
        told = STUDY_1 | {"n": n, "condition": f"nationality, similarity {kind}, no jump"}
        yield told | {"what": "test of delta", "claimed": given[0], "inside": found["today"]}
        what = "test of the own-group effect"
        yield told | LIKE | {"what": what, "claimed": given[1], "inside": found["pooled"]}
        what = "test of a jump beyond this similarity"
        yield told | LIKE | {"what": what, "claimed": given[2], "inside": found["similarity"]}
        if kind.startswith("between"):
            what = "test of a jump beyond clusters, which are not this similarity"
            yield told | LIKE | {"what": what, "claimed": 0.81, "inside": found["clusters"]}


def own_group_of_few(rng: np.random.Generator) -> Iterator[dict]:
    """Pairs of groups differ, no group favours itself: tests over events, and over pairs."""
    conditions = {
        "pairs of groups differ": ({}, {4: 0.56, 5: 0.53, 21: 0.5}, 0.05),
        "pairs of groups differ, both sides of a pair alike (correlation .7)": (
            {"both": 0.7}, {4: 0.61, 5: 0.56, 21: 0.57}, 0.06
        ),
        "pairs of groups differ, and the gap varies by event (SD 1.5)": (
            {"by_event": 1.5}, {4: 0.21, 5: 0.2, 21: 0.09}, 0.05
        ),
    }  # fmt: skip
    for n in (4, 5, 21):
        for condition, (options, claimed, size) in conditions.items():
            today = []
            like = []
            for _ in range(2 * DRAWS if n < 21 else FEW):
                cube = pairs_differ(rng, n, **options)
                like.append(rejects(crossed.own_group(cube)))
                if len(today) < FEW:
                    test = statistics.by_kind(cube, np.eye(n, dtype=bool))["one name"]
                    today.append(test.pvalue < LEVEL)
            told = STUDY_1 | {"n": n, "condition": f"{n} groups, {condition}"}
            yield told | {"what": "test of by_kind", "claimed": claimed[n], "inside": today}
            what = "test of the own-group effect"
            yield told | LIKE | {"what": what, "claimed": size, "inside": like}


def pairs_differ(
    rng: np.random.Generator, n: int, both: float = 0.0, by_event: float = 0.0
) -> np.ndarray:
    """Draw ratings of 12 events in which each pair of groups has an effect of its own, SD 1."""
    one = rng.normal(0, 1, (n, n))
    other = rng.normal(0, 1, (n, n))
    shared = (other + other.T) / np.sqrt(2)
    pairs = np.sqrt(1 - both) * one + np.sqrt(both) * shared
    np.fill_diagonal(pairs, rng.normal(0, 1, n))
    moved = by_event * rng.normal(0, 1, EVENTS) * np.eye(n)[..., None]
    noise = rng.normal(0, 1, (n, n, EVENTS))
    return (levels(rng, n) + pairs)[..., None] + moved + noise


def names_of_groups(rng: np.random.Generator) -> Iterator[dict]:
    """Names of race have tastes of their own for groups; no group favours itself."""
    same = SAME["Race or Ethnicity"]
    groups = PEOPLE["Race or Ethnicity"].group.to_list()
    place = pd.factorize(pd.Series(groups))[0]
    n = len(place)
    conditions = {  # SD of tastes, pairs of names, pairs of groups; claims: today, one, two names
        "nothing but perceivers and targets differ": (0.0, 0.0, 0.0, 0.05, 0.04, 0.0),
        "names have tastes of their own for groups": (0.5, 0.0, 0.0, 0.7, 0.04, 0.04),
        "pairs of names differ": (0.0, 0.5, 0.0, 0.27, 0.03, 0.0),
        # A pair of groups that differs is an effect of these groups, not of these names.
        "pairs of groups differ, whose names are alike": (0.1, 0.0, 1.0, 0.88, 0.72, 0.69),
    }
    for condition, (taste, pair, blocks, today, one, two) in conditions.items():
        found = {}
        for _ in range(DRAWS // 2):
            matrix = levels(rng, n) + pair * rng.normal(0, 1, (n, n))
            matrix = matrix + taste * rng.normal(0, 1, (n, 4))[:, place]
            matrix = matrix + taste * rng.normal(0, 1, (4, n))[place]
            matrix = matrix + blocks * rng.normal(0, 1, (4, 4))[np.ix_(place, place)]
            cube = matrix[..., None] + rng.normal(0, 1, (n, n, EVENTS))
            for kind, effect in crossed.own_group_of_names(cube, groups).items():
                found.setdefault(kind, []).append(rejects(effect))
            means = statistics.by_group(np.moveaxis(cube, 2, 0), same)
            means = np.moveaxis(means, 0, 2)
            found.setdefault("groups", []).append(rejects(crossed.own_group(means)))
            if len(found.setdefault("today", [])) < FEW:
                tests = statistics.by_kind(cube, same)
                found["today"].append(tests["two names"].pvalue < LEVEL)
        told = STUDY_1 | {"n": n, "condition": f"race, {condition}"}
        yield told | {
            "what": "test of by_kind, two names",
            "claimed": today,
            "inside": found["today"],
        }
        for kind, claimed in zip(crossed.KINDS, (one, two), strict=True):
            what = f"test of the own-group effect of names, {kind}"
            yield told | LIKE | {"what": what, "claimed": claimed, "inside": found[kind]}
        what = "test of the own-group effect, means by group"
        yield told | LIKE | {"what": what, "claimed": LEVEL, "inside": found["groups"]}


def rated(
    rng: np.random.Generator, word: float, extra: np.ndarray | float = 0.0, noise: float = 5.0,
    counts: dict[str, int] = PHRASINGS,
) -> dict:  # fmt: skip
    """Draw ratings less the control's, (phrasing, scenario), of groups that do not differ from it.

    A rating has SD `noise`, scenarios .4 of it, shared by the groups; a phrasing an effect of SD
    `word`.
    """
    shared = rng.normal(0, 0.4 * noise, SCENARIOS)
    cells = {}
    for name, count in counts.items():
        words = rng.normal(0, word, (count, 1))
        cells[name] = shared + words + rng.normal(0, noise, (count, SCENARIOS)) + extra
    return cells


def bias(cells: dict) -> dict[str, helpfulness.Bias]:
    """Test each group over scenarios, as the notebook does."""
    control = np.zeros((SCENARIOS, 1))
    return {name: helpfulness.bias(own[..., None], control) for name, own in cells.items()}


def phrasings(rng: np.random.Generator) -> Iterator[dict]:
    """Phrasings have effects of their own; no group differs from the control."""
    claims = {0.0: (0.95, 0.97), 0.5: (0.86, 0.96), 1.0: (0.68, 0.95), 3.0: (0.30, 0.95)}
    for word, (today, like) in claims.items():
        found = {"today": [], "like": []}
        for _ in range(DRAWS // 2):
            cells = rated(rng, word)
            found["today"] += [holds(test) for test in bias(cells).values()]
            found["like"] += [holds(test) for test in crossed.over_levels(cells).values()]
        told = STUDY_2 | {"condition": f"phrasings of SD {word:g}, ratings of SD 5"}
        told["what"] = "interval of a group's bias"
        yield told | {"claimed": today, "inside": found["today"]}
        yield told | LIKE | {"claimed": like, "inside": found["like"]}

    odd = []
    others = []
    for _ in range(DRAWS // 2):
        cells = rated(rng, 0.0)
        cells["b"] = cells["b"] + rng.normal(0, 5, (2, 1))
        tests = crossed.over_levels(cells)
        odd.append(holds(tests["b"]))
        others += [holds(tests[name]) for name in "acde"]
    told = STUDY_2 | LIKE | {"what": "interval of a group's bias"}
    told["condition"] = "phrasings of one group of five have SD 5, the others 0"
    yield told | {"condition": f"{told['condition']}: this group", "claimed": 0.55, "inside": odd}
    yield told | {"condition": f"{told['condition']}: the others", "claimed": 1, "inside": others}


def few_phrasings(rng: np.random.Generator) -> Iterator[dict]:
    """A category of two groups of two phrasings: two degrees of freedom for phrasings."""
    for word, claimed in ((0.0, 0.99), (1.0, 0.97), (3.0, 0.96)):
        inside = []
        for _ in range(DRAWS):
            cells = rated(rng, word, counts={"a": 2, "b": 2})
            inside += [holds(test) for test in crossed.over_levels(cells).values()]
        told = STUDY_2 | LIKE | {"what": "interval of a group's bias"}
        told["condition"] = f"two groups of two phrasings of SD {word:g}, ratings of SD 5"
        yield told | {"claimed": claimed, "inside": inside}


def scenarios(rng: np.random.Generator) -> Iterator[dict]:
    """Scenarios that are no simple sample: rare large shifts, families, refusals."""
    family = np.arange(SCENARIOS) // 10
    conditions = {
        "3 % of the scenarios shift by 30 points, 0 on average, ratings of SD 1": (0.12, 0.06),
        "scenarios in families of ten, a family of SD 4, ratings of SD 5": (0.41, 0.33),
        "ratings of a group below the median are refused": (1, 1),
    }
    for condition, (today, like) in conditions.items():
        found = {"today": [], "like": []}
        for _ in range(DRAWS // 2):
            extra = 0.0
            noise = 5.0
            if "30 points" in condition:
                extra = 30.0 * (rng.random(SCENARIOS) < 0.03) - 0.9
                noise = 1.0
            if "families" in condition:
                extra = rng.normal(0, 4, family.max() + 1)[family]
            cells = rated(rng, 0.0, extra, noise)
            if "refused" in condition:
                cells = {name: np.where(own < 0, np.nan, own) for name, own in cells.items()}
            found["today"] += [test.p < LEVEL for test in bias(cells).values()]
            found["like"] += [rejects(test) for test in crossed.over_levels(cells).values()]
        told = STUDY_2 | {"condition": condition, "what": "test of a group's bias"}
        yield told | {"claimed": today, "inside": found["today"]}
        yield told | LIKE | {"claimed": like, "inside": found["like"]}


def items_that_are_not_independent(rng: np.random.Generator) -> Iterator[dict]:
    """McNemar with items in pairs; a share whose hits come in one large cluster and small ones."""
    told = {"study": "giebench", "n": 80}
    counts = rng.multinomial(40, [0.15, 0.15, 0.7], 4 * DRAWS)
    for condition, times, claimed in (
        ("independent items", 1, 0.03), ("items in pairs that answer alike", 2, 0.12)
    ):  # fmt: skip
        tests = [paired.mcnemar(times * int(up), times * int(down), 80) for up, down, _ in counts]
        told |= {"condition": condition, "inside": [p < LEVEL for *_, p in tests]}
        yield told | {"what": "test of a change (McNemar)", "claimed": claimed}

    for condition, sizes, claimed in (
        ("30 clusters of two", [2] * 30, 0.96),
        ("a cluster of 100, 10 of one", [100] + [1] * 10, 0.16),
    ):  # fmt: skip
        cluster = np.repeat(np.arange(len(sizes)), sizes)
        inside = []
        for _ in range(DRAWS):
            rate = rng.beta(0.5, 0.5, len(sizes))[cluster]
            _, low, high = paired.clustered_share(rng.random(len(cluster)) < rate, cluster)
            inside.append(low <= 0.5 <= high)
        about = {"study": "stereomap", "n": len(cluster), "condition": condition}
        yield about | {
            "what": "interval of a clustered share",
            "claimed": claimed,
            "inside": inside,
        }


def skewed_gains(rng: np.random.Generator) -> Iterator[dict]:
    """Gains of the right letter's p that are lognormal (sigma 1.5), 0 on average."""
    for n, claimed in ((79, 0.16), (6, 0.32)):
        gains = rng.lognormal(0, 1.5, (4 * DRAWS, n)) - np.exp(1.5**2 / 2)
        inside = paired.paired_test(gains).pvalue < LEVEL
        told = {"study": "giebench", "n": n, "condition": f"lognormal gains of {n} items"}
        yield told | {"what": "test of the gain of p_right", "claimed": claimed, "inside": inside}


def groups_in_families(rng: np.random.Generator) -> Iterator[dict]:
    """Scores of 98 groups: unrelated, heavy-tailed, tied, and shared by ten families."""
    family = np.arange(98) // 10
    for condition, claimed in (
        ("unrelated groups, heavy tails", LEVEL),
        ("unrelated groups, whole numbers", LEVEL),
        ("groups in ten families that share their scores", 0.49),
    ):
        inside = []
        for _ in range(DRAWS // 2):
            x, y = rng.standard_t(2, (2, 98))
            if "whole" in condition:
                x, y = np.round(rng.normal(0, 1, (2, 98)))
            if "families" in condition:
                x, y = rng.normal(0, 1, (2, 10))[:, family] + rng.normal(0, 0.3, (2, 98))
            inside.append(spearman(x, y, rng, 199)[1] < LEVEL)
        told = {"study": "stereomap", "n": 98, "condition": condition}
        yield told | {
            "what": "test of a correlation (Table 8)",
            "claimed": claimed,
            "inside": inside,
        }


def clusters_of_unequal_spread(rng: np.random.Generator) -> Iterator[dict]:
    """Competence and warmth have the same mean for every group; one varies three times as much."""
    inside = []
    for draw in range(100):
        points = rng.normal(3, 1, (98, 2)) * [1, 3] - [0, 6]
        means = groups_of(points)
        labels = clustering.clusters(means, 5, 20, draw).labels
        null = clustering.exchange_null(means, 5, rng, n_draws=99)
        inside.append((clustering.axis_tests(means, labels, null=null).p_exchanged < LEVEL).any())
    told = {
        "study": "stereomap",
        "n": 98,
        "condition": "warmth varies three times as much as competence",
    }
    yield told | {"what": "test of a cluster, axes exchanged", "claimed": 0.45, "inside": inside}


def questions_of_identities(rng: np.random.Generator) -> Iterator[dict]:
    """Gains of questions are 0 on average, and differ by the identity that a question is about."""
    sample = [question.identity for question in questions.load_questions("sample")]
    one_large = ["a"] * 40 + [*"bcdef"] * 8
    conditions = {  # identities, SD of what they share, claims: these, like these
        "questions of an identity are unrelated": (sample, 0.0, 0.05, 0.05),
        "questions of an identity share a gain (SD as of a question)": (sample, 0.3, 0.1, 0.05),
        "half of the questions are about one of six identities": (one_large, 0.3, 0.6, 0.12),
    }
    for condition, (identities, shared_sd, these, like) in conditions.items():
        _, identity = np.unique(identities, return_inverse=True)
        by_questions = []
        by_identities = []
        for _ in range(DRAWS):
            shared = rng.normal(0, shared_sd, len(set(identities)))
            gains = shared[identity] + rng.normal(0, 0.3, len(identities))
            by_questions.append(paired.paired_test(gains).pvalue < LEVEL)
            by_identities.append(rejects(crossed.over_clusters(gains, identities)))

        told = {"study": "giebench", "n": len(identities), "condition": condition}
        told["what"] = "test of a change over all orders"
        yield told | {"claimed": these, "inside": by_questions}
        yield told | LIKE | {"claimed": like, "inside": by_identities}


def words_of_two_axes(rng: np.random.Generator) -> Iterator[dict]:
    """Words are rated high or low whatever the group; the axes do not differ on average."""
    conditions = {  # words of each axis, groups, SD of words, claims: these, like these
        "words do not differ, 4 and 4 words": (4, 4, 98, 0.0, 0.95, 0.98),
        "words of SD .3, 4 and 4 words": (4, 4, 98, 0.3, 0.36, 0.95),
        "words of SD .3, 8 and 7 words": (8, 7, 24, 0.3, 0.73, 0.95),
        "words of SD .3, 2 and 2 words": (2, 2, 24, 0.3, 0.59, 0.98),
    }
    for condition, (first, second, groups, word_sd, these, like) in conditions.items():
        by_groups = []
        by_words = []
        for _ in range(DRAWS):
            axes = []
            for words in (first, second):
                of_words = rng.normal(0, word_sd, (words, 1))
                of_groups = rng.normal(0, 0.3, groups)
                axes.append(of_words + of_groups + rng.normal(0, 0.5, (words, groups)))
            test = paired.paired_test(axes[0].mean(axis=0), axes[1].mean(axis=0))
            by_groups.append(test.low <= 0 <= test.high)
            by_words.append(holds(crossed.difference_of_levels(*axes)))

        told = {"study": "stereomap", "n": groups, "condition": condition}
        told["what"] = "interval of the difference of the axes, one cluster"
        yield told | {"claimed": these, "inside": by_groups}
        yield told | LIKE | {"claimed": like, "inside": by_words}


def few_shared_items(rng: np.random.Generator) -> Iterator[dict]:
    """Agreement of two studies of which both have few items."""
    for items, claimed in (((5, 5), 0.87), ((3, 3), 0.81)):
        inside = []
        for _ in range(FEW):
            table, draws, rho = instruments(1.0, 0.3, 12, items, rng)
            (row,) = effects.agreement(table, draws, 0, 99).itertuples()
            inside.append(row.low <= rho <= row.high)
        told = {"study": "synthesis", "n": items[0]}
        told["condition"] = f"{items[0]} items of each, errors .3 of the spread of 12 groups"
        yield told | {"what": "interval of agreement", "claimed": claimed, "inside": inside}


def power_of_own_groups(rng: np.random.Generator) -> Iterator[dict]:
    """The formula of power, and the floor of permutations, against simulation."""
    told = STUDY_1 | LIKE
    for n, effect, tests in ((5, 1, 1), (5, 2, 7), (6, 2, 7), (8, 2, 7), (21, 0.7, 7)):
        level = LEVEL / tests
        matrices = rng.normal(0, 1, (2 * DRAWS, n, n)) + effect * np.eye(n)
        found = [crossed.own_group(matrix).p < level for matrix in matrices]
        formula = power.own_group_power(n, effect, level)
        told |= {"n": n, "condition": f"{n} groups, an effect of {effect:g} SD, {tests} tests"}
        told |= {"what": "power of the own-group test after Bonferroni", "nominal": formula}
        yield told | {"claimed": formula, "inside": found}
        if n < 8:
            few = matrices[:FEW]
            found = [permutation_test(one, np.eye(n), 999, rng).pvalue < level for one in few]
            floor = power.permutation_floor(n, 999) * tests
            told |= {"what": "power of permutations after Bonferroni", "scope": "these"}
            told |= {"condition": f"{told['condition']}, p at least {floor:.3g}"}
            claimed = 0.0 if floor >= LEVEL else np.mean(found)
            yield told | {"nominal": claimed, "claimed": claimed, "inside": found}
            told |= LIKE


ROWS = (
    gap_in_few_events,
    heavy_tails,
    own_cells_vary_more,
    similar_groups,
    own_group_of_few,
    names_of_groups,
    phrasings,
    few_phrasings,
    scenarios,
    items_that_are_not_independent,
    skewed_gains,
    groups_in_families,
    questions_of_identities,
    words_of_two_axes,
    clusters_of_unequal_spread,
    few_shared_items,
    power_of_own_groups,
)
