"""Around the loop: jobs and their folders, engines, failures, what it took."""

import re
import sys
from functools import partial

import pandas as pd
import pytest
from tqdm import tqdm

from few import Few
from ingroup import paths
from ingroup.inference import (
    EngineError,
    Job,
    Reply,
    Sampling,
    Store,
    StoreError,
    ask,
    fill,
    find_model,
    generate,
    job,
    open_store,
    stored,
    usage,
)
from ingroup.inference.cluster import Cluster
from ingroup.inference.generate import reply_warnings
from toy import SAMPLING, Server, Toy, numbers, religion, run


@pytest.fixture
def plan():
    return religion()


def call_of(plan, model="org/Llama-8B", part="P0,S0,T0", **more):
    return Job(
        study="empathy_gap",
        source="sample-12",
        model=model,
        engine="vllm",
        part=part,
        design=plan,
        sampling=Sampling(),
        **more,
    )


@pytest.mark.parametrize(
    ("model", "name"), [("org/Llama-8B", "org--Llama-8B"), ("/home/me/m/", "m-781e81864d")]
)
def test_a_folder_is_one_name_per_level(model, name, plan):
    folder = paths.RESPONSES / "empathy_gap" / "sample-12" / f"{name}@vllm" / "P0,S0,T0"

    assert call_of(plan, model).folder == folder


@pytest.fixture
def engines(tmp_path, monkeypatch):
    """Answers go to a folder of the test's; which engine was made of what, and closed."""
    made = []

    class ModelsName(Toy):
        """Answers every prompt with the name of its model."""

        def __init__(self, name, model, **options):
            super().__init__(lambda *_: model, engine=name, model=model)
            self.entry = {"engine": name, "model": model, "options": options, "closed": False}
            made.append(self.entry)

        def close(self):
            self.entry["closed"] = True

    monkeypatch.setattr(job, "make_engine", ModelsName)
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    return made


def made_of(model, **options):
    """The entry of an engine that was made and closed."""
    return {"engine": "vllm", "model": model, "options": options, "closed": True}


def test_each_model_has_one_engine_with_the_options_of_the_notebook(plan, engines):
    short = Few(plan, 0, 20)
    calls = [call_of(short, "a"), call_of(short, "a", "P1"), call_of(short, "b")]
    parameters = {"SYSTEM": "fold", "ENGINE_WORKERS": 1, "MODELS": "a;b", "RUN": "x"}

    ask(calls, parameters)

    texts = [set(stored(each).read().text) for each in calls]
    assert texts == [{"a"}, {"a"}, {"b"}]
    assert engines == [
        made_of("a", system="fold", engine_workers=1),
        made_of("b", system="fold", engine_workers=1),
    ]


@pytest.mark.usefixtures("engines")
def test_a_call_that_was_never_asked_is_not_read(plan):
    with pytest.raises(StoreError, match="holds no answers; run the study again"):
        stored(call_of(plan))


def test_answers_to_fewer_trials_are_neither_read_nor_completed(plan, engines):
    ask([call_of(Few(plan, 0, 20), "a")], {})
    longer = call_of(Few(plan, 0, 21), "a")

    with pytest.raises(StoreError, match="holds answers to other prompts than the study would"):
        stored(longer)
    with pytest.raises(StoreError, match="with trials 20, this run asks with trials 21"):
        ask([longer], {})
    assert engines[-1]["closed"]


def test_what_is_not_settled_is_not_asked(plan, engines):
    with pytest.raises(ValueError, match="texts of its prompts are still to be written"):
        ask([call_of(plan, settled=False)], {})


def test_an_engine_that_answers_no_chat_says_so():
    """A cluster is asked by its own loop alone."""
    with pytest.raises(NotImplementedError):
        Cluster.answer(object(), [[{"role": "user", "content": "Yes or no?"}]], SAMPLING)


def test_a_model_is_a_folder_of_ours_or_a_name():
    assert find_model("calibrant") == str(paths.MODELS / "calibrant")
    assert find_model("meta-llama/Llama-3.1-8B") == "meta-llama/Llama-3.1-8B"


# ---- what a run took -----------------------------------------------------------------------------

COST = (700 * 2.5 + 5 * 10) / 1_000_000  # of the responses


@pytest.fixture
def responses(tmp_path):
    """Three replies and three failed calls: 700 tokens of prompts and 5 of replies."""
    store = Store(tmp_path, {"trials": 6, "shard_size": 3})
    cut = Reply(None, "failed", 100, error="cut")
    first_shard = [
        Reply("1", "stop", 120, 96, 2),
        Reply("", "stop", 80, 0, 0),
        Reply(None, "failed", 100, error="HTTP 500"),
    ]
    second_shard = [cut, cut, Reply("70", "length", 200, 160, 3)]
    with store.writing():
        store.write(0, first_shard)
        store.write(1, second_shard)

    return store.read()


