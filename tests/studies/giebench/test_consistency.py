"""What GIEBench's printed numbers say about each other, on small tables counted by hand."""

import numpy as np
import pandas as pd

from ingroup.studies.giebench import consistency

NAMES = ["identity_tuple", "identity_i", "identity_j", "condition", "accuracy_pct_printed"]


def tuples(*rows):
    """Rows of table 7: both identities, the condition and the printed percentage."""
    table = pd.DataFrame([(f"({i}, {j})", i, j, *rest) for i, j, *rest in rows], columns=NAMES)
    table["accuracy_pct"] = table["accuracy_pct_printed"].astype(float)
    return table


def test_a_percentage_is_a_whole_number_of_some_n():
    # 33.3 is 1 of 3 and 2 of 6; 50.0 is 2 of 4 and 3 of 6.
    is_whole = consistency.can_be_whole(pd.Series(["33.3", "50.0"]), np.array([3, 4, 6]))

    assert is_whole.tolist() == [[True, False, True], [False, True, True]]


def test_the_fitting_accuracies_of_each_category_are_counted():
    cells = pd.DataFrame(
        {
            "category": ["Skin", "Skin", "Age"],
            "accuracy_pct_printed": ["33.3", "66.7", "50.0"],
        }
    )

    counts = consistency.fitting_n(cells, np.array([3, 4]))

    assert counts.to_dict() == {"Skin": {3: 2, 4: 0}, "Age": {3: 0, 4: 1}}


def test_accuracies_stand_by_table_and_model_and_are_found_by_row():
    first = pd.DataFrame(
        {"model": ["a", "a"], "category": ["Age", "Skin"], "accuracy_pct": [10.0, 20.0]}
    )
    second = first.assign(accuracy_pct=[30.0, 50.0])

    wide = consistency.accuracies({6: first, 1: second})

    assert wide.loc[(1, "a")].to_dict() == {"Age": 30.0, "Skin": 50.0}
    change = wide.loc[1] - wide.loc[6]
    rows = pd.DataFrame({"model": ["a", "a", "b"], "category": ["Skin", "Age", "Age"]})
    numbers = consistency.number_of_each_row(change, rows)
    assert numbers[:2].tolist() == [30.0, 20.0]
    assert np.isnan(numbers[2])


def test_a_tuple_is_matched_in_either_order():
    other = tuples(("Y", "X", "cot", "40.0"), ("P", "Q", "cot", "60.0"))
    table = tuples(
        ("P", "Q", "cot", "61.0"),
        ("X", "Y", "cot", "40.0"),
        ("X", "Y", "id", "40.0"),
    )

    match = consistency.match_tuples(table, other)

    assert match["order"].to_list() == ["same", "reversed", ""]
    assert match["accuracy_pct"].to_list()[:2] == [60.0, 40.0]
    assert np.isnan(match["accuracy_pct"][2])


def test_the_smallest_n_that_fits_all_conditions_is_found():
    table = tuples(
        ("P", "Q", "cot", "33.3"),
        ("P", "Q", "id", "50.0"),
        ("X", "Y", "cot", "33.3"),
        ("X", "Y", "id", "0.1"),
    )

    assert consistency.common_n(table, np.arange(1, 20)).to_list() == [6, 6, 0, 0]


def test_the_n_of_tuples_add_up_to_the_questions_of_a_category():
    # Each of three identities is in two tuples. 30.0 is of 10 and 7.1 of 14; 50.0 is of any n.
    rows = [
        ("Tall", "Small", "id", "30.0"),
        ("Mid's", "Tall", "id", "7.1"),
        ("Small", "Mid's", "id", "50.0"),
        ("Rich", "Poor", "id", "50.0"),
        ("Rich", "Other", "id", "50.0"),
    ]
    identities = pd.DataFrame(
        {
            "category": ["Size"] * 3 + ["Class"] * 3,
            "identity": ["tall", "small", "mids", "Rich", "Poor", "Other"],
            "n_topics": [21] * 3 + [9] * 3,
        }
    )

    table = consistency.questions_of_tuples(tuples(*rows), identities, np.array([10, 14, 16]))

    # 10 + 14 + 16 = 40 are twice 20, the nearest to 21 of 17, 19 and 20. Those of Class are
    # in one or two tuples.
    assert table.index.to_list() == ["Size"]
    assert table.loc["Size"].to_dict() == {"from table 7": 20, "table 8": 21}
