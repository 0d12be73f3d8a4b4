"""Statistics of the first study against SciPy, keywords against KeyBERT, words against a loop."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from keybert import KeyBERT
from scipy import stats
from threadpoolctl import threadpool_limits

from bench import row, seconds
from ingroup import keywords, paths
from ingroup.dictionary import find, fold, lemmatizer, load_lexicon, load_mappings
from ingroup.stats.paired import paired_cells

N_KEYWORDS = 100_000


def bench_paired_t() -> Iterator[dict]:
    """Every cell of 22 x 22 pairs and 6,050 events against its two in-group cells."""
    rng = np.random.default_rng(2)
    noise = 15 * rng.standard_normal(6050) + 8 * rng.standard_normal((22, 22, 6050))
    ratings = np.clip(np.round(50 + 10 * rng.standard_normal((22, 22, 1)) + noise), 0, 100)

    def cell_by_cell() -> None:
        for p, x in np.argwhere(~np.eye(22, dtype=bool)):
            stats.ttest_rel(ratings[p, x], ratings[p, p])
            stats.ttest_rel(ratings[p, x], ratings[x, x])

    ours = seconds(lambda: paired_cells(ratings), 5)
    yield row("paired_t", ours, seconds(cell_by_cell), "scipy.stats.ttest_rel, a cell at a time")


def bench_keywords() -> Iterator[dict]:
    """Tables 3 and 10 need 12 documents: all reasons of two models, and those of five clusters."""
    rng, texts, model = np.random.default_rng(2), [], keywords.load_model()
    stock = pd.read_csv(paths.SAMPLE / "narratives.tsv", sep="\t").generated_text[:20]
    for _ in range(2):
        clusters = [rng.choice(stock, 12, replace=False) for _ in range(5)]
        texts += [" ".join(reasons) for reasons in (np.unique(clusters), *clusters)]

    def one_by_one() -> pd.DataFrame:
        rows, bert = [], KeyBERT(model)
        with threadpool_limits(1):
            for document, text in enumerate(texts):
                for setting, how in keywords.SETTINGS.items():
                    found = bert.extract_keywords(
                        text, keyphrase_ngram_range=(1, 3), stop_words="english", top_n=15, **how
                    )
                    found = found[::-1] if "use_maxsum" in how else found
                    rows += [(document, setting, rank, *pair) for rank, pair in enumerate(found, 1)]
        return pd.DataFrame(rows, columns=["document", "setting", "rank", "phrase", "score"])

    def ours() -> pd.DataFrame:
        return keywords.extract(dict(enumerate(texts)), model).phrases

    pd.testing.assert_frame_equal(ours(), one_by_one(), rtol=0, atol=1.1e-4)
    baseline = "KeyBERT, one call a document and setting, 12 documents x 3 settings"
    yield row("keywords", seconds(ours, 1), seconds(one_by_one, 1), baseline)


def bench_dictionary() -> Iterator[dict]:
    """Keywords as models repeat them: words of the sample dictionary, inflected ones, others."""
    lexicon, mappings, lemmas = load_lexicon(), load_mappings(), lemmatizer()
    words = [str(word) for word in lexicon.words if word.isalpha()]
    pool = words * 6 + [word + end for word in words for end in ("s", "ed", "ness", "ly")]
    often = 1 / np.arange(1, len(pool) + 1)  # a few come very often, as Zipf has it
    rng = np.random.default_rng(2)
    asked = rng.choice(rng.permutation(pool), N_KEYWORDS, p=often / often.sum()).tolist()
    spelt = {fold(word): word for word in reversed(list(lexicon.words))}

    def loop() -> list[str | None]:
        folded = map(fold, asked)
        near = (w if w in spelt else next((x for x in lemmas(w) if x in spelt), "") for w in folded)
        return [spelt.get(word) for word in near]

    found = find(asked, lexicon, lemmas, mappings)
    both = found.step.isin(["exact", "lemma"]).to_numpy()
    assert both.mean() > 0.6
    assert (found.word[both] == np.array(loop(), dtype=object)[both]).all()
    ours = seconds(lambda: find(asked, lexicon, lemmas, mappings))
    baseline = f"a loop over {N_KEYWORDS:,} keywords, each looked up, then lemmatized"
    yield row("dictionary", ours, seconds(loop), baseline)
