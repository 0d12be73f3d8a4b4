"""Calls that go through a provider's batch API. A run finds the batches of a killed run again.

inspect_ai makes the requests and reads the replies. This module sends the batches, because
inspect_ai keeps its own batches in memory alone, and loses a whole batch where one request failed.
The store's ledger (`ingroup.inference.ledger`) holds on disk which trials are in which batch.
"""

import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import httpx2
from anyio import Event, sleep
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt
from tqdm import tqdm

from ingroup.inference.engine import EngineError
from ingroup.inference.ledger import Ledger, LedgerTrials, Submission
from ingroup.inference.server_responses import (
    Unanswered,
    UnusableAnswer,
    causes_of,
    line_without_keys,
    normalise,
    pause_seconds,
    status_of,
)

TICK = 15.0  # seconds from one look at a batch to the next
LOOK_ATTEMPTS = 240  # to ask for the state of a batch: an hour without a network
ATTEMPTS = 6  # to create a batch, where the provider refuses it for now
MOST_REQUESTS = 50_000  # in one batch: the smallest limit of the providers
MOST_BYTES = 180_000_000  # in one batch: the smallest limit of the providers
LAG = 60.0  # seconds until a provider's list surely has a batch that was created
SKEW = 3_600.0  # seconds between our time of sending and the provider's time of creation, at most
REQUEST_MARK = "x-irid"  # inspect_ai's header
# Anthropic's types of errors, as HTTP says them.
STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}

CURRENT_TRIAL: ContextVar[int] = ContextVar("trial")  # the trial whose call is made


# The batch APIs of the providers


class BatchState(NamedTuple):
    """State of a batch, and the reason why it has no replies ("" unless it ended without any)."""

    ended: bool
    problem: str = ""


UNKNOWN = BatchState(True, "the provider does not know it")


class Provider(Protocol):
    """A batch API."""

    async def upload(self, name: str, requests: Mapping[str, dict]) -> str:
        """Bring requests to the provider.

        Parameters
        ----------
        name : str
            The name of the file at the provider.
        requests : mapping of dict
            The body of each request, by its custom id.

        Returns
        -------
        str
            The provider's id of the file, "" where requests go along with :meth:`create`.
        """

    async def create(self, file: str, requests: Mapping[str, dict], headers: Mapping) -> str:
        """Create a batch.

        Parameters
        ----------
        file : str
            The id that :meth:`upload` returned.
        requests : mapping of dict
            The body of each request, by its custom id.
        headers : mapping of str
            Headers that the requests would have had one by one.

        Returns
        -------
        str
            The provider's id of the batch.
        """

    async def has_file(self, file: str) -> bool:
        """Tell whether the provider has an uploaded file.

        Parameters
        ----------
        file : str
            The id that :meth:`upload` returned.

        Returns
        -------
        bool
            False where it has none. A file that was uploaded with the key of another project counts
            as none.
        """

    async def find(self, submission: Submission, others: Collection[str]) -> str:
        """Find the id of a batch that may have been created.

        Parameters
        ----------
        submission : Submission
            The trials that were sent, or were about to be.
        others : collection of str
            Ids of other batches.

        Returns
        -------
        str
            The id, "" where no batch was created.
        """

    async def check(self, batch: str) -> BatchState:
        """Ask for the state of a batch.

        Parameters
        ----------
        batch : str
            The provider's id of the batch.

        Returns
        -------
        BatchState
            Whether the batch has ended and, if it ended without replies, why.
        """

    def results(self, batch: str) -> AsyncIterator[tuple[str, Any]]:
        """Read the answers of a batch that has ended.

        Parameters
        ----------
        batch : str
            The provider's id of the batch.

        Yields
        ------
        tuple of str and object
            A custom id, with the client's object of the answer or an exception.
        """


