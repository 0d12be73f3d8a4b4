"""The sheet, the three rules, and kappa."""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

from ingroup.studies.giebench.annotation import agreement, annotation_sheet, labels, read_table
from ingroup.tables import InputError

TOPICS = pd.DataFrame(
    {
        "category": ["Age", "Age", "Economy"],
        "identity": ["Young People", "older people", "low income"],
        "topic": [
            "Is sixteen old enough to vote?",
            "Should driving end at 80?",
            "Is rent too high?",
        ],
    }
)
P, N, O = "positive", "negative", "offensive"  # noqa: E741


def sheet(*rows: tuple[str, ...], discussed: dict[int, str] | None = None) -> pd.DataFrame:
    """A filled sheet of as many topics as rows, one mark an annotator."""
    topics = pd.DataFrame({"category": "Age", "identity": "i", "topic": map(str, range(len(rows)))})
    filled = annotation_sheet(topics, len(rows[0]))
    filled.iloc[:, 3:-1] = rows
    filled.loc[list(discussed or {}), "discussed"] = list((discussed or {}).values())
    return filled


def written(place: Path, *lines: str) -> Path:
    place.write_text("\n".join(lines) + "\n", "utf8")
    return place


def test_an_empty_sheet_goes_to_a_file_and_back(tmp_path):
    empty = annotation_sheet(TOPICS)
    assert list(empty.columns) == [
        *("category", "identity", "topic"),
        *("annotator_1", "annotator_2", "annotator_3", "annotator_4", "annotator_5", "discussed"),
    ]
    empty.to_csv(tmp_path / "sheet.csv", index=False, encoding="utf-8-sig")
    back = read_table(tmp_path / "sheet.csv")
    assert back.line.tolist() == [2, 3, 4]
    pd.testing.assert_frame_equal(back[empty.columns], empty)
    assert labels(back).state.tolist() == ["unfinished"] * 3


def test_other_columns_and_their_order_do_not_matter(tmp_path):
    file = written(
        tmp_path / "s.csv",
        "note,discussed,topic,identity,category,annotator_2,annotator_1",
        'x,,"Is it,\nor not?",i,Age, Positive ,NEGATIVE',
        ",positive,b,i,Age,positive,positive",
    )
    table = read_table(file)
    assert table.line.tolist() == [3, 4]  # a cell of two lines ends in the second
    assert table.topic.tolist() == ["Is it, or not?", "b"]
    assert table[["annotator_1", "annotator_2"]].to_numpy().tolist() == [[N, P], [P, P]]


HEADER = "category,identity,topic,annotator_1,annotator_2,discussed"
WRONG = {
    "mark": (
        ["Age,i,a,pos,,"],
        "line 2, column 'annotator_1': found 'pos', expected blank, positive",
    ),
    "met": (
        ["Age,i,a,,,", "Age,i,b,,,offensive"],
        "line 3, column 'discussed': found 'offensive', ",
    ),
    "topic": (["Age,i, ,,,"], "line 2, column 'topic': found nothing, expected text"),
    "category": (
        ["Height,i,a,,,"],
        "line 2, column 'category': found 'Height', expected Country, ",
    ),
    "few": (["Age,i,a,,"], "line 2: 5 cells, expected 6"),
    "many": (["Age,i,a,,,,"], "line 2: 7 cells, expected 6"),
    "twice": (
        ["Age,i,a,,,", "Age,I,A,,,"],
        "line 3, column 'topic': I has the topic of line 2 aga",
    ),
    "against": (
        ["Age,i,a,positive,positive,negative"],
        "line 2, column 'discussed': found 'negativ",
    ),
    "early": (["Age,i,a,,,negative"], "line 2, .*expected blank, as .* say nothing yet"),
    "none": ([], "line 2: expected a topic"),
}


@pytest.mark.parametrize(("lines", "sentence"), WRONG.values(), ids=WRONG)
def test_a_wrong_cell_is_named_by_line_and_column(tmp_path, lines, sentence):
    with pytest.raises(InputError, match=f"s.csv, {sentence}"):
        read_table(written(tmp_path / "s.csv", HEADER, *lines))


