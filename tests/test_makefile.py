"""What make runs again, by content, and that no value of a user is run."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

import clone
from ingroup import paths
from ingroup.commands.run_parameters import study_of
from weights import NO_TENSORS

NAMES = sorted(file.stem for file in paths.NOTEBOOKS.glob("[0-9]*.ipynb"))
LAST = ["00_map", "60_synthesis", "61_comparison"]  # read all studies
NOTEBOOKS_AND_REPORT = sorted([*NAMES, "report"])


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A copy of the project in which everything has just run."""
    root = clone.with_stubs(tmp_path_factory.mktemp("finished"))
    store = root / "build" / "responses" / "m@stored"
    store.mkdir(parents=True)
    (store / "part-0").write_text("an answer")
    make = clone.make(root, "all")
    assert sorted(clone.names(root)) == NOTEBOOKS_AND_REPORT, make.stderr
    return root


@pytest.fixture
def done(finished, tmp_path):
    """That copy, for one test."""
    root = shutil.copytree(finished, tmp_path / "done", copy_function=shutil.copy2)
    clone.ran(root)
    return root


def all_again(root, **more):
    """The notebooks that `make all` runs."""
    clone.ran(root)
    clone.make(root, "all", **more)
    return sorted(set(clone.names(root)) - {"report"})


def append(file):
    """Change a file, and leave its time."""
    before = file.stat()
    with file.open("a", encoding="utf8") as stream:
        stream.write(" ")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


# ---- what is out of date


def test_a_second_make_runs_nothing(done):
    make = clone.make(done, "all")

    assert clone.ran(done) == []
    last_line = make.stdout.splitlines()[-1]
    assert last_line.startswith("Report: build/report/index.html   figures: figures/")
    assert "60_synthesis: ran" in make.stdout


def test_touched_files_run_nothing(done):
    for file in done.rglob("*"):
        os.utime(file)
    assert all_again(done) == []


def test_compiled_modules_run_nothing(done):
    for module in ("lib/ingroup", "lib/ingroup/studies/giebench", "lib/ingroup/stats"):
        folder = done / module / "__pycache__"
        folder.mkdir(exist_ok=True)
        (folder / "some.pyc").write_text("compiled")

    assert all_again(done) == []


@pytest.mark.parametrize(
    ("study", "file"),
    [
        ("empathy_gap", "lib/ingroup/studies/{}/design.py"),
        ("biased_samaritan", "data/stimuli/{}/prompts.yaml"),
        ("giebench", "lib/ingroup/studies/{}/answers.py"),
        ("stereomap", "data/recordings/calibrant/{}/some/part-00000.parquet"),
    ],
)
def test_a_changed_study_runs_its_notebooks(done, study, file):
    """A shard far below the recordings, too. Its tables are the same, so what reads them rests."""
    changed = done / file.format(study)
    changed.parent.mkdir(parents=True, exist_ok=True)
    changed.touch()
    append(changed)

    of_study = [name for name in NAMES if study in name and "audit" not in name]
    assert set(all_again(done)) == {*of_study, *LAST}


def test_a_deleted_recording_runs_its_study(done):
    recorded = sorted(done.glob("data/recordings/calibrant/giebench/**/manifest.json"))
    recorded[0].unlink()
    assert {"30_giebench", "32_giebench_beyond"} < set(all_again(done))
    assert all_again(done) == []


@pytest.mark.parametrize(
    "file",
    ["lib/ingroup/parsing.py", "lib/ingroup/inference/store.py", "lib/ingroup/stats/paired.py"],
)
def test_a_changed_shared_module_runs_all_notebooks(done, file):
    append(done / file)
    assert all_again(done) == NAMES


@pytest.mark.parametrize("file", ["data/glossary.csv", "data/corpora.yaml", "requirements.lock"])
def test_changed_shared_data_and_versions_run_all_notebooks(done, file):
    append(done / file)
    assert all_again(done) == NAMES


