"""Any server that speaks OpenAI's chat API, through the official client, which retries."""

import asyncio
import os
import re
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2  # the client's own transport
import openai

from ingroup.design import Message
from ingroup.inference import chat_completion
from ingroup.inference.address import address
from ingroup.inference.engine import FAILED, EngineError, Reply, Sampling, trial_seed

OFFICIAL = "https://api.openai.com/v1"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
# Status or code of an error that no other prompt would mend.
COMMON = {401, 402, 403, 404, "insufficient_quota", "unsupported_parameter", "unsupported_value"}
REASON_LENGTH, SECRET_LENGTH = 200, 16  # characters
PATIENCE = 16  # trials


class BrokenBody(httpx2.RemoteProtocolError):
    """A body that is no chat completion: for the client a broken connection, tried again."""


class OpenAIEngine:
    """Chats sent to a server, a bounded number at a time.

    The key is read from ``OPENAI_API_KEY`` at each use and stands nowhere else; a server on this
    machine needs none. Chats go out as messages: template and BOS are the server's.

    Parameters
    ----------
    model : str
        The server's name of it.
    base_url : str, optional
        Up to and with ``/v1``; else ``OPENAI_BASE_URL``, else OpenAI's own.
    in_flight : int
        Most calls at once.
    timeout : float
        Seconds that a server may be silent in one call.
    attempts : int
        Most calls for one trial. The client tries status 408, 409, 429 and 5xx, timeouts, broken
        connections and broken answers again, after the time that the server names (a trial fails
        at once where that is above two minutes) or waits of 0.5 to 8 s.
    budget_seconds : float
        For one trial: all its calls and the waits between them.

    Raises
    ------
    EngineError
        Where the key is missing, or the address holds a secret or is none.
    ValueError
        For a number out of range.
    """

    asks_again = True

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        in_flight: int = 16,
        timeout: float = 60.0,
        attempts: int = 6,
        budget_seconds: float = 600.0,
    ):
        self.model, self.in_flight, self.attempts = model, in_flight, attempts
        self.timeout, self.budget_seconds = timeout, budget_seconds
        for name in ("in_flight", "attempts", "timeout", "budget_seconds"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, found {getattr(self, name)}")
        self.base_url = base_url or os.environ.get("OPENAI_BASE_URL") or OFFICIAL
        self._address = address(self.base_url)
        self._key()

    def _key(self) -> str:
        key = os.environ.get("OPENAI_API_KEY", "").strip()
        if not key and self._address.hostname not in LOOPBACK:
            raise EngineError(
                f"{self._address.hostname} needs a key: set OPENAI_API_KEY in the environment "
                "(to any word where the server asks for none)"
            )
        # The client would raise its own error, with the key in it.
        if not (key.isascii() and key.isprintable()):
            raise EngineError("OPENAI_API_KEY holds characters that no key has; copy it again")
        return key

    def identity(self) -> dict[str, str]:
        """Engine, the client's version, model, and the server's address without its scheme.

        With its port, on this machine too: two servers beside each other may have one name for
        two models, and a store that refuses a server on another port takes it back on its own.
        """
        return {
            "engine": "openai",
            "engine_version": openai.__version__,
            "model": self.model,
            "base_url": self._address.netloc + self._address.path.rstrip("/"),
        }

    def answer(self, conversations: Sequence[Sequence[Message]], sampling: Sampling) -> list[Reply]:
        """One reply a conversation, in order; see :class:`ingroup.inference.engine.Engine`.

        Runs in a thread of its own, below Jupyter's event loop too; an interrupt cancels the calls.

        Raises
        ------
        EngineError
            Where the first 16 trials to end (or all, where there are fewer) failed for a cause
            that is not theirs: a wrong key, no such model, no credit, no server. Any other failure
            is a reply that says why.
        """
        replies, stopped = _in_thread(self._answer_all(conversations, sampling))
        if stopped:
            raise EngineError(
                f"{self.identity()['base_url']} does not answer for the model {self.model!r} "
                f"({stopped}): check OPENAI_API_KEY, the model's name and the base URL"
            )
        return replies

    async def _answer_all(
        self, conversations: Sequence[Sequence[Message]], sampling: Sampling
    ) -> tuple[list[Reply], str]:
        slots, patience = asyncio.Semaphore(self.in_flight), min(PATIENCE, len(conversations))
        ended: list[bool] = []
        stopped = ""

        async def one(messages: Sequence[Message]) -> Reply:
            nonlocal stopped
            # A trial that waits keeps its slot: a server that asks for patience gets it.
            async with slots:
                if stopped:
                    return Reply(None, FAILED, error=stopped)
                reply, common = await self._ask(client, self._request(messages, sampling))
            reply = self._without_key(reply)
            ended.append(common)
            if len(ended) == patience and all(ended):
                stopped = reply.error
            return reply

        async with openai.AsyncOpenAI(
            api_key=self._key() or "none",
            base_url=self.base_url,
            max_retries=self.attempts - 1,
            timeout=self.timeout,
            http_client=openai.DefaultAsyncHttpx2Client(event_hooks={"response": [_look]}),
        ) as client:
            return await asyncio.gather(*map(one, conversations)), stopped

    def _request(self, messages: Sequence[Message], sampling: Sampling) -> dict[str, Any]:
        # OpenAI's newer models refuse the name that every other server knows.
        official = self._address.hostname.endswith("api.openai.com")
        longest = "max_completion_tokens" if official else "max_tokens"
        request = {"model": self.model, "messages": list(messages), longest: sampling.max_tokens}
        request["temperature"] = sampling.temperature
        if sampling.temperature > 0:
            seed = trial_seed(sampling.seed, messages)
            request |= {"top_p": sampling.top_p, "seed": seed}
        if sampling.logprobs:
            request |= {"logprobs": True, "top_logprobs": sampling.logprobs}
        return request

    async def _ask(self, client: openai.AsyncOpenAI, request: dict[str, Any]) -> tuple[Reply, bool]:
        """The reply, and whether the cause of a failure is common to all prompts."""
        common = False
        try:
            async with asyncio.timeout(self.budget_seconds):
                answer = await client.chat.completions.with_raw_response.create(**request)
            return chat_completion.read(answer.content, request.get("top_logprobs", 0)), False
        except TimeoutError:
            reason = f"no answer within {self.budget_seconds:.3g} s"
        except openai.APITimeoutError:
            reason = f"no answer within {self.timeout:.3g} s"
        except openai.APIStatusError as error:
            common = not COMMON.isdisjoint((error.status_code, error.code))
            reason = error.message.replace("Error code:", "HTTP", 1)
        except Exception as error:
            # Whatever a server makes the client raise must not cost the other answers of this
            # shard. The cause is the transport's.
            cause = error.__cause__ or error
            name = type(cause).__name__
            reason = str(cause) if isinstance(cause, BrokenBody) else f"{name}: {cause}"
            common = name == "ConnectError"
        return Reply(None, FAILED, error=reason), common

    def _without_key(self, reply: Reply) -> Reply:
        """The reply as it may be stored: servers are known to repeat the key in their errors."""
        key, text, error, tokens = self._key(), reply.text, reply.error, reply.top_logprobs
        # A short key is a word for a server that wants none, and may well stand in a reply.
        if len(key) >= SECRET_LENGTH:
            text = text and text.replace(key, "[key]")
            error = error.replace(key, "[key]")
            tokens = tuple((token.replace(key, "[key]"), number) for token, number in tokens)
        error = re.sub(r"(\bsk-|\bBearer\s+)\S+", "[key]", error)
        error = "".join(letter if letter.isprintable() else " " for letter in error)
        error = " ".join(error.split())[:REASON_LENGTH]
        return reply._replace(text=text, error=error, top_logprobs=tokens)

    def close(self) -> None:
        """Nothing stays open between calls."""


async def _look(response: httpx2.Response) -> None:
    """Say to the client what else it should try again, and what not."""
    body = await response.aread()
    if b"insufficient_quota" in body:  # a 429 that no waiting mends
        response.headers["x-should-retry"] = "false"
    if response.is_success:
        try:
            chat_completion.choice(body)
        except chat_completion.NoCompletion as error:
            raise BrokenBody(str(error)) from None


def _in_thread(work: Coroutine[Any, Any, Any]) -> Any:
    """The result of ``work``, run on a loop in a thread of its own; an interrupt cancels it."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(work)
    try:
        with ThreadPoolExecutor(1) as pool:
            try:
                return pool.submit(loop.run_until_complete, task).result()
            except BaseException:
                loop.call_soon_threadsafe(task.cancel)
                raise
    finally:
        loop.close()
