"""What is typed behind make, the run's folder, the front page, and the cleaning of outputs."""

import json
import os
import shutil
import subprocess
import time

import nbformat
import pandas as pd
import papermill
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from ingroup import PUBLISHED, ROOT, book, published, run
from ingroup.tables import InputError, read_table


def test_what_make_passes_on_is_read():
    r"""A blank in a value comes as ``\ ``."""
    typed = run.assignments(r"SEED=3 QUESTIONS=my\ file.csv ONLY:=a")
    assert typed == {"SEED": "3", "QUESTIONS": "my file.csv", "ONLY": "a"}


@pytest.mark.parametrize(
    ("text", "usual", "value"),
    [
        ("a; b", ["x"], ["a", "b"]),
        ("6", 1, 6),
        ("1", 0.5, 1),
        ("false", True, False),
        ("6", "", "6"),
    ],
)
def test_a_value_takes_the_type_of_the_usual_one(text, usual, value):
    """A list is parted by semicolons."""
    assert run.converted("NAME", text, usual) == value


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("N_EVENT=6", "N_EVENT is no parameter of the notebooks that run: did you mean N_EVENTS?"),
        ("n_events=6", "did you mean N_EVENTS?"),
        ("N_EVENTS=six", "N_EVENTS=six must be a whole number"),
        ("GPU=2", "did you mean GPUS?"),
        ("GPUS=two", "GPUS=two must be a whole number"),
        ("PROFILE=ful", "PROFILE=ful does not exist: did you mean full?"),
        ("RUN=../x", "RUN=../x must be a plain name other than default"),
        ("RUN=default SEED=1", "RUN=default must be a plain name other than default"),
    ],
)
def test_a_wrong_name_or_value_ends_in_a_sentence(typed, sentence):
    """The sentence has the nearest name."""
    with pytest.raises(SystemExit) as refused:
        run.note(typed, ["10"])
    assert str(refused.value).endswith(sentence)


def test_no_two_runs_share_a_folder():
    """Only the run that changes nothing is the default run."""
    assert run.run_name("", "", {}) == "default"
    assert run.run_name("", "full", {"SEED": "1"}) == "full+SEED-1"

    values = ("a/b", "a-b", "a b", "a" * 99)
    names = {run.run_name("", "", {"MODELS": value}) for value in values}
    assert len(names) == len(values)


def test_only_what_runs_notebooks_is_noted(tmp_path, monkeypatch, capsys):
    """Neither a plan nor another target changes the parameters of a run, and no dry run does."""
    monkeypatch.setattr(run, "ROOT", tmp_path)
    noted = tmp_path / "build/runs/m/parameters.json"
    for flags, goal in [("-", "lint"), ("-", "figures"), ("n", "10")]:
        run.folder("N_EVENTS=3 RUN=m", flags, goal)
    run.folder("N_EVENTS=3 RUN=m", "-", "plan", "10")
    assert not noted.exists()

    run.folder("N_EVENTS=3 RUN=m", "-", "10")
    run.folder("RUN=m", "-", "60", "10")
    assert json.loads(noted.read_text())["typed"] == {"N_EVENTS": "3"}
    assert set(capsys.readouterr().out.split()) == {"build/runs/m"}


def test_engines_have_parameters_in_every_notebook():
    """They take the types of the values in engines.yaml."""
    noted = run.note("GPUS=2 BATCH=true ENGINE=vllm", ["10"])
    values = run.parameters("10_empathy_gap", noted)
    assert values["GPUS"] == 2
    assert values["BATCH"] is True
    assert values["ENGINE"] == "vllm"
    assert values["RUN"] == "BATCH-true+ENGINE-vllm+GPUS-2"


