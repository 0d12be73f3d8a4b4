"""The transformers engine against transformers' own generate, prompt by prompt."""

import errno
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
from transformers import AutoModelForCausalLM, AutoTokenizer

import slow
from ingroup import corpora, paths
from ingroup.inference import EngineError, Reply, Sampling, choices, open_store
from ingroup.inference.choices import Tree
from ingroup.inference.prompts import batches
from ingroup.inference.transformers_engine import (
    BATCHES_PER_THREAD,
    FiniteLogits,
    GumbelDraw,
    TransformersEngine,
    attention_mask,
)
from ingroup.inference.weights import NOT_FINITE, Weights
from ingroup.studies.empathy_gap.design import trials as empathy_gap_trials
from ingroup.studies.empathy_gap.stimuli import load_events
from toy import religion, run

CALIBRANT = str(paths.MODELS / "calibrant")
NUMBERS = tuple(str(number) for number in range(101))

# Numbers that are one token each for a calibrant.
OVER_NUMBERS = Sampling(choices=NUMBERS)

# Several tokens, of which some begin others; an answer that begins another.
OVER_TEXTS = Sampling(choices=("[[A]]", "[[B]]", "yes", "yesno", "yes no"))

OVER_LEADS = Sampling(
    choices=tuple(f" {number}" for number in range(11)),
    leads=("Rating:", "\n- Warmth:"),
)
OVER_ONE_CHOICE = Sampling(choices=("12",))

# A chat that shares no prefix with those of a study.
UNLIKE = [{"role": "system", "content": "7"}, {"role": "user", "content": "How much?"}]


@pytest.fixture(scope="module")
def engine():
    return TransformersEngine(CALIBRANT, batch_size=16)


@pytest.fixture(scope="module")
def chats():
    """Trials from all over the design, so that prompts differ in length and prefix."""
    plan = empathy_gap_trials(load_events("sample", 12))
    every_30th = range(0, len(plan), len(plan) // 30)
    return [plan[number].messages for number in every_30th]


@pytest.fixture(scope="module")
def model():
    return AutoModelForCausalLM.from_pretrained(CALIBRANT, dtype=torch.float32)


@pytest.fixture
def copy(tmp_path):
    """A calibrant whose files a test may change."""
    return shutil.copytree(CALIBRANT, tmp_path / "calibrant")


def texts(replies):
    return [reply.text for reply in replies]


def change_json(file, **values):
    """Set some values of a JSON file."""
    content = json.loads(file.read_text())
    content.update(values)
    file.write_text(json.dumps(content))


# ---- free text -----------------------------------------------------------------------------------


def generate_alone(engine, model, chat, max_tokens):
    """The greedy reply of transformers' own generate."""
    ids = torch.tensor(engine.prompter.batch([chat]))
    with torch.inference_mode():
        written = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=max_tokens,
            do_sample=False,
        )

    reply = written[0, ids.shape[1] :]
    return engine.tokenizer.decode(reply, skip_special_tokens=True)


def test_greedy_replies_are_those_of_plain_generate(engine, chats, model):
    replies = engine.answer(chats, Sampling(max_tokens=12))

    assert texts(replies) == [generate_alone(engine, model, chat, 12) for chat in chats]


def test_tokens_are_counted(engine, chats):
    chats = chats[:20]

    replies = engine.answer(chats, Sampling(max_tokens=12))

    for prompt, reply in zip(engine.prompter.batch(chats), replies, strict=True):
        written = engine.tokenizer.encode(reply.text, add_special_tokens=False)
        assert reply.prompt_tokens == len(prompt)
        assert reply.output_tokens == len(written) + 1  # and the end token
        assert reply.finish_reason == "stop"
    assert any(reply.cached_tokens > 0 for reply in replies)


def test_a_reply_cut_short_says_so(engine, chats):
    replies = engine.answer(chats[:1], Sampling(max_tokens=1))

    assert len(replies) == 1
    assert replies[0].finish_reason == "length"
    assert replies[0].output_tokens == 1


