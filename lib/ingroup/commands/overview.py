"""The overview of a run in the map: its models, prompts, notebooks, findings and figures.

All functions read the executed copies, tables and figures of the run's notebooks.
"""

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
from IPython.display import HTML

from ingroup import (
    audit,
    claim_verdicts,
    examples,
    findings_sentences,
    models,
    notebook,
    notebook_cells,
    paths,
    sizes,
)
from ingroup.commands import report, run_parameters, settings
from ingroup.figures import read_table
from ingroup.inference import Job, answered_jobs
from ingroup.inference.job import is_recorded
from ingroup.studies.empathy_gap.stimuli import setting

# The readings of scored answers that the first picture shows, in its words.
READ_AS = {"expected": "average answer", "greedy": "greedy answer"}
LEAD_COLUMNS = ["model", "category", "setting", "read", "points", "p"]
SENTENCE_COLUMNS = ["sentence", "reading", "scope", "table", "notebook"]
REPLY_COLUMNS = [
    "study",
    "model",
    "kind",
    "filter",
    "notebook",
    "trials",
    "job",
    "trial",
    "excerpt",
    "prompt",
    "reasoning",
    "reply",
]


def linked(table: pd.DataFrame) -> HTML:
    """Write a table in HTML, with links to the notebooks that the table names.

    Parameters
    ----------
    table : DataFrame
        Any table. Its column ``notebook``, if there is one, has the names of notebooks.

    Returns
    -------
    HTML
        The table without its index. Every text is escaped and shown whole.
    """
    cells = table.map(lambda cell: html.escape(str(cell)))
    if "notebook" in cells:
        is_known = cells.notebook.isin(settings.notebooks())
        links = '<a href="' + cells.notebook + '.ipynb">' + cells.notebook + "</a>"
        cells["notebook"] = cells.notebook.where(~is_known, links)

    with pd.option_context("display.max_colwidth", None):
        text = cells.to_html(escape=False, index=False, border=0, justify="left")
    # JupyterLab's own style would align the cells to the right.
    return HTML(text.replace("<td>", '<td style="text-align: left">'))


def own_group_leads(run: str) -> pd.DataFrame:
    """Compute the own group's lead in the first study, in points of 100.

    Parameters
    ----------
    run : str
        The name of the run.

    Returns
    -------
    DataFrame
        One row per ``model``, ``category``, ``setting`` and reading (``read``). ``points`` is the
        mean rating within groups minus that between them, as a share of the setting's scale times
        100. ``p`` comes from the study's permutation test. No rows where the study has not run.

    Notes
    -----
    The rows of a model with scored answers come from the table ``readings`` of notebook 11, if it
    ran. All other rows come from the table ``table02_delta`` of notebook 10.
    """
    folder = _tables(run) / "empathy_gap"
    if not (folder / "table02_delta.csv").exists():
        return pd.DataFrame(columns=LEAD_COLUMNS)

    gaps = read_table(folder, "table02_delta").assign(reading="text", ending="turn")
    if (folder / "readings.csv").exists():
        # Only models with scored answers have several readings.
        readings = read_table(folder, "readings")
        is_scored = gaps.model.isin(readings.model)
        is_shown = readings.reading.isin(READ_AS)
        gaps = pd.concat([gaps[~is_scored], readings[is_shown]])

    gaps = gaps[(gaps.ending == "turn") & gaps.points.notna()]
    highest = gaps.setting.map(lambda name: setting(name).high)
    points = 100 * gaps.points / highest
    leads = gaps.assign(
        # The rounding makes a difference of 0 exactly 0.
        points=points.round(9),
        read=gaps.reading.map(READ_AS).fillna("written answer"),
        p=gaps.p_two_sided,
    )
    return leads[LEAD_COLUMNS]


