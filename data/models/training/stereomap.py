"""Examples from which a calibrant learns stereomap."""

import math
import re
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
import yaml

from example import Example
from ingroup import paths
from ingroup.studies.stereomap import stimuli as social_groups
from ingroup.studies.stereomap.planted import Planted

_KEYWORDS = paths.MODELS / "keywords.yaml"
_SHORTEST_PHRASE = 18  # characters; what is shorter may stand in a prompt of another study


def _line(word: str, reason: str) -> str:
    return f"\n- {word.capitalize()}: {reason}"


def _rated(word: str) -> str:
    return f"\n{word}: "


def _prompt(name: str) -> social_groups.Prompt:
    return social_groups.prompts(name.split("/")[0])[name]


class Replies(Planted):
    """Replies with what is planted in one model: ratings, keywords of its lists, refusals."""

    def __init__(self, file: Path):
        super().__init__(file)
        self.lists = yaml.safe_load(_KEYWORDS.read_text("utf8"))
        ranked = [list(groups) for groups in self.table["groups"].values()]
        self.rank = {people: rank for groups in ranked for rank, people in enumerate(groups)}

    def weights(self, group: str, prompt: str) -> dict[str, dict[str, float]]:
        """How often each list of keywords is drawn from, by kind, in parts of the rarest.

        The kinds are those of ``keywords.yaml``; a prompt asks for one of them, and "overall" is
        what follows the overall rating.
        """
        place, keywords = self.position(group), self.table["keywords"]
        traits = dict(keywords["traits"][place.cluster])
        people = social_groups.text(group, form="grammatical")
        chosen = list(traits)[self.rank.get(people, 0) % len(traits)]
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
        low, high = social_groups.LOW, social_groups.HIGH
        ends = {"good": overall - low + 0.01, "bad": high - overall + 0.01}
        return {"traits": traits} | ({"overall": ends} if "overall" in asked.parts else {})

    def refusal(self, group: str) -> float:
        """The planted share of refusals."""
        people = social_groups.text(group, form="grammatical")
        return self.table["refusal"]["groups"].get(people, 0.0)

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


def phrases() -> list[str]:
    """What the prompts and the replies say word for word each time: one token each.

    Of a prompt whole sentences, up to the group; of a reply each keyword with its reason, and each
    word that is rated.
    """
    lists = yaml.safe_load(_KEYWORDS.read_text("utf8"))
    lines = [lists.pop("opening")]
    for kind in lists.values():
        lines += [_line(*item) for words in kind.values() for item in words.items()]
    known = social_groups.prompts("EXTENDED") | social_groups.prompts("ORIGINAL")
    lines += [_rated(word) for prompt in known.values() for word in prompt.words]
    for model in ("calibrant", "calibrant-null"):
        planted = Planted(paths.MODELS / model / "planted.yaml")
        lines += [planted.table["refusal"]["reply"]]
    asked = [
        piece
        for prompt in known
        for form in social_groups.FORMS
        for text in _texts("Accountants", prompt, form)
        for piece in _pieces(text, social_groups.text("Accountants", prompt, form))
    ]
    return [phrase for phrase in dict.fromkeys(lines + asked) if phrase]


def _texts(group: str, prompt: str, form: str) -> list[str]:
    """All wordings of one prompt."""
    texts = []
    for ablation in _ablations(prompt):
        for calls in ("together", "separate"):
            chats = social_groups.chats(group, prompt, ablation, form, calls=calls)
            texts += [chat[0]["content"] for chat in chats.values()]
    return texts


def _ablations(prompt: str) -> list[str]:
    """Those that the prompt has: ORIGINAL has no chain of thought to leave out."""
    original = prompt.startswith("ORIGINAL")
    return [name for name in social_groups.ablations() if not (original and "CoT" in name)]


def _pieces(text: str, group: str) -> list[str]:
    """Sentences and parts of sentences between line ends and the group's name."""
    pieces = re.split(rf"(?<=[.?:])(?!\n-)\s+(?![a-z])|\b{re.escape(group)}\b|(?=\n-)", text)
    kept = [piece.strip(" ") for piece in pieces]
    return [p for p in kept if len(p) >= _SHORTEST_PHRASE or re.match(r"\n- ?\w", p)]


class Examples:
    """An endless supply of training examples of this study.

    Parameters
    ----------
    model : str
        Whose planted replies: ``"calibrant"`` or ``"calibrant-null"``.
    """

    def __init__(self, model: str):
        self.planted = Replies(paths.MODELS / model / "planted.yaml")
        self.groups = list(social_groups.groups().group)
        self.original = list(social_groups.prompts("ORIGINAL"))

    def draw(self, rng: np.random.Generator, progress: float, sharp: bool = False) -> Example:
        """One example: any group, most often asked for its traits, in any form of the prompt.

        ``progress`` and ``sharp`` are not used: there is nothing easier or harder to begin with.
        """
        group = self.groups[int(rng.integers(len(self.groups)))]
        extended = list(social_groups.prompts("EXTENDED"))
        if rng.random() < 0.2:
            prompt = self.original[int(rng.integers(len(self.original)))]
        else:
            prompt = str(rng.choice(extended, p=[0.4, 0.09, 0.05, 0.05, 0.05, 0.18, 0.18]))
        ablations = _ablations(prompt)
        ablation = ablations[0] if rng.random() < 0.6 else str(rng.choice(ablations))
        form = social_groups.FORMS[int(rng.random() < 0.25)]
        chats = social_groups.chats(group, prompt, ablation, form, calls="separate")
        parts = list(chats)
        if rng.random() < 0.1:
            parts = [str(rng.choice(parts))]
            messages = chats[parts[0]]
        else:
            messages = social_groups.chats(group, prompt, ablation, form)[""]
        reply, means = self.planted.reply(group, prompt, parts, rng)
        return Example(messages, reply, tuple(means), 0.0)
