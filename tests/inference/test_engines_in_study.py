"""The first study through a server and from recordings: one parameter changes, nothing leaks."""

import pandas as pd
import pytest

from fake_openai import FakeOpenAI, fault
from ingroup import notebook, paths
from ingroup.commands.parameters import merged
from ingroup.inference import ask, make_engine, parts, stored
from ingroup.inference.inspect_engine import InspectEngine
from ingroup.inference.replay_engine import ReplayEngine
from ingroup.inference.transformers_engine import TransformersEngine
from ingroup.studies.biased_samaritan.design import calls as biased_samaritan
from ingroup.studies.empathy_gap import answers, stimuli
from ingroup.studies.empathy_gap.design import calls

KEY = "sk-planted-0123456789abcdefghij"
RECORDED = {"RECORDINGS": str(paths.DATA)}  # a place that is there
FIRST = stimuli.load_events("sample", 2).generated_text[0]


def fails(call):
    """The server fails for one experiencer in the first of the two events."""
    return "a Jew" in call.prompt and FIRST in call.prompt


def asked(**given):
    """The calls of a small study, one a category, answered."""
    given |= {"MODELS": "some-model", "N_EVENTS": "2", "SETTINGS": "P0,S0,T0", "CORPUS": "sample"}
    values = merged("10_empathy_gap", "demo", given)
    return ask(calls(values), values)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The study against a server that now and then repeats the key in an error."""
    server = FakeOpenAI(
        lambda call, _: fault(400, f"Incorrect API key provided: {KEY}") if fails(call) else None
    )
    with pytest.MonkeyPatch.context() as patch, server.running() as address:
        for name in ("BUILD", "RESPONSES"):
            patch.setattr(paths, name, tmp_path_factory.getbasetemp() / "served" / name.lower())
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("NO_PROXY", "127.0.0.1")
        yield server, asked(ENGINE="inspect", BASE_URL=address + "/v1")


def test_a_server_answers_the_study_and_failures_have_their_name(served):
    server, done = served
    assert {request.authorization for request in server.calls} == {f"Bearer {KEY}"}
    counts = pd.DataFrame({call.labels["category"]: answers.load(call).counts for call in done})
    assert counts.loc[["ok", "failed"]].sum().sum() == 2 * 881
    failed = sum(map(fails, server.calls))
    assert counts.loc["failed"].to_dict() == {
        "Race or Ethnicity": 0, "Nationality": 0, "Religion": failed
    }  # fmt: skip
    assert failed == 6


def test_what_it_took_is_told_and_the_key_is_in_no_file(served):
    server, done = served
    out = notebook.Output("empathy_gap", "served")
    notebook.took(done, out, price_in=2, price_out=8)
    assert len(out.read("failed")) == 6
    spent = out.read("usage").set_index("model").loc["all"]
    words = sum(
        len(message["content"].split())
        for request in server.calls
        if not fails(request)
        for message in request.request["messages"]
    )
    assert spent.prompt_tokens == words
    assert spent.cost == pytest.approx((2 * words + 8 * spent.output_tokens) / 1e6, abs=0.005)
    files = [file for file in paths.BUILD.parent.rglob("*") if file.is_file()]
    assert {file.suffix for file in files} >= {".parquet", ".json", ".csv"}
    for file in files:
        assert KEY.encode() not in file.read_bytes(), file
    assert any(b"[key]" in file.read_bytes() for file in files if file.suffix == ".parquet")


def test_recorded_answers_give_the_same_responses(served, tmp_path):
    """Of the other engine's texts in a table; what had failed there is not recorded."""
    first, rows = pd.concat(part for call in served[1] for part in parts(stored(call))), []
    trials = (trial for call in served[1] for trial in call.design)
    for trial, text in zip(trials, first.text, strict=True):
        turns = [message["content"] for message in trial.messages]
        rows += [(*turns, text)] if isinstance(text, str) else []
    file = tmp_path / "recorded.csv"
    pd.DataFrame(rows, columns=["system", "prompt", "response"]).to_csv(file, index=False)
    replayed = asked(ENGINE="replay", RECORDINGS=str(file))
    again = pd.concat(part for call in replayed for part in parts(stored(call)))
    assert again.text.astype(object).equals(first.text.astype(object))
    assert (again.finish_reason == "failed").sum() == 6


def test_a_round_without_recordings_is_left_out(tmp_path, monkeypatch, capsys):
    """Of two rounds one is recorded: the other is not asked, and no answer is given twice."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    values = {"MODELS": "m", "ENGINE": "replay", "RUNS": "2"}
    every = biased_samaritan(merged("20_biased_samaritan", "demo", values | RECORDED))
    rows = [(trial.messages[-1]["content"], "7") for trial in every[0].design]
    file = tmp_path / "recorded.csv"
    pd.DataFrame(rows, columns=["prompt", "response"]).to_csv(file, index=False)
    done = ask(every, values | {"RECORDINGS": str(file)})
    assert {call.round for call in every} == {1, 2}
    assert {call.round for call in done} == {1}
    assert "m: free text (2 Race; " in capsys.readouterr().err
    assert set(stored(done[0]).read().text) == {"7"}


def test_a_name_makes_its_engine(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    local = make_engine("transformers", "calibrant", batch_size=7, bos="released")
    assert isinstance(local, TransformersEngine)
    assert (local.batch_size, local.identity()["bos"]) == (7, "released")
    assert local.identity()["dtype"] == "float32"
    assert make_engine("transformers", "calibrant", dtype="bfloat16").dtype == "bfloat16"
    monkeypatch.setattr(InspectEngine, "knock", lambda engine: engine)  # nothing is there
    address = {"base_url": "http://127.0.0.1:1/v1"}
    for former in ("openai", "inspect"):
        remote = make_engine(former, "m", in_flight=3, timeout=9, **address)
        assert isinstance(remote, InspectEngine)
        assert (remote.model, remote.in_flight) == ("openai-api/local/m", 3)
        assert (remote.timeout, remote.batch) == (9, False)
    assert make_engine("inspect", "openai/m", batch=True, **address).batch
    file = tmp_path / "answers.csv"
    file.write_text("prompt,response\na,1\na,2\n")
    recorded = make_engine("replay", "m", recordings=str(file))
    assert isinstance(recorded, ReplayEngine)
    with pytest.raises(ValueError, match="ENGINE 'x' is unknown; expected transformers, vllm"):
        make_engine("x", "m")
