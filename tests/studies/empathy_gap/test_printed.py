"""Printed beside here: of identical answers nothing differs, however the authors computed it."""

from statistics import mean, pstdev
from types import SimpleNamespace

import nbformat
import numpy as np
import pandas as pd
import pytest

from ingroup import paths, published
from ingroup.stats.permutation import PermutationTest
from ingroup.studies.empathy_gap import statistics, stimuli
from ingroup.studies.empathy_gap.printed import gaps_of_the_paper, table2, with_paper
from reprint import reprint

KEY = ["model", "setting", "category"]
MODEL, PRINTED = "meta-llama/Meta-Llama-3.1-8B-Instruct", "Llama-3.1-8B"


def made_up(people, rng):
    """Ratings of twelve events with an in-group gap; now and then one is refused."""
    same = statistics.same_group(people.group)
    values = rng.integers(40, 70, (len(people), len(people), 12)) + 5.0 * same[..., None]
    values[rng.random(values.shape) < 0.5 / same.size] = np.nan
    return values


def authors(values, same):
    """One row of each printed table, as the released code makes it, by loops."""
    n, events = len(values), values.shape[2]

    def matrix(first):
        kept = [k for k in range(events) if not np.isnan(values[first:, first:, k]).any()]
        cells = [
            [round(mean(values[i, j, k] for k in kept), 2) for j in range(first, n)]
            for i in range(first, n)
        ]
        flat = [cell for row in cells for cell in row]
        centre, width = mean(flat), pstdev(flat)
        z = np.array([[(cell - centre) / width for cell in row] for row in cells])
        return z, centre, width, 100 * (events - len(kept)) / events

    z, centre, width, refused = matrix(0)
    named = matrix(1)[0]
    shuffled, gaps = np.random.default_rng(7).permutation, []
    for _ in range(10_000):
        arranged = named[np.ix_(shuffled(n - 1), shuffled(n - 1))]
        gaps.append(arranged[same].mean() - arranged[~same].mean())
    low, high = np.percentile(gaps, [2.5, 97.5])
    delta = named[same].mean() - named[~same].mean()
    return {
        2: {"delta": f"{delta:.2f}", "ci_lower": f"{low:.3f}", "ci_upper": f"{high:.3f}"},
        3: {"mean": f"{centre:.2f}", "std": f"{width:.2f}"},
        6: {"refusal_pct": f"{refused:.2f}"},
        7: {"z_min": f"{z.min():.2f}", "z_max": f"{z.max():.2f}"},
    }


def test_gaps_stand_above_those_of_the_paper_in_its_layout():
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
    text, colour = table2(with_paper(gaps))
    assert text.index.tolist()[:2] == [("own", "Religion"), ("own", "Nationality")]
    assert len(text) == 2 + 4 * 3
    assert text.loc[("own", "Religion"), "P0,S0,T0"] == "1.23 [-0.500, 0.250]"
    assert text.loc[("own", "Nationality"), "P0,S0,T0"] == "flat"
    assert text.loc[("own", "Religion"), "P1,S0,T0"] == ""
    assert colour.loc[("own", "Religion"), "P0,S0,T0"] == "background-color: #CCE6E6"
    assert colour.loc[("own", "Nationality"), "P0,S0,T0"] == "background-color: white"
    printed = gaps_of_the_paper()
    first = text.loc[(f"{PRINTED} (printed)", "Religion")]
    own = printed[(printed.model == PRINTED) & (printed.category == "Religion")]
    assert [float(cell.split()[0]) for cell in first] == own.set_index("setting").delta[
        first.index
    ].tolist()


@pytest.fixture
def versus(monkeypatch, tmp_path):
    """What the notebook's own cell says of made-up answers and the tables made of them."""
    rng, cells, gaps, lost, told = np.random.default_rng(3), {}, {}, {}, {}
    for category in stimuli.categories():
        people = stimuli.identities(category)
        same = statistics.same_group(people.group[1:])
        values = made_up(people, rng)
        key = (MODEL, "P0,S0,T0", category)
        cells[key] = statistics.cells(statistics.exclude(values), people.identity)
        gaps[key] = statistics.gap(values, same, rng=rng)
        lost[key] = {"percent_of_events": 100 * np.isnan(values).any(axis=(0, 1)).mean()}
        told[category] = authors(values, same)

    def printed(table, column):
        def text(row):
            here = row["prompt_setting"] == "P0,S0,T0"
            return told[row["category"]][table][column] if here else row[column]

        return text

    numbers = {(t, c): printed(t, c) for t, columns in told[category].items() for c in columns}
    reprint(tmp_path / "published", monkeypatch, "empathy_gap", PRINTED, numbers)

    def by_key(found):
        return pd.DataFrame.from_dict(found, "index").rename_axis(KEY).reset_index()

    cells = pd.concat(cells, names=KEY).reset_index(KEY)
    names = {"KEY": KEY, "pd": pd, "published": published, "display": lambda *_: None}
    names |= {"table02": by_key(gaps), "table06": by_key(lost)}
    names["out"] = SimpleNamespace(write_any=lambda table, *_: table)
    names["spread"] = statistics.spread(cells, KEY)
    notebook = nbformat.read(paths.NOTEBOOKS / "10_empathy_gap.ipynb", as_version=4)
    start = "numbers = table02.merge("
    (cell,) = [cell.source for cell in notebook.cells if cell.source.startswith(start)]
    exec(cell, names)
    return names["versus"]


def test_identical_answers_never_differ(versus):
    assert len(versus) == 3 * (3 + 2 + 1 + 2)
    assert versus.verdict.isin(["agrees within rounding", "agrees within chance"]).all()
    chance = versus.number.isin(["ci_lower", "ci_upper"])
    assert (versus.verdict[~chance] == "agrees within rounding").all()
    assert versus.tolerance[chance].between(0.0005, 0.1).all()


def test_the_end_of_a_null_moves_no_further_than_its_spread():
    """400 pairs of nulls: three standard errors hold their ends, half as many do not."""
    rng, moved = np.random.default_rng(0), []
    for _ in range(400):
        here, there = (PermutationTest(0, 1, rng.standard_normal(2_000), 0) for _ in range(2))
        ends = np.subtract(here.null_interval, there.null_interval)
        moved.append(np.abs(ends) / here.null_spread(2_000))
    assert np.mean(np.array(moved) <= 1) > 0.99
    assert 0.8 < np.mean(np.array(moved) <= 0.5) < 0.97
