"""The inspect engine, against a fake server that behaves as today's families of models do."""

import asyncio
import gzip
import threading
from contextlib import ExitStack
from types import SimpleNamespace

import IPython
import pytest
from inspect_ai._util import platform

from fake_openai import JSON, FakeOpenAI, completion, fault, ok, text_of
from ingroup import models
from ingroup.inference import EngineError, Reply, Sampling, StoreError, open_store, server_responses
from ingroup.inference.inspect_engine import InspectEngine, full_name
from ingroup.tables import InputError
from toy import religion, run

GREEDY = Sampling(max_tokens=8)
DRAWN = Sampling(temperature=0.7, top_p=0.9, max_tokens=5, seed=3)
MODEL = "openai-api/local/fake"
KEY = "sk-decoy-0123456789abcdefghij"


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """No key, no proxy and no address from outside; short waits."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "LOCAL_API_KEY", "LOCAL_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(server_responses, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(server_responses, "LONGEST_PAUSE", 0.02)


@pytest.fixture
def serve():
    """Start servers that stop when the test ends; gives the base URL."""
    with ExitStack() as stack:
        yield lambda server: stack.enter_context(server.running()) + "/v1"


def chats(n):
    """Chats with the same system turn, whose questions are numbered."""
    system_turn = {"role": "system", "content": "You are a pirate."}
    user_turns = [{"role": "user", "content": f"How, {number}?"} for number in range(n)]
    return [[system_turn, user_turn] for user_turn in user_turns]


def number_of(call):
    """The number of the question that a call asks."""
    return int(call.prompt[5:-1])


def always(*answer):
    return FakeOpenAI(lambda call, before: answer)


def answer(server, serve, n=1, sampling=GREEDY, **options):
    return InspectEngine(MODEL, serve(server), **options).answer(chats(n), sampling)


def rejecting(pattern_of, served="72"):
    """A server that answers 400 as long as a request has what it rejects."""

    def script(call, before):
        for has, message in pattern_of:
            if has(call.request):
                return fault(400, message)
        return ok(completion(served))

    return FakeOpenAI(script)


# What is sent


def test_a_notebook_needs_no_widgets_and_keeps_its_event_loop(serve, monkeypatch):
    """As in a kernel, where inspect_ai would want both."""
    kernel = SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setattr(IPython, "get_ipython", lambda: kernel)
    monkeypatch.setattr(platform, "have_package", lambda name: False)
    monkeypatch.setattr(platform, "init_nest_asyncio", lambda: pytest.fail("patched"))
    (reply,) = answer(FakeOpenAI(), serve)

    assert reply.text == text_of(chats(1)[0])


def test_replies_stand_in_order_with_their_tokens(serve):
    engine = InspectEngine(MODEL, serve(FakeOpenAI()))
    replies = engine.answer(chats(40), GREEDY)

    expected = [Reply(text_of(chat), "stop", 6, 3, 1, model="fake") for chat in chats(40)]
    assert replies == expected
    assert len({reply.text for reply in replies}) > 20
    assert engine.asks_again is True
    assert engine.answer([], GREEDY) == []


def test_the_request_holds_what_the_sampling_says_and_no_more(serve):
    server = FakeOpenAI()
    engine = InspectEngine(MODEL, serve(server))
    engine.answer(chats(1), GREEDY)
    engine.answer(chats(1), DRAWN)
    greedy = server.calls[0].request
    drawn = server.calls[1].request

    assert greedy == {"model": "fake", "messages": chats(1)[0], "temperature": 0, "max_tokens": 8}

    seed = Sampling(seed=3).trial_seed(chats(1)[0])
    assert drawn == greedy | {"temperature": 0.7, "max_tokens": 5, "top_p": 0.9, "seed": seed}


def test_each_reply_is_kept_as_it_comes_and_a_loop_may_run_above(serve):
    kept = {}

    async def cell():
        engine = InspectEngine(MODEL, serve(FakeOpenAI()))
        return engine.answer_each(chats(3), GREEDY, kept.__setitem__)

    replies = asyncio.run(cell())

    assert [kept[number] for number in range(3)] == replies


def test_no_more_calls_at_once_than_allowed(serve):
    server = FakeOpenAI(gather=5)
    answer(server, serve, 30, in_flight=5)
    assert server.most_present == 5


def test_a_server_with_one_slot_gets_one_call_at_a_time_and_each_once(serve):
    server = FakeOpenAI()
    answer(server, serve, 64, in_flight=1)
    assert server.most_present == 1
    assert len(server.calls) == 64


def test_a_slow_call_is_sent_once_and_the_next_run_asks_it(serve):
    over = threading.Event()
    server = FakeOpenAI(lambda call, before: None if before else over.wait(60) and None)
    engine = InspectEngine(MODEL, serve(server), timeout=1)
    (reply,) = engine.answer(chats(1), GREEDY)
    over.set()

    assert reply == Reply(None, "failed", error="no answer within 1 s")
    assert len(server.calls) == 1
    assert engine.answer(chats(1), GREEDY)[0].finish_reason == "stop"


# What is read, by family

USAGE = {
    "prompt_tokens": 50,
    "completion_tokens": 30,
    "total_tokens": 80,
    "prompt_tokens_details": {"cached_tokens": 32},
    "completion_tokens_details": {"reasoning_tokens": 25},
}
PARTS = [
    {"type": "thinking", "thinking": [{"type": "text", "text": "99? No."}]},
    {"type": "text", "text": "72"},
]


@pytest.mark.parametrize(
    ("body", "text", "finish", "reasoning"),
    [
        (completion("72"), "72", "stop", ""),
        (completion(" 72\n", "eos"), " 72\n", "stop", ""),
        (completion("72", "length"), "72", "length", ""),
        (completion("72", reasoning_content="99? No."), "72", "stop", "99? No."),
        (completion("72", reasoning="99? No."), "72", "stop", "99? No."),
        (completion(None, "length", reasoning_content="99?"), "", "length", "99?"),
        (completion("<think>99? No.</think>\n\n72"), "72", "stop", "99? No."),
        (completion("<think>99?", "length"), "", "length", "99?"),
        (completion("99? No.</think>\n72"), "72", "stop", "99? No."),
        (completion("analysis99? No.assistantfinal72"), "72", "stop", "analysis99? No."),
        (completion(PARTS), "72", "stop", "99? No."),
        (completion(["7", {"type": "text", "text": "2"}]), "72", "stop", ""),
        (completion("", "content_filter"), "", "filtered", ""),
        (completion("I must", "content_filter"), "I must", "filtered", ""),
        (completion("a\ud83dz \U0001f600"), "a?z \U0001f600", "stop", ""),
    ],
)
def test_reasoning_is_not_the_answer(body, text, finish, reasoning, serve):
    server = always(*ok(body | {"usage": USAGE}))
    (reply,) = answer(server, serve)

    assert reply.text == text
    assert reply.finish_reason == finish
    assert reply.reasoning == reasoning
    assert reply.prompt_tokens == 50
    assert reply.cached_tokens == 32
    assert reply.output_tokens == 30
    assert reply.reasoning_tokens == 25
    assert reply.model == "fake"
    assert reply.error == ""


def test_a_refusal_is_text(serve):
    (reply,) = answer(always(*ok(completion(None, refusal="I'm sorry."))), serve)
    assert reply.text == "I'm sorry."


def test_a_filter_that_rejects_the_prompt_is_no_failed_call(serve):
    """As Azure says it: status 400."""
    replies = answer(always(*fault(400, "filtered by policy", "content_filter")), serve, 20)
    assert {(reply.text, reply.finish_reason) for reply in replies} == {("", "filtered")}
    assert replies[0].error == "filtered by policy"


def test_reasoning_that_a_server_does_not_count_is_counted(serve):
    usage = {"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 80}
    (reply,) = answer(always(*ok(completion("72") | {"usage": usage})), serve)
    assert reply.prompt_tokens == 50
    assert reply.cached_tokens == 0
    assert reply.output_tokens == 30


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": "9", "completion_tokens": -1},
        {"prompt_tokens": 2**31, "prompt_tokens_details": {"cached_tokens": 0.5}},
        {"prompt_tokens": True, "prompt_tokens_details": [1]},
        [1],
        None,
    ],
)
def test_counts_that_the_store_could_not_hold_are_left_out(usage, serve):
    (reply,) = answer(always(*ok(completion("50") | {"usage": usage})), serve)
    assert repr(reply[:5]) == "('50', 'stop', 0, 0, 0)"


@pytest.mark.parametrize("body", [b"[]", b'[{"choices": []}]', b'"72"', b"7", b"null"])
def test_json_that_is_no_object_fails_at_once(body, serve):
    server = always(200, JSON, body)
    (reply,) = answer(server, serve)

    assert reply == Reply(
        None, "failed", error=f"the answer is JSON, but no object: {body.decode()}"
    )
    assert len(server.calls) == 1


# What a model rejects


def test_an_argument_that_is_rejected_is_left_out_and_said(serve, capsys):
    said = "Unsupported value: 'temperature' does not support 0 with this model."
    server = rejecting([(lambda request: "temperature" in request, said)])
    engine = InspectEngine(MODEL, serve(server))

    assert engine.prepare(chats(1)[0], GREEDY).text == "72"
    assert engine.prepare(chats(1)[0], GREEDY) is None  # it has learnt

    error = capsys.readouterr().err
    assert error == f"{MODEL} rejects temperature, which is left out (HTTP 400 - {said})\n"
    assert [reply.text for reply in engine.answer(chats(3), GREEDY)] == ["72"] * 3
    assert ["temperature" in call.request for call in server.calls] == [True] + [False] * 4

    identity = engine.identity()
    assert identity["left_out"] == ["temperature"]
    assert identity["sent_max_tokens"] == 8
    assert "sent_temperature" not in identity


@pytest.mark.parametrize(
    ("effort", "sentence"),
    [
        ("", ""),
        ("low", ""),  # sent as reasoning_effort
        ("4096", "REASONING=4096 is not sent, as this model has no such argument: it only makes"),
    ],
)
def test_reasoning_that_is_not_sent_is_said(effort, sentence, serve, capsys):
    server = always(*ok(completion("72")))
    engine = InspectEngine(MODEL, serve(server))
    engine.prepare(chats(1)[0], Sampling(max_tokens=8, reasoning=effort))
    sent = server.calls[-1].request.get("reasoning_effort")

    assert sent == ("low" if effort == "low" else None)

    said = capsys.readouterr().err
    if sentence:
        assert sentence in said
    else:
        assert "REASONING" not in said


def test_max_tokens_has_another_name(serve):
    said = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    server = rejecting([(lambda request: "max_tokens" in request, said)])
    engine = InspectEngine(MODEL, serve(server))
    engine.prepare(chats(1)[0], GREEDY)
    engine.answer(chats(1), GREEDY)

    assert server.calls[-1].request["max_completion_tokens"] == 8
    assert len(server.calls) == 3


def test_one_of_two_that_exclude_each_other_and_a_seed_are_left_out(serve):
    both = "`temperature` and `top_p` cannot both be specified for this model."
    server = rejecting(
        [
            (lambda request: "seed" in request, "seed: Extra inputs are not permitted"),
            (lambda request: {"temperature", "top_p"} <= request.keys(), both),
        ]
    )
    engine = InspectEngine(MODEL, serve(server))
    engine.prepare(chats(1)[0], DRAWN)

    assert engine.left_out == ["seed", "top_p"]
    assert server.calls[-1].request["temperature"] == 0.7


@pytest.mark.parametrize(
    "said", ["System role not supported", "Developer instruction is not enabled for this model"]
)
def test_a_system_turn_that_is_rejected_goes_before_the_users(said, serve):
    server = rejecting([(lambda request: request["messages"][0]["role"] == "system", said)])
    engine = InspectEngine(MODEL, serve(server))
    engine.prepare(chats(1)[0], GREEDY)
    engine.answer(chats(1), GREEDY)
    folded = [{"role": "user", "content": "You are a pirate.\n\nHow, 0?"}]

    assert server.calls[-1].request["messages"] == folded
    assert engine.identity()["left_out"] == ["system"]


def test_a_prompt_that_is_too_long_teaches_nothing(serve):
    said = "maximum context length is 4096 tokens, however you requested 5000: reduce max_tokens"
    engine = InspectEngine(MODEL, serve(always(*fault(400, said))))
    engine.prepare(chats(1)[0], GREEDY)

    assert engine.left_out == []


def test_a_run_that_goes_on_sends_what_it_sent_and_pays_nothing_twice(tmp_path, serve):
    """The manifest is the first run's, whatever the first prompt would teach now."""
    design = religion(1)
    said = "temperature is not supported"
    server = rejecting([(lambda request: "temperature" in request, said)], "7")
    url = serve(server)
    first = run(design, tmp_path, InspectEngine(MODEL, url), 50, GREEDY)

    assert len(server.calls) == 1 + len(design)

    before = (tmp_path / "manifest.json").read_text()
    server.script = lambda call, before: fault(500) if "temperature" in call.request else None
    again = InspectEngine(MODEL, url)
    store = open_store(tmp_path, design, again, GREEDY, 50)

    assert len(server.calls) == 1 + len(design)
    assert again.left_out == ["temperature"]
    assert (tmp_path / "manifest.json").read_text() == before
    assert store.read().text.tolist() == first.text.tolist() == ["7"] * len(design)


