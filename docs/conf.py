"""The book: executed notebooks, guides and functions, in pages that open from disk."""

from pathlib import Path

import latex2mathml.converter
import nbformat
from docutils.nodes import SkipNode

from ingroup import book

project = html_title = "Ingroup"
author = "The Ingroup maintainers"
extensions = ["myst_nb", "sphinx.ext.autodoc", "numpydoc"]
exclude_patterns = ["docs/index.md"]  # its copy is the front page
nb_execution_mode = "off"  # make has run them
nb_merge_streams = True
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
# Links from guides to files that are not pages of the book.
suppress_warnings = ["myst.xref_missing", "myst.header", "ref.python", "mystnb.unknown_mime_type"]

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_mock_imports = ["inspect_ai", "ray", "torch", "transformers", "vllm"]  # for speed
autodoc_preserve_defaults = True
autodoc_typehints = "none"  # numpydoc's sections name the types
numpydoc_show_class_members = False

html_theme = "sphinx_book_theme"
html_context = {"default_mode": "auto"}
html_theme_options = {"home_page_in_toc": True, "use_download_button": False}
html_static_path = ["static"]
html_css_files = ["book.css"]
html_show_sourcelink = html_copy_source = html_use_index = html_domain_indices = False
html_math_renderer = "mathml"  # shown without a script, and so without a network


def complete(app, page, source):
    """Fill in the front page and the functions, and clean the outputs of notebooks."""
    if page == "index":
        tables = Path(app.srcdir).parent / "tables"
        source[0] = source[0].replace("FRONT", book.markdown(book.front(tables)))
    if page == "docs/functions":
        source[0] += book.functions()
    if page.startswith("notebooks/"):
        notebook = nbformat.reads(source[0], as_version=4)
        source[0] = nbformat.writes(book.cleaned(notebook))


def write_formula(translator, node):
    """Write a formula as MathML."""
    kind = "inline" if node.tagname == "math" else "block"
    translator.body.append(latex2mathml.converter.convert(node.astext(), display=kind))
    raise SkipNode


def setup(app):
    """Register both."""
    app.connect("source-read", complete)
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
