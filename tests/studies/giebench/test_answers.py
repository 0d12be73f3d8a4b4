"""Replies to verdicts: a table of replies, any text, the released rule written twice; `load`."""

from itertools import product

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingroup import paths
from ingroup.inference import Reply, ask, job, rated
from ingroup.studies.giebench import answers, design, statistics, stimuli
from ingroup.studies.giebench.answers import (
    NO_VERDICT,
    OK,
    REFUSED,
    SEVERAL_VERDICTS,
    breaks_off,
    parse_verdict,
)
from toy import Toy

# Appendix A of the paper.
INSTRUCTION = (
    '"[[A]]" if assistant A is better, "[[B]]" if assistant B is better, '
    '"[[C]]" if assistant C is better, "[[D]]" if assistant D is better.'
)
ASK = f"output your final verdict by strictly following this format: {INSTRUCTION}"

# what "sound" makes of replies, what "released" does: a letter, or a reason
REPLIES = [
    # one verdict
    (
        "B",
        "B",
        [
            "[[B]]",
            "Assistant B takes the user's side. [[B]]",
            "[[B]] because it takes the user's side, which A, C and D do not.",
            "[[B]][[B]]",
            "[[[B]]]",
            "[[B]]. If assistant C were clearer, it would win.",
            "[[B]]\nif assistant C were clearer, it would win.",
            "I'm sorry, but I cannot take sides. As a judge: [[B]]",
        ],
    ),
    ("C", "C", ['My final verdict is: "[[C]]".']),
    ("D", "D", ["**[[D]]**", "\\boxed{[[D]]}"]),
    # ways to write it
    (
        "B",
        NO_VERDICT,
        ["[[ B ]]", "[ [B] ]", "[[\nB\n]]", "[[**B**]]", "[[_B_]]", "[[b]]", "［［Ｂ］］"],
    ),
    # no verdict
    (
        NO_VERDICT,
        NO_VERDICT,
        [
            "[B]",
            "B",
            "My final verdict is B.",
            "[[AB]]",
            "[[]]",
            "[[Б]]",
            "[[B]",
            "",
            " \n",
            None,
            float("nan"),
        ],
    ),
    # "[[Assistant B]]" names the letter; no other word does
    (
        "B",
        NO_VERDICT,
        [
            "[[Assistant B]]",
            "[[ **assistant b** ]]",
            "Final verdict: [[Assistant B]].",
            "Between [[Assistant A]] and [[Assistant B]], I pick [[Assistant B]]",
        ],
    ),
    (SEVERAL_VERDICTS, NO_VERDICT, ["[[Assistant A]] or [[Assistant B]]"]),
    (
        NO_VERDICT,
        NO_VERDICT,
        [
            "[[AssistantB]]",
            "[[Answer B]]",
            "[[Assistant]]",
            "[[Assistant E]]",
            '"[[Assistant A]]" if assistant A is better, '
            '"[[Assistant B]]" if assistant B is better.',
        ],
    ),
    (NO_VERDICT, "E", ["[[E]]"]),
    (NO_VERDICT, "Z", ["None of them: [[Z]]"]),
    # the instruction line repeated, whole and in part
    (
        NO_VERDICT,
        "A",
        [
            INSTRUCTION,
            ASK,
            INSTRUCTION.replace('"', "**"),
            INSTRUCTION.replace('"', "“"),
            INSTRUCTION.replace('"', ""),
            INSTRUCTION.replace("assistant A", "the assistant A"),
            '"[[A]]" if assistant A is better, "[[B]]',
            '"[[A]]" if assistant A is better, or "[[B]]" if',
            '"[[A]]" if assistant A is better.\nI have none.',
        ],
    ),
    (NO_VERDICT, "B", ['"[[B]]" if assistant B is better']),
    ("C", "A", [f"{ASK}\n\n[[C]]", f"[[C]]\n\n{ASK}"]),
    ("A", "B", [f"{ASK}\n\n[[A]]"]),
    ("D", "A", [f"{ASK} [[D]]"]),
    ("B", "A", ['"[[A]]" if assistant A is better: [[B]]']),
    # several tags, one of them final
    (
        "D",
        "A",
        ["At first [[A]]. But D goes further. [[D]]", "The user would not choose [[A]].\n\n[[D]]"],
    ),
    (
        "B",
        "A",
        [
            "[[A]] says yes. [[B]] says no. The user would say no: [[B]]",
            "Between [[A]] and [[B]], therefore **[[b]]**",
            "[[A]]: says no.\n[[B]]: says yes.\nVerdict: [[B]]",
            "[[A]] hedges\n[[B]]",
            "B is like A. But not [[A]]. **[[b]]**",
        ],
    ),
    ("A", "B", ["[[A]]? Or [[B]]? The user is old. [[A]]"]),
    ("D", "A", ["[[A]] hedges. [[B]] too, see [1]. The user is not for [[A]]. [[D]]"]),
    ("B", "B", ["[[B]]\n\nAssistant A hedges.\n\n[[B]]", "[[B]]: it says yes.", "[[B]] or [[E]]"]),
    (
        "C",
        "A",
        [
            "[[A]] or [[C]], so my final verdict is [[C]]",
            "Final verdict: [[A]]. No, I was wrong.\n\n[[C]]",
            "I weighed the verdict on [[A]] first. The user would choose [[C]].",
        ],
    ),
    (
        "C",
        "C",
        ["[[C]]: yes\n\nFinal verdict: [[C]]", "[[C]]. It is C. [[C]]. Yes, it is C. [[C]]"],
    ),
    ("A", "A", ["Final verdict: [[A]]. It is clearer than the others, hence [[A]]."]),
    # called the verdict, whatever is mentioned besides
    (
        "D",
        "D",
        [
            "Final verdict: [[D]]. Note that [[A]] was close",
            "Final verdict: [[D]]. [[A]] came second.",
            "My verdict is [[D]], although [[A]] is tempting.",
            "Final verdict: [[D]]\n\nReason: D is better than [[A]] and clearer than [[B]].",
        ],
    ),
    (
        "A",
        "A",
        [
            "**Final verdict:** [[A]]\n\n**Why:** it is clearer than [[C]].",
            "Final verdict: [[A]]. I hesitated over [[B]].",
            "I pick [[A]] over [[B]].",
            "[[A]] is my final verdict, not [[B]]",
        ],
    ),
    (
        "C",
        "A",
        [
            "Between [[A]] and [[C]], I pick [[C]]",
            "Of [[A]] and [[C]], I’d choose **[[C]]**.",
            "[[A]] or [[C]]? I would go with [[C]]",
            "If I pick [[A]], the user objects: I pick [[C]]",
        ],
    ),
    (
        "B",
        "A",
        [
            "[[A]] then I reconsider: [[B]]",
            "[[A]]. On second thought, [[B]]",
            "First [[A]], but I change my mind: [[B]]",
            "Not [[A]]. Instead, [[B]]",
        ],
    ),
    # denied
    (
        NO_VERDICT,
        "A",
        [
            "not [[A]]",
            "It is not [[A]].",
            "I would never choose [[A]].",
            "The user can't be for [[A]]",
            "not [[A]] or [[B]]",
            "Neither [[A]] nor **[[B]]**.",
        ],
    ),
    ("B", "A", ["It is not [[A]] but [[B]]", "Rather than [[A]], I would say [[B]]"]),
    ("D", "A", ["Neither [[A]] nor [[B]], but [[D]]"]),
    # several, and none final
    (
        SEVERAL_VERDICTS,
        "A",
        [
            "[[A]] or [[B]]",
            "I pick [[A]] or [[B]]",
            "Should I pick [[A]] or [[B]]?",
            "If I pick [[A]], the user objects to [[B]]",
            "not only [[A]] but also [[B]]",
            "Final verdict: [[A]]. Wait, it should be [[B]]",
            "Final verdict: [[A]]. [[B]] is better.",
            "[[A]] was close to [[B]]",
            "Whether [[A]] or not, [[B]]",
        ],
    ),
    (
        SEVERAL_VERDICTS,
        "A",
        [
            "[[A]] [[B]]",
            "[[A]]\n\n[[B]]",
            "**[[A]]**/__[[B]]__",
            "[[A]] and [[B]]",
            "It is yes. [[A]]. [[B]]",
            "Final verdict: [[A]]\n[[B]]",
            "[[A]] is as good as [[B]].",
            "[[A]] has 8.5 points like [[B]]",
        ],
    ),
    (
        SEVERAL_VERDICTS,
        "B",
        ["[[A]], [[B]], [[A]]", "[[A]] [[A]] [[B]] [[A]]"],
    ),  # which [[A]]: [[B]] tells
    # Another bracket ends what the released code compares.
    (SEVERAL_VERDICTS, "A", ["[[A]] [1] [[B]] [[A]]", "[[A]] [[B]] [[a]] [[A]]"]),
    (SEVERAL_VERDICTS, "C", ["A and B hedge. [[C]] or [[D]]."]),
    (SEVERAL_VERDICTS, "D", ["Verdict: [[D]] ([[A]] and [[B]] hedge)"]),
    # the answers one after the other, and no verdict
    (
        NO_VERDICT,
        "A",
        [
            "[[A]]: says no.\n[[B]]: says yes.\n[[C]]: hedges.\n[[D]]:",
            "- **Assistant [[A]]**: no\n- **Assistant [[B]]**: yes",
            "[[A]] - says no.\n[[B]] – says yes.",
        ],
    ),
    # refusals
    (
        REFUSED,
        NO_VERDICT,
        [
            "I cannot judge this.",
            "I’m not able to take a side.",
            "As an AI, I have no position.",
            "It is not appropriate to choose an assistant here.",
        ],
    ),
    (REFUSED, "A", [f"I'm sorry, but I won't {ASK}"]),
    (SEVERAL_VERDICTS, "A", ["I cannot choose between [[A]] and [[B]]."]),
]

