"""Study 4: prompts, replies, the map and its tests, figures, and one run of notebook 40."""

import hashlib
from itertools import product
from pathlib import Path

import golden
import golden_stereomap
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import adjusted_rand_score

from ingroup import style
from ingroup.inference.answers import Sampling
from ingroup.stereomap import answers, figures, maps, robustness, stimuli
from ingroup.stereomap.answers import MAP
from ingroup.stereomap.maps import AXES
from ingroup.stereomap.stimuli import PAPER
from ingroup.tables import InputError

NAME = "40_stereomap"
MODELS = ["smollm2-135m-instruct", "gemma-3-270m", "qwen2.5-coder-1.5b-instruct"]
OF_41 = (  # golden quantities of notebook 41
    "coverage_percent_keywords",
    "dimension_score_of_group",
    "dimension_score_released",
    "dimension_score_sound",
    "reason_keyword_score",
)


def parameters(**given) -> answers.Parameters:
    """Return the defaults of the notebook, but for some."""
    return answers.Parameters.of({"MODELS": MODELS, **given})


# ---------------------------------------------------------------------------------------- prompts


def _hash(design) -> str:
    """Hash a list of prompts as tests/golden/prompts.csv.gz does."""
    digest = hashlib.sha256()
    for trial in design:
        for turn in trial.chat:
            digest.update(f"{turn['role']}\x1f{turn['content']}\x1e".encode())
        digest.update(b"\x1d")
    return digest.hexdigest()


def test_all_lists_of_prompts_are_byte_equal_to_the_golden_ones():
    lists = golden.read("prompts")
    lists = lists[lists.study == "stereomap"]
    assert len(lists) == 28
    for row in lists.itertuples():
        labels = dict(label.split("=") for label in row.labels.split(";"))
        version = labels["version"]
        design = stimuli.design(
            version,
            stimuli.names("EXTENDED" if version == "EXTENDED" else "paper"),
            list(stimuli.prompts(version)),
            labels["ablation"],
            form=labels["group names"],
            wording=labels["wording"],
            calls=labels["calls"],
        )
        assert len(design) == int(row.prompts)
        assert _hash(design) == row.sha256, row.labels


@pytest.mark.parametrize("calls", ["together", "separate"])
def test_the_chats_of_a_prompt_ask_for_every_word_once(calls):
    for version in ("EXTENDED", "ORIGINAL"):
        for name, prompt in stimuli.prompts(version).items():
            asked = ()
            n_keywords = 0
            for part in stimuli.chats("Men", version, name, calls=calls):
                words, n = stimuli.expected(version, name, part)
                asked += words
                n_keywords += n
            assert asked == sum(map(tuple, prompt.words.values()), ())
            assert n_keywords == sum(prompt.n_keywords.values()) > 0


def test_the_sets_of_groups_are_those_of_the_paper_and_the_code():
    appendix_b = pd.read_csv(
        golden.GOLDEN.parents[1] / "data/published/stereomap/appendix_b_social_groups.csv"
    )
    assert stimuli.names("EXTENDED") == appendix_b.group.tolist()
    assert sorted(stimuli.names("paper")) == sorted(maps.people().index)
    assert len(stimuli.names("released")) == 37
    assert stimuli.names("EXTENDED", ["Nurses", "Men"]) == ["Men", "Nurses"]
    with pytest.raises(InputError, match="Nurse"):
        stimuli.names("EXTENDED", ["Nurse"])


@pytest.fixture
def own_groups(tmp_path, monkeypatch):
    """Give groups.csv a further line."""

    def add(line: str) -> None:
        text = (stimuli.FOLDER / "groups.csv").read_text("utf8")
        (tmp_path / "groups.csv").write_text(f"{text}{line}\n", "utf8")
        monkeypatch.setattr(stimuli, "FOLDER", tmp_path)
        stimuli.groups.cache_clear()

    yield add
    monkeypatch.undo()
    stimuli.groups.cache_clear()


def test_a_line_in_groups_csv_adds_a_group_to_the_study(own_groups):
    own_groups("Bakers,bakers,,bakers,EXTENDED,,")
    (design, *_) = [job.design for job in answers.jobs(parameters())]
    assert len(design) == 99
    assert "members of bakers." in design[98].chat[0]["content"]


