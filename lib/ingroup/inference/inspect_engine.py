"""An engine for any provider or server, through inspect_ai, which knows each provider's arguments.

This module adds four rules to inspect_ai. Each reply is handed on at once, and a slow call is sent
once. Arguments that a model rejects are left out and named. A cause common to all calls ends the
run with one sentence. Keys go into no reply and no error.

inspect_ai takes seconds to import, so it is imported when an engine is made.
"""

import difflib
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

import httpx2  # the transport of OpenAI's client, which compatible servers are asked with
from anyio import create_task_group
from anyio.from_thread import start_blocking_portal

from ingroup import models
from ingroup.design import Message
from ingroup.inference.batches import CURRENT_TRIAL, Batcher, find_again
from ingroup.inference.engine import (
    BATCH_PRICE_SHARE,
    FAILED,
    FILTERED,
    LENGTH,
    NO_PROBABILITIES,
    SCORING_ADVICE,
    STOP,
    Engine,
    EngineError,
    Reply,
    Sampling,
    without_surrogates,
)
from ingroup.inference.ledger import Ledger, LedgerTrials
from ingroup.inference.prompts import fold_system
from ingroup.inference.reasoning import split_reply
from ingroup.inference.server_responses import (
    Unanswered,
    UnusableAnswer,
    causes_of,
    host_and_path,
    pause_seconds,
    read_body,
    short_line,
    should_retry,
    status_of,
    valid_count,
    without_keys,
)
from ingroup.inference.top_logprobs import Token, read_scores
from ingroup.parameters import address
from ingroup.tables import shown

LOOPBACK = ("127.0.0.1", "::1", "localhost")
# Statuses of a wrong key, an account without credit, or an unknown model: no prompt causes these.
STATUSES_OF_NO_PROMPT = {401, 402, 404}
# Statuses that are likely to be common to all calls. A filter may give 403 to one prompt alone.
COMMON_STATUSES = {401, 402, 403, 404, 429}
N_ALTERNATIVES = 20  # tokens reported at each position: today's servers report no more
CALLS_BEFORE_STOP = 16  # calls whose common cause stops the others
ATTEMPTS = 6  # calls that a server refused for now, or that broke off, are sent so often
LOCAL_IN_FLIGHT = 4  # calls at once to a server on this machine, with IN_FLIGHT=0
MOST_IN_FLIGHT = 100  # calls at once to another server, with IN_FLIGHT=0
# Providers whose batch APIs `ingroup.inference.batches` speaks.
BATCH_PROVIDERS = ("anthropic", "openai", "openai-api")
CLOUDS = ("azure", "bedrock", "vertex")  # services that have these providers' models, not their API
FINISH_REASONS = {
    "stop": STOP,
    "max_tokens": LENGTH,
    "model_length": LENGTH,
    "content_filter": FILTERED,
}
# Arguments that may be left out, and how a server's error names them. If an error names two, the
# first of them is left out: top_p changes less than the temperature.
ARGUMENT_PATTERNS = {
    "seed": r"\bseed\b",
    "top_p": r"\btop_?p\b",
    "temperature": r"\btemperature\b",
    "reasoning_tokens": r"\b(reasoning_tokens|budget_tokens|thinking)\b",
    "reasoning_effort": r"\breasoning(_effort|\.effort| effort)?\b",
    "max_completion_tokens": r"\bmax_completion_tokens\b",
    "max_tokens": r"\bmax_(output_)?tokens\b",
    "system": r"\bsystem\W* (role|message|prompt|instruction)|\brole\b.*\bsystem\b"
    r"|\bdeveloper instruction",
}
# The error of a prompt that is too long names max_tokens as well. It concerns this prompt alone.
TOO_LONG_PATTERN = r"context|too long|too large|exceed|at most|maximum (input|prompt)"
# Entries of a request that are no arguments: those of the chat, and those of the connection.
_CHAT_ENTRIES = {
    "messages",
    "input",
    "inputs",
    "contents",
    "model",
    "seed",
    "system",
    "system_instruction",
    "systemInstruction",
    "instructions",
}
_CONNECTION_ENTRIES = {
    "extra_headers",
    "http_headers",
    "headers",
    "tools",
    "tool_choice",
    "http_options",
    "timeout",
}


class Trouble(NamedTuple):
    """Cause of a failed call."""

    status: int  # of HTTP, 0 without one
    absent: bool  # whether nothing listens at the address
    reason: str
    parameter: str = ""  # the argument that the server names in a field of its own
    is_unanswered: bool = False  # whether the call's batch ended without an answer to it

    @property
    def kind(self) -> str:
        """Name the kind of the cause. Causes of one kind may be common to all calls.

        Returns
        -------
        str
            "absent", or the HTTP status if the server declined the call. "" for a cause that is
            never common to all calls.
        """
        if self.absent:
            return "absent"
        return str(self.status) if self.was_refused else ""

    @property
    def was_refused(self) -> bool:
        """Tell whether the server declined the call. A declined call is not billed.

        Returns
        -------
        bool
            True for the HTTP statuses 400 to 499.
        """
        return 400 <= self.status < 500


