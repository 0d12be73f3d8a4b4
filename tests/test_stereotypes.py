"""Looking up keywords: each step by hand, all of them against plain loops, and Table 15."""

import re
import sys
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingroup import published, stereotypes
from ingroup.dictionary import load_lexicon
from ingroup.stereotypes import STEPS, coverage, find, load_mappings
from ingroup.tables import InputError

SAMPLE = load_lexicon()
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
    file = tmp_path_factory.mktemp("toy") / "toy.csv"
    file.write_text(TOY, "utf-8")
    return load_lexicon(file)


def no_lemmas(word: str) -> list[str]:
    assert word  # a lemmatizer may stumble over nothing
    return []


def lemmas(word: str) -> list[str]:
    return LEMMAS.get(word, [])


def look(keywords, lexicon, mappings=None) -> list[tuple]:
    found = find(keywords, lexicon, lemmas, mappings or {})
    return [(word, step) for word, step in zip(found.word, found.step, strict=True)]


# --- the steps


@pytest.mark.parametrize(
    ("keyword", "word", "step"),
    [
        ("caring", "caring", "exact"),
        ("**Caring:**", "caring", "exact"),
        ("  Open\u2011Minded. ", "open-minded", "exact"),
        ("RISK  taker", "risk taker", "exact"),
        ("me", "me", "exact"),
        ("Me.", "Me.", "exact"),
        ("me,", "me", "exact"),
        ("hard-working", "hardworking", "joined or split"),
        ("hard working", "hardworking", "joined or split"),
        ("Open minded", "open-minded", "joined or split"),
        ("openminded", "open-minded", "joined or split"),
        ("bow-tie", "bow tie", "joined or split"),  # two words fit, the first counts
        ("nurses", "nurse", "lemma"),
        ("Nurses\u2019", "nurse", "lemma"),  # the first lemma that is a word
        ("risk takers", "risk taker", "lemma"),
        ("risk-takers", "risk taker", "lemma"),
        ("very friendly", "friendly", "last word"),
        ("extremely caring!", "caring", "last word"),
        ("low income", "poor", "by hand"),
        ("Low-Income", "poor", "by hand"),
    ],
)
def test_a_keyword_is_found_at_its_step(toy, keyword, word, step):
    assert look([keyword], toy, {"low income": "poor"}) == [(word, step)]


@pytest.mark.parametrize(
    "keyword",
    [
        "not friendly", "low income", "friendly off", "quite very friendly", "god-friendly",
        "head nurses", "rich", "unfriendly", "", "...", "-", "well-to-do", "riskier taker",
    ],
)  # fmt: skip
def test_a_keyword_that_no_rule_may_take_is_missing(toy, keyword):
    """Two of them have a mapping, to a word that this dictionary lacks."""
    found = find([keyword], toy, no_lemmas, {"rich": "wealthy", "well-to-do": "wealthy"})
    assert found.word.isna().all()
    assert found.step.isna().all()
    assert found.keyword.tolist() == [keyword]


def test_an_earlier_step_counts_and_rows_stay_in_order(toy):
    keywords = pd.Series(["nurses", "Caring", "x", "nurses"], index=[7, 3, 3, 0])
    found = find(keywords, toy, lemmas, {"nurses": "poor", "x": "poor"})
    assert found.index.tolist() == [7, 3, 3, 0]
    assert found.keyword.tolist() == keywords.tolist()
    assert found.word.tolist() == ["nurse", "caring", "poor", "nurse"]
    assert found.step.tolist() == ["lemma", "exact", "by hand", "lemma"]
    assert found.step.cat.categories.tolist() == [*STEPS]


def test_no_keywords_give_an_empty_table(toy):
    found = find([], toy, no_lemmas, {})
    assert found.shape == (0, 3)


@pytest.mark.parametrize("wrong", [None, np.nan, 4])
def test_a_keyword_that_is_no_text_is_one_sentence(toy, wrong):
    with pytest.raises(InputError, match=r"^Keyword 2 of 3: found .*, expected text\.$"):
        find(["caring", wrong, "nurse"], toy, no_lemmas, {})


