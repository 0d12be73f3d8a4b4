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
from ingroup.commands import parameters, run
from ingroup.notebook import ran as parameters_of_run
from ingroup.studies.biased_samaritan import design as samaritan
from ingroup.studies.biased_samaritan import lens as samaritan_lens
from ingroup.studies.biased_samaritan import stimuli as scenarios
from ingroup.studies.empathy_gap import answers as empathy_answers
from ingroup.studies.empathy_gap import design as empathy
from ingroup.studies.giebench import stimuli

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
STUDIES = [file for file in ALL if re.match("[1-4]0_", file.name)]


def cells(file, kind):
    return [c for c in nbformat.read(file, as_version=4).cells if c.cell_type == kind]


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.stem)
def test_a_study_has_the_nine_headings(file):
    text = "\n".join(cell.source for cell in cells(file, "markdown"))
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == HEADINGS


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.stem)
def test_a_notebook_ends_with_something_to_try_and_an_exercise_whose_solution_is_folded(file):
    *_, question, solution = nbformat.read(file, as_version=4).cells
    assert question.source.startswith("### Exercise")
    assert solution.metadata.tags == ["solution"]
    assert solution.metadata.jupyter.source_hidden
    assert solution.source.splitlines()[0].startswith("# ")
    assert solution.source.splitlines()[-1] == "answer"
    text = "\n".join(cell.source for cell in cells(file, "markdown"))
    assert re.search("^##+ Try it$", text, re.MULTILINE)


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.stem)
def test_a_notebook_is_committed_clean_and_readable(file):
    nbformat.validate(nbformat.read(file, as_version=4))
    tagged = [c for c in cells(file, "code") if "parameters" in c.metadata.get("tags", [])]
    assert len(tagged) == 1
    for cell in cells(file, "code"):
        assert not cell.outputs
        assert cell.execution_count is None
        most = 50 if cell in tagged else 40  # a parameter a line, and a cell fits on a screen
        assert cell.source.count("\n") < most
        assert "../" not in cell.source


FOLDER = paths.BUILD / "runs" / "test"


def executed(notebook, **given):
    """The notebook, run with those of some parameters that it takes; files go to ``FOLDER``."""
    asked = parameters.merged(notebook, "demo", given, run="test", shared=True)
    target = run.execute(notebook, asked, run.Progress(notebook, alone=False))
    text = target.read_text("utf8")
    assert "application/vnd.jupyter.widget" not in text
    outputs = [o for c in json.loads(text)["cells"] for o in c.get("outputs", [])]
    assert not [o for o in outputs if o["output_type"] == "error"]
    # The notebooks warn of small option masses themselves; Python warns with a category.
    assert not [o for o in outputs if re.search(r"\wWarning", "".join(o.get("text", [])))]


TWELVE = {
    "GROUPS": "Men;Women;Nurses;Doctors;Lawyers;Homeless;Lower-class;Elderly;Asians;Muslims;"
    "Christians;Poor Blacks",
    "ROUNDS": "2",
    "ABLATION_ROUNDS": "2",
}


CALIBRANTS = "calibrant;calibrant-null"


def hardly_a_rating(source):
    """Recordings of one who rates groups in the first scenario alone, and a gender in none."""
    said = {}
    for category in scenarios.categories():
        asked = samaritan.trials(scenarios.load_scenarios(source), category)
        for place, trial in enumerate(asked):
            prompt = trial.condition["prompt"]
            later, senior = prompt.scenario > 1, prompt.group == "senior"
            few = {"Gender": True, "Race": later, "Age": later and senior}[category]
            silent = few and prompt.group != scenarios.CONTROL
            said[trial.messages[0]["content"]] = "No idea." if silent else str(40 + place % 17)
    return pd.DataFrame(said.items(), columns=["prompt", "response"])


