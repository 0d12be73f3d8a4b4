"""What the keywords of a group or a cluster say of each dimension of stereotype content.

`scores` is the sound way, `released_scores` that of the code of Jeoung et al. (2023). Tables of
keywords are those of `dictionary.find`, repetitions included, with a column for group or cluster.
"""

import numpy as np
import pandas as pd

from ingroup.dictionary import Lexicon


def scores(
    found: pd.DataFrame, lexicon: Lexicon, by: str = "group", within: str | None = None
) -> pd.DataFrame:
    r"""What the keywords of a group say of each dimension, every keyword as often as it was given.

    With n keywords k of a group that have a word, m_kd = 1 where the word is a member of dimension
    d and the pair is not odd, and r_kd its direction,

        share_d = sum_k m_kd / n,  score_d = sum_k m_kd r_kd / n,  direction_d = score_d / share_d,

    so a score is how much a dimension is spoken of times which way. For a cluster of groups, share
    and score are the means over its groups: no group counts more for having more to say.

    `found` has ``word``, `by` ("group", or "cluster" with ``within="group"``, over the groups that
    have a keyword with a word) and `within`; `lexicon` is the one that `find` was given. A row for
    each value of `by` and dimension: `by`, ``dimension``, ``share`` (0 to 1), ``direction`` and
    ``score`` (-1 to 1; missing for dimensions without directions), ``n`` keywords with a word.
    Direction is missing where share is 0, and everything where n is 0.
    """
    rows, unit = found.dropna(subset=["word"]), [by] if within is None else [by, within]
    member = (lexicon.members & ~lexicon.odd).astype(float)
    signed = (member * lexicon.directions.fillna(0)).where(lexicon.directed, axis=1)
    share, score = (
        cells.loc[rows.word].groupby([rows[name].to_numpy() for name in unit], sort=False).mean()
        for cells in (member, signed)
    )
    of_by = (means.groupby(level=0).agg(lambda m: sum(m) / len(m)) for means in (share, score))
    return _table(found, rows, by, *of_by)


def released_scores(found: pd.DataFrame, lexicon: Lexicon, by: str = "cluster") -> pd.DataFrame:
    """Scores as the released code computes them: each distinct keyword of a cluster once.

    A keyword in lower case is dropped with a space in it, or unless it is a word letter by letter
    (one with a capital is never met). Then score_d = sum of the directions in d / N, where N counts
    all pairs of a keyword and a dimension; where a dimension has no directions a pair counts +1; a
    missing direction makes the score missing. Share is pairs of the dimension / N, ``n`` the
    distinct keywords with a word; only a membership that is not 1 is left out as odd. The released
    script also lemmatises by WordNet as nouns (its import is missing, so it fails); not here.
    """
    rows = pd.DataFrame({by: found[by], "word": found.keyword.str.strip().str.lower()})
    rows = rows[~rows.word.str.contains(" ") & rows.word.isin(lexicon.words)].drop_duplicates()
    signed = lexicon.directions.where(lexicon.directed, 1, axis=1).where(lexicon.members, 0)
    pairs, total = (
        cells.loc[rows.word].groupby(rows[by].to_numpy()).sum(skipna=False)
        for cells in (lexicon.members.astype(float), signed)
    )
    number = pairs.sum(axis=1).where(lambda n: n > 0)
    return _table(found, rows, by, pairs.div(number, axis=0), total.div(number, axis=0))


def _table(
    found: pd.DataFrame, rows: pd.DataFrame, by: str, share: pd.DataFrame, score: pd.DataFrame
) -> pd.DataFrame:
    """One row a group of `found` and dimension; `rows` are its keywords that have a word."""
    values = pd.Index(found[by].dropna().unique(), name=by)
    share, score = (part.reindex(values).stack(future_stack=True) for part in (share, score))
    table = pd.DataFrame({"share": share, "direction": score / share.where(share > 0)})
    table = table.assign(score=score).rename_axis([by, "dimension"]).reset_index()
    return table.assign(n=table[by].map(rows[by].value_counts()).fillna(0).astype(int))


def top(table: pd.DataFrame, n: int = 5) -> pd.DataFrame:
    """The n dimensions with the greatest score of each group, either way (Figures 4, 7 and 8).

    Rows of `scores` or `released_scores` by group and falling absolute score, ties in the order of
    the dictionary, with ``rank`` from 1 and ``sign`` ("+", "-", "0"), those with share and score.
    """
    by = table.columns[0]
    rows = table[(table.share > 0) & table.score.notna()]
    size = rows.score.abs().round(9)  # what is equal but for rounding is a tie
    rows = rows.loc[size.sort_values(ascending=False, kind="stable").index]
    rows = rows.assign(rank=rows.groupby(by).cumcount() + 1)
    rows["sign"] = np.sign(rows.score).map({1: "+", -1: "-", 0: "0"})
    order = table[by].drop_duplicates().tolist()
    rows = rows[rows["rank"] <= n].sort_values(by, key=lambda v: v.map(order.index), kind="stable")
    return rows.reset_index(drop=True)
