"""Shards: whole or absent, resumed, never overwritten."""

import errno
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from few import Few
from ingroup.inference import (
    EngineError,
    Reply,
    Sampling,
    Store,
    StoreError,
    open_store,
    parts,
    shards,
)
from ingroup.inference import store as stores
from ingroup.inference.shards import SCHEMA, Journal
from ingroup.inference.store import read_manifest
from toy import SAMPLING, Toy, numbers, religion, rendered_otherwise, run


def parrot(chat, *_):
    return str(len(chat[1]["content"]) % 101)


def fails(prompt):
    return sum(str(prompt).encode()) % 7 == 0


def server_of(failures):
    """Fails the first calls of every seventh prompt."""
    return Toy(lambda c, n, _: None if fails(c) and n < failures else parrot(c), asks_again=True)


@pytest.fixture
def plan():
    return religion()


def filled(folder, manifest, *answers):
    """A store with these shards, from the first on."""
    store = Store(folder, manifest)
    with store.writing():
        for shard, replies in enumerate(answers):
            store.write(shard, replies)
    return store


def test_all_trials_are_answered_in_order_and_once(plan, tmp_path):
    table, second = run(plan, tmp_path, Toy(parrot)), Toy(parrot)
    assert table.trial.tolist() == list(range(432))
    assert table.text.astype(str).tolist() == [parrot(trial.messages) for trial in plan]
    assert (table.cached_tokens == 4).all()
    pd.testing.assert_frame_equal(run(plan, tmp_path, second), table)
    assert second.batches == []
    part = open_store(tmp_path, plan, second, SAMPLING, 50).read(40, 260)
    assert part.trial.tolist() == list(range(220))
    assert part.text.astype(str).tolist() == table.text.astype(str).tolist()[40:260]


def test_failed_calls_have_a_reason_and_are_not_asked_again_where_failures_last(plan, tmp_path):
    table = run(plan, tmp_path, Toy(lambda *_: None))
    assert table.text.isna().all()
    assert set(table.finish_reason) == {"failed"}
    assert set(table.error) == {"no net"}
    engine = Toy(parrot)
    assert run(plan, tmp_path, engine).text.isna().all()
    assert engine.batches == []


def test_a_damaged_shard_alone_is_asked_again(plan, tmp_path, capsys):
    whole = run(plan, tmp_path, Toy(parrot))
    shard = tmp_path / "part-00003.parquet"
    content = bytearray(shard.read_bytes())
    content[40] ^= 0xFF
    shard.write_bytes(content)
    engine = Toy(parrot)
    pd.testing.assert_frame_equal(run(plan, tmp_path, engine), whole)
    assert sum(engine.batches) == 50
    assert (tmp_path / "part-00003.parquet.damaged").exists()
    assert f"{shard} was damaged: it is moved aside and asked again\n" in capsys.readouterr().err


def test_another_model_is_refused_by_name_and_nothing_changes(plan, tmp_path):
    run(plan, tmp_path, Toy(parrot, model="small"))
    before = contents(tmp_path)
    with pytest.raises(StoreError, match="model 'small', this run asks with model 'large'"):
        run(plan, tmp_path, Toy(parrot, model="large"))
    assert contents(tmp_path) == before


def test_a_manifest_that_no_answer_follows_is_replaced_but_not_under_a_run(plan, tmp_path):
    """A mistyped address costs nothing; a store that was opened with it writes nothing."""
    wrong = open_store(tmp_path, plan, Toy(parrot, model="wrong"), SAMPLING, 50)
    run(plan, tmp_path, Toy(parrot, model="right"))
    with (
        pytest.raises(StoreError, match="answers with model 'right', this run asks with model"),
        wrong.writing(),
    ):
        pass


def test_another_prompt_text_or_sampling_is_refused(plan, tmp_path):
    run(plan, tmp_path, Toy(parrot))
    with pytest.raises(StoreError, match=r"holds answers to other prompts .*\(mv .*\.before"):
        run(religion(12, "P1,S0,T0"), tmp_path, Toy(parrot))
    warm = Sampling(temperature=1.0, seed=3)
    with pytest.raises(StoreError, match="holds answers with sampling_seed None"):
        open_store(tmp_path, plan, Toy(parrot), warm, 50)
    open_store(tmp_path, plan, Toy(parrot), Sampling(seed=9), 50)  # greedy: no seed counts


