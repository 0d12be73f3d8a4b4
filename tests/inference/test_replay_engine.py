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
from ingroup.inference.reasoning import separate
from ingroup.inference.replay_engine import ReplayEngine
from ingroup.studies.giebench import stimuli as questions
from ingroup.studies.giebench.design import trials as giebench_trials
from ingroup.tables import InputError
from toy import SAMPLING, Toy, religion, run

COLUMNS = ["idx", "system_prompt", "user_input", "response"]

# What a table can do to a text: separators, quotes, line breaks, emptiness, names of nothing.
QUIRKS = [
    "85", "", " 85 \n", '"85"', 'I"d say 85', "85\t(high)", "85\n\nEmotion intensity:\t90",
    "85\r\n86", "85, or so; 'maybe'", "NA", "nan", "null", "!!!!![]!!",
    "fünfundachtzig 八十五 🙂", "I cannot\x00rate",
]  # fmt: skip


def chat(user, system=""):
    turn = [{"role": "system", "content": system}] if system else []
    return [*turn, {"role": "user", "content": user}]


def texts(engine, chats):
    return [reply.text for reply in engine.answer(chats, SAMPLING)]


def released(rows, folder, size=7):
    """The authors' layout: numbered rows in several files, written by pandas."""
    table = pd.DataFrame([[i, *row] for i, row in enumerate(rows)], columns=COLUMNS)
    folder.mkdir(exist_ok=True)
    for start in range(0, len(table), size):
        batch = table.iloc[start : start + size]
        batch.to_csv(folder / f"batch_{start:06d}.tsv", sep="\t", index=False)
    return folder


def table(file, rows, columns=("prompt", "response"), **options):
    pd.DataFrame(rows, columns=list(columns)).to_csv(file, index=False, **options)
    return file


@pytest.fixture(scope="module")
def plan():
    return religion()


