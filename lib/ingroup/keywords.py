"""Keywords of the reasons that models give, and scores of the keywords that models list.

KeyBERT finds the keywords of reasons (Tables 3 and 10 of Jeoung et al. 2023). Keywords that models
list come as tables of `dictionary.find`, repetitions included, with a column for group or cluster.
`scores` is the sound way to score them, `released_scores` the way of the authors' code (Figures 4,
7 and 8).
"""

import re
from collections.abc import Hashable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from ingroup import corpora, paths
from ingroup.dictionary import Lexicon

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from sklearn.feature_extraction.text import CountVectorizer

# The three calls of the released code, as arguments of KeyBERT's extract_keywords.
N_PHRASES = 15
SETTINGS: dict[str, dict] = {
    "maxsum of 20": {"use_maxsum": True, "nr_candidates": 20},
    "MMR 0.7": {"use_mmr": True, "diversity": 0.7},
    "MMR 0.2": {"use_mmr": True, "diversity": 0.2},
}


def load_model() -> "SentenceTransformer":
    """Load the sentence model, all-MiniLM-L6-v2, on the CPU.

    Every file is verified before any is loaded. The package that holds them is never imported.

    Returns
    -------
    SentenceTransformer
        The model, ready to encode.

    Raises
    ------
    InputError
        As `corpora.instrument`.
    """
    folder = corpora.instrument("all-MiniLM-L6-v2")
    # These two imports take seconds, so only who loads the model pays for them.
    import transformers
    from sentence_transformers import SentenceTransformer

    # The bar would fill a notebook with its states.
    transformers.utils.logging.disable_progress_bar()
    return SentenceTransformer(str(folder), device="cpu", local_files_only=True)


@cache
def stop_words() -> frozenset[str]:
    """Read the study's own stop words.

    English stop words stay in a text, as in the released code.

    Returns
    -------
    frozenset of str
        The words of ``stopwords.txt``, without its comments.
    """
    file = paths.STIMULI / "stereomap" / "stopwords.txt"
    words = set()
    for line in file.read_text("utf8").splitlines():
        if line.strip() and line[0] != "#":
            words.add(line.strip())
    return frozenset(words)


def prepare(text: str, groups: Iterable[str], way: str = "sound") -> str:
    """Write a text in lower case, with "they" for every name of a group, without `stop_words`.

    Parameters
    ----------
    text : str
        A reason that a model gave, or several.
    groups : iterable of str
        Names of groups.
    way : {"sound", "released"}
        ``"sound"`` matches names and stop words in any case, as whole words, longest first, with
        spaces, a hyphen or nothing between their parts ("Poor  whites", "blue-collar",
        "MuslimArtists"). ``"released"`` removes punctuation from the tokens between spaces
        ("low-income" becomes "lowincome"). So names of two words, with a hyphen or in the
        possessive stay, and stop words with a capital or a space match nothing.

    Returns
    -------
    str
        The prepared text.

    References
    ----------
    Section 3.2 of Jeoung et al. 2023.
    """
    if way == "released":
        return _prepare_as_released(text, groups)

    # Names come first, because some stop words are names or parts of them ("Muslims", "CEOs").
    without_names = _whole_words(frozenset(groups)).sub("they", text.lower())
    without_stop_words = _whole_words(stop_words()).sub(" ", without_names)
    return " ".join(without_stop_words.split())


def _prepare_as_released(text: str, groups: Iterable[str]) -> str:
    """Prepare a text as the released code does."""
    names = {name.lower() for name in groups}
    words = []

    for token in text.split(" "):
        bare = re.sub(r"[^\w\s]", "", token.lower())
        # A token may hold a line's end, which \s keeps and strip removes. Names are compared
        # before it is removed.
        word = "they" if bare in names else bare.strip()
        if word not in stop_words():
            words.append(word)

    return " ".join(words)


