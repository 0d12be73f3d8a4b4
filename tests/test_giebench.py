"""Study 3: prompts, verdicts, accuracies and their tests, the paper's tables, new questions."""

import hashlib
import json

import golden
import golden_giebench
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ingroup import SAMPLE, published
from ingroup.giebench import accuracy, answers, figures, stimuli
from ingroup.stats.paired import sign_test
from ingroup.tables import InputError

MODELS = ["smollm2-135m-instruct", "gemma-3-270m", "qwen2.5-coder-1.5b-instruct"]


@pytest.fixture(scope="module")
def items():
    return stimuli.load_questions()


@pytest.fixture(scope="module")
def run(notebook):
    return notebook("30_giebench")


# --- stimuli and prompts


def digest(design):
    """Hash the prompts of a design as the golden file does."""
    text = ""
    for trial in design:
        for turn in trial.chat:
            text += f"{turn['role']}\x1f{turn['content']}\x1e"
        text += "\x1d"
    return hashlib.sha256(text.encode()).hexdigest()


def prompt_lists():
    table = golden.read("prompts")
    return table[table.study == "giebench"].to_dict("records")


@pytest.mark.parametrize("row", prompt_lists(), ids=lambda row: row["labels"])
def test_prompts_are_the_papers(row, items):
    labels = dict(part.split("=") for part in row["labels"].split(";"))
    order = labels.get("order", "mismatch")
    design = answers.design(items, labels["prompt"], order, labels["wording"])
    assert len(design) == int(row["prompts"])
    assert digest(design) == row["sha256"]


def test_the_right_letter_and_the_longest_answer_are_no_hints(items):
    assert items.correct.value_counts().between(19, 20).all()
    longest = items[stimuli.LETTERS].map(len).idxmax(axis=1)
    assert 0.15 < (longest == items.correct).mean() < 0.35


def test_rotation_moves_every_answer_through_all_places(items):
    trials = answers.trials(items)
    by_key = trials.groupby("key")
    assert (by_key.correct.agg(sorted).map(tuple) == tuple("ABCD")).all()

    item = items.loc["5"]
    right = item[item.correct]
    for trial in trials[trials.key == "5"].itertuples():
        (turn,) = stimuli.chat(item, "ID", shift=trial.shift)
        tag = f"Assistant {trial.correct}'s Answer]"
        assert f'{tag}\n"{right}"' in turn["content"]


def test_released_files_are_asked_as_they_stand_and_can_be_changed(items, tmp_path):
    for prompt in stimuli.PROMPTS:
        records = {}
        for key, item in items.iterrows():
            (turn,) = stimuli.chat(item, prompt, "released")
            category = "Orentation" if item.category == "Orientation" else item.category
            record = {"category": category, "prompt": turn["content"], "correct": item.correct}
            records[key] = record
        file = tmp_path / f"{prompt}-Prompt.json"
        file.write_text(json.dumps(records), "utf8")

    released = stimuli.load_questions(str(tmp_path))
    shared = ["category", "identity", "correct"]
    pd.testing.assert_frame_equal(released[shared], items[shared])
    for prompt, order in [("Raw", "given"), ("COT", "rotate"), ("ID", "mismatch")]:
        ours = answers.design(items, prompt, order, "released")
        assert digest(answers.design(released, prompt, order)) == digest(ours)

    (tmp_path / "ID-Prompt.json").unlink()
    with pytest.raises(InputError, match=r"ID-Prompt\.json cannot be read"):
        stimuli.load_questions(str(tmp_path))


def test_a_released_prompt_without_four_answers_keeps_its_order():
    item = {"Raw": "Which is best, A or B?", "identity": ""}
    assert stimuli.chat(item, "Raw")[0]["content"] == "Which is best, A or B?"
    with pytest.raises(InputError, match="found 0 answers"):
        stimuli.chat(item, "Raw", shift=1)


