"""The interface of engines, and the choice of an engine. Engines never parse or judge a reply."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

from ingroup import models
from ingroup.design import Message

# How a reply ended: parsing reads these words, so they are defined there.
from ingroup.parsing import FAILED as FAILED
from ingroup.parsing import FILTERED as FILTERED
from ingroup.parsing import LENGTH as LENGTH
from ingroup.parsing import STOP as STOP
from ingroup.tables import Sentence

SystemRole = Literal["keep", "fold", "plain"]  # how a system turn is rendered
Bos = Literal["template", "released"]  # how often a BOS token is added

# Tokens that a reply may use for reasoning, in addition to the tokens of its answer. Some providers
# give each effort a budget, and the budget has to fit into them.
REASONING_ROOM = 8_192
ROOM_OF_EFFORT = {"medium": 12_288, "high": 18_432}
# Parts of the error of an engine that cannot score answers.
NO_PROBABILITIES = "no probabilities for all admissible answers"
SCORING_ADVICE = "use READING=free, or ENGINE=transformers or vllm"
BATCH_PRICE_SHARE = 0.5  # share of the price that providers bill for calls in batches


class EngineError(Sentence, RuntimeError):
    """An engine cannot start or cannot take these prompts. The message says why."""


@dataclass(frozen=True)
class Sampling:
    """Settings by which replies are drawn.

    Nothing is drawn if there are choices. A reply then has the probability of each choice
    (`ingroup.inference.choices`).

    Attributes
    ----------
    temperature : float or None
        0 is greedy decoding (appendix B of Hou et al.), where ``top_p`` and ``seed`` have no
        effect. Above 0 every prompt has a seed of its own, made from ``seed``. With None, a server
        is sent no temperature, no ``top_p`` and no ``seed``.
    top_p : float
        Above 0 and at most 1.
    max_tokens : int
        The most tokens of a reply, its reasoning included (128 in the released code of Hou et al.).
    seed : int
        The seed of all draws.
    choices : tuple of str
        The admissible answers.
    leads : tuple of str
        Answer prefixes. A reply may consist of several answers, each after a prefix, given the
        prefixes and greedy answers before it.
    reasoning : str
        How much the model is to think: "" (its own default), an effort ("none" to "high"), or a
        number of tokens.

    Raises
    ------
    ValueError
        A number is out of range.
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
        """Return all settings that can change a reply.

        Returns
        -------
        dict
            The settings by name, with ``top_p`` and ``seed`` only if anything is drawn.
        """
        identity: dict[str, Any] = {}
        if self.choices:
            identity["choices"] = list(self.choices)
            identity["leads"] = list(self.leads)
        else:
            # Scored answers are not drawn, and those that a limit cuts are asked again.
            identity["temperature"] = self.temperature
            identity["max_tokens"] = self.max_tokens

        if self.reasoning:
            identity["reasoning"] = self.reasoning
        # At temperature 0 these two change nothing, and a store is not to be refused for them.
        if self.draws and not self.choices:
            identity["top_p"] = self.top_p
            identity["seed"] = self.seed
        return identity

    @property
    def draws(self) -> bool:
        """Tell whether replies are drawn with a temperature and a seed that are known.

        Returns
        -------
        bool
            False at temperature 0, and where no temperature is sent.
        """
        return bool(self.temperature)

    def trial_seed(self, prompt: Sequence) -> int:
        """Make a seed for one prompt, from the prompt and ``seed``.

        So a draw does not depend on the batch, the shard or the order of asking. The same prompt
        twice under one seed is drawn alike. (vLLM's CPU build has one stream for all.)

        Parameters
        ----------
        prompt : sequence
            A chat, or token ids.

        Returns
        -------
        int
            A number from 0 to 2^31 - 1.
        """
        # Python's own `hash` would give other seeds in each process.
        content = json.dumps([self.seed, prompt]).encode()
        digest = hashlib.blake2b(content, digest_size=4).digest()
        # Some servers take a seed as a signed number of 32 bits, so it has 31.
        return int.from_bytes(digest) >> 1


