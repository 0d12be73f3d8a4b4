"""What a log and the replay of one need; check_view.py has the rest."""

import sys

import pytest

from ingroup import paths
from ingroup.commands.view import samples
from ingroup.inference import EngineError, Job, Reply, Sampling
from ingroup.inference.replay_engine import ReplayEngine
from toy import Toy, religion, run


def test_without_inspect_ai_a_log_is_refused_with_advice(tmp_path, monkeypatch):
    (tmp_path / "one.eval").touch()
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    with pytest.raises(EngineError, match=r"a log of inspect_ai, which is not .* RECORDINGS=<"):
        ReplayEngine(tmp_path, "somebody")


def test_reasoning_stands_apart_from_the_answer_in_a_log(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    plan = religion(2)
    labels = {"setting": "P0,S0,T0", "category": "Religion"}
    job = Job("empathy_gap", "sample-2", "m", "inspect", "P0", plan, Sampling(), labels)
    engine = Toy(lambda *_: Reply("65", "stop", reasoning="perhaps 72?"), engine="inspect")
    run(plan, job.folder, engine)

    sample = next(samples(job, "sound"))

    reasoning, answer = sample.messages[-1].content
    assert reasoning.type == "reasoning"
    assert reasoning.reasoning == "perhaps 72?"
    assert answer.type == "text"
    assert answer.text == "65"
    assert sample.output.completion == "65"
    assert sample.scores["rating"].value == 65
