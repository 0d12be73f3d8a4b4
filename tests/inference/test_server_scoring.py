"""Scored answers of a server that tells its most probable tokens, through the whole engine."""

import math

import pytest

from fake_openai import FakeOpenAI, completion, fault, ok
from ingroup.inference import EngineError, Sampling, open_store
from ingroup.inference.choices import expected, probabilities
from ingroup.inference.inspect_engine import InspectEngine
from toy import religion, run

MODEL = "openai-api/local/fake"
SCALE = Sampling(choices=tuple(map(str, range(101))), max_tokens=16)
VERDICTS = Sampling(choices=("[[A]]", "[[B]]", "[[C]]", "[[D]]"), max_tokens=64)
WORDS = Sampling(
    choices=tuple(f" {n}" for n in range(1, 6)), leads=("- Friendly:", "\n- Honest:"), max_tokens=64
)


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "LOCAL_API_KEY", "LOCAL_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def telling(*tokens, **message):
    """A server that writes some tokens and tells the alternatives of each."""
    content = []
    for alternatives in tokens:
        told = [
            {"token": text, "logprob": math.log(p), "bytes": list(text.encode())}
            for text, p in alternatives.items()
        ]
        content.append(told[0] | {"top_logprobs": told})
    body = completion("".join(next(iter(one)) for one in tokens), **message)
    body["choices"][0]["logprobs"] = {"content": content}
    return FakeOpenAI(lambda call, before: ok(body))


def asked(server, sampling):
    plan = religion(2)
    with server.running() as address:
        engine = InspectEngine(MODEL, f"{address}/v1")
        (reply,) = engine.answer([plan[0].messages], sampling)
    return reply


def test_a_number_is_scored_by_the_first_token_and_what_is_asked_for_is_sent():
    server = telling({"72": 0.5, "70": 0.25, "I": 0.125})
    reply = asked(server, SCALE)
    request = server.calls[0].request
    assert (request["logprobs"], request["top_logprobs"], request["temperature"]) == (True, 20, 0)
    assert (reply.text, reply.mass) == ("72", (pytest.approx(0.75),))
    assert reply.probabilities[72] == pytest.approx(2 / 3)
    assert reply.probabilities[70] == pytest.approx(1 / 3)
    assert sum(reply.probabilities) == pytest.approx(1)


def test_a_letter_is_scored_behind_the_brackets_of_the_models_own_text():
    reply = asked(
        telling({"Because ": 1.0}, {"[[": 1.0}, {"B": 0.5, "A": 0.25}, {"]]": 1.0}), VERDICTS
    )
    assert (reply.text, reply.mass) == ("[[B]]", (pytest.approx(0.75),))
    assert reply.probabilities == pytest.approx((1 / 3, 2 / 3, 0, 0))


def test_each_word_of_a_list_is_scored_behind_its_name():
    tokens = [{"- Friendly:": 1.0}, {" 4": 0.75}, {"\n- Honest:": 1.0}, {" 2": 0.5, " 3": 0.5}]
    reply = asked(telling(*tokens), WORDS)
    assert reply.mass == pytest.approx((0.75, 1.0))
    assert reply.probabilities == pytest.approx((0, 0, 0, 1, 0, 0, 0.5, 0.5, 0, 0))
    assert reply.text == "- Friendly: 4\n- Honest: 2"


def test_tokens_of_the_reasoning_are_passed_over():
    thought = [{"<think>": 1.0}, {"99": 1.0}, {"</think>": 1.0}]
    reply = asked(telling(*thought, {"72": 0.5, "70": 0.5}), SCALE)
    assert (reply.reasoning, reply.mass) == ("99", (1.0,))
    assert reply.probabilities[99] == 0
    assert reply.probabilities[72] == 0.5


def test_nothing_is_made_up_where_no_choice_is_told():
    reply = asked(telling({"I": 0.9, "As": 0.1}, {" cannot": 1.0}), SCALE)
    assert (reply.text, reply.finish_reason) == ("I cannot", "stop")
    assert (reply.probabilities, reply.mass) == ((), (0.0,))


