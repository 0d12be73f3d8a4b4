"""Effects for names, phrasings, settings and pairs of groups *like these*: crossed random factors.

A test over items alone treats items as a sample, and names and phrasings as all that exist. Its
result holds for these words only (Clark 1973). Here names, phrasings or pairs of groups are a
sample too, crossed with the items (Judd, Westfall and Kenny 2012). The first study's matrix follows
the social relations model (Warner, Kenny and Stoto 1979, Kenny and La Voie 1984)::

    B[g, h] = mean + perceiver_g + target_h + own [g = h] + relationship_gh

Every variance here is a sum of expected mean squares. Its degrees of freedom are those of
Satterthwaite (1946) or fewer. Balanced data give the variances of a mixed model, with which the
tests compare them (statsmodels' MixedLM). Intervals are of 95 %.

Clark 1973, Journal of Verbal Learning and Verbal Behavior 12:335. Judd, Westfall and Kenny 2012,
Journal of Personality and Social Psychology 103:54. Warner, Kenny and Stoto 1979, Journal of
Personality and Social Psychology 37:1742. Kenny and La Voie 1984, Advances in Experimental Social
Psychology 18:141. Satterthwaite 1946, Biometrics Bulletin 2:110.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from statsmodels.regression.linear_model import OLS

from ingroup.stats.paired import TINY, nan_mean

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
LEAST_FREEDOM = 2  # with fewer, an interval reaches 13 standard errors to both sides
KINDS = ("one name", "two names")
ONE_BEYOND_TWO = "one name beyond two names"
NUMBER_WORDS = {0: "no", 1: "one", 2: "two", 3: "three", 4: "four"}


class Effect(NamedTuple):
    """An effect with its interval and test, or with the reason why it cannot be told.

    If there is a `reason`, ``low``, ``high``, ``p`` and ``df`` are NaN. ``estimate`` is NaN too if
    the effect itself is not defined.
    """

    estimate: float
    low: float = np.nan
    high: float = np.nan
    p: float = np.nan
    df: float = np.nan
    reason: str = ""


class Relations(NamedTuple):
    """Social relations of n groups, in the unit of the matrix, as `relations` explains them."""

    mean: float
    perceivers: Array
    targets: Array
    relationships: Array
    own: Array


class _Crossing(NamedTuple):
    """The numbers of a group, split by `_cross`.

    ``levels`` are the centred effects of the levels, ``items`` the means of the items. The rest is
    the residual of the numbers from both, as a sum of squares with degrees of freedom.
    """

    levels: Array
    items: Array
    rest_squares: float
    rest_freedom: int


class _Part(NamedTuple):
    """One term of the variance of an estimate, with its own degrees of freedom."""

    variance: float
    freedom: int


class _Fit(NamedTuple):
    """A design (cells by terms), its pseudo-inverse and its residual degrees of freedom.

    ``tells_first`` says whether the first term can be estimated.
    """

    design: Array
    pseudo_inverse: NDArray[np.floating]
    freedom: int
    tells_first: bool

    def residuals(self, cells: Array) -> Array:
        """Compute the residuals of cells, or of cells by events, from the design."""
        coefficients = self.pseudo_inverse @ cells
        return cells - self.design @ coefficients


def over_levels(cells: Mapping[str, ArrayLike], factor: str = "phrasing") -> dict[str, Effect]:
    """Test the mean of each group of a category against 0, its phrasings as a sample.

    Parameters
    ----------
    cells : mapping of str to array_like, (levels, items)
        The numbers of each group, e.g. ratings of a phrasing minus the control's, item by item.
        NaN where a number is missing. Groups may differ in their number of levels.
    factor : str
        The word for a level in the reason: "phrasing", "name", "setting" or "order".

    Returns
    -------
    dict of str to Effect
        The mean over items of the mean over levels, by group. Its reason is e.g. "cannot be told:
        two phrasings" where all groups together have fewer than 2 degrees of freedom for the
        factor, or "cannot be told: one item".

    Raises
    ------
    ValueError
        Where a group has no number.

    Notes
    -----
    The numbers of a group are phrasings by items, crossed. With m phrasings and n items::

        variance = S_phrasing / m + max(0, S_item - S_rest / m) / n

    S_phrasing is the variance of the means of phrasings, and S_rest is the variance that phrasing
    and item do not explain. Both are pooled over the groups. S_item is the variance of the group's
    means of items. A group with two phrasings alone says almost nothing about S_phrasing, a
    category of groups does.

    The test is Student's t. Its degrees of freedom are those of S_phrasing (the sum of m - 1 over
    the groups), or n - 1 if that is less. Satterthwaite's degrees of freedom would be too many
    where a category has two groups of two phrasings.

    The interval holds the effect in .95 to .99 of simulations (``make calibration``) where
    phrasings vary equally in all groups, as the test assumes. If phrasings vary in one group of
    five alone, .55 of this group's intervals hold, and the intervals of the other groups are too
    wide. A group with a single phrasing borrows the whole variance of the others. Its own numbers
    cannot tell whether this variance is right. Items must be a simple sample, see ``bias`` of the
    second study.
    """
    crossings = {}
    level_freedom = 0
    level_squares = 0.0
    rest_freedom = 0
    rest_squares = 0.0
    # The variances of levels and of the rest are pooled over all groups, so they come first.
    for name, numbers in cells.items():
        crossing = _cross(name, numbers)
        crossings[name] = crossing
        level_freedom += len(crossing.levels) - 1
        level_squares += float(crossing.levels @ crossing.levels)
        rest_freedom += crossing.rest_freedom
        rest_squares += crossing.rest_squares
    # Where the degrees of freedom are 0, so are the squares, and the 1 spares a 0 / 0.
    level_variance = level_squares / max(level_freedom, 1)
    rest_variance = rest_squares / max(rest_freedom, 1)

    effects = {}
    for name, crossing in crossings.items():
        items = crossing.items
        estimate = items.mean()
        n_levels = len(crossing.levels)
        n_items = len(items)

        if level_freedom < LEAST_FREEDOM:
            # Below 2 degrees of freedom, one more is the number of levels of the largest group.
            reason = _too_few(level_freedom + 1, factor)
            effects[name] = Effect(estimate, reason=reason)
        elif n_items < 2:
            reason = _too_few(n_items, "item")
            effects[name] = Effect(estimate, reason=reason)
        else:
            variance = _variance_of_mean(level_variance, rest_variance, n_levels, items)
            df = min(level_freedom, n_items - 1)
            effects[name] = _student(estimate, variance, df)
    return effects


def difference_of_levels(one: ArrayLike, other: ArrayLike, factor: str = "word") -> Effect:
    """Test the difference of two means, their levels two samples, crossed with the same items.

    Parameters
    ----------
    one, other : array_like, (levels, items)
        Numbers of both sides, their items in the same order; NaN where a number is missing.
    factor : str
        The word for a level in the reason.

    Returns
    -------
    Effect
        The mean of `one` minus the mean of `other`. Both are means over items of the means over
        levels. The reason is "cannot be told: two words" where each side has one word, or "cannot
        be told: one item".

    Raises
    ------
    ValueError
        Where the sides differ in their number of items, or a side has no number.

    Notes
    -----
    The numbers are levels by items on both sides, e.g. words for competence and words for warmth,
    by groups. With a and b levels and n items::

        variance = S_level (1/a + 1/b) + max(0, S_item - S_rest (1/a + 1/b)) / n

    S_level is the variance of the means of levels, and S_rest is the variance that level and item
    do not explain. Both are pooled over the two sides. S_item is the variance over items of the
    difference of the two means. The test is Student's t with a + b - 2 degrees of freedom, or n - 1
    if that is less. A single item would give the t-test of two samples. The test was compared with
    SciPy's where items do not vary. In simulations, .94 to .98 of the intervals hold the difference
    (``make calibration``).
    """
    left = np.asarray(one, dtype=float)
    right = np.asarray(other, dtype=float)
    n_left = left.shape[1]
    n_right = right.shape[1]
    if n_left != n_right:
        raise ValueError(f"found {n_left} and {n_right} items, expected the same items twice")
    # Both sides must be means over the same items, so an item that one side lacks is dropped.
    is_rated = np.isfinite(left).any(axis=0) & np.isfinite(right).any(axis=0)
    crossings = [_cross("levels", side[:, is_rated]) for side in (left, right)]

    a, b = [len(crossing.levels) for crossing in crossings]
    level_freedom = a + b - 2
    differences = crossings[0].items - crossings[1].items
    estimate = float(differences.mean())
    if level_freedom < LEAST_FREEDOM:
        return Effect(estimate, reason=_too_few(a + b, factor))
    if len(differences) < 2:
        return Effect(estimate, reason=_too_few(len(differences), "item"))

    level_squares = sum(float(crossing.levels @ crossing.levels) for crossing in crossings)
    level_variance = level_squares / level_freedom
    rest_squares = sum(crossing.rest_squares for crossing in crossings)
    rest_freedom = sum(crossing.rest_freedom for crossing in crossings)
    rest_variance = rest_squares / max(rest_freedom, 1)
    # A mean of this many levels has the variance of the difference, S_level (1/a + 1/b).
    n_levels = 1 / (1 / a + 1 / b)
    variance = _variance_of_mean(level_variance, rest_variance, n_levels, differences)
    df = min(level_freedom, len(differences) - 1)
    return _student(estimate, variance, df)


def over_clusters(numbers: ArrayLike, clusters: Sequence[str], factor: str = "cluster") -> Effect:
    """Test the mean of items against 0, clusters of items being a sample.

    Parameters
    ----------
    numbers : array_like, (items,)
        Finite numbers, e.g. how much an item gained from one prompt to another.
    clusters : sequence of str
        The cluster of each item.
    factor : str
        The word for a cluster in the reason, e.g. "identity".

    Returns
    -------
    Effect
        The mean over items. Its reason is e.g. "cannot be told: two clusters" with fewer than 3.

    Notes
    -----
    The standard error comes from a regression on a constant, with the cluster-robust covariance of
    Liang and Zeger (1986, Biometrika 73:13) in statsmodels. With G clusters, n items and the
    residuals r::

        variance = G / (G - 1) * sum over clusters of (sum of r)^2 / n^2

    The test is Student's t with G - 1 degrees of freedom. One item per cluster gives the t-test of
    one sample. The test rejects a true null in .05 of simulations with 79 questions about 46
    identities. It rejects in .12 where one cluster of six holds half of the items (``make
    calibration``).
    """
    values = np.asarray(numbers, dtype=float)
    labels, codes = np.unique(np.asarray(clusters, dtype=str), return_inverse=True)
    estimate = float(values.mean())
    if len(labels) <= LEAST_FREEDOM:
        return Effect(estimate, reason=_too_few(len(labels), factor))

    constant = np.ones_like(values)
    # As the model has one parameter, the small-sample factor is the G / (G - 1) of the docstring.
    robust = {"groups": codes, "df_correction": True}
    fit = OLS(values, constant).fit(cov_type="cluster", cov_kwds=robust, use_t=True)
    (error,) = fit.bse
    return _student(estimate, error**2, len(labels) - 1)


def relations(matrix: ArrayLike) -> Relations:
    """Split a matrix of means into perceiver, target and relationship effects.

    The effects of perceivers and targets are fitted by least squares to the cells of two different
    groups, as in Warner, Kenny and Stoto (1979). A group's own effect is its own cell minus the
    mean and minus its effects as perceiver and as target.

    Parameters
    ----------
    matrix : array_like, (n, n)
        A row is a perceiver, a column a target (an experiencer); n is 3 or more, every cell finite.

    Returns
    -------
    Relations
        ``mean``; ``perceivers`` and ``targets``, (n,), each with the sum 0; ``relationships``,
        (n, n), the residuals of the cells of two groups, NaN on the diagonal; ``own``, (n,), the
        own effect of each group. The mean of ``own`` is the estimate of `own_group`.

    Raises
    ------
    ValueError
        For another shape, fewer than 3 groups, or a cell that is not finite.
    """
    cells, n = _cells(matrix)
    n_matrices = cells.shape[1]
    if n_matrices > 1 or n < 3:
        found = f"{n} groups and {n_matrices} matrices"
        raise ValueError(f"found {found}, expected one matrix of at least 3 groups")
    values = cells.reshape(n, n)
    is_two_groups = ~np.eye(n, dtype=bool)

    # The design has no column for the mean, so perceivers and targets each hold a part of it.
    design = _level_design(n)[is_two_groups.ravel()]
    levels, *_ = np.linalg.lstsq(design, values[is_two_groups])
    perceivers = levels[:n]
    targets = levels[n:]
    # The diagonal was not fitted, so its residuals are the effects of the own group.
    rest = values - perceivers[:, None] - targets

    perceiver_mean = perceivers.mean()
    target_mean = targets.mean()
    return Relations(
        mean=float(perceiver_mean + target_mean),
        perceivers=perceivers - perceiver_mean,
        targets=targets - target_mean,
        relationships=np.where(is_two_groups, rest, np.nan),
        own=rest.diagonal().copy(),
    )


def own_group(ratings: ArrayLike, similarity: ArrayLike | None = None) -> Effect:
    """Test for an own-group effect, pairs of groups as a sample: the social relations model.

    Parameters
    ----------
    ratings : array_like, (n, n) or (n, n, events)
        A row is a perceiver, a column a target (an experiencer). The last axis may hold settings
        instead of events. NaN where a rating is missing; an event without all ratings does not
        count in S_event.
    similarity : array_like, (n, n), optional
        How alike two groups are, the diagonal included, e.g. 1 within a cultural cluster and 0
        elsewhere. Its effect is linear.

    Returns
    -------
    Effect
        In the unit of the ratings. It cannot be told with fewer than 3 groups, where similarity
        says nothing of pairs of two groups, or where fewer than 2 of several events are complete.

    Raises
    ------
    ValueError
        For another shape, or a cell without any rating.

    Notes
    -----
    The effect is ``own`` in the formula at the top of this module, estimated by least squares. Its
    error is the variance of the relationships, with n^2 - 2 n degrees of freedom. With several
    events, the effect may also vary from event to event::

        variance = w S_relationship + max(0, S_event - w S_rest) / K

    Here K is the number of events, and w is the sum of the squared weights of the cells,
    1 / (n - 1) without similarity. S_event is the variance over events of the effect in one event.
    S_rest is the variance that cells and events do not explain. A matrix of means has only the
    first term.

    Simulations (``make calibration``) give these rates. The size is .05 from 4 groups on for any
    levels of perceivers and targets, and .07 where both sides of a pair feel alike. An effect in 1
    event of 10 is covered by .88 of the intervals with 12 events, and by .78 with 5. If settings
    take the place of events, .95 cover the effect with 7 settings, and .90 with 2.

    Two kinds of data give false positives. If own-group cells vary three times as much as others,
    the test rejects in .25 to .43 of the cases, see `own_group_by_group`. If similar groups
    resemble each other, it rejects in .98. Given their `similarity`, it tests for a jump at the own
    group beyond similarity, with size .05. A wrong similarity does not help (.81).
    """
    cells, n = _cells(ratings)
    design = _own_design(n)
    if similarity is not None:
        alike, _ = _cells(similarity)
        # `_fit` takes the first column for the effect, so similarity goes last.
        design = np.hstack([design, alike])
    fit = _fit(design)

    if fit.freedom < LEAST_FREEDOM:
        reason = _too_few(n, "group")
        return Effect(np.nan, reason=reason)
    # Where all pairs of two groups are equally alike, similarity and own cells say the same.
    if not fit.tells_first:
        return Effect(np.nan, reason="cannot be told: no two groups are alike")

    means = nan_mean(cells, axis=1)
    residuals = fit.residuals(means)
    relationship = residuals @ residuals / fit.freedom
    # The first row of the pseudo-inverse weighs the cells into the own-group effect.
    weights = fit.pseudo_inverse[0]
    variance = weights @ weights * relationship
    error = _Part(variance, fit.freedom)
    return _over_events(cells, fit, weights, [error])


def own_group_by_group(ratings: ArrayLike) -> Effect:
    """Test for an own-group effect that may differ from group to group.

    Parameters
    ----------
    ratings : array_like, (n, n) or (n, n, events)
        As in `own_group`, of at least 3 groups.

    Returns
    -------
    Effect
        In the unit of the ratings.

    Raises
    ------
    ValueError
        As `own_group`, and for fewer than 3 groups.

    Notes
    -----
    The estimate equals that of `own_group`. Its variance is the variance of a mean of the n own
    effects of `relations`, with n - 1 degrees of freedom. A second term is the further variance of
    the effect by event. The test keeps its size where own-group cells vary more than the others,
    .04 to .06 where they vary three times as much (``make calibration``). Otherwise its size is .02
    to .04.
    """
    cells, n = _cells(ratings)
    means = nan_mean(cells, axis=1)
    matrix = means.reshape(n, n)
    own = relations(matrix).own
    variance = own.var(ddof=1) / n
    error = _Part(variance, n - 1)

    # The mean of the own effects is the same weighted sum of cells as in `own_group`.
    fit = _fit(_own_design(n))
    weights = fit.pseudo_inverse[0]
    return _over_events(cells, fit, weights, [error])


def own_group_of_names(ratings: ArrayLike, groups: Sequence[str]) -> dict[str, Effect]:
    """Test for an own-group effect of these groups by kind of pair, names being a sample.

    Parameters
    ----------
    ratings : array_like, (names, names) or (names, names, events)
        As in `own_group`.
    groups : sequence of str
        The group of each name.

    Returns
    -------
    dict of str to Effect
        "one name", "two names" and their difference, "one name beyond two names", in the unit of
        the ratings. They cannot be told of one group, or where a group has fewer than 3 names.

    Raises
    ------
    ValueError
        For another shape, a cell without any rating, or another number of groups than of names.

    Notes
    -----
    Cells are averaged within pairs of groups, so that each group counts once. An own-group cell has
    one name (a word with itself) or two names. With the means B of G groups::

        own = (trace(B) - sum(B) / G) / (G - 1)

    Levels of perceivers and targets cancel out, as in `own_group`. The error is the jackknife's
    over names. Each name is left out once, as perceiver and as experiencer together, and its group
    keeps the others. With n_g names in group g::

        variance = sum over g of (n_g - 1) / n_g * sum over i in g of (own_-i - mean of these)^2

    A second term is the further variance of the effect by event, as in `own_group`. The jackknife
    counts the effect of a single pair of names twice. Its size is .00 to .07 (``make
    calibration``), lowest where pairs of names vary and names do not. The size for one name beyond
    two names is .01 to .02.

    The groups are fixed. If pairs of groups vary and no group favours its own, this variation
    counts as an effect of these groups. The tests of one name and of two names then reject in .7.
    For groups like these, use `own_group` with the means by group.
    """
    cells, n = _cells(ratings)
    if len(groups) != n:
        raise ValueError(f"found {len(groups)} groups, expected one for each of {n} names")
    names = np.asarray(groups, dtype=str)
    labels, codes = np.unique(names, return_inverse=True)
    sizes = np.bincount(codes)

    reason = ""
    if len(labels) < 2:
        reason = _too_few(1, "group")
    elif sizes.min() < 3:
        smallest = sizes.argmin()
        reason = _too_few(sizes[smallest], "name")
        reason = f"{reason} of {labels[smallest]}"
    if reason:
        undefined = Effect(np.nan, reason=reason)
        return dict.fromkeys((*KINDS, ONE_BEYOND_TWO), undefined)

    # The functions below are cached, so they take a tuple in place of an array.
    group_codes = tuple(codes)
    fit = _name_fit(group_codes)
    one_name, two_names = _name_weights(group_codes)
    weights = {
        KINDS[0]: one_name,
        KINDS[1]: two_names,
        ONE_BEYOND_TWO: one_name - two_names,
    }
    means = nan_mean(cells, axis=1)

    effects = {}
    for kind, weights_of_kind in weights.items():
        # Row 0 of the weights has all names; row 1 + i has all but name i.
        all_names = weights_of_kind[0]
        effects_without_one = weights_of_kind[1:] @ means
        errors = []
        for group, size in enumerate(sizes):
            of_group = effects_without_one[codes == group]
            freedom = size - 1
            # As var() divides by n_g, this is (n_g - 1) / n_g times the sum of squares.
            error = _Part(freedom * of_group.var(), freedom)
            errors.append(error)
        effects[kind] = _over_events(cells, fit, all_names, errors)
    return effects


def _variance_of_mean(
    level_variance: float, rest_variance: float, n_levels: float, items: Array
) -> float:
    """Compute the variance of a mean over levels and items, by the formula of `over_levels`."""
    # The means of levels already hold the noise of single numbers, so the items must not add it.
    excess = items.var(ddof=1) - rest_variance / n_levels
    return level_variance / n_levels + max(excess, 0.0) / len(items)


def _student(estimate: float, variance: float, df: float) -> Effect:
    """Test an estimate against 0 by Student's t. Without variance the result has a reason."""
    estimate = float(estimate)
    error = float(np.sqrt(variance))
    if error < TINY:
        return Effect(estimate, reason="cannot be told: the answers do not vary")

    statistic = abs(estimate) / error
    upper_tail = stats.t.sf(statistic, df)
    quantile = stats.t.ppf(0.975, df)
    half_width = float(quantile) * error
    return Effect(
        estimate=estimate,
        low=estimate - half_width,
        high=estimate + half_width,
        p=2 * float(upper_tail),
        df=float(df),
    )


