"""Chats to token ids: one BOS, or the two of the released script; system turns kept or folded."""

import random
import re
from itertools import chain, product

import pytest
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer

from ingroup import paths
from ingroup.inference import EngineError, prompts
from ingroup.inference.prompts import Prompter, cut, fold_system, turn_marks
from ingroup.studies.empathy_gap import stimuli

CHAT = stimuli.setting("P0,S0,T0").messages("a Hindu", "a Jew", "fear", "the lift fell")
SYSTEM, USER = (message["content"] for message in CHAT)


@pytest.fixture
def tokenizer():
    return AutoTokenizer.from_pretrained(paths.MODELS / "calibrant")


def test_a_prompt_starts_with_one_bos_and_with_two_the_authors_way(tokenizer):
    ids, bos = Prompter(tokenizer).batch([CHAT])[0], tokenizer.bos_token_id
    assert (ids[0], ids.count(bos)) == (bos, 1)
    assert Prompter(tokenizer, bos="released").batch([CHAT])[0] == [bos, *ids]
    assert tokenizer.decode(ids) == f"<s><|system|>{SYSTEM}<|user|>{USER}<|assistant|>"


@pytest.mark.parametrize(
    ("system", "bos"), [("keep", "template"), ("fold", "template"), ("fold", "released")]
)
def test_many_chats_at_once_are_the_chats_one_by_one(tokenizer, system, bos):
    setting = stimuli.setting("P1,S1,T0")
    chats = [CHAT, setting.messages("a Jew", "a Hindu", "joy", "ünï <s> 😀"), CHAT[1:]]
    prompter = Prompter(tokenizer, system, bos)
    assert prompter.batch(chats) == [prompter.batch([chat])[0] for chat in chats]
    assert prompter.batch([]) == []
    if bos == "template":
        assert prompter.batch(chats[1:2])[0] == tokenizer.apply_chat_template(
            fold_system(chats[1]) if system == "fold" else chats[1],
            add_generation_prompt=True,
            return_dict=False,
        )


def test_plain_text_has_no_template_and_one_bos(tokenizer, monkeypatch):
    """A model without a template can be asked so; the identity says that none was used."""
    prompter = Prompter(tokenizer, "plain")
    ids = tokenizer(f"{SYSTEM}\n{USER}")["input_ids"]
    assert prompter.batch([CHAT])[0] == ids
    assert (ids[0], ids.count(tokenizer.bos_token_id)) == (tokenizer.bos_token_id, 1)
    assert prompter.batch([CHAT, CHAT[1:]])[1] == tokenizer(USER)["input_ids"]
    assert prompter.batch([]) == []
    used, none = Prompter(tokenizer, "fold").identity(), prompter.identity()
    assert used["chat_template"] != none["chat_template"]
    assert none["system"] == "plain"
    monkeypatch.setattr(tokenizer, "chat_template", None)
    assert Prompter(tokenizer, "plain").batch([CHAT])[0] == ids


REFUSES = "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}"
REFUSES += "{{ m.content }}{% endfor %}"
DROPS = "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}"


@pytest.mark.parametrize("template", [REFUSES, DROPS])
def test_a_template_without_a_system_role_is_one_sentence(tokenizer, template):
    tokenizer.chat_template = template
    with pytest.raises(EngineError, match="has no system role; set SYSTEM=fold"):
        Prompter(tokenizer)
    text = tokenizer.decode(Prompter(tokenizer, system="fold").batch([CHAT])[0])
    assert f"{SYSTEM}\n\n{USER}" in text


def test_no_chat_template_or_one_that_does_not_end_is_one_sentence(tokenizer, monkeypatch):
    loop = "{% for a in range(2000) %}{% for b in range(2000) %}{% endfor %}{% endfor %}"
    asked = "{% if messages[0].role == 'system' %}" + loop + "{% endif %}"
    endless, tokenizer.chat_template = asked + tokenizer.chat_template, None
    with pytest.raises(EngineError, match="has no chat template; an instruction-tuned model"):
        Prompter(tokenizer)
    tokenizer.chat_template = endless
    monkeypatch.setattr(prompts, "LONGEST", 1e-3)
    with pytest.raises(EngineError, match="does not render a chat of three words within"):
        Prompter(tokenizer)


def test_folding_leaves_a_chat_without_a_system_turn_alone():
    chat = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    assert fold_system(chat) == chat
    assert fold_system(chat[:1]) == chat[:1]


def test_the_identity_follows_template_and_options(tokenizer):
    plain = Prompter(tokenizer).identity()
    assert (plain["system"], plain["bos"]) == ("keep", "template")
    assert Prompter(tokenizer, bos="released").identity() != plain
    tokenizer.chat_template += " "
    assert Prompter(tokenizer).identity()["chat_template"] != plain["chat_template"]


THINKS = "{% for m in messages %}{{ m.content }}{% endfor %}<|assistant|>"
SWITCH = "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n"
SWITCH += "{% else %}<think>\n{% endif %}"


def test_a_template_that_opens_the_reasoning_is_noticed_and_can_be_switched(tokenizer, monkeypatch):
    monkeypatch.setattr(tokenizer, "chat_template", THINKS + "<think>\n")
    opened = Prompter(tokenizer)
    assert opened.opens_reasoning
    assert opened.answer_prefix == opened.identity()["answer_prefix"] == "\n</think>\n\n"

    monkeypatch.setattr(tokenizer, "chat_template", THINKS + SWITCH)
    assert Prompter(tokenizer).opens_reasoning
    assert Prompter(tokenizer, reasoning="high").opens_reasoning
    off = Prompter(tokenizer, reasoning="none")
    assert not off.opens_reasoning
    assert off.answer_prefix == ""
    assert off.identity()["enable_thinking"] == "False"
    assert "</think>" in tokenizer.decode(off.batch([CHAT])[0])


