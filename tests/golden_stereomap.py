"""Golden quantities of notebooks 40 and 41, from their tables."""

from pathlib import Path

import pandas as pd

MAP = ["quantity", "model", "reading", "version"]


def _melted(table: pd.DataFrame, keys: list[str], values: dict[str, str]) -> pd.DataFrame:
    """Turn columns into rows, a quantity each."""
    long = table.rename(columns=values).melt(keys, list(values.values()), "quantity")
    return long.dropna(subset="value")


def rows_of_keywords(folder: Path) -> pd.DataFrame:
    """Read the quantities of notebook 41, which reads free text only."""
    coverage = pd.read_csv(folder / "table15_coverage.csv").melt("model", var_name="item")
    by_cluster = pd.read_csv(folder / "figure4_8_dimensions.csv")
    by_group = pd.read_csv(folder / "figure7_dimensions.csv")
    phrases = pd.read_csv(folder / "table03_10_reason_keywords.csv")
    phrases = phrases[phrases.setting == "MMR 0.7"].drop(columns="rank")

    names = {"dimension": "item", "score": "value"}
    of_phrase = {"setting": "item", "phrase": "outcome", "score": "value"}
    every = [
        coverage.assign(quantity="coverage_percent_keywords"),
        by_cluster.rename(columns=names).assign(quantity="dimension_score_" + by_cluster.way),
        by_group.rename(columns=names).assign(quantity="dimension_score_of_group"),
        phrases.rename(columns=of_phrase).assign(quantity="reason_keyword_score"),
    ]
    table = pd.concat(every, ignore_index=True)
    return table.assign(reading="free", version="EXTENDED").dropna(subset="value")


def rows_of_maps(folder: Path) -> pd.DataFrame:
    """Read the quantities of notebook 40."""
    positions = pd.read_csv(folder / "positions.csv")
    positions["model"] = positions.model.replace("ALL", "ALL of the three")
    positions["reading"] = "expected"
    keys = ["model", "reading", "version", "group"]
    clusters = positions[[*keys, "cluster"]].rename(columns={"cluster": "value"})
    scores = positions.columns[positions.columns.get_loc("Competence") : -1]
    by_score = positions.melt(keys, scores, "item").dropna(subset="value")

    tests = pd.read_csv(folder / "clusters.csv", keep_default_na=False, na_values=[""])
    of_cluster = _melted(
        tests.assign(reading="expected"),
        ["model", "reading", "version", "cluster"],
        {
            "n": "cluster_n",
            "Competence": "cluster_competence",
            "Warmth": "cluster_warmth",
            "t": "cluster_t",
            "p": "cluster_p",
            "sign": "cluster_sign_as_printed",
        },
    )

    extended = positions[positions.version == "EXTENDED"]
    figure3 = extended.groupby(["model", "reading", "version", "cluster"])[scores[2:]].mean()
    figure3 = figure3.reset_index().melt(["model", "reading", "version", "cluster"], None, "item")

    table08 = pd.read_csv(folder / "table08_correlations.csv")
    table08 = table08.assign(quantity="rho", version="EXTENDED")
    structure = pd.read_csv(folder / "social_structure.csv")
    structure = structure.assign(quantity="rho_social_structure", version="ORIGINAL")
    rhos = pd.concat([table08, structure]).assign(reading="expected")
    rhos = rhos.rename(columns={"predictor": "item", "rho": "value"})
    table09 = pd.read_csv(folder / "table09_extremes.csv")
    table09 = table09.rename(columns={"end": "outcome", "mean": "value"}).drop(columns="group")

    figure5 = pd.read_csv(folder / "figure5_refusals.csv").rename(columns={"rate": "value"})
    table14 = pd.read_csv(folder / "table13_14_sensitivity.csv")
    measures = table14.columns.drop(["model", "ablation", "groups"])
    table14 = table14.rename(columns={"ablation": "outcome"})
    table14 = table14.melt(["model", "outcome"], measures, "item").dropna(subset="value")
    table14["item"] = table14.item.replace("refuse_to_answer", "refuse to answer")

    every = [
        clusters.assign(quantity="cluster_of_group"),
        by_score.assign(quantity="position"),
        of_cluster,
        figure3.assign(quantity="cluster_score_mean"),
        rhos,
        table09.assign(quantity="extreme_mean", reading="expected", version="EXTENDED"),
        figure5.assign(quantity="refusal_rate", reading="free", version="EXTENDED"),
        table14.assign(quantity="sensitivity", reading="free", version="EXTENDED"),
    ]
    labels = [*MAP, "group", "item", "cluster", "outcome", "rank", "value"]
    return pd.concat(every, ignore_index=True).reindex(columns=labels)


def rows(folder: Path) -> pd.DataFrame:
    """Read the quantities of both notebooks from the tables of a run."""
    return pd.concat([rows_of_maps(folder), rows_of_keywords(folder)], ignore_index=True)
