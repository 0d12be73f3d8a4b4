"""A call: one design asked of one model with one sampling, answered into one store.

A study's ``calls(parameters)`` spells the address of its answers once. Whatever asks, plans, reads
or records them goes through these.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cache, wraps
from glob import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from ingroup import models, paths
from ingroup.design import Design
from ingroup.inference.cost import LimitReached, budget_of, money, prices
from ingroup.inference.engine import EngineError, Sampling, make_engine
from ingroup.inference.excerpts import excerpt
from ingroup.inference.generate import fill, open_store, pinned
from ingroup.inference.reading import FREE, STORED_MEAN, Reading
from ingroup.inference.store import Store, StoreError, check_chats, read_manifest
from ingroup.models import STORED
from ingroup.tables import read_table, shown

# The options of `make_engine`, under their names as parameters of a notebook.
OPTIONS = {name: name.upper() for name in make_engine.__kwdefaults__}
Calls = Callable[[Mapping[str, Any]], list["Call"]]  # a study's: parameters to calls
EXCERPTS = "excerpts"  # folder of responses: recorded answers to fewer prompts than were recorded


class IdentityError(StoreError):
    """A store holds the answers of another model or engine than its place says."""


@dataclass(frozen=True, eq=False)
class Call:
    """What is asked of whom, and where the answers are.

    ``source`` says how much of what is asked about (``"sample-8"``), ``part`` what of the study
    this store answers (``"P0,S0,T0"``), ``labels`` are columns that tell this call's rows from
    those of others, ``options`` are those of the engine that the study sets, ``root`` is where new
    answers go, if not to ``build/responses``. It is not ``settled`` where texts of the design are
    still to be written, so that it can only be planned. ``reading`` says how scored answers become
    numbers; it changes nothing that is asked. ``wider`` is a recorded call that may hold all trials
    of this one (:func:`excerpts_of`).
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
    options: Mapping[str, Any] = field(default_factory=dict)
    root: Path | None = None
    reading: Reading = STORED_MEAN
    wider: "Call | None" = None

    @property
    def address(self) -> Path:
        """``<study>/<source>/<model>@<engine>/<part>``, below any folder of responses.

        Slashes of a name are made harmless. The same model through two engines has two stores.
        """
        part = f"{self.part}+choices" if self.over_choices else self.part
        if self.sampling.reasoning:
            part = f"{part}+reasoning-{self.sampling.reasoning}"
        parts = (self.study, self.source, f"{self.model.strip('/')}@{self.engine}", part)
        return Path(*(part.strip("/").replace("/", "--") for part in parts))

    @property
    def folder(self) -> Path:
        """Where the answers are read from, the first of `folders`, or where new ones go."""
        found = self.folders
        return found[0] if found else (self.root or paths.RESPONSES) / self.address

    @property
    def folders(self) -> list[Path]:
        """All folders with answers, below ``data/recordings`` or ``build/responses``.

        The one that holds the largest share of the shards is first, of equals a recorded one. Those
        recorded to other prompts or with another sampling are passed over. For the engine "stored"
        they are those of any engine. Where there are none, complete ones under the engine's earlier
        name (``models.FORMER``), which are only read, or an excerpt of recorded ones (`provide`).
        """
        recorded = paths.RECORDINGS / self.address.parts[2].partition("@")[0]
        roots = recorded, self.root or paths.RESPONSES
        place = escape(str(self.address))
        if self.engine == STORED:
            place = place.replace(f"@{STORED}/", "@*/")
        files = [f for root in roots for f in sorted(root.glob(f"{place}/manifest.json"))]
        there = [f.parent for f in files if recorded not in f.parents or self._fits(f.parent)]
        there = there or self._former(roots[-1])
        there = there or [
            f.parent for f in (paths.RESPONSES / EXCERPTS).glob(f"{place}/manifest.json")
        ]
        if len(there) > 1:
            there.sort(key=_share_of_shards, reverse=True)  # stable: of equals, recorded ones first
        return there

    def _former(self, root: Path) -> list[Path]:
        """Folders with all answers to this, under an earlier name of its engine."""
        found = []
        for name, now in models.FORMER.items():
            folder = root / replace(self, engine=name).address
            file = folder / "manifest.json"
            if now == self.engine and file.exists() and self._fits(folder):
                store = Store(folder, read_manifest(file))
                if len(store.files()) == store.shards:
                    found.append(folder)
        return found

    def _fits(self, folder: Path) -> bool:
        """Whether what is there answers this design with this sampling."""
        there = read_manifest(folder / "manifest.json")
        asked = pinned(self.design, self.sampling, there.get("shard_size"))
        return asked.items() <= there.items()

    @property
    def over_choices(self) -> bool:
        """Whether the probabilities of all admissible answers are asked for, not a text."""
        return bool(self.sampling.choices)

    @property
    def round(self) -> int:
        """Which repetition of its prompts this is, from 1."""
        return self.labels.get("run", self.labels.get("round", 1))

    @property
    def way(self) -> str:
        """How it is asked, as a table says it: ``"freely"`` or ``"over choices"``."""
        return "over choices" if self.over_choices else "freely"

    @property
    def read_as(self) -> str:
        """How an answer becomes a value, as a table says it: ``"free"``, or a scored reading."""
        return str(self.reading if self.over_choices else FREE)

    @property
    def title(self) -> str:
        """Model and labels, for a progress bar or a line of a plan."""
        how = [self.way] if self.over_choices else []
        return " ".join([Path(self.model).name, *map(str, self.labels.values()), *how])

    @property
    def key(self) -> tuple:
        """The model and the labels' values: the index of this call's rows among others."""
        return (self.model, *self.labels.values())


