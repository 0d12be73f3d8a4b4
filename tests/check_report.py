"""The book of the last run in a headless Chromium, from files alone: make test-report."""

import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from playwright.sync_api import sync_playwright

from ingroup import BUILD, ROOT, book

BOOK = BUILD / "book"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
HOSTILE = """<script>window.owned = true</script><img src=x onerror="window.owned = true">
</td></table><svg onload="window.owned = true"><a href="javascript:window.owned = true">go</a>"""
# What a reply may also do: ask for a picture from elsewhere, or cover the page.
RULES = '<p style="background: url(http://example.org/x); position: fixed">a reply</p>'

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium here"),
    pytest.mark.skipif(not BOOK.exists(), reason="there is no book: run make all first"),
]


@pytest.fixture(scope="module")
def browser():
    """Start Chromium once."""
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


class Visitor:
    """Opens pages with the net cut off, and notes what goes wrong."""

    def __init__(self, browser, viewport):
        self.trouble = []
        context = browser.new_context(viewport=viewport)
        context.route("**/*", self.answer)
        self.page = context.new_page()
        self.page.on("console", self.hear)
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))

    def answer(self, route):
        """Let files through, and nothing else."""
        address = route.request.url
        if address.startswith(("file:", "data:", "blob:")):
            route.continue_()
        else:
            self.trouble.append(f"asks for {address}")
            route.abort()

    def hear(self, message):
        """Note an error."""
        if message.type == "error":
            self.trouble.append(f"{self.page.url}: {message.text}")

    def open(self, file):
        """Open a page."""
        self.page.goto(file.as_uri())
        return self.page


def pages(folder: Path):
    """List the pages of a book."""
    return sorted(file for file in folder.rglob("*.html") if "_static" not in file.parts)


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_every_page_opens_whole_and_without_a_net(browser, viewport):
    """No error, no request to elsewhere, every picture there, no page wider than its window."""
    visitor = Visitor(browser, viewport)
    for file in pages(BOOK):
        page = visitor.open(file)
        is_wide = "document.documentElement.scrollWidth > window.innerWidth"
        assert not page.evaluate(is_wide), f"{file.name} scrolls sideways"
        broken = page.evaluate("[...document.images].filter(i => !i.naturalWidth).map(i => i.src)")
        assert not broken, file.name
    assert not visitor.trouble


def test_the_book_is_small():
    """A reader can leaf through it."""
    assert len(pages(BOOK)) <= 30


def test_every_link_inside_the_book_leads_to_a_page(browser):
    """Links between pages, such as those from a guide to a notebook."""
    visitor = Visitor(browser, DESKTOP)
    for file in pages(BOOK):
        page = visitor.open(file)
        links = page.evaluate("[...document.querySelectorAll('article a')].map(a => a.href)")
        for link in links:
            if link.startswith("file:"):
                target = Path(link.removeprefix("file://").split("#")[0].split("?")[0])
                assert target.exists(), f"{file.name}: {link}"


def test_the_front_page_has_a_row_for_each_paper(browser):
    """Four papers, each with a claim, a printed range and a number for each model."""
    page = Visitor(browser, DESKTOP).open(BOOK / "index.html")
    rows = page.locator("article table tbody tr")
    assert rows.count() == 4
    for row in rows.all():
        assert any(verdict in row.inner_text() for verdict in (*book.VERDICTS, "not run"))


def test_the_search_works_from_disk(browser):
    """It finds a word of a notebook."""
    page = Visitor(browser, DESKTOP).open(BOOK / "search.html")
    page.goto(f"{page.url}?q=empathy")
    page.wait_for_selector("#search-results li", timeout=10_000)


def test_formulas_are_shown_without_a_script(browser):
    """A formula is MathML, which a browser draws by itself."""
    page = Visitor(browser, DESKTOP).open(BOOK / "notebooks/10_empathy_gap.html")
    assert page.locator("math").count() > 0


def test_what_a_model_wrote_does_nothing(browser, tmp_path):
    """Scripts, addresses and styles in an output that nobody escaped are taken out."""
    kinds = [{"text/html": HOSTILE}, {"text/html": RULES}, {"text/plain": HOSTILE}]
    kinds.append({"application/javascript": "window.owned = true", "text/plain": "a script"})
    outputs = [new_output("display_data", data=data) for data in kinds]
    outputs.append(new_output("stream", name="stdout", text=HOSTILE))
    cells = [new_markdown_cell("# Replies"), new_code_cell("replies", outputs=outputs)]
    pages = tmp_path / "pages/notebooks"
    pages.mkdir(parents=True)
    nbformat.write(new_notebook(cells=cells), pages / "10_replies.ipynb")
    shutil.copy(ROOT / "docs/index.md", tmp_path / "pages")

    folders = ["-c", ROOT / "docs", tmp_path / "pages", tmp_path / "book"]
    subprocess.run([sys.executable, "-m", "sphinx", "-q", *folders], check=True)

    visitor = Visitor(browser, DESKTOP)
    page = visitor.open(tmp_path / "book/notebooks/10_replies.html")
    for link in page.locator("text=go").all():
        link.click(force=True)
    assert page.evaluate("window.owned") is None
    assert (
        page.evaluate("getComputedStyle(document.querySelector('.cell_output p')).position")
        != "fixed"
    )
    assert page.locator("pre", has_text="<script>window.owned = true</script>").count() >= 1
    assert not visitor.trouble
