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
Jobs = Callable[[Mapping[str, Any]], list["Job"]]  # a study's ``jobs``: from parameters to jobs
SHOWN_PARTS = 3  # of those that a model lacks
LIVE = "transformers"  # the engine that asks what the recordings lack
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
class Job:
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
        Columns that tell this job's rows from those of others.
    settled : bool
        False where texts of the design are still to be written, so that the job can only be
        planned.
    options : mapping
        The engine options that the study sets.
    root : Path, optional
        Where new answers go, if not to ``build/responses``.
    reading : Reading
        How scored answers become numbers; it changes no prompt.
    wider : Job, optional
        A recorded job that may hold all trials of this one (:func:`recorded_with`).
    live : Job, optional
        The job that asks the model's weights for these answers, if this one only reads and the
        recordings lack them (:func:`recorded_with`).
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
    wider: "Job | None" = None
    live: "Job | None" = None
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
        (:func:`ingroup.models.answer_folder`).

        Returns
        -------
        Path
            A relative path.
        """
        return self._address_of(models.answer_folder(self.loaded))

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
        if self.is_scored:
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
        return self._root_of_new / self.address

    @property
    def folders(self) -> list[Path]:
        """List all folders with answers, below ``data/recordings`` or ``build/responses``.

        The folder that holds the largest share of its shards comes first, and before an equal one a
        recorded folder. Recorded answers to other prompts or with another sampling are left out.
        For the engine "stored" the folders are those of any engine.

        If there is no such folder, the list has complete stores under the engine's earlier name
        (``models.FORMER``), which are only read. If there is none of these either, it has an
        excerpt of recorded answers (`provide`). For the engine "stored" it also has the excerpt
        where no other store is complete.

        Returns
        -------
        list of Path
            The folders; none if nothing was answered.
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
        """The folder below which new answers go."""
        return self.root or paths.RESPONSES

    def _stores_below(self, root: Path) -> Iterator[Path]:
        """Folders with a manifest at this job's addresses; for "stored" with any engine."""
        for address in self.addresses:
            # A model's name may hold characters that a glob pattern would interpret.
            pattern = escape(str(address))
            if self.engine == STORED:
                pattern = pattern.replace(f"@{STORED}/", "@*/")
            for file in root.glob(f"{pattern}/manifest.json"):
                yield file.parent

    def _former_folders(self) -> list[Path]:
        """Folders with all answers to this job, under an earlier name of its engine."""
        folders = []
        for former, current in models.FORMER.items():
            if current != self.engine:
                continue
            folder = self._root_of_new / replace(self, engine=former).address
            file = folder / "manifest.json"
            if file.exists() and self._fits(folder) and _has_complete([folder]):
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
        """Say which repetition of its prompts this is.

        Returns
        -------
        int
            The number, from 1.
        """
        # GIEBench's jobs are asked once and have no such label.
        return self.labels.get("round", 1)

    @property
    def mode(self) -> str:
        """Say how it is asked, as tables show it.

        Returns
        -------
        {"free text", "scored"}
            The text.
        """
        return "scored" if self.is_scored else "free text"

    @property
    def read_as(self) -> str:
        """Say how an answer becomes a value, as tables show it.

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
        """Give the index of this job's rows among those of others.

        Returns
        -------
        tuple
            The model and the labels' values.
        """
        return (self.model, *self.labels.values())


def _has_complete(folders: Iterable[Path]) -> bool:
    """Whether one of some folders has all of its shards."""
    return any(_share_of_shards(folder) == 1 for folder in folders)


def _share_of_shards(folder: Path) -> float:
    """The share of its shards that a store has; a damaged file that was moved aside is none."""
    try:
        store = Store(folder, read_manifest(folder / "manifest.json"))
    # A folder that cannot be opened sorts last; whoever reads it gets the error.
    except StoreError:
        return 0.0
    return len(store.files()) / store.shards


def recorded_with(**default: Any) -> Callable[[Jobs], Jobs]:
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

    def decorate(jobs: Jobs) -> Jobs:
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
    """What a job and the recorded job that holds its trials have in common."""
    return job.key, job.engine, job.mode, job.sampling.leads


def _recording_of(job: Job) -> Path | None:
    """The recorded folder with a job's answers; None where there is none."""
    for folder in job.folders:
        if paths.RECORDINGS in folder.parents:
            return folder
    return None


