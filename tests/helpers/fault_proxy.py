"""A proxy on loopback that spoils calls, the same calls for the same seed."""

import hashlib
import http.client
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

FAULTS = ("delay", "cut", "429", "500", "json")
SHARE = 0.3  # of the calls
DELAY = 0.05  # seconds
RETRY_AFTER = 0.02  # seconds
HOP = {"connection", "transfer-encoding", "content-length", "date", "server", "host"}


class Server(ThreadingHTTPServer):
    """Server of many calls at once that is silent about clients that leave."""

    request_queue_size = 256

    def handle_error(self, request, client_address):
        pass


class Handler(BaseHTTPRequestHandler):
    """Handler that reads a whole request, writes a whole answer and keeps the connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def reply(self, status: int, headers: Mapping[str, str], body: bytes, share: float = 1) -> None:
        """Send an answer, or only a share of its body and then break the connection."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: int(share * len(body))])
        self.close_connection = self.close_connection or share < 1

    def log_message(self, *args):
        pass


@contextmanager
def listening(handler: type[Handler]) -> Iterator[str]:
    """Serve on a free port of 127.0.0.1, and yield the address."""
    with Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def end_to_end(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in HOP}


class FaultProxy:
    """Proxy that forwards every call to ``upstream`` (scheme, host and port), and spoils a share.

    A spoilt call is answered late, cut amid the body, answered 429 (with a Retry-After) or 500, or
    with JSON that stops halfway. The seed, the body and n decide whether the n-th call with a body
    is spoilt. The order in which calls arrive does not matter. ``drawn`` counts the calls by fault.
    """

    def __init__(self, upstream: str, seed: int = 0):
        self.upstream = urlsplit(upstream).netloc
        self.seed = seed
        self.drawn: Counter[str] = Counter()
        self.calls: Counter[bytes] = Counter()
        self._lock = threading.Lock()

    def draw(self, body: bytes) -> str:
        """Draw the fault of a call, or ``"none"``."""
        with self._lock:
            self.calls[body] += 1
            name = f"{self.seed} {self.calls[body]} {hashlib.sha256(body).hexdigest()}"
            dice = random.Random(name)
            fault = dice.choice(FAULTS) if dice.random() < SHARE else "none"
            self.drawn[fault] += 1
        return fault

    def forward(self, path: str, headers: Mapping[str, str], body: bytes):
        """Forward a call, and return status, headers and body of upstream's answer."""
        with closing(http.client.HTTPConnection(self.upstream, timeout=60)) as connection:
            connection.request("POST", path, body, end_to_end(headers))
            answer = connection.getresponse()
            return answer.status, end_to_end(answer.headers), answer.read()

    @contextmanager
    def running(self) -> Iterator[str]:
        """Listen on loopback, and yield the proxy's address."""
        proxy = self

        class Proxy(Handler):
            def do_POST(self):
                body = self.body()
                fault = proxy.draw(body)
                if fault == "429":
                    wait = {"Retry-After": str(RETRY_AFTER)}
                    self.reply(429, wait, b'{"error": {"message": "too fast"}}')
                    return
                if fault == "500":
                    self.reply(500, {"Content-Type": "text/html"}, b"<html>\n<b>500</b>\n</html>")
                    return

                status, headers, text = proxy.forward(self.path, self.headers, body)
                if fault == "delay":
                    time.sleep(DELAY)
                if fault == "json":
                    text = text[: len(text) // 2]
                self.reply(status, headers, text, 0.5 if fault == "cut" else 1)

        with listening(Proxy) as address:
            yield address
