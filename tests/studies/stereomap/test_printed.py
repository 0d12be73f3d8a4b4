"""Printed beside here says "agrees" of identical answers: tables printed in the authors' way.

Ratings are made up; the tables of the paper are computed from them by slow definitions, written
as print has them, and set beside what the cells of the notebooks find in the same answers.
"""

import json
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.cluster import KMeans

from ingroup import dictionary, paths, published
from ingroup.studies.stereomap import clustering, diversity, statistics, stimuli

PAPER, *REDUCED = stimuli.ablations()
MODEL = "GPT-3.5"
EXTENDED_AXES = {
    "Warmth": [["Friendly", "Sociable"], ["Trustworthy", "Honest"]],
    "Competence": [["Competent", "Skilled"], ["Confident", "Assertive"]],
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


def cells(notebook, *names):
    """The cells of a notebook that define these functions, as one text."""
    nb = json.loads((paths.NOTEBOOKS / f"{notebook}.ipynb").read_text("utf8"))
    sources = ["".join(cell["source"]) for cell in nb["cells"] if cell["cell_type"] == "code"]
    found = []
    for name in names:
        (own,) = (one for one in sources if re.search(rf"^def {name}\(", one, re.MULTILINE))
        start = re.search(rf"^def {name}\(", own, re.MULTILINE).start()
        whole = re.match(r"def .*?(?=^\S|\Z)", own[start:], re.DOTALL | re.MULTILINE)
        found.append(whole[0])
    return "\n\n".join(found)


def rated(version, rng):
    """A rating of every word for every group and round, one in twenty missing."""
    groups = stimuli.names("EXTENDED" if version == "EXTENDED" else "paper")
    words = [w for p in stimuli.prompts(version).values() for w in p.words if w != "Rating"]
    words = words or [name.split("/")[1] for name in stimuli.prompts(version)]
    rows = []
    for k, group in enumerate(groups):
        place = np.array([[1.5, 1.6], [1.8, 3.9], [4.4, 1.7], [4.5, 4.3], [3, 2.9]][k % 5])
        for turn in range(1, ROUNDS + 1):
            row = {"group": group, "round": turn}
            for j, word in enumerate(words):
                middle = place[j % 2] if version == "ORIGINAL" else place[0 if j < 4 else 1]
                row[word] = float(np.clip(np.round(middle + rng.normal(0, 0.7)), 1, 5))
            if rng.random() < 0.1:
                row[words[rng.integers(len(words))]] = np.nan
            rows.append(row)
    return pd.DataFrame(rows)


def axes(row, version):
    """Competence and warmth of one round, NaN where a word of either is missing."""
    if version == "ORIGINAL":
        told = stimuli.words("ORIGINAL")
        by = {a: [row[w] for w in told.word[told.family == a]] for a in ("Competence", "Warmth")}
    else:
        by = {
            axis: [(row[a] + row[b]) / 2 for a, b in pairs] for axis, pairs in EXTENDED_AXES.items()
        }
    both = [sum(values) / len(values) for values in (by["Competence"], by["Warmth"])]
    return both if np.isfinite(sum(both)) else [np.nan, np.nan]


def mean(values):
    known = [value for value in values if value == value]
    return sum(known) / len(known) if known else np.nan


def positions(table, version):
    """Mean competence and warmth of each group over its complete rounds."""
    found = {}
    for group in dict.fromkeys(table.group):
        pairs = [axes(row, version) for _, row in table[table.group == group].iterrows()]
        found[group] = [mean(one) for one in zip(*pairs, strict=True)]
    return found


def printed_map(place, names):
    """Rows of Tables 2 or 5, with the slip: one cluster has its warmth as competence."""
    groups = sorted(place, key=lambda group: place[group])
    fit = KMeans(5, random_state=0, n_init=10).fit([place[group][::-1] for group in groups])
    rows = []
    for k, group in enumerate(groups):
        warmth, competence = fit.cluster_centers_[fit.labels_[k]]
        competence = warmth if fit.labels_[k] == 4 else competence
        shown = names.get(group, group)
        rows.append((MODEL, k + 1, 1, shown, f"{competence:.2f}", f"{warmth:.2f}", "="))
    return rows


def pair_mean(table, group, words):
    """Mean of two words over the rounds in which every word of their prompt is rated."""
    prompt = FELT if any(words == pair for pair in FELT.values()) else DONE
    prompt = [word for pair in prompt.values() for word in pair]
    own = table[table.group == group]
    rows = [row for _, row in own.iterrows() if all(row[word] == row[word] for word in prompt)]
    return mean([(row[words[0]] + row[words[1]]) / 2 for row in rows])


@pytest.fixture(scope="module")
def made():
    """Ratings of both versions, and where each group stands."""
    rng = np.random.default_rng(5)
    ratings = {version: rated(version, rng) for version in ("EXTENDED", "ORIGINAL")}
    return ratings, {version: positions(table, version) for version, table in ratings.items()}


@pytest.fixture
def press(tmp_path, monkeypatch):
    """A function that prints a table in place of the paper's."""
    (tmp_path / "columns.csv").write_bytes((paths.PUBLISHED / "columns.csv").read_bytes())
    (tmp_path / "stereomap").mkdir()
    (words,) = (paths.PUBLISHED / "stereomap").glob("table04_*.csv")
    (tmp_path / "stereomap" / words.name).write_bytes(words.read_bytes())
    load = published.load
    monkeypatch.setattr(published, "load", lambda study, table: load(study, table, tmp_path))

    def write(number, rows):
        start = f"table{number:02}_" if isinstance(number, int) else number
        (real,) = (paths.PUBLISHED / "stereomap").glob(f"{start}*.csv")
        columns = real.read_text("utf8").split("\n")[0].split(",")
        pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "stereomap" / real.name, index=False)

    return write


