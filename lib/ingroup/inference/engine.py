"""What an engine is, and which one answers: chats in, replies out. It never parses or judges."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

from ingroup import models
from ingroup.design import Message

# How a reply ended: parsing reads these words, so they are defined there.
from ingroup.parsing import FAILED as FAILED
from ingroup.parsing import FILTERED as FILTERED
from ingroup.parsing import LENGTH as LENGTH
from ingroup.parsing import STOP as STOP
from ingroup.tables import Sentence

# Tokens beside those of the answer. Some providers give an effort a budget, which must fit.
REASONING_ROOM = 8_192
ROOM_OF_EFFORT = {"medium": 12_288, "high": 18_432}
# What an engine says that is asked over choices and cannot.
NO_CHOICES = (
    "without the probabilities of all admissible answers: ask with READING=free, or ask the model "
    "itself with ENGINE=transformers or vllm"
)
BATCHED = 0.5  # of the price: what providers take for calls in batches


class EngineError(Sentence, RuntimeError):
    """An engine cannot start or cannot take these prompts; the message says what is missing."""


@dataclass(frozen=True)
class Sampling:
    """How replies are drawn.

    Temperature 0 is greedy decoding (appendix B of Hou et al.), where ``top_p`` and ``seed`` have
    no effect; above it every prompt has a seed of its own, from this one. None sends neither of
    the three to a server. A reply has at most ``max_tokens`` (128 in the released code of Hou et
    al.), its reasoning included. ``reasoning`` says how much the model is to think: "" (its own
    default), an effort ("none" to "high"), or a number of tokens.

    With ``choices``, the admissible answers, nothing is drawn: a reply brings the probability of
    each (:mod:`ingroup.inference.choices`). It may consist of several answers, each behind one of
    the ``leads``, given the leads and greedy answers before it. ValueError for a number out
    of range.
    """

    temperature: float | None = 0.0
    top_p: float = 1.0
    max_tokens: int = 128
    seed: int = 0
    choices: tuple[str, ...] = ()
    leads: tuple[str, ...] = ("",)
    reasoning: str = ""

    def __post_init__(self) -> None:
        temperature = self.temperature or 0.0
        if not (temperature >= 0 and 0 < self.top_p <= 1 and self.max_tokens >= 1):
            raise ValueError(
                f"sampling needs temperature >= 0, 0 < top_p <= 1 and max_tokens >= 1, found {self}"
            )

    def identity(self) -> dict[str, Any]:
        """What of the sampling can change a reply; top_p and seed only if anything is drawn."""
        thinks = {"reasoning": self.reasoning} if self.reasoning else {}
        if self.choices:
            return {"choices": list(self.choices), "leads": list(self.leads)} | thinks
        kept = {"temperature": self.temperature, "max_tokens": self.max_tokens} | thinks
        if self.draws:
            kept |= {"top_p": self.top_p, "seed": self.seed}
        return kept

    @property
    def draws(self) -> bool:
        """Whether replies are drawn with a temperature and a seed that are known."""
        return bool(self.temperature)

    def trial_seed(self, prompt: Sequence) -> int:
        """A seed for one prompt (chat or token ids), 0 to 2^31 - 1, from it and ``seed``.

        So a draw depends on nothing else: not on the batch, the shard or the order of asking. The
        same prompt twice under one seed is drawn alike. (vLLM's CPU build has one stream for all.)
        """
        content = json.dumps([self.seed, prompt]).encode()
        return int.from_bytes(hashlib.blake2b(content, digest_size=4).digest()) >> 1


class Reply(NamedTuple):
    """One raw reply.

    ``text`` is the answer without special tokens, None where the call failed. ``reasoning`` is what
    the model thought before its answer, "" without any; it is never parsed. ``finish_reason`` is
    ``"stop"`` (the model ended), ``"length"`` (cut at max_tokens), ``"filtered"`` (a content filter
    declined) or ``"failed"``, and ``error`` says why. ``output_tokens`` count the reasoning too, of
    which there are ``reasoning_tokens``. ``cached_tokens`` are those of the prompt that did not
    have to be computed again. ``model`` is who answered, as a server says. Asked over choices,
    ``probabilities`` are those of the answers behind the first lead, then behind the second, and so
    on, ``mass`` what the model, unconstrained, gives to the first tokens of admissible answers
    behind each, and ``text`` is made of the leads and the answers that greedy decoding would write
    if it were held to admissible ones. ``steps`` are what the model gives at each place of the tree
    of answers (:class:`ingroup.inference.choices.Tree`), lead by lead, where an engine tells them;
    with ``engine.spelling`` they give the probabilities under another end. ``price_share`` is
    how much of its price a server bills for the call: `BATCHED` in a batch, 0 where it refused.
    """

    text: str | None
    finish_reason: str
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    error: str = ""
    model: str = ""
    probabilities: Sequence[float] = ()
    mass: Sequence[float] = ()
    reasoning: str = ""
    reasoning_tokens: int = 0
    price_share: float = 1.0
    steps: Sequence[float] = ()


def encodable(text: str) -> str:
    """A text with "?" for half a surrogate pair, which JSON can spell and a shard cannot hold."""
    return text.encode(errors="replace").decode()


class Engine(Protocol):
    """Anything that answers chats.

    It ``asks_again`` where a call that failed may succeed in a later run: a server does, recordings
    and a prompt that is too long do not. An engine that loads a model takes token ids as well
    (:class:`ingroup.inference.weights.LocalEngine`), so that prompts are made while it computes
    others. Where replies take long or cost money, the engine ``keeps_each``: it is asked by
    :meth:`answer_each`, so that each reply is kept at once
    (:class:`ingroup.inference.inspect_engine.InspectEngine`). An engine of recordings has
    ``match``, which is told the trials' numbers
    (:class:`ingroup.inference.replay_engine.ReplayEngine`).

    What only an engine that asks a server does has a default here: it ``costs`` money, has
    something to learn, and sends batches where it is told to (``batch``).
    """

    asks_again: bool
    keeps_each: bool = False
    costs: bool = False
    batch: bool = False

    def answer(self, conversations: Sequence[Sequence[Message]], sampling: Sampling) -> list[Reply]:
        """One reply a conversation, in the same order."""

    def answer_each(
        self, conversations: Sequence[Sequence[Message]], sampling: Sampling,
        keep: Callable[[int, Reply], None], asked: Any = None,
    ) -> list[Reply]:  # fmt: skip
        """One reply a conversation, in order; ``keep`` gets each, with its place, as it comes.

        ``asked`` (:class:`ingroup.inference.ledger.Asked`) says which trials these are, and which
        batches were created for them.
        """
        replies = self.answer(conversations, sampling)
        for place, reply in enumerate(replies):
            keep(place, reply)
        return replies

    def prepare(self, messages: Sequence[Message], sampling: Sampling) -> Reply | None:
        """Learn what the model takes by asking a new store's first chat; None where none is asked.

        The reply is that chat's.
        """
        return None

    def recall(self, manifest: Mapping[str, Any], sampling: Sampling) -> None:
        """Take what was learnt from the manifest of a store that a run goes on with."""

    def find_batches(self, ledger: Any) -> None:
        """See which batches of a killed run still give replies, before anything is asked."""

    def identity(self) -> dict[str, str]:
        """All that can change a reply: engine, version, model, revision, chat template, dtype."""

    def spelling(self, sampling: Sampling) -> dict[str, list[list[int]]]:
        """The token ids of each choice behind each lead; none from an engine that tells no steps.

        A store's manifest keeps them: of its replies' ``steps`` they say which step is which.
        """
        return {}

    def close(self) -> None:
        """Give back what the engine holds; it may be asked again and then takes it anew."""


def free_sampling(parameters: Mapping[str, Any], model: str, **usual: float) -> Sampling:
    """The sampling of free text by a run's parameters, for one of its models.

    An answer may have ``MAX_TOKENS``; where the model reasons it may think for as many more as
    ``REASONING`` says, or `REASONING_ROOM`. ``usual`` holds what replaces the parameters of the
    same name. An empty ``TEMPERATURE`` is not sent, whatever the study's usual one is.
    """
    effort = parameters["REASONING"]
    room = 0
    if effort.isdigit():
        room = int(effort)
    elif effort != "none" and (effort or models.reasons(model)):
        room = ROOM_OF_EFFORT.get(effort, REASONING_ROOM)

    drawn = {"temperature": parameters["TEMPERATURE"], "top_p": parameters.get("TOP_P", 1.0)}
    drawn |= usual
    if parameters["TEMPERATURE"] == "":
        drawn["temperature"] = None
    return Sampling(
        **drawn,
        max_tokens=parameters["MAX_TOKENS"] + room,
        seed=parameters["SEED"],
        reasoning=effort,
    )


def find_model(name: str) -> str:
    """What a loader takes for a name: a folder, made where a package carries it, or the hub's."""
    if models.folder(name) is None and name in models.carried():
        from ingroup.inference.weights import make

        return str(make(name))
    known = models.find(name)
    return str(models.folder(name) or (known and known.hub_id) or name)


def make_engine(
    name: str, model: str, *, batch_size: int = 64, system: str = "keep", bos: str = "template",
    dtype: str = "auto", gpus: int = 1, engine_workers: int = 1, ray_address: str = "",
    base_url: str = "", in_flight: int = 0, timeout: int = 600, batch: bool = False,
    recordings: str = "", reasoning: str = "",
) -> Engine:  # fmt: skip
    """The engine that a notebook's parameter ``ENGINE`` names; see the class of that name.

    Its library is imported here and not before: who only reads a store waits for no torch.
    ``model`` is a folder of ``data/models``, another folder, a name on the hub, inspect_ai's name
    of a model, or the name of the one that gave the recorded answers. Several ``engine_workers``
    are a :class:`ingroup.inference.cluster.Cluster`, made here without a ``ray_address``.
    EngineError where it cannot start; ValueError for another name.
    """
    if engine_workers > 1 or ray_address:
        alike = {"batch_size": batch_size, "system": system, "bos": bos, "dtype": dtype}
        alike["reasoning"] = reasoning
        from ingroup.inference.cluster import Cluster  # which imports this module

        one = partial(make_engine, name, model, gpus=gpus, **alike)
        return Cluster(one, engine_workers, ray_address, gpus)
    if name == "transformers":
        from ingroup.inference.transformers_engine import TransformersEngine

        return TransformersEngine(find_model(model), batch_size, system, bos, dtype, reasoning)
    if name == "vllm":
        from ingroup.inference.vllm_engine import VLLMEngine

        return VLLMEngine(find_model(model), system, bos, gpus, dtype, reasoning)
    if models.FORMER.get(name, name) == "inspect":
        from ingroup.inference.inspect_engine import InspectEngine

        return InspectEngine(model, base_url, in_flight, timeout, batch).knock()
    if name == "replay":
        from ingroup.inference.replay_engine import ReplayEngine

        return ReplayEngine(models.recordings(recordings, model), model)
    raise ValueError(f"ENGINE {name!r} is unknown; expected {', '.join(models.ENGINES[:-1])}")
