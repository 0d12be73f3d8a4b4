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

FAILED = Reply(None, "failed", error="no net")


def parrot(chat, *_):
    """A number by the length of the question."""
    return str(len(chat[1]["content"]) % 101)


def parrot_of_number(chat, *_):
    """The number that the prompt is."""
    return chat[0]["content"]


def is_of_failing_prompt(chat):
    """Whether a server fails here first, as it does with every seventh prompt."""
    return sum(str(chat).encode()) % 7 == 0


def server_of(failures):
    """A server that fails the first calls of every seventh prompt."""

    def say(chat, before, _):
        if before < failures and is_of_failing_prompt(chat):
            return None
        return parrot(chat)

    return Toy(say, asks_again=True)


def reply_always(reply):
    """An engine that gives every prompt the same reply."""
    return Toy(lambda *_: reply)


@pytest.fixture
def plan():
    return religion()


def filled(folder, manifest, *shards_of_replies):
    """A store with these shards, from the first on."""
    store = Store(folder, manifest)
    with store.writing():
        for shard, replies in enumerate(shards_of_replies):
            store.write(shard, replies)

    return store


def opened(folder, plan, engine, sampling=SAMPLING, shard_size=50):
    return open_store(folder, plan, engine, sampling, shard_size)


def contents(folder):
    """The bytes of each file of a folder."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def texts_of(table):
    """The texts of a table of replies, as str."""
    return table.text.astype(str).tolist()


def test_all_trials_are_answered_in_order(plan, tmp_path):
    table = run(plan, tmp_path, Toy(parrot))

    assert table.trial.tolist() == list(range(432))
    assert texts_of(table) == [parrot(trial.messages) for trial in plan]
    assert (table.cached_tokens == 4).all()


def test_what_is_answered_is_not_asked_again(plan, tmp_path):
    table = run(plan, tmp_path, Toy(parrot))
    second_engine = Toy(parrot)

    again = run(plan, tmp_path, second_engine)

    pd.testing.assert_frame_equal(again, table)
    assert second_engine.batches == []


def test_a_part_across_shards_is_read(plan, tmp_path):
    table = run(plan, tmp_path, Toy(parrot))

    part = opened(tmp_path, plan, Toy(parrot)).read(40, 260)

    assert part.trial.tolist() == list(range(220))
    assert texts_of(part) == texts_of(table)[40:260]


def test_failed_calls_have_a_reason_and_are_not_asked_again_where_failures_last(plan, tmp_path):
    failed = run(plan, tmp_path, reply_always(None))
    second_engine = Toy(parrot)

    again = run(plan, tmp_path, second_engine)

    assert failed.text.isna().all()
    assert set(failed.finish_reason) == {"failed"}
    assert set(failed.error) == {"no net"}
    assert again.text.isna().all()
    assert second_engine.batches == []


def test_a_damaged_shard_alone_is_asked_again(plan, tmp_path, capsys):
    whole = run(plan, tmp_path, Toy(parrot))
    shard = tmp_path / "part-00003.parquet"
    content = bytearray(shard.read_bytes())
    content[40] ^= 0xFF
    shard.write_bytes(content)
    engine = Toy(parrot)

    repaired = run(plan, tmp_path, engine)

    pd.testing.assert_frame_equal(repaired, whole)
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
    wrong = opened(tmp_path, plan, Toy(parrot, model="wrong"))
    run(plan, tmp_path, Toy(parrot, model="right"))

    said = "answers with model 'right', this run asks with model"
    with pytest.raises(StoreError, match=said), wrong.writing():
        pass


def test_another_prompt_text_is_refused(plan, tmp_path):
    run(plan, tmp_path, Toy(parrot))

    with pytest.raises(StoreError, match=r"holds answers to other prompts .*\(mv .*\.before"):
        run(religion(12, "P1,S0,T0"), tmp_path, Toy(parrot))


def test_another_sampling_is_refused(plan, tmp_path):
    run(plan, tmp_path, Toy(parrot))

    with pytest.raises(StoreError, match="holds answers with sampling_seed None"):
        opened(tmp_path, plan, Toy(parrot), Sampling(temperature=1.0, seed=3))
    opened(tmp_path, plan, Toy(parrot), Sampling(seed=9))  # greedy: no seed counts


def test_other_chats_of_the_same_texts_are_refused(tmp_path):
    """The code that renders them changed, and nothing that it reads."""
    run(numbers(6), tmp_path, Toy(parrot_of_number), 4)
    other = rendered_otherwise(numbers(6))
    assert other.fingerprint == numbers(6).fingerprint

    with pytest.raises(StoreError, match="holds answers to other chats than this run renders"):
        run(other, tmp_path, Toy(parrot_of_number), 4)


def test_a_store_from_before_chats_were_in_the_manifest_is_read(tmp_path):
    engine = Toy(parrot_of_number)
    manifest = dict(opened(tmp_path / "new", numbers(6), engine, shard_size=4).manifest)
    del manifest["chats"]
    reply = Reply("1", "stop")
    filled(tmp_path / "old", manifest, [reply] * 4, [reply] * 2)

    table = run(rendered_otherwise(numbers(6)), tmp_path / "old", engine, 4)

    assert len(table) == 6


def test_a_store_without_answers_is_not_read(plan, tmp_path):
    store = opened(tmp_path, plan, Toy(parrot))

    with pytest.raises(StoreError, match=r"part-00000\.parquet is missing"):
        store.read()


def test_answers_are_never_overwritten(plan, tmp_path):
    store = opened(tmp_path, plan, Toy(parrot))
    run(plan, tmp_path, Toy(parrot))
    reply = Reply("1", "stop")

    with pytest.raises(StoreError, match="never overwritten"):
        store.write(0, [reply] * 50)
    with pytest.raises(
        StoreError, match=r"found 49 replies for .*, expected 50, one per trial of shard 1"
    ):
        store.write(1, [reply] * 49)


def test_a_broken_manifest_is_one_sentence(tmp_path):
    manifest = {"trials": 3, "shard_size": 2}
    filled(tmp_path, manifest, [Reply("1", "stop")] * 2)
    (tmp_path / "manifest.json").write_text("{")

    with pytest.raises(StoreError, match="cannot be read as JSON"):
        Store(tmp_path, manifest)


def test_a_lost_manifest_is_one_sentence(tmp_path):
    manifest = {"trials": 3, "shard_size": 2}
    filled(tmp_path, manifest, [Reply("1", "stop")] * 2)
    (tmp_path / "manifest.json").unlink()

    with pytest.raises(StoreError, match=r"shards but no manifest\.json"):
        Store(tmp_path, manifest)


@pytest.mark.parametrize("value", [None, 0, -1, 2.0, "3", True, [3]])
@pytest.mark.parametrize("name", ["trials", "shard_size"])
def test_a_manifest_without_a_number_that_every_reader_needs_is_one_sentence(tmp_path, name, value):
    manifest = {"trials": 3, "shard_size": 2}
    manifest[name] = value
    file = tmp_path / "manifest.json"
    file.write_text(json.dumps(manifest))

    with pytest.raises(StoreError, match=rf"manifest\.json: found {name} .*, expected a whole"):
        read_manifest(file)


def test_the_manifest_pins_what_can_change_a_response_and_the_format(plan, tmp_path):
    run(plan, tmp_path, Toy(parrot, engine="toy", model="toy"))

    manifest = json.loads((tmp_path / "manifest.json").read_text())

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


@pytest.mark.parametrize("version", [None, 4, 6])
def test_a_store_of_another_format_is_refused(version, plan, tmp_path):
    engine = Toy(parrot, engine="toy", model="toy")
    run(plan, tmp_path, engine)
    file = tmp_path / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["format"] = version
    file.write_text(json.dumps(manifest))

    with pytest.raises(StoreError, match=f"with format {version}, this run asks with format 5"):
        run(plan, tmp_path, engine)


# ---- scored answers ------------------------------------------------------------------------------


def test_probabilities_are_stored_where_the_sampling_has_choices(tmp_path):
    probabilities = (0.75, 0.25, 0.0, 1e-9)
    scored = Reply("7", "stop", probabilities=probabilities, mass=(0.25,))
    manifest = {"trials": 2, "shard_size": 2, "sampling_choices": list("7890")}

    table = filled(tmp_path, manifest, [scored, Reply(None, "failed")]).read()

    column = table.probabilities
    assert column.dtype == pd.ArrowDtype(SCHEMA.field("probabilities").type)
    assert column[0] == pytest.approx(probabilities, rel=5e-4, abs=3e-8)  # three digits
    assert table.mass[0][0] == 0.25
    assert len(column[1]) == 0
    assert len(table.mass[1]) == 0


def test_without_choices_no_probabilities_are_stored(tmp_path):
    scored = Reply("7", "stop", probabilities=(0.75, 0.25), mass=(0.25,))
    manifest = {"trials": 2, "shard_size": 2}

    table = filled(tmp_path, manifest, [scored, Reply(None, "failed")]).read()

    scored_columns = {"probabilities", "mass", "steps"}
    free_columns = [name for name in SCHEMA.names if name not in scored_columns]
    assert table.columns.tolist() == free_columns


def test_steps_are_stored_where_the_manifest_says_which_is_which(tmp_path):
    steps = (-0.5, -12.25, -3.0)
    scored = Reply("7", "stop", probabilities=(0.9, 0.1), mass=(0.25,), steps=steps)
    manifest = {"trials": 2, "shard_size": 2, "sampling_choices": ["7", "70"]}
    with_spelling = manifest | {"spelling": {"": [[5], [5, 6]]}}

    table = filled(tmp_path / "new", with_spelling, [scored, Reply(None, "failed")]).read()
    older = filled(tmp_path / "older", manifest, [scored, scored]).read()

    assert list(table.steps[0]) == list(steps)
    assert list(table.steps[1]) == []
    assert "steps" not in older.columns


def test_a_store_from_before_steps_were_kept_goes_on_without_them(plan, tmp_path):
    scale = Sampling(choices=("1", "2"))
    scored = Reply("1", "stop", probabilities=(0.5, 0.5), mass=(1,), steps=(-1.0, -1.0))
    run(plan, tmp_path / "old", reply_always(scored), sampling=scale)
    (tmp_path / "old" / "part-00000.parquet").unlink()
    spelling_engine = reply_always(scored)
    spelling_engine.spelling = lambda sampling: {"": [[5], [6]]}

    completed = run(plan, tmp_path / "old", spelling_engine, sampling=scale)
    new = run(plan, tmp_path / "new", spelling_engine, sampling=scale)

    assert "steps" not in completed.columns
    assert new.steps.map(list).tolist() == [[-1.0, -1.0]] * len(plan)


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


@pytest.fixture
def one_or_two(plan, tmp_path):
    """An engine that scored every prompt on the scale of 1 and 2, into a store of the test's."""
    scored = Reply("1", "stop", probabilities=(0.5, 0.5), mass=(1,))
    engine = reply_always(scored)
    run(plan, tmp_path, engine, sampling=Sampling(choices=("1", "2")))
    return engine


