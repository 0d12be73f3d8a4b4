"""Weights in packages: their hash is checked, and nothing is fetched unasked."""

import pytest
import yaml

from ingroup.inference import weights
from ingroup.inference.answers import EngineError

PARTS = ["yaml/__init__.py", "yaml/error.py"]


@pytest.fixture(autouse=True)
def registry(tmp_path, monkeypatch):
    """Write a registry of a model whose parts are files of an installed package, and of another."""
    about = {"package": "PyYAML==6", "licence": "MIT", "sha256": "0" * 64}
    models = {
        "installed": about | {"parts": PARTS},
        "absent": about | {"parts": [*PARTS, "no_such_package/part"]},
    }
    (tmp_path / "packaged.yaml").write_text(yaml.safe_dump(models))
    monkeypatch.setattr(weights, "PACKAGED", tmp_path / "packaged.yaml")
    monkeypatch.setattr(weights, "MADE", tmp_path / "models")
    return tmp_path


def test_another_file_is_refused(registry):
    with pytest.raises(EngineError, match="PyYAML==6 has another file: found SHA-256"):
        weights.available("installed")
    assert list((registry / "models").iterdir()) == []


def test_weights_that_would_have_to_be_fetched_are_not_available():
    assert weights.available("absent") is None
    assert weights.available("nobody") is None


def test_a_folder_that_was_made_is_used(registry):
    folder = registry / "models" / "absent"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    assert weights.available("absent") == folder
