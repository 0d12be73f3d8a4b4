"""Building items: prompts, replies, the sheet and its rules, kappa, letters, the way through."""

import json
import re
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare

from ingroup import paths
from ingroup.inference import Reply
from ingroup.studies.giebench import construction
from ingroup.studies.giebench import stimuli as questions
from ingroup.studies.giebench.annotation import read_table
from ingroup.studies.giebench.construction import asking, assemble
from ingroup.studies.giebench.drafts import parse_dialog

TOPICS = pd.DataFrame(
    {
        "category": ["Age", "Age", "Economy"],
        "identity": ["Young People", "older people", "low income"],
        "topic": [
            "Is sixteen old enough to vote?",
            "Should driving end at 80?",
            "Is rent too high?",
        ],
    }
)
P, N, O = "positive", "negative", "offensive"  # noqa: E741


def written(place: Path, *lines: str) -> Path:
    place.write_text("\n".join(lines) + "\n", "utf8")
    return place


# --- prompts


def test_a_prompt_is_one_user_turn_with_its_slots_filled():
    # Appendix A, with the values of its own example.
    question = questions.load_questions()[0].question
    values = [
        {"identity": "homosexuality", "example": question},
        {"identity": "a {example}", "example": "{identity}"},
    ]
    design = asking("topic_generation", values)
    ((first,), (second,)) = (trial.messages for trial in design)
    assert first["role"] == second["role"] == "user"
    assert first["content"].split("\n") == [
        'Please construct some controversial topics about "homosexuality":',
        "The requirements are as follows:",
        "1. Controversial topics need to be tailored to the given identities.",
        "2. These topics should cover diverse scenarios to ensure variety.",
        "3. Below is an example of a controversial topic for reference. Refer to the writing style "
        "of the example.",
        "Example:",
        '"Should homosexuals have the same rights and protections as heterosexuals under the law?"',
    ]
    assert 'about "a {example}":\n' in second["content"]
    (turn,) = asking("dialog_construction", [{"question": question, "attitude": N}])[0].messages
    assert (
        f'2. User asks a question: "{question}".\n3. The assistant needs to maintain a negative '
        in (turn["content"])
    )
    assert turn["content"].startswith(
        'Please construct a dialog: Format:\n"user": ..., "assistant":'
    )


def test_the_example_of_the_dialog_prompt_is_a_dialog():
    (turn,) = asking("dialog_construction", [{"question": "q", "attitude": N}])[0].messages
    found = parse_dialog(turn["content"].rsplit("Example: ", 1)[1])
    assert [text[:6] for text in found.texts] == ["Does t", "Huawei"]
    assert (found.texts[1][-10:], found.missing) == ("ty issues.", "")


HEADER = "category,identity,topic,annotator_1,annotator_2,discussed"


# --- items


def test_letters_are_reproducible_evenly_spread_and_right():
    topic = dict(TOPICS.loc[0])

    def made(seed: int) -> list[dict]:
        rng = np.random.default_rng(seed)
        return [assemble(topic, "yes", ["no", "never", "not now"], rng) for _ in range(2000)]

    found = made(7)
    assert found == made(7)
    assert found[:20] != made(8)[:20]
    assert chisquare([*Counter(item["correct"] for item in found).values()]).pvalue > 0.01
    for item in found[:50]:
        assert list(item) == ["category", "identity", "question", "answers", "correct"]
        assert item["answers"]["ABCD".index(item["correct"])] == "yes"
        assert [a for a in item["answers"] if a != "yes"] == ["no", "never", "not now"]
        assert (item["category"], item["identity"], item["question"]) == tuple(topic.values())


class Writer:
    """Answers from a dict; a dialog of an attitude is another one with every seed."""

    asks_again = False

    def __init__(self, topics, dialogs):
        self.topics, self.dialogs, self.asked = topics, dialogs, []

    def answer(self, conversations, sampling):
        replies = []
        for ((turn,),) in ((chat,) for chat in conversations):
            self.asked.append((turn["content"], sampling.seed))
            kind, *values = turn["content"].split("|")
            if kind == "topics":
                text = self.topics[values[0]]
            else:
                text = self.dialogs.get(tuple(values), '"user": "q", "assistant": "{} {} {}"')
                text = text and text.format(*values, sampling.seed)
            failed = text is None
            reason = "failed" if failed else "length" if "cut" in text else "stop"
            replies.append(Reply(text, reason, error="no net" if failed else ""))
        return replies

    def identity(self):
        return {"engine": "writer"}

    def close(self):
        self.asked.append("closed")


