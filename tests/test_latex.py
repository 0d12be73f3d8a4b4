"""LaTeX tables: the paper's layout, by hand and with the paper's own numbers."""

import re
from itertools import chain

import pandas as pd
import pytest
import yaml

from ingroup import latex, paths
from printed_tables import of_the_papers

LAYOUTS = yaml.safe_load((paths.PUBLISHED / "latex.yaml").read_text("utf8"))
PRINTED = {(study, name): table for study, name, table in of_the_papers()}
TEAL = r"\cellcolor{teal!20}"
RED = r"\cellcolor{red!15}"

# Rows as the papers print them, with the decimals of their columns.
ROWS = [
    (
        "empathy_gap/table02_delta",
        "\\multicolumn{8}{l}{Llama-3.1-8B} \\\\\n"
        rf"Race or Ethnicity & {TEAL}$1.73$ & {TEAL}$1.88$ & ",
    ),
    ("empathy_gap/table02_delta", f"\n & {TEAL}$[-0.226, 0.224]$ & {TEAL}$["),
    ("empathy_gap/table02_delta", f" & {RED}$-0.24$"),
    ("empathy_gap/table02_delta", f" & {RED}$[-0.154, 0.120]$"),
    (
        "empathy_gap/table03_table07_spread",
        r"Religion & $41.92_{\pm 18.73}$ & $47.20_{\pm 16.68}$ & $31.55_{\pm 25.29}$ & "
        r"$32.15_{\pm 24.56}$ & $5.77_{\pm 1.64}$ & $51.07_{\pm 15.58}$ & $48.35_{\pm 13.11}$ \\",
    ),
    (
        "empathy_gap/table03_table07_spread",
        "Race or Ethnicity & $(-2.48, 1.44)$ & $(-2.37, 1.46)$ & $(-1.20, 1.62)$ & "
        r"$(-1.50, 1.60)$ & $(-3.26, 1.25)$ & $(-2.73, 1.29)$ & $(-3.40, 1.50)$ \\",
    ),
    (
        "empathy_gap/table06_refusals",
        rf"Llama-3.1-8B & Race or Ethnicity & 1.65\% & 0.86\% & {RED}43.49\% & {RED}54.46\% & "
        r"1.54\% & 0.10\% & 0.10\% \\",
    ),
    (
        "biased_samaritan/table01_02_03_bias",
        r"Claude 3.5 Haiku & $-5.67$ & $2.69$ & $3.27$ & $5.82$ \\",
    ),
    (
        "biased_samaritan/table06_07_08_helpfulness",
        r"Claude 3.5 Haiku & $66.28$ & $71.87$ & $76.90$ & $77.29$ & $74.31$ & $78.81$ \\",
    ),
    (
        "biased_samaritan/table09_10_11_brittleness",
        r"DeepSeek V3\_2 & $5.81$ & $5.67$ & $5.32$ & $3.63$ \\",
    ),
    (
        "biased_samaritan/table12_13_14_repeatability",
        r"GPT-4o Mini & 2 & $69.36$ & $69.33$ & $70.88$ & $76.69$ \\",
    ),
    (
        "giebench/table01_02_06_accuracy",
        r"Yi-large & 18.6\% & 76.8\% & 35.5\% & 58.8\% & 50.0\% & 64.4\% & 49.0\% & 33.7\% & "
        r"35.0\% & 59.0\% & 55.7\% & 48.3\% \\",
    ),
    (
        "giebench/table03_07_mismatch",
        r"(Young People, Older People) & 39.7\% & 36.8\% & 83.8\% \\",
    ),
    (
        "giebench/table04_05_changes",
        " & +17/-22 & +12/-14 & +13/-17 & +16/-11 & +31/-18 & +17/-18 & +28/-13 & +16/-18 & "
        r"+16/-18 & +40/-9 & +9/-15 & +215/-173 \\",
    ),
    (
        "stereomap/table02_05_groups",
        r"Disabled people & (2.28\textless{}3.73) & Women &  & Disabled people & "
        r"(2.22\textless{}2.68) & Disabled people & (3.49\textless{}4.18) \\",
    ),
    (
        "stereomap/table03_10_reason_keywords",
        "GPT-3.5-turbo & seen, people, having, various, opportunities, lack, inequality, ",
    ),
    (
        "stereomap/table08_correlations",
        "Warmth & $.73$*** & $-.55$*** & $.45$* & $-.24$ & $.65$*** & $-.44$*** & $.55$*** & "
        r"$-.44$*** \\",
    ),
    (
        "stereomap/table09_extremes",
        r"\multicolumn{8}{l}{Traditional} \\"
        "\nCatholics & 4.80(0.18) & Atheists & 1.00(0.00) & Conservatives & ",
    ),
    (
        "stereomap/table12_human_evaluation",
        r"Soundness Mean (std) & 0.931 (0.25) & 0.945 (0.22) & 0.897 (0.30) \\",
    ),
    ("stereomap/table13_14_sensitivity", "Warmth & .082 (.266) & .061 (.167) & "),
    (
        "stereomap/table13_14_sensitivity",
        r"- w/o Instructions & .042 (.165) & .031 (.093) & 0.062 & 10.83 & 14.49 & 0.057 \\",
    ),
    (
        "stereomap/table15_coverage",
        r"+Lemmatization & 70.50\% & 74.40\% & 67.00\% \\",
    ),
]


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_a_row_of_the_papers_numbers_reads_as_printed(name, row):
    study, table = name.split("/")
    assert row in latex.tables(PRINTED[study, table], study, table)


