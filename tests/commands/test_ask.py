"""What `make ask` stores is what the notebook would ask."""

import pytest

from ingroup import paths
from ingroup.commands import run
from ingroup.inference import call, there
from toy import Toy

GIVEN = ["--ask", "30_giebench", "--set", "MODELS=calibrant", "--set", "MISMATCH=false"]


@pytest.fixture
def engines(tmp_path, only_real_recordings, monkeypatch):
    made = []

    def make(*named, **_):
        made.append(named)
        return Toy(lambda *_: "[[A]]")

    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")
    monkeypatch.setattr(call, "make_engine", make)
    return made


def test_a_study_is_asked_once_without_its_notebook(engines, capsys):
    assert run.main(GIVEN) == 0
    assert engines == [("transformers", "calibrant")]
    assert capsys.readouterr().out == "948 of 948 prompts are answered and stored, 0 failed\n"
    stored = [file.parent.name for file in paths.RESPONSES.rglob("part-00000.parquet")]
    assert sorted(stored) == ["COT-rotate", "ID-rotate", "Raw-rotate+uncued"]


def test_what_failed_is_not_called_answered(engines, capsys, monkeypatch):
    toy = Toy(lambda chat, again, before: None if before < 100 else "[[A]]")
    monkeypatch.setattr(call, "make_engine", lambda *_, **__: toy)
    assert run.main(GIVEN) == 0
    assert capsys.readouterr().out == "848 of 948 prompts are answered and stored, 100 failed\n"


@pytest.mark.parametrize("more", [["--ask"], []])
def test_a_missing_key_is_said_before_anything_is_made(more, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(run, "execute", None)  # no kernel is started
    given = ["10_empathy_gap", "--set", "MODELS=some@inspect", *more]
    assert run.main(given) == 2
    assert capsys.readouterr().err.startswith("openai/some: ")
    assert run.main([*given, "--check"]) == 0  # the parameters are right


def test_a_mistake_is_one_sentence(engines, capsys):
    assert run.main([*GIVEN, "--set", "ORDER=any"]) == 2
    assert capsys.readouterr().err == "ORDER 'any' is unknown; expected given or rotate\n"
    assert engines == []
    assert there([]) == []
