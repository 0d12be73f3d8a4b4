"""Stored answers of the study, read into arrays (perceiver, experiencer, event).

A block is one category in one setting: every perceiver with every experiencer and every event.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod

import numpy as np
import pandas as pd

from ingroup.inference import Job, parts, stored
from ingroup.inference.choices import agreement, beginnings, probabilities
from ingroup.inference.reading import Reading, ratings_from_scores, three_readings, ties
from ingroup.inference.store import Store
from ingroup.parsing import (
    CUT,
    FAILED,
    OK,
    REFUSED,
    UNPARSABLE,
    Ending,
    Parsed,
    Rule,
    ends_in_cut_number,
    final_status,
    parse_rating,
)
from ingroup.stats.paired import nan_mean
from ingroup.studies.empathy_gap import stimuli
from ingroup.synthesis import ways_to_read

BlockKey = tuple[str, str, str]  # model, setting and category of a block
MISSING = "missing"  # the trial was never answered
STATUSES = (OK, REFUSED, UNPARSABLE, CUT, FAILED, MISSING)


@dataclass(frozen=True, eq=False)
class Ratings:
    """Ratings of one block (perceiver, experiencer, event), and the status of each trial."""

    values: np.ndarray  # float, on the scale of the prompt; NaN where a rating is missing
    status: np.ndarray  # int8, position in `STATUSES`

    @property
    def counts(self) -> pd.Series:
        """Count the trials of each status.

        Returns
        -------
        Series
            A number for each of the six `STATUSES`. Their sum is ``values.size``.
        """
        trials = np.bincount(self.status.ravel(), minlength=len(STATUSES))
        return pd.Series(trials, STATUSES, name="trials")

    @property
    def rows(self) -> pd.DataFrame:
        """Lay the ratings out as rows, in the order of the design.

        Returns
        -------
        DataFrame
            ``rating`` and ``status`` (a categorical) of each trial.
        """
        status = pd.Categorical.from_codes(self.status.ravel(), STATUSES)
        return pd.DataFrame({"rating": self.values.ravel(), "status": status})


def load(job: Job, rule: Rule = "sound", reading: Reading | None = None) -> Ratings:
    """Load the stored ratings of one job, which asks about one category in one setting.

    Parameters
    ----------
    job : Job
        A job of :func:`~.design.jobs`.
    rule : {"sound", "released"}
        How free text is parsed, see `parse_parts`.
    reading : Reading, optional
        How scored answers are read, by default the job's own reading.

    Returns
    -------
    Ratings
        In the shape of the job's block: perceivers, experiencers, events.

    Raises
    ------
    StoreError
        Where no answers to these prompts are stored, or the reading needs more than is stored.
    """
    (block,) = job.design.blocks
    store = stored(job)
    if job.is_scored:
        return _from_scores(job, store, block.shape, reading or job.reading)

    setting = stimuli.setting(job.labels["setting"])
    texts = parts(store, columns=["text", "reasoning"])
    return parse_parts(texts, block.shape, setting.low, setting.high, rule)


def _from_scores(job: Job, store: Store, shape: tuple[int, ...], reading: Reading) -> Ratings:
    """Read the stored scored answers of a block into ratings of this shape."""
    values, status = _unanswered(shape)
    for part in parts(store, columns=[*reading.columns, "text", "reasoning"]):
        by_lead = ratings_from_scores(part, store, job.sampling, reading)
        # This study's answers have a single lead, the empty one.
        rated = by_lead[0]
        # A server's most probable tokens may hold no admissible answer.
        status_of_number = np.where(rated.isna(), UNPARSABLE, OK)
        final = final_status(part, status_of_number)

        trial = part["trial"]
        values[trial] = rated.where(final == OK)
        status[trial] = pd.Categorical(final, STATUSES).codes
    return Ratings(values.reshape(shape), status.reshape(shape))


def share_tied(jobs: Iterable[Job], ending: Ending) -> float:
    """Compute the share of greedy answers that a tie of two tokens decides.

    Parameters
    ----------
    jobs : iterable of Job
        Jobs with scored answers and their steps.
    ending : {"turn", "newline", "any"}
        The rule for the end of a number.

    Returns
    -------
    float
        From 0 to 1, see :meth:`ingroup.inference.choices.Tree.is_tied`.
    """
    tied = []
    for job in jobs:
        store = stored(job)
        for part in parts(store, columns=["steps"]):
            tied.append(ties(part, store, job.sampling, ending))
    return float(pd.concat(tied).mean())


def _unanswered(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return flat values (NaN) and statuses ("missing") of a block without an answer."""
    values = np.full(prod(shape), np.nan)
    status = np.full(prod(shape), STATUSES.index(MISSING), dtype=np.int8)
    return values, status


def by_block(jobs: Iterable[Job]) -> dict[BlockKey, list[Job]]:
    """Group jobs by model, setting and category.

    Parameters
    ----------
    jobs : iterable of Job
        Jobs of one run.

    Returns
    -------
    dict
        From (model, setting, category) to the jobs of this block, one per round, in the order
        given.
    """
    blocks = defaultdict(list)
    for job in jobs:
        # A key has model, setting and category, then the round where a block has several.
        key = job.key[:3]
        blocks[key].append(job)
    return dict(blocks)