# ---- scored answers ------------------------------------------------------------------------------

OVER = {
    "numbers": OVER_NUMBERS,
    "texts": OVER_TEXTS,
    "leads": OVER_LEADS,
    "one": OVER_ONE_CHOICE,
}
over_each = pytest.mark.parametrize("sampling", OVER.values(), ids=OVER)


@over_each
def test_scores_are_those_of_one_forward_pass_per_choice(sampling, engine, chats, model):
    """Prompts that share a prefix, one that shares none, and the same one twice."""
    mixed = [*chats[:4], UNLIKE, chats[0]]

    replies = engine.answer(mixed, sampling)

    expected = list(slow.replies(engine, model, mixed[:5], sampling))
    expected.append(expected[0])
    for reply, (text, probabilities, mass) in zip(replies, expected, strict=True):
        assert reply.text == text
        assert reply.probabilities == pytest.approx(probabilities, abs=1e-4)
        assert reply.mass == pytest.approx(mass, abs=1e-4)
    assert any(reply.cached_tokens for reply in replies)


@over_each
def test_scores_do_not_depend_on_what_is_asked_beside(sampling, engine, chats):
    mixed = [*chats[:4], UNLIKE, chats[0]]

    together = [reply.probabilities for reply in engine.answer(mixed, sampling)]
    alone = [engine.answer([chat], sampling)[0].probabilities for chat in mixed]

    assert np.array(together) == pytest.approx(np.array(alone), abs=1e-5)


@pytest.mark.parametrize("sampling", [OVER_NUMBERS, OVER_TEXTS, OVER_ONE_CHOICE])
def test_the_prompt_of_a_scored_answer_is_counted_with_its_prefix(sampling, engine, chats):
    replies = engine.answer([*chats[:4], UNLIKE], sampling)

    prompt = engine.prompter.batch([UNLIKE])[0] + engine._token_ids(sampling.leads[0])
    assert replies[4].prompt_tokens == len(prompt)


@over_each
def test_a_prompt_of_one_token_is_scored(sampling, engine):
    replies = engine.complete([[5]], sampling)

    assert len(replies) == 1
    assert sum(replies[0].probabilities) == pytest.approx(len(sampling.leads))


@pytest.mark.parametrize("ending", ["turn", "newline", "any"])
def test_stored_steps_give_the_answers_under_every_rule_of_where_they_end(
    ending, engine, chats, model
):
    """Digit by digit, as most models spell: the calibrant's tokens 1 and 10 are told apart here."""
    sampling = Sampling(choices=("yes", "yesno", "yesnono", "[[A]]"))
    ends = engine._end_tokens
    newlines = engine._endings.newline
    spelling = engine.spelling(sampling)
    assert len(spelling) == 1
    spelt = [tuple(answer) for answer in spelling[""]]
    tree = Tree(spelt)
    assert tree.needs_an_end
    assert [engine.tokenizer.decode([token]).strip("\n") for token in newlines] == [""]

    chats = chats[:3]
    replies = engine.answer(chats, sampling)

    for chat, reply in zip(chats, replies, strict=True):
        steps = tree.split(np.array([reply.steps]))
        probabilities = tree.probabilities(steps, ending)[0]
        greedy = tree.greedy_answers(steps, ending).tolist()

        logits = slow.known(model, engine.prompter.batch([chat])[0], spelt).get
        expected = slow.defined(logits, spelt, ends, newlines, ending)
        expected_greedy = slow.greedy(logits, spelt, ends, newlines, ending)
        assert probabilities == pytest.approx(expected, abs=1e-4)
        assert greedy == [expected_greedy]


def test_the_most_probable_answer_is_the_constrained_greedy_one_and_here_the_free_one(
    engine, chats
):
    """The calibrant's numbers are one token each, and it answers with nothing else."""
    scored = engine.answer(chats, OVER_NUMBERS)
    free = engine.answer(chats, Sampling())

    assert texts(scored) == texts(free)
    assert min(reply.mass[0] for reply in scored) > 0.99


