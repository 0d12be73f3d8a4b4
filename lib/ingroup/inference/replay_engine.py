"""Recorded answers as an engine: each prompt gets the response that a file holds for it."""

import hashlib
import os
import reprlib
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, takewhile
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np
import pandas as pd

from ingroup.design import Message
from ingroup.inference.engine import (
    FAILED,
    LENGTH,
    NO_CHOICES,
    STOP,
    Engine,
    EngineError,
    Reply,
    Sampling,
)
from ingroup.inference.reasoning import apart
from ingroup.tables import at, read_json, read_table, wrong

NO_RECORDING = Reply(None, FAILED, error="no recording")

# Columns of the system turn (may be missing), of the user turn and of the response.
_LAYOUTS = (
    ("system_prompt", "user_input", "response"),
    ("", "Questionnaire", "Answer"),
    ("system", "prompt", "response"),
)
_DELIMITERS = {".tsv": "\t", ".csv": ","}
_LOGS = ".eval"  # of inspect_ai
_ROUNDS = ("round", "run")  # columns
_LOOKED_AT = 100_000  # recordings among which the nearest one is sought


class Recording(NamedTuple):
    """One recorded answer, and the file and line (key) where it stands."""

    where: str
    prompt: str
    reply: Reply
    round: int = 1


class ReplayEngine(Engine):
    """Answers from recordings; a prompt without one is a failed call, never invented.

    A prompt is its turns, one to a line: ``system + "\\n" + user``, or the user turn alone.
    Sampling is ignored. Where a prompt stands more than once in a round, each asking gets the next
    recording behind the one given last, from the start again where there is none: asked in the
    order of the recordings, each trial gets its own.

    ``recordings`` are a file, a pattern, or a folder whose files (also those further down) are read
    in the order of their names. ``.tsv`` and ``.csv`` have the columns ``system_prompt``,
    ``user_input`` and ``response`` (Hou et al.), ``Questionnaire`` and ``Answer`` (StereoMap), or
    ``prompt``, ``response`` and, if there was one, ``system``; ``.json`` is an object of objects
    with ``prompt`` and ``answer`` (GIEBench; without an answer the call had failed). An empty cell
    is an empty answer. A column ``round`` or ``run`` says which repetition a row is, from 1.
    Without it StereoMap's further rows of a prompt (drafts, runs) are its further rounds, and all
    other recordings are of the first. ``.eval`` is a log of inspect_ai, whose epochs are rounds.
    `turn_to` chooses the round.

    EngineError where there is no recording, or a log and no inspect_ai to read it; InputError where
    a file is not what its name says (naming the line or key).
    """

    asks_again = False

    def __init__(self, recordings: str | Path, model: str):
        self.path, self.model = Path(recordings), model
        self._files = _find(self.path)
        self._last = -1  # the recording that was given last
        keys, codes, replies = bytearray(), array("i"), {}
        self.round, self._rounds = 1, set()
        for recording in _recorded(self._files):
            keys += _key(recording.prompt, recording.round)
            codes.append(replies.setdefault(recording.reply, len(replies)))
            self._rounds.add(recording.round)
        if not codes:
            raise EngineError(f"{self.path} holds no recording")
        unsorted, self._codes = np.frombuffer(keys, dtype="S16"), np.asarray(codes)
        self._order = np.argsort(unsorted, kind="stable")
        self._replies = [apart(reply) for reply in replies]
        self._keys, self._used = unsorted[self._order], np.zeros(len(codes), dtype=bool)

    def turn_to(self, number: int) -> bool:
        """Answer from the recordings of this round from now on; whether there are any."""
        self.round = number
        return number in self._rounds

    def answer(self, conversations: Sequence[Sequence[Message]], sampling: Sampling) -> list[Reply]:
        """One reply a conversation, in order.

        EngineError where the sampling has choices, and where nothing asked so far has a recording:
        it shows where the nearest one departs from the first prompt.
        """
        if sampling.choices:
            raise EngineError(f"the recordings in {self.path} are texts {NO_CHOICES}")
        prompts = [_prompt(*(message["content"] for message in chat)) for chat in conversations]
        keys = b"".join(_key(prompt, self.round) for prompt in prompts)
        keys = np.frombuffer(keys, dtype="S16")
        lows = np.searchsorted(self._keys, keys, side="left")
        highs = np.searchsorted(self._keys, keys, side="right")
        if prompts and self._last < 0 and (lows == highs).all():
            raise EngineError(self._nearest(prompts))
        replies = []
        for low, high in zip(lows, highs, strict=True):
            if low == high:
                replies.append(NO_RECORDING)
                continue
            same = self._order[low:high]
            self._last = int(same[np.searchsorted(same, self._last, side="right") % len(same)])
            self._used[self._last] = True
            replies.append(self._replies[self._codes[self._last]])
        return replies

    def _nearest(self, prompts: list[str]) -> str:
        """The sentence on prompts none of which has a recording."""
        asked = prompts[0]

        def shared(recording: Recording) -> int:
            return len(os.path.commonprefix([recording.prompt, asked]))  # noqa: RUF071 (characters)

        near = max(islice(_recorded(self._files), _LOOKED_AT), key=shared)
        place = shared(near)
        found, expected = (text[max(place - 20, 0) : place + 20] for text in (near.prompt, asked))
        return (
            f"none of {len(prompts)} prompts has a recording in {self.path}; {near.where} comes "
            f"nearest to the first and departs from it at character {place + 1}: found {found!r}, "
            f"expected {expected!r}"
        )

    def identity(self) -> dict[str, str]:
        """Engine, model, files and SHA-256 over their contents."""
        digest = hashlib.sha256()
        for file in self._files:
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        names = [file.name for file in self._files]
        return {
            "engine": "replay",
            "model": self.model,
            "files": ", ".join(names) if len(names) < 9 else f"{names[0]} to {names[-1]}",
            "revision": digest.hexdigest(),
        }

    def close(self) -> None:
        """Say how many recordings no prompt used, where anything was asked."""
        if self._last >= 0 and (unused := int((~self._used).sum())):
            of = f"{unused:,} of {len(self._used):,} recordings in {self.path}"
            print(f"{of} answer no prompt that was asked now", file=sys.stderr)


