"""Conditions under which claims hold or break, and which the other modules do not simulate.

Each condition is simulated for the interval or test of the notebooks (scope "these"). Some are also
simulated for names, phrasings and groups like these, with an interval or test of
`ingroup.stats.crossed`.

Four conditions were made stronger until they failed as badly as reported elsewhere. They show how
badly a claim can fail, not how badly it fails for real answers. Each sentence below has a weaker
condition first, then the condition of this file.

Scenarios, 3 % of which shift by 30 points
    Ratings of SD 5 reject in .067 of cases, ratings of SD 1 in .12.
Scenarios in families of ten
    Families of SD 2 reject in .26 of cases, families of SD 4 in .41.
Clusters of unequal spread
    Twice the spread rejects in .16 of cases, three times the spread in .46.
A clustered share with one large cluster
    A cluster of 30 beside 30 single items covers .78, a cluster of 100 beside 10 covers .16.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

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

Interval = crossed.Effect | effects.BootstrapInterval | helpfulness.Bias | paired.PairedTest

DRAWS = 1000
N_SLOW_DRAWS = 400  # draws of slow simulations
MAPS = 100
LEVEL = 0.05
EVENTS = 12
SCENARIOS = 103
# Number of settings, SD of their own-group effects, and what the documentation says.
SETTING_CONDITIONS = ((7, 0, 0.95), (7, 1, 0.95), (2, 1, 0.9))
PHRASINGS = {"a": 3, "b": 2, "c": 2, "d": 2, "e": 2}  # of the groups of race
PEOPLE = {name: stimuli.identities(name)[1:] for name in stimuli.categories()}
SAME = {name: statistics.same_group(people.group) for name, people in PEOPLE.items()}


def holds(interval: Interval, truth: float = 0.0) -> bool:
    """Tell whether an interval holds the truth."""
    return bool(interval.low <= truth <= interval.high)


def rejects(effect: crossed.Effect) -> bool:
    """Tell whether a test rejects."""
    return bool(effect.p < LEVEL)


def levels(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw sums of a perceiver's level and a target's level, (n, n), each level with SD 1."""
    given = rng.normal(0, 1, (n, 1))
    received = rng.normal(0, 1, (1, n))
    return given + received


