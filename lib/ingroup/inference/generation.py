"""From design to responses: ask an engine what a store does not hold yet."""

from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from ingroup import paths, stimuli
from ingroup.design import Design
from ingroup.inference.engine import Engine, EngineError, Sampling
from ingroup.inference.store import Store

SHARD_SIZE = 4096


def manifest(
    design: Design, engine: Engine, sampling: Sampling, shard_size: int = SHARD_SIZE
) -> dict[str, Any]:
    """Everything that can change a response, as the store pins it."""
    return {
        **engine.identity(),
        **{f"sampling_{name}": value for name, value in sampling.identity().items()},
        "prompts": design.fingerprint,
        "trials": len(design),
        "shard_size": shard_size,
    }


def open_store(
    folder: Path,
    design: Design,
    engine: Engine,
    sampling: Sampling,
    shard_size: int = SHARD_SIZE,
) -> Store:
    """The store of one design in ``folder``, refused where it holds answers to another one."""
    return Store(folder, manifest(design, engine, sampling, shard_size))


def response_folder(study: str, corpus: str, model: str, setting: str) -> Path:
    """``build/responses/<study>/<corpus>/<model>/<setting>``, slashes of a name made harmless."""
    parts = (part.strip("/").replace("/", "--") for part in (study, corpus, model, setting))
    return paths.RESPONSES.joinpath(*parts)


def generate(
    design: Design, engine: Engine, store: Store, sampling: Sampling, title: str = ""
) -> pd.DataFrame:
    """Answer every trial of a design that the store does not hold, shard by shard.

    Parameters
    ----------
    design : Design
        All trials; its fingerprint is the store's.
    engine : Engine
        Asked only for what is missing.
    store : Store
        From :func:`open_store`.
    sampling : Sampling
        As in the store's manifest.
    title : str
        Stands before the progress bar.

    Returns
    -------
    pandas.DataFrame
        All responses, as :meth:`ingroup.inference.store.Store.read` gives them.
    """
    todo = store.missing()
    counts = [stop - start for start, stop in map(store.bounds, todo)]
    with tqdm(
        total=len(design),
        initial=len(design) - sum(counts),
        desc=title,
        unit=" prompts",
        mininterval=5,
        disable=not todo,
    ) as progress:
        for shard, count in zip(todo, counts, strict=True):
            trials = design.slice(*store.bounds(shard))
            store.write(shard, engine.answer([trial.messages for trial in trials], sampling))
            progress.update(count)
    return store.read()


def with_rewrites(events: pd.DataFrame, responses: pd.DataFrame) -> pd.DataFrame:
    """Put the replies to :func:`ingroup.design.rewriting` into a corpus (appendix A.2).

    Parameters
    ----------
    events : pandas.DataFrame
        From :func:`ingroup.corpora.load_events`.
    responses : pandas.DataFrame
        From :func:`generate`, one row an event in the same order.

    Returns
    -------
    pandas.DataFrame
        A copy of ``events`` with ``third_person_text``.

    Raises
    ------
    EngineError
        Where a reply holds no text or a call failed; the message names the event.
    """
    texts = [stimuli.rewritten(text) if isinstance(text, str) else "" for text in responses.text]
    for event, text, error in zip(events.itertuples(), texts, responses.error, strict=True):
        if not text:
            raise EngineError(
                f"event {event.emotion} {event.text_id} has no third-person text in its reply"
                f"{': ' + error if error else ''}"
            )
    return events.assign(third_person_text=texts)


def find_model(name: str) -> str:
    """The folder ``data/models/<name>`` where there is one, else the name as it is."""
    folder = paths.MODELS / name
    return str(folder) if (folder / "config.json").exists() else name
