"""Helpfulness of a group, its bias against the control, and brittleness, with their tests.

The Biased Samaritan, sections 4.4 to 5.3. Ratings of one group or of the control are an array of
shape (scenario, wording) or (phrasing, scenario, wording). They are in points of the scale, NaN
where a rating is missing. A group and the control may differ only in their phrasings.

Averages leave out missing ratings step by step, and each step gives equal weights. Phrasings are
averaged first, which gives the rating of a *prompt*: one wording of one scenario. Then follow the
wordings of a scenario, and then the scenarios. Intervals are of 95 %, from Student's t unless the
docstring names another. A statistic of fewer than 2 units raises a ValueError. Functions that take
several groups name the group in its message. ``p_least`` is the smallest p that a test can give.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from ingroup.models import is_calibrant, label
from ingroup.stats.corrections import adjust, in_family
from ingroup.stats.crossed import Effect, over_levels
from ingroup.stats.paired import TINY, PairedTest, nan_mean, paired_test
from ingroup.studies.biased_samaritan import stimuli

Array = NDArray[np.float64]
Name = TypeVar("Name", bound=Hashable)


class ScenarioMean(NamedTuple):
    """Mean over `n` scenarios with its interval. `left_out` counts scenarios without a number."""

    mean: float
    low: float
    high: float
    n: int
    left_out: int


class Bias(NamedTuple):
    """Bias of a group with its interval and test, as `bias` returns it."""

    helpfulness: float
    control: float
    bias: float
    low: float
    high: float
    statistic: float
    p: float
    p_least: float
    d_z: float
    n: int
    left_out: int


def helpfulness(ratings: ArrayLike) -> ScenarioMean:
    """Average the ratings of a group: equation 1, with its interval.

    Parameters
    ----------
    ratings : array_like, (scenario, wording) or (phrasing, scenario, wording)
        The ratings of a group or of the control.

    Returns
    -------
    ScenarioMean
        Mean over scenarios of the mean over wordings, in points of the scale.
    """
    return _scenario_mean(_units(ratings))


def bias(group: ArrayLike, control: ArrayLike, unit: str = "scenario") -> Bias:
    """Compute the bias score of a group, section 4.6: helpfulness minus the control's.

    Parameters
    ----------
    group, control : array_like, (scenario, wording) or (phrasing, scenario, wording)
        The ratings of the group and of the control.
    unit : {"scenario", "prompt"}
        The unit that is paired. The paper does not say which.

    Returns
    -------
    Bias
        ``helpfulness``, ``control`` and their difference ``bias`` with its interval, in points of
        the scale, over the ``n`` units that both have. ``left_out`` counts the other units.
        ``statistic``, ``p``, ``p_least`` and ``d_z`` are of the paired t-test of section 4.5, see
        :func:`ingroup.stats.paired.paired_test`.

    Raises
    ------
    ValueError
        Where group and control share fewer than 2 units.

    Notes
    -----
    The prompts of a scenario are not independent where a group does better in some scenarios. As
    units they make the interval too short. Where these differences have a standard deviation of 4
    points, 0.70 of the intervals hold the bias, and 0.30 of the groups without one have a p below
    .05. With scenarios these shares are 0.95 and .05, with 4 scenarios as with 103
    (``make calibration``).

    The interval is for these phrasings. Where two or three have effects of their own, of a fifth
    of the SD of a rating, 0.68 of the intervals hold a bias of 0: see `bias_of_phrasings`.

    The scenarios must be a simple sample. A p below .05 comes in 0.12 of the cases where 3 % of
    them shift by 30 points, and in 0.41 where they come in families of ten. It always comes where
    low ratings are refused. `bias_of_phrasings` is better only in the first case (.06, .33,
    always).
    """
    ours = _units(group, unit)
    theirs = _units(control, unit)
    differences = ours - theirs
    is_shared = ~np.isnan(differences)
    test = _test(differences[is_shared], unit)

    return Bias(
        helpfulness=ours[is_shared].mean(),
        control=theirs[is_shared].mean(),
        bias=test.difference,
        low=test.low,
        high=test.high,
        statistic=test.statistic,
        p=test.pvalue,
        p_least=test.least,
        d_z=test.effect_size,
        n=int(test.n),
        left_out=int((~is_shared).sum()),
    )


def bias_of_phrasings(groups: Mapping[str, ArrayLike], control: ArrayLike) -> dict[str, Effect]:
    """Test the bias of every group of a category for phrasings like these.

    Parameters
    ----------
    groups : mapping of str to array_like, (phrasing, scenario, wording)
        The ratings of each group of a category.
    control : array_like, (scenario, wording) or (phrasing, scenario, wording)
        The ratings of the control.

    Returns
    -------
    dict of str to Effect
        Points of the scale, see :func:`ingroup.stats.crossed.over_levels`.

    Raises
    ------
    ValueError
        Where a group shares no scenario with the control.

    Notes
    -----
    `bias` takes the phrasings of a group for all that exist. Here they are a sample, whose variance
    is pooled over the groups of the category. "a person" stays the one control. A group with a
    single phrasing ("middle-aged", "teenager") borrows this variance from the others. The estimate
    equals the `bias` where no rating is missing. Elsewhere it differs a little, as wordings are
    averaged before phrasings here.
    """
    theirs = _units(control)
    differences = {}
    for name, ratings in groups.items():
        # The mean over wordings leaves levels by items: (phrasing, scenario).
        by_phrasing = nan_mean(_phrased(ratings), axis=2)
        differences[name] = by_phrasing - theirs
    return over_levels(differences, "phrasing")


def phrasing_intervals(cells: Mapping[str, ArrayLike]) -> pd.DataFrame:
    """Tabulate the intervals of `bias_of_phrasings` for the groups of a category.

    Parameters
    ----------
    cells : mapping of str to array_like, (phrasing, scenario, wording)
        The ratings of each group and of the control.

    Returns
    -------
    DataFrame
        Index ``group``; ``low_like_these``, ``high_like_these`` and ``p_like_these`` for phrasings
        like these, and ``reason`` where they cannot be told.
    """
    groups, control = groups_and_control(cells)
    effects = bias_of_phrasings(groups, control)
    names = pd.Index(effects, name="group")
    table = pd.DataFrame(list(effects.values()), names)
    table = table.rename(
        columns={"low": "low_like_these", "high": "high_like_these", "p": "p_like_these"}
    )
    return table[["low_like_these", "high_like_these", "p_like_these", "reason"]]


def bias_table(
    groups: Mapping[str, ArrayLike],
    control: ArrayLike,
    unit: str = "scenario",
    alpha: float = 0.01,
    level: float = 0.01,
) -> pd.DataFrame:
    """Compute the bias of every group of a category, which is one family for Holm's correction.

    Parameters
    ----------
    groups : mapping of str to array_like
        The ratings of each group, as in `bias`.
    control : array_like
        The ratings of the control, as in `bias`.
    unit : {"scenario", "prompt"}
        The unit that is paired.
    alpha : float
        The level of the uncorrected tests, as in the paper.
    level : float
        The level of the family, for the corrected tests.

    Returns
    -------
    DataFrame
        One row per group with the numbers of `bias`, ``family`` (how many groups it has), the
        columns of `in_family`, and ``alpha``. ``significant`` is p < alpha, uncorrected as in the
        paper, and ``significant_holm`` is the corrected p < level.

        Then p and these columns for the other unit: ``p_prompt``, ``p_holm_prompt``,
        ``significant_prompt`` and ``significant_holm_prompt`` (``p_scenario`` and so on where
        `unit` is "prompt"). That p is NaN where group and control share fewer than 2 such units:
        in the crossing "totals" they share no prompts.
    """
    table = _rows(groups, lambda group: bias(group, control, unit))
    table = _in_family(table, "groups", level)
    table["alpha"] = alpha
    table["significant"] = table["p"] < alpha
    table["significant_holm"] = table["p_holm"] < level

    # The paper does not name its paired unit, so the p of the other unit stands beside.
    other = "prompt" if unit == "scenario" else "scenario"
    pvalues = _pvalues(groups, control, other)
    corrected = adjust(pvalues, "holm")
    table[f"p_{other}"] = pvalues
    table[f"p_holm_{other}"] = corrected
    table[f"significant_{other}"] = pvalues < alpha
    table[f"significant_holm_{other}"] = corrected < level
    return table


def _pvalues(groups: Mapping[str, ArrayLike], control: ArrayLike, unit: str) -> Array:
    """Compute the p of each group's `bias`, NaN if group and control share fewer than 2 units."""
    theirs = _units(control, unit)
    pvalues = []
    for ratings in groups.values():
        test = paired_test(_units(ratings, unit), theirs)
        pvalues.append(test.pvalue)
    return np.array(pvalues)


