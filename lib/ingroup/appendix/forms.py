"""Checklists, model cards and references, filled with the answers of a run.

The questions stand in ``templates/checklists.yaml``. A question that the run does not answer is
left to the authors.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from ingroup import models, paths
from ingroup.appendix.content import (
    DASH,
    Answer,
    Answers,
    Block,
    Heading,
    Paragraph,
    Prose,
    Reference,
)
from ingroup.appendix.run import Run, Stored
from ingroup.commands.executed import as_typed
from ingroup.families import families
from ingroup.inference.cost import money

FORMS = Path(__file__).with_name("templates") / "checklists.yaml"


@cache
def forms() -> dict[str, Any]:
    """Read the questions of the checklists and of a model card.

    Returns
    -------
    dict
        ``checklists``, and ``card``, the fields of a model card.
    """
    return yaml.safe_load(FORMS.read_text("utf8"))


def checklists(run: Run) -> list[Block]:
    """Fill the checklists, item by item, with the answers of a run.

    Parameters
    ----------
    run : Run
        The run that the appendix is about.

    Returns
    -------
    list of Block
        A paragraph, then a heading and the items of each checklist.
    """
    facts = facts_of(run)

    blocks: list[Block] = [
        Paragraph(
            "The questions are in short form; the form of the venue has them whole. Each answer "
            "names the file that it was read from. The other items are to be answered by the "
            "authors."
        ),
    ]
    for checklist in forms()["checklists"]:
        items = checklist["items"]
        blocks += [Heading(checklist["name"], 2), _answered(items, facts)]
    return blocks


def _answered(items: list[dict[str, Any]], facts: Mapping[str, tuple[str, str]]) -> Answers:
    """Fill the items of a form with the answers of a run."""
    rows = []
    for item in items:
        question = item["question"]
        if "number" in item:
            question = f"{item['number']}. {question}"
        # A question that the run does not answer is left to the authors, with an empty answer.
        text, source = facts.get(item.get("answer", ""), ("", ""))
        rows.append(Answer(question, text, source))
    return Answers(rows)


def facts_of(run: Run) -> dict[str, tuple[str, str]]:
    """Answer the questions of the checklists that a run can answer.

    Parameters
    ----------
    run : Run
        The run that the appendix is about.

    Returns
    -------
    dict of tuple of str
        By the key of a question, the answer and the files that it was read from.
    """
    stores = _all_stores(run)
    citation = _citation()

    facts = {
        "limits": (
            "The section “Limits” quotes those of the studies. The authors add those of their "
            "paper.",
            "notebooks of the run",
        ),
        "asked": (
            "The section “What was asked” has prompts, engines, revisions and sampling. “Stores "
            "of answers” has the digests that pin the prompts.",
            "manifests of the stored answers",
        ),
        "code": (
            f"Code, prompts and printed tables are in the repository of Ingroup, version "
            f"{citation['version']}, under the licence {citation['license']}.",
            "CITATION.cff",
        ),
        "licence": (
            f"The licence of Ingroup is {citation['license']}. Cards of its data name theirs.",
            "CITATION.cff and data/README.md",
        ),
        "cited": (
            "The references have the four papers, the works that the appendix names, and this "
            "project.",
            "CITATION.cff",
        ),
        "cards": _described(run, stores),
        "statistics": (_statistics(run), "data/families.yaml and tables of the run"),
        "compute": (_compute(run), "usage.csv and notebooks of the run"),
        "engines": (_engines(stores), "manifests and requirements.lock"),
        "people": _people(run),
        "subjects": (
            f"Language models were asked as objects of study: {run.model_names_text or 'none'}.",
            "parameters of the notebooks",
        ),
        "claims": (
            "“Claims on every path of the analysis” gives the share of defensible analyses on "
            "which each claim stands.",
            "multiverse_shares.csv",
        ),
        "people_are_no_subject": (
            "A model’s answers are about that model and its weights. Nothing in this appendix is "
            "about people.",
            "README.md",
        ),
    }

    # Facts whose section this run does not have are left out, as they would send the reader
    # nowhere.
    if run.table("synthesis", "multiverse_shares") is None:
        del facts["claims"]
    if not stores:
        del facts["asked"]
    return {key: fact for key, fact in facts.items() if fact[0]}


def _described(run: Run, stores: list[Stored]) -> tuple[str, str]:
    """Name the parts of this run that have a card in the repository, and the files of the cards."""
    described = ["prompts", "corpora"]
    source = "data/README.md"
    if any(map(models.is_calibrant, run.models)):
        described.append("calibrants")
    if any(stored.is_recorded for stored in stores):
        described.append("recorded answers")
        source += " and data/recordings"
    return f"Cards describe {_joined(described)}.", source


def _all_stores(run: Run) -> list[Stored]:
    """List the stored answers of all studies."""
    stores = []
    for of_study, _ in run.stored_by_study.values():
        stores += of_study
    return stores


def _statistics(run: Run) -> str:
    """Say how the tests of the studies that ran are corrected. Return "" without a study."""
    parts = []
    for study, family in families().items():
        if study not in run.studies:
            continue
        method = "Holm’s" if family.method == "holm" else "the largest statistic’s"
        title = run.title(run.studies[study])
        parts.append(f"{title}: {method} correction at {family.level:g}")

    if not parts:
        return ""
    return (
        f"Tables give n, intervals, p and corrected p. {'; '.join(parts)}. “Tests, power and what "
        "could be found” counts the tests that could not have been significant."
    )


def _compute(run: Run) -> str:
    """Sum up the prompts, tokens, cost and seconds of all studies. Return "" without usage.csv."""
    jobs = []
    for study in run.studies:
        usage = run.table(study, "usage")
        if usage is not None:
            jobs.append(usage[usage["model"] != "all"])
    if not jobs:
        return ""

    seconds = 0
    for notebook in run.notebooks:
        first, *_ = run.summary(notebook) or [""]
        # The first line reads "10_empathy_gap: 52 s, ...".
        took = re.search(r": (\d+) s\b", first)
        seconds += int(took[1]) if took else 0

    # The row "all" of each table was left out above, so nothing is counted twice.
    sums = pd.concat(jobs).sum(numeric_only=True)
    tokens = sums["prompt_tokens"] + sums["output_tokens"]
    return (
        f"{sums['prompts']:,.0f} prompts with {tokens:,.0f} tokens, at a cost of "
        f"{money(float(sums['cost']))}. The notebooks took {seconds:,} seconds. These include "
        "the time of asking for answers that were not stored before the run."
    )


def _engines(stores: list[Stored]) -> str:
    """Name the engines with their versions. Return "" without an engine."""
    engines = dict.fromkeys(stored.engine for stored in stores)
    if not engines:
        return ""
    return f"Engines: {'; '.join(engines)}. All other packages are pinned with their hashes."


def _people(run: Run) -> tuple[str, str]:
    """Say whether the run was given sheets that people filled, and where this was read."""
    sheets = []
    for notebook in run.notebooks:
        parameters = run.parameters(notebook)
        for name in ("SHEET", "SHEETS"):
            if parameters.get(name):
                sheets.append(f"{name} of notebook {notebook[:2]}")

    source = "parameters SHEET and SHEETS of the notebooks"
    if sheets:
        given = ", ".join(sheets)
        return (
            f"People’s judgements were read ({given}). The authors describe who they are.",
            source,
        )
    return "No sheet that people filled was given to this run.", source


# ---- model cards ---------------------------------------------------------------------------------


def cards(run: Run) -> list[Block]:
    """Fill the fields of a model card for each model that was asked.

    Parameters
    ----------
    run : Run
        The run that the appendix is about.

    Returns
    -------
    list of Block
        A paragraph, then a heading and the fields for each model, and the card of its recordings
        where there is one.
    """
    stores = _all_stores(run)
    general = facts_of(run)
    blocks: list[Block] = [
        Paragraph(
            "The fields are those of Mitchell et al. (2019), Model Cards for Model Reporting."
        ),
    ]

    for model in run.models:
        # A model's folder is compared as it was given: two folders may have one label.
        of_model = [stored for stored in stores if stored.job.loaded == model]
        # Facts about this model replace those about the whole run.
        facts = general | card_of(run, model, of_model)
        blocks += [Heading(models.label(model), 2), _answered(forms()["card"], facts)]
        # A folder may have the name of a recorded model, and yet answers that were not recorded.
        if any(stored.is_recorded for stored in of_model):
            blocks += _recorded_card(model)
    return blocks


def card_of(run: Run, model: str, stores: list[Stored]) -> dict[str, tuple[str, str]]:
    """Fill the fields of a model card from the registry, the manifests and the tables.

    Parameters
    ----------
    run : Run
        The run that the appendix is about.
    model : str
        One of the run's models.
    stores : list of Stored
        The stores of this model's answers.

    Returns
    -------
    dict of tuple of str
        By the key of a field, the answer and the files that it was read from.
    """
    facts = {}
    # A model that the registry does not know is named by its parameter alone.
    known = models.find(model)
    if known:
        name = known.hub_id or known.name
        facts["name"] = (
            f"{name}, of the series {known.series}; {known.access} weights",
            "models.csv",
        )
    else:
        facts["name"] = (as_typed("MODELS", [model]), "parameter MODELS")

    if models.is_calibrant(model):
        facts["use"] = (
            "A control that this project trained. It shows built-in biases or none, and says "
            "nothing about any real model.",
            f"data/models/{models.label(model)}",
        )
    if stores:
        facts |= _asked_of(run, stores)
    return facts


def _asked_of(run: Run, stores: list[Stored]) -> dict[str, tuple[str, str]]:
    """Fill the fields of a model card from the stores of the model's answers."""
    rows = []
    for stored in stores:
        rows.append(
            {
                "study": run.title(run.studies[stored.job.study]),
                "mode": stored.job.mode,
                "engine": stored.engine,
                "revision": stored.revision or DASH,
                "prompts": int(stored.manifest.get("trials", 0)),
            }
        )
    asked = pd.DataFrame(rows)

    prompts = asked["prompts"].sum()
    studies = ", ".join(asked["study"].unique())
    modes = " and ".join(asked["mode"].unique())
    metrics = "The statistics of the papers; see the tables of this appendix."
    factors = "The groups that the prompts name; see “What was asked”."
    return {
        "revision": (", ".join(asked["revision"].unique()), "manifests"),
        "version": ("; ".join(asked["engine"].unique()), "manifests"),
        "data": (f"{prompts:,} prompts of {studies}, answered as {modes}.", "manifests"),
        "metrics": (metrics, "tables of the run"),
        "factors": (factors, "prompts"),
    }


