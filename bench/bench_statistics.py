"""Speed of the statistics of the first study against plain ways to get the same numbers."""

import random
from collections.abc import Callable
from timeit import repeat

import numpy as np
from scipy import stats

from ingroup.stats.paired import paired_cells
from ingroup.stats.permutation import permutation_test

N_DRAWS = 10_000
# Groups as in table 1 of Hou et al.: four of race or ethnicity; every nationality and every
# religion is its own.
GROUPS = {
    "permutation_race": np.repeat(["White", "Black", "Asian", "Hispanic"], [5, 4, 3, 6]),
    "permutation_nationality": np.arange(21),
    "permutation_religion": np.arange(5),
}


def plain_null(
    matrix: list[list[float]], same: list[list[bool]], n_draws: int, shuffle: random.Random
) -> list[float]:
    """The null of the empathy gap as one would write it down, on lists."""
    n = len(matrix)
    rows, columns = list(range(n)), list(range(n))
    null = []
    for _ in range(n_draws):
        shuffle.shuffle(rows)
        shuffle.shuffle(columns)
        in_sum = out_sum = 0.0
        in_count = out_count = 0
        for i in range(n):
            for j in range(n):
                value = matrix[rows[i]][columns[j]]
                if same[i][j]:
                    in_sum += value
                    in_count += 1
                else:
                    out_sum += value
                    out_count += 1
        null.append(in_sum / in_count - out_sum / out_count)
    return null


def rows() -> list[dict[str, str | float]]:
    """One row a comparison: name, ours and baseline in seconds, ratio, what the baseline is."""
    rng = np.random.default_rng(2)
    measured = []
    for name, groups in GROUPS.items():
        same = groups[:, None] == groups
        matrix = rng.standard_normal(same.shape) + same
        lists = matrix.tolist(), same.tolist()
        ours = _seconds(lambda m=matrix, s=same: permutation_test(m, s, N_DRAWS, rng), 300)
        plain = _seconds(lambda a=lists: plain_null(*a, N_DRAWS, random.Random(2)), 3)
        measured.append(
            _row(
                name,
                ours,
                plain,
                f"Python loops over cells, a shuffle each of rows and columns, {N_DRAWS:,} draws",
            )
        )
        found, expected = permutation_test(matrix, same, N_DRAWS, rng), by_scipy(matrix, same, rng)
        assert np.isclose(found.statistic, expected.statistic)
        assert np.isclose(found.null_distribution.std(), expected.null_distribution.std(), rtol=0.1)
        measured.append(
            _row(
                f"{name}_scipy",
                ours,
                _seconds(lambda m=matrix, s=same: by_scipy(m, s, rng), 5),
                "scipy.stats.permutation_test, vectorised, in-group cells alone looked up",
            )
        )
    ratings = _ratings(rng)
    ours = _seconds(lambda: paired_cells(ratings), 20)
    plain = _seconds(lambda: cell_by_cell(ratings), 3)
    measured.append(_row("paired_t", ours, plain, "scipy.stats.ttest_rel, one cell at a time"))
    return measured


def by_scipy(matrix: np.ndarray, same: np.ndarray, rng: np.random.Generator):
    """The same test by SciPy, by as little work as its interface allows.

    Rows and columns are the "samples" whose order it permutes; where every row and column has one
    in-group cell the columns alone, as ours does. The cells sum to 0, so that the gap is the
    in-group sum times a constant.
    """
    order = np.arange(len(matrix))
    one, other = np.nonzero(same)
    cells = (matrix - matrix.mean()) * same.size / (same.sum() * (~same).sum())
    columns_only = same.sum() == len(same)

    def gap(*orders: np.ndarray, axis: int) -> np.ndarray:
        rows, columns = (order, *orders) if columns_only else orders
        return cells[rows[..., one], columns[..., other]].sum(axis=axis)

    return stats.permutation_test(
        (order,) if columns_only else (order, order),
        gap,
        permutation_type="pairings",
        vectorized=True,
        n_resamples=N_DRAWS,
        rng=rng,
    )


def cell_by_cell(ratings: np.ndarray) -> list[float]:
    """p-values of every cell against its two in-group cells, one call each."""
    pvalues = []
    for p in range(len(ratings)):
        for x in range(len(ratings)):
            if x != p:
                pvalues.append(stats.ttest_rel(ratings[p, x], ratings[p, p]).pvalue)
                pvalues.append(stats.ttest_rel(ratings[p, x], ratings[x, x]).pvalue)
    return pvalues


def _ratings(rng: np.random.Generator) -> np.ndarray:
    """Ratings from 0 to 100 of 22 x 22 pairs and 6,050 events, the size of nationality."""
    events = 15 * rng.standard_normal(6050)
    cells = 10 * rng.standard_normal((22, 22, 1))
    noise = 8 * rng.standard_normal((22, 22, 6050))
    return np.clip(np.round(50 + events + cells + noise), 0, 100)


def _seconds(call: Callable[[], object], repeats: int) -> float:
    """Best of several runs, after one that does not count."""
    call()
    return min(repeat(call, number=1, repeat=repeats))


def _row(name: str, ours: float, baseline: float, baseline_is: str) -> dict[str, str | float]:
    ratio = baseline / ours
    return dict(name=name, ours=ours, baseline=baseline, ratio=ratio, baseline_is=baseline_is)
