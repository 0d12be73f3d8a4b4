"""A call: one design asked of one model with one sampling, answered into one store.

A study's ``calls(parameters)`` spells the address of its answers once. Whatever asks, plans, reads
or records them goes through these.
"""

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from ingroup import paths
from ingroup.design import Design
from ingroup.inference.engine import Sampling
from ingroup.inference.engines import make_engine
from ingroup.inference.generate import fill, open_store
from ingroup.inference.store import Store, StoreError, read_manifest

# The options of `make_engine`, under their names as parameters of a notebook.
OPTIONS = {name: name.upper() for name in make_engine.__kwdefaults__}
OPTIONS["workers"] = "ENGINE_WORKERS"


@dataclass(frozen=True, eq=False)
class Call:
    """What is asked of whom, and where the answers are.

    ``source`` says how much of what is asked about (``"sample-8"``), ``part`` what of the study
    this store answers (``"P0,S0,T0"``), ``labels`` are columns that tell this call's rows from
    those of others. It is not ``settled`` where texts of the design are still to be written, so
    that it can only be planned.
    """

    study: str
    source: str
    model: str
    engine: str
    part: str
    design: Design
    sampling: Sampling
    labels: Mapping[str, Any] = field(default_factory=dict)
    settled: bool = True

    @property
    def folder(self) -> Path:
        """``build/responses/<study>/<source>/<model>@<engine>/<part>``.

        Slashes of a name are made harmless. The same model through two engines has two stores.
        """
        parts = (self.study, self.source, f"{self.model.strip('/')}@{self.engine}", self.part)
        return paths.RESPONSES.joinpath(*(part.strip("/").replace("/", "--") for part in parts))

    @property
    def title(self) -> str:
        """Model and labels, for a progress bar or a line of a plan."""
        return " ".join([Path(self.model).name, *map(str, self.labels.values())])

    @property
    def key(self) -> tuple:
        """The model and the labels' values: the index of this call's rows among others."""
        return (self.model, *self.labels.values())


def ask(calls: Iterable[Call], parameters: Mapping[str, Any]) -> None:
    """Answer what the stores of these calls do not hold yet; :func:`stored` then reads them.

    One engine a model (recordings: a call), with the options that the notebook's ``parameters``
    name, closed when its calls are done. EngineError where it cannot start or gives up; the stores
    keep what they have. StoreError where a store answers something else or cannot be written,
    ValueError where a call is not settled.
    """
    options = {name: parameters[given] for name, given in OPTIONS.items() if given in parameters}
    for _, group in groupby(calls, lambda c: c.folder if c.engine == "replay" else c.model):
        same = list(group)
        if unsettled := [call.title for call in same if not call.settled]:
            raise ValueError(f"{unsettled[0]}: texts of its prompts are still to be written")
        designs = [same[0].design]  # what recordings answer
        engine = make_engine(same[0].engine, same[0].model, designs=designs, **options)
        with closing(engine):
            for call in same:
                store = open_store(call.folder, call.design, engine, call.sampling)
                fill(call.design, engine, store, call.sampling, call.title)


def stored(call: Call) -> Store:
    """The answers to a call, as their own manifest describes them, for reading: no engine.

    StoreError where there are none, the manifest cannot be read, or they answer other prompts.
    """
    file = call.folder / "manifest.json"
    if not file.exists():
        raise StoreError(f"{call.folder} holds no answers; run the study again")
    manifest = read_manifest(file)
    here = call.design.fingerprint, len(call.design)
    if (manifest.get("prompts"), manifest.get("trials")) != here:
        raise StoreError(
            f"{call.folder} holds answers to other prompts than the study would ask now; run it "
            "again"
        )
    return Store(call.folder, manifest)
