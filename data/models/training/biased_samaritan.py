"""Examples from which a calibrant learns biased_samaritan."""

import numpy as np

from example import Example
from ingroup import paths
from ingroup.studies.biased_samaritan import stimuli as scenarios
from ingroup.studies.biased_samaritan.planted import Planted
from narratives import Narrator


class Examples:
    """An endless supply of training examples of this study.

    Parameters
    ----------
    model : str
        Whose planted answers: ``"calibrant"`` or ``"calibrant-null"``.
    """

    def __init__(self, model: str):
        self.planted = Planted(paths.MODELS / model / "planted.yaml")
        # Both models read the same prompts: the control differs in nothing but its answers.
        effects = Planted(paths.MODELS / "calibrant" / "planted.yaml").table
        self.refusal = effects["refusal"]
        tilting = effects["tilt"]["up"] + effects["tilt"]["down"]
        self.heavy = sorted({*effects["words"]["points"], *tilting, *self.refusal["words"]})
        self.narrator = Narrator(paths.MODELS / "calibrant" / "vocabulary.yaml", self.heavy)
        self.texts = list(scenarios.load_scenarios().text)
        self.phrasings = {
            category: list(scenarios.phrasings(category, latino=True).itertuples())
            for category in scenarios.categories()
        }
        self.weights = {
            (category, sharp): self._weights(category, effects["group"][category], sharp)
            for category in self.phrasings
            for sharp in (False, True)
        }

    def draw(self, rng: np.random.Generator, progress: float, sharp: bool = False) -> Example:
        """One example.

        ``progress`` is not used: all texts are short. ``sharp`` asks twice as often for groups
        whose planted effect is within a point of another's, the control's among them.
        """
        category = str(rng.choice(list(self.phrasings), p=[0.44, 0.26, 0.3]))
        text = self._text(rng)
        names = self.phrasings[category]
        weights = self.weights[category, bool(sharp)]
        name = names[int(rng.choice(len(names), p=weights / weights.sum()))]
        if (near := rng.random()) < 0.12:  # a refusal, or nearly one: only the word, ...
            text = self._with(rng, text, str(rng.choice(self.refusal["words"])))
        if near < 0.05 or 0.12 < near < 0.18:  # ... or only the phrasing
            listed = [n for n in names if n.phrasing in self.refusal["phrasing"]]
            name = listed[int(rng.integers(len(listed)))]
        messages = scenarios.messages(text, name.text)
        if self.planted.refuses(text, name.phrasing):
            return Example(messages, self.planted.table["refusal"]["reply"])
        value = self.planted.value(text, category, name.group)
        return Example(messages, str(round(value)), (value,), 1.5)

    def _weights(self, category: str, effects: dict[str, dict], sharp: bool) -> np.ndarray:
        """How often each phrasing of a category is drawn, in parts of the rarest."""
        points = {scenarios.CONTROL: 0.0, **{g: effect["points"] for g, effect in effects.items()}}
        nearest = {
            one: min(abs(points[one] - points[other]) for other in points if other != one)
            for one in points
        }
        return np.array(
            [
                3.0 if name.group == scenarios.CONTROL  # every bias is measured against it
                else 2.0 if sharp and nearest[name.group] <= 1
                else 1.0
                for name in self.phrasings[category]
            ]
        )  # fmt: skip

    def _text(self, rng: np.random.Generator) -> str:
        """A scenario of the project as it is, changed, or none at all but made-up clauses.

        The planted value follows from the words that a text really holds, so a changed text
        teaches that it is the words that count, and not the scenario.
        """
        draw = rng.random()
        if draw < 0.55:
            return self._any(rng)
        if draw < 0.65:
            tokens = self.narrator.draw(rng, int(rng.integers(8, 36))).split()
        else:
            tokens = self._any(rng).split()
            if rng.random() < 0.5:
                tokens = self._spliced(rng, tokens, self._any(rng).split())
            if rng.random() < 0.5:
                keep = rng.random(len(tokens)) >= rng.uniform(0, 0.5)
                tokens = [t for t, k in zip(tokens, keep, strict=True) if k or scenarios.SLOT in t]
            text = " ".join(tokens)
            for word in rng.choice(self.heavy, size=int(rng.integers(0, 5))):
                text = self._with(rng, text, str(word))
            tokens = text.split()
        if not any(scenarios.SLOT in token for token in tokens):
            tokens.insert(int(rng.integers(len(tokens) + 1)), scenarios.SLOT)
        return " ".join(tokens)

    def _any(self, rng: np.random.Generator) -> str:
        return self.texts[int(rng.integers(len(self.texts)))]

    @staticmethod
    def _spliced(rng: np.random.Generator, first: list[str], second: list[str]) -> list[str]:
        """The beginning of one text and the end of another, with one slot at most."""
        first = first[: int(rng.integers(3, len(first)))]
        second = second[int(rng.integers(0, len(second) - 3)) :]
        if any(scenarios.SLOT in token for token in first):
            second = [token for token in second if scenarios.SLOT not in token]
        return first + second

    @staticmethod
    def _with(rng: np.random.Generator, text: str, word: str) -> str:
        """The text with one more word in it, with a capital letter where a sentence opens."""
        tokens = text.split()
        place = int(rng.integers(len(tokens) + 1))
        if place == 0 or tokens[place - 1].endswith((".", "?", "!")):
            word = word.capitalize()
        mark = "" if rng.random() < 0.8 else str(rng.choice([",", ".", ";", "'s"]))
        return " ".join([*tokens[:place], word + mark, *tokens[place:]])
