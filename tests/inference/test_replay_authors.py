"""Folders in the shape that the authors' scripts write: every cell is the one of its file."""

import json
from itertools import product

import numpy as np
import pandas as pd
import pytest

from ingroup import paths
from ingroup.commands.parameters import calls_of, merged
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

    def asked(notebook, place, **given):
        given = {"MODELS": "somebody", "ENGINE": "replay", "RECORDINGS": str(place)} | given
        values = merged(notebook, "demo", given)
        return ask(calls_of(notebook, values), values)

    return asked


# ---- Hou et al.: a folder of batches, by category and setting -----------------------------------

OPTIONS = {"ethnicity": "Race or Ethnicity", "nationality": "Nationality", "religion": "Religion"}
VARIATIONS = {"origin": "P0,S0,T0", "persona-1": "P1,S0,T0"}
# As the scripts go through them: another order than ours. One event is told three times.
EVENTS = [
    ("fear", "4", "I fell off a roof."), ("fear", "5", "I was lost in a wood."),
    ("boredom", "7", "I had nothing to do."), ("boredom", "8", "I had nothing to do."),
    ("boredom", "9", "I was stuck in traffic."), ("boredom", "12", "I had nothing to do."),
]  # fmt: skip


def people_of(category):
    """Ours has "a person" first, the scripts last."""
    first, *others = stimuli.identities(category).identity
    return [*others, first]


def batches(folder, drawn, size):
    """The results of all prompts, several files a category and setting, written by pandas."""
    folder.mkdir()
    for (option, category), (variation, name) in product(OPTIONS.items(), VARIATIONS.items()):
        setting = stimuli.setting(name)
        people = people_of(category)
        rows = []
        for perceiver, experiencer, (emotion, _, text) in product(people, people, EVENTS):
            turns = setting.messages(perceiver, experiencer, emotion, text)
            prompts = [turn["content"] for turn in turns]
            rows.append((len(rows), *prompts, str(drawn.integers(101))))

        columns = ["idx", "system_prompt", "user_input", "response"]
        table = pd.DataFrame(rows, columns=columns)
        for number, start in enumerate(range(0, len(table), size)):
            file = folder / f"{option}_{variation}_batch-{number}.tsv"
            table[start : start + size].to_csv(file, sep="\t", index=False)


def cells_of(folder, option, variation, category):
    """Ratings straight from the files, in our order: identities, then events by emotion."""
    files = sorted(folder.glob(f"{option}_{variation}_batch-*.tsv"))
    told = pd.concat(pd.read_csv(file, sep="\t") for file in files)
    n = len(people_of(category))
    ratings = told.response.to_numpy(float).reshape(n, n, len(EVENTS))
    people = [n - 1, *range(n - 1)]
    events = [2, 3, 4, 5, 0, 1]
    return ratings[np.ix_(people, people, events)]


def test_every_cell_of_the_authors_folder_is_that_of_its_file(tmp_path, replayed, capsys):
    corpus = tmp_path / "corpus.tsv"
    columns = ["emotion", "text_id", "generated_text"]
    pd.DataFrame(EVENTS, columns=columns).to_csv(corpus, sep="\t", index=False)
    folder = tmp_path / "exp"
    batches(folder, np.random.default_rng(1), 60 * len(EVENTS))
    assert len(list(folder.iterdir())) == 2 * (7 + 9 + 1)

    settings = ";".join(VARIATIONS.values())
    given = {"CORPUS": str(corpus), "N_EVENTS": "0", "SETTINGS": settings}
    done = replayed("10_empathy_gap", folder, **given)
    blocks = {(call.labels["setting"], call.labels["category"]): call for call in done}
    assert len(blocks) == 6
    persons = []
    for (option, category), (variation, name) in product(OPTIONS.items(), VARIATIONS.items()):
        read = answers.load(blocks[name, category])
        wanted = cells_of(folder, option, variation, category)
        np.testing.assert_array_equal(read.values, wanted)
        persons.append(read.values[0, 0].mean())
    assert len(set(persons)) == 6  # "a person" with "a person" is another cell in each file
    assert "answer no prompt" not in capsys.readouterr().err