def test_a_deleted_module_runs_the_notebooks_that_read_it(done):
    (done / "lib/ingroup/studies/giebench/group_profile.py").unlink()
    assert "30_giebench" in all_again(done)


@pytest.mark.parametrize("change", [append, os.remove])
@pytest.mark.parametrize(
    "file",
    [
        "data/published/giebench/table08_category_identities.csv",
        "lib/ingroup/studies/giebench/consistency.py",
    ],
)
def test_a_changed_printed_table_or_its_checks_run_its_study_and_its_audit(done, file, change):
    change(done / file)

    again = set(all_again(done))

    assert {"30_giebench", "53_audit_giebench"} <= again
    others = {"10_empathy_gap", "20_biased_samaritan", "40_stereomap", "51_audit_empathy_gap"}
    assert not again & others


@pytest.mark.parametrize("change", [append, os.remove])
def test_a_table_changed_by_hand_is_reported_and_made_again(done, change):
    table = done / "build/tables/some/53_audit_giebench.csv"
    change(table)

    make = clone.make(done, "all")

    assert "53_audit_giebench" in clone.names(done)
    sentence = "53_audit_giebench runs again: build/tables/some/53_audit_giebench.csv changed after"
    assert make.stderr.count(f"{sentence} it was written") == 1
    assert table.read_text() == "1"
    assert all_again(done) == []


@pytest.mark.parametrize("goal", ["report", "figures", "50"])
def test_a_goal_that_reads_a_table_changed_by_hand_makes_it_first(done, goal):
    append(done / "build/tables/some/53_audit_giebench.csv")

    make = clone.make(done, goal)

    first, *others = clone.ran(done)
    assert first.startswith("53_audit_giebench default")
    assert others or goal == "50"
    assert "53_audit_giebench runs again" in make.stderr


@pytest.mark.parametrize("kind", [".ipynb", ".txt", ".json"])
def test_a_deleted_result_is_made_again(done, kind):
    (done / "build" / "notebooks" / f"31_giebench_construction{kind}").unlink()
    assert "31_giebench_construction" in all_again(done)


def test_an_executed_copy_changed_by_hand_is_made_again(done):
    append(done / "build" / "notebooks" / "31_giebench_construction.ipynb")
    assert "31_giebench_construction" in all_again(done)


def test_added_changed_and_deleted_answers_run_their_notebooks(done):
    store = done / "build" / "responses" / "m@stored"
    (store / "part-1").write_text("another answer")
    assert "10_empathy_gap" in all_again(done)

    append(store / "part-0")
    assert "10_empathy_gap" in all_again(done)

    (store / "part-1").unlink()
    assert "10_empathy_gap" in all_again(done)

    assert all_again(done) == []


def test_notebooks_that_read_an_unchanged_table_do_not_run(done):
    """A notebook that comes out as before runs none of those that read it, except the map."""
    append(done / "notebooks" / "53_audit_giebench.ipynb")
    assert all_again(done) == ["00_map", "53_audit_giebench"]

    append(done / "notebooks" / "53_audit_giebench.ipynb")
    assert all_again(done, TABLE="2") == ["00_map", "50_audit", "53_audit_giebench"]


def test_an_input_that_changes_during_a_run_counts_as_not_read(done):
    """The digests are those of the moment when a notebook began."""
    module = done / "lib/ingroup/studies/giebench/group_profile.py"
    stub = done / "lib/ingroup/commands/run.py"
    edits = f"""
if options.notebook == "30_giebench" and not Path("edited").exists():
    Path("edited").touch()
    with open({str(module)!r}, "a") as stream:
        stream.write("# an edit")
"""
    stub.write_text(stub.read_text() + edits)

    assert all_again(done) == NAMES
    assert "30_giebench" in all_again(done)
    assert all_again(done) == []


