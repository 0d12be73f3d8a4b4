"""What the notebooks themselves compute: delta counted anew, and a block's row of Table 2."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from cells import defined
from ingroup import published
from ingroup.design import Design
from ingroup.families import corrected
from ingroup.studies.empathy_gap import answers, statistics, stimuli
from ingroup.studies.empathy_gap.design import trials

DEFAULT = "P0,S0,T0"
KEY = ["model", "setting", "category"]


def test_the_notebook_counts_delta_anew_from_what_was_said():
    """By texts alone, and no function of the study: the same delta, and another after a slip."""
    people = {"Religion": stimuli.identities("Religion")}
    (block,) = trials(stimuli.load_events("sample", 5), [DEFAULT], ["Religion"]).blocks
    values = np.random.default_rng(3).integers(0, 100, block.shape).astype(float)
    values[1, 2, 3] = np.nan
    texts = [f"{x:.0f}" if x == x else "I can't answer that." for x in values.ravel()]
    told = pd.DataFrame({"text": pd.Categorical(texts)})
    call = SimpleNamespace(design=Design([block]), labels={"category": "Religion"})

    for exclusion in ("listwise", "pairwise"):
        count = defined(
            "11_empathy_gap_beyond", "by_definition", asked=[], rated=list, np=np, pd=pd,
            people=people, EXCLUSION=exclusion, answers=answers,
            stored=lambda call: SimpleNamespace(read=lambda columns: told),
        )  # fmt: skip
        same = statistics.same_group(people["Religion"].group[1:])
        here = statistics.empathy_gap(statistics.gap_matrix(values, exclusion), same)

        assert count([call]) == pytest.approx(here, abs=1e-12)

        turned = statistics.gap_matrix(values[:, ::-1], exclusion)
        assert abs(count([call]) - statistics.empathy_gap(turned, same)) > 0.01


def test_a_block_has_the_same_intervals_and_p_whatever_else_is_asked():
    """Table 2 by the notebook's own cell, of all blocks and of one of them; and its families."""
    rng = np.random.default_rng(1)
    keys = [
        ("one", "P0,S0,T0", "a"),
        ("one", "P0,S0,T0", "b"),
        ("one", "P1,S0,T0", "a"),
    ]
    status = np.zeros((5, 5, 6), dtype=np.int8)
    ratings = {key: answers.Ratings(rng.normal(50, 5, (5, 5, 6)), status) for key in keys}

    def by_key(rows):
        return pd.DataFrame.from_dict(rows, "index").rename_axis(KEY).reset_index()

    def table(some):
        own = {key: ratings[key] for key in some}
        drawing = defined("10_empathy_gap", "drawing", **{
            "np": np, "pd": pd, "statistics": statistics, "corrected": corrected, "by_key": by_key,
            "same": dict.fromkeys("ab", np.eye(4, dtype=bool)), "EXCLUSION": "listwise",
            "N_RESAMPLES": 9, "SEED": 0, "ratings": own,
            "spread": pd.DataFrame({"std": [1.0] * len(own)}),
        })  # fmt: skip
        return drawing.__globals__["table02"].set_index(KEY)

    whole = table(keys)
    alone = table(keys[1:2])
    own = ["delta", "low", "high", "null_low", "null_high", "p_two_sided", "p_groups"]

    pd.testing.assert_frame_equal(whole.loc[keys[1:2], own], alone[own])
    assert whole.holm_tests.tolist() == [2, 2, 1]
    assert alone.holm_tests.tolist() == [1]
    assert whole.p_groups_holm_least.tolist() == pytest.approx([0.2, 0.2, 0.1])  # 9 draws


def test_every_cluster_of_table_4_has_its_colour_of_the_world_cultural_map():
    nothing = SimpleNamespace(read=lambda name: pd.DataFrame({"model": []}))
    colours = defined("10_empathy_gap", "figure4", out=nothing).__globals__["CULTURAL_MAP"]
    assert set(colours) == set(published.load("empathy_gap", 4).cluster)
    assert len(set(colours.values())) == 8


def test_the_bands_are_those_that_table_2_marks():
    printed = published.load("empathy_gap", 2)
    assert len(printed) == 84

    band = defined("10_empathy_gap", "band", np=np, table02=pd.DataFrame({"delta": [np.nan]}))
    assert band(printed.delta).tolist() == printed.highlight.tolist()
    assert band(pd.Series([1.0, 1.001, 0.0, -0.001, np.nan])).tolist() == [
        *("0_to_1", "above_1", "0_to_1", "negative", ""),
    ]
