"""Keywords: KeyBERT's own, document by document; prepared texts by hand; what is refused."""

import sys

import numpy as np
import pandas as pd
import pytest
import torch
from keybert import KeyBERT
from keybert.backend import BaseEmbedder
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, HashingVectorizer
from sklearn.metrics.pairwise import cosine_similarity

from ingroup import keywords, paths
from ingroup.keywords import SETTINGS, documents, extract, load_stop_words, prepare
from ingroup.sentence_model import PACKAGE, load_model
from ingroup.tables import InputError

NARRATIVES = list(pd.read_csv(paths.SAMPLE / "narratives.tsv", sep="\t").generated_text)
FORMS = pd.read_csv(paths.STIMULI / "stereomap" / "groups.csv")[
    ["group", "extended", "original", "people"]
]
NAMES = [*dict.fromkeys(FORMS.stack().dropna())]


SMALL = SETTINGS | {"maxsum of 20": {"use_maxsum": True, "nr_candidates": 8}}


class Letters(BaseEmbedder):
    """Vectors from three-letter sequences: a stand-in for a model, for KeyBERT and for us."""

    max_seq_length = 10

    def __init__(self):
        self.count = HashingVectorizer(analyzer="char_wb", ngram_range=(3, 3), n_features=64)
        self.threads = set()

    def encode(self, texts, show_progress_bar):
        self.threads.add(torch.get_num_threads())
        return self.embed(texts)

    def embed(self, documents, verbose=False):
        return self.count.transform(documents).toarray().astype(np.float32)

    def tokenizer(self, text, **_):
        return {"input_ids": ["", *text.split(), ""]}


class Given:
    """Vectors as given, a text at a time."""

    max_seq_length = 10
    tokenizer = Letters.tokenizer

    def __init__(self, vectors):
        self.vectors = vectors

    def encode(self, texts, show_progress_bar):
        return np.array([self.vectors[text] for text in texts], dtype=np.float32)


class Once:
    """The model, asked once for each list of texts: by KeyBERT or by us."""

    def __init__(self, model):
        self.model, self.known = model, {}
        self.tokenizer, self.max_seq_length = model.tokenizer, model.max_seq_length

    def encode(self, texts, show_progress_bar):
        key = tuple(texts)
        if key not in self.known:
            self.known[key] = self.model.encode(list(texts), show_progress_bar=False)
        return self.known[key]


class Backend(BaseEmbedder):
    def embed(self, documents, verbose=False):
        return self.embedding_model.encode(documents, verbose)


@pytest.fixture(scope="module")
def model():
    loaded = load_model()
    assert PACKAGE.partition("==")[0].replace("-", "_") not in sys.modules
    return loaded


def only_with_the_document(a, b):
    """scikit-learn's function, that may not be called for all pairs of candidates."""
    return cosine_similarity(a, b)


def of(extraction, document, setting):
    """The phrases of one document and setting, in KeyBERT's order."""
    rows = extraction.phrases.query("document == @document and setting == @setting")
    assert list(rows["rank"]) == list(range(1, len(rows) + 1))
    found = list(zip(rows.phrase, rows.score, strict=True))
    return found[::-1] if "use_maxsum" in SETTINGS[setting] else found


def test_as_keybert_finds_them_one_call_a_document(model):
    """More than 20 candidates: maxsum has 15,504 sets of 15 of the nearest 20 to choose from."""
    texts = {"A": NARRATIVES[9], "B": NARRATIVES[28]}
    found = extract(texts, model)
    assert found.documents.n_candidates.gt(20).all()
    kw_model = KeyBERT(model)
    for (document, text), setting in ((d, s) for d in texts.items() for s in SETTINGS):
        expected = kw_model.extract_keywords(
            text, keyphrase_ngram_range=(1, 3), top_n=15, **SETTINGS[setting]
        )
        assert of(found, document, setting) == expected
        assert len(expected) == 15


def test_as_keybert_finds_them_in_60_documents(model):
    """5, 6 or 7 words of a narrative: too few candidates for maxsum, just enough, and some more."""
    words = [word for word in " ".join(NARRATIVES).split() if word not in ENGLISH_STOP_WORDS]
    texts = [" ".join(words[i : i + 5 + i % 3]) for i in range(60)]
    model = Once(model)
    found = extract(dict(enumerate(texts)), model)
    kw_model, lengths = KeyBERT(Backend(model)), set()
    for (document, text), setting in ((d, s) for d in enumerate(texts) for s in SETTINGS):
        expected = kw_model.extract_keywords(
            text, keyphrase_ngram_range=(1, 3), top_n=15, **SETTINGS[setting]
        )
        assert of(found, document, setting) == expected
        lengths.add(len(expected))
    assert {0, 12, 15} <= lengths
    assert len(model.known) == 120  # no list of phrases but KeyBERT's own was embedded


def test_as_keybert_finds_them_in_whole_narratives():
    """All narratives, with other numbers: 5 phrases of one or two words, maxsum of 8."""
    letters = Letters()
    found = extract(dict(enumerate(NARRATIVES)), letters, SMALL, 5, (1, 2), ["the", "when"])
    kw_model = KeyBERT(letters)
    assert len(NARRATIVES) >= 60
    for document, text in enumerate(NARRATIVES):
        for setting, how in SMALL.items():
            expected = kw_model.extract_keywords(
                text, keyphrase_ngram_range=(1, 2), stop_words=["the", "when"], top_n=5, **how
            )
            assert of(found, document, setting) == expected