def _share_of_shards(folder: Path) -> float:
    """How much of a store's design its shards hold; a damaged file that was moved aside is none."""
    try:
        store = Store(folder, read_manifest(folder / "manifest.json"))
    except StoreError:
        return 0.0
    return len(store.files()) / store.shards


def excerpts_of(**stimuli: Any) -> Callable[[Calls], Calls]:
    """Decorate a study's ``calls``, so that part of what was recorded is read, and not asked.

    Parameters
    ----------
    **stimuli
        The parameters, with their values, that tell what the recordings were asked about.

    Returns
    -------
    callable
        Makes the same calls. Those without answers of their own have, as ``wider``, the recorded
        call of their model, engine, labels and way.
    """

    def decorate(calls: Calls) -> Calls:
        @wraps(calls)
        def with_wider(parameters: Mapping[str, Any]) -> list[Call]:
            asked = calls(parameters)
            as_recorded = {**parameters, **stimuli}
            if as_recorded == dict(parameters) or all(_has_own(call) for call in asked):
                return asked

            recorded = {_name(call): call for call in calls(as_recorded)}
            return [
                call if _has_own(call) else replace(call, wider=recorded.get(_name(call)))
                for call in asked
            ]

        return with_wider

    return decorate


def _name(call: Call) -> tuple:
    """What a call and the recorded call that holds its trials have in common."""
    return call.key, call.engine, call.way, call.sampling.leads


def _has_own(call: Call) -> bool:
    """Whether a call has a folder with answers that is no excerpt."""
    return any(not is_excerpt(folder) for folder in call.folders)


def is_excerpt(folder: Path) -> bool:
    """Whether a folder of answers is an excerpt of recorded ones."""
    return paths.RESPONSES / EXCERPTS in folder.parents


def provide(call: Call) -> None:
    """Copy a call's answers from the recorded call that holds all its trials, if there is one.

    Nothing is copied where the call has answers of its own. StoreError where the recorded answers
    cannot be read.
    """
    if call.wider is None:
        return
    source = call.wider.folder
    if paths.RECORDINGS not in source.parents:
        return

    study, asked_about, _, part = call.address.parts
    folder = paths.RESPONSES / EXCERPTS / study / asked_about / source.parent.name / part
    excerpt(stored(call.wider), call.wider.design, call.design, call.sampling, folder)


def rated(calls: Iterable[Call]) -> list[Call]:
    """The calls whose answers a study analyses: of a model asked over choices those alone."""
    calls = list(calls)
    over_choices = {call.model for call in calls if call.over_choices}
    return [call for call in calls if call.over_choices or call.model not in over_choices]


def rated_by(model: str, calls: Iterable[Call]) -> list[Call]:
    """What this model is rated by, of the calls that are stored; of all, where none is."""
    own = [call for call in calls if call.model == model]
    return rated(there(own) or own)


def there(calls: Iterable[Call]) -> list[Call]:
    """The calls whose answers are stored, all of them and to these prompts.

    IdentityError where stored answers are another model's or engine's.
    """
    found = []
    for call in calls:
        provide(call)
        try:
            store = stored(call)
        except IdentityError:
            raise
        except StoreError:
            continue
        if len(store.files()) == store.shards:
            found.append(call)
    return found


def kept(calls: Iterable[Call]) -> int:
    """How many answers to these calls, but for recorded ones, shards and journals hold."""
    found = 0
    for call in calls:
        if paths.RECORDINGS in call.folder.parents or is_excerpt(call.folder):
            continue
        with suppress(StoreError):
            store = Store(call.folder, read_manifest(call.folder / "manifest.json"))
            found += sum(stop - start for start, stop in map(store.bounds, store.files()))
            found += len(store.journal().kept)
    return found


