"""Study 1: prompts by hash, golden numbers, slow definitions, known and absent effects."""

import hashlib
import json
from functools import cache
from types import SimpleNamespace

import golden
import numpy as np
import pandas as pd
import pytest

from ingroup import NOTEBOOKS, published
from ingroup.empathy_gap import answers, gap, stimuli
from ingroup.inference import jobs as shared
from ingroup.stats.intervals import holm, mean_over_items
from ingroup.stats.paired import cell_pvalues
from ingroup.tables import InputError

NOTEBOOK = "10_empathy_gap"
MODELS = ["smollm2-135m-instruct", "gemma-3-270m", "qwen2.5-coder-1.5b-instruct"]
# Greedy answers are those that the model wrote; two tokens tie in the stored probabilities.
GREEDY_TIES = {
    ("smollm2-135m-instruct", "P0,S0,T0", "Race or Ethnicity"): -0.760987053,
    ("smollm2-135m-instruct", "P0,S0,T0", "Nationality"): -0.2552789112,
    ("gemma-3-270m", "P0,S0,T0", "Race or Ethnicity"): -0.3176076398,
    ("gemma-3-270m", "P0,S0,T0", "Nationality"): -1.0380888,
    ("qwen2.5-coder-1.5b-instruct", "P0,S0,T0", "Race or Ethnicity"): -0.2340719748,
    ("qwen2.5-coder-1.5b-instruct", "P0,S0,T0", "Nationality"): 0.02930331282,
    ("qwen2.5-coder-1.5b-instruct", "P1,S0,T0", "Religion"): 0.3211740567,
    ("qwen2.5-coder-1.5b-instruct", "P2,S0,T0", "Religion"): -0.2215298438,
}


def parameters(**changed):
    """Return the parameters of a run of one model."""
    return answers.Parameters(**{"MODELS": MODELS[:1], **changed})


# Prompts


def prompts_hash(design):
    """Hash a list of prompts as the golden numbers do."""
    digest = hashlib.sha256()
    for trial in design:
        for turn in trial.chat:
            digest.update(f"{turn['role']}\x1f{turn['content']}\x1e".encode())
        digest.update(b"\x1d")
    return digest.hexdigest()


@cache
def golden_prompts():
    """Return the golden hashes by their labels."""
    prompts = golden.read("prompts")
    return prompts[prompts.study == "empathy_gap"].set_index("labels").sha256.to_dict()


def labels_of(job, events):
    """Write the labels of a job as the golden numbers do."""
    return f"setting={job.labels['setting']};category={job.labels['category']};events={events}"


def test_prompts_are_those_of_the_recordings():
    """All 25 lists of prompts, scored and in free text."""
    scored = {labels_of(job, "sample 12"): job for job in answers.jobs(parameters())}
    events = "the two asked in free text"
    written = {labels_of(job, events): job for job in answers.written(parameters())}
    every = parameters(N_EVENTS=0, SETTINGS=["P0,S0,T0"], CATEGORIES=["Religion"])
    whole = {labels_of(job, "sample all"): job for job in answers.jobs(every)}

    hashes = {
        labels: prompts_hash(job.design) for labels, job in (scored | written | whole).items()
    }
    assert hashes == golden_prompts()


def test_groups_are_those_of_the_paper():
    """86 of 324, 21 of 441 and 5 of 25 pairs are of one group."""
    pairs = {}
    for category in stimuli.identities().category.unique():
        same = stimuli.same_group(category)
        pairs[category] = (same.sum(), same.size)
    assert pairs == {
        "Race or Ethnicity": (86, 324),
        "Nationality": (21, 441),
        "Religion": (5, 25),
    }


def test_table_1_and_4_are_the_printed_ones():
    """Identities and clusters in the order of the paper."""
    printed = published.load("empathy_gap", 1)
    names = stimuli.identities()
    names = names[names.identity != stimuli.UNSPECIFIED]
    assert names.category.value_counts().to_dict() == printed.category.value_counts().to_dict()
    of_race = names.category == "Race or Ethnicity"
    in_print = printed.category == "Race or Ethnicity"
    assert names.identity[of_race].tolist() == printed.identity_name[in_print].tolist()

    printed = published.load("empathy_gap", 4)
    assert stimuli.clusters().label.tolist() == printed.country_label.tolist()
    assert stimuli.clusters().cluster.tolist() == printed.cluster.tolist()


