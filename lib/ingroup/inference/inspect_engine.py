"""An engine for any provider or server, through inspect_ai.

inspect_ai knows each provider's arguments, limits its calls, repeats those that a server refuses
for now, and keeps reasoning apart. It runs in a process of its own, as a notebook would have to
give it widgets. Keys stay in the environment.
"""

import asyncio
import multiprocessing
import os
import re
import shutil
import socket
from collections.abc import Collection, Sequence
from multiprocessing.managers import BaseManager
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from ingroup.inference.answers import (
    FAILED,
    FILTERED,
    LENGTH,
    STOP,
    Chat,
    Engine,
    EngineError,
    Reply,
    Sampling,
    failed,
)
from ingroup.inference.reasoning import split_reasoning
from ingroup.inference.server import ServerTransport, client, tokens_of, with_scores, without_keys

FINISH_REASONS = {
    "stop": STOP,
    "max_tokens": LENGTH,
    "model_length": LENGTH,
    "content_filter": FILTERED,
}
# How providers call a prompt that their moderation blocks, in an error and not in a reply.
BLOCKED = re.compile(
    r"content.?(policy|filter|management|exists.risk)|safety system|prohibited.?content"
    r"|data.?inspection|inappropriate content|(unsafe|sensitive) content|moderation|flagged"
    r"|legal reasons|blocked.{0,40}safety",
    re.IGNORECASE,
)
STATUSES_OF_BLOCKS = {400, 403, 422, 451}
N_ALTERNATIVES = 20  # tokens in each place: today's servers report no more
ERROR_LENGTH = 300
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class InspectEngine(Engine):
    """Chats to a provider or a server.

    Parameters
    ----------
    model : str
        inspect_ai's name, e.g. ``openai/gpt-5``, or ``openai-api/<service>/<model>`` for any
        OpenAI-compatible server.
    base_url : str
        The server's address, "" for the provider's own.
    in_flight : int
        Calls at once, 0 for inspect_ai's own number.
    timeout : int
        Seconds of one try.
    batch : bool
        Whether the provider's batch API is used. Do not stop such a run: inspect_ai keeps its
        batches in memory alone.
    calls : Path or None
        A folder in which inspect_ai keeps each answer at once, until all of a piece are stored. So
        a kill costs only the calls that are under way.

    Raises
    ------
    EngineError
        The key, the server or the provider's client is missing.
    """

    piece_size = 256
    asks_again = True

    def __init__(
        self,
        model: str,
        base_url: str = "",
        in_flight: int = 0,
        timeout: int = 600,
        batch: bool = False,
        calls: Path | None = None,
    ):
        self.name = model
        self.calls = calls
        self._leaves_calls = True
        if base_url:
            _check_server(base_url, model)
        if batch:
            self.piece_size = 50_000
        if calls:
            # inspect_ai reads this when it starts.
            os.environ["INSPECT_CACHE_DIR"] = str(calls)

        self._process = _Process(ctx=multiprocessing.get_context("spawn"))
        self._process.start()
        settings = {"max_connections": in_flight or None, "batch": batch or None}
        self._caller = self._process.Caller()
        try:
            self._caller.open(model, base_url, timeout, settings, bool(calls))
        except EngineError:
            self._process.shutdown()
            raise

    def identity(self) -> dict[str, Any]:
        """Name inspect_ai, its version, the model and the server.

        Returns
        -------
        dict
            Entries of a store's manifest.
        """
        from importlib.metadata import version

        about = {"engine": "inspect", "engine_version": version("inspect_ai"), "model": self.name}
        return about | {"base_url": self._caller.address()}

    def answer(self, chats: Sequence[Chat], sampling: Sampling) -> list[Reply]:
        """Return one reply to each chat. Failures are replies.

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
        # The answers before are stored by now. Those that a killed run left are used again.
        self._forget_calls()
        self._leaves_calls = True
        replies = self._caller.ask([list(chat) for chat in chats], sampling)
        self._leaves_calls = False
        return replies

    def _forget_calls(self) -> None:
        """Remove the answers that inspect_ai keeps, unless a call was broken off."""
        if self.calls and not self._leaves_calls:
            shutil.rmtree(self.calls, ignore_errors=True)

    def close(self) -> None:
        """End the process."""
        self._forget_calls()
        self._process.shutdown()


class _Process(BaseManager):
    """A process with a `Caller`, which ends with the process that started it."""


class Caller:
    """inspect_ai's model, in a process of its own."""

    def __init__(self) -> None:
        Thread(target=_end_with_parent, daemon=True).start()
        self.unknown: set[str] = set()
        self.runner = asyncio.Runner()

    def open(
        self, model: str, base_url: str, timeout: int, settings: dict[str, Any], keeps: bool
    ) -> None:
        """Open the model.

        Parameters
        ----------
        model, base_url, timeout
            As for `InspectEngine`.
        settings : dict
            Settings of inspect_ai's ``GenerateConfig``.
        keeps : bool
            Whether answers are kept at once.

        Raises
        ------
        EngineError
            The key or the provider's client is missing.
        """
        from inspect_ai.model import CachePolicy, GenerateConfig, get_model

        options: dict[str, Any] = {"base_url": base_url} if base_url else {}
        if model.startswith("openai-api/"):
            transport = ServerTransport()
            self.unknown = transport.unknown
            options["http_client"] = client(transport, timeout)
            service = model.split("/")[1].upper().replace("-", "_")
            # A server of this machine often wants no key.
            if urlsplit(base_url).hostname in LOOPBACK and f"{service}_API_KEY" not in os.environ:
                options["api_key"] = "none"

        config = GenerateConfig(attempt_timeout=timeout, max_retries=5, **settings)
        try:
            self.model = get_model(model, config=config, memoize=False, **options)
        except Exception as error:  # a missing key, package or provider each raise their own
            message = re.sub(r"\[/?[\w ]+\]", "", str(getattr(error, "message", error)))
            raise EngineError(f"{model}: {_line(message.removeprefix('ERROR: '))}") from None
        self.cache = CachePolicy(expiry=None) if keeps else False

    def address(self) -> str:
        """Return the server's address, without a user, a key or a query.

        Returns
        -------
        str
            Host, port and path.
        """
        address = str(self.model.api.base_url or "").partition("?")[0]
        return address.rpartition("@")[2]

    def ask(self, chats: Sequence[Chat], sampling: Sampling) -> list[Reply]:
        """Ask all chats. inspect_ai decides how many calls go at once.

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
        return self.runner.run(self._ask_all(chats, sampling))

    async def _ask_all(self, chats: Sequence[Chat], sampling: Sampling) -> list[Reply]:
        calls = [self._ask(number, chat, sampling) for number, chat in enumerate(chats)]
        return await asyncio.gather(*calls)

    async def _ask(self, number: int, chat: Chat, sampling: Sampling) -> Reply:
        """Ask one chat. Whatever goes wrong with it must not cost the other answers."""
        from inspect_ai.model import ChatMessage
        from pydantic import TypeAdapter

        messages = TypeAdapter(list[ChatMessage]).validate_python(list(chat))
        cache = self.cache
        if cache:
            # Two equal chats of a piece are two calls.
            cache = cache.model_copy(update={"scopes": {"number": str(number)}})
        try:
            config = config_of(chat, sampling)
            output = await self.model.generate(messages, config=config, cache=cache)
            return reply_of(output, sampling, self.unknown)
        except Exception as error:  # each provider's client raises its own
            return _reply_of_error(error)


_Process.register("Caller", Caller)


def reply_of(output: Any, sampling: Sampling, unknown: Collection[str] = ()) -> Reply:
    """Convert inspect_ai's output, with the reasoning apart from the answer.

    Parameters
    ----------
    output : ModelOutput
        What `generate` returned, or a log holds.
    sampling : Sampling
        How it was asked.
    unknown : collection of str
        Reasons of the server that are not known.

    Returns
    -------
    Reply
        The reply. One without a text, or that ended for an unknown reason, is a failed call.
    """
    if output.empty:
        return failed("the answer holds no text")
    if output.stop_reason == "model_length" and output.usage is None:
        # inspect_ai writes a server's error into the reply: the prompt is too long.
        return failed(_line(output.completion))
    content = output.message.content
    parts = [] if isinstance(content, str) else content
    finish_reason = FINISH_REASONS.get(output.stop_reason, FAILED)
    if any(part.type == "text" and part.refusal for part in parts):
        finish_reason = FILTERED
    if finish_reason == FAILED:
        reasons = [output.stop_reason, *sorted(unknown)]
        return failed(f"the reply ended for a reason that is not known: {', '.join(reasons)}")

    text, reasoning = split_reasoning(output.completion, ended=finish_reason == STOP)
    thoughts = []
    for part in parts:
        if part.type == "reasoning":
            thoughts.append(part.summary or "" if part.redacted else part.reasoning)
    reply = Reply(
        without_keys(text),
        finish_reason,
        without_keys("\n".join([*thoughts, reasoning]).strip()),
        _line(output.completion) if finish_reason == FILTERED else "",
        output.model,
        **_counts(output.usage),
    )
    if not sampling.choices or finish_reason == FILTERED:
        return reply
    logprobs = output.choices[0].logprobs
    return with_scores(reply, tokens_of(logprobs.content if logprobs else ()), sampling)


def _end_with_parent() -> None:
    """End this process when the one that started it ends, even by a kill."""
    parent = multiprocessing.parent_process()
    if parent:
        parent.join()
        os._exit(1)


def _check_server(base_url: str, model: str) -> None:
    """Raise an EngineError that names the remedy, if a server cannot be asked."""
    if len(model.split("/")) < 3 and not model.startswith(("openai/", "anthropic/")):
        raise EngineError(
            f"MODELS={model}: with BASE_URL, write openai-api/<service>/{model}, with any word as "
            "the service; <SERVICE>_API_KEY is its key in the environment"
        )

    parts = urlsplit(base_url)
    if not parts.hostname or "@" in parts.netloc or parts.query:
        raise EngineError("BASE_URL must read like http://127.0.0.1:8000/v1, without a key")
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        socket.create_connection((parts.hostname, port), timeout=10).close()
    except OSError as error:
        raise EngineError(f"no server is at {parts.netloc} ({error}): check BASE_URL") from error


def config_of(chat: Chat, sampling: Sampling) -> Any:
    """Make the arguments of one call, as inspect_ai names them.

    Parameters
    ----------
    chat : chat
        The chat, for the seed of its draws.
    sampling : Sampling
        How it is asked.

    Returns
    -------
    GenerateConfig
        The arguments.
    """
    from inspect_ai.model import GenerateConfig

    config = GenerateConfig(max_tokens=sampling.max_tokens)
    if sampling.choices:
        scored = {"temperature": 0.0, "logprobs": True, "top_logprobs": N_ALTERNATIVES}
        return config.model_copy(update=scored)
    config.temperature = sampling.temperature
    if sampling.draws:
        config.top_p = sampling.top_p
        config.seed = sampling.trial_seed(chat)
    if sampling.reasoning.isdigit():
        config.reasoning_tokens = int(sampling.reasoning)
    elif sampling.reasoning:
        config.reasoning_effort = sampling.reasoning
    return config


def _counts(usage: Any) -> dict[str, int]:
    """Read the counts of tokens, cached ones among them."""
    if usage is None:
        return {}
    cached = (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)
    return {
        "prompt_tokens": usage.input_tokens + cached,
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": usage.reasoning_tokens or 0,
    }


def _reply_of_error(error: Exception) -> Reply:
    """Make the reply of a call that raised: refused by the provider's moderation, or failed."""
    cause = _first_cause(error)
    line = _line(cause)
    status = getattr(cause, "status_code", None) or getattr(cause, "code", 400)
    if status == 451 or (status in STATUSES_OF_BLOCKS and BLOCKED.search(str(cause))):
        return Reply(None, FILTERED, error=line)
    return failed(line)


def _first_cause(error: BaseException) -> BaseException:
    """Return the cause of an error, of its cause, and so on."""
    return error if error.__cause__ is None else _first_cause(error.__cause__)


def _line(error: Any) -> str:
    """Write an error on one short line, without keys."""
    words = without_keys(str(error) or type(error).__name__).split()
    return " ".join(words)[:ERROR_LENGTH]
