"""Building items: prompts, replies, the annotators' sheet, the three rules, kappa, letters."""

import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from ingroup.commands.run_parameters import merged_parameters
from ingroup.studies.giebench import construction, made_up, stimuli
from ingroup.studies.giebench.construction import (
    OFFENSIVE,
    STANCES,
    items,
    kappa,
    labels,
    parse_dialog,
    parse_topics,
    read_topics,
)
from ingroup.tables import InputError

P = "positive"
N = "negative"
O = "offensive"  # noqa: E741
PARAMETERS = {
    "MODELS": ["calibrant", "m"],
    "ENGINE": "inspect",
    "TEMPERATURE": 1.0,
    "TOP_P": 1.0,
    "MAX_TOKENS": 1024,
    "REASONING": "",
    "SEED": 5,
}


def sheet(*rows: tuple[str, ...]) -> pd.DataFrame:
    """A filled sheet of as many topics as rows, one mark an annotator; nothing was discussed."""
    marks = pd.DataFrame(rows).add_prefix("annotator_")
    return marks.assign(category="Age", identity="i", topic=marks.index.astype(str), discussed="")


# --- prompts


def test_a_prompt_is_one_user_turn_with_its_slots_filled():
    values = [{"identity": "a {example}", "example": "{identity}"}]

    (job,) = construction.prompt_jobs(PARAMETERS, "topic_generation", values)

    (trial,) = job.design
    (turn,) = trial.messages
    assert turn["role"] == "user"
    assert 'about "a {example}":\n' in turn["content"]
    assert turn["content"].endswith('\n"{identity}"')


def test_every_draw_has_a_seed_and_a_store_of_its_own():
    negative = [{"question": "Is it?", "attitude": N}]
    positive = [{"question": "Is it?", "attitude": P}]

    drawn = construction.prompt_jobs(PARAMETERS, "dialog_construction", negative, 3)
    other_seed = construction.prompt_jobs(
        PARAMETERS | {"SEED": 6}, "dialog_construction", negative, 3
    )
    other_text = construction.prompt_jobs(PARAMETERS, "dialog_construction", positive)

    assert [job.sampling.seed for job in drawn] == [15, 16, 17]
    folders = {job.folder for job in drawn + other_seed + other_text}
    assert len(folders) == 7


def test_greedy_draws_are_refused():
    values = [{"question": "Is it?", "attitude": N}]
    with pytest.raises(InputError, match="TEMPERATURE must be above 0 for m, found 0"):
        construction.prompt_jobs(PARAMETERS | {"TEMPERATURE": 0}, "dialog_construction", values)


@pytest.mark.parametrize(
    ("models", "writer"),
    [
        (["calibrant", "x@stored", "some/model@vllm", "m"], ("some/model", "vllm")),
        (["calibrant", "m"], ("m", "inspect")),
        (["calibrant@transformers", "x@stored"], None),
    ],
)
def test_the_first_model_that_can_be_asked_writes(models, writer):
    """No calibrant, which has learnt no such prompt, and none whose answers are stored only."""
    assert construction.writer(PARAMETERS | {"MODELS": models}) == writer


def test_a_job_is_of_the_model_that_writes():
    values = [{"identity": "a", "example": "b"}]

    (job,) = construction.prompt_jobs(PARAMETERS, "topic_generation", values)

    assert job.model == "m"
    assert job.engine == "inspect"
    assert job.options == {"system": "fold"}


def test_prompts_can_be_shown_without_a_model_that_writes():
    values = [{"identity": "a", "example": "b"}]
    no_writer = PARAMETERS | {"MODELS": ["calibrant@transformers", "x@stored"]}

    (job,) = construction.prompt_jobs(no_writer, "topic_generation", values)

    assert job.design


def test_the_example_of_the_dialog_prompt_is_a_dialog():
    prompt = stimuli.templates()["dialog_construction"]
    _, example = prompt.rsplit("Example: ", 1)

    dialog = parse_dialog(example)

    question, answer = dialog.texts
    assert question.startswith("Does t")
    assert answer.startswith("Huawei")
    assert answer.endswith("ty issues.")
    assert dialog.missing == ""


# --- replies

