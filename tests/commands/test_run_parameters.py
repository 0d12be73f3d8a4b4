"""Every parameter is checked before anything runs, and every mistake is one sentence."""

import json
import pkgutil

import pytest
import yaml

from ingroup import models, paths
from ingroup.commands import run_parameters, settings
from ingroup.commands.run_parameters import merged_parameters
from ingroup.tables import InputError

GAP = "10_empathy_gap"
SAMARITAN = "20_biased_samaritan"
GIEBENCH = "30_giebench"
STEREOMAP = "40_stereomap"
KEYWORDS = "41_stereomap_keywords"
OPENAI = {"ENGINE": "openai"}
REPLAY = {"ENGINE": "replay", "RECORDINGS": str(paths.DATA)}


def test_profiles_name_only_parameters_that_exist():
    for profile in ("demo", "full"):
        content = yaml.safe_load((paths.PROFILES / f"{profile}.yaml").read_text("utf8"))
        for notebook, values in content.items():
            assert set(values) <= set(merged_parameters(notebook, "demo", {}))


@pytest.mark.parametrize("notebook", list(filter(run_parameters.study_of, settings.notebooks())))
def test_a_study_checks_the_parameters_that_its_notebooks_take(notebook):
    """By name: what only a notebook knows would have a type and no range."""
    study = run_parameters.study_of(notebook)
    fields = pkgutil.resolve_name(f"ingroup.studies.{study}.design:Parameters").model_fields
    for name, field in fields.items():
        assert field.is_required(), name

    is_first_of_study = notebook.partition("_")[2] == study
    if is_first_of_study:
        assert set(merged_parameters(notebook, "demo", {})) <= set(fields)


@pytest.mark.parametrize(
    ("notebook", "study"),
    [
        (GAP, "empathy_gap"),
        (KEYWORDS, "stereomap"),
        ("60_synthesis", None),
        ("70_giebenches", None),
    ],
)
def test_a_notebook_is_of_the_study_in_its_name(notebook, study):
    assert run_parameters.study_of(notebook) == study


@pytest.mark.parametrize("line", ["import os", "SEED, ROUNDS = 1, 2", "SEED: int = 1"])
def test_a_cell_of_parameters_holds_names_and_values_alone(line, tmp_path, monkeypatch):
    cell = {"metadata": {"tags": ["parameters"]}, "source": ["SEED = 0\n", line]}
    file = tmp_path / "10_tiny.ipynb"
    file.write_text(json.dumps({"cells": [cell]}), "utf8")
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path)

    with pytest.raises(InputError, match=r"10_tiny\.ipynb: found .*, expected a line NAME = value"):
        run_parameters.cell_parameters("10_tiny")


@pytest.mark.parametrize("notebook", settings.notebooks())
def test_an_unchanged_copy_in_jupyterlab_asks_what_the_default_run_asks(notebook):
    """Lab runs the values of the cell, make those of the profile; the recordings fit both."""
    of_cell = run_parameters.cell_parameters(notebook)

    of_make = run_parameters.defaults(notebook, "demo")

    assert of_make == of_cell


def test_given_values_come_before_the_profile_before_the_notebook():
    given = {"N_EVENTS": "24", "SETTINGS": "P0,S0,T0; P1,S0,T0", "PRICE_IN": "0.5"}

    values = merged_parameters(GAP, "demo", given)

    assert values["N_EVENTS"] == 24
    assert values["SETTINGS"] == ["P0,S0,T0", "P1,S0,T0"]
    assert values["PRICE_IN"] == 0.5
    assert values["PRICE_OUT"] == 0.0
    assert values["MODELS"] == [*models.packaged_models(), "calibrant", "calibrant-null"]
    assert values["N_RESAMPLES"] == 10_000
    assert values["RUN"] == "default"


@pytest.mark.parametrize(("text", "value"), [("true", True), ("0", False), ("False", False)])
def test_a_text_takes_the_type_that_is_checked(text, value):
    assert merged_parameters(SAMARITAN, "demo", {"LATINO": text})["LATINO"] is value


