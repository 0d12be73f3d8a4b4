"""What make calls: a folder that takes no files is one sentence."""

import json
import os
from pathlib import Path

import pytest

from ingroup import figures
from ingroup.commands import cli, settings


def test_an_unwritable_clone_is_one_sentence(tmp_path, monkeypatch, capsys):
    """As for a user to whom it does not belong; root may write anywhere, but not below a file."""
    (tmp_path / "closed").write_text("")
    monkeypatch.setattr(settings, "BUILD", tmp_path / "closed" / "build")
    with pytest.raises(settings.Refused) as refused:
        cli.run_notebooks({})
    sentence = str(refused.value)
    assert sentence.startswith(f"{tmp_path}/closed")
    assert sentence.endswith(
        "cannot be written: Not a directory; allow writing there, or work in a clone of your own"
    )


def test_make_figures_lists_its_files_and_the_figures_that_it_could_not_draw(
    monkeypatch, capsys, tmp_path
):
    """Two of three figures are asked in vain; the one that fits is drawn, with its size."""
    entries = [
        {"figure": "giebench/figure3", "problem": "giebench/figure3 needs two columns"},
        {"figure": "giebench/figure1", "file": "paper/giebench/figure1.pdf", "inches": [3.03, 2.6]},
    ]

    def start(command, variables):
        lines = [json.dumps(entry) for entry in entries]
        Path(variables["FIGURE_RECORD"]).write_text("\n".join(lines))
        return True

    monkeypatch.setattr(cli, "_make_again", lambda run: True)
    monkeypatch.setattr(cli, "_summary_files", lambda run: [Path("30_giebench.txt")])
    monkeypatch.setattr(cli.processes, "start", start)
    before = dict(os.environ)

    asked = "giebench/figure3 giebench/figure1 giebench/figure9"
    assert cli._draw_figures(settings.DEFAULT_RUN, {"ONLY": asked}) == 1
    said = capsys.readouterr()
    assert said.out == "paper/giebench/figure1.pdf: 3.03 x 2.60 in\n"
    assert said.err.splitlines() == [
        "giebench/figure3 needs two columns",
        "giebench/figure9 was not drawn: this run has no such figure",
    ]

    # Whoever calls this in a process of their own draws their next figures as before.
    assert dict(os.environ) == before

    entries.pop(0)
    assert cli._draw_figures(settings.DEFAULT_RUN, {"ONLY": "giebench/figure1"}) == 0


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("smol-135; other", ""),
        ("/weights/smol-135/", ""),
        ("smol-13;other", "MODELS: smol-13 is in no table of giebench; did you mean smol-135?"),
        ("x", "MODELS: x is in no table of giebench; there are other; smol-135"),
    ],
)
def test_a_figure_of_a_model_that_no_table_has_is_refused(
    monkeypatch, capsys, tmp_path, typed, said
):
    monkeypatch.setattr(cli.settings, "BUILD", tmp_path)
    monkeypatch.setattr(cli, "_make_again", lambda run: True)
    tables = tmp_path / "tables" / "giebench"
    tables.mkdir(parents=True)
    (tables / "accuracy.csv").write_text("model,share\nsmol-135,1\nother,2\n")
    (tables / "topics.csv").write_text("topic\nx\n")

    cli._draw_figures(settings.DEFAULT_RUN, {"ONLY": "giebench/figure1", "MODELS": typed})

    # No notebook ran here, so nothing is drawn in any case.
    first_line = capsys.readouterr().err.splitlines()[0]
    assert first_line == (said or "giebench/figure1 was not drawn: this run has no such figure")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("WIDTH", "abc", "WIDTH: found 'abc', expected a number of inches"),
        ("CMAP", "virids", "CMAP: .* a colour map of matplotlib; did you mean viridis"),
    ],
)
def test_a_wrong_option_of_a_figure_is_refused_before_a_notebook_starts(
    monkeypatch, name, value, expected
):
    monkeypatch.setattr(figures, "OPTIONS_GIVEN", {})
    monkeypatch.setattr(cli.processes, "start", lambda *_, **__: pytest.fail("a notebook started"))
    with pytest.raises(settings.Refused, match=expected):
        cli._draw_figures("default", {"ONLY": "empathy_gap/figure2", name: value})
