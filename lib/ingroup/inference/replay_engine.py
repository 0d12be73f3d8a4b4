"""Recorded answers as an engine: each prompt gets the response that a file holds for it."""

import hashlib
import os
import reprlib
from array import array
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ingroup.design import Design, Message
from ingroup.inference.engine import FAILED, NO_CHOICES, STOP, EngineError, Reply, Sampling
from ingroup.inference.store import Store, StoreError, read_manifest
from ingroup.tables import at, read_json, read_table, wrong

NO_RECORDING = Reply(None, FAILED, error="no recording")

# Delimiter, column of the system turn, of the user turn, and the columns that must be there.
_TABLES = {
    ".tsv": ("\t", "system_prompt", "user_input", ("system_prompt", "user_input", "response")),
    ".csv": (",", "system", "prompt", ("prompt", "response")),
}
_LOOKED_AT = 100_000  # recordings among which the nearest one is sought


class Recording(NamedTuple):
    """One recorded answer, and the file and line (key, trial) where it stands."""

    where: str
    prompt: str
    reply: Reply


class ReplayEngine:
    """Answers from recordings; a prompt without one is a failed call, never invented.

    A prompt is its turns, one to a line: ``system + "\\n" + user``, or the user turn alone. Of
    prompts only hashes are kept, and each distinct response once. Sampling is ignored, as the
    recordings were drawn long ago. Where a prompt stands more than once, each asking gets the next
    recording behind the one given last, from the start again where there is none: asked in the
    order of the recordings, each trial gets its own. Of several stores no two may differ.

    ``recordings`` are a file, a pattern, or a folder whose files (also those further down) are read
    in the order of their names. ``.tsv`` has the columns ``system_prompt``, ``user_input`` and
    ``response`` (Hou et al.); ``.csv`` has ``prompt``, ``response`` and, if there was one,
    ``system``; ``.json`` is an object of objects with ``prompt`` and ``answer`` (GIEBench; without
    an answer the call had failed). An empty cell is an empty answer. A folder with
    ``manifest.json``, here or further down, is a store of this project, finished or not; it knows
    its ``model``, and of its prompts no more than that they are those of one of the ``designs``
    (other stores, and answers over choices, are left out).

    EngineError where there is no recording, or stores answered none of the designs or come from
    several models; InputError where a file is not what its name says (naming the line or key);
    StoreError where a shard is damaged.
    """

    asks_again = False

    def __init__(
        self, recordings: str | Path, model: str | None = None, *, designs: Sequence[Design] = ()
    ):
        self.path, self.model = Path(recordings), model
        self._stores = _stores(self.path, designs)
        for store, _ in self._stores:
            found = store.manifest.get("model")
            self.model = self.model or found
            if found != self.model:
                raise EngineError(
                    f"{store.folder} holds answers of {found!r}, not of {self.model!r}"
                )
        files = chain.from_iterable(store.files().values() for store, _ in self._stores)
        self._files = list(chain.from_iterable(files)) or _find(self.path)
        self._sources = [partial(_stored, *one) for one in self._stores]
        self._sources = self._sources or [partial(_recorded, file) for file in self._files]
        if not self.model:
            raise EngineError(f"the model that gave the answers in {self.path} has to be named")
        self._last = -1  # the recording that was given last
        keys, codes, sources, replies = bytearray(), array("i"), array("i"), {}
        for number, read in enumerate(self._sources):
            for recording in read():
                keys += _key(recording.prompt)
                codes.append(replies.setdefault(recording.reply, len(replies)))
                sources.append(number)
        if not codes:
            raise EngineError(f"{self.path} holds no recording")
        unsorted, self._codes = np.frombuffer(keys, dtype="S16"), np.asarray(codes)
        self._order, self._replies = np.argsort(unsorted, kind="stable"), list(replies)
        self._keys = unsorted[self._order]
        if len(self._stores) > 1:
            prompts = np.unique(unsorted, return_inverse=True)[1]
            self._check_stores(pd.DataFrame({"prompt": prompts, "code": codes, "source": sources}))

    def _recordings(self) -> Iterator[Recording]:
        return chain.from_iterable(read() for read in self._sources)

    def _check_stores(self, there: pd.DataFrame) -> None:
        """No prompt that several stores answer may have two responses."""
        answers = there.groupby("prompt")[["code", "source"]].transform("nunique")
        differs = (answers > 1).all(axis=1)
        if not differs.any():
            return
        same = there[there.prompt == there.prompt[differs.idxmax()]]
        numbers = same.index[0], (same.code != same.code.iloc[0]).idxmax()
        first, other = (next(islice(self._recordings(), n, None)) for n in numbers)
        old, new = (reprlib.repr(recording.reply.text) for recording in (first, other))
        raise EngineError(
            f"{other.where}: found the response {new} to the prompt that {first.where} answers "
            f"with {old}, expected one response a prompt of all stores"
        )

    def answer(self, conversations: Sequence[Sequence[Message]], sampling: Sampling) -> list[Reply]:
        """One reply a conversation, in order.

        EngineError where the sampling has choices, and where nothing asked so far has a recording:
        it shows where the nearest one departs from the first prompt.
        """
        if sampling.choices:
            raise EngineError(f"the recordings in {self.path} are texts {NO_CHOICES}")
        prompts = [_prompt(*(message["content"] for message in chat)) for chat in conversations]
        keys = np.frombuffer(b"".join(map(_key, prompts)), dtype="S16")
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
            replies.append(self._replies[self._codes[self._last]])
        return replies

    def _nearest(self, prompts: list[str]) -> str:
        """The sentence on prompts none of which has a recording."""
        asked = prompts[0]

        def shared(recording: Recording) -> int:
            return len(os.path.commonprefix([recording.prompt, asked]))  # noqa: RUF071 (characters)

        near = max(islice(self._recordings(), _LOOKED_AT), key=shared)
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
        """Nothing stays open between calls."""


