"""Sections on results: tables and figures, tests and their power, claims on every path, limits."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.errors import UndefinedVariableError
from PIL import Image, UnidentifiedImageError

from ingroup import findings_sentences, latex, models, paths
from ingroup.appendix.content import (
    DASH,
    Block,
    Figure,
    Heading,
    Items,
    LatexFloats,
    Missing,
    Paragraph,
    Prose,
    Table,
)
from ingroup.appendix.run import UNREADABLE, Run, first_line
from ingroup.commands import plan, settings
from ingroup.commands.report_html import round_for_reader
from ingroup.commands.run_parameters import folder_of
from ingroup.families import families

MAX_WIDTH = 6.3  # inches of the page's text
MAX_HEIGHT = 7.5
HALF_PAGE_HEIGHT = 4.2  # so high that two figures stand on a page
MIN_SHRINK = 0.84  # a figure is made smaller by no more for it, so that it stays readable
DEFAULT_DPI = 150.0  # per inch, of a picture that does not say
COULD_NOT = "could not have been significant"

# Results that are no study's: folder of tables and figures, and the notebook that makes them.
NOTEBOOK_ACROSS_STUDIES = {"synthesis": "60_synthesis", "comparison": "61_comparison"}


# ---- tables and figures --------------------------------------------------------------------------


def results(run: Run) -> list[Block]:
    """Show the tables in the papers' layout and the figures, study by study.

    Parameters
    ----------
    run : Run
        The run that the appendix is about.

    Returns
    -------
    list of Block
        A heading for each study, with its tables and figures.
    """
    blocks: list[Block] = []
    for study, notebook in run.studies.items():
        blocks.append(Heading(run.title(notebook), 2))
        blocks += _tables(run, study)
        blocks += _figures(run, study, run.title(notebook))
    if not run.studies:
        blocks.append(Missing("No study ran in this run."))

    for folder, notebook in NOTEBOOK_ACROSS_STUDIES.items():
        # A single model cannot be compared.
        if folder == "comparison" and len(run.models) < 2:
            continue
        if notebook in run.notebooks:
            blocks.append(Heading(run.title(notebook), 2))
            if folder == "comparison":
                blocks += _differences(run)
            blocks += _figures(run, folder, run.title(notebook))
    return blocks


def _differences(run: Run) -> list[Block]:
    """Tabulate the differences of two models, effect by effect, with a table for each study."""
    table = run.table("comparison", "differences")
    if table is None:
        return [Missing("No two models were compared (differences.csv).")]

    blocks: list[Block] = []
    for (study,), of_study in table.groupby(["study"], sort=False):
        rows = []
        for row in of_study.to_dict("records"):
            rows.append(
                {
                    "Effect": words(str(row["effect"])),
                    "Model": models.label(row["model"]),
                    "Minus": models.label(row["other_model"]),
                    "Difference (95 % interval)": _with_range(
                        row["difference"], row["low"], row["high"]
                    ),
                    "Items": f"{row['items']:,}",
                    "p (Holm)": p_text(row["p_holm"]),
                }
            )
        caption = f"{_title(run, study)}: differences of two models over the same items."
        blocks.append(Table(caption, pd.DataFrame(rows)))
    return blocks


def _with_range(number: float, low: float, high: float) -> str:
    """Write a number with its range in brackets, or a dash where the number is missing."""
    if pd.isna(number):
        return DASH
    return f"{round_for_reader(number)} ({round_for_reader(low)} to {round_for_reader(high)})"


def numbered_tables(study: str) -> dict[str, str]:
    """Name the tables of a study that have a layout.

    Parameters
    ----------
    study : str
        The name of a study's folder, e.g. ``"empathy_gap"``.

    Returns
    -------
    dict of str
        By the table's name, its numbers in the paper, e.g. "Tables 1, 2".
    """
    of_study = latex.read_layouts().get(study, {})
    tables = {}
    # One table of a run may fill several tables of the paper.
    for name in of_study.get("tables", {}):
        numbers = [str(layout.number) for layout in latex.layouts(study, name) if layout.number]
        if not numbers:
            tables[name] = f"Table “{words(name)}”"
        elif len(numbers) == 1:
            tables[name] = f"Table {numbers[0]}"
        else:
            tables[name] = f"Tables {', '.join(numbers)}"
    return tables


def words(name: str) -> str:
    """Write a table's name as words.

    Parameters
    ----------
    name : str
        The name of a table or figure, e.g. ``table2_gap``.

    Returns
    -------
    str
        The words without the paper's number.
    """
    without_number = re.sub(r"^(table|figure|section)\d+(_\d+)*_", "", name)
    return without_number.replace("_", " ")


def figure_in_sentence(figure: str, model: str = "") -> str:
    """Name a figure within a sentence.

    Parameters
    ----------
    figure : str
        The name of its file, e.g. ``figure2`` or ``gap_overview``.
    model : str
        The model whose name ends that of the file, if there is one.

    Returns
    -------
    str
        E.g. "the paper’s Figure 2" or "gap overview", without the model.
    """
    general = figure.removesuffix(f"_{Path(model).name}")
    number = re.fullmatch(r"figure(\d+)_?(.*)", general)
    if number is None:
        return words(general)
    part = f" ({words(number[2])})" if number[2] else ""
    return f"the paper’s Figure {number[1]}{part}"


def _tables(run: Run, study: str) -> list[Block]:
    """Show the tables of a study in the paper's layout, with a sentence for each missing table."""
    blocks: list[Block] = []
    for name, title in numbered_tables(study).items():
        text = run.paper_layout_tex(study, name)
        if text:
            blocks.append(LatexFloats(text))
        elif run.table(study, name) is None:
            blocks.append(Missing(f"{title}: this run has no rows for it ({name}.csv)."))
        else:
            blocks.append(Missing(f"{title}: no row of {name}.csv is one that the paper prints."))
    return blocks


