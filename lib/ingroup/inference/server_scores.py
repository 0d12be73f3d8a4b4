"""Probabilities of admissible answers from the few most probable tokens that a server reports."""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from ingroup.inference.answers import Reply, Sampling, failed
from ingroup.inference.scoring import common_length


class Token(NamedTuple):
    """A token of a reply, and the probabilities of the most probable tokens in its place."""

    text: str
    alternatives: dict[str, float]


def tokens_of(logprobs: Sequence) -> list[Token]:
    """Read the tokens of a reply from inspect_ai's log-probabilities.

    Parameters
    ----------
    logprobs : sequence
        What the server sent for each token.

    Returns
    -------
    list of Token
        The tokens, with probabilities.
    """
    tokens = []
    for entry in logprobs:
        alternatives = {entry.token: math.exp(entry.logprob)}
        for other in entry.top_logprobs or ():
            alternatives[other.token] = math.exp(other.logprob)
        tokens.append(Token(entry.token, alternatives))
    return tokens


def with_scores(reply: Reply, tokens: Sequence[Token], sampling: Sampling) -> Reply:
    """Add the probabilities of the admissible answers to a reply in free text.

    Only whole answers that stand in one token count: letters, words, and numbers of a server
    that spells 0 to 999 in one token each. All other probability lowers the option mass.

    Parameters
    ----------
    reply : Reply
        The server's reply, without its reasoning.
    tokens : sequence of Token
        Its tokens.
    sampling : Sampling
        The choices, and the prefixes behind which they are read.

    Returns
    -------
    Reply
        The reply with probabilities. It has a mass of 0 and no probabilities if an answer behind
        any prefix was not seen. It is a failed call if the server sent no log-probabilities.
    """
    if not tokens:
        return failed("the server sends no log-probabilities: use READING=free")

    whole = "".join(token.text for token in tokens)
    start = max(whole.rfind(reply.text or ""), 0)
    # Verdicts such as [[A]] and [[B]] differ behind the text with which all of them begin.
    in_order = sorted(sampling.choices)
    shared = in_order[0][: common_length(in_order[0], in_order[-1])]
    endings = [choice[len(shared) :] for choice in sampling.choices]
    if _spells_digits(tokens, endings):
        return reply._replace(option_mass=[0.0] * len(sampling.prefixes))

    probabilities: list[float] = []
    masses = []
    text = ""
    for prefix in sampling.prefixes:
        start = _begin(whole, prefix, shared, start)
        weights = _weights(tokens, start, endings)
        mass = sum(weights)
        masses.append(min(mass, 1.0))
        if mass == 0:
            return reply._replace(option_mass=[0.0] * len(sampling.prefixes))
        probabilities += [weight / mass for weight in weights]
        text += prefix + sampling.choices[weights.index(max(weights))]
    return reply._replace(text=text, probabilities=probabilities, option_mass=masses)


def _spells_digits(tokens: Sequence[Token], choices: Sequence[str]) -> bool:
    """Tell whether a server spells numbers digit by digit, so that no token is a whole number."""
    long_numbers = {choice for choice in choices if choice.isdigit() and len(choice) > 1}
    seen = {name.strip() for token in tokens for name in token.alternatives}
    return bool(long_numbers) and not long_numbers & seen


def _begin(text: str, prefix: str, shared: str, start: int) -> int:
    """Find the character behind a prefix where the choices differ, -1 without the prefix."""
    label = prefix.strip(" \n-:*")
    if label:
        line = re.compile(rf"^\W*{re.escape(label)}[\s*_]*[:=][\s*_]*", re.I | re.M)
        match = line.search(text, start)
        return match.end() if match else -1
    if shared:
        # A verdict stands last, and the text before it may mention others.
        last = text.rfind(shared)
        return last + len(shared) if last >= 0 else -1
    return start


def _weights(tokens: Sequence[Token], start: int, choices: Sequence[str]) -> list[float]:
    """Sum the probability of each choice in the token that holds a character of the reply."""
    weights = [0.0] * len(choices)
    end = 0
    for place, token in enumerate(tokens):
        end += len(token.text)
        if not token.text.strip() or not 0 <= start < end:
            continue
        following = tokens[place + 1].text if place + 1 < len(tokens) else ""
        # "8.5" and "100" in two tokens are not the number in the first token.
        if token.text.strip().isdigit() and re.match(r"[.,]?\d", following):
            return weights
        for name, probability in token.alternatives.items():
            choice = _choice_of(name.strip(), choices)
            if choice is not None:
                weights[choice] += probability
        return weights
    return weights


def _choice_of(name: str, choices: Sequence[str]) -> int | None:
    """Find the choice that a token spells, or that it alone begins."""
    if name in choices:
        return choices.index(name)
    begun = [number for number, choice in enumerate(choices) if name and choice.startswith(name)]
    return begun[0] if len(begun) == 1 else None
