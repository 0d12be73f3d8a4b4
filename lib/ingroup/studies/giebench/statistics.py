"""Accuracy of verdicts, its change between prompts, position bias and identity mismatch.

GIEBench (Wang et al. 2024), sections 4 and 5. Answers come from `answers.load`. An answer without a
verdict is wrong, as in the paper, and is also counted apart. Shares are in percent, of items unless
said. Intervals, ``low`` to ``high``, are at 95 %: Wilson's for one share, and `mcnemar`'s for the
difference of two shares of the same items. Tables keep the order in which prompts and categories
come, and "Overall" is last.

Tests of one family have ``p_least``, the smallest p that so many items can give, and the columns of
:func:`ingroup.stats.corrections.in_family` at 0.05.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from ingroup.stats.corrections import adjust, in_family
from ingroup.stats.crossed import over_clusters
from ingroup.stats.paired import TINY, mcnemar, paired_test
from ingroup.studies.giebench.answers import LETTER_PROBABILITIES
from ingroup.studies.giebench.stimuli import LETTERS

OVERALL = "Overall"
CHANCE = 1 / len(LETTERS)


def by_model(
    answers: pd.DataFrame, statistic: Callable[..., pd.DataFrame], *options: Any
) -> pd.DataFrame:
    """Apply a statistic of this module to each model's answers, and stack the tables.

    Parameters
    ----------
    answers : DataFrame
        Answers of any number of models, told apart by ``model``.
    statistic : callable
        A function of this module that makes a table of one model's answers.
    *options
        Further arguments of the function.

    Returns
    -------
    DataFrame
        The tables below one another, with the index ``model``.
    """
    tables = {}
    for model, of_model in answers.groupby("model", sort=False):
        tables[model] = statistic(of_model, *options)
    below_each_other = pd.concat(tables, names=["model"])
    # The second level numbers the rows of each table.
    return below_each_other.droplevel(1)


class _Accuracy(NamedTuple):
    """A row of `accuracy`."""

    prompt: str
    category: str
    n: int
    right: int
    without: int
    refused: int
    cut: int
    failed: int
    accuracy: float
    low: float
    high: float


def accuracy(
    answers: pd.DataFrame,
    denominator: str = "paper",
    decimals: int | None = None,
) -> pd.DataFrame:
    """Compute the accuracy by prompt and category, and overall: Tables 1, 2 and 6.

    Parameters
    ----------
    answers : DataFrame
        Answers to items that each prompt asked once.
    denominator : {"paper", "released"}
        "paper" divides by n. "released" divides by n + 1 in a category and by n overall, as the
        evaluation first released (June 2024) does: its printed tables cannot be met otherwise.
    decimals : int, optional
        To how many decimals the share is rounded before it becomes a percent. The released code
        rounds to 3.

    Returns
    -------
    DataFrame
        ``prompt``, ``category``, ``n``; ``right``; ``without``, the answers without a verdict, and
        how many of them are ``refused``, ``cut`` and ``failed``; ``accuracy``; ``low`` and
        ``high``, which are of right / n under all options.

    Raises
    ------
    ValueError
        Where a prompt asked an item twice. The message names the first such item.
    """
    rows = []
    for prompt, category, part in _parts(_once(answers)):
        n = len(part)
        right = int(part["right"].sum())
        is_without = part["letter"].eq("")
        reasons = part.loc[is_without, "status"]

        low, high = _interval(right, n)
        row = _Accuracy(
            prompt=prompt,
            category=category,
            n=n,
            right=right,
            without=is_without.sum(),
            refused=reasons.eq("refused").sum(),
            cut=reasons.eq("cut").sum(),
            failed=reasons.eq("failed").sum(),
            accuracy=_share(right, n, category, denominator, decimals),
            low=low,
            high=high,
        )
        rows.append(row)
    return pd.DataFrame(rows, columns=_Accuracy._fields)


def favourite_letter(answers: pd.DataFrame) -> str:
    """Describe the most frequent letter: its share under each prompt, and of the right answers.

    Parameters
    ----------
    answers : DataFrame
        One model's answers to items that each prompt asked once.

    Returns
    -------
    str
        For example "A is 85 % under Raw, 65 % under ID; A is right in 25 %".
    """
    percent = 100 * pd.crosstab(answers["prompt"], answers["letter"], normalize="index")
    percent = percent.drop(columns="", errors="ignore")
    if not percent.size:
        return "no verdicts"

    letter = percent.sum().idxmax()
    shares = []
    for prompt in answers["prompt"].unique():
        shares.append(f"{percent.loc[prompt, letter]:.0f} % under {prompt}")

    right_letters = answers.drop_duplicates("key")["correct"]
    percent_right = 100 * right_letters.eq(letter).mean()
    return f"{letter} is {', '.join(shares)}; {letter} is right in {percent_right:.0f} %"


class _Change(NamedTuple):
    """A row of `changes`, before the correction."""

    category: str
    n: int
    before: float
    after: float
    change: float
    low: float
    high: float
    gained: int
    lost: int
    p: float
    p_least: float


def changes(
    answers: pd.DataFrame,
    before: str,
    after: str,
    denominator: str = "paper",
    decimals: int | None = None,
) -> pd.DataFrame:
    """Count the items that one prompt gains and loses against another: Tables 4 and 5.

    Parameters
    ----------
    answers : DataFrame
        Answers to items that both prompts asked once.
    before, after : str
        The prompts.
    denominator : {"paper", "released"}
        As in `accuracy`.
    decimals : int, optional
        As in `accuracy`. With 3 decimals the change is that of rounded accuracies, as in the paper.

    Returns
    -------
    DataFrame
        ``category``, ``n``; ``before`` and ``after``, the accuracies; ``change`` in points, with
        ``low`` and ``high``; ``gained``, the items that only `after` answers rightly, and ``lost``,
        the items that only `before` answers rightly; ``p``, and ``p_least``, the smallest p that n
        items can give; the columns of `in_family`. The categories are one family. Overall is a test
        of its own, and its ``p_holm`` is NaN.

    Raises
    ------
    ValueError
        Where a prompt asked an item twice, or did not ask it. The message names the first item.

    Notes
    -----
    `mcnemar` gives the test of the change, (gained - lost) / n, and its interval: the interval
    excludes 0 where the test rejects.
    """
    pairs = _paired(_once(answers), before, after)
    rows = []
    # `_parts` goes by prompt, so the pairs get one.
    for _, category, part in _parts(pairs.assign(prompt=after)):
        n = len(part)
        right_before = part["before"]
        right_after = part["after"]
        gained = int((right_after & ~right_before).sum())
        lost = int((right_before & ~right_after).sum())
        low, high, p = mcnemar(gained, lost, n)

        n_before = int(right_before.sum())
        n_after = int(right_after.sum())
        share_before = _share(n_before, n, category, denominator, decimals)
        share_after = _share(n_after, n, category, denominator, decimals)
        row = _Change(
            category=category,
            n=n,
            before=share_before,
            after=share_after,
            change=share_after - share_before,
            low=100 * low,
            high=100 * high,
            gained=gained,
            lost=lost,
            p=p,
            # This is the exact p where all n items change to one side.
            p_least=2.0 ** (1 - n),
        )
        rows.append(row)

    table = pd.DataFrame(rows, columns=_Change._fields)
    return in_family(table, 0.05, table["category"] != OVERALL)


def changes_over_raw(
    answers: pd.DataFrame, denominator: str = "paper", decimals: int | None = None
) -> pd.DataFrame:
    """Count the items that COT and ID gain and lose against Raw: Tables 4 and 5.

    Parameters
    ----------
    answers : DataFrame
        One model's answers to items that all three prompts asked once.
    denominator : {"paper", "released"}
        As in `accuracy`.
    decimals : int, optional
        As in `changes`.

    Returns
    -------
    DataFrame
        ``prompt``, COT before ID as the paper's tables have them, and the columns of `changes`.

    Raises
    ------
    ValueError
        As in `changes`.
    """
    tables = []
    for prompt in ("COT", "ID"):
        table = changes(answers, "Raw", prompt, denominator, decimals)
        table.insert(0, "prompt", prompt)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def counts_in_words(findings: pd.Series) -> str:
    """Count the findings of tests, in words.

    Parameters
    ----------
    findings : Series of str
        As `changes` and `mismatch` have them.

    Returns
    -------
    str
        For example "3 not significant, 1 significant", the most frequent first.
    """
    counts = []
    for finding, count in findings.value_counts().items():
        counts.append(f"{count} {finding}")
    return ", ".join(counts)


def share_right(answers: pd.DataFrame) -> pd.DataFrame:
    """Compute the share of an item's orders in which its verdict is right.

    Parameters
    ----------
    answers : DataFrame
        A row for each ``key``, ``prompt`` and order; an answer without a verdict is wrong.

    Returns
    -------
    DataFrame
        Items by prompts, 0 to 1.
    """
    right = answers["letter"].eq(answers["correct"])
    return right.groupby([answers["key"], answers["prompt"]]).mean().unstack("prompt")


def over_orders(answers: pd.DataFrame) -> pd.DataFrame:
    """Test the gain of each prompt over Raw, where an item counts once, with its mean over orders.

    A judge that looks only at the position of an answer gains nothing over all four orders, but may
    gain in a single order. The test for these identities is the paired t-test of `share_right` over
    items. The test for identities like these takes the identities of the items as a sample, by
    `over_clusters`.

    Parameters
    ----------
    answers : DataFrame
        One model's answers, in any number of orders, under Raw and other prompts.

    Returns
    -------
    DataFrame
        A row for each prompt other than Raw: ``n`` items; ``before`` and ``after``, percent right
        under Raw and this prompt; their difference ``change`` in points, with its 95 % interval
        ``low`` to ``high``; ``p``, and ``p_least``, the smallest p that any answers can give. For
        identities like these: ``identities``, their number, ``low_like_these``,
        ``high_like_these`` and ``p_like_these``. These are NaN where ``reason`` says why they
        cannot be computed.
    """
    right = 100 * share_right(answers)
    identities = answers.groupby("key").identity.first().reindex(right.index)
    other_prompts = right.columns.drop("Raw")

    rows = []
    for prompt in other_prompts:
        change = _change_over_items(right["Raw"], right[prompt], identities)
        rows.append({"prompt": prompt} | change)
    return pd.DataFrame(rows)


def _change_over_items(before: pd.Series, after: pd.Series, identities: pd.Series) -> dict:
    """Test the percent right of each item, before and after: a row of `over_orders`."""
    test = paired_test(after, before)
    identities_like_these = over_clusters(after - before, identities, "identity")
    return {
        "n": int(test.n),
        "before": before.mean(),
        "after": after.mean(),
        "change": test.difference,
        "low": test.low,
        "high": test.high,
        "p": test.pvalue,
        "p_least": test.least,
        "identities": identities.nunique(),
        "low_like_these": identities_like_these.low,
        "high_like_these": identities_like_these.high,
        "p_like_these": identities_like_these.p,
        "reason": identities_like_these.reason,
    }


class _RightLetter(NamedTuple):
    """A row of `p_right`, before Holm's correction."""

    prompt: str
    category: str
    n: int
    p_right: float
    low: float
    high: float
    p: float
    gain: float = np.nan
    gain_low: float = np.nan
    gain_high: float = np.nan
    gain_p: float = np.nan