def test_usage_sums_what_is_stored_and_prices_it_per_million(responses):
    row = usage(responses, price_in=2.5, price_out=10, model="m").iloc[0]

    assert row.prompts == 6
    assert row.prompt_tokens == 700
    assert row.cached_tokens == 256
    assert row.output_tokens == 5
    assert row.failed == 3
    assert row.cost == pytest.approx(COST)


def test_without_prices_usage_costs_nothing(responses):
    assert usage(responses, 0, 0, "m").cost[0] == 0


def test_replies_that_name_another_model_are_counted(responses):
    named = responses.assign(model=["m", "", "n", "m", "o", ""])

    assert usage(named, 0, 0, "m").another_model[0] == 2


DATED = ["gpt-4o-mini-2024-07-18", "gpt-4o-mini", "", "gpt-4o", "", ""]


@pytest.mark.parametrize(
    ("model", "others", "others_of_three"),
    [("gpt-4o-mini", 1, 0), ("openai/gpt-4o-mini", 1, 0), ("m", 3, 2)],
)
def test_a_dated_name_is_that_of_its_model(model, others, others_of_three, responses):
    dated = responses.assign(model=DATED)
    first_three = dated.astype({"model": "category"})[:3]

    assert usage(dated, 0, 0, model).another_model[0] == others
    assert usage(first_three, 0, 0, model).another_model[0] == others_of_three


def test_reasoning_tokens_are_a_column_and_are_part_of_the_output(responses):
    """Stores that were filled before replies had reasoning lack the column."""
    without_column = responses.drop(columns="reasoning_tokens", errors="ignore")
    with_reasoning = responses.assign(reasoning_tokens=[1, 0, 0, 0, 0, 2])

    old = usage(without_column, 2.5, 10, "m")
    new = usage(with_reasoning, 2.5, 10, "m")

    names = list(new.columns)
    assert old.reasoning_tokens[0] == 0
    assert new.reasoning_tokens[0] == 3
    assert new.cost[0] == old.cost[0] == pytest.approx(COST)
    assert names.index("reasoning_tokens") == names.index("output_tokens") + 1


def test_tokens_of_a_large_study_do_not_overflow():
    """37 million prompts of 300 tokens are more than 32 bits count."""
    table = pd.DataFrame({"prompt_tokens": [2**30] * 8, "cached_tokens": 0, "output_tokens": 1})
    table = table.astype("int32").assign(finish_reason="stop", model="")

    assert usage(table, 0, 0, "m").prompt_tokens[0] == 2**33


# ---- notes on a run ------------------------------------------------------------------------------


def test_failures_are_noted_with_their_reasons(responses):
    assert reply_warnings([responses], "m") == ["3 of 6 prompts failed (2 x cut; 1 x HTTP 500)"]
    assert reply_warnings([responses[:2]], "m") == []


@pytest.fixture
def failures():
    """Fifteen failed calls, for five reasons."""
    return pd.DataFrame({"finish_reason": "failed", "error": [*"aaabbbccddeeeee"], "model": ""})


def test_rare_reasons_are_summed_up_over_all_parts(failures):
    note = "15 of 15 prompts failed (5 x e; 3 x a; 3 x b; 4 x something else)"

    assert reply_warnings([failures], "m") == [note]
    assert reply_warnings([failures[:8], failures[8:]], "m") == [note]


def test_reasoning_without_an_answer_is_noted():
    """An answer that was cut, and a reply without both, are no such replies."""
    replies = pd.DataFrame(
        {
            "finish_reason": ["length", "length", "length", "stop"],
            "text": ["", "55", "", ""],
            "reasoning": ["Hmm, 13", "Hmm", "", "Hmm"],
            "error": "",
            "model": "m",
        }
    )

    note = (
        "1 of 4 replies ended before the model had ended its reasoning: a larger MAX_TOKENS asks "
        "these again"
    )
    assert reply_warnings([replies], "m") == [note]


def test_a_run_says_that_a_model_did_not_end_its_reasoning(plan, tmp_path, capsys):
    short = Few(plan, 0, 12)
    engine = Toy(lambda *_: Reply("", "length", 10, 128, 0, reasoning="Hmm, 13"))
    store = open_store(tmp_path, short, engine, SAMPLING)

    fill(short, engine, store, SAMPLING, "Religion")

    last_line = capsys.readouterr().err.splitlines()[-1]
    assert last_line.startswith("Religion: 12 of 12 replies ended before the model had ended its ")


