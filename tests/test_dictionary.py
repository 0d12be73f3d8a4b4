"""Dictionaries: both layouts, every oddity, every bad file; keywords looked up; Table 15."""

import hashlib
import re
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ingroup import corpora, dictionary, paths, published
from ingroup.dictionary import (
    LEMMA,
    LOOKUP_STEPS,
    ODDITY_KINDS,
    RELEASED,
    WORD,
    coverage,
    find,
    lemmatizer,
    load_lexicon,
    load_mappings,
)
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


def write(place: Path, text: str) -> Path:
    place.write_bytes(text.encode())
    return place


# --- both layouts, and what is odd


def test_the_released_layout_is_read_as_it_stands(tmp_path):
    # Line ends, a byte order mark and columns without a meaning here, as a spreadsheet saves them.
    text = "\ufeff" + ODD.replace("\n", ",x\r\n").replace("C dictionary,x", "C dictionary,Sum")
    read, cells = load_lexicon(write(tmp_path / "odd.csv", text)), pd.read_csv(StringIO(ODD))
    assert read.words.tolist() == read.members.index.tolist() == cells[WORD].tolist()
    assert read.directed.to_dict() == {"A": True, "B": True, "C": False}
    for name in "ABC":
        assert read.members[name].tolist() == cells[f"{name} dictionary"].eq(1).tolist()
        told = cells.get(f"{name} direction", [np.nan] * len(cells))
        np.testing.assert_array_equal(read.directions[name], told)


def test_oddities_are_named_counted_and_kept_out(tmp_path):
    read = load_lexicon(write(tmp_path / "odd.csv", ODD))
    table = read.oddities
    assert table.to_numpy().tolist() == [
        ["lost", "A", "member without a direction", "1", "NA", 4],
        ["minus", "A", "membership -1", "-1", "NA", 5],
        ["stray", "B", "direction without membership", "0", "1", 6],
        ["sustain", "A", "conflicting lemma", "1", "-1", 7],
        ["sustained", "A", "conflicting lemma", "1", "1", 8],
    ]
    assert table.oddity.cat.categories.tolist() == [*ODDITY_KINDS]
    odd = read.odd.stack()
    assert odd[odd].index.tolist() == [*zip(table.word, table.dimension, strict=True)]


def test_without_a_lemma_column_no_lemma_conflicts(tmp_path):
    read = load_lexicon(write(tmp_path / "odd.csv", ODD.replace(LEMMA, "other")))
    assert read.oddities.oddity.tolist() == [*ODDITY_KINDS[:3]]


def test_the_long_layout_is_read_and_says_the_same(tmp_path):
    text = "word,dimension,direction,note\nkind,A,1,\nold,B,,\nKind,B,,\nrude,A,-1,\nlost,A,,\n"
    read = load_lexicon(str(write(tmp_path / "long.csv", text)))
    assert read.words.tolist() == ["kind", "old", "rude", "lost"]  # the first spelling
    assert read.members.to_numpy().tolist() == [[1, 1], [0, 1], [1, 0], [1, 0]]
    assert read.directed.tolist() == [True, False]
    assert read.directions["A"].dropna().to_dict() == {"kind": 1, "rude": -1}
    row = ["lost", "A", "member without a direction", "1", "", 6]
    assert read.oddities.to_numpy().tolist() == [row]


def test_the_fetched_dictionary_is_verified(tmp_path, monkeypatch):
    name = "Full Dictionaries.csv"
    monkeypatch.setattr(paths, "RAW", tmp_path)
    with pytest.raises(InputError, match=f"{name} is not there; `make data` fetches stereotype-c"):
        load_lexicon(RELEASED)
    (tmp_path / RELEASED).mkdir()
    file = write(tmp_path / RELEASED / name, ODD)
    with pytest.raises(InputError, match=f"{name} has SHA-256 "):
        load_lexicon(RELEASED)
    digest = {name: "sha256:" + hashlib.sha256(file.read_bytes()).hexdigest()}
    monkeypatch.setattr(corpora.CORPORA[RELEASED], "files", digest)
    assert len(load_lexicon(RELEASED).words) == 8


# --- the sample