def test_events_are_balanced_and_part_of_more_events():
    """One event of each emotion, then a second one."""
    twelve = stimuli.load_events("sample", 12)
    assert twelve.emotion.is_unique
    assert twelve.emotion.is_monotonic_increasing
    assert set(twelve.event) < set(stimuli.load_events("sample", 20).event)
    assert len(stimuli.load_events("sample")) == 72


def test_own_corpus(tmp_path):
    """Files of a folder are read in order; a missing form leaves its settings out."""
    for name, emotion in (("b", "anger"), ("a", "joy")):
        text = f'emotion\ttext_id\tgenerated_text\n{emotion}\t1\tI said "Oh"\n{emotion}\t2\tb\n'
        (tmp_path / f"{name}.tsv").write_text(text)
    events = stimuli.load_events(str(tmp_path))
    assert events.event.tolist() == ["anger 1", "anger 2", "joy 1", "joy 2"]
    assert events.generated_text[0] == 'I said "Oh"'

    found = answers.jobs(parameters(CORPUS=str(tmp_path), N_EVENTS=0))
    assert {job.labels["setting"][-2:] for job in found} == {"T0"}
    with pytest.raises(InputError, match="lacks the narratives"):
        answers.jobs(parameters(CORPUS=str(tmp_path), N_EVENTS=0, SETTINGS=["P0,S0,T2"]))
    with pytest.raises(InputError, match="has 4 events"):
        stimuli.load_events(str(tmp_path), 5)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("joy\t1\tagain", "line 3, column text_id: found '1', expected each event once"),
        ("joy\t2\t ", "line 3, column generated_text: found ' ', expected a text"),
    ],
)
def test_wrong_corpus_is_named_by_line(tmp_path, row, message):
    """The file, the line, the column, what was found and what is expected."""
    file = tmp_path / "own.tsv"
    file.write_text(f"emotion\ttext_id\tgenerated_text\njoy\t1\ta\n{row}\n")
    with pytest.raises(InputError, match=f"own.tsv, {message}"):
        stimuli.load_events(str(file))


def test_names_that_are_unknown():
    """The message lists what is known."""
    with pytest.raises(InputError, match=r"Religions.*Race or Ethnicity, Nationality, Religion"):
        stimuli.identities("Religions")
    with pytest.raises(InputError, match=r"P9,S0,T0.*P0, P1, P2, P3; S0, S1.*; T0, T1, T2"):
        stimuli.setting("P9,S0,T0")
    with pytest.raises(InputError, match="make data"):
        stimuli.load_events("nowhere.tsv")


def test_a_line_adds_an_identity(tmp_path, monkeypatch):
    """The design and the pairs of one group follow the file."""
    lines = (stimuli.FOLDER / "identities.csv").read_text()
    (tmp_path / "identities.csv").write_text(lines + "Religion,Islam,a Sunni\n")
    monkeypatch.setattr(stimuli, "FOLDER", tmp_path)
    assert stimuli.same_group("Religion").sum() == 8
    events = stimuli.load_events("sample", 12)
    wording = stimuli.setting("P0,S0,T0")
    assert len(stimuli.design(events, wording, "Religion")) == 7 * 7 * 12

    (tmp_path / "identities.csv").write_text("category,group,identity\nAge,Old,an old person\n")
    with pytest.raises(InputError, match=r"line 2, column identity.*'a person' first"):
        stimuli.identities()


# Answers


