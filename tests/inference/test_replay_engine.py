"""Recorded answers: every layout back as it was written, and nothing invented."""

import gc
import json
import re
import tracemalloc
from itertools import islice

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import settings as rules
from hypothesis import strategies as st

from ingroup.design import Block, Design
from ingroup.inference import EngineError, Reply, Sampling
from ingroup.inference.reasoning import split_reasoning
from ingroup.inference.replay_engine import ReplayEngine
from ingroup.studies.giebench import stimuli as questions
from ingroup.studies.giebench.design import trials as giebench_trials
from ingroup.tables import InputError
from toy import SAMPLING, Toy, religion, run

# What a table can do to a text: separators, quotes, line breaks, emptiness, names of nothing.
QUIRKS = [
    "85",
    "",
    " 85 \n",
    '"85"',
    'I"d say 85',
    "85\t(high)",
    "85\n\nEmotion intensity:\t90",
    "85\r\n86",
    "85, or so; 'maybe'",
    "NA",
    "nan",
    "null",
    "!!!!![]!!",
    "fünfundachtzig 八十五 🙂",
    "I cannot\x00rate",
]
PROMPTS = [f"How {text}?" for text in QUIRKS]
MISSING = Reply(None, "failed", error="no recording")


def chat(user, system=""):
    """One user turn, behind a system turn where there is one."""
    user_turn = {"role": "user", "content": user}
    if not system:
        return [user_turn]

    return [{"role": "system", "content": system}, user_turn]


def texts(engine, *chats):
    """What the engine replies to these chats."""
    return [reply.text for reply in engine.answer(chats, SAMPLING)]


def write_released(rows, folder, size=7):
    """Write the authors' layout, numbered rows in several files; gives the folder."""
    table = pd.DataFrame(rows, columns=["system_prompt", "user_input", "response"])
    folder.mkdir(exist_ok=True)

    for start in range(0, len(table), size):
        batch = table.iloc[start : start + size]
        file = folder / f"batch_{start:06d}.tsv"
        batch.to_csv(file, sep="\t", index_label="idx")

    return folder


def write_table(file, rows, columns=("prompt", "response"), **options):
    """Write a table as CSV; gives the file."""
    frame = pd.DataFrame(rows, columns=list(columns))
    frame.to_csv(file, index=False, **options)
    return file


def write_json(file, items):
    """Write items as JSON."""
    file.write_text(json.dumps(items), "utf8")


def asking(*prompts):
    """A design of these prompts, each a user turn."""
    block = Block({}, {"prompt": prompts}, lambda condition: chat(condition["prompt"]), "")
    return Design([block])


def reply_to_one(engine, number=1, category="", others=()):
    """The reply to the prompt "one" in a round; "nothing" without such a round."""
    if not engine.select_recordings(number, category, others):
        return "nothing"

    engine.assign_recordings(asking("one"))
    return texts(engine, chat("one"))[0]


def replies_to_one(engine, rounds):
    """The replies to the prompt "one" in the first rounds."""
    return [reply_to_one(engine, number) for number in range(1, rounds + 1)]


def texts_by_round(engine, *prompts):
    """What is recorded for the prompts, one list per round that there is."""
    chats = [chat(prompt) for prompt in prompts]

    by_round = {}
    for number in range(1, 6):
        if engine.select_recordings(number):
            by_round[number] = texts(engine, *chats)

    return by_round


@pytest.fixture(scope="module")
def plan():
    return religion()


def test_a_plain_table_gives_its_texts_as_they_are(tmp_path):
    rows = zip(PROMPTS, QUIRKS, strict=True)
    file = write_table(tmp_path / "bare.csv", rows)
    engine = ReplayEngine(file, "m")

    assert texts(engine, *map(chat, PROMPTS)) == QUIRKS


def test_a_table_of_a_spreadsheet_has_a_mark_in_front_and_some_empty_system_turns(tmp_path):
    systems = []
    bare_texts = []
    for number, text in enumerate(QUIRKS):
        has_system = number % 2 == 0
        systems.append(f"You are {number}." if has_system else "")
        bare_texts.append(None if has_system else text)

    file = write_table(
        tmp_path / "systems.csv",
        zip(systems, PROMPTS, QUIRKS, strict=True),
        ["system", "prompt", "response"],
        encoding="utf-8-sig",
        lineterminator="\r\n",
    )
    with file.open("a", newline="") as stream:
        stream.write("\r\n")
    engine = ReplayEngine(file, "m")

    assert texts(engine, *map(chat, PROMPTS, systems)) == QUIRKS
    assert texts(engine, *map(chat, PROMPTS)) == bare_texts


