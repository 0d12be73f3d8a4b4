"""Two analyses over several studies: shares of variance, and orders of shared groups."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd


def variance_shares(
    table: pd.DataFrame, value: str, terms: Mapping[str, Sequence[str]]
) -> pd.Series:
    """Split the variance of a balanced table over its factors, and the rest.

    Parameters
    ----------
    table : DataFrame
        A row for each answer.
    value : str
        The column that is split, in any unit, none missing.
    terms : mapping of str to sequence of str
        The columns of each term, main effects first. A nested factor comes with the factor that it
        is nested in. What no term takes is the rest.

    Returns
    -------
    Series
        Omega squared of each term, and of the ``rest``. They sum to 1. A share below 0 is noise.

    Notes
    -----
    With squares SS and degrees of freedom df (Hays 1963, Statistics for Psychologists)::

        omega squared = (SS_term - df_term * MS_rest) / (SS_total + MS_rest)
    """
    left = table[value] - table[value].mean()
    total = (left**2).sum()
    squares: dict[str, float] = {}
    df: dict[str, int] = {}
    for name, columns in terms.items():
        keys = [table[column] for column in columns]
        cells = left.groupby(keys, observed=True, sort=False)
        effect = cells.transform("mean")
        left = left - effect
        squares[name] = (effect**2).sum()
        contained = [df[other] for other in df if set(terms[other]) < set(columns)]
        df[name] = cells.ngroups - 1 - sum(contained)

    rest_df = len(table) - 1 - sum(df.values())
    rest = (left**2).sum() / rest_df
    shares = {}
    for name, square in squares.items():
        shares[name] = (square - df[name] * rest) / (total + rest)
    shares["rest"] = 1 - sum(shares.values())
    return pd.Series(shares)


def rank_correlation(
    pairs: pd.DataFrame, strata: str, rng: np.random.Generator, n_orders: int = 9999
) -> tuple[float, float]:
    """Correlate the ranks of two columns within strata, and test it by permutation.

    Parameters
    ----------
    pairs : DataFrame
        Two columns of scores, none missing; an index level names the stratum, e.g. race.
    strata : str
        The name of this level. Only orders within a stratum count.
    rng : Generator
        Draws the orders.
    n_orders : int
        How many are drawn.

    Returns
    -------
    rho, p : float
        Correlation of the ranks, centred within strata, and the two-sided p, (b + 1) / (B + 1).
    """
    ranks = pairs.groupby(strata).rank()
    ranks = ranks - ranks.groupby(strata).transform("mean")
    null = np.zeros(n_orders)
    for _, stratum in ranks.groupby(strata):
        first, second = stratum.to_numpy().T
        orders = rng.permuted(np.tile(second, (n_orders, 1)), axis=1)
        null += orders @ first

    first, second = ranks.to_numpy().T
    observed = first @ second
    is_as_far = np.abs(null) >= abs(observed) - 1e-9
    rho = observed / np.sqrt((first @ first) * (second @ second))
    return float(rho), float((1 + is_as_far.sum()) / (1 + n_orders))
