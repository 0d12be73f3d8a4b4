"""Token ids of chats, through the model's own chat template, and their number in a design."""

import hashlib
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import chain
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import numpy as np

from ingroup.design import Design, Message
from ingroup.inference.engine import Bos, EngineError, SystemRole
from ingroup.inference.reasoning import closing_text, ends_in_reasoning

if TYPE_CHECKING:
    from tokenizers import AddedToken
    from transformers import PreTrainedTokenizerBase

    from ingroup.inference.cost import CharacterEstimate

Prompts = list[list[int]]  # chats as token ids

RENDER_SECONDS = 20  # allowed for one short chat, which usually takes a thousandth of a second

_PROBE = [
    {"role": "system", "content": "INGROUP SYSTEM PROBE"},
    {"role": "user", "content": "INGROUP USER PROBE"},
]


@contextmanager
def tokenizer_panic_as_error(name: str) -> Iterator[None]:
    """Raise an EngineError where a tokenizer panics.

    Fast tokenizers are written in Rust. A panic of Rust code is not an Exception in Python, so
    ``except Exception`` would not catch it.

    Parameters
    ----------
    name : str
        The model, for the message.

    Yields
    ------
    None
        The body of the ``with`` statement uses the tokenizer.

    Raises
    ------
    EngineError
        Where the tokenizer panics.
    """
    try:
        yield
    except BaseException as error:
        # The class is pyo3's and cannot be imported, so it is known by its name.
        if type(error).__name__ != "PanicException":
            raise
        reason = str(error).partition("\n")[0]
        raise EngineError(
            f"the tokenizer of {name} broke: {reason}; fetch its tokenizer.json again"
        ) from error


def fold_system(messages: Sequence[Message]) -> list[Message]:
    """Put the system turn of a chat before the first user turn, a blank line between.

    Parameters
    ----------
    messages : sequence of Message
        The turns of a chat, a system turn first if there is one.

    Returns
    -------
    list of Message
        The chat with one turn less. A chat that does not begin with a system turn and a user turn
        is unchanged.
    """
    first_roles = [message["role"] for message in messages[:2]]
    if first_roles != ["system", "user"]:
        return list(messages)

    system, user, *rest = messages
    content = f"{system['content']}\n\n{user['content']}"
    folded: Message = {"role": "user", "content": content}
    return [folded, *rest]