class Call(NamedTuple):
    """One call: its reply, the cause of its failure, and the request as it was sent."""

    reply: Reply
    trouble: Trouble | None
    request: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """Name the kind of the failure's cause, "" for a call that did not fail.

        Returns
        -------
        str
            The text of `Trouble.kind`, or "".
        """
        return self.trouble.kind if self.trouble else ""


@dataclass
class _Progress:
    """The replies to some conversations, as they come."""

    keep: Callable[[int, Reply], None]
    patience: int  # calls, after which a common cause stops the others
    replies: dict[int, Reply] = field(default_factory=dict)
    kinds: list[str] = field(default_factory=list)  # of the causes, in the order in which calls end
    stopped: str = ""  # the error of a common cause


class _Event:
    """Receiver of inspect_ai's record of a call, which has the request as it was sent."""

    def __init__(self) -> None:
        self.event: Any = None

    def on_pending(self, event: Any) -> None:
        self.event = event

    def on_complete(self, event: Any) -> None:
        self.event = event

    def request(self) -> Mapping[str, Any]:
        """Return the request that was sent, empty if none was sent."""
        call = getattr(self.event, "call", None)
        return call.request if call is not None else {}


def full_name(name: str, base_url: str = "") -> str:
    """Return inspect_ai's name of a model.

    A name without a provider is a model of the server at ``base_url``. Without that address it is
    the first id in the registry that has a provider, or else a model of OpenAI.

    Parameters
    ----------
    name : str
        A name as in ``MODELS``, without an engine.
    base_url : str
        The server's address, "" for the provider's own.

    Returns
    -------
    str
        The name, which begins with a provider.
    """
    if models.provider(name):
        return name
    if base_url:
        return f"openai-api/local/{name}"

    model = models.find(name)
    for model_id in model.ids if model else ():
        if models.provider(model_id):
            return model_id
    return f"openai/{name}"


