"""The audit: its arithmetic by hand, and what does not hold in the printed tables."""

from itertools import combinations_with_replacement

import numpy as np
import pandas as pd
import pytest

from ingroup import audit


@pytest.fixture(scope="module")
def results(notebook) -> pd.DataFrame:
    """Run the notebook."""
    return notebook("50_audit").results


def test_what_fails_is_judged(results):
    """Each check that does not hold says what it changes, and no other does."""
    assert ((results.failed > 0) == (results.changes != "")).all()
    assert (results.why != "").equals(results.changes != "")


def test_numbers_that_do_not_hold(results):
    """The slips are those that an independent recomputation found."""
    failed = results[results.failed > 0].groupby("paper").failed.agg(["size", "sum"])
    assert failed.loc["empathy_gap"].tolist() == [3, 3]
    assert failed.loc["biased_samaritan"].tolist() == [13, 64]
    assert failed.loc["giebench"].tolist() == [10, 28]
    assert failed.loc["stereomap"].tolist() == [7, 8]


@pytest.mark.parametrize(("change", "n_failed"), [(0.0, 0), (0.03, 1)])
def test_a_changed_number_is_found(monkeypatch, change, n_failed):
    """A printed difference that is changed beyond rounding fails its check."""
    tables = audit.printed_tables("biased_samaritan")
    tables[2].iloc[0, tables[2].columns.get_loc("score_difference")] += change
    monkeypatch.setattr(audit, "printed_tables", lambda paper: tables)

    checks = audit.check_all("biased_samaritan").set_index("check")
    assert checks.failed["score minus control of Table 7"] == n_failed


def test_largest_sd_by_enumeration():
    """No five numbers from 1 to 4 with mean 3.4 have a larger SD, and one choice comes near."""
    draws = [np.array(one) for one in combinations_with_replacement(range(1, 5), 5)]
    spreads = [one.std(ddof=1) for one in draws if one.mean() == pytest.approx(3.4)]
    bound = audit.largest_sd(3.4, 1, 4, 5)
    assert max(spreads) <= bound
    assert max(spreads) == pytest.approx(bound, rel=0.05)


def test_whole_percentages():
    """33.3 is 1/3 and 40.0 is not, of three; 1/61, 2/61 and 60/61 have only 61 in common."""
    assert audit.whole(pd.Series([33.3, 40.0]), 3).tolist() == [True, False]
    assert audit.best_n(pd.Series([1.6, 3.3, 98.4])) == 61


@pytest.mark.parametrize("number", [18, 18.0, np.int64(18), np.float64(18)])
def test_a_number_is_compared_whatever_its_type(number):
    """NumPy's whole numbers are no int of Python, and not a truth value either."""
    assert audit.outcome("18", number)["failed"] == 0
    assert audit.outcome("19", number)["failed"] == 1


@pytest.mark.parametrize(
    ("printed", "value", "agrees"),
    [
        ("5", 5.67, True),
        ("5", 6.0, False),
        ("5", 4.6, True),
        ("5", 4.3, False),
        ("-5.6", -5.67, True),
        ("1.77", 1.774, True),
    ],
)
def test_rounded_or_cut(printed, value, agrees):
    """A number in prose may be rounded or cut."""
    assert audit.agrees(printed, value) is agrees
