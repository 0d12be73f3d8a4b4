"""People judge replies of StereoMap: the sheet that they fill, and Table 12 out of filled sheets.

Jeoung et al. 2023, appendix K: three people judge five replies of each group by three criteria,
from 0 (not) to 1 (is so). Relevance: do a reply's ratings go with its reasons? Soundness: do its
keywords? Coherence, "across multiple instances", is asked once a group, in its last row.
"""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

import krippendorff
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ingroup.inference.engine import FAILED
from ingroup.parsing import CUT, REFUSED, one_line
from ingroup.stats.paired import clustered_share
from ingroup.tables import InputError, at, once, read_table, wrong

CRITERIA = ("relevance", "soundness", "coherence")
SHOWN = ("group", "prompt", "round", "ratings", "keywords", "reasons", "reply")
BELOW = "below"  # in place of a coherence: it is asked further down
CELL = 32_000  # characters; a spreadsheet's cell holds 32,767

# Also behind what may separate cells: a spreadsheet that expects ";" splits a reply with one.
_FORMULA = re.compile(r"(\A|[,;\"|])(\s*)(?=[=+\-@＝＋－＠])")
_MARK = re.compile(r"([0-9]*\.?[0-9]+)?")


def harmless(text: str) -> str:
    """One line that no spreadsheet takes for a formula, with ' before = + - @, and fits a cell."""
    return _FORMULA.sub(r"\1\2'", one_line(text))[:CELL]


def sheet(replies: pd.DataFrame, rng: np.random.Generator, per_group: int = 5) -> pd.DataFrame:
    """Some replies of each group, with blank columns for the criteria, all text.

    A group's replies are of one prompt (coherence is about iterations), drawn among those with at
    least `per_group` usable replies; where none has as many, the largest are put together. Groups
    come in random order. `replies` has `SHOWN` and ``status``; those "refused", "cut" or "failed"
    are not drawn. Returns ``id`` (a hash of the row, so that sheets of two draws are not mixed up),
    `SHOWN`, made `harmless`, and `CRITERIA`, blank, but "below" for the coherence in all rows of a
    group but its last. ValueError where there is no reply to draw.
    """
    usable = replies[~replies["status"].isin([REFUSED, CUT, FAILED])].reset_index(drop=True)
    if usable.empty:
        raise ValueError(f"all of {len(replies)} replies are refused or failed, expected others")
    key = ["group", "prompt", "round"]
    drawn = [_drawn(part, rng, per_group) for _, part in usable.sort_values(key).groupby("group")]
    table = pd.concat([drawn[place] for place in rng.permutation(len(drawn))], ignore_index=True)
    table = table[list(SHOWN)].astype(object).fillna("").astype(str).map(harmless)
    hashes = [hashlib.sha256("\n".join(row).encode()).hexdigest() for row in table.to_numpy()]
    table.insert(0, "id", [f"r{text[:12]}" for text in hashes])  # 12e45678 would be a number
    last = ~table["group"].duplicated(keep="last")
    return table.assign(relevance="", soundness="", coherence=np.where(last, "", BELOW))