def right_letter_probability(answers: pd.DataFrame) -> pd.DataFrame:
    """Average the probability of the right letter, by prompt and category.

    Parameters
    ----------
    answers : DataFrame
        Scored answers, with the columns `LETTER_PROBABILITIES`.

    Returns
    -------
    DataFrame
        ``prompt``, ``category``, ``n`` (items); ``p_right``, the mean probability of the right
        letter (0 to 1, and no p of a test), with its t-interval ``low`` to ``high``; ``p`` of
        `right_against_random`; ``gain`` over Raw for the same items, ``gain_low`` to
        ``gain_high``, and ``gain_p`` of a t-test. ``p_holm`` and ``gain_p_holm`` are corrected as
        in `changes`, with a family for each prompt. The gain is NaN where Raw was not asked.

    Notes
    -----
    An item counts once, with the mean over the orders of its answers. Over all four orders, a judge
    that looks only at the position has 1/4 to the last digit, `CHANCE`. An item with a failed call
    is left out.

    A judge that is sure of itself has skewed probabilities: with 6 such items, 0.91 of the
    intervals hold the true mean. Gains that are lognormal (sigma 1.5) have a ``gain_p`` below 0.05
    in 0.16 of the cases with 79 items and in 0.32 with 6, although the mean gain is 0 (``make
    calibration``).
    """
    orders_of_item = answers.groupby(["prompt", "category", "key"], sort=False)[
        LETTER_PROBABILITIES
    ]
    # One failed call makes its item NaN, rather than a mean over fewer orders.
    by_item = orders_of_item.mean(skipna=False).reset_index()
    raw = by_item[by_item.prompt == "Raw"].set_index("key").p_right

    rows = []
    for prompt, category, part in _parts(by_item):
        right = part.set_index("key").p_right
        test = paired_test(right, CHANCE)
        row = _RightLetter(
            prompt=prompt,
            category=category,
            n=int(test.n),
            p_right=CHANCE + test.difference,
            low=CHANCE + test.low,
            high=CHANCE + test.high,
            p=right_against_random(part[LETTER_PROBABILITIES].dropna().to_numpy()),
        )
        if prompt != "Raw":
            # Where Raw was not asked, no pair is complete and the gain is NaN.
            gain = paired_test(right, raw.reindex(right.index))
            row = row._replace(
                gain=gain.difference,
                gain_low=gain.low,
                gain_high=gain.high,
                gain_p=gain.pvalue,
            )
        rows.append(row)

    table = pd.DataFrame(rows, columns=_RightLetter._fields)
    is_category = table.category != OVERALL
    for name in ("p", "gain_p"):
        # Overall is a test of its own: as NaN it counts in no family.
        by_prompt = table[name].where(is_category).groupby(table.prompt, sort=False)
        table[f"{name}_holm"] = by_prompt.transform(adjust, "holm")
    return table


