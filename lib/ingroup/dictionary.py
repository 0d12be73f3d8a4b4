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
    odd : DataFrame, (W, D)
        Pairs that the scores leave out: members without a direction, and directions without
        membership.
    """

    members: pd.DataFrame
    directions: pd.DataFrame
    odd: pd.DataFrame

    @property
    def directed(self) -> pd.Series:
        """Tell which dimensions have directions. The others only count words."""
        return self.directions.notna().any()


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
    return _lexicon(members.notna(), directions)


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
    return _lexicon(members.set_axis(index), directions.set_axis(index))


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


def _lexicon(members, directions):
    """Build a lexicon, with its odd pairs."""
    has_direction = directions.notna()
    is_directed = has_direction.any()
    lacks_direction = members & ~has_direction & is_directed
    lacks_membership = has_direction & ~members
    odd = lacks_direction | lacks_membership
    return Lexicon(members, directions, odd)


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
    forms = _Forms(lexicon, lemmas)
    rule = _paper_stages if way == "paper" else _five_rules
    table = pd.Series(keywords, dtype=object, name="keyword").to_frame()
    # Keywords repeat, so each different one is looked up once.
    different = table.keyword.unique()
    found = {keyword: rule(fold(keyword), forms) for keyword in different}

    pairs = table.keyword.map(found)
    words = pairs.str[0]
    steps = pairs.str[1]
    table["word"] = words.astype("str")
    table["step"] = pd.Categorical(steps, STEPS)
    return table


class _Forms:
    """The forms of a dictionary's words, and the keywords for which a person chose one."""

    def __init__(self, lexicon, lemmas):
        self.lemmas = lemmas
        words = lexicon.members.index
        self.words = set(words)
        self.joined = {}
        for word in words:
            # Of two words that are equal without spaces and hyphens, the earlier one counts.
            self.joined.setdefault(_join(word), word)

        file = FOLDER / "turning_words.txt"
        turning = file.read_text("utf8")
        self.turning = set(turning.split())

        chosen = read_table(FOLDER / "keyword_mappings.csv", ["keyword", "word"])
        self.by_hand = {}
        for row in chosen.itertuples():
            keyword = _join(row.keyword)
            self.by_hand[keyword] = _join(row.word)

    def chosen(self, keyword):
        """Return the word that a person chose, and the last step."""
        joined = _join(keyword)
        chosen = self.by_hand.get(joined)
        word = self.joined.get(chosen)
        return (word, "by hand") if word else (None, None)

    def lemmas_of(self, word):
        """List the folded lemmas of a word, none of an empty one."""
        found = self.lemmas(word) if word else []
        return map(fold, found)


def _five_rules(keyword, forms):
    """Return the word and the step of the first of the five rules that finds a word."""
    if keyword in forms.words:
        return keyword, "exact"
    bare = keyword.strip(MARKS)
    if bare in forms.words:
        return bare, "exact"

    joined = _join(bare)
    if joined in forms.joined:
        return forms.joined[joined], "joined or split"

    *_, last_part = SEPARATORS.split(bare)
    stem = joined.removesuffix(last_part)
    for lemma in forms.lemmas_of(last_part):
        with_lemma = stem + _join(lemma)
        if with_lemma in forms.joined:
            return forms.joined[with_lemma], "lemma"

    parts = bare.split(" ")
    last_word = parts[-1]
    may_turn = not forms.turning.isdisjoint(parts)
    if len(parts) == 2 and not may_turn and last_word in forms.words:
        return last_word, "last word"
    return forms.chosen(bare)


def _paper_stages(keyword, forms):
    """Return the word and the step of the first of the paper's stages that finds a word."""
    if keyword in forms.words:
        return keyword, "exact"

    if " " not in keyword:
        *_, last_part = SEPARATORS.split(keyword)
        stem = keyword.removesuffix(last_part)
        for lemma in forms.lemmas_of(last_part):
            with_lemma = stem + lemma
            if with_lemma in forms.words:
                return with_lemma, "lemma"

    return forms.chosen(keyword)


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
    With n keywords k that have a word, membership m (odd pairs are no members) and direction r,
    :math:`share_d = \sum_k m_{kd} / n` and :math:`score_d = \sum_k m_{kd} r_{kd} / n`.
    """
    rows = lookups.dropna(subset="word")
    keys = [rows[name].to_numpy() for name in by]
    is_counted = lexicon.members & ~lexicon.odd
    signed = lexicon.directions.where(is_counted, 0)
    signed = signed.where(lexicon.directed, axis=1)

    means = []
    for cells in (is_counted.astype(float), signed):
        of_keywords = cells.loc[rows.word]
        of_groups = of_keywords.groupby(keys, sort=False).mean()
        first = of_groups.groupby(level=0, sort=False)
        means.append(first.mean())
    shares, scores = means
    return _long(shares, scores, by[0])


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
    is_known = words.isin(lexicon.members.index)
    has_space = words.str.contains(" ")
    is_counted = is_known & ~has_space
    rows = lookups[["cluster"]].assign(word=words)
    rows = rows[is_counted].drop_duplicates()
    clusters = rows.cluster.to_numpy()

    members = lexicon.members.astype(float)
    of_words = members.loc[rows.word]
    pairs = of_words.groupby(clusters, sort=False).sum()

    signed = lexicon.directions.where(lexicon.directed, 1, axis=1)
    signed = signed.where(lexicon.members, 0)
    of_words = signed.loc[rows.word]
    total = of_words.groupby(clusters, sort=False).sum(skipna=False)

    n_pairs = pairs.sum(axis=1).replace(0, np.nan)
    shares = pairs.div(n_pairs, axis=0)
    scores = total.div(n_pairs, axis=0)
    return _long(shares, scores, "cluster")


def _long(shares, scores, by):
    """Put tables of groups by dimensions into one long table."""
    both = pd.concat({"share": shares, "score": scores}, axis=1)
    table = both.stack(future_stack=True)
    table = table.rename_axis([by, "dimension"])
    return table.reset_index()
