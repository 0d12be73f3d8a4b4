"""Corrections of p by hand and against statsmodels; families of tests."""

from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from ingroup.stats.corrections import adjust, finding, in_family

NAN = np.nan


def test_findings_by_hand():
    """At .05: a p that is .05 is not below it, and a least p that is .05 cannot be."""
    cases = {
        (0.049, 0.0): "significant",
        (0.05, 0.0): "not significant",
        (0.2, 0.049): "not significant",
        (0.2, 0.05): "could not have been significant",
        (1.0, 0.3): "could not have been significant",
        (NAN, 0.3): "not tested",
        (NAN, NAN): "not tested",
    }
    pvalues, least = np.transpose(list(cases))

    found = finding(pvalues, least, 0.05)

    assert found.tolist() == list(cases.values())


def test_one_family_among_tests():
    """Two of three are one family; the other keeps its p, whose finding is its own."""
    table = pd.DataFrame({"p": [0.03, 0.04, 0.02], "p_least": [0.0, 0.03, 0.04]})
    family = pd.Series([True, True, False])

    found = in_family(table, 0.05, family)

    np.testing.assert_allclose(found.p_holm, [0.06, 0.06, NAN])
    np.testing.assert_allclose(found.p_holm_least, [0.0, 0.03, NAN])
    assert found.finding.tolist() == ["not significant", "not significant", "significant"]
    assert found.p.tolist() == table.p.tolist()


def test_all_tests_are_one_family_unless_told_otherwise():
    table = pd.DataFrame({"p": [0.01, 0.3, NAN], "p_least": [0.0, 0.06, NAN]})

    found = in_family(table, 0.05)

    np.testing.assert_allclose(found.p_holm, [0.02, 0.3, NAN])
    expected = ["significant", "could not have been significant", "not tested"]
    assert found.finding.tolist() == expected


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("none", [0.02, 0.04, 0.01]),
        ("bonferroni", [0.06, 0.12, 0.03]),
        # 0.01 x 3, then 0.02 x 2, then 0.04 x 1 (not below its predecessor).
        ("holm", [0.04, 0.04, 0.03]),
        # 0.04 x 3/3, then 0.02 x 3/2, then 0.01 x 3/1 (not above).
        ("benjamini-hochberg", [0.03, 0.04, 0.03]),
    ],
)
def test_adjust_by_hand(method, expected):
    first, second, third = expected
    pvalues = np.array([[0.02, NAN], [0.04, 0.01]])
    before = pvalues.copy()

    adjusted = adjust(pvalues, method)

    np.testing.assert_allclose(adjusted, [[first, NAN], [second, third]])
    np.testing.assert_array_equal(pvalues, before)
    assert np.isnan(adjust([NAN, NAN], method)).all()


@settings(max_examples=30)
@given(st.lists(st.sampled_from([0, 1e-9, 0.01, 0.02, 0.3, 1]), min_size=1))
def test_adjust_against_statsmodels(pvalues):
    with patch("gc.collect"):  # theirs collects garbage at every call, half a second each
        _, bonferroni, *_ = multipletests(pvalues, method="bonferroni")
        _, holm, *_ = multipletests(pvalues, method="holm")
        _, hochberg, *_ = multipletests(pvalues, method="fdr_bh")

    with_nan = [*pvalues, NAN]
    np.testing.assert_array_equal(adjust(with_nan, "bonferroni"), [*bonferroni, NAN])
    np.testing.assert_array_equal(adjust(with_nan, "holm"), [*holm, NAN])
    np.testing.assert_allclose(adjust(pvalues, "benjamini-hochberg"), hochberg)


def test_no_other_correction_is_known():
    with pytest.raises(KeyError, match="sidak"):
        adjust([0.01], "sidak")
