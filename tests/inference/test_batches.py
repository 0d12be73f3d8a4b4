"""Batches of a run that is killed: the next run finds them, and nothing is sent twice."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from itertools import product
from pathlib import Path

import httpx2
import pytest

from fake_batches import FakeBatches, Gone, reply_to
from ingroup.inference import EngineError, Sampling, batches, fill, open_store
from ingroup.inference.cost import Budget, LimitReached, Prices, budget_of
from ingroup.inference.generate import usage
from ingroup.inference.inspect_engine import InspectEngine
from ingroup.inference.ledger import Ledger
from ingroup.inference.shards import Journal, StoreError
from toy import religion

DESIGN = religion(1)  # 36 trials
SAMPLING = Sampling(max_tokens=8)
OPENAI = "openai/gpt-4o-mini"
RESPONSES = "openai/gpt-5"
SERVER = "openai-api/local/fake"
ANTHROPIC = "anthropic/claude-sonnet-4-5"
KEY = "key-0123456789abcdef"
KEYS = {
    "OPENAI_API_KEY": KEY,
    "ANTHROPIC_API_KEY": KEY,
    "LOCAL_API_KEY": KEY,
}
EXPECTED = [reply_to({"messages": trial.messages}) for trial in DESIGN]


def test_each_trial_has_a_reply_of_its_own():
    assert len(set(EXPECTED)) == 36


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    monkeypatch.setattr(batches, "TICK", 0.01)
    monkeypatch.setattr(batches, "LAG", 0.0)


@pytest.fixture
def serve():
    """Start servers that stop when the test ends; gives the address."""
    with ExitStack() as stack:
        yield lambda server: stack.enter_context(server.running())


def base(model, address):
    return address if model == ANTHROPIC else f"{address}/v1"


def ask(model, address, folder, batch=True, budget=None):
    """One run; returns the table of replies."""
    engine = InspectEngine(model, base(model, address), timeout=60, batch=batch)
    store = open_store(folder, DESIGN, engine, SAMPLING, 50, budget)
    fill(DESIGN, engine, store, SAMPLING, budget=budget)
    return store.read()


def main(model, address, folder, die_after):
    """What is to be killed does this; it kills itself after so many journalled replies."""
    batches.TICK = 0.01
    add = Journal.add
    kept = []

    def add_or_die(journal, trial, reply):
        add(journal, trial, reply)
        kept.append(trial)
        if len(kept) == int(die_after):
            os.kill(os.getpid(), signal.SIGKILL)

    Journal.add = add_or_die
    ask(model, address, Path(folder))


def killed(server, model, address, folder, event="", nth=1, die_after=0):
    """A run in a process of its own, which is killed at the nth such event, or kills itself."""
    command = [sys.executable, __file__, model, address, str(folder), str(die_after)]
    path = os.pathsep.join(filter(None, sys.path))
    environment = os.environ | {"PYTHONPATH": path}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    seen = Counter()

    def at(now):
        seen[now] += 1
        if now == event and seen[now] == nth:
            process.kill()
            process.wait()
            raise Gone

    server.at = at
    _, error = process.communicate()
    server.at = lambda now: None
    assert process.returncode == -signal.SIGKILL, error


KILLS = {
    "before its batch is there": {"event": "creating"},
    "when it is there and has told nobody its id": {"event": "created"},
    "while it is looked at": {"event": "looked", "nth": 2},
    "when it has ended": {"event": "ended"},
    "when its results are asked for": {"event": "results"},
    "when half of them are journalled": {"die_after": 18},
}
CASES = [(OPENAI, when) for when in KILLS]
CASES += [(RESPONSES, "while it is looked at"), (SERVER, "while it is looked at")]
CASES += [(ANTHROPIC, when) for when in [*KILLS][:3]]


@pytest.mark.parametrize(("model", "when"), CASES)
def test_a_killed_run_finds_its_batch_and_sends_nothing_twice(model, when, tmp_path, serve):
    if model == ANTHROPIC:
        pytest.importorskip("anthropic")

    server = FakeBatches()
    address = serve(server)
    killed(server, model, address, tmp_path, **KILLS[when])

    assert len(server.single) == 1

    batched = 0 if when == "before its batch is there" else len(DESIGN) - 1
    assert len(server.batched) == batched
    assert not list(tmp_path.glob("part-*"))

    table = ask(model, address, tmp_path)
    assert table.text.tolist() == EXPECTED

    requests = Counter(map(reply_to, server.single + server.batched))
    assert requests == Counter(EXPECTED)
    assert server.created == [len(DESIGN) - 1]
    assert len(server.single) == 1
    assert not (tmp_path / "batches.json").exists()
    assert not (tmp_path / "journal.jsonl").exists()


@pytest.mark.parametrize("model", [OPENAI, ANTHROPIC])
def test_what_expired_or_failed_in_a_batch_is_asked_by_the_next_run(model, tmp_path, serve):
    if model == ANTHROPIC:
        pytest.importorskip("anthropic")

    lost = {EXPECTED[5]: "expired", EXPECTED[9]: "errored", EXPECTED[30]: "expired"}

    def outcome(text, before):
        return lost.get(text, "ok") if before == 0 else "ok"

    server = FakeBatches(outcome=outcome)
    address = serve(server)
    killed(server, model, address, tmp_path, "looked")

    table = ask(model, address, tmp_path)
    failed = table[table.finish_reason == "failed"]

    assert failed.trial.tolist() == [5, 9, 30]
    assert "expired" in failed.error[5]
    assert "no" in failed.error[9]

    others = table.drop(index=[5, 9, 30])
    assert others.text.tolist() == [EXPECTED[trial] for trial in others.trial]
    assert server.created == [35]

    assert ask(model, address, tmp_path).text.tolist() == EXPECTED
    assert server.created == [35, 3]
    assert Counter(map(reply_to, server.batched[35:])) == Counter(lost.keys())


@pytest.mark.parametrize("batch", [True, False])
def test_a_batch_that_is_lost_is_reported_and_asked_again(batch, tmp_path, serve, capsys):
    server = FakeBatches()
    address = serve(server)
    killed(server, OPENAI, address, tmp_path, "looked")
    del server.batches["batch_0"]

    capsys.readouterr()

    assert ask(OPENAI, address, tmp_path, batch).text.tolist() == EXPECTED

    said = "batch batch_0 is lost (the provider does not know it): its 35 prompts are asked again"
    assert said in capsys.readouterr().err
    assert server.created == ([35, 35] if batch else [35])
    assert len(server.single) == (1 if batch else 36)


@pytest.mark.parametrize("event", ["creating", "created", "looked"])
def test_the_key_of_another_project_sends_nothing_anew(event, tmp_path, serve):
    """It sees neither the batches nor the files of the project that asked first."""
    server = FakeBatches()
    address = serve(server)
    killed(server, OPENAI, address, tmp_path, event)
    created = list(server.created)
    files = server.files
    batches_there = server.batches
    server.files = {}
    server.batches = {}

    with pytest.raises(EngineError, match=r"knows neither the batch of 35 .* nor its file"):
        ask(OPENAI, address, tmp_path)

    assert server.created == created

    server.files = files
    server.batches = batches_there
    assert ask(OPENAI, address, tmp_path).text.tolist() == EXPECTED
    assert server.created == [35]


def test_a_batch_that_was_not_created_is_reported(tmp_path, serve, capsys):
    server = FakeBatches()
    address = serve(server)
    killed(server, OPENAI, address, tmp_path, "creating")

    assert ask(OPENAI, address, tmp_path).text.tolist() == EXPECTED

    said = "no batch with 35 prompts of an earlier run is there: they are asked anew"
    assert said in capsys.readouterr().err


def test_a_list_of_batches_may_come_late(tmp_path, serve, monkeypatch):
    """The provider's list has a batch a while after it was created."""
    server = FakeBatches()
    address = serve(server)
    killed(server, OPENAI, address, tmp_path, "created")
    created = server.batches
    server.batches = {}

    async def show(seconds):
        if seconds > 1:
            assert seconds <= 1_000
            server.batches = created

    monkeypatch.setattr(batches, "LAG", 1_000.0)
    monkeypatch.setattr(batches, "sleep", show)

    assert ask(OPENAI, address, tmp_path).text.tolist() == EXPECTED
    assert server.created == [35]


