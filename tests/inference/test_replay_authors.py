"""Folders in the shape that the authors' scripts write: every cell is the one of its file."""

import json
from itertools import product

import numpy as np
import pandas as pd
import pytest

from ingroup import paths
from ingroup.commands.run_parameters import jobs_of, merged_parameters
from ingroup.inference import EngineError, ask, stored
from ingroup.studies.biased_samaritan import answers as helpfulness
from ingroup.studies.biased_samaritan import stimuli as scenarios
from ingroup.studies.empathy_gap import answers, stimuli
from ingroup.studies.giebench import stimuli as questions
from ingroup.studies.stereomap import stimuli as groups


@pytest.fixture
def replayed(tmp_path, monkeypatch):
    """A function that asks a study's notebook of recordings."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")

    def ask_recordings(notebook, recordings, models="somebody", **given):
        given["MODELS"] = models
        given["ENGINE"] = "replay"
        given["RECORDINGS"] = str(recordings)
        values = merged_parameters(notebook, "demo", given)
        return ask(jobs_of(notebook, values), values)

    return ask_recordings


# ---- Hou et al.: a folder of batches, by category and setting -----------------------------------

OPTIONS = {
    "ethnicity": "Race or Ethnicity",
    "nationality": "Nationality",
    "religion": "Religion",
}
VARIATIONS = {
    "origin": "P0,S0,T0",
    "persona-1": "P1,S0,T0",
}

# As the scripts go through them: another order than ours. One event is told three times.
EVENTS = [
    ("fear", "4", "I fell off a roof."),
    ("fear", "5", "I was lost in a wood."),
    ("boredom", "7", "I had nothing to do."),
    ("boredom", "8", "I had nothing to do."),
    ("boredom", "9", "I was stuck in traffic."),
    ("boredom", "12", "I had nothing to do."),
]
OUR_ORDER_OF_EVENTS = [2, 3, 4, 5, 0, 1]


@pytest.fixture
def corpus(tmp_path):
    """The file of the events."""
    file = tmp_path / "corpus.tsv"
    table = pd.DataFrame(EVENTS, columns=["emotion", "text_id", "generated_text"])
    table.to_csv(file, sep="\t", index=False)
    return str(file)


def people_of(category):
    """Ours has "a person" first, the scripts last."""
    first, *others = stimuli.identities(category).identity
    return [*others, first]


def batch_rows(category, setting_name, drawn):
    """A row with a drawn rating per prompt of a category and setting."""
    setting = stimuli.setting(setting_name)
    people = people_of(category)

    rows = []
    for perceiver, experiencer, (emotion, _, text) in product(people, people, EVENTS):
        turns = setting.messages(perceiver, experiencer, emotion, text)
        prompts = [turn["content"] for turn in turns]
        rating = str(drawn.integers(101))
        rows.append((*prompts, rating))

    return pd.DataFrame(rows, columns=["system_prompt", "user_input", "response"])


def write_batches(folder, drawn, size):
    """Write the results of all prompts, several files per category and setting."""
    folder.mkdir()
    for (option, category), (variation, name) in product(OPTIONS.items(), VARIATIONS.items()):
        table = batch_rows(category, name, drawn)
        for number, start in enumerate(range(0, len(table), size)):
            batch = table[start : start + size]
            file = folder / f"{option}_{variation}_batch-{number}.tsv"
            batch.to_csv(file, sep="\t", index_label="idx")


def cells_of(folder, option, variation):
    """Ratings straight from the files, in our order: identities, then events by emotion."""
    files = sorted(folder.glob(f"{option}_{variation}_batch-*.tsv"))
    table = pd.concat(pd.read_csv(file, sep="\t") for file in files)
    number = len(people_of(OPTIONS[option]))
    ratings = table.response.to_numpy(float).reshape(number, number, len(EVENTS))

    last_first = [number - 1, *range(number - 1)]
    return ratings[np.ix_(last_first, last_first, OUR_ORDER_OF_EVENTS)]


def test_every_cell_of_the_authors_folder_is_that_of_its_file(tmp_path, corpus, replayed, capsys):
    folder = tmp_path / "exp"
    write_batches(folder, np.random.default_rng(1), 60 * len(EVENTS))
    assert len(list(folder.iterdir())) == 2 * (7 + 9 + 1)

    settings = ";".join(VARIATIONS.values())
    jobs = replayed("10_empathy_gap", folder, CORPUS=corpus, N_EVENTS="0", SETTINGS=settings)

    values = {}
    for job in jobs:
        key = (job.labels["setting"], job.labels["category"])
        values[key] = answers.load(job).values
    assert len(values) == 6
    for (option, category), (variation, name) in product(OPTIONS.items(), VARIATIONS.items()):
        expected = cells_of(folder, option, variation)
        np.testing.assert_array_equal(values[name, category], expected)
    assert "answer no prompt" not in capsys.readouterr().err

    # "a person" with "a person" is another cell in each file.
    persons = {cells[0, 0].mean() for cells in values.values()}
    assert len(persons) == 6


def test_the_authors_folder_without_its_names_is_refused(tmp_path, corpus, replayed):
    """Nothing else says of which category "a person" with "a person" was recorded."""
    folder = tmp_path / "exp"
    write_batches(folder, np.random.default_rng(2), 10_000)
    for letter, file in zip("abcdef", sorted(folder.iterdir()), strict=True):
        file.rename(folder / f"{letter}.tsv")

    with pytest.raises(EngineError, match=r"a\.tsv, line \d+, and .*c\.tsv, line \d+: found two"):
        replayed("10_empathy_gap", folder, CORPUS=corpus, N_EVENTS="0", SETTINGS="P0,S0,T0")

    assert not paths.RESPONSES.exists()


# ---- The Biased Samaritan: 412 prompts of the control in each category ---------------------------

KEY = ["scenario", "wording", "phrasing"]


def ratings_of(drawn):
    """A drawn rating of every prompt of every category, in two runs."""
    table = scenarios.load_scenarios()
    categories = scenarios.categories()

    rows = []
    for run, category, scenario in product((1, 2), categories, table.itertuples()):
        for name in scenarios.phrasings(category).itertuples():
            turns = scenarios.messages(scenario.text, name.text)
            assert len(turns) == 1
            row = {
                "category": category,
                "run": run,
                "group": name.group,
                "scenario": scenario.scenario,
                "wording": scenario.wording,
                "phrasing": name.phrasing,
                "prompt": turns[0]["content"],
                "response": str(drawn.integers(1, 101)),
            }
            rows.append(row)

    return pd.DataFrame(rows)


def write_by_category(folder, table):
    """Write one file per category, which its name says."""
    for category, rows in table.groupby("category"):
        file = folder / f"{category.lower()}.csv"
        rows.drop(columns="category").to_csv(file, index=False)


@pytest.fixture
def folder(tmp_path):
    """A folder for recordings."""
    folder = tmp_path / "recorded"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("by", ["file", "column"])
def test_every_control_is_that_of_its_category(by, folder, replayed):
    table = ratings_of(np.random.default_rng(3))
    if by == "column":
        table.to_csv(folder / "everything.csv", index=False)
    else:
        write_by_category(folder, table)

    jobs = replayed("20_biased_samaritan", folder, ROUNDS="2")

    assert len(jobs) == 6
    controls = set()
    for job in jobs:
        is_of_job = (table.category == job.labels["category"]) & (table.run == job.round)
        recorded = table[is_of_job]
        expected = recorded.set_index(KEY).response.astype(float)
        ratings = helpfulness.load(job).set_index(KEY).rating
        assert len(ratings) == len(expected)
        pd.testing.assert_series_equal(ratings, expected[ratings.index], check_names=False)

        control = recorded[recorded.group == scenarios.CONTROL].response
        assert len(control) == 412
        controls.add(tuple(control))

    assert len(controls) == 6


@pytest.fixture
def first_run(folder):
    """Ratings of all categories in one run, of which a file holds those of gender."""
    table = ratings_of(np.random.default_rng(4))
    table = table[table.run == 1]
    gender = table[table.category == "Gender"]
    gender.drop(columns="category").to_csv(folder / "Gender.csv", index=False)
    return table


def test_a_category_without_the_control_borrows_none_of_another(first_run, folder, replayed):
    """Its own file has no word of the category's in its name, and lacks the control."""
    is_race = first_run.category == "Race"
    race = first_run[is_race & (first_run.group != scenarios.CONTROL)]
    race.drop(columns="category").to_csv(folder / "ethnic2.csv", index=False)

    jobs = replayed("20_biased_samaritan", folder, ROUNDS="1")

    answers_by_category = {job.labels["category"]: helpfulness.load(job) for job in jobs}
    gender_answers = answers_by_category["Gender"]
    race_answers = answers_by_category["Race"]
    is_control_of_race = race_answers.group == scenarios.CONTROL
    assert gender_answers[gender_answers.group == scenarios.CONTROL].rating.notna().all()
    assert race_answers[is_control_of_race].rating.isna().all()
    assert race_answers[~is_control_of_race].rating.notna().all()