class InspectEngine(Engine):
    """Chats sent to a provider or a server, a bounded number at a time.

    Keys stay in the environment, where inspect_ai reads them. Calls that a server refuses for now
    (408, 429, 5xx), and calls whose connection broke, are tried six times in all. The pause between
    them is the one that the server names, or 0.5 to 8 s.

    Parameters
    ----------
    model : str
        The name that inspect_ai uses (``openai-api/<service>/<model>`` for any OpenAI-compatible
        server), or a name without a provider, see :func:`full_name`.
    base_url : str
        The server's address, the provider's own unless given.
    in_flight : int
        Calls at once. 0 is adaptive (inspect_ai's: 20 at first, at most 100), and 4 on this
        machine, whose servers often have one slot.
    timeout : int
        Seconds. A call that takes longer may have been billed, so it is not sent again but fails,
        and the next run asks it.
    batch : bool
        Whether conversations for a store are sent through the provider's batch API. A killed run
        finds its batches again (:mod:`ingroup.inference.batches`).

    Raises
    ------
    EngineError
        The provider is unknown, its client is not installed, its key is missing, or it has no batch
        API that is spoken here.
    InputError
        ``base_url`` is not an address, or holds a secret.
    """

    asks_again = True
    keeps_each = True
    costs = True

    def __init__(
        self,
        model: str,
        base_url: str = "",
        in_flight: int = 0,
        timeout: int = 600,
        batch: bool = False,
    ) -> None:
        self._named = model
        self.model = full_name(model, base_url)
        self.base_url = base_url
        self.timeout = timeout
        self.batch = batch
        self.left_out: list[str] = []
        # Whether this engine, or the store that it goes on with, has had an answer.
        self.answered = False
        self._connections = uuid4().hex
        # The arguments that were sent, by the sampling: a run may ask scored and free answers.
        self._sent: dict[str, dict[str, Any]] = {}

        if base_url:
            address(base_url)
        provider, service = self.model.split("/")[:2]
        if batch and (provider not in BATCH_PROVIDERS or service in CLOUDS):
            raise EngineError(
                f"{self.model}: BATCH=true is for models of Anthropic and OpenAI, and of servers "
                "with OpenAI's Batch API (openai-api/<service>/<model>)"
            )

        self.address = self._open().api.base_url or ""
        on_this_machine = urlsplit(self.address).hostname in LOOPBACK
        self.in_flight = in_flight or (LOCAL_IN_FLIGHT if on_this_machine else 0)

        if self.model != model:
            print(f"{model} is asked as {self.model}: name it so in MODELS", file=sys.stderr)

    def _open(self, batch: bool = False) -> Any:
        """Open a model of inspect_ai, with connections of its own."""
        from inspect_ai._util.error import PrerequisiteError
        from inspect_ai.model import GenerateConfig, get_model

        _stay_out_of_the_notebook()
        options: dict[str, Any] = {"base_url": self.base_url} if self.base_url else {}
        key = self._server_key() if self.model.startswith("openai-api/") else ""
        if key:
            options["api_key"] = key
        # inspect_ai does not count the first try.
        config = GenerateConfig(max_retries=ATTEMPTS - 1, reasoning_summary="none")
        if batch:
            config.batch = True
            # What failed in a batch is asked by the next run.
            config.max_retries = 0
        else:
            config.attempt_timeout = self.timeout
            config.max_connections = getattr(self, "in_flight", 0) or None

        try:
            # A memoized model would share its client with other engines, one of which closes it.
            model: Any = get_model(self.model, config=config, memoize=False, **options)
        except PrerequisiteError as error:
            raise EngineError(self._opening_problem(str(error.message))) from None
        except (ValueError, ImportError) as error:
            reason = str(error).removeprefix("ERROR: ")
            raise EngineError(f"{self.model}: {short_line(reason)}") from None

        # inspect_ai would send slow calls again, which may be billed each time.
        model.should_retry = partial(should_retry, model.should_retry)
        model.api.retry_wait = lambda: pause_seconds
        # As long as the process lives, inspect_ai keeps under this key how many calls go at once.
        pool = f"{self._connections}-batch" if batch else self._connections
        model.api.connection_key = lambda: pool
        self._guard(model.api, batch)
        return model

    def _server_key(self) -> str:
        """Look up the key for an OpenAI-compatible server.

        Without a key, return "none" for a server on this machine and "" for any other server.
        """
        service = self.model.split("/")[1].upper().replace("-", "_")
        names = [f"{service}_API_KEY"]
        if service == "LOCAL":
            names.append("OPENAI_API_KEY")
        for name in names:
            key = os.environ.get(name, "").strip()
            if key:
                return key

        url = self.base_url or os.environ.get(f"{service}_BASE_URL", "")
        return "none" if urlsplit(url).hostname in LOOPBACK else ""

    def _opening_problem(self, message: str) -> str:
        """Write which key or package is missing, from inspect_ai's message."""
        without_markup = re.sub(r"\[/?[\w ]+\]", "", message)
        keys = re.findall(r"\b[A-Z_]+_API_KEY\b", without_markup)
        if not keys:
            reason = without_markup.removeprefix("ERROR: ")
            return f"{self.model}: {short_line(reason)}"

        provider, _, _ = self.model.partition("/")
        return (
            f"{self.model}: found no {' or '.join(keys)} in the environment, expected a key of "
            f"{provider}{self._hint()}"
        )

    def _hint(self) -> str:
        """Write a hint for a name with a misspelt provider, or of weights of the model hub."""
        first, _, rest = self._named.partition("/")
        near = difflib.get_close_matches(first, models.PROVIDERS, 1)
        if rest and near and near[0] != first:
            return f"; did you mean {near[0]}/{rest}?"
        if self.model.split("/")[0] in ("google", "openai"):
            return f" (for weights of the model hub: {self._named}@transformers)"
        return ""

    def _guard(self, api: Any, batch: bool) -> None:
        """Restrict the client of an API, if it is of OpenAI's or Anthropic's kind.

        The client follows no redirect, asks for no compressed body, and leaves retries to
        inspect_ai. It reads at most 32 MiB of a body, except from a batch.
        """
        client: Any = getattr(api, "client", None)
        transport: Any = getattr(client, "_client", None)
        if hasattr(client, "max_retries"):
            # The client would try again within each try of inspect_ai's.
            client.max_retries = 0
        if hasattr(transport, "event_hooks"):
            # A redirect could carry the key to another server.
            transport.follow_redirects = False
            transport.headers["Accept-Encoding"] = "identity"
            hooks = transport.event_hooks
            hook = partial(read_body, bounded=not batch)
            transport.event_hooks = hooks | {"response": [*hooks["response"], hook]}

    def ping(self) -> "InspectEngine":
        """Check that something listens at the engine's address, without reading the answer.

        Returns
        -------
        InspectEngine
            This engine.

        Raises
        ------
        EngineError
            Where nothing listens there.
        """
        if not self.address:
            # The client knows its provider's address; there is nothing to check.
            return self

        try:
            # The body is never read, as any address may send anything.
            with httpx2.stream("GET", self.address, timeout=10):
                pass
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise EngineError(
                f"no server is at {host_and_path(self.address)} ({error}): start it, or check "
                "BASE_URL"
            ) from error
        except httpx2.HTTPError:
            # A server that answers with an error, or breaks off, is running.
            pass
        return self

    def identity(self) -> dict[str, Any]:
        """Name the engine, its version, the model, the server's address and the arguments sent.

        The address has no scheme but has its port, since two servers on one machine may use one
        name for two models. After `prepare` or `recall`, ``left_out`` lists the arguments that the
        model rejects. ``sent_*`` are the arguments of the first call, as they stood in its request.

        Returns
        -------
        dict
            The names by entry of a store's manifest.
        """
        from importlib.metadata import version

        identity: dict[str, Any] = {
            "engine": "inspect",
            "engine_version": version("inspect-ai"),
            "model": self.model,
        }
        if self.address:
            identity["base_url"] = host_and_path(self.address)
        if self._sent:
            identity["left_out"] = sorted(self.left_out)
            for name, value in self.sent_arguments.items():
                identity[f"sent_{name}"] = value
        return identity

    @property
    def sent_arguments(self) -> dict[str, Any]:
        """Return the arguments of the latest design's calls, as they stand in a request.

        Returns
        -------
        dict
            The arguments by name, empty before the first call.
        """
        if not self._sent:
            return {}
        # `_keep_sent` puts the latest design's arguments last.
        latest = next(reversed(self._sent))
        return self._sent[latest]

    def recall(self, manifest: Mapping[str, Any], sampling: Sampling) -> None:
        """Take over the arguments that are sent from the manifest of a store that a run continues.

        So its calls are sent as the first calls were, and nothing is tried out again.

        Parameters
        ----------
        manifest : mapping
            The store's manifest.
        sampling : Sampling
            How replies are drawn. Other samplings may send other arguments.
        """
        # A store that is continued has answers, so this model can be asked.
        self.answered = True
        if "left_out" not in manifest:
            return

        self.left_out = list(manifest["left_out"])
        sent = {}
        for name, value in manifest.items():
            if name.startswith("sent_"):
                sent[name.removeprefix("sent_")] = value
        self._keep_sent(sampling, sent)

    def prepare(self, messages: Sequence[Message], sampling: Sampling) -> Reply | None:
        """Learn, by asking a design's first chat, which arguments the model takes.

        If the server's error (status 400, 404 or 422) names an argument, this and all later calls
        leave the argument out. Standard error says so. Later calls learn nothing, so that all are
        sent alike.

        Parameters
        ----------
        messages : sequence of Message
            The chat.
        sampling : Sampling
            How replies are drawn.

        Returns
        -------
        Reply or None
            The reply of this real call, or None where this sampling was tried before.

        Raises
        ------
        EngineError
            Nobody is there, the key is wrong, or the model cannot be scored.
        """
        key = _sampling_key(sampling)
        if key in self._sent:
            self._keep_sent(sampling, self._sent[key])
            return None

        with start_blocking_portal() as portal:
            call = portal.call(self._learn, messages, sampling)
        # A cause that may pass has taught nothing, and nothing is pinned by it.
        trouble = call.trouble
        if trouble and (trouble.absent or trouble.status == 401 or not trouble.kind):
            raise EngineError(self._no_answer_sentence(call.reply.error))
        if sampling.choices and call.reply.finish_reason == FAILED:
            found = f"{self.model} gave {NO_PROBABILITIES} ({call.reply.error})"
            raise EngineError(f"{found}: {SCORING_ADVICE}")

        self._keep_sent(sampling, _arguments_of(call.request))
        if call.request:
            self._warn(call.request, messages, sampling)
        self.answered = self.answered or call.reply.finish_reason != FAILED
        return call.reply

    def _warn(
        self, request: Mapping[str, Any], messages: Sequence[Message], sampling: Sampling
    ) -> None:
        """Print on standard error which arguments inspect_ai did not put into a request."""
        config = self._config(messages, sampling)
        for name in ("temperature", "top_p", "seed"):
            if getattr(config, name) is not None and not _has_argument(request, name):
                print(f"{self.model}: {name} is not sent, as it takes none", file=sys.stderr)

        if sampling.reasoning and not _sets_reasoning(request):
            effect = "the model reasons as it does by itself"
            if sampling.reasoning.isdecimal():
                effect = "it only makes room for so many tokens"
            print(
                f"{self.model}: REASONING={sampling.reasoning} is not sent, as this model has no "
                f"such argument: {effect}",
                file=sys.stderr,
            )

    def _keep_sent(self, sampling: Sampling, sent: dict[str, Any]) -> None:
        """Keep the arguments that are sent with a sampling, and make this sampling the latest."""
        key = _sampling_key(sampling)
        # The latest stands last, for `sent_arguments`.
        self._sent.pop(key, None)
        self._sent[key] = sent

    async def _learn(self, messages: Sequence[Message], sampling: Sampling) -> Call:
        """Ask one chat. If the error names an argument, leave it out and ask again."""
        substitutes = {
            "max_tokens": "; max_completion_tokens is sent instead",
            "system": "; the system turn is put before the user's",
        }
        model = self._open()
        try:
            while True:
                call = await self._ask(model, messages, sampling)
                rejected = self._rejected_argument(call.trouble, messages, sampling)
                if not rejected:
                    return call

                self.left_out.append(rejected)
                instead = substitutes.get(rejected, "")
                sentence = f"{self.model} rejects {rejected}, which is left out{instead}"
                print(shown(f"{sentence} ({call.reply.error})"), file=sys.stderr)
        finally:
            await model.api.aclose()

    def _rejected_argument(
        self, trouble: Trouble | None, messages: Sequence[Message], sampling: Sampling
    ) -> str:
        """Find the argument that the error of a call names, "" if it names none that was sent."""
        if trouble is None or trouble.status not in (400, 404, 422):
            return ""

        config = self._config(messages, sampling)
        # Only an argument that was sent can be left out; else the loop of `_learn` would not end.
        sent_names = [name for name in ARGUMENT_PATTERNS if getattr(config, name, None) is not None]
        sent_names += list(config.extra_body or {})
        has_system = any(message["role"] == "system" for message in messages)
        if has_system and "system" not in self.left_out:
            sent_names.append("system")

        if trouble.parameter in sent_names:
            return trouble.parameter
        if re.search(TOO_LONG_PATTERN, trouble.reason, re.IGNORECASE):
            return ""
        for name, pattern in ARGUMENT_PATTERNS.items():
            if name in sent_names and re.search(pattern, trouble.reason, re.IGNORECASE):
                return name
        return ""

    def _config(self, messages: Sequence[Message], sampling: Sampling) -> Any:
        """Make a call's arguments, as inspect_ai names them, without the rejected arguments."""
        from inspect_ai.model import GenerateConfig

        arguments: dict[str, Any] = {"max_tokens": sampling.max_tokens}
        if sampling.choices:
            # The server writes its most probable answer, and the alternatives have the
            # probabilities.
            arguments |= {"temperature": 0.0, "logprobs": True, "top_logprobs": N_ALTERNATIVES}
        elif sampling.temperature is not None:
            arguments["temperature"] = sampling.temperature
            if sampling.temperature > 0:
                arguments["top_p"] = sampling.top_p
                arguments["seed"] = sampling.trial_seed(messages)

        reasoning = sampling.reasoning
        if reasoning.isdecimal():
            arguments["reasoning_tokens"] = int(reasoning)
        elif reasoning:
            arguments["reasoning_effort"] = reasoning

        for name in self.left_out:
            arguments.pop(name, None)
        extra_body: dict[str, Any] = {}
        # OpenAI's reasoning models reject max_tokens and name its successor.
        if "max_tokens" in self.left_out and "max_completion_tokens" not in self.left_out:
            extra_body["max_completion_tokens"] = sampling.max_tokens
        if self.model.startswith("ollama/") and arguments.get("reasoning_effort") == "none":
            # inspect_ai hands only low, medium and high on to Ollama, which takes none as well.
            extra_body["reasoning"] = {"effort": "none"}
        if extra_body:
            arguments["extra_body"] = extra_body
        return GenerateConfig(**arguments)

    def answer_each(
        self,
        conversations: Sequence[Sequence[Message]],
        sampling: Sampling,
        keep: Callable[[int, Reply], None] = lambda index, reply: None,
        ledger_trials: LedgerTrials | None = None,
    ) -> list[Reply]:
        """Return one reply to each conversation. An interrupt cancels the calls.

        Parameters
        ----------
        conversations : sequence
            The chats, each a sequence of turns.
        sampling : Sampling
            How replies are drawn.
        keep : callable, optional
            Gets the index and the reply of each conversation, as it comes.
        ledger_trials : LedgerTrials, optional
            The trials of a store that the conversations are for. They go in batches if this engine
            is to send batches, or come from batches that an earlier run sent.

        Returns
        -------
        list of Reply
            In the order of the conversations. A failure is a reply that says why, also a failure in
            a batch of an earlier run.

        Raises
        ------
        EngineError
            The first 16 calls to end (or all, where there are fewer) failed alike for a cause that
            is not theirs. Such causes are that nobody is there, a wrong key, no such model and no
            credit (401 to 404). As long as nothing was answered, so is any status of 4xx.
        """
        # Failures in an earlier run's batches stop no run: their causes may be gone by now.
        were_sent_before = ledger_trials is not None and ledger_trials.are_in_batches
        # The calls run in a loop of their own, in a thread, as a notebook has a loop already.
        with start_blocking_portal() as portal:
            replies, stopped = portal.call(
                self._answer_all, conversations, sampling, keep, ledger_trials
            )
        if stopped and not were_sent_before:
            # Answers are in the journal; calls that failed are to be sent anew.
            if ledger_trials is not None:
                ledger_trials.ledger.drop(ledger_trials.trials)
            raise EngineError(self._no_answer_sentence(stopped))
        return replies

    def answer(self, conversations: Sequence[Sequence[Message]], sampling: Sampling) -> list[Reply]:
        """Return one reply to each conversation, in order.

        Parameters
        ----------
        conversations : sequence
            A few chats, each a sequence of turns.
        sampling : Sampling
            How replies are drawn.

        Returns
        -------
        list of Reply
            One reply per conversation.

        Raises
        ------
        EngineError
            As :meth:`answer_each`.
        """
        return self.answer_each(conversations, sampling)

    def find_batches(self, ledger: Ledger) -> None:
        """Check which batches of a killed run still give replies.

        Parameters
        ----------
        ledger : Ledger
            The batches of the store. It forgets batches that give no replies.

        Raises
        ------
        EngineError
            As :func:`ingroup.inference.batches.find_again`.
        """
        if ledger.submissions:
            with start_blocking_portal() as portal:
                portal.call(self._find_batches, ledger)

    async def _find_batches(self, ledger: Ledger) -> None:
        model = self._open(batch=True)
        try:
            await find_again(model.api, ledger)
        finally:
            await model.api.aclose()

    def _no_answer_sentence(self, reason: str) -> str:
        """Write that a model does not answer, and what to check."""
        where = f" at {host_and_path(self.address)}" if self.address else ""
        return (
            f"the model {self.model!r}{where} does not answer ({reason}): check the provider's "
            "key, the model's name, the base URL and the parameters"
        )

    async def _answer_all(
        self,
        conversations: Sequence[Sequence[Message]],
        sampling: Sampling,
        keep: Callable[[int, Reply], None],
        ledger_trials: LedgerTrials | None,
    ) -> tuple[list[Reply], str]:
        """Return the replies in order, and the error that stopped all calls ("" if none did)."""
        progress = _Progress(keep, min(CALLS_BEFORE_STOP, len(conversations)))
        in_batch = ledger_trials is not None and (self.batch or ledger_trials.are_in_batches)
        model = self._open(in_batch)
        try:
            async with create_task_group() as group:
                if ledger_trials is not None and in_batch:
                    batcher = Batcher(model.api, ledger_trials, sampling.max_tokens)
                    group.start_soon(batcher.run)
                    ask = partial(self._ask_in_batch, model, sampling, progress, batcher)
                    for index, messages in enumerate(conversations):
                        group.start_soon(ask, index, ledger_trials.trials[index], messages)
                else:
                    ask = partial(self._ask_in_turn, model, sampling, progress)
                    # All tasks take their next conversation from this iterator, so each is asked
                    # once.
                    unasked = iter(enumerate(conversations))
                    # With adaptive connections inspect_ai itself decides how many of these tasks
                    # wait.
                    for _ in islice(conversations, self.in_flight or MOST_IN_FLIGHT):
                        group.start_soon(ask, unasked)
        except ExceptionGroup as failures:  # a full disk, say: its own sentence
            failure: Exception = failures
            while isinstance(failure, ExceptionGroup):
                failure = failure.exceptions[0]
            raise failure from None
        finally:
            await model.api.aclose()

        # Conversations that a common cause kept from being asked fail with its error.
        not_asked = Reply(None, FAILED, error=progress.stopped)
        replies = [progress.replies.get(index, not_asked) for index in range(len(conversations))]
        return replies, progress.stopped

    async def _ask_in_turn(
        self,
        model: Any,
        sampling: Sampling,
        progress: _Progress,
        unasked: Iterator[tuple[int, Sequence[Message]]],
    ) -> None:
        """Ask one conversation after another, until none is left or a common cause stops all."""
        for index, messages in unasked:
            if progress.stopped:
                return
            call = await self._ask(model, messages, sampling)
            self._take_reply(progress, index, call.reply, call.kind)

    async def _ask_in_batch(
        self,
        model: Any,
        sampling: Sampling,
        progress: _Progress,
        batcher: Batcher,
        index: int,
        trial: int,
        messages: Sequence[Message],
    ) -> None:
        """Ask one conversation, as a part of a batch."""
        # Each task has a context of its own, so this names the trial of its call alone.
        CURRENT_TRIAL.set(trial)
        call = await self._ask(model, messages, sampling)
        # A call that failed before it was sent must not keep the batch waiting.
        batcher.leave(trial)

        # A provider bills no request of a batch that ended in an error.
        has_failed = call.trouble is not None and call.trouble.status > 0
        share = 0.0 if has_failed else call.reply.price_share * BATCH_PRICE_SHARE
        reply = call.reply._replace(price_share=share)
        limit = batcher.limit(trial)
        # The batch of an earlier run had a lower limit; as a failure the prompt is asked again.
        if reply.finish_reason == LENGTH and limit < sampling.max_tokens:
            reply = Reply(
                None,
                FAILED,
                reply.prompt_tokens,
                reply.cached_tokens,
                reply.output_tokens,
                error=f"it was cut at {limit} tokens, in a batch of an earlier run",
                price_share=share,
            )
        self._take_reply(progress, index, reply, call.kind)

    def _take_reply(self, progress: _Progress, index: int, reply: Reply, kind: str) -> None:
        """Keep a reply. Stop the other calls if the first calls failed for a common cause."""
        progress.replies[index] = reply
        progress.keep(index, reply)
        progress.kinds.append(kind)
        self.answered = self.answered or reply.finish_reason != FAILED
        # Only the first calls to end decide.
        if len(progress.kinds) == progress.patience and self._have_common_cause(progress.kinds):
            progress.stopped = reply.error

    def _have_common_cause(self, kinds: Sequence[str]) -> bool:
        """Tell whether the first calls failed alike, for a cause that is not their prompts'."""
        kind = kinds[0]
        if not kind or len(set(kinds)) > 1:
            return False
        # Nothing listens, or the key, the credit or the model's name is wrong: no call mends that.
        if kind == "absent" or int(kind) in STATUSES_OF_NO_PROMPT:
            return True

        is_common = int(kind) in COMMON_STATUSES
        are_many = len(kinds) == CALLS_BEFORE_STOP
        # Before any answer, either condition stops the run. After an answer, both have to hold.
        if self.answered:
            return is_common and are_many
        return is_common or are_many

    async def _ask(self, model: Any, messages: Sequence[Message], sampling: Sampling) -> Call:
        """Make one call, and repeat it if that may help. Only a cancellation is raised."""
        from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser
        from inspect_ai.model._model import use_model_event_sink

        message_of = {
            "system": ChatMessageSystem,
            "user": ChatMessageUser,
            "assistant": ChatMessageAssistant,
        }
        chat = []
        for turn in fold_system(messages) if "system" in self.left_out else messages:
            message = message_of[turn["role"]]
            chat.append(message(content=turn["content"]))

        config = self._config(messages, sampling)
        event = _Event()
        trouble = None
        try:
            with use_model_event_sink(event):
                output = await model.generate(chat, config=config, cache=False)
            reply = self._read(output, sampling)
        except Exception as error:
            # Whatever a server makes a client raise must not cost the other answers of this shard.
            trouble = self._trouble(error)
            # A timeout or a server's own failure may have been billed.
            is_free = trouble.was_refused or trouble.is_unanswered
            share = 0.0 if is_free else 1.0
            reply = Reply(None, FAILED, error=trouble.reason, price_share=share)
            # Azure refuses a filtered prompt with status 400, which says something about the
            # prompt.
            if trouble.status == 400 and "content_filter" in trouble.reason:
                reply = Reply("", FILTERED, error=trouble.reason, price_share=share)
                trouble = None
        return Call(without_keys(reply), trouble, event.request())

    def _read(self, output: Any, sampling: Sampling) -> Reply:
        """Read the reply in an output of inspect_ai. It has scores if the sampling has choices."""
        reply = _reply_of(output)
        # Without a mark, the text of a model that reasons and was cut is its reasoning. It may
        # reason although it was told not to, unless its server counts no such tokens.
        reasoning_tokens = output.usage.reasoning_tokens if output.usage else None
        is_silent = sampling.reasoning == "none" and reasoning_tokens == 0
        may_reason = models.is_reasoning_model(self.model) and not is_silent
        if may_reason and reply.finish_reason == LENGTH and not reply.reasoning:
            reply = split_reply(reply, opened=True)
        return _with_scores(reply, output, sampling) if sampling.choices else reply

    def _trouble(self, error: BaseException) -> Trouble:
        """Find out why a call failed, by its exception and the causes of the exception."""
        all_causes = list(causes_of(error))
        # inspect_ai's own error repeats the whole request; the provider's error is its cause.
        causes = [cause for cause in all_causes if type(cause).__name__ != "ModelGenerateError"]
        causes = causes or all_causes
        names = [type(cause).__name__ for cause in causes]

        for name, cause in zip(names, causes, strict=True):
            if isinstance(cause, UnusableAnswer):
                is_unanswered = isinstance(cause, Unanswered)
                return Trouble(
                    status=0, absent=False, reason=str(cause), is_unanswered=is_unanswered
                )
            # inspect_ai itself says that a model takes no number of tokens: nothing was sent.
            if name == "PrerequisiteError" and "'reasoning_tokens'" in str(cause):
                reason = short_line(str(cause))
                return Trouble(400, absent=False, reason=reason, parameter="reasoning_tokens")

        if any(name.endswith("TimeoutError") or name == "ReadTimeout" for name in names):
            reason = f"no answer within {self.timeout} s"
            return Trouble(status=0, absent=False, reason=reason)
        for cause in causes:
            status = status_of(cause)
            if status:
                return _http_trouble(cause, status)

        is_absent = any(name in ("ConnectError", "ConnectionRefusedError") for name in names)
        reason = f"{names[-1]}: {causes[-1]}"
        return Trouble(status=0, absent=is_absent, reason=reason)

    def close(self) -> None:
        """Do nothing: nothing stays open between calls."""