class OpenAIBatches:
    """OpenAI's Batch API, as OpenAI and compatible servers speak it.

    Parameters
    ----------
    client : AsyncOpenAI
        OpenAI's own client.
    """

    def __init__(self, client: Any):
        self.client = client

    async def upload(self, name: str, requests: Mapping[str, dict]) -> str:
        endpoint = self._endpoint(requests)
        lines = []
        for custom_id, body in requests.items():
            line = {"custom_id": custom_id, "method": "POST", "url": endpoint, "body": body}
            lines.append(json.dumps(line).encode() + b"\n")

        content = (f"{name}.jsonl", b"".join(lines))
        file = await self.client.files.create(file=content, purpose="batch")
        return file.id

    async def create(self, file: str, requests: Mapping[str, dict], headers: Mapping) -> str:
        batch = await self.client.batches.create(
            input_file_id=file,
            endpoint=self._endpoint(requests),
            completion_window="24h",
            extra_headers=headers,
        )
        return batch.id

    def _endpoint(self, requests: Mapping[str, dict]) -> str:
        first = next(iter(requests.values()))
        # inspect_ai asks some models through the Responses API, whose bodies alone have an "input".
        # A batch has one endpoint.
        return "/v1/responses" if "input" in first else "/v1/chat/completions"

    async def has_file(self, file: str) -> bool:
        try:
            await self.client.files.retrieve(file)
        except Exception as error:
            if _first_status(error) != 404:
                raise
            return False
        return True

    async def find(self, submission: Submission, others: Collection[str]) -> str:
        # The batch was never created: a batch is made of an uploaded file, whose id is noted first.
        if not submission.file:
            return ""
        async for batch in self.client.batches.list(limit=100):
            # Each submission uploads a file of its own, so the file's id tells its batch from all
            # others.
            if batch.input_file_id == submission.file:
                return batch.id
        return ""

    async def check(self, batch: str) -> BatchState:
        record = await self.client.batches.retrieve(batch)
        if record.status == "failed":
            errors = record.errors.data if record.errors else None
            reasons = [error.message or error.code or "" for error in errors or ()]
            return BatchState(True, reasons[0] if reasons else "it failed")
        if record.status not in ("completed", "expired", "cancelled"):
            return BatchState(False)

        # A batch that expired or was cancelled half way still has replies, which are paid for and
        # read.
        has_results = record.output_file_id or record.error_file_id
        return BatchState(True, "" if has_results else f"it is {record.status}, without replies")

    async def results(self, batch: str) -> AsyncIterator[tuple[str, Any]]:
        record = await self.client.batches.retrieve(batch)
        # Replies that succeeded are in one file and those that failed in another; either may be
        # missing.
        files = [file for file in (record.output_file_id, record.error_file_id) if file]
        n_read = 0
        for file in files:
            try:
                content = await self.client.files.content(file)
                lines = (await content.aread()).split(b"\n")
            except Exception as error:
                is_gone = _first_status(error) == 404
                none_is_left = file == files[-1] and n_read == 0
                # One of two files may be gone, and then its requests alone are asked again.
                if not is_gone or none_is_left:
                    raise
                continue

            n_read += 1
            for line in lines:
                try:
                    entry = json.loads(line)
                    yield entry["custom_id"], self._answer(entry)
                except (ValueError, LookupError, TypeError, AttributeError):
                    # A damaged line leaves its request without an answer, so that it is asked
                    # again.
                    continue

    def _answer(self, entry: Mapping[str, Any]) -> Any:
        """Convert one line to the client's answer. A failed request gives the error, not raised."""
        from openai.types.chat import ChatCompletion
        from openai.types.responses import Response

        response = entry.get("response")
        # The batch expired, or was cancelled, before this request had its turn.
        if not response:
            error = entry.get("error") or {}
            return Unanswered(f"{error.get('code')}: {error.get('message')}")

        body = response["body"]
        status = response["status_code"]
        if status != 200:
            return _status_error(self.client, status, body)
        kind = Response if "output" in body else ChatCompletion
        return kind.construct(**normalise(body))