def test_results_of_giebench_are_read_and_its_prompts_are_not(tmp_path):
    results = {}
    for number, text in enumerate(QUIRKS):
        results[f"{number}"] = {
            "prompt": f"Question {number}",
            "correct": "A",
            "category": "Age",
            "answer": text,
        }
    results["failed"] = {"prompt": "Question 99", "correct": "B", "category": "Age"}
    results["half"] = {"prompt": "Question 100", "answer": "[[A]] \ud83d"}

    prompts = {key: {"prompt": item["prompt"]} for key, item in results.items()}
    write_json(tmp_path / "GPT-4-ID-Prompt.json", results)
    write_json(tmp_path / "ID-Prompt.json", prompts)

    engine = ReplayEngine(tmp_path, "gpt-4-turbo")
    engine.assign_recordings(asking("Question 0", "Question 99"))

    numbered_chats = [chat(f"Question {number}") for number in range(len(QUIRKS))]
    assert texts(engine, *numbered_chats) == QUIRKS
    assert texts(engine, chat("Question 99")) == [None]
    assert texts(engine, chat("Question 100")) == ["[[A]] ?"]  # a shard can hold this


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"))


@rules(max_examples=20)
@given(st.lists(st.tuples(TEXT, TEXT, TEXT)))
@example([("You are a person.\n", '"It was \tbad"\n', text) for text in QUIRKS])
@example([("", "", "commentary")])  # the first word of a reasoning, and nothing else
def test_whatever_pandas_writes_is_read_back(tmp_path_factory, rows):
    numbered_rows = []
    for number, (system, user, text) in enumerate([*rows, ("s", "u", "t")]):
        numbered_rows.append((f"s{number} {system}", user, text))
    folder = write_released(numbered_rows, tmp_path_factory.mktemp("any"), 2)

    engine = ReplayEngine(folder, "m")
    chats = [chat(user, system) for system, user, _ in numbered_rows]
    replies = engine.answer(chats, SAMPLING)

    read_back = [(reply.text, reply.reasoning) for reply in replies]
    assert read_back == [split_reasoning(text) for _, _, text in numbered_rows]


def test_a_store_is_refused_with_the_way_to_read_it(plan, tmp_path):
    run(plan, tmp_path / "some" / "store", Toy(lambda *_: "50"), 64)

    with pytest.raises(EngineError, match=r"some/store is a store .* set MODELS=<name>@stored"):
        ReplayEngine(tmp_path, "toy")


# ---- rounds, runs and drafts ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["round", "run"])
@pytest.mark.parametrize("order", [list, sorted])
def test_each_round_has_its_own_recordings(order, name, tmp_path):
    rows = [
        ("one", "1", "a"),
        ("two", "1", "b"),
        ("one", "2", "c"),
        ("two", "3", "d"),
    ]
    file = write_table(tmp_path / "a.csv", order(rows), ("prompt", name, "response"))

    recorded = texts_by_round(ReplayEngine(file, "m"), "one", "two")

    assert recorded == {1: ["a", "b"], 2: ["c", None], 3: [None, "d"]}


def test_without_rounds_nothing_is_repeated(tmp_path):
    """One run, or several that the table does not name: they make no later round."""
    rows = [("one", "a"), ("one", "a"), ("two", "b")]
    file = write_table(tmp_path / "a.csv", rows)

    recorded = texts_by_round(ReplayEngine(file, "m"), "one", "two")

    assert recorded == {1: ["a", "b"]}


def test_drafts_of_stereomap_are_rounds(tmp_path):
    """Its files have one row per draft, in any order of the prompts; an empty one failed."""
    rows = [("one", "a"), ("one", "c"), ("two", "b"), ("one", "d"), ("two", "")]
    file = write_table(tmp_path / "a.csv", rows, ("Questionnaire", "Answer"))

    recorded = texts_by_round(ReplayEngine(file, "m"), "one", "two")

    assert recorded == {1: ["a", "b"], 2: ["c", None], 3: ["d", None]}