def test_every_numbered_layout_is_tested_with_the_papers_numbers():
    """Table 11 of the fourth study prints texts, which no file here holds."""
    numbered = set()
    for study, layout_file in LAYOUTS.items():
        for name, layouts in layout_file["tables"].items():
            if any("number" in layout for layout in layouts):
                numbered.add((study, name))

    assert numbered - PRINTED.keys() == {("stereomap", "table11_reasons")}


def test_a_table_that_no_paper_has_says_so():
    for layout_file in LAYOUTS.values():
        for layout in chain(*layout_file["tables"].values()):
            is_numbered = "number" in layout
            is_ours = "is ours" in layout["caption"]
            assert is_numbered != is_ours
            if is_numbered:
                assert re.search(rf"as Tables? {layout['number']}\b", layout["caption"])


def test_a_table_equals_one_written_by_hand():
    """A row for each model by its printed name, decimals of the column, a dash where none is."""
    rows = [
        ("gpt-4o", "Age", "COT", 50.04),
        ("gpt-4o", "Country", "COT", 66.666),
        ("own_1", "Age", "COT", 5),
        ("own_1", "Age", "ID", 7),
    ]
    table = pd.DataFrame(rows, columns=["model", "category", "prompt", "accuracy"])

    first, second = latex.tables(table, "giebench", "table01_02_06_accuracy").split("\n\n")
    assert first.splitlines() == [
        "% Two columns wide, where a page has two. "
        "Needs the packages booktabs, colortbl, graphicx, xcolor.",
        r"\begin{table*}[tp]",
        r"\centering",
        r"{\footnotesize\setlength{\tabcolsep}{3pt}%",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        r"\begin{tabular}{lcc}",
        r"\toprule",
        r"Model & Country & Age \\",
        r"\midrule",
        r"GPT-4o & 66.7\% & 50.0\% \\",
        r"own\_1 & \mbox{--} & 5.0\% \\",
        r"\bottomrule",
        r"\end{tabular}}}",
        r"\caption{Accuracy with the COT-Prompt. Laid out as Table 1 of Wang et al. (2024).}",
        r"\label{tab:giebench:1}",
        r"\end{table*}",
    ]
    assert r"own\_1 & 7.0\% \\" in second

    assert latex.tables(table, "giebench", "responses") == ""
    for without_rows in (table.head(0), pd.DataFrame(columns=["model"])):
        assert latex.tables(without_rows, "giebench", "table01_02_06_accuracy") == ""


def test_the_first_row_of_each_section_has_its_name():
    """The name stands once for both rows of a cell, and again for the next model."""
    row = {"category": "Religion", "setting": "P0,S0,T0", "delta": 1.5, "null_low": -1}
    table = pd.DataFrame({**row, "null_high": 1, "model": ["my_model", "other"]})

    text = latex.tables(table, "empathy_gap", "table02_delta")

    rows = [line for line in text.splitlines() if TEAL in line]
    gap = rf"Religion & {TEAL}$1.50$ \\"
    interval = rf" & {TEAL}$[-1.000, 1.000]$ \\"
    assert rows == [gap, interval, gap, interval]


def test_each_model_has_a_table_where_the_paper_has_one_per_model():
    table = pd.DataFrame(
        {
            "model": ["my_model", "other"],
            "category": "Religion",
            "setting": "P0,S0,T0",
            "mean": 50,
            "std": 1,
            "z_min": 0,
            "z_max": 1,
        }
    )

    text = latex.tables(table, "empathy_gap", "table03_table07_spread")

    assert text.count(r"\begin{tabular}") == 4
    assert text.count(r"\mathcal{M}^0$ of my\_model.") == 1
    labels = [line for line in text.splitlines() if "label" in line]
    assert labels[0] == r"\label{tab:empathy_gap:3:my_model}"
    assert len(set(labels)) == 4

    # The label of a model's folder has no path.
    table["model"] = table["model"].replace("my_model", "/home/me/my_model/")
    again = latex.tables(table, "empathy_gap", "table03_table07_spread")
    assert [line for line in again.splitlines() if "label" in line] == labels


