"""A job: one design asked of one model with one sampling, answered into one store.

A study's ``jobs(parameters)`` defines the address of its answers once. All code that asks, plans,
reads or records answers goes through these jobs.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cache, wraps
from glob import escape
from pathlib import Path
from typing import Any

from ingroup import models, paths
from ingroup.design import Design
from ingroup.inference.cost import LimitReached, budget_of, money, prices_of
from ingroup.inference.engine import EngineError, Sampling, make_engine
from ingroup.inference.excerpts import write_excerpt
from ingroup.inference.generate import fill, manifest_entries, open_store
from ingroup.inference.reading import FREE, STORED_MEAN, Reading
from ingroup.inference.store import Store, StoreError, check_chats, read_manifest
from ingroup.models import STORED
from ingroup.tables import read_table, shown

# The options of `make_engine`, under their names as parameters of a notebook.
OPTIONS = {name: name.upper() for name in make_engine.__kwdefaults__ or ()}
# The type of a study's function ``jobs``, which makes jobs from parameters.
JobsFunction = Callable[[Mapping[str, Any]], list["Job"]]
SHOWN_PARTS = 3  # parts of a study that a message names
LIVE_ENGINE = "transformers"  # the engine that asks what the recordings lack
EXCERPTS = "excerpts"  # a folder of responses: recorded answers to some of the prompts


class IdentityError(StoreError):
    """A store holds the answers of another model or engine than its folder's name says."""


def folder_name(name: str) -> str:
    """Write a name as the name of one folder.

    Parameters
    ----------
    name : str
        A name that may have slashes, e.g. the name of a model or its folder.

    Returns
    -------
    str
        The name with "--" for each slash between two parts.
    """
    return name.strip("/").replace("/", "--")


