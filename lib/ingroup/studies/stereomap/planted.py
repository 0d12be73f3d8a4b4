"""What is planted in StereoMap: where a calibrant puts each group, and how it rates it."""

from collections import namedtuple
from pathlib import Path

import yaml

from ingroup.studies.stereomap import stimuli

# Where a group lies: its planted cluster; warmth and competence are from 1 to 5.
Position = namedtuple("Position", "cluster warmth competence")


class Planted:
    """What is planted in one model; `file` is its ``data/models/<model>/planted.yaml``."""

    def __init__(self, file: Path):
        self.table = yaml.safe_load(file.read_text("utf8"))["stereomap"]
        self._place = {
            people: Position(cluster, *place)
            for cluster, groups in self.table["groups"].items()
            for people, place in groups.items()
        }

    def position(self, group: str) -> Position:
        """By a name as in ``groups.csv``; the control puts all groups into one place."""
        people = stimuli.text(group, form="grammatical")
        if people not in self._place and "elsewhere" in self.table:
            return Position(0, *self.table["elsewhere"])
        return self._place[people]

    def rating(self, group: str, prompt: str, word: str) -> float:
        """Planted mean rating of a word of a prompt, 1 to 5; "Rating" is the prompt's own."""
        asked = stimuli.prompts(prompt.split("/")[0])[prompt]
        by, place = self.table["ratings"], self.position(group)
        rule = by[word] if word in by else by.get(prompt) or by[asked.construct]
        value = rule["base"] + rule["warmth"] * (place.warmth - 3)
        value += rule["competence"] * (place.competence - 3)
        return min(float(stimuli.HIGH), max(float(stimuli.LOW), value))
