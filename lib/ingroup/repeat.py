"""Ask a sample again: does the same question get the same answer, and does delta move?

``python -m ingroup.repeat 10_empathy_gap`` is what ``make repeat`` calls. Greedy decoding is not
determinism: on a GPU the make-up of a batch changes sums in their last digits, and now and then the
most probable number with them; a server may be another one tomorrow. So every trial of some events
is asked once more, in shuffled batches, and laid beside its first answer.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ingroup import corpora, design, paths, permutation, ratings, stimuli
from ingroup.inference import (
    EngineError,
    Sampling,
    StoreError,
    generate,
    make_engine,
    open_store,
    response_folder,
)
from ingroup.parameters import ParameterError, command_line, parameters_of

EVENTS = 4
OPTIONS = (
    "batch_size", "system", "bos", "dtype", "gpus", "base_url", "in_flight", "recordings",
)  # fmt: skip


def of_events(plan: design.Design, n_events: int, rng: np.random.Generator) -> design.Selection:
    """All trials of some events, drawn without replacement, in a random order.

    Parameters
    ----------
    plan : ingroup.design.Design
        Of :func:`ingroup.design.empathy_gap`.
    n_events : int
        As many as there are at most.
    rng : numpy.random.Generator
        Draws events and order.
    """
    n = len(plan.blocks[0].factors["event"])
    chosen = np.sort(rng.choice(n, size=min(n_events, n), replace=False))
    cells = np.arange(len(plan) // n)
    numbers = (cells[:, None] * n + chosen).ravel()
    return design.Selection(plan, rng.permutation(numbers))


def compared(first: pd.DataFrame, again: pd.DataFrame, plan: design.Design) -> pd.DataFrame:
    """Two answers to the same trials, side by side.

    Parameters
    ----------
    first, again : pandas.DataFrame
        Columns ``trial`` (number in the whole design), ``text`` and ``finish_reason``, the same
        trials in any order.
    plan : ingroup.design.Design
        The whole design, of one setting.

    Returns
    -------
    pandas.DataFrame
        A row for each category: ``trials``; ``texts_differ`` and ``ratings_differ`` (percent of the
        trials; a rating and no rating differ as well); ``mean_change`` of the ratings that both
        have, without sign, in points; ``delta``, ``delta_again`` and their difference ``change``,
        over the sampled events alone (NaN where no cell differs from another, or one has no
        rating).
    """
    wording = stimuli.setting(plan.blocks[0].labels["setting"])
    rows = []
    for block in plan.blocks:
        category = block.labels["category"]
        _, numbers = plan.block_of(category=category)
        sides = [_sampled(table, numbers, block.shape, wording) for table in (first, again)]
        (text, rating), (text_again, rating_again) = sides
        differ = ~((rating == rating_again) | (np.isnan(rating) & np.isnan(rating_again)))
        change = np.abs(rating - rating_again)
        same = permutation.same_group(stimuli.identities(category).group[1:])
        deltas = [_delta(values, same) for values in (rating, rating_again)]
        rows.append(
            {
                "category": category,
                "trials": rating.size,
                "texts_differ": 100 * float(np.mean(text != text_again)),
                "ratings_differ": 100 * float(differ.mean()),
                "mean_change": float(np.nanmean(change)) if np.isfinite(change).any() else np.nan,
                "delta": deltas[0],
                "delta_again": deltas[1],
                "change": deltas[1] - deltas[0],
            }
        )
    return pd.DataFrame(rows)


def _sampled(
    table: pd.DataFrame, numbers: range, shape: tuple[int, ...], wording: stimuli.Setting
) -> tuple[np.ndarray, np.ndarray]:
    """Texts and ratings of one block, shape (perceiver, experiencer, sampled event)."""
    rows = table[table.trial.between(numbers.start, numbers.stop - 1)].sort_values("trial")
    n_events = len(rows) // (shape[0] * shape[1])
    rows = rows.assign(trial=np.arange(len(rows)))
    shape = (*shape[:2], n_events)
    found = ratings.from_responses(rows, shape, wording.low, wording.high)
    # A failed call has no text: two of them do not differ.
    return rows.text.astype(object).where(rows.text.notna(), "").to_numpy(), found.values


def _delta(values: np.ndarray, same: np.ndarray) -> float:
    if np.isnan(values).all(axis=2).any():  # a cell without a rating
        return np.nan
    if np.ptp(ratings.cell_means(values)) == 0:
        return np.nan
    return permutation.empathy_gap(ratings.gap_matrix(values, exclusion="pairwise"), same)


def repeat(values: Mapping[str, Any], n_events: int) -> pd.DataFrame:
    """Ask a sample of a notebook's default setting again; returns :func:`compared`.

    First answers are the stored ones of ``make 10``; the second ones are stored too, beside them,
    as ``<setting>+repeat-<events>-<seed>``: another ``SEED`` is another sample, asked anew.

    Raises
    ------
    ingroup.inference.StoreError
        Where there are no first answers yet.
    ingroup.inference.EngineError
        Where the engine cannot start.
    """
    events = corpora.load_events(values["CORPUS"], values["N_EVENTS"] or None)
    setting = (values["SETTINGS"] or list(stimuli.settings()))[0]
    plan = design.empathy_gap(events, [setting])
    model, engine_name = values["MODEL"], values["ENGINE"]
    corpus = f"{Path(values['CORPUS']).stem}-{len(events)}"
    sampling = Sampling(temperature=0.0, max_tokens=128)
    options = {name: values[name.upper()] for name in OPTIONS}
    # The transformers engine sorts what it is asked into batches: another size shuffles those.
    options["batch_size"] = max(1, 2 * options["batch_size"] // 3)
    engine = make_engine(engine_name, model, designs=[plan], **options)

    def folder(part: str):
        return response_folder("empathy_gap", corpus, model, engine_name, part)

    first = open_store(folder(setting), plan, engine, sampling)
    if first.missing():
        raise StoreError(
            f"{folder(setting)} has not all first answers yet; run make 10 with these parameters"
        )
    sample = of_events(plan, n_events, np.random.default_rng(values["SEED"]))
    name = f"{setting}+repeat-{n_events}-{values['SEED']}"
    store = open_store(folder(name), sample, engine, sampling)
    again = generate(sample, engine, store, sampling, "asking again")
    engine.close()
    known = first.read()
    return compared(
        known[known.trial.isin(sample.numbers)],
        again.assign(trial=sample.numbers[again.trial.to_numpy()]),
        plan,
    )


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when all was asked, 2 for a wrong parameter, 1 where it could not be."""
    parser = command_line(__doc__)
    parser.add_argument("--events", type=int, default=EVENTS)
    options = parser.parse_args(arguments)
    try:
        values = parameters_of(options)
        if values["RATING"] != "greedy":
            raise ParameterError("make repeat compares greedy answers; leave RATING out")
        if options.events < 1:
            raise ParameterError(f"EVENTS must be at least 1, found {options.events}")
    except ParameterError as error:
        print(error, file=sys.stderr)
        return 2
    try:
        table = repeat(values, options.events)
    except (EngineError, StoreError, stimuli.StimulusError) as error:
        print(error, file=sys.stderr)
        return 1
    file = paths.outputs("empathy_gap", options.run).tables / "repeat.csv"
    table.to_csv(file, index=False)
    print(table.round(3).to_string(index=False))
    print(
        f"texts_differ and ratings_differ are percent of the trials: flip rates. Written to {file}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
