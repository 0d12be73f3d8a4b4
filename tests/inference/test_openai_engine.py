"""The openai engine, against a fake server and through a proxy that spoils calls."""

import asyncio
import gzip
import logging
import math
import signal
import threading
import time
from contextlib import ExitStack
from email.utils import formatdate
from functools import partial

import anyio
import openai
import pandas as pd
import pytest

from fake_openai import JSON, FakeOpenAI, completion, fault, ok, text_of
from fault_proxy import FAULTS, FaultProxy
from ingroup.inference import EngineError, Reply, Sampling
from ingroup.inference.openai_engine import OpenAIEngine
from ingroup.tables import InputError
from toy import religion, run

GREEDY = Sampling(max_tokens=8)
TEXTS = "text", "finish_reason", "error", "model"
said = partial(Reply, model="fake")  # as the fake server names its model
KEY = "sk-planted-0123456789abcdefghij"


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """No key, no proxy and no address from outside; short waits, and never a long one."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(openai._base_client, "INITIAL_RETRY_DELAY", 0.01)
    sleep = anyio.sleep

    async def brief(seconds):
        assert seconds < 5, f"it would wait {seconds} s"
        await sleep(seconds)

    monkeypatch.setattr(openai._base_client.anyio, "sleep", brief)


@pytest.fixture
def serve():
    """Start servers that stop when the test ends; gives the base URL."""
    with ExitStack() as stack:
        yield lambda server: stack.enter_context(server.running()) + "/v1"


def chats(n, system="You are a pirate."):
    return [
        [{"role": "system", "content": system}, {"role": "user", "content": f"How, {i}?"}]
        for i in range(n)
    ]


def engine_at(url, **other):
    """An engine with other attempts, times or calls in flight than it has."""
    engine = OpenAIEngine("fake", url)
    vars(engine).update(other)
    return engine


def ask(server, serve, n=1, sampling=GREEDY, **options):
    return engine_at(serve(server), **options).answer(chats(n), sampling)


def always(*answer):
    return FakeOpenAI(lambda call, before: answer)


def ask_each(answers, serve, **options):
    """Let the server give one of the answers to each chat; replies, and calls made for each."""
    server = FakeOpenAI(lambda call, before: answers[int(call.prompt[5:-1])])
    replies = ask(server, serve, len(answers), **options)
    return replies, [len(server.asked(chat[1]["content"])) for chat in chats(len(answers))]


def test_replies_stand_in_order_with_their_tokens(serve):
    engine = OpenAIEngine("fake", serve(FakeOpenAI()))
    replies = engine.answer(chats(40), GREEDY)
    assert replies == [said(text_of(chat), "stop", 6, 3, 1) for chat in chats(40)]
    assert len({reply.text for reply in replies}) > 20
    assert engine.asks_again is True
    assert engine.answer([], GREEDY) == []


def test_the_request_holds_what_the_sampling_says_and_no_more(serve, monkeypatch):
    server = FakeOpenAI()
    engine = OpenAIEngine("fake", serve(server))
    engine.answer(chats(1), GREEDY)
    engine.answer(chats(1), Sampling(temperature=0.7, top_p=0.9, max_tokens=5, seed=3))
    greedy, drawn = (call.request for call in server.calls)
    assert greedy == {"model": "fake", "messages": chats(1)[0], "temperature": 0, "max_tokens": 8}
    seed = Sampling(seed=3).trial_seed(chats(1)[0])
    assert drawn == greedy | {"temperature": 0.7, "max_tokens": 5, "top_p": 0.9, "seed": seed}
    monkeypatch.setenv("OPENAI_API_KEY", KEY)  # OpenAI's newer models ask for another name
    request = OpenAIEngine("m")._request(chats(1)[0], GREEDY)
    assert (request["max_completion_tokens"], "max_tokens" in request) == (8, False)


def test_it_works_below_a_running_event_loop(serve):
    async def cell():
        return ask(FakeOpenAI(), serve, 3)

    assert [reply.text for reply in asyncio.run(cell())] == [text_of(chat) for chat in chats(3)]


def test_calls_leave_no_thread_and_no_loop(serve, monkeypatch):
    """Each shard has its own: a night of them must not pile up."""
    loops, new = [], asyncio.events.new_event_loop
    monkeypatch.setattr(asyncio.events, "new_event_loop", lambda: loops.append(new()) or loops[-1])
    engine = OpenAIEngine("fake", serve(FakeOpenAI()))
    before = set(threading.enumerate())
    for number in (0, 2, 3):
        assert len(engine.answer(chats(number), GREEDY)) == number
    assert [loop.is_closed() for loop in loops] == [True] * 3
    for thread in set(threading.enumerate()) - before:  # the server's, whose connections are closed
        thread.join(60)
        assert not thread.is_alive(), thread


@pytest.fixture
def interruptible():
    """Ctrl-C as in a terminal; a shell's background job ignores it from the start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_the_calls(serve):
    ended = threading.Event()

    def script(call, before):
        if call.prompt == "How, 5?":
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            ended.wait(60)

    server = FakeOpenAI(script)
    with pytest.raises(KeyboardInterrupt):
        ask(server, serve, 200, in_flight=1)
    ended.set()
    assert len(server.calls) == 6