def _too_few(count: int, factor: str) -> str:
    """Say that a factor has too few levels, e.g. "cannot be told: two phrasings"."""
    number = NUMBER_WORDS.get(count, count)
    if count == 1:
        return f"cannot be told: {number} {factor}"
    plural = factor.removesuffix("y") + "ies" if factor.endswith("y") else f"{factor}s"
    return f"cannot be told: {number} {plural}"


def _cross(name: str, numbers: ArrayLike) -> _Crossing:
    """Split a group's numbers (levels, items) into effects of levels, means of items and a rest.

    The means of items are taken out of the numbers and of the design first (Frisch and Waugh). A
    level that lacks an item is then compared over the items that it shares.
    """
    values = np.asarray(numbers, dtype=float)
    has_number = ~np.isnan(values)
    # Levels and items without any number are left out.
    values = values[has_number.any(axis=1)]
    values = values[:, has_number.any(axis=0)]
    if not values.size:
        raise ValueError(f"{name}: found no number, expected at least one")
    has_number = ~np.isnan(values)
    n_levels, n_items = values.shape

    means = nan_mean(values, axis=0)
    deviations = values - means
    # A level's effect also moves the mean of each of its items, by its share in that mean.
    shares = has_number / has_number.sum(axis=0)
    is_level = np.eye(n_levels)
    # The shape is (levels, items, levels): the number's level, its item, and the effect.
    full_design = is_level[:, None] - shares.T
    # The mask flattens both: one row for each cell that has a number.
    within = deviations[has_number]
    design = full_design[has_number]

    effects, _, rank, _ = np.linalg.lstsq(design, within)
    rest = within - design @ effects
    # The means of the items have taken one degree of freedom each.
    rest_freedom = len(within) - n_items - rank
    return _Crossing(
        # Numbers within items tell differences of levels only, so the effects are centred.
        levels=effects - effects.mean(),
        items=means,
        rest_squares=float(rest @ rest),
        rest_freedom=int(rest_freedom),
    )


