"""Scored answers of StereoMap, by hand from small stores; group profiles on one round."""

import numpy as np
import pandas as pd
import pytest

from ingroup import paths
from ingroup.inference import Engine, Reply, StoreError, answered_jobs, ask, job, rated
from ingroup.studies.stereomap import answers, design, group_profile, stimuli

PARAMETERS = {
    "MODELS": ["small"],
    "ENGINE": "",
    "READING": "expected",
    "ENDING": "turn",
    "GROUPS": ["Men", "Nurses"],
    "ORIGINAL_GROUPS": "paper",
    "ROUNDS": 2,
    "ABLATION_ROUNDS": 0,
    "FORM": "released",
    "WORDING": "paper",
    "CALLS": "together",
    "TEMPERATURE": -1.0,
    "TOP_P": 1.0,
    "MAX_TOKENS": 400,
    "REASONING": "",
    "SEED": 0,
    "INCOMPLETE": "drop",
    "PARSING": "sound",
    "CLUSTERS": 2,
    "ALPHA": 0.05,
}
WORDS = stimuli.prompts()[design.FIRST_PROMPT].words
NUMBERS = [1, 2, 3, 4, 5]


class Scale(Engine):
    """An engine whose k-th prompt is sure of 1 + k modulo 5 at every lead but the first."""

    asks_again = False

    def answer(self, conversations, sampling):
        return [self.reply(number, sampling) for number in range(len(conversations))]

    def reply(self, number, sampling):
        if not sampling.choices:
            return Reply("Friendly: 4\nOverall rating: 2", "stop")

        n_leads = len(sampling.leads)
        probabilities = np.zeros((n_leads, 5))
        probabilities[:, number % 5] = 1
        probabilities[0] = [0.5, 0.25, 0, 0, 0.25]
        mass = (0.5,) * n_leads
        return Reply("", "stop", probabilities=tuple(probabilities.ravel()), mass=mass)

    def identity(self):
        return {}

    def close(self):
        pass


