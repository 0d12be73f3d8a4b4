"""What is said without Ray; check_ray.py has the rest."""

import sys

import pytest

from ingroup.inference import EngineError
from ingroup.inference.cluster import Cluster


def test_without_ray_there_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(EngineError) as caught:
        Cluster(lambda: None, 2)
    assert str(caught.value) == (
        "ENGINE_WORKERS and RAY_ADDRESS need Ray, which is not installed: "
        ".venv/bin/uv pip install -e '.[ray]'"
    )
