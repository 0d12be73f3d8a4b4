"""The appendix of a run: what is in it, what is missing, and that no text in it is obeyed."""

import dataclasses
import re
import shutil
import sys
import types

import nbformat
import pandas as pd
import pytest
import yaml
from bs4 import BeautifulSoup

import made_up_run
import toy
from ingroup import latex, paths
from ingroup.appendix import asked, forms, results
from ingroup.appendix import documents as writing
from ingroup.appendix.content import Document, Heading, LatexFloats, Paragraph, Prose, Table
from ingroup.appendix.run import Run, Stored
from ingroup.commands import appendix, cli, settings
from ingroup.design import Block as Trials
from ingroup.inference import Reply
from ingroup.inference.store import read_manifest


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """A project in which nothing ran."""
    made_up_run.place(monkeypatch, tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """The appendix of the made-up run: its folder, its LaTeX and its HTML."""
    with pytest.MonkeyPatch.context() as patch:
        made_up_run.place(patch, tmp_path_factory.mktemp("project"))
        made_up_run.write()
        folder = appendix.build(made_up_run.NAME)
    tex = (folder / "appendix.tex").read_text("utf8")
    page = (folder / "appendix.html").read_text("utf8")
    return folder, tex, page


def words(page):
    return " ".join(BeautifulSoup(page, "html.parser").get_text(" ").split())


def plain(tex):
    """LaTeX without marks that only break words, on one line."""
    return " ".join(tex.replace(r"\hspace{0pt}", "").split())


# ---- what is in it -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "transformers 5.23.0, float32",
        "909b39b14eac455a",
        "18408f7e336f5a70",
        "text, temperature 0.7, top-p 1.0, at most 128 tokens",
        "43,524",
        "1.25",
        "2026-11-26 02:05",
        "MODELS=calibrant",
        "MODELS = calibrant",
        "Only give the scale number. No explanation is needed.",
        "could not have been significant, whatever the answers",
        "1.78 (1.6 to 1.98)",
        "A rating is no feeling (50",
        "Holm",
        "Creators of what was used are cited",
        "To be answered by the authors.",
        "The Biased Samaritan: LLM biases in Perceived Kindness",
        "Yu Hou, Hal Daumé III and Rachel Rudinger",
        "Demonstration: trained by this project",
    ],
)
def test_both_documents_have_a_value(documents, text):
    _, tex, page = documents
    escaped = " ".join(writing.escape_for_latex(text).split())
    assert escaped in plain(tex)
    assert text in words(page)


def test_a_table_stands_in_the_layout_of_the_paper(documents):
    _, tex, page = documents
    assert "$[-0.678, 1.294]$" in tex
    assert "{table*}" not in tex

    soup = BeautifulSoup(page, "html.parser")
    cells = soup.find_all("td", class_="teal20")
    assert [cell.get_text() for cell in cells] == ["2.54", "[−0.678,1.294]"]
    header = cells[0].find_parent("table").find_all("th")
    assert [head.get_text() for head in header[:2]] == ["Category", "Prompt Setting"]


def test_a_figure_has_its_caption_and_lies_beside_the_documents(documents):
    folder, tex, page = documents
    assert (folder / "figures" / "empathy_gap" / "figure2.png").is_file()
    assert r"\includegraphics[width=4.0in]{figures/empathy_gap/figure2}" in tex
    assert r"\textbf{The paper’s Figure 2.} Dark is \emph{high}, as $\delta$ in" in tex
    assert 'src="figures/empathy_gap/figure2.png"' in page


def test_limits_end_at_the_next_heading_and_links_are_text(documents):
    _, tex, page = documents
    assert "Not a limit." not in tex + page
    assert "Few events." in tex
    assert "x.md" not in tex + page


def test_the_appendix_counts_the_prompts_of_a_model(documents):
    _, _, page = documents
    table = BeautifulSoup(page, "html.parser").find(string="Seeds").find_parent("table")
    cells = [cell.get_text() for cell in table.find_all("td")]
    assert cells[:4] == [
        "calibrant",
        "432",
        "text, temperature 0.7, top-p 1.0, at most 128 tokens",
        "41",
    ]


