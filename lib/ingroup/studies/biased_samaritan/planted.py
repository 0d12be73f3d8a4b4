"""What the calibrant answers in the Biased Samaritan."""

from pathlib import Path

import numpy as np
import yaml

from ingroup.design import Block
from ingroup.models import words
from ingroup.studies.biased_samaritan import stimuli


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
