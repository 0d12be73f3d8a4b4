"""What asking costs, and a limit that holds even if every call takes the most tokens."""

import numpy as np
import pytest

from ingroup.design import Block, Design
from ingroup.inference import Reply, Sampling, fill, open_store
from ingroup.inference.cost import (
    Budget,
    CharacterEstimate,
    LimitReached,
    Prices,
    budget_of,
    max_output_tokens,
    money,
    prices_of,
)
from ingroup.tables import InputError
from toy import Server

CHAT = [{"role": "system", "content": "x" * 100}, {"role": "user", "content": "y" * 300}]
CHATS = [CHAT] * 30
SAMPLING = Sampling(max_tokens=50)
PRICES = Prices(1.0, 2.0)


def cost(prompt_tokens, output_tokens):
    """What a call costs at these prices, per million tokens."""
    return (prompt_tokens * 1.0 + output_tokens * 2.0) / 1e6


MOST = cost(100, 50)  # of CHAT, by four characters a token
FULL_REPLY = Reply("1", "stop", prompt_tokens=100, cached_tokens=0, output_tokens=50)


def test_prices_are_per_million_tokens():
    assert Prices(2.5, 10.0).cost(1_000_000, 100_000) == pytest.approx(3.5)


def test_prices_that_are_not_set_are_0():
    assert prices_of({"PRICE_IN": 2.5, "PRICE_OUT": 10.0}) == (2.5, 10.0)
    assert prices_of({"PRICE_IN": None}) == (0.0, 0.0)
    assert Prices(0.0, 1.0).are_given
    assert not Prices().are_given


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0.0, "0.00"), (0.01234, "0.0123"), (1234.567, "1,234.57")],
)
def test_small_amounts_are_told_to_a_hundredth_of_a_cent(amount, text):
    assert money(amount) == text


def test_tokens_are_estimated_from_characters():
    prompts = CharacterEstimate().batch([CHAT, CHAT[:1], []])

    assert [len(prompt) for prompt in prompts] == [100, 25, 0]


def test_a_call_costs_its_prompt_and_a_reply_of_full_length():
    assert Budget(1.0, PRICES).highest_cost(CHAT, SAMPLING) == pytest.approx(MOST)


def test_a_call_with_two_answer_prefixes_costs_twice():
    sampling = Sampling(max_tokens=50, choices=("1", "2"), leads=("A: ", "B: "))

    assert Budget(1.0, PRICES).highest_cost(CHAT, sampling) == pytest.approx(2 * MOST)
    assert max_output_tokens(sampling) == 100


@pytest.mark.parametrize(("limit", "allowed"), [(5.5, 5), (5.9, 5), (6.1, 6), (1.1, 1), (99.0, 16)])
def test_only_calls_that_fit_are_allowed(limit, allowed):
    """And no more than the first few, before the server has counted any prompt."""
    budget = Budget(limit * MOST, PRICES)

    assert budget.n_affordable(CHATS, SAMPLING) == allowed


def test_without_a_limit_all_are_allowed():
    budget = Budget(0.0, PRICES)
    budget.pay(Reply("1", "stop", 10**9, 0, 10**9), CHAT, SAMPLING)

    assert budget.n_affordable(CHATS, SAMPLING) == 30


def test_what_is_spent_leaves_fewer_calls():
    budget = Budget(10.5 * MOST, PRICES)

    budget.pay(FULL_REPLY, CHAT, SAMPLING)

    assert budget.spent == pytest.approx(MOST)
    assert budget.n_affordable(CHATS, SAMPLING) == 9


def test_no_call_is_allowed_that_could_pass_the_limit():
    budget = Budget(10.5 * MOST, PRICES)
    for _ in range(10):
        budget.pay(FULL_REPLY, CHAT, SAMPLING)

    with pytest.raises(LimitReached) as caught:
        budget.n_affordable([CHAT], SAMPLING)

    assert str(caught.value) == (
        "COST_LIMIT=0.0021 stops this run: 0.0020 spent, and a further call may cost 0.0002"
    )