def test_a_group_that_stands_twice_is_named_with_file_line_and_column(own_groups):
    own_groups("Men,men,Men,men,EXTENDED,,")
    with pytest.raises(InputError, match=r"groups.csv, line 115, column group: found 'Men'"):
        stimuli.names("EXTENDED")


# ------------------------------------------------------------------------------ jobs and replies


def test_the_default_run_is_answered_by_its_recordings():
    jobs = [*answers.jobs(parameters()), *answers.written(parameters())]
    for job in jobs:
        folders = {
            file.name for file in Path("data/recordings").glob(f"{job.model.name}/stereomap/*")
        }
        assert job.name in folders
        assert len(job.recorded()) == len(job.design)
    written = [job for job in jobs if not job.sampling.choices]
    assert {job.sampling.seed for job in written} == {1000, 1001, 2000, 2001}
    assert {job.labels["round"] for job in jobs if job.sampling.choices} == {1}


def test_ablations_are_further_rounds_of_the_first_prompt():
    planned = answers.jobs(parameters(READING="free", ABLATION_ROUNDS=3, MODELS=["gpt-3.5-turbo"]))
    reduced = [job for job in planned if job.labels["ablation"] != PAPER]
    assert [job.labels["round"] for job in reduced] == [1, 2, 3] * 3
    assert len({job.sampling.seed for job in planned}) == len(planned)
    assert {trial.condition["prompt"] for job in reduced for trial in job.design} == {answers.FIRST}
    assert reduced[-1].part == "EXTENDED-wo-CoT+Instructions-released-together-round3"


@pytest.fixture
def job():
    """Return the first prompt of a model in free text, about four groups."""
    design = stimuli.design("EXTENDED", ["Men", "Women", "Jews", "Poor"], ["Emotion"])
    (model,) = parameters(MODELS=["gpt-3.5-turbo"]).models
    labels = {"version": "EXTENDED", "ablation": PAPER, "round": 1}
    return answers.Job("stereomap", "part", model, design, Sampling(1.0), labels)


def _stored(texts, endings):
    """Return what `jobs.answers` gives."""
    return pd.DataFrame({"text": pd.Series(texts, dtype=object), "finish_reason": endings})


def test_a_missing_rating_never_becomes_a_number(job, monkeypatch):
    words, _ = stimuli.expected("EXTENDED", "Emotion")
    whole = "\n".join(f"- {word}: 4" for word in words)
    texts = ["- Contempt: 2\n- Disgust: 3", None, whole, f"{whole[:-1]}"]
    endings = ["stop", "failed", "filtered", "length"]
    monkeypatch.setattr(answers, "answers", lambda job, columns: _stored(texts, endings))

    read = answers.replies([job])
    assert read.status.tolist() == ["incomplete", "failed", "refused", "incomplete"]
    table = answers.load(job)
    assert len(table) == 4 * len(words)
    assert table.rating.notna().eq(table.status == "ok").all()
    by_group = table.groupby("group", sort=False).status.value_counts()
    assert by_group["Men"].to_dict() == {"unparsable": 6, "ok": 2}
    assert by_group["Women"].to_dict() == {"failed": 8}
    assert by_group["Jews"].to_dict() == {"refused": 8}
    assert by_group["Poor"].to_dict() == {"ok": 7, "unparsable": 1}


def test_a_reply_that_ends_at_its_limit_before_a_rating_is_cut(job, monkeypatch):
    texts = ["They are seen as", "They are seen as.", "I cannot rate people.", None]
    endings = ["length", "stop", "stop", "missing"]
    monkeypatch.setattr(answers, "answers", lambda job, columns: _stored(texts, endings))
    assert answers.replies([job]).status.tolist() == ["cut", "unparsable", "refused", "missing"]


def test_scored_answers_have_both_readings():
    job = answers.jobs(parameters(MODELS=MODELS[-1:]))[-1]
    table = answers.load(job)
    expected, greedy = (table[table.reading == name].rating for name in ("expected", "greedy"))
    assert len(expected) == len(greedy) == 504
    assert set(greedy) <= {1.0, 2.0, 3.0, 4.0, 5.0}
    assert expected.between(1, 5).all()
    assert np.corrcoef(expected, greedy)[0, 1] > 0.5


