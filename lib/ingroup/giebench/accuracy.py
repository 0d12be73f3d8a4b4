"""Accuracy of verdicts and its change between prompts and identities (sections 4 and 5)."""

import pandas as pd
from statsmodels.stats.proportion import proportion_confint

from ingroup.giebench import stimuli
from ingroup.stats.intervals import holm, mean_test
from ingroup.stats.paired import sign_test

OVERALL = "Overall"
CELL = ["model", "prompt", "category"]


def accuracy(answers: pd.DataFrame) -> pd.DataFrame:
    """Compute the accuracy of each model, prompt and category: Tables 1, 2 and 6.

    Parameters
    ----------
    answers : DataFrame
        From `answers.load`, each question once for each prompt.

    Returns
    -------
    DataFrame
        Index `CELL`; ``n`` questions, ``right``, ``without`` a verdict (which counts as wrong),
        ``accuracy`` in percent, and ``low`` to ``high``, Wilson's 95 % interval.
    """
    counted = _with_overall(answers)
    counted["without"] = counted.letter == ""
    groups = counted.groupby(CELL, sort=False)
    table = groups[["right", "without"]].sum()
    table.insert(0, "n", groups.size())

    table["accuracy"] = 100 * table.right / table.n
    low, high = proportion_confint(table.right, table.n, method="wilson")
    table["low"] = 100 * low
    table["high"] = 100 * high
    return table


def _with_overall(answers):
    """Repeat all answers that were given as a further category."""
    given = answers.dropna(subset="right")
    overall = given.assign(category=OVERALL)
    return pd.concat([given, overall], ignore_index=True)


def released_accuracy(table: pd.DataFrame) -> pd.Series:
    """Compute accuracy in percent as the authors' script of June 2024, whose numbers are printed.

    Parameters
    ----------
    table : DataFrame
        From `accuracy`.

    Returns
    -------
    Series
        Right answers divided by n + 1 in a category and by n overall, rounded to three decimals.
    """
    categories = table.index.get_level_values("category")
    is_category = categories != OVERALL
    share = table.right / (table.n + is_category)
    # Python's round, as released: that of NumPy multiplies first.
    return 100 * share.map(lambda value: round(value, 3))


def changes(answers: pd.DataFrame) -> pd.DataFrame:
    """Count the questions that COT and ID gain and lose against Raw: Tables 4 and 5.

    Parameters
    ----------
    answers : DataFrame
        As in `accuracy`.

    Returns
    -------
    DataFrame
        Index `CELL`; ``n`` questions; the accuracy ``before`` (under Raw) and ``after`` (under this
        prompt) in percent, and its ``change`` in points; ``gained``, right only after; ``lost``,
        right only before; ``p`` of McNemar's exact test, which is `sign_test`, and ``p_holm``,
        corrected over the categories of a model and prompt. The Overall tests of a model are a
        family of their own.
    """
    counted = _with_overall(answers)
    is_raw = counted.prompt == "Raw"
    raw = counted[is_raw]
    raw = raw.set_index(["model", "category", "key"])
    others = counted[~is_raw]
    table = _compare(raw.right, others, CELL)

    p = table.p.reset_index()
    is_overall = p.category == OVERALL
    family = p.prompt.mask(is_overall, OVERALL)
    families = p.groupby(["model", family])
    corrected = families.p.transform(holm)
    table["p_holm"] = corrected.to_numpy()
    return table


def _compare(before, answers, levels):
    """Compare answers of each group with earlier ones to the same questions."""
    keys = before.index.names
    both = answers.join(100 * before.rename("before"), on=keys, how="inner")
    both["after"] = 100 * both.right
    both["change"] = both.after - both.before
    both["gained"] = both.change > 0
    both["lost"] = both.change < 0
    table = both.groupby(levels, sort=False).agg(
        n=("key", "size"),
        before=("before", "mean"),
        after=("after", "mean"),
        gained=("gained", "sum"),
        lost=("lost", "sum"),
        p=("change", sign_test),
    )
    table.insert(3, "change", table.after - table.before)
    return table


def mismatch(answers: pd.DataFrame) -> pd.DataFrame:
    """Compute the accuracy with the other identity of a pair in the prompt: Tables 3 and 7.

    Parameters
    ----------
    answers : DataFrame
        Answers under COT and ID, with the question's own identity and with others. The questions
        of both identities of a pair count.

    Returns
    -------
    DataFrame
        Index ``model``, ``prompt`` and `stimuli.PAIR`; the columns of `changes`, ``before`` with
        the own identity and ``after`` with the other one; ``p_holm`` over the pairs of a model and
        prompt.
    """
    given = answers.dropna(subset="right")
    is_own = given.told == given.identity
    own = given[is_own]
    own = own.set_index(["model", "prompt", "key"])
    swapped = given[~is_own]
    other = swapped.merge(stimuli.pairs(), on=["identity", "told"])

    table = _compare(own.right, other, ["model", "prompt", *stimuli.PAIR])
    by_prompt = table.groupby(level=["model", "prompt"])
    table["p_holm"] = by_prompt.p.transform(holm)
    return table


def gains(answers: pd.DataFrame, value: str = "right") -> pd.DataFrame:
    """Test what ID and COT add to Raw over all orders, where a question counts once.

    Parameters
    ----------
    answers : DataFrame
        Answers under the question's own identity, in one order or four.
    value : {"right", "p_right"}
        What is averaged over the orders of a question, 0 to 1.

    Returns
    -------
    DataFrame
        Index ``model``, ``prompt``; ``before`` and ``after`` in percent; the columns of
        `mean_test` for questions like these, and with the suffix ``_like`` for identities like
        these; ``p_holm`` and ``p_holm_like``, corrected over a model's two prompts.

    Notes
    -----
    The four orders of a question are a cluster, so their mean is one observation.
    """
    # Without one of its orders, a question would favour the positions of the others.
    question = ["model", "prompt", "identity", "key"]
    orders = answers.groupby(question, sort=False)
    means = orders[value].mean(skipna=False)
    shares = means.unstack("prompt")
    percent = 100 * shares.dropna()
    by_model = percent.groupby(level="model", sort=False)
    rows = {}
    for model, of_model in by_model:
        for prompt in ("COT", "ID"):
            change = of_model[prompt] - of_model.Raw
            like = mean_test(change, "identity")
            rows[model, prompt] = {
                "before": of_model.Raw.mean(),
                "after": of_model[prompt].mean(),
                **mean_test(change, "key"),
                "low_like": like["low"],
                "high_like": like["high"],
                "p_like": like["p"],
                "n_like": like["n"],
            }

    table = pd.DataFrame.from_dict(rows, orient="index")
    table = table.rename_axis(["model", "prompt"])
    by_model = table.groupby(level="model")
    table["p_holm"] = by_model.p.transform(holm)
    table["p_holm_like"] = by_model.p_like.transform(holm)
    return table