def replies_of(failures, first, second, others):
    """Replies that name these models."""
    return failures.assign(finish_reason="stop", model=[first, second, *[others] * 13])


def test_another_model_is_noted_by_name(failures):
    replies = replies_of(failures, "m", "n", "m")

    assert reply_warnings([replies], "m") == ["1 of 15 replies name another model (1 x n)"]


def test_a_dated_name_is_not_noted(failures):
    replies = replies_of(failures, "gpt-4o-mini-2024-07-18", "gpt-4o-mini", "gpt-4o-mini")

    assert reply_warnings([replies], "gpt-4o-mini") == []
    assert reply_warnings([replies.assign(model="")], None) == []


def test_a_later_checkpoint_than_the_papers_is_noted(failures):
    replies = replies_of(failures, "gpt-4o-2024-11-20", "gpt-4o-2024-08-06", "gpt-4o-2024-08-06")

    sentences = reply_warnings([replies[:8], replies[8:]], "gpt-4o")

    assert len(sentences) == 1
    assert sentences[0].startswith("gpt-4o-2024-11-20 is a later checkpoint than the paper's: ")
    assert reply_warnings([replies[:1]], "gpt-4o-2024-11-20") == []


def test_a_run_says_on_standard_error_that_calls_failed(plan, tmp_path, capsys):
    short = Few(plan, 0, 12)
    failing = Toy(lambda *_: None)
    store = open_store(tmp_path, short, failing, SAMPLING)

    fill(short, failing, store, SAMPLING, "Religion")

    last_line = capsys.readouterr().err.splitlines()[-1]
    assert last_line == "Religion: 12 of 12 prompts failed (12 x no net)"


class Groups(Toy):
    """Answers four prompts at a time, as transformers answers a batch."""

    keeps_each = True
    group_size = 4


def test_the_bar_moves_by_whole_groups_and_its_last_state_stays(
    plan, tmp_path, capsys, monkeypatch
):
    """After one reply of a group, the bar would say a speed that is far too low."""
    monkeypatch.setattr(generate, "tqdm", partial(tqdm, mininterval=0))
    short = Few(plan, 0, 9)
    engine = Groups(lambda *_: "50")
    store = open_store(tmp_path, short, engine, SAMPLING)

    fill(short, engine, store, SAMPLING, "Religion")

    written = capsys.readouterr().err
    states = re.findall(r"Religion (\d) of 9", written)
    assert list(dict.fromkeys(states)) == ["0", "4", "8", "9"]
    # A faster machine counts in thousands (k), and tqdm pads a line that is shorter than the last.
    last_state = written.split("\r")[-1]
    assert re.fullmatch(r"Religion 9 of 9 \S+ +00:00 left, +[\d.]+k? prompts/s *\n", last_state)


# ---- engines of token ids ------------------------------------------------------------------------


class Tokens(Toy):
    """A local engine whose prompter counts words, and that answers with the count."""

    class prompter:
        @staticmethod
        def batch(conversations):
            return [[len(chat[1]["content"].split())] for chat in conversations]

    def complete(self, prompts, sampling):
        return [Reply(str(words), "stop") for (words,) in prompts]


def test_a_local_engine_gets_token_ids_of_its_own_part(plan, tmp_path):
    """Prompts are made one part ahead; each part still gets its own."""
    table = run(plan, tmp_path, Tokens(None))

    expected = []
    for trial in plan:
        words = trial.messages[1]["content"].split()
        expected.append(str(len(words)))
    assert table.text.astype(str).tolist() == expected


def test_without_ray_there_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)

    with pytest.raises(EngineError) as caught:
        Cluster(lambda: None, 2)

    assert str(caught.value) == (
        "ENGINE_WORKERS and RAY_ADDRESS need Ray, which is not installed: "
        ".venv/bin/uv pip install -e '.[ray]'"
    )


def test_a_run_killed_between_a_shard_and_its_journal_goes_on(tmp_path):
    """The journal still has both replies of the written shard, and one of the next."""
    design = numbers(4)
    server = Server(lambda *_: "1")
    store = open_store(tmp_path, design, server, SAMPLING, 2)
    file = tmp_path / "journal.jsonl"
    with store.writing():
        for trial in range(3):
            store.journal().add(trial, Reply("1", "stop"))
        of_three = file.read_bytes()
        store.write(0, [Reply("1", "stop")] * 2)
    file.write_bytes(of_three)

    store = open_store(tmp_path, design, server, SAMPLING, 2)
    fill(design, server, store, SAMPLING, "a title")

    assert store.read().text.tolist() == ["1"] * 4
    assert server.asked["all"] == 1
