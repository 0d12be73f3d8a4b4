"""Scored answers: the tree of admissible answers, and its probabilities."""

import numpy as np
import pytest
from scipy.special import log_softmax

from ingroup.inference.answers import FAILED, Reply, Sampling
from ingroup.inference.scoring import AnswerTree, scored_replies
from ingroup.inference.server import Token, with_scores

END = 11  # of the vocabulary of ten digits and a blank
DIGITS = {str(number): [int(digit) for digit in str(number)] for number in range(101)}


def next_logs(path, rng_seed=0):
    """Give the log-probabilities of a made-up model behind some tokens."""
    seed = abs(hash((rng_seed, *path))) % 2**32
    return log_softmax(np.random.default_rng(seed).normal(size=12))


def looked_up(tree):
    """Look up the ways on at each place of a tree."""
    logs = []
    for place in tree.places:
        values = next_logs(place.path)
        logs += list(values[list(place.tokens)])
        if place.may_end:
            logs.append(values[END])
    return np.array([logs])


def slow_probability(answer, answers):
    """Multiply the renormalised probabilities of an answer's tokens, one after the other."""
    probability = 1.0
    for length in range(len(answer) + 1):
        path = tuple(answer[:length])
        following = {other[length] for other in answers if other[:length] == [*path] != other}
        if list(path) in answers:
            following.add(END)
        values = np.exp(next_logs(path))
        taken = answer[length] if length < len(answer) else END
        probability *= values[taken] / sum(values[token] for token in following)
        if taken == END:
            break
    return probability


def test_probabilities_are_those_of_the_slow_definition():
    answers = list(DIGITS.values())
    tree = AnswerTree(answers)
    fast = tree.probabilities(looked_up(tree))[0]
    slow = [slow_probability(answer, answers) for answer in answers]
    np.testing.assert_allclose(fast, slow, rtol=1e-12)
    assert fast.sum() == pytest.approx(1)


def test_greedy_takes_the_best_token_at_each_place():
    answers = list(DIGITS.values())
    tree = AnswerTree(answers)
    path = []
    while True:
        following = [other[len(path)] for other in answers if other[: len(path)] == path != other]
        ways = [*following, END] if path in answers else following
        best = max(ways, key=lambda token: next_logs(tuple(path))[token])
        if best == END:
            break
        path.append(best)
    assert answers[tree.greedy(looked_up(tree))[0]] == path


def test_the_most_probable_answer_need_not_be_the_greedy_one():
    tree = AnswerTree([[1], [2, 3], [2, 4]])
    # 2 is more probable than 1, and then halves.
    logs = np.log([[0.4, 0.6, 0.5, 0.5]])
    assert tree.probabilities(logs)[0] == pytest.approx([0.4, 0.3, 0.3])
    assert tree.greedy(logs)[0] == 1


def test_equal_spellings_are_refused():
    with pytest.raises(ValueError, match="tokens of its own"):
        AnswerTree([[1], [1]])


def test_numbers_that_are_not_finite_are_failed_calls():
    tree = AnswerTree([[1], [2]])
    logs = np.array([np.log([0.2, 0.3]), [np.nan, 0.0]])
    good, bad = scored_replies(tree, logs, ["a", "b"], [[0], [0]])
    assert good.text == "b"
    assert good.option_mass == pytest.approx([0.5])
    assert (bad.text, bad.finish_reason) == (None, FAILED)


def token(text, **alternatives):
    """Make a token of a server's reply."""
    return Token(text, {name.strip("_"): value for name, value in alternatives.items()})


def test_a_servers_letters_are_renormalised():
    sampling = Sampling(choices=("A", "B"))
    reply = with_scores(Reply("A"), [token("A", A=0.6, B=0.2, C=0.1)], sampling)
    assert reply.probabilities == pytest.approx([0.75, 0.25])
    assert reply.option_mass == pytest.approx([0.8])


def test_a_number_in_two_tokens_has_no_probability():
    sampling = Sampling(choices=tuple(map(str, range(101))))
    reply = with_scores(Reply("100"), [token("10", _10=0.9), token("0", _0=1.0)], sampling)
    assert (reply.text, reply.probabilities, reply.option_mass) == ("100", (), [0.0])


def test_a_server_without_probabilities_is_named():
    reply = with_scores(Reply("A"), [], Sampling(choices=("A", "B")))
    assert reply.finish_reason == FAILED
    assert "READING=free" in reply.error
