"""The inspect engine against vLLM's own server: ``make test-vllm``."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, suppress
from http.client import HTTPConnection

import pytest

from few import Few
from ingroup import paths
from ingroup.inference import Sampling
from ingroup.inference.inspect_engine import InspectEngine
from ingroup.inference.transformers_engine import TransformersEngine
from toy import religion, run

CALIBRANT = str(paths.MODELS / "calibrant")
GREEDY = Sampling(max_tokens=12)
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "TORCH_COMPILE_DISABLE": "1",
    "OMP_NUM_THREADS": "1",
}
OPTIONS = (
    "--served-model-name calibrant --host 127.0.0.1 --dtype float32 --block-size 32 --enforce-eager"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of a running server, without /v1."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log"
    module = "vllm.entrypoints.openai.api_server"
    options = ["--model", CALIBRANT, *OPTIONS.split(), "--port", str(port)]
    with log.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *options],
            env=os.environ | ENVIRONMENT,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    try:
        until = time.monotonic() + 120
        while not healthy(port):
            assert process.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < until, f"no answer in 120 s: {log.read_text()[-3000:]}"
            time.sleep(0.5)
        yield f"http://127.0.0.1:{port}"
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
    finally:
        with suppress(ProcessLookupError):  # it and its engine's process, if they still live
            os.killpg(process.pid, signal.SIGKILL)


def healthy(port):
    with suppress(OSError), closing(HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    return False


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def test_a_real_server_gives_the_replies_of_the_transformers_engine(server, tmp_path):
    plan = Few(religion(), 0, 200)
    expected = TransformersEngine(CALIBRANT).answer([trial.messages for trial in plan], GREEDY)
    responses = run(plan, tmp_path, InspectEngine("calibrant", f"{server}/v1"), 64, GREEDY)
    assert responses.text.nunique() > 5
    assert responses.text.tolist() == [reply.text for reply in expected]
    assert responses.finish_reason.tolist() == ["stop"] * 200
    # One BOS here too, and the same template.
    assert responses.prompt_tokens.tolist() == [reply.prompt_tokens for reply in expected]
    assert responses.output_tokens.tolist() == [reply.output_tokens for reply in expected]
