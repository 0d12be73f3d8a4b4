"""How much is asked: prompts and items of a run, and of the papers."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from ingroup.inference import Call


def n_prompts(calls: Sequence[Call]) -> int:
    """Count the prompts of calls.

    Parameters
    ----------
    calls : sequence of Call
        Calls of a study.

    Returns
    -------
    int
        All repetitions count.
    """
    return sum(len(call.design) for call in calls)


def n_items(calls: Sequence[Call]) -> int:
    """Count the items that calls of a study ask about.

    Parameters
    ----------
    calls : sequence of Call
        Calls of a study, whose ``lens.items`` says what an item is.

    Returns
    -------
    int
        An item that several calls ask about counts once.
    """
    items: set[Any] = set()
    for call in calls:
        lens = import_module(f"ingroup.studies.{call.study}.lens")
        for block in call.design.blocks:
            items.update(lens.items(block))
    return len(items)


def of_paper(study: str, calls: Sequence[Call], printed: Mapping[str, str]) -> tuple[int, int]:
    """Count the prompts of a paper for one of its models, and its items.

    Parameters
    ----------
    study : str
        The study, whose ``lens.extent`` counts.
    calls : sequence of Call
        All calls of its whole design, for one model.
    printed : mapping
        The numbers in the paper's text, by their names in ``data/judgements/claims.csv``.

    Returns
    -------
    tuple of int
        The prompts and the items.
    """
    lens = import_module(f"ingroup.studies.{study}.lens")
    return lens.extent(calls, printed)
