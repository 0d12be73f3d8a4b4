"""The Stereotype Content Dictionary: keywords to words, and words to dimensions.

Two dictionaries are available: a small one of this project (data/sample), and the released one
(Nicolas, Bai and Fiske 2021), which ``make data`` fetches.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from ingroup import RAW, SAMPLE, STIMULI
from ingroup.keywords import instrument
from ingroup.tables import check, read_table

RELEASED = "stereotype-content-dictionary"
WORD = "original word"  # columns of the released layout, one row for each word
MEMBER = " dictionary"
DIRECTION = " direction"
NO_DIRECTION = ("", "na", "n/a", "nan", "none", "null")

FOLDER = STIMULI / "stereomap"

STEPS = ["exact", "joined or split", "lemma", "last word", "by hand"]
SEPARATORS = re.compile(r"[\s-]+")
MARKS = " .,;:!?*_\"'“”()[]-"  # around a keyword, in a sentence or a list
PLAIN = str.maketrans("‐‑–—’‘", "----''")

Lemmas = Callable[[str], list[str]]  # from a word to the lemmas it may have, likeliest first


def fold(text: str) -> str:
    """Write a word in lower case, with plain marks and single spaces, as words are compared."""
    plain = unicodedata.normalize("NFKC", text).translate(PLAIN)
    return " ".join(plain.casefold().split())


def load_lexicon(source: str = "sample") -> pd.DataFrame:
    """Read a dictionary.

    Parameters
    ----------
    source : str
        "sample", "stereotype-content-dictionary" (needs ``make data``), or a CSV file. A file has
        one row for each pair (``word``, ``dimension``, ``direction``) or, as released, one row for
        each word.

    Returns
    -------
    DataFrame
        A row for each pair: ``word``, in the form of `fold`; ``dimension``, missing for a word
        without one; ``direction``, -1, 0 or 1, NaN where the file gives none; ``is_directed``,
        whether the dimension has directions. The others only count words.

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
    table = read_table(file)
    pairs = _from_wide(file, table) if WORD in table else _from_long(file)

    has_direction = pairs.direction.notna()
    directed = pairs.dimension[has_direction]
    pairs["is_directed"] = pairs.dimension.isin(directed)
    return pairs


def _from_long(file):
    """Read a dictionary with one row for each pair of word and dimension."""
    table = read_table(file, ["word", "dimension", "direction"])
    table["word"] = _folded(file, table.word)
    table["dimension"] = table.dimension.str.strip()
    table["direction"] = _numbers(file, table.direction)
    pairs = table[["word", "dimension", "direction"]]
    is_again = pairs.duplicated(["word", "dimension"])
    check(file, pairs.word, ~is_again, "each word once in a dimension")
    return pairs


def _from_wide(file, table):
    """Read a dictionary with one row for each word, as released."""
    words = _folded(file, table[WORD])
    nothing = pd.Series("", table.index)
    parts = []
    for column in table.filter(regex=f"{MEMBER}$"):
        dimension = column.removesuffix(MEMBER)
        cells = table.get(dimension + DIRECTION, nothing)
        columns = {
            "word": words,
            "dimension": dimension,
            "direction": _numbers(file, cells),
        }
        # The released file has a few -1, which count as no membership.
        is_member = _numbers(file, table[column]) == 1
        pairs = pd.DataFrame(columns)[is_member]
        parts.append(pairs)
    # Words without a dimension are words of the dictionary, too.
    parts.append(words.to_frame("word"))
    return pd.concat(parts, ignore_index=True)


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
    keywords: Iterable[str],
    lexicon: pd.DataFrame,
    lemmas: Lemmas = lemmas,
    way: str = "sound",
) -> pd.DataFrame:
    """Look up keywords in a dictionary, by five rules in turn.

    Parameters
    ----------
    keywords : iterable of str
        A Series keeps its index.
    lexicon : DataFrame
        From `load_lexicon`.
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
        folded = fold(keyword)
        tried = rule(folded, forms)
        hits = (pair for pair in tried if pair[0])
        found[keyword] = next(hits, (None, None))

    pairs = [found[keyword] for keyword in table.keyword]
    of_keywords = pd.DataFrame(pairs, table.index, ["word", "step"])
    table["word"] = of_keywords.word.astype("str")
    table["step"] = pd.Categorical(of_keywords.step, STEPS)
    return table


class _Forms(NamedTuple):
    """The forms of a dictionary's words, and the keywords for which a person chose one."""

    words: dict[str, str]
    joined: dict[str, str]  # words by their form without spaces and hyphens
    by_hand: dict[str, str]  # the same form of the chosen word, by that of the keyword
    turning: list[str]
    lemmas: Lemmas


