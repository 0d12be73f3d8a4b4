"""The files of a run, read for its appendix: notebooks, tables, figures, stores of answers.

A file that is missing or cannot be read raises no error. The appendix then says that the run lacks
the file.
"""

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.errors import EmptyDataError, ParserError

from ingroup import figures, models, notebook_cells, paths
from ingroup.commands.run_parameters import folder_of, jobs_of, study_of
from ingroup.inference import EngineError, Job, Store, StoreError, jobs_by_model, parts
from ingroup.inference.job import chats_digest, folder_name, is_recorded
from ingroup.inference.store import read_manifest
from ingroup.notebook import parameters_of_run
from ingroup.tables import InputError

# Errors that may arise from a run of another version, or from a run whose files were moved.
UNREADABLE = (
    InputError,
    StoreError,
    EngineError,
    OSError,
    ImportError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
)

HEADING = re.compile(r"^#+ (.*)", re.MULTILINE)


@dataclass(frozen=True)
class Stored:
    """The stored answers to one job.

    Attributes
    ----------
    job : Job
        The job.
    folder : Path
        Where the answers are.
    manifest : dict
        The manifest of the store: the questions, the engine and the sampling.
    is_recorded : bool
        Whether the repository brought them.
    written : str
        The days of the first and the last file, e.g. "2026-11-26". "" for recorded answers, whose
        files have the time of their checkout.
    """

    job: Job
    folder: Path
    manifest: dict[str, Any]
    is_recorded: bool
    written: str

    @property
    def address(self) -> str:
        """Name the folder, starting below the folder of all responses or all recordings.

        Returns
        -------
        str
            Its last four parts: study, source, model with engine, part.
        """
        address = "/".join(self.folder.parts[-4:])
        # Earlier versions put the whole path of a user's own model into the address. A path on a
        # machine is private.
        return address.replace(folder_name(self.job.loaded), folder_name(self.job.model))

    @property
    def root(self) -> str:
        """Name the folder that holds the address, starting at this project's root.

        Returns
        -------
        str
            A folder of answers of this machine, of recordings, or of parts of recordings.
        """
        if paths.RECORDINGS in self.folder.parents:
            return "data/recordings/<model>"
        return "build/responses/excerpts" if self.is_recorded else "build/responses"

    @property
    def chats(self) -> str:
        """Return the digest of the rendered chats.

        Returns
        -------
        str
            As :func:`ingroup.inference.job.chats_digest`.
        """
        return chats_digest(self.folder, self.manifest)

    @cached_property
    def revision(self) -> str:
        """Name the weights that answered.

        Returns
        -------
        str
            The revision that the manifest has. The manifest of a server has none, so the names
            that the replies give to the model take its place. "" if they give no name.
        """
        if self.manifest.get("revision"):
            return str(self.manifest["revision"])
        if self.manifest.get("engine") not in models.SERVERS:
            return ""

        names: dict[str, None] = {}
        try:
            for part in parts(Store(self.folder, self.manifest), ["model"]):
                names |= dict.fromkeys(part["model"].astype(str).unique())
        except UNREADABLE:
            return ""
        return ", ".join(filter(None, names))

    @property
    def engine(self) -> str:
        """Name the engine, its version and the precision of the weights.

        Returns
        -------
        str
            The names that the manifest has, with a dash in place of a missing engine.
        """
        name = str(self.manifest.get("engine", ""))
        version = str(self.manifest.get("engine_version", ""))
        engine = f"{name} {version}".strip() or "–"
        precision = self.manifest.get("dtype")
        return f"{engine}, {precision}" if precision else engine