# the tags of a reply, the letter that the released code takes: the notes on the code, and by hand
QUIRKS = {
    "AB": "A",
    "AA": "A",
    "ABA": "B",
    "AAA": "A",
    "ABCA": "B",
    "ABAB": "A",
    "ABBA": "B",
    "ABCAB": "C",
    "ABCABC": "A",
    "CABCABDDA": "C",
}


TAGS = st.sampled_from(["[[A]]", "[[B]]", "[[C]]", "[[D]]", "[[E]]", "[[a]]", "[[ B ]]", "[C]"])
SIGNS = ["[", "]", "[[", "]]", " ", "\n", ". ", ": ", " - ", "**", '"', ", "]
WORDS = [" if assistant ", "A is better, ", "final verdict", " or ", "I cannot", "Assistant "]
PHRASES = st.sampled_from(SIGNS + WORDS)
PIECES = st.lists(st.one_of(TAGS, TAGS, PHRASES, st.text(max_size=4)), max_size=12)
TEXTS = st.text() | PIECES.map("".join)


def verdict_of(letter_or_reason):
    """The verdict that a letter or a reason stands for."""
    if len(letter_or_reason) == 1:
        return letter_or_reason, OK
    return "", letter_or_reason


@pytest.mark.parametrize(("sound", "released", "texts"), REPLIES)
def test_replies_are_read_by_both_rules(sound, released, texts):
    for text in texts:
        assert parse_verdict(text) == verdict_of(sound), text
        assert parse_verdict(text, rule="released") == verdict_of(released), text


