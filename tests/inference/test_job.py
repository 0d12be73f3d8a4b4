"""Jobs: where their answers are, who is asked, and what a study analyses of them."""

import json
from dataclasses import replace
from shutil import copy

import pytest

from ingroup import paths
from ingroup.inference import Job, Reply, Sampling, StoreError, ask, job, rated, stored
from ingroup.inference.job import answered_jobs, rated_by
from toy import Toy, numbers, rendered_otherwise, run

REGISTRY = [paths.MODELS / "models.csv", paths.MODELS / "packaged.yaml"]
SCORED_SAMPLING = Sampling(choices=("0", "1"))
FREE = Sampling()
SCORED = Reply("1", "stop", 10, 4, 1, probabilities=(0.25, 0.75), mass=(0.5,))
OTHER_CHATS = "holds answers to other chats than this run renders"


@pytest.fixture(scope="module")
def plan():
    return numbers(20)


@pytest.fixture(autouse=True)
def roots(tmp_path, monkeypatch):
    """Responses and recordings of the test's own, and no engine: what makes one fails."""
    for name in ("RESPONSES", "RECORDINGS", "MODELS", "MADE"):
        monkeypatch.setattr(paths, name, tmp_path / name)
    paths.MODELS.mkdir()
    for file in REGISTRY:
        copy(file, paths.MODELS)

    def fail(name, model, **options):
        raise AssertionError(f"an engine {name} was made of {model}")

    monkeypatch.setattr(job, "make_engine", fail)


def job_of(plan, model="m", engine="vllm", sampling=SCORED_SAMPLING, **more):
    return Job("empathy_gap", "sample-12", model, engine, "P0", plan, sampling, **more)


def answer(asked_job, root, engine, reply=SCORED, **identity):
    """Answer a job by some engine below a root; gives the folder."""
    folder = root / replace(asked_job, engine=engine).address
    toy = Toy(lambda *_: reply, engine=engine, model=asked_job.model, **identity)
    run(asked_job.design, folder, toy, sampling=asked_job.sampling)
    return folder


def change_manifest(folder, **values):
    """Set some values of a store's manifest."""
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest.update(values)
    file.write_text(json.dumps(manifest))


def shorten(file):
    """Take the last byte of a file."""
    file.write_bytes(file.read_bytes()[:-1])


# ---- where answers are ---------------------------------------------------------------------------


def test_the_folder_names_study_stimuli_model_engine_and_setting(plan):
    folder = paths.RESPONSES / "empathy_gap" / "sample-12" / "m@vllm" / "P0+choices"

    assert job_of(plan).folder == folder
    assert job_of(plan, "n").folder.parents[3] == paths.RESPONSES
    assert job_of(plan, engine="transformers").folder.parent.name == "m@transformers"


def test_free_answers_have_a_folder_of_their_own(plan):
    assert job_of(plan, sampling=FREE).folder.name == "P0"


def test_recorded_answers_come_before_those_of_a_run(plan):
    scored = job_of(plan)

    of_run = answer(scored, paths.RESPONSES, "vllm")
    assert scored.folder == of_run

    recorded = answer(scored, paths.RECORDINGS / "m", "vllm")
    assert scored.folder == recorded


def test_the_engine_stored_finds_the_answers_of_any(plan):
    scored = job_of(plan, engine="stored")
    assert scored.folder == paths.RESPONSES / scored.address

    of_run = answer(scored, paths.RESPONSES, "transformers")
    assert scored.folder == of_run

    recorded = answer(scored, paths.RECORDINGS / "m", "vllm")
    assert scored.folder == recorded
    assert set(stored(scored).read().text) == {"1"}


def test_the_engine_stored_does_not_take_a_model_whose_name_begins_alike(plan):
    scored = job_of(plan, engine="stored")

    answer(job_of(plan, "m-2"), paths.RESPONSES, "transformers")

    assert scored.folder == paths.RESPONSES / scored.address


def test_a_models_name_may_hold_the_signs_of_a_pattern(plan):
    scored = job_of(plan, "org/[m]*", engine="stored")
    assert scored.folder.name == "P0+choices"
    assert scored.folder.parent.name == "org--[m]*@stored"

    of_run = answer(scored, paths.RESPONSES, "vllm")

    assert scored.folder == of_run


