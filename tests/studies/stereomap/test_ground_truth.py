"""The calibrant in StereoMap: the ground truth, and that the map comes back."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score
from transformers import PreTrainedTokenizerFast

import stereomap as stereomap_examples
from few import Few
from ingroup import dictionary as lexicon
from ingroup import paths, published
from ingroup.inference import Sampling, find_model
from ingroup.inference.transformers_engine import TransformersEngine
from ingroup.models import calibrants
from ingroup.studies.biased_samaritan import stimuli as scenarios
from ingroup.studies.empathy_gap import stimuli
from ingroup.studies.empathy_gap.design import trials as empathy_gap_trials
from ingroup.studies.giebench import stimuli as questions
from ingroup.studies.stereomap import clustering, statistics
from ingroup.studies.stereomap import stimuli as social_groups
from ingroup.studies.stereomap.design import FIRST_PROMPT, trials
from ingroup.studies.stereomap.ground_truth import (
    GroundTruth,
    compare,
    ground_truth_map,
    recovery,
    sides,
    verdicts,
)
from ingroup.studies.stereomap.keyword_lists import parse_keywords
from ingroup.studies.stereomap.rating_lists import parse_ratings
from ingroup.studies.stereomap.statistics import AXES
from ingroup.tables import InputError


@pytest.fixture(scope="module")
def ground_truth():
    replies = {}
    for name in calibrants():
        replies[name] = stereomap_examples.Replies(paths.MODELS / name / "ground_truth.yaml")
    return replies


@pytest.fixture
def calibrant(ground_truth):
    return ground_truth["calibrant"]


@pytest.fixture
def null(ground_truth):
    return ground_truth["calibrant-null"]


def test_a_ground_truth_position_by_hand(calibrant):
    assert calibrant.position("Nurses") == (4, 4.2, 4.08)


@pytest.mark.parametrize(
    ("prompt", "word", "expected"),
    [
        (FIRST_PROMPT, "Friendly", 4.3),
        (FIRST_PROMPT, "Rating", 3 + 0.5 * 1.2 + 0.5 * 1.08),
        ("EXTENDED/Emotion", "Envious", 2.8 - 0.6 + 0.7 * 1.08),
        ("EXTENDED/Prestige", "Rating", 3 + 0.1 * 1.2 + 0.8 * 1.08),
        ("ORIGINAL/capable", "Rating", 4.08),
        ("ORIGINAL/Power", "Rating", 2.8 - 0.6 * 1.2 + 0.1 * 1.08),
    ],
)
def test_a_ground_truth_rating_by_hand(calibrant, prompt, word, expected):
    """Nurses: warmth 4.2, competence 4.08. Friendly 3.1 + 1.2, envy 2.8 - 0.5 1.2 + 0.7 1.08."""
    assert calibrant.rating("Nurses", prompt, word) == pytest.approx(expected)


def test_a_rating_stays_on_the_scale(calibrant):
    ratings = []
    for name, prompt in social_groups.prompts().items():
        for word in prompt.words:
            for group in social_groups.groups().group:
                ratings.append(calibrant.rating(group, name, word))

    assert min(ratings) == 1


def test_every_group_has_a_position_and_no_other_name_does(calibrant):
    people = set(social_groups.groups().people)
    positioned = []
    for groups in calibrant.table["groups"].values():
        positioned.extend(groups)

    assert len(positioned) == len(set(positioned))
    assert set(positioned) == people
    assert set(calibrant.table["refusal"]["groups"]) <= people
    with pytest.raises(InputError):
        calibrant.position("Librarians")


def test_two_names_of_a_group_have_one_position(calibrant):
    assert calibrant.position("Elderly") == calibrant.position("Elderly people")


def test_groups_lie_where_the_paper_s_tables_have_them(calibrant):
    """Fiske et al.'s five clusters of Table 2 are five ground-truth clusters, one for one."""
    table = published.load("stereomap", 2)
    fiske = table[table.source.str.startswith("Fiske")]
    positions = [calibrant.position(group) for group in fiske.group]
    fiske = fiske.assign(ground_truth=[position.cluster for position in positions])

    clusters_of_cluster = fiske.groupby("cluster_order").ground_truth.nunique()
    assert (clusters_of_cluster == 1).all()
    assert fiske.ground_truth.nunique() == 5

    means = fiske.groupby("ground_truth")[["competence", "warmth"]].mean()
    centres = pd.DataFrame(positions).groupby("cluster").first()
    assert means.competence.corr(centres.competence) > 0.9
    assert means.warmth.corr(centres.warmth) > 0.8


