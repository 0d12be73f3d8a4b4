"""Made-up narratives for training, put together from a list of words.

Half are clauses with a grammar, the rest is word salad and invented words. Only the words of
``ground_truth.yaml`` carry points. So the model has to learn these words and to ignore everything
else. This makes it usable on narratives that it never saw.
"""

import re
import string
from pathlib import Path

import numpy as np
import yaml

from example import pick, position_in
from ingroup.models import words

_THIRD_PERSON = {
    "i": "they",
    "me": "them",
    "my": "their",
    "mine": "theirs",
    "myself": "themselves",
    "we": "they",
    "us": "them",
    "our": "their",
    "am": "are",
    "was": "were",
}


class Narrator:
    """Source of made-up narratives.

    Parameters
    ----------
    vocabulary : pathlib.Path
        YAML file of word lists: subject, verb, object, adjective, place, time, link, adverb,
        feeling.
    heavy : sequence of str
        Words that matter for the ground-truth answer. They are drawn more often than chance would.
    """

    def __init__(self, vocabulary: Path, heavy: list[str]):
        self.lists = yaml.safe_load(vocabulary.read_text("utf8"))
        self.heavy = heavy
        vocabulary_words = set()
        for phrases in self.lists.values():
            for phrase in phrases:
                vocabulary_words.update(words(phrase))
        self.words = sorted(vocabulary_words)

    def draw(self, rng: np.random.Generator, n_words: int) -> str:
        """Draw a narrative. Half of the narratives have one to three heavy words.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of the narrative.
        n_words : int
            Number of words before heavy ones are added.

        Returns
        -------
        str
            One line.
        """
        pieces: list[str] = []
        has_grammar = rng.random() < 0.55
        while len(_tokens(pieces)) < n_words:
            if has_grammar:
                pieces += self._clause(rng)
            elif rng.random() < 0.25:
                pieces.append(self._invented(rng))
            else:
                pieces.append(pick(rng, self.words))

        # The pieces may be phrases of several words, so the last one is cut.
        tokens = _tokens(pieces)[: max(n_words, 3)]
        if rng.random() < 0.5:
            n_heavy = rng.integers(1, 4)
            for _ in range(n_heavy):
                position = position_in(rng, tokens)
                tokens.insert(position, pick(rng, self.heavy))
        return self._punctuate(rng, tokens)

    def _phrase(self, rng: np.random.Generator, kind: str) -> str:
        """Draw a phrase from one list of the vocabulary."""
        return pick(rng, self.lists[kind])

    def _clause(self, rng: np.random.Generator) -> list[str]:
        """Draw a feeling, or else a sentence of subject, verb and object with some additions."""
        if rng.random() < 0.12:
            feeling = self._phrase(rng, "feeling")
            return [feeling, self._phrase(rng, "link")]

        subject = "I" if rng.random() < 0.5 else self._phrase(rng, "subject")
        owner = pick(rng, ["the", "my", "a", "our", "their", "this"])
        clause = [subject]
        if rng.random() < 0.2:
            clause.append(self._phrase(rng, "adverb"))
        clause.append(self._phrase(rng, "verb"))
        clause.append(owner)
        if rng.random() < 0.4:
            clause.append(self._phrase(rng, "adjective"))
        clause.append(self._phrase(rng, "object"))

        for kind, share in (("place", 0.4), ("time", 0.4), ("link", 0.6)):
            if rng.random() < share:
                clause.append(self._phrase(rng, kind))
        return clause

    def _invented(self, rng: np.random.Generator) -> str:
        """Draw an invented word of one to ten letters."""
        n_letters = rng.integers(1, 11)
        word = "".join(rng.choice(list(string.ascii_lowercase), size=n_letters))
        return word if rng.random() < 0.8 else word.capitalize()

    def _punctuate(self, rng: np.random.Generator, tokens: list[str]) -> str:
        """Join words with the commas, full stops and capitals of careless writers."""
        # A narrative has no marks inside, few, or many.
        rate = rng.choice([0.0, 0.03, 0.12])
        written: list[str] = []
        for token in tokens:
            mark = ""
            if rng.random() < rate:
                mark = pick(rng, [",", ".", "!", " -", "'s", "..."])
            if written and written[-1].endswith((".", "!")):
                token = token.capitalize()
            written.append(token + mark)

        text = " ".join(written)
        if rng.random() < 0.4:
            text = text[0].upper() + text[1:]
        if rng.random() < 0.4:
            text += "."
        return text


def _tokens(pieces: list[str]) -> list[str]:
    """Split pieces, which may have several words, into words."""
    return " ".join(pieces).split()


def in_form(narrative: str, form: str, emotion: str) -> str:
    """Put a narrative roughly into one of the corpus's three forms (section 3.3, T0 to T2).

    Parameters
    ----------
    narrative : str
        Text in the first person.
    form : str
        ``generated_text``, ``first_person_text`` or ``third_person_text``. The last form only
        exchanges pronouns. It serves training, never a figure.
    emotion : str
        The emotion of the event.

    Returns
    -------
    str
        The narrative, which follows the emotion in the last two forms.
    """
    if form == "generated_text":
        return narrative
    if form == "first_person_text":
        return f"I felt {emotion} when {narrative}"
    in_third_person = re.sub(r"[A-Za-z]+", _to_third_person, narrative)
    return f"The person felt {emotion} when {in_third_person}"


def _to_third_person(match: re.Match) -> str:
    word = match.group()
    return _THIRD_PERSON.get(word.lower(), word)
