"""The report in a real browser, from files and without a net: ``make test-report``.

Plain pytest passes this file by (its name does not begin with test_), for not every machine has a
browser. Where there is none, each test says so and nothing fails.
"""

import base64
import csv
import io
import os
import re
import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image
from playwright.sync_api import sync_playwright

from ingroup import models, paths
from ingroup.commands import report, run, run_parameters
from ingroup.studies.empathy_gap import design as empathy_gap
from ingroup.studies.stereomap import design as stereomap
from ingroup.studies.stereomap import stimuli

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
# Whether each cell shows its code.
OPENED = "[...document.querySelectorAll('.tag_hide-input > details')].map(d => d.open)"
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 375, "height": 800}

# What a model might write, and what must be read of it on the page, character by character.
HOSTILE = {
    "script": "<script>window.owned=true</script>",
    "picture": '<img src=x onerror="window.owned=true">',
    "end of a table": "</td></table><script>window.owned=true</script>",
    "end of an attribute": '"><svg onload=window.owned=true>',
    "markdown": "[x](javascript:window.owned=true)",
}
TRAITS = ("Cold", "Skilled", "Honest", "Wealthy", "Friendly")
CODES = "\x1b[m\u202e"  # a colour code, and from here on right to left
ALL = CODES + "".join(HOSTILE.values())
PICTURE = "<img src=x onerror=window.owned=true>"  # a model's name


@pytest.fixture(scope="module")
def browser():
    if BROWSER is None:
        pytest.skip(f"no browser here: none of {', '.join(NAMES)} is on the path")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])


class Visitor:
    """Opens pages of a folder with the net cut off, and writes down all that goes wrong."""

    def __init__(self, browser, folder, viewport):
        self.folder = folder
        self.trouble = []
        self.requests = []
        self.context = browser.new_context(viewport=viewport)
        self.context.route("**/*", self.allow)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.hear(message.type, message.text))
        self.page.on("pageerror", lambda error: self.hear("page error", str(error)))

    def allow(self, route):
        address = route.request.url
        self.requests.append(address)
        if address.startswith(("file:", "data:", "blob:")):
            route.continue_()
        else:
            route.abort()

    def hear(self, kind, text):
        if kind in ("error", "warning", "page error"):
            self.trouble.append(f"{self.page.url}: {kind}: {text}")

    def open(self, name):
        self.page.goto((self.folder / name).as_uri())
        return self.page

    def schemes(self):
        """The schemes of the addresses that were requested."""
        return {urlsplit(address).scheme for address in self.requests}


def names(folder):
    """Every page of the book; the pages of notebooks are the first."""
    pages = [file for file in folder.rglob("*.html") if "_static" not in file.parts]
    return sorted(str(file.relative_to(folder)) for file in pages)


def notebooks(folder):
    return sorted(file.name for file in folder.glob("[0-9]*.html"))


def elsewhere(run_name, tmp_path_factory):
    """The report of a run, built and then copied: what it needs must travel with it."""
    target, lost = report.build(run_name)
    assert lost == []
    return shutil.copytree(target, tmp_path_factory.mktemp("report") / "moved here")


@pytest.fixture(scope="module")
def default(browser, tmp_path_factory):
    return elsewhere(os.environ.get("RUN", paths.DEFAULT_RUN), tmp_path_factory)


def remove(run_name):
    shutil.rmtree(paths.BUILD / "runs" / run_name, ignore_errors=True)


def png(width, height):
    """A grey picture."""
    stream = io.BytesIO()
    Image.new("L", (width, height), 128).save(stream, "PNG")
    return base64.b64encode(stream.getvalue()).decode()


# Numbers as pandas, the Styler and people write them; sorted they are 1 to 6.
NUMBERS = ["1,234", "-5.5", "98%", "\u22127", "1e-3", "20"]
IN_ORDER = ["\u22127", "-5.5", "1e-3", "20", "98%", "1,234"]
SPANS = """<table><thead><tr><th></th><th></th><th>size</th></tr>
<tr><th>kind</th><th>name</th><th></th></tr></thead><tbody>
<tr><th rowspan="2">a</th><th>b</th><td>10</td></tr><tr><th>c</th><td>9</td></tr>
<tr><th rowspan="2">d</th><th>e</th><td>NaN</td></tr><tr><th>f</th><td>100</td></tr></tbody>
</table>"""

