"""What the executed copy of a notebook shows."""

import re

import nbformat
import pandas as pd
import pytest
from bs4 import BeautifulSoup

from ingroup import paths
from ingroup.commands.executed import (
    as_typed,
    introduce,
    labels_of_folders,
    leave_calibrants_out,
    tidy,
)
from ingroup.commands.run_parameters import defaults


@pytest.fixture
def nets(tmp_path):
    """Two folders of models, one with a blank and an ampersand in its place."""
    for name in ("mine & yours/my_model-2", "other/net"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


def tidied(parameters, **data):
    """An output of a notebook with these parameters, tidied."""
    kinds = {f"text/{kind}": text for kind, text in data.items()}
    output = nbformat.v4.new_output("display_data", data=kinds)
    cell = nbformat.v4.new_code_cell(outputs=[output])

    tidy(nbformat.v4.new_notebook(cells=[cell]), parameters)

    shown = cell.outputs[0].data
    return {kind.removeprefix("text/"): text for kind, text in shown.items()}


def sources(notebook, kind):
    """The sources of the cells of a kind."""
    return [cell.source for cell in notebook.cells if cell.cell_type == kind]


def test_a_folder_is_shown_by_the_models_name(nets):
    """In plain text and escaped, alone and among others; a longer path is another's."""
    mine = f"{nets}/mine & yours/my_model-2"
    other = f"{nets}/other/net/"
    table = pd.DataFrame({"model": [mine, other, f"{mine}-b", f"{mine}/part"]})

    given = {"MODELS": [mine, f"{other}@vllm", "calibrant"]}
    shown = tidied(given, plain=f"not printed: {mine}.", html=table.to_html())

    assert shown["plain"] == "not printed: my_model-2."
    assert "<td>my_model-2</td>" in shown["html"]
    assert "<td>net</td>" in shown["html"]
    assert shown["html"].count("mine &amp; yours/my_model-2") == 2


def test_two_models_with_one_name_keep_their_folders(nets):
    copy = nets / "copy" / "net"
    copy.mkdir(parents=True)
    given = {"MODELS": [f"{nets}/other/net", str(copy)]}

    assert labels_of_folders(given["MODELS"]) == {}
    assert tidied(given, plain=str(copy)) == {"plain": str(copy)}


def test_a_users_file_is_named_without_its_path(nets):
    """In the summary, in outputs, and in the cell of the parameters; relative paths stay."""
    file = nets / "questions.json"
    file.touch()
    given = {"MODELS": [f"{nets}/other/net"], "QUESTIONS": str(file), "SHEET": "data/a.csv"}

    assert as_typed("QUESTIONS", str(file)) == "questions.json"
    assert as_typed("SHEETS", [str(file), "b.csv"]) == "questions.json;b.csv"
    assert as_typed("MODELS", [f"{nets}/other/net@vllm", "calibrant"]) == "net@vllm;calibrant"
    assert as_typed("SEED", 0) == "0"
    assert tidied(given, plain=f"read {file}") == {"plain": "read questions.json"}

    cell = nbformat.v4.new_code_cell(repr(given), metadata={"tags": ["injected-parameters"]})
    tidy(nbformat.v4.new_notebook(cells=[cell]), given)
    shown = {"MODELS": ["net"], "QUESTIONS": "questions.json", "SHEET": "data/a.csv"}
    assert cell.source == repr(shown)


def test_registered_and_hub_models_need_no_other_name():
    assert labels_of_folders(["calibrant", "meta-llama/Llama-3.1-8B"]) == {}


@pytest.mark.parametrize("columns", [["model", "p"], [], [f"c{n}" for n in range(90)]])
@pytest.mark.parametrize("as_html", [pd.DataFrame.to_html, lambda table: table.style.to_html()])
def test_an_empty_table_says_none(columns, as_html):
    empty = pd.DataFrame(columns=columns)

    shown = tidied({}, plain=repr(empty), html=as_html(empty))

    assert shown["plain"] == "none"
    (cell,) = BeautifulSoup(shown["html"], "html.parser").find_all("td")
    assert cell.get_text() == "none"
    assert int(cell["colspan"]) >= max(len(columns), 1)


def test_a_table_with_a_row_is_left_as_it_is():
    table = pd.DataFrame({"model": ["m"], "p": [0.5]})
    data = {"plain": repr(table), "html": table.to_html()}

    assert tidied({}, **data) == data


DESCRIBING = ["10", "11", "20", "21", "30", "32", "40", "41"]


@pytest.mark.parametrize("number", DESCRIBING)
def test_a_run_of_other_models_is_introduced_by_their_names(number, nets):
    """The committed notebook describes the default run's models, in one place."""
    (file,) = paths.NOTEBOOKS.glob(f"{number}_*.ipynb")
    committed = defaults(file.stem)
    book = nbformat.read(file, as_version=4)
    before = [cell.source for cell in book.cells]
    introduce(book, committed, committed)
    assert [cell.source for cell in book.cells] == before

    # With a calibrant, what the notebook says of calibrants stays.
    given = committed | {"MODELS": [f"{nets}/mine & yours/my_model-2@vllm", "org/Foo", "calibrant"]}
    introduce(book, given, committed)
    after = [cell.source for cell in book.cells]
    (changed,) = [new for new, old in zip(after, before, strict=True) if new != old]
    assert "This run shows `my_model-2`, `Foo`, `calibrant`. What a real mod" in changed

    text = "".join(sources(book, "markdown"))
    assert not re.search("SmolLM2|Gemma 3|(three|four|five) models of notebook", text)


@pytest.mark.parametrize("number", [*DESCRIBING, "60"])
def test_without_a_calibrant_no_text_is_about_calibrants_alone(number, nets):
    """The results do not need these texts: all cells of code stay as they are."""
    (file,) = paths.NOTEBOOKS.glob(f"{number}_*.ipynb")
    committed = defaults(file.stem)
    book = nbformat.read(file, as_version=4)
    code = sources(book, "code")

    introduce(book, committed | {"MODELS": [f"{nets}/other/net"]}, committed)

    assert sources(book, "code") == code
    text = "\n".join(sources(book, "markdown"))
    for line in text.splitlines():
        assert not re.match(
            r"- .*calibrant|#.*Ground truth|\*\*Ground truth|For (a|the) calibrant", line
        )


@pytest.mark.parametrize("number", DESCRIBING)
def test_without_a_calibrant_nobody_is_told_to_try_one(number, nets):
    (file,) = paths.NOTEBOOKS.glob(f"{number}_*.ipynb")
    committed = defaults(file.stem)
    book = nbformat.read(file, as_version=4)
    introduce(book, committed | {"MODELS": [f"{nets}/other/net"]}, committed)

    _, _, end = "\n".join(sources(book, "markdown")).partition("### Try it")
    assert "### Exercise" in end
    assert "calibrant" not in end


def test_the_map_without_a_calibrant_speaks_of_none():
    book = nbformat.read(paths.NOTEBOOKS / "00_map.ipynb", as_version=4)
    leave_calibrants_out(book)
    text = "\n".join(sources(book, "markdown"))
    assert "## Try it" in text
    assert not re.search(r"calibrant|[Pp]lanted|(positive|negative) control|demonstration", text)


def test_items_about_calibrants_are_left_out_and_others_stay(nets):
    limits = (
        "## Limits\n\n- A rating is no feeling.\n- With the calibrants, all is known.\n\nThe end."
    )
    cells = [
        nbformat.v4.new_markdown_cell("All is built in.", metadata={"tags": ["about-calibrants"]}),
        nbformat.v4.new_markdown_cell(limits),
        nbformat.v4.new_code_cell("- calibrant"),
    ]
    book = nbformat.v4.new_notebook(cells=cells)

    introduce(book, {"MODELS": [f"{nets}/other/net"]}, {"MODELS": ["calibrant"]})

    assert [cell.source for cell in book.cells] == [
        "## Limits\n\n- A rating is no feeling.\n\nThe end.",
        "- calibrant",
    ]


def test_a_finished_progress_bar_leaves_no_state():
    """Its states are outputs of their own, as a kernel flushes them; a note between bars stays."""
    states = ["\r0 of 9", "\r1 of 9", "\r       ", "\r", "a note\n", "\r0 of 3", "\r3 of 3\n"]
    # The speed of the machine would make two copies of one run differ.
    states += [
        "\rReligion 0 of 9 ? left, ? prompts/s",
        "\rReligion 9 of 9 00:00 left, 7 prompts/s\n",
    ]
    outputs = [nbformat.v4.new_output("stream", name="stderr", text=text) for text in states]
    cell = nbformat.v4.new_code_cell(outputs=outputs)
    tidy(nbformat.v4.new_notebook(cells=[cell]), {})
    (output,) = cell.outputs
    assert output.text == "a note\n3 of 3\n"