@pytest.fixture
def house(tmp_path):
    """Make a small house: the real Makefile and program, and two notebooks that draw."""
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    for study in ("one", "other"):
        for folder in ("lib/ingroup", "data/published"):
            (tmp_path / folder / study).mkdir(parents=True)
            (tmp_path / folder / study / "stimuli.py").touch()
    (tmp_path / "lib/ingroup/inference").mkdir()
    for file in ("run.py", "book.py", "inference/engines.yaml"):
        shutil.copy(ROOT / "lib/ingroup" / file, tmp_path / "lib/ingroup" / file)
    shutil.copy(PUBLISHED / "headlines.csv", tmp_path / "data/published")
    shutil.copytree(ROOT / "notebooks/profiles", tmp_path / "notebooks/profiles")

    cell = new_code_cell("SEED = 0\nRUN = 'lab'", metadata={"tags": ["parameters"]})
    for name in ("10_one", "20_other", "60_findings"):
        nbformat.write(new_notebook(cells=[cell]), tmp_path / f"notebooks/{name}.ipynb")
    ready = tmp_path / ".venv/.ready"
    ready.parent.mkdir()
    ready.touch()
    return tmp_path


# make test passes its options to the tests, and so would to a make inside of them.
ALONE = {name: text for name, text in os.environ.items() if not name.startswith("MAKE")}


def would_run(house, *words):
    """List the notebooks that make would run."""
    command = ["make", "-n", "--no-print-directory", *words]
    listed = {"capture_output": True, "text": True, "check": True}
    printed = subprocess.run(command, cwd=house, env=ALONE, **listed).stdout
    lines = [line.split() for line in printed.splitlines()]
    return [words[4] for words in lines if words[3:4] == ["papermill"]]


def test_make_runs_what_is_out_of_date(house):
    """A changed file of a study concerns its notebook and those that need it."""
    assert would_run(house, "all") == ["10_one", "20_other", "60_findings"]
    assert not (house / "build").exists()  # make -n makes nothing

    executed = house / "build/notebooks"
    executed.mkdir(parents=True)
    noted = {"run": "default", "profile": "", "typed": {}}
    (house / "build/parameters.json").write_text(json.dumps(noted, indent=1))
    for name in ("10_one", "20_other", "60_findings"):
        (executed / f"{name}.ipynb").touch()
    assert would_run(house, "all") == []
    assert would_run(house, "20", "SEED=1") == ["20_other"]

    time.sleep(0.01)
    (house / "data/published/one/table.csv").touch()
    assert would_run(house, "all") == ["10_one", "60_findings"]


def test_a_mistake_is_told_at_once(house):
    """One line, before anything is made."""
    command = ["make", "10", "SED=1"]
    made = subprocess.run(command, cwd=house, capture_output=True, text=True, env=ALONE)
    assert made.returncode != 0
    assert made.stderr.count("\n") == 1
    assert "SED is no parameter of the notebooks that run: did you mean SEED?" in made.stderr


# ---- papermill


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Make a run's folder and one notebook, whose first cell has parameters."""

    def write(*sources):
        cells = [new_code_cell("N = 1\nRUN = 'lab'", metadata={"tags": ["parameters"]})]
        for source in sources:
            cells.append(new_code_cell(source, metadata={"tags": ["figure"]}))
        nbformat.write(new_notebook(cells=cells), tmp_path / "10_small.ipynb")
        noted = {"run": "mine", "profile": "", "typed": {"N": "2", "ENGINE": "vllm"}}
        (tmp_path / "parameters.json").write_text(json.dumps(noted))
        return tmp_path

    monkeypatch.setattr(run, "NOTEBOOKS", tmp_path)
    return write


def test_a_notebook_gets_what_was_typed(small, monkeypatch):
    """A kernel that dies as it starts is tried once more."""
    tries = []
    execute = papermill.execute_notebook

    def dies_once(*arguments, **options):
        tries.append(1)
        if len(tries) == 1:
            raise RuntimeError("Kernel died before replying to kernel_info")
        return execute(*arguments, **options)

    monkeypatch.setattr(papermill, "execute_notebook", dies_once)
    folder = small("print(N + 1, ENGINE, RUN)")
    run.papermill("10_small", str(folder))
    executed = nbformat.read(folder / "notebooks/10_small.ipynb", as_version=4)
    assert executed.cells[-1].outputs[0].text == "3 vllm mine\n"
    assert len(tries) == 2