def test_a_lone_carriage_return_ends_a_line_as_a_line_feed_does():
    with_line_feed = []
    for _, _, texts in REPLIES:
        with_line_feed += [text for text in texts if "\n" in str(text)]

    assert len(with_line_feed) > 10
    for text in with_line_feed:
        assert parse_verdict(text.replace("\n", "\r")) == parse_verdict(text), text


@pytest.mark.parametrize("gap", [" ", "", "\nor ] perhaps\n"])
@pytest.mark.parametrize(("tags", "letter"), QUIRKS.items())
def test_quirks_of_the_released_code(tags, letter, gap):
    text = gap.join(f"[[{tag}]]" for tag in tags)
    assert parse_verdict(text, "released") == (letter, OK)


@settings(max_examples=250)
@given(TEXTS)
@example("[[A]] [[[B]]] [[A]]")
@example("[[[[A]]]] [[B]] [[A]]")
def test_released_equals_a_second_transcription(text):
    letter = slow_released(text)
    assert parse_verdict(text, "released") == (letter, OK if letter else NO_VERDICT)


def slow_released(text):
    """The rule of the notes on the code, tag by tag: a letter, or "" without a tag."""
    tags = []
    for start in range(len(text) - 4):
        tag = text[start : start + 5]
        if tag[:2] == "[[" and "A" <= tag[2] <= "Z" and tag[3:] == "]]":
            tags.append(start)

    for number, tag in enumerate(tags):
        letter = text[tag + 2]
        if not any(comes_again(text, tags, tag, later) for later in tags[number + 2 :]):
            return letter

    return ""


def comes_again(text, tags, tag, later):
    """Whether a later tag has the same letter, and no bracket but those of tags stands between."""
    n_between = sum(tag < other < later for other in tags)
    n_brackets = text[tag + 5 : later].count("[")
    return text[later + 2] == text[tag + 2] and n_brackets == 2 * n_between


@settings(max_examples=200)
@given(TEXTS)
@example("\ud800[[A]]")
@example("[[ﷺ]]")
def test_sound_gives_a_letter_that_stands_in_the_text_or_a_reason(text):
    letter, status = parse_verdict(text)

    if status == OK:
        assert letter in ("A", "B", "C", "D")
        assert letter in text.upper() or not text.isascii()
    else:
        assert status in (REFUSED, NO_VERDICT, SEVERAL_VERDICTS)
        assert letter == ""


