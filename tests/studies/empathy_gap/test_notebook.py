"""What the notebooks themselves compute: delta counted anew, and a block's row of Table 2."""

from types import SimpleNamespace

import nbformat
import numpy as np
import pandas as pd
import pytest

from ingroup import paths, published
from ingroup.notebook import by_key
from ingroup.stats.permutation import own_generator
from ingroup.studies.empathy_gap import answers, drawing, statistics, stimuli
from ingroup.studies.empathy_gap.design import trials
from ingroup.studies.empathy_gap.ground_truth import delta_counted_anew

DEFAULT = "P0,S0,T0"
KEY = ["model", "setting", "category"]
PEOPLE = stimuli.identities("Religion")


@pytest.fixture
def block():
    """The trials of five narratives about Religion."""
    (block,) = trials(stimuli.load_events("sample", 5), [DEFAULT], ["Religion"]).blocks
    return block


@pytest.fixture
def values(block):
    """A rating of every trial but one, which is refused."""
    values = np.random.default_rng(3).integers(0, 100, block.shape).astype(float)
    values[1, 2, 3] = np.nan
    return values


@pytest.fixture
def said(values):
    """What was said, in the order of trials: the text of every rating."""
    texts = []
    for value in values.ravel():
        texts.append("I can't answer that." if np.isnan(value) else f"{value:.0f}")

    return pd.DataFrame({"text": pd.Series(texts, dtype=object)})


@pytest.mark.parametrize("exclusion", ["listwise", "pairwise"])
def test_delta_is_counted_anew_from_what_was_said(block, values, said, exclusion):
    """By texts alone, and no function of the study: the same delta, and another after a slip."""
    same = statistics.same_group(PEOPLE.group[1:])
    delta = statistics.empathy_gap(statistics.gap_matrix(values, exclusion), same)
    swapped = statistics.gap_matrix(values[:, ::-1], exclusion)
    wrong_delta = statistics.empathy_gap(swapped, same)

    counted = delta_counted_anew(said, block, exclusion)

    assert counted == pytest.approx(delta, abs=1e-12)
    assert abs(counted - wrong_delta) > 0.01


def test_delta_counted_anew_is_nan_where_no_cell_differs(block, said):
    always_50 = said.assign(text="50")

    counted = delta_counted_anew(always_50, block, "listwise")

    assert np.isnan(counted)


def test_delta_is_counted_anew_from_the_means_of_rounds(block, said):
    """A second round of 50 brings every rating half as far from 50, and delta stays."""
    rounds = pd.concat([said, said.assign(text="50")], axis=1)

    counted = delta_counted_anew(rounds, block, "pairwise")

    of_one_round = delta_counted_anew(said, block, "pairwise")
    assert counted == pytest.approx(of_one_round, abs=0.2)


def table_2(ratings):
    """Table 2 by the notebook's own cell."""
    notebook = nbformat.read(paths.NOTEBOOKS / "10_empathy_gap.ipynb", as_version=4)
    (source,) = [cell.source for cell in notebook.cells if cell.source.startswith("gaps = {}")]
    names = {
        "statistics": statistics,
        "layouts": SimpleNamespace(gaps=lambda table: table),
        "by_key": by_key,
        "own_generator": own_generator,
        "same": dict.fromkeys("ab", np.eye(4, dtype=bool)),
        "EXCLUSION": "listwise",
        "N_RESAMPLES": 9,
        "SEED": 0,
        "KEY": KEY,
        "ratings": ratings,
        "summary": pd.DataFrame({"std": [1.0] * len(ratings)}),
        "out": SimpleNamespace(write=lambda table, _: table),
    }
    exec(source, names)
    return names["table02"].set_index(KEY)


def test_a_block_has_the_same_intervals_and_p_whatever_else_is_asked():
    """Table 2 of all blocks and of one of them; and its families."""
    rng = np.random.default_rng(1)
    status = np.zeros((5, 5, 6), dtype=np.int8)
    keys = [
        ("one", "P0,S0,T0", "a"),
        ("one", "P0,S0,T0", "b"),
        ("one", "P1,S0,T0", "a"),
    ]
    ratings = {}
    for key in keys:
        ratings[key] = answers.Ratings(rng.normal(50, 5, (5, 5, 6)), status)
    second = keys[1]

    of_all = table_2(ratings)
    of_second = table_2({second: ratings[second]})

    columns = ["delta", "low", "high", "null_low", "null_high", "p_two_sided", "p_groups"]
    pd.testing.assert_frame_equal(of_all.loc[[second], columns], of_second[columns])
    assert of_all.holm_tests.tolist() == [2, 2, 1]
    assert of_second.holm_tests.tolist() == [1]
    assert of_all.p_groups_holm_least.tolist() == pytest.approx([0.2, 0.2, 0.1])  # 9 draws


def test_every_cluster_of_table_4_has_its_colour_of_the_world_cultural_map():
    colours = drawing.CULTURAL_MAP

    assert set(colours) == set(published.load("empathy_gap", 4).cluster)
    assert len(set(colours.values())) == 8


def test_the_bands_are_those_that_table_2_marks():
    printed = published.load("empathy_gap", 2)

    bands = statistics.band(printed.delta)
    at_the_edges = statistics.band(pd.Series([1.0, 1.001, 0.0, -0.001, np.nan]))

    assert len(printed) == 84
    assert bands.tolist() == printed.highlight.tolist()
    assert at_the_edges.tolist() == ["0_to_1", "above_1", "0_to_1", "negative", ""]
