"""Keywords: KeyBERT's own; texts and scores by hand; the model's files; what is refused."""

import hashlib
import re
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from keybert import KeyBERT
from keybert.backend import BaseEmbedder
from packaging.requirements import Requirement
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, HashingVectorizer

from ingroup import corpora, dictionary, paths
from ingroup.dictionary import find, load_lexicon
from ingroup.keywords import (
    SETTINGS,
    documents,
    extract,
    load_model,
    prepare,
    released_scores,
    scores,
    stop_words,
    top,
)
from ingroup.tables import InputError

MODEL = corpora.INSTRUMENTS["all-MiniLM-L6-v2"]
FILES = MODEL["files"]
NARRATIVES = list(pd.read_csv(paths.SAMPLE / "narratives.tsv", sep="\t").generated_text)
FORMS = ["group", "extended", "original", "people"]
GROUPS = pd.read_csv(paths.STIMULI / "stereomap" / "groups.csv")
NAMES = [*dict.fromkeys(GROUPS[FORMS].stack().dropna())]


class Letters(BaseEmbedder):
    """Vectors from three-letter sequences, the same in any batch: a stand-in for a model."""

    max_seq_length = 10

    def __init__(self):
        super().__init__()
        self.count = HashingVectorizer(analyzer="char_wb", ngram_range=(3, 3), n_features=64)
        self.batches = []  # how many texts came together
        self.threads = set()

    def embed(self, documents, verbose=False):
        self.batches.append(len(documents))
        self.threads.add(torch.get_num_threads())
        return self.count.transform(documents).toarray().astype(np.float32)

    def tokenizer(self, text, **_):
        return {"input_ids": ["", *text.split(), ""]}


@pytest.fixture(scope="module")
def model():
    loaded = load_model()
    assert Requirement(MODEL["package"]).name.replace("-", "_") not in sys.modules
    return loaded


def ours_and_keyberts(model, texts, compared=None):
    """Phrases and scores by document and setting: ours, and of one call of KeyBERT's for each."""
    phrases = extract(texts, model).phrases
    for document in compared or texts:
        for setting, choice in SETTINGS.items():
            rows = phrases[(phrases.document == document) & (phrases.setting == setting)]
            assert rows["rank"].tolist() == list(range(1, len(rows) + 1))
            ours = list(zip(rows.phrase, rows.score, strict=True))

            options = {"keyphrase_ngram_range": (1, 3), "top_n": 15, **choice}
            keyberts = KeyBERT(model).extract_keywords(texts[document], **options)
            if "use_maxsum" in choice:
                keyberts = keyberts[::-1]  # it lists the farthest first
            yield ours, keyberts


# --- extraction


def test_the_models_phrases_equal_those_of_one_call_per_document(model):
    """More than 20 candidates: maxsum has 15,504 sets of 15 of the nearest 20 to choose from."""
    texts = {"A": NARRATIVES[9], "B": NARRATIVES[28]}
    for ours, keyberts in ours_and_keyberts(model, texts, ["A"]):
        assert len(ours) == 15
        our_phrases, our_scores = zip(*ours, strict=True)
        phrases, scores = zip(*keyberts, strict=True)
        assert our_phrases == phrases
        assert our_scores == pytest.approx(scores, abs=1.1e-4)


@pytest.mark.parametrize("n", [1, 12])
def test_keywords_of_short_documents_are_keyberts(n):
    """5, 6 or 7 words: too few candidates for maxsum, just enough, and some more."""
    words = [word for word in " ".join(NARRATIVES).split() if word not in ENGLISH_STOP_WORDS]
    texts = {}
    for start in range(2, n + 2):
        length = 5 + start % 3
        texts[start] = " ".join(words[start : start + length])

    letters = Letters()
    counts = set()
    for ours, keyberts in ours_and_keyberts(letters, texts):
        assert ours == keyberts
        counts.add(len(keyberts))
    assert counts >= ({0, 12, 15} if n > 1 else {15})

    letters.batches.clear()
    extract(texts, letters)
    assert len(letters.batches) == 2  # all documents and all phrases, for the three settings