def test_a_batch_is_read_by_a_run_without_batches(tmp_path, serve):
    server = FakeBatches()
    address = serve(server)
    killed(server, OPENAI, address, tmp_path, "looked")

    assert ask(OPENAI, address, tmp_path, batch=False).text.tolist() == EXPECTED
    assert len(server.single) == 1
    assert server.created == [35]


def test_a_batch_that_failed_as_a_whole_stops_the_run(tmp_path, serve):
    server = FakeBatches()
    server.problem = "failed"
    address = serve(server)

    with pytest.raises(EngineError, match=r"batch batch_0 gave no replies \(no such model\)"):
        ask(OPENAI, address, tmp_path)

    assert not (tmp_path / "batches.json").exists()

    server.problem = ""
    assert ask(OPENAI, address, tmp_path).text.tolist() == EXPECTED
    assert server.created == [35, 35]
    assert len(server.single) == 1


def test_replies_that_the_provider_has_deleted_are_asked_anew(tmp_path, serve):
    server = FakeBatches()
    address = serve(server)

    def at(event):
        if event == "results":
            server.files.clear()

    server.at = at

    with pytest.raises(EngineError, match="the replies of batch batch_0 are gone: run again"):
        ask(OPENAI, address, tmp_path)

    server.at = lambda event: None

    assert ask(OPENAI, address, tmp_path).text.tolist() == EXPECTED
    assert server.created == [35, 35]