def test_every_word_maps_to_itself_whatever_its_capitals():
    for words in (SAMPLE.words, SAMPLE.words.str.upper(), SAMPLE.words.str.title() + "."):
        found = find(words, SAMPLE, no_lemmas)
        assert found.word.tolist() == SAMPLE.words.tolist()
        assert set(found.step) == {"exact"}


def slowly(keyword, words, lemmas, mappings) -> tuple[str, str] | None:
    """The five rules one after the other, each a loop over the dictionary."""

    def squeezed(text):
        return "".join(c for c in text.lower() if c not in " -")

    def first(step, *texts):
        for text in texts:
            for word in words:
                if squeezed(word) == squeezed(text):
                    return word, step
        return None

    for word in words:
        if word.lower() == keyword.lower():
            return word, STEPS[0]
    if hit := first(STEPS[1], keyword):
        return hit
    parts = keyword.lower().replace("-", " ").split()
    if hit := first(STEPS[2], *("".join([*parts[:-1], lemma]) for lemma in lemmas(parts[-1]))):
        return hit
    if len(keyword.split()) == 2 and "not" not in keyword.lower().split():
        for word in words:
            if word.lower() == keyword.lower().split()[1]:
                return word, STEPS[3]
    for one, other in mappings.items():
        if squeezed(one) == squeezed(keyword) and (hit := first(STEPS[4], other)):
            return hit
    return None


PARTS = st.lists(st.sampled_from(["ab", "abs", "B", "c", "cs", "not"]), min_size=1, max_size=3)
PHRASES = st.builds(lambda parts, mark: mark.join(parts), PARTS, st.sampled_from([" ", "-", ""]))


@settings(max_examples=60, deadline=None)
@given(
    words=st.lists(PHRASES, min_size=1, max_size=6, unique_by=str.lower),
    keywords=st.lists(PHRASES, min_size=1, max_size=12),
    mappings=st.dictionaries(PHRASES.map(str.lower), PHRASES.map(str.lower), max_size=1),
)
def test_find_agrees_with_plain_loops(tmp_path_factory, words, keywords, mappings):
    file = tmp_path_factory.mktemp("any") / "any.csv"
    rows = [f"{word},A,{(-1) ** number}" for number, word in enumerate(words)]
    file.write_text("\n".join(["word,dimension,direction", *rows]), "utf-8")
    lexicon = load_lexicon(file)

    def lemmas(word):
        return [word.removesuffix("s"), "b"] if word.endswith("s") else []

    found = find(keywords, lexicon, lemmas, mappings)
    for row in found.itertuples():
        expected = slowly(row.keyword, words, lemmas, mappings)
        if expected is None:
            assert pd.isna(row.word), row
            assert pd.isna(row.step), row
        else:
            assert (row.word, row.step) == expected
            assert lexicon.directions.loc[row.word, "A"] == (-1) ** words.index(row.word)


# --- lemmatizers


@pytest.fixture
def modules(monkeypatch):
    """Put a module, or the lack of one, where the import looks for it."""
    stereotypes.lemmatizer.cache_clear()
    yield lambda **found: [monkeypatch.setitem(sys.modules, *pair) for pair in found.items()]
    stereotypes.lemmatizer.cache_clear()


def test_the_paper_s_lemmatizer_is_taken_where_it_is(modules, toy):
    model = ModuleType("en_core_web_sm")
    token = type("Token", (), {"lemma_": "nurse"})
    model.load = lambda disable: lambda word: [None, token()]
    modules(en_core_web_sm=model, lemminflect=None)
    assert stereotypes.lemmatizer().name == "spaCy en_core_web_sm"
    assert find(["x-nursing"], toy, mappings={}).word.isna().all()
    assert find(["nursing"], toy, mappings={}).step.tolist() == ["lemma"]


