"""Recorded answers as an engine: each prompt gets the answer that a file holds for it.

A prompt without a recorded answer is left out of the reply, and never invented.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from glob import glob
from pathlib import Path
from typing import Any

import pandas as pd

from ingroup.inference.answers import Chat, Engine, EngineError, Reply, Sampling, failed, prompt_key
from ingroup.inference.reasoning import split_reasoning
from ingroup.tables import InputError, read_table

# Columns of the system turn, the user turn and the answer, as three papers' scripts write them.
LAYOUTS = (
    ("system_prompt", "user_input", "response"),
    ("", "Questionnaire", "Answer"),
    ("system", "prompt", "response"),
    ("", "prompt", "answer"),
)
NOT_RECORDED = failed("its prompt is not recorded")


class ReplayEngine(Engine):
    """Answers of one model, from a table of prompts and replies.

    Parameters
    ----------
    table : DataFrame
        ``key`` (`prompt_key`), ``round`` (which answer to that prompt it is, from 1) and ``reply``.
    about : mapping
        The engine's identity: the model, and where its answers are from.
    round : int
        The round that is asked.
    """

    def __init__(self, table: pd.DataFrame, about: Mapping[str, Any], round: int = 1):
        self.about = about
        self.files = about["files"]
        of_round = table[table["round"] == round]

        texts = of_round.reply.map(lambda reply: reply.text)
        n_texts = texts.groupby(of_round.key).transform("nunique")
        differs = n_texts > 1
        n_differing = differs.sum()
        if n_differing:
            raise EngineError(
                f"{self.files} hold {n_differing:,} different answers to the same prompts in one "
                "round: give them a column run, or one file for each model"
            )
        self.replies = dict(zip(of_round.key, of_round.reply, strict=True))

    def identity(self) -> dict[str, Any]:
        """Name the model and the files.

        Returns
        -------
        dict
            Entries of a store's manifest.
        """
        return dict(self.about)

    def answer(self, chats: Sequence[Chat], sampling: Sampling) -> list[Reply]:
        """Return the recorded replies.

        Parameters
        ----------
        chats : sequence of chat
            The chats.
        sampling : Sampling
            How they are asked.

        Returns
        -------
        list of Reply
            One reply to each chat, in order.

        Raises
        ------
        EngineError
            Scores are asked of texts.
        """
        if sampling.choices:
            raise EngineError(f"{self.files} hold texts alone: use READING=free")
        keys = map(prompt_key, chats)
        return [self.replies.get(key, NOT_RECORDED) for key in keys]


def from_files(place: str, model: str, labels: Mapping[str, Any]) -> ReplayEngine:
    """Make the engine of the authors' result files, or of logs of inspect_ai.

    Parameters
    ----------
    place : str
        Files, with patterns and with the names of labels: ``results/{category}_*.tsv``. A file is
        a table in one of the `LAYOUTS`, or GIEBench's object of items. A column ``category``
        counts where there is one, and a column ``run`` or ``round`` says which round a row is of.
        Without it the further rows of a prompt are further rounds. A folder holds logs of
        `ingroup.tasks`.
    model : str
        The model that answered.
    labels : mapping
        The labels of the job, with ``category`` and ``round`` perhaps.

    Returns
    -------
    ReplayEngine
        The engine.

    Raises
    ------
    EngineError
        There are no files, or a file has none of the layouts.
    """
    place = place.format_map(dict(labels))
    if Path(place).is_dir():
        files = logs(place).get(model, [])
        tables = [_of_job(_read_log(file), labels) for file in files]
    else:
        files = sorted(map(Path, glob(place)))
        tables = [_read(file) for file in files]
    if not files:
        raise EngineError(f"RECORDINGS: found no file of {model} at {place!r}")

    table = _of_category(pd.concat(tables, ignore_index=True), labels)
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    about = {
        "engine": "replay",
        "model": model,
        "files": place,
        "revision": digest.hexdigest()[:16],
    }
    return ReplayEngine(table, about, labels.get("round", 1))


def _of_category(table: pd.DataFrame, labels: Mapping[str, Any]) -> pd.DataFrame:
    """Select the rows of a job's category, and number their rounds."""
    if "category" in table and "category" in labels:
        table = table[table.category == labels["category"]]
    table = table.rename(columns={"run": "round"})
    if "round" in table:
        return table.astype({"round": float})

    n_earlier = table.groupby("key").cumcount()
    return table.assign(round=n_earlier + 1)


