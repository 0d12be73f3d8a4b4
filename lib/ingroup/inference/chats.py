"""Chats as token ids, through a model's own chat template."""

import hashlib
import re
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any, Literal

from transformers import PreTrainedTokenizerBase

from ingroup.inference.answers import Chat, EngineError, Message
from ingroup.inference.reasoning import text_before_answer

SystemRole = Literal["keep", "fold", "plain"]
Bos = Literal["template", "released"]

DAY = date(2024, 7, 26)  # for templates that write the day, so that prompts stay the same
_CLOCK = re.compile(r"strftime_now\s*\(\s*(['\"])(.*?)\1\s*\)")
_PROBE = [{"role": "system", "content": "SYSTEM PROBE"}, {"role": "user", "content": "USER PROBE"}]

# Arguments by which templates set the reasoning, as of 2026.
ON_SWITCHES = ("enable_thinking", "thinking", "think", "enable_reasoning", "reasoning")
OFF_SWITCHES = ("skip_thinking", "disable_thinking")
EFFORTS = ("reasoning_effort", "thinking_effort")
BUDGETS = ("thinking_budget", "reasoning_budget")


def fold_system(chat: Chat) -> list[Message]:
    """Put a system turn before the first user turn, with a blank line between.

    Parameters
    ----------
    chat : sequence of Message
        The turns.

    Returns
    -------
    list of Message
        The chat with one turn less. A chat without a system turn is unchanged.
    """
    if [turn["role"] for turn in chat[:2]] != ["system", "user"]:
        return list(chat)
    content = f"{chat[0]['content']}\n\n{chat[1]['content']}"
    return [{"role": "user", "content": content}, *chat[2:]]