def test_the_control_rates_every_group_alike(calibrant, null):
    groups = social_groups.names()

    for name, prompt in social_groups.prompts().items():
        for word in prompt.words:
            ratings = {null.rating(group, name, word) for group in groups}
            assert len(ratings) == 1

        weights = {str(null.weights(group, name)) for group in groups}
        assert len(weights) == 1

    assert null.table["ratings"] == calibrant.table["ratings"]


def test_only_the_calibrant_refuses(calibrant, null):
    for group in social_groups.names():
        assert not null.refusal_share(group)
        assert 0 <= calibrant.refusal_share(group) < 1


def test_replies_average_to_the_ground_truth(calibrant):
    """Mean of 1,000 replies, parsed: each word within four standard errors, refusals too."""
    rng = np.random.default_rng(0)
    n = 1000
    name = "EXTENDED/Emotion"
    prompt = social_groups.prompts()[name]
    values = []
    n_refused = 0

    for _ in range(n):
        text, means = calibrant.reply("Muslims", name, prompt.parts, rng)
        ratings = parse_ratings(text, prompt.words)
        keywords = parse_keywords(text, prompt.n_keywords)

        if means:
            assert ratings.status == "ok"
            assert keywords.status == "ok"
            assert all(keywords.reasons)
            values.append(list(ratings.values.values()))
        else:
            assert ratings.status == "refused"
            assert keywords.status == "refused"
            n_refused += 1

    expected = [calibrant.rating("Muslims", name, word) for word in prompt.words]
    deviations = np.abs(np.mean(values, axis=0) - expected)
    standard_error = 0.5 / len(values) ** 0.5
    assert deviations.max() < 4 * standard_error
    standard_error = (0.2 * 0.8 / n) ** 0.5
    assert abs(n_refused / n - 0.2) < 4 * standard_error


def test_lists_are_drawn_as_often_as_the_ground_truth_says(calibrant):
    """Jews, the 12th of cluster 2 of five lists: the 2nd, Agency high, three times as often."""
    rank = list(calibrant.table["groups"][2]).index("Jews")
    expected = dict(calibrant.table["keywords"]["traits"][2])
    names = list(expected)
    own_list = names[rank % len(names)]
    expected[own_list] *= 3

    weights = calibrant.weights("Jews", FIRST_PROMPT)

    assert weights["traits"] == expected


def without_plural(word):
    """Lemmas enough for the ground-truth keywords."""
    return [word.removesuffix("s")]


def test_ground_truth_keywords_are_in_the_sample_dictionary_in_their_direction(calibrant):
    """Nearly all traits, so that the dimensions can come back; some are meant not to be."""
    sample = lexicon.load_lexicon()
    mappings = lexicon.load_mappings()
    directions_of = {"high": [1], "low": [-1], "": [-1, 0, 1]}
    n_in_direction = 0
    n_keywords = 0

    for name, keywords in calibrant.lists["traits"].items():
        dimension, _, end = name.partition(" ")
        words = lexicon.find(list(keywords), sample, without_plural, mappings).word
        directions = sample.directions[dimension].reindex(words.dropna())
        n_keywords += len(words)
        n_in_direction += directions.isin(directions_of[end]).sum()

    assert n_keywords > n_in_direction > 0.75 * n_keywords


def test_examples_hold_a_ground_truth_mean_for_each_number():
    examples = stereomap_examples.Examples("calibrant")
    rng = np.random.default_rng(0)
    counts = set()

    for _ in range(300):
        example = examples.draw(rng, 1.0)
        numbers = re.findall(r": ([1-5])$", example.reply, re.MULTILINE)
        for number, mean in zip(numbers, example.numbers, strict=True):
            assert abs(int(number) - mean) < 1
        counts.add(len(numbers))

    assert {0, 1, 8, 13} <= counts


