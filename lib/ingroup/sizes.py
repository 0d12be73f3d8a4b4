"""Numbers of prompts and items, of a run and of the papers."""

from collections.abc import Mapping, Sequence
from typing import Any

from ingroup.contract import module_of
from ingroup.inference import Job


def n_prompts(jobs: Sequence[Job]) -> int:
    """Count the prompts of jobs.

    Parameters
    ----------
    jobs : sequence of Job
        Jobs of a study.

    Returns
    -------
    int
        All repetitions count.
    """
    return sum(len(job.design) for job in jobs)


def n_items(jobs: Sequence[Job]) -> int:
    """Count the items that jobs of a study ask about.

    Parameters
    ----------
    jobs : sequence of Job
        Jobs of a study, whose ``group_profile.items`` says what an item is.

    Returns
    -------
    int
        An item that several jobs ask about counts once.
    """
    items: set[Any] = set()
    for job in jobs:
        group_profile = module_of(job.study, "group_profile", "items")
        for block in job.design.blocks:
            items.update(group_profile.items(block))
    return len(items)


def sizes_of_paper(study: str, jobs: Sequence[Job], printed: Mapping[str, str]) -> tuple[int, int]:
    """Count the prompts and the items of a paper for one of its models.

    Parameters
    ----------
    study : str
        The study, whose ``group_profile.extent`` counts.
    jobs : sequence of Job
        All jobs of the study's whole design, for one model.
    printed : mapping
        The numbers in the paper's text, by their names in ``data/judgements/claims.csv``.

    Returns
    -------
    tuple of int
        The prompts and the items.
    """
    group_profile = module_of(study, "group_profile", "extent")
    return group_profile.extent(jobs, printed)
