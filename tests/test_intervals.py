"""Intervals over items and Holm's correction, against SciPy, statsmodels and simulation."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from ingroup.stats.intervals import holm, interval_over_events, mean_over_items, mean_test


def test_mean_over_items_is_the_t_test_of_one_sample():
    differences = np.array([1.0, 3.0, np.nan, -2.0, 4.0])
    mean = mean_over_items(differences)
    test = stats.ttest_1samp(differences, 0, nan_policy="omit")
    assert mean.estimate == 1.5
    assert mean.n == 4
    assert (mean.statistic, mean.p) == pytest.approx((test.statistic, test.pvalue))
    assert (mean.low, mean.high) == pytest.approx(tuple(test.confidence_interval(0.95)))
    assert mean.effect_size == pytest.approx(1.5 / np.nanstd(differences, ddof=1))


@pytest.mark.parametrize("values", [[2.0], [2.0, 2.0, 2.0], [2.0, np.nan]])
def test_items_that_do_not_vary_have_a_mean_alone(values):
    mean = mean_over_items(values)
    assert mean.estimate == 2
    assert np.isnan([mean.low, mean.high, mean.statistic, mean.p]).all()


def test_no_items_have_no_mean():
    assert np.isnan(mean_over_items([]).estimate)


def test_holm_by_hand():
    # 3 x .01, then 2 x .03, then the larger of .06 and 1 x .04.
    assert holm([0.03, np.nan, 0.01, 0.04]) == pytest.approx(
        [0.06, np.nan, 0.03, 0.06], nan_ok=True
    )
    assert np.isnan(holm([np.nan])).all()


def test_holm_is_that_of_statsmodels():
    pvalues = np.random.default_rng(0).random(40) ** 3
    _, corrected, _, _ = multipletests(pvalues, method="holm")
    assert holm(pvalues) == pytest.approx(corrected)


def test_interval_over_events_holds_a_known_gap():
    """The gap of many events is the truth; 95 % of the intervals of few events hold it."""
    rng = np.random.default_rng(0)
    n = 5
    same = np.eye(n, dtype=bool)
    true = np.pad(same * 1.0, (1, 0)) + rng.normal(0, 0.5, (n + 1, n + 1))
    delta = (true[1:, 1:][same].mean() - true[1:, 1:][~same].mean()) / true.std()

    hits = 0
    runs = 100
    for _ in range(runs):
        of_events = rng.normal(0, 1, 20) + rng.normal(0, 0.5, (n + 1, n + 1, 20))
        low, high = interval_over_events(true[..., None] + of_events, same, 500, rng)
        hits += low <= delta <= high
    assert hits / runs >= 0.88


def test_interval_over_few_events_is_as_wide_as_students():
    """The gap alone varies over events, so the interval is that of a mean."""
    n_events = 8
    same = np.eye(4, dtype=bool)
    of_events = stats.norm.ppf((np.arange(n_events) + 0.5) / n_events) / 100
    ratings = np.random.default_rng(0).normal(size=(5, 5, 1)) + np.zeros(n_events)
    ratings[1:, 1:][same] += of_events
    low, high = interval_over_events(ratings, same, 100_000, 1)

    sd = ratings.mean(axis=2).std()
    width = np.ptp(stats.t.interval(0.95, n_events - 1, scale=stats.sem(of_events)))
    assert high - low == pytest.approx(width / sd, rel=0.04)


def test_a_mean_is_tested_by_question_or_by_identity():
    clusters = list("aaaabbc")
    index = pd.MultiIndex.from_arrays([range(7), clusters], names=["key", "identity"])
    differences = pd.Series([25.0, 0, 50, -25, 0, 75, 25], index)
    theirs = stats.ttest_1samp(differences, 0)
    ours = mean_test(differences, "key")
    assert ours["p"] == pytest.approx(theirs.pvalue)
    assert [ours["low"], ours["high"]] == pytest.approx(list(theirs.confidence_interval()))

    # The formula of the docstring, with clusters of four, two and one.
    residuals = differences - differences.mean()
    sums = residuals.groupby("identity").sum()
    error = np.sqrt(3 / 2 * (sums**2).sum()) / 7
    t = differences.mean() / error
    ours = mean_test(differences, "identity")
    assert ours["p"] == pytest.approx(2 * stats.t.sf(t, 2))
    assert ours["n"] == 3

    assert np.isnan(mean_test(0 * differences + 25, "identity")["p"])
    flat = mean_test(0 * differences, "identity")
    assert flat == {"change": 0, "low": 0, "high": 0, "p": 1, "n": 3}
