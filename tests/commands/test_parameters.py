"""Every parameter is checked before anything runs, and every mistake is one sentence."""

import ast

import nbformat
import pytest
import yaml

from ingroup import keywords, paths
from ingroup.commands import parameters
from ingroup.tables import InputError

NOTEBOOK = "10_empathy_gap"


def test_profiles_name_only_parameters_that_exist():
    for profile in ("demo", "full"):
        content = yaml.safe_load((paths.PROFILES / f"{profile}.yaml").read_text("utf8"))
        for notebook, values in content.items():
            source = nbformat.read(paths.NOTEBOOKS / f"{notebook}.ipynb", 4)
            (cell,) = [c for c in source.cells if "parameters" in c.metadata.get("tags", [])]
            names = {node.targets[0].id for node in ast.parse(cell.source).body}
            assert set(values) <= names


def test_given_values_come_before_the_profile_before_the_notebook():
    values = parameters.merged(
        NOTEBOOK, "demo", {"N_EVENTS": "24", "SETTINGS": "P0,S0,T0; P1,S0,T0"}
    )
    assert values["N_EVENTS"] == 24
    assert values["SETTINGS"] == ["P0,S0,T0", "P1,S0,T0"]
    assert values["CONTROL"] == "calibrant-null"
    assert values["N_RESAMPLES"] == 10_000
    assert values["RUN"] == "default"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"MODLE": "x"}, "10_empathy_gap has no parameter MODLE; did you mean MODEL\\?"),
        ({"RUN": "x"}, "10_empathy_gap has no parameter RUN"),
        ({"N_EVENTS": "many"}, "N_EVENTS must be a whole number, found 'many'"),
        ({"N_EVENTS": "2.5"}, "N_EVENTS must be a whole number, found '2.5'"),
        ({"N_EVENTS": "-3"}, "N_EVENTS must not be negative, found -3"),
        ({"N_EVENTS": "1"}, "N_EVENTS must be at least 2"),
        ({"N_EVENTS": "7000"}, "CORPUS 'sample', N_EVENTS 7000: .*72"),
        ({"SEED": "-1"}, "SEED must not be negative"),
        ({"MODEL": "no such model"}, "MODEL 'no such model' is neither a model in data/models"),
        ({"MODEL": ""}, "MODEL is empty"),
        ({"CORPUS": "nowhere.tsv"}, "CORPUS 'nowhere.tsv', N_EVENTS 8: "),
        ({"SETTINGS": "P9,S0,T0"}, "SETTINGS: unknown setting 'P9,S0,T0'"),
        ({"EXCLUSION": "some"}, "EXCLUSION 'some' is unknown; expected any or pairwise"),
        ({"PARSING": "mine"}, "PARSING 'mine' is unknown; expected sound or authors"),
        ({"N_RESAMPLES": "0"}, "N_RESAMPLES must be at least 1"),
        ({"BATCH_SIZE": "0"}, "BATCH_SIZE must be at least 1"),
        ({"GPUS": "0"}, "GPUS must be at least 1"),
        ({"PRICE_IN": "-1"}, "PRICE_IN must not be negative"),
        ({"PRICE_OUT": "a lot"}, "PRICE_OUT must be a number, found 'a lot'"),
        ({"ENGINE": "gpu"}, "ENGINE 'gpu' is unknown; expected transformers, vllm, openai or repl"),
        ({"RATING": "mean"}, "RATING 'mean' is unknown; expected greedy or expected"),
        ({"REWRITER": "no such"}, "REWRITER 'no such' is neither a model in data/models"),
        ({"DTYPE": "bf16"}, "DTYPE 'bf16' is unknown; expected auto, float32, bfloat16 or float16"),
        (
            {"ENGINE": "openai", "BASE_URL": "http://u:secret@h/v1"},
            "BASE_URL: the base URL must read like .* and hold no user, password or query",
        ),
        (
            {"ENGINE": "openai", "SYSTEM": "fold"},
            "SYSTEM is for an engine that loads the model, found ENGINE=openai",
        ),
        ({"ENGINE": "replay"}, "ENGINE=replay needs RECORDINGS=<file or folder>"),
        (
            {"ENGINE": "replay", "MODEL": "theirs", "RECORDINGS": "no"},
            "RECORDINGS: there is nothing at 'no'",
        ),
        ({"RECORDINGS": "x"}, "RECORDINGS is for ENGINE=replay, found ENGINE=transformers"),
        ({"BASE_URL": "http://x/v1"}, "BASE_URL is for ENGINE=openai, found ENGINE=transformers"),
        (
            {"ENGINE": "replay", "RECORDINGS": "x", "CONTROL": "calibrant-null"},
            "ENGINE=replay has the answers of one model: leave CONTROL empty",
        ),
        (
            {"ENGINE": "replay", "RECORDINGS": "x", "RATING": "expected"},
            "RATING=expected needs probabilities, which recordings lack",
        ),
    ],
)
def test_a_wrong_parameter_is_one_sentence(given, message):
    with pytest.raises(InputError, match=message) as error:
        parameters.merged(NOTEBOOK, "demo", given)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"RUNS": "0"}, "RUNS must be at least 1, found 0"),
        ({"MAX_TOKENS": "0"}, "MAX_TOKENS must be at least 1, found 0"),
        ({"TEMPERATURE": "-0.5"}, "TEMPERATURE must be 0 to 2, or -1, found -0.5"),
        ({"TOP_P": "0"}, "TOP_P must be above 0 and at most 1, or -1, found 0"),
        ({"ALPHA": "1"}, "ALPHA must be between 0 and 1, found 1"),
        ({"CROSSING": "half"}, "CROSSING 'half' is unknown; expected full or printed"),
        ({"UNIT": "word"}, "UNIT 'word' is unknown; expected scenario or prompt"),
        ({"UNIT": "prompt", "CROSSING": "printed"}, "leaves no prompt to pair: take UNIT=scenario"),
        ({"BRITTLENESS": "n"}, "BRITTLENESS 'n' is unknown; expected sample or population"),
        ({"SCENARIOS": "nowhere.csv"}, "SCENARIOS: nowhere.csv cannot be read: No such file"),
        ({"N_EVENTS": "4"}, "20_biased_samaritan has no parameter N_EVENTS"),
    ],
)
def test_a_wrong_parameter_of_the_second_study_is_one_sentence(given, message):
    with pytest.raises(InputError, match=message) as error:
        parameters.merged("20_biased_samaritan", "demo", given)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ORDER": "random"}, "ORDER 'random' is unknown; expected given or rotate"),
        ({"RAW": "none"}, "RAW 'none' is unknown; expected paper or released"),
        ({"DENOMINATOR": "n+1"}, r"DENOMINATOR 'n\+1' is unknown; expected n or released"),
        ({"TOP_P": "2"}, "TOP_P must be above 0 and at most 1, or -1, found 2"),
        ({"QUESTIONS": "nowhere.json"}, "QUESTIONS: nowhere.json.*No such file"),
        ({"SCENARIOS": "sample"}, "30_giebench has no parameter SCENARIOS"),
    ],
)
def test_a_wrong_parameter_of_the_third_study_is_one_sentence(given, message):
    with pytest.raises(InputError, match=message) as error:
        parameters.merged("30_giebench", "demo", given)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"FORM": "plural"}, "FORM 'plural' is unknown; expected printed or grammatical"),
        ({"CALLS": "one"}, "CALLS 'one' is unknown; expected together or separate"),
        ({"ROUNDS": "0"}, "ROUNDS must be at least 1, found 0"),
        ({"ABLATION_ROUNDS": "-1"}, "ABLATION_ROUNDS must not be negative, found -1"),
        ({"GROUPS": "Nurse"}, "GROUPS: 'Nurse' is no name in groups.csv; there are Nurses"),
        ({"GROUPS": "Nurses;Doctors"}, "GROUPS has 2 of the groups .* as many as CLUSTERS, 5"),
        ({"DICTIONARY": "nowhere.csv"}, "DICTIONARY: nowhere.csv.*No such file"),
        ({"MAPPINGS": "nowhere.csv"}, "MAPPINGS: nowhere.csv.*No such file"),
        ({"SHEETS": "nowhere.csv"}, "SHEETS: nowhere.csv.*No such file"),
    ],
)
def test_a_wrong_parameter_of_the_fourth_study_is_one_sentence(given, message):
    with pytest.raises(InputError, match=message) as error:
        parameters.merged("40_stereomap", "demo", given)
    assert "\n" not in str(error.value)


