"""Scored answers through a server: by hand, from tokens as tokenizers of several kinds spell."""

import math

import numpy as np
import pytest

from ingroup.inference.top_logprobs import Token, score

SCALE = [str(number) for number in range(101)]
VERDICTS = ["[[A]]", "[[B]]", "[[C]]", "[[D]]"]


def written(*texts):
    """Tokens that a server is sure of."""
    return [Token(text, {text: 1.0}) for text in texts]


def test_the_first_token_is_the_whole_number():
    (found,) = score([Token("72", {"72": 0.5, "7": 0.2, "65": 0.1, "I": 0.15})], SCALE)
    assert found.option_mass == pytest.approx(0.8)
    seen = {number: p for number, p in enumerate(found.probabilities) if p}
    assert seen == pytest.approx({72: 0.5 / 0.8, 7: 0.2 / 0.8, 65: 0.1 / 0.8})


def test_a_digit_that_may_go_on_is_missing_mass_where_numbers_are_spelt():
    tokens = [Token("7", {"7": 0.6, "8": 0.3, "I": 0.1}), Token("2", {"2": 0.9, "0": 0.1})]
    (found,) = score(tokens, SCALE)
    assert found.option_mass == 0
    assert np.isnan(found.probabilities).all()


def test_a_space_before_the_number_and_a_stop_behind_it_are_passed_over():
    tokens = [*written(" "), Token(" 72", {" 72": 0.5, "72": 0.25, "65.": 0.125, "65.5": 0.1})]
    (found,) = score(tokens, SCALE)
    assert found.option_mass == pytest.approx(0.75)
    assert found.probabilities[72] == 1


def test_on_one_to_five_a_digit_is_the_choice():
    five = ["1", "2", "3", "4", "5"]
    (found,) = score([Token("4", {"4": 0.6, "5": 0.2, "7": 0.1, "45": 0.05})], five)
    assert found.option_mass == pytest.approx(0.8)
    assert found.probabilities == pytest.approx([0, 0, 0, 0.75, 0.25])


@pytest.mark.parametrize(
    "tokens",
    [
        [*written("[[", ), Token("B", {"B": 0.5, "A": 0.3, "E": 0.2}), *written("]]")],
        [*written("Because", " of", " it", ".", " ["), *written("["),
         Token("B", {"B": 0.5, "A": 0.3, "E": 0.2}), *written("]", "]")],
        [Token("[[B", {"[[B": 0.5, "[[A": 0.3, "I": 0.2}), *written("]]")],
        [Token("[[B]]", {"[[B]]": 0.5, "[[A]]": 0.3, "I": 0.2})],
    ],
)  # fmt: skip
def test_letters_stand_behind_their_brackets(tokens):
    (found,) = score(tokens, VERDICTS)
    assert found.option_mass == pytest.approx(0.8)
    assert found.probabilities == pytest.approx([0.375, 0.625, 0, 0])


def test_the_last_verdict_is_read():
    tokens = [
        *written("[["), Token("A", {"A": 1.0}), *written("]]", " or ", "[["),
        Token("C", {"C": 0.75, "A": 0.25}), *written("]]"),
    ]  # fmt: skip
    (found,) = score(tokens, VERDICTS)
    assert found.probabilities == pytest.approx([0.25, 0, 0.75, 0])


def test_each_answer_prefix_is_looked_for_behind_the_one_before():
    choices = [f" {number}" for number in range(1, 6)]
    leads = ["- Friendly:", "\n- Sociable:", "\n- Honest:"]
    tokens = [
        *written("-", " Friendly", ":"), Token(" 4", {" 4": 0.5, " 5": 0.5}),
        *written("\n", "- **", "Sociable", "**:"), Token(" 2", {" 2": 0.75, " ": 0.25}),
    ]  # fmt: skip
    friendly, sociable, honest = score(tokens, choices, leads)
    assert friendly.probabilities == pytest.approx([0, 0, 0, 0.5, 0.5])
    assert (sociable.probabilities[1], sociable.option_mass) == (1, pytest.approx(0.75))
    assert (math.isnan(honest.probabilities[0]), honest.option_mass) == (True, 0)


def test_a_mention_in_a_sentence_is_no_rating_and_a_number_that_goes_on_is_none():
    choices = [f" {number}" for number in range(1, 6)]
    tokens = [*written("On a friendly 1 to 5 scale:\n- Friendly:"), Token(" 4", {" 4": 0.75})]
    (found,) = score(tokens, choices, ["- Friendly:"])
    assert (found.probabilities[3], found.option_mass) == (1, 0.75)
    for rest in (".5", "/10", " / 10"):
        (found,) = score([Token("8", {"8": 0.95, "72": 0.01}), *written(rest)], SCALE)
        assert found.option_mass == 0
    (found,) = score([Token("8", {"8": 0.95, "72": 0.01}), *written("/100")], SCALE)
    assert found.probabilities[8] == pytest.approx(0.95 / 0.96)


@pytest.mark.parametrize("tokens", [[], written(""), written("I cannot rate"), written("\n\n")])
def test_a_reply_without_an_answer_has_no_mass(tokens):
    for choices in (SCALE, VERDICTS):
        (found,) = score(tokens, choices)
        assert found.option_mass == 0
        assert np.isnan(found.probabilities).all()


def test_any_tokens_give_a_distribution_or_nan():
    rng = np.random.default_rng(0)
    pieces = ["7", "72", " 7", "[[", "A", "]]", "I", "\n", "100", "-", "", ".", "[[B", " Friendly:"]
    for _ in range(2_000):
        tokens = []
        for text in rng.choice(pieces, rng.integers(0, 6)):
            others = rng.choice(pieces, 4, replace=False)
            weights = rng.dirichlet(np.ones(5))[:4]
            tokens.append(Token(str(text), dict(zip(map(str, others), weights, strict=True))))
        for choices in (SCALE, VERDICTS):
            for found in score(tokens, choices, ["", "Friendly"]):
                assert 0 <= found.option_mass <= 1
                total = found.probabilities.sum()
                assert math.isnan(total) if found.option_mass == 0 else total == pytest.approx(1)
