"""Tests are quiet and repeatable: no hub, a build/ of their own, a thread a worker."""

import os
import sys
import tempfile

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("MPLBACKEND", "agg")

# The checks look at what a user's run made; a test neither sees it nor adds to it. A worker, which
# does not know what was called, has the environment of who started it.
if "PYTEST_XDIST_WORKER" not in os.environ and not any("check_" in a for a in sys.argv):
    OWN = tempfile.TemporaryDirectory(prefix="ingroup-")  # goes with this process
    os.environ.setdefault("INGROUP_BUILD", OWN.name)

# How long an example takes depends on what else the machine does. `make test` gives the same
# verdict each time; `pytest --hypothesis-profile=explore` draws new examples.
ANY_LOAD = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("same examples", derandomize=True, **ANY_LOAD)
settings.register_profile("explore", **ANY_LOAD)
settings.load_profile("same examples")

# A worker takes a file at a time, in order: the long ones first, so that both end together.
LONG = ("test_notebooks", "test_audit", "test_ground_truth")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.stem not in LONG)


@pytest.fixture
def only_real_recordings(tmp_path, monkeypatch):
    """The real model's recordings and no calibrant's, which a test asks live, or writes anew."""
    from ingroup import paths

    (tmp_path / "recorded").mkdir()
    for folder in paths.RECORDINGS.glob("smollm2*"):
        (tmp_path / "recorded" / folder.name).symlink_to(folder)
    monkeypatch.setattr(paths, "RECORDINGS", tmp_path / "recorded")
