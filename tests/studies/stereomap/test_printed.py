"""Printed beside here says "agrees" of identical answers: tables printed in the authors' way.

Ratings are made up; the tables of the paper are computed from them by definitions apart, written
as print has them, and set beside what the cells of the notebooks find in the same answers.
"""

import json
import re
import shutil
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.cluster import KMeans

from ingroup import dictionary, paths, published
from ingroup.studies.stereomap import clustering, printed, statistics, stimuli

PAPER, *REDUCED = stimuli.ablations()
MODEL = "GPT-3.5"
EXTENDED_AXES = {
    "Competence": ["Competent", "Skilled", "Confident", "Assertive"],
    "Warmth": ["Friendly", "Sociable", "Trustworthy", "Honest"],
}
ENDS = ["Traditional", "Conservative", "Wealthy", "High-status"]
FELT = {
    "Contempt": ["Contempt", "Disgust"], "Admire": ["Admire", "Proud"],
    "Pity": ["Pity", "Sympathy"], "Envy": ["Envious", "Jealous"],
}  # fmt: skip
DONE = {
    "Active facilitation": ["Help", "Protect"], "Active harm": ["Fight", "Attack"],
    "Passive facilitation": ["Cooperate", "Associate"], "Passive harm": ["Exclude", "Demean"],
}  # fmt: skip
ROUNDS = 3


def functions(notebook, *names):
    """These functions of a notebook, as one text."""
    nb = json.loads((paths.NOTEBOOKS / f"{notebook}.ipynb").read_text("utf8"))
    code = "\n".join("".join(cell["source"]) for cell in nb["cells"] if cell["cell_type"] == "code")
    found = []
    for name in names:
        found += re.findall(rf"^def {name}\(.*?(?=^\S|\Z)", code, re.DOTALL | re.MULTILINE)
    assert len(found) == len(names)
    return "\n\n".join(found)


def rated(version, rng):
    """A rating of every word for every group and round; a tenth of the rounds lack one."""
    groups = stimuli.names("EXTENDED" if version == "EXTENDED" else "paper")
    words = [w for p in stimuli.prompts(version).values() for w in p.words if w != "Rating"]
    words = words or [name.split("/")[1] for name in stimuli.prompts(version)]
    axis = [j % 2 if version == "ORIGINAL" else int(j >= 4) for j in range(len(words))]
    places = np.array([[1.5, 1.6], [1.8, 3.9], [4.4, 1.7], [4.5, 4.3], [3, 2.9]])
    rows = []
    for k, group in enumerate(groups):
        for turn in range(1, ROUNDS + 1):
            told = np.clip(np.round(rng.normal(places[k % 5, axis], 0.7)), 1, 5)
            if rng.random() < 0.1:
                told[rng.integers(len(words))] = np.nan
            rows.append((group, turn, *told))
    return pd.DataFrame(rows, columns=["group", "round", *words])


def axes(table, version):
    """Competence and warmth of each round, NaN where a word of either is missing."""
    words = EXTENDED_AXES
    if version == "ORIGINAL":
        words = stimuli.words("ORIGINAL").groupby("family").word.agg(list)
    both = {axis: table[words[axis]].mean(axis=1, skipna=False) for axis in EXTENDED_AXES}
    return pd.DataFrame(both).dropna().reindex(table.index)


def positions(table, version):
    """Mean competence and warmth of each group over its complete rounds."""
    return axes(table, version).groupby(table.group, sort=False).mean()


def printed_map(place, names):
    """Rows of Tables 2 or 5, with the slip: one cluster has its warmth as competence."""
    place = place.sort_values(["Competence", "Warmth"])
    fit = KMeans(5, random_state=0, n_init=10).fit(place)
    rows = []
    for k, group in enumerate(place.index):
        competence, warmth = fit.cluster_centers_[fit.labels_[k]]
        competence = warmth if fit.labels_[k] == 4 else competence
        shown = names.get(group, group)
        rows.append((MODEL, k + 1, 1, shown, f"{competence:.2f}", f"{warmth:.2f}", "="))
    return rows


def pair_means(table, pairs):
    """Means of pairs of words over the rounds in which every word of their prompt is rated."""
    whole = table.dropna(subset=[word for pair in pairs.values() for word in pair])
    means = {name: whole[pair].mean(axis=1) for name, pair in pairs.items()}
    return pd.DataFrame(means).groupby(whole.group).mean()