def test_half_precision_gives_nearly_the_same(engine, chats):
    half = TransformersEngine(CALIBRANT, batch_size=16, dtype="bfloat16")
    chats = chats[:8]

    half_replies = half.answer(chats, OVER_NUMBERS)
    replies = engine.answer(chats, OVER_NUMBERS)

    for half_reply, reply in zip(half_replies, replies, strict=True):
        assert sum(half_reply.probabilities) == pytest.approx(1)
        assert half_reply.probabilities == pytest.approx(reply.probabilities, abs=0.1)


def test_a_choice_is_spelt_as_the_tokenizer_spells_it_behind_its_lead(engine, monkeypatch):
    """Some tokenizers put a space of their own before a text that begins."""

    def spell_with_space(text):
        if not text:
            return []
        return [ord(character) for character in "_" + text.replace(" ", "_")]

    monkeypatch.setattr(engine, "_token_ids", spell_with_space)

    spaced_five = tuple(map(ord, "_5"))
    assert engine._tree([" 5"], "a:").spelt == [spaced_five]
    assert engine._tree(["5"], "").spelt == [spaced_five]


def test_choices_that_only_their_lead_makes_alike_are_spelt_alone(engine, monkeypatch):
    monkeypatch.setattr(engine, "_token_ids", lambda text: [len(text)])

    assert engine._tree([" 5", "100"], "a:").spelt == [(2,), (3,)]


@pytest.mark.parametrize("alike", [("5", "5"), ("5", "")])
def test_choices_that_are_spelt_alike_are_one_sentence(alike, engine, chats):
    with pytest.raises(EngineError, match="cannot be scored: every admissible"):
        engine.answer(chats[:1], Sampling(choices=alike))


def test_answers_that_only_an_end_tells_apart_need_one(copy):
    (copy / "generation_config.json").write_text("{}")
    without_end = TransformersEngine(str(copy))

    said = r"the answer 'yes' begins the answer 'yesno', and the model has no token.*eos_token_id"
    with pytest.raises(EngineError, match=said):
        without_end._tree(["no", "yes", "yesno"], "")

    assert without_end._tree(["no", "yes"], "")


# ---- prompts that fail, and runs that stop -------------------------------------------------------


@pytest.mark.parametrize("sampling", [Sampling(max_tokens=3), OVER_NUMBERS, OVER_LEADS])
def test_a_prompt_that_is_too_long_fails_alone(engine, chats, sampling):
    too_long = [chats[0][0], {"role": "user", "content": "50 " * 3000}]
    others = engine.answer(chats[:2], sampling)

    first, failed, last = engine.answer([chats[0], too_long, chats[1]], sampling)

    assert texts([first, last]) == texts(others)
    assert failed.text is None
    assert failed.finish_reason == "failed"
    assert failed.probabilities == ()
    assert re.fullmatch(r"the prompt has 60\d\d tokens, the model takes 204[67]", failed.error)
    assert str(failed.prompt_tokens) in failed.error
    assert engine.answer([too_long], sampling) == [failed]


def number_in_journal(plan, folder, engine, sampling):
    """How many replies stand in the journal alone."""
    store = open_store(folder, plan, engine, sampling, 50)
    with store.writing():
        return len(store.journal().kept)


@pytest.fixture
def one_by_one(monkeypatch):
    """An engine of small batches that is killed at its third; how many prompts each had."""
    engine = TransformersEngine(CALIBRANT, batch_size=1)
    engine.batches = []
    complete = engine.complete

    def count_and_stop(prompts, sampling):
        engine.batches.append(len(prompts))
        if len(engine.batches) == 3:
            raise KeyboardInterrupt
        return complete(prompts, sampling)

    monkeypatch.setattr(engine, "complete", count_and_stop)
    return engine


