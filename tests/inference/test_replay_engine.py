"""Recorded answers: every layout back as it was written, and nothing invented."""

import json
import tracemalloc
from itertools import islice

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import settings as rules
from hypothesis import strategies as st

from ingroup.inference import EngineError, Reply, Sampling, StoreError, open_store
from ingroup.inference.replay_engine import ReplayEngine
from ingroup.studies.empathy_gap.design import trials as empathy_gap_trials
from ingroup.studies.empathy_gap.stimuli import load_events
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


def numbered(name):
    """No two replies are the same."""
    return Toy(lambda chat, before, asked: f"{name} {asked + 1}")


def turns(*texts):
    """A prompt gets one text after the other."""
    return Toy(lambda chat, before, asked: texts[before % len(texts)])


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
    engine = ReplayEngine(file, "gpt-4-turbo")
    assert texts(engine, [chat(f"Question {i}") for i in range(15)]) == QUIRKS
    assert texts(engine, [chat("Question 99")]) == [None]
    assert texts(engine, [chat("Question 100")]) == ["[[A]] ?"]  # a shard can hold this


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"))


@rules(max_examples=20, deadline=None)
@given(st.lists(st.tuples(TEXT, TEXT, TEXT)))
@example([("You are a person.\n", '"It was \tbad"\n', text) for text in QUIRKS])
def test_whatever_pandas_writes_is_read_back(tmp_path_factory, rows):
    rows = [(f"s{i} {row[0]}", *row[1:]) for i, row in enumerate([*rows, ("s", "u", "t")])]
    engine = ReplayEngine(released(rows, tmp_path_factory.mktemp("any"), 2), "m")
    assert texts(engine, [chat(user, system) for system, user, _ in rows]) == [r[2] for r in rows]


def test_a_store_is_replayed_with_its_ends_and_its_holes(plan, tmp_path):
    failing = Toy(lambda *of: None if (of[2] + 1) % 75 == 0 else answers(*of))
    original = run(plan, tmp_path / "original", failing, 64)
    (tmp_path / "original" / "part-00002.parquet").unlink()
    engine = ReplayEngine(tmp_path / "original", designs=[plan])
    replayed = run(plan, tmp_path / "replayed", engine, shard_size=100)
    hole = (original.finish_reason == "failed") | original.trial.between(128, 191)
    assert hole.sum() == 64 + 4
    for column in ("text", "finish_reason"):
        assert replayed[column][~hole].tolist() == original[column][~hole].tolist()
    assert "length" in set(original.finish_reason)
    assert (replayed.text[hole].isna() & (replayed.finish_reason[hole] == "failed")).all()
    assert set(replayed.error[hole]) == {"no recording"}
    assert engine.identity()["model"] == "toy"


def test_a_damaged_shard_is_found(plan, tmp_path):
    run(plan, tmp_path, Toy(answers), 500)
    shard = tmp_path / "part-00000.parquet"
    whole = shard.read_bytes()
    for damaged in (whole[:-20], b"", whole[:400] + bytes([whole[400] ^ 16]) + whole[401:]):
        shard.write_bytes(damaged)
        with pytest.raises(StoreError, match=r"part-00000\.parquet is damaged; ask its trials"):
            ReplayEngine(tmp_path, designs=[plan])


def test_a_prompt_of_two_trials_keeps_both_answers_of_a_store(tmp_path):
    # "a person" rates "a person" in every category, and two narratives are the same.
    events = load_events("sample", 4)
    events.loc[3, ["emotion", "generated_text"]] = events.loc[2, ["emotion", "generated_text"]]
    plan = empathy_gap_trials(events, ["P0,S0,T0"], ["Race or Ethnicity", "Religion"])

    original = run(plan, tmp_path / "original", numbered("n"), 500)
    replayed = run(plan, tmp_path / "new", ReplayEngine(tmp_path / "original", designs=[plan]), 500)
    assert replayed.text.tolist() == original.text.tolist()
    # A run that goes on in the middle is not put off by what was asked before it.
    (tmp_path / "new" / "part-00001.parquet").unlink()
    engine = ReplayEngine(tmp_path / "original", designs=[plan])
    assert run(plan, tmp_path / "new", engine, 500).text.tolist() == original.text.tolist()


