"""What study 3's intervals and tests claim, simulated at the sizes of its default run."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import pandas as pd
from scipy.stats import friedmanchisquare
from statsmodels.stats.proportion import proportion_confint

from ingroup.stats.paired import adjust, mcnemar, paired_test
from ingroup.studies.giebench import statistics, stimuli
from ingroup.studies.giebench.answers import CHANCES
from ingroup.studies.giebench.design import PROMPTS

DRAWS = 1000
RUNS = 200
LEVEL = 0.05
SIZES = (79, 6)  # items, and items of a category
ITEMS = stimuli.load_questions()
CATEGORY = dict(enumerate(item.category for item in ITEMS))
SPREADS = {"as in the default run": 0.1, "skewed": 1}  # of a judge: see `chances`


def interval_of_a_share(rng: np.random.Generator) -> Iterator[dict]:
    """Wilson's, of accuracy, at a place too, and of consistency; any share is as likely."""
    for n in SIZES:
        truths = rng.random(4 * DRAWS)
        low, high = proportion_confint(np.arange(n + 1), n, method="wilson")
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


def chances(rng: np.random.Generator, *shape: int, spread: float = 1) -> np.ndarray:
    """What a judge gives to four answers, (..., prompt, order, answer); the first is right.

    It cares for neither who asks nor where an answer stands: it likes some answers to an item more
    than others, whichever is right, and under each prompt and in each order something by chance,
    in logits of some `spread`: 0.1 is about that of the small real model of the default run.
    """
    *items, prompts, orders = shape
    liked = rng.normal(0, 1, (*items, 1, 1, 4)) + rng.normal(0, 0.5, (*items, prompts, 1, 4))
    liked = np.exp(spread * liked + spread * rng.normal(0, 0.5, (*items, prompts, orders, 4)))
    return liked / liked.sum(axis=-1, keepdims=True)


def judged(rng: np.random.Generator, prompts: Sequence[str], spread: float) -> pd.DataFrame:
    """Answers of such a judge to the items of the default run, as `answers.load` gives them."""
    given = chances(rng, len(ITEMS), len(prompts), 4, spread=spread)
    cells = list(product(range(len(ITEMS)), prompts, range(4)))
    table = pd.DataFrame(cells, columns=["key", "prompt", "shift"])
    place = (table.key + table["shift"]) % 4
    letter = (place + given.argmax(axis=-1).ravel()) % 4
    names = dict(enumerate(stimuli.LETTERS))
    return table.assign(
        category=table.key.map(CATEGORY), correct=place.map(names), letter=letter.map(names),
        status="ok", **dict(zip(CHANCES, given.reshape(-1, 4).T, strict=True)),
    ).sort_values(["prompt", "shift", "key"])  # fmt: skip


def p_right(rng: np.random.Generator) -> Iterator[dict]:
    """Intervals and tests over items: of the probability against a quarter, and of the gain.

    The right answer is liked no more than the others: the truth is a quarter, and no gain. Of a
    judge that is sure of itself the probabilities are skewed, and six are few: an interval's claim
    of its own.
    """
    for n, (kind, spread) in product(SIZES, SPREADS.items()):
        every = chances(rng, 2 * DRAWS, n, 2, 4, spread=spread).mean(axis=-2)  # over orders
        raw, own = np.moveaxis(every[..., 0], -1, 0)
        right, gain = paired_test(raw, statistics.CHANCE), paired_test(own, raw)
        p = np.array([statistics._any_right(items, 999) for items in every[:, :, 0]])
        about = f"{n} items, {kind}"
        for name, test, pvalue in (
            ("the right letter's p", right, p),
            ("its gain", gain, gain.pvalue),
        ):
            held = 0.91 if (n, kind, name) == (6, "skewed", "the right letter's p") else 1 - LEVEL
            inside = (test.low <= 0) & (test.high >= 0)
            yield {
                "what": f"interval of {name}, {about}", "n": n, "claimed": held, "inside": inside
            }  # fmt: skip
            inside = pvalue < LEVEL
            yield {
                "what": f"test of {name}, {about}", "n": n, "claimed": LEVEL, "inside": inside
            }  # fmt: skip


