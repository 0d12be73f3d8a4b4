"""What `make runs` says of a run is what its notebooks and tables hold."""

import json

import pandas as pd
import pytest

from ingroup import paths
from ingroup.commands import runs
from ingroup.commands.parameters import defaults


@pytest.fixture
def build(tmp_path, monkeypatch):
    """A default run of two notebooks, and one that changed a number and a list."""
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    for run, given in {"default": {}, "mine": {"N_EVENTS": 24, "MODELS": ["a", "b"]}}.items():
        for name in ("10_empathy_gap", "50_audit"):
            values = defaults(name) | {"RUN": run}
            values |= {name: value for name, value in given.items() if name in values}
            file = paths.executed(name, run)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps({"metadata": {"papermill": {"parameters": values}}}))
    (tmp_path / "runs" / "no-run").mkdir()
    tables = tmp_path / "runs" / "mine" / "tables" / "empathy_gap"
    tables.mkdir(parents=True)
    found = pd.DataFrame({"model": "a", "verdict": ["within", "beyond", "within", None]})
    found.to_csv(tables / "planted_versus_here.csv", index=False)
    return tmp_path


def test_every_run_is_told_with_what_it_changed_and_its_verdicts(build, capsys):
    assert runs.main([]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "default: 10 50; nothing differs from the defaults",
        "mine: 10 50; MODELS=a;b (10), N_EVENTS=24 (10)",
        "  empathy_gap, planted: 2 within; 1 beyond",
    ]


def test_one_run_ends_with_the_report_to_open(build, capsys, monkeypatch):
    (build / "report").mkdir()
    (build / "report" / "index.html").touch()
    monkeypatch.chdir(build)
    assert runs.main(["default"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "  report: report/index.html"