@dataclass(frozen=True, eq=False)
class Job:
    """A design that is asked of a model, and where the answers are.

    Attributes
    ----------
    study : str
        The study.
    source : str
        The selection of stimuli, e.g. ``"sample-8"``.
    model, engine : str
        The model and its engine. A model that is a folder is named without the folder's place, as
        tables show it (:func:`ingroup.models.without_place`).
    part : str
        The part of the study that this job asks, e.g. ``"P0,S0,T0"``.
    design : Design
        The prompts.
    sampling : Sampling
        How the prompts are asked.
    labels : mapping
        Columns that tell this job's rows from the rows of other jobs.
    settled : bool
        False where texts of the design are still to be written, so that the job can only be
        planned.
    options : mapping
        The engine options that the study sets.
    root : Path, optional
        The folder of new answers, ``build/responses`` unless given.
    reading : Reading
        How scored answers become numbers. It changes no prompt.
    wider : Job, optional
        A recorded job that may hold all trials of this one (:func:`recorded_with`).
    live : Job, optional
        The job that asks the model's weights for these answers, if this one only reads and the
        recordings lack them (:func:`recorded_with`).
    loaded : str
        The name or the folder that an engine loads, as the run gave it.
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
    wider: "Job | None" = None
    live: "Job | None" = None
    loaded: str = ""

    def __post_init__(self) -> None:
        """Name the model without its folder's place, and keep the name that an engine loads."""
        # A copy made by `dataclasses.replace` has `loaded` already, while its `model` is without a
        # place.
        if not self.loaded:
            object.__setattr__(self, "loaded", self.model)
        object.__setattr__(self, "model", models.without_place(self.model))

    @property
    def address(self) -> Path:
        """Return the place of the answers below any folder of responses.

        It is ``<study>/<source>/<model>@<engine>/<part>``. Slashes of a name become "--". The same
        model through two engines has two stores. A model that is a folder is named without the
        folder's place (`ingroup.models.answer_folder`).

        Returns
        -------
        Path
            A relative path.
        """
        return self._address_of(models.answer_folder(self.loaded))

    @property
    def addresses(self) -> list[Path]:
        """List the addresses at which answers may be: the present address and an earlier address.

        Earlier versions put the whole place of a model's folder into the address. Answers at the
        earlier address are read and completed there.

        Returns
        -------
        list of Path
            `address` first. It is the only one, unless the model is a folder.
        """
        return list(dict.fromkeys([self.address, self._address_of(self.loaded)]))

    def _address_of(self, model: str) -> Path:
        """Return the address of the job's answers, for a model of this name."""
        part = self.part
        if self.is_scored:
            # Scored and free answers to the same prompts may not meet in one store.
            part += "+choices"
        if self.sampling.reasoning:
            part += f"+reasoning-{self.sampling.reasoning}"

        names = (self.study, self.source, f"{model.strip('/')}@{self.engine}", part)
        return Path(*map(folder_name, names))

    @property
    def folder(self) -> Path:
        """Choose the folder from which answers are read, or to which new answers go.

        Returns
        -------
        Path
            The first of `folders`, or the place of new answers if there are no folders.
        """
        folders = self.folders
        if folders:
            return folders[0]
        return self._root_of_new / self.address

    @property
    def folders(self) -> list[Path]:
        """List all folders with answers, below ``data/recordings`` or ``build/responses``.

        The folder that holds the largest share of its shards comes first. If two are equal, a
        recorded folder comes first. Recorded answers to other prompts or with another sampling are
        left out. A job of the engine "stored" has the folders of any engine.

        If there is no such folder, the list has complete stores under the engine's earlier name
        (``models.FORMER_ENGINES``), which are only read. If there are no such stores either, it has
        an excerpt of recorded answers (`copy_recorded`). A job of the engine "stored" also has the
        excerpt if no other store is complete.

        Returns
        -------
        list of Path
            The folders, none if nothing was answered.
        """
        _, _, model_at_engine, _ = self.address.parts
        model, _, _ = model_at_engine.partition("@")
        # Recordings lie one level deeper, so that all of one model's are in one folder.
        recorded = paths.RECORDINGS / model
        folders = []
        # While a recording is made both roots are the same, and its stores may not be listed twice.
        for root in dict.fromkeys([recorded, self._root_of_new]):
            for folder in sorted(self._stores_below(root)):
                is_recorded = recorded in folder.parents
                # New answers that do not fit are kept here: their store refuses them and says why.
                if not is_recorded or self._fits(folder):
                    folders.append(folder)

        if not folders:
            folders = self._former_folders()
        # Answers of a run that was killed may not hide recorded ones.
        may_be_cut = self.engine == STORED and not _has_complete(folders)
        if not folders or may_be_cut:
            folders += self._stores_below(paths.RESPONSES / EXCERPTS)
        if len(folders) > 1:
            # The sort is stable, so of equally full folders the recorded ones stay first.
            folders.sort(key=_share_of_shards, reverse=True)
        return folders

    @property
    def _root_of_new(self) -> Path:
        """Return the folder below which new answers go."""
        return self.root or paths.RESPONSES

    def _stores_below(self, root: Path) -> Iterator[Path]:
        """Yield the folders with a manifest at this job's addresses below a root.

        A job of the engine "stored" finds the folders of any engine.
        """
        for address in self.addresses:
            # A model's name may hold characters that a glob pattern would interpret.
            pattern = escape(str(address))
            if self.engine == STORED:
                pattern = pattern.replace(f"@{STORED}/", "@*/")
            for file in root.glob(f"{pattern}/manifest.json"):
                yield file.parent

    def _former_folders(self) -> list[Path]:
        """List the folders with all answers to this job, under an earlier name of its engine."""
        folders = []
        for former, current in models.FORMER_ENGINES.items():
            if current != self.engine:
                continue
            folder = self._root_of_new / replace(self, engine=former).address
            file = folder / "manifest.json"
            if file.exists() and self._fits(folder) and _has_complete([folder]):
                folders.append(folder)
        return folders

    def _fits(self, folder: Path) -> bool:
        """Tell whether a folder holds answers to this job's design, with this job's sampling."""
        manifest = read_manifest(folder / "manifest.json")
        # The size of its shards changes no answer, so it is taken from the manifest itself.
        expected = manifest_entries(self.design, self.sampling, manifest["shard_size"])
        # The manifest says more than the design and the sampling, e.g. which engine answered.
        return expected.items() <= manifest.items()

    @property
    def is_scored(self) -> bool:
        """Tell whether probabilities of all admissible answers are asked for.

        Returns
        -------
        bool
            False where a text is asked for.
        """
        return bool(self.sampling.choices)

    @property
    def round(self) -> int:
        """Return the number of this job among the repetitions of its prompts.

        Returns
        -------
        int
            The number, from 1.
        """
        # GIEBench's jobs are asked once and have no such label.
        return self.labels.get("round", 1)

    @property
    def mode(self) -> str:
        """Return the job's mode, as tables show it.

        Returns
        -------
        {"free text", "scored"}
            The text.
        """
        return "scored" if self.is_scored else "free text"

    @property
    def read_as(self) -> str:
        """Return the job's reading, as tables show it.

        Returns
        -------
        str
            The text ``"free"``, or a scored reading.
        """
        return str(self.reading if self.is_scored else FREE)

    @property
    def title(self) -> str:
        """Name model and labels, for a progress bar or a line of a plan.

        Returns
        -------
        str
            The names, with spaces between.
        """
        words = [Path(self.model).name, *map(str, self.labels.values())]
        if self.is_scored:
            words.append(self.mode)
        return " ".join(words)

    @property
    def key(self) -> tuple:
        """Return the index of this job's rows among the rows of other jobs.

        Returns
        -------
        tuple
            The model and the labels' values.
        """
        return (self.model, *self.labels.values())