@pytest.mark.parametrize(
    ("notebook", "given", "message"),
    [
        (GAP, {"MODLE": "x"}, "10_empathy_gap has no parameter MODLE; did you mean MODELS\\?"),
        (GAP, {"RUN": "x"}, "10_empathy_gap has no parameter RUN"),
        (GAP, {"N_EVENTS": "many"}, "N_EVENTS must be a whole number, .* found 'many'"),
        (GAP, {"N_EVENTS": "2.5"}, "N_EVENTS must be a whole number, .* found '2.5'"),
        (GAP, {"N_EVENTS": "-3"}, "N_EVENTS must be .* or 0 for all, found '-3'"),
        (GAP, {"N_EVENTS": "1"}, r"at least 2 \(paired tests need two\), .* found '1'"),
        (
            GAP,
            {"N_EVENTS": "7000"},
            "N_EVENTS is 7000, expected at most 72, the number .* 'sample'",
        ),
        (GAP, {"SEED": "-1"}, r"SEED must be a whole number, 0 to 2\^32 - 1, found '-1'"),
        (GAP, {"MODELS": "no such model"}, "^MODELS: found 'no such model', expected one of c"),
        (GAP, {"MODELS": "Smolm2-135m"}, "of the model hub; did you mean smollm2-135m-instruct?"),
        (GAP, {"MODELS": ""}, "MODELS must be names of models, e.g. calibrant, found"),
        (GAP, {"MODELS": "calibrant;calibrant"}, "MODELS names 'calibrant' twice"),
        (GAP, {"MODELS": "calibrant@gpu"}, "MODELS: found 'calibrant@gpu', expected a name, or na"),
        (
            GAP,
            {"MODELS": "calibrant,calibrant-null"},
            "^MODELS: found 'calibrant,calibrant-null', expected semicolons between models, "
            'MODELS="calibrant;calibrant-null"$',
        ),
        (GAP, {"REWRITER": "a,b"}, "^REWRITER: found 'a,b', expected one model$"),
        (GAP, {"REWRITER": "a;b"}, "^REWRITER: found 'a;b', expected one model$"),
        (GAP, {"MODELS": "./nowhere"}, "^MODELS: found no folder './nowhere', expected a model's"),
        (GAP, {"MODELS": __file__}, "^MODELS: found the file '.*py', expected a model's folder"),
        (GAP, {"MODELS": "@stored"}, "replay, stored$"),
        (GAP, {"ENGINE": "ollama"}, "did you mean ENGINE=inspect\\?$"),
        (GAP, {"DTYPE": "fp16"}, "did you mean DTYPE=float16\\?$"),
        (
            GAP,
            {"CATEGORIES": "Religion,Nationality"},
            "semicolons between .*: Religion;Nationality$",
        ),
        (GAP, {"SETTINGS": "P0,S0,T0,P1,S0,T0"}, "expected semicolons between settings, as P0,S0"),
        (GAP, {"REWRITER": "a@gpu"}, "^REWRITER: found 'a@gpu', expected a name, or name@"),
        (GAP, {"MODELS": "a@tranformers"}, "; did you mean transformers\\?$"),
        (GAP, {"MODELS": str(paths.DATA)}, "^MODELS: found no config.json in the folder '.*data'"),
        (GAP, {"CORPUS": "sampel"}, "; did you mean sample\\?$"),
        (GAP, {"CORPUS": ""}, "^CORPUS: found '', expected sample, crowd-envent, or the path of"),
        (GAP, {"CATEGORIES": "Religon"}, "; did you mean Religion\\?$"),
        (GAP, {"ENGINE": "openia"}, "or replay; did you mean ENGINE=inspect\\?$"),
        (GIEBENCH, {"QUESTIONS": "giebech"}, "; did you mean giebench\\?$"),
        (KEYWORDS, {"DICTIONARY": "sampel"}, "; did you mean sample\\?$"),
        (STEREOMAP, {"GROUPS": "Nurses,Doctors"}, "semicolons between groups: Nurses;Doctors$"),
        ("50_audit", {"FOLDER": "/nope"}, "^FOLDER: found '/nope', expected a folder like data/"),
        (GAP, {"CATEGORIES": "Creed"}, "CATEGORIES: found 'Creed', expected one of Race or Ethnic"),
        (
            GAP,
            {"CORPUS": "nowhere.tsv"},
            "^CORPUS: found no file or folder 'nowhere.tsv', expected sa",
        ),
        (GAP, {"SETTINGS": "P9,S0,T0"}, "SETTINGS: found 'P9,S0,T0', expected one of each"),
        (GAP, {"EXCLUSION": "any"}, "EXCLUSION 'any' is unknown; expected listwise or pairwise"),
        (GAP, {"PARSING": "authors"}, "PARSING 'authors' is unknown; expected sound or released"),
        (GAP, {"N_RESAMPLES": "0"}, "N_RESAMPLES must be a whole number, 1 to 10\\^9, found '0'"),
        (GAP, {"BATCH_SIZE": "0"}, "BATCH_SIZE must be a whole number, 1 to 10"),
        (GAP, {"GPUS": "0"}, "GPUS must be a whole number, 1 to 10"),
        (GAP, {"PRICE_IN": "-1"}, "PRICE_IN must be a number of at least 0, found '-1'"),
        (GAP, {"PRICE_IN": "nan"}, "PRICE_IN must be a number of at least 0, found 'nan'"),
        (GAP, {"PRICE_OUT": "a lot"}, "PRICE_OUT must be a number of at least 0, found 'a lot'"),
        (
            GAP,
            {"ENGINE": "gpu"},
            "'gpu' is unknown; expected transformers, vllm, inspect or replay$",
        ),
        (GAP, {"READING": "mean"}, "drawn or expected; did you mean READING=expected\\?$"),
        (
            GAP,
            {"READING": "Gredy"},
            "READING 'Gredy' is unknown; .*; did you mean READING=greedy\\?$",
        ),
        (
            GAP,
            {"READING": "x"},
            "READING 'x' is unknown; expected free, greedy, drawn or expected$",
        ),
        (GAP, {"REWRITER": "no such"}, "^REWRITER: found 'no such', expected one of cali"),
        (GAP, {"DTYPE": "bf16"}, "'bf16' is unknown; expected auto, float32, bfloat16 or float16"),
        (
            GAP,
            OPENAI | {"BASE_URL": "http://u:secret@h/v1"},
            "BASE_URL: the base URL must .* no user",
        ),
        (GAP, OPENAI | {"SYSTEM": "fold"}, "SYSTEM is for .* vllm, found only inspect"),
        (GAP, {"ENGINE": "replay"}, "the engine replay needs RECORDINGS=<file or folder>"),
        (
            GAP,
            REPLAY | {"MODELS": "a", "RECORDINGS": "no"},
            "RECORDINGS: found nothing at 'no', ex",
        ),
        (GAP, {"RECORDINGS": "x"}, "RECORDINGS is for models of the engine replay, found"),
        (GAP, {"BASE_URL": "http://x/v1"}, "BASE_URL is for models of the engine inspect, found"),
        (GAP, REPLAY | {"MODELS": "a;b"}, "recordings have the answers of one model, found a, b"),
        (
            GAP,
            REPLAY | {"MODELS": "a;b", "RECORDINGS": f"a={paths.DATA}"},
            'give each a place of its own, RECORDINGS="a=<place>;b=<place>"',
        ),
        (
            GAP,
            REPLAY | {"MODELS": "a;b", "RECORDINGS": f"a={paths.DATA};b={paths.DATA}"},
            "recordings have the answers of one model, found a, b: give each a place of its own",
        ),
        (
            GAP,
            REPLAY | {"MODELS": "a;b", "RECORDINGS": f"a={paths.DATA};b=no"},
            "RECORDINGS: found nothing at 'no', expected a file, folder or pattern of files",
        ),
        (
            GAP,
            REPLAY | {"MODELS": "a", "RECORDINGS": f"a={paths.DATA};a={paths.PUBLISHED}"},
            "RECORDINGS: found 'a' twice, expected one place per model",
        ),
        (GAP, REPLAY | {"READING": "expected"}, "READING=expected needs .* which replay does not"),
        (GAP, {"READING": "drawn"}, "READING=drawn needs a TEMPERATURE above 0"),
        (GAP, {"ROUNDS": "0"}, r"ROUNDS must be a whole number, 1 to 10\^9, found '0'"),
        (SAMARITAN, {"ROUNDS": "0"}, r"ROUNDS must be a whole number, 1 to 10\^9, found '0'"),
        (SAMARITAN, {"LATINO": "maybe"}, "LATINO must be true or false, found 'maybe'"),
        (SAMARITAN, {"MAX_TOKENS": "0"}, r"MAX_TOKENS must be a whole number, 1 to 10\^7"),
        (SAMARITAN, {"MAX_TOKENS": "1" + "0" * 30}, r"MAX_TOKENS .* 1 to 10\^7, found '10000"),
        (GAP, {"REWRITE_TOKENS": "1" + "0" * 30}, r"REWRITE_TOKENS .* 1 to 10\^7, found"),
        (GAP, {"N_RESAMPLES": "1" + "0" * 30}, r"N_RESAMPLES .* 1 to 10\^9, found"),
        (STEREOMAP, {"SEED": str(2**32)}, r"SEED must be a whole number, 0 to 2\^32 - 1, found"),
        (
            SAMARITAN,
            {"TEMPERATURE": "-0.5"},
            "TEMPERATURE must be a number from 0 to 2, -1, or empty, found",
        ),
        (
            SAMARITAN,
            {"TOP_P": "0"},
            "TOP_P must be a number above 0 and at most 1, or -1, found '0'",
        ),
        (SAMARITAN, {"ALPHA": "1"}, "ALPHA must be a number between 0 and 1, found '1'"),
        (SAMARITAN, {"CROSSING": "half"}, "CROSSING 'half' is unknown; expected full or totals"),
        (SAMARITAN, {"UNIT": "word"}, "UNIT 'word' is unknown; expected scenario or prompt"),
        (SAMARITAN, {"UNIT": "prompt", "CROSSING": "totals"}, "no prompt to pair: take UNIT=scen"),
        (SAMARITAN, {"BRITTLENESS": "n"}, "'n' is unknown; expected sample or population"),
        (SAMARITAN, {"N_SCENARIOS": "1"}, r"N_SCENARIOS must be .* at least 2 .*, or 0 for all"),
        (SAMARITAN, {"N_SCENARIOS": "104"}, "N_SCENARIOS is 104, expected at most 103, the n"),
        (
            SAMARITAN,
            {"SCENARIOS": "nowhere.csv"},
            "^SCENARIOS: found no file or folder 'nowhere.csv', e",
        ),
        (SAMARITAN, {"N_EVENTS": "4"}, "20_biased_samaritan has no parameter N_EVENTS"),
        (GIEBENCH, {"ORDER": "random"}, "ORDER 'random' is unknown; expected given or rotate"),
        (GIEBENCH, {"WORDING": "print"}, "WORDING 'print' is unknown; expected straight, uncued"),
        (
            GIEBENCH,
            {"TEMPLATE": "none", "MODELS": "b@openai"},
            "TEMPLATE is for models of the engine transformers or vllm, found only inspect: leave",
        ),
        (SAMARITAN, {"REQUEST": ""}, "REQUEST must be a text, or none for no request, found ''"),
        (SAMARITAN, {"POOLING": "all"}, "POOLING 'all' is unknown; expected within or averaged"),
        (GIEBENCH, {"ROUNDING": "3"}, "ROUNDING '3' is unknown; expected none or released"),
        (GIEBENCH, {"DENOMINATOR": "n"}, "DENOMINATOR 'n' is unknown; expected paper or released"),
        (GIEBENCH, {"TOP_P": "2"}, "TOP_P must be a number above 0 and at most 1, found '2'"),
        (
            GIEBENCH,
            {"TEMPERATURE": "-1"},
            "TEMPERATURE must be a number from 0 to 2, or empty, found '-1'",
        ),
        (
            GIEBENCH,
            {"QUESTIONS": "nowhere.json"},
            "^QUESTIONS: found no file or folder 'nowhere.json', e",
        ),
        (GIEBENCH, {"SCENARIOS": "sample"}, "30_giebench has no parameter SCENARIOS"),
        (STEREOMAP, {"FORM": "plural"}, "FORM 'plural' is unknown; expected released or gramm"),
        (STEREOMAP, {"CALLS": "one"}, "CALLS 'one' is unknown; expected together or separate"),
        (STEREOMAP, {"ROUNDS": "0"}, r"ROUNDS must be a whole number, 1 to 10\^9, found '0'"),
        (STEREOMAP, {"ABLATION_ROUNDS": "-1"}, r"ABLATION_ROUNDS must be .* 0 to 10\^9"),
        (STEREOMAP, {"GROUPS": "Nurse"}, "GROUPS: found 'Nurse', expected .*mean Nurses"),
        (STEREOMAP, {"GROUPS": "Nurses;Doctors"}, "CLUSTERS is 5, expected at most 2, the number"),
        (
            KEYWORDS,
            {"DICTIONARY": "nowhere.csv"},
            "^DICTIONARY: found no file or folder 'nowhere.csv', e",
        ),
        (
            KEYWORDS,
            {"MAPPINGS": "nowhere.csv"},
            "MAPPINGS: found no file 'nowhere.csv', expected a CSV",
        ),
        (
            KEYWORDS,
            {"SHEETS": "nowhere.csv"},
            "SHEETS: found no file 'nowhere.csv', expected a filled",
        ),
        ("50_audit", {"N_EVENTS": "4"}, "50_audit has no parameter N_EVENTS; it takes FOLDER"),
        ("60_synthesis", {"CLUSTER_SEEDS": "0"}, "CLUSTER_SEEDS must be a whole number, 1 to"),
        ("99", {}, r"there is no notebook '99'; there are .*10_empathy_gap"),
    ],
)
def test_a_wrong_parameter_is_one_sentence(notebook, given, message):
    with pytest.raises(InputError, match=message) as error:
        merged_parameters(notebook, "demo", given)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("notebook", "name", "message"),
    [
        (GAP, "MODELS", "expected one of calibrant, "),
        (GAP, "REWRITER", "expected one of calibrant, "),
        (GAP, "CORPUS", "expected sample, crowd-envent, or the path of a TSV file"),
        ("30_giebench", "QUESTIONS", "expected sample, giebench, or the path of a JSON file"),
        (KEYWORDS, "DICTIONARY", "expected sample, stereotype-content-dictionary, or the"),
        (KEYWORDS, "MAPPINGS", "expected a CSV file with the columns keyword and word"),
    ],
)
def test_a_name_that_is_too_long_for_a_file_is_one_sentence(notebook, name, message):
    with pytest.raises(InputError, match=message):
        merged_parameters(notebook, "demo", {name: "x" * 5000})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("word,dimension,direction\nfriendly,Sociability,1\ncold,Sociability,7", "found '7'"),
        ("word,dimension,direction\ncold,Ability,1\ncold,Ability,-1", "line 3: found word 'cold'"),
        ("word,dimension,kind\ncold,Ability,1", "'direction' is missing, found word, dim"),
        ("word,dimension,direction\nnaïve,Ability,-1", "UTF-8"),
    ],
)
def test_a_bad_dictionary_is_one_sentence(tmp_path, text, message):
    """A wrong direction, a word twice, a missing column, another encoding."""
    file = tmp_path / "dictionary.csv"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=f"DICTIONARY: .*{message}") as error:
        merged_parameters(KEYWORDS, "demo", {"DICTIONARY": str(file)})
    assert "\n" not in str(error.value)


