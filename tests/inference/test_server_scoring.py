"""Scored answers of a server that tells its most probable tokens, through the whole engine."""

import math

import pytest

from fake_openai import FakeOpenAI, completion, fault, ok
from ingroup.inference import EngineError, Sampling, open_store
from ingroup.inference.choices import expected_values, probabilities
from ingroup.inference.inspect_engine import InspectEngine
from toy import religion, run

MODEL = "openai-api/local/fake"
NUMBERS = tuple(str(number) for number in range(101))
SCALE = Sampling(choices=NUMBERS, max_tokens=16)
VERDICTS = Sampling(choices=("[[A]]", "[[B]]", "[[C]]", "[[D]]"), max_tokens=64)
WORDS = Sampling(
    choices=(" 1", " 2", " 3", " 4", " 5"),
    leads=("- Friendly:", "\n- Honest:"),
    max_tokens=64,
)

# Tokens with the probabilities of their alternatives; the first is the one that is written.
THINK = {"<think>": 1.0}
END_THINK = {"</think>": 1.0}
SEVENTY_ONE = {"72": 0.5, "70": 0.5}  # on average


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "LOCAL_API_KEY", "LOCAL_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def log_probabilities(alternatives):
    """A token as OpenAI's API reports it, with its alternatives."""
    entries = []
    for text, probability in alternatives.items():
        entry = {"token": text, "logprob": math.log(probability), "bytes": list(text.encode())}
        entries.append(entry)

    return entries[0] | {"top_logprobs": entries}


def server_of(*tokens, **message):
    """A server that writes some tokens and reports the alternatives of each."""
    content = [log_probabilities(alternatives) for alternatives in tokens]
    text = "".join(token["token"] for token in content)
    body = completion(text, **message)
    body["choices"][0]["logprobs"] = {"content": content}
    return FakeOpenAI(lambda call, before: ok(body))


def reply_of(server, sampling):
    """The reply to one chat."""
    chat = religion(2)[0].messages
    with server.running() as address:
        engine = InspectEngine(MODEL, f"{address}/v1")
        replies = engine.answer([chat], sampling)

    assert len(replies) == 1
    return replies[0]


def test_a_number_is_scored_by_its_first_token():
    server = server_of({"72": 0.5, "70": 0.25, "I": 0.125})

    reply = reply_of(server, SCALE)

    assert reply.text == "72"
    assert reply.mass == (pytest.approx(0.75),)
    assert reply.probabilities[72] == pytest.approx(2 / 3)
    assert reply.probabilities[70] == pytest.approx(1 / 3)
    assert sum(reply.probabilities) == pytest.approx(1)


def test_the_server_is_asked_for_twenty_alternatives_at_temperature_0():
    server = server_of({"72": 0.5})

    reply_of(server, SCALE)

    request = server.calls[0].request
    assert request["logprobs"] is True
    assert request["top_logprobs"] == 20
    assert request["temperature"] == 0


def test_a_letter_is_scored_behind_the_brackets_of_the_models_own_text():
    server = server_of({"Because ": 1.0}, {"[[": 1.0}, {"B": 0.5, "A": 0.25}, {"]]": 1.0})

    reply = reply_of(server, VERDICTS)

    assert reply.text == "[[B]]"
    assert reply.mass == (pytest.approx(0.75),)
    assert reply.probabilities == pytest.approx((1 / 3, 2 / 3, 0, 0))


def test_each_word_of_a_list_is_scored_behind_its_name():
    server = server_of(
        {"- Friendly:": 1.0},
        {" 4": 0.75},
        {"\n- Honest:": 1.0},
        {" 2": 0.5, " 3": 0.5},
    )

    reply = reply_of(server, WORDS)

    assert reply.text == "- Friendly: 4\n- Honest: 2"
    assert reply.mass == pytest.approx((0.75, 1.0))
    assert reply.probabilities == pytest.approx((0, 0, 0, 1, 0, 0, 0.5, 0.5, 0, 0))


def test_tokens_of_the_reasoning_are_passed_over():
    server = server_of(THINK, {"99": 1.0}, END_THINK, SEVENTY_ONE)

    reply = reply_of(server, SCALE)

    assert reply.reasoning == "99"
    assert reply.mass == (1.0,)
    assert reply.probabilities[99] == 0
    assert reply.probabilities[72] == 0.5


@pytest.mark.parametrize(
    ("written", "alternative"), [(" 72", " 70"), ("\n\n72", "\n\n70"), ("72\n", "70\n")]
)
def test_white_space_in_the_token_of_an_answer_does_not_hide_it(written, alternative):
    server = server_of(THINK, {"99": 1.0}, END_THINK, {written: 0.5, alternative: 0.25})

    reply = reply_of(server, SCALE)

    assert reply.text == "72"
    assert reply.mass == (0.75,)
    assert reply.probabilities[72] == pytest.approx(2 / 3)


