"""Around the loop: folders, models, what asking took."""

import pandas as pd
import pytest

from ingroup import paths
from ingroup.inference import (
    Reply,
    Sampling,
    Store,
    failures,
    find_model,
    generate,
    open_store,
    response_folder,
    usage,
)
from ingroup.studies.empathy_gap.design import rewriting
from ingroup.studies.empathy_gap.design import trials as empathy_gap_trials
from ingroup.studies.empathy_gap.stimuli import load_events


class Rewriter:
    """Answers a rewrite prompt as a model that follows it: the text, then the closing brace."""

    asks_again = False

    def __init__(self, reply="The person {}.}} Text: {{", fails=False):
        self.reply, self.fails = reply, fails

    def answer(self, conversations, sampling):
        if self.fails:
            return [Reply(None, "failed", error="no net") for _ in conversations]
        texts = [chat[0]["content"].rsplit("The person: ", 1)[1] for chat in conversations]
        return [
            Reply(self.reply.format(text.split("}")[0].removeprefix("I ").rstrip(".")), "stop")
            for text in texts
        ]

    def identity(self):
        return {"engine": "rewriter"}


def test_a_folder_is_one_name_a_level():
    folder = response_folder("empathy_gap", "sample-12", "org/Llama-8B", "vllm", "P0,S0,T0")
    assert folder.relative_to(paths.RESPONSES).parts == (
        "empathy_gap",
        "sample-12",
        "org--Llama-8B@vllm",
        "P0,S0,T0",
    )
    local = response_folder("empathy_gap", "sample-12", "/home/me/model/", "vllm", "P0,S0,T0")
    assert local.relative_to(paths.RESPONSES).parts[2] == "home--me--model@vllm"


def test_a_model_is_a_folder_of_ours_or_a_name():
    assert find_model("calibrant") == str(paths.MODELS / "calibrant")
    assert find_model("meta-llama/Llama-3.1-8B") == "meta-llama/Llama-3.1-8B"


@pytest.fixture
def responses(tmp_path):
    store = Store(tmp_path, {"trials": 6, "shard_size": 3})
    failed = [Reply(None, "failed", 100, error=reason) for reason in ("HTTP 500", "cut", "cut")]
    store.write(0, [Reply("1", "stop", 120, 96, 2), Reply("", "stop", 80, 0, 0), failed[0]])
    store.write(1, [failed[1], failed[2], Reply("70", "length", 200, 160, 3)])
    return store.read()


def test_usage_sums_what_is_stored_and_prices_it_per_million(responses):
    assert usage(responses, price_in=2.5, price_out=10).to_dict("records") == [
        {
            "prompts": 6,
            "prompt_tokens": 700,
            "cached_tokens": 256,
            "output_tokens": 5,
            "failed": 3,
            "cost": pytest.approx((700 * 2.5 + 5 * 10) / 1_000_000),
        }
    ]
    assert usage(responses).cost[0] == 0


def test_tokens_of_a_large_study_do_not_overflow():
    """37 million prompts of 300 tokens are more than 32 bits count."""
    one = pd.DataFrame({"prompt_tokens": [2**30] * 8, "cached_tokens": 0, "output_tokens": 1})
    many = one.astype("int32").assign(finish_reason="stop")
    assert usage(many).prompt_tokens[0] == 2**33


def test_failures_are_told_with_their_reasons(responses):
    assert failures([responses]) == "3 of 6 prompts failed (2 x cut; 1 x HTTP 500)"
    assert failures([responses[:2]]) == ""
    many = pd.DataFrame({"finish_reason": "failed", "error": [*"aaabbbccddeeeee"]})
    told = "15 of 15 prompts failed (5 x e; 3 x a; 3 x b; 4 x something else)"
    assert failures([many]) == told
    assert failures([many[:4], many[4:]]) == told


def test_a_run_says_on_standard_error_that_calls_failed(tmp_path, capsys):
    plan = rewriting(load_events("sample", 12))
    engine, sampling = Rewriter(fails=True), Sampling()
    store = open_store(tmp_path, plan, engine, sampling)
    generate(plan, engine, store, sampling, "rewriting")
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "rewriting: 12 of 12 prompts failed (12 x no net)"


class Tokens:
    """A local engine whose prompter counts words, and that answers with the count."""

    asks_again = False

    class prompter:
        @staticmethod
        def batch(conversations):
            return [[len(chat[1]["content"].split())] for chat in conversations]

    def complete(self, prompts, sampling):
        return [Reply(str(words), "stop") for (words,) in prompts]

    def identity(self):
        return {"engine": "tokens"}


def test_a_local_engine_gets_token_ids_of_its_own_part(tmp_path):
    """Prompts are made one part ahead; each part still gets its own."""
    plan = empathy_gap_trials(load_events("sample", 12), ["P0,S0,T0"], ["Religion"])
    engine, sampling = Tokens(), Sampling()
    table = generate(plan, engine, open_store(tmp_path, plan, engine, sampling, 50), sampling)
    wanted = [str(len(trial.messages[1]["content"].split())) for trial in plan]
    assert table.text.astype(str).tolist() == wanted
