"""Settings by which Sphinx makes the book from the sources of `ingroup.commands.report`."""

import re
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import nbformat
from docutils.nodes import Element, SkipNode, document, make_id, math_block
from myst_nb.sphinx_ import Parser
from nbformat.v4 import new_markdown_cell, new_notebook
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.logging import getLogger
from sphinx.writers.html5 import HTML5Translator
from sphinx_codeautolink.extension import resolve

from ingroup.commands import settings
from ingroup.commands.report_html import formula

logger = getLogger(__name__)

# A block of code on a page that Sphinx wrote, and what stands between two of them.
CODE = re.compile(r'<div class="(?:doctest )?highlight-[^"]+">.*?</pre></div>\n</div>', re.DOTALL)
NEXT_BLOCK = "\n<!-- the next block -->\n"

project = "Ingroup"
html_title = "Ingroup"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",  # a function's page leads to its source
    "numpydoc",
    "sphinx_codeautolink",  # a name in the code of a notebook leads to its function
]
# The warnings that a value here is a function, and that several studies share a function's name.
suppress_warnings = ["config.cache", "ref.python"]

codeautolink_concat_default = True  # a cell knows the imports of the cells above it
# sphinx-codeautolink would import what only type checkers need, torch among it, for four seconds.
resolve.populate_type_checking = lambda module: None

# Notebooks are executed already.
nb_execution_mode = "off"
nb_code_prompt_show = "Code"
nb_code_prompt_hide = "Hide code"

# Prose is plain markdown with formulas. Tags, roles, targets and comments in it stay text.
myst_enable_extensions = ["dollarmath"]
myst_dmath_allow_space = False
myst_dmath_allow_digits = False
myst_disable_syntax = [
    "html_block",
    "html_inline",
    "myst_role",
    "myst_target",
    "myst_line_comment",
    "myst_block_break",
]
myst_heading_anchors = 5
# Both lead to what is no source of this book: "book:" to the place of a table on a page, "copy:" to
# a file, which has no fragment.
myst_url_schemes = {
    "http": None,
    "https": None,
    "mailto": None,
    "book": "{{path}}#{{fragment}}",
    "copy": "{{path}}",
}
myst_heading_slug_func = make_id

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # numpydoc has them
# A default is shown as the code has it: its value may be the environment with its keys, or a path.
autodoc_preserve_defaults = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "sphinx_book_theme"
author = "The Ingroup maintainers"
html_context = {"default_mode": "auto"}  # dark where the reader has it dark
html_theme_options = {
    "home_page_in_toc": True,
    "pygments_dark_style": "a11y-dark",
    "pygments_light_style": "a11y-light",
    "max_navbar_depth": 1,
    "use_download_button": False,
    "use_fullscreen_button": False,
}
html_use_index = False
html_domain_indices = False
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["report.css"]
html_js_files = ["report.js"]
html_copy_source = False
html_show_copyright = False
html_show_search_summary = False  # it would fetch pages, which a browser forbids for files
html_show_sphinx = False
html_math_renderer = "mathml"


def write_formula(translator: HTML5Translator, node: Element) -> None:
    """Write a formula as MathML, which a page shows without a script.

    Parameters
    ----------
    translator : HTML5Translator
        The writer of the page.
    node : Element
        The formula.
    """
    is_block = isinstance(node, math_block)
    translator.body.append(formula(node.astext(), display=is_block))
    raise SkipNode


def without_folders(
    app: Sphinx, what: str, name: str, thing: object, options: object, arguments: str, returns: str
) -> tuple[str, str]:
    """Write a file in a signature's defaults by its path in the repository, not on this machine.

    Parameters
    ----------
    app : Sphinx
        The book that is made.
    what, name : str
        The kind and name of the documented object.
    thing, options : object
        The documented object and its options. Neither is used.
    arguments, returns : str
        The object's signature, or None without a signature.

    Returns
    -------
    tuple of str
        The signature.
    """
    if arguments:
        arguments = re.sub(r"PosixPath\('([^']*)'\)", r"'\1'", arguments)
        arguments = arguments.replace(f"'{settings.ROOT}/", "'")
    return arguments, returns