def test_an_answer_that_shares_a_token_with_the_reasoning_is_not_scored():
    server = server_of(THINK, {"99": 1.0}, {"</think>\n\n7": 1.0}, {"2": 0.5, "0": 0.5})

    reply = reply_of(server, SCALE)

    # Without its first token the answer would be read as 2.
    assert reply.text == "72"
    assert reply.probabilities == ()
    assert reply.mass == (0.0,)


def test_nothing_is_made_up_where_no_choice_is_reported():
    server = server_of({"I": 0.9, "As": 0.1}, {" cannot": 1.0})

    reply = reply_of(server, SCALE)

    assert reply.text == "I cannot"
    assert reply.finish_reason == "stop"
    assert reply.probabilities == ()
    assert reply.mass == (0.0,)


def test_scored_answers_are_stored_and_read_as_those_of_a_local_model(tmp_path):
    plan = religion(2)
    with server_of(SEVENTY_ONE).running() as address:
        engine = InspectEngine(MODEL, f"{address}/v1")
        table = run(plan, tmp_path, engine, sampling=SCALE)
        manifest = open_store(tmp_path, plan, engine, SCALE, 50).manifest

    means = expected_values(table, NUMBERS)[0]
    probabilities_of_70 = probabilities(table, NUMBERS)[:, 0, 70]
    assert means.tolist() == [71.0] * len(plan)
    assert probabilities_of_70.tolist() == [0.5] * len(plan)
    assert manifest["sent_logprobs"] is True
    assert manifest["sent_top_logprobs"] == 20


@pytest.mark.parametrize(
    "answer",
    [ok(completion("72")), fault(400, "logprobs is not supported")],
    ids=["left out", "refused"],
)
def test_a_server_without_log_probabilities_is_refused_at_once(answer, tmp_path):
    server = FakeOpenAI(lambda call, before: answer)

    with server.running() as address, pytest.raises(EngineError, match="READING=free"):
        run(religion(2), tmp_path, InspectEngine(MODEL, f"{address}/v1"), sampling=SCALE)

    assert len(server.calls) == 1


@pytest.mark.parametrize("sampling", [SCALE, VERDICTS], ids=["scale", "verdicts"])
def test_a_reply_that_ended_inside_its_reasoning_is_not_scored(sampling):
    thought = {"72": 0.9, "70": 0.1}
    server = server_of(THINK, thought, {" [[A]]": 0.9}, ending="length")

    reply = reply_of(server, sampling)

    assert reply.text == ""
    assert reply.probabilities == ()
    assert reply.mass == (0.0,)


def test_tokens_of_reasoning_in_a_field_of_its_own_are_not_scored():
    body = completion("", "length", reasoning_content="maybe 72")
    token = {"token": "72", "logprob": -0.1, "bytes": None}
    body["choices"][0]["logprobs"] = {"content": [token | {"top_logprobs": [token]}]}
    server = FakeOpenAI(lambda call, before: ok(body))

    reply = reply_of(server, SCALE)

    assert reply.text == ""
    assert reply.probabilities == ()
    assert reply.mass == (0.0,)


def test_a_reply_that_a_filter_declined_is_not_scored():
    server = server_of({"72": 0.9}, ending="content_filter")

    reply = reply_of(server, SCALE)

    assert reply.finish_reason == "filtered"
    assert reply.probabilities == ()


def score_within(server, folder, max_tokens):
    """The mean scores of a run with so many tokens per reply."""
    sampling = Sampling(choices=NUMBERS, max_tokens=max_tokens)
    with server.running() as address:
        engine = InspectEngine(MODEL, f"{address}/v1")
        engine.address = "the same"
        table = run(religion(1), folder, engine, sampling=sampling)

    return expected_values(table, NUMBERS)[0]


def test_a_scored_reply_that_was_cut_is_asked_again_with_more_tokens(tmp_path):
    cut_server = server_of(THINK, {"hm": 1.0}, ending="length")
    whole_server = server_of(SEVENTY_ONE)

    cut_means = score_within(cut_server, tmp_path, 16)
    means = score_within(whole_server, tmp_path, 64)
    score_within(whole_server, tmp_path, 64)

    trials = len(religion(1))
    assert cut_means.isna().all()
    assert means.tolist() == [71.0] * trials
    assert len(whole_server.calls) == trials


def test_each_manifest_says_what_its_own_calls_sent(tmp_path):
    plan = religion(1)
    free = Sampling(max_tokens=16)

    with server_of(SEVENTY_ONE).running() as address:
        engine = InspectEngine(MODEL, f"{address}/v1")
        scored = open_store(tmp_path / "a", plan, engine, SCALE, 50).manifest
        of_free = open_store(tmp_path / "b", plan, engine, free, 50).manifest
        scored_again = open_store(tmp_path / "c", plan, engine, SCALE, 50).manifest

    assert "sent_logprobs" in scored
    assert "sent_logprobs" not in of_free
    assert "sent_logprobs" in scored_again
