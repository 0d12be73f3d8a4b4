"""What the executed copy of a notebook shows."""

import nbformat
import pandas as pd
import pytest
from bs4 import BeautifulSoup

from ingroup.commands.executed import folders, tidy


@pytest.fixture
def nets(tmp_path):
    """Two folders of models, one with a blank and an ampersand in its place."""
    for name in ("mine & yours/my_model-2", "other/net"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


def shown(parameters, **data):
    """An output of a notebook with these parameters, tidied."""
    kinds = {f"text/{kind}": text for kind, text in data.items()}
    output = nbformat.v4.new_output("display_data", data=kinds)
    cell = nbformat.v4.new_code_cell(outputs=[output])
    tidy(nbformat.v4.new_notebook(cells=[cell]), parameters)
    return {kind.removeprefix("text/"): text for kind, text in cell.outputs[0].data.items()}


def test_a_folder_is_shown_by_the_models_name(nets):
    """In plain text and escaped, alone and among others; a longer path is another's."""
    mine = f"{nets}/mine & yours/my_model-2"
    given = {"MODELS": [mine, f"{nets}/other/net/@vllm", "calibrant"]}
    table = pd.DataFrame({"model": [mine, f"{nets}/other/net/", f"{mine}-b", f"{mine}/part"]})
    said = shown(given, plain=f"not printed: {mine}.", html=table.to_html())
    assert said["plain"] == "not printed: my_model-2."
    for cell in ("my_model-2", "net"):
        assert f"<td>{cell}</td>" in said["html"]
    assert said["html"].count("mine &amp; yours/my_model-2") == 2


def test_two_models_with_one_name_keep_their_folders(nets):
    (nets / "copy" / "net").mkdir(parents=True)
    given = {"MODELS": [f"{nets}/other/net", f"{nets}/copy/net"]}
    assert folders(given) == {}
    assert shown(given, plain=f"{nets}/copy/net")["plain"] == f"{nets}/copy/net"


def test_a_run_without_models_of_its_own_is_left_as_it_is():
    assert folders({}) == {}
    assert folders({"MODELS": ["calibrant", "meta-llama/Llama-3.1-8B"]}) == {}


@pytest.mark.parametrize("columns", [["model", "p"], [], [f"c{n}" for n in range(90)]])
@pytest.mark.parametrize("as_html", [pd.DataFrame.to_html, lambda table: table.style.to_html()])
def test_an_empty_table_says_none(columns, as_html):
    empty = pd.DataFrame(columns=columns)
    said = shown({}, plain=repr(empty), html=as_html(empty))
    (cell,) = BeautifulSoup(said["html"], "html.parser").find_all("td")
    assert cell.get_text() == "none"
    assert int(cell["colspan"]) >= max(len(columns), 1)
    assert said["plain"] == "none"


def test_a_table_with_a_row_is_left_as_it_is():
    table = pd.DataFrame({"model": ["m"], "p": [0.5]})
    assert shown({}, plain=repr(table), html=table.to_html()) == {
        "plain": repr(table),
        "html": table.to_html(),
    }
