"""Answers over choices: how a model spells each admissible answer, and how probable each is.

At every place the probabilities of the tokens that continue an admissible answer, or end it, are
renormalised: what grammar-constrained decoding at temperature 1 would draw from.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp

TOLERANCE = 2e-3  # of a sum of probabilities that are stored to three digits


def is_sound(stored: pa.ChunkedArray, leads: int, width: int) -> bool:
    """Tell whether a store's column of scored answers can be right.

    Parameters
    ----------
    stored : pyarrow.ChunkedArray
        A list of numbers a reply, empty where there is none.
    leads : int
        How many answers a reply consists of.
    width : int
        How many numbers an answer has: its probabilities, which sum to 1, or 1 for its option mass.

    Returns
    -------
    bool
        Whether each list has the right length, and finite numbers from 0 to 1.
    """
    lists = stored.combine_chunks()
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
    if not np.isin(lengths, [0, leads * width]).all():
        return False

    values = lists.flatten().to_numpy(zero_copy_only=False)
    answers = values.astype(np.float32).reshape(-1, width)
    if not (answers >= 0).all():  # nor is NaN
        return False
    sums = answers.sum(axis=1)
    if width == 1:
        return bool((sums <= 1 + TOLERANCE).all())
    return bool((np.abs(sums - 1) <= TOLERANCE).all())


def probabilities(
    responses: pd.DataFrame, choices: Sequence[str], leads: int = 1
) -> NDArray[np.float64]:
    """Stored probabilities, (responses, leads, choices), NaN where a call failed; sums are 1."""
    lists = responses.probabilities.array._pa_array.combine_chunks()
    sizes = lists.value_lengths().to_numpy()
    found = np.full((len(responses), leads * len(choices)), np.nan)
    found[sizes > 0] = lists.flatten().to_numpy().reshape(-1, found.shape[1])
    found = found.reshape(len(responses), leads, len(choices))
    # They are stored to three digits.
    return found / found.sum(axis=2, keepdims=True)


def expected(responses: pd.DataFrame, choices: Sequence[str], leads: int = 1) -> pd.DataFrame:
    r"""Mean of the distribution over a scale, :math:`E = \sum_k p_k v_k`, a column a lead.

    `choices` are the numbers :math:`v_k` as text, `responses` the rows of a store that was asked
    over them, whose index is kept; NaN where a call failed. The papers' ratings are of text.
    """
    numbers = np.array([float(choice) for choice in choices])
    return pd.DataFrame(probabilities(responses, choices, leads) @ numbers, responses.index)


def agreement(
    free: Sequence[Any], chosen: Sequence[Any], mass: Sequence[float] | pd.Series
) -> dict[str, float]:
    """What free text says beside the most probable admissible answers to the same prompts.

    `free` are its answers, NaN or "" where it holds none, `chosen` the other, in the same order.
    ``asked`` prompts, of which ``answered`` freely (also in percent), of which ``agree`` (percent
    of those answered, NaN without any); ``mass`` is the mean probability, in percent, that the
    unconstrained model gives to the first tokens of admissible answers. First-token and constrained
    probabilities are known not to match text answers (Wang et al. 2024, "My Answer is C").
    """
    said = pd.Series(list(free)).replace("", np.nan)
    same = said[said.notna()] == pd.Series(list(chosen))[said.notna()]
    return {
        "asked": len(said),
        "answered": int(said.notna().sum()),
        "percent_answered": 100 * said.notna().mean(),
        "agree": int(same.sum()),
        "percent_agree": 100 * same.mean() if len(same) else np.nan,
        "mass": 100 * float(np.mean(mass)),
    }


class Place(NamedTuple):
    """A beginning of answers that goes on in several ways."""

    path: tuple[int, ...]  # its tokens; none where an answer begins
    tokens: tuple[int, ...]  # that may come next
    ends: int  # how many of these, the last, end the reply; 0 where none of the answers ends here

    def ways(self, logits: NDArray[np.floating]) -> NDArray[np.float64]:
        """Log-probabilities of the ways on, the end as one of them, from those of the tokens.

        Of shape (prompts, tokens), up to a constant for each prompt.
        """
        ways, end = np.split(logits.astype(float), [len(self.tokens) - self.ends], axis=1)
        if self.ends:
            ways = np.hstack([ways, logsumexp(end, axis=1, keepdims=True)])
        return log_softmax(ways, axis=1)


class Tree:
    """Admissible answers as a tree of tokens.

    ``spelt`` are the token ids of each answer, as the model's own tokenizer spells it; ``ends`` the
    tokens that end a reply. ``places`` are where it has to be looked, the beginning first: a model
    with one way on has no choice. ValueError where an answer has no token, two are spelt alike, or
    one begins another and nothing ends a reply.
    """

    def __init__(self, spelt: Sequence[Sequence[int]], ends: Sequence[int]):
        self.spelt, ends = [tuple(answer) for answer in spelt], tuple(dict.fromkeys(ends))
        whole = set(self.spelt)
        if not all(whole) or len(whole) < len(self.spelt):
            raise ValueError("every admissible answer needs tokens of its own")
        following: dict[tuple[int, ...], dict[int, None]] = {}  # behind each beginning
        for answer in self.spelt:
            for place, token in enumerate(answer):
                following.setdefault(answer[:place], {})[token] = None
        if not ends and not whole.isdisjoint(following):
            raise ValueError("one answer begins another, and it has no token that ends a reply")
        self.places: list[Place] = []
        for path, tokens in following.items():
            last = ends if path in whole else ()
            if not path or len(tokens) + bool(last) > 1:
                self.places.append(Place(path, (*tokens, *last), len(last)))

    def probabilities(self, logits: Sequence[NDArray[np.floating]]) -> NDArray[np.float64]:
        """Probability of each answer, (prompts, answers); each row sums to 1.

        ``logits`` are those of the tokens of each place, (prompts, tokens), up to a constant.
        """
        ways = {p.path: (p, p.ways(one)) for p, one in zip(self.places, logits, strict=True)}
        columns = []
        for answer in self.spelt:
            total = np.zeros(len(logits[0]))
            for length in range(len(answer) + 1):
                if found := ways.get(answer[:length]):
                    place, known = found
                    way = place.tokens.index(answer[length]) if answer[length:] else -1
                    total = total + known[:, way]
            columns.append(total)
        return np.exp(np.stack(columns, axis=1))