def _live_job(job: Job, wider: Job | None, parameters: Mapping[str, Any]) -> Job | None:
    """The job that asks a model's weights what the default run has recorded; None without any.

    Its answers go where ``MODELS=<model>@transformers`` would store them.
    """
    # A job of another engine asks by itself.
    if wider is None or job.engine != STORED:
        return None
    if job.loaded in models.only_read(parameters["MODELS"]):
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
    return replace(job, engine=LIVE, options=options)


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


def asked_live(jobs: Iterable[Job], when: str) -> list[str]:
    """Say how many prompts of which models are asked live, because the recordings lack them.

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
    """Whether a job has answers beside excerpts; for "stored", whether one store holds them all."""
    own = [folder for folder in job.folders if not _is_excerpt(folder)]
    if job.engine == STORED:
        return _has_complete(own)
    return bool(own)


def _is_excerpt(folder: Path) -> bool:
    """Whether a folder of answers is an excerpt of recorded answers."""
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


def provide(job: Job) -> None:
    """Copy a job's answers from the recorded job that holds all its trials, if there is one.

    Nothing is copied where the job has answers of its own.

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
    excerpt(stored(job.wider), job.wider.design, job.design, job.sampling, folder)


def rated(jobs: Iterable[Job]) -> list[Job]:
    """Select the jobs whose answers a study analyses.

    Parameters
    ----------
    jobs : iterable of Job
        Jobs of any models.

    Returns
    -------
    list of Job
        Only the scored jobs, where a model has any; else all of its jobs.
    """
    jobs = list(jobs)
    # Where a model was asked in both ways, its free text is there to be compared with its scores.
    scored_models = {job.model for job in jobs if job.is_scored}
    return [job for job in jobs if job.is_scored or job.model not in scored_models]


def rated_by(model: str, jobs: Iterable[Job]) -> list[Job]:
    """Select the jobs by which one model is rated.

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
    """Select the jobs whose answers are stored, all of them and to these prompts.

    Parameters
    ----------
    jobs : iterable of Job
        Jobs. Answers that a recording holds are copied from it first (`provide`).

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
        provide(job)

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
        Jobs; recorded answers and excerpts do not count.

    Returns
    -------
    int
        The number of answers; a store that cannot be read has none.
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
    """Compute the cost of the servers' answers that :func:`count_stored` counts, in all runs.

    Parameters
    ----------
    jobs : iterable of Job
        Jobs of any engines; only those of servers cost.
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
    return prices(parameters).cost(prompt_tokens, output_tokens)


def ask(jobs: Iterable[Job], parameters: Mapping[str, Any]) -> list[Job]:
    """Ask for the answers that the stores of these jobs do not hold yet.

    :func:`stored` then reads them. Each model has one engine, which starts only where an answer is
    missing. For a job of the engine "stored" its ``live`` job is asked, if it has one. A line on
    the standard error says so before.

    Parameters
    ----------
    jobs : iterable of Job
        The jobs; those of one model, engine and type of weights share the engine.
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
    _print_choices(jobs)
    budget = budget_of(parameters)
    # A notebook has only some of the options; `make_engine` has defaults for the rest.
    options = {name: parameters[given] for name, given in OPTIONS.items() if given in parameters}
    categories = {job.labels.get("category", "") for job in jobs}
    absent, open_jobs = _unanswered(jobs, options)
    # All keys are checked before the first model answers, which may take hours.
    _check_servers(open_jobs, options)
    # The other models may answer for hours, so a reader learns before which are left out.
    _report_absent(absent, absent, jobs)
    # The jobs of the run itself are named in its progress bars alone.
    live = [job for job in open_jobs if job not in jobs]
    for sentence in asked_live(live, "are asked now"):
        print(shown(sentence), file=sys.stderr)

    unrecorded = []
    for same_engine in _by_engine(open_jobs):
        _check_settled(same_engine)
        first = same_engine[0]
        engine = make_engine(first.engine, first.loaded, **options | first.options)
        with closing(engine):
            # This first pass only refuses: ambiguous recordings stop the run before anything is
            # stored.
            for job in same_engine:
                _turn_to(engine, job, categories)

            # The engine is turned again for each job, as it has only one round and category at a
            # time.
            for job in same_engine:
                if not _turn_to(engine, job, categories):
                    unrecorded.append(job)
                    continue
                try:
                    _fill(job, engine, budget)
                except LimitReached as reached:
                    message = _at_limit(reached, jobs, parameters)
                    raise EngineError(message) from reached

    absent += unrecorded
    _report_absent(unrecorded, absent, jobs)
    return [job for job in jobs if job not in absent]


