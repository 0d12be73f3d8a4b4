"""Free text beside scored answers to the same prompts of StereoMap, word by word."""

from collections.abc import Sequence

import pandas as pd

from ingroup.inference import Job
from ingroup.inference.choices import agreement
from ingroup.studies.stereomap import stimuli
from ingroup.studies.stereomap.answers import weighed

ASKED = ["model", "version", "ablation"]
WORD = ["group", "prompt", "word"]


def most_probable(jobs: Sequence[Job]) -> pd.DataFrame:
    """Read how probable each rating is, for all jobs over choices.

    Parameters
    ----------
    jobs : sequence of Job
        Jobs with stored answers.

    Returns
    -------
    DataFrame
        One row per rated word: `ASKED`, `WORD`, a column for each number of the scale, ``chosen``
        and ``mass``, as `weighed` has them.
    """
    tables = []
    for job in jobs:
        if job.over_choices:
            table = weighed(job).reset_index()
            tables.append(table.assign(model=job.model, **job.labels))
    if not tables:
        return pd.DataFrame(columns=[*ASKED, *WORD, "chosen", "mass"])
    return pd.concat(tables)


def first_round(replies: pd.DataFrame, chosen: pd.DataFrame) -> pd.DataFrame:
    """Select the replies in free text to set beside scored answers: the first round.

    Parameters
    ----------
    replies : DataFrame
        Replies, as `answers.load` returns them, with ``asked``.
    chosen : DataFrame
        From `most_probable`; other models have no scored answers.

    Returns
    -------
    DataFrame
        These replies with their ``construct``, and with the numbers of ``keywords asked`` and
        ``keywords given``.
    """
    is_wanted = (replies.asked == "freely") & (replies["round"] == 1)
    once = replies[is_wanted & replies.model.isin(chosen.model)]

    constructs = []
    wanted = []
    for row in once.itertuples():
        name = f"{row.version}/{row.prompt}"
        prompt = stimuli.expected(name, row.part, row.ablation)
        constructs.append(prompt.construct)
        wanted.append(prompt.n_keywords)
    counts = {
        "construct": constructs,
        "keywords asked": wanted,
        "keywords given": once.keywords.map(len),
    }
    return once.assign(**counts)


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
    keys = [*ASKED, "construct", *WORD[:2]]
    for *key, values in once[[*keys, "values"]].itertuples(index=False):
        for word, rating in values.items():
            rows.append((*key, word, rating))
    free = pd.DataFrame(rows, columns=[*keys, "word", "free"])
    return chosen.merge(free, on=[*ASKED, *WORD])


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
        Index `ASKED` and ``construct``; the columns of :func:`ingroup.inference.choices.agreement`,
        and the numbers of keywords asked and given.
    """
    keys = [*ASKED, "construct"]
    counts = once.groupby(keys)[["keywords asked", "keywords given"]].sum()
    rows = {}
    for key, part in both.groupby(keys, sort=False):
        numbers = agreement(part.free, part.chosen, part.mass)
        rows[key] = numbers | counts.loc[key].to_dict()

    index = pd.MultiIndex.from_tuples(list(rows), names=keys)
    return pd.DataFrame(list(rows.values()), index).convert_dtypes()


def rating_distribution(both: pd.DataFrame) -> pd.DataFrame:
    """Compute which share of its ratings a model gives to each number, in both ways.

    Parameters
    ----------
    both : DataFrame
        From `ratings`.

    Returns
    -------
    DataFrame
        ``model``, ``way``, ``n``, ``rating`` and ``share``. The share of "over choices" is the mean
        probability of the number, over n words; that of "freely" is over n ratings.
    """
    columns = ["model", "way", "n", "rating", "share"]
    # The columns of the scale have numbers as names.
    numbers = sorted(column for column in both if isinstance(column, float))
    tables = [pd.DataFrame(columns=columns)]
    for model, part in both.groupby("model", sort=False):
        scored = pd.DataFrame({"rating": numbers, "share": part[numbers].mean().to_numpy()})
        tables.append(scored.assign(model=model, way="over choices", n=len(part)))

        # 3.5 is no number of the scale, nor is 85, which the released rule lets pass.
        given = part.free[part.free.isin(numbers)]
        counts = given.value_counts().reindex(numbers, fill_value=0).to_numpy()
        written = pd.DataFrame({"rating": numbers, "share": counts / max(len(given), 1)})
        tables.append(written.assign(model=model, way="freely", n=len(given)))
    # Without a model, the empty table still has the columns.
    return pd.concat(tables[1:] or tables)[columns]
