"""Recorded answers as an engine: each prompt gets the response that a file holds for it.

Files are read to recordings, prompts are matched with recordings, and ambiguous matches are
refused.
"""

import hashlib
import os
import re
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np

from ingroup.design import Design, Message
from ingroup.inference import recordings
from ingroup.inference.engine import (
    FAILED,
    NO_PROBABILITIES,
    SCORING_ADVICE,
    Engine,
    EngineError,
    Reply,
    Sampling,
)
from ingroup.inference.reasoning import split_reply
from ingroup.inference.recordings import Recording

NO_RECORDING = Reply(None, FAILED, error="no recording")

_N_CANDIDATES = 100_000  # recordings among which an error's nearest recording is sought
_TRIALS_PER_PART = 4_096  # trials whose prompts are made at once
_KEY_TYPE = "S16"


class Origin(NamedTuple):
    """Origin of a recording: its file, and the entries of its row."""

    file: Path
    round: int
    category: str
    draft: int


class ReplayEngine(Engine):
    """Answers from recordings. A prompt without a recording is a failed call, never invented.

    A prompt is its turns, one to a line: ``system + "\\n" + user``, or the user turn alone.
    Sampling is ignored.

    Parameters
    ----------
    place : str or Path
        A file, a pattern, or a folder whose files (also those further down) are read in the order
        of their names. ``.tsv`` and ``.csv`` have the columns ``system_prompt``, ``user_input`` and
        ``response`` (Hou et al.), ``Questionnaire`` and ``Answer`` (StereoMap), or ``prompt``,
        ``response`` and perhaps ``system``. ``.json`` is an object of objects with ``prompt`` and
        ``answer`` (GIEBench), and ``.eval`` is a log of inspect_ai. The case of a column's name
        does not matter. An empty cell is an empty answer. In StereoMap's layout it is a failed
        call, and so is an item of GIEBench without an answer.
    model : str
        The model that gave the answers.

    Raises
    ------
    EngineError
        There is no recording, or a log and no inspect_ai to read it.
    InputError
        A file's content is not of the kind that its name says (naming the line or key).

    Notes
    -----
    A column ``round`` or ``run`` says which repetition a row is, from 1. A log has epochs. Without
    the column, StereoMap's files whose names count (:func:`~.recordings.rounds_of_files`) are a
    round each. In its other files further rows of a prompt are further rounds. All else is of the
    first round.
    Drafts stand in StereoMap's columns ``Choice_0``, ``Choice_1`` and so on. Where there are n
    rounds, the first drafts are n further rounds, and the second drafts are again n. A draft that
    repeats ``Answer`` is left out.

    A column ``category`` says which category of the study a row is of. Without it the name of the
    file does, if it has a word of the category's, in the singular or plural. Where a category has
    recordings of its own, its prompts get no others. Where it has none, they get the recordings
    without a category.

    Where one prompt has several different replies in one round and category, each trial gets its
    own, in the order of the file, if as many trials ask as are recorded. Anything else is refused
    (:meth:`assign_recordings`).
    """

    asks_again = False

    def __init__(self, place: str | Path, model: str):
        self.path = Path(place)
        self.model = model
        self._files = recordings.find_files(self.path)
        self._rounds_of_files = recordings.rounds_of_files(self._files)
        self._read()
        self.select_recordings(1)

    # ---- read ------------------------------------------------------------------------------------

    def _read(self) -> None:
        """Keep each recording as a key of its prompt and numbers of its reply and its origin."""
        keys = bytearray()
        reply_numbers = array("i")
        origin_numbers = array("i")
        replies: dict[Reply, int] = {}
        origins: dict[Origin, int] = {}
        for file, recording in self._all_recordings():
            keys += _key(recording.prompt)
            # Many replies are one of a few numbers, so each is kept once.
            reply_number = replies.setdefault(recording.reply, len(replies))
            reply_numbers.append(reply_number)

            origin = Origin(file, recording.round, recording.category, recording.draft)
            origin_number = origins.setdefault(origin, len(origins))
            origin_numbers.append(origin_number)

        if all(reply.text is None for reply in replies):
            raise EngineError(f"{self.path} holds no recorded answer, expected at least one")

        unsorted = np.frombuffer(keys, dtype=_KEY_TYPE)
        # Recordings of one prompt stay in the order of the files, in which trials get them.
        order = np.argsort(unsorted, kind="stable")
        self._by_key = order.astype(np.int32)
        self._keys = unsorted[self._by_key]

        self._reply_of = np.asarray(reply_numbers)
        self._origin_of = np.asarray(origin_numbers)
        self._replies = [split_reply(reply) for reply in replies]
        self._origins = list(origins)
        # A draft has the round of its answer here; `_round_of` counts drafts behind these rounds.
        self._n_rounds = max(origin.round for origin in origins)
        self._used = np.zeros(len(unsorted), dtype=bool)
        self._settled: dict[tuple, dict[int, list[int]]] = {}

    def _all_recordings(self) -> Iterator[tuple[Path, Recording]]:
        """Yield all recordings, in the order of the files, each with its file."""
        for file in self._files:
            for recording in recordings.read_recordings(file, self._rounds_of_files.get(file)):
                yield file, recording

    def _recording(self, number: int) -> Recording:
        """Read a recording again, by its number."""
        return next(islice(self._all_recordings(), number, None))[1]

    # ---- match -----------------------------------------------------------------------------------

    def select_recordings(
        self, number: int, category: str = "", others: Iterable[str] = ()
    ) -> bool:
        """Select the recordings of a round and a category, from which the engine answers from now.

        Parameters
        ----------
        number : int
            The round, from 1.
        category : str, optional
            One of the study's.
        others : iterable of str, optional
            All categories of the study, whose recordings no other category gets.

        Returns
        -------
        bool
            Whether there are any recordings of the round and the category.
        """
        self.round = number
        self.category = category
        is_open_origin = self._open_origins(others)
        origin_of = self._origin_of[self._by_key]
        is_open = is_open_origin[origin_of]
        # The open recordings, those of this round and category, are in the order of their keys.
        self._open = self._by_key[is_open]
        self._open_keys = self._keys[is_open]
        self._several = self._differing_recordings()
        self._trials: dict[int, list[int]] = {}
        return len(self._open) > 0

    def _open_origins(self, others: Iterable[str]) -> np.ndarray:
        """Make a mask of the origins from which the engine answers now.

        These are the origins of its round and its category. If no recording is of its category,
        these are the origins of its round that name none of the study's categories.
        """
        words = _words(self.category)
        words_of_others = set().union(*map(_words, others))
        of_round = np.zeros(len(self._origins), dtype=bool)
        of_category = np.zeros(len(self._origins), dtype=bool)
        of_another = np.zeros(len(self._origins), dtype=bool)
        for number, origin in enumerate(self._origins):
            named = self._category_words(origin)
            of_round[number] = self._round_of(origin) == self.round
            of_category[number] = not words.isdisjoint(named)
            of_another[number] = not words_of_others.isdisjoint(named)

        if of_category.any():
            return of_round & of_category
        return of_round & ~of_another

    def _round_of(self, origin: Origin) -> int:
        """Return the round of a recording. Drafts follow all rounds of answers."""
        return origin.round + origin.draft * self._n_rounds

    def _category_words(self, origin: Origin) -> set[str]:
        """Return the words that may name a recording's category.

        They come from its row, or else from its file's name.
        """
        if origin.category:
            return _words(origin.category)
        name = origin.file.name
        if self.path.is_dir():
            name = str(origin.file.relative_to(self.path))
        return _words(name)

    def _find(self, prompts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Find where the open recordings of each prompt begin and end, in the order of the keys."""
        joined = b"".join(map(_key, prompts))
        keys = np.frombuffer(joined, dtype=_KEY_TYPE)
        begins = np.searchsorted(self._open_keys, keys, side="left")
        ends = np.searchsorted(self._open_keys, keys, side="right")
        return begins, ends

    def match(
        self, conversations: Sequence[Sequence[Message]], trials: Sequence[int] | None = None
    ) -> list[int]:
        """Find the recording of each chat.

        Parameters
        ----------
        conversations : sequence
            The chats, each a sequence of turns.
        trials : sequence of int, optional
            The trials of the chats, by number in the design given to :meth:`assign_recordings`.

        Returns
        -------
        list of int
            Numbers of recordings, -1 for a chat without one.

        Raises
        ------
        EngineError
            If nothing asked so far has a recording. The error shows where the nearest recording
            departs from the first prompt. Also for a prompt with several different replies, if its
            trial is not given.
        """
        prompts = [_prompt(chat) for chat in conversations]
        begins, ends = self._find(prompts)
        if prompts and not self._used.any() and (begins == ends).all():
            raise EngineError(self._no_match_message(prompts))

        trials_or_none = [None] * len(prompts) if trials is None else trials
        numbers = []
        for trial, begin, end in zip(trials_or_none, begins, ends, strict=True):
            if begin == end:
                numbers.append(-1)
                continue

            recordings_of_prompt = self._open[begin:end]
            if begin in self._several:
                position = self._position(begin, trial)
                recordings_of_prompt = recordings_of_prompt[position : position + 1]
            # One reply that was recorded several times answers each time.
            self._used[recordings_of_prompt] = True
            numbers.append(int(recordings_of_prompt[0]))
        return numbers

    def complete(self, numbers: Sequence[int], sampling: Sampling) -> list[Reply]:
        """Return the replies of recordings that `match` found.

        Parameters
        ----------
        numbers : sequence of int
            Numbers of recordings, -1 for a failed call.
        sampling : Sampling
            The sampling. It matters only whether it has choices.

        Returns
        -------
        list of Reply
            One reply per number.

        Raises
        ------
        EngineError
            If the sampling has choices.
        """
        if sampling.choices:
            found = f"the recordings in {self.path} are texts with {NO_PROBABILITIES}"
            raise EngineError(f"{found}: {SCORING_ADVICE}")

        replies = []
        for number in numbers:
            if number < 0:
                replies.append(NO_RECORDING)
            else:
                reply_number = self._reply_of[number]
                replies.append(self._replies[reply_number])
        return replies

    def answer(self, conversations: Sequence[Sequence[Message]], sampling: Sampling) -> list[Reply]:
        """Return one reply to each conversation, in order.

        Parameters
        ----------
        conversations : sequence
            The chats, each a sequence of turns.
        sampling : Sampling
            The sampling. It matters only whether it has choices.

        Returns
        -------
        list of Reply
            One reply per conversation. A prompt without a recording is a failed call.

        Raises
        ------
        EngineError
            As :meth:`match` and :meth:`complete`.
        """
        if sampling.choices:
            return self.complete((), sampling)
        return self.complete(self.match(conversations), sampling)

    # ---- refuse ----------------------------------------------------------------------------------

    def _differing_recordings(self) -> dict[int, np.ndarray]:
        """Find the open recordings of each prompt whose replies differ.

        Their key is the position of the prompt's first recording among the open recordings.
        """
        keys = self._open_keys
        if len(keys) == 0:
            return {}

        # The keys are sorted, so each prompt's recordings stand together.
        begins_anew = np.append(True, keys[1:] != keys[:-1])
        begins = np.flatnonzero(begins_anew)
        ends = np.append(begins[1:], len(keys))
        reply_numbers = self._reply_of[self._open]
        # A prompt's replies differ where the smallest and the largest of their numbers do.
        least = np.minimum.reduceat(reply_numbers, begins)
        most = np.maximum.reduceat(reply_numbers, begins)

        differing = {}
        for index in np.flatnonzero(least != most):
            begin = int(begins[index])
            differing[begin] = self._open[begin : ends[index]]
        return differing

    def assign_recordings(self, design: Design) -> None:
        """Assign different replies to one prompt to the trials of a design that ask this prompt.

        The trials of a prompt get its recordings in order.

        Parameters
        ----------
        design : Design
            The design whose trials are asked next.

        Raises
        ------
        EngineError
            The recordings are in several files, or the number of trials is not the number of
            recordings. The error names two recordings.
        """
        # `ingroup.inference.job.ask` comes here twice for each job: to refuse, then to answer.
        key = (self.round, self.category, design.fingerprint)
        if key not in self._settled:
            asking = self._trials_by_prompt(design)
            for begin, trials in asking.items():
                differing = self._several[begin]
                n_files = len(self._files_of(differing))
                if n_files > 1 or len(trials) != len(differing):
                    self._refuse(begin, len(trials))
            self._settled[key] = asking
        self._trials = self._settled[key]

    def _trials_by_prompt(self, design: Design) -> dict[int, list[int]]:
        """Find the trials that ask each prompt with several different replies."""
        if not self._several:
            return {}

        asking: dict[int, list[int]] = {}
        for start in range(0, len(design), _TRIALS_PER_PART):
            stop = min(start + _TRIALS_PER_PART, len(design))
            trials = range(start, stop)
            prompts = [_prompt(design[trial].messages) for trial in trials]
            begins, ends = self._find(prompts)
            for trial, begin, end in zip(trials, begins, ends, strict=True):
                if begin < end and begin in self._several:
                    trials_of_prompt = asking.setdefault(int(begin), [])
                    trials_of_prompt.append(trial)
        return asking

    def _files_of(self, numbers: Sequence[int] | np.ndarray) -> set[Path]:
        """Return the files that hold these recordings."""
        origins = self._origin_of[np.asarray(numbers)]
        return {self._origins[origin].file for origin in origins}

    def _position(self, begin: int, trial: int | None) -> int:
        """Return which of a prompt's recordings a trial gets, from 0. Refuse an unsettled trial."""
        asking = self._trials.get(begin, [])
        if trial not in asking:
            self._refuse(begin, 1)
        return asking.index(trial)

    def _refuse(self, begin: int, n_trials: int) -> NoReturn:
        """Raise an EngineError that names two recordings of one prompt whose replies differ."""
        numbers = self._several[begin]
        first = numbers[0]
        differs = self._reply_of[numbers] != self._reply_of[first]
        others = numbers[differs]
        other = others[0]
        file_of_first = self._files_of([first])
        # A pair from two files is named if there is one, as mixed files are the likelier mistake.
        for number in others:
            if self._files_of([number]) != file_of_first:
                other = number
                break

        recording = self._recording(first)
        conflict = self._recording(other)
        trials_ask = "one trial asks" if n_trials == 1 else f"{n_trials} trials ask"
        found = (
            "two replies to one prompt of one repetition "
            f"({_quoted_beginning(recording.reply)} and {_quoted_beginning(conflict.reply)}) "
            f"where {trials_ask} for {len(numbers)} recordings"
        )
        expected = (
            "as many in one file, or what tells them apart: a column run or category, files with a "
            "word of their category in the name (religion_1.tsv) or numbered by run from 0 or 1 "
            "without a gap, or one model's files alone (RECORDINGS=<pattern>)"
        )
        raise EngineError(
            f"{recording.where}, and {conflict.where}: found {found}, expected {expected}"
        )

    def _no_match_message(self, prompts: list[str]) -> str:
        """Write that no prompt has a recording, and where the nearest recording differs."""
        first = prompts[0]

        def n_shared(recording: Recording) -> int:
            return len(os.path.commonprefix([recording.prompt, first]))  # noqa: RUF071 (characters)

        # The search takes part of the recordings, as there may be millions.
        candidates = islice(self._all_recordings(), _N_CANDIDATES)
        near = max((recording for _, recording in candidates), key=n_shared)
        none = f"none of {len(prompts)} prompts has a recording in {self.path}"
        if near.prompt == first:
            return (
                f"{none} that is of round {self.round} and category {self.category!r}; "
                f"{near.where} holds the first, of another round or category"
            )

        length = n_shared(near)
        window = slice(max(length - 20, 0), length + 20)
        found = near.prompt[window]
        expected = first[window]
        return (
            f"{none}; {near.where} comes nearest to the first and departs from it "
            f"at character {length + 1}: "
            f"found {found!r}, expected {expected!r}"
        )

    # ---- what every engine has -------------------------------------------------------------------

    def identity(self) -> dict[str, str]:
        """Name engine, model, files and the SHA-256 over their names and contents.

        Returns
        -------
        dict of str
            The names by entry of a store's manifest.
        """
        digest = hashlib.sha256()
        for file in self._files:
            digest.update(file.name.encode())
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        return {
            "engine": "replay",
            "model": self.model,
            "files": _file_names(self._files),
            "revision": digest.hexdigest(),
        }

    def close(self) -> None:
        """Print how many recordings no prompt used, if any recording was used."""
        total = len(self._used)
        used = int(self._used.sum())
        unused = total - used
        if used > 0 and unused > 0:
            drafts = self._rounds_of_drafts()
            print(
                f"{unused:,} of {total:,} recordings in {self.path} answer no prompt that "
                f"was asked now{drafts}",
                file=sys.stderr,
            )

    def _rounds_of_drafts(self) -> str:
        """Write which rounds are drafts, as the end of a sentence, "" without drafts."""
        most = max(origin.draft for origin in self._origins)
        if most == 0:
            return ""
        last = self._n_rounds * (1 + most)
        return f"; drafts are the rounds {self._n_rounds + 1} to {last} (ROUNDS={last} asks all)"


def _file_names(files: Sequence[Path]) -> str:
    """List the names of files, or only the first and the last of more than 8 files."""
    names = [file.name for file in files]
    if len(names) > 8:
        return f"{names[0]} to {names[-1]}"
    return ", ".join(names)


def _prompt(chat: Sequence[Message]) -> str:
    """Write a chat as the text by which prompts are compared."""
    return recordings.as_text(*(message["content"] for message in chat))


def _key(prompt: str) -> bytes:
    """Compute the digest of a prompt, in the 16 bytes of `_KEY_TYPE`."""
    content = prompt.encode()
    return hashlib.blake2b(content, digest_size=16).digest()


def _words(text: str) -> set[str]:
    """Find the words that can name a category, in the singular: two for "Races or ethnicities"."""
    words = set()
    # A capital letter begins a word, too: "RaceOrigin" has two.
    for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", text):
        singular = re.sub(r"ies$", "y", word.lower())
        words.add(singular.removesuffix("s"))
    return words - {"or"}


def _quoted_beginning(reply: Reply) -> str:
    """Quote the beginning of a reply, for a sentence."""
    if reply.text is None:
        return "a failed call"
    if len(reply.text) <= 30:
        return repr(reply.text)
    return repr(f"{reply.text[:30]}...")
