"""Chats to token ids: one BOS, or the two of the released script; system turns kept or folded."""

import random
import re
from itertools import product

import pytest
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer

from ingroup import paths
from ingroup.inference import EngineError, prompts
from ingroup.inference.prompts import Prompter, fold_system, split_before_marks, turn_marks
from ingroup.studies.empathy_gap import stimuli

CHAT = stimuli.setting("P0,S0,T0").messages("a Hindu", "a Jew", "fear", "the lift fell")
SYSTEM = CHAT[0]["content"]
USER = CHAT[1]["content"]
WITHOUT_SYSTEM = CHAT[1:]
OTHER_SETTING = stimuli.setting("P1,S1,T0").messages("a Jew", "a Hindu", "joy", "ünï <s> 😀")


@pytest.fixture
def tokenizer():
    return AutoTokenizer.from_pretrained(paths.MODELS / "calibrant")


def encode_one(prompter, chat):
    """The tokens of one chat."""
    prompts_of_batch = prompter.batch([chat])
    assert len(prompts_of_batch) == 1
    return prompts_of_batch[0]


def decode_one(prompter, chat):
    """The text of one chat as the model sees it."""
    return prompter.tokenizer.decode(encode_one(prompter, chat))


def test_a_prompt_starts_with_one_bos(tokenizer):
    ids = encode_one(Prompter(tokenizer), CHAT)

    assert ids[0] == tokenizer.bos_token_id
    assert ids.count(tokenizer.bos_token_id) == 1
    assert tokenizer.decode(ids) == f"<s><|system|>{SYSTEM}<|user|>{USER}<|assistant|>"


def test_the_authors_way_a_prompt_starts_with_two_bos(tokenizer):
    ids = encode_one(Prompter(tokenizer), CHAT)

    released = encode_one(Prompter(tokenizer, bos="released"), CHAT)

    assert released == [tokenizer.bos_token_id, *ids]


@pytest.mark.parametrize(
    ("system", "bos"), [("keep", "template"), ("fold", "template"), ("fold", "released")]
)
def test_many_chats_at_once_are_the_chats_one_by_one(tokenizer, system, bos):
    prompter = Prompter(tokenizer, system, bos)
    chats = [CHAT, OTHER_SETTING, WITHOUT_SYSTEM]

    together = prompter.batch(chats)

    assert together == [encode_one(prompter, chat) for chat in chats]
    assert prompter.batch([]) == []


@pytest.mark.parametrize(
    ("system", "chat"),
    [("keep", OTHER_SETTING), ("fold", fold_system(OTHER_SETTING))],
)
def test_a_prompt_is_what_the_template_makes_of_the_chat(tokenizer, system, chat):
    ids = encode_one(Prompter(tokenizer, system), OTHER_SETTING)

    expected = tokenizer.apply_chat_template(
        chat,
        add_generation_prompt=True,
        return_dict=False,
    )
    assert ids == expected


def test_plain_text_has_no_template_and_one_bos(tokenizer):
    prompter = Prompter(tokenizer, "plain")

    first, second = prompter.batch([CHAT, WITHOUT_SYSTEM])

    assert first == tokenizer(f"{SYSTEM}\n{USER}")["input_ids"]
    assert first == encode_one(prompter, CHAT)
    assert first[0] == tokenizer.bos_token_id
    assert first.count(tokenizer.bos_token_id) == 1
    assert second == tokenizer(USER)["input_ids"]
    assert prompter.batch([]) == []


def test_the_identity_says_that_plain_text_has_no_template(tokenizer):
    with_template = Prompter(tokenizer, "fold").identity()

    plain = Prompter(tokenizer, "plain").identity()

    assert plain["chat_template"] != with_template["chat_template"]
    assert plain["system"] == "plain"


def test_a_model_without_a_template_can_be_asked_plain_text(tokenizer, monkeypatch):
    expected = encode_one(Prompter(tokenizer, "plain"), CHAT)

    monkeypatch.setattr(tokenizer, "chat_template", None)

    assert encode_one(Prompter(tokenizer, "plain"), CHAT) == expected


REFUSES = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}"
    "{{ m.content }}{% endfor %}"
)
DROPS = "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}"


