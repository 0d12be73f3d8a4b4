"""What a plan counts is what a run asks: tokens, savings, shards, folders."""

import json
import math
import re
import tracemalloc
from dataclasses import replace
from itertools import chain

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from transformers import AutoTokenizer

from events import paper_size_events
from ingroup import contract, corpora, paths
from ingroup.commands import plan
from ingroup.commands.run_parameters import jobs_of, merged_parameters
from ingroup.inference import Reply, open_store
from ingroup.inference.cost import CharacterEstimate
from ingroup.inference.job import answered_jobs
from ingroup.inference.prompts import Prompter, estimate_tokens
from ingroup.studies.biased_samaritan import group_profile as biased_samaritan
from ingroup.studies.biased_samaritan.answers import cubes, load
from ingroup.studies.biased_samaritan.statistics import bias
from ingroup.studies.empathy_gap import design, stimuli
from ingroup.studies.giebench import construction
from ingroup.studies.giebench.stimuli import load_questions
from toy import Toy, run

NOTEBOOK = "10_empathy_gap"


def command(**given):
    """The command line of a plan of the first study with these parameters."""
    return [NOTEBOOK, *(f"--set={name}={value}" for name, value in given.items())]


ONE = command(SETTINGS="P0,S0,T0", MODELS="calibrant", CATEGORIES="Nationality")


@pytest.fixture(scope="module")
def prompter():
    return Prompter(AutoTokenizer.from_pretrained(paths.MODELS / "calibrant"))


