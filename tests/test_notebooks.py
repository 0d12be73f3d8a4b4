"""Notebooks: the same headings, no outputs, cells that fit a screen; and the studies run."""

import json
import pkgutil
import re
import shutil
from concurrent.futures import ThreadPoolExecutor

import nbformat
import numpy as np
import pandas as pd
import pytest

from ingroup import paths
from ingroup.commands import run, run_parameters, settings
from ingroup.notebook import parameters_of_run as parameters_of_run
from ingroup.stats import multiverse
from ingroup.studies.biased_samaritan import design as samaritan
from ingroup.studies.biased_samaritan import group_profile as samaritan_profile
from ingroup.studies.biased_samaritan import stimuli as scenarios
from ingroup.studies.empathy_gap import answers as empathy_answers
from ingroup.studies.empathy_gap import design as empathy
from ingroup.studies.giebench import stimuli
from ingroup.trials_behind import replies_behind

HEADINGS = [
    "Question",
    "Parameters",
    "Stimuli",
    "Generation",
    "Parsing",
    "Statistics",
    "Figures",
    "Printed versus here",
    "Limits",
]
ALL = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
STUDIES = [file for file in ALL if file.stem in settings.first_notebooks()]


def read(file):
    return nbformat.read(file, as_version=4)


def cells(file, kind):
    return [cell for cell in read(file).cells if cell.cell_type == kind]


def prose(file):
    """All text of a notebook."""
    return "\n".join(cell.source for cell in cells(file, "markdown"))


def tags(cell):
    return cell.metadata.get("tags", [])


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.stem)
def test_a_study_has_the_nine_headings(file):
    headings = re.findall(r"^## (.+)$", prose(file), re.MULTILINE)
    assert headings == HEADINGS


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.stem)
def test_a_notebook_ends_with_something_to_try_and_an_exercise_whose_solution_is_folded(file):
    assert re.search("^##+ Try it$", prose(file), re.MULTILINE)

    *_, question, solution = read(file).cells
    assert question.source.startswith("### Exercise")
    assert solution.metadata.tags == ["solution"]
    assert solution.metadata.jupyter.source_hidden
    # After all cells have run, the answer would stand below the exercise.
    assert solution.metadata.jupyter.outputs_hidden

    first_line, *_, last_line = solution.source.splitlines()
    assert first_line.startswith("# ")
    assert last_line == "answer"


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.stem)
def test_a_notebook_is_committed_clean_and_readable(file):
    nbformat.validate(read(file))

    parameter_cells = 0
    for cell in cells(file, "code"):
        assert not cell.outputs
        assert cell.execution_count is None
        assert "../" not in cell.source

        most = 40  # it fits on a screen
        if "parameters" in tags(cell):
            parameter_cells += 1
            most = 50  # a parameter a line
        assert cell.source.count("\n") < most

    assert parameter_cells == 1


FOLDER = paths.BUILD / "runs" / "test"
TABLES = FOLDER / "tables"


def executed(notebook, **given):
    """The notebook, run with those of some parameters that it takes; files go to ``FOLDER``."""
    values = run_parameters.merged_parameters(notebook, "demo", given, run="test", shared=True)
    target = run.execute(notebook, values, run.Progress(notebook, alone=False))

    text = target.read_text("utf8")
    assert "application/vnd.jupyter.widget" not in text
    for cell in json.loads(text)["cells"]:
        for output in cell.get("outputs", []):
            assert output["output_type"] != "error"
            # The notebooks warn of small option masses themselves; Python warns with a category.
            printed = "".join(output.get("text", []))
            assert not re.search(r"\wWarning", printed)


TWELVE = {
    "GROUPS": "Men;Women;Nurses;Doctors;Lawyers;Homeless;Lower-class;Elderly;Asians;Muslims;"
    "Christians;Poor Blacks",
    "ROUNDS": "2",
    "ABLATION_ROUNDS": "2",
}


CALIBRANTS = ["calibrant", "calibrant-null"]


def of_calibrants(table):
    """The rows of a table that are of one of the two calibrants."""
    return table[table.model.isin(CALIBRANTS)]


