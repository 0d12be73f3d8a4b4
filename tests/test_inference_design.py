"""Designs: trials on demand, in the order of their factors."""

from itertools import product

import pytest

from ingroup.inference.answers import prompt_key
from ingroup.inference.design import Block, Design


def render(condition):
    """Write all levels of a condition."""
    return [{"role": "user", "content": " ".join(map(str, condition.values()))}]


FACTORS = {"perceiver": ["a", "b"], "event": [1, 2, 3]}
BLOCKS = [Block({"setting": "P0"}, FACTORS, render), Block({"setting": "P1"}, FACTORS, render)]


def test_the_last_factor_varies_fastest():
    design = Design(BLOCKS)
    expected = [("P0", *levels) for levels in product("ab", (1, 2, 3))]
    expected += [("P1", *levels) for levels in product("ab", (1, 2, 3))]
    assert [tuple(trial.condition.values()) for trial in design] == expected
    assert [trial.number for trial in design] == list(range(12))
    assert design[7].chat == [{"role": "user", "content": "P1 a 2"}]


def test_trials_outside_the_design_are_refused():
    with pytest.raises(IndexError, match="trial 12 of a design of 12 trials"):
        Design(BLOCKS)[12]


def test_the_digest_covers_levels_labels_and_prompts():
    digest = Design(BLOCKS).digest
    other_levels = Block({"setting": "P0"}, {**FACTORS, "event": [1, 2, 4]}, render)
    other_prompts = Block({"setting": "P0"}, FACTORS, lambda c: render({**c, "end": "."}))
    assert Design(BLOCKS).digest == digest
    assert Design([other_levels, BLOCKS[1]]).digest != digest
    assert Design([other_prompts, BLOCKS[1]]).digest != digest


def test_keys_depend_on_all_turns_and_leave_out_roles():
    system = {"role": "system", "content": "You are Ada."}
    user = {"role": "user", "content": "How do you do?"}
    assert prompt_key([system, user]) == prompt_key([{**system, "role": "user"}, user])
    assert prompt_key([system, user]) != prompt_key([user])
    assert -(2**63) <= prompt_key([user]) < 2**63
    assert Design(BLOCKS).keys[3] == prompt_key(Design(BLOCKS)[3].chat)
