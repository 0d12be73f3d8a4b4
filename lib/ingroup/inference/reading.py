"""The readings of a scored answer: its greedy text, a draw, or the mean.

The papers read the text that a model writes. A scored answer holds the whole distribution. The text
is one summary of it, and the mean is another. The two can point to opposite sides, so each study
shows the result of every reading.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ingroup.inference.choices import (
    Steps,
    Tree,
    expected_values,
    lists_to_array,
    probabilities,
)
from ingroup.inference.engine import Sampling
from ingroup.inference.store import SPELLING, Store, StoreError
from ingroup.parsing import Ending, How
from ingroup.tables import InputError

NUMBERS_PER_COUNT = 4  # that Philox gives before its counter goes up by one


class Reading(NamedTuple):
    """Rule by which an answer becomes a number.

    Attributes
    ----------
    how : {"free", "greedy", "drawn", "expected"}
        "free": nothing is scored, and the text is read. "greedy": the answer that greedy decoding
        would write if it were held to admissible answers. "drawn": an answer that is drawn at the
        study's temperature. "expected": the mean of the distribution.
    ending : {"turn", "newline", "any"}
        The end of a number, see :meth:`ingroup.inference.choices.Tree.probabilities`.
    """

    how: How = "expected"
    ending: Ending = "turn"

    @property
    def columns(self) -> list[str]:
        """List the columns of a store that the reading needs.

        Returns
        -------
        list of str
            One name.
        """
        return ["probabilities"] if self == STORED_MEAN else ["steps"]

    def __str__(self) -> str:
        if self.how == "free":
            return self.how
        return f"{self.how}, {self.ending}"


STORED_MEAN = Reading()  # computed from the stored probabilities, without the steps
FREE = Reading("free")


def readings(store: Store, sampling: Sampling) -> list[Reading]:
    """List every reading that scored answers allow, beginning with the reading of greedy text.

    Answers that were stored without steps have their mean alone. Nothing is drawn at temperature 0.
    If no answer is the beginning of a longer answer, as with letters, all rules for an answer's end
    agree, and one of them is listed.

    Parameters
    ----------
    store : Store
        The answers. Its manifest says how the model spells them.
    sampling : Sampling
        The sampling of the answers.

    Returns
    -------
    list of Reading
        The readings, at least the mean.
    """
    spelling = store.manifest.get(SPELLING)
    if spelling is None:
        return [STORED_MEAN]

    needs_an_end = any(Tree(spelt).needs_an_end for spelt in spelling.values())
    endings: list[Ending] = ["turn", "newline", "any"] if needs_an_end else ["turn"]
    hows: list[How] = ["greedy", "expected"]
    if sampling.draws:
        hows = ["greedy", "drawn", "expected"]
    return [Reading(how, ending) for ending in endings for how in hows]


def ratings_from_scores(
    responses: pd.DataFrame, store: Store, sampling: Sampling, reading: Reading = STORED_MEAN
) -> pd.DataFrame:
    """Read scored answers as numbers.

    Parameters
    ----------
    responses : DataFrame
        Rows of the store, with ``trial`` and the reading's ``columns``.
    store : Store
        The store of the responses. Its manifest says how the model spells the answers.
    sampling : Sampling
        The sampling of the answers, whose ``choices`` are the numbers as text.
    reading : Reading
        How an answer becomes a number.

    Returns
    -------
    DataFrame
        One column for each answer prefix, with the index of the responses. The numbers are in
        points of the scale, and NaN where a call failed.

    Raises
    ------
    StoreError
        The answers were stored before steps were kept, and the reading needs them.
    InputError
        An answer is to be drawn at temperature 0.
    """
    if reading.how == "drawn" and not sampling.draws:
        raise InputError("READING=drawn needs a TEMPERATURE above 0: at 0 nothing is drawn")
    if reading == STORED_MEAN:
        return expected_values(responses, sampling.choices, len(sampling.leads))
    columns = {}
    points = _points(sampling)
    is_answered, trees_with_steps = _trees_with_steps(responses, store, sampling, reading)
    for number, (tree, steps) in enumerate(trees_with_steps):
        if reading.how == "greedy":
            values = points[tree.greedy_answers(steps, reading.ending)]
        elif reading.how == "expected":
            values = tree.probabilities(steps, reading.ending) @ points
        else:
            assert sampling.temperature is not None  # sampling.draws
            chances = tree.probabilities(steps, reading.ending, sampling.temperature)
            drawn = _draw(chances, responses["trial"], sampling.seed + number)
            values = points[drawn]
        columns[number] = np.where(is_answered, values, np.nan)
    return pd.DataFrame(columns, responses.index)


def ties(
    responses: pd.DataFrame, store: Store, sampling: Sampling, ending: Ending = "turn"
) -> pd.Series:
    """Tell for each greedy answer after the first prefix whether a tie decides it.

    Parameters
    ----------
    responses : DataFrame
        As in :func:`ratings_from_scores`, with ``steps``.
    store : Store
        As in :func:`ratings_from_scores`.
    sampling : Sampling
        As in :func:`ratings_from_scores`.
    ending : {"turn", "newline", "any"}
        The end of a number.

    Returns
    -------
    Series of bool
        With the index of the responses. Calls that failed are left out.

    Raises
    ------
    StoreError
        The answers were stored before steps were kept.
    """
    reading = Reading("greedy", ending)
    is_answered, trees_with_steps = _trees_with_steps(responses, store, sampling, reading)
    tree, steps = trees_with_steps[0]
    tied = pd.Series(tree.is_tied(steps, ending), responses.index)
    return tied[is_answered]


def _trees_with_steps(
    responses: pd.DataFrame, store: Store, sampling: Sampling, reading: Reading
) -> tuple[NDArray[np.bool_], list[tuple[Tree, Steps]]]:
    """Return a mask of the calls that did not fail, and the tree and stored steps of each prefix.

    Raise a StoreError if no steps were stored.
    """
    if SPELLING not in store.manifest:
        raise StoreError(
            f"{store.folder} holds scored answers without their steps, which {reading} is read "
            "from: move that folder away and ask again"
        )

    trees = [Tree(store.manifest[SPELLING][lead]) for lead in sampling.leads]
    n_steps = sum(tree.n_steps for tree in trees)
    stored = lists_to_array(responses["steps"], n_steps)
    is_answered = ~np.isnan(stored[:, 0])
    # NaN would spoil the computations; the rows of failed calls are made NaN again in the end.
    all_steps = np.nan_to_num(stored)

    trees_with_steps: list[tuple[Tree, Steps]] = []
    begin = 0
    for tree in trees:
        end = begin + tree.n_steps
        steps = tree.split(all_steps[:, begin:end])
        trees_with_steps.append((tree, steps))
        begin = end
    return is_answered, trees_with_steps


def three_readings(responses: pd.DataFrame, store: Store, sampling: Sampling) -> pd.DataFrame:
    """Summarise each scored answer after one prefix in three numbers.

    Parameters
    ----------
    responses : DataFrame
        Rows of the store, with ``trial``, ``probabilities`` and ``steps``.
    store : Store
        As in :func:`ratings_from_scores`.
    sampling : Sampling
        As in :func:`ratings_from_scores`.

    Returns
    -------
    DataFrame
        ``most_probable``, ``greedy`` and ``expected``, in points of the scale, with the index of
        the responses. NaN where a call failed. ``greedy`` is NaN where no steps were stored.
    """
    chances = probabilities(responses, sampling.choices)[:, 0]
    # A failed call has only NaN here, and the row becomes NaN again below.
    most_probable = np.nan_to_num(chances).argmax(axis=1)
    greedy = np.nan
    if SPELLING in store.manifest:
        greedy = ratings_from_scores(responses, store, sampling, Reading("greedy"))[0]
    mean = ratings_from_scores(responses, store, sampling)[0]

    columns = {
        "most_probable": _points(sampling)[most_probable],
        "greedy": greedy,
        "expected": mean,
    }
    table = pd.DataFrame(columns, responses.index)
    return table.where(mean.notna())


def _points(sampling: Sampling) -> NDArray[np.float64]:
    """Convert the choices to numbers."""
    return np.array([float(choice) for choice in sampling.choices])


def _draw(chances: NDArray[np.float64], trials: pd.Series, seed: int) -> NDArray[np.intp]:
    """Draw the index of one answer for each row, by its probabilities.

    Trial t takes the t-th number of one random stream. So a draw does not depend on which rows are
    read together.
    """
    trials = np.asarray(trials)
    first = int(trials.min())
    last = int(trials.max())
    # The stream is wound on to the block of numbers that holds the first trial's.
    blocks_before = first // NUMBERS_PER_COUNT
    begin = blocks_before * NUMBERS_PER_COUNT
    stream = np.random.Philox(key=seed)
    stream.advance(blocks_before)
    generator = np.random.Generator(stream)
    uniform = generator.random(last + 1 - begin)

    # The answer drawn is the first whose cumulative probability reaches the trial's number. Its
    # index is the number of answers before it.
    number_of_trial = uniform[trials - begin]
    is_before = chances.cumsum(axis=1) < number_of_trial[:, None]
    # Rounding can leave the sum of all chances below the number.
    last_answer = chances.shape[1] - 1
    return is_before.sum(axis=1).clip(max=last_answer)