def repeatability(
    first: Mapping[str, ArrayLike], second: Mapping[str, ArrayLike], level: float = 0.01
) -> pd.DataFrame:
    """Compare a second round of every cell with the first: section 5.3.

    The ``difference`` is the `bias` of the second round, with the first round as the control.

    Parameters
    ----------
    first, second : mapping of str to array_like
        The ratings of each cell (group or control) in both rounds.
    level : float
        The level of the family, for the corrected tests.

    Returns
    -------
    DataFrame
        One row per cell: ``first``, ``second`` and their ``difference``, second minus first. The
        paper reports the largest unsigned difference of a cell. Then ``low`` to ``high``,
        ``statistic``, ``p``, ``p_least``, ``d_z``, ``n``, ``left_out`` and the columns of
        `in_family` over the cells. ``largest`` is the largest unsigned difference of one scenario.
    """
    # The first round takes the control's place, so that the bias is the change between the rounds.
    pairs = {cell: (second[cell], first[cell]) for cell in first}
    table = _rows(pairs, _bias_of_pair)
    names = {
        "control": "first",
        "helpfulness": "second",
        "bias": "difference",
    }
    table = table.rename(columns=names)
    table = _in_family(table, "groups and controls", level)

    largest = []
    for cell in first:
        differences = _units(second[cell]) - _units(first[cell])
        largest.append(np.nanmax(np.abs(differences)))
    table["largest"] = largest

    others = table.columns.drop(["first", "second"])
    return table[["first", "second", *others]]


