"""A call: one design asked of one model with one sampling, answered into one store.

A study's ``calls(parameters)`` defines the address of its answers once. All code that asks, plans,
reads or records answers goes through these calls.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
OPTIONS = {name: name.upper() for name in make_engine.__kwdefaults__ or ()}
Calls = Callable[[Mapping[str, Any]], list["Call"]]  # a study's: parameters to calls
SHOWN_PARTS = 3  # of those that a model lacks
EXCERPTS = "excerpts"  # a folder of responses: recorded answers to some of the prompts


class IdentityError(StoreError):
    """A store holds the answers of another model or engine than its folder's name says."""


def folder_name(name: str) -> str:
    """Write a name as that of one folder.

    Parameters
    ----------
    name : str
        A name that may have slashes, e.g. that of a model or its folder.

    Returns
    -------
    str
        The name with "--" for each slash between two parts.
    """
    return name.strip("/").replace("/", "--")


@dataclass(frozen=True, eq=False)
class Call:
    """A design that is asked of a model, and where the answers are.

    Attributes
    ----------
    study : str
        The study.
    source : str
        How much of the stimuli is asked about, e.g. ``"sample-8"``.
    model, engine : str
        Who answers. A model that is given as a folder is named without the folder's place, as
        tables show it (:func:`ingroup.models.without_place`).
    part : str
        Which part of the study this store answers, e.g. ``"P0,S0,T0"``.
    design : Design
        The prompts.
    sampling : Sampling
        How they are asked.
    labels : mapping
        Columns that tell this call's rows from those of others.
    settled : bool
        False where texts of the design are still to be written, so that the call can only be
        planned.
    options : mapping
        The engine options that the study sets.
    root : Path, optional
        Where new answers go, if not to ``build/responses``.
    reading : Reading
        How scored answers become numbers; it changes no prompt.
    wider : Call, optional
        A recorded call that may hold all trials of this one (:func:`excerpts_of`).
    loaded : str
        The model as it was given, a name or a folder, which is what an engine loads.
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
    options: dict[str, Any] = field(default_factory=dict)
    root: Path | None = None
    reading: Reading = STORED_MEAN
    wider: "Call | None" = None
    loaded: str = ""

    def __post_init__(self) -> None:
        """Name the model without its place; keep what an engine loads."""
        # A copy made by `dataclasses.replace` has `loaded` already, while its `model` is without a
        # place.
        if not self.loaded:
            object.__setattr__(self, "loaded", self.model)
        object.__setattr__(self, "model", models.without_place(self.model))

    @property
    def address(self) -> Path:
        """Give the place of the answers below any folder of responses.

        It is ``<study>/<source>/<model>@<engine>/<part>``. Slashes of a name become "--". The same
        model through two engines has two stores. The folder of a model is named without its place
        (:func:`ingroup.models.answers_of`).

        Returns
        -------
        Path
            A relative path.
        """
        return self._address_of(models.answers_of(self.loaded))

    @property
    def addresses(self) -> list[Path]:
        """List the addresses at which answers may be: that of new ones, and an earlier one.

        Earlier versions put the whole place of a model's folder into the address. Answers that are
        there are read and completed there.

        Returns
        -------
        list of Path
            `address` first; it is the only one, unless the model is a folder.
        """
        return list(dict.fromkeys([self.address, self._address_of(self.loaded)]))

    def _address_of(self, model: str) -> Path:
        """The address of the answers of a model of this name."""
        part = self.part
        if self.over_choices:
            # Scored and free answers to the same prompts may not meet in one store.
            part += "+choices"
        if self.sampling.reasoning:
            part += f"+reasoning-{self.sampling.reasoning}"

        names = (self.study, self.source, f"{model.strip('/')}@{self.engine}", part)
        return Path(*map(folder_name, names))

    @property
    def folder(self) -> Path:
        """Choose the folder that answers are read from, or go into.

        Returns
        -------
        Path
            The first of `folders`, or, where there are none, the place of new answers.
        """
        folders = self.folders
        if folders:
            return folders[0]
        return self._own_root / self.address

    @property
    def folders(self) -> list[Path]:
        """List all folders with answers, below ``data/recordings`` or ``build/responses``.

        The folder that holds the largest share of its shards comes first; of equals, a recorded
        one. Recorded answers to other prompts or with another sampling are left out. For the engine
        "stored" the folders are those of any engine.

        Where there are none, they are complete ones under the engine's earlier name
        (``models.FORMER``), which are only read. Where there are none of these either, they are an
        excerpt of recorded ones (`provide`).

        Returns
        -------
        list of Path
            The folders; none if nothing was answered.
        """
        model, _, _ = self.address.parts[2].partition("@")
        # Recordings lie one level deeper, so that all of one model's are in one folder.
        recorded = paths.RECORDINGS / model
        folders = []
        # While a recording is made both roots are the same, and its stores may not be listed twice.
        for root in dict.fromkeys([recorded, self._own_root]):
            for folder in sorted(self._stores_below(root)):
                is_recorded = recorded in folder.parents
                # New answers that do not fit are kept here: their store refuses them and says why.
                if not is_recorded or self._fits(folder):
                    folders.append(folder)

        if not folders:
            folders = self._former_folders()
        if not folders:
            folders = list(self._stores_below(paths.RESPONSES / EXCERPTS))
        if len(folders) > 1:
            # The sort is stable, so of equally full folders the recorded ones stay first.
            folders.sort(key=_share_of_shards, reverse=True)
        return folders

    @property
    def _own_root(self) -> Path:
        """The folder below which new answers go."""
        return self.root or paths.RESPONSES

    def _stores_below(self, root: Path) -> Iterator[Path]:
        """Folders with a manifest at this call's addresses; for "stored" with any engine."""
        for address in self.addresses:
            # A model's name may hold characters that a glob pattern would interpret.
            pattern = escape(str(address))
            if self.engine == STORED:
                pattern = pattern.replace(f"@{STORED}/", "@*/")
            for file in root.glob(f"{pattern}/manifest.json"):
                yield file.parent

    def _former_folders(self) -> list[Path]:
        """Folders with all answers to this call, under an earlier name of its engine."""
        folders = []
        for former, current in models.FORMER.items():
            if current != self.engine:
                continue
            folder = self._own_root / replace(self, engine=former).address
            file = folder / "manifest.json"
            if file.exists() and self._fits(folder):
                store = Store(folder, read_manifest(file))
                if _is_complete(store):
                    folders.append(folder)
        return folders

    def _fits(self, folder: Path) -> bool:
        """Whether the answers in a folder are to this design, with this sampling."""
        manifest = read_manifest(folder / "manifest.json")
        # The size of its shards changes no answer, so it is taken from the manifest itself.
        expected = pinned(self.design, self.sampling, manifest["shard_size"])
        # The manifest says more than the design and the sampling, e.g. which engine answered.
        return expected.items() <= manifest.items()

    @property
    def over_choices(self) -> bool:
        """Tell whether probabilities of all admissible answers are asked for.

        Returns
        -------
        bool
            False where a text is asked for.
        """
        return bool(self.sampling.choices)

    @property
    def round(self) -> int:
        """Say which repetition of its prompts this is.

        Returns
        -------
        int
            The number, from 1.
        """
        # One study has runs, two have rounds, and GIEBench's calls are asked once.
        return self.labels.get("run", self.labels.get("round", 1))

    @property
    def way(self) -> str:
        """Say how it is asked, as tables show it.

        Returns
        -------
        {"freely", "over choices"}
            The text.
        """
        return "over choices" if self.over_choices else "freely"

    @property
    def read_as(self) -> str:
        """Say how an answer becomes a value, as tables show it.

        Returns
        -------
        str
            The text ``"free"``, or a scored reading.
        """
        return str(self.reading if self.over_choices else FREE)

    @property
    def title(self) -> str:
        """Name model and labels, for a progress bar or a line of a plan.

        Returns
        -------
        str
            The names, with spaces between.
        """
        words = [Path(self.model).name, *map(str, self.labels.values())]
        if self.over_choices:
            words.append(self.way)
        return " ".join(words)

    @property
    def key(self) -> tuple:
        """Give the index of this call's rows among those of others.

        Returns
        -------
        tuple
            The model and the labels' values.
        """
        return (self.model, *self.labels.values())


