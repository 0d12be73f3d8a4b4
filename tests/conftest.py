"""Tests are quiet and repeatable: no hub, and one thread for each of the two workers."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("MPLBACKEND", "agg")

# A worker takes a file at a time, in order: the long ones first, so that both end together.
LONG = ("test_notebooks", "test_audit", "test_planted")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.stem not in LONG)