def study(notebook, given):
    """A study's first notebook, then what goes beyond the paper, if there is such a one."""
    executed(notebook, **given)
    for beyond in paths.NOTEBOOKS.glob(f"{notebook[0]}?_{notebook[3:]}_beyond.ipynb"):
        executed(beyond.stem, **given)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The four studies, two at a time as make runs them, on few items; no old file is there."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    told, place = scenarios.load_scenarios(), tmp_path_factory.mktemp("few")
    told[told.scenario <= 4].to_csv(place / "four.csv", index=False)
    hardly_a_rating(place / "four.csv").to_csv(place / "said.csv", index=False)
    items = json.loads((paths.SAMPLE / "giebench.json").read_text("utf8"))
    some = {key: item for key, item in items.items() if item["category"] in ("Gender", "Economy")}
    (place / "some.json").write_text(json.dumps(some), "utf8")
    few = {
        "10_empathy_gap": {"N_EVENTS": "2", "SETTINGS": "P0,S0,T0", "N_RESAMPLES": "200"},
        "20_biased_samaritan": {
            "MODELS": "calibrant;calibrant-null;somebody@replay",
            "RECORDINGS": str(place / "said.csv"),
            "SCENARIOS": str(place / "four.csv"),
        },
        "30_giebench": {"QUESTIONS": str(place / "some.json"), "MODELS": CALIBRANTS},
        "40_stereomap": {"N_RESAMPLES": "5", "MODELS": CALIBRANTS, **TWELVE},
    }
    with ThreadPoolExecutor(2) as pool:
        yield {name: pool.submit(study, name, given) for name, given in few.items()}


def answer_to(notebook):
    """The exercise's answer, as the executed solution shows it."""
    (cell,) = (
        cell
        for cell in nbformat.read(paths.executed(notebook, "test"), as_version=4).cells
        if "solution" in cell.metadata.get("tags", [])
    )
    return cell.outputs[-1].data["text/plain"]


def figures_of(study):
    """Names of the figures that are there as PDF and PNG."""
    drawn = (FOLDER / "figures" / study).glob("*.pdf")
    return {file.stem for file in drawn if file.with_suffix(".png").exists()}


def test_the_empathy_gap_runs_from_prompt_to_figure(ran):
    ran["10_empathy_gap"].result()
    names = {f"figure{number}" for number in range(2, 7)} | {"gap_overview", "planted_versus_here"}
    assert names <= figures_of("empathy_gap")
    tables = FOLDER / "tables" / "empathy_gap"
    gaps = pd.read_csv(tables / "table02_delta.csv")
    is_real = ~gaps.model.isin(CALIBRANTS.split(";"))
    assert (~is_real).sum() == 3 * 2
    assert gaps[is_real].model.nunique() == 3  # their recordings hold both events
    assert (gaps[gaps.model == "calibrant"].p_two_sided < 0.05).all()
    counts = pd.read_csv(tables / "responses.csv")
    counts = counts[counts.model.isin(CALIBRANTS.split(";"))]
    assert counts[["ok", "refused", "unparsable", "failed", "missing"]].sum().sum() == 2 * 881 * 2
    # The exercise, without the library's statistics: two events, of which each is left out once.
    given = {"N_EVENTS": "2", "SETTINGS": "P0,S0,T0", "CATEGORIES": "Religion"}
    call = empathy.calls(parameters.merged("10_empathy_gap", "demo", given))[0]
    values = empathy_answers.load(call).values

    def gap(cells):
        z = ((cells - cells.mean()) / cells.std())[1:, 1:]
        own = np.eye(len(z), dtype=bool)
        return z[own].mean() - z[~own].mean()

    moved = [gap(values[..., 1 - event]) - gap(values.mean(axis=2)) for event in (0, 1)]
    said = float(answer_to("10_empathy_gap"))  # to four decimals
    assert said == pytest.approx(max(moved, key=abs), abs=5.1e-5)
    # The one beyond the paper: what a hand does in two steps is what least squares found in one.
    kinds = pd.read_csv(tables / "kinds.csv").query("model == 'calibrant'")
    shown = re.findall(r"^(\w+ names?) +(\S+) +(\S+)$", answer_to("11_empathy_gap_beyond"), re.M)
    kinds = kinds[kinds.pairs != "one name beyond two names"]
    assert [kind for kind, *_ in shown] == kinds.pairs.tolist() == ["one name", "two names"]
    for (_, *both), difference in zip(shown, kinds.difference, strict=True):
        assert [*map(float, both)] == pytest.approx([difference] * 2, abs=5.1e-5)