@pytest.fixture(scope="module")
def made():
    """Ratings of both versions, and where each group stands."""
    rng = np.random.default_rng(5)
    ratings = {version: rated(version, rng) for version in ("EXTENDED", "ORIGINAL")}
    return ratings, {version: positions(table, version) for version, table in ratings.items()}


@pytest.fixture
def press(tmp_path, monkeypatch):
    """A function that prints a table in place of the paper's."""
    shutil.copytree(paths.PUBLISHED, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(published, "load", partial(published.load, folder=tmp_path))

    def write(number, rows):
        start = f"table{number:02}_" if isinstance(number, int) else number
        (file,) = (tmp_path / "stereomap").glob(f"{start}*.csv")
        columns = pd.read_csv(file, nrows=0).columns
        pd.DataFrame(rows, columns=columns).to_csv(file, index=False)

    return write


def test_tables_2_5_8_and_9_of_the_same_answers_agree(made, press, monkeypatch):
    ratings, place = made
    words = {version: stimuli.words(version) for version in ratings}
    spelt = {"Elderly": "Elderly people", "Women": "Woman", "Poor Blacks": "Poor blacks"}
    press(2, printed_map(place["ORIGINAL"], {}))
    press(5, printed_map(place["EXTENDED"], spelt))
    extended = ratings["EXTENDED"]
    scores = place["EXTENDED"].join([pair_means(extended, pairs) for pairs in (FELT, DONE)])
    predictors = [*EXTENDED_AXES, *FELT]
    rows = []
    for name in predictors:
        shown = "Admiration" if name == "Admire" else name
        kind = "Stereotypes" if name in EXTENDED_AXES else "Emotions"
        for act in DONE:
            rho = stats.spearmanr(scores[name], scores[act], nan_policy="omit").statistic
            rows.append((MODEL, kind, shown, act, f"{rho:.2f}", ""))
    press(8, rows)
    rows = []
    for word in ENDS:
        shown = "High-Status" if word == "High-status" else word
        told = extended.groupby("group")[word].agg(["mean", "var"])
        ends = {"highest": told.nlargest(10, "mean"), "lowest": told.nsmallest(10, "mean")}
        for end, ten in ends.items():
            for rank, (group, m, v) in enumerate(ten.itertuples(), start=1):
                rows.append((shown, MODEL, end, rank, group, f"{m:.2f}", f"{v:.2f}", ""))
    press(9, rows)

    means = {
        (MODEL, version): statistics.group_means(
            statistics.round_scores(table, words[version], "drop")
        )
        for version, table in ratings.items()
    }
    found = {
        key: clustering.clusters(table, 5, 20, 0, version=key[1]) for key, table in means.items()
    }
    behaviours = list(words["EXTENDED"].query("family == 'Behavior'").dimension.unique())
    rng = np.random.default_rng(7)
    rhos = statistics.correlations(means[MODEL, "EXTENDED"], predictors, behaviours, rng)
    monkeypatch.setattr(published, "model_of", lambda *_: MODEL)
    sources = printed.numbers_of(MODEL, found, {MODEL: rhos}, {MODEL: extended})
    versus = published.beside_each("stereomap", {MODEL: sources})
    wrong = versus[versus.verdict != "agrees within rounding"]
    assert wrong.empty, wrong
    marked = printed.marked(versus)
    both = marked[marked.table.isin([2, 5])].pivot_table(
        index=["table", "row"], columns="number", values="printed"
    )
    is_equal = both.competence == both.warmth
    marks = marked[marked.table.isin([2, 5])].groupby(["table", "row"]).mark.agg("first")
    assert marks[is_equal].eq("the print has C = W").all()
    assert marks[~is_equal].eq("").all()
    assert is_equal.any()
    assert not is_equal.all()
    assert marked[~marked.table.isin([2, 5])].mark.eq("").all()
    # Nothing is left out: both numbers of each group, the correlations, mean and variance.
    counts = versus.groupby(["table", "number"]).size()
    assert counts.to_dict() == {
        (2, "competence"): 24, (2, "warmth"): 24, (5, "competence"): 98, (5, "warmth"): 98,
        (8, "spearman_rho"): 24, (9, "mean"): 80, (9, "variance"): 80,
    }  # fmt: skip


def test_tables_13_to_15_of_the_same_answers_agree(made, press):
    rng = np.random.default_rng(6)
    forms = {PAPER: made[0]["EXTENDED"], **{name: rated("EXTENDED", rng) for name in REDUCED}}
    axis_words = stimuli.words("EXTENDED").query("family in ['Competence', 'Warmth']")
    rows13, rows14, rows_l, averages, table = [], [], [], [], {}
    for form, told in forms.items():
        by_group = axes(told, "EXTENDED").groupby(told.group)
        cv = by_group.agg(stats.variation, ddof=1, nan_policy="omit")
        for axis in cv:
            both = f"{cv[axis].mean():.3f}", f"{cv[axis].max():.3f}"
            rows13 += [(axis, MODEL, *both)] if form == PAPER else []
            for end, value in zip(("mean", "max"), both, strict=True):
                rows14.append((form, f"{axis.lower()}_cv_{end}", value))
        rows14.append((form, "refuse_to_answer", "2.50"))
    press(13, rows13)
    press(14, rows14)
    scores = {form: statistics.round_scores(forms[form], axis_words, "drop") for form in forms}
    for form in REDUCED:
        two = [positions(forms[one], "EXTENDED") for one in (PAPER, form)]
        cv = stats.variation(two, axis=0, ddof=1)
        rows_l.append((form, f"{np.nanmean(cv, axis=0).mean():.3f}"))
        two = [statistics.group_means(scores[one]) for one in (PAPER, form)]
        two = [means.reset_index().assign(round=k) for k, means in enumerate(two)]
        cv = statistics.variation(pd.concat(two), statistics.AXES, 2)
        averages.append((MODEL, form, cv.cv_mean.mean()))
    press("appendix_l", rows_l)
    for form in forms:
        varied = statistics.variation(scores[form], statistics.AXES, ROUNDS)
        row = {f"{one.score} CV mean": one.cv_mean for one in varied.itertuples()}
        row |= {f"{one.score} CV max": one.cv_max for one in varied.itertuples()}
        if form == PAPER:
            row |= {f"{name}, all rounds": value for name, value in row.items()}
        table[MODEL, form] = row | {"refuse to answer": 2.5}

    lexicon = dictionary.load_lexicon()
    given = ["Caring", "nurses", "hard-working", "very friendly", "low income", "blorp", "lazy"]
    lemma = {"nurses": ["nurse"]}
    members = {dictionary.fold(word) for word in lexicon.words}
    exact = [one for one in given if one.lower() in members]
    lemmas = [one for one in given if one in exact or {*lemma.get(one, [])} & members]
    by_hand = [one for one in given if one in lemmas or one == "low income"]
    stages = dictionary.PRINTED_STAGES.values()
    rows = [
        (k, stage, MODEL, f"{100 * len(one) / len(given):.2f}")
        for k, (stage, one) in enumerate(zip(stages, (exact, lemmas, by_hand), strict=True), 1)
    ]
    press(15, rows)
    index = pd.MultiIndex.from_tuples(table, names=["model", "prompt"])
    names = {
        "pd": pd, "PAPER": PAPER, "axes_of": statistics.AXES, "lexicon": lexicon,
        "table13_14": pd.DataFrame([*table.values()], index),
        "averages": pd.DataFrame(averages, columns=["model", "prompt", "cv_mean"]),
        "traits": pd.DataFrame({"model": MODEL, "keyword": given}),
        "how": {"mappings": {"low income": "poor"}, "way": "sound"},
        "dictionary": SimpleNamespace(
            lemmatizer=lambda way: lambda word: lemma.get(word, []),
            find=dictionary.find, coverage=dictionary.coverage,
        ),
    }  # fmt: skip
    exec(functions("41_stereomap_keywords", "sources_of"), names)
    versus = published.beside("stereomap", MODEL, names["sources_of"](MODEL, MODEL))
    wrong = versus[versus.verdict != "agrees within rounding"]
    assert wrong.empty, wrong
    assert versus.table.value_counts().to_dict() == {13: 4, 14: 20, 15: 3, "appendix_l": 3}
