"""The first study as a lens: empathy that groups receive and give, and the gap on every path."""

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ingroup.families import families
from ingroup.inference import Call, rated_by
from ingroup.stats.effects import BootstrapInterval, bootstrap_interval, bootstrap_pvalue, relative
from ingroup.stats.multiverse import Result, attempt, evaluate
from ingroup.stats.paired import nan_mean
from ingroup.stats.permutation import permutation_test
from ingroup.stats.power import (
    groups_for_permutation,
    permutation_floor,
    smallest_own_group_effect,
    smallest_paired_effect,
)
from ingroup.studies.empathy_gap import design, statistics, stimuli
from ingroup.studies.empathy_gap.answers import by_block, load_rounds
from ingroup.studies.empathy_gap.planted import Planted
from ingroup.synthesis import Tested, View, rules, ways_to_read

MEASURES = ("empathy received", "empathy given")
CHOICES = {
    "exclusion": ["listwise", "pairwise"],  # see `exclude`
    "matrix": ["with a person", "without"],  # whose z-scores they are: the paper's way, or released
    "rounding": ["none", "cell means"],  # to 2 decimals, as released
    "unit": ["identities", "groups", "events"],  # rearranged by permutation, or by bootstrap
}


def portrait(
    parameters: Mapping[str, Any], model: str, groups: Mapping[str, str], file: Path | None = None
) -> list[View]:
    """`empathy` in the first setting, two views a category; see :mod:`ingroup.synthesis`."""
    first, views = next(iter(_calls(parameters, model).values())), []
    for (_, _, category), rounds in by_block(first).items():
        people = stimuli.identities(category)
        if file:
            read = Planted(file).ratings(rounds[0].design.blocks[0])
        else:
            read = load_rounds(rounds, parameters["PARSING"]).values
        values = statistics.exclude(read, parameters["EXCLUSION"])
        named = people.group != stimuli.UNSPECIFIED
        names = people.identity.map(groups).fillna(people.group).where(named, "")
        found = zip(MEASURES, empathy(values, list(names)), strict=True)
        sd = float(np.nanstd(values[named][:, named]))
        views += [View(measure, items, sd, draw=category) for measure, items in found]
    return views


