"""Helpfulness of a group, its bias against the control, brittleness, and how far to trust them.

The Biased Samaritan, sections 4.4 to 5.3. Ratings of one group or of the control are an array of
shape (scenario, wording) or (phrasing, scenario, wording), in points of the scale, NaN where there
is none; a group and the control may differ in phrasings alone. What is missing is left out step by
step: phrasings are averaged first (the rating of a *prompt*: one wording of one scenario), then the
wordings of a scenario, then the scenarios, all with equal weight. Intervals are of 95 %, from
Student's t unless said. Every function raises ValueError for fewer than 2 units to average; those
that take several groups name the one.
"""

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from ingroup.stats.crossed import Effect, over_levels
from ingroup.stats.paired import TINY, PairedTest, adjust, in_family, nan_mean, paired_test

Array = NDArray[np.float64]
# Mean over `n` scenarios and its interval; `left_out` had no number to average.
ScenarioMean = namedtuple("ScenarioMean", "mean low high n left_out")
Bias = namedtuple("Bias", "helpfulness control bias low high statistic p p_least d_z n left_out")


def helpfulness(ratings: ArrayLike) -> ScenarioMean:
    """Mean over scenarios of the mean over wordings: equation 1, with its interval."""
    return _scenario_mean(_units(ratings))


def bias(group: ArrayLike, control: ArrayLike, unit: str = "scenario") -> Bias:
    """Bias score of a group, section 4.6: helpfulness minus the control's, over what both have.

    With the t-test of section 4.5, see :func:`ingroup.stats.paired.paired_test`, over the ``n``
    units that both have (``left_out`` are the others). What is paired, "scenario" or "prompt", the
    paper does not say. The prompts of a scenario are not independent where a group does better in
    some scenarios: as units they make the interval too short. Where these differences have a
    standard deviation of 4 points, 0.70 of the intervals hold the bias, and 0.30 of the groups
    without one have a p below .05; with scenarios 0.95 and .05, of 4 scenarios as of 103 (``make
    calibration``).

    The interval is for these phrasings. Where two or three have effects of their own, of a fifth
    of the SD of a rating, 0.68 of the intervals hold a bias of 0: see `bias_of_phrasings`. The
    scenarios must be a simple sample. A p below .05 comes in 0.12 of the cases where 3 % of them
    shift by 30 points, in 0.41 where they come in families of ten, and always where low ratings are
    refused. Only the first of these is better with `bias_of_phrasings` (.06, .33, always).
    """
    ours, theirs = _units(group, unit), _units(control, unit)
    shared = ~np.isnan(ours - theirs)
    test = _test((ours - theirs)[shared], unit)
    means, left_out = (ours[shared].mean(), theirs[shared].mean()), int((~shared).sum())
    interval = test.difference, test.low, test.high
    rest = test.statistic, test.pvalue, test.least, test.effect_size, int(test.n), left_out
    return Bias(*means, *interval, *rest)


def bias_of_phrasings(groups: Mapping[str, ArrayLike], control: ArrayLike) -> dict[str, Effect]:
    """Test the bias of every group of a category for phrasings like these.

    `bias` takes the phrasings of a group for all that exist. Here they are a sample, whose variance
    is pooled over the groups of the category; "a person" stays the one control. The estimate is
    that of `bias` where no rating is missing. Elsewhere it differs a little, as wordings are
    averaged before phrasings here.

    Parameters
    ----------
    groups : mapping of str to array_like, (phrasing, scenario, wording)
        The ratings of each group of a category.
    control : array_like, (scenario, wording) or (phrasing, scenario, wording)
        The ratings of the control.

    Returns
    -------
    dict of str to Effect
        Points of the scale; see :func:`ingroup.stats.crossed.over_levels`.

    Raises
    ------
    ValueError
        Where a group shares no scenario with the control.
    """
    theirs = _units(control)
    cells = {}
    for name, ratings in groups.items():
        by_phrasing = nan_mean(_phrased(ratings), axis=2)
        cells[name] = by_phrasing - theirs
    return over_levels(cells, "phrasing")


