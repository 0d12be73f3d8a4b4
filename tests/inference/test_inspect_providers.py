"""The inspect engine and each provider's own API, as a server on this machine speaks it.

Clients that only the extra ``providers`` brings are passed by where they are not installed.
"""

import json

import pytest
from inspect_ai.model._reasoning import effort_to_reasoning_tokens

from fake_openai import JSON
from fault_proxy import Handler, listening
from ingroup.inference import Reply, Sampling
from ingroup.inference.engine import free_sampling
from ingroup.inference.inspect_engine import InspectEngine

CHAT = [{"role": "system", "content": "S."}, {"role": "user", "content": "U?"}]
REJECTED = {
    "type": "invalid_request_error",
    "code": 400,
    "status": "INVALID_ARGUMENT",
    "message": "temperature: not supported for this model",
}
THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "99? No."}]}
TEXT = {"type": "text", "text": "72"}

CHAT_API = {
    "id": "c",
    "object": "chat.completion",
    "created": 0,
    "model": "dated",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": "72", "reasoning_content": "99? No."},
        }
    ],
    "usage": {
        "prompt_tokens": 50,
        "completion_tokens": 30,
        "total_tokens": 80,
        "prompt_tokens_details": {"cached_tokens": 32},
        "completion_tokens_details": {"reasoning_tokens": 25},
    },
}
RESPONSES_API = {
    "id": "r",
    "object": "response",
    "created_at": 0,
    "model": "dated",
    "status": "completed",
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "99?"}]},
        {
            "type": "message",
            "id": "m",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "72", "annotations": []}],
        },
    ],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": {
        "input_tokens": 50,
        "output_tokens": 30,
        "total_tokens": 80,
        "input_tokens_details": {"cached_tokens": 32},
        "output_tokens_details": {"reasoning_tokens": 25},
    },
}
ANTHROPIC = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "dated",
    "content": [{"type": "thinking", "thinking": "99? No.", "signature": "s"}, TEXT],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 18,
        "cache_read_input_tokens": 32,
        "cache_creation_input_tokens": 0,
        "output_tokens": 30,
    },
}
GOOGLE = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [{"text": "99? No.", "thought": True}, {"text": "72"}],
            },
            "finishReason": "STOP",
        }
    ],
    "modelVersion": "dated",
    "usageMetadata": {
        "promptTokenCount": 50,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 25,
        "totalTokenCount": 80,
        "cachedContentTokenCount": 32,
    },
}
STREAMED = [
    {"type": "message_start", "message": ANTHROPIC | {"content": [], "stop_reason": None}},
    {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "thinking", "thinking": "", "signature": ""},
    },
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "thinking_delta", "thinking": "99? No."},
    },
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "72"}},
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 30}},
    {"type": "message_stop"},
]
MISTRAL = {
    "conversation_id": "c",
    "usage": {"prompt_tokens": 50, "completion_tokens": 30, "total_tokens": 80},
    "outputs": [
        {
            "type": "message.output",
            "model": "dated",
            "role": "assistant",
            "content": [THOUGHT, TEXT],
        },
    ],
}


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for provider in ("OPENAI", "ANTHROPIC", "GOOGLE", "MISTRAL"):
        monkeypatch.setenv(f"{provider}_API_KEY", "key-0123456789abcdef")


def streamed_body():
    """The events of a reply, as a server sends them."""
    body = ""
    for event in STREAMED:
        body += f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"

    return body.encode()


