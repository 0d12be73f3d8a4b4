"""Keywords of long texts: KeyBERT with one sentence model, over many documents and settings.

Tables 3 and 10 of Jeoung et al. 2023 list phrases that KeyBERT finds in the reasons models give.
`documents` joins and prepares the reasons of each cluster or group, `extract` finds their phrases.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import combinations
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.preprocessing import normalize

from ingroup import paths, tables
from ingroup.tables import InputError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

STOP_WORDS = paths.STIMULI / "stereomap" / "stopwords.txt"
WAYS = ("sound", "released")

# The three calls of the released code, as arguments of KeyBERT's extract_keywords.
SETTINGS = {
    "maxsum of 20": {"use_maxsum": True, "nr_candidates": 20},
    "MMR 0.7": {"use_mmr": True, "diversity": 0.7},
    "MMR 0.2": {"use_mmr": True, "diversity": 0.2},
}

# More sets than this are too many to add up; 15 of 22 are 170,544.
_MOST_SETS = 200_000
# Up to here the cosines between all candidates take 100 MB and no more.
_WHOLE = 5_000


class Extraction(NamedTuple):
    """What `extract` found: the phrases, and what there was to choose from."""

    phrases: pd.DataFrame
    documents: pd.DataFrame


def load_stop_words(file: str | Path = STOP_WORDS) -> tuple[str, ...]:
    """Words to take out of texts, from a file with one a line; a line with # is a comment.

    Raises
    ------
    InputError
        For a file that cannot be read or is not UTF-8.
    """
    lines = (line.strip() for line in tables.decoded(Path(file)).splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def prepare(
    text: str,
    groups: Iterable[str],
    way: str = "sound",
    stop_words: Iterable[str] | None = None,
) -> str:
    """A text in lower case, with "they" for every group and without the study's own stop words.

    Parameters
    ----------
    text : str
        The text.
    groups : iterable of str
        Every name that may stand for a group, e.g. "Mexican", "Mexicans", "poor Whites".
    way : str
        ``"sound"``: names and stop words are found in any case, as whole words; those of several
        words too, longest first, with spaces, a hyphen or nothing between ("Poor  whites",
        "blue-collar", "MuslimArtists"). Punctuation stays.
        ``"released"``: as the released code has it. The text is split at spaces; a token loses
        its punctuation ("low-income" becomes "lowincome"); one that equals a group's name is
        "they", so names of two words, with a hyphen or in the possessive stay; one that equals a
        stop word goes, so those with a capital or a space match nothing.
    stop_words : iterable of str, optional
        By default `load_stop_words`'s.

    Returns
    -------
    str

    Raises
    ------
    InputError
        For an unknown way, and a name or stop word that is not text, such as an empty cell.

    Notes
    -----
    Section 3.2 of Jeoung et al. 2023. English stop words stay in the text, also in the released
    code; `extract` keeps them out of the phrases.
    """
    if way not in WAYS:
        raise InputError(f"A text is prepared the way {' or '.join(WAYS)}, not {way!r}.")
    names, stops = (
        frozenset(groups),
        frozenset(load_stop_words() if stop_words is None else stop_words),
    )
    for word in names | stops:
        if not isinstance(word, str):
            raise InputError(f"Names and stop words: found {word!r}, expected text.")
    if way == "released":
        names = {name.lower() for name in names}
        tokens = (re.sub(r"[^\w\s]", "", token.lower()) for token in text.split(" "))
        tokens = ("they" if token in names else token.strip() for token in tokens)
        return " ".join(token for token in tokens if token not in stops)
    text = _whole_words(names).sub("they", text.lower())
    return " ".join(_whole_words(stops).sub(" ", text).split())


@cache
def _whole_words(names: frozenset[str]) -> re.Pattern[str]:
    """A pattern of any of the names in lower case, the longest that fits; of none without names."""
    parts = [re.split(r"[\s-]+", name.strip().lower()) for name in names if name.strip()]
    parts.sort(key=lambda words: (-len("".join(words)), words))
    either = "|".join(r"[\s-]*".join(map(re.escape, words)) for words in parts)
    return re.compile(rf"(?<!\w)(?:{either})(?!\w)" if parts else r"(?!)")


def documents(
    reasons: pd.DataFrame,
    by: str,
    groups: Iterable[str],
    way: str = "sound",
    stop_words: Iterable[str] | None = None,
) -> dict[Hashable, str]:
    """One document for each cluster or group: its reasons, joined and prepared.

    Parameters
    ----------
    reasons : pandas.DataFrame
        A reason a row: column ``text``, and `by`; rows where `by` is missing are left out.
    by : str
        The column that tells the documents apart, e.g. ``"cluster"`` or ``"group"``.
    groups, way, stop_words
        As for `prepare`. A text that comes again counts once in a document; in the released way
        once in the whole table, where it comes first.

    Returns
    -------
    dict
        From each value of `by`, sorted, to its document; reasons in the order of the table.

    Raises
    ------
    InputError
        For a missing column, a reason that is not text, an unknown way.
    """
    for column in ("text", by):
        if column not in reasons.columns:
            raise InputError(
                f"The reasons have no column {column!r}, found {', '.join(map(str, reasons))}."
            )
    for row, text in enumerate(reasons.text, start=1):
        if not isinstance(text, str):
            raise InputError(f"Reason {row} of {len(reasons)}: found {text!r}, expected text.")
    once = reasons.drop_duplicates("text" if way == "released" else ["text", by])
    groups = tuple(groups)
    return {
        name: prepare(" ".join(part.text), groups, way, stop_words)
        for name, part in once.groupby(by, observed=True)
    }


def extract(
    documents: Mapping[Hashable, str],
    model: "SentenceTransformer",
    settings: Mapping[str, Mapping[str, Any]] = SETTINGS,
    top_n: int = 15,
    ngrams: tuple[int, int] = (1, 3),
    stop_words: str | Sequence[str] | None = "english",
) -> Extraction:
    """The phrases of each document that lie nearest to it, by KeyBERT's rules.

    Candidates are a document's n-grams without stop words. maxsum takes the `nr_candidates`
    nearest to the document and of these the `top_n` with the smallest sum of cosines between them;
    MMR takes one after the other the candidate with the largest
    (1 - diversity) x cosine to the document - diversity x largest cosine to one taken before.

    Parameters
    ----------
    documents : mapping
        From a name, e.g. a cluster or a group, to a prepared text.
    model : SentenceTransformer
        As from `sentence_model.load_model`.
    settings : mapping
        From a name to arguments of KeyBERT: ``use_maxsum`` and ``nr_candidates``, or ``use_mmr``
        and ``diversity``. All of them share one
        embedding.
    top_n : int
        Phrases for each document and setting.
    ngrams : tuple of int
        Fewest and most words of a phrase, stop words not counted.
    stop_words : str, sequence of str or None
        Words that no phrase has, as for scikit-learn's CountVectorizer.

    Returns
    -------
    Extraction
        ``phrases``: a row a phrase with ``document``, ``setting``, ``rank`` (1 is the nearest),
        ``phrase``, ``score`` (cosine, 4 decimals). KeyBERT lists maxsum the other way round.
        ``documents``: a row a document with ``document``, ``n_candidates``, ``n_pieces`` (its word
        pieces) and ``read_pct``, how much of it the model reads: of a long text only the first
        ``model.max_seq_length`` pieces (256), so that a whole cluster is judged by its first few
        reasons. A document with fewer than `top_n` candidates has, as in KeyBERT, no phrase by
        maxsum and all its candidates by MMR.

    Raises
    ------
    InputError
        For a document that is not text, and settings that KeyBERT or the time do not allow.

    Notes
    -----
    The result is, to the last digit, that of one KeyBERT call for each document and setting
    (tests/test_keywords.py; bench/bench_keywords.py on 250 documents). For that a document's
    candidates are embedded together: a phrase's vector depends on its batch by some 1e-7, and
    vectors shared between documents changed 1 of 2,700 scores in the fourth decimal.
    """
    _check(documents, settings, top_n)
    analyze = CountVectorizer(ngram_range=ngrams, stop_words=stop_words).build_analyzer()
    candidates = [sorted({*analyze(text)}) for text in documents.values()]
    lengths = [_pieces(model, text) for text in documents.values()]
    rows = []
    for (name, text), phrases in zip(documents.items(), candidates, strict=True):
        if not phrases:
            continue
        vector, vectors = _embed(model, [text]), _embed(model, phrases)
        cosines = _cosines(vectors)
        for setting, how in settings.items():
            choose = _maxsum if "use_maxsum" in how else _mmr
            amount = how["nr_candidates" if "use_maxsum" in how else "diversity"]
            chosen = choose(vector, vectors, cosines, top_n, amount)
            rows += [
                (name, setting, rank, phrases[i], score)
                for rank, (i, score) in enumerate(chosen, start=1)
            ]
    limit = model.max_seq_length
    return Extraction(
        pd.DataFrame(rows, columns=["document", "setting", "rank", "phrase", "score"]),
        pd.DataFrame(
            {
                "document": [*documents],
                "n_candidates": [len(phrases) for phrases in candidates],
                "n_pieces": lengths,
                "read_pct": [100 * min(1, limit / length) for length in lengths],
            }
        ),
    )


def _check(documents: Mapping, settings: Mapping, top_n: int) -> None:
    for name, text in documents.items():
        if not isinstance(text, str):
            raise InputError(f"Document {name!r}: found {text!r}, expected text.")
    if top_n < 1:
        raise InputError(f"top_n is {top_n}, expected 1 or more.")
    for name, how in settings.items():
        if {*how} not in ({"use_maxsum", "nr_candidates"}, {"use_mmr", "diversity"}):
            raise InputError(
                f"Setting {name!r}: found {', '.join(how)}, expected use_maxsum and "
                "nr_candidates, or use_mmr and diversity."
            )
        pool = how.get("nr_candidates", top_n)
        if pool < top_n or comb(pool, top_n) > _MOST_SETS:
            raise InputError(
                f"Setting {name!r}: {top_n} phrases of {pool} candidates, expected at least as "
                f"many candidates as phrases and at most {_MOST_SETS:,} ways to choose them."
            )


def _pieces(model: "SentenceTransformer", text: str) -> int:
    """Word pieces of a text with the two special ones, however many the model can read."""
    return len(model.tokenizer(text, truncation=False, verbose=False)["input_ids"])


def _embed(model: "SentenceTransformer", texts: list[str]) -> np.ndarray:
    """(n, m) vectors of n texts."""
    with _one_thread():
        return model.encode(texts, show_progress_bar=False)


@contextmanager
def _one_thread() -> Iterator[None]:
    """As fast as more for texts this short, and the same each time."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _cosines(vectors: np.ndarray) -> Callable[[int], np.ndarray]:
    """From a place to its (n,) cosines with all n candidates.

    Up to `_WHOLE` candidates from the n x n matrix, as KeyBERT has them; of more, which would fill
    the memory, only the rows that are asked for are computed. They differ by some 1e-8.
    """
    if len(vectors) <= _WHOLE:
        return cosine_similarity(vectors).__getitem__
    unit = normalize(vectors)
    return lambda place: unit @ unit[place]