class Run:
    """The files of a run, as its appendix needs them.

    Parameters
    ----------
    name : str
        The name of the run, "default" for the default run.

    Raises
    ------
    InputError
        For a name that cannot be the name of a folder.
    """

    def __init__(self, name: str):
        self.name = name
        self.is_default = name == paths.DEFAULT_RUN
        self._parameters: dict[str, dict[str, Any]] = {}
        self.folder = paths.run_folder(name)
        self.figures = paths.figure_folder(name)

    @property
    def title_of_run(self) -> str:
        """Name the run within a sentence.

        Returns
        -------
        str
            E.g. "the run N_EVENTS-6 of SmolLM2-135M". The default run is named without its models.
        """
        if self.is_default:
            return "the default run"
        labels = self.model_names_text
        return f"the run {self.name} of {labels}" if labels else f"the run {self.name}"

    @property
    def model_names_text(self) -> str:
        """Name the run's models.

        Returns
        -------
        str
            Their labels with commas between them; "" without a model.
        """
        return ", ".join(map(models.label, self.models))

    @cached_property
    def notebooks(self) -> list[str]:
        """List the notebooks that ran.

        Returns
        -------
        list of str
            Names without a suffix, by number.
        """
        return paths.executed_notebooks(self.name)

    @cached_property
    def studies(self) -> dict[str, str]:
        """List the studies that ran.

        Returns
        -------
        dict of str
            The first notebook of each study, which asks its prompts, by study.
        """
        first = {}
        for name in self.notebooks:
            study = study_of(name)
            # Later notebooks of a study have more words behind its name.
            if study == name.partition("_")[2]:
                first[study] = name
        return first

    def notebooks_of_study(self, study: str) -> list[str]:
        """List the notebooks of a study that ran.

        Parameters
        ----------
        study : str
            The name of a study's folder, e.g. ``"empathy_gap"``.

        Returns
        -------
        list of str
            Names without a suffix, by number.
        """
        return [name for name in self.notebooks if study_of(name) == study]

    @cached_property
    def books(self) -> dict[str, dict[str, Any]]:
        """Read the executed notebooks.

        Returns
        -------
        dict of dict
            By the notebook's name, its ``cells`` and ``metadata``. Both are empty where the file is
            damaged.
        """
        books = {}
        for notebook in self.notebooks:
            try:
                text = paths.executed(notebook, self.name).read_text("utf8")
                book = json.loads(text)
                # The conversions refuse a damaged file here, and not later within a section.
                parts = {"cells": list(book["cells"]), "metadata": dict(book["metadata"])}
            except UNREADABLE:
                parts = {"cells": [], "metadata": {}}
            books[notebook] = parts
        return books

    def title(self, notebook: str) -> str:
        """Return the first heading of a notebook.

        Parameters
        ----------
        notebook : str
            One of `notebooks`.

        Returns
        -------
        str
            The heading, or the name of a notebook without one.
        """
        for cell in self.books[notebook]["cells"]:
            heading = HEADING.match("".join(cell["source"]))
            if heading:
                return heading[1].strip()
        return notebook

    def parameters(self, notebook: str) -> dict[str, Any]:
        """Read the parameters that a notebook ran with.

        Parameters
        ----------
        notebook : str
            One of `notebooks`.

        Returns
        -------
        dict
            The parameters. Empty where they cannot be read.
        """
        if notebook not in self._parameters:
            self._parameters[notebook] = self._read_parameters(notebook)
        return self._parameters[notebook]

    def _read_parameters(self, notebook: str) -> dict[str, Any]:
        """Read the parameters of an executed notebook. Return no parameters from a damaged file."""
        try:
            return parameters_of_run(notebook, self.name) or {}
        except UNREADABLE:
            return {}

    def summary(self, notebook: str) -> list[str]:
        """Read the summary of a notebook's run: its seconds, and the parameters that it changed.

        Parameters
        ----------
        notebook : str
            One of `notebooks`.

        Returns
        -------
        list of str
            The lines, or no line where there is no such file.
        """
        file = paths.executed(notebook, self.name).with_suffix(".txt")
        if not file.is_file():
            return []
        return file.read_text("utf8").splitlines()

    def started(self, notebook: str) -> str:
        """Say when a notebook's run began.

        Parameters
        ----------
        notebook : str
            One of `notebooks`.

        Returns
        -------
        str
            Day and minute in UTC, e.g. "2026-11-26 07:24", or "" where they are not known.
        """
        papermill = self.books[notebook]["metadata"].get("papermill", {})
        start = papermill.get("start_time", "")
        try:
            return datetime.fromisoformat(start).strftime("%Y-%m-%d %H:%M")
        except (TypeError, ValueError):
            return ""

    def table(self, study: str, name: str) -> pd.DataFrame | None:
        """Read a table of the run.

        Parameters
        ----------
        study : str
            The name of a study's folder, e.g. ``"empathy_gap"``.
        name : str
            The table's name, without a suffix.

        Returns
        -------
        DataFrame or None
            The table, or None where it is missing or has no rows.
        """
        try:
            table = figures.read_table(self.folder / "tables" / study, name)
        # pandas has errors of its own for a file that is empty or torn.
        except (*UNREADABLE, EmptyDataError, ParserError):
            return None
        return None if table.empty else table

    def table_names(self, study: str) -> list[str]:
        """List the tables of a study that were written.

        Parameters
        ----------
        study : str
            The name of a study's folder, e.g. ``"empathy_gap"``.

        Returns
        -------
        list of str
            Names without a suffix, sorted.
        """
        files = (self.folder / "tables" / study).glob("*.csv")
        return sorted(file.stem for file in files)

    def paper_layout_tex(self, study: str, name: str) -> str:
        """Read the LaTeX of a table in the layout of the paper.

        Parameters
        ----------
        study : str
            The name of a study's folder, e.g. ``"empathy_gap"``.
        name : str
            The table's name, without a suffix.

        Returns
        -------
        str
            The LaTeX of the table, or "" if the run wrote none.
        """
        file = self.folder / "tables" / study / f"{name}.tex"
        return file.read_text("utf8") if file.is_file() else ""

    def figure_names(self, study: str) -> list[str]:
        """List the figures of a study that were drawn.

        Parameters
        ----------
        study : str
            The name of a study's folder, e.g. ``"empathy_gap"``.

        Returns
        -------
        list of str
            Names without a suffix, sorted.
        """
        folder = self.figures / study
        files = [*folder.glob("*.pdf"), *folder.glob("*.png")]
        return sorted({file.stem for file in files})

    def figure_files(self, study: str, name: str) -> list[Path]:
        """List the files of a figure.

        Parameters
        ----------
        study : str
            The name of a study's folder, e.g. ``"empathy_gap"``.
        name : str
            The figure's name, without a suffix.

        Returns
        -------
        list of Path
            Its PDF and its PNG, where they exist.
        """
        pdf = self.figures / study / f"{name}.pdf"
        return list(filter(Path.is_file, [pdf, pdf.with_suffix(".png")]))

    @cached_property
    def models(self) -> list[str]:
        """List the models of the run.

        Returns
        -------
        list of str
            Each name once, as the notebooks spell it, in their order.
        """
        names = []
        for notebook in self.notebooks:
            parameters = self.parameters(notebook)
            for entry in parameters.get("MODELS") or []:
                name, _ = models.split_entry(entry, parameters.get("ENGINE", ""))
                if name not in names:
                    names.append(name)
        return names

    @cached_property
    def stored_by_study(self) -> dict[str, tuple[list[Stored], list[str]]]:
        """Find the stored answers to the jobs of each study.

        Returns
        -------
        dict of tuple
            By the study, a list of `Stored`, and sentences on jobs without stored answers.
        """
        return {study: self._stores_of(study) for study in self.studies}

    def _stores_of(self, study: str) -> tuple[list[Stored], list[str]]:
        """Find the stored answers to one study's jobs, and say which jobs have no answers."""
        notebook = self.studies[study]
        try:
            jobs = jobs_of(notebook, self.parameters(notebook))
        except UNREADABLE as error:
            return [], [f"What {notebook} asked cannot be read: {first_line(error)}"]

        stores = []
        jobs_without = []
        for job in jobs:
            try:
                stores.append(_stored(job))
            # A job without readable answers does not hide the answers to other jobs.
            except UNREADABLE:
                jobs_without.append(job)
        return stores, _absent(jobs_without)

    def captions(self, study: str) -> dict[str, str]:
        """Find the captions of a study's figures, in the notebooks that drew them.

        Parameters
        ----------
        study : str
            The name of a study's folder, e.g. ``"empathy_gap"``.

        Returns
        -------
        dict of str
            By the figure's name, markdown, or "" where no cell is found.
        """
        cells = []
        for notebook in self.notebooks:
            if folder_of(notebook) == study:
                cells += self.books[notebook]["cells"]

        captions = {}
        for name in self.figure_names(study):
            captions[name] = notebook_cells.text_above(cells, name, _caption)
        return captions


