"""Variation of StereoMap's answers, over rounds and between forms of a prompt.

Tables 13 and 14, and appendix L. `replies_with_text` are replies in free text, and
`replies_with_ratings` are the replies whose ratings count. Both are from `answers.load`, for the
first prompt of one model.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from ingroup.studies.stereomap import statistics, stimuli
from ingroup.studies.stereomap.answers import rating_table, remarks
from ingroup.studies.stereomap.design import FIRST_PROMPT
from ingroup.studies.stereomap.statistics import AXES


def axis_scores(replies_with_ratings: pd.DataFrame, incomplete: str) -> pd.DataFrame:
    """Score both axes of each group and round.

    Parameters
    ----------
    replies_with_ratings : DataFrame
        Replies to the first prompt.
    incomplete : {"drop", "mean"}
        As in `round_scores`.

    Returns
    -------
    DataFrame
        As `round_scores` returns it.
    """
    words = stimuli.words("EXTENDED")
    of_axes = words[words.family.isin(AXES)]
    return statistics.round_scores(rating_table(replies_with_ratings), of_axes, incomplete)


def variation(replies_with_ratings: pd.DataFrame, rounds: int, incomplete: str) -> dict[str, float]:
    """Compute how much both axes vary over the first rounds: Table 13.

    Parameters
    ----------
    replies_with_ratings : DataFrame
        Replies to one form of the first prompt.
    rounds : int
        How many rounds count.
    incomplete : {"drop", "mean"}
        As in `round_scores`.

    Returns
    -------
    dict
        The mean and the largest coefficient of variation of each axis over groups
        (``Competence CV mean`` ...), NaN where no group has two rounds with a score.
    """
    try:
        table = statistics.variation(axis_scores(replies_with_ratings, incomplete), AXES, rounds)
        table = table.set_index("score")
    except ValueError:
        table = pd.DataFrame(np.nan, AXES, ["cv_mean", "cv_max"])

    row = {}
    for axis in AXES:
        row[f"{axis} CV mean"] = table.cv_mean[axis]
        row[f"{axis} CV max"] = table.cv_max[axis]
    return row


def table14_row(
    replies_with_text: pd.DataFrame,
    replies_with_ratings: pd.DataFrame,
    rounds: int,
    incomplete: str,
    all_rounds: int = 0,
) -> dict[str, float]:
    """Compute one row of Table 14: variation, diversity and refusals under one form of the prompt.

    Parameters
    ----------
    replies_with_text, replies_with_ratings : DataFrame
        Replies to this form.
    rounds : int
        How many rounds count, the same for all forms.
    incomplete : {"drop", "mean"}
        As in `round_scores`.
    all_rounds : int
        How many rounds count for Table 13; 0 for a form that this table does not have.

    Returns
    -------
    dict
        The numbers of `variation`, also over ``all rounds``; the numbers of
        `statistics.reason_diversity`; ``refuse to answer``, the percentage of refusals among the
        replies that are neither cut nor failed.
    """
    row = variation(replies_with_ratings, rounds, incomplete)
    if all_rounds:
        for name, number in variation(replies_with_ratings, all_rounds, incomplete).items():
            row[f"{name}, all rounds"] = number

    # A refusal has words as well, but they are not reasons.
    has_no_answer = replies_with_text.status.isin(["refused", "cut", "failed"])
    texts = remarks(replies_with_text[~has_no_answer])
    row |= statistics.reason_diversity(texts, per_group=rounds)

    # A reply that was cut or failed may have been a refusal: it is in no share, as in Figure 5.
    is_known = ~replies_with_text.status.isin(["cut", "failed"])
    is_refused = replies_with_text.status[is_known].eq("refused")
    row["refuse to answer"] = 100 * is_refused.mean()
    return row


def between_prompts(
    paper_replies: pd.DataFrame, reduced_replies: pd.DataFrame, rounds: int, incomplete: str
) -> pd.DataFrame:
    """Compute how much the mean scores vary between two forms of the prompt: appendix L.

    Parameters
    ----------
    paper_replies, reduced_replies : DataFrame
        Replies whose ratings count, to the paper's form and to a reduced form.
    rounds : int
        How many rounds of each count.
    incomplete : {"drop", "mean"}
        As in `round_scores`.

    Returns
    -------
    DataFrame
        As `statistics.variation` returns it; a form is a round.

    Raises
    ------
    ValueError
        Where no group has a score under both forms.
    """
    forms = []
    for number, replies in enumerate((paper_replies, reduced_replies)):
        first_rounds = replies[replies["round"] <= rounds]
        means = statistics.group_means(axis_scores(first_rounds, incomplete))
        forms.append(means.reset_index().assign(round=number))
    return statistics.variation(pd.concat(forms), AXES, 2)


def replies_to_prompt(replies: pd.DataFrame, model: str, ablation: str) -> pd.DataFrame:
    """Select the replies of one model to one form of the first prompt.

    Parameters
    ----------
    replies : DataFrame
        Replies of several models, as `answers.load_jobs` returns them.
    model : str
        The model.
    ablation : str
        The form, one of `stimuli.ablations`.

    Returns
    -------
    DataFrame
        The rows of these replies.
    """
    is_of_model = replies.model == model
    is_of_form = replies.ablation == ablation
    is_first = replies.prompt == FIRST_PROMPT.split("/")[1]
    return replies[is_of_model & is_of_form & is_first]


def table14(
    replies_with_text: pd.DataFrame,
    replies_with_ratings: pd.DataFrame,
    rounds: int,
    incomplete: str,
    all_rounds: int,
) -> pd.DataFrame:
    """Compute the rows of Table 14 of all models: one per form of the first prompt.

    Parameters
    ----------
    replies_with_text, replies_with_ratings : DataFrame
        Replies of several models.
    rounds : int
        How many rounds count, the same for all forms.
    incomplete : {"drop", "mean"}
        As in `round_scores`.
    all_rounds : int
        How many rounds of the paper's form count for Table 13.

    Returns
    -------
    DataFrame
        Index ``model`` and ``prompt``; the numbers of `table14_row`. A form without a rated reply
        has no row.
    """
    paper = stimuli.ablations()[0]
    rows = {}
    forms = replies_with_text[["model", "ablation"]].drop_duplicates()
    for model, form in forms.itertuples(index=False):
        with_ratings = replies_to_prompt(replies_with_ratings, model, form)
        if with_ratings.empty:
            continue
        rows[model, form] = table14_row(
            replies_to_prompt(replies_with_text, model, form),
            with_ratings,
            rounds,
            incomplete,
            all_rounds if form == paper else 0,
        )

    # Each row is a column here, so the table is turned.
    return pd.DataFrame(rows).T.rename_axis(["model", "prompt"])


def reduced_forms(table: pd.DataFrame) -> list[tuple[str, str]]:
    """List the reduced forms of the prompt that can be compared with the paper's form.

    Parameters
    ----------
    table : DataFrame
        From `table14`.

    Returns
    -------
    list of tuple
        Models and forms. A model without the paper's form has none.
    """
    paper = stimuli.ablations()[0]
    pairs = []
    for model, form in table.index:
        if form != paper and (model, paper) in table.index:
            pairs.append((model, form))
    return pairs


def table_of_forms(varied: Mapping[tuple[str, str], pd.DataFrame]) -> pd.DataFrame:
    """Put the variation between prompts of all models into one table.

    Parameters
    ----------
    varied : mapping
        From `between_prompts`, by model and reduced form.

    Returns
    -------
    DataFrame
        Index ``model`` and ``prompt``; the columns of `between_prompts`. No row without a form.
    """
    if not varied:
        index = pd.MultiIndex.from_tuples([], names=["model", "prompt"])
        return pd.DataFrame(index=index, columns=["cv_mean"], dtype=float)

    table = pd.concat(varied, names=["model", "prompt"])
    # The third level numbers the rows of each table.
    return table.droplevel(2)


def mean_of_axes(varied: pd.DataFrame) -> pd.DataFrame:
    """Average the variation between two prompts over both axes, as appendix L prints it.

    Parameters
    ----------
    varied : DataFrame
        From `table_of_forms`.

    Returns
    -------
    DataFrame
        ``model``, ``prompt`` and ``cv_mean``.
    """
    by_form = varied.groupby(["model", "prompt"], sort=False)
    return by_form.cv_mean.mean().reset_index()
