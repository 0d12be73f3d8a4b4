"""What the map says of a run, from a run whose files are made by hand."""

import json
from dataclasses import replace

import pandas as pd
import pytest

from ingroup import paths
from ingroup.commands import overview, settings
from ingroup.commands.run_parameters import jobs_of, merged_parameters
from ingroup.inference import Reply
from ingroup.studies.empathy_gap.stimuli import setting
from toy import Toy, run

RUN = "mine"


@pytest.fixture(autouse=True)
def _builds(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    monkeypatch.setattr(settings, "BUILD", tmp_path)
    monkeypatch.setattr(paths, "FIGURES", tmp_path / "figures")
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")


def execute(notebook, seconds=1.4, **given):
    """Write the executed copy of a notebook in the run, without its cells."""
    values = merged_parameters(notebook, "demo", given, RUN)
    papermill = {"parameters": values, "duration": seconds}
    file = paths.executed(notebook, RUN)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"metadata": {"papermill": papermill}}))


def write(study, name, **columns):
    """Write a table of the run."""
    folder = paths.run_folder(RUN) / "tables" / study
    folder.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(columns).to_csv(folder / f"{name}.csv", index=False)


def test_names_of_notebooks_are_links_and_texts_are_escaped():
    table = pd.DataFrame({"notebook": ["00_map", "<b>"], "text": ["<i>", "x" * 400]})
    shown = overview.linked(table).data
    assert '<a href="00_map.ipynb">00_map</a>' in shown
    assert "&lt;b&gt;" in shown
    assert "&lt;i&gt;" in shown
    assert "x" * 400 in shown
    assert "<b>" not in shown
    assert shown.count("<a ") == 1


def test_a_table_without_notebooks_has_no_link():
    assert "<a " not in overview.linked(pd.DataFrame({"word": ["00_map"]})).data


def gaps(**more):
    """Rows of two models in the first wording, in points of its scale."""
    return {
        "category": ["Religion", "Religion"],
        "setting": ["P0,S0,T0", "P0,S0,T0"],
        "p_two_sided": [0.01, 0.5],
        **more,
    }


def test_a_lead_is_in_points_of_100():
    highest = setting("P0,S0,T0").high
    write("empathy_gap", "table02_delta", model=["a", "b"], points=[highest / 4, None], **gaps())

    (row,) = overview.own_group_leads(RUN).to_dict("records")

    assert row == {
        "model": "a",
        "category": "Religion",
        "setting": "P0,S0,T0",
        "read": "written answer",
        "points": 25.0,
        "p": 0.01,
    }


def test_scored_answers_take_the_place_of_written_ones():
    """Only in the readings and with the ending that the picture shows."""
    write("empathy_gap", "table02_delta", model=["a", "b"], points=[1.0, 2.0], **gaps())
    write(
        "empathy_gap",
        "readings",
        model=["b"] * 4,
        category=["Religion"] * 4,
        setting=["P0,S0,T0"] * 4,
        reading=["expected", "greedy", "drawn", "greedy"],
        ending=["turn", "turn", "turn", "newline"],
        points=[3.0, 4.0, 5.0, 6.0],
        p_two_sided=[0.1, 0.2, 0.3, 0.4],
    )

    leads = overview.own_group_leads(RUN)

    assert leads.model.tolist() == ["a", "b", "b"]
    assert leads["read"].tolist() == ["written answer", "average answer", "greedy answer"]
    assert leads.p.tolist() == [0.01, 0.1, 0.2]


def test_without_the_first_study_there_is_no_lead():
    leads = overview.own_group_leads(RUN)
    assert leads.empty
    assert {"model", "category", "points", "p"} <= set(leads)


def test_models_have_the_notebooks_that_asked_them():
    """One model through two engines has two rows; the synthesis asks nobody."""
    execute("10_empathy_gap", MODELS="calibrant;gemma-3-270m")
    execute("30_giebench", MODELS="calibrant@vllm;gemma-3-270m")
    execute("60_synthesis", MODELS="calibrant")

    table = overview.models_of(RUN).set_index(["model", "answers"])

    assert table.notebooks.to_dict() == {
        ("calibrant", "transformers"): "10",
        ("Gemma-3-270M", "recorded"): "10, 30",
        ("calibrant", "vllm"): "30",
    }
    assert table.kind.tolist() == [
        "positive control: biases were built in",
        "real",
        "positive control: biases were built in",
    ]


def test_a_model_may_be_read_and_asked():
    """Here 24 events were asked live, in one setting; study 4 is recorded."""
    given = {"MODELS": "smollm2-135m-instruct", "SETTINGS": "P0,S0,T0", "CATEGORIES": "Religion"}
    execute("10_empathy_gap", N_EVENTS="24", **given)
    execute("40_stereomap", MODELS="smollm2-135m-instruct")
    values = merged_parameters("10_empathy_gap", "demo", {"N_EVENTS": "24", **given})
    scored, _ = jobs_of("10_empathy_gap", values)
    asked = replace(scored, engine="transformers")
    reply = Reply("0", "stop", 10, probabilities=[1.0] + [0.0] * 100, mass=[0.5])
    run(asked.design, asked.folder, Toy(lambda *_: reply), sampling=asked.sampling)

    (row,) = overview.models_of(RUN).to_dict("records")

    assert row["answers"] == "transformers; recorded"
    assert row["notebooks"] == "10, 40"


@pytest.mark.parametrize(
    ("models", "has_one"), [("gemma-3-270m", False), ("gemma-3-270m;calibrant-null", True)]
)
def test_a_run_may_have_a_calibrant(models, has_one):
    execute("30_giebench", MODELS=models)
    assert overview.has_calibrant(RUN) == has_one

    words = overview.glossary(RUN).word.tolist()
    assert ("demonstration" in words) == has_one
    assert ("calibrant (positive control)" in words) == has_one
    assert "item" in words


