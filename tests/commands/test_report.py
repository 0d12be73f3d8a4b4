"""The report without a browser: what is counted, linked, described and cleaned."""

import ast
import base64
import hashlib
import inspect
import re
import shutil
from html import unescape
from html.parser import HTMLParser
from importlib import import_module

import nbformat
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from ingroup import paths
from ingroup.commands import book, report, report_html, report_pages, settings
from ingroup.families import families
from ingroup.stats import multiverse

CALIBRANT = {"MODELS": ["calibrant", "calibrant-null"], "ENGINE": ""}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """An empty project; ``run`` puts an executed notebook into it."""
    for name in ("NOTEBOOKS", "FIGURES", "BUILD"):
        folder = tmp_path / name.lower()
        folder.mkdir()
        monkeypatch.setattr(paths, name, folder)
    monkeypatch.setattr(paths, "ROOT", tmp_path)

    def notebooks():
        return [file.stem for file in (tmp_path / "notebooks").iterdir()]

    monkeypatch.setattr(settings, "notebooks", notebooks)
    return tmp_path


def execute(project, name, *cells, parameters=CALIBRANT, summary=True):
    """Leave behind what `ingroup.run` leaves behind."""
    cells = [new_markdown_cell(cell) if isinstance(cell, str) else cell for cell in cells]
    book = new_notebook(cells=cells, metadata={"papermill": {"parameters": parameters}})
    folder = project / "build" / "notebooks"
    folder.mkdir(exist_ok=True)
    nbformat.write(book, folder / f"{name}.ipynb")
    nbformat.write(book, project / "notebooks" / f"{name}.ipynb")

    if summary:
        (folder / f"{name}.txt").write_text(f"{name}: 12 s, MODELS={parameters.get('MODELS')}\n")


def html_cell(html):
    """A cell that showed some HTML."""
    return new_code_cell("t", outputs=[new_output("display_data", data={"text/html": html})])


def page_of(name, run=paths.DEFAULT_RUN):
    """What the sources of the book show on a page: prose as markdown, outputs as HTML."""
    folder = paths.BUILD / "sources"
    shutil.rmtree(folder, ignore_errors=True)
    contents, _ = report.gather(run, paths.BUILD / "site")
    book.write(contents, folder)

    shown = []
    for cell in nbformat.read(folder / f"{name}.ipynb", as_version=4).cells:
        if cell.cell_type == "markdown":
            shown.append(cell.source)
        for output in cell.get("outputs", ()):
            shown.append(output["data"].get("text/html", "a picture"))
    return "\n".join(shown)


def plain(source):
    return " ".join(re.sub(r"<[^>]+>", " ", source).split())


# ---- what was real -------------------------------------------------------------------------------


def test_only_models_that_answered_are_on_the_banner():
    three = {"MODELS": ["calibrant", "calibrant-null", "m"], "ENGINE": ""}

    calibrants = report.banner(three, {"calibrant", "calibrant-null"})
    assert calibrants.kind == "demonstration"
    real = report.banner(three, {"m", "all"})
    assert real == report.Banner("real", "Real:", "m (transformers).")
    all_three = report.banner(three)
    assert all_three.kind == "real"


@pytest.mark.parametrize(
    ("parameters", "kind", "sentence"),
    [
        (CALIBRANT, "demonstration", "Demonstration: trained by this project"),
        (
            {"MODELS": ["data/models/calibrant-null/"]},
            "demonstration",
            "nothing about any real model",
        ),
        ({"MODELS": ["m"], "ENGINE": "vllm"}, "real", "Real: m (vllm)."),
        ({"MODELS": ["m@stored", "n@replay"]}, "real", "m (stored answers), n (recorded answers)."),
        (
            {"MODELS": ["m", "calibrant-null"], "ENGINE": "vllm"},
            "real",
            "Real: m. Demonstration, trained by this project: calibrant-null.",
        ),
        ({"RUN": "default"}, "none", "No model: none was asked on this page."),
        (None, "none", "Not known: this notebook does not say how it was run."),
    ],
)
def test_the_banner_says_what_was_real(parameters, kind, sentence):
    banner = report.banner(parameters)
    assert banner.kind == kind
    assert sentence in f"{banner.head} {banner.text}"


def test_a_page_without_a_model_that_shows_a_calibrant_says_so(project):
    execute(project, "10_a", "# A")
    execute(project, "20_b", "# B\n\nThe calibrant's figures.", parameters={"RUN": "default"})
    execute(project, "30_c", "# C", parameters={"RUN": "default"})

    sentence = "What it shows of a calibrant in this run is a demonstration."
    assert sentence not in page_of("10_a")
    assert sentence in page_of("20_b")
    assert sentence not in page_of("30_c")

    first = plain(page_of("index"))
    assert "Demonstration: trained by this project" in first
    assert "C No model: none was asked on this page." in first


CLAIMS = [  # as 00_map writes them; the last has no sentence of a paper
    (
        "m",
        "s_one",
        "Group A",
        90.0,
        0.0,
        "mostly stands",
        1.76603,
        1.75,
        1.78,
        "",
        "above",
        "the gap",
    ),
    ("calibrant", "s_one", "Group A", 0.0, 100.0, "reversed", -2.0, -3, -1, "", "above", "the gap"),
    (
        "m",
        "s_two",
        "b",
        0.0,
        0.46875,
        "mostly not shown",
        None,
        None,
        None,
        "no gap",
        "above",
        None,
    ),
]


def write_claims(project):
    """The tables of the map on which the first page rests."""
    folder = project / "build" / "tables" / "map"
    folder.mkdir(parents=True)
    names = [
        "model",
        "study",
        "name",
        "share",
        "against",
        "verdict",
        "estimate",
        "low",
        "high",
        "reason",
        "way",
        "sentence",
    ]
    table = pd.DataFrame(CLAIMS, columns=names).assign(
        place="Section 4",
        printed="0.58 to 1.73",
        figure="figure3",
        result="table02",
        paths=1500,
        counted=1120,
        source="multiverse_shares.csv, line 7",
        claim="group_a",
        choice=["reading", None, None],
        share_from=[4.0, None, None],
        share_to=[100.0, None, None],
    )
    table.to_csv(folder / "claims.csv", index=False)

    row = {"sentence": "4 slips <b>change</b> a claim.", "notebook": "10_s_one"}
    pd.DataFrame([row]).to_csv(folder / "found.csv", index=False)
    return folder