@pytest.fixture(autouse=True)
def responses(tmp_path, only_real_recordings, monkeypatch):
    """An empty place for responses; tokens are counted on few trials, for speed."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")
    monkeypatch.setattr(plan, "N_SAMPLED_TRIALS", 40)
    return paths.RESPONSES


def parameters(notebook=NOTEBOOK, **given):
    small = {"CATEGORIES": "Nationality"} if notebook == NOTEBOOK else {}
    return merged_parameters(notebook, "demo", {"MODELS": "calibrant"} | small | given)


def lines_of(notebook, values):
    """The jobs of each line of a plan."""
    return plan.group_into_lines(notebook, jobs_of(notebook, values))


def chats_of(trials):
    return [trial.messages for trial in trials]


class Words(Prompter):
    """Prompts whose tokens are the words of their text."""

    def __init__(self):
        pass

    def batch(self, chats):
        prompts = []
        for chat in chats:
            text = " ".join(message["content"] for message in chat)
            prompts.append(text.split())
        return prompts

    def count(self, trials):
        """The tokens of all of them."""
        return sum(map(len, self.batch(chats_of(trials))))

    def identity(self):
        return {}


# ---- tokens ------------------------------------------------------------------------------------


def test_a_whole_design_is_counted_exactly(prompter):
    trials = design.trials(stimuli.load_events("sample", 12), ["P0,S0,T0"], ["Religion"])
    prompts = prompter.batch(chats_of(trials))
    rng = np.random.default_rng(0)

    counted = estimate_tokens(trials, prompter, len(trials) + 1, rng)

    assert counted["tokens"] == pytest.approx(sum(map(len, prompts)))
    assert counted["error"] == 0


def test_the_error_is_the_spread_of_repeated_samples():
    trials = list(design.trials(stimuli.load_events("sample", 12), None, ["Religion"]))[:300]
    rng = np.random.default_rng(0)

    counts = pd.DataFrame([estimate_tokens(trials, Words(), 100, rng) for _ in range(300)])

    error = counts.error.mean()
    assert np.std(counts.tokens) == pytest.approx(error, rel=0.12)
    error_of_mean = error / math.sqrt(300)
    assert counts.tokens.mean() == pytest.approx(Words().count(trials), abs=4 * error_of_mean)


def test_every_line_draws_its_own_trials():
    """Of two settings that are as long as each other, with this tokenizer."""
    text = plan.plan({NOTEBOOK: parameters(SETTINGS="P0,S0,T0;P0,S1,T0")})
    first, second = re.findall(r"calibrant .* (\S+ ± \S+)  +", text)
    assert first != second


# ---- shards ------------------------------------------------------------------------------------


@pytest.fixture
def job(prompter, monkeypatch):
    """A job of 5,808 trials in shards of 1,000, three of which are stored."""
    monkeypatch.setattr(plan, "SHARD_SIZE", 1000)
    ((job,),) = lines_of(NOTEBOOK, parameters(SETTINGS="P0,S0,T0")).values()
    pinned = Toy(None, engine="transformers", dtype="float32", **prompter.identity())

    store = open_store(job.folder, job.design, pinned, job.sampling, 1000)
    with store.writing():
        for shard in (0, 3, 5):
            first, stop = store.bounds(shard)
            store.write(shard, [Reply("50", "stop")] * (stop - first))

    for name in (
        ".part-00001.parquet.9.tmp",
        "part-00001.parquet.damaged",
        "part-00003.again-1.parquet",
        "part-00099.parquet",
    ):
        (job.folder / name).touch()
    return job


def change(job, **known):
    """Other answers in the folder of a job, by its manifest."""
    file = job.folder / "manifest.json"
    manifest = json.loads(file.read_text())
    file.write_text(json.dumps(manifest | known))


def test_a_half_done_store_is_counted_and_not_touched(job, prompter):
    def listing():
        return {file: file.stat().st_mtime_ns for file in job.folder.parent.rglob("*")}

    before = listing()
    for known in (prompter, "no tokenizer"):
        shards, problem = plan.count_stored_trials(job, known)
        assert sorted(shards) == [808, 1000, 1000]
        assert problem == ""
    assert listing() == before


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"chat_template": "0123"}, "holds answers with chat_template '0123', this run asks with"),
        ({"shard_size": 500}, "holds answers with shard_size 500, this run .* shard_size 1000;"),
        ({"prompts": "abc"}, "holds answers to other prompts than this run has"),
        ({"engine": "vllm"}, "holds answers with engine 'vllm', this run .* 'transformers'"),
        ({"sampling_max_tokens": 500}, "with sampling_max_tokens 500, .* sampling_max_tokens 128;"),
        ({"format": 2}, "holds answers with format 2, this run asks with format"),
    ],
)
def test_a_store_of_something_else_is_reported(job, prompter, known, message):
    change(job, **known)

    shards, problem = plan.count_stored_trials(job, prompter)

    assert shards == []
    assert re.search(message, problem)
    assert str(job.folder) in problem
    assert "\n" not in problem


def test_unsettled_prompts_are_not_compared(job, prompter):
    change(job, prompts="abc")

    shards, _ = plan.count_stored_trials(replace(job, settled=False), prompter)

    assert sum(shards) == 2808


def test_a_store_without_a_readable_manifest_is_reported(job, prompter):
    file = job.folder / "manifest.json"
    file.write_text("{")
    unreadable = f"{file} cannot be read as JSON; move its folder away."
    assert plan.count_stored_trials(job, prompter) == ([], unreadable)

    file.unlink()
    missing = f"{job.folder} holds shards but no manifest.json; move it away."
    assert plan.count_stored_trials(job, prompter) == ([], missing)


# ---- what is asked -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("notebook", "lines", "prompts"),
    [
        ("10_empathy_gap", 24, 84_576),
        ("20_biased_samaritan", 6, 33_372),
        ("30_giebench", 10, 2_440),
        ("40_stereomap", 10, 13_076),
    ],
)
def test_every_study_is_planned(notebook, lines, prompts):
    """As many prompts as the profile says that the default run asks."""
    planned = lines_of(notebook, merged_parameters(notebook, "demo", {}))
    assert len(planned) == lines

    jobs = list(chain(*planned.values()))
    sizes = [len(job.design) for job in jobs]
    folders = {job.folder for job in jobs}
    assert sum(sizes) == prompts
    assert len(folders) == len(jobs)


def test_several_studies_have_one_total(monkeypatch):
    monkeypatch.setattr(plan, "load_prompter", lambda *rest: Words())
    values = {
        NOTEBOOK: parameters(SETTINGS="P0,S0,T0"),
        "20_biased_samaritan": parameters("20_biased_samaritan"),
    }

    _, first, race, gender, age, whole, _, left, _ = plan.plan(values).split("\n")

    assert re.match("10 calibrant P0,S0,T0 Nationality +5,808 ", first)
    assert race.startswith("20 calibrant Race x 2   ")
    assert gender.startswith("20 calibrant Gender x 2   ")
    assert age.startswith("20 calibrant Age x 2   ")
    assert re.match("total +28,056 ", whole)
    assert left.startswith("28,056 prompts are to be asked")


@pytest.mark.parametrize(
    ("changed", "lacks", "lines"),
    [
        ({"MODELS": "calibrant;calibrant-null"}, [], 8),
        ({"READING": "expected", "SETTINGS": "P1,S1,T1;P0,S0,T0"}, [], 3),
        ({}, ["third_person_text"], 6),
        ({}, ["third_person_text", "first_person_text"], 5),
        ({"REWRITER": "calibrant-null", "ENGINE": "vllm"}, ["third_person_text"], 8),
    ],
)
def test_a_corpus_without_a_form_is_planned_as_far_as_it_goes(changed, lacks, lines, tmp_path):
    corpus = tmp_path / "my.words.tsv"
    stimuli.load_events("sample", 12).drop(columns=lacks).to_csv(corpus, sep="\t", index=False)

    planned = lines_of(NOTEBOOK, parameters(CORPUS=str(corpus), **changed))

    assert len(planned) == lines
    unsettled = [name for name, (job,) in planned.items() if not job.settled]
    assert unsettled == (["10 calibrant P0,S0,T2 Nationality"] if "REWRITER" in changed else [])


def test_the_jobs_of_a_notebook_are_made_once(monkeypatch):
    """Also where some models are asked, and others are not recorded."""
    notebooks = []

    def counted(notebook, values):
        notebooks.append(notebook)
        return jobs_of(notebook, values)

    monkeypatch.setattr(plan, "jobs_of", counted)
    monkeypatch.setattr(plan, "load_prompter", lambda *rest: Words())
    given = {"N_EVENTS": "24", "SETTINGS": "P0,S0,T0", "CATEGORIES": "Religion"}

    text = plan.plan({NOTEBOOK: merged_parameters(NOTEBOOK, "demo", given)})

    assert "SmolLM2-135M: 1 of 1 parts of 10_empathy_gap are not recorded" in text
    assert notebooks == [NOTEBOOK]


@pytest.fixture
def weights(tmp_path, monkeypatch):
    """The folder of a real model's weights, and words in place of its tokens."""
    monkeypatch.setattr(paths, "MADE", tmp_path / "made")
    folder = paths.MADE / "smollm2-135m-instruct"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    monkeypatch.setattr(plan, "load_prompter", lambda *rest: Words())
    return folder


