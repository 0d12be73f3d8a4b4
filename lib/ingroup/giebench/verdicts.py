"""Read the verdict of a reply to GIEBench, A to D, or name the reason why there is none.

The rules stand in verdict_rules.yaml.
"""

import re
from pathlib import Path
from typing import Literal, NamedTuple

from ingroup.parsing import Rules, is_refusal, one_spelling

RULES = Rules(Path(__file__).with_name("verdict_rules.yaml"))


class Verdict(NamedTuple):
    """A letter from A to D with the status "ok", or "" with the reason why there is none."""

    letter: str
    status: str  # "ok", "refused", "unparsable" or "several"


def parse_verdict(text: str | None, rule: Literal["sound", "released"] = "sound") -> Verdict:
    """Read the verdict that a reply states.

    Parameters
    ----------
    text : str or None
        The reply.
    rule : {"sound", "released"}
        The rules of verdict_rules.yaml, or the rule of the authors' code.

    Returns
    -------
    Verdict
        The letter and "ok"; or "" and "several" (different verdicts that no word decides between),
        "refused" (see `ingroup.parsing.is_refusal`) or "unparsable".

    Notes
    -----
    "sound" writes each tag as ``[[A]]`` and each letter without a tag as ``<<A>>``. It takes out
    the letters that the reply only mentions, and splits the rest into clauses. The first claim
    that fits a clause decides. All letters that fit this claim have to agree, or a word corrects
    the earlier ones ("Correction: [[D]]").

    "released" is the rule of the code that Wang et al. (2024) released. It takes the tag whose
    letter does not come again in the same run of tags without another "[" between. So A ... B
    gives A, but A ... B ... A gives B. Any capital letter counts, and nothing is "refused".
    """
    if not isinstance(text, str):
        return Verdict("", "unparsable")
    if rule == "released":
        return _released(text)

    letters = _claimed_letters(_chosen(text))
    if len(letters) == 1:
        return Verdict(letters.pop(), "ok")
    if letters:
        return Verdict("", "several")
    return Verdict("", "refused" if is_refusal(text) else "unparsable")


def _released(text):
    """Read a verdict as the authors' code does."""
    run = re.search(r"\[\[[A-Z]\]\](?:[^\[]*+\[\[[A-Z]\]\])*", text)
    if not run:
        return Verdict("", "unparsable")

    # The released search stops at the letter whose last tag comes first.
    tags = re.findall(r"\[\[[A-Z]\]\]", run[0])
    tag = min(tags, key=run[0].rindex)
    return Verdict(tag[2], "ok")


def _chosen(text):
    """Write a reply in one spelling, without letters that it mentions and does not choose."""
    text = RULES.rewrite(one_spelling(text), "spelling")
    heading = RULES.pattern("heading")
    if len(_letters(heading.findall(text))) > 1:
        text = heading.sub(" ", text)
    return RULES.rewrite(text, "set aside")


def _claimed_letters(text):
    """Find the letters of the strongest claim, behind a correction if there is one; or the tag."""
    behind = RULES.pattern("correction").split(text)[-1]
    tags = set(re.findall(r"\[\[([A-D-])\]\]", text))
    only = tags - {"-"} if len(tags) == 1 else set()
    return _strongest(behind) or _strongest(text) or only


def _strongest(text):
    """Find the letters of the strongest claim of a text."""
    clauses = RULES.pattern("clause end").split(text)
    conditional = list(filter(RULES.pattern("condition").search, clauses))
    certain = [clause for clause in clauses if clause not in conditional]

    for claim in RULES.sections["claims"]:
        letters = _letters(_claims(certain, claim))
        if letters:
            return letters

    # "[[A]] is best for a man. For a woman it is [[B]]": a condition counts if nothing else does.
    for claim in RULES.sections["claims"]:
        if _claims(conditional, claim):
            return _letters(conditional)
    return set()


def _claims(clauses, claim):
    """Find the parts of clauses that make a claim."""
    pattern = RULES.pattern(claim)
    parts = []
    for clause in clauses:
        parts += pattern.findall(clause)
    return parts


def _letters(parts):
    """Collect the marked letters of parts of a text."""
    return set(re.findall(r"(?:\[\[|<<)([A-D])(?:\]\]|>>)", " ".join(parts)))
