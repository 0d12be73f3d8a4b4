"""Calls: where their answers are, who is asked, and what a study analyses of them."""

import json
from dataclasses import replace
from shutil import copy

import pytest

from ingroup import paths
from ingroup.inference import Call, Reply, Sampling, StoreError, ask, call, rated, stored
from ingroup.inference.call import rated_by, there
from toy import Toy, numbers, rendered_otherwise, run

MODELS = paths.MODELS  # the real ones
CHOICES = Sampling(choices=("0", "1"))
CHOSEN = Reply("1", "stop", 10, 4, 1, probabilities=(0.25, 0.75), mass=(0.5,))


@pytest.fixture(scope="module")
def plan():
    return numbers(20)


@pytest.fixture(autouse=True)
def roots(tmp_path, monkeypatch):
    """Responses and recordings of the test's own, and no engine: what makes one fails."""
    for name in ("RESPONSES", "RECORDINGS", "MODELS", "MADE"):
        monkeypatch.setattr(paths, name, tmp_path / name)
    (tmp_path / "MODELS").mkdir()
    copy(MODELS / "models.csv", tmp_path / "MODELS")
    copy(MODELS / "carried.yaml", tmp_path / "MODELS")

    def fail(name, model, **options):
        raise AssertionError(f"an engine {name} was made of {model}")

    monkeypatch.setattr(call, "make_engine", fail)


def called(plan, model="m", engine="vllm", sampling=CHOICES, **more):
    return Call("empathy_gap", "sample-12", model, engine, "P0", plan, sampling, **more)


def answered(one, root, engine, reply=CHOSEN, **identity):
    """The answers to a call, of some engine, below ``root``."""
    there = replace(one, engine=engine)
    toy = Toy(lambda *_: reply, engine=engine, model=one.model, **identity)
    run(one.design, root / there.address, toy, sampling=one.sampling)
    return root / there.address


def test_recorded_answers_come_before_those_of_a_run(plan):
    one = called(plan)
    assert one.folder == paths.RESPONSES / "empathy_gap" / "sample-12" / "m@vllm" / "P0+choices"
    made = answered(one, paths.RESPONSES, "vllm")
    assert one.folder == made
    recorded = answered(one, paths.RECORDINGS / "m", "vllm")
    assert one.folder == recorded
    assert called(plan, "n").folder.parents[3] == paths.RESPONSES
    assert called(plan, engine="transformers").folder.parent.name == "m@transformers"
    assert called(plan, sampling=Sampling()).folder.name == "P0"  # what is asked freely is apart


def test_the_engine_stored_finds_the_answers_of_any(plan):
    one = called(plan, engine="stored")
    assert one.folder == paths.RESPONSES / one.address
    answered(called(plan, "m-2"), paths.RESPONSES, "transformers")
    assert one.folder == paths.RESPONSES / one.address  # another model's name begins alike
    made = answered(one, paths.RESPONSES, "transformers")
    assert one.folder == made
    recorded = answered(one, paths.RECORDINGS / "m", "vllm")
    assert one.folder == recorded
    assert set(stored(one).read().text) == {"1"}
    odd = called(plan, "org/[m]*", engine="stored")
    assert odd.folder.name == "P0+choices"
    assert odd.folder.parent.name == "org--[m]*@stored"
    made = answered(odd, paths.RESPONSES, "vllm")
    assert odd.folder == made


def test_answers_under_an_engines_earlier_name_are_read_where_they_are_complete(plan):
    one = called(plan, engine="inspect", sampling=Sampling())
    once_failed = lambda chat, before, _: None if chat[0]["content"] == "7" else "yes"  # noqa: E731
    toy = Toy(once_failed, engine="openai", model="m")
    former = paths.RESPONSES / replace(one, engine="openai").address
    run(plan, former, toy, 10, Sampling())
    assert former.parent.name == "m@openai"
    assert one.folder == former
    assert ask([one], {}) == [one]  # no engine is made, though one call had failed
    assert stored(one).read().text.tolist()[:2] == ["yes", "yes"]

    other = called(plan, engine="inspect", sampling=Sampling(seed=1, temperature=0.5))
    assert other.folder == paths.RESPONSES / other.address
    next(former.glob("part-00001*")).unlink()
    assert one.folder == paths.RESPONSES / one.address