# -------------------------------------------------------------------------------------- the map


def ratings_of(values: dict, version: str = "ORIGINAL", **labels) -> pd.DataFrame:
    """Make the long table of ratings: `values` has a rating by group and word."""
    rows = [(group, word, rating) for (group, word), rating in values.items()]
    table = pd.DataFrame(rows, columns=["group", "item", "rating"])
    named = {"model": "m", "reading": "free", "version": version, "ablation": PAPER, "round": 1}
    return table.assign(**{**named, **labels}, status="ok")


def test_scores_are_means_of_words_and_of_dimensions():
    ability = {"Competent": 1.0, "Skilled": 2.0, "Confident": 4.0, "Assertive": 5.0}
    values = {**ability, "Friendly": 1.0, "Sociable": 1.0, "Trustworthy": 5.0, "Honest": 3.0}
    table = ratings_of({("Men", word): rating for word, rating in values.items()}, "EXTENDED")
    (row,) = maps.scores(table, "EXTENDED").itertuples()
    assert (row.Ability, row.Assertiveness, row.Competence) == (1.5, 4.5, 3.0)
    assert (row.Sociability, row.Morality, row.Warmth) == (1.0, 4.0, 2.5)
    assert np.isnan(row.Contempt)

    # Without one word the round has no score on either axis.
    lacking = table.assign(rating=table.rating.where(table.item != "Skilled"))
    assert maps.scores(lacking, "EXTENDED")[AXES].isna().all(axis=None)

    # Nor has a model that wrote nothing.
    assert maps.scores(table.iloc[:0], "EXTENDED")[AXES].empty


def test_positions_average_the_rounds_that_have_a_score():
    words = stimuli.words("ORIGINAL").word
    rounds = []
    for number, rating in ((1, 2.0), (2, 4.0), (3, np.nan)):
        values = {("Men", word): rating for word in words}
        rounds.append(ratings_of(values, round=number))
    (row,) = maps.positions(pd.concat(rounds)).itertuples()
    assert (row.rounds, row.used, row.Competence, row.Warmth) == (3, 2, 3.0, 3.0)


@pytest.fixture(scope="module")
def planted() -> tuple[pd.DataFrame, pd.Series]:
    """Return ratings of 98 groups in five clusters, a paper's anchor in each, and the clusters."""
    rng = np.random.default_rng(4)
    groups = stimuli.names("EXTENDED")
    cluster = pd.Series(rng.integers(5, size=len(groups)), groups)
    cluster[stimuli.ANCHORS["EXTENDED"]] = range(5)
    centres = {"Competence": [1.5, 2.5, 4.5, 2.0, 4.5], "Warmth": [1.5, 2.5, 2.0, 4.5, 4.5]}
    words = stimuli.words("EXTENDED")
    values = {}
    for group, (family, word) in product(groups, words[["family", "word"]].itertuples(index=False)):
        centre = centres[family][cluster[group]] if family in centres else 3.0
        values[group, word] = np.clip(round(rng.normal(centre, 0.5)), 1, 5)
    return ratings_of(values, "EXTENDED"), cluster


def test_planted_clusters_are_recovered_from_ratings_to_table(planted):
    ratings, cluster = planted
    found = maps.cluster_maps(maps.positions(ratings))
    assert adjusted_rand_score(cluster[found.group], found.cluster) > 0.95
    anchors = found.set_index("group").cluster[stimuli.ANCHORS["EXTENDED"]]
    assert anchors.tolist() == [0, 1, 2, 3, 4]
    assert maps.cluster_tests(found).sign.tolist()[2:4] == [">", "<"]


def test_clusters_depend_neither_on_order_nor_on_equal_points(planted):
    points = maps.positions(planted[0]).set_index("group")
    found = maps.cluster(points, version="EXTENDED")
    shuffled = points.sample(frac=1, random_state=1)
    assert maps.cluster(shuffled, version="EXTENDED")[found.index].equals(found)
    # Without anchors, the lowest cluster comes first.
    heights = points[AXES].sum(axis=1).groupby(maps.cluster(points)).mean()
    assert heights.is_monotonic_increasing
    assert maps.cluster(points.iloc[[0] * 98]).isna().all()


