"""The design of Jeoung et al.: prompt x group, for one round."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ingroup import published
from ingroup.design import Block, Design, Message
from ingroup.inference import Call, Sampling
from ingroup.studies.stereomap import stimuli

FIRST = "EXTENDED/Warmth-Competence"  # the prompt that the ablations reduce


class Inquiry(NamedTuple):
    """One prompt about one group; ``part`` is what is asked of it, "" for all in one turn."""

    group: str
    prompt: str
    part: str


def trials(
    groups: Sequence[str],
    prompts: Sequence[str],
    ablation: str = "Prompt (paper)",
    form: str = "released",
    calls: str = "together",
) -> Design:
    """The design of Jeoung et al. (section 3): prompt x group, for one round.

    Names as in `stimuli`. `calls` "together" asks all parts of a prompt in one turn, as
    gpt-3.5-turbo was asked, "separate" each in a chat of its own, as text-davinci-003 was. One
    block with the factor ``inquiry`` (an `Inquiry` each), groups fastest, so that neighbours share
    the text up to the group. A round is this design under another seed.
    """

    def chats(group: str, prompt: str) -> Mapping[str, list[Message]]:
        if calls == "separate":
            return stimuli.separate_messages(group, prompt, ablation, form)
        return {"": stimuli.messages(group, prompt, ablation, form)}

    asked: dict[Inquiry, list[Message]] = {}
    for prompt in prompts:
        told = {group: chats(group, prompt) for group in groups}
        for part in told[groups[0]]:
            asked |= {Inquiry(group, prompt, part): told[group][part] for group in groups}
    labels = {"ablation": ablation, "form": form, "calls": calls}
    texts = "\0".join(asked[one][0]["content"] for one in asked)
    block = Block(labels, {"inquiry": tuple(asked)}, lambda c: asked[c["inquiry"]], texts)
    return Design([block])


def calls(parameters: Mapping[str, Any]) -> list[Call]:
    """What a run asks of ``MODEL`` and ``CONTROL``: both versions, the ablations, in rounds.

    `parameters` are the notebook's. The labels of a call are its version ("EXTENDED", "ORIGINAL"),
    ablation and round; each round has a seed of its own.
    """
    p, (paper, *reduced) = parameters, stimuli.ablations()
    how, asked = (p["FORM"], p["CALLS"]), {}
    chosen = set(p["GROUPS"] or stimuli.groups().group)
    for version, which in ("EXTENDED", "EXTENDED"), ("ORIGINAL", p["ORIGINAL_GROUPS"]):
        if groups := [group for group in stimuli.names(which) if group in chosen]:
            asked[version, paper] = trials(groups, [*stimuli.prompts(version)], paper, *how)
    groups = [group for group in stimuli.names() if group in chosen]
    asked |= {("EXTENDED", name): trials(groups, [FIRST], name, *how) for name in reduced}
    temperature = p["TEMPERATURE"]
    if temperature < 0:  # appendix A
        temperature = published.sampling("stereomap", p["MODEL"])["temperature"]
    source, found = f"{len(p['GROUPS'])}-groups" if p["GROUPS"] else "groups", []
    for model in filter(None, (p["MODEL"], p["CONTROL"])):
        for number, ((version, ablation), design) in enumerate(asked.items()):
            name = "-".join([version, *ablation.replace("/", "").split(), *how])
            for turn in range(1, p["ROUNDS" if ablation == paper else "ABLATION_ROUNDS"] + 1):
                seed = p["SEED"] + 1000 * turn + number
                sampling = Sampling(temperature, p["TOP_P"], p["MAX_TOKENS"], seed)
                labels = {"version": version, "ablation": ablation, "round": turn}
                at = "stereomap", source, model, p["ENGINE"], f"{name}-round{turn}"
                found.append(Call(*at, design, sampling, labels))
    return found
