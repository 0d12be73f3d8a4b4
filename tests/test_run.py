"""Parameters are checked before anything runs, and only a whole notebook is kept."""

import ast
import json
import re
import subprocess

import nbformat
import pytest
import yaml

from ingroup import paths, run

NOTEBOOK = "10_empathy_gap"


def test_profiles_name_only_parameters_that_exist():
    for profile in ("demo", "full"):
        content = yaml.safe_load((paths.PROFILES / f"{profile}.yaml").read_text("utf8"))
        for notebook, values in content.items():
            source = nbformat.read(paths.NOTEBOOKS / f"{notebook}.ipynb", 4)
            (cell,) = [c for c in source.cells if "parameters" in c.metadata.get("tags", [])]
            names = {node.targets[0].id for node in ast.parse(cell.source).body}
            assert set(values) <= names


def test_given_values_come_before_the_profile_before_the_notebook():
    values = run.merged(NOTEBOOK, "demo", {"N_EVENTS": "24", "SETTINGS": "P0,S0,T0; P1,S0,T0"})
    assert values["N_EVENTS"] == 24
    assert values["SETTINGS"] == ["P0,S0,T0", "P1,S0,T0"]
    assert values["CONTROL"] == "calibrant-null"
    assert values["N_RESAMPLES"] == 10_000
    assert values["RUN"] == "default"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"MODLE": "x"}, "10_empathy_gap has no parameter MODLE; it takes MODEL, ENGINE, CONTROL"),
        ({"RUN": "x"}, "10_empathy_gap has no parameter RUN"),
        ({"N_EVENTS": "many"}, "N_EVENTS must be a whole number, found 'many'"),
        ({"N_EVENTS": "2.5"}, "N_EVENTS must be a whole number, found '2.5'"),
        ({"N_EVENTS": "-3"}, "N_EVENTS must not be negative, found -3"),
        ({"N_EVENTS": "1"}, "N_EVENTS must be at least 2"),
        ({"N_EVENTS": "7000"}, "CORPUS 'sample', N_EVENTS 7000: .*72"),
        ({"SEED": "-1"}, "SEED must not be negative"),
        ({"MODEL": "no such model"}, "MODEL 'no such model' is neither a model in data/models"),
        ({"MODEL": ""}, "MODEL is empty"),
        ({"CORPUS": "nowhere.tsv"}, "CORPUS 'nowhere.tsv', N_EVENTS 8: "),
        ({"SETTINGS": "P9,S0,T0"}, "SETTINGS: unknown setting 'P9,S0,T0'"),
        ({"EXCLUSION": "some"}, "EXCLUSION 'some' is unknown; expected any or pairwise"),
        ({"PARSING": "mine"}, "PARSING 'mine' is unknown; expected sound or authors"),
        ({"N_RESAMPLES": "0"}, "N_RESAMPLES must be at least 1"),
        ({"BATCH_SIZE": "0"}, "BATCH_SIZE must be at least 1"),
        ({"GPUS": "0"}, "GPUS must be at least 1"),
        ({"PRICE_IN": "-1"}, "PRICE_IN must not be negative"),
        ({"PRICE_OUT": "a lot"}, "PRICE_OUT must be a number, found 'a lot'"),
        ({"ENGINE": "gpu"}, "ENGINE 'gpu' is unknown; expected transformers, vllm, openai or repl"),
        ({"RATING": "mean"}, "RATING 'mean' is unknown; expected greedy or expected"),
        ({"REWRITER": "no such"}, "REWRITER 'no such' is neither a model in data/models"),
        ({"DTYPE": "bf16"}, "DTYPE 'bf16' is unknown; expected auto, float32, bfloat16 or float16"),
        (
            {"ENGINE": "openai", "BASE_URL": "http://u:secret@h/v1"},
            "BASE_URL: the base URL must read like .* and hold no user, password or query",
        ),
        (
            {"ENGINE": "openai", "SYSTEM": "fold"},
            "SYSTEM is for an engine that loads the model, found ENGINE=openai",
        ),
        ({"ENGINE": "replay"}, "ENGINE=replay needs RECORDINGS=<file or folder>"),
        ({"RECORDINGS": "x"}, "RECORDINGS is for ENGINE=replay, found ENGINE=transformers"),
        ({"BASE_URL": "http://x/v1"}, "BASE_URL is for ENGINE=openai, found ENGINE=transformers"),
        (
            {"ENGINE": "replay", "RECORDINGS": "x", "CONTROL": "calibrant-null"},
            "ENGINE=replay has the answers of one model: leave CONTROL and REWRITER empty",
        ),
        (
            {"ENGINE": "replay", "RECORDINGS": "x", "RATING": "expected"},
            "RATING=expected needs probabilities, which recordings lack",
        ),
    ],
)
def test_a_wrong_parameter_is_one_sentence(given, message):
    with pytest.raises(run.ParameterError, match=message) as error:
        run.merged(NOTEBOOK, "demo", given)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "control"),
    [
        ({}, "calibrant-null"),
        ({"ENGINE": "vllm"}, "calibrant-null"),
        ({"MODEL": "organisation/model"}, ""),
        ({"MODEL": "organisation/model", "CONTROL": "calibrant-null"}, "calibrant-null"),
        ({"ENGINE": "openai", "MODEL": "any name a server knows"}, ""),
        ({"ENGINE": "replay", "MODEL": "theirs", "RECORDINGS": "x"}, ""),
    ],
)
def test_the_control_belongs_to_the_calibrant(given, control):
    assert run.merged(NOTEBOOK, "demo", given)["CONTROL"] == control


