"""Answers that the paper could have printed, counted as its code counts: nothing differs here."""

import random
from collections import Counter
from functools import partial

import numpy as np
import pandas as pd
import pytest

from ingroup import paths, published
from ingroup.inference import ask, job
from ingroup.studies.giebench import answers, design, printed, statistics, stimuli
from reprint import reprint
from toy import Toy

NUMBERS = printed.numbers_of
MODEL = "gpt-4-turbo"
PARAMETERS = {
    "MODELS": [MODEL],
    "ENGINE": "inspect",
    "READING": "",
    "ENDING": "turn",
    "QUESTIONS": "sample",
    "ORDER": "rotate",
    "MISMATCH": True,
    "TEMPERATURE": 0.9,
    "TOP_P": 0.9,
    "MAX_TOKENS": 512,
    "REASONING": "",
    "SEED": 0,
    "WORDING": "straight",
    "TEMPLATE": "chat",
}
# What the released regular expression makes of a reply; several are no verdict by the sound rule.
LETTER_OF_REPLY = {
    "I take [[{}]].": "{}",
    "[[{}]] or [[D]]": "{}",
    "[[E]]": "E",
    "None.": "",
    "[[a]]": "",
}


def guesser(letter_of_prompt):
    """Any of these replies; the letter that was read from it, by the prompt that was asked."""
    chance = random.Random(4)
    replies = list(LETTER_OF_REPLY.items())

    def say(chat, before, asked):
        ((text, letter),) = chance.choices(replies, (6, 2, 1, 1, 1))
        guess = chance.choice("ABC")
        letter_of_prompt[chat[0]["content"]] = letter.format(guess)
        return text.format(guess)

    return Toy(say, model=MODEL)


@pytest.fixture
def guessed(tmp_path, monkeypatch):
    """The answers, read by the released rule, by plan; and whether the authors' code counts one."""
    letter_of_prompt = {}
    engine = guesser(letter_of_prompt)
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")
    monkeypatch.setattr(job, "make_engine", lambda *_, **__: engine)
    asked_jobs = ask(design.jobs(PARAMETERS), PARAMETERS)
    tables = {one_job.labels["plan"]: answers.load(one_job, "released") for one_job in asked_jobs}

    def is_right(item, prompt, identity=None):
        (turn,) = stimuli.messages(item, prompt, identity=identity)
        return letter_of_prompt[turn["content"]] == item.correct

    return tables, is_right


ITEMS = stimuli.load_questions()
PROMPT_OF_TABLE = {
    1: "COT",
    2: "ID",
    6: "Raw",
    4: "COT",
    5: "ID",
}


def evaluated(is_right, prompt):
    """Percentages by category as the script of June 2024 counts: from [0, 1], then each item."""
    n_right = Counter()
    n_items = Counter(stimuli.categories())
    for item in ITEMS:
        right = is_right(item, prompt)
        n_right[item.category] += right
        n_right["Overall"] += right
        n_items[item.category] += 1
        n_items["Overall"] += 1

    return {name: 100 * round(n_right[name] / n_items[name], 3) for name in n_items}


def swapped_share(is_right, row):
    """Percentage of the items of a tuple under one of the conditions of Tables 3 and 7."""
    first = stimuli._identity(row["identity_i"])[1]
    second = stimuli._identity(row["identity_j"])[1]
    other_of = {first: second, second: first}
    condition = row["condition"]
    prompt = "ID" if condition.startswith("id") else "COT"
    if set(other_of) == {"Male", "Female"} and condition == "no_mismatch":
        # As Table 1, where the paper has 66.2 twice.
        return f"{evaluated(is_right, 'COT')['Gender']:.1f}"

    rights = []
    for item in ITEMS:
        if item.identity in other_of:
            told_identity = None if condition == "no_mismatch" else other_of[item.identity]
            rights.append(is_right(item, prompt, told_identity))

    return f"{100 * sum(rights) / len(rights):.1f}" if rights else "0.0"


