"""The batches of a store, on disk: which trials were sent together, and under which id.

Before a batch is created, its trials are written to ``batches.json`` beside the journal. They stand
under a name that each request of the batch has in its ``custom_id``. The provider's id is written
as soon as the batch is created. So after a kill at any moment the next run finds the batch
(`ingroup.inference.batches`).

A trial is struck out when its answer was read. A reply is then in the journal, and a call that
failed is to be sent anew.
"""

import json
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from ingroup.inference import shards
from ingroup.inference.shards import StoreError


@dataclass(frozen=True)
class Submission:
    """Trials of one batch that were sent, or were about to be, and were not read yet.

    ``max_tokens`` is the limit of each reply, and ``sent`` the time in seconds since 1970. ``file``
    is the provider's id of the uploaded requests, "" if none were uploaded. ``batch`` is the
    provider's id of the batch, "" if it is not known, e.g. after a kill.
    """

    name: str
    trials: Sequence[int]
    max_tokens: int
    sent: float
    file: str = ""
    batch: str = ""

    def custom_id(self, trial: int) -> str:
        """Name one request.

        Parameters
        ----------
        trial : int
            The trial's number.

        Returns
        -------
        str
            A name that no request of another batch has.
        """
        return f"{self.name}-{trial}"

    def trial(self, custom_id: str) -> int | None:
        """Find the trial of a request.

        Parameters
        ----------
        custom_id : str
            The name of a request.

        Returns
        -------
        int or None
            The trial's number, None where the request is not of this batch.
        """
        name, _, number = custom_id.rpartition("-")
        if name != self.name or not number.isdecimal():
            return None
        return int(number)


class Ledger:
    """The batches of one store that were not read yet, by their names.

    Each change is on the disk when its method returns. The file is removed once every batch was
    read. It is one line, checksummed and bound to the store's manifest like a line of the journal.

    Parameters
    ----------
    file : Path
        Where the batches are written, or will be.
    manifest : str
        The hash of the store's manifest.

    Attributes
    ----------
    submissions : dict of Submission
        The batches by their names.

    Raises
    ------
    StoreError
        The file is damaged, or cannot be read or written.
    """

    def __init__(self, file: Path, manifest: str):
        self.file = file
        self.submissions: dict[str, Submission] = {}
        self._manifest = manifest
        if not file.exists():
            return

        try:
            text = shards.checksummed_text(file.read_bytes(), manifest)
        except OSError as error:
            raise StoreError(f"{file} cannot be read: {error.strerror}") from error
        # Going on would send all prompts of these batches again, and they would be billed twice.
        if text is None:
            raise StoreError(
                f"{file} is damaged, and with it which prompts are in batches: put a copy back, or "
                "move it away to ask all of its prompts anew"
            )
        for entry in json.loads(text):
            submission = Submission(**entry)
            self.submissions[submission.name] = submission

    def trials_in_batches(self, trials: Iterable[int]) -> list[int]:
        """List the trials that are in a batch of the ledger.

        Parameters
        ----------
        trials : iterable of int
            Numbers of trials.

        Returns
        -------
        list of int
            The `trials` that are in a batch, in their order.
        """
        sent: set[int] = set()
        for submission in self.submissions.values():
            sent.update(submission.trials)
        return [trial for trial in trials if trial in sent]

    def intend(self, trials: Sequence[int], max_tokens: int) -> Submission:
        """Write down that a batch of these trials is about to be created.

        Parameters
        ----------
        trials : sequence of int
            Numbers of the trials.
        max_tokens : int
            How many tokens a reply may have.

        Returns
        -------
        Submission
            The batch, without ids of the provider.

        Raises
        ------
        StoreError
            The file cannot be written.
        """
        # The name must be new in all stores, as several may have batches under one API key.
        submission = Submission(uuid4().hex, list(trials), max_tokens, time.time())
        self._keep(submission)
        return submission

    def note(self, submission: Submission, **ids: Any) -> Submission:
        """Write down the provider's ids of a batch.

        Parameters
        ----------
        submission : Submission
            The batch as it was known.
        **ids : str
            The new ids, ``file`` or ``batch``.

        Returns
        -------
        Submission
            The batch with these ids.

        Raises
        ------
        StoreError
            The file cannot be written.
        """
        updated = replace(submission, **ids)
        self._keep(updated)
        return updated

    def forget(self, submission: Submission) -> None:
        """Strike out a batch that was never created, or is gone.

        Parameters
        ----------
        submission : Submission
            A batch of this ledger.

        Raises
        ------
        StoreError
            The file cannot be written.
        """
        self.submissions.pop(submission.name, None)
        self._write()

    def drop(self, trials: Collection[int]) -> None:
        """Strike out trials whose answers were read, and batches whose trials were all read.

        Parameters
        ----------
        trials : collection of int
            Numbers of the trials.

        Raises
        ------
        StoreError
            The file cannot be written.
        """
        read_trials = set(trials)
        for submission in list(self.submissions.values()):
            unread = [trial for trial in submission.trials if trial not in read_trials]
            if not unread:
                self.forget(submission)
            elif len(unread) < len(submission.trials):
                self._keep(replace(submission, trials=unread))

    def clear(self) -> None:
        """Strike out all batches, once no trial is missing."""
        if self.submissions:
            self.submissions.clear()
            self._write()

    def _keep(self, submission: Submission) -> None:
        self.submissions[submission.name] = submission
        self._write()

    def _write(self) -> None:
        if self.submissions:
            entries = [asdict(submission) for submission in self.submissions.values()]
            text = json.dumps(entries).encode()
            shards.replace_file(self.file, shards.checksummed_line(text, self._manifest))
        else:
            self.file.unlink(missing_ok=True)


class LedgerTrials(NamedTuple):
    """The trials of the chats that an engine receives, and the store's batches."""

    ledger: Ledger
    trials: Sequence[int]

    @property
    def are_in_batches(self) -> bool:
        """Tell whether batches were created for these trials.

        Returns
        -------
        bool
            True where all of the trials are in a batch. Otherwise none of them is.
        """
        # One trial stands for all, since `generate` asks either covered trials or others.
        return bool(self.ledger.trials_in_batches(self.trials[:1]))
