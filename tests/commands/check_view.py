"""`make view` with the real inspect_ai: logs, its viewer in a browser, and logs replayed.

``make test-view`` runs it; plain pytest passes it by.
"""

import re
import shutil
import subprocess
import zipfile
from dataclasses import replace
from itertools import cycle
from urllib.parse import quote, urlsplit

import numpy as np
import pytest
import zipfile_zstd  # noqa: F401 (teaches zipfile the compression of logs)
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log import EvalLog, EvalSample, read_eval_log, write_eval_log
from playwright.sync_api import expect, sync_playwright

from ingroup import paths
from ingroup.commands import view
from ingroup.commands.run_parameters import jobs_of, merged_parameters
from ingroup.inference import EngineError, Job, Reply, Sampling, stored
from ingroup.inference.replay_engine import NO_RECORDING, ReplayEngine
from ingroup.studies.empathy_gap.answers import STATUSES, load
from ingroup.tables import InputError
from toy import SAMPLING, Toy, religion, run

HOSTILE = "<script>window.owned=true</script><img src=x onerror=window.owned=true>"
LINK = '[x](javascript:window.owned=true) <b id="bold">85</b>\u202e'
KEY = "sk-a-key-that-must-not-be-kept"
REPLIES = [
    Reply("70", "stop"),
    Reply(HOSTILE, "stop"),
    Reply("I cannot rate that.", "length"),
    Reply(None, "failed", error="no net"),
    Reply(LINK, "stop"),
    Reply("", "stop"),
    Reply("<think>\nHigh?\n</think>\n85", "stop"),
    Reply("fünf \x00 \u2028 🙂\r\n", "stop", model="toy"),
]
NUMBERS = Sampling(choices=("0", "50", "100"))


def answered(folder, engine, turn=1, sampling=SAMPLING):
    """A job that was answered: one category of the first study, two events."""
    labels = {"setting": "P0,S0,T0", "category": "Religion", "round": turn}
    part = f"P0-{turn}"
    plan = religion(2)
    job = Job(
        "empathy_gap", "sample-2", "toy", "transformers", part, plan, sampling, labels, root=folder
    )
    run(job.design, job.folder, engine, sampling=sampling)
    return job


