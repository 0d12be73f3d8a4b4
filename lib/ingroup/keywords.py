"""Keywords of the reasons that models give, by KeyBERT: Tables 3 and 10 of Jeoung et al. 2023."""

import re
from collections.abc import Hashable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd
from threadpoolctl import threadpool_limits

from ingroup import corpora, paths

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