def answers(chat, before, asked):
    """By the words of the prompt; every 50th trial is refused, cut off or has no answer."""
    odd = [("I cannot rate that.", "stop"), ("The\tperson\n felt", "length"), ("", "stop")]
    if (asked + 1) % 50 == 0:
        return Reply(*odd[(asked + 1) // 50 % 3])
    return str(sum(len(message["content"]) for message in chat) % 101)


def test_a_plain_table_with_and_without_a_system_turn(tmp_path):
    prompts = [f"How {text}?" for text in QUIRKS]
    bare_chats = [chat(prompt) for prompt in prompts]
    bare = table(tmp_path / "bare.csv", zip(prompts, QUIRKS, strict=True))
    assert texts(ReplayEngine(bare, "m"), bare_chats) == QUIRKS
    # A column of systems, some of them empty, from a spreadsheet: a mark in front, CRLF between.
    systems = ["" if i % 2 else f"You are {i}." for i in range(len(QUIRKS))]
    rows = zip(systems, prompts, QUIRKS, strict=True)
    file = tmp_path / "systems.csv"
    table(file, rows, ["system", "prompt", "response"], encoding="utf-8-sig", lineterminator="\r\n")
    with file.open("a", newline="") as stream:
        stream.write("\r\n")
    asked = [chat(p, s) for p, s in zip(prompts, systems, strict=True)]
    engine = ReplayEngine(file, "m")
    assert texts(engine, asked) == QUIRKS
    assert texts(engine, bare_chats) == [q if i % 2 else None for i, q in enumerate(QUIRKS)]


def test_giebench_results(tmp_path):
    items = {
        f"{i}": {"prompt": f"Question {i}", "correct": "A", "category": "Age", "answer": text}
        for i, text in enumerate(QUIRKS)
    }
    items["failed"] = {"prompt": "Question 99", "correct": "B", "category": "Age"}
    items["half"] = {"prompt": "Question 100", "answer": "[[A]] \ud83d"}
    file = tmp_path / "GPT-4-ID-Prompt.json"
    file.write_text(json.dumps(items, indent=4), "utf8")
    asked = {key: {"prompt": item["prompt"]} for key, item in items.items()}
    (tmp_path / "ID-Prompt.json").write_text(json.dumps(asked), "utf8")  # prompts, no results
    engine = ReplayEngine(tmp_path, "gpt-4-turbo")
    engine.tell_apart(asking("Question 0", "Question 99"))
    assert texts(engine, [chat(f"Question {i}") for i in range(15)]) == QUIRKS
    assert texts(engine, [chat("Question 99")]) == [None]
    assert texts(engine, [chat("Question 100")]) == ["[[A]] ?"]  # a shard can hold this


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"))


@rules(max_examples=20)
@given(st.lists(st.tuples(TEXT, TEXT, TEXT)))
@example([("You are a person.\n", '"It was \tbad"\n', text) for text in QUIRKS])
@example([("", "", "commentary")])  # the first word of a reasoning, and nothing else
def test_whatever_pandas_writes_is_read_back(tmp_path_factory, rows):
    rows = [(f"s{i} {row[0]}", *row[1:]) for i, row in enumerate([*rows, ("s", "u", "t")])]
    engine = ReplayEngine(released(rows, tmp_path_factory.mktemp("any"), 2), "m")

    replies = engine.answer([chat(user, system) for system, user, _ in rows], SAMPLING)

    read_back = [(reply.text, reply.reasoning) for reply in replies]
    assert read_back == [separate(text) for _, _, text in rows]


def test_a_store_is_refused_with_the_way_to_read_it(plan, tmp_path):
    run(plan, tmp_path / "some" / "store", Toy(answers), 64)
    with pytest.raises(EngineError, match=r"some/store is a store .* ask MODELS=<name>@stored"):
        ReplayEngine(tmp_path, "toy")


def rounds(folder, columns, rows):
    """The texts of two prompts and one that is not recorded, by round."""
    engine = ReplayEngine(table(folder / "a.csv", rows, columns), "m")
    asked = [chat("one"), chat("two")]
    return {n: texts(engine, asked) for n in range(1, 5) if engine.turn_to(n)}


@pytest.mark.parametrize("name", ["round", "run"])
@pytest.mark.parametrize("order", [list, sorted])
def test_each_round_has_its_own_recordings(order, name, tmp_path):
    rows = [("one", "1", "a"), ("two", "1", "b"), ("one", "2", "c"), ("two", "3", "d")]
    found = rounds(tmp_path, ("prompt", name, "response"), order(rows))
    assert found == {1: ["a", "b"], 2: ["c", None], 3: [None, "d"]}


def test_without_rounds_nothing_is_repeated(tmp_path):
    """One run, or several of which nobody told: no later round is made of them."""
    rows = [("one", "a"), ("one", "a"), ("two", "b")]
    assert rounds(tmp_path, ("prompt", "response"), rows) == {1: ["a", "b"]}


def test_drafts_of_stereomap_are_rounds(tmp_path):
    """Its files have a row a draft, in whatever order the prompts stand; an empty one failed."""
    rows = [("one", "a"), ("one", "c"), ("two", "b"), ("one", "d"), ("two", "")]
    found = rounds(tmp_path, ("Questionnaire", "Answer"), rows)
    assert found == {1: ["a", "b"], 2: ["c", None], 3: ["d", None]}


def bard(folder, name, rows, columns=("Answer", "Choice_0", "Choice_1", "Choice_2")):
    """A file as the authors' script writes it: drafts are lists of one text, or missing."""
    told = []
    for question, answer, *drafts in rows:
        cells = [draft and [draft] for draft in drafts]
        told.append(("G", "Emotion", "", question, answer, *cells))
    about = ["Group", "Construct", "Attribute", "Questionnaire"]
    pd.DataFrame(told, columns=[*about, *columns]).to_csv(folder / name)


def test_further_drafts_of_an_answer_are_further_rounds(tmp_path, capsys):
    """The first draft repeats the answer; another text is a draft, whatever its quotes."""
    quotes = 'it\'s "b"\nand more'
    rows = [("one", "a ", "a", quotes, "c"), ("two", "d", "e", None, "[f] 'g'"), ("three", None)]
    bard(tmp_path, "bard.csv", [row + (None,) * (5 - len(row)) for row in rows])
    engine = ReplayEngine(tmp_path, "m")
    asked = [chat("one"), chat("two"), chat("three")]
    found = {n: texts(engine, asked) for n in range(1, 6) if engine.turn_to(n)}
    assert found == {
        1: ["a ", "d", None], 2: [quotes, "e", None], 3: ["c", "[f] 'g'", None]
    }  # fmt: skip

    engine = ReplayEngine(tmp_path, "m")
    texts(engine, asked)
    engine.close()
    said = "4 of 7 recordings in .* answer no prompt .*; drafts are the rounds 2 to 3 .ROUNDS=3 "
    assert re.search(said, capsys.readouterr().err)


def test_drafts_of_several_runs_are_behind_all_runs(tmp_path):
    for number in "12":
        rows = [("one", number, number, f"{number}b", f"{number}c")]
        bard(tmp_path, f"bard{number}.csv", rows)
    engine = ReplayEngine(tmp_path, "m")
    said = [spoken(engine, number) for number in range(1, 8)]
    assert said == ["1", "2", "1b", "2b", "1c", "2c", "nothing"]


@pytest.mark.parametrize(
    "cell",
    ["['a', 'b']", "['a']['b']", "[" * 3000 + "]" * 3000, "['\\ud83d'", "['\x00']", "[1]", "a"],
)
def test_a_draft_that_is_no_list_of_one_text_is_taken_as_it_is(cell, tmp_path):
    file = table(tmp_path / "a.csv", [("one", "x", cell)], ("Questionnaire", "Answer", "Choice_0"))
    assert spoken(ReplayEngine(file, "m"), 2) == cell


def test_a_draft_with_half_a_surrogate_pair_can_be_stored(tmp_path):
    rows = [("one", "x", r"['y \ud83d']")]
    file = table(tmp_path / "a.csv", rows, ("Questionnaire", "Answer", "Choice_0"))
    assert spoken(ReplayEngine(file, "m"), 2) == "y ?"


@pytest.mark.parametrize("spell", [str.lower, str.upper, str.title])
def test_the_case_of_a_columns_name_does_not_matter(spell, tmp_path):
    columns = [*map(spell, ("prompt", "response", "run", "category", "system"))]
    rows = [
        ("one", "5", "1", "Age", ""),
        ("one", "6", "2", "Age", ""),
        ("one", "7", "1", "Race", ""),
    ]
    engine = ReplayEngine(table(tmp_path / "a.csv", rows, columns), "m")
    said = [spoken(engine, *turn) for turn in ((1, "Age"), (2, "Age"), (1, "Race"))]
    assert said == ["5", "6", "7"]

    folder = tmp_path / "stereomap"
    folder.mkdir()
    columns = [*map(spell, ("Questionnaire", "Answer", "Choice_0"))]
    for number in "12":
        table(folder / f"{number}.csv", [("one", number, f"['{number}b']")], columns)
    engine = ReplayEngine(folder, "m")
    assert [spoken(engine, number) for number in (1, 2, 3, 4)] == ["1", "2", "1b", "2b"]


def test_a_column_as_in_the_layout_goes_before_one_of_another_case(tmp_path):
    columns = ("prompt", "response", "Response")
    assert spoken(ReplayEngine(table(tmp_path / "a.csv", [("one", "5", "6")], columns), "m")) == "5"


def test_runs_that_pandas_made_floats_are_whole_numbers(tmp_path):
    """A missing one is refused: nothing tells of which run it is."""
    told = pd.DataFrame({"prompt": "one", "response": list("abc"), "run": [1, 2, None]})
    file = tmp_path / "a.csv"
    told.to_csv(file, index=False)
    assert "one,a,1.0\n" in file.read_text("utf8")
    with pytest.raises(InputError, match="line 4, column 'run': found '', expected a whole number"):
        ReplayEngine(file, "m")

    told.dropna().to_csv(file, index=False)
    engine = ReplayEngine(file, "m")
    assert [spoken(engine, number) for number in (1, 2, 3)] == ["a", "b", "nothing"]


@pytest.mark.parametrize("run", ["1.5", "0.0", "-1.0", "1e0", "nan"])
def test_runs_that_are_no_whole_numbers_are_refused(run, tmp_path):
    file = table(tmp_path / "a.csv", [("one", "a", run)], ("prompt", "response", "run"))
    with pytest.raises(InputError, match="expected a whole number from 1"):
        ReplayEngine(file, "m")


def test_recordings_that_no_prompt_used_are_counted(tmp_path, capsys):
    rows = [("one", "1"), ("two", "2"), ("three", "3")]
    engine = ReplayEngine(table(tmp_path / "a.csv", rows), "m")
    engine.close()
    assert capsys.readouterr().err == ""  # nothing was asked
    texts(engine, [chat("two")] * 2)
    engine.close()
    assert "2 of 3 recordings in" in capsys.readouterr().err
    texts(engine, [chat("one"), chat("three")])
    engine.close()
    assert capsys.readouterr().err == ""


def test_what_is_not_recorded_is_not_invented(tmp_path):
    engine = ReplayEngine(table(tmp_path / "a.csv", [("one", "1"), ("two", "2")]), "m")
    replies = engine.answer([chat("three"), chat("two"), chat("two", "one")], SAMPLING)
    missing = Reply(None, "failed", error="no recording")
    assert replies == [missing, Reply("2", "stop"), missing]
    # Something matched before, so a call without any recording is a hole and no misfit.
    assert engine.answer([chat("four")] * 2, SAMPLING) == [missing] * 2
    assert engine.answer([], SAMPLING) == []


def test_a_misfit_shows_where_the_nearest_prompt_departs(plan, tmp_path):
    turns = [[message["content"] for message in trial.messages] for trial in islice(plan, 70, 80)]
    rows = [(system.replace(".\n", ". ", 1), user, "85") for system, user in turns]
    folder = released([("Be brief.", "How sad?", "1"), *rows], tmp_path / "out")
    engine = ReplayEngine(folder, "m")
    asked = [trial.messages for trial in islice(plan, 70, 80)]
    at = turns[0][0].index("\n")
    near = turns[0][0][max(at - 20, 0) : at]
    with pytest.raises(EngineError, match="none of 10 prompts has a recording") as raised:
        engine.answer(asked, SAMPLING)
    sentence = str(raised.value)
    assert "batch_000000.tsv, line 3 comes nearest to the first and departs from it at " in sentence
    assert f"at character {at + 1}: found '{near} Your task is to rat', " in sentence
    assert f"expected '{near}\\nYour task is to rat'" in sentence


def asking(*prompts):
    """A design of these prompts, each a user turn."""
    block = Block({}, {"prompt": prompts}, lambda condition: chat(condition["prompt"]), "")
    return Design([block])


TWICE = [("u", "1"), ("two\nlines", "2"), ("v", "3"), ("u", "1"), ("w", "4"), ("v", "5"), ("v", "")]


def test_trials_of_one_prompt_get_its_recordings_in_their_order(tmp_path):
    """Whatever stands between them, and whichever trials are asked first."""
    engine = ReplayEngine(table(tmp_path / "a.csv", TWICE), "m")
    plan = asking("v", "two\nlines", "v", "u", "v")
    engine.tell_apart(plan)
    for numbers in (range(5), [4, 0], [3, 2, 1]):
        found = engine.match([plan[number].messages for number in numbers], numbers)
        said = [reply.text for reply in engine.complete(found, SAMPLING)]
        assert said == [["3", "2", "5", "1", ""][number] for number in numbers]


def test_a_run_that_was_stopped_goes_on_with_the_right_recordings(tmp_path):
    """The first shard was lost: its trials get theirs, not the first ones of their prompts."""
    engine = ReplayEngine(table(tmp_path / "a.csv", TWICE), "m")
    plan = asking("v", "w", "v", "u", "u", "v")
    engine.tell_apart(plan)
    first = run(plan, tmp_path / "store", engine, 2).text.tolist()
    assert first == ["3", "4", "5", "1", "1", ""]
    (tmp_path / "store" / "part-00001.parquet").unlink()
    assert run(plan, tmp_path / "store", engine, 2).text.tolist() == first


@pytest.mark.parametrize("prompts", ["v", "vv", "vvvv"])
def test_more_or_fewer_recordings_than_trials_are_refused(prompts, tmp_path):
    file = table(tmp_path / "a.csv", TWICE)
    engine = ReplayEngine(file, "m")
    plan = asking(*prompts)
    with pytest.raises(EngineError) as raised:
        engine.tell_apart(plan)
    sentence = str(raised.value)
    asked = {1: "one trial asks", 2: "2 trials ask", 4: "4 trials ask"}[len(plan)]
    assert f"{file}, line 5, and {file}, line 8: found two replies" in sentence
    assert f"('3' and '5') where {asked} for 3 recordings, expected" in sentence
    assert "\n" not in sentence
    with pytest.raises(EngineError, match=r"line 5, and .* line 8: found two replies"):
        engine.answer([chat("v")], SAMPLING)
    engine.tell_apart(asking("u", "w"))  # nobody asks what is ambiguous
    assert texts(engine, [chat("u"), chat("w")]) == ["1", "4"]


def test_different_replies_in_different_files_are_refused(tmp_path):
    """Even where as many trials ask: files have no order that would tell."""
    one, two = (table(tmp_path / f"{name}.csv", [("v", name)]) for name in ("GPT", "Qwen"))
    engine = ReplayEngine(tmp_path, "m")
    with pytest.raises(EngineError, match=f"{one}, line 2, and {two}, line 2: found two replies"):
        engine.tell_apart(asking("v", "v"))
    alone = ReplayEngine(two, "m")
    alone.tell_apart(asking("v", "v"))
    assert texts(alone, [chat("v")]) == ["Qwen"]


def spoken(engine, number=1, category="", others=()):
    """The text for the prompt "one", None without any."""
    if not engine.turn_to(number, category, others):
        return "nothing"
    engine.tell_apart(asking("one"))
    return texts(engine, [chat("one")])[0]


@pytest.mark.parametrize("by", ["name", "folder", "column"])
def test_a_category_gets_its_own_recordings(by, tmp_path):
    """ "Race or Ethnicity" is the category of a file named by either word; "stage" names none."""
    said = {"religion": "5", "ethnicity": "6", "stage": "7"}
    for category, text in said.items():
        rows = [("one", text, category), ("one", text, category)]
        if by == "column":
            table(tmp_path / f"{len(category)}.csv", rows, ("prompt", "response", "category"))
            continue
        folder = tmp_path / category if by == "folder" else tmp_path
        folder.mkdir(exist_ok=True)
        table(folder / ("x.csv" if by == "folder" else f"{category}_x-0.csv"), rows[0:1],
              ("prompt", "response", "what"))  # fmt: skip
    engine = ReplayEngine(tmp_path, "m")
    assert spoken(engine, category="Religion") == "5"
    assert spoken(engine, category="Race or Ethnicity") == "6"
    for category in ("Age", ""):  # no recording says that it is of it
        with pytest.raises(EngineError, match="found two replies"):
            spoken(engine, category=category)


CATEGORIES = ("Age", "Gender", "Race or Ethnicity", "Nationality")


@pytest.mark.parametrize("by", ["name", "column"])
def test_a_category_without_recordings_borrows_none_of_another(by, tmp_path):
    """The file of the control of one category says it; another's file says nothing."""
    if by == "name":
        table(tmp_path / "Gender.csv", [("one", "5")])
        table(tmp_path / "ethnic2.csv", [("two", "6")])
    else:
        rows = [("one", "5", "Gender"), ("two", "6", "ethnic")]
        table(tmp_path / "a.csv", rows, ("prompt", "response", "category"))
    engine = ReplayEngine(tmp_path, "m")
    assert spoken(engine, 1, "Gender", CATEGORIES) == "5"
    assert engine.turn_to(1, "Race or Ethnicity", CATEGORIES)
    assert texts(engine, [chat("two"), chat("one")]) == ["6", None]


def test_a_folder_of_one_category_alone_answers_no_other(tmp_path):
    engine = ReplayEngine(table(tmp_path / "Gender.csv", [("one", "5")]), "m")
    said = {category: spoken(engine, 1, category, CATEGORIES) for category in CATEGORIES}
    assert said == dict.fromkeys(CATEGORIES, "nothing") | {"Gender": "5"}


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("GenderOrigin.csv", "Gender"), ("genders.csv", "Gender"), ("GENDER_x.csv", "Gender"),
        ("gpt4Nationality0.csv", "Nationality"), ("nationalities.csv", "Nationality"),
        ("EthnicitiesOrigin.csv", "Race or Ethnicity"), ("races.csv", "Race or Ethnicity"),
        ("GPTRace.csv", "Race or Ethnicity"), ("Ages.csv", "Age"),
    ],
)  # fmt: skip
def test_files_name_their_category_in_any_case_and_number(name, category, tmp_path):
    table(tmp_path / name, [("one", name)])
    table(tmp_path / "stagesTracedTrigger.csv", [("one", "of no category")])
    engine = ReplayEngine(tmp_path, "m")
    for other in CATEGORIES:
        expected = name if other == category else "of no category"
        assert spoken(engine, 1, other, CATEGORIES) == expected