def write_bard(file, rows):
    """Write a file as the authors' script does: drafts are lists of one text, or missing."""
    records = []
    for question, answer, *drafts in rows:
        record = {
            "Group": "G",
            "Construct": "Emotion",
            "Attribute": "",
            "Questionnaire": question,
            "Answer": answer,
        }
        for number in range(3):
            draft = drafts[number] if number < len(drafts) else None
            record[f"Choice_{number}"] = draft and [draft]
        records.append(record)

    pd.DataFrame(records).to_csv(file)


QUOTES = 'it\'s "b"\nand more'


@pytest.fixture
def bard(tmp_path):
    """Three questions with two further drafts, one, and none."""
    rows = [
        ("one", "a ", "a", QUOTES, "c"),
        ("two", "d", "e", None, "[f] 'g'"),
        ("three", None),
    ]
    write_bard(tmp_path / "bard.csv", rows)
    return ReplayEngine(tmp_path, "m")


def test_further_drafts_of_an_answer_are_further_rounds(bard):
    """The first draft repeats the answer; another text is a draft, whatever its quotes."""
    assert texts_by_round(bard, "one", "two", "three") == {
        1: ["a ", "d", None],
        2: [QUOTES, "e", None],
        3: ["c", "[f] 'g'", None],
    }


def test_drafts_that_no_prompt_used_are_counted_with_the_way_to_read_them(bard, capsys):
    texts(bard, chat("one"), chat("two"), chat("three"))

    bard.close()

    said = "4 of 7 recordings in .* answer no prompt .*; drafts are the rounds 2 to 3 .ROUNDS=3 "
    assert re.search(said, capsys.readouterr().err)


def test_drafts_of_several_runs_are_behind_all_runs(tmp_path):
    for number in "12":
        row = ("one", number, number, f"{number}b", f"{number}c")
        write_bard(tmp_path / f"bard{number}.csv", [row])

    engine = ReplayEngine(tmp_path, "m")

    assert replies_to_one(engine, 7) == ["1", "2", "1b", "2b", "1c", "2c", "nothing"]


DRAFT_COLUMNS = ("Questionnaire", "Answer", "Choice_0")


@pytest.mark.parametrize(
    "cell",
    ["['a', 'b']", "['a']['b']", "[" * 3000 + "]" * 3000, "['\\ud83d'", "['\x00']", "[1]", "a"],
)
def test_a_draft_that_is_no_list_of_one_text_is_taken_as_it_is(cell, tmp_path):
    file = write_table(tmp_path / "a.csv", [("one", "x", cell)], DRAFT_COLUMNS)
    engine = ReplayEngine(file, "m")

    assert reply_to_one(engine, 2) == cell


def test_a_draft_with_half_a_surrogate_pair_can_be_stored(tmp_path):
    rows = [("one", "x", r"['y \ud83d']")]
    file = write_table(tmp_path / "a.csv", rows, DRAFT_COLUMNS)
    engine = ReplayEngine(file, "m")

    assert reply_to_one(engine, 2) == "y ?"


SPELLINGS = [str.lower, str.upper, str.title]


@pytest.mark.parametrize("spell", SPELLINGS)
def test_the_case_of_a_columns_name_does_not_matter(spell, tmp_path):
    columns = map(spell, ("prompt", "response", "run", "category", "system"))
    rows = [
        ("one", "5", "1", "Age", ""),
        ("one", "6", "2", "Age", ""),
        ("one", "7", "1", "Race", ""),
    ]
    file = write_table(tmp_path / "a.csv", rows, columns)

    engine = ReplayEngine(file, "m")

    assert reply_to_one(engine, 1, "Age") == "5"
    assert reply_to_one(engine, 2, "Age") == "6"
    assert reply_to_one(engine, 1, "Race") == "7"


@pytest.mark.parametrize("spell", SPELLINGS)
def test_the_case_of_a_column_of_drafts_does_not_matter(spell, tmp_path):
    columns = [spell(name) for name in DRAFT_COLUMNS]
    for number in "12":
        row = ("one", number, f"['{number}b']")
        write_table(tmp_path / f"{number}.csv", [row], columns)

    engine = ReplayEngine(tmp_path, "m")

    assert replies_to_one(engine, 4) == ["1", "2", "1b", "2b"]