def right_against_random(chances: np.ndarray, n_resamples: int = 9999) -> float:
    """Test whether the right answers are as probable as answers drawn at random.

    Each draw takes one answer to each item at random. A draw counts if the mean probability of
    these answers is at least as far from `CHANCE` as the mean of the right answers. The test
    assumes nothing about the distribution of the probabilities. A t-test of six skewed
    probabilities rejects too often.

    Parameters
    ----------
    chances : array of float, shape (items, 4)
        The probability of each answer, the right one in the first column.
    n_resamples : int
        The number of draws.

    Returns
    -------
    float
        The two-sided p; NaN without an item.
    """
    n = len(chances)
    if n == 0:
        return np.nan

    # The seed is fixed, so that p depends on the answers alone.
    picks = np.random.default_rng(0).integers(4, size=(n_resamples, n))
    # The probability of the answer that a draw takes of an item: (draw, item).
    picked = chances[np.arange(n), picks]
    distances = np.abs(picked.mean(axis=1) - CHANCE)
    observed = abs(chances[:, 0].mean() - CHANCE)
    n_as_far = (distances >= observed - TINY).sum()
    # The right answers themselves count as one more draw.
    return float((1 + n_as_far) / (n_resamples + 1))


class _Position(NamedTuple):
    """A row of `by_position`."""

    prompt: str
    position: str
    n: int
    right: int
    accuracy: float
    low: float
    high: float
    chosen: int
    chosen_percent: float


