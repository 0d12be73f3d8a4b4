"""Answers that the paper could have printed, counted as its code counts: nothing differs here."""

import random
from functools import partial
from itertools import combinations
from types import SimpleNamespace

import pandas as pd
import pytest

from cells import defined
from ingroup import audit, paths, published
from ingroup.inference import ask, call
from ingroup.studies.giebench import answers, design, printed, statistics, stimuli
from reprint import reprint
from toy import Toy

NUMBERS = printed.numbers_of
MODEL = "gpt-4-turbo"
PARAMETERS = {"MODELS": [MODEL], "ENGINE": "inspect", "READING": ""}
PARAMETERS |= {"ENDING": "turn", "QUESTIONS": "sample"}
PARAMETERS |= {"ORDER": "rotate", "MISMATCH": True, "TEMPERATURE": 0.9}
PARAMETERS |= {"TOP_P": 0.9, "MAX_TOKENS": 512, "REASONING": "", "SEED": 0}
PARAMETERS |= {"WORDING": "straight", "TEMPLATE": "chat"}
# What the released regular expression makes of a reply; several are no verdict by the sound rule.
SAID = {"I take [[{}]].": "{}", "[[{}]] or [[D]]": "{}", "[[E]]": "E", "None.": "", "[[a]]": ""}


def guesser(read):
    """Any of these replies; the letter that was read from it, by the prompt that was asked."""
    chance = random.Random(4)

    def say(chat, before, asked):
        text, letter = chance.choices(list(SAID.items()), (6, 2, 1, 1, 1))[0]
        guess = chance.choice("ABC")
        read[chat[0]["content"]] = letter.format(guess)
        return text.format(guess)

    return Toy(say, model=MODEL)


@pytest.fixture
def guessed(tmp_path, monkeypatch):
    """The answers, read by the released rule, by plan; and whether the authors' code counts one."""
    read = {}
    engine = guesser(read)
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")
    monkeypatch.setattr(call, "make_engine", lambda *_, **__: engine)
    asked = ask(design.calls(PARAMETERS), PARAMETERS)
    tables = {one.labels["plan"]: answers.load(one, "released") for one in asked}

    def right(item, prompt, identity=None):
        (turn,) = stimuli.messages(item, prompt, identity=identity)
        return read[turn["content"]] == item.correct

    return tables, right


ITEMS = stimuli.load_questions()
PROMPT = {1: "COT", 2: "ID", 6: "Raw", 4: "COT", 5: "ID"}  # of a table


def evaluated(right, prompt):
    """Percentages by category as the script of June 2024 counts: from [0, 1], then each item."""
    counts, total = {}, 0
    for item in ITEMS:
        count = counts.setdefault(item.category, [0, 1])
        count[1] += 1
        count[0] += right(item, prompt)
        total += right(item, prompt)
    counts["Overall"] = [total, len(ITEMS)]
    return {category: 100 * round(k / n, 3) for category, (k, n) in counts.items()}


def printed_as(right):
    """What every cell of the paper's tables would be, from its category or tuple."""
    shares = {prompt: evaluated(right, prompt) for prompt in ("COT", "ID", "Raw")}

    def share(prompt, row):
        return f"{shares[prompt][row['category']]:.1f}"

    def delta(prompt, row):
        return f"{shares[prompt][row['category']] - shares['Raw'][row['category']]:.1f}"

    def only(first, second, row):
        """Items right under one prompt alone."""
        inside = [i for i in ITEMS if row["category"] in (i.category, "Overall")]
        return str(sum(right(i, first) and not right(i, second) for i in inside))

    def tuple_share(row):
        sides = [stimuli._identity(row[side])[1] for side in ("identity_i", "identity_j")]
        prompt = "ID" if row["condition"].startswith("id") else "COT"
        if set(sides) == {"Male", "Female"} and row["condition"] == "no_mismatch":
            return f"{shares['COT']['Gender']:.1f}"  # as Table 1, where the paper has 66.2 twice
        other = dict(zip(sides, sides[::-1], strict=True))
        told = [
            right(i, prompt, None if row["condition"] == "no_mismatch" else other[i.identity])
            for i in ITEMS
            if i.identity in sides
        ]
        return f"{100 * sum(told) / len(told):.1f}" if told else "0.0"

    cells = {(table, "accuracy_pct"): partial(share, PROMPT[table]) for table in (1, 2, 6)}
    cells |= {(table, "accuracy_pct"): tuple_share for table in (3, 7)}
    for table in (4, 5):
        cells[table, "delta_pct"] = partial(delta, PROMPT[table])
        cells[table, "gained"] = partial(only, PROMPT[table], "Raw")
        cells[table, "lost"] = partial(only, "Raw", PROMPT[table])
    return cells