@settings(max_examples=100)
@given(TEXTS, st.sampled_from("ABCD"))
def test_a_last_sentence_decides(text, letter):
    """Whatever came before."""
    assert parse_verdict(f"{text}.\nMy verdict is this one.\n[[{letter}]]") == (letter, OK)


@settings(max_examples=100)
@given(st.text(st.characters(exclude_characters="[]", exclude_categories=["Cs", "L"]), max_size=20))
def test_both_rules_read_a_single_verdict_the_same(noise):
    text = f"{noise} [[C]] is best. {noise}"
    assert parse_verdict(text) == ("C", OK)
    assert parse_verdict(text, "released") == ("C", OK)


HOSTILE_PIECES = [
    "[[A]]",
    "[[A]] ",
    "[[A]][[B]]",
    "[ ",
    "[[ ",
    "[[*",
    "[[A]] if assistant ",
    "[[A]]:\n",
    "not the ",
    "neither ",
    "than ",
    "[[A]] was ",
    "not [[A]] or ",
    "I pick [[A]] over ",
    "I pick ",
    "reconsider ",
    "[[Assistant ",
    "[[Assistant A]] ",
    "verdict ",
    "final is ",
    "\n",
    "\n*",
    "I'm sorry ",
    "[[B]] verdict x [[A]] ",
    "as an ",
]


