"""Keywords looked up in a dictionary of stereotype content, and the coverage of such a dictionary.

Two dictionaries are available. A small one was written for this project (data/sample), and
``make data`` fetches the Stereotype Content Dictionary (Nicolas, Bai and Fiske 2021). `find`
says which word a keyword stands for. `coverage` says how much each rule adds (Table 15 of Jeoung et
al. 2023).
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ingroup import corpora, paths
from ingroup.tables import at, check, given_path, once, read_table, wrong

Lemmatizer = Callable[[str], Sequence[str]]  # from a folded word to its lemmas, likeliest first

SAMPLE = "sample"
RELEASED = "stereotype-content-dictionary"
LONG_COLUMNS = [
    "word",
    "dimension",
    "direction",
]  # columns of the layout with one row for each pair

# Columns of the released layout, which has one row for each word.
WORD = "original word"
LEMMA = "preprocessed word 3 (lemmatized)"
_MEMBER = " dictionary"
_DIRECTION = " direction"
_DIRECTIONS = {"-1": -1.0, "0": 0.0, "1": 1.0, "NA": np.nan, "": np.nan}

ODDITY_KINDS = (
    "member without a direction",
    "membership -1",
    "direction without membership",
    "conflicting lemma",
)

LOOKUP_STEPS = ("exact", "joined or split", "lemma", "last word", "by hand")
# The rows of the printed Table 15 that can be compared with a step.
PRINTED_STAGES = {
    "exact": "Initial Coverage",
    "lemma": "+Lemmatization Coverage",
    "by hand": "+Coverage",
}
MAPPINGS = paths.STIMULI / "stereomap" / "keyword_mappings.csv"

_PLAIN = str.maketrans("‐‑–—’‘", "----''")
_SEPARATORS = re.compile(r"[\s-]+")
# Marks that may surround a keyword, in a sentence or a list of Markdown.
_OUTER = " .,;:!?*_\"'“”()[]-"
# A phrase with one of these words may say something else than its last word, or the contrary:
# "not friendly", "low income", "self reliant", "well off".
_TURNING = set((paths.STIMULI / "stereomap" / "turning_words.txt").read_text("utf8").split())


class Lexicon(NamedTuple):
    """A dictionary of W words and D dimensions, with rows in the order of `words`.

    Attributes
    ----------
    words : Index
        (W,) Words as the file spells them.
    members : DataFrame
        (W, D) bool, membership 1.
    directions : DataFrame
        (W, D) -1, 0 or 1; NaN where the file gives none.
    odd : DataFrame
        (W, D) bool, pairs that the scores leave out.
    oddities : DataFrame
        The odd pairs: word, dimension, oddity, membership, direction, line.
    """

    words: pd.Index
    members: pd.DataFrame
    directions: pd.DataFrame
    odd: pd.DataFrame
    oddities: pd.DataFrame

    @property
    def directed(self) -> pd.Series:
        """Tell which dimensions have directions. The others only count words.

        Returns
        -------
        Series of bool, (D,)
            True for a dimension that has a direction for any word.
        """
        return self.directions.notna().any()


def fold(text: str) -> str:
    """Bring a text to the form in which words are compared.

    Capitals, doubled spaces and typographic marks make no difference.

    Parameters
    ----------
    text : str
        A keyword, or a word of a dictionary.

    Returns
    -------
    str
        The text in lower case, with plain quotes and hyphens, and with single spaces.
    """
    normal = unicodedata.normalize("NFKC", text)
    plain = normal.translate(_PLAIN).casefold()
    return " ".join(plain.split())


def _join(text: str) -> str:
    """Remove the spaces and hyphens of a folded text."""
    return _SEPARATORS.sub("", text)


def load_lexicon(source: str | Path = SAMPLE) -> Lexicon:
    """Read a dictionary and check every cell of it.

    Parameters
    ----------
    source : str or Path
        `SAMPLE`, `RELEASED` (needs ``make data``) or a CSV file of one of two layouts. Other
        columns than the following are ignored.

        Long: the columns `LONG_COLUMNS`, one row for each pair of word and dimension, direction -1,
        0, 1 or empty.

        Wide, as released: one row for each word, with the columns ``original word``, ``<dimension>
        dictionary`` (membership 0 or 1) and, for dimensions with directions, ``<dimension>
        direction`` (-1, 0, 1 or NA); optionally `LEMMA`.

    Returns
    -------
    Lexicon
        Odd pairs are listed as the file spells them, and left out of the scores.

    Raises
    ------
    InputError
        As `read_table` and `corpora.file`; for a missing column; for a word or dimension that is
        empty or comes twice (capitals aside); for another membership or direction ("7").

    Notes
    -----
    A lemma conflicts if some of its words are members with direction 1 and others with -1, as
    "sustain" (-1) and "sustained" (1) in Agency. Then all its members with either direction are
    odd. A member may lack a direction if its dimension has none.

    Checked on the released file against counts by hand: 14,449 words, 28 dimensions, 12 with
    directions. The oddities, in the order of `ODDITY_KINDS`, are 2, 1, 3 and 28.
    """
    if source == SAMPLE:
        file = paths.SAMPLE / "stereotype_dictionary.csv"
    elif source == RELEASED:
        file = corpora.file(RELEASED, "Full Dictionaries.csv")
    else:
        file = given_path(source, (SAMPLE, RELEASED), "a CSV file")

    table = read_table(file)
    # Only the wide layout has this column.
    if WORD in table.columns:
        return _from_wide(file, table)
    return _from_long(file)


def _from_long(file: Path) -> Lexicon:
    """Read a dictionary with one row for each pair of word and dimension."""
    table = read_table(file, LONG_COLUMNS)
    _check_unique(file, table, ["word", "dimension"])
    is_direction = table.direction.isin(list(_DIRECTIONS))
    check(file, table.direction, is_direction, "-1, 0, 1 or nothing")

    # Spellings that differ in capitals are one word, and the first spelling names it.
    folded = table.word.map(fold)
    words = table.word[~folded.duplicated()]
    pairs = table.assign(word=folded)
    # pivot makes one row per word and one column per dimension, and sorts both. reindex brings
    # back the order of the file.
    directions = pairs.pivot(index="word", columns="dimension", values="direction")
    directions = directions.reindex(index=folded.unique(), columns=table.dimension.unique())
    directions.index = words.index

    # Every pair that the file lists is a membership, even without a direction.
    membership = directions.notna().replace({True: "1", False: "0"})
    return _lexicon(words, membership, directions.fillna("NA"), None)


def _from_wide(file: Path, table: pd.DataFrame) -> Lexicon:
    """Build a dictionary from a table with one row for each word, as released."""
    _check_unique(file, table, [WORD])
    dimensions = _names_before(_MEMBER, table)
    directed = _names_before(_DIRECTION, table)

    # Without membership columns, any table with this column of words would be an empty dictionary.
    if not dimensions and not directed:
        found = f"the columns {', '.join(table.columns)}"
        raise wrong(at(file, 1), found, f"a column '<dimension>{_MEMBER}' for each dimension")

    # A direction counts for members alone, so each dimension with directions needs its membership.
    # `read_table` raises the error for a column that the file lacks.
    needed = [name + _MEMBER for name in directed]
    read_table(file, needed)

    for name in dimensions:
        column = table[name + _MEMBER]
        # The released file has some -1, which `_lexicon` lists as odd.
        check(file, column, column.isin(["0", "1", "-1"]), "0 or 1")
    for name in directed:
        column = table[name + _DIRECTION]
        check(file, column, column.isin(list(_DIRECTIONS)), "-1, 0, 1 or NA")

    membership = table[[name + _MEMBER for name in dimensions]]
    # A dimension without directions gets a column of NA, so that both tables have the same shape.
    direction_columns = [name + _DIRECTION for name in dimensions]
    directions = table.reindex(columns=direction_columns, fill_value="NA")
    return _lexicon(
        table[WORD],
        membership.set_axis(dimensions, axis=1),
        directions.set_axis(dimensions, axis=1),
        table.get(LEMMA),
    )


def _names_before(suffix: str, table: pd.DataFrame) -> list[str]:
    """List the dimensions that have a column with this suffix."""
    has_suffix = table.columns.str.endswith(suffix)
    columns = table.columns[has_suffix]
    return columns.str.removesuffix(suffix).to_list()


def _lexicon(
    words: pd.Series, membership: pd.DataFrame, direction: pd.DataFrame, lemmas: pd.Series | None
) -> Lexicon:
    """Build a lexicon of checked cells, with its oddities. The index is the lines of the file."""
    members = membership == "1"
    directions = direction.replace(_DIRECTIONS).astype(float)
    has_direction = directions.notna()
    # A table of the same shape that is False everywhere.
    nowhere = members & False
    # In a dimension that has no directions at all, no member lacks one.
    masks = {
        "member without a direction": members & ~has_direction & has_direction.any(),
        "membership -1": membership == "-1",
        "direction without membership": has_direction & (membership == "0"),
        # A file without lemmas has no conflicts.
        "conflicting lemma": nowhere,
    }
    if lemmas is not None:
        masks["conflicting lemma"] = _conflicts(members, directions, lemmas)

    # stack() makes one row for each pair of line and dimension.
    cells = pd.DataFrame({"membership": membership.stack(), "direction": direction.stack()})
    odd_cells = {}
    is_odd = nowhere
    for oddity, mask in masks.items():
        odd_cells[oddity] = cells[mask.stack()]
        is_odd = is_odd | mask

    oddities = pd.concat(odd_cells, names=["oddity", "line", "dimension"]).reset_index()
    # This is an array, because a Series would be aligned by the lines of the file.
    oddities["word"] = words.loc[oddities.line].array
    oddities["oddity"] = pd.Categorical(oddities.oddity, ODDITY_KINDS)
    columns = ["word", "dimension", "oddity", "membership", "direction", "line"]

    names = pd.Index(words, name="word")
    return Lexicon(
        words=names,
        members=members.set_axis(names, axis=0),
        directions=directions.set_axis(names, axis=0),
        odd=is_odd.set_axis(names, axis=0),
        oddities=oddities[columns],
    )


def _conflicts(members: pd.DataFrame, directions: pd.DataFrame, lemmas: pd.Series) -> pd.DataFrame:
    """Mark members with a direction whose lemma has members with direction 1 and with -1."""
    up = members & (directions == 1)
    down = members & (directions == -1)
    folded = lemmas.map(fold)
    # These tell whether any row with the same lemma points up, and whether any points down.
    lemma_has_up = up.groupby(folded).transform("any")
    lemma_has_down = down.groupby(folded).transform("any")
    return (up | down) & lemma_has_up & lemma_has_down


def _check_unique(file: Path, table: pd.DataFrame, columns: list[str]) -> None:
    """Raise an InputError if a cell of `columns` is empty, or a row comes twice ignoring case."""
    folded = table[columns].map(fold)
    for column in columns:
        check(file, table[column], folded[column] != "", "a value")
    once(file, table[columns], folded)


@cache
def lemmatizer(way: str = "sound") -> Lemmatizer:
    """Load a function from a folded word to the lemmas it may have, likeliest first.

    Parameters
    ----------
    way : {"sound", "paper"}
        ``"sound"`` takes lemminflect's lemmas of the word as a noun, verb and adjective. For a word
        that lemminflect does not list, it guesses only if the word ends in -s, -ed or -ing (not
        "camp" of "camper"). ``"paper"`` takes spaCy's en_core_web_sm, made for sentences.

    Returns
    -------
    callable
        The function. Its list may be empty, and may hold a lemma more than once.

    Raises
    ------
    InputError
        As `corpora.instrument`, for the ``"paper"`` way.

    Notes
    -----
    The released dictionary has 551 words (lower case, letters only) with another lemma. The sound
    way finds that lemma for 492 of them and a third word for 2; the paper's way for 458 and 6
    ("hat" of "hated").
    """
    if way == "paper":
        folder = corpora.instrument("en_core_web_sm")
        # The import takes seconds, so only this way pays for it.
        import spacy

        # The lemma of a single word needs neither entities nor a parse.
        model = spacy.load(folder, exclude=["ner", "parser", "senter"])
        # spaCy may split a word, and its last token has the ending.
        return lambda word: [model(word)[-1].lemma_]

    from lemminflect import getAllLemmas, getLemma

    def lemmas(word: str) -> list[str]:
        by_kind = getAllLemmas(word)
        # lemminflect guesses by endings, even by some that no noun or verb has, such as -est. So it
        # may guess only where the ending is one of theirs.
        if not by_kind and word.endswith(("s", "ed", "ing")):
            by_kind = {"NOUN": getLemma(word, "NOUN"), "VERB": getLemma(word, "VERB")}

        in_order = []
        for kind in ("NOUN", "VERB", "ADJ"):
            in_order.extend(by_kind.get(kind, ()))
        return in_order

    return lemmas


def load_mappings(*files: str | Path) -> dict[str, str]:
    """Read keywords that no rule finds, and the word that a person chose for each.

    Parameters
    ----------
    *files : str or Path
        The user's files (CSV, ``keyword`` and ``word``), read after `MAPPINGS`. A later file
        overrides an earlier one.

    Returns
    -------
    dict
        From a folded keyword to a folded word of the dictionary.

    Raises
    ------
    InputError
        As `read_table`; for an empty cell; for a keyword twice in a file.
    """
    users = [Path(file).expanduser() for file in files]
    mappings: dict[str, str] = {}

    for file in [MAPPINGS, *users]:
        table = read_table(file, ["keyword", "word"])
        _check_unique(file, table, ["keyword"])
        words = table.word.map(fold)
        check(file, table.word, words != "", "a value")
        mappings.update(zip(table.keyword.map(fold), words, strict=True))

    return mappings


class _Index(NamedTuple):
    """Mappings from forms of a keyword to words as the dictionary spells them."""

    exact: dict[str, str]  # by folded word
    joined: dict[str, str]  # by folded word without spaces and hyphens
    by_hand: dict[str, str | None]  # by keyword in that form; None for a word that is missing
    lemmas: Lemmatizer


def _index(lexicon: Lexicon, lemmas: Lemmatizer, mappings: dict[str, str]) -> _Index:
    """Index the words of a dictionary and the mappings by the forms that `_RULES` look up."""
    exact = {}
    joined = {}
    by_hand = {}

    # The words go from the last to the first. So if two words are equal without spaces and hyphens,
    # `joined` keeps the earlier one.
    for word in reversed(lexicon.words):
        exact[fold(word)] = word
    for folded, word in exact.items():
        joined[_join(folded)] = word
    for keyword, word in mappings.items():
        by_hand[_join(keyword)] = joined.get(_join(word))

    return _Index(exact, joined, by_hand, lemmas)


def _find_exact(keyword: str, index: _Index) -> str | None:
    """Find the keyword itself, with or without the marks around it (rule 1)."""
    # A word of the dictionary may have such marks itself.
    if keyword in index.exact:
        return index.exact[keyword]

    bare = keyword.strip(_OUTER)
    return index.exact.get(bare)


def _find_joined(keyword: str, index: _Index) -> str | None:
    """Find the keyword when hyphens and spaces are ignored (rule 2)."""
    bare = keyword.strip(_OUTER)
    return index.joined.get(_join(bare))


def _find_lemma(keyword: str, index: _Index) -> str | None:
    """Find the keyword without hyphens and spaces, its last part as a lemma (rule 3)."""
    bare = keyword.strip(_OUTER)
    *first_parts, last_part = _SEPARATORS.split(bare)
    # A keyword of marks alone leaves no part.
    if not last_part:
        return None

    start = "".join(first_parts)
    for lemma in index.lemmas(last_part):
        joined = start + _join(fold(lemma))
        if joined in index.joined:
            return index.joined[joined]
    return None


def _find_last_word(keyword: str, index: _Index) -> str | None:
    """Find the second word of two, unless a word of the two turns the sense (rule 4)."""
    # Only a space parts words here: "god-fearing" is one word.
    parts = keyword.strip(_OUTER).split(" ")
    if len(parts) != 2 or not _TURNING.isdisjoint(parts):
        return None
    return index.exact.get(parts[1])


def _find_by_hand(keyword: str, index: _Index) -> str | None:
    """Find the word that a person chose for the keyword (rule 5)."""
    bare = keyword.strip(_OUTER)
    return index.by_hand.get(_join(bare))


def _find_letters(keyword: str, index: _Index) -> str | None:
    """Find the keyword letter by letter, capitals aside (the paper's first stage)."""
    return index.exact.get(keyword)


def _find_lemma_of_one_word(keyword: str, index: _Index) -> str | None:
    """Find a keyword without a space by a lemma of its last part (the paper's second stage)."""
    # rfind gives -1 without a hyphen: then the whole keyword is the last part.
    start = keyword.rfind("-") + 1
    last_part = keyword[start:]
    if " " in keyword or not last_part:
        return None

    for lemma in index.lemmas(last_part):
        word = index.exact.get(keyword[:start] + fold(lemma))
        if word:
            return word
    return None


def _find_by_hand_as_given(keyword: str, index: _Index) -> str | None:
    """Find the word that a person chose for the keyword (the paper's third stage)."""
    return index.by_hand.get(_join(keyword))


_Rule = Callable[[str, _Index], str | None]  # from a folded keyword to a word, if there is one

_RULES: dict[str, dict[str, _Rule]] = {
    "sound": {
        "exact": _find_exact,
        "joined or split": _find_joined,
        "lemma": _find_lemma,
        "last word": _find_last_word,
        "by hand": _find_by_hand,
    },
    "paper": {
        "exact": _find_letters,
        "lemma": _find_lemma_of_one_word,
        "by hand": _find_by_hand_as_given,
    },
}


def find(
    keywords: Iterable[str],
    lexicon: Lexicon,
    lemmas: Lemmatizer,
    mappings: dict[str, str],
    way: str = "sound",
) -> pd.DataFrame:
    """Look up keywords in a dictionary, by five rules in turn.

    Parameters
    ----------
    keywords : iterable of str
        A Series keeps its index.
    lexicon : Lexicon
        The dictionary.
    lemmas : callable
        A function of `lemmatizer`.
    mappings : dict
        The mappings of `load_mappings`.
    way : {"sound", "paper"}
        The five rules of the notes, or the three stages of Table 15.

    Returns
    -------
    DataFrame
        One row for each keyword: ``keyword``; ``word`` as the dictionary spells it; ``step``
        (categories `LOOKUP_STEPS`). Word and step are missing where no rule finds a word.

    Notes
    -----
    1. exact: the keyword is a word, ignoring capitals, doubled spaces and marks around it
       ("**Caring:**").
    2. joined or split: it is a word when hyphens and spaces are ignored ("hard-working"). If
       several words of the dictionary fit, the first counts.
    3. lemma: it is such a word with one of `lemmas` in place of its last word ("risk takers", risk
       taker).
    4. last word: the second word of a phrase of two is a word ("very friendly"). The rule does not
       apply where one of the two may turn the sense ("not friendly", "well off"), nor after a
       hyphen ("god-fearing").
    5. by hand: one of `mappings` gives a word that the dictionary has.

    The paper's stages (appendix M) are: letter by letter, capitals aside; a keyword without a space
    by its lemma ("two-word phrases failed"); by hand. Then `step` is exact, lemma or by hand.

    Checked on the released dictionary, where every word finds itself.
    """
    rules = _RULES["paper" if way == "paper" else "sound"]
    index = _index(lexicon, lemmas, mappings)
    series = pd.Series(keywords, dtype=object)
    words = {}
    steps = {}

    # Keywords repeat, so each different one is looked up once.
    for keyword in series.unique():
        word, step = _apply(rules, fold(keyword), index)
        words[keyword] = word
        steps[keyword] = step

    return pd.DataFrame(
        {
            "keyword": series,
            # pandas' type "str" keeps a missing word missing.
            "word": series.map(words).astype("str"),
            "step": pd.Categorical(series.map(steps), LOOKUP_STEPS, ordered=True),
        }
    )


def _apply(
    rules: dict[str, _Rule], keyword: str, index: _Index
) -> tuple[str, str] | tuple[None, None]:
    """Return the word and the step of the first rule that finds a word, else None twice."""
    for step, rule in rules.items():
        word = rule(keyword, index)
        if word:
            return word, step
    return None, None


def coverage(lookups: pd.DataFrame, by: str) -> pd.DataFrame:
    """Compute the share of keywords that have a word after each step, as in Table 15.

    Parameters
    ----------
    lookups : DataFrame
        A table of `find` with a column `by`.
    by : str
        The column whose values are counted apart, e.g. ``model``.

    Returns
    -------
    DataFrame
        ``step`` (1 to 5); ``stage`` (of `LOOKUP_STEPS`); ``printed_stage`` (its name in Table 15,
        or empty); the column `by`; ``coverage_pct``, the percentage of keywords found at this step
        or before; ``n`` keywords.
    """
    # The code of a keyword without a word is -1.
    step_numbers = pd.Categorical(lookups.step, LOOKUP_STEPS).codes
    has_word = step_numbers >= 0
    by_stage = {}
    for number, stage in enumerate(LOOKUP_STEPS):
        by_stage[stage] = has_word & (step_numbers <= number)

    # Whether each keyword has a word by each stage.
    reached = pd.DataFrame(by_stage, lookups.index)
    groups = reached.groupby(lookups[by], sort=False)
    percent = 100 * groups.mean()
    rows = percent.assign(n=groups.size()).reset_index()
    # melt makes one row for each value of `by` and each stage.
    rows = rows.melt([by, "n"], var_name="stage", value_name="coverage_pct")

    stage_numbers = rows.stage.map(LOOKUP_STEPS.index)
    # Without any keyword the type of the column is not a number, hence astype.
    rows["step"] = stage_numbers.astype(int) + 1
    rows["printed_stage"] = rows.stage.map(PRINTED_STAGES).fillna("")
    return rows[["step", "stage", "printed_stage", by, "coverage_pct", "n"]]
