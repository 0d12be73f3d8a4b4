"""The vllm engine on the real vLLM: ``make test-vllm``.

Plain pytest passes this file by (its name does not begin with test_), for the environment of the
studies has no vLLM. Nothing here is skipped: without vLLM everything fails.
"""

import json
import random
import shutil
import weakref
from functools import partial

import numpy as np
import psutil
import pytest
import torch
from safetensors.torch import load_file, save_file

import slow
from ingroup import paths
from ingroup.inference import EngineError, Sampling
from ingroup.inference.transformers_engine import TransformersEngine
from ingroup.inference.vllm_engine import CPU_BLOCK, VLLMEngine
from ingroup.studies.empathy_gap.design import trials
from ingroup.studies.empathy_gap.stimuli import load_events
from toy import religion

CALIBRANT = str(paths.MODELS / "calibrant")
GREEDY = Sampling(max_tokens=12)
REAL = sorted(map(str, paths.MADE.glob("[!.]*")))  # where its weights are: make model
NUMBERS = tuple(map(str, range(101)))
# Of 32 tokens each: a cache for 3 % of the religion block, about what a GPU of 80 GB holds of it
# on the full corpus with a model of 8 billion parameters.
FEW_BLOCKS = 256


def savable(ids, before):
    """Tokens of a prompt that the cached blocks of the prompt before it save, in the order of a
    design: their common prefix in whole blocks; at least one token is left to compute."""
    same = next((i for i, (a, b) in enumerate(zip(ids, before, strict=False)) if a != b), None)
    same = min(len(ids), len(before)) if same is None else same
    return min(same, len(ids) - 1) // CPU_BLOCK * CPU_BLOCK


@pytest.fixture(scope="module")
def engine():
    engine = VLLMEngine(CALIBRANT, dtype="float32")  # on a GPU "auto" has 16 bits
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def chats():
    """Trials from all over the design, so that prompts differ in length and prefix."""
    plan = trials(load_events("sample", 36))
    return [plan[i * len(plan) // 1000].messages for i in range(1000)]


@pytest.fixture
def asked(engine, monkeypatch):
    """Token ids of the prompts that reach vLLM."""
    prompts = []
    generate = engine.llm.generate

    def listen(tokens, *rest, **options):
        prompts.extend(prompt["prompt_token_ids"] for prompt in tokens)
        return generate(tokens, *rest, **options)

    monkeypatch.setattr(engine.llm, "generate", listen)
    return prompts


def test_greedy_replies_are_those_of_the_transformers_engine(engine, chats):
    """But where two first tokens are as probable, to 1e-3 of a nat: sums are in another order."""
    reference = TransformersEngine(CALIBRANT, dtype="float32")
    theirs, ours = reference.answer(chats, GREEDY), engine.answer(chats, GREEDY)
    assert len({reply.text for reply in ours}) > 10
    differ = [
        i
        for i, (one, other) in enumerate(zip(ours, theirs, strict=True))
        if one._replace(cached_tokens=0) != other._replace(cached_tokens=0)
    ]
    assert len(differ) <= 3
    tied = Sampling(choices=NUMBERS)
    for reply in reference.answer([chats[i] for i in differ], tied) if differ else ():
        second, first = np.sort(reply.probabilities)[-2:]
        assert np.log(first / second) < 1e-3


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(choices=NUMBERS),
        Sampling(choices=("[[A]]", "[[B]]", "yes", "yesno", "yes no")),
        Sampling(choices=tuple(f" {n}" for n in range(11)), leads=("Rating:", "\n- Warmth:")),
    ],
    ids=["numbers", "texts", "leads"],
)
@pytest.mark.parametrize(("model", "number"), [(CALIBRANT, 10), *((m, 1) for m in REAL)])
def test_scored_as_a_forward_pass_a_choice_says(model, number, sampling, chats, request):
    """And as the transformers engine says."""
    ours = request.getfixturevalue("engine")
    if model != CALIBRANT:  # in one process, the end of one vLLM breaks another
        ours.close()  # it loads again when it is asked
        ours = VLLMEngine(model)
    reference = TransformersEngine(model)
    some = chats[:number] + chats[500 : 500 + number]
    found, theirs = ours.answer(some, sampling), reference.answer(some, sampling)
    if model == CALIBRANT:
        assert sum(reply.cached_tokens for reply in found) > 0
    else:
        ours.close()
    defined = slow.replies(reference, reference._model, some, sampling)
    for reply, other, (text, probabilities, mass) in zip(found, theirs, defined, strict=True):
        assert reply.text == other.text == text
        assert (reply.finish_reason, reply.prompt_tokens) == ("stop", other.prompt_tokens)
        assert reply.output_tokens == other.output_tokens
        for one in (reply, other):
            assert one.probabilities == pytest.approx(probabilities, abs=1e-4)
            assert one.mass == pytest.approx(mass, abs=1e-4)
    assert not torch._dynamo.utils.counters["frames"]  # to compile takes 14 s


