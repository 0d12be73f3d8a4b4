"""Chats to token ids, through the model's own chat template."""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from jinja2 import TemplateError

from ingroup.inference.engine import EngineError
from ingroup.stimuli import Message

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SystemRole = Literal["keep", "fold"]
Bos = Literal["template", "authors"]

_PROBE = [
    {"role": "system", "content": "INGROUP SYSTEM PROBE"},
    {"role": "user", "content": "INGROUP USER PROBE"},
]


def fold_system(messages: Sequence[Message]) -> list[Message]:
    """The same chat with the system turn put before the first user turn, a blank line between."""
    if [message["role"] for message in messages[:2]] != ["system", "user"]:
        return list(messages)
    system, user, *rest = messages
    return [{"role": "user", "content": f"{system['content']}\n\n{user['content']}"}, *rest]


class Prompter:
    """Renders chats for one tokenizer.

    Parameters
    ----------
    tokenizer : transformers.PreTrainedTokenizerBase
        With a chat template.
    system : {"keep", "fold"}
        What happens to the system turn. "keep" needs a template that has a system role.
    bos : {"template", "authors"}
        "template" gives exactly the ids of the chat template, so one BOS. "authors" renders to
        text and lets the tokenizer add its special tokens once more, as the released script of
        Hou et al. did: models with a BOS token then get it twice.

    Raises
    ------
    EngineError
        Without a chat template, or where "keep" meets a template that refuses or drops the system
        turn.
    """

    def __init__(
        self,
        tokenizer: "PreTrainedTokenizerBase",
        system: SystemRole = "keep",
        bos: Bos = "template",
    ):
        self.tokenizer, self.system, self.bos = tokenizer, system, bos
        if tokenizer.chat_template is None:
            raise EngineError(
                f"{tokenizer.name_or_path} has no chat template; an instruction-tuned model is "
                "needed (its name often ends in -Instruct or -it)"
            )
        if system == "keep" and not self._has_system_role():
            raise EngineError(
                f"the chat template of {tokenizer.name_or_path} has no system role; set "
                "SYSTEM=fold to put the persona before the task in the user turn"
            )

    def _has_system_role(self) -> bool:
        try:
            text = self.tokenizer.apply_chat_template(_PROBE, tokenize=False)
        except TemplateError:
            return False
        return all(message["content"] in text for message in _PROBE)

    def ids(self, messages: Sequence[Message]) -> list[int]:
        """Token ids of a chat, ready for the model to answer."""
        return self.batch([messages])[0]

    def batch(self, conversations: Sequence[Sequence[Message]]) -> list[list[int]]:
        """:meth:`ids` of many chats: in one call, on all cores, half the time."""
        if self.system == "fold":
            conversations = [fold_system(messages) for messages in conversations]
        if not conversations:
            return []
        texts = self.tokenizer.apply_chat_template(
            list(conversations), add_generation_prompt=True, tokenize=False
        )
        # The text of the template has its special tokens already; the authors' way adds them again.
        return self.tokenizer(
            texts,
            add_special_tokens=self.bos == "authors",
            return_attention_mask=False,
            return_token_type_ids=False,
        )["input_ids"]

    def identity(self) -> dict[str, str]:
        """What of the rendering can change a reply."""
        template = hashlib.sha256(str(self.tokenizer.chat_template).encode()).hexdigest()
        return {"chat_template": template[:16], "system": self.system, "bos": self.bos}
