"""A wrong parameter starts nothing, and only a whole notebook is kept."""

import fcntl
import hashlib
import io
import json
import logging
import os
import re
import signal
import socket
import sys
from threading import Timer

import nbformat
import papermill
import pytest
from papermill.exceptions import PapermillExecutionError

from ingroup import paths
from ingroup.commands import digests, kernel, run, run_parameters, settings
from ingroup.commands.run_parameters import jobs_of
from ingroup.inference import Reply, count_stored, make_engine, open_store
from ingroup.inference.engine import EngineError
from ingroup.models import answer_folder
from toy import Toy
from weights import NO_TENSORS

NOTEBOOK = "10_empathy_gap"


def test_the_command_line_prints_the_sentence_and_nothing_else(capsys):
    assert run.main([NOTEBOOK, "--set", "N_EVENTS=x"]) == 2
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err.count("\n") == 1


@pytest.mark.parametrize(
    "name", ["../..", "", "a b", "/tmp/x", "a;b", "..", "a/../b", "é", ".", "x" * 201]
)
def test_a_run_stays_in_its_folder(name, capsys):
    assert run.main([NOTEBOOK, "--run", name]) == 2
    assert capsys.readouterr().err == (
        f"RUN: found {name!r}, expected at most 200 of A-Z a-z 0-9 _ . , + = - without two dots; "
        "give RUN=<name>.\n"
    )