@pytest.mark.parametrize("template", [REFUSES, DROPS])
def test_a_template_without_a_system_role_is_one_sentence(tokenizer, template):
    tokenizer.chat_template = template

    with pytest.raises(EngineError, match="has no system role; set SYSTEM=fold"):
        Prompter(tokenizer)


@pytest.mark.parametrize("template", [REFUSES, DROPS])
def test_a_folded_system_turn_reaches_a_template_without_a_system_role(tokenizer, template):
    tokenizer.chat_template = template

    text = decode_one(Prompter(tokenizer, system="fold"), CHAT)

    assert f"{SYSTEM}\n\n{USER}" in text


def test_no_chat_template_is_one_sentence(tokenizer):
    tokenizer.chat_template = None

    with pytest.raises(EngineError, match="has no chat template; an instruction-tuned model"):
        Prompter(tokenizer)


def test_a_chat_template_that_does_not_end_is_one_sentence(tokenizer, monkeypatch):
    loop = "{% for a in range(2000) %}{% for b in range(2000) %}{% endfor %}{% endfor %}"
    endless = "{% if messages[0].role == 'system' %}" + loop + "{% endif %}"
    tokenizer.chat_template = endless + tokenizer.chat_template
    monkeypatch.setattr(prompts, "RENDER_SECONDS", 1e-3)

    with pytest.raises(EngineError, match="does not render a chat of three words within"):
        Prompter(tokenizer)


def test_folding_leaves_a_chat_without_a_system_turn_alone():
    chat = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]

    assert fold_system(chat) == chat
    assert fold_system(chat[:1]) == chat[:1]


def test_the_identity_follows_template_and_options(tokenizer):
    default = Prompter(tokenizer).identity()
    released = Prompter(tokenizer, bos="released").identity()
    tokenizer.chat_template += " "
    with_another_template = Prompter(tokenizer).identity()

    assert default["system"] == "keep"
    assert default["bos"] == "template"
    assert released != default
    assert with_another_template["chat_template"] != default["chat_template"]


CONTENTS = "{% for m in messages %}{{ m.content }}{% endfor %}<|assistant|>"
SWITCH = (
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n"
    "{% else %}<think>\n{% endif %}"
)


def test_a_template_that_opens_the_reasoning_is_noticed(tokenizer, monkeypatch):
    monkeypatch.setattr(tokenizer, "chat_template", CONTENTS + "<think>\n")

    prompter = Prompter(tokenizer)

    assert prompter.opens_reasoning
    assert prompter.answer_prefix == "\n</think>\n\n"
    assert prompter.identity()["answer_prefix"] == "\n</think>\n\n"


@pytest.mark.parametrize("options", [{}, {"reasoning": "high"}])
def test_a_template_with_a_switch_opens_the_reasoning(tokenizer, monkeypatch, options):
    monkeypatch.setattr(tokenizer, "chat_template", CONTENTS + SWITCH)

    assert Prompter(tokenizer, **options).opens_reasoning


def test_a_template_with_a_switch_can_be_asked_for_no_reasoning(tokenizer, monkeypatch):
    monkeypatch.setattr(tokenizer, "chat_template", CONTENTS + SWITCH)

    prompter = Prompter(tokenizer, reasoning="none")

    assert not prompter.opens_reasoning
    assert prompter.answer_prefix == ""
    assert prompter.identity()["enable_thinking"] == "False"
    assert "</think>" in decode_one(prompter, CHAT)


def test_a_template_without_a_switch_is_used_as_it_is_and_a_line_says_so(tokenizer, capsys):
    default = Prompter(tokenizer)
    with_reasoning = Prompter(tokenizer, reasoning="high")

    assert capsys.readouterr().err.startswith("REASONING=high is left out for calibrant")
    assert with_reasoning.batch([CHAT]) == default.batch([CHAT])
    assert with_reasoning.identity() == default.identity()