# The same, wider than a phone.
WIDE = SPANS.replace("size", "size of it").replace(">a<", ">a group with a very long name<")


def output_of(kind, **data):
    return new_output(kind, data={key.replace("_", "/"): value for key, value in data.items()})


@pytest.fixture(scope="module")
def made_up(browser, tmp_path_factory):
    """A page with one of everything, and outputs that nobody escaped."""
    name = "test-report-made"
    remove(name)

    rows = "".join(f"<tr><td>{number}</td></tr>" for number in NUMBERS)
    table = f"<table><thead><tr><th>n</th></tr></thead><tbody>{rows}</tbody></table>"
    styled = f"<style>p{{}}</style><table><tr><td>{ALL}</td></tr></table>"
    figure = output_of("display_data", image_png=png(60, 40))
    solution = new_code_cell("# Count them.\nanswer", metadata={"tags": ["solution"]})
    solution.outputs = [output_of("execute_result", text_plain="forty-two")]
    raw = [
        output_of("display_data", text_html=f"<p id='raw'>{ALL}</p>"),
        output_of("display_data", text_html=styled),
        output_of("display_data", text_html='<a href="javascript:window.owned=true">go</a>'),
        output_of("display_data", text_plain=ALL),
        output_of(
            "display_data", application_javascript="window.owned=true", text_plain="a script"
        ),
        new_output("stream", name="stdout", text=ALL),
        new_output("error", ename="E", evalue=ALL, traceback=[ALL]),
    ]
    cells = [
        new_markdown_cell("# Made up\n\n## Tables"),
        new_code_cell("n", outputs=[output_of("execute_result", text_html=table)]),
        new_code_cell("spans", outputs=[output_of("execute_result", text_html=SPANS)]),
        new_code_cell("wide", outputs=[output_of("execute_result", text_html=WIDE)]),
        new_markdown_cell("## Figures\n\n**Figure 1.** Two grey *pictures* of nothing. More."),
        new_code_cell("draw()", outputs=[figure, figure]),
        new_markdown_cell("### Exercise"),
        solution,
        new_markdown_cell("## Replies"),
        new_code_cell("show(replies)", outputs=raw),
    ]

    file = paths.executed("10_made_up", name)
    file.parent.mkdir(parents=True)
    nbformat.write(new_notebook(cells=cells), file)
    yield elsewhere(name, tmp_path_factory)
    remove(name)


# ---- the default run ---------------------------------------------------------------------------


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_every_page_opens_whole_without_a_net(browser, default, viewport):
    """No error in the console, no request to elsewhere, all figures there, nothing too wide."""
    visitor = Visitor(browser, default, viewport)
    pages = names(default)
    # The listings of source files are alike, and there are many: one stands for all.
    listings = [name for name in pages if name.startswith("_modules/")]
    pages = [name for name in pages if name not in listings[1:]]
    assert len(pages) >= 2

    with_banner = {"index.html", *notebooks(default)}
    for name in pages:
        page = visitor.open(name)
        broken = "i => !i.naturalWidth || !i.alt.trim()"
        assert page.evaluate(f"[...document.images].filter({broken}).length") == 0, name
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"], name
        assert page.locator(".banner").count() == (name in with_banner), name

    assert visitor.trouble == []
    assert len(visitor.requests) >= len(pages)
    assert visitor.schemes() <= {"file", "data", "blob"}


def test_search_finds_a_word_without_a_server(browser, default):
    visitor = Visitor(browser, default, DESKTOP)
    visitor.page.goto((default / "search.html").as_uri() + "?q=calibrant")

    result = visitor.page.locator("#search-results li a").first
    result.wait_for(timeout=60_000)
    address = result.get_attribute("href")
    assert (default / urlsplit(address).path).is_file()
    assert visitor.trouble == []


def test_every_link_leads_to_a_place_in_the_folder(browser, default):
    visitor = Visitor(browser, default, DESKTOP)
    ids = {}
    links = []
    for name in names(default):
        page = visitor.open(name)
        on_page = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
        ids[default / name] = set(on_page)
        addresses = page.evaluate("[...document.querySelectorAll('a[href]')].map(a => a.href)")
        links += [(name, address) for address in addresses]
    assert len(links) > 50

    for name, address in links:
        parts = urlsplit(address)
        if parts.scheme in ("http", "https", "mailto"):
            continue
        assert parts.scheme == "file", (name, address)
        file = Path(unquote(parts.path))
        assert file.is_relative_to(default), (name, address)
        assert file.is_file(), (name, address)
        if parts.fragment and file.suffix == ".html":
            assert unquote(parts.fragment) in ids[file], (name, address)