def _has_complete(folders: Iterable[Path]) -> bool:
    """Tell whether any of some folders has all of its shards."""
    return any(_share_of_shards(folder) == 1 for folder in folders)


def _share_of_shards(folder: Path) -> float:
    """Compute the share of its shards that a store has, 0 if the store cannot be opened."""
    try:
        store = Store(folder, read_manifest(folder / "manifest.json"))
    # A folder that cannot be opened sorts last; whoever reads it gets the error.
    except StoreError:
        return 0.0
    return len(store.files()) / store.n_shards


def recorded_with(**default: Any) -> Callable[[JobsFunction], JobsFunction]:
    """Decorate a study's ``jobs``, so that a run with other parameters keeps the recorded models.

    ``@recorded_with(N_EVENTS=12)`` says that the recordings are about 12 events. A run about 3 of
    them reads these answers from the recordings. A run about 24 asks the weights of a recorded
    model, if they are on this machine.

    Parameters
    ----------
    **default
        The parameters, with their values in the default run, that say about which stimuli the
        recordings are, in which wording, and how text is drawn.

    Returns
    -------
    callable
        Makes the same jobs. A job that is not recorded has, as ``wider``, the job of the default
        run with the same model, engine, labels and mode. If that one is recorded and the job only
        reads, it has as ``live`` the job that asks for its answers. A model that is given as
        ``name@stored`` is never asked.
    """

    def decorate(jobs: JobsFunction) -> JobsFunction:
        @wraps(jobs)
        def of_changed_run(parameters: Mapping[str, Any]) -> list[Job]:
            jobs_of_run = jobs(parameters)
            recorded_parameters = {**parameters, **default}
            # These are the jobs of the default run themselves.
            if recorded_parameters == dict(parameters):
                return jobs_of_run
            # Designs take time to make, so the jobs of the default run are made only where
            # recordings are missing.
            lacking = {job for job in jobs_of_run if _recording_of(job) is None}
            if not lacking:
                return jobs_of_run

            of_default_run = {_shared_key(job): job for job in jobs(recorded_parameters)}
            widened = []
            for job in jobs_of_run:
                if job in lacking:
                    wider = of_default_run.get(_shared_key(job))
                    live = _live_job(job, wider, parameters)
                    job = replace(job, wider=wider, live=live)
                widened.append(job)
            return widened

        return of_changed_run

    return decorate


def _shared_key(job: Job) -> tuple:
    """Return the properties that a job shares with the recorded job that holds its trials."""
    return job.key, job.engine, job.mode, job.sampling.leads


def _recording_of(job: Job) -> Path | None:
    """Find the recorded folder with a job's answers, None if no recording has them."""
    for folder in job.folders:
        if paths.RECORDINGS in folder.parents:
            return folder
    return None


def _live_job(job: Job, wider: Job | None, parameters: Mapping[str, Any]) -> Job | None:
    """Make the job that asks a model's weights for answers that are not recorded.

    Its answers go where ``MODELS=<model>@transformers`` would store them. It is None if the job
    asks by itself or the run only reads the model. It is also None if the default run has no
    recording of the model, or if the weights are not on this machine.
    """
    # A job of another engine asks by itself.
    if wider is None or job.engine != STORED:
        return None
    if job.loaded in models.read_only_models(parameters["MODELS"]):
        return None
    # What the default run leaves out is left out here, too.
    recording = _recording_of(wider)
    if recording is None or models.folder(job.loaded) is None:
        return None

    options = dict(job.options)
    manifest = read_manifest(recording / "manifest.json")
    # The answers are to be comparable with the recorded ones, unless the run names a type itself.
    if parameters.get("DTYPE", "auto") == "auto" and "dtype" in manifest:
        options["dtype"] = manifest["dtype"]
    return replace(job, engine=LIVE_ENGINE, options=options)


