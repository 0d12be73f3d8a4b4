"""Index -> condition -> index, in designs of a few lines; the studies' own are in their rooms."""

import hashlib
import sys
from itertools import islice, product

import pytest

from ingroup.design import Block, Design, fill_template, tenth
from ingroup.tables import InputError


def block(setting, category, **factors):
    def render(condition):
        text = fill_template("{a} asks {b}", {"a": str(condition["a"]), "b": str(condition["b"])})
        return [{"role": "user", "content": text}]

    labels = {"setting": setting, "category": category}
    return Block(labels, factors, render, "{a} asks {b}")


@pytest.fixture
def plan():
    first = {"a": "abc", "b": range(4)}
    second = {"a": "de", "b": range(5)}
    blocks = [
        block("P0", "x", **first),
        block("P0", "y", **second),
        block("P1", "x", **first),
    ]
    return Design(blocks)


def test_each_trials_condition_leads_back_to_its_number(plan):
    assert len(plan) == 12 + 10 + 12
    for number, trial in enumerate(plan):
        assert trial.index == number
        assert plan.index(trial.condition) == number

    condition = {"setting": "P0", "category": "y", "a": "d", "b": 1}
    assert plan[13] == (13, condition, [{"role": "user", "content": "d asks 1"}])
    assert plan[-1] == plan[33]
    for beyond in (34, -35):
        with pytest.raises(IndexError, match="of a design of 34 trials"):
            plan[beyond]


def test_neighbours_differ_in_the_fastest_factor_first(plan):
    levels = [(trial.condition["a"], trial.condition["b"]) for trial in islice(plan, 12)]
    assert levels == list(product("abc", range(4)))
    assert list(plan[0].condition) == ["setting", "category", "a", "b"]


def test_a_large_design_costs_no_more_memory_than_a_small_one():
    def size(plan):
        parts = [*vars(plan).values(), *plan.blocks, *plan.blocks[0].factors.values()]
        return sum(map(sys.getsizeof, parts))

    small = Design([block("P0", "x", a=range(3), b=range(3))])
    large = Design([block("P0", "x", a=range(10_000), b=range(10_000))])

    assert len(large) == 10**8
    assert large[98_765_432].messages[0]["content"] == "9876 asks 5432"
    assert size(large) == size(small)


def test_a_condition_of_no_block_has_no_number(plan):
    with pytest.raises(KeyError, match="no block of the design has"):
        plan.index({"setting": "P0", "category": "z", "a": "d", "b": 1})


def test_another_text_gives_another_fingerprint():
    def print_of(setting="P0", templates="t", a="ab"):
        labels = {"setting": setting}
        return Design([Block(labels, {"a": a}, list, templates)]).fingerprint

    content = b'[{"setting": "P0"}, "t", {"a": "ab"}]'
    assert print_of() == hashlib.sha256(content).hexdigest()

    prints = {print_of(), print_of("P1"), print_of(templates="u"), print_of(a="ba")}
    assert len(prints) == 4


def test_the_digest_of_chats_covers_the_first_the_last_and_64_between():
    def digest_of(size, changed=None):
        def render(condition):
            text = "other" if condition["n"] == changed else str(condition["n"])
            return [{"role": "user", "content": text}]

        return Design([Block({}, {"n": range(size)}, render, "")]).chats_digest

    both = b'[[{"role": "user", "content": "0"}], [{"role": "user", "content": "1"}]]'
    assert digest_of(2) == hashlib.sha256(both).hexdigest()[:16]

    whole = digest_of(131)  # every second one is sampled
    sampled = [number for number in range(131) if digest_of(131, number) != whole]
    assert sampled == list(range(0, 131, 2))
    assert digest_of(1) != digest_of(1, 0)


def test_values_are_filled_in_one_pass_and_braces_in_them_stay():
    assert fill_template("{a} and {b}, {{c}}", {"a": "{b}", "b": "{a}"}) == "{b} and {a}, {{c}}"
    assert fill_template("as it is {x}", {}) == "as it is {x}"
    with pytest.raises(InputError, match=r"has no placeholder \{b\}"):
        fill_template("{a}", {"a": "1", "b": "2"})


def test_a_tenth_is_the_same_each_time_and_in_order():
    levels = [f"level {number}" for number in range(103)]
    chosen = tenth(levels)

    assert chosen == tenth(levels)
    assert len(chosen) == 11
    places = [levels.index(level) for level in chosen]
    assert places == sorted(places)
    assert chosen != levels[:11]

    assert len(tenth(levels[:12], least=2)) == 2
    assert tenth(["only"], least=2) == ["only"]