def test_other_chats_of_the_same_texts_are_refused(tmp_path):
    """The code that renders them changed, and nothing that it reads."""
    run(numbers(6), tmp_path, Toy(parrot_of_one), 4)
    other = rendered_otherwise(numbers(6))
    assert other.fingerprint == numbers(6).fingerprint
    with pytest.raises(StoreError, match="holds answers to other chats than this run renders"):
        run(other, tmp_path, Toy(parrot_of_one), 4)

    # A store from before the chats were in the manifest says nothing of them.
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    del manifest["chats"]
    filled(tmp_path / "old", manifest, [Reply("1", "stop")] * 4, [Reply("1", "stop")] * 2)
    assert len(run(other, tmp_path / "old", Toy(parrot_of_one), 4)) == 6


def parrot_of_one(chat, *_):
    return chat[0]["content"]


def test_answers_are_never_overwritten(plan, tmp_path):
    store = open_store(tmp_path, plan, Toy(parrot), SAMPLING, 50)
    with pytest.raises(StoreError, match=r"part-00000\.parquet is missing"):
        store.read()
    run(plan, tmp_path, Toy(parrot))
    with pytest.raises(StoreError, match="never overwritten"):
        store.write(0, [Reply("1", "stop")] * 50)
    with pytest.raises(StoreError, match="shard 1 takes 50 replies, found 49"):
        store.write(1, [Reply("1", "stop")] * 49)


def test_a_broken_or_lost_manifest_is_one_sentence(tmp_path):
    manifest = {"trials": 3, "shard_size": 2}
    filled(tmp_path / "a", manifest, [Reply("1", "stop")] * 2)
    (tmp_path / "a" / "manifest.json").write_text("{")
    with pytest.raises(StoreError, match="cannot be read as JSON"):
        Store(tmp_path / "a", manifest)
    (tmp_path / "a" / "manifest.json").unlink()
    with pytest.raises(StoreError, match=r"shards but no manifest\.json"):
        Store(tmp_path / "a", manifest)


@pytest.mark.parametrize("value", [None, 0, -1, 2.0, "3", True, [3]])
@pytest.mark.parametrize("name", ["trials", "shard_size"])
def test_a_manifest_without_a_number_that_every_reader_needs_is_one_sentence(tmp_path, name, value):
    file = tmp_path / "manifest.json"
    file.write_text(json.dumps({"trials": 3, "shard_size": 2} | {name: value}))
    with pytest.raises(StoreError, match=rf"manifest\.json says no number of {name}; move its"):
        read_manifest(file)


def test_the_manifest_pins_what_can_change_a_response_and_the_format(plan, tmp_path):
    engine = Toy(parrot, engine="toy", model="toy")
    run(plan, tmp_path, engine)
    file = tmp_path / "manifest.json"
    manifest = json.loads(file.read_text())
    assert manifest == {
        "engine": "toy",
        "model": "toy",
        "sampling_temperature": 0.0,
        "sampling_max_tokens": 128,
        "prompts": plan.fingerprint,
        "trials": 432,
        "shard_size": 50,
        "chats": plan.chats_digest,
        "format": 5,
    }
    for version in (None, 4, 6):
        file.write_text(json.dumps(manifest | {"format": version}))
        with pytest.raises(StoreError, match=f"with format {version}, this run asks with format 5"):
            run(plan, tmp_path, engine)


def test_probabilities_are_stored_where_the_sampling_has_choices(tmp_path):
    given = (0.75, 0.25, 0.0, 1e-9)
    replies = [Reply("7", "stop", probabilities=given, mass=(0.25,)), Reply(None, "failed")]
    manifest = {"trials": 2, "shard_size": 2}
    asked = filled(tmp_path / "a", manifest | {"sampling_choices": list("7890")}, replies).read()
    column = asked.probabilities
    assert column.dtype == pd.ArrowDtype(SCHEMA.field("probabilities").type)
    assert column[0] == pytest.approx(given, rel=5e-4, abs=3e-8)  # three digits
    assert (len(column[1]), len(asked.mass[1]), asked.mass[0][0]) == (0, 0, 0.25)
    plain = filled(tmp_path / "b", manifest, replies)
    scored = {"probabilities", "mass", "steps"}
    assert plain.read().columns.tolist() == [n for n in SCHEMA.names if n not in scored]


