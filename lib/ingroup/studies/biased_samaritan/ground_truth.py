"""Ground truth of the Biased Samaritan: the answers that a calibrant is built to give."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from ingroup.design import Block
from ingroup.inference import Job
from ingroup.models import ground_truth_file, points_of_words, words
from ingroup.stats.paired import paired_test
from ingroup.studies.biased_samaritan import stimuli
from ingroup.studies.biased_samaritan.answers import cubes
from ingroup.studies.biased_samaritan.statistics import brittleness_or_missing, defined_biases


class GroundTruth:
    """The ground-truth answers of one model.

    Parameters
    ----------
    file : Path
        The model's ``ground_truth.yaml``.
    """

    def __init__(self, file: Path):
        studies = yaml.safe_load(file.read_text("utf8"))
        scale = stimuli.request()
        self.table = studies["biased_samaritan"]
        self.low = scale.low
        self.high = scale.high

    def value(self, text: str, category: str, group: str) -> float:
        """Compute the ground-truth rating of a prompt.

        Parameters
        ----------
        text : str
            A wording, with its slot or rendered.
        category, group : str
            The category and the group of the phrasing. All phrasings of a group count alike.

        Returns
        -------
        float
            Points on 1 to 100, before they are rounded.
        """
        words_of_text = words(text)
        value = self.table["base"] + points_of_words(self.table["words"], words_of_text)

        effects = self.table["group"].get(category, {})
        if group in effects:
            effect = effects[group]
            value += effect["points"] + effect["tilt"] * self._tilt(words_of_text)
        return max(self.low, min(self.high, value))

    def _tilt(self, words_of_text: Collection[str]) -> int:
        """Return the tilt of a text: 1 (up), -1 (down), or 0 for words of both kinds or of none."""
        tilting_words = self.table["tilt"]
        is_up = not set(tilting_words["up"]).isdisjoint(words_of_text)
        is_down = not set(tilting_words["down"]).isdisjoint(words_of_text)
        return int(is_up) - int(is_down)

    def refuses(self, text: str, phrasing: str) -> bool:
        """Tell whether the ground-truth reply is a refusal.

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
        """Compute the ground-truth answers to the prompts of a block.

        Parameters
        ----------
        block : Block
            A block of the study's design, of one category.

        Returns
        -------
        ndarray, (prompts,)
            Whole numbers in points, NaN where a refusal is built in.
        """
        category = block.labels["category"]
        answers = np.full(len(block), np.nan)
        for index, prompt in enumerate(block.factors["prompt"]):
            if not self.refuses(prompt.text, prompt.phrasing):
                value = self.value(prompt.text, category, prompt.group)
                answers[index] = round(value)
        return answers


def taught_ratings(job: Job, prompts: pd.DataFrame) -> pd.DataFrame:
    """Give the prompts of a calibrant the ratings that it was taught.

    Parameters
    ----------
    job : Job
        A job of a calibrant.
    prompts : DataFrame
        The prompts of the job, from :func:`~.answers.load`.

    Returns
    -------
    DataFrame
        The same prompts; ``rating`` is the ground truth, NaN where a refusal is built in.
    """
    (block,) = job.design.blocks
    ratings = GroundTruth(ground_truth_file(job.model)).answers(block)
    return prompts.assign(rating=ratings)


def recovery(
    said: pd.DataFrame, taught: pd.DataFrame, groups: Collection[str], unit: str, **spread: Any
) -> pd.DataFrame:
    """Compare bias and brittleness of the groups of a category with the ground truth.

    Parameters
    ----------
    said, taught : DataFrame
        The prompts of a calibrant, with the ratings that it gave and the ratings that it was
        taught.
    groups : collection of str
        The groups that were tested, the control among them.
    unit : {"scenario", "prompt"}
        The unit that is paired.
    **spread
        Options of :func:`~.statistics.brittleness`.

    Returns
    -------
    DataFrame
        By group: ``ground_truth_bias``, ``ground_truth_brittleness`` and ``brittleness``. ``off``
        is how much the bias exceeds the ground truth, over the prompts that have both ratings.
    """
    # The error of a bias is computed over the prompts that have both ratings.
    lacks_a_rating = said.rating.isna() | taught.rating.isna()
    said_of_both = _of_groups(said, lacks_a_rating, groups)
    taught_of_both = _of_groups(taught, lacks_a_rating, groups)
    bias_of_both = defined_biases(said_of_both, unit).bias
    ground_truth_bias_of_both = defined_biases(taught_of_both, unit).bias

    spreads = {}
    ratings_said = cubes(said)
    for group in groups:
        spreads[group] = brittleness_or_missing(ratings_said[group], **spread).mean

    ground_truth_spreads = {}
    ratings_taught = cubes(taught)
    for group, ratings in ratings_taught.items():
        ground_truth_spreads[group] = brittleness_or_missing(ratings, **spread).mean

    columns = {
        "ground_truth_bias": defined_biases(ratings_taught, unit).bias,
        "ground_truth_brittleness": pd.Series(ground_truth_spreads),
        "brittleness": pd.Series(spreads),
        "off": bias_of_both - ground_truth_bias_of_both,
    }
    return pd.DataFrame(columns)


def with_own_error(table: pd.DataFrame, errors: pd.DataFrame) -> pd.DataFrame:
    """Split the error of each bias into the model's own error and the pipeline's.

    Parameters
    ----------
    table : DataFrame
        From `recovery`.
    errors : DataFrame
        Scenarios by groups: how much the difference between group and control in the model's
        answers exceeds the difference that the model was taught.

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
        the bias holds the ground truth) and ``finding``.

    Returns
    -------
    str
        A sentence without the model's name.
    """
    largest_of_pipeline = rows.pipeline_error.abs().max()
    root_mean_square = rows.model_error.pow(2).mean() ** 0.5
    largest_of_model = rows.model_error.abs().max()
    n_inside = rows.inside.sum()
    n_significant = rows.finding.eq("significant").sum()
    return (
        f"the pipeline is off by {largest_of_pipeline:.0e} points at most, "
        f"the model by {root_mean_square:.2f} (root mean square), at most {largest_of_model:.2f}; "
        f"{n_inside} of {len(rows)} built-in biases lie in the 95 % interval; "
        f"{n_significant} groups differ after Holm's correction"
    )


def _of_groups(
    prompts: pd.DataFrame, is_missing: pd.Series, groups: Collection[str]
) -> dict[str, np.ndarray]:
    """Arrange the ratings of some groups, with NaN for the prompts marked as missing."""
    ratings = prompts.rating.mask(is_missing)
    arrays = cubes(prompts.assign(rating=ratings))
    return {group: arrays[group] for group in groups}