def test_a_parameter_of_another_notebook_is_passed_over_only_where_all_are_run():
    assert "N_EVENTS" not in merged_parameters("50_audit", "demo", {"N_EVENTS": "4"}, shared=True)
    with pytest.raises(InputError, match="no parameter NEVENTS; it takes FOLDER"):
        merged_parameters("50_audit", "demo", {"NEVENTS": "4"}, shared=True)


@pytest.mark.parametrize(
    ("notebook", "name"),
    [
        (KEYWORDS, "MAPPINGS"),
        (KEYWORDS, "SHEETS"),
        ("31_giebench_construction", "TOPICS"),
        ("31_giebench_construction", "SHEET"),
    ],
)
def test_an_absent_file_of_ones_own_is_named_with_the_nearest_one(tmp_path, notebook, name):
    (tmp_path / "mine.csv").touch()
    (tmp_path / "other.txt").touch()
    absent = tmp_path / "mien.csv"
    sentence = f"^{name}: found no file '{absent}', expected .*; did you mean mine.csv\\?$"
    with pytest.raises(InputError, match=sentence):
        merged_parameters(notebook, "demo", {name: str(absent)})


def test_a_misspelt_profile_is_asked_for():
    with pytest.raises(InputError, match=r"there are demo, full; did you mean demo\?$"):
        merged_parameters(GAP, "dmeo", {})


