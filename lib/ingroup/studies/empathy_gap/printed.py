"""Table 2 of Hou et al. as they print it, with the gaps of a run above theirs."""

import pandas as pd

from ingroup import published
from ingroup.models import label

# The colours of the printed table: teal and red, mixed with white.
BANDS = {"above_1": "#CCE6E6", "0_to_1": "#EBF5F5", "negative": "#FFD9D9"}


def gaps_of_the_paper() -> pd.DataFrame:
    """Load Table 2 with the names that the table of a run has.

    Returns
    -------
    DataFrame
        ``model``, ``category``, ``setting``, ``delta``, ``null_low``, ``null_high``, ``highlight``.
    """
    names = {"prompt_setting": "setting", "ci_lower": "null_low", "ci_upper": "null_high"}
    return published.load("empathy_gap", 2).rename(columns=names)


def with_paper(gaps: pd.DataFrame) -> pd.DataFrame:
    """Put the gaps of the paper's models below those of a run.

    Parameters
    ----------
    gaps : DataFrame
        Table 2 of a run.

    Returns
    -------
    DataFrame
        Both tables; ``model`` is the label of a model of the run, or the paper's name and
        "(printed)".
    """
    own = gaps.assign(model=gaps.model.map(label))
    printed = gaps_of_the_paper()
    return pd.concat([own, printed.assign(model=printed.model + " (printed)")])


def table2(gaps: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Lay out gaps as Table 2 does.

    Parameters
    ----------
    gaps : DataFrame
        From `with_paper`, with the band of each gap as ``highlight``.

    Returns
    -------
    texts : DataFrame
        Settings by model and category: delta and its null interval; "flat" without a gap, "" where
        nothing was asked.
    colours : DataFrame
        The style of each of these cells, as CSS.
    """
    # A flat block has NaN here, and its text is replaced below.
    bounds = gaps[["null_low", "null_high"]].map("{:.3f}".format)
    text = gaps.delta.map("{:.2f}".format) + " [" + bounds.null_low + ", " + bounds.null_high + "]"
    colour = "background-color: " + gaps.highlight.map(BANDS).fillna("white")
    cells = gaps.assign(text=text.where(gaps.delta.notna(), "flat"), colour=colour)

    keys = ["model", "category"]
    # `pivot` sorts, so rows and columns are put back into the order of the tables.
    rows = cells.set_index(keys).index.unique()
    settings = cells.setting.unique()
    wide = cells.pivot(index=keys, columns="setting", values=["text", "colour"]).loc[rows]
    wide = wide.reindex(columns=settings, level="setting").fillna("")
    return wide["text"], wide["colour"]
