"""The cost of asking a server: prices, estimated tokens, and a limit that a run does not pass.

`ingroup.commands.plan.bill` estimates the cost of a whole run before it starts.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from ingroup.design import Message
from ingroup.inference.engine import BATCH_PRICE_SHARE, EngineError, Reply, Sampling
from ingroup.tables import InputError

CHARACTERS_PER_TOKEN = 4  # of English text, where the model's tokenizer is not at hand
# A batch that the limit cuts below this share of the largest batch so far is not worth its hours.
LEAST_SHARE_OF_BATCH = 0.5
CALLS_FOR_ESTIMATE = 16  # calls whose token counts show how many tokens this model makes of a text
TOKENS_PER_PRICE = 1e6


class LimitReached(EngineError):
    """Error before a call that could pass the cost limit. The message says how much was spent."""


class Prices(NamedTuple):
    """Prices of a million prompt tokens and of a million output tokens, in any one currency."""

    prompt: float = 0.0
    output: float = 0.0

    @property
    def are_given(self) -> bool:
        """Tell whether any price is above 0.

        Returns
        -------
        bool
            False where both are 0.
        """
        return self.prompt > 0 or self.output > 0

    def cost(self, prompt_tokens: float, output_tokens: float) -> float:
        """Compute the price of tokens.

        Parameters
        ----------
        prompt_tokens : float
            The number of prompt tokens.
        output_tokens : float
            The number of output tokens.

        Returns
        -------
        float
            The price, in the currency of the prices.
        """
        return (prompt_tokens * self.prompt + output_tokens * self.output) / TOKENS_PER_PRICE


def prices_of(parameters: Mapping[str, Any]) -> Prices:
    """Read the prices among a run's parameters.

    Parameters
    ----------
    parameters : mapping
        The run's parameters.

    Returns
    -------
    Prices
        The prices in PRICE_IN and PRICE_OUT, 0 for a price that is not given.
    """
    return Prices(
        prompt=parameters.get("PRICE_IN") or 0.0,
        output=parameters.get("PRICE_OUT") or 0.0,
    )


def money(amount: float) -> str:
    """Write an amount with two decimals, or four where it is below 1 and not 0.

    Parameters
    ----------
    amount : float
        The amount, at least 0.

    Returns
    -------
    str
        The number with commas between thousands, without a currency.
    """
    # Cents would show a cheap test run as free.
    decimals = 4 if 0 < amount < 1 else 2
    return f"{amount:,.{decimals}f}"


def n_characters(chat: Sequence[Message]) -> int:
    """Count the characters of a chat's texts.

    Parameters
    ----------
    chat : sequence of Message
        The turns of the chat.

    Returns
    -------
    int
        The number of characters, roles not included.
    """
    return sum(len(message["content"]) for message in chat)


class CharacterEstimate:
    """Estimate of token counts by characters, in place of a `prompts.Prompter`."""

    def batch(self, conversations: Sequence[Sequence[Message]]) -> list[range]:
        """Return for each chat a sequence that has its estimated number of tokens.

        Parameters
        ----------
        conversations : sequence
            The chats, each a sequence of turns.

        Returns
        -------
        list of range
            A sequence per chat, whose length is the estimate: the characters divided by
            `CHARACTERS_PER_TOKEN`, rounded up.
        """
        estimates = []
        for chat in conversations:
            n_tokens = math.ceil(n_characters(chat) / CHARACTERS_PER_TOKEN)
            # A range has a length and takes no memory, whatever its length.
            estimates.append(range(n_tokens))
        return estimates


def max_output_tokens(sampling: Sampling) -> int:
    """Count the most output tokens of one trial, over all of its calls.

    Parameters
    ----------
    sampling : Sampling
        How replies are drawn.

    Returns
    -------
    int
        The most tokens of a reply, once for each answer prefix.
    """
    return sampling.max_tokens * len(sampling.leads)


class Budget:
    """Account of one run's cost, which tells how many calls the limit still allows.

    A server may bill a failed call, or a reply that it sends without token counts. Each of these
    counts at its highest possible cost. A call that is to go in a batch (``in_batch``) costs
    `BATCH_PRICE_SHARE` of the price. The price of a reply is multiplied by its own ``price_share``.

    Parameters
    ----------
    limit : float
        The limit in the currency of the prices, 0 for no limit.
    its_prices : Prices, optional
        The prices, 0 unless given.

    Attributes
    ----------
    prompt_tokens, output_tokens : int
        Tokens of this run's replies and of their prompts.
    spent : float
        The price of replies that came from a server.
    in_doubt : float
        The highest possible cost of the replies without token counts.
    uncounted : int
        How many replies have no token counts.
    """

    def __init__(self, limit: float = 0.0, its_prices: Prices | None = None):
        self.limit = limit
        self.prices = its_prices or Prices()
        self.spent = 0.0
        self.in_doubt = 0.0
        self.uncounted = 0
        self.prompt_tokens = 0
        self.output_tokens = 0
        # What the replies of this run show; at first an estimate and the limit that is sent.
        self._tokens_per_character = 1 / CHARACTERS_PER_TOKEN
        self._share_of_max_tokens = 1.0
        self._has_learnt = False
        self._largest_batch = 0

    def highest_cost(
        self, chat: Sequence[Message], sampling: Sampling, in_batch: bool = False
    ) -> float:
        """Compute the highest possible cost of one trial.

        It is the cost of the estimated prompt and of replies of ``max_tokens``. The prompt counts
        with the most tokens per character of any earlier prompt of this run, at least 1/4. A server
        may not count reasoning against ``max_tokens``, so replies count with the length of this
        run's longest reply where that was longer.

        Parameters
        ----------
        chat : sequence of Message
            The prompt.
        sampling : Sampling
            How the reply is drawn.
        in_batch : bool
            Whether the call is to go in a batch, at `BATCH_PRICE_SHARE` of the price.

        Returns
        -------
        float
            The cost, in the currency of the prices.
        """
        prompt_tokens = math.ceil(n_characters(chat) * self._tokens_per_character)
        output_tokens = math.ceil(max_output_tokens(sampling) * self._share_of_max_tokens)
        # The bound takes each answer prefix for a call of its own, with the whole prompt again.
        full_price = self.prices.cost(prompt_tokens * len(sampling.leads), output_tokens)
        return full_price * BATCH_PRICE_SHARE if in_batch else full_price

    def n_affordable(
        self, chats: Sequence[Sequence[Message]], sampling: Sampling, in_batch: bool = False
    ) -> int:
        """Count the chats, from the first, that can be asked at once without passing the limit.

        Each chat counts with the most tokens that it can take. Until the server has counted tokens,
        at most `CALLS_FOR_ESTIMATE` chats are allowed, so that its counts soon replace the
        estimate.

        Parameters
        ----------
        chats : sequence
            Chats that are to be asked, each a sequence of turns.
        sampling : Sampling
            How replies are drawn.
        in_batch : bool
            Whether they are to go in one batch.

        Returns
        -------
        int
            The number of chats, at least 1. Without a limit these are all chats.

        Raises
        ------
        LimitReached
            Not one can be asked, or the limit leaves less than half of this run's largest batch.
        """
        if not self.limit:
            return len(chats)

        # Until the server has counted some prompts, 4 characters a token is a guess.
        if not self._has_learnt:
            chats = chats[:CALLS_FOR_ESTIMATE]

        # Replies in doubt count as if they had been billed, so that the limit holds in any case.
        total = self.spent + self.in_doubt
        allowed = 0
        for chat in chats:
            total += self.highest_cost(chat, sampling, in_batch)
            if total > self.limit:
                break
            allowed += 1

        # A batch may be small where no chats are left, but not where the limit cuts it.
        is_cut = allowed < len(chats)
        is_small = in_batch and is_cut and allowed < LEAST_SHARE_OF_BATCH * self._largest_batch
        if not allowed or is_small:
            raise LimitReached(
                self._reached(self.highest_cost(chats[0], sampling, in_batch), allowed)
            )
        if in_batch:
            self._largest_batch = max(self._largest_batch, allowed)
        return allowed

    def _reached(self, highest_cost: float, allowed: int) -> str:
        """Write the sentence on the limit. An `allowed` above 0 is a batch too small to be sent."""
        small = ""
        if allowed:
            small = f"; a batch of {allowed:,} is not sent, after one of {self._largest_batch:,}"
        return (
            f"COST_LIMIT={self.limit:g} stops this run: {self.bill()} spent, and a further call "
            f"may cost {money(highest_cost)}{small}"
        )

    def bill(self) -> str:
        """Write how much was spent, and the highest possible cost of uncounted replies.

        Returns
        -------
        str
            An amount. If replies came without token counts, their highest possible cost follows.
        """
        if not self.uncounted:
            return money(self.spent)
        return (
            f"{money(self.spent)} (and up to {money(self.in_doubt)} for {self.uncounted:,} replies "
            "without token counts)"
        )

    def count(self, reply: Reply) -> None:
        """Count the tokens of a reply that costs nothing.

        Parameters
        ----------
        reply : Reply
            A reply that was recorded, or computed on this machine.
        """
        self.prompt_tokens += reply.prompt_tokens
        self.output_tokens += reply.output_tokens

    def pay(self, reply: Reply, chat: Sequence[Message], sampling: Sampling) -> None:
        """Count a server's reply to a chat, and its cost by its ``price_share``.

        Parameters
        ----------
        reply : Reply
            The reply, or a failed call.
        chat : sequence of Message
            The prompt that it answers.
        sampling : Sampling
            How the reply was drawn.
        """
        self.count(reply)
        # The server refused the call, or its batch ended without it: nobody bills it.
        if reply.price_share == 0:
            return

        # A failed call, or a server that sends no counts: it may have been billed all the same.
        if not reply.prompt_tokens and not reply.output_tokens:
            self.uncounted += 1
            self.in_doubt += self.highest_cost(chat, sampling) * reply.price_share
            return

        full_price = self.prices.cost(reply.prompt_tokens, reply.output_tokens)
        self.spent += full_price * reply.price_share
        self._has_learnt = True
        # As in `highest_cost`, the prompt counts once for each prefix, and is at least 1 character.
        sent = max(1, n_characters(chat)) * len(sampling.leads)
        # Both numbers only grow, so `highest_cost` stays an upper bound for what comes next.
        self._tokens_per_character = max(self._tokens_per_character, reply.prompt_tokens / sent)
        share = reply.output_tokens / max_output_tokens(sampling)
        self._share_of_max_tokens = max(self._share_of_max_tokens, share)


@cache
def shared_budget(limit: float, its_prices: Prices) -> Budget:
    """Return the one budget of this process with these numbers.

    Parameters
    ----------
    limit : float
        The limit in the currency of the prices, 0 for no limit.
    its_prices : Prices
        Prices of a million tokens.

    Returns
    -------
    Budget
        The same object each time.
    """
    return Budget(limit, its_prices)


def budget_of(parameters: Mapping[str, Any]) -> Budget:
    """Return the budget of a run, by its COST_LIMIT, PRICE_IN and PRICE_OUT.

    All jobs of a process with the same limit and prices share one budget.

    Parameters
    ----------
    parameters : mapping
        The run's parameters.

    Returns
    -------
    Budget
        The budget, which other jobs of this run may share.

    Raises
    ------
    InputError
        There is a limit and a price is missing.
    """
    limit = parameters.get("COST_LIMIT") or 0.0
    its_prices = prices_of(parameters)
    # Tokens without a price would count as free, and the run would pass its limit.
    if limit and not (its_prices.prompt and its_prices.output):
        raise InputError(
            "COST_LIMIT needs the prices of a million tokens: set PRICE_IN and PRICE_OUT, found "
            f"{its_prices.prompt:g} and {its_prices.output:g}"
        )
    return shared_budget(limit, its_prices)
