"""Keywords looked up in a dictionary of stereotype content, and what such a dictionary says.

Two are at hand: a small one written for this project (data/sample) and the Stereotype Content
Dictionary (Nicolas, Bai and Fiske 2021), which ``make data`` fetches. `find` says which word a
keyword stands for, `coverage` how much each rule adds (Table 15 of Jeoung et al. 2023).
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ingroup import corpora, paths
from ingroup.tables import check, once, read_table

SAMPLE = "sample"
RELEASED = "stereotype-content-dictionary"
LONG = ["word", "dimension", "direction"]  # columns of the layout with a row a pair
# Columns of the released layout, which has a row a word.
WORD, LEMMA = "original word", "preprocessed word 3 (lemmatized)"
_MEMBER, _DIRECTION = " dictionary", " direction"
_DIRECTIONS = {"-1": -1.0, "0": 0.0, "1": 1.0, "NA": np.nan, "": np.nan}

ODDITIES = (
    "member without a direction", "membership -1",
    "direction without membership", "conflicting lemma",
)  # fmt: skip

STEPS = ("exact", "joined or split", "lemma", "last word", "by hand")
# The rows of the printed Table 15 that can be set beside a step.
PRINTED_STAGES = {
    "exact": "Initial Coverage", "lemma": "+Lemmatization Coverage", "by hand": "+Coverage"
}  # fmt: skip
MAPPINGS = paths.STIMULI / "stereomap" / "keyword_mappings.csv"

_PLAIN = str.maketrans("‐‑–—’‘", "----''")
_PARTS = re.compile(r"[\s-]+")
_joined = partial(_PARTS.sub, "")  # a folded text without spaces and hyphens
_OUTER = " .,;:!?*_\"'“”()[]-"
# Where one of these stands in a phrase, its last word alone may say another thing or the contrary:
# "not friendly", "low income", "self reliant", "well off".
_TURNS = {*(paths.STIMULI / "stereomap" / "turning_words.txt").read_text("utf8").split()}


class Lexicon(NamedTuple):
    """W words and D dimensions; the row of a word is its place in `words`."""

    words: pd.Index  # (W,) as the file spells them
    members: pd.DataFrame  # (W, D) bool, membership 1
    directions: pd.DataFrame  # (W, D) -1, 0 or 1; NaN where the file gives none
    odd: pd.DataFrame  # (W, D) bool, pairs that the scores leave out
    oddities: pd.DataFrame  # these pairs: word, dimension, oddity, membership, direction, line

    @property
    def directed(self) -> pd.Series:
        """(D,) bool: whether a dimension has directions; the others only count words."""
        return self.directions.notna().any()


def fold(text: str) -> str:
    """The form in which words are compared: without capitals, doubled spaces, typographic marks."""
    return " ".join(unicodedata.normalize("NFKC", text).translate(_PLAIN).casefold().split())


def load_lexicon(source: str | Path = SAMPLE) -> Lexicon:
    """Read a dictionary and check every cell of it.

    `source` is `SAMPLE`, `RELEASED` (needs ``make data``) or a CSV file of one of two layouts.
    Long: the columns `LONG`, a row for each pair of word and dimension, direction -1, 0, 1 or
    empty. Wide, as released: a row a word, columns ``original word``, ``<dimension> dictionary``
    (membership 0 or 1) and, for dimensions with directions, ``<dimension> direction`` (-1, 0, 1 or
    NA); optionally `LEMMA`. Other columns are passed over. InputError as `read_table` and
    `corpora.file`, and for a missing column; a word or dimension that is empty or comes twice
    (capitals aside); another membership or direction ("7").

    What is odd is listed as the file spells it, and out of the scores. A lemma conflicts where
    words of it are members with direction 1 and with -1, as "sustain" (-1) and "sustained" (1) in
    Agency: all its members with either direction are odd. A member may lack a direction where its
    dimension has none. Checked on the released file against counts by hand: 14,449 words, 28
    dimensions, 12 with directions; oddities in the order of `ODDITIES`: 2, 1, 3 and 28.
    """
    if source == SAMPLE:
        file = paths.SAMPLE / "stereotype_dictionary.csv"
    elif source == RELEASED:
        file = corpora.file(RELEASED, "Full Dictionaries.csv")
    else:
        file = Path(source).expanduser()
    if WORD in (table := read_table(file)).columns:
        return _from_wide(file, table)
    table = read_table(file, LONG)
    _check_unique(file, table, LONG[:2])
    known = table.direction.isin(list(_DIRECTIONS))
    check(file, table.direction, known, "-1, 0, 1 or nothing")
    same = table.word.map(fold)
    told = table.assign(word=same).pivot(index="word", columns="dimension", values="direction")
    told = told.reindex(index=same.unique(), columns=table.dimension.unique())
    words = table.word[~same.duplicated()]
    told.index = words.index
    membership = told.notna().replace({True: "1", False: "0"})
    return _lexicon(words, membership, told.fillna("NA"), None)


def _from_wide(file: Path, table: pd.DataFrame) -> Lexicon:
    _check_unique(file, table, [WORD])
    names, directed = (
        [column.removesuffix(kind) for column in table if column.endswith(kind)]
        for kind in (_MEMBER, _DIRECTION)
    )
    read_table(file, [name + _MEMBER for name in directed or ["<dimension>"]])  # or its sentence
    for name in names:
        column = table[name + _MEMBER]
        check(file, column, column.isin(["0", "1", "-1"]), "0 or 1")
    for name in directed:
        column = table[name + _DIRECTION]
        check(file, column, column.isin(list(_DIRECTIONS)), "-1, 0, 1 or NA")
    membership = table[[name + _MEMBER for name in names]].set_axis(names, axis=1)
    told = table.reindex(columns=[name + _DIRECTION for name in names], fill_value="NA")
    return _lexicon(table[WORD], membership, told.set_axis(names, axis=1), table.get(LEMMA))


def _lexicon(
    words: pd.Series, membership: pd.DataFrame, told: pd.DataFrame, lemmas: pd.Series | None
) -> Lexicon:
    """Find the oddities of checked cells; all rows are indexed by the lines of the file."""
    members, directions = membership == "1", told.replace(_DIRECTIONS).astype(float)
    directed, conflicts = directions.notna(), members & False
    if lemmas is not None:
        signs = [members & (directions == sign) for sign in (1, -1)]
        both = [sign.groupby(lemmas.map(fold)).transform("any") for sign in signs]
        conflicts = (signs[0] | signs[1]) & both[0] & both[1]
    lost = members & ~directed & directed.any()
    masks = [lost, membership == "-1", directed & (membership == "0"), conflicts]
    cells = pd.DataFrame({"membership": membership.stack(), "direction": told.stack()})
    odd = {name: cells[mask.stack()] for name, mask in zip(ODDITIES, masks, strict=True)}
    odd = pd.concat(odd, names=["oddity", "line", "dimension"]).reset_index()
    odd = odd.assign(word=words.loc[odd.line].array, oddity=pd.Categorical(odd.oddity, ODDITIES))
    odd = odd[["word", "dimension", "oddity", "membership", "direction", "line"]]
    frames = members, directions, masks[0] | masks[1] | masks[2] | masks[3]
    words = pd.Index(words, name="word")
    return Lexicon(words, *(frame.set_axis(words, axis=0) for frame in frames), odd)


def _check_unique(file: Path, table: pd.DataFrame, columns: list[str]) -> None:
    """Raise where a cell of `columns` is empty or a row of them comes twice, capitals aside."""
    same = table[columns].map(fold)
    for column in columns:
        check(file, table[column], same[column] != "", "a value")
    once(file, table[columns], same)


@cache
def lemmatizer(way: str = "sound") -> Callable[[str], Sequence[str]]:
    """From a folded word to the lemmas it may have, likeliest first.

    ``"sound"``: lemminflect's of the word as a noun, verb and adjective; of words that it does not
    list only those in -s, -ed and -ing (not "camp" of "camper"). ``"paper"``: spaCy's
    en_core_web_sm, made for sentences (InputError as `corpora.instrument`).

    Of 551 words of the released dictionary (lower case, letters only) with another lemma there,
    sound finds it for 492 and a third word for 2, paper for 458 and 6 ("hat" of "hated").
    """
    if way == "paper":
        folder = corpora.instrument("en_core_web_sm")
        import spacy  # seconds; only who needs it waits

        model = spacy.load(folder, exclude=["ner", "parser", "senter"])
        return lambda word: [model(word)[-1].lemma_]
    from lemminflect import getAllLemmas, getLemma

    def lemmas(word: str) -> list[str]:
        listed = getAllLemmas(word)
        if not listed and word.endswith(("s", "ed", "ing")):
            listed = {kind: getLemma(word, kind) for kind in ("NOUN", "VERB")}
        return [lemma for kind in ("NOUN", "VERB", "ADJ") for lemma in listed.get(kind, ())]

    return lemmas


def load_mappings(*files: str | Path) -> dict[str, str]:
    """Keywords that no rule finds, and the word of the dictionary that a person chose for each.

    `files` of the user (CSV, ``keyword`` and ``word``) are read after `MAPPINGS`: the later file
    counts. InputError as `read_table`, for an empty cell, a keyword twice in a file.
    """
    chosen = {}
    for file in (MAPPINGS, *(Path(file).expanduser() for file in files)):
        table = read_table(file, ["keyword", "word"])
        _check_unique(file, table, ["keyword"])
        check(file, table.word, table.word.map(fold) != "", "a value")
        chosen |= dict(zip(table.keyword.map(fold), table.word.map(fold), strict=True))
    return chosen


def find(
    keywords: Iterable[str], lexicon: Lexicon, lemmas: Callable[[str], Sequence[str]],
    mappings: dict[str, str], way: str = "sound",
) -> pd.DataFrame:  # fmt: skip
    """Look up keywords, by five rules in turn; `way` "paper" by the three stages of Table 15.

    1. exact: it is a word, but for capitals, doubled spaces and marks around it ("**Caring:**").
    2. joined or split: so it is without hyphens and spaces ("hard-working"). Of several such words
       of the dictionary the first counts.
    3. lemma: so it is with one of `lemmas` in place of its last word ("risk takers", risk taker).
    4. last word: of a phrase of two words the second is a word ("very friendly"); not where one may
       turn the sense ("not friendly", "well off"), and not after a hyphen ("god-fearing").
    5. by hand: one of `mappings` gives a word that the dictionary has.

    The paper's stages (appendix M) are: letter by letter, capitals aside; a keyword without a space
    by its lemma ("two-word phrases failed"); by hand. `step` then is one of exact, lemma, by hand.

    A row a keyword, under the index of `keywords` where it is a Series: ``keyword``, ``word`` as
    the dictionary spells it, ``step`` (categories `STEPS`), both missing where no rule finds one.
    Checked on the released dictionary, where every word finds itself.
    """
    keywords = pd.Series(keywords, dtype=object)
    exact = {fold(word): word for word in reversed(lexicon.words)}
    joined = {_joined(word): exact[word] for word in exact}  # the first of the file comes last
    chosen = {_joined(keyword): joined.get(_joined(word)) for keyword, word in mappings.items()}

    def rules(keyword: str) -> Iterator[str | None]:
        """What each of the five rules finds, asked one after the other."""
        folded = fold(keyword)
        if way == "paper":
            start = folded.rfind("-") + 1
            own = [] if " " in folded or not folded[start:] else lemmas(folded[start:])
            of_lemma = (exact.get(folded[:start] + fold(lemma)) for lemma in own)
            lemma = next(filter(None, of_lemma), None)
            yield from (exact.get(folded), None, lemma, None, chosen.get(_joined(folded)))
            return
        bare = folded.strip(_OUTER)
        yield exact.get(folded, exact.get(bare))
        yield joined.get(_joined(bare))
        *head, last = _PARTS.split(bare)
        spelt = ("".join(head) + _joined(fold(lemma)) for lemma in (lemmas(last) if last else ()))
        yield next((joined[word] for word in spelt if word in joined), None)
        phrase = bare.split(" ")
        yield None if len(phrase) != 2 or _TURNS & {*phrase} else exact.get(phrase[1])
        yield chosen.get(_joined(bare))

    found: dict[str, dict[str, str | None]] = {"word": {}, "step": {}}
    for keyword in keywords.unique():
        hits = ((word, step) for word, step in zip(rules(keyword), STEPS, strict=True) if word)
        found["word"][keyword], found["step"][keyword] = next(hits, (None, None))
    word, step = (keywords.map(found[column]) for column in ("word", "step"))
    step = pd.Categorical(step, STEPS, ordered=True)
    return pd.DataFrame({"keyword": keywords, "word": word.astype("str"), "step": step})


def coverage(found: pd.DataFrame, by: str) -> pd.DataFrame:
    """How many of the keywords in a table of `find` have a word after each step, as in Table 15.

    Returns ``step`` (1 to 5), ``stage`` (of `STEPS`), ``printed_stage`` (its name in Table 15 or
    empty), the column `by`, ``coverage_pct`` (found at this step or before), ``n`` keywords.
    """
    at = pd.Categorical(found.step, STEPS).codes[:, None]
    reached = pd.DataFrame((at >= 0) & (at <= np.arange(len(STEPS))), found.index, STEPS)
    groups = reached.groupby(found[by], sort=False)
    rows = (100 * groups.mean()).assign(n=groups.size()).reset_index()
    rows = rows.melt([by, "n"], var_name="stage", value_name="coverage_pct")
    rows["step"] = rows.stage.map(STEPS.index).astype(int) + 1  # without a keyword it has no type
    rows["printed_stage"] = rows.stage.map(PRINTED_STAGES).fillna("")
    return rows[["step", "stage", "printed_stage", by, "coverage_pct", "n"]]