def test_a_column_as_in_the_layout_goes_before_one_of_another_case(tmp_path):
    columns = ("prompt", "response", "Response")
    file = write_table(tmp_path / "a.csv", [("one", "5", "6")], columns)

    assert reply_to_one(ReplayEngine(file, "m")) == "5"


RUNS_AS_FLOATS = pd.DataFrame({"prompt": "one", "response": list("abc"), "run": [1, 2, None]})


def test_runs_that_pandas_made_floats_are_whole_numbers(tmp_path):
    file = tmp_path / "a.csv"
    RUNS_AS_FLOATS.dropna().to_csv(file, index=False)
    assert "one,a,1.0\n" in file.read_text("utf8")

    engine = ReplayEngine(file, "m")

    assert replies_to_one(engine, 3) == ["a", "b", "nothing"]


def test_a_missing_run_is_refused(tmp_path):
    file = tmp_path / "a.csv"
    RUNS_AS_FLOATS.to_csv(file, index=False)
    assert "one,a,1.0\n" in file.read_text("utf8")

    with pytest.raises(InputError, match="line 4, column 'run': found '', expected a whole number"):
        ReplayEngine(file, "m")


@pytest.mark.parametrize("run", ["1.5", "0.0", "-1.0", "1e0", "nan"])
def test_runs_that_are_no_whole_numbers_are_refused(run, tmp_path):
    file = write_table(tmp_path / "a.csv", [("one", "a", run)], ("prompt", "response", "run"))

    with pytest.raises(InputError, match="expected a whole number from 1"):
        ReplayEngine(file, "m")


# ---- what is not recorded ------------------------------------------------------------------------


def test_recordings_that_no_prompt_used_are_counted(tmp_path, capsys):
    rows = [("one", "1"), ("two", "2"), ("three", "3")]
    engine = ReplayEngine(write_table(tmp_path / "a.csv", rows), "m")

    engine.close()
    said_before_any_prompt = capsys.readouterr().err

    texts(engine, chat("two"), chat("two"))
    engine.close()
    said_after_one_prompt = capsys.readouterr().err

    texts(engine, chat("one"), chat("three"))
    engine.close()
    said_after_all_prompts = capsys.readouterr().err

    assert said_before_any_prompt == ""
    assert "2 of 3 recordings in" in said_after_one_prompt
    assert said_after_all_prompts == ""


def test_what_is_not_recorded_is_not_invented(tmp_path):
    file = write_table(tmp_path / "a.csv", [("one", "1"), ("two", "2")])
    engine = ReplayEngine(file, "m")

    replies = engine.answer([chat("three"), chat("two"), chat("two", "one")], SAMPLING)

    assert replies == [MISSING, Reply("2", "stop"), MISSING]


def test_after_a_match_a_job_without_any_recording_is_no_misfit(tmp_path):
    file = write_table(tmp_path / "a.csv", [("one", "1"), ("two", "2")])
    engine = ReplayEngine(file, "m")
    engine.answer([chat("two")], SAMPLING)

    assert engine.answer([chat("four"), chat("four")], SAMPLING) == [MISSING, MISSING]
    assert engine.answer([], SAMPLING) == []


def test_a_misfit_shows_where_the_nearest_prompt_departs(plan, tmp_path):
    chats = [trial.messages for trial in islice(plan, 70, 80)]
    rows = [("Be brief.", "How sad?", "1")]
    for system_turn, user_turn in chats:
        without_break = system_turn["content"].replace(".\n", ". ", 1)
        rows.append((without_break, user_turn["content"], "85"))
    engine = ReplayEngine(write_released(rows, tmp_path / "out"), "m")

    with pytest.raises(EngineError, match="none of 10 prompts has a recording") as raised:
        engine.answer(chats, SAMPLING)

    sentence = str(raised.value)
    first_system = chats[0][0]["content"]
    at = first_system.index("\n")
    before = first_system[max(at - 20, 0) : at]
    assert "batch_000000.tsv, line 3 comes nearest to the first and departs from it at " in sentence
    assert f"at character {at + 1}: found '{before} Your task is to rat', " in sentence
    assert f"expected '{before}\\nYour task is to rat'" in sentence


# ---- several recordings of one prompt ------------------------------------------------------------