def test_narratives_are_rewritten(tmp_path, monkeypatch):
    """REWRITER is asked by the prompt of appendix A.2, and T2 shows what it wrote."""
    (tmp_path / "own.tsv").write_text(
        "emotion\ttext_id\tgenerated_text\njoy\t1\tI won\njoy\t2\tb\n"
    )
    own = parameters(CORPUS=str(tmp_path / "own.tsv"), N_EVENTS=0, REWRITER="qwen-2-7b")
    (job,) = answers.rewriting(own)
    prompt = job.design[0].chat[0]["content"]
    assert prompt.endswith("Text: {The person: I won} Rewrite: {")
    assert answers.rewriting(parameters(REWRITER="qwen-2-7b")) == []

    replies = pd.DataFrame({"text": ["The person won}", "{They b.} Bye"]})
    monkeypatch.setattr(shared, "answers", lambda *_: replies)
    last = answers.jobs(own)[-1]
    assert last.labels["setting"] == "P0,S0,T2"
    assert '"The person won"' in last.design[0].chat[1]["content"]
    assert '"They b."' in last.design[1].chat[1]["content"]

    replies.loc[1, "text"] = None
    with pytest.raises(InputError, match="no text of 'joy 2'"):
        answers.jobs(own)


@pytest.fixture
def simulated(monkeypatch):
    """Return a function that answers jobs in free text by arrays of values, and reads the texts."""

    def read(jobs, *values):
        answered = iter(values)

        def reply(job, columns):
            numbers = np.ravel(next(answered))
            texts = pd.Series(numbers).map("{:.0f}".format).where(~np.isnan(numbers), "Let me see.")
            return pd.DataFrame({"text": texts, "finish_reason": "stop", "reasoning": ""})

        monkeypatch.setattr(shared, "answers", reply)
        return answers.load_all(jobs)

    return read


def religion(**changed):
    """List the jobs that ask in free text about religion, in the first setting."""
    few = {"READING": "free", "SETTINGS": ["P0,S0,T0"], "CATEGORIES": ["Religion"]}
    return answers.jobs(parameters(**few, **changed))


def test_rounds_are_averaged(simulated):
    """A trial is lost only if no round has a rating, and each round has a seed of its own."""
    first = np.full((6, 6, 12), 40.0)
    second = np.full((6, 6, 12), 60.0)
    first[0, 0, :2] = np.nan
    second[0, 0, 0] = np.nan
    jobs = religion(ROUNDS=2)
    ratings = simulated(jobs, first, second)
    assert gap.cube(ratings)[0, 1, 0] == 50
    assert gap.cube(ratings)[0, 0, 1] == 60
    assert ratings.status.tolist()[:3] == ["unparsable", "ok", "ok"]

    assert [job.sampling.seed for job in jobs] == [0, 1000]


def test_readings_of_a_scored_answer():
    """The mean of the distribution and the text that greedy decoding wrote."""
    (job,) = answers.jobs(parameters(SETTINGS=["P0,S0,T0"], CATEGORIES=["Religion"]))
    ratings = answers.load(job)
    stored = shared.answers(job)
    weights = np.stack(stored.probabilities)
    expected = weights @ np.arange(101) / weights.sum(axis=1)
    assert ratings.rating[ratings.reading == "expected"].to_numpy() == pytest.approx(expected)
    greedy = ratings.rating[ratings.reading == "greedy"].tolist()
    assert greedy == stored.text.astype(float).tolist()


# Statistics


@pytest.fixture
def values():
    """Return ratings of Religion by 6 perceivers, 6 experiencers and 12 events."""
    return np.random.default_rng(5).normal(60, 5, (6, 6, 12))


def table_of(values):
    """Lay out an array as the long table of ratings about religion."""
    names = stimuli.identities("Religion").identity
    events = range(values.shape[2])
    trials = pd.MultiIndex.from_product([names, names, events], names=answers.FACTORS)
    table = pd.DataFrame({"rating": values.ravel()}, trials).reset_index()
    return table.assign(model="m", reading="free", setting="P0,S0,T0", category="Religion")