def test_code_is_folded_until_asked_for(browser, default):
    name = notebooks(default)[0]
    page = Visitor(browser, default, DESKTOP).open(name)
    assert set(page.evaluate(OPENED)) == {False}

    page.get_by_role("button", name="Show all code").click()
    assert set(page.evaluate(OPENED)) == {True}
    page.reload()  # it is remembered
    assert set(page.evaluate(OPENED)) == {True}

    page.get_by_role("button", name="Hide all code").click()
    assert set(page.evaluate(OPENED)) == {False}

    page = Visitor(browser, default, DESKTOP).open("index.html")
    page.get_by_role("link", name="Read with all code").first.click()
    page.wait_for_url("**/*.html?code=open")
    assert set(page.evaluate(OPENED)) == {True}


def test_the_contents_are_a_menu_on_a_phone(browser, default):
    page = Visitor(browser, default, PHONE).open(notebooks(default)[0])
    link = page.locator(".bd-sidebar-primary .bd-sidenav a").first
    assert not link.is_visible()

    page.locator(".primary-toggle:visible").first.click()
    link.wait_for(state="visible", timeout=60_000)
    page.keyboard.press("Escape")
    page.set_viewport_size(DESKTOP)
    link.wait_for(state="visible", timeout=60_000)


def test_a_claim_leads_to_its_figure_its_table_and_its_code(browser, default):
    """The first screen; the code is open where the link leads, and the folder stays closed else."""
    visitor = Visitor(browser, default, {"width": 1400, "height": 1000})
    page = visitor.open("index.html")
    table = page.locator("table.claims").first
    if not page.locator("table.claims").count():
        pytest.skip("the synthesis and the map have not run in this run")

    assert page.locator(".found li").count() >= 3
    assert page.locator("table.papers").bounding_box()["y"] < 400  # the verdicts come first
    assert right_edge(table) <= 1400  # all of it in view
    for row in page.locator("table.claims tr:has(td)").all():
        assert row.locator(".verdict").count() >= 1
        assert row.locator(".links a").count() >= 3

    table.get_by_role("link", name="code").first.click()
    page.wait_for_url("**/*code=open#statistics")
    assert set(page.evaluate(OPENED)) == {True}
    assert visitor.trouble == []


def test_replies_open_behind_their_count(browser, default):
    visitor = Visitor(browser, default, DESKTOP)
    excerpts = 0
    for name in notebooks(default):
        page = visitor.open(name)
        for excerpt in page.locator("details.behind").all():
            excerpts += 1
            reply = excerpt.locator("pre.reply").first
            assert not reply.is_visible()
            excerpt.locator("summary").click()
            assert excerpt.locator("pre").first.is_visible()

    if not excerpts:
        pytest.skip("the map has not run in this run")
    harmless(visitor)


def test_every_page_is_one_step_from_every_other(browser, default):
    for name in notebooks(default):
        page = Visitor(browser, default, DESKTOP).open(name)
        links = page.locator(".bd-sidebar-primary .bd-sidenav a")
        addresses = {link.get_attribute("href") for link in links.all()}
        assert {"index.html", "#", *notebooks(default)} - {name} <= addresses

        marked = page.locator(".bd-sidebar-primary .bd-sidenav li.current > a")
        assert [link.get_attribute("href") for link in marked.all()] == ["#"]


def brightness(page, selector, kind):
    """Of the colour of an element as the browser shows it, from 0 (black) to 1."""
    colour = page.evaluate(f"getComputedStyle(document.querySelector('{selector}')).{kind}")
    red, green, blue = map(float, re.findall(r"[\d.]+", colour)[:3])
    return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255


def right_edge(element):
    box = element.bounding_box()
    return box["x"] + box["width"]


