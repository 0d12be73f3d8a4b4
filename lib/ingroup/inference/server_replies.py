"""Replies of OpenAI-compatible servers, brought into the form that OpenAI's client expects.

Servers differ in how they write a reply and why it ended. What they say is believed literally: a
reason that is not known stays unknown, and a reply is never completed.
"""

import json
from typing import Any

import httpx2
from openai import DefaultAsyncHttpxClient

from ingroup.inference.keys import without_keys

# Why a reply ended, as servers write it, in OpenAI's words. Any other reason is not known.
ENDED = {
    "stop": "stop eos eos_token end_turn stop_sequence stop_token repetition",
    "length": "length max_tokens max_output_tokens model_length length_limit",
    "content_filter": "content_filter safety prohibited_content blocklist recitation spii refusal "
    "sensitive guardrail_intervened",
}
_REASONS = {written: reason for reason, words in ENDED.items() for written in words.split()}


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
        content = without_keys((await response.aread()).decode(errors="replace")).encode()
        await response.aclose()
        status = response.status_code
        if response.is_success and request.url.path.endswith("/chat/completions"):
            status, content = self._expected_form(content)
        # The content is decompressed, and may have another length.
        changed = ("content-encoding", "content-length", "transfer-encoding")
        headers = [pair for pair in response.headers.items() if pair[0].lower() not in changed]
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
                if reason.lower() in _REASONS:
                    choice["finish_reason"] = _REASONS[reason.lower()]
                elif reason != "tool_calls":
                    self.unknown.add(reason)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            message = f"the server's reply is no chat completion: {error}"
            # The client raises what it makes of a status of failure, and asks once.
            return 400, json.dumps({"error": {"message": message}}).encode()
        body["model"] = body.get("model") or ""
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
        transport=transport,
        timeout=httpx2.Timeout(timeout, connect=30.0),
        follow_redirects=False,
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
        (texts if kind == "text" else thoughts).append(text)
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
        text = "".join(_part(inner)[1] for inner in text)
    is_answer = kind in ("text", "output_text", "refusal")
    return "text" if is_answer else "thought", str(text)


def _usage(usage: Any) -> dict[str, Any] | None:
    """Leave out token counts that are no numbers."""
    counts = usage if isinstance(usage, dict) else {}
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    is_whole = all(isinstance(counts.get(name), int | float) for name in names)
    return counts if is_whole else None
