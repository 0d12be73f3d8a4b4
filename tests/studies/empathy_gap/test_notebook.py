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
PEOPLE = stimuli.identities("Religion")


def counter_of_delta(exclusion, texts):
    """The notebook's function that computes delta from these texts."""
    stored_texts = pd.DataFrame({"text": pd.Categorical(texts)})
    store = SimpleNamespace(read=lambda columns: stored_texts)
    return defined(
        "11_empathy_gap_beyond",
        "by_definition",
        asked=[],
        rated=list,
        np=np,
        pd=pd,
        people={"Religion": PEOPLE},
        EXCLUSION=exclusion,
        answers=answers,
        stored=lambda call: store,
    )


@pytest.mark.parametrize("exclusion", ["listwise", "pairwise"])
def test_the_notebook_counts_delta_anew_from_what_was_said(exclusion):
    """By texts alone, and no function of the study: the same delta, and another after a slip."""
    (block,) = trials(stimuli.load_events("sample", 5), [DEFAULT], ["Religion"]).blocks
    values = np.random.default_rng(3).integers(0, 100, block.shape).astype(float)
    values[1, 2, 3] = np.nan
    texts = []
    for value in values.ravel():
        texts.append("I can't answer that." if np.isnan(value) else f"{value:.0f}")

    same = statistics.same_group(PEOPLE.group[1:])
    delta = statistics.empathy_gap(statistics.gap_matrix(values, exclusion), same)
    swapped = statistics.gap_matrix(values[:, ::-1], exclusion)
    wrong_delta = statistics.empathy_gap(swapped, same)
    call = SimpleNamespace(design=Design([block]), labels={"category": "Religion"})

    counted = counter_of_delta(exclusion, texts)([call])

    assert counted == pytest.approx(delta, abs=1e-12)
    assert abs(counted - wrong_delta) > 0.01


def by_key(rows):
    """A table of rows by key."""
    return pd.DataFrame.from_dict(rows, "index").rename_axis(KEY).reset_index()


def table_2(ratings):
    """Table 2 by the notebook's own cell."""
    drawing = defined(
        "10_empathy_gap",
        "drawing",
        np=np,
        pd=pd,
        statistics=statistics,
        corrected=corrected,
        by_key=by_key,
        same=dict.fromkeys("ab", np.eye(4, dtype=bool)),
        EXCLUSION="listwise",
        N_RESAMPLES=9,
        SEED=0,
        ratings=ratings,
        spread=pd.DataFrame({"std": [1.0] * len(ratings)}),
    )
    return drawing.__globals__["table02"].set_index(KEY)


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
    no_table = SimpleNamespace(read=lambda name: pd.DataFrame({"model": []}))
    figure4 = defined("10_empathy_gap", "figure4", out=no_table)

    colours = figure4.__globals__["CULTURAL_MAP"]

    assert set(colours) == set(published.load("empathy_gap", 4).cluster)
    assert len(set(colours.values())) == 8


def test_the_bands_are_those_that_table_2_marks():
    printed = published.load("empathy_gap", 2)
    no_delta = pd.DataFrame({"delta": [np.nan]})
    band = defined("10_empathy_gap", "band", np=np, table02=no_delta)

    bands = band(printed.delta)
    at_the_edges = band(pd.Series([1.0, 1.001, 0.0, -0.001, np.nan]))

    assert len(printed) == 84
    assert bands.tolist() == printed.highlight.tolist()
    assert at_the_edges.tolist() == ["0_to_1", "above_1", "0_to_1", "negative", ""]
