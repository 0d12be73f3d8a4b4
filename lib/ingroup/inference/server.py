"""What OpenAI-compatible servers say: replies, scored answers, and keys that they repeat.

Servers differ in how they write a reply and why it ended. What they say is believed literally: a
reason that is not known stays unknown, and a reply is never completed. Replies are brought into
the form that OpenAI's client expects. Answers are scored from the few most probable tokens that a
server reports. No file and no message may hold a key of the environment.
"""

import json
import math
import os
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import httpx2
from openai import DefaultAsyncHttpxClient

from ingroup.inference.answers import Reply, Sampling, failed
from ingroup.inference.scoring import common_length

_KEYS = re.compile(r"(_API_KEY|_TOKEN|_ACCESS_KEY)$")
SHORTEST_KEY = 8  # characters: a shorter value may be an ordinary word

# Why a reply ended, as servers write it, in OpenAI's words. Any other reason is not known.
ENDED = {
    "stop": "stop eos eos_token end_turn stop_sequence stop_token repetition",
    "length": "length max_tokens max_output_tokens model_length length_limit",
    "content_filter": "content_filter safety prohibited_content blocklist recitation spii refusal "
    "sensitive guardrail_intervened",
}
_REASONS = {}
for _reason, _words in ENDED.items():
    _REASONS |= dict.fromkeys(_words.split(), _reason)


def without_keys(text: str) -> str:
    """Mask the keys of the environment in a text, and half characters that no file can hold.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    str
        The text with "[key]" in place of each key.
    """
    for name, key in os.environ.items():
        if _KEYS.search(name) and len(key) >= SHORTEST_KEY:
            text = text.replace(key, "[key]")
    return text.encode(errors="replace").decode()


# ---- replies