LISTS = {
    "numbered": ("1. Is it?\n2) Was it?\n\n(3) Will it be?", ["Is it?", "Was it?", "Will it be?"]),
    "quoted": ('Here are two?\n"Is it?"\n“Was it?”', ["Is it?", "Was it?"]),
    "markdown": ("- **Is it?**\n* Law: **Was it?**\n1. **Law:** Is it?", ["Is it?", "Was it?"]),
    "quoted in a line": ('1. Topic: "Is it, or not?" (law)\n', ["Is it, or not?"]),
    "bare": ("Topics:\nIs it?\nWas it?\nThat is all.", ["Is it?", "Was it?"]),
    "twice": ("1. Is it?\n2. IS IT?", ["Is it?"]),
    "formula": (
        "1. =cmd|' /C calc'!A0 is it?\n2. -+@Is it?",
        ["cmd|' /C calc'!A0 is it?", "Is it?"],
    ),
    "controls": ("1. Is\x00 it\ud800\u2028\n2. Was\x1b[0m\tit?", ["Was [0m it?"]),
    "years": ("Should the 1967 Act go?\n1967. Is it?", ["Should the 1967 Act go?", "1967. Is it?"]),
}


@pytest.mark.parametrize(("text", "topics"), LISTS.values(), ids=LISTS)
def test_topics_are_the_questions_of_a_list(text, topics):
    assert parse_topics(text) == (topics, "")


@pytest.mark.parametrize("text", ["", "I cannot help with that.", "1.\n2. ?\n3. ***?", "\x00" * 9])
def test_a_reply_without_a_question_says_so(text):
    assert parse_topics(text) == ([], "no line of the reply is a question")


DIALOGS = [
    '"user": "Is it?", "assistant": "It is."',
    '"user": "Is it?",\n\n"assistant": "It is."',
    '{"user": "Is it?", "assistant": "It is."}',
    '```json\n{\n  "user": "Is it?",\n  "assistant": "It is."\n}\n```',
    "**User:** Is it?\n\n**Assistant:** It is.",
    "Sure.\n\nuser: Is it?\nassistant: It is.",
    "{'user': 'Is it?', 'assistant': 'It is.'}",
    "“user”: “Is it?”, “assistant”: “It is.”",
    '"user": "Is it?", "assistant": "It is."\n\nNote: this is "one" view.',
    '"assistant": "It is.", "user": "Is it?"',
    '  "User" : "Is\tit?" ,\n "Assistant" :\n"It\n\n is."',
]
ANSWERS = {
    r'"They say \"no\" – caf\u00e9\nSo be it."': 'They say "no" – café So be it.',
    '"They say "no" to it."': 'They say "no" to it.',
    '"No" is a word that ends it.': '"No" is a word that ends it.',
    '"It was never closed': "It was never closed",
    '"They say \\"no\\"\nand go."': 'They say "no" and go.',
    "One user: many views, {and} braces}": "One user: many views, {and} braces",
    r'"A path C:\users \"x\" here"': r'A path C:\users "x" here',
}
LACKING = {
    "": 'no "user": and no "assistant": in the reply',
    "I can't take that side.": 'no "user": and no "assistant": in the reply',
    '"user": "Is it?"': 'no "assistant": in the reply',
    '"assistant": "It is."': 'no "user": in the reply',
    '"user": "Is it?", "assistant": ""': 'nothing after "assistant":',
    '"user": , "assistant": "It is."': 'nothing after "user":',
    "user: a?\nassistant: b\nuser: c?\nassistant: d": "2 rounds in the reply, expected one",
    "user: a?\nassistant: best is [[B]]": "'[[B]]' in the answer, a mark of the evaluation prompts",
    "user: a?\nassistant: b [The End of Assistant A's Answer]": "'[The End of' in the answer, a "
    "mark of the evaluation prompts",
}


@pytest.mark.parametrize("text", DIALOGS)
def test_a_dialog_is_read_in_the_forms_that_models_give_it(text):
    assert parse_dialog(text) == (["Is it?", "It is."], "")


@pytest.mark.parametrize(("written", "answer"), ANSWERS.items())
def test_quotation_marks_inside_an_answer_stay(written, answer):
    dialog = parse_dialog(f'"user": "Is it?", "assistant": {written}')
    assert dialog == (["Is it?", answer], "")


@pytest.mark.parametrize(("text", "missing"), LACKING.items())
def test_a_reply_without_a_dialog_says_what_is_missing(text, missing):
    assert parse_dialog(text).missing == missing