def test_what_is_answered_is_kept_before_the_shard_is_full(engine, one_by_one, tmp_path):
    """A killed run goes on behind the replies that it had."""
    plan = religion(1)
    largest = BATCHES_PER_THREAD * torch.get_num_threads()
    stopped = tmp_path / "stopped"

    with pytest.raises(KeyboardInterrupt):
        run(plan, stopped, one_by_one, sampling=OVER_NUMBERS)
    kept = number_in_journal(plan, stopped, one_by_one, OVER_NUMBERS)

    assert one_by_one.batches == [largest] * 3
    assert kept == 2 * largest

    completed = run(plan, stopped, one_by_one, sampling=OVER_NUMBERS)
    whole = run(plan, tmp_path / "whole", engine, sampling=OVER_NUMBERS)

    probabilities = choices.probabilities(completed, NUMBERS)
    expected = choices.probabilities(whole, NUMBERS)
    assert sum(one_by_one.batches[3:]) == len(plan) - 2 * largest
    assert number_in_journal(plan, stopped, one_by_one, OVER_NUMBERS) == 0
    assert completed.text.equals(whole.text)
    assert probabilities == pytest.approx(expected, abs=2e-3)  # as stored, of three digits


def test_the_end_tokens_of_the_generation_defaults_are_read(copy):
    change_json(copy / "generation_config.json", eos_token_id=[7, 2])

    assert TransformersEngine(str(copy))._end_tokens == (7, 2)


def test_the_end_tokens_are_found_without_generation_defaults(engine, copy):
    (copy / "generation_config.json").unlink()

    end_tokens = TransformersEngine(str(copy))._end_tokens

    assert end_tokens == engine._end_tokens
    assert end_tokens == (engine.tokenizer.eos_token_id,)


def add_to_template(folder, text):
    """An engine whose template ends a prompt with a text."""
    template = folder / "chat_template.jinja"
    plain = (paths.MODELS / "calibrant" / template.name).read_text()
    template.write_text(f"{plain}{{% if add_generation_prompt %}}{text}{{% endif %}}")
    return TransformersEngine(str(folder))


def test_a_template_that_ends_in_reasoning_gives_no_free_answer(chats, copy):
    thinking = add_to_template(copy, "<think>\n")
    written = thinking.tokenizer.encode("perhaps 72", add_special_tokens=False)

    reply = thinking._reply(written, "length", 9, 0)
    replies = thinking.answer(chats[:3], Sampling(max_tokens=4))

    assert reply.text == ""
    assert reply.reasoning == "perhaps 72"
    assert texts(replies) == ["", "", ""]


def test_reasoning_that_a_template_opens_is_closed_before_scoring(chats, copy):
    chats = chats[:3]

    opened = add_to_template(copy, "<think>\n").answer(chats, OVER_NUMBERS)
    closed = add_to_template(copy, "<think>\n\n</think>\n\n").answer(chats, OVER_NUMBERS)

    for reply, expected in zip(opened, closed, strict=True):
        assert reply.probabilities == pytest.approx(expected.probabilities, abs=1e-4)
        assert reply.mass == pytest.approx(expected.mass, abs=1e-4)


def broken_for(token):
    """An engine whose logits are NaN as soon as the model reads a token."""
    broken = TransformersEngine(CALIBRANT, batch_size=16)

    def spoil(_, given, embedded):
        is_token = given[0] == token
        return embedded.masked_fill(is_token[..., None], torch.nan)

    broken._model.get_input_embeddings().register_forward_hook(spoil)
    return broken


@pytest.mark.parametrize(
    "sampling", [Sampling(), OVER_NUMBERS, OVER_LEADS], ids=["free", "one", "leads"]
)
def test_a_reply_whose_logits_are_not_finite_fails_alone(engine, chats, sampling):
    rare = [{"role": "system", "content": "7"}, {"role": "user", "content": "zebra"}]
    common_tokens = set().union(*engine.prompter.batch(chats))
    rare_tokens = [
        token for token in engine.prompter.batch([rare])[0] if token not in common_tokens
    ]
    mixed = [chats[0], rare, chats[1]]
    expected = engine.answer(mixed, sampling)

    first, failed, last = broken_for(rare_tokens[0]).answer(mixed, sampling)

    assert failed.text is None
    assert failed.finish_reason == "failed"
    assert failed.error == NOT_FINITE
    assert failed.probabilities == ()
    assert first.text == expected[0].text
    assert last.text == expected[2].text


