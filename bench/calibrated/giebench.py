"""Simulations of the claims of study 3's intervals and tests, at the sizes of its default run."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import pandas as pd
from scipy.stats import friedmanchisquare
from statsmodels.stats.proportion import proportion_confint

from ingroup.stats.corrections import adjust
from ingroup.stats.paired import PairedTest, mcnemar, paired_test
from ingroup.studies.giebench import statistics, stimuli
from ingroup.studies.giebench.answers import LETTER_PROBABILITIES
from ingroup.studies.giebench.design import PROMPTS

DRAWS = 1000
RUNS = 200
LEVEL = 0.05
N_ORDERS = 4
SIZES = (79, 6)  # items, and items of a category
ITEMS = stimuli.load_questions()
CATEGORY = dict(enumerate(item.category for item in ITEMS))
SPREADS = {"as in the default run": 0.1, "skewed": 1}  # of a judge: see `draw_probabilities`


def interval_of_a_share(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate Wilson's interval of accuracy, also at one position, and of consistency.

    All true shares are equally likely.
    """
    for n in SIZES:
        truths = rng.random(4 * DRAWS)
        # The interval depends on the number of right answers alone, so each is computed once.
        low_of_count, high_of_count = proportion_confint(np.arange(n + 1), n, method="wilson")
        n_right = rng.binomial(n, truths)
        low = low_of_count[n_right]
        high = high_of_count[n_right]
        yield {
            "what": f"interval of accuracy or consistency, {n} items",
            "n": n,
            "claimed": 0.95,
            "inside": (low <= truths) & (truths <= high),
        }