def _is_complete(store: Store) -> bool:
    """Whether a store has all its shards."""
    return len(store.files()) == store.shards


def _share_of_shards(folder: Path) -> float:
    """The share of its shards that a store has; a damaged file that was moved aside is none."""
    try:
        store = Store(folder, read_manifest(folder / "manifest.json"))
    # A folder that cannot be opened sorts last; whoever reads it gets the error.
    except StoreError:
        return 0.0
    return len(store.files()) / store.shards


def excerpts_of(**stimuli: Any) -> Callable[[Calls], Calls]:
    """Decorate a study's ``calls``, so that any part of the recordings is read instead of asked.

    Parameters
    ----------
    **stimuli
        The parameters, with their values, that say about which stimuli the recordings are.

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
            # These are the recorded calls themselves.
            if as_recorded == dict(parameters):
                return asked
            # Designs take time to make, so the recorded calls are made only where answers are
            # missing.
            lacking = {call for call in asked if not _has_own(call)}
            if not lacking:
                return asked

            recorded = {_name(call): call for call in calls(as_recorded)}
            widened = []
            for call in asked:
                if call in lacking:
                    call = replace(call, wider=recorded.get(_name(call)))
                widened.append(call)
            return widened

        return with_wider

    return decorate


def _name(call: Call) -> tuple:
    """What a call and the recorded call that holds its trials have in common."""
    return call.key, call.engine, call.way, call.sampling.leads


def _has_own(call: Call) -> bool:
    """Whether a call has a folder with answers that is not an excerpt."""
    return not all(map(_is_excerpt, call.folders))


def _is_excerpt(folder: Path) -> bool:
    """Tell whether a folder of answers is an excerpt of recorded ones."""
    return paths.RESPONSES / EXCERPTS in folder.parents


def is_recorded(folder: Path) -> bool:
    """Tell whether the repository brought the answers in a folder.

    Parameters
    ----------
    folder : Path
        A folder of answers.

    Returns
    -------
    bool
        True for recorded answers, and for an excerpt of them.
    """
    return paths.RECORDINGS in folder.parents or _is_excerpt(folder)


def provide(call: Call) -> None:
    """Copy a call's answers from the recorded call that holds all its trials, if there is one.

    Nothing is copied where the call has answers of its own.

    Parameters
    ----------
    call : Call
        A call, with the recorded one as ``wider``.

    Raises
    ------
    StoreError
        Where the recorded answers cannot be read.
    """
    if call.wider is None:
        return
    source = call.wider.folder
    # The wider call may have answers of a run, too; only what the repository brings is copied.
    if paths.RECORDINGS not in source.parents:
        return

    study, asked_about, _, part = call.address.parts
    folder = paths.RESPONSES / EXCERPTS / study / asked_about / source.parent.name / part
    excerpt(stored(call.wider), call.wider.design, call.design, call.sampling, folder)


def rated(calls: Iterable[Call]) -> list[Call]:
    """Select the calls whose answers a study analyses.

    Parameters
    ----------
    calls : iterable of Call
        Calls of any models.

    Returns
    -------
    list of Call
        Only the calls over choices, where a model has any; else all of its calls.
    """
    calls = list(calls)
    # Where a model was asked in both ways, its free text is there to be compared with its scores.
    scored_models = {call.model for call in calls if call.over_choices}
    return [call for call in calls if call.over_choices or call.model not in scored_models]


def rated_by(model: str, calls: Iterable[Call]) -> list[Call]:
    """Select the calls by which one model is rated.

    Parameters
    ----------
    model : str
        The model, as ``MODELS`` or a table names it.
    calls : iterable of Call
        Calls of any models.

    Returns
    -------
    list of Call
        The `rated` ones of this model's calls that are stored, or of all of them where none is.
    """
    name = models.without_place(model)
    own = [call for call in calls if call.model == name]
    return rated(there(own) or own)


def there(calls: Iterable[Call]) -> list[Call]:
    """Select the calls whose answers are stored, all of them and to these prompts.

    Parameters
    ----------
    calls : iterable of Call
        Calls, whose answers are copied from recorded ones where they can be (`provide`).

    Returns
    -------
    list of Call
        The stored ones, in their order.

    Raises
    ------
    IdentityError
        Where stored answers are another model's or engine's.
    """
    complete = []
    for call in calls:
        provide(call)

        try:
            store = stored(call)
        except IdentityError:
            # Answers of another model under this name are a mistake that the user has to hear of.
            raise
        except StoreError:
            # A call without answers, or with answers to other prompts, is not there.
            continue
        if _is_complete(store):
            complete.append(call)
    return complete


def kept(calls: Iterable[Call]) -> int:
    """Count the stored answers to these calls, in shards and journals.

    Parameters
    ----------
    calls : iterable of Call
        Calls; recorded answers and excerpts do not count.

    Returns
    -------
    int
        The number of answers; a store that cannot be read has none.
    """
    n_answers = 0
    for call in calls:
        folder = call.folder
        if is_recorded(folder):
            continue

        with suppress(StoreError):
            store = Store(folder, read_manifest(folder / "manifest.json"))
            for shard in store.files():
                start, stop = store.bounds(shard)
                n_answers += stop - start
            n_answers += len(store.journal().kept)
    return n_answers


def cost_stored(calls: Iterable[Call], parameters: Mapping[str, Any]) -> float:
    """Compute the cost of the servers' answers that :func:`kept` counts, in all runs.

    Parameters
    ----------
    calls : iterable of Call
        Calls of any engines; only those of servers cost.
    parameters : mapping
        The run's parameters, with its prices.

    Returns
    -------
    float
        The cost at the run's prices. Each answer counts at the share of the price at which it was
        bought.
    """
    columns = ["trial", "finish_reason", "prompt_tokens", "output_tokens", "price_share"]
    prompt_tokens = 0.0
    output_tokens = 0.0
    for call in calls:
        folder = call.folder
        if is_recorded(folder) or call.engine not in models.SERVERS:
            continue

        with suppress(StoreError):
            store = Store(folder, read_manifest(folder / "manifest.json"))
            for _, table, _ in store.tables(store.files(), columns):
                if table is None:
                    continue
                # The cost is linear in tokens, so a share of the price is a share of the tokens.
                share = table["price_share"].to_numpy()
                prompt_tokens += float(table["prompt_tokens"].to_numpy() @ share)
                output_tokens += float(table["output_tokens"].to_numpy() @ share)

            for reply in store.journal().kept.values():
                prompt_tokens += reply.prompt_tokens * reply.price_share
                output_tokens += reply.output_tokens * reply.price_share
    return prices(parameters).cost(prompt_tokens, output_tokens)


def ask(calls: Iterable[Call], parameters: Mapping[str, Any]) -> list[Call]:
    """Ask for the answers that the stores of these calls do not hold yet.

    :func:`stored` then reads them. Each model has one engine, which starts only where an answer is
    missing.

    Parameters
    ----------
    calls : iterable of Call
        The calls; neighbours of one model and engine share the engine.
    parameters : mapping
        The run's parameters, with the engine options, the prices and the COST_LIMIT.

    Returns
    -------
    list of Call
        The answered calls. Calls of the engine "stored" without stored answers, and rounds without
        recordings, are left out and named on the standard error.

    Raises
    ------
    EngineError
        Where an engine cannot start or gives up, or a further call could pass the COST_LIMIT. The
        stores keep the answers that they have.
    InputError
        Where a COST_LIMIT is given without prices.
    StoreError
        Where all calls are left out, or a store answers something else or cannot be written.
    ValueError
        Where a call is not settled.
    """
    calls = list(calls)
    _print_choices(calls)
    budget = budget_of(parameters)
    # A notebook has only some of the options; `make_engine` has defaults for the rest.
    options = {name: parameters[given] for name, given in OPTIONS.items() if given in parameters}
    categories = {call.labels.get("category", "") for call in calls}
    absent, asked = _unanswered(calls, options)
    # All keys are checked before the first model answers, which may take hours.
    _check_servers(asked, options)

    for _, group in groupby(asked, lambda call: (call.loaded, call.engine)):
        same_engine = list(group)
        _check_settled(same_engine)
        first = same_engine[0]
        engine = make_engine(first.engine, first.loaded, **options | first.options)
        with closing(engine):
            # This first pass only refuses: ambiguous recordings stop the run before anything is
            # stored.
            for call in same_engine:
                _can_answer(engine, call, categories)

            # The engine is turned again for each call, as it has only one round and category at a
            # time.
            for call in same_engine:
                if not _can_answer(engine, call, categories):
                    absent.append(call)
                    continue
                try:
                    _fill(call, engine, budget)
                except LimitReached as reached:
                    message = _at_limit(reached, calls, parameters)
                    raise EngineError(message) from reached

    if absent:
        _report_absent(absent, calls)
    return [call for call in calls if call not in absent]


def _unanswered(calls: Iterable[Call], options: dict[str, Any]) -> tuple[list[Call], list[Call]]:
    """The calls whose stores lack answers: those of the engine "stored", and those to ask."""
    # Hashing a model's folder reads all of its weights, and many calls have one model.
    revision = cache(models.revision)
    absent = []
    asked = []

    for call in calls:
        if _answered(call, options | call.options, revision):
            continue
        if call.engine == STORED:
            absent.append(call)
        else:
            asked.append(call)
    return absent, asked


def _check_servers(calls: Iterable[Call], options: dict[str, Any]) -> None:
    """Make and close the engine of each server's model: a missing key is told before any call."""
    by_model = {}
    for call in calls:
        if call.engine == "inspect":
            by_model[call.model] = call

    for call in by_model.values():
        engine = make_engine(call.engine, call.loaded, **options | call.options)
        engine.close()


