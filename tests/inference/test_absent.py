"""What a run says of answers that are not stored: whose, which, why, and what gives them."""

import pytest

from ingroup import paths
from ingroup.inference import Call, Reply, Sampling, StoreError, ask
from toy import Toy, numbers, run

SCORED = Sampling(choices=("0", "1"))
FREE = Sampling()
ONLY_READS = "and this run only reads what is stored of this model"


@pytest.fixture(autouse=True)
def roots(tmp_path, monkeypatch):
    """Responses and recordings of the test's own."""
    for name in ("RESPONSES", "RECORDINGS", "MADE"):
        monkeypatch.setattr(paths, name, tmp_path / name)


def stored_call(model, sampling, prompt):
    """A call that only reads, about one prompt of the third study."""
    labels = {"prompt": prompt}
    return Call("giebench", "sample", model, "stored", prompt, numbers(4), sampling, labels)


def test_free_text_that_is_not_stored_is_called_so(capsys):
    """The model is named as in figures, and what is stored of it is read."""
    scored = stored_call("smollm2-135m-instruct", SCORED, "ID")
    chosen = Reply("1", "stop", 10, 4, 1, probabilities=(0.25, 0.75), mass=(0.5,))
    toy = Toy(lambda *_: chosen, engine="stored", model="smollm2-135m-instruct")
    run(scored.design, scored.folder, toy, sampling=SCORED)
    capsys.readouterr()

    free = stored_call("smollm2-135m-instruct", FREE, "ID")
    assert ask([scored, free], {}) == [scored]
    said = capsys.readouterr().err
    assert said.startswith(f"SmolLM2-135M: free text (ID) is not stored, {ONLY_READS}")


def test_scored_answers_and_free_text_have_parts_of_their_own():
    calls = [stored_call("m", SCORED, prompt) for prompt in ("Raw", "ID", "COT", "mismatch")]
    calls.append(stored_call("m", FREE, "Raw"))
    kinds = r"scored answers \(Raw; ID; COT and 1 more part\) and free text \(Raw\)"
    with pytest.raises(StoreError, match=f"^m: {kinds} are not stored, {ONLY_READS}"):
        ask(calls, {})
