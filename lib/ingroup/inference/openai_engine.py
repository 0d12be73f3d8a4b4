"""Any server that speaks OpenAI's chat API, through the official client."""

import asyncio
import os
import random
import re
import time
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai

from ingroup.design import Message
from ingroup.inference.address import address
from ingroup.inference.chat_completion import Outcome, complete
from ingroup.inference.engine import FAILED, EngineError, Reply, Sampling, trial_seed

OFFICIAL = "https://api.openai.com/v1"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0  # seconds
REASON_LENGTH, SECRET_LENGTH = 200, 16  # characters
PATIENCE = 16  # trials


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
        Seconds for one call, from the connection to the last byte.
    attempts : int
        Most calls for one trial. Status 408, 409, 429 and 5xx, timeouts, broken connections and
        broken answers are tried again, the client's own retries are off.
    budget_seconds : float
        For one trial: all its calls and the waits between them. Where a server asks to wait
        longer than what is left, the trial fails at once.

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
                outcome = await self._ask(client, self._request(messages, sampling))
            ended.append(outcome.common)
            if len(ended) == patience and all(ended):
                stopped = outcome.reply.error
            return outcome.reply

        async with openai.AsyncOpenAI(
            api_key=self._key() or "none", base_url=self.base_url, max_retries=0, timeout=None
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

    async def _ask(self, client: openai.AsyncOpenAI, request: dict[str, Any]) -> Outcome:
        deadline = time.monotonic() + self.budget_seconds
        for attempt in range(1, self.attempts + 1):
            seconds = min(self.timeout, deadline - time.monotonic())
            outcome = await complete(client, request, seconds)
            wait = outcome.wait or min(FIRST_WAIT * 2 ** (attempt - 1), LONGEST_WAIT)
            # Spread upwards only: nobody comes back before the time that the server named.
            wait *= random.uniform(1, 1.25)
            over = attempt == self.attempts or time.monotonic() + wait >= deadline
            if over or not outcome.again:
                break
            await asyncio.sleep(wait)
        return outcome._replace(reply=self._without_key(outcome.reply))

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
