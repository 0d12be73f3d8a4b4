"""Design and parameters of Jeoung et al.: every prompt for every group, in rounds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Annotated, Any, Literal, NamedTuple, Self

import pandas as pd
from pydantic import Field, model_validator

from ingroup import dictionary, models, published
from ingroup import parameters as shared
from ingroup.design import Block, Design, Message
from ingroup.inference import Job, Sampling, recorded_with
from ingroup.inference.engine import free_sampling
from ingroup.inference.reading import Reading
from ingroup.parameters import (
    Count,
    CountOrNone,
    Empty,
    MinusOne,
    Temperature,
    Texts,
    existing,
    readable,
)
from ingroup.studies.stereomap import stimuli
from ingroup.tables import InputError

FIRST_PROMPT = "EXTENDED/Warmth-Competence"  # the prompt that the ablations reduce
NO_SYSTEM_TURN = {"system": "fold"}


def _check_sheets(files: list[str]) -> None:
    """Raise an InputError unless filled sheets can be read."""
    if files:
        # This module takes a second to import, which only runs with sheets wait for.
        from ingroup.studies.stereomap.human_evaluation import score

        score(files)


class Parameters(shared.Parameters):
    """Types, ranges and choices of the parameters, and checks of groups, dictionary and sheets."""

    GROUPS: Annotated[Texts, readable(lambda groups: list(map(stimuli.text, groups)))]
    ORIGINAL_GROUPS: Literal["paper", "released"]
    ROUNDS: Count
    ABLATION_ROUNDS: CountOrNone
    FORM: Literal["released", "grammatical"]
    WORDING: Literal["paper", "released"]
    CALLS: Literal["together", "separate"]
    TEMPERATURE: Annotated[
        Empty | MinusOne | Temperature, Field(description="a number from 0 to 2, -1, or empty")
    ]
    INCOMPLETE: Literal["drop", "mean"]
    CLUSTERS: Count
    CLUSTER_SEED: shared.Seed
    N_INIT: Count
    KMEANS: Literal["sound", "released"]
    DICTIONARY: Annotated[str, readable(dictionary.load_lexicon)]
    MAPPINGS: Annotated[
        Texts,
        existing("a CSV file with the columns keyword and word"),
        readable(lambda files: dictionary.load_mappings(*files)),
    ]
    DOCUMENTS: Literal["sound", "released"]
    LOOKUP: Literal["sound", "paper"]
    LEMMAS: Literal["sound", "paper"]
    SHEETS: Annotated[
        Texts, existing("a filled copy of the sheet of make 41"), readable(_check_sheets)
    ]

    @model_validator(mode="after")
    def _groups_make_clusters(self) -> Self:
        extended = set(stimuli.names("EXTENDED"))
        chosen = extended.intersection(self.GROUPS or extended)
        if len(chosen) < (self.CLUSTERS or 0):
            raise InputError(
                f"CLUSTERS is {self.CLUSTERS}, expected at most {len(chosen)}, the number of "
                "GROUPS that the EXTENDED prompts ask about"
            )
        return self


class GroupPrompt(NamedTuple):
    """One prompt about one group.

    ``part`` names the part of the prompt that is asked, "" for all parts.
    """

    group: str
    prompt: str
    part: str


def trials(
    groups: Sequence[str],
    prompts: Sequence[str],
    ablation: str = "Prompt (paper)",
    form: str = "released",
    calls: str = "together",
    wording: str = "paper",
) -> Design:
    """Make the design of Jeoung et al. (section 3): prompt x group, for one round.

    Parameters
    ----------
    groups, prompts : sequence of str
        Names of groups and prompts.
    ablation, form, calls, wording : str
        As in :func:`~.stimuli.chats`.

    Returns
    -------
    Design
        One block with the factor ``inquiry`` (a `GroupPrompt` each), groups fastest, so that
        neighbours share the text up to the group. A round is this design under another seed.
    """
    messages: dict[GroupPrompt, list[Message]] = {}
    for prompt in prompts:
        chats = {}
        for group in groups:
            chats[group] = stimuli.chats(group, prompt, ablation, form, wording, calls)

        # All groups are asked the same parts.
        for part in chats[groups[0]]:
            for group in groups:
                group_prompt = GroupPrompt(group, prompt, part)
                messages[group_prompt] = chats[group][part]

    # The prompts themselves stand for the templates, so that every change shows in the fingerprint.
    texts = [chat[0]["content"] for chat in messages.values()]
    block = Block(
        labels={"ablation": ablation, "form": form, "calls": calls},
        factors={"inquiry": tuple(messages)},
        render=lambda condition: messages[condition["inquiry"]],
        templates="\0".join(texts),
    )
    return Design([block])


@recorded_with(
    GROUPS=[],
    ORIGINAL_GROUPS="paper",
    FORM="released",
    WORDING="paper",
    CALLS="together",
    TEMPERATURE=-1.0,
    TOP_P=1.0,
    SEED=0,
)
def jobs(parameters: Mapping[str, Any]) -> list[Job]:
    """Plan the jobs for each of ``MODELS``: both versions and the ablations, in rounds.

    Parameters
    ----------
    parameters : mapping
        The notebook's parameters.

    Returns
    -------
    list of Job
        The labels of a job are its version ("EXTENDED", "ORIGINAL"), ablation and round. Each
        round has a seed of its own. Scored ratings have one round, and one job for all
        prompts that rate the same words.
    """
    groups = parameters["GROUPS"]
    source = f"{len(groups)}-groups" if groups else "groups"
    sections = _sections(parameters)

    every_job = []
    for model in models.entries(parameters):
        make_job = partial(
            Job,
            study="stereomap",
            source=source,
            model=model.name,
            engine=model.engine,
            options=NO_SYSTEM_TURN,
            reading=Reading(model.reading, model.ending),
        )
        sampling = _sampling(parameters, model.name)
        for number, section in enumerate(sections):
            # Where ABLATION_ROUNDS is 0, the ablations have no rounds.
            if model.is_scored and section.rounds:
                every_job += _scored_jobs(section, parameters, sampling, make_job)
            # Sections have seeds of their own.
            seeded = replace(sampling, seed=parameters["SEED"] + number)
            # Scored models are also asked in free text, because keywords can only be written.
            every_job += _text_jobs(section, parameters, seeded, make_job)
    return every_job


class _Section(NamedTuple):
    """The groups and prompts that are asked in one version and ablation."""

    version: str
    ablation: str
    groups: list[str]
    prompts: list[str]
    rounds: int

    @property
    def labels(self) -> dict[str, str]:
        """Labels of the jobs."""
        return {"version": self.version, "ablation": self.ablation}


def _sections(parameters: Mapping[str, Any]) -> list[_Section]:
    """List both versions in the paper's form, then the ablations of the prompt `FIRST_PROMPT`.

    A version without a chosen group is left out.
    """
    chosen = set(parameters["GROUPS"] or stimuli.groups().group)
    extended = [group for group in stimuli.names("EXTENDED") if group in chosen]
    original = [group for group in stimuli.names(parameters["ORIGINAL_GROUPS"]) if group in chosen]

    paper, *reduced = stimuli.ablations()
    sections = []
    for version, groups in (("EXTENDED", extended), ("ORIGINAL", original)):
        if groups:
            prompts = list(stimuli.prompts(version))
            sections.append(_Section(version, paper, groups, prompts, parameters["ROUNDS"]))

    rounds = parameters["ABLATION_ROUNDS"]
    for ablation in reduced:
        sections.append(_Section("EXTENDED", ablation, extended, [FIRST_PROMPT], rounds))
    return sections


def _sampling(parameters: Mapping[str, Any], model: str) -> Sampling:
    """Return the sampling of free text. A TEMPERATURE of -1 stands for the paper's temperature."""
    if parameters["TEMPERATURE"] != -1:
        return free_sampling(parameters, model)
    printed = published.sampling("stereomap", model)
    return free_sampling(parameters, model, temperature=printed["temperature"])


