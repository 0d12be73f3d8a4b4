"""Printed beside here says "agrees" of identical answers: tables printed in the authors' way.

Ratings are made up; the tables of the paper are computed from them by definitions apart, written
as print has them, and set beside what the library finds in the same answers.
"""

import shutil
from functools import partial
from itertools import chain
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
EMOTIONS = {
    "Contempt": ["Contempt", "Disgust"],
    "Admire": ["Admire", "Proud"],
    "Pity": ["Pity", "Sympathy"],
    "Envy": ["Envious", "Jealous"],
}
BEHAVIOURS = {
    "Active facilitation": ["Help", "Protect"],
    "Active harm": ["Fight", "Attack"],
    "Passive facilitation": ["Cooperate", "Associate"],
    "Passive harm": ["Exclude", "Demean"],
}
ROUNDS = 3


PLACES = np.array([[1.5, 1.6], [1.8, 3.9], [4.4, 1.7], [4.5, 4.3], [3, 2.9]])


def rated_words(version):
    """Words that a version rates, with the axis (0 or 1) whose place decides their ratings."""
    if version == "ORIGINAL":
        words = [name.split("/")[1] for name in stimuli.prompts(version)]
        return words, [number % 2 for number in range(len(words))]

    words = []
    for prompt in stimuli.prompts(version).values():
        words += [word for word in prompt.words if word != "Rating"]
    return words, [int(number >= 4) for number in range(len(words))]


def rated(version, rng):
    """A rating of every word for every group and round; a tenth of the rounds lack one."""
    groups = stimuli.names("EXTENDED" if version == "EXTENDED" else "paper")
    words, axis = rated_words(version)

    rows = []
    for number, group in enumerate(groups):
        place = PLACES[number % 5]
        for turn in range(1, ROUNDS + 1):
            ratings = np.round(rng.normal(place[axis], 0.7))
            ratings = np.clip(ratings, 1, 5)
            if rng.random() < 0.1:
                ratings[rng.integers(len(words))] = np.nan
            rows.append((group, turn, *ratings))

    return pd.DataFrame(rows, columns=["group", "round", *words])


def axes(table, version):
    """Competence and warmth of each round, NaN where a word of either is missing."""
    words = EXTENDED_AXES
    if version == "ORIGINAL":
        words = stimuli.words("ORIGINAL").groupby("family").word.agg(list)

    scores = pd.DataFrame(index=table.index)
    for axis in EXTENDED_AXES:
        scores[axis] = table[words[axis]].mean(axis=1, skipna=False)

    is_complete = scores.notna().all(axis=1)
    return scores.where(is_complete, axis=0)


def positions(table, version):
    """Mean competence and warmth of each group over its complete rounds."""
    return axes(table, version).groupby(table.group, sort=False).mean()


def printed_map(positions, printed_name):
    """Rows of Tables 2 or 5, with the slip: one cluster has its warmth as competence."""
    positions = positions.sort_values(["Competence", "Warmth"])
    fit = KMeans(5, random_state=0, n_init=10).fit(positions)

    rows = []
    for number, (group, label) in enumerate(zip(positions.index, fit.labels_, strict=True), 1):
        competence, warmth = fit.cluster_centers_[label]
        if label == 4:
            competence = warmth
        name = printed_name.get(group, group)
        rows.append((MODEL, number, 1, name, f"{competence:.2f}", f"{warmth:.2f}", "="))

    return rows


def pair_means(table, pairs):
    """Means of pairs of words over the rounds in which every word of their prompt is rated."""
    words = list(chain.from_iterable(pairs.values()))
    complete = table.dropna(subset=words)

    means = pd.DataFrame(index=complete.index)
    for name, pair in pairs.items():
        means[name] = complete[pair].mean(axis=1)

    return means.groupby(complete.group).mean()


def printed_correlations(scores):
    """Rows of Table 8: each axis and emotion with each behaviour."""
    rows = []
    for name in [*EXTENDED_AXES, *EMOTIONS]:
        printed_name = "Admiration" if name == "Admire" else name
        kind = "Stereotypes" if name in EXTENDED_AXES else "Emotions"
        for behaviour in BEHAVIOURS:
            rho = stats.spearmanr(scores[name], scores[behaviour], nan_policy="omit").statistic
            rows.append((MODEL, kind, printed_name, behaviour, f"{rho:.2f}", ""))

    return rows


