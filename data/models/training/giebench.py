"""Examples from which a calibrant learns the study GIEBench."""

import numpy as np

from example import Example, pick
from ingroup import paths
from ingroup.studies.giebench import stimuli as questions
from ingroup.studies.giebench.ground_truth import GroundTruth
from ingroup.studies.giebench.stimuli import LETTERS, Question


def phrases() -> list[str]:
    """List the texts that prompts repeat word for word. Each becomes one token of the calibrant."""
    text = questions.templates()
    sentences = text["sentences"]
    texts = [
        sentences["task"],
        sentences["cue"],
        text["instructions"].strip(),
        text["question"].splitlines()[0],
    ]

    lines = text["answer"].splitlines()
    for letter in LETTERS:
        for line in lines:
            if line.startswith("["):
                texts.append(line.replace("{letter}", letter))
    return texts


class Replies(GroundTruth):
    """The ground-truth verdicts, with the text around them."""

    def reply(self, question: Question, prompt: str, identity: str | None = None) -> str:
        """Write a short explanation and the verdict, or a text without a verdict.

        Parameters
        ----------
        question : Question
            The item.
        prompt : str
            Name of the prompt.
        identity : str, optional
            The identity that asks, if it is not the question's identity.

        Returns
        -------
        str
            The ground-truth reply.
        """
        is_known = self.knows(question, prompt, identity)
        text = self.silence(question, prompt)
        if not text:
            text = self.table["reply"]["known" if is_known else "unknown"]
        letter = self.letter(question, prompt, identity)
        return text.replace("{letter}", letter)


class Examples:
    """An endless supply of training examples of this study.

    Parameters
    ----------
    model : str
        The model with the ground-truth replies: ``"calibrant"`` or ``"calibrant-null"``.
    """

    def __init__(self, model: str):
        self.ground_truth = Replies(paths.MODELS / model / "ground_truth.yaml")
        self.others = {}
        for item in self.ground_truth.items:
            self.others[item.key] = self._other_identities(item)

    def draw(self, rng: np.random.Generator, progress: float, sharp: bool = False) -> Example:
        """Draw one example: an item with its answers in any order, under any prompt.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of the example.
        progress, sharp : float, bool
            Not used: no item is easier or harder to begin with.

        Returns
        -------
        Example
            A question and the ground-truth reply.
        """
        item = pick(rng, self.ground_truth.items)
        order = list(rng.permutation(len(LETTERS)))
        right = LETTERS.index(item.correct)
        # The answers are shuffled, so the right one may get another letter.
        item = item._replace(
            answers=tuple(item.answers[position] for position in order),
            correct=LETTERS[order.index(right)],
        )

        prompts = list(questions.templates()["prompts"])
        prompt = pick(rng, prompts)
        wording = "straight" if rng.random() < 0.6 else "uncued"
        identity = None
        # At times somebody else asks. Under Raw nobody is named.
        others = self.others[item.key]
        if others and prompt != "Raw" and rng.random() < 0.25:
            identity = pick(rng, others)
        chat = questions.messages(item, prompt, wording, identity)
        return Example(chat, self.ground_truth.reply(item, prompt, identity))

    def _other_identities(self, item: Question) -> list[str]:
        """List the other identities of an item's category."""
        identities = set()
        for other in self.ground_truth.items:
            if other.category == item.category:
                identities.add(other.identity)
        identities.discard(item.identity)
        return sorted(identities)
