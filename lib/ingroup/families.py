"""Families of tests that one correction covers (``data/families.yaml``).

Tables, paths and plans use the same families.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ingroup import paths
from ingroup.stats.corrections import adjust
from ingroup.tables import InputError, read_yaml, wrong


class Family(BaseModel):
    """The headline claim of a study, and how its tests are corrected.

    Attributes
    ----------
    claim : str
        The claim that each test asks about.
    words : dict of str to str
        The claim in a few words about one group, category or cluster, by the direction of the
        paper's sentence: "above" 0, "below" 0 or "no difference".
    together : tuple of str
        Columns. Tests with equal values in these columns are one family.
    method : {"holm", "largest"}
        How p is corrected: by Holm's method (see `corrected`), or by the largest statistic of a
        draw, as in :func:`ingroup.studies.stereomap.clustering.axis_tests`.
    level : float
        A claim is significant if its corrected p is below this level, between 0 and 1.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    claim: str
    words: dict[Literal["above", "below", "no difference"], str]
    together: tuple[str, ...]
    method: Literal["holm", "largest"]
    level: float = Field(gt=0, lt=1)


@cache
def families(file: Path = paths.DATA / "families.yaml") -> dict[str, Family]:
    """Read the families of all studies.

    Parameters
    ----------
    file : Path
        A YAML file with one entry for each study.

    Returns
    -------
    dict of str to Family
        The families of each study.

    Raises
    ------
    InputError
        If the file is not YAML, or an entry of `Family` is missing, unknown or of the wrong kind.
    """
    by_study = {}
    for study, entries in read_yaml(file).items():
        try:
            by_study[study] = Family(**entries)
        except ValidationError as error:
            first = error.errors()[0]
            entry = ".".join(map(str, first["loc"]))
            raise _refusal(f"{file}, {study}", entry, first) from error
    return by_study


def _refusal(where: str, entry: str, problem: Mapping[str, Any]) -> InputError:
    """Say in the house's words what pydantic refused in the entry of a study."""
    if problem["type"] == "missing":
        return wrong(where, f"no entry {entry!r}", "one")
    if problem["type"] == "extra_forbidden":
        return wrong(where, f"the entry {entry!r}", f"only {', '.join(Family.model_fields)}")

    expected = problem["msg"].removeprefix("Input should be ")
    return wrong(f"{where}, {entry}", repr(problem["input"]), expected)


def corrected(
    table: pd.DataFrame, study: str, p: str = "p", least: str | None = "p_least"
) -> pd.DataFrame:
    """Correct the tests of a table by Holm within the families of a study.

    Parameters
    ----------
    table : DataFrame
        One row for each test, with NaN as its `p` where nothing was tested. It has some columns of
        the family's ``together``; a column that it lacks has one value.
    study : str
        A study in ``data/families.yaml``.
    p : str
        The column with the p of each test.
    least : str, optional
        The column with the smallest p that each test could have had. None where the tests have no
        floor, so that the smallest p is 0.

    Returns
    -------
    DataFrame
        With the table's index: ``holm``, the corrected p; ``least``, the smallest ``holm`` that was
        possible; ``tests``, the number of tests in the family.

    Raises
    ------
    ValueError
        For a study whose tests are corrected by another method.
    """
    family = families()[study]
    if family.method != "holm":
        raise ValueError(f"{study} is corrected by {family.method!r}, expected 'holm'")

    keys = [table[name] for name in family.together if name in table]
    if not keys:
        # A table without any of these columns is one family.
        keys = [pd.Series(0, table.index)]

    # Where nothing was tested, the floor is NaN as well: `adjust` does not count NaN.
    is_tested = table[p].notna()
    floors = pd.Series(0.0, table.index) if least is None else table[least]
    smallest = floors.where(is_tested)
    return pd.DataFrame(
        {
            "holm": table[p].groupby(keys).transform(adjust, "holm"),
            "least": smallest.groupby(keys).transform(adjust, "holm"),
            "tests": is_tested.groupby(keys).transform("sum"),
        }
    )
