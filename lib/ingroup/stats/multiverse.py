"""Verdicts on a claim from every combination of the choices that a paper leaves open.

A *choice* has options, a *path* takes one option of each choice. Every claim says that a number is
above 0. It *stands* on a path where the estimate is above 0 and the corrected p is below alpha.

A path says nothing about a claim if its p *could not* have been below alpha. Its items or groups
are too few, or all answers are the same. The share of paths on which a claim stands leaves such
paths out. It counts a path without a result, and the claim does not stand there. All other paths
count the same, and so do the options of a choice. An option without any effect changes no share.
The share is not a probability: it depends on the choices that were thought of, and paths share
their data.

The method follows Steegen et al. (2016, Perspectives on Psychological Science 11:702). The curve
follows Simonsohn et al. (2020, Nature Human Behaviour 4:1208).
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ingroup.stats.corrections import adjust

# The percent of paths on which a test at the level of 5 % finds something by chance alone.
BY_CHANCE = 5.0
# A word fits a paper if more than half of the paper's claims have one of the verdicts behind it.
# The first word that fits is taken.
PAPER_WORDS = {
    "holds": {"stands"},
    "mostly holds": {"stands", "mostly stands"},
    "depends": {"depends"},
    "reversed": {"reversed", "differs"},
    "mostly reversed": {"reversed", "differs", "mostly reversed", "mostly differs"},
    "not shown": {"not shown"},
    "mostly not shown": {"not shown", "mostly not shown"},
    "cannot be told": {"cannot be told", "undefined"},
}
CORRECTIONS = ("none", "Bonferroni", "Holm", "Benjamini-Hochberg")


class Result(NamedTuple):
    """The result of a claim on one path, NaN with a reason if the claim is not defined there.

    ``least`` is the smallest p possible with this number of items or groups. It is 0 if any p is
    possible, and 1 if no answer could have changed the estimate (`mark_uninformative`).
    """

    estimate: float = np.nan
    low: float = np.nan
    high: float = np.nan
    p: float = np.nan
    reason: str = ""
    least: float = 0.0


def paths(
    choices: Mapping[str, Sequence], applies: Callable[..., bool] | None = None
) -> list[dict[str, Any]]:
    """List every combination of the options of named choices, the last changing fastest.

    Parameters
    ----------
    choices : mapping of str to sequence
        The options of each choice.
    applies : callable, optional
        Tells, given an option of each choice by name, whether the combination is a path.

    Returns
    -------
    list of dict
        The option of each choice, for each path.
    """
    combinations = []
    for options in product(*choices.values()):
        path = dict(zip(choices, options, strict=True))
        if applies is None or applies(**path):
            combinations.append(path)
    return combinations


def evaluate(
    reading_choices: Mapping[str, Sequence],
    load_answers: Callable[..., Any],
    other_choices: Mapping[str, Sequence],
    compute_claims: Callable[..., Mapping[str, Result]],
    alpha: float,
    applies: Callable[..., bool] | None = None,
    corrections: Sequence[str] = CORRECTIONS,
) -> pd.DataFrame:
    """Compute all claims of one family on every path.

    Parameters
    ----------
    reading_choices : mapping of str to sequence
        The options of the first choices.
    load_answers : callable
        Takes one option of each of these choices, by name, and returns the answers. Paths on equal
        answers are computed once.
    other_choices : mapping of str to sequence
        The options of the other choices.
    compute_claims : callable
        Takes the answers and one option of each of the other choices, by name, and returns the
        `Result` of each claim. These are one family.
    alpha : float
        The level of the family.
    applies : callable, optional
        Which combinations of `other_choices` are paths, see `paths`.
    corrections : sequence of str
        The options of the last choice.

    Returns
    -------
    DataFrame
        A row for each path and claim:

        - ``claim``, one column per choice, ``correction``, the fields of `Result`,
          ``p_corrected``.
        - ``testable`` (the least p, corrected, is below `alpha`, so the path can show the claim).
        - ``stands`` (p_corrected < `alpha`, estimate above 0).
        - ``reversed``, significant with the other sign.
    """
    rows = []
    families: dict[tuple, dict[str, Result]] = {}
    for read_options in paths(reading_choices):
        answers = load_answers(**read_options)
        # Two options of reading may give equal answers, whose claims are then computed once.
        digest = joblib.hash(answers)
        for options in paths(other_choices, applies):
            key = (digest, *options.values())
            if key not in families:
                families[key] = dict(compute_claims(answers, **options))
            family = families[key]

            for method in corrections:
                labels = {**read_options, **options, "correction": method}
                rows += [labels | row for row in _corrected(family, method, alpha)]

    columns = ["claim", *reading_choices, *other_choices, "correction", *Result._fields]
    columns += ["p_corrected", "testable"]
    table = pd.DataFrame(rows, columns=columns)
    significant = table.p_corrected < alpha
    table["stands"] = significant & (table.estimate > 0)
    table["reversed"] = significant & (table.estimate < 0)
    return table


def _corrected(family: Mapping[str, Result], method: str, alpha: float) -> list[dict[str, Any]]:
    """Make a row for each claim, with its corrected p and whether a p below alpha was possible."""
    method = method.lower()
    pvalues = np.array([result.p for result in family.values()])
    least = np.array([result.least for result in family.values()])
    # A claim without a result was not tested, so it counts in no correction.
    least = np.where(np.isnan(pvalues), np.nan, least)
    corrected = adjust(pvalues, method).tolist()
    testable = adjust(least, method) < alpha

    rows = []
    for index, (claim, result) in enumerate(family.items()):
        row = {
            "claim": claim,
            **result._asdict(),
            "p_corrected": corrected[index],
            "testable": bool(testable[index]),
        }
        rows.append(row)
    return rows


def shares(table: pd.DataFrame, by: Sequence[str] = ("claim",)) -> pd.DataFrame:
    """Compute the share of its paths on which a claim stands.

    Parameters
    ----------
    table : DataFrame
        As `evaluate` makes it, of one model.
    by : sequence of str
        Columns whose values the paths of a row share.

    Returns
    -------
    DataFrame
        Index `by`. ``paths`` is the number of paths, ``undefined`` the number without a result, and
        ``testable`` the number that could have shown the claim. ``stands`` and ``reversed`` are
        percentages of the last two kinds together, NaN without such a path. ``median``, ``lowest``
        and ``highest`` are of the estimates on all paths.
    """
    keys = list(by)
    undefined = table.p.isna()
    counted = table.testable | undefined
    # A path with a result that could not have shown the claim becomes NaN, which no mean counts.
    numbers = table.assign(
        undefined=undefined,
        stands=100.0 * table.stands.astype(float).where(counted),
        reversed=100.0 * table.reversed.astype(float).where(counted),
    )
    return numbers.groupby(keys, sort=False).agg(
        paths=("claim", "size"),
        undefined=("undefined", "sum"),
        testable=("testable", "sum"),
        stands=("stands", "mean"),
        reversed=("reversed", "mean"),
        median=("estimate", "median"),
        lowest=("estimate", "min"),
        highest=("estimate", "max"),
    )


def by_option(table: pd.DataFrame, choices: Sequence[str]) -> pd.DataFrame:
    """Compute the `shares` of the paths that take each option, to see which choice decides.

    Parameters
    ----------
    table : DataFrame
        As `evaluate` makes it, of one model.
    choices : sequence of str
        Names of choices, to which "correction" is added.

    Returns
    -------
    DataFrame
        The columns of `shares`, by ``claim``, ``choice`` and ``option``, a text.
    """
    parts = {}
    for choice in (*choices, "correction"):
        texts = table.astype({choice: str})
        parts[choice] = shares(texts, ["claim", choice])
    named = pd.concat(parts).rename_axis(["choice", "claim", "option"])
    return named.reorder_levels(["claim", "choice", "option"])


def verdicts(table: pd.DataFrame, claim_directions: Sequence[str]) -> pd.DataFrame:
    """Judge sentences by the paths on which their claims stand or are reversed.

    Parameters
    ----------
    table : DataFrame
        Rows of `shares`.
    claim_directions : sequence of str
        The direction that each sentence gives its claim: "above" or "below" 0, or "no difference".

    Returns
    -------
    DataFrame
        With the table's index. ``counted``, the number of paths that could show the claim or have
        no result. ``share``, the percent of the counted paths that bear the sentence out: they
        stand, are reversed, or have a result that is not significant. ``against``, the percent that
        find the opposite, or a difference where the sentence sees no difference. ``verdict``:

        - "undefined" where no path has a result; "cannot be told" where none could show the claim.
        - "stands" at a share of 100; "reversed", or "differs" where the sentence sees no
          difference, at 100 against it; "not shown" where no path finds either.
        - "depends" where more than `BY_CHANCE` percent bear the sentence out and more than
          `BY_CHANCE` percent find the opposite.
        - Otherwise "mostly stands", "mostly reversed" or "mostly differs", as more than half of the
          paths find. "stands on half", "reversed on half" or "differs on half", as exactly half
          find. "mostly not shown" where fewer than half find either.

    Notes
    -----
    A share of paths is not a probability: paths share their data, and how many there are depends on
    the options that were thought of. So the rule asks two questions that need little of a share.

    Does the sign depend on the analyst? Where some paths find a claim and others its opposite, no
    majority settles it, and the claim depends. A few stray paths change no verdict: as many as
    independent tests at 5 % would give by chance. This is a tolerance, and no test.

    What does an analyst find who takes one path blindly? Half is the smallest threshold that at
    most one finding can pass.

    All options of a choice count the same: three of the readings are greedy, and three are means.
    Read a verdict together with the shares and the choice that moves them most
    (:func:`ingroup.claim_verdicts.deciding_choices`). This choice may decide the claim alone
    (`decides`).

    Both numbers are conventions. They were set after the default run was known, when "depends" held
    everything between no path and all.
    """
    directions = np.asarray(claim_directions)
    above = directions == "above"
    below = directions == "below"
    stands = table["stands"]
    reverses = table["reversed"]
    significant = stands + reverses
    counted = table["testable"] + table["undefined"]
    percent_undefined = 100 * table["undefined"] / counted.clip(lower=1)
    not_significant = 100 - significant - percent_undefined

    for_sentence = np.select([above, below], [stands, reverses], default=not_significant)
    for_opposite = np.select([above, below], [reverses, stands], default=significant)
    share = _without_rounding_errors(for_sentence)
    against = _without_rounding_errors(for_opposite)

    opposite = np.where(above | below, "reversed", "differs")
    mostly_opposite = np.char.add("mostly ", opposite)
    opposite_on_half = np.char.add(opposite, " on half")
    finds_both = (share > BY_CHANCE) & (against > BY_CHANCE)
    finds_neither = np.isclose(share, 0) & np.isclose(against, 0)
    # The first rule that holds gives the verdict, so their order matters.
    rules = [
        (table["undefined"] == table["paths"], "undefined"),
        (table["testable"] == 0, "cannot be told"),
        (np.isclose(share, 100), "stands"),
        (np.isclose(against, 100), opposite),
        (finds_neither, "not shown"),
        (finds_both, "depends"),
        (share > 50, "mostly stands"),
        (against > 50, mostly_opposite),
        (share == 50, "stands on half"),
        (against == 50, opposite_on_half),
    ]
    conditions, words = zip(*rules, strict=True)
    columns = {
        "counted": counted,
        "share": share,
        "against": against,
        "verdict": np.select(conditions, words, "mostly not shown"),
    }
    return pd.DataFrame(columns, table.index)


def _without_rounding_errors(percents: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round percents to six decimals, with 0 in place of -0.0.

    Shares read from a file have ten digits, so sums of them may miss 0 by an error of rounding.
    """
    # Rounding makes -0.0 of an error below 0, and adding 0 makes it 0.
    return percents.round(6) + 0.0