def _drawn(part: pd.DataFrame, rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Up to `n` replies of one group, those of a prompt with `n` or the most first."""
    part = part.iloc[rng.permutation(len(part))]
    have = part["prompt"].value_counts().sort_index().clip(upper=n)
    order = have.iloc[rng.permutation(len(have))].sort_values(ascending=False, kind="stable")
    place = part["prompt"].map({prompt: place for place, prompt in enumerate(order.index)})
    return part.loc[place.sort_values(kind="stable").index[:n]]


def write(table: pd.DataFrame, file: Path) -> None:
    """A sheet as CSV (UTF-8 with its mark); InputError over judgements or another file."""
    if file.exists() and _read(file)[list(CRITERIA)].notna().any(axis=None):
        raise InputError(f"{file} holds judgements already, expected none; move it")
    file.write_text(table.to_csv(index=False), "utf-8-sig")


def score(files: Iterable[Path]) -> pd.DataFrame:
    """Mean, standard deviation and agreement of the judgements, by criterion: Table 12.

    `files` are copies of one sheet, rows in any order, each filled by the person that it is named
    after: a number from 0 to 1, or blank for no judgement. Returns, NaN where not defined:

    - ``criterion``, ``raters`` (who judged by it), ``units`` (replies, of coherence groups, with a
      judgement), ``n`` (judgements), ``mean`` and ``sd`` (n - 1) of all of them.
    - ``low`` to ``high`` (95 %), the mean of other replies to the same people: `clustered_share`, a
      unit a cluster. Simulated, 3 people, 30 to 490 units: 0.92 to 0.98 of the intervals hold the
      mean, of those that take all judgements for independent 0.74 to 0.96.
    - ``alpha`` (may be low where nearly all are 1) and ``agreement`` in percent: see `agreement`.

    InputError naming file, line and column for what is no such sheet, number from 0 to 1 or same
    rows, and for two files of one name.
    """
    files, sheets = list(map(Path, files)), {}
    for file in files:
        if file.stem in sheets:
            raise InputError(f"{file} is the second file of {file.stem!r}, expected one")
        sheets[file.stem] = table = _read(file)
        first = sheets[files[0].stem]
        missing = dict(zip(first["id"], first["group"], strict=True))
        for line, name, group in table[["id", "group"]].itertuples():
            if missing.pop(name, None) != group:
                raise wrong(at(file, line), f"{name!r} of {group!r}", f"a row of {files[0]}")
        if missing:
            raise wrong(at(file, line), "the end", f"also {next(iter(missing))!r} of {files[0]}")
    rows = []
    for criterion in CRITERIA:
        unit = "group" if criterion == "coherence" else "id"
        columns = {name: table.groupby(unit)[criterion].max() for name, table in sheets.items()}
        marks = pd.DataFrame(columns).dropna(how="all")
        raters = ", ".join(marks.columns[marks.notna().any()])
        given = marks.stack().dropna()
        mean, low, high = clustered_share(given, given.index.get_level_values(0))
        about = mean, given.std(), low, high, *agreement(marks)
        rows.append((criterion, raters, len(marks), len(given), *about))
    columns = "criterion raters units n mean sd low high alpha agreement"
    return pd.DataFrame(rows, columns=columns.split())


def agreement(marks: ArrayLike) -> tuple[float, float]:
    """Krippendorff's alpha (of intervals), and the percentage of equal pairs of marks in one unit.

    `marks`, of shape (units, raters), are NaN where a rater did not judge. Alpha (of the package
    krippendorff) is 1 for full agreement, 0 for that of chance, NaN where all marks are the same. A
    unit's weight is its number of marks; both are NaN where no two marks share a unit. Checked with
    the examples of Krippendorff (2011) and pair by pair.
    """
    marks = np.asarray(marks, dtype=float)
    marks = marks[np.isfinite(marks).sum(axis=1) > 1]
    if not len(marks):
        return np.nan, np.nan
    number = np.isfinite(marks).sum(axis=1)
    equal = (marks[:, :, None] == marks[:, None, :]).sum(axis=(1, 2)) - number
    percentage = float(100 * np.average(equal / (number * (number - 1)), weights=number))
    if np.nanmin(marks) == np.nanmax(marks):
        return np.nan, percentage
    return float(krippendorff.alpha(marks.T, level_of_measurement="interval")), percentage


def _read(file: Path) -> pd.DataFrame:
    """A filled sheet by line: ``id``, ``group``, and the criteria as floats."""
    table = read_table(file, ["id", "group", *CRITERIA]).apply(lambda cells: cells.str.strip())
    once(file, table[["id"]])
    asked = table["coherence"].str.lower() != BELOW
    table["coherence"] = table["coherence"].where(asked, "")
    for name in CRITERIA:
        for line, cell in table[name].items():
            if not _MARK.fullmatch(cell) or float(cell or 0) > 1:
                raise wrong(at(file, line), repr(cell), "a number from 0 to 1 or blank", name)
        table[name] = table[name].replace("", "nan").astype(float)
    for group, here in asked.groupby(table["group"]):
        if (times := here.sum()) != 1:
            line = here.index[here == here.any()][-1]
            found = f"{times} cells of {group!r} that are not {BELOW!r}"
            raise wrong(at(file, line), found, "one", "coherence")
    return table