@pytest.mark.parametrize("name", ["fast", "/etc/passwd", "../demo", "../profiles/demo"])
def test_an_unknown_profile_names_those_there_are(name):
    with pytest.raises(InputError, match=f"no PROFILE '{name}'; there are demo, full"):
        merged_parameters(GAP, name, {})


def test_a_name_alone_takes_its_value_from_the_environment(monkeypatch):
    options = run_parameters.command_line("").parse_args(["--set", "SEED", "--set", "N_EVENTS=4"])
    with pytest.raises(InputError, match="--set SEED has no value: write SEED=<value>"):
        run_parameters.parameters_of(GAP, options)

    monkeypatch.setenv("SEED", "7")
    values = run_parameters.parameters_of(GAP, options)
    assert values["SEED"] == 7
    assert values["N_EVENTS"] == 4


def test_a_value_under_its_former_name_works_and_names_the_new_one(capsys):
    sentence = "CROSSING=paper is now CROSSING=totals; the old name works for one release\n"
    assert merged_parameters(SAMARITAN, "demo", {"CROSSING": "paper"})["CROSSING"] == "totals"
    assert capsys.readouterr().err.count(sentence) <= 1  # once a process

    run_parameters.parameters.note.cache_clear()
    merged_parameters(SAMARITAN, "demo", {"CROSSING": "paper"})
    merged_parameters(SAMARITAN, "demo", {"CROSSING": "paper"})
    assert capsys.readouterr().err == sentence

    assert merged_parameters(SAMARITAN, "demo", {"CROSSING": "totals"})["CROSSING"] == "totals"
    assert capsys.readouterr().err == ""