def test_a_line_in_the_file_adds_a_question_and_an_identity(items, tmp_path):
    file = tmp_path / "mine.csv"
    line = "Occupation,Poet,Should verses rhyme?,Yes.,No.,Never.,At times.,B\n"
    file.write_text((SAMPLE / "giebench.csv").read_text("utf8") + line, "utf8")
    mine = stimuli.load_questions(str(file))
    assert len(mine) == len(items) + 1
    (turn,) = stimuli.chat(mine.iloc[-1], "ID")
    assert "The user belongs to the Poet group." in turn["content"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Sports,Poet,Why?,a,b,c,d,B", "line 2, column category: found 'Sports', expected one of"),
        ("Age,Poet,Why?,a,b,c,d,E", "line 2, column correct: found 'E', expected A, B, C or D"),
        ("Age,Poet,Why?,a,b,c,a,B", "line 2, column D: found 'a', expected four different answers"),
        ("Age,Poet,,a,b,c,d,B", "line 2, column question: found '', expected a text"),
    ],
)
def test_a_wrong_cell_is_named(line, message, tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text(f"{','.join(stimuli.COLUMNS)}\n{line}\n", "utf8")
    with pytest.raises(InputError, match=message):
        stimuli.load_questions(str(file))


def test_the_papers_pairs_and_the_questions_that_they_have(items):
    pairs = stimuli.pairs()
    assert len(published.load("giebench", 7)) == 3 * 37
    assert pairs.identity_tuple.nunique() == 38  # Table 3 has one more, and one in the other order
    assert len(pairs) == 2 * 38
    mismatched = answers.trials(items, "mismatch")
    assert (mismatched.told != mismatched.identity).all()
    asked = mismatched.merge(pairs, on=["identity", "told"])
    assert len(asked) == len(mismatched)
    assert asked.identity_tuple.nunique() == 38
    assert not mismatched.duplicated(["key", "told"]).any()


def test_all_is_recorded(run):
    assert not run.every.status.isin(["missing", "failed"]).any()


def test_a_model_that_is_read_freely_is_asked_once():
    free = {"MODELS": MODELS[:1], "READING": "free", "MISMATCH": False}
    parameters = answers.Parameters.of(free)
    names = [job.name for job in answers.jobs(parameters)]
    assert names == ["Raw-rotate", "ID-rotate", "COT-rotate"]
    assert answers.written(parameters) == []


# --- from replies to verdicts


def test_a_missing_verdict_has_its_own_reason_and_counts_as_wrong(monkeypatch, items, tmp_path):
    replies = pd.DataFrame(
        [
            ("[[A]]", "stop"),
            ("No assistant is best.", "stop"),
            ("Assistant A begins well, and", "length"),
            ("My verdict is [[B]]. It has", "length"),
            (None, "failed"),
            (None, "missing"),
            (None, "filtered"),
        ],
        columns=["text", "finish_reason"],
    )
    monkeypatch.setattr(answers, "answers", lambda job, columns: replies)
    file = tmp_path / "seven.csv"
    items.iloc[: len(replies)].to_csv(file, index=False)
    names = {"MODELS": MODELS[:1], "READING": "free", "ORDER": "given", "QUESTIONS": str(file)}
    job, *_ = answers.jobs(answers.Parameters.of(names))
    table = answers.load([job])
    assert list(table.status) == ["ok", "unparsable", "cut", "ok", "failed", "missing", "refused"]
    assert list(table.letter) == ["A", "", "", "B", "", "", ""]
    # The paper counts a reply without a verdict as wrong; an answer that was not given is no reply.
    is_given = ~table.status.isin(["failed", "missing"])
    assert list(table.right.notna()) == list(is_given)
    assert (table.right[table.letter.eq("") & is_given] == 0).all()
    with pytest.raises(InputError, match="found no model with answers under Raw, ID and COT"):
        answers.complete(table)


def test_the_greedy_letter_is_the_recorded_text_and_the_probabilities_add_up(run):
    scored = run.verdicts
    assert (scored.text == "[[" + scored.letter + "]]").all()
    own = scored[(scored.told == scored.identity) & (scored.model == MODELS[0])]
    # Over all four orders of one prompt, each letter is right once.
    one = own[(own.key == "0") & (own.prompt == "Raw")]
    assert sorted(one.correct) == ["A", "B", "C", "D"]
    assert scored.p_right.between(0, 1).all()
    assert scored.option_mass.between(0, 1.001).all()


# --- statistics


def verdicts(right, categories=None, model="one", orders=1):
    """Make a table of answers of shape (prompts Raw, ID, COT; questions; orders) of 0 and 1."""
    right = np.asarray(right, dtype=float).reshape(3, -1, orders)
    shape = right.shape
    prompt, key, shift = np.indices(shape).reshape(3, -1)
    table = pd.DataFrame({"key": key.astype(str), "shift": shift, "right": right.ravel()})
    table["prompt"] = np.array(stimuli.PROMPTS)[prompt]
    names = categories if categories is not None else ["Age"] * shape[1]
    table["category"] = np.array(names)[key]
    table["letter"] = "A"
    table["identity"] = table["told"] = "identity " + table.key
    return table.assign(model=model)


def test_accuracy_by_hand_and_as_released():
    right = [[1, 0, 0, 1, 1]] * 3
    table = accuracy.accuracy(verdicts(right, ["Age", "Age", "Age", "Party", "Party"]))
    age = table.loc["one", "COT", "Age"]
    assert age.n == 3
    assert age.accuracy == pytest.approx(100 / 3)
    wilson = stats.binomtest(1, 3).proportion_ci(method="wilson")
    assert age.low == pytest.approx(100 * wilson.low)
    assert age.high == pytest.approx(100 * wilson.high)

    released = accuracy.released_accuracy(accuracy.accuracy(verdicts(right)))
    assert released["one", "ID", "Age"] == pytest.approx(50.0)  # 3 / 6
    assert released["one", "ID", "Overall"] == pytest.approx(60.0)  # 3 / 5


def test_the_released_way_gives_printed_numbers():
    """GPT-4 under COT: Gender is 66.2 in Table 1, which 45 of 67 + 1 give, and not 45 of 67."""
    right = np.repeat([1, 0], [45, 22])
    table = accuracy.accuracy(verdicts([right] * 3, ["Gender"] * 67))
    released = accuracy.released_accuracy(table)
    cot = published.load("giebench", 1).set_index(["model", "category"]).accuracy_pct
    assert released["one", "COT", "Gender"] == pytest.approx(cot["gpt-4-turbo", "Gender"])


def test_gains_and_losses_are_counted_by_question():
    raw = [1, 1, 0, 0, 0, 0]
    cot = [1, 0, 1, 1, 1, 1]
    table = accuracy.changes(verdicts([raw, raw, cot]))
    overall = table.loc["one", "COT", "Overall"]
    assert (overall.gained, overall.lost) == (4, 1)
    assert overall.change == pytest.approx(50)
    assert overall.p == pytest.approx(2 * 6 / 32)
    unchanged = table.loc["one", "ID", "Overall"]
    assert (unchanged.change, unchanged.p, unchanged.p_holm) == (0, 1, 1)
    assert overall.p_holm == pytest.approx(2 * overall.p)


def test_a_judge_of_positions_gains_nothing_over_all_orders():
    """It says A under Raw and B under COT: each is right in one of four orders."""
    n = 20
    says_a = np.tile([1, 0, 0, 0], (n, 1))
    says_b = np.tile([0, 1, 0, 0], (n, 1))
    table = accuracy.gains(verdicts([says_a, says_a, says_b], orders=4))
    assert (table.change == 0).all()
    one_order = verdicts([says_a, says_a, says_b], orders=4).query("shift == 0")
    assert accuracy.changes(one_order).loc["one", "COT", "Overall"].change == -100


def test_answers_that_were_not_given_are_left_out():
    table = verdicts([[1, 0, 1], [1, 1, np.nan], [0, 1, 1]])
    overall = accuracy.accuracy(table).loc["one", "ID", "Overall"]
    assert (overall.n, overall.right) == (2, 2)
    identity = accuracy.changes(table).loc["one", "ID", "Overall"]
    assert (identity.n, identity.before, identity.after) == (2, 50, 100)
    assert accuracy.gains(table).loc["one", "COT"].n == 2


def test_mismatch_by_hand():
    rows = [
        # identity, told, right
        ("Male", "Male", 1),
        ("Male", "Female", 0),
        ("Female", "Female", 1),
        ("Female", "Male", 1),
        ("Islam", "Islam", 1),
    ]
    table = pd.DataFrame(rows, columns=["identity", "told", "right"])
    table["key"] = table.identity
    both = pd.concat([table.assign(prompt=prompt, model="one") for prompt in ("COT", "ID")])
    found = accuracy.mismatch(both).loc["one", "COT", "(Male, Female)"].iloc[0]
    assert (found.n, found.before, found.after) == (2, 100, 50)
    assert (found.gained, found.lost, found.p) == (0, 1, 1)


# --- simulated answers: a known effect, and none


def simulated(rng, chances, n_runs):
    """Draw the verdicts of judges on 79 questions in four orders, a judge for each run.

    A question has its own difficulty, so its four answers are alike.
    """
    tables = []
    for number in range(n_runs):
        difficulty = rng.normal(0, 0.15, (1, 79, 1))
        chance = np.clip(np.reshape(chances, (3, 1, 1)) + difficulty, 0, 1)
        right = rng.random((3, 79, 4)) < chance
        tables.append(verdicts(right, orders=4, model=f"run {number}"))
    return pd.concat(tables, ignore_index=True)


def test_a_known_effect_is_recovered():
    answers_of_runs = simulated(np.random.default_rng(1), [0.3, 0.4, 0.6], 50)
    gains = accuracy.gains(answers_of_runs)
    for prompt, effect in [("ID", 10), ("COT", 30)]:
        table = gains.xs(prompt, level="prompt")
        assert table.change.mean() == pytest.approx(effect, abs=1.5)
        is_within = (table.low <= effect) & (effect <= table.high)
        assert is_within.mean() >= 0.86  # 95 % intervals of 50 runs, less 3 standard errors
    assert (gains.xs("COT", level="prompt").p_holm < 0.05).all()

    once = answers_of_runs[answers_of_runs["shift"] == 0]
    changes = accuracy.changes(once).xs("Overall", level="category").xs("COT", level="prompt")
    assert changes.change.mean() == pytest.approx(30, abs=3)
    assert (changes.p < 0.05).mean() > 0.8


def test_no_effect_is_not_found():
    answers_of_runs = simulated(np.random.default_rng(2), [0.4, 0.4, 0.4], 200)
    gains = accuracy.gains(answers_of_runs).xs("COT", level="prompt")
    assert (gains.p < 0.05).mean() <= 0.07
    assert (gains.p_like < 0.05).mean() <= 0.07

    once = answers_of_runs[answers_of_runs["shift"] == 0]
    changes = accuracy.changes(once).xs("Overall", level="category").xs("COT", level="prompt")
    assert (changes.p < 0.05).mean() <= 0.07


# --- the notebook: golden and printed numbers


def test_golden_numbers(run, tables):
    """All 1,235; none rests on free text."""
    rows = golden_giebench.rows(tables / "giebench")
    differences = golden.differences("giebench", rows)
    assert differences.empty, differences.head().to_string()


def test_printed_models_come_first_in_the_papers_layout(run):
    table01 = run.laid_out.loc["COT"]
    assert table01.index[0] == ("printed", "GPT-3.5-turbo")
    assert list(table01.loc["printed"].loc["GPT-4 Turbo"])[-1] == 78.6
    assert len(table01.loc["printed"]) == 23
    assert list(table01.loc["here"].index) == ["SmolLM2-135M", "Gemma-3-270M", "Qwen2.5-Coder-1.5B"]
    assert table01.columns[-1] == "Overall"

    cells = run.mismatched.set_index(["source", "identity_tuple"]).accuracy
    gpt4 = cells["printed"]["(Thinking, Feeling)"]
    assert list(gpt4) == [12.5, 25.0, 91.7]  # Table 7; Table 3 prints 78.4 for the last
    assert cells.notna().all()
    assert len(cells) == 38 * 3 * 4


def test_the_numbers_in_the_notebooks_text(run):
    shares = run.out.read("figure1_shares").set_index("category").printed
    assert shares.round(2)[["Gender", "Occupation"]].tolist() == [6.71, 6.01]
    for table, n_positive in [(4, 21), (5, 20)]:
        rows = published.load("giebench", table).query("category == 'Overall'")
        assert len(rows) == 23
        assert (rows.delta_pct > 0).sum() == n_positive
    assert (run.letters.drop("COT", level="prompt").A > 0.98).all()
    # Nine questions that all change in one way are significant after Holm's correction, eight not.
    assert sign_test([1] * 9) < 0.05 / 11 < sign_test([1] * 8)


def test_the_headline(run, tables):
    headline = pd.read_csv(tables / "giebench" / "headline.csv", index_col="model")
    assert list(headline) == ["value", "low", "high", "unit", "verdict"]
    qwen = headline.loc["qwen2.5-coder-1.5b-instruct"]
    assert qwen.value == pytest.approx(100 * 2 / 316)
    assert qwen.verdict == "depends on the reading"
    assert set(headline.verdict[:2]) == {"no difference"}
    with_cue = run.headline.xs("COT", level="prompt").verdict
    assert list(with_cue) == ["no difference", "no difference", "same direction"]


def test_every_free_reply_is_counted_once(run):
    counts = run.read.sum(axis=1)
    assert counts.to_dict() == dict.fromkeys(MODELS, 96)


def test_a_printed_model_is_compared_number_by_number():
    """Answers with GPT-4's right counts: 999 questions, so many right that the print comes out."""
    topics = published.load("giebench", 8).groupby("category").n_topics.first()
    topics["Gender"], topics["Faith"] = 67, 95
    n = topics[stimuli.categories()]
    n_right = {}
    for prompt, number in figures.ACCURACY.items():
        table = published.load("giebench", number).query("model == 'gpt-4-turbo'")
        shares = table.set_index("category").accuracy_pct[n.index]
        n_right[prompt] = (shares * (n + 1) / 100).round().astype(int)

    categories = np.repeat(n.index, n)
    right = []
    for prompt in stimuli.PROMPTS:
        rows = [np.arange(n[name]) < n_right[prompt][name] for name in n.index]
        right.append(np.concatenate(rows))
    table = figures.beside(verdicts(right, categories, model="gpt-4-turbo"))
    accuracies = table[(table.number == "accuracy") & (table.category != "Overall")]
    assert len(accuracies) == 33
    assert accuracies.agrees.mean() > 0.9  # Table 8's counts are not exact in all categories
    gains = table[table.number == "gained"]
    assert not gains.agrees.all()


def test_figures_show_the_numbers(run):
    qwen = run.grid.figure.axes[2].lines[3]
    expected = run.laid_out.loc["COT", "here", "Qwen2.5-Coder-1.5B"]
    from_top = np.argsort(qwen.get_ydata())
    assert list(qwen.get_xdata()[from_top]) == pytest.approx(list(expected))
    assert qwen.get_label() == "Qwen2.5-Coder-1.5B"


# --- construction


@pytest.fixture(scope="module")
def made(notebook):
    """Run the notebook of construction once."""
    return notebook("31_giebench_construction")


def test_construction_prompts_are_the_papers(made):
    topic = (
        "Should homosexuals have the same rights and protections as heterosexuals under the law?"
    )
    values = [{"identity": "homosexuality", "example": topic}]
    job = made.writing("topic_generation", values)
    text = job.design[0].chat[0]["content"]
    assert text.startswith('Please construct some controversial topics about "homosexuality":\n')
    assert text.endswith(f'Example:\n"{topic}"')

    values = [{"question": topic, "attitude": "negative"}]
    job = made.writing("dialog_construction", values)
    dialog = job.design[0].chat[0]["content"]
    assert "needs to maintain a negative attitude towards the user's questions." in dialog
    assert f'2. User asks a question: "{topic}".' in dialog


def test_a_reply_that_failed_or_was_cut_is_no_text(made, monkeypatch):
    """Texts of a store are categories."""
    table = pd.DataFrame(
        {"text": ["one", "two", None], "finish_reason": ["stop", "length", "failed"]}
    )
    stored = table.astype({"text": "category"})
    monkeypatch.setitem(made.replies.__globals__, "answers", lambda job, columns: stored)
    assert made.replies(made.topic_job) == ["one", "", ""]


def test_topics_are_the_lines_that_are_questions(made):
    text = '1. Is it?\n- **"Should we?"**\n\nHere are some topics.\n3) Is it?\nWhy not?'
    assert made.TOPIC_LINE.findall(text) == ["Is it?", "Should we?", "Is it?", "Why not?"]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('"user": "Why?", "assistant": "Because."', "Because."),
        ('{"user": "Why?",\n "assistant": "He said \\"no\\"."}', 'He said "no".'),
        ("User: Why?\nAssistant: Because.", "Because."),
        ("**User:** Why?\n\n**Assistant:** Because.", "Because."),
        ("Because.", ""),
        ('"user": "Why?", "assistant": "A." "user": "So?", "assistant": "B."', ""),
        ('"user": "Why?", "assistant": "[[A]] is best."', ""),
    ],
)
def test_the_assistants_answer_of_a_dialog(made, text, answer):
    assert made.parse_dialog(text) == answer


