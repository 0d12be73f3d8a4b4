"""Answers over choices: how a model spells each admissible answer, and how probable each is.

At every place the probabilities of the tokens that continue an admissible answer, or end it, are
renormalised: what grammar-constrained decoding at temperature 1 would draw from.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import log_softmax

Ending = Literal["turn", "newline", "any"]
LEAST = 1e-12  # of what is left of 1, which rounding can make 0
LOWEST = -100.0  # log-probability of an ending for which a model has no token

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


def numbers_of(column: pd.Series, width: int) -> NDArray[np.float64]:
    """A store's column of lists as an array, (responses, width), NaN where a call failed."""
    lists = column.array._pa_array.combine_chunks()
    answered = lists.value_lengths().to_numpy() > 0
    found = np.full((len(column), width), np.nan)
    found[answered] = lists.flatten().to_numpy().reshape(-1, width)
    return found


def probabilities(
    responses: pd.DataFrame, choices: Sequence[str], leads: int = 1
) -> NDArray[np.float64]:
    """Stored probabilities, (responses, leads, choices), NaN where a call failed; sums are 1."""
    found = numbers_of(responses.probabilities, leads * len(choices))
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
    free: Sequence[Any], chosen: Sequence[Any], mass: Sequence[float] | pd.Series,
    greedy: Sequence[float] | None = None, mean: Sequence[float] | None = None,
) -> dict[str, float]:  # fmt: skip
    """Compare free text with scored answers to the same prompts, in the same order.

    First-token and constrained probabilities are known not to match text answers (Wang et al. 2024,
    "My Answer is C").

    Parameters
    ----------
    free : sequence
        The answers that free text holds, NaN or "" where it holds none.
    chosen : sequence
        The most probable admissible answers.
    mass : sequence of float
        What the unconstrained model gives to the first tokens of admissible answers, 0 to 1.
    greedy : sequence of float, optional
        The admissible answers that greedy decoding would write.
    mean : sequence of float, optional
        The means of the distributions, in points of the scale.

    Returns
    -------
    dict
        ``asked`` prompts; ``answered`` freely, also in percent; ``agree`` with the most probable
        answer and ``agree_greedy`` with the greedy one, also in percent of those answered (NaN
        without any); ``mean_above``, by how many points the mean lies above the free answer, and
        ``mean_apart``, how far from it, both averaged over those answered; ``mass`` in percent.
    """
    said = pd.Series(list(free)).replace("", np.nan)
    answered = said.notna()
    found = {
        "asked": len(said),
        "answered": int(answered.sum()),
        "percent_answered": 100 * answered.mean(),
    }
    for name, scored in (("agree", chosen), ("agree_greedy", greedy)):
        if scored is not None:
            same = said[answered] == pd.Series(list(scored))[answered]
            found[name] = int(same.sum())
            found[f"percent_{name}"] = 100 * same.mean() if len(same) else np.nan
    if mean is not None:
        above = pd.Series(list(mean))[answered] - said[answered].astype(float)
        found["mean_above"] = above.mean()
        found["mean_apart"] = above.abs().mean()
    found["mass"] = 100 * float(np.mean(mass))
    return found


class Endings(NamedTuple):
    """Tokens that may stand behind a whole answer."""

    turn: tuple[int, ...]  # the end of the reply
    newline: tuple[int, ...]  # nothing but newlines


class Place(NamedTuple):
    """A beginning of answers behind which there is a choice."""

    path: tuple[int, ...]  # its tokens; none where an answer begins
    tokens: tuple[int, ...]  # those that go on with an admissible answer
    is_answer: bool  # whether the beginning is a whole answer itself, which may end here

    @property
    def n_steps(self) -> int:
        """How many steps there are from here: one a token, the end of the turn, a newline."""
        return len(self.tokens) + 2 * self.is_answer

    def looked_up(self, endings: Endings) -> list[int]:
        """The tokens whose probability an engine looks up here."""
        ends = [*endings.turn, *endings.newline] if self.is_answer else []
        return [*self.tokens, *ends]

    def steps(
        self, log_probabilities: NDArray[np.floating], endings: Endings
    ) -> NDArray[np.float64]:
        """The steps from here, (prompts, steps), of tokens `looked_up`, (prompts, tokens)."""
        logs = log_probabilities.astype(float)
        if not self.is_answer:
            return logs
        first_newline = len(self.tokens) + len(endings.turn)
        on, turn, newline = np.split(logs, [len(self.tokens), first_newline], axis=1)
        return np.hstack([on, _together(turn), _together(newline)])

    def ways(
        self, steps: NDArray[np.float64], ending: Ending, temperature: float
    ) -> NDArray[np.float64]:
        """Log-probabilities of the ways on from here, the end as the last; each row sums to 1."""
        if not self.is_answer:
            return log_softmax(steps / temperature, axis=1)
        on, turn, newline = np.split(steps, [len(self.tokens), len(self.tokens) + 1], axis=1)
        if ending == "turn":
            end = turn
        elif ending == "newline":
            end = np.logaddexp(turn, newline)
        else:
            rest = 1 - np.exp(on).sum(axis=1, keepdims=True)
            end = np.log(np.maximum(rest, LEAST))
        return log_softmax(np.hstack([on, end]) / temperature, axis=1)


