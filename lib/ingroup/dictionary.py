"""The Stereotype Content Dictionary: keywords to words, and words to dimensions.

Two dictionaries are available: a small one of this project (data/sample), and the released one
(Nicolas, Bai and Fiske 2021), which ``make data`` fetches.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ingroup.keywords import instrument
from ingroup.paths import RAW, SAMPLE, STIMULI
from ingroup.tables import InputError, check, read_table

RELEASED = "stereotype-content-dictionary"
WORD = "original word"  # columns of the released layout, one row for each word
MEMBER = " dictionary"
DIRECTION = " direction"
NO_DIRECTION = ("", "na", "n/a", "nan", "none", "null")

FOLDER = STIMULI / "stereomap"

STEPS = ["exact", "joined or split", "lemma", "last word", "by hand"]
PRINTED_STAGES = {  # of Table 15
    "exact": "Initial Coverage",
    "lemma": "+Lemmatization Coverage",
    "by hand": "+Coverage",
}
SEPARATORS = re.compile(r"[\s-]+")
MARKS = " .,;:!?*_\"'“”()[]-"  # around a keyword, in a sentence or a list
PLAIN = str.maketrans("‐‑–—’‘", "----''")

Lemmas = Callable[[str], list[str]]  # from a word to the lemmas it may have, likeliest first


class Lexicon(NamedTuple):
    """A dictionary of W words and D dimensions.

    Attributes
    ----------
    members : DataFrame, (W, D)
        Whether a word belongs to a dimension, by the word in the form of `fold`.
    directions : DataFrame, (W, D)
        -1, 0 or 1; NaN where the file gives none.
    """

    members: pd.DataFrame
    directions: pd.DataFrame

    @property
    def directed(self) -> pd.Series:
        """Tell which dimensions have directions. The others only count words."""
        return self.directions.notna().any()

    @property
    def counted(self) -> pd.DataFrame:
        """Tell which pairs the scores count: members, unless their direction is missing."""
        has_direction = self.directions.notna()
        return self.members & (has_direction | ~self.directed)


def fold(text: str) -> str:
    """Write a word in lower case, with plain marks and single spaces, as words are compared."""
    plain = unicodedata.normalize("NFKC", text).translate(PLAIN)
    return " ".join(plain.casefold().split())


def load_lexicon(source: str = "sample") -> Lexicon:
    """Read a dictionary.

    Parameters
    ----------
    source : str
        "sample", "stereotype-content-dictionary" (needs ``make data``), or a CSV file. A file has
        one row for each pair (``word``, ``dimension``, ``direction``) or, as released, one row for
        each word.

    Raises
    ------
    InputError
        A cell is wrong, with its file, line and column.
    """
    known = {
        "sample": SAMPLE / "stereotype_dictionary.csv",
        RELEASED: RAW / RELEASED / "Full Dictionaries.csv",
    }
    file = known.get(source, Path(source))
    if source == RELEASED and not file.exists():
        raise InputError(f"{file} is not there: make data fetches it")
    table = read_table(file)
    return _from_wide(file, table) if WORD in table else _from_long(file)


def _from_long(file):
    """Read a dictionary with one row for each pair of word and dimension."""
    table = read_table(file, ["word", "dimension", "direction"])
    table["word"] = _folded(file, table.word)
    table["dimension"] = table.dimension.str.strip()
    table["direction"] = _numbers(file, table.direction)
    pair = ["word", "dimension"]
    is_again = table.duplicated(pair)
    check(file, table.word, ~is_again, "each word once in a dimension")

    table["member"] = True
    by_pair = table.set_index(pair)
    members = by_pair.member.unstack(sort=False)
    directions = by_pair.direction.unstack(sort=False)
    return Lexicon(members.notna(), directions)


def _from_wide(file, table):
    """Read a dictionary with one row for each word, as released."""
    words = _folded(file, table[WORD])
    members = pd.DataFrame(index=table.index)
    directions = members.copy()
    for column in table.filter(regex=f"{MEMBER}$"):
        dimension = column.removesuffix(MEMBER)
        # The released file has a few -1, which count as no membership.
        members[dimension] = _numbers(file, table[column]) == 1

        direction = dimension + DIRECTION
        directions[dimension] = np.nan
        if direction in table:
            directions[dimension] = _numbers(file, table[direction])

    index = pd.Index(words, name="word")
    return Lexicon(members.set_axis(index), directions.set_axis(index))


def _folded(file, words):
    """Fold the words of a dictionary. Refuse empty ones and wildcards."""
    folded = words.map(fold)
    is_wrong = folded.eq("") | folded.str.endswith("*")
    check(file, words, ~is_wrong, "a whole word")
    return folded


def _numbers(file, cells):
    """Read cells as -1, 0 or 1, NaN where they are empty."""
    texts = cells.str.strip().str.lower()
    is_empty = texts.isin(NO_DIRECTION)
    filled = texts.mask(is_empty)
    numbers = pd.to_numeric(filled, errors="coerce")
    is_right = numbers.isin([-1, 0, 1]) | is_empty
    check(file, cells, is_right, "-1, 0, 1 or nothing")
    return numbers


def lemmas(word: str) -> list[str]:
    """List the lemmas of a word as a noun, a verb and an adjective, by lemminflect.

    It guesses the lemma of a word that it does not list only where the ending is -s, -ed or -ing
    (not "camp" of "camper").
    """
    from lemminflect import getAllLemmas, getLemma

    by_kind = getAllLemmas(word)
    if not by_kind and word.endswith(("s", "ed", "ing")):
        by_kind = {kind: getLemma(word, kind) for kind in ("NOUN", "VERB")}
    found: list[str] = []
    for kind in ("NOUN", "VERB", "ADJ"):
        found += by_kind.get(kind, ())
    return found


def spacy_lemmas() -> Lemmas:
    """Load the paper's lemmatiser, spaCy's en_core_web_sm, which was made for sentences."""
    import spacy

    folder = instrument("en_core_web_sm")
    model = spacy.load(folder, exclude=["ner", "parser", "senter"])
    # spaCy may split a word, and its last token has the ending.
    return lambda word: [model(word)[-1].lemma_]


def find(
    keywords: Iterable[str], lexicon: Lexicon, lemmas: Lemmas = lemmas, way: str = "sound"
) -> pd.DataFrame:
    """Look up keywords in a dictionary, by five rules in turn.

    Parameters
    ----------
    keywords : iterable of str
        A Series keeps its index.
    lexicon : Lexicon
        The dictionary.
    lemmas : callable
        `lemmas`, or what `spacy_lemmas` returns.
    way : {"sound", "paper"}
        The five rules, or the three stages of Table 15: letter by letter, the lemma of a keyword
        of one word, by hand.

    Returns
    -------
    DataFrame
        ``keyword``, ``word`` and ``step`` (of `STEPS`), both missing where no rule finds a word.

    Notes
    -----
    1. exact: the keyword is a word, whatever marks surround it ("**Caring:**").
    2. joined or split: it is a word without hyphens and spaces ("hard-working").
    3. lemma: it is a word with a lemma for its last part ("risk takers").
    4. last word: of two words the second is one ("very friendly"), unless one of them may turn the
       sense ("not friendly", "well off").
    5. by hand: a person chose a word for it (keyword_mappings.csv).
    """
    forms = _forms(lexicon, lemmas)
    rule = _paper_stages if way == "paper" else _five_rules
    table = pd.Series(keywords, dtype=object, name="keyword").to_frame()
    # Keywords repeat, so each different one is looked up once.
    found = {}
    for keyword in table.keyword.unique():
        tried = rule(fold(keyword), forms)
        found[keyword] = next((pair for pair in tried if pair[0]), (None, None))

    pairs = table.keyword.map(found)
    table["word"] = pairs.str[0].astype("str")
    table["step"] = pd.Categorical(pairs.str[1], STEPS)
    return table


class _Forms(NamedTuple):
    """The forms of a dictionary's words, and the keywords for which a person chose one."""

    words: dict[str, str]
    joined: dict[str, str]  # words by their form without spaces and hyphens
    by_hand: dict[str, str | None]  # words by a keyword in this form
    turning: set[str]
    lemmas: Lemmas


