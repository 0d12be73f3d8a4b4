"""The findings: their sentences stand in the texts, and known effects are found."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ingroup import findings
from ingroup.paths import ROOT

BEHIND = ["10_empathy_gap", "20_biased_samaritan", "30_giebench", "40_stereomap"]


@pytest.fixture(scope="module")
def sentences(notebook):
    """Run the notebook behind those whose tables it reads."""
    for name in BEHIND:
        notebook(name)
    return notebook("60_findings").findings


def plain(text):
    """Drop emphasis and line breaks."""
    return " ".join(text.replace("**", "").split())


def test_findings_page_has_every_sentence(sentences):
    page = plain((ROOT / "docs" / "findings.md").read_text("utf8"))
    for sentence in sentences:
        assert sentence["short"] in page
        assert sentence["detail"] in page
    assert len(page.split()) <= 900


def test_readme_has_the_six_findings(sentences):
    readme = (ROOT / "README.md").read_text("utf8")
    section = readme.partition("<!-- findings -->")[2].partition("<!-- end of findings -->")[0]
    six = [sentence["short"] for sentence in sentences[:6]]
    assert plain(section) == " ".join(f"{number}. {text}" for number, text in enumerate(six, 1))
    assert max(len(text.split()) for text in six) <= 45


def test_variance_shares_recover_known_variances():
    rng = np.random.default_rng(0)
    model = rng.normal(0, 1, 60)
    item = rng.normal(0, 2, 60)
    table = pd.MultiIndex.from_product([range(60), range(60)], names=["model", "item"])
    table = table.to_frame(index=False)
    table["rating"] = model[table.model] + item[table.item] + rng.normal(0, 3, len(table))
    terms = {"model": ["model"], "item": ["item"]}
    shares = findings.variance_shares(table, "rating", terms)
    parts = np.array([model.var(), item.var(), 9])
    assert shares.to_numpy() == pytest.approx(parts / parts.sum(), abs=0.02)


def test_rank_correlation_of_one_stratum_is_spearmans():
    rng = np.random.default_rng(1)
    index = pd.Index(["race"] * 12, name="category")
    pairs = pd.DataFrame(rng.normal(size=(12, 2)), index)
    rho, p = findings.rank_correlation(pairs, "category", rng)
    spearman = stats.spearmanr(pairs[0], pairs[1])
    assert rho == pytest.approx(spearman.statistic)
    assert p == pytest.approx(spearman.pvalue, abs=0.03)


def test_rank_correlation_ignores_differences_between_strata():
    index = pd.Index(["race"] * 4 + ["age"] * 4, name="category")
    pairs = pd.DataFrame(
        {"one": [1, 2, 3, 4, 11, 12, 13, 14], "other": [4, 3, 2, 1, 9, 8, 7, 6]}, index
    )
    rho, _ = findings.rank_correlation(pairs, "category", np.random.default_rng(2))
    assert rho == pytest.approx(-1)
