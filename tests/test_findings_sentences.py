"""Each sentence of docs/findings.md with a number follows from tables made anew, of the answers."""

import re

import pandas as pd
import pytest

from ingroup import findings_sentences, models, notebook_cells, paths
from ingroup.commands import book, report, report_pages, run, run_parameters
from ingroup.tables import InputError

DOCS = paths.ROOT / "docs"
CLAIMS = findings_sentences.load()
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


@pytest.fixture(scope="module")
def tables():
    """The tables of the notebooks for the real models, as the default run has them."""
    given = {"MODELS": ";".join(models.packaged_models())}
    for notebook in NOTEBOOKS:
        values = run_parameters.merged_parameters(notebook, "demo", given, run=RUN)
        run.execute(notebook, values, run.Progress(notebook, alone=False))
    return paths.run_folder(RUN) / "tables"


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim.sentence[:60] for claim in CLAIMS])
def test_a_sentence_follows_from_its_rows(tables, claim):
    table = pd.read_csv(tables / f"{claim.table}.csv")
    rows = findings_sentences.rows_of(claim, table).to_string()
    assert findings_sentences.holds(claim, table), f"{claim.sentence}\n{rows}"


def test_a_rule_is_applied_to_the_rows_that_it_names():
    table = pd.DataFrame({"model": ["a", "a", "b"], "points": [0.21, 0.42, -1.0]})
    claim = findings_sentences.Claim(
        1, "x", "s/t", "model == 'a'", "span(t.points, 1) == (0.2, 0.4)", "", ""
    )
    assert findings_sentences.holds(claim, table)

    of_another_row = claim._replace(rule="(t.points < 0).any()")
    assert not findings_sentences.holds(of_another_row, table)

    with_a_loop = claim._replace(rule="[span(t.points, n) for n in [1]] == [(0.2, 0.4)]")
    assert findings_sentences.holds(with_a_loop, table)

    with pytest.raises(ValueError, match="no row of s/t is model == 'c'"):
        findings_sentences.holds(claim._replace(rows="model == 'c'"), table)


def test_only_claims_that_follow_from_the_tables_of_a_run_are_listed(tmp_path):
    (tmp_path / "s").mkdir()
    pd.DataFrame({"model": ["a"], "points": [0.2]}).to_csv(tmp_path / "s" / "t.csv")
    true = findings_sentences.Claim(
        1, "true", "s/t", "model == 'a'", "(t.points > 0).all()", "", ""
    )
    others = [
        true._replace(sentence="false", rule="(t.points < 0).all()"),
        true._replace(sentence="without rows", rows="model == 'b'"),
        true._replace(sentence="without a table", table="s/other"),
    ]
    assert findings_sentences.supported_claims(tmp_path, [*others, true]) == [true]


def test_a_claim_that_lacks_an_entry_is_refused(tmp_path):
    file = tmp_path / "claims.yaml"
    file.write_text("- {finding: 1, sentence: x}\n", "utf8")
    expected = (
        "claim 1: found finding, sentence, expected finding, sentence, table, rows, rule, reading, "
        "scope and, where needed, alone, in this order."
    )
    with pytest.raises(InputError, match=expected):
        findings_sentences.load(file)


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim.whole[:60] for claim in CLAIMS])
def test_a_claim_can_be_read_alone(claim):
    """It is a whole sentence that names what it is about, and has no number of its own."""
    assert re.match(r"[A-Z0-9]|agreement_maps\.csv ", claim.whole)
    assert claim.whole.endswith(".")
    beginning = re.match(r"(It|Its|They|Their|These|This|Each of these|Both|In it)\b", claim.whole)
    assert beginning is None
    named = "Qwen|SmolLM2|Gemma|three models|maps of real|four groups|agreement_maps|texts of study"
    assert re.search(named, claim.whole)

    findings = plain((DOCS / "findings.md").read_text("utf8"))
    numbers = set(re.findall(r"\d[\d,.]*\d|\d", claim.whole))
    assert numbers <= set(re.findall(r"\d[\d,.]*\d|\d", findings))
    decimals = set(re.findall(r"\d\.\d+", claim.alone.replace("Qwen2.5", "")))
    assert decimals <= set(re.findall(r"\d\.\d+", claim.sentence))


def test_no_two_claims_of_one_scope_are_the_same_sentence():
    assert len({(claim.whole, claim.scope) for claim in CLAIMS}) == len(CLAIMS)


def test_the_findings_have_each_sentence_and_no_other_number():
    text = plain((DOCS / "findings.md").read_text("utf8"))
    for claim in CLAIMS:
        assert claim.sentence in text, claim.sentence
    for claim in CLAIMS:
        text = text.replace(claim.sentence, "")
    assert re.findall(r"\d\.\d+", text.replace("Qwen2.5", "Qwen")) == []


def test_each_table_that_the_findings_name_has_a_link_and_exists(tables):
    run_folder = tables.parent
    pages, lost = book.read_pages(RUN)
    assert lost == []
    files = report.copies(run_folder, run_folder / "figures", run_folder / "site")
    relative = "docs/findings.md"
    text = (paths.ROOT / relative).read_text("utf8")

    linked = report_pages.link_tables(text, relative, pages, files)

    names = re.findall(r"`\w+\.csv`", text)
    links = re.findall(r"\[`(\w+)\.csv`\]\((?:book|copy):\.\./([^)]*)\)", linked)
    assert len(names) > 25
    assert len(links) == len(names)
    page_by_file = {page.file: page for page in pages}
    for name, address in links:
        file, _, anchor = address.partition("#csv-")
        if anchor:
            page = page_by_file[file]
            assert notebook_cells.cell_of(page.notebook, name) is not None
            file = f"tables/{page.folder}/{name}.csv"
        assert (run_folder / file).exists(), address


def test_each_number_of_the_readme_stands_in_the_findings():
    readme = (paths.ROOT / "README.md").read_text("utf8")
    _, after_heading = readme.split("## What was found", 1)
    section = after_heading.split("The three models are small")[0]
    numbers = set(re.findall(r"\d+\.\d+", section.replace("Qwen2.5", "Qwen")))
    assert len(numbers) > 10

    findings = (DOCS / "findings.md").read_text("utf8")
    assert numbers <= set(re.findall(r"\d+\.\d+", findings))
