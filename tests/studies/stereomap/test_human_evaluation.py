"""The sheet for people, and what is made of filled sheets."""

import csv
import json
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa
from statsmodels.stats.proportion import proportion_confint

from ingroup import paths, published
from ingroup.studies.stereomap import human_evaluation
from ingroup.studies.stereomap.human_evaluation import (
    harmless_cell,
    rater_agreement,
    score,
    sheet,
    write,
)
from ingroup.tables import InputError

NAN = np.nan
T_4 = 2.776445  # Student's t for 4, 0.975, from a printed table
NINE_OF_TEN = ["1", "1", "1", "1", "1", "1", "1", "1", "1", "0"]


def replies(groups=("Nurses", "Rich"), prompts=("P/a", "P/b"), rounds=6) -> pd.DataFrame:
    rows = []
    for group, prompt, turn in product(groups, prompts, range(rounds)):
        rows.append((group, prompt, turn, f"About {group}, {prompt}, {turn}"))

    table = pd.DataFrame(rows, columns=["group", "prompt", "round", "reply"])
    return table.assign(ratings="Friendly 4", keywords="kind", reasons=None, status="ok")


def filled(folder, name, relevance, soundness="", coherence="", groups=("Nurses",)):
    """The same sheet each time; criteria in its order, coherence one a group."""
    replies_per_group = len(relevance) // len(groups)
    table = sheet(replies(groups), np.random.default_rng(0), replies_per_group)
    table["relevance"] = relevance
    table["soundness"] = soundness
    table.loc[table.coherence == "", "coherence"] = coherence

    file = folder / f"{name}.csv"
    table.to_csv(file, index=False)
    return file


# --- the sheet


def test_a_group_has_replies_of_one_prompt_and_one_question_of_coherence():
    table = sheet(replies(("a", "b", "c", "d")), np.random.default_rng(3))

    columns = "id group prompt round ratings keywords reasons reply relevance soundness coherence"
    assert list(table.columns) == columns.split()
    assert len(table) == 20
    assert table.group.nunique() == 4
    begins_group = table.group != table.group.shift()
    assert begins_group.sum() == 4

    by_group = table.groupby("group")
    assert by_group.prompt.nunique().tolist() == [1, 1, 1, 1]
    assert by_group["round"].nunique().tolist() == [5, 5, 5, 5]
    assert table.coherence.tolist() == ["below", "below", "below", "below", ""] * 4
    assert (table[["relevance", "soundness", "reasons"]] == "").all(axis=None)
    assert table.id.is_unique
    assert table.id.str.fullmatch("r[0-9a-f]{12}").all()


def test_a_row_of_the_sheet_is_of_one_reply():
    table = sheet(replies(("a", "b", "c", "d")), np.random.default_rng(3))

    expected = "About " + table.group + ", " + table.prompt + ", " + table["round"]
    assert table.reply.tolist() == expected.tolist()


def test_the_generator_alone_decides_what_is_drawn():
    names = list("abcdefgh")
    in_order = replies(names, rounds=20)
    shuffled = in_order.sample(frac=1, random_state=1)
    shuffled = shuffled.set_index(np.zeros(len(in_order), dtype=int))

    drawn = sheet(in_order, np.random.default_rng(5))
    drawn_from_shuffled = sheet(shuffled, np.random.default_rng(5))
    other = sheet(in_order, np.random.default_rng(6))

    pd.testing.assert_frame_equal(drawn, drawn_from_shuffled)
    assert set(drawn.id) != set(other.id)
    groups = list(drawn.group.unique())
    other_groups = list(other.group.unique())
    assert groups != other_groups
    assert other_groups != names


def test_every_reply_and_prompt_is_as_likely():
    table = replies(range(100), ("p", "q"), 3)

    drawn = sheet(table, np.random.default_rng(0), 2)

    # One group draws a reply with probability 1/3: 33 of 100, standard deviation 4.7.
    counts = drawn.groupby(["prompt", "round"]).size()
    assert len(counts) == 6
    assert counts.between(15, 52).all()