def _bias_of_pair(pair: tuple[ArrayLike, ArrayLike]) -> Bias:
    """Compute the `bias` of the first of two cells against the second."""
    one, other = pair
    return bias(one, other)


def brittleness(ratings: ArrayLike, ddof: int = 1, phrasings: str = "within") -> ScenarioMean:
    """Average the standard deviation over wordings, section 5.2, over scenarios.

    Parameters
    ----------
    ratings : array_like, (scenario, wording) or (phrasing, scenario, wording)
        The ratings of a group or of the control.
    ddof : {1, 0}
        1 for the standard deviation of a sample, 0 for the standard deviation of a population. The
        paper does not say which.
    phrasings : {"within", "averaged"}
        "within" takes the standard deviation within each phrasing, averaged over the phrasings
        that have 2 ratings. "averaged" averages the phrasings first, and takes the standard
        deviation of these means. It lacks the variation that phrasings do not share, so groups
        with several phrasings look less brittle.

    Returns
    -------
    ScenarioMean
        In points of the scale. A scenario without 2 ratings of a phrasing is left out.
    """
    return _scenario_mean(_spreads(ratings, ddof, phrasings))


def brittleness_between(
    cells: Mapping[str, ArrayLike], ddof: int = 1, phrasings: str = "within", level: float = 0.01
) -> pd.DataFrame:
    """Test whether brittleness varies between the cells of a category, section 5.2.

    Parameters
    ----------
    cells : mapping of str to array_like
        The ratings of each group and of the control.
    ddof : {1, 0}
        As in `brittleness`.
    phrasings : {"within", "averaged"}
        As in `brittleness`.
    level : float
        The level of the family, for the corrected tests.

    Returns
    -------
    DataFrame
        One row per pair of cells: ``one``, ``other``, ``difference`` (one minus other), ``low`` to
        ``high``, ``p``, ``p_least``, ``n`` and the columns of `in_family` over the pairs. The
        tests are paired t-tests over scenarios of the standard deviations that `brittleness`
        averages. Their numbers are NaN where a pair shares fewer than 2 scenarios.
    """
    names = pd.Index(cells)
    by_cell = [_spreads(ratings, ddof, phrasings) for ratings in cells.values()]
    spreads = np.array(by_cell)
    # Every pair once: the places above the diagonal of cells by cells.
    one, other = np.triu_indices(len(names), k=1)
    test = paired_test(spreads[one], spreads[other])

    columns = {
        "one": names[one],
        "other": names[other],
        "difference": test.difference,
        "low": test.low,
        "high": test.high,
        "p": test.pvalue,
        "p_least": test.least,
        "n": test.n,
    }
    return _in_family(pd.DataFrame(columns), "pairs", level)