class Prompter:
    """Renderer of chats for one tokenizer.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
        The tokenizer of the model.
    system : {"keep", "fold", "plain"}
        "keep" gives the template a system turn, "fold" puts it into the user turn
        (:func:`fold_system`). "plain" takes no chat template at all: the turns, one to a line, with
        the tokenizer's own special tokens (a BOS, where it adds one). The released script of Wang
        et al. asked models so.
    bos : {"template", "released"}
        "template" gives exactly the ids of the chat template, so one BOS. "released" renders to
        text and lets the tokenizer add its special tokens once more, as the released script of Hou
        et al. did. Models with a BOS token then get it twice.
    reasoning : str
        How much a model is to think, where its template has a switch for it. "none" turns it off.
        Any other value but "" turns it on, and is the effort if the template asks for one. A
        template without a switch is used as it is, and standard error says so.

    Attributes
    ----------
    opens_reasoning : bool
        Whether a rendered chat ends inside the reasoning.
    answer_prefix : str
        Text between a rendered chat and a scored answer. It ends the reasoning.

    Raises
    ------
    EngineError
        There is no chat template, it does not end, or "keep" meets a template that refuses or drops
        the system turn.
    """

    def __init__(
        self,
        tokenizer: "PreTrainedTokenizerBase",
        system: SystemRole = "keep",
        bos: Bos = "template",
        reasoning: str = "",
    ):
        self.tokenizer = tokenizer
        self.system = system
        self.bos = bos
        self.opens_reasoning = False
        self.answer_prefix = ""
        self._example = ""
        self._switches: dict[str, str | bool] = {}
        self._ids_of_turns: dict[str, list[int]] = {}
        if system != "plain":
            self._try_template(reasoning)

    def _try_template(self, reasoning: str) -> None:
        """Render the probe to learn about the template.
        Raise an EngineError if it cannot be used.
        """
        name = self.tokenizer.name_or_path
        if self.tokenizer.chat_template is None:
            raise EngineError(
                f"{name} has no chat template; an instruction-tuned model is "
                "needed (its name often ends in -Instruct or -it)"
            )
        if reasoning:
            self._switches = self._reasoning_switches(reasoning)

        texts = self._render_probe()
        if texts:
            self._example = texts[0]
            # The last text is the chat without a system turn, which more templates take.
            self.opens_reasoning = ends_in_reasoning(texts[-1])
            self.answer_prefix = closing_text(texts[-1])

        keeps_both = any(_holds_turns(text, _PROBE) for text in texts)
        if self.system == "keep" and not keeps_both:
            raise EngineError(
                f"the chat template of {name} has no system role; set "
                "SYSTEM=fold to put the persona before the task in the user turn"
            )

    def _reasoning_switches(self, reasoning: str) -> dict[str, str | bool]:
        """Choose the template's arguments that set the amount of reasoning.

        If the template has no such argument, a line on standard error says so.
        """
        template = str(self.tokenizer.chat_template)
        switches: dict[str, str | bool] = {}
        if "enable_thinking" in template:
            switches["enable_thinking"] = reasoning != "none"
        if "reasoning_effort" in template and reasoning in ("low", "medium", "high"):
            switches["reasoning_effort"] = reasoning

        if not switches:
            print(
                f"REASONING={reasoning} is left out for {Path(self.tokenizer.name_or_path).name}: "
                "its chat template takes no such value",
                file=sys.stderr,
            )
        return switches

    def _render_probe(self) -> list[str]:
        """Render the probe with and without its system turn, except where the template refuses.

        A template is a program that comes from anywhere, so an EngineError is raised if it does not
        end.
        """
        texts: list[str] = []

        def render() -> None:
            for chat in (_PROBE, _PROBE[1:]):
                # A template may refuse a system turn, or any chat.
                with suppress(Exception):
                    texts.extend(self._render([chat]))

        thread = Thread(target=render, daemon=True)
        thread.start()
        thread.join(RENDER_SECONDS)
        # A thread cannot be ended, but as a daemon it does not keep the process alive.
        if thread.is_alive():
            raise EngineError(
                f"the chat template of {self.tokenizer.name_or_path} does not render a chat of "
                f"three words within {RENDER_SECONDS} s"
            )
        return texts

    def batch(self, conversations: Sequence[Sequence[Message]]) -> Prompts:
        """Render chats as token ids, for the model to answer.

        The tokenizer uses all cores.

        Parameters
        ----------
        conversations : sequence
            The chats, each a sequence of turns.

        Returns
        -------
        list of list of int
            The token ids of each chat.

        Raises
        ------
        EngineError
            The tokenizer breaks.
        """
        with tokenizer_panic_as_error(self.tokenizer.name_or_path):
            return self._batch(conversations)

    def _batch(self, conversations: Sequence[Sequence[Message]]) -> Prompts:
        if self.system == "fold":
            conversations = [fold_system(messages) for messages in conversations]
        if not conversations:
            return []

        texts = self._render(conversations)
        # The template's text has its special tokens already; the authors' script adds them again.
        special = self.bos == "released" or self.system == "plain"
        if not self.tokenizer.is_fast:
            return self.tokenizer(
                texts,
                add_special_tokens=special,
                return_attention_mask=False,
                return_token_type_ids=False,
            )["input_ids"]
        if special or self._turns is None:
            return self._encode(texts, special)
        return self._encode_in_turns(texts, self._turns)

    def _encode(self, texts: Sequence[str], special: bool) -> Prompts:
        """Encode texts as token ids, without masks and offsets, in two thirds of the usual time."""
        backend = self.tokenizer.backend_tokenizer
        # Padding and truncation are reset only where they are set: another thread may be decoding
        # meanwhile, and nothing may change then.
        if backend.padding is not None:
            backend.no_padding()
        if backend.truncation is not None:
            backend.no_truncation()
        encoded = backend.encode_batch_fast(texts, add_special_tokens=special)
        return [encoding.ids for encoding in encoded]

    def _encode_in_turns(self, texts: Sequence[str], marks: re.Pattern) -> Prompts:
        """Encode texts as the same token ids, but encode each distinct turn once.

        Turns of the last batch are not encoded again either, as many batches have the same persona,
        and each persona sees the same events.
        """
        chats = [split_before_marks(text, marks) for text in texts]
        distinct = list(dict.fromkeys(chain.from_iterable(chats)))

        # Chats whose persona has no turn of its own share next to nothing.
        if sum(map(len, distinct)) > 0.9 * sum(map(len, texts)):
            return self._encode(texts, special=False)

        last_ids = self._ids_of_turns
        new = [turn for turn in distinct if turn not in last_ids]
        ids_of_turns = dict(zip(new, self._encode(new, special=False), strict=True))
        # Only this batch's turns are kept, so the memory does not grow with the design.
        for turn in distinct:
            if turn in last_ids:
                ids_of_turns[turn] = last_ids[turn]
        self._ids_of_turns = ids_of_turns

        prompts = []
        for turns in chats:
            prompt: list[int] = []
            for turn in turns:
                prompt += ids_of_turns[turn]
            prompts.append(prompt)
        return prompts

    @cached_property
    def _turns(self) -> re.Pattern | None:
        """Compile the pattern of the marks that begin a turn.

        It is None if chats have to be encoded as a whole.
        """
        backend = self.tokenizer.backend_tokenizer
        # This setting encodes added tokens as plain text, so they are no borders.
        if backend.encode_special_tokens:
            return None
        marks = turn_marks(backend.get_added_tokens_decoder().values(), self._example)
        return re.compile("|".join(map(re.escape, marks))) if marks else None

    def _render(self, conversations: Sequence[Sequence[Message]]) -> list[str]:
        """Render chats as text."""
        if self.system == "plain":
            texts = []
            for chat in conversations:
                texts.append("\n".join(turn["content"] for turn in chat))
            return texts
        return self.tokenizer.apply_chat_template(
            list(conversations), add_generation_prompt=True, tokenize=False, **self._switches
        )

    def identity(self) -> dict[str, str]:
        """Name all settings of the rendering that can change a reply.

        Returns
        -------
        dict of str
            The template's hash, the options, and switches of the template that are set.
        """
        template = "" if self.system == "plain" else str(self.tokenizer.chat_template)
        digest = hashlib.sha256(template.encode()).hexdigest()
        identity = {"chat_template": digest[:16], "system": self.system, "bos": self.bos}
        for name, value in self._switches.items():
            identity[name] = str(value)
        if self.answer_prefix:
            identity["answer_prefix"] = self.answer_prefix
        return identity


