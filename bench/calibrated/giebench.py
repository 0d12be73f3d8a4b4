"""What study 3's intervals and tests claim, simulated at the sizes of its default run."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pandas as pd

from ingroup.stats.paired import mcnemar, wilson
from ingroup.studies.giebench import statistics, stimuli

DRAWS = 1000
RUNS = 200
LEVEL = 0.05
SIZES = (66, 6)  # items, and items of a category
ITEMS = stimuli.load_questions()
LETTERS = list(stimuli.LETTERS)


def interval_of_a_share(rng: np.random.Generator) -> Iterator[dict]:
    """Wilson's, of accuracy, at a place too, and of consistency; any share is as likely."""
    for n in SIZES:
        truths = rng.random(4 * DRAWS)
        low, high = np.transpose([wilson(right, n) for right in range(n + 1)])
        right = rng.binomial(n, truths)
        inside = (low[right] <= truths) & (truths <= high[right])
        what = f"interval of accuracy or consistency, {n} items"
        yield {"what": what, "n": n, "claimed": 1 - LEVEL, "inside": inside}


def change(rng: np.random.Generator) -> Iterator[dict]:
    """`mcnemar`: up to 60 % of the items change, in the test as many to right as to wrong."""
    for n, held in zip((*SIZES, 4), (0.98, 1, 1), strict=True):
        moved, up = rng.uniform(0, 0.6, DRAWS), rng.random(DRAWS)
        found = {}
        for what, share in (("interval", up), ("test", 0.5)):
            gain, loss = moved * share, moved * (1 - share)
            counts = rng.multinomial(n, np.stack([gain, loss, 1 - gain - loss], axis=1))
            found[what] = gain - loss, [mcnemar(*map(int, k[:2]), n) for k in counts]
        inside = [low <= d <= high for d, (low, high, _) in zip(*found["interval"], strict=True)]
        what = f"interval of a change, {n} items, at least 0.95"
        yield {"what": what, "n": n, "claimed": held, "inside": inside}
        inside = [p < LEVEL for _, _, p in found["test"][1]]
        what = f"test of a change (McNemar), {n} items"
        yield {"what": what, "n": n, "claimed": LEVEL, "inside": inside}


def judged(rng: np.random.Generator, items: int, prompts: list[str], category=None):
    """Answers of a judge that cares for neither who asks nor where an answer stands.

    It likes some answers to an item more than others, whichever is right, and under each prompt and
    in each order something by chance: a softmax, and the letter that it makes most probable.
    """
    liked = rng.normal(0, 1, (items, 1, 1, 4))  # item, prompt, shift, answer; the first is right
    liked = liked + rng.normal(0, 0.5, (items, len(prompts), 1, 4))
    liked = liked + rng.normal(0, 0.5, (items, len(prompts), 4, 4))
    chances = np.exp(liked) / np.exp(liked).sum(axis=-1, keepdims=True)
    cells = list(product(range(items), prompts, range(4)))
    table = pd.DataFrame(cells, columns=["key", "prompt", "shift"])
    place = (table.key + table["shift"]) % 4
    letter = (place + chances.argmax(axis=-1).ravel()) % 4
    return table.assign(
        category=table.key.map(category if category is not None else lambda key: key // 6),
        correct=place.map(dict(enumerate(LETTERS))),
        letter=letter.map(dict(enumerate(LETTERS))),
        p_right=chances[..., 0].ravel(),
        status="ok",
    ).sort_values(["prompt", "shift", "key"])


def p_right(rng: np.random.Generator) -> Iterator[dict]:
    """t-intervals and t-tests over items: of the probability against a quarter, and of the gain."""
    for n in SIZES:
        answers = judged(rng, n * DRAWS, ["Raw", "ID"], lambda key, n=n: key // n)
        table = statistics.p_right(answers)
        table = table[table.category != statistics.OVERALL]
        own, gain = table[table.prompt == "Raw"], table[table.prompt == "ID"]
        truth = statistics.CHANCE  # the right answer is liked no more than the others
        for name, low, high, p, true in (
            ("p_right", own.low, own.high, own.p, truth),
            ("gain of p_right", gain.gain_low, gain.gain_high, gain.gain_p, 0),
        ):
            inside = (low <= true) & (high >= true)
            what = f"interval of {name}, {n} items"
            yield {"what": what, "n": n, "claimed": 1 - LEVEL, "inside": inside.to_numpy()}
            what = f"test of {name}, {n} items"
            yield {"what": what, "n": n, "claimed": LEVEL, "inside": (p < LEVEL).to_numpy()}


def position(rng: np.random.Generator) -> Iterator[dict]:
    """Cochran's Q where no place is better than another."""
    prompts = [f"draw {k}" for k in range(DRAWS)]
    p = statistics.position_test(judged(rng, SIZES[0], prompts)).p
    what = f"test of positions (Cochran's Q), {SIZES[0]} items"
    yield {"what": what, "n": SIZES[0], "claimed": LEVEL, "inside": (p < LEVEL).to_numpy()}


def negative_control(rng: np.random.Generator) -> Iterator[dict]:
    """Runs of the default design in which prompts do not differ: does a family find anything?

    The tuples of the mismatch are left out: with 2 to 6 items none of them can be significant.
    """
    found = {}
    for _ in range(RUNS):
        answers = judged(rng, len(ITEMS), ["Raw", "ID", "COT"])
        once, sure = answers[answers["shift"] == 0], statistics.p_right(answers)
        for prompt in ("ID", "COT"):
            told = statistics.changes(once, "Raw", prompt).finding
            found.setdefault(f"categories, {prompt} over Raw", []).append(told[:-1])
            found.setdefault(f"Overall, {prompt} over Raw", []).append(told[-1:])
        for prompt, own in sure.groupby("prompt"):
            for name in ("p_holm", "gain_p_holm")[: 1 + (prompt != "Raw")]:
                told = own[name].lt(LEVEL).map({True: "significant"})
                found.setdefault(f"{name.replace('_holm', '')}_right, {prompt}", []).append(told)
        told = statistics.position_test(answers).finding
        found.setdefault("positions", []).append(told)
    for family, runs in found.items():
        inside = [told.eq("significant").any() for told in runs]
        what = f"test of a whole run, {family}"
        yield {"what": what, "n": len(ITEMS), "claimed": LEVEL, "inside": inside}


ROWS = (interval_of_a_share, change, p_right, position, negative_control)