def test_a_prompt_of_another_category_or_round_is_named(tmp_path):
    rows = [("one", "5", "Age", "2"), ("two", "6", "Race", "1")]
    columns = ("prompt", "response", "category", "run")
    file = table(tmp_path / "a.csv", rows, columns)
    engine = ReplayEngine(file, "m")
    assert spoken(engine, 2, "Race") == "nothing"
    with pytest.raises(EngineError, match=f"{file}, line 2 holds the first, of another round or"):
        spoken(engine, 1, "Race")
    assert spoken(engine, 2, "Age") == "5"


def numbered(folder, names, rows=(("one", ""),)):
    """Files of StereoMap whose answers are their names, with pandas's index."""
    for name in names:
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        told = [(question, answer or name) for question, answer in rows]
        columns = ["Questionnaire", "Answer"]
        pd.DataFrame(told, columns=columns).to_csv(file, index_label="")
    return ReplayEngine(folder, "m")


@pytest.mark.parametrize(
    "names",
    [
        ["gpt-3.5_0.csv", "gpt-3.5_1.csv", "gpt-3.5_2.csv"],
        ["run1.csv", "run2.csv", "run3.csv"],
        ["1/x.csv", "2/x.csv", "3/x.csv"],
        ["r 08.csv", "r 09.csv", "r 10.csv"],
        ["bard.csv", "davinci.csv"],
        ["gpt_0.csv", "gpt_2.csv"],
        ["v1.csv", "v3.csv"],
        ["davinci-002.csv", "davinci-003.csv"],
    ],
)
def test_files_that_count_are_runs_and_others_are_refused(names, tmp_path):
    engine = numbered(tmp_path, names)
    if len(names) == 2 or "08" in names[0]:
        no_gap = r"found two replies .* expected .*numbered by run from 0 or 1 without a gap"
        with pytest.raises(EngineError, match=no_gap):
            spoken(engine)
        return
    assert [spoken(engine, number) for number in (1, 2, 3, 4)] == [*names, "nothing"]