@pytest.mark.parametrize(
    ("asked", "answered", "same"),
    [
        ("openai/gpt-4o-mini", "gpt-4o-mini", True),
        ("openai/gpt-4o-mini", "gpt-4o-mini-2024-07-18", True),
        ("openai-api/mine/org/any", "org/any", True),
        ("openai-api/mine/org/any", "any", True),
        ("m", "", True),
        ("openai/gpt-4o-mini", "gpt-4o", False),
        ("openai/unknown", "unknown-2", False),
        ("fake", "cheaper", False),
    ],
)
def test_a_dated_name_of_the_same_model_is_no_other_model(asked, answered, same):
    assert models.is_same_checkpoint(asked, answered) is same


# When nothing would help, the run ends


@pytest.mark.parametrize("status", [401, 402, 403, 404])
@pytest.mark.parametrize("n", [1, 300])
def test_a_cause_common_to_all_prompts_stops_the_run(status, n, serve):
    server = always(*fault(status, "bad key"))

    with pytest.raises(EngineError, match=r"does not answer \(HTTP \d+ - bad key\)") as error:
        answer(server, serve, n, in_flight=4)

    assert "\n" not in str(error.value)
    assert len(server.calls) <= 16 + 4


@pytest.mark.parametrize("status", [400, 413, 422])
def test_sixteen_first_calls_that_fail_alike_stop_the_run(status, serve):
    server = always(*fault(status, "nothing goes"))

    with pytest.raises(EngineError, match="nothing goes"):
        answer(server, serve, 300, in_flight=1)

    assert len(server.calls) == 16
    assert answer(server, serve, 3)[0].finish_reason == "failed"  # a rest may be its prompts' own


