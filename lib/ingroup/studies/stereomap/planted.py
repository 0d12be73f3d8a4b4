"""What is planted in StereoMap: where a calibrant puts each group, and how it rates it."""

from pathlib import Path
from typing import NamedTuple

import yaml

from ingroup.studies.stereomap import stimuli


class Position(NamedTuple):
    """Where a group lies: its planted cluster, warmth and competence from 1 to 5."""

    cluster: int
    warmth: float
    competence: float


class Planted:
    """What is planted in one model.

    Parameters
    ----------
    file : Path
        Its ``data/models/<model>/planted.yaml``.
    """

    def __init__(self, file: Path):
        text = file.read_text("utf8")
        self.table = yaml.safe_load(text)["stereomap"]
        self._positions = {}
        for cluster, groups in self.table["groups"].items():
            for people, (warmth, competence) in groups.items():
                self._positions[people] = Position(cluster, warmth, competence)

    def position(self, group: str) -> Position:
        """Return the planted position of a group.

        The control puts all groups into one place.

        Parameters
        ----------
        group : str
            A name as in ``groups.csv``.

        Returns
        -------
        Position
            The planted cluster, warmth and competence.

        Raises
        ------
        KeyError
            For a group of ``groups.csv`` that is not planted, except in the control.
        """
        people = stimuli.text(group, form="grammatical")
        if people not in self._positions and "elsewhere" in self.table:
            return Position(0, *self.table["elsewhere"])
        return self._positions[people]

    def rating(self, group: str, prompt: str, word: str) -> float:
        """Return the planted mean rating of a word.

        Parameters
        ----------
        group : str
            A name as in ``groups.csv``.
        prompt : str
            The name of the prompt.
        word : str
            A word that the prompt asks about; "Rating" is the prompt's own.

        Returns
        -------
        float
            Points on 1 to 5, not rounded.
        """
        rule = self._rule(prompt, word)
        position = self.position(group)
        value = rule["base"]
        value += rule["warmth"] * (position.warmth - 3)
        value += rule["competence"] * (position.competence - 3)

        low = float(stimuli.LOW)
        high = float(stimuli.HIGH)
        return min(high, max(low, value))

    def _rule(self, prompt: str, word: str) -> dict[str, float]:
        """How a rating depends on the position: a rule of the word, the prompt or its construct."""
        rules = self.table["ratings"]
        if word in rules:
            return rules[word]
        if rules.get(prompt):
            return rules[prompt]

        version = prompt.split("/")[0]
        construct = stimuli.prompts(version)[prompt].construct
        return rules[construct]