def _part_name(section: _Section, parameters: Mapping[str, Any]) -> str:
    """Name the stores of a section, without their round or prompt."""
    # The name of a folder has no slashes and no blanks.
    ablation = section.ablation.replace("/", "").split()
    name = [section.version, *ablation, parameters["FORM"], parameters["CALLS"]]
    if parameters["WORDING"] != "paper":
        name += ["as", "sent"]
    return "-".join(name)


def _scored_jobs(
    section: _Section,
    parameters: Mapping[str, Any],
    sampling: Sampling,
    make_job: Callable[..., Job],
) -> list[Job]:
    """Plan the scored jobs of a section. Neighbouring prompts with the same words share a job."""
    section_name = _part_name(section, parameters)
    jobs = []
    for words, group in groupby(
        section.prompts, lambda prompt: stimuli.expected_prompt(prompt).words
    ):
        prompts = list(group)
        # A batch bears the name of its first prompt.
        first_name = prompts[0].split("/")[1]
        prompt_name = "-".join(first_name.lower().split())

        design = trials(
            section.groups,
            prompts,
            section.ablation,
            form=parameters["FORM"],
            wording=parameters["WORDING"],
        )
        job = make_job(
            part=f"{section_name}-{prompt_name}",
            design=design,
            sampling=scored_sampling(words, sampling),
            labels=section.labels | {"round": 1},
        )
        jobs.append(job)
    return jobs