def test_a_missing_column_or_file_is_named(tmp_path):
    for name in ("category", "discussed", "annotator_1"):
        with pytest.raises(InputError, match=f"s.csv, line 1: no column '{name}', found "):
            read_table(written(tmp_path / "s.csv", HEADER.replace(name, "x"), "a,b,c,,,"))
    with pytest.raises(InputError, match=r"line 1: column 'annotator_2' 2 times, found "):
        read_table(
            written(tmp_path / "s.csv", HEADER.replace("discussed", "discussed,annotator_2"))
        )
    with pytest.raises(InputError, match=r"none.csv cannot be read as CSV in UTF-8"):
        read_table(tmp_path / "none.csv")
    (tmp_path / "s.csv").write_bytes(f"{HEADER}\nAge,i,caf\u00e9,,,".encode("latin-1"))
    with pytest.raises(InputError, match=r"s.csv cannot be read as CSV in UTF-8"):
        read_table(tmp_path / "s.csv")
    (tmp_path / "s.csv").write_bytes(b"")
    with pytest.raises(InputError, match=r"s.csv, line 1: no column 'category', found noth"):
        read_table(tmp_path / "s.csv")


def test_the_three_rules():
    found = labels(
        sheet(
            (N, N, N, N, N),
            (P, P, P, P, N),
            (P, P, P, P, N),
            (P, P, O, P, P),
            (O, "", "", "", ""),  # one is enough, whatever the others will say
            (P, P, P, P, ""),
            (O, N, N, P, P),
            discussed={2: N, 6: P},
        )
    )
    assert list(zip(found.label, found.state, strict=True)) == [
        (N, "agreed"),
        ("", "to discuss"),
        (N, "discussed"),  # also against four of five
        ("", "removed"),
        ("", "removed"),
        ("", "unfinished"),
        ("", "removed"),
    ]


# --- agreement


def slow_kappa(marks: np.ndarray) -> float:
    """Fleiss' definition over pairs of annotators, one topic after another."""
    topics, m = marks.shape
    pairs = [(i, j) for i in range(m) for j in range(m) if i != j]
    observed = np.mean([[row[i] == row[j] for i, j in pairs] for row in marks])
    expected = sum((n / (topics * m)) ** 2 for n in Counter(marks.ravel().tolist()).values())
    return (observed - expected) / (1 - expected)


def test_kappa_by_hand():
    # Three annotators: pairs that agree 1, 1, 1/3, 1/3; shares 7/12 and 5/12. P = 2/3,
    # Q = 74/144 = 37/72, kappa = (48/72 - 37/72) / (35/72) = 11/35.
    found = agreement(sheet((P, P, P), (N, N, N), (P, P, N), (P, P, N), (P, P, ""), (O, P, N)))
    # With the offended topic: pairs 1, 1, 1/3, 1/3, 0; shares 8/15, 6/15, 1/15. P = 8/15 = 120/225,
    # Q = 101/225, kappa = 19/124.
    assert found == (pytest.approx(11 / 35), 4, pytest.approx(19 / 124), 5)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 6), st.integers(2, 9), st.integers(0, 2**32 - 1))
def test_kappa_against_the_definition_and_statsmodels(annotators, topics, seed):
    marks = np.random.default_rng(seed).choice([P, N, N, O], (topics, annotators))
    found = agreement(sheet(*map(tuple, marks.tolist())))
    kept = marks[(marks != O).all(axis=1)]
    for rows, kappa, n in (
        (kept, found.kappa, found.topics),
        (marks, found.kappa_offensive, found.topics_offensive),
    ):
        assert n == len(rows)
        if len(np.unique(rows)) < 2:
            assert np.isnan(kappa)
        else:
            assert kappa == pytest.approx(slow_kappa(rows))
            assert kappa == pytest.approx(fleiss_kappa(aggregate_raters(rows)[0]))
