"""The report as a book: its sources, its making by Sphinx, and the scripts that its pages allow.

The first page has the papers' claims. The executed notebooks, the guides of ``docs/`` and the pages
about modules follow.
"""

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import pandas as pd
from bs4 import BeautifulSoup
from docutils.nodes import make_id
from nbformat.v4 import new_markdown_cell, new_notebook

from ingroup import notebook_cells, paths
from ingroup.commands import report_tables, settings
from ingroup.commands.report_pages import (
    LANGUAGE,
    PNG,
    TEMPLATES,
    Banner,
    Page,
    cell_of_outputs,
    html_cell,
    html_output,
    link_tables,
    outputs_of,
    relink,
    relink_outputs,
    section_of,
    template_macros,
)

# Modules of the library that have a page, by its title. The notebooks call functions of most; the
# others are those that these rest on.
MODULES = {
    "Statistics": ["stats/*", "families"],
    "Asking and reading": [
        "design",
        "models",
        "inference/job",
        "inference/choices",
        "inference/engine",
        "inference/prompts",
        "inference/reading",
        "parsing",
    ],
    "Tables and figures": ["notebook", "trials_behind", "paths", "tables", "published", "figures"],
    "Across studies": [
        "synthesis*",
        "findings_sentences",
        "comparison",
        "claim_verdicts",
        "contract",
        "examples",
        "sizes",
        "notebook_cells",
        "dictionary",
        "keywords",
        "audit*",
        "guide_figures",
        "commands/overview",
        "commands/run_parameters",
        "commands/report",
        "commands/settings",
    ],
}
OF_A_STUDY = ["stimuli", "design", "answers", "statistics", "*"]
GLOSSARY_PAGE = "00_map"  # the page that shows data/glossary.csv
NUMBERS_PAGE = "numbers"
# Words of the first page that it explains, as data/glossary.csv does.
WORDS = (
    "scored answer",
    "reading",
    "turn, newline, any",
    "setting",
    "Raw, ID, COT",
    "scope",
)
NUMBERS = """# The numbers behind the verdicts

One row for each claim and model. A path counts if it could show the claim, or if it has no result.
Each median, lowest and highest is over the estimates of all paths: the rows of the file of paths
with this model and claim. *Moved most by* names the choice whose options differ most in the share
of paths on which the claim holds. The columns `stands` and `reversed` of the files are about an
effect above 0, whatever the claim says; `share` and `against` are about the claim."""
WORDS_ON_CONTROLS = ("calibrant (positive control)", "calibrant-null (negative control)")
CHANGES = "CHANGELOG.md"
GUIDES = ["docs/*.md", "CONTRIBUTING.md", CHANGES]

# A page may load its own folder, as files or from a server, and scripts with these hashes.
POLICY = (
    "default-src 'none'; img-src 'self' file: data:; font-src 'self' file:; "
    "style-src 'self' file: 'unsafe-inline'; script-src 'self' file: {hashes}; "
    "base-uri 'none'; form-action 'self' file:"
)
INLINE_SCRIPT = re.compile(r"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", re.DOTALL)
# A table that is no output: of the first page, or of prose.
OWN_TABLE = re.compile(
    r'<table class="(papers|overview|claims|claims numbers|table)">.*?</table>', re.DOTALL
)
IMAGE = re.compile(r'<img\b[^>]*\bsrc="(_images/[^"]+)"[^>]*>')


class Contents(NamedTuple):
    """The contents of a run's book.

    Attributes
    ----------
    run : str
        The name of the run.
    pages : list of Page
        Its executed notebooks.
    claims : dict or None
        From :func:`ingroup.commands.report.claims`.
    replies : dict
        From :func:`ingroup.commands.report.replies`.
    files : dict
        From :func:`ingroup.commands.report.copies`.
    """

    run: str
    pages: list[Page]
    claims: dict[str, Any] | None
    replies: dict[str, list[list[dict[str, Any]]]]
    files: dict[str, dict[str, list[tuple[str, str]]]]


