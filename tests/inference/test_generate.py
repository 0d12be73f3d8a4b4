"""Around the loop: calls and their folders, engines, failures, what it took."""

import sys

import pandas as pd
import pytest

from few import Few
from ingroup import paths
from ingroup.inference import (
    Call,
    EngineError,
    Reply,
    Sampling,
    Store,
    StoreError,
    ask,
    call,
    fill,
    find_model,
    open_store,
    stored,
    usage,
)
from ingroup.inference.cluster import Cluster
from ingroup.inference.generate import notes
from toy import SAMPLING, Toy, religion, run


@pytest.fixture
def plan():
    return religion()


def called(plan, model="org/Llama-8B", **more):
    facts = {"study": "empathy_gap", "source": "sample-12", "engine": "vllm", "part": "P0,S0,T0"}
    given = {"model": model, "design": plan, "sampling": Sampling(), **more}
    return Call(**facts | given)


def test_a_folder_is_one_name_a_level(plan):
    for model, name in {"org/Llama-8B": "org--Llama-8B", "/home/me/m/": "home--me--m"}.items():
        folder = paths.RESPONSES / "empathy_gap" / "sample-12" / f"{name}@vllm" / "P0,S0,T0"
        assert called(plan, model).folder == folder


@pytest.fixture
def engines(tmp_path, monkeypatch):
    """Answers go to a folder of the test's; which engine was made of what, and closed."""
    made = []

    class Told(Toy):
        def __init__(self, name, model, **options):
            super().__init__(lambda *_: model, engine=name, model=model)
            self.made = [name, model, options, "open"]
            made.append(self.made)

        def close(self):
            self.made[-1] = "closed"

    monkeypatch.setattr(call, "make_engine", Told)
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    return made


def test_calls_are_asked_and_read_without_an_engine(plan, engines):
    """One engine a model, with the options that are the notebook's parameters."""
    short = Few(plan, 0, 20)
    asked = [called(short, "a"), called(short, "a", part="P1"), called(short, "b")]
    with pytest.raises(StoreError, match="holds no answers; run the study again"):
        stored(asked[0])
    ask(asked, {"SYSTEM": "fold", "ENGINE_WORKERS": 1, "MODELS": "a;b", "RUN": "x"})
    options = {"system": "fold", "engine_workers": 1}
    assert engines == [["vllm", name, options, "closed"] for name in ("a", "b")]
    assert [set(stored(one).read().text) for one in asked] == [{"a"}, {"a"}, {"b"}]
    other = called(Few(plan, 0, 21), "a")
    with pytest.raises(StoreError, match="holds answers to other prompts than the study would"):
        stored(other)
    with pytest.raises(StoreError, match="with trials 20, this run asks with trials 21"):
        ask([other], {})
    assert engines[-1][-1] == "closed"


def test_what_is_not_settled_is_not_asked(plan, engines):
    with pytest.raises(ValueError, match="texts of its prompts are still to be written"):
        ask([called(plan, settled=False)], {})


def test_a_model_is_a_folder_of_ours_or_a_name():
    assert find_model("calibrant") == str(paths.MODELS / "calibrant")
    assert find_model("meta-llama/Llama-3.1-8B") == "meta-llama/Llama-3.1-8B"


@pytest.fixture
def responses(tmp_path):
    failed = [Reply(None, "failed", 100, error=reason) for reason in ("HTTP 500", "cut", "cut")]
    store = Store(tmp_path, {"trials": 6, "shard_size": 3})
    with store.writing():
        store.write(0, [Reply("1", "stop", 120, 96, 2), Reply("", "stop", 80, 0, 0), failed[0]])
        store.write(1, [failed[1], failed[2], Reply("70", "length", 200, 160, 3)])
    return store.read()