def _stay_out_of_the_notebook() -> None:
    """Keep inspect_ai from treating a notebook's kernel as its own.

    Otherwise it would demand ipywidgets and patch the event loop. Here it displays nothing, and its
    calls run in a loop of their own.
    """
    from inspect_ai._util import platform

    platform.running_in_notebook = lambda: False


def _http_trouble(error: BaseException, status: int) -> Trouble:
    """Read from the client's exception why the server declined a call."""
    message = getattr(error, "message", None)
    if not isinstance(message, str) or not message:
        message = str(error)
    # OpenAI's client writes the status before the message, which `reason` has already.
    message = re.sub(r"^Error code: \d+ *-? *", "", message)
    reason = f"HTTP {status} - {message}" if message else f"HTTP {status}"

    body = getattr(error, "body", None)
    if not isinstance(body, dict):
        return Trouble(status, absent=False, reason=reason)
    code = body.get("code")
    if code and str(code) not in reason:
        reason += f" ({code})"
    parameter = body.get("param")
    if not isinstance(parameter, str):
        parameter = ""
    return Trouble(status, absent=False, reason=reason, parameter=parameter)


def _sampling_key(sampling: Sampling) -> str:
    """Make a key for the arguments that are sent with a sampling."""
    return json.dumps(sampling.identity(), sort_keys=True)


