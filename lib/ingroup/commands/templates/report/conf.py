"""How Sphinx makes the report a book; ingroup.commands.report writes the sources around this."""

import re

import nbformat
from docutils.nodes import Element, SkipNode, document, make_id, math_block
from myst_nb.sphinx_ import Parser
from nbformat.v4 import new_markdown_cell, new_notebook
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger
from sphinx.writers.html5 import HTML5Translator

from ingroup.commands import settings
from ingroup.commands.report_html import formula

logger = getLogger(__name__)

project = "Ingroup"
html_title = "Ingroup"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",  # a function's page leads to its source
    "numpydoc",
]
# Of a function among these values; of a name that several studies give a function.
suppress_warnings = ["config.cache", "ref.python"]

# Executed notebooks, which nobody runs again.
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
# An address of this book that is no source: a file, or the place of a table on a page.
myst_url_schemes = {
    "http": None,
    "https": None,
    "mailto": None,
    "book": "{{path}}#{{fragment}}",
}
myst_heading_slug_func = make_id

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # numpydoc has them
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
    """Write a formula as MathML, for which a page needs no program.

    Parameters
    ----------
    translator : HTML5Translator
        What writes the page.
    node : Element
        The formula.
    """
    is_block = isinstance(node, math_block)
    translator.body.append(formula(node.astext(), display=is_block))
    raise SkipNode


def without_folders(
    app: Sphinx, what: str, name: str, thing: object, options: object, arguments: str, returns: str
) -> tuple[str, str]:
    """Write a default that is a file by its place in the repository, not on this machine.

    Parameters
    ----------
    app : Sphinx
        The book that is made.
    what, name : str
        The kind and name of what is documented.
    thing, options : object
        What is documented, and how. Neither is used.
    arguments, returns : str
        Its signature; None where there is none.

    Returns
    -------
    tuple of str
        The signature.
    """
    if arguments:
        arguments = re.sub(r"PosixPath\('([^']*)'\)", r"'\1'", arguments)
        arguments = arguments.replace(f"'{settings.ROOT}/", "'")
    return arguments, returns


class ForgivingParser(Parser):
    """A page that cannot be made says so: it must not cost the other pages."""

    def parse(self, inputstring: str, document: document) -> None:
        """Read a source, or say why it cannot be read.

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
    """Register the renderer of formulas, the parser of pages, and how signatures are written.

    Parameters
    ----------
    app : Sphinx
        The book that is made.
    """
    app.add_source_parser(ForgivingParser, override=True)
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
    app.connect("autodoc-process-signature", without_folders)