def test_a_run_of_all_goes_from_studies_to_synthesis_to_map(done):
    shutil.rmtree(done / "build")
    clone.make(done, "all")

    order = clone.names(done)
    assert sorted(order) == NOTEBOOKS_AND_REPORT
    assert order[-2:] == ["00_map", "report"]

    studies = [name for name in NAMES if study_of(name)]
    for name in studies:
        (first,) = [other for other in studies if other.startswith(f"{name[0]}0_")]
        if name != first:
            assert order.index(first) < order.index(name)
        assert order.index(first) < order.index("60_synthesis")
        assert order.index(first) < order.index("61_comparison")


def test_only_the_failed_notebook_runs_again(done):
    shutil.rmtree(done / "build")

    failed = clone.make(done, "all", check=False, FAILS="40_stereomap")

    assert failed.returncode == 2
    assert "a notebook failed, as said above" in failed.stderr
    before = set(clone.names(done))
    assert {"10_empathy_gap", "40_stereomap", "54_audit_stereomap", "report"} <= before
    assert "60_synthesis" not in before

    again = set(all_again(done))
    assert again & before == {"40_stereomap"}


def test_a_killed_run_goes_on_where_it_was(done):
    """Killed outright, so that no program can save anything at its end."""
    shutil.rmtree(done / "build")
    stub = done / "lib/ingroup/commands/run.py"
    waits = """
if options.notebook == "60_synthesis" and Path("wait").exists():
    import time
    time.sleep(600)
"""
    stub.write_text(stub.read_text() + waits)
    (done / "wait").touch()

    command = ["make", "-C", str(done), "all", f"PY={sys.executable}", "READY="]
    make = subprocess.Popen(command, env=clone.environment(), start_new_session=True)
    copy = done / "build" / "notebooks" / "60_synthesis.ipynb"
    while not copy.exists():
        assert make.poll() is None
        time.sleep(0.1)
    os.killpg(make.pid, signal.SIGKILL)
    make.wait()

    before = set(clone.names(done))
    kept = {"10_empathy_gap", "20_biased_samaritan", "30_giebench", "40_stereomap"}
    assert kept < before

    (done / "wait").unlink()
    assert not kept & set(all_again(done))


def test_one_notebook_runs_with_the_tables_of_earlier_runs(done):
    append(done / "lib/ingroup/parsing.py")
    clone.make(done, "60")
    assert clone.names(done) == ["60_synthesis"]

    clone.make(done, "11")
    assert clone.names(done) == ["10_empathy_gap", "11_empathy_gap_beyond"]

    clone.make(done, "11")
    assert clone.names(done) == []


@pytest.mark.parametrize("given", [[], ["FOLDER=data/published"]])
def test_the_summary_of_audits_makes_the_four_audits_first(done, given):
    shutil.rmtree(done / "build")
    clone.make(done, "50", *given)

    *first, last = clone.names(done)
    assert sorted(first) == [name for name in NAMES if re.match("5[1-4]", name)]
    assert last == "50_audit"

    clone.make(done, "50", *given)
    assert clone.names(done) == []


def test_a_run_with_parameters_has_a_folder_and_runs_once(done):
    given = ["10", "N_EVENTS=24", "SETTINGS=P0,S0,T0"]
    make = clone.make(done, *given)
    (line,) = clone.ran(done)
    run = "N_EVENTS-24+SETTINGS-P0,S0,T0"
    assert line == f"10_empathy_gap {run} N_EVENTS='24' SETTINGS='P0,S0,T0'"
    assert f"tables: build/runs/{run}/tables/" in make.stdout

    clone.make(done, *given)
    assert clone.ran(done) == []

    clone.make(done, "10", "N_EVENTS=24", f"RUN={run}")  # other parameters under its name
    assert clone.names(done) == ["10_empathy_gap"]


def test_a_whole_named_run_has_an_appendix(done):
    """It is written once, and again when the run changed; the default run writes none."""
    model = done / "nets" / "my_model"
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_bytes(NO_TENSORS)
    (model / "tokenizer.json").touch()
    (model / "chat_template.jinja").touch()
    given = ["all", "MODELS=nets/my_model"]

    printed = clone.make(done, *given).stdout
    run = re.search(r"build/runs/(MODELS-my_model-\w{10})/report", printed)[1]
    assert printed.endswith(f"Appendix: build/appendix/{run}/appendix.html\n")
    appendices = [line for line in clone.ran(done) if "appendix" in line]
    assert appendices == [f"appendix --run {run}"]

    clone.make(done, *given)
    assert "appendix" not in clone.names(done)

    append(done / "lib/ingroup/appendix/asked.py")
    clone.make(done, *given)
    assert set(clone.names(done)) - {"report"} == {"appendix"}