def _cells(ratings: ArrayLike) -> tuple[Array, int]:
    """Reshape ratings of n groups to cells by events, (n * n, events), and return them with n.

    Raise a ValueError if the ratings are not square, or a cell has no rating.
    """
    square = np.asarray(ratings, dtype=float)
    n = len(square)
    shape = square.shape
    if square.ndim not in (2, 3) or shape[1] != n:
        raise ValueError(f"ratings have shape {shape}, expected (n, n) or (n, n, events)")

    cells = square.reshape(n * n, -1)
    is_rated = np.isfinite(cells).any(axis=1)
    if not is_rated.all():
        # argmin finds the first False.
        first_empty = int(is_rated.argmin())
        row, column = divmod(first_empty, n)
        raise ValueError(f"row {row}, column {column} has no rating, expected one in every cell")
    return cells, n


def _level_design(n: int) -> Array:
    """Build columns of 0 and 1 for the perceiver and the target of each cell: (n * n, 2 n)."""
    indicators = np.eye(n)
    # Cells go row by row: a perceiver has n cells in a row, a target every n-th cell.
    perceivers = np.repeat(indicators, n, axis=0)
    targets = np.tile(indicators, (n, 1))
    return np.hstack([perceivers, targets])


def _own_design(n: int) -> Array:
    """Build a column for own-group cells, then the `_level_design`: (n * n, 1 + 2 n)."""
    own = np.eye(n)
    own = own.reshape(-1, 1)
    return np.hstack([own, _level_design(n)])