def _recorded_card(model: str) -> list[Block]:
    """Quote the card that lies beside a model's recorded answers, if there is a card."""
    name = models.label(model)
    known = models.find(model)
    # Recordings lie under the registry's name of a model; its label may be another.
    file = paths.RECORDINGS / (known.name if known else name) / "README.md"
    if not file.is_file():
        return []
    # The first line is the card's title, for which there is a heading here.
    _, _, text = file.read_text("utf8").partition("\n")
    return [Heading("Card of the recorded answers", 3), Prose(text.strip())]


# ---- references ----------------------------------------------------------------------------------


def citing(run: Run) -> list[Block]:
    """Name the works that a user of this run should cite.

    Parameters
    ----------
    run : Run
        The run that the appendix is about.

    Returns
    -------
    list of Block
        One paragraph.
    """
    titles = [run.title(notebook) for notebook in run.studies.values()]
    ran = f" This run has the studies {', '.join(titles)}." if titles else ""
    return [
        Paragraph(
            "Cite the paper whose study was run, and this project. Name the commit of the "
            "repository, because prompts and statistics of a study may change: no file of a run "
            f"has it.{ran}"
        ),
    ]


@cache
def _citation() -> dict[str, Any]:
    """Read ``CITATION.cff``."""
    return yaml.safe_load((paths.ROOT / "CITATION.cff").read_text("utf8"))