def test_every_part_of_a_table_has_its_own_label():
    table = pd.DataFrame(
        {
            "model": [f"model-{number}" for number in range(8)],
            "word": "Wealthy",
            "rank": 1,
            "end": "highest",
            "group": "Men",
            "mean": 1,
            "variance": 0,
        }
    )

    text = latex.tables(table, "stereomap", "table09_extremes")

    labels = re.findall(r"\\label\{(.*)\}", text)
    assert labels == [f"tab:stereomap:9{part}" for part in ("", ":2", ":3", ":4")]

    captions = re.findall(r"\\caption\{(.*)\}", text)
    assert [caption.rpartition("(2023). ")[2] for caption in captions] == [
        "Models: model-0, model-1.",
        "Models: model-2, model-3.",
        "Models: model-4, model-5.",
        "Models: model-6, model-7.",
    ]


def test_a_part_whose_note_names_its_models_names_them_once():
    names = ["calibrant", "own", "calibrant-null"]
    table = pd.DataFrame({"model": names, "word": "Wealthy", "rank": 1, "end": "highest"})
    table = table.assign(group="Men", mean=1, variance=0)

    mixed, alone = re.findall(
        r"\\caption\{(.*)\}", latex.tables(table, "stereomap", "table09_extremes")
    )

    assert mixed.count("own.") == 1
    assert "Models: calibrant-null. Demonstration: " in alone


def test_the_caption_says_the_level_of_the_tests():
    table = PRINTED["biased_samaritan", "table01_02_03_bias"].assign(alpha=0.002)
    text = latex.tables(table, "biased_samaritan", "table01_02_03_bias")
    assert text.count(r"($p < 0.002$ after Holm's correction") == 3


def test_five_tuples_stand_in_the_printed_order():
    table = PRINTED["giebench", "table03_07_mismatch"]
    text = latex.tables(table, "giebench", "table03_07_mismatch").split("\\end{tabular}")[0]
    assert re.findall(r"^(\(.*?\)) &", text, re.M) == [
        "(Young People, Older People)",
        "(High Income, Low Income)",
        "(Middle Income, Low Income)",
        "(Extraversion, Introversion)",
        "(Thinking, Feeling)",
    ]


def test_two_models_of_one_name_keep_their_ids():
    rows = {"prompt": "COT", "category": "Age", "accuracy": [1, 2], "model": ["a/one", "b/one"]}
    text = latex.tables(pd.DataFrame(rows), "giebench", "table01_02_06_accuracy")
    assert r"a/one & 1.0\%" in text
    assert r"b/one & 2.0\%" in text


def test_calibrants_are_named_in_the_caption():
    rows = {"prompt": "COT", "category": "Age", "accuracy": [1, 2]}
    table = pd.DataFrame({**rows, "model": ["calibrant", "my_model"]})
    text = latex.tables(table, "giebench", "table01_02_06_accuracy")
    assert r"Real: my\_model. Demonstration, trained by this project: calibrant.}" in text


@pytest.mark.parametrize(
    ("name", "printed"),
    [("my_model_v2", r"my\_model\_v2"), (r"x\input{secret}", r"x\textbackslash{}input\{secret\}")],
)
def test_a_models_name_is_no_command_in_a_caption(name, printed):
    rows = {"prompt": "COT", "category": "Age", "accuracy": [1, 2]}
    table = pd.DataFrame({**rows, "model": ["calibrant", name]})
    text = latex.tables(table, "giebench", "table01_02_06_accuracy")
    (caption,) = re.findall(r"\\caption\{.*", text)
    assert f"Real: {printed}." in caption
    assert name not in text


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("my_model_v2", r"my\_model\_v2"),
        (r"x\input{secret}", r"x\textbackslash{}input\{secret\}"),
        ("100 % & $5 #1 ~ ^", r"100 \% \& \$5 \#1 \textasciitilde{} \textasciicircum{}"),
        ("[2cm]\n\n*", "{[}2cm{]} {*}"),
        ("a < b > c | d", r"a \textless{} b \textgreater{} c \textbar{} d"),
        ("é – 中\x1b", "é – {[}U+4E2D{]}{[}U+001B{]}"),
        ("a" * 30, "a" * 25 + r"\hspace{0pt}" + "a" * 5),
        ("a--b---c", "a-{}-b-{}-{}-c"),
        ("–-", "–{}-"),
        ("?` !` `` ,,", "?{}` !{}` `{}` ,{},"),
        ("?‘ ''", "?{}‘ '{}'"),
        ("\"a-b, c'", r"\textquotedblright{}a-b, c'"),
        (None, "None"),
    ],
)
def test_a_text_is_printed_as_it_stands(text, printed):
    assert latex.escape(text) == printed


def test_a_test_that_the_notebook_does_not_trust_has_no_mark():
    for name in ("table02_05_groups", "table02_05_clusters", "table02_05_maps"):
        assert "sign_holm" not in str(LAYOUTS["stereomap"]["tables"][name])