def first_line(error: object) -> str:
    """Cut a message to its first line, and its paths to the part within this project.

    Parameters
    ----------
    error : object
        An error, or its message.

    Returns
    -------
    str
        The line, with paths from ``build``, ``data`` or ``notebooks`` on.
    """
    first, _, _ = str(error).partition("\n")
    return re.sub(r"/\S*/(?=(build|data|notebooks)/)", "", first)


def _stored(job: Job) -> Stored:
    """Find the stored answers to a job. Raise a StoreError or an OSError if no answers exist."""
    folder = job.folder
    manifest = read_manifest(folder / "manifest.json")
    from_repository = is_recorded(folder)
    written = "" if from_repository else _days(folder)
    return Stored(job, folder, manifest, from_repository, written)


def _days(folder: Path) -> str:
    """Name the first and the last day on which the files of a store were written."""
    days = set()
    # Supplements count as well: their answers came later.
    for file in folder.glob("part-*"):
        time = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        days.add(time.strftime("%Y-%m-%d"))
    return range_text(days)


def range_text(values: Collection[Any]) -> str:
    """Write the smallest and the largest of some values.

    Parameters
    ----------
    values : collection
        Values that can be sorted.

    Returns
    -------
    str
        E.g. "1 to 5", the value alone where all are the same, or "" without a value.
    """
    if not values:
        return ""
    first = min(values)
    last = max(values)
    return str(first) if first == last else f"{first} to {last}"


def _absent(jobs: list[Job]) -> list[str]:
    """Count the jobs without stored answers in a sentence per model, which names the first job."""
    sentences = []
    for model, of_model in jobs_by_model(jobs).items():
        first, *others = of_model
        labels = " ".join(map(str, first.labels.values()))
        more = f", and {len(others)} more" if others else ""
        sentences.append(
            f"{models.label(model)}: no stored answers to {len(of_model)} of the jobs "
            f"({labels}, {first.mode}{more})."
        )
    return sentences


def _caption(source: str) -> str:
    """Find the caption in a markdown cell: the last paragraph in bold, or else the last heading."""
    for paragraph in reversed(re.split(r"\n\s*\n", source)):
        if paragraph.startswith("**"):
            return paragraph

    headings = HEADING.findall(source)
    return headings[-1].strip() if headings else ""