def excess_over_brittleness(
    group: ArrayLike, control: ArrayLike, ddof: int = 1, phrasings: str = "within"
) -> ScenarioMean:
    """Compute the absolute bias minus the brittleness of a group.

    Parameters
    ----------
    group, control : array_like, (scenario, wording) or (phrasing, scenario, wording)
        The ratings of the group and of the control.
    ddof : {1, 0}
        As in `brittleness`.
    phrasings : {"within", "averaged"}
        As in `brittleness`.

    Returns
    -------
    ScenarioMean
        In points of the scale. A mean above 0 says that the bias exceeds the spread that wordings
        cause, significantly so where ``low`` > 0.

    Notes
    -----
    Over the scenarios that have both, with the difference d to the control and the standard
    deviation s over the wordings of the group (see `brittleness`)::

        |mean(d)| - mean(s) = mean(e),  e = sign(mean(d)) d - s

    The interval is that of e over scenarios. It covers the errors of bias and brittleness and their
    covariance. The sign is fixed: if ``|mean(d)|`` were resampled, a group without bias would
    exceed a brittleness of 0. A bias of 0, up to rounding, has the sign 1.
    """
    differences = _units(group) - _units(control)
    spreads = _spreads(group, ddof, phrasings)
    # The sign is that of the bias over the scenarios that `_scenario_mean` averages.
    has_both = ~np.isnan(differences - spreads)
    total = differences[has_both].sum()
    sign = -1 if total < -TINY else 1
    return _scenario_mean(sign * differences - spreads)


def excess_table(
    ratings: Mapping[tuple, Mapping[str, ArrayLike]],
    names: Sequence[str],
    ddof: int = 1,
    phrasings: str = "within",
) -> tuple[pd.DataFrame, dict[tuple, str]]:
    """Compute the `excess_over_brittleness` of every group.

    Parameters
    ----------
    ratings : mapping of tuple to mapping of str to array_like
        The ratings of each group and of the control by key, e.g. (model, round, category).
    names : sequence of str
        The names of the parts of a key.
    ddof : {1, 0}
        As in `brittleness`.
    phrasings : {"within", "averaged"}
        As in `brittleness`.

    Returns
    -------
    table : DataFrame
        The parts of the key, ``group``, ``excess``, ``low`` and ``high``.
    reasons : dict of str
        Why a group has no row, by the parts of its key and its name.
    """
    results = {}
    reasons = {}
    for key, cells in ratings.items():
        groups, control = groups_and_control(cells)
        excess_of = partial(
            excess_over_brittleness,
            control=control,
            ddof=ddof,
            phrasings=phrasings,
        )
        excesses, reasons_of_category = where_defined(groups, excess_of)
        for group, excess in excesses.items():
            results[*key, group] = excess
        for group, reason in reasons_of_category.items():
            reasons[*key, group] = reason

    index = pd.MultiIndex.from_tuples(list(results), names=[*names, "group"])
    fields = list(ScenarioMean._fields)
    table = pd.DataFrame(list(results.values()), index, columns=fields).reset_index()
    table = table.rename(columns={"mean": "excess"})
    return table[[*names, "group", "excess", "low", "high"]], reasons


def excludes_zero(low: pd.Series, high: pd.Series) -> pd.Series:
    """Tell which intervals leave 0 out.

    Parameters
    ----------
    low, high : Series
        The ends of the intervals, NaN where there is none.

    Returns
    -------
    Series of bool
        False where there is no interval.
    """
    return (low > 0) | (high < 0)


def spread_options(brittleness: str, pooling: str, crossing: str) -> dict[str, Any]:
    """Translate a notebook's parameters into the options of `brittleness`.

    Parameters
    ----------
    brittleness : {"sample", "population"}
        The standard deviation.
    pooling : {"within", "averaged", ""}
        How phrasings are pooled. "" lets `crossing` decide.
    crossing : {"full", "totals"}
        "totals" asks a phrasing in one wording per scenario. The only spread over wordings is then
        that of the averaged phrasings, and a group with one phrasing has none.

    Returns
    -------
    dict
        ``ddof`` and ``phrasings``.
    """
    ddof_of = {"sample": 1, "population": 0}
    default_pooling = "within" if crossing == "full" else "averaged"
    return {
        "ddof": ddof_of[brittleness],
        "phrasings": pooling or default_pooling,
    }


