"""Numbered tables and appendices by a real LaTeX, and by pandoc for Word: ``make test-latex``.

Plain pytest passes this file by (its name does not begin with test_), for not every machine has
LaTeX. Where there is none, each test says so and nothing fails. With PAGES=<folder> every document
is kept there, to be looked at.
"""

import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pandas as pd
import pytest
from bs4 import BeautifulSoup

import made_up_run
from ingroup import latex, paths
from ingroup.appendix.run import Run
from ingroup.commands import appendix
from printed_tables import of_the_papers

PDFLATEX = shutil.which("pdflatex")
LEAST_TYPE = 7.0  # points, after a table was scaled down

# The page of ACL's class, which three of the papers use: A4, two columns of 7.7 cm, 0.6 cm between
# them. The text of the fourth does not name its class; its tables are set on the same page. As the
# class does, this loads xcolor before the tables' packages.
MEASURES = r"""\usepackage{xcolor}
\usepackage[a4paper,margin=2.5cm,heightrounded]{geometry}
\usepackage[font=small]{caption}
\setlength{\columnsep}{0.6cm}
\flushbottom\twocolumn\sloppy
"""

# The log says how wide each table is, and its type.
WATCH = r"""\makeatletter
\let\original\resizebox
\renewcommand{\resizebox}[3]{\setbox0\hbox{#3}%
  \typeout{natural \the\wd0, room \the\linewidth, type \f@size}\original{#1}{#2}{#3}}
\makeatother
\begin{document}
"""

GUIDE = (paths.ROOT / "docs" / "for_your_paper.md").read_text("utf8")
PAPERS = re.findall(r"^```latex\n(.*?)^```$", GUIDE, re.M | re.DOTALL)  # ACL's page, one column
PREAMBLE = PAPERS[0].partition("\\begin{document}")[0]


@pytest.fixture
def page(tmp_path):
    """A function that compiles tables, each on a page of its own, and returns the log."""
    if PDFLATEX is None:
        pytest.skip("no LaTeX here: pdflatex is not on the path")

    def compiled(text, name):
        clear = re.sub(r"(\\end\{table\*?\})", r"\1\\clearpage", text)
        document = f"{PREAMBLE}\\begin{{document}}\n{clear}\\end{{document}}\n"
        return compile_text(pages(tmp_path), document, name)

    return compiled


def pages(folder):
    """The folder of the documents that a test writes."""
    kept = Path(os.environ.get("PAGES", folder))
    kept.mkdir(parents=True, exist_ok=True)
    return kept


def compile_text(folder, document, name):
    """Compile a document for ACL's class on a page of its measures, and return the log."""
    measured = document.replace("\\usepackage[review]{acl}\n", MEASURES)
    watched = measured.replace("\\begin{document}\n", WATCH)
    (folder / f"{name}.tex").write_text(watched, "utf8")
    return compile_file(folder, name)


def compile_file(folder, name):
    """Compile a document of a folder, and return the log; it fails where LaTeX has an error."""
    # What a model wrote may read and write no file.
    barred = os.environ | {"openin_any": "p", "openout_any": "p", "max_print_line": "1000"}
    command = [PDFLATEX, "-interaction=nonstopmode", "-no-shell-escape", f"{name}.tex"]
    subprocess.run(command, cwd=folder, env=barred, capture_output=True, check=False)
    # LaTeX sees only the second time that two tables have one label.
    done = subprocess.run(command, cwd=folder, env=barred, capture_output=True, check=False)
    log = (folder / f"{name}.log").read_text("latin-1")
    assert done.returncode == 0, re.findall(r"^!.*(?:\n.*){3}", log, re.M)[:3]
    return log


def problems(log):
    """Labels of two tables, overfull boxes, tables higher than the page, and small type."""
    sentences = re.findall(r"Label `.*' multiply defined", log)
    sentences += overfull(log)
    sentences += re.findall(r"Float too large for page by [\d.]+pt", log)

    watched = re.findall(r"^natural ([\d.]+)pt, room ([\d.]+)pt, type ([\d.]+)", log, re.M)
    for natural, room, size in watched:
        scale = min(1, float(room) / float(natural))
        type_size = scale * float(size)
        if type_size < LEAST_TYPE:
            sentences.append(f"type of {type_size:.1f} points, scaled from {natural} to {room}")

    return sentences


def overfull(log):
    """Boxes that stand out."""
    return re.findall(r"^Overfull \\[hv]box .*$", log, re.M)


PRINTED = list(of_the_papers())


@pytest.mark.skipif(PDFLATEX is None, reason="no LaTeX here: pdflatex is not on the path")
@pytest.mark.parametrize("paper", PAPERS, ids=["acl", "article"])
def test_the_guides_document_has_its_figures_and_tables_and_no_overfull_box(paper, tmp_path):
    """With committed figures and the papers' own numbers, so without a run."""
    folder = pages(tmp_path)
    for name in re.findall(r"\\includegraphics\{paper/(.*)\}", paper):
        copy = folder / "paper" / f"{name}.pdf"
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(paths.FIGURES / f"{name}.pdf", copy)

    for study, name, printed in PRINTED:
        file = folder / "tables" / study / f"{name}.tex"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(latex.tables(printed, study, name), "utf8")

    log = compile_text(folder, paper, "paper")

    assert not problems(log)
    assert log.count(".pdf>") >= paper.count("includegraphics")
    assert len(re.findall(r"^natural ", log, re.M)) >= 3


def files():
    run = paths.run_folder(os.environ.get("RUN", paths.DEFAULT_RUN))
    return sorted(run.glob("tables/*/*.tex"))