def test_a_long_document_needs_no_whole_matrix(monkeypatch):
    texts = dict(enumerate(NARRATIVES[:20]))
    whole = extract(texts, Letters(), SMALL, 5)
    monkeypatch.setattr(keywords, "_WHOLE", 0)
    monkeypatch.setattr(keywords, "cosine_similarity", only_with_the_document)
    assert extract(texts, Letters(), SMALL, 5).phrases.equals(whole.phrases)


def test_three_phrases_by_hand():
    """Cosines to the document 4/5, 3/5 and 5/13; near-twin 24/25, near-other 4/13,
    twin-other 3/13.

    After near, MMR gains .8 x .6 - .2 x .96 = .288 by twin and .246 by other at diversity .2;
    -.492 and -.1 at .7. Of the pairs twin and other have the least in common.
    """
    text = "near other twin"
    vectors = {text: [1, 0, 0], "near": [4, 3, 0], "twin": [3, 4, 0], "other": [5, 0, 12]}
    settings = SETTINGS | {"maxsum of 20": {"use_maxsum": True, "nr_candidates": 3}}
    found = extract({"A": text}, Given(vectors), settings, top_n=2, ngrams=(1, 1), stop_words=None)
    pd.testing.assert_frame_equal(
        found.phrases,
        pd.DataFrame(
            {
                "document": "A",
                "setting": np.repeat(["maxsum of 20", "MMR 0.7", "MMR 0.2"], 2),
                "rank": [1, 2] * 3,
                "phrase": ["twin", "other", "near", "other", "near", "twin"],
                "score": [0.6, 0.3846, 0.8, 0.3846, 0.8, 0.6],
            }
        ),
    )


def test_too_few_candidates_and_too_many_pieces_can_be_seen():
    texts = {"none": "", "only stop words": "they are", "few": "big red dogs", "long": "ab " * 38}
    found = extract(texts, Letters())
    counts = found.phrases.groupby(["document", "setting"]).size().to_dict()
    assert counts == {
        ("few", "MMR 0.7"): 6,
        ("few", "MMR 0.2"): 6,
        ("long", "MMR 0.7"): 3,
        ("long", "MMR 0.2"): 3,
    }
    assert found.documents.to_dict("list") == {
        "document": [*texts],
        "n_candidates": [0, 0, 6, 3],
        "n_pieces": [2, 4, 5, 40],
        "read_pct": [100, 100, 100, 25],
    }
    nothing = extract({}, Letters())
    assert len(nothing.phrases) == len(nothing.documents) == 0


def test_word_pieces_are_the_models(model):
    found = extract({"A": "unhappiness " * 200}, model, top_n=1, ngrams=(1, 1)).documents
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
    assert prepare("Indian  Americans help", [], stop_words=["Indian Americans"]) == "help"
    assert prepare("Nothing Changes.", [], stop_words=[]) == "nothing changes."


@pytest.mark.parametrize("change", [str, str.upper, lambda name: name.replace("-", " ")])
def test_every_form_of_every_group_is_found_whole(change):
    assert len(NAMES) > 100
    for name in NAMES:
        assert prepare(f"({change(name)})", NAMES) == "(they)", name


def test_documents_by_cluster_and_by_group():
    reasons = pd.DataFrame(
        {
            "text": [
                "Nurses care.",
                "Jobs pay.",
                "Nurses care.",
                "Jobs pay.",
                "Lost.",
                "Pay pays.",
            ],
            "group": ["nurses", "nurses", "nurses", "lawyers", "jocks", "lawyers"],
            "cluster": [1, 1, 1, 0, None, 0],
        }
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


def test_stop_words_as_released():
    words = load_stop_words()
    assert len(words) == len(set(words)) == 55
    assert {"Indian Americans", "Asians", "asians", "people"} < {*words}
    assert not [word for word in words if word.startswith("#")]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: prepare("a", [], "printed"), "sound or released, not 'printed'"),
        (lambda: extract({"A": None}, None), "Document 'A': found None, expected text"),
        (lambda: extract({}, None, top_n=0), "top_n is 0, expected 1 or more"),
        (
            lambda: extract({}, None, {"own": {"use_mmr": True}}),
            "Setting 'own': found use_mmr, expected use_maxsum and nr_candidates, or use_mmr and",
        ),
        (lambda: extract({}, None, top_n=21), "'maxsum of 20': 21 phrases of 20 candidates"),
        (
            lambda: extract({}, None, {"big": {"use_maxsum": True, "nr_candidates": 23}}),
            "'big': 15 phrases of 23 candidates, expected .* at most 200,000 ways",
        ),
        (
            lambda: documents(pd.DataFrame({"reason": [1], "group": [1]}), "group", []),
            "no column 'text', found reason, group",
        ),
        (
            lambda: documents(pd.DataFrame({"text": ["a", 3], "group": 1}), "group", []),
            "Reason 2 of 2: found 3, expected text",
        ),
        (lambda: prepare("a", ["men", None]), "Names and stop words: found None, expected text"),
        (lambda: load_stop_words("no/such.txt"), "no/such.txt cannot be read: No such file"),
    ],
)
def test_what_is_refused(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()
