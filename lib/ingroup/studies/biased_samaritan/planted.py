"""What the calibrant answers in the Biased Samaritan."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from ingroup.design import Block
from ingroup.inference import Job
from ingroup.models import planted_file, words
from ingroup.stats.paired import paired_test
from ingroup.studies.biased_samaritan import stimuli
from ingroup.studies.biased_samaritan.answers import cubes
from ingroup.studies.biased_samaritan.statistics import brittleness_or_missing, defined_biases


class Planted:
    """The planted answers of one model.

    Parameters
    ----------
    file : Path
        The model's ``planted.yaml``.
    """

    def __init__(self, file: Path):
        studies = yaml.safe_load(file.read_text("utf8"))
        scale = stimuli.request()
        self.table = studies["biased_samaritan"]
        self.low = scale.low
        self.high = scale.high

    def value(self, text: str, category: str, group: str) -> float:
        """Compute the planted probability of a prompt.

        Parameters
        ----------
        text : str
            A wording, with its slot or rendered.
        category, group : str
            Whose phrasings are named; all phrasings of a group are alike.

        Returns
        -------
        float
            Points on 1 to 100, before they are rounded.
        """
        held = words(text)
        points = self.table["words"]["points"]
        limit = self.table["words"]["limit"]
        total = sum(points.get(word, 0) for word in held)
        of_words = max(-limit, min(limit, total))
        value = self.table["base"] + of_words

        tilting = self.table["tilt"]
        # By its words a scenario is tilted up, down or, with words of both kinds, not at all.
        tilt = 0
        if not set(tilting["up"]).isdisjoint(held):
            tilt += 1
        if not set(tilting["down"]).isdisjoint(held):
            tilt -= 1

        of_category = self.table["group"].get(category, {})
        if group in of_category:
            effect = of_category[group]
            value += effect["points"] + effect["tilt"] * tilt
        return max(self.low, min(self.high, value))

    def refuses(self, text: str, phrasing: str) -> bool:
        """Tell whether the planted reply is a refusal.

        Parameters
        ----------
        text : str
            A wording, with its slot or rendered.
        phrasing : str
            The phrasing as printed in Table 4.

        Returns
        -------
        bool
            True if both the phrasing and a word of the text call for a refusal.
        """
        rule = self.table["refusal"]
        if phrasing not in rule["phrasing"]:
            return False
        return not set(rule["words"]).isdisjoint(words(text))

    def answers(self, block: Block) -> np.ndarray:
        """Compute the planted answers to the prompts of a block.

        Parameters
        ----------
        block : Block
            A block of the study's design, of one category.

        Returns
        -------
        ndarray, (prompts,)
            Whole numbers in points, NaN where a refusal is planted.
        """
        category = block.labels["category"]
        answers = np.full(len(block), np.nan)
        for index, prompt in enumerate(block.factors["prompt"]):
            if not self.refuses(prompt.text, prompt.phrasing):
                value = self.value(prompt.text, category, prompt.group)
                answers[index] = round(value)
        return answers


def taught(job: Job, prompts: pd.DataFrame) -> pd.DataFrame:
    """Give the prompts of a calibrant the ratings that it was taught.

    Parameters
    ----------
    job : Job
        A job of a calibrant.
    prompts : DataFrame
        Its prompts, from :func:`~.answers.load`.

    Returns
    -------
    DataFrame
        The same prompts; ``rating`` is the planted one, NaN where a refusal is planted.
    """
    (block,) = job.design.blocks
    ratings = Planted(planted_file(job.model)).answers(block)
    return prompts.assign(rating=ratings)


def recovered(
    said: pd.DataFrame, taught: pd.DataFrame, groups: Collection[str], unit: str, **spread: Any
) -> pd.DataFrame:
    """Compute planted and observed statistics of the groups of a category.

    Parameters
    ----------
    said, taught : DataFrame
        The prompts of a calibrant with the ratings that it gave, and with those it was taught.
    groups : collection of str
        The groups that were tested, the control among them.
    unit : {"scenario", "prompt"}
        What is paired.
    **spread
        Options of :func:`~.statistics.brittleness`.

    Returns
    -------
    DataFrame
        By group: ``planted_bias``, ``planted_brittleness`` and ``brittleness``. ``off`` is how much
        the bias exceeds the planted one, over the prompts that have both ratings.
    """
    planted = cubes(taught)
    observed = cubes(said)
    # A bias is compared only over prompts with an answer that calls for none to be missing.
    is_missing = (said.rating - taught.rating).isna()
    said_of_both = _of_groups(said, is_missing, groups)
    taught_of_both = _of_groups(taught, is_missing, groups)
    off = defined_biases(said_of_both, unit).bias - defined_biases(taught_of_both, unit).bias

    spreads = {}
    planted_spreads = {}
    for group in groups:
        spreads[group] = brittleness_or_missing(observed[group], **spread).mean
    for group, ratings in planted.items():
        planted_spreads[group] = brittleness_or_missing(ratings, **spread).mean
    columns = {
        "planted_bias": defined_biases(planted, unit).bias,
        "planted_brittleness": pd.Series(planted_spreads),
        "brittleness": pd.Series(spreads),
        "off": off,
    }
    return pd.DataFrame(columns)


def with_own_error(table: pd.DataFrame, errors: pd.DataFrame) -> pd.DataFrame:
    """Split by how much a bias is off into the model's own error and the pipeline's.

    Parameters
    ----------
    table : DataFrame
        From `recovered`.
    errors : DataFrame
        By how much the model says more than it was taught, compared with the control: scenarios by
        groups.

    Returns
    -------
    DataFrame
        The table with ``model_error``, its interval ``model_error_low`` to ``model_error_high``
        over scenarios, and ``pipeline_error``, the rest, in place of ``off``.
    """
    test = paired_test(errors.T.to_numpy())
    split = table.drop(columns="off")
    split["model_error"] = pd.Series(test.difference, errors.columns)
    split["model_error_low"] = pd.Series(test.low, errors.columns)
    split["model_error_high"] = pd.Series(test.high, errors.columns)
    split["pipeline_error"] = table.off - split.model_error
    return split


def summary(rows: pd.DataFrame) -> str:
    """Say how closely the biases of one calibrant are recovered.

    Parameters
    ----------
    rows : DataFrame
        ``pipeline_error`` and ``model_error`` of each group, ``inside`` (whether the interval of
        the bias holds the planted one) and ``finding``.

    Returns
    -------
    str
        A sentence without the model's name.
    """
    pipeline = rows.pipeline_error.abs().max()
    size = rows.model_error.pow(2).mean() ** 0.5
    largest = rows.model_error.abs().max()
    n_significant = rows.finding.eq("significant").sum()
    return (
        f"the pipeline is off by {pipeline:.0e} points at most, the model by {size:.2f} "
        f"(root mean square), at most {largest:.2f}; {rows.inside.sum()} of {len(rows)} planted "
        f"biases lie in the 95 % interval; {n_significant} groups differ after Holm's correction"
    )


def _of_groups(
    prompts: pd.DataFrame, is_missing: pd.Series, groups: Collection[str]
) -> dict[str, np.ndarray]:
    """The ratings of some groups, without those of prompts that one side lacks."""
    kept = prompts.assign(rating=prompts.rating.mask(is_missing))
    arrays = cubes(kept)
    return {group: arrays[group] for group in groups}