def test_usage_sums_what_is_stored_and_prices_it_per_million(responses):
    row = usage(responses, price_in=2.5, price_out=10, model="m")
    counted = ["prompts", "prompt_tokens", "cached_tokens", "output_tokens", "failed"]
    assert row[counted].iloc[0].tolist() == [6, 700, 256, 5, 3]
    assert row.cost.tolist() == [pytest.approx((700 * 2.5 + 5 * 10) / 1_000_000)]
    assert usage(responses, 0, 0, "m").cost[0] == 0
    named = responses.assign(model=["m", "", "n", "m", "o", ""])
    assert usage(named, 0, 0, "m").another_model[0] == 2
    dated = responses.assign(
        model=["gpt-4o-mini-2024-07-18", "gpt-4o-mini", "", "gpt-4o"] + [""] * 2
    )
    for asked in ("gpt-4o-mini", "openai/gpt-4o-mini"):
        assert usage(dated, 0, 0, asked).another_model[0] == 1
        as_categories = dated.astype({"model": "category"})
        assert usage(as_categories[:3], 0, 0, asked).another_model[0] == 0
    assert usage(dated, 0, 0, "m").another_model[0] == 3


def test_reasoning_tokens_are_told_and_are_part_of_the_output(responses):
    """Stores that were filled before replies had reasoning lack the column."""
    old = usage(responses.drop(columns="reasoning_tokens", errors="ignore"), 2.5, 10, "m")
    assert old.reasoning_tokens[0] == 0
    new = usage(responses.assign(reasoning_tokens=[1, 0, 0, 0, 0, 2]), 2.5, 10, "m")
    assert new.reasoning_tokens[0] == 3
    assert new.cost[0] == old.cost[0] == pytest.approx((700 * 2.5 + 5 * 10) / 1_000_000)
    names = list(new.columns)
    assert names.index("reasoning_tokens") == names.index("output_tokens") + 1


def test_tokens_of_a_large_study_do_not_overflow():
    """37 million prompts of 300 tokens are more than 32 bits count."""
    one = pd.DataFrame({"prompt_tokens": [2**30] * 8, "cached_tokens": 0, "output_tokens": 1})
    many = one.astype("int32").assign(finish_reason="stop", model="")
    assert usage(many, 0, 0, "m").prompt_tokens[0] == 2**33


def test_failures_are_told_with_their_reasons(responses):
    assert notes([responses], "m") == ["3 of 6 prompts failed (2 x cut; 1 x HTTP 500)"]
    assert notes([responses[:2]], "m") == []
    many = pd.DataFrame({"finish_reason": "failed", "error": [*"aaabbbccddeeeee"], "model": ""})
    told = "15 of 15 prompts failed (5 x e; 3 x a; 3 x b; 4 x something else)"
    assert notes([many], "m") == [told]
    assert notes([many[:8], many[8:]], "m") == [told]
    named = many.assign(finish_reason="stop", model=["m", "n", *["m"] * 13])
    assert notes([named], "m") == ["1 of 15 replies name another model (1 x n)"]
    dated = named.assign(model=["gpt-4o-mini-2024-07-18", *["gpt-4o-mini"] * 14])
    assert notes([dated], "gpt-4o-mini") == []
    assert notes([dated.assign(model="")], None) == []
    later = named.assign(model=["gpt-4o-2024-11-20", *["gpt-4o-2024-08-06"] * 14])
    (sentence,) = notes([later[:8], later[8:]], "gpt-4o")
    assert sentence.startswith("gpt-4o-2024-11-20 is a later checkpoint than the paper's: ")
    assert notes([later[:1]], "gpt-4o-2024-11-20") == []


def test_a_run_says_on_standard_error_that_calls_failed(plan, tmp_path, capsys):
    short, dead = Few(plan, 0, 12), Toy(lambda *_: None)
    fill(short, dead, open_store(tmp_path, short, dead, SAMPLING), SAMPLING, "Religion")
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "Religion: 12 of 12 prompts failed (12 x no net)"


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
    wanted = [str(len(trial.messages[1]["content"].split())) for trial in plan]
    assert table.text.astype(str).tolist() == wanted


def test_without_ray_there_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(EngineError) as caught:
        Cluster(lambda: None, 2)
    assert str(caught.value) == (
        "ENGINE_WORKERS and RAY_ADDRESS need Ray, which is not installed: "
        ".venv/bin/uv pip install -e '.[ray]'"
    )
