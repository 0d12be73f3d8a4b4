"""Asking models: engines, the store of responses, and the loop between them."""

# ruff: noqa: F401 (what is imported here is meant for others)
from ingroup.inference.engine import Engine, EngineError, Reply, Sampling, find_model, make_engine
from ingroup.inference.generate import fill, open_store, usage
from ingroup.inference.job import (
    Job,
    answered_jobs,
    ask,
    count_stored,
    jobs_by_model,
    rated,
    rated_by,
    recorded_with,
    stored,
)
from ingroup.inference.store import Store, StoreError, parts