class Renderer:
    """The chats of one model as token ids.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
        The model's tokenizer.
    system : {"keep", "fold", "plain"}
        "keep" gives the template a system turn, "fold" puts it into the user turn, and "plain"
        takes the turns, one to a line, without a template (Wang et al.).
    bos : {"template", "released"}
        "released" lets the tokenizer add its special tokens once more (Hou et al.).
    reasoning : str
        `Sampling.reasoning`, for templates that have a switch.

    Attributes
    ----------
    answer_prefix : str
        The text that ends the reasoning before a scored answer, "" where the prompt opens none.
    opens_reasoning : bool
        Whether a prompt ends inside the reasoning.

    Raises
    ------
    EngineError
        The template is missing, breaks, leaves out the user's text, or loses the system turn that
        "keep" gives it.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        system: SystemRole = "keep",
        bos: Bos = "template",
        reasoning: str = "",
    ):
        self.tokenizer = tokenizer
        self.name = Path(tokenizer.name_or_path).name
        self.system = system
        self.bos = bos
        self.template = ""
        self.reads_clock = False
        self.switches: dict[str, Any] = {}
        self.answer_prefix = ""
        self.opens_reasoning = False
        self._is_checked = False
        if system == "plain":
            return

        if not tokenizer.chat_template:
            raise EngineError(f"{self.name} has no chat template: take an instruction-tuned model")
        self.template = self._without_clock(tokenizer.get_chat_template())
        self._check_template()
        if reasoning:
            self.switches = self._find_switches(reasoning)

        probe = self._render(_PROBE)
        self.answer_prefix = text_before_answer(probe)
        self.opens_reasoning = self.answer_prefix.startswith("\n")

    def _without_clock(self, template: str) -> str:
        """Write `DAY` into a template that reads the clock, so that prompts stay the same."""
        fixed = _CLOCK.sub(lambda call: repr(DAY.strftime(call[2])), template)
        if re.search(r"strftime_now(?!\s+is )", fixed):
            raise EngineError(f"the chat template of {self.name} reads the clock: use SYSTEM=plain")
        self.reads_clock = fixed != template
        return fixed

    def _check_template(self) -> None:
        """Render a probe. Raise an EngineError if a turn of it is lost."""
        template = f"the chat template of {self.name}"
        try:
            text = self._render(_PROBE)
        except Exception as error:  # a template raises what it likes
            if self.system == "keep" and self._takes_user_turn():
                raise EngineError(f"{template} has no system role: set SYSTEM=fold") from error
            reason = f"{type(error).__name__}: {error}".split("\n")[0]
            raise EngineError(f"{template} cannot be used: {reason}") from error

        system, user = _PROBE
        if user["content"] not in text:
            raise EngineError(f"{template} leaves out the user's text: use SYSTEM=plain")
        if system["content"] not in text:
            raise EngineError(f"{template} has no system role: set SYSTEM=fold")

    def _takes_user_turn(self) -> bool:
        """Tell whether the template renders a chat without a system turn."""
        try:
            return _PROBE[1]["content"] in self._render(_PROBE[1:])
        except Exception:  # a template raises what it likes
            return False

    def _find_switches(self, reasoning: str) -> dict[str, Any]:
        """Find the template's arguments that set the reasoning: those that change the probe."""
        wanted = dict.fromkeys(ON_SWITCHES, reasoning != "none")
        wanted |= dict.fromkeys(OFF_SWITCHES, reasoning == "none")
        if reasoning.isdigit():
            wanted |= dict.fromkeys(BUDGETS, int(reasoning))
        elif reasoning != "none" or re.search(r"['\"]none['\"]", self.template):
            wanted |= dict.fromkeys(EFFORTS, reasoning)

        switches = {name: value for name, value in wanted.items() if self._reads(name)}
        if not switches:
            message = (
                f"REASONING={reasoning} is left out: the template of {self.name} has no switch"
            )
            print(message, file=sys.stderr)
        return switches

    def _reads(self, name: str) -> bool:
        """Tell whether an argument changes what the template renders."""
        usual = self._render(_PROBE)
        for value in (True, False, "low", "high", 0, 1024):
            try:
                if self._render(_PROBE, **{name: value}) != usual:
                    return True
            except Exception:  # a template may refuse a value that it reads
                return True
        return False

    def _render(self, chat: Chat, **switches: Any) -> str:
        """Render one chat as a text."""
        if self.system == "plain":
            return "\n".join(turn["content"] for turn in chat)
        return self.tokenizer.apply_chat_template(
            fold_system(chat) if self.system == "fold" else list(chat),
            chat_template=self.template,
            tokenize=False,
            add_generation_prompt=True,
            **{**self.switches, **switches},
        )

    def token_ids(self, chats: Sequence[Chat]) -> list[list[int]]:
        """Render chats as token ids.

        Parameters
        ----------
        chats : sequence of chat
            The chats.

        Returns
        -------
        list of list of int
            One prompt for each chat.

        Raises
        ------
        EngineError
            The first prompt does not hold the text of its user turn.
        """
        special = self.bos == "released" or self.system == "plain"
        texts = [self._render(chat) for chat in chats]
        prompts = self.tokenizer(texts, add_special_tokens=special)["input_ids"]
        if not self._is_checked:
            self._check_prompt(chats[0], prompts[0])
        return prompts

    def _check_prompt(self, chat: Chat, prompt: list[int]) -> None:
        """Raise an EngineError if a prompt, as the model sees it, lacks the text of a turn."""
        seen = _letters(self.tokenizer.decode(prompt))
        for turn in chat:
            if _letters(turn["content"]) not in seen:
                raise EngineError(
                    f"the prompts of {self.name} lack the text {turn['content'][:60]!r}: check its "
                    "chat template and its tokenizer"
                )
        self._is_checked = True

    def identity(self) -> dict[str, Any]:
        """Name the settings of the rendering that can change a reply.

        Returns
        -------
        dict
            Entries of a store's manifest.
        """
        identity = {
            "chat_template": hashlib.sha256(self.template.encode()).hexdigest()[:16],
            "system": self.system,
            "bos": self.bos,
        }
        if self.reads_clock:
            identity["day"] = DAY.isoformat()
        return identity | self.switches


def _letters(text: str) -> str:
    """Leave out spaces and case, which tokenizers may change."""
    return "".join(text.split()).lower()