def _text_jobs(
    section: _Section,
    parameters: Mapping[str, Any],
    sampling: Sampling,
    make_job: Callable[..., Job],
) -> list[Job]:
    """Plan the jobs for free text of a section, one per round."""
    section_name = _part_name(section, parameters)
    design = trials(
        section.groups,
        section.prompts,
        section.ablation,
        form=parameters["FORM"],
        calls=parameters["CALLS"],
        wording=parameters["WORDING"],
    )

    jobs = []
    for number in range(1, section.rounds + 1):
        job = make_job(
            part=f"{section_name}-round{number}",
            design=design,
            sampling=replace(sampling, seed=sampling.seed + 1000 * number),
            labels=section.labels | {"round": number},
        )
        jobs.append(job)
    return jobs


def scored_sampling(words: Sequence[str], free: Sampling) -> Sampling:
    """Make the sampling that scores each word's rating in turn, given the ratings before it.

    The prompts ask for keywords and reasons first, the paper's chain of thought. Scored answers
    leave out both.

    Parameters
    ----------
    words : sequence of str
        The words that are rated, in the prompt's order.
    free : Sampling
        The sampling with which the same prompt is asked for free text.

    Returns
    -------
    Sampling
        With the ratings 1 to 5 as choices, and an answer prefix for each word.
    """
    numbers = range(stimuli.LOW, stimuli.HIGH + 1)
    leads: list[str] = []
    for word in words:
        # The overall rating is not an item of the list.
        line = f"{word}:" if word == "Rating" else f"- {word}:"
        # From the second word on, a lead also ends the line before it.
        leads.append(f"\n{line}" if leads else line)
    return replace(
        free,
        # A number begins with the blank that follows a colon.
        choices=tuple(f" {number}" for number in numbers),
        leads=tuple(leads),
    )


def overview(asked: Sequence[Job]) -> pd.DataFrame:
    """Count the rounds and the prompts of each part of the study.

    Parameters
    ----------
    asked : sequence of Job
        From `jobs`.

    Returns
    -------
    DataFrame
        Index ``model``, ``mode`` (scored or free text), ``version`` and ``ablation``; the
        number of ``rounds``, and of ``prompts`` in all rounds together.
    """
    rows = []
    for job in asked:
        row = {
            "model": job.model,
            "mode": job.mode,
            **job.labels,
            "prompts": len(job.design),
        }
        rows.append(row)

    by_part = pd.DataFrame(rows).groupby(["model", "mode", "version", "ablation"], sort=False)
    return by_part.agg(rounds=("round", "nunique"), prompts=("prompts", "sum"))
