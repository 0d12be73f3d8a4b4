"""What every study keeps: calls that are counted without being written out, a load that never
raises, planted answers for the whole design, printed tables that load."""

from importlib import import_module
from itertools import cycle, islice

import numpy as np
import pytest

from ingroup import paths, published
from ingroup.commands.parameters import merged
from ingroup.design import Design
from ingroup.inference import Engine, Reply, ask, call, stored
from ingroup.models import calibrants
from ingroup.studies.stereomap import stimuli as stereomap

# As small as a study can be, so that all of it is asked.
SMALL = {
    "10_empathy_gap": {"N_EVENTS": "2", "SETTINGS": "P0,S0,T0;P0,S1,T0"},
    "20_biased_samaritan": {"RUNS": "1"},
    "30_giebench": {"ORDER": "given"},
    "40_stereomap": {
        "GROUPS": "Men;Women;Nurses;Doctors;Homeless", "ROUNDS": "1", "ABLATION_ROUNDS": "1"
    },
}  # fmt: skip
STATUSES = {
    "ok", "refused", "unparsable", "failed", "missing", "no verdict", "several verdicts", "cut",
    "incomplete", "too few", "too many",
}  # fmt: skip
HOSTILE = [
    None, "", " \n\t", "\x00", "\u202e42", "9" * 5000, "1e999", "NaN", "-0", "[[", "[[A]][[B]]",
    "[[a]]" * 2000, "<script>alert(1)</script>", "{person}", "%s%n", "1." * 4000, "٤٢", "½",
    "I'm sorry, but I can't.", "Friendly: 6, Sincere: zero", "1) a: b\n" * 500, "=1+1",
    "\r", "Rating: 3\rHonest: 4", f"Honest: {'4' * 5000}", f"1. {'9' * 5000}\r2. b",
]  # fmt: skip


def modules(notebook):
    study = notebook[3:]
    names = ("design", "answers", "planted")
    return study, *(import_module(f"ingroup.studies.{study}.{name}") for name in names)


@pytest.fixture(params=SMALL)
def study(request):
    """The study's name, its modules and small parameters of a run."""
    return *modules(request.param), merged(request.param, "demo", SMALL[request.param])


class Hostile(Engine):
    """An engine that answers with anything but an answer."""

    asks_again = False

    def __init__(self):
        self.texts = cycle(HOSTILE)

    def answer(self, conversations, sampling):
        texts = islice(self.texts, len(conversations))
        return [Reply(text, "failed" if text is None else "stop") for text in texts]

    def identity(self):
        return {}

    def close(self):
        pass


@pytest.mark.parametrize("notebook", SMALL)
def test_calls_are_counted_and_indexed_without_being_written_out(notebook):
    """Of the default run: every address once, a trial for every number, the same prompts again."""
    _, design, *_ = modules(notebook)
    values = merged(notebook, "demo", {})
    calls = design.calls(values)
    again = design.calls(values)

    assert len({one.address for one in calls}) == len(calls)
    assert {one.model for one in calls} == {name.split("@")[0] for name in values["MODELS"]}
    assert all(tuple(one.labels) == tuple(calls[0].labels) for one in calls)

    for one, other in zip(calls, again, strict=True):
        assert isinstance(one.design, Design)
        assert one.settled
        assert one.design.fingerprint == other.design.fingerprint
        assert one.design[len(one.design) - 1] == one.design[-1]

        middle = one.design[len(one.design) // 2]

        assert one.design.index(middle.condition) == middle.index == len(one.design) // 2
        assert middle.messages[-1]["role"] == "user"


def test_load_never_raises_on_hostile_text(study, tmp_path, monkeypatch):
    _, design, answers, _, values = study
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    monkeypatch.setattr(call, "make_engine", lambda *_, **__: Hostile())
    calls = design.calls(values | {"MODELS": ["calibrant"]})
    ask(calls, values)

    for one in calls:
        loaded = answers.load(one)
        parts = loaded.values() if isinstance(loaded, dict) else [loaded]
        statuses = set()

        for part in parts:
            if hasattr(part, "counts"):  # arrays: every trial has one of the reasons
                assert part.counts.sum() == part.values.size
                assert (np.isnan(part.values) == (part.status != 0)).all()
                statuses |= set(part.counts.index)
            else:
                assert len(part) == len(one.design) == stored(one).trials
                statuses |= set(part.status)

        assert statuses <= STATUSES


def test_what_is_planted_covers_the_design(study):
    """Every trial of the design has a planted answer, or a planted refusal."""
    name, design, _, planted, values = study
    for model in calibrants():
        answer = planted.Planted(paths.MODELS / model / "planted.yaml")
        for one in design.calls(values):
            for block in one.design.blocks:
                if name == "empathy_gap":
                    assert answer.ratings(block).shape == block.shape
                elif name == "biased_samaritan":
                    assert len(answer.answers(block)) == len(block)
                elif name == "giebench":
                    assert set(answer.letters(block)) <= set("ABCD") | {""}
                else:
                    for asked in block.factors["inquiry"]:
                        for word in stereomap.expected(asked.prompt, asked.part).words:
                            assert 1 <= answer.rating(asked.group, asked.prompt, word) <= 5


@pytest.mark.parametrize("notebook", SMALL)
def test_every_printed_table_loads(notebook):
    files = sorted((paths.PUBLISHED / notebook[3:]).glob("*.csv"))

    assert len(files) >= 8

    for file in files:
        start = file.stem.split("_")[0]
        number = int(start[5:]) if start.startswith("table") else file.stem
        assert len(published.load(notebook[3:], number)) > 0
