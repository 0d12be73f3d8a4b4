"""Examples from which a calibrant learns the study StereoMap."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import yaml

from example import Example, pick
from ingroup import paths
from ingroup.studies.stereomap import stimuli as social_groups
from ingroup.studies.stereomap.ground_truth import GroundTruth

_KEYWORDS = paths.MODELS / "keywords.yaml"
_SHORTEST_PHRASE = 18  # characters; a shorter one may stand in a prompt of another study
_EXAMPLE_GROUP = "Accountants"  # any group: phrases leave its name out
_KIND_OF_CONSTRUCT = {"Emotion": "feelings", "Behavior": "verbs"}  # of keywords, by construct
_STATUS_PROMPTS = ("Economic success", "Prestige", "Education")  # prompts
_BURDEN_CONSTRUCTS = ("Social-Structure", "Competition-others")  # constructs


def _keyword_line(word: str, reason: str) -> str:
    return f"\n- {word.capitalize()}: {reason}"


def _rating_label(word: str) -> str:
    return f"\n{word}: "


def _prompt(name: str) -> social_groups.Prompt:
    variant, _ = name.split("/")
    return social_groups.prompts(variant)[name]


class Replies(GroundTruth):
    """Replies by the ground truth of one model: ratings, keywords of its lists, refusals."""

    def __init__(self, file: Path):
        super().__init__(file)
        self.lists = yaml.safe_load(_KEYWORDS.read_text("utf8"))
        self.rank = {}
        clusters = self.table["groups"]
        for groups in clusters.values():
            for rank, people in enumerate(groups):
                self.rank[people] = rank

    def weights(self, group: str, prompt: str) -> dict[str, dict[str, float]]:
        """Compute the weight with which each list of keywords is drawn.

        Parameters
        ----------
        group : str
            A group of the study.
        prompt : str
            Name of a prompt with its variant, such as ``EXTENDED/...``.

        Returns
        -------
        dict of str to dict of str to float
            For each kind of keywords the weight of each list. The kinds are the kinds of
            ``keywords.yaml``. A prompt asks for one kind of keywords, and "overall" has the
            keywords after the overall rating.
        """
        stimulus = _prompt(prompt)
        construct = stimulus.construct
        cluster = self.position(group).cluster
        if construct in _KIND_OF_CONSTRUCT:
            kind = _KIND_OF_CONSTRUCT[construct]
            return {kind: self._weights_of_words(group, prompt, kind)}

        _, name = prompt.split("/")
        if name in _STATUS_PROMPTS:
            of_clusters = self.table["keywords"]["status"]
            return {"status": of_clusters[cluster]}
        if construct in _BURDEN_CONSTRUCTS:
            return {"burden": {"burden": 1}}

        weights = {"traits": self._weights_of_traits(group, cluster)}
        if "overall" in stimulus.parts:
            overall = self.rating(group, prompt, "Rating")
            # A higher rating draws more good words; 0.01 keeps both kinds possible.
            weights["overall"] = {
                "good": overall - social_groups.LOW + 0.01,
                "bad": social_groups.HIGH - overall + 0.01,
            }
        return weights

    def _weights_of_words(self, group: str, prompt: str, kind: str) -> dict[str, float]:
        """Compute the weights of keywords that are also rated, larger for a higher rating."""
        weights = {}
        for word in self.lists[kind]:
            rating = self.rating(group, prompt, word)
            weights[word] = (rating - 1) ** 2 + 0.01
        return weights

    def _weights_of_traits(self, group: str, cluster: str) -> dict[str, float]:
        """Compute the weights of traits in a group's cluster.
        Each group emphasises one of the traits.
        """
        keywords = self.table["keywords"]
        weights = dict(keywords["traits"][cluster])
        traits = list(weights)
        people = social_groups.text(group, form="grammatical")
        rank = self.rank.get(people, 0)
        # Neighbours in a cluster have different emphases, so that not all its groups are alike.
        emphasised = traits[rank % len(traits)]
        weights[emphasised] *= keywords["emphasis"]
        return weights

    def refusal_share(self, group: str) -> float:
        """Return the share of replies that are refusals, from 0 to 1."""
        people = social_groups.text(group, form="grammatical")
        shares = self.table["refusal"]["groups"]
        return shares.get(people, 0.0)

    def reply(
        self, group: str, prompt: str, parts: Collection[str], rng: np.random.Generator
    ) -> tuple[str, list[float]]:
        """Write one reply.

        Parameters
        ----------
        group : str
            A group of the study.
        prompt : str
            Name of a prompt with its variant.
        parts : collection of str
            The parts that are asked for: keywords, ratings, overall.
        rng : numpy.random.Generator
            Source of keywords, whole numbers and refusals.

        Returns
        -------
        tuple of str and list of float
            The text, and the true mean of each number in it.
        """
        if rng.random() < self.refusal_share(group):
            return self.table["refusal"]["reply"], []

        stimulus = _prompt(prompt)
        n_keywords = stimulus.n_keywords
        weights = self.weights(group, prompt)
        kind = next(iter(weights))
        text = self.lists["opening"]
        means = []
        if "keywords" in parts:
            text += self._draw_keywords(kind, weights[kind], n_keywords, rng)

        if "ratings" in parts:
            words = list(stimulus.words)
            if "overall" in stimulus.parts:
                words = [word for word in words if word != "Rating"]
            ratings, means_of_words = self._rate(group, prompt, words, rng)
            text += ratings
            means += means_of_words
            # These prompts ask for reasons, after the rating.
            if "keywords" not in stimulus.parts:
                text += self._draw_keywords(kind, weights[kind], n_keywords, rng)

        if "overall" in parts:
            rating, means_of_rating = self._rate(group, prompt, ["Rating"], rng)
            text += rating
            means += means_of_rating
            text += self._draw_keywords("overall", weights["overall"], 3, rng)
        return text, means

    def _rate(
        self, group: str, prompt: str, words: Sequence[str], rng: np.random.Generator
    ) -> tuple[str, list[float]]:
        """Write each word with one of the two whole numbers next to its true rating.

        Return the text and the true ratings.
        """
        text = ""
        means = []
        for word in words:
            mean = self.rating(group, prompt, word)
            # A mean of 3.7 is rounded up in 7 of 10 replies, so that their mean is 3.7, too.
            number = math.floor(mean + rng.random())
            text += f"{_rating_label(word)}{number}"
            means.append(mean)
        return text, means

    def _draw_keywords(
        self, kind: str, weights: Mapping[str, float], n_keywords: int, rng: np.random.Generator
    ) -> str:
        """Write different keywords with their reasons, in the order of the file.

        This order lets a model avoid repetitions by knowing the last keyword alone.
        """
        lines = []
        line_weights = []
        for name, reasons in self.lists[kind].items():
            for word, reason in reasons.items():
                lines.append(_keyword_line(word, reason))
                line_weights.append(weights.get(name, 0))

        share = np.array(line_weights) / sum(line_weights)
        chosen = rng.choice(len(lines), size=n_keywords, replace=False, p=share)
        return "".join(lines[index] for index in sorted(chosen))


def phrases() -> list[str]:
    """List the texts that prompts and replies repeat word for word. Each becomes one token.

    Prompts give whole sentences, up to the group. Replies give each keyword with its reason, and
    each word that is rated.
    """
    prompts = social_groups.prompts("EXTENDED") | social_groups.prompts("ORIGINAL")
    texts = _phrases_of_replies(prompts)
    for prompt in prompts:
        for form in social_groups.FORMS:
            group = social_groups.text(_EXAMPLE_GROUP, prompt, form)
            for wording in _wordings(_EXAMPLE_GROUP, prompt, form):
                texts += _pieces(wording, group)

    unique = dict.fromkeys(texts)
    return [text for text in unique if text]


def _phrases_of_replies(prompts: Mapping[str, social_groups.Prompt]) -> list[str]:
    """List the lines of replies: the opening, keywords, rated words, refusals."""
    lists = yaml.safe_load(_KEYWORDS.read_text("utf8"))
    lines = [lists.pop("opening")]
    for kind in lists.values():
        for reasons in kind.values():
            for word, reason in reasons.items():
                lines.append(_keyword_line(word, reason))
    for prompt in prompts.values():
        lines += [_rating_label(word) for word in prompt.words]
    for model in ("calibrant", "calibrant-null"):
        ground_truth = GroundTruth(paths.MODELS / model / "ground_truth.yaml")
        refusal = ground_truth.table["refusal"]
        lines.append(refusal["reply"])
    return lines


def _wordings(group: str, prompt: str, form: str) -> list[str]:
    """List all wordings of one prompt."""
    wordings = []
    for ablation in _ablations(prompt):
        for calls in ("together", "separate"):
            chats = social_groups.chats(group, prompt, ablation, form, calls=calls)
            wordings += [chat[0]["content"] for chat in chats.values()]
    return wordings


def _ablations(prompt: str) -> list[str]:
    """List the ablations of a prompt. ORIGINAL has no chain of thought to leave out."""
    names = list(social_groups.ablations())
    if prompt.startswith("ORIGINAL"):
        names = [name for name in names if "CoT" not in name]
    return names


def _pieces(text: str, group: str) -> list[str]:
    """Split a prompt at ends of sentences and lines and at the group's name.

    Short pieces are dropped, except items of a list.
    """
    # A blank before a small letter ends no sentence.
    end_of_sentence = r"(?<=[.?:])(?!\n-)\s+(?![a-z])"
    name_of_group = rf"\b{re.escape(group)}\b"
    # The break before an item of a list stays with the item.
    before_item = r"(?=\n-)"
    pieces = re.split(f"{end_of_sentence}|{name_of_group}|{before_item}", text)

    phrases = []
    for piece in pieces:
        phrase = piece.strip(" ")
        is_item = re.match(r"\n- ?\w", phrase)
        if len(phrase) >= _SHORTEST_PHRASE or is_item:
            phrases.append(phrase)
    return phrases


class Examples:
    """An endless supply of training examples of this study.

    Parameters
    ----------
    model : str
        The model with the ground-truth replies: ``"calibrant"`` or ``"calibrant-null"``.
    """

    def __init__(self, model: str):
        self.ground_truth = Replies(paths.MODELS / model / "ground_truth.yaml")
        self.groups = list(social_groups.groups().group)
        self.extended = list(social_groups.prompts("EXTENDED"))
        self.original = list(social_groups.prompts("ORIGINAL"))

    def draw(self, rng: np.random.Generator, progress: float, sharp: bool = False) -> Example:
        """Draw one example: any group, most often asked for its traits, in any form of the prompt.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of the example.
        progress, sharp : float, bool
            Not used: no group is easier or harder to begin with.

        Returns
        -------
        Example
            A prompt and the ground-truth reply, or a refusal.
        """
        group = pick(rng, self.groups)
        if rng.random() < 0.2:
            prompt = pick(rng, self.original)
        else:
            # These are for traits, four prompts of one rating, emotions and behaviours.
            shares = [0.4, 0.09, 0.05, 0.05, 0.05, 0.18, 0.18]
            prompt = str(rng.choice(self.extended, p=shares))
        ablations = _ablations(prompt)
        ablation = ablations[0]
        # The first of the ablations leaves nothing out: it is the paper's prompt.
        if rng.random() >= 0.6:
            ablation = pick(rng, ablations)
        usual, other = social_groups.FORMS
        form = other if rng.random() < 0.25 else usual

        # Most ask for all parts in one chat, the others for one part.
        chats = social_groups.chats(group, prompt, ablation, form, calls="separate")
        parts = list(chats)
        if rng.random() < 0.1:
            part = pick(rng, parts)
            parts = [part]
            messages = chats[part]
        else:
            messages = social_groups.chats(group, prompt, ablation, form)[""]
        reply, means = self.ground_truth.reply(group, prompt, parts, rng)
        return Example(
            messages,
            reply,
            numbers=tuple(means),
            spread=0.0,
        )