class Reply(NamedTuple):
    """One raw reply.

    Attributes
    ----------
    text : str or None
        The answer without special tokens, None where the call failed. The text of a scored reply
        has, after each answer prefix, the answer that greedy decoding would write if it were held
        to admissible answers.
    finish_reason : {"stop", "length", "filtered", "failed"}
        In this order: the model ended, the reply was cut at max_tokens, a content filter declined,
        or there is no reply.
    prompt_tokens : int
        Tokens of the prompt.
    cached_tokens : int
        Tokens of the prompt that did not have to be computed again.
    output_tokens : int
        Tokens of the reply, its reasoning included.
    error : str
        Why a call failed, or was filtered.
    model : str
        The model that answered, as a server names it.
    probabilities : sequence of float
        The probabilities of a scored reply's choices: those after the first answer prefix, then
        those after the second, and so on.
    mass : sequence of float
        The option mass after each answer prefix: the probability that the model, unconstrained,
        gives to the first tokens of admissible answers.
    reasoning : str
        The model's thoughts before its answer, "" without any. It is never parsed.
    reasoning_tokens : int
        How many of ``output_tokens`` are reasoning.
    price_share : float
        The share of its price that a server bills for the call: `BATCH_PRICE_SHARE` in a batch, 0
        if the server declined the call.
    steps : sequence of float
        Log-probabilities at each place of the tree of answers
        (:class:`ingroup.inference.choices.Tree`), prefix by prefix, if the engine returns them.
        With ``engine.spelling`` they give the probabilities under another rule for an answer's end.
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


def without_surrogates(text: str) -> str:
    """Put "?" for half a surrogate pair, which JSON can spell and a shard cannot hold.

    Parameters
    ----------
    text : str
        A reply of a server.

    Returns
    -------
    str
        A text that UTF-8 can hold.
    """
    return text.encode(errors="replace").decode()


class Engine:
    """Base class of all engines. An engine answers chats.

    An engine that loads a model takes token ids as well (`ingroup.inference.weights.LocalEngine`).
    So prompts are made while it computes others. An engine of recordings has ``match``, which gets
    the trials' numbers (`ingroup.inference.replay_engine.ReplayEngine`). Methods and attributes
    that only an engine of a server needs have a default here.

    Attributes
    ----------
    asks_again : bool
        Whether a call that failed may succeed in a later run. This is so for a server, but not for
        recordings or a prompt that is too long.
    keeps_each : bool
        Whether it is asked by :meth:`answer_each`, so that each reply is kept at once. This is for
        replies that take long or cost money
        (:class:`ingroup.inference.inspect_engine.InspectEngine`).
    group_size : int
        How many replies come at once.
    costs : bool
        Whether its replies cost money.
    batch : bool
        Whether it sends batches.
    """

    asks_again: bool
    keeps_each: bool = False
    group_size: int = 1
    costs: bool = False
    batch: bool = False

    def answer(self, conversations: Sequence[Sequence[Message]], sampling: Sampling) -> list[Reply]:
        """Return one reply to each conversation, in order.

        Parameters
        ----------
        conversations : sequence
            The chats, each a sequence of turns.
        sampling : Sampling
            How replies are drawn.

        Returns
        -------
        list of Reply
            One reply per conversation. A call that failed has one, too.

        Raises
        ------
        EngineError
            The engine cannot take these prompts.
        """
        raise NotImplementedError

    def answer_each(
        self,
        conversations: Sequence[Sequence[Message]],
        sampling: Sampling,
        keep: Callable[[int, Reply], None],
        ledger_trials: Any = None,
    ) -> list[Reply]:
        """Return one reply to each conversation, in order, and keep each reply as it comes.

        Parameters
        ----------
        conversations : sequence
            The chats, each a sequence of turns.
        sampling : Sampling
            How replies are drawn.
        keep : callable
            Gets the index and the reply of each conversation, as it comes.
        ledger_trials : ingroup.inference.ledger.LedgerTrials, optional
            Which trials these are, and which batches were created for them.

        Returns
        -------
        list of Reply
            One reply per conversation.

        Raises
        ------
        EngineError
            As :meth:`answer`.
        """
        replies = self.answer(conversations, sampling)
        for index, reply in enumerate(replies):
            keep(index, reply)
        return replies

    def prepare(self, messages: Sequence[Message], sampling: Sampling) -> Reply | None:
        """Learn which arguments the model takes, by asking a new store's first chat.

        Parameters
        ----------
        messages : sequence of Message
            The first chat.
        sampling : Sampling
            How replies are drawn.

        Returns
        -------
        Reply or None
            The reply to that chat, None where nothing is asked.
        """
        return None

    def recall(self, manifest: Mapping[str, Any], sampling: Sampling) -> None:
        """Take over the arguments that an earlier run learnt.

        Parameters
        ----------
        manifest : mapping
            The manifest of a store that a run continues.
        sampling : Sampling
            How replies are drawn.
        """

    def find_batches(self, ledger: Any) -> None:
        """Check which batches of a killed run still give replies, before anything is asked.

        Parameters
        ----------
        ledger : Ledger
            The batches of the store. It forgets batches that give no replies.
        """

    def identity(self) -> dict[str, str]:
        """Name all that can change a reply: engine, version, model, revision, template, dtype."""
        raise NotImplementedError

    def spelling(self, sampling: Sampling) -> dict[str, list[list[int]]]:
        """Return the token ids of each choice after each answer prefix.

        Parameters
        ----------
        sampling : Sampling
            The sampling with the choices and the answer prefixes.

        Returns
        -------
        dict
            By answer prefix, the token ids of each choice in the order of the choices. Empty if the
            engine returns no log-probabilities (`Reply.steps`).
        """
        return {}

    def close(self) -> None:
        """Free the engine's memory and connections. It takes new ones if it is asked again."""