class AnthropicBatches:
    """Anthropic's Message Batches.

    Parameters
    ----------
    client : AsyncAnthropic
        Anthropic's own client.
    """

    def __init__(self, client: Any):
        self.client = client

    async def upload(self, name: str, requests: Mapping[str, dict]) -> str:
        # There is no file to upload: the requests go along when the batch is created.
        return ""

    async def create(self, file: str, requests: Mapping[str, dict], headers: Mapping) -> str:
        entries = [{"custom_id": name, "params": params} for name, params in requests.items()]
        batches = self.client.messages.batches
        batch = await batches.create(requests=entries, extra_headers=headers)
        return batch.id

    async def has_file(self, file: str) -> bool:
        # There are no files at Anthropic whose presence could be asked for.
        return False

    async def find(self, submission: Submission, others: Collection[str]) -> str:
        """Find a submission's batch by the names in its results, "" without such a batch.

        The names are in the results alone, so this waits until each batch of the submission's size
        and time has ended.
        """
        for batch in await self._candidates(submission, others):
            candidate = replace(submission, batch=batch)
            state = await _state_of(self, candidate)
            if not state.ended:
                _say(f"batch {batch} may be of an earlier run that was killed: it is waited for")
            # Results, which alone have names, can be read once a batch has ended.
            while not state.ended:
                await sleep(TICK)
                state = await _state_of(self, candidate)
            if state.problem:
                continue

            # One name is enough: all requests of a batch have the name of the same submission.
            async for custom_id, _ in self.results(batch):
                if submission.trial(custom_id) is not None:
                    return batch
                break
        return ""

    async def _candidates(self, submission: Submission, others: Collection[str]) -> list[str]:
        """List the ids of batches with a submission's size and time, except `others`."""
        candidates = []
        async for batch in self.client.messages.batches.list(limit=100):
            counts = batch.request_counts
            total = counts.processing + counts.succeeded + counts.errored
            total += counts.canceled + counts.expired
            is_near = abs(batch.created_at.timestamp() - submission.sent) < SKEW
            if is_near and total == len(submission.trials) and batch.id not in others:
                candidates.append(batch.id)
        return candidates

    async def check(self, batch: str) -> BatchState:
        record = await self.client.messages.batches.retrieve(batch)
        if record.processing_status != "ended":
            return BatchState(False)
        return BatchState(True, "" if record.results_url else "its results are no longer there")

    async def results(self, batch: str) -> AsyncIterator[tuple[str, Any]]:
        async for entry in await self.client.messages.batches.results(batch):
            result = entry.result
            if result.type == "succeeded":
                yield entry.custom_id, result.message
            elif result.type == "errored":
                # An unknown type of error counts as the server's own failure.
                status = STATUSES.get(result.error.error.type, 500)
                body = result.error.to_dict()
                yield entry.custom_id, _status_error(self.client, status, body)
            else:
                reason = f"this request of batch {batch} is {result.type}"
                yield entry.custom_id, Unanswered(reason)


def _status_error(client: Any, status: int, body: Any) -> Exception:
    """Make the error that a client raises for an HTTP status. inspect_ai knows these errors."""
    request = httpx2.Request("POST", client.base_url)
    response = httpx2.Response(status, json=body, request=request)
    # No public function of the clients makes this error, which inspect_ai sorts by its class.
    return client._make_status_error_from_response(response)


def _provider_of(api: Any) -> Provider:
    """Make the batch API of a model, chosen by the class of its client."""
    # The package of the client is compared, because importing anthropic would require it.
    is_anthropic = type(api.client).__module__.startswith("anthropic")
    return AnthropicBatches(api.client) if is_anthropic else OpenAIBatches(api.client)


# The batcher, between inspect_ai and a provider


class WaitingCall:
    """A call that waits for its answer.

    Parameters
    ----------
    request : mapping
        The arguments of the call, as inspect_ai made them.
    """

    def __init__(self, request: Mapping[str, Any]):
        self.request = request
        self.answered = Event()
        self.answer: Any = None

    def set_answer(self, answer: Any) -> None:
        """Set the answer of this waiting request, so that its call returns.

        Parameters
        ----------
        answer : object
            The client's object of the answer, or an exception for the call to raise.
        """
        self.answer = answer
        self.answered.set()


