"""OpenAI's chat API on loopback, in the parts that the engine uses."""

import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from fault_proxy import Handler, listening

JSON = {"Content-Type": "application/json"}


class Call(NamedTuple):
    """One request: its JSON, its Authorization header and its arrival (seconds since 1970)."""

    request: dict[str, Any]
    authorization: str
    arrived: float

    @property
    def prompt(self) -> str:
        return self.request["messages"][-1]["content"]


def text_of(messages: list[dict[str, str]]) -> str:
    """Answer a chat with a number from 0 to 100 that depends on the whole chat."""
    return str(int(hashlib.sha256(json.dumps(messages).encode()).hexdigest(), 16) % 101)


def completion(text: Any, ending: Any = "stop", **message: Any) -> dict[str, Any]:
    """Make the body of an answer, without token counts."""
    message = {"role": "assistant", "content": text} | message
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 0,
        "model": "fake",
        "choices": [{"index": 0, "message": message, "finish_reason": ending}],
    }


def ok(body: Any):
    """Make an answer for a script: a body as JSON."""
    return 200, JSON, json.dumps(body).encode()


def fault(status: int, message: str = "no", code: str | None = None, **headers: str):
    """Make an answer for a script: an error in OpenAI's form."""
    body = {"error": {"message": message, "type": "t", "param": None, "code": code}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, named | JSON, json.dumps(body).encode()


class FakeOpenAI:
    """Server that answers by `text_of`, or as its script says.

    The script takes a `Call` and the number of earlier calls with its prompt. It returns status,
    headers and body, or None for the usual answer. A call is answered once ``gather`` calls have
    been here together, or after a minute.
    """

    def __init__(self, script: Callable[[Call, int], Any] | None = None, gather: int = 1):
        self.script = script
        self.gather = gather
        self.calls: list[Call] = []
        self._times_asked: Counter[str] = Counter()
        self.present = 0
        self.most_present = 0
        self._change = threading.Condition()

    def asked(self, prompt: str) -> list[Call]:
        return [call for call in self.calls if call.prompt == prompt]

    def answer(self, body: bytes, authorization: str):
        call = Call(json.loads(body), authorization, time.time())
        with self._change:
            before = self._times_asked[call.prompt]
            self._times_asked[call.prompt] += 1
            self.calls.append(call)

        scripted = self.script(call, before) if self.script else None
        if scripted is not None:
            return scripted

        messages = call.request["messages"]
        words = sum(len(message["content"].split()) for message in messages)
        usage = {"prompt_tokens": words, "completion_tokens": 1}
        usage["prompt_tokens_details"] = {"cached_tokens": words // 2}
        return ok(completion(text_of(messages)) | {"usage": usage})

    def _enter(self) -> None:
        with self._change:
            self.present += 1
            self.most_present = max(self.most_present, self.present)
            self._change.notify_all()
            self._change.wait_for(lambda: self.most_present >= self.gather, timeout=60)

    @contextmanager
    def running(self) -> Iterator[str]:
        """Listen on loopback, and yield the address."""
        fake = self

        class Fake(Handler):
            def do_POST(self):
                fake._enter()
                try:
                    answer = fake.answer(self.body(), self.headers.get("Authorization", ""))
                finally:
                    with fake._change:
                        fake.present -= 1
                self.reply(*answer)

        with listening(Fake) as address:
            yield address