def texts_of_other_studies():
    """Narratives and scenarios, and a prompt of each kind."""
    texts = list(stimuli.load_events("sample").generated_text)
    texts += list(scenarios.load_scenarios().text)

    two_events = stimuli.load_events("sample", 2)
    for trial in Few(empathy_gap_trials(two_events), 0, 3):
        texts.append(trial.messages[-1]["content"])
    for name in stimuli.prompts()["settings"]:
        messages = stimuli.setting(name).messages("a Jew", "a Jew", "joy", "x")
        texts.append(messages[-1]["content"])

    first_question = questions.load_questions("sample")[0]
    for prompt in questions.templates()["prompts"]:
        for message in questions.messages(first_question, prompt):
            texts.append(message["content"])

    return texts


def test_phrases_stand_in_no_other_study_s_prompts():
    """They are one token each: a narrative that held one would be read otherwise than before."""
    phrases = stereomap_examples.phrases()
    all_texts = "\n".join(texts_of_other_studies())

    assert len(phrases) == len(set(phrases))
    for phrase in phrases:
        assert phrase not in all_texts


def test_a_prompt_is_read_in_few_tokens():
    tokenizer = PreTrainedTokenizerFast.from_pretrained(paths.MODELS / "calibrant")
    chat = social_groups.chats("Men", FIRST_PROMPT)[""]

    tokens = tokenizer.apply_chat_template(chat, return_dict=False)

    assert len(tokens) < 60


def rated(model, calls, rounds):
    """Statuses and scores of every second group: the first prompt, or its ratings by themselves."""
    words = published.load("stereomap", 4)
    words_of_axes = words[words.family.isin(statistics.AXES)]
    single_words = [
        word for word in social_groups.prompts()[FIRST_PROMPT].words if word != "Rating"
    ]
    with_ratings = []
    for trial in trials(social_groups.names()[::2], [FIRST_PROMPT], calls=calls):
        if trial.condition["inquiry"].part in ("", "ratings"):
            with_ratings.append(trial)

    messages = [trial.messages for trial in with_ratings]
    engine = TransformersEngine(find_model(model))
    rows = []
    for turn in rounds:
        replies = engine.answer(messages, Sampling(1.0, 1.0, 200, turn))
        for trial, reply in zip(with_ratings, replies, strict=True):
            ratings = parse_ratings(reply.text, single_words)
            row = {
                "group": trial.condition["inquiry"].group,
                "round": turn,
                "status": ratings.status,
                **ratings.values,
            }
            rows.append(row)

    table = pd.DataFrame(rows)
    return table.status, statistics.round_scores(table, words_of_axes)


def test_the_ground_truth_map_comes_back(calibrant):
    """In one round warmth and competence correlate at 0.95, the clusters' adjusted Rand is 0.9."""
    status, scores = rated("calibrant", "together", [1])
    means = statistics.group_means(scores)
    positions = [calibrant.position(group) for group in means.index]
    ground_truth_map = pd.DataFrame(positions, means.index)

    labels = clustering.clusters(means).labels

    assert status.isin(["ok", "refused"]).mean() > 0.97
    assert means["Competence"].corr(ground_truth_map["competence"]) >= 0.95
    assert means["Warmth"].corr(ground_truth_map["warmth"]) >= 0.95
    ground_truth_labels = ground_truth_map.cluster[labels.index]
    assert adjusted_rand_score(ground_truth_labels, labels) >= 0.9


def test_the_control_has_no_cluster_that_differs():
    """Clusters of one half of the rounds, tested on the other."""
    status, scores = rated("calibrant-null", "separate", [1, 2])
    first, second = clustering.halves(scores, np.random.default_rng(0))
    labels = clustering.clusters(statistics.group_means(first)).labels

    table = clustering.axis_tests(statistics.group_means(second), labels)

    assert status.isin(["ok", "refused"]).mean() > 0.97
    assert (table.sign == "=").all()


@pytest.fixture
def calibrant_map():
    """The ground truth for the maps of the calibrant."""
    return GroundTruth(paths.MODELS / "calibrant" / "ground_truth.yaml")