@pytest.mark.parametrize("sampling", [Sampling(), OVER_NUMBERS], ids=["free", "scored"])
def test_a_run_whose_first_batch_is_not_finite_stops_and_stores_nothing(engine, sampling, tmp_path):
    plan = religion(1)
    first_prompt = engine.prompter.batch([plan[0].messages])[0]
    broken = broken_for(first_prompt[0])

    said = r"cannot be asked: the model's logits are not finite .* DTYPE=float32 or bfloat16"
    with pytest.raises(EngineError, match=said) as raised:
        run(plan, tmp_path / "store", broken, sampling=sampling)

    assert "\n" not in str(raised.value)
    assert list((tmp_path / "store").glob("part-*")) == []


def test_a_token_that_a_model_forbids_is_no_failure():
    """Minus infinity is a logit that some models give; the largest logit counts."""
    finite = FiniteLogits()
    first_step = torch.tensor([[1.0, -torch.inf], [torch.nan, 1.0], [torch.inf, 1.0]])
    second_step = torch.tensor([[2.0, 1.0], [2.0, 1.0], [2.0, 1.0]])

    finite(None, first_step)
    finite(None, second_step)

    assert finite.steps() == [[True, True], [False, True], [False, True]]


def look_back(folder, window):
    """An engine whose model looks back so many tokens."""
    change_json(
        folder / "config.json",
        model_type="mistral",
        architectures=["MistralForCausalLM"],
        sliding_window=window,
    )
    return TransformersEngine(str(folder))


def test_a_model_that_looks_back_less_far_than_a_prompt_is_refused(chats, copy):
    near = look_back(copy, 32)

    with pytest.raises(EngineError, match="looks back 32 tokens in some layers"):
        near.answer(chats[:3], OVER_TEXTS)


def test_a_model_that_looks_back_far_enough_is_scored(chats, copy):
    far = look_back(copy, 4096)
    chats = chats[:3]

    replies = far.answer(chats, OVER_TEXTS)

    expected = slow.replies(far, far._model, chats, OVER_TEXTS)
    for reply, (_, probabilities, _) in zip(replies, expected, strict=True):
        assert reply.probabilities == pytest.approx(probabilities, abs=1e-4)


def test_an_end_token_that_is_written_counts_and_has_no_text(engine):
    end = engine.tokenizer.eos_token_id

    reply = engine._ended_reply([1], [end, 5], 0)

    assert reply == Reply("", "stop", 1, 0, 1)


@pytest.mark.parametrize("temperature", [0, 1.5])
def test_a_reply_depends_on_its_seed_and_not_on_its_neighbours(engine, chats, temperature):
    def draw(chats, seed=1):
        sampling = Sampling(temperature=temperature, top_p=0.95, max_tokens=4, seed=seed)
        return texts(engine.answer(chats, sampling))

    together = draw(chats)
    reversed_order = draw(chats[::-1])
    alone = [draw([chat])[0] for chat in chats[:5]]
    with_another_seed = draw(chats, seed=2)

    assert reversed_order == together[::-1]
    assert alone == together[:5]
    assert (with_another_seed == together) == (temperature == 0)


def test_a_closed_engine_loads_again(engine, chats):
    before = engine.answer(chats[:2], Sampling(max_tokens=4))

    engine.close()

    assert "_model" not in vars(engine)
    assert engine.answer(chats[:2], Sampling(max_tokens=4)) == before


# ---- weights and what belongs to them ------------------------------------------------------------

PINNED = [
    "tokenizer.json",
    "tokenizer_config.json",
    "config.json",
    "generation_config.json",
    "chat_template.jinja",
    "model.safetensors",
]