def printed_extremes(table):
    """Rows of Table 9: ten groups at either end of each word."""
    rows = []
    for word in ENDS:
        printed_name = "High-Status" if word == "High-status" else word
        by_group = table.groupby("group")[word].agg(["mean", "var"])
        ends = {
            "highest": by_group.nlargest(10, "mean"),
            "lowest": by_group.nsmallest(10, "mean"),
        }
        for end, ten in ends.items():
            for rank, row in enumerate(ten.itertuples(), start=1):
                numbers = (f"{row.mean:.2f}", f"{row.var:.2f}")
                rows.append((printed_name, MODEL, end, rank, row.Index, *numbers, ""))

    return rows


@pytest.fixture(scope="module")
def ratings():
    """Ratings of both versions."""
    rng = np.random.default_rng(5)
    extended = rated("EXTENDED", rng)
    original = rated("ORIGINAL", rng)
    return {"EXTENDED": extended, "ORIGINAL": original}


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


def sources_of_maps(ratings):
    """Numbers that stand beside Tables 2, 5, 8 and 9."""
    means = {}
    clusters = {}
    for version, table in ratings.items():
        scores = statistics.round_scores(table, stimuli.words(version), "drop")
        means[version] = statistics.group_means(scores)
        clusters[MODEL, version] = clustering.clusters(means[version], 5, 20, 0, version=version)

    predictors = [*EXTENDED_AXES, *EMOTIONS]
    words = stimuli.words("EXTENDED")
    behaviours = list(words.dimension[words.family == "Behavior"].unique())
    rng = np.random.default_rng(7)
    rhos = statistics.correlations(means["EXTENDED"], predictors, behaviours, rng)
    of_words = {MODEL: ratings["EXTENDED"]}
    return printed.numbers_of(MODEL, clusters, {MODEL: rhos}, of_words)


@pytest.fixture
def maps_beside(ratings, press, monkeypatch):
    """Tables 2, 5, 8 and 9 printed from these ratings, beside those computed here; and marks."""
    of_original = positions(ratings["ORIGINAL"], "ORIGINAL")
    of_extended = positions(ratings["EXTENDED"], "EXTENDED")
    extended = ratings["EXTENDED"]
    emotions = pair_means(extended, EMOTIONS)
    behaviours = pair_means(extended, BEHAVIOURS)
    printed_name = {"Elderly": "Elderly people", "Women": "Woman", "Poor Blacks": "Poor blacks"}
    press(2, printed_map(of_original, {}))
    press(5, printed_map(of_extended, printed_name))
    press(8, printed_correlations(of_extended.join([emotions, behaviours])))
    press(9, printed_extremes(extended))

    monkeypatch.setattr(published, "model_of", lambda *_: MODEL)
    versus = published.beside_each("stereomap", {MODEL: sources_of_maps(ratings)})
    return versus, printed.mark_printed_slips(versus)


def test_tables_2_5_8_and_9_of_the_same_answers_agree(maps_beside):
    versus, _ = maps_beside
    differing = versus[versus.verdict != "agrees within rounding"]
    assert differing.empty, differing

    # Nothing is left out: both numbers of each group, the correlations, mean and variance.
    counts = versus.groupby(["table", "number"]).size()
    assert counts.to_dict() == {
        (2, "competence"): 24,
        (2, "warmth"): 24,
        (5, "competence"): 98,
        (5, "warmth"): 98,
        (8, "spearman_rho"): 24,
        (9, "mean"): 80,
        (9, "variance"): 80,
    }


def test_rows_of_tables_2_and_5_with_one_number_twice_are_marked(maps_beside):
    _, marked = maps_beside
    is_map = marked.table.isin([2, 5])
    of_maps = marked[is_map]
    numbers = of_maps.pivot_table(index=["table", "row"], columns="number", values="printed")
    is_equal = numbers.competence == numbers.warmth
    marks = of_maps.groupby(["table", "row"]).mark.agg("first")

    assert is_equal.any()
    assert not is_equal.all()
    assert marks[is_equal].eq("the print has C = W").all()
    assert marks[~is_equal].eq("").all()
    assert marked.mark[~is_map].eq("").all()


def printed_variation(forms):
    """Rows of Tables 13 and 14."""
    rows13 = []
    rows14 = []
    for form, table in forms.items():
        by_group = axes(table, "EXTENDED").groupby(table.group)
        cv = by_group.agg(stats.variation, ddof=1, nan_policy="omit")
        for axis in cv:
            mean = f"{cv[axis].mean():.3f}"
            highest = f"{cv[axis].max():.3f}"
            rows14.append((form, f"{axis.lower()}_cv_mean", mean))
            rows14.append((form, f"{axis.lower()}_cv_max", highest))
            if form == PAPER:
                rows13.append((axis, MODEL, mean, highest))

        rows14.append((form, "refuse_to_answer", "2.50"))

    return rows13, rows14