def test_recovery_by_hand(calibrant_map):
    """Nurses are here where the ground truth has them; two groups are 0.3 points warmer."""
    groups = ["Nurses", "Lawyers", "Homeless"]
    warmer_by = [0, 0.3, 0.3]
    points = []
    for group, difference in zip(groups, warmer_by, strict=True):
        position = calibrant_map.position(group)
        points.append((position.warmth + difference, position.competence))
    assert points[0] == (4.2, 4.08)

    means = pd.DataFrame(points, groups, ["Warmth", "Competence"])
    both = sides(calibrant_map, means)
    ground_truth_points = both[["Competence ground truth", "Warmth ground truth"]]
    exact_pipeline = ground_truth_points.set_axis(AXES, axis=1)
    labels = pd.Series([4, 2, 0], groups)
    tests = pd.DataFrame({"finding": ["significant", "", "significant"]})

    row = recovery(both, exact_pipeline, labels, tests)

    assert row["pipeline"] == 0
    assert row["error, Competence"] == 0
    assert row["error, Warmth"] == pytest.approx((2 * 0.3**2 / 3) ** 0.5)
    assert row["largest difference, Warmth"] == pytest.approx(0.3)
    assert row["r of Competence"] == pytest.approx(1)
    assert row["adjusted Rand"] == 1
    assert row["clusters that differ"] == 2


def test_the_map_of_ground_truth_ratings_is_the_ground_truth_map(calibrant_map):
    """A round that lacks a rating has no score."""
    words = social_groups.words("EXTENDED").word
    ratings = pd.DataFrame({"group": ["Nurses", "Nurses"], "round": [1, 2]})
    ratings[list(words)] = 3.0
    ratings.loc[1, words.iloc[0]] = np.nan

    table = ground_truth_map(calibrant_map, ratings, "EXTENDED", "drop")

    assert table.loc["Nurses"].to_dict() == pytest.approx({"Competence": 4.08, "Warmth": 4.2})


@pytest.mark.parametrize(
    ("pipeline", "rand", "n_differ", "verdict"),
    [
        (0, 1, 3, "clusters of the ground truth"),
        (0, 0.8, 3, "not all clusters of the ground truth"),
        (0, np.nan, 0, "no cluster differs, as in the ground truth"),
        (0, np.nan, 1, "not all clusters of the ground truth"),
        (0.1, 1, 0, "the pipeline errs"),
    ],
)
def test_the_verdict_of_a_recovered_map(pipeline, rand, n_differ, verdict):
    row = {"pipeline": pipeline, "adjusted Rand": rand, "clusters that differ": n_differ}

    assert verdicts(pd.DataFrame([row])).tolist() == [verdict]


def test_only_maps_of_calibrants_are_compared_with_a_ground_truth(calibrant_map):
    """Ground-truth ratings of three groups in three clusters: the map comes back whole."""
    groups = ["Nurses", "Lawyers", "Homeless"]
    words = social_groups.words("EXTENDED")
    ratings = pd.DataFrame({"group": groups, "round": 1})
    for word in words.word:
        ratings[word] = [calibrant_map.rating(group, FIRST_PROMPT, word) for group in groups]
    means = statistics.group_means(statistics.round_scores(ratings, words))
    labels = pd.Series([0, 1, 2], groups)
    tests = pd.DataFrame({"finding": ["significant", "", ""]})

    def of_both(value):
        return {("own", "EXTENDED"): value, ("calibrant", "EXTENDED"): value}

    of_groups, of_maps = compare(
        of_both(means), of_both(ratings), of_both(labels), of_both(tests), "drop"
    )

    assert of_maps[["model", "version"]].values.tolist() == [["calibrant", "EXTENDED"]]
    assert of_maps["error, Warmth"].tolist() == [pytest.approx(0, abs=1e-9)]
    assert of_maps["clusters that differ"].tolist() == [1]
    assert of_maps.verdict.tolist() == ["clusters of the ground truth"]
    assert of_groups.index.tolist() == [("calibrant", "EXTENDED", group) for group in groups]

    real = {("own", "EXTENDED"): means}
    without = {("own", "EXTENDED"): labels}
    of_groups, of_maps = compare(real, real, without, {}, "drop")
    assert of_groups.empty
    assert of_maps.empty