def empathy(values: NDArray, groups: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Empathy that groups receive, and give, relative to the other groups: events by groups.

    Cells are averaged within pairs of groups first, so that a group with many names has no more
    in-group cells than one with few. With B[g, h] the mean rating by perceivers of g of
    experiencers of h in one event::

        received(h) = mean_g B[g, h] - mean over the other h' of mean_g B[g, h']

    and given(g) likewise with rows and columns exchanged. `values` are ratings (n, n, events) in
    points, NaN where one is missing; of the n `groups` those named "" are left out.
    """
    names = [name for name in dict.fromkeys(groups) if name]
    places = [np.flatnonzero(np.asarray(groups) == name) for name in names]
    blocks = [[nan_mean(np.concatenate(values[p][:, x])) for x in places] for p in places]
    received, given = (pd.DataFrame(nan_mean(blocks, axis).T, columns=names) for axis in (0, 1))
    return relative(received), relative(given)


def effects(parameters: Mapping[str, Any], model: str) -> pd.DataFrame:
    """Own-group effect of each event in the first setting, in points: events by categories."""
    first = next(iter(_calls(parameters, model).values()))
    columns = {}
    for (_, _, category), rounds in by_block(first).items():
        values = load_rounds(rounds, parameters["PARSING"]).values[1:, 1:]
        groups = stimuli.identities(category).group[1:]
        events = rounds[0].design.blocks[0].factors["event"]
        names = [f"{event.emotion} {event.text_id}" for event in events]
        columns[category] = pd.Series(statistics.own_by_event(values, groups), names)
    return pd.DataFrame(columns)


def power(planned: Mapping[str, Any], recorded: Mapping[str, Any], model: str) -> list[Tested]:
    """The gap over events, for these names; and that of each category, for groups like these.

    The second is the test of :func:`ingroup.stats.crossed.own_group`, beside the floor of whole
    groups in random order, in Table 2. The categories of a setting are Holm's family.
    """
    ratings = {}
    first = next(iter(_calls(recorded, model).values()))
    for (_, _, category), rounds in by_block(first).items():
        ratings[category] = load_rounds(rounds, recorded["PARSING"]).values[1:, 1:]

    variances = []
    for category, values in ratings.items():
        same = statistics.same_group(stimuli.identities(category).group[1:])
        gaps = nan_mean(values[same]) - nan_mean(values[~same])
        variances.append(np.nanvar(gaps, ddof=1))
    n = len(stimuli.load_events(planned["CORPUS"], planned["N_EVENTS"] or None))
    alpha = families()["empathy_gap"].level
    smallest = smallest_paired_effect(n, alpha)
    spread = float(np.mean(variances) ** 0.5)
    tests = [Tested("points of gap", "events", n, "interval over events", alpha, smallest, spread)]
    names = planned["CATEGORIES"] or stimuli.categories()
    for category in names:
        if category in ratings:
            tests.append(_own_group(category, ratings[category], len(names)))
    return tests


def _own_group(category: str, values: NDArray, family: int) -> Tested:
    """The test of a category for groups like these, one of a family of so many tests."""
    alpha = families()["empathy_gap"].level
    groups = stimuli.identities(category).group[1:]
    n = groups.nunique()
    least = permutation_floor(n)
    floor = f"{n} groups in random order cannot give a p below {least:.2g}."
    if least >= alpha:
        floor += f" It takes {groups_for_permutation(alpha)} groups to reach {alpha:g}."
    return Tested(
        effect="points more for one's own group",
        items=f"groups ({category})",
        n=n,
        name="social relations model",
        level=alpha / family,
        smallest=smallest_own_group_effect(n, alpha / family),
        spread=statistics.relationship_sd(values, groups),
        floor=floor,
    )


def claims(
    answers: Mapping[str, NDArray], same: Mapping[str, NDArray[np.bool_]], **path: Any
) -> dict[str, Result]:
    """The gap of each category is above 0 (Hou et al.): `gap` of its ratings and same pairs."""
    return {name: attempt(gap, values, same[name], **path) for name, values in answers.items()}


def gap(
    values: NDArray, same: NDArray[np.bool_], exclusion: str, matrix: str, rounding: str,
    unit: str, n_resamples: int, seed: int,
) -> Result:  # fmt: skip
    """delta of one category on one path: `values` with "a person" first, `same` without.

    Its interval is the bootstrap's over events, whose rounding is unknown; p that of `n_resamples`
    arrangements of identities, or of whole groups of them, or, over events, the bootstrap's. All
    are drawn from `seed` anew: no path depends on those before. The options are of `CHOICES`.
    """
    left = statistics.exclude(values if matrix == "with a person" else values[1:, 1:], exclusion)
    found = _drawn(left.tobytes(), len(left), same.tobytes(), seed)
    if unit == "events":
        p = bootstrap_pvalue(found.draws, left.shape[2])
        least = bootstrap_pvalue(np.ones_like(found.draws), left.shape[2])
        return Result(found.statistic, found.low, found.high, p, least=least)
    decimals, separate = 2 if rounding == "cell means" else None, matrix == "without"
    z = statistics.gap_matrix(values, exclusion, decimals, separate)
    tested, pairs = z, same
    if unit == "groups":
        tested = statistics.by_group(z, same)
        pairs = np.eye(len(tested))
    test = permutation_test(tested, pairs, n_resamples, seed)
    delta = statistics.empathy_gap(z, same)
    return Result(delta, found.low, found.high, test.pvalue, least=test.least)


@lru_cache(maxsize=8)
def _drawn(left: bytes, n: int, same: bytes, seed: int) -> BootstrapInterval:
    """`bootstrap_interval`, drawn once for all paths on equal ratings of n identities."""
    values, pairs = np.frombuffer(left).reshape(n, n, -1), np.frombuffer(same, dtype=bool)
    return bootstrap_interval(values, pairs.reshape([isqrt(pairs.size)] * 2), rng=seed)


def paths(parameters: Mapping[str, Any], model: str, options: Mapping[str, Any]) -> pd.DataFrame:
    """`claims` on every path, by `evaluate`; of the options N_RESAMPLES and SEED are taken.

    A category whose answers do not allow a reading is not among the claims of its paths.
    """
    calls = _calls(parameters, model)
    same = {c: statistics.same_group(stimuli.identities(c).group[1:]) for c in stimuli.categories()}
    every = [call for of_setting in calls.values() for call in of_setting]
    ways = {key: ways_to_read(rounds) for key, rounds in by_block(every).items()}
    most = max(ways.values(), key=len)
    names = dict.fromkeys([*most, *(name for own in ways.values() for name in own)])
    choices = {"setting": list(calls), "parsing": rules(every), "reading": list(names)}

    def read(setting, parsing, reading):
        values = {}
        for key, rounds in by_block(calls[setting]).items():
            *_, category = key
            if reading in ways[key]:
                values[category] = load_rounds(rounds, parsing, ways[key][reading]).values
        return values

    tested = partial(claims, same=same, n_resamples=options["N_RESAMPLES"], seed=options["SEED"])
    table = evaluate(
        choices, read, CHOICES, tested, families()["empathy_gap"].level,
        lambda unit, rounding, **_: (unit, rounding) != ("events", "cell means"),
    )  # fmt: skip
    order = stimuli.categories()
    return table.sort_values("claim", key=lambda names: names.map(order.index), kind="stable")


def _calls(parameters: Mapping[str, Any], model: str) -> dict[str, list[Call]]:
    """What this model's ratings are read from: by setting, a call a category and round."""
    asked = (call for call in design.calls(parameters) if call.labels["setting"] != "rewrite")
    found: dict[str, list[Call]] = {}
    for call in rated_by(model, asked):
        found.setdefault(call.labels["setting"], []).append(call)
    return found