def free_sampling(parameters: Mapping[str, Any], model: str, **usual: float) -> Sampling:
    """Make the sampling of free text by a run's parameters, for one of its models.

    An answer may have ``MAX_TOKENS`` tokens. A model that reasons may use more tokens for its
    reasoning: the number in ``REASONING``, or else `ROOM_OF_EFFORT` or `REASONING_ROOM`.

    Parameters
    ----------
    parameters : mapping
        The run's parameters.
    model : str
        The model's name in ``MODELS``.
    **usual : float
        A study's temperature or top_p, which replace the parameters of the same name. An empty
        ``TEMPERATURE`` is not sent, even so.

    Returns
    -------
    Sampling
        A sampling without choices.
    """
    effort = parameters["REASONING"]
    room = 0
    # REASONING may be a number of tokens, which is then the room itself.
    if effort.isdigit():
        room = int(effort)
    # A model that reasons by itself needs the room even where no effort is set.
    elif effort != "none" and (effort or models.is_reasoning_model(model)):
        room = ROOM_OF_EFFORT.get(effort, REASONING_ROOM)

    # The study of Hou et al., greedy by itself, has no parameter TOP_P.
    settings = {"temperature": parameters["TEMPERATURE"], "top_p": parameters.get("TOP_P", 1.0)}
    settings |= usual
    # Some models reject any temperature; an empty one is not sent.
    if parameters["TEMPERATURE"] == "":
        settings["temperature"] = None
    return Sampling(
        **settings,
        max_tokens=parameters["MAX_TOKENS"] + room,
        seed=parameters["SEED"],
        reasoning=effort,
    )


