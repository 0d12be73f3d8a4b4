"""KeyBERT's keywords of the reasons that models give (Tables 3 and 10 of Jeoung et al. 2023)."""

import re
from collections.abc import Hashable, Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import yaml
from pooch import file_hash

from ingroup import DATA, STIMULI
from ingroup.tables import InputError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

N_PHRASES = 15
# The three calls of the released code, as arguments of KeyBERT's extract_keywords.
SETTINGS: dict[str, dict] = {
    "maxsum of 20": {"use_maxsum": True, "nr_candidates": 20},
    "MMR 0.7": {"use_mmr": True, "diversity": 0.7},
    "MMR 0.2": {"use_mmr": True, "diversity": 0.2},
}


def instrument(model: str) -> Path:
    """Find the folder of a model that measures, and verify the hash of every file.

    The packages that carry these models are little known, so none of their code is run.

    Parameters
    ----------
    model : str
        A model of ``data/models/instruments.yaml``.

    Raises
    ------
    InputError
        The package is missing, or a file has another hash.
    """
    listed = (DATA / "models" / "instruments.yaml").read_text("utf8")
    entry = yaml.safe_load(listed)[model]
    name, _, _ = entry["package"].partition("==")
    spec = find_spec(name.replace("-", "_"))
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"{name} is not installed: make .venv/.ready installs it")

    folder = Path(spec.submodule_search_locations[0]) / entry["folder"]
    for file, expected in entry["files"].items():
        if file_hash(folder / file) != expected:
            raise InputError(f"{folder / file} is not the published file: install {name} again")
    return folder


def load_model() -> "SentenceTransformer":
    """Load the sentence model all-MiniLM-L6-v2 on the CPU."""
    folder = instrument("all-MiniLM-L6-v2")
    # These imports take seconds, so only who loads the model pays for them.
    import transformers
    from sentence_transformers import SentenceTransformer

    # A bar would fill a notebook with its states.
    transformers.utils.logging.disable_progress_bar()
    return SentenceTransformer(str(folder), device="cpu", local_files_only=True)


@cache
def stop_words() -> frozenset[str]:
    """Read the paper's own stop words. English stop words stay in a text, as released."""
    text = (STIMULI / "stereomap" / "stopwords.txt").read_text("utf8")
    words = re.sub("^#.*", "", text, flags=re.MULTILINE).split("\n")
    return frozenset(word.strip() for word in words if word.strip())


@cache
def _any_of(names: frozenset[str]) -> re.Pattern[str]:
    """Compile a pattern of whole names, with spaces, a hyphen or nothing between their parts."""
    alternatives = []
    # A pattern takes its first alternative that fits, so the longest names come first.
    for name in sorted(names, key=len, reverse=True):
        parts = re.split(r"[\s-]+", name.strip().lower())
        escaped = map(re.escape, parts)
        alternatives.append(r"[\s-]*".join(escaped))
    either = "|".join(alternatives)
    return re.compile(rf"(?<!\w)(?:{either})(?!\w)")


def prepare(text: str, groups: Iterable[str]) -> str:
    """Write a text in lower case, with "they" for names of groups, without `stop_words`.

    Parameters
    ----------
    text : str
        The reasons that a model gave.
    groups : iterable of str
        Names of groups.

    Notes
    -----
    As Jeoung et al. (2023), section 3.2. Their ``reasoning_analysis.py`` compares single words, so
    names and stop words of two words stay in its texts.
    """
    # Names come first, because some stop words are names ("Muslims", "CEOs").
    names = frozenset(filter(None, groups))
    without_names = _any_of(names).sub("they", text.lower())
    without_stop_words = _any_of(stop_words()).sub(" ", without_names)
    return " ".join(without_stop_words.split())


def documents(reasons: pd.DataFrame, by: str, groups: Iterable[str]) -> dict[Hashable, str]:
    """Join the reasons of each cluster to one document, prepared by `prepare`.

    Parameters
    ----------
    reasons : DataFrame
        ``text``, and the column `by`. A repeated text counts once in a document.
    by : str
        The column of the cluster.
    groups : iterable of str
        Names of groups.
    """
    joined = {}
    for name, part in reasons.groupby(by, observed=True):
        texts = part.text.drop_duplicates()
        joined[name] = prepare(" ".join(texts), groups)
    return joined


def extract(documents: Mapping[Hashable, str], model: "SentenceTransformer") -> pd.DataFrame:
    """Find the phrases of one to three words that lie nearest to each document.

    Parameters
    ----------
    documents : mapping
        At least two texts, by name: KeyBERT returns another form for a single one.
    model : SentenceTransformer
        From `load_model`. It reads the first 256 word pieces of a text.

    Returns
    -------
    DataFrame
        ``document``, ``setting`` (of `SETTINGS`), ``rank`` (1 is nearest), ``phrase`` and
        ``score`` (cosine). By maxsum, a document with fewer than 20 phrases has none.
    """
    from keybert import KeyBERT
    from sklearn.feature_extraction.text import CountVectorizer

    texts = list(documents.values())
    vectorizer = CountVectorizer(ngram_range=(1, 3), stop_words="english")
    bert = KeyBERT(model)
    # Nearly all time goes into the embeddings, which the three settings share.
    of_texts, of_phrases = bert.extract_embeddings(texts, vectorizer=vectorizer)

    rows = []
    for setting, options in SETTINGS.items():
        found = bert.extract_keywords(
            texts,
            doc_embeddings=of_texts,
            word_embeddings=of_phrases,
            vectorizer=vectorizer,
            top_n=N_PHRASES,
            **options,
        )
        for document, phrases in zip(documents, found, strict=True):
            # By maxsum KeyBERT lists the farthest first.
            nearest = phrases[::-1] if "use_maxsum" in options else phrases
            for rank, (phrase, score) in enumerate(nearest, start=1):
                rows.append((document, setting, rank, phrase, score))
    return pd.DataFrame(rows, columns=["document", "setting", "rank", "phrase", "score"])