@cache
def _whole_words(names: frozenset[str]) -> re.Pattern[str]:
    """Compile a pattern that fits any of the names in lower case, the longest first.

    It fits nothing if no name is left.
    """
    words_of_names = []
    for name in names:
        bare = name.strip().lower()
        if bare:
            words_of_names.append(re.split(r"[\s-]+", bare))
    if not words_of_names:
        # This pattern fits nowhere.
        return re.compile(r"(?!)")

    # A pattern takes its first alternative that fits, so the longest names come first. Names of one
    # length are in the order of the alphabet, because a set has none.
    words_of_names.sort(key=lambda words: (-len("".join(words)), words))
    alternatives = []
    for words in words_of_names:
        alternatives.append(r"[\s-]*".join(map(re.escape, words)))
    either = "|".join(alternatives)
    return re.compile(rf"(?<!\w)(?:{either})(?!\w)")


def documents(
    reasons: pd.DataFrame, by: str, groups: Iterable[str], way: str = "sound"
) -> dict[Hashable, str]:
    """Join the texts of each group or cluster to one document, prepared by `prepare`.

    Parameters
    ----------
    reasons : DataFrame
        ``text``, and the column `by`.
    by : str
        The column of the group or cluster.
    groups : iterable of str
        As in `prepare`.
    way : {"sound", "released"}
        As in `prepare`.

    Returns
    -------
    dict
        A document for each value of `by`, in its order. A repeated text counts once in a document,
        and in the released way once in the whole table.
    """
    keys = "text" if way == "released" else ["text", by]
    different = reasons.drop_duplicates(keys)
    prepared = {}

    for name, part in different.groupby(by, observed=True):
        prepared[name] = prepare(" ".join(part.text), groups, way)

    return prepared


class Extraction(NamedTuple):
    """Result of `extract`.

    Attributes
    ----------
    phrases : DataFrame
        document, setting, rank (1: nearest), phrase, score (cosine).
    documents : DataFrame
        document, n_candidates, n_pieces, read_pct. Of a long text the model reads only the first
        256 word pieces; ``read_pct`` is the percentage that it reads.
    """

    phrases: pd.DataFrame
    documents: pd.DataFrame


def extract(documents: Mapping[Hashable, str], model: "SentenceTransformer") -> Extraction:
    """Find the `N_PHRASES` phrases that lie nearest to each document, by KeyBERT's `SETTINGS`.

    Parameters
    ----------
    documents : mapping
        Texts by name.
    model : SentenceTransformer
        The model of `load_model`.

    Returns
    -------
    Extraction
        A phrase has one to three words; English stop words are neither counted nor part of it. A
        document with fewer than `N_PHRASES` such phrases has none by maxsum and all of them by MMR.

    Notes
    -----
    Checked against KeyBERT's own calls: their scores differ by some 1e-7 from the scores here,
    which share one embedding.
    """
    # The import takes seconds, so only this function pays for it.
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(ngram_range=(1, 3), stop_words="english")
    phrases_of = vectorizer.build_analyzer()
    sizes = []

    for name, text in documents.items():
        # Word pieces with the two special ones, however many the model can read.
        pieces = model.tokenizer(text, truncation=False, verbose=False)["input_ids"]
        readable = model.max_seq_length or len(pieces)  # None where there is no limit
        size = {
            "document": name,
            "n_candidates": len(set(phrases_of(text))),
            "n_pieces": len(pieces),
            "read_pct": 100 * min(1, readable / len(pieces)),
        }
        sizes.append(size)

    columns = ["document", "n_candidates", "n_pieces", "read_pct"]
    size_table = pd.DataFrame(sizes, columns=columns)
    rows = []
    # The vectorizer raises an error if no document has a phrase.
    if size_table.n_candidates.any():
        rows = _nearest(documents, model, vectorizer)

    columns = ["document", "setting", "rank", "phrase", "score"]
    return Extraction(pd.DataFrame(rows, columns=columns), size_table)


