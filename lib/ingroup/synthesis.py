"""Common parts of the four lenses: the groups that several studies ask, and the form of an answer.

A study's ``lens.py`` has:

``MEASURES``, ``portrait``
    What the study says of a group, and these measures as `View`.
``claims``, ``paths``
    Its headline claims on one path of a multiverse, and on all.
``power``
    The reported tests of a run with the parameters ``planned``, each as `Tested`. The spread comes
    from the answers of a model that was asked with other parameters (``recorded``).
``effects``
    Its headline numbers item by item, in which two models are `compared`.
``items``, ``extent``
    What an item of its design is, and how many prompts and items the paper has
    (:mod:`ingroup.extent`).

The first functions take the ``parameters`` of the study's notebook (:func:`ingroup.notebook.ran`),
one ``model`` of these, ``groups`` (from an identity to its shared group) and the ``options`` of the
synthesis. With ``file`` (a ``planted.yaml``) ``portrait`` takes its answers instead of the stored
ones. They raise StoreError if there are no stored answers.
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
    """One measure of the shared groups, as :func:`ingroup.stats.effects.measure` takes it.

    Attributes
    ----------
    measure : str
        Its name.
    items : DataFrame
        Items by groups, NaN where an item says nothing of a group.
    sd : float
        Standard deviation of the single answers from which the items come, in their unit.
    together : bool
        Whether all groups are asked with the same items.
    draw : str
        Views of a study with the same name take the same draws of items.
    """

    measure: str
    items: pd.DataFrame
    sd: float
    together: bool = True
    draw: str = ""


class Tested(NamedTuple):
    """A reported test of a study, as its lens plans it: see :func:`ingroup.commands.plan.power`.

    Attributes
    ----------
    effect : str
        The effect that is tested, with its unit.
    items : str
        The things that are counted.
    n : int
        The planned number of these.
    name : str
        The test.
    level : float
        The level of one test, which Holm's correction asks of the smallest p of a family.
    smallest : float
        The smallest effect that most runs find, in standard deviations; infinite if there is none.
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
        One row for each effect that both have: ``effect``; ``one`` and ``other``, its means over
        the shared items; ``difference`` of these with its interval ``low`` to ``high``; ``p`` of
        the paired t-test over items (:func:`ingroup.stats.paired.paired_test`); ``items``. The
        items are a sample; names and phrasings are not.

    Notes
    -----
    The interval holds the difference in .94 to .95 of simulations with 79 verdicts or 103
    heavy-tailed scenarios (``make calibration``). It holds it in .81 where two models differ in 2
    of 100 verdicts, and in .82 where items come in pairs that are alike.
    """
    items = one.index.intersection(other.index)
    rows = []

    for effect in one.columns.intersection(other.columns, sort=False):
        pairs = pd.DataFrame({"one": one.loc[items, effect], "other": other.loc[items, effect]})
        # An item may have one effect and lack another, so pairs are chosen effect by effect.
        pairs = pairs.dropna()
        if pairs.empty:
            continue

        test = paired_test(pairs.one, pairs.other)
        row = {
            "effect": effect,
            **pairs.mean(),
            "difference": test.difference,
            "low": test.low,
            "high": test.high,
            "p": test.pvalue,
            "items": test.n,
        }
        rows.append(row)

    columns = ["effect", "one", "other", "difference", "low", "high", "p", "items"]
    return pd.DataFrame(rows, columns=columns)


def decisive(shares: pd.DataFrame, options: pd.DataFrame) -> pd.DataFrame:
    """Find the choice that matters most to each claim that stands on some paths but not on all.

    Parameters
    ----------
    shares : DataFrame
        Index ``model``, ``study``, ``claim``; ``stands`` and ``reversed``, in percent of the paths,
        as of :func:`ingroup.stats.multiverse.shares`.
    options : DataFrame
        The same percentages under each option: further levels ``choice`` and ``option``, as of
        :func:`ingroup.stats.multiverse.by_option`.

    Returns
    -------
    DataFrame
        Index as `shares`. ``it`` (stands or reversed) differs most between the options of
        ``choice``: by ``apart`` percent. A text has the share under each option. The claims that
        depend most on a choice come first.
    """
    ways = ["stands", "reversed"]
    claim = list(shares.index.names)
    is_contested = ((shares[ways] > 0) & (shares[ways] < 100)).any(axis=1)
    contested = shares.index[is_contested]

    under_each = "share of the paths under each option (%)"
    # There is one row per claim, way (stands or reversed), choice and option.
    rows = options[ways].rename_axis(columns="it").stack().rename("share").reset_index()
    rows = rows[pd.MultiIndex.from_frame(rows[claim]).isin(contested)]
    rows[under_each] = rows.option + rows.share.map(": {:.0f}".format).astype(str)

    # A row has the smallest and the largest share over the options of a choice, and all as a text.
    choices = rows.groupby([*claim, "it", "choice"], sort=False)
    table = choices.agg({"share": ["min", "max"], under_each: ", ".join})
    table.columns = ["min", "max", under_each]
    table.insert(0, "apart", table.pop("max") - table.pop("min"))
    table = table.sort_values("apart", ascending=False, kind="stable").round()
    # The rows are sorted, so the first of each claim is its most decisive choice.
    return table.groupby(claim, sort=False).head(1)


def rules(calls: Sequence[Call]) -> tuple[str, ...]:
    """List the rules by which replies are parsed.

    Parameters
    ----------
    calls : sequence of Call
        Calls of one model, at least one, all scored or none.

    Returns
    -------
    tuple of str
        One rule for scored answers, which have no text, and two for free text.
    """
    if calls[0].over_choices:
        return ("sound",)
    return ("sound", "released")


def ways_to_read(calls: Sequence[Call]) -> dict[str, Reading]:
    """List the readings that all calls of one model allow.

    Parameters
    ----------
    calls : sequence of Call
        Calls of one model, with stored answers.

    Returns
    -------
    dict of Reading
        By name. Free text has one, named "free"; scored answers have those of
        :func:`ingroup.inference.reading.readings`.

    Raises
    ------
    StoreError
        If there are no stored answers.
    """
    if not calls[0].over_choices:
        return {str(FREE): FREE}

    first, *others = [readings(stored(call), call.sampling) for call in calls]
    shared = {}
    for reading in first:
        if all(reading in other for other in others):
            shared[str(reading)] = reading
    return shared


def shared_groups(file: Path = paths.STIMULI / "shared_groups.csv") -> pd.DataFrame:
    """Read which identities of each study belong to a shared group.

    Parameters
    ----------
    file : Path
        A CSV file with `COLUMNS`.

    Returns
    -------
    DataFrame
        `COLUMNS`; identities are named as in the study's own files.

    Raises
    ------
    InputError
        For an empty cell; for an identity that a study has twice; for a group in two categories.
    """
    table = read_table(file, COLUMNS)[COLUMNS]
    for column in COLUMNS:
        check(file, table[column], table[column] != "", "a text")
    once(file, table[["study", "identity"]])

    # This is, for each row, the category in which its group stands first.
    first_category = table.groupby("group").category.transform("first")
    for line, row in table[table.category != first_category].iterrows():
        found = f"{row.group!r} in {row.category!r} and {first_category[line]!r}"
        raise wrong(at(file, line), found, "one category")

    return table.reset_index(drop=True)
