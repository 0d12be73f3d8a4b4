"""Scored answers: the probabilities of all admissible answers.

The admissible answers form a tree of tokens. At each place of the tree the tokens that go on, and
the end of an answer, share the probability.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from ingroup.inference.answers import Reply, failed

Floats = NDArray[np.float64]
LEAST_LOG = -100.0  # stands for a probability of 0


def common_length(first: Sequence, second: Sequence) -> int:
    """Count the elements with which two sequences begin alike.

    Parameters
    ----------
    first, second : sequence
        Texts, or lists of tokens.

    Returns
    -------
    int
        The number of equal elements.
    """
    length = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        length += 1
    return length


Tokens = tuple[int, ...]


class Place(NamedTuple):
    """First tokens of answers, the next admissible tokens, and whether an answer may end here."""

    path: Tokens
    tokens: Tokens
    may_end: bool

    @property
    def n_ways(self) -> int:
        """Count the ways on: the tokens, and the end where an answer may end."""
        return len(self.tokens) + self.may_end


class AnswerTree:
    """Admissible answers as a tree of tokens.

    Parameters
    ----------
    spelling : sequence of sequence of int
        The token ids of each answer.

    Raises
    ------
    ValueError
        An answer has no token, or two answers have the same tokens.
    """

    def __init__(self, spelling: Sequence[Sequence[int]]):
        answers = [tuple(answer) for answer in spelling]
        n_different = len(set(answers))
        if () in answers or n_different < len(answers):
            raise ValueError("every admissible answer needs tokens of its own")

        following: dict[Tokens, dict[int, None]] = {}
        for answer in answers:
            for length, token in enumerate(answer):
                following.setdefault(answer[:length], {})[token] = None

        self.places = []
        for path, tokens in following.items():
            place = Place(path, tuple(tokens), path in answers)
            # Where there is one way on, it is certain.
            if not path or place.may_end or len(tokens) > 1:
                self.places.append(place)
        routes = [self._route(answer) for answer in answers]
        self._routes = np.array(routes).T

    def _route(self, answer: Tokens) -> list[float]:
        """Mark the ways that an answer takes, among all ways of all places."""
        marks: list[float] = []
        for place in self.places:
            ways = [0.0] * place.n_ways
            length = len(place.path)
            if answer == place.path:
                ways[-1] = 1.0
            elif answer[:length] == place.path:
                way = place.tokens.index(answer[length])
                ways[way] = 1.0
            marks += ways
        return marks

    def _ways(self, logs: Floats) -> list[Floats]:
        """Renormalise the log-probabilities at each place."""
        sizes = [place.n_ways for place in self.places]
        borders = np.cumsum(sizes)[:-1]
        parts = np.split(logs, borders, axis=1)
        return [log_softmax(part, axis=1) for part in parts]

    def probabilities(self, logs: Floats) -> Floats:
        """Compute the probability of each answer.

        Parameters
        ----------
        logs : array of shape (replies, ways of all places)
            Log-probabilities of the ways on, from `LocalEngine`.

        Returns
        -------
        array of shape (replies, answers)
            Each row sums to 1.
        """
        logs_of_ways = np.hstack(self._ways(logs))
        return np.exp(logs_of_ways @ self._routes)

    def greedy(self, logs: Floats) -> NDArray[np.intp]:
        """Find the answer that greedy decoding writes if it is held to the admissible ones.

        Parameters
        ----------
        logs : array of shape (replies, ways of all places)
            As for `probabilities`.

        Returns
        -------
        array of int
            The number of the answer, for each reply.
        """
        best = []
        for ways in self._ways(logs):
            marks = np.eye(ways.shape[1])
            best.append(marks[ways.argmax(axis=1)])
        # The greedy answer takes the best way at each place that it passes.
        n_taken = np.hstack(best) @ self._routes
        n_places = self._routes.sum(axis=0)
        is_greedy = n_taken == n_places
        return is_greedy.argmax(axis=1)


def scored_replies(
    tree: AnswerTree, logs: Floats, choices: Sequence[str], prompts: Sequence[Sequence[int]]
) -> list[Reply]:
    """Make the replies to some prompts from the log-probabilities at the places of a tree.

    Parameters
    ----------
    tree : AnswerTree
        The choices as tokens.
    logs : array of shape (prompts, ways of all places)
        What the model gave.
    choices : sequence of str
        The admissible answers.
    prompts : sequence of sequence of int
        The token ids of the prompts, for their number.

    Returns
    -------
    list of Reply
        One reply per prompt. A reply whose numbers are not finite is a failed call.
    """
    probabilities = tree.probabilities(logs).tolist()
    greedy = [choices[number] for number in tree.greedy(logs)]
    n_first = len(tree.places[0].tokens)
    masses = np.exp(logs[:, :n_first]).sum(axis=1)
    is_finite = np.isfinite(logs)
    finite = is_finite.all(axis=1)

    replies = []
    for row, prompt in enumerate(prompts):
        if not finite[row]:
            replies.append(failed("the model's logits are not finite numbers"))
            continue
        reply = Reply(
            greedy[row],
            prompt_tokens=len(prompt),
            probabilities=probabilities[row],
            option_mass=[float(masses[row])],
        )
        replies.append(reply)
    return replies


def join(first: Reply, second: Reply) -> Reply:
    """Join the answers behind two prefixes. The join fails if either failed.

    Parameters
    ----------
    first, second : Reply
        The answers behind all prefixes so far, and behind the next one.

    Returns
    -------
    Reply
        The joined answer.
    """
    for reply in (first, second):
        if reply.text is None:
            return reply
    return second._replace(
        text=f"{first.text}{second.text}",
        prompt_tokens=first.prompt_tokens + second.prompt_tokens,
        probabilities=[*first.probabilities, *second.probabilities],
        option_mass=[*first.option_mass, *second.option_mass],
    )
