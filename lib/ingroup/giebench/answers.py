"""From questions to a verdict for each prompt: what is asked, and one long table of answers."""

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
import pandas as pd

from ingroup import ratings
from ingroup.giebench import stimuli
from ingroup.giebench.verdicts import parse_verdict
from ingroup.inference import parameters as shared
from ingroup.inference.design import Block, Design
from ingroup.inference.jobs import Job, answers
from ingroup.parsing import FAILED, MISSING, without_loop
from ingroup.tables import InputError

VERDICTS = tuple(f"[[{letter}]]" for letter in stimuli.LETTERS)
TRIAL = ["key", "category", "identity", "told", "shift", "correct"]


class Parameters(shared.Parameters):
    """The parameters of notebook 30."""

    QUESTIONS: str = "sample"
    ORDER: Literal["given", "rotate"] = "rotate"
    WORDING: Literal["uncued", "straight", "paper", "released"] = "uncued"
    MISMATCH: bool = True
    MAX_TOKENS: shared.Count = 512


def trials(items: pd.DataFrame, order: str = "rotate") -> pd.DataFrame:
    """List what is asked under one prompt.

    Parameters
    ----------
    items : DataFrame
        From `stimuli.load_questions`.
    order : {"rotate", "given", "mismatch"}
        "rotate" asks each question four times, so that its right answer stands once at A, B, C and
        D. "given" asks it once, as the paper does. "mismatch" asks it once with each other identity
        that its own makes a pair with (section 4.2).

    Returns
    -------
    DataFrame
        The columns `TRIAL`: the question's ``key``, ``category`` and ``identity``; the identity
        that the prompt names, ``told``; by how many places the answers moved down, ``shift``; and
        the letter of the right answer then, ``correct``.
    """
    rows = items.reset_index()
    if order == "mismatch":
        pairs = stimuli.pairs().groupby("identity_tuple", sort=False)
        tables = [rows.merge(pair, on="identity").assign(shift=0) for _, pair in pairs]
    else:
        n_orders = 4 if order == "rotate" else 1
        tables = [rows.assign(told=rows.identity, shift=shift) for shift in range(n_orders)]

    table = pd.concat(tables, ignore_index=True)
    place = table.correct.map(stimuli.LETTERS.index) + table["shift"]
    table["correct"] = np.take(stimuli.LETTERS, place % 4)
    return table[TRIAL]


def design(
    items: pd.DataFrame, prompt: str, order: str = "rotate", wording: str = "uncued"
) -> Design:
    """Ask questions under one prompt.

    Parameters
    ----------
    items : DataFrame
        From `stimuli.load_questions`.
    prompt, wording : str
        As in `stimuli.chat`.
    order : str
        As in `trials`.

    Returns
    -------
    Design
        One block with the factor ``trial``, the rows of `trials` as dicts.
    """
    by_key = items.to_dict("index")

    def render(condition):
        trial = condition["trial"]
        item = by_key[trial["key"]]
        return stimuli.chat(item, prompt, wording, trial["told"], trial["shift"])

    asked = trials(items, order).to_dict("records")
    return Design([Block({"prompt": prompt}, {"trial": asked}, render)])


def jobs(parameters: Parameters) -> list[Job]:
    """List what the paper's numbers rest on: each model under each prompt, and the mismatches.

    Parameters
    ----------
    parameters : Parameters
        The run's parameters.

    Returns
    -------
    list of Job
        Scored, or free text where the model's reading is "free".
    """
    items = stimuli.load_questions(parameters.QUESTIONS)
    planned = [(prompt, parameters.ORDER) for prompt in stimuli.PROMPTS]
    has_pair = items.identity.isin(stimuli.pairs().identity)
    if parameters.MISMATCH and has_pair.any():
        planned += [("COT", "mismatch"), ("ID", "mismatch")]

    written = parameters.sampling
    scored = replace(written, choices=VERDICTS)
    listed = []
    for model in parameters.models:
        sampling = written if model.reading == "free" else scored
        listed += _of_model(model, items, planned, parameters.WORDING, sampling)
    return listed