def _check_settled(calls: Iterable[Call]) -> None:
    """Raise a ValueError where texts of a call's prompts are still to be written."""
    for call in calls:
        if not call.settled:
            raise ValueError(f"{call.title}: texts of its prompts are still to be written")


def _can_answer(engine: Any, call: Call, categories: Iterable[str]) -> bool:
    """Turn recordings to a call; whether there are any of its round and category.

    An engine other than "replay" can always answer. EngineError where prompts of the call have
    several recordings that nothing tells apart.
    """
    if call.engine != "replay":
        return True

    has_some = engine.turn_to(call.round, call.labels.get("category", ""), categories)
    engine.tell_apart(call.design)
    return has_some


def _fill(call: Call, engine: Any, budget: Any) -> None:
    """Ask a call's missing prompts, and store the replies."""
    store = open_store(call.folder, call.design, engine, call.sampling, budget=budget)
    fill(call.design, engine, store, call.sampling, call.title, budget)


def _at_limit(reached: LimitReached, calls: Iterable[Call], parameters: Mapping[str, Any]) -> str:
    """The message of a run that stops at its COST_LIMIT."""
    cost = money(cost_stored(calls, parameters))
    return (
        f"{reached}; {kept(calls):,} replies are stored, which cost {cost} in all "
        "runs, and the same command with a higher COST_LIMIT goes on"
    )