@pytest.mark.parametrize(
    "sampling",
    [Sampling(choices=("1", "3")), Sampling(choices=("1", "2"), leads=("a",))],
    ids=["scale", "leads"],
)
def test_another_scale_or_other_leads_are_another_manifest(sampling, one_or_two, plan, tmp_path):
    with pytest.raises(StoreError, match=r"holds answers with sampling_(choices|leads) "):
        run(plan, tmp_path, one_or_two, sampling=sampling)


@pytest.mark.usefixtures("one_or_two")
def test_free_answers_are_not_added_to_scored_ones(plan, tmp_path):
    with pytest.raises(StoreError, match=r"holds answers with sampling_\w+ .*None"):
        run(plan, tmp_path, Toy(parrot))


@pytest.mark.usefixtures("one_or_two")
def test_what_cannot_change_a_scored_reply_is_not_pinned(plan, tmp_path):
    sampling = Sampling(temperature=1, max_tokens=3, seed=9, choices=("1", "2"))

    table = run(plan, tmp_path, Toy(parrot), sampling=sampling)

    assert table.text.unique().tolist() == ["1"]


# ---- the journal ---------------------------------------------------------------------------------


def test_the_journal_gives_back_what_it_was_given(tmp_path):
    reply = Reply(
        "7",
        "stop",
        9,
        4,
        2,
        probabilities=(0.5, 0.5),
        mass=(0.25,),
        steps=(-0.5, -0.7),
    )
    file = tmp_path / "journal.jsonl"
    Journal(file, "a").add(3, reply)
    with file.open("ab") as stream:
        stream.write(b"torn")

    assert Journal(file, "a").kept == {3: reply}
    assert Journal(file, "b").kept == {}


