"""Group profiles: the groups that several studies ask about, and their effects in each study.

A study's ``group_profile.py`` has:

``MEASURES``, ``views``
    The study's measures of a group by name, and each as a `View`.
``claims``, ``paths``
    Its headline claims on one path of a multiverse, and on all paths.
``power``
    The reported tests of a run with the parameters ``planned``, each as `PlannedTest`. The spread
    comes from the answers of a model that was asked with other parameters (``recorded``).
``effects``
    Its headline numbers item by item, in which `compare_models` compares two models.
``items``, ``extent``
    The items of its design, and the numbers of prompts and items that the paper has
    (:mod:`ingroup.sizes`).

The first functions take the ``parameters`` of the study's notebook
(:func:`ingroup.notebook.parameters_of_run`) and one ``model`` of these. They also take ``groups``,
from an identity to its shared group, and the ``options`` of the synthesis. Given ``file`` (a
``ground_truth.yaml``), ``views`` takes its answers instead of the stored answers. They raise
StoreError if there are no stored answers.
"""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ingroup import paths
from ingroup.inference import Job, stored
from ingroup.inference.reading import FREE, Reading, readings
from ingroup.stats import effects as standardised
from ingroup.stats import multiverse
from ingroup.stats.paired import paired_test
from ingroup.stats.permutation import own_generator
from ingroup.tables import at, check, once, read_table, wrong

SHARED_GROUP_COLUMNS = ["study", "category", "group", "identity"]
PROFILE_COLUMNS = [
    "model",
    "study",
    "measure",
    "category",
    "group",
    "effect",
    "low",
    "high",
    "items",
    "ground_truth",
    "model_error",
    "verdict",
]
AGREEMENT_COLUMNS = [
    "model",
    "one",
    "other",
    "n",
    "rho",
    "low",
    "high",
    "p",
    "p_holm",
    "ground_truth_rho",
    "model_error",
    "verdict",
]


class View(NamedTuple):
    """One measure of the shared groups, as `ingroup.stats.effects.measure` takes it.

    Attributes
    ----------
    measure : str
        The name of the measure.
    items : DataFrame
        Items by groups, NaN where an item says nothing of a group.
    sd : float
        Standard deviation of the single answers from which the items come, in their unit.
    together : bool
        Whether all groups are asked with the same items.
    draw : str
        Views of a study with the same name take the same draws of items.
    """

    measure: str
    items: pd.DataFrame
    sd: float
    together: bool = True
    draw: str = ""


class PlannedTest(NamedTuple):
    """A reported test of a study, as ``make plan`` plans it.

    Attributes
    ----------
    effect : str
        The effect that is tested, with its unit.
    items : str
        The name of the items, e.g. "scenarios".
    n : int
        The planned number of items.
    name : str
        The test.
    level : float
        The level of one test, which Holm's correction asks of the smallest p of a family.
    smallest : float
        The smallest effect that most runs find, in standard deviations; infinite if there is none.
    spread : float
        The standard deviation in recorded answers, in the unit of the effect.
    floor : str
        A sentence on the smallest p that the study's permutation test can give; "" without one.
    """

    effect: str
    items: str
    n: int
    name: str
    level: float
    smallest: float
    spread: float
    floor: str = ""


class MeasuredEffects(NamedTuple):
    """The effects and their draws, as `measure_effects` describes them."""

    effects: pd.DataFrame
    draws: dict[tuple[str, str], pd.DataFrame]