def test_the_first_page_runs_claim_by_claim(project):
    """A row a sentence, a cell a model: verdict, estimate in three digits, shares of the paths."""
    tables = write_claims(project).parent
    assert report.claims(tables / "none") is None
    claims = report.claims(tables)
    assert claims["models"] == {"m": "m", "calibrant": "calibrant"}
    first, second = claims["rows"]
    assert first["name"] == "Group A"
    assert first["sentence"] == "the gap"
    assert second["sentence"] == ""

    execute(project, "10_a", "# A")
    table = page_of("index").partition('class="claims"')[2]
    cells = re.findall(r"<td[^>]*>(<span class=.verdict.*?|not asked)</td>", table)
    assert [plain(cell) for cell in cells] == [
        "mostly stands median 1.77, from 1.75 to 1.78 90 % of 1,120 paths by reading : 4 to 100 %",
        "reversed median -2, from -3 to -1 0 % of 1,120 paths, 100 % opposite",
        "mostly not shown no gap 0 % of 1,120 paths, 0.469 % opposite",
        "not asked",
    ]
    assert '<span class="verdict mostly-not-shown">' in cells[2]


def test_a_claim_that_no_path_could_show_says_why(project):
    folder = write_claims(project)
    table = pd.read_csv(folder / "claims.csv")
    table = table.assign(
        counted=0, share=None, estimate=0.0, low=0, high=0, reason="one <b> verdict"
    )
    table.to_csv(folder / "claims.csv", index=False)
    execute(project, "10_a", "# A")
    page = page_of("index").partition('class="claims"')[2]
    cells = [plain(cell) for cell in re.findall(r"<td data-label=.m.>(.*?)</td>", page)]
    text = "median 0, from 0 to 0 none of 1,500 paths could show it one &lt;b&gt; verdict"
    assert text in cells[0]


def test_a_share_leads_to_the_row_with_its_numbers(project):
    """From a cell to its row, from the row to the lines of the files: three jumps in all."""
    folder = write_claims(project)
    synthesis = folder.parent / "synthesis"
    synthesis.mkdir()
    for name in ("multiverse_shares", "multiverse_s_one"):
        (synthesis / f"{name}.csv").write_text("a\n1\n")
    execute(project, "10_s_one", "# One")

    first = page_of("index").partition('class="claims"')[2]
    numbers = page_of("numbers")
    links = re.findall(r'<a class="share" href="([^"]*)">', first)
    assert links == ["numbers.html#line-2", "numbers.html#line-3", "numbers.html#line-4"]
    assert re.findall("^## .*", numbers, re.M) == ["## One", "## s two"]
    assert sorted(re.findall(r'<tr id="([^"]*)"', numbers)) == ["line-2", "line-3", "line-4"]

    row = re.search(r'<tr id="line-2">.*?</tr>', numbers, re.DOTALL)[0]
    cells = [plain(cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)]
    assert cells == [
        "Group A: above, m",
        "mostly stands",
        "90 % hold, 0 % opposite, 1120 of 1500 count",
        "median 1.76603, lowest 1.75, highest 1.78",
        "reading: 4 to 100 %",
        "claims.csv , line 2 (share, against); multiverse_shares.csv , line 7 (stands, reversed: "
        "above and below 0); multiverse_s_one.csv , model m , claim group_a",
    ]
    assert re.findall('href="([^"]*)"', row) == [
        "tables/map/claims.csv",
        "tables/synthesis/multiverse_shares.csv",
        "tables/synthesis/multiverse_s_one.csv",
    ]
    of_lines = pd.read_csv(folder / "claims.csv")
    for link, cell in zip(links, of_lines.itertuples(), strict=True):
        line = int(link.rpartition("-")[2])
        assert cell.Index == line - 2  # line 1 is the header


def test_words_stand_above_the_tables_that_use_them(project):
    """As the glossary has them; those on controls where the run has one."""
    folder = write_claims(project)
    execute(project, "10_s_one", "# One")
    glossary = pd.read_csv(paths.DATA / "glossary.csv", index_col="word").meaning
    both = [*book.WORDS, *book.WORDS_ON_CONTROLS]

    above = page_of("index").partition('class="overview"')[0]
    items = re.findall(r"<dt>(.*?)</dt> <dd>(.*?)</dd>", above)
    assert [unescape(word) for word, _ in items] == both
    assert [unescape(meaning) for _, meaning in items] == glossary[both].tolist()

    table = pd.read_csv(folder / "claims.csv")
    table[table.model == "m"].to_csv(folder / "claims.csv", index=False)
    assert re.findall("<dt>(.*?)</dt>", page_of("index")) == list(book.WORDS)


def test_the_choice_that_a_cell_names_leads_to_its_meaning(project, monkeypatch):
    write_claims(project)
    data = project / "data"
    data.mkdir()
    shutil.copy(paths.DATA / "glossary.csv", data)
    choices = ["study,choice,meaning", 's_one,reading,"Free <b> or scored."', "another,seed,Any."]
    (data / "choices.csv").write_text("\n".join(choices))
    monkeypatch.setattr(paths, "DATA", data)
    execute(project, "10_s_one", "# One")

    page = page_of("index")
    assert 'by <a href="#choice-s_one-reading">reading</a>: 4 to 100 %' in page
    listed = re.findall(r'id="choice-(.*?)"><dt>(.*?)</dt> <dd>(.*?)</dd>', page)
    assert listed == [("s_one-reading", "reading", "Free &lt;b&gt; or scored.")]