def drawn_prompts(usable, seed):
    """How often each prompt is drawn for a group with so many usable replies to each prompt."""
    table = replies(("a",), tuple(usable), 6)
    is_unusable = table["round"] >= table.prompt.map(usable)
    table.loc[is_unusable, "status"] = "refused"
    table.loc[is_unusable & (table["round"] == 5), "status"] = "failed"
    return sheet(table, np.random.default_rng(seed)).prompt.value_counts()


@pytest.mark.parametrize("seed", range(8))
def test_a_prompt_with_enough_replies_comes_before_others(seed):
    drawn = drawn_prompts({"p": 2, "q": 6, "s": 2}, seed)
    assert drawn.to_dict() == {"q": 5}


@pytest.mark.parametrize("seed", range(8))
def test_without_such_a_prompt_replies_to_others_fill_the_gaps(seed):
    drawn = drawn_prompts({"p": 2, "q": 2, "s": 2}, seed)
    assert drawn.tolist() == [2, 2, 1]


def test_each_prompt_with_enough_replies_is_drawn_with_some_seed():
    drawn = [drawn_prompts({"p": 6, "q": 5, "s": 2}, seed) for seed in range(8)]
    assert {tuple(counts.index) for counts in drawn} == {("p",), ("q",)}


def test_a_group_may_have_fewer_replies_than_the_sheet_has_rows():
    rng = np.random.default_rng(0)
    one_usable = replies(rounds=1, prompts=("p",)).assign(status=["ok", "failed"])
    two_usable = replies(("a",), rounds=1)

    assert sheet(one_usable, rng).group.tolist() == ["Nurses"]
    assert sheet(two_usable, rng).coherence.tolist() == ["below", ""]


def test_without_a_usable_reply_there_is_no_sheet():
    with pytest.raises(ValueError, match="all of 24 replies are refused or failed"):
        sheet(replies().assign(status="refused"), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("＝1", "'＝1"),
        ("\t=1", "'=1"),
        ("\r\n =1", "'=1"),
        ("\x00=1", "'=1"),
        ("a\n\tb", "a b"),
        ("a\ud800b", "a b"),
        ('x";=1', "x\";'=1"),
        ("x, =1", "x, '=1"),
        ("well-known = 4", "well-known = 4"),
        ("", ""),
    ],
)
def test_no_text_becomes_a_formula(text, cell):
    assert harmless_cell(text) == cell


@settings(max_examples=15)
@given(st.text(alphabet=st.sampled_from("=+-@\t\r\n \"',;|aé1\x00"), max_size=12))
def test_no_cell_begins_with_a_sign_however_a_spreadsheet_cuts(text):
    table = replies(("a",), ("p",), 1).assign(reply=text, keywords=text)

    written = sheet(table, np.random.default_rng(0)).to_csv(index=False)

    _, *rows = written.splitlines()
    assert len(rows) == 1
    for delimiter in ",;|":
        for cell in next(csv.reader(rows, delimiter=delimiter)):
            first_character = cell.strip(' "')[:1]
            assert first_character not in {"=", "+", "-", "@"}


