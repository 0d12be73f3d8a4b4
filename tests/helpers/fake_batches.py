"""OpenAI's and Anthropic's batch APIs on loopback, and single calls to the same models."""

import hashlib
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.parser import BytesParser
from urllib.parse import urlsplit

from fake_openai import JSON, completion
from fault_proxy import Handler, listening

USAGE = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
LATE = "2030-01-01T00:00:00Z"


def reply_to(request) -> str:
    """Answer a request with a text that depends on its whole chat."""
    chat = request.get("messages") or request.get("input")
    turns = [text_of(turn["content"]) for turn in chat]
    if request.get("system"):  # Anthropic's, which stands apart
        turns = [text_of(request["system"]), *turns]
    return "r" + hashlib.sha256(json.dumps(turns).encode()).hexdigest()[:12]


def text_of(content) -> str:
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content)


class Gone(Exception):
    """Signal that the client of a call was killed."""


class FakeBatches:
    """Server that answers single calls at once, and batches after ``looks`` looks.

    ``at`` is called with each event before its answer: "creating" (before the batch exists),
    "created", "looked", "ended" and "results". ``outcome`` takes the text of a reply and the number
    of its earlier requests. It returns "ok", "expired" or "errored". ``problem`` is the status of a
    batch that fails as a whole, and ``reason`` its message. ``status`` is the status of OpenAI's
    "errored". Replies in ``cut`` are cut. ``single`` and ``batched`` are the requests.
    """

    def __init__(self, looks=2, outcome=lambda text, before: "ok"):
        self.looks = looks
        self.outcome = outcome

        self.at: Callable[[str], None] = lambda event: None
        self.single = []
        self.batched = []
        self.created = []
        self.problem = ""
        self.reason = "no such model"
        self.status = 500
        self.cut: set[str] = set()
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict] = {}
        self._before: Counter[str] = Counter()

    # Batches, for both APIs

    def create(self, requests, **about):
        self.at("creating")
        name = f"batch_{len(self.created)}"
        entries = []
        for custom_id, request in requests:
            text = reply_to(request)
            entries.append((custom_id, request, self.outcome(text, self._before[text])))
            self._before[text] += 1
            self.batched.append(request)

        random.Random(0).shuffle(entries)
        self.batches[name] = {"entries": entries, "looks": 0, "created": time.time(), **about}
        self.created.append(len(entries))
        self.at("created")
        return name

    def look(self, name):
        """Count a look at a batch, and tell whether the batch has ended."""
        batch = self.batches[name]
        batch["looks"] += 1
        self.at("looked")
        if batch["looks"] > self.looks:
            self.at("ended")
            return True
        return False

    # OpenAI's

    def openai(self, name, ended):
        batch = self.batches[name]
        about = {
            "id": name,
            "object": "batch",
            "endpoint": batch["endpoint"],
            "completion_window": "24h",
            "created_at": int(batch["created"]),
            "input_file_id": batch["file"],
            "status": "in_progress",
        }
        if not ended:
            return about
        if self.problem:
            errors = {"data": [{"message": self.reason}]}
            return about | {"status": self.problem, "errors": errors}

        good = []
        bad = []
        for custom_id, request, outcome in batch["entries"]:
            line = {"id": "l", "custom_id": custom_id, "response": None, "error": None}
            if outcome == "ok":
                line["response"] = {"status_code": 200, "body": self.answer(request)}
                good.append(line)
            elif outcome == "errored":
                error = {"error": {"message": "no", "type": "t", "param": None, "code": None}}
                line["response"] = {"status_code": self.status, "body": error}
                bad.append(line)
            else:
                line["error"] = {"code": "batch_expired", "message": "it expired"}
                bad.append(line)

        return about | {
            "status": "completed",
            "output_file_id": self._file(name, "out", good),
            "error_file_id": self._file(name, "err", bad),
        }

    def answer(self, request):
        """Make the body of an answer, which is cut for a reply in ``cut``."""
        body = single(request)
        if reply_to(request) in self.cut:
            body["choices"][0]["finish_reason"] = "length"
        return body

    def _file(self, name, kind, lines):
        if not lines:
            return None

        file = f"{name}-{kind}"
        self.files[file] = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        return file

    # Anthropic's

    def anthropic(self, name, ended, address):
        batch = self.batches[name]
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        counts["succeeded" if ended else "processing"] = len(batch["entries"])
        results = f"{address}/v1/messages/batches/{name}/results"

        return {
            "id": name,
            "type": "message_batch",
            "request_counts": counts,
            "processing_status": "ended" if ended else "in_progress",
            "expires_at": LATE,
            "created_at": datetime.fromtimestamp(batch["created"], UTC).isoformat(),
            "results_url": results if ended and not self.problem else None,
            "archived_at": None,
            "cancel_initiated_at": None,
            "ended_at": None,
        }

    def anthropic_results(self, name):
        lines = []
        for custom_id, request, outcome in self.batches[name]["entries"]:
            result = {"type": outcome}
            if outcome == "ok":
                result = {"type": "succeeded", "message": self.answer(request)}
            elif outcome == "errored":
                error = {"type": "overloaded_error", "message": "no"}
                result["error"] = {"type": "error", "error": error, "request_id": None}

            line = json.dumps({"custom_id": custom_id, "result": result})
            lines.append(line.encode() + b"\n")
        return b"".join(lines)

    @contextmanager
    def running(self) -> Iterator[str]:
        """Listen on loopback, and yield the address, without /v1."""
        fake = self

        class Fake(Handler):
            def say(self, body):
                content = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.reply(200, JSON, content)

            def do_POST(self):
                body = self.body()
                try:
                    self.say(self.posted(urlsplit(self.path).path, body))
                except Gone:
                    self.close_connection = True

            def do_GET(self):
                try:
                    self.say(self.got(urlsplit(self.path).path))
                except Gone:
                    self.close_connection = True
                except LookupError:
                    error = {"type": "not_found_error", "message": "unknown"}
                    self.reply(404, JSON, json.dumps({"type": "error", "error": error}).encode())

            def posted(self, path, body):
                if path == "/v1/files":
                    head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
                    parts = BytesParser().parsebytes(head + body).get_payload()
                    content = next(part for part in parts if part.get_filename())
                    name = f"file-{len(fake.files)}"
                    fake.files[name] = content.get_payload(decode=True)
                    return {
                        "id": name,
                        "object": "file",
                        "bytes": 1,
                        "created_at": 0,
                        "filename": "f",
                        "purpose": "batch",
                        "status": "processed",
                    }

                request = json.loads(body)
                if path == "/v1/batches":
                    file = request["input_file_id"]
                    requests = []
                    for text in fake.files[file].decode().splitlines():
                        line = json.loads(text)
                        assert line["url"] == request["endpoint"]
                        requests.append((line["custom_id"], line["body"]))
                    name = fake.create(requests, endpoint=request["endpoint"], file=file)
                    return fake.openai(name, False)

                if path == "/v1/messages/batches":
                    requests = []
                    for entry in request["requests"]:
                        requests.append((entry["custom_id"], entry["params"]))
                    name = fake.create(requests)
                    return fake.anthropic(name, False, self.address)

                fake.single.append(request)
                return single(request)

            @property
            def address(self):
                return f"http://{self.headers['Host']}"

            def got(self, path):
                is_anthropic = path.startswith("/v1/messages")
                if path in ("/v1/batches", "/v1/messages/batches"):
                    batches = []
                    for name, batch in fake.batches.items():
                        ended = batch["looks"] > fake.looks
                        if is_anthropic:
                            batches.append(fake.anthropic(name, ended, self.address))
                        else:
                            batches.append(fake.openai(name, ended))
                    return {"object": "list", "data": batches, "has_more": False}

                if file := re.fullmatch(r"/v1/files/(.+)/content", path):
                    fake.at("results")
                    return fake.files[file[1]]
                if file := re.fullmatch(r"/v1/files/(.+)", path):
                    return {"id": file[1], "object": "file", "bytes": len(fake.files[file[1]])}
                if batch := re.fullmatch(r"/v1/batches/(.+)", path):
                    return fake.openai(batch[1], fake.look(batch[1]))
                if batch := re.fullmatch(r"/v1/messages/batches/(.+)/results", path):
                    fake.at("results")
                    return fake.anthropic_results(batch[1])
                if batch := re.fullmatch(r"/v1/messages/batches/(.+)", path):
                    return fake.anthropic(batch[1], fake.look(batch[1]), self.address)
                return {}

        with listening(Fake) as address:
            yield address


def single(request):
    """Make the body of an answer to one request."""
    text = reply_to(request)
    if "input" in request:  # OpenAI's responses
        part = {"type": "output_text", "text": text, "annotations": []}
        message = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
        return {
            "id": "r",
            "object": "response",
            "created_at": 0,
            "model": "fake",
            "status": "completed",
            "output": [message | {"content": [part]}],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                "input_tokens": 10,
                "output_tokens": 2,
                "total_tokens": 12,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 0},
            },
        }

    if request["model"].startswith("claude"):
        return {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "fake",
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 2},
        }
    return completion(text) | {"usage": USAGE}