def load_rounds(
    jobs: Sequence[Job], rule: Rule = "sound", reading: Reading | None = None
) -> Ratings:
    """Load the ratings of a block, averaged over its rounds as by `mean_of_rounds`.

    Parameters
    ----------
    jobs : sequence of Job
        The rounds of one block, an entry of `by_block`.
    rule : {"sound", "released"}
        As in `load`.
    reading : Reading, optional
        As in `load`.

    Returns
    -------
    Ratings
        The mean rating of each trial, and its status.

    Raises
    ------
    StoreError
        As `load`.
    """
    return mean_of_rounds([load(job, rule, reading) for job in jobs])


def load_texts(
    jobs: Iterable[Job], rule: Rule = "sound"
) -> tuple[dict[BlockKey, Ratings], dict[BlockKey, pd.Series]]:
    """Load the ratings in free text of all blocks, and count the replies of each status.

    Parameters
    ----------
    jobs : iterable of Job
        Jobs for free text, with stored answers.
    rule : {"sound", "released"}
        As in `load`.

    Returns
    -------
    ratings : dict of Ratings
        The mean ratings of each block over its rounds.
    counts : dict of Series
        How many replies of all its rounds have each status.

    Raises
    ------
    StoreError
        As `load`.
    """
    ratings = {}
    counts = {}
    for key, jobs_of_block in by_block(jobs).items():
        rounds = [load(job, rule) for job in jobs_of_block]
        ratings[key] = mean_of_rounds(rounds)
        counts[key] = sum(of_round.counts for of_round in rounds)
    return ratings, counts


def load_ratings(
    jobs: Iterable[Job],
    texts: Mapping[BlockKey, Ratings],
    rule: Rule = "sound",
) -> dict[BlockKey, Ratings]:
    """Load the ratings that the study analyses.

    Parameters
    ----------
    jobs : iterable of Job
        The jobs that are analysed (:func:`ingroup.inference.rated`), with stored answers.
    texts : mapping
        The ratings of the blocks in free text, from `load_texts`.
    rule : {"sound", "released"}
        As in `load`.

    Returns
    -------
    dict of Ratings
        By block: the scored answers if the block was scored, else the free text.

    Raises
    ------
    StoreError
        As `load`.
    """
    ratings = {}
    for key, jobs_of_block in by_block(jobs).items():
        # Texts are parsed already, and a scored block may have texts of some of its events, too.
        if jobs_of_block[0].is_scored:
            ratings[key] = load_rounds(jobs_of_block, rule)
        else:
            ratings[key] = texts[key]
    return ratings


def load_every_reading(
    jobs: Sequence[Job], free: Ratings | None = None
) -> dict[tuple[str, str], np.ndarray]:
    """Load the scored answers of a block under every reading that they allow.

    Parameters
    ----------
    jobs : sequence of Job
        The rounds of one scored block.
    free : Ratings, optional
        The ratings of the block in free text, if the block was asked for free text.

    Returns
    -------
    dict of ndarray
        Ratings by reading and ending: first ("free", ""), if there is free text, then the readings
        of :func:`ingroup.synthesis.ways_to_read`, for example ("greedy", "turn").

    Raises
    ------
    StoreError
        As `load`.
    """
    values = {}
    if free is not None:
        values["free", ""] = free.values
    for reading in ways_to_read(jobs).values():
        ratings = load_rounds(jobs, reading=reading)
        name = (reading.how, reading.ending)
        values[name] = ratings.values
    return values


def mean_of_rounds(rounds: Sequence[Ratings]) -> Ratings:
    """Average the ratings of each trial over the rounds that have a rating of the trial.

    The status is "ok" if any round has a rating, else the status of the first round. So an event
    is lost only where every round of a trial lacks a rating.

    Parameters
    ----------
    rounds : sequence of Ratings
        The ratings of a block in each round, all of one shape.

    Returns
    -------
    Ratings
        The means over the rounds, NaN where no round has a rating.
    """
    if len(rounds) == 1:
        return rounds[0]

    values = nan_mean([ratings.values for ratings in rounds])
    status = np.where(np.isnan(values), rounds[0].status, STATUSES.index(OK))
    return Ratings(values, status.astype(np.int8))


