"""Any server that speaks OpenAI's chat API, through the official client, which retries."""

import asyncio
import json
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import httpx2  # the client's own transport, and what it waits with
import openai
from anyio.from_thread import start_blocking_portal

from ingroup.design import Message
from ingroup.inference.engine import FAILED, LENGTH, NO_CHOICES, STOP, EngineError, Reply, Sampling
from ingroup.parameters import address

OFFICIAL = "https://api.openai.com/v1"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
# Status or code of an error that no other prompt would mend.
COMMON = {401, 402, 403, 404, "insufficient_quota", "unsupported_parameter", "unsupported_value"}
REASON_LENGTH, WORD_LENGTH, SECRET_LENGTH = 200, 4, 16  # characters
PATIENCE = 16  # trials
MOST_BYTES = 2**20  # of an answer's body; the longest reply that a study asks for has some thousand


class BrokenBody(httpx2.RemoteProtocolError):
    """A body that is no chat completion: for the client a broken connection, tried again."""


class Refused(openai.OpenAIError):
    """An answer that would not be better the next time: the client does not try it again."""


class Elsewhere(Refused):
    """A redirect to another server, which was not chosen to see the prompts."""


class OpenAIEngine:
    """Chats sent to a server, a bounded number at a time.

    The key is read from ``OPENAI_API_KEY`` at each use and stands nowhere else; a server on this
    machine needs none. Chats go out as messages: template and BOS are the server's. ``base_url``,
    up to and with ``/v1``, is ``OPENAI_BASE_URL`` or OpenAI's own unless given. EngineError where
    the key is missing, InputError where the address is none or holds a secret.

    A trial is given up after so many ``attempts`` or ``budget_seconds``, waits included. The client
    tries status 408, 409, 429 and 5xx, ``timeout`` seconds of silence, broken connections and
    broken answers again, after the time that the server names (a trial fails at once where that is
    above two minutes) or waits of 0.5 to 8 s.
    """

    asks_again = True
    attempts, timeout, budget_seconds = 6, 60.0, 600.0

    def __init__(self, model: str, base_url: str = "", in_flight: int = 16):
        self.model, self.in_flight = model, in_flight
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

    def knock(self) -> "OpenAIEngine":
        """Itself; EngineError where nothing listens at the address. What answers is not read."""
        try:
            with httpx2.stream("GET", self.base_url, timeout=10):
                pass
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            where = f"no server is at {self.identity()['base_url']} ({error})"
            raise EngineError(f"{where}: start it, or check BASE_URL") from error
        except httpx2.HTTPError:
            pass  # a server that says something else is there
        return self

    def identity(self) -> dict[str, str]:
        """Engine, the client's version, model, and the server's address without its scheme.

        With its port: two servers on one machine may have one name for two models.
        """
        return {
            "engine": "openai",
            "engine_version": openai.__version__,
            "model": self.model,
            "base_url": self._address.netloc + self._address.path.rstrip("/"),
        }

    def answer_each(
        self, conversations: Sequence[Sequence[Message]], sampling: Sampling,
        keep: Callable[[int, Reply], None] = lambda place, reply: None,
    ) -> list[Reply]:  # fmt: skip
        """One reply a conversation, in order; ``keep`` gets each, with its place, as it comes.

        EngineError where the first 16 trials to end (or all, where there are fewer) failed for a
        cause that is not theirs: a wrong key, no such model, no credit, no server, a redirect to
        another one. Any other failure is a reply that says why. An interrupt cancels the calls.
        """
        if sampling.choices:
            raise EngineError(f"a server of this API answers {NO_CHOICES}")
        with start_blocking_portal() as portal:  # a loop of its own, in a thread
            replies, stopped = portal.call(self._answer_all, conversations, sampling, keep)
        if stopped:
            raise EngineError(
                f"{self.identity()['base_url']} does not answer for the model {self.model!r} "
                f"({stopped}): check OPENAI_API_KEY, the model's name and the base URL"
            )
        return replies

    answer = answer_each  # for who asks a few

    async def _answer_all(
        self, conversations: Sequence[Sequence[Message]], sampling: Sampling,
        keep: Callable[[int, Reply], None],
    ) -> tuple[list[Reply], str]:  # fmt: skip
        slots, patience = asyncio.Semaphore(self.in_flight), min(PATIENCE, len(conversations))
        ended: list[bool] = []
        stopped = ""

        async def one(place: int, messages: Sequence[Message]) -> Reply:
            nonlocal stopped
            # A trial that waits keeps its slot: a server that asks for patience gets it.
            async with slots:
                if stopped:
                    return Reply(None, FAILED, error=stopped)
                reply, common = await self._ask(client, self._request(messages, sampling))
            reply = self._without_key(reply)
            keep(place, reply)
            ended.append(common)
            if len(ended) == patience and all(ended):
                stopped = reply.error
            return reply

        hooks = {"request": [self._stay], "response": [_look]}
        async with openai.AsyncOpenAI(
            api_key=self._key() or "none",
            base_url=self.base_url,
            max_retries=self.attempts - 1,
            timeout=self.timeout,
            default_headers={"Accept-Encoding": "identity"},  # small bodies may unpack to gigabytes
            http_client=openai.DefaultAsyncHttpx2Client(event_hooks=hooks),
        ) as client:
            asked = [asyncio.ensure_future(one(*chat)) for chat in enumerate(conversations)]
            try:
                return await asyncio.gather(*asked), stopped
            finally:
                for task in asked:
                    task.cancel()

    async def _stay(self, request: httpx2.Request) -> None:
        """Refuse a request that a redirect made for another server."""
        asked = httpx2.URL(self.base_url)
        if (request.url.scheme, request.url.netloc) != (asked.scheme, asked.netloc):
            there = f"{request.url.scheme}://{request.url.netloc.decode()}"
            raise Elsewhere(f"the server sends its calls on to {there}")

    def _request(self, messages: Sequence[Message], sampling: Sampling) -> dict[str, Any]:
        # OpenAI's newer models refuse the name that every other server knows.
        official = self._address.hostname.endswith("api.openai.com")
        longest = "max_completion_tokens" if official else "max_tokens"
        request = {"model": self.model, "messages": list(messages), longest: sampling.max_tokens}
        request["temperature"] = sampling.temperature
        if sampling.temperature > 0:
            request |= {"top_p": sampling.top_p, "seed": sampling.trial_seed(messages)}
        return request

    async def _ask(self, client: openai.AsyncOpenAI, request: dict[str, Any]) -> tuple[Reply, bool]:
        """The reply, and whether the cause of a failure is common to all prompts."""
        common = False
        try:
            async with asyncio.timeout(self.budget_seconds):
                answer = await client.chat.completions.with_raw_response.create(**request)
            return _completion(answer.content), False
        except TimeoutError:
            reason = f"no answer within {self.budget_seconds:.3g} s"
        except openai.APITimeoutError:
            reason = f"no answer within {self.timeout:.3g} s"
        except openai.APIStatusError as error:
            common = not COMMON.isdisjoint((error.status_code, error.code))
            reason = error.message.replace("Error code:", "HTTP", 1)
        except Refused as error:
            reason, common = str(error), isinstance(error, Elsewhere)
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
        key, error = self._key(), reply.error
        # A plain or a very short word, as a key for a server that wants none, may well be the
        # answer or a part of it: it is masked in errors alone, a short one where it stands alone.
        short, plain = len(key) <= WORD_LENGTH, len(key) < SECRET_LENGTH and key.isalpha()
        if not (short or plain):
            masked = [text and text.replace(key, "[key]") for text in (reply.text, reply.model)]
            reply = reply._replace(text=masked[0], model=masked[1])
        if key:
            around = r"(?<!\w)", r"(?!\w)"
            error = re.sub(re.escape(key).join(around if short else ("", "")), "[key]", error)
        return reply._replace(error=_printable(error), model=_printable(reply.model))

    def close(self) -> None:
        """Nothing stays open between calls."""


