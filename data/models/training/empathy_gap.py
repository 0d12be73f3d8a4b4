"""Examples from which a calibrant learns the study of the empathy gap."""

import numpy as np

from example import Example, pick, position_in
from ingroup import paths
from ingroup.studies.empathy_gap import stimuli
from ingroup.studies.empathy_gap.ground_truth import GroundTruth
from narratives import Narrator, in_form


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
        self.effects = calibrant.table
        refusal = self.effects["refusal"]
        self.sensitive = refusal["words"]
        self.refused = refusal["experiencer"]
        self.pairs = []
        for pair in self.effects["pair"]:
            self.pairs.append((pair["perceiver"], pair["experiencer"]))
        words = self.effects["words"]
        points = words["points"]
        # Sensitive words are added apart, by `_with_sensitive_word`.
        heavy = [word for word in points if word not in self.sensitive]
        self.narrator = Narrator(folder / "vocabulary.yaml", heavy)

        names = stimuli.prompts()["settings"]
        self.settings = [stimuli.setting(name) for name in names]
        self.people = {}
        self.neighbours = {}
        for category in stimuli.categories():
            self.people[category] = stimuli.identities(category)
            self.neighbours[category] = self._neighbours(category)

    def draw(self, rng: np.random.Generator, progress: float, sharp: bool = False) -> Example:
        """Draw one example.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of the example.
        progress : float
            Share of the phase that is over, from 0 to 1: short narratives come first.
        sharp : bool
            Whether mostly pairs of identities are drawn that are easily confused.

        Returns
        -------
        Example
            A narrative and the ground-truth number, or a refusal.
        """
        setting = self._draw_setting(rng)
        # These are for race, nationality and religion, with 19, 22 and 6 identities.
        shares = [0.3, 0.55, 0.15] if sharp else [0.36, 0.44, 0.2]
        categories = list(self.people)
        category = str(rng.choice(categories, p=shares))
        if sharp:
            perceiver, experiencer = self._draw_confusable_pair(rng, category)
        else:
            perceiver, experiencer = self._draw_pair(rng, category)
        emotions = list(self.ground_truth.table["emotion"])
        emotion = pick(rng, emotions)

        n_words = self._draw_length(rng, progress)
        narrative = self.narrator.draw(rng, n_words)
        if rng.random() < 0.15:
            narrative = self._with_sensitive_word(rng, narrative)
            identities = self.people[category].identity
            # A refusal needs both, a sensitive word and one of these people; some examples have one
            # alone.
            refused = [name for name in identities if name in self.refused]
            if rng.random() < 0.4:
                experiencer = pick(rng, refused)
        text = in_form(narrative, setting.narrative, emotion)

        messages = setting.messages(perceiver, experiencer, emotion, text)
        if self.ground_truth.refuses(experiencer, text):
            refusal = self.ground_truth.table["refusal"]
            return Example(messages, refusal["reply"])
        value = self.ground_truth.value(
            setting.name,
            category,
            perceiver,
            experiencer,
            emotion,
            text,
        )
        # The ground truth is in points of 0 to 100, whatever the scale of the setting.
        number = value * setting.high / 100
        return Example(
            messages,
            reply=str(round(number)),
            numbers=(number,),
            spread=1.5 if setting.high == 100 else 0.4,
        )

    def favour(self, setting: str, times: int) -> None:
        """Draw a setting more often from now on.

        Parameters
        ----------
        setting : str
            Name of the setting, such as ``P0,S1,T0``.
        times : int
            How many more times the setting is put into the list of settings to draw from.
        """
        favoured = stimuli.setting(setting)
        self.settings += [favoured] * times

    def _draw_setting(self, rng: np.random.Generator) -> stimuli.Setting:
        """Draw a setting, the first setting more often than the others."""
        if rng.random() < 0.3:
            return self.settings[0]
        return pick(rng, self.settings)

    def _draw_pair(self, rng: np.random.Generator, category: str) -> tuple[str, str]:
        """Draw perceiver and experiencer.
        Same-group and listed pairs come more often than others.
        """
        people = self.people[category]
        identities = people.identity
        first, second = rng.integers(len(people), size=2)
        perceiver = people.iloc[first]
        experiencer = identities.iloc[second]

        chance = rng.random()
        if chance < 0.15:
            is_member = people.group == perceiver.group
            members = identities[is_member]
            experiencer = pick(rng, members.to_list())
        elif chance < 0.18 and category == "Nationality":
            return pick(rng, self.pairs)
        return perceiver.identity, experiencer

    def _draw_confusable_pair(self, rng: np.random.Generator, category: str) -> tuple[str, str]:
        """Draw perceiver and experiencer of a pair that is easily confused, or of any pair.

        Groups with similar effects are easily confused, and so are members of two listed pairs.
        """
        chance = rng.random()
        if chance < 0.3:
            neighbours = self.neighbours[category]
            perceiver = pick(rng, list(neighbours))
            experiencer = pick(rng, neighbours[perceiver])
            return perceiver, experiencer
        if chance < 0.4 and category == "Nationality":
            perceiver, _ = pick(rng, self.pairs)
            _, experiencer = pick(rng, self.pairs)
            return perceiver, experiencer
        return self._draw_pair(rng, category)

    def _neighbours(self, category: str) -> dict[str, list[str]]:
        """Find the three identities of other groups with effects most like each identity's."""
        people = self.people[category].set_index("identity")
        # The first of the people, "a person", belongs to no group.
        group = people.group.iloc[1:]
        as_perceiver = self.effects["perceiver"][category]
        as_experiencer = self.effects["experiencer"][category]

        neighbours = {}
        for identity in group.index:
            differences = {}
            is_other = group != group[identity]
            for other in group.index[is_other]:
                given = abs(as_perceiver[identity] - as_perceiver[other])
                received = abs(as_experiencer[identity] - as_experiencer[other])
                differences[other] = given + received
            nearest = sorted(differences, key=differences.get)
            neighbours[identity] = nearest[:3]
        return neighbours

    @staticmethod
    def _draw_length(rng: np.random.Generator, progress: float) -> int:
        """Draw a number of words: at first 3 to 8, after 30 % mostly 5 to 25, rarely up to 100."""
        if progress < 0.3:
            return rng.integers(3, 9)
        chance = rng.random()
        if chance < 0.75:
            return rng.integers(5, 26)
        if chance < 0.9:
            return rng.integers(3, 9)
        return rng.integers(26, 101)

    def _with_sensitive_word(self, rng: np.random.Generator, narrative: str) -> str:
        """Insert a sensitive word, which may make the answer a refusal."""
        words = narrative.split(" ")
        position = position_in(rng, words)
        word = pick(rng, self.sensitive)
        words.insert(position, word)
        return " ".join(words)