def test_a_damaged_file_and_a_supplement_do_not_decide_whose_answers_are_read(plan, capsys):
    one = called(plan, engine="stored")
    answered(one, paths.RESPONSES, "vllm")
    repaired = answered(called(plan), paths.RESPONSES, "vllm")
    recorded = answered(called(plan), paths.RECORDINGS / "m", "vllm")
    shard = repaired / "part-00000.parquet"
    copy(shard, repaired / "part-00000.parquet.damaged")
    copy(shard, repaired / "part-00000.again-1.parquet")
    capsys.readouterr()
    assert one.folder == recorded
    assert called(plan).folder == recorded
    assert ask([one], {}) == [one]
    said = f"several folders hold answers: {recorded} is read, and not {repaired}\n"
    assert capsys.readouterr().err == said
    shard.unlink()
    (recorded / "part-00000.parquet").rename(recorded / "part-00000.parquet.damaged")
    assert one.folder == recorded  # of equals


def test_a_recording_that_is_its_own_root_is_one_folder(plan, capsys):
    """``make record`` writes new answers into the folder of recordings."""
    root = paths.RECORDINGS / "m"
    one = called(plan, root=root)
    recorded = answered(one, root, "vllm")
    capsys.readouterr()
    assert one.folders == [recorded]
    assert ask([one], {}) == [one]
    assert "several folders" not in capsys.readouterr().err


def test_the_choice_among_several_folders_is_one_line(plan, capsys):
    calls = [called(plan, f"m{number}") for number in range(5)]
    for one in calls:
        answered(one, paths.RESPONSES, "vllm")
        answered(one, paths.RECORDINGS / one.model, "vllm")
    capsys.readouterr()
    ask(calls, {})
    said = capsys.readouterr().err
    assert said.count("is read, and not") == 3
    assert said.endswith("; 2 calls more have several, too\n")


def test_of_several_stores_the_one_with_most_shards_is_read(plan):
    one = called(plan, engine="stored")
    broken = answered(one, paths.RESPONSES, "transformers")
    whole = answered(one, paths.RESPONSES, "vllm")
    assert one.folder == broken  # the first by name, of equals
    next(broken.glob("part-*")).unlink()
    assert one.folder == whole


def test_where_nothing_is_missing_no_engine_is_made(plan):
    one = called(plan)
    answered(one, paths.RESPONSES, "vllm", revision="a", bos="template", dtype="float32")
    given = {"BOS": "template", "DTYPE": "auto", "BATCH_SIZE": 64}
    assert ask([one], given) == [one]
    with pytest.raises(AssertionError, match="an engine vllm was made of m"):
        ask([called(plan, sampling=Sampling())], given)
    shard = next(one.folder.glob("part-00000*"))
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(AssertionError, match="an engine vllm was made of m"):
        ask([one], given)


def test_a_server_that_cannot_be_asked_is_said_before_others_are_asked(plan):
    with pytest.raises(AssertionError, match="an engine inspect was made of n"):
        ask([called(plan), called(plan, "n", engine="inspect")], {})


def test_what_was_kept_on_the_way_is_not_all(plan):
    one = called(plan)
    answered(one, paths.RESPONSES, "vllm")
    (one.folder / "journal.jsonl").write_text("{}")
    with pytest.raises(AssertionError, match="an engine vllm was made of m"):
        ask([one], {})


def test_failed_calls_are_a_reason_to_ask_a_server_again_and_no_other(plan):
    failed = Reply(None, "failed", error="no net")
    for engine in ("vllm", "inspect"):
        answered(called(plan, engine=engine), paths.RESPONSES, engine, failed)
    assert len(ask([called(plan)], {})) == 1
    with pytest.raises(AssertionError, match="an engine inspect was made of m"):
        ask([called(plan, engine="inspect")], {})


