"""The authors' own result files, replayed by their prompts."""

import json

import pytest

from ingroup.inference.answers import EngineError, Sampling
from ingroup.inference.replay_engine import from_files, logged
from ingroup.tables import InputError


def chat(user, system=""):
    """Make a chat of a user turn and perhaps a system turn."""
    turns = [{"role": "user", "content": user}]
    return [{"role": "system", "content": system}, *turns] if system else turns


def replayed(folder, *chats, pattern="*", **labels):
    """Replay the files of a folder."""
    engine = from_files(f"{folder}/{pattern}", "paper-model", labels)
    return engine.answer(chats, Sampling())


def test_each_paper_writes_other_columns(tmp_path):
    (tmp_path / "a.tsv").write_text("system_prompt\tuser_input\tresponse\nYou are Ada.\tHi\t7\n")
    (tmp_path / "b.csv").write_text("Questionnaire,Answer\nHello,8\n")
    giebench = {"0": {"prompt": "A or B?", "response": "[[A]]", "question": "which"}}
    (tmp_path / "c.json").write_text(json.dumps(giebench))
    made = replayed(tmp_path, chat("Hi", "You are Ada."), chat("Hello"), chat("A or B?"))
    assert [reply.text for reply in made] == ["7", "8", "[[A]]"]


def test_prompts_without_an_answer_fail_and_are_not_invented(tmp_path):
    (tmp_path / "a.csv").write_text("prompt,answer\nHi,7\n")
    made = replayed(tmp_path, chat("Hi"), chat("Ho"))
    assert [reply.finish_reason for reply in made] == ["stop", "failed"]
    assert made[1].error == "its prompt is not recorded"


def test_different_replies_to_a_prompt_are_rounds(tmp_path):
    (tmp_path / "a.csv").write_text("prompt,answer\nHi,7\nHo,1\nHi,8\n")
    (tmp_path / "b.csv").write_text("prompt,answer\nHi,9\n")
    rounds = [replayed(tmp_path, chat("Hi"), round=number)[0].text for number in (1, 2, 3)]
    assert rounds == ["7", "8", "9"]
    assert replayed(tmp_path, chat("Hi"))[0].text == "7"
    (fourth,) = replayed(tmp_path, chat("Hi"), round=4)
    assert fourth.error == "its prompt is not recorded"


def test_a_column_says_the_round(tmp_path):
    (tmp_path / "a.csv").write_text("run,prompt,answer\n2,Hi,8\n1,Hi,7\n")
    assert [replayed(tmp_path, chat("Hi"), round=n)[0].text for n in (1, 2)] == ["7", "8"]
    (tmp_path / "a.csv").write_text("run,prompt,answer\n1,Hi,8\n1,Hi,7\n")
    with pytest.raises(EngineError, match="2 different answers to the same prompts in one round"):
        replayed(tmp_path, chat("Hi"))


def test_labels_choose_files_and_rows(tmp_path):
    (tmp_path / "Religion_a.csv").write_text("prompt,answer\nHi,7\n")
    (tmp_path / "Gender_a.csv").write_text("prompt,answer\nHi,1\n")
    made = replayed(tmp_path, chat("Hi"), pattern="{category}_*.csv", category="Gender")
    assert made[0].text == "1"
    (tmp_path / "all.tsv").write_text("category\tprompt\tanswer\nA\tHi\t3\nB\tHi\t4\n")
    assert replayed(tmp_path, chat("Hi"), pattern="all.tsv", category="B")[0].text == "4"


def test_files_that_cannot_be_replayed_are_named(tmp_path):
    with pytest.raises(EngineError, match="found no file"):
        replayed(tmp_path, chat("Hi"))
    with pytest.raises(InputError, match="found no logs of inspect_ai"):
        logged(str(tmp_path), ["gpt-5"])
    (tmp_path / "a.csv").write_text("text,score\nHi,7\n")
    with pytest.raises(
        EngineError, match="found the columns text, score, expected user_input and response"
    ):
        replayed(tmp_path, chat("Hi"))


def test_texts_have_no_scores(tmp_path):
    (tmp_path / "a.csv").write_text("prompt,answer\nHi,7\n")
    engine = from_files(str(tmp_path / "a.csv"), "paper-model", {})
    with pytest.raises(EngineError, match="use READING=free"):
        engine.answer([chat("Hi")], Sampling(choices=("1", "2")))