@pytest.fixture
def former(plan):
    """Free answers under an engine's earlier name, of which one failed."""

    def fail_at_7(chat, *_):
        return None if chat[0]["content"] == "7" else "yes"

    earlier = job_of(plan, engine="openai", sampling=FREE)
    folder = paths.RESPONSES / earlier.address
    run(plan, folder, Toy(fail_at_7, engine="openai", model="m"), 10, FREE)
    return folder


def test_complete_answers_under_an_engines_earlier_name_are_read(plan, former):
    free = job_of(plan, engine="inspect", sampling=FREE)

    assert former.parent.name == "m@openai"
    assert free.folder == former
    assert ask([free], {}) == [free]  # no engine is made, though one call had failed
    assert stored(free).read().text.tolist()[:2] == ["yes", "yes"]


def test_other_or_incomplete_answers_under_an_earlier_name_are_not_read(plan, former):
    free = job_of(plan, engine="inspect", sampling=FREE)
    warm = job_of(plan, engine="inspect", sampling=Sampling(seed=1, temperature=0.5))
    assert warm.folder == paths.RESPONSES / warm.address

    next(former.glob("part-00001*")).unlink()

    assert free.folder == paths.RESPONSES / free.address


@pytest.fixture
def repaired_and_recorded(plan):
    """Two folders of the same answers; the first has a damaged file and a supplement beside."""
    scored = job_of(plan)
    repaired = answer(scored, paths.RESPONSES, "vllm")
    recorded = answer(scored, paths.RECORDINGS / "m", "vllm")
    shard = repaired / "part-00000.parquet"
    copy(shard, repaired / "part-00000.parquet.damaged")
    copy(shard, repaired / "part-00000.again-1.parquet")
    return repaired, recorded


def test_a_damaged_file_and_a_supplement_do_not_decide_whose_answers_are_read(
    plan, repaired_and_recorded, capsys
):
    repaired, recorded = repaired_and_recorded
    scored = job_of(plan, engine="stored")
    capsys.readouterr()

    assert scored.folder == recorded
    assert job_of(plan).folder == recorded
    assert ask([scored], {}) == [scored]
    said = f"several folders hold answers: {recorded} is read, and not {repaired}\n"
    assert capsys.readouterr().err == said


def test_recorded_answers_are_read_first_though_both_lack_a_shard(plan, repaired_and_recorded):
    repaired, recorded = repaired_and_recorded
    scored = job_of(plan, engine="stored")

    (repaired / "part-00000.parquet").unlink()
    (recorded / "part-00000.parquet").rename(recorded / "part-00000.parquet.damaged")

    assert scored.folder == recorded


def test_a_recording_that_is_its_own_root_is_one_folder(plan, capsys):
    """``make record`` writes new answers into the folder of recordings."""
    root = paths.RECORDINGS / "m"
    scored = job_of(plan, root=root)
    recorded = answer(scored, root, "vllm")
    capsys.readouterr()

    assert scored.folders == [recorded]
    assert ask([scored], {}) == [scored]
    assert "several folders" not in capsys.readouterr().err


def test_the_choice_among_several_folders_is_one_line(plan, capsys):
    jobs = [job_of(plan, f"m{number}") for number in range(5)]
    for scored in jobs:
        answer(scored, paths.RESPONSES, "vllm")
        answer(scored, paths.RECORDINGS / scored.model, "vllm")
    capsys.readouterr()

    ask(jobs, {})

    said = capsys.readouterr().err
    assert said.count("is read, and not") == 3
    assert said.endswith("; 2 jobs more have several, too\n")


def test_of_several_stores_the_one_with_most_shards_is_read(plan):
    scored = job_of(plan, engine="stored")
    first_by_name = answer(scored, paths.RESPONSES, "transformers")
    second_by_name = answer(scored, paths.RESPONSES, "vllm")
    assert scored.folder == first_by_name

    next(first_by_name.glob("part-*")).unlink()

    assert scored.folder == second_by_name


# ---- who is asked --------------------------------------------------------------------------------


def asks(engine, model):
    """An engine is made, so that something is asked."""
    return pytest.raises(AssertionError, match=f"an engine {engine} was made of {model}")


