"""What a student edits stays, and the notebooks stay as they are."""

import json
import os
import sys

import nbformat
import papermill
import pytest
from papermill.exceptions import PapermillExecutionError

from ingroup import notebook, paths
from ingroup.commands import cli, kernel, lab, run, settings
from ingroup.tables import InputError
from weights import NO_TENSORS


@pytest.fixture
def folders(tmp_path):
    """Two notebooks, and where their copies go."""
    notebooks = tmp_path / "notebooks"
    notebooks.mkdir()
    for name in ("00_map", "10_study"):
        (notebooks / f"{name}.ipynb").write_text(name)
    return notebooks, tmp_path / "lab"


def test_notebooks_are_copied_once_and_edits_stay(folders):
    notebooks, copies = folders
    assert lab.copy_notebooks(*folders) == []
    copy = copies / "10_study.ipynb"
    assert copy.read_text() == "10_study"

    copy.write_text("edited")
    assert lab.copy_notebooks(*folders) == []
    assert copy.read_text() == "edited"
    assert (notebooks / "10_study.ipynb").read_text() == "10_study"


def test_a_notebook_that_changed_is_copied_anew_unless_its_copy_was_edited(folders):
    notebooks, copies = folders
    lab.copy_notebooks(*folders)
    (copies / "10_study.ipynb").write_text("edited")
    for name in ("00_map", "10_study"):
        (notebooks / f"{name}.ipynb").write_text("newer")

    (sentence,) = lab.copy_notebooks(*folders)
    assert sentence.startswith("lab/10_study.ipynb has your edits, and its notebook has changed")
    assert (copies / "00_map.ipynb").read_text() == "newer"
    assert (copies / "10_study.ipynb").read_text() == "edited"

    (copies / "10_study.ipynb").unlink()
    assert lab.copy_notebooks(*folders) == []
    assert (copies / "10_study.ipynb").read_text() == "newer"


def test_a_foreign_copy_stays(folders):
    _, copies = folders
    copies.mkdir()
    (copies / "00_map.ipynb").write_text("mine")

    (sentence,) = lab.copy_notebooks(*folders)

    assert sentence.startswith("lab/00_map.ipynb has your edits")
    assert (copies / "00_map.ipynb").read_text() == "mine"


@pytest.mark.parametrize("user", [0, 1000])
def test_jupyterlab_has_the_repository_as_its_root(user, monkeypatch, capsys):
    """So that the links of the notebooks work; root is allowed, and told."""
    monkeypatch.setattr(lab, "copy_notebooks", lambda: [])
    monkeypatch.setattr(os, "geteuid", lambda: user)
    commands = []
    monkeypatch.setattr(os, "execv", lambda program, options: commands.append((program, options)))
    monkeypatch.setenv(paths.IN_LAB, "")

    lab.main()

    ((program, options),) = commands
    assert program == sys.executable
    assert f"--ServerApp.root_dir={paths.ROOT}" in options
    assert ("--ServerApp.allow_root=True" in options) == (user == 0)
    assert ("as root" in capsys.readouterr().out) == (user == 0)


# ---- the run of a copy ---------------------------------------------------------------------------

OWN = {"N_EVENTS": 12, "SETTINGS": [], "ENGINE": "", "RUN": "lab"}


@pytest.fixture
def own(monkeypatch, tmp_path):
    """A notebook with the parameters `OWN`, whose runs lie in a folder of the test."""
    monkeypatch.setattr(lab.run_parameters, "cell_parameters", lambda notebook: dict(OWN))
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    monkeypatch.setattr(settings, "BUILD", tmp_path)


def run_of(values, source=""):
    """The run of a copy whose cell is `source`, in the namespace of IPython."""
    return lab.run_of("10_study", {**values, "In": ["", source]})


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({}, "lab"),
        ({"N_EVENTS": 6}, "lab+N_EVENTS-6"),
        ({"SETTINGS": ["P0,S0,T0"], "N_EVENTS": 6}, "lab+N_EVENTS-6+SETTINGS-P0,S0,T0"),
        ({"RUN": "old", "out": 1}, "lab"),
    ],
)
def test_the_run_of_a_copy_is_named_by_what_was_changed(changed, name, own):
    assert run_of(OWN | changed) == name