def plan_of_more_events(model, rate=None):
    """The plan of one setting and category, with more events than the recordings have."""
    given = {
        "N_EVENTS": "24",
        "SETTINGS": "P0,S0,T0",
        "CATEGORIES": "Religion",
        "MODELS": model,
    }
    return plan.plan({NOTEBOOK: merged_parameters(NOTEBOOK, "demo", given)}, rate)


@pytest.mark.usefixtures("weights")
def test_what_the_recordings_lack_is_planned_where_the_weights_are_here():
    """36 prompts an event: all 24 events scored, and three of them in free text, too."""
    text = plan_of_more_events("smollm2-135m-instruct", 9.0)

    lines = re.findall(r"\n?10 smollm2-135m-instruct P0,S0,T0 Religion(.*?) +(\d+)  ", text)
    assert lines == [(" scored", "864"), ("", "108")]
    assert "\n972 prompts are to be asked: 0:01:48 at 9 prompts a second." in text
    assert text.endswith(
        "\nSmolLM2-135M: 972 prompts are not recorded and will be asked live "
        "(MODELS=smollm2-135m-instruct@stored only reads what is stored)."
    )


@pytest.mark.usefixtures("weights")
def test_nothing_is_planned_of_a_model_that_only_reads():
    text = plan_of_more_events("smollm2-135m-instruct@stored")

    assert text.startswith("Nothing is asked: stored answers of these models are read.")
    assert "SmolLM2-135M: 1 of 1 parts of 10_empathy_gap are not recorded" in text


@pytest.mark.usefixtures("weights")
def test_what_was_asked_live_is_not_planned_again():
    """The scored answers are there, and the free text is left."""
    given = {"N_EVENTS": "24", "SETTINGS": "P0,S0,T0", "CATEGORIES": "Religion"}
    values = merged_parameters(NOTEBOOK, "demo", given | {"MODELS": "smollm2-135m-instruct"})
    live = jobs_of(NOTEBOOK, values)[0].live
    scored = Reply("0", "stop", 10, probabilities=[1.0] + [0.0] * 100, mass=[0.5])
    engine = Toy(lambda *_: scored, engine="transformers", model=live.model)
    run(live.design, live.folder, engine, plan.SHARD_SIZE, live.sampling)

    text = plan_of_more_events("smollm2-135m-instruct")

    assert "scored" not in text
    assert "SmolLM2-135M: 108 prompts are not recorded and will be asked live" in text