def test_the_sample_covers_ten_dimensions_both_ways():
    assert len(SAMPLE.words) >= 250
    assert SAMPLE.members.columns.tolist() == [
        *("Sociability", "Morality", "Ability", "Agency", "health", "Status"),
        *("Politics", "Religion", "ordinariness", "beauty"),
    ]
    for sign in (1, -1):
        assert (SAMPLE.directions.eq(sign).sum() >= 5).all()
    assert SAMPLE.oddities.empty
    assert SAMPLE.members.any(axis=1).all()


def test_the_words_that_the_prompts_rate_point_upwards():
    rated = {
        "Sociability": "friendly sociable",
        "Morality": "trustworthy honest",
        "Ability": "competent skilled",
        "Agency": "confident assertive",
        "Status": "wealthy high-status",
        "Politics": "traditional conservative",
    }
    for dimension, words in rated.items():
        assert (SAMPLE.directions.loc[words.split(), dimension] == 1).all()


def test_the_sample_is_plain_and_opposites_differ():
    content = (paths.SAMPLE / "stereotype_dictionary.csv").read_bytes()
    assert re.fullmatch(rb"word,dimension,direction\n([a-z -]+,[A-Za-z]+,(-1|0|1)\n)+", content)
    pairs = [
        (w, e + w) for w in SAMPLE.words for e in ("un", "in", "dis", "ir") if e + w in SAMPLE.words
    ]
    assert len(pairs) >= 15
    for pair in pairs:
        one, other = SAMPLE.directions.loc[[*pair]].dropna(axis=1).to_numpy()
        assert (one == -other).any(), pair


def test_a_wide_dictionary_may_have_no_directions(tmp_path):
    file = write(tmp_path / "plain.csv", f"{WORD},A dictionary\nkind,1\nold,0\n")

    lexicon = load_lexicon(file)

    assert lexicon.members["A"].tolist() == [True, False]
    assert lexicon.directed.to_dict() == {"A": False}
    assert lexicon.oddities.empty


# --- bad files

LINES = (HEADER, "good,good,1,1,0,NA,1", "bad,bad,1,-1,0,NA,0")
LONG_LINES = ("word,dimension,direction", "good,A,1", "bad,A,-1")


def change(lines: tuple[str, ...], line: int, old: str, new: str) -> tuple[str, ...]:
    assert old in lines[line - 1]
    return *lines[: line - 1], lines[line - 1].replace(old, new, 1), *lines[line:]


BAD = {
    change(LINES, 3, "-1", "7"): "3, column 'A direction': found '7', expected -1, 0, 1 or NA.",
    change(LONG_LINES, 2, "1", "7"): "2, column 'direction': found '7', expected -1, 0, 1 or noth",
    change(LINES, 2, ",1,1", ",yes,1"): "2, column 'A dictionary': found 'yes', expected 0 or 1.",
    change(LINES, 2, "0,NA", ",NA"): "2, column 'B dictionary': found '', expected 0 or 1.",
    change(change(LINES, 2, "1,1,0", "1,2,0"), 3, "-1", "7"): "2, column 'A direction': found '2'",
    (*LINES, "", "Good,x,0,NA,0,NA,0"): "5: found original word 'Good' again, expected "
    "it once; it is there already in line 2.",
    (*LONG_LINES, "good,B,1", "BAD,A,1"): "5: found word 'BAD', dimension 'A' again, expected it ",
    change(LINES, 3, "bad,bad", " ,bad"): "3, column 'original word': found ' ', expected a value.",
    change(LONG_LINES, 3, "A", ""): "3, column 'dimension': found '', expected a value.",
    change(LINES, 1, WORD, "term"): f"1: the column 'word' is missing, found term, {LEMMA}, ",
    change(
        LONG_LINES, 1, "direction", "sign"
    ): "1: the column 'direction' is missing, found word, ",
    change(
        LINES, 1, "A dictionary", "A"
    ): "1: the column 'A dictionary' is missing, found original ",
    ("original word", "good"): "1: found the columns original word, expected a column "
    "'<dimension> dictionary' for each dimension.",
    LINES[:1]: "2: found the end of the file, expected a row.",
}
BAD_MAPPINGS = {
    ("keyword,target", "a,b"): "1: the column 'word' is missing, found keyword, target",
    ("word", "b"): "1: the column 'keyword' is missing, found word.",
    ("keyword,word", "a,b", "A,c"): "3: found keyword 'A' again, expected it once; it is ",
    ("keyword,word", "a,"): "2, column 'word': found '', expected a value.",
    ("keyword,word",): "2: found the end of the file, expected a row.",
}


