"""What a calibrant is built to answer in this study."""

from pathlib import Path

import numpy as np
import yaml

from ingroup.design import Block
from ingroup.models import words
from ingroup.studies.empathy_gap import stimuli


class Planted:
    """The planted answers of one model.

    Parameters
    ----------
    file : Path
        The model's ``planted.yaml``.
    """

    def __init__(self, file: Path):
        self.table = yaml.safe_load(file.read_text("utf8"))["empathy_gap"]
        self.group_of = {}
        for category in stimuli.categories():
            people = stimuli.identities(category)
            named = people[people.group != stimuli.UNSPECIFIED]
            for row in named.itertuples():
                self.group_of[category, row.identity] = row.group

    def value(
        self, setting: str, category: str, perceiver: str, experiencer: str, emotion: str, text: str
    ) -> float:
        """Compute the planted rating of a trial.

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
            The emotion of the event, one that ``planted.yaml`` lists.
        text : str
            The narrative; some of its words add or take points.

        Returns
        -------
        float
            Points on 0 to 100, before they are rounded to the scale.
        """
        of_perceivers = self.table["perceiver"].get(category, {})
        of_experiencers = self.table["experiencer"].get(category, {})
        value = self.table["emotion"][emotion]
        value += self._of_words(text)
        value += of_perceivers.get(perceiver, 0.0)
        value += of_experiencers.get(experiencer, 0.0)

        group = self.group_of.get((category, perceiver))
        if group is not None and group == self.group_of.get((category, experiencer)):
            bonus = self.table["same_group"]
            factor = bonus["setting"].get(setting, 1.0)
            value += bonus["points"].get(category, 0.0) * factor

        for pair in self.table["pair"]:
            if (pair["perceiver"], pair["experiencer"]) == (perceiver, experiencer):
                value += pair["points"]
        return max(0.0, min(100.0, value))

    def _of_words(self, text: str) -> float:
        """Points of the words of a narrative, up to a limit in either direction."""
        points = self.table["words"]["points"]
        limit = self.table["words"]["limit"]
        total = sum(points.get(word, 0) for word in words(text))
        return max(-limit, min(limit, total))

    def refuses(self, experiencer: str, text: str) -> bool:
        """Tell whether the planted reply is a refusal.

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
        """Compute the planted answers to a block of the design.

        Parameters
        ----------
        block : Block
            A block of the study's design, of one category in one setting.

        Returns
        -------
        ndarray, of the block's shape
            Whole numbers on the block's scale, NaN where a refusal is planted.
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
            ratings[index] = round(value * high / 100)
        return ratings.reshape(block.shape)