def test_documents_are_prepared_in_the_ways_that_keywords_knows():
    """Spelt twice: to import the room would make every command wait for scikit-learn."""
    assert parameters.CHOICES["DOCUMENTS"] == keywords.WAYS


@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        ("direction", "7", "line 3, column 'direction': found '7'"),
        ("word", "friendly", "line 3, column 'word'"),
        ("kind", "1", "column 'direction': found only word, dimension, kind"),
    ],
)
def test_a_bad_dictionary_is_one_sentence(tmp_path, column, cell, message):
    """A wrong direction, a word twice, a missing column; and, below, another encoding."""
    header = ["word", "dimension", column if column == "kind" else "direction"]
    rows = [["friendly", "Sociability", "1"], ["cold", "Sociability", "-1"]]
    if column != "kind":
        rows[1][header.index(column)] = cell
    file = tmp_path / "dictionary.csv"
    file.write_text("\n".join(",".join(row) for row in [header, *rows]), "utf8")
    with pytest.raises(InputError, match=message) as error:
        parameters.merged("40_stereomap", "demo", {"DICTIONARY": str(file)})
    assert "\n" not in str(error.value)


def test_a_dictionary_in_another_encoding_is_one_sentence(tmp_path):
    file = tmp_path / "dictionary.csv"
    file.write_bytes("word,dimension,direction\nnaïve,Ability,-1\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"DICTIONARY: .*dictionary.csv.*UTF-8"):
        parameters.merged("40_stereomap", "demo", {"DICTIONARY": str(file)})


@pytest.mark.parametrize(
    ("given", "control"),
    [
        ({}, "calibrant-null"),
        ({"ENGINE": "vllm"}, "calibrant-null"),
        ({"MODEL": "organisation/model"}, ""),
        ({"MODEL": "organisation/model", "CONTROL": "calibrant-null"}, "calibrant-null"),
        ({"ENGINE": "openai", "MODEL": "any name a server knows"}, ""),
        ({"ENGINE": "replay", "MODEL": "theirs", "RECORDINGS": str(paths.DATA)}, ""),
    ],
)
def test_the_control_belongs_to_the_calibrant(given, control):
    assert parameters.merged(NOTEBOOK, "demo", given)["CONTROL"] == control


def test_a_parameter_of_another_notebook_is_passed_over_only_where_all_are_run():
    with pytest.raises(InputError, match="50_audit has no parameter N_EVENTS"):
        parameters.merged("50_audit", "demo", {"N_EVENTS": "4"})
    assert "N_EVENTS" not in parameters.merged("50_audit", "demo", {"N_EVENTS": "4"}, shared=True)
    with pytest.raises(InputError, match="no parameter NEVENTS; it takes FOLDER"):
        parameters.merged("50_audit", "demo", {"NEVENTS": "4"}, shared=True)


def test_an_unknown_notebook_or_profile_names_those_there_are():
    with pytest.raises(InputError, match=r"no notebook '99'; there are .*10_empathy_gap"):
        parameters.merged("99", "demo", {})
    with pytest.raises(InputError, match="no PROFILE 'fast'; there are demo, full"):
        parameters.merged(NOTEBOOK, "fast", {})


@pytest.mark.parametrize(
    ("text", "default", "value"),
    [("a", "b", "a"), ("0.5", 1.0, 0.5), ("true", False, True), ("0", True, False), ("", [], [])],
)
def test_text_takes_the_type_of_the_default(text, default, value):
    assert parameters.converted("X", text, default) == value