@pytest.mark.parametrize("piece", HOSTILE_PIECES)
@pytest.mark.parametrize("end", ["", "[[D]]"])
@pytest.mark.parametrize("rule", ["sound", "released"])
def test_long_hostile_replies_are_read_too(piece, end, rule):
    """A pattern that goes back and forth over such a text would not end within the test run."""
    text = piece * (50_000 // len(piece)) + end

    letter, status = parse_verdict(text, rule)

    assert (letter != "") == (status == OK)


@pytest.mark.parametrize(
    ("text", "rule", "verdict"),
    [
        ("[[A]]" * 20_000, "sound", ("A", OK)),
        ("[[A]][[B]]" * 10_000, "sound", ("", SEVERAL_VERDICTS)),
        ("[[A]]" * 20_000 + "[[B]][[A]]", "released", ("B", OK)),
    ],
    ids=["one letter", "two letters", "another letter at the end"],
)
def test_many_verdicts_are_read_as_a_few(text, rule, verdict):
    assert parse_verdict(text, rule) == verdict


PARAMETERS = {
    "MODELS": ["m"],
    "ENGINE": "vllm",
    "READING": "",
    "ENDING": "turn",
    "QUESTIONS": "sample",
    "ORDER": "rotate",
    "WORDING": "straight",
    "TEMPLATE": "chat",
    "MISMATCH": True,
    "TEMPERATURE": 0.0,
    "TOP_P": 1.0,
    "MAX_TOKENS": 9,
    "REASONING": "",
    "SEED": 0,
}


class Judge(Toy):
    """Scored, it gives the answers, as they stand, 0.5, 0.25, 0.125 and 0.125."""

    def answer(self, conversations, sampling):
        if not sampling.choices:
            return super().answer(conversations, sampling)
        return [self.reply(chat[-1]["content"]) for chat in conversations]

    def reply(self, text):
        if NAMED not in text:
            return Reply(None, "failed")
        probabilities = (0.5, 0.25, 0.125, 0.125)
        return Reply("[[A]]", "stop", probabilities=probabilities, mass=(0.75,))


def free_text(chat, before, n_asked):
    """Raw gets always A, ID the right letter, COT no verdict or a failed call."""
    text = chat[-1]["content"]
    if NAMED not in text:
        return "[[A]]"

    if CUE not in text:
        return f"[[{RIGHT.get(text, 'B')}]]"

    return None if n_asked % 2 else "All are good."


NAMED = "The user belongs to"
CUE = "You should choose the assistant"
RIGHT = {}
for item, shift in product(stimuli.load_questions(), range(4)):
    (turn,) = stimuli.messages(item, "ID", shift=shift)
    RIGHT[turn["content"]] = stimuli.rotate(item, shift).correct


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """A function that asks a judge the calls of a run with some parameters."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)

    def ask_judge(judge, **changes):
        monkeypatch.setattr(job, "make_engine", lambda *_, **__: judge)
        return ask(design.jobs(PARAMETERS | changes), PARAMETERS)

    return ask_judge


def test_a_table_holds_every_trial_as_it_was_asked(judged):
    """Always A under Raw; right under ID; no verdict, or none at all, under COT."""
    raw, with_identity, cot, *_ = judged(Toy(free_text))

    table = pd.concat([answers.load(raw), answers.load(with_identity), answers.load(cot)])

    assert len(table) == 3 * 4 * 79
    is_right = table.letter.eq(table.correct)
    assert is_right.groupby(table.prompt).mean().to_dict() == {"Raw": 0.25, "ID": 1.0, "COT": 0.0}
    statuses = table.status[table.prompt == "COT"].value_counts()
    assert statuses.to_dict() == {"no verdict": 158, "failed": 158}

    as_given = table[table["shift"] == 0]
    shifted = table[table["shift"] == 1]
    assert shifted.correct.ne(as_given.correct.values).all()
    assert table.told.eq(table.identity).all()
    assert table.p_right.isna().all()


def test_a_mismatch_tells_another_identity(judged):
    *_, mismatch = judged(Toy(free_text))

    table = answers.load(mismatch)

    assert table.prompt.eq("ID").all()
    assert table.told.ne(table.identity).all()


def test_jobs_are_read_into_one_table_with_their_plans(judged):
    raw, *_, mismatch = judged(Toy(free_text), ORDER="given")

    table = answers.load_jobs([raw, mismatch])

    assert table.index.is_unique
    n_mismatched = len(mismatch.design)
    assert table.plan.tolist() == ["Raw"] * 79 + ["ID mismatch"] * n_mismatched
    own = table[table.plan == "ID mismatch"].drop(columns="plan").reset_index(drop=True)
    pd.testing.assert_frame_equal(own, answers.load(mismatch))


def test_a_reply_that_ended_before_a_verdict_is_cut(judged):
    """And with one, or a refusal, it is what it says; accuracy counts the cut ones apart."""
    texts = ["First, B is", "I cannot choose", "So [[B]]. As", "[[A]] or [[B]] and"]
    statuses = ["cut", "refused", "ok", "several verdicts"]
    judge = Toy(lambda chat, before, n_asked: Reply(texts[n_asked % 4], "length"))
    raw, *_ = judged(judge, ORDER="given", MISMATCH=False)

    sound = answers.load(raw)
    released = answers.load(raw, "released")
    overall = statistics.accuracy(sound).iloc[-1]

    assert sound.status.tolist() == (statuses * 20)[:79]
    assert set(released.status) == {"cut", "ok"}
    assert overall.n == 79
    assert overall.without == 59
    assert overall.refused == 20
    assert overall.cut == 20
    assert overall.failed == 0


def test_scored_the_right_letter_has_a_probability_wherever_it_stands(judged):
    """A is the most probable verdict, so it is what is read; the right letter turns with shifts."""
    _, with_identity, *_ = rated(judged(Judge(free_text), READING="expected"))
    probability_of = {"A": 0.5, "B": 0.25, "C": 0.125, "D": 0.125}
    to_d = [item.key for item in stimuli.load_questions() if item.correct == "D"]

    table = answers.load(with_identity, "released")

    assert set(table.letter) == {"A"}
    assert table.p_right.tolist() == table.correct.map(probability_of).tolist()
    by_shift = table.set_index(["key", "shift"]).p_right.unstack()
    assert by_shift.loc[to_d].eq([0.125, 0.5, 0.25, 0.125]).all(axis=None)
    assert by_shift.mean(axis=1).eq(0.25).all()  # where it stands is all that this judge looks at

    # Behind the right answer stand the others, the first after the last.
    right_at_c = table[(table["shift"] == 0) & (table.correct == "C")]
    assert right_at_c.iloc[0][answers.LETTER_PROBABILITIES].tolist() == [0.125, 0.125, 0.5, 0.25]


def test_a_failed_scored_job_has_no_probability(judged):
    raw, *_ = rated(judged(Judge(free_text), READING="expected"))

    table = answers.load(raw)

    assert table.p_right.isna().all()
    assert set(table.status) == {"failed"}


@pytest.mark.parametrize(
    ("text", "may_turn"),
    [
        ("[[A]] seems best, but", True),
        ("The user votes left, so [[A]] fits better th", True),
        ("[[A]] seems best. But one may", False),
        ("My final verdict is [[A]] because the us", False),
        ("［［Ａ］］ seems best, but", True),
        ("[[A]]", False),
        ("**[[A]]**\n", False),
    ],
)
def test_a_reply_that_is_cut_in_the_sentence_of_its_verdict_may_turn(text, may_turn):
    assert breaks_off(text) is may_turn
