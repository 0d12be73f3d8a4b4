"""Servers: what they say is believed literally. All tests share one server and one process."""

import json
import os
import re
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_server import completion, reply, running

from ingroup.inference import inspect_engine
from ingroup.inference.answers import EngineError, Sampling
from ingroup.inference.inspect_engine import InspectEngine
from ingroup.inference.server import without_keys

KEY = "sk-the-key-of-these-tests"


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """Run a server whose script a test sets, and an engine that asks it."""
    state = SimpleNamespace(script=lambda request: reply("85"))
    os.environ["FAKE_API_KEY"] = KEY
    state.calls = tmp_path_factory.mktemp("calls") / "calls"
    with running(lambda request: state.script(request)) as (server, url):
        state.server = server
        engine = InspectEngine("openai-api/fake/m", url, calls=state.calls)
        state.url = url
        state.engine = engine
        with closing(engine):
            yield state
    del os.environ["FAKE_API_KEY"]


def chats(*texts):
    """Make a chat of each text."""
    return [[{"role": "user", "content": text}] for text in texts]


def ask(asked, *replies, sampling=None):
    """Let the server answer with some replies, and return what the engine makes of them."""
    by_prompt = {f"{number}": given for number, given in enumerate(replies)}
    asked.script = lambda request: by_prompt[request["messages"][-1]["content"]]
    asked.server.requests.clear()
    return asked.engine.answer(chats(*by_prompt), sampling or Sampling())


def fault(status, message, code=None):
    """Make an error in OpenAI's form."""
    error = {"message": message, "type": "t", "param": None, "code": code}
    return status, "application/json", json.dumps({"error": error})


REASONS = {
    "stop": ("stop", "eos", "eos_token", "EOS", "end_turn", "stop_sequence", "repetition"),
    "length": ("length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length"),
    "filtered": ("content_filter", "SAFETY", "PROHIBITED_CONTENT", "refusal", "BLOCKLIST"),
    "failed": ("error", "abort", "cancelled", "tool_calls", "OTHER", "", None),
}


def test_only_known_reasons_end_a_reply(asked):
    reasons = [(ours, theirs) for ours, names in REASONS.items() for theirs in names]
    replies = ask(asked, *[reply("85", theirs) for _, theirs in reasons])
    for (ours, theirs), made in zip(reasons, replies, strict=True):
        assert (theirs, made.finish_reason) == (theirs, ours)
        assert (made.text is None) == (ours == "failed")
    assert any("abort" in made.error for made in replies)


def test_blocks_of_a_moderation_are_refusals_and_others_failures(asked):
    blocked = [
        fault(
            400, "Your request was rejected as a result of our safety system.", "content_policy_"
        ),
        fault(400, "Your request was rejected", "content_policy_violation"),
        fault(400, "Gemini blocked the request: PROHIBITED_CONTENT"),
        fault(400, "Input data may contain inappropriate content.", "data_inspection_failed"),
        fault(400, "The response was filtered by Azure's content management policy"),
        fault(403, "The input was flagged by moderation: violence"),
        fault(400, "Content Exists Risk", "invalid_request_error"),
        fault(400, "The system detected potentially unsafe or sensitive content in input.", "1301"),
        fault(451, "Unavailable for legal reasons"),
        (200, "application/json", '{"error": {"message": "flagged by moderation", "code": 403}}'),
    ]
    failed = [
        fault(400, "temperature must be 1"),
        fault(400, "The maximum context length is 85 tokens", "context_length_exceeded"),
        fault(401, "the key is wrong"),
        fault(404, "no such model"),
        (200, "application/json", '{"error": {"code": 429, "message": "Rate limit upstream"}}'),
        (200, "application/json", "[]"),
        (200, "text/html", "<html>maintenance</html>"),
        (200, "text/event-stream", 'data: {"choices": []}\n\ndata: [DONE]\n\n'),
    ]
    replies = ask(asked, *blocked, *failed)
    found = [made.finish_reason for made in replies]
    assert found == ["filtered"] * len(blocked) + ["failed"] * len(failed)
    assert all(made.error for made in replies)
    assert all(made.text is None for made in replies[len(blocked) :])
    # No call was sent twice.
    assert len(asked.server.requests) == len(replies)


def parts(*texts):
    """Make content in parts."""
    return [{"type": "text", "text": text} for text in texts]


def test_content_of_any_form_is_read(asked):
    contents = ["85", 85, 85.0, {"text": "85"}, parts("8", "5"), ["85"]]
    contents += [[{"type": "thinking", "thinking": parts("Maybe 60.")}, *parts("85")]]
    replies = ask(asked, *[reply(content) for content in contents])
    texts = [made.text for made in replies]
    assert texts == ["85", "85", "85.0", "85", "85", "85", "85"]
    assert replies[-1].reasoning == "Maybe 60."


def message(**fields):
    """Make a reply whose message has further fields."""
    body = json.loads(completion("85"))
    body["choices"][0]["message"] |= fields
    return 200, "application/json", json.dumps(body)


def test_reasoning_is_kept_apart(asked):
    replies = ask(
        asked,
        message(reasoning="Maybe 60."),
        message(reasoning_content="Maybe 60."),
        message(reasoning_content=None, reasoning="Maybe 60."),
        message(reasoning_details=[{"type": "reasoning.text", "text": "Maybe 60.", "index": 0}]),
        reply("<think>Maybe 60.</think>85"),
    )
    assert [made.text for made in replies] == ["85"] * 5
    assert [made.reasoning for made in replies] == ["Maybe 60."] * 5
    (empty,) = ask(asked, message(content="", reasoning_content="The rating is 85."))
    assert (empty.text, empty.reasoning) == ("", "The rating is 85.")


