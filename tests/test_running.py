"""The command lines of docs/running.md are ones that make, the checks and the clients take."""

import os
import re
import shlex
import shutil
import subprocess

import pandas as pd
import pytest

from fake_openai import FakeOpenAI
from ingroup import paths
from ingroup.commands import plan, run, run_parameters
from ingroup.inference.inspect_engine import InspectEngine

PAGE = (paths.ROOT / "docs" / "running.md").read_text("utf8")
NOTEBOOKS = {file.name[:2]: file.stem for file in paths.NOTEBOOKS.glob("[0-9]*.ipynb")}
# What stands on a line for make itself, and is no parameter of a notebook.
OF_MAKE = {"STUDY", "PROFILE", "RATE", "RUN", "SAMPLES", "BUNDLE", "DATA_MIRROR"}
# What a reader writes in place of a word in angle brackets.
FILLED = {
    "<its name>": "some-model",
    "<name that it shows>": "some-model",
    "<deployment>": "some-model",
    "<folder or hub name>": "some/model",
    "<whose answers>": "some-model",
    "<resource>": "some",
    "<per million>": "1",
    "<first machine>": "first",
    "<name>": "mine",
    "<one of them>": "mine",
    "<new folder>": "new",
    "<its folder>": "some/model",
    "<file or folder>": "RECORDED",
    "<tsv>": "TSV",
    "<csv>": "CSV",
    "<the copy>": "SHEET",
}