@pytest.mark.parametrize(
    ("load", "lines", "sentence"),
    [
        *((load_lexicon, *bad) for bad in BAD.items()),
        *((load_mappings, *bad) for bad in BAD_MAPPINGS.items()),
    ],
)
def test_a_bad_file_is_one_sentence(tmp_path, load, lines, sentence):
    file = write(tmp_path / "bad.csv", "\n".join(lines) + "\n")
    with pytest.raises(InputError, match=re.escape(f"{file}, line {sentence}")) as problem:
        load(file)
    assert "\n" not in str(problem.value)
    assert str(problem.value).endswith(".")


# --- looking up

TOY = """word,dimension,direction
caring,A,1
hardworking,A,1
open-minded,A,1
Me.,B,
me,A,1
risk taker,A,1
nurse,B,
friendly,A,1
bow tie,B,
bowtie,B,
income,A,1
poor,A,-1
"""
LEMMAS = {"nurses": ["nurse"], "takers": ["taker"], "nurses'": ["nurs", "nurse", "caring"]}


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    return load_lexicon(write(tmp_path_factory.mktemp("toy") / "toy.csv", TOY))


def no_lemmas(word: str) -> list[str]:
    assert word  # a lemmatizer may stumble over nothing
    return []


def lemmas(word: str) -> list[str]:
    return LEMMAS.get(word, [])


def look(keywords, lexicon, mappings) -> list[tuple]:
    found = find(keywords, lexicon, lemmas, mappings)
    return [*zip(found.word, found.step, strict=True)]


FOUND = {
    "exact": {
        "caring": "caring",
        "**Caring:**": "caring",
        "RISK  taker": "risk taker",
        "me": "me",
        "  Open\u2011Minded. ": "open-minded",
        "Me.": "Me.",
        "me,": "me",
    },
    "joined or split": {
        "hard-working": "hardworking",
        "hard working": "hardworking",
        "openminded": "open-minded",
        "Open minded": "open-minded",
        "bow-tie": "bow tie",  # two words fit, the first counts
    },
    "lemma": {
        "nurses": "nurse",
        "risk takers": "risk taker",
        "risk-takers": "risk taker",
        "Nurses\u2019": "nurse",  # the first lemma that is a word
    },
    "last word": {"very friendly": "friendly", "extremely caring!": "caring"},
    "by hand": {"low income": "poor", "Low-Income": "poor"},
}


@pytest.mark.parametrize("step", FOUND)
def test_a_keyword_is_found_at_its_step(toy, step):
    found = look([*FOUND[step]], toy, {"low income": "poor"})
    assert found == [(word, step) for word in FOUND[step].values()]


def test_the_three_stages_of_the_paper_and_none_of_ours(toy):
    """Letter by letter, then the lemma of a keyword without a space, then by hand."""
    stages = {
        "Caring": ("caring", "exact"),
        " RISK taker ": ("risk taker", "exact"),
        "nurses": ("nurse", "lemma"),
        "risk-takers": None,
        "risk takers": None,
        "head-nurses": None,
        "open-nurses": ("open-nurse", "lemma"),
        "hard-working": None,
        "low income": ("poor", "by hand"),
        "**caring**": None,
        "very friendly": None,
        "friendly-": None,
        "": None,
    }
    words = pd.Index([*toy.words, "open-nurse"], name="word")
    found = find([*stages], toy._replace(words=words), lemmas, {"low income": "poor"}, way="paper")
    rows = zip(found.word, found.step, strict=True)
    assert [None if pd.isna(word) else (word, step) for word, step in rows] == [*stages.values()]
    reached = coverage(found.assign(model="one"), "model").set_index("printed_stage").coverage_pct
    names = ["Initial Coverage", "+Lemmatization Coverage", "+Coverage"]
    assert reached[names].tolist() == pytest.approx([200 / 13, 400 / 13, 500 / 13])


def test_a_keyword_that_no_rule_may_take_is_missing(toy):
    """Two of them have a mapping, to a word that this dictionary lacks."""
    given = "not friendly,low income,friendly off,quite very friendly,god-friendly,head nurses,rich"
    given = [*given.split(","), "unfriendly", "", "...", "-", "well-to-do", "riskier taker"]
    found = find(given, toy, no_lemmas, {"rich": "wealthy", "well-to-do": "wealthy"})
    assert found[["word", "step"]].isna().all(axis=None)
    assert found.keyword.tolist() == given