SIGNS = st.sampled_from(['"', "user", "assistant", ":", "{", "}", "\\", "\n", "?", "1. ", "“", "*"])
PIECES = st.lists(SIGNS | st.text(st.characters(), max_size=5), max_size=30)


@settings(max_examples=150)
@given(PIECES.map("".join))
def test_no_text_raises_and_what_is_found_can_be_written(text):
    topics, no_topic = parse_topics(text)
    dialog = parse_dialog(text)

    assert bool(topics) != bool(no_topic)
    if not dialog.missing:
        question, answer = dialog.texts
        assert question
        assert answer

    for part in (*topics, *dialog.texts):
        written = part.encode("utf8").decode()
        assert part == " ".join(written.split())


@pytest.mark.parametrize("piece", ['"', '{"', " ", "\\", "user", '" ,', "1. ", "a: ", "[[", "\n{"])
def test_long_hostile_texts_take_no_longer_than_they_must(piece):
    text = piece * 20_000
    parse_topics(text)
    parse_dialog(f'"user": "{text}", "assistant": "{text}')


# --- the sheet


def write(file, *lines):
    file.write_text("\n".join(lines) + "\n", "utf8")
    return file


def test_other_columns_their_order_capitals_and_spaces_do_not_matter(tmp_path):
    file = write(
        tmp_path / "s.csv",
        "note,discussed,topic,identity,category,annotator_2,annotator_1",
        'x,,"Is it,\nor not?",i,Age, Positive ,NEGATIVE',
        ",positive,b,i,age,positive,positive",
    )

    table = read_topics(file, annotated=True)
    topics = read_topics(file)

    assert list(table) == [*construction.TOPIC, "annotator_2", "annotator_1", "discussed"]
    assert table.index.tolist() == [2, 4]  # where each begins
    assert table.topic.tolist() == ["Is it, or not?", "b"]
    assert table.annotator_1.tolist() == [N, P]
    assert table.annotator_2.tolist() == [P, P]
    assert table.category.tolist() == ["Age", "Age"]
    assert list(topics) == construction.TOPIC


HEADER = "category,identity,topic,annotator_1,annotator_2,discussed"
BAD = {
    "mark": (["Age,i,a,pos,,"], "line 2, column 'annotator_1': found 'pos', expected positive, n"),
    "met": (
        ["Age,i,a,,,", "Age,i,b,,,offensive"],
        "line 3, column 'discussed': found 'offensive', expected positive, negative or blank.",
    ),
    "topic": (["Age,i, ,,,"], "line 2, column 'topic': found '', expected text"),
    "category": (["Height,i,a,,,"], "line 2, column 'category': found 'Height', expected Country"),
    "few": (["Age,i,a,,"], "line 2: found 5 cells, expected 6"),
    "twice": (["Age,i,a,,,", "Age,I,A,,,"], "line 3: found identity 'I', topic 'A' again, "),
    "against": (
        ["Age,i,a,positive,positive,negative"],
        "line 2, column 'discussed': found 'negative', expected blank, as all .* positive",
    ),
    "early": (["Age,i,a,,,negative"], "line 2, .*expected blank, as no annotator has"),
    "none": ([], "line 2: found the end of the file"),
}


@pytest.mark.parametrize(("lines", "sentence"), BAD.values(), ids=BAD)
def test_a_wrong_cell_is_named_by_line_and_column(tmp_path, lines, sentence):
    file = write(tmp_path / "s.csv", HEADER, *lines)

    with pytest.raises(InputError, match=f"s.csv, {sentence}"):
        read_topics(file, annotated=True)


@pytest.mark.parametrize("column", ["category", "discussed", "annotator_1"])
def test_a_missing_column_is_named(tmp_path, column):
    file = write(tmp_path / "s.csv", HEADER.replace(column, "x"), "a,b,c,,,")

    with pytest.raises(
        InputError, match=f"s.csv, line 1: the column '{column}' is missing, found "
    ):
        read_topics(file, annotated=True)