# What comes through a bad line


def table(folder, url, **options):
    engine = engine_at(url, in_flight=8, **options)
    return run(religion(4), folder, engine, 50, GREEDY).astype(dict.fromkeys(TEXTS, "str"))


@pytest.mark.parametrize("attempts", [1, 6])
def test_what_is_answered_through_faults_is_what_is_answered_without(attempts, tmp_path, serve):
    upstream = serve(FakeOpenAI())
    whole = table(tmp_path / "whole", upstream)
    assert whole.finish_reason.tolist() == ["stop"] * 144
    proxy = FaultProxy(upstream.removesuffix("/v1"))
    spoilt = table(tmp_path / "spoilt", serve(proxy), attempts=attempts)
    assert set(proxy.drawn) == {"none", *FAULTS}
    failed = spoilt.finish_reason == "failed"
    pd.testing.assert_frame_equal(spoilt[~failed], whole[~failed])
    assert spoilt.text[failed].isna().all()
    assert (spoilt.error[failed] != "").all()
    assert max(proxy.calls.values()) <= attempts
    # A late answer is an answer; each other fault is one call of a trial that failed.
    faults = sum(proxy.drawn.values()) - proxy.drawn["none"] - proxy.drawn["delay"]
    assert faults > 20
    assert failed.sum() == faults if attempts == 1 else failed.sum() <= 1
    if attempts == 1:
        reasons = set(spoilt.error.str.split().str[:2].str.join(" "))
        assert {"HTTP 429", "HTTP 500", "the answer"} < reasons
        assert spoilt.error.str.startswith("RemoteProtocolError").any()


def test_no_more_calls_at_once_than_allowed(serve):
    server = FakeOpenAI(gather=5)
    ask(server, serve, 30, in_flight=5)
    assert server.most_present == 5


def test_what_may_pass_is_tried_again_and_one_budget_holds(serve):
    statuses = [408, 409, 429, 500, 502, 503, 529]
    answers = [fault(status, "busy") for status in statuses]
    replies, calls = ask_each(answers, serve, attempts=3)
    assert replies == [Reply(None, "failed", error=f"HTTP {status} - busy") for status in statuses]
    assert calls == [3] * 7
    server = FakeOpenAI(
        lambda call, before: answers[int(call.prompt[5:-1])] if before < 2 else None
    )
    replies = ask(server, serve, 7, attempts=3)
    assert [reply.text for reply in replies] == [text_of(chat) for chat in chats(7)]
    assert len(server.calls) == 21


ODD = {"Content-Type": "text/plain; charset=undefined"}  # in which the client reads an error


@pytest.mark.parametrize(
    ("answer", "error"),
    [(fault(status, "too long"), f"HTTP {status} - too long") for status in (400, 413, 422)]
    + [((400, ODD, b"x"), "UnicodeError: undefined encoding")],
)
def test_what_will_not_pass_is_asked_once_and_the_others_are_kept(answer, error, serve):
    server = FakeOpenAI(lambda call, before: answer if call.prompt == "How, 1?" else None)
    replies = ask(server, serve, 3)
    assert [reply.finish_reason for reply in replies] == ["stop", "failed", "stop"]
    assert replies[1].error == error
    assert len(server.calls) == 3


def test_all_prompts_may_fail_each_for_itself(serve):
    """A filter that refuses every prompt of a small rest must not keep a run from ending."""
    replies = ask(always(*fault(400, "filtered", "content_filter")), serve, 40)
    assert {reply.error for reply in replies} == {"HTTP 400 - filtered"}


# Waiting as long as the server says, by the server's clock


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_is_given_the_time_that_it_names(status, serve):
    """In seconds, or as a date."""
    until = math.ceil(time.time() + 0.2)
    header = "0.2" if status == 429 else formatdate(until, usegmt=True)
    server = FakeOpenAI(lambda call, before: None if before else fault(status, Retry_After=header))
    assert ask(server, serve)[0].finish_reason == "stop"
    first, second = server.calls
    assert second.arrived >= (first.arrived + 0.2 if status == 429 else until)