@pytest.mark.parametrize("file", files(), ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_each_table_of_the_run_fits_on_the_page(page, file):
    log = page(file.read_text("utf8"), f"{file.parent.name}-{file.stem}")
    assert not problems(log)


def test_a_run_has_tables():
    if not files():
        pytest.skip("no run has written tables: make all first, or name one with RUN=<name>")
    studies = {file.parent.name for file in files()}
    assert studies >= {"empathy_gap", "stereomap"}


@pytest.mark.parametrize("table", PRINTED, ids=lambda table: f"{table[0]}-{table[1]}")
def test_the_papers_own_numbers_fit_on_the_page(page, table):
    study, name, printed = table
    log = page(latex.tables(printed, study, name), f"printed-{study}-{name}")
    assert not problems(log)


HOSTILE = [
    r"x\input{secret}",
    r"\end{tabular} $ # % & _ ^ ~ < > | \\ x",
    "[2cm] begins a row",
    "* begins a row",
    "-- --- ?` !` `` '' ,, –- ‘‘",
    "a" * 200,
    "\x1b[m \u202e \u4e2d\u6587 \U0001f600",
    latex.LETTERS + latex.SIGNS,
]


def test_hostile_names_and_texts_are_printed_and_not_executed(page, tmp_path):
    (tmp_path / "secret.tex").write_text("secret")
    models = ["my_model_v2", *HOSTILE]
    names = pd.DataFrame({"model": models, "prompt": "COT", "category": "Age", "accuracy": 50})
    words = pd.DataFrame({"model": "m", "of": "cluster", "setting": "MMR 0.7", "keyword": HOSTILE})
    words["name"] = range(len(words))
    text = latex.tables(names, "giebench", "table01_02_06_accuracy")
    text += latex.tables(words, "stereomap", "table03_10_reason_keywords")

    log = page(text, "hostile")

    assert "secret.tex" not in log
    assert not re.findall(r"Missing character.*", log)


def test_words_without_a_blank_stay_in_their_column(page):
    rows = {"model": "m", "group": "Men", "text": ["a" * 400, "W" * 400]}
    text = latex.tables(pd.DataFrame(rows), "stereomap", "table11_reasons")
    assert not problems(page(text, "words"))


def test_a_label_used_by_two_tables_is_reported(page):
    table = "\\begin{table}\\caption{a}\\label{tab:one}\\end{table}\n"
    log = page(table + table, "labels")
    assert problems(log) == ["Label `tab:one' multiply defined"]

    with_another_label = table.replace("tab:one", "tab:other")
    log = page(table + with_another_label, "labels")
    assert problems(log) == []


def test_a_box_beyond_the_page_is_reported(page):
    wide = "\\begin{table}\\hbox to 7cm{\\rule{9cm}{1pt}}\\end{table}\n"
    assert "Overfull" in "\n".join(problems(page(wide, "wide")))

    high = "\\begin{table}\\rule{1pt}{26cm}\\end{table}\n"
    assert "too large" in "\n".join(problems(page(high, "high")))

    tiny = "\\begin{table}\\resizebox{\\linewidth}{!}{\\rule{40cm}{1pt}}\\end{table}\n"
    assert "scaled" in "\n".join(problems(page(tiny, "tiny")))


def check_appendix(folder, target):
    """Compile a copy of an appendix: no error, no large box, no sign or label missing."""
    copy = shutil.copytree(folder, Path(os.environ.get("PAGES", target)) / "appendix")
    log = compile_file(copy, "appendix")
    assert not overfull(log)
    assert not re.findall(r"Missing character.*|.*multiply defined.*|.*undefined reference.*", log)
    assert (copy / "appendix.pdf").stat().st_size > 10_000
    return log


@pytest.mark.skipif(PDFLATEX is None, reason="no LaTeX here: pdflatex is not on the path")
def test_the_appendix_of_a_hostile_run_compiles(tmp_path, monkeypatch):
    made_up_run.place(monkeypatch, tmp_path)
    made_up_run.write()
    folder = appendix.build(made_up_run.NAME)
    (folder / "secret.tex").write_text("secret")
    log = check_appendix(folder, tmp_path / "pages")
    assert "secret.tex" not in log


@pytest.mark.skipif(PDFLATEX is None, reason="no LaTeX here: pdflatex is not on the path")
def test_the_appendix_of_the_run_compiles(tmp_path, monkeypatch):
    run = os.environ.get("RUN", paths.DEFAULT_RUN)
    if not list((paths.run_folder(run) / "notebooks").glob("[0-9]*.ipynb")):
        pytest.skip("no run is there: make all first, or name one with RUN=<name>")
    document = appendix.contents(Run(run))
    assert "cannot be written" not in str(document.blocks)
    check_appendix(appendix.build(run), tmp_path)


@pytest.mark.skipif(appendix.pandoc() is None, reason="no pandoc here: make word adds it")
def test_a_hostile_run_is_written_as_a_word_document(tmp_path, monkeypatch):
    """Each table and figure of the page is in the file, and so is what a model is called."""
    made_up_run.place(monkeypatch, tmp_path)
    made_up_run.write()
    folder = appendix.build(made_up_run.NAME)
    page = BeautifulSoup((folder / "appendix.html").read_text("utf8"), "html.parser")

    with zipfile.ZipFile(folder / "appendix.docx") as file:
        written = BeautifulSoup(file.read("word/document.xml"), "xml")
        pictures = [name for name in file.namelist() if name.startswith("word/media/")]

    tables = page.find_all("table")
    assert len(tables) > 5
    assert len(written.find_all("tbl")) == len(tables)

    images = {image["src"] for image in page.find_all("img")}
    assert len(images) > 0
    assert len(pictures) == len(images)

    title = page.find("h1").get_text()
    assert written.find("body").get_text().count(title) == 1
    assert "Only give the scale number. No explanation is needed." in written.get_text()