def _report_absent(absent: Sequence[Call], calls: Sequence[Call]) -> None:
    """Print which answers of which model are left out; a StoreError where all are."""
    by_model: dict[str, list[Call]] = {}
    for call in absent:
        by_model.setdefault(call.model, []).append(call)

    sentences = [shown(_absent_sentence(own)) for own in by_model.values()]
    message = "\n".join(sentences)
    # Without any answer the notebook cannot go on; with some it goes on without the absent ones.
    if len(absent) == len(calls):
        raise StoreError(message)
    print(message, file=sys.stderr)


def _absent_sentence(absent: Sequence[Call]) -> str:
    """Say which answers of one model are not stored, why, and what asks for them."""
    scored = [call for call in absent if call.over_choices]
    free = [call for call in absent if not call.over_choices]
    kinds = []
    if scored:
        kinds.append(f"scored answers{_parts_of(scored)}")
    if free:
        kinds.append(f"free text{_parts_of(free)}")

    first = absent[0]
    verb = "are" if scored else "is"
    lacking = f"{models.label(first.model)}: {' and '.join(kinds)} {verb} not stored"
    if first.engine == "replay":
        return (
            f"{lacking}, as no recording is of that round and category (a column run or category; "
            "files with a word of their category in the name, or numbered from 0 or 1 without a "
            "gap)"
        )
    sentence = f"{lacking}, and this run only reads what is stored of this model"
    remedy = models.how_to_ask(first.model)
    if remedy:
        sentence += f" ({remedy} asks it now)"
    return sentence


