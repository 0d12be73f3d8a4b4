"""Scored answers from the few most probable tokens that a server reports at each position."""

import math
import os
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Token(NamedTuple):
    """One token of a reply, and the probabilities of the most probable tokens at its position."""

    text: str
    alternatives: dict[str, float]


class Scores(NamedTuple):
    """Probabilities of the admissible answers after one answer prefix."""

    probabilities: NDArray[np.float64]  # of each choice, sum 1; NaN where none was seen
    option_mass: float  # the probability of all choices together, 0 to 1


def read_scores(
    tokens: Sequence[Token], choices: Sequence[str], leads: Sequence[str] = ("",)
) -> list[Scores]:
    """Read the probabilities of admissible answers from a reply that a server wrote as free text.

    Parameters
    ----------
    tokens : sequence of Token
        The answer, without its reasoning, as the server wrote it.
    choices : sequence of str
        The admissible answers: numbers, or verdicts such as ``[[A]]``.
    leads : sequence of str
        The answer prefixes, such as ``"- Friendly:"``. Each prefix is looked for in the reply, and
        the choice is read after it. Without a prefix ("") the choice is read at the beginning of
        the reply. If all choices begin alike (``[[``), it is read at the last such beginning.

    Returns
    -------
    list of Scores
        One for each answer prefix. Its option mass is 0, and its probabilities are NaN, where the
        reply does not hold the answer prefix or none of the reported tokens is a choice.

    Notes
    -----
    A token stands for a choice only if it leaves no doubt: it spells the choice to its end, or
    begins one choice alone. A digit that may go on ("7" of 0 to 100) is the choice 7 only where the
    server's tokens are seen to hold whole numbers, such as "72". All other probability, and all
    probability outside the reported tokens, is missing option mass, and no choice gets a share of
    it. So only choices that were seen have a probability above 0.
    """
    # Tokens are joined, since a prefix or a choice may be spelt by several.
    text = "".join(token.text for token in tokens)
    stripped = [choice.strip() for choice in choices]
    spelling = _Spelling(
        choices=stripped,
        shared=os.path.commonprefix(stripped),  # noqa: RUF071 (characters)
        whole_numbers=_has_whole_numbers(tokens, stripped),
    )

    scores = []
    search_from = 0
    for lead in leads:
        begin = _beginning(text, lead, spelling.shared, search_from)
        if begin is None:
            scores.append(Scores(np.full(len(stripped), math.nan), 0.0))
            continue
        # The next prefix is looked for behind this one, as they stand in order.
        search_from = begin
        scores.append(_scores_at(tokens, begin, spelling))
    return scores


class _Spelling(NamedTuple):
    """Spelling of the choices in a reply."""

    choices: list[str]
    shared: str  # the beginning that all have
    whole_numbers: bool  # whether a number of several digits is one token


def _beginning(text: str, lead: str, shared: str, search_from: int) -> int | None:
    """Find where in a reply the answer after a prefix begins.

    Blanks and marks between prefix and answer are skipped, and the prefix is looked for from
    ``search_from`` on. Without a prefix, the whole reply is searched. The answer then begins at the
    last occurrence of ``shared``, the text with which all choices begin. If ``shared`` is empty,
    the answer begins at the first character that is not blank. Return None if the reply lacks the
    prefix or ``shared``.
    """
    # Models write a prefix in bold, as a list item or with other blanks.
    label = lead.strip(" \n-:*")
    if label:
        # At the beginning of a line, with a colon: a mention in a sentence is no rating.
        line = rf"^[^\w\n]*(?:\w+[ \t]+){{0,2}}{re.escape(label)}[\s*_]*[:=][\s*_]*"
        match = re.compile(line, re.IGNORECASE | re.MULTILINE).search(text, search_from)
        return match.end() if match else None

    if shared:
        # A verdict stands at the end, and the reasoning before it may mention others.
        last = text.rfind(shared)
        return last if last >= 0 else None
    return len(text) - len(text.lstrip())


def _has_whole_numbers(tokens: Sequence[Token], choices: Sequence[str]) -> bool:
    """Tell whether any reported token is a choice of several digits.

    The digits of a number are then not spelt one by one.
    """
    long_numbers = {choice for choice in choices if choice.isdigit() and len(choice) > 1}
    for token in tokens:
        reported = {name.strip() for name in token.alternatives}
        if reported & long_numbers:
            return True
    return False


def _scores_at(tokens: Sequence[Token], begin: int, spelling: _Spelling) -> Scores:
    """Compute the scores of the choices, for an answer that begins at a character of a reply.

    The option mass is 0 if the text is another number or if no reported token is a choice.
    """
    text = "".join(token.text for token in tokens)
    weights = np.zeros(len(spelling.choices))
    nothing = Scores(np.full(len(weights), math.nan), 0.0)
    # "8.5" is not 8, and "8/10" is no choice of 0 to 100. Behind a slash only the last choice, the
    # top of the scale, may stand.
    last = re.escape(spelling.choices[-1])
    if re.compile(rf"\d+(?:[.,]\d|\s*/\s*(?!{last}\b)\d)").match(text, begin):
        return nothing

    # The choices differ behind their shared beginning: the token that holds that character counts.
    starts = [0, *np.cumsum([len(token.text) for token in tokens]).tolist()]
    first_difference = begin + len(spelling.shared)
    # The last token that starts at this character or before it.
    position = int(np.searchsorted(starts, first_difference, side="right")) - 1
    if position >= len(tokens):
        return nothing

    # A token may begin before the answer, as " 72" does behind a colon; another, "72", may not.
    token_begin = starts[position]
    answer_before_token = text[begin:token_begin]
    token_before_answer = text[token_begin:begin]
    # Alternatives share all before this token, so each is completed by the same beginning.
    for name, probability in tokens[position].alternatives.items():
        in_answer = name.removeprefix(token_before_answer)
        spelt = answer_before_token + in_answer
        choice = _choice_of(spelt.strip(), spelling)
        if choice is not None:
            weights[choice] += probability

    total = weights.sum()
    if total == 0:
        return nothing
    return Scores(weights / total, float(min(total, 1.0)))


def _choice_of(spelt: str, spelling: _Spelling) -> int | None:
    """Find the index of the choice that a text spells or begins. Return None if it is in doubt."""
    if len(spelt) <= len(spelling.shared):
        return None

    choices = spelling.choices
    longer = []
    for number, choice in enumerate(choices):
        # A choice with a sign behind it is whole; a full stop or comma may go on in decimals.
        next_sign = spelt[len(choice) : len(choice) + 1]
        is_whole = next_sign != "" and not next_sign.isalnum() and next_sign not in ".,"
        if spelt.startswith(choice) and is_whole:
            return number
        if choice.startswith(spelt):
            longer.append(number)

    # The beginning of one choice alone leaves no doubt, as "[[A" of "[[A]]".
    if len(longer) == 1:
        return longer[0]
    if spelt in choices and spelt.isdigit() and spelling.whole_numbers:
        return choices.index(spelt)
    return None
