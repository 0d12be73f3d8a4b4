"""Statistics of the first study against SciPy, and against the way of the released scripts."""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from ingroup.studies.empathy_gap.statistics import cell_means, exclude
from scipy import stats

from bench import row, seconds
from ingroup.stats.paired import paired_cells, significant_cells
from ingroup.stats.permutation import permutation_test
from ingroup.studies.empathy_gap.answers import from_responses

N_DRAWS = 10_000
# Groups as in Table 1 of Hou et al.: every nationality and every religion is its own.
GROUPS = {
    "race": np.repeat(["White", "Black", "Asian", "Hispanic"], [5, 4, 3, 6]),
    "nationality": np.arange(21),
    "religion": np.arange(5),
}
PEOPLE = np.array(["a person", "a Christian", "a Muslim", "a Jew", "a Buddhist", "a Hindu"])
SHAPE = (len(PEOPLE), len(PEOPLE), 6050)


def bench_permutation() -> Iterator[dict]:
    """The row-and-column permutation test, 10,000 draws."""
    rng = np.random.default_rng(2)
    for name, groups in GROUPS.items():
        same = groups[:, None] == groups
        matrix = rng.standard_normal(same.shape) + same
        found, expected = permutation_test(matrix, same, N_DRAWS, rng), by_scipy(matrix, same, rng)
        assert np.isclose(found.statistic, expected.statistic)
        assert np.isclose(found.null_distribution.std(), expected.null_distribution.std(), rtol=0.1)
        yield row(
            f"permutation_{name}",
            seconds(lambda m=matrix, s=same: permutation_test(m, s, N_DRAWS, rng), 50),
            seconds(lambda m=matrix, s=same: by_scipy(m, s, rng), 3),
            "scipy.stats.permutation_test, vectorised, in-group cells alone looked up",
        )


def by_scipy(matrix: np.ndarray, same: np.ndarray, rng: np.random.Generator):
    """The same test by SciPy: its "samples" are the orders of rows and columns.

    Where every row and column has one in-group cell the columns alone are permuted, as ours does.
    """
    order = np.arange(len(matrix))
    one, other = np.nonzero(same)
    cells = (matrix - matrix.mean()) * same.size / (same.sum() * (~same).sum())
    alone = same.sum() == len(same)

    def gap(*orders: np.ndarray, axis: int) -> np.ndarray:
        rows, columns = (order, *orders) if alone else orders
        return cells[rows[..., one], columns[..., other]].sum(axis=axis)

    return stats.permutation_test(
        (order,) * (1 if alone else 2), gap, permutation_type="pairings", vectorized=True,
        n_resamples=N_DRAWS, rng=rng,
    )  # fmt: skip


def bench_paired_t() -> Iterator[dict]:
    """Every cell of 22 x 22 pairs and 6,050 events against its two in-group cells."""
    rng = np.random.default_rng(2)
    noise = 15 * rng.standard_normal(6050) + 8 * rng.standard_normal((22, 22, 6050))
    ratings = np.clip(np.round(50 + 10 * rng.standard_normal((22, 22, 1)) + noise), 0, 100)

    def cell_by_cell() -> None:
        for p, x in np.argwhere(~np.eye(22, dtype=bool)):
            stats.ttest_rel(ratings[p, x], ratings[p, p])
            stats.ttest_rel(ratings[p, x], ratings[x, x])

    ours = seconds(lambda: paired_cells(ratings), 5)
    yield row("paired_t", ours, seconds(cell_by_cell), "scipy.stats.ttest_rel, a cell at a time")


def bench_responses_to_matrix() -> Iterator[dict]:
    """Religion on the full corpus, 217,800 texts, to cell means with masks, in the released way."""
    rng = np.random.default_rng(2)
    perceiver, experiencer, event = (axis.ravel() for axis in np.indices(SHAPE))
    mean = 75 + 2 * (perceiver == experiencer) + perceiver % 2
    rating = np.clip(rng.normal(mean, 12).round(), 0, 100).astype(int)
    text = rating.astype(str).astype(object)
    for i in rng.choice(event.size, 2000, replace=False):
        text[i] = f"{rating[i]}\n\nThe person of event {event[i]} felt much."
    text[rng.random(event.size) < 0.001] = "I can't answer that."
    responses = pd.DataFrame({"trial": np.arange(event.size), "text": pd.Categorical(text)})
    responses = responses.assign(finish_reason="stop")
    told = pd.DataFrame({"p": PEOPLE[perceiver], "x": PEOPLE[experiencer], "response": text})

    def ours() -> np.ndarray:
        found = from_responses(responses, SHAPE, 0, 100, rule="released")
        kept = exclude(found.values, "listwise").values
        shown = significant_cells(paired_cells(kept), unspecified=0, way="released")
        return np.where(shown, cell_means(kept, decimals=2), np.nan)

    np.testing.assert_array_equal(ours(), by_scripts(told))
    yield row(
        "responses_to_matrix", seconds(ours), seconds(lambda: by_scripts(told), 1),
        "rows of a pair selected by label, a CSV a pair, ttest_rel a cell",
    )  # fmt: skip


def by_scripts(told: pd.DataFrame) -> np.ndarray:
    """As the released scripts do: a file a pair, refused events out of all, means, masks."""
    with tempfile.TemporaryDirectory() as folder:
        for p in PEOPLE:
            for x in PEOPLE:
                pair = told[(told.p == p) & (told.x == x)].copy()
                pair["intensity"] = pair.response.apply(_intensity)
                pair.to_csv(Path(folder) / f"{p}_{x}.csv", index=False)
        read = np.array(
            [[pd.read_csv(Path(folder) / f"{p}_{x}.csv").intensity for x in PEOPLE] for p in PEOPLE]
        )
    kept = read[:, :, (read != -1).all(axis=(0, 1))]
    matrix = np.array([[round(sum(k) / len(k), 2) for k in row.tolist()] for row in kept])
    for i, j in np.argwhere(~np.eye(len(PEOPLE), dtype=bool)):
        worst = max(stats.ttest_rel(kept[i, j], kept[k, k]).pvalue for k in (i, j))
        if 0 not in (i, j) and worst >= 0.05 / 36:
            matrix[i, j] = np.nan
    return matrix


def _intensity(text: str) -> int:
    if text.startswith(("I cannot", "I can't", "I'm not rating")):
        return -1
    found = [int(digits) for digits in re.findall(r"\b\d+\b", text)] or [-1]
    number = found[1] if len(found) > 1 and not 0 <= found[0] <= 100 else found[0]
    return number if 0 <= number <= 100 else -1