def beside(tables):
    once = pd.concat(tables[prompt] for prompt in design.PROMPTS).query("shift == 0")
    pairs = design.pairs_of(ITEMS)[["identity_i", "identity_j"]].to_numpy().tolist()
    told = [once[once.prompt != "Raw"], tables["COT mismatch"], tables["ID mismatch"]]
    swapped = statistics.mismatch(pd.concat(told), pairs)
    return published.beside("giebench", MODEL, NUMBERS(once, swapped))


def test_nothing_differs_from_what_the_same_answers_print(guessed, tmp_path, monkeypatch):
    tables, right = guessed
    cells = reprint(tmp_path / "print", monkeypatch, "giebench", MODEL, printed_as(right))
    table = beside(tables)
    assert len(table) == cells
    assert table.verdict.eq("agrees within rounding").all(), table[table.verdict == "differs"]
    assert table.table.unique().tolist() == [1, 2, 6, 4, 5, 3, 7]


def test_another_answer_differs(guessed, tmp_path, monkeypatch):
    """One more right answer under COT moves its category and Overall, and the tuples it is in."""
    tables, right = guessed
    reprint(tmp_path / "print", monkeypatch, "giebench", MODEL, printed_as(right))
    wrong = next(i for i in ITEMS if i.category == "Skin" and not right(i, "COT"))
    cot = tables["COT"]
    mended = cot.letter.mask(cot.key.eq(wrong.key) & cot["shift"].eq(0), wrong.correct)
    table = beside(tables | {"COT": cot.assign(letter=mended)})
    differ = table[table.verdict == "differs"]
    assert set(differ.table) == {1, 4, 7}
    assert set(differ[differ.table == 1].row) == {"Skin", "Overall"}
    tuples = [t for t in combinations(["Brown", "Light Brown", "Black", "White"], 2)
              if wrong.identity in t]  # fmt: skip
    assert len(differ[differ.table == 7]) == len(tuples) == 3


def test_figure_1_counts_all_questions_of_the_paper():
    """What each category has by its 69 printed accuracies, whose denominators are one too large."""
    denominators = [97, 82, 93, 68, 108, 101, 96, 104, 100, 100, 61]  # the audit finds them
    counted = defined(
        "30_giebench", "questions_of_the_paper", published=published, audit=audit, pd=pd,
        paths=paths, counts=pd.DataFrame({"items": [1]}, ["Age"]), stimuli=stimuli,
        out=SimpleNamespace(write=lambda table, *_, **__: table), display=print,
    )()  # fmt: skip
    by_category = counted[stimuli.categories()]
    assert by_category.tolist() == [n - 1 for n in denominators]
    assert round(100 * by_category["Gender"] / by_category.sum(), 2) == 6.71


def test_a_judge_of_one_letter_is_said_to_be_one():
    """Three of four say A under Raw, all under ID; A is right in one item of four."""
    said = pd.DataFrame(
        [(q, key, "ABCD"[key], "B" if (q, key) == ("Raw", 3) else "A")
         for q in ("Raw", "ID") for key in range(4)],
        columns=["prompt", "key", "correct", "letter"],
    )  # fmt: skip
    one_letter = defined("30_giebench", "one_letter", pd=pd)
    assert one_letter(said) == "A is 75 % under Raw, 100 % under ID; A is right in 25 %"
    assert one_letter(said.assign(letter="")) == "no verdicts"
