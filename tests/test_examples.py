"""Examples behind the counts: which trials are found, from answers made by hand."""

from dataclasses import replace

import pandas as pd
import pytest

from ingroup import examples, paths
from ingroup.inference import Job, Reply, Sampling
from toy import Toy, religion, run


@pytest.fixture
def job(tmp_path, monkeypatch):
    """72 trials: the first is refused, the second failed, all others say 50."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")
    plan = religion(2)
    labels = {"setting": "P0,S0,T0", "category": "Religion"}
    answers = iter([Reply("I cannot say.", "stop"), Reply(None, "failed")])
    usual = Reply("50", "stop", reasoning="why")
    toy = Toy(lambda *_: next(answers, usual), engine="toy", model="m")
    asked = Job("empathy_gap", "sample-2", "m", "toy", "P0", plan, Sampling(), labels)
    run(plan, asked.folder, toy)
    return asked


def test_trials_without_an_answer_are_found_by_their_status(job):
    assert list(examples.unusual_replies(job)) == [
        (("refused", 'status == "refused"'), 0),
        (("failed", 'status == "failed"'), 1),
    ]


def test_a_trial_that_was_not_asked_is_left_out(job, monkeypatch):
    read = pd.DataFrame({"status": ["missing", "unclear"], "otherwise": ["no", "no"]})
    monkeypatch.setattr(examples.notebook, "read", lambda _: read)
    assert [(kind.name, trial) for kind, trial in examples.unusual_replies(job)] == [("unclear", 1)]


def test_a_trial_that_the_released_rule_reads_otherwise_is_found(job, monkeypatch):
    read = pd.DataFrame({"status": ["ok", "ok", "refused"], "otherwise": ["no", "yes", "yes"]})
    monkeypatch.setattr(examples.notebook, "read", lambda _: read)
    found = [(kind.name, trial) for kind, trial in examples.unusual_replies(job)]
    otherwise = "read otherwise by the released rule"
    assert found == [(otherwise, 1), ("refused", 2), (otherwise, 2)]


@pytest.fixture
def matrix(job):
    """Three cells of the job, one of another model and one of another setting."""
    perceivers = job.design.blocks[0].factors["perceiver"]
    first, second, third, *_ = perceivers
    rows = [
        ("m", "P0,S0,T0", first, second, 1.5, 61.25),
        ("m", "P0,S0,T0", second, second, None, 50.0),
        ("m", "P0,S0,T0", third, first, -2.5, 40.0),
        ("other", "P0,S0,T0", first, first, 9.0, 99.0),
        ("m", "P1,S0,T0", first, first, 9.0, 99.0),
    ]
    columns = ["model", "setting", "perceiver", "experiencer", "z", "mean"]
    return pd.DataFrame(rows, columns=columns)


def test_the_ends_are_of_the_job_alone(job, matrix):
    lowest, highest = examples.extreme_cells(matrix, job)
    assert (lowest[0], lowest[1].z) == ("lowest", -2.5)
    assert (highest[0], highest[1].z) == ("highest", 1.5)
    assert examples.extreme_cells(matrix[matrix.z.isna()], job) == []


def test_the_trials_of_an_extreme_cell_are_one_per_event(job, matrix):
    found = list(examples.extreme_trials(job, matrix))
    kinds = list(dict.fromkeys(kind for kind, _ in found))
    assert [kind.name.split(",")[0] for kind in kinds] == ["the lowest cell", "the highest cell"]
    assert kinds[0].name.endswith("mean 40.0")

    of_lowest = [trial for kind, trial in found if kind == kinds[0]]
    assert len(of_lowest) == 2
    cell = matrix.iloc[2]
    for trial in of_lowest:
        condition = job.design[trial].condition
        assert condition["perceiver"] == cell.perceiver
        assert condition["experiencer"] == cell.experiencer
    shows = f'metadata.perceiver == "{cell.perceiver}" and metadata.experiencer == '
    assert kinds[0].filter == f'{shows}"{cell.experiencer}"'


@pytest.mark.parametrize(
    ("n", "shown"),
    [(1, [0]), (3, [0, 1, 2]), (4, [0, 2]), (7, [0, 3, 6])],
)
def test_an_excerpt_has_at_most_three_trials_evenly_through_all(job, n, shown):
    rows = list(examples.excerpt([(job, trial) for trial in range(n)]))
    assert [row["trial"] for row in rows] == shown
    assert [row["excerpt"] for row in rows] == list(range(1, len(shown) + 1))


def test_an_excerpt_shows_prompt_reasoning_and_reply(job):
    (row,) = examples.excerpt([(job, 5)])
    assert (row["reply"], row["reasoning"]) == ("50", "why")
    assert row["prompt"] == "\n\n".join(turn["content"] for turn in job.design[5].messages)
    assert row["job"] == job.title


def names_of(rows):
    """The kind, the number of its trials and the first trial of each kind."""
    return [(row["kind"], row["trials"], row["trial"]) for row in rows if row["excerpt"] == 1]


def test_examples_of_a_study_are_of_its_replies_and_its_matrix(job, matrix, tmp_path):
    """Cells count a trial per event; the whole study has a matrix only after its notebook ran."""
    without_matrix = list(examples.examples_of_study([job], tmp_path))
    assert names_of(without_matrix) == [("refused", 1, 0), ("failed", 1, 1)]
    assert without_matrix[0]["model"] == "m"
    assert without_matrix[0]["filter"] == 'status == "refused"'
    assert without_matrix[0]["reply"] == "I cannot say."

    matrix.to_csv(tmp_path / "matrix.csv", index=False)
    kinds = names_of(examples.examples_of_study([job], tmp_path))
    assert kinds[:2] == [("refused", 1, 0), ("failed", 1, 1)]
    assert [(kind.split(",")[0], number) for kind, number, _ in kinds[2:]] == [
        ("the lowest cell", 2),
        ("the highest cell", 2),
    ]


def test_the_matrix_is_looked_up_for_the_first_job_of_a_model(job, matrix, tmp_path):
    """The second job has the same answers, but no cell of the matrix is named after it."""
    matrix.to_csv(tmp_path / "matrix.csv", index=False)
    second = replace(job, labels={"setting": "P2,S0,T0", "category": "Religion"})

    kinds = names_of(examples.examples_of_study([job, second], tmp_path))
    assert kinds[0] == ("refused", 2, 0)
    assert len(kinds) == 4

    kinds = names_of(examples.examples_of_study([second, job], tmp_path))
    assert [kind for kind, _, _ in kinds] == ["refused", "failed"]


@pytest.mark.parametrize("change", [{"settled": False}, {"sampling": Sampling(choices=("0", "1"))}])
def test_jobs_that_have_no_reply_to_show_are_left_out(job, change, tmp_path):
    assert list(examples.examples_of_study([replace(job, **change)], tmp_path)) == []


def test_the_matrix_of_a_model_whose_answers_are_scored_is_left_out(job, matrix, tmp_path):
    """Its cells are means of scores, and not of the replies that it gave as well."""
    matrix.to_csv(tmp_path / "matrix.csv", index=False)
    scored = replace(job, sampling=Sampling(choices=("0", "1")), part="scored")
    kinds = names_of(examples.examples_of_study([scored, job], tmp_path))
    assert [kind for kind, _, _ in kinds] == ["refused", "failed"]


def test_a_large_job_is_not_looked_through(job, monkeypatch, tmp_path):
    monkeypatch.setattr(examples, "MAX_TRIALS_OF_JOB", 71)
    assert list(examples.examples_of_study([job], tmp_path)) == []
    monkeypatch.setattr(examples, "MAX_TRIALS_OF_JOB", 72)
    assert len(list(examples.examples_of_study([job], tmp_path))) == 2
