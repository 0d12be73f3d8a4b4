"""One call to OpenAI's chat API, and what became of it, whatever the server sent."""

import asyncio
import json
import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

import openai

from ingroup.inference.engine import FAILED, LENGTH, STOP, Reply

# Status or code of an error that no other prompt would mend.
COMMON = {401, 402, 403, 404, "insufficient_quota", "unsupported_parameter", "unsupported_value"}
COUNTS = ("prompt_tokens", "cached_tokens", "output_tokens")
BROKEN = (ValueError, RecursionError, LookupError, TypeError, AttributeError)


class Outcome(NamedTuple):
    """What became of a call, whether a later one may do better (after how many seconds), and
    whether the cause of a failure is common to all prompts."""

    reply: Reply
    again: bool = False
    common: bool = False
    wait: float = 0.0


async def complete(
    client: openai.AsyncOpenAI, request: Mapping[str, Any], seconds: float
) -> Outcome:
    """Send one request and read what comes; no error but an interrupt gets out.

    Parameters
    ----------
    client : openai.AsyncOpenAI
        With its own retries off.
    request : mapping
        Arguments of ``chat.completions.create``.
    seconds : float
        Longest wait, from the connection to the last byte.
    """
    try:
        async with asyncio.timeout(seconds):
            answer = await client.chat.completions.with_raw_response.create(**request)
    except TimeoutError:
        return _failed(f"no answer within {seconds:.3g} s", again=True)
    except openai.APIStatusError as error:
        status, common = error.status_code, not COMMON.isdisjoint((error.status_code, error.code))
        again = not common and (status in (408, 409, 429) or status >= 500)
        reason = error.message.replace("Error code:", "HTTP", 1)
        wait = retry_after(error.response.headers)
        return _failed(reason, again=again, common=common, wait=wait)
    except Exception as error:
        # Whatever a server makes the client raise must not cost the other answers of this shard.
        # The cause is the transport's, whose library the client may change.
        cause = error.__cause__ or error
        name, again = type(cause).__name__, isinstance(error, openai.APIConnectionError)
        return _failed(f"{name}: {cause}", again=again, common=name == "ConnectError")
    return read(answer.content, request.get("top_logprobs", 0))


def _failed(reason: str, **known: Any) -> Outcome:
    return Outcome(Reply(None, FAILED, error=reason), **known)


def retry_after(headers: Mapping[str, str]) -> float:
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


def read(body: bytes, logprobs: int = 0) -> Outcome:
    """Read a chat completion, whatever the server sent in its place.

    Parameters
    ----------
    body : bytes
        The answer's JSON.
    logprobs : int
        How many of the first tokens were asked for. An answer that lacks them, or whose are
        broken, is an answer all the same.
    """
    try:
        answer = json.loads(body)
        choice = answer["choices"][0]
        message, ending = choice["message"], str(choice.get("finish_reason"))
        texts = [message.get("content"), message.get("refusal")]
    except BROKEN:
        found = body.decode("utf8", "replace")
        return _failed(f"the answer is no chat completion: {found}", again=True)
    # A refusal by the server or its filter is text as well: what it means is for parsing to say.
    # An empty text is the model's answer, unless a filter emptied it.
    written = [text for text in texts if isinstance(text, str)]
    text, counts = "\n".join(filter(None, written)), _counts(answer.get("usage"))
    if not written or (text == "" and ending == "content_filter"):
        reason = f"the answer holds no text (finish_reason {ending})"
        return Outcome(Reply(None, FAILED, **counts, error=reason))
    reason = LENGTH if ending == "length" else STOP
    top = _top_logprobs(choice, logprobs)
    return Outcome(Reply(_encodable(text), reason, **counts, top_logprobs=top))


def _encodable(text: str) -> str:
    """JSON can spell half a surrogate pair, which no UTF-8 file can hold."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _top_logprobs(choice: dict[str, Any], number: int) -> tuple[tuple[str, float], ...]:
    """The most probable first tokens, most probable first; none where one of them is broken."""
    if not number:
        return ()
    try:
        given = choice["logprobs"]["content"][0]["top_logprobs"]
        found = [(_encodable(one["token"]), float(one["logprob"])) for one in given]
    except (*BROKEN, OverflowError):
        return ()
    # Rounding may lift a sure token a little above 0.
    if not all(math.isfinite(value) and value < 1e-3 for _, value in found):
        return ()
    return tuple(sorted(found, key=lambda one: -one[1])[:number])


def _counts(usage: Any) -> dict[str, int]:
    """Token counts as far as the server gave any that the store can hold."""
    usage = usage if isinstance(usage, dict) else {}
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    given = (usage.get("prompt_tokens"), cached, usage.get("completion_tokens"))
    whole = (n if type(n) is int and 0 <= n < 2**31 else 0 for n in given)
    return dict(zip(COUNTS, whole, strict=True))
