"""A study that is half written is refused in one sentence: which file lacks what."""

import importlib
import sys

import pytest

from ingroup import contract, studies


@pytest.fixture
def new_study(tmp_path, monkeypatch):
    """The folder of a study that has only a design, with its parameters and no jobs."""
    folder = tmp_path / "new_study"
    folder.mkdir()
    (folder / "design.py").write_text("Parameters = dict\n")
    monkeypatch.setattr(studies, "__path__", [*studies.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    yield folder
    for name in [name for name in sys.modules if name.startswith("ingroup.studies.new_study")]:
        del sys.modules[name]


def test_what_is_there_is_imported(new_study):
    assert contract.module_of("new_study", "design", "Parameters").Parameters is dict


@pytest.mark.parametrize(
    ("file", "text", "sentence"),
    [
        (
            "group_profile",
            None,
            "group_profile.py is missing; it must define MEASURES, views,",
        ),
        ("design", "Parameters = dict", "design.py lacks jobs; it must define Parameters, jobs ("),
        ("answers", "from ingroup.studies.new_study import stimuli", "answers.py cannot be import"),
    ],
)
def test_what_is_not_there_is_named(new_study, file, text, sentence):
    if text:
        (new_study / f"{file}.py").write_text(text)

    with pytest.raises(contract.Unfinished) as refused:
        contract.module_of("new_study", file, *contract.REQUIRED_NAMES[file])

    beginning = f"the study new_study is unfinished: lib/ingroup/studies/new_study/{sentence}"
    assert str(refused.value).startswith(beginning)
    if file == "answers":
        assert "cannot import name 'stimuli'" in str(refused.value)