def test_a_claim_leads_to_its_figure_table_and_code(project):
    write_claims(project)
    execute(project, "10_s_one", "# One", "## Statistics", new_code_cell('out.notebook("s_one")'))
    tables = project / "build" / "tables" / "s_one"
    tables.mkdir()
    (tables / "table02.csv").write_text("a\n1\n")
    figures = project / "figures" / "s_one"
    figures.mkdir()
    (figures / "figure3.png").write_bytes(b"x")

    page = page_of("index")

    row = re.search(r'<td class="links">(.*?)</td>', page)[1]
    assert re.findall('href="([^"]*)"', row) == [
        "figures/s_one/figure3.png",
        "tables/s_one/table02.csv",
        "10_s_one.html?code=open#statistics",
    ]
    assert re.findall("^### .*", page, re.M) == ["### One", "### s two"]
    sentence = "4 slips &lt;b&gt;change&lt;/b&gt; a claim."
    assert f'{sentence} <a href="10_s_one.html">10_s_one</a></li>' in page


def test_the_table_behind_a_claim_is_shown_where_it_is_written(project):
    """A link to a CSV file alone would open a file without a word about its columns."""
    write_claims(project)
    execute(project, "10_s_one", "# One", new_code_cell('out.write(t, "table02")'))
    tables = project / "build" / "tables" / "s_one"
    tables.mkdir()
    (tables / "table02.csv").write_text("a\n1\n")

    row = re.search(r'<td class="links">(.*?)</td>', page_of("index"))[1]
    assert unescape(row).strip() == '<a href="10_s_one.html#csv-table02">study\'s table</a>'
    assert 'id="csv-table02"' in page_of("10_s_one")


@pytest.mark.parametrize(
    ("files", "opening"),
    [
        (["figure3"], "figure3"),
        (["figure3", "figure3_models"], "figure3_models"),  # all models in one figure
        ([], "figure3"),
    ],
)
def test_a_page_opens_with_the_figure_behind_its_claims(files, opening, project):
    """Not with its first figure, which may show something else."""
    write_claims(project)
    png = base64.b64encode(b"x").decode()
    pictures = [new_output("display_data", data={"image/png": png})]
    cells = []
    for name in ("shares", "figure3", "figure3_models"):
        cells.append(new_code_cell(f'out.save(fig, "{name}", models)', outputs=pictures))
    execute(project, "10_s_one", "# One", *cells)
    folder = project / "figures" / "s_one"
    folder.mkdir()
    for name in files:
        (folder / f"{name}.png").write_bytes(b"x")

    contents, _ = report.gather(paths.DEFAULT_RUN, project / "site")
    figure = book._figures_of_claims(contents)["s_one"]
    (page,) = contents.pages
    assert f'"{opening}"' in page.opens_with(contents.pages, figure).source
    assert '"shares"' in page.opens_with(contents.pages, "").source


def test_files_are_linked_below_the_cell_that_names_them(project):
    """Those of another model, too; a text without a name, as in fillna(""), names none."""
    folder = project / "build" / "tables" / "s_one"
    folder.mkdir(parents=True)
    for name in ("map", "map_calibrant", "map_overview", "agreement"):
        (folder / f"{name}.csv").write_text("a\n1\n")
    output = new_output("stream", text="said")
    writing = new_code_cell('out.write(a, "map")', outputs=[output])
    filling = new_code_cell('a.fillna("")', outputs=[output])
    execute(project, "10_s_one", "# One", writing, filling)

    (links,) = re.findall(r'<p class="take">(.*?)</p>', page_of("10_s_one"), re.DOTALL)

    assert re.findall('href="([^"]*)"', links) == [
        "tables/s_one/map.csv",
        "tables/s_one/map_calibrant.csv",
    ]


def test_replies_behind_a_count_open_on_the_page_of_their_study(project):
    folder = write_claims(project)
    execute(project, "10_s_one", "# One")
    execute(project, "20_s_two", "# Two")
    hostile = "</pre></details><script>x</script>\x1b[0m\u202e"
    replies = pd.DataFrame(
        {
            "study": "s_one",
            "model": "m",
            "kind": "refused",
            "filter": 'status == "refused"',
            "notebook": "10_s_one",
            "trials": 2715,
            "job": "m A",
            "trial": [7, 9],
            "excerpt": [1, 2],
            "prompt": ["How much?", "And now?"],
            "reply": [hostile, "null"],
        }
    )
    replies.to_csv(folder / "replies.csv", index=False)

    page = page_of("10_s_one")

    (excerpt,) = re.findall(r'<details class="behind">.*?</details>', page, re.S)
    assert "m: refused, 2,715 replies" in excerpt
    assert "<code>make view STUDY=10 SAMPLES=0</code>" in excerpt
    assert "<code>status == &#34;refused&#34;</code>" in excerpt
    assert "<p>m A</p>" in excerpt
    assert "&lt;/pre&gt;&lt;/details&gt;&lt;script&gt;" in excerpt
    for text in ("How much?", "And now?", "null"):
        assert f">{text}<" in excerpt
    assert "<script>" not in page
    assert "\u202e" not in page
    assert 'class="behind"' not in page_of("20_s_two")


def test_replies_of_real_models_come_before_those_of_calibrants(project):
    folder = write_claims(project)
    row = {"study": "s_one", "trial": 1, "prompt": "How much?", "reply": "5"}
    asked = [("calibrant", "refused"), ("m", "cut"), ("calibrant", "cut"), ("m", "refused")]
    rows = [row | {"model": model, "kind": kind} for model, kind in asked]
    pd.DataFrame(rows).to_csv(folder / "replies.csv", index=False)

    examples = report.replies(folder.parent)["s_one"]

    shown = [(one["model"], one["kind"]) for (one,) in examples]
    assert shown == [("m", "cut"), ("m", "refused"), ("calibrant", "refused"), ("calibrant", "cut")]


# ---- printed or ground truth, and here -----------------------------------------------------------


def test_each_form_of_a_table_has_its_verdicts():
    judged = pd.DataFrame({"verdict": ["differs", None]})
    assert report.verdicts(judged).tolist() == ["differs", ""]

    within = pd.DataFrame({"inside": [True, False]})
    assert report.verdicts(within).tolist() == [
        "in the 95 % interval",
        "outside the 95 % interval",
    ]

    ground_truth = pd.DataFrame(
        {
            "x": [1.0, 2.0, 3.0],
            "x_ground_truth": [1.0, 2.5, 9.0],
            "low": [0, 1, 2],
            "high": [4, 3, 4],
        }
    )
    assert report.verdicts(ground_truth).tolist() == [
        "equal to the ground truth",
        "in the 95 % interval",
        "outside the 95 % interval",
    ]


