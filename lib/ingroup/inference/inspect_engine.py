"""Any provider or server, through inspect_ai, which knows the arguments of each.

What stays here: each reply is handed on at once, arguments that a model rejects are left out and
named, a slow call is sent once, a cause common to all calls ends the run with one sentence, and
keys go into no reply and no error. inspect_ai takes seconds to import, so it is imported when an
engine is made.
"""

import json
import math
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
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
from ingroup.inference.batches import TRIAL, Batcher, find_again
from ingroup.inference.engine import (
    BATCHED,
    FAILED,
    FILTERED,
    LENGTH,
    NO_CHOICES,
    STOP,
    Engine,
    EngineError,
    Reply,
    Sampling,
    encodable,
)
from ingroup.inference.ledger import Asked, Ledger
from ingroup.inference.prompts import fold_system
from ingroup.inference.reasoning import apart
from ingroup.inference.top_logprobs import Token, score
from ingroup.inference.wire import (
    Refused,
    Unanswered,
    causes_of,
    count,
    look,
    may_help,
    pause,
    place_of,
    printable,
    status_of,
    without_keys,
)
from ingroup.parameters import address
from ingroup.tables import shown

LOOPBACK = ("127.0.0.1", "::1", "localhost")
# Statuses of a key, a model or an account; others of 4xx may be a prompt's own. Of those a filter
# gives 403, and a busy server 429: they are common where many calls have them.
NEVER_A_PROMPTS_OWN = {401, 402, 404}
COMMON = {401, 402, 403, 404, 429}
TOP_LOGPROBS = 20  # the most that today's servers tell
PATIENCE = 16  # calls
ATTEMPTS = 6  # calls that a server refused for now, or that broke off, are sent so often
LOCAL_IN_FLIGHT, MOST_IN_FLIGHT = 4, 100  # calls, with IN_FLIGHT=0: on this machine, elsewhere
BATCHING = ("anthropic", "openai", "openai-api")  # providers whose batch APIs are spoken here
CLOUDS = ("azure", "bedrock", "vertex")  # services that have these providers' models, not their API
FINISH = {
    "stop": STOP, "max_tokens": LENGTH, "model_length": LENGTH, "content_filter": FILTERED,
}  # fmt: skip
# Arguments that may be left out, and how a server's error names them. Of two that an error names
# the first goes: top_p next to a temperature has less to say.
NAMED = {
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
# An error of a prompt that is too long names max_tokens as well, and is this prompt's own.
TOO_LONG = r"context|too long|too large|exceed|at most|maximum (input|prompt)"


class Trouble(NamedTuple):
    """Why a call failed: its HTTP status (0 without one), whether nobody was there, the reason."""

    status: int
    absent: bool
    reason: str
    parameter: str = ""  # that the server names in a field of its own
    is_unanswered: bool = False  # a batch ended without an answer to it

    @property
    def kind(self) -> str:
        """Equal for causes that are alike, "" for one that no count of them makes common."""
        return "absent" if self.absent else str(self.status) * self.was_refused

    @property
    def was_refused(self) -> bool:
        """Whether the server declined the call, which nobody bills."""
        return 400 <= self.status < 500


class Called(NamedTuple):
    """One call: its reply, the cause where it failed, and the request as it was sent."""

    reply: Reply
    trouble: Trouble | None
    request: Mapping[str, Any]


class _Event:
    """Receives inspect_ai's record of a call, which has the request as it was sent."""

    request: Mapping[str, Any] = {}

    def on_pending(self, event: Any) -> None:
        self.event = event

    def on_complete(self, event: Any) -> None:
        self.event = event

    def sent(self) -> Mapping[str, Any]:
        call = getattr(getattr(self, "event", None), "call", None)
        return call.request if call is not None else {}


def full_name(name: str, base_url: str = "") -> str:
    """inspect_ai's name of a model.

    A name without a provider is that of the server at ``base_url``, or the first id in the registry
    that has a provider, or OpenAI's.
    """
    if models.provider(name):
        return name
    known = models.find(name)
    if known and not base_url:
        for one in known.ids:
            if models.provider(one):
                return one
    return f"openai-api/local/{name}" if base_url else f"openai/{name}"


class InspectEngine(Engine):
    """Chats sent to a provider or a server, a bounded number at a time.

    ``model`` is inspect_ai's name (``openai-api/<service>/<model>`` for any OpenAI-compatible
    server), or one without a provider, see :func:`full_name`. ``base_url`` is the provider's own
    unless given. Keys stay in the environment, where inspect_ai reads them.

    ``timeout`` is in seconds: a call that takes longer may have been billed, so it is not sent
    again, but fails, and the next run asks it. What a server refuses for now (408, 429, 5xx)
    and a broken connection is tried six times in all, after the time that the server names or 0.5
    to 8 s. ``in_flight`` 0 is adaptive (inspect_ai's: 20 at first, at most 100), and 4 on this
    machine, whose servers often have one slot. ``batch`` sends what is asked for a store through
    the provider's batch API, and a killed run finds its batches again
    (:mod:`ingroup.inference.batches`).

    EngineError where the provider is unknown, its client is not installed, its key is missing, or
    it has no batch API that is spoken here;
    InputError for an address that is none or holds a secret.
    """

    asks_again = True
    keeps_each = True
    costs = True

    def __init__(
        self, model: str, base_url: str = "", in_flight: int = 0, timeout: int = 600,
        batch: bool = False,
    ) -> None:  # fmt: skip
        self.model = full_name(model, base_url)
        self.base_url, self.timeout, self.batch = base_url, timeout, batch
        self.left_out: list[str] = []
        self.answered = False  # whether it, or the store it goes on with, has had an answer
        self._connections = uuid4().hex
        self._sent: dict[str, dict[str, Any]] = {}

        if base_url:
            address(base_url)
        provider, service = self.model.split("/")[:2]
        if batch and (provider not in BATCHING or service in CLOUDS):
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
        """A model of inspect_ai, with connections of its own."""
        from inspect_ai._util.error import PrerequisiteError
        from inspect_ai.model import GenerateConfig, get_model

        _stay_out_of_the_notebook()
        options = {"base_url": self.base_url} if self.base_url else {}
        if self.model.startswith("openai-api/") and (key := self._server_key()):
            options["api_key"] = key
        config = GenerateConfig(max_retries=ATTEMPTS - 1, reasoning_summary="none")
        if batch:
            config.batch = True
            config.max_retries = 0  # what failed in a batch is asked by the next run
        else:
            config.attempt_timeout = self.timeout
            config.max_connections = getattr(self, "in_flight", 0) or None
        try:
            model = get_model(self.model, config=config, memoize=False, **options)
        except PrerequisiteError as error:
            said = re.sub(r"\[/?[\w ]+\]|ERROR: ", "", str(error.message))
            raise EngineError(f"{self.model}: {printable(said)}{self._hint()}") from None
        except (ValueError, ImportError) as error:
            said = str(error).removeprefix("ERROR: ")
            raise EngineError(f"{self.model}: {printable(said)}") from None
        model.should_retry = partial(may_help, model.should_retry)
        model.api.retry_wait = lambda: pause
        # inspect_ai keeps how many calls go at once under this key as long as the process lives.
        pool = f"{self._connections}-batch" if batch else self._connections
        model.api.connection_key = lambda: pool
        self._guard(model.api, batch)
        return model

    def _server_key(self) -> str:
        """The key for an OpenAI-compatible server: a word, where one on this machine needs none."""
        service = self.model.split("/")[1].upper().replace("-", "_")
        names = [f"{service}_API_KEY", "OPENAI_API_KEY"] if service == "LOCAL" else []
        for name in names:
            if key := os.environ.get(name, "").strip():
                return key
        given = os.environ.get(f"{service}_API_KEY", "").strip()
        there = self.base_url or os.environ.get(f"{service}_BASE_URL", "")
        return given or ("none" if urlsplit(there).hostname in LOOPBACK else "")

    def _hint(self) -> str:
        """For a name that the hub may have as well: how the weights are asked."""
        is_an_organisation = self.model.split("/")[0] in ("google", "openai")
        told = f" (for weights of the model hub: {self.model}@transformers)"
        return told if is_an_organisation else ""

    def _guard(self, api: Any, batch: bool) -> None:
        """What the client of an API must not do, where it is one of OpenAI's or Anthropic's kind.

        It follows no redirect, asks for no compressed body, reads at most 32 MiB of one (but
        in a batch's), and leaves trying again to inspect_ai.
        """
        client = getattr(api, "client", None)
        transport = getattr(client, "_client", None)
        if hasattr(client, "max_retries"):
            client.max_retries = 0
        if hasattr(transport, "event_hooks"):
            transport.follow_redirects = False
            transport.headers["Accept-Encoding"] = "identity"
            hooks = transport.event_hooks
            bounded = partial(look, bounded=not batch)
            transport.event_hooks = hooks | {"response": [*hooks["response"], bounded]}

    def knock(self) -> "InspectEngine":
        """Itself; EngineError where nothing listens at the address. What answers is not read."""
        if not self.address:
            return self
        try:
            with httpx2.stream("GET", self.address, timeout=10):
                pass
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            where = f"no server is at {place_of(self.address)} ({error})"
            raise EngineError(f"{where}: start it, or check BASE_URL") from error
        except httpx2.HTTPError:
            pass  # a server that says something else is there
        return self

    def identity(self) -> dict[str, Any]:
        """Engine, its version, model, the server's address without its scheme, and what is sent.

        The address has its port: two servers on one machine may have one name for two models.
        ``left_out`` are the arguments that the model rejects, ``sent_*`` those that the first call
        had, as they stood in its request: after :meth:`prepare` or :meth:`recall`.
        """
        from importlib.metadata import version

        found: dict[str, Any] = {
            "engine": "inspect",
            "engine_version": version("inspect-ai"),
            "model": self.model,
        }
        if self.address:
            found["base_url"] = place_of(self.address)
        if self._sent:
            found["left_out"] = sorted(self.left_out)
            found |= {f"sent_{name}": value for name, value in self.sent.items()}
        return found

    @property
    def sent(self) -> dict[str, Any]:
        """The arguments of the latest design's calls, as they stand in a request."""
        return self._sent[next(reversed(self._sent))] if self._sent else {}

    def recall(self, manifest: Mapping[str, Any], sampling: Sampling) -> None:
        """Take what is sent from the manifest of a store that a run goes on with.

        So its calls are sent as the first ones were, and nothing is tried out again.
        """
        self.answered = True
        if "left_out" not in manifest:
            return
        self.left_out = list(manifest["left_out"])
        named = {k.removeprefix("sent_"): v for k, v in manifest.items() if k.startswith("sent_")}
        self._keep_sent(sampling, named)

    def prepare(self, messages: Sequence[Message], sampling: Sampling) -> Reply | None:
        """Learn, by asking a design's first chat, which arguments the model takes.

        It is a real call, whose reply is returned. An argument that the server's error names
        (status 400, 404 or 422) is left out of this and all later calls, and standard error says
        so. Later calls learn nothing: all are sent alike. With one sampling it is done once, and
        None is returned after that. EngineError where nobody is there or the key is wrong.
        """
        if _key(sampling) in self._sent:
            self._keep_sent(sampling, self._sent[_key(sampling)])
            return None
        with start_blocking_portal() as portal:
            asked = portal.call(self._learn, messages, sampling)
        # A cause that may pass has taught nothing, and nothing is pinned by it.
        trouble = asked.trouble
        if trouble and (trouble.absent or trouble.status == 401 or not trouble.kind):
            raise EngineError(self._does_not_answer(asked.reply.error))
        if sampling.choices and asked.reply.finish_reason == FAILED:
            raise EngineError(f"{self.model} answers {NO_CHOICES} ({asked.reply.error})")
        self._keep_sent(sampling, _flat(asked.request))
        for name in ("temperature", "top_p", "seed"):
            asked_for = getattr(self._config(messages, sampling), name) is not None
            if asked_for and asked.request and not _holds(asked.request, name):
                print(f"{self.model}: {name} is not sent, as it takes none", file=sys.stderr)
        if sampling.reasoning and asked.request and not _holds_reasoning(asked.request):
            effect = "the model reasons as it does by itself"
            if sampling.reasoning.isdecimal():
                effect = "it only makes room for so many tokens"
            told = f"REASONING={sampling.reasoning} is not sent, as this model has no such argument"
            print(f"{self.model}: {told}: {effect}", file=sys.stderr)
        self.answered = self.answered or asked.reply.finish_reason != FAILED
        return asked.reply

    def _keep_sent(self, sampling: Sampling, sent: dict[str, Any]) -> None:
        self._sent.pop(_key(sampling), None)  # the latest stands last
        self._sent[_key(sampling)] = sent

    async def _learn(self, messages: Sequence[Message], sampling: Sampling) -> Called:
        model = self._open()
        try:
            while True:
                asked = await self._ask(model, messages, sampling)
                rejected = self._rejected(asked.trouble, messages, sampling)
                if not rejected:
                    return asked
                self.left_out.append(rejected)
                instead = {
                    "max_tokens": "; max_completion_tokens is sent instead",
                    "system": "; the system turn is put before the user's",
                }.get(rejected, "")
                told = f"{self.model} rejects {rejected}, which is left out{instead}"
                print(shown(f"{told} ({asked.reply.error})"), file=sys.stderr)
        finally:
            await model.api.aclose()

    def _rejected(
        self, trouble: Trouble | None, messages: Sequence[Message], sampling: Sampling
    ) -> str:
        """The argument of a call that its error names, "" where it names none."""
        if trouble is None or trouble.status not in (400, 404, 422):
            return ""
        config = self._config(messages, sampling)
        sent = [name for name in NAMED if getattr(config, name, None) is not None]
        sent += list(config.extra_body or {})
        has_system = any(message["role"] == "system" for message in messages)
        sent += ["system"] if has_system and "system" not in self.left_out else []
        if trouble.parameter in sent:
            return trouble.parameter
        if re.search(TOO_LONG, trouble.reason, re.IGNORECASE):
            return ""
        named = [name for name in NAMED if name in sent and _names(trouble.reason, name)]
        return named[0] if named else ""

    def _config(self, messages: Sequence[Message], sampling: Sampling) -> Any:
        """A call's arguments, as inspect_ai names them, without those that are left out."""
        from inspect_ai.model import GenerateConfig

        given: dict[str, Any] = {"max_tokens": sampling.max_tokens}
        if sampling.choices:
            given |= {"temperature": 0.0, "logprobs": True, "top_logprobs": TOP_LOGPROBS}
        elif sampling.temperature is not None:
            given["temperature"] = sampling.temperature
            if sampling.temperature > 0:
                given |= {"top_p": sampling.top_p, "seed": sampling.trial_seed(messages)}
        reasoning = sampling.reasoning
        if reasoning.isdecimal():
            given["reasoning_tokens"] = int(reasoning)
        elif reasoning:
            given["reasoning_effort"] = reasoning
        kept = {name: value for name, value in given.items() if name not in self.left_out}
        if "max_tokens" in self.left_out and "max_completion_tokens" not in self.left_out:
            kept["extra_body"] = {"max_completion_tokens": sampling.max_tokens}
        if self.model.startswith("ollama/") and kept.get("reasoning_effort") == "none":
            # inspect_ai hands only low, medium and high on to Ollama, which takes none as well.
            kept.setdefault("extra_body", {})["reasoning"] = {"effort": "none"}
        return GenerateConfig(**kept)

    def answer_each(
        self, conversations: Sequence[Sequence[Message]], sampling: Sampling,
        keep: Callable[[int, Reply], None] = lambda place, reply: None,
        asked: Asked | None = None,
    ) -> list[Reply]:  # fmt: skip
        """One reply a conversation, in order; ``keep`` gets each, with its place, as it comes.

        Where ``asked`` says for which trials of a store they are, they go in batches if this engine
        is to send batches, or come from those that an earlier run sent.

        EngineError where the first 16 calls to end (or all, where there are fewer) failed alike for
        a cause that is not theirs: nobody is there, a wrong key, no such model, no credit (401 to
        404), and, as long as nothing was answered, any status of 4xx. Any other failure is a reply
        that says why; so is every failure in a batch of an earlier run. An interrupt cancels the
        calls.
        """
        were_sent_before = asked is not None and asked.are_covered  # from an earlier run's batches
        with start_blocking_portal() as portal:  # a loop of its own, in a thread
            replies, stopped = portal.call(self._answer_all, conversations, sampling, keep, asked)
        if stopped and not were_sent_before:
            if asked is not None:  # what was answered is kept; what failed is to be sent anew
                asked.ledger.drop(asked.trials)
            raise EngineError(self._does_not_answer(stopped))
        return replies

    def answer(self, conversations: Sequence[Sequence[Message]], sampling: Sampling) -> list[Reply]:
        """One reply a conversation, in order, for who asks a few."""
        return self.answer_each(conversations, sampling)

    def find_batches(self, ledger: Ledger) -> None:
        """See which batches of a killed run still give replies; the ledger forgets the others."""
        if ledger.submissions:
            with start_blocking_portal() as portal:
                portal.call(self._find_batches, ledger)

    async def _find_batches(self, ledger: Ledger) -> None:
        model = self._open(batch=True)
        try:
            await find_again(model.api, ledger)
        finally:
            await model.api.aclose()

    def _does_not_answer(self, reason: str) -> str:
        where = f" at {place_of(self.address)}" if self.address else ""
        return (
            f"the model {self.model!r}{where} does not answer ({reason}): check the provider's "
            "key, the model's name, the base URL and the parameters"
        )

    async def _answer_all(
        self, conversations: Sequence[Sequence[Message]], sampling: Sampling,
        keep: Callable[[int, Reply], None], asked: Asked | None,
    ) -> tuple[list[Reply], str]:  # fmt: skip
        patience = min(PATIENCE, len(conversations))
        replies: dict[int, Reply] = {}
        ended: list[str] = []
        stopped = ""
        left = iter(enumerate(conversations))

        def note(place: int, reply: Reply, kind: str) -> None:
            nonlocal stopped
            replies[place] = reply
            keep(place, reply)
            ended.append(kind)
            self.answered = self.answered or reply.finish_reason != FAILED
            if len(ended) == patience and self._common(ended):
                stopped = reply.error

        async def work(model: Any) -> None:
            for place, messages in left:  # those who work share it
                if stopped:
                    return
                call = await self._ask(model, messages, sampling)
                note(place, call.reply, call.trouble.kind if call.trouble else "")

        async def work_in_batch(model: Any) -> None:
            place, messages = next(left)
            trial = asked.trials[place]
            TRIAL.set(trial)
            call = await self._ask(model, messages, sampling)
            batcher.leave(trial)
            has_failed = call.trouble is not None and call.trouble.status > 0
            share = 0.0 if has_failed else call.reply.price_share * BATCHED
            reply = call.reply._replace(price_share=share)
            limit = batcher.limit(trial)
            if reply.finish_reason == LENGTH and limit < sampling.max_tokens:
                error = f"it was cut at {limit} tokens, in a batch of an earlier run"
                paid = reply.prompt_tokens, reply.cached_tokens, reply.output_tokens
                reply = Reply(None, FAILED, *paid, error=error, price_share=share)
            note(place, reply, call.trouble.kind if call.trouble else "")

        in_batch = asked is not None and (self.batch or asked.are_covered)
        at_once = len(conversations) if in_batch else self.in_flight or MOST_IN_FLIGHT
        model = self._open(in_batch)
        try:
            async with create_task_group() as group:
                if in_batch:
                    batcher = Batcher(model.api, asked, sampling.max_tokens)
                    group.start_soon(batcher.run)
                    work = work_in_batch
                for _ in islice(conversations, at_once):
                    group.start_soon(work, model)
        except ExceptionGroup as failures:  # a full disk, say: its own sentence
            failure: Exception = failures
            while isinstance(failure, ExceptionGroup):
                failure = failure.exceptions[0]
            raise failure from None
        finally:
            await model.api.aclose()
        unasked = Reply(None, FAILED, error=stopped)
        return [replies.get(place, unasked) for place in range(len(conversations))], stopped

    def _common(self, kinds: Sequence[str]) -> bool:
        """Whether the first calls failed alike, for a cause that is not theirs."""
        kind = kinds[0]
        if not kind or len(set(kinds)) > 1:
            return False
        if kind == "absent" or int(kind) in NEVER_A_PROMPTS_OWN:
            return True
        if not self.answered:
            return int(kind) in COMMON or len(kinds) == PATIENCE
        return int(kind) in COMMON and len(kinds) == PATIENCE

    async def _ask(self, model: Any, messages: Sequence[Message], sampling: Sampling) -> Called:
        """One call, tried again where that may help; it raises nothing but what cancels it."""
        from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser
        from inspect_ai.model._model import use_model_event_sink

        turns = {
            "system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant,
        }  # fmt: skip
        folded = fold_system(messages) if "system" in self.left_out else messages
        chat = [turns[message["role"]](content=message["content"]) for message in folded]
        config, event = self._config(messages, sampling), _Event()
        try:
            with use_model_event_sink(event):
                output = await model.generate(chat, config=config, cache=False)
            reply, trouble = _reply(output), None
            # Without a mark, the text of a model that reasons and was cut is its reasoning. It may
            # reason although it was told not to, unless its server counts no such tokens.
            counted = output.usage.reasoning_tokens if output.usage else None
            is_silent = sampling.reasoning == "none" and counted == 0
            reasons = models.reasons(self.model) and not is_silent
            if reasons and reply.finish_reason == LENGTH and not reply.reasoning:
                reply = apart(reply, opened=True)
            if sampling.choices:
                reply = _scored(reply, output, sampling)
        except Exception as error:
            # Whatever a server makes a client raise must not cost the other answers of this shard.
            trouble = self._trouble(error)
            is_free = trouble.was_refused or trouble.is_unanswered
            share = 0.0 if is_free else 1.0
            reply = Reply(None, FAILED, error=trouble.reason, price_share=share)
            if trouble.status == 400 and "content_filter" in trouble.reason:
                reply = Reply("", FILTERED, error=trouble.reason, price_share=share)
                trouble = None
        return Called(without_keys(reply), trouble, event.sent())

    def _trouble(self, error: BaseException) -> Trouble:
        # inspect_ai's own error repeats the whole request; what the provider said is its cause.
        every = list(causes_of(error))
        causes = [one for one in every if type(one).__name__ != "ModelGenerateError"] or every
        names = [type(cause).__name__ for cause in causes]
        for cause in causes:
            if isinstance(cause, Refused):
                is_unanswered = isinstance(cause, Unanswered)
                return Trouble(0, False, str(cause), is_unanswered=is_unanswered)
            # inspect_ai's own word that a model takes no number of tokens: nothing was sent.
            if "'reasoning_tokens'" in str(cause) and type(cause).__name__ == "PrerequisiteError":
                return Trouble(400, False, printable(str(cause)), "reasoning_tokens")
        if any(name.endswith("TimeoutError") or name == "ReadTimeout" for name in names):
            return Trouble(0, False, f"no answer within {self.timeout} s")
        absent = any(name in ("ConnectError", "ConnectionRefusedError") for name in names)
        for cause in causes:
            status = status_of(cause)
            if status:
                body = getattr(cause, "body", None)
                named = body.get("param") if isinstance(body, dict) else None
                said = getattr(cause, "message", None)
                said = said if isinstance(said, str) and said else str(cause)
                said = re.sub(r"^Error code: \d+ *-? *", "", said)
                reason = f"HTTP {status} - {said}" if said else f"HTTP {status}"
                if isinstance(body, dict) and body.get("code") and str(body["code"]) not in reason:
                    reason += f" ({body['code']})"
                return Trouble(status, False, reason, named if isinstance(named, str) else "")
        last = causes[-1]
        return Trouble(0, absent, f"{type(last).__name__}: {last}")

    def close(self) -> None:
        """Nothing stays open between calls."""


def _stay_out_of_the_notebook() -> None:
    """Keep inspect_ai from treating a notebook's kernel as its own.

    In a kernel it would demand ipywidgets and patch the event loop. Here it displays nothing, and
    its calls run in a loop of their own.
    """
    from inspect_ai._util import platform

    platform.running_in_notebook = lambda: False


def _key(sampling: Sampling) -> str:
    return json.dumps(sampling.identity(), sort_keys=True)


def _names(reason: str, argument: str) -> bool:
    return re.search(NAMED[argument], reason, re.IGNORECASE) is not None


def _flat(request: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """The arguments of a request, those of one in another behind a dot; no chat, no name, no seed.

    A seed is every prompt's own: what it comes from is the sampling's.
    """
    chat = {"messages", "input", "inputs", "contents", "model", "seed"}
    chat |= {"system", "system_instruction", "systemInstruction", "instructions"}
    wire = {
        "extra_headers",
        "http_headers",
        "headers",
        "tools",
        "tool_choice",
        "http_options",
        "timeout",
    }
    found: dict[str, Any] = {}
    for name, value in request.items():
        if name in chat | wire or value is None:
            continue
        if isinstance(value, Mapping):
            found |= _flat(value, f"{before}{name}.")
        elif isinstance(value, bool | int | float | str):
            found[f"{before}{name}"] = value
    return found


def _holds(request: Mapping[str, Any], argument: str) -> bool:
    """Whether a request has an argument, in snake or in camel case, at any depth."""
    for name, value in request.items():
        if name.lower().replace("_", "") == argument.replace("_", "") and value is not None:
            return True
        if isinstance(value, Mapping) and _holds(value, argument):
            return True
    return False


def _holds_reasoning(request: Mapping[str, Any]) -> bool:
    """Whether a request says how much the model is to reason, under any provider's name for it."""
    names = [name for name in _flat(request) if not name.endswith("summary")]
    return any(re.search("effort|think|budget|reasoning", name, re.IGNORECASE) for name in names)


def _scored(reply: Reply, output: Any, sampling: Sampling) -> Reply:
    """The reply with the probabilities of the admissible answers, as far as the server tells them.

    It has none where the reply does not answer behind each answer prefix; its text is then as the
    model wrote it. A reply without log-probabilities failed.
    """
    if reply.finish_reason in (FAILED, FILTERED):
        return reply
    masses = (0.0,) * len(sampling.leads)
    if not (reply.text or "").strip():  # it ended inside its reasoning
        return reply._replace(mass=masses)
    logprobs = output.choices[0].logprobs
    if logprobs is None or not logprobs.content:
        return reply._replace(text=None, finish_reason=FAILED, error="no top_logprobs came")

    tokens = []
    for told in logprobs.content:
        others = {top.token: math.exp(top.logprob) for top in told.top_logprobs or ()}
        tokens.append(Token(told.token, {told.token: math.exp(told.logprob)} | others))
    found = score(_answer_of(tokens, reply), sampling.choices, sampling.leads)
    masses = tuple(one.option_mass for one in found)
    if not all(masses):
        return reply._replace(mass=masses)

    text = ""
    probabilities: list[float] = []
    for lead, one in zip(sampling.leads, found, strict=True):
        text += lead + sampling.choices[int(one.probabilities.argmax())]
        probabilities += one.probabilities.tolist()
    return reply._replace(text=text, probabilities=tuple(probabilities), mass=masses)


def _answer_of(tokens: Sequence[Token], reply: Reply) -> Sequence[Token]:
    """The tokens of the answer alone, where a server tells those of the reasoning, too.

    None of them where it cannot be told which are the answer's.
    """
    if not reply.reasoning:
        return tokens
    whole = "".join(token.text for token in tokens)
    begins = whole.rfind(reply.text)
    if begins < 0:
        return []
    passed = 0
    for number, token in enumerate(tokens):
        if passed >= begins:
            return tokens[number:]
        passed += len(token.text)
    return []


def _reply(output: Any) -> Reply:
    """What inspect_ai made of an answer, as a reply."""
    if output.empty:
        return Reply(None, FAILED, error="the answer holds no text", model=output.model)
    finish = FINISH.get(output.stop_reason, STOP)
    # inspect_ai makes an answer of some errors, whose text is the server's.
    if output.usage is None and output.response_id is None and finish in (FILTERED, LENGTH):
        if finish == FILTERED:
            return Reply("", FILTERED, error=output.completion)
        return Reply(None, FAILED, error=output.completion)

    reasoning = []
    content = output.message.content
    for part in content if isinstance(content, list) else []:
        if part.type == "reasoning":
            readable = "" if part.redacted else part.reasoning
            reasoning.append(readable or part.summary or "")
    thought = "\n".join(encodable(part) for part in reasoning if part)

    usage = output.usage
    prompt = cached = written = thinking = 0
    if usage is not None:
        cached = usage.input_tokens_cache_read or 0
        prompt = usage.input_tokens + cached + (usage.input_tokens_cache_write or 0)
        # Some servers leave reasoning out of what they say was written.
        written = max(usage.output_tokens, usage.total_tokens - prompt)
        thinking = usage.reasoning_tokens or 0
    text = encodable(output.completion)
    counts = count(prompt), count(cached), count(written)
    reply = Reply(text, finish, *counts, model=encodable(output.model))
    return apart(reply._replace(reasoning=thought, reasoning_tokens=count(thinking)))