def jobs_by_model(jobs: Iterable[Job]) -> dict[str, list[Job]]:
    """Group jobs by their model.

    Parameters
    ----------
    jobs : iterable of Job
        Jobs of any models.

    Returns
    -------
    dict of list of Job
        The jobs of each model, by its name; models and jobs in their order.
    """
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.model, []).append(job)
    return groups


def live_sentences(jobs: Iterable[Job], when: str) -> list[str]:
    """Write how many prompts of each model are asked live, because the recordings lack them.

    Parameters
    ----------
    jobs : iterable of Job
        The ``live`` jobs of others.
    when : str
        When they are asked, e.g. "are asked now".

    Returns
    -------
    list of str
        A sentence for each model, without a full stop. Answers that are stored do not count.
    """
    sentences = []
    for model, of_model in jobs_by_model(jobs).items():
        n_prompts = sum(len(job.design) for job in of_model)
        n_left = n_prompts - count_stored(of_model)
        sentences.append(
            f"{models.label(model)}: {n_left:,} prompts are not recorded and {when} "
            f"(MODELS={model}@{STORED} only reads what is stored)"
        )
    return sentences


def _has_answers(job: Job) -> bool:
    """Tell whether a job has answers other than excerpts.

    Answers to a job of the engine "stored" count only if one store holds them all.
    """
    folders = [folder for folder in job.folders if not _is_excerpt(folder)]
    if job.engine == STORED:
        return _has_complete(folders)
    return bool(folders)


def _is_excerpt(folder: Path) -> bool:
    """Tell whether a folder of answers is an excerpt of recorded answers."""
    return paths.RESPONSES / EXCERPTS in folder.parents


def is_recorded(folder: Path) -> bool:
    """Tell whether the answers in a folder came with the repository.

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


def copy_recorded(job: Job) -> None:
    """Copy a job's answers from the recorded job that holds all its trials, if there is one.

    Nothing is copied if the job has answers of its own.

    Parameters
    ----------
    job : Job
        A job, with the recorded one as ``wider``.

    Raises
    ------
    StoreError
        Where the recorded answers cannot be read.
    """
    if job.wider is None or _has_answers(job):
        return
    recorded = job.wider.folder
    # The wider job may have answers of a run, too; only what the repository brings is copied.
    if paths.RECORDINGS not in recorded.parents:
        return

    study, source, _, part = job.address.parts
    folder = paths.RESPONSES / EXCERPTS / study / source / recorded.parent.name / part
    write_excerpt(stored(job.wider), job.wider.design, job.design, job.sampling, folder)


def rated(jobs: Iterable[Job]) -> list[Job]:
    """Select the jobs whose answers a study analyses.

    Parameters
    ----------
    jobs : iterable of Job
        Jobs of any models.

    Returns
    -------
    list of Job
        The scored jobs of each model that has any, and all jobs of the other models.
    """
    jobs = list(jobs)
    # Where a model was asked in both ways, its free text is there to be compared with its scores.
    scored_models = {job.model for job in jobs if job.is_scored}
    return [job for job in jobs if job.is_scored or job.model not in scored_models]


def rated_by(model: str, jobs: Iterable[Job]) -> list[Job]:
    """Select the jobs of one model whose answers are analysed.

    Parameters
    ----------
    model : str
        The model, as ``MODELS`` or a table names it.
    jobs : iterable of Job
        Jobs of any models.

    Returns
    -------
    list of Job
        The `rated` jobs among this model's stored jobs, or among all of its jobs where none is
        stored.
    """
    name = models.without_place(model)
    jobs_of_model = [job for job in jobs if job.model == name]
    return rated(answered_jobs(jobs_of_model) or jobs_of_model)


def answered_jobs(jobs: Iterable[Job]) -> list[Job]:
    """Select the jobs all of whose answers are stored and belong to the present prompts.

    Parameters
    ----------
    jobs : iterable of Job
        Jobs. Answers that a recording holds are copied from it first (`copy_recorded`).

    Returns
    -------
    list of Job
        The jobs with all of their answers, in their order.

    Raises
    ------
    IdentityError
        Where stored answers are another model's or engine's.
    """
    complete = []
    for job in jobs:
        copy_recorded(job)

        try:
            store = stored(job)
        except IdentityError:
            # Answers of another model under this name are a mistake that the user has to hear of.
            raise
        except StoreError:
            # A job without answers, or with answers to other prompts, is not there.
            continue
        if store.is_complete:
            complete.append(job)
    return complete


def count_stored(jobs: Iterable[Job]) -> int:
    """Count the stored answers to these jobs, in shards and journals.

    Parameters
    ----------
    jobs : iterable of Job
        Jobs. Recorded answers and excerpts do not count.

    Returns
    -------
    int
        The number of answers. A store that cannot be read has none.
    """
    n_answers = 0
    for job in jobs:
        folder = job.folder
        if is_recorded(folder):
            continue

        with suppress(StoreError):
            store = Store(folder, read_manifest(folder / "manifest.json"))
            for shard in store.files():
                start, stop = store.bounds(shard)
                n_answers += stop - start
            n_answers += len(store.journal().kept)
    return n_answers


def cost_stored(jobs: Iterable[Job], parameters: Mapping[str, Any]) -> float:
    """Compute the cost of the servers' stored answers, over all runs that asked for them.

    Parameters
    ----------
    jobs : iterable of Job
        Jobs of any engines. Only the jobs of servers cost anything.
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
    for job in jobs:
        folder = job.folder
        if is_recorded(folder) or job.engine not in models.SERVERS:
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
    return prices_of(parameters).cost(prompt_tokens, output_tokens)