def prompts_of(page):
    """The texts of each example prompt, by its title."""
    found = {}
    soup = BeautifulSoup(page, "html.parser")
    for title in soup.find_all("strong", string=re.compile("^An example prompt")):
        texts = []
        for element in title.parent.find_next_siblings():
            if element.find("strong"):
                break
            if element.name == "pre":
                texts.append(element.get_text())
        found[title.get_text()] = texts
    return found


def test_one_example_prompt_is_about_an_in_group_pair(documents):
    """The first prompt of a wording is about the control alone."""
    _, _, page = documents
    about = "(P0,S0,T0 Religion; answered as free text)"
    prompts = prompts_of(page)
    assert list(prompts) == [
        f"An example prompt {about}",
        f"An example prompt with an in-group pair {about}",
    ]

    persona, task = prompts[f"An example prompt with an in-group pair {about}"]
    perceiver = re.match(r"You are (a \w+)\.", persona)[1]
    assert perceiver != "a person"
    assert f"narrative, {perceiver} describes" in task


def test_a_design_without_two_roles_has_no_in_group_pair():
    def pair(**factors):
        return asked.in_group_pair(Trials({}, factors, None, ""))

    people = ("a person", "a Hindu", "a Jew")
    assert pair(event=(1, 2), teller=people, told=people) == 4
    assert pair(perceiver=people, experiencer=people, event=(1, 2)) == 8
    assert pair(perceiver=people, experiencer=people[:2]) is None
    assert pair(perceiver=people[:1], experiencer=people[:1]) is None


def test_no_two_captions_are_alike(empty):
    """A cell that draws two figures has one text, which stands below the first of them."""
    file = made_up_run.write() / "notebooks" / f"{made_up_run.NOTEBOOK}.ipynb"
    source = file.read_text("utf8")
    written = source.replace(r"draw(), \"figure2\"", r"draw(), f\"figure{number}\"")
    assert written != source
    file.write_text(written)
    figures = paths.figure_folder(made_up_run.NAME) / "empathy_gap"
    shutil.copy(figures / "figure2.png", figures / "figure3.png")

    page = (appendix.build(made_up_run.NAME) / "appendix.html").read_text("utf8")
    soup = BeautifulSoup(page, "html.parser")
    captions = [caption.get_text() for caption in soup.select(".caption, figcaption")]
    assert len(captions) > 10
    assert sorted(set(captions)) == sorted(captions)
    _, second = soup.find_all("figcaption")
    assert second.get_text().strip() == (
        "The empathy gap, the paper’s Figure 3. The text below “the paper’s Figure 2” above holds "
        "for it, too."
    )


def test_a_figure_of_a_model_is_called_as_the_others_are():
    assert results.figure_in_sentence("figure6_net-1", "/nets/net-1") == "the paper’s Figure 6"
    assert results.figure_in_sentence("figure8_old_age") == "the paper’s Figure 8 (old age)"
    assert results.figure_in_sentence("gap_overview") == "gap overview"
    assert results.figure_in_sentence("group_profile_net-1", "org/net-1") == "group profile"


def test_checklists_name_the_cards_and_the_seconds_of_this_run(documents):
    _, _, page = documents
    text = words(page)
    assert "Cards describe prompts, corpora and calibrants. (from data/README.md)" in text
    assert "The notebooks took 38 seconds. These include the time of asking for" in text
    assert "Stores lie below build/responses, each in the folder of its study." in text


def test_the_same_run_gives_the_same_bytes(empty, monkeypatch):
    monkeypatch.setattr(appendix, "pandoc", lambda: None)  # whether this machine has one or not
    made_up_run.write()

    def build():
        folder = appendix.build(made_up_run.NAME)
        return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}

    first = build()
    assert sorted(first) == ["appendix.html", "appendix.tex"]
    assert build() == first


# ---- hostile texts -------------------------------------------------------------------------------