def test_numbers_are_counted_by_verdict_and_rare_ones_named_by_row(tmp_path):
    printed = {"verdict": ["agrees"] * 4 + ["differs", "agrees"]}
    pd.DataFrame(printed).to_csv(tmp_path / "printed_versus_here.csv", index=False)
    assert report.count_verdicts(tmp_path) == [
        "printed: agrees in 5 of 6 rows, differs in 1 of 6 rows (printed_versus_here.csv, line 6)"
    ]
    assert report.count_verdicts(tmp_path / "nowhere") == []

    # Where the pipeline is exact, what misses the ground truth is the model's.
    exact = pd.DataFrame({"pipeline": ["exact", "exact"], "verdict": "misses the ground truth"})
    exact.to_csv(tmp_path / "ground_truth_versus_here.csv", index=False)
    sentence = (
        "ground truth: the interval misses the ground truth in 2 of 2 rows, the pipeline is exact"
    )
    assert sentence in report.count_verdicts(tmp_path)

    inexact = exact.assign(pipeline=["exact", "2 of 3"])
    inexact.to_csv(tmp_path / "ground_truth_versus_here.csv", index=False)
    assert (
        "ground truth: the interval misses the ground truth in 2 of 2 rows"
        in report.count_verdicts(tmp_path)
    )


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ("covers the ground truth", "the interval covers the ground truth in 1 of 1 rows"),
        ("clusters of the ground truth", "all clusters are those of the ground truth in 1 of 1"),
        ("no cluster differs, as in the ground truth", "as in the ground truth, in 1 of 1 rows"),
        ("equal to the ground truth", "equal to the ground truth in 1 of 1 rows"),
    ],
)
def test_a_count_of_a_verdict_reads_as_a_sentence(tmp_path, verdict, words):
    table = pd.DataFrame({"verdict": [verdict]})
    table.to_csv(tmp_path / "ground_truth_versus_here.csv", index=False)
    (sentence,) = report.count_verdicts(tmp_path)
    assert words in sentence


def test_a_page_is_listed_with_what_its_run_counted(project):
    execute(project, "10_a", "# A")
    summary = project / "build" / "notebooks" / "10_a.txt"
    summary.write_text(
        "10_a: 3 s, as the demo profile has it\n"
        "  ground truth: the interval covers the ground truth in 3 of 4 rows\n"
    )

    assert "A ground truth: the interval covers the ground truth in 3 of 4 rows Read" in plain(
        page_of("index")
    )
    assert '<p class="ran">10_a: 3 s, as the demo profile has it</p>' in page_of("10_a")


# ---- the whole folder ----------------------------------------------------------------------------


def test_without_a_notebook_there_is_one_sentence(project, capsys):
    assert report.main([]) == 2

    written = capsys.readouterr()
    assert written.out == ""
    assert written.err.count("\n") == 1
    assert written.err.strip().endswith("holds no executed notebook: make all first")
    assert not (project / "build" / "report").exists()


def test_missing_notebooks_are_named_on_the_page(project):
    execute(project, "10_a", "# A", summary=False)
    nbformat.write(new_notebook(), project / "notebooks" / "60_later.ipynb")
    nbformat.write(new_notebook(), project / "build/notebooks" / "20_b.unfinished.ipynb")

    first = plain(page_of("index"))

    assert "10_a.txt is missing" in first
    assert "60_later has not run in this run: make 60 runs it." in first
    assert "No claims are judged yet: make 60 00 reads what has run." in first
    assert not (project / "build/report/20_b.unfinished.html").exists()


def test_a_command_on_the_page_of_a_named_run_is_about_that_run(project):
    execute(project, "10_a", "# A")
    nbformat.write(new_notebook(), project / "notebooks" / "60_later.ipynb")
    mine = project / "build" / "runs" / "mine"
    mine.mkdir(parents=True)
    (project / "build" / "notebooks").rename(mine / "notebooks")

    first = plain(page_of("index", "mine"))
    assert "make 60 RUN=mine, with the parameters of the run, runs it." in first
    assert "make 60 00 RUN=mine reads what has run." in first


def test_a_damaged_notebook_loses_only_its_own_page(project):
    execute(project, "10_a", "# A")
    (project / "build/notebooks/20_b.ipynb").write_text("{")

    contents, (sentence,) = report.gather(paths.DEFAULT_RUN, project / "site")

    assert [page.name for page in contents.pages] == ["10_a"]
    assert sentence.startswith("20_b:")


def test_an_output_that_cannot_be_cleaned_is_text(project, monkeypatch):
    def fail(source):
        raise IndexError("an empty table")

    monkeypatch.setattr(report_html, "output_html", fail)
    execute(project, "10_a", "# A", html_cell("<b>t"))

    assert '<pre class="out text">&lt;b&gt;t</pre>' in page_of("10_a")


def test_first_page_counts_verdicts_by_study_with_real_models_first(project):
    write_claims(project)
    execute(project, "10_s_one", "# One")

    table = re.search(r'<table class="overview">.*?</table>', page_of("index"), re.DOTALL)[0]

    _, *rows = table.split("<tr>")
    texts = []
    for row in rows:
        cells = re.findall(r"<t[hd].*?</t[hd]>", row)
        texts.append([plain(cell) for cell in cells])
    assert texts == [
        ["Of the paper's claims", "m", "calibrant"],
        ["One", "1 mostly stands", "1 reversed"],
        ["s two", "1 mostly not shown", "not asked"],
    ]
    assert '<td data-label="calibrant" class="control">' in table


# ---- the book, once ------------------------------------------------------------------------------

