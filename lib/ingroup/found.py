"""What a run found about the papers' claims: verdicts by model, words by paper, and sentences."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from ingroup import models, paths, published
from ingroup.figures import read_table
from ingroup.stats import multiverse

REAL = "real"
POSITIVE = "positive control: biases were planted"
NEGATIVE = "negative control: nothing was planted"
_IN_A_SENTENCE = {
    REAL: "a real model",
    POSITIVE: "planted biases",
    NEGATIVE: "nothing was planted",
}


def role(model: str) -> str:
    """Say whether a model is real, or which control it is.

    Parameters
    ----------
    model : str
        Its name.

    Returns
    -------
    str
        `REAL`, `POSITIVE` or `NEGATIVE`.
    """
    known = models.find(model)
    if known and known.control:
        return NEGATIVE
    if models.is_calibrant(model):
        return POSITIVE
    return REAL


def printed_range(study: str, table: str, rows: str, number: str) -> str:
    """Write the smallest and the largest number that a paper prints for its models.

    Parameters
    ----------
    study : str
        The study of the paper.
    table : str
        The number of the printed table.
    rows : str
        A pandas query: the rows that a claim is about.
    number : str
        The column, or an expression over columns.

    Returns
    -------
    str
        For example "0.20 to 0.45, 4 models (Table 2)".
    """
    numbers = published.load(study, int(table)).query(rows).eval(number)
    low = numbers.min()
    high = numbers.max()
    return f"{low:.2f} to {high:.2f}, {len(numbers)} models (Table {table})"


def reasons(paths_walked: pd.DataFrame) -> pd.DataFrame:
    """Say why a claim has no estimate, or could not be shown.

    Parameters
    ----------
    paths_walked : DataFrame
        ``model``, ``claim`` and ``reason``, one row per path.

    Returns
    -------
    DataFrame
        For each model and claim, the first ``reason`` why a path does not count or has no estimate.
    """
    every = paths_walked.groupby(["model", "claim"], sort=False)
    return every.agg(reason=("reason", "first")).reset_index()


def deciding(options: pd.DataFrame) -> pd.DataFrame:
    """Find the choice that moves the share of the paths on which a sentence is borne out most.

    Parameters
    ----------
    options : DataFrame
        ``model``, ``study``, ``claim``, ``choice``, ``option`` and the columns of
        :func:`ingroup.stats.multiverse.shares` under each option; ``way``, what the sentence says.

    Returns
    -------
    DataFrame
        For each model, study and claim: the ``choice``, and the smallest and largest share under
        its options, ``share_from`` and ``share_to``. A claim is left out if every choice has one
        share under all its options.
    """
    verdicts = multiverse.verdicts(options, options.way)
    told = options.join(verdicts[["share", "counted"]])
    told = told[told.counted > 0]

    claim = ["model", "study", "claim"]
    by_choice = told.groupby([*claim, "choice"], sort=False).share
    table = by_choice.agg(share_from="min", share_to="max").reset_index()
    table["apart"] = table.share_to - table.share_from
    table = table[table.apart > 0].sort_values("apart", ascending=False, kind="stable")
    return table.drop_duplicates(claim).drop(columns="apart")


def decided_by(claims: pd.DataFrame) -> str:
    """Name the choice that decides most of a paper's claims.

    Parameters
    ----------
    claims : DataFrame
        The rows of one paper and model, with ``choice``, ``share_from`` and ``share_to`` as
        `by_claim` has them.

    Returns
    -------
    str
        The choice that decides more than half of the claims, or "".
    """
    is_decided = [multiverse.decides(row.share_from, row.share_to) for row in claims.itertuples()]
    counts = claims.choice[is_decided].value_counts()
    most = counts[2 * counts > len(claims)]
    return "" if most.empty else str(most.index[0])


def on_paper(claims: pd.DataFrame) -> str:
    """Say in a few words what one model shows of a paper.

    Parameters
    ----------
    claims : DataFrame
        The rows of one paper and model, as `by_claim` has them.

    Returns
    -------
    str
        "depends on the <choice>" where a choice decides most claims (`decided_by`), however many
        paths its options have. Otherwise the word of :func:`ingroup.stats.multiverse.of_paper`.
    """
    choice = decided_by(claims)
    if choice:
        return f"depends on the {choice}"
    return multiverse.of_paper(claims.verdict.tolist())


def by_claim(folder: Path) -> pd.DataFrame:
    """Judge the papers' sentences by the paths of the synthesis.

    Parameters
    ----------
    folder : Path
        The tables of ``60_synthesis``.

    Returns
    -------
    DataFrame
        One row per claim and model, with its sentence, verdict and share of paths. ``estimate``,
        ``low`` and ``high`` are the median and the ends over paths.
        ``choice``, ``share_from`` and ``share_to`` are those of `deciding`. No rows where the
        synthesis has not run.
    """
    if not (folder / "multiverse_shares.csv").exists():
        return pd.DataFrame()

    shares = read_table(folder, "multiverse_shares")
    shares = shares.rename(columns={"median": "estimate", "lowest": "low", "highest": "high"})
    reasons_of_studies = []
    for study in shares.study.unique():
        walked = read_table(folder, f"multiverse_{study}")
        reasons_of_studies.append(reasons(walked).assign(study=study))
    table = shares.merge(pd.concat(reasons_of_studies), on=["model", "study", "claim"])

    headlines = pd.read_csv(paths.JUDGEMENTS / "headlines.csv", dtype=str)
    headlines = headlines.rename(columns={"paper": "study"})
    # A claim without an entry in headlines.csv keeps its own name.
    table = table.merge(headlines, "left", on=["study", "claim"])
    table["name"] = table.name.fillna(table.claim.str.replace("_", " "))
    table["way"] = table.way.fillna("above")
    table["printed"] = [
        printed_range(row.study, row.table, row.rows, row.number) if pd.notna(row.table) else ""
        for row in table.itertuples()
    ]
    # The merges keep the rows in the order of the file, whose first line names the columns.
    table["source"] = "multiverse_shares.csv, line " + (table.index + 2).astype(str)
    verdicts = multiverse.verdicts(table, table.way)
    table = table.join(verdicts).drop(columns=["table", "number", "rows"])

    options = read_table(folder, "multiverse_options")
    ways = table[["model", "study", "claim", "way"]]
    choices = deciding(options.merge(ways, on=["model", "study", "claim"]))
    return table.merge(choices, "left", on=["model", "study", "claim"])


def side_by_side(claims: pd.DataFrame) -> pd.DataFrame:
    """Set the verdicts of all models side by side.

    Parameters
    ----------
    claims : DataFrame
        The table of `by_claim`.

    Returns
    -------
    DataFrame
        One row per claim: ``study``, ``name``, and for each model its verdict, with the share of
        paths where any path counts.
    """
    share = claims.share.map(", on {:.0f} %".format)
    told = claims.assign(
        model=claims.model.map(models.label),
        told=claims.verdict + share.where(claims.counted > 0, ""),
    )
    # pivot will sort the claims, so their order is kept here.
    order = pd.MultiIndex.from_frame(claims[["study", "name"]].drop_duplicates())
    wide = told.pivot(index=["study", "name"], columns="model", values="told")
    return wide.loc[order].fillna("not asked").reset_index()


def slips(table: pd.DataFrame, titles: Mapping[str, str]) -> str:
    """Name the slips of the papers that change a claim.

    Parameters
    ----------
    table : DataFrame
        ``paper``, ``items`` and ``changes``, as the audit writes them.
    titles : mapping
        The name of each paper, by its study.

    Returns
    -------
    str
        A sentence.
    """
    own = table[table.changes == "a claim"]
    named = [f"{titles[row.paper]}, {row.items}" for row in own.itertuples()]
    return f"{len(own)} slips of the papers change a claim: {'; '.join(named)}."


def of_model(model: str, verdicts: pd.Series) -> str:
    """Count the papers' sentences by their verdict on one model.

    Parameters
    ----------
    model : str
        Its name.
    verdicts : Series
        The verdict of each sentence.

    Returns
    -------
    str
        A sentence; the most frequent verdict comes first.
    """
    kind = _IN_A_SENTENCE[role(model)]
    counts = verdicts.value_counts()
    listed = ", ".join(f"{verdict} {number}" for verdict, number in counts.items())
    n = len(verdicts)
    return f"{models.label(model)} ({kind}), of {n} sentences of the papers: {listed}."