def test_two_models_are_compared_without_a_study_that_runs(done):
    clone.make(done, "10", "N_EVENTS=24", "RUN=mine")
    clone.ran(done)
    tables = done / "build" / "runs" / "mine" / "tables" / "comparison"
    tables.mkdir(parents=True)
    header = "study,model,other_model,effects,first_has_more,second_has_more\n"
    (tables / "counts.csv").write_text(f"{header}giebench,a,b,5,2,1\n", "utf8")
    (tables / "missing.csv").write_text("study,model,reason\nstereomap,b,no answers\n", "utf8")

    printed = clone.make(done, "compare", "MODELS=a;b", "RUN=mine").stdout
    assert sorted(clone.names(done)) == ["61_comparison", "report"]
    assert "stereomap, b is left out: no answers\n" in printed
    assert "giebench: 2 of 5 effects are significantly larger in a, 1 in b\n" in printed
    assert printed.endswith("Page: build/runs/mine/report/61_comparison.html\n")

    (tables / "counts.csv").write_text(header, "utf8")
    failed = clone.make(done, "compare", "MODELS=a;c", "RUN=mine", check=False)
    assert failed.returncode == 2
    assert "nothing was compared: no study has stored answers of two models" in failed.stderr


def test_a_comparison_beside_another_goal_runs_both(done):
    clone.make(done, "10", "compare", "MODELS=calibrant;calibrant-null", check=False)
    assert {"10_empathy_gap", "61_comparison"} <= set(clone.names(done))


def test_an_edited_claim_runs_the_map_again(done):
    append(done / "docs" / "claims.yaml")
    assert all_again(done) == ["00_map"]


@pytest.mark.parametrize(
    "given", [["MODELS=openai/gpt-4o-mini"], ["MODELS=some@replay", "RECORDINGS=requirements.lock"]]
)
def test_servers_and_recordings_are_asked_again(done, given):
    for _ in range(2):
        clone.make(done, "10", *given, "RUN=mine")
        assert clone.names(done) == ["10_empathy_gap"]


def test_one_figure_is_drawn_by_the_notebooks_of_its_study(done):
    clone.make(done, "figures")
    assert sorted(clone.names(done)) == NAMES

    folder = done / "figures" / "giebench"
    folder.mkdir(parents=True)
    (folder / "figure1.pdf").touch()
    given = ["figures", "OUT=my folder", "WIDTH=3", "MODELS=a;b"]
    made = clone.make(done, *given, "ONLY=giebench/figure1", check=False)
    # The stub of a notebook draws nothing.
    assert made.stderr.startswith("giebench/figure1 was not drawn: this run has no such figure\n")
    assert made.returncode != 0
    lines = clone.ran(done)
    assert "30_giebench default redraw" in lines
    for line in lines:
        assert "_giebench" in line
        assert "audit" not in line
        assert line.endswith(" default redraw")

    failed = clone.make(done, *given, "ONLY=giebench/figure99", check=False)
    sentence = "there is no figure giebench/figure99: write ONLY=<study>/<name>, e.g. "
    assert sentence in failed.stderr


# ---- no value is run

