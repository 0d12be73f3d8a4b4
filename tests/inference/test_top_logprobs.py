"""Scored answers through a server: by hand, from tokens as tokenizers of several kinds spell."""

import math

import numpy as np
import pytest

from ingroup.inference.top_logprobs import Token, read_scores

SCALE = [str(number) for number in range(101)]
ONE_TO_FIVE = ["1", "2", "3", "4", "5"]
SPACED_ONE_TO_FIVE = [" 1", " 2", " 3", " 4", " 5"]
VERDICTS = ["[[A]]", "[[B]]", "[[C]]", "[[D]]"]


def written(*texts):
    """Tokens that a server is sure of."""
    return [Token(text, {text: 1.0}) for text in texts]


def score_one(tokens, choices, *prefixes):
    """The score of a reply that has one answer."""
    scores = read_scores(tokens, choices, *prefixes)
    assert len(scores) == 1
    return scores[0]


def test_the_first_token_is_the_whole_number():
    token = Token("72", {"72": 0.5, "7": 0.2, "65": 0.1, "I": 0.15})

    answer = score_one([token], SCALE)

    possible = {}
    for number, probability in enumerate(answer.probabilities):
        if probability:
            possible[number] = probability

    assert answer.option_mass == pytest.approx(0.8)
    assert possible == pytest.approx({72: 0.5 / 0.8, 7: 0.2 / 0.8, 65: 0.1 / 0.8})


def test_a_digit_that_may_go_on_is_missing_mass_where_numbers_are_spelt():
    first_digit = Token("7", {"7": 0.6, "8": 0.3, "I": 0.1})
    second_digit = Token("2", {"2": 0.9, "0": 0.1})

    answer = score_one([first_digit, second_digit], SCALE)

    assert answer.option_mass == 0
    assert np.isnan(answer.probabilities).all()


def test_a_space_before_the_number_and_a_stop_behind_it_are_passed_over():
    number = Token(" 72", {" 72": 0.5, "72": 0.25, "65.": 0.125, "65.5": 0.1})

    answer = score_one([*written(" "), number], SCALE)

    assert answer.option_mass == pytest.approx(0.75)
    assert answer.probabilities[72] == 1


def test_on_one_to_five_a_digit_is_the_choice():
    digit = Token("4", {"4": 0.6, "5": 0.2, "7": 0.1, "45": 0.05})

    answer = score_one([digit], ONE_TO_FIVE)

    assert answer.option_mass == pytest.approx(0.8)
    assert answer.probabilities == pytest.approx([0, 0, 0, 0.75, 0.25])


LETTER = Token("B", {"B": 0.5, "A": 0.3, "E": 0.2})
BRACKETS_AND_LETTER = Token("[[B", {"[[B": 0.5, "[[A": 0.3, "I": 0.2})
WHOLE_VERDICT = Token("[[B]]", {"[[B]]": 0.5, "[[A]]": 0.3, "I": 0.2})


@pytest.mark.parametrize(
    "tokens",
    [
        [*written("[["), LETTER, *written("]]")],
        [*written("Because", " of", " it", ".", " [", "["), LETTER, *written("]", "]")],
        [BRACKETS_AND_LETTER, *written("]]")],
        [WHOLE_VERDICT],
    ],
)
def test_letters_stand_behind_their_brackets(tokens):
    answer = score_one(tokens, VERDICTS)

    assert answer.option_mass == pytest.approx(0.8)
    assert answer.probabilities == pytest.approx([0.375, 0.625, 0, 0])


def test_the_last_verdict_is_read():
    tokens = [
        *written("[[", "A", "]]"),
        *written(" or ", "[["),
        Token("C", {"C": 0.75, "A": 0.25}),
        *written("]]"),
    ]

    answer = score_one(tokens, VERDICTS)

    assert answer.probabilities == pytest.approx([0.25, 0, 0.75, 0])


def test_each_answer_prefix_is_looked_for_behind_the_one_before():
    prefixes = ["- Friendly:", "\n- Sociable:", "\n- Honest:"]
    tokens = [
        *written("-", " Friendly", ":"),
        Token(" 4", {" 4": 0.5, " 5": 0.5}),
        *written("\n", "- **", "Sociable", "**:"),
        Token(" 2", {" 2": 0.75, " ": 0.25}),
    ]

    friendly, sociable, honest = read_scores(tokens, SPACED_ONE_TO_FIVE, prefixes)

    assert friendly.probabilities == pytest.approx([0, 0, 0, 0.5, 0.5])
    assert sociable.probabilities[1] == 1
    assert sociable.option_mass == pytest.approx(0.75)
    assert math.isnan(honest.probabilities[0])
    assert honest.option_mass == 0


def test_a_mention_in_a_sentence_is_not_a_rating():
    sentence = written("On a friendly 1 to 5 scale:\n- Friendly:")
    rating = Token(" 4", {" 4": 0.75})

    answer = score_one([*sentence, rating], SPACED_ONE_TO_FIVE, ["- Friendly:"])

    assert answer.probabilities[3] == 1
    assert answer.option_mass == 0.75


@pytest.mark.parametrize("rest", [".5", "/10", " / 10"])
def test_a_number_that_goes_on_is_not_a_rating(rest):
    number = Token("8", {"8": 0.95, "72": 0.01})

    answer = score_one([number, *written(rest)], SCALE)

    assert answer.option_mass == 0


def test_a_number_out_of_100_is_a_rating():
    number = Token("8", {"8": 0.95, "72": 0.01})

    answer = score_one([number, *written("/100")], SCALE)

    assert answer.probabilities[8] == pytest.approx(0.95 / 0.96)


@pytest.mark.parametrize("choices", [SCALE, VERDICTS], ids=["scale", "verdicts"])
@pytest.mark.parametrize("tokens", [[], written(""), written("I cannot rate"), written("\n\n")])
def test_a_reply_without_an_answer_has_no_mass(tokens, choices):
    answer = score_one(tokens, choices)

    assert answer.option_mass == 0
    assert np.isnan(answer.probabilities).all()


PIECES = ["7", "72", " 7", "[[", "A", "]]", "I", "\n", "100", "-", "", ".", "[[B", " Friendly:"]


def random_token(text, rng):
    """A token with four random alternatives, whose probabilities sum to less than 1."""
    alternatives = rng.choice(PIECES, 4, replace=False).tolist()
    weights = rng.dirichlet(np.ones(5))[:4]
    return Token(str(text), dict(zip(alternatives, weights, strict=True)))


@pytest.mark.parametrize("choices", [SCALE, VERDICTS], ids=["scale", "verdicts"])
def test_any_tokens_give_a_distribution_or_nan(choices):
    rng = np.random.default_rng(0)

    for _ in range(2_000):
        texts = rng.choice(PIECES, rng.integers(0, 6))
        tokens = [random_token(text, rng) for text in texts]

        for answer in read_scores(tokens, choices, ["", "Friendly"]):
            total = answer.probabilities.sum()
            assert 0 <= answer.option_mass <= 1
            if answer.option_mass == 0:
                assert math.isnan(total)
            else:
                assert total == pytest.approx(1)