def change(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate `mcnemar` where up to 60 % of the items change.

    The simulation of the test changes as many items to right as to wrong.
    """
    for n, claimed in ((79, 0.98), (6, 1), (4, 1)):
        # `moved` is the share of the items that change, `share_gained` the part of it to right.
        moved = rng.uniform(0, 0.6, DRAWS)
        share_gained = rng.random(DRAWS)

        covered = []
        gain = moved * share_gained
        loss = moved * (1 - share_gained)
        counts = _changes(rng, n, gain, loss)
        for truth, (gained, lost, _) in zip(gain - loss, counts, strict=True):
            low, high, _ = mcnemar(int(gained), int(lost), n)
            covered.append(low <= truth <= high)

        rejected = []
        # As many items gain as lose, so every rejection is a false one.
        half = moved * 0.5
        for gained, lost, _ in _changes(rng, n, half, half):
            _, _, p = mcnemar(int(gained), int(lost), n)
            rejected.append(p < LEVEL)

        yield {
            "what": f"interval of a change, {n} items, at least 0.95",
            "n": n,
            "claimed": claimed,
            "inside": covered,
        }
        yield {
            "what": f"test of a change (McNemar), {n} items",
            "n": n,
            "claimed": LEVEL,
            "inside": rejected,
        }


def _changes(rng: np.random.Generator, n: int, gain: np.ndarray, loss: np.ndarray) -> np.ndarray:
    """Draw how many of n items change to right, to wrong and not at all, (draw, 3)."""
    shares = np.stack([gain, loss, 1 - gain - loss], axis=1)
    return rng.multinomial(n, shares)


def draw_probabilities(rng: np.random.Generator, *shape: int, spread: float = 1) -> np.ndarray:
    """Draw the probabilities that a judge gives to four answers, of which the first is right.

    The judge ignores both who asks and the position of an answer. The judge likes some answers to
    an item more than others, and the right answer no more than a wrong answer. Chance is added
    under each prompt and in each order.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of the probabilities.
    *shape : int
        Items (any number of axes), prompts, orders.
    spread : float
        Spread of the answers, in logits. The small real model of the default run has about 0.1.

    Returns
    -------
    ndarray
        Probabilities, (..., prompt, order, answer), with sum 1 over the answers.
    """
    *items, prompts, orders = shape
    of_items = rng.normal(0, 1, (*items, 1, 1, 4))
    of_prompts = rng.normal(0, 0.5, (*items, prompts, 1, 4))
    of_orders = rng.normal(0, 0.5, (*items, prompts, orders, 4))
    weights = np.exp(spread * (of_items + of_prompts) + spread * of_orders)
    return weights / weights.sum(axis=-1, keepdims=True)


def draw_verdicts(rng: np.random.Generator, prompts: Sequence[str], spread: float) -> pd.DataFrame:
    """Draw the verdicts of a judge on the default run's items, in all orders.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of the answers.
    prompts : sequence of str
        Names of prompts.
    spread : float
        Spread of the judge, as in `draw_probabilities`.

    Returns
    -------
    DataFrame
        Answers in the form of `answers.load`.
    """
    given = draw_probabilities(rng, len(ITEMS), len(prompts), N_ORDERS, spread=spread)
    cells = product(range(len(ITEMS)), prompts, range(N_ORDERS))
    table = pd.DataFrame(cells, columns=["key", "prompt", "shift"])

    # The chosen answer is counted from the right one, whose position differs by item and order.
    correct = (table.key + table["shift"]) % 4
    chosen = (correct + given.argmax(axis=-1).ravel()) % 4
    letters = dict(enumerate(stimuli.LETTERS))
    table["category"] = table.key.map(CATEGORY)
    table["correct"] = correct.map(letters)
    table["letter"] = chosen.map(letters)
    table["status"] = "ok"
    # The rows of `cells` and of the probabilities have one order: item, prompt, order.
    table[list(LETTER_PROBABILITIES)] = given.reshape(-1, 4)
    return table.sort_values(["prompt", "shift", "key"])


def p_right(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate the intervals and tests, over items, of the right letter's probability and its gain.

    The right answer is liked no more than the others. So the true probability is a quarter, and the
    true gain is 0. The probabilities of a judge that is sure of itself are skewed. The interval of
    six such items has a claim of its own.
    """
    for n, (kind, spread) in product(SIZES, SPREADS.items()):
        by_order = draw_probabilities(rng, 2 * DRAWS, n, 2, N_ORDERS, spread=spread)
        # The mean over the orders leaves (simulation, item, prompt, answer).
        given = by_order.mean(axis=-2)
        # The first of two prompts is Raw, and the first answer is the right one.
        raw = given[..., 0, 0]
        with_identity = given[..., 1, 0]

        # A t-test of six skewed probabilities rejects too often; the test draws answers instead.
        pvalues = [statistics.right_against_random(items, 999) for items in given[:, :, 0]]
        yield from _zero_and_p(
            f"the right letter's p, {n} items, {kind}",
            n,
            paired_test(raw, statistics.CHANCE),
            np.array(pvalues),
            covered=0.91 if n == 6 and kind == "skewed" else 0.95,
        )

        gain = paired_test(with_identity, raw)
        yield from _zero_and_p(
            f"its gain, {n} items, {kind}",
            n,
            gain,
            gain.pvalue,
            covered=0.95,
        )


def _zero_and_p(
    what: str, n: int, test: PairedTest, pvalues: np.ndarray, covered: float
) -> Iterator[dict]:
    """Yield how often an interval holds 0, and how often a test rejects."""
    yield {
        "what": f"interval of {what}",
        "n": n,
        "claimed": covered,
        "inside": (test.low <= 0) & (test.high >= 0),
    }
    yield {
        "what": f"test of {what}",
        "n": n,
        "claimed": LEVEL,
        "inside": pvalues < LEVEL,
    }


def position(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate Cochran's Q where no position is better than another.

    The test is Friedman's, as in `position_test`.
    """
    n = SIZES[0]
    given = draw_probabilities(rng, 4 * DRAWS, n, 1, N_ORDERS)[:, :, 0]
    # The first answer is the right one, in every order.
    is_right = given.argmax(axis=-1) == 0
    # The test takes one argument per order, each (simulation, item).
    by_order = np.moveaxis(is_right.astype(int), -1, 0)
    test = friedmanchisquare(*by_order, axis=-1)
    yield {
        "what": f"test of positions (Cochran's Q), {n} items",
        "n": n,
        "claimed": LEVEL,
        "inside": test.pvalue < LEVEL,
    }


def p_right_of_a_run(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate findings in any category under one prompt, for a judge that ignores who asks."""
    for kind, spread in SPREADS.items():
        has_finding = []
        for _ in range(DRAWS):
            answers = draw_verdicts(rng, ["Raw"], spread)
            table = statistics.right_letter_probability(answers)
            has_finding.append(table.p_holm.lt(LEVEL).any())

        yield {
            "what": f"test of a whole run, the right letter's p, {kind}",
            "n": len(ITEMS),
            "claimed": LEVEL,
            "inside": has_finding,
        }


def positions_of_a_run(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate findings under any of three prompts, for a judge that ignores positions."""
    for kind, spread in SPREADS.items():
        has_finding = []
        for _ in range(2 * DRAWS):
            table = statistics.position_test(draw_verdicts(rng, PROMPTS, spread))
            has_finding.append(table.finding.eq("significant").any())

        yield {
            "what": f"test of a whole run, positions, {kind}",
            "n": len(ITEMS),
            "claimed": LEVEL,
            "inside": has_finding,
        }


def gains_of_a_run(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate findings in any category, of each prompt over Raw.

    The judge ignores who asks.
    """
    category = pd.Series(CATEGORY)
    items_by_category = category.groupby(category, sort=False).groups
    for kind, spread in SPREADS.items():
        by_order = draw_probabilities(rng, 2 * DRAWS, len(ITEMS), 3, N_ORDERS, spread=spread)
        given = by_order.mean(axis=-2)
        right = given[..., 0]
        raw = right[..., 0]
        for number, prompt in ((1, "ID"), (2, "COT")):
            with_prompt = right[..., number]
            pvalues = []
            for items in items_by_category.values():
                test = paired_test(with_prompt[:, items], raw[:, items])
                pvalues.append(test.pvalue)

            has_finding = []
            # One row per run; its categories are one family.
            for of_run in np.transpose(pvalues):
                corrected = adjust(of_run, "holm")
                has_finding.append(corrected.min() < LEVEL)

            yield {
                "what": f"test of a whole run, gain of the right letter's p, {prompt}, {kind}",
                "n": len(ITEMS),
                "claimed": LEVEL,
                "inside": has_finding,
            }


def negative_control(rng: np.random.Generator) -> Iterator[dict]:
    """Simulate findings in any family, in runs of the default design whose prompts do not differ.

    The tuples of the mismatch are left out, as no tuple of 3 to 6 items can be significant.
    """
    for kind, spread in SPREADS.items():
        has_finding = defaultdict(list)
        for _ in range(RUNS):
            answers = draw_verdicts(rng, PROMPTS, spread)
            first_order = answers[answers["shift"] == 0]
            for prompt in ("ID", "COT"):
                table = statistics.changes(first_order, "Raw", prompt)
                is_significant = table.finding.eq("significant")
                # The last row of the table is Overall, which is a family of its own.
                categories = is_significant[:-1]
                overall = is_significant[-1:]
                has_finding[f"categories, {prompt} over Raw"].append(categories.any())
                has_finding[f"Overall, {prompt} over Raw"].append(overall.any())

        for family, inside in has_finding.items():
            yield {
                "what": f"test of a whole run, {family}, {kind}",
                "n": len(ITEMS),
                "claimed": LEVEL,
                "inside": inside,
            }


ROWS = (
    interval_of_a_share,
    change,
    p_right,
    position,
    p_right_of_a_run,
    gains_of_a_run,
    positions_of_a_run,
    negative_control,
)