def _forms(lexicon, lemmas):
    """Collect what the rules look up."""
    chosen = read_table(FOLDER / "keyword_mappings.csv", ["keyword", "word"])
    turning = (FOLDER / "turning_words.txt").read_text("utf8")
    # Of two words that are equal without spaces and hyphens, the earlier one counts.
    words = lexicon.word[::-1]
    joined = words.map(_join)
    keywords = chosen.keyword.map(_join)
    by_hand = chosen.word.map(_join)
    return _Forms(
        words=dict(zip(words, words, strict=True)),
        joined=dict(zip(joined, words, strict=True)),
        by_hand=dict(zip(keywords, by_hand, strict=True)),
        turning=turning.split(),
        lemmas=lemmas,
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
    joined = _join(bare)
    yield forms.joined.get(joined), "joined or split"
    for form in _with_lemmas(bare, forms):
        joined = _join(form)
        yield forms.joined.get(joined), "lemma"

    parts = bare.split(" ")
    last_word = parts[-1]
    may_turn = set(parts).intersection(forms.turning)
    if len(parts) == 2 and not may_turn:
        yield forms.words.get(last_word), "last word"
    yield _by_hand(bare, forms)


def _paper_stages(keyword, forms):
    """Yield the word that each of the paper's stages finds, if any, and its step."""
    yield forms.words.get(keyword), "exact"
    if " " not in keyword:
        for form in _with_lemmas(keyword, forms):
            yield forms.words.get(form), "lemma"
    yield _by_hand(keyword, forms)


def _by_hand(keyword, forms):
    """Return the word that a person chose, if any, and the step."""
    joined = _join(keyword)
    chosen = forms.by_hand.get(joined)
    return forms.joined.get(chosen), "by hand"


def _join(text: str) -> str:
    """Fold a text, and remove its spaces and hyphens."""
    return SEPARATORS.sub("", fold(text))


def scores(lookups: pd.DataFrame, lexicon: pd.DataFrame, by: str) -> pd.DataFrame:
    r"""Score each dimension by the keywords of a group, counting repeated keywords again.

    Parameters
    ----------
    lookups : DataFrame
        From `find`, with the columns ``group`` and `by`.
    lexicon : DataFrame
        From `load_lexicon`.
    by : {"group", "cluster"}
        What is scored. A cluster's score is the mean over its groups, in which no group counts more
        for having more keywords.

    Returns
    -------
    DataFrame
        The column `by`, ``dimension``, ``share`` (0 to 1) and ``score`` (-1 to 1, missing for
        dimensions without directions).

    Notes
    -----
    With n keywords k that have a word, membership m and direction r,
    :math:`share_d = \sum_k m_{kd} / n` and :math:`score_d = \sum_k m_{kd} r_{kd} / n`. A pair that
    lacks its direction is no membership.
    """
    rows = lookups.dropna(subset="word")
    n_keywords = rows.groupby("group").word.transform("size")
    n_groups = rows.groupby(by).group.transform("nunique")
    # All groups of a cluster weigh the same, however many keywords they have.
    share = 1 / (n_keywords * n_groups)
    weighted = rows.assign(share=share)
    pairs = weighted.merge(lexicon, on="word")
    is_odd = pairs.is_directed & pairs.direction.isna()
    counted = pairs[~is_odd]
    return _sums(counted, by)


def released_scores(lookups: pd.DataFrame, lexicon: pd.DataFrame) -> pd.DataFrame:
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
    has_space = words.str.contains(" ")
    rows = lookups[["cluster"]].assign(word=words)
    single = rows[~has_space]
    different = single.drop_duplicates()
    pairs = different.merge(lexicon, on="word")
    pairs = pairs.dropna(subset="dimension")
    pairs["direction"] = pairs.direction.where(pairs.is_directed, 1)

    n_pairs = pairs.groupby("cluster").word.transform("size")
    pairs["share"] = 1 / n_pairs
    return _sums(pairs, "cluster")


def _sums(pairs, by):
    """Add up shares, and shares with their direction, in each dimension."""
    score = pairs.share * pairs.direction
    pairs = pairs.assign(score=score)
    by_dimension = pairs.groupby([by, "dimension"])
    summed = by_dimension[["share", "score"]].sum(skipna=False)
    return summed.reset_index()
