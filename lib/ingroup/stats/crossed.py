"""Effects for names, phrasings and groups *like these*: crossed random effects.

A test over items takes items as a sample, and the words as all that exist. Its result holds for
these words only (Clark 1973). Here the words, or the pairs of groups, are a sample too, crossed
with the items (Judd, Westfall and Kenny 2012).

Other tests were compared in 2,000 simulated categories as in Fagan et al. (2025): five groups with
two or three phrasings each, 103 scenarios, and phrasings that vary by a fifth of the noise of an
answer. Without an effect, `over_levels` rejects 5 % at level .05, a t-test over scenarios 34 %.
Labels permuted within scenarios reject 32 %. That is the idea of Helm and Priebe (2026, arXiv
2605.27463; we had no access to the text), which suits paraphrases that the groups share. Whole
phrasings permuted over groups reject 4 %, but find fewer effects (47 % against 55 %).

Clark 1973, Journal of Verbal Learning and Verbal Behavior 12:335. Judd, Westfall and Kenny 2012,
Journal of Personality and Social Psychology 103:54. Kenny and La Voie 1984, Advances in
Experimental Social Psychology 18:141.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from statsmodels.regression.linear_model import OLS

Numbers = NDArray[np.float64]
TINY = 1e-9  # smaller standard errors are rounding errors: the numbers do not vary


class Effect(NamedTuple):
    """An estimate with its test against 0 by Student's t.

    Attributes
    ----------
    estimate, low, high : float
        The effect and its 95 % interval, in the unit of the numbers.
    statistic, p, df : float
        t, two-sided p and degrees of freedom.
    effect_size : float
        The estimate in standard deviations of what is a sample: phrasings, or pairs of groups.
    n : int
        How many of these there are.
    """

    estimate: float
    low: float = np.nan
    high: float = np.nan
    statistic: float = np.nan
    p: float = np.nan
    df: float = 0.0
    effect_size: float = np.nan
    n: int = 0


class _Group(NamedTuple):
    """Numbers of one group, with their means and the squares of what the means leave."""

    by_level: Numbers
    by_item: Numbers
    rest_squares: float
    rest_df: int


def over_levels(groups: Mapping[str, ArrayLike]) -> dict[str, Effect]:
    """Test the mean of each group of a category against 0, its phrasings being a sample.

    Parameters
    ----------
    groups : mapping of str to array_like, (phrasings, items)
        Numbers of each group, e.g. ratings minus the control's. Groups may have different numbers
        of phrasings. An item with a missing number (NaN) is left out of its group.

    Returns
    -------
    dict of str to Effect
        The mean of each group. All but its estimate is NaN where the category has fewer than 2
        degrees of freedom for phrasings, or the group fewer than 2 items.

    Notes
    -----
    With m phrasings and n items, the squared standard error is::

        S_phrasing / m + max(0, S_item - S_rest / m) / n

    S_phrasing is the variance of the means of phrasings, S_rest the variance that phrasings and
    items leave. Both are pooled over the groups, as two phrasings say almost nothing about their
    variance. S_item is the variance of the means of items. There are sum(m - 1) degrees of freedom,
    or n - 1 if that is less. Balanced data give the variances of a mixed model.

    A group with one phrasing borrows the variance of the others.
    """
    split = {name: _split(numbers) for name, numbers in groups.items()}

    level_squares = 0.0
    level_df = 0
    rest_squares = 0.0
    rest_df = 0
    for group in split.values():
        deviations = group.by_level - group.by_level.mean()
        level_squares += deviations @ deviations
        level_df += len(deviations) - 1
        rest_squares += group.rest_squares
        rest_df += group.rest_df
    # Without degrees of freedom there are no squares, and 1 avoids 0 / 0.
    level_variance = level_squares / max(level_df, 1)
    rest_variance = rest_squares / max(rest_df, 1)

    effects = {}
    for name, group in split.items():
        m = len(group.by_level)
        n = len(group.by_item)
        estimate = group.by_item.mean() if n else np.nan
        if level_df < 2 or n < 2:
            effects[name] = Effect(estimate, n=m)
            continue

        # The means of phrasings hold the noise of single numbers already.
        item_variance = group.by_item.var(ddof=1)
        noise = rest_variance / m
        excess = max(item_variance - noise, 0.0)
        error = np.sqrt(level_variance / m + excess / n)
        df = min(level_df, n - 1)
        sd = np.sqrt(level_variance)
        effects[name] = _student(estimate, error, df, sd, m)
    return effects


def own_group(matrix: ArrayLike, similarity: ArrayLike | None = None) -> Effect:
    """Test for an own-group effect, pairs of groups being a sample: the social relations model.

    Parameters
    ----------
    matrix : array_like, (groups, groups)
        Finite means. A row is a perceiver, a column a target (an experiencer).
    similarity : array_like, (groups, groups), optional
        How alike two groups are, e.g. 1 within a cultural cluster; pairs of two groups must
        differ. The effect is then the jump at the own group beyond a linear effect of similarity.

    Returns
    -------
    Effect
        In the unit of the matrix; ``n`` counts pairs. Fewer than 3 groups give NaN.

    Notes
    -----
    By least squares (Kenny and La Voie 1984)::

        matrix[g, h] = mean + perceiver_g + target_h + own [g = h] + relationship_gh

    The relationships are the error, with n^2 - 2 n degrees of freedom for n groups. If similar
    groups resemble each other and no group favours its own, the test without `similarity` rejects
    far too often.
    """
    cells = np.asarray(matrix, dtype=float)
    n = len(cells)
    if n < 3:
        return Effect(np.nan, n=cells.size)

    own = np.eye(n)
    mean = np.ones(cells.size)
    # The mean stands for the first perceiver and the first target.
    levels = own[:, 1:]
    perceivers = np.repeat(levels, n, axis=0)
    targets = np.tile(levels, (n, 1))
    columns = [own.ravel(), mean, perceivers, targets]
    if similarity is not None:
        columns.append(np.ravel(similarity))

    design = np.column_stack(columns)
    fit = OLS(cells.ravel(), design).fit()
    estimate = fit.params[0]
    error = fit.bse[0]
    relationship_sd = np.sqrt(fit.scale)
    return _student(estimate, error, fit.df_resid, relationship_sd, cells.size)


def variance_components(
    table: pd.DataFrame, value: str, terms: Mapping[str, Sequence[str]]
) -> pd.Series:
    """Split the variance of answers over what was crossed: a generalizability analysis.

    Parameters
    ----------
    table : DataFrame
        A row for each answer.
    value : str
        The column that is split, in any unit, none missing.
    terms : mapping of str to sequence of str
        The columns whose values name the levels of each term. A nested factor comes with the factor
        that it is nested in, an interaction with all that it crosses.

    Returns
    -------
    Series
        The variance of each term, and of the ``rest``, in squared units. Below 0 is noise around 0.

    Notes
    -----
    All terms are random. The sums of squares are set equal to their expectations (Henderson 1953,
    Biometrics 9:226, method 1). Balanced data give the expected mean squares of the analysis of
    variance, as in Messing (2026, arXiv 2604.11581), who fits a mixed model. For each term::

        sum over levels of sum^2 / n
            = N mean^2 + sum over terms of variance * (sum over levels of (n shared)^2 / n)
    """
    n = len(table)
    levels = {"mean": np.zeros(n, dtype=int)}
    for name, columns in terms.items():
        by_level = table.groupby(list(columns), observed=True, sort=False)
        levels[name] = by_level.ngroup().to_numpy()
    levels["rest"] = np.arange(n)

    squares = []
    weights = []
    for of_term in levels.values():
        size = np.bincount(of_term)
        total = np.bincount(of_term, table[value])
        squares.append(total**2 @ (1 / size))
        row = []
        for of_other in levels.values():
            n_other = of_other.max() + 1
            # One number for each pair of levels, which gives back the level of the term.
            pairs, shared = np.unique(of_term * n_other + of_other, return_counts=True)
            row.append(shared**2 @ (1 / size[pairs // n_other]))
        weights.append(row)

    solution = np.linalg.solve(weights, squares)
    return pd.Series(solution, list(levels)).drop("mean")


def kinds_of_pair(values: ArrayLike, same: ArrayLike) -> Numbers:
    """Estimate what one name, and two names of one group, add to a number.

    Parameters
    ----------
    values : array_like, (n, n, items)
        Numbers by perceiver, experiencer and item, all finite.
    same : array_like of bool, (n, n)
        Pairs of one group. The diagonal has one name twice.

    Returns
    -------
    ndarray, (2, items)
        The effect of one name and of two names in each item, in the unit of the numbers.

    Notes
    -----
    By least squares on both kinds of pair and on a level of each perceiver and each experiencer, so
    a group that is rated high by all has no effect.
    """
    values = np.asarray(values, dtype=float)
    n = len(values)
    one_name = np.eye(n)
    two_names = same - one_name
    perceivers = np.repeat(one_name, n, axis=0)
    experiencers = np.tile(one_name, (n, 1))
    columns = [one_name.ravel(), two_names.ravel(), perceivers, experiencers]
    predictors = np.column_stack(columns)

    of_pairs = values.reshape(n * n, -1)
    weights, *_ = np.linalg.lstsq(predictors, of_pairs)
    return weights[:2]


def group_means(values: ArrayLike, same: ArrayLike) -> Numbers:
    """Average a matrix of identities into one of groups.

    Parameters
    ----------
    values : array_like, (n, n)
        A number for each pair of identities.
    same : array_like of bool, (n, n)
        Pairs of one group.

    Returns
    -------
    ndarray, (groups, groups)
        Means over the pairs of names of two groups.
    """
    members = np.unique(same, axis=0)
    sizes = members.sum(axis=1, keepdims=True)
    weights = members / sizes
    return weights @ values @ weights.T


def _split(numbers: ArrayLike) -> _Group:
    """Split the complete items of a group (phrasings, items) into means and a rest."""
    values = np.asarray(numbers, dtype=float)
    is_complete = ~np.isnan(values).any(axis=0)
    values = values[:, is_complete]
    n_levels, n_items = values.shape
    if n_items == 0:
        return _Group(np.zeros(1), np.empty(0), 0.0, 0)

    by_level = values.mean(axis=1)
    by_item = values.mean(axis=0)
    of_items = by_item - values.mean()
    rest = values - by_level[:, None] - of_items
    rest_squares = np.square(rest).sum()
    rest_df = (n_levels - 1) * (n_items - 1)
    return _Group(by_level, by_item, rest_squares, rest_df)


def _student(estimate: float, error: float, df: float, sd: float, n: int) -> Effect:
    """Test an estimate by its standard error; numbers that do not vary have no test."""
    if error < TINY:
        return Effect(estimate, n=n)

    t = estimate / error
    low, high = stats.t.interval(0.95, df, estimate, error)
    upper_tail = stats.t.sf(abs(t), df)
    return Effect(
        estimate=estimate,
        low=low,
        high=high,
        statistic=t,
        p=2 * upper_tail,
        df=df,
        effect_size=estimate / sd if sd > TINY else np.nan,
        n=n,
    )
