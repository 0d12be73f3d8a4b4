"""What is set on make's command line: exact values, names of runs, one sentence for a mistake."""

import subprocess
import sys

import pytest

from ingroup import paths
from ingroup.commands import settings

HOSTILE = [
    "/home/o'brien/R&D x/two (b) #1 50%.csv",
    "a';touch PWNED;'",
    "`touch PWNED`",
    'a "q" \\x *',
    "$(touch PWNED)",
    "one\ntwo",
    "blank ",
    "a,b=c:d;e",
    "=cmd|' /C calc'!A0",
    "\u00e9\U0001f600",
    " -- A=1",
    "tab\there",
    "\\",
    "\u00e9",
    "..",
    "../x.csv",
    "+",
    "x" * 300,
    "",
    "\udcff",
    "\ud800",
]
MANY = "meta-llama/Llama-3.1-8B-Instruct@vllm;gpt-4o-mini@openai"


def typed(flags="", **values):
    """The environment that make gives to a program, with these values on its command line."""
    words = []
    for name, value in values.items():
        quoted = value.replace("\\", "\\\\").replace(" ", "\\ ").replace("\t", "\\\t")
        quoted = quoted.replace("$", "$$")
        words.append(f"{name}={quoted}")
    return {"MAKEFLAGS": f"{flags} -- {' '.join(words)}", **values}


@pytest.mark.parametrize("flags", ["", "n", " -j2 --jobserver-auth=3,4", "s"])
@pytest.mark.parametrize("value", HOSTILE)
def test_values_are_read_as_they_were_typed(value, flags):
    values = {"CORPUS": value, "N_EVENTS": "24"}
    assert settings.given_variables(typed(flags, **values)) == values


def test_without_a_command_line_nothing_is_set():
    assert settings.given_variables({"CORPUS": "x", "MAKEFLAGS": "n"}) == {}
    assert settings.given_variables({}) == {}


def test_other_assignments_of_make_name_the_same_variable():
    environment = {"MAKEFLAGS": " -- A:=1 B?=2 C+=3", "A": "1", "B": "2", "C": "3"}
    assert settings.given_variables(environment) == {"A": "1", "B": "2", "C": "3"}


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({}, "default"),
        ({"ENGINE_WORKERS": "8", "RAY_ADDRESS": "here:6379"}, "default"),
        ({"N_EVENTS": "24"}, "N_EVENTS-24"),
        ({"PROFILE": "full", "SETTINGS": "P0,S0,T0"}, "full+SETTINGS-P0,S0,T0"),
        ({"N_EVENTS": "24", "CATEGORIES": "Religion"}, "CATEGORIES-Religion+N_EVENTS-24"),
        ({"N_EVENTS": "24", "RUN": "mine"}, "mine"),
        ({"PROFILE": "default"}, "default-37a8eec1ce"),
        ({"MODELS": "/data/nets/my_model-2/"}, "MODELS-my_model-2-fabe0de882"),
        ({"MODELS": "/a b/one;~/two@vllm"}, "MODELS-one-two-vllm-4f5247ad5f"),
        ({"CORPUS": "/home/me/my.tsv", "N_EVENTS": "2"}, "CORPUS-my-tsv+N_EVENTS-2-ff5a9892a6"),
    ],
)
def test_a_run_is_named_by_what_it_changes(values, name):
    assert settings.run_name(typed(**values)) == name


@pytest.mark.parametrize("value", HOSTILE)
def test_a_runs_name_is_short_and_names_a_folder(value):
    for values in ({"CORPUS": value}, {"MODELS": MANY, "CORPUS": value, "N_EVENTS": "24"}):
        name = settings.run_name(typed(**values))
        assert paths.run_folder(name).parent == paths.BUILD / "runs"
        assert len(name) <= 60


def test_two_runs_never_have_one_folder():
    """Values that differ in a sign that no folder has, in their end, or in where one begins."""
    long = "x" * 80
    corpora = [
        "a b",
        "a-b",
        "a/b",
        "a:b",
        "ab",
        "a'b",
        "a+b",
        "a;b",
        "a++b",
        "a@b",
        "a+SEED-1",
        "a_SEED-1",
        "a SEED-1",
        f"{long}1",
        f"{long}2",
        long,
        "a..b",
        "a.b",
        "a",
        "b/a",
        "c/a",
    ]

    names = [settings.run_name(typed(CORPUS=corpus)) for corpus in corpora]
    names.append(settings.run_name(typed(CORPUS="a", SEED="1")))
    names.append(settings.run_name(typed(CORPUS="a", PROFILE="full")))

    assert len(set(names)) == len(corpora) + 2