def paper_verdict(verdict_of_claim: Sequence[str]) -> str:
    """Sum up in a few words the verdicts of one model on a paper's claims.

    Parameters
    ----------
    verdict_of_claim : sequence of str
        A verdict of `verdicts` for each claim that was asked.

    Returns
    -------
    str
        "holds" if more than half of the claims stand, "mostly holds" if more than half stand or
        mostly stand. "reversed", "mostly reversed", "not shown" and "mostly not shown"
        likewise. "depends" if more than half depend. "cannot be told" if more than half cannot be
        told or are undefined. "mixed" otherwise, and "not asked" without a claim.
    """
    n_claims = len(verdict_of_claim)
    if n_claims == 0:
        return "not asked"

    # A word with "mostly" includes the verdicts of the word before it, so the order matters.
    for word, verdicts_of_word in PAPER_WORDS.items():
        n_agreeing = sum(verdict in verdicts_of_word for verdict in verdict_of_claim)
        if 2 * n_agreeing > n_claims:
            return word
    return "mixed"


def decides(share_from: float, share_to: float) -> bool:
    """Tell whether a single choice decides a claim.

    Parameters
    ----------
    share_from, share_to : float
        The smallest and the largest percent of the paths on which the claim holds, over the options
        of the choice; NaN where there is no such choice.

    Returns
    -------
    bool
        Whether the claim holds on no more paths than by chance under one option, and on more than
        half under another.
    """
    return share_from <= BY_CHANCE and share_to > 50


def mark_uninformative(result: Result, why: str) -> Result:
    """Mark a result as untestable, because all answers are the same.

    Parameters
    ----------
    result : Result
        The result of a test of such answers, which finds no difference. It says nothing about the
        model, which might give them without reading the question.
    why : str
        The reason, which names the answers that are the same.

    Returns
    -------
    Result
        The same numbers with the reason, and 1 as the least p.
    """
    return result._replace(reason=why, least=1.0)


def attempt(function: Callable[..., Result], *arguments, **options) -> Result:
    """Call a function for its result, with the message of a ValueError as the reason for NaN.

    Parameters
    ----------
    function : callable
        A statistic, which raises ValueError where it is not defined for these data.
    *arguments, **options
        The arguments of the function.

    Returns
    -------
    Result
        The function's result, or a result without numbers.
    """
    try:
        return function(*arguments, **options)
    except ValueError as error:
        return Result(reason=str(error))