def test_a_model_of_ones_own_is_named_without_its_place(monkeypatch, tmp_path):
    """Two folders of one name have two runs."""
    monkeypatch.setattr(
        lab.run_parameters, "cell_parameters", lambda notebook: {"MODELS": [], "RUN": "lab"}
    )
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    runs = []
    for place in ("a", "b"):
        folder = tmp_path / place / "net"
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(NO_TENSORS)
        (folder / "tokenizer.json").touch()
        (folder / "chat_template.jinja").touch()
        runs.append(run_of({"MODELS": [str(folder)]}))

    assert len(set(runs)) == 2
    for name in runs:
        assert name.startswith("lab+MODELS-net-")
        start = json.loads(paths.started("10_study", name).read_text("utf8"))
        assert start["changed"] == {"MODELS": "net"}


def test_a_run_of_jupyterlab_can_be_read(own, capsys):
    """Its folder says what was changed, also where a checksum hides this in its name."""
    wordings = ["P0,S0,T0", "P1,S0,T0", "P2,S0,T0", "P3,S0,T0"]
    name = run_of(OWN | {"N_EVENTS": 6, "SETTINGS": wordings})
    assert "P3" not in name
    assert run_of(OWN) == "lab"

    assert settings.runs() == sorted(["lab", name])
    assert notebook.parameters_of_run("10_study", name) == {
        "N_EVENTS": 6,
        "SETTINGS": wordings,
        "ENGINE": "",
        "RUN": name,
    }
    assert notebook.parameters_of_run("11_study", name) is None

    cli.call("runs")
    lines = capsys.readouterr().out.splitlines()
    assert "  10_study: started in JupyterLab, as the notebook has it" in lines
    assert lines[-1].startswith("A run's tables and figures are in build/runs/<run>/")
    place = lines.index(f"{name}:")
    assert lines[place + 1] == (
        "  10_study: started in JupyterLab, N_EVENTS=6, "
        "SETTINGS=P0,S0,T0;P1,S0,T0;P2,S0,T0;P3,S0,T0"
    )


def test_a_document_about_a_run_of_jupyterlab_is_refused_in_one_sentence(own):
    name = run_of(OWN | {"SETTINGS": ["P0,S0,T0", "P1,S0,T0"]})
    for goal in ("report", "appendix", "word"):
        with pytest.raises(settings.Refused) as refused:
            settings.check([goal], {"MAKEFLAGS": f" -- RUN={name}", "RUN": name})
        assert str(refused.value) == (
            f"make {goal} needs executed notebooks, and JupyterLab keeps none: run make 10 "
            f"'SETTINGS=P0,S0,T0;P1,S0,T0', or read {name} with make runs, view, figures or compare"
        )
    for goal in ("view", "figures", "60"):
        settings.check([goal], {"MAKEFLAGS": f" -- RUN={name}", "RUN": name})


def test_figures_of_a_run_of_jupyterlab_are_drawn_again(own, monkeypatch):
    name = run_of(OWN | {"N_EVENTS": 6})
    commands = []
    monkeypatch.setattr(
        cli.processes, "start", lambda command, variables: commands.append(command) or True
    )
    monkeypatch.setenv("RUN", name)
    monkeypatch.setenv("MAKEFLAGS", f" -- RUN={name}")

    assert cli.call("figures") == 0

    (command,) = commands
    assert command[-4:] == ["10_study", "--run", name, "--redraw"]


@pytest.mark.parametrize(
    ("source", "names", "sentence"),
    [
        (
            "N_EVENTS = 12\nN_EVENT = 6",
            OWN | {"N_EVENT": 6},
            "N_EVENT is not a parameter here; did you mean N_EVENTS?",
        ),
        (
            "n_events = 6",
            OWN | {"n_events": 6},
            "n_events is not a parameter here; did you mean N_EVENTS?",
        ),
        (
            "WAS = 1",
            OWN | {"WAS": 1},
            "WAS is not a parameter here; there are ENGINE N_EVENTS SETTINGS",
        ),
        (
            "SETTINGS = []",
            {"SETTINGS": [], "ENGINE": ""},
            "N_EVENTS is missing among the parameters: write N_EVENTS = <value>",
        ),
        ("", OWN | {"N_EVENTS": "6"}, "N_EVENTS must be a whole number, found '6'"),
    ],
)
def test_a_wrong_cell_of_parameters_is_refused_in_one_sentence(source, names, sentence, own):
    with pytest.raises(InputError) as raised:
        run_of(names, source)
    assert str(raised.value) == sentence
    assert settings.runs() == []


