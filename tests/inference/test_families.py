"""Fourteen families of today's models, each through all four studies: what was sent, read and paid.

The table that `-rP` prints is that of the closing note.
"""

import json
import math
from importlib import import_module
from itertools import product

import pandas as pd
import pytest

from fake_openai import FakeOpenAI, completion, fault, ok
from ingroup import paths
from ingroup.commands.run_parameters import jobs_of, merged_parameters
from ingroup.inference import ask, stored, usage
from ingroup.studies.biased_samaritan import stimuli as samaritan

MODEL = "openai-api/local/fake"
PRICE_IN = 1
PRICE_OUT = 2

# A few prompts of each study: 72, 88, 237 and 63.
FEW = {
    "10_empathy_gap": {
        "N_EVENTS": "2",
        "SETTINGS": "P0,S0,T0",
        "CATEGORIES": "Religion",
    },
    "20_biased_samaritan": {"ROUNDS": "1"},
    "30_giebench": {
        "ORDER": "given",
        "MISMATCH": "false",
    },
    "40_stereomap": {
        "GROUPS": "Nurses;Lawyers;Homeless;Elderly;Rich;Women;Men",
        "ROUNDS": "1",
        "ABLATION_ROUNDS": "0",
    },
}

# One text that answers all of StereoMap's prompts.
LISTED = """Rating: 4
Friendly: 4
Sociable: 4
Trustworthy: 4
Honest: 4
Competent: 4
Skilled: 4
Confident: 4
Assertive: 4

1. kind: they are
2. calm: they are
3. busy: they are"""
ANSWERS = {
    "10_empathy_gap": "72",
    "20_biased_samaritan": "72",
    "30_giebench": "My verdict: [[B]]",
    "40_stereomap": LISTED,
}

# The answers as far as a reply at its limit has them: 7 may be the first half of 72.
BEGUN = {
    "72": "7",
    "My verdict: [[B]]": "[[B]] seems best, but",
    LISTED: "Friendly: 4",
}

# What each reasoning holds: an answer that would be read if anything read it.
GUESS = "perhaps 99?\n99"
THOUGHTS = {
    "10_empathy_gap": GUESS,
    "20_biased_samaritan": GUESS,
    "30_giebench": "[[A]] seems best",
    "40_stereomap": "Friendly: 1",
}
USAGE = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}


# ---- the families --------------------------------------------------------------------------------


def served(text, ending="stop", reasoning_tokens=0, **message):
    """An answer with its counts."""
    details = {"completion_tokens_details": {"reasoning_tokens": reasoning_tokens}}
    body = completion(text, ending, **message)
    body["usage"] = USAGE | details
    return ok(body)


def reject(argument):
    """The error of a server that takes no such argument."""
    return fault(400, f"Unsupported parameter: {argument} is not supported with this model")


def plain(call, answer, thought):
    return served(answer)


def reasoning_field(call, answer, thought):
    return served(answer, reasoning_tokens=40, reasoning_content=thought)


def think_complete(call, answer, thought):
    return served(f"<think>{thought}</think>\n{answer}")


def think_cut(call, answer, thought):
    return served(f"<think>{thought}", "length")


def answer_cut(call, answer, thought):
    return served(BEGUN[answer], "length")


def think_without_opening_tag(call, answer, thought):
    return served(f"{thought}</think>{answer}")


def harmony(call, answer, thought):
    return served(f"analysis {thought}assistantfinal{answer}")


def content_parts(call, answer, thought):
    return served([{"type": "text", "text": answer}])


def no_max_tokens(call, answer, thought):
    if "max_tokens" in call.request:
        return reject("max_tokens")
    return served(answer)


def no_temperature(call, answer, thought):
    if "temperature" in call.request:
        return reject("temperature")
    return served(answer)


def no_system_role(call, answer, thought):
    if "system" in roles_of(call):
        return reject("system role")
    return served(answer)


def content_filter(call, answer, thought):
    return fault(400, "The response was filtered", code="content_filter")


def top_logprobs(call, answer, thought):
    """Reports the most probable tokens where it is asked for them."""
    body = completion(answer)
    body["usage"] = USAGE
    if call.request.get("logprobs"):
        token = {"token": answer, "logprob": math.log(0.75), "bytes": None}
        with_alternatives = token | {"top_logprobs": [token]}
        body["choices"][0]["logprobs"] = {"content": [with_alternatives]}
    return ok(body)


