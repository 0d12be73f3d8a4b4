"""Prompts as the model sees them, for templates of all kinds."""

from datetime import date
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from ingroup.inference import chats
from ingroup.inference.answers import EngineError
from ingroup.inference.chats import DAY, Renderer

MODEL = Path(__file__).parent / "model"
CHAT = [{"role": "system", "content": "You are Ada."}, {"role": "user", "content": "I felt joy."}]
TURNS = "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}{% endfor %}"
NO_SYSTEM = (
    "{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('no system') }}"
    "{% endif %}<|{{ m['role'] }}|>{{ m['content'] }}{% endfor %}"
)
DROPS_SYSTEM = (
    "{% for m in messages if m['role'] != 'system' %}<|{{ m['role'] }}|>{{ m['content'] }}"
    "{% endfor %}"
)
IN_PARTS = (
    "{% for m in messages %}<|{{ m['role'] }}|>{% for part in m['content'] %}"
    "{% if part['type'] == 'text' %}{{ part['text'] }}{% endif %}{% endfor %}{% endfor %}"
)
LAST_TURN_CUT = "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'][:8] }}{% endfor %}"


def tokenizer(template=TURNS):
    """Load the small model's tokenizer with another template."""
    loaded = AutoTokenizer.from_pretrained(MODEL)
    loaded.chat_template = template
    return loaded


def prompt(template=TURNS, chat=CHAT, **options):
    """Render a chat, and return the prompt as the model sees it."""
    renderer = Renderer(tokenizer(template), **options)
    return renderer.tokenizer.decode(renderer.token_ids([chat])[0])


@pytest.mark.parametrize("system", ["keep", "fold", "plain"])
def test_prompts_hold_all_turns(system):
    text = prompt(system=system)
    assert "You are Ada." in text
    assert "I felt joy." in text


def test_the_three_ways_of_a_system_turn():
    assert prompt() == "<|system|>You are Ada.<|user|>I felt joy."
    assert prompt(system="fold") == "<|user|>You are Ada.\n\nI felt joy."
    assert prompt(system="plain") == "<s>You are Ada.\nI felt joy."


def test_released_bos_is_added_once_more():
    template = "{{ bos_token }}" + TURNS
    assert prompt(template).startswith("<s><|system|>")
    assert prompt(template, bos="released").startswith("<s><s><|system|>")


@pytest.mark.parametrize("system", ["keep", "fold"])
@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        (IN_PARTS, "leaves out the user's text"),
        (LAST_TURN_CUT, "leaves out the user's text"),
        ("{% for m in messages %}{{ m['content'] ", "cannot be used: TemplateSyntaxError"),
        ("{{ messages[0]['content'].nothing() }}", "cannot be used: UndefinedError"),
        ("{{ raise_exception('only tools') }}", "cannot be used: TemplateError: only tools"),
        (TURNS + "{% set f = '%d' %}{{ strftime_now(f) }}", "reads the clock"),
        (TURNS + "{% set now = strftime_now %}{{ now('%d') }}", "reads the clock"),
        (None, "no chat template"),
    ],
)
def test_templates_that_cannot_be_used_stop_the_run(system, template, sentence):
    with pytest.raises(EngineError, match=sentence):
        Renderer(tokenizer(template), system)


@pytest.mark.parametrize("template", [NO_SYSTEM, DROPS_SYSTEM])
def test_templates_without_a_system_role_need_folding(template):
    with pytest.raises(EngineError, match="has no system role: set SYSTEM=fold"):
        Renderer(tokenizer(template))
    assert prompt(template, system="fold") == "<|user|>You are Ada.\n\nI felt joy."


def test_prompts_that_the_tokenizer_cuts_stop_the_run():
    renderer = Renderer(tokenizer(), "plain")
    renderer.tokenizer.__class__ = _cutting(type(renderer.tokenizer))
    long = [{"role": "user", "content": "I felt joy at the very end of a long story."}]
    with pytest.raises(EngineError, match="lack the text 'I felt joy"):
        renderer.token_ids([long])


def _cutting(kind):
    """Make a class of tokenizers that keep six tokens."""

    class Cutting(kind):
        def __call__(self, texts, **options):
            return {"input_ids": [ids[:6] for ids in super().__call__(texts, **options).input_ids]}

    return Cutting


@pytest.mark.parametrize("style", ["%d %b %Y", "%Y-%m-%d"])
@pytest.mark.parametrize(
    "call", ["strftime_now('{}')", "strftime_now ( '{}' ) if strftime_now is defined else ''"]
)
def test_a_template_that_reads_the_clock_gets_a_fixed_day(style, call, monkeypatch):
    template = f"Today is {{{{ {call.format(style)} }}}}. {TURNS}"
    assert prompt(template).startswith(f"Today is {DAY.strftime(style)}. <|system|>")
    identity = Renderer(tokenizer(template)).identity()
    assert identity["day"] == "2024-07-26"

    monkeypatch.setattr(chats, "DAY", date(2025, 1, 1))
    assert Renderer(tokenizer(template)).identity() != identity
    assert "day" not in Renderer(tokenizer()).identity()


@pytest.mark.parametrize(
    ("switch", "reasoning", "value"),
    [
        ("enable_thinking", "high", True),
        ("enable_thinking", "none", False),
        ("thinking", "high", True),
        ("thinking", "none", False),
        ("skip_thinking", "none", True),
        ("reasoning_effort", "low", "low"),
        ("thinking_budget", "512", 512),
    ],
)
def test_reasoning_sets_the_switch_that_the_template_has(switch, reasoning, value):
    template = TURNS + "{% if " + switch + " is defined %}[{{ " + switch + " }}]{% endif %}"
    renderer = Renderer(tokenizer(template), reasoning=reasoning)
    assert renderer.identity()[switch] == value
    assert prompt(template, reasoning=reasoning).endswith(f"[{value}]")


def test_a_switch_that_opens_a_reasoning_is_known():
    template = TURNS + "{% if thinking is defined and thinking %}<think>\n{% endif %}"
    renderer = Renderer(tokenizer(template), reasoning="high")
    assert renderer.opens_reasoning
    assert "</think>" in renderer.answer_prefix
    assert not Renderer(tokenizer(template), reasoning="none").opens_reasoning


def test_a_template_without_a_switch_is_named(capsys):
    Renderer(tokenizer(), reasoning="high")
    assert "REASONING=high is left out" in capsys.readouterr().err
