"""The design of Jeoung et al.: prompt x group, for one round; its parameters."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from ingroup import dictionary, models, published
from ingroup import parameters as shared
from ingroup.design import Block, Design, Message
from ingroup.inference import Call, Sampling, excerpts_of
from ingroup.inference.engine import free_sampling
from ingroup.inference.reading import Reading
from ingroup.parameters import Count, CountOrNone, Empty, MinusOne, Temperature, Texts, readable
from ingroup.studies.stereomap import stimuli
from ingroup.tables import InputError

FIRST = "EXTENDED/Warmth-Competence"  # the prompt that the ablations reduce
NO_SYSTEM_TURN = {"system": "fold"}


def _judged(files: list[str]) -> None:
    """Filled sheets can be read; what reads them takes a second to import, so only then."""
    if files:
        from ingroup.studies.stereomap.human_evaluation import score

        score(files)


class Parameters(shared.Parameters):
    """Types, ranges and choices; that groups are known, and dictionary and sheets can be read."""

    GROUPS: Annotated[Texts, readable(lambda groups: [*map(stimuli.text, groups)])]
    ORIGINAL_GROUPS: Literal["paper", "released"]
    ROUNDS: Count
    ABLATION_ROUNDS: CountOrNone
    FORM: Literal["released", "grammatical"]
    WORDING: Literal["paper", "released"]
    CALLS: Literal["together", "separate"]
    TEMPERATURE: Annotated[
        Empty | MinusOne | Temperature, Field(description="0 to 2, -1, or empty")
    ]
    INCOMPLETE: Literal["drop", "mean"]
    CLUSTERS: Count
    CLUSTER_SEED: shared.Seed
    N_INIT: Count
    KMEANS: Literal["sound", "released"]
    DICTIONARY: Annotated[str, readable(dictionary.load_lexicon)]
    MAPPINGS: Annotated[Texts, readable(lambda files: dictionary.load_mappings(*files))]
    DOCUMENTS: Literal["sound", "released"]
    LOOKUP: Literal["sound", "paper"]
    LEMMAS: Literal["sound", "paper"]
    SHEETS: Annotated[Texts, readable(_judged)]

    @model_validator(mode="after")
    def _groups_make_clusters(self) -> Self:
        extended = set(stimuli.names("EXTENDED"))
        chosen = len(extended.intersection(self.GROUPS or extended))
        if chosen < (self.CLUSTERS or 0):
            raise InputError(
                f"GROUPS has {chosen} of the groups that the EXTENDED prompts are asked for, "
                f"expected at least as many as CLUSTERS, {self.CLUSTERS}"
            )
        return self


class Inquiry(NamedTuple):
    """One prompt about one group; ``part`` is what is asked of it, "" for all in one turn."""

    group: str
    prompt: str
    part: str


def trials(
    groups: Sequence[str], prompts: Sequence[str], ablation: str = "Prompt (paper)",
    form: str = "released", calls: str = "together", wording: str = "paper",
) -> Design:  # fmt: skip
    """The design of Jeoung et al. (section 3): prompt x group, for one round.

    Arguments as of :func:`~.stimuli.chats`. One block with the factor ``inquiry`` (an `Inquiry`
    each), groups fastest, so that neighbours share the text up to the group. A round is this design
    under another seed.
    """
    how = ablation, form, wording, calls
    asked: dict[Inquiry, list[Message]] = {}
    for prompt in prompts:
        told = {group: stimuli.chats(group, prompt, *how) for group in groups}
        for part in told[groups[0]]:
            asked |= {Inquiry(group, prompt, part): told[group][part] for group in groups}
    labels = {"ablation": ablation, "form": form, "calls": calls}
    texts = "\0".join(asked[one][0]["content"] for one in asked)
    block = Block(labels, {"inquiry": tuple(asked)}, lambda c: asked[c["inquiry"]], texts)
    return Design([block])


@excerpts_of(GROUPS=[])
def calls(parameters: Mapping[str, Any]) -> list[Call]:
    """What a run asks of each of ``MODELS``: both versions, the ablations, in rounds.

    `parameters` are the notebook's. The labels of a call are its version ("EXTENDED", "ORIGINAL"),
    ablation and round; each round has a seed of its own. Ratings over choices have one round, and a
    call for the prompts that rate the same words.
    """
    p, (paper, *reduced) = parameters, stimuli.ablations()
    how, asked = (p["FORM"], p["CALLS"], p["WORDING"]), {}
    named = how[:2] if p["WORDING"] == "paper" else [*how[:2], "as", "sent"]
    chosen = set(p["GROUPS"] or stimuli.groups().group)
    for version, which in ("EXTENDED", "EXTENDED"), ("ORIGINAL", p["ORIGINAL_GROUPS"]):
        if groups := [group for group in stimuli.names(which) if group in chosen]:
            asked[version, paper] = groups, [*stimuli.prompts(version)]
    groups = [group for group in stimuli.names() if group in chosen]
    asked |= {("EXTENDED", name): (groups, [FIRST]) for name in reduced}
    source = f"{len(p['GROUPS'])}-groups" if p["GROUPS"] else "groups"
    found = []
    for model in models.asked(p):
        drawn = {}
        if p["TEMPERATURE"] == -1:  # appendix A
            drawn["temperature"] = published.sampling("stereomap", model.name)["temperature"]
        free = free_sampling(p, model.name, **drawn)
        at = "stereomap", source, model.name, model.engine
        more = {"options": NO_SYSTEM_TURN, "reading": Reading(model.reading, model.ending)}
        for number, ((version, ablation), (groups, prompts)) in enumerate(asked.items()):
            name = "-".join([version, *ablation.replace("/", "").split(), *named])
            rounds = p["ROUNDS" if ablation == paper else "ABLATION_ROUNDS"]
            labels = {"version": version, "ablation": ablation}
            if model.over_choices and rounds:
                for words, same in groupby(prompts, lambda name: stimuli.expected(name).words):
                    same = [*same]
                    part = f"{name}-{'-'.join(same[0].split('/')[1].lower().split())}"
                    design = trials(groups, same, ablation, how[0], "together", how[2])
                    sampling = over_choices(words, free)
                    found.append(Call(*at, part, design, sampling, labels | {"round": 1}, **more))
            design = trials(groups, prompts, ablation, *how)
            for turn in range(1, rounds + 1):
                seed = p["SEED"] + 1000 * turn + number
                sampling = replace(free, seed=seed)
                part = f"{name}-round{turn}"
                found.append(Call(*at, part, design, sampling, labels | {"round": turn}, **more))
    return found


def over_choices(words: Sequence[str], free: Sampling) -> Sampling:
    """Each word's rating in turn, as the lines of a list, given those before it.

    The keywords and reasons that the prompts ask for first are not there then, and with them the
    paper's chain of thought.
    """
    numbers = tuple(f" {number}" for number in range(stimuli.LOW, stimuli.HIGH + 1))
    lines = [f"{word}:" if word == "Rating" else f"- {word}:" for word in words]
    leads = (lines[0], *(f"\n{line}" for line in lines[1:]))
    return replace(free, choices=numbers, leads=leads)