def load_modules(app: Sphinx) -> None:
    """Import the documented modules once, before Sphinx starts the processes that read sources.

    Parameters
    ----------
    app : Sphinx
        The book that is made, before it starts these processes.
    """
    for file in Path(app.srcdir).glob("api/*.md"):
        for module in re.findall("automodule:: (.+)", file.read_text("utf8")):
            with suppress(Exception):  # autodoc warns of it
                import_module(module)


def keep_our_names(app: Sphinx, environment: BuildEnvironment) -> None:
    """Restrict sphinx-codeautolink to names of this project, as no other name has a page here.

    Parameters
    ----------
    app : Sphinx
        The book that is made.
    environment : BuildEnvironment
        Sphinx's record of the sources, with the names in their code.
    """
    # The extension keeps what it read as an attribute that Sphinx's class does not declare.
    blocks_by_page = vars(environment)["sphinx_codeautolink_transforms"]
    for page, blocks in list(blocks_by_page.items()):
        for block in blocks:
            block.names = [name for name in block.names if name.import_components[0] == "ingroup"]
        if not any(block.names for block in blocks):
            del blocks_by_page[page]


def keep_code(app: Sphinx, page: str, template: str, context: dict, source: document) -> None:
    """Leave only the code of a page to sphinx-codeautolink.

    The extension would parse and rewrite the whole page with its outputs, which takes three times
    as long as the rest of its work.

    Parameters
    ----------
    app : Sphinx
        The book that is made.
    page, template : str
        The names of a page and of its template.
    context : dict
        The ``body`` of the page, which changes. ``around_code`` keeps the rest.
    source : document
        Its nodes, or None for a page without a source.
    """
    if source is not None:
        body = context["body"]
        context["around_code"] = CODE.split(body)
        context["body"] = "".join(NEXT_BLOCK + block for block in CODE.findall(body))


def put_code_back(app: Sphinx, page: str, template: str, context: dict, source: document) -> None:
    """Put the code of a page, with its links, back into the page.

    Parameters
    ----------
    app : Sphinx
        The book that is made.
    page, template : str
        The names of a page and of its template.
    context : dict
        The ``body`` and ``around_code`` that :func:`keep_code` left.
    source : document
        Its nodes, or None for a page without a source.
    """
    if source is not None:
        blocks = context["body"].split(NEXT_BLOCK)  # the first is empty
        body = ""
        for block, text in zip(blocks, context.pop("around_code"), strict=True):
            body += block + text
        context["body"] = body


class ForgivingParser(Parser):
    """Parser that writes a message in place of a broken page, which costs no other page."""

    def parse(self, inputstring: str, document: document) -> None:
        """Parse a source, or a message that says why the source cannot be parsed.

        Parameters
        ----------
        inputstring : str
            The source of a page.
        document : document
            Where its nodes go.
        """
        try:
            super().parse(inputstring, document)
        except Exception as error:
            name = document.settings.env.docname
            said = f"This page could not be made: {type(error).__name__}: {error}"
            logger.warning("%s: %s", name, said)
            document.children = []
            text = f"# {name}\n\n```text\n{said}\n```"
            if document["source"].endswith(".ipynb"):
                text = nbformat.writes(new_notebook(cells=[new_markdown_cell(text)]))
            super().parse(text, document)


def setup(app: Sphinx) -> None:
    """Register the renderer of formulas, the parser of pages, and the functions that change pages.

    Parameters
    ----------
    app : Sphinx
        The book that is made.
    """
    app.add_source_parser(ForgivingParser, override=True)
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
    app.connect("autodoc-process-signature", without_folders)
    app.connect("builder-inited", load_modules)
    # sphinx-codeautolink has the priority 500.
    app.connect("env-updated", keep_our_names, priority=499)
    app.connect("html-page-context", keep_code, priority=499)
    app.connect("html-page-context", put_code_back, priority=501)