def test_steps_are_stored_where_the_manifest_says_which_is_which(tmp_path):
    steps = (-0.5, -12.25, -3.0)
    scored = Reply("7", "stop", probabilities=(0.9, 0.1), mass=(0.25,), steps=steps)
    manifest = {"trials": 2, "shard_size": 2, "sampling_choices": ["7", "70"]}
    spelling = {"spelling": {"": [[5], [5, 6]]}}
    found = filled(tmp_path / "a", manifest | spelling, [scored, Reply(None, "failed")]).read()
    assert [list(one) for one in found.steps] == [list(steps), []]
    older = filled(tmp_path / "b", manifest, [scored, scored]).read()
    assert "steps" not in older.columns


def test_a_store_from_before_steps_were_kept_goes_on_without_them(plan, tmp_path):
    scale = Sampling(choices=("1", "2"))
    told = Reply("1", "stop", probabilities=(0.5, 0.5), mass=(1,), steps=(-1.0, -1.0))
    run(plan, tmp_path / "old", Toy(lambda *_: told), sampling=scale)
    (tmp_path / "old" / "part-00000.parquet").unlink()
    spelling = Toy(lambda *_: told)
    spelling.spelling = lambda sampling: {"": [[5], [6]]}
    again = run(plan, tmp_path / "old", spelling, sampling=scale)
    assert "steps" not in again.columns
    anew = run(plan, tmp_path / "new", spelling, sampling=scale)
    assert anew.steps.map(list).tolist() == [[-1.0, -1.0]] * len(plan)


@pytest.mark.parametrize(
    ("probabilities", "mass"),
    [
        ((np.nan, np.nan), (np.nan,)),
        ((np.inf, 0.0), (0.5,)),
        ((1.5, -0.5), (0.5,)),
        ((0.5, 0.4), (0.5,)),
        ((0.5, 0.25, 0.25), (0.5,)),
        ((0.5, 0.5), (np.nan,)),
        ((0.5, 0.5), (1.5,)),
        ((0.5, 0.5), (0.5, 0.5)),
    ],
)
def test_scored_answers_that_cannot_be_right_are_refused_on_reading(probabilities, mass, tmp_path):
    sound = Reply("1", "stop", probabilities=(0.25, 0.75), mass=(0.5,))
    broken = Reply("1", "stop", probabilities=probabilities, mass=mass)
    manifest = {"trials": 4, "shard_size": 2, "sampling_choices": ["0", "1"]}
    store = filled(tmp_path, manifest, [sound, Reply(None, "failed")], [sound, broken])
    assert len(store.read(0, 2)) == 2
    with pytest.raises(StoreError, match=r"part-00001.* are not from 0 to 1.*run again"):
        store.read()


def test_another_scale_or_other_leads_are_another_manifest(plan, tmp_path):
    scale = Sampling(choices=("1", "2"))
    told = Reply("1", "stop", probabilities=(0.5, 0.5), mass=(1,))
    run(plan, tmp_path, Toy(lambda *_: told), sampling=scale)
    for other in (Sampling(choices=("1", "3")), Sampling(choices=("1", "2"), leads=("a",))):
        with pytest.raises(StoreError, match=r"holds answers with sampling_(choices|leads) "):
            run(plan, tmp_path, Toy(lambda *_: told), sampling=other)
    with pytest.raises(StoreError, match=r"holds answers with sampling_\w+ .*None"):
        run(plan, tmp_path, Toy(parrot))
    # What cannot change a reply over choices is not pinned.
    again = Sampling(temperature=1, max_tokens=3, seed=9, choices=("1", "2"))
    assert run(plan, tmp_path, Toy(parrot), sampling=again).text.unique().tolist() == ["1"]