def test_answers_that_were_asked_otherwise_are_refused(plan):
    one = called(plan)
    answered(one, paths.RESPONSES, "vllm", bos="released", system="keep", dtype="float32")
    for name, value in {"BOS": "template", "DTYPE": "bfloat16", "SYSTEM": "fold"}.items():
        with pytest.raises(StoreError, match=f"holds answers with {name.lower()} "):
            ask([one], {"BOS": "released", name: value})
    with pytest.raises(StoreError, match="holds answers with system 'keep', this run asks with"):
        ask([replace(one, options={"system": "fold"})], {})  # as a study sets it
    wider = replace(one, sampling=Sampling(choices=("0", "1", "2")))
    with pytest.raises(StoreError, match="holds answers with sampling_choices "):
        ask([wider], {})


def test_what_is_recorded_with_another_sampling_is_asked_anew_elsewhere(plan):
    one = called(plan, sampling=Sampling(temperature=1.0, seed=1))
    recorded = answered(one, paths.RECORDINGS / "m", "vllm")
    other = replace(one, sampling=replace(one.sampling, seed=2))
    assert one.folder == recorded
    assert other.folder == paths.RESPONSES / one.address
    assert (
        replace(other, engine="stored").folder
        == paths.RESPONSES / one.address.parent.with_name("m@stored") / "P0"
    )


def test_a_model_that_was_trained_anew_is_refused(plan):
    one = called(plan)
    folder = paths.MODELS / "m"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    revision = call.models.revision(folder)
    answered(one, paths.RESPONSES, "vllm", revision=revision)
    assert ask([one], {}) == [one]
    (folder / "config.json").write_text('{"a": 1}')
    with pytest.raises(StoreError, match=f"holds answers with revision '{revision}'"):
        ask([one], {})
    answered(one, paths.RECORDINGS / "m", "vllm", revision=revision)
    with pytest.raises(StoreError, match=f"RECORDINGS.* holds answers with revision '{revision}'"):
        ask([one], {})
    paths.MADE.mkdir()
    folder.rename(paths.MADE / "m")
    assert ask([one], {}) == [one]  # weights that were made here need not be those that answered


def test_stored_answers_of_another_model_are_not_shown_as_its_own(plan, capsys):
    folder = answered(called(plan), paths.RESPONSES, "vllm")
    folder.parent.rename(folder.parent.with_name("other@vllm"))
    with pytest.raises(StoreError, match=r"^other: scored answers are not stored, and"):
        ask([called(plan, "other", "stored")], {})
    said = "other@vllm/P0+choices/manifest.json differs in model from what is asked\n"
    assert capsys.readouterr().err.endswith(said)


@pytest.mark.parametrize("root", ["RECORDINGS", "RESPONSES"])
@pytest.mark.parametrize(
    ("identity", "name"), [({"model": "other"}, "model"), ({"engine": "transformers"}, "engine")]
)
def test_no_reader_takes_the_answers_of_another_model_or_engine(plan, root, identity, name):
    one = called(plan)
    place = paths.RECORDINGS / "m" if root == "RECORDINGS" else paths.RESPONSES
    answered(one, place, "vllm")
    manifest = one.folder / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | identity))
    free = called(plan, sampling=Sampling())
    answered(free, paths.RESPONSES, "vllm", Reply("1", "stop"))

    refused = pytest.raises(StoreError, match=f"holds answers of the {name} '{identity[name]}', ")
    with refused:
        stored(one)
    with refused:
        there([one])
    with refused:
        rated_by("m", [one, free])  # as notebook 60 reads
    with refused:
        ask([one], {})
    assert rated_by("m", [free]) == [free]


def test_a_change_of_the_code_that_renders_chats_is_refused_by_every_reader(plan):
    one = called(plan)
    answered(one, paths.RESPONSES, "vllm")
    other = replace(one, design=rendered_otherwise(plan))
    for engine in ("vllm", "stored"):
        with pytest.raises(StoreError, match="holds answers to other chats than this run renders"):
            stored(replace(other, engine=engine))
    with pytest.raises(StoreError, match="holds answers to other chats than this run renders"):
        ask([other], {})
    assert there([one, other]) == [one]