def _figures(run: Run, study: str, title: str) -> list[Block]:
    """Show the figures of a study with captions, and a sentence on missing figures."""
    # Figures of printed numbers alone are in the papers, and show no model of a run.
    names = [name for name in run.figure_names(study) if "printed" not in name]
    captions = run.captions(study)

    blocks: list[Block] = []
    first_with: dict[str, str] = {}
    for name in names:
        model = _model_of(name, run.models)
        label = models.label(model) if model else ""
        figure_name = figure_in_sentence(name, model)
        caption = _caption(captions[name] or words(name), title)

        # A cell may draw several figures; its text stands below the first of them.
        if caption in first_with:
            of_model = f" of {label}" if label else ""
            first = first_with[caption]
            caption = (
                f"**{title}, {figure_name}{of_model}.** The text below “{first}” above holds for "
                "it, too."
            )
            # The caption names the model already.
            label = ""
        else:
            first_with[caption] = figure_name

        files = run.figure_files(study, name)
        address = f"figures/{study}/{name}"
        blocks.append(Figure(files, address, _width(files), caption, label))

    # Other runs have other models, so only figures without a model's name can be missed.
    absent = []
    for file in sorted((paths.FIGURES / study).glob("*.png")):
        if file.stem not in names and "_" not in file.stem:
            absent.append(file.stem)
    if absent:
        blocks.append(Missing(f"Figures that this run does not have: {', '.join(absent)}."))
    return blocks


def _caption(text: str, title: str) -> str:
    """Adapt the caption of a notebook, or the heading in its place, to the appendix."""
    # The appendix numbers its own figures, so "Figure 2" of a notebook has to name the paper.
    caption = re.sub(r"^\*\*Figure", "**The paper’s Figure", text)
    # A heading may stand in the notebooks of several studies.
    return caption if caption.startswith("**") else f"**{title}.** {caption}"


def _model_of(figure: str, names: list[str]) -> str:
    """Return the model whose name ends the name of a figure, or "" without such a model."""
    for name in names:
        if figure.endswith(f"_{Path(name).name}"):
            return name
    return ""


def _width(files: list[Path]) -> float:
    """Compute the width of a figure on the page in inches: as drawn, or less to fit the page."""
    inches = _drawn_size(files)
    if inches is None:
        return MAX_WIDTH

    width, height = inches
    shrink = min(1.0, MAX_WIDTH / width, MAX_HEIGHT / height)
    for_half_a_page = HALF_PAGE_HEIGHT / height
    if MIN_SHRINK <= for_half_a_page < shrink:
        shrink = for_half_a_page
    return round(width * shrink, 2)


