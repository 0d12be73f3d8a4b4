"""What an engine is asked and what it answers. Engines never parse or judge a reply."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

Message = dict[str, str]
Chat = Sequence[Message]

STOP = "stop"  # the model ended its answer
LENGTH = "length"  # the reply was cut at max_tokens
FILTERED = "filtered"  # the model's content filter declined
FAILED = "failed"  # the engine gave no text
MISSING = "missing"  # the trial was never asked


class EngineError(RuntimeError):
    """An engine cannot start or cannot go on. The message says why, in one sentence."""


@dataclass(frozen=True)
class Sampling:
    """How answers are drawn or scored.

    Attributes
    ----------
    temperature : float or None
        0 is greedy. With None a server is sent no temperature.
    top_p : float
        The share of probability from which tokens are drawn.
    max_tokens : int
        The most tokens of a reply, its reasoning included.
    seed : int
        The seed of all draws.
    choices : tuple of str
        The admissible answers. With choices, their probabilities are asked for.
    prefixes : tuple of str
        Texts before the scored answers, one answer after each.
    reasoning : str
        How much the model is to think: "" (its default), "none", "low", "medium" or "high".
    """

    temperature: float | None = 0.0
    top_p: float = 1.0
    max_tokens: int = 128
    seed: int = 0
    choices: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ("",)
    reasoning: str = ""

    @property
    def draws(self) -> bool:
        """Tell whether chance plays a part in the replies."""
        return bool(self.temperature) and not self.choices

    def identity(self) -> dict[str, Any]:
        """Return the settings that can change a reply, for the manifest of a store.

        Returns
        -------
        dict
            The settings by their names. Those that play no part are left out.
        """
        thinks = {"reasoning": self.reasoning} if self.reasoning else {}
        if self.choices:
            return {"choices": list(self.choices), "prefixes": list(self.prefixes)} | thinks

        settings = {"temperature": self.temperature, "max_tokens": self.max_tokens} | thinks
        if self.draws:
            settings |= {"top_p": self.top_p, "seed": self.seed}
        return settings

    def trial_seed(self, chat: Any) -> int:
        """Make the seed of one chat, so that a draw does not depend on its neighbours.

        Parameters
        ----------
        chat : object
            The chat, or its token ids.

        Returns
        -------
        int
            A seed below 2^31.
        """
        content = json.dumps([self.seed, chat]).encode()
        return int.from_bytes(hashlib.blake2b(content, digest_size=4).digest()) >> 1


def prompt_key(chat: Chat) -> int:
    """Hash the turns of a chat, one to a line, without their roles, which files of authors lack.

    Parameters
    ----------
    chat : sequence of Message
        The turns. Empty turns do not count.

    Returns
    -------
    int
        A signed number of 64 bits.
    """
    text = "\n".join(turn["content"] for turn in chat if turn["content"])
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


class Reply(NamedTuple):
    """One raw reply.

    Attributes
    ----------
    text : str or None
        The answer, None without one. A scored reply has the greedy admissible answer.
    finish_reason : str
        One of ``STOP``, ``LENGTH``, ``FILTERED`` and ``FAILED``.
    reasoning : str
        What the model thought before its answer. It is never parsed.
    error : str
        Why there is no text.
    model : str
        The model that answered, as a server names it.
    prompt_tokens, output_tokens, reasoning_tokens : int
        Counts. Reasoning is a part of the output.
    probabilities : sequence of float
        One for each choice, behind each prefix.
    option_mass : sequence of float
        The unconstrained probability of all admissible first tokens, behind each prefix.
    """

    text: str | None
    finish_reason: str = STOP
    reasoning: str = ""
    error: str = ""
    model: str = ""
    prompt_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    probabilities: Sequence[float] = ()
    option_mass: Sequence[float] = ()


def failed(error: Any) -> Reply:
    """Make the reply of a call that failed.

    Parameters
    ----------
    error : object
        The error, or its message.

    Returns
    -------
    Reply
        The reply, without a text.
    """
    return Reply(None, FAILED, error=str(error))


class Engine(ABC):
    """Something that answers chats.

    Attributes
    ----------
    piece_size : int
        How many answers are asked for at once, and then kept on disk together.
    asks_again : bool
        Whether a call that failed may succeed in a later run.
    """

    piece_size: int = 4096
    asks_again: bool = False

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Name everything about the engine that can change a reply."""

    @abstractmethod
    def answer(self, chats: Sequence[Chat], sampling: Sampling) -> list[Reply]:
        """Return one reply to each chat, in order.

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

        Raises
        ------
        EngineError
            The engine cannot answer any chat.
        """

    def close(self) -> None:  # noqa: B027, as many engines have nothing to free
        """Free the memory and the connections."""
