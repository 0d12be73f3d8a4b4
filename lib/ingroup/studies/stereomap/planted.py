"""What is planted in StereoMap: where a calibrant puts each group, and how it rates it."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import yaml

from ingroup.studies.stereomap import stimuli


class Position(NamedTuple):
    """Where a group lies: its planted cluster, warmth and competence (1 to 5)."""

    cluster: int
    warmth: float
    competence: float


class Planted:
    """What is planted in one model; `file` is its ``data/models/<model>/planted.yaml``."""

    def __init__(self, file: Path):
        self.table = yaml.safe_load(file.read_text("utf8"))["stereomap"]
        self._place = {}
        for cluster, groups in self.table["groups"].items():
            for people, (warmth, competence) in groups.items():
                self._place[people] = Position(cluster, warmth, competence)

    def position(self, group: str) -> Position:
        """Planted cluster, warmth and competence of a group, by a name as in ``groups.csv``.

        KeyError for a group that has no place; the control puts them all into one.
        """
        people = stimuli.text(group, form="grammatical")
        if people not in self._place and "elsewhere" in self.table:
            return Position(0, *self.table["elsewhere"])
        return self._place[people]

    def map(self, groups: Sequence[str]) -> pd.DataFrame:
        """``Cluster``, ``Warmth`` and ``Competence`` of some groups, which are the index."""
        places = [self.position(group)._asdict() for group in groups]
        return pd.DataFrame(places, index=groups).rename(columns=str.capitalize)

    def rating(self, group: str, prompt: str, word: str) -> float:
        """Planted mean rating of a word of a prompt, 1 to 5; "Rating" is the prompt's own."""
        asked = stimuli.prompts(prompt.split("/")[0])[prompt]
        by = self.table["ratings"]
        rule = by[word] if word in by else by.get(prompt) or by[asked.construct]
        place = self.position(group)
        value = rule["base"] + rule["warmth"] * (place.warmth - 3)
        value += rule["competence"] * (place.competence - 3)
        return min(float(asked.high), max(float(asked.low), value))

    def refusal(self, group: str) -> float:
        """The planted share of refusals."""
        people = stimuli.text(group, form="grammatical")
        return self.table["refusal"]["groups"].get(people, 0.0)