def test_the_journal_gives_back_what_it_was_given(tmp_path):
    scored = {"probabilities": (0.5, 0.5), "mass": (0.25,), "steps": (-0.5, -0.7)}
    reply = Reply("7", "stop", 9, 4, 2, **scored)
    file = tmp_path / "journal.jsonl"
    Journal(file, "a").add(3, reply)
    with file.open("ab") as stream:
        stream.write(b"torn")
    assert Journal(file, "a").kept == {3: reply}
    assert Journal(file, "b").kept == {}


def test_a_journal_that_is_a_folder_is_one_sentence(plan, tmp_path):
    run(plan, tmp_path, Toy(parrot))
    (tmp_path / "journal.jsonl" / "inside").mkdir(parents=True)
    store = open_store(tmp_path, plan, Toy(parrot), SAMPLING, 50)
    said = r"journal\.jsonl cannot be read: Is a directory; move it away$"
    with store.writing(), pytest.raises(StoreError, match=said):
        store.journal()


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def test_failed_trials_are_asked_again_together_by_the_next_run(plan, tmp_path):
    whole = run(plan, tmp_path / "whole", Toy(parrot))
    failing = [t.index for t in plan if fails(t.messages)]
    folder, server = tmp_path / "store", server_of(2)

    first = run(plan, folder, server)
    assert first.trial[first.finish_reason == "failed"].tolist() == failing
    assert server.batches == [50] * 8 + [32]
    before = contents(folder)

    server.batches.clear()
    pd.testing.assert_frame_equal(run(plan, folder, server), first)
    assert sum(server.batches) == len(failing)
    assert len(server.batches) < 432 / 50 / 2, "trials of several shards go out together"
    assert max(server.batches) <= 50
    assert contents(folder) == before, "all failed again: nothing to write"

    pd.testing.assert_frame_equal(run(plan, folder, server), whole)
    after = contents(folder)
    assert {name: after[name] for name in before} == before, "shards stay as they are"
    supplements = {name.partition(".again-")[0] for name in set(after) - set(before)}
    assert supplements == {f"part-{trial // 50:05d}" for trial in failing}

    server.batches.clear()
    pd.testing.assert_frame_equal(run(plan, folder, server), whole)
    assert server.batches == []


def test_a_server_that_is_down_leaves_everything_as_it_was(plan, tmp_path):
    server = server_of(1)
    first = run(plan, tmp_path, server)
    before = contents(tmp_path)

    def down(*_):
        raise EngineError("no server")

    with pytest.raises(EngineError, match="no server"):
        run(plan, tmp_path, Toy(down, asks_again=True))
    assert contents(tmp_path) == before
    pd.testing.assert_frame_equal(open_store(tmp_path, plan, server, SAMPLING, 50).read(), first)
    assert "failed" not in set(run(plan, tmp_path, server).finish_reason)


def test_a_damaged_supplement_is_moved_aside_and_its_trials_asked_again(plan, tmp_path):
    server = server_of(1)
    run(plan, tmp_path, server)
    whole = run(plan, tmp_path, server)
    supplement = tmp_path / "part-00004.again-1.parquet"
    held = set(pd.read_parquet(supplement).trial)
    supplement.write_bytes(supplement.read_bytes()[:-1])
    with pytest.raises(StoreError, match=r"part-00004\.again-1\.parquet is damaged"):
        open_store(tmp_path, plan, server, SAMPLING, 50).read()
    server.batches.clear()
    pd.testing.assert_frame_equal(run(plan, tmp_path, server), whole)
    assert server.batches == [len(held)]
    assert (tmp_path / "part-00004.again-1.parquet.damaged").exists()


