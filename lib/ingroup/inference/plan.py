"""The plan of a run: prompts, tokens and price of what is still to be asked."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from ingroup.inference.generate import Budget
from ingroup.inference.jobs import Job, n_left
from ingroup.inference.parameters import Parameters

SAMPLE_SIZE = 200  # trials of a job that are measured
CHARACTERS_PER_TOKEN = 4  # of English text


def plan(jobs: Iterable[Job], parameters: Parameters, factor: float = 1.0) -> pd.DataFrame:
    """Estimate what a run will ask. No engine is needed.

    Parameters
    ----------
    jobs : iterable of Job
        The jobs of the run.
    parameters : Parameters
        The run's parameters, for the prices.
    factor : float
        How many times the jobs' prompts the run has, where a corpus was not fetched and the jobs
        have its sample (`corpora.factor`).

    Returns
    -------
    DataFrame
        One row for each job: ``prompts``, how many are ``left``, and of those ``prompt_tokens``
        (four characters each), at most ``reply_tokens``, and the highest ``price`` in the currency
        of PRICE_IN and PRICE_OUT.
    """
    budget = Budget(price_in=parameters.PRICE_IN, price_out=parameters.PRICE_OUT)
    rng = np.random.default_rng(0)
    rows = {}
    for job in jobs:
        n_trials = len(job.design)
        drawn = rng.choice(n_trials, min(SAMPLE_SIZE, n_trials), replace=False)
        lengths = []
        for chat in job.design.chats(drawn.tolist()):
            lengths.append(sum(len(turn["content"]) for turn in chat))

        left = n_left(job, set(job.recorded().trial)) * factor
        prompt_tokens = left * np.mean(lengths) / CHARACTERS_PER_TOKEN
        reply_tokens = left * (1 if job.sampling.choices else job.sampling.max_tokens)
        rows[job.title, job.name] = {
            "prompts": round(n_trials * factor),
            "left": round(left),
            "prompt_tokens": round(prompt_tokens),
            "reply_tokens": round(reply_tokens),
            "price": budget.price(prompt_tokens, reply_tokens),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["model", "job"])