def test_a_store_of_something_else_is_refused(plan, tmp_path):
    run(plan, tmp_path / "store", Toy(answers), 64)
    other = religion(13)
    here, there = plan.fingerprint[:16], other.fingerprint[:16]
    for arguments, sentence in [
        ({}, "is a store; its design is needed"),
        ({"designs": [other]}, rf"to prompts {here} \(432 trials\), expected {there} \(468 trials"),
        ({"designs": [plan], "model": "other"}, "holds answers of 'toy', not of 'other'"),
    ]:
        with pytest.raises(EngineError, match=sentence):
            ReplayEngine(tmp_path / "store", **arguments)
    for broken in ("[1]", "{", "[" * 100_000):
        (tmp_path / "store" / "manifest.json").write_text(broken)
        with pytest.raises(StoreError, match=r"manifest\.json cannot be read as JSON"):
            ReplayEngine(tmp_path / "store", designs=[plan])
    for other in ('{"prompts": []}', '{"model": {}}'):
        (tmp_path / "store" / "manifest.json").write_text(other)
        with pytest.raises(EngineError, match=r"\(None trials\), expected"):
            ReplayEngine(tmp_path / "store", designs=[plan])


# Several stores below one folder


def two_settings():
    """Two designs without a common prompt; in each, "a person" rates "a person" twice."""
    events = load_events("sample", 3)
    categories = ["Race or Ethnicity", "Religion"]
    return [empathy_gap_trials(events, [name], categories) for name in ("P0,S0,T0", "P0,S1,T0")]


@pytest.mark.parametrize("turned", [False, True])
def test_every_store_of_a_folder_answers_its_own_design(turned, tmp_path):
    first, second = two_settings()
    other = religion(2)
    originals = [
        run(plan, tmp_path / "all" / "toy" / name, numbered(name), 100)
        for plan, name in ((first, "b"), (second, "a"))
    ]
    run(other, tmp_path / "all" / "other" / "c", numbered("c"))
    (tmp_path / "all" / "notes.csv").write_text("no table of recordings")
    engine = ReplayEngine(tmp_path / "all", designs=[first, second])
    pairs = list(zip((first, second), originals, "xy", strict=True))
    for plan, original, name in pairs[::-1] if turned else pairs:
        replayed = run(plan, tmp_path / name, engine, 77)
        assert replayed.text.tolist() == original.text.tolist()
    alone = ReplayEngine(tmp_path / "all", designs=[second])
    assert alone.identity() != engine.identity()


def once_and_twice():
    """A design of 72 prompts, and one that has each of them twice."""
    events = load_events("sample", 2)
    doubled = pd.concat([events, events], ignore_index=True)
    return [empathy_gap_trials(table, ["P0,S0,T0"], ["Religion"]) for table in (events, doubled)]


def test_stores_may_share_prompts_and_must_not_differ_in_them(tmp_path):
    once, twice = once_and_twice()
    run(twice, tmp_path / "all" / "a", turns("50"))
    run(once, tmp_path / "all" / "b", turns("50"))
    engine = ReplayEngine(tmp_path / "all", designs=[once, twice])
    assert run(once, tmp_path / "new", engine).text.tolist() == ["50"] * 72
    run(once, tmp_path / "all" / "c", numbered("c"))
    sentence = (
        r"c/part-00000\.parquet, trial 0: found the response 'c 1' to the prompt that .*[ab]/part-"
        r"00000\.parquet, trial 0 answers with '50', expected one response a prompt of all stores"
    )
    for designs in ([once, twice], [once]):
        with pytest.raises(EngineError, match=sentence):
            ReplayEngine(tmp_path / "all", designs=designs)


def test_whose_reply_comes_first_must_not_matter(tmp_path):
    """One store answers with 1 and then 2, the next with 2: what would the first asking get?"""
    once, twice = once_and_twice()
    run(twice, tmp_path / "a", turns("1", "2"))
    ReplayEngine(tmp_path, designs=[once, twice])
    run(once, tmp_path / "b", turns("2"))
    with pytest.raises(EngineError, match="expected one response a prompt of all stores"):
        ReplayEngine(tmp_path, designs=[once, twice])