TWICE = [
    ("u", "1"),
    ("two\nlines", "2"),
    ("v", "3"),
    ("u", "1"),
    ("w", "4"),
    ("v", "5"),
    ("v", ""),
]


@pytest.fixture
def twice(tmp_path):
    """An engine whose prompts u and v have several recordings."""
    return ReplayEngine(write_table(tmp_path / "a.csv", TWICE), "m")


@pytest.mark.parametrize("numbers", [range(5), [4, 0], [3, 2, 1]])
def test_trials_of_one_prompt_get_its_recordings_in_their_order(numbers, twice):
    """Whatever stands between them, and whichever trials are asked first."""
    plan = asking("v", "two\nlines", "v", "u", "v")
    twice.assign_recordings(plan)

    chats = [plan[number].messages for number in numbers]
    replies = twice.complete(twice.match(chats, numbers), SAMPLING)

    expected = ["3", "2", "5", "1", ""]
    assert [reply.text for reply in replies] == [expected[number] for number in numbers]


def test_a_run_that_was_stopped_goes_on_with_the_right_recordings(twice, tmp_path):
    """The first shard was lost: its trials get theirs, not the first ones of their prompts."""
    plan = asking("v", "w", "v", "u", "u", "v")
    twice.assign_recordings(plan)
    before = run(plan, tmp_path / "store", twice, 2).text.tolist()
    (tmp_path / "store" / "part-00001.parquet").unlink()

    after = run(plan, tmp_path / "store", twice, 2).text.tolist()

    assert before == ["3", "4", "5", "1", "1", ""]
    assert after == before


@pytest.mark.parametrize(
    ("prompts", "asked"),
    [("v", "one trial asks"), ("vv", "2 trials ask"), ("vvvv", "4 trials ask")],
)
def test_more_or_fewer_recordings_than_trials_are_refused(prompts, asked, twice, tmp_path):
    file = tmp_path / "a.csv"

    with pytest.raises(EngineError) as raised:
        twice.assign_recordings(asking(*prompts))

    sentence = str(raised.value)
    assert f"{file}, line 5, and {file}, line 8: found two replies" in sentence
    assert f"('3' and '5') where {asked} for 3 recordings, expected" in sentence
    assert "\n" not in sentence
    with pytest.raises(EngineError, match=r"line 5, and .* line 8: found two replies"):
        twice.answer([chat("v")], SAMPLING)


def test_an_ambiguous_prompt_that_no_trial_asks_is_no_error(twice):
    with pytest.raises(EngineError):
        twice.assign_recordings(asking("v"))

    twice.assign_recordings(asking("u", "w"))

    assert texts(twice, chat("u"), chat("w")) == ["1", "4"]


def test_different_replies_in_different_files_are_refused(tmp_path):
    """Even where as many trials ask: files have no order that would tell."""
    gpt = write_table(tmp_path / "GPT.csv", [("v", "GPT")])
    qwen = write_table(tmp_path / "Qwen.csv", [("v", "Qwen")])
    engine = ReplayEngine(tmp_path, "m")

    with pytest.raises(EngineError, match=f"{gpt}, line 2, and {qwen}, line 2: found two replies"):
        engine.assign_recordings(asking("v", "v"))


def test_one_recording_of_one_file_answers_every_trial_of_its_prompt(tmp_path):
    engine = ReplayEngine(write_table(tmp_path / "Qwen.csv", [("v", "Qwen")]), "m")
    engine.assign_recordings(asking("v", "v"))

    assert texts(engine, chat("v")) == ["Qwen"]


# ---- categories ----------------------------------------------------------------------------------

CATEGORIES = ("Age", "Gender", "Race or Ethnicity", "Nationality")


def write_category(folder, by, category, text):
    """Write the recording of a category, which its file, folder or column names."""
    columns = ("prompt", "response", "category")
    row = ("one", text, category)
    unnamed = ("prompt", "response", "what")

    if by == "column":
        write_table(folder / f"{len(category)}.csv", [row, row], columns)
    elif by == "folder":
        (folder / category).mkdir()
        write_table(folder / category / "x.csv", [row], unnamed)
    else:
        write_table(folder / f"{category}_x-0.csv", [row], unnamed)


