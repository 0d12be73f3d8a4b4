"""What the engines share that load a model: its files, its prompts, and scored answers."""

import hashlib
import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from huggingface_hub import snapshot_download
from transformers import AutoTokenizer, GenerationConfig

from ingroup.inference.answers import STOP, Chat, Engine, EngineError, Reply, Sampling, failed
from ingroup.inference.chats import Bos, Renderer, SystemRole
from ingroup.inference.reasoning import split_reasoning
from ingroup.inference.scoring import LEAST_LOG, AnswerTree, Floats, Place, join, scored_replies

Prompts = Sequence[list[int]]  # chats as token ids
FILES = ["*.json", "*.jinja", "*.safetensors", "*.model", "*.txt"]


@cache
def revision(folder: Path) -> str:
    """Return the commit of a folder of the hub's cache, or else a hash of all of its files.

    Gigabytes are read once in a process, and not for each job.

    Parameters
    ----------
    folder : Path
        A folder with weights and a tokenizer.

    Returns
    -------
    str
        The commit, or 16 digits of a hash.
    """
    if folder.parent.name == "snapshots":
        return folder.name
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if any(file.match(pattern) for pattern in FILES):
            digest.update(file.name.encode())
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:16]


class LocalEngine(Engine):
    """An engine that loads a model, when it is first asked.

    Parameters
    ----------
    model : str
        A folder, or a name on the hub.
    system, bos, reasoning : str
        As in `chats.Renderer`.
    """

    def __init__(
        self, model: str, system: SystemRole = "keep", bos: Bos = "template", reasoning: str = ""
    ):
        self.model = model
        self._is_checked = False

        try:
            is_folder = Path(model).is_dir()
            self.folder = Path(
                model if is_folder else snapshot_download(model, allow_patterns=FILES)
            )
            self.tokenizer = AutoTokenizer.from_pretrained(self.folder)
        except Exception as error:  # files of each kind have errors of their own
            reason = str(error).strip().split("\n")[0]
            raise EngineError(f"the model {model!r} cannot be loaded: {reason}") from error
        self.renderer = Renderer(self.tokenizer, system, bos, reasoning)

    def identity(self) -> dict[str, Any]:
        """Name the model, its files, and how chats are rendered.

        Returns
        -------
        dict
            Entries of a store's manifest.
        """
        name = self.folder.name if Path(self.model).is_dir() else self.model
        about = {"model": name, "revision": revision(self.folder)}
        return about | self.renderer.identity()

    def answer(self, chats: Sequence[Chat], sampling: Sampling) -> list[Reply]:
        """Return one reply to each chat. A chat that is too long for the model fails.

        Parameters
        ----------
        chats : sequence of chat
            The chats.
        sampling : Sampling
            How they are asked.

        Returns
        -------
        list of Reply
            One reply to each chat, in order.
        """
        prompts = self.renderer.token_ids(chats)
        if sampling.choices:
            return self._score(prompts, sampling)
        return self._ask_fitting(prompts, 1, lambda part: self._write_checked(part, sampling))

    def _write_checked(self, prompts: Prompts, sampling: Sampling) -> list[Reply]:
        """Write replies, once the first prompt has shown that the model computes numbers."""
        if not self._is_checked:
            # Broken weights write texts that nobody can tell from answers.
            tree = AnswerTree([self._ends[:1]])
            (values,) = self._log_probabilities(prompts[:1], tree)
            if np.isnan(values).any():
                raise EngineError(
                    f"{self.model!r} computes logits that are not numbers: set DTYPE=float32, or "
                    "fetch the model again"
                )
            self._is_checked = True
        return self._write(prompts, sampling)

    @abstractmethod
    def _write(self, prompts: Prompts, sampling: Sampling) -> list[Reply]:
        """Write replies in free text."""

    @abstractmethod
    def _log_probabilities(self, prompts: Prompts, tree: AnswerTree) -> list[Floats]:
        """Look up the tokens of `_looked_up` at each place, for all prompts: (prompts, tokens)."""

    @abstractmethod
    def _longest(self) -> int:
        """Return the largest number of tokens of a prompt and its reply."""

    def _ask_fitting(
        self, prompts: Prompts, room: int, ask: Callable[[Prompts], list[Reply]]
    ) -> list[Reply]:
        """Ask the prompts that leave room for so many tokens. The others fail."""
        limit = self._longest() - room
        fitting = [ids for ids in prompts if len(ids) <= limit]
        answers = iter(ask(fitting) if fitting else ())
        replies = []
        for ids in prompts:
            too_long = f"the prompt has {len(ids)} tokens, the model takes {limit}"
            replies.append(next(answers) if len(ids) <= limit else failed(too_long))
        return replies

    def _reply(self, ids: Sequence[int], finish_reason: str, n_prompt_tokens: int) -> Reply:
        """Make a reply in free text, with its reasoning apart."""
        text = self.tokenizer.decode(ids, skip_special_tokens=True)
        reasoning = ""

        if self._marks_reasoning:
            whole = self.tokenizer.decode(ids, skip_special_tokens=False)
            text, reasoning = split_reasoning(
                whole, self.renderer.opens_reasoning, ended=finish_reason == STOP
            )
            for token in self.tokenizer.all_special_tokens:
                text = text.replace(token, "")
        return Reply(
            text, finish_reason, reasoning, prompt_tokens=n_prompt_tokens, output_tokens=len(ids)
        )

    @cached_property
    def _marks_reasoning(self) -> bool:
        """Tell whether the chat template or the vocabulary knows a mark of reasoning."""
        known = f"{self.tokenizer.chat_template} {' '.join(self.tokenizer.get_added_vocab())}"
        return bool(re.search(r"think|thought|<\|channel", known, re.IGNORECASE))

    def _score(self, prompts: Prompts, sampling: Sampling) -> list[Reply]:
        """Score the choices behind each prefix, given the greedy answers before it."""
        replies = [Reply("")] * len(prompts)
        opening = self._ids(self.renderer.answer_prefix)
        for prefix in sampling.prefixes:
            extended = []
            for ids, reply in zip(prompts, replies, strict=True):
                behind = self._ids(f"{reply.text or ''}{prefix}")
                extended.append([*ids, *opening, *behind])

            tree = self._tree(sampling.choices, prefix)
            room = 1 + max(len(place.path) for place in tree.places)
            score = partial(self._score_in_tree, tree=tree, choices=sampling.choices)
            answers = self._ask_fitting(extended, room, score)
            for row, answer in enumerate(answers):
                if answer.text is not None:
                    answer = answer._replace(text=f"{prefix}{answer.text}")
                replies[row] = join(replies[row], answer)
        return replies

    def _score_in_tree(
        self, prompts: Prompts, tree: AnswerTree, choices: Sequence[str]
    ) -> list[Reply]:
        """Score one answer behind each prompt."""
        logs = []
        values_of_places = self._log_probabilities(prompts, tree)
        for place, values in zip(tree.places, values_of_places, strict=True):
            if place.may_end:
                tokens, ends = np.split(values, [len(place.tokens)], axis=1)
                values = np.hstack([tokens, _log_sum(ends)])
            logs.append(values)
        return scored_replies(tree, np.hstack(logs), choices, prompts)

    def _looked_up(self, place: Place) -> list[int]:
        """List the tokens whose probability is needed at a place."""
        return [*place.tokens, *self._ends] if place.may_end else list(place.tokens)

    def _ids(self, text: str) -> list[int]:
        """Encode a text without special tokens."""
        return self.tokenizer.encode(text, add_special_tokens=False)

    def _tree(self, choices: Sequence[str], prefix: str) -> AnswerTree:
        """Build the tree of the choices as the tokenizer spells them behind a prefix."""
        of_prefix = self._ids(prefix)
        spelling = []
        for choice in choices:
            ids = self._ids(prefix + choice)
            # Some tokenizers merge the end of the prefix with the choice.
            fits = ids[: len(of_prefix)] == of_prefix
            spelling.append(ids[len(of_prefix) :] if fits else self._ids(choice))
        return AnswerTree(spelling)

    @cached_property
    def _ends(self) -> list[int]:
        """List the tokens that end a reply."""
        try:
            ends = GenerationConfig.from_pretrained(self.folder).eos_token_id
        except OSError:
            ends = self.tokenizer.eos_token_id
        if ends is None:
            raise EngineError(f"{self.model!r} has no token that ends a reply: use READING=free")
        return ends if isinstance(ends, list) else [ends]


def _log_sum(logs: Floats) -> Floats:
    """Return the logarithm of the summed probabilities of each row, at least `LEAST_LOG`."""
    total = np.logaddexp.reduce(logs, axis=1, initial=-np.inf, keepdims=True)
    return np.maximum(total, LEAST_LOG)