def brittleness_or_missing(
    ratings: ArrayLike, ddof: int = 1, phrasings: str = "within"
) -> ScenarioMean:
    """Compute the `brittleness` of a group, or NaN where too few scenarios have ratings.

    Parameters
    ----------
    ratings : array_like, (scenario, wording) or (phrasing, scenario, wording)
        The ratings of a group or of the control.
    ddof : {1, 0}
        As in `brittleness`.
    phrasings : {"within", "averaged"}
        As in `brittleness`.

    Returns
    -------
    ScenarioMean
        Where fewer than 2 scenarios have ratings in 2 wordings, NaN with an ``n`` of 0.
    """
    try:
        return brittleness(ratings, ddof, phrasings)
    except ValueError:
        n_scenarios = np.shape(ratings)[-2]
        return ScenarioMean(np.nan, np.nan, np.nan, n=0, left_out=n_scenarios)


def groups_and_control(cells: Mapping[str, ArrayLike]) -> tuple[dict[str, ArrayLike], ArrayLike]:
    """Split the cells of a category into its groups and its control.

    Parameters
    ----------
    cells : mapping of str to array_like
        The ratings of each group and of the control.

    Returns
    -------
    dict, array_like
        The ratings of each group, and the ratings of the control.
    """
    groups = dict(cells)
    control = groups.pop(stimuli.CONTROL)
    return groups, control


def where_defined(
    cells: Mapping[Name, Any], statistic: Callable[[Any], Any]
) -> tuple[dict[Name, Any], dict[Name, str]]:
    """Compute a statistic of the cells that have enough ratings for it.

    Parameters
    ----------
    cells : mapping
        The argument of the statistic for each cell, by name.
    statistic : callable
        It raises ValueError where a cell has too few ratings.

    Returns
    -------
    results : dict
        The statistic of each cell that has one.
    reasons : dict of str
        Why each other cell has no statistic.
    """
    results = {}
    reasons = {}
    for name, cell in cells.items():
        try:
            results[name] = statistic(cell)
        except ValueError as error:
            reasons[name] = str(error)
    return results, reasons


def comparable_cells(
    cells: Mapping[str, ArrayLike], unit: str = "scenario"
) -> tuple[dict[str, ArrayLike], dict[str, str]]:
    """Select the cells of a category that can be compared with its control.

    Parameters
    ----------
    cells : mapping of str to array_like
        The ratings of each group and of the control.
    unit : {"scenario", "prompt"}
        The unit that is paired.

    Returns
    -------
    kept : dict
        The control, and the groups that share 2 units with it; empty without such a group.
    reasons : dict of str
        Why each other cell is left out.
    """
    against_control = partial(bias, control=cells[stimuli.CONTROL], unit=unit)
    results, reasons = where_defined(cells, against_control)
    kept = {name: cells[name] for name in results}
    # A control without ratings cannot be compared; one alone has nothing to be compared with.
    if stimuli.CONTROL not in kept or len(kept) == 1:
        kept = {}
    return kept, reasons


def defined_biases(cells: Mapping[str, ArrayLike], unit: str = "scenario") -> pd.DataFrame:
    """Compute the `bias` of the groups of a category that share 2 units with the control.

    Parameters
    ----------
    cells : mapping of str to array_like
        The ratings of each group and of the control.
    unit : {"scenario", "prompt"}
        The unit that is paired.

    Returns
    -------
    DataFrame
        Index ``group``; the fields of `Bias`.
    """
    groups, control = groups_and_control(cells)
    against_control = partial(bias, control=control, unit=unit)
    biases, _ = where_defined(groups, against_control)
    names = pd.Index(biases, name="group")
    return pd.DataFrame(list(biases.values()), names, columns=list(Bias._fields))


