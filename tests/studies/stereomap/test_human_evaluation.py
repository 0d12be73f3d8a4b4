"""The sheet for people, and what is made of filled sheets."""

import csv
import json
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
from ingroup.studies.stereomap.human_evaluation import agreement, harmless, score, sheet, write
from ingroup.tables import InputError

NAN = np.nan


def replies(groups=("Nurses", "Rich"), prompts=("P/a", "P/b"), rounds=6) -> pd.DataFrame:
    rows = [(g, p, r) for g in groups for p in prompts for r in range(rounds)]
    table = pd.DataFrame(rows, columns=["group", "prompt", "round"])
    table["reply"] = [f"About {g}, {p}, {r}" for g, p, r in rows]
    return table.assign(ratings="Friendly 4", keywords="kind", reasons=None, status="ok")


def filled(place, name, relevance, soundness="", coherence="", groups=("Nurses",)):
    """The same sheet each time; criteria in its order, coherence one a group."""
    table = sheet(replies(groups), np.random.default_rng(0), len(relevance) // len(groups))
    table["relevance"] = relevance
    table["soundness"] = soundness
    table.loc[table.coherence == "", "coherence"] = coherence
    table.to_csv(place / f"{name}.csv", index=False)
    return place / f"{name}.csv"


# --- the sheet


def test_a_group_has_replies_of_one_prompt_and_one_question_of_coherence():
    table = sheet(replies(("a", "b", "c", "d")), np.random.default_rng(3))
    assert " ".join(table.columns) == (
        "id group prompt round ratings keywords reasons reply relevance soundness coherence"
    )
    runs = (table.group != table.group.shift()).sum()
    assert (len(table), table.group.nunique(), runs) == (20, 4, 4)
    assert table.groupby("group").prompt.nunique().tolist() == [1] * 4
    assert table["round"].astype(int).groupby(table.group).nunique().tolist() == [5] * 4
    assert table.coherence.tolist() == (["below"] * 4 + [""]) * 4
    assert (table[["relevance", "soundness", "reasons"]] == "").all(axis=None)
    assert table.id.is_unique
    assert table.id.str.fullmatch("r[0-9a-f]{12}").all()
    # What stands in a row is of one reply.
    same = "About " + table.group + ", " + table.prompt + ", " + table["round"]
    assert table.reply.tolist() == same.tolist()


def test_the_generator_alone_decides_what_is_drawn():
    given_ = replies(tuple("abcdefgh"), rounds=20)
    mixed = given_.sample(frac=1, random_state=1).set_index(np.zeros(len(given_), dtype=int))
    first = sheet(given_, np.random.default_rng(5))
    pd.testing.assert_frame_equal(first, sheet(mixed, np.random.default_rng(5)))
    other = sheet(given_, np.random.default_rng(6))
    assert set(first.id) != set(other.id)
    assert list(first.group.unique()) != list(other.group.unique()) != sorted("abcdefgh")


def test_every_reply_and_prompt_is_as_likely():
    table = replies(range(100), ("p", "q"), 3)
    counts = sheet(table, np.random.default_rng(0), 2).groupby(["prompt", "round"]).size()
    # One group draws a reply with probability 1/3: 33 of 100, standard deviation 4.7.
    assert len(counts) == 6
    assert counts.between(15, 52).all()


def test_a_prompt_with_enough_replies_comes_before_others_and_gaps_are_filled():
    def prompts(usable):
        """What is drawn of a group with so many usable replies to each prompt, with eight seeds."""
        table = replies(("a",), tuple(usable), 6)
        table.loc[table["round"] >= table.prompt.map(usable), "status"] = "refused"
        table.loc[table["round"] == 5, "status"] = table.status.replace("refused", "failed")
        return [sheet(table, np.random.default_rng(s)).prompt.value_counts() for s in range(8)]

    assert all(drawn.to_dict() == {"q": 5} for drawn in prompts({"p": 2, "q": 6, "s": 2}))
    assert all(drawn.tolist() == [2, 2, 1] for drawn in prompts({"p": 2, "q": 2, "s": 2}))
    assert {tuple(drawn.index) for drawn in prompts({"p": 6, "q": 5, "s": 2})} == {("p",), ("q",)}
    few = replies(rounds=1, prompts=("p",)).assign(status=["ok", "failed"])
    assert sheet(few, np.random.default_rng(0)).group.tolist() == ["Nurses"]
    two = sheet(replies(("a",), rounds=1), np.random.default_rng(0))
    assert two.coherence.tolist() == ["below", ""]


def test_without_a_usable_reply_there_is_no_sheet():
    with pytest.raises(ValueError, match="all of 24 replies are refused or failed"):
        sheet(replies().assign(status="refused"), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        *((text, f"'{text}") for text in ("=1+1", "+1", "-1", "@SUM(A1)", "＝1")),
        *((text, "'=1") for text in ("\t=1", "\r\n =1", "\x00=1")),
        *((text, "a b") for text in ("a\n\tb", "a\ud800b")),
        *(('x";=1', "x\";'=1"), ("x, =1", "x, '=1")),
        *((text, text) for text in ("well-known = 4", "")),
    ],
)
def test_no_text_becomes_a_formula(text, cell):
    assert harmless(text) == cell