def test_dark_where_the_reader_has_it_dark_and_figures_stay_on_white(browser, default):
    for name in ["index.html", *notebooks(default)]:
        page = Visitor(browser, default, DESKTOP).open(name)
        assert brightness(page, "body", "backgroundColor") > 0.99

        page.emulate_media(color_scheme="dark")
        page.reload()
        assert brightness(page, "body", "backgroundColor") < 0.15
        for selector in ("body", "article a", ".banner"):
            assert brightness(page, selector, "color") > 0.4, (name, selector)
        # What the report adds to a page has no paper of its own.
        assert brightness(page, "article .text_html", "backgroundColor") < 0.15
        if page.locator("a.enlarge img").count():
            assert brightness(page, "a.enlarge img", "backgroundColor") > 0.99

        page.emulate_media(color_scheme="dark", media="print")
        assert brightness(page, "body", "backgroundColor") > 0.99  # paper is white


def test_a_verdict_stays_in_view_and_no_table_is_cut(browser, default):
    for name in notebooks(default):
        page = Visitor(browser, default, {"width": 1400, "height": 1000}).open(name)
        for cell in page.locator("thead th.verdict").all():
            assert right_edge(cell) <= 1400, name

        cells = page.evaluate("[...document.querySelectorAll('.out td')].map(e => e.textContent)")
        assert not {"NaN", "True", "False", "..."} & set(cells), name

        heights = page.evaluate(
            "[...document.querySelectorAll('.out .scroll')].map(e => e.offsetHeight)"
        )
        assert max(heights, default=0) < 2000, name  # a long table is folded


@pytest.mark.parametrize("width", [320, 390])
def test_each_table_fits_a_phone(browser, default, width):
    """Whether it is folded or open, no table is wider than its frame; a text has its label."""
    page = Visitor(browser, default, {"width": width, "height": 844}).page
    n_tables = 0
    for name in names(default):
        if name.startswith("_modules/"):
            continue
        page.goto((default / name).as_uri())
        page.evaluate("document.querySelectorAll('article details').forEach(e => e.open = true)")
        n_tables += page.locator("article table").count()
        beyond = page.evaluate(
            "[...document.querySelectorAll('article table')]"
            ".map(e => e.closest('.scroll, .pst-scrollable-table-container') || e)"
            ".filter(e => e.scrollWidth > e.clientWidth + 1)"
            ".map(e => e.textContent.trim().slice(0, 60))"
        )
        assert beyond == [], name

        heights = page.evaluate(
            "[...document.querySelectorAll('.out .scroll')].map(e => e.offsetHeight)"
        )
        assert max(heights, default=0) < 844, name
    assert n_tables > 10


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_on_paper_type_can_be_read_and_no_table_leaves_the_page(browser, default, viewport):
    """Tables have type of 8 points; a very wide one has a page across and at least 4.5 points."""
    for name in notebooks(default):
        page = Visitor(browser, default, viewport).open(name)
        page.evaluate("dispatchEvent(new Event('beforeprint'))")

        sizes = page.evaluate(
            "[...document.querySelectorAll('.scroll table')]"
            ".map(e => 8 * (parseFloat(e.style.zoom) || 1))"
        )
        assert min(sizes, default=8) >= 4.5, name
        beyond = page.evaluate(
            "[...document.querySelectorAll('.scroll')]"
            ".filter(e => e.scrollWidth > e.clientWidth + 1)"
            ".map(e => e.textContent.trim().slice(0, 60))"
        )
        assert beyond == [], name


# ---- one of everything ---------------------------------------------------------------------------


def column(table, number):
    cells = table.locator(f"tbody tr :nth-child({number})")
    return [cell.text_content() for cell in cells.all()]


def test_a_table_sorts_by_number_and_both_ways(browser, made_up):
    page = Visitor(browser, made_up, DESKTOP).open("10_made_up.html")
    table = page.locator("table").nth(0)
    header = table.get_by_role("columnheader")
    assert column(table, 1) == NUMBERS

    header.get_by_role("button").click()
    assert column(table, 1) == IN_ORDER
    assert header.get_attribute("aria-sort") == "ascending"

    page.keyboard.press("Enter")  # the button has the focus
    assert column(table, 1) == IN_ORDER[::-1]
    assert header.get_attribute("aria-sort") == "descending"


def test_rows_under_a_cell_that_spans_can_be_sorted(browser, made_up):
    """The name that stood once for two rows stands in both; what is missing comes last."""
    page = Visitor(browser, made_up, DESKTOP).open("10_made_up.html")
    table = page.locator("table").nth(1)

    for _ in range(2):
        table.get_by_role("button", name="size").click()
    rows = [row.locator("> *").all_text_contents() for row in table.locator("tbody tr").all()]
    assert rows == [["d", "f", "100"], ["a", "b", "10"], ["a", "c", "9"], ["d", "e", "\u2013"]]

    table.get_by_role("button", name="name").click()
    assert column(table, 2) == ["b", "c", "e", "f"]