def measure_effects(
    views: Mapping[tuple[str, str], Sequence[View]],
    taught: Mapping[tuple[str, str], Sequence[View]],
    seed: int,
    n_resamples: int,
) -> MeasuredEffects:
    """Compute the standardised effects of all groups in all studies, with their intervals.

    Parameters
    ----------
    views : mapping of tuple to sequence of View
        The measures of each study for each model, by model and study.
    taught : mapping of tuple to sequence of View
        The same measures of what calibrants were taught. Other models have none, and a calibrant
        may have none of a study.
    seed : int
        Each study, and each ``draw`` of its views, has its own random numbers from this seed.
    n_resamples : int
        The number of draws.

    Returns
    -------
    effects : DataFrame
        ``group``, ``effect``, ``low``, ``high``, ``items``, ``model``, ``study``, ``measure`` and
        ``ground_truth``, the effect that was taught, NaN for a model that was taught none.
    draws : dict of DataFrame
        The effect of each group in each draw, by model and measure.
    """
    effects = []
    draws: dict[tuple[str, str], list[pd.DataFrame]] = {}
    for (model, study), views_of_model in views.items():
        # Nothing was taught to a real model, nor about questions that a user adds.
        views_of_taught = taught.get((model, study), [])
        for view, view_of_taught in zip_longest(views_of_model, views_of_taught):
            if view.items.columns.empty:
                continue

            # Measures of the same items share their draws, so that they can be compared.
            rng = own_generator(seed, study, view.draw)
            of_view = standardised.measure(view.items, view.sd, rng, n_resamples, view.together)
            rows = of_view.effects.assign(model=model, study=study, measure=view.measure)
            rows["ground_truth"] = np.nan
            if view_of_taught is not None:
                # True items are divided by the SD of the model's answers, not by their own. A
                # model that always gives one answer has the SD 0.
                sd = view.sd or 1
                rows["ground_truth"] = view_of_taught.items.mean() / sd
            effects.append(rows.reset_index())
            draws.setdefault((model, view.measure), []).append(of_view.draws)

    table = pd.DataFrame(columns=[name for name in PROFILE_COLUMNS if name != "category"])
    if effects:
        table = pd.concat(effects, ignore_index=True)
    joined = {key: pd.concat(parts, axis=1) for key, parts in draws.items()}
    return MeasuredEffects(table, joined)


def group_profiles(effects: pd.DataFrame, shared: pd.DataFrame) -> pd.DataFrame:
    """Select the effects of groups that at least two studies asked about.

    Parameters
    ----------
    effects : DataFrame
        From `measure_effects`.
    shared : DataFrame
        From `shared_groups`, whose order the groups take.

    Returns
    -------
    DataFrame
        The columns of `PROFILE_COLUMNS`. ``model_error`` is the effect minus the ground truth, and
        ``verdict`` comes from :func:`ingroup.stats.effects.coverage_text`.
    """
    category_of = shared.drop_duplicates("group").set_index("group").category
    table = effects.assign(
        category=effects.group.map(category_of),
        model_error=effects.effect - effects.ground_truth,
        verdict=standardised.coverage_text(effects.ground_truth, effects.low, effects.high),
    )

    has_effect = table.effect.notna()
    n_studies = table[has_effect].groupby("group").study.nunique()
    of_several = n_studies.index[n_studies > 1]
    is_shown = table.group.isin(of_several) & table.category.notna()

    # Groups take the order of `shared`; a stable sort keeps models and measures in theirs.
    order = category_of.index.get_indexer
    return table[is_shown].sort_values("group", key=order, kind="stable")[PROFILE_COLUMNS]


def own_errors(effects: pd.DataFrame) -> pd.DataFrame:
    """Sum up by how far calibrants miss the effects that they were taught.

    Parameters
    ----------
    effects : DataFrame
        From `group_profiles`.

    Returns
    -------
    DataFrame
        Index ``model`` and ``measure``. ``own_error`` is the root mean square of ``model_error``,
        ``effects`` the number of effects, and ``covers`` the number of effects whose interval holds
        the ground truth. Without a calibrant the table has no row.
    """
    judged = effects[effects.verdict != ""]
    judged = judged.assign(
        square=judged.model_error.astype(float) ** 2,
        is_covered=judged.verdict == "covers the ground truth",
    )
    table = judged.groupby(["model", "measure"], sort=False).agg(
        own_error=("square", "mean"),
        effects=("verdict", "size"),
        covers=("is_covered", "sum"),
    )
    table["own_error"] = np.sqrt(table.own_error)
    return table