def test_a_template_without_a_switch_is_used_as_it_is_and_a_line_says_so(tokenizer, capsys):
    plain, asked = Prompter(tokenizer), Prompter(tokenizer, reasoning="high")
    assert capsys.readouterr().err.startswith("REASONING=high is left out for calibrant")
    assert asked.batch([CHAT]) == plain.batch([CHAT])
    assert asked.identity() == plain.identity()


def test_the_effort_reaches_a_template_that_asks_for_one(tokenizer, monkeypatch):
    effort = "Reasoning: {{ reasoning_effort | default('medium') }}. "
    monkeypatch.setattr(tokenizer, "chat_template", effort + THINKS)
    assert "Reasoning: low." in tokenizer.decode(
        Prompter(tokenizer, reasoning="low").batch([CHAT])[0]
    )
    assert "Reasoning: medium." in tokenizer.decode(Prompter(tokenizer).batch([CHAT])[0])


def test_a_turn_that_chats_share_is_encoded_once(tokenizer, monkeypatch):
    """Six personas and six events are 36 prompts, whose turns are those twelve and the marks."""
    setting = stimuli.setting("P0,S0,T0")
    people = ["a Hindu", "a Jew", "a Muslim", "a Christian", "a Buddhist", "a person"]
    events = ["the lift fell", "it rained", "we won", "she left", "he <|user|> came", "no one"]
    chats = [setting.messages(one, "a Jew", "joy", event) for one in people for event in events]
    prompter = Prompter(tokenizer)
    whole = [tokenizer.encode(text, add_special_tokens=False) for text in prompter._rendered(chats)]
    encoded = []
    encode = prompter._encoded

    def recorded(texts, special):
        encoded.extend(texts)
        return encode(texts, special)

    monkeypatch.setattr(prompter, "_encoded", recorded)
    assert prompter.batch(chats) == whole
    assert len(encoded) == len(set(encoded))
    systems = [text for text in encoded if "<|system|>" in text]
    users = [text for text in encoded if "experiencing" in text]
    assert (len(systems), len(users)) == (6, 6)

    encoded.clear()
    shifted = chats[1:]
    assert prompter.batch(shifted) == whole[1:]
    assert encoded == []  # turns of the batch before are known
    another = [*chats[0][:1], {"role": "user", "content": "experiencing something else"}]
    assert prompter.batch([another, *chats[1:]])[1:] == whole[1:]
    assert len(encoded) == 1


NORMALIZERS = [
    normalizers.Sequence([]),
    normalizers.Prepend("▁"),
    normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase(), normalizers.Strip()]),
    normalizers.Replace(" ", "▁"),
]
PRE_TOKENIZERS = [
    pre_tokenizers.Sequence([]),
    pre_tokenizers.ByteLevel(add_prefix_space=True),
    pre_tokenizers.Metaspace(prepend_scheme="first"),
    pre_tokenizers.Metaspace(prepend_scheme="always"),
    pre_tokenizers.BertPreTokenizer(),
]
UNKNOWN = "[UNK]"
MODELS = [
    (models.BPE, trainers.BpeTrainer, {}),
    (models.Unigram, trainers.UnigramTrainer, {"unk_token": UNKNOWN}),
    (models.WordPiece, trainers.WordPieceTrainer, {}),
]
FLAGS = [{}, {"rstrip": True}, {"lstrip": True}, {"single_word": True}, {"normalized": True}]
# From the fourth on they overlap each other, or one of the first.
ADDED = ["<|user|>", "<|end|>", "[INST]", "|user|><", "<<", "<|user|>a", "ba<|e", "word"]
OTHERS = ["word", "ab", "a", "ba", "<", "<|", "|>", "[", "]", " ", "  ", "\n", "ﬁ É", "_"]


def trained(model, normalizer, pre_tokenizer):
    """A tokenizer of eighty tokens."""
    kind, trainer, options = model
    tokenizer = Tokenizer(kind())
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    trainer = trainer(vocab_size=80, special_tokens=[UNKNOWN], show_progress=False, **options)
    tokenizer.train_from_iterator(["ab word a bab ﬁ É _ <| |> [ ] user end inst"] * 9, trainer)
    return tokenizer


@pytest.mark.parametrize("pre_tokenizer", PRE_TOKENIZERS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("model", MODELS, ids=lambda one: one[0].__name__)
def test_a_text_cut_before_its_marks_has_the_ids_of_the_whole(model, pre_tokenizer):
    """Tokenizers of every kind, with added tokens that look around and overlap."""
    rng = random.Random(0)
    cuts = 0
    for normalizer, number, _ in product(NORMALIZERS, (1, 2, 3, 6, 8), range(5)):
        tokenizer = trained(model, normalizer, pre_tokenizer)
        for content in rng.sample(ADDED, number):
            flags = {"normalized": False} | rng.choice(FLAGS)
            tokenizer.add_special_tokens([AddedToken(content, **flags)])

        tokens = tokenizer.get_added_tokens_decoder().values()
        marks = turn_marks(tokens, " ".join(["", *ADDED]))
        pattern = re.compile("|".join(map(re.escape, marks)))
        for _ in range(20 if marks else 0):
            text = "".join(rng.choices([*ADDED, *OTHERS], k=12))
            parts = cut(text, pattern)
            cuts += len(parts) - 1
            encoded = [tokenizer.encode(part, add_special_tokens=False).ids for part in parts]
            whole = tokenizer.encode(text, add_special_tokens=False).ids
            assert list(chain.from_iterable(encoded)) == whole, (text, marks)
    assert cuts > 100