def bias_table(
    groups: Mapping[str, ArrayLike], control: ArrayLike, unit: str = "scenario", alpha: float = 0.01
) -> pd.DataFrame:
    """`bias` of every group of a category, which is one family for Holm's correction.

    One row a group, with the numbers of `bias`, ``family`` (how many there are), those of
    `in_family`, ``alpha``, ``significant`` (p < alpha, uncorrected as in the paper) and
    ``significant_holm``; then p and these with the other unit, as ``p_prompt``, ``p_holm_prompt``
    and so on (``p_scenario`` where `unit` is "prompt"). The other p is NaN where group and control
    share fewer than 2 units: no prompts in the crossing "totals".
    """
    table = _in_family(_rows(groups, lambda group: bias(group, control, unit)), "groups", alpha)
    table["alpha"] = alpha
    other = "prompt" if unit == "scenario" else "scenario"
    theirs = _units(control, other)
    again = [paired_test(_units(ratings, other), theirs).pvalue for ratings in groups.values()]
    for p, end in ((table["p"], ""), (again, f"_{other}")):
        table[f"p{end}"] = p
        table[f"p_holm{end}"] = adjust(p, "holm")
        table[f"significant{end}"] = table[f"p{end}"] < alpha
        table[f"significant_holm{end}"] = table[f"p_holm{end}"] < alpha
    return table


def repeatability(
    first: Mapping[str, ArrayLike], second: Mapping[str, ArrayLike], alpha: float = 0.01
) -> pd.DataFrame:
    """`bias` of a second run against the first, section 5.3, for every cell (group or control).

    One row a cell: ``first``, ``second``, their ``difference`` (the paper reports the largest over
    the cells, unsigned), ``low`` to ``high``, ``statistic``, ``p``, ``p_least``, ``d_z``, ``n``,
    ``left_out``, those of `in_family` over the cells, and ``largest``: the largest unsigned
    difference of one scenario.
    """
    pairs = {cell: (second[cell], first[cell]) for cell in first}
    table = _rows(pairs, lambda pair: bias(*pair))
    table.columns = ["second", "first", "difference", *table.columns[3:]]
    table = _in_family(table, "groups and controls", alpha)
    apart = (_units(one) - _units(other) for one, other in pairs.values())
    table["largest"] = [np.nanmax(np.abs(d)) for d in apart]
    return table[["first", "second", *table.columns[2:]]]


def brittleness(ratings: ArrayLike, ddof: int = 1, phrasings: str = "within") -> ScenarioMean:
    """Mean over scenarios of the standard deviation over wordings, section 5.2, with its interval.

    A scenario without 2 ratings of a phrasing is left out. `ddof` 1, sample, or 0, population: the
    paper does not say which. `phrasings` "within": the standard deviation within each phrasing,
    averaged over the phrasings that have 2 ratings. "averaged": that of the prompts, their
    phrasings averaged first. It is smaller by what the phrasings do not share, so that groups with
    several look less brittle.
    """
    return _scenario_mean(_spreads(ratings, ddof, phrasings))


def brittleness_between(
    cells: Mapping[str, ArrayLike], ddof: int = 1, phrasings: str = "within", alpha: float = 0.01
) -> pd.DataFrame:
    """Does brittleness vary between the cells (groups and control) of a category? Section 5.2.

    Paired t-tests over scenarios of the standard deviations that `brittleness` averages. A row a
    pair: ``one``, ``other``, ``difference`` (one minus other), ``low`` to ``high``, ``p``,
    ``p_least``, ``n`` and those of `in_family` over the pairs; NaN where fewer than 2 are shared.
    """
    spreads = {name: _spreads(ratings, ddof, phrasings) for name, ratings in cells.items()}
    pairs = list(combinations(spreads, 2))
    test = paired_test(*([spreads[pair[side]] for pair in pairs] for side in (0, 1)))
    table = pd.DataFrame(pairs, columns=["one", "other"]).assign(difference=test.difference)
    table = table.assign(low=test.low, high=test.high, p=test.pvalue, p_least=test.least, n=test.n)
    return _in_family(table, "pairs", alpha)