def test_stores_of_two_models_are_not_mixed(tmp_path):
    first, second = two_settings()
    run(first, tmp_path / "a", Toy(answers))
    run(second, tmp_path / "b", Toy(answers, model="another"))
    with pytest.raises(EngineError, match=r"b holds answers of 'another', not of 'toy'"):
        ReplayEngine(tmp_path, designs=[first, second])
    with pytest.raises(EngineError, match=r"a holds answers of 'toy', not of 'another'"):
        ReplayEngine(tmp_path, "another", designs=[first, second])
    assert ReplayEngine(tmp_path, "another", designs=[second]).model == "another"


def test_a_trial_that_was_asked_again_keeps_its_place(tmp_path):
    """Of two trials with one prompt the first had failed: its answer still comes first."""
    _, twice = once_and_twice()
    engine = turns(None, "2")
    failed = np.flatnonzero(run(twice, tmp_path, engine, 500).text.isna()).tolist()
    assert len(failed) == 72
    open_store(tmp_path, twice, engine, SAMPLING, 500).write_again(
        failed, [Reply("1", "stop")] * 72
    )
    engine = ReplayEngine(tmp_path, designs=[twice])
    expected = ["1" if trial in failed else "2" for trial in range(144)]
    assert texts(engine, [trial.messages for trial in twice]) == expected


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


def test_one_prompt_with_two_responses_gets_them_in_order(tmp_path):
    rows = [("s", "u", "1"), ("s", "two\nlines", "2"), ("s", "v", "3"), ("s", "u", "1")]
    rows += [("s", "w", "4"), ("s", "v", "5"), ("s", "two\nlines", "6")]
    engine = ReplayEngine(released(rows, tmp_path / "out", 3), "m")
    asked = [chat(user, "s") for user in ("two\nlines", "v", "u", "v", "two\nlines", "v")]
    assert texts(engine, asked) == ["2", "3", "1", "5", "6", "3"]


GOOD = "system_prompt\tuser_input\tresponse\n"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.tsv", "system_prompt\tresponse\n", "a.tsv, line 1, column 'user_input': found only"),
        ("a.tsv", GOOD, "a.tsv, line 2: found the end of the file, expected a row"),
        ("a.tsv", GOOD + 's\t"u\nu"\tr\ns\tv\n', "a.tsv, line 4: found 2 fields, expected 3"),
        ("a.tsv", GOOD.encode() + b"s\tu\tr\ns\tu\t\xff\n", "a.tsv, line 3: found a byte that is"),
        ("a.csv", "prompt;response\nu;r\n", "a.csv, line 1, column 'prompt': found only prompt;re"),
        ("a.json", '{"1": {"prompt": "p",}}', "a.json, line 1, column .* found what is not JSON"),
        ("a.json", '[{"prompt": "p"}]', "a.json: found a list, expected an object"),
        ("a.json", '{"k": "text"}', "a.json, key 'k': found 'text', expected an item with prompt"),
        ("a.json", '{"k": {"answer": "A"}}', "a.json, key 'k': found {'answer': 'A'}, expected"),
        ("a.json", '{"k": {"prompt": "p", "answer": 4}}', "found answer 4, expected a text"),
        ("a.json", '{"k": {"prompt": "p"}}', "holds no recording"),
        ("a.txt", "85", "there are no recordings at .*a.txt; expected a .tsv, .csv or .json"),
        (".a.csv", "prompt,response\n", "there are no recordings at"),
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
    with pytest.raises(EngineError, match="there are no recordings at"):
        ReplayEngine(tmp_path / "Llama-*", "m")


def test_released_results_answer_the_released_prompts(tmp_path):
    """Three prompt files and a model's results for each, as GIEBench releases them."""
    items = questions.load_questions()[:5]
    for prompt in questions.prompts():
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
    for prompt in questions.prompts():
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
        with pytest.raises(EngineError, match="there are no recordings at"):
            ReplayEngine(place, "m")
    file = table(tmp_path / "a.csv", [("u", "1")])
    with pytest.raises(EngineError, match=r"the model that gave the answers .* has to be named"):
        ReplayEngine(file)


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
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert size / number < 60
    assert texts(engine, [chat(f"{i} {padding}") for i in (0, 777, 4_999)]) == ["0", "70", "50"]