def test_the_servers_counts_replace_the_estimate():
    """A model that makes two tokens of three characters has dearer prompts than estimated."""
    budget = Budget(100 * MOST, PRICES)

    budget.pay(Reply("1", "stop", 300, 0, 1), CHAT, SAMPLING)
    after_a_dear_prompt = budget.highest_cost(CHAT, SAMPLING)
    budget.pay(Reply("1", "stop", 40, 0, 1), CHAT, SAMPLING)
    after_a_cheap_prompt = budget.highest_cost(CHAT, SAMPLING)

    assert after_a_dear_prompt == pytest.approx(cost(300, 50))
    assert after_a_cheap_prompt == pytest.approx(cost(300, 50))


def test_reasoning_that_max_tokens_does_not_bound_is_expected_again():
    budget = Budget(100 * MOST, PRICES)

    budget.pay(Reply("1", "stop", 100, 0, 175, reasoning_tokens=170), CHAT, SAMPLING)
    after_reasoning = budget.highest_cost(CHAT, SAMPLING)
    budget.pay(Reply("1", "stop", 100, 0, 5), CHAT, SAMPLING)
    after_a_short_reply = budget.highest_cost(CHAT, SAMPLING)

    assert after_reasoning == pytest.approx(cost(100, 175))
    assert after_a_short_reply == pytest.approx(cost(100, 175))


def test_replies_without_counts_are_taken_for_the_most():
    budget = Budget(3.5 * MOST, PRICES)

    budget.pay(Reply(None, "failed", error="no answer"), CHAT, SAMPLING)
    budget.pay(Reply("1", "stop"), CHAT, SAMPLING)

    assert budget.spent == 0.0
    assert budget.uncounted == 2
    assert budget.n_affordable(CHATS, SAMPLING) == 1
    assert budget.bill() == "0.00 (and up to 0.0004 for 2 replies without token counts)"


def test_a_limit_needs_both_prices():
    with pytest.raises(InputError) as caught:
        budget_of({"COST_LIMIT": 5.0, "PRICE_IN": 2.5, "PRICE_OUT": 0.0})

    assert str(caught.value) == (
        "COST_LIMIT needs the prices of a million tokens: set PRICE_IN and PRICE_OUT, found "
        "2.5 and 0"
    )


def test_a_run_that_sets_no_limit_has_none():
    assert budget_of({}).limit == 0.0


def test_a_run_has_one_budget_whatever_it_asks_first():
    given = {"COST_LIMIT": 5.0, "PRICE_IN": 2.5, "PRICE_OUT": 10.0}

    budget = budget_of(given)

    assert budget_of(given | {"MODELS": ["m"]}) is budget
    assert budget_of(given | {"COST_LIMIT": 6.0}) is not budget


def test_calls_in_batches_count_at_half_the_price():
    """But a call that goes alone at the whole one."""
    budget = Budget(5.6 * MOST, PRICES)

    assert budget.highest_cost(CHAT, SAMPLING) == pytest.approx(MOST)
    assert budget.highest_cost(CHAT, SAMPLING, in_batch=True) == pytest.approx(MOST / 2)
    assert budget.n_affordable(CHATS, SAMPLING) == 5
    assert budget.n_affordable(CHATS, SAMPLING, in_batch=True) == 11


def test_a_reply_counts_at_the_share_of_the_price_at_which_it_was_bought():
    budget = Budget(0.0, PRICES)

    budget.pay(FULL_REPLY._replace(price_share=0.5), CHAT, SAMPLING)
    after_a_reply_of_a_batch = budget.spent
    budget.pay(FULL_REPLY, CHAT, SAMPLING)
    after_a_single_reply = budget.spent

    assert after_a_reply_of_a_batch == pytest.approx(MOST / 2)
    assert after_a_single_reply == pytest.approx(MOST * 1.5)


def test_a_reply_without_counts_is_in_doubt_at_the_share_of_its_price():
    budget = Budget(0.0, PRICES)

    budget.pay(Reply("1", "stop", price_share=0.5), CHAT, SAMPLING)

    assert budget.in_doubt == pytest.approx(MOST / 2)
    assert budget.uncounted == 1


def test_a_failed_call_that_costs_nothing_is_not_in_doubt():
    budget = Budget(0.0, PRICES)

    budget.pay(Reply(None, "failed", error="HTTP 400", price_share=0.0), CHAT, SAMPLING)

    assert budget.in_doubt == 0
    assert budget.uncounted == 0


# ---- a store that is filled within a limit -------------------------------------------------------

MOST_OF_A_NUMBER = cost(1, 50)  # of a prompt of one token


