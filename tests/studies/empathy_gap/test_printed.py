"""Printed beside here: of identical answers nothing differs, however the authors computed it."""

from statistics import mean, pstdev

import numpy as np
import pandas as pd
import pytest

from ingroup import published
from ingroup.stats.permutation import PermutationTest
from ingroup.studies.empathy_gap import statistics, stimuli
from ingroup.studies.empathy_gap.printed import gaps_of_the_paper, numbers_of, table2, with_paper
from reprint import reprint

KEY = ["model", "setting", "category"]
MODEL = "meta-llama/Meta-Llama-3.1-8B-Instruct"
PRINTED = "Llama-3.1-8B"


def made_up(people, rng):
    """Ratings of twelve events with an in-group gap; now and then one is refused."""
    same = statistics.same_group(people.group)
    ratings = rng.integers(40, 70, (len(people), len(people), 12))
    values = ratings + 5.0 * same[..., None]
    is_refused = rng.random(values.shape) < 0.5 / same.size
    values[is_refused] = np.nan
    return values


def authors_matrix(values):
    """Z-scores of rounded cell means, with mean, width and the percentage of events left out."""
    n, _, events = values.shape
    kept = [event for event in range(events) if not np.isnan(values[:, :, event]).any()]

    cells = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            cells[i, j] = round(mean(values[i, j, event] for event in kept), 2)

    centre = mean(cells.flat)
    width = pstdev(cells.flat)
    left_out = 100 * (events - len(kept)) / events
    return (cells - centre) / width, centre, width, left_out


def authors_rows(values, same):
    """One row of each printed table, as the released code makes it, by loops."""
    z, centre, width, left_out = authors_matrix(values)
    named, *_ = authors_matrix(values[1:, 1:])
    delta = named[same].mean() - named[~same].mean()

    rng = np.random.default_rng(7)
    gaps = []
    for _ in range(10_000):
        rows = rng.permutation(len(named))
        columns = rng.permutation(len(named))
        permuted = named[np.ix_(rows, columns)]
        gaps.append(permuted[same].mean() - permuted[~same].mean())
    low, high = np.percentile(gaps, [2.5, 97.5])

    return {
        (2, "delta"): f"{delta:.2f}",
        (2, "ci_lower"): f"{low:.3f}",
        (2, "ci_upper"): f"{high:.3f}",
        (3, "mean"): f"{centre:.2f}",
        (3, "std"): f"{width:.2f}",
        (6, "refusal_pct"): f"{left_out:.2f}",
        (7, "z_min"): f"{z.min():.2f}",
        (7, "z_max"): f"{z.max():.2f}",
    }


@pytest.fixture
def table_and_colours():
    """Table 2 with the blocks of one model, one of which is flat, above those of the paper."""
    gaps = pd.DataFrame(
        {
            "model": ["my/own", "my/own"],
            "category": ["Religion", "Nationality"],
            "setting": "P0,S0,T0",
            "delta": [1.234, np.nan],
            "null_low": [-0.5, np.nan],
            "null_high": [0.25, np.nan],
            "highlight": ["above_1", ""],
        }
    )
    return table2(with_paper(gaps))


def test_gaps_stand_above_those_of_the_paper_in_its_layout(table_and_colours):
    text, colour = table_and_colours
    religion = ("own", "Religion")
    nationality = ("own", "Nationality")

    assert text.index.tolist()[:2] == [religion, nationality]
    assert len(text) == 2 + 4 * 3
    assert text.loc[religion, "P0,S0,T0"] == "1.23 [-0.500, 0.250]"
    assert text.loc[nationality, "P0,S0,T0"] == "flat"
    assert text.loc[religion, "P1,S0,T0"] == ""
    assert colour.loc[religion, "P0,S0,T0"] == "background-color: #CCE6E6"
    assert colour.loc[nationality, "P0,S0,T0"] == "background-color: white"


def test_gaps_of_the_paper_stand_as_it_prints_them(table_and_colours):
    text, _ = table_and_colours
    printed = gaps_of_the_paper()
    is_row = (printed.model == PRINTED) & (printed.category == "Religion")
    printed_deltas = printed[is_row].set_index("setting").delta

    row = text.loc[(f"{PRINTED} (printed)", "Religion")]

    deltas = [float(cell.split()[0]) for cell in row]
    assert deltas == printed_deltas[row.index].tolist()


def by_key(rows):
    """A table of rows by key."""
    return pd.DataFrame.from_dict(rows, "index").rename_axis(KEY).reset_index()


@pytest.fixture
def versus(monkeypatch, tmp_path):
    """Made-up answers beside the tables that the authors would have made of them."""
    rng = np.random.default_rng(3)
    cells = {}
    gaps = {}
    lost = {}
    printed_rows = {}

    for category in stimuli.categories():
        people = stimuli.identities(category)
        same = statistics.same_group(people.group[1:])
        values = made_up(people, rng)
        has_refusal = np.isnan(values).any(axis=(0, 1))
        key = (MODEL, "P0,S0,T0", category)
        cells[key] = statistics.cells(statistics.exclude(values), people.identity)
        gaps[key] = statistics.gap(values, same, rng=rng)
        lost[key] = {"percent_of_events": 100 * has_refusal.mean()}
        printed_rows[category] = authors_rows(values, same)

    def printed(table_and_column):
        def text(row):
            if row["prompt_setting"] != "P0,S0,T0":
                return row[table_and_column[1]]
            return printed_rows[row["category"]][table_and_column]

        return text

    numbers = {name: printed(name) for name in printed_rows[category]}
    reprint(tmp_path / "published", monkeypatch, "empathy_gap", PRINTED, numbers)

    cells = pd.concat(cells, names=KEY).reset_index(KEY)
    spreads = statistics.cell_summary(cells, KEY)
    here = numbers_of(by_key(gaps), by_key(lost), spreads)
    return published.beside_each("empathy_gap", here)


def test_identical_answers_never_differ(versus):
    is_chance = versus.number.isin(["ci_lower", "ci_upper"])

    assert len(versus) == 3 * (3 + 2 + 1 + 2)
    assert versus.verdict.isin(["agrees within rounding", "agrees within chance"]).all()
    assert (versus.verdict[~is_chance] == "agrees within rounding").all()
    assert versus.tolerance[is_chance].between(0.0005, 0.1).all()


def test_the_end_of_a_null_moves_no_further_than_its_spread():
    """400 pairs of nulls: three standard errors hold their ends, half as many do not."""
    rng = np.random.default_rng(0)
    distances = []

    for _ in range(400):
        first_null = PermutationTest(0, 1, rng.standard_normal(2_000), 0)
        second_null = PermutationTest(0, 1, rng.standard_normal(2_000), 0)
        moved = np.subtract(first_null.null_interval, second_null.null_interval)
        distances.append(np.abs(moved) / first_null.null_spread(2_000))

    within_spread = np.less_equal(distances, 1)
    within_half = np.less_equal(distances, 0.5)
    assert np.mean(within_spread) > 0.99
    assert 0.8 < np.mean(within_half) < 0.97
