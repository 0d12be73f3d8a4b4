"""Recorded answers as an engine: each prompt gets the response that a file holds for it."""

import hashlib
import os
import reprlib
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Literal

import numpy as np

from ingroup.design import Design, Message
from ingroup.inference import recordings as recorded
from ingroup.inference.engine import FAILED, EngineError, Reply, Sampling
from ingroup.inference.recordings import Recording, prompt_text

NO_RECORDING = Reply(None, FAILED, error="no recording")

_LOOKED_AT = 100_000  # recordings among which the nearest one is sought


class ReplayEngine:
    """Answers from recordings; a prompt without one is a failed call and listed, never invented.

    A prompt is its turns, one to a line: ``system + "\\n" + user``, or the user turn alone. Of
    prompts only hashes are kept, and each distinct response once: 29 bytes a recording.
    Sampling is ignored, as the recordings were drawn long ago.

    Parameters
    ----------
    recordings : path
        A file, or a folder whose files (also those further down) are read in the order of their
        names. ``.tsv`` has the columns ``system_prompt``, ``user_input`` and ``response`` (Hou et
        al.); ``.csv`` has ``prompt``, ``response`` and, if there was one, ``system``; ``.json`` is
        an object of objects with ``prompt`` and ``answer`` (GIEBench; without an answer the call
        had failed). Other columns and keys are not read; an empty cell is an empty answer. A
        folder with ``manifest.json``, here or further down, is a store of this project, finished
        or not.
    model : str, optional
        The model that gave the answers, e.g. its name on the hub; a store knows its own.
    designs : sequence of ingroup.design.Design
        The whole designs that stores answered, as shards hold trials and no prompts; stores of
        other designs are left out. Other recordings do not use them.
    loose : bool
        Read any white space in a prompt as one space, for recordings whose turns or lines were
        joined in another way.
    repeats : {"refuse", "in order"}
        What happens where a prompt stands more than once, with different responses: an error, or
        each asking gets the next recording behind the one given last, from the start again where
        there is none. Asked in the order of the recordings, each trial then gets its own; a store
        is always read so, but two of them must not differ.

    Attributes
    ----------
    unmatched : list of str
        Prompts that were asked and have no recording, in the order of asking.

    Raises
    ------
    EngineError
        Where a file is not what its name says (naming the line or key), there is no recording at
        all, stores answered none of the designs or come from several models.
    """

    asks_again = False

    def __init__(
        self,
        recordings: str | Path,
        model: str | None = None,
        *,
        designs: Sequence[Design] = (),
        loose: bool = False,
        repeats: Literal["refuse", "in order"] = "refuse",
    ):
        if repeats not in ("refuse", "in order"):
            raise EngineError(f"repeats is {repeats!r}, expected 'refuse' or 'in order'")
        self.path, self.model = Path(recordings), model
        self.loose, self.repeats = loose, repeats
        self._stores = recorded.stores(self.path, designs)
        if self._stores:
            self.repeats, self.model = "in order", self._stores_model(model)
            self._files = [file for store in self._stores for file in store.files]
        else:
            self._files = recorded.find(self.path)
        if not self.model:
            raise EngineError(f"the model that gave the answers in {self.path} has to be named")
        self.unmatched: list[str] = []
        self._last = -1  # the recording that was given last
        self._load()

    def _stores_model(self, expected: str | None) -> str | None:
        models = {store.manifest.get("model"): store.folder for store in self._stores}
        for found, folder in models.items():
            expected = expected or found
            if found != expected:
                raise EngineError(f"{folder} holds answers of {found!r}, not of {expected!r}")
        return expected

    def _sources(self) -> Iterator[Iterator[Recording]]:
        """The recordings of each store, or all at once where there is none."""
        if not self._stores:
            yield recorded.read(self._files)
        for store in self._stores:
            yield store.read()

    def _read(self) -> Iterator[Recording]:
        return chain.from_iterable(self._sources())

    def _load(self) -> None:
        keys, codes, replies, ends = bytearray(), array("i"), {}, []
        for source in self._sources():
            for recording in source:
                keys += self._key(recording.prompt)
                codes.append(replies.setdefault(recording.reply, len(replies)))
            ends.append(len(codes))
        if not codes:
            raise EngineError(f"{self.path} holds no recording")
        unsorted = np.frombuffer(keys, dtype="S16")
        self._order = np.argsort(unsorted, kind="stable")
        self._keys = unsorted[self._order]
        self._codes = np.frombuffer(codes, dtype=np.int32)
        self._replies = list(replies)
        self._used = np.zeros(len(codes), dtype=bool)
        if self.repeats == "refuse" or len(ends) > 1:
            self._refuse_repeats(np.array(ends))

    def _refuse_repeats(self, ends: np.ndarray) -> None:
        """No prompt may have two responses; in order, none that several stores answer.

        ``ends`` are the numbers of recordings up to and with each source.
        """
        same = self._keys[1:] == self._keys[:-1]
        differs = same & (np.diff(self._codes[self._order]) != 0)
        if self.repeats == "in order":
            prompt = np.cumsum(np.append(True, ~same))[1:]
            source = np.searchsorted(ends, self._order, side="right")
            differs &= np.isin(prompt, prompt[same & (np.diff(source) != 0)])
        if not differs.any():
            return
        pairs = np.column_stack([self._order[:-1], self._order[1:]])[differs]
        there, here = (
            next(islice(self._read(), number, None))
            for number in pairs[pairs[:, 1].argmin()].tolist()
        )
        way_out = "of all stores" if self._stores else "(or repeats='in order')"
        raise EngineError(
            f"{here.where}: found the response {reprlib.repr(here.reply.text)} to the prompt that "
            f"{there.where} answers with {reprlib.repr(there.reply.text)}, expected one response "
            f"a prompt {way_out}"
        )

    def _text(self, prompt: str) -> str:
        return " ".join(prompt.split()) if self.loose else prompt

    def _key(self, prompt: str) -> bytes:
        return hashlib.blake2b(self._text(prompt).encode(), digest_size=16).digest()

    def answer(self, conversations: Sequence[Sequence[Message]], sampling: Sampling) -> list[Reply]:
        """One reply a conversation, in order; see :class:`ingroup.inference.engine.Engine`.

        Raises
        ------
        EngineError
            Where nothing of this call has a recording and nothing had one before; the message
            shows where the nearest recording departs from the first prompt. Where the sampling
            asks for log-probabilities.
        """
        if sampling.logprobs:
            raise EngineError(
                f"the recordings in {self.path} hold no log-probabilities; ask without them, or "
                "ask the model itself"
            )
        prompts = [prompt_text(*(message["content"] for message in chat)) for chat in conversations]
        keys = np.frombuffer(b"".join(map(self._key, prompts)), dtype="S16")
        lows = np.searchsorted(self._keys, keys, side="left")
        highs = np.searchsorted(self._keys, keys, side="right")
        if prompts and self._last < 0 and (lows == highs).all():
            raise EngineError(self._nearest(prompts))
        replies = []
        for prompt, low, high in zip(prompts, lows, highs, strict=True):
            if low == high:
                self.unmatched.append(prompt)
                replies.append(NO_RECORDING)
                continue
            same = self._order[low:high]
            self._last = int(same[np.searchsorted(same, self._last, side="right") % len(same)])
            self._used[self._last] = True
            replies.append(self._replies[self._codes[self._last]])
        return replies

    def _nearest(self, prompts: list[str]) -> str:
        asked = self._text(prompts[0])

        def shared(text: str) -> int:
            return len(os.path.commonprefix([text, asked]))  # noqa: RUF071 (characters are meant)

        near = max(islice(self._read(), _LOOKED_AT), key=lambda r: shared(self._text(r.prompt)))
        there = self._text(near.prompt)
        at = shared(there)
        found, expected = (text[max(at - 20, 0) : at + 20] for text in (there, asked))
        return (
            f"none of {len(prompts)} prompts has a recording in {self.path}; {near.where} comes "
            f"nearest to the first and departs from it at character {at + 1}: found {found!r}, "
            f"expected {expected!r} (loose=True takes any white space for the same)"
        )

    @property
    def used(self) -> int:
        """Number of recordings that were given as an answer."""
        return int(self._used.sum())

    @property
    def unused(self) -> int:
        """Number of recordings that were not asked for."""
        return len(self._used) - self.used

    def identity(self) -> dict[str, str]:
        """Engine, model, files, SHA-256 over their contents, and how prompts are matched."""
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
            "matching": "loose" if self.loose else "exact",
            "repeats": self.repeats,
        }

    def close(self) -> None:
        """Nothing stays open between calls."""