def test_a_run_that_asked_nobody_is_described_whole():
    execute("50_audit")
    assert overview.has_calibrant(RUN)


def test_prompts_are_counted_beside_those_of_the_paper():
    """36 pairs of religions in one wording for two events; the second paper prints its prompts."""
    given = {"SETTINGS": "P0,S0,T0", "CATEGORIES": "Religion", "N_EVENTS": "2"}
    execute("10_empathy_gap", MODELS="calibrant", **given)

    table = overview.prompts(["10_empathy_gap", "20_biased_samaritan"], RUN)

    assert table.index.tolist() == ["10_empathy_gap"]
    assert table.iloc[0].to_dict() == {
        "the paper's": "37,310,350",
        "calibrant": "72",
        "the paper's items": "6,050",
        "here": "2",
    }


def test_of_a_recorded_model_only_stored_prompts_count(monkeypatch):
    monkeypatch.setattr(overview, "answered_jobs", lambda jobs: [])
    execute("30_giebench", MODELS="calibrant;gemma-3-270m")
    table = overview.prompts(["30_giebench"], RUN)
    assert list(table) == ["the paper's", "calibrant", "the paper's items", "here"]


def test_without_a_study_no_prompt_is_counted():
    assert overview.prompts(["10_empathy_gap"], RUN).empty


def test_a_notebook_that_ran_says_what_came_out():
    execute("20_biased_samaritan", seconds=2.6, MODELS="calibrant;gemma-3-270m")
    write("biased_samaritan", "usage", model=["a", "b", "all"], prompts=[1000, 500, 1500])
    write("audit", "summary", paper=["a", "b"], check=["x", "y"], holds=[900, 300])
    execute("50_audit")
    execute("30_giebench", MODELS="gemma-3-270m")
    execute("32_giebench_beyond", MODELS="calibrant")

    table = overview.notebooks_with_status(RUN).set_index("notebook")

    assert table.loc["20_biased_samaritan"].to_dict() == {
        "what it is": "both",
        "verdicts": "",
        "models": "calibrant; Gemma-3-270M",
        "engines": "transformers; stored",
        "prompts": "1,500",
        "seconds": "3",
    }
    kinds = table["what it is"]
    assert kinds["30_giebench"] == "real"
    assert kinds["32_giebench_beyond"] == "a demonstration"
    assert kinds["50_audit"] == "no model asked"
    assert kinds["10_empathy_gap"] == "not in this run"
    assert table.verdicts["50_audit"] == "holds: 1,200"
    assert "00_map" not in table.index


def test_in_the_default_run_a_notebook_that_is_missing_has_its_command():
    assert overview.notebooks_with_status("default").set_index("notebook")["what it is"][
        "10_empathy_gap"
    ] == ("not yet: make 10")


def test_sentences_name_slips_and_verdicts():
    """The findings are about the default run alone."""
    write("audit", "slips", paper=["giebench"], items=["Table 4"], changes=["a claim"])
    claims = pd.DataFrame({"model": ["some/own"] * 3, "verdict": ["stands", "stands", "depends"]})

    table = overview.sentences(claims, RUN)

    assert table.notebook.tolist() == ["50_audit", "60_synthesis"]
    slips, of_model = table.sentence
    assert slips.startswith("1 slips of the papers change a claim: ")
    assert slips.endswith(", Table 4.")
    assert "giebench" not in slips  # the paper has the name of its notebook
    assert of_model == "own (a real model), of 3 sentences of the papers: stands 2, depends 1."


def test_findings_of_the_default_run_have_their_table_and_its_notebook(monkeypatch):
    claim = overview.findings_sentences.Claim(
        1, "A `gap`.", "giebench/position", "", "", "greedy", "these names"
    )
    alone = claim._replace(sentence="(0.1 in it)", alone="The gap is 0.1.")
    sentences = overview.findings_sentences
    monkeypatch.setattr(sentences, "supported_claims", lambda tables, claims: [alone, claim])

    table = overview.sentences(pd.DataFrame(), "default")

    assert table.sentence.tolist() == ["The audit has not run.", "The gap is 0.1.", "A gap."]
    last = table.iloc[2]
    assert (last.reading, last.scope) == ("greedy", "these names")
    assert (last.table, last.notebook) == ("giebench/position", "32_giebench_beyond")


def test_replies_have_their_study_and_notebook(monkeypatch):
    execute("30_giebench", MODELS="gemma-3-270m")
    folders = []

    def of_study(jobs, tables):
        folders.append(tables)
        assert {job.model for job in jobs} == {"gemma-3-270m"}
        yield {"model": "gemma-3-270m", "kind": "refused", "trials": 2, "reply": "No."}

    monkeypatch.setattr(overview.examples, "examples_of_study", of_study)

    table = overview.example_replies(["10_empathy_gap", "30_giebench"], RUN)

    assert folders == [paths.run_folder(RUN) / "tables" / "giebench"]
    assert list(table)[:3] == ["study", "model", "kind"]
    (row,) = table.to_dict("records")
    assert (row["study"], row["notebook"], row["reply"]) == ("giebench", "30_giebench", "No.")


def test_a_figure_has_the_heading_below_which_its_code_stands():
    for name in ("comparison/differences_giebench", "audit/unknown"):
        file = paths.figure_folder(RUN) / f"{name}.png"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"")

    unknown, known = overview.figures(RUN).to_dict("records")

    assert unknown == {"study": "audit", "figure": "unknown", "notebook": "", "below": ""}
    assert known["notebook"] == "61_comparison"
    assert known["below"] == "Difference of two models, effect by effect"


def test_a_run_without_figures_has_an_empty_list():
    assert overview.figures(RUN).empty
