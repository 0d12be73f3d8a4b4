"""Printed tables of GIEBench: their layout, numbers that follow from them, and a run's numbers."""

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd

from ingroup import audit, published
from ingroup.studies.giebench import statistics, stimuli

_ACCURACY = {1: "COT", 2: "ID", 6: "Raw"}  # the prompt of each table of accuracies
_CHANGES = {4: "COT", 5: "ID"}  # the prompt that a table compares with Raw
_MISMATCH = (3, 7)  # the tables of accuracies after a mismatch
_SIDES = ["identity_i", "identity_j"]
_CONDITIONS = ["cot_prompt_mismatch", "id_prompt_mismatch", "no_mismatch"]
_SIZE = re.compile(r"(?:(\d+)[x×])?(\d+(?:\.\d+)?)b\b")  # "7b" and "8x7b"


def numbers_of(
    answers: pd.DataFrame, swapped: pd.DataFrame | None = None
) -> Iterator[tuple[int, str, pd.Series]]:
    """Collect one model's numbers as the paper prints them.

    Parameters
    ----------
    answers : DataFrame
        The model's verdicts on items asked once, read by the released rule. Tables of prompts that
        were not asked are left out.
    swapped : DataFrame, optional
        From `statistics.mismatch`, for a model of which the paper prints the mismatch.

    Yields
    ------
    tuple
        A table, its column and the numbers, as :func:`ingroup.published.beside` takes them.
    """
    # Only the n + 1 and the rounding to 3 digits of the released code give the printed shares.
    accuracy = statistics.accuracy(answers, "released", 3)
    shares = accuracy.set_index(["prompt", "category"]).accuracy
    prompts = set(answers.prompt)
    for table, prompt in _ACCURACY.items():
        if prompt in prompts:
            yield table, "accuracy_pct", shares.loc[prompt]

    for table, prompt in _CHANGES.items():
        if prompts.issuperset({"Raw", prompt}):
            changes = statistics.changes(answers, "Raw", prompt, "released", 3)
            changes = changes.set_index("category")
            yield table, "delta_pct", changes["change"]
            yield table, "gained", changes["gained"]
            yield table, "lost", changes["lost"]

    if swapped is not None:
        shares_under_cot = shares.loc["COT"]
        for table in _MISMATCH:
            numbers = _mismatch(table, answers, swapped, shares_under_cot)
            yield table, "accuracy_pct", numbers


def _mismatch(
    table: int,
    answers: pd.DataFrame,
    swapped: pd.DataFrame,
    shares_under_cot: pd.Series,
) -> pd.Series:
    """Collect accuracies by tuple of identities and condition, as Tables 3 and 7 print them."""
    # A tuple is the same in either order, so both tables are matched by sets.
    by_identities = swapped.set_index(_identity_sets(swapped))
    printed_tuples = stimuli.tuples((table,)).set_index("identity_tuple")
    identities_of = _identity_sets(printed_tuples)

    accuracies = by_identities[_CONDITIONS].reindex(identities_of)
    accuracies = accuracies.set_axis(printed_tuples.index)
    accuracies = accuracies.rename_axis(columns="condition")

    # (Male, Female) are a whole category: without a mismatch the paper prints Table 1's share.
    identities_of_category = answers.groupby("category").identity.agg(frozenset)
    for name, identities in identities_of.items():
        for category, of_category in identities_of_category.items():
            if identities == of_category:
                accuracies.loc[name, "no_mismatch"] = shares_under_cot[category]
    return accuracies.stack().dropna()


def _identity_sets(table: pd.DataFrame) -> pd.Series:
    """Return the two identities of each row as a set."""
    return table[_SIDES].agg(frozenset, axis=1)


def by_category(table: pd.DataFrame, values: str) -> pd.DataFrame:
    """Lay a table out as Tables 1, 2 and 4 to 6: a column per category.

    Parameters
    ----------
    table : DataFrame
        ``model`` (also as the index), ``prompt``, ``category`` and the column of `values`.
    values : str
        The column that fills the cells.

    Returns
    -------
    DataFrame
        A row per model under each prompt, COT first; models in the order of `table`.
    """
    flat = table.reset_index()
    names = ["prompt", "model"]
    cells = flat.pivot(index=names, columns="category", values=values)

    # `pivot` sorts: rows and columns go into the order of print.
    prompts = _ACCURACY.values()
    models = flat["model"].unique()
    every_row = pd.MultiIndex.from_product([prompts, models], names=names)
    is_present = every_row.isin(cells.index)
    rows = every_row[is_present]
    columns = [*stimuli.categories(), statistics.OVERALL]
    return cells.reindex(index=rows, columns=columns)