def printed_change(forms):
    """Rows of the table of Appendix L: the variation between the whole and a reduced prompt."""
    rows = []
    whole = positions(forms[PAPER], "EXTENDED")
    for form in REDUCED:
        reduced = positions(forms[form], "EXTENDED")
        cv = stats.variation([whole, reduced], axis=0, ddof=1)
        mean = np.nanmean(cv, axis=0).mean()
        rows.append((form, f"{mean:.3f}"))

    return rows


def own_change(scores):
    """The same computed by the library."""
    rows = []
    whole = statistics.group_means(scores[PAPER]).reset_index()
    for form in REDUCED:
        reduced = statistics.group_means(scores[form]).reset_index()
        both = pd.concat([whole.assign(round=0), reduced.assign(round=1)])
        cv = statistics.variation(both, statistics.AXES, 2)
        rows.append((MODEL, form, cv.cv_mean.mean()))

    return pd.DataFrame(rows, columns=["model", "prompt", "cv_mean"])


def own_variation(scores):
    """Tables 13 and 14 computed by the library."""
    rows = {}
    for form, table in scores.items():
        varied = statistics.variation(table, statistics.AXES, ROUNDS)
        row = {}
        for axis in varied.itertuples():
            row[f"{axis.score} CV mean"] = axis.cv_mean
            row[f"{axis.score} CV max"] = axis.cv_max

        if form == PAPER:
            row |= {f"{name}, all rounds": value for name, value in row.items()}

        rows[MODEL, form] = row | {"refuse to answer": 2.5}

    index = pd.MultiIndex.from_tuples(rows, names=["model", "prompt"])
    return pd.DataFrame(list(rows.values()), index)


KEYWORDS = ["Caring", "nurses", "hard-working", "very friendly", "low income", "blorp", "lazy"]
LEMMAS = {"nurses": ["nurse"]}
LOW_INCOME = {"low income": "poor"}


def lemmatizer(way):
    """A function that returns the lemmas of a word, whatever the way."""
    return lambda word: LEMMAS.get(word, [])


def printed_coverage(lexicon):
    """Rows of Table 15: keywords in the dictionary, and those that lemmas and mappings add."""
    words = {dictionary.fold(word) for word in lexicon.words}
    n_found = [0, 0, 0]
    for keyword in KEYWORDS:
        by_word = keyword.lower() in words
        by_lemma = by_word or not words.isdisjoint(LEMMAS.get(keyword, []))
        by_mapping = by_lemma or keyword in LOW_INCOME
        n_found[0] += by_word
        n_found[1] += by_lemma
        n_found[2] += by_mapping

    rows = []
    stages = dictionary.PRINTED_STAGES.values()
    for number, (stage, n) in enumerate(zip(stages, n_found, strict=True), start=1):
        rows.append((number, stage, MODEL, f"{100 * n / len(KEYWORDS):.2f}"))

    return rows


def test_tables_13_to_15_of_the_same_answers_agree(ratings, press, monkeypatch):
    rng = np.random.default_rng(6)
    forms = {PAPER: ratings["EXTENDED"]}
    for form in REDUCED:
        forms[form] = rated("EXTENDED", rng)
    lexicon = dictionary.load_lexicon()
    rows13, rows14 = printed_variation(forms)
    press(13, rows13)
    press(14, rows14)
    press(15, printed_coverage(lexicon))
    press("appendix_l", printed_change(forms))

    words = stimuli.words("EXTENDED")
    words_of_axes = words[words.family.isin(["Competence", "Warmth"])]
    scores = {}
    for form, table in forms.items():
        scores[form] = statistics.round_scores(table, words_of_axes, "drop")
    lookup = SimpleNamespace(
        lemmatizer=lemmatizer,
        find=dictionary.find,
        coverage=dictionary.coverage,
    )
    monkeypatch.setattr(printed, "dictionary", lookup)
    monkeypatch.setattr(published, "model_of", lambda *_: MODEL)
    numbers = printed.numbers_of_words(
        MODEL,
        pd.DataFrame({"model": MODEL, "keyword": KEYWORDS}),
        lexicon,
        LOW_INCOME,
        own_variation(scores),
        own_change(scores),
        ablated=MODEL,
    )

    versus = published.beside("stereomap", MODEL, numbers)

    differing = versus[versus.verdict != "agrees within rounding"]
    assert differing.empty, differing
    assert versus.table.value_counts().to_dict() == {
        13: 4,
        14: 20,
        15: 3,
        "appendix_l": 3,
    }