def test_matrix_and_gap_by_their_definition(values):
    """Section 3.4, with loops; one lost rating loses its event in all cells."""
    values[2, 3, 4] = np.nan
    kept = np.delete(values, 4, axis=2)
    means = np.zeros((6, 6))
    for perceiver in range(6):
        for experiencer in range(6):
            means[perceiver, experiencer] = kept[perceiver, experiencer].mean()
    z = (means - means.mean()) / np.sqrt(((means - means.mean()) ** 2).mean())
    within = [z[i, i] for i in range(1, 6)]
    between = [z[i, j] for i in range(1, 6) for j in range(1, 6) if i != j]

    (row,) = gap.gaps(table_of(values)).to_dict("records")
    assert row["events"] == 11
    assert row["delta"] == pytest.approx(np.mean(within) - np.mean(between))
    assert row["points"] == pytest.approx(row["delta"] * means.std())


def test_released_variant_by_its_definition(values):
    """Without "a person", rounded to two decimals, standardised alone."""
    values[0, 0, 0] = np.nan  # of "a person", so the released code keeps the event
    rounded = np.vectorize(lambda mean: round(mean, 2))(values[1:, 1:].mean(axis=2))
    z = (rounded - rounded.mean()) / rounded.std()
    own = np.eye(5, dtype=bool)
    (row,) = gap.gaps(table_of(values)).to_dict("records")
    assert row["delta_released"] == pytest.approx(z[own].mean() - z[~own].mean())
    assert gap.rounded(np.array([2.675]), 2) == 2.67


def test_one_event_has_a_gap_and_no_interval(values):
    """An interval over events needs two."""
    (row,) = gap.gaps(table_of(values[:, :, :1])).to_dict("records")
    assert np.isfinite(row["delta"])
    assert np.isnan([row["low"], row["high"]]).all()


def test_flat_matrix_stops_nothing(values):
    """A model that gives one number to all named pairs has no gap."""
    values[1:, 1:] = 0.1
    (row,) = gap.gaps(table_of(values)).to_dict("records")
    assert row["points"] == pytest.approx(0)
    assert np.isnan([row["delta"], row["p"], row["delta_released"]]).all()
    assert gap.by_event(table_of(values)).delta.isna().all()
    assert gap.cells(table_of(np.full((6, 6, 2), 0.1))).z.isna().all()


def test_nothing_to_analyse(values):
    """Where every event lacks a rating, the message says so."""
    values[3, 3] = np.nan
    with pytest.raises(InputError, match="no block has an event"):
        gap.cells(table_of(values))


def test_known_effect_is_recovered(simulated):
    """From replies to Table 2: 8 points among equals, beside levels that are none of it."""
    rng = np.random.default_rng(11)
    levels = rng.normal(0, 5, (6, 1, 1)) + rng.normal(0, 5, (1, 6, 1))
    values = 50 + levels + 8 * np.eye(6)[:, :, None] + rng.normal(0, 3, (6, 6, 12))
    ratings = simulated(religion(), values)
    (row,) = gap.gaps(ratings).to_dict("records")
    assert row["points"] == pytest.approx(8, abs=1)
    assert row["low"] < row["delta"] < row["high"]
    assert row["low"] > 0
    assert row["p"] == 1 / 120
    by_event = gap.by_event(ratings)
    one_name = mean_over_items(by_event["one name"])
    assert one_name.low < 8 < one_name.high
    assert by_event["two names"].isna().all()
    assert by_event.delta.mean() == pytest.approx(row["delta"])


def test_no_effect_is_found_at_its_level(simulated):
    """Levels of perceivers and experiencers are no gap: p < .05 in at most .07 of 200 runs."""
    rng = np.random.default_rng(13)
    jobs = religion()
    pvalues = []
    for _ in range(200):
        levels = rng.normal(0, 5, (6, 1, 1)) + rng.normal(0, 5, (1, 6, 1))
        ratings = simulated(jobs, 50 + levels + rng.normal(0, 5, (6, 6, 12)))
        pvalues += gap.gaps(ratings, 1000).p.tolist()
    assert np.mean(np.array(pvalues) < 0.05) <= 0.07


