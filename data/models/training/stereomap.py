"""Examples from which a calibrant learns stereomap."""

import re

import numpy as np
import yaml

from example import Example
from ingroup import paths
from ingroup.studies.stereomap import stimuli as social_groups
from ingroup.studies.stereomap.planted import KEYWORDS, Planted, line_of, rating_of

_SHORTEST_PHRASE = 18  # characters; what is shorter may stand in a prompt of another study


def phrases() -> list[str]:
    """What the prompts and the replies say word for word each time: one token each.

    Of a prompt whole sentences, up to the group; of a reply each keyword with its reason, and each
    word that is rated.
    """
    lists = yaml.safe_load(KEYWORDS.read_text("utf8"))
    lines = [lists.pop("opening")]
    for kind in lists.values():
        lines += [line_of(*item) for words in kind.values() for item in words.items()]
    known = social_groups.prompts("EXTENDED") | social_groups.prompts("ORIGINAL")
    lines += [rating_of(word) for prompt in known.values() for word in prompt.words]
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
        chats = [
            social_groups.messages(group, prompt, ablation, form),
            *social_groups.separate_messages(group, prompt, ablation, form).values(),
        ]
        texts += [chat[0]["content"] for chat in chats]
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
        self.planted = Planted(paths.MODELS / model / "planted.yaml")
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
        chats = social_groups.separate_messages(group, prompt, ablation, form)
        parts = list(chats)
        if rng.random() < 0.1:
            parts = [str(rng.choice(parts))]
            messages = chats[parts[0]]
        else:
            messages = social_groups.messages(group, prompt, ablation, form)
        reply, means = self.planted.reply(group, prompt, parts, rng)
        return Example(messages, reply, tuple(means), 0.0)