@pytest.mark.parametrize("by", ["name", "folder", "column"])
def test_a_category_gets_its_own_recordings(by, tmp_path):
    """ "Race or Ethnicity" is the category of a file named by either word; "stage" names none."""
    write_category(tmp_path, by, "religion", "5")
    write_category(tmp_path, by, "ethnicity", "6")
    write_category(tmp_path, by, "stage", "7")

    engine = ReplayEngine(tmp_path, "m")

    assert reply_to_one(engine, category="Religion") == "5"
    assert reply_to_one(engine, category="Race or Ethnicity") == "6"
    for unrecorded in ("Age", ""):
        with pytest.raises(EngineError, match="found two replies"):
            reply_to_one(engine, category=unrecorded)


@pytest.mark.parametrize("by", ["name", "column"])
def test_a_category_without_recordings_borrows_none_of_another(by, tmp_path):
    """The file of the control of one category says it; another's file says nothing."""
    if by == "name":
        write_table(tmp_path / "Gender.csv", [("one", "5")])
        write_table(tmp_path / "ethnic2.csv", [("two", "6")])
    else:
        rows = [("one", "5", "Gender"), ("two", "6", "ethnic")]
        write_table(tmp_path / "a.csv", rows, ("prompt", "response", "category"))

    engine = ReplayEngine(tmp_path, "m")

    assert reply_to_one(engine, 1, "Gender", CATEGORIES) == "5"
    assert engine.select_recordings(1, "Race or Ethnicity", CATEGORIES)
    assert texts(engine, chat("two"), chat("one")) == ["6", None]


def test_a_folder_of_one_category_alone_answers_no_other(tmp_path):
    file = write_table(tmp_path / "Gender.csv", [("one", "5")])
    engine = ReplayEngine(file, "m")

    replies = {}
    for category in CATEGORIES:
        replies[category] = reply_to_one(engine, 1, category, CATEGORIES)

    assert replies == {
        "Age": "nothing",
        "Gender": "5",
        "Race or Ethnicity": "nothing",
        "Nationality": "nothing",
    }


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("GenderOrigin.csv", "Gender"),
        ("genders.csv", "Gender"),
        ("GENDER_x.csv", "Gender"),
        ("gpt4Nationality0.csv", "Nationality"),
        ("nationalities.csv", "Nationality"),
        ("EthnicitiesOrigin.csv", "Race or Ethnicity"),
        ("races.csv", "Race or Ethnicity"),
        ("GPTRace.csv", "Race or Ethnicity"),
        ("Ages.csv", "Age"),
    ],
)
def test_files_name_their_category_in_any_case_and_number(name, category, tmp_path):
    write_table(tmp_path / name, [("one", name)])
    write_table(tmp_path / "stagesTracedTrigger.csv", [("one", "of no category")])

    engine = ReplayEngine(tmp_path, "m")

    for other in CATEGORIES:
        expected = name if other == category else "of no category"
        assert reply_to_one(engine, 1, other, CATEGORIES) == expected


def test_a_prompt_of_another_category_or_round_is_named(tmp_path):
    columns = ("prompt", "response", "category", "run")
    rows = [("one", "5", "Age", "2"), ("two", "6", "Race", "1")]
    file = write_table(tmp_path / "a.csv", rows, columns)

    engine = ReplayEngine(file, "m")

    assert reply_to_one(engine, 2, "Race") == "nothing"
    with pytest.raises(EngineError, match=f"{file}, line 2 holds the first, of another round or"):
        reply_to_one(engine, 1, "Race")
    assert reply_to_one(engine, 2, "Age") == "5"


# ---- files that count ----------------------------------------------------------------------------


def write_numbered(folder, names, question="one"):
    """Write files of StereoMap whose answers are their names, with pandas's index."""
    for name in names:
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        table = pd.DataFrame([(question, name)], columns=["Questionnaire", "Answer"])
        table.to_csv(file, index_label="")


@pytest.mark.parametrize(
    "names",
    [
        ["gpt-3.5_0.csv", "gpt-3.5_1.csv", "gpt-3.5_2.csv"],
        ["run1.csv", "run2.csv", "run3.csv"],
        ["1/x.csv", "2/x.csv", "3/x.csv"],
    ],
)
def test_files_that_count_are_runs(names, tmp_path):
    write_numbered(tmp_path, names)

    engine = ReplayEngine(tmp_path, "m")

    assert replies_to_one(engine, 4) == [*names, "nothing"]


