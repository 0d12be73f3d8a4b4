"""Each sentence of docs/findings.md with a number follows from tables made anew, of the answers."""

import re

import pandas as pd
import pytest
import yaml

from ingroup import models, paths
from ingroup.commands import parameters, run
from ingroup.stats.paired import adjust

DOCS = paths.ROOT / "docs"
CLAIMS = yaml.safe_load((DOCS / "claims.yaml").read_text("utf8"))
COLUMNS = ["finding", "sentence", "table", "rows", "rule", "reading", "scope"]
NOTEBOOKS = [
    "10_empathy_gap",
    "11_empathy_gap_beyond",
    "20_biased_samaritan",
    "21_biased_samaritan_beyond",
    "30_giebench",
    "32_giebench_beyond",
    "40_stereomap",
]
RUN = "claims"


def plain(text):
    """A text without links and with single blanks."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\s+", " ", text)


def span(values, decimals):
    """The least and the greatest of some values, rounded."""
    return round(float(values.min()), decimals), round(float(values.max()), decimals)


def holm(p):
    return adjust(list(p), "holm")


@pytest.fixture(scope="module")
def tables():
    """The tables of the notebooks for the real models, as the default run has them."""
    real = ";".join(models.carried())
    for notebook in NOTEBOOKS:
        given = {"MODELS": real}
        asked = parameters.merged(notebook, "demo", given, run=RUN)
        run.execute(notebook, asked, run.Progress(notebook, alone=False))
    return paths.run_folder(RUN) / "tables"


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim["sentence"][:60] for claim in CLAIMS])
def test_a_sentence_follows_from_its_rows(tables, claim):
    table = pd.read_csv(tables / f"{claim['table']}.csv")
    rows = table.query(claim["rows"])
    assert len(rows), f"no row of {claim['table']} is {claim['rows']}"
    known = {"t": rows, "span": span, "holm": holm, "len": len, "set": set, "round": round}
    holds = eval(claim["rule"], {"__builtins__": {}}, known)
    assert holds, f"{claim['sentence']}\n{rows.to_string()}"


def test_the_findings_have_each_sentence_and_no_other_number():
    text = plain((DOCS / "findings.md").read_text("utf8"))
    for claim in CLAIMS:
        assert list(claim) == COLUMNS
        assert claim["sentence"] in text, claim["sentence"]
    for claim in CLAIMS:
        text = text.replace(claim["sentence"], "")
    assert re.findall(r"\d\.\d+", text.replace("Qwen2.5", "Qwen")) == []
