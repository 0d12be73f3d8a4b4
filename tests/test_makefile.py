"""What make runs again, and in which order: a study's change runs that study, not the others."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from ingroup import paths

NAMES = sorted(file.stem for file in paths.NOTEBOOKS.glob("[0-9]*.ipynb"))
LAST = ["00_map", "60_synthesis"]  # read all studies


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The project's files, empty, in which everything has just run."""
    root = tmp_path_factory.mktemp("made")
    data = (f"data/{name}" for name in ("stimuli", "published", "sample", "models"))
    for folder in ("lib", "notebooks", *data):
        for file in (paths.ROOT / folder).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                place = root / file.relative_to(paths.ROOT)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.touch()
    shutil.copy(paths.ROOT / "Makefile", root)
    for name in ("pyproject.toml", "requirements.lock"):
        (root / name).touch()
    for file in root.rglob("*"):
        os.utime(file, (1000, 1000))
    made = [f"build/notebooks/{name}.{kind}" for name in NAMES for kind in ("ipynb", "txt")]
    for name in (".venv/.ready", *made, "build/report/index.html"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
        os.utime(root / name, (2000, 2000))
    return root


def make(root, *arguments, check=True):
    command = ["make", "-C", str(root), *arguments]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    return subprocess.run(command, capture_output=True, text=True, check=check, env=environment)


def runs(root, *arguments):
    """The notebooks that make would run, in order."""
    return re.findall(r"ingroup\.commands\.run (\S+)", make(root, "-n", *arguments).stdout)


def test_where_nothing_changed_nothing_runs(done):
    assert runs(done, "all") == []


def test_all_ends_with_what_the_run_showed(done):
    *_, last = (line for line in make(done, "-n", "all").stdout.splitlines() if "make" not in line)
    assert last.startswith('echo; cat build/notebooks/*.txt; echo "Report: build/report/index.html')


@pytest.mark.parametrize("study", ["empathy_gap", "biased_samaritan", "giebench", "stereomap"])
def test_a_study_s_change_runs_that_study_and_what_reads_its_answers(done, study):
    own = [name for name in NAMES if study in name and "audit" not in name]
    assert own
    for file in (f"lib/ingroup/studies/{study}/design.py", f"data/stimuli/{study}/prompts.yaml"):
        assert sorted(runs(done, "all", "-W", file)) == sorted([*LAST, *own])


def test_a_value_with_commas_names_a_run_like_any_other(done):
    assert runs(done, "10", "SETTINGS=P0,S0,T0", "RUN_READY=") == ["10_empathy_gap"]


def test_a_change_in_what_all_share_runs_every_study(done):
    for file in ("lib/ingroup/inference/store.py", "lib/ingroup/parsing.py"):
        assert set(runs(done, "all", "-W", file)) >= {n for n in NAMES if re.match("[1-4]", n)}


def test_a_printed_table_runs_its_study_and_its_audit(done):
    found = runs(done, "all", "-W", "data/published/giebench/table08_category_identities.csv")
    assert {"30_giebench", "50_audit", "00_map"} <= set(found)
    assert not {"10_empathy_gap", "20_biased_samaritan", "40_stereomap"} & set(found)


def test_in_a_run_of_all_what_reads_answers_follows_and_the_map_is_last(done):
    order = runs(done, "all", "-B", "-o", ".venv/.ready", "-j1")
    assert sorted(order) == NAMES
    for name in NAMES:
        before = [other for other in NAMES if re.fullmatch(rf"{name[0]}0_.*", other)]
        if name[0] in "1234" and name not in before:
            assert order.index(before[0]) < order.index(name)
        if re.match("[1-4]0_", name):
            assert order.index(name) < order.index("60_synthesis")
    assert order[-1] == "00_map"


def test_alone_the_synthesis_takes_what_is_there(done):
    assert runs(done, "60", "-W", "notebooks/60_synthesis.ipynb") == ["60_synthesis"]
    assert runs(done, "00") == ["00_map"]


HOSTILE = [
    "/home/o'brien/R&D x/two (b) #1 50%.csv", "a';touch PWNED;'", "`touch PWNED`", 'a "q" \\x *',
    "$$(touch PWNED)", "one\ntwo", "blank ", "a,b=c:d;e", "=cmd|' /C calc'!A0", "\u00e9\U0001f600",
]  # fmt: skip


@pytest.mark.parametrize("value", HOSTILE)
def test_a_parameter_arrives_exactly_as_it_was_given(done, tmp_path, value):
    """In place of Python stands a program that writes down what it gets."""
    stub = tmp_path / "stub"
    stub.write_text(
        f"#!{sys.executable}\nimport os, sys\nassert sys.argv[-2:] == ['--set', 'CORPUS']\n"
        f"open({str(tmp_path / 'got')!r}, 'w').write(os.environ['CORPUS'])\n"
    )
    stub.chmod(0o755)
    make(done, "-s", "10", f"RUN_PY={stub}", "RUN_READY=", "RUN=x", f"CORPUS={value}", check=False)
    assert (tmp_path / "got").read_text() == value.replace("$$", "$")
    assert not [*done.rglob("PWNED"), *tmp_path.rglob("PWNED")]


def named(root, *given):
    """The name that a run of the first notebook gets."""
    always = "-n", "-W", "notebooks/10_empathy_gap.ipynb", "10", "RUN_READY="
    return re.search("--run '(.*?)'", make(root, *always, *given).stdout)[1]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ([], "default"),
        (["ENGINE_WORKERS=8", "RAY_ADDRESS=here:6379"], "default"),
        (["N_EVENTS=24"], "N_EVENTS-24"),
        (["PROFILE=full", "SETTINGS=P0,S0,T0"], "full+SETTINGS-P0,S0,T0"),
        (["N_EVENTS=24", "RUN=mine"], "mine"),
    ],
)
def test_a_run_is_named_by_what_it_changes(done, given, name):
    assert named(done, *given) == name