def hardly_a_rating(source):
    """Recordings of one who rates groups in the first scenario alone, and a gender in none."""
    rows = []
    for category in scenarios.categories():
        trials = samaritan.trials(scenarios.load_scenarios(source), category)
        for number, trial in enumerate(trials):
            prompt = trial.condition["prompt"]
            is_later = prompt.scenario > 1
            is_silent = {
                "Gender": True,
                "Race": is_later,
                "Age": is_later and prompt.group == "senior",
            }[category]
            if prompt.group == scenarios.CONTROL:
                is_silent = False

            response = "No idea." if is_silent else str(40 + number % 17)
            rows.append((trial.messages[0]["content"], response))
    return pd.DataFrame(rows, columns=["prompt", "response"]).drop_duplicates("prompt", keep="last")


def study(notebook, given):
    """A study's first notebook, then what goes beyond the paper, if there is such a one."""
    executed(notebook, **given)
    for beyond in paths.NOTEBOOKS.glob(f"{notebook[0]}?_{notebook[3:]}_beyond.ipynb"):
        executed(beyond.stem, **given)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The four studies, two at a time as make runs them, on few items; no old file is there."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    folder = tmp_path_factory.mktemp("few")

    scenario_table = scenarios.load_scenarios()
    first_four = scenario_table[scenario_table.scenario <= 4]
    first_four.to_csv(folder / "four.csv", index=False)
    recorded = hardly_a_rating(folder / "four.csv")
    recorded.to_csv(folder / "said.csv", index=False)

    questions = {}
    for key, item in json.loads((paths.SAMPLE / "giebench.json").read_text("utf8")).items():
        if item["category"] in ("Gender", "Economy"):
            questions[key] = item
    (folder / "some.json").write_text(json.dumps(questions), "utf8")

    models = ";".join(CALIBRANTS)
    few = {
        "10_empathy_gap": {"N_EVENTS": "2", "SETTINGS": "P0,S0,T0", "N_RESAMPLES": "200"},
        "20_biased_samaritan": {
            "MODELS": f"{models};somebody@replay",
            "RECORDINGS": str(folder / "said.csv"),
            "SCENARIOS": str(folder / "four.csv"),
        },
        "30_giebench": {"QUESTIONS": str(folder / "some.json"), "MODELS": models},
        "40_stereomap": {"N_RESAMPLES": "5", "MODELS": models, **TWELVE},
    }
    with ThreadPoolExecutor(2) as pool:
        yield {name: pool.submit(study, name, given) for name, given in few.items()}


def answer_to(notebook):
    """The exercise's answer, as the executed solution shows it."""
    copy = read(paths.executed(notebook, "test"))
    (solution,) = [cell for cell in copy.cells if "solution" in tags(cell)]
    return solution.outputs[-1].data["text/plain"]


def numbers_in(answer):
    """The number at the end of each line of an answer."""
    numbers = re.findall(r"-?\d+\.\d+$", answer, re.MULTILINE)
    return [float(number) for number in numbers]


def figures_of(study):
    """Names of the figures that are there as PDF and PNG."""
    drawn = (FOLDER / "figures" / study).glob("*.pdf")
    return {file.stem for file in drawn if file.with_suffix(".png").exists()}


