"""Answers of StereoMap: responses to ratings, keywords and reasons, one row a reply."""

import re

import numpy as np
import pandas as pd

from ingroup.inference import Call, stored
from ingroup.inference.choices import probabilities
from ingroup.inference.engine import FILTERED, LENGTH
from ingroup.inference.reading import Reading, numbers
from ingroup.parsing import OK, UNPARSABLE, Rule, final_status
from ingroup.studies.stereomap import stimuli
from ingroup.studies.stereomap.design import FIRST
from ingroup.studies.stereomap.keyword_lists import Keywords, parse_keywords
from ingroup.studies.stereomap.rating_lists import Ratings, parse_ratings


def load(call: Call, rule: Rule = "sound", reading: Reading | None = None) -> pd.DataFrame:
    """The replies to one call of `design.calls`, and what each holds, in the design's order.

    Scored answers are read as the `reading` says, else as the call does, and have no keywords;
    `rule` is as of `parse_ratings`.

    ``model``, the call's labels, ``group``, ``prompt`` (without version), ``part``, ``reply``,
    ``status``, ``values`` (word to rating, NaN without), ``keywords`` and ``reasons`` (tuples), and
    ``list``, the keywords' status ("" where none are asked). StoreError without stored answers.
    """
    (block,) = call.design.blocks
    store = stored(call)
    table = store.read()
    rows = []
    scores = [None] * len(table)
    if call.over_choices:
        scores = numbers(table, store, call.sampling, reading or call.reading).to_numpy()
    filtered = table.finish_reason == FILTERED
    at_limit = table.finish_reason == LENGTH
    texts = table.text.astype(object).mask(filtered, "")  # half a reply is no answer
    # The last word of a cut reply may be half a number or half a keyword.
    whole_words = texts.copy()
    whole_words[at_limit] = texts[at_limit].str.replace(r"\S+\Z", "", regex=True)
    told = block.factors["inquiry"], texts, whole_words, scores
    for asked, reply, text, score in zip(*told, strict=True):
        about = stimuli.expected(asked.prompt, asked.part, call.labels["ablation"])
        words, n = about.words, about.n_keywords
        rated, listed = Ratings({}, "", {}), Keywords((), (), "")
        if score is not None:
            n = 0
            # A server may tell no admissible answer among its most probable tokens.
            scored = UNPARSABLE if np.isnan(score).any() else OK
            rated = Ratings(dict(zip(words, score.tolist(), strict=True)), scored, {})
        elif words:
            rated = parse_ratings(text, words, rule)
        if n:
            listed = parse_keywords(text, n)
        status = rated.status or listed.status
        told = asked.group, asked.prompt.split("/")[1], asked.part, reply, status, rated.values
        rows.append((call.model, *call.labels.values(), *told, *listed))
    columns = "group prompt part reply status values keywords reasons list"
    replies = pd.DataFrame(rows, columns=["model", *call.labels, *columns.split()])

    has_list = replies["list"] != ""
    replies["status"] = final_status(table, replies["status"])
    replies["list"] = np.where(has_list, final_status(table, replies["list"]), "")
    return replies


def weighed(call: Call) -> pd.DataFrame:
    """How probable each admissible rating is, a row a word that a call over choices asks for.

    Index ``group``, ``prompt`` (without version), ``word``; a column a number of the scale, which
    sum to 1, ``chosen``, the most probable of them, and ``mass``, what the unconstrained model
    gives to first tokens of admissible answers. NaN where the call failed.
    """
    (block,), table, choices = call.design.blocks, stored(call).read(), call.sampling.choices
    found = probabilities(table, choices, len(call.sampling.leads))
    index = [
        (asked.group, asked.prompt.split("/")[1], word)
        for asked in block.factors["inquiry"]
        for word in stimuli.expected(asked.prompt, "", call.labels["ablation"]).words
    ]
    index = pd.MultiIndex.from_tuples(index, names=["group", "prompt", "word"])
    wide = pd.DataFrame(found.reshape(len(index), -1), index, [float(one) for one in choices])
    chosen = wide.fillna(0).idxmax(axis=1).where(wide.notna().all(axis=1))
    none = [np.nan] * found.shape[1]  # of a failed call
    mass = [one for own in table.mass for one in (none if len(own) == 0 else own)]
    return wide.assign(chosen=chosen, mass=np.array(mass, float))


def rating_table(replies: pd.DataFrame) -> pd.DataFrame:
    """Ratings of replies of one model and version: ``group``, ``round``, a column a word.

    NaN where there is no rating; "Overall" is the rating of the first prompt that has no word.
    """
    cells: dict[tuple[str, int], dict[str, float]] = {}
    for row in replies.itertuples():
        name = "Overall" if row.prompt == "Warmth-Competence" else row.prompt
        own = {name if word == "Rating" else word: v for word, v in row.values.items()}
        cells.setdefault((row.group, row.round), {}).update(own)
    table = pd.DataFrame.from_dict(cells, orient="index")
    return table.rename_axis(["group", "round"]).reset_index()


def spoken(replies: pd.DataFrame) -> pd.DataFrame:
    """What replies to the first prompt say besides its ratings: ``group``, ``round``, ``text``.

    Parts are joined; texts that have no word are left out.
    """
    words = "|".join(map(re.escape, stimuli.prompts("EXTENDED")[FIRST].words))
    rated = re.compile(rf"(?im)^[ \-*|]*(?:{words})(?:[ *|]*:.*|[ \-*|]*)$")
    told = replies.assign(text=replies.reply.str.replace(rated, "", regex=True))
    told = told.groupby(["group", "round"], sort=False).text.agg("\n".join).reset_index()
    return told[told.text.str.contains(r"\w")]
