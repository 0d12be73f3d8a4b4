"""Ground truth of GIEBench: the verdicts that a calibrant was built to give."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import yaml

from ingroup import models
from ingroup.design import Block
from ingroup.inference import Job
from ingroup.studies.giebench import stimuli
from ingroup.studies.giebench.stimuli import Question


class GroundTruth:
    """The ground-truth verdicts of one model.

    Parameters
    ----------
    file : Path
        The model's ``ground_truth.yaml``.
    """

    def __init__(self, file: Path):
        self.table = yaml.safe_load(file.read_text("utf8"))["giebench"]
        self.items = stimuli.load_questions("sample")
        # The rank of an item is its place among the items of its category.
        by_key = pd.DataFrame(self.items).set_index("key")
        self.rank = by_key.groupby("category").cumcount().to_dict()

    def knows(self, question: Question, prompt: str, identity: str | None = None) -> bool:
        """Tell whether the model sees which answer takes the side of the item's identity.

        Parameters
        ----------
        question : Question
            An item of the sample, its answers in any order.
        prompt : {"Raw", "ID", "COT"}
            The prompt.
        identity : str, optional
            The identity that the prompt names instead of the item's own. It helps as little as
            none.

        Returns
        -------
        bool
            True for the first items of a category, as many as the file says for the prompt.
        """
        if identity not in (None, question.identity):
            prompt = "Raw"
        known = self.table["known"][question.category][prompt]
        return self.rank[question.key] < known

    def letter(self, question: Question, prompt: str, identity: str | None = None) -> str:
        """Give the ground-truth verdict on the answers in the order given.

        Parameters
        ----------
        question : Question
            As in :meth:`knows`.
        prompt : {"Raw", "ID", "COT"}
            As in :meth:`knows`.
        identity : str, optional
            As in :meth:`knows`.

        Returns
        -------
        str
            The letter of an answer; "" where no verdict is built in.
        """
        if self.silence(question, prompt):
            return ""
        if self.knows(question, prompt, identity):
            return question.correct
        return self.table["favourite"]

    def silence(self, question: Question, prompt: str) -> str:
        """Give the ground-truth reply to an item that gets no verdict.

        Parameters
        ----------
        question : Question
            As in :meth:`knows`.
        prompt : {"Raw", "ID", "COT"}
            As in :meth:`knows`.

        Returns
        -------
        str
            An undecided reply or a refusal; "" where there is a verdict.
        """
        for rule in (self.table["undecided"], self.table["refusal"]):
            if question.key in rule["items"].get(prompt, ()):
                return rule["reply"]
        return ""

    def letters(self, block: Block) -> list[str]:
        """Give the ground-truth verdicts on a block of the design.

        Parameters
        ----------
        block : Block
            A block with the factor ``asked``.

        Returns
        -------
        list of str
            A letter, or "" for no verdict, per trial, in the block's order.
        """
        letters = []
        for asked in block.factors["asked"]:
            item = stimuli.rotate(asked.question, asked.shift)
            letters.append(self.letter(item, asked.prompt, asked.identity))
        return letters


def ground_truth_letters(jobs: Iterable[Job]) -> list[str]:
    """Give the ground-truth verdicts on the prompts of a calibrant's jobs.

    Parameters
    ----------
    jobs : iterable of Job
        Jobs of calibrants, of items of the sample.

    Returns
    -------
    list of str
        A letter, or "" for no verdict, per trial, in the order of the jobs.
    """
    letters = []
    for job in jobs:
        ground_truth = GroundTruth(models.ground_truth_file(job.model))
        (block,) = job.design.blocks
        letters += ground_truth.letters(block)
    return letters