def ask(jobs: Iterable[Job], parameters: Mapping[str, Any]) -> list[Job]:
    """Ask for the answers that the stores of these jobs do not hold yet.

    `stored` then reads the answers. Each model has one engine, which starts only if an answer is
    missing. A job of the engine "stored" is asked through its ``live`` job, if it has one. A line
    on standard error says so first.

    Parameters
    ----------
    jobs : iterable of Job
        The jobs. Jobs of one model, engine and type of weights share the engine.
    parameters : mapping
        The run's parameters, with the engine options, the prices and the COST_LIMIT.

    Returns
    -------
    list of Job
        The answered jobs. Jobs of the engine "stored" without answers, and rounds without
        recordings, are left out and named on the standard error.

    Raises
    ------
    EngineError
        Where an engine cannot start or gives up, or a further call could pass the COST_LIMIT. The
        stores keep the answers that they have.
    InputError
        Where a COST_LIMIT is given without prices.
    StoreError
        Where all jobs are left out, or a store answers something else or cannot be written.
    ValueError
        Where a job is not settled.
    """
    jobs = list(jobs)
    _print_read_folders(jobs)
    budget = budget_of(parameters)
    # A notebook has only some of the options; `make_engine` has defaults for the rest.
    options = {name: parameters[given] for name, given in OPTIONS.items() if given in parameters}
    categories = {job.labels.get("category", "") for job in jobs}
    absent, open_jobs = _absent_and_open_jobs(jobs, options)
    # All keys are checked before the first model answers, which may take hours.
    _check_servers(open_jobs, options)
    # The other models may answer for hours, so a reader learns before which are left out.
    _report_absent(absent, absent, jobs)
    # The jobs of the run itself are named in its progress bars alone.
    live = [job for job in open_jobs if job not in jobs]
    for sentence in live_sentences(live, "are asked now"):
        print(shown(sentence), file=sys.stderr)

    unrecorded = []
    for same_engine in _jobs_by_engine(open_jobs):
        _check_settled(same_engine)
        first = same_engine[0]
        engine = make_engine(first.engine, first.loaded, **options | first.options)
        with closing(engine):
            # This first pass only refuses: ambiguous recordings stop the run before anything is
            # stored.
            for job in same_engine:
                _select_recordings(engine, job, categories)

            # The engine is turned again for each job, as it has only one round and category at a
            # time.
            for job in same_engine:
                if not _select_recordings(engine, job, categories):
                    unrecorded.append(job)
                    continue
                try:
                    _fill(job, engine, budget)
                except LimitReached as reached:
                    message = _limit_message(reached, jobs, parameters)
                    raise EngineError(message) from reached

    absent += unrecorded
    _report_absent(unrecorded, absent, jobs)
    return [job for job in jobs if job not in absent]