def test_no_text_of_a_run_is_a_command(documents):
    _, tex, page = documents
    assert r"\input{" not in tex.replace(r"\usepackage[utf8]{inputenc}", "")
    assert tex.count(r"\end{document}") == 1
    assert tex.count(r"\begin{longtable}") == tex.count(r"\end{longtable}")
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    for control in ("\x1b", "\u202e"):
        assert control not in tex + page


def test_a_text_is_unchanged_by_latex():
    for text in made_up_run.HOSTILE[:4]:
        rows = {"model": "m", "group": "Men", "text": [text]}
        written = latex.tables(pd.DataFrame(rows), "stereomap", "table11_reasons")
        page = writing.layouts_to_html(written)
        cells = BeautifulSoup(page, "html.parser").find_all("td")
        assert cells[2].get_text() == " ".join(text.split())


def test_signs_beyond_the_fonts_are_formulas():
    assert writing.escape_for_latex("a δ ≤ b") == r"a $\delta$ $\le$ b"
    ready = writing.Latex(r"\x")
    assert writing.escape_for_latex(ready) == r"\x"


def test_markdown_becomes_latex():
    source = "**Bold** and `a_b`, 5 %:\n\n1. *one*\n2. $x_1$ [two](there.md)\n"
    written = writing.markdown_to_latex(source)
    assert written.split("\n\n")[0] == r"\textbf{Bold} and \texttt{a\_b}, 5 \%:"
    assert "\\item \\emph{one}\n\\item $x_1$ two\n\\end{enumerate}" in written


def test_every_block_is_written_in_both_formats():
    document = Document("A & B")
    document.blocks += [Heading("C_1"), Heading("D", 3), Paragraph("50 %"), Prose("E")]
    document.blocks.append(Table("F", pd.DataFrame({"G": ["1 < 2"]})))
    document.blocks.append(LatexFloats(""))

    tex = writing.to_latex(document)
    for text in (r"A \& B", r"\section{C\_1}", r"50 \%", r"1 \textless{} 2"):
        assert text in tex

    page = writing.to_html(document)
    for text in ("A &amp; B", "C_1</h2>", "50 %", "<td>1 &lt; 2</td>"):
        assert text in page


def test_long_columns_share_the_page():
    table = Table("", pd.DataFrame({"n": ["7"], "model": ["m" * 18], "text": ["a b " * 100]}))
    fitted = writing.fit_columns(table)
    assert re.fullmatch(r"rl>\{.*\}p\{0\.\d+\\linewidth\}", fitted.columns)
    narrow = writing.fit_columns(Table("", pd.DataFrame({"n": ["7", "-0.5"], "m": "x"})))
    assert narrow.columns == "rl"


# ---- what is missing -----------------------------------------------------------------------------


def test_missing_tables_and_figures_are_named(empty):
    folder = made_up_run.write()
    figure = paths.FIGURES / "empathy_gap" / "figure5.png"
    figure.parent.mkdir()
    figure.write_bytes(b"")
    for name in ("usage.csv", "responses.csv", "table02_delta.tex"):
        (folder / "tables" / "empathy_gap" / name).unlink()
    shutil.rmtree(folder / "tables" / "synthesis")
    shutil.rmtree(paths.RESPONSES)

    page = (appendix.build(made_up_run.NAME) / "appendix.html").read_text("utf8")

    text = words(page)
    for sentence in (
        "No manifest of stored answers was found for this study.",
        "no stored answers to 1 of the jobs",
        "no table of tokens and cost (usage.csv)",
        "no counts of replies (responses.csv)",
        "Tables 3, 7: this run has no rows for it (table03_table07_spread.csv).",
        "no row of table02_delta.csv is one that the paper prints",
        "Figures that this run does not have: figure5.",
        "no multiverse (multiverse_shares.csv): make 60 computes it.",
        "its power cannot be computed",
    ):
        assert sentence in text