def test_the_authors_folder_without_its_names_is_refused(tmp_path, replayed):
    """Nothing else says of which category "a person" with "a person" was recorded."""
    folder = tmp_path / "exp"
    batches(folder, np.random.default_rng(2), 10_000)
    for number, file in enumerate(sorted(folder.iterdir())):
        file.rename(folder / f"{'abcdef'[number]}.tsv")
    corpus = tmp_path / "corpus.tsv"
    told = pd.DataFrame(EVENTS, columns=["emotion", "text_id", "generated_text"])
    told.to_csv(corpus, sep="\t", index=False)
    with pytest.raises(EngineError, match=r"a\.tsv, line \d+, and .*c\.tsv, line \d+: found two"):
        replayed("10_empathy_gap", folder, CORPUS=str(corpus), N_EVENTS="0", SETTINGS="P0,S0,T0")
    assert not paths.RESPONSES.exists()


# ---- The Biased Samaritan: 412 prompts of the control in each category ---------------------------


def helpers(drawn):
    """A rating of every prompt of every category, twice: rows with their category and run."""
    table = scenarios.load_scenarios()
    phrasings = {
        category: list(scenarios.phrasings(category).itertuples())
        for category in scenarios.categories()
    }
    for run, category in product((1, 2), scenarios.categories()):
        for row in table.itertuples():
            for name in phrasings[category]:
                (turn,) = scenarios.messages(row.text, name.text)
                number = int(drawn.integers(1, 101))
                where = (row.scenario, row.wording, name.phrasing)
                yield (category, run, name.group, *where, turn["content"], str(number))


@pytest.mark.parametrize("by", ["file", "column"])
def test_every_control_is_that_of_its_category(by, tmp_path, replayed):
    columns = ["category", "run", "group", "scenario", "wording", "phrasing", "prompt", "response"]
    told = pd.DataFrame(helpers(np.random.default_rng(3)), columns=columns)
    folder = tmp_path / "recorded"
    folder.mkdir()
    if by == "column":
        told.to_csv(folder / "everything.csv", index=False)
    else:
        for category, rows in told.groupby("category"):
            rows.drop(columns="category").to_csv(folder / f"{category.lower()}.csv", index=False)

    done = replayed("20_biased_samaritan", folder, RUNS="2")
    assert len(done) == 6
    key = ["scenario", "wording", "phrasing"]
    controls = []
    for call in done:
        own = told[(told.category == call.labels["category"]) & (told.run == call.round)]
        wanted = own.set_index(key).response.astype(float)
        read = helpfulness.load(call).set_index(key).rating
        assert len(read) == len(wanted)
        pd.testing.assert_series_equal(read, wanted[read.index], check_names=False)
        controls.append(own[own.group == scenarios.CONTROL].response.tolist())
    assert [len(ratings) for ratings in controls] == [412] * 6
    assert len(set(map(tuple, controls))) == 6


@pytest.fixture
def of_gender(tmp_path):
    """A folder with one file of one category and run, and the rows of all."""
    columns = ["category", "run", "group", "scenario", "wording", "phrasing", "prompt", "response"]
    told = pd.DataFrame(helpers(np.random.default_rng(4)), columns=columns)
    told = told[told.run == 1]
    folder = tmp_path / "recorded"
    folder.mkdir()
    gender = told[told.category == "Gender"]
    gender.drop(columns="category").to_csv(folder / "Gender.csv", index=False)
    return folder, told


def test_a_category_without_the_control_borrows_none_of_another(of_gender, replayed):
    """Its own file has no word of the category's in its name, and lacks the control."""
    folder, told = of_gender
    race = told[(told.category == "Race") & (told.group != scenarios.CONTROL)]
    race.drop(columns="category").to_csv(folder / "ethnic2.csv", index=False)

    done = replayed("20_biased_samaritan", folder, RUNS="1")
    read = {call.labels["category"]: helpfulness.load(call) for call in done}
    controls = {
        category: rows[rows.group == scenarios.CONTROL].rating for category, rows in read.items()
    }
    assert controls["Gender"].notna().all()
    assert controls["Race"].isna().all()
    others = read["Race"][read["Race"].group != scenarios.CONTROL]
    assert others.rating.notna().all()