def _jobs_by_engine(jobs: Iterable[Job]) -> Iterable[list[Job]]:
    """Group the jobs that one engine can answer."""
    groups: dict[tuple, list[Job]] = {}
    for job in jobs:
        # Recordings of one model may differ in the type of its weights, and so may live jobs.
        key = (job.loaded, job.engine, job.options.get("dtype"))
        groups.setdefault(key, []).append(job)
    return groups.values()


def _absent_and_open_jobs(
    jobs: Iterable[Job], options: dict[str, Any]
) -> tuple[list[Job], list[Job]]:
    """List the jobs that are left out, because their answers are only read, and the jobs to ask.

    Answers that a recording holds are copied from it first (`copy_recorded`).
    """
    # Hashing a model's folder reads all of its weights, and many jobs have one model.
    revision = cache(models.revision)
    absent = []
    open_jobs = []

    for job in jobs:
        # This comes first because it can change which folder the job reads.
        copy_recorded(job)
        if _is_answered(job, options | job.options, revision):
            continue
        if job.engine != STORED:
            open_jobs.append(job)
        elif job.live is not None and _can_go_on(job.live, options, revision):
            open_jobs.append(job.live)
        else:
            absent.append(job)
    return absent, open_jobs


def _can_go_on(live: Job, options: dict[str, Any], revision: Callable[[Path], str]) -> bool:
    """Tell whether a live job can begin or complete a store. If it cannot, print the reason."""
    try:
        _is_answered(live, options | live.options, revision)
    except StoreError as error:
        # The user did not name this engine, so the run goes on without the job.
        print(error, file=sys.stderr)
        return False
    return True


def _check_servers(jobs: Iterable[Job], options: dict[str, Any]) -> None:
    """Make and close the engine of each server's model, so that a missing key is reported."""
    by_model = {}
    for job in jobs:
        if job.engine == "inspect":
            by_model[job.model] = job

    for job in by_model.values():
        engine = make_engine(job.engine, job.loaded, **options | job.options)
        engine.close()


def _check_settled(jobs: Iterable[Job]) -> None:
    """Raise a ValueError if texts of a job's prompts are still to be written."""
    for job in jobs:
        if not job.settled:
            raise ValueError(f"{job.title}: texts of its prompts are still to be written")


def _select_recordings(engine: Any, job: Job, categories: Iterable[str]) -> bool:
    """Make an engine of recordings answer this job next. Tell whether it has recordings of the job.

    Any other engine needs no turning, and the result is True. Raise an EngineError if prompts of
    the job have several recordings that nothing tells apart.
    """
    if job.engine != "replay":
        return True

    has_some = engine.select_recordings(job.round, job.labels.get("category", ""), categories)
    engine.assign_recordings(job.design)
    return has_some


def _fill(job: Job, engine: Any, budget: Any) -> None:
    """Ask a job's missing prompts, and store the replies."""
    store = open_store(job.folder, job.design, engine, job.sampling, budget=budget)
    fill(job.design, engine, store, job.sampling, job.title, budget)


def _limit_message(
    reached: LimitReached, jobs: Iterable[Job], parameters: Mapping[str, Any]
) -> str:
    """Write the message of a run that stops at its COST_LIMIT."""
    cost = money(cost_stored(jobs, parameters))
    return (
        f"{reached}; {count_stored(jobs):,} replies are stored, which cost {cost} in all "
        "runs, and the same command with a higher COST_LIMIT goes on"
    )


def _report_absent(new: Sequence[Job], absent: Sequence[Job], jobs: Sequence[Job]) -> None:
    """Print which answers to the ``new`` jobs are left out.
    Raise a StoreError if all are absent.
    """
    # Without any answer the notebook cannot go on; with some it goes on without the absent ones.
    if absent and len(absent) == len(jobs):
        raise StoreError(_absent_message(absent))
    if new:
        print(_absent_message(new), file=sys.stderr)


def _absent_message(absent: Iterable[Job]) -> str:
    """Write which answers are left out, one line per model."""
    sentences = []
    for of_model in jobs_by_model(absent).values():
        sentences.append(shown(_absent_sentence(of_model)))
    return "\n".join(sentences)