class Batcher:
    """Collector of requests that stands in for the server: inspect_ai asks it for each answer.

    The method `run` is a task beside the calls. It sends nothing if batches of an earlier run hold
    all trials (``ledger_trials.are_in_batches``). Otherwise it sends all trials in new batches.

    Parameters
    ----------
    api : ModelAPI
        The API of an inspect_ai model that no other task uses.
    ledger_trials : LedgerTrials
        The trials, and the store's batches.
    max_tokens : int
        How many tokens a reply may have.
    """

    def __init__(self, api: Any, ledger_trials: LedgerTrials, max_tokens: int):
        self.provider = _provider_of(api)
        self.ledger = ledger_trials.ledger
        self.max_tokens = max_tokens
        self._are_in_batches = ledger_trials.are_in_batches
        # Trials whose request inspect_ai has not made yet; a batch is sent when none is left.
        self._coming = set(ledger_trials.trials)
        self._waiting: dict[int, WaitingCall] = {}
        # Of each answered trial, the token limit under which its batch was sent.
        self._limits: dict[int, int] = {}
        self._all_here = Event()

        # inspect_ai's providers keep their batchers in these attributes. Compatible servers, which
        # have none, are asked by `_generate_completion`.
        api._batcher = api._completions_batcher = api._responses_batcher = self
        api._generate_completion = self._generate_completion

    async def _generate_completion(self, request: dict[str, Any], config: Any) -> Any:
        """Answer in place of inspect_ai's method of this name, as soon as the batch has ended."""
        # inspect_ai passes the settings of the call as well. They are in the request already.
        return await self.generate_for_request(request)

    async def generate_for_request(self, request: dict[str, Any]) -> Any:
        """Return the answer to a request, as the client would.

        Parameters
        ----------
        request : dict
            The arguments of the call, as inspect_ai made them.

        Returns
        -------
        object
            The client's object of the answer.

        Raises
        ------
        Exception
            The client's error, if the request failed.
        """
        # inspect_ai's request does not say which trial it is for; the context of the calling task
        # does.
        trial = CURRENT_TRIAL.get()
        call = WaitingCall(request)
        self._waiting[trial] = call
        self.leave(trial)
        await call.answered.wait()
        if isinstance(call.answer, Exception):
            raise call.answer
        return call.answer

    def leave(self, trial: int) -> None:
        """Stop expecting the request of a trial, because it came or never will.

        Parameters
        ----------
        trial : int
            The trial's number.
        """
        self._coming.discard(trial)
        if not self._coming:
            self._all_here.set()

    def limit(self, trial: int) -> int:
        """Return the number of tokens that the answer to a trial could have.

        Parameters
        ----------
        trial : int
            The trial's number.

        Returns
        -------
        int
            The limit when its batch was sent. A batch of an earlier run may have had another one.
        """
        return self._limits.get(trial, self.max_tokens)

    async def run(self) -> None:
        """Send the requests, look at the batches until all have ended, and hand out answers.

        Raises
        ------
        EngineError
            A batch cannot be created, or no longer be asked for. The ledger keeps batches that the
            provider may have.
        """
        # inspect_ai makes the requests one by one, and a batch must be complete when it is created.
        await self._all_here.wait()
        if not self._are_in_batches:
            for part in self._parts():
                await self._submit(part)

        # The ledger may hold other batches of this store, whose trials nobody waits for now.
        open_batches = []
        for submission in self.ledger.submissions.values():
            is_waited_for = not self._waiting.keys().isdisjoint(submission.trials)
            if is_waited_for:
                open_batches.append(submission)
        while open_batches:
            for submission in list(open_batches):
                if await self._has_ended(submission):
                    await self._hand_out(submission)
                    open_batches.remove(submission)
            if open_batches:
                await sleep(TICK)

        # Without this a call that no batch covers would wait for ever.
        for call in self._waiting.values():
            call.set_answer(UnusableAnswer("no batch has an answer to this request"))

    def _parts(self) -> list[dict[int, dict]]:
        """Split the bodies of the requests, by trial, into parts that each fit into one batch."""
        parts: list[dict[int, dict]] = []
        part: dict[int, dict] = {}
        bytes_of_part = 0
        for trial, call in sorted(self._waiting.items()):
            body = _body_of(call.request)
            n_bytes = len(json.dumps(body))

            is_full = bytes_of_part + n_bytes > MOST_BYTES or len(part) == MOST_REQUESTS
            if is_full or not parts:
                part = {}
                bytes_of_part = 0
                parts.append(part)
            part[trial] = body
            bytes_of_part += n_bytes
        return parts

    async def _submit(self, bodies: Mapping[int, dict]) -> None:
        """Create a batch of requests, and write each step to the ledger."""
        # The order matters for a kill: intention, upload, file's id, batch, batch's id, each on
        # disk before the next step.
        submission = self.ledger.intend(list(bodies), self.max_tokens)
        requests = {submission.custom_id(trial): body for trial, body in bodies.items()}
        # The calls of one model have the same headers, except for inspect_ai's mark of each call.
        headers = _headers_of(self._waiting[submission.trials[0]].request)
        try:
            file = await _call_provider(
                _is_passing, self.provider.upload, submission.name, requests
            )
        except Exception as error:
            # An upload alone is not billed, so it is safe to forget it and to ask anew.
            self.ledger.forget(submission)
            raise EngineError(f"no batch can be created ({_reason_of(error)})") from error

        submission = self.ledger.note(submission, file=file)
        try:
            # Creating is repeated only where surely nothing was taken: a second batch would be
            # billed, too.
            batch = await _call_provider(_is_busy, self.provider.create, file, requests, headers)
        except Exception as error:
            status = _first_status(error)
            # A timeout (408) and a conflict (409) do not say that nothing was created.
            was_refused = 400 <= status < 500 and status not in (408, 409)
            if was_refused or _never_arrived(error):
                self.ledger.forget(submission)
                raise EngineError(f"no batch can be created ({_reason_of(error)})") from error
            # The batch may have been created, and be billed, so the ledger keeps it.
            raise EngineError(
                f"a batch may have been created ({_reason_of(error)}): "
                "run again, which looks for it"
            ) from error

        self.ledger.note(submission, batch=batch)
        _say(f"{len(bodies):,} prompts are in batch {batch}; a run that is stopped finds it again")

    async def _has_ended(self, submission: Submission) -> bool:
        """Tell whether a batch has ended. Raise an EngineError if it ended without replies."""
        state = await _state_of(self.provider, submission)
        if state.problem:
            self.ledger.forget(submission)
            reason = line_without_keys(state.problem)
            raise EngineError(f"batch {submission.batch} gave no replies ({reason})")
        return state.ended

    async def _hand_out(self, submission: Submission) -> None:
        """Hand the answers of a batch to the calls that wait for them."""
        try:
            answers = await _call_provider(_is_passing, self._read, submission)
        except Exception as error:
            replies = f"the replies of batch {submission.batch}"
            if _first_status(error) == 404:
                self.ledger.forget(submission)
                raise EngineError(f"{replies} are gone: run again to ask anew") from error
            raise EngineError(
                f"{replies} cannot be read ({_reason_of(error)}): "
                "the provider keeps them; run again to fetch them"
            ) from error

        nothing = UnusableAnswer(f"batch {submission.batch} has no answer to this request")
        for trial in submission.trials:
            call = self._waiting.pop(trial, None)
            # An earlier run may have sent more trials in this batch than are asked for now.
            if call is not None:
                self._limits[trial] = submission.max_tokens
                call.set_answer(answers.get(trial, nothing))

    async def _read(self, submission: Submission) -> dict[int, Any]:
        """Read the answers of a batch, by trial."""
        answers: dict[int, Any] = {}
        async for custom_id, answer in self.provider.results(submission.batch):
            trial = submission.trial(custom_id)
            # A server that names requests in its own way must not hand an answer to a wrong trial.
            if trial is not None:
                answers[trial] = answer
        return answers


