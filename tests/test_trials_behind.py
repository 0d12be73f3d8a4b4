"""From a number to its prompts and answers: the mean of the rows is the number, of all studies."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from ingroup import paths, trials_behind
from ingroup.commands import report_html
from ingroup.commands.run_parameters import defaults
from ingroup.inference import Job, Reply, Sampling, rated
from ingroup.studies.biased_samaritan import answers as samaritan_answers
from ingroup.studies.biased_samaritan import design as samaritan
from ingroup.studies.biased_samaritan import statistics as samaritan_statistics
from ingroup.studies.empathy_gap import answers as empathy_answers
from ingroup.studies.empathy_gap import design as empathy
from ingroup.studies.empathy_gap import statistics as empathy_statistics
from ingroup.studies.empathy_gap.stimuli import identities
from ingroup.studies.giebench import answers as giebench_answers
from ingroup.studies.giebench import design as giebench
from ingroup.studies.giebench import statistics as giebench_statistics
from ingroup.studies.stereomap import answers as stereomap_answers
from ingroup.studies.stereomap import design as stereomap
from ingroup.studies.stereomap import statistics as stereomap_statistics
from ingroup.studies.stereomap import stimuli
from ingroup.tables import InputError
from ingroup.trials_behind import replies_behind
from toy import Toy, religion, run

REAL = "gemma-3-270m"


def of_real(notebook, design, **more):
    """The jobs of a study to one recorded real model."""
    return design.jobs(defaults(notebook) | {"MODELS": [REAL]} | more)


# ---- the mean of the rows is the number of the table ---------------------------------------------


def test_a_cell_of_the_matrix_is_the_mean_of_its_rows():
    jobs = of_real("10_empathy_gap", empathy, SETTINGS=["P0,S0,T0"], CATEGORIES=["Religion"])
    (job,) = rated(jobs)
    values = empathy_answers.load(job).values
    cells = empathy_statistics.cells(values, identities("Religion").identity)

    for cell in (cells.iloc[7], cells.iloc[33]):
        labels = {"perceiver": cell.perceiver, "experiencer": cell.experiencer}
        found = replies_behind(jobs, model=REAL, setting="P0,S0,T0", **labels)
        assert found.rows.value.mean() == pytest.approx(cell["mean"], abs=1e-12)
        assert len(found.rows) == 12
        assert f"mean {cell['mean']:.4f}." in found.sentence
        for chat in found.examples.chat:
            assert chat[0]["content"].startswith(f"You are {cell.perceiver}.")
            assert f"{cell.experiencer} describes" in chat[1]["content"]


def test_the_address_in_the_matrix_leads_to_the_same_rows():
    """A cell begins at `first_trial`, and has a trial per event, as notebook 10 writes it."""
    jobs = of_real("10_empathy_gap", empathy, SETTINGS=["P0,S0,T0"], CATEGORIES=["Religion"])
    (job,) = rated(jobs)
    names = identities("Religion").identity
    cells = empathy_statistics.cells(empathy_answers.load(job).values, names)
    first_trial = 12 * np.arange(len(cells))

    trials = range(first_trial[20], first_trial[20] + 12)
    by_address = replies_behind(jobs, store=trials_behind.store_of(job), trial=trials)

    assert set(by_address.rows.perceiver) == {cells.perceiver[20]}
    assert set(by_address.rows.experiencer) == {cells.experiencer[20]}
    assert by_address.rows.value.mean() == pytest.approx(cells["mean"][20])


def test_helpfulness_is_the_mean_of_its_rows():
    jobs = of_real("20_biased_samaritan", samaritan, N_SCENARIOS=0)
    job = next(job for job in rated(jobs) if job.labels["category"] == "Race")
    cubes = samaritan_answers.cubes(samaritan_answers.load(job))
    printed = samaritan_statistics.helpfulness(cubes["white"]).mean

    found = replies_behind(jobs, model=REAL, round=1, category="Race", group="white")

    assert found.rows.value.mean() == pytest.approx(printed, abs=1e-10)
    assert len(found.rows) == 2 * 103 * 4
    assert len(found.examples) == trials_behind.MAX_EXAMPLES
    shown = found.examples.value
    assert shown.is_monotonic_increasing
    assert (shown.iloc[0], shown.iloc[-1]) == (found.rows.value.min(), found.rows.value.max())


def test_accuracy_is_the_mean_of_its_rows():
    jobs = of_real("30_giebench", giebench)
    (job,) = [job for job in rated(jobs) if job.labels["plan"] == "ID"]
    read = giebench_answers.load(job)
    table = giebench_statistics.accuracy(read[read["shift"] == 0])
    printed = table.set_index("category").accuracy

    whole = replies_behind(jobs, plan="ID", shift=0)
    assert whole.rows.value.mean() == pytest.approx(printed["Overall"])
    of_category = replies_behind(jobs, plan="ID", shift=0, category="Gender")
    assert of_category.rows.value.mean() == pytest.approx(printed["Gender"])
    assert of_category.sentence.startswith("6 verdicts (100 for a right one")


def test_warmth_is_the_mean_of_its_rows():
    jobs = of_real("40_stereomap", stereomap)
    paper = stimuli.ablations()[0]
    read = []
    for job in rated(jobs):
        if job.labels["version"] == "EXTENDED" and job.labels["ablation"] == paper:
            read.append(stereomap_answers.load(job))
    ratings = stereomap_answers.rating_table(pd.concat(read, ignore_index=True))
    words = stimuli.words("EXTENDED")
    scores = stereomap_statistics.round_scores(ratings, words, "drop")
    means = stereomap_statistics.group_means(scores)

    labels = {"version": "EXTENDED", "ablation": paper, "group": "Nurses"}
    of_warmth = list(words[words.family == "Warmth"].word)
    found = replies_behind(jobs, word=of_warmth, **labels)

    assert found.rows.value.mean() == pytest.approx(means.Warmth["Nurses"], abs=1e-10)
    assert list(found.rows.word) == of_warmth
    # The mean that is computed from the stored distribution is the value that the study reads.
    assert found.examples["mean"].to_numpy() == pytest.approx(found.rows.value)
    prefixes = [f"- {word}:" for word in of_warmth]
    assert list(found.examples.answer_prefix) == prefixes
    page = found._repr_html_()
    assert "part: " not in page  # a label without a value in any row
    for prefix in prefixes:
        assert f"<td>after: {prefix}<br>most probable: " in page


def test_a_study_by_name_has_the_jobs_of_its_notebook(monkeypatch, tmp_path):
    """Without a run the parameters are those of the notebook, so a fresh clone shows recordings."""
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    labels = {"model": REAL, "plan": "Raw", "category": "Gender", "shift": 0}
    by_name = replies_behind("giebench", **labels)
    by_jobs = replies_behind(of_real("30_giebench", giebench), **labels)
    pd.testing.assert_frame_equal(by_name.rows, by_jobs.rows)

    with pytest.raises(InputError, match="there is no study 'empathy'; there are empathy_gap, "):
        replies_behind("empathy", model=REAL)


def test_file_and_trial_find_the_stored_answer():
    jobs = of_real("30_giebench", giebench)
    found = replies_behind(jobs, plan="COT", category="Gender", shift=2)
    for example in found.examples.itertuples():
        table = pq.read_table(paths.ROOT / example.store / example.file)
        row = table.slice(example.trial, 1).to_pylist()[0]
        assert row["trial"] == example.trial
        assert row["text"] == example.answer == f"[[{example.letter}]]"
        assert row["mass"] == pytest.approx([example.option_mass])
        best = max(row["probabilities"])
        assert example.most_probable.startswith(f"[[{example.letter}]] ({best:.1%}), ")


# ---- answers made by hand ------------------------------------------------------------------------


FREE = Sampling()


@pytest.fixture
def job_with(tmp_path, monkeypatch):
    """72 trials of religion: the first have these replies, all others say 50."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")

    def ask(*replies, sampling=FREE, model="m", **identity):
        plan = religion(2)
        labels = {"setting": "P0,S0,T0", "category": "Religion"}
        job = Job("empathy_gap", "sample-2", model, "toy", "P0", plan, sampling, labels)
        usual = Reply("50", "stop")
        if sampling.choices:
            usual = Reply("50", "stop", probabilities=(0.25, 0.75), mass=(0.5,))
        left = iter(replies)
        toy = Toy(lambda *_: next(left, usual), engine="toy", model=job.model, **identity)
        run(plan, job.folder, toy, 50, sampling)
        return job

    return ask