def numbers(trials):
    """Trials whose prompt is a number of four digits: one token, by four characters a token."""

    def render(condition):
        return [{"role": "user", "content": str(condition["number"])}]

    return Design([Block({}, {"number": range(1000, 1000 + trials)}, render, "")])


def always_reply(reply):
    return lambda *_: reply


def fill_within(folder, limit, design, reply_of):
    """Fill a store within a limit; the server, the budget, and whether the limit stopped it."""
    server = Server(reply_of, asks_again=True)
    budget = Budget(limit, PRICES)
    store = open_store(folder, design, server, SAMPLING, 40)

    try:
        fill(design, server, store, SAMPLING, "Numbers", budget)
    except LimitReached:
        return server, budget, True

    return server, budget, False


@pytest.mark.parametrize("seed", range(8))
def test_a_run_never_passes_its_limit(seed, tmp_path):
    """Whatever the calls take, and it does not stop before a further call could pass it."""
    rng = np.random.default_rng(seed)
    limit = rng.uniform(0.0002, 0.02)
    longest_reply = int(rng.integers(1, 51))

    def reply_of(chat, *_):
        output_tokens = int(rng.integers(0, longest_reply + 1))
        return Reply("1", "stop", 1, 0, output_tokens)

    server, budget, stopped = fill_within(tmp_path, limit, numbers(500), reply_of)

    answered = sum(server.batches)
    spent = cost(budget.prompt_tokens, budget.output_tokens)
    assert budget.spent == pytest.approx(spent)
    assert budget.prompt_tokens == answered
    assert spent <= limit
    assert stopped == (answered < 500)
    if stopped:
        assert spent + MOST_OF_A_NUMBER > limit


def test_a_slice_counts_calls_in_flight_at_their_most(tmp_path):
    """Replies of one token: the limit of 20.5 full calls allows 16, then as many as still fit."""
    limit = 20.5 * MOST_OF_A_NUMBER
    short_reply = always_reply(Reply("1", "stop", 1, 0, 1))

    server, _, stopped = fill_within(tmp_path, limit, numbers(100), short_reply)

    left = limit - 16 * cost(1, 1)
    assert server.batches[0] == 16
    assert server.batches[1] == int(left / MOST_OF_A_NUMBER) == 20
    assert sum(server.batches) == 100
    assert not stopped


def test_what_was_answered_is_kept_and_never_asked_again(tmp_path):
    limit = 60.5 * MOST_OF_A_NUMBER
    full_reply = always_reply(Reply("1", "stop", 1, 0, 50))
    design = numbers(100)

    first, _, first_stopped = fill_within(tmp_path, limit, design, full_reply)
    second, second_budget, second_stopped = fill_within(tmp_path, limit, design, full_reply)

    assert first_stopped
    assert sum(first.batches) == 60
    assert not second_stopped
    assert sum(second.batches) == 40
    assert not set(first.asked) & set(second.asked) - {"all"}
    assert second_budget.spent == pytest.approx(40 * MOST_OF_A_NUMBER)
    store = open_store(tmp_path, design, second, SAMPLING, 40)
    assert store.read().text.tolist() == ["1"] * 100


class OnThisMachine(Server):
    """Each reply is kept as it comes, though it costs nothing, as transformers' are."""

    costs = False


def test_a_model_on_this_machine_costs_nothing(tmp_path):
    """A run that asks a server too has one limit, which this model neither needs nor uses up."""
    local = OnThisMachine(always_reply("1"))
    budget = Budget(1e-9, PRICES)
    design = numbers(100)
    store = open_store(tmp_path, design, local, SAMPLING, 40, budget)

    fill(design, local, store, SAMPLING, budget=budget)

    assert store.read().text.tolist() == ["1"] * 100
    assert local.batches == [40, 40, 20]
    assert budget.spent == 0.0
    assert budget.in_doubt == 0.0
    assert budget.prompt_tokens == 1000
    assert budget.output_tokens == 100


def test_without_a_limit_a_part_is_asked_at_once(tmp_path):
    server, budget, stopped = fill_within(tmp_path, 0.0, numbers(100), always_reply("1"))

    assert server.batches == [40, 40, 20]
    assert not stopped
    assert budget.prompt_tokens == 1000
    assert budget.output_tokens == 100