def write(file, code, parameters="BY = 1"):
    """A notebook with a parameter and one section of one cell."""
    defaults = f"{parameters}\nRUN = ''"
    cells = [
        nbformat.v4.new_code_cell(defaults, metadata={"tags": ["parameters"]}),
        nbformat.v4.new_markdown_cell("## Statistics\n\nA quotient."),
        nbformat.v4.new_code_cell(code),
    ]
    book = nbformat.v4.new_notebook(cells=cells)
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    book.metadata["language_info"] = {"name": "python"}
    nbformat.write(book, file)


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A project of one notebook, whose one cell divides by a parameter."""
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "demo.yaml").write_text("tiny:\n  BY: 2\n")
    write(tmp_path / "tiny.ipynb", "print(6 / BY)")
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path)
    monkeypatch.setattr(paths, "PROFILES", tmp_path / "profiles")
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    return tmp_path / "build" / "notebooks"


def summary(name, run_name="mine"):
    """The line that a named run leaves about a notebook."""
    return (paths.BUILD / "runs" / run_name / "notebooks" / f"{name}.txt").read_text()


def test_an_executed_notebook_is_moved_into_place_and_stays_when_it_fails_later(tiny):
    assert run.main(["tiny"]) == 0
    cells = json.loads((tiny / "tiny.ipynb").read_text())["cells"]
    assert "3.0" in json.dumps(cells)
    line = (tiny / "tiny.txt").read_text()
    assert re.fullmatch(r"tiny: \d+ s, as the demo profile has it\n", line)
    assert not (tiny / "tiny.unfinished.ipynb").exists()

    mine = paths.BUILD / "runs" / "mine"
    assert run.main(["tiny", "--run", "mine", "--set", "BY=3"]) == 0
    assert re.fullmatch(r"tiny: \d+ s, BY=3\n", summary("tiny"))

    before = set(mine.rglob("*"))
    assert run.main(["tiny", "--run", "mine", "--set", "BY=0"]) == 1
    # What it wrote is no longer known to be its own, so the next make runs it.
    assert before - set(mine.rglob("*")) == {mine / "notebooks" / "tiny.json"}


def test_a_summary_names_models_without_the_place_of_their_folders(tiny, tmp_path):
    folder = tmp_path / "my nets" / "my_model-2"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(NO_TENSORS)
    (folder / "tokenizer.json").touch()
    (folder / "chat_template.jinja").touch()
    book = nbformat.read(paths.NOTEBOOKS / "tiny.ipynb", as_version=4)
    book.cells[0].source += "\nMODELS = ['calibrant']"
    nbformat.write(book, paths.NOTEBOOKS / "tiny.ipynb")

    models = f"MODELS={folder}@vllm;meta-llama/Llama-3.1-8B"
    assert run.main(["tiny", "--run", "mine", "--set", models]) == 0

    shown = r"tiny: \d+ s, MODELS=my_model-2@vllm;meta-llama/Llama-3.1-8B\n"
    assert re.fullmatch(shown, summary("tiny"))


def test_the_maps_summary_has_its_sentence_on_each_model(tiny):
    """The first sentence of the map is about the papers; the others are about models."""
    folder = paths.BUILD / "tables" / "map"
    folder.mkdir(parents=True)
    rows = "sentence,notebook\n4 slips,50_audit\n'=m (a real model): stands 3.,60_synthesis\n"
    (folder / "found.csv").write_text(rows)
    (paths.NOTEBOOKS / "tiny.ipynb").rename(paths.NOTEBOOKS / "00_map.ipynb")

    assert run.main(["00_map"]) == 0

    lines = (tiny / "00_map.txt").read_text()
    assert re.fullmatch(r"00_map: \d+ s, .*\n  =m \(a real model\): stands 3.\n", lines)


@pytest.mark.parametrize(("asked", "has_text"), [("m", False), ("calibrant", True)])
def test_the_map_of_a_run_without_a_calibrant_says_nothing_of_them(asked, has_text, tiny):
    """It takes no MODELS of its own."""
    book = nbformat.read(paths.NOTEBOOKS / "tiny.ipynb", as_version=4)
    about = nbformat.v4.new_markdown_cell("GroundTruth.", metadata={"tags": ["about-calibrants"]})
    book.cells.append(about)
    nbformat.write(book, paths.NOTEBOOKS / "00_map.ipynb")
    copy = paths.executed("30_giebench", "mine")
    copy.parent.mkdir(parents=True)
    metadata = {"papermill": {"parameters": {"MODELS": [asked], "ENGINE": ""}}}
    nbformat.write(nbformat.v4.new_notebook(metadata=metadata), copy)

    assert run.main(["00_map", "--run", "mine"]) == 0

    executed = paths.executed("00_map", "mine").read_text("utf8")
    assert ("GroundTruth." in executed) == has_text


def test_a_reader_of_a_named_run_takes_the_models_of_that_run(tiny):
    """Not those of the default run, unless some are chosen; each entry once."""
    write(paths.NOTEBOOKS / "60_tiny.ipynb", "print(MODELS)", parameters="MODELS = ['calibrant']")
    copies = paths.BUILD / "runs" / "mine" / "notebooks"
    copies.mkdir(parents=True)
    models_of = {"10_empathy_gap": ["b", "a@vllm"], "30_giebench": ["b"], "51_audit": ["c"]}
    for name, models in models_of.items():
        metadata = {"papermill": {"parameters": {"MODELS": models}}}
        nbformat.write(nbformat.v4.new_notebook(metadata=metadata), copies / f"{name}.ipynb")

    assert run.main(["60_tiny", "--run", "mine"]) == 0
    assert "MODELS=b;a@vllm" in summary("60_tiny")

    assert run.main(["60_tiny", "--run", "mine", "--set", "MODELS=gemma-3-270m"]) == 0
    assert "MODELS=gemma-3-270m\n" in summary("60_tiny")

    assert run.main(["60_tiny", "--run", "another"]) == 0
    assert "as the demo profile has it" in summary("60_tiny", "another")


def test_a_failing_notebook_leaves_no_result(tiny, capsys):
    assert run.main(["tiny", "--set", "BY=0"]) == 1
    assert "ZeroDivisionError: division by zero" in capsys.readouterr().err
    assert not list(tiny.iterdir())
    assert paths.BUILD.exists()  # with the answers

    assert run.main(["tiny", "--run", "mine", "--set", "BY=0"]) == 1
    assert not (paths.BUILD / "runs" / "mine").exists()


@pytest.mark.parametrize(
    ("cell", "name", "shows_place"),
    [
        (
            "from ingroup.tables import InputError\nraise InputError('no such model')",
            "InputError",
            0,
        ),
        ("raise ValueError('no such model')", "ValueError", 1),
    ],
)
def test_a_refusal_in_a_notebook_is_its_sentence_alone(cell, name, shows_place, tiny, tmp_path):
    """JupyterLab shows what the output holds as traceback; papermill raises name and message."""
    write(tmp_path / "tiny.ipynb", cell)
    book = nbformat.read(tmp_path / "tiny.ipynb", as_version=4)
    manager = kernel.manager_class(tmp_path / "notes")

    with pytest.raises(PapermillExecutionError) as raised:
        papermill.execute_notebook(book, None, kernel_manager_class=manager, **run.KERNEL_OPTIONS)

    error = raised.value
    assert error.ename == name
    assert error.evalue == "no such model"
    assert (error.traceback != ["no such model"]) == shows_place


def test_the_steps_are_lines_that_name_the_notebook(tiny, capsys, monkeypatch):
    monkeypatch.setattr(settings, "notebooks", lambda: ["before", "tiny"])
    assert run.main(["tiny", "--shared"]) == 0
    first, last = capsys.readouterr().err.splitlines()
    assert first == "[2/2] tiny: Statistics"
    assert re.fullmatch(r"\[2/2\] tiny: done in \d+ s", last)


def test_an_executed_notebook_keeps_notes_but_no_states_of_a_bar(tiny):
    code = "import sys\nfor text in ('1 of 2\\r', '2 of 2\\r', '\\r', 'a note\\n'):\n"
    write(paths.NOTEBOOKS / "tiny.ipynb", f"{code}    print(text, end='', file=sys.stderr)")

    assert run.main(["tiny"]) == 0

    *_, last_cell = nbformat.read(tiny / "tiny.ipynb", as_version=4).cells
    (output,) = last_cell.outputs
    assert output.text == "a note\n"


def test_ctrl_c_ends_with_one_sentence(tiny, capsys):
    """The notebook interrupts whoever runs it, as a terminal would, and goes on."""
    code = "import os, signal, time\nos.kill(os.getppid(), signal.SIGINT)\ntime.sleep(60)"
    write(paths.NOTEBOOKS / "tiny.ipynb", code)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert run.main(["tiny", "--run", "mine"]) == 130
        assert not logging.getLogger("asyncio").isEnabledFor(logging.CRITICAL)
    finally:
        signal.signal(signal.SIGINT, before)
        logging.disable(logging.NOTSET)

    lines = capsys.readouterr().err.splitlines()
    assert lines == ["tiny: Statistics", "tiny: stopped; the same line goes on"]
    assert not (paths.BUILD / "runs" / "mine").exists()


def test_a_run_that_ignores_ctrl_c_comes_to_its_end(tiny):
    """As make does that a script started in the background: its shell lets both ignore it."""
    code = "import os, signal\nos.kill(os.getppid(), signal.SIGINT)"
    write(paths.NOTEBOOKS / "tiny.ipynb", code)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert run.main(["tiny"]) == 0
    finally:
        signal.signal(signal.SIGINT, before)

    assert (tiny / "tiny.txt").exists()


def test_what_is_stored_is_counted_when_a_run_is_stopped(
    only_real_recordings, monkeypatch, tmp_path
):
    """Recorded answers stand in the repository: a stop could not lose them."""
    models = "calibrant;smollm2-135m-instruct"
    given = run_parameters.merged_parameters("30_giebench", "demo", {"MODELS": models})
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")
    first = jobs_of("30_giebench", given)[0]
    toy = Toy(lambda *_: "[[A]]", engine="transformers", model="calibrant")
    store = open_store(first.folder, first.design, toy, first.sampling, 50)

    with store.writing():
        store.write(1, toy.answer(range(50), None))
    store.journal().add(3, Reply("[[B]]", "stop"))

    assert count_stored(jobs_of("30_giebench", given)) == 51


def test_tests_leave_the_build_of_the_user_alone():
    """Theirs is a folder outside the project, which a kernel finds in the environment."""
    assert not paths.BUILD.is_relative_to(paths.ROOT)
    assert os.environ["INGROUP_BUILD"] == str(paths.BUILD)


@pytest.mark.parametrize(
    ("is_terminal", "interval", "expected"),
    [
        (True, "1", "\rRace 0 of 9\rRace 4 of 9\r      \r2 prompts failed\n"),
        (False, "10", "tiny: Race 0 of 9\ntiny: Race 4 of 9\ntiny: 2 prompts failed\n"),
    ],
)
def test_a_bar_moves_only_where_a_person_looks(is_terminal, interval, expected, monkeypatch):
    """Elsewhere its states are lines, seldom, and no other notebook's cuts one."""
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: is_terminal, raising=False)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TQDM_MININTERVAL", "1")
    monkeypatch.delenv("TQDM_MININTERVAL")

    progress = run.Progress("tiny", alone=True)
    for text in ("\rRace 0 of 9", "\rRace 4 of 9", "\r      \r", "2 prompts failed\n"):
        assert progress.write(text) == len(text)

    assert os.environ.get("TQDM_MININTERVAL") == interval
    assert screen.getvalue() == expected


