"""Any server that speaks OpenAI's chat API, through the official client."""

import asyncio
import json
import os
import random
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

import openai
from anyio.from_thread import start_blocking_portal

from ingroup.inference.engine import FAILED, LENGTH, STOP, EngineError, Reply, Sampling
from ingroup.stimuli import Message

OFFICIAL = "https://api.openai.com/v1"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0  # seconds
REASON_LENGTH, SECRET_LENGTH = 200, 16  # characters
PATIENCE = 16  # trials
# Status or code of an error that no other prompt would mend.
COMMON = {401, 402, 403, 404, "insufficient_quota", "unsupported_parameter", "unsupported_value"}
COUNTS = ("prompt_tokens", "cached_tokens", "output_tokens")


class Outcome(NamedTuple):
    """What became of a call, whether a later one may do better (after how many seconds), and
    whether the cause of a failure is common to all prompts."""

    reply: Reply
    again: bool = False
    common: bool = False
    wait: float = 0.0


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
    price_in, price_out : float, optional
        Per million tokens of prompt and of reply.

    Raises
    ------
    EngineError
        Where the key is missing, or the address holds a secret or is none.
    ValueError
        For a number out of range.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        in_flight: int = 16,
        timeout: float = 60.0,
        attempts: int = 6,
        budget_seconds: float = 600.0,
        price_in: float | None = None,
        price_out: float | None = None,
    ):
        self.model, self.price_in, self.price_out = model, price_in, price_out
        self.in_flight, self.attempts = in_flight, attempts
        self.timeout, self.budget_seconds = timeout, budget_seconds
        for name in ("in_flight", "attempts", "timeout", "budget_seconds"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, found {getattr(self, name)}")
        self.base_url = base_url or os.environ.get("OPENAI_BASE_URL") or OFFICIAL
        self._address = _address(self.base_url)
        self._key()
        self._used: Counter[str] = Counter()

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
        """Engine, the client's version, model, and the server's address without its scheme."""
        return {
            "engine": "openai",
            "engine_version": openai.__version__,
            "model": self.model,
            "base_url": self._address.netloc + self._address.path.rstrip("/"),
        }

    def usage(self) -> dict[str, float]:
        """Tokens of all replies so far, and what they cost if a price was given.

        ``cost`` = (prompt_tokens price_in + output_tokens price_out) / 10^6: too much where
        cached tokens are cheaper, too little by the calls that broke off before a count came.
        """
        total: dict[str, float] = {name: self._used[name] for name in COUNTS}
        if self.price_in is not None or self.price_out is not None:
            prices = {"prompt_tokens": self.price_in or 0, "output_tokens": self.price_out or 0}
            total["cost"] = sum(total[name] * price for name, price in prices.items()) / 1e6
        return total

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
        with start_blocking_portal() as portal:
            replies, stopped = portal.call(self._answer_all, conversations, sampling)
        for reply in replies:
            self._used.update({name: getattr(reply, name) for name in COUNTS})
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
            request |= {"top_p": sampling.top_p, "seed": sampling.seed}
        return request

    async def _ask(self, client: openai.AsyncOpenAI, request: dict[str, Any]) -> Outcome:
        deadline = time.monotonic() + self.budget_seconds
        for attempt in range(1, self.attempts + 1):
            seconds = min(self.timeout, deadline - time.monotonic())
            outcome = await _call(client, request, seconds)
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
        key, text, error = self._key(), reply.text, reply.error
        # A short key is a word for a server that wants none, and may well stand in a reply.
        if len(key) >= SECRET_LENGTH:
            text = text and text.replace(key, "[key]")
            error = error.replace(key, "[key]")
        error = re.sub(r"(\bsk-|\bBearer\s+)\S+", "[key]", error)
        error = "".join(letter if letter.isprintable() else " " for letter in error)
        return reply._replace(text=text, error=" ".join(error.split())[:REASON_LENGTH])

    def close(self) -> None:
        """Nothing stays open between calls."""


def _address(url: str) -> SplitResult:
    try:
        address = urlsplit(url)
        sound = address.scheme in ("http", "https") and address.hostname and address.port != 0
    except ValueError:
        sound = False
    if not sound or "@" in address.netloc or address.query or address.fragment:
        # The address is not repeated: there may be a password in it.
        raise EngineError(
            "the base URL must read like http://127.0.0.1:8000/v1 and hold no user, password or "
            "query: a key belongs in OPENAI_API_KEY"
        )
    return address


def _failed(reason: str, **known: Any) -> Outcome:
    return Outcome(Reply(None, FAILED, error=reason), **known)


async def _call(client: openai.AsyncOpenAI, request: dict[str, Any], seconds: float) -> Outcome:
    try:
        async with asyncio.timeout(seconds):
            answer = await client.chat.completions.with_raw_response.create(**request)
    except TimeoutError:
        return _failed(f"no answer within {seconds:.3g} s", again=True)
    except openai.APIStatusError as error:
        status, common = error.status_code, not COMMON.isdisjoint((error.status_code, error.code))
        again = not common and (status in (408, 409, 429) or status >= 500)
        reason = error.message.replace("Error code:", "HTTP", 1)
        wait = _retry_after(error.response.headers)
        return _failed(reason, again=again, common=common, wait=wait)
    except Exception as error:
        # Whatever a server makes the client raise must not cost the other answers of this shard.
        # The cause is the transport's, whose library the client may change.
        cause = error.__cause__ or error
        name, again = type(cause).__name__, isinstance(error, openai.APIConnectionError)
        return _failed(f"{name}: {cause}", again=again, common=name == "ConnectError")
    return _outcome(answer.content)


def _retry_after(headers: Mapping[str, str]) -> float:
    """Seconds that a server asks to wait (RFC 9110, section 10.2.3: a number or a date)."""
    value = headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, OverflowError):
            return 0.0
    return max(0.0, seconds)  # in this order, not a number becomes 0


def _outcome(body: bytes) -> Outcome:
    """Read a chat completion, whatever the server sent in its place."""
    try:
        answer = json.loads(body)
        choice = answer["choices"][0]
        message, ending = choice["message"], str(choice.get("finish_reason"))
        texts = [message.get("content"), message.get("refusal")]
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        found = body.decode("utf8", "replace")
        return _failed(f"the answer is no chat completion: {found}", again=True)
    # A refusal by the server or its filter is text as well: what it means is for parsing to say.
    # An empty text is the model's answer, unless a filter emptied it.
    written = [text for text in texts if isinstance(text, str)]
    text, counts = "\n".join(filter(None, written)), _counts(answer.get("usage"))
    if not written or (text == "" and ending == "content_filter"):
        reason = f"the answer holds no text (finish_reason {ending})"
        return Outcome(Reply(None, FAILED, **counts, error=reason))
    # JSON can spell half a surrogate pair, which no UTF-8 file can hold.
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return Outcome(Reply(text, LENGTH if ending == "length" else STOP, **counts))


def _counts(usage: Any) -> dict[str, int]:
    """Token counts as far as the server gave any that the store can hold."""
    usage = usage if isinstance(usage, dict) else {}
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    given = (usage.get("prompt_tokens"), cached, usage.get("completion_tokens"))
    whole = (n if type(n) is int and 0 <= n < 2**31 else 0 for n in given)
    return dict(zip(COUNTS, whole, strict=True))