def test_a_sheet_is_written_and_read_back(tmp_path):
    table = sheet(replies().assign(reply="x" * 200_000), np.random.default_rng(0))
    file = tmp_path / "s.csv"

    write(table, file)
    write(table, file)

    assert table.reply.str.len().max() < 32_767  # a spreadsheet's cell
    assert file.read_bytes().startswith(b"\xef\xbb\xbfid,group,prompt,")
    read_back = pd.read_csv(file, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    pd.testing.assert_frame_equal(read_back, table, check_dtype=False)
    assert score([file]).n.tolist() == [0, 0, 0]


def test_a_sheet_with_judgements_is_not_written_over(tmp_path):
    table = sheet(replies(), np.random.default_rng(0))
    file = tmp_path / "s.csv"
    judged = table.assign(relevance="1").to_csv(index=False)
    file.write_text(judged, "utf8")

    with pytest.raises(InputError, match=r"s.csv holds judgements, and would be over"):
        write(table, file)

    assert file.read_text("utf8") == judged


# --- the scorer


@pytest.fixture
def three_judges(tmp_path):
    """The scores of three judges: relevance, soundness, coherence."""
    files = [
        filled(tmp_path, "ann", ["1", "1", "0", "1", ""], ["1", "1", "1", "1", "1"], "1"),
        filled(tmp_path, "ben", ["1", "0", " 0 ", "1.0", "1"], "", "0"),
        filled(tmp_path, "eve", ["1", "1", "0", "1", ""], "", ".5"),
    ]
    return score(files).to_dict("records")


def test_relevance_by_hand(three_judges):
    relevance, _, _ = three_judges

    # 13 judgements, 9 of them 1. Pairs of judgements: replies 1, 3 and 4 agree, reply 2 in 1 of 3.
    assert relevance["criterion"] == "relevance"
    assert relevance["raters"] == "ann, ben, eve"
    assert relevance["units"] == 5
    assert relevance["n"] == 13
    assert relevance["mean"] == pytest.approx(9 / 13)
    assert relevance["sd"] == pytest.approx(np.sqrt(9 / 13 * 4 / 13 * 13 / 12))
    assert relevance["agreement"] == pytest.approx(100 * (3 + 1 / 3) / 4)

    # Four shared replies, 12 judgements, 8 of them 1: s^2 = 12/11 * 2/9 = 8/33; within s_u^2 is
    # 1/3 for one of four replies. alpha = 1 - (1/12) / (8/33) = 21/32.
    assert relevance["alpha"] == pytest.approx(21 / 32)


def test_the_interval_of_relevance_by_hand(three_judges):
    relevance, _, _ = three_judges

    # Sums of residuals by reply, in 13ths: 12, -1, -27, 12, 4. SE^2 = 5/4 * sum of squares / 13^2.
    squares = 12**2 + 1**2 + 27**2 + 12**2 + 4**2
    squared_error = 5 / 4 * squares / 13**4
    n = 9 / 13 * 4 / 13 / squared_error
    middle = 9 / 13 + T_4**2 / (2 * n)
    root = T_4 * np.sqrt(36 / 169 / n + (T_4 / (2 * n)) ** 2)
    shrinkage = 1 + T_4**2 / n

    assert relevance["low"] == pytest.approx((middle - root) / shrinkage)
    assert relevance["high"] == pytest.approx((middle + root) / shrinkage)


def test_soundness_and_coherence_by_hand(three_judges):
    _, soundness, coherence = three_judges

    assert soundness["raters"] == "ann"
    assert soundness["units"] == 5
    assert soundness["n"] == 5
    assert soundness["mean"] == 1
    assert soundness["sd"] == 0
    assert soundness["high"] == pytest.approx(1)
    assert soundness["low"] == pytest.approx(1 / (1 + T_4**2 / 5))  # Wilson's where all are 1
    assert np.isnan(soundness["alpha"])
    assert np.isnan(soundness["agreement"])

    assert coherence["units"] == 1
    assert coherence["n"] == 3
    assert coherence["mean"] == 0.5
    assert coherence["sd"] == 0.5
    assert coherence["agreement"] == 0
    assert np.isnan(coherence["low"])
    assert np.isnan(coherence["high"])


def test_one_judge_has_an_interval_of_wilson_and_no_agreement(tmp_path):
    file = filled(tmp_path, "ann", NINE_OF_TEN, "", ["1", "0"], ("Nurses", "Rich"))
    squared_t = 2.262157**2  # t for 9, 0.975
    middle = (0.9 + squared_t / 18) / (1 + squared_t / 9)
    # n' = mean (1 - mean) / SE^2 = n - 1 where each unit has one judgement; with z for t.
    narrow_low, narrow_high = proportion_confint(0.9 * 9, 9, 0.05, "wilson")

    relevance, _, coherence = score([file]).to_dict("records")

    assert (relevance["low"] + relevance["high"]) / 2 == pytest.approx(middle)
    assert relevance["low"] < narrow_low < 0.9
    assert 0.9 < narrow_high < relevance["high"]
    assert np.isnan(relevance["alpha"])
    assert np.isnan(relevance["agreement"])

    assert coherence["units"] == 2
    assert coherence["mean"] == 0.5
    # t for 1 is 12.7, further out than two judgements: nearly everything from 0 to 1.
    assert coherence["low"] == pytest.approx(0, abs=0.01)
    assert coherence["high"] == pytest.approx(1, abs=0.01)


def test_judges_who_all_concur_add_nothing_to_the_interval(tmp_path):
    files = [filled(tmp_path, name, NINE_OF_TEN) for name in ("ann", "ben", "eve")]

    of_one = score(files[:1]).iloc[0]
    of_three = score(files).iloc[0]

    assert of_three.n == 3 * of_one.n
    assert of_three.low == pytest.approx(of_one.low)
    assert of_three.high == pytest.approx(of_one.high)
    assert of_three.alpha == 1
    assert of_three.agreement == 100


def test_judges_who_never_concur_are_as_good_as_independent(tmp_path):
    ann = filled(tmp_path, "ann", ["1", "0", "1", "0", "1"])
    ben = filled(tmp_path, "ben", ["0", "1", "0", "1", "0"])
    # Each reply has the mean 0.5, so SE is 0, and all 10 judgements count.
    half_width = T_4 / (1 + T_4**2 / 10) * np.sqrt(0.25 / 10 + (T_4 / 20) ** 2)

    row = score([ann, ben]).iloc[0]

    assert row["mean"] == pytest.approx(0.5)
    assert row.low == pytest.approx(0.5 - half_width)
    assert row.high == pytest.approx(0.5 + half_width)
    assert row.agreement == 0
    assert row.alpha < 0


def test_rows_may_be_sorted_anew_and_other_columns_added(tmp_path):
    groups = ("Nurses", "Rich")
    relevance = ["1", "0", "1", "", "1", "1"]
    ann = filled(tmp_path, "ann", relevance, "1", ["1", "0"], groups)
    ben = filled(tmp_path, "ben", relevance, "1", ["1", "0"], groups)

    before = score([ann, ben])
    table = pd.read_csv(ben, dtype=str, keep_default_na=False)
    table.sort_values("id").assign(note="=x").to_csv(ben, index=False)
    after = score([ann, ben])

    pd.testing.assert_frame_equal(after, before)
    assert before.agreement.tolist() == [100, 100, 100]
    assert before["mean"].tolist() == pytest.approx([0.8, 1, 0.5])


HEADER = "id,group,relevance,soundness,coherence"
NO_NUMBER = "2, column 'relevance': found '{}', expected a number from 0 to 1 or blank"
TWO_COHERENCES = "found 2 rows of 'g' without 'below', expected one, which has"
NO_COHERENCE = "found 0 rows of 'g' without 'below', expected one"
WRONG_HEADERS = [
    (HEADER.replace("group", "Group"), "1: the column 'group' is missing, found id, Group, "),
    (HEADER.replace(",", ";"), "1: found semicolons between the columns, exp"),
]
WRONG_ROWS = [
    ("x" * 200_000, "2: found 1 cell, expected 5"),
    ('r1,g,"yes",,', NO_NUMBER.format("yes")),
    ('r1,g,"-1",,', NO_NUMBER.format("-1")),
    ('r1,g,"0,5",,', NO_NUMBER.format("0,5")),
    ('r1,g,"nan",,', NO_NUMBER.format("nan")),
    ('r1,g,"١",,', NO_NUMBER.format("١")),
    ('r1,g,"below",,', NO_NUMBER.format("below")),
    ("r1,g,1,,\nr2,h,,1.5,", "3, column 'soundness': found '1.5', expected a number"),
    ("r1,g,,,1\nr2,g,,,0\nr3,g,,,below", f"3, column 'coherence': {TWO_COHERENCES}"),
    ("r1,g,,,Below", f"2, column 'coherence': {NO_COHERENCE}"),
    ("r1,g,,,\nr1,h,,,", "3: found id 'r1' again, expected it once; it is there"),
    ("", "2: found the end of the file, expected a row"),
]
WRONG_SHEETS = WRONG_HEADERS + [(f"{HEADER}\n{rows}", error) for rows, error in WRONG_ROWS]


@pytest.mark.parametrize(("text", "error"), WRONG_SHEETS)
def test_a_wrong_cell_is_named_by_file_line_and_column(tmp_path, text, error):
    file = tmp_path / "ann.csv"
    file.write_text(text, "utf8")

    with pytest.raises(InputError, match=f"ann.csv, line {error}"):
        score([file])


@pytest.mark.parametrize(
    ("name", "lines", "error"),
    [
        (
            "b.csv",
            ["r2,h,,,", "r3,g,,,"],
            "line 3: found the id 'r3' with the group 'g', expected an id",
        ),
        (
            "b.csv",
            ["r1,h,,,", "r2,h,,,below"],
            "b.csv, line 2: found the id 'r1' with the group 'h'",
        ),
        ("b.csv", ["r2,h,,,"], "b.csv: found no row with the id 'r1', expected all rows of .*ann"),
        (
            "x/ann.csv",
            ["r1,g,1,,"],
            "ann.csv: found a second file that is called 'ann', expected one",
        ),
    ],
)
def test_sheets_that_do_not_belong_together_are_refused(tmp_path, name, lines, error):
    ann = tmp_path / "ann.csv"
    ann.write_text("\n".join([HEADER, "r1,g,1,,", "r2,h,1,,"]), "utf8")
    other = tmp_path / name
    other.parent.mkdir(exist_ok=True)
    other.write_text("\n".join([HEADER, *lines]), "utf8")

    with pytest.raises(InputError, match=error):
        score([ann, other])


# --- agreement


def test_alpha_of_two_observers_by_krippendorff():
    """Krippendorff (2011): ten documents, binary."""
    meg = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    owen = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]

    alpha, _ = rater_agreement(np.transpose([meg, owen]))

    assert alpha == pytest.approx(0.095, abs=0.0005)