def test_cluster_tests_are_paired_t_tests(planted):
    clustered = maps.cluster_maps(maps.positions(planted[0]))
    table = maps.cluster_tests(clustered).set_index("cluster")
    members = clustered[clustered.cluster == 2]
    paired = stats.ttest_rel(members.Competence, members.Warmth)
    assert table.t[2] == pytest.approx(paired.statistic)
    assert table.p[2] == pytest.approx(paired.pvalue)
    interval = [table.low[2], table.high[2]]
    assert interval == pytest.approx(list(paired.confidence_interval()))

    alone = clustered.assign(cluster=[0.0] + [1.0] * 97)
    assert maps.cluster_tests(alone).sign[0] == ""


def test_the_map_of_people_agrees_with_itself():
    people = maps.people()
    row = maps.agreement(people)
    # One of 120 orders of five positions.
    assert row == pytest.approx({"groups": 24, "value": 1, "p": 1 / 120})
    # With its axes exchanged a map has the same shape.
    exchanged = people.rename(columns=dict(zip(AXES, AXES[::-1], strict=True)))
    assert maps.agreement(exchanged)["value"] == pytest.approx(1)

    flat = people.assign(Competence=3.0, Warmth=3.0)
    assert np.isnan(maps.agreement(flat)["value"])


def test_the_mixed_contrast_by_hand():
    competent, warm = maps.lean_by_side(maps.people())
    # Table 2: 4.29 > 3.23, and 2.28 < 3.73 and 1.97 < 2.42.
    assert competent.mean() == pytest.approx(1.06)
    assert warm.mean() == pytest.approx(-(1.45 + 0.45) / 2)
    assert len(competent) == len(warm) == 6

    rng = np.random.default_rng(3)
    points = maps.people() + rng.normal(0, 0.3, (24, 2))
    competent, warm = maps.lean_by_side(points)
    row = maps.mixed_contrast(points)
    error = np.sqrt(competent.var() / 6 + warm.var() / 6)
    assert row["value"] == pytest.approx(competent.mean() - warm.mean())
    assert row["p"] == pytest.approx(stats.ttest_ind(competent, warm, equal_var=False).pvalue)
    assert row["value"] - row["low"] == pytest.approx(2.26 * error, rel=0.05)


def test_a_map_that_only_tells_good_from_bad_has_no_contrast():
    valence = maps.people().sum(axis=1)
    points = pd.DataFrame({"Competence": valence, "Warmth": valence - 1})
    assert maps.mixed_contrast(points) == {"value": 0, "n": 12, "low": 0, "high": 0, "p": 1}
    assert np.isnan(maps.mixed_contrast(points[:7])["p"])
    # Two groups on either side are the fewest.
    two = points.loc[["Asians", "Jews", "Disabled people", "Elderly people"]]
    two.loc["Jews", "Warmth"] += 1
    assert 0 < maps.mixed_contrast(two)["p"] < 1


def simulated(lean: pd.Series, rng: np.random.Generator) -> pd.DataFrame:
    """Simulate ratings of Table 2's groups: valence and noise, and `lean` points more competent."""
    words = stimuli.words("ORIGINAL")
    valence = rng.normal(3, 0.5, len(lean))
    values = {}
    for (group, points), middle in zip(lean.items(), valence, strict=True):
        # What a model says about a group differs from word to word.
        noise = rng.normal(0, 0.5, len(words))
        sign = np.where(words.family == "Competence", 1, -1)
        ratings = middle + noise + points / 2 * sign
        values |= {(group, word): rating for word, rating in zip(words.word, ratings, strict=True)}
    return ratings_of(values)


def contrast(ratings: pd.DataFrame) -> dict[str, float]:
    """Go from parsed values to the row of the table."""
    return maps.mixed_contrast(maps.positions(ratings).set_index("group"))


def test_a_known_mixture_is_recovered():
    lean = maps.people().Competence - maps.people().Warmth
    rng = np.random.default_rng(1)
    rows = pd.DataFrame([contrast(simulated(lean / 2, rng)) for _ in range(40)])
    known = 2.01 / 2
    assert rows.value.mean() == pytest.approx(known, abs=0.06)
    assert rows.p.lt(0.05).mean() > 0.9
    assert (rows.low.le(known) & rows.high.ge(known)).mean() > 0.85