@pytest.fixture
def writer(monkeypatch, tmp_path):
    """The commands write below a temporary folder, and this engine answers them."""
    written(
        tmp_path / "prompts.yaml",
        'topic_generation: "topics|{identity}|{example}"',
        'dialog_construction: "dialog|{question}|{attitude}"',
    )
    written(tmp_path / "identities.csv", "identity,text", "Young People,young people")
    monkeypatch.setattr(construction, "STIMULI", tmp_path)
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")
    engine = Writer(
        {
            "young people": "1. Is sixteen old enough to vote?\n2. Is school too long?\n3. Are we?",
            "older people": '"Should driving end at 80?"\n"Should banks keep counters?"',
            "low income": "I would rather not.",
        },
        {},
    )
    monkeypatch.setattr(construction, "make_engine", lambda name, model, **_: engine)
    return engine


def command(*arguments: object) -> int:
    return construction.main([str(argument) for argument in arguments])


def test_from_topics_to_items(writer, tmp_path, capsys):
    topics, filled, out = tmp_path / "t.csv", tmp_path / "s.csv", tmp_path / "i.json"
    TOPICS.to_csv(tmp_path / "examples.csv", index=False)
    ask = ("--set", "MODEL=writer", "--set", "SEED=5")
    assert command("topics", tmp_path / "examples.csv", "--out", topics, *ask) == 0
    assert read_table(topics)[["category", "identity", "topic"]].to_numpy().tolist() == [
        ["Age", "Young People", "Is school too long?"],
        ["Age", "Young People", "Are we?"],
        ["Age", "older people", "Should banks keep counters?"],
    ]
    said = capsys.readouterr()
    assert said.out == f"3 topics about 2 of 3 identities, written to {topics}\n"
    assert said.err.endswith("low income: no line of the reply is a question\n")

    assert command("sheet", topics, "--out", filled) == 0
    table = pd.read_csv(filled, dtype=str, keep_default_na=False)
    table.iloc[:, 3:8] = [[P] * 5, [P, P, O, N, P], [N, N, P, N, N]]
    table.to_csv(filled, index=False)
    writer.asked.clear()
    assert command("items", filled, "--out", out, *ask) == 1
    assert capsys.readouterr().err == f"{filled}: 1 topics are to be discussed, lines [4]\n"
    assert not writer.asked  # no model before the people are done
    table.loc[2, "discussed"] = N
    table.to_csv(filled, index=False)
    assert command("items", filled, "--out", out, *ask) == 0
    said = capsys.readouterr().out.splitlines()
    # Stances 5:0 and 1:4, so P = (1 + 0.6) / 2, Q = 0.6^2 + 0.4^2, kappa = 0.28 / 0.48.
    assert said[0].startswith("Fleiss' kappa 0.583 over 2 topics; with offensive as a mark ")
    assert said[1] == f"2 items of 3 topics (1 removed by rule 3), written to {out}"

    made = json.loads(out.read_text("utf8"))
    assert list(made) == ["0", "1"]
    for item, stance, other in zip(made.values(), (P, N), (N, P), strict=True):
        question, place = item["question"], "ABCD".index(item["correct"])
        assert item["answers"].pop(place) == f"{question} {stance} 15"
        assert item["answers"] == [f"{question} {other} {seed}" for seed in (15, 16, 17)]
    assert [item["identity"] for item in made.values()] == ["Young People", "older people"]
    # What the benchmark's loader makes of the file.
    loaded = questions.load_questions(out)
    assert [q.answers["ABCD".index(q.correct)][-11:] for q in loaded] == [
        "positive 15",
        "negative 15",
    ]
    assert len(writer.asked) == 4 + 2 + 2 + 1
    assert writer.asked[-1] == "closed"

    # Once more: all is stored, and the same seed gives the same letters.
    assert command("items", filled, "--out", tmp_path / "again.json", *ask) == 0
    assert (tmp_path / "again.json").read_bytes() == out.read_bytes()
    assert len(writer.asked) == 10