def test_a_journal_that_is_a_folder_is_one_sentence(plan, tmp_path):
    run(plan, tmp_path, Toy(parrot))
    (tmp_path / "journal.jsonl" / "inside").mkdir(parents=True)
    store = opened(tmp_path, plan, Toy(parrot))

    said = r"journal\.jsonl cannot be read: Is a directory; move it away$"
    with store.writing(), pytest.raises(StoreError, match=said):
        store.journal()


# ---- failed calls --------------------------------------------------------------------------------


@pytest.fixture
def failing(plan):
    """Numbers of the trials at which the server fails first."""
    return [trial.index for trial in plan if is_of_failing_prompt(trial.messages)]


def test_failed_trials_are_asked_again_together_by_the_next_run(plan, failing, tmp_path):
    server = server_of(2)

    first = run(plan, tmp_path, server)

    assert first.trial[first.finish_reason == "failed"].tolist() == failing
    assert server.batches == [50] * 8 + [32]

    before = contents(tmp_path)
    server.batches.clear()
    second = run(plan, tmp_path, server)

    pd.testing.assert_frame_equal(second, first)
    assert sum(server.batches) == len(failing)
    assert len(server.batches) < 432 / 50 / 2, "trials of several shards go out together"
    assert max(server.batches) <= 50
    assert contents(tmp_path) == before, "all failed again: nothing to write"