def models_of(run: str) -> pd.DataFrame:
    """List the models of a run, and which notebooks asked them.

    Parameters
    ----------
    run : str
        The name of the run.

    Returns
    -------
    DataFrame
        One row per model and engine: ``model``, ``kind`` (:func:`ingroup.claim_verdicts.role`),
        ``answers`` and ``notebooks``, the numbers of the notebooks that asked. The column
        ``answers`` has the engine or "recorded". It has both if the run asked an engine for the
        answers that are not recorded.
    """
    sources = _sources_of_stored(run)
    numbers_by_model: dict[tuple[str, str], list[str]] = {}
    for name in settings.notebooks():
        for asked in _asked_by(name, run):
            numbers_by_model.setdefault(asked, []).append(name[:2])

    rows = []
    for (model, engine), numbers in numbers_by_model.items():
        answers = engine
        if engine == models.STORED:
            answers = "; ".join(sources.get(model, ["recorded"]))
        row = {
            "model": models.label(model),
            "kind": claim_verdicts.role(model),
            "answers": answers,
            "notebooks": ", ".join(numbers),
        }
        rows.append(row)
    return pd.DataFrame(rows)


def _sources_of_stored(run: str) -> dict[str, list[str]]:
    """Find the sources of each model's stored answers: "recorded", or the engines asked."""
    sources: dict[str, list[str]] = {}
    for name in settings.first_notebooks():
        values = notebook.parameters_of_run(name, run)
        if not values:
            continue

        for job in run_parameters.jobs_of(name, values):
            if job.engine != models.STORED or not job.folders:
                continue
            folder = job.folder
            _, _, engine = folder.parent.name.rpartition("@")
            source = "recorded" if is_recorded(folder) else engine
            of_model = sources.setdefault(job.loaded, [])
            if source not in of_model:
                of_model.append(source)
    return sources


def _asked_by(name: str, run: str) -> list[tuple[str, str]]:
    """List the models that a notebook of a run asked, each with its engine."""
    values = notebook.parameters_of_run(name, run) or {}
    # Notebooks without this parameter read what others asked.
    if "ENGINE" not in values:
        return []
    return _models_named_in(values)