def test_ten_runs_are_counted_as_numbers(tmp_path):
    engine = numbered(tmp_path, [f"run{number}.csv" for number in range(1, 12)])
    assert spoken(engine, 2) == "run2.csv"
    assert spoken(engine, 11) == "run11.csv"


def test_parts_that_count_are_no_runs(tmp_path):
    """Without a prompt in common they are of one round; parts and runs may both count."""
    numbered(tmp_path, ["part1_run1.csv", "part1_run2.csv"])
    engine = numbered(tmp_path, ["part2_run1.csv", "part2_run2.csv"], [("two", "")])
    for number in (1, 2):
        assert engine.turn_to(number)
        wanted = [f"part1_run{number}.csv", f"part2_run{number}.csv"]
        assert texts(engine, [chat("one"), chat("two")]) == wanted
    assert not engine.turn_to(3)


def test_the_index_of_pandas_is_no_system_turn(tmp_path):
    rows = [("one", "5"), ("two", "4")]
    for n, index in enumerate([True, False]):
        file = tmp_path / f"{n}.csv"
        pd.DataFrame(rows, columns=["Questionnaire", "Answer"]).to_csv(file, index=index)
        assert texts(ReplayEngine(file, "m"), [chat("one"), chat("two")]) == ["5", "4"]


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
        ("a.tsv", GOOD + 's\t"u\nu"\tr\ns\tv\n', "a.tsv, line 4: found 2 fields, expected 3"),
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
        ("a.json", '{"1": {"prompt": "p",}}', "a.json, line 1, column .* found what is not JSON"),
        ("a.json", '[{"prompt": "p"}]', "a.json: found a list, expected an object"),
        ("a.json", '{"k": "text"}', "a.json, key 'k': found 'text', expected an item with prompt"),
        ("a.json", '{"k": {"answer": "A"}}', "a.json, key 'k': found {'answer': 'A'}, expected"),
        ("a.json", '{"k": {"prompt": "p", "answer": 4}}', "found answer 4, expected a text"),
        ("a.json", '{"k": {"prompt": "p"}}', "holds no recording"),
        ("a.txt", "85", "a.txt holds no recordings; expected a .tsv, .csv, .json or .eval"),
        (".a.csv", "prompt,response\n", "holds no recordings; expected"),
    ],
)
def test_a_file_that_is_not_what_its_name_says(tmp_path, name, content, sentence):
    """More of what a table can be is in test_tables.py."""
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises((EngineError, InputError), match=sentence) as raised:
        ReplayEngine(file, "m")
    assert "\n" not in str(raised.value)


