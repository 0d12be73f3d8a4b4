"""Scored answers out of the few most probable tokens that a server tells at each place."""

import math
import os
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Token(NamedTuple):
    """One token of a reply, and the probabilities of the most probable tokens at its place."""

    text: str
    alternatives: dict[str, float]


class Scored(NamedTuple):
    """What a reply says of the admissible answers behind one answer prefix."""

    probabilities: NDArray[np.float64]  # of each choice, sum 1; NaN where none was seen
    option_mass: float  # the probability of all choices together, 0 to 1


def score(
    tokens: Sequence[Token], choices: Sequence[str], leads: Sequence[str] = ("",)
) -> list[Scored]:
    """Read the probabilities of admissible answers out of a reply that a server wrote freely.

    Parameters
    ----------
    tokens : sequence of Token
        The answer, without its reasoning, as the server wrote it.
    choices : sequence of str
        The admissible answers: numbers, or verdicts such as ``[[A]]``.
    leads : sequence of str
        The answer prefixes, such as ``"- Friendly:"``; each is looked for in the reply, and the
        choice is read behind it. Behind an empty one the choice is read where the reply begins,
        or, if all choices begin alike (``[[``), behind the last such beginning.

    Returns
    -------
    list of Scored
        One for each answer prefix. Its option mass is 0, and its probabilities are NaN, where the
        reply does not hold the answer prefix or none of the tokens told is a choice.

    Notes
    -----
    A token stands for a choice only if it leaves no doubt: it spells the choice to its end, or
    begins one choice alone. A digit that may go on ("7" of 0 to 100) is the choice 7 only where the
    server's tokens are seen to hold whole numbers, such as "72". All other probability, and all
    that is outside the tokens told, is missing option mass; nothing is made up for it. So the
    probabilities are those of the choices that were seen, and those unseen have 0.
    """
    starts = _offsets(tokens)
    text = "".join(token.text for token in tokens)
    plain = [choice.strip() for choice in choices]
    shared = os.path.commonprefix(plain)  # noqa: RUF071 (characters)
    whole_numbers = _tells_whole_numbers(tokens, plain)

    found = []
    behind = 0
    for lead in leads:
        begins = _beginning(text, lead, shared, behind)
        if begins is None:
            found.append(Scored(np.full(len(plain), math.nan), 0.0))
            continue
        behind = begins
        found.append(_scored(tokens, starts, text, begins, plain, shared, whole_numbers))
    return found


def _offsets(tokens: Sequence[Token]) -> list[int]:
    """The place in the text at which each token begins, and the end of the last."""
    lengths = [len(token.text) for token in tokens]
    return [0, *np.cumsum(lengths).tolist()]


def _beginning(text: str, lead: str, shared: str, behind: int) -> int | None:
    """Where in a reply the answer behind a prefix begins, blanks and marks passed over."""
    label = lead.strip(" \n-:*")
    if label:
        # At the beginning of a line, with a colon: a mention in a sentence is no rating.
        line = rf"^[^\w\n]*(?:\w+[ \t]+){{0,2}}{re.escape(label)}[\s*_]*[:=][\s*_]*"
        match = re.compile(line, re.IGNORECASE | re.MULTILINE).search(text, behind)
        return match.end() if match else None

    if shared:
        last = text.rfind(shared)
        return last if last >= 0 else None
    return len(text) - len(text.lstrip())


def _tells_whole_numbers(tokens: Sequence[Token], choices: Sequence[str]) -> bool:
    """Whether any token told is a number of several digits, so that numbers are not spelt."""
    several = {choice for choice in choices if choice.isdigit() and len(choice) > 1}
    return any(name.strip() in several for token in tokens for name in token.alternatives)


def _scored(
    tokens: Sequence[Token], starts: Sequence[int], text: str, begins: int, choices: Sequence[str],
    shared: str, whole_numbers: bool,
) -> Scored:  # fmt: skip
    """The choices behind one place of a reply."""
    branch = begins + len(shared)
    place = int(np.searchsorted(starts, branch, side="right")) - 1
    weights = np.zeros(len(choices))
    # "8.5" is no 8, and "8/10" is none of 100.
    goes_on = re.compile(rf"\d+(?:[.,]\d|\s*/\s*(?!{re.escape(choices[-1])}\b)\d)")
    if place >= len(tokens) or goes_on.match(text, begins):
        return Scored(weights * math.nan, 0.0)

    # A token may begin before the answer, as " 72" does behind a colon; another, "72", may not.
    head = text[begins : starts[place]]
    before = text[starts[place] : begins]
    for name, probability in tokens[place].alternatives.items():
        spelt = (head + name.removeprefix(before)).strip()
        choice = _choice_of(spelt, choices, shared, whole_numbers)
        if choice is not None:
            weights[choice] += probability

    mass = float(min(weights.sum(), 1.0))
    return Scored(weights / weights.sum() if mass else weights * math.nan, mass)


def _choice_of(spelt: str, choices: Sequence[str], shared: str, whole_numbers: bool) -> int | None:
    """The choice that a beginning stands for without doubt, None for no choice or a doubt."""
    if len(spelt) <= len(shared):
        return None

    for number, choice in enumerate(choices):
        goes_on = spelt[len(choice) : len(choice) + 1]
        if spelt.startswith(choice) and goes_on and not goes_on.isalnum() and goes_on not in ".,":
            return number

    longer = [number for number, choice in enumerate(choices) if choice.startswith(spelt)]
    if len(longer) == 1:
        return longer[0]
    if spelt in choices and spelt.isdigit() and whole_numbers:
        return choices.index(spelt)
    return None
