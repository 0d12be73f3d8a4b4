"""The calibrant in StereoMap: what is planted, and that the map comes back."""

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
from ingroup.studies.stereomap.design import FIRST, trials
from ingroup.studies.stereomap.keyword_lists import parse_keywords
from ingroup.studies.stereomap.planted import Planted, planted_map, recovery, sides, verdicts
from ingroup.studies.stereomap.rating_lists import parse_ratings
from ingroup.studies.stereomap.statistics import AXES
from ingroup.tables import InputError


@pytest.fixture(scope="module")
def planted():
    return {
        name: stereomap_examples.Replies(paths.MODELS / name / "planted.yaml")
        for name in calibrants()
    }


def test_a_planted_rating_by_hand(planted):
    """Nurses: warmth 4.2, competence 4.08. Friendly 3.1 + 1.2, envy 2.8 - 0.5 1.2 + 0.7 1.08."""
    calibrant = planted["calibrant"]
    assert calibrant.position("Nurses") == (4, 4.2, 4.08)
    by_hand = {
        (FIRST, "Friendly"): 4.3,
        (FIRST, "Rating"): 3 + 0.5 * 1.2 + 0.5 * 1.08,
        ("EXTENDED/Emotion", "Envious"): 2.8 - 0.6 + 0.7 * 1.08,
        ("EXTENDED/Prestige", "Rating"): 3 + 0.1 * 1.2 + 0.8 * 1.08,
        ("ORIGINAL/capable", "Rating"): 4.08,
        ("ORIGINAL/Power", "Rating"): 2.8 - 0.6 * 1.2 + 0.1 * 1.08,
    }
    found = {key: calibrant.rating("Nurses", *key) for key in by_hand}
    assert found == pytest.approx(by_hand)


def test_a_rating_stays_on_the_scale(planted):
    names = [
        (name, word) for name, prompt in social_groups.prompts().items() for word in prompt.words
    ]
    groups = social_groups.groups().group
    assert min(planted["calibrant"].rating(g, *asked) for g in groups for asked in names) == 1


def test_every_group_has_a_place_and_no_other_name_does(planted):
    people = set(social_groups.groups().people)
    told = [name for part in planted["calibrant"].table["groups"].values() for name in part]
    assert len(told) == len(set(told))
    assert set(told) == people
    assert set(planted["calibrant"].table["refusal"]["groups"]) <= people
    position = planted["calibrant"].position
    with pytest.raises(InputError):
        position("Librarians")
    assert position("Elderly") == position("Elderly people")  # two names of one group


def test_groups_lie_where_the_paper_s_tables_have_them(planted):
    """Fiske et al.'s five clusters of Table 2 are five planted clusters, one for one."""
    table = published.load("stereomap", 2)
    people = table[table.source.str.startswith("Fiske")]
    place = people.assign(planted=[planted["calibrant"].position(g).cluster for g in people.group])
    assert (place.groupby("cluster_order").planted.nunique() == 1).all()
    assert place.planted.nunique() == 5
    means = place.groupby("planted")[["competence", "warmth"]].mean()
    centres = map(planted["calibrant"].position, place.groupby("planted").group.first())
    centres = pd.DataFrame(centres).set_index("cluster")
    assert means.competence.corr(centres.competence) > 0.9
    assert means.warmth.corr(centres.warmth) > 0.8


def test_the_control_rates_every_group_alike(planted):
    null, groups = planted["calibrant-null"], social_groups.names()
    for name, prompt in social_groups.prompts().items():
        for word in prompt.words:
            assert len({null.rating(group, name, word) for group in groups}) == 1
        assert len({str(null.weights(group, name)) for group in groups}) == 1
    assert null.table["ratings"] == planted["calibrant"].table["ratings"]
    assert not any(null.refusal(group) for group in groups)
    assert all(0 <= planted["calibrant"].refusal(group) < 1 for group in groups)