def test_scored_answers_are_stored_and_read_as_those_of_a_local_model(tmp_path):
    plan, server = religion(2), telling({"72": 0.5, "70": 0.5})
    with server.running() as address:
        engine = InspectEngine(MODEL, f"{address}/v1")
        table = run(plan, tmp_path, engine, sampling=SCALE)
        manifest = open_store(tmp_path, plan, engine, SCALE, 50).manifest
    assert expected(table, SCALE.choices)[0].tolist() == [71.0] * len(plan)
    assert probabilities(table, SCALE.choices)[:, 0, 70].tolist() == [0.5] * len(plan)
    assert (manifest["sent_logprobs"], manifest["sent_top_logprobs"]) == (True, 20)


@pytest.mark.parametrize(
    "server",
    [
        FakeOpenAI(lambda call, before: ok(completion("72"))),
        FakeOpenAI(lambda call, before: fault(400, "logprobs is not supported")),
    ],
)
def test_a_server_without_log_probabilities_is_refused_at_once(server, tmp_path):
    with server.running() as address, pytest.raises(EngineError, match="READING=free"):
        run(religion(2), tmp_path, InspectEngine(MODEL, f"{address}/v1"), sampling=SCALE)
    assert len(server.calls) == 1


def test_a_reply_that_ended_inside_its_reasoning_is_not_scored():
    thought = [{"<think>": 1.0}, {"72": 0.9, "70": 0.1}]
    for sampling in (SCALE, VERDICTS):
        reply = asked(telling(*thought, {" [[A]]": 0.9}, ending="length"), sampling)
        assert (reply.text, reply.probabilities, reply.mass) == ("", (), (0.0,))
    # A server may tell tokens of a reasoning that it gives in a field of its own.
    body = completion("", "length", reasoning_content="maybe 72")
    token = {"token": "72", "logprob": -0.1, "bytes": None}
    body["choices"][0]["logprobs"] = {"content": [token | {"top_logprobs": [token]}]}
    reply = asked(FakeOpenAI(lambda call, before: ok(body)), SCALE)
    assert (reply.text, reply.probabilities, reply.mass) == ("", (), (0.0,))


def test_a_reply_that_a_filter_declined_is_not_scored():
    reply = asked(telling({"72": 0.9}, ending="content_filter"), SCALE)
    assert (reply.finish_reason, reply.probabilities) == ("filtered", ())


def test_a_scored_reply_that_was_cut_is_asked_again_with_more_tokens(tmp_path):
    plan, cut = religion(1), telling({"<think>": 1.0}, {"hm": 1.0}, ending="length")
    whole = telling({"72": 0.5, "70": 0.5})
    tables = []
    for server, limit in ((cut, 16), (whole, 64), (whole, 64)):
        sampling = Sampling(choices=SCALE.choices, max_tokens=limit)
        with server.running() as address:
            engine = InspectEngine(MODEL, f"{address}/v1")
            engine.address = "the same"
            tables.append(run(plan, tmp_path, engine, sampling=sampling))
    assert expected(tables[0], SCALE.choices)[0].isna().all()
    assert expected(tables[1], SCALE.choices)[0].tolist() == [71.0] * len(plan)
    assert len(whole.calls) == len(plan)


def test_each_manifest_says_what_its_own_calls_sent(tmp_path):
    plan, server = religion(1), telling({"72": 0.5, "70": 0.5})
    free = Sampling(max_tokens=16)
    with server.running() as address:
        engine = InspectEngine(MODEL, f"{address}/v1")
        manifests = [
            open_store(tmp_path / name, plan, engine, sampling, 50).manifest
            for name, sampling in (("a", SCALE), ("b", free), ("c", SCALE))
        ]
    assert ["sent_logprobs" in manifest for manifest in manifests] == [True, False, True]
