"""The calibrants: small, and their tokenizers know what the studies say."""

import pytest
from transformers import AutoTokenizer

import training
from ingroup import paths
from ingroup.models import calibrants, is_calibrant


@pytest.mark.parametrize("name", calibrants())
def test_the_models_are_small_and_say_what_they_are(name):
    folder = paths.MODELS / name
    files = [file for file in folder.iterdir() if file.is_file()]
    assert sum(file.stat().st_size for file in files) < 6_000_000
    assert not [file for file in files if file.suffix in (".bin", ".pt", ".pkl")]
    assert is_calibrant(name)
    assert not is_calibrant("meta-llama/Llama-3.1-8B-Instruct")
    assert "demonstration" in (folder / "README.md").read_text("utf8")


def test_numbers_of_the_scale_are_single_tokens():
    tokenizer = AutoTokenizer.from_pretrained(paths.MODELS / "calibrant")
    ids = [tokenizer.encode(str(n), add_special_tokens=False) for n in range(101)]
    assert {len(i) for i in ids} == {1}
    assert len({i[0] for i in ids}) == 101


def test_the_tokenizer_knows_the_words_of_every_study():
    tokenizer = AutoTokenizer.from_pretrained(paths.MODELS / "calibrant")
    for word in (" Hindu", " geriatric", " supermarket", " Palestine"):
        assert len(tokenizer.encode(word, add_special_tokens=False)) == 1
    for phases in training.PHASES.values():
        assert set().union(*(phase.shares for phase in phases)) == set(training.STUDIES)
