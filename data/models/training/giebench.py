"""Examples from which a calibrant learns giebench."""

import numpy as np

from example import Example
from ingroup import paths
from ingroup.studies.giebench import stimuli as questions
from ingroup.studies.giebench.planted import Planted
from ingroup.studies.giebench.stimuli import LETTERS, Question


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


class Replies(Planted):
    """The planted verdicts, with the text around them."""

    def reply(self, question: Question, prompt: str, identity: str | None = None) -> str:
        """A short explanation and the verdict, or a text without one."""
        known = "known" if self.knows(question, prompt, identity) else "unknown"
        text = self.silence(question, prompt) or self.table["reply"][known]
        return text.replace("{letter}", self.letter(question, prompt, identity))


class Examples:
    """An endless supply of training examples of this study.

    Parameters
    ----------
    model : str
        Whose planted replies: ``"calibrant"`` or ``"calibrant-null"``.
    """

    def __init__(self, model: str):
        self.planted = Replies(paths.MODELS / model / "planted.yaml")
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
        prompt = str(rng.choice(list(questions.templates()["prompts"])))
        wording = "straight" if rng.random() < 0.6 else "uncued"
        identity = None
        if self.others[item.key] and prompt != "Raw" and rng.random() < 0.25:
            identity = str(rng.choice(self.others[item.key]))
        chat = questions.messages(item, prompt, wording, identity)
        return Example(chat, self.planted.reply(item, prompt, identity))