MARKS = "owned by a reply"
# What would be a directive, a role, a file or a script, if anybody read it as one.
HOSTILE_OUTPUTS = [
    new_output("display_data", data={"text/markdown": f"```{{raw}} html\n<b>{MARKS}</b>\n```"}),
    new_output("display_data", data={"text/html": "<script>x</script>\n\n```{toctree}\n20_b\n```"}),
    new_output("display_data", data={"text/plain": "{raw}`x` ```{include} /etc/passwd\n```"}),
    new_output("display_data", data={"text/latex": f"$${MARKS}$$"}),
    new_output("display_data", data={"image/svg+xml": f"<svg>{MARKS}</svg>"}),
    new_output("display_data", data={"application/javascript": MARKS}),
    new_output("display_data", data={"application/papermill.record/text/plain": MARKS}),
    new_output("stream", name="stdout", text="```{eval-rst}\n.. raw:: html\n\n   <i>x</i>\n```"),
]
for output in HOSTILE_OUTPUTS[:-1]:
    output.metadata = {"mystnb": {"image": {"alt": MARKS}}}

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)


def write_book(root):
    """Three executed notebooks, one of which cannot be made a page, a guide and two modules."""
    for module in ("figures.py", "stats/effects.py"):  # their names: the real ones are read
        file = root / "lib" / "ingroup" / module
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()

    (root / "docs").mkdir()
    guide = "# Guide\n\n100\n% of <x> [a](../notebooks/10_a.ipynb)"
    (root / "docs" / "guide.md").write_text(guide)

    solution = new_code_cell("# Count them.\nanswer", metadata={"tags": ["solution"]})
    solution.outputs = [new_output("execute_result", data={"text/plain": "forty-two"})]
    hostile = new_code_cell("replies", outputs=HOSTILE_OUTPUTS)
    prose = "# A\n\n[b](20_b.ipynb#Limits,-and-more) <b>bold</b> {raw}`x` A $5 bill. $x^2$"
    imports = new_code_cell("from ingroup import figures\nfrom ingroup.stats import effects")
    calling = new_code_cell("table = effects.relative_to_others(table)")
    picture = new_output("display_data", data={"image/png": PIXEL})
    drawing = new_code_cell("fig, axes = figures.facets(table, 3.0)", outputs=[picture])
    named = html_cell("<pre>effects.relative_to_others</pre>")
    execute(root, "10_a", prose, imports, calling, drawing, named, solution, hostile)

    broken = new_output("display_data", data={"image/png": "a"})
    execute(root, "30_c", "# C", new_code_cell("draw()", outputs=[broken]))
    execute(root, "20_b", "# B\n\n## Limits, and more\n\n```text\nx\n```")


