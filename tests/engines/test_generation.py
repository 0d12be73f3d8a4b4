"""Around the loop: folders, models, rewriting into the third person."""

import pytest

from ingroup import corpora, design, paths
from ingroup.inference import (
    EngineError,
    Reply,
    Sampling,
    find_model,
    generate,
    open_store,
    response_folder,
    with_rewrites,
)


class Rewriter:
    """Answers a rewrite prompt as a model that follows it: the text, then the closing brace."""

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
    plan, sampling = design.rewriting(events), Sampling()
    store = open_store(folder, plan, engine, sampling)
    return with_rewrites(events, generate(plan, engine, store, sampling))


def test_a_corpus_without_third_person_texts_is_rewritten(tmp_path):
    events = corpora.load_events("sample", 12).assign(third_person_text=float("nan"))
    done = rewritten(events, Rewriter(), tmp_path)
    for event in done.itertuples():
        assert event.third_person_text == (
            "The person " + event.first_person_text.removeprefix("I ").rstrip(".") + "."
        )
    assert len(design.empathy_gap(done, ["P0,S0,T2"], ["Religion"])) == 432


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        (Rewriter(reply="}} {}"), "event anger 1 has no third-person text in its reply$"),
        (Rewriter(fails=True), "event anger 1 has no third-person text in its reply: no net"),
    ],
)
def test_a_reply_without_a_text_names_its_event(tmp_path, engine, message):
    with pytest.raises(EngineError, match=message):
        rewritten(corpora.load_events("sample", 12), engine, tmp_path)


def test_a_folder_is_one_name_a_level():
    folder = response_folder("empathy_gap", "sample-12", "meta-llama/Llama-3.1-8B", "P0,S0,T0")
    assert folder.relative_to(paths.RESPONSES).parts == (
        "empathy_gap",
        "sample-12",
        "meta-llama--Llama-3.1-8B",
        "P0,S0,T0",
    )


def test_a_model_is_a_folder_of_ours_or_a_name():
    assert find_model("calibrant") == str(paths.MODELS / "calibrant")
    assert find_model("meta-llama/Llama-3.1-8B") == "meta-llama/Llama-3.1-8B"