@pytest.fixture(scope="module")
def rounds(tmp_path_factory):
    """Two rounds of one model, and their logs in one folder."""
    folder = tmp_path_factory.mktemp("stores")
    logs = tmp_path_factory.mktemp("logs")
    replies = cycle(REPLIES)
    jobs = [
        answered(folder, Toy(lambda *_: next(replies), model="toy")),
        answered(folder, Toy(lambda *_: "12"), turn=2),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        files = [view.write(job, "sound", 0, logs) for job in jobs]
    return jobs, files


def test_logs_that_were_written_are_replayed_word_for_word(rounds):
    jobs, files = rounds
    engine = ReplayEngine(files[0].parent, "toy")
    for number, job in enumerate(jobs, start=1):
        assert engine.select_recordings(number)
        replies = engine.answer([trial.messages for trial in job.design], SAMPLING)

        rows = stored(job).read()
        assert len(replies) == len(rows)
        texts = rows.text.astype(object).replace({np.nan: None})
        for reply, text, finish_reason in zip(replies, texts, rows.finish_reason, strict=True):
            # The toy keeps the reasoning of "<think>" in its text; recordings have it apart.
            answer = text and text.removeprefix("<think>\nHigh?\n</think>\n")
            assert reply.text == answer
            assert reply.finish_reason == finish_reason
            if reply != NO_RECORDING:
                assert reply.model == "toy"
    assert not engine.select_recordings(3)


def test_a_sample_is_a_trial_with_what_parsing_made_of_it(rounds):
    (job, _), (file, _) = rounds
    log = read_eval_log(file)
    assert log.eval.task == "empathy_gap"
    assert log.eval.model == "toy"
    assert [sample.id for sample in log.samples] == list(range(72))

    answers = load(job)
    parsed = zip(log.samples, answers.values.flat, answers.status.flat, strict=True)
    for sample, value, status in parsed:
        trial = job.design[sample.id]
        turns = [{"role": turn.role, "content": turn.text} for turn in sample.input]
        assert turns == trial.messages
        assert sample.metadata["perceiver"] == trial.condition["perceiver"]
        assert sample.metadata["experiencer"] == trial.condition["experiencer"]
        assert sample.metadata["narrative"] == trial.condition["event"].narrative

        scores = {name: score.value for name, score in sample.scores.items()}
        expected = {"status": STATUSES[status]}
        if not np.isnan(value):
            expected["rating"] = value
        assert scores == expected

    statuses = {sample.scores["status"].value for sample in log.samples}
    assert statuses >= {"ok", "refused", "failed"}


def test_a_log_holds_no_key_and_no_path(rounds):
    (job, _), files = rounds
    for file in files:
        with zipfile.ZipFile(file) as archive:
            content = b"".join(archive.read(name) for name in archive.namelist())

        assert b"perceiver" in content
        for secret in (KEY, str(job.root), str(file.parent)):
            assert secret.encode() not in content


def test_a_log_of_a_large_job_says_that_it_is_a_sample(rounds, tmp_path):
    (job, _), _ = rounds
    log = read_eval_log(view.write(job, "sound", 20, tmp_path))
    again = read_eval_log(view.write(job, "sound", 20, tmp_path))

    numbers = [sample.id for sample in log.samples]
    assert numbers == [sample.id for sample in again.samples]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 20
    assert min(numbers) < 24
    assert max(numbers) >= 48
    assert log.eval.metadata["drawn"] == 20
    assert log.eval.metadata["trials"] == 72

    whole = {sample.id: sample for sample in view.samples(job, "sound", 0)}
    for sample in log.samples:  # the right reply and score to the trial
        assert sample.output.completion == whole[sample.id].output.completion
        assert sample.scores == whole[sample.id].scores


def test_a_scored_reply_is_shown_as_a_distribution_and_not_replayed(tmp_path):
    scored = Reply("50", "stop", probabilities=(0.3, 0.6, 0.1), mass=(0.25,))
    failed = Reply(None, "failed", error="too long")
    replies = cycle([scored, failed])
    job = answered(tmp_path, Toy(lambda *_: next(replies)), sampling=NUMBERS)

    file = view.write(job, "sound", 0, tmp_path)

    first, second, *_ = read_eval_log(file).samples
    assert first.output.completion == "50 (60.0%), 0 (30.0%), 100 (10.0%); mass 25.0%"
    assert first.scores["rating"].value == pytest.approx(40, abs=0.1)  # 0.6 x 50 + 0.1 x 100
    assert second.output.choices == []
    assert second.output.error == "too long"
    with pytest.raises(EngineError, match="holds no recorded answer"):
        ReplayEngine(file, "toy")


@pytest.mark.parametrize(
    ("notebook", "reply", "factors", "scores"),
    [
        ("20_biased_samaritan", "3", {"group", "phrasing", "scenario", "category"}, {"rating": 3}),
        ("30_giebench", "[[B]]", {"identity", "category", "question", "plan"}, {"letter": "B"}),
        ("40_stereomap", "- Warm: x\nTrustworthy: 4", {"group", "version", "round"}, {}),
    ],
)
def test_every_study_has_its_factors_and_its_reading(
    notebook, reply, factors, scores, tmp_path, only_real_recordings
):
    small = {"MODELS": "calibrant", "ROUNDS": "1", "MISMATCH": "false"}
    job = jobs_of(notebook, merged_parameters(notebook, "demo", small, shared=True))[0]
    job = replace(job, root=tmp_path)
    run(job.design, job.folder, Toy(lambda *_: reply), 4096, job.sampling)

    samples = list(view.samples(job, "sound", 3))

    assert len(samples) == 3
    for sample in samples:
        assert sample.output.completion == reply
        assert "status" in sample.scores
        for factor in factors:
            assert sample.metadata.get(factor) is not None, factor
        for name, value in scores.items():
            assert sample.scores[name].value == value


def test_foreign_logs_are_replayed_by_epoch_and_a_broken_one_is_refused(tmp_path):
    """An input may be a text; a system turn may come from a solver; a sample may have failed."""
    system_turn = {"role": "system", "content": "Be brief."}
    user_turn = {"role": "user", "content": "How warm?"}
    prompt = [system_turn, user_turn]

    def sample(number, text, epoch=1, **changes):
        reply = {"role": "assistant", "content": text}
        fields = {
            "id": number,
            "epoch": epoch,
            "input": "How warm?",
            "target": "",
            "messages": [*prompt, reply],
            "output": {"model": "them", "choices": [{"message": reply, "stop_reason": "stop"}]},
        }
        return EvalSample(**fields | changes)

    failed = {"output": {"model": "them", "error": "no net"}, "messages": []}
    spec = {"created": "2026-01-01T00:00:00+00:00", "task": "t", "dataset": {}, "model": "them"}
    samples = [sample(1, "5"), sample(1, "4", 2), sample(2, "", **failed)]
    log = EvalLog(status="success", eval={**spec, "config": {}}, samples=samples)
    write_eval_log(log, tmp_path / "x.eval")

    engine = ReplayEngine(tmp_path / "x.eval", "them")
    (first,) = engine.answer([prompt], SAMPLING)
    assert first.text == "5"

    assert engine.select_recordings(2)
    second, unknown = engine.answer([prompt, [user_turn]], SAMPLING)
    assert second.text == "4"
    assert unknown.text is None

    (tmp_path / "broken.eval").write_bytes(b"no archive")
    with pytest.raises(InputError, match=r"broken\.eval.*a log of inspect_ai"):
        ReplayEngine(tmp_path / "broken.eval", "them")


# ---- the viewer ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(rounds):
    """The viewer as `make view` starts it, and its address."""
    _, files = rounds
    command = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(view.os, "execl", lambda program, *words: command.extend(words))
        view.show(files[0].parent, None)
    command += ["--port", "7613"]  # at its own it would end a viewer that somebody reads in

    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        address = None
        while address is None:
            line = process.stdout.readline()
            assert line, "the viewer ended before it named its address"
            address = re.search(r"http://127\S+?:\d+", line)
        yield address[0]
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="module")
def page(served):
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.set_default_timeout(120_000)
        page.requests = []
        page.on("request", lambda request: page.requests.append(request.url))
        yield page