def test_replies_to_failed_trials_are_supplements_and_shards_stay_as_they_are(
    plan, failing, tmp_path
):
    whole = run(plan, tmp_path / "whole", Toy(parrot))
    folder = tmp_path / "store"
    server = server_of(1)
    run(plan, folder, server)
    before = contents(folder)

    completed = run(plan, folder, server)

    after = contents(folder)
    kept = {name: after[name] for name in before}
    supplemented = {name.partition(".again-")[0] for name in set(after) - set(before)}
    pd.testing.assert_frame_equal(completed, whole)
    assert kept == before
    assert supplemented == {f"part-{trial // 50:05d}" for trial in failing}

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
    pd.testing.assert_frame_equal(opened(tmp_path, plan, server).read(), first)
    completed = run(plan, tmp_path, server)
    assert "failed" not in set(completed.finish_reason)


def test_a_damaged_supplement_is_moved_aside_and_its_trials_asked_again(plan, tmp_path):
    server = server_of(1)
    run(plan, tmp_path, server)
    whole = run(plan, tmp_path, server)
    supplement = tmp_path / "part-00004.again-1.parquet"
    supplemented = set(pd.read_parquet(supplement).trial)
    supplement.write_bytes(supplement.read_bytes()[:-1])

    with pytest.raises(StoreError, match=r"part-00004\.again-1\.parquet is damaged"):
        opened(tmp_path, plan, server).read()

    server.batches.clear()
    repaired = run(plan, tmp_path, server)

    pd.testing.assert_frame_equal(repaired, whole)
    assert server.batches == [len(supplemented)]
    assert (tmp_path / "part-00004.again-1.parquet.damaged").exists()


@pytest.fixture
def supplemented(tmp_path):
    """Six trials, of which five failed at first, with eleven supplements and odd files beside."""
    store = filled(
        tmp_path,
        {"trials": 6, "shard_size": 4},
        [Reply("0", "stop"), FAILED, FAILED, FAILED],
        [Reply("4", "stop"), FAILED],
    )
    store.write_supplements([1, 2, 3, 5], [Reply("1", "stop"), FAILED, FAILED, FAILED])
    store.write_supplements([1, 2, 3], [FAILED, Reply("2", "stop"), FAILED])
    for number in range(3, 12):
        store.write_supplements([2], [Reply(f"two {number}", "length")])

    for name in (".part-00000.parquet.7.tmp", "part-00000.parquet.damaged", "part-0.parquet.bak"):
        (tmp_path / name).write_bytes(b"x")

    return store


def test_of_several_replies_the_latest_counts_unless_it_failed(supplemented):
    table = supplemented.read()

    texts = table.text.astype(object).where(table.text.notna(), None)
    assert texts.tolist() == ["0", "1", "two 11", None, "4", None]
    assert table.finish_reason.tolist() == ["stop", "stop", "length", "failed", "stop", "failed"]
    assert supplemented.read(1, 3).text.tolist() == ["1", "two 11"]
    assert supplemented.state() == ([], [3, 5], [], [])


def test_supplements_of_a_shard_are_numbered(supplemented, tmp_path):
    names = {file.name for file in tmp_path.glob("*.again-*")}

    assert names == {f"part-00000.again-{number}.parquet" for number in range(1, 12)}