def find_model(name: str) -> str:
    """Return the folder or the hub's name by which a model is loaded.

    If the model comes in packages of a registry, this makes its folder.

    Parameters
    ----------
    name : str
        A name as in ``MODELS``, without an engine.

    Returns
    -------
    str
        The path of a folder, or a name on the hub.

    Raises
    ------
    EngineError
        Where the folder cannot be made.
    """
    folder = models.folder(name)
    if folder is None and name in models.packaged_models():
        # This imports torch, which only a model that is not yet made needs.
        from ingroup.inference.weights import make_packaged

        folder = make_packaged(name)
    if folder:
        return str(folder)

    # What the registry does not know is a name on the hub already.
    model = models.find(name)
    return model.hub_id if model and model.hub_id else name


def make_engine(
    name: str,
    model: str,
    *,
    batch_size: int = 64,
    system: SystemRole = "keep",
    bos: Bos = "template",
    dtype: str = "auto",
    gpus: int = 1,
    engine_workers: int = 1,
    ray_address: str = "",
    base_url: str = "",
    in_flight: int = 0,
    timeout: int = 600,
    batch: bool = False,
    recordings: str = "",
    reasoning: str = "",
) -> Engine:
    """Make the engine that a notebook's parameter ``ENGINE`` names.

    Its library is imported here, so reading a store does not import torch.

    Parameters
    ----------
    name : str
        An engine of `ingroup.models.ENGINES` except "stored".
    model : str
        A folder of ``data/models``, another folder, a name on the hub, inspect_ai's name of a
        model, or the name of the model that gave the recorded answers.
    batch_size : int
        How many prompts transformers computes at once.
    system : {"keep", "fold", "plain"}
        How a system turn is rendered, see :class:`ingroup.inference.prompts.Prompter`.
    bos : {"template", "released"}
        How often a BOS token is added, see the same class.
    dtype : str
        The type of the weights in memory. "auto" leaves the choice to the engine.
    gpus : int
        How many GPUs share one model, with vLLM. On a cluster, how many GPUs each worker has.
    engine_workers : int
        The number of workers. Several workers make a :class:`ingroup.inference.cluster.Cluster`.
    ray_address : str
        The address of the cluster. Without an address a cluster is made on this machine.
    base_url : str
        The server's address, see :class:`ingroup.inference.inspect_engine.InspectEngine`.
    in_flight : int
        How many calls a server gets at once, see the same class.
    timeout : int
        Seconds that a call to a server may take.
    batch : bool
        Whether a provider's batch API is used.
    recordings : str
        Where recorded answers are, see :class:`ingroup.inference.replay_engine.ReplayEngine`.
    reasoning : str
        How much a local model is to think, as `Sampling.reasoning`.

    Returns
    -------
    Engine
        The engine. One that loads a model loads it when it is first asked.

    Raises
    ------
    EngineError
        The engine cannot start.
    ValueError
        There is no engine of that name.
    """
    if engine_workers > 1 or ray_address:
        # The cluster's module imports this one, so this one cannot import it at the top.
        from ingroup.inference.cluster import Cluster

        # Each worker calls this in its own process, so it has to be picklable and hold no engine.
        factory = partial(
            make_engine,
            name,
            model,
            gpus=gpus,
            batch_size=batch_size,
            system=system,
            bos=bos,
            dtype=dtype,
            reasoning=reasoning,
        )
        return Cluster(factory, engine_workers, ray_address, gpus)
    if name == "transformers":
        from ingroup.inference.transformers_engine import TransformersEngine

        return TransformersEngine(find_model(model), batch_size, system, bos, dtype, reasoning)
    if name == "vllm":
        from ingroup.inference.vllm_engine import VLLMEngine

        return VLLMEngine(find_model(model), system, bos, gpus, dtype, reasoning)
    if models.FORMER_ENGINES.get(name, name) == "inspect":
        from ingroup.inference.inspect_engine import InspectEngine

        # A wrong address is reported here, before the first of thousands of calls.
        return InspectEngine(model, base_url, in_flight, timeout, batch).ping()
    if name == "replay":
        from ingroup.inference.replay_engine import ReplayEngine

        return ReplayEngine(models.recorded_place(recordings, model), model)
    raise ValueError(f"ENGINE {name!r} is unknown; expected {', '.join(models.ENGINES[:-1])}")