@pytest.mark.parametrize(
    ("options", "effort"), [({"reasoning": "low"}, "low"), ({}, "medium")], ids=["low", "default"]
)
def test_the_effort_reaches_a_template_that_asks_for_it(tokenizer, monkeypatch, options, effort):
    template = "Reasoning: {{ reasoning_effort | default('medium') }}. "
    monkeypatch.setattr(tokenizer, "chat_template", template + CONTENTS)

    text = decode_one(Prompter(tokenizer, **options), CHAT)

    assert f"Reasoning: {effort}." in text


PERSONAS = ["a Hindu", "a Jew", "a Muslim", "a Christian", "a Buddhist", "a person"]
EVENTS = ["the lift fell", "it rained", "we won", "she left", "he <|user|> came", "no one"]


@pytest.fixture
def crossed():
    """Six personas and six events: 36 prompts."""
    setting = stimuli.setting("P0,S0,T0")
    pairs = product(PERSONAS, EVENTS)
    return [setting.messages(persona, "a Jew", "joy", event) for persona, event in pairs]


@pytest.fixture
def recording(tokenizer, monkeypatch):
    """A prompter that keeps which texts it encoded."""
    prompter = Prompter(tokenizer)
    prompter.encoded = []
    encode = prompter._encode

    def encode_and_keep(texts, special):
        prompter.encoded.extend(texts)
        return encode(texts, special)

    monkeypatch.setattr(prompter, "_encode", encode_and_keep)
    return prompter


@pytest.fixture
def whole(tokenizer, recording, crossed):
    """The tokens of each prompt, encoded as a whole."""
    texts = recording._render(crossed)
    return [tokenizer.encode(text, add_special_tokens=False) for text in texts]


def test_a_turn_that_chats_share_is_encoded_once(recording, crossed, whole):
    """The turns are those of six personas and six events, and the marks."""
    ids = recording.batch(crossed)

    encoded = recording.encoded
    system_turns = [text for text in encoded if "<|system|>" in text]
    user_turns = [text for text in encoded if "experiencing" in text]
    assert ids == whole
    assert len(encoded) == len(set(encoded))
    assert len(system_turns) == 6
    assert len(user_turns) == 6


def test_turns_of_the_batch_before_are_not_encoded_again(recording, crossed, whole):
    recording.batch(crossed)
    recording.encoded.clear()

    assert recording.batch(crossed[1:]) == whole[1:]
    assert recording.encoded == []


def test_a_new_turn_alone_is_encoded(recording, crossed, whole):
    recording.batch(crossed)
    recording.encoded.clear()
    new_turn = {"role": "user", "content": "experiencing something else"}
    new_chat = [crossed[0][0], new_turn]

    ids = recording.batch([new_chat, *crossed[1:]])

    assert ids[1:] == whole[1:]
    assert len(recording.encoded) == 1


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


def add_marks(tokenizer, number, rng):
    """Add some tokens with flags of their own; gives the marks where texts may be cut."""
    for content in rng.sample(ADDED, number):
        flags = {"normalized": False} | rng.choice(FLAGS)
        tokenizer.add_special_tokens([AddedToken(content, **flags)])

    tokens = tokenizer.get_added_tokens_decoder().values()
    return turn_marks(tokens, " ".join(["", *ADDED]))


def encode(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("pre_tokenizer", PRE_TOKENIZERS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("model", MODELS, ids=lambda one: one[0].__name__)
def test_a_text_cut_before_its_marks_has_the_ids_of_the_whole(model, pre_tokenizer):
    """Tokenizers of every kind, with added tokens that look around and overlap."""
    rng = random.Random(0)
    cuts = 0

    for normalizer, number, _ in product(NORMALIZERS, (1, 2, 3, 6, 8), range(5)):
        tokenizer = trained(model, normalizer, pre_tokenizer)
        marks = add_marks(tokenizer, number, rng)
        pattern = re.compile("|".join(map(re.escape, marks)))

        for _ in range(20 if marks else 0):
            text = "".join(rng.choices([*ADDED, *OTHERS], k=12))
            parts = split_before_marks(text, pattern)
            cuts += len(parts) - 1

            ids_of_parts = []
            for part in parts:
                ids_of_parts += encode(tokenizer, part)
            assert ids_of_parts == encode(tokenizer, text), (text, marks)

    assert cuts > 100