HOSTILE = '<script>x</script><img src=x onerror="y">'


def test_each_status_stands_beside_its_text_and_all_of_it_is_escaped(job_with):
    job = job_with(
        Reply(f"I cannot say. {HOSTILE}", "stop"),
        Reply(f"Who knows? {HOSTILE * 10}", "stop"),
        Reply("", "length", reasoning=f"let me think {HOSTILE}"),
        Reply(None, "failed", error=f"no net {HOSTILE}"),
    )
    found = replies_behind([job], trial=range(5))

    statuses = ["refused", "unparsable", "cut", "failed", "ok"]
    assert list(found.rows.status) == statuses
    assert found.examples.answer.isna().tolist() == [False, False, False, True, False]
    assert found.sentence == (
        "5 values (read as: free), mean 50.0000; "
        "without a value: refused 1, unparsable 1, cut 1, failed 1."
    )

    page = found._repr_html_()
    for status in statuses:
        assert f"<td>{status}</td>" in page
    assert "<script" not in page
    assert "<img" not in page
    assert page.count("&lt;script&gt;") >= 13  # each is shown
    assert "(no text)" in page


def test_a_hostile_label_is_escaped(job_with):
    for labels in ({"perceiver": HOSTILE}, {"model": HOSTILE}, {HOSTILE: 1}):
        page = replies_behind([job_with()], **labels)._repr_html_()
        assert "<script" not in page
        assert "&lt;script" in page