def _fit(design: Array) -> _Fit:
    """Prepare the least squares of a design whose first term is the effect."""
    rank = np.linalg.matrix_rank(design)
    rank_without_first = np.linalg.matrix_rank(design[:, 1:])
    return _Fit(
        design=design,
        pseudo_inverse=np.linalg.pinv(design),
        freedom=len(design) - int(rank),
        tells_first=bool(rank > rank_without_first),
    )


def _over_events(cells: Array, fit: _Fit, weights: Array, parts: Sequence[_Part]) -> Effect:
    """Test a weighted sum of the mean cells, an effect that may vary from event to event.

    Its variance is the sum of the `parts`, which hold for means over events, and of
    `_variance_by_event`. Its degrees of freedom are Satterthwaite's.
    """
    # The estimate takes every rating, the variance by event only complete events.
    means = nan_mean(cells, axis=1)
    estimate = float(weights @ means)
    is_complete = ~np.isnan(cells).any(axis=0)
    n_complete = int(is_complete.sum())

    all_parts = list(parts)
    n_events = cells.shape[1]
    if n_events > 1:
        if n_complete < 2:
            reason = _too_few(n_complete, "complete event")
            return Effect(estimate, reason=reason)
        all_parts.append(_variance_by_event(cells[:, is_complete], fit, weights))

    variance = 0.0
    squares_per_freedom = 0.0
    for part in all_parts:
        variance += part.variance
        squares_per_freedom += part.variance**2 / part.freedom
    # TINY**4 guards against 0 / 0: where nothing varies, `_student` gives a reason instead.
    df = variance**2 / max(squares_per_freedom, TINY**4)
    return _student(estimate, variance, df)


