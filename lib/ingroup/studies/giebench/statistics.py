"""Accuracy of verdicts, its change between prompts, position bias and identity mismatch.

GIEBench (Wang et al. 2024), sections 4 and 5. Answers are a table with a row for each time that an
item was asked: ``prompt`` ("Raw", "ID", "COT"), ``category``, ``key`` (the item), ``shift`` (places
by which its four answers were rotated, 0 where it was asked once), ``correct`` (letter of the right
answer as it was asked), ``letter`` (the verdict, "" if there is none) and ``status`` ("ok" or why
there is none). An answer without a verdict is wrong, as in the paper, and is also shown apart.
Shares are in percent, of items unless said. Intervals, ``low`` to ``high``, are Wilson's of one
share and Newcombe's of the difference of two shares of the same items. Tables keep the order in
which prompts and categories come; "Overall" is last.

Every function raises ValueError, with one sentence, for a table that is empty, lacks a column or
holds what cannot be; for an item that was not asked as often as the function needs; and for an
option or a confidence that does not exist.
"""

from collections.abc import Iterable
from string import ascii_uppercase

import numpy as np
import pandas as pd
from statsmodels.stats.contingency_tables import cochrans_q, mcnemar

from ingroup.stats.paired import adjust, wilson
from ingroup.studies.giebench.stimuli import LETTERS

COLUMNS = ("prompt", "category", "key", "shift", "correct", "letter", "status")
OVERALL = "Overall"