def test_a_retry_after_that_says_nothing_is_passed_over(serve):
    headers = ["nan", "-3", "soon", "", "inf", "Wed, 31 Feb 2020 99:00:00 GMT"]
    answers = [fault(429, Retry_After=header) for header in headers]
    _, calls = ask_each(answers, serve, attempts=3, budget_seconds=20)
    assert calls == [3] * 6


def test_a_wait_of_hours_is_not_begun(serve):
    headers = ["3600", "1e999", formatdate(time.time() + 9e4, usegmt=True)]
    answers = [fault(429, "later", Retry_After=header) for header in headers]
    replies, calls = ask_each(answers, serve)
    assert {reply.error for reply in replies} == {"HTTP 429 - later"}
    assert calls == [1] * 3


def test_the_budget_ends_what_attempts_do_not(serve):
    server = always(*fault(429, Retry_After="0.01"))
    (reply,) = ask(server, serve, attempts=10**6, budget_seconds=0.5)
    assert reply == Reply(None, "failed", error="no answer within 0.5 s")


def test_a_call_that_takes_too_long_is_given_up(serve):
    """The second call is answered; the first stays open until then."""
    second = threading.Event()
    server = FakeOpenAI(lambda call, before: second.set() if before else second.wait(60) and None)
    (reply,) = ask(server, serve, timeout=0.5, attempts=100)
    assert reply.finish_reason == "stop"
    assert len(server.calls) > 1
    over = threading.Event()
    server = FakeOpenAI(lambda call, before: over.wait(60) and None)
    (reply,) = ask(server, serve, timeout=0.1, attempts=1)
    over.set()
    assert reply == Reply(None, "failed", error="no answer within 0.1 s")


