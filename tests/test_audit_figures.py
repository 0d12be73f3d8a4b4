"""The figure of the audit: a tick for each printed number."""

import pandas as pd
import pytest
from matplotlib import colors

from ingroup import audit_figures

WORDS = {"mean std": "mean and SD", "llama31 8b": "Llama", " id": " ID"}


def test_tables_are_named_by_their_files(tmp_path):
    for name in ("a/table03_mean_std_llama31_8b.csv", "b/table12_id_of_idle_id.csv", "b/other.csv"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.touch()

    names = audit_figures.table_names(tmp_path, WORDS)

    assert names == {("a", "Table 3"): "mean and SD Llama", ("b", "Table 12"): "id of idle ID"}


@pytest.fixture
def numbers():
    """A table of three numbers, a text, and a table that is too wide for a line."""
    wide = [("b", "Table 1", column, "holds") for column in "xy" for _ in range(150)]
    rows = [
        ("a", "Table 1", "x", "holds"),
        ("a", "Table 1", "x", "contradicts"),
        ("a", "Table 1", "y", "contradicts"),
        ("a", "Text", "printed", "holds"),
        *wide,
    ]
    return pd.DataFrame(rows, columns=["paper", "place", "column", "verdict"])


def test_each_number_is_a_tick_and_each_place_is_counted(numbers):
    titles = {"a": "Paper A", "b": "Paper B"}
    names = {("a", "Table 1"): "means", ("b", "Table 1"): "changes"}

    fig = audit_figures.printed_numbers(numbers, titles, names)

    (ax,) = fig.axes
    n_ticks = {}
    for lines in ax.collections:
        colour = colors.to_hex(lines.get_color()[0]).upper()
        n_ticks[colour] = n_ticks.get(colour, 0) + len(lines.get_segments())
    drawn = {
        verdict: n_ticks.get(colour, 0) for verdict, (colour, _) in audit_figures.STYLE.items()
    }
    assert drawn["holds"] == 302
    assert drawn["contradicts"] == 2
    assert sum(drawn.values()) == len(numbers)

    texts = [text.get_text() for text in ax.texts]
    # Each line has its name; the first line of a place has the counts of all its numbers.
    assert texts[:3] == ["means   Table 1", "3", "2"]
    assert texts[3:6] == ["phrases and numbers   Text", "1", ""]
    assert texts[6:10] == ["changes   Table 1", "300", "", "y"]
    assert texts[10:] == ["Paper A", "Paper B", "numbers", "contradict"]
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["holds", "contradicts"]