def _holds_turns(text: str, chat: Sequence[Message]) -> bool:
    """Tell whether a text holds all turns of a chat."""
    return all(turn["content"] in text for turn in chat)


def split_before_marks(text: str, marks: re.Pattern) -> list[str]:
    """Cut a text before each of its marks.

    Parameters
    ----------
    text : str
        Any text.
    marks : re.Pattern
        Matches a mark, never an empty text.

    Returns
    -------
    list of str
        The parts, one more than there are marks. Joined they are the text.
    """
    # Faster than to split at an empty match before a mark, which is tried at each letter.
    parts = []
    start = 0
    for mark in marks.finditer(text):
        parts.append(text[start : mark.start()])
        start = mark.start()
    parts.append(text[start:])
    return parts


def turn_marks(tokens: Iterable["AddedToken"], text: str) -> list[str]:
    """List the added tokens before which a text can be cut without a change of its token ids.

    Such a token usually begins a turn. Turns that many chats share are then encoded once.

    Parameters
    ----------
    tokens : iterable of AddedToken
        The added tokens of a tokenizer.
    text : str
        A rendered chat.

    Returns
    -------
    list of str
        Contents of added tokens.

    Notes
    -----
    A tokenizer first takes its added tokens out of the raw text, from the left, the longest first.
    It then normalizes, splits and merges each stretch between them by itself. A cut before an added
    token changes nothing under three conditions:

    - The token is taken out of the raw text (``normalized`` is false).
    - No other added token can span the cut: none contains this token, and none ends with text that
      this token begins with.
    - No added token looks across the cut. ``lstrip`` and ``single_word`` of this token would look
      back. ``rstrip`` and ``single_word`` of a token before the cut look ahead, but ``<`` and
      ``[``, with which these tokens begin, change nothing for them.
    """
    raw = [token for token in tokens if not token.normalized]
    ends = set()
    for token in raw:
        for start in range(1, len(token.content)):
            ends.add(token.content[start:])

    # A mark with which every chat begins would cut nothing off.
    inside = text[1:]
    marks = []
    for token in raw:
        mark = token.content
        looks_back = token.lstrip or token.single_word
        if mark not in inside or looks_back or not mark.startswith(("<", "[")):
            continue

        beginnings = {mark[:stop] for stop in range(1, len(mark) + 1)}
        holders = [other.content for other in raw if mark in other.content]
        if holders == [mark] and beginnings.isdisjoint(ends):
            marks.append(mark)
    return marks


