"""The first study through a server and from recordings: one parameter changes, nothing leaks."""

import shutil

import pandas as pd
import pytest

from fake_openai import FakeOpenAI, fault
from ingroup import paths
from ingroup.commands import parameters, run
from ingroup.inference import Sampling, generate, make_engine, open_store
from ingroup.inference.openai_engine import OpenAIEngine
from ingroup.inference.replay_engine import ReplayEngine
from ingroup.inference.transformers_engine import TransformersEngine
from ingroup.studies.empathy_gap.design import trials as empathy_gap_trials
from ingroup.studies.empathy_gap.stimuli import load_events

NOTEBOOK = "10_empathy_gap"
KEY = "sk-planted-0123456789abcdefghij"
SMALL = {
    "MODEL": "some-model",
    "N_EVENTS": "3",
    "SETTINGS": "P0,S0,T0",
    "N_RESAMPLES": "200",
    "CORPUS": "sample",
}


FIRST = load_events("sample", 3).generated_text[0]
RUN = "test-server"


def fails(call):
    """The server fails for one experiencer in the first of the three events."""
    return "a Jew" in call.prompt and FIRST in call.prompt


@pytest.fixture(scope="module")
def written():
    """All folders that are written to; empty before, and gone afterwards."""
    responses = paths.RESPONSES / "empathy_gap" / "sample-3"
    folders = [responses / f"{SMALL['MODEL']}@{engine}" for engine in ("openai", "replay")]
    folders.append(paths.BUILD / "runs" / RUN)

    def clear():
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)

    clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("NO_PROXY", "127.0.0.1")
        yield folders
    clear()


@pytest.fixture(scope="module")
def served(written):
    """The notebook against a server that now and then repeats the key in an error."""
    echo = f"Incorrect API key provided: {KEY}"
    server = FakeOpenAI(lambda call, _: fault(400, echo) if fails(call) else None)
    with server.running() as address:
        given = {"ENGINE": "openai", "BASE_URL": address + "/v1"}
        given |= {"PRICE_IN": "2", "PRICE_OUT": "8"}
        run.execute(NOTEBOOK, parameters.merged(NOTEBOOK, "demo", SMALL | given, run=RUN))
    assert {call.authorization for call in server.calls} == {f"Bearer {KEY}"}
    return paths.BUILD / "runs" / RUN, server


def table(folder, name):
    return pd.read_csv(folder / "tables" / "empathy_gap" / f"{name}.csv")


def test_a_server_answers_the_study_and_failures_have_their_name(served):
    folder, server = served
    counts = table(folder, "responses").set_index("category")
    assert counts[["ok", "failed"]].sum().sum() == 3 * 881
    failed = sum(map(fails, server.calls))
    assert counts.failed.to_dict() == {"Race or Ethnicity": 0, "Nationality": 0, "Religion": failed}
    assert failed == 6
    spent = table(folder, "usage").set_index("model").loc["all"]
    words = sum(
        len(message["content"].split())
        for call in server.calls
        if not fails(call)
        for message in call.request["messages"]
    )
    assert spent.prompt_tokens == words
    assert spent.cost == pytest.approx((2 * words + 8 * spent.output_tokens) / 1e6)


def test_the_key_is_in_no_file(served, written):
    files = [file for folder in written for file in folder.rglob("*") if file.is_file()]
    assert {file.suffix for file in files} >= {".parquet", ".json", ".ipynb", ".csv", ".png"}
    for file in files:
        assert KEY.encode() not in file.read_bytes(), file
    assert any(b"[key]" in file.read_bytes() for file in files if file.suffix == ".parquet")


def test_recorded_answers_give_the_same_responses(served, written):
    """The cell that asks, on what the server's run has stored."""
    plan = empathy_gap_trials(load_events("sample", 3), ["P0,S0,T0"])
    engine = make_engine("replay", SMALL["MODEL"], recordings=str(written[0]), designs=[plan])
    sampling = Sampling(temperature=0.0, max_tokens=128)
    store = open_store(written[1] / "P0,S0,T0", plan, engine, sampling)
    replayed = generate(plan, engine, store, sampling)
    recorded = pd.read_parquet(next(written[0].rglob("part-00000.parquet")))
    assert replayed.text.astype(object).equals(recorded.text.astype(object))
    assert (replayed.finish_reason == "failed").sum() == 6
    engine.close()


def test_a_name_makes_its_engine(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    local = make_engine("transformers", "calibrant", batch_size=7, bos="released")
    assert isinstance(local, TransformersEngine)
    assert (local.batch_size, local.identity()["bos"]) == (7, "released")
    assert local.identity()["dtype"] == "float32"
    assert make_engine("transformers", "calibrant", dtype="bfloat16").dtype == "bfloat16"
    remote = make_engine("openai", "m", base_url="http://127.0.0.1:1/v1", in_flight=3)
    assert isinstance(remote, OpenAIEngine)
    assert (remote.model, remote.in_flight) == ("m", 3)
    file = tmp_path / "answers.csv"
    file.write_text("prompt,response\na,1\na,2\n")
    recorded = make_engine("replay", "m", recordings=str(file))
    assert isinstance(recorded, ReplayEngine)
    assert recorded.repeats == "in order"
    with pytest.raises(ValueError, match="ENGINE 'x' is unknown; expected transformers, vllm"):
        make_engine("x", "m")