def test_the_empathy_gap_runs_from_prompt_to_figure(ran):
    ran["10_empathy_gap"].result()
    drawn = figures_of("empathy_gap")
    assert {"figure2", "figure3", "figure4", "figure5", "figure6"} <= drawn
    assert {"gap_overview", "ground_truth_versus_here"} <= drawn

    gaps = pd.read_csv(TABLES / "empathy_gap" / "table02_delta.csv")
    is_control = gaps.model.isin(CALIBRANTS)
    assert is_control.sum() == 3 * 2
    assert gaps[~is_control].model.nunique() == 3  # their recordings hold both events
    calibrant = gaps[gaps.model == "calibrant"]
    assert (calibrant.p_two_sided < 0.05).all()

    responses = of_calibrants(pd.read_csv(TABLES / "empathy_gap" / "responses.csv"))
    counts = responses[["ok", "refused", "unparsable", "failed", "missing"]]
    assert counts.sum().sum() == 2 * 881 * 2

    given = {"N_EVENTS": "2", "SETTINGS": "P0,S0,T0", "CATEGORIES": "Religion"}
    jobs = empathy.jobs(run_parameters.merged_parameters("10_empathy_gap", "demo", given))

    # The address of a cell leads to its two answers.
    matrix = pd.read_csv(TABLES / "empathy_gap" / "matrix.csv")
    of_religion = matrix[matrix.category == "Religion"]
    for model, own in of_religion.groupby("model"):
        cell = own.iloc[9]
        trials = (cell.first_trial, cell.first_trial + 1)
        rows = replies_behind(jobs, model=model, store=cell.store, trial=trials).rows
        assert set(rows.perceiver) == {cell.perceiver}
        assert set(rows.experiencer) == {cell.experiencer}
        assert rows.value.mean() == pytest.approx(cell["mean"])

    # The exercise, without the library's statistics: two events, of which each is left out once.
    job = jobs[0]
    values = empathy_answers.load(job).values

    def gap(cells):
        z = ((cells - cells.mean()) / cells.std())[1:, 1:]
        is_same_group = np.eye(len(z), dtype=bool)
        return z[is_same_group].mean() - z[~is_same_group].mean()

    gap_of_both = gap(values.mean(axis=2))
    moved = [gap(values[..., event]) - gap_of_both for event in (0, 1)]
    answer = float(answer_to("10_empathy_gap"))  # to four decimals
    assert answer == pytest.approx(max(moved, key=abs), abs=5.1e-5)

    # The one beyond the paper: what a hand does in two steps is what least squares found in one.
    kinds = pd.read_csv(TABLES / "empathy_gap" / "kinds.csv")
    kinds = kinds[kinds.model == kinds.model[0]]  # the first model, which the exercise takes
    kinds = kinds[kinds.pairs != "one name beyond two names"]
    assert kinds.pairs.tolist() == ["one name", "two names"]
    beyond = answer_to("11_empathy_gap_beyond")
    lines = re.findall(r"^(\w+ names?) +(\S+) +(\S+)$", beyond, re.M)
    for (kind, by_hand, by_fit), row in zip(lines, kinds.itertuples(), strict=True):
        assert kind == row.pairs
        assert float(by_hand) == pytest.approx(row.difference, abs=5.1e-5)
        assert float(by_fit) == pytest.approx(row.difference, abs=5.1e-5)


def test_the_biased_samaritan_runs_from_prompt_to_figure(ran):
    ran["20_biased_samaritan"].result()
    drawn = figures_of("biased_samaritan")
    assert {"figure1", "figure2", "figure3", "bias_overview", "repeatability"} <= drawn
    assert {"printed_landscape", "ground_truth_versus_here"} <= drawn

    tables = TABLES / "biased_samaritan"
    responses = pd.read_csv(tables / "responses.csv")
    counts = responses.groupby(["model", "round"]).sum(numeric_only=True)
    assert counts.sum(axis=1).tolist() == [4 * 4 * (11 + 8 + 8)] * 4

    bias = pd.read_csv(tables / "table01_02_03_bias.csv")
    assert len(bias) == 12 * 3 + 3
    repeated = pd.read_csv(tables / "table12_13_14_repeatability.csv")
    assert len(repeated) == 12 + 3

    bias = bias.query("model == 'calibrant' and round == 1")
    beside = pd.read_csv(tables / "bias_beside_brittleness.csv")
    joined = bias.merge(
        beside, on=["model", "round", "category", "group"], suffixes=("", "_beside")
    )
    expected = joined[joined.significant_holm & ~joined.exceeds].group
    answer = answer_to("21_biased_samaritan_beyond")
    named = [group for group in bias.group if f" {group} " in answer]
    assert named == expected.tolist()


def test_intervals_that_overlap_are_counted_by_hand():
    """The exercise of 20, of a bias that overlaps, one that does not, one that is no bias."""
    groups = ["control", "senior", "teenager", "young_adult"]
    about = pd.DataFrame({"model": "m", "round": 1, "category": "Age", "group": groups})
    helpful = about.assign(low=[50, 51, 53, 50], high=[52, 55, 57, 54])
    bias = about[1:].assign(significant_holm=[True, True, False])

    names = {
        "table06to08": helpful,
        "table01to03": bias,
        "KEY": ["model", "round", "category"],
        "stimuli": scenarios,
    }
    solution = cells(paths.NOTEBOOKS / "20_biased_samaritan.ipynb", "code")[-1]
    exec(solution.source, names)

    assert names["answer"].to_dict("index") == {"m": {"overlap": 1, "of": 2}}