def _arguments_of(request: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Map the names of a request's arguments to their values. A nested argument is "outer.inner".

    The chat, the model's name and the connection are left out. So is the seed, as every prompt has
    its own.
    """
    arguments: dict[str, Any] = {}
    for name, value in request.items():
        if name in _CHAT_ENTRIES or name in _CONNECTION_ENTRIES:
            continue
        if isinstance(value, Mapping):
            arguments |= _arguments_of(value, f"{before}{name}.")
        elif isinstance(value, bool | int | float | str):
            arguments[f"{before}{name}"] = value
    return arguments


def _has_argument(request: Mapping[str, Any], argument: str) -> bool:
    """Tell whether a request has an argument, in snake or in camel case, at any depth."""
    without_underscores = argument.replace("_", "")
    for name, value in request.items():
        is_same_name = name.lower().replace("_", "") == without_underscores
        if is_same_name and value is not None:
            return True
        if isinstance(value, Mapping) and _has_argument(value, argument):
            return True
    return False


def _sets_reasoning(request: Mapping[str, Any]) -> bool:
    """Tell whether a request sets the amount of reasoning, under any provider's name for it."""
    pattern = re.compile("effort|think|budget|reasoning", re.IGNORECASE)
    # How reasoning is summed up does not say how much of it there is to be.
    names = [name for name in _arguments_of(request) if not name.endswith("summary")]
    return any(map(pattern.search, names))


def _with_scores(reply: Reply, output: Any, sampling: Sampling) -> Reply:
    """Add the probabilities of the admissible answers to a reply, as far as the server tells them.

    If the reply lacks an admissible answer after any answer prefix, its text stays as the model
    wrote it and no probabilities are added. A reply without log-probabilities becomes a failed
    call.
    """
    if reply.finish_reason in (FAILED, FILTERED):
        return reply
    # A reply without text, as one that ended inside its reasoning, holds no admissible answer.
    if not (reply.text or "").strip():
        return reply._replace(mass=(0.0,) * len(sampling.leads))
    logprobs = output.choices[0].logprobs
    if logprobs is None or not logprobs.content:
        return reply._replace(text=None, finish_reason=FAILED, error="no top_logprobs came")

    tokens = []
    for token in logprobs.content:
        # A server may leave the token that it wrote out of its alternatives.
        alternatives = {token.token: math.exp(token.logprob)}
        for top in token.top_logprobs or ():
            alternatives[top.token] = math.exp(top.logprob)
        tokens.append(Token(token.token, alternatives))
    scores = read_scores(_answer_tokens(tokens, reply), sampling.choices, sampling.leads)
    masses = tuple(scored.option_mass for scored in scores)
    # Behind some prefix no choice was seen, so the text stays as the model wrote it.
    if not all(masses):
        return reply._replace(mass=masses)

    text = ""
    probabilities: list[float] = []
    for lead, scored in zip(sampling.leads, scores, strict=True):
        most_probable = int(scored.probabilities.argmax())
        text += lead + sampling.choices[most_probable]
        probabilities += scored.probabilities.tolist()
    return reply._replace(text=text, probabilities=tuple(probabilities), mass=masses)


def _answer_tokens(tokens: Sequence[Token], reply: Reply) -> Sequence[Token]:
    """Return the tokens of the answer, without the tokens of the reasoning.

    The result is empty if the reasoning and the answer cannot be told apart, or share a token.
    """
    if not reply.reasoning:
        return tokens
    if reply.text is None:
        return []
    whole = "".join(token.text for token in tokens)
    # The answer stands last, and the reasoning may quote it.
    answer_begins = whole.rfind(reply.text)
    if answer_begins < 0:
        return []

    token_begins = 0
    for number, token in enumerate(tokens):
        token_ends = token_begins + len(token.text)
        if token_ends > answer_begins:
            # White space before an answer is often a part of its first token.
            before_answer = whole[token_begins:answer_begins]
            return [] if before_answer.strip() else tokens[number:]
        token_begins = token_ends
    return []


def _reply_of(output: Any) -> Reply:
    """Convert an output of inspect_ai to a reply, with the reasoning apart from the text."""
    if output.empty:
        return Reply(None, FAILED, error="the answer holds no text", model=output.model)

    finish = FINISH_REASONS.get(output.stop_reason, STOP)
    # inspect_ai makes an answer of some errors, whose text is the server's.
    if output.usage is None and output.response_id is None and finish in (FILTERED, LENGTH):
        if finish == FILTERED:
            return Reply("", FILTERED, error=output.completion)
        return Reply(None, FAILED, error=output.completion)

    reply = Reply(
        without_surrogates(output.completion),
        finish,
        model=without_surrogates(output.model),
        reasoning=_reasoning_of(output.message.content),
    )
    usage = output.usage
    if usage is not None:
        cached = usage.input_tokens_cache_read or 0
        # inspect_ai counts cached tokens apart from the other tokens of the prompt.
        prompt = usage.input_tokens + cached + (usage.input_tokens_cache_write or 0)
        # Some servers count reasoning in the total alone, and not in the output.
        output_tokens = max(usage.output_tokens, usage.total_tokens - prompt)
        reply = reply._replace(
            prompt_tokens=valid_count(prompt),
            cached_tokens=valid_count(cached),
            output_tokens=valid_count(output_tokens),
            reasoning_tokens=valid_count(usage.reasoning_tokens or 0),
        )
    return split_reply(reply)


def _reasoning_of(content: Any) -> str:
    """Join the reasoning in the content of a message. A hidden reasoning gives its summary."""
    if not isinstance(content, list):
        return ""

    thoughts = []
    for part in content:
        if part.type == "reasoning":
            visible = "" if part.redacted else part.reasoning
            thought = visible or part.summary or ""
            if thought:
                thoughts.append(without_surrogates(thought))
    return "\n".join(thoughts)