def unrelated_pairs(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw means of pairs of groups, (n, n), that differ by levels and by pair, each with SD 1."""
    # The pair differs beyond its two levels, or no test of pairs would have anything to absorb.
    level = levels(rng, n)
    return level + rng.normal(0, 1, (n, n))


def delta_and_own_group(
    condition: str,
    n_events: int,
    deltas: Sequence[effects.BootstrapInterval],
    own_group: Sequence[bool],
    claimed: tuple[float, float],
) -> Iterator[dict]:
    """Yield a row on the interval of delta, and a row on the interval of the own-group effect.

    Parameters
    ----------
    condition : str
        The truth of the simulated data, in words.
    n_events : int
        Events of each simulation.
    deltas : sequence
        Intervals of delta. The mean of their estimates counts as the truth.
    own_group : sequence of bool
        Whether each interval of the own-group effect holds the truth.
    claimed : tuple of float
        The documented coverage of either interval.
    """
    # Delta depends on the cells of these groups, so no formula gives its true value.
    truth = np.mean([delta.statistic for delta in deltas])
    yield {
        "what": "interval of delta",
        "study": "empathy_gap",
        "condition": condition,
        "n": n_events,
        "claimed": claimed[0],
        "inside": [holds(delta, truth) for delta in deltas],
    }
    yield {
        "what": "interval of the own-group effect",
        "study": "empathy_gap",
        "condition": condition,
        "scope": "like these",
        "n": n_events,
        "claimed": claimed[1],
        "inside": own_group,
    }


def gap_in_few_events(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate a gap of 10 points in one event of ten, and no gap in the other events."""
    same = SAME["Religion"]
    n = len(same)
    # Cells are drawn once, as the interval of delta is about these groups.
    cells = rng.normal(0, 1, same.shape)

    for n_events, claimed in ((12, (0.7, 0.88)), (5, (0.5, 0.78))):
        deltas = []
        own_group = []
        for _ in range(DRAWS):
            has_gap = rng.random(n_events) < 0.1
            # The gap is (perceiver, target, event): own-group cells of some events have it.
            gap = 10 * has_gap * same[..., None]
            noise = rng.normal(0, 1, (n, n, n_events))

            ratings = cells[..., None] + noise + gap
            deltas.append(bootstrap_interval(ratings, same, 500, rng))
            # Pairs are new in each simulation, as this interval is about groups like these.
            pairs = unrelated_pairs(rng, n)
            effect = crossed.own_group(pairs[..., None] + noise + gap)
            # 10 points in a tenth of the events are 1 point on average.
            own_group.append(holds(effect, 1.0))

        condition = f"a gap in 1 of 10 events, {n_events} events"
        yield from delta_and_own_group(condition, n_events, deltas, own_group, claimed)


def heavy_tails(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate noise of events as Student's t with 3 degrees of freedom.

    Pairs of groups are normal.
    """
    same = SAME["Religion"]
    n = len(same)
    cells = rng.normal(0, 1, same.shape)

    deltas = []
    own_group = []
    for _ in range(DRAWS):
        noise = rng.standard_t(3, (n, n, EVENTS))
        deltas.append(bootstrap_interval(cells[..., None] + noise, same, 500, rng))
        pairs = unrelated_pairs(rng, n)
        own_group.append(holds(crossed.own_group(pairs[..., None] + noise)))

    condition = "heavy-tailed events (t with 3 degrees)"
    yield from delta_and_own_group(condition, EVENTS, deltas, own_group, (0.95, 0.95))


def own_cells_vary_more(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate own-group cells with three times the SD of other cells, and the same mean."""
    claims = {
        "Race or Ethnicity": {"delta": 0.15, "pooled": 0.25, "by group": 0.05},
        "Nationality": {"delta": 0.43, "pooled": 0.43, "by group": 0.05},
        "Religion": {"delta": 0.24, "pooled": 0.27, "by group": 0.05},
    }
    for category, claimed in claims.items():
        same = SAME[category]
        # Means are 0 everywhere: only the spread differs between own-group and other cells.
        spread = np.where(same, 3, 1)
        # A draw of many identities takes longer.
        draws = N_SLOW_DRAWS if len(same) > 9 else 4 * DRAWS

        rejected = defaultdict(list)
        for _ in range(draws):
            level = levels(rng, len(same))
            matrix = level + spread * rng.normal(0, 1, same.shape)
            # The own-group test takes one cell per pair of groups.
            means = statistics.matrix_of_groups(matrix, same)
            # 499 permutations suffice, as a share over thousands of draws is what counts.
            test = permutation_test(matrix, same, 499, rng)
            rejected["delta"].append(test.pvalue < LEVEL)
            rejected["pooled"].append(rejects(crossed.own_group(means)))
            rejected["by group"].append(rejects(crossed.own_group_by_group(means)))

        shared = {
            "study": "empathy_gap",
            "condition": f"{category.lower()}, own-group cells vary three times as much",
            "n": len(same),
        }
        yield {
            **shared,
            "what": "test of delta",
            "claimed": claimed["delta"],
            "inside": rejected["delta"],
        }
        yield {
            **shared,
            "what": "test of the own-group effect",
            "scope": "like these",
            "claimed": claimed["pooled"],
            "inside": rejected["pooled"],
        }
        yield {
            **shared,
            "what": "test of the own-group effect, by group",
            "scope": "like these",
            "claimed": claimed["by group"],
            "inside": rejected["by group"],
        }


def similar_groups(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate groups that favour similar groups, without a further jump at the own group."""
    # The clusters are those of Table 4, so the sizes are the ones that the notebook meets.
    cluster = np.array(stimuli.clusters("Nationality"))
    n = len(cluster)
    same_cluster = (cluster[:, None] == cluster).astype(float)
    # The place on the line has no meaning. It makes a similarity that no cluster describes.
    distance = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))

    yield from _jump_beyond_similarity(
        rng,
        "nationality, similarity within cultural clusters, no jump",
        similarity=same_cluster,
        clusters=same_cluster,
        claims={"delta": 0.99, "pooled": 0.98, "similarity": 0.05},
    )
    yield from _jump_beyond_similarity(
        rng,
        "nationality, similarity between neighbours on a line, no jump",
        similarity=np.exp(-distance),
        clusters=same_cluster,
        claims={"delta": 1.0, "pooled": 1.0, "similarity": 0.05, "clusters": 0.81},
    )


def _jump_beyond_similarity(
    rng: np.random.Generator,
    condition: str,
    similarity: np.ndarray,
    clusters: np.ndarray,
    claims: dict[str, float],
) -> Iterator[dict]:
    """Simulate ratings that follow one similarity, and yield a row for each test with a claim."""
    n = len(similarity)
    rejected = defaultdict(list)
    for _ in range(N_SLOW_DRAWS):
        matrix = unrelated_pairs(rng, n) + similarity
        # Each nationality is a group of its own.
        test = permutation_test(matrix, np.eye(n), 499, rng)
        rejected["delta"].append(test.pvalue < LEVEL)
        rejected["pooled"].append(rejects(crossed.own_group(matrix)))
        rejected["similarity"].append(rejects(crossed.own_group(matrix, similarity)))
        rejected["clusters"].append(rejects(crossed.own_group(matrix, clusters)))

    names = {
        "delta": "test of delta",
        "pooled": "test of the own-group effect",
        "similarity": "test of a jump beyond this similarity",
        "clusters": "test of a jump beyond clusters, which are not this similarity",
    }
    for test, claimed in claims.items():
        yield {
            "what": names[test],
            "study": "empathy_gap",
            "condition": condition,
            "scope": "these" if test == "delta" else "like these",
            "n": n,
            "claimed": claimed,
            "inside": rejected[test],
        }


class PairCondition(NamedTuple):
    """Correlation of a pair's sides, SD of the gap by event, and the claims of the tests."""

    text: str
    claimed_by_kind: dict[int, float]  # by the number of groups
    claimed_own_group: float = 0.05
    correlation: float = 0.0
    sd_by_event: float = 0.0


PAIR_CONDITIONS = (
    PairCondition(
        "pairs of groups differ",
        claimed_by_kind={4: 0.56, 5: 0.53, 21: 0.5},
    ),
    PairCondition(
        "pairs of groups differ, both sides of a pair alike (correlation .7)",
        correlation=0.7,
        claimed_by_kind={4: 0.61, 5: 0.56, 21: 0.57},
        claimed_own_group=0.06,
    ),
    PairCondition(
        "pairs of groups differ, and the gap varies by event (SD 1.5)",
        sd_by_event=1.5,
        claimed_by_kind={4: 0.21, 5: 0.2, 21: 0.09},
    ),
)


def own_group_of_few(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate pairs of groups that differ, where no group favours itself.

    One test is over events, the other over pairs of groups.
    """
    for n in (4, 5, 21):
        same = np.eye(n, dtype=bool)
        # A matrix of 21 groups takes much longer than one of 4.
        draws = 2 * DRAWS if n < 21 else N_SLOW_DRAWS
        for condition in PAIR_CONDITIONS:
            by_kind = []
            own_group = []
            for _ in range(draws):
                # Both tests see the same ratings, so their shares differ by the test alone.
                ratings = pairs_differ(rng, n, condition.correlation, condition.sd_by_event)
                own_group.append(rejects(crossed.own_group(ratings)))
                # The test over events takes longer, so it is tried on the first draws alone.
                if len(by_kind) < N_SLOW_DRAWS:
                    test = statistics.effects_by_kind(ratings, same)["one name"]
                    by_kind.append(test.pvalue < LEVEL)

            shared = {
                "study": "empathy_gap",
                "condition": f"{n} groups, {condition.text}",
                "n": n,
            }
            yield {
                **shared,
                "what": "test of by_kind",
                "claimed": condition.claimed_by_kind[n],
                "inside": by_kind,
            }
            yield {
                **shared,
                "what": "test of the own-group effect",
                "scope": "like these",
                "claimed": condition.claimed_own_group,
                "inside": own_group,
            }


def pairs_differ(
    rng: np.random.Generator, n: int, correlation: float, sd_by_event: float
) -> np.ndarray:
    """Draw ratings of 12 events in which each pair of groups has an effect of its own, SD 1.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of the ratings.
    n : int
        Number of groups.
    correlation : float
        Between the two effects of a pair, from 0 to 1.
    sd_by_event : float
        SD of the own-group gap from event to event.

    Returns
    -------
    ndarray
        Ratings, (perceiver, target, event).
    """
    unshared = rng.normal(0, 1, (n, n))
    half = rng.normal(0, 1, (n, n))
    # Both sides of a pair share a number of SD 1.
    shared = (half + half.T) / np.sqrt(2)
    # Both are mixed by their parts of the variance, so that the two sides correlate as asked.
    pairs = np.sqrt(1 - correlation) * unshared + np.sqrt(correlation) * shared
    # On the diagonal the shared number has SD sqrt(2), so own-group cells are drawn anew.
    np.fill_diagonal(pairs, rng.normal(0, 1, n))

    gap = sd_by_event * rng.normal(0, 1, EVENTS) * np.eye(n)[..., None]
    noise = rng.normal(0, 1, (n, n, EVENTS))
    means = levels(rng, n) + pairs
    return means[..., None] + gap + noise


class NameCondition(NamedTuple):
    """SDs of the differences between names and between groups, and the claim of each test."""

    text: str
    claimed_by_kind: float
    claimed_one_name: float
    claimed_two_names: float
    claimed_beyond: tuple[float, float]  # one name beyond two, by events and by names
    sd_taste: float = 0.0  # of a name for groups, and of groups for a name
    sd_pair: float = 0.0
    sd_group_pair: float = 0.0


NAME_CONDITIONS = (
    NameCondition(
        "nothing but perceivers and targets differ",
        claimed_by_kind=0.05,
        claimed_one_name=0.04,
        claimed_two_names=0.0,
        claimed_beyond=(0.05, 0.02),
    ),
    NameCondition(
        "names have tastes of their own for groups",
        sd_taste=0.5,
        claimed_by_kind=0.7,
        claimed_one_name=0.04,
        claimed_two_names=0.04,
        claimed_beyond=(0.05, 0.02),
    ),
    NameCondition(
        "pairs of names differ",
        sd_pair=0.5,
        claimed_by_kind=0.27,
        claimed_one_name=0.03,
        claimed_two_names=0.0,
        claimed_beyond=(0.32, 0.02),
    ),
    # A pair of groups that differs is an effect of these groups, not of these names.
    NameCondition(
        "pairs of groups differ, whose names are alike",
        sd_taste=0.1,
        sd_group_pair=1.0,
        claimed_by_kind=0.88,
        claimed_one_name=0.72,
        claimed_two_names=0.69,
        claimed_beyond=(0.18, 0.01),
    ),
)


def names_of_groups(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate names of race with tastes of their own for groups, where no group favours itself."""
    same = SAME["Race or Ethnicity"]
    groups = PEOPLE["Race or Ethnicity"].group.to_list()
    # The kinds of own-group pairs are judged apart, as in the notebook.
    one_name, two_names = crossed.KINDS
    one_beyond_two = crossed.ONE_BEYOND_TWO

    for condition in NAME_CONDITIONS:
        # The tests differ in what they take as drawn anew: events, names, or whole groups.
        over_events = defaultdict(list)
        over_names = defaultdict(list)
        over_groups = []
        for number in range(DRAWS // 2):
            ratings = names_differ(rng, groups, condition)
            effects_of_kinds = crossed.own_group_of_names(ratings, groups)
            for kind, effect in effects_of_kinds.items():
                over_names[kind].append(rejects(effect))

            # `statistics.matrix_of_groups` averages the last two axes, so events come first for it.
            by_event = np.moveaxis(ratings, 2, 0)
            means = statistics.matrix_of_groups(by_event, same)
            of_groups = crossed.own_group(np.moveaxis(means, 0, 2))
            over_groups.append(rejects(of_groups))

            # The test over events takes longer, so it is tried on the first draws alone.
            if number < N_SLOW_DRAWS:
                tests = statistics.effects_by_kind(ratings, same)
                for kind in (two_names, one_beyond_two):
                    over_events[kind].append(tests[kind].pvalue < LEVEL)

        shared = {
            "study": "empathy_gap",
            "condition": f"race, {condition.text}",
            "n": len(groups),
        }
        yield {
            **shared,
            "what": "test of by_kind, two names",
            "claimed": condition.claimed_by_kind,
            "inside": over_events[two_names],
        }
        # The same question has two claims: events drawn anew, and names drawn anew.
        claimed_by_events, claimed_by_names = condition.claimed_beyond
        yield {
            **shared,
            "what": f"test of by_kind, {one_beyond_two}",
            "claimed": claimed_by_events,
            "inside": over_events[one_beyond_two],
        }
        yield {
            **shared,
            "what": f"test of the own-group effect of names, {one_beyond_two}",
            "scope": "like these",
            "claimed": claimed_by_names,
            "inside": over_names[one_beyond_two],
        }
        yield {
            **shared,
            "what": f"test of the own-group effect of names, {one_name}",
            "scope": "like these",
            "claimed": condition.claimed_one_name,
            "inside": over_names[one_name],
        }
        yield {
            **shared,
            "what": f"test of the own-group effect of names, {two_names}",
            "scope": "like these",
            "claimed": condition.claimed_two_names,
            "inside": over_names[two_names],
        }
        yield {
            **shared,
            "what": "test of the own-group effect, means by group",
            "scope": "like these",
            "claimed": LEVEL,
            "inside": over_groups,
        }


def names_differ(
    rng: np.random.Generator, groups: Sequence[str], condition: NameCondition
) -> np.ndarray:
    """Draw ratings of 12 events in which names, their pairs and pairs of groups differ.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of the ratings.
    groups : sequence of str
        The group of each name, four groups in all.
    condition : NameCondition
        SDs of the differences.

    Returns
    -------
    ndarray
        Ratings, (perceiver, target, event).
    """
    # Numbers of groups serve as positions below.
    group, _ = pd.factorize(pd.Series(groups))
    n = len(groups)
    matrix = levels(rng, n)
    # Each pair of names has a number of its own.
    matrix = matrix + condition.sd_pair * rng.normal(0, 1, (n, n))

    # Names of one group share a column, then a row, then a block of rows and columns.
    taste_of_perceivers = rng.normal(0, 1, (n, 4))[:, group]
    matrix = matrix + condition.sd_taste * taste_of_perceivers
    taste_for_targets = rng.normal(0, 1, (4, n))[group]
    matrix = matrix + condition.sd_taste * taste_for_targets
    group_pairs = rng.normal(0, 1, (4, 4))[np.ix_(group, group)]
    matrix = matrix + condition.sd_group_pair * group_pairs

    noise = rng.normal(0, 1, (n, n, EVENTS))
    return matrix[..., None] + noise


def draw_ratings(
    rng: np.random.Generator,
    sd_phrasing: float,
    extra: np.ndarray | float = 0.0,
    noise: float = 5.0,
    counts: dict[str, int] = PHRASINGS,
) -> dict[str, np.ndarray]:
    """Draw ratings minus the control's ratings, of groups that do not differ from the control.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of the ratings.
    sd_phrasing : float
        SD of the effect of a phrasing.
    extra : ndarray or float
        Added to each scenario of each group.
    noise : float
        SD of a rating. The effect of a scenario, shared by all groups, has an SD of 0.4 times
        `noise`.
    counts : dict of str to int
        Number of phrasings of each group.

    Returns
    -------
    dict of str to ndarray
        For each group (phrasing, scenario).
    """
    # All groups answer the same scenarios, so that pairing by scenario has something to remove.
    shared = rng.normal(0, 0.4 * noise, SCENARIOS)
    cells = {}
    for group, count in counts.items():
        phrasing_effects = rng.normal(0, sd_phrasing, (count, 1))
        ratings = rng.normal(0, noise, (count, SCENARIOS))
        cells[group] = shared + phrasing_effects + ratings + extra
    return cells


def bias(cells: dict[str, np.ndarray]) -> dict[str, helpfulness.Bias]:
    """Test each group over scenarios, as the notebook does."""
    # The control's ratings are subtracted already, and each scenario has a single wording.
    control = np.zeros((SCENARIOS, 1))
    return {
        group: helpfulness.bias(ratings[..., None], control) for group, ratings in cells.items()
    }


def phrasings(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate phrasings with effects of their own, where no group differs from the control."""
    # The claims by the SD of phrasings: these phrasings, phrasings like these.
    claims = {
        0.0: (0.95, 0.97),
        0.5: (0.86, 0.96),
        1.0: (0.68, 0.95),
        3.0: (0.30, 0.95),
    }
    for sd, (claimed_these, claimed_like) in claims.items():
        these = []
        like = []
        for _ in range(DRAWS // 2):
            cells = draw_ratings(rng, sd)
            # Both scopes judge the same draws. Only what counts as random differs.
            these += [holds(test) for test in bias(cells).values()]
            like += [holds(test) for test in crossed.over_levels(cells).values()]

        shared = {
            "what": "interval of a group's bias",
            "study": "biased_samaritan",
            "condition": f"phrasings of SD {sd:g}, ratings of SD 5",
            "n": SCENARIOS,
        }
        yield {
            **shared,
            "claimed": claimed_these,
            "inside": these,
        }
        yield {
            **shared,
            "scope": "like these",
            "claimed": claimed_like,
            "inside": like,
        }

    yield from _phrasings_of_one_group(rng)


def _phrasings_of_one_group(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate five groups, of which one has phrasings that differ.

    The test assumes one SD for the phrasings of all groups.
    """
    # One group breaks the assumption of one SD. The others must not pay with too many findings.
    odd = []
    others = []
    for _ in range(DRAWS // 2):
        cells = draw_ratings(rng, 0.0)
        # Group b has two phrasings.
        cells["b"] = cells["b"] + rng.normal(0, 5, (2, 1))
        tests = crossed.over_levels(cells)
        odd.append(holds(tests["b"]))
        others += [holds(tests[group]) for group in "acde"]

    condition = "phrasings of one group of five have SD 5, the others 0"
    shared = {
        "what": "interval of a group's bias",
        "study": "biased_samaritan",
        "scope": "like these",
        "n": SCENARIOS,
    }
    yield {
        **shared,
        "condition": f"{condition}: this group",
        "claimed": 0.55,
        "inside": odd,
    }
    yield {
        **shared,
        "condition": f"{condition}: the others",
        "claimed": 1,
        "inside": others,
    }


def few_phrasings(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate two groups of two phrasings: two degrees of freedom for phrasings."""
    counts = {"a": 2, "b": 2}
    for sd, claimed in ((0.0, 0.99), (1.0, 0.97), (3.0, 0.96)):
        inside = []
        for _ in range(DRAWS):
            cells = draw_ratings(rng, sd, counts=counts)
            inside += [holds(test) for test in crossed.over_levels(cells).values()]

        yield {
            "what": "interval of a group's bias",
            "study": "biased_samaritan",
            "condition": f"two groups of two phrasings of SD {sd:g}, ratings of SD 5",
            "scope": "like these",
            "n": SCENARIOS,
            "claimed": claimed,
            "inside": inside,
        }


def scenarios(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate scenarios that are not a simple sample: rare large shifts, families, refusals."""
    yield from _tests_of_bias(
        rng,
        "3 % of the scenarios shift by 30 points, 0 on average, ratings of SD 1",
        rare_shifts,
        claimed_these=0.12,
        claimed_like=0.06,
    )
    yield from _tests_of_bias(
        rng,
        "scenarios in families of ten, a family of SD 4, ratings of SD 5",
        families_of_scenarios,
        claimed_these=0.41,
        claimed_like=0.33,
    )
    yield from _tests_of_bias(
        rng,
        "ratings of a group below the median are refused",
        low_ratings_refused,
        claimed_these=1,
        claimed_like=1,
    )


def rare_shifts(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw ratings of SD 1, with 3 % of the scenarios shifted by 30 points, 0 on average."""
    is_shifted = rng.random(SCENARIOS) < 0.03
    # 3 % of 30 points are 0.9, so the shifts are 0 on average.
    return draw_ratings(rng, 0.0, extra=30.0 * is_shifted - 0.9, noise=1.0)


def families_of_scenarios(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw ratings of scenarios that share an effect of SD 4 with nine others."""
    # The test takes scenarios as independent, and these come in families.
    family = np.arange(SCENARIOS) // 10
    of_families = rng.normal(0, 4, family.max() + 1)
    return draw_ratings(rng, 0.0, extra=of_families[family])


def low_ratings_refused(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw ratings, of which the ratings below the control's are missing."""
    # Refusals that depend on the rating leave a mean of what was said, which no test can mend.
    cells = draw_ratings(rng, 0.0)
    return {group: np.where(ratings < 0, np.nan, ratings) for group, ratings in cells.items()}


def _tests_of_bias(
    rng: np.random.Generator,
    condition: str,
    draw: Callable[[np.random.Generator], dict[str, np.ndarray]],
    claimed_these: float,
    claimed_like: float,
) -> Iterator[dict]:
    """Yield how often groups are falsely found to differ, in either scope."""
    these = []
    like = []
    for _ in range(DRAWS // 2):
        cells = draw(rng)
        these += [test.p < LEVEL for test in bias(cells).values()]
        like += [rejects(test) for test in crossed.over_levels(cells).values()]

    shared = {
        "what": "test of a group's bias",
        "study": "biased_samaritan",
        "condition": condition,
        "n": SCENARIOS,
    }
    yield {
        **shared,
        "claimed": claimed_these,
        "inside": these,
    }
    yield {
        **shared,
        "scope": "like these",
        "claimed": claimed_like,
        "inside": like,
    }


def items_that_are_not_independent(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate McNemar's test on items in pairs, and the share of a large cluster."""
    yield from _changes_of_pairs(rng)
    yield from _shares_of_clusters(rng)


def _changes_of_pairs(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate McNemar's test on independent items, and on items in pairs that answer alike."""
    # Gains and losses have the same chance, so no change is the truth.
    counts = rng.multinomial(40, [0.15, 0.15, 0.7], 4 * DRAWS)
    for condition, copies, claimed in (
        ("independent items", 1, 0.03),
        ("items in pairs that answer alike", 2, 0.12),
    ):
        inside = []
        # Two copies of 40 items are 80 items in pairs that answer alike.
        for gained, lost, _ in copies * counts:
            _, _, p = paired.mcnemar(int(gained), int(lost), 40 * copies)
            inside.append(p < LEVEL)

        yield {
            "what": "test of a change (McNemar)",
            "study": "giebench",
            "condition": condition,
            "n": 40 * copies,
            "claimed": claimed,
            "inside": inside,
        }


def _shares_of_clusters(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate a share of hits in clusters of one size, and beside one large cluster."""
    for condition, sizes, claimed in (
        ("30 clusters of two", [2] * 30, 0.96),
        ("a cluster of 100, 10 of one", [100] + [1] * 10, 0.16),
    ):
        # A cluster stands for the rounds of one prompt, which resemble each other.
        cluster = np.repeat(np.arange(len(sizes)), sizes)
        inside = []
        for _ in range(DRAWS):
            # The rates of clusters have the mean 0.5, which the interval should hold.
            rate = rng.beta(0.5, 0.5, len(sizes))[cluster]
            is_hit = rng.random(len(cluster)) < rate
            _, low, high = paired.clustered_share(is_hit, cluster)
            inside.append(low <= 0.5 <= high)

        yield {
            "what": "interval of a clustered share",
            "study": "stereomap",
            "condition": condition,
            "n": len(cluster),
            "claimed": claimed,
            "inside": inside,
        }


def skewed_gains(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate gains of the right letter's p that are lognormal (sigma 1.5), 0 on average."""
    # The mean of this distribution is subtracted, so that no gain is the truth.
    mean = np.exp(1.5**2 / 2)
    for n, claimed in ((79, 0.16), (6, 0.32)):
        gains = rng.lognormal(0, 1.5, (4 * DRAWS, n)) - mean
        yield {
            "what": "test of the gain of p_right",
            "study": "giebench",
            "condition": f"lognormal gains of {n} items",
            "n": n,
            "claimed": claimed,
            "inside": paired.paired_test(gains).pvalue < LEVEL,
        }


def groups_in_families(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate scores of 98 groups: heavy-tailed, tied, or shared within ten families."""
    for condition, draw, claimed in (
        ("unrelated groups, heavy tails", heavy_tailed_scores, LEVEL),
        ("unrelated groups, whole numbers", tied_scores, LEVEL),
        ("groups in ten families that share their scores", scores_of_families, 0.49),
    ):
        is_claimed = []
        for _ in range(DRAWS // 2):
            x, y = draw(rng)
            # The permutation treats groups as exchangeable, which families are not.
            _, p, _ = spearman(x, y, rng, 199)
            is_claimed.append(p < LEVEL)

        yield {
            "what": "test of a correlation (Table 8)",
            "study": "stereomap",
            "condition": condition,
            "n": 98,
            "claimed": claimed,
            "inside": is_claimed,
        }


def heavy_tailed_scores(rng: np.random.Generator) -> np.ndarray:
    """Draw two unrelated scores of 98 groups, Student's t with 2 degrees of freedom."""
    return rng.standard_t(2, (2, 98))


def tied_scores(rng: np.random.Generator) -> np.ndarray:
    """Draw two unrelated scores of 98 groups, small whole numbers."""
    # Unused. Without these numbers the committed shares would be those of other draws.
    heavy_tailed_scores(rng)
    return np.round(rng.normal(0, 1, (2, 98)))


def scores_of_families(rng: np.random.Generator) -> np.ndarray:
    """Draw two unrelated scores of 98 groups, nearly the same within each of ten families."""
    # These numbers are unused, as in `tied_scores`.
    heavy_tailed_scores(rng)
    family = np.arange(98) // 10
    of_families = rng.normal(0, 1, (2, 10))
    return of_families[:, family] + rng.normal(0, 0.3, (2, 98))


def settings_like_these(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate settings that share events, where no group favours itself over all settings."""
    n = len(SAME["Religion"])
    own_cells = np.eye(n)[..., None]
    for n_settings, sd, claimed in SETTING_CONDITIONS:
        inside = []
        for _ in range(DRAWS):
            pairs = unrelated_pairs(rng, n)
            # The settings stand on the axis of events.
            own = own_cells * rng.normal(0, sd, n_settings)
            noise = rng.normal(0, 0.5, (n, n, n_settings))
            inside.append(holds(crossed.own_group(pairs[..., None] + noise + own)))

        yield {
            "what": "interval of the own-group effect over settings",
            "study": "empathy_gap",
            "condition": f"{n_settings} settings, whose own-group effects have SD {sd:g}",
            "scope": "like these",
            "n": n_settings,
            "claimed": claimed,
            "inside": inside,
        }


class Differences(NamedTuple):
    """Draws of paired differences, with their true mean and the documented coverage."""

    condition: str
    draws: np.ndarray  # draws by items
    claimed: float
    truth: float = 0.0


def paired_intervals(what: str, study: str, cases: Sequence[Differences]) -> Iterator[dict]:
    """Simulate the interval of a paired test, a row for each case."""
    for case in cases:
        yield {
            "what": what,
            "study": study,
            "condition": case.condition,
            "n": case.draws.shape[1],
            "claimed": case.claimed,
            "inside": [holds(paired.paired_test(row), case.truth) for row in case.draws],
        }


def differences_of_models(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate differences of two models, item by item."""
    heavy_tails = rng.standard_t(3, (DRAWS, SCENARIOS))
    verdicts = rng.choice([-1, 0, 1], (DRAWS, 79), p=[0.2, 0.6, 0.2])
    few_verdicts = rng.random((DRAWS, 79)) < 0.02
    # Each of these 40 verdicts comes twice below.
    pairs = rng.choice([-1, 0, 1], (DRAWS, 40), p=[0.2, 0.6, 0.2])
    cases = [
        Differences("103 scenarios, heavy tails (t with 3 degrees)", heavy_tails, 0.95),
        Differences("79 verdicts, of which 4 in 10 differ", verdicts, 0.95),
        Differences(
            "79 verdicts, of which one model has 2 in 100 more", few_verdicts, 0.81, truth=0.02
        ),
        Differences("80 verdicts in pairs that are alike", np.repeat(pairs, 2, axis=1), 0.82),
    ]
    return paired_intervals("interval of the difference of two models", "synthesis", cases)


def differences_over_groups(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate the change between two ways of asking 23 groups, 0 on average over groups."""
    unrelated = rng.normal(0, 1, (DRAWS, 23))
    # Five families of the same spread as the groups within them halve what 23 groups tell.
    families = rng.normal(0, 1, (DRAWS, 5))
    of_families = families[:, np.arange(23) % 5] + rng.normal(0, 1, (DRAWS, 23))
    cases = [
        Differences("23 unrelated groups", unrelated, 0.95),
        Differences("23 groups in five families, SD between families as within", of_families, 0.73),
    ]
    what = "interval of a change over groups (list and word by word)"
    return paired_intervals(what, "stereomap", cases)


def clusters_of_unequal_spread(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate groups with equal means of both axes, where warmth varies three times as much."""
    inside = []
    for seed in range(MAPS):
        # Both axes have the mean 3, and the second has three times the SD.
        points = rng.normal(3, 1, (98, 2)) * [1, 3] - [0, 6]
        # Exchanging the axes presumes one spread of both, which does not hold here.
        means = groups_of(points)
        labels = clustering.clusters(means, 5, 20, seed).labels
        null = clustering.exchange_null(means, 5, rng, n_draws=99)
        tests = clustering.axis_tests(means, labels, null=null)
        inside.append((tests.p_exchanged < LEVEL).any())

    yield {
        "what": "test of a cluster, axes exchanged",
        "study": "stereomap",
        "condition": "warmth varies three times as much as competence",
        "n": 98,
        "claimed": 0.45,
        "inside": inside,
    }


class QuestionCondition(NamedTuple):
    """Identities of questions, SD of a shared gain, and the claim of the test in either scope."""

    text: str
    identities: list[str]
    shared_sd: float
    claimed_these: float
    claimed_like: float


QUESTIONS = [question.identity for question in questions.load_questions("sample")]
QUESTION_CONDITIONS = (
    QuestionCondition(
        "questions of an identity are unrelated",
        identities=QUESTIONS,
        shared_sd=0.0,
        claimed_these=0.05,
        claimed_like=0.05,
    ),
    QuestionCondition(
        "questions of an identity share a gain (SD as of a question)",
        identities=QUESTIONS,
        shared_sd=0.3,
        claimed_these=0.1,
        claimed_like=0.05,
    ),
    QuestionCondition(
        "half of the questions are about one of six identities",
        identities=["a"] * 40 + [*"bcdef"] * 8,
        shared_sd=0.3,
        claimed_these=0.6,
        claimed_like=0.12,
    ),
)


def questions_of_identities(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate gains of questions, 0 on average, that differ by the identity of a question."""
    for condition in QUESTION_CONDITIONS:
        labels, identity = np.unique(condition.identities, return_inverse=True)
        n = len(identity)
        by_questions = []
        by_identities = []
        for _ in range(DRAWS):
            # Questions about one identity share a gain, so they are fewer than they seem.
            shared_gains = rng.normal(0, condition.shared_sd, len(labels))
            gains = shared_gains[identity] + rng.normal(0, 0.3, n)
            by_questions.append(paired.paired_test(gains).pvalue < LEVEL)
            by_identities.append(rejects(crossed.over_clusters(gains, condition.identities)))

        shared = {
            "what": "test of a change over all orders",
            "study": "giebench",
            "condition": condition.text,
            "n": n,
        }
        yield {
            **shared,
            "claimed": condition.claimed_these,
            "inside": by_questions,
        }
        yield {
            **shared,
            "scope": "like these",
            "claimed": condition.claimed_like,
            "inside": by_identities,
        }


class WordCondition(NamedTuple):
    """Numbers of words and groups, SD of words, and the claim of the interval in either scope."""

    text: str
    n_words: tuple[int, int]
    n_groups: int
    sd: float
    claimed_these: float
    claimed_like: float


WORD_CONDITIONS = (
    WordCondition(
        "words do not differ, 4 and 4 words",
        n_words=(4, 4),
        n_groups=98,
        sd=0.0,
        claimed_these=0.95,
        claimed_like=0.98,
    ),
    WordCondition(
        "words of SD .3, 4 and 4 words",
        n_words=(4, 4),
        n_groups=98,
        sd=0.3,
        claimed_these=0.36,
        claimed_like=0.95,
    ),
    WordCondition(
        "words of SD .3, 8 and 7 words",
        n_words=(8, 7),
        n_groups=24,
        sd=0.3,
        claimed_these=0.73,
        claimed_like=0.95,
    ),
    WordCondition(
        "words of SD .3, 2 and 2 words",
        n_words=(2, 2),
        n_groups=24,
        sd=0.3,
        claimed_these=0.59,
        claimed_like=0.98,
    ),
)


def words_of_two_axes(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate words rated high or low for all groups, where the axes do not differ on average."""
    for condition in WORD_CONDITIONS:
        n_groups = condition.n_groups
        by_groups = []
        by_words = []
        for _ in range(DRAWS):
            axes = []
            for n_words in condition.n_words:
                of_words = rng.normal(0, condition.sd, (n_words, 1))
                # Groups differ on either axis by themselves, or the t-test would have no error.
                of_groups = rng.normal(0, 0.3, n_groups)
                noise = rng.normal(0, 0.5, (n_words, n_groups))
                axes.append(of_words + of_groups + noise)

            competence, warmth = axes
            # The means over words, (group,), are what the notebook compares.
            test = paired.paired_test(competence.mean(axis=0), warmth.mean(axis=0))
            by_groups.append(holds(test))
            by_words.append(holds(crossed.difference_of_levels(competence, warmth)))

        shared = {
            "what": "interval of the difference of the axes, one cluster",
            "study": "stereomap",
            "condition": condition.text,
            "n": n_groups,
        }
        yield {
            **shared,
            "claimed": condition.claimed_these,
            "inside": by_groups,
        }
        yield {
            **shared,
            "scope": "like these",
            "claimed": condition.claimed_like,
            "inside": by_words,
        }


def few_shared_items(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate the agreement of two studies that both have few items."""
    for n_items, claimed in ((5, 0.87), (3, 0.81)):
        inside = []
        for _ in range(N_SLOW_DRAWS):
            # Both instruments are this short, where `interval_of_agreement` has one long one.
            table, draws, rho = instruments(1.0, 0.3, 12, (n_items, n_items), rng)
            agreement = effects.rank_correlations(table, draws, 0, 99).iloc[0]
            # The truth is the correlation of the true effects of these groups.
            inside.append(holds(agreement, rho))

        yield {
            "what": "interval of agreement",
            "study": "synthesis",
            "condition": f"{n_items} items of each, errors .3 of the spread of 12 groups",
            "n": n_items,
            "claimed": claimed,
            "inside": inside,
        }


class PowerCondition(NamedTuple):
    """Number of groups, effect in SD of pairs of groups, and number of tests."""

    n: int
    effect: float
    n_tests: int


POWER_CONDITIONS = (
    PowerCondition(n=5, effect=1, n_tests=1),
    PowerCondition(n=5, effect=2, n_tests=7),
    PowerCondition(n=6, effect=2, n_tests=7),
    PowerCondition(n=8, effect=2, n_tests=7),
    PowerCondition(n=21, effect=0.7, n_tests=7),
)


def power_of_own_groups(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate the power of own-group tests beside its formula and the floor of permutations."""
    for n, effect, n_tests in POWER_CONDITIONS:
        level = LEVEL / n_tests
        condition = f"{n} groups, an effect of {effect:g} SD, {n_tests} tests"
        own_group = np.eye(n)
        matrices = rng.normal(0, 1, (2 * DRAWS, n, n)) + effect * own_group

        formula = power.own_group_power(n, effect, level)
        yield {
            "what": "power of the own-group test after Bonferroni",
            "study": "empathy_gap",
            "condition": condition,
            "scope": "like these",
            "n": n,
            # The simulated power should be what the formula promises.
            "nominal": formula,
            "claimed": formula,
            "inside": [crossed.own_group(matrix).p < level for matrix in matrices],
        }

        # Only few groups have so few permutations that no test can be significant.
        if n >= 8:
            continue
        inside = []
        for matrix in matrices[:N_SLOW_DRAWS]:
            test = permutation_test(matrix, own_group, 999, rng)
            inside.append(test.pvalue < level)
        floor = power.permutation_floor(n, 999) * n_tests
        # Where the smallest possible p is above the level, none rejects; elsewhere nothing is
        # claimed.
        claimed = 0.0 if floor >= LEVEL else np.mean(inside)
        yield {
            "what": "power of permutations after Bonferroni",
            "study": "empathy_gap",
            "condition": f"{condition}, p at least {floor:.3g}",
            "n": n,
            "nominal": claimed,
            "claimed": claimed,
            "inside": inside,
        }


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
    settings_like_these,
    differences_of_models,
    differences_over_groups,
    clusters_of_unequal_spread,
    few_shared_items,
    power_of_own_groups,
)