def agreement(
    effects: pd.DataFrame,
    draws: Mapping[tuple[str, str], pd.DataFrame],
    models: Sequence[str],
    seed: int,
    n_permutations: int,
) -> pd.DataFrame:
    """Correlate every two measures of each model, beside the correlations of the ground truth.

    Parameters
    ----------
    effects : DataFrame
        From `group_profiles`.
    draws : mapping of tuple to DataFrame
        From `measure_effects`.
    models : sequence of str
        The models. A model with a single measure is left out.
    seed : int
        As in :func:`ingroup.stats.effects.rank_correlations`.
    n_permutations : int
        As in :func:`ingroup.stats.effects.rank_correlations`.

    Returns
    -------
    DataFrame
        The columns of `AGREEMENT_COLUMNS`: the columns of
        :func:`ingroup.stats.effects.rank_correlations`, ``ground_truth_rho`` over the same groups,
        ``model_error`` and ``verdict`` as in `group_profiles`.
    """
    tables = []
    for model in models:
        rows = effects[effects.model == model]
        by_measure = rows.pivot(index="group", columns="measure", values="effect")
        # `pivot` sorts the measures by name; the draws have them in the order of the studies.
        draws_of_model = {}
        for (name, measure), of_measure in draws.items():
            if name == model and measure in by_measure:
                draws_of_model[measure] = of_measure
        if len(draws_of_model) < 2:
            continue

        by_measure = by_measure[list(draws_of_model)]
        table = standardised.rank_correlations(by_measure, draws_of_model, seed, n_permutations)
        taught = rows.pivot(index="group", columns="measure", values="ground_truth")
        # The true correlation is over the same groups, and needs as many of them.
        is_asked = by_measure.notna()
        ground_truth_rho = taught.where(is_asked).corr(
            "spearman", min_periods=standardised.LEAST_PAIRS
        )
        pairs = zip(table.one, table.other, strict=True)
        table["ground_truth_rho"] = [ground_truth_rho.loc[pair] for pair in pairs]
        table["model_error"] = table.rho - table.ground_truth_rho
        table["verdict"] = standardised.coverage_text(table.ground_truth_rho, table.low, table.high)
        tables.append(table.assign(model=model))

    if not tables:
        return pd.DataFrame(columns=AGREEMENT_COLUMNS)
    return pd.concat(tables)[AGREEMENT_COLUMNS]