@pytest.mark.parametrize("lost", ["out", "err"])
def test_of_two_files_of_replies_one_may_be_gone(lost, tmp_path, serve):
    server = FakeBatches(outcome=lambda text, _: "errored" if text == EXPECTED[3] else "ok")
    address = serve(server)

    def at(event):
        if event == "results":
            server.files.pop(f"batch_0-{lost}", None)

    server.at = at
    table = ask(OPENAI, address, tmp_path)
    failed = table[table.finish_reason == "failed"].trial.tolist()

    assert failed == ([3] if lost == "err" else list(range(1, 36)))
    assert ("HTTP 500" in table.error[3]) == (lost == "out")
    assert server.created == [35]
    assert not (tmp_path / "batches.json").exists()


def test_a_batch_whose_calls_all_failed_alike_stops_the_run_and_is_not_read_twice(tmp_path, serve):
    server = FakeBatches(outcome=lambda text, before: "ok" if before else "errored")
    server.status = 404
    address = serve(server)

    with pytest.raises(EngineError, match=r"does not answer \(HTTP 404 - no"):
        ask(OPENAI, address, tmp_path)

    assert ask(OPENAI, address, tmp_path).text.tolist() == EXPECTED
    assert server.created == [35, 35]
    assert len(server.single) == 1


def failing_once(status):
    """A server one of whose requests fails in its first batch, and never again."""

    def outcome(text, before):
        return "errored" if text == EXPECTED[3] and before == 0 else "ok"

    server = FakeBatches(outcome=outcome)
    server.status = status
    return server


@pytest.mark.parametrize("status", [401, 404, 429])
def test_a_request_that_failed_before_the_limit_stops_no_later_run(status, tmp_path, serve):
    """The limit stops the run behind a batch that is read but for this request."""
    server = failing_once(status)
    address = serve(server)

    with pytest.raises(LimitReached):
        ask(OPENAI, address, tmp_path, budget=Budget(20.0, Prices(1e-9, 1e6)))

    assert ask(OPENAI, address, tmp_path).text.tolist() == EXPECTED
    assert not (tmp_path / "batches.json").exists()

    requests = Counter(map(reply_to, server.single + server.batched))
    assert requests == Counter([*EXPECTED, EXPECTED[3]])


def test_a_request_that_failed_before_a_kill_stops_no_later_run(tmp_path, serve):
    """All is journalled but this request, which is still in the ledger."""
    server = failing_once(429)
    address = serve(server)
    killed(server, OPENAI, address, tmp_path, die_after=len(DESIGN))

    table = ask(OPENAI, address, tmp_path)

    assert table[table.finish_reason == "failed"].trial.tolist() == [3]
    assert not (tmp_path / "batches.json").exists()
    assert ask(OPENAI, address, tmp_path).text.tolist() == EXPECTED
    assert server.created == [35, 1]