def _variance_by_event(events: Array, fit: _Fit, weights: Array) -> _Part:
    """Estimate the variance of a mean effect over events, beyond the noise of the cells.

    `events` are cells by events, without NaN.
    """
    n_events = events.shape[1]
    residuals = fit.residuals(events)
    # The variance of residuals around their mean over events is S_rest of `own_group`.
    cell_variances = residuals.var(axis=1, ddof=1)
    rest_variance = cell_variances.sum() / fit.freedom
    noise = weights @ weights * rest_variance

    effects = weights @ events
    excess = max(effects.var(ddof=1) - noise, 0.0)
    return _Part(excess / n_events, n_events - 1)


def _kinds(codes: Sequence[int] | NDArray[np.intp]) -> tuple[Mask, Mask]:
    """Mark the cells of one name, and the cells of two names of one group: (n, n) each.

    `codes` are the groups of the names, as numbers.
    """
    one_name = np.eye(len(codes), dtype=np.bool_)
    same = np.equal.outer(codes, codes)
    two_names = same & ~one_name
    return one_name, two_names


@cache
def _name_fit(codes: tuple[int, ...]) -> _Fit:
    """Prepare the fit that tells the noise of events: kinds of cells, perceivers and targets."""
    one_name, two_names = _kinds(codes)
    kinds = np.stack([one_name, two_names])
    kinds = kinds.reshape(2, -1)
    levels = _level_design(len(codes))
    return _fit(np.hstack([kinds.T, levels]))


