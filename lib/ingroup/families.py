"""Which tests one correction covers: ``data/families.yaml``, for tables, paths and plans alike."""

from functools import cache
from pathlib import Path
from typing import Literal

import pandas as pd
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ingroup import paths
from ingroup.stats.paired import adjust
from ingroup.tables import InputError


class Family(BaseModel):
    """The headline claim of a study, and how its tests are corrected.

    Attributes
    ----------
    claim : str
        What each test asks.
    together : tuple of str
        Columns; tests that share their values are one family.
    method : {"holm", "largest"}
        How p is corrected: see `corrected`, or by the largest statistic of a draw, as in
        :func:`ingroup.studies.stereomap.clustering.axis_tests`.
    level : float
        A claim is significant where its corrected p is below; between 0 and 1.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    claim: str
    together: tuple[str, ...]
    method: Literal["holm", "largest"]
    level: float = Field(gt=0, lt=1)


@cache
def families(file: Path = paths.DATA / "families.yaml") -> dict[str, Family]:
    """Read the families of all studies.

    Raises
    ------
    InputError
        If a study lacks an entry of `Family`, has another one, or one of the wrong kind.
    """
    found = {}
    for study, entries in yaml.safe_load(file.read_text("utf8")).items():
        try:
            found[study] = Family(**entries)
        except ValidationError as error:
            first = error.errors()[0]
            entry = ".".join(map(str, first["loc"]))
            raise InputError(f"{file}, {study}, {entry}: {first['msg']}") from error
    return found


def corrected(
    table: pd.DataFrame, study: str, p: str = "p", least: str = "p_least"
) -> pd.DataFrame:
    """Correct the tests of a table by Holm within the families of a study.

    Parameters
    ----------
    table : DataFrame
        A row a test, NaN as its `p` where nothing was tested. It has some columns of the family's
        ``together``; a column that it lacks has one value.
    study : str
        A study in ``data/families.yaml``.
    p, least : str
        Columns: the p of each test, and the smallest that it could have been.

    Returns
    -------
    DataFrame
        Of the table's index: ``holm``, the corrected p; ``least``, the smallest that this could
        have been; ``tests``, how many tests the family has.

    Raises
    ------
    ValueError
        For a study whose tests are corrected by another method.
    """
    family = families()[study]
    if family.method != "holm":
        raise ValueError(f"{study} is corrected by {family.method!r}, expected 'holm'")

    keys = [name for name in family.together if name in table]
    tested = table[p].notna()
    smallest = table[least].where(tested)
    groups = [table[key] for key in keys] or [pd.Series(0, table.index)]
    return pd.DataFrame({
        "holm": table[p].groupby(groups).transform(adjust, "holm"),
        "least": smallest.groupby(groups).transform(adjust, "holm"),
        "tests": tested.groupby(groups).transform("sum"),
    })  # fmt: skip