def test_a_common_cause_that_meets_one_of_many_is_not_common(serve):
    server = FakeOpenAI(
        lambda call, n: fault(403) if call.prompt in ("How, 0?", "How, 15?") else None
    )
    replies = answer(server, serve, 20, in_flight=1)

    assert [i for i, reply in enumerate(replies) if reply.finish_reason == "failed"] == [0, 15]


def test_a_server_that_is_not_there_stops_the_run():
    engine = InspectEngine(MODEL, "http://127.0.0.1:9/v1")

    with pytest.raises(EngineError, match=r"no server is at 127\.0\.0\.1:9/v1"):
        engine.ping()
    with pytest.raises(EngineError, match=r"127\.0\.0\.1:9/v1 does not answer \(ConnectError"):
        engine.answer(chats(3), GREEDY)


def test_what_may_pass_is_tried_again(serve):
    statuses = [408, 429, 500, 502, 503, 529]
    server = FakeOpenAI(
        lambda call, before: fault(statuses[number_of(call)]) if before < 2 else None
    )
    replies = answer(server, serve, 6)

    assert [reply.text for reply in replies] == [text_of(chat) for chat in chats(6)]
    assert len(server.calls) == 18


def test_a_wait_of_hours_is_not_begun(serve):
    server = always(*fault(429, "later", Retry_After="3600"))

    with pytest.raises(EngineError, match="HTTP 429 - later"):
        answer(server, serve, 1)

    assert len(server.calls) == 1