def test_on_a_phone_rows_are_records_that_a_menu_sorts(browser, made_up):
    page = Visitor(browser, made_up, PHONE).open("10_made_up.html")
    table = page.locator("table.wide").first
    assert table.get_by_role("row").count() == 4  # without the heads
    assert table.get_by_role("cell").count() == 4
    assert page.locator(".again").first.is_visible()  # the label that spans two rows
    label = "e => getComputedStyle(e, '::before').content"
    assert table.locator("td").first.evaluate(label) == '"size of it"'

    page.get_by_label("Sort records by").select_option("size of it, descending")
    assert table.locator("td").all_text_contents() == ["100", "10", "9", "\u2013"]

    page.set_viewport_size(DESKTOP)
    assert table.get_by_role("columnheader", name="size of it").is_visible()
    assert not page.get_by_label("Sort records by").is_visible()


def test_a_label_is_shown_once_where_a_table_has_its_columns(browser, made_up):
    page = Visitor(browser, made_up, DESKTOP).open("10_made_up.html")
    table = page.locator("table.wide").first
    assert not table.locator(".again").first.is_visible()
    table.get_by_role("button", name="size of it").click()
    rows = [row.locator("> *").all_text_contents() for row in table.locator("tbody tr").all()]
    long = "a group with a very long name"
    assert rows == [[long, "c", "9"], [long, "b", "10"], ["d", "f", "100"], ["d", "e", "\u2013"]]


def test_a_figure_opens_as_large_as_it_is(browser, made_up):
    page = Visitor(browser, made_up, DESKTOP).open("10_made_up.html")
    figure = page.locator("a.enlarge img").first
    assert figure.get_attribute("alt") == "Figure 1. Two grey pictures of nothing."
    figure.click()
    page.wait_for_url("**/_images/*.png")


def test_a_solution_is_hidden_until_opened(browser, made_up):
    page = Visitor(browser, made_up, DESKTOP).open("10_made_up.html")
    code = page.get_by_text("# Count them.")
    result = page.get_by_text("forty-two")
    page.get_by_role("button", name="Show all code").click()
    assert not code.is_visible()
    assert not result.is_visible()

    page.get_by_text("Solution", exact=True).click()
    assert code.is_visible()
    assert result.is_visible()


def test_on_paper_solutions_are_open_and_code_is_not(browser, made_up):
    page = Visitor(browser, made_up, DESKTOP).open("10_made_up.html")
    page.emulate_media(media="print")
    assert page.get_by_text("forty-two").is_visible()
    assert not page.get_by_text("show(replies)").is_visible()
    assert not page.locator(".bd-sidebar-primary").is_visible()


def test_outputs_that_nobody_escaped_stay_text(browser, made_up):
    visitor = Visitor(browser, made_up, DESKTOP)
    page = visitor.open("10_made_up.html")
    text = page.locator("article").text_content()
    for name, reply in HOSTILE.items():
        # Plain, stream, error; HTML and table too, where no tag of theirs was mended.
        assert text.count(reply) >= (5 if name == "markdown" else 3), name
    harmless(visitor)


def harmless(visitor):
    """Nothing of what a model wrote became a part of the page."""
    page = visitor.page
    for button in page.locator("button.sort").all()[:5]:
        button.click()
    assert page.evaluate("window.owned") is None

    parts = "svg, iframe, object, embed, form, input, script, style, link"
    assert page.locator(parts).locator("xpath=ancestor::article").count() == 0

    attributes = "[...document.querySelectorAll('{}')].flatMap(e => e.getAttributeNames())"
    for name in page.evaluate(attributes.format("article *")):
        assert not name.startswith(("on", "style"))
    for name in page.evaluate(attributes.format("*")):
        assert not name.startswith("on")

    links = "[...document.querySelectorAll('a[href]')].filter(a => a.protocol == 'javascript:')"
    assert page.evaluate(f"{links}.length") == 0
    is_of_book = "i => i.getAttribute('src').startsWith('_images/')"
    assert page.evaluate(f"[...document.images].every({is_of_book})")

    assert "\u202e" not in page.content()
    assert "\x1b" not in page.content()
    assert visitor.trouble == []
    assert visitor.schemes() <= {"file", "data"}


