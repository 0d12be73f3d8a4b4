"""The design of Jeoung et al.: prompt x group, for one round."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ingroup import published
from ingroup.design import Block, Design, Message
from ingroup.inference import Call, Sampling
from ingroup.studies.stereomap import stimuli

Calls = Literal["together", "separate"]

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
    calls: Calls = "together",
) -> Design:
    """The design of Jeoung et al. (section 3): prompt x group, for one round.

    Names as in `stimuli`. `calls` "together" asks all parts of a prompt in one turn, as
    gpt-3.5-turbo was asked, "separate" each in a chat of its own, as text-davinci-003 was.
    One block with the factor ``inquiry`` (an `Inquiry` each), groups fastest, so that neighbours
    share the text up to the group. A round is this design under another seed. ValueError for other
    calls, InputError for an unknown group, prompt, ablation or form.
    """
    if calls not in ("together", "separate"):
        raise ValueError(f"calls is {calls!r}, expected 'together' or 'separate'")

    def chats(group: str, prompt: str) -> Mapping[str, list[Message]]:
        if calls == "separate":
            return stimuli.separate_messages(group, prompt, ablation, form)
        return {"": stimuli.messages(group, prompt, ablation, form)}

    asked = {  # all of it, so that what cannot be asked is said before anything is
        Inquiry(group, prompt, part): chat
        for prompt in prompts
        for group in groups
        for part, chat in chats(group, prompt).items()
    }
    order = list(dict.fromkeys((one.prompt, one.part) for one in asked))
    inquiries = sorted(asked, key=lambda one: order.index((one.prompt, one.part)))

    labels = {"ablation": ablation, "form": form, "calls": calls}
    texts = "\0".join(asked[one][0]["content"] for one in inquiries)
    return Design(
        [Block(labels, {"inquiry": tuple(inquiries)}, lambda c: asked[c["inquiry"]], texts)]
    )


def calls(parameters: Mapping[str, Any]) -> list[Call]:
    """What a run asks of ``MODEL`` and ``CONTROL``: both versions, the ablations, in rounds.

    `parameters` are the notebook's. The labels of a call are its version ("EXTENDED", "ORIGINAL"),
    ablation and round; each round has a seed of its own.
    """
    form, together = parameters["FORM"], parameters["CALLS"]
    paper, *reduced = stimuli.ablations()
    chosen, asked = parameters["GROUPS"], {}
    for version, which in (("EXTENDED",) * 2, ("ORIGINAL", parameters["ORIGINAL_GROUPS"])):
        groups = [group for group in stimuli.names(which) if group in (chosen or [group])]
        if groups:
            prompts = list(stimuli.prompts(version))
            asked[version, paper] = trials(groups, prompts, paper, form, together)
    groups = [group for group in stimuli.names() if group in (chosen or [group])]
    for ablation in reduced if parameters["ABLATION_ROUNDS"] else ():
        asked["EXTENDED", ablation] = trials(groups, [FIRST], ablation, form, together)
    temperature = parameters["TEMPERATURE"]
    if temperature < 0:  # appendix A
        davinci = published.model_of("stereomap", parameters["MODEL"]) == "DAVINCI"
        temperature = 0.5 if davinci else 1.0
    found = []
    source, engine = f"{len(chosen)}-groups" if chosen else "groups", parameters["ENGINE"]
    for model in filter(None, (parameters["MODEL"], parameters["CONTROL"])):
        for number, ((version, ablation), design) in enumerate(asked.items()):
            name = "-".join([version, *ablation.replace("/", "").split(), form, together])
            rounds = parameters["ROUNDS" if ablation == paper else "ABLATION_ROUNDS"]
            for turn in range(1, rounds + 1):
                seed = parameters["SEED"] + 1000 * turn + number
                sampling = Sampling(
                    temperature, parameters["TOP_P"], parameters["MAX_TOKENS"], seed
                )
                labels = {"version": version, "ablation": ablation, "round": turn}
                part = f"{name}-round{turn}"
                found.append(
                    Call("stereomap", source, model, engine, part, design, sampling, labels)
                )
    return found