@pytest.mark.parametrize(
    "names",
    [
        ["r 08.csv", "r 09.csv", "r 10.csv"],
        ["bard.csv", "davinci.csv"],
        ["gpt_0.csv", "gpt_2.csv"],
        ["v1.csv", "v3.csv"],
        ["davinci-002.csv", "davinci-003.csv"],
    ],
)
def test_files_that_do_not_count_from_0_or_1_are_refused(names, tmp_path):
    write_numbered(tmp_path, names)

    engine = ReplayEngine(tmp_path, "m")

    no_gap = r"found two replies .* expected .*numbered by run from 0 or 1 without a gap"
    with pytest.raises(EngineError, match=no_gap):
        reply_to_one(engine)


def test_ten_runs_are_counted_as_numbers(tmp_path):
    write_numbered(tmp_path, [f"run{number}.csv" for number in range(1, 12)])

    engine = ReplayEngine(tmp_path, "m")

    assert reply_to_one(engine, 2) == "run2.csv"
    assert reply_to_one(engine, 11) == "run11.csv"


def test_parts_that_count_are_no_runs(tmp_path):
    """Without a prompt in common they are of one round; parts and runs may both count."""
    write_numbered(tmp_path, ["part1_run1.csv", "part1_run2.csv"], "one")
    write_numbered(tmp_path, ["part2_run1.csv", "part2_run2.csv"], "two")

    recorded = texts_by_round(ReplayEngine(tmp_path, "m"), "one", "two")

    assert recorded == {
        1: ["part1_run1.csv", "part2_run1.csv"],
        2: ["part1_run2.csv", "part2_run2.csv"],
    }


@pytest.mark.parametrize("index", [True, False])
def test_the_index_of_pandas_is_no_system_turn(index, tmp_path):
    file = tmp_path / "a.csv"
    rows = [("one", "5"), ("two", "4")]
    pd.DataFrame(rows, columns=["Questionnaire", "Answer"]).to_csv(file, index=index)

    engine = ReplayEngine(file, "m")

    assert texts(engine, chat("one"), chat("two")) == ["5", "4"]


# ---- files, folders and what names them ----------------------------------------------------------

GOOD = "system_prompt\tuser_input\tresponse\n"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            "a.tsv",
            "system_prompt\tresponse\ns\tr\n",
            "a.tsv, line 1: found the columns system_prompt, r",
        ),
        ("a.tsv", GOOD, "a.tsv, line 2: found the end of the file, expected a row"),
        ("a.tsv", GOOD + 's\t"u\nu"\tr\ns\tv\n', "a.tsv, line 4: found 2 cells, expected 3"),
        ("a.tsv", GOOD.encode() + b"s\tu\tr\ns\tu\t\xff\n", "a.tsv, line 3: found a byte that is"),
        (
            "a.csv",
            "prompt;response\nu;r\n",
            "expected user_input and response; or Questionnaire and An",
        ),
        (
            "a.csv",
            "prompt,response,run\nu,r,1\nu,r,0\n",
            "line 3, column 'run': found '0', expected a",
        ),
        (
            "a.json",
            '{"1": {"prompt": "p",}}',
            "a.json, line 1, column .* found a comma behind the last",
        ),
        ("a.json", '[{"prompt": "p"}]', "a.json: found a list, expected an object"),
        ("a.json", '{"k": "text"}', "a.json, key 'k': found 'text', expected an item with a"),
        ("a.json", '{"k": {"answer": "A"}}', "a.json, key 'k': found {'answer': 'A'}, expected"),
        ("a.json", '{"k": {"prompt": "p", "answer": 4}}', "found answer 4, expected a text"),
        ("a.json", '{"k": {"prompt": "p"}}', "holds no recorded answer, expected"),
        ("a.txt", "85", "a.txt holds no recordings; expected a .tsv, .csv, .json or .eval"),
        (".a.csv", "prompt,response\n", "holds no recordings; expected"),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_refused(tmp_path, name, content, sentence):
    """More of what a table can be is in test_tables.py."""
    file = tmp_path / name
    if isinstance(content, str):
        content = content.encode()
    file.write_bytes(content)

    with pytest.raises((EngineError, InputError), match=sentence) as raised:
        ReplayEngine(file, "m")

    assert "\n" not in str(raised.value)