def test_a_model_with_hardly_a_rating_is_named_and_left_out(ran):
    """One scenario with a rating of seniors and of every race, none with one of a gender."""
    ran["20_biased_samaritan"].result()
    copy = read(paths.executed("20_biased_samaritan", "test"))
    printed = []
    for cell in copy.cells:
        printed += [output.get("text", "") for output in cell.get("outputs", ())]
    text = "\n".join(printed)
    assert "somebody, 1, Age: senior is left out, 1 scenario(s) with what is compared, exp" in text
    assert "somebody, 1, Race: white is left out, 1 scenario(s)" in text
    assert "somebody, 1, Gender: male is left out, 0 scenario(s)" in text

    bias = pd.read_csv(TABLES / "biased_samaritan" / "table01_02_03_bias.csv")
    bias = bias.query("model == 'somebody'")
    assert bias.category.tolist() == ["Age"] * 3
    assert set(bias.group) == {"teenager", "young_adult", "middle_aged"}


def test_giebench_runs_from_prompt_to_figure(ran):
    ran["30_giebench"].result()
    names = {"figure1", "figure3", "position", "mismatch", "printed_landscape"}
    assert names <= figures_of("giebench")

    tables = TABLES / "giebench"
    accuracy = pd.read_csv(tables / "table01_02_06_accuracy.csv")
    assert accuracy.n.tolist() == [6, 6, 12] * 3 * 2
    # Male and Female, and the three pairs of incomes: six and four items each, at both prompts.
    swapped = pd.read_csv(tables / "table03_07_mismatch.csv")
    assert swapped.n.tolist() == [4, 4, 4, 6] * 2
    # At least four times 2 / 2**6, after Holm.
    assert set(swapped.cot_finding) == {"could not have been significant"}
    assert len(pd.read_csv(tables / "position_test.csv").p_holm_least) == 3 * 2

    overall = accuracy[(accuracy.model == "calibrant") & (accuracy.category == "Overall")]
    overall = overall.set_index("prompt")
    gains = []
    for items in (overall.n, overall.n - overall.without):
        share = overall.right / items
        gains.append(100 * (share["ID"] - share["Raw"]))
    assert numbers_in(answer_to("30_giebench")) == pytest.approx(gains, abs=1e-4)

    # The one beyond the paper, from its table: of three positions, without the favourite letter.
    position = pd.read_csv(tables / "position.csv")
    shares = []
    for _, rows in position.groupby(["model", "prompt"], sort=False):
        rows = rows.sort_values(["chosen", "position"], ascending=[False, True], kind="stable")
        rest = rows[1:]
        shares.append(100 * rest.right.sum() / rest.n.sum())
    lines = re.findall(r"([\d.]+) +([\d.]+)$", answer_to("32_giebench_beyond"), re.MULTILINE)
    without_favourite = [float(number) for _, number in lines]
    assert without_favourite == pytest.approx(shares, abs=1e-4)

    # Their figures come back from the tables, byte for byte; of other studies test_redraw looks at
    # what the cells need.
    before = {}
    for file in (FOLDER / "figures" / "giebench").iterdir():
        before[file] = file.read_bytes()
        file.unlink()
    for notebook in ("30_giebench", "32_giebench_beyond"):
        assert run.main([notebook, "--redraw", "--run", "test"]) == 0
    for file, content in before.items():
        assert file.read_bytes() == content, file


def test_giebench_items_are_built_from_topics_to_letters(ran):
    """Without a model: the made-up sheet of six topics, of which four get a label."""
    executed("31_giebench_construction")

    tables = TABLES / "giebench"
    assert (tables / "construction_sheet.csv").exists()
    labels = pd.read_csv(tables / "construction_labels.csv")
    assert labels.state.tolist() == [
        "agreed",
        "agreed",
        "discussed",
        "removed",
        "discussed",
        "to discuss",
    ]

    # Pairs that agree 1, 1, 0.6, 0.4, 0.6: P = 0.72; 13 of 25 marks are positive: Q = 0.5008.
    kappa = pd.read_csv(tables / "construction_kappa.csv", index_col=0).kappa.iloc[0]
    assert kappa == pytest.approx((0.72 - 0.5008) / (1 - 0.5008))
    numbers = numbers_in(answer_to("31_giebench_construction"))
    assert numbers == pytest.approx([0.72, 0.5008, kappa], abs=1e-4)

    def right_answer(item):
        return item.answers[stimuli.LETTERS.index(item.correct)]

    published = {item.question: item for item in stimuli.load_questions()}
    items = stimuli.load_questions(tables / "construction_items.json")
    labelled = labels[labels.label.notna()]
    assert [item.question for item in items] == labelled.topic.tolist()
    for item in items:
        assert right_answer(item) == right_answer(published[item.question])


