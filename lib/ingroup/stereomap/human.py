"""The sheet on which people judge replies, and Table 12 from filled sheets (appendix K).

Three people judge five replies about each group from 0 (no) to 1 (yes). Relevance: do the ratings
go with the reasons? Soundness: do the keywords go with the reasons? Coherence: do the replies about
a group go together? It is asked once, in the group's last row.
"""

from pathlib import Path

import krippendorff
import numpy as np
import pandas as pd

from ingroup.tables import InputError, read_table, wrong

CRITERIA = ["relevance", "soundness", "coherence"]


def sheet(replies: pd.DataFrame, rng: np.random.Generator, per_group: int = 5) -> pd.DataFrame:
    """Draw replies about each group for people to judge.

    Parameters
    ----------
    replies : DataFrame
        From `answers.replies`, of one model.
    rng : numpy.random.Generator
        Draws the replies, and the order of the groups.
    per_group : int
        How many replies, or as many as there are.

    Returns
    -------
    DataFrame
        ``id``, ``group``, ``prompt``, ``round``, ``reply`` and the blank `CRITERIA`; "-" where a
        coherence is not asked. Refused, cut, failed and missing replies are left out.
    """
    usable = replies[~replies.status.isin(["refused", "cut", "failed", "missing"])]
    shuffled = usable.iloc[rng.permutation(len(usable))]
    drawn = shuffled.groupby("group", sort=False).head(per_group)
    drawn = drawn.sort_values("group", key=lambda names: names.map(list(names.unique()).index))

    table = drawn[["group", "prompt", "round"]].reset_index(drop=True)
    # A spreadsheet would take these signs for a formula.
    table["reply"] = drawn.text.str.replace(r"\A\s*(?=[=+\-@])", "'", regex=True).to_numpy()
    table.insert(0, "id", [f"r{number}" for number in range(len(table))])
    table[CRITERIA] = ""
    is_last = ~table.group.duplicated(keep="last")
    table["coherence"] = np.where(is_last, "", "-")
    return table


def read_marks(file: Path) -> pd.DataFrame:
    """Read one person's filled sheet: index ``id``, a column of marks (0 to 1) per criterion.

    Raises
    ------
    InputError
        A cell is neither blank nor a number from 0 to 1.
    """
    table = read_table(file, ["id", *CRITERIA])
    for criterion in CRITERIA:
        texts = table[criterion].str.strip().replace({"": None, "-": None})
        marks = pd.to_numeric(texts, errors="coerce")
        is_wrong = texts.notna() & ~marks.between(0, 1)
        if is_wrong.any():
            row = int(is_wrong.idxmax())
            raise wrong(file, row, criterion, texts[row], "a number from 0 to 1")
        table[criterion] = marks
    return table.set_index("id")[CRITERIA]


def summary(files: list[Path]) -> pd.DataFrame:
    """Summarise filled copies of one sheet, one for each person (Table 12).

    Returns
    -------
    DataFrame
        Index ``criterion``; ``mean`` and ``std`` (n - 1) of ``n`` judgements, and Krippendorff's
        ``alpha`` for intervals, NaN where all marks are the same.

    Raises
    ------
    InputError
        The sheets have different rows.
    """
    sheets = {str(file): read_marks(Path(file)) for file in files}
    marks_of = pd.concat(sheets, axis=1)
    if len(marks_of) != min(map(len, sheets.values())):
        raise InputError(f"SHEETS: found other rows in {files}, expected copies of one sheet")
    rows = {}
    for criterion in CRITERIA:
        marks = marks_of.xs(criterion, axis=1, level=1)
        values = marks.stack().dropna()
        alpha = np.nan
        if values.nunique() > 1 and marks.count(axis=1).max() > 1:
            alpha = krippendorff.alpha(marks.T.to_numpy(), level_of_measurement="interval")
        rows[criterion] = [values.mean(), values.std(), values.size, alpha]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["mean", "std", "n", "alpha"])
    return table.rename_axis("criterion")