@pytest.mark.parametrize("rejects", [False, True])
@pytest.mark.parametrize(
    ("model", "client", "path", "body", "expected"),
    [
        ("openai/gpt-4o-mini", "openai", "/v1", CHAT_API, (32, "dated", "99? No.", 25)),
        ("openai/gpt-5", "openai", "/v1", RESPONSES_API, (32, "dated", "99?", 25)),
        ("ollama/llama3.2", "openai", "/v1", CHAT_API, (32, "dated", "99? No.", 25)),
        ("anthropic/claude-sonnet-4-5", "anthropic", "", ANTHROPIC, (32, "dated", "99? No.", 7)),
        ("google/gemini-2.5-pro", "google.genai", "", GOOGLE, (32, "dated", "99? No.", 25)),
        # inspect_ai does not say which of Mistral's models answered, or what was cached.
        ("mistral/some", "mistralai", "", MISTRAL, (0, "some", "99? No.", 0)),
    ],
)
def test_a_provider_is_asked_and_read(model, client, path, body, expected, rejects):
    pytest.importorskip(client)
    requests = []

    class Provider(Handler):
        def do_POST(self):
            request = self.body().decode()
            if "count_tokens" in self.path:  # of Anthropic's reasoning
                return self.reply(200, JSON, b'{"input_tokens": 7}')
            requests.append(request)
            if rejects and "temperature" in request:
                return self.reply(400, JSON, json.dumps({"error": REJECTED}).encode())
            return self.reply(200, JSON, json.dumps(body).encode())

    sampling = Sampling(max_tokens=2000)
    with listening(Provider) as address:
        engine = InspectEngine(model, address + path, timeout=60)
        engine.prepare(CHAT, sampling)
        replies = engine.answer([CHAT, CHAT], sampling)

    cached, name, reasoning, reasoning_tokens = expected
    reply = Reply(
        "72",
        "stop",
        prompt_tokens=50,
        cached_tokens=cached,
        output_tokens=30,
        model=name,
        reasoning=reasoning,
        reasoning_tokens=reasoning_tokens,
    )
    assert replies == [reply, reply]
    assert 2000 in engine.sent_arguments.values()
    if rejects:
        assert "temperature" not in requests[-1]
    assert not any("S." in str(value) for value in engine.sent_arguments.values())


def test_an_answer_that_comes_in_events_is_read():
    """As inspect_ai asks Anthropic for long answers and for reasoning."""
    pytest.importorskip("anthropic")
    requests = []

    class Provider(Handler):
        def do_POST(self):
            request = json.loads(self.body())
            if "count_tokens" in self.path:
                return self.reply(200, JSON, b'{"input_tokens": 7}')
            requests.append(request)
            return self.reply(200, {"Content-Type": "text/event-stream"}, streamed_body())

    sampling = Sampling(max_tokens=8_320, reasoning="2000")
    with listening(Provider) as address:
        engine = InspectEngine("anthropic/claude-sonnet-4-5", address, timeout=60)
        (reply,) = engine.answer([CHAT], sampling)

    assert requests[0]["stream"]
    assert requests[0]["thinking"]["budget_tokens"] == 2000

    expected = Reply("72", "stop", 50, 32, 30, model="dated", reasoning="99? No.")
    assert reply == expected._replace(reasoning_tokens=7)


def test_a_number_of_tokens_that_claude_no_longer_takes_is_left_out(capsys):
    pytest.importorskip("anthropic")
    requests = []

    class Provider(Handler):
        def do_POST(self):
            requests.append(json.loads(self.body()))
            return self.reply(200, {"Content-Type": "text/event-stream"}, streamed_body())

    with listening(Provider) as address:
        engine = InspectEngine("anthropic/claude-sonnet-5", address, timeout=60)
        reply = engine.prepare(CHAT, Sampling(max_tokens=8_320, reasoning="2000"))

    assert reply.text == "72"
    assert engine.left_out[0] == "reasoning_tokens"
    assert "budget_tokens" not in json.dumps(requests)

    said = capsys.readouterr().err
    assert "anthropic/claude-sonnet-5 rejects reasoning_tokens, which is left out" in said


@pytest.mark.parametrize("effort", ["low", "medium", "high"])
def test_the_budget_of_an_effort_fits_into_what_a_reply_may_have(effort):
    """Anthropic demands more tokens for a reply than its budget for thinking."""
    given = {"REASONING": effort, "MAX_TOKENS": 128, "TEMPERATURE": "", "SEED": 0}

    sampling = free_sampling(given, "claude-sonnet-4-5")

    assert sampling.max_tokens - 128 > effort_to_reasoning_tokens(effort)


@pytest.mark.parametrize(("effort", "sent"), [("none", "none"), ("low", "low"), ("", None)])
def test_ollama_is_told_how_much_to_think(effort, sent):
    requests = []

    class Ollama(Handler):
        def do_POST(self):
            requests.append(json.loads(self.body()))
            return self.reply(200, JSON, json.dumps(CHAT_API).encode())

    with listening(Ollama) as address:
        engine = InspectEngine("ollama/llama3.2", f"{address}/v1", timeout=60)
        engine.answer([CHAT], Sampling(reasoning=effort))

    assert requests[0].get("reasoning", {}).get("effort") == sent
    assert "reasoning_effort" not in requests[0]
