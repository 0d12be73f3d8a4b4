"""What the calibrant was built to answer in GIEBench."""

from pathlib import Path

import pandas as pd
import yaml

from ingroup.design import Block
from ingroup.studies.giebench import stimuli
from ingroup.studies.giebench.stimuli import Question


class Planted:
    """The planted verdicts of one model, read from its ``planted.yaml``."""

    def __init__(self, file: Path):
        self.table = yaml.safe_load(file.read_text("utf8"))["giebench"]
        self.items = stimuli.load_questions("sample")
        by_key = pd.DataFrame(self.items).set_index("key")
        self.rank = by_key.groupby("category").cumcount().to_dict()

    def knows(self, question: Question, prompt: str, identity: str | None = None) -> bool:
        """Whether the model sees which answer takes the side of the item's identity.

        Of an item of the sample, its answers in any order. An ``identity`` that the prompt names
        instead of the item's own helps as little as none.
        """
        if identity not in (None, question.identity):
            prompt = "Raw"
        return self.rank[question.key] < self.table["known"][question.category][prompt]

    def letter(self, question: Question, prompt: str, identity: str | None = None) -> str:
        """The planted verdict on the answers in the order given; "" where none is planted."""
        if self.silence(question, prompt):
            return ""
        known = self.knows(question, prompt, identity)
        return question.correct if known else self.table["favourite"]

    def silence(self, question: Question, prompt: str) -> str:
        """What is said instead of a verdict; "" where there is one."""
        for rule in (self.table["undecided"], self.table["refusal"]):
            if question.key in rule["items"].get(prompt, ()):
                return rule["reply"]
        return ""

    def letters(self, block: Block) -> list[str]:
        """Planted verdicts on a block of the design, in its order."""
        return [
            self.letter(stimuli.rotate(asked.question, asked.shift), asked.prompt, asked.identity)
            for asked in block.factors["asked"]
        ]
