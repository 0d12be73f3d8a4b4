"""Keywords that a model gives for a group, looked up in a dictionary of stereotype content.

`find` says which word of the dictionary a keyword stands for and which rule found it; `coverage`
how much each rule adds, in the layout of Table 15 of Jeoung et al. 2023. What the words say of
each dimension is for ingroup.dimensions.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ingroup import paths
from ingroup.dictionary import Lexicon, check, check_unique, fold, read_table
from ingroup.tables import InputError

STEPS = ("exact", "joined or split", "lemma", "last word", "by hand")
# The rows of the printed Table 15 that can be set beside a step.
PRINTED_STAGES = {
    "exact": "Initial Coverage", "lemma": "+Lemmatization Coverage", "by hand": "+Coverage"
}  # fmt: skip
MAPPINGS = paths.STIMULI / "stereomap" / "keyword_mappings.csv"

_PARTS = re.compile(r"[\s-]+")
_OUTER = " .,;:!?*_\"'“”()[]-"
# Where one of these stands in a phrase, its last word alone may say another thing or the contrary:
# "not friendly", "low income", "self reliant", "well off".
_TURNS = {
    *("anti", "bad", "badly", "barely", "few", "fewer", "hardly", "ill", "lack", "lacking"),
    *("lacks", "least", "less", "limited", "little", "low", "lower", "never", "no", "non", "not"),
    *("of", "poor", "poorly", "rarely", "self", "un", "under", "without"),
    *("against", "down", "for", "from", "in", "off", "on", "out", "over", "to", "up", "with"),
}


class Lemmatizer(NamedTuple):
    """Where lemmas come from, and the lemmas that a folded word may have, likeliest first."""

    name: str
    lemmas: Callable[[str], Sequence[str]]


@cache
def lemmatizer() -> Lemmatizer:
    """spaCy's en_core_web_sm, the paper's, where it is installed, else lemminflect.

    lemminflect gives the lemmas of a word as a noun, verb and adjective. Its rules for words that
    it does not list are asked for words in -s, -ed and -ing only; they would take "camper" for the
    comparative of "camp". So it knows 89 % of the 564 lemmas that the released dictionary names
    for single words other than the word; most of the rest are none ("uncare", "northern").

    Raises
    ------
    InputError
        Where neither is installed.
    """
    try:
        import en_core_web_sm  # from conda or `spacy download`, not from the package registry

        model = en_core_web_sm.load(disable=["ner", "parser"])
        return Lemmatizer("spaCy en_core_web_sm", lambda word: [model(word)[-1].lemma_])
    except ImportError:
        pass
    try:
        from lemminflect import getAllLemmas, getLemma
    except ImportError:
        raise InputError(
            "No lemmatizer is installed, neither spaCy's en_core_web_sm nor lemminflect; "
            "`pip install lemminflect` brings the second."
        ) from None

    def lemmas(word: str) -> list[str]:
        listed = getAllLemmas(word)
        if not listed and word.endswith(("s", "ed", "ing")):
            listed = {kind: getLemma(word, kind) for kind in ("NOUN", "VERB")}
        return [lemma for kind in ("NOUN", "VERB", "ADJ") for lemma in listed.get(kind, ())]

    return Lemmatizer("lemminflect", lemmas)


def load_mappings(*files: str | Path) -> dict[str, str]:
    """Keywords that no rule finds, and the word of the dictionary that a person chose for each.

    Parameters
    ----------
    files : str or Path
        CSV files of the user with the columns ``keyword`` and ``word``, read after the project's
        own (`MAPPINGS`); of two mappings of a keyword the later file's counts.

    Raises
    ------
    InputError
        As `lexicon.read_table`, and for a missing column, an empty cell or a keyword that comes
        twice in one file.
    """
    chosen = {}
    for file in (MAPPINGS, *(Path(file).expanduser() for file in files)):
        table = read_table(file)
        for column in ("keyword", "word"):
            if column not in table.columns:
                raise InputError(
                    f"{file}, line 1, column {column!r}: found only {', '.join(table.columns)}, "
                    "expected keyword and word."
                )
        check_unique(file, table, ["keyword"])
        check(file, table.word, table.word.map(fold) != "", "a value")
        chosen |= dict(zip(table.keyword.map(fold), table.word.map(fold), strict=True))
    return chosen


def find(
    keywords: Iterable[str],
    lexicon: Lexicon,
    lemmas: Callable[[str], Sequence[str]] | None = None,
    mappings: dict[str, str] | None = None,
) -> pd.DataFrame:
    """Look up keywords, by five rules in turn.

    1. exact: the keyword is a word, but for capitals, doubled spaces and marks around it
       ("**Caring:**").
    2. joined or split: so it is without hyphens and spaces ("hard-working", "hardworking"). Of
       several such words of the dictionary the first counts.
    3. lemma: so it is with a lemma in place of its last word ("risk takers", risk taker).
    4. last word: of a phrase of two words the second is a word ("very friendly"); not where one of
       them may turn the sense ("not friendly", "well off"), and not after a hyphen, where the
       second word seldom says it ("god-fearing").
    5. by hand: a mapping gives a word that the dictionary has.

    Parameters
    ----------
    keywords : iterable of str
        n keywords; a Series keeps its index.
    lexicon : Lexicon
        The dictionary.
    lemmas : callable, optional
        From a folded word to its lemmas; by default those of `lemmatizer`.
    mappings : dict, optional
        From keyword to word, both folded; by default `load_mappings`'s.

    Returns
    -------
    pandas.DataFrame
        n rows: ``keyword`` as given, ``word`` as the dictionary spells it, ``step`` (categories
        `STEPS`); the last two are missing where no rule finds a word.

    Raises
    ------
    InputError
        For a keyword that is not text; where no lemmatizer is installed.

    Notes
    -----
    Every rule sees each distinct keyword once. Checked against a look-up word by word in plain
    loops, and on the released dictionary, where every word finds itself.
    """
    keywords = pd.Series(keywords, dtype=object)
    wrong = ~keywords.map(lambda keyword: isinstance(keyword, str)).astype(bool)
    if wrong.any():
        raise InputError(
            f"Keyword {wrong.to_numpy().argmax() + 1} of {len(keywords)}: found "
            f"{keywords[wrong].iloc[0]!r}, expected text."
        )
    lemmas = lemmas or lemmatizer().lemmas
    mappings = load_mappings() if mappings is None else mappings
    exact = {fold(word): place for place, word in reversed(list(enumerate(lexicon.words)))}
    joined = {_joined(word): exact[word] for word in exact}  # the first of the file comes last
    chosen = {_joined(keyword): joined.get(_joined(word)) for keyword, word in mappings.items()}

    def lemma(head: str, word: str) -> int | None:
        places = (joined.get(head + _joined(fold(lemma))) for lemma in lemmas(word))
        return next((place for place in places if place is not None), None)

    def rules(keyword: str) -> Iterator[int | None]:
        """What each of the five rules finds, asked one after the other."""
        folded = fold(keyword)
        bare = folded.strip(_OUTER)
        yield exact.get(folded, exact.get(bare))
        yield joined.get(_joined(bare))
        *head, last = _PARTS.split(bare)
        yield lemma("".join(head), last) if last else None
        phrase = bare.split(" ")
        yield None if len(phrase) != 2 or _TURNS & {*phrase} else exact.get(phrase[1])
        yield chosen.get(_joined(bare))

    found = []
    codes, distinct = pd.factorize(keywords)
    for keyword in distinct:
        hits = ((place, step) for step, place in enumerate(rules(keyword)) if place is not None)
        found.append(next(hits, (-1, -1)))
    place, step = np.array(found, dtype=int).reshape(-1, 2)[codes].T
    words = np.array([*lexicon.words, None], dtype=object)  # place -1 is the missing one
    return pd.DataFrame(
        {
            "keyword": keywords,
            "word": pd.array(words[place], dtype="str"),
            "step": pd.Categorical.from_codes(step, STEPS, ordered=True),
        },
        keywords.index,
    )


def coverage(found: pd.DataFrame, by: str | None = None, distinct: bool = False) -> pd.DataFrame:
    """How many of the keywords have a word after each step, as in Table 15.

    Parameters
    ----------
    found : pandas.DataFrame
        Columns ``keyword`` and ``step`` as `find` returns them, and `by`.
    by : str, optional
        A column, e.g. ``"model"``; by default all keywords are taken together.
    distinct : bool
        Whether a keyword counts once however often it was given; the paper does not say.

    Returns
    -------
    pandas.DataFrame
        A row for each step and value of `by`: ``step`` (1 to 5), ``stage`` (of `STEPS`),
        ``printed_stage`` (its name in Table 15 or empty), `by`, ``coverage_pct`` = 100 x keywords
        found at this step or before / ``n``, ``n`` keywords.
    """
    table = found if by else found.assign(all="all")
    by = by or "all"
    if distinct:
        table = table.assign(keyword=table.keyword.map(fold)).drop_duplicates([by, "keyword"])
    at = pd.Categorical(table.step, STEPS).codes[:, None]
    reached = pd.DataFrame((at >= 0) & (at <= np.arange(len(STEPS))), table.index, STEPS)
    groups = reached.groupby(table[by], sort=False)
    rows = (100 * groups.mean()).assign(n=groups.size()).reset_index()
    rows = rows.melt([by, "n"], var_name="stage", value_name="coverage_pct")
    rows["step"] = rows.stage.map(STEPS.index).astype(int) + 1  # without a keyword it has no type
    rows["printed_stage"] = rows.stage.map(PRINTED_STAGES).fillna("")
    return rows[["step", "stage", "printed_stage", by, "coverage_pct", "n"]]


def _joined(text: str) -> str:
    return _PARTS.sub("", text)