def test_a_batch_is_for_a_provider_that_has_them(serve):
    address = serve(FakeOpenAI())
    for name in ("ollama/llama3.2", "openai/azure/some"):
        with pytest.raises(EngineError, match="BATCH=true is for models of Anthropic"):
            InspectEngine(name, address, batch=True)


# The key


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("some", r" \(for weights of the model hub: some@transformers\)$"),
        ("openai/some", r" \(for weights of the model hub: openai/some@transformers\)$"),
        ("openia/some", r"; did you mean openai/some\?$"),
        ("anthropic/some", "$"),
    ],
)
def test_without_a_key_there_is_one_sentence(name, end):
    provider = "anthropic" if name.startswith("anthropic") else "openai"
    sentence = rf"found no {provider.upper()}_API_KEY.* in the environment, expected a key of "
    with pytest.raises(EngineError, match=f"{sentence}{provider}{end}") as error:
        InspectEngine(name)

    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "LOCAL_API_KEY"])
def test_the_key_goes_to_the_server_and_nowhere_else(name, serve, monkeypatch):
    """Errors of every kind repeat the key, as real servers do."""
    monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("OTHER_API_KEY", "other-0123456789abcdefghij")
    echo = f"Incorrect API key provided: {KEY}\nAuthorization: Bearer {KEY}\x1b[31m\x07"
    answers = [
        fault(400, echo),
        fault(500, echo),
        (200, {"Content-Type": "text/html"}, f"<html>{echo}</html>".encode()),
        ok({"error": {"message": echo}}),
        ok(completion(echo)),
        ok(completion("72", reasoning_content=echo)),
        (422, {"Content-Type": "text/plain"}, (" " * 190 + echo).encode()),
        fault(400, "x" * 180 + KEY),
        ok(completion("other-0123456789abcdefghij")),
    ]
    server = FakeOpenAI(lambda call, before: answers[number_of(call)])
    replies = answer(server, serve, len(answers))

    assert {call.authorization for call in server.calls} == {f"Bearer {KEY}"}

    failed = [number for number, reply in enumerate(replies) if reply.finish_reason == "failed"]
    assert failed == [0, 1, 2, 3, 6, 7]
    for reply in replies:
        assert len(reply.error) <= 200
        assert reply.error.isprintable()
        assert KEY[3:20] not in repr(reply)
    assert replies[8].text == "[key]"

    with pytest.raises(EngineError) as error:
        answer(always(*fault(401, echo)), serve, 2)

    assert KEY[3:20] not in repr(error.getrepr(style="long", showlocals=False))