def test_where_nothing_is_missing_no_engine_is_made(plan):
    scored = job_of(plan)
    answer(scored, paths.RESPONSES, "vllm", revision="a", bos="template", dtype="float32")
    given = {"BOS": "template", "DTYPE": "auto", "BATCH_SIZE": 64}

    assert ask([scored], given) == [scored]
    with asks("vllm", "m"):
        ask([job_of(plan, sampling=FREE)], given)

    shorten(next(scored.folder.glob("part-00000*")))
    with asks("vllm", "m"):
        ask([scored], given)


def test_a_server_that_cannot_be_asked_is_said_before_others_are_asked(plan):
    of_server = job_of(plan, "n", engine="inspect")

    with asks("inspect", "n"):
        ask([job_of(plan), of_server], {})


def test_what_was_kept_on_the_way_is_not_all(plan):
    scored = job_of(plan)
    answer(scored, paths.RESPONSES, "vllm")
    (scored.folder / "journal.jsonl").write_text("{}")

    with asks("vllm", "m"):
        ask([scored], {})


def test_failed_calls_are_a_reason_to_ask_a_server_again_and_no_other(plan):
    failed = Reply(None, "failed", error="no net")
    of_vllm = job_of(plan, engine="vllm")
    of_server = job_of(plan, engine="inspect")
    answer(of_vllm, paths.RESPONSES, "vllm", failed)
    answer(of_server, paths.RESPONSES, "inspect", failed)

    assert len(ask([of_vllm], {})) == 1
    with asks("inspect", "m"):
        ask([of_server], {})


@pytest.fixture
def answered(plan):
    """A job answered with the released tokens in front, system turns kept, in float32."""
    scored = job_of(plan)
    answer(scored, paths.RESPONSES, "vllm", bos="released", system="keep", dtype="float32")
    return scored


@pytest.mark.parametrize(
    ("name", "value"), [("BOS", "template"), ("DTYPE", "bfloat16"), ("SYSTEM", "fold")]
)
def test_answers_with_other_options_of_the_engine_are_refused(name, value, answered):
    given = {"BOS": "released"}
    given[name] = value

    with pytest.raises(StoreError, match=f"holds answers with {name.lower()} "):
        ask([answered], given)


def test_answers_with_other_options_of_the_study_are_refused(answered):
    folded = replace(answered, options={"system": "fold"})

    with pytest.raises(StoreError, match="holds answers with system 'keep', this run asks with"):
        ask([folded], {})


def test_answers_over_other_choices_are_refused(answered):
    wider = replace(answered, sampling=Sampling(choices=("0", "1", "2")))

    with pytest.raises(StoreError, match="holds answers with sampling_choices "):
        ask([wider], {})


def test_what_is_recorded_with_another_sampling_is_asked_anew_elsewhere(plan):
    first = job_of(plan, sampling=Sampling(temperature=1.0, seed=1))
    second = job_of(plan, sampling=Sampling(temperature=1.0, seed=2))
    second_stored = replace(second, engine="stored")

    recorded = answer(first, paths.RECORDINGS / "m", "vllm")

    stimuli = first.address.parent.parent
    assert first.folder == recorded
    assert second.folder == paths.RESPONSES / first.address
    assert second_stored.folder == paths.RESPONSES / stimuli / "m@stored" / "P0"


# ---- whose answers are read ----------------------------------------------------------------------


@pytest.fixture
def trained(plan):
    """A model of a folder, a job that it answered, and its revision then."""
    folder = paths.MODELS / "m"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    revision = job.models.revision(folder)

    scored = job_of(plan)
    answer(scored, paths.RESPONSES, "vllm", revision=revision)
    assert ask([scored], {}) == [scored]
    return folder, scored, revision


def test_a_model_that_was_trained_anew_is_refused(trained):
    folder, scored, revision = trained

    (folder / "config.json").write_text('{"a": 1}')

    with pytest.raises(StoreError, match=f"holds answers with revision '{revision}'"):
        ask([scored], {})

    answer(scored, paths.RECORDINGS / "m", "vllm", revision=revision)
    with pytest.raises(StoreError, match=f"RECORDINGS.* holds answers with revision '{revision}'"):
        ask([scored], {})