def test_a_pattern_chooses_among_the_files_of_a_folder(tmp_path):
    for name in ("GPT-4-ID", "GPT-4-COT", "Qwen-ID"):
        table(tmp_path / f"{name}.csv", [(name[-2:], name)])
    engine = ReplayEngine(tmp_path / "GPT-4-*", "m")
    assert texts(engine, [chat("ID"), chat("OT")]) == ["GPT-4-ID", "GPT-4-COT"]
    with pytest.raises(EngineError, match="holds no recordings; expected"):
        ReplayEngine(tmp_path / "Llama-*", "m")


def test_released_results_answer_the_released_prompts(tmp_path):
    """Three prompt files and a model's results for each, as GIEBench releases them."""
    items = questions.load_questions()[:5]
    for prompt in questions.templates()["prompts"]:
        asked = {}
        for item in items:
            text = questions.messages(item, prompt)[0]["content"]
            about = {"correct": item.correct, "category": item.category}
            asked[item.key] = {"prompt": text, **about}
        (tmp_path / f"{prompt}-Prompt.json").write_text(json.dumps(asked), "utf8")
        said = {key: one | {"answer": f"{prompt} {key}: [[A]]"} for key, one in asked.items()}
        (tmp_path / "results").mkdir(exist_ok=True)
        (tmp_path / "results" / f"M-{prompt}-Prompt.json").write_text(json.dumps(said), "utf8")
    engine = ReplayEngine(tmp_path / "results", "m")
    for prompt in questions.templates()["prompts"]:
        plan = giebench_trials(questions.load_questions(tmp_path), prompt)
        replies = engine.answer([trial.messages for trial in plan], SAMPLING)
        assert [reply.text for reply in replies] == [f"{prompt} {i.key}: [[A]]" for i in items]


