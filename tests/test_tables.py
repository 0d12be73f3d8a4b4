"""Tables that users write, tables and figures of a run, and printed numbers beside ours."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from ingroup import PUBLISHED, notebook, published, style
from ingroup.tables import InputError, read_table, wrong


def test_a_table_is_read_as_texts(tmp_path):
    """A leading zero, NA and an empty cell are what stands there; a byte order mark is not."""
    file = tmp_path / "table.csv"
    file.write_bytes("\ufeffname,number\nNA,007\n,é\n".encode())
    assert read_table(file, ["name"]).to_numpy().tolist() == [["NA", "007"], ["", "é"]]

    tabbed = tmp_path / "table.tsv"
    tabbed.write_text("name\tnumber\na,b\t1\n")
    assert read_table(tabbed).name.tolist() == ["a,b"]


def test_a_wrong_table_is_named_with_its_place(tmp_path):
    """File, line, column, found and expected."""
    file = tmp_path / "table.csv"
    file.write_text("nam,number\na,1\n")
    with pytest.raises(InputError, match="line 1: column 'name' is missing, found nam"):
        read_table(file, ["name"])
    with pytest.raises(InputError, match="cannot be read"):
        read_table(tmp_path / "none.csv")

    said = str(wrong(file, 0, "number", "x", "a whole number"))
    assert said == f"{file}, line 2, column number: found 'x', expected a whole number"


@pytest.fixture
def out(tmp_path, monkeypatch):
    """Return the output of a notebook, in a folder of the test's own."""
    monkeypatch.setattr(notebook, "run_folder", lambda run: tmp_path / run)
    return notebook.Output("study", "tests")


def test_a_written_table_is_read_back(out):
    """NA is a text, an empty cell is missing, and an index that only counts is not written."""
    table = pd.DataFrame({"name": ["NA", None], "value": [0.1, np.nan]})
    out.write(table, "plain")
    pd.testing.assert_frame_equal(out.read("plain"), table)

    out.write(table.set_index("name"), "named")
    assert list(out.read("named")) == ["name", "value"]


def draw():
    """Draw a small figure."""
    figure, axes = plt.subplots(figsize=(style.ONE_COLUMN, 2), layout="constrained")
    axes.plot([0, 1], label="a line")
    axes.set(title="A title", xlabel="A long label")
    axes.legend()
    return figure


def test_a_figure_has_the_same_bytes_each_time(out):
    """Both files, and after a run with other figures."""
    style.use_style()
    out.save(draw(), "first")
    out.save(draw(), "second")
    for kind in ("pdf", "png"):
        first, second = (out.figures / f"{name}.{kind}" for name in ("first", "second"))
        assert first.read_bytes() == second.read_bytes()


def test_one_figure_of_a_notebook_can_be_drawn(out, monkeypatch):
    """`make figures ONLY=study/second` leaves the others as they are."""
    monkeypatch.setenv("FIGURE_ONLY", "study/second")
    out.save(draw(), "first")
    out.save(draw(), "second")
    assert {file.stem for file in out.figures.iterdir()} == {"second"}


@pytest.mark.parametrize(
    ("numbers", "half"),
    [([5.7, 4.31, np.nan], 0.005), ([12.0, 3.0], 0.5), ([-0.226], 0.0005)],
)
def test_tolerance_is_half_of_the_last_printed_digit(numbers, half):
    """The longest number of the column counts, since zeros at an end are dropped."""
    assert published.tolerance(pd.Series(numbers)) == pytest.approx(half)


def test_printed_numbers_stand_beside_ours():
    """Models that one side lacks are left out."""
    printed = pd.DataFrame({"model": ["a", "b", "c"], "delta": [1.25, 2.5, 3.0]})
    here = pd.DataFrame({"model": ["a", "b", "d"], "delta": [1.255, 2.51, 0.0]}).set_index("model")
    both = published.beside(printed, here, ["model"], ["delta"])
    assert both.model.tolist() == ["a", "b"]
    assert both.difference.tolist() == pytest.approx([0.005, 0.01])
    assert both.agrees.tolist() == [True, False]


@pytest.mark.parametrize(
    ("of_readings", "verdict"),
    [
        (["opposite", "opposite"], "opposite"),
        (["opposite", np.nan], "opposite"),
        (["same direction", "cannot be told"], "depends on the reading"),
        (["no difference", "cannot be told"], "cannot be told"),
    ],
)
def test_readings_that_differ_have_one_verdict(of_readings, verdict):
    """A reading without a direction contradicts only one that has it."""
    assert published.combined_verdict(pd.Series(of_readings)) == verdict


def test_every_printed_table_opens():
    """One number of each paper, by hand from its text."""
    for study in ("empathy_gap", "biased_samaritan", "giebench", "stereomap"):
        for file in (PUBLISHED / study).glob("table*.csv"):
            assert len(published.load(study, int(file.stem[5:7])))
    deltas = published.load("empathy_gap", 2).set_index(["model", "category", "prompt_setting"])
    assert deltas.delta["Llama-3.1-8B", "Race or Ethnicity", "P0,S0,T0"] == 1.73
    ages = published.load("biased_samaritan", 1).set_index(["model", "group"])
    assert ages.score_difference["gpt-4o", "senior"] == 2.12
    changes = published.load("giebench", 5).set_index(["model", "category"])
    assert changes.delta_pct["gpt-3.5-turbo", "Country"] == -5.2
    clusters = published.load("stereomap", 2).set_index(["source", "group"])
    assert clusters.warmth["Fiske et al. (2002)", "Asians"] == 3.23


def test_printed_numbers_stand_above_ours_in_their_own_order():
    printed = pd.DataFrame({"model": ["z", "z", "b"], "word": ["d", "c", "d"], "mean": [1, 2, 3]})
    here = pd.DataFrame({"model": ["a"], "word": ["c"], "mean": [4.125]})
    table = published.layout(printed, here, ["model"], ["word"], "{mean:.2f}")
    assert table.index.tolist() == ["z", "b", "a"]
    assert table.columns.tolist() == ["d", "c"]
    assert table.to_numpy().tolist() == [["1.00", "2.00"], ["3.00", ""], ["", "4.12"]]
