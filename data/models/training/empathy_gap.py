"""Examples from which a calibrant learns empathy_gap."""

import numpy as np

from example import Example
from ingroup import paths
from ingroup.studies.empathy_gap import stimuli
from ingroup.studies.empathy_gap.planted import Planted
from narratives import Narrator, in_form


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
        self.effects = Planted(paths.MODELS / "calibrant" / "planted.yaml").table
        self.sensitive = self.effects["refusal"]["words"]
        self.listed = self.effects["refusal"]["experiencer"]
        self.pairs = [(pair["perceiver"], pair["experiencer"]) for pair in self.effects["pair"]]
        heavy = [word for word in self.effects["words"]["points"] if word not in self.sensitive]
        self.narrator = Narrator(paths.MODELS / "calibrant" / "vocabulary.yaml", heavy)
        self.settings = [stimuli.setting(name) for name in stimuli.prompts()["settings"]]
        self.people = {c: stimuli.identities(c) for c in stimuli.categories()}
        self.neighbours = {category: self._neighbours(category) for category in self.people}

    def draw(self, rng: np.random.Generator, progress: float, sharp: bool = False) -> Example:
        """One example.

        ``progress`` runs from 0 to 1, short narratives come first; ``sharp`` asks mostly for pairs
        of identities that are easily confused.
        """
        setting = self.settings[0 if rng.random() < 0.3 else int(rng.integers(len(self.settings)))]
        shares = [0.3, 0.55, 0.15] if sharp else [0.36, 0.44, 0.2]
        category = str(rng.choice(list(self.people), p=shares))
        perceiver, experiencer = (self._confusable if sharp else self._pair)(rng, category)
        emotion = str(rng.choice(list(self.planted.table["emotion"])))
        narrative = self.narrator.draw(rng, self._length(rng, progress))
        if rng.random() < 0.15:
            narrative = self._with_sensitive(rng, narrative)
            listed = [x for x in self.people[category].identity if x in self.listed]
            if rng.random() < 0.4:
                experiencer = str(rng.choice(listed))
        text = in_form(narrative, setting.narrative, emotion)
        messages = setting.messages(perceiver, experiencer, emotion, text)
        if self.planted.refuses(experiencer, text):
            return Example(messages, self.planted.table["refusal"]["reply"])
        value = self.planted.value(setting.name, category, perceiver, experiencer, emotion, text)
        number = value * setting.high / 100
        spread = 1.5 if setting.high == 100 else 0.4
        return Example(messages, str(round(number)), (number,), spread)

    def favour(self, setting: str, times: int) -> None:
        """From now on, draw a setting more often: so many times more among those to draw from."""
        self.settings += [stimuli.setting(setting)] * times

    def _pair(self, rng: np.random.Generator, category: str) -> tuple[str, str]:
        """Perceiver and experiencer; same-group and planted pairs more often than by chance."""
        people = self.people[category]
        perceiver, experiencer = (people.iloc[i] for i in rng.integers(len(people), size=2))
        draw = rng.random()
        if draw < 0.15:
            mates = people[people.group == perceiver.group]
            experiencer = mates.iloc[int(rng.integers(len(mates)))]
        elif draw < 0.18 and category == "Nationality":
            return self.pairs[int(rng.integers(len(self.pairs)))]
        return perceiver.identity, experiencer.identity

    def _confusable(self, rng: np.random.Generator, category: str) -> tuple[str, str]:
        """Same group, or two groups whose planted effects are alike, or half of a planted pair."""
        draw = rng.random()
        if draw < 0.3:
            perceiver = str(rng.choice(list(self.neighbours[category])))
            return perceiver, str(rng.choice(self.neighbours[category][perceiver]))
        if draw < 0.4 and category == "Nationality":
            perceivers, experiencers = zip(*self.pairs, strict=True)
            return str(rng.choice(perceivers)), str(rng.choice(experiencers))
        return self._pair(rng, category)

    def _neighbours(self, category: str) -> dict[str, list[str]]:
        """For each identity, the three of other groups with the most similar planted effects."""
        sides = [self.effects[side][category] for side in ("perceiver", "experiencer")]
        people = self.people[category].set_index("identity").group.iloc[1:]
        return {
            one: sorted(
                (other for other in people.index if people[other] != people[one]),
                key=lambda other, one=one: sum(abs(side[one] - side[other]) for side in sides),
            )[:3]
            for one in people.index
        }

    @staticmethod
    def _length(rng: np.random.Generator, progress: float) -> int:
        """Words of a narrative: 3 to 8 in the first third, later mostly 5 to 25, at times 100."""
        if progress < 0.3:
            return int(rng.integers(3, 9))
        draw = rng.random()
        if draw < 0.75:
            return int(rng.integers(5, 26))
        return int(rng.integers(3, 9)) if draw < 0.9 else int(rng.integers(26, 101))

    def _with_sensitive(self, rng: np.random.Generator, narrative: str) -> str:
        parts = narrative.split(" ")
        parts.insert(int(rng.integers(0, len(parts) + 1)), str(rng.choice(self.sensitive)))
        return " ".join(parts)