def test_weights_that_were_made_here_need_not_be_those_that_answered(trained):
    folder, scored, revision = trained
    (folder / "config.json").write_text('{"a": 1}')
    answer(scored, paths.RECORDINGS / "m", "vllm", revision=revision)

    paths.MADE.mkdir()
    folder.rename(paths.MADE / "m")

    assert ask([scored], {}) == [scored]


def test_stored_answers_of_another_model_are_not_shown_as_its_own(plan, capsys):
    folder = answer(job_of(plan), paths.RESPONSES, "vllm")
    folder.parent.rename(folder.parent.with_name("other@vllm"))

    with pytest.raises(StoreError, match=r"^other: scored answers are not stored, and"):
        ask([job_of(plan, "other", "stored")], {})

    said = "other@vllm/P0+choices/manifest.json differs in model from what is asked\n"
    assert capsys.readouterr().err.endswith(said)


@pytest.mark.parametrize("recorded", [True, False], ids=["RECORDINGS", "RESPONSES"])
@pytest.mark.parametrize(("name", "value"), [("model", "other"), ("engine", "transformers")])
def test_no_reader_takes_the_answers_of_another_model_or_engine(plan, recorded, name, value):
    scored = job_of(plan)
    free = job_of(plan, sampling=FREE)
    root = paths.RECORDINGS / "m" if recorded else paths.RESPONSES
    answer(scored, root, "vllm")
    answer(free, paths.RESPONSES, "vllm", Reply("1", "stop"))

    change_manifest(scored.folder, **{name: value})

    refused = pytest.raises(StoreError, match=f"holds answers of the {name} '{value}', ")
    with refused:
        stored(scored)
    with refused:
        answered_jobs([scored])
    with refused:
        rated_by("m", [scored, free])  # as notebook 60 reads
    with refused:
        ask([scored], {})
    assert rated_by("m", [free]) == [free]


@pytest.fixture
def rendered(plan):
    """A job that is answered, and the same by other code that renders its chats."""
    scored = job_of(plan)
    answer(scored, paths.RESPONSES, "vllm")
    return scored, replace(scored, design=rendered_otherwise(plan))


@pytest.mark.parametrize("engine", ["vllm", "stored"])
def test_answers_to_chats_that_other_code_rendered_are_not_read(engine, rendered):
    _, otherwise = rendered

    with pytest.raises(StoreError, match=OTHER_CHATS):
        stored(replace(otherwise, engine=engine))


def test_answers_to_chats_that_other_code_rendered_are_not_completed(rendered):
    scored, otherwise = rendered

    with pytest.raises(StoreError, match=OTHER_CHATS):
        ask([otherwise], {})
    assert answered_jobs([scored, otherwise]) == [scored]


def test_recordings_without_the_chats_in_their_manifest_have_them_in_a_table(plan):
    """The table is read once, so this needs a folder of its own."""
    scored = job_of(plan)
    answer(scored, paths.RECORDINGS / "m", "vllm")
    file = scored.folder / "manifest.json"
    manifest = json.loads(file.read_text())
    del manifest["chats"]
    file.write_text(json.dumps(manifest))

    row = f'"m/{scored.address.as_posix()}",{plan.chats_digest}'
    (paths.RECORDINGS / "chats.csv").write_text(f"job,chats\n{row}\n")

    assert stored(scored).manifest == manifest
    with pytest.raises(StoreError, match=OTHER_CHATS):
        stored(replace(scored, design=rendered_otherwise(plan)))


@pytest.mark.parametrize(
    ("asked", "stored_name"),
    [
        ("/somewhere/mine/", "mine"),
        ("smollm2-135m-instruct", "HuggingFaceTB/SmolLM2-135M-Instruct"),
    ],
    ids=["folder", "registry"],
)
def test_a_folder_a_name_on_the_hub_and_the_registrys_name_are_one_model(asked, stored_name, plan):
    scored = job_of(plan, asked)
    folder = answer(scored, paths.RESPONSES, "vllm")

    change_manifest(folder, model=stored_name)

    assert stored(scored).manifest["model"] == stored_name


# ---- what is only stored -------------------------------------------------------------------------


