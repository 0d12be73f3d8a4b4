"""Power of the tests that the studies report, and the smallest p that a permutation can give.

Tests of an own-group effect are of a matrix, perceiver by experiencer, with one cell for each pair
of groups. Their effects are in standard deviations of such a cell beyond its perceiver's and its
target's level. Effects of paired tests are in standard deviations of the differences.
"""

import math

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from statsmodels.stats.power import TTestPower

POWER = 0.8  # the share of runs that find the smallest effect


def smallest_paired_effect(n: int, level: float = 0.05) -> float:
    """Find the effect that a two-sided t-test of `n` differences finds in `POWER` of the runs.

    Parameters
    ----------
    n : int
        The number of pairs.
    level : float
        The level of the test.

    Returns
    -------
    float
        A positive number of standard deviations; infinite for fewer than 2 pairs.
    """
    if n < 2:
        return math.inf
    # The solver returns a float, or for some sizes an array of one number with either sign.
    effect = TTestPower().solve_power(nobs=n, alpha=level, power=POWER)
    return abs(np.asarray(effect).item())


def own_group_power(groups: int, effect: float, level: float = 0.05) -> float:
    """Compute the power of the test of an own-group effect, given a matrix of means.

    Parameters
    ----------
    groups : int
        The number of groups n, at least 3. Groups of several names count once: give the matrix of
        means by group, and the effect in standard deviations of its cells.
    effect : float
        The own-group effect, in standard deviations of a cell.
    level : float
        The level of the two-sided test; with Holm's correction of m tests, 0.05 / m is safe.

    Returns
    -------
    float
        The share of runs in which p is below `level`, with either sign.

    Raises
    ------
    ValueError
        For fewer than 3 groups.

    Notes
    -----
    The test is :func:`ingroup.stats.crossed.own_group`. With n groups its statistic is Student's t
    with n^2 - 2 n degrees of freedom. As the own effect has the variance 1 / (n - 1) (Kenny and La
    Voie 1984), the noncentrality is ::

        effect * sqrt(n - 1)

    Checked by simulation.
    """
    if groups < 3:
        raise ValueError(f"found {groups} groups, expected at least 3")
    if effect == 0:
        # SciPy's noncentral F is no probability here, where the power is the level.
        return level
    df = groups**2 - 2 * groups
    critical = stats.t.isf(level / 2, df)
    # The square of noncentral t is noncentral F, which SciPy computes further out.
    noncentrality = effect**2 * (groups - 1)
    return float(stats.ncf.sf(critical**2, 1, df, noncentrality))


def smallest_own_group_effect(groups: int, level: float = 0.05, power: float = POWER) -> float:
    """Find the effect that `own_group_power` finds with a given power.

    Parameters
    ----------
    groups : int
        The number of groups, at least 3.
    level : float
        The level of the two-sided test.
    power : float
        The share of runs that find the effect.

    Returns
    -------
    float
        A positive number of standard deviations of a cell.
    """

    def excess_power(effect: float) -> float:
        return own_group_power(groups, effect, level) - power

    # For large effects SciPy's noncentral F is NaN, so the search begins near 0.
    upper = 1.0
    while excess_power(upper) < 0:
        upper *= 2
    return float(brentq(excess_power, 0, upper))


def permutation_floor(groups: int, n_resamples: int = 10_000) -> float:
    """Compute the smallest p that permuting groups can give.

    Parameters
    ----------
    groups : int
        The number of groups n, where each is one name or one mean.
    n_resamples : int
        How many random arrangements are drawn if there are more than `n_resamples` orders.

    Returns
    -------
    float
        1 / n!, or 1 / (n_resamples + 1) where n! is more than `n_resamples`. It equals ``least``
        of :func:`ingroup.stats.permutation.permutation_test`.
    """
    orders = math.factorial(groups)
    if orders <= n_resamples:
        return 1 / orders
    return 1 / (n_resamples + 1)


def groups_for_permutation(level: float = 0.05, tests: int = 1, n_resamples: int = 10_000) -> int:
    """Find the smallest number of groups at which a permutation's p can be below `level`.

    This is the p after Holm's correction, which multiplies the smallest p of a family of `tests` by
    their number. Five religions asked in seven settings cannot have a p below 7 / 5! = .058, six
    religions can.

    Parameters
    ----------
    level : float
        The level of the family.
    tests : int
        How many tests the family has.
    n_resamples : int
        How many random arrangements are drawn if there are more than `n_resamples` orders.

    Returns
    -------
    int
        The number of groups.

    Raises
    ------
    ValueError
        Where no number of groups is enough: `n_resamples` is too small.
    """
    if tests / (n_resamples + 1) >= level:
        found = f"{n_resamples} arrangements for {tests} tests"
        raise ValueError(f"found {found}, expected at least {math.ceil(tests / level)}")

    groups = 2
    floor = permutation_floor(groups, n_resamples)
    while tests * floor >= level:
        groups += 1
        floor = permutation_floor(groups, n_resamples)
    return groups
