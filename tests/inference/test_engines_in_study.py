"""The first study through a server and from recordings: one parameter changes, nothing leaks."""

import pandas as pd
import pytest

from fake_openai import FakeOpenAI, fault
from ingroup import notebook, paths
from ingroup.commands.run_parameters import merged_parameters
from ingroup.inference import ask, make_engine, parts, stored
from ingroup.inference.inspect_engine import InspectEngine
from ingroup.inference.replay_engine import ReplayEngine
from ingroup.inference.transformers_engine import TransformersEngine
from ingroup.studies.biased_samaritan.design import jobs as biased_samaritan
from ingroup.studies.empathy_gap import answers, stimuli
from ingroup.studies.empathy_gap.design import jobs

KEY = "sk-decoy-0123456789abcdefghij"
EXISTING_PLACE = str(paths.DATA)
FIRST_EVENT = stimuli.load_events("sample", 2).generated_text[0]
FAILURES = 6


def is_failing(job):
    """The server fails for one experiencer in the first of the two events."""
    return "a Jew" in job.prompt and FIRST_EVENT in job.prompt


def fail_with_key(job, _):
    """An error that repeats the key."""
    if is_failing(job):
        return fault(400, f"Incorrect API key provided: {KEY}")
    return None


def ask_study(**given):
    """The jobs of a small study, one per category, answered."""
    small = {"MODELS": "some-model", "N_EVENTS": "2", "SETTINGS": "P0,S0,T0", "CORPUS": "sample"}
    values = merged_parameters("10_empathy_gap", "demo", given | small)
    return ask(jobs(values), values)


def read_all(jobs):
    """The stored replies of all jobs in one table."""
    tables = []
    for job in jobs:
        tables.extend(parts(stored(job)))

    return pd.concat(tables)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The study against a server that now and then repeats the key in an error."""
    server = FakeOpenAI(fail_with_key)
    folder = tmp_path_factory.getbasetemp() / "served"
    with pytest.MonkeyPatch.context() as patch, server.running() as address:
        patch.setattr(paths, "BUILD", folder / "build")
        patch.setattr(paths, "RESPONSES", folder / "responses")
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("NO_PROXY", "127.0.0.1")
        yield server, ask_study(ENGINE="inspect", BASE_URL=address + "/v1")


def test_a_server_answers_the_study_and_failures_have_their_name(served):
    server, done = served

    counts = pd.DataFrame({job.labels["category"]: answers.load(job).counts for job in done})

    authorizations = {request.authorization for request in server.calls}
    assert authorizations == {f"Bearer {KEY}"}
    assert sum(map(is_failing, server.calls)) == FAILURES
    assert counts.loc[["ok", "failed"]].sum().sum() == 2 * 881
    assert counts.loc["failed"].to_dict() == {
        "Race or Ethnicity": 0,
        "Nationality": 0,
        "Religion": FAILURES,
    }


def count_words(requests):
    """Words of the prompts that the server answered."""
    words = 0
    for request in requests:
        if not is_failing(request):
            for message in request.request["messages"]:
                words += len(message["content"].split())

    return words


@pytest.fixture(scope="module")
def output(served):
    """What a notebook writes about the cost and the failures of the study."""
    _, done = served
    output = notebook.Output("empathy_gap", "served")
    notebook.took(done, output, price_in=2, price_out=8)
    return output


def test_failures_and_costs_are_tables(served, output):
    server, _ = served

    usage = output.read("usage").set_index("model").loc["all"]

    words = count_words(server.calls)
    cost = (2 * words + 8 * usage.output_tokens) / 1e6
    assert len(output.read("failed")) == FAILURES
    assert usage.prompt_tokens == words
    assert usage.cost == pytest.approx(cost, abs=0.005)


@pytest.mark.usefixtures("output")
def test_the_key_is_in_no_file():
    contents = {}
    for file in paths.BUILD.parent.rglob("*"):
        if file.is_file():
            contents[file] = file.read_bytes()

    suffixes = {file.suffix for file in contents}
    shards = [content for file, content in contents.items() if file.suffix == ".parquet"]
    assert suffixes >= {".parquet", ".json", ".csv"}
    for file, content in contents.items():
        assert KEY.encode() not in content, file
    assert any(b"[key]" in shard for shard in shards)


def test_recorded_answers_give_the_same_responses(served, tmp_path):
    """The texts of the other engine in a table; what had failed there is not recorded."""
    _, done = served
    original = read_all(done)
    trials = [trial for job in done for trial in job.design]
    rows = []
    for trial, text in zip(trials, original.text, strict=True):
        if isinstance(text, str):
            system, user = [message["content"] for message in trial.messages]
            rows.append((system, user, text))
    file = tmp_path / "recorded.csv"
    pd.DataFrame(rows, columns=["system", "prompt", "response"]).to_csv(file, index=False)

    replayed = read_all(ask_study(ENGINE="replay", RECORDINGS=str(file)))

    assert replayed.text.astype(object).equals(original.text.astype(object))
    assert (replayed.finish_reason == "failed").sum() == FAILURES


def test_a_round_without_recordings_is_left_out(tmp_path, monkeypatch, capsys):
    """One of two rounds is recorded: the other is not asked, and no answer is given twice."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    values = {"MODELS": "m", "ENGINE": "replay", "ROUNDS": "2", "RECORDINGS": EXISTING_PLACE}
    planned = biased_samaritan(merged_parameters("20_biased_samaritan", "demo", values))
    rows = [(trial.messages[-1]["content"], "7") for trial in planned[0].design]
    file = tmp_path / "recorded.csv"
    pd.DataFrame(rows, columns=["prompt", "response"]).to_csv(file, index=False)

    done = ask(planned, values | {"RECORDINGS": str(file)})

    assert {job.round for job in planned} == {1, 2}
    assert {job.round for job in done} == {1}
    assert "m: free text (2 Race; " in capsys.readouterr().err
    assert set(stored(done[0]).read().text) == {"7"}


