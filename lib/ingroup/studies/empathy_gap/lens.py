"""The first study as a lens: empathy that groups receive and give, and the gap on every path."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ingroup.inference import Call
from ingroup.stats.effects import relative
from ingroup.stats.intervals import bootstrap_interval
from ingroup.stats.multiverse import Result, attempt, evaluate
from ingroup.stats.permutation import permutation_test, same_group
from ingroup.studies.empathy_gap import design, stimuli
from ingroup.studies.empathy_gap.answers import load
from ingroup.studies.empathy_gap.planted import Planted
from ingroup.studies.empathy_gap.ratings import exclude, gap_matrix
from ingroup.synthesis import RULES, View

MEASURES = ("empathy received", "empathy given")


def portrait(
    parameters: Mapping[str, Any],
    model: str,
    groups: Mapping[str, str],
    planted: Path | None = None,
) -> list[View]:
    """`empathy` in the first setting, two views a category; see :mod:`ingroup.synthesis`."""
    first, views = _calls(parameters, model)[0], []
    answers = {} if planted else load(first, parameters["PARSING"])
    for place, block in enumerate(first.design.blocks):
        category = block.labels["category"]
        values = Planted(planted).ratings(block) if planted else answers[category].values
        values = exclude(values, parameters["EXCLUSION"]).values
        people = stimuli.identities(category)
        names = people.identity.map(groups).fillna(people.group)
        named = people.group != stimuli.UNSPECIFIED
        sd = float(np.nanstd(values[named][:, named]))
        found = empathy(values, list(names.where(named, "")))
        views += [View(*pair, sd, draw=place) for pair in zip(MEASURES, found, strict=True)]
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
    pairs = pd.MultiIndex.from_product([groups, groups], names=["given", "received"])
    cells = pd.DataFrame(np.reshape(values, (len(pairs), -1)), pairs)
    cells = cells.drop("", level="given", errors="ignore")
    cells = cells.drop("", level="received", errors="ignore")
    blocks = cells.groupby(level=[0, 1], sort=False).mean()
    received, given = (blocks.groupby(level=side, sort=False).mean().T for side in (1, 0))
    return relative(received), relative(given)


def claims(
    answers: Mapping[str, NDArray[np.float64]],
    same: Mapping[str, NDArray[np.bool_]],
    **path: Any,
) -> dict[str, Result]:
    """The gap of each category is above 0 (Hou et al.): `gap` of its ratings and same pairs."""
    return {name: attempt(gap, answers[name], same[name], **path) for name in same}


def gap(
    values: NDArray[np.float64],
    same: NDArray[np.bool_],
    exclusion: str,
    matrix: str,
    rounding: str,
    unit: str,
    n_resamples: int,
    seed: int,
) -> Result:
    """delta of one category on one path.

    Parameters
    ----------
    values, same : ndarray
        Ratings (n + 1, n + 1, events), "a person" first, and the pairs of one group (n, n).
    exclusion : str
        See `exclude`.
    matrix : {"with a person", "without"}
        Whether the z-scores are those of the matrix with "a person" (paper) or without (released).
    rounding : {"none", "cell means"}
        To 2 decimals, as released.
    unit : {"identities", "events"}
        What is rearranged: identities by `permutation_test` (the interval is delta less the ends of
        the null's), or events by `bootstrap_interval` (p is twice the smaller share of the draws on
        one side of 0, one draw added), which knows no rounding.
    n_resamples, seed : int
        Of either, drawn anew for each path, so that a path does not depend on those before.
    """
    rng = np.random.default_rng(seed)
    if unit == "identities":
        decimals, separate = 2 if rounding == "cell means" else None, matrix == "without"
        z = gap_matrix(values, 0, exclusion, decimals=decimals, separate=separate)
        test = permutation_test(z, same, n_resamples, rng)
        low, high = test.null_interval
        return Result(test.statistic, test.statistic - high, test.statistic - low, test.pvalue)
    named, place = (values, 0) if matrix == "with a person" else (values[1:, 1:], None)
    left = exclude(named, exclusion).values
    found = bootstrap_interval(left, same, n_resamples, rng, unspecified=place)
    sides = (found.draws <= 0).sum(), (found.draws >= 0).sum()
    p = min(1.0, 2 * (min(sides) + 1) / (len(found.draws) + 1))
    return Result(found.statistic, found.low, found.high, p)


def paths(parameters: Mapping[str, Any], model: str, options: Mapping[str, Any]) -> pd.DataFrame:
    """`claims` on every path, by `evaluate`; of the options N_RESAMPLES and SEED are taken."""
    calls = {call.labels["setting"]: call for call in _calls(parameters, model)}
    same = {c: same_group(stimuli.identities(c).group[1:]) for c in stimuli.categories()}

    def read(setting, parsing):
        return {name: found.values for name, found in load(calls[setting], parsing).items()}

    choices = {
        "exclusion": ["any", "pairwise"],
        "matrix": ["with a person", "without"],
        "rounding": ["none", "cell means"],
        "unit": ["identities", "events"],
    }
    tested = partial(claims, same=same, n_resamples=options["N_RESAMPLES"], seed=options["SEED"])
    return evaluate(
        {"setting": list(calls), "parsing": RULES}, read, choices, tested, 0.05,
        lambda unit, rounding, **_: (unit, rounding) != ("events", "cell means"),
    )  # fmt: skip


def _calls(parameters: Mapping[str, Any], model: str) -> list[Call]:
    """What this model was asked, a call a setting."""
    calls = [call for call in design.calls(parameters) if call.model == model]
    return [call for call in calls if call.labels["setting"] != "rewrite"]
