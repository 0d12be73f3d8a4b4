"""What an engine is: chats in, replies out. An engine never parses and never judges."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol
from urllib.parse import SplitResult, urlsplit

from ingroup.design import Message

STOP, LENGTH, FAILED = "stop", "length", "failed"
MOST_LOGPROBS = 20  # what OpenAI's API and vLLM give at most


class EngineError(RuntimeError):
    """An engine cannot start or cannot take these prompts; the message says what is missing."""


@dataclass(frozen=True)
class Sampling:
    """How replies are drawn.

    Temperature 0 is greedy decoding (appendix B of Hou et al.), where ``top_p`` and ``seed`` have
    no effect; above it every prompt has a seed of its own, from this one. A reply has at most
    ``max_tokens`` (128 in the released code of Hou et al.) and brings along its ``logprobs`` (0 to
    20) most probable first tokens. ValueError for a number out of range.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 128
    seed: int = 0
    logprobs: int = 0

    def __post_init__(self) -> None:
        drawn = self.temperature >= 0 and 0 < self.top_p <= 1 and self.max_tokens >= 1
        if not (drawn and 0 <= self.logprobs <= MOST_LOGPROBS):
            raise ValueError(
                "sampling needs temperature >= 0, 0 < top_p <= 1, max_tokens >= 1 and logprobs of "
                f"0 to {MOST_LOGPROBS}, found {self}"
            )

    def identity(self) -> dict[str, float | int]:
        """What of the sampling can change a reply or what comes with it.

        top_p and seed count only if anything is drawn, logprobs only if there are any.
        """
        kept = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        if self.temperature > 0:
            kept |= {"top_p": self.top_p, "seed": self.seed}
        return kept | ({"logprobs": self.logprobs} if self.logprobs else {})


class Reply(NamedTuple):
    """One raw reply.

    ``text`` is what the model wrote without special tokens, None where the call failed;
    ``finish_reason`` is ``"stop"`` (the model ended), ``"length"`` (cut at max_tokens) or
    ``"failed"``, and ``error`` says why. ``cached_tokens`` are those of the prompt that did not
    have to be computed again. ``top_logprobs`` are the most probable first tokens as text, most
    probable first, each with the natural logarithm of its probability before temperature and top_p;
    empty unless the sampling asks for them. ``model`` is who answered, as a server says.
    """

    text: str | None
    finish_reason: str
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    error: str = ""
    top_logprobs: tuple[tuple[str, float], ...] = ()
    model: str = ""


def trial_seed(seed: int, prompt: Sequence) -> int:
    """A seed for one prompt (chat or token ids), 0 to 2^31 - 1, from it and the sampling's.

    So a draw depends on nothing else: not on the batch, the shard or the order of asking. The same
    prompt twice under one seed is drawn alike. (vLLM's CPU build has one stream for all.)
    """
    content = json.dumps([seed, prompt]).encode()
    return int.from_bytes(hashlib.blake2b(content, digest_size=4).digest()) >> 1


def address(url: str) -> SplitResult:
    """The parts of a server's base URL; an EngineError where it is none or may hold a secret."""
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        sound = False
    if not sound or "@" in parts.netloc or parts.query or parts.fragment:
        # The address is not repeated: there may be a password in it.
        raise EngineError(
            "the base URL must read like http://127.0.0.1:8000/v1 and hold no user, password or "
            "query: a key belongs in OPENAI_API_KEY"
        )
    return parts


class Engine(Protocol):
    """Anything that answers chats.

    It ``asks_again`` where a call that failed may succeed in a later run: a server does, recordings
    and a prompt that is too long do not. One that loads a model takes token ids as well
    (:class:`ingroup.inference.weights.LocalEngine`), so that prompts are made while it computes
    others; one whose replies come one by one and may cost money has ``answer_each``, so that each
    is kept at once (:class:`ingroup.inference.openai_engine.OpenAIEngine`).
    """

    asks_again: bool

    def answer(self, conversations: Sequence[Sequence[Message]], sampling: Sampling) -> list[Reply]:
        """One reply a conversation, in the same order."""
        ...

    def identity(self) -> dict[str, str]:
        """All that can change a reply: engine, version, model, revision, chat template, dtype."""
        ...

    def close(self) -> None:
        """Give back what the engine holds; it may be asked again and then takes it anew."""
        ...