def test_a_section_that_cannot_be_read_is_named_and_the_others_stay(empty, documents):
    _, _, whole = documents
    folder = made_up_run.write()
    (folder / "tables" / "synthesis" / "multiverse_shares.csv").write_text("model\nm\n")

    page = (appendix.build(made_up_run.NAME) / "appendix.html").read_text("utf8")
    sentence = "This section cannot be written"
    assert page.count(sentence) == 2  # the shares, and what could not be told
    assert "Creators of what was used are cited" in page
    assert sentence not in whole


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cells": 1}'])
def test_a_damaged_notebook_causes_no_traceback(empty, text):
    folder = made_up_run.write()
    (folder / "notebooks" / f"{made_up_run.NOTEBOOK}.ipynb").write_text(text)
    for file in folder.glob("tables/*/*.csv"):
        file.write_text(text)

    page = (appendix.build(made_up_run.NAME) / "appendix.html").read_text("utf8")
    assert "No manifest of stored answers was found" in page


def test_a_run_that_is_not_there_is_one_sentence(empty, capsys):
    assert appendix.main(["--run", "other"]) == 2
    written = capsys.readouterr()
    sentence = r"there is no run in .*build/runs/other/notebooks: make all RUN=other makes it\n"
    assert re.fullmatch(sentence, written.err)
    assert written.err.count("\n") == 1
    assert written.out == ""


def test_the_suggested_command_has_the_given_parameters(empty, capsys, monkeypatch):
    monkeypatch.setenv("MAKEFLAGS", " -- MODELS=a\\ b")
    monkeypatch.setenv("MODELS", "a b")
    assert appendix.main(["--run", "other"]) == 2
    assert "make all MODELS='a b' makes it" in capsys.readouterr().err


def test_a_name_that_no_folder_can_have_is_refused(empty, capsys):
    assert appendix.main(["--run", "../x"]) == 2
    assert "RUN" in capsys.readouterr().err


def test_make_writes_the_appendix_of_the_run_that_it_names(empty, monkeypatch):
    commands = []
    monkeypatch.setattr(cli, "replace_program", lambda *words: commands.append(words))
    monkeypatch.setenv("RUN", "mine")
    monkeypatch.setenv("MAKEFLAGS", " -- RUN=mine")

    with pytest.raises(settings.Refused):  # become comes back in a test alone
        cli.call("appendix")

    assert commands == [("appendix", "--run", "mine")]


# ---- forms ---------------------------------------------------------------------------------------


def test_every_answer_of_a_form_is_one_that_a_run_may_give(empty):
    made_up_run.write()
    run = Run(made_up_run.NAME)
    stores, _ = run.stored_by_study["empathy_gap"]
    answers = set(forms.facts_of(run)) | set(forms.card_of(run, "calibrant", stores))

    form = yaml.safe_load(forms.FORMS.read_text("utf8"))
    items = list(form["card"])
    for checklist in form["checklists"]:
        items += checklist["items"]
    for item in items:
        if "answer" in item:
            assert item["answer"] in answers


def test_the_references_are_the_four_papers_works_that_are_named_and_this_project():
    references = forms.references()
    *works, project = references
    assert [work.year for work in works] == ["2025", "2025", "2024", "2023", "2002", "2019"]
    assert project.title.startswith("Ingroup")
    keys = {reference.key for reference in references}
    assert len(keys) == 7


def texts_of_an_appendix():
    """What an appendix can say of its own and quote: code, captions, cards, limits, claims."""
    folders = [
        (paths.ROOT / "lib/ingroup/appendix", "**/*.*"),
        (paths.PUBLISHED, "latex.yaml"),
        (paths.RECORDINGS, "*/README.md"),
        (paths.ROOT / "docs", "claims.yaml"),
    ]
    for folder, pattern in folders:
        for file in sorted(folder.glob(pattern)):
            if file.suffix in {".py", ".yaml", ".md"}:
                yield file.read_text("utf8")
    for file in sorted(paths.NOTEBOOKS.glob("[1-4]*.ipynb")):
        for cell in nbformat.read(file, as_version=4).cells:
            if cell.source.startswith("## Limits"):
                yield cell.source


def test_every_work_that_the_appendix_names_stands_in_its_references():
    known = set()
    for reference in forms.references():
        first_author, *_ = re.split(", | and ", reference.authors)
        known.add((first_author.split()[-1], reference.year))

    named = set()
    for text in texts_of_an_appendix():
        on_one_line = " ".join(text.split())
        named |= set(re.findall(r"(\w+) et al\.,? \(?(\d{4})", on_one_line))

    assert {("Mitchell", "2019"), ("Fiske", "2002")} <= named
    assert named <= known


