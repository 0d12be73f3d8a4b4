"""docs/running.md and README.md: how long a model of one's own takes, from ``asked.csv``."""

import re

import pytest

from ingroup import paths
from ingroup.tables import read_table

PAGE = (paths.ROOT / "docs" / "running.md").read_text("utf8")
README = (paths.ROOT / "README.md").read_text("utf8")
MODELS = ["smollm2-135m-instruct", "gemma-3-270m", "qwen2.5-coder-1.5b-instruct"]
STUDIES = ["empathy_gap", "biased_samaritan", "giebench", "stereomap"]
ALL_PROMPTS = 74_004  # of study 1
# Scored on a GPU, as the model's card says.
ON_A_GPU = {"qwen2.5-coder-1.5b-instruct": ("biased_samaritan/", "race-or-", "nationality")}


def scored_on_two_cores(model, study):
    """Seconds and prompts of the scored jobs of a study."""
    table = read_table(paths.RECORDINGS / model / "asked.csv", ["job", "prompts", "seconds"])
    seconds = 0
    prompts = 0
    for _, row in table.iterrows():
        is_on_a_gpu = any(part in row.job for part in ON_A_GPU.get(model, ()))
        if row.job.startswith(f"{study}/") and row.job.endswith("+choices") and not is_on_a_gpu:
            seconds += int(row.seconds)
            prompts += int(row.prompts)
    return seconds, prompts


def test_the_card_says_what_a_gpu_scored():
    card = " ".join((paths.RECORDINGS / MODELS[2] / "README.md").read_text("utf8").split())
    assert (
        "on GPUs**: scored answers about race and nationality in the first wording and of study 2"
        in card
    )
    assert "in bfloat16**: race and nationality in the six other wordings" in card.replace(
        "In", "in"
    )


@pytest.mark.parametrize("study", STUDIES)
def test_the_seconds_of_a_study_are_those_of_its_jobs(study):
    row = re.search(rf"^\| \d, {study} \| (.+) \|$", PAGE, re.MULTILINE)
    for model, cell in zip(MODELS, row[1].split(" | "), strict=True):
        seconds, prompts = scored_on_two_cores(model, study)
        assert cell == (f"{seconds:,} ({prompts:,})" if prompts else "–"), model


def test_the_hours_are_those_of_the_seconds():
    hours = []
    for model in MODELS[1:]:
        seconds, prompts = scored_on_two_cores(model, "empathy_gap")
        hours.append(seconds / prompts * ALL_PROMPTS / 3600)
    gemma, qwen = hours
    assert f"they take Gemma {gemma:.1f} hours and Qwen {qwen:.1f} hours." in PAGE

    total = sum(scored_on_two_cores(MODELS[0], study)[0] for study in STUDIES)
    assert f"took {total / 3600:.1f} hours for SmolLM2-135M" in README
    assert scored_on_two_cores(MODELS[0], "empathy_gap")[1] == ALL_PROMPTS


def test_both_pages_say_how_ones_own_model_is_scored():
    for page in (PAGE, README):
        (sentence,) = re.findall(r"[^.;]*model\s+writes text[^.]*\.", page)
        assert "READING=expected" in sentence
        assert "READING=greedy" in sentence