def test_more_tokens_in_one_place_than_vllm_weighs_are_one_sentence(engine, chats):
    words = [engine.tokenizer.decode([token]) for token in range(300, 450)]
    told = tuple({word for word in words if len(engine._token_ids(word)) == 1})
    assert len(told) > 128
    with pytest.raises(EngineError, match="vLLM weighs at most 128 tokens in one place, these"):
        engine.answer(chats[:1], Sampling(choices=told))
    assert len(engine.answer(chats[:1], Sampling(choices=told[:128]))[0].probabilities) == 128


def test_one_bos_and_two_as_the_authors_had(engine, chats, asked):
    bos = engine.tokenizer.bos_token_id
    engine.answer(chats[:20], GREEDY)
    assert [ids[:2].count(bos) for ids in asked] == [ids.count(bos) for ids in asked] == [1] * 20
    asked.clear()
    authors = VLLMEngine(CALIBRANT, bos="released")
    authors.llm = engine.llm
    replies = authors.answer(chats[:20], GREEDY)
    assert [ids[:2].count(bos) for ids in asked] == [ids.count(bos) for ids in asked] == [2] * 20
    assert [reply.prompt_tokens for reply in replies] == [len(ids) for ids in asked]
    assert authors.identity()["bos"] == "released"


@pytest.mark.parametrize("blocks", [None, FEW_BLOCKS])
def test_prefix_order_lets_a_small_cache_save_what_can_be_saved(
    blocks, engine, monkeypatch, capsys
):
    if blocks:
        engine.close()
        monkeypatch.setattr(
            engine.vllm, "LLM", partial(engine.vllm.LLM, num_gpu_blocks_override=blocks)
        )
    ordered = [trial.messages for trial in religion(None)]
    shuffled = random.Random(0).sample(ordered, len(ordered))
    prompts = engine.prompter.batch(ordered)
    assert engine.llm.llm_engine.vllm_config.cache_config.block_size == CPU_BLOCK
    before = [[], *prompts[:-1]]
    best = sum(map(savable, prompts, before))
    assert best > sum(map(len, prompts)) / 2
    shares = {}
    for name, asked in {"in order": ordered, "shuffled": shuffled}.items():
        assert engine.llm.reset_prefix_cache()
        replies = engine.answer(asked, GREEDY)
        shares[name] = sum(reply.cached_tokens for reply in replies) / best
        assert sum(reply.prompt_tokens for reply in replies) == sum(map(len, prompts))
    with capsys.disabled():
        told = ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
        size = f"{blocks} blocks" if blocks else "a cache for all"
        print(f"\nprefix cache, {size} of {CPU_BLOCK} tokens: of what can be saved, {told}")
    assert 0.9 <= shares["in order"] <= 1
    assert shares["shuffled"] < (0.8 if blocks else 1.001)
    if blocks:
        engine.close()


def test_close_frees_and_a_closed_engine_loads_again(engine, chats):
    engine.close()  # for an empty cache
    before = engine.answer(chats[:2], GREEDY)
    llm = weakref.ref(engine.llm)
    memory = psutil.Process().memory_info().rss
    engine.close()
    assert llm() is None
    assert memory - psutil.Process().memory_info().rss > 0.9 * 2**30  # the cache has 1 GiB
    engine.close()
    assert engine.answer(chats[:2], GREEDY) == before


def test_draws_follow_the_seed(engine, chats):
    def draw(seed):
        engine.close()
        warm = Sampling(temperature=1.5, top_p=0.95, max_tokens=4, seed=seed)
        return [reply.text for reply in engine.answer(chats[:20], warm)]

    first, second, again = draw(0), draw(1), draw(0)
    assert first == again != second
    assert engine.answer(chats[:1], Sampling(max_tokens=4, seed=1))[0].finish_reason == "stop"