# When nothing would help, the run ends


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, None), (402, None), (403, None), (404, None), (429, "insufficient_quota"),
        (400, "unsupported_parameter"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("n", [1, 300])
def test_a_cause_common_to_all_prompts_stops_the_run(status, code, n, serve):
    server = always(*fault(status, "bad key", code))
    with pytest.raises(EngineError, match=r"bad key.*OPENAI_API_KEY") as error:
        ask(server, serve, n, in_flight=4)
    assert "\n" not in str(error.value)
    assert error.value.__cause__ is error.value.__context__ is None
    assert len(server.calls) <= 16 + 4


def test_a_common_cause_that_meets_one_of_many_is_not_common(serve):
    """Some gateways answer 403 or 404 where it is the prompt that they refuse."""
    server = FakeOpenAI(
        lambda call, n: fault(403) if call.prompt in ("How, 0?", "How, 15?") else None
    )
    replies = ask(server, serve, 20, in_flight=1)
    assert [i for i, reply in enumerate(replies) if reply.finish_reason == "failed"] == [0, 15]


def test_a_server_that_is_not_there_stops_the_run():
    with pytest.raises(EngineError, match=r"127\.0\.0\.1:9.*'fake'.*ConnectError.*base URL"):
        engine_at("http://127.0.0.1:9/v1", attempts=2).answer(chats(3), GREEDY)


def test_a_key_that_is_withdrawn_later_loses_no_answer(serve):
    """The shard in which it happens is kept; the next one stops."""
    server = FakeOpenAI()
    server.script = lambda call, before: fault(401) if len(server.calls) > 20 else None
    engine = OpenAIEngine("fake", serve(server), in_flight=1)
    replies = engine.answer(chats(60), GREEDY)
    assert [reply.finish_reason for reply in replies] == ["stop"] * 20 + ["failed"] * 40
    with pytest.raises(EngineError, match="HTTP 401"):
        engine.answer(chats(60), GREEDY)


# The key


def test_without_a_key_there_is_one_sentence(monkeypatch):
    with pytest.raises(EngineError, match=r"api\.openai\.com needs a key: set OPENAI_API_KEY"):
        OpenAIEngine("m")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://gpu.example:8000/v1")
    with pytest.raises(EngineError, match=r"gpu\.example needs a key"):
        OpenAIEngine("m")
    monkeypatch.setenv("OPENAI_API_KEY", KEY + "\u2026")
    with pytest.raises(EngineError, match="characters that no key has") as error:
        OpenAIEngine("m")
    assert KEY not in str(error.value)


@pytest.mark.parametrize("key", [KEY, KEY.removeprefix("sk-")])
def test_the_key_goes_to_the_server_and_nowhere_else(key, serve, monkeypatch, caplog):
    """Errors of every kind repeat the key, as real servers do."""
    monkeypatch.setenv("OPENAI_API_KEY", f" {key}\n")
    caplog.set_level(logging.DEBUG)
    echo = f"Incorrect API key provided: {key}\nAuthorization: Bearer {key}"
    answers = [
        fault(400, echo),
        fault(500, echo),
        fault(429, echo, Retry_After="0.01"),
        (200, {"Content-Type": "text/html"}, f"<html>{echo}</html>".encode()),
        ok({"error": {"message": echo}}),
        ok(completion(echo)),
        ok(completion(None, echo)),
        (422, {"Content-Type": "text/plain"}, (" " * 190 + echo).encode()),
        fault(400, "x" * 180 + key),
        fault(400, "Incorrect API key provided: sk-planted****ghij"),
    ]
    server = FakeOpenAI(lambda call, before: answers[int(call.prompt[5:-1])])
    engine = engine_at(serve(server), attempts=2)
    replies = engine.answer(chats(len(answers)), GREEDY)
    assert {call.authorization for call in server.calls} == {f"Bearer {key}"}
    assert [reply.finish_reason == "failed" for reply in replies] == [i != 5 for i in range(10)]
    assert all(len(reply.error) <= 200 and reply.error.isprintable() for reply in replies)
    assert replies[0].error == "HTTP 400 - Incorrect API key provided: [key] Authorization: [key]"
    assert replies[5].text == "Incorrect API key provided: [key]\nAuthorization: Bearer [key]"
    assert replies[9].error == "HTTP 400 - Incorrect API key provided: [key]"
    with pytest.raises(EngineError) as error:
        ask(always(*fault(401, echo)), serve, 2)
    seen = [repr(replies), repr(engine), repr(vars(engine)), repr(engine.identity())]
    seen += [repr(error.getrepr(style="long", showlocals=False)), str(error.value), caplog.text]
    assert "Sending HTTP Request" in caplog.text
    assert not any(key[3:20] in text for text in seen)
    assert not any("Bearer" in reply.error for reply in replies)


@pytest.mark.parametrize("key", ["hunter2", "pw1", "1", "EMPTY"])
def test_a_key_of_any_length_is_masked_in_errors(key, serve, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    answers = [fault(400, f"no access with {key}, sorry"), fault(400, f"key={key}")]
    answers += [ok(completion(f"My key: {key}."))]
    (first, second, said), _ = ask_each(answers, serve)
    assert first.error == "HTTP 400 - no access with [key], sorry"
    assert second.error == "HTTP 400 - key=[key]"
    assert (key in said.text) == (len(key) <= 4 or key.isalpha())


def test_identity_names_the_server_and_no_secret(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1/")
    assert OpenAIEngine("m").identity() == {
        "engine": "openai",
        "engine_version": openai.__version__,
        "model": "m",
        "base_url": "127.0.0.1:8000/v1",
    }


@pytest.mark.parametrize(
    "url",
    [
        "http://me:hunter2@127.0.0.1/v1", "http://127.0.0.1/v1?key=hunter2", "127.0.0.1:8000/v1",
        "ftp://127.0.0.1/v1", "http:///v1", "http://127.0.0.1:99999/v1", "http://[::1/v1",
    ],
)  # fmt: skip
def test_an_address_that_is_none_or_holds_a_secret(url):
    with pytest.raises(InputError, match="the base URL must") as error:
        OpenAIEngine("m", url)
    assert "hunter2" not in str(error.value)


# Whatever a server sends


def test_odd_answers_that_hold_a_text(serve):
    cases = [
        (completion(" 50\n"), " 50\n", "stop"),
        (completion("50", "length"), "50", "length"),
        (completion("50", "eos"), "50", "stop"),
        (completion("50", None), "50", "stop"),
        (completion(""), "", "stop"),
        (completion("I must", "content_filter"), "I must", "stop"),
        (completion(None, refusal="I'm sorry."), "I'm sorry.", "stop"),
        (completion("", refusal="I'm sorry."), "I'm sorry.", "stop"),
        (completion("a\ud83dz \ud83d\ude00 \x00"), "a\ufffdz \U0001f600 \x00", "stop"),
    ]
    replies, calls = ask_each([ok(body) for body, *_ in cases], serve)
    assert replies == [said(*reply) for _, *reply in cases]
    assert calls == [1] * len(cases)


def test_counts_that_the_store_could_not_hold_are_left_out(serve):
    usages = [
        {"prompt_tokens": "9", "completion_tokens": -1},
        {"prompt_tokens": 2**31, "prompt_tokens_details": {"cached_tokens": 0.5}},
        {"prompt_tokens": True, "prompt_tokens_details": [1]},
        [1],
        None,
    ]
    replies, _ = ask_each([ok(completion("50") | {"usage": usage}) for usage in usages], serve)
    assert repr(replies) == repr([said("50", "stop")] * 5)  # True == 1, in values


def test_a_server_is_not_asked_over_choices(serve):
    server = FakeOpenAI()
    with pytest.raises(EngineError, match="a server of this API answers without the probabilities"):
        OpenAIEngine("fake", serve(server)).answer(chats(1), Sampling(choices=("1", "2")))
    assert server.calls == []


def test_log_probabilities_that_a_server_sends_unasked_leave_the_answer(serve):
    for shape in (None, [], "x", {"content": [{"top_logprobs": None}]}):
        body = completion("50")
        body["choices"][0]["logprobs"] = shape
        (reply,), _ = ask_each([ok(body)], serve)
        assert reply == said("50", "stop")


def test_answers_without_a_text_fail_by_name(serve):
    empty = [(None, "stop"), (None, "content_filter"), ("", "content_filter")]
    empty += [(7, "stop"), (["50"], "stop")]
    replies, calls = ask_each([ok(completion(*one)) for one in empty], serve)
    assert calls == [1] * len(empty)
    assert [(reply.text, reply.finish_reason, reply.error) for reply in replies] == [
        (None, "failed", f"the answer holds no text (finish_reason {ending})")
        for _, ending in empty
    ]


def test_answers_that_are_none_are_asked_again_and_fail_by_name(serve):
    broken = [
        b"", b"null", b"50", b'"50"', b"\xff\xfe\x00", b'{"choices": [{"message": {"content": "5',
        b'{"choices": []}', b'{"choices": {"0": 1}}', b'{"choices": [{"message": "50"}]}',
        b'{"choices": [{"message": null}]}', b'{"error": {"message": "provider down"}}',
        b"[" * 100_000, b"[" * 700 + b"]" * 700, b"9" * 5000, b"<html>\n\x1b[31mhotel</html>",
    ]  # fmt: skip
    replies, calls = ask_each([(200, JSON, body) for body in broken], serve, attempts=2)
    assert calls == [2] * len(broken)
    assert {(reply.text, reply.finish_reason) for reply in replies} == {(None, "failed")}
    assert all(reply.error.startswith("the answer is no chat completion:") for reply in replies)
    assert all(len(reply.error) <= 200 and reply.error.isprintable() for reply in replies)
    assert replies[-1].error.endswith("<html> [31mhotel</html>")


def test_who_answered_is_kept_and_said(tmp_path, serve, capsys):
    """A provider that serves another model, or a dated one, under the name that was asked for."""

    def script(call, before):
        other = completion(text_of(call.request["messages"])) | {"model": "fake-small\ud800"}
        return ok(other) if len(call.prompt) % 2 else None

    found = table(tmp_path, serve(FakeOpenAI(script)))
    names = found.model.value_counts().to_dict()
    other = names.pop("fake-small\ufffd")
    assert names == {"fake": 144 - other}
    sentence = f"{other} of 144 replies name another model ({other} x fake-small\ufffd)"
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_to_another_server_is_not_followed(status, serve):
    other = FakeOpenAI()
    address = serve(other)
    server = always(status, {"Location": f"{address}/chat/completions"}, b"")
    with pytest.raises(EngineError, match=r"sends its calls on to http://127\.0\.0\.1:\d+\)"):
        ask(server, serve, 3, in_flight=1)
    assert (other.calls, len(server.calls)) == ([], 3)


def test_a_body_without_end_is_given_up(serve):
    """What is too long, or packed, is one failed call: neither read to its end nor asked again."""
    packed = JSON | {"Content-Encoding": "gzip"}
    answers = [
        ok(completion("9" * 2**21)),
        fault(500, "x" * 2**21),
        (503, packed, gzip.compress(b" " * 50_000_000)),
        (200, packed, gzip.compress(b" " * 50_000_000)),
        ok(completion("9" * 2**19)),
    ]
    replies, calls = ask_each(answers, serve, attempts=2)
    assert calls == [1, 2, 2, 1, 1]  # what a busy server says is not read, but asked again
    assert [reply.error for reply in replies[:4]] == [
        "the answer is longer than 1,048,576 bytes",
        *("HTTP 500", "HTTP 503"),
        "the answer is compressed, which was not asked for",
    ]
    assert len(replies[4].text) == 2**19