def test_a_file_of_one_category_answers_no_other_and_it_is_said_how_to_name_files(
    of_gender, replayed, capsys
):
    folder, _ = of_gender
    done = replayed("20_biased_samaritan", folder, RUNS="1")
    assert [call.labels["category"] for call in done] == ["Gender"]
    said = capsys.readouterr().err
    assert (
        "somebody: free text (1 Race; 1 Age) is not stored, as no recording is of that round"
        in said
    )
    assert "files with a word of their category in the name" in said


# ---- StereoMap: a file a run, with pandas's index ------------------------------------------------

GROUPS = ["Nurses", "Lawyers", "Homeless", "Elderly", "Rich"]


def answered(run, group, prompt):
    """One answer; a call failed now and then, and stands as an empty one."""
    failed = (run, group, prompt) == (2, "Lawyers", "EXTENDED/Emotion")
    return None if failed else f"{run} {group} {prompt}"


def test_a_file_a_run_is_a_round(tmp_path, replayed, capsys):
    folder = tmp_path / "result"
    folder.mkdir()
    for run in (1, 2, 3):
        rows = []
        for prompt, group in product(groups.prompts("EXTENDED"), GROUPS):
            (turn,) = groups.chats(group, prompt, wording="released")[""]
            about = {"Group": group, "Construct": prompt, "Attribute": ""}
            said = {"Questionnaire": turn["content"], "Answer": answered(run, group, prompt)}
            rows.append(about | said)
        pd.DataFrame(rows).to_csv(folder / f"gpt35_run{run}.csv")
    assert (folder / "gpt35_run1.csv").read_text("utf8").startswith(",Group,Construct,")

    given = {"GROUPS": ";".join(GROUPS), "WORDING": "released", "ABLATION_ROUNDS": "0"}
    done = replayed("40_stereomap", folder, ROUNDS="4", **given)
    own = [call for call in done if call.labels["version"] == "EXTENDED"]
    assert [call.round for call in own] == [1, 2, 3]
    assert "somebody: free text (EXTENDED" in capsys.readouterr().err
    for call in own:
        texts = stored(call).read().text
        assert len(texts) == 35
        for trial, text in zip(call.design, texts, strict=True):
            asked = trial.condition["inquiry"]
            wanted = answered(call.round, asked.group, asked.prompt)
            assert text == wanted if wanted else pd.isna(text)


# ---- GIEBench: two models in one folder ----------------------------------------------------------

LETTERS = {"GPT-4": "A", "Qwen-1.5-110b": "B"}


def results(folder):
    """Three prompts of two models, as the repository has them."""
    folder.mkdir()
    for (model, letter), prompt in product(LETTERS.items(), questions.templates()["prompts"]):
        told = {}
        for item in questions.load_questions():
            (turn,) = questions.messages(item, prompt)
            answer = f"{model} {prompt} {item.key}: [[{letter}]]"
            told[item.key] = {"prompt": turn["content"], "correct": "A", "answer": answer}
        file = folder / f"{model}-{prompt}-Prompt.json"
        file.write_text(json.dumps(told, indent=4, ensure_ascii=False), "utf8")


def test_a_folder_of_two_models_is_refused_and_each_has_a_place(tmp_path, replayed):
    folder = tmp_path / "results"
    results(folder)
    given = {"ORDER": "given", "MISMATCH": "false", "WORDING": "straight"}
    given["MODELS"] = "gpt-4-turbo"
    with pytest.raises(EngineError) as raised:
        replayed("30_giebench", folder, **given)
    for name in ("GPT-4-Raw-Prompt.json, key", "Qwen-1.5-110b-Raw-Prompt.json, key"):
        assert name in str(raised.value)
    assert not paths.RESPONSES.exists()

    given["MODELS"] = "gpt-4-turbo;qwen-1.5-110b"
    places = f"Qwen/Qwen1.5-110B-Chat={folder}/Qwen*;gpt-4-turbo={folder}/GPT-4-*"
    done = replayed("30_giebench", places, **given)
    assert len(done) == 6
    for call in done:
        model = {"gpt-4-turbo": "GPT-4"}.get(call.model, "Qwen-1.5-110b")
        items = [trial.condition["asked"].question.key for trial in call.design]
        start = f"{model} {call.labels['plan']}"
        wanted = [f"{start} {key}: [[{LETTERS[model]}]]" for key in items]
        assert stored(call).read().text.tolist() == wanted
