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
from ingroup.stats.paired import cell_pvalues

N_KEYWORDS = 100_000


def bench_paired_t() -> Iterator[dict]:
    """Time the tests of every cell against its in-group cells, 22 x 22 pairs and 6,050 events."""
    rng = np.random.default_rng(2)
    of_events = 15 * rng.standard_normal(6050)
    noise = of_events + 8 * rng.standard_normal((22, 22, 6050))
    cells = 10 * rng.standard_normal((22, 22, 1))
    # The shape is (perceiver, experiencer, event), in whole points.
    ratings = np.clip(np.round(50 + cells + noise), 0, 100)

    def cell_by_cell() -> None:
        for perceiver in range(22):
            for experiencer in range(22):
                if perceiver == experiencer:
                    continue
                cell = ratings[perceiver, experiencer]
                stats.ttest_rel(cell, ratings[perceiver, perceiver])
                stats.ttest_rel(cell, ratings[experiencer, experiencer])

    yield row(
        "paired_t",
        ours=seconds(lambda: cell_pvalues(ratings), 5),
        baseline=seconds(cell_by_cell),
        baseline_is="scipy.stats.ttest_rel, a cell at a time",
    )


def bench_keywords() -> Iterator[dict]:
    """Time the keywords of 12 documents, as many as Tables 3 and 10 need.

    A document has all reasons of one of two models, or the reasons of one of its five clusters.
    """
    rng = np.random.default_rng(2)
    model = keywords.load_model()
    stock = pd.read_csv(paths.SAMPLE / "narratives.tsv", sep="\t").generated_text[:20]
    texts = []
    for _ in range(2):
        clusters = [rng.choice(stock, 12, replace=False) for _ in range(5)]
        # A model has one document of all its reasons, and one document per cluster.
        for reasons in (np.unique(clusters), *clusters):
            texts.append(" ".join(reasons))

    def ours() -> pd.DataFrame:
        return keywords.extract(dict(enumerate(texts)), model).phrases

    def one_by_one() -> pd.DataFrame:
        bert = KeyBERT(model)
        rows = []
        with threadpool_limits(1):
            for document, text in enumerate(texts):
                for setting in keywords.SETTINGS:
                    phrases = _key_phrases(bert, text, setting)
                    for rank, (phrase, score) in enumerate(phrases, 1):
                        rows.append((document, setting, rank, phrase, score))
        return pd.DataFrame(rows, columns=["document", "setting", "rank", "phrase", "score"])

    # KeyBERT rounds its scores to four digits, so a tiny difference can move the last one.
    pd.testing.assert_frame_equal(ours(), one_by_one(), rtol=0, atol=1.1e-4)
    yield row(
        "keywords",
        ours=seconds(ours, 1),
        baseline=seconds(one_by_one, 1),
        baseline_is="KeyBERT, one call a document and setting, 12 documents x 3 settings",
    )


def _key_phrases(bert: KeyBERT, text: str, setting: str) -> list[tuple[str, float]]:
    """Extract 15 phrases from one document, the best first."""
    options = keywords.SETTINGS[setting]
    phrases = bert.extract_keywords(
        text,
        keyphrase_ngram_range=(1, 3),
        stop_words="english",
        top_n=15,
        **options,
    )
    # By maxsum KeyBERT returns the worst first.
    if "use_maxsum" in options:
        phrases = phrases[::-1]
    return phrases


def bench_dictionary() -> Iterator[dict]:
    """Time the look-up of keywords that repeat as often as in models' replies.

    The keywords are words of the sample dictionary, and the same words with endings.
    """
    lexicon = load_lexicon()
    mappings = load_mappings()
    lemmas = lemmatizer()
    words = [str(word) for word in lexicon.words if word.isalpha()]
    pool = words * 6
    for word in words:
        pool += [word + "s", word + "ed", word + "ness", word + "ly"]

    # A few come very often, as Zipf has it.
    rng = np.random.default_rng(2)
    frequency = 1 / np.arange(1, len(pool) + 1)
    shuffled = rng.permutation(pool)
    asked = rng.choice(shuffled, N_KEYWORDS, p=frequency / frequency.sum()).tolist()

    # Where two words fold to one, the first counts.
    spelling = {}
    for word in lexicon.words:
        spelling.setdefault(fold(word), word)

    def look_up(keyword: str) -> str | None:
        folded = fold(keyword)
        if folded in spelling:
            return spelling[folded]
        for lemma in lemmas(folded):
            if lemma in spelling:
                return spelling[lemma]
        return None

    def loop() -> list[str | None]:
        return [look_up(keyword) for keyword in asked]

    matches = find(asked, lexicon, lemmas, mappings)
    # The loop knows two of the five rules, so only the findings of these two are compared.
    is_compared = matches.step.isin(["exact", "lemma"]).to_numpy()
    assert is_compared.mean() > 0.6
    expected = np.array(loop(), dtype=object)
    assert (matches.word[is_compared] == expected[is_compared]).all()
    yield row(
        "dictionary",
        ours=seconds(lambda: find(asked, lexicon, lemmas, mappings)),
        baseline=seconds(loop),
        baseline_is=f"a loop over {N_KEYWORDS:,} keywords, each looked up, then lemmatized",
    )
