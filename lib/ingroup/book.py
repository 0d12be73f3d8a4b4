"""The book of a run: the table of its front page, its page of functions, cleaned outputs."""

import textwrap
from pathlib import Path

import css_inline
import nbformat
import nh3
import pandas as pd

from ingroup import LIB, PUBLISHED, ROOT
from ingroup.inference.models import label
from ingroup.published import VERDICTS
from ingroup.tables import InputError, read_table

ABOUT = ["notebook", "paper", "claim", "number", "printed"]  # the columns before the models
SENTENCE = (
    "None of these models is in the papers. Here is what three small ones do, for these prompts."
)
BEGIN = "<!-- front page: written by make all -->\n"
END = "<!-- end of the front page -->"
SHOWN = {"text/html", "text/plain", "image/png"}  # kinds of output; scripts are not shown
STYLES = {"background-color", "color", "font-weight", "white-space", "text-align"}
# nh3 takes out sheets of style, so their rules go to the cells of tables first.
STYLER = css_inline.CSSInliner(load_remote_stylesheets=False)
CLEANER = nh3.Cleaner(
    tags=nh3.ALLOWED_TAGS - {"img"},  # a picture may come from elsewhere
    attributes=nh3.ALLOWED_ATTRIBUTES | {"*": {"class", "style"}},
    filter_style_properties=STYLES,
)


def front(folder: Path) -> pd.DataFrame:
    """Collect what each model does beside the claim of each paper.

    Parameters
    ----------
    folder : Path
        The run's folder of tables, with ``<study>/headline.csv`` of the studies that ran: model,
        value, low, high, unit and verdict.

    Returns
    -------
    DataFrame
        One row for each paper: ``notebook``, ``paper``, ``claim``, what the ``number`` is, the
        ``printed`` range (`ABOUT`), and a column for each model.

    Raises
    ------
    InputError
        A verdict is not one of `VERDICTS`.
    """
    rows = []
    for paper in read_table(PUBLISHED / "headlines.csv").itertuples():
        row = {
            "notebook": f"notebooks/{paper.notebook}.ipynb",
            "paper": paper.paper,
            "claim": f"“{paper.claim}” ({paper.section})",
            "number": paper.number,
            "printed": f"{paper.low} to {paper.high} {paper.unit}",
        }
        file = folder / paper.study / "headline.csv"
        if file.exists():
            row |= _verdicts(file, paper.decimals)
        rows.append(row)

    return pd.DataFrame(rows).fillna("not run")


def _verdicts(file, decimals):
    """Write the verdict, value and interval of each model, by the model's name for readers."""
    digits = f"z.{decimals}f"  # "z": no minus before a zero
    verdicts = {}
    for row in pd.read_csv(file).itertuples():
        if row.verdict not in VERDICTS:
            raise InputError(f"{file}: found {row.verdict!r}, expected one of {VERDICTS}")
        model = label(row.model)
        value = format(row.value, digits)
        low = format(row.low, digits)
        high = format(row.high, digits)
        verdicts[model] = f"{row.verdict}: {value} [{low}, {high}]"
    return verdicts


def markdown(table: pd.DataFrame) -> str:
    """Write the table of the front page, with the sentence above it, in Markdown."""
    links = "[" + table.paper + "](" + table.notebook + "): "
    cells = pd.DataFrame()
    cells["claim"] = links + table.claim
    cells["number, and its range in the paper"] = table.number + ": " + table.printed
    cells = cells.join(table.drop(columns=ABOUT))

    lines = [SENTENCE, ""]
    for row in (cells.columns, ["---"] * cells.shape[1], *cells.to_numpy()):
        line = " | ".join(row)
        lines.append(f"| {line} |")
    return "\n".join([*lines, ""])


def plain(table: pd.DataFrame) -> str:
    """Write the same for a terminal."""
    lines = [SENTENCE]
    for row in table.to_dict("records"):
        claim = f"{row['paper']}: {row['claim']}"
        number = f"{row['number']}; in the paper: {row['printed']}"
        lines += ["", *textwrap.wrap(claim, 100), *textwrap.wrap(number, 100)]
        for model in table.columns.drop(ABOUT):
            lines.append(f"  {model:20} {row[model]}")
    return "\n".join(lines)


def keep_in_readme(table: pd.DataFrame) -> None:
    """Write the table of the front page between the marks in README."""
    readme = ROOT / "README.md"
    text = readme.read_text("utf8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    readme.write_text(before + begin + markdown(table) + end + after, "utf8")


def cleaned(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Clean the HTML of a notebook's outputs, for replies are hostile text."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            for kind in data.keys() - SHOWN:
                del data[kind]
            if "text/html" in data:
                styled = STYLER.inline(data["text/html"])
                data["text/html"] = CLEANER.clean(styled)
    return notebook


def functions() -> str:
    """Write the page of all modules' functions, which Sphinx takes from their docstrings."""
    lines = []
    for file in sorted(LIB.rglob("*.py")):
        name = ".".join(file.relative_to(LIB.parent).with_suffix("").parts)
        name = name.removesuffix(".__init__")
        lines += [f"## {name}", "```{eval-rst}", f".. automodule:: {name}", "```"]
    return "\n".join(lines)