def build_book():
    """The report's files by name, with their bytes."""
    folder, (sentence,) = report.build()
    assert "30_c: This page could not be made: Error:" in sentence

    contents = {}
    for file in folder.rglob("*"):
        if file.is_file():
            contents[str(file.relative_to(folder))] = file.read_bytes()
    return contents


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A book of two notebooks, made twice: its files by name."""
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("book")
        for name in ("NOTEBOOKS", "FIGURES", "BUILD"):
            folder = root / name.lower()
            folder.mkdir()
            patch.setattr(paths, name, folder)
        patch.setattr(paths, "ROOT", root)
        write_book(root)
        return [build_book(), build_book()]


def article(site, name):
    text = site[0][name].decode()
    return re.search("<article.*</article>", text, re.DOTALL)[0]


def test_the_same_inputs_give_the_same_bytes(site):
    first, second = site
    assert {"10_a.html", "20_b.html", "docs/guide.html", "index.html"} <= set(first)
    for name, content in first.items():
        assert content == second.get(name), name


def test_a_signature_shows_no_key_and_no_folder_of_this_machine(tmp_path, monkeypatch):
    """Defaults are shown as the code has them: os.environ, and names of folders."""
    monkeypatch.setenv("SOME_KEY", "a-key-of-nobody")
    sources = tmp_path / "sources"
    shutil.copytree(report_pages.TEMPLATES, sources)
    modules = ["ingroup.commands.settings", "ingroup.audit"]
    (sources / "index.md").write_text(book._api("Settings", modules))

    book.make(sources, tmp_path / "site")

    page = plain((tmp_path / "site" / "index.html").read_text("utf8"))
    assert "environment = os.environ" in page
    assert "folder = paths.PUBLISHED" in page
    assert "a-key-of-nobody" not in page
    assert str(settings.ROOT) not in page


def test_no_output_is_read_as_markdown_or_runs(site):
    page = article(site, "10_a.html")
    assert "&lt;script&gt;x&lt;/script&gt;" in page
    for text in ("```{toctree}", "{raw}`x` ```{include} /etc/passwd", "```{eval-rst}"):
        assert text in page

    assert MARKS not in page
    assert "root:" not in page
    assert not re.search(r"<(script|svg|i)\b", page)
    assert "toctree-wrapper" not in page


def test_prose_is_markdown_with_formulas_and_without_html(site):
    page = article(site, "10_a.html")
    assert '<a class="reference internal" href="20_b.html#limits-and-more">' in page
    assert "&lt;b&gt;bold&lt;/b&gt; {raw}" in page
    assert "A $5 bill." in page
    assert "<msup><mi>x</mi><mn>2</mn></msup>" in page
    guide = article(site, "docs/guide.html")
    assert "% of &lt;x&gt;" in guide
    assert 'href="../10_a.html"' in guide


def test_the_policy_allows_only_the_pages_own_scripts(site):
    pages = {}
    for name, content in site[0].items():
        if name.endswith(".html") and b"<head>" in content:
            pages[name] = content.decode()
    assert {"index.html", "10_a.html", "search.html", "docs/guide.html"} <= set(pages)

    for name, page in pages.items():
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
        rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
        expected = {"'self'", "file:"}
        for script in re.findall(r"<script(?: [a-z-]+=.false.)?>(.*?)</script>", page, re.DOTALL):
            digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
            expected.add(f"'sha256-{digest}'")
        assert set(rules.pop("script-src").split()) == expected, name
        assert rules.pop("default-src") == "'none'"
        assert rules.pop("base-uri") == "'none'"

        other_sources = set(" ".join(rules.values()).split())
        assert not {"*", "http:", "https:", "'unsafe-eval'"} & other_sources
        for tag in re.findall(r"<(?:script|link|img)\b[^>]*>", page):
            assert "//" not in tag, name


def test_solutions_are_folded_with_what_they_print(site):
    page = article(site, "10_a.html")
    pattern = r"<details[^>]*>(?:(?!</details>).)*Solution.*?</details>"
    folded = re.search(pattern, page, re.DOTALL)[0]
    assert "# Count them." in plain(folded)
    assert "forty-two" in folded
    assert plain(page).count("forty-two") == 1


def test_a_failure_of_sphinx_fails_the_book(tmp_path):
    (tmp_path / "sources").mkdir()

    with pytest.raises(RuntimeError, match="Sphinx failed"):
        book.make(tmp_path / "sources", tmp_path / "site")


# ---- from code to its functions ------------------------------------------------------------------

TO_A_FUNCTION = re.compile(r'<a class="sphinx-codeautolink-a" href="([^"]*)"[^>]*>(.*?)</a>')


def test_a_job_leads_to_its_function(site):
    page = article(site, "10_a.html")
    addresses = {plain(text): address for address, text in TO_A_FUNCTION.findall(page)}
    address = addresses["effects . relative_to_others"]
    assert address == "api/statistics.html#ingroup.stats.effects.relative_to_others"
    for address in addresses.values():
        file, _, anchor = address.partition("#")
        assert f'id="{anchor}"' in site[0][file].decode()


def test_the_cell_of_a_figure_leads_to_the_function_that_draws_it(site):
    (cell,) = [
        cell for cell in article(site, "10_a.html").split('<div class="cell ') if "<img" in cell
    ]
    (address,) = [address for address, _ in TO_A_FUNCTION.findall(cell)]
    assert address == "api/tables_and_figures.html#ingroup.figures.facets"


def test_what_a_cell_shows_leads_to_no_function(site):
    assert "<pre>effects.relative_to_others</pre>" in article(site, "10_a.html")


def imported(cell):
    """The modules of ours whose functions a cell imports."""
    modules = set()
    for node in ast.walk(ast.parse(cell.source)):
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "ingroup":
            package = import_module(node.module)
            for alias in node.names:
                thing = getattr(package, alias.name, None)
                if thing is None:
                    thing = import_module(f"{node.module}.{alias.name}")
                if inspect.isfunction(thing) or inspect.ismodule(thing):
                    modules.add(inspect.getmodule(thing).__name__)
    return modules


def test_every_module_that_is_to_have_a_page_exists():
    """A module that was renamed would lose its page without a word."""
    for names in book.MODULES.values():
        for name in names:
            assert list((paths.ROOT / "lib/ingroup").glob(f"{name}.py")), name


@pytest.mark.parametrize("name", settings.notebooks())
def test_every_function_of_a_notebook_has_a_page(name):
    documented = set().union(*book.modules().values())
    notebook = nbformat.read(paths.NOTEBOOKS / f"{name}.ipynb", as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert imported(cell) <= documented


# ---- links ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "expected", "is_lost"),
    [
        ("20_b.ipynb", "[to](/20_b.ipynb)", False),
        ("20_b.ipynb#Limits,-and-more", "[to](/20_b.ipynb#limits-and-more)", False),
        ("#Twice", "[to](#twice)", False),
        ("https://example.org/x", "[to](https://example.org/x)", False),
        ("../docs/guide.md", "[to](/docs/guide.md)", False),
        ("../lib/a.py", "[to](/api/all.md#a-b)", False),
        ("60_later.ipynb", "to", False),  # has not run
        ("../notebooks/60_later.ipynb", "to", False),  # a file, and no part of the book
        ("70_none.ipynb", "to", True),
        ("../data/README.md", "to", True),  # not there
        ("../../etc/passwd", "to", True),
    ],
)
def test_links_lead_to_pages_and_lost_ones_are_reported(project, address, expected, is_lost):
    nbformat.write(new_notebook(), project / "notebooks" / "60_later.ipynb")
    sources = {
        project / "notebooks/20_b.ipynb": "20_b.ipynb",
        project / "docs/guide.md": "docs/guide.md",
        project / "lib/a.py": "api/all.md#a.b",
    }

    text, lost = report_pages.relink(f"A [to]({address}).", paths.NOTEBOOKS, sources)

    assert text == f"A {expected}."
    assert lost == [address] * is_lost


def test_links_of_outputs_lead_to_pages(project):
    html = '<a href="20_b.ipynb#Limits,-and-more">b</a> <a href="javascript:x">x</a>'
    execute(project, "10_a", "# A", html_cell(html))
    execute(project, "20_b", "# B")

    assert '<a href="20_b.html#limits-and-more">b</a> <a>x</a>' in page_of("10_a")


def test_an_output_has_no_link_to_a_notebook_that_did_not_run(project):
    html = 'Read <a href="20_b.ipynb">20_b</a> and <a href="10_a.ipynb">this</a>.'
    execute(project, "10_a", "# A", html_cell(html))

    assert 'Read 20_b and <a href="10_a.html">this</a>.' in page_of("10_a")


def test_a_link_leaves_its_text():
    rendered = '<p title="t"><a href="x" title="t">one</a> href="x"</p>'
    assert report_html.without_links(rendered) == '<p title="t">one href="x"</p>'


# ---- prose and outputs ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\delta", "<mi>&#x003B4;</mi>"),
        (r"\sqrt{N-1}", "<msqrt>"),
        (r"\frac{1}{c}", "<mfrac>"),
        (r"\nosuchthing{x}", r"<code>$\nosuchthing{x}$</code>"),
        (r"a & b < c", "<code>$a &amp; b &lt; c$</code>"),
        (r"\left(", r"<code>$\left($</code>"),
    ],
)
def test_formulas_are_mathml_or_stay_readable(latex, expected):
    assert expected in report_html.formula(latex)


def test_a_formula_keeps_the_point_behind_it():
    rendered = report_html.prose_html("The gap $x$. A $5 bill.")
    assert re.search(r"<mi>x</mi></mrow></math>\.</span> A \$5 bill\.", rendered)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("## F\n\n**Figure 2.** Dark is high. White not.", "Figure 2. Dark is high. White not."),
        ("Grey: spread.\n\n**Two runs, each whole** (Table 1).", "Two runs, each whole (Table 1)."),
        ("## Figures\n\nAnd some words.", "Figures"),
        ("Only words, no caption.", "Only words, no caption."),
    ],
)
def test_a_picture_is_described_by_what_stands_above_it(source, expected):
    assert report_html.describe(report_html.prose_html(source)) == expected


def test_streams_show_what_a_terminal_would(project):
    cell = new_code_cell("x")
    cell.outputs = [
        new_output("stream", name="stdout", text="a\x1b[31mb\x1b[0m\n"),
        new_output("stream", name="stdout", text="1 %\r99 %\r100 %\nend\u202e"),
        new_output("stream", name="stderr", text="\x1b"),
        new_output("stream", name="stderr", text="\n"),
        new_output("stream", name="stdout", text="\n"),
    ]
    execute(project, "10_a", cell)

    assert re.findall(r"<pre.*?</pre>", page_of("10_a"), re.S) == [
        '<pre class="out text">ab\n100 %\nend[U+202E]</pre>',
        "<pre>\u241b</pre>",
    ]


def test_tables_of_pandas_lose_their_style_and_keep_their_spans():
    index = pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])
    frame = pd.DataFrame({"x": [1.5, 2.0]}, index)
    for source in (frame._repr_html_(), frame.style.to_html()):
        assert "<style" in source

        cleaned = report_html.output_html(source)

        assert "style" not in cleaned
        assert cleaned.count('<div class="scroll"><table>') == 1
        assert cleaned.count("</table></div>") == 1
        assert 'rowspan="2"' in cleaned
        assert re.search(r'<td class="n">1\.5', cleaned)


def table_of(frame):
    """The cells of a table as the report shows it, row by row."""
    rows = re.findall(r"<tr.*?</tr>", report_html.output_html(frame.to_html()), re.S)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


def test_tables_are_written_as_people_write_them():
    """Three digits, no numbering of rows, no NaN, True or underscore; printed digits stay."""
    frame = pd.DataFrame(
        {
            "model": ["calibrant", "smollm2-135m-instruct"],
            "group_of": ["african_american", "x_1"],
            "here": ["0.0242718446", "1234.5678"],
            "p": ["1.7041e-21", None],
            "stands": [True, False],
            "printed": ["79.250", "1.0000"],
            "n": [10753, 5],
        }
    )
    assert table_of(frame) == [
        ["model", "group of", "here", "p", "stands", "printed", "n"],
        ["calibrant", "african american", "0.0243", "1.7e-21", "yes", "79.250", "10753"],
        ["SmolLM2-135M", "x 1", "1,235", "\u2013", "no", "1.0000", "5"],
    ]

    named = frame[["n"]].set_axis([3, 1])  # such an index is no numbering
    assert table_of(named) == [["", "n"], ["3", "10753"], ["1", "5"]]

    replies = pd.DataFrame({"reply": ["None", "0.123456"]})
    assert table_of(replies) == [["reply"], ["None"], ["0.123456"]]


def test_the_name_of_a_model_keeps_its_underscores():
    named = pd.DataFrame({"model": ["my_model", "gemma-3-270m"], "group": ["my_model", "None"]})
    assert table_of(named)[1:] == [["my_model", "my model"], ["Gemma-3-270M", "\u2013"]]


def test_no_p_is_shown_as_zero_and_a_link_stays_one():
    tests = pd.DataFrame(
        {"p_holm": ["0.0000", "0.0012"], "p": ["0.000", "1.0"], "points": ["0.00", "0.00"]}
    )
    _, *rows = table_of(tests)
    assert rows == [["&lt;0.0001", "&lt;0.001", "0.00"], ["0.0012", "1.0", "0.00"]]

    link = '<a href="10_a.html">some_page</a>'
    linked = pd.DataFrame({"page": [link]}).to_html(escape=False)
    assert link in report_html.output_html(linked)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (99.96, "100"),
        (100.4, "100"),
        (-0.00012345, "-1.2e-04"),
        (0.001, "0.001"),
        (1234567.8, "1,234,568"),
        (12.345, "12.3"),
    ],
)
def test_a_number_has_three_digits(number, text):
    assert report_html.round_for_reader(number) == text


class Tags(HTMLParser):
    """The tags of a source, and its attributes with the beginning of their values."""

    def __init__(self, source):
        super().__init__()
        self.tags = set()
        self.attributes = set()
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for name, value in attrs:
            beginning = (value or "")[:11].lower()
            self.attributes.add((name, beginning))


HARMFUL = {"script", "img", "svg", "style", "math", "iframe", "template", "title", "noscript"}
PIECES = [
    *("<", ">", "</", '"', "'", "=", " ", "\n", "&lt;", "&#60;", "--", "!", "td", "table", "a"),
    *("href", "src", "onerror", "javascript:", "x", "/", "![CDATA[", "mtext", "xlink:href", "\0"),
    *sorted(HARMFUL),
]


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_no_text_becomes_a_tag_or_attribute_that_does_something(text):
    cell = f"<table><tr><td>{text}</td></tr></table>"
    # On a phone, the head of a column is an attribute of its cells.
    heads = f"<thead><tr><th>{text}</th><th>{'x' * 40}</th></tr></thead>"
    head = f"<table>{heads}<tr><td>1</td><td>2</td></tr></table>"
    for source in (text, f"<{text}>", cell, head):
        cleaned = Tags(report_html.output_html(source))
        assert not cleaned.tags & HARMFUL
        names = {name for name, _ in cleaned.attributes}
        of_report = {"role", "data-label"}
        assert names <= {"class", "colspan", "rowspan", "scope", "href"} | of_report
        assert ("href", "javascript:") not in cleaned.attributes


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (["bias", "low", "high", "p", "n", "finding", "more"], "bias low high finding p n more"),
        (["bias", "low", "high", "p", "finding"], "bias low high finding p"),
        (["bias", "low", "high", "finding", "p"], "bias low high finding p"),
        (["finding", "low", "high"], "finding low high"),
        (["bias", "p", "finding"], "bias p finding"),  # without an interval
    ],
)
def test_a_finding_stands_next_to_the_interval_of_its_estimate(columns, shown):
    """Also in a row below a cell that spans rows, which is repeated for a phone."""
    groups = pd.MultiIndex.from_tuples([("m", "a"), ("m", "b")], names=["model", "group"])
    rows = [columns, [name.upper() for name in columns]]
    frame = pd.DataFrame(rows, index=groups, columns=columns)

    html = report_html.output_html(frame.to_html())

    heads, _, first, second = re.findall(r"<tr.*?</tr>", html, re.S)
    assert plain(heads) == shown
    assert plain(first) == f"m a {shown}"
    assert plain(second) == f"m b {shown.upper()}"


# ---- the word on a paper -------------------------------------------------------------------------


def test_the_first_page_has_a_word_on_each_paper_for_each_real_model(project):
    """A row for each paper, above the counts and with its rule; no calibrant is in it."""
    write_claims(project)
    execute(project, "10_s_one", "# One")
    page = page_of("index")
    above, _, rest = page.partition('<table class="papers">')
    table, _, below = rest.partition("</table>")
    rows = [re.findall(r"<t[hd].*?</t[hd]>", row) for row in table.split("<tr>")[1:]]
    assert [[plain(cell) for cell in row] for row in rows] == [
        ["Does the paper hold for", "m"],
        ["One", "depends on the reading"],
        ["s two", "mostly not shown"],
    ]
    assert '<td data-label="m"><span class="verdict depends">' in table
    assert '<td data-label="m"><span class="verdict mostly-not-shown">' in table
    assert 'class="overview"' not in above
    assert "A path is one way through the choices that a paper leaves open" in plain(below)
    assert f"more than {multiverse.BY_CHANCE:g} % find the opposite" in plain(below)


def test_the_first_page_says_what_each_paper_claims_and_leads_to_its_claims(project):
    """The claims of data/families.yaml; a study without one has none."""
    folder = write_claims(project)
    table = pd.read_csv(folder / "claims.csv")
    table["study"] = table.study.replace("s_one", "giebench")
    table.to_csv(folder / "claims.csv", index=False)
    execute(project, "30_giebench", "# GIEBench")

    page = page_of("index")

    table, _, rest = page.partition('<table class="papers">')[2].partition("</table>")
    assert "</strong>: more right verdicts<q>" in rest
    assert "</strong>: above" in rest  # of the study without words
    (claim,) = re.findall(r'<a class="share" href="(.*?)">(.*?)</a>', table)
    assert claim[0] == "#giebench"
    assert unescape(claim[1]) == families()["giebench"].claim
    assert "### GIEBench" in rest


def test_a_report_of_calibrants_alone_has_no_word_on_a_paper(project):
    folder = write_claims(project)
    table = pd.read_csv(folder / "claims.csv")
    table[table.model == "calibrant"].to_csv(folder / "claims.csv", index=False)
    execute(project, "10_s_one", "# One")
    page = page_of("index")
    assert 'class="papers"' not in page
    assert 'class="overview"' in page


# ---- links to tables and to the glossary ---------------------------------------------------------


def test_a_search_leaves_out_the_changelog(project):
    """Sphinx reads this from the head of a page; other guides are found."""
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        (project / name).write_text("# Heading\n")
    execute(project, "10_s", "# S")
    page_of("10_s")

    sources = paths.BUILD / "sources"
    assert (sources / "CHANGELOG.md").read_text() == "---\nnosearch: true\n---\n# Heading\n"
    assert (sources / "CONTRIBUTING.md").read_text() == "# Heading\n"


def test_the_name_of_a_table_leads_to_the_cell_that_makes_it(project):
    """Of the study of the last notebook before it; to the file where no cell names the table."""
    folder = project / "build" / "tables"
    for study, name in [("s", "x"), ("s", "y"), ("other", "x"), ("other", "mass")]:
        (folder / study).mkdir(parents=True, exist_ok=True)
        (folder / study / f"{name}.csv").write_text("a\n1\n")
    reading = new_code_cell('out.read("x")')
    writing = new_code_cell('out.write(t, "x")')
    execute(project, "10_s", "# S", reading, writing, new_code_cell('show("x")'))
    # A function of ingroup.notebook writes the table of its name.
    function = new_code_cell("notebook.mass(asked, out)")
    execute(project, "20_other", "# Other", new_code_cell('out.write(t, "x")'), function)
    (project / "docs").mkdir()
    guide = (
        "# Guide\n\n`x.csv`\n\n## One\n\n"
        "[s](../notebooks/10_s.ipynb#S): `x.csv`, `y.csv`, `z.csv`\n"
        "and [other](../notebooks/20_other.ipynb), `x.csv`, `mass.csv`\n\n## Two\n\n`x.csv`\n"
    )
    (project / "docs" / "guide.md").write_text(guide)

    page = page_of("10_s")
    text = (paths.BUILD / "sources" / "docs" / "guide.md").read_text()

    assert re.findall(r"`\w+\.csv`(?:\]\([^)]*\))?", text) == [
        "`x.csv`",
        "`x.csv`](book:../10_s.html#csv-x)",
        "`y.csv`](copy:../tables/s/y.csv)",
        "`z.csv`",
        "`x.csv`](book:../20_other.html#csv-x)",
        "`mass.csv`](book:../20_other.html#csv-mass)",
        "`x.csv`",
    ]
    assert 'id="csv-mass"' in page_of("20_other")
    takes = re.findall(r'<p class="take">.*?</p>', page)
    assert [' id="csv-x"' in take for take in takes] == [False, True, False]


def test_a_link_to_the_glossary_leads_to_the_page_that_shows_it(project, monkeypatch):
    """Guides and notebooks link to the file, which is no page of the book."""
    monkeypatch.setattr(paths, "DATA", project / "data")
    (project / "data").mkdir()
    (project / "data" / "glossary.csv").write_text("word,meaning,where\n")
    execute(project, "10_a", "# A\n\nThe [glossary](../data/glossary.csv).")
    assert "The glossary." in page_of("10_a")
    execute(project, "00_map", "# Map\n\n## Words")
    assert "The [glossary](/00_map.ipynb#words)." in page_of("10_a")