def test_recordings_are_not_asked_over_choices(tmp_path):
    engine = ReplayEngine(table(tmp_path / "a.csv", [("u", "1")]), "m")
    assert engine.asks_again is False
    with pytest.raises(EngineError, match=r"a\.csv are texts without the probabilities") as error:
        engine.answer([chat("u")], Sampling(choices=("1", "2")))
    assert "\n" not in str(error.value)


def test_what_cannot_start_says_so(tmp_path):
    for place in (tmp_path / "nothing", tmp_path / "nothing.tsv", tmp_path):
        with pytest.raises(EngineError, match="holds no recordings; expected"):
            ReplayEngine(place, "m")


def test_the_identity_is_the_content_and_not_the_place(tmp_path):
    rows = [("s", f"u{i}", str(i)) for i in range(20)]
    here, there = (released(rows, tmp_path / name, 10) for name in ("here", "there"))
    identity = ReplayEngine(here, "org/model").identity()
    assert identity == ReplayEngine(there, "org/model").identity()
    assert str(tmp_path) not in json.dumps(identity)
    assert (identity["engine"], identity["model"]) == ("replay", "org/model")
    assert identity["files"] == "batch_000000.tsv, batch_000010.tsv"
    assert len(identity["revision"]) == 64
    released([*rows[:-1], ("s", "u19", "20")], there, 10)
    assert ReplayEngine(there, "org/model").identity() != identity


def test_a_recording_costs_bytes_and_no_text(tmp_path):
    number, padding = 5_000, "x" * 500
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
    assert texts(engine, [chat(f"{i} {padding}") for i in (0, 777, 4_999)]) == ["0", "70", "50"]
