"""Chats to token ids, through the model's own chat template; how many, and how many are saved."""

import hashlib
import math
import re
from array import array
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise, takewhile
from operator import add
from threading import Thread
from typing import TYPE_CHECKING, Literal

import numpy as np
from jinja2 import TemplateError

from ingroup.design import Design, Message
from ingroup.inference.engine import EngineError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SystemRole = Literal["keep", "fold", "plain"]
Bos = Literal["template", "released"]

BLOCK_SIZE = 16  # tokens that a prefix cache keeps or forgets together: vLLM's default on a GPU
LONGEST = 20  # seconds for one short chat, which takes a thousandth of one
MOST_TURNS = 200_000  # under 300 MB where a turn has 200 tokens

_PROBE = [
    {"role": "system", "content": "INGROUP SYSTEM PROBE"},
    {"role": "user", "content": "INGROUP USER PROBE"},
]
# Two contents with what a template might escape, fold or cut.
_CONTENTS = ('First\n"probe" {}, an & and ünï?', "Probe {}:  that's\n\n100 % of a second one.")
# A template may look into a turn for a mark of its own, such as <think>, [INST] or /no_think.
_MARKS = re.compile(r"[<>\[\]{}|/\\]")


def fold_system(messages: Sequence[Message]) -> list[Message]:
    """The same chat with the system turn put before the first user turn, a blank line between."""
    if [message["role"] for message in messages[:2]] != ["system", "user"]:
        return list(messages)
    system, user, *rest = messages
    return [{"role": "user", "content": f"{system['content']}\n\n{user['content']}"}, *rest]


@dataclass(eq=False)
class _Turn:
    """One place in the chats of certain roles.

    A prompt is, turn by turn, ``lead``, the ids of ``before + content + after`` and ``tail``. A
    special token parts each of these from the next.
    """

    lead: array
    before: str
    after: str
    tail: array  # empty but for the last turn
    known: dict[str, array | None] = field(default_factory=dict)  # content to lead + ids + tail


