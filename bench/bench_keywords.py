"""Keywords of the 12 documents of Tables 3 and 10 against KeyBERT, called for each and setting.

Two models give reasons from one stock, as here: sentences of the sample's narratives. Each model
has a document of all its reasons and one for each of five clusters. Both ways use one thread; the
phrases are compared, and their scores to 0.0001, before the times are.
"""

import time

import numpy as np
import pandas as pd
from keybert import KeyBERT
from threadpoolctl import threadpool_limits

from ingroup import keywords, paths

N_MODELS, N_CLUSTERS, N_REASONS = 2, 5, 12


def rows() -> list[dict[str, str | float]]:
    """One row, ``keywords``: name, ours and baseline (s), their ratio, the baseline."""
    texts, model = _texts(np.random.default_rng(2)), keywords.load_model()
    keywords.extract({0: texts[0]}, model)  # the first call of a model is slow
    start = time.perf_counter()
    found = keywords.extract(dict(enumerate(texts)), model)
    ours = time.perf_counter() - start
    start = time.perf_counter()
    expected = _keybert(texts, KeyBERT(model))
    baseline = time.perf_counter() - start
    pd.testing.assert_frame_equal(found.phrases, expected, rtol=0, atol=1.1e-4)
    return [
        {
            "name": "keywords",
            "ours": ours,
            "baseline": baseline,
            "ratio": baseline / ours,
            "baseline_is": f"KeyBERT, one call a document and setting, {len(texts)} documents x "
            f"{len(keywords.SETTINGS)} settings",
        }
    ]


def _texts(rng: np.random.Generator) -> list[str]:
    stock = pd.read_csv(paths.SAMPLE / "narratives.tsv", sep="\t").generated_text[:20]
    texts = []
    for _ in range(N_MODELS):
        clusters = [rng.choice(stock, N_REASONS, replace=False) for _ in range(N_CLUSTERS)]
        texts += [" ".join(reasons) for reasons in (np.unique(clusters), *clusters)]
    return texts


def _keybert(texts: list[str], bert: KeyBERT) -> pd.DataFrame:
    rows = []
    with threadpool_limits(1):
        for document, text in enumerate(texts):
            for setting, how in keywords.SETTINGS.items():
                found = bert.extract_keywords(
                    text, keyphrase_ngram_range=(1, 3), stop_words="english", top_n=15, **how
                )
                nearest_first = found[::-1] if "use_maxsum" in how else found
                rows += [
                    (document, setting, rank, *pair) for rank, pair in enumerate(nearest_first, 1)
                ]
    return pd.DataFrame(rows, columns=["document", "setting", "rank", "phrase", "score"])


if __name__ == "__main__":
    print(rows())
