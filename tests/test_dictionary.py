"""Dictionaries of stereotype content: both layouts, every oddity, every bad file."""

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingroup import corpora, paths
from ingroup import dictionary as lexicon
from ingroup.corpora import Corpus
from ingroup.dictionary import LEMMA, ODDITIES, WORD, load_lexicon, oddities
from ingroup.tables import InputError

SAMPLE = load_lexicon()
HEADER = f"{WORD},{LEMMA},A dictionary,A direction,B dictionary,B direction,C dictionary"
ODD = f"""{HEADER}
good,good,1,1,0,NA,1
Bad,bad,1,-1,1,0,0
lost,lost,1,NA,0,NA,0
minus,minus,-1,NA,0,NA,0
stray,stray,0,NA,0,1,0
sustain,sustain,1,-1,1,1,0
sustained,sustain,1,1,1,0,1
sustains,sustain,1,0,0,NA,0
"""


def write(place: Path, text: str, encoding: str = "utf-8") -> Path:
    place.write_bytes(text.encode(encoding))
    return place


def cells(lines: list[str], encoding: str = "utf-8"):
    return "\n".join(lines).encode(encoding)


# --- both layouts, and what is odd


def test_the_released_layout_is_read_as_it_stands(tmp_path):
    # Line ends, a byte order mark and columns without a meaning here, as a spreadsheet saves them.
    text = "\ufeff" + ODD.replace("\n", ",x\r\n").replace("C dictionary,x", "C dictionary,Sum")
    read = load_lexicon(write(tmp_path / "odd.csv", text))
    assert read.words.tolist() == [
        *("good", "Bad", "lost", "minus", "stray", "sustain", "sustained", "sustains")
    ]
    assert read.directed.to_dict() == {"A": True, "B": True, "C": False}
    assert read.members.astype(int).to_numpy().tolist() == [
        *([1, 0, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0], [1, 1, 0], [1, 1, 1], [1, 0, 0])
    ]
    none = np.nan
    expected = [[1, none], [-1, 0], [none] * 2, [none] * 2, [none, 1], [-1, 1], [1, 0], [0, none]]
    assert np.array_equal(read.directions[["A", "B"]], expected, equal_nan=True)
    assert read.directions["C"].isna().all()
    assert (read.members.index == read.words).all()


def test_oddities_are_named_counted_and_kept_out(tmp_path):
    read = load_lexicon(write(tmp_path / "odd.csv", ODD))
    table = oddities(read)
    assert table.to_numpy().tolist() == [
        ["lost", "A", "member without a direction", "1", "NA", 4],
        ["minus", "A", "membership -1", "-1", "NA", 5],
        ["stray", "B", "direction without membership", "0", "1", 6],
        ["sustain", "A", "conflicting lemma", "1", "-1", 7],
        ["sustained", "A", "conflicting lemma", "1", "1", 8],
    ]
    assert table.oddity.value_counts(sort=False).to_dict() == dict(
        zip(ODDITIES, (1, 1, 1, 2), strict=True)
    )
    odd = [(word, dimension) for word in read.words for dimension in "ABC"
           if read.odd.loc[word, dimension]]  # fmt: skip
    assert odd == [*zip(table.word, table.dimension, strict=True)]
    table.loc[:, "word"] = "changed"  # a copy: the dictionary keeps its own
    assert oddities(read).word[0] == "lost"


def test_without_a_lemma_column_no_lemma_conflicts(tmp_path):
    read = load_lexicon(write(tmp_path / "odd.csv", ODD.replace(LEMMA, "other")))
    assert oddities(read).oddity.tolist() == [*ODDITIES[:3]]


def test_the_long_layout_is_read_and_says_the_same(tmp_path):
    text = "word,dimension,direction,note\nkind,A,1,\nold,B,,\nKind,B,,\nrude,A,-1,\nlost,A,,\n"
    read = load_lexicon(str(write(tmp_path / "long.csv", text)))
    assert read.words.tolist() == ["kind", "old", "rude", "lost"]  # the first spelling
    assert read.members.to_numpy().tolist() == [[1, 1], [0, 1], [1, 0], [1, 0]]
    assert read.directed.tolist() == [True, False]
    assert read.directions["A"].dropna().to_dict() == {"kind": 1, "rude": -1}
    row = ["lost", "A", "member without a direction", "1", "", 6]
    assert oddities(read).to_numpy().tolist() == [row]