@pytest.mark.usefixtures("first_run")
def test_a_file_of_one_category_answers_no_other_and_it_is_said_how_to_name_files(
    folder, replayed, capsys
):
    jobs = replayed("20_biased_samaritan", folder, ROUNDS="1")

    said = capsys.readouterr().err
    assert [job.labels["category"] for job in jobs] == ["Gender"]
    absent = "somebody: free text (1 Race; 1 Age) is not stored, as no recording is of that round"
    assert absent in said
    assert "files with a word of their category in the name" in said


# ---- StereoMap: a file per run, with pandas's index ----------------------------------------------

GROUPS = ["Nurses", "Lawyers", "Homeless", "Elderly", "Rich"]


def answer_of(run, group, prompt):
    """One answer; one call failed, and stands as an empty answer."""
    if (run, group, prompt) == (2, "Lawyers", "EXTENDED/Emotion"):
        return None
    return f"{run} {group} {prompt}"


def write_run(file, run):
    """Write the answers of one run."""
    rows = []
    for prompt, group in product(groups.prompts("EXTENDED"), GROUPS):
        turns = groups.chats(group, prompt, wording="released")[""]
        assert len(turns) == 1
        row = {
            "Group": group,
            "Construct": prompt,
            "Attribute": "",
            "Questionnaire": turns[0]["content"],
            "Answer": answer_of(run, group, prompt),
        }
        rows.append(row)

    pd.DataFrame(rows).to_csv(file)