def test_the_biased_samaritan_runs_from_prompt_to_figure(ran):
    ran["20_biased_samaritan"].result()
    names = {"figure1", "figure2", "figure3", "bias_overview", "repeatability", "printed_landscape"}
    assert names | {"planted_versus_here"} <= figures_of("biased_samaritan")
    tables = FOLDER / "tables" / "biased_samaritan"
    counts = pd.read_csv(tables / "responses.csv").groupby(["model", "run"]).sum(numeric_only=True)
    assert counts.sum(axis=1).tolist() == [4 * 4 * (11 + 8 + 8)] * 4
    assert len(pd.read_csv(tables / "table01_02_03_bias.csv")) == 12 * 3 + 3
    assert len(pd.read_csv(tables / "table12_13_14_repeatability.csv")) == 12 + 3
    bias = pd.read_csv(tables / "table01_02_03_bias.csv").query("model == 'calibrant' and run == 1")
    beside = pd.read_csv(tables / "bias_beside_brittleness.csv")
    both = bias.merge(beside, on=["model", "run", "category", "group"], suffixes=("", "_beside"))
    asked = both[both.significant_holm & ~both.exceeds].group
    shown = answer_to("21_biased_samaritan_beyond")
    assert [group for group in bias.group if f" {group} " in shown] == asked.tolist()


def test_intervals_that_overlap_are_counted_by_hand():
    """The exercise of 20, of a bias that overlaps, one that does not, one that is no bias."""
    key = ["model", "run", "category"]
    groups = ["control", "senior", "teenager", "young_adult"]
    about = pd.DataFrame({"model": "m", "run": 1, "category": "Age", "group": groups})
    helpful = about.assign(low=[50, 51, 53, 50], high=[52, 55, 57, 54])
    found = about[1:].assign(significant_holm=[True, True, False])
    known = {"table06to08": helpful, "table01to03": found, "KEY": key, "stimuli": scenarios}
    exec(cells(paths.NOTEBOOKS / "20_biased_samaritan.ipynb", "code")[-1].source, known)
    assert known["answer"].to_dict("index") == {"m": {"overlap": 1, "of": 2}}


def test_a_model_with_hardly_a_rating_is_named_and_left_out(ran):
    """One scenario with a rating of seniors and of every race, none with one of a gender."""
    ran["20_biased_samaritan"].result()
    copy = nbformat.read(paths.executed("20_biased_samaritan", "test"), as_version=4)
    told = "\n".join(o.get("text", "") for c in copy.cells for o in c.get("outputs", ()))
    assert "somebody, 1, Age: senior is left out, 1 scenario(s) with what is compared, exp" in told
    assert "somebody, 1, Race: white is left out, 1 scenario(s)" in told
    assert "somebody, 1, Gender: male is left out, 0 scenario(s)" in told
    tables = FOLDER / "tables" / "biased_samaritan"
    bias = pd.read_csv(tables / "table01_02_03_bias.csv").query("model == 'somebody'")
    assert bias.category.tolist() == ["Age"] * 3
    assert set(bias.group) == {"teenager", "young_adult", "middle_aged"}