@cache
def _sets(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Every choice of k of n in itertools' order: (c, k) places, and (c, n) ones and zeros."""
    places = np.array([*combinations(range(n), k)])
    members = np.zeros((len(places), n))
    np.put_along_axis(members, places, 1, axis=1)
    return places, members


def _maxsum(
    vector: np.ndarray,
    vectors: np.ndarray,
    cosines: Callable[[int], np.ndarray],
    top_n: int,
    nr_candidates: int,
) -> list[tuple[int, float]]:
    """Places and scores of the chosen candidates, nearest first.

    All sums at once in double precision; those of the sets that come out within 0.001 of the
    smallest are then added up again in KeyBERT's order and precision, whose rounding decides
    between them (210 cosines in single precision, off by some 0.0001).
    """
    if len(vectors) < top_n:
        return []
    near = cosine_similarity(vector, vectors)
    pool = near.argsort()[0][-nr_candidates:]  # KeyBERT's own sort, which is not stable
    similarity = np.array([cosines(place)[pool] for place in pool])
    np.fill_diagonal(similarity, 0)
    places, members = _sets(len(pool), top_n)
    sums = np.einsum("cn,cn->c", members @ similarity.astype(float), members)
    close = places[sums < sums.min() + 1e-3]
    terms = similarity[close[:, :, None], close[:, None, :]].reshape(len(close), -1)
    best = close[terms.cumsum(axis=1)[:, -1].argmin()]
    return [(i, round(float(near[0, i]), 4)) for i in pool[best[::-1]].tolist()]


def _mmr(
    vector: np.ndarray,
    vectors: np.ndarray,
    cosines: Callable[[int], np.ndarray],
    top_n: int,
    diversity: float,
) -> list[tuple[int, float]]:
    """Places and scores of the chosen candidates, nearest first, of equal ones the first taken."""
    near = cosine_similarity(vectors, vector)[:, 0]
    taken = [int(near.argmax())]
    closest = cosines(taken[0])
    for _ in range(min(top_n, len(near)) - 1):
        gain = (1 - diversity) * near - diversity * closest
        gain[taken] = -np.inf
        taken.append(int(gain.argmax()))
        closest = np.maximum(closest, cosines(taken[-1]))
    scored = [(i, round(float(near[i]), 4)) for i in taken]
    return sorted(scored, key=lambda pair: pair[1], reverse=True)
