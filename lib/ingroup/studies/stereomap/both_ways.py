"""Free text beside scored answers to the same prompts of StereoMap, word by word."""

from collections.abc import Sequence

import pandas as pd

from ingroup.inference import Job
from ingroup.inference.choices import agreement
from ingroup.studies.stereomap import stimuli
from ingroup.studies.stereomap.answers import rating_probabilities

JOB_KEY = ["model", "version", "ablation"]  # columns that tell jobs apart
WORD_KEY = ["group", "prompt", "word"]
CONSTRUCT_KEY = [*JOB_KEY, "construct"]


def rating_probabilities_of_jobs(jobs: Sequence[Job]) -> pd.DataFrame:
    """Put the `answers.rating_probabilities` of all jobs with scored answers into one table.

    Parameters
    ----------
    jobs : sequence of Job
        Jobs with stored answers.

    Returns
    -------
    DataFrame
        One row per rated word: `JOB_KEY`, `WORD_KEY`, a column for each number of the scale,
        ``most_probable`` and ``option_mass``, as `answers.rating_probabilities` has them.
    """
    tables = []
    for job in jobs:
        if job.is_scored:
            table = rating_probabilities(job).reset_index()
            table = table.assign(model=job.model, **job.labels)
            tables.append(table)
    if not tables:
        return pd.DataFrame(columns=[*JOB_KEY, *WORD_KEY, "most_probable", "option_mass"])
    return pd.concat(tables)


def first_round_replies(replies: pd.DataFrame, scored: pd.DataFrame) -> pd.DataFrame:
    """Select the replies in free text to set beside scored answers: the first round.

    Parameters
    ----------
    replies : DataFrame
        Replies, as `answers.load` returns them, with ``mode``.
    scored : DataFrame
        From `rating_probabilities_of_jobs`; models that it lacks have no scored answers.

    Returns
    -------
    DataFrame
        These replies with their ``construct``, and with the numbers of ``keywords asked`` and
        ``keywords given``.
    """
    is_free = replies["mode"] == "free text"
    is_first = replies["round"] == 1
    is_scored = replies.model.isin(scored.model)
    selected = replies[is_free & is_first & is_scored]

    constructs = []
    keywords_asked = []
    for reply in selected.itertuples():
        name = f"{reply.version}/{reply.prompt}"
        prompt = stimuli.expected_prompt(name, reply.part, reply.ablation)
        constructs.append(prompt.construct)
        keywords_asked.append(prompt.n_keywords)

    selected = selected.assign(construct=constructs)
    selected["keywords asked"] = keywords_asked
    selected["keywords given"] = selected.keywords.map(len)
    return selected


def ratings(free_text: pd.DataFrame, scored: pd.DataFrame) -> pd.DataFrame:
    """Join the free and the scored rating of each word.

    Parameters
    ----------
    free_text : DataFrame
        From `first_round_replies`.
    scored : DataFrame
        From `rating_probabilities_of_jobs`.

    Returns
    -------
    DataFrame
        The columns of `rating_probabilities_of_jobs`, ``construct``, and ``free``, the rating in
        free text, NaN where there is none.
    """
    rows = []
    keys = [*CONSTRUCT_KEY, "group", "prompt"]
    replies = free_text[[*keys, "values"]]
    for *key, ratings_of_reply in replies.itertuples(index=False):
        for word, rating in ratings_of_reply.items():
            row = (*key, word, rating)
            rows.append(row)

    columns = [*keys, "word", "free"]
    free = pd.DataFrame(rows, columns=columns)
    return scored.merge(free, on=[*JOB_KEY, *WORD_KEY])


def agreement_by_construct(both: pd.DataFrame, free_text: pd.DataFrame) -> pd.DataFrame:
    """Compare free with scored ratings in each construct.

    Parameters
    ----------
    both : DataFrame
        From `ratings`.
    free_text : DataFrame
        From `first_round_replies`.

    Returns
    -------
    DataFrame
        Index `CONSTRUCT_KEY`; the columns of :func:`ingroup.inference.choices.agreement`,
        and the numbers of keywords asked and given.
    """
    count_columns = ["keywords asked", "keywords given"]
    by_construct = free_text.groupby(CONSTRUCT_KEY)
    counts = by_construct[count_columns].sum()
    keys = []
    rows = []
    for key, words in both.groupby(CONSTRUCT_KEY, sort=False):
        row = agreement(words.free, words.most_probable, words.option_mass)
        row |= counts.loc[key].to_dict()
        keys.append(key)
        rows.append(row)

    index = pd.MultiIndex.from_tuples(keys, names=CONSTRUCT_KEY)
    return pd.DataFrame(rows, index).convert_dtypes()


def rating_distribution(both: pd.DataFrame) -> pd.DataFrame:
    """Compute the share of each number among a model's ratings, scored and in free text.

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
    scale = sorted(column for column in both if isinstance(column, float))
    tables = []
    for model, words in both.groupby("model", sort=False):
        mean_probabilities = words[scale].mean()
        scored = pd.DataFrame({"rating": scale, "share": mean_probabilities.to_numpy()})
        scored = scored.assign(model=model, mode="scored", n=len(words))

        # 3.5 is not a number of the scale, nor is 85, which the released rule lets pass.
        is_rating = words.free.isin(scale)
        ratings = words.free[is_rating]
        n_ratings = len(ratings)
        counts = ratings.value_counts()
        counts = counts.reindex(scale, fill_value=0)
        shares = counts / max(n_ratings, 1)
        free = pd.DataFrame({"rating": scale, "share": shares.to_numpy()})
        free = free.assign(model=model, mode="free text", n=n_ratings)
        tables += [scored, free]

    if not tables:
        return pd.DataFrame(columns=columns)
    return pd.concat(tables)[columns]
