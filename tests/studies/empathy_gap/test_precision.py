"""What bfloat16 changes: by hand, and against the recorded answers in float32."""

from itertools import product

import pandas as pd
import pytest
from scipy import stats

from ingroup import paths
from ingroup.inference import stored
from ingroup.inference.choices import expected_values
from ingroup.studies.empathy_gap import precision
from record import recorded_jobs

MODEL = "qwen2.5-coder-1.5b-instruct"


def test_a_change_by_hand():
    """Own pairs get 3, 1 and 2 points more in three events; one prompt with "a person" changes."""
    names = ["a person", "a Jew", "a Muslim"]
    prompts = list(product(names, names, ["1", "2", "3"]))
    rated = pd.DataFrame(prompts, columns=precision.PROMPT)
    is_own = rated.perceiver.eq(rated.experiencer) & rated.perceiver.ne("a person")
    rated["float32"] = 50.0
    rated["bfloat16"] = 50.0 + rated.event.map({"1": 3, "2": 1, "3": 2}).where(is_own, 0)
    rated.loc[0, "bfloat16"] = 40

    change = precision.change_of_model(rated)

    assert change["answers"] == 27
    assert change["changed"] == pytest.approx(7 / 27)
    assert change["lower"] == pytest.approx(1 / 27)
    assert change["largest"] == 10
    assert (change["gap_float32"], change["gap_bfloat16"]) == (0, 2)
    interval = stats.ttest_1samp([3, 1, 2], 0).confidence_interval()
    assert change["difference"] == 2
    assert (change["low"], change["high"]) == pytest.approx((interval.low, interval.high))


def test_the_file_has_the_recorded_answers_in_float32():
    ratings = pd.read_csv(paths.RECORDINGS / MODEL / "bfloat16.csv")
    (job,) = [
        job for job, _ in recorded_jobs(MODEL) if job.address.name == "P1,S0,T0-religion+choices"
    ]

    responses = stored(job).read()

    means = expected_values(responses, job.sampling.choices).iloc[:, 0]
    assert ratings.mean_float32.to_numpy() == pytest.approx(means.to_numpy(), abs=6e-4)
    assert ratings.greedy_float32.astype(str).tolist() == responses.text.tolist()
    condition = job.design[431].condition
    assert ratings.iloc[431, :2].tolist() == [condition["perceiver"], condition["experiencer"]]