def test_too_few_candidates_and_too_many_pieces_are_counted():
    texts = {"none": "", "only stop words": "they are", "few": "big red dogs", "long": "ab " * 38}
    extracted = extract(texts, Letters())

    counts = extracted.phrases.groupby(["document", "setting"]).size()
    assert counts.to_dict() == {
        ("few", "MMR 0.7"): 6,
        ("few", "MMR 0.2"): 6,
        ("long", "MMR 0.7"): 3,
        ("long", "MMR 0.2"): 3,
    }
    assert extracted.documents.to_dict("list") == {
        "document": [*texts],
        "n_candidates": [0, 0, 6, 3],
        "n_pieces": [2, 4, 5, 40],
        "read_pct": [100, 100, 100, 25],
    }

    for texts in ({}, {"none": ""}):
        nothing = extract(texts, Letters())
        assert len(nothing.phrases) == 0
        assert len(nothing.documents) == len(texts)


def test_a_model_without_a_limit_reads_a_text_to_its_end():
    unlimited = Letters()
    unlimited.max_seq_length = None

    extracted = extract({"long": "ab " * 38}, unlimited)

    assert extracted.documents.read_pct.tolist() == [100]


def test_word_pieces_are_counted_by_the_models_tokenizer(model):
    pieces = len(model.tokenizer.tokenize("unhappiness"))
    assert pieces > 1

    extracted = extract({"A": "unhappiness " * 200}, model).documents

    in_all = 200 * pieces + 2
    assert extracted.n_pieces.item() == in_all
    assert extracted.read_pct.item() == pytest.approx(100 * 256 / in_all)


def test_one_thread_while_embedding_and_as_many_as_before_afterwards():
    before = torch.get_num_threads()
    letters = Letters()
    torch.set_num_threads(2)
    try:
        extract({"A": "big red dogs"}, letters)

        assert letters.threads == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


# --- texts


def test_released_preparation_keeps_what_the_released_code_keeps():
    """A name of two words stays, but for "whites", a stop word; "Black" with a capital is none."""
    text = "Asians, and Poor Whites: the CEOs' low-income  people are\nBlack! Women's"
    groups = ["Asians", "poor Whites", "CEOs", "women"]
    stays = "they and poor the they lowincome  are\nblack womens"
    assert prepare(text, groups, "released") == stays


def test_sound_preparation_replaces_every_group():
    text = "Asians, and Poor  Whites: the CEOs' low-income people are\nBLACK! Women's, womenfolk"
    groups = ["Asians", "poor", "poor Whites", "CEOs", "women"]
    stays = "they, and they: the they' low-income are ! they's, womenfolk"
    assert prepare(text, groups) == stays
    assert prepare("Indian  Americans help", []) == "help"  # a stop word of two words
    assert prepare("Nothing Changes.", []) == "nothing changes."


@pytest.mark.parametrize("change", [str, str.upper, lambda name: name.replace("-", " ")])
def test_every_form_of_every_group_is_found_whole(change):
    assert len(NAMES) > 100
    for name in NAMES:
        assert prepare(f"({change(name)})", NAMES) == "(they)", name


def test_documents_join_the_reasons_of_a_cluster_or_a_group():
    reasons = pd.DataFrame(
        [
            ("Nurses care.", "nurses", 1),
            ("Jobs pay.", "nurses", 1),
            ("Nurses care.", "nurses", 1),
            ("Jobs pay.", "lawyers", 0),
            ("Lost.", "jocks", None),
            ("Pay pays.", "lawyers", 0),
        ],
        columns=["text", "group", "cluster"],
    )

    assert documents(reasons, "group", ["nurses"]) == {
        "jocks": "lost.",
        "lawyers": "jobs pay. pay pays.",
        "nurses": "they care. jobs pay.",
    }
    assert documents(reasons, "cluster", ["nurses"], "released") == {
        0: "pay pays",
        1: "they care jobs pay",
    }


def test_stop_words_are_those_of_the_released_code():
    assert len(stop_words()) == 55
    assert {"Indian Americans", "Asians", "asians", "people"} < stop_words()
    assert not [word for word in stop_words() if word.startswith("#")]


# --- the model's files, and those of the paper's lemmatizer