def test_shown_cells_follow_the_released_divisor(values):
    """A cell is shown if both p are below .05 / 36; "a person" and the diagonal always are."""
    values[1, 2] += 40
    cells = gap.cells(table_of(values))
    shown = gap.matrix(cells, "is_shown")
    pvalues, _ = cell_pvalues(values)
    assert shown[1, 2]
    assert shown[0].all()
    assert shown[:, 0].all()
    assert shown.diagonal().all()
    assert (shown[1:, 1:] == ~(pvalues[1:, 1:] >= 0.05 / 36)).all()


# The notebook


@pytest.fixture(scope="module")
def rows(notebook, tables):
    """Run the notebook, and return its golden quantities."""
    notebook(NOTEBOOK)
    return golden.rows_of("empathy_gap", tables)


def test_golden_numbers(rows):
    """All numbers, as they were computed independently."""
    assert golden.differences("empathy_gap", rows).empty


def test_greedy_is_what_the_model_wrote(rows):
    """Eight gaps for which the stored probabilities tie."""
    greedy = rows[(rows.quantity == "delta") & (rows.reading == "greedy")]
    found = greedy.set_index(["model", "setting", "category"]).value[list(GREEDY_TIES)]
    assert found.astype(float).tolist() == pytest.approx(list(GREEDY_TIES.values()))


def test_printed_numbers_of_the_text(notebook):
    """The mean gaps of section 4, from the printed Table 2."""
    means = notebook(NOTEBOOK).printed02.groupby("model").delta.mean()
    expected = {"Llama-3.1-70B": 0.13, "Llama-3.1-8B": 2.11, "Mistral-7B": 0.77, "Qwen-2-7B": 1.2}
    assert means.round(2).to_dict() == expected


def test_steps_by_hand_are_those_of_the_table(notebook):
    """Delta and p of the block that is computed by hand."""
    ran = notebook(NOTEBOOK)
    row = ran.table02.loc[ran.block]
    assert ran.within - ran.between == pytest.approx(row.delta)
    assert ran.test.pvalue == row.p
    of_categories = ran.table02.loc[ran.block[:-1]]
    assert of_categories.p_holm.tolist() == pytest.approx(holm(of_categories.p).tolist())


def test_headline(notebook):
    """One sentence for each model."""
    headline = notebook(NOTEBOOK).headline
    assert headline.verdict.to_dict() == {
        "smollm2-135m-instruct": "depends on the reading",
        "gemma-3-270m": "opposite",
        "qwen2.5-coder-1.5b-instruct": "depends on the reading",
    }
    assert headline.value.round(2).tolist() == [-0.33, -0.65, 1.08]


def test_verdict_of_few_events_or_without_a_direction():
    """Five events cannot tell; a flat reading contradicts only one that has a direction."""
    cells = json.loads((NOTEBOOKS / f"{NOTEBOOK}.ipynb").read_text("utf8"))["cells"]
    (source,) = ["".join(cell["source"]) for cell in cells if cell["id"] == "c53"]

    def verdict_of(low, high, n_events=12):
        flat = {"reading": "greedy", "estimate": np.nan, "low": np.nan, "high": np.nan, "n": 0}
        mean = {"reading": "expected", "estimate": 1.0, "low": low, "high": high, "n": n_events}
        names = {
            "np": np,
            "published": published,
            "section4": pd.DataFrame([mean, flat]).assign(model="m").set_index("model"),
            "table02": pd.DataFrame({"events": [n_events]}),
            "own_reading": pd.DataFrame({"model": ["m"], "reading": ["expected"]}),
            "out": SimpleNamespace(write=lambda table, name: table),
        }
        exec(source, names)
        return names["headline"].verdict.item()

    assert verdict_of(0.5, 1.5) == "depends on the reading"
    assert verdict_of(-0.5, 1.5) == "cannot be told"
    assert verdict_of(0.5, 1.5, n_events=5) == "cannot be told"


@pytest.mark.parametrize("n_events", [1, 6])
def test_a_small_run_is_recorded(n_events):
    """Scored answers, and the free text of the two events that small runs have as well."""
    typed = parameters(N_EVENTS=n_events, MODELS=["smollm2-135m-instruct"])
    for job in [*answers.jobs(typed), *answers.written(typed)]:
        assert len(job.recorded()) == len(job.design)
