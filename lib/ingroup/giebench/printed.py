"""The paper's tables, with the models of a run below or beside the printed ones."""

import pandas as pd

from ingroup import published
from ingroup.giebench import stimuli
from ingroup.giebench.accuracy import OVERALL, accuracy, changes
from ingroup.inference import models

ACCURACY = {"COT": 1, "ID": 2, "Raw": 6}  # the table of each prompt
CHANGES = {"COT": 4, "ID": 5}
NAMES = {"accuracy_pct": "accuracy", "delta_pct": "change"}
TOLERANCE = 0.05 + 1e-9  # points: half of the last printed digit


def load(tables: dict[str, int]) -> pd.DataFrame:
    """Read printed tables of several prompts, with this study's names of columns."""
    read = {prompt: published.load("giebench", number) for prompt, number in tables.items()}
    rows = pd.concat(read, names=["prompt"]).reset_index("prompt")
    return rows.rename(columns=NAMES)


def with_printed(here: pd.DataFrame, tables: dict[str, int]) -> pd.DataFrame:
    """Put the printed rows of several tables before those of a run.

    Parameters
    ----------
    here : DataFrame
        From `accuracy.accuracy` or `accuracy.changes`.
    tables : dict
        The printed table of each prompt, `ACCURACY` or `CHANGES`.

    Returns
    -------
    DataFrame
        ``source`` ("printed" or "here"), ``model`` (its label), ``series`` and the columns of
        `here`, one row per cell of the tables.
    """
    sources = {"printed": load(tables), "here": here.reset_index()}
    both = pd.concat(sources, names=["source"]).reset_index("source")
    both["series"] = both.model.map(_series)
    both["model"] = both.model.map(label)
    return both.drop(columns="model_label")


def layout(both: pd.DataFrame, prompt: str, column: str) -> pd.DataFrame:
    """Lay one prompt of `with_printed` out as the paper does: models by categories."""
    of_prompt = both[both.prompt == prompt]
    cells = of_prompt.set_index(["source", "model", "category"])[column]
    table = cells.unstack("category", sort=False)
    return table[[*stimuli.categories(), OVERALL]]


def mismatch_with_printed(here: pd.DataFrame) -> pd.DataFrame:
    """Put the printed mismatches of GPT-4 (Tables 7 and 3) before those of a run.

    Parameters
    ----------
    here : DataFrame
        From `accuracy.mismatch`.

    Returns
    -------
    DataFrame
        ``source``, ``model``, ``identity_tuple``, ``condition`` (as printed) and ``accuracy``.
    """
    tables = pd.concat([published.load("giebench", 7), published.load("giebench", 3)])
    tables = tables.rename(columns=NAMES).assign(model="GPT-4")
    cot = here.xs("COT", level="prompt")
    conditions = {
        "cot_prompt_mismatch": cot.after,
        "id_prompt_mismatch": here.xs("ID", level="prompt").after,
        "no_mismatch": cot.before,
    }
    wide = pd.DataFrame(conditions).rename_axis(columns="condition")
    ours = wide.stack().rename("accuracy").reset_index()

    sources = {"printed": tables, "here": ours}
    both = pd.concat(sources, names=["source"]).reset_index("source")
    both["model"] = both.model.map(label)
    # Table 3 prints a pair of Table 7 in the other order, and others again.
    both = both[both.identity_tuple.isin(stimuli.pairs().identity_tuple)]
    columns = ["source", "model", "identity_tuple", "condition"]
    return both.drop_duplicates(columns)[[*columns, "accuracy"]]


def beside(answers: pd.DataFrame) -> pd.DataFrame:
    """Compare a run's numbers with the printed ones of the same models, cell by cell.

    Parameters
    ----------
    answers : DataFrame
        Answers in the order given, read by the released rule.

    Returns
    -------
    DataFrame
        ``model``, ``prompt``, ``category``, ``number``, ``printed``, ``here``, ``difference`` and
        whether it ``agrees`` to the printed digit; no rows where no printed model ran. The numbers
        are computed as by the released script: n + 1 in a category, three decimals.
    """
    level = accuracy(answers, "released", "released")
    change = changes(answers, "released", "released")
    keys = ["model", "prompt", "category"]
    both = pd.concat(
        [
            published.beside(load(ACCURACY), level, keys, ["accuracy"]),
            published.beside(load(CHANGES), change, keys, ["change", "gained", "lost"]),
        ]
    )
    return both.assign(agrees=both.difference.abs() <= TOLERANCE)


def label(model: str) -> str:
    """Return the label of a model in tables and figures."""
    return models.model(model, {}).label


def _series(model):
    """Return the series of a model in the registry, or the model's own name."""
    known = models.find(model)
    return model if known is None else known.series