def test_a_dead_server_is_reported_at_once():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(EngineError, match=rf"^no server is at 127\.0\.0\.1:{port}/v1 \("):
        make_engine("inspect", "somebody", base_url=f"http://127.0.0.1:{port}/v1")


def test_again_runs_with_the_parameters_of_the_last_run(tiny):
    assert run.main(["tiny", "--run", "mine", "--set", "BY=3"]) == 0
    assert run.main(["tiny", "--run", "mine", "--again"]) == 0
    assert summary("tiny").endswith(", BY=3\n")


def test_a_notebook_that_another_program_executes_is_waited_for(tiny, capsys):
    """A killed make leaves one behind, which would write the same tables at the same time."""
    write(tiny.parents[1] / "tiny.ipynb", "print('executed')")
    folder = paths.BUILD / "digests"
    folder.mkdir(parents=True)
    lock = (folder / "default-tiny.lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    copies_before = []

    def release():
        copies_before.extend(tiny.glob("*"))
        lock.close()

    timer = Timer(1, release)
    timer.start()
    assert run.main(["tiny"]) == 0
    timer.join()

    assert copies_before == []
    assert (tiny / "tiny.ipynb").exists()
    sentence = "tiny: another program executes this notebook: waiting for it\n"
    assert sentence in capsys.readouterr().err


def test_a_run_records_what_it_wrote_and_no_other_file(tiny, tmp_path):
    """By whichever function; a file that goes again, and one elsewhere, are not its results."""
    table = tiny.parent / "tables" / "some" / "table.csv"
    table.parent.mkdir(parents=True)
    removed = table.with_name("gone.csv")
    elsewhere = tmp_path / "elsewhere"
    profile = tiny.parent / "profile"
    code = f"""
import pandas as pd, pathlib
pd.DataFrame([BY]).to_csv({str(table)!r})
pathlib.Path({str(removed)!r}).write_text('x')
pathlib.Path({str(removed)!r}).unlink()
pathlib.Path({str(elsewhere)!r}).write_text('x')
open({str(profile)!r}, 'w').close()
"""
    write(tmp_path / "tiny.ipynb", code)

    assert run.main(["tiny"]) == 0

    digest = hashlib.sha256(table.read_bytes()).hexdigest()
    assert digests.read(tiny / "tiny.ipynb")["wrote"] == {str(table): digest}


def test_the_kernel_of_another_environment_does_not_run(tiny, tmp_path, monkeypatch):
    """A kernelspec called python3 that comes first, and another clone's package."""
    kernels = tmp_path / "jupyter" / "kernels" / "python3"
    kernels.mkdir(parents=True)
    spec = {"argv": ["/bin/false"], "display_name": "foreign", "language": "python"}
    (kernels / "kernel.json").write_text(json.dumps(spec))
    other = tmp_path / "other" / "ingroup"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("raise SystemExit('the other clone ran')")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "0")
    monkeypatch.setenv("PYTHONPATH", str(other.parent))

    code = "import sys, ingroup\nprint(sys.executable, ingroup.__file__)"
    write(tmp_path / "tiny.ipynb", code)
    assert run.main(["tiny"]) == 0

    *_, last_cell = json.loads((tiny / "tiny.ipynb").read_text())["cells"]
    python, package = "".join(last_cell["outputs"][0]["text"]).split()
    assert python == sys.executable
    assert package == str(paths.ROOT / "lib" / "ingroup" / "__init__.py")