def test_of_several_replies_the_latest_counts_unless_it_failed(tmp_path):
    failed = Reply(None, "failed", error="no net")
    first = [Reply("0", "stop"), failed, failed, failed], [Reply("4", "stop"), failed]
    store = filled(tmp_path, {"trials": 6, "shard_size": 4}, *first)
    store.write_again([1, 2, 3, 5], [Reply("1", "stop"), failed, failed, failed])
    store.write_again([1, 2, 3], [failed, Reply("2", "stop"), failed])
    for number in range(3, 12):
        store.write_again([2], [Reply(f"two {number}", "length")])
    for name in (".part-00000.parquet.7.tmp", "part-00000.parquet.damaged", "part-0.parquet.bak"):
        (tmp_path / name).write_bytes(b"x")
    table = store.read()
    assert table.text.astype(object).where(table.text.notna(), None).tolist() == [
        "0", "1", "two 11", None, "4", None
    ]  # fmt: skip
    assert table.finish_reason.tolist() == ["stop", "stop", "length", "failed", "stop", "failed"]
    assert store.read(1, 3).text.tolist() == ["1", "two 11"]
    assert store.state() == ([], [3, 5], [], [])
    assert {file.name for file in tmp_path.glob("*.again-*")} == {
        f"part-00000.again-{number}.parquet" for number in range(1, 12)
    }


def test_a_reply_that_was_cut_is_asked_again_with_more_tokens_alone(tmp_path):
    plan = numbers(6)
    limits = []

    class Wordy(Toy):
        def answer(self, conversations, sampling):
            limits.append((sampling.max_tokens, [chat[-1]["content"] for chat in conversations]))
            return [self.of_one(int(chat[-1]["content"]), sampling) for chat in conversations]

        def of_one(self, number, sampling):
            needed = 10 * (number + 1)
            if needed <= sampling.max_tokens:
                return Reply(str(number), "stop", reasoning="hm")
            return Reply("", "length", reasoning="hm")

    def texts(max_tokens):
        sampling = Sampling(max_tokens=max_tokens)
        return run(plan, tmp_path, Wordy(None), 4, sampling).text.tolist()

    assert texts(40) == ["0", "1", "2", "3", "", ""]
    manifest = (tmp_path / "manifest.json").read_bytes()
    limits.clear()

    # Only the replies that were cut are asked again, and the one that is cut again stays so.
    assert texts(50) == ["0", "1", "2", "3", "4", ""]
    assert limits == [(50, ["4", "5"])]
    assert texts(50) == ["0", "1", "2", "3", "4", ""]
    assert len(limits) == 1
    assert texts(60) == ["0", "1", "2", "3", "4", "5"]
    assert limits[1:] == [(60, ["5"])]

    # Nothing that was there was overwritten, and fewer tokens than the first run had are refused.
    assert (tmp_path / "manifest.json").read_bytes() == manifest
    table = open_store(tmp_path, plan, Wordy(None), Sampling(max_tokens=40), 4).read()
    assert table["max_tokens"].tolist() == [40, 40, 40, 40, 50, 60]
    with pytest.raises(StoreError, match=r"sampling_max_tokens 40, this run asks with .* 39"):
        texts(39)


def test_a_journal_of_a_run_with_fewer_tokens_keeps_all_but_the_cut_replies(tmp_path):
    file = tmp_path / "journal.jsonl"
    journal = shards.Journal(file, "manifest", 40)
    whole = Reply("1", "stop", reasoning="hm", reasoning_tokens=3)
    journal.add(1, whole)
    journal.add(2, Reply("", "length", reasoning="hm"))
    assert set(shards.Journal(file, "manifest", 40).kept) == {1, 2}
    assert shards.Journal(file, "manifest", 50).kept == {1: whole}


def test_a_shard_from_before_reasoning_was_stored_apart_is_split_when_it_is_read(
    tmp_path, monkeypatch
):
    names = ["reasoning", "reasoning_tokens", "max_tokens"]
    old = pa.schema([field for field in shards.SCHEMA if field.name not in names])
    monkeypatch.setattr(shards, "SCHEMA", old)
    texts = ["72", "<think>a first guess is 72. But wait", "<think>70?</think> I can't"]
    replies = [*(Reply(text, "length", 1, 0, 9) for text in texts), Reply(None, "failed")]
    manifest = {"trials": 4, "shard_size": 4, "sampling_max_tokens": 9}
    filled(tmp_path, manifest, replies)
    monkeypatch.undo()

    store = Store(tmp_path, manifest)
    table = store.read()
    assert table.text.astype(object).tolist()[:3] == ["72", "", "I can't"]
    assert table.reasoning.tolist() == ["", "a first guess is 72. But wait", "70?", ""]
    assert table.text.isna().tolist() == [False, False, False, True]
    assert store.state() == ([], [3], [], [])
    assert Store(tmp_path, manifest | {"sampling_max_tokens": 10}).state().cut == [0, 1, 2]