def _prompt(*turns: str) -> str:
    """A chat as one text: its turns, one to a line, without those that are empty."""
    return "\n".join(turn for turn in turns if turn)


def _key(prompt: str) -> bytes:
    return hashlib.blake2b(prompt.encode(), digest_size=16).digest()


def _find(place: Path) -> list[Path]:
    """The tables and results of a folder (also those further down), one file, or a pattern's."""
    files = sorted(place.rglob("*") if place.is_dir() else place.parent.glob(place.name))
    kinds = (*_TABLES, ".json")
    files = [file for file in files if file.suffix.lower() in kinds and file.name[0] != "."]
    if not files or not files[0].is_file():
        expected = "a .tsv, .csv or .json file, a folder of them, or stores with manifest.json"
        raise EngineError(f"there are no recordings at {place}; expected {expected}")
    return files


def _recorded(file: Path) -> Iterator[Recording]:
    """Those of a delimited table, or of GIEBench's results (no answer: a call that failed)."""
    if file.suffix.lower() in _TABLES:
        delimiter, system, user, needed = _TABLES[file.suffix.lower()]
        for line, row in read_table(file, needed, delimiter).to_dict("index").items():
            prompt = _prompt(row.get(system, ""), row[user])
            yield Recording(at(file, line), prompt, Reply(row["response"], STOP))
        return
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


def _stores(place: Path, designs: Sequence[Design]) -> list[tuple[Store, Design]]:
    """The stores in a folder that answered one of these designs, in the order of their paths."""
    files = sorted(place.rglob("manifest.json")) if place.is_dir() else []
    if not files:
        return []
    if not designs:
        raise EngineError(f"{files[0].parent} is a store; its design is needed for its prompts")
    here = [(design.fingerprint, len(design)) for design in designs]
    matching, there = [], []
    for file in files:
        manifest = read_manifest(file)
        there.append((manifest.get("prompts"), manifest.get("trials")))
        if there[-1] in here and "sampling_choices" not in manifest:  # whose texts no model wrote
            matching.append((Store(file.parent, manifest), designs[here.index(there[-1])]))
    if not matching:
        found, expected = (
            " or ".join(dict.fromkeys(f"{str(prompts)[:16]} ({n} trials)" for prompts, n in pairs))
            for pairs in (there, here)
        )
        raise EngineError(
            f"{place} holds answers to prompts {found}, expected {expected}: the design has "
            "another corpus, size, setting or wording"
        )
    return matching


def _stored(store: Store, design: Design) -> Iterator[Recording]:
    """A store's recordings in the order of trials; a call that failed is none."""
    columns = ("trial", "text", "finish_reason")
    for shard, table, damaged in store.tables(range(store.shards), columns):
        if damaged:
            raise StoreError(f"{damaged[0]} is damaged; ask its trials again first")
        for trial, text, reason in zip(*table.to_pydict().values(), strict=True) if table else ():
            if text is not None:
                turns = (message["content"] for message in design[trial].messages)
                where = f"{store.path(shard)}, trial {trial}"
                yield Recording(where, _prompt(*turns), Reply(text, reason))
