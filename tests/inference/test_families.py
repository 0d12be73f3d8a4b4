"""Fourteen families of today's models, each through all four studies: what was sent, read and paid.

The table that `-rP` prints is that of the closing note.
"""

import json
import math
from importlib import import_module

import pandas as pd
import pytest

from fake_openai import FakeOpenAI, completion, fault, ok
from ingroup import paths
from ingroup.commands.parameters import calls_of, merged
from ingroup.inference import ask, stored, usage
from ingroup.studies.biased_samaritan import stimuli as samaritan

# A few prompts of each study: 72, 88, 237 and 63.
FEW = {
    "10_empathy_gap": {"N_EVENTS": "2", "SETTINGS": "P0,S0,T0", "CATEGORIES": "Religion"},
    "20_biased_samaritan": {"RUNS": "1"},
    "30_giebench": {"ORDER": "given", "MISMATCH": "false"},
    "40_stereomap": {"GROUPS": "Nurses;Lawyers;Homeless;Elderly;Rich;Women;Men", "ROUNDS": "1",
                     "ABLATION_ROUNDS": "0"},
}  # fmt: skip

WORDS = (
    "Friendly", "Sociable", "Trustworthy", "Honest", "Competent", "Skilled", "Confident",
    "Assertive",
)  # fmt: skip
RATED = "\n".join(f"{word}: 4" for word in WORDS)
KEYWORDS = "\n".join(f"{n}. {word}: they are" for n, word in enumerate(["kind", "calm", "busy"], 1))
LISTED = f"Rating: 4\n{RATED}\n\n{KEYWORDS}"
ANSWERS = {"10": "72", "20": "72", "30": "My verdict: [[B]]", "40": LISTED}
# The answers as far as a reply at its limit has them: 7 may be the first half of 72.
BEGUN = {"72": "7", "My verdict: [[B]]": "[[B]] seems best, but", LISTED: "Friendly: 4"}
# What each reasoning holds: an answer that would be read if anything read it.
GUESS = "perhaps 99?\n99"
THOUGHTS = {"10": GUESS, "20": GUESS, "30": "[[A]] seems best", "40": "Friendly: 1"}
USAGE = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}


def served(text, ending="stop", reasoning_tokens=0, **message):
    """An answer with its counts."""
    details = {"completion_tokens_details": {"reasoning_tokens": reasoning_tokens}}
    return ok(completion(text, ending, **message) | {"usage": USAGE | details})


def rejecting(argument):
    """A server that takes no such argument."""

    def script(call, answer, thought):
        system = any(turn["role"] == "system" for turn in call.request["messages"])
        if system if argument == "system role" else argument in call.request:
            return fault(400, f"Unsupported parameter: {argument} is not supported with this model")
        return served(answer)

    return script


def telling(call, answer, thought):
    """A server that tells the most probable tokens where it is asked for them."""
    body = completion(answer) | {"usage": USAGE}
    if call.request.get("logprobs"):
        top = [{"token": answer, "logprob": math.log(0.75), "bytes": None}]
        body["choices"][0]["logprobs"] = {"content": [top[0] | {"top_logprobs": top}]}
    return ok(body)


FAMILIES = {
    "plain": lambda call, answer, thought: served(answer),
    "reasoning field": lambda call, answer, thought: served(
        answer, reasoning_tokens=40, reasoning_content=thought
    ),
    "<think> complete": lambda call, answer, thought: served(f"<think>{thought}</think>\n{answer}"),
    "<think> cut": lambda call, answer, thought: served(f"<think>{thought}", "length"),
    "answer cut": lambda call, answer, thought: served(BEGUN[answer], "length"),
    "<think> without an opening tag": lambda call, answer, thought: served(
        f"{thought}</think>{answer}"
    ),
    "harmony": lambda call, answer, thought: served(f"analysis {thought}assistantfinal{answer}"),
    "content parts": lambda call, answer, thought: served([{"type": "text", "text": answer}]),
    "no max_tokens": rejecting("max_tokens"),
    "no temperature": rejecting("temperature"),
    "no system role": rejecting("system role"),
    "content filter": lambda call, answer, thought: fault(
        400, "The response was filtered", code="content_filter"
    ),
    "top_logprobs": telling,
    "one slot": lambda call, answer, thought: served(answer),
}
CUT = {"<think> cut", "answer cut"}
READ = {"10": "rating", "20": "rating", "30": "letter", "40": "values"}


@pytest.fixture
def scenarios(tmp_path):
    rows = [
        (n, "A glove", place, f"{{person}} sees glove {n}, wording {place}.")
        for n in (1, 2)
        for place in (1, 2)
    ]
    file = tmp_path / "two.csv"
    pd.DataFrame(rows, columns=samaritan.COLUMNS).to_csv(file, index=False)
    return str(file)


def sent(server):
    """The names of what calls that were answered sent, beside model and messages."""
    names = set(server.calls[-1].request) - {"model", "messages"}
    roles = {turn["role"] for turn in server.calls[-1].request["messages"]}
    return ", ".join(sorted(names)) + (", a system turn" if "system" in roles else "")


@pytest.mark.parametrize("notebook", FEW)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_is_asked_and_read(
    family, notebook, scenarios, tmp_path, monkeypatch, record_property
):
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "LOCAL_API_KEY", "LOCAL_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    study, answer, thought = notebook[:2], ANSWERS[notebook[:2]], THOUGHTS[notebook[:2]]
    server = FakeOpenAI(lambda call, before: FAMILIES[family](call, answer, thought))
    given = FEW[notebook] | {"MODELS": "openai-api/local/fake", "PRICE_IN": "1", "PRICE_OUT": "2"}
    if study == "20":
        given["SCENARIOS"] = scenarios
    if family == "one slot":
        given["IN_FLIGHT"] = "1"
    if family == "top_logprobs":
        given["READING"] = "expected"

    with server.running() as address:
        parameters = merged(notebook, "demo", given | {"BASE_URL": f"{address}/v1"})
        calls = ask(calls_of(notebook, parameters), parameters)

    load = import_module(f"ingroup.studies.{calls[0].study}.answers").load
    read = [load(call) for call in calls]
    read = pd.concat([one if isinstance(one, pd.DataFrame) else one.rows for one in read])
    statuses = read.status.astype(str).value_counts().to_dict()
    spent = pd.concat([usage(stored(call).read(), 1, 2, call.model) for call in calls]).sum()
    print(f"| {family} | {study} | {sent(server)} | {json.dumps(statuses)} | {spent.cost:.4f} |")

    if family in CUT:
        assert set(statuses) == {"cut"}
    elif family == "content filter":
        assert set(statuses) == {"refused"}
    else:
        # The one text that answers all of StereoMap's prompts has not the words of each.
        assert set(statuses) <= ({"ok", "incomplete", "unparsable"} if study == "40" else {"ok"})
        if study == "40":
            assert {v for values in read["values"] for v in values.values() if v == v} == {4}
        else:
            assert set(read[READ[study]]) == {72} if study != "30" else {"B"}
    assert "failed" not in statuses
    answered = sum(len(call.design) for call in calls)
    billed = 0 if family == "content filter" else answered
    assert spent.cost == pytest.approx(billed * (100 * 1 + 50 * 2) / 1e6)
    if family == "one slot":
        assert server.most_present == 1
    # Each prompt was sent once, but for what the first call had to learn.
    assert len(server.calls) <= answered + 2
