"""Responses of servers: bodies, errors, waits, and keys that must not be stored.

This module guards against faults that inspect_ai and the clients below it let pass. These are
compressed or endless bodies, slow calls that are sent and billed again, content in parts, and keys
that a server repeats.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from ingroup.inference.engine import Reply

FIRST_PAUSE = 0.5  # seconds
LONGEST_PAUSE = 8.0  # seconds
LONGEST_WAIT = 120.0  # seconds, where a server says how long to wait
MOST_BYTES = 2**25  # of a body: 18,432 tokens with 20 alternatives each take some 32 MB
REASON_LENGTH = 200  # characters of an error that are shown
WORD_LENGTH = 4  # characters of a key that may be an ordinary word
SECRET_LENGTH = 16  # characters of a key that is masked even if it has letters alone
# What clients raise for a call that took too long.
TIMEOUT_ERRORS = {"AttemptTimeoutError", "StreamIdleTimeoutError", "ReadTimeout", "TimeoutError"}


class UnusableAnswer(Exception):
    """An answer that cannot be used, and that a repeated call would not improve."""


class Unanswered(UnusableAnswer):
    """A request of a batch that ended without an answer to it. Nobody bills it."""


def host_and_path(url: str) -> str:
    """Return an address without its scheme, user and query.

    Parameters
    ----------
    url : str
        A server's address.

    Returns
    -------
    str
        The host, port and path of the address.
    """
    parts = urlsplit(url)
    # A user and a key may stand before the host, and this goes into manifests.
    return parts.netloc.rpartition("@")[2] + parts.path.rstrip("/")


def causes_of(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and, one after the other, its causes.

    Parameters
    ----------
    error : BaseException or None
        The exception, or nothing.

    Yields
    ------
    BaseException
        The exception, then its cause, then the cause's cause, and so on. Where there were several
        tries, the cause is the error of the last one.
    """
    while error is not None:
        yield error
        # tenacity's RetryError keeps its last try in an attribute, not as its cause.
        last = getattr(error, "last_attempt", None)
        error = last.exception() if last is not None else error.__cause__


def status_of(error: BaseException) -> int:
    """Read the HTTP status of an error of a provider's client.

    Parameters
    ----------
    error : BaseException
        Any exception.

    Returns
    -------
    int
        The status from 300 to 599, or 0 where the error has none.
    """
    # OpenAI's and Anthropic's errors have a status_code, Google's have a code.
    for name in ("status_code", "code"):
        status = getattr(error, name, None)
        if isinstance(status, int) and 300 <= status < 600:
            return status
    return 0


def should_retry(usual: Callable[[BaseException], bool], error: BaseException) -> bool:
    """Tell whether a failed call is sent again.

    A slow call is not sent again, nor is a call for which the server names a long wait.

    Parameters
    ----------
    usual : callable
        The rule of inspect_ai, for an error that nothing here decides.
    error : BaseException
        Why the call failed.

    Returns
    -------
    bool
        True where another try may succeed.
    """
    from inspect_ai._util.http import parse_retry_after_from_exception

    causes = list(causes_of(error))
    for cause in causes:
        if type(cause).__name__ in TIMEOUT_ERRORS or isinstance(cause, UnusableAnswer):
            return False
    # This is the 429 of an account without credit, which no waiting mends.
    if "insufficient_quota" in str(error):
        return False
    # The answer broke off before its JSON was whole.
    if any(isinstance(cause, json.JSONDecodeError) for cause in causes):
        return True

    wait = parse_retry_after_from_exception(error)
    if wait is not None and wait > LONGEST_WAIT:
        return False
    return usual(error)


def pause_seconds(state: Any) -> float:
    """Choose the pause before a call is sent again.

    Parameters
    ----------
    state : RetryCallState
        The state of tenacity, with the last try and the number of tries.

    Returns
    -------
    float
        Seconds: as the server says, or else 0.5 to 8, doubled from try to try.
    """
    from inspect_ai._util.http import parse_retry_after_from_exception

    wait = parse_retry_after_from_exception(state.outcome.exception())
    if wait is not None and 0 <= wait <= LONGEST_WAIT:
        return wait
    doubled = FIRST_PAUSE * 2 ** (state.attempt_number - 1)
    return min(LONGEST_PAUSE, doubled)


def environment_keys() -> list[str]:
    """List the keys that the environment holds.

    Returns
    -------
    list of str
        Values of variables whose names end like names of keys and tokens.
    """
    values = []
    for name, value in os.environ.items():
        if name.endswith(("_API_KEY", "_TOKEN", "_ACCESS_KEY")) and value.strip():
            values.append(value.strip())
    return values


def without_keys(reply: Reply) -> Reply:
    """Mask keys in a reply that is to be stored.

    Servers are known to repeat keys in errors.

    Parameters
    ----------
    reply : Reply
        A server's reply.

    Returns
    -------
    Reply
        The reply with "[key]" instead of each key. A key that is a plain or very short word is
        line_without_keys in the error alone, since elsewhere it may be an answer.
    """
    text = reply.text
    reasoning = reply.reasoning
    model = reply.model
    for key in environment_keys():
        # A plain or a very short word, as a key for a server that wants none, may well be the
        # answer or a part of it: it is masked in errors alone.
        is_plain_word = len(key) < SECRET_LENGTH and key.isalpha()
        if len(key) <= WORD_LENGTH or is_plain_word:
            continue
        text = text and text.replace(key, "[key]")
        reasoning = reasoning.replace(key, "[key]")
        model = model.replace(key, "[key]")

    return reply._replace(
        text=text,
        reasoning=reasoning,
        model=short_line(model),
        error=line_without_keys(reply.error),
    )