@pytest.mark.usefixtures("weights")
@pytest.mark.parametrize("notebook", ["10_empathy_gap", "40_stereomap"])
def test_the_default_run_is_planned_alike_with_and_without_weights(notebook):
    """StereoMap's reduced prompts are not recorded, and are not asked either."""
    values = merged_parameters(notebook, "demo", {"MODELS": "smollm2-135m-instruct"})

    assert plan.plan({notebook: values}).startswith("Nothing is asked")


def test_the_full_study_is_planned_in_constant_memory(monkeypatch):
    """Two bytes a trial at most, of which events in every block take most."""
    events = paper_size_events()
    monkeypatch.setattr(stimuli, "load_events", lambda *rest: events)
    monkeypatch.setattr(plan, "load_prompter", lambda *rest: Words())

    lines = plan.plan({NOTEBOOK: parameters(CATEGORIES="")}, 1000.0).split("\n")
    assert re.fullmatch(r"total  +37,310,350 .* 0  9,121 +10:21:51", lines[22])
    assert lines[24].startswith("37,310,350 prompts are to be asked: 10:21:51 at 1,000 prompts")

    tracemalloc.start()
    plan.plan({NOTEBOOK: parameters(SETTINGS="P0,S0,T0", CATEGORIES="")})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * 37_310_350 / 7


