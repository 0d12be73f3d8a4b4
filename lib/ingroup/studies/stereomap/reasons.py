"""Reasons that models give: the documents for KeyBERT, and key phrases marked in them.

A document is named by its model, its kind ``of`` ("all" or "cluster") and its ``name`` within the
kind.
"""

import re
from collections.abc import Hashable, Mapping, Sequence
from html import escape

import pandas as pd

from ingroup import keywords
from ingroup.studies.stereomap import stimuli

DOCUMENT = ["model", "of", "name"]


def list_reasons(replies: pd.DataFrame) -> pd.DataFrame:
    """List the reasons that replies give.

    Parameters
    ----------
    replies : DataFrame
        Replies, as `answers.load_jobs` returns them.

    Returns
    -------
    DataFrame
        One row per reason: its ``text`` and the columns of the replies. Blank reasons are left out.
    """
    # A reply has a tuple of reasons; an empty one becomes a missing reason.
    rows = replies.explode("reasons")
    rows = rows.dropna(subset="reasons")
    rows = rows.rename(columns={"reasons": "text"})
    is_blank = rows.text.str.strip() == ""
    return rows[~is_blank]


def documents(
    reasons: pd.DataFrame, placed: pd.DataFrame, way: str
) -> dict[tuple[str, str, str], str]:
    """Join the reasons into documents, one per model and one per cluster of a model.

    Parameters
    ----------
    reasons : DataFrame
        From `list_reasons`.
    placed : DataFrame
        The reasons with the ``cluster`` of their group, from `clustering.with_clusters`.
    way : {"sound", "released"}
        As in :func:`ingroup.keywords.prepare`.

    Returns
    -------
    dict of str
        The documents by `DOCUMENT`; documents without a word are left out.
    """
    groups = stimuli.groups()
    forms = groups[["group", "extended", "original", "people"]]
    names = pd.unique(forms.to_numpy().ravel())

    texts = {}
    for model, of_model in reasons.groupby("model", sort=False):
        # One document per value of a column: all reasons have the same value of "all".
        rows_by_column = {
            "all": of_model.assign(all="all groups"),
            "cluster": placed[placed.model == model],
        }
        for column, rows in rows_by_column.items():
            text_by_value = keywords.documents(rows, column, names, way)
            for value, text in text_by_value.items():
                if text:
                    texts[str(model), column, str(value)] = text
    return texts


def with_document(table: pd.DataFrame) -> pd.DataFrame:
    """Split the name of each document into its parts.

    Parameters
    ----------
    table : DataFrame
        A table of :func:`ingroup.keywords.extract`, whose ``document`` is a key of `documents`.

    Returns
    -------
    DataFrame
        A column for each part of `DOCUMENT`, then the other columns.
    """
    parts = pd.DataFrame(table.document.tolist(), columns=DOCUMENT)
    return parts.join(table.drop(columns="document"))


def examples(reasons: pd.DataFrame, groups: Sequence[str]) -> pd.DataFrame:
    """Pick three different reasons of each model for each of some groups: Table 11.

    Parameters
    ----------
    reasons : DataFrame
        From `list_reasons`.
    groups : sequence of str
        The groups.

    Returns
    -------
    DataFrame
        ``model``, ``group`` and ``text``.
    """
    of_groups = reasons[reasons.group.isin(groups)]
    different = of_groups.drop_duplicates(["model", "text"])
    first = different.groupby(["model", "group"], sort=False).head(3)
    return first[["model", "group", "text"]]


def mark_phrases(text: str, phrases: Sequence[str]) -> str:
    """Mark the phrases that stand in a reason.

    Parameters
    ----------
    text : str
        The reason, as the model wrote it.
    phrases : sequence of str
        Phrases of words; up to two other words may stand between the words of one.

    Returns
    -------
    str
        HTML, with the text escaped.
    """
    patterns = []
    for phrase in phrases:
        words = map(re.escape, phrase.split())
        pattern = r"\W+(?:\w+\W+){0,2}?".join(words)
        patterns.append(pattern)
    # A pattern takes its first alternative that fits, so the longest come first.
    patterns.sort(key=len, reverse=True)
    # Without a phrase the pattern fits nowhere.
    either = "|".join(patterns) or r"(?!)"
    whole_words = rf"(?i)\b(?:{either})\b"
    return re.sub(whole_words, r"<mark>\g<0></mark>", escape(text))


def marked_table(reasons: pd.DataFrame, phrases: Mapping[Hashable, Sequence[str]]) -> pd.DataFrame:
    """Mark the phrases of each model in its reasons.

    Parameters
    ----------
    reasons : DataFrame
        From `examples`.
    phrases : mapping
        The phrases by model.

    Returns
    -------
    DataFrame
        The reasons; ``model`` and ``text`` are HTML, escaped.
    """
    texts = []
    for row in reasons.itertuples():
        of_model = phrases.get(row.model, [])
        text = mark_phrases(row.text, of_model)
        texts.append(text)

    models = reasons.model.map(escape)
    return reasons.assign(model=models, text=texts)