def test_a_long_text_is_folded_and_whole(job_with):
    text = "word " * 100 + "end"
    page = replies_behind([job_with(Reply(text, "stop"))], trial=0)._repr_html_()
    assert page.count("<details>") == 2  # the prompt is long, too
    assert f"</summary>{text}</details>" in page
    in_the_book = report_html.output_html(page)
    assert in_the_book.count("<details>") == 2
    assert f"</summary>{text}</details>" in in_the_book

    lines = replies_behind([job_with(Reply("a\n" * 6, "stop"), model="n")], trial=0)
    assert lines._repr_html_().count("<details>") == 2

    short = replies_behind([job_with()], trial=1)
    assert "<td>50</td>" in short._repr_html_()


def test_a_chat_is_shown_as_the_engine_sent_it(job_with):
    kept = replies_behind([job_with()], trial=0).examples.chat[0]
    assert [turn["role"] for turn in kept] == ["system", "user"]

    (folded,) = replies_behind([job_with(model="n", system="fold")], trial=0).examples.chat[0]
    assert folded["role"] == "user"
    assert folded["content"] == f"{kept[0]['content']}\n\n{kept[1]['content']}"


def test_a_distribution_without_steps_is_shown(job_with):
    sampling = Sampling(choices=("0", "100"))
    first = Reply("100", "stop", probabilities=(0.125, 0.875), mass=(0.375,))
    job = job_with(first, Reply(None, "failed"), sampling=sampling)

    found = replies_behind([job], trial=[0, 1])

    one, failed = found.examples.itertuples()
    assert one.value == one.mean == 87.5
    assert one.most_probable == "100 (87.5%), 0 (12.5%)"
    assert one.option_mass == 0.375
    assert (failed.status, failed.most_probable) == ("failed", "")
    assert np.isnan(failed.mean)

    page = found._repr_html_()
    assert "greedy: 100" in page
    assert "option mass: 37.5%" in page


def test_rows_that_are_not_in_full_are_listed_with_their_values(job_with):
    found = replies_behind([job_with(Reply("7", "stop"), Reply("?", "stop"))])
    assert len(found.rows) == 72
    trials = found.examples.trial
    assert (trials.iloc[0], trials.iloc[-1]) == (0, 1)  # the lowest value, and none at all
    page = found._repr_html_()
    assert "All 72 values by trial" in page
    assert "0: 7, 1: nan, 2: 50, " in page

    few = replies_behind([job_with()], experiencer="a Hindu", perceiver="a Jew")
    assert "by trial" not in few._repr_html_()