async def find_again(api: Any, ledger: Ledger) -> None:
    """Look at the batches that killed runs left, and strike out the batches without replies.

    A batch whose id is unknown is looked for at the provider. Standard error says which batches
    expired without replies, failed, vanished or were never created.

    Parameters
    ----------
    api : ModelAPI
        The API of an inspect_ai model.
    ledger : Ledger
        The batches of the store. It forgets batches that give no replies.

    Raises
    ------
    EngineError
        The provider cannot be asked, or knows neither a batch nor the file that was uploaded for
        it.
    """
    provider = _provider_of(api)
    for submission in list(ledger.submissions.values()):
        prompts = f"{len(submission.trials):,} prompts"
        # The run was killed between the intention to create a batch and the provider's reply.
        if not submission.batch:
            batch = await _find_id(provider, ledger, submission)
            if not batch:
                await _check_file_is_known(provider, ledger, submission)
                ledger.forget(submission)
                _say(f"no batch with {prompts} of an earlier run is there: they are asked anew")
                continue
            submission = ledger.note(submission, batch=batch)

        state = await _state_of(provider, submission)
        if state == UNKNOWN:
            await _check_file_is_known(provider, ledger, submission)
        if state.problem:
            ledger.forget(submission)
            lost = f"batch {submission.batch} is lost ({line_without_keys(state.problem)})"
            _say(f"{lost}: its {prompts} are asked again")
        else:
            _say(f"{prompts} are in batch {submission.batch} already")


async def _find_id(provider: Provider, ledger: Ledger, submission: Submission) -> str:
    """Find the id of a batch that may have been created, "" if it was not."""
    # Batches that other submissions have already are no candidates for this one.
    other_batches = {other.batch for other in ledger.submissions.values()}
    # A clock that was set back must not make the wait longer than LAG.
    passed = time.time() - submission.sent
    await sleep(min(LAG, max(0.0, LAG - passed)))

    try:
        return await _call_provider(_is_passing, provider.find, submission, other_batches)
    # Anthropic's search waits for batches, and an error of that has its own sentence.
    except EngineError:
        raise
    except Exception as error:
        raise EngineError(
            f"the batches of an earlier run cannot be looked for ({_reason_of(error)}): run "
            f"again, or remove {ledger.file} to ask all of its prompts anew"
        ) from error