def test_a_name_makes_a_local_engine():
    engine = make_engine("transformers", "calibrant", batch_size=7, bos="released")
    with_dtype = make_engine("transformers", "calibrant", dtype="bfloat16")

    assert isinstance(engine, TransformersEngine)
    assert engine.batch_size == 7
    assert engine.identity()["bos"] == "released"
    assert engine.identity()["dtype"] == "float32"
    assert with_dtype.dtype == "bfloat16"


SILENT = {"base_url": "http://127.0.0.1:1/v1"}


@pytest.fixture
def no_server(monkeypatch):
    """An engine of a server is made though none is there."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(InspectEngine, "ping", lambda engine: engine)


@pytest.mark.usefixtures("no_server")
@pytest.mark.parametrize("name", ["openai", "inspect"])
def test_a_name_makes_the_engine_of_a_server(name):
    engine = make_engine(name, "m", in_flight=3, timeout=9, **SILENT)

    assert isinstance(engine, InspectEngine)
    assert engine.model == "openai-api/local/m"
    assert engine.in_flight == 3
    assert engine.timeout == 9
    assert engine.batch is False


@pytest.mark.usefixtures("no_server")
def test_an_engine_of_a_server_may_ask_in_batches():
    assert make_engine("inspect", "openai/m", batch=True, **SILENT).batch


def test_a_name_makes_an_engine_of_recordings(tmp_path):
    file = tmp_path / "answers.csv"
    file.write_text("prompt,response\na,1\na,2\n")

    engine = make_engine("replay", "m", recordings=str(file))

    assert isinstance(engine, ReplayEngine)


def test_an_unknown_name_is_refused_with_those_that_are_known():
    with pytest.raises(ValueError, match="ENGINE 'x' is unknown; expected transformers, vllm"):
        make_engine("x", "m")