def references() -> list[Reference]:
    """Read the works that the appendix names, and this project, from ``CITATION.cff``.

    Returns
    -------
    list of Reference
        The works in the order of the file, the four papers first, then this project.
    """
    citation = _citation()
    entries = [*citation["references"], citation]

    cited = []
    for entry in entries:
        authors = list(map(_author, entry["authors"]))
        released = entry.get("year") or entry.get("date-released")
        year = str(released)[:4]
        venue = entry.get("collection-title") or entry.get("journal", "")
        # This project is the last entry, and has a version in place of a venue.
        if entry is citation:
            venue = f"Version {entry['version']}"

        # This project's authors are a group, which has a name and no family name.
        family = entry["authors"][0].get("family-names", "ingroup")
        letters = re.sub("[^a-z]", "", family.lower())
        key = f"{letters}{year}"
        identifier = _identifier(entry)
        cited.append(Reference(key, _joined(authors), entry["title"], venue, year, identifier))
    return cited


def _identifier(entry: Mapping[str, Any]) -> str:
    """Return the DOI of an entry of CITATION.cff, its first other identifier, or ""."""
    if "doi" in entry:
        return f"doi:{entry['doi']}"
    for identifier in entry.get("identifiers", []):
        return identifier["value"]
    return ""


def _author(author: Mapping[str, str]) -> str:
    """Join the parts of an author's name in CITATION.cff."""
    if "name" in author:
        return author["name"]
    parts = [author.get("given-names"), author["family-names"], author.get("name-suffix")]
    return " ".join(part for part in parts if part)


def _joined(names: list[str]) -> str:
    """Join names with commas, and with "and" before the last name."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