def test_the_identity_names_the_model_its_weights_and_its_precision(engine):
    identity = engine.identity()

    assert Weights(CALIBRANT).identity.items() <= identity.items()
    assert identity["model"] == "calibrant"
    assert identity["dtype"] == "float32"
    assert engine.asks_again is False


@pytest.mark.parametrize("name", PINNED)
def test_the_identity_pins_every_file_that_is_read(name, copy):
    """A tokenizer, a configuration or a default of generation changes replies as weights do."""
    original = Weights(CALIBRANT).identity
    file = copy / name
    content = file.read_bytes()

    file.write_bytes(content + b" ")
    changed = Weights(str(copy)).identity
    file.write_bytes(content)
    restored = Weights(str(copy)).identity

    assert changed["revision"] != original["revision"]
    assert restored == original


def test_the_identity_leaves_out_files_that_are_not_read(copy):
    (copy / "README.md").write_text("another")

    assert Weights(str(copy)).identity == Weights(CALIBRANT).identity


@pytest.mark.parametrize(
    "sampling",
    [Sampling(max_tokens=8), Sampling(temperature=1.0, max_tokens=8)],
    ids=["greedy", "warm"],
)
def test_what_a_model_says_about_its_own_sampling_changes_no_reply(engine, chats, copy, sampling):
    change_json(
        copy / "generation_config.json",
        num_beams=3,
        min_new_tokens=6,
        repetition_penalty=9.0,
        do_sample=True,
    )
    other = TransformersEngine(str(copy), batch_size=16)

    assert other.answer(chats[:10], sampling) == engine.answer(chats[:10], sampling)


def spoil_weights(file, fault):
    """Write weights that lack a tensor, have one more, one of another shape, or end early."""
    tensors = load_file(file)
    name = next(name for name in tensors if "layers.0" in name)
    if fault == "missing":
        del tensors[name]
    elif fault == "unexpected":
        tensors[name.replace("layers.0", "layers.99")] = tensors[name].clone()
    elif fault == "mismatched":
        tensors[name] = torch.zeros(3, 5)

    save_file(tensors, file, {"format": "pt"})
    if fault == "truncated":
        file.write_bytes(file.read_bytes()[:-100])


@pytest.mark.parametrize("fault", ["missing", "unexpected", "mismatched", "truncated"])
def test_weights_that_do_not_fit_are_refused(fault, copy):
    """transformers fills what is missing with random numbers and says so in a log."""
    spoil_weights(copy / "model.safetensors", fault)
    engine = TransformersEngine(str(copy))

    with pytest.raises(EngineError, match=r"cannot be loaded|do not fit") as error:
        engine.answer([[{"role": "user", "content": "?"}]], Sampling())

    said = str(error.value)
    assert "\n" not in said
    if fault != "truncated":
        assert f"{fault} tensor" in said
        assert said.endswith("; fetch them again")
    if fault == "mismatched":
        assert "(found the shape (3, 5), expected (" in said


COMMIT = "0123456789" * 4