def parse_parts(
    tables: Iterable[pd.DataFrame],
    shape: tuple[int, ...],
    low: float,
    high: float,
    rule: Rule = "sound",
) -> Ratings:
    """Parse the responses of one block into arrays.

    Parameters
    ----------
    tables : iterable of DataFrame
        The parts of the block, one held at a time, in any order of parts and rows: ``trial`` (int,
        position within the block, C order), ``text`` (str, or categorical of str; null where the
        call failed), ``reasoning`` and ``finish_reason``.
    shape : tuple of int
        Perceivers, experiencers, events.
    low, high : float
        Ends of the scale. Under "released" a value may be 0 to 100 on any scale.
    rule : {"sound", "released"}
        As in :func:`ingroup.parsing.parse_rating`.

    Returns
    -------
    Ratings
        A trial without a row is "missing". The other statuses come from
        :func:`ingroup.parsing.final_status`; a number at which a reply was cut is not an answer.
        Checked against a loop over rows.
    """
    values, status = _unanswered(shape)

    # Many replies are equal, so each text is parsed once.
    @cache
    def parse(text: str) -> Parsed:
        return parse_rating(text, low, high, rule)

    for responses in tables:
        codes, texts = pd.factorize(responses["text"])
        parsed = [parse(text) for text in texts]
        # A failed call has no text, and its code -1 takes the last element.
        parsed.append(Parsed(np.nan, FAILED))
        rating_of_code = np.array([value for value, _ in parsed])
        status_of_code = np.array([status for _, status in parsed], dtype=object)

        status_of_text = status_of_code[codes]
        # These replies are at their limit, so `final_status` makes them "cut".
        is_cut = ends_in_cut_number(responses)
        status_of_text[is_cut] = UNPARSABLE
        final = final_status(responses, status_of_text)

        trial = responses["trial"].to_numpy()
        values[trial] = np.where(final == OK, rating_of_code[codes], np.nan)
        status[trial] = pd.Categorical(final, STATUSES).codes
    return Ratings(values.reshape(shape), status.reshape(shape))


def read_by_both_rules(jobs: Sequence[Job]) -> pd.DataFrame:
    """Read each different reply by both rules of parsing.

    Parameters
    ----------
    jobs : sequence of Job
        Jobs for free text, with stored answers.

    Returns
    -------
    DataFrame
        ``model``, ``text``, the number of ``replies``; the text's rating on a scale of 0 to 100 by
        the rules ``sound`` and ``released``; whether the two ratings ``differ``.
    """
    tables = []
    for job in jobs:
        for part in parts(stored(job), columns=["text"]):
            counts = part.text.astype(object).value_counts().reset_index(name="replies")
            tables.append(counts.assign(model=job.model))
    if not tables:
        # Without a job, the empty table still has the columns.
        tables = [pd.DataFrame(columns=["model", "text", "replies"])]

    # A reply may come in several parts and chats of a model.
    same_text = pd.concat(tables).groupby(["model", "text"], sort=False, as_index=False)
    texts = same_text.replies.sum()
    for rule in ("sound", "released"):
        texts[rule] = [parse_rating(text, 0, 100, rule).value for text in texts.text]

    # NaN differs from NaN, so replies that neither rule rates are set aside.
    is_rated = texts.sound.notna() | texts.released.notna()
    is_different = texts.sound != texts.released
    return texts.assign(differ=is_rated & is_different)


def free_beside_scored(scored: Job, free: Job, values: np.ndarray) -> dict[str, float]:
    """Compare the free text of a block with the scored answers to the same prompts.

    Parameters
    ----------
    scored : Job
        The scored block.
    free : Job
        The block in free text, about some of the same events.
    values : ndarray
        The ratings of the free text, in the shape of its block.

    Returns
    -------
    dict
        As :func:`ingroup.inference.choices.agreement` returns it.
    """
    store = stored(scored)
    tables = []
    for part in parts(store, columns=["probabilities", "steps", "mass"]):
        table = three_readings(part, store, scored.sampling)
        # A list of masses has one for each lead, here the only one.
        option_mass = part.mass.list[0].astype(float)
        tables.append(table.assign(option_mass=option_mass))
    every_answer = pd.concat(tables)

    scored_events = list(scored.design.blocks[0].factors["event"])
    free_events = free.design.blocks[0].factors["event"]
    shared = [scored_events.index(event) for event in free_events]
    # Events are the fastest factor, so a row of the matrix has the trials of a pair of identities.
    trials = np.arange(len(every_answer)).reshape(-1, len(scored_events))
    shared_trials = trials[:, shared].ravel()
    answers = every_answer.iloc[shared_trials]

    texts = stored(free).read(columns=["text"]).text
    # The scored answer with which each text begins, as a number.
    begun = pd.to_numeric(beginnings(texts, scored.sampling.choices))
    return agreement(
        values.ravel(),
        answers.most_probable,
        answers.option_mass,
        answers.greedy,
        answers.expected,
        begun,
    )


def mean_distribution(job: Job) -> pd.DataFrame:
    """Average the probability of each number of the scale over the prompts of a scored job.

    Parameters
    ----------
    job : Job
        A scored job, with stored answers.

    Returns
    -------
    DataFrame
        ``rating`` and ``probability``. The probabilities sum to 1.
    """
    choices = job.sampling.choices
    total = np.zeros(len(choices))
    for part in parts(stored(job), columns=["probabilities"]):
        by_lead = probabilities(part, choices)
        # This study's answers have a single lead, so this is (prompt, choice).
        of_prompts = by_lead[:, 0]
        # A failed call has NaN, which adds nothing.
        total += np.nansum(of_prompts, axis=0)

    # Each prompt adds 1, so the sum is the number of prompts that did not fail.
    mean = total / total.sum()
    return pd.DataFrame({"rating": list(map(int, choices)), "probability": mean})
