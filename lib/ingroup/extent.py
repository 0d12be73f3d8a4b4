"""How much is asked: prompts and items of a run, and of the papers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ingroup.inference import Call

# The factor of each study's design that has the items, and what of its levels is the item.
ITEMS: dict[str, Callable[[Any], Any]] = {
    "event": lambda event: (event.emotion, event.text_id),
    "prompt": lambda prompt: prompt.scenario,
    "asked": lambda asked: asked.question.key,
    "inquiry": lambda inquiry: inquiry.group,
}


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
        Calls of a study.

    Returns
    -------
    int
        An item that several calls ask about counts once.
    """
    items: set[Any] = set()
    for call in calls:
        for block in call.design.blocks:
            for factor in block.factors.keys() & ITEMS.keys():
                item_of = ITEMS[factor]
                items.update(item_of(level) for level in block.factors[factor])
    return len(items)


def of_paper(study: str, calls: Sequence[Call], printed: Mapping[str, str]) -> tuple[int, int]:
    """Count the prompts of a paper for one of its models, and its items.

    Parameters
    ----------
    study : str
        The study.
    calls : sequence of Call
        All calls of its whole design, for one model.
    printed : mapping
        The numbers in the paper's text, by their names in ``data/published/claims.csv``.

    Returns
    -------
    tuple of int
        The prompts and the items.
    """
    return _OF_PAPER[study](calls, printed)


def _hou(calls: Sequence[Call], printed: Mapping[str, str]) -> tuple[int, int]:
    """As many prompts per event as here, for the paper's number of events."""
    n_events = int(printed["events used"])
    n_per_event = n_prompts(calls) // n_items(calls)
    return n_per_event * n_events, n_events


def _fagan(calls: Sequence[Call], printed: Mapping[str, str]) -> tuple[int, int]:
    """Prompts as printed; a scenario has as many of the printed texts as there are wordings."""
    n_asked = 0
    for kind in ("races", "genders", "ages"):
        n_asked += int(printed[f"prompts for {kind}"])

    levels = calls[0].design.blocks[0].factors["prompt"]
    n_wordings = len({prompt.wording for prompt in levels})
    return n_asked, int(printed["prompts in the data set"]) // n_wordings


def _wang(calls: Sequence[Call], printed: Mapping[str, str]) -> tuple[int, int]:
    """Each question once in each condition; the paper gives no number for another identity."""
    n_questions = int(printed["questions"])
    matching = [call for call in calls if "mismatch" not in call.labels["plan"]]
    return n_questions * len(matching), n_questions


def _jeoung(calls: Sequence[Call], printed: Mapping[str, str]) -> tuple[int, int]:
    """One round of the paper's prompt, as often as the paper ran it."""
    first = [call for call in calls if call.labels["round"] == 1]
    paper = [call for call in first if "paper" in call.labels["ablation"]]
    return n_prompts(paper) * int(printed["runs"]), n_items(calls)


_OF_PAPER = {
    "empathy_gap": _hou,
    "biased_samaritan": _fagan,
    "giebench": _wang,
    "stereomap": _jeoung,
}