def test_a_missing_corpus_is_counted_with_the_samples_texts(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(paths, "RAW", tmp_path / "raw")
    notebooks = ["10_empathy_gap", "30_giebench"]

    assert plan.main([*notebooks, "--profile", "full", "--set", "MODELS=calibrant"]) == 0

    text = capsys.readouterr().out
    religion = re.findall(r"\n10 calibrant P\d,S\d,T\d Religion +217,800 ", text)
    assert len(religion) == 7
    assert re.search(rf"\n30 calibrant Raw +{999 * 4:,} ", text)

    of_giebench = re.findall(r"\n30 calibrant\D+?([\d,]+) ", text)
    prompts = 37_310_350 + sum(int(count.replace(",", "")) for count in of_giebench)
    assert f"\n{prompts:,} prompts are to be asked" in text
    assert text.endswith(
        "crowd-envent is not here (make data): its 6,050 items are counted with the sample's "
        "texts.\ngiebench is not here (make data): its 999 items are counted with the sample's "
        "texts.\n"
    )
    assert not paths.RAW.exists()


def test_a_partly_fetched_corpus_is_counted_with_the_samples_texts(tmp_path, monkeypatch):
    """As make data leaves it where a mirror lacks a file."""
    monkeypatch.setattr(paths, "RAW", tmp_path / "raw")
    for corpus in ("giebench", "crowd-envent"):
        for name in corpora.CORPORA[corpus].files:
            file = paths.RAW / corpus / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
    assert plan.stand_ins(tmp_path) == {}

    first, *_ = corpora.CORPORA["giebench"].files
    (paths.RAW / "giebench" / first).unlink()
    assert set(plan.stand_ins(tmp_path)) == {"giebench"}


# ---- what a server costs -------------------------------------------------------------------------


def bill(**given):
    """A plan of one setting: the parts of each of its lines on servers, and its whole text."""
    text = plan.plan({NOTEBOOK: parameters(SETTINGS="P0,S0,T0", **given)})
    lines = text.split("\n\n")[2].split("\n")
    rows = [re.split(" {2,}", line.strip()) for line in lines]
    return rows, text


def test_a_server_costs_its_prompts_and_replies_of_full_length(monkeypatch):
    """A word is a token here, and every trial is counted."""
    monkeypatch.setattr(plan, "load_counter", lambda model: Words())
    monkeypatch.setattr(plan, "N_SAMPLED_TRIALS", 10_000)
    (job,) = jobs_of(NOTEBOOK, parameters(SETTINGS="P0,S0,T0", MODELS="m@inspect"))
    words = Words().count(job.design)
    replies = 5_808 * job.sampling.max_tokens
    price = (words * 250 + replies * 1000) / 1e6
    in_batches = (price + price / 5_808) / 2

    rows, _ = bill(MODELS="m@inspect", PRICE_IN="250", PRICE_OUT="1000")

    header, row, (sentence,) = rows
    assert header == ["prompts", "prompt tokens", "reply tokens", "price", "in batches"]
    assert row == [
        "m",
        "5,808",
        f"{words:,}",
        f"at most {replies:,}",
        f"at most {price:,.2f}",
        f"at most {in_batches:,.2f}",
    ]
    assert sentence == (
        "The price is that of PRICE_IN and PRICE_OUT; batches (BATCH) cost half of it, but for the "
        "first prompt of each store."
    )


def test_without_a_tokenizer_characters_are_counted_and_it_says_so(monkeypatch):
    monkeypatch.setattr(plan, "N_SAMPLED_TRIALS", 10_000)
    (job,) = jobs_of(NOTEBOOK, parameters(SETTINGS="P0,S0,T0", MODELS="m@inspect"))
    tokens = 0
    for trial in job.design:
        characters = sum(len(turn["content"]) for turn in trial.messages)
        tokens += math.ceil(characters / 4)

    rows, text = bill(MODELS="m@inspect")

    _, row, (sentence,) = rows
    assert row[2] == f"{tokens:,}"
    assert row[4:] == ["unknown", "unknown"]
    assert sentence == "The price is unknown: set PRICE_IN and PRICE_OUT (per million tokens)."
    estimated = "Prompt tokens of m are estimated from 4 characters a token: its tokenizer is not"
    assert estimated in text


def test_a_servers_tokenizer_is_used_where_it_is_installed(prompter, monkeypatch, tmp_path):
    """In a folder of ours, or in the hub's cache under the name that the registry has for it."""
    plan.load_counter.cache_clear()
    monkeypatch.setattr(plan, "try_to_load_from_cache", lambda *_: None)
    assert isinstance(plan.load_counter("llama-3-8b"), CharacterEstimate)
    assert isinstance(plan.load_counter("gpt-4o"), CharacterEstimate)
    chat = [{"role": "system", "content": "Hello"}, {"role": "user", "content": "there"}]
    assert plan.load_counter("calibrant").batch([chat]) == prompter.batch([chat])

    def cached(hub_id, name):
        file = paths.MODELS / "calibrant" / name
        return str(file) if hub_id == "Qwen/Qwen1.5-4B-Chat" else None

    plan.load_counter.cache_clear()
    monkeypatch.setattr(plan, "try_to_load_from_cache", cached)
    assert plan.load_counter("provider/qwen-1.5-4b").batch([chat]) == prompter.batch([chat])
    assert isinstance(plan.load_counter("qwen-1.5-7b"), CharacterEstimate)

    (tmp_path / "tokenizer_config.json").write_text("{")
    monkeypatch.setattr(plan, "try_to_load_from_cache", lambda _, name: str(tmp_path / name))
    assert isinstance(plan.load_counter("qwen-1.5-14b"), CharacterEstimate)  # it cannot be loaded
    plan.load_counter.cache_clear()


def test_several_servers_have_one_total_and_what_is_stored_costs_nothing(monkeypatch):
    monkeypatch.setattr(plan, "SHARD_SIZE", 1000)
    given = {"MODELS": "m@inspect;n@inspect;calibrant", "PRICE_IN": "2", "PRICE_OUT": "10"}
    first, *_ = jobs_of(NOTEBOOK, parameters(SETTINGS="P0,S0,T0", **given))
    engine = Toy(None, engine="inspect")
    store = open_store(first.folder, first.design, engine, first.sampling, 1000)
    with store.writing():
        store.write(0, [Reply("50", "stop")] * 1000)

    (_, *rows, _), _ = bill(**given)

    columns = ["name", "prompts", "prompt_tokens", "reply_tokens", "price", "in_batches"]
    servers = pd.DataFrame(rows, columns=columns).set_index("name")
    assert servers.index.tolist() == ["m", "n", "all servers"]
    assert servers.prompts.tolist() == ["4,808", "5,808", "10,616"]

    def numbers(texts):
        return texts.str.replace("at most ", "").str.replace(",", "").astype(float)

    m, n, whole = numbers(servers.prompt_tokens)
    assert m + n == pytest.approx(whole, abs=1)
    replies_m, replies_n, replies = numbers(servers.reply_tokens)
    assert replies_m + replies_n == replies
    price_m, price_n, price = numbers(servers.price)
    assert price == pytest.approx((whole * 2 + replies * 10) / 1e6, abs=0.01)
    assert price_m + price_n == pytest.approx(price, abs=0.011)


def test_a_limit_without_prices_is_one_sentence(monkeypatch, capsys):
    limited = parameters(MODELS="m@inspect") | {"COST_LIMIT": 5.0}
    monkeypatch.setattr(plan, "parameters_of", lambda *_, **__: limited)
    assert plan.main(ONE) == 2
    out, sentence = capsys.readouterr()
    assert out == ""
    assert sentence.startswith("COST_LIMIT needs the prices of a million tokens: set PRICE_IN and ")


# ---- text --------------------------------------------------------------------------------------


def test_the_time_to_go_is_rounded_up():
    assert plan.duration(0) == "0:00:00"
    assert plan.duration(0.4) == "0:00:01"
    assert plan.duration(59.6) == "0:01:00"
    assert plan.duration(22_820) == "6:20:20"
    assert plan.duration(26 * 3600) == "1 day, 2:00:00"


def test_the_table_is_aligned_and_whole():
    """Errors of lines add as squares, and what is unknown of one is unknown of all."""
    rows = {
        "m P0": [200.0, 3.0, 2_000, 3, 1_000, 2],
        "n P0": [300.0, 4.0, 10, 1, 0, 0],
    }
    columns = ["tokens", "error", "trials", "shards", "answered", "done"]
    counts = pd.DataFrame.from_dict(rows, "index", columns=columns)

    lines = plan.plan_table(counts, 10.0).split("\n")
    assert [re.split(" {2,}", line.strip()) for line in lines] == [
        ["trials", "tokens a prompt", "prompt tokens", "shards done", "to do", "time to go"],
        ["m P0", "2,000", "0.1 ± 0.0", "200 ± 3", "2", "1", "0:01:40"],
        ["n P0", "10", "30.0 ± 0.4", "300 ± 4", "0", "1", "0:00:01"],
        ["total", "2,010", "0.2 ± 0.0", "500 ± 5", "2", "2", "0:01:41"],
    ]
    widths = {len(line) for line in lines}
    assert len(widths) == 1

    counts.loc["n P0", ["tokens", "error"]] = math.nan
    total = plan.plan_table(counts, 10.0).split("\n")[3]
    assert total.split() == ["total", "2,010", "unknown", "unknown", "2", "2", "0:01:41"]

    for line in plan.plan_table(counts, None).split("\n")[1:]:
        assert line.endswith(" unknown")


def test_the_command_line_prints_a_plan_and_makes_no_folder(responses, capsys):
    assert plan.main(ONE) == 0
    assert not responses.exists()

    lines = capsys.readouterr().out.splitlines()
    header, first, total, empty, left, counting, these_events, like_these = lines
    assert len(header) == len(total)
    assert empty == ""
    assert re.fullmatch(r"10 calibrant P0,S0,T0 Nationality +5,808 .* ± \S+ +0 +2 +unknown", first)
    assert left.startswith("5,808 prompts are to be asked. The time is unknown, as no rate of ")
    assert "RATE=<prompts a second>" in left
    assert counting.startswith("Tokens are counted on up to 40 random trials a line")
    finds = r"10 with 12 events finds \S+ points of gap in 80% of the runs \(interval over"
    assert re.match(finds, these_events)
    assert like_these.startswith("10 with 21 groups (Nationality) finds ")

    assert plan.main([*ONE, "--rate", "0.5"]) == 0
    text = capsys.readouterr().out
    assert "5,808 prompts are to be asked: 3:13:36 at 0.5 prompts a second.\n" in text


def test_what_is_stored_is_not_asked(job, capsys, monkeypatch):
    assert plan.main([*ONE, "--rate", "1000"]) == 0
    assert "\n3,000 of 5,808 prompts are to be asked: 0:00:03 at" in capsys.readouterr().out

    for shard in range(6):
        (job.folder / f"part-{shard:05d}.parquet").touch()
    assert plan.main(ONE) == 0
    assert "\nNothing is left to ask: all 6 shards are stored.\n" in capsys.readouterr().out

    (job.folder / "manifest.json").unlink()
    assert plan.main(ONE) == 0
    assert f"\n{job.folder} holds shards but no manifest.json" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"ENGINE": "replay", "RECORDINGS": "."}, "with ENGINE=replay no model is asked."),
        ({"MODELS": "no/body"}, "the model 'no/body' cannot be loaded, and there is .*"),
    ],
)
def test_without_a_tokenizer_the_rest_is_planned(given, reason, capsys):
    given = {"MODELS": "calibrant", "CATEGORIES": "Nationality", **given}

    assert plan.main(command(**given)) == 0

    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"total  +40,656  +unknown  +unknown +0 +14 +unknown", lines[8])
    assert lines[10].startswith("40,656 prompts are to be asked. The time is unknown")
    assert re.fullmatch(f"Prompt tokens are unknown: {reason}", lines[11])
    assert not lines[11].endswith("..")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            [NOTEBOOK, "--rate", "fast"],
            "RATE must be prompts per second, a number above 0, found 'fast'",
        ),
        ([NOTEBOOK, "--rate", "0"], "RATE must be prompts per second, a number above 0, found '0'"),
        (
            [NOTEBOOK, "--rate", "nan"],
            "RATE must be prompts per second, a number above 0, found 'nan'",
        ),
        ([NOTEBOOK, "--set", "SEED=x"], "SEED must be a whole number, 0 to 2^32 - 1, found 'x'"),
        (["--set", "SED=1"], "10_empathy_gap has no parameter SED; did you mean SEED?"),
        (["--profile", "fast"], "there is no PROFILE 'fast'; there are demo, full"),
        (
            ["50_audit"],
            "there is no plan of 50_audit, only of 10_empathy_gap, 11_empathy_gap_beyond, "
            "20_biased_samaritan, 21_biased_samaritan_beyond, 30_giebench, "
            "31_giebench_construction, 32_giebench_beyond, 40_stereomap, 41_stereomap_keywords",
        ),
    ],
)
def test_a_mistake_is_one_sentence(arguments, sentence, capsys):
    assert plan.main(arguments) == 2
    assert capsys.readouterr() == ("", f"{sentence}\n")


