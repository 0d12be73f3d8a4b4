"""Free text beside scored verdicts, with answers made by hand."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ingroup.studies.giebench import both_ways
from ingroup.studies.giebench.design import VERDICTS

NUMBERS = pd.ArrowDtype(pa.list_(pa.float64()))
SCORES = [
    [0.7, 0.1, 0.1, 0.1],
    [0.1, 0.7, 0.1, 0.1],
    [0.5, 0.3, 0.1, 0.1],
    [0.9, 0.1, 0.0, 0.0],
]
MASS = [[0.5], [0.1], [0.2], [0.4]]


def asked(model, plan, is_scored):
    """A call of one plan, as far as these functions look at it."""
    return SimpleNamespace(
        model=model,
        labels={"plan": plan},
        key=(model, plan),
        is_scored=is_scored,
        sampling=SimpleNamespace(choices=VERDICTS),
    )


def read(keys, letters, replies="", status="ok"):
    """Answers about these items, each in the order given."""
    table = pd.DataFrame({"key": keys, "letter": letters})
    return table.assign(shift=0, told="i", reply=replies, status=status)


SCORED = asked("m", "Raw", True)
IN_TEXT = asked("m", "Raw", False)


@pytest.fixture
def answered(monkeypatch):
    """Four scored verdicts, and three replies in free text: the same, another, and none."""
    stored = pd.DataFrame(
        {
            "probabilities": pd.Series(SCORES, dtype=NUMBERS),
            "mass": pd.Series(MASS, dtype=NUMBERS),
        }
    )
    tables = {
        True: read(["1", "2", "3", "4"], ["A", "B", "A", "A"]),
        False: read(
            ["4", "2", "3"],
            ["A", "C", ""],
            ["[[A]] is best", "I take [[C]]", None],
            ["ok", "ok", "failed"],
        ),
    }
    store = SimpleNamespace(read=lambda columns: stored[columns])
    monkeypatch.setattr(both_ways, "stored", lambda job: store)
    monkeypatch.setattr(both_ways, "load", lambda job, rule: tables[job.is_scored])


def test_the_mean_of_each_letter_is_over_scored_prompts(answered):
    table = both_ways.mean_probabilities([SCORED, IN_TEXT])

    assert table[["model", "plan"]].to_numpy().tolist() == [["m", "Raw"]]
    np.testing.assert_allclose(table[list("ABCD")], [[0.55, 0.3, 0.075, 0.075]])


def test_the_same_prompts_are_compared(answered):
    """Items 4, 2 and 3: the first agrees and begins with its verdict; the last call failed."""
    other = asked("other", "Raw", True)  # never asked in free text
    table = both_ways.free_beside_choices([SCORED, IN_TEXT, other])

    assert table.index.tolist() == [("m", "Raw")]
    row = table.iloc[0]
    assert (row.asked, row.answered, row.agree) == (3, 2, 1)
    assert (row.begin, row.begin_greedy) == (1, 1)
    assert row["option_mass"] == pytest.approx(100 * (0.4 + 0.1 + 0.2) / 3)
    assert row[both_ways.REASONS].to_dict() == {
        "no verdict": 0,
        "several verdicts": 0,
        "refused": 0,
        "cut": 0,
        "failed": 1,
    }


def test_without_scores_the_tables_are_empty_and_have_their_columns(answered):
    assert both_ways.mean_probabilities([IN_TEXT]).columns.tolist() == ["model", "plan", *"ABCD"]
    assert both_ways.free_beside_choices([IN_TEXT]).index.names == ["model", "plan"]
