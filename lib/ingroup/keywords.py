"""Keywords of the reasons that models give, and what those that they list say of each dimension.

The first are found by KeyBERT (Tables 3 and 10 of Jeoung et al. 2023). The others are tables of
`dictionary.find`, repetitions included, with a column for group or cluster: `scores` is the sound
way, `released_scores` that of the authors' code (Figures 4, 7 and 8).
"""

import re
from collections.abc import Hashable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from ingroup import corpora, paths
from ingroup.dictionary import Lexicon

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# The three calls of the released code, as arguments of KeyBERT's extract_keywords.
TOP_N = 15
SETTINGS = {
    "maxsum of 20": {"use_maxsum": True, "nr_candidates": 20},
    "MMR 0.7": {"use_mmr": True, "diversity": 0.7},
    "MMR 0.2": {"use_mmr": True, "diversity": 0.2},
}


def load_model() -> "SentenceTransformer":
    """The sentence model, all-MiniLM-L6-v2, on the CPU, every file verified before any is loaded.

    From a package that is never imported; InputError as `corpora.instrument`.
    """
    folder = corpora.instrument("all-MiniLM-L6-v2")
    import transformers  # seconds; only who needs a model waits
    from sentence_transformers import SentenceTransformer

    transformers.utils.logging.disable_progress_bar()  # it would fill a notebook
    return SentenceTransformer(str(folder), device="cpu", local_files_only=True)


@cache
def stop_words() -> frozenset[str]:
    """The study's own words to take out of texts; English ones stay, as in the released code."""
    lines = (paths.STIMULI / "stereomap" / "stopwords.txt").read_text("utf8").splitlines()
    return frozenset(line.strip() for line in lines if line.strip() and line[0] != "#")


def prepare(text: str, groups: Iterable[str], way: str = "sound") -> str:
    """A text in lower case, with "they" for every name of a group and without the `stop_words`.

    Section 3.2 of Jeoung et al. 2023. ``"sound"``: names and stop words in any case, as whole
    words, longest first, with spaces, a hyphen or nothing in them ("Poor  whites", "blue-collar",
    "MuslimArtists"). ``"released"``: tokens between spaces lose punctuation ("low-income" becomes
    "lowincome"), so names of two words, with a hyphen or in the possessive stay, and stop words
    with a capital or a space match nothing.
    """
    if way == "released":
        names = {name.lower() for name in groups}
        tokens = (re.sub(r"[^\w\s]", "", token.lower()) for token in text.split(" "))
        tokens = ("they" if token in names else token.strip() for token in tokens)
        return " ".join(token for token in tokens if token not in stop_words())
    text = _whole_words(frozenset(groups)).sub("they", text.lower())
    return " ".join(_whole_words(stop_words()).sub(" ", text).split())


@cache
def _whole_words(names: frozenset[str]) -> re.Pattern[str]:
    """A pattern of any of the names in lower case, the longest that fits; of none without names."""
    parts = [re.split(r"[\s-]+", name.strip().lower()) for name in names if name.strip()]
    parts.sort(key=lambda words: (-len("".join(words)), words))
    either = "|".join(r"[\s-]*".join(map(re.escape, words)) for words in parts)
    return re.compile(rf"(?<!\w)(?:{either})(?!\w)" if parts else r"(?!)")


def documents(
    reasons: pd.DataFrame, by: str, groups: Iterable[str], way: str = "sound"
) -> dict[Hashable, str]:
    """One document for each value of `by`, in its order: the ``text`` of its rows, by `prepare`.

    A text that comes again counts once in a document; in the released way once in the whole table.
    """
    once = reasons.drop_duplicates("text" if way == "released" else ["text", by])
    return {
        name: prepare(" ".join(part.text), groups, way)
        for name, part in once.groupby(by, observed=True)
    }


class Extraction(NamedTuple):
    """What `extract` found; of a long text the model reads only the first 256 word pieces."""

    phrases: pd.DataFrame  # document, setting, rank (1: nearest), phrase, score (cosine)
    documents: pd.DataFrame  # document, n_candidates, n_pieces, read_pct (how much is read)


def extract(documents: Mapping[Hashable, str], model: "SentenceTransformer") -> Extraction:
    """The `TOP_N` phrases of each document that lie nearest to it, by KeyBERT's `SETTINGS`.

    A phrase has one to three words, English stop words neither counted nor in it. A document with
    fewer than `TOP_N` such phrases has none by maxsum and all of them by MMR. Checked against
    KeyBERT's own calls, from whose scores those of one shared embedding differ by some 1e-7.
    """
    from keybert import KeyBERT  # seconds
    from sklearn.feature_extraction.text import CountVectorizer

    texts = [*documents.values()]
    phrases = CountVectorizer(ngram_range=(1, 3), stop_words="english")
    n_candidates = [len({*phrases.build_analyzer()(text)}) for text in texts]
    # Word pieces with the two special ones, however many the model can read.
    pieces = [len(model.tokenizer(t, truncation=False, verbose=False)["input_ids"]) for t in texts]
    sizes = {"document": [*documents], "n_candidates": n_candidates, "n_pieces": pieces}
    sizes["read_pct"] = [100 * min(1, model.max_seq_length / n) for n in pieces]
    found: dict[str, list] = {}
    if any(n_candidates):
        bert = KeyBERT(model)
        with threadpool_limits(1):  # as fast as more for texts this short, and always the same
            of_texts, of_phrases = bert.extract_embeddings(texts, vectorizer=phrases)
            given = {"doc_embeddings": of_texts, "word_embeddings": of_phrases}
            given |= {"vectorizer": phrases, "top_n": TOP_N}
            for setting, how in SETTINGS.items():
                chosen = bert.extract_keywords(texts, **given, **how)
                found[setting] = chosen if len(texts) > 1 else [chosen]  # it unwraps one
                if "use_maxsum" in how:  # it lists the farthest first
                    found[setting] = [own[::-1] for own in found[setting]]
    rows = [
        (document, setting, rank, *pair)
        for place, document in enumerate(documents)
        for setting, chosen in found.items()
        for rank, pair in enumerate(chosen[place], 1)
    ]
    rows = pd.DataFrame(rows, columns=["document", "setting", "rank", "phrase", "score"])
    return Extraction(rows, pd.DataFrame(sizes))