def blocks():
    return re.findall(r"^```\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def filled(line):
    """A line without its comment, words in angle brackets replaced; KeyError for a new one."""
    line = re.sub(r"\s+#.*", "", line)
    line = re.sub(r"<[^>]*>", lambda word: FILLED[word[0]], line)
    return line.replace("=...", "=calibrant").replace("$head", "first")


def make_lines():
    """Every call of make in a block, or with a parameter in the prose, as its arguments."""
    commands = []
    for block in blocks():
        for line in block.replace("\\\n", " ").splitlines():
            on_each_node = re.sub(r"^srun .* -- +", "", line)
            commands.append(on_each_node)

    prose = re.sub(r"^```.*?^```", "", PAGE, flags=re.DOTALL | re.MULTILINE)
    for code in re.findall(r"`([^`]+)`", prose):
        for command in code.replace("\n", " ").split(" && "):
            if "=" in command:
                commands.append(command)

    lines = {}
    for command in commands:
        if command.startswith("make "):
            arguments = shlex.split(filled(command))
            lines[" ".join(arguments)] = arguments[1:]
    return lines


LINES = make_lines()


def test_the_page_has_more_than_fifty_command_lines():
    assert len(LINES) > 50
    assert "make 41 LOOKUP=paper LEMMAS=paper DOCUMENTS=released" in LINES


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """The project's files, in which two runs are there to be read."""
    root = tmp_path_factory.mktemp("clone")
    for name in ("notebooks", "locks", "lib"):
        shutil.copytree(paths.ROOT / name, root / name)
    for name in ("Makefile", "pyproject.toml", "requirements.lock", "data/models/models.csv"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(paths.ROOT / name, root / name)
    for folder in ("build/notebooks", "build/runs/mine/notebooks"):
        (root / folder).mkdir(parents=True)
        (root / folder / "10_empathy_gap.txt").touch()
    return root


@pytest.mark.parametrize("line", LINES)
def test_make_takes_a_line(line, clone):
    ours = ("MAKE", "INGROUP_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}

    command = ["make", "-n", *LINES[line]]
    make = subprocess.run(command, cwd=clone, capture_output=True, text=True, env=environment)

    assert make.returncode == 0, make.stderr


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory):
    """Files in place of what is not in the repository, by what stands on a line for each."""
    folder = tmp_path_factory.mktemp("stand_ins")
    recorded = folder / "recorded.csv"
    pd.DataFrame({"prompt": ["P"], "response": ["5"]}).to_csv(recorded, index=False)
    return plan.stand_ins(folder) | {
        "stereotype-content-dictionary": "sample",
        "RECORDED": str(recorded),
        "data/raw/giebench/results/GPT-4-*": str(recorded),
        "TSV": str(paths.SAMPLE / "narratives.tsv"),
        "CSV": str(paths.STIMULI / "biased_samaritan" / "scenarios.csv"),
        "SHEET": str(paths.SAMPLE / "giebench_sheet.csv"),
    }


def assignments(words):
    """The values among the words of a line, by their names."""
    values = {}
    for word in words:
        name, mark, value = word.partition("=")
        if mark:
            values[name] = value
    return values


def checked(line):
    """The notebook, profile and parameters of a line that runs, plans, asks or compares."""
    goal = LINES[line][0]
    given = assignments(LINES[line])
    number = given.get("STUDY") if goal in ("plan", "ask", "view") else goal
    if goal == "compare":
        number = "61"
    profile = given.get("PROFILE", "demo")
    for name in OF_MAKE:
        given.pop(name, None)
    return NOTEBOOKS.get(number), profile, given


OF_ONE_NOTEBOOK = [line for line in LINES if checked(line)[0]]


@pytest.mark.parametrize("line", OF_ONE_NOTEBOOK)
def test_the_checks_take_the_parameters_of_a_line(line, stand_ins):
    notebook, profile, given = checked(line)
    values = run_parameters.merged_parameters(notebook, profile, given, instead=stand_ins)
    assert set(given) <= set(values)


def count_of(line, stand_ins):
    """How many prompts a line's run would ask of its models, by the study's own design."""
    notebook, profile, given = checked(line)
    values = run_parameters.merged_parameters(notebook, profile, given, instead=stand_ins)
    return sum(len(job.design) for job in run_parameters.jobs_of(notebook, values))


COUNTS = dict(re.findall(r"^(make .*?) +# ([\d,]+) prompts", PAGE, re.MULTILINE))


@pytest.mark.parametrize("line", COUNTS)
def test_a_line_asks_as_many_prompts_as_its_comment_says(line, stand_ins):
    command = " ".join(shlex.split(filled(line)))
    assert f"{count_of(command, stand_ins):,}" == COUNTS[line]


def test_the_page_says_how_many_prompts_a_study_has(stand_ins):
    (sentence,) = re.findall(r"The demo profile has (.*?)\. `SETTINGS", PAGE, re.DOTALL)
    numbers = re.findall(r"\d[\d,]{2,}", sentence)

    counts = []
    for number in ("10", "20", "30", "40"):
        notebook = NOTEBOOKS[number]
        values = run_parameters.merged_parameters(notebook, "demo", {"MODELS": "openai/some-model"})
        jobs = run_parameters.jobs_of(notebook, values)
        trials = sum(len(job.design) for job in jobs)
        counts.append(f"{trials:,}")
    assert numbers == counts


# ---- servers -------------------------------------------------------------------------------------


def providers():
    """The providers of the page: for each the lines below its name."""
    (block,) = [block for block in blocks() if "ollama pull" in block]
    lines_of = {}
    for part in block.strip().split("\n\n"):
        title, *lines = part.splitlines()
        name = re.match(r"# ([\w.]+)", title)[1]
        lines_of[name] = lines
    return lines_of


CLIENTS = {"Anthropic": "anthropic", "Google": "google.genai"}


def test_each_provider_has_two_lines_and_asks_432_prompts(stand_ins):
    assert "Each of these runs asks 432 prompts." in PAGE
    names = {"Ollama", "llama.cpp", "LM", "vLLM", "Azure", "Anthropic", "Google"}
    assert set(providers()) == names

    for name, lines in providers().items():
        assert len(lines) == (1 if name == "LM" else 2)  # one is started by hand
        command = " ".join(shlex.split(filled(lines[-1])))
        assert count_of(command, stand_ins) == 432


@pytest.mark.parametrize("name", providers())
def test_a_provider_needs_no_more_than_its_lines_say(name, monkeypatch):
    """The variables that they export are those that its client reads."""
    pytest.importorskip(CLIENTS.get(name, "openai"))
    for variable in list(os.environ):
        if variable.endswith(("_API_KEY", "_BASE_URL", "_ENDPOINT")):
            monkeypatch.delenv(variable)

    lines = [filled(line) for line in providers()[name]]
    for line in lines:
        if line.startswith("export "):
            for variable, value in assignments(shlex.split(line)).items():
                monkeypatch.setenv(variable, value)

    given = assignments(shlex.split(lines[-1]))
    engine = InspectEngine(given["MODELS"], given.get("BASE_URL", ""))
    assert engine.model == given["MODELS"]
    if name == "Ollama":
        assert engine.address == "http://localhost:11434/v1"
    if "BASE_URL" in given:
        assert engine.address == given["BASE_URL"]


def test_a_notebook_asks_a_server(monkeypatch):
    """In a kernel of its own, as make runs it: the line of Ollama, with fewer events."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    given = assignments(shlex.split(providers()["Ollama"][-1]))
    given |= {"N_EVENTS": "2", "N_RESAMPLES": "200"}
    values = run_parameters.merged_parameters(NOTEBOOKS["10"], "demo", given, run="ollama")

    server = FakeOpenAI()
    with server.running() as address:
        monkeypatch.setenv("OLLAMA_BASE_URL", f"{address}/v1")
        target = run.execute(NOTEBOOKS["10"], values, run.Progress("10", alone=False))

    assert target is not None
    assert len(server.calls) == 72
    assert server.most_present == 1
    usage = pd.read_csv(paths.run_folder("ollama") / "tables" / "empathy_gap" / "usage.csv")
    assert usage.failed.tolist() == [0, 0]