def test_the_key_is_in_no_file(tmp_path, serve, monkeypatch):
    monkeypatch.setenv("LOCAL_API_KEY", KEY)
    server = FakeOpenAI(
        lambda call, before: fault(400, f"no: {KEY}") if len(server.calls) % 2 else None
    )
    run(religion(1), tmp_path, InspectEngine(MODEL, serve(server)), 50, GREEDY)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]

    assert {file.suffix for file in files} >= {".json", ".parquet"}
    assert not any(KEY[3:20].encode() in file.read_bytes() for file in files)


def test_identity_names_the_server_and_no_secret(serve):
    url = serve(FakeOpenAI())

    assert InspectEngine(MODEL, url + "/").identity() == {
        "engine": "inspect",
        "engine_version": "0.3.285",
        "model": MODEL,
        "base_url": url.removeprefix("http://"),
    }


@pytest.mark.parametrize(
    "url", ["http://me:hunter2@127.0.0.1/v1", "http://127.0.0.1/v1?key=hunter2", "127.0.0.1:80/v1"]
)
def test_an_address_that_is_none_or_holds_a_secret(url):
    with pytest.raises(InputError, match="the base URL must") as error:
        InspectEngine(MODEL, url)
    assert "hunter2" not in str(error.value)


# What a hostile server sends


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(status, serve):
    other = FakeOpenAI()
    server = always(status, {"Location": f"{serve(other)}/chat/completions"}, b"")
    (reply,) = answer(server, serve)

    assert reply.finish_reason == "failed"
    assert other.calls == []
    assert len(server.calls) == 1