def test_stereomap_runs_from_prompt_to_figure(ran):
    """Twelve groups, two rounds; every table and figure of the paper that a run can have."""
    ran["40_stereomap"].result()
    names = {
        "figure2",
        "figure3",
        "figure5",
        "figure6",
        "figure6_models",
        "ground_truth_versus_here",
    }
    assert names <= figures_of("stereomap")

    tables = TABLES / "stereomap"
    recovered = pd.read_csv(tables / "ground_truth_versus_here.csv").set_index(["model", "version"])
    of_calibrant = recovered.loc[("calibrant", "EXTENDED")]
    assert of_calibrant["r of Competence"] > 0.9
    assert of_calibrant["r of Warmth"] > 0.9

    prompts = 12 * (7 * 2 + 3 * 2) + 5 * 21 * 2  # ORIGINAL has five of these groups
    replies = pd.read_csv(tables / "responses.csv")
    replies = replies[replies.model.str.startswith("calibrant")].select_dtypes("number")
    assert replies.to_numpy().sum() == 2 * prompts

    clusters = pd.read_csv(tables / "table02_05_clusters.csv").query("version == 'EXTENDED'")
    clusters["distance"] = clusters.difference.abs()
    means = clusters.groupby(["model", "way"]).distance.mean().unstack()
    lines = re.findall(r"^(calibrant\S*) +([\d.]+) +([\d.]+)", answer_to("40_stereomap"), re.M)
    models = {model for model, _, _ in lines}
    assert models == set(means.index)
    for model, same, other in lines:
        assert float(same) == pytest.approx(means.loc[model, "same rounds"], abs=1e-4)
        assert float(other) == pytest.approx(means.loc[model, "other rounds"], abs=1e-4)


def test_stereomap_keywords_run_on_the_answers_of_the_map(ran):
    """After the run above, whose answers it reads."""
    ran["40_stereomap"].result()
    executed("41_stereomap_keywords", CLUSTERS="2", **TWELVE)
    assert {"figure4", "figure7", "figure8"} <= figures_of("stereomap")

    tables = TABLES / "stereomap"
    keywords = pd.read_csv(tables / "table03_10_reason_keywords.csv")
    assert set(keywords.setting) == {"maxsum of 20", "MMR 0.7", "MMR 0.2"}
    sheet = pd.read_csv(tables / "human_evaluation_sheet.csv")
    assert set(sheet.group) <= set(TWELVE["GROUPS"].split(";"))
    varied = pd.read_csv(tables / "table13_14_sensitivity.csv")
    varied = varied[varied.model.str.startswith("calibrant")]
    assert varied.groupby("model").size().tolist() == [4, 4]

    # As often as given, the share that has a word is the last line of Table 15.
    coverage = pd.read_csv(tables / "table15_coverage.csv").query("model == 'calibrant'")
    answer = answer_to("41_stereomap_keywords")
    as_given, once = re.findall(r"([\d.]+)$", answer, re.M)[:2]
    assert float(as_given) == pytest.approx(coverage.coverage_pct.max(), abs=0.01)
    assert 0 < float(once) <= 100