def test_a_flipped_bit_in_any_byte_of_a_shard_is_found(tmp_path):
    replies = [Reply(str(n % 3), "stop", 10 + n, 4, 1, "", "", (0.5, 0.5), (1,)) for n in range(7)]
    replies.append(Reply(None, "failed", error="no net"))
    store = filled(tmp_path, {"trials": 8, "shard_size": 8}, replies)
    assert store.read().text.astype(object).tolist()[:7] == [*"0120120"]
    content = np.memmap(store.path(0), mode="r+")  # bytes that change in the file itself
    for place in range(len(content)):
        content[place] ^= 1 << place % 8
        assert store.state().damaged, f"byte {place}"
        content[place] ^= 1 << place % 8
    assert store.state().damaged == []


def test_a_shard_that_belongs_elsewhere_is_no_answer(plan, tmp_path):
    """Of another model or a store of another size, another shard's, a supplement, a copy of one."""
    server = server_of(1)
    run(plan, tmp_path / "a", server)
    whole = run(plan, tmp_path / "a", server)
    run(plan, tmp_path / "b", Toy(parrot, model="other"))
    short = Few(plan, 0, 20)
    run(short, tmp_path / "c", server_of(0), 50)
    first = "part-00000.parquet"
    supplement = "part-00000.again-1.parquet"
    for number, (store, file, place) in enumerate(
        [
            ("b", first, first),
            ("c", first, first),
            ("a", "part-00002.parquet", "part-00003.parquet"),
            ("a", supplement, first),
            ("a", first, supplement),
            ("a", supplement, supplement.replace("1.par", "2.par")),
        ]
    ):
        folder = shutil.copytree(tmp_path / "a", tmp_path / str(number))
        shutil.copy(tmp_path / store / file, folder / place)
        with pytest.raises(StoreError, match=rf"{place} is damaged"):
            open_store(folder, plan, server, SAMPLING, 50).read()
        pd.testing.assert_frame_equal(run(plan, folder, server), whole)
        assert (folder / f"{place}.damaged").exists()


def test_a_shard_that_cannot_be_read_is_one_sentence(plan, tmp_path):
    run(plan, tmp_path, Toy(parrot))
    (tmp_path / "part-00003.parquet").unlink()
    (tmp_path / "part-00003.parquet").mkdir()
    with pytest.raises(StoreError, match=r"part-00003\.parquet cannot be read: Is a directory"):
        run(plan, tmp_path, Toy(parrot))


def test_two_threads_of_one_process_exclude_each_other(plan, tmp_path):
    first, second = (open_store(tmp_path, plan, Toy(parrot), SAMPLING, 50) for _ in range(2))

    def other():
        with second.writing():
            pass

    with ThreadPoolExecutor(1) as thread, first.writing():
        for _ in range(2):  # a refusal must not free what it did not hold
            with pytest.raises(StoreError, match="another run is writing to"):
                thread.submit(other).result()
        with pytest.raises(StoreError, match="another run is writing to"), second.writing():
            pass
    other()