def test_jupyters_kernel_refuses_a_misspelt_parameter(tmp_path):
    """The kernel says which cell runs; names of cells that ran before are no mistake."""
    lab.copy_notebooks(paths.NOTEBOOKS, tmp_path / "lab")
    book = nbformat.read(tmp_path / "lab" / "10_empathy_gap.ipynb", as_version=4)
    (cell,) = [c for c in book.cells if "parameters" in c.metadata.get("tags", ())]
    misspelt = nbformat.v4.new_code_cell(cell.source.replace("N_EVENTS =", "N_EVENT ="))
    own_name = nbformat.v4.new_code_cell("N_EVENT = 6")
    book.cells = [own_name, cell, misspelt]
    manager = kernel.manager_class(tmp_path / "notes")

    with pytest.raises(PapermillExecutionError) as raised:
        papermill.execute_notebook(book, None, kernel_manager_class=manager, **run.KERNEL_OPTIONS)

    assert raised.value.exec_count == 3
    assert raised.value.traceback == ["N_EVENT is not a parameter here; did you mean N_EVENTS?"]


def test_names_of_other_cells_are_no_mistake(own):
    """After the whole copy ran, its first cells may run again."""
    assert run_of(OWN | {"KEY": ["model"], "N_MINE": 3}, "N_EVENTS = 12\nRUN = 'x'") == "lab"


@pytest.mark.parametrize("notebook", ["10_empathy_gap", "40_stereomap", "31_giebench_construction"])
def test_a_copy_as_it_is_committed_writes_to_lab_and_a_changed_one_elsewhere(notebook, tmp_path):
    """Its cell of parameters is run as JupyterLab runs it."""
    lab.copy_notebooks(paths.NOTEBOOKS, tmp_path / "lab")
    book = nbformat.read(tmp_path / "lab" / f"{notebook}.ipynb", as_version=4)
    (cell,) = [c for c in book.cells if "parameters" in c.metadata.get("tags", ())]
    names = {"In": [cell.source]}
    exec(cell.source, names)
    assert names["RUN"] == "lab"
    exec(cell.source.replace("\nSEED = 0", "\nSEED = 1"), names)
    assert names["RUN"] == "lab+SEED-1"


READERS = ["00_map", "50_audit", "51_audit_empathy_gap", "60_synthesis", "61_comparison"]


def cells_of_copy(notebook, folder):
    """The cell of parameters of a copy in JupyterLab, and the cell that says where it writes."""
    lab.copy_notebooks(paths.NOTEBOOKS, folder / "lab")
    book = nbformat.read(folder / "lab" / f"{notebook}.ipynb", as_version=4)
    (parameters,) = [c for c in book.cells if "parameters" in c.metadata.get("tags", ())]
    (writing,) = [c for c in book.cells if "notebook.Output(" in c.source]
    return parameters.source, writing.source


def run_cell(source):
    """The names of a cell that runs as JupyterLab runs it."""
    names = {"In": [source]}
    exec(source, names)
    return names


@pytest.fixture
def builds(monkeypatch, tmp_path):
    """The runs lie in a folder of the test; one besides the default run has ended."""
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    monkeypatch.setattr(settings, "BUILD", tmp_path)
    ended = tmp_path / "runs" / "mine" / "notebooks" / "10_empathy_gap.txt"
    ended.parent.mkdir(parents=True)
    ended.write_text("")


@pytest.mark.parametrize("notebook", settings.notebooks())
def test_no_copy_writes_into_the_run_that_it_reads(notebook, tmp_path):
    """A notebook that reports on a run, and one that has a run of its own."""
    parameters, writing = cells_of_copy(notebook, tmp_path)
    if 'RUN = "default"' in parameters:
        assert ", OWN_RUN)" in writing
        assert ", RUN)" not in writing
    else:
        assert "\nRUN = run_of(" in parameters
        assert ", RUN)" in writing