@cache
def _name_weights(codes: tuple[int, ...]) -> Array:
    """Weigh the cells for one name and for two names: (2, 1 + n, n * n).

    The first weights are of all names, the others leave out one name each.
    """
    n = len(codes)
    all_names = np.arange(n)
    weights = np.zeros((2, 1 + n, n, n))
    weights[:, 0] = _block_weights(codes)
    for name in all_names:
        others = np.delete(all_names, name)
        groups_of_others = np.take(codes, others)
        # As a column, the indices of rows meet those of columns in a block of all other names. The
        # name that is left out keeps the weight 0 in its row and its column.
        rows = others[:, None]
        weights[:, 1 + name, rows, others] = _block_weights(groups_of_others)
    return weights.reshape(2, 1 + n, n * n)


def _block_weights(codes: ArrayLike) -> Array:
    """Weigh the cells in the own-group effect of one name and of two names: (2, n, n)."""
    codes = np.asarray(codes)
    sizes = np.bincount(codes)
    n_groups = len(sizes)
    # The equation of `own_group_of_names` as a weight for each pair of groups, (G, G).
    pair_weights = (np.eye(n_groups) - 1 / n_groups) / (n_groups - 1)
    # A pair of groups shares its weight among its cells.
    cell_weights = pair_weights / np.outer(sizes, sizes)
    one_name, two_names = _kinds(codes)

    # Own blocks are cleared, as their weight belongs to cells of one kind alone.
    outside = cell_weights[np.ix_(codes, codes)]
    outside[one_name | two_names] = 0.0
    # A group of s names has s cells of one name and s (s - 1) of two names.
    size_of_group = sizes[codes]
    one_name_weights = pair_weights[0, 0] / size_of_group
    two_name_weights = one_name_weights / (size_of_group - 1)
    with_one_name = outside + one_name * one_name_weights
    with_two_names = outside + two_names * two_name_weights
    return np.stack([with_one_name, with_two_names])
