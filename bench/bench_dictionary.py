"""Dictionary words of 100,000 keywords against a loop that looks up and lemmatizes each.

The keywords are words of the sample dictionary, some inflected, and words and phrases that it does
not have, drawn with repetition as models repeat themselves.
"""

import time
from collections.abc import Callable, Sequence

import numpy as np

from ingroup.dictionary import Lexicon, find, fold, lemmatizer, load_lexicon, load_mappings

N_KEYWORDS = 100_000


def rows() -> list[dict[str, str | float]]:
    """One row, ``dictionary_mapping``; words found in two ways are compared before the times."""
    lexicon, mappings, lemmas = load_lexicon(), load_mappings(), lemmatizer()
    keywords = _keywords(lexicon, np.random.default_rng(2))
    lemmas("warmed")  # the first call reads the tables
    start = time.perf_counter()
    found = find(keywords, lexicon, lemmas, mappings)
    ours = time.perf_counter() - start
    start = time.perf_counter()
    expected = np.array(_looked_up(keywords, lexicon, lemmas), dtype=object)
    baseline = time.perf_counter() - start
    both = found.step.isin(["exact", "lemma"]).to_numpy()
    assert both.mean() > 0.6
    assert (found.word[both] == expected[both]).all()
    return [
        {
            "name": "dictionary_mapping",
            "ours": ours,
            "baseline": baseline,
            "ratio": baseline / ours,
            "baseline_is": f"a loop over {N_KEYWORDS:,} keywords, each looked up, then lemmatized",
        }
    ]


def _keywords(lexicon: Lexicon, rng: np.random.Generator) -> list[str]:
    words = [str(word) for word in lexicon.words if word.isalpha()]
    others = [f"{word}{end}" for word in words for end in ("s", "ed", "ness", "ly")]
    others += [f"very {word}" for word in words]
    pool = np.array(words * 6 + others, dtype=object)
    often = 1 / np.arange(1, len(pool) + 1)  # a few come very often, as Zipf has it
    return rng.choice(rng.permutation(pool), N_KEYWORDS, p=often / often.sum()).tolist()


def _looked_up(
    keywords: list[str], lexicon: Lexicon, lemmas: Callable[[str], Sequence[str]]
) -> list[str | None]:
    spelt = {fold(word): word for word in reversed(list(lexicon.words))}
    found = []
    for keyword in keywords:
        word = fold(keyword)
        if word not in spelt:
            word = next((lemma for lemma in lemmas(word) if lemma in spelt), None)
        found.append(spelt.get(word))
    return found


if __name__ == "__main__":
    print(rows())
