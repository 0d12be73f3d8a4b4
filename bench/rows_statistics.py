"""Statistics of the first study against SciPy."""

from collections.abc import Iterator

import numpy as np
from scipy import stats

from bench import row, seconds
from ingroup.stats.paired import paired_cells
from ingroup.stats.permutation import permutation_test

N_DRAWS = 10_000
# Groups as in Table 1 of Hou et al.: every nationality and every religion is its own.
GROUPS = {
    "race": np.repeat(["White", "Black", "Asian", "Hispanic"], [5, 4, 3, 6]),
    "nationality": np.arange(21),
    "religion": np.arange(5),
}


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
