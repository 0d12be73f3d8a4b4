"""Keywords of 250 documents by three settings, against one KeyBERT call for each of the 750.

A document is 30 words of the sample's narratives, drawn in no order. Both ways use one thread. The
keywords are compared, document by document, to the last digit, before the times are.
"""

import time

import numpy as np
import pandas as pd
import torch
from keybert import KeyBERT
from sentence_transformers import SentenceTransformer

from ingroup import keywords, paths, sentence_model

N_DOCUMENTS, N_WORDS = 250, 30


def rows() -> list[dict[str, str | float]]:
    """One row, ``keywords``: name, ours and baseline (s), their ratio, the baseline."""
    texts, model = _texts(np.random.default_rng(2)), sentence_model.load_model()
    keywords.extract({0: texts[0]}, model)  # the first call of a model is slow
    start = time.perf_counter()
    found = keywords.extract(dict(enumerate(texts)), model)
    ours = time.perf_counter() - start
    start = time.perf_counter()
    expected = _keybert(texts, model)
    baseline = time.perf_counter() - start
    pd.testing.assert_frame_equal(found.phrases, expected, check_exact=True)
    return [
        {
            "name": "keywords",
            "ours": ours,
            "baseline": baseline,
            "ratio": baseline / ours,
            "baseline_is": f"KeyBERT, one call a document and setting, {N_DOCUMENTS} documents x "
            f"{len(keywords.SETTINGS)} settings",
        }
    ]


def _texts(rng: np.random.Generator) -> list[str]:
    narratives = pd.read_csv(paths.SAMPLE / "narratives.tsv", sep="\t").generated_text
    words = " ".join(narratives).split()
    return [" ".join(rng.choice(words, N_WORDS, replace=False)) for _ in range(N_DOCUMENTS)]


def _keybert(texts: list[str], model: SentenceTransformer) -> pd.DataFrame:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    kw_model, rows = KeyBERT(model), []
    for document, text in enumerate(texts):
        for setting, how in keywords.SETTINGS.items():
            found = kw_model.extract_keywords(
                text, keyphrase_ngram_range=(1, 3), stop_words="english", top_n=15, **how
            )
            nearest_first = found[::-1] if "use_maxsum" in how else found
            rows += [(document, setting, rank, *pair) for rank, pair in enumerate(nearest_first, 1)]
    torch.set_num_threads(threads)
    return pd.DataFrame(rows, columns=["document", "setting", "rank", "phrase", "score"])


if __name__ == "__main__":
    print(rows())