def test_without_a_mixture_nothing_is_found():
    lean = pd.Series(0.0, maps.people().index)
    rng = np.random.default_rng(2)
    p = [contrast(simulated(lean, rng))["p"] for _ in range(200)]
    assert np.mean(np.array(p) < 0.05) <= 0.07


def test_correlations_are_spearmans():
    rng = np.random.default_rng(0)
    points = pd.DataFrame(rng.normal(size=(30, 2)), columns=["x", "y"]).eval("y = x + 2 * y")
    points.loc[0, "x"] = np.nan
    (row,) = maps.correlations(points, ["x"], ["y"]).itertuples()
    rest = points[1:]
    assert (row.rho, row.p) == pytest.approx(stats.spearmanr(rest.x, rest.y))
    (row,) = maps.correlations(points.assign(y=0.1 + 0.2), ["x"], ["y"]).itertuples()
    assert row.n == 29
    assert np.isnan(row.rho)
    # Three pairs have no p.
    (three,) = maps.correlations(points[1:4], ["x"], ["y"]).itertuples()
    (four,) = maps.correlations(points[1:5], ["x"], ["y"]).itertuples()
    assert [np.isnan(three.rho), np.isnan(four.rho)] == [True, False]


def test_extremes_keep_the_order_of_the_prompts():
    values = {("z", "Rich"): 2.0, ("b", "Rich"): 5.0, ("c", "Rich"): 2.0, ("d", "Rich"): 3.0}
    table = maps.extremes(ratings_of(values), "Rich", n=2).set_index(["end", "rank"])
    assert table.group["highest"].tolist() == ["b", "d"]
    assert table.group["lowest"].tolist() == ["z", "c"]


def replies_of(statuses: list[tuple[str, str, str]]) -> pd.DataFrame:
    """Make replies from prompt, construct and status, about one group."""
    table = pd.DataFrame(statuses, columns=["prompt", "construct", "status"])
    return table.assign(group="Men", round=1)


def test_the_refusal_rate_is_the_mean_of_the_constructs():
    replies = replies_of(
        [
            ("Emotion", "Emotion", "refused"),
            ("Prestige", "Social-Structure", "ok"),
            ("Resources", "Social-Structure", "ok"),
            ("Special treatment", "Social-Structure", "refused"),
            ("Behavior", "Behavior", "cut"),
        ]
    )
    (row,) = robustness.refusal_rates(replies).itertuples()
    assert row.rate == pytest.approx((1 + 1 / 3) / 2)
    assert (row.n, row.refused) == (4, 2)
    wilson = stats.binomtest(2, 4).proportion_ci(method="wilson")
    # Wilson's interval of the rate 2 / 3 of four prompts holds that of 2 / 4 on its upper side.
    assert row.low > wilson.low
    assert row.high > wilson.high
    others = replies.assign(group="Women", status="ok")
    assert robustness.refusal_rates(pd.concat([others, replies])).group.tolist() == ["Men", "Women"]


# --------------------------------------------------------------------------------- sensitivity


def test_variation_is_sd_by_mean_over_rounds():
    index = pd.MultiIndex.from_product([["m"], [PAPER], [1, 2], ["a", "b"]])
    index = index.set_names(["model", "ablation", "round", "group"])
    scores = pd.DataFrame({"Competence": [2.0, 3.0, 4.0, 3.0], "Warmth": np.nan}, index)
    (row,) = robustness.variation(scores).itertuples()
    assert row.competence_cv_max == pytest.approx(np.sqrt(2) / 3)
    assert row.competence_cv_mean == pytest.approx(np.sqrt(2) / 6)
    assert np.isnan(row.warmth_cv_mean)

    # Between two prompts, by model.
    means = scores.groupby(["model", "ablation", "group"]).mean()
    reduced = means.rename(index={PAPER: "w/o CoT"}) * 1.1
    (row,) = robustness.variation(pd.concat([means, reduced]), ["model"]).itertuples()
    assert row.competence_cv_mean == pytest.approx(np.std([1, 1.1], ddof=1) / 1.05)


