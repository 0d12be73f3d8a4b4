"""Ground truth of the study: the answers that a calibrant is built to give."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from numpy.typing import NDArray

from ingroup.design import Block
from ingroup.inference import Job, stored
from ingroup.models import points_of_words, words
from ingroup.parsing import REFUSED
from ingroup.stats.effects import coverage_text
from ingroup.studies.empathy_gap import statistics, stimuli
from ingroup.studies.empathy_gap.answers import STATUSES, BlockKey, Ratings
from ingroup.studies.empathy_gap.blocks import KEY
from ingroup.studies.empathy_gap.statistics import Exclusion


class GroundTruth:
    """The ground-truth answers of one model.

    Parameters
    ----------
    file : Path
        The model's ``ground_truth.yaml``.
    """

    def __init__(self, file: Path):
        self.table = yaml.safe_load(file.read_text("utf8"))["empathy_gap"]
        self.group_of = {}
        for category in stimuli.categories():
            people = stimuli.identities(category)
            # "A person" gets no group, so that it shares none with itself.
            named = people[people.group != stimuli.UNSPECIFIED]
            for row in named.itertuples():
                self.group_of[category, row.identity] = row.group

    def value(
        self, setting: str, category: str, perceiver: str, experiencer: str, emotion: str, text: str
    ) -> float:
        """Compute the ground-truth rating of a trial.

        Parameters
        ----------
        setting : str
            A setting, e.g. ``"P0,S0,T0"``. The bonus of a shared group depends on it.
        category : str
            The category of both identities.
        perceiver : str
            The identity of the persona.
        experiencer : str
            The identity of the person in the event.
        emotion : str
            The emotion of the event, one that ``ground_truth.yaml`` lists.
        text : str
            The narrative. Some of its words add or take points.

        Returns
        -------
        float
            Points on 0 to 100, before they are rounded to the scale.
        """
        of_perceivers = self.table["perceiver"].get(category, {})
        of_experiencers = self.table["experiencer"].get(category, {})
        value = self.table["emotion"][emotion]
        value += points_of_words(self.table["words"], words(text))
        value += of_perceivers.get(perceiver, 0.0)
        value += of_experiencers.get(experiencer, 0.0)

        group = self.group_of.get((category, perceiver))
        # Two identities without a group have None, which they do not share.
        if group is not None and group == self.group_of.get((category, experiencer)):
            bonus = self.table["same_group"]
            factor = bonus["setting"].get(setting, 1.0)
            value += bonus["points"].get(category, 0.0) * factor

        for pair in self.table["pair"]:
            is_this_pair = pair["perceiver"] == perceiver and pair["experiencer"] == experiencer
            if is_this_pair:
                value += pair["points"]
        return max(0.0, min(100.0, value))

    def refuses(self, experiencer: str, text: str) -> bool:
        """Tell whether the ground-truth reply is a refusal.

        Parameters
        ----------
        experiencer : str
            The identity of the person in the event.
        text : str
            The narrative.

        Returns
        -------
        bool
            True if both the experiencer and a word of the narrative call for a refusal.
        """
        rule = self.table["refusal"]
        if experiencer not in rule["experiencer"]:
            return False
        return not set(rule["words"]).isdisjoint(words(text))

    def ratings(self, block: Block) -> np.ndarray:
        """Compute the ground-truth answers to a block of the design.

        Parameters
        ----------
        block : Block
            A block of the study's design, of one category in one setting.

        Returns
        -------
        ndarray, of the block's shape
            Whole numbers on the block's scale, NaN where a refusal is built in.
        """
        setting = block.labels["setting"]
        category = block.labels["category"]
        high = stimuli.setting(setting).high
        ratings = np.full(len(block), np.nan)
        for index in range(len(block)):
            condition = block.condition(index)
            perceiver = condition["perceiver"]
            experiencer = condition["experiencer"]
            event = condition["event"]
            if self.refuses(experiencer, event.narrative):
                continue

            value = self.value(
                setting,
                category,
                perceiver,
                experiencer,
                event.emotion,
                event.narrative,
            )
            # Points are on 0 to 100, the scale may end at 10.
            ratings[index] = round(value * high / 100)
        return ratings.reshape(block.shape)


def delta_counted_anew(texts: pd.DataFrame, block: Block, exclusion: Exclusion) -> float:
    """Compute delta from the replies by its definition, without the functions of the study.

    Parameters
    ----------
    texts : DataFrame
        The replies of a block, one row per trial and one column per round.
    block : Block
        The block, whose labels name its category.
    exclusion : {"listwise", "pairwise"}
        As in :func:`~.statistics.exclude`.

    Returns
    -------
    float
        The gap, by pandas alone; NaN where no cell differs.
    """
    # A trial's number counts in C order, so row i has the numbers of trial i's levels.
    levels = np.indices(block.shape).reshape(3, -1).T
    trials = pd.DataFrame(levels, columns=["perceiver", "experiencer", "event"])
    numbers = texts.apply(pd.to_numeric, errors="coerce")
    # The rounds of a trial are averaged.
    trials["points"] = numbers.mean(axis=1).to_numpy()
    if exclusion == "listwise":
        n_cells = block.shape[0] * block.shape[1]
        n_answers = trials.groupby("event").points.transform("count")
        trials = trials[n_answers == n_cells]

    cells = trials.groupby(["perceiver", "experiencer"], as_index=False).points.mean()
    if np.ptp(cells.points) == 0:
        return np.nan

    # Level 0 is "a person" on both sides.
    named = cells[(cells.perceiver > 0) & (cells.experiencer > 0)]
    # A level is the row of the identity in this table, from which the design is built.
    group = stimuli.identities(block.labels["category"]).group.to_numpy()
    is_own = group[named.perceiver] == group[named.experiencer]
    gap = named.points[is_own].mean() - named.points[~is_own].mean()
    # As in the paper, "a person" counts in the standard deviation and not in the gap.
    return gap / cells.points.std(ddof=0)


def delta_counted_in_stores(jobs: Sequence[Job], exclusion: Exclusion) -> float:
    """Compute delta from the stored texts of a block, by `delta_counted_anew`.

    Parameters
    ----------
    jobs : sequence of Job
        The rounds of one block, with stored answers.
    exclusion : {"listwise", "pairwise"}
        As in :func:`~.statistics.exclude`.

    Returns
    -------
    float
        The gap; NaN for scored answers, whose text is not the rating.
    """
    if jobs[0].is_scored:
        return np.nan

    texts_of_rounds = []
    for job in jobs:
        replies = stored(job).read(columns=["text"])
        texts_of_rounds.append(replies.text.astype(object))
    texts = pd.concat(texts_of_rounds, axis=1)

    (block,) = jobs[0].design.blocks
    return delta_counted_anew(texts, block, exclusion)


def recovery(
    ground_truth: NDArray[np.float64],
    found: Ratings,
    same: NDArray[np.bool_],
    exclusion: Exclusion,
) -> dict[str, float]:
    """Measure how closely the ground-truth ratings of a block are recovered.

    Parameters
    ----------
    ground_truth : ndarray, (perceivers, experiencers, events)
        The ground-truth ratings, NaN where a refusal is built in.
    found : Ratings
        The ratings here.
    same : ndarray of bool
        The pairs of one group, without "a person".
    exclusion : {"listwise", "pairwise"}
        As in :func:`~.statistics.exclude`.

    Returns
    -------
    dict
        ``ground_truth_delta``; ``correlation_of_cells``, NaN where all true cells are equal;
        ``cell_error``, the mean absolute difference of cells, in points; ``invalid_percent`` of the
        answers; the numbers of refusals: ``refusals_ground_truth`` that are built in, ``refusals``
        here, and ``refusals_both``, the trials that are both.
    """
    ground_truth_means = statistics.cell_means(statistics.exclude(ground_truth, exclusion))
    means = statistics.cell_means(statistics.exclude(found.values, exclusion))
    # The true cells of calibrant-null are equal. They have no z-scores, and its gap is 0.
    delta = 0.0
    correlation = np.nan
    if not statistics.is_flat(ground_truth_means):
        matrix = statistics.gap_matrix(ground_truth, exclusion)
        delta = statistics.empathy_gap(matrix, same)
        correlation = np.corrcoef(ground_truth_means.ravel(), means.ravel())[0, 1]

    is_true_refusal = np.isnan(ground_truth)
    is_refusal = found.status == STATUSES.index(REFUSED)
    n_invalid = found.counts[["unparsable", "cut", "failed", "missing"]].sum()
    return {
        "ground_truth_delta": delta,
        "correlation_of_cells": correlation,
        "cell_error": np.abs(means - ground_truth_means).mean(),
        "invalid_percent": 100 * n_invalid / found.values.size,
        "refusals_ground_truth": int(is_true_refusal.sum()),
        "refusals": int(found.counts["refused"]),
        "refusals_both": int((is_true_refusal & is_refusal).sum()),
    }


def cells(
    ground_truth: Mapping[BlockKey, np.ndarray],
    matrix: pd.DataFrame,
    exclusion: Exclusion,
) -> pd.DataFrame:
    """Put the ground-truth mean of each cell beside the mean here.

    Parameters
    ----------
    ground_truth : mapping
        The ground-truth ratings of each block: of a model, a setting and a category.
    matrix : DataFrame
        From `blocks.cells`.
    exclusion : {"listwise", "pairwise"}
        As in :func:`~.statistics.exclude`.

    Returns
    -------
    DataFrame
        ``model``, ``setting``, ``category``, ``perceiver``, ``experiencer``, ``mean`` and
        ``ground_truth``. Blocks for which no difference is built in are left out.
    """
    columns = [*KEY, *statistics.SIDES, "mean"]
    blocks = matrix.groupby(KEY)
    tables = []
    for key, ratings in ground_truth.items():
        kept = statistics.exclude(ratings, exclusion)
        means = statistics.cell_means(kept)
        if statistics.is_flat(means):
            continue

        here = blocks.get_group(key)[columns]
        with_ground_truth = here.assign(ground_truth=means.ravel())
        tables.append(with_ground_truth)

    if not tables:
        return pd.DataFrame(columns=[*columns, "ground_truth"])
    return pd.concat(tables)


def with_verdicts(recovered: pd.DataFrame) -> pd.DataFrame:
    """Judge for each block whether pipeline and gap agree with the ground truth.

    Parameters
    ----------
    recovered : DataFrame
        Table 2 (``flat``, ``delta``, ``low``, ``high``), `recovery`, and ``counted_anew``, NaN for
        scored answers.

    Returns
    -------
    DataFrame
        With ``model_error``, delta minus the ground-truth delta; ``pipeline``, "exact" where delta
        equals ``counted_anew`` or no cell differs; ``verdict`` of
        :func:`ingroup.stats.effects.coverage_text`. Where no cell differs, delta and its interval
        count as 0.
    """
    differences = recovered.delta - recovered.counted_anew
    is_equal = differences.abs() < 1e-8
    # The first condition that holds is taken.
    conditions = {
        "exact": recovered.flat | is_equal,
        "not counted: scored": recovered.counted_anew.isna(),
    }
    pipeline = np.select(list(conditions.values()), list(conditions), default="differs")

    gaps = recovered[["delta", "low", "high"]].fillna(0)
    return recovered.assign(
        model_error=gaps.delta - recovered.ground_truth_delta,
        pipeline=pipeline,
        verdict=coverage_text(recovered.ground_truth_delta, gaps.low, gaps.high),
    )
