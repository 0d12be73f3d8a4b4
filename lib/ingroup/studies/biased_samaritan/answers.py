"""Answers of the Biased Samaritan: responses to a table of ratings, one row per prompt."""

from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ingroup.inference import Call, stored
from ingroup.inference.reading import Reading, numbers
from ingroup.parsing import (
    OK,
    UNPARSABLE,
    Parsed,
    Rule,
    ends_in_cut_number,
    final_status,
    parse_rating,
)
from ingroup.studies.biased_samaritan import stimuli


def load(call: Call, rule: Rule = "sound", reading: Reading | None = None) -> pd.DataFrame:
    """Load the prompts of one call that was asked, with their ratings.

    Parameters
    ----------
    call : Call
        One of those of :func:`~.design.calls`.
    rule : {"sound", "released"}
        How free text is parsed, see :func:`ingroup.parsing.parse_rating`.
    reading : Reading, optional
        How scored answers are read; as the call says unless given.

    Returns
    -------
    DataFrame
        One row per prompt, in the order of the design: the fields of :class:`~.design.Prompt`,
        ``reply`` (None where the call failed), ``rating`` (in points of the scale, NaN where it is
        missing) and ``status`` ("ok", "refused", "unparsable", "cut", "failed"), settled by
        :func:`ingroup.parsing.final_status`. A number at which a reply was cut is not an answer.
        The ``reply`` of a scored answer is its greedy number.

    Raises
    ------
    StoreError
        Where there are no answers to these prompts, or the reading needs more than is stored.
    """
    (block,) = call.design.blocks
    store = stored(call)
    responses = store.read()
    # A failed call has a missing text, which `parse_rating` takes as None.
    has_text = responses.text.notna()
    texts = responses.text.astype(object).where(has_text, None)

    scale = stimuli.request()

    # Many replies are equal, so each text is parsed once.
    @cache
    def parse(text: str | None) -> Parsed:
        return parse_rating(text, scale.low, scale.high, rule)

    parsed = pd.DataFrame(map(parse, texts), columns=["rating", "status"])
    if call.over_choices:
        reading = reading or call.reading
        scored = numbers(responses, store, call.sampling, reading)[0]
        # The text of a scored answer is its greedy number; only its status is needed here.
        status = final_status(responses, parsed.status)
        # A server's most probable tokens may hold no admissible answer.
        status[(status == OK) & scored.isna()] = UNPARSABLE
        ratings = scored.where(status == OK)
    else:
        # These replies are at their limit, so `final_status` makes them "cut".
        parsed.loc[ends_in_cut_number(responses), "status"] = UNPARSABLE
        status = final_status(responses, parsed.status)
        ratings = parsed.rating.where(status == OK)

    prompts = pd.DataFrame(block.factors["prompt"])
    return prompts.assign(reply=texts, rating=ratings, status=status)


def cubes(prompts: pd.DataFrame) -> dict[str, NDArray[np.float64]]:
    """Arrange the ratings of each group of a category for :mod:`.statistics`.

    Parameters
    ----------
    prompts : DataFrame
        From :func:`load`.

    Returns
    -------
    dict of str to ndarray, (phrasing, scenario, wording)
        Groups, the control among them, and phrasings in the order of Table 4. NaN where a rating is
        missing, or where the crossing "totals" does not ask.
    """
    # A run with LATINO has phrasings beyond those of Table 4.
    tables = [stimuli.phrasings(category, latino=True) for category in stimuli.categories()]
    printed = pd.concat(tables).phrasing.unique()
    order = pd.Index(printed)
    prompts = prompts.sort_values("phrasing", key=order.get_indexer, kind="stable")
    wordings = sorted(prompts.wording.unique())

    arrays = {}
    for group, rows in prompts.groupby("group", sort=False):
        rated = rows.pivot(
            index=["phrasing", "scenario"],
            columns="wording",
            values="rating",
        )
        phrasings = list(rows.phrasing.unique())
        # `pivot` sorts phrasings by name, and "totals" asks few scenarios in some wordings only.
        rated = rated.reindex(columns=wordings).loc[phrasings]
        shape = (len(phrasings), -1, len(wordings))
        arrays[group] = rated.to_numpy().reshape(shape)
    return arrays


def decimals(prompts: pd.DataFrame) -> pd.DataFrame:
    """Compute how many answers in words have a decimal, by group.

    Parameters
    ----------
    prompts : DataFrame
        The prompts of one call in free text, as `load` returns them.

    Returns
    -------
    DataFrame
        Index ``group``; the percentages of answers with ``a decimal`` and with ``a repeating one``
        (66.66), of the ``mean over names`` with a decimal, and the number of ``answers``.
    """
    rows = prompts[prompts.status == "ok"]
    repeats_a_digit = rows.reply.str.count(r"\d[.,](\d)\1") > 0
    has = pd.DataFrame({"a decimal": rows.rating % 1 > 0, "a repeating one": repeats_a_digit})
    table = has.groupby(rows.group, sort=False).mean()

    # The phrasings of one prompt are averaged, as a mean of names has decimals of its own.
    over_names = rows.groupby(["group", "scenario", "wording"], sort=False).rating.mean()
    mean_has = over_names.mod(1) > 0
    table["mean over names"] = mean_has.groupby("group", sort=False).mean()
    n_answers = rows.groupby("group").size()
    return (100 * table).assign(answers=n_answers)
