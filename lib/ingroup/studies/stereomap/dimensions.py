"""What the keywords of a group or a cluster say of each dimension of stereotype content.

`scores` is the sound way, `released_scores` that of the code of Jeoung et al. (2023). Tables of
keywords are those of `dictionary.find`, a row a keyword, repetitions included, with a column for
the group or cluster.
"""

import numpy as np
import pandas as pd

from ingroup.dictionary import Lexicon


def scores(
    found: pd.DataFrame, lexicon: Lexicon, by: str = "group", within: str | None = None
) -> pd.DataFrame:
    r"""What the keywords of a group say of each dimension, every keyword as often as it was given.

    With n keywords k of a group that have a word, m_kd = 1 where the word is a member of
    dimension d and the pair is not odd, and r_kd its direction,

        share_d = sum_k m_kd / n,  score_d = sum_k m_kd r_kd / n,  direction_d = score_d / share_d,

    so a score is how much a dimension is spoken of times which way. For a cluster of groups, share
    and score are the means over its groups: no group counts more for having more to say.

    `found` has the columns ``word``, `by` ("group", or "cluster" with ``within="group"``, over the
    groups that have a keyword with a word) and `within`; `lexicon` is the one that `find` was
    given. A row for each value of `by` and dimension: `by`, ``dimension``, ``share`` (0 to 1),
    ``direction`` and ``score`` (-1 to 1; missing for dimensions without directions), ``n`` keywords
    with a word. Direction is missing where share is 0, and everything where n is 0.
    """
    unit = [by] if within is None else [by, within]
    rows = found.dropna(subset=["word", *unit])
    member = (lexicon.members & ~lexicon.odd).to_numpy(float)
    signed = np.where(lexicon.directed, member * lexicon.directions.fillna(0), np.nan)
    place = lexicon.words.get_indexer(rows.word)
    values = pd.Index(found[by].dropna().unique(), name=by)
    units = rows[unit].drop_duplicates()
    of = rows.groupby(unit, sort=False).ngroup().to_numpy()
    means = (_mean(cells[place], of, len(units)) for cells in (member, signed))
    share, score = (_mean(m, values.get_indexer(units[by]), len(values)) for m in means)
    n = rows[by].value_counts().reindex(values, fill_value=0)
    return _table(lexicon, share, score, n)


def released_scores(found: pd.DataFrame, lexicon: Lexicon, by: str = "cluster") -> pd.DataFrame:
    """Scores as the released code computes them: each distinct keyword of a cluster once.

    A keyword in lower case is dropped with a space in it, or unless it is a word letter by letter
    (one with a capital is never met). Then score_d = sum of the directions in d / N, where N counts
    all pairs of a keyword and a dimension. In a dimension without directions a pair counts +1; a
    missing direction makes the score missing. As `scores`, but share is pairs of the dimension / N,
    ``n`` the distinct keywords with a word, and only a membership that is not 1 is left out as odd.
    The released script also lemmatises by WordNet as nouns (its import is missing, so it fails);
    not here. Checked on a worked example.
    """
    rows = pd.DataFrame({by: found[by], "word": found.keyword.str.strip().str.lower()})
    rows = rows[~rows.word.str.contains(" ")].dropna().drop_duplicates()
    rows = rows[rows.word.isin(lexicon.words)]
    member = lexicon.members.to_numpy()
    signed = np.where(member, np.where(lexicon.directed, lexicon.directions, 1), 0)
    place = lexicon.words.get_indexer(rows.word)
    values = pd.Index(found[by].dropna().unique(), name=by)
    of = values.get_indexer(rows[by])
    pairs, total = (_sum(cells[place], of, len(values)) for cells in (member, signed))
    all_pairs = pairs.sum(axis=1, keepdims=True)
    all_pairs[all_pairs == 0] = np.nan
    n = rows[by].value_counts().reindex(values, fill_value=0)
    return _table(lexicon, pairs / all_pairs, total / all_pairs, n)


def top(table: pd.DataFrame, n: int = 5) -> pd.DataFrame:
    """The n dimensions with the greatest score of each group, either way (Figures 4, 7 and 8).

    Rows of `scores` or `released_scores` by group and falling absolute score, ties in the order of
    the dictionary, with ``rank`` from 1 and ``sign`` ("+", "-", "0"), those with share and score.
    """
    by = table.columns[0]
    rows = table[(table.share > 0) & table.score.notna()]
    size = rows.score.abs().round(12)  # what is equal but for rounding is a tie
    rows = rows.loc[size.sort_values(ascending=False, kind="stable").index]
    rows = rows.assign(rank=rows.groupby(by).cumcount() + 1)
    rows["sign"] = np.sign(rows.score).map({1: "+", -1: "-", 0: "0"})
    order = table[by].drop_duplicates().tolist()
    rows = rows[rows["rank"] <= n].sort_values(by, key=lambda v: v.map(order.index), kind="stable")
    return rows.reset_index(drop=True)


def _sum(cells: np.ndarray, of: np.ndarray, size: int) -> np.ndarray:
    """Sums of the rows of cells (k, D) that belong to each of `size` groups; NaN stays NaN."""
    total = np.zeros((size, cells.shape[1]))
    np.add.at(total, of, cells)
    return total


def _mean(cells: np.ndarray, of: np.ndarray, size: int) -> np.ndarray:
    """As `_sum`, divided by the number of rows; NaN for a group without one."""
    count = np.bincount(of, minlength=size)[:, None]
    return _sum(cells, of, size) / np.where(count, count, np.nan)


def _table(lexicon: Lexicon, share: np.ndarray, score: np.ndarray, n: pd.Series) -> pd.DataFrame:
    """One row a group and dimension, from arrays (groups, D) and the groups' numbers of words."""
    by, names = n.index.name, lexicon.members.columns
    table = pd.DataFrame({by: n.index.repeat(len(names)), "dimension": [*names] * len(n)})
    table["share"], score = share.ravel(), score.ravel()
    table["direction"] = score / table.share.where(table.share > 0)
    return table.assign(score=score, n=n.to_numpy().repeat(len(names)))
