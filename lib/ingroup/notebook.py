"""What every notebook shares: where its tables and figures go, and the replies behind a number."""

import os

import pandas as pd
from IPython.display import HTML
from matplotlib.figure import Figure

from ingroup import FIGURES, run_folder
from ingroup.inference.jobs import Job, answers
from ingroup.inference.models import label
from ingroup.style import save_figure

# A dollar in a reply is no formula.
pd.set_option("display.html.use_mathjax", False, "styler.html.mathjax", False)


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
        folder = run_folder(run)
        self.tables = folder / "tables" / study
        self.figures = folder / "figures" / study
        if run == "default":
            self.figures = FIGURES / study

    def write(self, table: pd.DataFrame, name: str) -> pd.DataFrame:
        """Write a table as CSV, with its index unless that only counts."""
        self.tables.mkdir(parents=True, exist_ok=True)
        has_index = not isinstance(table.index, pd.RangeIndex)
        table.to_csv(self.tables / f"{name}.csv", index=has_index, lineterminator="\n")
        return table

    def read(self, name: str) -> pd.DataFrame:
        """Read a table that was written, with names of models for readers, to draw from it."""
        file = self.tables / f"{name}.csv"
        table = pd.read_csv(file, keep_default_na=False, na_values=[""])
        if "model" in table:
            labels = {model: label(model) for model in table.model.unique()}
            table["model"] = table.model.map(labels)
        return table

    def save(self, figure: Figure, name: str) -> Figure:
        """Write a figure as PDF and PNG, the same bytes every time, and return it."""
        # `make figures ONLY=...` draws one figure of a notebook.
        only = os.environ.get("FIGURE_ONLY", "")
        own = f"{self.figures.name}/{name}"
        if only in ("", own):
            save_figure(figure, self.figures / name)
        return figure


def replies_behind(job: Job, trials: list[int]) -> HTML:
    """Show the prompts and the replies of some trials, escaped, for replies are hostile text."""
    trials = [trial for trial in trials if trial < len(job.design)]
    table = answers(job, ["text", "reasoning", "error"])
    table = table.iloc[trials].replace("", None)
    for trial in trials:
        turns = [turn["content"] for turn in job.design[trial].chat]
        table.loc[trial, "prompt"] = "\n\n".join(turns)

    # Lines stay lines, and a reply that repeats one digit does not widen the page.
    wrapped = {"text-align": "left", "white-space": "pre-wrap", "overflow-wrap": "anywhere"}
    shown = table.dropna(axis="columns", how="all")
    style = shown.style.format(escape="html", na_rep="").set_properties(**wrapped)
    return HTML(style.hide().to_html())
