"""An OpenAI-compatible server on loopback, whose replies a test writes."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# Makes status, content type and body of the reply to a request.
Script = Callable[[dict[str, Any]], tuple[int, str, str]]


def completion(content: Any, finish_reason: Any = "stop", **changes: Any) -> str:
    """Write the body of a chat completion."""
    message = {"role": "assistant", "content": content}
    body = {
        "id": "c",
        "object": "chat.completion",
        "created": 0,
        "model": "fake",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 50, "completion_tokens": 30, "total_tokens": 80},
    }
    return json.dumps(body | changes)


def reply(content: Any, finish_reason: Any = "stop", **changes: Any) -> tuple[int, str, str]:
    """Make a whole reply of the server."""
    return 200, "application/json", completion(content, finish_reason, **changes)


class FakeServer:
    """The server: its script, and the requests that it got, with their keys."""

    def __init__(self, script: Script):
        self.script = script
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []

    def prompts(self) -> list[str]:
        """List the last turns that were asked, in the order in which they came."""
        return [request["messages"][-1]["content"] for request in self.requests]


@contextmanager
def running(script: Script) -> Iterator[tuple[FakeServer, str]]:
    """Run a server, and yield it with its address."""
    fake = FakeServer(script)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            fake.requests.append(request)
            fake.keys.append(self.headers.get("Authorization", ""))
            status, kind, body = fake.script(request)
            content = body.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *parts: Any) -> None:
            """Write no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield fake, f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