def excess_over_brittleness(
    group: ArrayLike, control: ArrayLike, ddof: int = 1, phrasings: str = "within"
) -> ScenarioMean:
    """|bias| - brittleness of a group: above 0, its bias exceeds the spread that wordings cause.

    Over the scenarios that have both, with the difference d to the control and the standard
    deviation s over the wordings of the group (see `brittleness`)::

        |mean(d)| - mean(s) = mean(e),  e = sign(mean(d)) d - s

    The interval is that of e over scenarios, which carries the errors of both and what they share:
    a bias exceeds the brittleness where ``low`` > 0. The sign is held: were |mean(d)| resampled, no
    bias at all would exceed a brittleness of 0. A bias of 0 has the sign 1, whatever rounding says.
    """
    d, s = _units(group) - _units(control), _spreads(group, ddof, phrasings)
    total = d[~np.isnan(d - s)].sum()
    sign = -1 if total < -TINY else 1
    return _scenario_mean(sign * d - s)


def by_group(
    ratings: Mapping[tuple, Mapping[str, ArrayLike]], function: Callable, names: Sequence[str]
) -> pd.DataFrame:
    """One row for each key of `ratings` and group of its category, the control among them.

    `names` are those of the parts of a key, e.g. model, run and category; then follow ``group`` and
    the fields of what the function makes of its ratings, a `ScenarioMean`.
    """
    tables = {key: _rows(groups, function) for key, groups in ratings.items()}
    return pd.concat(tables, names=names).reset_index()


def _rows(cells: Mapping, function: Callable) -> pd.DataFrame:
    """One row a cell, with the fields of what `function` returns for it."""
    results = []
    for name, ratings in cells.items():
        try:
            results.append(function(ratings))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return pd.DataFrame(results, index=pd.Index(cells, name="group"))


def _in_family(table: pd.DataFrame, tests: str, alpha: float) -> pd.DataFrame:
    """The rows as one family, and how many `tests` it has: ``family``, e.g. "5 groups"."""
    return in_family(table.assign(family=f"{table['p'].notna().sum()} {tests}"), alpha)


def _phrased(ratings: ArrayLike) -> Array:
    """As (phrasing, scenario, wording)."""
    ratings = np.asarray(ratings, dtype=float)
    return ratings.reshape((-1, *ratings.shape[-2:]))


def _units(ratings: ArrayLike, unit: str = "scenario") -> Array:
    """The mean rating of each scenario, or of each prompt."""
    prompts = nan_mean(_phrased(ratings))
    return prompts.ravel() if unit == "prompt" else nan_mean(prompts, axis=1)


def _spreads(ratings: ArrayLike, ddof: int, phrasings: str) -> Array:
    """Standard deviation over the wordings of each scenario; NaN without 2 ratings."""
    ratings = _phrased(ratings)
    ratings = nan_mean(ratings)[None] if phrasings == "averaged" else ratings
    number = (~np.isnan(ratings)).sum(axis=2, dtype=float)
    number[number < 2] = np.nan
    squares = nan_mean((ratings - nan_mean(ratings, axis=2)[:, :, None]) ** 2, axis=2)
    return nan_mean(np.sqrt(squares * number / (number - ddof)))


def _scenario_mean(values: Array) -> ScenarioMean:
    there = values[~np.isnan(values)]
    test = _test(there, "scenario")
    return ScenarioMean(test.difference, test.low, test.high, len(there), len(values) - len(there))


def _test(values: Array, unit: str) -> PairedTest:
    """Values without NaN against 0."""
    if len(values) < 2:
        raise ValueError(f"{len(values)} {unit}(s) with what is compared, expected at least 2")
    return paired_test(values)