class Prompter:
    """Renders chats for one tokenizer, the system turn kept or put away by :func:`fold_system`.

    "plain" takes no chat template at all: the turns, one to a line, with the tokenizer's own
    special tokens (a BOS, where it adds one), as the released script of Wang et al. asked models.
    ``bos`` "template" gives exactly the ids of the chat template, so one BOS. "released" renders to
    text and lets the tokenizer add its special tokens once more, as the released script of Hou et
    al. did: models with a BOS token then get it twice. EngineError without a chat template, where
    it does not end, or where "keep" meets one that refuses or drops the system turn.
    """

    def __init__(
        self,
        tokenizer: "PreTrainedTokenizerBase",
        system: SystemRole = "keep",
        bos: Bos = "template",
    ):
        self.tokenizer, self.system, self.bos = tokenizer, system, bos
        special = sorted(map(re.escape, tokenizer.get_added_vocab()), key=len, reverse=True)
        # With the authors' second BOS a text is not the sum of its turns.
        whole = bos == "released" or system == "plain" or not special
        self._special = None if whole else re.compile("|".join(special))
        self._frames: dict[tuple[str, ...], list[_Turn]] = {}
        if system == "plain":
            return
        if tokenizer.chat_template is None:
            raise EngineError(
                f"{tokenizer.name_or_path} has no chat template; an instruction-tuned model is "
                "needed (its name often ends in -Instruct or -it)"
            )
        self._check_speed()
        if system == "keep" and not self._has_system_role():
            raise EngineError(
                f"the chat template of {tokenizer.name_or_path} has no system role; set "
                "SYSTEM=fold to put the persona before the task in the user turn"
            )

    def _check_speed(self) -> None:
        """Refuse a template whose loops do not end: it is a program, and comes from anywhere."""

        def render() -> None:
            for chat in (_PROBE, _PROBE[1:]):
                with suppress(Exception):  # a template may refuse this chat
                    self._rendered([chat])

        thread = Thread(target=render, daemon=True)
        thread.start()
        thread.join(LONGEST)
        if thread.is_alive():
            raise EngineError(
                f"the chat template of {self.tokenizer.name_or_path} does not render a chat of "
                f"three words within {LONGEST} s"
            )

    def _has_system_role(self) -> bool:
        try:
            text = self.tokenizer.apply_chat_template(_PROBE, tokenize=False)
        except TemplateError:
            return False
        return all(message["content"] in text for message in _PROBE)

    def ids(self, messages: Sequence[Message]) -> list[int]:
        """Token ids of a chat, ready for the model to answer."""
        return self.batch([messages])[0]

    def batch(self, conversations: Sequence[Sequence[Message]]) -> list[list[int]]:
        """:meth:`ids` of many chats, a small part of the time that they cost one by one."""
        if self.system == "fold":
            conversations = [fold_system(messages) for messages in conversations]
        if not conversations:
            return []
        return self._by_turns(conversations) if self._special else self._whole(conversations)

    def _whole(self, conversations: Sequence[Sequence[Message]]) -> list[list[int]]:
        return self._tokenized(self._rendered(conversations))

    def _rendered(self, conversations: Sequence[Sequence[Message]]) -> list[str]:
        if self.system == "plain":
            return ["\n".join(turn["content"] for turn in chat) for chat in conversations]
        return self.tokenizer.apply_chat_template(
            list(conversations), add_generation_prompt=True, tokenize=False
        )

    def _tokenized(self, texts: list[str]) -> list[list[int]]:
        # The text of the template has its special tokens already; the authors' way adds them again.
        return self.tokenizer(
            texts,
            add_special_tokens=self.bos == "released" or self.system == "plain",
            return_attention_mask=False,
            return_token_type_ids=False,
        )["input_ids"]

    def _by_turns(self, conversations: Sequence[Sequence[Message]]) -> list[list[int]]:
        """The same ids, but a turn that stands in thousands of prompts is rendered once.

        The texts that a template puts around turns depend on their roles alone, and a tokenizer
        cuts a text at its special tokens and starts anew behind each. Where one does more (some put
        a mark before the first word alone), three prompts of the batch show it, and all prompts are
        made whole from then on.
        """
        frames = [self._frame(tuple([turn["role"] for turn in chat])) for chat in conversations]
        self._learn(frames, conversations)
        prompts: list[list[int] | None] = []
        for frame, chat in zip(frames, conversations, strict=True):
            parts = [turn.known[said["content"]] for turn, said in zip(frame, chat, strict=False)]
            by_turns = parts and None not in parts
            prompts.append(reduce(add, parts).tolist() if by_turns else None)
        if odd := [place for place, ids in enumerate(prompts) if ids is None]:
            whole = self._whole([conversations[place] for place in odd])
            for place, ids in zip(odd, whole, strict=True):
                prompts[place] = ids
        for place in {0, len(prompts) // 2, len(prompts) - 1}:
            if prompts[place] != self._whole([conversations[place]])[0]:
                self._special = None
                return self._whole(conversations)
        return prompts

    def _learn(
        self, frames: Sequence[list[_Turn]], conversations: Sequence[Sequence[Message]]
    ) -> None:
        """Tokenize the turns that were not met before; None for one that may change its frame."""
        for turn in {turn for frame in self._frames.values() for turn in frame}:
            if len(turn.known) > MOST_TURNS:
                turn.known.clear()
        new: dict[_Turn, dict[str, None]] = {}
        for frame, chat in zip(frames, conversations, strict=True):
            for turn, said in zip(frame, chat, strict=False):
                if said["content"] not in turn.known:
                    new.setdefault(turn, {})[said["content"]] = None
        for turn, contents in new.items():
            turn.known |= contents
            plain = [text for text in contents if text.strip() == text and self._is_plain(text)]
            if plain:
                tokenized = self._tokenized([turn.before + text + turn.after for text in plain])
                for text, ids in zip(plain, tokenized, strict=True):
                    turn.known[text] = turn.lead + array("i", ids) + turn.tail

    def _is_plain(self, text: str) -> bool:
        return bool(text) and not _MARKS.search(text) and not self._special.search(text)

    def _frame(self, roles: tuple[str, ...]) -> list[_Turn]:
        """The turns of a chat of these roles; empty where it cannot be taken apart."""
        if roles not in self._frames:
            around = [self._around(roles, content) for content in _CONTENTS]
            fixed = around[0] is not None and around[0] == around[1]
            self._frames[roles] = self._cut(around[0]) if fixed else []
        return self._frames[roles]

    def _around(self, roles: tuple[str, ...], content: str) -> list[str] | None:
        """What the template puts before, between and behind the turns; None if not only that."""
        contents = [content.format(place) for place in range(len(roles))]
        chat = [{"role": r, "content": c} for r, c in zip(roles, contents, strict=True)]
        rest, texts = self._rendered([chat])[0], []
        for content in contents:
            if rest.count(content) != 1:
                return None
            text, _, rest = rest.partition(content)
            texts.append(text)
        return [*texts, rest]

    def _cut(self, around: list[str]) -> list[_Turn]:
        """The turns between the texts around them; none where no special token parts two turns."""
        parts = []
        for text in around:
            found = [*self._special.finditer(text)]
            first, last = (found[0].start(), found[-1].end()) if found else (len(text), 0)
            parts.append((text[:first], text[first:last], text[last:]))
        if not all(special for _, special, _ in parts[1:-1]):
            return []
        turns = []
        for (_, lead, before), (after, *tail) in pairwise(parts):
            ends = [lead, "".join(tail) if len(turns) == len(around) - 2 else ""]
            lead, tail = (array("i", ids) for ids in self._tokenized(ends))
            turns.append(_Turn(lead, before, after, tail))
        return turns

    def identity(self) -> dict[str, str]:
        """What of the rendering can change a reply."""
        used = "" if self.system == "plain" else str(self.tokenizer.chat_template)
        template = hashlib.sha256(used.encode()).hexdigest()
        return {"chat_template": template[:16], "system": self.system, "bos": self.bos}


def savable(ids: Sequence[int], before: Sequence[int], block_size: int = BLOCK_SIZE) -> int:
    """Tokens of a prompt that the cached blocks of the prompt before it save.

    The longest common prefix in whole blocks; at least one token is left to compute. Where prompts
    with a common prefix stand together, as in a design, no earlier prompt saves more (LCP(x_j, x_i)
    for j < i is the least of LCP(x_k-1, x_k) for j < k <= i). Narratives that begin alike may stand
    apart: against all earlier prompts it is the same on the sample corpus, 99.9 % of theirs on
    crowd-enVent in P0,S0,T0 and 91 % in P0,S0,T1, where a block ends in "I felt ...".
    """
    same = zip(ids, before, strict=False)  # one may be longer
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], same))
    return min(common, len(ids) - 1) // block_size * block_size


def tokens(
    asked: Design, prompter: Prompter, size: int, rng: np.random.Generator, block_size: int
) -> dict[str, float]:
    """Prompt tokens of a design, estimated from a random sample of its trials.

    ``size`` trials are drawn without replacement, at least 2, all of a smaller design; ``rng`` is
    one for all parts of a plan: with a seed for each they would draw the same trials. ``tokens`` is
    N times the sample's mean; ``error`` its standard error N s sqrt((1 - n/N) / n), with s^2 the
    sample variance (Cochran 1977, section 2.6; 0 where all were drawn); ``saved`` N times the mean
    of :func:`savable`.
    """
    number = len(asked)
    drawn = rng.choice(number, min(size, number), replace=False)
    lengths, saved = [], []
    for index in map(int, drawn):
        ids = prompter.ids(asked[index].messages)
        before = prompter.ids(asked[index - 1].messages) if index else []
        lengths.append(len(ids))
        saved.append(savable(ids, before, block_size))
    spread = np.std(lengths, ddof=1) * math.sqrt((1 - len(drawn) / number) / len(drawn))
    values = {"tokens": np.mean(lengths), "error": spread, "saved": np.mean(saved)}
    return {name: float(number * value) for name, value in values.items()}
