"""Findings of a run on the papers' claims: verdicts by model, words by paper, and sentences."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from ingroup import models, paths, published
from ingroup.figures import read_table
from ingroup.stats import multiverse

REAL = "real"
POSITIVE = "positive control: biases were built in"
NEGATIVE = "negative control: nothing was built in"
_CLAIM_KEYS = ["model", "study", "claim"]  # the columns that name a claim of a model
_IN_A_SENTENCE = {
    REAL: "a real model",
    POSITIVE: "built-in biases",
    NEGATIVE: "nothing was built in",
}


def role(model: str) -> str:
    """Tell whether a model is real, a positive control or a negative control.

    Parameters
    ----------
    model : str
        The name of the model.

    Returns
    -------
    str
        `REAL`, `POSITIVE` or `NEGATIVE`.
    """
    listed = models.find(model)
    if listed and listed.control:
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
    printed = published.load(study, int(table))
    numbers = printed.query(rows).eval(number)
    low = numbers.min()
    high = numbers.max()
    return f"{low:.2f} to {high:.2f}, {len(numbers)} models (Table {table})"


def reasons_by_claim(paths_walked: pd.DataFrame) -> pd.DataFrame:
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
    by_claim = paths_walked.groupby(["model", "claim"], sort=False)
    # pandas' "first" passes over paths without a reason.
    return by_claim.agg(reason=("reason", "first")).reset_index()


def deciding_choices(options: pd.DataFrame) -> pd.DataFrame:
    """Find the choice that most changes the share of the paths that support a sentence.

    Parameters
    ----------
    options : DataFrame
        ``model``, ``study``, ``claim``, ``choice``, ``option`` and the columns of
        :func:`ingroup.stats.multiverse.shares` under each option; ``way``, its direction.

    Returns
    -------
    DataFrame
        For each model, study and claim: the ``choice``, and the smallest and largest share under
        its options, ``share_from`` and ``share_to``. A claim is left out if every choice has one
        share under all its options.
    """
    verdicts = multiverse.verdicts(options, options.way)
    with_shares = options.join(verdicts[["share", "counted"]])
    # Without a path that counts, an option has no share.
    with_shares = with_shares[with_shares.counted > 0]

    by_choice = with_shares.groupby([*_CLAIM_KEYS, "choice"], sort=False)
    table = by_choice.share.agg(share_from="min", share_to="max")
    table = table.reset_index()
    table["apart"] = table.share_to - table.share_from

    changing = table[table.apart > 0]
    largest_first = changing.sort_values("apart", ascending=False, kind="stable")
    # The rows are sorted, so the first of each claim has the choice that changes most.
    of_claims = largest_first.drop_duplicates(_CLAIM_KEYS)
    return of_claims.drop(columns="apart")


def main_deciding_choice(claims: pd.DataFrame) -> str:
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
    deciding_choices = []
    for row in claims.itertuples():
        if multiverse.decides(row.share_from, row.share_to):
            deciding_choices.append(row.choice)

    counts = pd.Series(deciding_choices, dtype=object).value_counts()
    decides_most = counts > len(claims) / 2
    if not decides_most.any():
        return ""
    # Only one choice can decide more than half, and value_counts puts it first.
    return str(counts.index[0])


def verdict_on_paper(claims: pd.DataFrame) -> str:
    """Sum up in a few words the verdicts of one model on a paper's claims.

    Parameters
    ----------
    claims : DataFrame
        The rows of one paper and model, as `by_claim` has them.

    Returns
    -------
    str
        "depends on the <choice>" where a choice decides most claims (`main_deciding_choice`).
        Otherwise the word of :func:`ingroup.stats.multiverse.paper_verdict`.
    """
    choice = main_deciding_choice(claims)
    if choice:
        return f"depends on the {choice}"
    return multiverse.paper_verdict(claims.verdict.tolist())


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
        ``low`` and ``high`` are the median, the smallest and the largest estimate over paths.
        ``choice``, ``share_from`` and ``share_to`` come from `deciding_choices`. No rows where the
        synthesis has not run.
    """
    if not (folder / "multiverse_shares.csv").exists():
        return pd.DataFrame()

    shares = _shares_and_reasons(folder)
    table = _with_headlines(shares)
    # The merges keep the rows in the order of the file, whose first line names the columns.
    line = table.index + 2
    table["source"] = "multiverse_shares.csv, line " + line.astype(str)

    verdicts = multiverse.verdicts(table, table.way)
    table = table.join(verdicts)
    # These three say where the paper prints the number, which is in the table already.
    table = table.drop(columns=["table", "number", "rows"])

    options = read_table(folder, "multiverse_options")
    ways = table[[*_CLAIM_KEYS, "way"]]
    options = options.merge(ways, on=_CLAIM_KEYS)
    choices = deciding_choices(options)
    return table.merge(choices, "left", on=_CLAIM_KEYS)