def test_a_failed_notebook_ends_in_a_sentence(small, capsys):
    """It leaves nothing that looks done, and a traceback only where the sentence is too little."""
    folder = small("class InputError(ValueError): pass", "raise InputError('N=2 is too small')")
    with pytest.raises(SystemExit, match="10_small, cell 4: N=2 is too small"):
        run.papermill("10_small", str(folder))
    assert not (folder / "notebooks/10_small.ipynb").exists()
    assert "Traceback" not in capsys.readouterr().err


# ---- the front page


def headline(folder, study, verdict):
    """Write a study's headline for two models."""
    rows = [["smollm2-135m-instruct", 0.5, -0.25, 1.25, "points", verdict]] * 2
    table = pd.DataFrame(rows, columns=["model", "value", "low", "high", "unit", "verdict"])
    table.loc[1, "model"] = "a-model"
    (folder / study).mkdir()
    table.to_csv(folder / study / "headline.csv", index=False)


def test_the_front_page_has_each_paper_and_each_model(tmp_path):
    """A study that did not run says so."""
    headline(tmp_path, "empathy_gap", "cannot be told")
    table = book.front(tmp_path).set_index("paper")
    of_study = table.loc["Hou et al., 2025"]
    assert of_study["printed"] == "0.13 to 2.11 standard deviations of mean ratings"
    assert of_study["a-model"] == "cannot be told: 0.50 [-0.25, 1.25]"
    assert of_study["SmolLM2-135M"] == of_study["a-model"]
    assert (table["a-model"] == "not run").sum() == 3
    assert book.markdown(table.reset_index()).count("\n| ") == 6


def test_a_verdict_is_one_of_five(tmp_path):
    """Other words are refused."""
    headline(tmp_path, "empathy_gap", "mostly")
    with pytest.raises(InputError, match="mostly"):
        book.front(tmp_path)


def test_printed_ranges_are_those_of_the_printed_tables():
    """Those of StereoMap are tested with its contrast."""
    rows = read_table(PUBLISHED / "headlines.csv").set_index("study")
    gaps = published.load("empathy_gap", 2).groupby("model").delta.mean()

    numbers = (1, 2, 3)
    bias = pd.concat([published.load("biased_samaritan", number) for number in numbers])
    is_default = bias.group.isin(["white", "male", "young_adult", "middle_aged"])
    biases = bias[~is_default].groupby("model").score_difference.mean()

    change = published.load("giebench", 5)
    changes = change[change.category == "Overall"].delta_pct
    for study, values in [
        ("empathy_gap", gaps),
        ("biased_samaritan", biases),
        ("giebench", changes),
    ]:
        row = rows.loc[study]
        digits = int(row.decimals)
        assert [round(values.min(), digits), round(values.max(), digits)] == [
            float(row.low),
            float(row.high),
        ]


# ---- outputs of notebooks are cleaned


def cleaned(**data):
    """Clean one output."""
    output = new_output("display_data", data={key.replace("_", "/"): data[key] for key in data})
    notebook = new_notebook(cells=[new_code_cell("", outputs=[output])])
    return book.cleaned(notebook).cells[0].outputs[0].data


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>x</script>",
        '<img src="http://example.org/x" onerror="x">',
        '<a href="javascript:x">y</a>',
        '<p onclick="x">y</p>',
        '<p style="background: url(http://example.org/x)">y</p>',
        "<style>@import 'http://example.org/x'</style>",
        "<iframe src='http://example.org'></iframe>",
    ],
)
def test_hostile_html_is_taken_out(hostile):
    """Neither a script nor an address is left."""
    html = cleaned(text_html=f"<p>before</p>{hostile}")["text/html"]
    assert html.startswith("<p>before</p>")
    for word in ("script", "example", "onclick", "onerror"):
        assert word not in html


def test_a_table_keeps_its_text_and_colours():
    """What was escaped stays escaped."""
    table = pd.DataFrame({"reply": ["<b>bold</b>"], "value": [1.0]})
    shown = table.style.format(escape="html").set_properties(color="red", subset="value")
    html = cleaned(text_html=shown.to_html(), application_javascript="x")
    assert "&lt;b&gt;bold&lt;/b&gt;" in html["text/html"]
    assert ' style="color:red">1.0' in html["text/html"]
    assert set(html) == {"text/html"}