def test_the_file_of_a_run_is_a_round(folder, replayed, capsys):
    for run in (1, 2, 3):
        write_run(folder / f"gpt35_run{run}.csv", run)
    assert (folder / "gpt35_run1.csv").read_text("utf8").startswith(",Group,Construct,")

    jobs = replayed(
        "40_stereomap",
        folder,
        GROUPS=";".join(GROUPS),
        WORDING="released",
        ROUNDS="4",
        ABLATION_ROUNDS="0",
    )

    extended = [job for job in jobs if job.labels["version"] == "EXTENDED"]
    assert [job.round for job in extended] == [1, 2, 3]
    assert "somebody: free text (EXTENDED" in capsys.readouterr().err
    for job in extended:
        texts = stored(job).read().text
        assert len(texts) == 35
        for trial, text in zip(job.design, texts, strict=True):
            group_prompt = trial.condition["inquiry"]
            expected = answer_of(job.round, group_prompt.group, group_prompt.prompt)
            if expected is None:
                assert pd.isna(text)
            else:
                assert text == expected


# ---- GIEBench: two models in one folder ----------------------------------------------------------

LETTERS = {"GPT-4": "A", "Qwen-1.5-110b": "B"}


def result_text(model, prompt, key):
    """What a model replied to a question."""
    return f"{model} {prompt} {key}: [[{LETTERS[model]}]]"


def write_results(folder, model, prompt):
    """Write a model's results for one prompt, as the repository has them."""
    results = {}
    for item in questions.load_questions():
        turns = questions.messages(item, prompt)
        assert len(turns) == 1
        results[item.key] = {
            "prompt": turns[0]["content"],
            "correct": "A",
            "answer": result_text(model, prompt, item.key),
        }

    file = folder / f"{model}-{prompt}-Prompt.json"
    file.write_text(json.dumps(results, indent=4, ensure_ascii=False), "utf8")


@pytest.fixture
def two_models(folder):
    """A folder with the results of two models for three prompts."""
    for model, prompt in product(LETTERS, questions.templates()["prompts"]):
        write_results(folder, model, prompt)

    return folder


GIEBENCH = {"ORDER": "given", "MISMATCH": "false", "WORDING": "straight"}


def test_a_folder_of_two_models_is_refused(two_models, replayed):
    with pytest.raises(EngineError) as raised:
        replayed("30_giebench", two_models, "gpt-4-turbo", **GIEBENCH)

    sentence = str(raised.value)
    assert "GPT-4-Raw-Prompt.json, key" in sentence
    assert "Qwen-1.5-110b-Raw-Prompt.json, key" in sentence
    assert not paths.RESPONSES.exists()


def test_each_of_two_models_has_its_files_of_one_folder(two_models, replayed):
    names = {"gpt-4-turbo": "GPT-4", "qwen-1.5-110b": "Qwen-1.5-110b"}
    qwen = f"Qwen/Qwen1.5-110B-Chat={two_models}/Qwen*"
    gpt = f"gpt-4-turbo={two_models}/GPT-4-*"

    jobs = replayed("30_giebench", f"{qwen};{gpt}", "gpt-4-turbo;qwen-1.5-110b", **GIEBENCH)

    assert len(jobs) == 6
    for job in jobs:
        model = names[job.model]
        prompt = job.labels["plan"]
        keys = [trial.condition["asked"].question.key for trial in job.design]
        expected = [result_text(model, prompt, key) for key in keys]
        assert stored(job).read().text.tolist() == expected
