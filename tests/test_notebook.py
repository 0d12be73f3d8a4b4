"""What an earlier run of the same name left is not taken for this one's."""

import errno
import json
import os
from dataclasses import replace

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from ingroup import notebook, parsing, paths
from ingroup.commands.report import count_verdicts
from ingroup.commands.run_parameters import defaults
from ingroup.inference import Job, Reply, Sampling
from ingroup.notebook import Output
from ingroup.parsing import parse_rating
from ingroup.studies.empathy_gap.design import Parameters
from ingroup.tables import InputError
from toy import Toy, religion, run


@pytest.fixture
def out(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    return Output("giebench", "mine")


def names(folder):
    return sorted(file.name for file in folder.iterdir())


def test_a_dropped_table_and_figure_are_gone_and_others_stay(out):
    for name in ("p_right", "p_right_of_pairs"):
        out.write(pd.DataFrame({"model": ["m"], "p": [0.5]}), name)
        out.save(plt.figure(), name)
    out.drop("p_right")
    out.drop("was never there")
    assert names(out.tables) == ["p_right_of_pairs.csv"]
    assert names(out.figures) == ["p_right_of_pairs.pdf", "p_right_of_pairs.png"]


def test_a_table_of_another_notebook_is_read_here_or_else_in_the_run_that_is_named(out, tmp_path):
    """As the audit's copy in JupyterLab reads its parts, whichever run they wrote."""
    elsewhere = tmp_path / "tables" / "giebench" / "summary.csv"
    assert out.earlier("summary", "default") == elsewhere
    assert out.earlier("summary", "other") == (
        tmp_path / "runs" / "other" / "tables" / "giebench" / "summary.csv"
    )

    out.write(pd.DataFrame({"n": [1]}), "summary")
    assert out.earlier("summary", "default") == out.tables / "summary.csv"


@pytest.mark.parametrize("former_name", ["RATING", "RUNS"])
def test_a_run_of_an_earlier_version_is_one_sentence(tmp_path, monkeypatch, former_name):
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    file = paths.executed("10_empathy_gap", "old")
    file.parent.mkdir(parents=True)
    metadata = {"papermill": {"parameters": {former_name: "free"}}}
    file.write_text(json.dumps({"metadata": metadata}), "utf8")

    with pytest.raises(InputError, match="of run 'old' was made by an earlier version: run it"):
        notebook.parameters_of_run("10_empathy_gap", "old")


def test_an_unwritable_folder_of_tables_is_one_sentence(out, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(out.tables / "a.csv"))

    sentence = r"a\.csv cannot be written: No space left on device; make room on that disk, or"
    with monkeypatch.context() as patch:
        patch.setattr(pd.DataFrame, "to_csv", full)
        with pytest.raises(InputError, match=sentence):
            out.write(pd.DataFrame({"n": [1]}), "a")

    file = paths.BUILD / "runs" / "taken"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("a file")
    with pytest.raises(InputError, match=r"taken.* cannot be written: "):
        notebook.Output("giebench", "taken")


def test_a_table_without_rows_removes_its_earlier_latex(out):
    columns = ["model", "prompt", "category", "accuracy", "n", "right"]
    table = pd.DataFrame([("m", "COT", "Age", 50.0, 2, 1)], columns=columns)
    out.write(table, "table01_02_06_accuracy")
    assert names(out.tables) == ["table01_02_06_accuracy.csv", "table01_02_06_accuracy.tex"]
    out.write(table.head(0), "table01_02_06_accuracy")
    assert names(out.tables) == ["table01_02_06_accuracy.csv"]


def test_another_checkpoint_is_named_once_beside_printed_numbers(out, capsys):
    later = "DeepSeek-V3-0324"
    versus = pd.DataFrame({"model": [later, later, "deepseek-v3"], "verdict": "differs"})
    sentence = (
        f"{later} is another checkpoint than the paper's: this alone may explain a difference"
        " from the printed numbers."
    )
    for table, index in ((versus, False), (versus.set_index("model"), True)):
        out.write(table, "printed_versus_here", index)

        checkpoints = out.read("printed_versus_here").checkpoint
        assert checkpoints.notna().tolist() == [True, False, False]
        assert checkpoints[0] == sentence
        assert capsys.readouterr().out.splitlines() == [sentence]

    _, line = count_verdicts(out.tables)
    assert line == sentence

    out.write(versus[versus.model == "deepseek-v3"], "printed_versus_here")
    assert "checkpoint" not in out.read("printed_versus_here")
    out.write(versus, "other_table")
    assert "checkpoint" not in out.read("other_table")


FREE = Sampling()
SCALE = Sampling(choices=("0", "100"))


@pytest.fixture
def answered_job(tmp_path, monkeypatch):
    """Answers of an engine to 72 trials, as a job."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")

    def ask(engine, replies, sampling=FREE):
        plan = religion(2)
        labels = {"setting": "P0,S0,T0", "category": "Religion"}
        job = Job("empathy_gap", "sample-2", "m", engine, "P0", plan, sampling, labels)

        usual = Reply("50", "stop", 100, 0, 10)
        left = iter(replies)
        toy = Toy(lambda *_: next(left, usual), engine=engine, model="m")
        run(plan, job.folder, toy, 50, sampling)
        return job

    return ask


def test_replies_show_reasoning_collapsed_and_everything_escaped(answered_job):
    hostile = Reply("<script>1</script>", "stop", reasoning="<img src=x onerror=alert(1)>" * 20)
    job = answered_job(
        "inspect", [hostile, Reply("", "length", reasoning="72?"), Reply(None, "failed")]
    )

    def status_of(text):
        return parse_rating(text, 0, 100).status

    page = notebook.replies(job, status_of, lambda trial: {"event": "<b>e</b>"}).data

    assert "<script>" not in page
    assert "<img" not in page
    assert "<b>" not in page
    assert "<details><summary>560 characters</summary>&lt;img" in page
    assert "<td>cut</td>" in page
    assert "<td>failed</td>" in page


def test_the_beginning_of_a_reply_keeps_its_blanks_and_shows_its_line_ends():
    """`parsing.one_line` puts single spaces instead, and keeps the whole text."""
    reply = "1.  Yes\n2. No\n" + "x" * 300
    assert notebook.reply_beginning(reply) == "1.  Yes⏎2. No⏎" + "x" * 186
    assert notebook.reply_beginning(None) == "(failed)"
    assert parsing.one_line(reply) == "1. Yes 2. No " + "x" * 300


def test_only_a_server_costs_and_what_gave_no_answer_is_listed_with_its_reason(answered_job, out):
    lost = [
        Reply("", "length", 100, 0, 300, reasoning="72?", price_share=0.5),
        Reply("", "filtered", 100, 0, 0),
        Reply(None, "failed", error="no net"),
    ]
    served = answered_job("inspect", lost)
    notebook.took([served], out, price_in=2, price_out=8)

    usage = out.read("usage").iloc[-1]
    for_input = 70.5 * 100 * 2 / 1e6
    for_output = (69 * 10 + 150) * 8 / 1e6
    assert usage.cost == pytest.approx(for_input + for_output)

    failed = out.read("failed")
    assert failed.status.tolist() == ["cut", "refused", "failed"]
    assert failed.reason[0].startswith("the reply ended before its answer: a larger MAX_TOKENS")
    assert failed.reason[2] == "no net"

    local = answered_job("vllm", [])
    notebook.took([local], out, price_in=2, price_out=8)
    usage = out.read("usage").iloc[-1]
    assert usage.cost == 0


def test_option_mass_is_counted_and_a_model_below_one_half_is_named(answered_job, out, capsys):
    unsure = Reply("0", "stop", probabilities=(1.0, 0.0), mass=(0.25,))
    sure = Reply("0", "stop", probabilities=(1.0, 0.0), mass=(0.75,))
    scored = answered_job("vllm", [unsure] * 18 + [sure] * 54, SCALE)
    free = answered_job("inspect", [])

    notebook.option_mass([scored, free], out)

    (row,) = out.read("option_mass").itertuples()
    assert row.answers == 72
    assert row.mean == 0.625
    assert row.least == 0.25
    warning = capsys.readouterr().out
    assert warning.startswith("Warning: 25 % of m's scored answers hold less than")


def test_a_run_of_an_earlier_version_is_refused(tmp_path, monkeypatch):
    """Its parameters have names that no notebook takes any more."""
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    file = paths.executed("10_empathy_gap", "old")
    assert notebook.parameters_of_run("10_empathy_gap", "old") is None

    file.parent.mkdir(parents=True)
    metadata = {"papermill": {"parameters": {"RATING": ""}}}
    file.write_text(json.dumps({"metadata": metadata}), "utf8")
    with pytest.raises(InputError, match="10_empathy_gap of run 'old' was made by an ear"):
        notebook.parameters_of_run("10_empathy_gap", "old")

    metadata = {"papermill": {"parameters": {"READING": ""}}}
    file.write_text(json.dumps({"metadata": metadata}), "utf8")
    assert notebook.parameters_of_run("10_empathy_gap", "old") == {"READING": ""}


def test_a_box_names_the_models_that_lack_answers(answered_job):
    complete = answered_job("vllm", [])

    def job(model, plan, sampling=SCALE):
        labels = {"plan": plan}
        design = complete.design
        return Job("giebench", "sample-2", model, "stored", "P", design, sampling, labels)

    recorded = job("smollm2-135m-instruct", "ID")
    hostile = job("<b>mine", "ID")
    partial = job("m", "COT", FREE)

    box = notebook.left_out([complete, partial, recorded, hostile], [complete]).data
    assert "<b>m</b>: COT</li>" in box
    assert "<b>SmolLM2-135M</b>: all parts</li>" in box
    in_cell = "MODELS = [&quot;smollm2-135m-instruct@transformers&quot;]"
    assert f"<code>{in_cell}</code> in the cell of parameters" in box
    assert "<code>MODELS='smollm2-135m-instruct@transformers'</code>. Weights" in box
    assert "(93 MB)" in box
    assert "<b>&lt;b&gt;mine</b>: all parts</li>" in box

    assert notebook.left_out([complete], [complete]).data == ""

    many = [replace(partial, labels={"plan": f"P{n}"}) for n in range(5)]
    box = notebook.left_out([*many, partial], [partial]).data
    assert "<b>m</b>: P0; P1; P2 and 2 more parts</li>" in box


WRONG = [
    (
        {"READING": "mean"},
        "READING 'mean' is unknown; expected free, greedy, drawn or expected; "
        "did you mean READING=expected?",
    ),
    (
        {"EXCLUSION": "Listwise"},
        "EXCLUSION 'Listwise' is unknown; expected listwise or pairwise; "
        "did you mean EXCLUSION=listwise?",
    ),
    ({"MODELS": []}, "MODELS must be names of models, e.g. calibrant, found []"),
    ({"MODELS": ["calibrat"]}, "MODELS: found 'calibrat', expected one of calibrant, "),
    ({"N_RESAMPLES": 0}, "N_RESAMPLES must be a whole number, 1 to 10^9, found 0"),
    ({"N_EVENTS": "6"}, "N_EVENTS must be a whole number, at least 2"),
    ({"TEMPERATURE": "hot"}, "TEMPERATURE must be a number from 0 to 2, or empty, found 'hot'"),
    (
        {"SETTINGS": "P0,S0,T0;P1,S0,T0"},
        "SETTINGS must be a list of texts, found 'P0,S0,T0;P1,S0,T0': "
        "write ['P0,S0,T0', 'P1,S0,T0']",
    ),
]


@pytest.mark.parametrize(("given", "sentence"), WRONG)
def test_a_wrong_value_in_a_notebook_gives_the_command_lines_sentence(given, sentence):
    names = defaults("10_empathy_gap") | given
    with pytest.raises(InputError) as raised:
        notebook.parameters(names, Parameters)
    assert str(raised.value).startswith(sentence)


def test_a_notebook_takes_its_own_parameters_and_passes_over_other_names():
    usual = defaults("10_empathy_gap")
    others = {"HTML": dict, "helper": 1, "_": 2}
    assert notebook.parameters(usual | others, Parameters) == usual
    assert notebook.parameters({"ANY": "value", "Some": 1}) == {"ANY": "value"}


def test_a_part_without_a_result_is_named_and_left_out(capsys):
    def root(sign, number):
        if sign == "-":
            raise ValueError("no root")
        return {"root": len(number) ** 0.5}

    found = notebook.for_each([("+", "four"), ("-", "four")], root)
    assert capsys.readouterr().out == "-, four is left out: no root\n"
    table = notebook.by_key(found, ["sign", "number"])
    assert table.to_dict("records") == [{"sign": "+", "number": "four", "root": 2.0}]
    assert notebook.by_key({}, ["sign", "number"]).columns.tolist() == ["sign", "number"]


def test_a_table_without_rows_drops_that_of_an_earlier_run(out):
    table = pd.DataFrame({"x": [1]})
    assert not out.has("t")
    out.write_any(table, "t")
    assert out.has("t")
    assert out.read("t").x.tolist() == [1]
    assert out.write_any(table.head(0), "t").empty
    assert not out.has("t")


def test_a_table_without_rows_is_shown_as_a_sentence():
    table = pd.DataFrame({"n": [1]})
    style = table.style
    assert notebook.shown(table, "None.") is table
    assert notebook.shown(style, "None.") is style

    empty = table.head(0)
    for nothing in (empty, empty.style):
        assert notebook.shown(nothing, "None of <b>.").data == "<p>None of &lt;b&gt;.</p>"


def test_without_scored_answers_a_sentence_stands_for_the_option_mass(out):
    shown = notebook.option_mass([], out)
    assert shown.data == "<p>No model of this run was asked for scored answers.</p>"
    assert out.read("option_mass").empty
