"""The first paper's design: its size and order, what its calls are, and rewriting (A.2)."""

import numpy as np
import pytest

from events import paper_size_events
from ingroup.inference import EngineError, Reply, Sampling, generate, open_store
from ingroup.studies.empathy_gap import stimuli
from ingroup.studies.empathy_gap.design import rewriting, trials, with_rewrites
from ingroup.tables import InputError


@pytest.fixture(scope="module")
def full():
    return trials(paper_size_events())


def test_the_full_design_has_the_papers_number_of_trials(full):
    assert len(full) == 7 * (19**2 + 22**2 + 6**2) * 6050 == 37_310_350


def test_a_trial_is_rendered_from_its_condition(full):
    trial = full[20_000_000]
    condition = trial.condition
    assert trial.messages == stimuli.setting(condition["setting"]).messages(
        condition["perceiver"],
        condition["experiencer"],
        condition["event"].emotion,
        condition["event"].narrative,
    )


def test_neighbours_differ_in_the_fastest_factor_first():
    events = stimuli.load_events("sample", 12)
    plan = trials(events, ["P0,S0,T0"], ["Religion"])
    factors = ["perceiver", "experiencer", "event"]
    people = stimuli.identities("Religion").identity.tolist()
    keys = [
        (people.index(c["perceiver"]), people.index(c["experiencer"]), c["event"].emotion)
        for c in (trial.condition for trial in plan)
    ]
    assert keys == sorted(keys)
    assert [list(plan[0].condition)[2:], len(plan)] == [factors, 6 * 6 * 12]


def test_another_text_gives_another_fingerprint():
    events = stimuli.load_events("sample", 12)
    same = trials(events.copy()).fingerprint
    assert trials(events).fingerprint == same
    changed = events.copy()
    changed.loc[3, "generated_text"] += "!"
    prints = {
        same,
        trials(changed).fingerprint,
        trials(events, ["P1,S0,T0"]).fingerprint,
        trials(events, None, ["Religion"]).fingerprint,
        rewriting(events).fingerprint,
    }
    assert len(prints) == 5


def test_a_setting_without_its_narrative_is_refused():
    events = stimuli.load_events("sample", 12).assign(third_person_text=np.nan)
    with pytest.raises(InputError, match=r"'third_person_text'.*appendix A\.2"):
        trials(events, ["P0,S0,T2"])
    assert len(trials(events, ["P0,S0,T1"], ["Religion"])) == 432


def test_rewriting_asks_once_an_event():
    events = stimuli.load_events("sample", 12)
    plan = rewriting(events)
    assert len(plan) == 12
    assert events.first_person_text[7] in plan[7].messages[0]["content"]


class Rewriter:
    """Answers a rewrite prompt as a model that follows it: the text, then the closing brace."""

    asks_again = False

    def __init__(self, reply="The person {}.}} Text: {{", fails=False):
        self.reply, self.fails = reply, fails

    def answer(self, conversations, sampling):
        if self.fails:
            return [Reply(None, "failed", error="no net") for _ in conversations]
        texts = [chat[0]["content"].rsplit("The person: ", 1)[1] for chat in conversations]
        return [
            Reply(self.reply.format(text.split("}")[0].removeprefix("I ").rstrip(".")), "stop")
            for text in texts
        ]

    def identity(self):
        return {"engine": "rewriter"}


def rewritten(events, engine, folder):
    plan, sampling = rewriting(events), Sampling()
    store = open_store(folder, plan, engine, sampling)
    return with_rewrites(events, generate(plan, engine, store, sampling))


def test_a_corpus_without_third_person_texts_is_rewritten(tmp_path):
    events = stimuli.load_events("sample", 12).assign(third_person_text=float("nan"))
    done = rewritten(events, Rewriter(), tmp_path)
    for event in done.itertuples():
        assert event.third_person_text == (
            "The person " + event.first_person_text.removeprefix("I ").rstrip(".") + "."
        )
    assert len(trials(done, ["P0,S0,T2"], ["Religion"])) == 432


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        (Rewriter(reply="}} {}"), "event anger 1 has no third-person text in its reply$"),
        (Rewriter(fails=True), "event anger 1 has no third-person text in its reply: no net"),
    ],
)
def test_a_reply_without_a_text_names_its_event(tmp_path, engine, message):
    with pytest.raises(EngineError, match=message):
        rewritten(stimuli.load_events("sample", 12), engine, tmp_path)