def _forms(lexicon, lemmas):
    """Collect what the rules look up."""
    words = lexicon.members.index
    # Of two words that are equal without spaces and hyphens, the earlier one counts.
    joined = {_join(word): word for word in reversed(words)}
    chosen = read_table(FOLDER / "keyword_mappings.csv", ["keyword", "word"])
    targets = chosen.word.map(_join).map(joined.get)
    by_hand = dict(zip(chosen.keyword.map(_join), targets, strict=True))
    turning = (FOLDER / "turning_words.txt").read_text("utf8")
    return _Forms(
        dict(zip(words, words, strict=True)), joined, by_hand, set(turning.split()), lemmas
    )


def _with_lemmas(text, forms):
    """Put each lemma of the last part in its place."""
    *_, last_part = SEPARATORS.split(text)
    stem = text.removesuffix(last_part)
    found = forms.lemmas(last_part) if last_part else []
    return [stem + fold(lemma) for lemma in found]


def _five_rules(keyword, forms):
    """Yield the word that each of the five rules finds, if any, and its step."""
    bare = keyword.strip(MARKS)
    yield forms.words.get(keyword), "exact"
    yield forms.words.get(bare), "exact"
    yield forms.joined.get(_join(bare)), "joined or split"
    for form in _with_lemmas(bare, forms):
        yield forms.joined.get(_join(form)), "lemma"

    parts = bare.split(" ")
    if len(parts) == 2 and forms.turning.isdisjoint(parts):
        yield forms.words.get(parts[1]), "last word"
    yield forms.by_hand.get(_join(bare)), "by hand"