class ServerTransport(httpx2.AsyncHTTPTransport):
    """The connection to a server, which hands on each reply in the expected form.

    Attributes
    ----------
    unknown : set of str
        Reasons why replies ended that are not known.
    """

    def __init__(self) -> None:
        super().__init__(limits=httpx2.Limits(max_connections=1000))
        self.unknown: set[str] = set()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, and return the reply to it.

        Parameters
        ----------
        request : Request
            The request.

        Returns
        -------
        Response
            The reply, whose content is whole, decompressed and without keys.
        """
        response = await super().handle_async_request(request)
        # Some servers repeat a key, and inspect_ai keeps what they say.
        received = await response.aread()
        await response.aclose()
        content = without_keys(received.decode(errors="replace")).encode()
        status = response.status_code
        if response.is_success and request.url.path.endswith("/chat/completions"):
            status, content = self._expected_form(content)
        # The content is decompressed, and may have another length.
        headers = response.headers.copy()
        for changed in ("content-encoding", "content-length", "transfer-encoding"):
            headers.pop(changed, None)
        return httpx2.Response(status, headers=headers, content=content)

    def _expected_form(self, content: bytes) -> tuple[int, bytes]:
        """Return the status and the body of a chat completion, as the client expects them."""
        try:
            body = json.loads(content)
            if "choices" not in body:
                raise ValueError(str(body.get("error") or body))
            for choice in body["choices"]:
                mend_message(choice["message"])
                reason = str(choice.get("finish_reason"))
                known = _REASONS.get(reason.lower())
                if known:
                    choice["finish_reason"] = known
                elif reason != "tool_calls":
                    self.unknown.add(reason)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            message = f"the server's reply is no chat completion: {error}"
            body = {"error": {"message": message}}
            # The client raises what it makes of a status of failure, and asks once.
            return 400, json.dumps(body).encode()

        for name in ("id", "model"):
            body[name] = str(body.get(name) or "")
        body["usage"] = _usage(body.get("usage"))
        return 200, json.dumps(body).encode()


def client(transport: ServerTransport, timeout: float) -> DefaultAsyncHttpxClient:
    """Make the client of a server, which follows no redirect, as that could carry the key away.

    Parameters
    ----------
    transport : ServerTransport
        The connection.
    timeout : float
        Seconds of one call.

    Returns
    -------
    AsyncClient
        The client that OpenAI's library takes.
    """
    return DefaultAsyncHttpxClient(
        transport=transport, timeout=httpx2.Timeout(timeout, connect=30.0), follow_redirects=False
    )


def mend_message(message: dict[str, Any]) -> None:
    """Write a message's content as a text, and its reasoning apart.

    Parameters
    ----------
    message : dict
        ``content`` may be a text, a number, an object with a text, or a list of parts. It is
        changed in place.
    """
    content = message.get("content")
    if content is None or isinstance(content, str):
        return

    texts = []
    thoughts = []
    for part in content if isinstance(content, list) else [content]:
        kind, text = _part(part)
        if kind == "text":
            texts.append(text)
        else:
            thoughts.append(text)
    message["content"] = "".join(texts)
    if thoughts:
        message["reasoning_content"] = "\n".join(thoughts)


def _part(part: Any) -> tuple[str, str]:
    """Return the kind of a part of a message, "text" or "thought", and its text."""
    if not isinstance(part, dict):
        return "text", str(part)
    kind = part.get("type", "text")
    # Some servers put a text under the name of its kind, e.g. "thinking".
    text = part.get("text") or part.get(kind) or ""
    if isinstance(text, list):
        texts = [_part(inner)[1] for inner in text]
        text = "".join(texts)
    if kind in ("text", "output_text", "refusal"):
        return "text", str(text)
    return "thought", str(text)


def _usage(usage: Any) -> dict[str, Any] | None:
    """Leave out token counts that are no numbers."""
    if not isinstance(usage, dict):
        return None
    for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
        if not isinstance(usage.get(name), int | float):
            return None
    return usage


# ---- scored answers


class Token(NamedTuple):
    """A token of a reply, and the probabilities of the most probable tokens in its place."""

    text: str
    alternatives: dict[str, float]


def tokens_of(logprobs: Sequence) -> list[Token]:
    """Read the tokens of a reply from inspect_ai's log-probabilities.

    Parameters
    ----------
    logprobs : sequence
        What the server sent for each token.

    Returns
    -------
    list of Token
        The tokens, with probabilities.
    """
    tokens = []
    for entry in logprobs:
        alternatives = {entry.token: math.exp(entry.logprob)}
        for other in entry.top_logprobs or ():
            alternatives[other.token] = math.exp(other.logprob)
        tokens.append(Token(entry.token, alternatives))
    return tokens


def with_scores(reply: Reply, tokens: Sequence[Token], sampling: Sampling) -> Reply:
    """Add the probabilities of the admissible answers to a reply in free text.

    Only whole answers that stand in one token count: letters, words, and numbers of a server
    that spells 0 to 999 in one token each. All other probability lowers the option mass.

    Parameters
    ----------
    reply : Reply
        The server's reply, without its reasoning.
    tokens : sequence of Token
        Its tokens.
    sampling : Sampling
        The choices, and the prefixes behind which they are read.

    Returns
    -------
    Reply
        The reply with probabilities. It has a mass of 0 and no probabilities if an answer behind
        any prefix was not seen. It is a failed call if the server sent no log-probabilities.
    """
    if not tokens:
        return failed("the server sends no log-probabilities: use READING=free")

    whole = "".join(token.text for token in tokens)
    start = max(whole.rfind(reply.text or ""), 0)
    # Verdicts such as [[A]] and [[B]] differ behind the text with which all of them begin.
    in_order = sorted(sampling.choices)
    n_shared = common_length(in_order[0], in_order[-1])
    shared = in_order[0][:n_shared]
    endings = [choice[n_shared:] for choice in sampling.choices]
    if _spells_digits(tokens, endings):
        return reply._replace(option_mass=[0.0] * len(sampling.prefixes))

    probabilities: list[float] = []
    masses = []
    text = ""
    for prefix in sampling.prefixes:
        start = _begin(whole, prefix, shared, start)
        weights = _weights(tokens, start, endings)
        mass = sum(weights)
        masses.append(min(mass, 1.0))
        if mass == 0:
            return reply._replace(option_mass=[0.0] * len(sampling.prefixes))
        probabilities += [weight / mass for weight in weights]
        likeliest = weights.index(max(weights))
        text += prefix + sampling.choices[likeliest]
    return reply._replace(text=text, probabilities=probabilities, option_mass=masses)


def _spells_digits(tokens: Sequence[Token], choices: Sequence[str]) -> bool:
    """Tell whether a server spells numbers digit by digit, so that no token is a whole number."""
    numbers = filter(str.isdigit, choices)
    long_numbers = {number for number in numbers if len(number) > 1}
    if not long_numbers:
        return False
    for token in tokens:
        seen = set(map(str.strip, token.alternatives))
        if long_numbers & seen:
            return False
    return True


def _begin(text: str, prefix: str, shared: str, start: int) -> int:
    """Find the character behind a prefix where the choices differ, -1 without the prefix."""
    label = prefix.strip(" \n-:*")
    if label:
        escaped = re.escape(label)
        line = re.compile(rf"^\W*{escaped}[\s*_]*[:=][\s*_]*", re.I | re.M)
        match = line.search(text, start)
        return match.end() if match else -1

    if not shared:
        return start
    # A verdict stands last, and the text before it may mention others.
    last = text.rfind(shared)
    return last + len(shared) if last >= 0 else -1


def _weights(tokens: Sequence[Token], start: int, choices: Sequence[str]) -> list[float]:
    """Sum the probability of each choice in the token that holds a character of the reply."""
    weights = [0.0] * len(choices)
    end = 0
    following = [token.text for token in tokens[1:]] + [""]
    for token, next_text in zip(tokens, following, strict=True):
        end += len(token.text)
        written = token.text.strip()
        if not written or not 0 <= start < end:
            continue

        # "8.5" and "100" in two tokens are not the number in the first token.
        if written.isdigit() and re.match(r"[.,]?\d", next_text):
            return weights
        for name, probability in token.alternatives.items():
            choice = _choice_of(name.strip(), choices)
            if choice is not None:
                weights[choice] += probability
        return weights
    return weights


def _choice_of(name: str, choices: Sequence[str]) -> int | None:
    """Find the choice that a token spells, or that it alone begins."""
    if name in choices:
        return choices.index(name)
    begun = [choice for choice in choices if choice.startswith(name)]
    if name and len(begun) == 1:
        return choices.index(begun[0])
    return None
