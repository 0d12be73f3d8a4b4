"""The tasks of inspect_ai: prompts, reasons and values are those of the notebooks' own path."""

from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from inspect_ai import eval as evaluate
from inspect_ai.log import read_eval_log_samples
from inspect_ai.model import ModelOutput, ModelUsage, get_model

from ingroup import ROOT
from ingroup.inference import jobs
from ingroup.inference.answers import prompt_key
from ingroup.parsing import CUT, FAILED, OK, REFUSED, SEVERAL, UNPARSABLE

MODEL = "mockllm/model"
SMALL = {
    "empathy_gap": {"n_events": 1, "settings": ["P0,S0,T0"], "categories": ["Religion"]},
    "biased_samaritan": {"n_scenarios": 2, "crossing": "totals"},
    "giebench": {"order": "given", "mismatch": False},
    "stereomap": {"groups": ["Elderly"]},
}
RATINGS = {
    OK: "70",
    REFUSED: "I'm sorry, but I can't help with that.",
    UNPARSABLE: "It depends.",
    SEVERAL: "Rating: 20\nRating: 80",
    CUT: "Let me think about",
    FAILED: "",
}
VERDICTS = RATINGS | {OK: "[[B]]", SEVERAL: "My verdict: [[A]]. My verdict: [[B]]"}
LISTS = RATINGS | {OK: "- Friendly: 4\n- Skilled: 2\n- Confident: 3\nRating: 3"}
TEXTS = {"giebench": VERDICTS, "stereomap": LISTS}


ENDED = {}  # how each prompt is answered, by its key


def reason_of(key):
    """Choose how a prompt is answered, in turns."""
    turn = len(ENDED) % len(RATINGS)
    return ENDED.setdefault(key, list(RATINGS)[turn])


@pytest.fixture(scope="module", params=list(SMALL))
def run(request, tmp_path_factory):
    """Run the task of a study, whose model answers each prompt in a known way."""
    study = request.param
    typed = dict(SMALL[study])
    folder = tmp_path_factory.mktemp(study)
    if study == "giebench":
        questions = pd.read_csv(ROOT / "data/sample/giebench.csv").head(4)
        typed["questions"] = str(folder / "questions.csv")
        questions.to_csv(typed["questions"], index=False)
    texts = TEXTS.get(study, RATINGS)

    def reply(chat, *settings):
        key = prompt_key([{"content": message.text} for message in chat])
        reason = reason_of(key)
        if reason == FAILED:
            raise ConnectionError("the server is down")
        ending = "max_tokens" if reason == CUT else "stop"
        output = ModelOutput.from_content("mockllm", texts[reason], stop_reason=ending)
        output.usage = ModelUsage()
        return output

    (log,) = evaluate(
        f"{ROOT}/lib/ingroup/tasks.py@{study}",
        model=get_model(MODEL, custom_outputs=reply, memoize=False),
        task_args=typed,
        log_dir=str(folder),
        display="none",
    )
    assert log.status == "success", log.error
    return study, typed, folder, log


def test_each_reply_has_a_value_or_its_reason(run):
    """A list of ratings lacks words, which are unparsable; else all values have one status."""
    study, *_, log = run
    found = set()
    for sample in log.samples:
        key = int(sample.id.rpartition(":")[2])
        score = sample.scores["claimed"]
        statuses = score.metadata["status"]
        found |= {*statuses.values()}
        if study == "stereomap" and reason_of(key) in (OK, SEVERAL):
            assert set(statuses.values()) <= {OK, UNPARSABLE}
        else:
            assert set(statuses.values()) == {reason_of(key)}
        assert {item for item, value in score.value.items() if value == value} == {
            item for item, status in statuses.items() if status == OK
        }
    assert found | {SEVERAL} == set(RATINGS)


def test_metrics_leave_out_what_is_missing(run):
    """Means are those of the values that were read, and each reason has its count."""
    log = run[-1]
    values = pd.DataFrame([sample.scores["claimed"].value for sample in log.samples])
    statuses = pd.DataFrame([sample.scores["claimed"].metadata["status"] for sample in log.samples])
    metrics = {name: found.value for name, found in log.results.scores[0].metrics.items()}
    for item in values:
        read = values[item].dropna()
        assert metrics.pop(item) == pytest.approx(read.mean() if len(read) else np.nan, nan_ok=True)
    counts = statuses.stack().value_counts().drop(OK)
    assert {name: n for name, n in metrics.items() if n} == counts.to_dict()
    assert set(metrics) == {*RATINGS} - {OK}


def test_logs_are_read_back(run, tmp_path, monkeypatch):
    """The notebook's `ask` and `load` read from a folder of logs what the scorer read."""
    study, typed, folder, log = run
    monkeypatch.setattr(jobs, "RESPONSES", tmp_path)
    answers = import_module(f"ingroup.{study}.answers")
    values = {name.upper(): value for name, value in typed.items()}
    parameters = answers.Parameters.of(
        {"MODELS": ["a recorded model"], "RECORDINGS": str(folder), **values}
    )
    planned = answers.jobs(parameters)
    jobs.ask(planned, parameters)
    tables = [answers.load([job] if study == "giebench" else job) for job in planned]
    table = pd.concat(tables, ignore_index=True)
    is_read = table.status == OK
    values = table["right" if study == "giebench" else "rating"].where(is_read)

    samples = {sample.id: sample.scores["claimed"] for sample in log.samples}
    scored = []
    statuses = []
    for job in planned:
        for key in job.design.keys:
            score = samples[f"{job.name}:{key}"]
            scored += score.value.values()
            statuses += score.metadata["status"].values()
    np.testing.assert_array_equal(values, scored)
    assert list(table.status) == statuses


def test_a_sample_has_prompt_and_condition(run):
    """The metadata are columns of the condition, from which a reader can group the scores."""
    study, _, folder, _ = run
    (file,) = folder.glob("*.eval")
    first = next(read_eval_log_samples(file))
    columns = {
        "empathy_gap": {"setting": "P0,S0,T0", "perceiver": "a person", "emotion": "relief"},
        "biased_samaritan": {"category": "Race", "group": "control", "round": 1},
        "giebench": {"prompt": "Raw", "identity": "Homosexuality", "correct": "A"},
        "stereomap": {"version": "EXTENDED", "group": "Elderly", "construct": "Warmth-Competence"},
    }
    assert columns[study].items() <= first.metadata.items()


def test_a_parameter_that_does_not_exist_stops_the_task():
    """As does one that a task fixes."""
    tasks = import_module("ingroup.tasks")
    for typed in ('{"n_evnts": 1}', '{"reading": "greedy"}'):
        with pytest.raises(ValueError, match="is no parameter of the task giebench"):
            tasks.trials("giebench", MODEL, typed)
