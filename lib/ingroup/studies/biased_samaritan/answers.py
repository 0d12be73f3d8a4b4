"""Answers of the Biased Samaritan: responses to a table of ratings, one row a prompt."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ingroup.inference import Call, stored
from ingroup.parsing import Rule, parse_rating
from ingroup.studies.biased_samaritan import stimuli


def load(call: Call, rule: Rule = "sound") -> pd.DataFrame:
    """The prompts of one call, each with its reply, rating and status.

    Parameters
    ----------
    call : Call
        One of :func:`ingroup.studies.biased_samaritan.design.calls` that was asked.
    rule : str
        How a reply is read, see :func:`ingroup.parsing.parse_rating`.

    Returns
    -------
    pandas.DataFrame
        In the order of the design: the fields of :class:`~.design.Prompt`, ``reply`` (None where
        the call failed), ``rating`` (0 to 100, NaN without one) and ``status`` ("ok", "refused",
        "unparsable", "failed").

    Raises
    ------
    StoreError
        Where there are no answers to these prompts.
    """
    (block,), table, scale = call.design.blocks, stored(call).read(), stimuli.request()
    texts = table.text.astype(object).where(table.text.notna(), None)
    read = {text: parse_rating(text, scale.low, scale.high, rule) for text in set(texts)}
    return pd.DataFrame(block.factors["prompt"]).assign(
        reply=texts,
        rating=[read[text].value for text in texts],
        status=np.where(
            table.finish_reason == "failed", "failed", [read[text].status for text in texts]
        ),
    )


def cubes(prompts: pd.DataFrame) -> dict[str, NDArray[np.float64]]:
    """Ratings of each group of a category, the control among them, for :mod:`.statistics`.

    Of shape (phrasing, scenario, wording), groups and phrasings in the order of Table 4; NaN where
    there is no rating, or where the paper's crossing does not ask. `prompts` is from :func:`load`.
    """
    names = pd.concat([stimuli.phrasings(c, latino=True) for c in stimuli.categories()])
    place = {phrasing: i for i, phrasing in enumerate(names.phrasing.unique())}
    prompts = prompts.sort_values("phrasing", key=lambda named: named.map(place), kind="stable")
    arrays, wordings = {}, prompts.wording.nunique()
    for group, rows in prompts.groupby("group", sort=False):
        rated = rows.pivot(index=["phrasing", "scenario"], columns="wording", values="rating")
        phrasings = rows.phrasing.unique()
        arrays[group] = rated.loc[list(phrasings)].to_numpy().reshape(len(phrasings), -1, wordings)
    return arrays