def sum_up_paths(multiverses: Mapping[str, pd.DataFrame]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compute the share of the paths on which each claim of each model stands.

    Parameters
    ----------
    multiverses : mapping of str to DataFrame
        The paths of all models by study: a column ``model``, then the columns of
        :func:`ingroup.stats.multiverse.evaluate`.

    Returns
    -------
    shares : DataFrame
        :func:`ingroup.stats.multiverse.shares`, with the levels ``model`` and ``study`` before its
        own.
    options : DataFrame
        :func:`ingroup.stats.multiverse.by_option`, with the same levels before its own.
    """
    shares = {}
    options = {}
    for study, table in multiverses.items():
        # The choices of a study stand between the claim and the correction.
        first = table.columns.get_loc("claim") + 1
        last = table.columns.get_loc("correction")
        choices = table.columns[first:last]
        for model, paths_of_model in table.groupby("model", sort=False):
            shares[model, study] = multiverse.shares(paths_of_model)
            options[model, study] = multiverse.by_option(paths_of_model, choices)

    levels = ["model", "study"]
    return pd.concat(shares, names=levels), pd.concat(options, names=levels)


def compare_models(one: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """Compare two models over the items that both answered, effect by effect.

    Parameters
    ----------
    one, other : DataFrame
        ``effects`` of a study: items by effects, in the unit of the study, NaN where there is none.

    Returns
    -------
    DataFrame
        One row for each effect that both models have: ``effect``; ``one`` and ``other``, its means
        over the shared items; their ``difference`` with its interval ``low`` to ``high``; ``p`` of
        the paired t-test over items (:func:`ingroup.stats.paired.paired_test`); ``items``, their
        number. The items are a sample; names and phrasings are not.

    Notes
    -----
    The interval holds the difference in .94 to .95 of simulations with 79 verdicts or 103
    heavy-tailed scenarios (``make calibration``). It holds it in .81 where two models differ in 2
    of 100 verdicts, and in .82 where items come in pairs that are alike.
    """
    items = one.index.intersection(other.index)
    rows = []

    for effect in one.columns.intersection(other.columns, sort=False):
        pairs = pd.DataFrame({"one": one.loc[items, effect], "other": other.loc[items, effect]})
        # An item may have one effect and lack another, so pairs are chosen effect by effect.
        pairs = pairs.dropna()
        if pairs.empty:
            continue

        test = paired_test(pairs.one, pairs.other)
        row = {
            "effect": effect,
            **pairs.mean(),
            "difference": test.difference,
            "low": test.low,
            "high": test.high,
            "p": test.pvalue,
            "items": test.n,
        }
        rows.append(row)

    columns = ["effect", "one", "other", "difference", "low", "high", "p", "items"]
    return pd.DataFrame(rows, columns=columns)


def decisive_choices(shares: pd.DataFrame, options: pd.DataFrame) -> pd.DataFrame:
    """Find the choice that matters most to each claim that some paths show and others do not.

    Parameters
    ----------
    shares : DataFrame
        Index ``model``, ``study``, ``claim``; ``stands`` and ``reversed``, in percent of the paths,
        as of :func:`ingroup.stats.multiverse.shares`.
    options : DataFrame
        The same percentages under each option: further levels ``choice`` and ``option``, as of
        :func:`ingroup.stats.multiverse.by_option`.

    Returns
    -------
    DataFrame
        Index as `shares`, then ``it`` ("stands" or "reversed") and ``choice``, the choice whose
        options differ most. ``apart`` is the largest minus the smallest share of paths over its
        options, in percentage points. ``share of the paths under each option (%)`` has all shares
        as one text, or "cannot be told" where no path could show the claim. The claims that depend
        most on a choice come first.
    """
    verdicts = ["stands", "reversed"]
    claim = list(shares.index.names)
    is_mixed = (shares[verdicts] > 0) & (shares[verdicts] < 100)
    contested = shares.index[is_mixed.any(axis=1)]

    # There is one row per claim, verdict (stands or reversed), choice and option.
    by_verdict = options[verdicts].rename_axis(columns="it")
    rows = by_verdict.stack().rename("share").reset_index()
    claim_of_row = pd.MultiIndex.from_frame(rows[claim])
    rows = rows[claim_of_row.isin(contested)]

    percent = rows.share.map("{:.0f}".format).astype(str)
    # Under some options, no path could show the claim, so there is no share.
    percent = percent.mask(rows.share.isna(), "cannot be told")
    under_each = "share of the paths under each option (%)"
    rows[under_each] = rows.option + ": " + percent

    # A row has the smallest and the largest share over the options of a choice, and all as a text.
    choices = rows.groupby([*claim, "it", "choice"], sort=False)
    table = choices.agg({"share": ["min", "max"], under_each: "; ".join})
    table.columns = ["min", "max", under_each]
    table.insert(0, "apart", table.pop("max") - table.pop("min"))

    # After sorting, the first row of each claim is its most decisive choice.
    table = table.sort_values("apart", ascending=False, kind="stable").round()
    return table.groupby(claim, sort=False).head(1)


def rules(jobs: Sequence[Job]) -> tuple[str, ...]:
    """List the rules by which replies are parsed.

    Parameters
    ----------
    jobs : sequence of Job
        Jobs of one model, at least one, all scored or none.

    Returns
    -------
    tuple of str
        One rule for scored answers, which have no text, and two for free text.
    """
    if jobs[0].is_scored:
        return ("sound",)
    return ("sound", "released")


def ways_to_read(jobs: Sequence[Job]) -> dict[str, Reading]:
    """List the readings that all jobs of one model allow.

    Parameters
    ----------
    jobs : sequence of Job
        Jobs of one model, with stored answers.

    Returns
    -------
    dict of Reading
        By name. Free text has one reading, named "free". Scored answers have the readings of
        :func:`ingroup.inference.reading.readings`.

    Raises
    ------
    StoreError
        If scored answers are not stored.
    """
    if not jobs[0].is_scored:
        return {str(FREE): FREE}

    of_first, *of_others = [readings(stored(job), job.sampling) for job in jobs]
    shared = {}
    for reading in of_first:
        if all(reading in of_job for of_job in of_others):
            shared[str(reading)] = reading
    return shared


def shared_groups(file: Path = paths.STIMULI / "shared_groups.csv") -> pd.DataFrame:
    """Read the identities of each study that belong to a shared group.

    Parameters
    ----------
    file : Path
        A CSV file with `SHARED_GROUP_COLUMNS`.

    Returns
    -------
    DataFrame
        `SHARED_GROUP_COLUMNS`. Identities are named as in the study's own files.

    Raises
    ------
    InputError
        For an empty cell; for an identity that a study has twice; for a group in two categories.
    """
    table = read_table(file, SHARED_GROUP_COLUMNS)[SHARED_GROUP_COLUMNS]
    for column in SHARED_GROUP_COLUMNS:
        check(file, table[column], table[column] != "", "a text")
    once(file, table[["study", "identity"]])

    # This is, for each row, the category in which its group stands first.
    first_category = table.groupby("group").category.transform("first")
    for line, row in table[table.category != first_category].iterrows():
        categories = f"{row.group!r} in {row.category!r} and {first_category[line]!r}"
        raise wrong(at(file, line), categories, "one category")

    return table.reset_index(drop=True)