MANY = "MODELS=meta-llama/Llama-3.1-8B-Instruct@vllm;gpt-4o-mini@openai"


@pytest.mark.parametrize("value", [*HOSTILE, "\u00e9", "..", "../x.csv", "+", "x" * 300])
def test_a_name_is_short_and_one_of_a_folder(done, value):
    """One that lacks a sign of a value, or is cut, ends in a checksum."""
    for given in (["CORPUS=" + value], [MANY, "CORPUS=" + value, "N_EVENTS=24"]):
        name = named(done, *given)
        assert paths.run_folder(name).parent == paths.BUILD / "runs"
        assert len(name) <= 60
    assert not [*done.rglob("PWNED")]


def test_two_runs_never_have_one_folder(done):
    """Values that differ in a sign that no folder has, in their end, or in where one begins."""
    long = "x" * 80
    runs = [
        ["CORPUS=a b"], ["CORPUS=a-b"], ["CORPUS=a/b"], ["CORPUS=a:b"], ["CORPUS=ab"],
        ["CORPUS=a'b"], ["CORPUS=a+b"], ["CORPUS=a;b"], ["CORPUS=a++b"], ["CORPUS=a@b"],
        ["CORPUS=a", "SEED=1"], ["CORPUS=a+SEED-1"], ["CORPUS=a_SEED-1"], ["CORPUS=a SEED-1"],
        [f"CORPUS={long}1"], [f"CORPUS={long}2"], [f"CORPUS={long}"], ["CORPUS=a..b"],
        ["CORPUS=a.b"], ["PROFILE=full", "CORPUS=a"], ["CORPUS=a"],
    ]  # fmt: skip
    names = [named(done, *given) for given in runs]
    assert len(set(names)) == len(runs)


def test_one_figure_is_drawn_by_the_notebooks_of_its_study(done):
    """All of them, where no figure is named."""
    assert set(runs(done, "figures")) == set(NAMES)
    (done / "figures" / "giebench").mkdir(parents=True)
    (done / "figures" / "giebench" / "figure1.pdf").touch()
    given = ["figures", "OUT=my folder", "WIDTH=3", "MODELS=a;b"]  # with ONLY no other run's
    said = make(done, "-n", *given, "ONLY=giebench/figure1").stdout
    drawn = re.findall(r"-m ingroup.commands.run (\S+) --redraw", said)
    assert "30_giebench" in drawn
    assert all("giebench" in name for name in drawn)
    assert set(re.findall("--run '(.*?)'", said)) == {"default"}
    said = make(done, *given, "ONLY=giebench/figure99", check=False).stderr
    assert "there is no figure giebench/figure99: ONLY is as a file below figures/" in said


@pytest.mark.parametrize("goal", ["60", "00", "report", "figures"])
def test_a_run_that_is_not_there_is_not_read(done, goal):
    (done / "build" / "runs" / "mine" / "notebooks").mkdir(parents=True, exist_ok=True)
    (done / "build" / "runs" / "mine" / "notebooks" / "10_empathy_gap.txt").touch()
    refused = make(done, goal, "RUN=typo", check=False)
    assert refused.returncode == 2
    assert "there is no run typo to read, there are: default mine." in refused.stderr
    assert not (done / "build" / "runs" / "typo").exists()
    assert make(done, "-n", goal, "RUN=mine").returncode == 0