@settings(max_examples=20, deadline=None)
@given(
    table=st.lists(
        st.tuples(st.sampled_from("pqr"), *[st.sampled_from(["", "-1", "0", "1"])] * 2),
        min_size=1,
        max_size=7,
    )
)
def test_layouts_and_conflicts_against_plain_loops(tmp_path_factory, table):
    """A row a word: its lemma and its directions in A and B, empty where it is no member."""
    place = tmp_path_factory.mktemp("both")
    wide = [f"{WORD},{LEMMA},A dictionary,A direction,B dictionary,B direction"]
    long = ["word,dimension,direction"]
    for number, (lemma, *told) in enumerate(table):
        wide.append(f"w{number},{lemma}," + ",".join(f"{int(r != '')},{r or 'NA'}" for r in told))
        long += [f"w{number},{d},{r}" for d, r in zip("AB", told, strict=True) if r]
    read = load_lexicon(write(place / "wide.csv", "\n".join(wide)))
    expected = set()
    for one, row in enumerate(table):
        for other in table:
            for d in (0, 1):
                if row[0] == other[0] and {row[1 + d], other[1 + d]} == {"1", "-1"}:
                    expected.add((f"w{one}", "AB"[d]))
    found = oddities(read)
    assert set(zip(found.word, found.dimension, strict=True)) == expected
    assert set(found.oddity) <= {"conflicting lemma"}
    if len(long) > 1:
        same = load_lexicon(write(place / "long.csv", "\n".join(long)))
        for word in same.words:
            for dimension in same.members:
                assert same.members.loc[word, dimension] == read.members.loc[word, dimension]
                pair = [x.directions.loc[word, dimension] for x in (same, read)]
                assert pair[0] == pair[1] or np.isnan(pair).all()


def test_the_fetched_dictionary_is_verified(tmp_path, monkeypatch):
    name = "Full Dictionaries.csv"
    with pytest.raises(InputError, match=f"{name} is not there; `make data` fetches stereotype-c"):
        load_lexicon(lexicon.RELEASED, tmp_path)
    (tmp_path / lexicon.RELEASED).mkdir()
    file = write(tmp_path / lexicon.RELEASED / name, ODD)
    with pytest.raises(InputError, match=f"{name} was changed"):
        load_lexicon(lexicon.RELEASED, tmp_path)
    digest = {name: "sha256:" + hashlib.sha256(file.read_bytes()).hexdigest()}
    monkeypatch.setitem(corpora.CORPORA, lexicon.RELEASED, Corpus("toy", "", digest))
    assert len(load_lexicon(lexicon.RELEASED, tmp_path).words) == 8


# --- the sample


def test_the_sample_covers_ten_dimensions_both_ways():
    assert len(SAMPLE.words) >= 250
    assert SAMPLE.members.columns.tolist() == [
        *("Sociability", "Morality", "Ability", "Agency", "health", "Status"),
        *("Politics", "Religion", "ordinariness", "beauty"),
    ]
    for dimension, told in SAMPLE.directions.items():
        assert (told == 1).sum() >= 5, dimension
        assert (told == -1).sum() >= 5, dimension
    assert SAMPLE.directed.all()
    assert oddities(SAMPLE).empty
    assert SAMPLE.members.any(axis=1).all()


@pytest.mark.parametrize(
    ("words", "dimension"),
    [
        ("friendly sociable", "Sociability"),
        ("trustworthy honest", "Morality"),
        ("competent skilled", "Ability"),
        ("confident assertive", "Agency"),
        ("wealthy high-status", "Status"),
        ("traditional conservative", "Politics"),
    ],
)
def test_the_words_that_the_prompts_rate_point_upwards(words, dimension):
    for word in words.split():
        assert SAMPLE.directions.loc[word, dimension] == 1


def test_the_sample_is_plain_and_opposites_differ():
    content = (paths.SAMPLE / "stereotype_dictionary.csv").read_bytes()
    assert content.isascii()
    assert b"\r" not in content
    assert re.fullmatch(rb"word,dimension,direction\n([a-z -]+,[A-Za-z]+,(-1|0|1)\n)+", content)
    opposed = 0
    for word in SAMPLE.words:
        for other in (f"un{word}", f"in{word}", f"dis{word}", f"ir{word}"):
            if other in SAMPLE.words:
                both = SAMPLE.directions.loc[[word, other]].dropna(axis=1)
                assert (both.iloc[0] == -both.iloc[1]).any(), other
                opposed += 1
    assert opposed >= 15


# --- bad files