def cost_stored(calls: Iterable[Call], parameters: Mapping[str, Any]) -> float:
    """What the answers of servers that :func:`kept` counts cost, in all runs, at a run's prices.

    Each counts at the share of the price at which it was bought.
    """
    columns = ["trial", "finish_reason", "prompt_tokens", "output_tokens", "price_share"]
    prompt_tokens = 0.0
    output_tokens = 0.0
    for call in calls:
        is_recorded = paths.RECORDINGS in call.folder.parents
        if is_recorded or call.engine not in models.SERVERS:
            continue

        with suppress(StoreError):
            store = Store(call.folder, read_manifest(call.folder / "manifest.json"))
            for _, table, _ in store.tables(store.files(), columns):
                if table is not None:
                    share = table["price_share"].to_numpy()
                    prompt_tokens += float(table["prompt_tokens"].to_numpy() @ share)
                    output_tokens += float(table["output_tokens"].to_numpy() @ share)

            for reply in store.journal().kept.values():
                prompt_tokens += reply.prompt_tokens * reply.price_share
                output_tokens += reply.output_tokens * reply.price_share
    return prices(parameters).cost(prompt_tokens, output_tokens)


def ask(calls: Iterable[Call], parameters: Mapping[str, Any]) -> list[Call]:
    """Answer what the stores of these calls do not hold yet; :func:`stored` then reads them.

    One engine a model, where something is missing, with the options that the ``parameters`` name.
    Returns the answered calls: those of the engine "stored" that are not here, and rounds without
    recordings, are left out and named. EngineError where an engine cannot start or gives up; the
    stores keep what they have, also where a further call could pass the run's COST_LIMIT.
    InputError where that is given without prices. StoreError where all are left out, a
    store answers something else or cannot be written; ValueError where a call is not settled.
    """
    calls = list(calls)
    _print_choices(calls)
    budget = budget_of(parameters)
    given = {name: parameters[given] for name, given in OPTIONS.items() if given in parameters}
    categories = {call.labels.get("category", "") for call in calls}
    revision = cache(models.revision)
    open_calls = [call for call in calls if not _answered(call, given | call.options, revision)]
    absent = [call for call in open_calls if call.engine == STORED]
    asked = [call for call in open_calls if call.engine != STORED]
    for call in {call.model: call for call in asked if call.engine == "inspect"}.values():
        make_engine(call.engine, call.model, **given | call.options).close()  # no key, no server
    for _, group in groupby(asked, lambda call: (call.model, call.engine)):
        same = list(group)
        if unsettled := [call.title for call in same if not call.settled]:
            raise ValueError(f"{unsettled[0]}: texts of its prompts are still to be written")
        engine = make_engine(same[0].engine, same[0].model, **given | same[0].options)
        with closing(engine):
            for call in same:  # what is ambiguous is refused before anything is stored
                if call.engine == "replay":
                    _turned(engine, call, categories)

            for call in same:
                if call.engine == "replay" and not _turned(engine, call, categories):
                    absent.append(call)
                    continue
                try:
                    store = open_store(
                        call.folder, call.design, engine, call.sampling, budget=budget
                    )
                    fill(call.design, engine, store, call.sampling, call.title, budget)
                except LimitReached as reached:
                    whole = money(cost_stored(calls, parameters))
                    raise EngineError(
                        f"{reached}; {kept(calls):,} replies are stored, which cost {whole} in all "
                        "runs, and the same command with a higher COST_LIMIT goes on"
                    ) from reached
    if absent:
        named, more = "; ".join(call.title for call in absent[:3]), len(absent) - 3
        told = f"not stored, and not asked for: {named}" + f" and {more} more" * (more > 0)
        if any(call.engine == "replay" for call in absent):
            told += (
                "; no recording is of that round and category (a column run or category; files "
                "with a word of their category in the name, or numbered from 0 or 1 without a gap)"
            )
        if len(absent) == len(calls):
            raise StoreError(told)
        print(shown(told), file=sys.stderr)
    return [call for call in calls if call not in absent]


def _print_choices(calls: Iterable[Call]) -> None:
    """Print which folder is read where several hold answers to the same call."""
    chosen = []
    for call in calls:
        folders = call.folders
        if len(folders) > 1:
            read, *others = map(str, folders)
            chosen.append(f"{read} is read, and not {' or '.join(others)}")
    if chosen:
        more = f"; {len(chosen) - 3:,} calls more have several, too" if len(chosen) > 3 else ""
        print(f"several folders hold answers: {'; '.join(chosen[:3])}{more}", file=sys.stderr)


