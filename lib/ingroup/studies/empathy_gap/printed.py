"""Table 2 of Hou et al. as printed, with the gaps of a run above the paper's gaps."""

import pandas as pd

from ingroup import published
from ingroup.models import label
from ingroup.studies.empathy_gap.blocks import KEY

# The colours of the printed table: teal and red, mixed with white.
BANDS = {"above_1": "#CCE6E6", "0_to_1": "#EBF5F5", "negative": "#FFD9D9"}

# The tables that print each column; each of these tables is of one model.
_OF_CELLS = (3, 8, 10, 12)
_OF_EXTREMES = (7, 9, 11, 13)
_TABLES_OF = {
    "mean": _OF_CELLS,
    "std": _OF_CELLS,
    "z_min": _OF_EXTREMES,
    "z_max": _OF_EXTREMES,
}


def gaps_of_the_paper() -> pd.DataFrame:
    """Load Table 2 with the names that the table of a run has.

    Returns
    -------
    DataFrame
        ``model``, ``category``, ``setting``, ``delta``, ``null_low``, ``null_high``, ``highlight``.
    """
    names = {
        "prompt_setting": "setting",
        "ci_lower": "null_low",
        "ci_upper": "null_high",
    }
    printed = published.load("empathy_gap", 2)
    return printed.rename(columns=names)


def with_paper(gaps: pd.DataFrame) -> pd.DataFrame:
    """Put the gaps of the paper's models below the gaps of a run.

    Parameters
    ----------
    gaps : DataFrame
        Table 2 of a run.

    Returns
    -------
    DataFrame
        Both tables. ``model`` is the label of a model of the run, or the paper's name and
        "(printed)".
    """
    here = gaps.assign(model=gaps.model.map(label))
    printed = gaps_of_the_paper()
    printed["model"] += " (printed)"
    return pd.concat([here, printed])


def numbers_of(
    gaps: pd.DataFrame, losses: pd.DataFrame, summaries: pd.DataFrame
) -> dict[str, list[tuple]]:
    """Collect the numbers of a run that stand beside the printed Tables 2, 3 and 6 to 13.

    The paper's numbers come from the released code, so the columns ``_released`` are taken.

    Parameters
    ----------
    gaps : DataFrame
        Table 2 of a run, with ``model``, ``setting`` and ``category``.
    losses : DataFrame
        Table 6 of the run, without the blocks that have no free text.
    summaries : DataFrame
        Tables 3 and 7 of the run, from `statistics.cell_summary`.

    Returns
    -------
    dict of list
        The tables, columns and numbers of each model, as :func:`ingroup.published.beside_each`
        takes them.
    """
    with_losses = gaps.merge(losses, "left", on=KEY)
    both = with_losses.merge(summaries.reset_index(), on=KEY)
    both = both.rename(columns={"setting": "prompt_setting"})

    numbers = {}
    for model, rows in both.groupby("model", sort=False):
        here = rows.set_index(["prompt_setting", "category"])
        of_model: list[tuple] = [
            (2, "delta", here.delta_released),
            # The ends of the null are drawn at random, so each comes with its spread.
            (2, "ci_lower", here.null_low_released, here.null_low_spread),
            (2, "ci_upper", here.null_high_released, here.null_high_spread),
            (6, "refusal_pct", here.percent_of_events),
        ]
        for column, tables in _TABLES_OF.items():
            released = here[f"{column}_released"]
            for table in tables:
                of_model.append((table, column, released))
        numbers[model] = of_model
    return numbers


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
    delta = gaps.delta.map("{:.2f}".format)
    low = gaps.null_low.map("{:.3f}".format)
    high = gaps.null_high.map("{:.3f}".format)
    text = delta + " [" + low + ", " + high + "]"
    # The numbers of a flat block are NaN.
    text = text.where(gaps.delta.notna(), "flat")
    colour = gaps.highlight.map(BANDS).fillna("white")
    cells = gaps.assign(text=text, colour="background-color: " + colour)

    keys = ["model", "category"]
    rows = cells.set_index(keys).index.unique()
    settings = cells.setting.unique()
    wide = cells.pivot(index=keys, columns="setting", values=["text", "colour"])
    # `pivot` sorts, so rows and columns are put back into the order of `gaps`.
    wide = wide.loc[rows].reindex(columns=settings, level="setting")
    wide = wide.fillna("")
    return wide["text"], wide["colour"]
