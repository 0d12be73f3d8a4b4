"""Judgements of StereoMap's replies by people: the sheet to fill, and Table 12 from filled sheets.

Jeoung et al. 2023, appendix K. Three people judge five replies of each group by three criteria,
from 0 (no) to 1 (yes). Relevance: do a reply's ratings go with its reasons? Soundness: do its
keywords go with its reasons? Coherence, "across multiple instances", is asked once per group, in
the last row of the group.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import krippendorff
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ingroup.inference.engine import FAILED
from ingroup.models import is_calibrant
from ingroup.parsing import CUT, REFUSED, one_line
from ingroup.stats.paired import clustered_share
from ingroup.tables import InputError, at, once, read_table, wrong

CRITERIA = ("relevance", "soundness", "coherence")
REPLY_COLUMNS = ("group", "prompt", "round", "ratings", "keywords", "reasons", "reply")
ASKED_BELOW = "below"  # in place of a coherence: it is asked further down
LONGEST_CELL = 32_000  # characters; a spreadsheet's cell holds 32,767

# Also behind what may separate cells: a spreadsheet that expects ";" splits a reply with one.
_FORMULA = re.compile(r"(\A|[,;\"|])(\s*)(?=[=+\-@＝＋－＠])")
_MARK = re.compile(r"([0-9]*\.?[0-9]+)?")


def harmless_cell(text: str) -> str:
    """Make a text one line that no spreadsheet takes for a formula, and that fits a cell.

    The function puts ' before = + - @ where a cell may begin, and cuts the text after
    `LONGEST_CELL` characters.

    Parameters
    ----------
    text : str
        Any text, such as a model's reply.

    Returns
    -------
    str
        The text for the cell of a sheet.
    """
    line = _FORMULA.sub(r"\1\2'", one_line(text))
    return line[:LONGEST_CELL]


def model_to_judge(models: Sequence[str]) -> str:
    """Choose the model whose replies people judge: the first real model, else the first model.

    Parameters
    ----------
    models : sequence of str
        The models that have written text.

    Returns
    -------
    str
        The model.
    """
    for model in models:
        if not is_calibrant(model):
            return model
    return models[0]


def whole_replies(replies: pd.DataFrame) -> pd.DataFrame:
    """Join the parts of each reply, which CALLS=separate asks in chats of their own.

    Parameters
    ----------
    replies : DataFrame
        Replies of one model, as `answers.load` returns them.

    Returns
    -------
    DataFrame
        `REPLY_COLUMNS`, all as text, and ``status``: the first status that is not refused, cut or
        failed, or else the first status.
    """
    texts = replies.assign(
        ratings=replies["values"].map(_listed),
        keywords=replies.keywords.map(", ".join),
        reasons=replies.reasons.map(" ".join),
    )

    how_to_join = {
        "status": _first_usable,
        "ratings": _joined,
        "keywords": _joined,
        "reasons": _joined,
        "reply": _joined,
    }
    by_reply = texts.groupby(["group", "prompt", "round"], sort=False)
    return by_reply.agg(how_to_join).reset_index()


def _listed(values: Mapping[str, float]) -> str:
    """Write ratings as a text, without words that have no rating."""
    texts = []
    for word, rating in values.items():
        if not np.isnan(rating):
            texts.append(f"{word} {rating:g}")
    return ", ".join(texts)


def _joined(parts: pd.Series) -> str:
    """Join the texts of the parts of one reply. Parts without a text are left out."""
    return "\n".join(part for part in parts if isinstance(part, str) and part)


def _first_usable(statuses: pd.Series) -> str:
    """Return the first status that is not refused, cut or failed, or else the first status."""
    usable = statuses[~statuses.isin([REFUSED, CUT, FAILED])]
    return usable.iloc[0] if len(usable) else statuses.iloc[0]


def sheet(
    replies: pd.DataFrame,
    rng: np.random.Generator,
    per_group: int = 5,
) -> pd.DataFrame:
    """Draw some replies of each group for people to judge.

    A group's replies are of one prompt, as coherence is about iterations. The prompt is drawn among
    the prompts with at least `per_group` usable replies. If no prompt has as many, replies of
    several prompts are put together, the most frequent prompts first.

    Parameters
    ----------
    replies : DataFrame
        `REPLY_COLUMNS` and ``status``. Replies that are "refused", "cut" or "failed" are not drawn.
    rng : numpy.random.Generator
        Draws prompts, replies and the order of the groups.
    per_group : int
        Number of replies of each group, at most.

    Returns
    -------
    DataFrame
        ``id`` (a hash of the row, so that sheets of two draws are not mixed up), `REPLY_COLUMNS` by
        `harmless_cell`, and `CRITERIA`, all text. Criteria are blank, except that the coherence is
        "below" in all rows of a group but its last.

    Raises
    ------
    ValueError
        There is no reply to draw; the message counts the replies.
    """
    has_no_answer = replies.status.isin([REFUSED, CUT, FAILED])
    usable = replies[~has_no_answer].reset_index(drop=True)
    if usable.empty:
        raise ValueError(f"all of {len(replies)} replies are refused or failed, expected others")

    drawn = []
    # Replies are sorted, so that a seed draws the same replies for any order of the rows.
    ordered = usable.sort_values(["group", "prompt", "round"])
    for _, group_replies in ordered.groupby("group"):
        drawn.append(_draw(group_replies, rng, per_group))

    random_order = rng.permutation(len(drawn))
    table = pd.concat([drawn[index] for index in random_order], ignore_index=True)
    table = table[list(REPLY_COLUMNS)].astype(object).fillna("").astype(str)
    table = table.map(harmless_cell)

    # The id is a hash of the row as people see it, so it comes after `harmless_cell`.
    table.insert(0, "id", [_row_id(row) for row in table.to_numpy()])
    is_last = ~table.group.duplicated(keep="last")
    return table.assign(
        relevance="",
        soundness="",
        coherence=np.where(is_last, "", ASKED_BELOW),
    )


def _draw(
    replies: pd.DataFrame,
    rng: np.random.Generator,
    n: int,
) -> pd.DataFrame:
    """Draw up to `n` replies of one group.

    A prompt with `n` replies comes first, or else the prompts with the most replies.
    """
    shuffled = replies.iloc[rng.permutation(len(replies))]
    counts = shuffled.prompt.value_counts().sort_index()
    # Beyond n, no prompt is better than another.
    counts = counts.clip(upper=n)

    # Prompts with as many replies stay in random order.
    prompts = counts.iloc[rng.permutation(len(counts))]
    prompts = prompts.sort_values(ascending=False, kind="stable")
    rank = pd.Series(range(len(prompts)), prompts.index)
    order = shuffled.prompt.map(rank)
    order = order.sort_values(kind="stable")
    return shuffled.loc[order.index[:n]]


def _row_id(cells: Iterable[str]) -> str:
    """Hash a row. The hash begins with r, because a spreadsheet reads 12e45678 as a number."""
    text = "\n".join(cells)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"r{digest[:12]}"


def write(table: pd.DataFrame, file: Path) -> None:
    """Write a sheet as CSV (UTF-8 with its mark).

    Parameters
    ----------
    table : DataFrame
        The sheet, one row per reply, with columns for the judgements.
    file : Path
        Where the sheet is written. A sheet without judgements is overwritten.

    Raises
    ------
    InputError
        The file holds judgements, or is no sheet.
    """
    if file.exists():
        judgements = _checked_sheet(file)[list(CRITERIA)]
        if judgements.notna().any(axis=None):
            raise InputError(f"{file} holds judgements, and would be overwritten: move it first")
    # With the mark in front, spreadsheets read the file as UTF-8.
    file.write_text(table.to_csv(index=False), "utf-8-sig")


class _Summary(NamedTuple):
    """A row of `score`."""

    criterion: str
    raters: str
    units: int
    n: int
    mean: float
    sd: float
    low: float
    high: float
    alpha: float
    agreement: float


def score(files: Iterable[str | Path]) -> pd.DataFrame:
    """Compute mean, standard deviation and agreement of the judgements, by criterion: Table 12.

    Parameters
    ----------
    files : iterable of str or Path
        Copies of one sheet, rows in any order, each filled by the person that it is named after: a
        number from 0 to 1, or blank for no judgement.

    Returns
    -------
    DataFrame
        A row for each criterion, NaN where not defined.

        ``criterion``, ``raters`` (who judged by it), ``units`` (replies with a judgement; groups
        for coherence), ``n`` (judgements), ``mean`` and ``sd`` (n - 1) of all of them.

        ``low`` to ``high`` (95 %), the mean of other replies to the same people: `clustered_share`,
        each unit a cluster.

        ``alpha`` (may be low where nearly all are 1) and ``agreement`` in percent: see
        `rater_agreement`.

    Raises
    ------
    InputError
        A file is no such sheet, holds something other than a number from 0 to 1, or has other rows
        than the first. The message names file, line and column. Or two files have one name.

    Notes
    -----
    Simulated with 3 people and 30 to 490 units, 0.92 to 0.98 of the intervals hold the mean. Of
    intervals that take all judgements for independent, 0.74 to 0.96 do.
    """
    sheets = _read_sheets([Path(file).expanduser() for file in files])
    rows = [_summary(criterion, sheets) for criterion in CRITERIA]
    return pd.DataFrame(rows, columns=_Summary._fields)


def _read_sheets(files: list[Path]) -> dict[str, pd.DataFrame]:
    """Read filled copies of one sheet, by the name of the person.

    Raise an InputError as `score` does.
    """
    sheets = {}
    for file in files:
        if file.stem in sheets:
            found = f"a second file that is called {file.stem!r}"
            raise wrong(file, found, "one file per rater, which has the rater's name")

        table = _checked_sheet(file)
        sheets[file.stem] = table
        _check_rows(file, table, files[0], sheets[files[0].stem])
    return sheets


def _check_rows(
    file: Path,
    table: pd.DataFrame,
    first_file: Path,
    first: pd.DataFrame,
) -> None:
    """Raise an InputError unless a sheet has the rows of the first sheet, in any order."""
    missing = dict(zip(first.id, first.group, strict=True))
    for row in table.itertuples():
        if missing.pop(row.id, None) != row.group:
            found = f"the id {row.id!r} with the group {row.group!r}"
            expected = f"an id and group of {first_file}"
            raise wrong(at(file, row.Index), found, expected)

    for row_id in missing:
        raise wrong(file, f"no row with the id {row_id!r}", f"all rows of {first_file}")


def _summary(criterion: str, sheets: Mapping[str, pd.DataFrame]) -> _Summary:
    """Summarise the judgements of several people by one criterion."""
    unit = "group" if criterion == "coherence" else "id"
    columns = {}
    for person, table in sheets.items():
        # Coherence has one mark in a group and is NaN in its other rows; the largest is that mark.
        columns[person] = table.groupby(unit)[criterion].max()
    marks = pd.DataFrame(columns).dropna(how="all")

    judgements = marks.stack().dropna()
    units = judgements.index.get_level_values(0)
    mean, low, high = clustered_share(judgements, units)
    alpha, percentage = rater_agreement(marks)
    has_judged = marks.notna().any()
    return _Summary(
        criterion=criterion,
        raters=", ".join(marks.columns[has_judged]),
        units=len(marks),
        n=len(judgements),
        mean=mean,
        sd=judgements.std(),
        low=low,
        high=high,
        alpha=alpha,
        agreement=percentage,
    )


def rater_agreement(marks: ArrayLike) -> tuple[float, float]:
    """Compute Krippendorff's alpha and the percentage of equal pairs of marks in one unit.

    Parameters
    ----------
    marks : array_like, shape (units, raters)
        NaN where a rater did not judge.

    Returns
    -------
    alpha : float
        Krippendorff's alpha of intervals, by the package krippendorff: 1 for full agreement, 0 for
        agreement by chance, NaN where all marks are the same.
    percentage : float
        0 to 100. A unit's weight is its number of marks.

    Notes
    -----
    Both are NaN where no two marks share a unit. Checked with the examples of Krippendorff (2011)
    and pair by pair.
    """
    values = np.asarray(marks, dtype=float)
    counts = np.isfinite(values).sum(axis=1)
    has_pairs = counts > 1
    values = values[has_pairs]
    counts = counts[has_pairs]
    if not len(values):
        return np.nan, np.nan

    # Every mark equals itself (NaN does not), which is no pair.
    equal = values[:, :, None] == values[:, None, :]
    equal_pairs = equal.sum(axis=(1, 2)) - counts
    shares = equal_pairs / (counts * (counts - 1))
    percentage = float(100 * np.average(shares, weights=counts))

    # Where all marks are the same, alpha is 0 / 0.
    if np.nanmin(values) == np.nanmax(values):
        return np.nan, percentage
    alpha = krippendorff.alpha(values.T, level_of_measurement="interval")
    return float(alpha), percentage


def _checked_sheet(file: Path) -> pd.DataFrame:
    """Read and check a filled sheet: ``id``, ``group``, and the criteria as floats.

    Its index is the line in the file.
    """
    table = read_table(file, ["id", "group", *CRITERIA])
    table = table.apply(lambda cells: cells.str.strip())
    once(file, table[["id"]])

    is_judged_here = table.coherence.str.lower() != ASKED_BELOW
    # "below" refers to a later row and is no judgement.
    table["coherence"] = table.coherence.where(is_judged_here, "")
    for criterion in CRITERIA:
        cells = table[criterion]
        for line, cell in cells.items():
            is_number_or_blank = _MARK.fullmatch(cell)
            if not is_number_or_blank or float(cell or 0) > 1:
                expected = "a number from 0 to 1 or blank"
                raise wrong(at(file, line), repr(cell), expected, criterion)
        table[criterion] = cells.replace("", "nan").astype(float)

    for group, in_group in is_judged_here.groupby(table.group):
        _check_one_coherence(file, group, in_group)
    return table


def _check_one_coherence(file: Path, group: str, is_judged_here: pd.Series) -> None:
    """Raise an InputError unless exactly one row of a group has a place for its coherence."""
    count = is_judged_here.sum()
    if count == 1:
        return

    # The last of several cells, or the group's last row where there is none.
    lines = is_judged_here.index[is_judged_here] if count else is_judged_here.index
    found = f"{count} rows of {group!r} without {ASKED_BELOW!r}"
    raise wrong(at(file, lines[-1]), found, "one, which has the judgement", "coherence")