def read_pages(run: str) -> tuple[list[Page], list[str]]:
    """Read the executed notebooks of a run, in the order of their numbers.

    Parameters
    ----------
    run : str
        The name of the run.

    Returns
    -------
    pages : list of Page
        The notebooks that can be read.
    lost : list of str
        A sentence for each notebook that cannot be read, with its error.
    """
    pages = []
    lost = []
    for notebook in paths.executed_notebooks(run):
        try:
            pages.append(Page(notebook, run))
        except Exception as error:  # one damaged notebook must not cost the report
            lost.append(f"{notebook}: this notebook has no page: {error!r}")
    return pages, lost


def _named_sources(pages: list[Page]) -> dict[Path, str]:
    """Map files of the repository to the sources of the book that show them."""
    sources = {paths.NOTEBOOKS / f"{page.name}.ipynb": f"{page.name}.ipynb" for page in pages}
    if any(page.name == GLOSSARY_PAGE for page in pages):
        sources[paths.DATA / "glossary.csv"] = f"{GLOSSARY_PAGE}.ipynb#Words"
    for pattern in GUIDES:
        for file in sorted(paths.ROOT.glob(pattern)):
            sources[file] = str(file.relative_to(paths.ROOT))

    for title, names in modules().items():
        for module in names:
            file = paths.ROOT / "lib" / f"{module.replace('.', '/')}.py"
            sources[file] = f"{_api_page(title)}#{_short(module)}"
    return sources


def modules() -> dict[str, list[str]]:
    """List the modules whose functions have a page.

    Returns
    -------
    dict of str to list of str
        Their full names, by the title of the page.
    """
    patterns = {}
    for study in settings.study_names():
        title = study.replace("_", " ").capitalize()
        patterns[title] = [f"studies/{study}/{name}" for name in OF_A_STUDY]

    documented: dict = {}
    library = paths.ROOT / "lib"
    for title, names in (patterns | MODULES).items():
        for name in names:
            for file in sorted(library.glob(f"ingroup/{name}.py")):
                module = ".".join(file.relative_to(library).with_suffix("").parts)
                of_title = documented.setdefault(title, [])
                if file.name != "__init__.py" and module not in of_title:
                    of_title.append(module)
    return documented


def _api_page(title: str) -> str:
    """Name the source file of a page about modules."""
    return f"api/{title.lower().replace(' ', '_')}.md"


def _short(module: str) -> str:
    """Shorten the name of a module for the heading above its functions."""
    return module.removeprefix("ingroup.").removeprefix("studies.")


def write(contents: Contents, folder: Path) -> list[str]:
    """Write the sources of a book.

    Parameters
    ----------
    contents : Contents
        The contents of the book.
    folder : Path
        Where the sources go.

    Returns
    -------
    list of str
        Links that lead nowhere, each after the name of its page.
    """
    sources = _named_sources(contents.pages)
    shutil.copytree(TEMPLATES, folder)
    lost = []
    names = {page.name for page in contents.pages}
    for page in contents.pages:
        relink_outputs(page, names)
        for cell in page.notebook.cells:
            if cell.cell_type == "markdown":
                cell.source, missed = relink(cell.source, paths.NOTEBOOKS, sources)
                lost += [f"{page.name}: {link} leads nowhere" for link in missed]

    # The first page chooses from the notebooks as they are; then each gets its parts.
    figures = _figures_of_claims(contents)
    openings = {}
    for page in contents.pages:
        openings[page.name] = page.opens_with(contents.pages, figures.get(page.study, ""))
    first = _first_page(contents, sources)
    for page in contents.pages:
        _complete(page, contents, openings[page.name])
        nbformat.write(page.notebook, folder / f"{page.name}.ipynb")
    nbformat.write(first, folder / "index.ipynb")
    if contents.claims:
        nbformat.write(_numbers(contents.claims, contents), folder / f"{NUMBERS_PAGE}.ipynb")

    lost += _write_guides(sources, contents, folder)
    (folder / "api").mkdir()
    for title, documented in modules().items():
        text = _api(title, documented)
        (folder / _api_page(title)).write_text(text, "utf8")
    return lost


def _write_guides(sources: dict[Path, str], contents: Contents, folder: Path) -> list[str]:
    """Write each guide of `sources` to `folder`, and list broken links."""
    lost = []
    for file, name in sources.items():
        if file.suffix != ".md":
            continue
        text, missed = relink(file.read_text("utf8"), file.parent, sources)
        text = link_tables(text, name, contents.pages, contents.files)
        lost += [f"{name}: {link} leads nowhere" for link in missed]
        if name == CHANGES:
            # A search for a word should find the present state, not its history.
            text = f"---\nnosearch: true\n---\n{text}"
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, "utf8")
    return lost