def compare_two_rounds(
    ratings: Mapping[tuple[str, int, str], Mapping[str, ArrayLike]], level: float = 0.01
) -> tuple[pd.DataFrame, dict[tuple[str, str, str], str]]:
    """Compare the second round of each model and category with the first, by `repeatability`.

    Parameters
    ----------
    ratings : mapping
        The ratings of each group and of the control, by model, round and category.
    level : float
        The level of a family: the groups and the control of one category of one model.

    Returns
    -------
    table : DataFrame
        ``model``, ``category``, ``group`` and the columns of `repeatability`; no row of a model
        that was asked once.
    reasons : dict of str
        Why a cell is left out, by model, category and group.
    """
    tables = {}
    reasons = {}
    for (model, number, category), first in ratings.items():
        if number != 1:
            continue

        second = ratings.get((model, 2, category), {})
        pairs = {}
        for group in first:
            if group in second:
                pairs[group] = (second[group], first[group])

        tests, reasons_of_category = where_defined(pairs, _bias_of_pair)
        for group, reason in reasons_of_category.items():
            reasons[model, category, group] = reason
        if tests:
            comparable_cells = {group: first[group] for group in tests}
            tables[model, category] = repeatability(comparable_cells, second, level)

    if not tables:
        return pd.DataFrame(columns=["model", "category", "group", "difference"]), reasons
    return pd.concat(tables, names=["model", "category"]).reset_index(), reasons


def compare_controls(
    ratings: Mapping[tuple[str, int, str], Mapping[str, ArrayLike]],
) -> tuple[pd.DataFrame, dict[tuple[str, str], str]]:
    """Compare the controls of each two categories in the first round.

    Parameters
    ----------
    ratings : mapping
        The ratings of each group and of the control, by model, round and category.

    Returns
    -------
    table : DataFrame
        Index ``model`` and ``categories``, a pair. ``helpfulness`` in the first category and
        ``control``, helpfulness in the second; ``bias``, ``low``, ``high`` and ``p``; ``p_holm``,
        one family per model.
    reasons : dict of str
        Why a pair has no row, by model and pair.
    """
    controls = {}
    for (model, number, category), cells in ratings.items():
        if number == 1:
            controls[model, category] = cells[stimuli.CONTROL]

    pairs = {}
    for one, other in combinations(controls, 2):
        model, category = one
        other_model, other_category = other
        if model == other_model:
            name = f"{category} and {other_category}"
            pairs[model, name] = (controls[one], controls[other])

    tests, reasons = where_defined(pairs, _bias_of_pair)
    index = pd.MultiIndex.from_tuples(list(tests), names=["model", "categories"])
    table = pd.DataFrame(list(tests.values()), index, columns=list(Bias._fields))
    table = table[["helpfulness", "control", "bias", "low", "high", "p"]]
    if len(table):
        table["p_holm"] = table.groupby("model").p.transform(adjust, "holm")
    return table, reasons


def by_category(
    ratings: Mapping[tuple, Mapping[str, ArrayLike]],
    function: Callable[[Mapping[str, ArrayLike]], pd.DataFrame],
    names: Sequence[str],
) -> pd.DataFrame:
    """Apply a function to the ratings of every category.

    Parameters
    ----------
    ratings : mapping of tuple to mapping of str to array_like
        The ratings of each group and of the control by key, e.g. (model, round, category).
    function : callable
        It takes the ratings of one category and returns a table with a named index.
    names : sequence of str
        The names of the parts of a key.

    Returns
    -------
    DataFrame
        The rows of all tables; the parts of the key and the index come first, as columns.
    """
    tables = {key: function(cells) for key, cells in ratings.items()}
    return pd.concat(tables, names=names).reset_index()


def by_group(
    ratings: Mapping[tuple, Mapping[str, ArrayLike]], function: Callable, names: Sequence[str]
) -> pd.DataFrame:
    """Apply a function to the ratings of every group, the control among them.

    Parameters
    ----------
    ratings : mapping of tuple to mapping of str to array_like
        The ratings of each group by key, e.g. (model, round, category).
    function : callable
        It takes the ratings of one group and returns a `ScenarioMean`.
    names : sequence of str
        The names of the parts of a key.

    Returns
    -------
    DataFrame
        One row per key and group: the parts of the key, ``group``, and the fields of the result.
    """
    return by_category(ratings, partial(_rows, function=function), names)


def _rows(cells: Mapping, function: Callable) -> pd.DataFrame:
    """Tabulate the results of a function, one row per cell. A ValueError names the cell."""
    results = []
    for name, ratings in cells.items():
        try:
            results.append(function(ratings))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return pd.DataFrame(results, index=pd.Index(cells, name="group"))


