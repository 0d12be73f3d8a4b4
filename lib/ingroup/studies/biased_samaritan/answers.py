"""Answers of the Biased Samaritan: responses to a table of ratings, one row a prompt."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ingroup.inference import Call, stored
from ingroup.inference.reading import Reading, numbers
from ingroup.parsing import OK, UNPARSABLE, Rule, ends_in_cut_number, final_status, parse_rating
from ingroup.studies.biased_samaritan import stimuli


def load(call: Call, rule: Rule = "sound", reading: Reading | None = None) -> pd.DataFrame:
    """The prompts of one call that was asked, in the order of the design.

    Columns: the fields of :class:`~.design.Prompt`, ``reply`` (None where the call failed),
    ``rating`` (in points of the scale, NaN without one) and ``status`` ("ok", "refused",
    "unparsable", "cut", "failed"), read by a `rule` of :func:`ingroup.parsing.parse_rating` and
    settled by :func:`ingroup.parsing.final_status`. A number at which a reply was cut is no answer.
    Scored answers are read as the `reading` says, else as the call does; their ``reply`` is the
    greedy number. StoreError where there are no answers to these prompts, or not what the reading
    needs.
    """
    (block,) = call.design.blocks
    store = stored(call)
    table = store.read()
    scale = stimuli.request()
    texts = table.text.astype(object).where(table.text.notna(), None)
    read = {text: parse_rating(text, scale.low, scale.high, rule) for text in set(texts)}
    parsed = pd.DataFrame([read[text] for text in texts], columns=["rating", "status"])
    if not call.over_choices:
        parsed.loc[ends_in_cut_number(table), "status"] = UNPARSABLE
    status = final_status(table, parsed.status)
    rating = parsed.rating.where(status == OK)
    if call.over_choices:
        read_as = reading or call.reading
        rating = numbers(table, store, call.sampling, read_as)[0].where(status == OK)
        # A server may tell no admissible answer among its most probable tokens.
        status[(status == OK) & rating.isna()] = UNPARSABLE
    return pd.DataFrame(block.factors["prompt"]).assign(reply=texts, rating=rating, status=status)


def cubes(prompts: pd.DataFrame) -> dict[str, NDArray[np.float64]]:
    """Ratings of each group of a category, the control among them, for :mod:`.statistics`.

    Of shape (phrasing, scenario, wording), groups and phrasings in the order of Table 4; NaN where
    there is no rating, or where the crossing "totals" does not ask. `prompts` is from :func:`load`.
    """
    names = pd.concat([stimuli.phrasings(c, latino=True) for c in stimuli.categories()])
    place = {phrasing: i for i, phrasing in enumerate(names.phrasing.unique())}
    prompts = prompts.sort_values("phrasing", key=lambda named: named.map(place), kind="stable")
    arrays, wordings = {}, sorted(prompts.wording.unique())
    for group, rows in prompts.groupby("group", sort=False):
        rated = rows.pivot(index=["phrasing", "scenario"], columns="wording", values="rating")
        rated, phrasings = rated.reindex(columns=wordings), list(rows.phrasing.unique())
        arrays[group] = rated.loc[phrasings].to_numpy().reshape(len(phrasings), -1, len(wordings))
    return arrays