def other_identity(call: Call, folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Tell in which of model and engine the manifest of a call's folder differs from the call.

    A manifest that names neither differs in none. Where any engine's answers may be read, the
    engine is the one that the store's folder names.
    """
    _, _, engine = folder.parent.name.rpartition("@")
    found = []
    if _model_name(manifest.get("model", call.model)) != _model_name(call.model):
        found.append("model")
    if manifest.get("engine", engine) != engine:
        found.append("engine")
    return found


def _model_name(text: str) -> str:
    """A model's name in the registry, or the last part of a folder's or hub's."""
    known = models.find(text)
    return known.name if known else Path(text).name


def _check_identity(call: Call, folder: Path, manifest: Mapping[str, Any]) -> None:
    """Raise an IdentityError where a store's answers are another model's or engine's."""
    for name in other_identity(call, folder, manifest):
        raise IdentityError(
            f"{folder} holds answers of the {name} {manifest[name]!r}, which is not what its "
            "place says; nothing was changed: move that folder away"
        )


@cache
def _recorded_chats(file: Path) -> dict[str, str]:
    """Digests of the chats to which recorded stores without one in their manifest are answers."""
    if not file.exists():
        return {}
    table = read_table(file, ["call", "chats"])
    return dict(zip(table["call"], table["chats"], strict=True))


def _check_chats(call: Call, folder: Path, manifest: Mapping[str, Any]) -> None:
    """Raise a StoreError where a store answers other chats than its call renders now.

    For a recorded store whose manifest does not say, ``data/recordings/chats.csv`` does.
    """
    digest = manifest.get("chats", "")
    if not digest and paths.RECORDINGS in folder.parents:
        address = folder.relative_to(paths.RECORDINGS).as_posix()
        digest = _recorded_chats(paths.RECORDINGS / "chats.csv").get(address, "")
    check_chats(folder, digest, call.design.chats_digest)


def _turned(engine: Any, call: Call, categories: Iterable[str]) -> bool:
    """Turn recordings to a call; whether there are any of its round and category.

    EngineError where prompts of the call have several recordings that nothing tells apart.
    """
    has_some = engine.turn_to(call.round, call.labels.get("category", ""), categories)
    engine.tell_apart(call.design)
    return has_some


def _answered(call: Call, options: Mapping[str, Any], revision: Callable[[Path], str]) -> bool:
    """Whether a store holds all that would be asked, told without the engine.

    StoreError where it answers something else; for the engine "stored" there is nothing then.
    """
    provide(call)
    own_folder = call.folder
    file = own_folder / "manifest.json"
    if not file.exists() or call.engine == "replay":  # recordings tell what they answer
        return False
    there = read_manifest(file)
    asked = pinned(call.design, call.sampling, there.get("shard_size"))
    options = call.options if call.engine == STORED else options  # those of others, else
    known = {name: options[name] for name in ("system", "bos", "dtype") if name in options}
    known = {k: v for k, v in known.items() if there.get(k, v) != v and v != "auto"}
    folder = models.folder(call.model)
    recorded = paths.RECORDINGS in file.parents or is_excerpt(own_folder)
    if folder and (not recorded or paths.MODELS in folder.parents):
        known["revision"] = revision(folder)  # it may have been trained anew
    if call.engine == STORED:
        differ = [k for k, v in (asked | known).items() if there.get(k) != v]
        if differ := other_identity(call, own_folder, there) + differ:
            print(f"{file} differs in {', '.join(differ)} from what is asked", file=sys.stderr)
            return False
    _check_identity(call, own_folder, there)
    same_prompts = all(there.get(name) == asked[name] for name in ("prompts", "trials"))
    if same_prompts:  # else the difference is said below
        _check_chats(call, own_folder, there)
    rest = {k: v for k, v in there.items() if not k.startswith("sampling_")}
    store = Store(own_folder, rest | asked | known, call.sampling.max_tokens)
    state = store.state()
    if call.engine == STORED:  # any other engine names it when it asks again
        for path in state.damaged:
            print(f"{path} is damaged", file=sys.stderr)

    lacks = state.missing or state.damaged or store.has_journal
    if there.get("engine") in models.FORMER:  # it is read, and nothing of it is asked again
        return not lacks
    again = state.failed and call.engine in models.SERVERS  # their failed calls are asked again
    return not (lacks or state.cut or again)


def stored(call: Call) -> Store:
    """The answers to a call, as their own manifest describes them, for reading: no engine.

    StoreError where there are none, the manifest cannot be read, or they answer other prompts;
    IdentityError where they are another model's or engine's.
    """
    folder = call.folder
    file = folder / "manifest.json"
    if not file.exists():
        raise StoreError(f"{folder} holds no answers; run the study again")
    manifest = read_manifest(file)
    here = call.design.fingerprint, len(call.design)
    if (manifest.get("prompts"), manifest.get("trials")) != here:
        other = "answers to other prompts than the study would ask now"
        raise StoreError(f"{folder} holds {other}; run it again")
    _check_identity(call, folder, manifest)
    _check_chats(call, folder, manifest)
    return Store(folder, manifest)
