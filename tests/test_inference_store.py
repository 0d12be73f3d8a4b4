"""Stores: written once, resumed after a kill, refused with another manifest."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ingroup.inference.answers import FAILED, LENGTH, STOP, Engine, EngineError, Reply, Sampling
from ingroup.inference.design import Block, Design
from ingroup.inference.generate import fill, open_store
from ingroup.inference.store import Store, StoreError

SAMPLING = Sampling(max_tokens=8)


def design(n: int = 40) -> Design:
    """Make a design of numbered prompts."""
    return Design([Block({}, {"n": range(n)}, lambda trial: [_turn(trial["n"])])])


def _turn(number: int) -> dict[str, str]:
    return {"role": "user", "content": f"prompt {number}"}


class Echo(Engine):
    """Repeats each prompt, slowly, and notes what it was asked."""

    piece_size = 8

    def __init__(self, log: Path | None = None, seconds: float = 0.0, model: str = "echo"):
        self.log = log
        self.seconds = seconds
        self.model = model
        self.asked: list[str] = []

    def identity(self):
        return {"engine": "echo", "model": self.model}

    def answer(self, chats, sampling):
        replies = []
        for chat in chats:
            text = chat[0]["content"]
            self.asked.append(text)
            if self.log:
                with self.log.open("a") as stream:
                    stream.write(f"{text}\n")
            time.sleep(self.seconds)
            replies.append(Reply(text, prompt_tokens=2, output_tokens=2))
        return replies


def fill_with(engine: Engine, folder: Path, sampling: Sampling = SAMPLING, n: int = 40) -> Store:
    """Ask an engine for what a store lacks."""
    store = open_store(folder, design(n), engine, sampling)
    fill(design(n), engine, store, sampling)
    return store


def test_answers_are_read_in_the_order_of_the_trials(tmp_path):
    store = fill_with(Echo(), tmp_path, n=5000)
    frame = store.read(["text"])
    assert frame.trial.tolist() == list(range(5000))
    assert frame.text.tolist() == [f"prompt {number}" for number in range(5000)]
    assert set(frame.finish_reason) == {STOP}


def test_missing_trials_are_named_missing(tmp_path):
    store = Store(tmp_path, {"model": "echo", "trials": 4})
    with store.writing():
        store.add([1, 3], [10, 30], [Reply("a"), Reply(None, FAILED, error="no")])
    frame = store.read(["text", "error"])
    assert frame.finish_reason.tolist() == ["missing", "stop", "missing", "failed"]
    assert frame.text.tolist()[1] == "a"


def test_a_second_run_asks_nothing(tmp_path):
    fill_with(Echo(), tmp_path)
    again = Echo()
    fill_with(again, tmp_path)
    assert again.asked == []


def test_another_manifest_is_refused_with_the_difference(tmp_path):
    fill_with(Echo(), tmp_path)
    with pytest.raises(StoreError, match="with model 'echo', this run asks with 'other'"):
        fill_with(Echo(model="other"), tmp_path)
    with pytest.raises(StoreError, match=r"with temperature 0.0, this run asks with 1.0"):
        fill_with(Echo(), tmp_path, Sampling(max_tokens=8, temperature=1.0))


def test_a_changed_piece_is_noticed(tmp_path):
    store = fill_with(Echo(), tmp_path)
    piece = min(tmp_path.glob("*.parquet"))
    content = bytearray(piece.read_bytes())
    content[100] ^= 1
    piece.write_bytes(content)
    with pytest.raises(StoreError, match="damaged"):
        store.read()


def test_a_piece_of_another_store_is_noticed(tmp_path):
    fill_with(Echo(), tmp_path / "a")
    store = fill_with(Echo(model="other"), tmp_path / "b")
    piece = min((tmp_path / "a").glob("*.parquet"))
    min((tmp_path / "b").glob("*.parquet")).unlink()
    piece.rename(tmp_path / "b" / piece.name)
    with pytest.raises(StoreError, match="another store's"):
        store.read()


def test_cut_answers_alone_are_asked_again_with_more_tokens(tmp_path):
    class Cut(Echo):
        def answer(self, chats, sampling):
            replies = super().answer(chats, sampling)
            return [replies[0]._replace(finish_reason=LENGTH), *replies[1:]]

    fill_with(Cut(), tmp_path)
    longer = Echo()
    store = fill_with(longer, tmp_path, Sampling(max_tokens=16))
    assert longer.asked == [f"prompt {number}" for number in range(0, 40, 8)]
    assert set(store.read().finish_reason) == {STOP}


def test_only_engines_that_may_succeed_are_asked_again_for_failed_calls(tmp_path):
    class Fails(Echo):
        def answer(self, chats, sampling):
            replies = super().answer(chats, sampling)
            return [Reply(None, FAILED, error="busy"), *replies[1:]]

    fill_with(Fails(), tmp_path)
    local = Echo()
    fill_with(local, tmp_path)
    assert local.asked == []

    server = Echo()
    server.asks_again = True
    store = fill_with(server, tmp_path)
    assert len(server.asked) == 5
    assert set(store.read().finish_reason) == {STOP}


def test_a_run_stops_if_nothing_is_answered(tmp_path):
    class Broken(Echo):
        def answer(self, chats, sampling):
            return [Reply(None, FAILED, error="no such key")] * len(chats)

    with pytest.raises(EngineError, match="echo does not answer: no such key"):
        fill_with(Broken(), tmp_path)
    assert not list(tmp_path.glob("*.parquet"))


def test_failed_calls_are_named(tmp_path, capsys):
    class Fails(Echo):
        def answer(self, chats, sampling):
            replies = super().answer(chats, sampling)
            return [Reply(None, FAILED, error="busy"), *replies[1:]]

    fill_with(Fails(), tmp_path)
    assert "5 of 40 calls failed (5 x busy)" in capsys.readouterr().err


def test_two_runs_do_not_write_to_one_store(tmp_path):
    store = Store(tmp_path, {"trials": 4})
    other = Store(tmp_path, {"trials": 4})
    with store.writing(), pytest.raises(StoreError, match="another run"), other.writing():
        pass


def test_answers_of_large_designs_take_little_memory_to_open(tmp_path):
    whole = design(37_310_350)
    assert whole[37_310_349].chat[0]["content"] == "prompt 37310349"
    store = Store(tmp_path, {"trials": len(whole)})
    todo = list(store.unanswered(False))
    assert sum(map(len, todo)) == len(whole)
    assert all(isinstance(trials, range) for trials in todo)


def test_kills_lose_the_calls_under_way_alone(tmp_path):
    """Kill a run at a few random moments. No stored answer is lost, and none is asked twice."""
    n_sent = kills(tmp_path, n_kills=2, rng=random.Random(0), n_trials=400)
    assert n_sent <= 400 + 2 * Echo.piece_size


def kills(folder: Path, n_kills: int, rng: random.Random, n_trials: int) -> int:
    """Kill a run many times, check each time what is stored, and return how often was asked."""
    log = folder / "asked.log"
    log.touch()
    program = [sys.executable, __file__, str(folder), str(n_trials)]
    store = folder / "store"
    for _ in range(n_kills):
        n_before = len(log.read_text().splitlines())
        process = subprocess.Popen(program, stderr=subprocess.DEVNULL, env=_environment())
        # The time to start differs, so the clock begins with the first answer.
        while process.poll() is None and len(log.read_text().splitlines()) == n_before:
            time.sleep(0.005)
        time.sleep(rng.random() * 0.2)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if (store / "manifest.json").exists():
            _check_stored(store, n_trials)
    subprocess.run(program, check=True, stderr=subprocess.DEVNULL, env=_environment())
    assert _check_stored(store, n_trials) == n_trials
    return len(log.read_text().splitlines())


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _check_stored(folder: Path, n_trials: int) -> int:
    """Check that each stored answer is that of its trial, and count the answers."""
    frame = open_store(folder, design(n_trials), Echo(), SAMPLING).read(["text"])
    answered = frame[frame.finish_reason == STOP]
    assert answered.text.tolist() == [f"prompt {number}" for number in answered.trial]
    return len(answered)


if __name__ == "__main__":
    place, count = Path(sys.argv[1]), int(sys.argv[2])
    fill_with(Echo(place / "asked.log", seconds=0.001), place / "store", n=count)