def written(parameters: Parameters) -> list[Job]:
    """List the free text that scored models are asked for, about a fixed random tenth of questions.

    Parameters
    ----------
    parameters : Parameters
        The run's parameters.

    Returns
    -------
    list of Job
        One for each model and prompt.
    """
    items = stimuli.load_questions(parameters.QUESTIONS)
    n = math.ceil(len(items) / 10)
    drawn = items.sample(n, random_state=np.random.default_rng(0))
    tenth = items[items.index.isin(drawn.index)]

    planned = [(prompt, parameters.ORDER) for prompt in stimuli.PROMPTS]
    listed = []
    for model in parameters.models:
        if model.reading != "free":
            listed += _of_model(model, tenth, planned, parameters.WORDING, parameters.sampling)
    return listed


def _of_model(model, items, planned, wording, sampling):
    """List the jobs of one model, one for each prompt and order that are planned."""
    listed = []
    for prompt, order in planned:
        job = Job(
            study="giebench",
            part=f"{prompt}-{order}",
            model=model,
            design=design(items, prompt, order, wording),
            sampling=sampling,
            labels={"prompt": prompt, "order": order},
        )
        listed.append(job)
    return listed


def load(jobs: Iterable[Job], parsing: str = "sound") -> pd.DataFrame:
    """Read the answers to jobs into one long table.

    Parameters
    ----------
    jobs : iterable of Job
        From `jobs` or `written`.
    parsing : {"sound", "released"}
        How a verdict is read from a text (`verdicts.parse_verdict`).

    Returns
    -------
    DataFrame
        One row per trial: ``model``, ``prompt``, ``reading`` ("greedy" if scored, or "free"),
        `TRIAL`, ``letter`` ("" without a verdict), ``status`` ("ok", or why there is none) and
        ``text``. ``right`` is 1 or 0; a reply without a verdict is 0, as in the paper, but a
        failed or missing answer is NaN. ``p_right`` is the probability of the right letter
        among the four. ``option_mass`` is the probability that the unconstrained model begins its
        reply as a verdict begins. Both are NaN for free text.
    """
    table = pd.concat([_read(job, parsing) for job in jobs], ignore_index=True)
    is_right = table.letter == table.correct
    is_given = ~table.status.isin([FAILED, MISSING])
    table["right"] = is_right.astype(float).where(is_given)
    return table


def _read(job, parsing):
    """Read the answers to one job, beside what was asked."""
    (block,) = job.design.blocks
    trials = pd.DataFrame(block.factors["trial"])
    asked = trials.assign(model=job.model.name, prompt=job.labels["prompt"])
    if not job.sampling.choices:
        replies = answers(job, ["text"])
        parse = partial(parse_verdict, rule=parsing)
        read = ratings.read_answers(replies, parse, _parse_cut if parsing == "sound" else None)
        return asked.assign(
            reading="free",
            letter=read["value"].fillna(""),
            status=read.status,
            text=replies.text.astype(object),
            p_right=np.nan,
            option_mass=np.nan,
        )

    replies = answers(job, ["text", "probabilities", "option_mass"])
    letters = ratings.greedy_choices(replies, job.sampling)[0]
    by_letter = ratings.matrix(replies.probabilities, len(VERDICTS))
    position = asked.correct.map(stimuli.LETTERS.index)
    of_right = by_letter[asked.index, position]
    return asked.assign(
        reading="greedy",
        letter=letters.str.strip("[]").fillna(""),
        status=ratings.statuses(replies, letters),
        text=replies.text.astype(object),
        # Stored probabilities have three digits, so they are renormalised.
        p_right=of_right / by_letter.sum(axis=1),
        option_mass=ratings.matrix(replies.option_mass, 1)[:, 0],
    )


def _parse_cut(text):
    """Read the verdict before the text starts to repeat itself."""
    return parse_verdict(without_loop(text))


def complete(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Keep the models that answered under all three prompts, which are to be compared.

    Raises
    ------
    InputError
        No model did.
    """
    answered = verdicts.dropna(subset="right")
    n_prompts = answered.groupby("model").prompt.nunique()
    is_complete = verdicts.model.map(n_prompts) == len(stimuli.PROMPTS)
    if not is_complete.any():
        raise InputError("MODELS: found no model with answers under Raw, ID and COT, expected one")
    return verdicts[is_complete]