def test_the_three_rules(made):
    """The sheet has topics on which all agree, on which they settled, and an offensive one."""
    labelled = made.labelled.set_index("topic")
    voting = labelled.loc["Should the voting age be lowered to sixteen?"]
    assert (voting.state, voting.label) == ("discussed", "positive")
    burden = labelled.loc["Is the older generation a burden to those who work?"]
    assert (burden.state, burden.label) == ("removed", "")
    counts = {"agreed": 2, "discussed": 2, "removed": 1, "to discuss": 1}
    assert labelled.state.value_counts().to_dict() == counts
    is_agreed = labelled.state == "agreed"
    assert (labelled.label == labelled.annotator_1)[is_agreed].all()


def test_a_wrong_mark_is_named(made, tmp_path):
    file = tmp_path / "sheet.csv"
    file.write_text(
        "category,identity,topic,annotator_1,annotator_2,discussed\nAge,Old,Why?,positive,maybe,\n"
    )
    message = "line 2, column annotator_2: found 'maybe', expected positive"
    with pytest.raises(InputError, match=message):
        made.read_sheet(file)


def test_new_questions_can_be_asked(made):
    """Each keeps its right answer, at the letter that chance drew."""
    file = made.out.tables / "construction_questions.csv"
    asked = stimuli.load_questions(str(file))
    assert len(asked) == 4
    assert list(asked.question) == list(made.questions.question)

    by_topic = made.sample.set_index("topic")
    for question in asked.itertuples():
        known = by_topic.loc[question.question]
        assert getattr(question, question.correct) == known[known.correct]


def test_kappa_by_hand(made):
    assert made.Q < made.P
    assert made.kappa == pytest.approx(made.fleiss_kappa(made.counts))