def test_a_refusal_field_is_a_refusal(asked):
    (refusal,) = ask(asked, message(content="", refusal="I'm sorry, I cannot."))
    assert (refusal.text, refusal.finish_reason) == ("I'm sorry, I cannot.", "filtered")


def without(*names):
    """Make a reply that lacks some entries."""
    body = {name: value for name, value in json.loads(completion("85")).items()}
    for name in names:
        del body[name]
    return 200, "application/json", json.dumps(body)


def test_replies_that_lack_entries_are_read(asked):
    floats = {"prompt_tokens": 50.0, "completion_tokens": 3.0, "total_tokens": 53.0}
    words = {"prompt_tokens": "many", "completion_tokens": None, "total_tokens": 1}
    replies = ask(
        asked,
        reply("85", model=None),
        reply("85", model=7, id=12),
        without("model"),
        without("id", "object", "created"),
        without("usage"),
        reply("85", usage=None),
        reply("85", usage=floats),
        reply("85", usage=words),
    )
    assert [made.text for made in replies] == ["85"] * 8
    assert [made.model for made in replies[:4]] == ["", "7", "", "fake"]
    assert [made.output_tokens for made in replies] == [30, 30, 30, 30, 0, 0, 3, 0]


def logprobs(tokens):
    """Write log-probabilities as OpenAI's servers do."""
    content = []
    for token, top in tokens:
        listed = [{"token": name, "logprob": value, "bytes": None} for name, value in top.items()]
        entry = {"token": token, "logprob": top[token], "bytes": None, "top_logprobs": listed}
        content.append(entry)
    return {"content": content}


def test_scores_are_read_from_the_top_tokens(asked):
    body = json.loads(completion("B"))
    body["choices"][0]["logprobs"] = logprobs([("B", {"B": -0.5, "A": -1.5, "The": -2.0})])
    scored = 200, "application/json", json.dumps(body)
    (made, bare) = ask(asked, scored, reply("B"), sampling=Sampling(choices=("A", "B")))
    assert made.text == "B"
    assert made.probabilities == pytest.approx([0.26894, 0.73106], abs=1e-4)
    assert made.option_mass == pytest.approx([0.82966], abs=1e-4)
    assert bare.finish_reason == "failed"
    assert asked.server.requests[0]["top_logprobs"] == 20


def test_what_is_sent(asked):
    sampling = Sampling(temperature=0.7, top_p=0.9, max_tokens=9, seed=3, reasoning="low")
    ask(asked, reply("85"), sampling=sampling)
    (sent,) = asked.server.requests
    assert sent["model"] == "m"
    assert (sent["temperature"], sent["top_p"], sent["max_tokens"]) == (0.7, 0.9, 9)
    assert sent["seed"] == sampling.trial_seed(chats("0")[0])
    assert sent["reasoning_effort"] == "low"
    ask(asked, reply("85"), sampling=Sampling(temperature=None))
    assert "temperature" not in asked.server.requests[0]


def test_answers_of_a_killed_run_are_not_asked_again(asked):
    """The answers to a piece are kept one by one, and two equal chats are two calls."""
    asked.script = lambda request: reply("85")
    asked.server.requests.clear()
    asked.engine.answer(chats("a", "b", "b"), Sampling())
    assert len(asked.server.requests) == 3
    with closing(InspectEngine("openai-api/fake/m", asked.url, calls=asked.calls)) as after_kill:
        made = after_kill.answer(chats("a", "b", "b"), Sampling())
        assert [one.text for one in made] == ["85"] * 3
        assert len(asked.server.requests) == 3
        after_kill.answer(chats("a", "b", "b"), Sampling())
        assert len(asked.server.requests) == 6


def test_keys_are_sent_and_never_kept(asked):
    (told, broken) = ask(asked, reply(f"Your key is {KEY}."), fault(400, f"{KEY} is no key"))
    assert asked.server.keys[-1] == f"Bearer {KEY}"
    assert told.text == "Your key is [key]."
    assert broken.error.endswith("[key] is no key")
    assert KEY not in str(asked.engine.identity())
    kept = b"".join(file.read_bytes() for file in asked.calls.rglob("*") if file.is_file())
    assert KEY.encode() not in kept


def test_keys_of_all_names_are_masked(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_abcdefgh")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "abc/def+ghi")
    assert without_keys("hf_abcdefgh abc/def+ghi \ud800") == "[key] [key] ?"


@pytest.mark.parametrize(
    ("model", "base_url", "sentence"),
    [
        ("openai-api/fake/m", "http://127.0.0.1:9/v1", "no server is at 127.0.0.1:9"),
        ("m", "http://127.0.0.1:9/v1", "write openai-api/<service>/m"),
        ("openai-api/fake/m", "http://key@127.0.0.1:9/v1", "without a key"),
        ("openai-api/fake/m", "127.0.0.1:9", "BASE_URL must read like"),
    ],
)
def test_what_is_wrong_with_an_address_is_named(model, base_url, sentence):
    with pytest.raises(EngineError, match=sentence):
        InspectEngine(model, base_url)


def test_a_missing_key_is_named(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(EngineError, match="OPENAI_API_KEY"):
        InspectEngine("openai/gpt-4o-mini")


def test_inspect_ai_is_used_by_its_public_interface():
    folder = Path(inspect_engine.__file__).parent
    private = re.compile(r"inspect_ai[\w.]*\._|from inspect_ai.* import _|self\.model\._|\.api\._")
    for file in folder.glob("*.py"):
        assert not private.search(file.read_text("utf8")), file