def _drawn_size(files: list[Path]) -> tuple[float, float] | None:
    """Return the width and height of a figure in inches, or None without a readable PNG."""
    # The PNG is measured: Pillow reads no PDF, and both are drawn alike.
    for file in files:
        if file.suffix != ".png":
            continue
        try:
            with Image.open(file) as picture:
                dots_by_axis = picture.info.get("dpi", (DEFAULT_DPI, DEFAULT_DPI))
                dots = float(dots_by_axis[0])
                return picture.width / dots, picture.height / dots
        except (UnidentifiedImageError, OSError):
            continue
    return None


# ---- tests, and what they could find -------------------------------------------------------------


def tests(run: Run) -> list[Block]:
    """State the families of tests and their corrections, count findings, and give the power.

    Parameters
    ----------
    run : Run
        The run that the appendix is about.

    Returns
    -------
    list of Block
        Tables, and a sentence for each part that the run lacks.
    """
    blocks: list[Block] = []
    rows = []
    for study, family in families().items():
        if study in run.studies:
            rows.append(
                {
                    "Study": run.title(run.studies[study]),
                    "Claim of each test": family.claim,
                    "Corrected together": f"tests of one {', '.join(family.together)}",
                    "Correction": "largest statistic" if family.method == "largest" else "Holm",
                    "Level": f"{family.level:g}",
                }
            )
    if rows:
        blocks.append(Table("Headline claims and their corrections.", pd.DataFrame(rows)))

    counted = findings(run)
    if counted.empty:
        blocks.append(Missing("No table of this run has tests with a finding."))
    else:
        blocks.append(
            Paragraph(
                "The next tables count tests by what they found, corrected. Smallest p is the "
                "smallest corrected p that the data allow, whatever the answers. Half-width is "
                "that of the median 95 % interval, in the unit of the table."
            )
        )
        for (title,), of_study in counted.groupby(["Study"], sort=False):
            rows_of_study = of_study.drop(columns="Study")
            blocks.append(Table(f"{title}: tests by finding.", rows_of_study))
    blocks += _power(run)
    return blocks


def findings(run: Run) -> pd.DataFrame:
    """Count the tests of a run by table, model and finding.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    DataFrame
        A row for each table with a column ``finding`` and each of its models, as texts.
    """
    rows = []
    for study, notebook in run.studies.items():
        titles = numbered_tables(study)
        for name in run.table_names(study):
            table = run.table(study, name)
            # Tables on ground-truth numbers are about the pipeline, and not about a model.
            if table is None or "finding" not in table or name.startswith("ground_truth"):
                continue

            title = titles.get(name, words(name))
            # A table without a number in the paper is called “<words>”: here the words suffice.
            title = title.replace("Table “", "").rstrip("”")
            for model, of_model in _by_model(table):
                source = {"Study": run.title(notebook), "Tests of": title, "Model": model}
                rows.append(source | _count_findings(of_model))
    return pd.DataFrame(rows)