def test_an_interrupt_leaves_nothing_behind(engine, chats, monkeypatch):
    expected = engine.answer(chats[:40], GREEDY)
    step = engine.llm.llm_engine.step
    steps = []

    def interrupted():
        steps.append(step())
        if len(steps) == 2:
            raise KeyboardInterrupt
        return steps[-1]

    monkeypatch.setattr(engine.llm.llm_engine, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.answer(chats[500:900], GREEDY)
    monkeypatch.undo()
    replies = engine.answer(chats[:40], GREEDY)
    assert [reply.text for reply in replies] == [reply.text for reply in expected]


def test_a_reply_cut_short_says_so(engine, chats):
    (reply,) = engine.answer(chats[:1], Sampling(max_tokens=1))
    assert (reply.finish_reason, reply.output_tokens) == ("length", 1)


@pytest.mark.parametrize("sampling", [GREEDY, Sampling(choices=NUMBERS)])
def test_a_prompt_that_is_too_long_fails_alone(sampling, engine, chats):
    far = [chats[0][0], {"role": "user", "content": "50 " * 3000}]
    first, long, last = engine.answer([chats[0], far, chats[1]], sampling)
    assert [first.text, last.text] == [r.text for r in engine.answer(chats[:2], sampling)]
    assert (long.text, long.finish_reason) == (None, "failed")
    assert long.error == f"the prompt has {long.prompt_tokens} tokens, the model takes 2047"
    assert engine.answer([far], sampling) == [long]


def test_what_vllm_breaks_off_has_a_reason(engine, chats, monkeypatch):
    (ids,) = engine.prompter.batch(chats[:1])
    outputs = engine.llm.generate([engine.vllm.TokensPrompt(prompt_token_ids=ids)], use_tqdm=False)
    outputs[0].outputs[0].finish_reason = "abort"
    monkeypatch.setattr(engine.llm, "generate", lambda *args, **options: outputs)
    for sampling in (GREEDY, Sampling(choices=NUMBERS)):
        (reply,) = engine.answer(chats[:1], sampling)
        assert (reply.text, reply.finish_reason) == (None, "failed")
        assert reply.error == "vLLM ended with 'abort'"


def test_what_cannot_start_is_one_sentence(tmp_path, chats):
    with pytest.raises(EngineError, match=r"vLLM cannot start '.*calibrant': \w") as raised:
        VLLMEngine(CALIBRANT, tensor_parallel_size=3).answer(chats[:1], GREEDY)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 500
    with pytest.raises(EngineError, match="MODELS: found no folder"):
        VLLMEngine(str(tmp_path / "nothing"))
    with pytest.raises(EngineError, match="cannot be loaded, and there is no such folder: "):
        VLLMEngine("nobody/nothing")


def test_the_identity_pins_model_version_and_settings(engine):
    theirs = TransformersEngine(CALIBRANT).identity()
    assert engine.identity() == theirs | {
        "engine": "vllm",
        "engine_version": engine.vllm.__version__,
        "dtype": "float32",
        "tensor_parallel_size": "1",
    }
    assert engine.vllm.__version__.startswith("0.32")
    assert engine.asks_again is False
    half = VLLMEngine(CALIBRANT, dtype="bfloat16", system="fold", tensor_parallel_size=2)
    changed = {"dtype": "bfloat16", "system": "fold", "tensor_parallel_size": "2"}
    assert half.identity() == engine.identity() | changed


def test_weights_that_lack_a_tensor_are_refused(tmp_path):
    copy = shutil.copytree(CALIBRANT, tmp_path / "calibrant")
    tensors = load_file(copy / "model.safetensors")
    del tensors[next(name for name in tensors if "layers.0.mlp" in name)]
    save_file(tensors, copy / "model.safetensors", {"format": "pt"})
    with pytest.raises(EngineError, match="missing tensor") as error:
        VLLMEngine(str(copy)).answer([[{"role": "user", "content": "?"}]], GREEDY)
    assert "\n" not in str(error.value)


def test_what_a_model_says_about_its_own_sampling_changes_no_reply(engine, chats, tmp_path):
    copy = shutil.copytree(CALIBRANT, tmp_path / "calibrant")
    file = copy / "generation_config.json"
    odd = {"min_new_tokens": 6, "repetition_penalty": 9.0, "temperature": 3.0, "do_sample": True}
    file.write_text(json.dumps(json.loads(file.read_text()) | odd))
    other = VLLMEngine(str(copy))
    texts = [[reply.text for reply in one.answer(chats[:20], GREEDY)] for one in (engine, other)]
    other.close()
    assert texts[0] == texts[1]