def line_without_keys(error: str) -> str:
    """Write an error on one short line, with "[key]" in place of each key.

    Parameters
    ----------
    error : str
        The message of an error.

    Returns
    -------
    str
        The line. A very short key is masked only where it is a whole word.
    """
    for key in environment_keys():
        pattern = re.escape(key)
        if len(key) <= WORD_LENGTH:
            pattern = rf"(?<!\w){pattern}(?!\w)"
        error = re.sub(pattern, "[key]", error)
    return short_line(error)


def short_line(text: str) -> str:
    """Write a text on one short line, without words that look like a key.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    str
        At most `REASON_LENGTH` printable characters.
    """
    masked_text = re.sub(r"(\bsk-|\bBearer\s+)\S+", "[key]", text)
    # Of a text that may be of any length only the beginning is looked at.
    beginning = masked_text[: 10 * REASON_LENGTH]
    letters = [letter if letter.isprintable() else " " for letter in beginning]
    one_line = " ".join("".join(letters).split())
    return one_line[:REASON_LENGTH]


def valid_count(number: Any) -> int:
    """Return a count that the store can hold.

    Parameters
    ----------
    number : object
        The object that a server sent as a count.

    Returns
    -------
    int
        The count, or 0 for anything but an int from 0 to 2^31 - 1.
    """
    return number if type(number) is int and 0 <= number < 2**31 else 0


async def read_body(response: Any, bounded: bool = True) -> None:
    """Read an answer's body, and put it back in a form that OpenAI's client expects.

    Parameters
    ----------
    response : Response
        A response of httpx or httpx2, whose stream is replaced.
    bounded : bool
        Whether at most `MOST_BYTES` are read.

    Raises
    ------
    UnusableAnswer
        The answer is longer, compressed, or JSON that is not an object.
    """
    # The stream is read chunk by chunk, so that a body without end never fills the memory.
    body = bytearray()
    problem = ""
    # A few compressed bytes can unpack to any size.
    if response.headers.pop("content-encoding", "identity") != "identity":
        problem = "compressed, which was not asked for"
    else:
        async for chunk in response.stream:
            body += chunk
            if bounded and len(body) > MOST_BYTES:
                problem = f"longer than {MOST_BYTES:,} bytes"
                break
    await response.stream.aclose()
    # An error goes on to the client for its status, and only loses a body that cannot be read.
    if problem and response.is_success:
        raise UnusableAnswer(f"the answer is {problem}")

    content = b"" if problem else bytes(body)
    # httpx and httpx2 each take a stream of their own class alone; either is loaded by now.
    package = type(response).__module__.partition(".")[0]
    stream = sys.modules[package].ByteStream
    # The body may be longer or shorter than it came.
    response.headers.pop("content-length", None)
    response.stream = stream(_normalised_body(content) if response.is_success else content)


def _normalised_body(body: bytes) -> bytes:
    """Return a body whose JSON object `normalise` has changed. A body without JSON is unchanged.

    Raise an UnusableAnswer if the JSON is not an object.
    """
    try:
        answer = json.loads(body)
        if isinstance(answer, dict):
            return json.dumps(normalise(answer)).encode()
    except (ValueError, RecursionError):  # not JSON, or one JSON text per line
        return body
    beginning = body[:REASON_LENGTH].decode(errors="replace")
    raise UnusableAnswer(f"the answer is JSON, but no object: {beginning}")


def normalise(answer: dict[str, Any]) -> dict[str, Any]:
    """Change a chat completion into the form that OpenAI's client expects.

    Content in parts becomes a text and its reasoning, and invalid token counts become 0. Any other
    answer is returned unchanged.

    Parameters
    ----------
    answer : dict
        The body of an answer, which is changed in place.

    Returns
    -------
    dict
        The same object.
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
        # The client finds out what this is, and raises an error of its own.
        pass
    return answer


def _parts(content: Sequence[Any]) -> tuple[list[str], list[str]]:
    """Split content in parts into the texts of the answer and the texts of its reasoning."""
    texts = []
    thoughts = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
            continue

        kind = part.get("type")
        # Some servers put a text under the name of its kind, e.g. "thinking".
        text = part.get("text") or part.get(kind) or ""
        if isinstance(text, list):
            text = "".join(_parts(text)[0])
        # A part of any other kind is not an answer.
        if kind in (None, "text", "output_text", "refusal"):
            texts.append(str(text))
        else:
            thoughts.append(str(text))
    return texts, thoughts


def _usage(usage: Any) -> dict[str, Any] | None:
    """Convert token counts to OpenAI's form, None if there are none.

    A count that is missing or that the store cannot hold becomes 0.
    """
    if not isinstance(usage, dict):
        return None
    prompt = valid_count(usage.get("prompt_tokens"))
    completion = valid_count(usage.get("completion_tokens"))
    total = valid_count(usage.get("total_tokens"))
    cached = _detail(usage, "prompt_tokens_details", "cached_tokens")
    reasoning = _detail(usage, "completion_tokens_details", "reasoning_tokens")

    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        # Some servers count reasoning in the total alone, from which the engine takes it.
        "total_tokens": max(total, prompt + completion),
        "prompt_tokens_details": {"cached_tokens": min(cached, prompt)},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def _detail(usage: dict[str, Any], details: str, name: str) -> int:
    """Read a count among the details of another count, e.g. the cached tokens of a prompt."""
    counts = usage.get(details)
    return valid_count(counts.get(name)) if isinstance(counts, dict) else 0
