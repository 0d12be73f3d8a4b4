"""The book of a run: the table of its front page, its page of functions, cleaned outputs."""

import re
import textwrap
from pathlib import Path

import nbformat
import nh3
import pandas as pd

import ingroup
from ingroup.inference.models import find
from ingroup.paths import PUBLISHED, ROOT
from ingroup.tables import InputError, read_table

VERDICTS = [
    "same direction",
    "opposite",
    "no difference",
    "cannot be told",
    "depends on the reading",
]
ABOUT = ["notebook", "paper", "claim", "number", "printed"]  # the columns before the models
SENTENCE = "None of these models is in the papers. Here is what three small ones do."
BEGIN = "<!-- front page: written by make all -->\n"
END = "<!-- end of the front page -->"
SHOWN = {"text/html", "text/plain", "image/png"}  # kinds of output; scripts are not shown
STYLES = {"background-color", "color", "font-weight", "white-space", "text-align"}
TAGS = nh3.ALLOWED_TAGS - {"img"}  # a picture may come from elsewhere
ATTRIBUTES = {**nh3.ALLOWED_ATTRIBUTES, "*": {"class", "style"}}


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
        here = pd.read_csv(file) if file.exists() else pd.DataFrame()
        digits = f"{{:z.{paper.decimals}f}}"  # "z": no minus before a zero
        for model in here.itertuples():
            if model.verdict not in VERDICTS:
                raise InputError(f"{file}: found {model.verdict!r}, expected one of {VERDICTS}")
            value, low, high = map(digits.format, (model.value, model.low, model.high))
            row[label(model.model)] = f"{model.verdict}: {value} ({low} to {high})"
        rows.append(row)
    return pd.DataFrame(rows).fillna("not run")


def label(model: str) -> str:
    """Return the name of a model for readers."""
    known = find(model)
    return model if known is None else known.label


def markdown(table: pd.DataFrame) -> str:
    """Write the table of the front page, with the sentence above it, in Markdown."""
    models = list(table.columns.drop(ABOUT))
    lines = [SENTENCE, ""]
    lines += [_line(["claim", "number, and as printed", *models])]
    lines += [_line(["---"] * (2 + len(models)))]
    for row in table.to_dict("records"):
        claim = f"[{row['paper']}]({row['notebook']}): {row['claim']}"
        number = f"{row['number']}: {row['printed']}"
        lines += [_line([claim, number, *[row[model] for model in models]])]
    return "\n".join(lines) + "\n"


def _line(cells: list[str]) -> str:
    """Write a row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def plain(table: pd.DataFrame) -> str:
    """Write the same for a terminal."""
    lines = [SENTENCE]
    for row in table.to_dict("records"):
        lines += ["", *textwrap.wrap(f"{row['paper']}: {row['claim']}", 100)]
        lines += textwrap.wrap(f"{row['number']}: {row['printed']} in print", 100)
        for model in table.columns.drop(ABOUT):
            lines += [f"  {model:20} {row[model]}"]
    return "\n".join(lines)


def keep_in_readme(table: pd.DataFrame) -> None:
    """Write the table of the front page between the marks in README."""
    readme = ROOT / "README.md"
    text = readme.read_text("utf8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    written = before + begin + markdown(table) + end + after
    if end and written != text:
        readme.write_text(written, "utf8")


def cleaned(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Clean the HTML of a notebook's outputs, for replies are hostile text."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            for kind in set(data) - SHOWN:
                del data[kind]
            if "text/html" in data:
                html = with_own_style(data["text/html"])
                data["text/html"] = nh3.clean(
                    html, tags=TAGS, attributes=ATTRIBUTES, filter_style_properties=STYLES
                )
    return notebook


def with_own_style(html: str) -> str:
    """Move the rules that a pandas Styler gives to single cells into these cells."""
    sheets = " ".join(re.findall("<style.*?>(.*?)</style>", html, re.DOTALL))
    styles: dict[str, str] = {}
    for cells, rules in re.findall(r"([^{}]+)\{([^{}]*)\}", sheets):
        for cell in re.findall(r"#(T_\w+_row\d+_col\d+)", cells):
            earlier = styles.get(cell, "")
            styles[cell] = earlier + rules.replace('"', "'")
    return re.sub(r'id="(T_\w+)"', lambda found: f'style="{styles.get(found[1], "")}"', html)


def functions() -> str:
    """Write the page of all modules' functions, which Sphinx takes from their docstrings."""
    lines = []
    lib = Path(ingroup.__file__).parents[1]
    for file in sorted(lib.rglob("[a-z]*.py")):
        name = ".".join(file.relative_to(lib).with_suffix("").parts)
        lines += [f"## {name}", "```{eval-rst}", f".. automodule:: {name}", "```"]
    return "\n".join(lines)