def _absent_sentence(absent: Sequence[Job]) -> str:
    """Write which answers of one model are not stored, why, and which command asks for them."""
    scored = [job for job in absent if job.is_scored]
    free = [job for job in absent if not job.is_scored]
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
    sentence = f"{lacking}, and {verb} not asked for in this run"
    remedy = models.how_to_ask(first.model)
    if remedy:
        sentence += f" ({remedy} asks it now)"
    return sentence


def _parts_of(jobs: Sequence[Job]) -> str:
    """Name the parts of a study in brackets, at most `SHOWN_PARTS` of them."""
    # Rounds and categories can have the same labels, so each name is kept once.
    parts = dict.fromkeys(" ".join(map(str, job.labels.values())) for job in jobs)
    named = list(filter(None, parts))
    if not named:
        return ""

    text = "; ".join(named[:SHOWN_PARTS])
    n_more = len(named) - SHOWN_PARTS
    if n_more > 0:
        text += f" and {n_more} more {'part' if n_more == 1 else 'parts'}"
    return f" ({text})"


def _print_read_folders(jobs: Iterable[Job]) -> None:
    """Print which folder is read, for each job whose answers are in several folders."""
    choices = []
    for job in jobs:
        folders = job.folders
        if len(folders) > 1:
            read, *others = map(str, folders)
            choices.append(f"{read} is read, and not {' or '.join(others)}")
    if not choices:
        return

    message = f"several folders hold answers: {'; '.join(choices[:3])}"
    if len(choices) > 3:
        message += f"; {len(choices) - 3:,} jobs more have several, too"
    print(message, file=sys.stderr)