def test_files_of_the_user_are_watched_by_content(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(digests, "ROOT", tmp_path)
    (tmp_path / "my model").mkdir()
    for name in ("my.tsv", "my model/model.safetensors", "a.csv", "odd[1].csv"):
        (tmp_path / name).write_text("1")
    parameters = {
        "CORPUS": "my.tsv",
        "MODELS": ["my model@transformers", "calibrant"],
        "N": 3,
        "SHEETS": ["a.csv", "missing.csv"],
        "QUESTIONS": "odd[1].csv",
        "FOLDER": "..",
        "X": "x" * 999,
    }

    patterns = run.given_files(parameters)
    assert patterns == {"my.tsv", "my model/**", "a.csv", "odd[[]1].csv"}

    watched = []
    for files in digests.file_states(patterns).values():
        watched += files
    assert sorted(watched) == ["a.csv", "my model/model.safetensors", "my.tsv", "odd[1].csv"]


def test_answers_that_are_not_there_yet_are_watched(tmp_path, monkeypatch):
    """For `@stored` those of any engine: more of them change what the notebook would show."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    given = {"MODELS": "my/model@stored", "SETTINGS": "P0,S0,T0", "CATEGORIES": "Religion"}
    patterns = run.answer_files(NOTEBOOK, run_parameters.merged_parameters(NOTEBOOK, "demo", given))
    before = digests.file_states(patterns)
    assert not any(before.values())

    (pattern,) = [pattern for pattern in patterns if "P0,S0,T0" in pattern]
    assert pattern.startswith(str(tmp_path / "empathy_gap"))
    folder = "/".join(pattern.split("/")[-5:-1]).replace("@*", "@vllm")
    store = tmp_path / folder
    store.mkdir(parents=True)
    (store / "part-00000.parquet").write_text("answers")
    assert digests.file_states(patterns) != before

    assert run.answer_files("53_audit_giebench", {"FOLDER": ""}) == set()


def test_weights_that_could_answer_are_watched(tmp_path, monkeypatch):
    """After `make model` a changed run asks what it left out; the default run does not."""
    monkeypatch.setattr(paths, "MADE", tmp_path)
    model = "smollm2-135m-instruct"
    weights = tmp_path / model / "config.json"
    weights.parent.mkdir()
    weights.write_text("{}")

    def watched(**given):
        values = run_parameters.merged_parameters(NOTEBOOK, "demo", {"MODELS": model, **given})
        files = digests.file_states(run.answer_files(NOTEBOOK, values)).values()
        return [file for found in files for file in found]

    assert watched(N_EVENTS="24") == [str(weights)]
    assert watched() == []


def test_answers_of_a_models_folder_are_watched_at_both_of_their_addresses(tmp_path, monkeypatch):
    """Earlier versions had the whole path of the folder in the address."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")
    model = tmp_path / "nets" / "mine"
    model.mkdir(parents=True)
    for name in ("config.json", "tokenizer.json", "chat_template.jinja"):
        (model / name).write_text("{}")
    (model / "model.safetensors").write_bytes(NO_TENSORS)
    given = {"MODELS": str(model), "SETTINGS": "P0,S0,T0", "CATEGORIES": "Religion"}

    patterns = run.answer_files(NOTEBOOK, run_parameters.merged_parameters(NOTEBOOK, "demo", given))

    names = {pattern.split("/")[-3] for pattern in patterns}
    whole_path = str(model).strip("/").replace("/", "--")
    assert names == {
        f"{answer_folder(str(model))}@transformers",
        f"{whole_path}@transformers",
    }