def test_of_stored_answers_a_damaged_file_is_named(plan, capsys):
    folder = answer(job_of(plan), paths.RESPONSES, "vllm")
    shard = next(folder.glob("part-00000*"))
    shorten(shard)
    capsys.readouterr()

    with pytest.raises(StoreError, match="m: scored answers are not stored"):
        ask([job_of(plan, engine="stored")], {})

    assert capsys.readouterr().err == f"{shard} is damaged\n"


@pytest.fixture
def present(plan):
    """A job to stored answers that are there."""
    scored = job_of(plan, engine="stored")
    answer(scored, paths.RESPONSES, "vllm")
    return scored


@pytest.fixture
def absent(plan):
    """A job to stored answers that are not there."""
    return job_of(plan, "n", "stored", labels={"setting": "P"})


def test_what_is_only_stored_is_left_out_where_it_is_not_here(present, absent, capsys):
    capsys.readouterr()

    assert ask([absent, present], {}) == [present]
    sentence = "n: scored answers (P) are not stored, and are not asked for in this run"
    assert capsys.readouterr().err == f"{sentence}\n"


def test_what_is_left_out_is_told_before_another_model_is_asked(plan, absent, monkeypatch, capsys):
    """The other model may answer for hours."""
    told = []

    def toy(name, model, **options):
        told.append(capsys.readouterr().err)
        return Toy(lambda *_: SCORED, engine=name, model=model)

    monkeypatch.setattr(job, "make_engine", toy)
    live = job_of(plan)

    assert ask([live, absent], {}) == [live]
    (before,) = told
    assert before.startswith("n: scored answers (P) are not stored")
    assert "are not stored" not in capsys.readouterr().err


def test_stored_answers_to_another_question_are_left_out(present, absent):
    folder = answer(absent, paths.RESPONSES, "vllm")
    assert ask([absent], {}) == [absent]

    change_manifest(folder, sampling_choices=["0", "2"])

    assert ask([absent, present], {}) == [present]


def test_where_nothing_is_stored_whole_the_run_stops(present, absent):
    next(present.folder.glob("part-00000*")).unlink()

    with pytest.raises(StoreError, match=r"n: scored answers \(P\) are not stored"):
        ask([absent, present], {})


def test_each_model_without_stored_answers_has_its_sentence(plan):
    jobs = [job_of(plan, f"m{number}", engine="stored") for number in range(5)]

    with pytest.raises(StoreError, match=r"(m\d: scored answers are not stored.*\n?){5}$"):
        ask(jobs, {})


# ---- what a study analyses -----------------------------------------------------------------------


def test_a_scored_model_is_analysed_by_its_scores(plan):
    free = job_of(plan, sampling=FREE)
    scored = job_of(plan)
    other_free = job_of(plan, "n", sampling=FREE)

    assert rated(iter([free, scored, other_free])) == [scored, other_free]
    assert rated([free, other_free]) == [free, other_free]
    assert free.mode == "free text"
    assert scored.mode == "scored"


def test_what_is_stored_costs_what_each_reply_was_bought_at(plan):
    """In shards and in a journal; a model on this machine costs nothing, whatever BATCH says."""
    given = {"PRICE_IN": 1.0, "PRICE_OUT": 3.0, "BATCH": True}
    single = Reply("1", "stop", 10, 0, 20)
    in_batch = single._replace(price_share=0.5)
    served = job_of(plan, "one", "inspect", FREE)
    batched = job_of(plan, "two", "inspect", FREE)
    local = job_of(plan, "three", "vllm", FREE)
    answer(served, paths.RESPONSES, "inspect", single)
    answer(batched, paths.RESPONSES, "inspect", in_batch)
    answer(local, paths.RESPONSES, "vllm", single)

    price_of_one = (10 * 1.0 + 20 * 3.0) / 1e6
    price = len(plan) * price_of_one
    assert job.cost_stored([served, local], given) == pytest.approx(price)
    assert job.cost_stored([served, batched, local], given) == pytest.approx(1.5 * price)

    store = stored(batched)
    with store.writing():
        store.journal().add(0, in_batch)

    with_journal = job.cost_stored([batched], given)
    assert with_journal == pytest.approx(0.5 * price + 0.5 * price_of_one)
