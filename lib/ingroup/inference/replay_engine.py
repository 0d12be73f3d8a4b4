"""Recorded answers as an engine: each prompt gets the answer that a table holds for it.

A prompt without a recorded answer is left out of the reply, and never invented.
"""

import hashlib
from collections.abc import Mapping, Sequence
from glob import glob
from pathlib import Path
from typing import Any

import pandas as pd

from ingroup.inference.answers import Chat, Engine, EngineError, Reply, Sampling, failed, prompt_key
from ingroup.inference.reasoning import split_reasoning

# Columns of the system turn, the user turn and the answer, as three papers' scripts write them.
LAYOUTS = (
    ("system_prompt", "user_input", "response"),
    ("", "Questionnaire", "Answer"),
    ("system", "prompt", "response"),
    ("", "prompt", "answer"),
)


class ReplayEngine(Engine):
    """Answers of one model, from a table of prompts and replies.

    Parameters
    ----------
    table : DataFrame
        ``key`` (`prompt_key`), ``round`` (which answer to that prompt it is, from 1) and ``reply``.
    about : mapping
        The model and where its answers are from.
    round : int
        The round that is asked.
    """

    def __init__(self, table: pd.DataFrame, about: Mapping[str, Any], round: int = 1):
        self.about = dict(about)
        of_round = table[table["round"] == round]
        if of_round.empty:
            raise EngineError(f"{self.about['files']} hold no answers of round {round}")
        texts = of_round.reply.map(lambda reply: reply.text)
        differing = of_round.key[texts.groupby(of_round.key).transform("nunique") > 1]
        if len(differing):
            raise EngineError(
                f"{self.about['files']} hold {len(differing):,} different answers to the same "
                "prompts in one round: give them a column run, or one file for each model"
            )
        self.replies = dict(zip(of_round.key, of_round.reply, strict=True))

    def identity(self) -> dict[str, Any]:
        """Name the model and the files.

        Returns
        -------
        dict
            Entries of a store's manifest.
        """
        return {"engine": "replay", **self.about}

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
            None of the prompts is recorded, or scores are asked of texts.
        """
        replies = [self.replies.get(prompt_key(chat), failed("not recorded")) for chat in chats]
        if all(reply.error == "not recorded" for reply in replies):
            text = " / ".join(turn["content"] for turn in chats[0])
            raise EngineError(
                f"none of {len(chats):,} prompts is recorded in {self.about['files']}: the first "
                f"is {text[:200]!r}"
            )
        if sampling.choices and not any(reply.probabilities for reply in replies):
            raise EngineError(f"{self.about['files']} hold texts alone: use READING=free")
        return replies


def from_files(place: str, model: str, labels: Mapping[str, Any]) -> ReplayEngine:
    """Make the engine of the authors' result files.

    Parameters
    ----------
    place : str
        Files, with patterns and with the names of labels: ``results/{category}_*.tsv``. A file is
        a table in one of the `LAYOUTS`, or GIEBench's object of items. A column ``category``
        counts where there is one, and a column ``run`` or ``round`` says which round a row is of.
        Without it the further rows of a prompt are further rounds.
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
    files = sorted(glob(place.format_map(dict(labels))))
    if not files:
        raise EngineError(f"RECORDINGS: found no file at {place.format_map(dict(labels))!r}")

    table = pd.concat([_read(Path(file)) for file in files], ignore_index=True)
    if "category" in table and "category" in labels:
        table = table[table.category == labels["category"]]
    for name in ("run", "round"):
        if name in table:
            table["round"] = table[name].astype(float).astype(int)
    if "round" not in table:
        table["round"] = table.groupby("key").cumcount() + 1

    digest = hashlib.sha256()
    for file in files:
        digest.update(Path(file).read_bytes())
    about = {"model": model, "files": place, "revision": digest.hexdigest()[:16]}
    return ReplayEngine(table, about, labels.get("round", 1))


def _read(file: Path) -> pd.DataFrame:
    """Read one file of recorded answers as keys and replies, beside its other columns."""
    if file.suffix == ".json":
        table = pd.read_json(file, orient="index", dtype=False)
    else:
        separator = "\t" if file.suffix == ".tsv" else ","
        table = pd.read_csv(file, sep=separator, dtype=str, keep_default_na=False)

    fitting = [layout for layout in LAYOUTS if layout[1] in table and layout[2] in table]
    if not fitting:
        expected = "; or ".join(f"{user} and {answer}" for _, user, answer in LAYOUTS)
        raise EngineError(f"{file}: found the columns {', '.join(table)}, expected {expected}")

    system, user, answer = fitting[0]
    systems = table[system] if system in table else [""] * len(table)
    keys = []
    replies = []
    for first, second, text in zip(systems, table[user], table[answer], strict=True):
        keys.append(prompt_key([{"content": first}, {"content": second}]))
        replies.append(_reply(text))
    return table.assign(key=keys, reply=replies)


def _reply(text: Any) -> Reply:
    """Make the reply of a recorded text."""
    if not isinstance(text, str):
        return failed("the recorded call gave no answer")
    answer, reasoning = split_reasoning(text)
    return Reply(answer, reasoning=reasoning)
