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
from ingroup.studies.empathy_gap.planted import counted_anew

DEFAULT = "P0,S0,T0"
KEY = ["model", "setting", "category"]


def test_delta_is_counted_anew_from_what_was_said():
    """By texts alone, and no function of the study: the same delta, and another after a slip."""
    (block,) = trials(stimuli.load_events("sample", 5), [DEFAULT], ["Religion"]).blocks
    values = np.random.default_rng(3).integers(0, 100, block.shape).astype(float)
    values[1, 2, 3] = np.nan
    texts = [f"{x:.0f}" if x == x else "I can't answer that." for x in values.ravel()]
    told = pd.DataFrame({"text": pd.Series(texts, dtype=object)})
    same = statistics.same_group(stimuli.identities("Religion").group[1:])
    for exclusion in ("listwise", "pairwise"):
        anew = counted_anew(told, block, exclusion)
        here = statistics.empathy_gap(statistics.gap_matrix(values, exclusion), same)
        assert anew == pytest.approx(here, abs=1e-12)
        turned = statistics.gap_matrix(values[:, ::-1], exclusion)
        assert abs(anew - statistics.empathy_gap(turned, same)) > 0.01
    assert np.isnan(counted_anew(told.assign(text="50"), block, "listwise"))
    rounds = pd.concat([told, told.assign(text="50")], axis=1)  # half as far from 50
    assert counted_anew(rounds, block, "pairwise") == pytest.approx(anew, abs=0.2)


def test_a_block_has_the_same_intervals_and_p_whatever_else_is_asked():
    """Table 2 by the notebook's own cell, of all blocks and of one of them; and its families."""
    rng = np.random.default_rng(1)
    keys = [("one", "P0,S0,T0", "a"), ("one", "P0,S0,T0", "b"), ("one", "P1,S0,T0", "a")]
    status = np.zeros((5, 5, 6), dtype=np.int8)
    ratings = {key: answers.Ratings(rng.normal(50, 5, (5, 5, 6)), status) for key in keys}

    (cell,) = [
        cell.source
        for cell in nbformat.read(paths.NOTEBOOKS / "10_empathy_gap.ipynb", 4).cells
        if cell.source.startswith("gaps = {}")
    ]

    def table(some):
        own = {key: ratings[key] for key in some}
        names = {
            "statistics": statistics, "by_key": by_key, "own_generator": own_generator,
            "same": dict.fromkeys("ab", np.eye(4, dtype=bool)), "EXCLUSION": "listwise",
            "N_RESAMPLES": 9, "SEED": 0, "ratings": own, "KEY": KEY,
            "spread": pd.DataFrame({"std": [1.0] * len(own)}),
            "out": SimpleNamespace(write=lambda table, _: table),
        }  # fmt: skip
        exec(cell, names)
        return names["table02"].set_index(KEY)

    whole, alone = table(keys), table(keys[1:2])
    own = ["delta", "low", "high", "null_low", "null_high", "p_two_sided", "p_groups"]
    pd.testing.assert_frame_equal(whole.loc[keys[1:2], own], alone[own])
    assert whole.holm_tests.tolist() == [2, 2, 1]
    assert alone.holm_tests.tolist() == [1]
    assert whole.p_groups_holm_least.tolist() == pytest.approx([0.2, 0.2, 0.1])  # 9 draws


def test_every_cluster_of_table_4_has_its_colour_of_the_world_cultural_map():
    assert set(drawing.CULTURAL_MAP) == set(published.load("empathy_gap", 4).cluster)
    assert len(set(drawing.CULTURAL_MAP.values())) == 8


def test_the_bands_are_those_that_table_2_marks():
    printed = published.load("empathy_gap", 2)
    assert len(printed) == 84
    assert statistics.band(printed.delta).tolist() == printed.highlight.tolist()
    assert statistics.band(pd.Series([1.0, 1.001, 0.0, -0.001, np.nan])).tolist() == [
        *("0_to_1", "above_1", "0_to_1", "negative", ""),
    ]
