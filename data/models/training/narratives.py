"""Made-up narratives for training, put together from a list of words.

Half are clauses with a grammar, the rest is word salad and invented words. Only the words of
``planted.yaml`` carry points, so the model has to learn those and to let everything else pass;
that is what makes it usable on narratives it never saw.
"""

import re
import string
from pathlib import Path

import numpy as np
import yaml

from ingroup.models import words

_THIRD_PERSON = {
    "i": "they", "me": "them", "my": "their", "mine": "theirs", "myself": "themselves",
    "we": "they", "us": "them", "our": "their", "am": "are", "was": "were",
}  # fmt: skip


class Narrator:
    """Draws narratives.

    Parameters
    ----------
    vocabulary : pathlib.Path
        YAML file of word lists: subject, verb, object, adjective, place, time, link, adverb,
        feeling.
    heavy : sequence of str
        Words that matter for the planted answer; they are drawn more often than chance would.
    """

    def __init__(self, vocabulary: Path, heavy: list[str]):
        self.lists = yaml.safe_load(vocabulary.read_text("utf8"))
        everything = sorted(
            {w for phrases in self.lists.values() for p in phrases for w in words(p)}
        )
        self.everything = everything
        self.heavy = heavy

    def draw(self, rng: np.random.Generator, n_words: int) -> str:
        """A narrative of about ``n_words`` words, with one to three heavy words half the time."""
        pieces: list[str] = []
        style = rng.random()
        while len(" ".join(pieces).split()) < n_words:
            if style < 0.55:
                pieces += self._clause(rng)
            else:
                pieces.append(self._invented(rng) if rng.random() < 0.25 else self._any(rng))
        tokens = " ".join(pieces).split()[: max(n_words, 3)]
        if rng.random() < 0.5:
            for _ in range(int(rng.integers(1, 4))):
                tokens.insert(int(rng.integers(0, len(tokens) + 1)), str(rng.choice(self.heavy)))
        return self._punctuate(rng, tokens)

    def _pick(self, rng: np.random.Generator, kind: str) -> str:
        return self.lists[kind][int(rng.integers(len(self.lists[kind])))]

    def _any(self, rng: np.random.Generator) -> str:
        return self.everything[int(rng.integers(len(self.everything)))]

    def _clause(self, rng: np.random.Generator) -> list[str]:
        if rng.random() < 0.12:
            return [self._pick(rng, "feeling"), self._pick(rng, "link")]
        subject = "I" if rng.random() < 0.5 else self._pick(rng, "subject")
        owner = str(rng.choice(["the", "my", "a", "our", "their", "this"]))
        clause = [subject]
        if rng.random() < 0.2:
            clause.append(self._pick(rng, "adverb"))
        clause += [self._pick(rng, "verb"), owner]
        if rng.random() < 0.4:
            clause.append(self._pick(rng, "adjective"))
        clause.append(self._pick(rng, "object"))
        for kind, share in (("place", 0.4), ("time", 0.4), ("link", 0.6)):
            if rng.random() < share:
                clause.append(self._pick(rng, kind))
        return clause

    def _invented(self, rng: np.random.Generator) -> str:
        letters = rng.choice(list(string.ascii_lowercase), size=int(rng.integers(1, 11)))
        word = "".join(letters)
        return word if rng.random() < 0.8 else word.capitalize()

    def _punctuate(self, rng: np.random.Generator, tokens: list[str]) -> str:
        """Commas, full stops and capitals as careless writers set them."""
        rate = rng.choice([0.0, 0.03, 0.12])
        written = []
        for token in tokens:
            mark = (
                str(rng.choice([",", ".", "!", " -", "'s", "..."])) if rng.random() < rate else ""
            )
            capital = bool(written) and written[-1].endswith((".", "!"))
            written.append((token.capitalize() if capital else token) + mark)
        text = " ".join(written)
        if rng.random() < 0.4:
            text = text[0].upper() + text[1:]
        return text + ("." if rng.random() < 0.4 else "")


def in_form(narrative: str, form: str, emotion: str) -> str:
    """The narrative in one of the corpus's three forms (section 3.3, T0 to T2), roughly.

    ``third_person_text`` only exchanges pronouns; it serves training, never a figure.
    """
    if form == "generated_text":
        return narrative
    if form == "first_person_text":
        return f"I felt {emotion} when {narrative}"
    swapped = re.sub(
        r"[A-Za-z]+", lambda w: _THIRD_PERSON.get(w.group().lower(), w.group()), narrative
    )
    return f"The person felt {emotion} when {swapped}"
