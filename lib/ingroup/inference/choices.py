"""Scored answers: how a model spells each admissible answer, and how probable each answer is.

The answers form a tree of tokens. The probabilities of the tokens that continue or end an
admissible answer are renormalised at each place of the tree. Grammar-constrained decoding at
temperature 1 would draw from the same distribution.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import log_softmax

from ingroup.parsing import Ending

Tokens = tuple[int, ...]  # ids
Floats = NDArray[np.float64]
Steps = Sequence[Floats]  # at each place of a tree: (prompts, steps)
LEAST_PROBABILITY = 1e-12  # probability left for an end, which rounding can make 0 or negative
LEAST_LOG_PROBABILITY = -100.0  # log-probability of an ending for which a model has no token

N_SHOWN = 5  # answers that are shown of a distribution
SUM_TOLERANCE = 2e-3  # of a sum of probabilities that are stored to three digits


def are_valid_scores(stored: pa.ChunkedArray, n_prefixes: int, width: int) -> bool:
    """Tell whether a store's column of scored answers can be right.

    Parameters
    ----------
    stored : pyarrow.ChunkedArray
        One list of numbers for each reply, empty where there is none.
    n_prefixes : int
        How many answer prefixes there are. A reply has an answer after each of them.
    width : int
        How many numbers an answer has: one probability for each choice, or 1 for its option mass.

    Returns
    -------
    bool
        Whether each list has the right length and finite numbers of at least 0. Probabilities have
        to sum to 1, and an option mass is at most 1.
    """
    lists = stored.combine_chunks()
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
    # A list is empty where the call failed, or where a server returned no probabilities.
    is_allowed = np.isin(lengths, [0, n_prefixes * width])
    if not is_allowed.all():
        return False

    values = lists.flatten().to_numpy(zero_copy_only=False)
    # Sums of 16-bit numbers would round off more than the tolerance allows.
    answers = values.astype(np.float32).reshape(-1, width)
    # A NaN fails this comparison as well.
    is_at_least_0 = answers >= 0
    if not is_at_least_0.all():
        return False

    sums = answers.sum(axis=1)
    # An option mass stands alone and need not be 1; probabilities have to sum to 1.
    if width == 1:
        is_at_most_1 = sums <= 1 + SUM_TOLERANCE
        return bool(is_at_most_1.all())
    deviations = np.abs(sums - 1)
    is_close_to_1 = deviations <= SUM_TOLERANCE
    return bool(is_close_to_1.all())


def lists_to_array(column: pd.Series, width: int) -> Floats:
    """Convert a store's column of lists to an array.

    Parameters
    ----------
    column : Series
        An Arrow column with one list for each response, empty where a call failed.
    width : int
        How many numbers a list that is not empty has.

    Returns
    -------
    array of float, shape (responses, width)
        NaN where a call failed.
    """
    # pandas keeps Arrow's column here; its own conversion would make an object of each list.
    lists = column.array._pa_array.combine_chunks()
    is_answered = lists.value_lengths().to_numpy() > 0
    # Empty lists add nothing here, so the values are those of the answered rows alone.
    values = lists.flatten().to_numpy()

    table = np.full((len(column), width), np.nan)
    table[is_answered] = values.reshape(-1, width)
    return table


def probabilities(responses: pd.DataFrame, choices: Sequence[str], n_prefixes: int = 1) -> Floats:
    """Read stored probabilities, renormalised because three digits of each are stored.

    Parameters
    ----------
    responses : DataFrame
        Rows of a store with scored answers to these choices.
    choices : sequence of str
        The admissible answers.
    n_prefixes : int
        How many answer prefixes there are. A reply has an answer after each of them.

    Returns
    -------
    array of float, shape (responses, prefixes, choices)
        Probabilities that sum to 1 for each answer prefix, NaN where a call failed.
    """
    n_choices = len(choices)
    flat = lists_to_array(responses.probabilities, n_prefixes * n_choices)
    stored = flat.reshape(len(responses), n_prefixes, n_choices)
    # The sum is over the choices, the last axis, for each response and answer prefix.
    sums = stored.sum(axis=2, keepdims=True)
    return stored / sums


def most_probable_text(weights: Floats, choices: Sequence[str]) -> str:
    """Write the most probable answers of a distribution on one line.

    Parameters
    ----------
    weights : array of float
        The probability of each choice.
    choices : sequence of str
        The admissible answers.

    Returns
    -------
    str
        `N_SHOWN` answers with their probabilities, the most probable first.
    """
    best = []
    most_probable_first = np.argsort(-weights, kind="stable")
    for index in most_probable_first[:N_SHOWN]:
        choice = choices[index].strip()
        probability = f"{weights[index]:.1%}"
        best.append(f"{choice} ({probability})")
    return ", ".join(best)


def expected_values(
    responses: pd.DataFrame, choices: Sequence[str], n_prefixes: int = 1
) -> pd.DataFrame:
    r"""Compute the mean of the distribution over a scale.

    The papers' ratings are read from text instead.

    Parameters
    ----------
    responses : DataFrame
        Rows of a store with scored answers to these choices.
    choices : sequence of str
        The numbers :math:`v_k` as text.
    n_prefixes : int
        How many answer prefixes there are. A reply has an answer after each of them.

    Returns
    -------
    DataFrame
        One column for each answer prefix, with the index of the responses. NaN where a call failed.

    Notes
    -----
    .. math:: E = \sum_k p_k v_k
    """
    numbers = np.array([float(choice) for choice in choices])
    weights = probabilities(responses, choices, n_prefixes)
    # The last axis, the choices, is summed over: (responses, prefixes, choices) @ (choices,).
    means = weights @ numbers
    return pd.DataFrame(means, responses.index)


def beginnings(texts: Sequence[str | None], choices: Sequence[str]) -> list[str | None]:
    """Find the admissible answer that each text begins with.

    Constrained greedy decoding writes the same as free greedy decoding, as far as the free text
    begins with an admissible answer. A number deeper in a text can be about something else.

    Parameters
    ----------
    texts : sequence of str or None
        The free text that a model wrote, None or NaN where a call failed.
    choices : sequence of str
        The admissible answers.

    Returns
    -------
    list of str or None
        The longest choice that stands at the beginning, after white space. A number counts only
        if no further digit and no decimals follow. None where a text begins with no choice.

    Examples
    --------
    >>> beginnings(["85 of 100", "8.5", "I rate it 85", None], ["8", "85"])
    ['85', None, None, None]
    """
    # A regular expression takes the first alternative that matches, so "AB" stands before "A".
    longest_first = sorted(choices, key=len, reverse=True)
    alternatives = "|".join(map(re.escape, longest_first))
    # "85" and "8.5" do not begin with 8. A full stop behind a number is no decimal point.
    not_within_a_number = "(?![0-9]|[.,][0-9])"
    pattern = re.compile(rf"\s*({alternatives}){not_within_a_number}")

    answers: list[str | None] = []
    for text in texts:
        # pandas turns None into NaN in a column of texts.
        match = pattern.match(text) if isinstance(text, str) else None
        answer = match.group(1) if match else None
        answers.append(answer)
    return answers


def agreement(
    free: Sequence[Any] | np.ndarray,
    chosen: Sequence[Any],
    option_mass: Sequence[float] | pd.Series,
    greedy: Sequence[Any] | None = None,
    mean: Sequence[float] | None = None,
    begun: Sequence[Any] | None = None,
) -> dict[str, float]:
    """Compare free text with scored answers to the same prompts, in the same order.

    First-token and constrained probabilities are known not to match text answers (Wang et al. 2024,
    "My Answer is C").

    Parameters
    ----------
    free : sequence
        The answers that free text holds, NaN or "" where it holds none.
    chosen : sequence
        The most probable admissible answers.
    option_mass : sequence of float
        The probability that the unconstrained model gives to the first tokens of admissible
        answers.
    greedy : sequence, optional
        The admissible answers that greedy decoding would write.
    mean : sequence of float, optional
        The means of the distributions, in points of the scale.
    begun : sequence, optional
        The admissible answers that the texts begin with, see `beginnings`.

    Returns
    -------
    dict
        ``asked`` and ``answered`` are the numbers of prompts and of prompts answered in free text.
        ``agree`` counts free answers equal to the most probable answer, and ``agree_greedy`` free
        answers equal to the greedy answer. ``percent_answered`` is a share of the prompts, and
        ``percent_agree`` and ``percent_agree_greedy`` are shares of the answered prompts (NaN
        without any). ``begin`` counts texts that begin with an admissible answer.
        ``begin_greedy`` counts texts that begin with the greedy answer, or with the most probable
        answer if ``greedy`` is not given. ``mean_above`` is the mean difference of the
        distribution's mean and the free answer in points, and ``mean_apart`` the mean absolute
        difference, both over the answered prompts. ``option_mass`` is in percent.
    """
    # Some studies write "" where a text holds no answer, others NaN.
    free_answers = pd.Series(list(free)).replace("", np.nan)
    is_answered = free_answers.notna()
    # Only prompts answered in free text can agree.
    answered = free_answers[is_answered]
    row = {
        "asked": len(free_answers),
        "answered": int(is_answered.sum()),
        "percent_answered": 100 * is_answered.mean(),
    }
    scored = {"agree": pd.Series(list(chosen))}
    if greedy is not None:
        scored["agree_greedy"] = pd.Series(list(greedy))
    for name, scored_answers in scored.items():
        is_same = answered == scored_answers[is_answered]
        row[name] = int(is_same.sum())
        # The mean of no answers is NaN.
        row[f"percent_{name}"] = 100 * is_same.mean()

    if begun is not None:
        beginnings_of_texts = pd.Series(list(begun))
        begins_with_answer = beginnings_of_texts.notna()
        greedy_answers = scored.get("agree_greedy", scored["agree"])
        is_greedy = beginnings_of_texts == greedy_answers
        row["begin"] = int(begins_with_answer.sum())
        row["begin_greedy"] = int(is_greedy.sum())

    if mean is not None:
        means = pd.Series(list(mean))
        difference = means[is_answered] - answered.astype(float)
        row["mean_above"] = difference.mean()
        row["mean_apart"] = difference.abs().mean()
    row["option_mass"] = 100 * float(np.mean(option_mass))
    return row


class Endings(NamedTuple):
    """Tokens that may stand after a whole answer."""

    turn: Tokens  # the end of the reply
    newline: Tokens  # nothing but newlines


class Place(NamedTuple):
    """First tokens of one or more answers, after which several next tokens are admissible."""

    path: Tokens  # the first tokens, none at the beginning of an answer
    tokens: Tokens  # the next tokens that continue an admissible answer
    is_answer: bool  # whether the first tokens are a whole answer, which may end here

    @property
    def n_steps(self) -> int:
        """Count the steps from this place.

        Returns
        -------
        int
            One step for each token. After an answer there are two more steps, for the end of the
            turn and for a newline.
        """
        return len(self.tokens) + 2 * self.is_answer

    def ids_to_look_up(self, endings: Endings) -> list[int]:
        """List the tokens whose probability an engine looks up at this place.

        Parameters
        ----------
        endings : Endings
            The model's tokens that may end an answer.

        Returns
        -------
        list of int
            Ids of the tokens that go on and, after an answer, of the tokens that end it.
        """
        if not self.is_answer:
            return list(self.tokens)
        return [*self.tokens, *endings.turn, *endings.newline]

    def merge_ends(self, log_probabilities: NDArray[np.floating], endings: Endings) -> Floats:
        """Merge the tokens that end the turn into one step, and the newlines into another.

        Parameters
        ----------
        log_probabilities : array, shape (prompts, tokens)
            The log-probabilities of the tokens that `ids_to_look_up` lists.
        endings : Endings
            The tokens that were looked up as ends.

        Returns
        -------
        array of float, shape (prompts, steps)
            Log-probabilities of the tokens. After an answer, the end of the turn and a newline
            have one each, too.
        """
        logs = log_probabilities.astype(float)
        if not self.is_answer:
            return logs

        # The columns are in the order of `ids_to_look_up`: tokens that go on, ends of the turn,
        # newlines.
        first_end = len(self.tokens)
        first_newline = first_end + len(endings.turn)
        going_on, turn, newline = np.split(logs, [first_end, first_newline], axis=1)
        return np.hstack([going_on, _log_sum(turn), _log_sum(newline)])

    def renormalise(self, steps: Floats, ending: Ending, temperature: float) -> Floats:
        """Renormalise the next steps from a place: tokens that continue an answer, and its end.

        Parameters
        ----------
        steps : array, shape (prompts, steps)
            The steps that :meth:`merge_ends` returns.
        ending : {"turn", "newline", "any"}
            The end of an answer, see :meth:`Tree.probabilities`.
        temperature : float
            The divisor of the log-probabilities, above 0.

        Returns
        -------
        array of float, shape (prompts, ways)
            Log-probabilities, with the end as the last. The probabilities of a row sum to 1.
        """
        if not self.is_answer:
            # No answer can end here: only the tokens that go on share the probability.
            return log_softmax(steps / temperature, axis=1)

        n_tokens = len(self.tokens)
        # Behind the tokens that go on, `steps` has one column for each of the two ends.
        going_on, turn, newline = np.split(steps, [n_tokens, n_tokens + 1], axis=1)
        if ending == "turn":
            end = turn
        elif ending == "newline":
            end = np.logaddexp(turn, newline)
        else:
            # Whatever does not go on with an answer ends it, so the end has all other probability.
            probability_of_going_on = np.exp(going_on).sum(axis=1, keepdims=True)
            rest = 1 - probability_of_going_on
            end = np.log(np.maximum(rest, LEAST_PROBABILITY))
        ways = np.hstack([going_on, end])
        return log_softmax(ways / temperature, axis=1)


def _log_sum(logs: Floats) -> Floats:
    """Return the log of the sum of some tokens' probabilities for each prompt.

    The result has the shape (prompts, 1), and is at least `LEAST_LOG_PROBABILITY`. Without tokens
    the sum is 0, and its log becomes `LEAST_LOG_PROBABILITY`.
    """
    # The start of -inf, a probability of 0, is the sum of no tokens.
    log_sum = np.logaddexp.reduce(logs, axis=1, initial=-np.inf, keepdims=True)
    # An infinite number would make the whole reply invalid.
    return np.maximum(log_sum, LEAST_LOG_PROBABILITY)


class Tree:
    """Admissible answers as a tree of tokens.

    Parameters
    ----------
    spelt : sequence of sequence of int
        The token ids of each answer, as the model's own tokenizer spells it.

    Attributes
    ----------
    places : list of Place
        The places at which several next tokens are admissible. The beginning comes first.

    Raises
    ------
    ValueError
        An answer has no token, or two answers have the same tokens.
    """

    def __init__(self, spelt: Sequence[Sequence[int]]):
        self.spelt = [tuple(answer) for answer in spelt]
        answers = set(self.spelt)
        are_distinct = len(answers) == len(self.spelt)
        has_empty = () in answers
        if has_empty or not are_distinct:
            raise ValueError("every admissible answer needs tokens of its own")

        self.places: list[Place] = []
        # A single way on is certain and needs no probability; the start is a place even so.
        for path, tokens in self._tokens_by_path().items():
            is_answer = path in answers
            is_start = len(path) == 0
            if is_start or is_answer or len(tokens) > 1:
                place = Place(path, tokens, is_answer)
                self.places.append(place)
        # For each answer, the places that it passes, with the index of its way on from there.
        self._routes = [list(self._route(answer)) for answer in self.spelt]

    def _tokens_by_path(self) -> dict[Tokens, Tokens]:
        """Map each beginning of an answer to its next tokens, in the order of the answers."""
        # A dict has each token once and keeps their order, which a set would not.
        following: dict[Tokens, dict[int, None]] = {}
        for answer in self.spelt:
            for length, token in enumerate(answer):
                path = answer[:length]
                tokens = following.setdefault(path, {})
                tokens[token] = None
        return {path: tuple(tokens) for path, tokens in following.items()}

    @property
    def needs_an_end(self) -> bool:
        """Tell whether the tokens of one answer are the first tokens of a longer answer.

        Only the end of the answer, the end of the reply or a newline, then tells the two apart.

        Returns
        -------
        bool
            True for numbers such as 1 and 10, False for single letters.
        """
        return any(place.is_answer for place in self.places)

    @property
    def n_steps(self) -> int:
        """Count the steps of a reply, over all places.

        Returns
        -------
        int
            The number of steps that a store keeps of the answer after one prefix.
        """
        return sum(self._n_steps())

    def _n_steps(self) -> list[int]:
        """Count the steps of each place."""
        return [place.n_steps for place in self.places]

    def split(self, steps: Floats) -> list[Floats]:
        """Split stored steps into one array per place.

        Parameters
        ----------
        steps : array, shape (prompts, all steps)
            The steps of some replies, after one answer prefix.

        Returns
        -------
        list of array
            For each of `places`, an array of shape (prompts, steps).
        """
        n_steps = self._n_steps()
        ends = np.cumsum(n_steps)
        # np.split takes the borders between parts; the last end is no border.
        borders = ends[:-1]
        return np.split(steps.astype(float), borders, axis=1)

    def probabilities(
        self,
        steps: Steps,
        ending: Ending = "turn",
        temperature: float = 1.0,
    ) -> Floats:
        """Compute the probability of each answer.

        The ways on from each place are renormalised. They are the tokens that go on with an
        admissible answer and, after a whole answer, its end. An answer's probability is the product
        along its path.

        Parameters
        ----------
        steps : sequence of array
            The log-probabilities at each place, (prompts, steps) as :meth:`Place.merge_ends`
            returns them.
        ending : {"turn", "newline", "any"}
            The end of an answer: the end of the turn, that or a newline, or any token that does not
            go on with an admissible answer.
        temperature : float
            The divisor of the log-probabilities of the ways on, above 0.

        Returns
        -------
        array of float
            The probabilities, of shape (prompts, answers). Each row sums to 1.
        """
        ways = self._ways(steps, ending, temperature)
        # An answer's log-probability is the sum of the logs of its ways, place by place.
        columns = []
        n_prompts = len(steps[0])
        for route in self._routes:
            log_probability = np.zeros(n_prompts)
            for place, way in route:
                logs = ways[place.path]
                log_probability = log_probability + logs[:, way]
            columns.append(log_probability)
        return np.exp(np.stack(columns, axis=1))

    def greedy_answers(self, steps: Steps, ending: Ending = "turn") -> NDArray[np.intp]:
        """Find the answer that greedy decoding would write if it were held to admissible answers.

        It takes the most probable step at each place, and need not be the most probable answer.

        Parameters
        ----------
        steps : sequence of array
            As in :meth:`probabilities`.
        ending : {"turn", "newline", "any"}
            As in :meth:`probabilities`.

        Returns
        -------
        array of int, shape (prompts,)
            The index of the greedy answer to each prompt.
        """
        # First the best way at each place, for all prompts at once.
        best_way = {}
        for path, logs in self._ways(steps, ending).items():
            best_way[path] = logs.argmax(axis=1)

        # Then whether each answer takes the best way at all of its places: (answers, prompts).
        is_greedy = []
        n_prompts = len(steps[0])
        for route in self._routes:
            takes_best = np.ones(n_prompts, dtype=bool)
            for place, way in route:
                takes_best &= best_way[place.path] == way
            is_greedy.append(takes_best)
        # Exactly one answer does for each prompt, and argmax finds this True.
        return np.argmax(is_greedy, axis=0)

    def is_tied(self, steps: Steps, ending: Ending = "turn") -> NDArray[np.bool_]:
        """Tell for each prompt whether a tie decides the greedy answer.

        `greedy_answers` takes the first of equally probable steps, as free greedy decoding does.
        Logits of 16 bits are often equal.

        Parameters
        ----------
        steps : sequence of array
            As in :meth:`probabilities`.
        ending : {"turn", "newline", "any"}
            As in :meth:`probabilities`.

        Returns
        -------
        array of bool, shape (prompts,)
            Whether two ways are equally probable at some place of the greedy answer, and no other
            way is more probable there.
        """
        has_tie = {}
        for path, logs in self._ways(steps, ending).items():
            # Stored steps have 16 bits, so equal numbers are exactly equal and need no tolerance.
            largest = logs.max(axis=1, keepdims=True)
            n_largest = (logs == largest).sum(axis=1)
            has_tie[path] = n_largest > 1

        greedy = self.greedy_answers(steps, ending)
        tied = np.zeros(len(greedy), dtype=bool)
        # A tie counts only at the places that the greedy answer passes.
        for answer, route in enumerate(self._routes):
            is_answer = greedy == answer
            for place, _ in route:
                tied |= is_answer & has_tie[place.path]
        return tied

    def _ways(self, steps: Steps, ending: Ending, temperature: float = 1.0) -> dict[Tokens, Floats]:
        """Compute the renormalised log-probabilities of the ways on, by the path of the place."""
        ways = {}
        for place, steps_of_place in zip(self.places, steps, strict=True):
            ways[place.path] = place.renormalise(steps_of_place, ending, temperature)
        return ways

    def _route(self, answer: Tokens) -> Iterator[tuple[Place, int]]:
        """Yield each place that an answer passes, with the index of its way on from there."""
        for place in self.places:
            length = len(place.path)
            if answer == place.path:
                # The end is the last of the ways, behind the tokens that go on.
                yield place, len(place.tokens)
            elif answer[:length] == place.path:
                yield place, place.tokens.index(answer[length])