def test_recordings_without_the_chats_in_their_manifest_have_them_in_a_table(plan):
    """The table is read once, so this needs a folder of its own."""
    one = called(plan)
    answered(one, paths.RECORDINGS / "m", "vllm")
    file = one.folder / "manifest.json"
    manifest = json.loads(file.read_text())
    del manifest["chats"]
    file.write_text(json.dumps(manifest))
    row = f'"m/{one.address.as_posix()}",{plan.chats_digest}'
    (paths.RECORDINGS / "chats.csv").write_text(f"call,chats\n{row}\n")
    assert stored(one).manifest == manifest
    with pytest.raises(StoreError, match="holds answers to other chats than this run renders"):
        stored(replace(one, design=rendered_otherwise(plan)))


def test_a_models_own_names_are_one(plan):
    """A folder, a name on the hub and the registry's name."""
    for asked, named in (
        ("/somewhere/mine/", "mine"),
        ("smollm2-135m-instruct", "HuggingFaceTB/SmolLM2-135M-Instruct"),
    ):
        one = called(plan, asked)
        answered(one, paths.RESPONSES, "vllm")
        manifest = one.folder / "manifest.json"
        manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"model": named}))
        assert stored(one).manifest["model"] == named


def test_of_stored_answers_a_damaged_file_is_named(plan, capsys):
    folder = answered(called(plan), paths.RESPONSES, "vllm")
    shard = next(folder.glob("part-00000*"))
    shard.write_bytes(shard.read_bytes()[:-1])
    capsys.readouterr()
    with pytest.raises(StoreError, match="m: scored answers are not stored"):
        ask([called(plan, engine="stored")], {})
    assert capsys.readouterr().err == f"{shard} is damaged\n"


def test_what_is_only_stored_is_left_out_where_it_is_not_here(plan, capsys):
    here, gone = called(plan, engine="stored"), called(plan, "n", "stored", labels={"setting": "P"})
    answered(here, paths.RESPONSES, "vllm")
    capsys.readouterr()
    assert ask([gone, here], {}) == [here]
    said = "scored answers (P) are not stored, and this run only reads what is stored of this model"
    assert capsys.readouterr().err == f"n: {said}\n"
    # Half of them, or those to another question, are none.
    part = answered(gone, paths.RESPONSES, "vllm")
    assert ask([gone], {}) == [gone]
    manifest = json.loads((part / "manifest.json").read_text())
    (part / "manifest.json").write_text(json.dumps(manifest | {"sampling_choices": ["0", "2"]}))
    assert ask([gone, here], {}) == [here]
    next(here.folder.glob("part-00000*")).unlink()
    with pytest.raises(StoreError, match=r"n: scored answers \(P\) are not stored"):
        ask([gone, here], {})
    five = [called(plan, f"m{number}", engine="stored") for number in range(5)]
    with pytest.raises(StoreError, match=r"(m\d: scored answers are not stored.*\n?){5}$"):
        ask(five, {})


def test_one_that_was_asked_over_choices_is_analysed_by_that(plan):
    free, chosen = called(plan, sampling=Sampling()), called(plan)
    other = called(plan, "n", sampling=Sampling())
    assert rated(iter([free, chosen, other])) == [chosen, other]
    assert rated([free, other]) == [free, other]
    assert [one.way for one in (free, chosen)] == ["freely", "over choices"]


def test_what_is_stored_costs_what_each_reply_was_bought_at(plan):
    """Of shards and of a journal; a model on this machine costs nothing, whatever BATCH says."""
    given = {"PRICE_IN": 1.0, "PRICE_OUT": 3.0, "BATCH": True}
    single = Reply("1", "stop", 10, 0, 20)
    in_batch = single._replace(price_share=0.5)
    served = called(plan, "one", "inspect", Sampling())
    answered(served, paths.RESPONSES, "inspect", single)
    batched = called(plan, "two", "inspect", Sampling())
    answered(batched, paths.RESPONSES, "inspect", in_batch)
    local = called(plan, "three", "vllm", Sampling())
    answered(local, paths.RESPONSES, "vllm", single)

    whole = len(plan) * (10 * 1.0 + 20 * 3.0) / 1e6
    assert call.cost_stored([served, local], given) == pytest.approx(whole)
    assert call.cost_stored([served, batched, local], given) == pytest.approx(1.5 * whole)

    store = stored(batched)
    with store.writing():
        store.journal().add(0, in_batch)
    kept = 0.5 * whole / len(plan)
    assert call.cost_stored([batched], given) == pytest.approx(0.5 * whole + kept)