def _shares_and_reasons(folder: Path) -> pd.DataFrame:
    """Read the shares and estimates over paths by claim and model, with `reasons_by_claim`."""
    shares = read_table(folder, "multiverse_shares")
    shares = shares.rename(columns={"median": "estimate", "lowest": "low", "highest": "high"})

    reasons_of_studies = []
    for study in shares.study.unique():
        paths_walked = read_table(folder, f"multiverse_{study}")
        of_study = reasons_by_claim(paths_walked)
        reasons_of_studies.append(of_study.assign(study=study))

    all_reasons = pd.concat(reasons_of_studies)
    return shares.merge(all_reasons, on=_CLAIM_KEYS)


def _with_headlines(table: pd.DataFrame) -> pd.DataFrame:
    """Join to claims their entries of headlines.csv, and the numbers that their papers print."""
    headlines = pd.read_csv(paths.JUDGEMENTS / "headlines.csv", dtype=str)
    headlines = headlines.rename(columns={"paper": "study"})
    table = table.merge(headlines, "left", on=["study", "claim"])
    # A claim without an entry in headlines.csv keeps its own name, and no number is printed of it.
    own_name = table.claim.str.replace("_", " ")
    table["name"] = table.name.fillna(own_name)
    table["way"] = table.way.fillna("above")

    printed = []
    for row in table.itertuples():
        numbers = ""
        if pd.notna(row.table):
            numbers = printed_range(row.study, row.table, row.rows, row.number)
        printed.append(numbers)
    return table.assign(printed=printed)


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
    has_share = claims.counted > 0
    cells = claims.assign(
        model=claims.model.map(models.label),
        cell=claims.verdict + share.where(has_share, ""),
    )
    keys = ["study", "name"]
    wide = cells.pivot(index=keys, columns="model", values="cell")
    # `pivot` has sorted the claims, so they get their order back.
    in_order = claims[keys].drop_duplicates()
    wide = wide.loc[pd.MultiIndex.from_frame(in_order)]
    return wide.fillna("not asked").reset_index()


def sentence_on_slips(table: pd.DataFrame, titles: Mapping[str, str]) -> str:
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
    changing = table[table.changes == "a claim"]
    named = []
    for row in changing.itertuples():
        title = titles[row.paper]
        named.append(f"{title}, {row.items}")

    listed = "; ".join(named)
    return f"{len(changing)} slips of the papers change a claim: {listed}."


def sentence_on_model(model: str, verdicts: pd.Series) -> str:
    """Count the papers' sentences by their verdict on one model.

    Parameters
    ----------
    model : str
        The name of the model.
    verdicts : Series
        The verdict of each sentence.

    Returns
    -------
    str
        A sentence, with the most frequent verdict first.
    """
    kind = _IN_A_SENTENCE[role(model)]
    parts = []
    for verdict, number in verdicts.value_counts().items():
        parts.append(f"{verdict} {number}")

    listed = ", ".join(parts)
    name = models.label(model)
    n = len(verdicts)
    return f"{name} ({kind}), of {n} sentences of the papers: {listed}."
