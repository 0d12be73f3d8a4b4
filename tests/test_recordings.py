"""The recordings in the repository: whole, of today's prompts, and each listed."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from ingroup import models, paths
from ingroup.commands.parameters import calls_of, merged
from ingroup.inference import stored, there
from ingroup.inference.reading import Reading
from ingroup.inference.store import read_manifest
from ingroup.studies.empathy_gap import answers
from record import chats, listed, recorded

MODELS = list(listed())


@pytest.mark.parametrize("model", MODELS)
def test_every_recorded_store_is_whole_and_answers_the_prompts_of_today(model):
    folder = paths.RECORDINGS / model
    calls = {call.address: call for call, _ in recorded(model)}
    here = {file.parent.relative_to(folder) for file in folder.rglob("manifest.json")}
    assert here
    assert {call.address for call in there(calls.values())} == here
    for address in here:
        store = stored(calls[address])
        assert store.state() == ([], [], [], [])
        assert (store.manifest["model"], store.manifest["engine"]) == (model, calls[address].engine)
        if models.is_calibrant(model):  # the weights are here, too
            assert store.manifest["revision"] == models.revision(paths.MODELS / model)
        rows = store.read()
        if calls[address].over_choices:
            sizes = rows.probabilities.map(partial(np.sum, dtype=float))
            leads = len(calls[address].sampling.leads)
            assert sizes.between(leads - 0.02, leads + 0.02).all()  # to three digits each


@pytest.mark.parametrize("model", MODELS)
def test_the_card_counts_what_is_there_and_it_is_small(model):
    folder = paths.RECORDINGS / model
    asked = pd.read_csv(folder / "asked.csv")
    here = {str(file.parent.relative_to(folder)) for file in folder.rglob("manifest.json")}
    assert set(asked.call) == here
    assert not asked.call.duplicated().any()
    assert (asked.seconds > 0).all()
    assert models.is_calibrant(model) or "4-bit" in (folder / "README.md").read_text("utf8")
    assert sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) < 25e6


def test_the_recordings_answer_the_chats_that_are_rendered_today():
    """After new recordings, or new stimuli: python data/recordings/record.py --chats."""
    listed_chats = pd.read_csv(paths.RECORDINGS / "chats.csv", dtype=str)
    assert listed_chats.equals(chats())
    known = set(listed_chats.call)
    for file in paths.RECORDINGS.rglob("manifest.json"):
        address = file.parent.relative_to(paths.RECORDINGS).as_posix()
        assert address in known or "chats" in read_manifest(file), address


@pytest.mark.parametrize(
    "notebook", ["10_empathy_gap", "20_biased_samaritan", "30_giebench", "40_stereomap"]
)
def test_every_call_of_a_run_has_the_reading_that_was_asked_for(notebook):
    given = {"MODELS": "smollm2-135m-instruct", "READING": "greedy", "ENDING": "newline"}
    calls = calls_of(notebook, merged(notebook, "demo", given))
    assert {call.reading for call in calls} == {Reading("greedy", "newline")}
    assert any(call.over_choices for call in calls)


def test_recorded_answers_are_read_as_their_call_says():
    """SmolLM2 on religion: few greedy numbers, means between them."""
    given = {"MODELS": "smollm2-135m-instruct", "SETTINGS": "P0,S0,T0", "CATEGORIES": "Religion"}
    values = {}
    for reading in ("greedy", "expected"):
        given["READING"] = reading
        parameters = merged("10_empathy_gap", "demo", given)
        call = next(c for c in calls_of("10_empathy_gap", parameters) if c.over_choices)
        values[reading] = answers.load(call).values
        again = answers.load(call, reading=Reading(reading)).values
        np.testing.assert_array_equal(values[reading], again)
    assert (values["greedy"] == np.rint(values["greedy"])).all()
    assert not (values["expected"] == np.rint(values["expected"])).any()