@pytest.fixture
def hub_snapshot(tmp_path, monkeypatch):
    """A calibrant in a cache as the hub's client keeps it: each file's bytes under their hash."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    repository = tmp_path / "models--some--calibrant"
    snapshot = repository / "snapshots" / COMMIT
    blobs = repository / "blobs"
    references = repository / "refs"
    for folder in (snapshot, blobs, references):
        folder.mkdir(parents=True)
    (references / "main").write_text(COMMIT)

    for file in Path(CALIBRANT).iterdir():
        content = file.read_bytes()
        if file.suffix == ".safetensors":
            digest = hashlib.sha256(content).hexdigest()
        else:
            as_git_hashes = f"blob {len(content)}\0".encode() + content
            digest = hashlib.sha1(as_git_hashes).hexdigest()
        blob = blobs / digest
        blob.write_bytes(content)
        (snapshot / file.name).symlink_to(blob)

    return snapshot


@pytest.mark.usefixtures("hub_snapshot")
def test_a_model_of_the_hub_answers_as_the_same_model_in_a_folder(engine, chats):
    from_hub = TransformersEngine("some/calibrant")

    assert from_hub.answer(chats[:3], Sampling()) == engine.answer(chats[:3], Sampling())
    assert from_hub.weights.identity == {"model": "some/calibrant", "revision": COMMIT}


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_model_of_the_hub_is_compared_with_its_hashes(name, hub_snapshot):
    blob = (hub_snapshot / name).resolve()
    content = bytearray(blob.read_bytes())
    content[-1] ^= 1
    blob.write_bytes(content)

    with pytest.raises(EngineError, match=rf"{name} has .*, expected .*; delete {blob} and"):
        Weights("some/calibrant")


@pytest.mark.usefixtures("hub_snapshot")
def test_a_file_of_the_hub_that_cannot_be_read_is_not_called_changed(monkeypatch):
    def refuse(path):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(corpora.pooch, "file_hash", refuse)

    with pytest.raises(EngineError, match="safetensors cannot be read: Permission denied; delete "):
        Weights("some/calibrant")


def test_a_tokenizer_alone_needs_no_tensors_of_the_hub(hub_snapshot, monkeypatch):
    """The index of the tensors is there, and the tensors are not fetched."""
    (hub_snapshot / "model.safetensors").unlink()
    asked_for = []

    def fetch(model, allow_patterns):
        asked_for.extend(allow_patterns)
        return str(hub_snapshot)

    monkeypatch.setattr("ingroup.inference.weights.snapshot_download", fetch)

    weights = Weights("some/calibrant", tokenizer_alone=True)

    assert sorted(asked_for) == ["*.jinja", "*.json", "*.model", "*.txt"]
    tokenizer = weights.load(AutoTokenizer.from_pretrained)
    assert tokenizer("One two").input_ids


def write_index(folder, **weight_map):
    """Write which file holds which tensor."""
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))


@pytest.mark.parametrize("name", ["../outside.safetensors", "/tmp/outside.safetensors", "a.bin", 3])
def test_an_index_that_names_a_file_which_the_revision_does_not_cover_is_refused(name, copy):
    (copy.parent / "outside.safetensors").write_bytes(b"")
    (copy / "a.bin").write_bytes(b"")
    write_index(copy, a="model.safetensors", b=name)

    with pytest.raises(EngineError, match=f"names the file {name!r}, expected one of its own"):
        Weights(str(copy))


def test_an_index_that_names_a_file_of_the_revision_is_read(copy):
    (copy / "a.bin").write_bytes(b"")
    write_index(copy, a="model.safetensors")

    Weights(str(copy))


class PanicException(BaseException):
    """As pyo3 names what a tokenizer raises that breaks."""


def panic(*_, **__):
    raise PanicException("index out of bounds\nnote: run with")


def test_a_tokenizer_that_panics_is_one_sentence(chats, monkeypatch, copy):
    broken = TransformersEngine(str(copy))
    said = "the tokenizer of .* broke: index out of bounds; fetch its tokenizer.json again$"

    with pytest.raises(EngineError, match=said):
        broken.weights.load(panic)

    monkeypatch.setattr(broken.prompter, "_batch", panic)
    with pytest.raises(EngineError, match=said):
        broken.answer(chats[:1], Sampling())

    monkeypatch.setattr(broken, "_scored", panic)
    with pytest.raises(EngineError, match=said):
        broken.complete([[1]], OVER_NUMBERS)


def test_a_model_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(EngineError, match="MODELS: found no folder"):
        TransformersEngine(str(tmp_path / "nothing"))
    with pytest.raises(EngineError, match="cannot be loaded, and there is no such folder: "):
        TransformersEngine("nobody/nothing")


# ---- sampling ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong", [{"temperature": -1}, {"top_p": 0}, {"top_p": 1.1}, {"max_tokens": 0}]
)
def test_impossible_sampling_is_refused(wrong):
    with pytest.raises(ValueError, match="sampling needs temperature"):
        Sampling(**wrong)


DRAWS = 4_000
PROBABILITIES = np.array([0.5, 0.3, 0.15, 0.05])


def count_draws(**options):
    """How often each token is drawn, each time with a prompt and so a stream of its own."""
    logits = torch.tensor(np.log(PROBABILITIES), dtype=torch.float32).repeat(DRAWS, 1)
    prompts = [[number] for number in range(DRAWS)]

    draw = GumbelDraw(prompts, Sampling(seed=5, **options), "cpu")

    tokens = draw(None, logits).argmax(-1)
    return np.bincount(tokens, minlength=4)


def p_value(counts, probabilities):
    """How likely such counts are, by a chi-squared test."""
    expected = DRAWS * probabilities / probabilities.sum()
    return stats.chisquare(counts, expected).pvalue


def test_draws_follow_the_probabilities():
    assert p_value(count_draws(temperature=1.0), PROBABILITIES) > 0.01


def test_draws_follow_the_flatter_probabilities_of_a_temperature_of_2():
    assert p_value(count_draws(temperature=2.0), PROBABILITIES**0.5) > 0.01


def test_draws_stay_in_the_nucleus():
    """The first two tokens have a probability of 0.8 together."""
    counts = count_draws(temperature=1.0, top_p=0.7)

    assert counts[2:].sum() == 0
    assert p_value(counts[:2], PROBABILITIES[:2]) > 0.01


def test_a_trial_has_a_seed_of_its_own():
    seeds = set()
    for seed in range(10):
        sampling = Sampling(seed=seed)
        seeds.update(sampling.trial_seed([prompt]) for prompt in range(100))

    assert len(seeds) == 1000
    assert min(seeds) >= 0
    assert max(seeds) < 2**31


# ---- batches and their attention -----------------------------------------------------------------

prompts = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=12), min_size=1, max_size=40)


@given(prompts, st.integers(1, 9), st.integers(1, 9))
def test_batches_hold_every_prompt_once_and_what_they_say_is_shared(prompts, size, least):
    seen = []
    for batch, shared in batches(prompts, size, least):
        seen += batch
        prefix = prompts[batch[0]][:shared]

        assert 1 <= len(batch) <= size
        for number in batch:
            assert len(prompts[number]) > shared
            assert prompts[number][:shared] == prefix

    assert sorted(seen) == list(range(len(prompts)))


@pytest.fixture
def two_personas():
    """Six prompts of each of two personas of eight tokens."""
    return [[persona] * 8 + [event] for persona in (1, 2) for event in range(6)]


@pytest.mark.parametrize("least", [1, 4, 6])
def test_batches_break_between_personas(least, two_personas):
    first, second = batches(two_personas, 8, least)

    assert sorted(first[0]) == [0, 1, 2, 3, 4, 5]
    assert sorted(second[0]) == [6, 7, 8, 9, 10, 11]
    assert first[1] == second[1] == 8


def test_a_batch_that_is_not_large_enough_yet_goes_on_and_shares_nothing(two_personas):
    shared_lengths = [shared for _, shared in batches(two_personas, 8, 7)]

    assert shared_lengths == [0, 8]


def may_attend(is_text, shared, paths, row, column):
    """Whether a text or a node of the tree, by its row, sees a column."""
    length = len(is_text)
    text = column - shared
    if column < shared:
        return True
    if text < length:
        return bool(is_text[text]) and text <= row
    if row < length:
        return False

    above = paths[text - length]
    return paths[row - length][: len(above)] == above


def test_the_attention_mask_is_that_of_a_loop():
    """A text sees the prefix and what stands before it; a node of the tree sees its own path."""
    shared = 2
    is_text = torch.tensor([[True, True, True], [False, True, True]])  # the second is padded
    paths = [(5,), (5, 7), (6,), (6, 7)]
    rows = is_text.shape[1] + len(paths)

    mask = attention_mask(is_text, shared, paths)

    for prompt, row, column in product(range(2), range(rows), range(shared + rows)):
        expected = may_attend(is_text[prompt], shared, paths, row, column)
        assert mask[prompt, row, column] == expected, (prompt, row, column)
