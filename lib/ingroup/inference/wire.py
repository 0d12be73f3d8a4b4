"""What comes over the line from a server: bodies, errors, waits, and keys that go no further.

Here is what inspect_ai and the clients below it would let pass: bodies without end or compressed,
slow calls that are sent and billed again, content in parts, keys that a server repeats.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from ingroup.inference.engine import Reply

FIRST_PAUSE, LONGEST_PAUSE, LONGEST_WAIT = 0.5, 8.0, 120.0  # seconds; the last: as a server says
# Of an answer's body: 18,432 tokens with 20 alternatives each take some 32 MB.
MOST_BYTES = 2**25
REASON_LENGTH, WORD_LENGTH, SECRET_LENGTH = 200, 4, 16  # characters


class Refused(Exception):
    """An answer that would not be better the next time."""


class Unanswered(Refused):
    """A request that a batch ended without; nobody bills it."""


def place_of(url: str) -> str:
    """An address without its scheme, and without a user or a query."""
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2] + parts.path.rstrip("/")


def causes_of(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and what it comes from, the last try's of several tries."""
    while error is not None:
        yield error
        last = getattr(error, "last_attempt", None)
        error = last.exception() if last is not None else error.__cause__


def status_of(error: BaseException) -> int:
    """The HTTP status of an error, as the clients of providers have it; 0 without one."""
    for name in ("status_code", "code"):
        status = getattr(error, name, None)
        if isinstance(status, int) and 300 <= status < 600:
            return status
    return 0


def may_help(usual: Callable[[BaseException], bool], error: BaseException) -> bool:
    """Whether a call is sent again: not one that was slow, and not after a long wait."""
    from inspect_ai._util.http import parse_retry_after_from_exception

    causes = list(causes_of(error))
    names = {type(cause).__name__ for cause in causes}
    slow = names & {"AttemptTimeoutError", "StreamIdleTimeoutError", "ReadTimeout", "TimeoutError"}
    if slow or any(isinstance(cause, Refused) for cause in causes):
        return False
    if "insufficient_quota" in str(error):  # a 429 that no waiting mends
        return False
    if any(isinstance(cause, json.JSONDecodeError) for cause in causes):  # it broke off
        return True
    wait = parse_retry_after_from_exception(error)
    return (wait is None or not wait > LONGEST_WAIT) and usual(error)


def pause(state: Any) -> float:
    """Seconds before a call is sent again: as the server says, else 0.5 to 8."""
    from inspect_ai._util.http import parse_retry_after_from_exception

    wait = parse_retry_after_from_exception(state.outcome.exception())
    if wait is not None and 0 <= wait <= LONGEST_WAIT:
        return wait
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (state.attempt_number - 1))


def keys() -> list[str]:
    """The keys that the environment holds."""
    found = []
    for name, value in os.environ.items():
        if name.endswith(("_API_KEY", "_TOKEN", "_ACCESS_KEY")) and value.strip():
            found.append(value.strip())
    return found


def without_keys(reply: Reply) -> Reply:
    """The reply as it may be stored: servers are known to repeat the key in their errors."""
    text, reasoning, model = reply.text, reply.reasoning, reply.model
    for key in keys():
        # A plain or a very short word, as a key for a server that wants none, may well be the
        # answer or a part of it: it is masked in errors alone.
        if len(key) > WORD_LENGTH and (len(key) >= SECRET_LENGTH or not key.isalpha()):
            text = text and text.replace(key, "[key]")
            reasoning = reasoning.replace(key, "[key]")
            model = model.replace(key, "[key]")
    return reply._replace(
        text=text, reasoning=reasoning, model=printable(model), error=masked(reply.error)
    )


def masked(error: str) -> str:
    """An error in one short line without keys; a very short key is masked where it stands alone."""
    for key in keys():
        around = (r"(?<!\w)", r"(?!\w)") if len(key) <= WORD_LENGTH else ("", "")
        error = re.sub(re.escape(key).join(around), "[key]", error)
    return printable(error)


def printable(text: str) -> str:
    """One short line, without what looks like a key."""
    text = re.sub(r"(\bsk-|\bBearer\s+)\S+", "[key]", text)[: 10 * REASON_LENGTH]
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(text.split())[:REASON_LENGTH]


def count(number: Any) -> int:
    """A count that the store can hold, else 0."""
    return number if type(number) is int and 0 <= number < 2**31 else 0


async def look(response: Any, bounded: bool = True) -> None:
    """Read an answer's body up to `MOST_BYTES`; a Refused where it is longer, or compressed."""
    packed = response.headers.pop("content-encoding", "identity") != "identity"
    body, problem = bytearray(), "compressed, which was not asked for" if packed else ""
    if not packed:
        async for chunk in response.stream:
            body += chunk
            if bounded and len(body) > MOST_BYTES:
                problem = f"longer than {MOST_BYTES:,} bytes"
                break
    await response.stream.aclose()
    if problem and response.is_success:
        raise Refused(f"the answer is {problem}")
    whole = b"" if problem else bytes(body)
    stream = sys.modules[type(response).__module__.partition(".")[0]].ByteStream
    response.headers.pop("content-length", None)
    response.stream = stream(_sound(whole) if response.is_success else whole)


def _sound(body: bytes) -> bytes:
    """An answer's JSON by :func:`sound`, any other body as it is; a Refused for no JSON object."""
    try:
        answer = json.loads(body)
        if isinstance(answer, dict):
            return json.dumps(sound(answer)).encode()
    except (ValueError, RecursionError):  # no JSON, or lines of it
        return body
    beginning = body[:REASON_LENGTH].decode(errors="replace")
    raise Refused(f"the answer is JSON, but no object: {beginning}")


def sound(answer: dict[str, Any]) -> dict[str, Any]:
    """A chat completion as OpenAI's client expects it; any other answer as it is.

    Content in parts becomes a text and its reasoning, and token counts that are none fall away.
    """
    try:
        choices = answer["choices"]
        for choice in choices:
            message = choice["message"]
            if isinstance(message.get("content"), list):
                texts, thoughts = _parts(message["content"])
                message["content"] = "".join(texts)
                if thoughts:
                    message["reasoning_content"] = "\n".join(thoughts)
        answer["usage"] = _usage(answer.get("usage"))
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        pass  # what it is, the client finds out
    return answer


def _parts(content: Sequence[Any]) -> tuple[list[str], list[str]]:
    """The texts of an answer's parts, and those of its reasoning."""
    texts, thoughts = [], []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
            continue
        kind = part.get("type")
        said = part.get("text") or part.get(kind) or ""
        if isinstance(said, list):
            said = "".join(_parts(said)[0])
        # A part of any other kind is no answer.
        is_answer = kind in (None, "text", "output_text", "refusal")
        (texts if is_answer else thoughts).append(str(said))
    return texts, thoughts


def _usage(usage: Any) -> dict[str, Any] | None:
    """Token counts in the form of OpenAI's, 0 where a server gave none that the store can hold."""
    if not isinstance(usage, dict):
        return None
    prompt, written = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
    details = {}
    for name, kind in (("prompt", "cached_tokens"), ("completion", "reasoning_tokens")):
        given = usage.get(f"{name}_tokens_details")
        found = count(given.get(kind)) if isinstance(given, dict) else 0
        details[f"{name}_tokens_details"] = {kind: found}
    cached = details["prompt_tokens_details"]["cached_tokens"]
    details["prompt_tokens_details"]["cached_tokens"] = min(cached, prompt)
    total = max(count(usage.get("total_tokens")), prompt + written)
    counts = {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": total}
    return counts | details