PARAMETERS = ["MODELS", "ENGINE", "CORPUS", "ENGINE_WORKERS", "RAY_ADDRESS", "RECORDINGS", "GOALS"]
COMMANDS = [
    "STUDY",
    "RATE",
    "SAMPLES",
    "BUNDLE",
    "FILE",
    "RUN",
    "PROFILE",
    "DATA_MIRROR",
    "TORCH_INDEX",
]
FIGURE = ["ONLY", "OUT", "FORMAT", "WIDTH", "FONT", "CMAP", "PANEL"]
PROGRAMS = ["PYTHON", "PY", "READY", "VENV", "FOREIGN", "PYTHONPATH", "SINGLE", "NUMBERS"]
# In each, {0} is a file that must not come to be.
EXPANDED = "$(shell touch {0})${{shell touch {0}}}$(eval $(shell touch {0}))"
IN_A_SHELL = "$(touch {0})`touch {0}`;touch {0};';touch {0};'\";touch {0};\"\ntouch {0}\n"


def refuses_to_run(root, pwned, name, *arguments, **outside):
    """Call make, which may fail, with hostile values of a variable where a user can set it."""
    expanded = EXPANDED.format(pwned)
    in_a_shell = IN_A_SHELL.format(pwned)
    typed = in_a_shell.replace("$", "$$")
    for value in (expanded, typed):
        clone.make(root, "-k", *arguments, f"{name}={value}", check=False, **outside)
        assert not pwned.exists(), value
    for value in (expanded, in_a_shell):
        clone.make(root, "-k", *arguments, check=False, **outside, **{name: value})
        assert not pwned.exists(), value


@pytest.mark.parametrize("name", [*PARAMETERS, *COMMANDS, *FIGURE, *PROGRAMS])
def test_no_value_is_run_by_make(finished, tmp_path, name):
    """Make itself reads the targets, and expands their lines."""
    goals = ["figures", "plan", "data", "lint", "10", "help"]
    refuses_to_run(finished, tmp_path / "PWNED", name, "-n", *goals)


@pytest.mark.parametrize("name", ["ONLY", "MODELS", "STUDY", "RATE", "RUN", "PYTHON", "CORPUS"])
def test_no_value_is_run_by_what_make_calls(done, tmp_path, name):
    refuses_to_run(done, tmp_path / "PWNED", name, "figures", "10", "runs")


@pytest.mark.parametrize("name", ["PY", "READY", "VENV"])
def test_no_name_of_a_program_is_run_in_a_shell(finished, tmp_path, name):
    """Where they would be used: in a line of a target that reads no parameter, too."""
    pwned = tmp_path / "PWNED"
    in_a_shell = IN_A_SHELL.format(pwned).replace("$", "$$")
    for value in (in_a_shell, f"x;touch {pwned};#"):
        for goal in ("lint", "runs", ".venv/.ready"):
            command = ["make", "-C", str(finished), goal, f"{name}={value}"]
            subprocess.run(command, env=clone.environment(), capture_output=True)
            assert not pwned.exists(), (goal, value)

    assert list(finished.glob(".venv*")) == []


HOSTILE = [
    "/home/o'brien/R&D x/two (b) #1 50%.csv",
    "a';touch PWNED;'",
    "`touch PWNED`",
    'a "q" \\x *',
    "$$(touch PWNED)",
    "one\ntwo",
    "blank ",
    "a,b=c:d;e",
    "=cmd|' /C calc'!A0",
    "\u00e9\U0001f600",
    "x -- A=1",
    "tab\there",
    "\\",
    "x" * 300,
]


def test_a_parameter_arrives_exactly_as_it_was_given(done):
    for value in HOSTILE:
        clone.make(done, "10", "RUN=x", f"RAY_ADDRESS={value}")
        shutil.rmtree(done / "build" / "runs")  # who computes changes no result

        typed = value.replace("$$", "$")
        (line,) = clone.ran(done)
        assert line == f"10_empathy_gap x RAY_ADDRESS={typed!r}"

    assert list(done.rglob("PWNED")) == []


def test_the_package_of_another_clone_does_not_run(done, tmp_path):
    other = tmp_path / "other" / "ingroup"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("raise SystemExit('the other clone ran')")

    make = clone.make(done, "60", PYTHONPATH=str(other.parent))

    assert make.stderr.count("PYTHONPATH is not used: make runs ") == 1
    assert f"{done}/lib" in make.stderr
