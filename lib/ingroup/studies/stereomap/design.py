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

    Parameters
    ----------
    groups : sequence of str
        Names as in :func:`ingroup.studies.stereomap.stimuli.names`.
    prompts : sequence of str
        Names as in :func:`ingroup.studies.stereomap.stimuli.prompts`.
    ablation, form : str
        See :func:`ingroup.studies.stereomap.stimuli.messages`.
    calls : {"together", "separate"}
        "together" asks all parts of a prompt in one turn, as gpt-3.5-turbo was asked; "separate"
        each in a chat of its own, as text-davinci-003 was.

    Returns
    -------
    Design
        One block with the factor ``inquiry`` (levels of :class:`Inquiry`). Groups change fastest,
        so neighbours share the text up to the group. A round is this design under another seed.

    Raises
    ------
    ValueError
        For other calls.
    ingroup.studies.stereomap.stimuli.StimulusError
        For an unknown group, prompt, ablation or form.
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

    def render(condition: Mapping[str, Any]) -> list[Message]:
        return asked[condition["inquiry"]]

    labels = {"ablation": ablation, "form": form, "calls": calls}
    texts = "\0".join(asked[one][0]["content"] for one in inquiries)
    return Design([Block(labels, {"inquiry": tuple(inquiries)}, render, texts)])


def calls(parameters: Mapping[str, Any]) -> list[Call]:
    """What a run asks of ``MODEL`` and ``CONTROL``: both versions, the ablations, in rounds.

    Parameters
    ----------
    parameters : mapping
        The notebook's.

    Returns
    -------
    list of Call
        One a model, version ("EXTENDED", "ORIGINAL"), ablation and round, which are its labels;
        each round has a seed of its own.
    """
    form, together = parameters["FORM"], parameters["CALLS"]
    paper, *reduced = stimuli.ablations()
    groups = {
        version: [g for g in stimuli.names(which) if g in (parameters["GROUPS"] or [g])]
        for version, which in (("EXTENDED",) * 2, ("ORIGINAL", parameters["ORIGINAL_GROUPS"]))
    }
    asked = {
        (version, paper): trials(some, list(stimuli.prompts(version)), paper, form, together)
        for version, some in groups.items()
        if some
    }
    if parameters["ABLATION_ROUNDS"]:
        for ablation in reduced:
            asked["EXTENDED", ablation] = trials(
                groups["EXTENDED"], [FIRST], ablation, form, together
            )
    temperature = parameters["TEMPERATURE"]
    if temperature < 0:  # appendix A
        davinci = published.model_of("stereomap", parameters["MODEL"]) == "DAVINCI"
        temperature = 0.5 if davinci else 1.0
    found = []
    for model in filter(None, (parameters["MODEL"], parameters["CONTROL"])):
        for number, ((version, ablation), design) in enumerate(asked.items()):
            name = "-".join([version, *ablation.replace("/", "").split(), form, together])
            rounds = parameters["ROUNDS" if ablation == paper else "ABLATION_ROUNDS"]
            for turn in range(1, rounds + 1):
                sampling = Sampling(
                    temperature, parameters["TOP_P"], parameters["MAX_TOKENS"],
                    parameters["SEED"] + 1000 * turn + number,
                )  # fmt: skip
                labels = {"version": version, "ablation": ablation, "round": turn}
                found.append(
                    Call(
                        "stereomap", _source(parameters), model, parameters["ENGINE"],
                        f"{name}-round{turn}", design, sampling, labels,
                    )
                )  # fmt: skip
    return found


def _source(parameters: Mapping[str, Any]) -> str:
    """Which groups are asked about, as a folder's name."""
    return f"{len(parameters['GROUPS'])}-groups" if parameters["GROUPS"] else "groups"