def test_a_parameter_of_another_notebook_is_passed_over_only_where_all_are_run():
    with pytest.raises(run.ParameterError, match="50_audit has no parameter N_EVENTS"):
        run.merged("50_audit", "demo", {"N_EVENTS": "4"})
    assert "N_EVENTS" not in run.merged("50_audit", "demo", {"N_EVENTS": "4"}, shared=True)
    with pytest.raises(run.ParameterError, match="50_audit has no parameter NEVENTS"):
        run.merged("50_audit", "demo", {"NEVENTS": "4"}, shared=True)


def test_an_unknown_notebook_or_profile_names_those_there_are():
    with pytest.raises(run.ParameterError, match=r"no notebook '99'; there are .*10_empathy_gap"):
        run.merged("99", "demo", {})
    with pytest.raises(run.ParameterError, match="no PROFILE 'fast'; there are demo, full"):
        run.merged(NOTEBOOK, "fast", {})


def test_the_command_line_prints_the_sentence_and_nothing_else(capsys):
    assert run.main([NOTEBOOK, "--set", "N_EVENTS=x"]) == 2
    written = capsys.readouterr()
    assert (written.out, written.err.count("\n")) == ("", 1)


@pytest.mark.parametrize(
    ("text", "default", "value"),
    [("a", "b", "a"), ("0.5", 1.0, 0.5), ("true", False, True), ("0", True, False), ("", [], [])],
)
def test_text_takes_the_type_of_the_default(text, default, value):
    assert run.converted("X", text, default) == value


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A project of one notebook, whose one cell divides by a parameter."""
    cells = [
        nbformat.v4.new_code_cell("BY = 1\nRUN = ''", metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell("print(6 / BY)"),
    ]
    book = nbformat.v4.new_notebook(cells=cells)
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    book.metadata["language_info"] = {"name": "python"}
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "demo.yaml").write_text("tiny:\n  BY: 2\n")
    nbformat.write(book, tmp_path / "tiny.ipynb")
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path)
    monkeypatch.setattr(paths, "PROFILES", tmp_path / "profiles")
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    return tmp_path / "build" / "notebooks"


def test_an_executed_notebook_is_moved_into_place(tiny):
    assert run.main(["tiny"]) == 0
    assert "3.0" in json.dumps(json.loads((tiny / "tiny.ipynb").read_text())["cells"])
    assert re.fullmatch(r"tiny: \d+ s, BY=2\n", (tiny / "tiny.txt").read_text())
    assert not (tiny / "tiny.unfinished.ipynb").exists()


def test_a_failing_notebook_leaves_no_result(tiny, capsys):
    assert run.main(["tiny", "--set", "BY=0"]) == 1
    assert "ZeroDivisionError: division by zero" in capsys.readouterr().err
    assert not (tiny / "tiny.ipynb").exists()


def modules_of(notebook):
    """Files of lib/ that a notebook's code imports, directly or through other modules."""
    source = nbformat.read(paths.NOTEBOOKS / f"{notebook}.ipynb", 4)
    todo = ["\n".join(c.source for c in source.cells if c.cell_type == "code")]
    lib, found = paths.ROOT / "lib", set()
    while todo:
        for node in ast.walk(ast.parse(todo.pop())):
            names = []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module] + [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            for name in names:
                base = lib / name.replace(".", "/")
                for file in (base.with_suffix(".py"), base / "__init__.py"):
                    if file.exists() and file not in found:
                        found.add(file)
                        todo.append(file.read_text("utf8"))
    return {str(file.relative_to(paths.ROOT)) for file in found}


@pytest.mark.parametrize("notebook", sorted(p.stem for p in paths.NOTEBOOKS.glob("[0-9]*.ipynb")))
def test_make_knows_every_module_a_notebook_depends_on(notebook):
    rules = subprocess.run(
        ["make", "-npq", "-C", str(paths.ROOT)], capture_output=True, text=True, check=False
    ).stdout
    (needs,) = re.findall(rf"^build/notebooks/{notebook}\.ipynb: (.*)$", rules, re.MULTILINE)
    known = {need for need in needs.split() if need.startswith("lib/")}
    assert modules_of(notebook) - known == set()
    assert known - modules_of(notebook) == {"lib/ingroup/run.py"}