@pytest.fixture
def asked_jobs(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    monkeypatch.setattr(job, "make_engine", lambda *_, **__: Scale())
    return ask(design.jobs(PARAMETERS), PARAMETERS)


def test_a_words_value_is_the_mean_of_its_distribution(asked_jobs):
    first = asked_jobs[0]

    table = answers.load(first)

    assert first.is_scored
    assert table.group.tolist() == ["Men", "Nurses"]
    assert table.status.tolist() == ["ok", "ok"]
    assert table.keywords.tolist() == [(), ()]
    assert table.reasons.tolist() == [(), ()]

    for number, ratings in enumerate(table["values"]):
        assert tuple(ratings) == WORDS
        assert ratings["Friendly"] == pytest.approx(0.5 + 2 * 0.25 + 5 * 0.25)
        for word in WORDS[1:]:
            assert ratings[word] == 1 + number


def test_the_most_probable_number_of_each_word_and_how_probable_all_are(asked_jobs):
    table = answers.rating_probabilities(asked_jobs[0])

    of_men = [("Men", "Warmth-Competence", word) for word in WORDS]
    of_nurses = [("Nurses", "Warmth-Competence", word) for word in WORDS]
    assert table.index.tolist() == of_men + of_nurses
    assert table[NUMBERS].sum(axis=1).to_numpy() == pytest.approx(1)
    assert table.most_probable[of_men].tolist() == [1.0] * len(WORDS)
    assert table.most_probable[of_nurses].tolist() == [1.0] + [2.0] * (len(WORDS) - 1)
    assert table.loc[("Nurses", "Warmth-Competence", "Friendly"), 5.0] == 0.25
    assert (table.option_mass == 0.5).all()


@pytest.mark.usefixtures("asked_jobs")
def test_a_failed_call_has_no_number(monkeypatch):
    """Of the second of two prompts no answer came."""
    reply = Scale.reply

    def second_fails(self, number, sampling):
        if number == 1:
            return Reply(None, "failed", error="gone")
        return reply(self, number, sampling)

    monkeypatch.setattr(Scale, "reply", second_fails)
    first = design.jobs(PARAMETERS | {"FORM": "grammatical"})[0]
    ask([first], PARAMETERS)

    probabilities = answers.rating_probabilities(first)
    table = answers.load(first)

    assert probabilities.loc["Men"].notna().all(axis=None)
    assert probabilities.loc["Nurses"].isna().all(axis=None)
    assert table.status.tolist() == ["ok", "failed"]
    ratings_of_nurses = list(table["values"][1].values())
    assert np.isnan(ratings_of_nurses).all()


def test_ratings_are_the_scored_ones_of_one_round_and_words_those_of_the_text(asked_jobs):
    table = group_profile._ratings(PARAMETERS, "small")

    for one_job in rated(asked_jobs):
        if one_job.labels["version"] == "EXTENDED":
            assert one_job.is_scored
    assert table["round"].tolist() == [1, 1]
    assert table.group.tolist() == ["Men", "Nurses"]
    assert table.Sociable.tolist() == [1, 2]
    assert table.Overall.tolist() == [1, 2]

    free_text_jobs = [one_job for one_job in asked_jobs if not one_job.is_scored]
    ratings = answers.load(free_text_jobs[0])["values"][0]
    assert ratings["Friendly"] == 4


@pytest.mark.usefixtures("asked_jobs")
def test_what_is_not_stored_is_left_out():
    """The engine "stored" reads what another one asked, and nothing else."""
    stored = PARAMETERS | {"MODELS": ["small@stored"]}
    jobs = design.jobs(stored)
    assert answered_jobs(jobs) == jobs

    is_scored = [one_job for one_job in jobs if one_job.is_scored]
    (is_scored[0].folder / "manifest.json").unlink()
    assert len(answered_jobs(design.jobs(stored))) == len(jobs) - 1


@pytest.mark.usefixtures("asked_jobs")
def test_a_model_without_answers_is_named():
    unknown = PARAMETERS | {"MODELS": ["nobody@stored"]}
    with pytest.raises(StoreError, match=r"nobody@stored.* holds no answers"):
        group_profile._ratings(unknown, "nobody")


@pytest.mark.usefixtures("asked_jobs")
def test_of_one_round_no_path_needs_another():
    table = group_profile.paths(PARAMETERS, "small", {"CLUSTER_SEEDS": 1, "SEED": 0})

    assert set(table.rounds) == {"the only one"}
    assert set(table.test) <= {group_profile.EXCHANGED, group_profile.OVER_GROUPS}


@pytest.mark.usefixtures("asked_jobs")
def test_views_have_the_differences_of_groups():
    views = group_profile.views(PARAMETERS, "small", {"Men": "men", "Nurses": "nurses"})

    warmth = views[0].items
    difference = warmth.nurses - warmth.men
    assert warmth.index.tolist() == [1]
    # Nurses minus men: all words but the first are 2 and 1.
    assert difference[1] == pytest.approx(2 * (0.5 * 0.5 + 0.5))


def test_replies_without_an_answer_are_read_first():
    """Of nine replies with an answer every third, so that they are evenly spread."""
    status = ["ok"] * 9 + ["refused", "cut", "refused"]
    replies = pd.DataFrame({"model": "a", "status": status})

    picked = answers.examples(replies)

    assert picked.index.tolist() == [9, 10, 0, 3, 6]


def test_no_replies_have_no_examples():
    no_replies = pd.DataFrame({"model": [], "status": []})

    assert answers.examples(no_replies).empty


def test_replies_of_all_jobs_are_one_table_that_says_which_ratings_count(asked_jobs):
    """Each word of EXTENDED is scored once, and asked in free text in two rounds."""
    table = answers.load_jobs(asked_jobs)

    assert table.index.is_unique
    first = table[(table.prompt == "Warmth-Competence") & (table.group == "Men")]
    assert first["mode"].tolist() == ["scored", "free text", "free text"]
    assert first.is_rated.tolist() == [True, False, False]
    assert first["round"].tolist() == [1, 1, 2]
    of_prestige = table[table.prompt == "Prestige"].groupby("version").construct.unique()
    assert of_prestige["EXTENDED"].tolist() == ["Social-Structure"]
    assert of_prestige["ORIGINAL"].tolist() == ["Status"]


def test_what_replies_lack_is_counted_apart_from_refusals():
    rows = [
        ("m", "ok", {"Friendly": 4.0, "Honest": np.nan}, "ok"),
        ("m", "ok", {"Friendly": np.nan, "Honest": np.nan}, "too few"),
        ("m", "refused", {"Friendly": np.nan}, "refused"),
        ("n", "incomplete", {"Friendly": 1.0}, ""),
    ]
    replies = pd.DataFrame(rows, columns=["model", "status", "values", "list"])

    table = answers.missing_counts(replies, ["model"])

    assert table.loc["m"].tolist() == [2, 3, 2, 1]
    assert table.loc["n"].tolist() == [1, 0, 0, 0]


def test_ratings_of_each_map_are_a_table_and_two_rows_of_each_are_shown():
    replies = pd.DataFrame(
        [
            ("m", "EXTENDED", "Men", 1, {"Friendly": 4.0}),
            ("m", "EXTENDED", "Men", 2, {"Friendly": 2.0}),
            ("m", "EXTENDED", "Women", 1, {"Friendly": 1.0}),
            ("n", "EXTENDED", "Men", 1, {"Friendly": 5.0}),
            ("m", "ORIGINAL", "Men", 1, {"Rating": 3.0}),
        ],
        columns=["model", "version", "group", "round", "values"],
    ).assign(prompt="capable")

    tables = answers.rating_tables(replies)

    assert list(tables) == [("m", "EXTENDED"), ("n", "EXTENDED"), ("m", "ORIGINAL")]
    assert tables["m", "EXTENDED"].Friendly.tolist() == [4, 2, 1]
    assert tables["m", "ORIGINAL"].capable.tolist() == [3]
    shown = answers.first_rows(tables)
    assert shown["EXTENDED"].index.tolist() == ["m", "m", "n"]
    assert shown["EXTENDED"].Friendly.tolist() == [4, 2, 5]
    assert shown["ORIGINAL"].columns.tolist() == ["group", "round", "capable"]


def test_only_a_calibrant_that_is_loaded_can_be_asked_again():
    entries = ["calibrant@replay", "calibrant@transformers", "small@transformers"]
    jobs = design.jobs(PARAMETERS | {"MODELS": entries})

    loaded = answers.loaded_calibrants(jobs)

    assert {(one_job.model, one_job.engine) for one_job in loaded} == {
        ("calibrant", "transformers")
    }


def test_one_reply_is_read_as_those_of_a_run():
    table = answers.read_reply("Friendly: 4\nHonest: 2-3\nOverall rating: 5", "Men", "released")

    assert table[["group", "round", "prompt"]].values.tolist() == [["Men", 1, "Warmth-Competence"]]
    ratings = table["values"][0]
    assert (ratings["Friendly"], ratings["Honest"]) == (4, 2)
    assert np.isnan(ratings["Skilled"])