def bibtex():
    """The entries of references.bib: of each its key, and its fields by their names."""
    text = (paths.ROOT / "references.bib").read_text("utf8")
    entries = []
    for key, body in re.findall(r"^@\w+\{(\w+),\n(.*?)^\}$", text, re.DOTALL | re.MULTILINE):
        fields = {}
        for name, value in re.findall(r"^  (\w+) += \{(.*?)\},?$", body, re.DOTALL | re.MULTILINE):
            value = " ".join(value.replace(r"{\'e}", "é").split())
            fields[name] = value.removeprefix("{").removesuffix("}")
        entries.append((key, fields))
    return entries


def identifier(fields):
    """The identifier of an entry of BibTeX, as the appendix prints it."""
    if "doi" in fields:
        return f"doi:{fields['doi']}"
    if "eprint" in fields:
        return f"{fields['archiveprefix']}:{fields['eprint']}"
    return ""


def test_the_bibtex_file_has_what_the_citation_file_has():
    entries = bibtex()
    references = forms.references()
    assert len(entries) == len(references)
    for (key, fields), reference in zip(entries, references, strict=True):
        authors = []
        for author in fields["author"].split(" and "):
            family, *suffix, given = author.split(", ") if ", " in author else (author, "")
            authors.append(" ".join([given, family, *suffix]).strip())
        *first, last = authors
        joined = f"{', '.join(first)} and {last}" if first else last

        assert key == reference.key
        assert joined == reference.authors
        assert fields["title"] == reference.title
        assert fields["year"] == reference.year
        places = [fields[name] for name in ("booktitle", "journal", "note") if name in fields]
        assert "".join(places) == reference.where
        assert identifier(fields) == reference.identifier


def test_numbered_tables_are_those_of_the_layouts():
    tables = results.numbered_tables("empathy_gap")
    assert tables["table02_delta"] == "Table 2"
    assert tables["table03_table07_spread"] == "Tables 3, 7"
    assert results.numbered_tables("none") == {}


# ---- of a model of one's own ---------------------------------------------------------------------


def test_a_run_of_ones_own_is_about_its_model_alone(empty):
    """It names the model, and no folder."""
    model = empty / "my nets" / "net_2"
    model.mkdir(parents=True)
    file = made_up_run.write() / "notebooks" / f"{made_up_run.NOTEBOOK}.ipynb"
    book = nbformat.read(file, as_version=4)
    book.metadata.papermill.parameters["MODELS"] = [str(model)]
    nbformat.write(book, file)

    folder = appendix.build(made_up_run.NAME)
    page = words((folder / "appendix.html").read_text("utf8"))
    assert page.startswith("Appendix: net_2 in Ingroup")
    assert f"the run {made_up_run.NAME} of net_2" in page
    assert "MODELS = net_2" in page
    assert "A rating is no feeling (50 %)." in page
    assert "Findings of the default run" not in page
    assert "Cards describe prompts and corpora. (from data/README.md)" in page
    for document in ("appendix.html", "appendix.tex"):
        assert str(model.parent) not in (folder / document).read_text("utf8")


def test_a_card_of_recorded_answers_is_shown_only_where_such_answers_are(empty):
    """A folder may be called like a model whose answers the repository brings."""
    made_up_run.write()
    card = paths.RECORDINGS / "calibrant" / "README.md"
    card.parent.mkdir()
    card.write_text("# Card\n\nAsked long ago.\n")
    run = Run(made_up_run.NAME)
    assert "Asked long ago." not in str(forms.cards(run))

    ((stored,), _) = run.stored_by_study["empathy_gap"]
    run.stored_by_study["empathy_gap"] = ([dataclasses.replace(stored, is_recorded=True)], [])
    assert "Asked long ago." in str(forms.cards(run))
    text, source = forms.facts_of(run)["cards"]
    assert text == "Cards describe prompts, corpora, calibrants and recorded answers."
    assert source == "data/README.md and data/recordings"