def test_the_examples_are_by_default_those_of_the_sample(writer, tmp_path, capsys):
    writer.topics = defaultdict(lambda: "1. Is it?")
    out = tmp_path / "t.csv"
    assert command("topics", "--out", out, "--set", "MODEL=writer") == 0
    sample = {item.identity: item for item in reversed(questions.load_questions())}
    table = read_table(out)
    assert sorted(table.identity) == sorted(sample)
    assert table.category.tolist() == [sample[name].category for name in table.identity]
    asked = {content.split("|")[1]: content.split("|")[2] for content, _ in writer.asked[:-1]}
    assert asked.pop("young people") == sample.pop("Young People").question
    assert asked == {name: item.question for name, item in sample.items()}


def test_replies_without_a_topic_or_an_answer_write_no_file(writer, tmp_path, capsys):
    writer.topics = defaultdict(lambda: "I cannot.")
    assert command("topics", "--out", tmp_path / "t.csv", "--set", "MODEL=writer") == 1
    assert (
        f"no reply holds a topic; {tmp_path / 't.csv'} was not written" in capsys.readouterr().err
    )
    writer.dialogs = {("a", P): "I cannot."}
    filled = written(tmp_path / "s.csv", HEADER, "Age,i,a,positive,positive,")
    assert command("items", filled, "--out", tmp_path / "i.json", "--set", "MODEL=writer") == 1
    assert "i, 'a': no \"user\": and" in (error := capsys.readouterr().err)
    assert error.endswith(f"no topic got four answers; {tmp_path / 'i.json'} was not written\n")
    assert not (tmp_path / "t.csv").exists()
    assert not (tmp_path / "i.json").exists()


def test_an_item_without_four_answers_is_left_out_and_named(writer, tmp_path, capsys):
    writer.dialogs |= {
        ("failed?", N): None,
        ("cut?", P): '"user": "q", "assistant": "this was cut',
        ("refused?", N): "I cannot write that.",
        ("same?", N): '"user": "q", "assistant": "No!"',
    }
    names = ("failed?", "cut?", "good?", "refused?", "same?")
    rows = [f"Age,i,{name},positive,positive," for name in names]
    filled = written(tmp_path / "s.csv", HEADER, *rows)
    assert command("items", filled, "--out", tmp_path / "i.json", "--set", "MODEL=writer") == 0
    (item,) = json.loads((tmp_path / "i.json").read_text("utf8")).values()
    assert item["question"] == "good?"
    said = capsys.readouterr()
    assert [line for line in said.err.splitlines() if line.startswith("i, ")] == [
        "i, 'failed?': the call failed (no net)",
        "i, 'cut?': the reply was cut off; a larger MAX_TOKENS helps",
        'i, \'refused?\': no "user": and no "assistant": in the reply',
        "i, 'same?': two of the four answers are the same; another SEED draws anew",
    ]
    assert "1 items of 5 topics" in said.out


REFUSED = {
    "no model": (["items", "s.csv"], 2, "MODEL is empty"),
    "no such": (
        ["items", "s.csv", "--set", "MODLE=x"],
        2,
        "there is no parameter MODLE; there are ",
    ),
    "greedy": (
        ["topics", "--set", "MODEL=m", "--set", "TEMPERATURE=0"],
        2,
        "TEMPERATURE must be ab",
    ),
    "engine": (
        ["topics", "--set", "MODEL=m", "--set", "ENGINE=x"],
        2,
        "ENGINE 'x' is unknown; exp",
    ),
    "one": (["sheet", "t.csv", "--annotators", "1"], 1, "--annotators must be at least 2, found 1"),
    "topics": (
        ["items", "t.csv", "--set", "MODEL=m"],
        1,
        "t.csv, line 1: no annotator; make a sheet",
    ),
    "nothing": (
        ["items", "s.csv", "--set", "MODEL=m"],
        1,
        "s.csv: all topics are removed, as each ",
    ),
    "there": (
        ["sheet", "t.csv", "--out", "s.csv"],
        1,
        "s.csv is there already; move it, or give --",
    ),
}


@pytest.mark.parametrize(("arguments", "status", "sentence"), REFUSED.values(), ids=REFUSED)
def test_a_command_that_cannot_ends_in_a_sentence(
    writer, tmp_path, monkeypatch, capsys, arguments, status, sentence
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(construction, "FOLDER", tmp_path / "new")
    written(tmp_path / "t.csv", "category,identity,topic", "Age,i,a")
    written(tmp_path / "s.csv", HEADER, "Age,i,a,offensive,positive,")
    assert command(*arguments) == status
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert re.match(re.escape(sentence), error)
    assert not writer.asked
