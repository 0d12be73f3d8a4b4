"""Chats to token ids: one BOS, or the two of the released script; system turns kept or folded."""

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from ingroup import paths, stimuli
from ingroup.inference import EngineError
from ingroup.inference.prompts import Prompter, fold_system

CHAT = stimuli.setting("P0,S0,T0").messages("a Hindu", "a Jew", "fear", "the lift fell")


@pytest.fixture
def tokenizer():
    return AutoTokenizer.from_pretrained(paths.MODELS / "calibrant")


def test_a_llama_style_prompt_starts_with_exactly_one_bos(tokenizer):
    ids = Prompter(tokenizer).ids(CHAT)
    assert ids[0] == tokenizer.bos_token_id
    assert ids.count(tokenizer.bos_token_id) == 1


def test_the_authors_way_gives_two(tokenizer):
    ids = Prompter(tokenizer, bos="authors").ids(CHAT)
    assert ids[:2] == [tokenizer.bos_token_id] * 2
    assert ids[1:] == Prompter(tokenizer).ids(CHAT)


@pytest.mark.parametrize(
    ("system", "bos"), [("keep", "template"), ("fold", "template"), ("fold", "authors")]
)
def test_many_chats_at_once_are_the_chats_one_by_one(tokenizer, system, bos):
    setting = stimuli.setting("P1,S1,T0")
    chats = [CHAT, setting.messages("a Jew", "a Hindu", "joy", "ünï <s> 😀"), CHAT[1:]]
    prompter = Prompter(tokenizer, system, bos)
    assert prompter.batch(chats) == [prompter.ids(chat) for chat in chats]
    assert prompter.batch([]) == []
    if bos == "template":
        assert prompter.batch(chats[1:2])[0] == tokenizer.apply_chat_template(
            fold_system(chats[1]) if system == "fold" else chats[1],
            add_generation_prompt=True,
            return_dict=False,
        )


def test_turns_are_remembered_and_a_tokenizer_that_marks_the_first_word_is_found_out(tokenizer):
    """Metaspace with "first" puts its mark before the first word of a text alone, so a turn by
    itself has another first token than behind a special token."""
    prompter = Prompter(tokenizer)
    chats = [stimuli.setting("P0,S0,T0").messages("a Jew", x, "joy", "x") for x in ("a Hindu",) * 5]
    whole = [prompter.ids(chat) for chat in chats]
    assert prompter.batch(chats) == whole
    assert prompter._turns is not None
    assert len(prompter._known) == 3 + 1 + 2  # role marks, BOS, two turns
    marked = Tokenizer(models.WordLevel({"▁a": 3, "a": 4, "b": 5, "<u>": 0}, unk_token="<u>"))
    marked.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    other = PreTrainedTokenizerFast(
        tokenizer_object=marked, unk_token="<u>", additional_special_tokens=["<|m|>"]
    )
    other.chat_template = "{% for m in messages %}{{ '<|m|>' + m['content'] }}{% endfor %}"
    prompter = Prompter(other)
    chats = [[{"role": "user", "content": "a"}]] * 3
    texts = ["<|m|>a"] * 3
    assert prompter.batch(chats) == other(texts, add_special_tokens=False)["input_ids"]
    assert prompter._turns is None


def test_ids_read_back_as_the_chat(tokenizer):
    text = tokenizer.decode(Prompter(tokenizer).ids(CHAT))
    system, user = (message["content"] for message in CHAT)
    assert text == f"<s><|system|>{system}<|user|>{user}<|assistant|>"


REFUSES = "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}"
REFUSES += "{{ m.content }}{% endfor %}"
DROPS = "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}"


@pytest.mark.parametrize("template", [REFUSES, DROPS])
def test_a_template_without_a_system_role_is_one_sentence(tokenizer, template):
    tokenizer.chat_template = template
    with pytest.raises(EngineError, match="has no system role; set SYSTEM=fold"):
        Prompter(tokenizer)
    text = tokenizer.decode(Prompter(tokenizer, system="fold").ids(CHAT))
    assert CHAT[0]["content"] + "\n\n" + CHAT[1]["content"] in text


def test_a_model_without_a_chat_template_is_one_sentence(tokenizer):
    tokenizer.chat_template = None
    with pytest.raises(EngineError, match="has no chat template; an instruction-tuned model"):
        Prompter(tokenizer)


def test_folding_leaves_a_chat_without_a_system_turn_alone():
    chat = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    assert fold_system(chat) == chat
    assert fold_system(chat[:1]) == chat[:1]


def test_the_identity_follows_template_and_options(tokenizer):
    plain = Prompter(tokenizer).identity()
    assert (plain["system"], plain["bos"]) == ("keep", "template")
    assert Prompter(tokenizer, bos="authors").identity() != plain
    tokenizer.chat_template += " "
    assert Prompter(tokenizer).identity()["chat_template"] != plain["chat_template"]