def _api(title: str, names: list[str]) -> str:
    """Write the source of a page about modules, which Sphinx fills with their docstrings."""
    text = f"# {title}\n"
    for module in names:
        text += f"\n## {_short(module)}\n\n"
        text += f"```{{eval-rst}}\n.. automodule:: {module}\n   :members:\n```\n"
    return text


def _first_page(contents: Contents, sources: dict[Path, str]) -> nbformat.NotebookNode:
    """Make the first page of the book: verdicts, claims, pages, files and contents."""
    part = template_macros()
    pages = contents.pages
    claims = contents.claims
    page_by_study = {page.study: page for page in reversed(pages)}
    # The first page has the banner of the first notebook that asked a model.
    asking = [page for page in pages if page.banner.kind != "none"]
    banner = (asking or pages)[0].banner

    cells = [new_markdown_cell("# Ingroup"), html_cell(part.lead(contents.run))]
    if claims:
        anchors = {study: make_id(_title(study, pages)) for study in claims["papers"]}
        cells.append(html_cell(part.papers(claims, page_by_study, anchors)))
        cells.append(html_cell(part.words(_words(claims))))
        cells.append(html_cell(part.verdicts(claims, page_by_study)))
    cells += [html_cell(part.banner(banner)), new_markdown_cell("## Claim by claim")]
    if claims:
        cells += _claim_by_claim(claims, contents, page_by_study)
        cells += _what_was_found(claims, pages, sources)
    else:
        said = f"No claims are judged yet: {_make('60 00', contents.run)} reads what has run."
        cells.append(html_cell(part.missing(said)))

    cells += _cards(pages, banner, contents.run)
    cells.append(new_markdown_cell("## Tables and figures as files"))
    if contents.files:
        cells.append(html_cell(part.file_lists(contents.files)))
    else:
        cells.append(html_cell(part.missing("This run has no tables and no figures.")))
    if claims:
        cells += _contents("Verdicts", [NUMBERS_PAGE])
    cells += _contents("Notebooks", [page.name for page in pages])
    guides = [name.removesuffix(".md") for file, name in sources.items() if file.suffix == ".md"]
    cells += _contents("Guides", guides)
    cells += _contents("Functions", [_api_page(title) for title in modules()])
    return new_notebook(cells=cells, metadata={"language_info": LANGUAGE})


def _cards(pages: list[Page], banner: Banner, run: str) -> list[nbformat.NotebookNode]:
    """Make the cells with a card for each page and a sentence for each notebook without a page."""
    cells = [new_markdown_cell("## Pages")]
    cells += [html_cell(template_macros().card(page, banner)) for page in pages]
    names = {page.name for page in pages}
    for name in sorted(set(settings.notebooks()) - names):
        cells.append(html_cell(template_macros().missing(_not_run(name, run))))
    return cells


def _what_was_found(
    claims: dict[str, Any], pages: list[Page], sources: dict[Path, str]
) -> list[nbformat.NotebookNode]:
    """Make the cells with the sentences of 00_map and a link to the findings."""
    cells = [new_markdown_cell("## What was found")]
    if paths.ROOT / "docs" / "findings.md" in sources:
        cells.append(new_markdown_cell("In words, with numbers: [findings](docs/findings.md)."))
    page_by_name = {page.name: page for page in pages}
    cells.append(html_cell(template_macros().found(claims, page_by_name)))
    return cells


def _words(claims: dict[str, Any]) -> list[dict[str, str]]:
    """Read the words of the first page and their meanings from the glossary.

    Words on controls are included if the run has a control.
    """
    wanted = list(WORDS)
    if claims["controls"]:
        wanted += WORDS_ON_CONTROLS
    glossary = pd.read_csv(paths.DATA / "glossary.csv", keep_default_na=False).set_index("word")
    known = [word for word in wanted if word in glossary.index]
    return glossary.loc[known].reset_index().to_dict("records")


def _choices(study: str) -> list[dict[str, str]]:
    """Read the choices behind the paths of a study, with their options in words."""
    choices = pd.read_csv(paths.DATA / "choices.csv", keep_default_na=False)
    return choices[choices.study == study].to_dict("records")