def test_giebench_runs_from_prompt_to_figure(ran):
    ran["30_giebench"].result()
    names = {"figure1", "figure3", "position", "mismatch", "printed_landscape"}
    assert names <= figures_of("giebench")
    tables = FOLDER / "tables" / "giebench"
    accuracy = pd.read_csv(tables / "table01_02_06_accuracy.csv")
    assert accuracy.n.tolist() == [6, 6, 12] * 3 * 2
    # Male and Female, and the three pairs of incomes: six and four items each, at both prompts.
    swapped = pd.read_csv(tables / "table03_07_mismatch.csv")
    assert swapped.n.tolist() == [4, 4, 4, 6] * 2
    # At least four times 2 / 2**6, after Holm.
    assert set(swapped.cot_finding) == {"could not have been significant"}
    assert len(pd.read_csv(tables / "position_test.csv").p_holm_least) == 3 * 2
    own = accuracy[(accuracy.model == "calibrant") & (accuracy.category == "Overall")]
    own = own.set_index("prompt")
    gains = [own.right / own.n, own.right / (own.n - own.without)]
    gains = [100 * (share["ID"] - share["Raw"]) for share in gains]
    numbers = re.findall(r"-?\d+\.\d+$", answer_to("30_giebench"), re.MULTILINE)
    assert [float(number) for number in numbers] == pytest.approx(gains, abs=1e-4)

    # The one beyond the paper, from its table: of three positions, without the favourite letter.
    position = pd.read_csv(tables / "position.csv")
    rest = {}
    for key, rows in position.groupby(["model", "prompt"], sort=False):
        rows = rows.sort_values(["chosen", "position"], ascending=[False, True], kind="stable")
        rest[key] = 100 * rows.right[1:].sum() / rows.n[1:].sum()
    shown = re.findall(r"([\d.]+) +([\d.]+)$", answer_to("32_giebench_beyond"), re.MULTILINE)
    assert [float(left) for _, left in shown] == pytest.approx([*rest.values()], abs=1e-4)

    # Their figures come back from the tables, byte for byte; of other studies test_redraw looks at
    # what the cells need.
    files = sorted((FOLDER / "figures" / "giebench").iterdir())
    drawn = {file: file.read_bytes() for file in files}
    for file in files:
        file.unlink()
    for notebook in ("30_giebench", "32_giebench_beyond"):
        assert run.main([notebook, "--redraw", "--run", "test"]) == 0
    assert {file: file.read_bytes() for file in files} == drawn


def test_giebench_items_are_built_from_topics_to_letters(ran):
    """Without a model: the made-up sheet of six topics, of which four get a label."""
    executed("31_giebench_construction")
    tables = FOLDER / "tables" / "giebench"
    labels = pd.read_csv(tables / "construction_labels.csv")
    assert labels.state.tolist() == [
        *("agreed", "agreed", "discussed", "removed", "discussed", "to discuss"),
    ]
    # Pairs that agree 1, 1, 0.6, 0.4, 0.6: P = 0.72; 13 of 25 marks are positive: Q = 0.5008.
    kappa = pd.read_csv(tables / "construction_kappa.csv", index_col=0).kappa.iloc[0]
    assert kappa == pytest.approx((0.72 - 0.5008) / (1 - 0.5008))
    numbers = re.findall(r"\d\.\d+$", answer_to("31_giebench_construction"), re.MULTILINE)
    assert [float(number) for number in numbers] == pytest.approx([0.72, 0.5008, kappa], abs=1e-4)
    own = {item.question: item for item in stimuli.load_questions()}
    items = stimuli.load_questions(tables / "construction_items.json")
    assert [item.question for item in items] == labels.topic[labels.label.notna()].tolist()
    for item in items:
        one = own[item.question]
        right = one.answers[stimuli.LETTERS.index(one.correct)]
        assert item.answers[stimuli.LETTERS.index(item.correct)] == right
    assert (tables / "construction_sheet.csv").exists()


