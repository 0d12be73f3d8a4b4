"""The recordings in the repository: whole, of today's prompts, and each listed."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

import record
from ingroup import models, paths
from ingroup.commands.run_parameters import jobs_of, merged_parameters
from ingroup.inference import Job, answered_jobs, fill, open_store, stored
from ingroup.inference.reading import Reading
from ingroup.inference.store import read_manifest
from ingroup.studies.empathy_gap import answers
from record import chat_digests, entries_by_model, recorded_jobs
from toy import SAMPLING, Toy, numbers

MODELS = list(entries_by_model())


@pytest.mark.parametrize("model", MODELS)
def test_every_recorded_store_is_whole_and_answers_the_prompts_of_today(model):
    folder = paths.RECORDINGS / model
    jobs = {job.address: job for job, _ in recorded_jobs(model)}
    addresses = {file.parent.relative_to(folder) for file in folder.rglob("manifest.json")}
    assert addresses
    complete = {job.address for job in answered_jobs(jobs.values())}
    assert complete == addresses

    for address in addresses:
        job = jobs[address]
        store = stored(job)
        assert store.state() == ([], [], [], [])
        assert store.manifest["model"] == model
        assert store.manifest["engine"] == job.engine
        if models.is_calibrant(model):  # the weights are here, too
            assert store.manifest["revision"] == models.revision(paths.MODELS / model)

        rows = store.read()
        if job.is_scored:
            totals = rows.probabilities.map(partial(np.sum, dtype=float))
            leads = len(job.sampling.leads)
            assert totals.between(leads - 0.02, leads + 0.02).all()  # to three digits each


@pytest.mark.parametrize("model", MODELS)
def test_the_card_counts_what_is_there_and_it_is_small(model):
    folder = paths.RECORDINGS / model
    addresses = {str(file.parent.relative_to(folder)) for file in folder.rglob("manifest.json")}
    log = pd.read_csv(folder / "asked.csv")
    assert set(log.job) == addresses
    assert not log.job.duplicated().any()
    assert (log.seconds > 0).all()

    if not models.is_calibrant(model):
        assert "4-bit" in (folder / "README.md").read_text("utf8")

    sizes = [file.stat().st_size for file in folder.rglob("*") if file.is_file()]
    assert sum(sizes) < 32e6


def test_the_recordings_answer_the_chats_that_are_rendered_today():
    """After new recordings, or new stimuli: python data/recordings/record.py --chats."""
    listed_chats = pd.read_csv(paths.RECORDINGS / "chats.csv", dtype=str)
    assert listed_chats.equals(chat_digests())
    listed_jobs = set(listed_chats.job)
    for file in paths.RECORDINGS.rglob("manifest.json"):
        address = file.parent.relative_to(paths.RECORDINGS).as_posix()
        assert address in listed_jobs or "chats" in read_manifest(file), address


@pytest.mark.parametrize(
    "notebook", ["10_empathy_gap", "20_biased_samaritan", "30_giebench", "40_stereomap"]
)
def test_every_job_of_a_run_has_the_reading_that_was_asked_for(notebook):
    given = {"MODELS": "smollm2-135m-instruct", "READING": "greedy", "ENDING": "newline"}
    jobs = jobs_of(notebook, merged_parameters(notebook, "demo", given))
    readings = {job.reading for job in jobs}
    assert readings == {Reading("greedy", "newline")}
    assert any(job.is_scored for job in jobs)


def test_qwens_free_texts_without_a_verdict_are_empty_verdicts():
    """What docs/findings.md says of study 3, with its count."""
    texts = {"Raw": [], "ID": [], "COT": []}
    for job, _ in recorded_jobs("qwen2.5-coder-1.5b-instruct"):
        is_free = job.engine == "vllm" and job.labels.get("plan") in texts
        if is_free and "giebench" in str(job.address):
            texts[job.labels["plan"]] = stored(job).read(columns=["text"]).text.tolist()

    empty = {plan: replies.count("[[]]") for plan, replies in texts.items()}
    assert empty == {"Raw": 28, "ID": 24, "COT": 0}
    for replies in texts.values():
        assert len(replies) == 32
        assert set(replies) <= {"[[]]", "[[A]]", "[[B]]", "[[D]]"}


def test_recorded_answers_are_read_as_their_job_says():
    """SmolLM2 on religion: few greedy numbers, means between them."""
    given = {"MODELS": "smollm2-135m-instruct", "SETTINGS": "P0,S0,T0", "CATEGORIES": "Religion"}
    values = {}
    for reading in ("greedy", "expected"):
        parameters = merged_parameters("10_empathy_gap", "demo", given | {"READING": reading})
        scored = [job for job in jobs_of("10_empathy_gap", parameters) if job.is_scored]
        values[reading] = answers.load(scored[0]).values

        again = answers.load(scored[0], reading=Reading(reading)).values
        np.testing.assert_array_equal(values[reading], again)

    greedy = values["greedy"]
    expected = values["expected"]
    assert (greedy == np.rint(greedy)).all()
    assert not (expected == np.rint(expected)).any()


class KilledError(BaseException):
    """Ends a recording as a kill would."""


def asking(trials):
    """Return an `ask` that fills shards of four, and is killed behind so many trials."""

    def say(chat, times_before, all_before):
        if all_before >= trials:
            raise KilledError
        return "50"

    def ask(jobs, parameters):
        (job,) = jobs
        engine = Toy(say, model="m", engine="toy")
        store = open_store(job.folder, job.design, engine, SAMPLING, 4)
        fill(job.design, engine, store, SAMPLING)

    return ask


def killed(*_):
    raise KilledError


@pytest.mark.parametrize(
    "kills",
    [[], [0], [5], [5, 6], [99]],
    ids=["none", "before a shard", "behind a shard", "twice", "before the row"],
)
def test_a_killed_recording_has_one_row_with_all_its_prompts(tmp_path, monkeypatch, kills):
    job = Job("study", "sample", "m", "toy", "part", numbers(12), SAMPLING, root=tmp_path)
    log = tmp_path / "asked.csv"
    log.write_text('job,prompts,seconds\n"a,b",7,8\n')
    for trials in kills:
        with monkeypatch.context() as patch:
            patch.setattr(record, "ask", asking(trials))
            if trials == 99:
                patch.setattr(record, "replace_file", killed)
            with pytest.raises(KilledError):
                record.record(job, {}, log)

    monkeypatch.setattr(record, "ask", asking(99))
    for _ in range(2):
        record.record(job, {}, log)

    header, other_row, row = log.read_text().splitlines()
    assert header == "job,prompts,seconds"
    assert other_row == '"a,b",7,8'
    address, prompts, seconds = row.split(",")
    assert address == str(job.address)
    assert prompts == "12"
    assert 1 <= int(seconds) <= 60
    assert len(stored(job).read()) == 12