def test_what_cannot_be_asked_is_one_sentence(tmp_path, capsys):
    events = stimuli.load_events("sample", 12)[["emotion", "text_id", "generated_text"]]
    events.to_csv(tmp_path / "few.tsv", sep="\t", index=False)
    few = {"CORPUS": tmp_path / "few.tsv", "MODELS": "calibrant", "SETTINGS": "P0,S0,T1"}
    assert plan.main(command(**few)) == 2
    assert "lacks the form that SETTINGS show (first_person_text)" in capsys.readouterr().err

    few["REWRITER"] = "calibrant"
    assert plan.main(command(**few)) == 2
    capsys.readouterr()

    few["SETTINGS"] = "P0,S0,T0;P0,S0,T2"
    assert plan.main(command(**few)) == 0
    text = capsys.readouterr().out
    assert re.search(r"10 calibrant rewrite +12 ", text)
    assert "P0,S0,T2 Nationality" in text


# ---- what it would find --------------------------------------------------------------------------


def recorded(notebook):
    return merged_parameters(notebook, "demo", {"MODELS": "smollm2-135m-instruct"})


def test_the_smallest_effect_is_found_in_four_runs_of_five():
    """Of study 2: its spread is that of the biases by scenario, and simulated runs find it so."""
    given = recorded("20_biased_samaritan")
    (planned,) = biased_samaritan.power(given, given, "smollm2-135m-instruct")
    variances = []
    scored = [job for job in jobs_of("20_biased_samaritan", given) if job.is_scored]
    for job in answered_jobs(scored):
        cells = cubes(load(job))
        control = cells.pop("control")
        for cell in cells.values():
            test = bias(cell, control)
            variances.append((test.bias / test.d_z) ** 2)
    assert planned.spread == pytest.approx(np.sqrt(np.mean(variances)))
    assert planned.n == 103
    assert planned.level == 0.01 / 5

    (sentence,) = plan.power("20_biased_samaritan", given)
    smallest = float(re.search(r"; (\S+) standard deviations", sentence)[1])
    runs = np.random.default_rng(0).normal(smallest, 1, (4000, planned.n))
    tests = stats.ttest_1samp(runs, 0, axis=1)
    power = np.mean(tests.pvalue < planned.level)
    assert power == pytest.approx(0.8, abs=0.03)  # the sentence has two digits