def test_stereomap_runs_from_prompt_to_figure(ran):
    """Twelve groups, two rounds; every table and figure of the paper that a run can have."""
    ran["40_stereomap"].result()
    names = {"figure2", "figure3", "figure5", "figure6", "figure6_models", "planted_versus_here"}
    assert names <= figures_of("stereomap")
    tables = FOLDER / "tables" / "stereomap"
    back = pd.read_csv(tables / "planted_versus_here.csv").set_index(["model", "version"])
    assert (back.loc[("calibrant", "EXTENDED"), ["r of Competence", "r of Warmth"]] > 0.9).all()
    replies = pd.read_csv(tables / "responses.csv")
    asked = 12 * (7 * 2 + 3 * 2) + 5 * 21 * 2  # ORIGINAL has five of these groups
    replies = replies[replies.model.str.startswith("calibrant")].select_dtypes("number")
    assert replies.to_numpy().sum() == 2 * asked
    apart = pd.read_csv(tables / "table02_05_clusters.csv").query("version == 'EXTENDED'")
    apart = apart.assign(difference=apart.difference.abs())
    means = apart.groupby(["model", "way"]).difference.mean().unstack()
    shown = re.findall(r"^(calibrant\S*) +([\d.]+) +([\d.]+)", answer_to("40_stereomap"), re.M)
    assert {model: (float(same), float(other)) for model, same, other in shown} == {
        row.Index: (pytest.approx(row[1], abs=1e-4), pytest.approx(row[2], abs=1e-4))
        for row in means[["same rounds", "other rounds"]].itertuples()
    }


def test_stereomap_keywords_run_on_the_answers_of_the_map(ran):
    """After the run above, whose answers it reads."""
    ran["40_stereomap"].result()
    executed("41_stereomap_keywords", CLUSTERS="2", **TWELVE)
    assert {"figure4", "figure7", "figure8"} <= figures_of("stereomap")
    tables = FOLDER / "tables" / "stereomap"
    found = pd.read_csv(tables / "table03_10_reason_keywords.csv")
    assert set(found.setting) == {"maxsum of 20", "MMR 0.7", "MMR 0.2"}
    sheet = pd.read_csv(tables / "human_evaluation_sheet.csv")
    assert set(sheet.group) <= set(TWELVE["GROUPS"].split(";"))
    varied = pd.read_csv(tables / "table13_14_sensitivity.csv")
    varied = varied[varied.model.str.startswith("calibrant")]
    assert varied.groupby("model").size().tolist() == [4, 4]
    # As often as given, the share that has a word is the last line of Table 15.
    covered = pd.read_csv(tables / "table15_coverage.csv").query("model == 'calibrant'")
    often, once = re.findall(r"([\d.]+)$", answer_to("41_stereomap_keywords"), re.M)[:2]
    assert float(often) == pytest.approx(covered.coverage_pct.max(), abs=0.01)
    assert 0 < float(once) <= 100


