"""Answers of StereoMap: the ratings, keywords and reasons of each reply, one row per reply."""

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ingroup.inference import Job, rated, stored
from ingroup.inference.choices import lists_to_array, probabilities
from ingroup.inference.engine import FILTERED, LENGTH
from ingroup.inference.reading import Reading, ratings_from_scores
from ingroup.models import is_calibrant
from ingroup.parsing import OK, UNPARSABLE, Rule, final_status
from ingroup.studies.stereomap import stimuli
from ingroup.studies.stereomap.design import FIRST_PROMPT, GroupPrompt
from ingroup.studies.stereomap.keyword_lists import Keywords, parse_keywords
from ingroup.studies.stereomap.rating_lists import Ratings, parse_ratings

_NO_KEYWORDS = Keywords((), (), "")


def load(job: Job, rule: Rule = "sound", reading: Reading | None = None) -> pd.DataFrame:
    """Read the replies to one job of `design.jobs`, in the design's order.

    Parameters
    ----------
    job : Job
        Its answers must be stored.
    rule : {"sound", "released"}
        How free text is read, see `parse_ratings`.
    reading : Reading, optional
        How scored answers are read, by default as the job says. They have no keywords.

    Returns
    -------
    DataFrame
        ``model``, the job's labels, ``group``, ``prompt`` (without version), ``part``, ``reply``,
        ``status``, ``values`` (word to rating, NaN without), ``keywords`` and ``reasons`` (tuples),
        and ``list``, the keywords' status ("" where none are asked).

    Raises
    ------
    StoreError
        There are no stored answers.
    """
    (block,) = job.design.blocks
    group_prompts = block.factors["inquiry"]
    store = stored(job)
    table = store.read()
    is_filtered = table.finish_reason == FILTERED
    # A reply that a content filter cut off is no answer.
    texts = table.text.astype(object).mask(is_filtered, "")

    ablation = job.labels["ablation"]
    if job.is_scored:
        scores = ratings_from_scores(table, store, job.sampling, reading or job.reading)
        parsed = _read_scores(scores.to_numpy(), group_prompts, ablation)
    else:
        whole_words = _without_cut_word(texts, table.finish_reason == LENGTH)
        parsed = _read_texts(whole_words, group_prompts, ablation, rule)

    rows = []
    for group_prompt, text, (ratings, keywords) in zip(group_prompts, texts, parsed, strict=True):
        row = {
            "model": job.model,
            **job.labels,
            "group": group_prompt.group,
            "prompt": group_prompt.prompt.split("/")[1],
            "part": group_prompt.part,
            "reply": text,
            # A part that asks for keywords alone has no status of ratings.
            "status": ratings.status or keywords.status,
            "values": ratings.values,
            "keywords": keywords.words,
            "reasons": keywords.reasons,
            "list": keywords.status,
        }
        rows.append(row)
    replies = pd.DataFrame(rows)

    # Where no list is asked, the status stays "" with any ending.
    has_list = replies.list != ""
    replies["status"] = final_status(table, replies.status)
    replies["list"] = np.where(has_list, final_status(table, replies.list), "")
    return replies


def load_jobs(jobs: Sequence[Job], rule: Rule = "sound") -> pd.DataFrame:
    """Read the replies to several jobs into one table.

    Parameters
    ----------
    jobs : sequence of Job
        Their answers must be stored.
    rule : {"sound", "released"}
        As in `load`.

    Returns
    -------
    DataFrame
        The columns of `load`; ``mode``, "scored" or "free text"; ``is_rated``, whether the
        study takes its ratings from the reply (:func:`ingroup.inference.rated`); and the
        ``construct`` of the prompt.
    """
    rated_jobs = set(rated(jobs))
    tables = []
    for job in jobs:
        replies = load(job, rule)

        constructs = stimuli.constructs(job.labels["version"])
        table = replies.assign(
            mode=job.mode,
            is_rated=job in rated_jobs,
            construct=replies.prompt.map(constructs),
        )
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _without_cut_word(texts: pd.Series, at_limit: pd.Series) -> pd.Series:
    """Remove the last word of each cut text, which may be half a number or half a keyword."""
    whole_words = texts.copy()
    whole_words[at_limit] = texts[at_limit].str.replace(r"\S+\Z", "", regex=True)
    return whole_words