@pytest.mark.parametrize(
    ("notebook", "given", "items"),
    [
        ("10_empathy_gap", {"N_EVENTS": 24}, ["24 events", "4 groups", "21 groups", "5 groups"]),
        ("10_empathy_gap", {"CATEGORIES": ["Religion"]}, ["12 events", "5 groups"]),
        ("30_giebench", {}, ["79 items"]),
        ("40_stereomap", {"CLUSTERS": 2}, ["49 groups"]),
    ],
)
def test_the_smallest_effects_are_those_of_the_planned_items(notebook, given, items):
    sentences = plan.power(notebook, recorded(notebook) | given)

    for sentence, item in zip(sentences, items, strict=True):
        assert re.match(rf"{notebook[:2]} with {item}\b.* finds (?!0 )\d\S* ", sentence)
        assert "the stored answers of smollm2-135m-instruct" in sentence


def test_a_plan_says_what_cannot_be_found():
    """Orders of few groups, and clusters that are too small."""
    _, race, _, religion = plan.power("10_empathy_gap", recorded("10_empathy_gap"))
    assert race.endswith("4 groups in random order cannot give a p below 0.042.")
    assert religion.endswith("5 groups in random order cannot give a p below 0.0083.")
    (clusters,) = plan.power("40_stereomap", recorded("40_stereomap") | {"CLUSTERS": 7})
    assert clusters.startswith("40 with 14 groups of a cluster cannot find an effect (axes exch")
    assert re.search(
        r"14 groups cannot give a p below 1\. It takes \d\d groups to reach 0\.05", clusters
    )