FAMILIES = {
    "plain": plain,
    "reasoning field": reasoning_field,
    "<think> complete": think_complete,
    "<think> cut": think_cut,
    "answer cut": answer_cut,
    "<think> without an opening tag": think_without_opening_tag,
    "harmony": harmony,
    "content parts": content_parts,
    "no max_tokens": no_max_tokens,
    "no temperature": no_temperature,
    "no system role": no_system_role,
    "content filter": content_filter,
    "top_logprobs": top_logprobs,
    "one slot": plain,
}
PARAMETERS = {
    "one slot": {"IN_FLIGHT": "1"},
    "top_logprobs": {"READING": "expected"},
}
CUT = {"<think> cut", "answer cut"}


# ---- each through each study ---------------------------------------------------------------------


@pytest.fixture
def scenarios(tmp_path):
    """A file of two scenarios in two wordings."""
    rows = []
    for scenario, wording in product((1, 2), (1, 2)):
        text = f"{{person}} sees glove {scenario}, wording {wording}."
        rows.append((scenario, "A glove", wording, text))

    file = tmp_path / "two.csv"
    pd.DataFrame(rows, columns=samaritan.COLUMNS).to_csv(file, index=False)
    return str(file)


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """Answers go to a folder of the test's, and no key or address is set."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "LOCAL_API_KEY", "LOCAL_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def roles_of(call):
    return {turn["role"] for turn in call.request["messages"]}


def describe_request(call):
    """The names of what a call sent, beside model and messages."""
    names = sorted(set(call.request) - {"model", "messages"})
    if "system" in roles_of(call):
        names[-1] += ", a system turn"
    return ", ".join(names)


def ask_server(server, notebook, given):
    """Ask a study's prompts of a server."""
    with server.running() as address:
        parameters = merged_parameters(notebook, "demo", given | {"BASE_URL": f"{address}/v1"})
        return ask(jobs_of(notebook, parameters), parameters)


def load_answers(jobs):
    """The answers as the study reads them, one row per reply."""
    load = import_module(f"ingroup.studies.{jobs[0].study}.answers").load

    tables = []
    for job in jobs:
        answers = load(job)
        tables.append(answers if isinstance(answers, pd.DataFrame) else answers.rows)

    return pd.concat(tables)


def total_usage(jobs):
    tables = [usage(stored(job).read(), PRICE_IN, PRICE_OUT, job.model) for job in jobs]
    return pd.concat(tables).sum()


def check_values(notebook, answers):
    """Every value is that of the answer, and none that of the reasoning."""
    statuses = set(answers.status.astype(str))
    if notebook == "40_stereomap":
        # The one text that answers all of StereoMap's prompts has not the words of each.
        assert statuses <= {"ok", "incomplete", "unparsable"}
        ratings = pd.concat(pd.Series(list(values.values())) for values in answers["values"])
        assert set(ratings.dropna()) == {4}
    elif notebook == "30_giebench":
        assert statuses == {"ok"}
        assert set(answers.letter) == {"B"}
    else:
        assert statuses == {"ok"}
        assert set(answers.rating) == {72}


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("notebook", FEW)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_is_asked_read_and_paid(family, notebook, scenarios):
    reply = FAMILIES[family]
    server = FakeOpenAI(lambda call, _: reply(call, ANSWERS[notebook], THOUGHTS[notebook]))
    given = {"MODELS": MODEL, "PRICE_IN": str(PRICE_IN), "PRICE_OUT": str(PRICE_OUT)}
    given |= FEW[notebook] | PARAMETERS.get(family, {})
    if notebook == "20_biased_samaritan":
        given["SCENARIOS"] = scenarios

    jobs = ask_server(server, notebook, given)

    answers = load_answers(jobs)
    statuses = answers.status.astype(str).value_counts().to_dict()
    cost = total_usage(jobs).cost
    sent = describe_request(server.calls[-1])
    print(f"| {family} | {notebook[:2]} | {sent} | {json.dumps(statuses)} | {cost:.4f} |")

    assert "failed" not in statuses
    if family in CUT:
        assert set(statuses) == {"cut"}
    elif family == "content filter":
        assert set(statuses) == {"refused"}
    else:
        check_values(notebook, answers)

    asked = sum(len(job.design) for job in jobs)
    billed = 0 if family == "content filter" else asked
    assert cost == pytest.approx(billed * (100 * PRICE_IN + 50 * PRICE_OUT) / 1e6)
    if family == "one slot":
        assert server.most_present == 1

    # Each prompt was sent once, but for what the first call had to learn.
    assert len(server.calls) <= asked + 2