def by_position(answers: pd.DataFrame) -> pd.DataFrame:
    """Compute the accuracy by the position of the right answer, and count each letter's verdicts.

    Parameters
    ----------
    answers : DataFrame
        Answers to items in four rotations, with the right answer at A, B, C and D.

    Returns
    -------
    DataFrame
        ``prompt``, ``position``, ``n``, ``right``, ``accuracy``, ``low``, ``high``; ``chosen``, the
        verdicts with this letter, right or wrong, and ``chosen_percent`` of all 4 n. A judge
        without position bias has the same accuracy four times and chooses 25 % of each.

    Raises
    ------
    ValueError
        Where an item was not asked in all four rotations. The message names it.
    """
    rows = []
    for prompt, asked in _rotated(answers).groupby("prompt", sort=False):
        for position in LETTERS:
            at_position = asked.loc[asked["correct"] == position, "right"]
            n = len(at_position)
            right = int(at_position.sum())
            chosen = int(asked["letter"].eq(position).sum())

            low, high = _interval(right, n)
            row = _Position(
                prompt=prompt,
                position=position,
                n=n,
                right=right,
                accuracy=100 * right / n,
                low=low,
                high=high,
                chosen=chosen,
                # There are 4 n verdicts, and 100 / 4 is 25.
                chosen_percent=25 * chosen / n,
            )
            rows.append(row)
    return pd.DataFrame(rows, columns=_Position._fields)