# ---- replies that were cut -----------------------------------------------------------------------


class Wordy(Toy):
    """Needs ten tokens more for each number; keeps what it was asked with how many tokens."""

    def __init__(self):
        super().__init__(None)
        self.requests = []

    def answer(self, conversations, sampling):
        prompts = [chat[-1]["content"] for chat in conversations]
        self.requests.append((sampling.max_tokens, prompts))
        return [self._reply_within(prompt, sampling.max_tokens) for prompt in prompts]

    def _reply_within(self, prompt, max_tokens):
        needed = 10 * (int(prompt) + 1)
        if needed <= max_tokens:
            return Reply(prompt, "stop", reasoning="hm")
        return Reply("", "length", reasoning="hm")


def ask_wordy(folder, max_tokens):
    """Ask for six numbers; gives the texts and the requests that this run made."""
    engine = Wordy()
    table = run(numbers(6), folder, engine, 4, Sampling(max_tokens=max_tokens))
    return table.text.tolist(), engine.requests


def test_a_reply_that_was_cut_is_asked_again_with_more_tokens_alone(tmp_path):
    first, _ = ask_wordy(tmp_path, 40)
    with_50, requests_with_50 = ask_wordy(tmp_path, 50)
    again_with_50, requests_again = ask_wordy(tmp_path, 50)
    with_60, requests_with_60 = ask_wordy(tmp_path, 60)

    assert first == ["0", "1", "2", "3", "", ""]
    assert with_50 == ["0", "1", "2", "3", "4", ""]
    assert requests_with_50 == [(50, ["4", "5"])]
    assert again_with_50 == with_50
    assert requests_again == []
    assert with_60 == ["0", "1", "2", "3", "4", "5"]
    assert requests_with_60 == [(60, ["5"])]


def test_replies_with_more_tokens_overwrite_nothing_and_fewer_tokens_are_refused(tmp_path):
    ask_wordy(tmp_path, 40)
    manifest = (tmp_path / "manifest.json").read_bytes()
    ask_wordy(tmp_path, 50)
    ask_wordy(tmp_path, 60)

    store = opened(tmp_path, numbers(6), Wordy(), Sampling(max_tokens=40), 4)

    assert (tmp_path / "manifest.json").read_bytes() == manifest
    assert store.read()["max_tokens"].tolist() == [40, 40, 40, 40, 50, 60]
    with pytest.raises(StoreError, match=r"sampling_max_tokens 40, this run asks with .* 39"):
        ask_wordy(tmp_path, 39)


def test_a_journal_of_a_run_with_fewer_tokens_keeps_all_but_the_cut_replies(tmp_path):
    file = tmp_path / "journal.jsonl"
    whole = Reply("1", "stop", reasoning="hm", reasoning_tokens=3)
    cut = Reply("", "length", reasoning="hm")
    journal = Journal(file, "manifest", 40)
    journal.add(1, whole)
    journal.add(2, cut)

    assert set(Journal(file, "manifest", 40).kept) == {1, 2}
    assert Journal(file, "manifest", 50).kept == {1: whole}


# ---- shards of earlier formats, damaged ones, and those of other stores --------------------------


def schema_without(*names):
    """The columns of a shard without some of them."""
    return pa.schema([field for field in SCHEMA if field.name not in names])


def test_a_shard_from_before_reasoning_was_stored_apart_is_split_when_it_is_read(
    tmp_path, monkeypatch
):
    manifest = {"trials": 4, "shard_size": 4, "sampling_max_tokens": 9}
    replies = [
        Reply("72", "length", 1, 0, 9),
        Reply("<think>a first guess is 72. But wait", "length", 1, 0, 9),
        Reply("<think>70?</think> I can't", "length", 1, 0, 9),
        Reply(None, "failed"),
    ]
    with monkeypatch.context() as patch:
        old_schema = schema_without("reasoning", "reasoning_tokens", "max_tokens")
        patch.setattr(shards, "SCHEMA", old_schema)
        filled(tmp_path, manifest, replies)

    store = Store(tmp_path, manifest)
    table = store.read()
    with_more_tokens = Store(tmp_path, manifest | {"sampling_max_tokens": 10})

    assert table.text.astype(object).tolist()[:3] == ["72", "", "I can't"]
    assert table.reasoning.tolist() == ["", "a first guess is 72. But wait", "70?", ""]
    assert table.text.isna().tolist() == [False, False, False, True]
    assert store.state() == ([], [3], [], [])
    assert with_more_tokens.state().cut == [0, 1, 2]