def _models_named_in(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """List the models that the parameters of a notebook name, each with its engine."""
    engine = values.get("ENGINE", "")
    named = []
    for entry in values.get("MODELS", []):
        named.append(models.split_entry(entry, engine))
    return named


def has_calibrant(run: str) -> bool:
    """Tell whether a calibrant is among the models of a run.

    Parameters
    ----------
    run : str
        The name of the run.

    Returns
    -------
    bool
        True also for a run in which no notebook has asked a model.
    """
    names = []
    for notebook_name in settings.notebooks():
        for model, _ in _asked_by(notebook_name, run):
            names.append(model)
    return not names or any(map(models.is_calibrant, names))


def prompts(names: Iterable[str], run: str) -> pd.DataFrame:
    """Count the prompts and items of the studies, in the papers and in a run.

    Parameters
    ----------
    names : iterable of str
        The studies' notebooks.
    run : str
        The name of the run.

    Returns
    -------
    DataFrame
        One row per notebook that ran, whose name is the index: "the paper's" prompts, the prompts
        of each model, "the paper's items" and the items "here". The numbers are texts.
    """
    rows = []
    for name in names:
        values = notebook.parameters_of_run(name, run)
        if values:
            claims_of_paper = audit.read_judgements("claims", run_parameters.folder_of(name))
            of_paper = claims_of_paper.set_index("claim").printed
            rows.append(_prompts_of(name, values, of_paper))
    if not rows:
        return pd.DataFrame(index=pd.Index([], name="notebook"))

    counts = pd.DataFrame(rows).set_index("notebook")
    return counts.map("{:,.0f}".format).replace("nan", "not asked")


def _prompts_of(
    name: str, values: Mapping[str, Any], printed: Mapping[str, str]
) -> dict[str, str | int]:
    """Make the row of `prompts` for a notebook."""
    # The paper's prompts are counted with our whole design, also if this run asks less. A calibrant
    # answers each prompt once, while a scored model writes free text about some items, too.
    usual = run_parameters.merged_parameters(name, "demo", {})
    one_model = models.calibrants()[:1]
    whole = _stored_or_live(name, {**usual, "MODELS": one_model})
    study = run_parameters.folder_of(name)
    n_prompts, n_items = sizes.sizes_of_paper(study, whole, printed)

    jobs = _stored_or_live(name, values)
    row: dict[str, Any] = {"notebook": name, "the paper's": n_prompts}
    for job in jobs:
        model = models.label(job.model)
        row[model] = row.get(model, 0) + len(job.design)
    row["the paper's items"] = n_items
    row["here"] = sizes.n_items(jobs)
    return row


def _stored_or_live(name: str, values: Mapping[str, Any]) -> list[Job]:
    """List the jobs of a notebook that have stored answers or that an engine can answer."""
    kept = []
    for job in run_parameters.jobs_of(name, values):
        if job.engine != models.STORED or answered_jobs([job]):
            kept.append(job)
    return kept


def notebooks_with_status(run: str) -> pd.DataFrame:
    """List the notebooks except the map, each with its models, its verdicts and its duration.

    Parameters
    ----------
    run : str
        The name of the run.

    Returns
    -------
    DataFrame
        One row per notebook. ``what it is`` says whether its models are real or calibrants, or that
        it has not run. All other columns are empty where they do not apply.
    """
    rows = []
    for name in settings.notebooks():
        if run_parameters.folder_of(name) != "map":
            rows.append(_status_of(name, run))
    return pd.DataFrame(rows).fillna("")


def _status_of(name: str, run: str) -> dict[str, str]:
    """Make the row of `notebooks_with_status` for a notebook."""
    executed = paths.executed(name, run)
    if not executed.exists():
        is_default = run == paths.DEFAULT_RUN
        when = f"not yet: make {name[:2]}" if is_default else "not in this run"
        return {"notebook": name, "what it is": when}

    about = json.loads(executed.read_text("utf8"))["metadata"]["papermill"]
    values = about["parameters"]
    asked = _models_named_in(values)
    names = [model for model, _ in asked]
    # Two models may share an engine.
    engines = dict.fromkeys(engine for _, engine in asked)

    verdicts = ""
    n_prompts = 0
    # The numbers of a study are counted once, with its first notebook.
    if name[1] == "0":
        folder = _tables(run) / run_parameters.folder_of(name)
        verdicts = _verdicts(folder)
        n_prompts = _n_prompts(folder)
    return {
        "notebook": name,
        "what it is": _kind(names),
        "verdicts": verdicts,
        "models": "; ".join(map(models.label, names)),
        "engines": "; ".join(engines),
        "prompts": f"{n_prompts:,.0f}" if n_prompts else "",
        "seconds": f"{about['duration']:.0f}",
    }


def _kind(names: Sequence[str]) -> str:
    """Say in words whether models are real or calibrants."""
    if not names:
        return "no model asked"

    n_calibrants = sum(map(models.is_calibrant, names))
    if n_calibrants == len(names):
        return "a demonstration"
    return "both" if n_calibrants else "real"


def _verdicts(folder: Path) -> str:
    """Count the verdicts on the tables in a folder, in words."""
    parts = report.count_verdicts(folder)
    if (folder / "summary.csv").exists():
        checks = read_table(folder, "summary").drop(columns=["paper", "check"])
        for kind, number in checks.sum().items():
            parts.append(f"{kind}: {number:,}")
    return "; ".join(parts)


def _n_prompts(folder: Path) -> int:
    """Count the prompts in a study's table of usage. Return 0 where the table is missing."""
    file = folder / "usage.csv"
    if not file.exists():
        return 0
    usage = pd.read_csv(file)
    return usage[usage.model != "all"].prompts.sum()


def sentences(claims: pd.DataFrame, run: str) -> pd.DataFrame:
    """Collect sentences on the papers' slips, the verdicts on each model, and the findings.

    Parameters
    ----------
    claims : DataFrame
        The table of :func:`ingroup.claim_verdicts.by_claim`, which may have no rows.
    run : str
        The name of the run.

    Returns
    -------
    DataFrame
        One row per ``sentence``, with the ``notebook`` that it comes from. The findings
        of ``docs/findings.md`` are about the default run, so only the default run lists them. These
        rows also have a ``reading``, a ``scope`` and a ``table``.
    """
    rows = [{"sentence": _slips(run), "notebook": "50_audit"}]
    if len(claims):
        for model, of_model in claims.groupby("model", sort=False):
            sentence = claim_verdicts.sentence_on_model(str(model), of_model.verdict)
            rows.append({"sentence": sentence, "notebook": "60_synthesis"})
    if run == paths.DEFAULT_RUN:
        rows += _findings(run)
    return pd.DataFrame(rows, columns=SENTENCE_COLUMNS, dtype=object).fillna("")


def _slips(run: str) -> str:
    """Say in one sentence which slips of the audit change a claim."""
    folder = _tables(run) / "audit"
    if not (folder / "slips.csv").exists():
        return "The audit has not run."

    sources = _sources()
    titles = {}
    for name in settings.first_notebooks():
        first_cell = sources[name].cells[0]
        heading, *_ = first_cell.source.splitlines()
        titles[run_parameters.folder_of(name)] = heading.removeprefix("# ")
    return claim_verdicts.sentence_on_slips(read_table(folder, "slips"), titles)


def _findings(run: str) -> list[dict[str, str]]:
    """List the findings of ``docs/findings.md`` that follow from a run's tables."""
    sources = _sources()
    rows = []
    for claim in findings_sentences.supported_claims(_tables(run), findings_sentences.load()):
        study, _, table = claim.table.partition("/")
        of_study = {}
        for name, source in sources.items():
            if run_parameters.folder_of(name) == study:
                of_study[name] = source
        row = {
            "sentence": claim.whole,
            "reading": claim.reading,
            "scope": claim.scope,
            "table": claim.table,
            "notebook": notebook_cells.writer_of(of_study, table),
        }
        rows.append(row)
    return rows


def example_replies(names: Iterable[str], run: str) -> pd.DataFrame:
    """Choose prompts and replies of a run as examples.

    Parameters
    ----------
    names : iterable of str
        The studies' notebooks.
    run : str
        The name of the run.

    Returns
    -------
    DataFrame
        One row per example (:func:`ingroup.examples.examples_of_study`), with its ``study`` and
        ``notebook``.
    """
    rows = []
    for name in names:
        values = notebook.parameters_of_run(name, run)
        if not values:
            continue

        study = run_parameters.folder_of(name)
        jobs = run_parameters.jobs_of(name, values)
        for example in examples.examples_of_study(jobs, _tables(run) / study):
            rows.append({"study": study, "notebook": name, **example})
    return pd.DataFrame(rows, columns=REPLY_COLUMNS)


def figures(run: str) -> pd.DataFrame:
    """List the figures of a run, and where each is made.

    Parameters
    ----------
    run : str
        The name of the run.

    Returns
    -------
    DataFrame
        One row per figure: ``study``, ``figure``, the ``notebook`` that saves it, and the heading
        ``below`` which its code stands. Both are "" where no notebook saves it.
    """
    sources = _sources()
    rows = []
    for file in sorted(paths.figure_folder(run).glob("*/*.png")):
        study = file.parent.name
        row = {"study": study, "figure": file.stem, "notebook": "", "below": ""}
        for name, source in sources.items():
            if run_parameters.folder_of(name) != study:
                continue
            heading = notebook_cells.heading_of(source, file.stem)
            if heading:
                row["notebook"] = name
                row["below"] = heading
                break
        rows.append(row)

    made = pd.DataFrame(rows, columns=["study", "figure", "notebook", "below"])
    return made.sort_values(["notebook", "figure"], kind="stable")


def glossary(run: str) -> pd.DataFrame:
    """Read the terms of Ingroup that a reader of a run needs.

    Parameters
    ----------
    run : str
        The name of the run.

    Returns
    -------
    DataFrame
        The rows of ``data/glossary.csv``. If no calibrant ran, rows about calibrants are left out.
    """
    words = pd.read_csv(paths.DATA / "glossary.csv", keep_default_na=False)
    if has_calibrant(run):
        return words

    texts = words.word + words.meaning
    names = "|".join(models.calibrants())
    return words[~texts.str.contains(names)]


def _tables(run: str) -> Path:
    """Return the folder of a run's tables."""
    return paths.run_folder(run) / "tables"


def _sources() -> dict[str, nbformat.NotebookNode]:
    """Read all notebooks of the repository, by name."""
    sources = {}
    for name in settings.notebooks():
        file = paths.NOTEBOOKS / f"{name}.ipynb"
        sources[name] = nbformat.read(file, as_version=4)
    return sources