@pytest.mark.parametrize(
    ("goal", "values", "sentence"),
    [
        (
            "10",
            {"RUN": "../.."},
            "RUN='../..' holds '/'; use only the letters a to z, digits and _.,+=-",
        ),
        ("10", {"RUN": "a b"}, "RUN='a b' holds ' '; use only"),
        ("10", {"RUN": "a..b"}, "RUN='a..b' holds '..'; use single dots"),
        ("10", {"RUN": "-a"}, "RUN='-a' begins with '-'; begin with a letter or digit"),
        ("10", {"PROFILE": "/etc/passwd"}, "PROFILE='/etc/passwd' holds '/'"),
        ("10", {"OPENAI_API_KEY": "sk-1"}, "a key belongs in the environment"),
        ("10", {"A';touch": "1"}, "a parameter's name has letters, digits and _"),
        (
            "10",
            {"RUN": "default", "N_EVENTS": "3"},
            "RUN=default is the run without changes, found N_EVENTS: ",
        ),
        ("10", {"N_EVNTS": "3"}, "N_EVNTS is not a parameter here; did you mean N_EVENTS?"),
        ("10", {"GOALS": "20"}, "GOALS is not a parameter here; there are "),
        (
            "10",
            {"CROSSING": "totals"},
            "CROSSING is not a parameter here; it is one of 20_biased_sam",
        ),
        ("41", {"RUNN": "x"}, "RUNN is not a parameter here; did you mean RUN?"),
        ("report", {"RUNN": "x"}, "RUNN is not a parameter here; did you mean RUN?"),
        ("all", {"XYZ": "3"}, "XYZ is not a parameter here; there are "),
        ("plan", {"STUDY": "giebech"}, "there is no study giebech: give one of 10_empathy_gap"),
        ("plan", {"STUDY": "77"}, "there is no study 77: give one of 10_empathy_gap"),
        ("ask", {"STUDY": "77", "MODELS": "calibrant"}, "there is no study 77: give one of 10_em"),
        ("ask", {"MODELS": "calibrant"}, "give a study: make ask STUDY=10 MODELS=..."),
        (
            "compare",
            {"MODELS": "calibrant"},
            "MODELS must be two models or more, found 'calibrant': make ",
        ),
        ("compare", {"MODELS": "calibrant; ;"}, "MODELS must be two models or more, found"),
        ("compare", {"MODELS": "a;a"}, "MODELS must be two models or more, found 'a;a'"),
        ("compare", {"MODELS": "a;b", "SEED": "1"}, "SEED is not a parameter here"),
        ("compare", {"MODELS": "a;b", "PROFILE": "full"}, "make compare reads a run that is there"),
        (
            "compare",
            {"MODELS": "a;b", "RUN": "typo"},
            "there is no run typo to read; RUN can be default",
        ),
        ("view", {"SAMPLES": "many"}, "SAMPLES must be a whole number, or 0 for all, found 'many'"),
        ("60", {"RUN": "typo"}, "there is no run typo to read; RUN can be default"),
        ("report", {"RUN": "typo"}, "there is no run typo to read; RUN can be default"),
        ("figures", {"WIDTH": "3"}, "only make figures ONLY=<study>/<name> takes WIDTH"),
        ("figures", {"ONLY": ""}, "ONLY is empty: write ONLY=<study>/<name>, e.g. "),
        (
            "all",
            {"STUDY": "10"},
            "STUDY is for make ask or plan or view, found make all",
        ),
        ("10", {"RATE": "5"}, "RATE is for make plan, found make 10"),
        ("00", {"N_EVENTS": "3"}, "N_EVENTS is not a parameter here; it is one of 10_empathy_gap"),
        ("10", {"ONLY": "giebench/figure1"}, "only make figures ONLY=<study>/<name> takes ONLY"),
        ("figures", {"ONLY": "../x"}, "there is no "),
        ("figures", {"WIDHT": "3"}, "WIDHT is not a parameter here; did you mean WIDTH?"),
        (
            "10",
            {"PY": "x;touch PWNED"},
            "PY must be a path without blanks or shell signs, found 'x;",
        ),
    ],
)
def test_an_impossible_command_is_refused_in_one_sentence(goal, values, sentence, monkeypatch):
    monkeypatch.setattr(settings, "runs", lambda: ["default"])
    with pytest.raises(settings.Refused) as refused:
        settings.check([goal], typed(**values))
    assert str(refused.value).startswith(sentence)
    assert "\n" not in str(refused.value)


def test_a_near_name_is_asked_for_and_a_far_one_lists_all():
    assert settings.suggestion("MODLES", ["SEED", "MODELS"]) == "did you mean MODELS?"
    assert settings.suggestion("X", ["SEED", "MODELS"]) == ""
    assert settings.suggestion_or_list("MODLES", ["SEED", "MODELS"]) == "did you mean MODELS?"
    assert settings.suggestion_or_list("X", ["SEED", "MODELS"], "; ") == "there are MODELS; SEED"


EXAMPLE = "write ONLY=<study>/<name>, e.g. ONLY=empathy_gap/figure2"


