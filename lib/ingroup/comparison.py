"""Comparison of models: their effects, the pairs that are compared, and the figure."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from ingroup import figures, models
from ingroup.contract import module_of
from ingroup.inference import EngineError, StoreError, rated_by
from ingroup.synthesis_figures import claim_name

PAIR_COLUMNS = ["study", "model", "other_model"]

# A study and a model, as tables name it.
Key = tuple[str, str]


class ModelEffects(NamedTuple):
    """The effects of the models that are compared, study by study.

    Attributes
    ----------
    effects : dict of DataFrame
        The items by effects of a study's ``group_profile``, by study and model.
    items : DataFrame
        ``study``, ``model``, ``reading``, ``effect`` and how many ``items`` have a value.
    missing : DataFrame
        ``study`` and ``model`` that cannot be compared, with the ``reason``.
    """

    effects: dict[Key, pd.DataFrame]
    items: pd.DataFrame
    missing: pd.DataFrame


def read_effects(
    values_of: Mapping[str, Mapping[str, Any]], entries: Sequence[str]
) -> ModelEffects:
    """Read the effects of models from their stored answers.

    Parameters
    ----------
    values_of : mapping
        The parameters of each study's notebook, by study.
    entries : sequence of str
        The models as in ``MODELS``, each with or without its engine.

    Returns
    -------
    Read
        The effects, study by study. A model without stored answers is missing.
    """
    effects = {}
    items = []
    missing = []

    for study, values in values_of.items():
        group_profile = module_of(study, "group_profile", "effects")
        for entry in entries:
            of_model = {**values, "MODELS": [entry]}
            model, _ = models.split_entry(entry)
            named = models.without_place(entry)
            try:
                table = group_profile.effects(of_model, model)
            except (StoreError, EngineError) as error:
                reason = str(error).replace(model, models.without_place(model))
                missing.append({"study": study, "model": named, "reason": reason})
                continue

            effects[study, named] = table
            first_job, *_ = rated_by(model, group_profile.design.jobs(of_model))
            for effect, number in table.count().items():
                row = {
                    "study": study,
                    "model": named,
                    "reading": first_job.read_as,
                    "effect": effect,
                    "items": number,
                }
                items.append(row)

    return ModelEffects(
        effects,
        pd.DataFrame(items, columns=["study", "model", "reading", "effect", "items"]),
        pd.DataFrame(missing, columns=["study", "model", "reason"]),
    )


def pairs(keys: Sequence[Key], n_models: int) -> list[tuple[str, str, str]]:
    """Select the pairs of models that are compared.

    Parameters
    ----------
    keys : sequence of tuple
        The study and model of each table of effects.
    n_models : int
        How many models the run names.

    Returns
    -------
    list of tuple
        Study, model and other model. In a run of more than two models, a control is compared only
        with other controls: a built-in bias would differ from any real model's.
    """
    compared = []
    for (study, model), (other_study, other_model) in combinations(keys, 2):
        if study != other_study:
            continue
        are_of_one_kind = _is_control(model) == _is_control(other_model)
        if n_models == 2 or are_of_one_kind:
            compared.append((study, model, other_model))
    return compared


def _is_control(entry: str) -> bool:
    """Tell whether an entry of ``MODELS`` names a calibrant."""
    model, _ = models.split_entry(entry)
    return models.is_calibrant(model)


def join_comparisons(tables: Mapping[tuple[str, str, str], pd.DataFrame]) -> pd.DataFrame:
    """Join the comparisons of pairs of models.

    Parameters
    ----------
    tables : mapping
        A table of :func:`ingroup.synthesis.compare_models` with ``p_holm`` for each of `pairs`.

    Returns
    -------
    DataFrame
        `PAIR_COLUMNS`, then the columns of the tables. No rows where nothing is compared.
    """
    if not tables:
        return pd.DataFrame(columns=[*PAIR_COLUMNS, "effect", "difference", "p", "p_holm"])
    table = pd.concat(tables, names=PAIR_COLUMNS)
    table = table.reset_index(PAIR_COLUMNS)
    return table.reset_index(drop=True)


def counts(differences: pd.DataFrame, alpha: float = 0.05) -> pd.DataFrame:
    """Count the effects in which two models differ, and in which direction.

    Parameters
    ----------
    differences : DataFrame
        The table of `join_comparisons`.
    alpha : float
        An effect differs if its ``p_holm`` is below this level.

    Returns
    -------
    DataFrame
        One row per pair, which is the index: how many ``effects`` were compared, and in how many
        the first and the second model have more.
    """
    is_beyond = differences.p_holm < alpha
    marked = differences.assign(
        first_has_more=is_beyond & (differences.difference > 0),
        second_has_more=is_beyond & (differences.difference < 0),
    )
    by_pair = marked.groupby(PAIR_COLUMNS, sort=False)
    return by_pair.agg(
        effects=("effect", "size"),
        first_has_more=("first_has_more", "sum"),
        second_has_more=("second_has_more", "sum"),
    )


def model_title(entry: str) -> str:
    """Name a model for a figure, with its engine where the entry names one.

    Parameters
    ----------
    entry : str
        A model as in ``MODELS``.

    Returns
    -------
    str
        For example "Gemma-3-270M (vllm)".
    """
    model, engine = models.split_entry(entry)
    name = models.label(model)
    return f"{name} ({engine})" if entry.endswith(f"@{engine}") else name


def draw(rows: pd.DataFrame, unit: str) -> Figure:
    """Draw the differences of one study, one panel per pair and one line per effect.

    Parameters
    ----------
    rows : DataFrame
        Rows of `join_comparisons`. A dot is filled if its ``p_holm`` is below 0.05.
    unit : str
        The effect and its unit, for the axis.

    Returns
    -------
    Figure
        Two columns wide.
    """
    drawn = rows.assign(
        line=rows.effect.map(claim_name),
        pair=rows.model.map(model_title) + "\nminus " + rows.other_model.map(model_title),
        is_beyond=rows.p_holm < 0.05,
    )

    fig = figures.intervals(
        drawn,
        x="difference",
        y="line",
        facet="pair",
        filled="is_beyond",
        xlabel=f"difference in {unit}",
        columns=4,
        margin=1.35,
    )
    for ax in fig.axes:
        # Two names of models stand above a narrow panel.
        ax.title.set_fontsize(figures.points(6))

    dot = {"linestyle": "", "marker": "o", "markersize": 3.5, "color": figures.COLOURS[0]}
    looks = {
        "p < 0.05 after Holm's correction": dot,
        "not so": dot | {"markerfacecolor": "white"},
        "95 % interval": {"color": figures.COLOURS[0], "linewidth": 0.8},
    }
    study = rows.study.iloc[0].replace("_", " ")
    figures.legend_of_lines(
        fig,
        looks,
        title=f"{study}: difference of two models",
        title_fontsize=figures.points(8),
    )
    return fig
