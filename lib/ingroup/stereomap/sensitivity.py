"""How much answers vary over rounds and between prompts (Tables 13 and 14, appendix L)."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
import pandas as pd
from sacrebleu.metrics import BLEU
from sacrebleu.metrics.helpers import extract_all_word_ngrams
from scipy import stats

from ingroup.paths import PUBLISHED
from ingroup.stereomap import stimuli
from ingroup.stereomap.answers import FIRST
from ingroup.stereomap.maps import AXES

ORDER = 4  # words of the longest n-grams of BLEU
TOKENIZE = BLEU().tokenizer
COLUMNS = ["self_bleu", "self_bleu_all", "entropy_2", "entropy_3", "refuse_to_answer"]


def variation(scores: pd.DataFrame, by: Sequence[str] = ("model", "ablation")) -> pd.DataFrame:
    """Compute the coefficient of variation of each group's scores over rounds (Table 13).

    Parameters
    ----------
    scores : DataFrame
        From `maps.scores`, EXTENDED. For appendix L, pass the means of two prompts and ``model``.
    by : sequence of str
        Levels of its index, one row for each.

    Returns
    -------
    DataFrame
        Index `by`; the mean and the largest cv of both axes over groups, NaN where no group has
        two scores, and the number of ``groups`` that have. cv = sd / mean, with n - 1.
    """
    by_group = scores[AXES].groupby([*by, "group"], sort=False)
    cv = (by_group.std() / by_group.mean()).groupby(list(by), sort=False)
    columns = {}
    for axis in AXES:
        columns[f"{axis.lower()}_cv_mean"] = cv[axis].mean()
        columns[f"{axis.lower()}_cv_max"] = cv[axis].max()
    return pd.DataFrame(columns | {"groups": cv.Warmth.count()})


def between_prompts(means: pd.DataFrame) -> pd.DataFrame:
    """Compute the variation between the paper's prompt and each reduced one (appendix L).

    Parameters
    ----------
    means : DataFrame
        Index ``model``, ``ablation`` and ``group``; the scores of `maps.scores`, averaged over
        rounds.

    Returns
    -------
    DataFrame
        Index ``ablation`` and ``model``; as `variation`, and ``printed``, the paper's mean over
        both axes for GPT-3.5.
    """
    table = pd.read_csv(PUBLISHED / "stereomap" / "appendix_l_between_prompts.csv")
    rows = {}
    for ablation, cv in table.itertuples(index=False):
        both = means[means.index.isin([stimuli.PAPER, ablation], level="ablation")]
        rows[ablation] = variation(both, ["model"]).assign(printed=cv)
    return pd.concat(rows, names=["ablation"])


def self_bleu(texts: Sequence[str]) -> float:
    """Compute the mean BLEU of each text against all the others (Zhu et al. 2018).

    Parameters
    ----------
    texts : sequence of str
        Each has a word. More texts give a higher value, so compare equal numbers.

    Returns
    -------
    float
        0 (diverse) to 1 (always the same); NaN for a single text.

    Notes
    -----
    BLEU = min(1, exp(1 - r / c)) exp(mean of log p_n), for a text of c words, the closest length r
    of another text, and the share p_n of its n-grams that another text has. No match counts as 0.1
    matches, as in Zhu et al.'s program. sacrebleu gives the same, but counts all texts anew for
    each text.
    """
    if len(texts) < 2:
        return np.nan
    counted = [extract_all_word_ngrams(TOKENIZE(text.lower()), 1, ORDER) for text in texts]
    counts = defaultdict(list)
    for ngrams, _ in counted:
        for ngram, count in ngrams.items():
            counts[ngram].append(count)
    highest = {ngram: sorted([0, *found])[-2:] for ngram, found in counts.items()}

    bleus = []
    lengths = Counter(length for _, length in counted)
    for ngrams, length in counted:
        matches = np.zeros(ORDER)
        totals = np.zeros(ORDER)
        for ngram, count in ngrams.items():
            second, first = highest[ngram]
            # The text that has an n-gram most often finds the second number in the others.
            elsewhere = second if count == first else first
            matches[len(ngram) - 1] += min(count, elsewhere)
            totals[len(ngram) - 1] += count

        others = lengths - Counter([length])
        closest = min(others, key=lambda other, own=length: (abs(other - own), other))
        floor = {"smooth_method": "floor", "smooth_value": 0.1, "effective_order": True}
        bleu = BLEU.compute_bleu(list(matches), list(totals), length, closest, **floor)
        bleus.append(bleu.score / 100)
    return float(np.mean(bleus))


def entropy(texts: Sequence[str], n: int) -> float:
    """Compute the entropy of the n-grams of all texts, in bits (Zhang et al. 2018)."""
    counts: Counter = Counter()
    for text in texts:
        counts += extract_all_word_ngrams(TOKENIZE(text.lower()), n, n)[0]
    return float(stats.entropy(list(counts.values()), base=2))


def diversity(replies: pd.DataFrame, rounds: int) -> dict[str, float]:
    """Measure how diverse the reasons are, and how often a model refuses (Table 14).

    Parameters
    ----------
    replies : DataFrame
        From `answers.replies`, of one model and one form of the prompt `FIRST`.
    rounds : int
        How many rounds count.

    Returns
    -------
    dict
        `COLUMNS`: ``self_bleu``, the mean over groups with two texts, and ``self_bleu_all``, that
        of all texts together, for the paper does not say which; the entropies of pairs and triples
        of words, in bits; and refusals in percent of the replies that were not cut, failed or
        missing.
    """
    counted = replies[replies["round"] <= rounds].reset_index(drop=True)
    is_known = ~counted.status.isin(["cut", "failed", "missing"])
    refused = counted.status[is_known].eq("refused")

    # Lines such as "- Friendly: 4" are no reasons.
    words = "|".join(map(re.escape, stimuli.prompts("EXTENDED")[FIRST].words))
    line = rf"(?im)^[ \-*|]*(?:{words})(?:[ *|]*:.*|[ \-*|]*)$"
    answered = counted[is_known & counted.status.ne("refused")]
    reasons = answered.text.str.replace(line, "", regex=True)
    reasons = reasons[reasons.str.contains(r"\w")]
    within = reasons.groupby(answered.group).agg(lambda texts: self_bleu(texts.tolist()))
    texts = reasons.tolist()
    numbers = [within.mean(), self_bleu(texts), entropy(texts, 2), entropy(texts, 3)]
    return dict(zip(COLUMNS, [*numbers, 100 * refused.mean()], strict=True))
