"""Asking models: engines, the store of responses, and the loop between them.

An engine with a heavy library is imported from its own file, so that nobody waits for torch who
only reads a store.
"""

from ingroup.inference.engine import Engine, EngineError, Reply, Sampling
from ingroup.inference.generation import (
    find_model,
    generate,
    manifest,
    open_store,
    response_folder,
    with_rewrites,
)
from ingroup.inference.store import Store, StoreError

__all__ = [
    "Engine",
    "EngineError",
    "Reply",
    "Sampling",
    "Store",
    "StoreError",
    "find_model",
    "generate",
    "manifest",
    "open_store",
    "response_folder",
    "with_rewrites",
]
