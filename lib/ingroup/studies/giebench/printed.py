"""Numbers of a run under the tables of GIEBench that print them, counted as the paper's are."""

from collections.abc import Iterator

import pandas as pd

from ingroup.studies.giebench import statistics, stimuli

_ACCURACY = {1: "COT", 2: "ID", 6: "Raw"}  # the prompt of each table of accuracies
_CHANGES = {4: "COT", 5: "ID"}  # the prompt that a table compares with Raw
_MISMATCH = (3, 7)
_SIDES = ["identity_i", "identity_j"]
_CONDITIONS = ["cot_prompt_mismatch", "id_prompt_mismatch", "no_mismatch"]


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
    # The printed shares are met only with the n + 1 and the rounding of the released code.
    accuracy = statistics.accuracy(answers, "released", 3)
    shares = accuracy.set_index(["prompt", "category"]).accuracy
    asked = set(answers.prompt)
    for table, prompt in _ACCURACY.items():
        if prompt in asked:
            yield table, "accuracy_pct", shares.loc[prompt]

    for table, after in _CHANGES.items():
        if not asked.issuperset({"Raw", after}):
            continue
        change = statistics.changes(answers, "Raw", after, "released", 3).set_index("category")
        for column, name in (("delta_pct", "change"), ("gained", "gained"), ("lost", "lost")):
            yield table, column, change[name]

    if swapped is not None:
        for table in _MISMATCH:
            yield table, "accuracy_pct", _mismatch(table, answers, swapped, shares.loc["COT"])


def _mismatch(
    table: int, answers: pd.DataFrame, swapped: pd.DataFrame, cot: pd.Series
) -> pd.Series:
    """Accuracies by tuple of identities and condition, as Tables 3 and 7 print them."""
    own = swapped.set_index(swapped[_SIDES].agg(frozenset, axis=1))[_CONDITIONS]
    tuples = stimuli.tuples((table,)).set_index("identity_tuple")
    # A tuple is the same in either order, so both tables are matched by sets.
    names = tuples[_SIDES].agg(frozenset, axis=1)
    here = own.reindex(names).set_index(names.index).rename_axis(columns="condition")

    # (Male, Female) are a whole category: without a mismatch the paper prints Table 1's share.
    people = answers.groupby("category").identity.agg(frozenset)
    whole = {both: category for category, both in people.items() if len(both) == 2}
    for name, both in names[names.isin(list(whole))].items():
        here.loc[name, "no_mismatch"] = cot[whole[both]]
    return here.stack().dropna()