def check_the_families_of_the_multiverse(tables):
    """On the path that a notebook takes, the multiverse corrects the same tests to the same p."""
    settings = pd.read_csv(tables / "empathy_gap" / "table02_delta.csv")
    settings = settings.dropna(subset="p_two_sided")
    tests = settings.groupby(["model", "setting"]).holm_tests.max()
    walked = pd.read_csv(tables / "synthesis" / "multiverse_empathy_gap.csv")
    claims = walked.groupby(["model", "setting"]).claim.nunique()
    of_both = tests.index.intersection(claims.index)
    assert len(of_both) > 0
    assert tests[of_both].tolist() == claims[of_both].tolist()

    groups = pd.read_csv(tables / "biased_samaritan" / "table01_02_03_bias.csv")
    groups = of_calibrants(groups)  # the synthesis reads no replayed one
    walked = pd.read_csv(tables / "synthesis" / "multiverse_biased_samaritan.csv")
    path = walked.query(
        "parsing == 'sound' and reading == ['free', 'expected, turn'] and unit == 'scenario'"
        " and exclusion == 'step by step' and phrasing == 'all' and control == 'its own'"
        " and rounding == 'none' and correction == 'Holm'"
    )
    joined = groups.merge(
        path, left_on=["model", "round", "group"], right_on=["model", "round", "claim"]
    )
    assert len(groups) > 0
    assert len(joined) == len(groups)
    np.testing.assert_allclose(joined.p_corrected, joined.p_holm, rtol=1e-9)

    prompts = of_calibrants(pd.read_csv(tables / "giebench" / "over_orders.csv"))
    prompts["claim"] = prompts.prompt + " over Raw"
    walked = pd.read_csv(tables / "synthesis" / "multiverse_giebench.csv")
    path = walked.query(
        "parsing == 'sound' and reading == ['free', 'greedy, turn'] and silence == 'wrong'"
        " and order == 'mean' and unit == 'item' and shares == 'paper' and correction == 'Holm'"
    )
    joined = prompts.merge(path, on=["model", "claim"])
    assert len(prompts) > 0
    assert len(joined) == len(prompts)
    np.testing.assert_allclose(joined.p_corrected, joined.p_holm, rtol=1e-9)


def test_the_synthesis_reads_what_the_four_ran(ran):
    """After the runs above, which are small: two events, four scenarios, twelve questions."""
    for study in ran.values():
        study.result()
    executed("60_synthesis", N_RESAMPLES="200", CLUSTER_SEEDS="1")

    studies = ("empathy_gap", "biased_samaritan", "giebench", "stereomap")
    drawn = figures_of("synthesis")
    assert {
        "group_profile",
        "group_profile_calibrant-null",
        "agreement",
        "multiverse_shares",
    } <= drawn
    assert {f"multiverse_{study}" for study in studies} <= drawn

    pairs = of_calibrants(pd.read_csv(TABLES / "synthesis" / "agreement.csv"))
    assert pairs.groupby("model").size().tolist() == [15, 15]

    # The first page explains each choice that a path takes, and no other.
    options = pd.read_csv(TABLES / "synthesis" / "multiverse_options.csv")
    explained = pd.read_csv(paths.DATA / "choices.csv")
    taken = options[["study", "choice"]].drop_duplicates()
    missing = taken.merge(explained, "left", on=["study", "choice"], indicator=True)
    assert missing[missing["_merge"] != "both"].empty
    assert set(explained.choice) <= set(options.choice)

    # The product of the choices; the second study ran twice, its control once. Orders of answers
    # are not averaged with shares as released; exchanged axes have a correction of their own.
    shares = pd.read_csv(TABLES / "synthesis" / "multiverse_shares.csv")
    calibrant = shares[shares.model == "calibrant"]
    counts = calibrant.groupby("study").paths.unique()
    assert counts.map(list).to_dict() == {
        "empathy_gap": [160],
        "biased_samaritan": [512],
        "giebench": [336],
        "stereomap": [68],
    }
    null = shares[shares.model == "calibrant-null"]
    assert set(null[null.study == "biased_samaritan"].paths) == {256}

    # Whole groups of race have 24 orders: under Bonferroni no p is below 0.05. Over two events none
    # is at all. These paths could not show the claim, which stands on all others.
    gaps = calibrant[calibrant.study == "empathy_gap"]
    assert gaps.stands.tolist() == [100] * 3
    assert (gaps.testable < gaps.paths).all()
    null_gaps = null[null.study == "empathy_gap"]
    assert null_gaps.stands.tolist() == [0] * 3

    check_the_families_of_the_multiverse(TABLES)


def test_two_models_are_compared_as_their_group_profiles_read_them(ran):
    """The table's means and differences are those of profiles; the calibrant has more bias."""
    for study in ran.values():
        study.result()
    executed("61_comparison")
    assert {"differences_empathy_gap", "differences_giebench"} <= figures_of("comparison")

    table = pd.read_csv(TABLES / "comparison" / "differences.csv")
    table = table.query("model == 'calibrant' and other_model == 'calibrant-null'")
    assert table.study.unique().tolist() == [
        "empathy_gap",
        "biased_samaritan",
        "giebench",
        "stereomap",
    ]
    np.testing.assert_allclose(table.one - table.other, table.difference, atol=1e-9)
    assert (table.p_holm >= table.p).all()

    values = parameters_of_run("20_biased_samaritan", "test")
    calibrant = samaritan_profile.effects(values, "calibrant")
    null = samaritan_profile.effects(values, "calibrant-null")
    rows = table[table.study == "biased_samaritan"]
    for row in rows.itertuples():
        differences = calibrant[row.effect] - null[row.effect]
        assert row.difference == pytest.approx(differences.mean(), abs=1e-9)