async def _check_file_is_known(provider: Provider, ledger: Ledger, submission: Submission) -> None:
    """Raise an EngineError if the provider does not know a batch's file.

    The key may then be the key of another project.
    """
    if not submission.file or await _call_provider(_is_passing, provider.has_file, submission.file):
        return
    raise EngineError(
        f"the provider knows neither the batch of {len(submission.trials):,} prompts that an "
        f"earlier run sent nor its file {submission.file}: run again with the key of the same "
        f"project, or remove {ledger.file} to ask these prompts anew"
    )


async def _state_of(provider: Provider, submission: Submission) -> BatchState:
    """Ask for the state of a batch, `UNKNOWN` if the provider does not know the batch."""
    try:
        return await _call_provider(
            _is_passing, provider.check, submission.batch, attempts=LOOK_ATTEMPTS
        )
    except Exception as error:
        if _first_status(error) == 404:
            # A 404 does not tell a batch that expired long ago from one of another project.
            return UNKNOWN
        raise EngineError(
            f"batch {submission.batch} cannot be asked for ({_reason_of(error)}): "
            "run again, and it is found"
        ) from error


async def _call_provider(
    should_retry: Callable[[BaseException], bool],
    ask: Callable[..., Awaitable[Any]],
    *arguments: Any,
    attempts: int = ATTEMPTS,
) -> Any:
    """Call a provider, and call it again after each error for which `should_retry` is true."""
    # A batch that is looked at for an hour is asked at a steady pace, without longer and longer
    # pauses.
    wait = pause_seconds if attempts == ATTEMPTS else lambda state: TICK
    retrying = AsyncRetrying(
        retry=retry_if_exception(should_retry),
        stop=stop_after_attempt(attempts),
        wait=wait,
        reraise=True,
    )
    return await retrying(ask, *arguments)


def _first_status(error: BaseException) -> int:
    """Find the first HTTP status among the causes of an error, 0 without any."""
    for cause in causes_of(error):
        status = status_of(cause)
        if status:
            return status
    return 0


def _never_arrived(error: BaseException) -> bool:
    """Tell whether a request was never sent, because no connection was made."""
    kinds = (httpx2.ConnectError, httpx2.ConnectTimeout)
    return any(isinstance(cause, kinds) for cause in causes_of(error))


def _is_busy(error: BaseException) -> bool:
    """Tell whether a provider surely took nothing, and may accept the same request later."""
    return _first_status(error) == 429 or _never_arrived(error)


def _is_passing(error: BaseException) -> bool:
    """Tell whether a request that changes nothing at the provider may succeed later."""
    # An EngineError comes from this module, which has tried often enough before it.
    if isinstance(error, EngineError):
        return False
    status = _first_status(error)
    if status:
        # Timeouts, conflicts, rate limits and failures of the server pass; other statuses are
        # answers.
        return status in (408, 409, 429) or status >= 500
    kinds = (httpx2.HTTPError, ConnectionError, TimeoutError)
    return any(isinstance(cause, kinds) for cause in causes_of(error))


def _say(sentence: str) -> None:
    """Write a line to standard error, above a progress bar."""
    tqdm.write(sentence, file=sys.stderr)


def _reason_of(error: BaseException) -> str:
    """Write an error's message on one line without keys, or its class if it has no message."""
    return line_without_keys(str(error)) or type(error).__name__


def _headers_of(request: Mapping[str, Any]) -> dict[str, str]:
    """Return a request's own headers for its batch, without inspect_ai's mark of a request."""
    headers = request.get("extra_headers") or {}
    return {name: value for name, value in headers.items() if name.lower() != REQUEST_MARK}


def _body_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request's body, as the client would send it."""
    body = {}
    for name, value in request.items():
        # The clients mark arguments that are not sent with objects of these classes.
        is_given = type(value).__name__ not in ("NotGiven", "Omit")
        if is_given and name not in ("extra_headers", "extra_query", "extra_body", "timeout"):
            body[name] = value
    # The client puts the fields of extra_body beside the others, and in their place.
    return body | dict(request.get("extra_body") or {})
