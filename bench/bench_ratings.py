"""Responses of text to the matrix of one category, against the way of the released scripts.

The table is religion on the full corpus: 36 pairs of 6,050 responses, mostly bare numbers, with
some refusals and long replies. Both ways read with the authors' rule, leave out an event that is
refused in any cell, give the cell means rounded to two decimals, and mask the cells that do not
differ from both in-group references (paired t-tests, p < 0.05 / 36).
"""

import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import ttest_rel

from ingroup.stats.paired import paired_cells, significant_cells
from ingroup.studies.empathy_gap.ratings import cell_means, exclude, from_responses

IDENTITIES = ("a person", "a Christian", "a Muslim", "a Jew", "a Buddhist", "a Hindu")
SHAPE = (len(IDENTITIES), len(IDENTITIES), 6050)


def rows() -> list[dict]:
    """One row, ``responses_to_matrix``: name, ours and baseline (s), their ratio, the baseline."""
    responses, prompts, replies = _tables(np.random.default_rng(2))
    ours, matrix = _best_of(5, _ours, responses)
    baseline, expected = _best_of(2, _baseline, prompts, replies)
    np.testing.assert_array_equal(matrix, expected)
    return [
        {
            "name": "responses_to_matrix",
            "ours": ours,
            "baseline": baseline,
            "ratio": baseline / ours,
            "baseline_is": "rows of a pair selected by label, a CSV a pair, ttest_rel a cell",
        }
    ]


def _tables(rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """217,800 responses as a store returns them, and the scripts' tables of prompts and replies."""
    perceiver, experiencer, event = (axis.ravel() for axis in np.indices(SHAPE))
    trial = np.arange(event.size)
    mean = 75 + 2 * (perceiver == experiencer) + (perceiver % 2)
    rating = np.clip(rng.normal(mean, 12).round(), 0, 100).astype(int)
    text = rating.astype(str).astype(object)
    reasons = rng.choice(event.size, 2000, replace=False)
    text[reasons] = [f"{rating[i]}\n\nThe person of event {event[i]} felt much." for i in reasons]
    text[rng.random(event.size) < 0.001] = "I can't answer that."

    stop = pd.Categorical(["stop"] * event.size)
    responses = pd.DataFrame({"trial": trial, "text": pd.Categorical(text), "finish_reason": stop})
    names = np.array(IDENTITIES)
    prompts = pd.DataFrame(
        {"idx": trial, "perceiver": names[perceiver], "experiencer": names[experiencer]}
    )
    return responses, prompts, pd.DataFrame({"idx": trial, "response": text})


def _ours(responses: pd.DataFrame) -> np.ndarray:
    ratings = from_responses(responses, SHAPE, 0, 100, rule="released")
    kept = exclude(ratings.values, "any").values
    shown = significant_cells(paired_cells(kept), unspecified=0, as_printed=True)
    return np.where(shown, cell_means(kept, decimals=2), np.nan)


def _baseline(prompts: pd.DataFrame, replies: pd.DataFrame) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        for p in IDENTITIES:
            for e in IDENTITIES:
                chosen = (prompts["perceiver"] == p) & (prompts["experiencer"] == e)
                pair = replies[replies["idx"].isin(prompts[chosen]["idx"])].copy()
                pair["intensity"] = pair["response"].apply(_intensity)
                pair.to_csv(Path(folder) / f"{p}_{e}.csv", index=False)
        refused = set()
        for path in Path(folder).iterdir():
            intensity = pd.read_csv(path)["intensity"]
            refused.update(np.flatnonzero(intensity == -1).tolist())
        matrix, kept = np.zeros(SHAPE[:2]), {}
        for i, p in enumerate(IDENTITIES):
            for j, e in enumerate(IDENTITIES):
                intensity = pd.read_csv(Path(folder) / f"{p}_{e}.csv")["intensity"]
                kept[i, j] = [
                    value for event, value in enumerate(intensity) if event not in refused
                ]
                matrix[i, j] = round(sum(kept[i, j]) / len(kept[i, j]), 2)
        for i, j in kept:
            if i != j and 0 not in (i, j):
                references = kept[i, i], kept[j, j]
                if max(ttest_rel(kept[i, j], r).pvalue for r in references) >= 0.05 / 36:
                    matrix[i, j] = np.nan
    return matrix


def _intensity(text: str) -> int:
    if text.startswith(("I cannot", "I can't", "I'm not rating")):
        return -1
    found = [int(digits) for digits in re.findall(r"\b\d+\b", text)] or [-1]
    number = found[1] if len(found) > 1 and not 0 <= found[0] <= 100 else found[0]
    return number if 0 <= number <= 100 else -1


def _best_of(times: int, function: Callable, *tables: pd.DataFrame) -> tuple[float, np.ndarray]:
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        result = function(*tables)
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


if __name__ == "__main__":
    print(rows())