def _printable(text: str) -> str:
    """One short line, without what looks like a key."""
    text = re.sub(r"(\bsk-|\bBearer\s+)\S+", "[key]", text)[: 10 * REASON_LENGTH]
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(text.split())[:REASON_LENGTH]


async def _look(response: httpx2.Response) -> None:
    """Say to the client what else it should try again, and what not."""
    packed = response.headers.pop("content-encoding", "identity") != "identity"
    body, problem = bytearray(), "compressed, which was not asked for" if packed else ""
    async for chunk in response.stream:
        body += chunk
        if len(body) > MOST_BYTES:
            problem = problem or f"longer than {MOST_BYTES:,} bytes"
            break
    await response.stream.aclose()
    if problem and response.is_success:
        raise Refused(f"the answer is {problem}")
    response.stream = httpx2.ByteStream(b"" if problem else bytes(body))
    if b"insufficient_quota" in body:  # a 429 that no waiting mends
        response.headers["x-should-retry"] = "false"
    if response.is_success:
        _completion(bytes(body))


def _completion(body: bytes) -> Reply:
    """The reply in a chat completion's body; a BrokenBody with the body where it is none."""
    try:
        answer = json.loads(body)
        first = answer["choices"][0]
        texts = [first["message"].get("content"), first["message"].get("refusal")]
        name, usage, ending = answer.get("model"), answer.get("usage"), first.get("finish_reason")
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        found = body.decode("utf8", "replace")
        raise BrokenBody(f"the answer is no chat completion: {found}") from None
    name = _encodable(name) if isinstance(name, str) else ""
    counts = _counts(usage)
    # A refusal by the server or its filter is text as well: what it means is for parsing to say.
    # An empty text is the model's answer, unless a filter emptied it.
    written = [text for text in texts if isinstance(text, str)]
    text = _encodable("\n".join(filter(None, written)))
    if not written or (text == "" and ending == "content_filter"):
        reason = f"the answer holds no text (finish_reason {ending})"
        return Reply(None, FAILED, *counts, error=reason, model=name)
    return Reply(text, LENGTH if ending == "length" else STOP, *counts, model=name)


def _encodable(text: str) -> str:
    """JSON can spell half a surrogate pair, which no UTF-8 file can hold."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _counts(usage: Any) -> list[int]:
    """Tokens of prompt, cache and reply, as far as the server gave any that the store can hold."""
    usage = usage if isinstance(usage, dict) else {}
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    given = (usage.get("prompt_tokens"), cached, usage.get("completion_tokens"))
    return [n if type(n) is int and 0 <= n < 2**31 else 0 for n in given]