def test_lemminflect_comes_second_and_guesses_only_at_regular_endings(modules):
    other, asked = ModuleType("lemminflect"), []
    listed = {"leaves": {"ADJ": ("z",), "VERB": ("leave",), "NOUN": ("leaf", "leave")}}
    other.getAllLemmas = lambda word: listed.get(word, {})
    other.getLemma = lambda word, kind: asked.append((word, kind)) or (f"{word}/{kind}",)
    modules(en_core_web_sm=None, lemminflect=other)
    name, lemmas = stereotypes.lemmatizer()
    assert name == "lemminflect"
    assert lemmas("leaves") == ["leaf", "leave", "leave", "z"]
    assert lemmas("bluffer") == []
    assert asked == []
    assert lemmas("bluffers") == ["bluffers/NOUN", "bluffers/VERB"]


def test_no_lemmatizer_is_one_sentence(modules, toy):
    modules(en_core_web_sm=None, lemminflect=None)
    with pytest.raises(InputError, match=r"No lemmatizer is installed, .*`pip install lemminfl"):
        find(["caring"], toy)
    assert find(["caring"], toy, no_lemmas).word.tolist() == ["caring"]


def test_the_lemmatizer_of_this_machine_knows_plurals(toy):
    assert find(["Nurses", "risk takers"], toy).word.tolist() == ["nurse", "risk taker"]


# --- mappings


def test_each_mapping_is_needed_and_leads_to_a_word_of_the_sample():
    keywords = pd.read_csv(stereotypes.MAPPINGS).keyword
    found = find(keywords, SAMPLE, no_lemmas)
    wrong = found[found.step != "by hand"]
    assert wrong.empty, wrong
    assert len(keywords) >= 100


def test_a_user_s_mappings_come_on_top(tmp_path, toy):
    file = tmp_path / "mine.csv"
    file.write_text(
        "note,keyword,word\n,Night Owls,caring\n,low income,Income\n,nice,Caring\n", "utf-8"
    )
    mappings = load_mappings(file)
    assert look(["night-owls", "low income"], toy, mappings) == [
        ("caring", "by hand"),
        ("income", "by hand"),
    ]
    assert look(["low income"], toy, load_mappings()) == [("poor", "by hand")]
    assert len(mappings) == len(load_mappings()) + 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("keyword,target\na,b\n", "1, column 'word': found only keyword, target, expected keyword"),
        ("word\nb\n", "1, column 'keyword': found only word, expected"),
        ("keyword,word\na,b\nA,c\n", "3, column 'keyword': found 'A' again, expected it once; it"),
        ("keyword,word\na,\n", "2, column 'word': found 'nothing', expected a value."),
        ("keyword,word\n", "2: found the end of the file, expected a row."),
    ],
)
def test_a_bad_table_of_mappings_is_one_sentence(tmp_path, text, sentence):
    file = tmp_path / "mine.csv"
    file.write_text(text, "utf-8")
    with pytest.raises(InputError, match=re.escape(f"{file}, line {sentence}")):
        load_mappings(file)


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
    assert rows.stage.tolist() == [stage for stage in STEPS for _ in range(2)]
    assert rows[rows.model == "one"].coverage_pct.tolist() == [40, 60, 80, 80, 80]
    assert rows[rows.model == "two"].coverage_pct.tolist() == [0, 0, 25, 50, 75]
    assert set(zip(rows.model, rows.n, strict=True)) == {("one", 5), ("two", 4)}
    # A model's repeated keyword once: 1 of 4 is exact.
    once = coverage(found.assign(model=table.model), "model", distinct=True)
    assert once[once.model == "one"].coverage_pct.tolist() == [25, 50, 75, 75, 75]
    assert coverage(found).coverage_pct.tolist() == pytest.approx(
        [200 / 9, 300 / 9, 500 / 9, 600 / 9, 700 / 9]
    )
    assert coverage(found)["all"].unique().tolist() == ["all"]
