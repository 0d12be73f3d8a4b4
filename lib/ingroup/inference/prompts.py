"""Chats to token ids, through the model's own chat template."""

import hashlib
import re
from array import array
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Literal

from jinja2 import TemplateError

from ingroup.inference.engine import EngineError
from ingroup.stimuli import Message

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SystemRole = Literal["keep", "fold"]
Bos = Literal["template", "authors"]

MOST_TURNS = 200_000  # under 300 MB where a turn has 200 tokens

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
        special = sorted(map(re.escape, tokenizer.get_added_vocab()), key=len, reverse=True)
        # With the authors' second BOS a text is not the sum of its turns.
        whole = bos == "authors" or not special
        self._turns = None if whole else re.compile(f"({'|'.join(special)})")
        self._known: dict[str, array] = {}
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
        """:meth:`ids` of many chats, a small part of the time that they cost one by one."""
        if self.system == "fold":
            conversations = [fold_system(messages) for messages in conversations]
        if not conversations:
            return []
        texts = self.tokenizer.apply_chat_template(
            list(conversations), add_generation_prompt=True, tokenize=False
        )
        return self._by_turns(texts) if self._turns else self._tokenized(texts)

    def _tokenized(self, texts: list[str]) -> list[list[int]]:
        # The text of the template has its special tokens already; the authors' way adds them again.
        return self.tokenizer(
            texts,
            add_special_tokens=self.bos == "authors",
            return_attention_mask=False,
            return_token_type_ids=False,
        )["input_ids"]

    def _by_turns(self, texts: list[str]) -> list[list[int]]:
        """The same ids, but a turn that stands in thousands of prompts is tokenized once.

        A tokenizer cuts a text at its special tokens and starts anew behind each. Where one does
        not (some put a mark before the first word alone), three prompts of the batch show it, and
        all prompts are tokenized whole from then on.
        """
        cut = [[part for part in self._turns.split(text) if part] for text in texts]
        if len(self._known) > MOST_TURNS:
            self._known.clear()
        new = list({part: None for parts in cut for part in parts if part not in self._known})
        if new:
            for part, ids in zip(new, self._tokenized(new), strict=True):
                self._known[part] = array("i", ids)
        prompts = [[*chain.from_iterable(map(self._known.__getitem__, parts))] for parts in cut]
        for place in {0, len(texts) // 2, len(texts) - 1}:
            if prompts[place] != self._tokenized([texts[place]])[0]:
                self._turns = None
                return self._tokenized(texts)
        return prompts

    def identity(self) -> dict[str, str]:
        """What of the rendering can change a reply."""
        template = hashlib.sha256(str(self.tokenizer.chat_template).encode()).hexdigest()
        return {"chat_template": template[:16], "system": self.system, "bos": self.bos}
