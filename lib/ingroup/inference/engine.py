"""What an engine is: chats in, replies out. An engine never parses and never judges."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ingroup.stimuli import Message

STOP, LENGTH, FAILED = "stop", "length", "failed"


class EngineError(RuntimeError):
    """An engine cannot start or cannot take these prompts; the message says what is missing."""


@dataclass(frozen=True)
class Sampling:
    """How replies are drawn.

    Attributes
    ----------
    temperature : float
        0 is greedy decoding (appendix B of Hou et al.).
    top_p : float
        Nucleus; without effect at temperature 0.
    max_tokens : int
        Longest reply; 128 in the released code of Hou et al.
    seed : int
        Without effect at temperature 0.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 128
    seed: int = 0

    def __post_init__(self) -> None:
        if self.temperature < 0 or not 0 < self.top_p <= 1 or self.max_tokens < 1:
            raise ValueError(
                f"sampling needs temperature >= 0, 0 < top_p <= 1 and max_tokens >= 1, found {self}"
            )

    def identity(self) -> dict[str, float | int]:
        """What of the sampling can change a reply: top_p and seed only if anything is drawn."""
        greedy = {"temperature": 0.0, "max_tokens": self.max_tokens}
        return greedy if self.temperature == 0 else dict(vars(self))


class Reply(NamedTuple):
    """One raw reply.

    Attributes
    ----------
    text : str or None
        What the model wrote, special tokens left out; None where the call failed.
    finish_reason : str
        ``"stop"`` (the model ended), ``"length"`` (cut at max_tokens) or ``"failed"``.
    prompt_tokens, cached_tokens, output_tokens : int
        Tokens of the prompt, those of them that did not have to be computed again, tokens written.
    error : str
        Why the call failed; empty otherwise.
    """

    text: str | None
    finish_reason: str
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    error: str = ""


class Engine(Protocol):
    """Anything that answers chats."""

    def answer(self, conversations: Sequence[Sequence[Message]], sampling: Sampling) -> list[Reply]:
        """One reply a conversation, in the same order."""
        ...

    def identity(self) -> dict[str, str]:
        """All that can change a reply: engine, version, model, revision, chat template, dtype."""
        ...
