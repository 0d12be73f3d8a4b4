"""The papers' printed numbers, shaped as the tables of a run that asked the papers' models."""

import pandas as pd

from ingroup import published

SPREADS = {3: 7, 8: 9, 10: 11, 12: 13}  # mean and deviation, and the ends, of one model each
STARS = {"": 0.5, "*": 0.04, "**": 0.004, "***": 0.0004}
SIDES = ["identity_i", "identity_j"]


def by_category(first, **names):
    """Join the tables of three categories in the second study, from table number ``first`` on."""
    categories = ["Race", "Gender", "Age"]
    if first in (1, 6):
        categories = ["Age", "Gender", "Race"]
    elif first == 9:
        categories = ["Gender", "Age", "Race"]

    tables = []
    for number, category in enumerate(categories, first):
        table = published.load("biased_samaritan", number).rename(columns=names)
        tables.append(table.assign(category=category))
    return pd.concat(tables, ignore_index=True)


def spreads():
    keys = ["model", "category", "prompt_setting"]
    tables = []
    for moments, ends in SPREADS.items():
        table = published.load("empathy_gap", moments)
        tables.append(table.merge(published.load("empathy_gap", ends), on=keys))
    return pd.concat(tables).rename(columns={"prompt_setting": "setting"})


def repeated():
    keys = ["model", "category", "group"]
    runs = by_category(12).set_index([*keys, "run"]).mean_score.unstack("run")
    return runs.rename(columns={1: "first", 2: "second"}).reset_index()


def prompts(numbers, **names):
    tables = []
    for number, prompt in numbers.items():
        table = published.load("giebench", number).rename(columns=names)
        tables.append(table.assign(prompt=prompt))
    return pd.concat(tables, ignore_index=True)


def mismatches():
    """Join Table 7 and the only tuple that Table 3 adds, with names spelt as in the questions."""
    tables = pd.concat([published.load("giebench", 7), published.load("giebench", 3)])
    tables[SIDES] = tables[SIDES].replace(" people$", " People", regex=True)
    tables = tables.drop_duplicates([*SIDES, "condition"])

    order = tables[SIDES].drop_duplicates().itertuples(index=False, name=None)
    wide = tables.pivot(index=SIDES, columns="condition", values="accuracy_pct")
    return wide.reindex(order).reset_index().assign(model="GPT-4", n=1)


def clusters():
    tables = []
    for number, version in ((2, "ORIGINAL"), (5, "EXTENDED")):
        table = published.load("stereomap", number).rename(columns={"row_order": "row"})
        is_later_row = table.duplicated(["source", "cluster_order"])
        cell = "(" + table.competence_printed + table.sign + table.warmth_printed + ")"
        table["centroid"] = cell.mask(is_later_row, "")
        table.loc[table.cluster_order.isna(), "centroid"] = "-"
        tables.append(table.assign(version=version, printed=True, model=table.source))
    return pd.concat(tables, ignore_index=True)


def reasons():
    of_all = published.load("stereomap", 3).assign(of="all")
    of_clusters = published.load("stereomap", 10).assign(of="cluster")
    tables = pd.concat([of_all, of_clusters])
    return tables.rename(columns={"cluster": "name"}).assign(setting="MMR 0.7")


def correlations():
    table = published.load("stereomap", 8)
    names = {"source": "model", "predictor_type": "kind", "behavior": "outcome"}
    table = table.rename(columns=names | {"spearman_rho": "rho"})
    return table.assign(p_holm=table.significance.map(STARS))


def sensitivity():
    rounds = published.load("stereomap", 13)
    rounds = rounds.pivot(index="model", columns="dimension", values=["cv_mean", "cv_max"])
    rounds.columns = [f"{axis} CV {end[3:]}, all rounds" for end, axis in rounds]
    rounds = rounds.reset_index().assign(prompt="Prompt (paper)")

    forms = published.load("stereomap", 14)
    wide = forms.pivot(index="prompt_type", columns="metric", values="value")
    wide = wide.loc[forms.prompt_type.unique()].rename_axis(index="prompt").reset_index()
    names = {
        "competence_cv_mean": "Competence CV mean",
        "competence_cv_max": "Competence CV max",
        "warmth_cv_mean": "Warmth CV mean",
        "warmth_cv_max": "Warmth CV max",
        "refuse_to_answer": "refuse to answer",
    }
    forms = wide.rename(columns=names).assign(model="GPT-3.5")
    return rounds.merge(forms, "outer", ["model", "prompt"])


def of_the_papers():
    """Yield each numbered table: its study, the name of the run's table and the printed numbers."""
    settings = {"prompt_setting": "setting"}
    ends = {"ci_lower": "null_low", "ci_upper": "null_high"}
    deltas = published.load("empathy_gap", 2).rename(columns=settings | ends)
    refusals = published.load("empathy_gap", 6)
    refusals = refusals.rename(columns=settings | {"refusal_pct": "percent_of_events"})
    bias = by_category(1, score_difference="bias")
    bias = bias.assign(round=1, alpha=0.01, significant_holm=False)
    helpfulness = by_category(6, mean_score="mean").assign(round=1)
    brittleness = by_category(9, mean_sd="mean").rename(columns={"run": "round"})
    accuracy = prompts({1: "COT", 2: "ID", 6: "Raw"}, accuracy_pct="accuracy")
    changes = prompts({4: "COT", 5: "ID"}, delta_pct="change")
    extremes = published.load("stereomap", 9).rename(columns={"dimension": "word"})
    people = published.load("stereomap", 12).rename(columns={"std": "sd"})
    coverage = published.load("stereomap", 15).rename(columns={"stage": "printed_stage"})

    yield "empathy_gap", "table02_delta", deltas
    yield "empathy_gap", "table03_table07_spread", spreads()
    yield "empathy_gap", "table06_refusals", refusals
    yield "biased_samaritan", "table01_02_03_bias", bias
    yield "biased_samaritan", "table06_07_08_helpfulness", helpfulness
    yield "biased_samaritan", "table09_10_11_brittleness", brittleness
    yield "biased_samaritan", "table12_13_14_repeatability", repeated()
    yield "giebench", "table01_02_06_accuracy", accuracy
    yield "giebench", "table03_07_mismatch", mismatches()
    yield "giebench", "table04_05_changes", changes
    yield "stereomap", "table02_05_groups", clusters()
    yield "stereomap", "table03_10_reason_keywords", reasons()
    yield "stereomap", "table08_correlations", correlations()
    yield "stereomap", "table09_extremes", extremes
    yield "stereomap", "table12_human_evaluation", people
    yield "stereomap", "table13_14_sensitivity", sensitivity()
    yield "stereomap", "table15_coverage", coverage