def test_one_scenario_is_too_few(tmp_path):
    """In either crossing, before anything is asked: a test needs two."""
    lines = (paths.STIMULI / "biased_samaritan" / "scenarios.csv").read_text("utf8").splitlines()
    file = tmp_path / "few.csv"
    file.write_text("\n".join(lines[:5]), "utf8")
    for crossing in ("totals", "full"):
        with pytest.raises(InputError, match="SCENARIOS has 1 scenario, expected at least 2"):
            merged_parameters(SAMARITAN, "demo", {"SCENARIOS": str(file), "CROSSING": crossing})

    file.write_text("\n".join(lines[:9]), "utf8")
    merged_parameters(
        SAMARITAN, "demo", {"SCENARIOS": str(file), "CROSSING": "totals"}
    )  # two are enough


def test_a_command_line_works_without_docstrings():
    """As PYTHONOPTIMIZE=2 has none."""
    assert run_parameters.command_line(None).parse_args(["--run", "x"]).run == "x"


def test_a_parameter_under_its_former_name_works_and_names_the_new_one(capsys):
    run_parameters.parameters.note.cache_clear()
    values = merged_parameters(GAP, "demo", {"RATING": "greedy"})
    assert values["READING"] == "free"
    assert "RATING=greedy is now READING=free" in capsys.readouterr().err