def check_the_families_of_the_multiverse(tables):
    """On the path that a notebook takes, the multiverse corrects the same tests to the same p."""
    settings = pd.read_csv(tables / "empathy_gap" / "table02_delta.csv")
    walked = pd.read_csv(tables / "synthesis" / "multiverse_empathy_gap.csv")
    claims = walked.groupby(["model", "setting"]).claim.nunique()
    tests = settings.dropna(subset="p_two_sided").groupby(["model", "setting"]).holm_tests.max()
    of_both = tests.index.intersection(claims.index)
    assert len(of_both) > 0
    assert tests[of_both].tolist() == claims[of_both].tolist()

    groups = pd.read_csv(tables / "biased_samaritan" / "table01_02_03_bias.csv")
    walked = pd.read_csv(tables / "synthesis" / "multiverse_biased_samaritan.csv")
    path = walked.query(
        "parsing == 'sound' and reading == ['free', 'expected, turn'] and unit == 'scenario'"
        " and exclusion == 'step by step' and phrasing == 'all' and control == 'its own'"
        " and rounding == 'none' and correction == 'Holm'"
    )
    groups = groups[groups.model.isin(CALIBRANTS.split(";"))]  # the synthesis reads no replayed one
    both = groups.merge(path, left_on=["model", "run", "group"], right_on=["model", "run", "claim"])
    assert len(both) == len(groups) > 0
    np.testing.assert_allclose(both.p_corrected, both.p_holm, rtol=1e-9)

    prompts = pd.read_csv(tables / "giebench" / "over_orders.csv")
    prompts["claim"] = prompts.prompt + " over Raw"
    walked = pd.read_csv(tables / "synthesis" / "multiverse_giebench.csv")
    path = walked.query(
        "parsing == 'sound' and reading == ['free', 'greedy, turn'] and silence == 'wrong'"
        " and order == 'mean' and unit == 'item' and shares == 'paper' and correction == 'Holm'"
    )
    prompts = prompts[prompts.model.isin(CALIBRANTS.split(";"))]
    both = prompts.merge(path, on=["model", "claim"])
    assert len(both) == len(prompts) > 0
    np.testing.assert_allclose(both.p_corrected, both.p_holm, rtol=1e-9)


def test_the_synthesis_reads_what_the_four_ran(ran):
    """After the runs above, which are small: two events, four scenarios, twelve questions."""
    for study in ran.values():
        study.result()
    executed("60_synthesis", N_RESAMPLES="200", CLUSTER_SEEDS="1")
    studies = ("empathy_gap", "biased_samaritan", "giebench", "stereomap")
    names = {"portrait", "portrait_calibrant-null", "agreement", "multiverse_shares"}
    assert names | {f"multiverse_{study}" for study in studies} <= figures_of("synthesis")
    tables = FOLDER / "tables" / "synthesis"
    pairs = pd.read_csv(tables / "agreement.csv")
    pairs = pairs[pairs.model.isin(CALIBRANTS.split(";"))]
    assert pairs.groupby("model").size().tolist() == [15, 15]
    shares = pd.read_csv(tables / "multiverse_shares.csv")
    own, control = (shares[shares.model == name] for name in ("calibrant", "calibrant-null"))
    # The product of the choices; the second study ran twice, its control once. Orders of answers
    # are not averaged with shares as released; exchanged axes have a correction of their own.
    paths_of = own.groupby("study").listed.unique().map(list).to_dict()
    assert paths_of == dict(zip(studies, ([160], [512], [336], [68]), strict=True))
    assert set(control[control.study == "biased_samaritan"].listed) == {256}
    assert (shares.paths <= shares.listed).all()
    # Whole groups of race have 24 orders: under Bonferroni no p is below 0.05. Over two events none
    # is at all. These paths could not show the claim, which stands on all others.
    gaps = own[own.study == "empathy_gap"]
    assert gaps.stands.tolist() == [100] * 3
    assert (gaps.could < gaps.paths).all()
    assert control[control.study == "empathy_gap"].stands.tolist() == [0] * 3
    check_the_families_of_the_multiverse(FOLDER / "tables")


def test_two_models_are_compared_as_their_lenses_read_them(ran):
    """The table's means and differences are those of the lens; the calibrant has more bias."""
    for study in ran.values():
        study.result()
    executed("61_comparison")
    table = pd.read_csv(FOLDER / "tables" / "comparison" / "differences.csv")
    pair = ("calibrant", "calibrant-null")
    table = table[(table.model == pair[0]) & (table.other_model == pair[1])]
    assert table.study.unique().tolist() == [
        "empathy_gap",
        "biased_samaritan",
        "giebench",
        "stereomap",
    ]
    np.testing.assert_allclose(table.one - table.other, table.difference, atol=1e-9)
    assert (table.p_holm >= table.p).all()
    values = parameters_of_run("20_biased_samaritan", "test")
    own, other = (samaritan_lens.effects(values, model) for model in pair)
    rows = table[table.study == "biased_samaritan"].set_index("effect")
    for effect, row in rows.iterrows():
        assert row.difference == pytest.approx((own[effect] - other[effect]).mean(), abs=1e-9)
    assert {"differences_empathy_gap", "differences_giebench"} <= figures_of("comparison")