def _prompt(*turns: str) -> str:
    """A chat as one text: its turns, one to a line, without those that are empty."""
    return "\n".join(turn for turn in turns if turn)


def _key(prompt: str, number: int) -> bytes:
    return hashlib.blake2b(f"{number} {prompt}".encode(), digest_size=16).digest()


def _find(place: Path) -> list[Path]:
    """The tables and results of a folder (also those further down), one file, or a pattern's."""
    files = sorted(place.rglob("*") if place.is_dir() else place.parent.glob(place.name))
    kinds = (*_DELIMITERS, ".json", _LOGS)
    files = [file for file in files if file.suffix.lower() in kinds and file.name[0] != "."]
    if stores := [file for file in files if file.name == "manifest.json"]:
        raise EngineError(
            f"{stores[0].parent} is a store of this project: copy what it lies in to its place in "
            "build/responses, and ask MODELS=<name>@stored"
        )
    if not files or not files[0].is_file():
        expected = "a .tsv, .csv, .json or .eval file, or a folder of them"
        raise EngineError(f"{place} holds no recordings; expected {expected}")
    return files


def _recorded(files: Iterable[Path]) -> Iterator[Recording]:
    """All recordings of some files, in their order."""
    readers = dict.fromkeys(_DELIMITERS, _tabled) | {".json": _listed, _LOGS: _logged}
    for file in files:
        yield from readers[file.suffix.lower()](file)


def _listed(file: Path) -> Iterator[Recording]:
    """Those of GIEBench's results (no answer: a call that failed)."""
    items = read_json(file)
    if not isinstance(items, dict):
        raise wrong(file, f"a {type(items).__name__}", "an object of items")
    for key, item in items.items():
        where = f"{file}, key {key!r}"
        if not isinstance(item, dict) or not isinstance(item.get("prompt"), str):
            raise wrong(where, reprlib.repr(item), "an item with prompt")
        if (answer := item.get("answer")) is None:
            continue
        if not isinstance(answer, str):
            raise wrong(where, f"answer {reprlib.repr(answer)}", "a text")
        # JSON can spell half a surrogate pair, which UTF-8 (and so a shard) cannot hold.
        prompt, answer = (t.encode(errors="replace").decode() for t in (item["prompt"], answer))
        yield Recording(where, prompt, Reply(answer, STOP))


def _logged(file: Path) -> Iterator[Recording]:
    """Those of a log of inspect_ai: its chats up to the model's turn, its epochs as rounds.

    Passed over are samples without a reply, and answers over choices, which `make view` shows as
    text. A reply is of the model that the log names.
    """
    try:
        from inspect_ai.log import read_eval_log
    except ImportError as error:
        raise EngineError(
            f"{file} is a log of inspect_ai, which is not in this environment: make 10 "
            "ENGINE=replay RECORDINGS=<file.eval> makes one that has it, or pip install inspect-ai"
        ) from error
    try:
        for sample in read_eval_log(file, resolve_attachments=True).samples or ():
            if not sample.output.choices or sample.metadata.get("asked") == "over choices":
                continue
            turns = takewhile(lambda message: message.role != "assistant", sample.messages)
            said, cut = sample.output, sample.output.stop_reason in ("max_tokens", "model_length")
            thoughts = [
                part.reasoning for part in said.message.content_list if part.type == "reasoning"
            ]
            reply = Reply(
                said.completion,
                LENGTH if cut else STOP,
                model=said.model,
                reasoning="\n".join(thoughts),
            )
            where, prompt = f"{file}, sample {sample.id}", _prompt(*(turn.text for turn in turns))
            yield Recording(where, prompt, reply, sample.epoch)
    except (BadZipFile, KeyError, ValueError) as error:
        raise wrong(file, type(error).__name__, "a log of inspect_ai") from error


def _tabled(file: Path) -> Iterator[Recording]:
    """Those of a table, in one of three layouts, each with its round."""
    table = read_table(file, (), _DELIMITERS[file.suffix.lower()])
    layouts = [names for names in _LAYOUTS if {*names[1:]} <= {*table}]
    if not layouts:
        expected = "; or ".join(" and ".join(names[1:]) for names in _LAYOUTS)
        raise wrong(at(file, 1), f"the columns {', '.join(table)}", expected)
    system, user, response = layouts[0]
    numbers = next((table[name] for name in _ROUNDS if name in table), pd.Series(dtype=object))
    for line in numbers.index[~numbers.str.fullmatch(r"0*[1-9]\d{0,5}").astype(bool)]:
        raise wrong(at(file, line), repr(numbers[line]), "a whole number from 1", numbers.name)
    if user == "Questionnaire" and numbers.empty:
        numbers = table.groupby(user).cumcount() + 1
    for line, row in table.to_dict("index").items():
        prompt, reply = _prompt(row.get(system, ""), row[user]), Reply(row[response], STOP)
        yield Recording(at(file, line), prompt, reply, int(numbers.get(line, 1)))