def position(rng: np.random.Generator) -> Iterator[dict]:
    """Cochran's Q where no place is better than another: Friedman's test, as in `position_test`."""
    right = chances(rng, 4 * DRAWS, SIZES[0], 1, 4)[:, :, 0].argmax(axis=-1) == 0
    p = friedmanchisquare(*np.moveaxis(right.astype(int), -1, 0), axis=-1).pvalue
    what = f"test of positions (Cochran's Q), {SIZES[0]} items"
    yield {"what": what, "n": SIZES[0], "claimed": LEVEL, "inside": p < LEVEL}


def p_right_of_a_run(rng: np.random.Generator) -> Iterator[dict]:
    """Any of the categories of one prompt, for a judge that does not know who asks."""
    for kind, spread in SPREADS.items():
        runs = (judged(rng, ["Raw"], spread) for _ in range(DRAWS))
        inside = [statistics.p_right(answers).p_holm.lt(LEVEL).any() for answers in runs]
        what = f"test of a whole run, the right letter's p, {kind}"
        yield {"what": what, "n": len(ITEMS), "claimed": LEVEL, "inside": inside}


def positions_of_a_run(rng: np.random.Generator) -> Iterator[dict]:
    """Any of the three prompts, for a judge to whom no place is better than another."""
    for kind, spread in SPREADS.items():
        runs = (judged(rng, PROMPTS, spread) for _ in range(2 * DRAWS))
        inside = [statistics.position_test(run).finding.eq("significant").any() for run in runs]
        what = f"test of a whole run, positions, {kind}"
        yield {"what": what, "n": len(ITEMS), "claimed": LEVEL, "inside": inside}


def gains_of_a_run(rng: np.random.Generator) -> Iterator[dict]:
    """Any of the categories, of each prompt over Raw, for a judge that does not know who asks."""
    places = pd.Series(CATEGORY).groupby(CATEGORY, sort=False).groups.values()
    for kind, spread in SPREADS.items():
        right = chances(rng, 2 * DRAWS, len(ITEMS), 3, 4, spread=spread).mean(axis=-2)[..., 0]
        raw, *others = np.moveaxis(right, -1, 0)
        for prompt, own in zip(("ID", "COT"), others, strict=True):
            p = np.transpose([paired_test(own[:, i], raw[:, i]).pvalue for i in places])
            inside = [adjust(family, "holm").min() < LEVEL for family in p]
            what = f"test of a whole run, gain of the right letter's p, {prompt}, {kind}"
            yield {"what": what, "n": len(ITEMS), "claimed": LEVEL, "inside": inside}


def negative_control(rng: np.random.Generator) -> Iterator[dict]:
    """Runs of the default design in which prompts do not differ: does a family find anything?

    The tuples of the mismatch are left out: with 3 to 6 items none of them can be significant.
    """
    for kind, spread in SPREADS.items():
        found = {}
        for _ in range(RUNS):
            answers = judged(rng, PROMPTS, spread)
            once = answers[answers["shift"] == 0]
            for prompt in ("ID", "COT"):
                told = statistics.changes(once, "Raw", prompt).finding
                found.setdefault(f"categories, {prompt} over Raw", []).append(told[:-1])
                found.setdefault(f"Overall, {prompt} over Raw", []).append(told[-1:])
        for family, runs in found.items():
            inside = [told.eq("significant").any() for told in runs]
            what = f"test of a whole run, {family}, {kind}"
            yield {"what": what, "n": len(ITEMS), "claimed": LEVEL, "inside": inside}


ROWS = (
    interval_of_a_share, change, p_right, position,
    p_right_of_a_run, gains_of_a_run, positions_of_a_run, negative_control,
)  # fmt: skip