def test_the_map_knows_every_figure_and_says_what_has_not_run(ran):
    executed("00_map")
    assert len(figures_of("map")) == 5
    ran = pd.read_csv(FOLDER / "tables" / "map" / "what_ran.csv", index_col="notebook")
    assert set(ran.index) | {"00_map"} == {file.stem for file in ALL}
    assert ran.loc["50_audit", "what it is"] == "not in this run"
    assert ran.loc["10_empathy_gap", "models"].startswith("calibrant; calibrant-null; ")
    drawn = pd.read_csv(FOLDER / "tables" / "map" / "figures.csv")
    assert drawn[["notebook", "below"]].notna().all(axis=None)
    replies = pd.read_csv(FOLDER / "tables" / "map" / "replies.csv")
    assert replies.groupby(["study", "model", "kind"]).excerpt.max().between(1, 3).all()
    shown = replies["filter"].str.fullmatch(r'(( and )?(status|metadata\.\w+) == "[^"]+")+')
    assert shown.all()  # as check_view.py types one into the viewer
    numbered = {file.with_suffix("") for file in FOLDER.glob("tables/*/table*.csv")}
    assert numbered == {file.with_suffix("") for file in FOLDER.glob("tables/*/*.tex")}
    told = pd.read_csv(FOLDER / "tables" / "map" / "claims.csv")
    assert told.sentence.notna().all()  # each has one in headlines.csv
    for row in told.itertuples():  # the rule, path by path
        walked = pd.read_csv(FOLDER / "tables" / "synthesis" / f"multiverse_{row.study}.csv")
        own = walked[(walked.model == row.model) & (walked.claim == row.claim)]
        own = own[own.could | own.p.isna()].drop_duplicates("result")
        sides = {"above": own.stands, "below": own.reversed}
        equal = own.p.notna() & ~own.stands & ~own.reversed
        share = 100 * sides.get(row.way, equal).mean()
        assert row.share == pytest.approx(share), row.name
        assert (row.verdict == "stands") == (share == 100)
        assert (row.verdict == "depends") == (0 < share < 100)
    share = float(re.search(r"0?\.\d+", answer_to("00_map"))[0])
    assert 0.01 <= share <= 0.12  # 5 % are expected of 200 matrices without a gap


def test_commands_in_the_prose_are_there():
    """Every `make something` of a notebook or page is a target of the Makefile."""
    makefile = (paths.ROOT / "Makefile").read_text("utf8")
    known = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    known |= {file.name[:2] for file in ALL}
    pages = ("README.md", "CONTRIBUTING.md", "docs/running.md", "docs/performance.md")
    texts = [(paths.ROOT / page).read_text("utf8") for page in pages]
    texts += ["\n".join(c.source for c in cells(file, "markdown")) for file in ALL]
    said = {word for text in texts for word in re.findall(r"(?:`|^)make ([a-z0-9-]+)", text, re.M)}
    assert said
    assert said <= known, said - known


def test_the_glossary_names_what_is_there():
    """A notebook, a module, or a function or class of one; a study's without ``studies``."""
    words = pd.read_csv(paths.DATA / "glossary.csv", keep_default_na=False)
    assert not words.word.duplicated().any()
    for where in {where for cell in words["where"] for where in cell.split("; ")}:
        if where in {file.stem for file in ALL}:
            continue
        study = where.split(".")[0] in {file.stem[3:] for file in STUDIES}
        assert pkgutil.resolve_name(f"ingroup.studies.{where}" if study else f"ingroup.{where}")
