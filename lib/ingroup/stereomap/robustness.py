"""What is counted over replies: refusals, variation over rounds and prompts, people's judgements.

Figure 5, Tables 12, 13 and 14, appendices K and L.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from sacrebleu.metrics import BLEU
from sacrebleu.metrics.helpers import extract_all_word_ngrams
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from ingroup.stereomap import stimuli
from ingroup.stereomap.answers import FIRST
from ingroup.stereomap.maps import AXES
from ingroup.tables import check, read_table

# No match counts as 0.1 matches, as in the program of Zhu et al. (2018).
SENTENCE_BLEU = BLEU(lowercase=True, effective_order=True, smooth_method="floor", smooth_value=0.1)
NO_REPLY = ["cut", "failed", "missing"]  # such a trial may have been a refusal, and is in no share
CV = ["competence_cv_mean", "competence_cv_max", "warmth_cv_mean", "warmth_cv_max"]
CRITERIA = ["relevance", "soundness", "coherence"]


def refusal_rates(replies: pd.DataFrame) -> pd.DataFrame:
    """Compute the share of refusals by group (Figure 5).

    Parameters
    ----------
    replies : DataFrame
        From `answers.replies`, of one model.

    Returns
    -------
    DataFrame
        ``group``; ``n`` replies and ``refused`` ones; ``rate``, 0 to 1, the mean of the shares of
        the constructs, as released; ``low`` and ``high``. Highest first.

    Notes
    -----
    The rounds of a prompt are alike, so Wilson's interval counts prompts and not replies.
    """
    answered = replies[~replies.status.isin(NO_REPLY)]
    counted = answered.assign(refused=answered.status == "refused")
    by_group = counted.groupby("group", sort=False)
    table = by_group.refused.agg(n="size", refused="sum")
    table["prompts"] = by_group.prompt.nunique()

    by_construct = counted.groupby(["group", "construct"])
    shares = by_construct.refused.mean()
    table["rate"] = shares.groupby("group").mean()
    expected = table.rate * table.prompts
    low, high = proportion_confint(expected, table.prompts, method="wilson")
    table["low"] = low
    table["high"] = high
    highest_first = table.sort_values("rate", ascending=False, kind="stable")
    return highest_first.reset_index()


def variation(scores: pd.DataFrame, by: Sequence[str] = ("model", "ablation")) -> pd.DataFrame:
    """Compute the coefficient of variation of each group's scores over rounds (Table 13).

    Parameters
    ----------
    scores : DataFrame
        From `maps.scores`, EXTENDED. For appendix L, the means of two prompts.
    by : sequence of str
        Levels of its index, one row for each; ``["model"]`` for appendix L.

    Returns
    -------
    DataFrame
        Index `by`; the mean and the largest cv of both axes over groups, NaN where no group has
        two scores, and the number of ``groups`` that have. cv = sd / mean, with n - 1.
    """
    by_group = scores[AXES].groupby([*by, "group"], sort=False)
    cv = by_group.std() / by_group.mean()
    rows = cv.groupby(list(by), sort=False)
    table = rows.agg(["mean", "max"])
    table = table.set_axis(CV, axis=1)
    table["groups"] = rows.Warmth.count()
    return table


def self_bleu(texts: Iterable[str]) -> float:
    """Compute the mean BLEU of each text against all the others by sacrebleu (Zhu et al. 2018).

    Parameters
    ----------
    texts : iterable of str
        Each has a word. More texts give a higher value, so compare equal numbers.

    Returns
    -------
    float
        0 (diverse) to 1 (always the same); NaN for a single text.
    """
    texts = list(texts)
    if len(texts) < 2:
        return np.nan
    bleus = []
    for number, text in enumerate(texts):
        others = texts[:number] + texts[number + 1 :]
        bleu = SENTENCE_BLEU.sentence_score(text, others)
        share = bleu.score / 100
        bleus.append(share)
    return float(np.mean(bleus))


def entropy(texts: Sequence[str], n: int) -> float:
    """Compute the entropy of the n-grams of all texts, in bits (Zhang et al. 2018)."""
    counts: Counter = Counter()
    for text in texts:
        words = SENTENCE_BLEU.tokenizer(text.lower())
        ngrams, _ = extract_all_word_ngrams(words, n, n)
        counts += ngrams
    if not counts:
        return np.nan
    numbers = list(counts.values())
    return float(stats.entropy(numbers, base=2))


def diversity(replies: pd.DataFrame) -> pd.Series:
    """Measure how diverse the reasons are, and how often a model refuses (Table 14).

    Parameters
    ----------
    replies : DataFrame
        From `answers.replies`, of one model and one form of the prompt `FIRST`.

    Returns
    -------
    Series
        ``self_bleu``, the mean over groups with two texts, and ``self_bleu_all``, that of all texts
        together, for the paper does not say which; ``entropy_2`` and ``entropy_3`` of pairs and
        triples of words, in bits; and ``refuse_to_answer``, in percent of the replies that were not
        cut, failed or missing.
    """
    counted = replies[~replies.status.isin(NO_REPLY)]
    is_refused = counted.status == "refused"
    answered = counted[~is_refused]

    # Lines such as "- Friendly: 4" are no reasons.
    asked, _ = stimuli.expected("EXTENDED", FIRST)
    words = "|".join(map(re.escape, asked))
    rating = rf"(?im)^[ \-*|]*(?:{words})(?:[ *|]*:.*|[ \-*|]*)$"
    reasons = answered.text.str.replace(rating, "", regex=True)
    has_word = reasons.str.contains(r"\w")
    reasons = reasons[has_word]
    texts = reasons.tolist()

    by_group = reasons.groupby(answered.group)
    within = by_group.agg(self_bleu)
    numbers = {
        "self_bleu": within.mean(),
        "self_bleu_all": self_bleu(texts),
        "entropy_2": entropy(texts, 2),
        "entropy_3": entropy(texts, 3),
        "refuse_to_answer": 100 * is_refused.mean(),
    }
    return pd.Series(numbers)


# ---- appendix K: do the ratings go with the reasons (relevance), the keywords with the reasons
# (soundness), and the replies about a group together (coherence)? Each from 0 (no) to 1 (yes).


def sheet(replies: pd.DataFrame, rng: np.random.Generator, per_group: int = 5) -> pd.DataFrame:
    """Draw replies about each group for people to judge.

    Parameters
    ----------
    replies : DataFrame
        From `answers.replies`, of one model.
    rng : numpy.random.Generator
        Draws the replies.
    per_group : int
        How many replies, or as many as there are.

    Returns
    -------
    DataFrame
        ``group``, ``prompt``, ``round``, ``reply`` and the blank `CRITERIA`, by group; "-" where a
        coherence is not asked: it is asked once, in a group's last row. Refused, cut, failed and
        missing replies are left out.
    """
    usable = replies[~replies.status.isin(["refused", *NO_REPLY])]
    shuffled = usable.sample(frac=1, random_state=rng)
    drawn = shuffled.groupby("group").head(per_group)
    drawn = drawn.sort_values("group", kind="stable", ignore_index=True)

    is_last = ~drawn.group.duplicated(keep="last")
    # A spreadsheet would take these signs for a formula.
    escaped = drawn.text.str.replace(r"\A\s*(?=[=+\-@])", "'", regex=True)
    about = drawn[["group", "prompt", "round"]]
    return about.assign(
        reply=escaped,
        relevance="",
        soundness="",
        coherence=np.where(is_last, "", "-"),
    )


def summary(files: list[Path]) -> pd.DataFrame:
    """Summarise filled copies of one sheet, one for each person (Table 12).

    Returns
    -------
    DataFrame
        Index ``criterion``; ``mean`` and ``std`` (n - 1) of ``n`` judgements.

    Raises
    ------
    InputError
        A cell is neither blank nor a number from 0 to 1.
    """
    marks = {}
    for file in map(Path, files):
        table = read_table(file, CRITERIA)
        for criterion in CRITERIA:
            cells = table[criterion]
            numbers = pd.to_numeric(cells, errors="coerce")
            is_right = numbers.between(0, 1) | cells.isin(["", "-"])
            check(file, cells, is_right, "a number from 0 to 1")
            marks[criterion, file] = numbers

    both = pd.concat(marks, names=["criterion", "file"])
    by_criterion = both.groupby("criterion", sort=False)
    return by_criterion.agg(mean="mean", std="std", n="count")