# ---- two studies whose model wrote hostile replies -----------------------------------------------


def write_replies(file, jobs, reply):
    """Recorded replies to all trials of these jobs."""
    with file.open("w", newline="", encoding="utf8") as stream:
        rows = csv.writer(stream)
        rows.writerow(("category", "system", "prompt", "response"))
        for design in {id(job.design): job.design for job in jobs}.values():
            for number, trial in enumerate(design):
                turns = {turn["role"]: turn["content"] for turn in trial.messages}
                category = trial.condition.get("category", "")
                text = reply(number, trial.condition)
                rows.writerow((category, turns.get("system", ""), turns["user"], text))


def replayed(notebooks, run_name, jobs, reply, folder, browser, tmp_path_factory, **given):
    """Execute notebooks on recorded replies to these jobs; the text of their pages."""
    file = folder / "replies.csv"
    write_replies(file, jobs, reply)
    given |= {"MODELS": PICTURE, "ENGINE": "replay", "RECORDINGS": str(file)}
    remove(run_name)
    try:
        for name in notebooks:
            values = run_parameters.merged_parameters(name, "demo", given, run_name, shared=True)
            assert run.execute(name, values, run.Progress(name, alone=False))
        moved = elsewhere(run_name, tmp_path_factory)
    finally:
        remove(run_name)
        for store in paths.RESPONSES.glob(f"*/*/{PICTURE}@replay"):
            shutil.rmtree(store)

    visitor = Visitor(browser, moved, DESKTOP)
    visitor.open("index.html")
    banner = visitor.page.locator(".banner").text_content()
    assert f"Real: {models.label(PICTURE)} (recorded answers)." in banner
    harmless(visitor)

    texts = []
    for name in notebooks:
        texts.append(visitor.open(f"{name}.html").locator("main").text_content())
        harmless(visitor)
    return texts


def test_hostile_replies_of_the_first_study_stay_text(browser, tmp_path, tmp_path_factory):
    given = {"N_EVENTS": "2", "SETTINGS": "P0,S0,T0", "N_RESAMPLES": "200", "CORPUS": "sample"}
    notebook = "10_empathy_gap"
    values = run_parameters.merged_parameters(notebook, "demo", given | {"MODELS": "calibrant"})
    jobs = empathy_gap.jobs(values)

    def reply(number, condition):
        return f"{17 * number % 101} {ALL}"

    (text,) = replayed(
        [notebook],
        "test-report-10",
        jobs,
        reply,
        tmp_path,
        browser,
        tmp_path_factory,
        **given,
    )

    for name, hostile in HOSTILE.items():
        assert hostile in text, name


def test_hostile_replies_of_the_fourth_study_stay_text(browser, tmp_path, tmp_path_factory):
    """Each reason ends in a different kind of trouble."""
    groups = [
        "Men",
        "Women",
        "Nurses",
        "Doctors",
        "Lawyers",
        "Homeless",
        "Lower-class",
        "Elderly",
        "Asians",
        "Muslims",
        "Christians",
        "Poor Blacks",
    ]
    kinds = list(HOSTILE.values())

    def reply(number, condition):
        group_prompt = condition["inquiry"]
        expected = stimuli.expected_prompt(
            group_prompt.prompt, group_prompt.part, condition["ablation"]
        )
        lines = []
        for k in range(expected.n_keywords):
            hostile = kinds[(number + k) % len(kinds)]
            lines.append(f"- {TRAITS[k]}: They are so. {CODES}{hostile}")

        group = groups.index(group_prompt.group)
        for k, word in enumerate(expected.words):
            rating = 1 + (group + group // 5 * k + number // 3 % 2) % 5
            lines.append(f"{word}: {rating}")
        return "\n".join(lines)

    given = {"GROUPS": ";".join(groups), "ROUNDS": "2", "ABLATION_ROUNDS": "1", "N_RESAMPLES": "5"}
    names = ["40_stereomap", "41_stereomap_keywords"]
    values = run_parameters.merged_parameters(names[0], "demo", given | {"MODELS": "calibrant"})
    jobs = stereomap.jobs(values)

    texts = replayed(
        names, "test-report-40", jobs, reply, tmp_path, browser, tmp_path_factory, **given
    )

    text = "\n".join(texts)
    assert sum(text.count(hostile) for hostile in kinds) >= 10