def test_alpha_of_four_observers_with_missing_data_by_krippendorff():
    """Krippendorff (2011): twelve units, as intervals."""
    four_observers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]

    alpha, _ = rater_agreement(np.transpose(four_observers))

    assert alpha == pytest.approx(0.849, abs=0.0005)


def test_a_unit_with_more_marks_weighs_more():
    marks = [
        [1, 0, NAN],
        [1, 1, 1],
        [0, NAN, NAN],
    ]

    alpha, percentage = rater_agreement(marks)

    assert percentage == pytest.approx(60)  # 3 of 5 marks are in the unit that agrees
    assert alpha == pytest.approx(0)  # (2/5 of 1/2) by 1/5, the variance of 1, 0, 1, 1, 1


@settings(max_examples=20)
@given(st.integers(2, 9), st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_alpha_of_a_full_table_is_kappa_except_for_the_size(units, raters, seed):
    marks = np.random.default_rng(seed).choice([0, 1], (units, raters))
    marks[0, :2] = [0, 1]  # both occur
    counts, _ = aggregate_raters(marks)
    kappa = fleiss_kappa(counts)
    n = marks.size

    alpha, _ = rater_agreement(marks)

    assert alpha == pytest.approx(1 - (1 - kappa) * (n - 1) / n)


@pytest.mark.parametrize(
    "marks",
    [
        [[1, 1], [1, 1]],
        [[1], [0]],
        [[1, NAN], [NAN, 0]],
        np.empty((0, 2)),
    ],
)
def test_alpha_where_it_is_not_defined(marks):
    alpha, _ = rater_agreement(marks)
    assert np.isnan(alpha)


def test_the_printed_sd_follows_from_the_printed_mean():
    table = published.load("stereomap", 12)
    variance = table["mean"] * (1 - table["mean"])
    deviation = np.sqrt(variance) - table["std"]

    assert len(table) == 9
    assert deviation.abs().max() < 0.012


def sheet_cell():
    """The cell of notebook 41 that writes the sheet."""
    notebook = json.loads((paths.NOTEBOOKS / "41_stereomap_keywords.ipynb").read_text("utf8"))
    sources = ["".join(cell["source"]) for cell in notebook["cells"]]
    (source,) = [source for source in sources if "human_evaluation.sheet(" in source]
    return source


def test_the_parts_of_separate_calls_are_one_row_of_the_sheet(tmp_path):
    """The cell of notebook 41, on replies to three parts of a prompt, one of them refused."""
    rating = {
        "model": "some",
        "group": "Nurses",
        "prompt": "Warmth-Competence",
        "round": 1,
        "part": "ratings",
        "status": "ok",
        "values": {"Friendly": 4.0, "Honest": 2.5},
        "keywords": (),
        "reasons": (),
        "reply": "- Friendly: 4",
    }
    traits = rating | {
        "part": "keywords",
        "values": {},
        "keywords": ("kind", "old"),
        "reasons": ("They help.", "They retire."),
        "reply": "1. Kind ...",
    }
    overall = rating | {
        "part": "overall",
        "status": "refused",
        "values": {"Rating": np.nan},
        "reply": None,
    }
    other_prompt = rating | {"prompt": "Behavior", "values": {"Help": 1.0}, "reply": "no"}
    other_group = rating | {
        "group": "Men",
        "prompt": "Economic success",
        "status": "refused",
        "values": {},
        "reply": "I can't.",
    }
    ours = pd.DataFrame([traits, rating, overall, other_prompt, other_group])
    names = {
        "ours": ours,
        "first": ours[ours.prompt == "Warmth-Competence"],
        "np": np,
        "SEED": 0,
        "label": str,
        "InputError": InputError,
        "human_evaluation": human_evaluation,
        "SHEETS": [],
        "published": published,
        "out": SimpleNamespace(tables=tmp_path),
    }

    exec(sheet_cell(), names)

    written = pd.read_csv(tmp_path / "human_evaluation_sheet.csv", dtype=str)
    (row,) = written.to_dict("records")
    assert row["group"] == "Nurses"
    assert row["prompt"] == "Warmth-Competence"
    assert row["round"] == "1"
    assert row["ratings"] == "Friendly 4, Honest 2.5"
    assert row["keywords"] == "kind, old"
    assert row["reasons"] == "They help. They retire."
    assert row["reply"] == "1. Kind ... - Friendly: 4"


def test_the_status_of_a_reply_is_that_of_the_first_part_that_holds_anything():
    parts = pd.DataFrame(
        [
            ("Men", "cut", {"Friendly": 2.0}, "a"),
            ("Men", "incomplete", {"Honest": NAN}, None),
            ("Women", "refused", {}, ""),
            ("Women", "cut", {}, "b"),
        ],
        columns=["group", "status", "values", "reply"],
    ).assign(prompt="Behavior", round=1, keywords=[()] * 4, reasons=[()] * 4)
    whole = human_evaluation.whole_replies(parts)
    assert whole.status.tolist() == ["incomplete", "refused"]
    assert whole.ratings.tolist() == ["Friendly 2", ""]
    assert whole.reply.tolist() == ["a", "b"]


def test_a_real_model_is_judged_before_a_calibrant():
    assert human_evaluation.model_to_judge(["calibrant", "own", "other"]) == "own"
    assert human_evaluation.model_to_judge(["calibrant", "calibrant-null"]) == "calibrant"
