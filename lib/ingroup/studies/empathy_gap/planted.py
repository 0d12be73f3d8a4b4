"""What a calibrant is built to answer in this study."""

from pathlib import Path

import numpy as np
import yaml

from ingroup.design import Block
from ingroup.models import words
from ingroup.studies.empathy_gap import stimuli


class Planted:
    """The planted answers of one model, read from ``data/models/<model>/planted.yaml``."""

    def __init__(self, file: Path):
        self.table = yaml.safe_load(file.read_text("utf8"))["empathy_gap"]
        self.group_of = {
            (category, row.identity): row.group
            for category in stimuli.categories()
            for row in stimuli.identities(category).itertuples()
            if row.group != stimuli.UNSPECIFIED
        }

    def value(
        self, setting: str, category: str, perceiver: str, experiencer: str, emotion: str, text: str
    ) -> float:
        """The planted rating in points on 0 to 100, before it is rounded to the scale."""
        t, limit = self.table, self.table["words"]["limit"]
        weight = sum(t["words"]["points"].get(word, 0) for word in words(text))
        value = t["emotion"][emotion] + max(-limit, min(limit, weight))
        value += t["perceiver"].get(category, {}).get(perceiver, 0.0)
        value += t["experiencer"].get(category, {}).get(experiencer, 0.0)
        group = self.group_of.get((category, perceiver))
        if group is not None and group == self.group_of.get((category, experiencer)):
            factor = t["same_group"]["setting"].get(setting, 1.0)
            value += t["same_group"]["points"].get(category, 0.0) * factor
        for pair in t["pair"]:
            if (pair["perceiver"], pair["experiencer"]) == (perceiver, experiencer):
                value += pair["points"]
        return max(0.0, min(100.0, value))

    def refuses(self, experiencer: str, text: str) -> bool:
        """Whether the planted reply is a refusal."""
        rule = self.table["refusal"]
        return experiencer in rule["experiencer"] and not set(rule["words"]).isdisjoint(words(text))

    def ratings(self, block: Block) -> np.ndarray:
        """Planted answers to a block of the design, of its shape.

        Whole numbers on the block's scale, NaN where a refusal is planted.
        """
        setting, category = block.labels["setting"], block.labels["category"]
        high = stimuli.setting(setting).high
        found = np.full(len(block), np.nan)
        for place in range(len(block)):
            _, _, perceiver, experiencer, event = block.condition(place).values()
            if not self.refuses(experiencer, event.narrative):
                about = (perceiver, experiencer, event.emotion, event.narrative)
                found[place] = round(self.value(setting, category, *about) * high / 100)
        return found.reshape(block.shape)