def batches(prompts: Prompts, size: int, least: int) -> Iterator[tuple[list[int], int]]:
    """Cut prompts into batches of up to ``size`` that share a long prefix.

    The prompts are sorted, so that neighbours share the longest prefixes. A batch ends when it is
    full. Once it has ``least`` prompts, it also ends before a prompt that shares too few tokens
    with it. If that prompt joined, the batch would compute more tokens in all. An example is the
    next persona in the empathy-gap design.

    Parameters
    ----------
    prompts : list of list of int
        Token ids.
    size : int
        The most prompts of a batch.
    least : int
        Prompts that a batch has before it may end early.

    Yields
    ------
    list of int
        Indices of the prompts of a batch.
    int
        How many first tokens they share. At least one token of each is left to compute.
    """
    batch: list[int] = []
    shared = 0
    for index in sorted(range(len(prompts)), key=prompts.__getitem__):
        prompt = prompts[index]
        # One token at least must be computed, or there would be no logits.
        most_shared = len(prompt) - 1
        if not batch:
            batch = [index]
            shared = most_shared
            continue

        first = prompts[batch[0]]
        # `commonprefix` compares sequences of any kind, here lists of ids.
        prefix = os.path.commonprefix([prompt, first])  # noqa: RUF071 (ids)
        common = min(shared, most_shared, len(prefix))
        # With this prompt in the batch, each of the others computes what is no longer shared.
        more_computed = len(batch) * (shared - common)
        ends_early = len(batch) >= least and more_computed > common
        if len(batch) == size or ends_early:
            yield batch, shared
            batch = [index]
            shared = most_shared
        else:
            batch.append(index)
            shared = common
    if batch:
        yield batch, shared


def estimate_tokens(
    design: Design, prompter: "Prompter | CharacterEstimate", size: int, rng: np.random.Generator
) -> dict[str, float]:
    """Estimate the prompt tokens of a design from a random sample of its trials.

    Parameters
    ----------
    design : Design
        The trials.
    prompter : Prompter or CharacterEstimate
        The renderer whose ``batch`` gives the tokens of each chat.
    size : int
        Number of trials that are drawn without replacement, at least 2. A smaller design is drawn
        whole.
    rng : numpy.random.Generator
        One generator for all parts of a plan. With one seed for each part, all would draw the same
        trials.

    Returns
    -------
    dict
        ``tokens`` is N times the sample's mean. ``error`` is its standard error
        N s sqrt((1 - n/N) / n), with s^2 the sample variance. It is 0 where all were drawn.

    References
    ----------
    Cochran (1977), *Sampling Techniques*, section 2.6.
    """
    n_trials = len(design)
    drawn = rng.choice(n_trials, min(size, n_trials), replace=False)
    n_drawn = len(drawn)
    chats = [design[trial].messages for trial in drawn.tolist()]
    lengths = [len(ids) for ids in prompter.batch(chats)]

    # The factor 1 - n/N is the correction for a finite population.
    error_of_mean = np.std(lengths, ddof=1) * math.sqrt((1 - n_drawn / n_trials) / n_drawn)
    return {
        "tokens": n_trials * float(np.mean(lengths)),
        "error": n_trials * float(error_of_mean),
    }