def test_tables_2_5_8_and_9_of_the_same_answers_agree(made, press):
    ratings, place = made
    words = {version: stimuli.words(version) for version in ratings}
    spelt = {"Elderly": "Elderly people", "Women": "Woman", "Poor Blacks": "Poor blacks"}
    press(2, printed_map(place["ORIGINAL"], {}))
    press(5, printed_map(place["EXTENDED"], spelt))
    extended = ratings["EXTENDED"]
    rows = []
    groups = list(place["EXTENDED"])
    scores = {"Competence": [place["EXTENDED"][g][0] for g in groups]}
    scores["Warmth"] = [place["EXTENDED"][g][1] for g in groups]
    scores |= {name: [pair_mean(extended, g, pair) for g in groups] for name, pair in FELT.items()}
    for name, felt in scores.items():
        shown = "Admiration" if name == "Admire" else name
        kind = "Stereotypes" if name in ("Competence", "Warmth") else "Emotions"
        for act, pair in DONE.items():
            done = [pair_mean(extended, g, pair) for g in groups]
            both = [(a, b) for a, b in zip(felt, done, strict=True) if a == a and b == b]
            rho = stats.spearmanr(*zip(*both, strict=True))[0]
            rows.append((MODEL, kind, shown, act, f"{rho:.2f}", ""))
    press(8, rows)
    rows = []
    for word in ENDS:
        told = []
        for group in groups:
            values = [v for v in extended[extended.group == group][word] if v == v]
            told.append((mean(values), float(np.var(values, ddof=1)), group))
        told.sort(key=lambda one: -one[0])
        for end, ten in (("highest", told[:10]), ("lowest", told[:-11:-1])):
            for rank, (m, v, group) in enumerate(ten, start=1):
                shown = "High-Status" if word == "High-status" else word
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
    rhos = statistics.correlations(means[MODEL, "EXTENDED"], [*scores], behaviours, rng)
    names = {
        "pd": pd, "ENDS": ENDS, "axes_of": statistics.AXES, "found": found,
        "published": SimpleNamespace(load=published.load, model_of=lambda *_: MODEL),
        "rhos": {MODEL: rhos}, "of_words": {MODEL: extended},
    }  # fmt: skip
    exec(cells("40_stereomap", "spelt", "as_printed", "sources_of"), names)
    sources = names["sources_of"](MODEL)
    versus = published.beside("stereomap", MODEL, sources)
    wrong = versus[versus.verdict != "agrees within rounding"]
    assert wrong.empty, wrong
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
    cvs, rows14, rows_l, table = {}, [], [], {}
    for form, told in forms.items():
        for k, axis in enumerate(("Competence", "Warmth")):
            own = []
            for group in dict.fromkeys(told.group):
                pairs = [axes(row, "EXTENDED") for _, row in told[told.group == group].iterrows()]
                values = [pair[k] for pair in pairs if pair[k] == pair[k]]
                if len(values) > 1:
                    m = sum(values) / len(values)
                    sd = (sum((v - m) ** 2 for v in values) / (len(values) - 1)) ** 0.5
                    own.append(sd / m)
            cvs[form, axis] = sum(own) / len(own), max(own)
    own = [(axis, cvs[PAPER, axis]) for axis in ("Competence", "Warmth")]
    press(13, [(axis, MODEL, f"{m:.3f}", f"{largest:.3f}") for axis, (m, largest) in own])
    for form in forms:
        for axis in ("Competence", "Warmth"):
            for end, value in zip(("mean", "max"), cvs[form, axis], strict=True):
                rows14.append((form, f"{axis.lower()}_cv_{end}", f"{value:.3f}"))
        rows14.append((form, "refuse_to_answer", "2.50"))
    press(14, rows14)
    averages = []
    before = positions(forms[PAPER], "EXTENDED")
    for form in REDUCED:
        after, own = positions(forms[form], "EXTENDED"), []
        for k in (0, 1):
            pairs = [(before[g][k], after[g][k]) for g in before]
            pairs = [pair for pair in pairs if pair[0] == pair[0] and pair[1] == pair[1]]
            own.append(mean([abs(a - b) / 2**0.5 / ((a + b) / 2) for a, b in pairs]))
        rows_l.append((form, f"{sum(own) / 2:.3f}"))
        two = [statistics.round_scores(forms[one], axis_words, "drop") for one in (PAPER, form)]
        two = [
            statistics.group_means(one).reset_index().assign(round=k) for k, one in enumerate(two)
        ]
        cv = diversity.variation(pd.concat(two), statistics.AXES, 2)
        averages.append((MODEL, form, cv.cv_mean.mean()))
    press("appendix_l", rows_l)
    for form, told in forms.items():
        varied = diversity.variation(
            statistics.round_scores(told, axis_words, "drop"), statistics.AXES, ROUNDS
        )
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
    exec(cells("41_stereomap_keywords", "sources_of"), names)
    versus = published.beside("stereomap", MODEL, names["sources_of"](MODEL, MODEL))
    wrong = versus[versus.verdict != "agrees within rounding"]
    assert wrong.empty, wrong
    assert versus.table.value_counts().to_dict() == {13: 4, 14: 20, 15: 3, "appendix_l": 3}
