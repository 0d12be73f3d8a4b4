"""The body of a chat completion, read whatever a server sent in its place."""

import json
from typing import Any

from ingroup.inference.engine import FAILED, LENGTH, STOP, Reply


def read(body: bytes) -> Reply:
    """The reply in a chat completion; a ValueError with the body where it is none."""
    try:
        answer = json.loads(body)
        first = answer["choices"][0]
        texts = [first["message"].get("content"), first["message"].get("refusal")]
        name, usage, ending = answer.get("model"), answer.get("usage"), first.get("finish_reason")
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        found = body.decode("utf8", "replace")
        raise ValueError(f"the answer is no chat completion: {found}") from error
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