class _PositionTest(NamedTuple):
    """A row of `position_test`, before the correction."""

    prompt: str
    n: int
    n_informative: int
    statistic: float
    df: int
    p: float
    p_least: float


def position_test(answers: pd.DataFrame) -> pd.DataFrame:
    r"""Test whether an item is answered rightly as often at A, B, C and D: Cochran's Q.

    Parameters
    ----------
    answers : DataFrame
        As in `by_position`.

    Returns
    -------
    DataFrame
        ``prompt``, ``n``; ``n_informative``, the items that are right at some positions only;
        ``statistic`` and ``df``; ``p``, ``p_least`` and the columns of `in_family`. The prompts are
        one family. Without an informative item the statistic is NaN and p is 1.

    Raises
    ------
    ValueError
        As in `by_position`.

    Notes
    -----
    .. math:: Q = 3 \frac{4 \sum_j G_j^2 - (\sum_j G_j)^2}{4 \sum_i L_i - \sum_i L_i^2}

    with :math:`G_j` right answers at position j and :math:`L_i` of item i; chi-squared with 3
    degrees of freedom. It is SciPy's Friedman test, of answers that are 0 or 1. The items are the
    blocks, as the four answers to one are not independent. Q is at most 3 n.
    """
    rows = []
    for prompt, asked in _rotated(answers).groupby("prompt", sort=False):
        right = asked.pivot(index="key", columns="correct", values="right").to_numpy(int)
        n = len(right)
        is_informative = right.min(axis=1) < right.max(axis=1)
        n_informative = int(is_informative.sum())

        statistic = np.nan
        p = 1.0
        if n_informative:
            # SciPy takes the answers at each position apart: turned, they are the rows.
            statistic, p = stats.friedmanchisquare(*right.T)
        row = _PositionTest(
            prompt=prompt,
            n=n,
            n_informative=n_informative,
            statistic=statistic,
            df=3,
            p=p,
            p_least=stats.chi2.sf(3 * n, 3),
        )
        rows.append(row)

    table = pd.DataFrame(rows, columns=_PositionTest._fields)
    return in_family(table, 0.05)


class _Consistency(NamedTuple):
    """A row of `consistency`."""

    prompt: str
    category: str
    n: int
    consistent: int
    consistency: float
    low: float
    high: float
    accuracy: float
    right: int
    accuracy_strict: float
    strict_low: float
    strict_high: float
    accuracy_among: float


def consistency(answers: pd.DataFrame) -> pd.DataFrame:
    """Count the items with the same answer in all four rotations, and compute their accuracy.

    Parameters
    ----------
    answers : DataFrame
        As in `by_position`.

    Returns
    -------
    DataFrame
        ``prompt``, ``category``, ``n``; ``consistent`` and ``consistency``, consistent / n in
        items, with ``low`` to ``high``; ``accuracy`` over all 4 n answers; ``right``, the items
        that are right in all four; ``accuracy_strict``, right / n, with ``strict_low`` to
        ``strict_high``; ``accuracy_among``, right / consistent, NaN without a consistent item.

    Raises
    ------
    ValueError
        As in `by_position`.

    Notes
    -----
    An answer is identified by its distance from the right one, which a rotation does not change. An
    item with a reply without a verdict is not consistent.
    """
    rows = []
    for prompt, category, part in _parts(_over_rotations(answers)):
        n = len(part)
        consistent = int(part["consistent"].sum())
        right = int((part["consistent"] & part["right"]).sum())

        low, high = _interval(consistent, n)
        strict_low, strict_high = _interval(right, n)
        row = _Consistency(
            prompt=prompt,
            category=category,
            n=n,
            consistent=consistent,
            consistency=100 * consistent / n,
            low=low,
            high=high,
            accuracy=100 * part["accuracy"].mean(),
            right=right,
            accuracy_strict=100 * right / n,
            strict_low=strict_low,
            strict_high=strict_high,
            accuracy_among=100 * right / consistent if consistent else np.nan,
        )
        rows.append(row)
    return pd.DataFrame(rows, columns=_Consistency._fields)