def share_of_paths(claim):
    """On how many percent of the paths that count a claim comes out as its headline says."""
    walked = pd.read_csv(TABLES / "synthesis" / f"multiverse_{claim.study}.csv")
    walked = walked[(walked.model == claim.model) & (walked.claim == claim.claim)]
    walked = walked[walked.testable | walked.p.isna()]
    if claim.way == "above":
        return 100 * walked.stands.mean()
    if claim.way == "below":
        return 100 * walked.reversed.mean()
    is_equal = walked.p.notna() & ~walked.stands & ~walked.reversed
    return 100 * is_equal.mean()


def test_the_map_knows_every_figure_and_says_what_has_not_run(ran):
    executed("00_map")
    assert len(figures_of("map")) == 5

    tables = TABLES / "map"
    notebooks = pd.read_csv(tables / "what_ran.csv", index_col="notebook")
    names = {file.stem for file in ALL}
    assert set(notebooks.index) | {"00_map"} == names
    assert notebooks.loc["50_audit", "what it is"] == "not in this run"
    assert notebooks.loc["10_empathy_gap", "models"].endswith("; calibrant; calibrant-null")

    drawn = pd.read_csv(tables / "figures.csv")
    assert drawn[["notebook", "below"]].notna().all(axis=None)

    replies = pd.read_csv(tables / "replies.csv")
    most = replies.groupby(["study", "model", "kind"]).excerpt.max()
    assert most.between(1, 3).all()
    is_filter = replies["filter"].str.fullmatch(r'(( and )?(status|metadata\.\w+) == "[^"]+")+')
    assert is_filter.all()  # as check_view.py types one into the viewer

    numbered = {file.with_suffix("") for file in FOLDER.glob("tables/*/table*.csv")}
    typeset = {file.with_suffix("") for file in FOLDER.glob("tables/*/*.tex")}
    assert numbered == typeset

    claims = pd.read_csv(tables / "claims.csv")
    assert claims.sentence.notna().all()  # each has one in headlines.csv
    for claim in claims.itertuples():
        share = share_of_paths(claim)
        assert claim.share == pytest.approx(share), claim.name
        assert (claim.verdict == "stands") == (share == 100)
        depends = share > multiverse.BY_CHANCE and claim.against > multiverse.BY_CHANCE
        assert (claim.verdict == "depends") == depends

    share = float(re.search(r"0?\.\d+", answer_to("00_map"))[0])
    assert 0.01 <= share <= 0.12  # 5 % are expected of 200 matrices without a gap


def test_every_make_command_of_the_prose_is_a_target():
    """Every `make something` of a notebook or page is a target of the Makefile."""
    makefile = (paths.ROOT / "Makefile").read_text("utf8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    targets |= {file.name[:2] for file in ALL}

    pages = ("README.md", "CONTRIBUTING.md", "docs/running.md", "docs/performance.md")
    texts = [(paths.ROOT / page).read_text("utf8") for page in pages]
    texts += [prose(file) for file in ALL]
    commands = set()
    for text in texts:
        commands |= set(re.findall(r"(?:`|^)make ([a-z0-9-]+)", text, re.M))

    assert commands
    assert commands <= targets, commands - targets


def test_every_place_of_the_glossary_exists():
    """A notebook, a module, or a function or class of one; a study's without ``studies``."""
    words = pd.read_csv(paths.DATA / "glossary.csv", keep_default_na=False)
    assert not words.word.duplicated().any()

    notebooks = {file.stem for file in ALL}
    studies = {file.stem[3:] for file in STUDIES}
    for name in words["where"].str.split("; ").explode().unique():
        if name in notebooks:
            continue
        is_of_study = name.split(".")[0] in studies
        package = "ingroup.studies" if is_of_study else "ingroup"
        assert pkgutil.resolve_name(f"{package}.{name}")
