"""What a run says of answers that are not stored: whose, which, why, and what gives them."""

import pytest

from ingroup import paths
from ingroup.inference import Job, Reply, Sampling, StoreError, ask
from toy import Toy, numbers, run

SCORED = Sampling(choices=("0", "1"))
FREE = Sampling()
NOT_ASKED = "not asked for in this run"


@pytest.fixture(autouse=True)
def roots(tmp_path, monkeypatch):
    """Responses and recordings of the test's own."""
    for name in ("RESPONSES", "RECORDINGS", "MADE"):
        monkeypatch.setattr(paths, name, tmp_path / name)


def stored_job(model, sampling, prompt):
    """A job that only reads, about one prompt of the third study."""
    labels = {"prompt": prompt}
    return Job("giebench", "sample", model, "stored", prompt, numbers(4), sampling, labels)


def test_free_text_that_is_not_stored_is_called_so(capsys):
    """The model is named as in figures, and what is stored of it is read."""
    scored = stored_job("smollm2-135m-instruct", SCORED, "ID")
    chosen = Reply("1", "stop", 10, 4, 1, probabilities=(0.25, 0.75), mass=(0.5,))
    toy = Toy(lambda *_: chosen, engine="stored", model="smollm2-135m-instruct")
    run(scored.design, scored.folder, toy, sampling=SCORED)
    capsys.readouterr()

    free = stored_job("smollm2-135m-instruct", FREE, "ID")
    assert ask([scored, free], {}) == [scored]
    said = capsys.readouterr().err
    assert said.startswith(f"SmolLM2-135M: free text (ID) is not stored, and is {NOT_ASKED}")


def test_scored_answers_and_free_text_have_parts_of_their_own():
    jobs = [stored_job("m", SCORED, prompt) for prompt in ("Raw", "ID", "COT", "mismatch")]
    jobs.append(stored_job("m", FREE, "Raw"))
    kinds = r"scored answers \(Raw; ID; COT and 1 more part\) and free text \(Raw\)"
    with pytest.raises(StoreError, match=f"^m: {kinds} are not stored, and are {NOT_ASKED}"):
        ask(jobs, {})


def test_a_model_that_lacks_everything_is_named_with_the_command_that_asks_it():
    """No notebook goes on after this sentence, so the box above its results cannot say it."""
    lacking = [stored_job("qwen2.5-coder-1.5b-instruct", SCORED, "ID")]
    with pytest.raises(StoreError) as error:
        ask(lacking, {})
    remedy = "make model, then MODELS=qwen2.5-coder-1.5b-instruct@transformers asks it now"
    told = f"Qwen2.5-Coder-1.5B: scored answers (ID) are not stored, and are {NOT_ASKED} ({remedy})"
    assert str(error.value) == told

    lacking.append(stored_job("m", SCORED, "ID"))
    with pytest.raises(StoreError) as error:
        ask(lacking, {})
    assert str(error.value) == f"{told}\nm: scored answers (ID) are not stored, and are {NOT_ASKED}"