def test_a_flipped_bit_in_any_byte_of_a_shard_is_found(tmp_path):
    replies = []
    for number in range(7):
        text = str(number % 3)
        reply = Reply(text, "stop", 10 + number, 4, 1, probabilities=(0.5, 0.5), mass=(1,))
        replies.append(reply)
    store = filled(tmp_path, {"trials": 8, "shard_size": 8}, [*replies, FAILED])
    assert store.read().text.astype(object).tolist()[:7] == [*"0120120"]

    content = np.memmap(store.path(0), mode="r+")  # bytes that change in the file itself
    for position in range(len(content)):
        bit = 1 << position % 8
        content[position] ^= bit
        assert store.state().damaged, f"byte {position}"
        content[position] ^= bit

    assert store.state().damaged == []


SHARD = "part-00000.parquet"
SUPPLEMENT = "part-00000.again-1.parquet"
MISPLACED = {
    "of another model": ("other", SHARD, SHARD),
    "of a store of another size": ("short", SHARD, SHARD),
    "another shard": ("whole", "part-00002.parquet", "part-00003.parquet"),
    "a supplement": ("whole", SUPPLEMENT, SHARD),
    "a shard as a supplement": ("whole", SHARD, SUPPLEMENT),
    "a copy of a supplement": ("whole", SUPPLEMENT, "part-00000.again-2.parquet"),
}


@pytest.mark.parametrize(("source", "file", "target"), MISPLACED.values(), ids=MISPLACED)
def test_a_shard_that_belongs_elsewhere_is_no_answer(source, file, target, plan, tmp_path):
    server = server_of(1)
    run(plan, tmp_path / "whole", server)
    whole = run(plan, tmp_path / "whole", server)
    run(plan, tmp_path / "other", Toy(parrot, model="other"))
    run(Few(plan, 0, 20), tmp_path / "short", server_of(0), 50)
    folder = shutil.copytree(tmp_path / "whole", tmp_path / "copy")
    shutil.copy(tmp_path / source / file, folder / target)

    with pytest.raises(StoreError, match=rf"{target} is damaged"):
        opened(folder, plan, server).read()
    repaired = run(plan, folder, server)

    pd.testing.assert_frame_equal(repaired, whole)
    assert (folder / f"{target}.damaged").exists()


def test_a_shard_that_cannot_be_read_is_one_sentence(plan, tmp_path):
    run(plan, tmp_path, Toy(parrot))
    shard = tmp_path / "part-00003.parquet"
    shard.unlink()
    shard.mkdir()

    with pytest.raises(StoreError, match=r"part-00003\.parquet cannot be read: Is a directory"):
        run(plan, tmp_path, Toy(parrot))


def test_two_threads_of_one_process_exclude_each_other(plan, tmp_path):
    first = opened(tmp_path, plan, Toy(parrot))
    second = opened(tmp_path, plan, Toy(parrot))

    def write_second():
        with second.writing():
            pass

    with ThreadPoolExecutor(1) as thread, first.writing():
        for _ in range(2):  # a refusal must not free what it did not hold
            with pytest.raises(StoreError, match="another run is writing to"):
                thread.submit(write_second).result()
        with pytest.raises(StoreError, match="another run is writing to"):
            write_second()

    write_second()


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
        (errno.EIO, "check that disk"),
    ],
)
def test_a_disk_that_takes_no_more_is_one_sentence(tmp_path, monkeypatch, number, remedy):
    replies = [Reply("1", "stop")]
    store = filled(tmp_path, {"trials": 2, "shard_size": 1}, replies)
    before = contents(tmp_path)
    fsync = Mock(side_effect=OSError(number, os.strerror(number)))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(StoreError) as caught, store.writing():
            store.write(1, replies)

    assert str(caught.value) == (
        f"{tmp_path}/part-00001.parquet cannot be written: {os.strerror(number)}; {remedy} and "
        "run again, which keeps all stored answers and asks the rest"
    )
    assert contents(tmp_path) == before
    fsync.assert_called_once()


