"""Keywords of reasons by KeyBERT, and notebook 41."""

import golden
import pandas as pd
import pytest

from ingroup import keywords
from ingroup.stereomap import stimuli
from ingroup.tables import InputError

TEXTS = {
    "school": "Teachers work long hours with children and read their books in noisy old rooms. "
    "Their schools lack money, paper and quiet, and parents still expect good lessons every day.",
    "farm": "Farmers grow wheat and keep cows on wide green land near rivers. Machines cost much, "
    "dry summers kill plants, and large markets pay low prices for milk and fresh vegetables.",
}


def test_prepare_writes_they_for_names_and_drops_stop_words(monkeypatch):
    monkeypatch.setattr(keywords, "stop_words", lambda: frozenset({"united states", "rating"}))
    text = "The Jews, and Stay-at-home moms of the United States: a Rating"
    groups = ["Jews", "Stay at home moms", "home"]
    assert keywords.prepare(text, groups) == "the they, and they of the : a"


def test_prepare_replaces_whole_names_only():
    assert keywords.prepare("menace, men's", ["Men"]).startswith("menace, they")


def test_a_repeated_reason_counts_once_in_a_document():
    texts = ["they study", "they study", "they work", "they study"]
    reasons = pd.DataFrame({"text": texts, "cluster": [0, 0, 0, 1]})
    sound = keywords.documents(reasons, "cluster", [])
    assert {name: text.count("study") for name, text in sound.items()} == {0: 1, 1: 1}


def test_a_changed_file_of_an_instrument_is_refused(tmp_path, monkeypatch):
    package = tmp_path / "tiny_model"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "weights").write_text("abc")
    # The SHA-256 of "abc", as FIPS 180-2 prints it.
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    listed = f"tiny:\n  package: tiny-model==1.0\n  folder: .\n  files: {{weights: {digest}}}\n"
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "instruments.yaml").write_text(listed)
    monkeypatch.setattr(keywords, "DATA", tmp_path)
    with pytest.raises(InputError, match="tiny-model is not installed"):
        keywords.instrument("tiny")

    monkeypatch.syspath_prepend(tmp_path)
    assert keywords.instrument("tiny") == package
    (package / "weights").write_text("abd")
    with pytest.raises(InputError, match="not the published file"):
        keywords.instrument("tiny")


@pytest.fixture(scope="module")
def model():
    """Load the sentence model once."""
    return keywords.load_model()


@pytest.fixture(scope="module")
def extracted(model):
    """Extract the phrases of two documents."""
    return keywords.extract(TEXTS, model)


@pytest.mark.parametrize("setting", keywords.SETTINGS)
@pytest.mark.parametrize("document", TEXTS)
def test_phrases_equal_those_of_a_call_of_keybert(document, setting, model, extracted):
    from keybert import KeyBERT

    direct = KeyBERT(model).extract_keywords(
        TEXTS[document],
        keyphrase_ngram_range=(1, 3),
        stop_words="english",
        top_n=15,
        **keywords.SETTINGS[setting],
    )
    is_asked = (extracted.document == document) & (extracted.setting == setting)
    ours = extracted[is_asked]
    assert dict(zip(ours.phrase, ours.score, strict=True)) == pytest.approx(
        dict(direct), abs=0.0002
    )
    assert ours["rank"].tolist() == list(range(1, 16))
    if "use_maxsum" in keywords.SETTINGS[setting]:
        assert ours.score.is_monotonic_decreasing


@pytest.fixture(scope="module")
def run(notebook, tables_of):
    """Run the notebook, behind the one whose clusters it reads."""
    tables_of("40_stereomap")
    return notebook("41_stereomap_keywords")


def test_golden_quantities(run, tables):
    from golden_stereomap import rows_of_keywords

    rows = rows_of_keywords(tables / "stereomap")
    quantities = tuple(rows.quantity.unique())
    assert len(quantities) == 5
    assert golden.differences("stereomap", rows, quantities).empty


def test_coverage_adds_up_step_by_step(run):
    steps = pd.Categorical(["exact", "joined or split", "lemma", None], run.dictionary.STEPS)
    row = run.coverage(pd.DataFrame({"model": "A", "step": steps})).loc["A"]
    assert row.tolist() == [25, 50, 75, 75, 75]


def test_a_keyword_is_whole_and_comes_from_its_reply(run):
    for row in run.first.itertuples():
        for keyword in row.keyword:
            assert keyword.split()[0] in row.text.lower()


def test_a_reply_without_a_list_says_why(run):
    has_list = run.replies["list"].isin(["ok", "too few", "too many"])
    assert run.replies.keyword.map(len).gt(0).equals(has_list)
    assert set(run.replies["list"][~has_list]) <= {
        "refused",
        "unparsable",
        "cut",
        "failed",
        "missing",
    }


def test_many_keywords_repeat_the_words_to_be_rated(run):
    """As the limits of the notebook say: a third or more, the head of the list first."""
    rated = stimuli.prompts("EXTENDED")["Warmth-Competence"].words["ratings"]
    lower = [word.lower() for word in rated]
    assert run.given.keyword.isin(lower).mean() > 1 / 3
    counts = run.given.keyword.value_counts().reindex(lower, fill_value=0)
    assert counts[lower[:3]].min() > counts[lower[3:]].max()