def _in_family(table: pd.DataFrame, tests: str, level: float) -> pd.DataFrame:
    """Correct the rows as one family, and count its `tests` in ``family``, e.g. "5 groups"."""
    # A pair of cells that shares fewer than 2 scenarios has no p and is not a test.
    n_tests = table["p"].notna().sum()
    with_family = table.assign(family=f"{n_tests} {tests}")
    return in_family(with_family, level)


def _phrased(ratings: ArrayLike) -> Array:
    """Reshape ratings to (phrasing, scenario, wording)."""
    array = np.asarray(ratings, dtype=float)
    scenarios_by_wordings = array.shape[-2:]
    # Without an axis of phrasings, there is one phrasing.
    return array.reshape((-1, *scenarios_by_wordings))


def _units(ratings: ArrayLike, unit: str = "scenario") -> Array:
    """Average the ratings of each scenario, or of each prompt."""
    prompts = nan_mean(_phrased(ratings))
    if unit == "prompt":
        return prompts.ravel()
    return nan_mean(prompts, axis=1)


def _spreads(ratings: ArrayLike, ddof: int, phrasings: str) -> Array:
    """Compute the standard deviation over the wordings of each scenario, NaN without 2 ratings."""
    by_wording = _phrased(ratings)
    if phrasings == "averaged":
        # The axis of phrasings stays, with a length of 1.
        by_wording = nan_mean(by_wording)[None, :, :]

    counts = (~np.isnan(by_wording)).sum(axis=2, dtype=float)
    # One rating has no spread; without this line its spread would be 0 where ddof is 0.
    counts[counts < 2] = np.nan
    means = nan_mean(by_wording, axis=2)
    deviations = by_wording - means[:, :, None]
    mean_squares = nan_mean(deviations**2, axis=2)
    # A mean square divides by the count; a variance divides by count - ddof.
    variances = mean_squares * counts / (counts - ddof)
    return nan_mean(np.sqrt(variances))


def _scenario_mean(values: Array) -> ScenarioMean:
    """Average values over scenarios, without NaN, and add the interval of their mean."""
    defined = values[~np.isnan(values)]
    test = _test(defined, "scenario")
    return ScenarioMean(
        mean=test.difference,
        low=test.low,
        high=test.high,
        n=len(defined),
        left_out=len(values) - len(defined),
    )


def _test(values: Array, unit: str) -> PairedTest:
    """Test values without NaN against 0. Raise a ValueError for fewer than 2 units."""
    if len(values) < 2:
        raise ValueError(f"{len(values)} {unit}(s) with what is compared, expected at least 2")
    return paired_test(values)


def panels(table: pd.DataFrame) -> pd.Series:
    """Name the panel of Figures 1 to 3 in which each row is drawn.

    Parameters
    ----------
    table : DataFrame
        ``model`` and ``category``.

    Returns
    -------
    Series
        With the index of the table. A calibrant has a panel of its own. The real models share a
        panel, which is named after the models that were asked about the category.
    """
    is_control = table.model.map(is_calibrant)
    real_models = table[~is_control].groupby("category").model
    shared_panel = real_models.agg(_joined_labels)

    own_panel = table.model.map(label)
    return own_panel.where(is_control, table.category.map(shared_panel))


def _joined_labels(models: pd.Series) -> str:
    """Join the labels of the different models, separated by commas."""
    labels = [label(model) for model in models.unique()]
    return ", ".join(labels)


def panel_means(table: pd.DataFrame, shown: pd.Series) -> pd.DataFrame:
    """Average each group over the models of a panel: Figures 1 to 3.

    Parameters
    ----------
    table : DataFrame
        ``model``, ``category``, ``group``, ``helpfulness``, ``control``, ``significant``.
    shown : Series
        The panel of each row.

    Returns
    -------
    DataFrame
        Index ``shown``, ``category``, ``group``; the number of ``models``, their mean
        ``helpfulness``, the mean of their ``control``, and the ``share`` of the models in which the
        group differs.
    """
    rows = table.assign(shown=shown).astype({"significant": float})
    return rows.groupby(["shown", "category", "group"], sort=False).agg(
        models=("model", "nunique"),
        helpfulness=("helpfulness", "mean"),
        control=("control", "mean"),
        share=("significant", "mean"),
    )