def test_what_a_killed_run_left_half_written_is_removed(tmp_path):
    store = filled(tmp_path, {"trials": 2, "shard_size": 1}, [Reply("1", "stop")])
    before = contents(tmp_path)
    (tmp_path / ".part-00001.parquet.17.tmp").write_bytes(b"PAR1")

    filled(tmp_path, store.manifest)

    assert contents(tmp_path) == before


# ---- parts of a store ----------------------------------------------------------------------------

TEXTS = ["85", "I can't answer that.", "7", "85\n\nbecause", "!!!!![]!!", "70"]


@pytest.fixture
def short(tmp_path):
    """Eleven shards of four trials, the last half full, and a supplement."""

    def reply(trial):
        if trial % 11 == 5:
            return FAILED
        text = TEXTS[trial * trial % len(TEXTS)]
        return Reply(text, "stop", 10 + trial, 4, 1)

    replies = [reply(trial) for trial in range(42)]
    in_fours = [replies[start : start + 4] for start in range(0, 42, 4)]
    store = filled(tmp_path, {"trials": 42, "shard_size": 4}, *in_fours)
    store.write_supplements([5], [Reply("99", "stop", 10, 4, 1)])
    return store


def plain(table):
    """Categories as text: a part has those of its own shards."""
    names = ["text", "finish_reason", "error"]
    return table.astype(dict.fromkeys(names, "str")).reset_index(drop=True)


@pytest.mark.parametrize("number", [1, 2, 16])
def test_the_parts_are_the_whole_and_no_shard_is_read_twice(short, number, monkeypatch):
    monkeypatch.setattr(stores, "SHARDS_PER_PART", number)

    tables = list(parts(short))

    first_trials = [table.trial.iloc[0] for table in tables]
    pd.testing.assert_frame_equal(plain(pd.concat(tables)), plain(short.read()))
    assert first_trials == list(range(0, 42, number * 4))


@pytest.mark.parametrize(("start", "stop"), [(0, None), (0, 4), (3, 9), (5, 6), (8, 41)])
def test_some_trials_are_rows_of_the_whole(short, start, stop):
    rows = short.read().iloc[start:stop]
    rows = rows.assign(trial=rows.trial - start)

    part = short.read(start, stop)

    pd.testing.assert_frame_equal(plain(part), plain(rows))


def test_the_parts_before_a_damaged_shard_come_and_it_is_named(short, monkeypatch):
    monkeypatch.setattr(stores, "SHARDS_PER_PART", 2)
    shard = short.path(7)
    shard.write_bytes(shard.read_bytes()[:-20] + bytes(20))

    tables = parts(short)

    assert [len(next(tables)) for _ in range(3)] == [8, 8, 8]
    with pytest.raises(StoreError, match=r"part-00007.parquet is damaged"):
        next(tables)


def test_answers_that_stand_in_a_journal_alone_are_refused_to_another_manifest(tmp_path):
    """Before the first shard a killed run has left nothing else of what was paid for."""
    reply = Reply("7", "stop")
    first = Store(tmp_path, {"model": "a", "trials": 3, "shard_size": 3})
    with first.writing():
        first.journal().add(1, reply)
    before = contents(tmp_path)

    with pytest.raises(StoreError, match="answers with model 'a', this run asks with model 'b'"):
        Store(tmp_path, first.manifest | {"model": "b"})

    assert contents(tmp_path) == before
    assert Store(tmp_path, first.manifest).journal().kept == {1: reply}


@pytest.mark.parametrize(("column", "max_tokens"), [("price_share", 8), ("reasoning", 0)])
def test_replies_from_before_a_column_count_at_the_whole_price(
    column, max_tokens, tmp_path, monkeypatch
):
    """Columns were added one behind the other: what lacks one lacks those behind it."""
    shard = tmp_path / "part-00000.parquet"
    added_later = SCHEMA.names[SCHEMA.names.index(column) :]
    replies = [Reply("1", "stop", price_share=0.5), Reply("2", "stop")]
    with monkeypatch.context() as patch:
        patch.setattr(shards, "SCHEMA", schema_without(*added_later))
        shards.write_shard(shard, "m", range(2), replies, 8)

    table = shards.read_shard(shard, "m", range(2), True, SCHEMA.names)

    assert table["price_share"].to_pylist() == [1.0, 1.0]
    assert table["text"].to_pylist() == ["1", "2"]
    assert table["max_tokens"].to_pylist() == [max_tokens, max_tokens]