def test_a_sheet_that_cannot_be_used_is_refused_before_a_kernel_starts(tmp_path):
    file = write(tmp_path / "s.csv", HEADER, "Age,i,a,pos,,")
    sentence = "SHEET: .*s.csv, line 2, column 'annotator_1': found 'pos'"

    with pytest.raises(InputError, match=sentence):
        merged_parameters("31_giebench_construction", "demo", {"SHEET": str(file)})


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"TOPICS": "none.csv"}, "TOPICS: found no file 'none.csv', expected a CSV file with"),
        ({"ANNOTATORS": "1"}, "ANNOTATORS must be a whole number, 2 to 1,000, found '1'"),
        ({"ANNOTATORS": "1001"}, "ANNOTATORS must be a whole number, 2 to 1,000, found '1001'"),
    ],
)
def test_parameters_of_the_construction_are_checked_before_a_kernel_starts(values, sentence):
    with pytest.raises(InputError, match=sentence):
        merged_parameters("31_giebench_construction", "demo", values)


def test_an_example_is_asked_with_the_identity_as_prompts_have_it():
    examples = pd.DataFrame({"identity": ["Masters", "Poets"], "topic": ["One?", "Two?"]})

    (job,) = construction.topic_jobs(PARAMETERS, examples)

    first, second = [trial.messages[0]["content"] for trial in job.design]
    assert 'about "master\'s":' in first
    assert first.endswith('"One?"')
    assert 'about "Poets":' in second


def test_a_dialog_is_asked_for_with_its_attitude():
    topics = pd.Series(["One?", "Two?"])
    jobs = construction.dialog_jobs(PARAMETERS, topics, pd.Series([P, N]), draws=2)

    assert len(jobs) == 2
    for job in jobs:
        first, second = [trial.messages[0]["content"] for trial in job.design]
        assert "One?" in first
        assert P in first
        assert "Two?" in second
        assert N in second


def test_topics_are_collected_without_the_example():
    examples = pd.DataFrame(
        {"category": "Age", "identity": ["i", "j"], "topic": ["Is it so?", "Why?"]}
    )
    texts = ["1. Is it so?\n2. May they?", "I cannot."]
    replies = pd.DataFrame({"text": texts, "finish_reason": "stop"})

    topics, problems = construction.topics(examples, replies)

    assert topics.to_numpy().tolist() == [["Age", "i", "May they?"]]
    assert problems == ["j: no line of the reply is a question"]


def test_a_sheet_with_a_mark_is_known_from_an_empty_one(tmp_path):
    topics = pd.DataFrame({"category": ["Age"], "identity": ["i"], "topic": ["May they?"]})
    empty = construction.empty_sheet(topics, 3)
    assert empty.columns[3:].tolist() == ["annotator_1", "annotator_2", "annotator_3", "discussed"]

    file = tmp_path / "sheet.csv"
    assert not construction.has_marks(file)
    empty.to_csv(file, index=False)
    assert not construction.has_marks(file)
    empty.assign(annotator_3="positive").to_csv(file, index=False)
    assert construction.has_marks(file)


# --- made-up replies


def test_a_made_up_list_has_the_questions_of_its_category():
    examples = pd.DataFrame({"category": ["Gender", "Age"]})
    of_age = [item.question for item in stimuli.load_questions() if item.category == "Age"]

    replies = made_up.topic_lists(examples)

    parsed = construction.parse_replies(replies, parse_topics)
    assert parsed[1].texts == of_age
    assert replies.text[1].startswith(f"1. {of_age[0]}\n2. ")


def test_made_up_dialogs_have_the_right_answer_first():
    item = stimuli.load_questions()[-1]
    right = stimuli.LETTERS.index(item.correct)
    assert right == 2

    draws = made_up.dialogs([item.question])

    answers = []
    for draw in draws:
        (dialog,) = construction.parse_replies(draw, parse_dialog)
        assert dialog.texts[0] == item.question
        answers.append(dialog.texts[1])
    assert answers == [item.answers[2], item.answers[0], item.answers[1], item.answers[3]]


# --- rules and kappa


@pytest.mark.parametrize(
    ("marks", "discussed", "label", "state"),
    [
        ((N, N, N, N, N), "", N, "agreed"),
        ((P, P, P, P, N), "", "", "to discuss"),
        ((P, P, P, P, N), N, N, "discussed"),  # also against four of five
        ((P, P, O, P, P), "", "", "removed"),
        ((O, "", "", "", ""), "", "", "removed"),  # one is enough, whatever the others will say
        ((P, P, P, P, ""), "", "", "unfinished"),
        ((O, N, N, P, P), P, "", "removed"),
    ],
)
def test_the_three_rules(marks, discussed, label, state):
    labelled = labels(sheet(marks).assign(discussed=discussed))

    (row,) = labelled.itertuples()
    assert row.label == label
    assert row.state == state