def _together(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """The log-probability of any one of some tokens, (prompts, 1); `LOWEST` where there is none."""
    together = np.logaddexp.reduce(logs, axis=1, initial=-np.inf, keepdims=True)
    return np.maximum(together, LOWEST)


class Tree:
    """Admissible answers as a tree of tokens.

    Parameters
    ----------
    spelt : sequence of sequence of int
        The token ids of each answer, as the model's own tokenizer spells it.

    Attributes
    ----------
    places : list of Place
        Where a model has a choice, the beginning first.

    Raises
    ------
    ValueError
        An answer has no token, or two are spelt alike.
    """

    def __init__(self, spelt: Sequence[Sequence[int]]):
        self.spelt = [tuple(answer) for answer in spelt]
        whole = set(self.spelt)
        if not all(whole) or len(whole) < len(self.spelt):
            raise ValueError("every admissible answer needs tokens of its own")
        following: dict[tuple[int, ...], dict[int, None]] = {}  # behind each beginning
        for answer in self.spelt:
            for length, token in enumerate(answer):
                following.setdefault(answer[:length], {})[token] = None
        self.places: list[Place] = []
        for path, tokens in following.items():
            is_answer = path in whole
            if not path or is_answer or len(tokens) > 1:
                self.places.append(Place(path, tuple(tokens), is_answer))
        self._ways_to = [list(self._way(answer)) for answer in self.spelt]

    @property
    def needs_an_end(self) -> bool:
        """Whether one answer begins another, so that only an end tells the two apart."""
        return any(place.is_answer for place in self.places)

    @property
    def size(self) -> int:
        """How many steps a reply has, over all places."""
        return sum(place.n_steps for place in self.places)

    def split(self, steps: NDArray[np.floating]) -> list[NDArray[np.float64]]:
        """Stored steps, (prompts, all steps), place by place."""
        ends = np.cumsum([place.n_steps for place in self.places])
        return np.split(steps.astype(float), ends[:-1], axis=1)

    def probabilities(
        self, steps: Sequence[NDArray[np.floating]], ending: Ending = "turn",
        temperature: float = 1.0,
    ) -> NDArray[np.float64]:  # fmt: skip
        r"""Probability of each answer.

        At each place the ways on are renormalised: the tokens that go on with an admissible answer
        and, behind a whole answer, its end. An answer's probability is the product along its path.

        Parameters
        ----------
        steps : sequence of array
            What the model gives at each place, (prompts, steps) as :meth:`Place.steps` has them.
        ending : {"turn", "newline", "any"}
            What ends an answer: the end of the turn; that or a newline; or any token that does not
            go on with an admissible answer.
        temperature : float
            What the log-probabilities of the ways on are divided by, above 0.

        Returns
        -------
        array of float
            (prompts, answers); each row sums to 1.
        """
        ways = self._ways(steps, ending, temperature)
        columns = []
        for way_to_answer in self._ways_to:
            total = np.zeros(len(steps[0]))
            for place, way in way_to_answer:
                total = total + ways[place.path][:, way]
            columns.append(total)
        return np.exp(np.stack(columns, axis=1))

    def greedy(
        self, steps: Sequence[NDArray[np.floating]], ending: Ending = "turn"
    ) -> NDArray[np.intp]:
        """The place in the list of the answer that takes the most probable way at each place.

        That is what greedy decoding writes which is held to admissible answers. It need not be the
        most probable answer. ``steps`` and ``ending`` as in :meth:`probabilities`; (prompts,).
        """
        best = {path: logs.argmax(axis=1) for path, logs in self._ways(steps, ending).items()}
        taken = []
        for way_to_answer in self._ways_to:
            follows = np.ones(len(steps[0]), dtype=bool)
            for place, way in way_to_answer:
                follows &= best[place.path] == way
            taken.append(follows)
        return np.argmax(taken, axis=0)

    def _ways(
        self, steps: Sequence[NDArray[np.floating]], ending: Ending, temperature: float = 1.0
    ) -> dict[tuple[int, ...], NDArray[np.float64]]:
        """Log-probabilities of the ways on, by the path of their place."""
        pairs = zip(self.places, steps, strict=True)
        return {place.path: place.ways(given, ending, temperature) for place, given in pairs}

    def _way(self, answer: tuple[int, ...]) -> Iterator[tuple[Place, int]]:
        """The places on the way to an answer, and which of the ways on leads there."""
        for place in self.places:
            length = len(place.path)
            if answer == place.path:
                yield place, len(place.tokens)  # the end
            elif answer[:length] == place.path:
                yield place, place.tokens.index(answer[length])
