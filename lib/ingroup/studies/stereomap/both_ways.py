"""Free text beside scored answers to the same prompts of StereoMap, word by word."""

from collections.abc import Sequence

import pandas as pd

from ingroup.inference import Job
from ingroup.inference.choices import agreement
from ingroup.studies.stereomap import stimuli
from ingroup.studies.stereomap.answers import rating_probabilities

JOB = ["model", "version", "ablation"]  # what tells the jobs of one table apart
WORD = ["group", "prompt", "word"]
CONSTRUCT = [*JOB, "construct"]


def most_probable(jobs: Sequence[Job]) -> pd.DataFrame:
    """Read how probable each rating is, from all jobs with scored answers.

    Parameters
    ----------
    jobs : sequence of Job
        Jobs with stored answers.

    Returns
    -------
    DataFrame
        One row per rated word: `JOB`, `WORD`, a column for each number of the scale, ``chosen``
        and ``option_mass``, as `answers.rating_probabilities` has them.
    """
    tables = []
    for job in jobs:
        if job.is_scored:
            table = rating_probabilities(job).reset_index()
            table = table.assign(model=job.model, **job.labels)
            tables.append(table)
    if not tables:
        return pd.DataFrame(columns=[*JOB, *WORD, "chosen", "option_mass"])
    return pd.concat(tables)


def first_round(replies: pd.DataFrame, chosen: pd.DataFrame) -> pd.DataFrame:
    """Select the replies in free text to set beside scored answers: the first round.

    Parameters
    ----------
    replies : DataFrame
        Replies, as `answers.load` returns them, with ``mode``.
    chosen : DataFrame
        From `most_probable`; other models have no scored answers.

    Returns
    -------
    DataFrame
        These replies with their ``construct``, and with the numbers of ``keywords asked`` and
        ``keywords given``.
    """
    is_free = replies["mode"] == "free text"
    is_first = replies["round"] == 1
    is_scored = replies.model.isin(chosen.model)
    once = replies[is_free & is_first & is_scored]

    prompts = []
    for reply in once.itertuples():
        name = f"{reply.version}/{reply.prompt}"
        prompts.append(stimuli.expected(name, reply.part, reply.ablation))

    once = once.assign(construct=[prompt.construct for prompt in prompts])
    once["keywords asked"] = [prompt.n_keywords for prompt in prompts]
    once["keywords given"] = once.keywords.map(len)
    return once


def ratings(once: pd.DataFrame, chosen: pd.DataFrame) -> pd.DataFrame:
    """Join the free and the scored rating of each word.

    Parameters
    ----------
    once : DataFrame
        From `first_round`.
    chosen : DataFrame
        From `most_probable`.

    Returns
    -------
    DataFrame
        The columns of `most_probable`, ``construct``, and ``free``, the rating in free text, NaN
        where there is none.
    """
    rows = []
    keys = [*CONSTRUCT, "group", "prompt"]
    replies = once[[*keys, "values"]]
    for *key, values in replies.itertuples(index=False):
        for word, rating in values.items():
            rows.append((*key, word, rating))

    free = pd.DataFrame(rows, columns=[*keys, "word", "free"])
    return chosen.merge(free, on=[*JOB, *WORD])


def agreement_by_construct(both: pd.DataFrame, once: pd.DataFrame) -> pd.DataFrame:
    """Compare free with scored ratings in each construct.

    Parameters
    ----------
    both : DataFrame
        From `ratings`.
    once : DataFrame
        From `first_round`.

    Returns
    -------
    DataFrame
        Index `CONSTRUCT`; the columns of :func:`ingroup.inference.choices.agreement`,
        and the numbers of keywords asked and given.
    """
    by_construct = once.groupby(CONSTRUCT)
    counts = by_construct[["keywords asked", "keywords given"]].sum()
    keys = []
    rows = []
    for key, words in both.groupby(CONSTRUCT, sort=False):
        row = agreement(words.free, words.chosen, words.option_mass)
        row |= counts.loc[key].to_dict()
        keys.append(key)
        rows.append(row)

    index = pd.MultiIndex.from_tuples(keys, names=CONSTRUCT)
    return pd.DataFrame(rows, index).convert_dtypes()


def rating_distribution(both: pd.DataFrame) -> pd.DataFrame:
    """Compute which share of its ratings a model gives to each number, scored and in free text.

    Parameters
    ----------
    both : DataFrame
        From `ratings`.

    Returns
    -------
    DataFrame
        ``model``, ``mode``, ``n``, ``rating`` and ``share``. The share of "scored" is the mean
        probability of the number, over n words; that of "free text" is over n ratings.
    """
    columns = ["model", "mode", "n", "rating", "share"]
    # The columns of the scale have numbers as names.
    numbers = sorted(column for column in both if isinstance(column, float))
    tables = []
    for model, words in both.groupby("model", sort=False):
        scored = pd.DataFrame({"rating": numbers})
        mean_probabilities = words[numbers].mean()
        scored["share"] = mean_probabilities.to_numpy()
        tables.append(scored.assign(model=model, mode="scored", n=len(words)))

        # 3.5 is not a number of the scale, nor is 85, which the released rule lets pass.
        is_rating = words.free.isin(numbers)
        ratings = words.free[is_rating]
        n_ratings = len(ratings)
        counts = ratings.value_counts().reindex(numbers, fill_value=0)
        free = pd.DataFrame({"rating": numbers})
        shares = counts / max(n_ratings, 1)
        free["share"] = shares.to_numpy()
        tables.append(free.assign(model=model, mode="free text", n=n_ratings))

    if not tables:
        return pd.DataFrame(columns=columns)
    return pd.concat(tables)[columns]