def accuracy(
    answers: pd.DataFrame,
    denominator: str = "paper",
    decimals: int | None = None,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Accuracy by prompt and category, and overall: Tables 1, 2 and 6.

    Parameters
    ----------
    answers : DataFrame
        Every item asked once by a prompt; of a rotated run, the rows of one shift.
    denominator : {"paper", "released"}
        "paper": right / n. "released": right / (n + 1) in a category and right / n overall, as the
        evaluation first released (June 2024) counts; its printed tables cannot be met otherwise.
    decimals : int, optional
        Decimals to which the share is rounded before it becomes a percent: 3 in the released code.
    confidence : float
        Coverage of the interval.

    Returns
    -------
    DataFrame
        ``prompt``, ``category``, ``n``, ``right``, ``without`` (a verdict), of which ``refused``
        and ``failed`` (the engine gave no text), ``accuracy`` and its interval, which is of
        right / n whatever the denominator.
    """
    rows = []
    for prompt, category, part in _parts(_once(_checked(answers))):
        n, right, without = len(part), int(part["right"].sum()), part["letter"].eq("")
        counts = [(without & part["status"].eq(why)).sum() for why in ("refused", "failed")]
        share = _share(right, n, category, denominator, decimals)
        interval = _interval(right, n, confidence)
        rows.append((prompt, category, n, right, without.sum(), *counts, share, *interval))
    columns = "prompt category n right without refused failed accuracy low high"
    return pd.DataFrame(rows, columns=columns.split())


def changes(
    answers: pd.DataFrame,
    before: str,
    after: str,
    denominator: str = "paper",
    decimals: int | None = None,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """What one prompt gains and loses against another, item by item: Tables 4 and 5.

    An item is gained where only `after` answers it rightly, lost where only `before` does; the test
    is McNemar's, exact: the gained among the gained and lost are binomial with 1/2. The options are
    those of `accuracy`; with 3 decimals the change is that of rounded accuracies, as in the paper.
    The table has ``category``, ``n``, ``before``, ``after`` (accuracies), ``change`` (after -
    before, in points) and its interval (of (gained - lost) / n whatever the denominator),
    ``gained``, ``lost``, ``p`` and ``p_holm``, for which the categories are one family and Overall,
    NaN, is none of it.
    """
    both = _paired(_once(_checked(answers)), before, after)
    rows = []
    for _, category, part in _parts(both.assign(prompt=after)):
        n, (was, now) = len(part), (part["before"], part["after"])
        shares = [_share(int(s.sum()), n, category, denominator, decimals) for s in (was, now)]
        rows.append((category, n, *shares, shares[1] - shares[0], *_change(was, now, confidence)))
    columns = "category n before after change low high gained lost p"
    table = pd.DataFrame(rows, columns=columns.split())
    table["p_holm"] = adjust(table["p"].where(table["category"] != OVERALL), "holm")
    return table


def by_position(answers: pd.DataFrame, confidence: float = 0.95) -> pd.DataFrame:
    """Accuracy by the position of the right answer, and how often each letter is the verdict.

    Every item is asked in four rotations, with its right answer at A, B, C and D. The table has
    ``prompt``, ``position``, ``n`` (items), ``right``, ``accuracy`` with its interval, ``chosen``
    (verdicts with this letter, right or wrong) and ``chosen_percent`` of all 4 n. A judge without
    position bias has the same accuracy four times and chooses 25 % of each.
    """
    rows = []
    for prompt, asked in _rotated(answers).groupby("prompt", sort=False):
        for position in LETTERS:
            there = asked.loc[asked["correct"] == position, "right"]
            n, right, chosen = len(there), int(there.sum()), int(asked["letter"].eq(position).sum())
            share, interval = 100 * right / n, _interval(right, n, confidence)
            rows.append((prompt, position, n, right, share, *interval, chosen, 25 * chosen / n))
    columns = "prompt position n right accuracy low high chosen chosen_percent"
    return pd.DataFrame(rows, columns=columns.split())


def position_test(answers: pd.DataFrame) -> pd.DataFrame:
    r"""Cochran's Q: is an item answered rightly as often at A, B, C and D? By statsmodels.

    .. math:: Q = 3 \frac{4 \sum_j G_j^2 - (\sum_j G_j)^2}{4 \sum_i L_i - \sum_i L_i^2}

    with :math:`G_j` right answers at position j and :math:`L_i` of item i; chi-squared with 3
    degrees of freedom. The items are the blocks, as the four answers to one are not independent.
    The table has ``prompt``, ``statistic``, ``df``, ``p``, ``n`` (items) and ``n_informative``, the
    items that are right at some positions only; without one, the statistic is NaN and p is 1.
    """
    rows = []
    for prompt, asked in _rotated(answers).groupby("prompt", sort=False):
        right = asked.pivot(index="key", columns="correct", values="right").to_numpy(int)
        mixed = int((right.min(axis=1) < right.max(axis=1)).sum())
        test = cochrans_q(right) if mixed else None
        q, p = (float(test.statistic), float(test.pvalue)) if test else (np.nan, 1.0)
        rows.append((prompt, q, 3, p, len(right), mixed))
    return pd.DataFrame(rows, columns=["prompt", "statistic", "df", "p", "n", "n_informative"])


def consistency(answers: pd.DataFrame, confidence: float = 0.95) -> pd.DataFrame:
    """How many items get the same answer in all four rotations, and what accuracy that leaves.

    An answer is known by its distance from the right one, which a rotation does not change. An item
    with a reply without a verdict is not consistent. The table has ``prompt``, ``category``, ``n``
    (items), ``consistent`` (items), ``consistency`` (percent) with its interval; ``accuracy`` over
    all 4 n answers; ``right`` (items that are right in all four); ``accuracy_strict`` (right / n:
    what is not consistent is wrong) with ``strict_low`` to ``strict_high``; and ``accuracy_among``,
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
        row += [*_interval(consistent, n, confidence), 100 * part["accuracy"].mean()]
        row += [right, 100 * right / n, *_interval(right, n, confidence)]
        rows.append((*row, 100 * right / consistent if consistent else np.nan))
    columns = "prompt category n consistent consistency low high accuracy right accuracy_strict"
    columns += " strict_low strict_high accuracy_among"
    return pd.DataFrame(rows, columns=columns.split())


def mismatch(
    answers: pd.DataFrame, tuples: Iterable[tuple[str, str]], confidence: float = 0.95
) -> pd.DataFrame:
    """Accuracy when the user is given the other identity of a tuple: Tables 3 and 7.

    The items of both identities count, each asked with its own and with the other one, as the
    printed shares of (Male, Female) are of the whole category. The printed "No mismatch" is COT.
    The answers have two more columns: ``identity``, whose item it is, and ``told``, the identity in
    the prompt; one item may be told several others. The table has ``identity_i``, ``identity_j``,
    ``n`` (items), then accuracies in the printed order: ``cot_prompt_mismatch``,
    ``id_prompt_mismatch``, ``no_mismatch`` and, not printed, ``no_mismatch_id``; then with ``cot_``
    and ``id_`` the columns of `changes` from own to mismatch, with the tuples as one family.
    """
    answers = _checked(answers, "identity", "told")
    rows = []
    for pair in tuples:
        inside = answers[answers["identity"].isin(pair) & answers["told"].isin(pair)]
        inside = inside.assign(side=np.where(inside["told"] == inside["identity"], "own", "other"))
        found = {}
        for prompt in ("COT", "ID"):
            asked = inside[inside["prompt"] == prompt].assign(prompt=lambda table: table["side"])
            try:
                found[prompt] = changes(asked, "own", "other", confidence=confidence).iloc[-1]
            except ValueError as error:
                raise ValueError(f"{prompt} of ({', '.join(pair)}): {error}") from error
        cot, plain = found.values()
        if cot["n"] != plain["n"]:
            numbers = f"{cot['n']} items with COT and {plain['n']} with ID"
            raise ValueError(f"({', '.join(pair)}) has {numbers}, expected the same")
        row = [*pair, cot["n"], cot["after"], plain["after"], cot["before"], plain["before"]]
        rows.append([*row, *cot["change":], *plain["change":]])
    if not rows:
        raise ValueError("there is no identity tuple, expected at least one")
    columns = "identity_i identity_j n cot_prompt_mismatch id_prompt_mismatch no_mismatch"
    columns = [*columns.split(), "no_mismatch_id"]
    columns += [f"{name}_{field}" for name in ("cot", "id") for field in cot["change":].index]
    table = pd.DataFrame(rows, columns=columns)
    for name in ("cot", "id"):
        table[f"{name}_p_holm"] = adjust(table[f"{name}_p"], "holm")
    return table


def _checked(answers: pd.DataFrame, *more: str) -> pd.DataFrame:
    """A copy with the column ``right``, or a sentence on what is wrong with the answers."""
    for column in (*COLUMNS, *more):
        if column not in answers:
            raise ValueError(f"the answers have no column {column!r}, only {list(answers.columns)}")
    if answers.empty:
        raise ValueError("there is no answer, expected at least one")
    letter, spoken = answers["letter"], answers["status"].eq("ok")
    for wrong, sentence in (
        (~answers["correct"].isin([*LETTERS]), "{correct!r} as 'correct', expected A, B, C or D"),
        (~letter.isin(["", *ascii_uppercase]),
         "{letter!r} as 'letter', expected a capital letter or ''"),
        (letter.ne("") != spoken,
         "the letter {letter!r} and the status {status!r}, expected 'ok' where a letter is"),
    ):  # fmt: skip
        _refuse(answers, wrong, "has " + sentence)
    again = answers.duplicated(["prompt", "shift", "key", *more])
    _refuse(answers, again, "stands twice in the answers, expected once")
    for key, names in answers.groupby("key")["category"].unique().items():
        if len(names) != 1:
            raise ValueError(f"item {key} is in the categories {list(names)}, expected one")
    return answers.assign(right=letter == answers["correct"])


def _refuse(answers: pd.DataFrame, wrong: pd.Series, sentence: str) -> None:
    for row in answers[wrong].to_dict("records"):
        raise ValueError(("item {key} (prompt {prompt}, shift {shift}) " + sentence).format(**row))


def _once(answers: pd.DataFrame) -> pd.DataFrame:
    sentence = "was asked with another shift too, expected one: take the rows of one shift"
    _refuse(answers, answers.duplicated(["prompt", "key"]), sentence)
    return answers


def _rotated(answers: pd.DataFrame) -> pd.DataFrame:
    answers = _checked(answers)
    asked = answers.groupby(["prompt", "key"], sort=False)[["shift", "correct"]].agg(sorted)
    for (prompt, key), shifts, right in asked.itertuples():
        if shifts != [0, 1, 2, 3] or right != list(LETTERS):
            found = f"with the shifts {shifts} and its right answer at {right}"
            expected = f"0 to 3 and {list(LETTERS)}"
            raise ValueError(f"item {key} (prompt {prompt}) was asked {found}, expected {expected}")
    return answers


def _paired(answers: pd.DataFrame, before: str, after: str) -> pd.DataFrame:
    """One row an item: its category, and whether it is right ``before`` and ``after``."""
    sides = [answers[answers["prompt"] == prompt].set_index("key") for prompt in (before, after)]
    for name, side, other in zip((before, after), sides, sides[::-1], strict=True):
        if side.empty:
            raise ValueError(f"no item was asked with {name!r}, expected at least one")
        for key in other.index.difference(side.index, sort=False):
            raise ValueError(f"item {key} was not asked with {name!r}, expected both")
    return sides[0][["category"]].assign(before=sides[0]["right"], after=sides[1]["right"])


def _parts(answers: pd.DataFrame) -> Iterable[tuple[str, str, pd.DataFrame]]:
    """Prompt, category and its answers; after the categories of a prompt, all of it."""
    for prompt, asked in answers.groupby("prompt", sort=False):
        for category, part in [*asked.groupby("category", sort=False), (OVERALL, asked)]:
            yield prompt, category, part


def _share(right: int, n: int, category: str, denominator: str, decimals: int | None) -> float:
    if denominator not in ("paper", "released"):
        raise ValueError(f"denominator is {denominator!r}, expected 'paper' or 'released'")
    share = right / (n + 1 if denominator == "released" and category != OVERALL else n)
    # Python's round, as released: np.round multiplies first and may end elsewhere.
    return 100 * (share if decimals is None else round(share, decimals))


def _interval(right: int, n: int, confidence: float) -> tuple[float, float]:
    low, high = wilson(right, n, confidence)
    return 100 * low, 100 * high


def _change(
    before: pd.Series, after: pd.Series, confidence: float
) -> tuple[float, float, int, int, float]:
    """Newcombe's interval of after - before in points, gained, lost, p of McNemar's exact test."""
    table = [
        [int(((before == b) & (after == a)).sum()) for a in (True, False)] for b in (True, False)
    ]
    (kept, lost), (gained, never) = table
    n = kept + lost + gained + never
    p1, p0 = 100 * (kept + gained) / n, 100 * (kept + lost) / n
    (low1, high1), (low0, high0) = (_interval(k + kept, n, confidence) for k in (gained, lost))
    # Method 10 of Newcombe (1998, Statistics in Medicine 17:2635): Wilson's intervals of the two
    # shares, joined with their correlation, which is corrected for continuity where it is positive.
    product = (kept + gained) * (lost + never) * (kept + lost) * (gained + never)
    cross = kept * never - gained * lost
    cross = cross if cross < 0 else max(cross - n / 2, 0)
    phi = cross / np.sqrt(product) if product else 0.0
    down = np.sqrt((p1 - low1) ** 2 - 2 * phi * (p1 - low1) * (high0 - p0) + (high0 - p0) ** 2)
    up = np.sqrt((high1 - p1) ** 2 - 2 * phi * (high1 - p1) * (p0 - low0) + (p0 - low0) ** 2)
    p = float(mcnemar(table, exact=True).pvalue)
    return float(p1 - p0 - down), float(p1 - p0 + up), gained, lost, p
