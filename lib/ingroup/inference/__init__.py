"""Asking models: engines, the store of responses, and the loop between them.

An engine with a heavy library is imported by ``make_engine`` when it is chosen, so that nobody
waits for torch who only reads a store.
"""

from ingroup.inference.call import Call, ask, stored
from ingroup.inference.engine import Engine, EngineError, Reply, Sampling
from ingroup.inference.engines import make_engine
from ingroup.inference.generation import (
    failures,
    fill,
    find_model,
    generate,
    manifest,
    open_store,
    response_folder,
    usage,
)
from ingroup.inference.reading import parts
from ingroup.inference.share import Share, ShareDone, all_shares
from ingroup.inference.store import Store, StoreError

__all__ = [
    "Call",
    "Engine",
    "EngineError",
    "Reply",
    "Sampling",
    "Share",
    "ShareDone",
    "Store",
    "StoreError",
    "all_shares",
    "ask",
    "failures",
    "fill",
    "find_model",
    "generate",
    "make_engine",
    "manifest",
    "open_store",
    "parts",
    "response_folder",
    "stored",
    "usage",
]