def _by_engine(jobs: Iterable[Job]) -> Iterable[list[Job]]:
    """The jobs that one engine can answer, group by group."""
    groups: dict[tuple, list[Job]] = {}
    for job in jobs:
        # Recordings of one model may differ in the type of its weights, and so may live jobs.
        key = (job.loaded, job.engine, job.options.get("dtype"))
        groups.setdefault(key, []).append(job)
    return groups.values()


def _unanswered(jobs: Iterable[Job], options: dict[str, Any]) -> tuple[list[Job], list[Job]]:
    """The jobs that are left out, as their answers are only read, and those to be asked.

    Answers that a recording holds are copied from it first (`provide`).
    """
    # Hashing a model's folder reads all of its weights, and many jobs have one model.
    revision = cache(models.revision)
    absent = []
    open_jobs = []

    for job in jobs:
        # This comes first because it can change which folder the job reads.
        provide(job)
        if _is_answered(job, options | job.options, revision):
            continue
        if job.engine != STORED:
            open_jobs.append(job)
        elif job.live is not None and _goes_on(job.live, options, revision):
            open_jobs.append(job.live)
        else:
            absent.append(job)
    return absent, open_jobs


def _goes_on(live: Job, options: dict[str, Any], revision: Callable[[Path], str]) -> bool:
    """Whether a live job has a store to begin or complete; a line says why it has not."""
    try:
        _is_answered(live, options | live.options, revision)
    except StoreError as error:
        # The user did not name this engine, so the run goes on without the job.
        print(error, file=sys.stderr)
        return False
    return True


def _check_servers(jobs: Iterable[Job], options: dict[str, Any]) -> None:
    """Make and close the engine of each server's model, which reports a missing key."""
    by_model = {}
    for job in jobs:
        if job.engine == "inspect":
            by_model[job.model] = job

    for job in by_model.values():
        engine = make_engine(job.engine, job.loaded, **options | job.options)
        engine.close()


def _check_settled(jobs: Iterable[Job]) -> None:
    """Raise a ValueError where texts of a job's prompts are still to be written."""
    for job in jobs:
        if not job.settled:
            raise ValueError(f"{job.title}: texts of its prompts are still to be written")


def _turn_to(engine: Any, job: Job, categories: Iterable[str]) -> bool:
    """Make an engine of recordings answer this job next; False where it cannot.

    It cannot where it has no recording of the job's round and category. Any other engine can.
    EngineError where prompts of the job have several recordings that nothing tells apart.
    """
    if job.engine != "replay":
        return True

    has_some = engine.turn_to(job.round, job.labels.get("category", ""), categories)
    engine.tell_apart(job.design)
    return has_some


def _fill(job: Job, engine: Any, budget: Any) -> None:
    """Ask a job's missing prompts, and store the replies."""
    store = open_store(job.folder, job.design, engine, job.sampling, budget=budget)
    fill(job.design, engine, store, job.sampling, job.title, budget)


def _at_limit(reached: LimitReached, jobs: Iterable[Job], parameters: Mapping[str, Any]) -> str:
    """The message of a run that stops at its COST_LIMIT."""
    cost = money(cost_stored(jobs, parameters))
    return (
        f"{reached}; {count_stored(jobs):,} replies are stored, which cost {cost} in all "
        "runs, and the same command with a higher COST_LIMIT goes on"
    )


def _report_absent(new: Sequence[Job], absent: Sequence[Job], jobs: Sequence[Job]) -> None:
    """Print which new answers of which model are left out; a StoreError where all jobs are."""
    # Without any answer the notebook cannot go on; with some it goes on without the absent ones.
    if absent and len(absent) == len(jobs):
        raise StoreError(_absent_message(absent))
    if new:
        print(_absent_message(new), file=sys.stderr)