def test_kappa_by_hand():
    table = sheet((P, P, P), (N, N, N), (P, P, N), (P, P, N), (P, P, ""), (O, P, N))

    # Three annotators: pairs that agree 1, 1, 1/3, 1/3; shares 7/12 and 5/12. P = 2/3,
    # Q = 74/144 = 37/72, kappa = (48/72 - 37/72) / (35/72) = 11/35.
    value, n_topics = kappa(table)
    assert value == pytest.approx(11 / 35)
    assert n_topics == 4

    # With the offended topic: pairs 1, 1, 1/3, 1/3, 0; shares 8/15, 6/15, 1/15. P = 8/15 = 120/225,
    # Q = 101/225, kappa = 19/124.
    value, n_topics = kappa(table, (*STANCES, OFFENSIVE))
    assert value == pytest.approx(19 / 124)
    assert n_topics == 5


def test_kappa_of_an_unfinished_sheet_is_no_number():
    value, _ = kappa(sheet(("", ""), (P, "")))
    assert np.isnan(value)


# --- items


def replies(*texts, reason="stop"):
    """A store's replies; one without a text failed."""
    reasons = ["failed" if text is None else reason for text in texts]
    return pd.DataFrame({"text": texts, "finish_reason": reasons, "error": "no net"})


def dialogs(answer, n):
    return replies(*[f'"user": "q", "assistant": "{answer}"'] * n)


def four_draws(n):
    """Four answers to each of n topics, of which the first is right."""
    return [dialogs(answer, n) for answer in ("yes", "no", "never", "not now")]


@pytest.fixture(scope="module")
def items_of_seed():
    """A function that makes 400 items with a seed."""
    topics = [f"Is {k}?" for k in range(400)]
    ready = pd.DataFrame({"category": "Age", "identity": "Young People", "topic": topics})

    def make(seed):
        made, problems = items(ready, four_draws(400), np.random.default_rng(seed))
        assert not problems
        return made

    return make


def test_letters_are_reproducible_and_evenly_spread(items_of_seed):
    made = items_of_seed(7)
    n_letters = Counter(item["correct"] for item in made.values())

    assert made == items_of_seed(7)
    assert made != items_of_seed(8)
    assert list(made) == [str(number) for number in range(400)]
    assert chisquare(list(n_letters.values())).pvalue > 0.01


def test_the_letter_of_an_item_is_that_of_its_right_answer(items_of_seed):
    made = items_of_seed(7)

    for item in list(made.values())[:50]:
        assert list(item) == ["category", "identity", "question", "answers", "correct"]
        answers = list(item["answers"])
        right = answers.pop("ABCD".index(item["correct"]))
        assert right == "yes"
        assert answers == ["no", "never", "not now"]


def test_made_items_are_read_as_a_users_file(items_of_seed, tmp_path):
    file = tmp_path / "items.json"
    file.write_text(json.dumps(items_of_seed(7)), "utf8")

    loaded = stimuli.load_questions(file)

    assert loaded[3].category == "Age"
    assert loaded[3].identity == "Young People"
    assert loaded[3].question == "Is 3?"


def test_an_item_without_four_answers_is_left_out_and_named():
    topics = ["failed?", "cut?", "good?", "refused?", "same?"]
    ready = pd.DataFrame({"category": "Age", "identity": "i", "topic": topics})
    draws = four_draws(5)
    texts = draws[1].text.tolist()
    texts[0] = None
    texts[3] = "I cannot write that."
    draws[1] = replies(*texts)
    draws[2].loc[1, "finish_reason"] = "length"
    draws[3].loc[4, "text"] = '"user": "q", "assistant": "No!"'

    made, problems = items(ready, draws, np.random.default_rng(0))

    assert [item["question"] for item in made.values()] == ["good?"]
    assert problems == [
        "i, 'failed?': the call failed (no net)",
        "i, 'cut?': the reply was cut off; a larger MAX_TOKENS helps",
        'i, \'refused?\': no "user": and no "assistant": in the reply',
        "i, 'same?': two of the four answers are the same; another SEED draws anew",
    ]


def test_a_list_of_topics_that_was_cut_can_be_used():
    cut = replies("1. Is it?", reason="length")

    (topics,) = construction.parse_replies(cut, parse_topics)

    assert topics == (["Is it?"], "")