def test_a_body_without_end_is_given_up(serve):
    packed = JSON | {"Content-Encoding": "gzip"}
    answers = [
        ok(completion("9" * 2**25)),
        (200, packed, gzip.compress(b" " * 50_000_000)),
        ok(completion("9" * 2**19)),
    ]
    server = FakeOpenAI(lambda call, before: answers[number_of(call)])
    replies = answer(server, serve, 3)

    assert [reply.error for reply in replies[:2]] == [
        "the answer is longer than 33,554,432 bytes",
        "the answer is compressed, which was not asked for",
    ]
    assert len(replies[2].text) == 2**19
    assert len(server.calls) == 3


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"50",
        b'"50"',
        b"\xff\xfe\x00",
        b'{"choices": [{"message": {"content": "5',
        b'{"choices": []}',
        b'{"choices": {"0": 1}}',
        b'{"choices": [{"message": "50"}]}',
        b'{"choices": [{"message": null}]}',
        b'{"error": {"message": "provider down"}}',
        b"[" * 100_000,
        b"[" * 700 + b"]" * 700,
        b"9" * 5000,
        b"<html>\n\x1b[31mhotel</html>",
    ],
)
def test_an_answer_that_is_none_fails_by_name_and_costs_no_other(body, serve):
    server = FakeOpenAI(
        lambda call, before: (200, JSON, body) if call.prompt == "How, 1?" else None
    )
    replies = answer(server, serve, 3)

    assert [reply.finish_reason for reply in replies] == ["stop", "failed", "stop"]
    assert replies[1].text is None
    assert 0 < len(replies[1].error) <= 200
    assert replies[1].error.isprintable()


# Names


@pytest.mark.parametrize(
    ("name", "base_url", "full"),
    [
        ("gpt-4o-mini", "", "openai/gpt-4o-mini"),
        ("claude-3.5-haiku", "", "anthropic/claude-3-5-haiku-20241022"),
        ("any", "http://127.0.0.1:8000/v1", "openai-api/local/any"),
        ("org/any", "http://127.0.0.1:8000/v1", "openai-api/local/org/any"),
        ("ollama/llama3.2", "", "ollama/llama3.2"),
        ("openai-api/mine/any", "http://127.0.0.1:8000/v1", "openai-api/mine/any"),
    ],
)
def test_a_name_without_a_provider_gets_one(name, base_url, full):
    assert full_name(name, base_url) == full


@pytest.mark.parametrize(
    ("text", "engine", "split"),
    [
        ("openai/gpt-5", "", ("openai/gpt-5", "inspect")),
        ("anthropic/claude-sonnet-4-5", "", ("anthropic/claude-sonnet-4-5", "inspect")),
        ("google/gemini-2.5-pro", "", ("google/gemini-2.5-pro", "inspect")),
        ("ollama/llama3.2", "", ("ollama/llama3.2", "inspect")),
        ("openai-api/mine/org/any", "", ("openai-api/mine/org/any", "inspect")),
        ("openai/gpt-4o-mini", "", ("openai/gpt-4o-mini", "inspect")),
        ("gpt-4o-mini", "", ("gpt-4o-mini", "inspect")),
        ("m", "openai", ("m", "inspect")),
        ("m@openai", "", ("m", "inspect")),
        # Weights of the hub, whose organisation has a provider's name.
        ("google/gemma-2b-it", "", ("google/gemma-2b-it", "vllm")),
        ("google/gemma-3-270m-it", "", ("google/gemma-3-270m-it", "transformers")),
        ("openai/gpt-oss-20b", "", ("openai/gpt-oss-20b", "transformers")),
        ("mistralai/Mistral-7B-Instruct-v0.3", "", ("mistralai/Mistral-7B-Instruct-v0.3", "vllm")),
        ("google/gemma-3-270m-it@inspect", "", ("google/gemma-3-270m-it", "inspect")),
        ("google/gemini-2.5-pro@transformers", "", ("google/gemini-2.5-pro", "transformers")),
        ("openai/gpt-5", "vllm", ("openai/gpt-5", "vllm")),
        ("ollama", "", ("ollama", "transformers")),
    ],
)
def test_a_providers_name_is_asked_there_and_a_hubs_name_is_not(text, engine, split):
    assert models.split_entry(text, engine) == split


