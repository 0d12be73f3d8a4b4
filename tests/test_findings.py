"""The findings: their sentences stand in the texts."""

import pytest

from ingroup import ROOT

BEHIND = ["10_empathy_gap", "20_biased_samaritan", "30_giebench", "40_stereomap"]


@pytest.fixture(scope="module")
def sentences(notebook, tables_of):
    """Run the notebook on the tables of those that it reads."""
    for name in BEHIND:
        tables_of(name)
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
