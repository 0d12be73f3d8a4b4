"""Accuracy of verdicts, its change between prompts, position bias and identity mismatch.

GIEBench (Wang et al. 2024), sections 4 and 5. Answers are those of `answers.load`; one without a
verdict is wrong, as in the paper, and is also shown apart. Shares are in percent, of items unless
said. Intervals, ``low`` to ``high``, are at 95 %: Wilson's of one share and `mcnemar`'s of the
difference of two shares of the same items. Tables keep the order in which prompts and categories
come; "Overall" is last. ValueError is for an item that was not asked as often as a function needs.

Tests of one family have ``p_least``, the smallest p that so many items can give, and the columns of
:func:`ingroup.stats.paired.in_family` at 0.05.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy.stats import chi2, friedmanchisquare
from statsmodels.stats.proportion import proportion_confint

from ingroup.stats.crossed import over_clusters
from ingroup.stats.paired import TINY, adjust, in_family, mcnemar, paired_test
from ingroup.studies.giebench.answers import CHANCES
from ingroup.studies.giebench.stimuli import LETTERS

OVERALL = "Overall"
CHANCE = 1 / len(LETTERS)


def accuracy(
    answers: pd.DataFrame, denominator: str = "paper", decimals: int | None = None
) -> pd.DataFrame:
    """Accuracy by prompt and category, and overall, of items asked once: Tables 1, 2 and 6.

    The denominator is "paper": right / n; or "released": right / (n + 1) in a category and right /
    n overall, as the evaluation first released (June 2024) counts: its printed tables cannot be met
    otherwise. The share may be rounded to `decimals` before it becomes a percent, 3 in the released
    code. The interval is of right / n; of the answers ``without`` a verdict are ``refused``,
    ``cut`` and ``failed``.
    """
    rows = []
    for prompt, category, part in _parts(_once(answers)):
        n, right, without = len(part), int(part["right"].sum()), part["letter"].eq("")
        counts = [(without & part["status"].eq(w)).sum() for w in ("refused", "cut", "failed")]
        share = _share(right, n, category, denominator, decimals)
        row = prompt, category, n, right, without.sum(), *counts, share
        rows.append((*row, *_interval(right, n)))
    columns = "prompt category n right without refused cut failed accuracy low high"
    return pd.DataFrame(rows, columns=columns.split())


def changes(
    answers: pd.DataFrame, before: str, after: str, denominator: str = "paper",
    decimals: int | None = None,
) -> pd.DataFrame:  # fmt: skip
    """What one prompt gains and loses against another, item by item: Tables 4 and 5.

    An item is gained where only `after` answers it rightly, lost where only `before` does; the test
    and the interval of the change, (gained - lost) / n in points, are those of `mcnemar`, of which
    one excludes 0 where the other rejects. The options are those of `accuracy`; with 3 decimals the
    change is that of rounded accuracies, as in the paper. The categories are one family; Overall,
    where ``p_holm`` is NaN, is a test of its own.
    """
    rows = []
    for _, category, part in _parts(_paired(_once(answers), before, after).assign(prompt=after)):
        n, (was, now) = len(part), (part["before"], part["after"])
        shares = [_share(int(s.sum()), n, category, denominator, decimals) for s in (was, now)]
        gained, lost = int((now & ~was).sum()), int((was & ~now).sum())
        low, high, p = mcnemar(gained, lost, n)
        change = shares[1] - shares[0], 100 * low, 100 * high
        rows.append((category, n, *shares, *change, gained, lost, p, 2.0 ** (1 - n)))
    columns = "category n before after change low high gained lost p p_least"
    table = pd.DataFrame(rows, columns=columns.split())
    return in_family(table, 0.05, table["category"] != OVERALL)


def share_right(answers: pd.DataFrame) -> pd.DataFrame:
    """Share of an item's orders in which its verdict is right: items by prompts, 0 to 1.

    `answers` has a row for each ``key``, ``prompt`` and order; no verdict is wrong.
    """
    right = answers["letter"].eq(answers["correct"])
    return right.groupby([answers["key"], answers["prompt"]]).mean().unstack("prompt")


def over_orders(answers: pd.DataFrame) -> pd.DataFrame:
    """Test what a prompt gains over Raw, an item counting once with the mean over its orders.

    A judge that looks at the place of an answer alone gains nothing over all four orders, and
    something in one of them. The test for these identities is the paired t-test of `share_right`
    over items. The test for identities like these takes the identities that the items are about as
    a sample (:func:`ingroup.stats.crossed.over_clusters`).

    Parameters
    ----------
    answers : DataFrame
        One model's, of any number of orders, under Raw and other prompts.

    Returns
    -------
    DataFrame
        A row for each prompt other than Raw: ``n`` items; ``before`` and ``after``, percent right
        under Raw and this prompt; their difference ``change`` in points, with its 95 % interval
        ``low`` to ``high``; ``p``, and ``p_least`` below which no answers bring it. For identities
        like these: ``identities``, their number, ``low_like``, ``high_like`` and ``p_like``, NaN
        where a ``reason`` says why they cannot be told.
    """
    right = 100 * share_right(answers)
    identities = answers.groupby("key").identity.first().reindex(right.index)
    rows = []
    for prompt in right.columns.drop("Raw"):
        test = paired_test(right[prompt], right["Raw"])
        like = over_clusters(right[prompt] - right["Raw"], identities, "identity")
        rows.append({
            "prompt": prompt,
            "n": int(test.n),
            "before": right["Raw"].mean(),
            "after": right[prompt].mean(),
            "change": test.difference,
            "low": test.low,
            "high": test.high,
            "p": test.pvalue,
            "p_least": test.least,
            "identities": identities.nunique(),
            "low_like": like.low,
            "high_like": like.high,
            "p_like": like.p,
            "reason": like.reason,
        })  # fmt: skip
    return pd.DataFrame(rows)


def p_right(answers: pd.DataFrame) -> pd.DataFrame:
    """Probability of the right letter, of answers over choices, by prompt and category.

    An item counts once, with the mean over the orders of its answers: over all four a judge that
    looks at the place alone has 1/4 to the last digit, `CHANCE`. Means over items with t-intervals:
    ``p_right``, whose ``p`` is of `_any_right`, and ``gain`` over Raw for the same items, with
    ``gain_p`` of a t-test; ``_holm`` as in `changes`, a family for each prompt. An item with a
    failed call is left out; the gain is NaN where Raw was not asked. Of 6 items of a judge that is
    sure of itself, whose probabilities are skewed, 0.91 of the intervals hold. Gains that are
    lognormal (sigma 1.5) have a ``gain_p`` below 0.05 in 0.16 of the cases with 79 items and in
    0.32 with 6, although the mean gain is 0 (``make calibration``).
    """
    by_item = answers.groupby(["prompt", "category", "key"], sort=False)[CHANCES]
    by_item = by_item.mean(skipna=False).reset_index()
    raw, rows = by_item[by_item.prompt == "Raw"].set_index("key").p_right, []
    for prompt, category, part in _parts(by_item):
        one = part.set_index("key").p_right
        test, gain = paired_test(one, CHANCE), paired_test(one, raw.reindex(one.index))
        mean = CHANCE + np.array([test.difference, test.low, test.high])
        gained = [gain.difference, gain.low, gain.high, gain.pvalue]
        gained = [np.nan] * 4 if prompt == "Raw" else gained
        p = _any_right(part[CHANCES].dropna().to_numpy())
        rows.append((prompt, category, int(test.n), *mean, p, *gained))
    columns = "prompt category n p_right low high p gain gain_low gain_high gain_p"
    table = pd.DataFrame(rows, columns=columns.split())
    for name in ("p", "gain_p"):
        tested = table[name].where(table.category != OVERALL).groupby(table.prompt, sort=False)
        table[f"{name}_holm"] = tested.transform(adjust, "holm")
    return table


def _any_right(chances: np.ndarray, n_resamples: int = 9999) -> float:
    """Could any answer of each item (row) be the right one, the first? p, two-sided, of the mean.

    Each draw takes one of the four for each item; NaN without an item. It asks nothing of how the
    probabilities are spread, where a t-test of six skewed ones rejects too often.
    """
    if not len(chances):
        return np.nan
    picks = np.random.default_rng(0).integers(4, size=(n_resamples, len(chances)))
    off = np.abs(chances[np.arange(len(chances)), picks].mean(axis=1) - CHANCE)
    far = off >= abs(chances[:, 0].mean() - CHANCE) - TINY
    return float((1 + far.sum()) / (n_resamples + 1))


def by_position(answers: pd.DataFrame) -> pd.DataFrame:
    """Accuracy by the position of the right answer, and how often each letter is the verdict.

    Every item is asked in four rotations, with its right answer at A, B, C and D. ``chosen`` are
    the verdicts with this letter, right or wrong, ``chosen_percent`` of all 4 n. A judge without
    position bias has the same accuracy four times and chooses 25 % of each.
    """
    rows = []
    for prompt, asked in _rotated(answers).groupby("prompt", sort=False):
        for position in LETTERS:
            there = asked.loc[asked["correct"] == position, "right"]
            n, right, chosen = len(there), int(there.sum()), int(asked["letter"].eq(position).sum())
            shares = 100 * right / n, *_interval(right, n), chosen, 25 * chosen / n
            rows.append((prompt, position, n, right, *shares))
    columns = "prompt position n right accuracy low high chosen chosen_percent"
    return pd.DataFrame(rows, columns=columns.split())


def position_test(answers: pd.DataFrame) -> pd.DataFrame:
    r"""Cochran's Q: is an item answered rightly as often at A, B, C and D?

    .. math:: Q = 3 \frac{4 \sum_j G_j^2 - (\sum_j G_j)^2}{4 \sum_i L_i - \sum_i L_i^2}

    with :math:`G_j` right answers at position j and :math:`L_i` of item i; chi-squared with 3
    degrees of freedom. That is Friedman's test, SciPy's, of answers that are 0 or 1. The items are
    the blocks, as the four answers to one are not independent; ``n_informative`` of them are right
    at some positions only: without one, the statistic is NaN and p is 1. Q is at most 3 n. The
    prompts are one family.
    """
    rows = []
    for prompt, asked in _rotated(answers).groupby("prompt", sort=False):
        right = asked.pivot(index="key", columns="correct", values="right").to_numpy(int)
        mixed = int((right.min(axis=1) < right.max(axis=1)).sum())
        q, p = friedmanchisquare(*right.T) if mixed else (np.nan, 1.0)
        rows.append((prompt, len(right), mixed, q, 3, p, chi2.sf(3 * len(right), 3)))
    columns = ["prompt", "n", "n_informative", "statistic", "df", "p", "p_least"]
    return in_family(pd.DataFrame(rows, columns=columns), 0.05)


def consistency(answers: pd.DataFrame) -> pd.DataFrame:
    """How many items get the same answer in all four rotations, and what accuracy that leaves.

    An answer is known by its distance from the right one, which a rotation does not change. An item
    with a reply without a verdict is not consistent. ``consistency`` is consistent / n, in items;
    ``accuracy`` is over all 4 n answers; ``right`` are items that are right in all four;
    ``accuracy_strict`` is right / n, with ``strict_low`` to ``strict_high``; ``accuracy_among`` is
    right / consistent, NaN without a consistent item.
    """
    asked = _rotated(answers)
    place = {letter: k for k, letter in enumerate(LETTERS)}
    asked["answer"] = (asked["letter"].map(place) - asked["correct"].map(place)) % 4
    by_item = asked.groupby(["prompt", "key"], sort=False)
    items = asked[asked["shift"] == 0].set_index(["prompt", "key"])
    items["consistent"] = by_item["answer"].count().eq(4) & by_item["answer"].nunique().eq(1)
    items["accuracy"] = by_item["right"].mean()
    rows = []
    for prompt, category, part in _parts(items.reset_index()):
        n, consistent = len(part), int(part["consistent"].sum())
        right = int((part["consistent"] & part["right"]).sum())
        row = [prompt, category, n, consistent, 100 * consistent / n]
        row += [*_interval(consistent, n), 100 * part["accuracy"].mean()]
        row += [right, 100 * right / n, *_interval(right, n)]
        rows.append((*row, 100 * right / consistent if consistent else np.nan))
    columns = "prompt category n consistent consistency low high accuracy right accuracy_strict"
    columns += " strict_low strict_high accuracy_among"
    return pd.DataFrame(rows, columns=columns.split())


def mismatch(answers: pd.DataFrame, tuples: Iterable[tuple[str, str]]) -> pd.DataFrame:
    """Accuracy when the user is given the other identity of a tuple: Tables 3 and 7.

    The items of both identities count, each asked with its own and with the other one, as the
    printed shares of (Male, Female) are of the whole category. The printed ``no_mismatch`` is COT;
    ``no_mismatch_id`` is not printed. With ``cot_`` and ``id_`` follow the columns of `changes`
    from own to mismatch, with the tuples as one family a prompt. Without tuples it has no row.
    """
    pairs, found = list(tuples), {}
    columns = changes(answers[:0], "own", "other").columns
    for name in ("COT", "ID"):
        rows = []
        for pair in pairs:
            told = answers["identity"].isin(pair) & answers["told"].isin(pair)
            asked = answers[told & (answers["prompt"] == name)]
            side = np.where(asked["told"] == asked["identity"], "own", "other")
            rows.append(changes(asked.assign(prompt=side), "own", "other").iloc[-1])
        found[name] = in_family(pd.DataFrame(rows, columns=columns).reset_index(drop=True), 0.05)
    cot, plain = found["COT"], found["ID"]
    table = pd.DataFrame(pairs, columns=["identity_i", "identity_j"]).assign(
        n=cot["n"], cot_prompt_mismatch=cot["after"], id_prompt_mismatch=plain["after"],
        no_mismatch=cot["before"], no_mismatch_id=plain["before"],
    )  # fmt: skip
    tests = [part.loc[:, "change":].add_prefix(f"{n.lower()}_") for n, part in found.items()]
    return pd.concat([table, *tests], axis=1)


def _once(answers: pd.DataFrame) -> pd.DataFrame:
    for row in answers[answers.duplicated(["prompt", "key"])].itertuples():
        expected = "expected once: take the rows of one shift"
        raise ValueError(f"item {row.key} (prompt {row.prompt}) was asked twice, {expected}")
    return answers.assign(right=answers["letter"] == answers["correct"])


def _rotated(answers: pd.DataFrame) -> pd.DataFrame:
    asked = answers.groupby(["prompt", "key"], sort=False)[["shift", "correct"]].agg(sorted)
    for (prompt, key), shifts, right in asked.itertuples():
        if shifts != [0, 1, 2, 3] or right != list(LETTERS):
            found = f"with the shifts {shifts} and its right answer at {right}"
            expected = f"0 to 3 and {list(LETTERS)}"
            raise ValueError(f"item {key} (prompt {prompt}) was asked {found}, expected {expected}")
    return answers.assign(right=answers["letter"] == answers["correct"])


def _paired(answers: pd.DataFrame, before: str, after: str) -> pd.DataFrame:
    """One row an item: its category, and whether it is right ``before`` and ``after``."""
    sides = [answers[answers["prompt"] == prompt].set_index("key") for prompt in (before, after)]
    for name, side, other in zip((before, after), sides, sides[::-1], strict=True):
        for key in other.index.difference(side.index, sort=False):
            raise ValueError(f"item {key} was not asked with {name!r}, expected both")
    return sides[0][["category"]].assign(before=sides[0]["right"], after=sides[1]["right"])


def _parts(answers: pd.DataFrame) -> Iterable[tuple[str, str, pd.DataFrame]]:
    """Prompt, category and its answers; after the categories of a prompt, all of it."""
    for prompt, asked in answers.groupby("prompt", sort=False):
        for category, part in [*asked.groupby("category", sort=False), (OVERALL, asked)]:
            yield prompt, category, part


def _share(right: int, n: int, category: str, denominator: str, decimals: int | None) -> float:
    share = right / (n + 1 if denominator == "released" and category != OVERALL else n)
    # Python's round, as released: np.round multiplies first and may end elsewhere.
    return 100 * (share if decimals is None else round(share, decimals))


def _interval(right: int, n: int) -> list[float]:
    return [100 * end for end in proportion_confint(right, n, method="wilson")]