def _numbers(claims: dict[str, Any], contents: Contents) -> nbformat.NotebookNode:
    """Make the page of the numbers behind the verdicts, with a table for each study."""
    part = template_macros()
    cells = [new_markdown_cell(NUMBERS)]
    for study in claims["counts"]:
        rows = [row for row in claims["rows"] if row["study"] == study]
        cells.append(new_markdown_cell(f"## {_title(study, contents.pages)}"))
        cells.append(html_cell(part.numbers(rows, contents.files, claims["models"])))
    return new_notebook(cells=cells, metadata={"language_info": LANGUAGE})


def _title(study: str, pages: list[Page]) -> str:
    """Return the title of the first page of a study, or its name in words without such a page."""
    for page in pages:
        if page.study == study:
            return page.title
    return study.replace("_", " ")


def _not_run(notebook: str, run: str) -> str:
    """Say that a notebook has not run, and which command runs it."""
    command = _make(notebook[:2], run)
    if run != paths.DEFAULT_RUN:
        command += ", with the parameters of the run,"
    return f"{notebook} has not run in this run: {command} runs it."


def _make(targets: str, run: str) -> str:
    """Write the command that makes targets in a run."""
    if run == paths.DEFAULT_RUN:
        return f"make {targets}"
    return f"make {targets} RUN={run}"


def _figures_of_claims(contents: Contents) -> dict[str, str]:
    """Name the figure on which the claims of each study rest, preferably a figure of all models."""
    figures = {}
    for row in (contents.claims or {}).get("rows", ()):
        study = row["study"]
        of_all_models = f"{row['figure']}_models"
        has_all = of_all_models in contents.files.get(study, {})
        figures[study] = of_all_models if has_all else row["figure"]
    return figures


def _behind(
    row: dict[str, Any], figure: str, contents: Contents, page: Page | None
) -> list[tuple[str, str]]:
    """List the sources of a claim with their addresses: a figure, two tables and the code.

    Sources that are missing are left out.
    """
    study = row["study"]
    links = [
        ("figure", _file(contents, study, figure, "png")),
        ("study's table", _table(contents, study, row["result"])),
        ("paths", _table(contents, "synthesis", f"multiverse_{study}")),
    ]
    if page is not None and page.has_heading("Statistics"):
        links.append(("code", f"{page.file}?code=open#statistics"))
    return [(name, address) for name, address in links if address]


def _table(contents: Contents, folder: str, name: str) -> str:
    """Return the address where the book shows a table, else of its file, or "" without a file."""
    file = _file(contents, folder, name, "csv")
    of_folder = [page for page in contents.pages if page.folder == folder]
    return (section_of(name, of_folder) or file) if file else ""


def _file(contents: Contents, folder: str, name: str, kind: str) -> str:
    """Return the address of a file of the run, or "" where the run lacks the file."""
    return dict(contents.files.get(folder, {}).get(name, ())).get(kind, "")


def _claim_by_claim(
    claims: dict[str, Any], contents: Contents, page_by_study: dict[str, Page]
) -> list[nbformat.NotebookNode]:
    """Make the cells that explain the verdicts and show the claims of each study in a table."""
    part = template_macros()
    figures = _figures_of_claims(contents)
    cells = [html_cell(part.meaning(claims, contents.files))]
    for study in claims["counts"]:
        page = page_by_study.get(study)
        rows = []
        for row in claims["rows"]:
            if row["study"] == study:
                behind = _behind(row, figures[study], contents, page)
                rows.append(row | {"behind": behind})
        cells.append(new_markdown_cell(f"### {_title(study, contents.pages)}"))
        cells.append(html_cell(part.choices(_choices(study))))
        cells.append(html_cell(part.claim_table(claims, rows)))
    return cells


