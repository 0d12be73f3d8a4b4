"""The transformers engine against transformers' own generate, prompt by prompt."""

import hashlib
import json
import re
import shutil
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from scipy import stats
from transformers import AutoModelForCausalLM

import slow
from ingroup import paths
from ingroup.inference import EngineError, Reply, Sampling, choices, open_store
from ingroup.inference.choices import Tree
from ingroup.inference.prompts import batches
from ingroup.inference.transformers_engine import (
    BATCHES,
    Draw,
    Finite,
    TransformersEngine,
    attention_mask,
)
from ingroup.inference.weights import NOT_FINITE, Weights
from ingroup.studies.empathy_gap.design import trials as empathy_gap_trials
from ingroup.studies.empathy_gap.stimuli import load_events
from toy import religion, run

CALIBRANT = str(paths.MODELS / "calibrant")


@pytest.fixture(scope="module")
def engine():
    return TransformersEngine(CALIBRANT, batch_size=16)


@pytest.fixture(scope="module")
def chats():
    """Trials from all over the design, so that prompts differ in length and prefix."""
    plan = empathy_gap_trials(load_events("sample", 12))
    return [plan[i].messages for i in range(0, len(plan), len(plan) // 30)]


@pytest.fixture(scope="module")
def model():
    return AutoModelForCausalLM.from_pretrained(CALIBRANT, dtype=torch.float32)


def test_greedy_replies_are_those_of_plain_generate(engine, chats, model):
    replies = engine.answer(chats, Sampling(max_tokens=12))
    for chat, reply in zip(chats, replies, strict=True):
        ids = torch.tensor(engine.prompter.batch([chat]))
        with torch.inference_mode():
            alone = model.generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, do_sample=False
            )
        text = engine.tokenizer.decode(alone[0, ids.shape[1] :], skip_special_tokens=True)
        assert reply.text == text


def test_tokens_are_counted(engine, chats):
    replies = engine.answer(chats[:20], Sampling(max_tokens=12))
    lengths = list(map(len, engine.prompter.batch(chats[:20])))
    assert [reply.prompt_tokens for reply in replies] == lengths
    assert all(reply.finish_reason == "stop" for reply in replies)
    for reply in replies:
        written = engine.tokenizer.encode(reply.text, add_special_tokens=False)
        assert reply.output_tokens == len(written) + 1  # and the end token
    assert sum(reply.cached_tokens for reply in replies) > 0


def test_a_reply_cut_short_says_so(engine, chats):
    (reply,) = engine.answer(chats[:1], Sampling(max_tokens=1))
    assert (reply.finish_reason, reply.output_tokens) == ("length", 1)


NUMBERS = tuple(map(str, range(101)))
# Numbers that are one token each for a calibrant; several tokens, of which some begin others; an
# answer that begins another; a choice alone.
OVER = [
    Sampling(choices=NUMBERS),
    Sampling(choices=("[[A]]", "[[B]]", "yes", "yesno", "yes no")),
    Sampling(choices=tuple(f" {n}" for n in range(11)), leads=("Rating:", "\n- Warmth:")),
    Sampling(choices=("12",)),
]


@pytest.mark.parametrize("sampling", OVER, ids=["numbers", "texts", "leads", "one"])
def test_over_choices_as_a_forward_pass_a_choice_says(sampling, engine, chats, model):
    # Prompts that share a prefix, one that shares none, the same one twice, and one of one token.
    alone = [{"role": "system", "content": "7"}, {"role": "user", "content": "How much?"}]
    some = [*chats[:4], alone, chats[0]]
    found = engine.answer(some, sampling)
    assert any(reply.cached_tokens for reply in found)
    told = list(slow.replies(engine, model, some[:5], sampling))
    for reply, (text, probabilities, mass) in zip(found, [*told, told[0]], strict=True):
        assert reply.text == text
        assert reply.probabilities == pytest.approx(probabilities, abs=1e-4)
        assert reply.mass == pytest.approx(mass, abs=1e-4)
    together = [reply.probabilities for reply in found]
    one_by_one = [engine.answer([chat], sampling)[0].probabilities for chat in some]
    assert np.array(together) == pytest.approx(np.array(one_by_one), abs=1e-5)
    if not sampling.leads[1:]:
        wanted = engine.prompter.batch([alone])[0] + engine._spelt(sampling.leads[0])
        assert found[4].prompt_tokens == len(wanted)
    (short,) = engine.complete([[5]], sampling)
    assert sum(short.probabilities) == pytest.approx(len(sampling.leads))


@pytest.mark.parametrize("ending", ["turn", "newline", "any"])
def test_stored_steps_give_the_answers_under_every_rule_of_where_they_end(
    ending, engine, chats, model
):
    """Digit by digit, as most models spell: the calibrant's tokens 1 and 10 are told apart here."""
    sampling = Sampling(choices=("yes", "yesno", "yesnono", "[[A]]"))
    (spelt,) = engine.spelling(sampling).values()
    spelt = [tuple(answer) for answer in spelt]
    tree = Tree(spelt)
    assert tree.needs_an_end
    newlines = engine._endings.newline
    assert [engine.tokenizer.decode([token]).strip("\n") for token in newlines] == [""]

    for chat, reply in zip(chats[:3], engine.answer(chats[:3], sampling), strict=True):
        (ids,) = engine.prompter.batch([chat])
        known = slow.known(model, ids, spelt)
        wanted = slow.defined(known.get, spelt, engine._end_tokens, newlines, ending)
        steps = tree.split(np.array([reply.steps]))
        assert tree.probabilities(steps, ending)[0] == pytest.approx(wanted, abs=1e-4)
        taken = slow.greedy(known.get, spelt, engine._end_tokens, newlines, ending)
        assert tree.greedy(steps, ending).tolist() == [taken]


def test_the_most_probable_answer_is_the_constrained_greedy_one_and_here_the_free_one(
    engine, chats
):
    """The calibrant's numbers are one token each, and it answers with nothing else."""
    found = engine.answer(chats, OVER[0])
    assert [one.text for one in found] == [r.text for r in engine.answer(chats, Sampling())]
    assert min(reply.mass[0] for reply in found) > 0.99


def test_half_precision_gives_nearly_the_same(engine, chats):
    half = TransformersEngine(CALIBRANT, batch_size=16, dtype="bfloat16")
    ours, theirs = half.answer(chats[:8], OVER[0]), engine.answer(chats[:8], OVER[0])
    for reply, other in zip(ours, theirs, strict=True):
        assert sum(reply.probabilities) == pytest.approx(1)
        assert reply.probabilities == pytest.approx(other.probabilities, abs=0.1)


def test_a_choice_is_spelt_as_the_tokenizer_spells_it_behind_its_lead(engine, monkeypatch):
    """Some tokenizers put a space of their own before a text that begins."""

    def spelt(text):
        return [ord(c) for c in f"_{text}".replace(" ", "_")] if text else []

    monkeypatch.setattr(engine, "_spelt", spelt)
    assert engine._tree([" 5"], "a:").spelt == [tuple(map(ord, "_5"))]
    assert engine._tree(["5"], "").spelt == [tuple(map(ord, "_5"))]
    monkeypatch.setattr(engine, "_spelt", lambda text: [len(text)])  # not to be told apart
    assert engine._tree([" 5", "100"], "a:").spelt == [(2,), (3,)]


def test_choices_that_are_spelt_alike_are_one_sentence(engine, chats):
    for alike in (("5", "5"), ("5", "")):
        with pytest.raises(EngineError, match="cannot be asked over choices: every admissible"):
            engine.answer(chats[:1], Sampling(choices=alike))


@pytest.mark.parametrize("sampling", [Sampling(max_tokens=3), OVER[0], OVER[2]])
def test_a_prompt_that_is_too_long_fails_alone(engine, chats, sampling):
    far = [chats[0][0], {"role": "user", "content": "50 " * 3000}]
    first, long, last = engine.answer([chats[0], far, chats[1]], sampling)
    alone = engine.answer(chats[:2], sampling)
    assert [first.text, last.text] == [reply.text for reply in alone]
    assert (long.text, long.finish_reason, long.probabilities) == (None, "failed", ())
    assert re.fullmatch(r"the prompt has 60\d\d tokens, the model takes 204[67]", long.error)
    assert str(long.prompt_tokens) in long.error
    assert engine.answer([far], sampling) == [long]


def test_what_is_answered_is_kept_before_the_shard_is_full(engine, tmp_path, monkeypatch):
    """A killed run goes on behind the replies that it had."""
    plan, sampling = religion(1), Sampling(choices=NUMBERS)
    small = TransformersEngine(CALIBRANT, batch_size=1)
    asked, complete = [], small.complete
    most = BATCHES * torch.get_num_threads()

    def counting(prompts, sampling):
        asked.append(len(prompts))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return complete(prompts, sampling)

    monkeypatch.setattr(small, "complete", counting)
    with pytest.raises(KeyboardInterrupt):
        run(plan, tmp_path / "a", small, sampling=sampling)
    assert (asked, run_kept(plan, tmp_path / "a", small, sampling)) == ([most] * 3, 2 * most)
    responses = run(plan, tmp_path / "a", small, sampling=sampling)
    assert sum(asked[3:]) == len(plan) - 2 * most
    assert run_kept(plan, tmp_path / "a", small, sampling) == 0
    whole = run(plan, tmp_path / "b", engine, sampling=sampling)
    assert responses.text.equals(whole.text)
    ours, theirs = (choices.probabilities(one, NUMBERS) for one in (responses, whole))
    assert ours == pytest.approx(theirs, abs=2e-3)  # as stored, of three digits


def run_kept(plan, folder, engine, sampling):
    """How many replies stand in the journal alone."""
    store = open_store(folder, plan, engine, sampling, 50)
    with store.writing():
        return len(store.journal().kept)


def test_the_end_tokens_are_found_without_generation_defaults(engine, copy):
    own = engine._end_tokens
    assert own == (engine.tokenizer.eos_token_id,)
    file = copy / "generation_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"eos_token_id": [7, 2]}))
    assert TransformersEngine(str(copy))._end_tokens == (7, 2)
    file.unlink()
    assert TransformersEngine(str(copy))._end_tokens == own


def test_a_template_that_ends_in_reasoning_gives_no_answer_and_is_closed_before_scoring(
    chats, copy
):
    template = copy / "chat_template.jinja"
    plain = template.read_text()
    template.write_text(plain + "{% if add_generation_prompt %}<think>\n{% endif %}")
    thinking = TransformersEngine(str(copy))
    spelt = thinking.tokenizer.encode("perhaps 72", add_special_tokens=False)
    reply = thinking._reply(spelt, "length", 9, 0)
    assert (reply.text, reply.reasoning) == ("", "perhaps 72")
    assert {reply.text for reply in thinking.answer(chats[:3], Sampling(max_tokens=4))} == {""}

    # Scored behind the closed reasoning: as if the template had closed it itself.
    found = thinking.answer(chats[:3], Sampling(choices=NUMBERS))
    closed = "{% if add_generation_prompt %}<think>\n\n</think>\n\n{% endif %}"
    template.write_text(plain + closed)
    told = TransformersEngine(str(copy)).answer(chats[:3], Sampling(choices=NUMBERS))
    for one, other in zip(found, told, strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-4)
        assert one.mass == pytest.approx(other.mass, abs=1e-4)


def broken_for(token):
    """An engine whose logits are NaN as soon as the model reads a token."""
    broken = TransformersEngine(CALIBRANT, batch_size=16)

    def spoil(_, given, embedded):
        is_token = given[0] == token
        return embedded.masked_fill(is_token[..., None], torch.nan)

    broken._model.get_input_embeddings().register_forward_hook(spoil)
    return broken


@pytest.mark.parametrize("sampling", [Sampling(), OVER[0], OVER[2]], ids=["free", "one", "leads"])
def test_a_reply_whose_logits_are_not_finite_fails_alone(engine, chats, sampling):
    rare = [{"role": "system", "content": "7"}, {"role": "user", "content": "zebra"}]
    ids = engine.prompter.batch([rare])[0]
    others = set().union(*engine.prompter.batch(chats))
    (token, *_) = [token for token in ids if token not in others]
    asked = [chats[0], rare, chats[1]]
    expected = engine.answer(asked, sampling)

    first, failed, last = broken_for(token).answer(asked, sampling)

    assert (failed.text, failed.finish_reason, failed.error) == (None, "failed", NOT_FINITE)
    assert failed.probabilities == ()
    assert [first.text, last.text] == [expected[0].text, expected[2].text]


@pytest.mark.parametrize("sampling", [Sampling(), OVER[0]], ids=["free", "scored"])
def test_a_run_whose_first_batch_is_not_finite_stops_and_stores_nothing(engine, sampling, tmp_path):
    plan = religion(1)
    (common, *_) = engine.prompter.batch([plan[0].messages])[0]
    broken = broken_for(common)
    said = r"cannot be asked: the model's logits are not finite .* DTYPE=float32 or bfloat16"
    with pytest.raises(EngineError, match=said) as raised:
        run(plan, tmp_path / "store", broken, sampling=sampling)
    assert "\n" not in str(raised.value)
    assert list((tmp_path / "store").glob("part-*")) == []


def test_a_token_that_a_model_forbids_is_no_failure():
    """Minus infinity is a logit that some models give; the largest logit counts."""
    finite = Finite()
    finite(None, torch.tensor([[1.0, -torch.inf], [torch.nan, 1.0], [torch.inf, 1.0]]))
    finite(None, torch.tensor([[2.0, 1.0], [2.0, 1.0], [2.0, 1.0]]))
    assert finite.steps() == [[True, True], [False, True], [False, True]]


@pytest.mark.parametrize("window", [4096, 32])
def test_a_model_that_looks_back_less_far_than_a_prompt_is_refused(chats, copy, window):
    file = copy / "config.json"
    kind = {"model_type": "mistral", "architectures": ["MistralForCausalLM"]}
    file.write_text(json.dumps(json.loads(file.read_text()) | kind | {"sliding_window": window}))
    other = TransformersEngine(str(copy))
    if window == 32:
        with pytest.raises(EngineError, match="looks back 32 tokens in some layers"):
            other.answer(chats[:3], OVER[1])
    else:
        told = slow.replies(other, other._model, chats[:3], OVER[1])
        for reply, (_, found, _) in zip(other.answer(chats[:3], OVER[1]), told, strict=True):
            assert reply.probabilities == pytest.approx(found, abs=1e-4)


def test_an_end_token_that_is_written_counts_and_has_no_text(engine):
    end = engine.tokenizer.eos_token_id
    assert engine._ended([1], [end, 5], 0) == Reply("", "stop", 1, 0, 1)


@pytest.mark.parametrize("temperature", [0, 1.5])
def test_a_reply_depends_on_its_seed_and_not_on_its_neighbours(engine, chats, temperature):
    def draw(asked, seed=1):
        how = Sampling(temperature=temperature, top_p=0.95, max_tokens=4, seed=seed)
        return [reply.text for reply in engine.answer(asked, how)]

    texts = draw(chats)
    assert texts == draw(chats[::-1])[::-1]
    assert texts[:5] == [draw([chat])[0] for chat in chats[:5]]
    assert (texts == draw(chats, 2)) == (temperature == 0)


def test_a_closed_engine_loads_again(engine, chats):
    before = engine.answer(chats[:2], Sampling(max_tokens=4))
    engine.close()
    assert "_model" not in vars(engine)
    assert engine.answer(chats[:2], Sampling(max_tokens=4)) == before


@pytest.fixture
def copy(tmp_path):
    return shutil.copytree(CALIBRANT, tmp_path / "calibrant")


def test_the_identity_pins_every_file_that_is_read(engine, copy):
    """A tokenizer, a configuration or a default of generation changes replies as weights do."""
    own, whole = Weights(CALIBRANT).identity, engine.identity()
    assert own.items() <= whole.items()
    assert (whole["model"], whole["dtype"], engine.asks_again) == ("calibrant", "float32", False)
    (copy / "README.md").write_text("another")
    assert Weights(str(copy)).identity == own
    names = ["tokenizer.json", "tokenizer_config.json", "config.json", "generation_config.json"]
    for name in [*names, "chat_template.jinja", "model.safetensors"]:
        before = (copy / name).read_bytes()
        (copy / name).write_bytes(before + b" ")
        assert Weights(str(copy)).identity["revision"] != own["revision"], name
        (copy / name).write_bytes(before)
    assert Weights(str(copy)).identity == own


def test_what_a_model_says_about_its_own_sampling_changes_no_reply(engine, chats, copy):
    odd = {"num_beams": 3, "min_new_tokens": 6, "repetition_penalty": 9.0, "do_sample": True}
    file = copy / "generation_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | odd))
    other = TransformersEngine(str(copy), batch_size=16)
    greedy, warm = Sampling(max_tokens=8), Sampling(temperature=1.0, max_tokens=8)
    assert other.answer(chats[:10], greedy) == engine.answer(chats[:10], greedy)
    assert other.answer(chats[:10], warm) == engine.answer(chats[:10], warm)


@pytest.mark.parametrize("what", ["missing", "unexpected", "mismatched", "truncated"])
def test_weights_that_do_not_fit_are_refused(what, copy):
    """transformers fills what is missing with random numbers and says so in a log."""
    file = copy / "model.safetensors"
    tensors = load_file(file)
    name = next(name for name in tensors if "layers.0" in name)
    if what == "missing":
        del tensors[name]
    elif what == "unexpected":
        tensors[name.replace("layers.0", "layers.99")] = tensors[name].clone()
    elif what == "mismatched":
        tensors[name] = torch.zeros(3, 5)
    save_file(tensors, file, {"format": "pt"})
    if what == "truncated":
        file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(EngineError, match=r"cannot be loaded|do not fit") as error:
        TransformersEngine(str(copy)).answer([[{"role": "user", "content": "?"}]], Sampling())
    assert "\n" not in str(error.value)
    if what in ("missing", "unexpected"):
        assert f"{what} tensor" in str(error.value)


def test_a_model_of_the_hub_is_compared_with_its_hashes(engine, chats, tmp_path, monkeypatch):
    """A cache as the hub's client keeps it: each file's bytes stand under their hash."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    repository, commit = tmp_path / "models--some--calibrant", "0123456789" * 4
    snapshot, blobs = repository / "snapshots" / commit, repository / "blobs"
    for folder in (snapshot, blobs, repository / "refs"):
        folder.mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit)
    for file in Path(CALIBRANT).iterdir():
        content = file.read_bytes()
        git = hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()
        large = file.suffix == ".safetensors"
        blob = blobs / (hashlib.sha256(content).hexdigest() if large else git)
        blob.write_bytes(content)
        (snapshot / file.name).symlink_to(blob)
    other = TransformersEngine("some/calibrant")
    assert other.answer(chats[:3], Sampling()) == engine.answer(chats[:3], Sampling())
    assert other.weights.identity == {"model": "some/calibrant", "revision": commit}
    for name in ("config.json", "model.safetensors"):
        blob = (snapshot / name).resolve()
        content = blob.read_bytes()
        blob.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(EngineError, match=rf"{name}: found other bytes than the hub's hash"):
            Weights("some/calibrant")
        blob.write_bytes(content)


@pytest.mark.parametrize("name", ["../outside.safetensors", "/tmp/outside.safetensors", "a.bin", 3])
def test_an_index_that_names_a_file_which_the_revision_does_not_cover_is_refused(name, copy):
    (copy.parent / "outside.safetensors").write_bytes(b"")
    (copy / "a.bin").write_bytes(b"")
    index = copy / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "model.safetensors", "b": name}}))
    with pytest.raises(EngineError, match=f"names the file {name!r}, expected one of its own"):
        Weights(str(copy))
    index.write_text(json.dumps({"weight_map": {"a": "model.safetensors"}}))
    Weights(str(copy))


class PanicException(BaseException):
    """As pyo3 names what a tokenizer raises that breaks."""


def test_a_tokenizer_that_panics_is_one_sentence(chats, monkeypatch, copy):
    def panic(*_, **__):
        raise PanicException("index out of bounds\nnote: run with")

    said = "the tokenizer of .* broke: index out of bounds; fetch it again$"
    broken = TransformersEngine(str(copy))
    monkeypatch.setattr(broken.prompter, "_batch", panic)
    with pytest.raises(EngineError, match=said):
        broken.answer(chats[:1], Sampling())
    with pytest.raises(EngineError, match=said):
        broken.weights.load(panic)
    monkeypatch.setattr(broken, "_chosen", panic)
    with pytest.raises(EngineError, match=said):
        broken.complete([[1]], OVER[0])


def test_a_model_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(EngineError, match="no model folder"):
        TransformersEngine(str(tmp_path / "nothing"))
    with pytest.raises(EngineError, match="cannot be loaded, and there is no such folder: "):
        TransformersEngine("nobody/nothing")


@pytest.mark.parametrize(
    "wrong", [{"temperature": -1}, {"top_p": 0}, {"top_p": 1.1}, {"max_tokens": 0}]
)
def test_impossible_sampling_is_refused(wrong):
    with pytest.raises(ValueError, match="sampling needs temperature"):
        Sampling(**wrong)


def test_draws_follow_the_probabilities():
    """A chi-squared test of 4,000 draws, each with a prompt and so a stream of its own."""
    p = np.array([0.5, 0.3, 0.15, 0.05])
    logits = torch.tensor(np.log(p), dtype=torch.float32).repeat(4000, 1)
    prompts = [[number] for number in range(4000)]

    def share(**options):
        draw = Draw(prompts, Sampling(seed=5, **options), "cpu")
        return np.bincount(draw(None, logits).argmax(-1), minlength=4)

    assert stats.chisquare(share(temperature=1.0), 4000 * p).pvalue > 0.01
    flat = p**0.5 / (p**0.5).sum()  # a temperature of 2
    assert stats.chisquare(share(temperature=2.0), 4000 * flat).pvalue > 0.01
    nucleus = share(temperature=1.0, top_p=0.7)  # the first two, 0.8 together
    assert nucleus[2:].sum() == 0
    assert stats.chisquare(nucleus[:2], 4000 * p[:2] / p[:2].sum()).pvalue > 0.01


def test_a_trial_has_a_seed_of_its_own():
    ten = [Sampling(seed=seed) for seed in range(10)]
    seeds = {sampling.trial_seed([prompt]) for sampling in ten for prompt in range(100)}
    assert len(seeds) == 1000
    assert all(0 <= seed < 2**31 for seed in seeds)


prompts = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=12), min_size=1, max_size=40)


@given(prompts, st.integers(1, 9), st.integers(1, 9))
def test_batches_hold_every_prompt_once_and_what_they_say_is_shared(prompts, size, least):
    seen = []
    for batch, shared in batches(prompts, size, least):
        seen += batch
        assert 1 <= len(batch) <= size
        together = [prompts[place] for place in batch]
        assert all(len(prompt) > shared for prompt in together)
        assert all(prompt[:shared] == together[0][:shared] for prompt in together)
    assert sorted(seen) == list(range(len(prompts)))


def test_batches_break_between_personas():
    prompts = [[persona] * 8 + [event] for persona in (1, 2) for event in range(6)]
    for least in (1, 4, 6):
        assert [(sorted(batch), shared) for batch, shared in batches(prompts, 8, least)] == [
            ([0, 1, 2, 3, 4, 5], 8),
            ([6, 7, 8, 9, 10, 11], 8),
        ]
    # A batch that is not large enough yet goes on, and shares nothing then.
    assert [shared for _, shared in batches(prompts, 8, 7)] == [0, 8]


def test_the_attention_mask_is_that_of_a_loop():
    """A text sees the prefix and what stands before it; a node of the tree sees its own path."""
    shared = 2
    is_text = torch.tensor([[True, True, True], [False, True, True]])  # the second is padded
    paths = [(5,), (5, 7), (6,), (6, 7)]
    length = is_text.shape[1]
    mask = attention_mask(is_text, shared, paths)

    for prompt, row, column in product(range(2), range(length + 4), range(shared + length + 4)):
        text = column - shared
        node = text - length
        if column < shared:
            expected = True
        elif text < length:
            expected = bool(is_text[prompt, text]) and text <= row
        elif row < length:
            expected = False
        else:
            above = paths[node]
            expected = paths[row - length][: len(above)] == above
        assert mask[prompt, row, column] == expected, (prompt, row, column)