def test_labels_that_differ_stand_in_the_row_and_others_above(job_with):
    job = job_with()
    two = {"perceiver": "a Hindu", "experiencer": ["a Hindu", "a Muslim"]}
    page = replies_behind([job], **two)._repr_html_()
    above, table = page.split("<table")
    assert "; perceiver: a Hindu</p>" in above
    assert "experiencer" not in above
    assert table.count("experiencer: a Hindu<br>") == 2
    assert "<p>stored in build/responses/empathy_gap/sample-2/m@toy/P0</p>" in above
    assert "<td>part-00001.parquet, trial 71</td>" in table


def test_a_reply_that_was_asked_again_names_both_files(job_with):
    job = job_with(Reply(None, "failed"))
    again = Toy(lambda *_: "60", engine="toy", model="m", asks_again=True)
    run(job.design, job.folder, again)
    (example,) = replies_behind([job], trial=0).examples.itertuples()
    assert example.answer == "60"
    assert example.file == "part-00000.parquet and part-00000.again-1.parquet"
    (later,) = replies_behind([job], trial=51).examples.itertuples()
    assert later.file == "part-00001.parquet"


def test_the_place_of_a_models_folder_is_not_shown(job_with, tmp_path):
    folder = tmp_path / "secret" / "mine"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    job = job_with(model=str(folder))
    name = trials_behind.store_of(job)
    assert (paths.RESPONSES / name.removeprefix("build/responses/") / "manifest.json").is_file()
    assert re.fullmatch(r"build/responses/empathy_gap/sample-2/mine-[0-9a-f]{10}@toy/P0", name)
    page = replies_behind([job], trial=0)._repr_html_()
    assert f"stored in {name}<" in page
    assert "secret" not in page


def test_an_address_of_an_earlier_version_is_read_and_its_place_not_shown(job_with, tmp_path):
    folder = tmp_path / "secret" / "mine"
    folder.mkdir(parents=True)
    job = job_with(model=str(folder))
    address, former = job.addresses
    (paths.RESPONSES / address).parent.rename(paths.RESPONSES / former.parent)

    assert job.folder == paths.RESPONSES / former
    found = replies_behind([job], trial=0)
    assert found.rows.value.tolist() == [50]
    assert trials_behind.store_of(job) == "build/responses/empathy_gap/sample-2/mine@toy/P0"
    assert "secret" not in found._repr_html_()


# ---- nothing is stored ---------------------------------------------------------------------------


def sentence(jobs, **labels):
    found = replies_behind(jobs, **labels)
    assert found.rows.empty
    assert found.examples.empty
    assert found._repr_html_().startswith("<p>")
    assert "<table" not in found._repr_html_()
    return found.sentence


def test_a_label_or_value_that_is_not_there_is_named_with_those_there_are(job_with):
    job = job_with()
    assert sentence([job], perceiver="a Hindoo").startswith(
        "Nothing that is asked or stored here has perceiver 'a Hindoo'; there are a Hindu, "
    )
    assert sentence([job], model="n") == (
        "Nothing that is asked or stored here has model 'n'; there are m."
    )
    assert sentence([job], who="a Hindu").startswith(
        "There is no label 'who'; there are model, mode, "
    )
    assert sentence([job], perciever="a Hindu").endswith("; did you mean perceiver?")


def test_labels_of_two_jobs_are_not_of_one(job_with):
    one = job_with()
    other = replace(one, labels={"setting": "P1,S0,T0", "category": "Nationality"})
    assert sentence([one, other], setting="P1,S0,T0", category="Religion") == (
        "This run asks nothing that has all of these labels together."
    )


def test_an_answer_that_was_never_asked_says_so_and_how_to_ask_it():
    jobs = of_real("10_empathy_gap", empathy)
    said = sentence(jobs, setting="P1,S0,T0", category="Nationality")
    assert said.startswith(
        f"Nothing is stored of {REAL} P1,S0,T0 Nationality scored: it was neither recorded"
        " nor asked (make model"
    )


def test_a_damaged_store_says_which_file(job_with):
    job = job_with()
    (job.folder / "part-00001.parquet").write_bytes(b"x")
    said = sentence([job])
    assert said.startswith("The answers of m P0,S0,T0 Religion cannot be read: build/responses/")
    assert "part-00001.parquet is damaged" in said
