"""One file of families: read whole, refused in one sentence, and corrected as Holm does."""

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.multitest import multipletests

from ingroup import families, paths
from ingroup.commands import settings
from ingroup.commands.run_parameters import defaults
from ingroup.tables import InputError


def test_every_study_has_a_family():
    of_study = families.families()
    assert sorted(of_study) == settings.study_names()
    assert of_study["empathy_gap"].together == ("model", "setting")
    # The second study's level is a parameter, too: the paper's, unless somebody sets another.
    assert of_study["biased_samaritan"].level == defaults("20_biased_samaritan")["ALPHA"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a: {claim: x, words: {}, together: [m], method: holm}",
            "a: found no entry 'level', expected one",
        ),
        (
            "a: {claim: x, words: {}, together: [m], method: tukey, level: 0.05}",
            "a, method: found 'tukey', expected 'holm' or 'largest'",
        ),
        (
            "a: {claim: x, words: {}, together: [m], method: holm, level: 5}",
            "a, level: found 5, expected less than 1",
        ),
        (
            "a: {claim: x, words: {}, together: [m], method: holm, level: 0.05, more: 1}",
            "a: found the entry 'more', expected only claim, words, together, method, level",
        ),
    ],
)
def test_a_family_that_is_wrong_says_where(tmp_path, text, message):
    file = tmp_path / "families.yaml"
    file.write_text(text, "utf8")

    with pytest.raises(InputError, match=message):
        families.families(file)


def test_each_sentence_of_a_paper_has_words_for_what_it_says():
    headlines = pd.read_csv(paths.JUDGEMENTS / "headlines.csv")
    of_studies = families.families()

    said = [of_studies[row.paper].words[row.way] for row in headlines.itertuples()]

    assert said[:4] == ["ratings are higher within groups"] * 3 + ['as helpful as "a person"']
    assert said[-1] == "more competent than warm"  # Nurses (4.06>3.52)


def test_a_family_holds_the_categories_of_one_model_and_setting():
    table = pd.DataFrame(
        {
            "model": ["a"] * 4 + ["b"],
            "setting": ["P0", "P0", "P0", "P1", "P0"],
            "p": [0.01, 0.04, np.nan, 0.01, 0.01],
            "p_least": [0.001, 0.02, 0.001, 0.001, 0.001],
        }
    )

    corrected = families.corrected(table, "empathy_gap")

    _, by_hand, *_ = multipletests([0.01, 0.04], method="holm")
    assert corrected.holm[:2].tolist() == pytest.approx(by_hand.tolist())
    assert np.isnan(corrected.holm[2])
    assert corrected.holm[3:].tolist() == [0.01, 0.01]
    assert corrected.least[:2].tolist() == [0.002, 0.02]
    assert np.isnan(corrected.least[2])
    assert corrected.tests.tolist() == [2, 2, 2, 1, 1]


def test_a_table_of_one_model_is_one_family():
    table = pd.DataFrame({"p": [0.01, 0.02], "p_least": [0.0, 0.0]})
    assert families.corrected(table, "giebench").holm.tolist() == [0.02, 0.02]


def test_another_method_is_refused():
    with pytest.raises(ValueError, match="stereomap is corrected by 'largest', expected 'holm'"):
        families.corrected(pd.DataFrame({"p": [], "p_least": []}), "stereomap")


def test_tests_without_a_smallest_p_have_the_smallest_p_0():
    table = pd.DataFrame({"model": "a", "setting": "P0", "p": [0.01, 0.04, np.nan]})

    corrected = families.corrected(table, "empathy_gap", least=None)

    assert corrected.holm.tolist() == pytest.approx([0.02, 0.04, np.nan], nan_ok=True)
    assert corrected.least.tolist() == pytest.approx([0, 0, np.nan], nan_ok=True)
    assert corrected.tests.tolist() == [2, 2, 2]