@pytest.fixture
def fresh(tmp_path):
    """A clone in which nothing was made."""
    for name in ("notebooks", "locks", "lib"):
        shutil.copytree(paths.ROOT / name, tmp_path / name)
    for name in ("Makefile", "pyproject.toml", "requirements.lock", "data/models/models.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(paths.ROOT / name, tmp_path / name)
    return tmp_path


def test_what_ran_and_of_one_study_what_it_takes(fresh, done):
    assert "no run is there yet: make all\n" in make(fresh, "runs").stdout
    assert "--shared" not in make(done, "-n", "plan", "STUDY=10").stdout
    assert "--shared" in make(done, "-n", "plan", "A=1").stdout


@pytest.mark.parametrize("goal", ["10", "all", "plan"])
def test_a_wrong_name_makes_no_environment(fresh, goal):
    said = []
    for name in ("N_EVNTS", "XYZ"):
        refused = make(fresh, goal, "ENGINE=vllm", f"{name}=3", check=False)
        assert refused.returncode == 2
        said += [line for line in refused.stderr.splitlines() if not line.startswith("make")]
    near, line = said
    assert near == "N_EVNTS is no parameter here; did you mean N_EVENTS?"
    assert line.startswith("XYZ is no parameter here; there are ")
    known = line.split()
    assert {"N_EVENTS", "MODELS"} <= set(known)
    assert ("CROSSING" in known) == (goal != "10")  # of another notebook
    assert not [*fresh.glob(".venv*")]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["10", "MODELS=$(shell touch PWNED)"], "MODELS holds a dollar sign"),
        (["10", "RUN=../.."], "RUN is the name of a folder"),
        (["10", "RUN=a b"], "RUN is the name of a folder"),
        (["10", "PROFILE=/etc/passwd"], "PROFILE is the name of a folder or file"),
        (["10", "OPENAI_API_KEY=sk-1"], "a key belongs in the environment"),
        (["10", "A';touch=1"], "a parameter's name has letters, digits and _"),
        (["plan", "STUDY=77"], "there is no study 77: give one of 10_empathy_gap"),
        (["ask", "STUDY=77", "MODELS=calibrant"], "there is no study 77: give one of 10_empathy"),
        (["ask", "MODELS=calibrant"], "give a study: make ask STUDY=10 MODELS=..."),
        (["view", "SAMPLES=many"], "SAMPLES is a whole number, 0 for all, not many"),
    ],
)
def test_what_is_refused_makes_no_environment(fresh, given, sentence):
    """What make cannot pass on, and a wrong study or number."""
    refused = make(fresh, *given, check=False)
    assert refused.returncode == 2
    assert sentence in refused.stderr
    assert not [*fresh.glob(".venv*"), *fresh.rglob("PWNED")]


@pytest.mark.parametrize(
    ("models", "adds"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", True),
        ("calibrant;Qwen-2-7B", True),
        ("qwen-2-7b@openai;calibrant", False),
        ("gpt-4o-mini", False),
        ("openai/gpt-4o-mini", False),
    ],
)
def test_the_engine_that_the_registry_names_is_there(fresh, models, adds):
    for given in ([f"MODELS={models}"], [f"MODELS={models}", "ENGINE=transformers"]):
        added = "vllm" in make(fresh, "-n", "10", "RUN=x", *given).stdout
        assert added == (adds and len(given) == 1)


def test_values_are_checked_before_a_large_environment_is_made(fresh):
    said = make(fresh, "-n", "10", "ENGINE=vllm", "N_EVENTS=3").stdout
    checked, made = said.index("run 10_empathy_gap --check"), said.index("locks/vllm")
    assert said.index("touch .venv/.ready") < checked < made


@pytest.mark.parametrize(
    ("models", "adds"),
    [
        ("anthropic/some", True),
        ("calibrant;google/some", True),
        ("mistral/some", True),
        ("openai/some", False),
        ("mistralai/some", False),
    ],
)
def test_clients_of_providers_are_added_where_a_name_needs_them(fresh, models, adds):
    said = make(fresh, "-n", "10", "RUN=x", f"MODELS={models}").stdout
    assert ("locks/providers.lock" in said) == adds
