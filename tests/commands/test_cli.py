"""What make calls: a folder that takes no files is one sentence."""

import pytest

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
