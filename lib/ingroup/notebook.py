"""What every notebook shares: where its tables and figures go, and the replies behind a number."""

import os

import pandas as pd
from IPython.display import HTML
from matplotlib.figure import Figure

from ingroup.inference.jobs import Job, answers
from ingroup.paths import ROOT, run_folder
from ingroup.style import save_figure

LATEX_ROWS = 300  # a longer table is for a file, not for a page


class Output:
    """The folders into which a notebook writes; figures of the default run are in git.

    Parameters
    ----------
    study : str
        The study, or "audit" or "findings".
    run : str
        The name of the run.
    """

    def __init__(self, study: str, run: str):
        self.tables = run_folder(run) / "tables" / study
        self.figures = (ROOT if run == "default" else run_folder(run)) / "figures" / study

    def write(self, table: pd.DataFrame, name: str) -> pd.DataFrame:
        """Write a table as CSV and as LaTeX, with its index unless that only counts."""
        self.tables.mkdir(parents=True, exist_ok=True)
        has_index = not isinstance(table.index, pd.RangeIndex)
        table.to_csv(self.tables / f"{name}.csv", index=has_index, lineterminator="\n")
        if 0 < len(table) <= LATEX_ROWS:
            flat = table.reset_index() if has_index else table
            (self.tables / f"{name}.tex").write_text(latex(flat), "utf8")
        return table

    def read(self, name: str) -> pd.DataFrame:
        """Read a table that was written. Figures are drawn from such tables."""
        return pd.read_csv(self.tables / f"{name}.csv", keep_default_na=False, na_values=[""])

    def save(self, figure: Figure, name: str) -> Figure:
        """Write a figure as PDF and PNG, the same bytes every time, and return it."""
        # `make figures ONLY=...` draws one figure of a notebook.
        if os.environ.get("FIGURE_ONLY", "") in ("", f"{self.figures.name}/{name}"):
            save_figure(figure, self.figures / name)
        return figure


def latex(table: pd.DataFrame) -> str:
    """Write a table in LaTeX, with three significant digits; it needs the package booktabs."""
    named = table.set_axis([_heading(column) for column in table], axis=1)
    digits = dict.fromkeys(named.select_dtypes("float"), "{:.3g}")
    style = named.style.hide(axis="index").format(escape="latex", na_rep="")
    style = style.format(digits, na_rep="", subset=list(digits))
    style = style.format_index(escape="latex", axis="columns")
    return style.to_latex(hrules=True)


def _heading(column: object) -> str:
    """Write the name of a column, or of its levels, as words."""
    levels = column if isinstance(column, tuple) else (column,)
    return " ".join(map(str, levels)).replace("_", " ").strip()


def replies_behind(job: Job, trials: list[int]) -> HTML:
    """Show the prompts and the replies of some trials, escaped, for replies are hostile text."""
    table = answers(job, ["text", "reasoning", "error"]).iloc[trials]
    prompts = [job.design[trial].chat for trial in trials]
    table["prompt"] = ["\n\n".join(turn["content"] for turn in chat) for chat in prompts]

    # Lines stay lines, and a reply that repeats one digit does not widen the page.
    wrapped = {"text-align": "left", "white-space": "pre-wrap", "overflow-wrap": "anywhere"}
    style = table.style.format(escape="html", na_rep="").set_properties(**wrapped)
    return HTML(style.hide().to_html())