def _identity_differences(job: Job, folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """List which of model and engine differ between a job and the manifest of its folder."""
    _, _, engine = folder.parent.name.rpartition("@")
    model = manifest.get("model", job.model)
    differences = []
    # The registry knows names, aliases and hub ids of one model as the same.
    if _model_name(model) != _model_name(job.model):
        differences.append("model")
    if manifest.get("engine", engine) != engine:
        differences.append("engine")
    return differences


def _model_name(text: str) -> str:
    """Return a model's name in the registry, or else the last part of its path or hub name."""
    model = models.find(text)
    return model.name if model else Path(text).name


def _check_identity(job: Job, folder: Path, manifest: Mapping[str, Any]) -> None:
    """Raise an IdentityError if a store holds the answers of another model or engine."""
    # The first difference is enough for a sentence.
    for name in _identity_differences(job, folder, manifest):
        raise IdentityError(
            f"{folder} holds answers of the {name} {manifest[name]!r}, which is not what its "
            "place says; nothing was changed: move that folder away"
        )


@cache
def _recorded_chats(file: Path) -> dict[str, str]:
    """Read the digests of chats of recorded stores whose manifest lacks one, by address."""
    if not file.exists():
        return {}
    table = read_table(file, ["job", "chats"])
    return dict(zip(table["job"], table["chats"], strict=True))


def _check_chats(job: Job, folder: Path, manifest: Mapping[str, Any]) -> None:
    """Raise a StoreError if a store answers other chats than its job renders now."""
    digest = chats_digest(folder, manifest)
    check_chats(folder, digest, job.design.chats_digest)


def chats_digest(folder: Path, manifest: Mapping[str, Any]) -> str:
    """Look up the digest of the chats that a store answers.

    Parameters
    ----------
    folder : Path
        The folder of the store.
    manifest : mapping
        The manifest of the store.

    Returns
    -------
    str
        The :attr:`ingroup.design.Design.chats_digest` of the store's design, from its manifest. If
        the manifest of a recorded store has no digest, ``data/recordings/chats.csv`` gives it. ""
        if both lack it.
    """
    digest = manifest.get("chats", "")
    # Recorded stores from before the digest was in a manifest are never rewritten, so a table has
    # theirs.
    if digest or paths.RECORDINGS not in folder.parents:
        return digest
    digests = _recorded_chats(paths.RECORDINGS / "chats.csv")
    address = folder.relative_to(paths.RECORDINGS).as_posix()
    return digests.get(address, "")


def _is_answered(job: Job, options: Mapping[str, Any], revision: Callable[[Path], str]) -> bool:
    """Tell, without the engine, whether a store holds all answers to a job.

    Raise a StoreError if the store answers something else. A job of the engine "stored" then prints
    a line on standard error instead, and counts as not answered.
    """
    folder = job.folder
    file = folder / "manifest.json"
    # Whether recordings changed since is known only by the engine that reads their file.
    if not file.exists() or job.engine == "replay":
        return False

    manifest = read_manifest(file)
    expected = manifest_entries(job.design, job.sampling, manifest["shard_size"])
    expected |= _expected_identity(job, folder, manifest, options, revision)
    if job.engine == STORED:
        differences = _identity_differences(job, folder, manifest)
        differences += [name for name in expected if manifest.get(name) != expected[name]]
        # The engine "stored" asks nothing, so answers that do not fit are left out and not
        # replaced.
        if differences:
            names = ", ".join(differences)
            print(f"{file} differs in {names} from what is asked", file=sys.stderr)
            return False

    _check_identity(job, folder, manifest)
    has_prompts = manifest.get("prompts") == expected["prompts"]
    has_trials = manifest.get("trials") == expected["trials"]
    # Other prompts make other chats, and the error of the chats would blame the code that renders
    # them. The store's own check below says that the prompts or their number differ.
    if has_prompts and has_trials:
        _check_chats(job, folder, manifest)

    # What only the engine could tell is taken from the manifest, so the store compares the rest.
    # The sampling is known without the engine: entries that only the manifest has are differences.
    known = dict(manifest)
    for name in manifest:
        if name.startswith("sampling_"):
            del known[name]
    store = Store(folder, known | expected, job.sampling.max_tokens)
    return _holds_all(store, job.engine, manifest.get("engine"))


def _expected_identity(
    job: Job,
    folder: Path,
    manifest: Mapping[str, Any],
    options: Mapping[str, Any],
    revision: Callable[[Path], str],
) -> dict[str, Any]:
    """Return the manifest's expected entries on the engine, as far as they are known without it."""
    if job.engine == STORED:
        # The other options are those of the engine that this run would use, which may be another
        # one.
        options = job.options

    expected = {}
    for name in ("system", "bos", "dtype"):
        if name not in options:
            continue
        value = options[name]
        # An absent entry does not differ: stores of servers have none of these.
        if value != "auto" and manifest.get(name, value) != value:
            expected[name] = value

    model_folder = models.folder(job.loaded)
    if model_folder:
        is_copied = is_recorded(folder)
        is_packaged = paths.MODELS in model_folder.parents
        if is_packaged or not is_copied:
            # The weights may have changed since, e.g. by training anew. Recorded answers of any
            # other folder keep their own revision.
            expected["revision"] = revision(model_folder)
    return expected


def _holds_all(store: Store, engine: str, stored_engine: str | None) -> bool:
    """Tell whether an engine would ask nothing for a store.

    The engine "stored" also prints the store's damaged files.
    """
    state = store.state()
    # Any other engine names the damaged files when it asks again.
    if engine == STORED:
        for path in state.damaged:
            print(f"{path} is damaged", file=sys.stderr)

    if state.missing or state.damaged or store.has_unwritten:
        return False
    # A store under an engine's former name is only read, even where calls failed.
    if stored_engine in models.FORMER_ENGINES:
        return True

    # Servers ask their failed calls again; elsewhere a call would fail in the same way.
    retries_failed = engine in models.SERVERS
    return not (state.cut or (state.failed and retries_failed))


def stored(job: Job) -> Store:
    """Open the answers to a job for reading, as their own manifest describes them.

    No engine is needed.

    Parameters
    ----------
    job : Job
        The job.

    Returns
    -------
    Store
        The store with the answers.

    Raises
    ------
    StoreError
        Where there are no answers, their manifest cannot be read, or they are to other prompts.
    IdentityError
        Where they are another model's or engine's.
    """
    folder = job.folder
    file = folder / "manifest.json"
    if not file.exists():
        raise StoreError(f"{job.address} holds no answers; run the study again")

    manifest = read_manifest(file)
    # The sampling is not compared: a reader takes what is stored, and `ask` refuses another
    # sampling.
    is_of_prompts = manifest.get("prompts") == job.design.fingerprint
    is_of_trials = manifest.get("trials") == len(job.design)
    if not (is_of_prompts and is_of_trials):
        other = "answers to other prompts than the study would ask now"
        raise StoreError(f"{job.address} holds {other}; run it again")

    _check_identity(job, folder, manifest)
    _check_chats(job, folder, manifest)
    return Store(folder, manifest)