def test_replies_average_to_what_is_planted(planted):
    """Mean of 1,000 replies, parsed: each word within four standard errors, refusals too."""
    rng, calibrant, n = np.random.default_rng(0), planted["calibrant"], 1000
    name = "EXTENDED/Emotion"
    prompt = social_groups.prompts()[name]
    values, refused = [], 0
    for _ in range(n):
        text, means = calibrant.reply("Muslims", name, prompt.parts, rng)
        read, listed = parse_ratings(text, prompt.words), parse_keywords(text, prompt.n_keywords)
        refused += not means
        assert read.status == listed.status == ("ok" if means else "refused")
        if means:
            values.append(list(read.values.values()))
            assert all(listed.reasons)
    wanted = [calibrant.rating("Muslims", name, word) for word in prompt.words]
    assert np.abs(np.mean(values, axis=0) - wanted).max() < 4 * 0.5 / len(values) ** 0.5
    assert abs(refused / n - 0.2) < 4 * (0.2 * 0.8 / n) ** 0.5


def test_lists_are_drawn_as_often_as_planted(planted):
    """Jews, the 12th of cluster 2 of five lists: the 2nd, Agency high, three times as often."""
    weights = planted["calibrant"].weights("Jews", FIRST)["traits"]
    rank = list(planted["calibrant"].table["groups"][2]).index("Jews")
    lists = planted["calibrant"].table["keywords"]["traits"][2]
    chosen = list(lists)[rank % len(lists)]
    assert weights == {name: w * (3 if name == chosen else 1) for name, w in lists.items()}


def test_planted_keywords_are_in_the_sample_dictionary_in_their_direction(planted):
    """Nearly all traits, so that the dimensions can come back; some are meant not to be."""
    sample, signs = lexicon.load_lexicon(), {"high": [1], "low": [-1], "": [-1, 0, 1]}
    agree, total = 0, 0
    for name, keywords in planted["calibrant"].lists["traits"].items():
        dimension, _, end = name.partition(" ")
        lemmas = lambda word: [word.removesuffix("s")]  # noqa: E731
        found = lexicon.find(list(keywords), sample, lemmas, lexicon.load_mappings()).word
        told = sample.directions[dimension].reindex(found.dropna())
        total, agree = total + len(found), agree + told.isin(signs[end]).sum()
    assert total > agree > 0.75 * total


def test_examples_hold_a_planted_mean_for_each_number():
    examples, rng = stereomap_examples.Examples("calibrant"), np.random.default_rng(0)
    seen = set()
    for _ in range(300):
        example = examples.draw(rng, 1.0)
        numbers = [int(n) for n in re.findall(r": ([1-5])$", example.reply, re.MULTILINE)]
        assert len(numbers) == len(example.numbers)
        assert all(abs(n - mean) < 1 for n, mean in zip(numbers, example.numbers, strict=True))
        seen.add(len(numbers))
    assert {0, 1, 8, 13} <= seen


def test_phrases_stand_in_no_other_study_s_prompts():
    """They are one token each: a narrative that held one would be read otherwise than before."""
    phrases = stereomap_examples.phrases()
    assert len(phrases) == len(set(phrases))
    others = [*stimuli.load_events("sample").generated_text, *scenarios.load_scenarios().text]
    events = stimuli.load_events("sample", 2)
    others += [trial.messages[-1]["content"] for trial in Few(empathy_gap_trials(events), 0, 3)]
    item = questions.load_questions("sample")[0]
    others += [
        m["content"] for p in questions.templates()["prompts"] for m in questions.messages(item, p)
    ]
    others += [stimuli.setting(name).messages("a Jew", "a Jew", "joy", "x")[-1]["content"]
               for name in stimuli.prompts()["settings"]]  # fmt: skip
    assert not [phrase for phrase in phrases if any(phrase in text for text in others)]


def test_a_prompt_is_read_in_few_tokens():
    folder = paths.MODELS / "calibrant"
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    chat = social_groups.chats("Men", FIRST)[""]
    assert len(tokenizer.apply_chat_template(chat, return_dict=False)) < 60


def rated(model, groups, calls, rounds):
    """Statuses and scores of replies to the first prompt, or to its ratings in a chat of own."""
    prompt, words = social_groups.prompts()[FIRST], published.load("stereomap", 4)
    plan = trials(groups, [FIRST], calls=calls)
    plan = [trial for trial in plan if trial.condition["inquiry"].part in ("", "ratings")]
    engine, rows = TransformersEngine(find_model(model)), []
    for turn in rounds:
        replies = engine.answer([t.messages for t in plan], Sampling(1.0, 1.0, 200, turn))
        for trial, reply in zip(plan, replies, strict=True):
            read = parse_ratings(reply.text, [w for w in prompt.words if w != "Rating"])
            group = trial.condition["inquiry"].group
            rows.append({"group": group, "round": turn, "status": read.status, **read.values})
    table = pd.DataFrame(rows)
    words = words[words.family.isin(statistics.AXES)]
    return table.status, statistics.round_scores(table, words)