def scores(
    found: pd.DataFrame, lexicon: Lexicon, by: str = "group", within: str | None = None
) -> pd.DataFrame:
    r"""What the keywords of a group say of each dimension, every keyword as often as it was given.

    With n keywords k of a group that have a word, m_kd = 1 where the word is a member of dimension
    d and the pair is not odd, and r_kd its direction,

        share_d = sum_k m_kd / n,  score_d = sum_k m_kd r_kd / n,  direction_d = score_d / share_d,

    so a score is how much a dimension is spoken of times which way. For a cluster of groups, share
    and score are the means over its groups: no group counts more for having more to say.

    `found` has ``word``, `by` ("group", or "cluster" with ``within="group"``, over the groups that
    have a keyword with a word) and `within`; `lexicon` is the one that `find` was given. A row for
    each value of `by` and dimension: `by`, ``dimension``, ``share`` (0 to 1), ``direction`` and
    ``score`` (-1 to 1; missing for dimensions without directions), ``n`` keywords with a word.
    Direction is missing where share is 0, and everything where n is 0.
    """
    rows, unit = found.dropna(subset=["word"]), [by] if within is None else [by, within]
    member = (lexicon.members & ~lexicon.odd).astype(float)
    signed = (member * lexicon.directions.fillna(0)).where(lexicon.directed, axis=1)
    share, score = (
        cells.loc[rows.word].groupby([rows[name].to_numpy() for name in unit], sort=False).mean()
        for cells in (member, signed)
    )
    of_by = (means.groupby(level=0).agg(lambda m: sum(m) / len(m)) for means in (share, score))
    return _table(found, rows, by, *of_by)


def released_scores(found: pd.DataFrame, lexicon: Lexicon, by: str = "cluster") -> pd.DataFrame:
    """Scores as the released code computes them: each distinct keyword of a cluster once.

    A keyword in lower case is dropped with a space in it, or unless it is a word letter by letter
    (one with a capital is never met). Then score_d = sum of the directions in d / N, where N counts
    all pairs of a keyword and a dimension; where a dimension has no directions a pair counts +1; a
    missing direction makes the score missing. Share is pairs of the dimension / N, ``n`` the
    distinct keywords with a word; only a membership that is not 1 is left out as odd. The released
    script also lemmatises by WordNet as nouns (its import is missing, so it fails); not here.
    """
    rows = pd.DataFrame({by: found[by], "word": found.keyword.str.strip().str.lower()})
    rows = rows[~rows.word.str.contains(" ") & rows.word.isin(lexicon.words)].drop_duplicates()
    signed = lexicon.directions.where(lexicon.directed, 1, axis=1).where(lexicon.members, 0)
    pairs, total = (
        cells.loc[rows.word].groupby(rows[by].to_numpy()).sum(skipna=False)
        for cells in (lexicon.members.astype(float), signed)
    )
    number = pairs.sum(axis=1).where(lambda n: n > 0)
    return _table(found, rows, by, pairs.div(number, axis=0), total.div(number, axis=0))


def _table(
    found: pd.DataFrame, rows: pd.DataFrame, by: str, share: pd.DataFrame, score: pd.DataFrame
) -> pd.DataFrame:
    """One row a group of `found` and dimension; `rows` are its keywords that have a word."""
    values = pd.Index(found[by].dropna().unique(), name=by)
    share, score = (part.reindex(values).stack(future_stack=True) for part in (share, score))
    table = pd.DataFrame({"share": share, "direction": score / share.where(share > 0)})
    table = table.assign(score=score).rename_axis([by, "dimension"]).reset_index()
    return table.assign(n=table[by].map(rows[by].value_counts()).fillna(0).astype(int))


def top(table: pd.DataFrame, n: int = 5) -> pd.DataFrame:
    """The n dimensions with the greatest score of each group, either way (Figures 4, 7 and 8).

    Rows of `scores` or `released_scores` by group and falling absolute score, ties in the order of
    the dictionary, with ``rank`` from 1 and ``sign`` ("+", "-", "0"), those with share and score.
    """
    by = table.columns[0]
    rows = table[(table.share > 0) & table.score.notna()]
    size = rows.score.abs().round(9)  # what is equal but for rounding is a tie
    rank = size.groupby(rows[by]).rank("first", ascending=False).astype(int)
    rows = rows.assign(rank=rank, sign=np.sign(rows.score).map({1: "+", -1: "-", 0: "0"}))
    rows = rows.iloc[np.lexsort([rank, pd.factorize(rows[by])[0]])]
    return rows[rows["rank"] <= n].reset_index(drop=True)
