"""What an earlier run of the same name left is not taken for this one's."""

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from ingroup import paths
from ingroup.commands.report import counted
from ingroup.notebook import Output


@pytest.fixture
def out(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    return Output("giebench", "mine")


def names(folder):
    return sorted(file.name for file in folder.iterdir())


def test_a_dropped_table_and_figure_are_gone_and_others_stay(out):
    for name in ("p_right", "p_right_of_pairs"):
        out.write(pd.DataFrame({"model": ["m"], "p": [0.5]}), name)
        out.save(plt.figure(), name)
    out.drop("p_right")
    out.drop("was never there")
    assert names(out.tables) == ["p_right_of_pairs.csv"]
    assert names(out.figures) == ["p_right_of_pairs.pdf", "p_right_of_pairs.png"]


def test_a_table_without_rows_leaves_no_latex_of_the_rows_before(out):
    columns = ["model", "prompt", "category", "accuracy", "n", "right"]
    table = pd.DataFrame([("m", "COT", "Age", 50.0, 2, 1)], columns=columns)
    out.write(table, "table01_02_06_accuracy")
    assert names(out.tables) == ["table01_02_06_accuracy.csv", "table01_02_06_accuracy.tex"]
    out.write(table.head(0), "table01_02_06_accuracy")
    assert names(out.tables) == ["table01_02_06_accuracy.csv"]


def test_another_checkpoint_is_named_once_beside_printed_numbers(out, capsys):
    later = "DeepSeek-V3-0324"
    rows = {"model": [later, later, "deepseek-v3"], "verdict": "differs"}
    versus = pd.DataFrame(rows)
    sentence = (
        f"{later} is another checkpoint than the paper's: this alone may explain a difference"
    )
    for table, index in ((versus, False), (versus.set_index("model"), True)):
        out.write(table, "printed_versus_here", index)
        said = out.read("printed_versus_here").checkpoint
        assert said.notna().tolist() == [True, False, False]
        assert said[0] == f"{sentence} from the printed numbers."
        assert capsys.readouterr().out.splitlines() == [said[0]]
    (line,) = counted(out.tables)[1:]
    assert line == said[0]
    out.write(versus[versus.model == "deepseek-v3"], "printed_versus_here")
    assert "checkpoint" not in out.read("printed_versus_here")
    out.write(versus, "other_table")
    assert "checkpoint" not in out.read("other_table")