def printed_as(is_right):
    """What every cell of the paper's tables would be, from its category or tuple."""
    shares = {prompt: evaluated(is_right, prompt) for prompt in ("COT", "ID", "Raw")}

    def share(prompt, row):
        return f"{shares[prompt][row['category']]:.1f}"

    def delta(prompt, row):
        category = row["category"]
        return f"{shares[prompt][category] - shares['Raw'][category]:.1f}"

    def n_only_under(first, second, row):
        n = 0
        for item in ITEMS:
            if row["category"] in (item.category, "Overall"):
                n += is_right(item, first) and not is_right(item, second)
        return str(n)

    texts = {}
    for table in (1, 2, 6):
        texts[table, "accuracy_pct"] = partial(share, PROMPT_OF_TABLE[table])
    for table in (3, 7):
        texts[table, "accuracy_pct"] = partial(swapped_share, is_right)
    for table in (4, 5):
        prompt = PROMPT_OF_TABLE[table]
        texts[table, "delta_pct"] = partial(delta, prompt)
        texts[table, "gained"] = partial(n_only_under, prompt, "Raw")
        texts[table, "lost"] = partial(n_only_under, "Raw", prompt)

    return texts


def beside(tables):
    """The printed tables beside what the library computes."""
    all_orders = pd.concat([tables[prompt] for prompt in design.PROMPTS])
    once = all_orders[all_orders["shift"] == 0]
    with_identity = once[once.prompt != "Raw"]
    swapped = [with_identity, tables["COT mismatch"], tables["ID mismatch"]]

    pairs = design.pairs_of(ITEMS)[["identity_i", "identity_j"]].to_numpy().tolist()
    mismatch = statistics.mismatch(pd.concat(swapped), pairs)
    return published.beside("giebench", MODEL, NUMBERS(once, mismatch))


def test_nothing_differs_from_what_the_same_answers_print(guessed, tmp_path, monkeypatch):
    tables, is_right = guessed
    texts = printed_as(is_right)
    n_cells = reprint(tmp_path / "print", monkeypatch, "giebench", MODEL, texts)

    table = beside(tables)

    assert len(table) == n_cells
    assert table.verdict.eq("agrees within rounding").all(), table[table.verdict == "differs"]
    assert table.table.unique().tolist() == [1, 2, 6, 4, 5, 3, 7]


def test_prompts_that_were_not_asked_leave_their_tables_out(guessed):
    tables, _ = guessed
    without_raw = pd.concat([tables["ID"], tables["COT"]])
    numbers = NUMBERS(without_raw[without_raw["shift"] == 0])
    assert [table for table, _, _ in numbers] == [1, 2]


def test_another_answer_differs(guessed, tmp_path, monkeypatch):
    """One more right answer under COT moves its category and Overall, and the tuples it is in."""
    tables, is_right = guessed
    reprint(tmp_path / "print", monkeypatch, "giebench", MODEL, printed_as(is_right))
    of_skin = [item for item in ITEMS if item.category == "Skin"]
    wrong = next(item for item in of_skin if not is_right(item, "COT"))
    cot = tables["COT"]
    is_wrong = cot.key.eq(wrong.key) & cot["shift"].eq(0)
    corrected = cot.assign(letter=cot.letter.mask(is_wrong, wrong.correct))

    table = beside(tables | {"COT": corrected})

    differing = table[table.verdict == "differs"]
    assert set(differing.table) == {1, 4, 7}
    assert set(differing[differing.table == 1].row) == {"Skin", "Overall"}

    other_colours = {"Brown", "Light Brown", "Black", "White"} - {wrong.identity}
    n_tuples = (differing.table == 7).sum()
    assert n_tuples == len(other_colours) == 3


def test_figure_1_counts_all_questions_of_the_paper():
    """What each category has by its 69 printed accuracies, whose denominators are one too large."""
    denominators = [97, 82, 93, 68, 108, 101, 96, 104, 100, 100, 61]  # the audit finds them

    counts = printed.questions_by_category()[stimuli.categories()]

    assert counts.tolist() == [n - 1 for n in denominators]
    percent_of_gender = 100 * counts["Gender"] / counts.sum()
    assert round(percent_of_gender, 2) == 6.71


