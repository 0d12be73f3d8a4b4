"""What the calibrant answers in StereoMap, and examples to learn it from."""

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import yaml

from ingroup import paths
from ingroup.studies.stereomap import stimuli as social_groups
from ingroup.studies.stereomap.stimuli import Prompt

_KEYWORDS = paths.MODELS / "calibrant" / "keywords.yaml"


def _line(word: str, reason: str) -> str:
    return f"\n- {word.capitalize()}: {reason}"


def _rated(word: str) -> str:
    return f"\n{word}: "


class Position(NamedTuple):
    """Where a group lies: its planted cluster, warmth and competence (1 to 5)."""

    cluster: int
    warmth: float
    competence: float


class Planted:
    """The planted replies of one model, read from its ``planted.yaml``.

    Parameters
    ----------
    file : pathlib.Path
        ``data/models/<model>/planted.yaml``.
    """

    def __init__(self, file: Path):
        self.table = yaml.safe_load(file.read_text("utf8"))["stereomap"]
        self.lists = yaml.safe_load(_KEYWORDS.read_text("utf8"))
        self._place, self._rank = {}, {}
        for cluster, groups in self.table["groups"].items():
            for rank, (people, (warmth, competence)) in enumerate(groups.items()):
                self._place[people] = Position(cluster, warmth, competence)
                self._rank[people] = rank

    def position(self, group: str) -> Position:
        """Planted cluster, warmth and competence of a group, by a name as in ``groups.csv``.

        Raises
        ------
        KeyError
            For a group that has no place; the control puts them all into one.
        """
        people = social_groups.text(group, form="grammatical")
        if people not in self._place and "elsewhere" in self.table:
            return Position(0, *self.table["elsewhere"])
        return self._place[people]

    def map(self, groups: Sequence[str]) -> pd.DataFrame:
        """``Cluster``, ``Warmth`` and ``Competence`` of some groups, which are the index."""
        places = [self.position(group)._asdict() for group in groups]
        return pd.DataFrame(places, index=groups).rename(columns=str.capitalize)

    def rating(self, group: str, prompt: str, word: str) -> float:
        """The planted mean of many ratings, in [1, 5].

        Parameters
        ----------
        group : str
            As in ``groups.csv``.
        prompt : str
            Name of the prompt, as in :func:`ingroup.studies.stereomap.stimuli.prompts`.
        word : str
            One of its words; "Rating" is that of the prompt.
        """
        asked = _prompt(prompt)
        by = self.table["ratings"]
        rule = by[word] if word in by else by.get(prompt) or by[asked.construct]
        place = self.position(group)
        value = rule["base"] + rule["warmth"] * (place.warmth - 3)
        value += rule["competence"] * (place.competence - 3)
        return min(float(asked.high), max(float(asked.low), value))

    def refusal(self, group: str) -> float:
        """The planted share of refusals."""
        people = social_groups.text(group, form="grammatical")
        return self.table["refusal"]["groups"].get(people, 0.0)

    def weights(self, group: str, prompt: str) -> dict[str, dict[str, float]]:
        """How often each list of keywords is drawn from, by kind, in parts of the rarest.

        The kinds are those of ``keywords.yaml``; a prompt asks for one of them, and "overall" is
        what follows the overall rating.
        """
        place, keywords = self.position(group), self.table["keywords"]
        traits = dict(keywords["traits"][place.cluster])
        people = social_groups.text(group, form="grammatical")
        chosen = list(traits)[self._rank.get(people, 0) % len(traits)]
        traits[chosen] *= keywords["emphasis"]
        asked, name = _prompt(prompt), prompt.split("/")[1]
        construct = asked.construct
        if construct in ("Emotion", "Behavior"):
            kind = {"Emotion": "feelings", "Behavior": "verbs"}[construct]
            rated = {word: self.rating(group, prompt, word) for word in self.lists[kind]}
            return {kind: {word: (value - 1) ** 2 + 0.01 for word, value in rated.items()}}
        if name in ("Economic success", "Prestige", "Education"):
            return {"status": keywords["status"][place.cluster]}
        if construct in ("Social-Structure", "Competition-others"):
            return {"burden": {"burden": 1}}
        overall = self.rating(group, prompt, "Rating")
        ends = {"good": overall - asked.low + 0.01, "bad": asked.high - overall + 0.01}
        return {"traits": traits} | ({"overall": ends} if "overall" in asked.parts else {})

    def reply(
        self, group: str, prompt: str, parts: Collection[str], rng: np.random.Generator
    ) -> tuple[str, list[float]]:
        """One reply to the parts that are asked, and the planted mean of each number in it."""
        if rng.random() < self.refusal(group):
            return self.table["refusal"]["reply"], []
        asked, weights, means = _prompt(prompt), self.weights(group, prompt), []
        text = self.lists["opening"]
        kind = next(iter(weights))
        if "keywords" in parts:
            text += self._draw(kind, weights[kind], asked.n_keywords, rng)
        words = [word for word in asked.words if word != "Rating" or "overall" not in asked.parts]
        if "ratings" in parts:
            text += self._rate(group, prompt, words, means, rng)
            if "keywords" not in asked.parts:  # reasons are asked for after the rating
                text += self._draw(kind, weights[kind], asked.n_keywords, rng)
        if "overall" in parts:
            text += self._rate(group, prompt, ["Rating"], means, rng)
            text += self._draw("overall", weights["overall"], 3, rng)
        return text, means

    def _rate(self, group, prompt, words, means, rng) -> str:
        """Each word with one of the two whole numbers beside its planted rating."""
        text = ""
        for word in words:
            mean = self.rating(group, prompt, word)
            text += f"{_rated(word)}{math.floor(mean + rng.random())}"
            means.append(mean)
        return text

    def _draw(
        self, kind: str, weights: Mapping[str, float], n: int, rng: np.random.Generator
    ) -> str:
        """Different keywords with their reasons, in the order of the file.

        A model that writes one after the other need not remember more than the last to repeat none.
        """
        lines, share = [], []
        for name, words in self.lists[kind].items():
            lines += [_line(*item) for item in words.items()]
            share += [weights.get(name, 0)] * len(words)
        share = np.array(share) / sum(share)
        chosen = rng.choice(len(lines), size=n, replace=False, p=share)
        return "".join(lines[place] for place in sorted(chosen))


def _prompt(name: str) -> Prompt:
    return social_groups.prompts(name.split("/")[0])[name]