def _over_rotations(answers: pd.DataFrame) -> pd.DataFrame:
    """Summarise the rotations of each prompt and item in a row.

    The item is ``consistent`` if all four verdicts name the same answer, and ``accuracy`` is its
    share of right verdicts.
    """
    rotated = _rotated(answers)
    position_of = {letter: position for position, letter in enumerate(LETTERS)}
    position = rotated["letter"].map(position_of)
    right_position = rotated["correct"].map(position_of)
    # The answer is NaN where there is no verdict; `count` below leaves it out.
    rotated["answer"] = (position - right_position) % 4

    by_item = rotated.groupby(["prompt", "key"], sort=False)
    # Both are needed: nunique passes over an order without a verdict.
    has_all = by_item["answer"].count().eq(4)
    has_one = by_item["answer"].nunique().eq(1)

    # The first rotation has one row per item, to which the results over all four are added.
    items = rotated[rotated["shift"] == 0].set_index(["prompt", "key"])
    items["consistent"] = has_all & has_one
    items["accuracy"] = by_item["right"].mean()
    return items.reset_index()


def mismatch(answers: pd.DataFrame, tuples: Iterable[tuple[str, str]]) -> pd.DataFrame:
    """Compute the accuracy when the user is given the other identity of a tuple: Tables 3 and 7.

    Parameters
    ----------
    answers : DataFrame
        Answers under COT and ID to items that state their own identity, and the other one.
    tuples : iterable of (str, str)
        The identities i and j.

    Returns
    -------
    DataFrame
        A row for each tuple: ``identity_i``, ``identity_j``, ``n``; ``cot_prompt_mismatch`` and
        ``id_prompt_mismatch``, with the other identity; ``no_mismatch``, which is COT in print, and
        ``no_mismatch_id``, which is not printed. With the prefixes ``cot_`` and ``id_`` follow the
        columns of `changes` from own to mismatch, with the tuples as one family
        per prompt.

    Raises
    ------
    ValueError
        As in `changes`.

    Notes
    -----
    The items of both identities count, each asked with its own and with the other one, as the
    printed shares of (Male, Female) are of the whole category.
    """
    pairs = list(tuples)
    cot_changes = _mismatch_changes(answers, pairs, "COT")
    id_changes = _mismatch_changes(answers, pairs, "ID")

    table = pd.DataFrame(pairs, columns=["identity_i", "identity_j"])
    table["n"] = cot_changes["n"]
    table["cot_prompt_mismatch"] = cot_changes["after"]
    table["id_prompt_mismatch"] = id_changes["after"]
    table["no_mismatch"] = cot_changes["before"]
    table["no_mismatch_id"] = id_changes["before"]

    cot_tests = cot_changes.loc[:, "change":].add_prefix("cot_")
    id_tests = id_changes.loc[:, "change":].add_prefix("id_")
    return pd.concat([table, cot_tests, id_tests], axis=1)