@settings(max_examples=15)
@given(st.text(alphabet=st.sampled_from("=+-@\t\r\n \"',;|aé1\x00"), max_size=12))
def test_no_cell_begins_with_a_sign_however_a_spreadsheet_cuts(text):
    table = replies(("a",), ("p",), 1).assign(reply=text, keywords=text)
    lines = sheet(table, np.random.default_rng(0)).to_csv(index=False).splitlines()
    assert len(lines) == 2
    for mark in ",;|":
        for cell in next(csv.reader(lines[1:], delimiter=mark)):
            assert cell.strip(' "')[:1] not in set("=+-@")


def test_a_sheet_is_read_back_and_with_judgements_not_written_over(tmp_path):
    table = sheet(replies().assign(reply="x" * 200_000), np.random.default_rng(0))
    file = tmp_path / "s.csv"
    assert table.reply.str.len().max() < 32_767  # a spreadsheet's cell
    write(table, file)
    write(table, file)
    assert file.read_bytes().startswith(b"\xef\xbb\xbfid,group,prompt,")
    back = pd.read_csv(file, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    pd.testing.assert_frame_equal(back, table, check_dtype=False)
    assert score([file]).n.tolist() == [0, 0, 0]
    file.write_text(table.assign(relevance="1").to_csv(index=False), "utf8")
    with pytest.raises(InputError, match=r"s.csv holds judgements already, expected no"):
        write(table, file)


# --- the scorer


def test_a_table_by_hand(tmp_path):
    files = [
        filled(tmp_path, "ann", ["1", "1", "0", "1", ""], ["1"] * 5, "1"),
        filled(tmp_path, "ben", ["1", "0", " 0 ", "1.0", "1"], "", "0"),
        filled(tmp_path, "eve", ["1", "1", "0", "1", ""], "", ".5"),
    ]
    relevance, soundness, coherence = score(files).to_dict("records")
    # 13 judgements, 9 of them 1. Pairs of judgements: replies 1, 3 and 4 agree, reply 2 in 1 of 3.
    assert (relevance["criterion"], relevance["raters"]) == ("relevance", "ann, ben, eve")
    assert (relevance["units"], relevance["n"]) == (5, 13)
    assert relevance["mean"] == pytest.approx(9 / 13)
    assert relevance["sd"] == pytest.approx(np.sqrt(9 / 13 * 4 / 13 * 13 / 12))
    assert relevance["agreement"] == pytest.approx(100 * (3 + 1 / 3) / 4)
    # Four shared replies, 12 judgements, 8 of them 1: s^2 = 12/11 * 2/9 = 8/33; within s_u^2 is
    # 1/3 for one of four replies. alpha = 1 - (1/12) / (8/33) = 21/32.
    assert relevance["alpha"] == pytest.approx(21 / 32)
    # Sums of residuals by reply, in 13ths: 12, -1, -27, 12, 4. SE^2 = 5/4 * sum of squares / 13^2.
    se2 = 5 / 4 * sum(x**2 for x in (12, -1, -27, 12, 4)) / 13**4
    n = 9 / 13 * 4 / 13 / se2
    z = 2.776445  # Student's t for 4, 0.975, from a printed table
    middle, root = 9 / 13 + z**2 / (2 * n), z * np.sqrt(36 / 169 / n + (z / (2 * n)) ** 2)
    expected = [(middle - root) / (1 + z**2 / n), (middle + root) / (1 + z**2 / n)]
    assert [relevance["low"], relevance["high"]] == pytest.approx(expected)

    assert (soundness["raters"], soundness["units"], soundness["n"]) == ("ann", 5, 5)
    assert (soundness["mean"], soundness["sd"]) == (1, 0)
    assert soundness["high"] == pytest.approx(1)
    assert soundness["low"] == pytest.approx(1 / (1 + z**2 / 5))  # Wilson's where all are 1
    assert np.isnan([soundness["alpha"], soundness["agreement"]]).all()

    assert (coherence["units"], coherence["n"], coherence["mean"]) == (1, 3, 0.5)
    assert (coherence["sd"], coherence["agreement"]) == (0.5, 0)
    assert np.isnan([coherence["low"], coherence["high"]]).all()


def test_one_judge_has_an_interval_of_wilson_and_no_agreement(tmp_path):
    marks = ["1"] * 9 + ["0"]
    file = filled(tmp_path, "ann", marks, "", ["1", "0"], ("Nurses", "Rich"))
    row, _, coherence = score([file]).to_dict("records")
    z2 = 2.262157**2  # t for 9, 0.975
    independent = 9  # n' = mean (1 - mean) / SE^2 = n - 1 where each unit has one judgement
    middle = (0.9 + z2 / 18) / (1 + z2 / 9)
    assert (row["low"] + row["high"]) / 2 == pytest.approx(middle)
    wide = proportion_confint(8.1, independent, 0.05, "wilson")  # with z for t
    assert row["low"] < wide[0] < 0.9 < wide[1] < row["high"]
    assert np.isnan([row["alpha"], row["agreement"]]).all()
    assert (coherence["units"], coherence["mean"]) == (2, 0.5)
    # t for 1 is 12.7, further out than two judgements: nearly everything from 0 to 1.
    assert [coherence["low"], coherence["high"]] == pytest.approx([0, 1], abs=0.01)


def test_judges_who_all_concur_add_nothing_to_the_interval(tmp_path):
    marks = ["1"] * 9 + ["0"]
    files = [filled(tmp_path, name, marks) for name in ("ann", "ben", "eve")]
    one, three = score(files[:1]).iloc[0], score(files).iloc[0]
    assert three.n == 3 * one.n
    assert [three.low, three.high] == pytest.approx([one.low, one.high])
    assert (three.alpha, three.agreement) == (1, 100)


def test_judges_who_never_concur_are_as_good_as_independent(tmp_path):
    files = [filled(tmp_path, "ann", list("10101")), filled(tmp_path, "ben", list("01010"))]
    row = score(files).iloc[0]
    z = 2.776445  # Each reply has the mean 0.5, so SE is 0, and all 10 judgements count.
    half = z / (1 + z**2 / 10) * np.sqrt(0.25 / 10 + (z / 20) ** 2)
    assert [row["mean"], row.low, row.high] == pytest.approx([0.5, 0.5 - half, 0.5 + half])
    assert row.alpha < row.agreement == 0


def test_rows_may_be_sorted_anew_and_other_columns_added(tmp_path):
    groups, marks = ("Nurses", "Rich"), ["1", "0", "1", "", "1", "1"]
    files = [filled(tmp_path, n, marks, "1", ["1", "0"], groups) for n in ("ann", "ben")]
    before = score(files)
    table = pd.read_csv(files[1], dtype=str, keep_default_na=False)
    table.sort_values("id").assign(note="=x").to_csv(files[1], index=False)
    pd.testing.assert_frame_equal(score(files), before)
    assert before.agreement.tolist() == [100, 100, 100]
    assert before["mean"].tolist() == pytest.approx([0.8, 1, 0.5])


HEADER = "id,group,relevance,soundness,coherence"
WRONG = {
    HEADER.replace("group", "Group"): "1, column 'group': found only id, Group, ",
    HEADER.replace(",", ";"): "1, column 'id': found only id;group",
    f"{HEADER}\n" + "x" * 200_000: "2: found 1 fields, expected 5",
} | {
    f"{HEADER}\n{rows}": sentence
    for rows, sentence in {
        **{
            f'r1,g,"{cell}",,': f"2, column 'relevance': found '{cell}', expected a number from 0 "
            "to 1 or blank"
            for cell in ("yes", "-1", "0,5", "nan", "١", "below")
        },
        "r1,g,1,,\nr2,h,,1.5,": "3, column 'soundness': found '1.5', expected a number",
        "r1,g,,,1\nr2,g,,,0\nr3,g,,,below": "3, column 'coherence': found 2 cells of 'g' that are "
        "not 'below', expected one",
        "r1,g,,,Below": "2, column 'coherence': found 0 cells of 'g' that are not 'below'",
        "r1,g,,,\nr1,h,,,": "3: found id 'r1' again, expected it once; it is there",
        "": "2: found the end of the file, expected a row",
    }.items()
}


@pytest.mark.parametrize(("text", "sentence"), WRONG.items())
def test_a_wrong_cell_is_named_by_file_line_and_column(tmp_path, text, sentence):
    (tmp_path / "ann.csv").write_text(text, "utf8")
    with pytest.raises(InputError, match=f"ann.csv, line {sentence}"):
        score([tmp_path / "ann.csv"])


def test_files_that_do_not_go_together(tmp_path):
    def saved(name, *lines):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("\n".join(lines), "utf8")
        return tmp_path / name

    ann = saved("ann.csv", HEADER, "r1,g,1,,", "r2,h,1,,")
    for name, lines, sentence in (
        ("b.csv", ["r2,h,,,", "r3,g,,,"], "line 3: found 'r3' of 'g', expected a row of .*ann"),
        ("b.csv", ["r1,h,,,", "r2,h,,,below"], "b.csv, line 2: found 'r1' of 'h', expected a row"),
        ("b.csv", ["r2,h,,,"], "b.csv, line 2: found the end, expected also 'r1' of"),
        ("x/ann.csv", ["r1,g,1,,"], "ann.csv is the second file of 'ann', expected one"),
    ):
        with pytest.raises(InputError, match=sentence):
            score([ann, saved(name, HEADER, *lines)])


# --- agreement


def test_alpha_of_krippendorffs_examples():
    # Krippendorff (2011): two observers, ten documents, binary: alpha = 0.095.
    meg_owen = np.array([[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]])
    assert agreement(meg_owen.T)[0] == pytest.approx(0.095, abs=0.0005)
    # Four observers, twelve units, missing data; as intervals alpha = 0.849.
    four = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
    assert agreement(np.transpose(four))[0] == pytest.approx(0.849, abs=0.0005)


def test_a_unit_with_more_marks_weighs_more():
    alpha, percentage = agreement([[1, 0, NAN], [1, 1, 1], [0, NAN, NAN]])
    assert percentage == pytest.approx(60)  # 3 of 5 marks are in the unit that agrees
    assert alpha == pytest.approx(0)  # (2/5 of 1/2) by 1/5, the variance of 1, 0, 1, 1, 1


@settings(max_examples=20)
@given(st.integers(2, 9), st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_alpha_of_a_full_table_is_kappa_but_for_the_size(units, raters, seed):
    marks = np.random.default_rng(seed).choice([0, 1], (units, raters))
    marks[0, :2] = 0, 1  # both occur
    kappa, n = fleiss_kappa(aggregate_raters(marks)[0]), marks.size
    assert agreement(marks)[0] == pytest.approx(1 - (1 - kappa) * (n - 1) / n)


def test_alpha_where_it_is_not_defined():
    for marks in ([[1, 1], [1, 1]], [[1], [0]], [[1, NAN], [NAN, 0]], np.empty((0, 2))):
        assert np.isnan(agreement(marks)[0])


def test_the_printed_sd_follows_from_the_printed_mean():
    table = published.load("stereomap", 12)
    assert len(table) == 9
    assert (np.sqrt(table["mean"] * (1 - table["mean"])) - table["std"]).abs().max() < 0.012


def test_the_parts_of_separate_calls_are_one_row_of_the_sheet(tmp_path):
    """The cell of notebook 41, on replies to three parts of a prompt, one of them refused."""
    nb = json.loads((paths.NOTEBOOKS / "41_stereomap_keywords.ipynb").read_text("utf8"))
    sources = ["".join(cell["source"]) for cell in nb["cells"]]
    (cell,) = (source for source in sources if "human_evaluation.sheet(" in source)
    parts = {
        "keywords": ("ok", {}, ("kind", "old"), ("They help.", "They retire."), "1. Kind ..."),
        "ratings": ("ok", {"Friendly": 4.0, "Honest": 2.5}, (), (), "- Friendly: 4"),
        "overall": ("refused", {"Rating": np.nan}, (), (), None),
    }
    ours = pd.DataFrame(
        [("some", "Nurses", "Warmth-Competence", 1, part, *row) for part, row in parts.items()]
        + [("some", "Nurses", "Behavior", 1, "ratings", "ok", {"Help": 1.0}, (), (), "no")]
        + [("some", "Men", "Economic success", 1, "ratings", "refused", {}, (), (), "I can't.")],
        columns=[
            *("model", "group", "prompt", "round", "part", "status", "values"),
            *("keywords", "reasons", "reply"),
        ],
    )
    names = {
        "ours": ours, "first": ours[ours.prompt == "Warmth-Competence"], "np": np, "SEED": 0,
        "is_calibrant": lambda model: False, "label": str, "InputError": InputError,
        "human_evaluation": human_evaluation, "SHEETS": [], "published": published,
        "out": SimpleNamespace(tables=tmp_path),
    }  # fmt: skip
    exec(cell, names)
    (row,) = pd.read_csv(tmp_path / "human_evaluation_sheet.csv", dtype=str).to_dict("records")
    assert (row["group"], row["prompt"], row["round"]) == ("Nurses", "Warmth-Competence", "1")
    assert row["ratings"] == "Friendly 4, Honest 2.5"
    assert (row["keywords"], row["reasons"]) == ("kind, old", "They help. They retire.")
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