def test_a_batch_is_as_large_as_the_limit_allows_at_half_the_price(tmp_path, serve):
    """A reply has at most 8 tokens, which cost 1 each, in a batch 0.5; the server takes 2."""
    server = FakeBatches()
    address = serve(server)
    budget = Budget(20.0, Prices(1e-9, 1e6))

    with pytest.raises(LimitReached, match="a batch of 1 is not sent, after one of 4"):
        ask(OPENAI, address, tmp_path, budget=budget)

    # The first call costs 2 alone; each in a batch is counted at 4 and costs 1. What is left is
    # sent as long as it makes half of the first batch.
    assert server.created == [(20 - 2) // 4, (20 - 6) // 4, (20 - 9) // 4, (20 - 11) // 4]
    assert budget.spent == pytest.approx(2 + sum(server.created))

    journal = (tmp_path / "journal.jsonl").read_bytes().splitlines()
    assert len(journal) == 1 + sum(server.created)

    assert ask(OPENAI, address, tmp_path).text.tolist() == EXPECTED
    assert Counter(map(reply_to, server.single + server.batched)) == Counter(EXPECTED)


def test_the_first_call_of_a_store_needs_the_whole_price(tmp_path, serve):
    """It goes alone and costs up to 8; in a batch it would be up to 4."""
    server = FakeBatches()
    address = serve(server)
    given = {"COST_LIMIT": 5.0, "PRICE_IN": 1e-9, "PRICE_OUT": 1e6, "BATCH": True}

    with pytest.raises(LimitReached, match=r"0\.00 spent, .* may cost 8\.00"):
        ask(OPENAI, address, tmp_path, budget=budget_of(given))

    assert server.single == []


@pytest.mark.parametrize("model", [OPENAI, ANTHROPIC])
def test_requests_that_a_batch_did_not_answer_cost_nothing(model, tmp_path, serve):
    if model == ANTHROPIC:
        pytest.importorskip("anthropic")

    lost = {EXPECTED[5]: "expired", EXPECTED[9]: "errored"}
    server = FakeBatches(outcome=lambda text, before: lost.get(text, "ok"))
    budget = Budget(0.0, Prices(1e-9, 1e6))
    table = ask(model, serve(server), tmp_path, budget=budget)

    assert table[table.finish_reason == "failed"].trial.tolist() == [5, 9]
    assert budget.spent == pytest.approx(2 + 33 * 2 * 0.5)
    assert budget.in_doubt == 0.0
    assert budget.uncounted == 0


@pytest.mark.parametrize("batch", [True, False])
def test_what_comes_from_a_batch_costs_half_whatever_the_run_is(batch, tmp_path, serve):
    server = FakeBatches()
    address = serve(server)
    killed(server, OPENAI, address, tmp_path, "looked")
    budget = Budget(0.0, Prices(1e-9, 1e6))
    ask(OPENAI, address, tmp_path, batch, budget)

    assert budget.spent == pytest.approx(35 * 2 * 0.5)


def test_a_batch_in_work_is_read_whatever_the_limit_is(tmp_path, serve):
    server = FakeBatches()
    address = serve(server)
    killed(server, OPENAI, address, tmp_path, "looked")
    budget = Budget(1e-6, Prices(1.0, 1.0))

    assert ask(OPENAI, address, tmp_path, budget=budget).text.tolist() == EXPECTED
    assert server.created == [35]


def test_requests_are_cut_into_as_many_batches_as_they_need(tmp_path, serve, monkeypatch):
    monkeypatch.setattr(batches, "MOST_REQUESTS", 10)
    server = FakeBatches()

    assert ask(OPENAI, serve(server), tmp_path).text.tolist() == EXPECTED
    assert server.created == [10, 10, 10, 5]


def test_a_cut_reply_of_an_older_limit_is_asked_again(tmp_path, serve):
    """The batch was sent with 8 tokens, the run that finds it allows 16."""
    server = FakeBatches()
    address = serve(server)
    killed(server, OPENAI, address, tmp_path, "looked")
    engine = InspectEngine(OPENAI, base(OPENAI, address), timeout=60, batch=True)
    more = Sampling(max_tokens=16)
    store = open_store(tmp_path, DESIGN, engine, more, 50)
    server.cut = {EXPECTED[7]}
    fill(DESIGN, engine, store, more)
    table = store.read()

    assert table[table.finish_reason == "failed"].trial.tolist() == [7]
    assert table.error[7] == "it was cut at 8 tokens, in a batch of an earlier run"
    assert table.output_tokens[7] == 2

    server.cut = set()
    fill(DESIGN, engine, store, more)

    assert store.read().text.tolist() == EXPECTED
    assert server.created == [35, 1]
    assert server.batched[-1]["max_tokens"] == 16


def test_a_batch_that_reached_nobody_was_not_created(tmp_path, serve, monkeypatch):
    async def unreachable(*_):
        raise httpx2.ConnectError("no route")

    server = FakeBatches()
    address = serve(server)
    monkeypatch.setattr(batches, "pause_seconds", lambda state: 0.0)
    with monkeypatch.context() as patched:
        patched.setattr(batches.OpenAIBatches, "create", unreachable)
        with pytest.raises(EngineError, match=r"^no batch can be created \(no route\)$"):
            ask(OPENAI, address, tmp_path)

    assert not (tmp_path / "batches.json").exists()
    assert ask(OPENAI, address, tmp_path).text.tolist() == EXPECTED
    assert server.created == [35]


def test_a_ledger_of_batches_that_is_not_as_it_was_written_is_one_sentence(tmp_path):
    """Whichever bit of it flips, wherever it is torn, and whichever store it was copied from."""
    file = tmp_path / "batches.json"
    submission = Ledger(file, "manifest").intend([1, 2], 8)

    assert Ledger(file, "manifest").submissions == {submission.name: submission}
    assert Ledger(file, "manifest").trials_in_batches([0, 1, 2, 3]) == [1, 2]

    whole = file.read_bytes()
    damaged = [b"", b"[]", whole[:-2], whole + b"x"]
    for position, bit in product(range(len(whole) - 1), range(8)):
        flipped = bytearray(whole)
        flipped[position] ^= 1 << bit
        damaged.append(bytes(flipped))

    sentence = (
        f"{file} is damaged, and with it which prompts are in batches: put a copy back, or "
        "move it away to ask all of its prompts anew"
    )
    for content in damaged:
        file.write_bytes(content)
        with pytest.raises(StoreError) as caught:
            Ledger(file, "manifest")
        assert str(caught.value) == sentence

    file.write_bytes(whole)

    with pytest.raises(StoreError, match="is damaged"):
        Ledger(file, "another manifest")


def test_a_store_keeps_at_what_share_of_the_price_each_reply_was_bought(tmp_path, serve):
    """The first call goes alone; one of the batch failed, and goes alone in the next run."""
    server = failing_once(500)
    address = serve(server)
    table = ask(OPENAI, address, tmp_path)
    shares = [1.0] + [0.5] * 35
    shares[3] = 0.0

    assert table.price_share.tolist() == shares

    shares[3] = 1.0
    table = ask(OPENAI, address, tmp_path, batch=False)

    assert table.text.tolist() == EXPECTED
    assert table.price_share.tolist() == shares
    assert usage(table, 1e6, 0, "m").cost[0] == table.prompt_tokens @ table.price_share


def test_the_first_reply_of_a_store_is_kept_before_the_second_is_asked(tmp_path, serve):
    """It is paid once, though the run is killed before it sends anything else."""
    server = FakeBatches()
    address = serve(server)
    killed(server, OPENAI, address, tmp_path, die_after=1)

    assert len(server.single) == 1

    (line,) = (tmp_path / "journal.jsonl").read_bytes().splitlines()
    assert json.loads(line.partition(b" ")[2])["text"] == EXPECTED[0]

    assert ask(OPENAI, address, tmp_path, batch=False).text.tolist() == EXPECTED
    assert Counter(map(reply_to, server.single)) == Counter(EXPECTED)


@pytest.mark.parametrize("when", ["in the same run", "in the next run"])
def test_no_line_on_a_batch_that_failed_shows_the_key(when, tmp_path, serve, capsys):
    server = FakeBatches()
    address = serve(server)
    reason = server.reason = f"{KEYS['OPENAI_API_KEY']} may not use this model"
    if when == "in the next run":
        killed(server, OPENAI, address, tmp_path, "looked")
        server.looks = 0
        server.problem = "failed"
        server.at = lambda event: event == "creating" and setattr(server, "problem", "")
        ask(OPENAI, address, tmp_path)
        said = capsys.readouterr().err
    else:
        server.problem = "failed"
        with pytest.raises(EngineError) as caught:
            ask(OPENAI, address, tmp_path)
        said = str(caught.value)

    assert "[key] may not use this model" in said
    assert reason not in said


def test_a_server_without_a_batch_api_is_reported_without_its_key(tmp_path, serve):
    from fake_openai import FakeOpenAI, fault

    server = FakeOpenAI(lambda call, before: None)
    usual = server.answer

    def answer(body, authorization):
        if b"multipart" in body or not body.startswith(b"{"):
            return fault(404, f"no such path for {authorization}")
        return usual(body, authorization)

    server.answer = answer

    with pytest.raises(EngineError, match=r"no batch can be created .*no such path") as caught:
        ask(SERVER, serve(server), tmp_path)

    assert "[key]" in str(caught.value)
    assert KEYS["LOCAL_API_KEY"] not in str(caught.value)
    assert not (tmp_path / "batches.json").exists()


if __name__ == "__main__":
    main(*sys.argv[1:])