def mismatch_of_pairs(answers: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Compute `mismatch` for a table of pairs, and name the category of each.

    Parameters
    ----------
    answers : DataFrame
        As in `mismatch`.
    pairs : DataFrame
        ``identity_i``, ``identity_j`` and ``category``, a row for each tuple.

    Returns
    -------
    DataFrame
        The columns of `mismatch`, and ``category``.

    Raises
    ------
    ValueError
        As in `changes`.
    """
    sides = pairs[["identity_i", "identity_j"]]
    table = mismatch(answers, sides.itertuples(index=False, name=None))
    return table.assign(category=pairs["category"].to_list())


def _mismatch_changes(
    answers: pd.DataFrame, pairs: Sequence[tuple[str, str]], prompt: str
) -> pd.DataFrame:
    """Compute the overall `changes` from the own identity to the other, one row per pair."""
    # The columns of an empty table serve a run without pairs.
    columns = changes(answers[:0], "own", "other").columns
    of_prompt = answers[answers["prompt"] == prompt]
    rows = []
    for pair in pairs:
        is_of_pair = of_prompt["identity"].isin(pair) & of_prompt["told"].isin(pair)
        of_pair = of_prompt[is_of_pair]
        is_own = of_pair["told"] == of_pair["identity"]
        # `changes` compares prompts, so own and other identity stand in the place of prompts.
        by_identity = of_pair.assign(prompt=np.where(is_own, "own", "other"))
        # Overall is the last row.
        overall = changes(by_identity, "own", "other").iloc[-1]
        rows.append(overall)

    table = pd.DataFrame(rows, columns=columns).reset_index(drop=True)
    return in_family(table, 0.05)


def mismatch_over_items(answers: pd.DataFrame) -> pd.DataFrame:
    """Test the change of accuracy with another identity in the prompt, where an item counts once.

    `mismatch` counts an item in each tuple of its identity. Here the mean over all other identities
    of an item is compared with its verdict under its own identity.

    Parameters
    ----------
    answers : DataFrame
        As in `mismatch`.

    Returns
    -------
    DataFrame
        A row for each prompt, of the items that were asked with another identity, with the columns
        of `over_orders`: ``before`` is with the own identity and ``after`` with the others.
    """
    rows = []
    for prompt, of_prompt in answers.groupby("prompt", sort=False):
        is_right = of_prompt.letter == of_prompt.correct
        of_prompt = of_prompt.assign(percent_right=100.0 * is_right)
        is_own = of_prompt.told == of_prompt.identity
        with_other = of_prompt[~is_own].groupby("key").percent_right.mean()
        with_own = of_prompt[is_own].set_index("key").loc[with_other.index]
        change = _change_over_items(with_own.percent_right, with_other, with_own.identity)
        rows.append({"prompt": prompt} | change)
    return pd.DataFrame(rows)


def _once(answers: pd.DataFrame) -> pd.DataFrame:
    """Add whether each answer is ``right``. Raise a ValueError if an item was asked twice."""
    is_repeated = answers.duplicated(["prompt", "key"])
    for row in answers[is_repeated].itertuples():
        expected = "expected once: take the rows of one shift"
        raise ValueError(f"item {row.key} (prompt {row.prompt}) was asked twice, {expected}")
    return answers.assign(right=answers["letter"] == answers["correct"])


def _rotated(answers: pd.DataFrame) -> pd.DataFrame:
    """Add whether each answer is ``right``. Raise a ValueError if an item lacks a rotation."""
    by_item = answers.groupby(["prompt", "key"], sort=False)
    rotations = by_item[["shift", "correct"]].agg(sorted)
    for (prompt, key), shifts, positions in rotations.itertuples():
        if shifts != [0, 1, 2, 3] or positions != list(LETTERS):
            found = f"with the shifts {shifts} and its right answer at {positions}"
            expected = f"0 to 3 and {list(LETTERS)}"
            raise ValueError(f"item {key} (prompt {prompt}) was asked {found}, expected {expected}")
    return answers.assign(right=answers["letter"] == answers["correct"])


def _paired(answers: pd.DataFrame, before: str, after: str) -> pd.DataFrame:
    """Pair two prompts by item: category, and whether right ``before`` and right ``after``."""
    first = answers[answers["prompt"] == before].set_index("key")
    second = answers[answers["prompt"] == after].set_index("key")
    _check_items(first, second, before)
    _check_items(second, first, after)
    return first[["category"]].assign(before=first["right"], after=second["right"])


def _check_items(asked: pd.DataFrame, other: pd.DataFrame, prompt: str) -> None:
    """Raise a ValueError unless a prompt asked all items of the other prompt."""
    for key in other.index.difference(asked.index, sort=False):
        raise ValueError(f"item {key} was not asked with {prompt!r}, expected both")


def _parts(answers: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield each prompt and category with its answers.

    The last category of a prompt is `OVERALL`, with all answers of the prompt.
    """
    for prompt, asked in answers.groupby("prompt", sort=False):
        for category, part in asked.groupby("category", sort=False):
            yield prompt, category, part
        yield prompt, OVERALL, asked


def _share(right: int, n: int, category: str, denominator: str, decimals: int | None) -> float:
    """Compute the percent right of n items, as `accuracy` describes."""
    is_raised = denominator == "released" and category != OVERALL
    share = right / (n + 1) if is_raised else right / n
    if decimals is not None:
        # Python's round, as released: np.round multiplies first and may end elsewhere.
        share = round(share, decimals)
    return 100 * share


def _interval(right: int, n: int) -> tuple[float, float]:
    """Compute Wilson's interval of a share, in percent."""
    low, high = proportion_confint(right, n, method="wilson")
    return 100 * low, 100 * high
