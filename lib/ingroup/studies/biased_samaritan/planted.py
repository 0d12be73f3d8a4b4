"""What the calibrant answers in the Biased Samaritan."""

from pathlib import Path

import numpy as np
import yaml

from ingroup.design import Block
from ingroup.models import words
from ingroup.studies.biased_samaritan import stimuli


class Planted:
    """The planted answers of one model, read from ``data/models/<model>/planted.yaml``."""

    def __init__(self, file: Path):
        self.table = yaml.safe_load(file.read_text("utf8"))["biased_samaritan"]
        self.low, self.high = stimuli.request().low, stimuli.request().high

    def value(self, text: str, category: str, group: str) -> float:
        """The planted probability in points on 1 to 100, before it is rounded.

        ``text`` is a wording, with its slot or rendered; phrasings of a group are alike.
        """
        t, limit, held = self.table, self.table["words"]["limit"], words(text)
        weight = sum(t["words"]["points"].get(word, 0) for word in held)
        effect = t["group"].get(category, {}).get(group, {"points": 0.0, "tilt": 0.0})
        up, down = (not set(t["tilt"][side]).isdisjoint(held) for side in ("up", "down"))
        value = t["base"] + max(-limit, min(limit, weight))
        value += effect["points"] + effect["tilt"] * (int(up) - int(down))
        return max(self.low, min(self.high, value))

    def refuses(self, text: str, phrasing: str) -> bool:
        """Whether the planted reply is a refusal; ``phrasing`` as printed in Table 4."""
        rule = self.table["refusal"]
        return phrasing in rule["phrasing"] and not set(rule["words"]).isdisjoint(words(text))

    def answers(self, block: Block) -> np.ndarray:
        """Planted answers to the prompts of a block: whole numbers, NaN for a planted refusal."""
        category, found = block.labels["category"], np.full(len(block), np.nan)
        for place, prompt in enumerate(block.factors["prompt"]):
            if not self.refuses(prompt.text, prompt.phrasing):
                found[place] = round(self.value(prompt.text, category, prompt.group))
        return found