def _parts_of(calls: Sequence[Call]) -> str:
    """Name parts of a study in brackets, some of them where they are many."""
    # Rounds and categories can have the same labels, so each name is kept once.
    parts = dict.fromkeys(" ".join(map(str, call.labels.values())) for call in calls)
    named = list(filter(None, parts))
    if not named:
        return ""

    text = "; ".join(named[:SHOWN_PARTS])
    n_more = len(named) - SHOWN_PARTS
    if n_more > 0:
        text += f" and {n_more} more {'part' if n_more == 1 else 'parts'}"
    return f" ({text})"


def _print_choices(calls: Iterable[Call]) -> None:
    """Print which folder is read where several hold answers to the same call."""
    choices = []
    for call in calls:
        folders = call.folders
        if len(folders) > 1:
            read, *others = map(str, folders)
            choices.append(f"{read} is read, and not {' or '.join(others)}")
    if not choices:
        return

    message = f"several folders hold answers: {'; '.join(choices[:3])}"
    if len(choices) > 3:
        message += f"; {len(choices) - 3:,} calls more have several, too"
    print(message, file=sys.stderr)


def _other_identity(call: Call, folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Tell in which of model and engine the manifest of a call's folder differs from the call."""
    _, _, engine = folder.parent.name.rpartition("@")
    model = manifest.get("model", call.model)
    differences = []
    # The registry knows names, aliases and hub ids of one model as the same.
    if _model_name(model) != _model_name(call.model):
        differences.append("model")
    if manifest.get("engine", engine) != engine:
        differences.append("engine")
    return differences


def _model_name(text: str) -> str:
    """A model's name in the registry, or the last part of a folder's or hub's."""
    model = models.find(text)
    return model.name if model else Path(text).name


def _check_identity(call: Call, folder: Path, manifest: Mapping[str, Any]) -> None:
    """Raise an IdentityError where a store's answers are another model's or engine's."""
    # The first difference is enough for a sentence.
    for name in _other_identity(call, folder, manifest):
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
    """Raise a StoreError where a store answers other chats than its call renders now."""
    digest = chats_digest(folder, manifest)
    check_chats(folder, digest, call.design.chats_digest)


def chats_digest(folder: Path, manifest: Mapping[str, Any]) -> str:
    """Look up to which chats a store holds answers.

    Parameters
    ----------
    folder : Path
        The folder of the store.
    manifest : mapping
        Its manifest.

    Returns
    -------
    str
        Of :attr:`ingroup.design.Design.chats_digest`. For a recorded store whose manifest does not
        say, ``data/recordings/chats.csv`` does; "" where neither does.
    """
    digest = manifest.get("chats", "")
    # Recorded stores from before the digest was in a manifest are never rewritten, so a table has
    # theirs.
    if digest or paths.RECORDINGS not in folder.parents:
        return digest
    digests = _recorded_chats(paths.RECORDINGS / "chats.csv")
    address = folder.relative_to(paths.RECORDINGS).as_posix()
    return digests.get(address, "")


def _answered(call: Call, options: Mapping[str, Any], revision: Callable[[Path], str]) -> bool:
    """Whether a store holds all answers to a call, told without the engine.

    StoreError where it answers something else; for the engine "stored" the call then has none.
    """
    # This comes first because it can change which folder the call reads.
    provide(call)
    folder = call.folder
    file = folder / "manifest.json"
    # Whether recordings changed since is known only by the engine that reads their file.
    if not file.exists() or call.engine == "replay":
        return False

    manifest = read_manifest(file)
    expected = pinned(call.design, call.sampling, manifest["shard_size"])
    identity = _expected_identity(call, folder, manifest, options, revision)
    if call.engine == STORED:
        differences = _other_identity(call, folder, manifest)
        for name, value in (expected | identity).items():
            if manifest.get(name) != value:
                differences.append(name)
        # The engine "stored" asks nothing, so answers that do not fit are left out and not
        # replaced.
        if differences:
            names = ", ".join(differences)
            print(f"{file} differs in {names} from what is asked", file=sys.stderr)
            return False

    _check_identity(call, folder, manifest)
    has_prompts = manifest.get("prompts") == expected["prompts"]
    has_trials = manifest.get("trials") == expected["trials"]
    # Where prompts or their number differ, the store's own check below names that.
    if has_prompts and has_trials:
        _check_chats(call, folder, manifest)

    # What only the engine could tell is taken from the manifest, so the store compares the rest.
    other = {name: v for name, v in manifest.items() if not name.startswith("sampling_")}
    store = Store(folder, other | expected | identity, call.sampling.max_tokens)
    return _holds_all(store, call.engine, manifest.get("engine"))


def _expected_identity(
    call: Call,
    folder: Path,
    manifest: Mapping[str, Any],
    options: Mapping[str, Any],
    revision: Callable[[Path], str],
) -> dict[str, Any]:
    """What a store's manifest should say about the engine, as far as it is known without it."""
    if call.engine == STORED:
        # The other options are those of the engine that this run would use, which may be another
        # one.
        options = call.options

    expected = {}
    for name in ("system", "bos", "dtype"):
        if name not in options:
            continue
        value = options[name]
        # An absent entry does not differ: stores of servers have none of these.
        if value != "auto" and manifest.get(name, value) != value:
            expected[name] = value

    model_folder = models.folder(call.loaded)
    if model_folder:
        is_copied = is_recorded(folder)
        is_packaged = paths.MODELS in model_folder.parents
        if is_packaged or not is_copied:
            # The weights may have changed since, e.g. by training anew. Recorded answers of any
            # other folder keep their own revision.
            expected["revision"] = revision(model_folder)
    return expected


def _holds_all(store: Store, engine: str, stored_engine: str | None) -> bool:
    """Whether nothing of a store would be asked by an engine; prints damage for "stored"."""
    state = store.state()
    # Any other engine names the damaged files when it asks again.
    if engine == STORED:
        for path in state.damaged:
            print(f"{path} is damaged", file=sys.stderr)

    if state.missing or state.damaged or store.has_journal:
        return False
    # A store under an engine's former name is only read, even where calls failed.
    if stored_engine in models.FORMER:
        return True

    # Servers ask their failed calls again; elsewhere a call would fail in the same way.
    retries_failed = engine in models.SERVERS
    return not (state.cut or (state.failed and retries_failed))


def stored(call: Call) -> Store:
    """Open the answers to a call for reading, as their own manifest describes them.

    It needs no engine.

    Parameters
    ----------
    call : Call
        The call.

    Returns
    -------
    Store
        Its answers.

    Raises
    ------
    StoreError
        Where there are no answers, their manifest cannot be read, or they are to other prompts.
    IdentityError
        Where they are another model's or engine's.
    """
    folder = call.folder
    file = folder / "manifest.json"
    if not file.exists():
        raise StoreError(f"{call.address} holds no answers; run the study again")

    manifest = read_manifest(file)
    # The sampling is not compared: a reader takes what is stored, and `ask` refuses another
    # sampling.
    is_of_prompts = manifest.get("prompts") == call.design.fingerprint
    is_of_trials = manifest.get("trials") == len(call.design)
    if not (is_of_prompts and is_of_trials):
        other = "answers to other prompts than the study would ask now"
        raise StoreError(f"{call.address} holds {other}; run it again")

    _check_identity(call, folder, manifest)
    _check_chats(call, folder, manifest)
    return Store(folder, manifest)