def _read_scores(
    scores: NDArray, group_prompts: Sequence[GroupPrompt], ablation: str
) -> list[tuple[Ratings, Keywords]]:
    """Turn scored answers (reply, word) into ratings, without keywords.

    A reply with a NaN is unparsable.
    """
    parsed = []
    for group_prompt, score in zip(group_prompts, scores, strict=True):
        words = stimuli.expected_prompt(group_prompt.prompt, group_prompt.part, ablation).words
        values = dict(zip(words, score.tolist(), strict=True))
        # A server may tell no admissible answer among its most probable tokens.
        status = UNPARSABLE if np.isnan(score).any() else OK
        parsed.append((Ratings(values, status, {}), _NO_KEYWORDS))
    return parsed


def _read_texts(
    texts: pd.Series, group_prompts: Sequence[GroupPrompt], ablation: str, rule: Rule
) -> list[tuple[Ratings, Keywords]]:
    """Read the ratings and keywords that each text was asked for."""
    parsed = []
    for group_prompt, text in zip(group_prompts, texts, strict=True):
        expected = stimuli.expected_prompt(group_prompt.prompt, group_prompt.part, ablation)
        ratings = Ratings({}, "", {})
        keywords = _NO_KEYWORDS
        if expected.words:
            ratings = parse_ratings(text, expected.words, rule)
        if expected.n_keywords:
            keywords = parse_keywords(text, expected.n_keywords)
        parsed.append((ratings, keywords))
    return parsed