def _contents(caption: str, names: list[str]) -> list[nbformat.NotebookNode]:
    """Make the cell that lists pages in the book's contents. Return no cell if no page is given."""
    listed = "\n".join(names)
    source = f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{listed}\n```"
    return [new_markdown_cell(source)] if names else []


def _complete(page: Page, contents: Contents, opening: nbformat.NotebookNode | None) -> None:
    """Add to a page its banner, the verdicts on its paper's claims, its files and its replies."""
    part = template_macros()
    files = contents.files.get(page.folder, {})
    writers = {name: notebook_cells.cell_of(page.notebook, name) for name in files}
    for cell in page.notebook.cells:
        own = [name for name, writer in writers.items() if writer is cell]
        links = _files_of(cell, page, files, own)
        if links:
            cell.outputs.append(html_output(part.take(links, own)))

    replies = contents.replies.get(page.study)
    if replies:
        page.notebook.cells += [
            new_markdown_cell("## Prompts and replies"),
            html_cell(part.replies(replies, contents.run)),
        ]
    page.notebook.cells.append(html_cell(part.ran(page)))

    above = [html_cell(part.banner(page.banner))]
    if contents.claims and page.study in contents.claims["counts"]:
        above.append(html_cell(part.fares(page, contents.claims)))
        if opening is not None:
            figures = outputs_of(opening, PNG)
            above.append(cell_of_outputs(figures, mystnb=opening.metadata.mystnb))
    page.insert_below_title(*above)


def _files_of(
    cell: nbformat.NotebookNode,
    page: Page,
    files: dict[str, list[tuple[str, str]]],
    own: list[str],
) -> list[tuple[str, str, str]]:
    """List the files that a cell names or writes, each with its name, kind and address.

    A cell that names ``<name>`` also gets the files ``<name>_<model>`` of the page's models.
    """
    links = []
    if cell.cell_type == "code":
        for name, formats in files.items():
            begun, _, model = name.rpartition("_")
            is_named = f'"{name}"' in cell.source
            is_of_model = model in page.models and f'"{begun}"' in cell.source
            # A function of `ingroup.notebook` writes a table whose name the cell does not have.
            if is_named or is_of_model or name in own:
                links += [(name, kind, address) for kind, address in formats]
    return links


def make(sources: Path, site: Path) -> list[str]:
    """Make the book with Sphinx, and write on each page which scripts may run.

    Parameters
    ----------
    sources : Path
        The folder of its sources.
    site : Path
        The folder of the book. It may already hold files that pages link to.

    Returns
    -------
    list of str
        The warnings of Sphinx.

    Raises
    ------
    RuntimeError
        If Sphinx failed, with its message.
    """
    warnings = sources.parent / "warnings.txt"
    # With -E and a fixed seed of hashes, the same sources give the same bytes.
    options = ["-q", "-E", "--jobs", "2", "--no-color", "-w", str(warnings)]
    folders = ["-d", str(sources.parent / "doctrees"), str(sources), str(site)]
    library = str(settings.ROOT / "lib")
    # docutils would otherwise take its settings from the folder where make was called.
    environment = os.environ | {"PYTHONPATH": library, "DOCUTILSCONFIG": "", "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "sphinx", *options, *folders]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    if ran.returncode != 0:
        raise RuntimeError(f"Sphinx failed: {ran.stderr.strip()}")

    for file in site.rglob("*.html"):
        file.write_text(finish(file.read_text("utf8")), "utf8")
    # Only Sphinx itself reads these files: for its next build, and for links of other projects.
    for name in (".buildinfo", "objects.inv"):
        (site / name).unlink(missing_ok=True)
    return warnings.read_text("utf8").splitlines()


def finish(page: str) -> str:
    """Finish a page: its content policy, tables for narrow screens and pictures that enlarge.

    Parameters
    ----------
    page : str
        The HTML that Sphinx wrote.

    Returns
    -------
    str
        The page with its content policy, which names its inline scripts by their hashes.
    """
    hashes = []
    # A browser hashes a script exactly as it stands between its tags.
    for script in INLINE_SCRIPT.findall(page):
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        hashes.append(f"'sha256-{digest}'")

    policy = POLICY.format(hashes=" ".join(sorted(set(hashes))))
    tag = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    page = page.replace("<head>", f"<head>\n    {tag}", 1)
    page = OWN_TABLE.sub(_for_phones, page)
    return IMAGE.sub(r'<a class="enlarge" href="\1">\g<0></a>', page)


def _for_phones(found: re.Match) -> str:
    """Prepare a table of the first page or of prose for a narrow screen."""
    soup = BeautifulSoup(found[0], "html.parser")
    for table in soup.find_all("table"):
        if found[1] == "table":
            report_tables.stack_table(table)
        else:
            # The templates have written its labels.
            report_tables.set_roles(table)
    return soup.decode(formatter="minimal")