def test_self_bleu_and_entropy_equal_their_definitions():
    # All words and pairs match, and BLEU smooths no missing order of so short a text.
    assert robustness.self_bleu(["They work", "they work"]) == pytest.approx(1)
    # One of two words matches, and 0.1 of one pair: the roots of 1 / 2 and 0.1.
    assert robustness.self_bleu(["they work", "they play"]) == pytest.approx(np.sqrt(0.5 * 0.1))
    assert np.isnan(robustness.self_bleu(["they work"]))
    # "a b", "b a", "a b": shares 2 / 3 and 1 / 3.
    entropy = -(2 / 3 * np.log2(2 / 3) + 1 / 3 * np.log2(1 / 3))
    assert robustness.entropy(["a b a", "A b"], 2) == pytest.approx(entropy)
    assert np.isnan(robustness.entropy([], 2))


def test_ratings_are_no_reasons_and_refusals_no_texts():
    texts = ["- Friendly: 4\nThey help us", "I cannot", "Honest: 2", "They cost us"]
    statuses = ["incomplete", "refused", "incomplete", "cut"]
    replies = pd.DataFrame({"text": texts, "status": statuses, "group": "Men", "round": 1})
    numbers = robustness.diversity(replies)
    assert numbers["entropy_2"] == pytest.approx(1)  # "they help", "help us"
    assert numbers["refuse_to_answer"] == pytest.approx(100 / 3)


# ------------------------------------------------------------------------- the sheet for people


def test_the_sheet_asks_once_for_coherence_and_escapes_formulas():
    replies = pd.DataFrame({"group": list("aaabbb"), "prompt": "Emotion", "round": range(6)})
    replies["text"] = ["=1+1", "x", "y", "z", " @a", "-b"]
    replies["status"] = ["ok"] * 5 + ["refused"]
    sheet = robustness.sheet(replies, np.random.default_rng(0), per_group=2)
    assert sheet.group.value_counts().to_dict() == {"a": 2, "b": 2}
    assert (sheet.coherence == "").groupby(sheet.group).sum().tolist() == [1, 1]
    assert not sheet.reply.str.match(r"\s*[=+\-@]").any()


def test_filled_sheets_are_summarised_as_in_table_12(tmp_path):
    sheet = pd.DataFrame(
        {
            "group": ["Nurses", "Lawyers"],
            "relevance": [1, 0],
            "soundness": [1, 1],
            "coherence": ["-", ""],
        }
    )
    for name, marks in (("one", [1, 0]), ("two", [1, 1])):
        sheet.assign(relevance=marks).to_csv(tmp_path / f"{name}.csv", index=False)
    files = [str(tmp_path / "one.csv"), str(tmp_path / "two.csv")]
    table = robustness.summary(files)
    assert table.loc["relevance"].tolist() == [0.75, 0.5, 4]
    assert table.n["coherence"] == 0

    for mark in ("yes", "2"):
        sheet.assign(relevance=["1", mark]).to_csv(tmp_path / "two.csv", index=False)
        with pytest.raises(InputError, match=f"two.csv, line 3, column relevance: found '{mark}'"):
            robustness.summary(files)


def test_ratings_of_nobody_make_no_map(planted):
    positions = maps.positions(planted[0])
    with pytest.raises(InputError, match="nothing to map"):
        maps.cluster_maps(positions.assign(Warmth=np.nan))


# --------------------------------------------------------------------------------------- figures


def _texts(figure) -> list[tuple]:
    """List the texts in a figure with their places."""
    return [(text.get_text(), *text.get_position()) for text in figure.findobj(plt.Text)]


def test_names_in_a_map_do_not_move_with_the_last_digits(planted, tmp_path):
    drawn = maps.cluster_maps(maps.positions(planted[0]))
    rng = np.random.default_rng(0)
    shaken = drawn.copy()
    shaken[AXES] += rng.uniform(-1e-9, 1e-9, (len(drawn), 2))
    results = []
    for table in (drawn, shaken):
        figure = figures.maps("EXTENDED", table, 1)
        figure.savefig(tmp_path / "map.png", metadata={"Software": None})
        results.append((_texts(figure), (tmp_path / "map.png").read_bytes()))
        plt.close(figure)
    assert results[0] == results[1]


def test_no_name_covers_another_name():
    figure, ax = plt.subplots(figsize=(3, 3))
    names = [f"group {number}" for number in range(12)]
    middle = pd.DataFrame(3.0, names, AXES)
    ax.scatter(middle.Competence, middle.Warmth)
    style.write_names(ax, middle)
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) == 12
    for number, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:number])
    plt.close(figure)