def test_a_plan_names_the_models_that_are_not_recorded(capsys):
    """Half of the events are recorded, and planned as stored; twice as many are not."""
    more = merged_parameters(NOTEBOOK, "demo", {"N_EVENTS": "24"})
    sentence, *_ = plan.missing_recordings(NOTEBOOK, jobs_of(NOTEBOOK, more))
    assert sentence == (
        "SmolLM2-135M: 21 of 21 parts of 10_empathy_gap are not recorded, and will be left out "
        "(make model, then MODELS=smollm2-135m-instruct@transformers asks them)."
    )

    given = {
        "MODELS": "smollm2-135m-instruct",
        "N_EVENTS": "2",
        "SETTINGS": "P2,S0,T0",
        "CATEGORIES": "Religion",
    }
    fewer = merged_parameters(NOTEBOOK, "demo", given)
    assert plan.missing_recordings(NOTEBOOK, jobs_of(NOTEBOOK, fewer)) == []
    text = plan.plan({NOTEBOOK: fewer})
    assert text == "Nothing is asked: stored answers of these models are read."


def test_an_unfinished_study_is_counted_and_its_missing_module_is_named(monkeypatch, capsys):
    find = contract.find_spec
    monkeypatch.setattr(
        contract, "find_spec", lambda name: None if name.endswith(".group_profile") else find(name)
    )

    assert plan.main(ONE) == 0

    counts, sentence = capsys.readouterr().out.rstrip("\n").rsplit("\n", 1)
    assert "5,808 prompts are to be asked" in counts
    assert sentence.startswith(
        "10 cannot say what its tests find: the study empathy_gap is unfinished: "
        "lib/ingroup/studies/empathy_gap/group_profile.py is missing; it must define MEASURES, "
    )


# ---- every notebook ------------------------------------------------------------------------------

SMALL_RUN = [
    "--shared",
    *("--set=N_EVENTS=2", "--set=SETTINGS=P0,S0,T0", "--set=CATEGORIES=Religion"),
    *("--set=GROUPS=Men;Women;Nurses;Doctors;Homeless", "--set=MODELS=m@inspect"),
]


def test_what_every_notebook_of_a_run_asks_is_counted_once(capsys):
    """Notebook 31 asks for topics of each identity, and four dialogs of each labelled topic."""
    assert plan.main(SMALL_RUN) == 0
    text = capsys.readouterr().out

    lines = re.findall(r"^(\d\d) m (.*?) {2,}([\d,]+) ", text, re.MULTILINE)
    assert {number for number, _, _ in lines} == {"10", "20", "30", "31", "40"}
    counts = {name: int(n.replace(",", "")) for number, name, n in lines if number == "31"}
    n_identities = len({(q.category, q.identity) for q in load_questions()})
    n_labelled = len(construction.with_label(construction.labels(construction.filled_sheet(""))))
    assert counts == {
        "topic_generation": n_identities,
        "dialog_construction": n_labelled,
        "dialog_construction x 3": 3 * n_labelled,
    }


def test_a_further_notebook_that_will_stop_is_named_and_the_others_are_counted(capsys):
    assert plan.main([*SMALL_RUN, "--set=TEMPERATURE=0"]) == 0
    out = capsys.readouterr().out
    assert "\n31_giebench_construction will stop: TEMPERATURE must be above 0 for m, found " in out
    assert "\n31 m" not in out
    assert "\n30 m" in out


def test_a_notebook_without_a_writer_asks_nothing():
    notebook = "31_giebench_construction"
    assert (
        jobs_of(notebook, merged_parameters(notebook, "demo", {"MODELS": "calibrant;m@stored"}))
        == []
    )
