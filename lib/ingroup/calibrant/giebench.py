"""What the calibrant answers in GIEBench, and examples to learn it from."""

from pathlib import Path

import numpy as np
import yaml

from ingroup import paths, questions
from ingroup.calibrant import Example
from ingroup.design import Block
from ingroup.questions import LETTERS, Question


def phrases() -> list[str]:
    """What the prompts say word for word each time: one token each to the calibrant."""
    text = questions.templates()
    sentences = text["sentences"]
    tags = [line for line in text["answer"].splitlines() if line.startswith("[")]
    return [
        *(sentences["task"], sentences["cue"], text["instructions"].strip()),
        text["question"].splitlines()[0],
        *(tag.replace("{letter}", letter) for letter in LETTERS for tag in tags),
    ]


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
        question : ingroup.questions.Question
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
        """Planted verdicts on a block of :func:`ingroup.design.giebench`, in its order."""
        return [
            self.letter(questions.rotate(asked.question, asked.shift), asked.prompt, asked.identity)
            for asked in block.factors["asked"]
        ]


class Examples:
    """An endless supply of training examples of this study.

    Parameters
    ----------
    model : str
        Whose planted replies: ``"calibrant"`` or ``"calibrant-null"``.
    """

    def __init__(self, model: str):
        self.planted = Planted(paths.MODELS / model / "planted.yaml")
        self.others = {
            item.key: sorted(
                {other.identity for other in self.planted.items if other.category == item.category}
                - {item.identity}
            )
            for item in self.planted.items
        }

    def draw(self, rng: np.random.Generator, progress: float, sharp: bool = False) -> Example:
        """One example: an item with its answers in any order, under any prompt.

        ``progress`` and ``sharp`` are not used: there is nothing easier or harder to begin with.
        """
        items = self.planted.items
        item = items[int(rng.integers(len(items)))]
        order = rng.permutation(len(LETTERS))
        correct = LETTERS[list(order).index(LETTERS.index(item.correct))]
        item = item._replace(answers=tuple(item.answers[i] for i in order), correct=correct)
        prompt = str(rng.choice(questions.prompts()))
        raw = "appendix" if rng.random() < 0.6 else "text"
        identity = None
        if self.others[item.key] and prompt != "Raw" and rng.random() < 0.25:
            identity = str(rng.choice(self.others[item.key]))
        chat = questions.messages(item, prompt, raw, identity)
        return Example(chat, self.planted.reply(item, prompt, identity))