def _paper_stages(keyword, forms):
    """Yield the word that each of the paper's stages finds, if any, and its step."""
    yield forms.words.get(keyword), "exact"
    if " " not in keyword:
        for form in _with_lemmas(keyword, forms):
            yield forms.words.get(form), "lemma"
    yield forms.by_hand.get(_join(keyword)), "by hand"


def _join(text: str) -> str:
    """Fold a text, and remove its spaces and hyphens."""
    return SEPARATORS.sub("", fold(text))


def coverage(lookups: pd.DataFrame) -> pd.DataFrame:
    """Compute the percentage of keywords that have a word after each step, as in Table 15.

    Parameters
    ----------
    lookups : DataFrame
        From `find`, with a column ``model``.

    Returns
    -------
    DataFrame
        A row for each model, a column for each of `STEPS`.
    """
    steps = pd.get_dummies(lookups.step)
    is_found = steps.cumsum(axis=1)
    by_model = is_found.groupby(lookups.model, sort=False)
    return 100 * by_model.mean()


def scores(lookups: pd.DataFrame, lexicon: Lexicon, by: list[str]) -> pd.DataFrame:
    r"""Score each dimension by the keywords of a group, counting repeated keywords again.

    Parameters
    ----------
    lookups : DataFrame
        From `find`, with the columns `by`.
    lexicon : Lexicon
        The dictionary.
    by : list of str
        ``["group"]``, or ``["cluster", "group"]`` for the mean over a cluster's groups, in which no
        group counts more for having more keywords.

    Returns
    -------
    DataFrame
        The first of `by`, ``dimension``, ``share`` (0 to 1) and ``score`` (-1 to 1, missing for
        dimensions without directions).

    Notes
    -----
    With n keywords k that have a word, membership m (`Lexicon.counted`) and direction r,
    :math:`share_d = \sum_k m_{kd} / n` and :math:`score_d = \sum_k m_{kd} r_{kd} / n`.
    """
    rows = lookups.dropna(subset="word")
    keys = [rows[name].to_numpy() for name in by]
    signed = lexicon.directions.where(lexicon.counted, 0)
    signed = signed.where(lexicon.directed, axis=1)

    means = {}
    for name, cells in {"share": lexicon.counted.astype(float), "score": signed}.items():
        of_groups = cells.loc[rows.word].groupby(keys, sort=False).mean()
        means[name] = of_groups.groupby(level=0, sort=False).mean()
    return _long(means, by[0])


def released_scores(lookups: pd.DataFrame, lexicon: Lexicon) -> pd.DataFrame:
    """Score as the released code does: each distinct keyword of a cluster counts once.

    A keyword counts if it has no space and equals a word. In a dimension without directions each
    pair counts +1; in the others a pair without a direction makes the score missing. The released
    script fails at WordNet's lemmatiser, whose import it lacks; that step is left out.

    Returns
    -------
    DataFrame
        The columns of `scores`: shares and scores of all pairs of a cluster.
    """
    words = lookups.keyword.str.strip().str.lower()
    is_counted = words.isin(lexicon.members.index) & ~words.str.contains(" ")
    rows = lookups[["cluster"]].assign(word=words)
    rows = rows[is_counted].drop_duplicates()
    clusters = rows.cluster.to_numpy()

    signed = lexicon.directions.where(lexicon.directed, 1, axis=1)
    signed = signed.where(lexicon.members, 0)
    sums = {}
    for name, cells in {"share": lexicon.members.astype(float), "score": signed}.items():
        by_cluster = cells.loc[rows.word].groupby(clusters, sort=False)
        sums[name] = by_cluster.sum(skipna=False)
    n_pairs = sums["share"].sum(axis=1).replace(0, np.nan)
    means = {name: table.div(n_pairs, axis=0) for name, table in sums.items()}
    return _long(means, "cluster")


def _long(tables, by):
    """Put tables of groups by dimensions into one long table."""
    both = pd.concat(tables, axis=1)
    table = both.stack(future_stack=True)
    table = table.rename_axis([by, "dimension"])
    return table.reset_index()