# What a fresh reader found

LENGTHY = Sampling(max_tokens=8)


def test_a_model_that_is_not_there_is_asked_sixteen_times_at_most(serve, tmp_path):
    server = always(*fault(404, "no such model"))
    engine = InspectEngine(MODEL, serve(server))

    with pytest.raises(EngineError, match="no such model"):
        run(religion(3), tmp_path, engine, 200)

    assert len(server.calls) <= 16 + 100  # those in flight
    assert not any(tmp_path.glob("part-*"))


def test_a_first_call_that_failed_for_now_pins_nothing(serve, tmp_path, monkeypatch):
    busy = [True]

    def script(call, before):
        if busy[0]:
            return fault(503, "busy")
        if "temperature" in call.request:
            return fault(400, "temperature is not supported")
        return ok(completion("72"))

    server = FakeOpenAI(script)
    address = serve(server)

    with pytest.raises(EngineError, match="busy"):
        run(religion(1), tmp_path, InspectEngine(MODEL, address))

    assert not (tmp_path / "manifest.json").exists()

    busy[0] = False
    table = run(religion(1), tmp_path, InspectEngine(MODEL, address))

    assert table.text.tolist() == ["72"] * len(table)


def test_the_text_of_a_reasoning_model_that_was_cut_without_a_mark_is_reasoning(serve):
    body = completion("a first guess is 72. But wait", "length")
    base = serve(FakeOpenAI(lambda call, before: ok(body)))
    engine = InspectEngine("openai-api/local/deepseek-r1", base)
    (reply,) = engine.answer(chats(1), LENGTHY)

    assert reply.text == ""
    assert reply.reasoning == "a first guess is 72. But wait"

    plain = InspectEngine(MODEL, base)
    assert plain.answer(chats(1), LENGTHY)[0].text == "a first guess is 72. But wait"


@pytest.mark.parametrize(("counted", "is_reasoning"), [(None, True), (0, False)])
def test_a_model_that_was_told_not_to_reason_may_do_it_all_the_same(counted, is_reasoning, serve):
    said = "a first guess is 72. But wait"
    body = completion(said, "length")
    if counted is not None:
        details = {"completion_tokens_details": {"reasoning_tokens": counted}}
        body["usage"] = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18} | details

    base = serve(FakeOpenAI(lambda call, before: ok(body)))
    engine = InspectEngine("openai-api/local/deepseek-r1", base)
    (reply,) = engine.answer(chats(1), Sampling(max_tokens=500, reasoning="none"))

    if is_reasoning:
        assert reply.text == ""
        assert reply.reasoning == said
    else:
        assert reply.text == said
        assert reply.reasoning == ""


@pytest.mark.parametrize("status", [403, 429])
def test_one_prompt_that_is_refused_stops_no_run_that_has_answers(status, serve, monkeypatch):
    engine = InspectEngine(MODEL, serve(always(*fault(status, "flagged"))))
    engine.answered = True
    (reply,) = engine.answer(chats(1), GREEDY)

    assert reply.finish_reason == "failed"

    with pytest.raises(EngineError, match="does not answer"):
        engine.answer(chats(16), GREEDY)


def test_what_a_full_disk_says_reaches_the_user_as_it_is(serve):
    engine = InspectEngine(MODEL, serve(FakeOpenAI()))

    def keep(place, reply):
        raise StoreError("the disk is full")

    with pytest.raises(StoreError, match="the disk is full"):
        engine.answer_each(chats(3), GREEDY, keep)


@pytest.mark.parametrize("kind", ["reasoning_text", "reasoning.text", "thinking"])
def test_parts_of_any_other_kind_are_no_answer(serve, kind):
    content = [{"type": kind, "text": "72?"}, {"type": "output_text", "text": "65"}]
    (reply,) = answer(always(*ok(completion(content))), serve)
    assert reply.text == "65"
    assert reply.reasoning == "72?"