@pytest.mark.parametrize("notebook", READERS)
def test_a_copy_that_reports_on_a_run_writes_into_a_run_of_its_own(notebook, builds, tmp_path):
    source, _ = cells_of_copy(notebook, tmp_path)
    names = run_cell(source)
    assert names["RUN"] == "default"
    assert names["OWN_RUN"] == "lab"

    names = run_cell(source.replace('RUN = "default"', 'RUN = "mine"'))
    assert names["RUN"] == "mine"
    assert names["OWN_RUN"] == "lab+RUN-mine"
    start = json.loads(paths.started(notebook, "lab+RUN-mine").read_text("utf8"))
    assert start["changed"] == {"RUN": "mine"}
    assert start["parameters"]["RUN"] == "lab+RUN-mine"


def test_a_document_about_such_a_copy_names_the_run_that_it_read(builds, tmp_path):
    source, _ = cells_of_copy("60_synthesis", tmp_path)
    run_cell(source.replace('RUN = "default"', 'RUN = "mine"'))
    name = "lab+RUN-mine"
    with pytest.raises(settings.Refused) as refused:
        settings.check(["report"], {"MAKEFLAGS": f" -- RUN={name}", "RUN": name})
    assert "run make 60 RUN=mine, or read lab+RUN-mine with" in str(refused.value)


def test_a_copy_with_another_seed_has_another_run(builds, tmp_path):
    source, _ = cells_of_copy("60_synthesis", tmp_path)
    names = run_cell(source.replace("SEED = 0\n", "SEED = 1\n"))
    assert names["OWN_RUN"] == "lab+SEED-1"


@pytest.mark.parametrize(
    ("notebook", "committed", "changed", "sentence"),
    [
        ("00_map", "SEED = 0", "SED = 0", "SED is not a parameter here; did you mean SEED?"),
        (
            "00_map",
            "SEED = 0",
            "SEED = -1",
            "SEED must be a whole number, 0 to 2^32 - 1, found -1",
        ),
        (
            "00_map",
            '"default"',
            '"old"',
            "there is no run 'old' to read; RUN can be 'default', 'mine'",
        ),
        (
            "51_audit_empathy_gap",
            'FOLDER = ""',
            'FOLDER = "nowhere"',
            "FOLDER: found 'nowhere', expected a folder like data/published, which has a ",
        ),
        (
            "51_audit_empathy_gap",
            'FOLDER = ""',
            'FOLDERS = ""',
            "FOLDERS is not a parameter here; did you mean FOLDER?",
        ),
        (
            "60_synthesis",
            "CLUSTER_SEEDS = 10",
            "CLUSTER_SEEDS = 0",
            "CLUSTER_SEEDS must be a whole number, 1 to 10^9, found 0",
        ),
        (
            "61_comparison",
            '"default"',
            "3",
            "there is no run 3 to read; RUN can be 'default', 'mine'",
        ),
    ],
)
def test_a_wrong_parameter_of_a_copy_that_reports_on_a_run_is_refused_in_one_sentence(
    notebook, committed, changed, sentence, builds, tmp_path
):
    source, _ = cells_of_copy(notebook, tmp_path)
    assert committed in source
    with pytest.raises(InputError) as raised:
        run_cell(source.replace(committed, changed))
    assert str(raised.value).startswith(sentence)
    assert settings.runs() == ["mine"]


def test_no_table_and_figure_of_the_default_run_is_written_from_jupyterlab(monkeypatch, tmp_path):
    """Also not by a committed notebook that is opened there: its figures are in git."""
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    monkeypatch.setattr(paths, "FIGURES", tmp_path / "figures")
    out = notebook.Output("map", "default")
    assert out.tables == tmp_path / "tables" / "map"
    assert out.figures == tmp_path / "figures" / "map"

    monkeypatch.setattr(lab, "copy_notebooks", lambda: [])
    monkeypatch.setattr(os, "execv", lambda program, options: None)
    monkeypatch.setenv(paths.IN_LAB, "")
    lab.main()

    out = notebook.Output("map", "default")
    assert out.tables == tmp_path / "runs" / "lab" / "tables" / "map"
    assert out.figures == tmp_path / "runs" / "lab" / "figures" / "map"
    assert notebook.Output("map", "mine").tables == tmp_path / "runs" / "mine" / "tables" / "map"
