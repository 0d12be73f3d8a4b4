"""Which program and environment `make view` and a log's replay take; check_view.py has the rest."""

import re
import subprocess
import sys

import pytest

from ingroup import paths
from ingroup.commands.view import samples
from ingroup.inference import Call, EngineError, Reply, Sampling
from ingroup.inference.replay_engine import ReplayEngine
from toy import Toy, religion, run


def python(*arguments):
    """The environment that make would take, of a dry run."""
    made = [f"-o{paths.ROOT / '.venv'}{end}/.ready" for end in ("",)]
    command = ["make", "-n", "-C", str(paths.ROOT), *made, *arguments]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.findall(r"^(\S*)/bin/python -m (ingroup\.commands\.\w+)", shown, re.MULTILINE)[-1]


def test_logs_and_tables_are_replayed_in_the_one_environment(tmp_path):
    for name in ("one.eval", "some/one.eval", "none/one.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    given = "10", "ENGINE=replay", "MODELS=x"
    for place in ("one.eval", "some", "o*", "none"):
        found = python(*given, f"RECORDINGS={tmp_path / place}")
        assert found == (".venv", "ingroup.commands.run"), place
    assert python("view", "STUDY=10") == (".venv", "ingroup.commands.view")


def test_an_unknown_study_is_not_every_study():
    with pytest.raises(subprocess.CalledProcessError) as refused:
        python("view", "STUDY=11")
    assert "there is no study 11" in refused.value.stderr


def test_without_inspect_ai_a_log_is_refused_with_what_to_do(tmp_path, monkeypatch):
    (tmp_path / "one.eval").touch()
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    with pytest.raises(EngineError, match=r"a log of inspect_ai, which is not .* RECORDINGS=<"):
        ReplayEngine(tmp_path, "somebody")


def test_reasoning_stands_apart_from_the_answer_in_a_log(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    plan = religion(2)
    labels = {"setting": "P0,S0,T0", "category": "Religion"}
    call = Call("empathy_gap", "sample-2", "m", "inspect", "P0", plan, Sampling(), labels)
    engine = Toy(lambda *_: Reply("65", "stop", reasoning="perhaps 72?"), engine="inspect")
    run(plan, call.folder, engine)
    first = next(samples(call, "sound"))
    thought, said = first.messages[-1].content
    assert (thought.type, thought.reasoning) == ("reasoning", "perhaps 72?")
    assert (said.type, said.text, first.output.completion) == ("text", "65", "65")
    assert first.scores["rating"].value == 65
