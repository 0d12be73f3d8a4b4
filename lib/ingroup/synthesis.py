"""What the four lenses share: the groups that several studies ask, and the form of an answer.

A study's ``lens.py`` has ``MEASURES``, what it says of a group; ``portrait``, these as `View`;
``claims`` and ``paths``, its headline claims on one path of a multiverse and on all; ``power``, the
reported tests of a run with the parameters ``planned``, each as `Tested`, given the spread in the
answers of a model that was asked with others (``recorded``); ``effects``, its headline numbers item
by item, in which two models are `compared`. They take the
``parameters`` of its notebook (:func:`ingroup.notebook.ran`), a ``model`` of them, ``groups`` (an
identity to its shared group), ``planted`` (a ``planted.yaml``: its answers, not the stored ones)
and the ``options`` of the synthesis. StoreError where there are no stored answers.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from ingroup import paths
from ingroup.inference import Call, stored
from ingroup.inference.reading import FREE, Reading, readings
from ingroup.stats.paired import paired_test
from ingroup.tables import at, check, once, read_table, wrong

COLUMNS = ["study", "category", "group", "identity"]


class View(NamedTuple):
    """One measure of the shared groups, as :func:`ingroup.stats.effects.measure` takes it."""

    measure: str
    items: pd.DataFrame  # items by groups, NaN where an item says nothing of a group
    sd: float  # of the single answers from which the items come, in their unit
    together: bool = True  # whether all groups are asked with the same items
    draw: str = ""  # views of a study with the same name take the same draws of items


class Tested(NamedTuple):
    """A reported test of a study, as its lens plans it: see :func:`ingroup.commands.plan.power`.

    Attributes
    ----------
    effect : str
        What is tested, with its unit.
    items : str
        What is counted.
    n : int
        How many of these are planned.
    name : str
        The test.
    level : float
        The level of one test: what Holm's correction asks of the smallest p of a family.
    smallest : float
        The smallest effect that most runs find, in standard deviations; infinite where none is.
    spread : float
        Such a standard deviation in recorded answers, in the unit of the effect.
    floor : str
        A sentence on the p that the study's test by rearranging cannot go below; "" without one.
    """

    effect: str
    items: str
    n: int
    name: str
    level: float
    smallest: float
    spread: float
    floor: str = ""


def compared(one: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """Compare two models over the items that both answered, effect by effect.

    Parameters
    ----------
    one, other : DataFrame
        ``effects`` of a lens: items by effects, in the unit of the study, NaN where there is none.

    Returns
    -------
    DataFrame
        A row an effect that both have: ``effect``; ``one`` and ``other``, its means over the shared
        items; ``difference`` of these with its interval ``low`` to ``high``; ``p`` of the paired
        t-test over items (:func:`ingroup.stats.paired.paired_test`); ``items``. The items are a
        sample, names and phrasings are not.
    """
    items = one.index.intersection(other.index)
    rows = []
    for effect in one.columns.intersection(other.columns, sort=False):
        pairs = pd.DataFrame({"one": one.loc[items, effect], "other": other.loc[items, effect]})
        pairs = pairs.dropna()
        if len(pairs) == 0:
            continue
        test = paired_test(pairs.one, pairs.other)
        rows.append({
            "effect": effect,
            **pairs.mean(),
            "difference": test.difference,
            "low": test.low,
            "high": test.high,
            "p": test.pvalue,
            "items": test.n,
        })  # fmt: skip
    columns = ["effect", "one", "other", "difference", "low", "high", "p", "items"]
    return pd.DataFrame(rows, columns=columns)


def rules(calls: Sequence[Call]) -> tuple[str, ...]:
    """Rules of reading a reply: over choices, where there is no text to read, there is one."""
    return ("sound",) if calls[0].over_choices else ("sound", "released")


def ways_to_read(calls: Sequence[Call]) -> dict[str, Reading]:
    """Every reading that all of some stored answers of one model allow, by its name.

    Free text has one, named "free"; scored answers have those of
    :func:`ingroup.inference.reading.readings`. StoreError where there are no stored answers.
    """
    if not calls[0].over_choices:
        return {str(FREE): FREE}

    of_calls = [readings(stored(call), call.sampling) for call in calls]
    shared = [one for one in of_calls[0] if all(one in others for others in of_calls)]
    return {str(one): one for one in shared}


def shared_groups(file: Path = paths.STIMULI / "shared_groups.csv") -> pd.DataFrame:
    """Which identities of each study, as its own files name them, belong to a shared group.

    InputError for an empty cell, an identity that a study has twice, a group in two categories.
    """
    table = read_table(file, COLUMNS)[COLUMNS]
    for column in COLUMNS:
        check(file, table[column], table[column] != "", "a text")
    once(file, table[["study", "identity"]])
    known = table.groupby("group").category.transform("first")
    for line, row in table[table.category != known].iterrows():
        found = f"{row.group!r} in {row.category!r} and {known[line]!r}"
        raise wrong(at(file, line), found, "one category")
    return table.reset_index(drop=True)