TWO_ENGINES = "smollm2-135m-instruct@vllm;smollm2-135m-instruct@transformers"


def test_one_model_through_two_engines_is_compared_and_nothing_else():
    values = merged_parameters("61_comparison", "demo", {"MODELS": TWO_ENGINES})
    assert values["MODELS"] == TWO_ENGINES.split(";")
    for notebook in (GAP, "60_synthesis"):
        with pytest.raises(
            InputError, match="names 'SmolLM2-135M' twice, expected each model once, w"
        ):
            merged_parameters(notebook, "demo", {"MODELS": TWO_ENGINES})

    same_engine = "smollm2-135m-instruct@vllm;SmolLM2-135M-Instruct@vllm"
    with pytest.raises(InputError, match="names 'SmolLM2-135M' twice, expected each model once, w"):
        merged_parameters("61_comparison", "demo", {"MODELS": same_engine})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("10_empathy_gap: [1\n", "line 2, column 1: found a mistake"),
        ("- 1\n", r"found \[1\], expected notebooks with their parameters"),
        ("", "found an empty file, expected notebooks with their parameters"),
        ("10_empaty_gap: {}\n", r"'10_empaty_gap', .*; did you mean 10_empathy_gap\?$"),
        ("10_empathy_gap: [SEED]\n", r"10_empathy_gap: found \['SEED'\], expected parameters"),
        (
            "10_empathy_gap: {MODLES: [a]}\n",
            r"10_empathy_gap: found MODLES, expected .*; did you mean MODELS\?$",
        ),
    ],
)
def test_a_wrong_profile_is_one_sentence(tmp_path, monkeypatch, text, message):
    monkeypatch.setattr(paths, "PROFILES", tmp_path)
    (tmp_path / "mine.yaml").write_text(text, "utf8")
    with pytest.raises(InputError, match=f"mine.yaml.*{message}") as error:
        merged_parameters(GAP, "mine", {})
    assert "\n" not in str(error.value)