def test_the_planted_map_comes_back(planted):
    """In one round warmth and competence correlate at 0.95, the clusters' adjusted Rand is 0.9."""
    status, scores = rated("calibrant", social_groups.names()[::2], "together", [1])
    assert status.isin(["ok", "refused"]).mean() > 0.97
    means = statistics.group_means(scores)
    wanted = pd.DataFrame(map(planted["calibrant"].position, means.index), means.index)
    for axis in statistics.AXES:
        assert means[axis].corr(wanted[axis.lower()]) >= 0.95
    found = clustering.clusters(means).labels
    assert adjusted_rand_score(wanted.cluster[found.index], found) >= 0.9


def test_the_control_has_no_cluster_that_differs():
    """Clusters of one half of the rounds, tested on the other."""
    status, scores = rated("calibrant-null", social_groups.names()[::2], "separate", [1, 2])
    assert status.isin(["ok", "refused"]).mean() > 0.97
    first, second = clustering.halves(scores, np.random.default_rng(0))
    labels = clustering.clusters(statistics.group_means(first)).labels
    tests = clustering.axis_tests(statistics.group_means(second), labels)
    assert (tests.sign == "=").all()


def recovered(points, groups, labels, findings):
    """What `recovery` says of positions (warmth, competence) here; the pipeline is exact."""
    calibrant = Planted(paths.MODELS / "calibrant" / "planted.yaml")
    means = pd.DataFrame(points, groups, ["Warmth", "Competence"])
    both = sides(calibrant, means)
    through = both[["Competence planted", "Warmth planted"]].set_axis(AXES, axis=1)
    tests = pd.DataFrame({"finding": findings})
    return recovery(both, through, pd.Series(labels, groups), tests)


def test_recovery_by_hand():
    """Nurses are planted at warmth 4.2 and competence 4.08."""
    calibrant = Planted(paths.MODELS / "calibrant" / "planted.yaml")
    groups = ["Nurses", "Lawyers", "Homeless"]
    planted = [calibrant.position(group) for group in groups]
    points = [(position.warmth, position.competence) for position in planted]
    assert points[0] == (4.2, 4.08)
    moved = [(warmth + 0.3, competence) for warmth, competence in points]
    moved[0] = (4.2, 4.08)
    row = recovered(moved, groups, [4, 2, 0], ["significant", "", "significant"])
    assert row["pipeline"] == row["error, Competence"] == 0
    assert row["error, Warmth"] == pytest.approx((2 * 0.3**2 / 3) ** 0.5)
    assert row["largest difference, Warmth"] == pytest.approx(0.3)
    assert row["r of Competence"] == pytest.approx(1)
    assert (row["adjusted Rand"], row["clusters that differ"]) == (1, 2)


def test_the_map_of_planted_ratings_is_the_planted_map():
    calibrant = Planted(paths.MODELS / "calibrant" / "planted.yaml")
    words = social_groups.words("EXTENDED").word
    ratings = pd.DataFrame({"group": ["Nurses", "Nurses"], "round": [1, 2]})
    ratings[list(words)] = 3.0
    ratings.loc[1, words.iloc[0]] = np.nan  # this round has no score
    table = planted_map(calibrant, ratings, "EXTENDED", "drop")
    assert table.loc["Nurses"].to_dict() == pytest.approx({"Competence": 4.08, "Warmth": 4.2})


def test_verdicts_of_recovered_maps():
    rows = pd.DataFrame(
        [(0, 1, 3), (0, 0.8, 3), (0, np.nan, 0), (0, np.nan, 1), (0.1, 1, 0)],
        columns=["pipeline", "adjusted Rand", "clusters that differ"],
    )
    assert verdicts(rows).tolist() == [
        "clusters as planted",
        "clusters not all as planted",
        "no cluster differs, as planted",
        "clusters not all as planted",
        "the pipeline errs",
    ]