def _nearest(
    documents: Mapping[Hashable, str], model: "SentenceTransformer", vectorizer: "CountVectorizer"
) -> list[dict[str, Any]]:
    """List the phrases nearest to each document by embedding: the rows of `Extraction.phrases`."""
    # The import takes seconds, so only this function pays for it.
    from keybert import KeyBERT

    texts = list(documents.values())
    bert = KeyBERT(model)
    by_setting = {}
    # One thread is as fast as more for texts this short, and always gives the same numbers.
    with threadpool_limits(1):
        # The embeddings are made once for all settings.
        of_texts, of_phrases = bert.extract_embeddings(texts, vectorizer=vectorizer)
        for setting, options in SETTINGS.items():
            by_setting[setting] = bert.extract_keywords(
                texts,
                doc_embeddings=of_texts,
                word_embeddings=of_phrases,
                vectorizer=vectorizer,
                top_n=N_PHRASES,
                **options,
            )

    rows = []
    for position, document in enumerate(documents):
        for setting, of_documents in by_setting.items():
            # KeyBERT returns the phrases of a single text without a list around them.
            nearest = of_documents[position] if len(texts) > 1 else of_documents
            if "use_maxsum" in SETTINGS[setting]:
                # By maxsum KeyBERT lists the farthest first.
                nearest = nearest[::-1]

            for rank, (phrase, score) in enumerate(nearest, start=1):
                row = {
                    "document": document,
                    "setting": setting,
                    "rank": rank,
                    "phrase": phrase,
                    "score": score,
                }
                rows.append(row)

    return rows


def scores(
    lookups: pd.DataFrame, lexicon: Lexicon, by: str = "group", within: str | None = None
) -> pd.DataFrame:
    r"""Score each dimension by the keywords of a group, counting repeated keywords again.

    Parameters
    ----------
    lookups : DataFrame
        A table of `find` with ``word``, `by` and `within`.
    lexicon : Lexicon
        The dictionary that `find` was given.
    by : str
        ``"group"``, or ``"cluster"`` with `within`.
    within : str, optional
        ``"group"``, for the mean over a cluster's groups that have a keyword with a word.

    Returns
    -------
    DataFrame
        One row for each value of `by` and dimension: `by`, ``dimension``, ``share`` (0 to 1),
        ``direction`` and ``score`` (-1 to 1; missing for dimensions without directions), ``n``
        keywords with a word. Direction is missing where share is 0, and everything where n is 0.

    Notes
    -----
    A group has n keywords k with a word. m_kd is 1 if the word is a member of dimension d and
    `load_lexicon` does not list the pair as odd, and r_kd is its direction. Then

        share_d = sum_k m_kd / n,  score_d = sum_k m_kd r_kd / n,  direction_d = score_d / share_d,

    so a score combines how often a dimension is mentioned with its direction. For a cluster of
    groups, share and score are the means over its groups: no group counts more for having more
    keywords.
    """
    rows = lookups.dropna(subset=["word"])
    # These are arrays, because the rows of a word repeat: labels would not tell them apart.
    units = [rows[by].to_numpy()]
    if within is not None:
        units.append(rows[within].to_numpy())

    counts = lexicon.members & ~lexicon.odd
    member = counts.astype(float)
    # A member without a direction adds nothing. Then a dimension without directions becomes NaN, so
    # that its score is missing.
    signed = member * lexicon.directions.fillna(0)
    signed = signed.where(lexicon.directed, axis=1)

    share = _mean_of_means(member.loc[rows.word], units)
    score = _mean_of_means(signed.loc[rows.word], units)
    return _table(lookups, rows, by, share, score)


def _mean_of_means(cells: pd.DataFrame, units: list[np.ndarray]) -> pd.DataFrame:
    """Average the rows of each unit, then the units with the same first key."""
    means = cells.groupby(units, sort=False).mean()
    by_first_key = means.groupby(level=0)
    return by_first_key.agg(lambda values: sum(values) / len(values))