def missing_counts(replies: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Count the words without a rating, and the lists of keywords that are too short.

    Parameters
    ----------
    replies : DataFrame
        Replies, as `load_jobs` returns them.
    by : sequence of str
        The columns to count by.

    Returns
    -------
    DataFrame
        Index `by`; the numbers of ``replies`` that are not refused, cut or failed, of ``words
        without a rating`` in them, of ``lists asked``, and of ``lists too short or none``.
    """
    has_no_answer = replies.status.isin(["refused", "cut", "failed"])
    answered = replies[~has_no_answer]
    n_missing = []
    for values in answered["values"]:
        is_missing = map(np.isnan, values.values())
        n_missing.append(sum(is_missing))

    counts = answered[list(by)].assign(replies=1)
    counts["words without a rating"] = n_missing
    counts["lists asked"] = answered.list != ""
    is_short = answered.list.isin(["too few", "unparsable", "refused", "cut"])
    counts["lists too short or none"] = is_short
    return counts.groupby(list(by), sort=False).sum()


def rating_probabilities(job: Job) -> pd.DataFrame:
    """Read how probable each admissible rating of each word is, for a scored job.

    Parameters
    ----------
    job : Job
        Its answers must be stored.

    Returns
    -------
    DataFrame
        One row per word that is asked for. Index ``group``, ``prompt`` (without version), ``word``;
        a column for each number of the scale, which sum to 1; ``most_probable``, the most
        probable of them; and ``option_mass``, the probability that the unconstrained model gives to
        first tokens of admissible answers. NaN where the call failed.
    """
    (block,) = job.design.blocks
    index = []
    for group_prompt in block.factors["inquiry"]:
        prompt = group_prompt.prompt.split("/")[1]
        expected = stimuli.expected_prompt(group_prompt.prompt, "", job.labels["ablation"])
        for word in expected.words:
            index.append((group_prompt.group, prompt, word))

    table = stored(job).read()
    choices = job.sampling.choices
    n_words = len(job.sampling.leads)
    by_reply = probabilities(table, choices, n_words)
    # The array is (reply, word, choice). The table has one row per reply and word, which is the
    # order of `index`.
    wide = pd.DataFrame(
        by_reply.reshape(len(index), -1),
        index=pd.MultiIndex.from_tuples(index, names=["group", "prompt", "word"]),
        columns=[float(choice) for choice in choices],
    )

    answered = wide.notna().all(axis=1)
    # idxmax fails on a row of NaN, so it gets zeros here and is masked below.
    most_probable = wide.fillna(0).idxmax(axis=1)
    return wide.assign(
        most_probable=most_probable.where(answered),
        option_mass=lists_to_array(table.mass, n_words).ravel(),
    )


def loaded_calibrants(jobs: Sequence[Job]) -> list[Job]:
    """Select the jobs of calibrants whose weights a run loads, so that they can be asked again.

    Parameters
    ----------
    jobs : sequence of Job
        Jobs of any models.

    Returns
    -------
    list of Job
        In their order; none if the answers of the calibrants are only read.
    """
    selected = []
    for job in jobs:
        if is_calibrant(job.model) and job.engine in ("transformers", "vllm"):
            selected.append(job)
    return selected


def read_reply(text: str, group: str, rule: Rule = "sound") -> pd.DataFrame:
    """Read one reply to the first prompt, outside a run.

    Parameters
    ----------
    text : str
        The reply.
    group : str
        The group that it is about.
    rule : {"sound", "released"}
        As in `load`.

    Returns
    -------
    DataFrame
        One row with ``group``, ``round`` (1), ``prompt`` and ``values``, as of `load`.
    """
    words = stimuli.prompts("EXTENDED")[FIRST_PROMPT].words
    ratings = parse_ratings(text, words, rule)
    row = {
        "group": group,
        "round": 1,
        "prompt": FIRST_PROMPT.split("/")[1],
        "values": ratings.values,
    }
    return pd.DataFrame([row])


def rating_table(replies: pd.DataFrame) -> pd.DataFrame:
    """Lay out the ratings of one model and version, one row per group and round.

    Parameters
    ----------
    replies : DataFrame
        Replies of one model and version, as `load` returns them.

    Returns
    -------
    DataFrame
        ``group``, ``round`` and a column for each word, NaN where there is no rating. "Overall" is
        the rating of the first prompt that has no word.
    """
    cells: dict[tuple[str, int], dict[str, float]] = {}
    for reply in replies.itertuples():
        ratings = cells.setdefault((reply.group, reply.round), {})
        for word, rating in reply.values.items():
            column = word
            if word == "Rating":
                column = "Overall" if reply.prompt == "Warmth-Competence" else reply.prompt
            ratings[column] = rating

    # Keys of two parts become an index of two levels.
    table = pd.DataFrame.from_dict(cells, orient="index")
    return table.rename_axis(["group", "round"]).reset_index()


def rating_tables(replies: pd.DataFrame) -> dict[tuple[str, str], pd.DataFrame]:
    """Lay out the ratings of each model and version.

    Parameters
    ----------
    replies : DataFrame
        Replies, as `load_jobs` returns them.

    Returns
    -------
    dict of DataFrame
        The `rating_table` of each ``(model, version)``.
    """
    tables = {}
    for key, rows in replies.groupby(["model", "version"], sort=False):
        tables[key] = rating_table(rows)
    return tables


def first_rows(tables: Mapping[tuple[str, str], pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Select the first two rows and ten columns of tables, to show their layout.

    Parameters
    ----------
    tables : mapping
        From `rating_tables`.

    Returns
    -------
    dict of DataFrame
        One table per version, with the model as its index. The versions have other words, so one
        table cannot hold both.
    """
    heads: dict[str, dict[str, pd.DataFrame]] = {}
    for (model, version), table in tables.items():
        heads.setdefault(version, {})[model] = table.head(2)

    shown = {}
    for version, by_model in heads.items():
        # The second level numbers the rows of each table.
        table = pd.concat(by_model).droplevel(1)
        shown[version] = table.iloc[:, :10]
    return shown


def remarks(replies: pd.DataFrame) -> pd.DataFrame:
    """Extract the text of replies to the first prompt, without their ratings.

    Parameters
    ----------
    replies : DataFrame
        Replies to the first prompt of one model, as `load` returns them.

    Returns
    -------
    DataFrame
        ``group``, ``round`` and ``text``, the parts of a round joined. Texts without a word are
        left out.
    """
    words = stimuli.prompts("EXTENDED")[FIRST_PROMPT].words
    any_word = "|".join(map(re.escape, words))
    # Lines such as "- Friendly: 4", and rows of a table, say nothing besides a rating.
    rated_line = re.compile(rf"(?im)^[ \-*|]*(?:{any_word})(?:[ *|]*:.*|[ \-*|]*)$")

    texts = replies.reply.str.replace(rated_line, "", regex=True)
    by_round = replies.assign(text=texts).groupby(["group", "round"], sort=False)
    joined = by_round.text.agg("\n".join).reset_index()
    has_word = joined.text.str.contains(r"\w")
    return joined[has_word]


def examples(replies: pd.DataFrame) -> pd.DataFrame:
    """Pick some replies of each model to read, replies without an answer first.

    Parameters
    ----------
    replies : DataFrame
        Replies in free text, as `load` returns them.

    Returns
    -------
    DataFrame
        Up to two replies of each model that are not "ok", then up to four that are, evenly spread.
    """
    picked = [replies.head(0)]
    for _, of_model in replies.groupby("model", sort=False):
        is_ok = of_model.status == "ok"
        without_answer = of_model[~is_ok].head(2)
        answered = of_model[is_ok]
        # The step is so large that at most four are left.
        step = len(answered) // 4 + 1
        picked += [without_answer, answered.iloc[::step]]
    return pd.concat(picked)