def _absent_message(absent: Iterable[Job]) -> str:
    """Say which answers are left out, a line per model."""
    sentences = []
    for of_model in jobs_by_model(absent).values():
        sentences.append(shown(_absent_sentence(of_model)))
    return "\n".join(sentences)


def _absent_sentence(absent: Sequence[Job]) -> str:
    """Say which answers of one model are not stored, why, and what asks for them."""
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
    """Name parts of a study in brackets, some of them where they are many."""
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


def _print_choices(jobs: Iterable[Job]) -> None:
    """Print which folder is read where several hold answers to the same job."""
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


def _other_identity(job: Job, folder: Path, manifest: Mapping[str, Any]) -> list[str]:
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
    """A model's name in the registry, or else the last part of a folder's path or a hub's name."""
    model = models.find(text)
    return model.name if model else Path(text).name


def _check_identity(job: Job, folder: Path, manifest: Mapping[str, Any]) -> None:
    """Raise an IdentityError where a store's answers are another model's or engine's."""
    # The first difference is enough for a sentence.
    for name in _other_identity(job, folder, manifest):
        raise IdentityError(
            f"{folder} holds answers of the {name} {manifest[name]!r}, which is not what its "
            "place says; nothing was changed: move that folder away"
        )


@cache
def _recorded_chats(file: Path) -> dict[str, str]:
    """Digests of the chats of recorded stores whose manifest has none, by the store's address."""
    if not file.exists():
        return {}
    table = read_table(file, ["job", "chats"])
    return dict(zip(table["job"], table["chats"], strict=True))


def _check_chats(job: Job, folder: Path, manifest: Mapping[str, Any]) -> None:
    """Raise a StoreError where a store answers other chats than its job renders now."""
    digest = chats_digest(folder, manifest)
    check_chats(folder, digest, job.design.chats_digest)


def chats_digest(folder: Path, manifest: Mapping[str, Any]) -> str:
    """Look up the digest of the chats that a store answers.

    Parameters
    ----------
    folder : Path
        The folder of the store.
    manifest : mapping
        Its manifest.

    Returns
    -------
    str
        The :attr:`ingroup.design.Design.chats_digest` of the store's design, from its manifest. For
        a recorded store whose manifest has none it is that in ``data/recordings/chats.csv``; ""
        where neither has one.
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
    """Whether a store holds all answers to a job, found out without the engine.

    A store that answers something else raises a StoreError. For the engine "stored" a line on the
    standard error says so instead, and the job is not answered.
    """
    folder = job.folder
    file = folder / "manifest.json"
    # Whether recordings changed since is known only by the engine that reads their file.
    if not file.exists() or job.engine == "replay":
        return False

    manifest = read_manifest(file)
    expected = pinned(job.design, job.sampling, manifest["shard_size"])
    expected |= _expected_identity(job, folder, manifest, options, revision)
    if job.engine == STORED:
        differences = _other_identity(job, folder, manifest)
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
    known = {name: v for name, v in manifest.items() if not name.startswith("sampling_")}
    store = Store(folder, known | expected, job.sampling.max_tokens)
    return _holds_all(store, job.engine, manifest.get("engine"))


def _expected_identity(
    job: Job,
    folder: Path,
    manifest: Mapping[str, Any],
    options: Mapping[str, Any],
    revision: Callable[[Path], str],
) -> dict[str, Any]:
    """What a store's manifest should say about the engine, as far as it is known without it."""
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
    """Whether an engine would ask nothing for a store; for "stored", prints damaged files."""
    state = store.state()
    # Any other engine names the damaged files when it asks again.
    if engine == STORED:
        for path in state.damaged:
            print(f"{path} is damaged", file=sys.stderr)

    if state.missing or state.damaged or store.has_unwritten:
        return False
    # A store under an engine's former name is only read, even where calls failed.
    if stored_engine in models.FORMER:
        return True

    # Servers ask their failed calls again; elsewhere a call would fail in the same way.
    retries_failed = engine in models.SERVERS
    return not (state.cut or (state.failed and retries_failed))


def stored(job: Job) -> Store:
    """Open the answers to a job for reading, as their own manifest describes them.

    It needs no engine.

    Parameters
    ----------
    job : Job
        The job.

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