LINES = [HEADER, "good,good,1,1,0,NA,1", "bad,bad,1,-1,0,NA,0"]
LONG_LINES = ["word,dimension,direction", "good,A,1", "bad,A,-1"]


def change(lines: list[str], line: int, old: str, new: str) -> list[str]:
    assert old in lines[line - 1]
    return [*lines[: line - 1], lines[line - 1].replace(old, new, 1), *lines[line:]]


BAD = {
    "direction 7": (
        change(LINES, 3, "-1", "7"),
        "3, column 'A direction': found '7', expected -1, 0, 1 or NA.",
    ),
    "direction 7, long": (
        change(LONG_LINES, 2, "1", "7"),
        "2, column 'direction': found '7', expected -1, 0, 1 or nothing.",
    ),
    "membership": (
        change(LINES, 2, ",1,1", ",yes,1"),
        "2, column 'A dictionary': found 'yes', expected 0 or 1.",
    ),
    "no membership": (
        change(LINES, 2, "0,NA", ",NA"),
        "2, column 'B dictionary': found 'nothing', expected 0 or 1.",
    ),
    "first of two": (
        change(change(LINES, 2, "1,1,0", "1,2,0"), 3, "-1", "7"),
        "2, column 'A direction': found '2'",
    ),
    "duplicate word": (
        [*LINES, "", "Good,x,0,NA,0,NA,0"],
        "5, column 'original word': found 'Good' again, expected it once; it is there already in "
        "line 2.",
    ),
    "duplicate pair": (
        [*LONG_LINES, "good,B,1", "BAD,A,1"],
        "5, column 'word': found 'BAD', 'A' again, expected it once; it is there already in line",
    ),
    "no word": (
        change(LINES, 3, "bad,bad", " ,bad"),
        "3, column 'original word': found ' ', expected a value.",
    ),
    "no dimension": (
        change(LONG_LINES, 3, "A", ""),
        "3, column 'dimension': found 'nothing', expected a value.",
    ),
    "no word column": (
        change(LINES, 1, WORD, "term"),
        f"1, column 'word': found only term, {LEMMA}, A dictionary, A direction, B dictionary, "
        "..., expected word, dimension, direction, or the released layout with 'original word'.",
    ),
    "no direction column": (
        change(LONG_LINES, 1, "direction", "sign"),
        "1, column 'direction': found only word, dimension, sign, expected word, ",
    ),
    "no dictionary column": (
        change(LINES, 1, "A dictionary", "A"),
        "1, column 'A dictionary': found only original word, ",
    ),
    "no dimension at all": (["original word", "good"], "1, column '<dimension> dictionary': found"),
    "column twice": (
        change(LINES, 1, "B dictionary", "A dictionary"),
        "1, column 'A dictionary': found it 2 times, expected it once.",
    ),
    "too few fields": ([*LINES, "worse,worse,1"], "4: found 3 fields, expected 7."),
    "too many fields": ([*LONG_LINES, "so, so,A,1"], "4: found 4 fields, expected 3."),
    "open quote": ([*LONG_LINES, '"worse,A,1'], "4: found a quote that does not close at the"),
    "header only": (LINES[:1], "2: found the end of the file, expected a row."),
}


@pytest.mark.parametrize(("lines", "sentence"), BAD.values(), ids=BAD)
def test_a_bad_file_is_one_sentence(tmp_path, lines, sentence):
    file = write(tmp_path / "bad.csv", "\n".join(lines) + "\n")
    with pytest.raises(InputError, match=re.escape(f"{file}, line {sentence}")) as problem:
        load_lexicon(file)
    assert "\n" not in str(problem.value)
    assert str(problem.value).endswith(".")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "line 1: found the end of the file, expected a line with the names of the columns."),
        (b"\n\n", "found the end of the file, expected a line with the names of the columns."),
        (
            cells([*LONG_LINES, "na\u00efve,A,-1"], "latin-1"),
            "line 4: found a byte that is not UTF-8, expected UTF-8 text.",
        ),
        (cells(LONG_LINES, "utf-16"), "line 1: found a byte that is not UTF-8"),
    ],
)
def test_another_encoding_or_an_empty_file_is_one_sentence(tmp_path, content, sentence):
    (tmp_path / "bad.csv").write_bytes(content)
    with pytest.raises(InputError, match=re.escape(sentence)):
        load_lexicon(tmp_path / "bad.csv")


def test_a_file_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match=r"nowhere.csv cannot be read: No such file"):
        load_lexicon(tmp_path / "nowhere.csv")
