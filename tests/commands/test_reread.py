"""Stored answers read again without an engine: the right folder, the right design, the rules."""

import json

import numpy as np
import pytest

from ingroup import paths
from ingroup.commands import reread
from ingroup.inference import Store, StoreError, response_folder
from ingroup.inference.engine import Reply
from ingroup.studies.biased_samaritan import stimuli as scenarios
from ingroup.studies.empathy_gap import stimuli
from ingroup.studies.giebench import stimuli as questions
from ingroup.studies.stereomap import stimuli as social_groups

GAP = {
    "MODEL": "some/model", "CONTROL": "", "ENGINE": "vllm", "CORPUS": "sample", "N_EVENTS": 2,
    "SETTINGS": ["P0,S0,T0", "P0,S1,T0"], "RATING": "greedy", "REWRITER": "",
}  # fmt: skip
SAMARITAN = {"ENGINE": "openai", "SCENARIOS": "sample", "CROSSING": "printed", "LATINO": True}
GIE = {"ENGINE": "replay", "QUESTIONS": "sample", "ORDER": "rotate", "RAW": "text"}
STEREO = {
    "ENGINE": "vllm", "GROUPS": ["Men", "Women", "Young people"], "ROUNDS": 2, "FORM": "printed",
    "CALLS": "separate",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _responses(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")


def fill(folder, plan, texts, shard_size=1000):
    """A store of these replies; None is a call that failed."""
    manifest = {"prompts": plan.fingerprint, "trials": len(plan), "shard_size": shard_size}
    store = Store(folder, manifest)
    replies = [Reply(text, "failed" if text is None else "stop") for text in texts]
    for shard in range(store.shards):
        store.write(shard, replies[slice(*store.bounds(shard))])
    return store


def test_parameters_are_those_that_papermill_wrote():
    assert reread.parameters("10_empathy_gap", "mine") is None
    given = {"MODEL": "m", "CONTROL": "c", "N_EVENTS": 3}
    notebook = {"cells": [], "metadata": {"papermill": {"parameters": given}}}
    paths.executed("10_empathy_gap", "mine").write_text(json.dumps(notebook), "utf8")
    assert reread.parameters("10_empathy_gap", "mine") == given
    assert reread.parameters("10_empathy_gap") is None
    assert reread.models(given) == ["m", "c"]
    assert reread.models(given | {"CONTROL": ""}) == ["m"]


def test_a_store_is_opened_by_its_own_manifest_and_nothing_is_written(tmp_path):
    plan = reread.gap_design(GAP, "P0,S0,T0")
    folder = tmp_path / "somewhere"
    with pytest.raises(StoreError, match="holds no answers"):
        reread.stored(folder, plan)
    assert not folder.exists()
    fill(folder, plan, ["7"] * len(plan))
    before = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    assert reread.stored(folder, plan).read().text.eq("7").all()
    assert {file.name: file.stat().st_mtime_ns for file in folder.iterdir()} == before
    with pytest.raises(StoreError, match="other prompts"):
        reread.stored(folder, reread.gap_design(GAP, "P0,S1,T0"))
    (folder / "manifest.json").write_text("[1", "utf8")
    with pytest.raises(StoreError, match="not readable as JSON"):
        reread.stored(folder, plan)


def test_a_manifest_of_another_format_is_refused(tmp_path):
    plan = reread.gap_design(GAP, "P0,S0,T0")
    folder = tmp_path / "somewhere"
    fill(folder, plan, ["7"] * len(plan))
    file = folder / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf8")) | {"format": 1}), "utf8")
    with pytest.raises(StoreError, match="format 1"):
        reread.stored(folder, plan)


@pytest.mark.parametrize("rating", ["greedy", "expected"])
def test_the_empathy_gap_is_read_block_by_block(rating):
    values = GAP | {"RATING": rating}
    plan = reread.gap_design(values, "P0,S1,T0")
    texts = [f"{k % 11}" for k in range(len(plan))]
    block, numbers = plan.block_of(category="Religion")
    texts[numbers.start + 5], texts[numbers.start + 6] = "8.5", None
    part = "P0,S1,T0" + ("+logprobs" if rating == "expected" else "")
    fill(response_folder("empathy_gap", "sample-2", "some/model", "vllm", part), plan, texts, 97)
    found = reread.gap_ratings(values, "some/model", "P0,S1,T0", "Religion")
    wanted = np.arange(numbers.start, numbers.stop, dtype=float) % 11
    wanted[5:7] = 8.5, np.nan
    np.testing.assert_array_equal(found.values.ravel(), wanted)
    assert found.values.shape == block.shape == (6, 6, 2)
    assert found.counts["failed"] == 1
    again = reread.gap_ratings(values, "some/model", "P0,S1,T0", "Religion", "released")
    assert again.values.ravel()[5] == 8


def test_the_settings_that_a_corpus_can_show(tmp_path):
    assert reread.gap_settings(GAP) == GAP["SETTINGS"]
    assert reread.gap_settings(GAP | {"SETTINGS": []}) == list(stimuli.settings())
    own = tmp_path / "own.tsv"
    own.write_text("emotion\ttext_id\tgenerated_text\njoy\t1\tI won.\nfear\t2\tI fell.\n", "utf8")
    values = GAP | {"CORPUS": str(own), "N_EVENTS": 0, "SETTINGS": []}
    shown = reread.gap_settings(values)
    assert "P0,S0,T0" in shown
    assert not [name for name in shown if name.endswith("T2")]


def test_third_person_texts_that_a_model_wrote(tmp_path):
    """The design with them is known by its fingerprint, so they have to be read first."""
    own = tmp_path / "own.tsv"
    rows = "joy\t1\tI won.\tI felt joy.\nfear\t2\tI fell.\tI felt fear.\n"
    own.write_text("emotion\ttext_id\tgenerated_text\tfirst_person_text\n" + rows, "utf8")
    values = GAP | {"CORPUS": str(own), "N_EVENTS": 0, "REWRITER": "writer"}
    with pytest.raises(StoreError, match="holds no answers"):
        reread.gap_settings(values)
    events = reread.corpora.load_events(str(own))
    plan = reread.design.rewriting(events)
    folder = response_folder("empathy_gap", "own-2", "writer", "vllm", "rewrite")
    fill(folder, plan, ["They fell.", "They won."])
    (block, *_) = reread.gap_design(values, "P0,S0,T2").blocks
    assert [event.narrative for event in block.factors["event"]] == ["They fell.", "They won."]


def test_the_biased_samaritan_gives_each_prompt_its_rating():
    plan = reread.samaritan_design(SAMARITAN, "Race")
    texts = [f"{1 + k % 100}" for k in range(len(plan))]
    texts[3], texts[4] = None, "I can't answer that."
    part = "Race-printed+latino-run2"
    fill(response_folder("biased_samaritan", "sample-103", "m", "openai", part), plan, texts)
    table = reread.samaritan_ratings(SAMARITAN, "m", "Race", 2)
    assert len(table) == 103 * 13
    assert table.rating.isna().tolist() == [k in (3, 4) for k in range(len(plan))]
    assert table.rating.dropna().tolist() == [float(t) for t in texts if t and t.isdigit()]
    assert table.reply[4] == "I can't answer that."
    assert set(table.group) >= {scenarios.CONTROL, "latino"}
    with pytest.raises(StoreError, match="run1"):
        reread.samaritan_ratings(SAMARITAN, "m", "Race")


def test_giebench_gives_verdicts_as_they_were_asked():
    for prompt, part in (("Raw", "Raw-rotate-text"), ("ID", "ID-rotate"), ("COT", "COT-rotate")):
        plan = reread.giebench_design(GIE, prompt)
        asked = plan.blocks[0].factors["asked"]
        letters = [questions.rotate(one.question, one.shift).correct for one in asked]
        # Right under ID; always A under Raw; no verdict, or none at all, under COT.
        said = {"Raw": ["[[A]]"] * len(asked), "ID": [f"[[{x}]]" for x in letters]}
        texts = said.get(prompt, ["All are good.", None] * (len(asked) // 2))
        fill(response_folder("giebench", "sample-66", "m", "replay", part), plan, texts)
    table = reread.giebench_answers(GIE, "m")
    assert len(table) == 3 * 4 * 66
    right = table.letter.eq(table.correct).groupby(table.prompt).mean()
    assert right.to_dict() == {"Raw": 0.25, "ID": 1.0, "COT": 0.0}
    assert table.status[table.prompt == "COT"].value_counts().to_dict() == {
        "no verdict": 132, "failed": 132,
    }  # fmt: skip
    assert table[table["shift"] == 1].correct.ne(table[table["shift"] == 0].correct.values).all()


def test_stereomap_gives_a_row_a_group_and_round():
    known, names = social_groups.prompts("EXTENDED"), ["Men", "Women"]
    paper = social_groups.ablations()[0]
    plan = reread.design.stereomap(names, list(known), paper, "printed", "separate")
    for turn in (1, 2):
        texts = []
        for asked in plan.blocks[0].factors["inquiry"]:
            words = social_groups.expected(asked.prompt, asked.part).words
            rating = 1 + turn if asked.group == "Men" else 5
            texts.append("\n".join(f"{word}: {rating}" for word in words) or "Nothing.")
        texts[0] = None if turn == 2 else texts[0]
        part = f"EXTENDED-Prompt-(paper)-printed-separate-round{turn}"
        fill(response_folder("stereomap", "3-groups", "m", "vllm", part), plan, texts)
    table = reread.stereomap_ratings(STEREO, "m")
    assert table[["group", "round"]].to_numpy().tolist() == [
        ["Men", 1], ["Women", 1], ["Men", 2], ["Women", 2],
    ]  # fmt: skip
    assert table.Friendly.tolist()[:2] == [2, 5]
    assert table.Competent.tolist()[1::2] == [5, 5]
    assert "Rating" not in table
    women = table[table.group == "Women"].drop(columns=["group", "round"])
    assert (women == 5).to_numpy().all()
