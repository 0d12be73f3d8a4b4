"""What StereoMap's printed numbers say about each other, on small tables counted by hand."""

import numpy as np
import pandas as pd
import pytest

from ingroup.studies.stereomap import consistency


@pytest.fixture
def clusters():
    """Two sources; model a has two clusters, and a group without a cluster."""
    rows = [
        ("a", 1, "Rich", 4.0, 2.5, ">"),
        ("a", 1, "CEOs", 4.0, 2.5, ">"),
        ("a", 2, "Elderly people", 2.0, 3.0, "="),
        ("a", 3, "Others", np.nan, np.nan, ""),
        ("b", 1, "Rich", 3.0, 3.0, "="),
        ("b", 1, "Elderly", 3.0, 3.0, "="),
    ]
    names = ["source", "cluster_order", "group", "competence", "warmth", "sign"]
    table = pd.DataFrame(rows, columns=names)
    for column in ("competence", "warmth"):
        table[f"{column}_printed"] = table[column].map("{:.2f}".format)
    return table


def test_each_cluster_has_its_means_once_and_the_sign_they_point_to(clusters):
    means = consistency.cluster_means(clusters)

    assert means["group"].to_list() == ["Rich", "Elderly people", "Rich"]
    assert means["expected"].to_list() == [">", "<", "="]
    assert means["shown"].to_list() == ["4.00>2.50", "2.00=3.00", "3.00=3.00"]


def test_a_group_is_found_with_the_others_of_its_cluster(clusters):
    rich = consistency.clusters_with(clusters, "Rich")

    assert rich["groups"].to_dict() == {"a": {"Rich", "CEOs"}, "b": {"Rich", "Elderly"}}
    assert rich["shown"].to_dict() == {"a": "4.0>2.5", "b": "3.0=3.0"}
    assert rich["means"].to_dict() == {"a": (4.0, 2.5), "b": (3.0, 3.0)}
    assert rich["is_highest"].all()

    # 2 and 3 are together less than 4 and 2.5.
    elderly = consistency.clusters_with(clusters, "Elderly people")
    assert elderly["is_highest"].to_dict() == {"a": False}


@pytest.mark.parametrize(
    ("sources", "groups", "sign", "expected"),
    [
        (["a"], ["Rich", "CEOs"], ">", True),
        (["a"], ["Rich", "CEOs"], "", True),
        (["a"], ["Rich", "CEOs"], "<", False),
        (["a", "b"], ["Rich"], "", True),
        (["a", "b"], ["Rich"], ">", False),
        (["a", "b"], ["Rich", "CEOs"], "", False),
        (["a", "b"], ["CEOs"], "", False),  # b does not have them
    ],
)
def test_groups_share_a_cluster_in_each_source_or_not(clusters, sources, groups, sign, expected):
    assert consistency.share_cluster(clusters, sources, groups, sign) is expected


def test_all_columns_get_one_spelling(clusters):
    groups = consistency.one_spelling(clusters)["group"]

    assert groups.to_list() == ["Rich", "CEOs", "Elderly", "Others", "Rich", "Elderly"]


@pytest.fixture
def correlations():
    """Four correlations of one source, the second with too few stars, and one of another."""
    table = pd.DataFrame(
        {
            "source": ["a", "a", "a", "a", "b"],
            "spearman_rho": [0.2, -0.5, 0.3, 0.9999, 0.1],
            "spearman_rho_printed": ["0.20", "-0.50", "0.30", "0.9999", "0.10"],
            "significance": ["*", "", "**", "***", "***"],
        }
    )
    return consistency.correlations(table)


def test_a_printed_correlation_lies_between_two_sizes(correlations):
    assert correlations["least"].to_list() == pytest.approx([0.195, 0.495, 0.295, 0.999, 0.095])
    assert correlations["most"].to_list() == pytest.approx([0.205, 0.505, 0.305, 0.999, 0.105])
    assert correlations["n_stars"].to_list() == [1, 0, 2, 3, 3]
    assert correlations["shown"].to_list() == ["0.20*", "-0.50", "0.30**", "0.9999***", "0.10***"]


def test_stars_are_counted_against_those_of_the_same_source(correlations):
    # -0.50 without a star is larger than 0.20* and 0.30**; 0.10*** is of another source.
    assert consistency.marks_against(correlations).to_list() == [1, 2, 1, 0, 0]


def test_correlations_that_may_round_from_one_number_are_not_against_each_other():
    table = pd.DataFrame(
        {
            "source": ["a", "a"],
            "spearman_rho": [0.2, 0.2],
            "spearman_rho_printed": ["0.20", "0.2"],
            "significance": ["*", ""],
        }
    )

    against = consistency.marks_against(consistency.correlations(table))

    assert against.to_list() == [0, 0]


def test_a_mark_is_right_if_all_best_n_make_it_right():
    # With 10 and 20, two marks of a are right, with 30 one; the first is wrong with 20.
    fits = pd.DataFrame(
        {
            10: [True, True, False, False],
            20: [False, True, True, True],
            30: [True, False, False, True],
        }
    )
    source = pd.Series(["a", "a", "a", "b"])

    marks = consistency.with_best_n(fits, source)

    assert marks["is_right"].to_list() == [False, True, False, True]
    assert marks["smallest_n"].to_list() == [10, 10, 10, 20]


def test_the_nearest_whole_numbers_have_the_mean_and_variance_of_real_ones():
    mean = pd.Series([2.4, 2.5])
    # 1, 1, 2, 3, 5 has 14 / 5 = 2.8 (n - 1 = 4), and 2.9 is no variance of five whole numbers.
    nearest = consistency.nearest_whole(mean, pd.Series([2.9, 2.9]), 5)

    assert nearest["mean"].to_list() == pytest.approx([2.4, 2.4])
    assert nearest["variance"].to_list() == pytest.approx([2.8, 2.8])
    assert np.var([1, 1, 2, 3, 5], ddof=1) == pytest.approx(2.8)


def test_an_n_is_possible_if_mean_and_variance_are_near_enough():
    table = pd.DataFrame(
        {
            "mean": [2.4, 2.5],
            "mean_printed": ["2.40", "2.50"],
            "variance": [2.8, 0.5],
            "variance_printed": ["2.80", "0.50"],
        }
    )

    fits = consistency.possible_n(table, [2, 5])

    # 2 and 3 have mean 2.5 and variance 0.5; two whole numbers have no mean of 2.4.
    assert fits[2].to_list() == [False, True]
    assert fits[5].to_list() == [True, False]


def test_a_list_is_sorted_from_either_end_and_damaged_rows_are_passed_over():
    table = pd.DataFrame(
        {
            "dimension": "Wealthy",
            "model": "a",
            "end": ["highest"] * 4 + ["lowest"] * 2,
            "mean": [4.0, 1.0, 3.5, 3.6, 1.5, 1.4],
            "text_flag": ["", "out_of_order", "", "", "", ""],
        }
    )

    verdicts = consistency.order_of_lists(table).to_list()

    expected = ["holds", "cannot be checked", "holds", "contradicts", "holds", "contradicts"]
    assert verdicts == expected


def test_a_phrase_is_looked_for_by_its_first_letters():
    table = pd.DataFrame(
        {
            "model": ["a", "a", "b"],
            "keyword": ["addicts stigmatized viewed", "stigmatizing", "poor (very)"],
        }
    )

    counts = consistency.models_with(table, ["stigmatized", "poor (", "rich"])

    assert counts == {"stigmatized": 1, "poor (": 1, "rich": 0}