@pytest.mark.parametrize(
    ("figure", "end"),
    [
        ("gibench/figure1", "; did you mean giebench/figure1?"),
        ("empathy_gap/mean_gp", "; did you mean empathy_gap/mean_gap?"),
        ("mean_gap", "; did you mean empathy_gap/mean_gap?"),
        ("figure1", "; did you mean biased_samaritan/figure1 or giebench/figure1?"),
        # The study alone makes it no more like another figure of the study.
        ("empathy_gap/hetmap", ""),
        ("hetmap", ""),
    ],
)
def test_a_misspelt_figure_is_refused_and_the_nearest_one_suggested(figure, end):
    with pytest.raises(settings.Refused) as refused:
        settings.check(["figures"], typed(ONLY=figure))
    assert str(refused.value) == f"there is no figure {figure}: {EXAMPLE}{end}"


def test_a_run_is_not_read_before_one_has_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(settings, "BUILD", tmp_path)
    with pytest.raises(settings.Refused) as refused:
        settings.check(["report"], typed(RUN="nope"))
    assert str(refused.value) == (
        "make report reads a finished run, and there is none yet: make all first"
    )


@pytest.mark.parametrize(
    ("goals", "sentence"),
    [
        (["10", "reprot"], "there is no target reprot; did you mean report?"),
        (["fig"], "there is no target fig; did you mean figures?"),
        (["77"], "there is no notebook 77; there are 00 10 11 20 "),
        (["xyzzy"], "there is no target xyzzy; make help lists all"),
        ([".venv/.ready", "all"], "a file that this target needs is missing: git status shows"),
    ],
)
def test_a_goal_without_a_rule_is_one_sentence(goals, sentence):
    assert settings.unknown_target(goals).startswith(sentence)


@pytest.mark.parametrize("goal", ["compare", "view"])
def test_a_run_that_is_not_there_is_refused_and_the_nearest_one_suggested(goal, monkeypatch):
    """Its name may be on the command line or in the environment."""
    monkeypatch.setattr(settings, "runs", lambda: ["default", "mine", "other"])
    named = typed(MODELS="a;b", RUN="mnie")
    environment = typed(MODELS="a;b") | {"RUN": "mnie"}
    for given in (named, environment):
        with pytest.raises(settings.Refused) as refused:
            settings.check([goal], given)
        assert str(refused.value) == (
            "there is no run mnie to read; RUN can be default, mine, other; did you mean RUN=mine?"
        )


@pytest.mark.parametrize(
    ("goal", "values"),
    [
        ("all", {"CROSSING": "totals", "N_EVENTS": "24"}),
        ("20", {"CROSSING": "totals"}),
        ("compare", {"MODELS": "calibrant;calibrant-null"}),
        ("plan", {"STUDY": "empathy_gap", "RATE": "3", "N_EVENTS": "24"}),
        ("view", {"STUDY": "10", "SAMPLES": "0"}),
        ("10", {"ENGINE_WORKERS": "8"}),
        ("data", {"DATA_MIRROR": "some folder"}),
    ],
)
def test_a_possible_command_is_not_refused(goal, values):
    settings.check([goal], typed(**values))


def test_an_existing_run_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(settings, "BUILD", tmp_path)
    (tmp_path / "runs/empty/notebooks").mkdir(parents=True)
    for folder in ("notebooks", "runs/mine/notebooks"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "10_empathy_gap.txt").touch()

    assert settings.runs() == ["default", "mine"]
    settings.check(["60"], typed(RUN="mine"))
    with pytest.raises(settings.Refused, match=r"run typo to read; RUN can be default, mine$"):
        settings.check(["60", "figures"], typed(RUN="typo"))


def test_settings_run_without_the_projects_packages(tmp_path):
    """Any Python of this version can refuse a parameter before there is an environment."""
    file = paths.ROOT / "lib" / "ingroup" / "commands" / "settings.py"
    environment = typed(N_EVNTS="3") | {"GOALS": "10", "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-I", "-S", file]

    refusal = subprocess.run(command, env=environment, capture_output=True, text=True)

    assert refusal.returncode == 2
    assert refusal.stdout == ""
    assert refusal.stderr == "N_EVNTS is not a parameter here; did you mean N_EVENTS?\n"


def test_a_parameter_works_under_its_former_name():
    """RATING=greedy meant the text that a model writes."""
    values, sentences = settings.with_present_names({"RATING": "greedy", "N_EVENTS": "24"})
    assert values == {"READING": "free", "N_EVENTS": "24"}
    assert sentences == ["RATING=greedy is now READING=free; the old name works for one release"]

    values, _ = settings.with_present_names({"RATING": "expected"})
    assert values == {"READING": "expected"}
    assert settings.with_present_names({"READING": "greedy"}) == ({"READING": "greedy"}, [])
    settings.check_names(["10"], typed(RATING="greedy"))


def test_a_parameter_under_both_names_is_refused():
    with pytest.raises(settings.Refused, match="RATING is now READING: give READING alone"):
        settings.check_names(["10"], typed(RATING="greedy", READING="free"))


@pytest.mark.parametrize("value", ["\x1b[2J\x07", "x" * 10**6, "\ud800"])
def test_a_refused_value_moves_no_cursor_and_is_short(value):
    with pytest.raises(settings.Refused) as refused:
        settings.check(["view"], {"STUDY": value})
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 2100