def released_scores(lookups: pd.DataFrame, lexicon: Lexicon, by: str = "cluster") -> pd.DataFrame:
    """Score as the released code does: each distinct keyword of a cluster counts once.

    Parameters
    ----------
    lookups : DataFrame
        A table of `find` with ``keyword`` and `by`.
    lexicon : Lexicon
        The dictionary.
    by : str
        The column of the cluster.

    Returns
    -------
    DataFrame
        The columns of `scores`; ``n`` counts the distinct keywords that equal a
        word of the dictionary.

    Notes
    -----
    A keyword counts if, in lower case, it has no space and equals a word of the dictionary. So a
    word with a capital is never found. A keyword makes a pair with each dimension of its word. With
    N pairs in all dimensions together,

        share_d = pairs in d / N,  score_d = sum of the directions in d / N.

    In a dimension without directions each pair counts +1. In the other dimensions a pair without a
    direction makes the score missing. Pairs that `load_lexicon` lists as odd count, too, if the
    word is a member of the dimension; `scores` leaves them out.

    The released script calls WordNet to make nouns singular, but lacks its import and fails there.
    This function leaves that step out.
    """
    keywords = lookups.keyword.str.strip().str.lower()
    has_space = keywords.str.contains(" ")
    is_listed = keywords.isin(lexicon.words)
    rows = pd.DataFrame({by: lookups[by], "word": keywords})
    rows = rows[is_listed & ~has_space]
    rows = rows.drop_duplicates()

    member = lexicon.members.astype(float)
    # A dimension without directions has 1 in every row, so its pairs are counted.
    signed = lexicon.directions.where(lexicon.directed, 1, axis=1)
    signed = signed.where(lexicon.members, 0)

    clusters = rows[by].to_numpy()
    members_by_cluster = member.loc[rows.word].groupby(clusters)
    signed_by_cluster = signed.loc[rows.word].groupby(clusters)
    pairs = members_by_cluster.sum(skipna=False)
    # A missing direction is not skipped: it makes the total missing, as in the released code.
    total = signed_by_cluster.sum(skipna=False)

    n_pairs = pairs.sum(axis=1)
    # A cluster without a pair has NaN, and no division by zero.
    n_pairs = n_pairs.where(n_pairs > 0)
    share = pairs.div(n_pairs, axis=0)
    score = total.div(n_pairs, axis=0)
    return _table(lookups, rows, by, share, score)


def _table(
    lookups: pd.DataFrame,
    rows: pd.DataFrame,
    by: str,
    share: pd.DataFrame,
    score: pd.DataFrame,
) -> pd.DataFrame:
    """Tabulate share, direction and score by group and dimension. `rows` have the found words."""
    # A group without any word keeps its rows, which are missing throughout; the new stack keeps
    # missing cells.
    groups = pd.Index(lookups[by].dropna().unique(), name=by)
    long_share = share.reindex(groups).stack(future_stack=True)
    long_score = score.reindex(groups).stack(future_stack=True)
    columns = {
        "share": long_share,
        "direction": long_score / long_share.where(long_share > 0),
        "score": long_score,
    }

    table = pd.DataFrame(columns)
    table = table.rename_axis([by, "dimension"]).reset_index()
    n_keywords = table[by].map(rows[by].value_counts())
    return table.assign(n=n_keywords.fillna(0).astype(int))


def top(table: pd.DataFrame, n: int = 5) -> pd.DataFrame:
    """Select the n dimensions of each group with the greatest absolute score (Figures 4, 7 and 8).

    Parameters
    ----------
    table : DataFrame
        A table of `scores` or `released_scores`.
    n : int
        The greatest rank.

    Returns
    -------
    DataFrame
        Rows with a share above 0 and a score, by group and falling absolute score, with ``rank``
        from 1 and ``sign`` ("+", "-", "0"). Ties are in the order of the dictionary.
    """
    # The first column names the group or cluster.
    by = table.columns[0]
    has_score = (table.share > 0) & table.score.notna()
    rows = table[has_score]
    groups = rows[by]

    # Scores that differ only by rounding are a tie.
    magnitude = rows.score.abs().round(9)
    rank = magnitude.groupby(groups).rank("first", ascending=False)
    rank = rank.astype(int)
    sign = np.sign(rows.score)
    sign = sign.map({1: "+", -1: "-", 0: "0"})
    rows = rows.assign(rank=rank, sign=sign)

    # lexsort sorts by its last key first: groups as they appear, then ranks.
    group_codes, _ = pd.factorize(groups)
    order = np.lexsort([rank, group_codes])
    rows = rows.iloc[order]
    is_top = rows["rank"] <= n
    return rows[is_top].reset_index(drop=True)