def test_an_earlier_step_counts_and_rows_stay_in_order(toy):
    keywords = pd.Series(["nurses", "Caring", "x", "nurses"], index=[7, 3, 3, 0])
    found = find(keywords, toy, lemmas, {"nurses": "poor", "x": "poor"})
    assert found.index.tolist() == [7, 3, 3, 0]
    assert found.keyword.tolist() == keywords.tolist()
    assert found.word.tolist() == ["nurse", "caring", "poor", "nurse"]
    assert found.step.tolist() == ["lemma", "exact", "by hand", "lemma"]
    assert found.step.cat.categories.tolist() == [*LOOKUP_STEPS]


def test_no_keywords_give_an_empty_table(toy):
    found = find([], toy, no_lemmas, {})
    assert found.shape == (0, 3)


def test_every_word_maps_to_itself_whatever_its_capitals():
    for words in (SAMPLE.words, SAMPLE.words.str.upper(), SAMPLE.words.str.title() + "."):
        found = find(words, SAMPLE, no_lemmas, {})
        assert found.word.tolist() == SAMPLE.words.tolist()
        assert set(found.step) == {"exact"}


# --- lemmas


def test_the_sound_lemmas_are_those_of_a_noun_a_verb_and_an_adjective():
    """Guessed only at regular endings: "bluffer" would be the comparative of "bluff"."""
    lemmas = lemmatizer()
    assert lemmas("leaves") == ["leave", "leaf", "leave"]
    assert lemmas("nurses")[0] == "nurse"
    assert lemmas("bluffer") == []
    assert "bluffer" in lemmas("bluffers")
    assert lemmas("blorped") == ["blorped", "blorp"]


@pytest.mark.parametrize("way", ["sound", "paper"])
def test_both_lemmatizers_know_plurals(toy, way):
    found = find(["Nurses", "risk takers"], toy, lemmatizer(way), {})
    assert found.word.tolist() == ["nurse", "risk taker"]


# --- mappings


def test_each_mapping_is_needed_and_leads_to_a_word_of_the_sample():
    keywords = pd.read_csv(dictionary.MAPPINGS).keyword
    found = find(keywords, SAMPLE, no_lemmas, load_mappings())
    wrong = found[found.step != "by hand"]
    assert wrong.empty, wrong
    assert len(keywords) >= 100


def test_a_user_s_mappings_come_on_top(tmp_path, toy):
    text = "note,keyword,word\n,Night Owls,caring\n,low income,Income\n,nice,Caring\n"
    mappings = load_mappings(write(tmp_path / "mine.csv", text))
    found = look(["night-owls", "low income"], toy, mappings)
    assert found == [("caring", "by hand"), ("income", "by hand")]
    assert look(["low income"], toy, load_mappings()) == [("poor", "by hand")]
    assert len(mappings) == len(load_mappings()) + 2


# --- coverage


def test_coverage_by_hand_in_the_layout_of_table_15(toy):
    given = {
        "one": ["Caring", "caring", "hard-working", "nurses", "so-so"],
        "two": ["very friendly", "low income", "none", "risk takers"],
    }
    table = pd.DataFrame([(m, k) for m, ks in given.items() for k in ks], columns=["model", "k"])
    found = find(table.k, toy, lemmas, {"low income": "poor"})
    rows = coverage(found.assign(model=table.model), "model")
    printed = published.load("stereomap", 15)
    assert set(printed.columns) - {"coverage_pct_printed"} <= {*rows.columns}
    assert {*printed.stage} == {*rows.printed_stage} - {""}
    assert rows.step.tolist() == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert rows.stage.tolist() == [stage for stage in LOOKUP_STEPS for _ in range(2)]
    assert rows[rows.model == "one"].coverage_pct.tolist() == [40, 60, 80, 80, 80]
    assert rows[rows.model == "two"].coverage_pct.tolist() == [0, 0, 25, 50, 75]
    assert set(zip(rows.model, rows.n, strict=True)) == {("one", 5), ("two", 4)}


def test_the_papers_lemma_of_a_word_that_spacy_splits_is_that_of_its_end():
    """The tokens of "cannot" are can and not."""
    assert dictionary.lemmatizer("paper")("cannot") == ["not"]