def test_any_reader_of_parquet_reads_a_shard(plan, tmp_path):
    whole = run(plan, tmp_path, Toy(parrot))
    shard = pd.read_parquet(tmp_path / "part-00001.parquet")
    assert shard.text.tolist() == whole.text[50:100].tolist()


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "make room on that disk"),
        (errno.EDQUOT, "make room in your quota"),
        (errno.EROFS, "allow writing there"),
        (errno.EIO, "look after that disk"),
    ],
)
def test_a_disk_that_takes_no_more_is_one_sentence(tmp_path, monkeypatch, number, remedy):
    one, fsync = [Reply("1", "stop")], Mock(side_effect=OSError(number, os.strerror(number)))
    store = filled(tmp_path, {"trials": 2, "shard_size": 1}, one)
    before = contents(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(StoreError) as caught, store.writing():
            store.write(1, one)
    assert str(caught.value) == (
        f"{tmp_path}/part-00001.parquet cannot be written: {os.strerror(number)}; all shards that "
        f"are there are whole and stay, {remedy} and run again to go on behind them"
    )
    assert contents(tmp_path) == before
    fsync.assert_called_once()
    (tmp_path / ".part-00001.parquet.17.tmp").write_bytes(b"PAR1")  # what a killed run left
    filled(tmp_path, store.manifest)
    assert contents(tmp_path) == before


TEXTS = ["85", "I can't answer that.", "7", "85\n\nbecause", "!!!!![]!!", "70"]


@pytest.fixture
def short(tmp_path):
    """Eleven shards of four trials, the last half full, and a supplement."""

    def reply(trial):
        if trial % 11 == 5:
            return Reply(None, "failed", error="no net")
        return Reply(TEXTS[trial * trial % len(TEXTS)], "stop", 10 + trial, 4, 1)

    replies = [reply(trial) for trial in range(42)]
    in_fours = [replies[start : start + 4] for start in range(0, 42, 4)]
    store = filled(tmp_path, {"trials": 42, "shard_size": 4}, *in_fours)
    store.write_again([5], [Reply("99", "stop", 10, 4, 1)])
    return store


def plain(table):
    """Categories as text: a part has those of its own shards."""
    names = ["text", "finish_reason", "error"]
    return table.astype(dict.fromkeys(names, "str")).reset_index(drop=True)


@pytest.mark.parametrize("number", [1, 2, 16])
def test_the_parts_are_the_whole(short, number, monkeypatch):
    monkeypatch.setattr(stores, "SHARDS", number)
    found = list(parts(short))
    pd.testing.assert_frame_equal(plain(pd.concat(found)), plain(short.read()))
    # No shard is read twice.
    assert [part.trial.iloc[0] for part in found] == list(range(0, 42, number * 4))


@pytest.mark.parametrize(("start", "stop"), [(0, None), (0, 4), (3, 9), (5, 6), (8, 41)])
def test_some_trials_are_rows_of_the_whole(short, start, stop):
    rows = short.read().iloc[start:stop]
    rows = rows.assign(trial=rows.trial - start)
    pd.testing.assert_frame_equal(plain(short.read(start, stop)), plain(rows))


def test_the_parts_before_a_damaged_shard_come_and_it_is_named(short, monkeypatch):
    monkeypatch.setattr(stores, "SHARDS", 2)
    short.path(7).write_bytes(short.path(7).read_bytes()[:-20] + bytes(20))
    found = parts(short)
    assert [len(next(found)) for _ in range(3)] == [8, 8, 8]
    with pytest.raises(StoreError, match=r"part-00007.parquet is damaged"):
        next(found)


def test_answers_that_stand_in_a_journal_alone_are_refused_to_another_manifest(tmp_path):
    """Before the first shard a killed run has left nothing else of what was paid for."""
    first = Store(tmp_path, {"model": "a", "trials": 3, "shard_size": 3})
    with first.writing():
        first.journal().add(1, Reply("7", "stop"))
    before = contents(tmp_path)
    with pytest.raises(StoreError, match="answers with model 'a', this run asks with model 'b'"):
        Store(tmp_path, first.manifest | {"model": "b"})
    assert contents(tmp_path) == before
    assert Store(tmp_path, first.manifest).journal().kept == {1: Reply("7", "stop")}


@pytest.mark.parametrize("column", ["price_share", "reasoning"])
def test_replies_from_before_a_column_count_at_the_whole_price(column, tmp_path, monkeypatch):
    """Columns were added one behind the other: what lacks one lacks those behind it."""
    names = SCHEMA.names[: SCHEMA.names.index(column)]
    monkeypatch.setattr(shards, "SCHEMA", pa.schema([SCHEMA.field(name) for name in names]))
    path = tmp_path / "part-00000.parquet"
    shards.write(path, "m", range(2), [Reply("1", "stop", price_share=0.5), Reply("2", "stop")], 8)
    monkeypatch.undo()

    table = shards.read(path, "m", range(2), True, SCHEMA.names)
    assert table["price_share"].to_pylist() == [1.0, 1.0]
    assert table["text"].to_pylist() == ["1", "2"]
    assert table["max_tokens"].to_pylist() == ([8, 8] if "max_tokens" in names else [0, 0])