# Two models under two prompts; the index is as `statistics.by_model` makes it.
TWO_MODELS = pd.DataFrame(
    {
        "prompt": ["ID", "ID", "COT", "COT", "COT"],
        "category": ["Overall", "Age", "Age", "Overall", "Overall"],
        "change": [1.26, -16.667, 0.0, 2.0, 3.0],
        "gained": [2, 0, 0, 1, 1],
        "lost": [1, 1, 0, 0, 0],
        "low": [-1.04, 0.0, 0.0, 0.0, 0.0],
        "high": 4.0,
        "p": [0.123456, 1.0, 1.0, 4.2e-51, 0.5],
        "p_least": 2.0**-70,
        "p_holm": [0.246912, 1.0, 1.0, 0.0, 0.5],
        "p_holm_least": 0.0,
    },
    index=pd.Index(["z", "z", "z", "z", "a"], name="model"),
)


def test_a_table_is_laid_out_as_printed():
    """COT first, models as they come, and categories in the paper's order."""
    cells = printed.by_category(TWO_MODELS, "gained")

    assert cells.index.tolist() == [("COT", "z"), ("COT", "a"), ("ID", "z")]
    assert cells.columns.tolist() == [*stimuli.categories(), "Overall"]
    assert cells["Overall"].tolist() == [1, 1, 2]
    assert cells.loc[("ID", "z"), "Age"] == 0
    assert np.isnan(cells.loc[("COT", "a"), "Age"])


def test_a_change_is_written_with_what_was_gained_and_lost():
    cells = printed.changes_by_category(TWO_MODELS)

    assert cells.loc[("ID", "z"), "Overall"] == "+1.3 (+2/-1)"
    assert cells.loc[("ID", "z"), "Age"] == "-16.7 (+0/-1)"


def test_a_tiny_p_keeps_its_digits():
    rows = printed.tests(TWO_MODELS)

    assert rows.index.tolist()[:2] == [("z", "ID"), ("z", "ID")]
    assert rows.p.tolist() == ["0.12", "1", "1", "4.2e-51", "0.5"]
    assert set(rows.p_least) == {"8.5e-22"}
    assert rows.p_holm.tolist() == [0.247, 1, 1, 0, 0.5]
    assert rows.change.tolist() == [1.3, -16.7, 0, 2, 3]


def test_models_stand_side_by_side_after_a_mismatch():
    conditions = ["cot_prompt_mismatch", "id_prompt_mismatch", "no_mismatch", "no_mismatch_id"]
    table = pd.DataFrame([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]], columns=conditions)
    table = table.assign(identity_i="Male", identity_j="Female", n=6, cot_p=0.5)
    table.index = pd.Index(["z", "a"], name="model")

    wide = printed.mismatch_by_model(table)

    assert wide.index.tolist() == [("Male", "Female", 6)]
    expected = [(model, condition) for model in ("z", "a") for condition in conditions]
    assert wide.columns.tolist() == expected
    assert wide.iloc[0].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_printed_model_has_its_printed_accuracy_beside_it():
    table_1 = published.load("giebench", 1)
    of_gender = table_1[(table_1.model == MODEL) & (table_1.category == "Gender")]
    rows = pd.DataFrame({"model": [MODEL, "calibrant"], "category": "Gender", "accuracy": 50.0})

    both = printed.beside_table_1(rows)

    assert both.printed_model.tolist() == [MODEL, ""]
    assert both.in_print.iloc[0] == of_gender.accuracy_pct.item()
    assert np.isnan(both.in_print.iloc[1])


def test_overall_accuracies_are_those_of_three_tables():
    shares = printed.overall_accuracies()

    assert len(shares) == 23
    for table, prompt in ((1, "COT"), (2, "ID"), (6, "Raw")):
        rows = published.load("giebench", table)
        own = rows[(rows.model == MODEL) & (rows.category == "Overall")]
        assert shares.loc[MODEL, prompt] == own.accuracy_pct.item()


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("Gemma-2b", 2),
        ("qwen-1.5-0.5b", 0.5),
        ("mixtral-8x7b", 56),
        ("mixtral-8×22b", 176),
        ("yi-large", np.nan),
        ("llama-3-8bit", np.nan),
    ],
)
def test_a_size_is_read_from_a_name(name, billions):
    np.testing.assert_equal(printed.billions_by_name(name), billions)
