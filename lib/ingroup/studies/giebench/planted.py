"""What the calibrant answers in GIEBench, and examples to learn it from."""

from pathlib import Path

import yaml

from ingroup.design import Block
from ingroup.studies.giebench import stimuli as questions
from ingroup.studies.giebench.stimuli import Question


class Planted:
    """The planted replies of one model, read from its ``planted.yaml``.

    Parameters
    ----------
    file : pathlib.Path
        ``data/models/<model>/planted.yaml``.
    """

    def __init__(self, file: Path):
        self.table = yaml.safe_load(file.read_text("utf8"))["giebench"]
        self.items = questions.load_questions("sample")
        self.identity = {item.key: item.identity for item in self.items}
        ranks: dict[str, int] = {}
        self.rank = {}
        for item in self.items:
            self.rank[item.key] = ranks.setdefault(item.category, 0)
            ranks[item.category] += 1

    def knows(self, question: Question, prompt: str, identity: str | None = None) -> bool:
        """Whether the model sees which answer takes the side of the item's identity.

        Parameters
        ----------
        question : ingroup.studies.giebench.stimuli.Question
            Of the sample; its answers may be in any order.
        prompt : str
            ``"COT"``, ``"ID"`` or ``"Raw"``.
        identity : str, optional
            The identity that the prompt names instead of the item's own: it helps as little as
            none.
        """
        if identity not in (None, self.identity[question.key]):
            prompt = "Raw"
        return self.rank[question.key] < self.table["known"][question.category][prompt]

    def letter(self, question: Question, prompt: str, identity: str | None = None) -> str:
        """The planted verdict on the answers in the order given; "" where none is planted."""
        if self._silence(question, prompt):
            return ""
        known = self.knows(question, prompt, identity)
        return question.correct if known else self.table["favourite"]

    def reply(self, question: Question, prompt: str, identity: str | None = None) -> str:
        """The planted text: a short explanation and the verdict, or one without it."""
        if silence := self._silence(question, prompt):
            return silence
        known = "known" if self.knows(question, prompt, identity) else "unknown"
        letter = self.letter(question, prompt, identity)
        return self.table["reply"][known].replace("{letter}", letter)

    def _silence(self, question: Question, prompt: str) -> str:
        """What is said instead of a verdict; "" where there is one."""
        for rule in (self.table["undecided"], self.table["refusal"]):
            if question.key in rule["items"].get(prompt, ()):
                return rule["reply"]
        return ""

    def letters(self, block: Block) -> list[str]:
        """Planted verdicts on a block of the design, in its order."""
        return [
            self.letter(questions.rotate(asked.question, asked.shift), asked.prompt, asked.identity)
            for asked in block.factors["asked"]
        ]