def changes_by_category(changes: pd.DataFrame) -> pd.DataFrame:
    """Write changes as the cells of Tables 4 and 5.

    Parameters
    ----------
    changes : DataFrame
        From `statistics.changes_over_raw`, of any number of models, with the index ``model``.

    Returns
    -------
    DataFrame
        Laid out by `by_category`. A cell has the change with the gained and the lost items, for
        example "+50.0 (+4/-0)".
    """
    texts = []
    for row in changes.itertuples():
        text = f"{row.change:+.1f} (+{row.gained}/-{row.lost})"
        texts.append(text)
    with_texts = changes.assign(text=texts)
    return by_category(with_texts, "text")


def tests(changes: pd.DataFrame) -> pd.DataFrame:
    """Round the numbers of changes and of their tests, to be shown.

    Parameters
    ----------
    changes : DataFrame
        From `statistics.changes_over_raw`, of any number of models, with the index ``model``.

    Returns
    -------
    DataFrame
        The rows with the index ``model`` and ``prompt``. Points have one decimal and corrected p
        three; p and the smallest possible p are texts of two digits, as they may be tiny.
    """
    decimals = {
        "change": 1,
        "low": 1,
        "high": 1,
        "p_holm": 3,
        "p_holm_least": 3,
    }
    rounded = changes.round(decimals)
    for column in ("p", "p_least"):
        rounded[column] = changes[column].map("{:.2g}".format)
    return rounded.set_index("prompt", append=True)


def mismatch_by_model(table: pd.DataFrame) -> pd.DataFrame:
    """Lay accuracies after an identity mismatch out with the models side by side.

    Parameters
    ----------
    table : DataFrame
        From `statistics.mismatch`, of any number of models, with the index ``model``.

    Returns
    -------
    DataFrame
        A row for each tuple with its ``n``; for each model the accuracy under each condition.
    """
    of_model = {}
    for model, rows in table.groupby(level="model", sort=False):
        cells = rows.set_index([*_SIDES, "n"])
        of_model[model] = cells[[*_CONDITIONS, "no_mismatch_id"]]
    return pd.concat(of_model, axis=1)


def questions_by_category() -> pd.Series:
    """Count the paper's questions in each category, as far as its numbers tell.

    Returns
    -------
    Series
        The topics of Table 8 by category, in its order, except for two: Gender has the share that
        Figure 1 prints. Faith, which the table lacks, has the questions that remain.
    """
    claims = audit.read_judgements("claims", "giebench")
    printed = claims.set_index("claim")["printed"]
    n_questions = int(printed["questions"])
    share_of_gender = float(printed["share of Gender"]) / 100

    topics = published.load("giebench", 8)
    # The table repeats a category's number in each of its rows.
    categories = topics.drop_duplicates("category")
    counts = categories.set_index("category")["n_topics"].astype(float)
    counts["Gender"] = round(share_of_gender * n_questions)
    # Faith is the last to be added, so the sum is that of all other categories.
    counts["Faith"] = n_questions - counts.sum()
    return counts


def beside_table_1(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Put the paper's accuracy under COT beside the accuracy of each printed model.

    Parameters
    ----------
    accuracy : DataFrame
        ``model``, ``category`` and others.

    Returns
    -------
    DataFrame
        The rows with ``printed_model``, the model's name in the paper or "", and ``in_print``, NaN
        where the paper has no number.
    """
    keys = ["printed_model", "category"]
    printed = published.load("giebench", 1)
    printed = printed.rename(columns={"model": "printed_model"})
    in_print = printed.set_index(keys)["accuracy_pct"]
    in_print = in_print.rename("in_print")

    printed_names = {}
    for model in accuracy["model"].unique():
        printed_name = published.model_of("giebench", model)
        printed_names[model] = printed_name or ""
    printed_model = accuracy["model"].map(printed_names)
    with_names = accuracy.assign(printed_model=printed_model)
    return with_names.join(in_print, on=keys)


def overall_accuracies() -> pd.DataFrame:
    """Read the overall accuracies of all printed models (Tables 1, 2 and 6).

    Returns
    -------
    DataFrame
        Percent right, models by prompts.
    """
    of_prompt = {}
    for table, prompt in _ACCURACY.items():
        rows = published.load("giebench", table)
        is_overall = rows["category"] == statistics.OVERALL
        overall = rows[is_overall]
        of_prompt[prompt] = overall.set_index("model")["accuracy_pct"]
    return pd.DataFrame(of_prompt).sort_index()


def billions_by_name(model: str) -> float:
    """Read a model's size from its name.

    Parameters
    ----------
    model : str
        A printed name. In a mixture of experts, "8x7b", the sizes of all experts are added.

    Returns
    -------
    float
        Billions of parameters; NaN where the name does not say.
    """
    size = _SIZE.search(model.lower())
    if size is None:
        return np.nan
    n_experts = int(size[1] or 1)
    return n_experts * float(size[2])