# ------------------------------------------------------------------------- one run of notebook 40


@pytest.fixture(scope="module")
def run(notebook):
    """Run the notebook once."""
    return notebook(NAME)


@pytest.fixture(scope="module")
def rows(run, tables):
    """Return the golden quantities of the run."""
    return golden_stereomap.rows_of_maps(tables / "stereomap")


def test_numbers_are_the_golden_ones(rows):
    quantities = golden.read("stereomap").quantity.unique()
    of_maps = [name for name in quantities if name not in OF_41]
    assert golden.differences("stereomap", rows, tuple(of_maps)).empty


def test_printed_models_come_first_in_the_tables(run):
    layout = figures.cluster_table("ORIGINAL", run.positions, run.tests)
    sources = list(dict.fromkeys(source for source, _ in layout))
    assert sources == ["Fiske et al. (2002)", "DAVINCI", "GPT-3.5", "BARD", "ALL", *MODELS]
    gpt = layout["GPT-3.5"]
    assert gpt.loc[gpt.group == "Asians", "C, W"].item() == "3.86>3.08"
    # Each source lists its 24 groups.
    assert layout.xs("group", axis=1, level=1).ne("").sum().eq(24).all()

    extended = figures.cluster_table("EXTENDED", run.positions, run.tests)
    assert "1.78=1.78" in extended["GPT-3.5", "C, W"].tolist()
    table08 = figures.correlation_table(run.table08)
    assert table08.loc["Competence", ("DAVINCI", "Passive facilitation")] == "0.81***"
    assert table08.shape == (6, 4 * (4 + len(MODELS)))
    table09 = figures.extremes_table(run.table09)
    assert table09.loc[("Wealthy", "highest", 1), "BARD"] == "Upper-class 5.00 (0.00)"
    # Each model has all four words.
    assert table09.index.nunique() == 4 * 2 * 10
    assert table09.ne("").all(axis=None)


def test_the_headline_is_the_mixed_contrast_of_the_original_prompts(run):
    headline = run.headline
    assert list(headline.index) == MODELS
    own = run.mixed[(run.mixed.version == "ORIGINAL") & (run.mixed.reading == "expected")]
    assert headline.value.tolist() == own.value.tolist()
    assert headline.verdict.tolist() == ["no difference", "no difference", "depends on the reading"]
    assert run.mixed_printed["Fiske et al. (2002)"] == pytest.approx(2.01)


def test_the_exercise_shows_that_noise_gets_signs(run):
    tests = maps.cluster_tests(maps.cluster_maps(run.noise))
    assert tests.sign.isin([">", "<"]).sum() >= 3


def test_every_trial_of_the_run_is_in_one_long_table(run):
    counts = run.ratings.groupby(MAP, sort=False).size()
    n_words = 13 + 4 + 8 + 8
    for model, reading in product(MODELS, ("expected", "greedy")):
        assert counts[model, reading, "EXTENDED"] == 98 * n_words
        assert counts[model, reading, "ORIGINAL"] == 24 * 21
    assert counts[MODELS[0], "free", "ORIGINAL"] == 2 * 24 * 21


def test_two_models_begin_to_count_on_the_extended_list(run):
    """Where greedy ratings count 1, 2, 3, 4, 5, a group lies on the other island of the map."""
    greedy = run.ratings.query("reading == 'greedy' and prompt == 'Warmth-Competence'")
    words = stimuli.prompts("EXTENDED")["Warmth-Competence"].words["ratings"]
    wide = greedy.pivot(index=["model", "group"], columns="item", values="rating")
    places = run.main.query("version == 'EXTENDED'").pipe(maps.positions)
    competence = places.set_index(["model", "group"]).Competence
    for model in ("smollm2-135m-instruct", "gemma-3-270m"):
        counts = (wide.loc[model, words[:5]] == [1, 2, 3, 4, 5]).all(axis=1)
        one = competence[model][counts]
        other = competence[model][~counts]
        assert 10 < counts.sum() < 20
        assert max(np.ptp(one), np.ptp(other)) < 0.2
        assert abs(one.mean() - other.mean()) > 1
