"""Examples from which a calibrant learns the study Biased Samaritan."""

import numpy as np

from example import Example, pick, position_in
from ingroup import paths
from ingroup.studies.biased_samaritan import stimuli as scenarios
from ingroup.studies.biased_samaritan.ground_truth import GroundTruth
from narratives import Narrator


class Examples:
    """An endless supply of training examples of this study.

    Parameters
    ----------
    model : str
        The model with the ground-truth answers: ``"calibrant"`` or ``"calibrant-null"``.
    """

    def __init__(self, model: str):
        self.ground_truth = GroundTruth(paths.MODELS / model / "ground_truth.yaml")
        # Both models read the same prompts: the control differs in nothing but its answers.
        folder = paths.MODELS / "calibrant"
        calibrant = GroundTruth(folder / "ground_truth.yaml")
        effects = calibrant.table
        words = effects["words"]
        tilt = effects["tilt"]
        self.refusal = effects["refusal"]
        heavy = {
            *words["points"],
            *tilt["up"],
            *tilt["down"],
            *self.refusal["words"],
        }
        self.heavy = sorted(heavy)
        self.narrator = Narrator(folder / "vocabulary.yaml", self.heavy)
        sample = scenarios.load_scenarios()
        self.texts = list(sample.text)

        self.phrasings = {}
        self.weights = {}
        for category in scenarios.categories():
            table = scenarios.phrasings(category, latino=True)
            self.phrasings[category] = list(table.itertuples())
            of_groups = effects["group"][category]
            # Weights depend on the category and the kind of phase alone, so they are computed once.
            for sharp in (False, True):
                weights = self._weights(category, of_groups, sharp)
                self.weights[category, sharp] = weights

    def draw(self, rng: np.random.Generator, progress: float, sharp: bool = False) -> Example:
        """Draw one example.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of the example.
        progress : float
            Not used: all texts are short.
        sharp : bool
            Whether groups are drawn twice as often whose ground-truth effect is within a point of
            another's, the control's among them.

        Returns
        -------
        Example
            A scenario and the ground-truth number, or a refusal.
        """
        categories = list(self.phrasings)
        category = str(rng.choice(categories, p=[0.44, 0.26, 0.3]))
        text = self._draw_text(rng)
        phrasings = self.phrasings[category]
        weights = self.weights[category, sharp]
        shares = weights / weights.sum()
        number = rng.choice(len(phrasings), p=shares)
        phrasing = phrasings[number]

        # A refusal needs a word and a phrasing. Some examples have both, some only one of them.
        chance = rng.random()
        if chance < 0.12:
            word = pick(rng, self.refusal["words"])
            text = self._with_word(rng, text, word)
        if chance < 0.05 or 0.12 < chance < 0.18:
            listed = self.refusal["phrasing"]
            refused = [row for row in phrasings if row.phrasing in listed]
            phrasing = pick(rng, refused)

        messages = scenarios.messages(text, phrasing.text)
        if self.ground_truth.refuses(text, phrasing.phrasing):
            refusal = self.ground_truth.table["refusal"]
            return Example(messages, refusal["reply"])
        value = self.ground_truth.value(text, category, phrasing.group)
        return Example(
            messages,
            reply=str(round(value)),
            numbers=(value,),
            spread=1.5,
        )

    def _weights(self, category: str, effects: dict[str, dict], sharp: bool) -> np.ndarray:
        """Compute the weight with which each phrasing of a category is drawn, 1 for the rarest."""
        points = {scenarios.CONTROL: 0.0}
        for group, effect in effects.items():
            points[group] = effect["points"]

        weights = []
        for phrasing in self.phrasings[category]:
            if phrasing.group == scenarios.CONTROL:
                # Every bias is measured against the control.
                weights.append(3.0)
            elif sharp and self._distance(points, phrasing.group) <= 1:
                weights.append(2.0)
            else:
                weights.append(1.0)
        return np.array(weights)

    @staticmethod
    def _distance(points: dict[str, float], group: str) -> float:
        """Compute the difference in points between a group and the nearest other group."""
        others = points.copy()
        own = others.pop(group)
        distances = [abs(own - other) for other in others.values()]
        return min(distances)

    def _draw_text(self, rng: np.random.Generator) -> str:
        """Draw a scenario of the project, a changed scenario, or made-up clauses.

        The ground-truth value follows from the words that a text really holds. So a changed text
        teaches that the words count, and not the scenario.
        """
        chance = rng.random()
        if chance < 0.55:
            return pick(rng, self.texts)
        if chance < 0.65:
            n_words = rng.integers(8, 36)
            narrative = self.narrator.draw(rng, n_words)
            tokens = narrative.split()
        else:
            tokens = self._changed_scenario(rng)

        # A made-up text has no slot for the person, and a changed one may have lost it.
        if scenarios.SLOT not in " ".join(tokens):
            position = position_in(rng, tokens)
            tokens.insert(position, scenarios.SLOT)
        return " ".join(tokens)

    def _changed_scenario(self, rng: np.random.Generator) -> list[str]:
        """Draw a scenario's tokens.
        They may be spliced with another's, thinned out, or have added words.
        """
        scenario = pick(rng, self.texts)
        tokens = scenario.split()
        if rng.random() < 0.5:
            other = pick(rng, self.texts)
            tokens = self._splice(rng, tokens, other.split())
        if rng.random() < 0.5:
            tokens = self._thin_out(rng, tokens)

        text = " ".join(tokens)
        n_words = rng.integers(0, 5)
        words = rng.choice(self.heavy, size=n_words).tolist()
        for word in words:
            text = self._with_word(rng, text, word)
        return text.split()

    @staticmethod
    def _thin_out(rng: np.random.Generator, tokens: list[str]) -> list[str]:
        """Drop up to half of the tokens, but never the slot for the person."""
        # The order of these two draws decides the examples, and so the weights.
        chances = rng.random(len(tokens))
        share_dropped = rng.uniform(0, 0.5)
        remaining = []
        for token, chance in zip(tokens, chances, strict=True):
            is_slot = scenarios.SLOT in token
            if is_slot or chance >= share_dropped:
                remaining.append(token)
        return remaining

    @staticmethod
    def _splice(rng: np.random.Generator, first: list[str], second: list[str]) -> list[str]:
        """Join the beginning of one text and the end of another text, with at most one slot."""
        end = rng.integers(3, len(first))
        # At least three tokens come from each of the two texts.
        start = rng.integers(0, len(second) - 3)
        beginning = first[:end]
        rest = second[start:]
        if scenarios.SLOT in " ".join(beginning):
            rest = [token for token in rest if scenarios.SLOT not in token]
        return beginning + rest

    @staticmethod
    def _with_word(rng: np.random.Generator, text: str, word: str) -> str:
        """Insert a word at a random position, with a capital letter if it opens a sentence."""
        tokens = text.split()
        position = position_in(rng, tokens)
        opens_sentence = position == 0 or tokens[position - 1].endswith((".", "?", "!"))
        if opens_sentence:
            word = word.capitalize()

        mark = ""
        if rng.random() >= 0.8:
            mark = pick(rng, [",", ".", ";", "'s"])
        tokens.insert(position, word + mark)
        return " ".join(tokens)
