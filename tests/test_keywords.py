"""Keywords: KeyBERT's own; prepared texts by hand; the model's files; what is refused."""

import hashlib
import re
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from keybert import KeyBERT
from keybert.backend import BaseEmbedder
from packaging.requirements import Requirement
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, HashingVectorizer

from ingroup import corpora, dictionary, paths
from ingroup.keywords import SETTINGS, documents, extract, load_model, prepare, stop_words
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
        self.asked, self.threads = [], set()

    def embed(self, documents, verbose=False):
        self.asked.append(len(documents))
        self.threads.add(torch.get_num_threads())
        return self.count.transform(documents).toarray().astype(np.float32)

    def tokenizer(self, text, **_):
        return {"input_ids": ["", *text.split(), ""]}


@pytest.fixture(scope="module")
def model():
    loaded = load_model()
    assert Requirement(MODEL["package"]).name.replace("-", "_") not in sys.modules
    return loaded


def here_and_there(model, texts, compared=None):
    """Phrases and scores by document and setting: ours, and of one call of KeyBERT's for each."""
    found = extract(texts, model).phrases
    for document in compared or texts:
        for setting, how in SETTINGS.items():
            rows = found[(found.document == document) & (found.setting == setting)]
            assert list(rows["rank"]) == list(range(1, len(rows) + 1))
            options = {"keyphrase_ngram_range": (1, 3), "top_n": 15, **how}
            there = KeyBERT(model).extract_keywords(texts[document], **options)
            there = there[::-1] if "use_maxsum" in how else there  # lists the farthest first
            yield list(zip(rows.phrase, rows.score, strict=True)), there


# --- extraction


def test_the_models_phrases_are_those_of_one_call_a_document(model):
    """More than 20 candidates: maxsum has 15,504 sets of 15 of the nearest 20 to choose from."""
    for here, there in here_and_there(model, {"A": NARRATIVES[9], "B": NARRATIVES[28]}, ["A"]):
        assert [phrase for phrase, _ in here] == [phrase for phrase, _ in there]
        assert [score for _, score in here] == pytest.approx([s for _, s in there], abs=1.1e-4)
        assert len(here) == 15


@pytest.mark.parametrize("n", [1, 12])
def test_as_keybert_finds_them_in_short_documents(n):
    """5, 6 or 7 words: too few candidates for maxsum, just enough, and some more."""
    words = [word for word in " ".join(NARRATIVES).split() if word not in ENGLISH_STOP_WORDS]
    texts = {i: " ".join(words[i : i + 5 + i % 3]) for i in range(2, n + 2)}
    letters, lengths = Letters(), set()
    for here, there in here_and_there(letters, texts):
        assert here == there
        lengths.add(len(there))
    assert lengths >= ({0, 12, 15} if n > 1 else {15})
    letters.asked.clear()
    extract(texts, letters)
    assert len(letters.asked) == 2  # all documents and all phrases, for the three settings


def test_too_few_candidates_and_too_many_pieces_can_be_seen():
    texts = {"none": "", "only stop words": "they are", "few": "big red dogs", "long": "ab " * 38}
    found = extract(texts, Letters())
    counts = found.phrases.groupby(["document", "setting"]).size().to_dict()
    sizes = {"few": 6, "long": 3}
    assert counts == {(d, s): n for d, n in sizes.items() for s in ("MMR 0.7", "MMR 0.2")}
    assert found.documents.to_dict("list") == {
        "document": [*texts],
        "n_candidates": [0, 0, 6, 3],
        "n_pieces": [2, 4, 5, 40],
        "read_pct": [100, 100, 100, 25],
    }
    for texts in ({}, {"none": ""}):
        nothing = extract(texts, Letters())
        assert (len(nothing.phrases), len(nothing.documents)) == (0, len(texts))


def test_word_pieces_are_the_models(model):
    found = extract({"A": "unhappiness " * 200}, model).documents
    pieces = len(model.tokenizer.tokenize("unhappiness"))
    assert pieces > 1
    assert found.n_pieces.item() == 200 * pieces + 2
    assert found.read_pct.item() == pytest.approx(100 * 256 / (200 * pieces + 2))


def test_one_thread_while_embedding_and_as_many_as_before_afterwards():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        letters = Letters()
        extract({"A": "big red dogs"}, letters)
        assert letters.threads == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


# --- texts


def test_prepared_as_the_released_code_does():
    """A name of two words stays, but for "whites", a stop word; "Black" with a capital is none."""
    text = "Asians, and Poor Whites: the CEOs' low-income  people are\nBlack! Women's"
    groups = ["Asians", "poor Whites", "CEOs", "women"]
    stays = "they and poor the they lowincome  are\nblack womens"
    assert prepare(text, groups, "released") == stays


def test_prepared_soundly():
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


def test_documents_by_cluster_and_by_group():
    texts = ["Nurses care.", "Jobs pay.", "Nurses care.", "Jobs pay.", "Lost.", "Pay pays."]
    groups = ["nurses", "nurses", "nurses", "lawyers", "jocks", "lawyers"]
    reasons = pd.DataFrame({"text": texts, "group": groups, "cluster": [1, 1, 1, 0, None, 0]})
    assert documents(reasons, "group", ["nurses"]) == {
        "jocks": "lost.",
        "lawyers": "jobs pay. pay pays.",
        "nurses": "they care. jobs pay.",
    }
    by_cluster = {0: "pay pays", 1: "they care jobs pay"}
    assert documents(reasons, "cluster", ["nurses"], "released") == by_cluster


def test_stop_words_as_released():
    assert len(stop_words()) == 55
    assert {"Indian Americans", "Asians", "asians", "people"} < stop_words()
    assert not [word for word in stop_words() if word.startswith("#")]


# --- the model's files, and those of the paper's lemmatizer


def test_every_file_of_both_packages_is_the_known_one():
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
def test_one_other_byte_and_the_model_is_not_loaded(folder, name):
    assert corpora.instrument("all-MiniLM-L6-v2") == folder
    (folder / name).write_text(name + ".", "utf-8")
    found = hashlib.sha256(f"{name}.".encode()).hexdigest()[:12]
    sentence = rf"{re.escape(name)} has SHA-256 {found}\.\.\., expected {FILES[name][:12]}"
    with pytest.raises(InputError, match=sentence):
        load_model()


def test_a_file_or_a_package_that_is_not_there(folder, monkeypatch):
    (folder / "vocab.txt").unlink()
    with pytest.raises(InputError, match=r"vocab.txt cannot be read: No such file.*; nothing was"):
        load_model()
    monkeypatch.setitem(MODEL, "package", "no-such-model==1.0")
    with pytest.raises(InputError, match=r"no-such-model is not.*`pip install no-such-model==1"):
        load_model()