def _by_model(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """List the label of each model with its rows. A table without models has a dash as label."""
    if "model" not in table:
        return [(DASH, table)]
    groups = table.groupby("model", sort=False)
    return [(models.label(model), of_model) for model, of_model in groups]


def _count_findings(tests: pd.DataFrame) -> dict[str, str]:
    """Count tests by finding, and add the smallest p and the median half-width, as texts."""
    finding = tests["finding"].dropna()
    significant = (finding == "significant").sum()
    could_not = (finding == COULD_NOT).sum()

    smallest = ""
    # Studies correct in one way or the other; a corrected p says more than a plain one.
    for column in ("p_holm_least", "p_groups_holm_least", "p_least"):
        if column in tests and tests[column].notna().any():
            smallest = p_text(tests[column].min())
            break

    half_width = ""
    if {"low", "high"} <= set(tests):
        widths = tests["high"] - tests["low"]
        median_half = widths.median() / 2
        half_width = "" if pd.isna(median_half) else round_for_reader(float(median_half))

    return {
        "Tests": str(len(finding)),
        "Significant": str(significant),
        "Not significant": str(len(finding) - significant - could_not),
        "Could not be": str(could_not),
        "Smallest p": smallest or DASH,
        "Half-width": half_width or DASH,
    }


def p_text(p: float) -> str:
    """Write a p-value as text.

    Parameters
    ----------
    p : float
        The p, NaN where nothing was tested.

    Returns
    -------
    str
        The number, "<0.0001" for a smaller one (none is 0), or a dash.
    """
    if pd.isna(p):
        return DASH
    return "<0.0001" if p < 0.0001 else round_for_reader(float(p))


def _power(run: Run) -> list[Block]:
    """State the smallest effects that the tests of each study can find with the run's items."""
    sentences = []
    blocks: list[Block] = []
    for notebook in run.studies.values():
        title = run.title(notebook)
        try:
            parameters = run.parameters(notebook)
            # The run's own answers give the spread, not those of the default run.
            of_tests = plan.power(notebook, parameters, parameters)
        except UNREADABLE as error:
            blocks.append(Missing(f"{title}: its power cannot be computed: {first_line(error)}"))
            continue
        for sentence in of_tests:
            # The plan begins each sentence with the notebook's number.
            without_number = sentence.removeprefix(notebook[:2]).strip()
            sentences.append(f"{title}: a run {without_number}")

    if sentences:
        introduction = (
            "The smallest effects that the tests find, given the spread of the answers of one "
            "model of this run:"
        )
        blocks = [Paragraph(introduction), Items(sentences), *blocks]
    return blocks


# ---- claims on every path ------------------------------------------------------------------------


def multiverse(run: Run) -> list[Block]:
    """Give the share of the paths of the analysis on which each claim stands.

    Parameters
    ----------
    run : Run
        The run that the appendix is about.

    Returns
    -------
    list of Block
        A paragraph and tables, or a sentence where there is no multiverse.
    """
    shares = run.table("synthesis", "multiverse_shares")
    if shares is None:
        return [Missing("This run has no multiverse (multiverse_shares.csv): make 60 computes it.")]

    blocks: list[Block] = [
        Paragraph(
            "A path is one combination of defensible choices, such as the reading of an answer, "
            "the unit of resampling and the correction. All paths count the same. A "
            "share counts paths, and is not a probability. The tables of the papers' claims say on "
            "which share a claim stands, whether it is about an effect above 0, below 0 or none. "
            "The tables of all estimates say how many paths are significantly above and below 0."
        )
    ]
    blocks += _papers_claims(run)

    names = _claim_names(run)
    for (study,), of_study in shares.groupby(["study"], sort=False):
        rows = [_share(row, names) for row in of_study.to_dict("records")]
        caption = (
            f"{_title(run, study)}: shares of paths, and estimates over paths. Testable: paths on "
            "which the claim could have been significant."
        )
        blocks.append(Table(caption, pd.DataFrame(rows)))
    return blocks


def _title(run: Run, study: str) -> str:
    """Return the title of a study, or its name in words where its notebook did not run."""
    notebook = run.studies.get(study)
    return run.title(notebook) if notebook else words(study)


def _claim_names(run: Run) -> dict[tuple[str, str], str]:
    """Return the readable name of each claim, by study and key, from notebook 00_map."""
    table = run.table("map", "claims")
    if table is None:
        return {}

    names = {}
    for row in table.to_dict("records"):
        names[row["study"], str(row["claim"])] = str(row["name"])
    return names


def _claim_name(row: dict[str, Any], names: dict[tuple[str, str], str]) -> str:
    """Name the claim in a row of multiverse_shares.csv, by its key where the map has no name."""
    key = str(row["claim"])
    return names.get((row["study"], key), key).replace("_", " ")


def _share(row: dict[str, Any], names: dict[tuple[str, str], str]) -> dict[str, str]:
    """Write a row of multiverse_shares.csv as texts."""
    return {
        "Claim": _claim_name(row, names),
        "Model": models.label(row["model"]),
        "Paths": f"{row['paths']:,}",
        "Undefined": f"{row['undefined']:,}",
        "Testable": f"{row['testable']:,}",
        "Above 0": percent(row["stands"]),
        "Below 0": percent(row["reversed"]),
        "Median (range)": _with_range(row["median"], row["lowest"], row["highest"]),
    }


def percent(share: float) -> str:
    """Write a share in percent.

    Parameters
    ----------
    share : float
        Percent, from 0 to 100, or NaN where no path gave a share.

    Returns
    -------
    str
        A whole number with its sign, or a dash.
    """
    return DASH if pd.isna(share) else f"{share:.0f} %"


def _papers_claims(run: Run) -> list[Block]:
    """Tabulate the papers' claims with the results of the run's models, and quote the papers."""
    table = run.table("map", "claims")
    if table is None:
        return []

    sentences = table.dropna(subset=["sentence"])
    blocks: list[Block] = []
    for (study,), of_study in sentences.groupby(["study"], sort=False):
        rows = [_papers_claim(row) for row in of_study.to_dict("records")]
        caption = (
            f"{_title(run, study)}: claims of the paper beside this run. Stands: the share of the "
            "paths that could show it."
        )
        blocks.append(Table(caption, pd.DataFrame(rows)))

        # The table has a row for each model; each sentence is quoted once.
        quotations = of_study[["place", "sentence"]].drop_duplicates()
        quoted = []
        for row in quotations.to_dict("records"):
            quoted.append(f"{row['place']}: “{row['sentence']}”")
        blocks += [Paragraph("The claims rest on these sentences of the paper:"), Items(quoted)]
    return blocks


def _papers_claim(row: dict[str, Any]) -> dict[str, str]:
    """Write a row of the map's claims.csv as texts."""
    return {
        "Claim": str(row["name"]),
        "Printed": str(row["printed"]),
        "Model": models.label(row["model"]),
        "Verdict": str(row["verdict"]),
        "Estimate": _with_range(row["estimate"], row["low"], row["high"]),
        "Stands": percent(row["share"]),
    }


# ---- what could not be told ----------------------------------------------------------------------


def untold(run: Run) -> list[Block]:
    """List the results that the run cannot give, with the reasons.

    The list has tests and claims that could not be significant, claims without an estimate, and
    scored answers with a low option mass. Failed calls, rows left out with a reason, and notebooks
    that did not run follow.

    Parameters
    ----------
    run : Run
        The run that the appendix is about.

    Returns
    -------
    list of Block
        One list of sentences.
    """
    sentences = [*_powerless(run), *_without_result(run), *_option_mass(run), *_reasons(run)]

    absent = sorted(set(settings.notebooks()) - set(run.notebooks))
    if absent:
        sentences.append(f"Notebooks that did not run: {', '.join(absent)}.")

    if not sentences:
        sentences = ["No table of this run says so of anything."]
    return [Items(sentences)]


def _powerless(run: Run) -> list[str]:
    """List the tests that could not have been significant, counted by table and model."""
    sentences = []
    for row in findings(run).to_dict("records"):
        if row["Could not be"] != "0":
            sentences.append(
                f"{row['Study']}, {row['Tests of']}, {row['Model']}: {row['Could not be']} of "
                f"{row['Tests']} tests could not have been significant, whatever the answers."
            )
    return sentences


def _without_result(run: Run) -> list[str]:
    """List the claims that no path could show, and the claims without an estimate on some paths."""
    shares = run.table("synthesis", "multiverse_shares")
    if shares is None:
        return []

    names = _claim_names(run)
    sentences = []
    for row in shares.to_dict("records"):
        title = _title(run, row["study"])
        subject = f"{title}, {_claim_name(row, names)}, {models.label(row['model'])}"
        if row["testable"] == 0:
            sentences.append(f"{subject}: the claim could not be significant on any path.")
        elif row["undefined"] > 0:
            sentences.append(f"{subject}: {row['undefined']} paths give no estimate.")
    return sentences


def _option_mass(run: Run) -> list[str]:
    """List the models with some scored answers whose option mass is below half, and their share."""
    sentences = []
    for study, notebook in run.studies.items():
        table = run.table(study, "option_mass")
        if table is None:
            continue

        for model, of_model in _by_model(table):
            # A row is a part of a model's answers, so shares are weighted by their number.
            share = np.average(of_model["below half %"], weights=of_model["answers"])
            if share > 0:
                sentences.append(
                    f"{run.title(notebook)}, {model}: {share:.0f} % of the scored answers hold "
                    "less than half of the model's probability. Unconstrained, it would mostly "
                    "say something else."
                )
    return sentences


def _reasons(run: Run) -> list[str]:
    """Count failed calls, and the comparisons and scopes that a table leaves out with a reason."""
    sentences = []
    for study, notebook in run.studies.items():
        failed = run.table(study, "failed")
        if failed is not None:
            sentences.append(
                f"{run.title(notebook)}: {len(failed):,} calls gave no answer (failed.csv)."
            )
        sentences += _reasons_of(run, study, "scopes", run.title(notebook))

    sentences += _reasons_of(run, "comparison", "missing", "Comparison of models")
    return sentences


def _reasons_of(run: Run, study: str, name: str, title: str) -> list[str]:
    """Write a sentence for each reason in a table, with the number of its rows."""
    table = run.table(study, name)
    if table is None or "reason" not in table:
        return []

    counts = table["reason"].dropna().value_counts(sort=False)
    sentences = []
    for reason, count in counts.items():
        sentences.append(
            f"{title}: no result in {count} rows of {name}.csv ({first_line(reason)})."
        )
    return sentences


# ---- limits and findings -------------------------------------------------------------------------


def limits(run: Run) -> list[Block]:
    """Quote the section "Limits" of each notebook whose results stand in the appendix.

    Parameters
    ----------
    run : Run
        The run that the appendix is about.

    Returns
    -------
    list of Block
        The quotations, each below its notebook's heading.
    """
    blocks: list[Block] = []
    for notebook in run.notebooks:
        # Audits are about the papers, and a comparison needs two models.
        is_audit = folder_of(notebook) == "audit"
        is_empty_comparison = (
            notebook == NOTEBOOK_ACROSS_STUDIES["comparison"] and len(run.models) < 2
        )
        if is_audit or is_empty_comparison:
            continue

        section = _section_of(run, notebook, "Limits")
        if section:
            blocks += [Heading(f"{notebook[:2]} {run.title(notebook)}", 3), Prose(section)]
    if not blocks:
        return [Missing("No notebook of this run has a section on limits.")]
    return [Paragraph("Quoted from the notebooks of the run."), *blocks]


def _section_of(run: Run, notebook: str, title: str) -> str:
    """Return the markdown below a heading of a notebook, up to the next heading, or ""."""
    lines: list[str] = []
    is_inside = False
    for cell in run.books[notebook]["cells"]:
        if cell["cell_type"] != "markdown":
            continue
        # The blank line keeps the last paragraph of one cell apart from the next cell's first.
        if lines:
            lines.append("")

        for line in "".join(cell["source"]).splitlines():
            # A heading of any level ends the section, which has none of its own.
            if line.startswith("#"):
                is_inside = line.lstrip("# ").strip() == title
            elif is_inside:
                lines.append(line)
    return "\n".join(lines).strip()


def default_findings(run: Run) -> list[Block]:
    """List the findings of the default run, each with the verdict of its rule on the run's tables.

    Parameters
    ----------
    run : Run
        The run that the appendix is about.

    Returns
    -------
    list of Block
        One table, or no block for any other run than the default run.
    """
    if not run.is_default:
        return []

    rows = []
    for claim in findings_sentences.load():
        rows.append(
            {
                "Sentence": claim.whole,
                "Reading": claim.reading,
                "Scope": claim.scope,
                "Table": claim.table,
                "In this run": _verdict(run, claim),
            }
        )
    caption = "Findings of the default run (docs/claims.yaml), computed again from its tables."
    return [Table(caption, pd.DataFrame(rows))]


def _verdict(run: Run, claim: findings_sentences.Claim) -> str:
    """Say whether a claim's rule is true of the run's table, or that the rows are missing."""
    study, _, name = claim.table.partition("/")
    table = run.table(study, name)
    if table is None:
        return "no table"
    try:
        return "true" if findings_sentences.holds(claim, table) else "not true"
    except (ValueError, KeyError, AttributeError, UndefinedVariableError):
        return "no such rows"