def test_a_pattern_chooses_among_the_files_of_a_folder(tmp_path):
    write_table(tmp_path / "GPT-4-ID.csv", [("ID", "GPT-4-ID")])
    write_table(tmp_path / "GPT-4-COT.csv", [("OT", "GPT-4-COT")])
    write_table(tmp_path / "Qwen-ID.csv", [("ID", "Qwen-ID")])

    engine = ReplayEngine(tmp_path / "GPT-4-*", "m")

    assert texts(engine, chat("ID"), chat("OT")) == ["GPT-4-ID", "GPT-4-COT"]
    with pytest.raises(EngineError, match="holds no recordings; expected"):
        ReplayEngine(tmp_path / "Llama-*", "m")


def write_as_giebench(folder, items, prompt):
    """Write the items of one prompt, and a model's results for them, as GIEBench releases them."""
    asked = {}
    answered = {}
    for item in items:
        asked[item.key] = {
            "prompt": questions.messages(item, prompt)[0]["content"],
            "correct": item.correct,
            "category": item.category,
        }
        answered[item.key] = asked[item.key] | {"answer": f"{prompt} {item.key}: [[A]]"}

    write_json(folder / f"{prompt}-Prompt.json", asked)
    write_json(folder / "results" / f"M-{prompt}-Prompt.json", answered)


def test_released_results_answer_the_released_prompts(tmp_path):
    items = questions.load_questions()[:5]
    prompts = questions.templates()["prompts"]
    (tmp_path / "results").mkdir()
    for prompt in prompts:
        write_as_giebench(tmp_path, items, prompt)

    engine = ReplayEngine(tmp_path / "results", "m")

    for prompt in prompts:
        plan = giebench_trials(questions.load_questions(tmp_path), prompt)
        chats = [trial.messages for trial in plan]
        expected = [f"{prompt} {item.key}: [[A]]" for item in items]
        assert texts(engine, *chats) == expected


def test_recordings_are_not_scored(tmp_path):
    file = write_table(tmp_path / "a.csv", [("u", "1")])
    engine = ReplayEngine(file, "m")

    with pytest.raises(EngineError, match=r"a\.csv are texts with no probabilit") as error:
        engine.answer([chat("u")], Sampling(choices=("1", "2")))

    assert engine.asks_again is False
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["nothing", "nothing.tsv", ""])
def test_a_place_without_recordings_is_refused(name, tmp_path):
    with pytest.raises(EngineError, match="holds no recordings; expected"):
        ReplayEngine(tmp_path / name, "m")


@pytest.fixture
def rows():
    return [("s", f"u{number}", str(number)) for number in range(20)]


def test_the_identity_names_the_files_and_not_their_folder(rows, tmp_path):
    folder = write_released(rows, tmp_path / "here", 10)

    identity = ReplayEngine(folder, "org/model").identity()

    assert identity["engine"] == "replay"
    assert identity["model"] == "org/model"
    assert identity["files"] == "batch_000000.tsv, batch_000010.tsv"
    assert len(identity["revision"]) == 64
    assert str(tmp_path) not in json.dumps(identity)


def test_the_identity_is_the_content_and_not_the_folder(rows, tmp_path):
    changed_rows = [*rows[:-1], ("s", "u19", "20")]
    original = write_released(rows, tmp_path / "original", 10)
    copied = write_released(rows, tmp_path / "copied", 10)
    changed = write_released(changed_rows, tmp_path / "changed", 10)

    identity = ReplayEngine(original, "org/model").identity()

    assert ReplayEngine(copied, "org/model").identity() == identity
    assert ReplayEngine(changed, "org/model").identity() != identity


def test_a_recording_costs_bytes_and_no_text(tmp_path):
    number = 5_000
    padding = "x" * 500
    lines = [f"{i} {padding},{i % 101}" for i in range(number)]
    file = tmp_path / "many.csv"
    file.write_text("\n".join(["prompt,response", *lines]))

    tracemalloc.start()
    engine = ReplayEngine(file, "m")
    gc.collect()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()

    # Its text alone would be longer; what else the interpreter holds just then adds some bytes.
    assert size / number < len(padding) / 4
    assert texts(engine, chat(f"0 {padding}")) == ["0"]
    assert texts(engine, chat(f"777 {padding}")) == ["70"]
    assert texts(engine, chat(f"4999 {padding}")) == ["50"]