def _read(file: Path) -> pd.DataFrame:
    """Read one file of recorded answers as keys and replies, beside its other columns."""
    if file.suffix == ".json":
        table = pd.read_json(file, orient="index", dtype=False)
    else:
        table = read_table(file)

    fitting = [layout for layout in LAYOUTS if set(layout[1:]) <= set(table)]
    if not fitting:
        expected = "; or ".join(f"{user} and {answer}" for _, user, answer in LAYOUTS)
        raise EngineError(f"{file}: found the columns {', '.join(table)}, expected {expected}")

    system, user, answer = fitting[0]
    if system not in table:
        table[system] = ""
    texts = table[[system, user]].to_numpy()
    keys = [_key(turns) for turns in texts]
    replies = table[answer].map(_reply)
    return table.assign(key=keys, reply=replies)


def _key(texts: Iterable[str]) -> int:
    """Hash the texts of a chat as `prompt_key` does."""
    return prompt_key([{"content": text} for text in texts])


def _reply(text: Any) -> Reply:
    """Make the reply of a recorded text."""
    if not isinstance(text, str):
        return failed("the recorded call gave no answer")
    answer, reasoning = split_reasoning(text)
    return Reply(answer, reasoning=reasoning)


# ---- logs of inspect_ai


@cache
def logs(folder: str) -> dict[str, list[Path]]:
    """List the logs of inspect_ai in a folder.

    Parameters
    ----------
    folder : str
        A folder.

    Returns
    -------
    dict
        The logs of each model, the oldest first.
    """
    from inspect_ai.log import read_eval_log

    found = defaultdict(list)
    # The name of a log begins with its time.
    for file in sorted(Path(folder).glob("*.eval")):
        header = read_eval_log(file, header_only=True)
        found[header.eval.model].append(file)
    return found


def logged(folder: str, models: Sequence[str]) -> dict[str, Any]:
    """Choose the parameters of a run that reads logs.

    Parameters
    ----------
    folder : str
        A folder of logs.
    models : sequence of str
        The models that the run names.

    Returns
    -------
    dict
        MODELS, ENGINE and READING. Where no model of the run has a log, all models of the logs are
        the run's.

    Raises
    ------
    InputError
        The folder holds no logs.
    """
    models_of_logs = logs(folder)
    if not models_of_logs:
        raise InputError(f"RECORDINGS: found no logs of inspect_ai in {folder}")
    named = [model for model in models if model in models_of_logs]
    return {"MODELS": named or list(models_of_logs), "ENGINE": "replay", "READING": "free"}


@cache
def _read_log(file: Path) -> list[dict[str, Any]]:
    """Read the samples of a log as keys, replies and columns of conditions, once in a process."""
    from inspect_ai.log import read_eval_log_samples

    from ingroup.inference.inspect_engine import reply_of

    rows = []
    for sample in read_eval_log_samples(
        file, all_samples_required=False, exclude_fields={"events", "messages", "store"}
    ):
        texts = [message.text for message in sample.input]
        reply = reply_of(sample.output, Sampling())
        if sample.error:
            reply = failed(sample.error.message)
        row = {"key": _key(texts), "reply": reply, "labels": sample.metadata}
        rows.append(row)
    return rows


def _of_job(samples: list[dict[str, Any]], labels: Mapping[str, Any]) -> pd.DataFrame:
    """Select the samples of a job, which have its labels."""
    found = []
    for sample in samples:
        if labels.items() <= sample["labels"].items():
            found.append(sample)
    table = pd.DataFrame(found, columns=["key", "reply"])
    return table.assign(round=labels.get("round", 1))