def test_a_store_of_ones_own_model_is_named_without_its_place(empty):
    """Stores of earlier versions have the whole path, with two hyphens for each slash."""
    model = empty / "my nets" / "net_2"
    model.mkdir(parents=True)
    job = types.SimpleNamespace(model="net_2", loaded=str(model))
    name = str(model).strip("/").replace("/", "--")
    folder = empty / "responses" / "giebench" / "sample" / f"{name}@vllm" / "Raw"

    stored = Stored(job, folder, {}, is_recorded=False, written="")
    assert stored.address == "giebench/sample/net_2@vllm/Raw"


def test_an_appendix_of_one_model_has_nothing_of_printed_models_audits_and_comparisons(empty):
    folder = made_up_run.write()
    figures = paths.figure_folder(made_up_run.NAME) / "empathy_gap"
    shutil.copy(figures / "figure2.png", figures / "printed_landscape.png")
    source = folder / "notebooks" / f"{made_up_run.NOTEBOOK}.ipynb"
    for name in ("51_audit_empathy_gap", "61_comparison"):
        book = nbformat.read(source, as_version=4)
        book.cells[0].source = f"# About {name}"
        book.cells[3].source = f"## Limits\n\n- A limit of {name}."
        nbformat.write(book, source.with_name(f"{name}.ipynb"))
        source.with_name(f"{name}.txt").write_text(f"{name}: 1 s\n")

    target = appendix.build(made_up_run.NAME)

    page = words((target / "appendix.html").read_text("utf8"))
    assert not (target / "figures" / "empathy_gap" / "printed_landscape.png").exists()
    assert "A rating is no feeling (50 %)." in page
    assert "A limit of" not in page
    assert "No two models were compared" not in page
    assert "arguments that the server did not take" not in page


def test_a_servers_replies_name_the_weights_that_answered(empty):
    reply = Reply("1", "stop", 10, 4, 1, model="gpt-4o-2024-08-06")
    toy.run(toy.numbers(4), empty / "store", toy.Toy(lambda *_: reply, engine="inspect"))
    manifest = read_manifest(empty / "store" / "manifest.json")
    job = types.SimpleNamespace(model="gpt-4o", loaded="gpt-4o", study="giebench", mode="free text")

    stored = Stored(job, empty / "store", manifest, is_recorded=False, written="2026-11-27")

    (row,) = asked.engines([stored]).to_dict("records")
    assert row["Revision"] == "gpt-4o-2024-08-06"
    damaged = dataclasses.replace(stored, folder=empty / "none")
    assert damaged.revision == ""
    assert asked.engines([damaged]).Revision.tolist() == ["–"]


# ---- for Word ------------------------------------------------------------------------------------


def program(folder, script):
    """A program called pandoc, alone on the path."""
    file = folder / "bin" / "pandoc"
    file.parent.mkdir()
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return str(file.parent)


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("exit 1", ""),
        ('for file; do :; done; cp "$file" appendix.docx', "For Word: .*appendix.docx"),
        ("", "For Word: there is no pandoc here; make word adds it and writes appendix.docx"),
    ],
)
def test_pandoc_writes_a_word_file_and_its_failure_keeps_the_appendix(
    script, sentence, empty, monkeypatch, capsys
):
    """It is given the page; a pandoc that fails, or that is not there, leaves the other two."""
    made_up_run.write()
    monkeypatch.setitem(sys.modules, "pypandoc", None)  # as where the package is not installed
    monkeypatch.setenv("PATH", program(empty, script) + ":/bin:/usr/bin" if script else "")

    assert appendix.main(["--run", made_up_run.NAME]) == 0

    folder = paths.BUILD / "appendix" / made_up_run.NAME
    page = (folder / "appendix.html").read_bytes()
    assert (folder / "appendix.tex").exists()
    if "cp" in script:
        assert (folder / "appendix.docx").read_bytes() == page

    _, *about_word = capsys.readouterr().out.splitlines()
    assert len(about_word) == bool(sentence)
    assert re.match(sentence, "".join(about_word))
