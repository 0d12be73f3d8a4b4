"""Models compared: which pairs, which counts, from effects made by hand."""

from types import SimpleNamespace

import pandas as pd
import pytest
from matplotlib import pyplot as plt

from ingroup import comparison
from ingroup.inference import StoreError


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


class Profile:
    """Every model has two effects of three items; of the second effect an item lacks a value."""

    design = SimpleNamespace(jobs=lambda values: values["MODELS"])

    @staticmethod
    def effects(values, model):
        if model == "some/silent":
            raise StoreError("no answers of some/silent")
        return pd.DataFrame({"bias": [1.0, 2.0, 3.0], "gap": [1.0, None, 3.0]})


@pytest.fixture
def _profile(monkeypatch):
    monkeypatch.setattr(comparison, "module_of", lambda *_: Profile)
    job = SimpleNamespace(read_as="expected")
    monkeypatch.setattr(comparison, "rated_by", lambda model, jobs: [job])


@pytest.mark.usefixtures("_profile")
def test_the_items_with_a_value_are_counted_and_silent_models_are_named():
    read = comparison.read_effects({"first": {}, "second": {}}, ["calibrant", "some/silent@vllm"])

    assert list(read.effects) == [("first", "calibrant"), ("second", "calibrant")]
    assert read.items.to_dict("list") == {
        "study": ["first", "first", "second", "second"],
        "model": ["calibrant"] * 4,
        "reading": ["expected"] * 4,
        "effect": ["bias", "gap", "bias", "gap"],
        "items": [3, 2, 3, 2],
    }
    assert read.missing.to_dict("list") == {
        "study": ["first", "second"],
        "model": ["some/silent@vllm"] * 2,
        "reason": ["no answers of some/silent"] * 2,
    }


@pytest.mark.usefixtures("_profile")
def test_where_no_model_answered_the_tables_have_their_columns():
    read = comparison.read_effects({"first": {}}, ["some/silent"])
    assert read.items.empty
    assert list(read.items) == ["study", "model", "reading", "effect", "items"]
    assert len(read.missing) == 1


def test_of_several_models_a_control_meets_only_controls():
    keys = [
        ("a", "calibrant"),
        ("a", "calibrant-null"),
        ("a", "some/one@vllm"),
        ("a", "some/other"),
        ("b", "calibrant"),
    ]
    assert comparison.pairs(keys, n_models=4) == [
        ("a", "calibrant", "calibrant-null"),
        ("a", "some/one@vllm", "some/other"),
    ]


def test_of_two_models_one_may_be_a_control():
    keys = [("a", "calibrant@vllm"), ("a", "some/one"), ("b", "calibrant@vllm")]
    assert comparison.pairs(keys, n_models=2) == [("a", "calibrant@vllm", "some/one")]


def differences():
    """Four effects of one pair, and one of another."""
    first = pd.DataFrame(
        {
            "effect": ["more", "no_less", "LGBT people", "close"],
            "difference": [2.0, -1.0, 1.0, 3.0],
            "low": [1.0, -2.0, 0.5, 2.0],
            "high": [3.0, 0.5, 1.5, 4.0],
            "p_holm": [0.01, 0.02, 0.04, 0.05],
        }
    )
    second = first[first.effect == "close"]
    return {("s", "m", "some/n@vllm"): first, ("s", "m", "k"): second}


def test_tables_of_pairs_are_joined_in_their_order():
    table = comparison.join_comparisons(differences())
    assert list(table)[:4] == ["study", "model", "other_model", "effect"]
    assert table.index.tolist() == [0, 1, 2, 3, 4]
    assert table.other_model.tolist() == ["some/n@vllm"] * 4 + ["k"]
    assert table.difference.tolist() == [2.0, -1.0, 1.0, 3.0, 3.0]


def test_without_a_pair_nothing_differs():
    table = comparison.join_comparisons({})
    assert table.empty
    assert comparison.counts(table).empty


def test_differences_are_counted_by_direction():
    """A corrected p of 0.05 is no difference."""
    counts = comparison.counts(comparison.join_comparisons(differences()))
    assert counts.index.tolist() == [("s", "m", "some/n@vllm"), ("s", "m", "k")]
    assert counts.effects.tolist() == [4, 1]
    assert counts.first_has_more.tolist() == [2, 0]
    assert counts.second_has_more.tolist() == [1, 0]


def test_a_model_is_named_with_its_engine_where_the_entry_names_one():
    assert comparison.model_title("smollm2-135m-instruct") == "SmolLM2-135M"
    assert comparison.model_title("smollm2-135m-instruct@vllm") == "SmolLM2-135M (vllm)"
    assert comparison.model_title("some/net") == "net"


def test_a_pair_is_a_panel_and_an_effect_a_line():
    """Names of groups stay as the study has them; keys of the code become words."""
    fig = comparison.draw(comparison.join_comparisons(differences()), "points")
    titles = [ax.get_title() for ax in fig.axes]
    assert titles == ["m\nminus n (vllm)", "m\nminus k"]
    lines = [label.get_text() for label in fig.axes[0].get_yticklabels()]
    assert lines == ["More", "No Less", "LGBT people", "Close"]
    assert fig.axes[0].get_xlabel() + fig.axes[1].get_xlabel() == "difference in points"
    (key,) = fig.legends
    assert key.get_title().get_text().endswith(": difference of two models")
    names = [text.get_text() for text in key.get_texts()]
    assert names == ["p < 0.05 after Holm's correction", "not so", "95 % interval"]