def test_every_file_of_both_packages_has_the_known_content():
    corpora.instrument("all-MiniLM-L6-v2")
    assert len(FILES) == 10
    dictionary.lemmatizer.cache_clear()
    assert dictionary.lemmatizer("paper")("takers") == ["taker"]
    assert len(corpora.INSTRUMENTS) == 2
    for model in corpora.INSTRUMENTS.values():
        assert Requirement(model["package"]).name.replace("-", "_") not in sys.modules


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A package that is installed: the files of the model, each with its own name as text."""
    inside = tmp_path / "some_model" / "model"
    for name in FILES:
        (inside / name).parent.mkdir(parents=True, exist_ok=True)
        (inside / name).write_text(name, "utf-8")
        monkeypatch.setitem(FILES, name, hashlib.sha256(name.encode()).hexdigest())
    monkeypatch.setitem(MODEL, "package", "some-model==1.0")
    monkeypatch.syspath_prepend(tmp_path)
    return inside


@pytest.mark.parametrize("name", FILES)
def test_a_model_with_one_changed_byte_is_not_loaded(folder, name):
    assert corpora.instrument("all-MiniLM-L6-v2") == folder

    changed = f"{name}."
    (folder / name).write_text(changed, "utf-8")
    digest = hashlib.sha256(changed.encode()).hexdigest()[:12]
    sentence = rf"{re.escape(name)} has SHA-256 {digest}\.\.\., expected {FILES[name][:12]}"
    with pytest.raises(InputError, match=sentence):
        load_model()


def test_a_missing_file_or_package_is_named(folder, monkeypatch):
    (folder / "vocab.txt").unlink()
    with pytest.raises(InputError, match=r"vocab.txt cannot be read: No such file.*; nothing was"):
        load_model()

    monkeypatch.setitem(MODEL, "package", "no-such-model==1.0")
    with pytest.raises(InputError, match=r"no-such-model is not.*`pip install no-such-model==1"):
        load_model()


# --- what keywords say of dimensions: both ways by hand, the sound one against plain loops

TOY = """original word,preprocessed word 3 (lemmatized),A dictionary,A direction,\
B dictionary,B direction,C dictionary
good,good,1,1,0,NA,0
bad,bad,1,-1,1,-1,0
plain,plain,1,0,0,NA,1
lost,lost,1,NA,1,1,0
Up,up,1,1,0,NA,1
two words,twowords,1,1,0,NA,1
press,press,0,NA,1,1,0
pressed,press,1,1,1,-1,0
stray,stray,0,1,0,NA,0
"""
WORDS = ["good", "bad", "plain", "lost", "Up", "two words", "press", "pressed", "stray"]
NOTHING = dict.fromkeys("ABC", (None, None, None))


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    file = tmp_path_factory.mktemp("toy") / "toy.csv"
    file.write_text(TOY, "utf-8")
    return load_lexicon(file)


def table(toy, given: dict[str, list[str]]) -> pd.DataFrame:
    """Keywords of groups, each with what the dictionary has of it."""
    rows = pd.Series(given, dtype=object).explode().dropna()
    rows = rows.rename_axis("group").reset_index(name="keyword")
    return find(rows.keyword, toy, lambda word: [], {}).assign(group=rows.group)


def values(rows: pd.DataFrame, group) -> dict[str, tuple]:
    """Share, direction and score by dimension; None where one is missing."""
    of_group = rows[rows[rows.columns[0]] == group].set_index("dimension")
    numbers = of_group[["share", "direction", "score"]].round(9).astype(object)
    numbers = numbers.where(numbers.notna(), None)
    return dict(zip(numbers.index, numbers.itertuples(index=False, name=None), strict=True))


def test_sound_scores_equal_those_by_hand(toy):
    keywords = table(toy, {"x": ["good", "Good", "bad", "plain", "nothing"], "y": ["nothing"]})

    rows = scores(keywords, toy)

    assert rows.columns.tolist() == ["group", "dimension", "share", "direction", "score", "n"]
    assert rows.group.tolist() == ["x"] * 3 + ["y"] * 3
    assert rows.n.tolist() == [4] * 3 + [0] * 3  # the keyword without a word does not count
    assert values(rows, "x") == {
        "A": (1, 0.25, 0.25),
        "B": (0.25, -1, -0.25),
        "C": (0.25, None, None),
    }
    assert values(rows, "y") == NOTHING


def test_contradictory_pairs_are_left_out_and_the_word_still_counts(toy):
    rows = scores(table(toy, {"x": ["lost", "pressed", "stray", "good"]}), toy)
    # lost has no direction in A; pressed and press point opposite ways in B; stray is no member.
    assert values(rows, "x") == {"A": (0.5, 1, 0.5), "B": (0.25, 1, 0.25), "C": (0, None, None)}
    assert rows.n.tolist() == [4] * 3


def test_a_cluster_is_the_mean_of_its_groups(toy):
    given = {"x": ["good"] * 3, "y": ["bad"], "z": ["plain", "bad"], "none": ["nothing"]}
    keywords = table(toy, given)
    keywords["cluster"] = keywords.group.map({"x": 0, "y": 0, "none": 0, "z": 1})

    pooled = scores(keywords, toy, "cluster")
    even = scores(keywords, toy, "cluster", "group")

    assert values(pooled, 0) == {"A": (1, 0.5, 0.5), "B": (0.25, -1, -0.25), "C": (0, None, None)}
    assert values(even, 0) == {"A": (1, 0, 0), "B": (0.5, -1, -0.5), "C": (0, None, None)}
    of_z = values(scores(keywords, toy), "z")
    assert values(pooled, 1) == of_z
    assert values(even, 1) == of_z
    assert even.n.tolist() == [4] * 3 + [2] * 3


@settings(max_examples=15)
@given(st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from([*WORDS, "no"])), max_size=20))
def test_scores_equal_those_of_plain_loops(toy, rows):
    given = {}
    for group, keyword in rows:
        given.setdefault(group, []).append(keyword)

    result = scores(table(toy, given), toy)

    assert result.group.unique().tolist() == list(given)
    for row in result.itertuples():
        words = [word for word in given[row.group] if word in WORDS]
        directions = []
        for word in words:
            is_member = toy.members.loc[word, row.dimension]
            is_odd = toy.odd.loc[word, row.dimension]
            if is_member and not is_odd:
                directions.append(toy.directions.loc[word, row.dimension])

        assert row.n == len(words)
        if words:
            assert row.share == pytest.approx(len(directions) / len(words))
        if not words or row.dimension == "C":
            assert pd.isna(row.score)
            continue

        assert row.score == pytest.approx(sum(directions) / len(words))
        if directions:
            assert row.direction == pytest.approx(np.mean(directions))


def test_released_scores_equal_those_by_hand(toy):
    # Five of these are dropped: two repeats, a capital of the file, a space, and what no word is.
    keywords = [" Good ", "good", "bad", "plain", "Up", "two words", "nothing", "pressed", "good"]
    of_cluster = table(toy, {"x": keywords}).rename(columns={"group": "cluster"})

    rows = released_scores(of_cluster, toy)

    # good A+; bad A-, B-; plain A0, C; pressed A+, B-: seven pairs.
    assert values(rows, "x") == {
        "A": pytest.approx((4 / 7, 1 / 4, 1 / 7), rel=0, abs=1e-9),
        "B": pytest.approx((2 / 7, -2 / 2, -2 / 7), rel=0, abs=1e-9),
        "C": pytest.approx((1 / 7, 1 / 1, 1 / 7), rel=0, abs=1e-9),
    }
    assert rows.n.tolist() == [4] * 3


def test_a_missing_direction_makes_a_released_score_missing(toy):
    keywords = table(toy, {"x": ["good", "lost", "press"], "y": ["good"], "z": ["Up"]})

    rows = released_scores(keywords, toy, "group")

    assert values(rows, "x") == {"A": (0.5, None, None), "B": (0.5, 1, 0.5), "C": (0, None, 0)}
    assert values(rows, "y") == {"A": (1, 1, 1), "B": (0, None, 0), "C": (0, None, 0)}
    assert values(rows, "z") == NOTHING
    assert rows.n.tolist() == [3] * 3 + [1] * 3 + [0] * 3


def test_repeated_keywords_count_in_the_sound_scores_alone(toy):
    keywords = table(toy, {"x": ["good"] * 9 + ["bad"]})

    sound = values(scores(keywords, toy), "x")
    released = values(released_scores(keywords, toy, "group"), "x")

    assert sound["A"] == (1, 0.8, 0.8)
    assert released["A"][2] == 0


def test_top_takes_the_scores_farthest_from_zero():
    above_three_tenths = 0.1 + 0.2  # by rounding
    rows = pd.DataFrame(
        [
            (2, "A", 0.3, above_three_tenths),
            (2, "B", 0.5, -0.5),
            (2, "C", 0.2, -0.3),
            (2, "D", 0.4, 0.0),
            (2, "E", 0.0, 0.0),
            (2, "F", 0.9, np.nan),
            (1, "A", 0.1, 0.1),
            (1, "B", 0.2, 0.2),
        ],
        columns=["cluster", "dimension", "share", "score"],
    )

    best = top(rows, 3)

    assert best.columns.tolist() == [*rows.columns, "rank", "sign"]
    assert best[["cluster", "dimension", "rank", "sign"]].to_numpy().tolist() == [
        [2, "B", 1, "-"],
        [2, "A", 2, "+"],  # equal to C but for rounding: in the order of the dictionary
        [2, "C", 3, "-"],
        [1, "B", 1, "+"],
        [1, "A", 2, "+"],
    ]
    assert top(rows).sign.tolist() == ["-", "+", "-", "0", "+", "+"]