def opened(page, address, file, part=""):
    page.goto("about:blank")
    page.goto(f"{address}/#/tasks/{quote(file.name, safe='')}{part}")
    return page


def test_the_viewer_lists_logs_and_samples_and_filters_by_perceiver(rounds, served, page):
    (job, _), files = rounds
    page.goto(served)
    expect(page.get_by_text("2 rows")).to_be_visible()

    opened(page, served, files[0])
    expect(page.get_by_text("72 rows")).to_be_visible()

    page.locator(".cm-content").click()
    page.keyboard.insert_text('metadata.perceiver == "a Christian"')
    perceivers = [trial.condition["perceiver"] for trial in job.design]
    christians = perceivers.count("a Christian")
    expect(page.get_by_text(f"{christians} rows")).to_be_visible()
    expect(page.get_by_text("You are a Christian.").first).to_be_visible()
    assert page.get_by_text("You are a Muslim.").count() == 0


@pytest.mark.parametrize("number", [1, 4])
def test_a_hostile_reply_stays_inert_text(rounds, served, page, number):
    """The second and fifth trials were answered with what a page must not take for its own."""
    _, files = rounds
    opened(page, served, files[0], f"/samples/sample/{number}/1/")

    text, *_ = REPLIES[number].text.split("\u202e")  # which is shown by a mark of its own
    expect(page.get_by_text(text).first).to_be_visible()
    assert page.evaluate("window.owned") is None
    assert page.locator("img[src=x], #bold, a[href^='javascript:']").count() == 0

    servers = {urlsplit(url).netloc for url in page.requests if url.startswith("http")}
    assert servers == {urlsplit(served).netloc}


def test_a_bundle_is_a_folder_of_files_that_is_never_written_over(rounds, tmp_path):
    _, files = rounds
    site = tmp_path / "site"

    view.show(files[0].parent, str(site))

    logs = {file.name for file in site.rglob("*.eval")}
    assert logs == {file.name for file in files}
    assert (site / "index.html").is_file()
    with pytest.raises(PrerequisiteError, match="already exists"):
        view.show(files[0].parent, str(site))


# ---- the command -------------------------------------------------------------------------------


def test_the_stored_answers_of_a_run_are_written_and_shown(
    tmp_path, only_real_recordings, monkeypatch, capsys
):
    """Of one job that is stored; the other two are left out, and said so."""
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")
    shown = []
    monkeypatch.setattr(view, "show", lambda *given: shown.append(given) or 0)

    given = {"MODELS": "calibrant", "N_EVENTS": "2", "SETTINGS": "P0,S0,T0"}
    line = ["10_empathy_gap", "--run", "small", "--samples", "5"]
    for name, value in given.items():
        line += ["--set", f"{name}={value}"]

    assert view.main(line) == 2
    assert "none of the 3 jobs of" in capsys.readouterr().err

    job = jobs_of("10_empathy_gap", merged_parameters("10_empathy_gap", "demo", given))[0]
    run(job.design, job.folder, Toy(lambda *_: "7"), 4096, job.sampling)
    assert view.main(line) == 0
    folder = tmp_path / "runs" / "small" / "view"
    assert shown == [(folder, None)]
    (file,) = folder.iterdir()
    assert len(read_eval_log(file).samples) == 5
    written = capsys.readouterr().out
    assert "1 logs" in written
    assert "2 jobs have no answers yet" in written

    assert view.main([*line, "--bundle", str(tmp_path)]) == 2
    assert "BUNDLE must be a folder that is not there yet, found" in capsys.readouterr().err
    assert view.main(["10_empathy_gap", "--run", "../../evil"]) == 2
