"""From questions to a verdict for each prompt: what is asked, and one long table of answers."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from ingroup.giebench import stimuli
from ingroup.giebench.verdicts import parse_verdict
from ingroup.inference import parameters as shared
from ingroup.inference import scoring
from ingroup.inference.design import Block, Design
from ingroup.inference.jobs import Job, answers
from ingroup.parsing import FAILED, MISSING, read_answers, without_loop
from ingroup.tables import InputError

VERDICTS = tuple(f"[[{letter}]]" for letter in stimuli.LETTERS)
TRIAL = ["key", "category", "identity", "told", "shift", "correct"]


class Parameters(shared.Parameters):
    """The parameters of notebook 30."""

    QUESTIONS: str = "sample"
    ORDER: Literal["given", "rotate"] = "rotate"
    WORDING: Literal["uncued", "straight", "paper", "released"] = "uncued"
    MISMATCH: bool = True
    DENOMINATOR: Literal["paper", "released"] = "paper"
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
        pairs = pairs_of(items)[stimuli.SIDES]
        tables = [_with_other(rows, pair) for pair in pairs.to_numpy()]
    else:
        shifts = range(4 if order == "rotate" else 1)
        tables = [rows.assign(shift=shift, told=rows.identity) for shift in shifts]

    table = pd.concat(tables, ignore_index=True)
    correct = zip(table.correct, table["shift"], strict=True)
    table["correct"] = [stimuli.right_letter(letter, shift) for letter, shift in correct]
    return table[TRIAL]


def _with_other(rows, pair):
    """Select the questions of both identities of a pair, each told the other one."""
    one, other = pair
    of_pair = rows[rows.identity.isin(pair)]
    told = of_pair.identity.map({one: other, other: one})
    return of_pair.assign(shift=0, told=told)


def pairs_of(items: pd.DataFrame) -> pd.DataFrame:
    """Select the pairs of identities (`stimuli.pairs`) of which both have questions."""
    pairs = stimuli.pairs()
    is_asked = pairs[stimuli.SIDES].isin(set(items.identity))
    return pairs[is_asked.all(axis=1)]


def tenth(items: pd.DataFrame) -> pd.DataFrame:
    """Choose a fixed random tenth of the questions, rounded up, in their order."""
    n = -(-len(items) // 10)
    rows = np.random.default_rng(0).choice(len(items), n, replace=False)
    return items.iloc[sorted(rows)]


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

    def render(condition: Mapping[str, Any]) -> list[dict[str, str]]:
        trial = condition["trial"]
        told = trial["told"]
        identity = "" if told == trial["identity"] else told
        item = by_key[trial["key"]]
        return stimuli.chat(item, prompt, wording, identity, trial["shift"])

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
    if parameters.MISMATCH and len(pairs_of(items)):
        planned += [("COT", "mismatch"), ("ID", "mismatch")]

    written = parameters.sampling
    scored = replace(written, choices=VERDICTS)
    listed = []
    for model in parameters.models:
        sampling = written if model.reading == "free" else scored
        for prompt, order in planned:
            listed.append(_job(parameters, model, items, prompt, order, sampling))
    return listed


def written(parameters: Parameters) -> list[Job]:
    """List the free text that scored models are asked for, about a tenth of the questions.

    Parameters
    ----------
    parameters : Parameters
        The run's parameters.

    Returns
    -------
    list of Job
        One for each model and prompt.
    """
    items = tenth(stimuli.load_questions(parameters.QUESTIONS))
    order = parameters.ORDER
    sampling = parameters.sampling
    listed = []
    for model in parameters.models:
        if model.reading != "free":
            for prompt in stimuli.PROMPTS:
                listed.append(_job(parameters, model, items, prompt, order, sampling))
    return listed


def _job(parameters, model, items, prompt, order, sampling):
    """Make the job of one model and prompt, with a part that is named as its recording."""
    wording = parameters.WORDING
    part = f"{prompt}-{order}"
    # A recording is shared by all wordings that leave its prompt as it is.
    if stimuli.template(prompt, wording) != stimuli.template(prompt, "straight"):
        part = f"{part}+{wording}"

    return Job(
        study="giebench",
        part=part,
        model=model,
        design=design(items, prompt, order, wording),
        sampling=sampling,
        labels={"prompt": prompt, "order": order},
    )


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
        failed or missing answer is NaN. For scored answers, ``p_right`` is the probability of the
        right letter among the four, and ``option_mass`` the probability that the unconstrained
        model begins its reply as a verdict begins; else they are NaN.
    """
    tables = []
    for job in jobs:
        (block,) = job.design.blocks
        asked = pd.DataFrame(block.factors["trial"])
        is_scored = bool(job.sampling.choices)
        read = _scored(job, asked.correct) if is_scored else _free(job, parsing)

        table = asked.join(read)
        is_given = ~table.status.isin([FAILED, MISSING])
        is_right = table.letter == table.correct
        table["right"] = is_right.astype(float).where(is_given)
        table["reading"] = "greedy" if is_scored else "free"
        table["prompt"] = job.labels["prompt"]
        table["model"] = job.model.name
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _scored(job, correct):
    """Read scored answers: the greedy letter, and the probability of the right one."""
    replies = answers(job, ["text", "probabilities", "option_mass"])
    letters = scoring.greedy_choices(replies, job.sampling)[0]

    by_letter = scoring.matrix(replies.probabilities, len(VERDICTS))
    position = correct.map(stimuli.LETTERS.index)
    of_right = by_letter[replies.index, position]
    columns = {
        "letter": letters.str.strip("[]").fillna(""),
        "status": scoring.statuses(replies),
        "text": replies.text.astype(object),
        # Stored probabilities have three digits, so they are renormalised.
        "p_right": of_right / by_letter.sum(axis=1),
        "option_mass": scoring.matrix(replies.option_mass, 1)[:, 0],
    }
    return pd.DataFrame(columns)


def _free(job, parsing):
    """Read the verdicts of free texts; how a reply ended can be why it has none."""

    def parse(text):
        return parse_verdict(text, parsing)

    def parse_cut(text):
        """Read what stands before a loop, which states no verdict."""
        return parse_verdict(without_loop(text))

    replies = answers(job, ["text"])
    read = read_answers(replies, parse, parse_cut if parsing == "sound" else None)
    columns = {
        "letter": read["value"].fillna(""),
        "status": read.status,
        "text": replies.text.astype(object),
        "p_right": np.nan,
        "option_mass": np.nan,
    }
    return pd.DataFrame(columns)


def complete(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Keep the models that answered under all three prompts, which are to be compared.

    Raises
    ------
    InputError
        No model did.
    """
    answered = verdicts.dropna(subset="right")
    n_prompts = answered.groupby("model").prompt.nunique()
    models = n_prompts.index[n_prompts == len(stimuli.PROMPTS)]
    if models.empty:
        raise InputError("MODELS: found no model with answers under Raw, ID and COT, expected one")
    return verdicts[verdicts.model.isin(models)]
