"""Annotators' stances towards topics: the sheet that they fill, the three rules, kappa.

Wang et al. 2024, section 3.1: five people say of each topic whether the identity affirms it.
"""

import csv
import io
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from statsmodels.stats.inter_rater import fleiss_kappa

from ingroup.studies.giebench import stimuli as questions
from ingroup.studies.giebench.drafts import plain
from ingroup.tables import InputError

TOPIC = ["category", "identity", "topic"]
STANCES = ("positive", "negative")
OFFENSIVE = "offensive"


class Agreement(NamedTuple):
    """Fleiss' kappa: over two stances, and with "offensive" as a third; see :func:`agreement`."""

    kappa: float
    topics: int
    kappa_offensive: float
    topics_offensive: int


def annotation_sheet(topics: pd.DataFrame, annotators: int = 5) -> pd.DataFrame:
    """An empty sheet: `topics` with a blank column for each annotator and for their meeting.

    Into ``annotator_1`` and so on goes positive (the identity affirms the topic), negative or
    offensive; into ``discussed``, where they disagree, the stance they settle on together.
    """
    blank = [*(f"annotator_{number}" for number in range(1, annotators + 1)), "discussed"]
    return topics[TOPIC].assign(**dict.fromkeys(blank, ""))


def read_table(file: Path) -> pd.DataFrame:
    """Topics or a sheet, as a CSV file that people have filled; capitals and spaces are forgiven.

    Returns
    -------
    pandas.DataFrame
        One row a topic, all text and blank where nothing is filled in: ``category``, ``identity``,
        ``topic``; of a sheet ``annotator_1`` and so on and ``discussed``. Also ``line``, a number.

    Raises
    ------
    InputError
        Naming line and column: a file that cannot be read, a column that is missing, a row with too
        many or too few cells, a topic without text, a category unknown to the paper, a topic that
        an identity has twice, a cell that is none of the words, a discussed stance that contradicts
        annotators who all concur.
    """
    try:
        reader = csv.reader(io.StringIO(file.read_bytes().decode("utf-8-sig"), newline=""))
        (_, header), *rows = [(reader.line_num, row) for row in reader] or [(1, [])]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{file} cannot be read as CSV in UTF-8: {error}") from error
    marks = [name for name in header if re.fullmatch(r"annotator_\d+", name)]
    wanted = [*TOPIC, "discussed", "annotator_1", "annotator_2"] if marks else TOPIC
    for name in (*wanted, *marks):
        if (times := header.count(name)) != 1:
            found = f"column {name!r} {times} times" if times else f"no column {name!r}"
            raise InputError(f"{file}, line 1: {found}, found {', '.join(header) or 'nothing'}")
    discussed = wanted[len(TOPIC) : len(TOPIC) + 1]
    words = {name: ["", *STANCES, OFFENSIVE] for name in marks}
    words |= {name: ["", *STANCES] for name in discussed} | {"category": questions.categories()}
    seen: dict[tuple[str, str], int] = {}
    table = []
    for line, row in rows:
        where = f"{file}, line {line}"
        if len(row) != len(header):
            raise InputError(f"{where}: {len(row)} cells, expected {len(header)}")
        cells = {name: plain(cell) for name, cell in zip(header, row, strict=True)}
        for name in ("identity", "topic"):
            if not cells[name]:
                raise InputError(f"{where}, column {name!r}: found nothing, expected text")
        for name, known in words.items():
            if cells[name].lower() not in (forms := {word.lower(): word for word in known}):
                expected = ", ".join(word or "blank" for word in known)
                raise InputError(
                    f"{where}, column {name!r}: found {cells[name]!r}, expected {expected}"
                )
            cells[name] = forms[cells[name].lower()]
        key = cells["identity"].casefold(), cells["topic"].casefold()
        if (first := seen.setdefault(key, line)) != line:
            raise InputError(
                f"{where}, column 'topic': {cells['identity']} has the topic of line {first} again"
            )
        said = {cells[name] for name in marks}
        if len(said) == 1 and cells["discussed"] not in ("", *said):
            raise InputError(
                f"{where}, column 'discussed': found {cells['discussed']!r}, expected blank, as "
                f"all annotators say {said.pop() or 'nothing yet'}"
            )
        table.append({"line": line} | {name: cells[name] for name in dict.fromkeys(wanted + marks)})
    if not table:
        raise InputError(f"{file}, line 2: expected a topic, the file ends after its header")
    return pd.DataFrame(table)


def labels(sheet: pd.DataFrame) -> pd.DataFrame:
    """The paper's three rules (section 3.1): the stance of each topic's identity, or why not yet.

    (1) Where all annotators concur, their stance is the label. (2) Where they disagree, it is what
    they settle on when they meet. (3) A topic that offends any of them is removed.

    Parameters
    ----------
    sheet : pandas.DataFrame
        Of :func:`read_table`.

    Returns
    -------
    pandas.DataFrame
        The sheet with ``label`` ("positive", "negative" or blank) and ``state``: "agreed" (1),
        "discussed" (2), "to discuss" (2, ``discussed`` is blank), "removed" (3, also before the
        others are done), "unfinished" (an annotator's cell is blank).
    """
    marks = _marks(sheet)
    rules = {
        "removed": (marks == OFFENSIVE).any(axis=1),
        "unfinished": (marks == "").any(axis=1),
        "agreed": (marks == marks[:, :1]).all(axis=1),
        "discussed": (sheet.discussed != "").to_numpy(),
    }
    state = np.select(list(rules.values()), list(rules), "to discuss")
    label = np.select([state == "agreed", state == "discussed"], [marks[:, 0], sheet.discussed], "")
    return sheet.assign(label=label, state=state)


def _marks(sheet: pd.DataFrame) -> np.ndarray:
    """What the annotators wrote, shape (topic, annotator)."""
    return sheet.filter(regex=r"^annotator_\d+$").to_numpy(dtype=str)


def agreement(sheet: pd.DataFrame) -> Agreement:
    """Fleiss' kappa of the annotators, before any discussion.

    With n_ij the annotators, of m, who give topic i the mark j, and p_j the share of mark j::

        kappa = (P - Q) / (1 - Q),  P = mean_i sum_j n_ij (n_ij - 1) / (m (m - 1)),  Q = sum_j p_j^2

    ``kappa`` is over the topics that stay: a topic that offends anyone is removed (rule 3), and
    "offensive" is no stance. ``kappa_offensive`` takes those in, as a third mark. Topics with a
    blank cell are in neither. NaN where no topic, or only one mark, is left. Checked against the
    definition and by hand (tests/studies/giebench/test_construction.py).
    """
    marks = _marks(sheet)
    finished = (marks != "").all(axis=1)
    kept = finished & (marks != OFFENSIVE).all(axis=1)
    found: list[float] = []
    for rows, words in ((kept, STANCES), (finished, (*STANCES, OFFENSIVE))):
        counts = np.stack([(marks[rows] == word).sum(axis=1) for word in words], axis=1)
        defined = (counts.sum(axis=0) > 0).sum() > 1
        found += [float(fleiss_kappa(counts)) if defined else np.nan, int(rows.sum())]
    return Agreement(*found)
