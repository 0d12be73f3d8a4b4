"""The separation of a reply into the reasoning and the answer after it."""

import re
from collections.abc import Iterable, Sequence

from ingroup.inference.engine import LENGTH, Reply

# Marks as of 2026: <think> (most models) and its relatives, with or without a prefix or attributes
# (<seed:think>, <think effort="low">); <|think|>; [THINK] (Mistral's); ◁think▷ (Kimi's);
# <|begin_of_thought|> (Sky's); <|START_THINKING|> (Cohere's); <|channel>thought (Gemma's).
_MARK = re.compile(
    r"<\s*(?P<angle>/?)\s*(?:\w+[_:])?(?:think|thinking|thoughts?|reasoning|scratchpad|analysis)"
    r"(?:\s[^<>\n]*)?\s*>"
    r"|<\|(?P<pipe>/?)(?:think|thinking|thought|reasoning)\|>"
    r"|\[(?P<square>/?)THINK\]"
    r"|◁(?P<triangle>/?)think▷"
    r"|<\|(?P<side>begin|start|end)_(?:of_)?(?:thought|thinking|reasoning)\|>"
    r"|<\|channel>\s*(?:thought|analysis)\b"
    r"|(?P<shut><channel\|>)",
    re.IGNORECASE,
)

# Channels of the harmony format: <|channel|>NAME<|message|>CONTENT, up to the next mark.
_CHANNEL = re.compile(
    r"<\|channel\|>\s*(?P<name>\w+)[^<]*<\|message\|>(?P<content>.*?)"
    r"(?=<\|(?:channel|start|end|return|call)\|>|\Z)",
    re.DOTALL,
)
_HARMONY_MARK = re.compile(r"<\|(?:channel|start|end|return|call|message|constrain)\|>")

# The harmony format without its marks, which a decoder that skips special tokens leaves out. A text
# that only begins with the word, "analysis: ...", is not in this format.
_BARE_FINAL = "assistantfinal"
_BARE_OTHER = re.compile(r"assistant(?:analysis|commentary)")
_BARE_ANALYSIS = re.compile(r"\s*(?:assistant)?(?:analysis|commentary)(?![a-z]|\s*[:,;.)-])")


def split_reasoning(text: str, opened: bool = False, ended: bool = True) -> tuple[str, str]:
    """Split a reply into the answer and the reasoning before it.

    Parameters
    ----------
    text : str
        The model's text, with its marks as far as they were kept.
    opened : bool
        Whether the prompt ends inside the reasoning, as some chat templates do.
    ended : bool
        Whether the model ended by itself. If it was cut, an open mark hides all that follows it.

    Returns
    -------
    answer : str
        The text of the answer.
    reasoning : str
        The text of the reasoning. The answer is "" if the reply ends inside its reasoning. Without
        a mark of reasoning the answer is the text itself, unchanged, and the reasoning is "".
        Nothing is raised.

    Notes
    -----
    If marks leave room for doubt, the text counts as reasoning. A lost answer is noticed and can be
    asked again, but a number out of a reasoning would not be noticed.
    """
    # The word alone may begin an answer; with a final channel further on it is a mark.
    begins_with_word = text.lstrip().startswith(("analysis", "assistantanalysis", "commentary"))
    is_bare_harmony = begins_with_word and _BARE_FINAL in text
    if "<|channel|>" in text or "<|message|>" in text:
        answer, reasoning = _split_channels(text)
    elif is_bare_harmony or _BARE_ANALYSIS.match(text):
        answer, reasoning = _split_bare_channels(text)
    else:
        answer, reasoning = _split_by_marks(text, opened, ended)

    # A reply that is nothing but an opening mark ended inside its reasoning, too.
    if not answer and not reasoning:
        reasoning = text.strip()
    return answer, reasoning


def split_reply(reply: Reply, opened: bool = False) -> Reply:
    """Move the reasoning in a reply's text to a field of its own.

    Parameters
    ----------
    reply : Reply
        A reply whose text may hold reasoning.
    opened : bool
        Whether the prompt ends inside the reasoning.

    Returns
    -------
    Reply
        The reply with its text and reasoning apart. A reply without a text is unchanged.
    """
    if reply.text is None:
        return reply

    # Where a reply was cut inside a mark of reasoning, all that follows the mark is reasoning.
    answer, reasoning = split_reasoning(reply.text, opened, reply.finish_reason != LENGTH)
    thoughts = [part for part in (reply.reasoning, reasoning) if part]
    return reply._replace(text=answer, reasoning="\n".join(thoughts))


def ends_in_reasoning(prompt: str) -> bool:
    """Tell whether a rendered prompt ends inside the reasoning.

    Parameters
    ----------
    prompt : str
        A rendered chat.

    Returns
    -------
    bool
        True where nothing but white space follows an opening mark.
    """
    marks = list(_MARK.finditer(prompt))
    if not marks:
        return False

    last = marks[-1]
    return not _closes(last) and not prompt[last.end() :].strip()


def closing_text(prompt: str) -> str:
    """Return the text that ends the reasoning of a rendered prompt, before an answer is scored.

    It is "" if the prompt does not end inside the reasoning. If the model would name a channel
    first, as in the harmony format, it names the channel of the answer.

    Parameters
    ----------
    prompt : str
        A rendered chat.

    Returns
    -------
    str
        The closing mark that fits the opening one, between newlines.
    """
    if prompt.endswith("<|start|>assistant"):
        return "<|channel|>final<|message|>"
    if not ends_in_reasoning(prompt):
        return ""

    mark = list(_MARK.finditer(prompt))[-1]
    text = re.sub(r"\s[^<>]*>", ">", mark[0])
    if text.startswith("<|channel>"):
        closed = "<channel|>"
    elif mark["side"]:
        closed = text.replace(mark["side"], "END" if mark["side"].isupper() else "end")
    elif text.startswith("<|"):
        closed = f"<|/{text[2:]}"
    else:
        closed = f"{text[0]}/{text[1:]}"
    return f"\n{closed}\n\n"


def is_mark(token: str) -> bool:
    """Tell whether a special token marks reasoning.

    A decoder must not skip such a token.

    Parameters
    ----------
    token : str
        The text of a special token.

    Returns
    -------
    bool
        True where the whole token is a mark.
    """
    return bool(_MARK.fullmatch(token) or _HARMONY_MARK.fullmatch(token))


def _closes(mark: re.Match[str]) -> bool:
    """Tell whether a mark ends the reasoning."""
    slash = mark["angle"] or mark["pipe"] or mark["square"] or mark["triangle"]
    is_end = (mark["side"] or "").lower() == "end"
    return bool(slash or mark["shut"]) or is_end


def _split_by_marks(text: str, opened: bool, ended: bool) -> tuple[str, str]:
    """Split a text by pairs of marks into the answer and the reasoning.

    A closing mark without an opening mark closes all text before it.
    """
    marks = list(_MARK.finditer(text))
    if not marks and not opened:
        return text, ""

    # The depth counts open marks, as some models put one reasoning into another.
    depth = int(opened and not _repeats_the_mark(text, marks))
    answers: list[str] = []
    thoughts: list[str] = []
    start = 0
    for mark in marks:
        passage = text[start : mark.start()]
        start = mark.end()
        if depth:
            thoughts.append(passage)
        else:
            answers.append(passage)
        if not _closes(mark):
            depth += 1
        elif depth:
            depth -= 1
        else:
            # Some templates open the reasoning in the prompt: all before this mark was reasoning.
            thoughts = [*answers, *thoughts]
            answers = []

    rest = text[start:]
    # A reasoning may mention its own opening mark. If the model ended by itself and closed a mark
    # last, the mark that seems open was only mentioned.
    is_only_mention = ended and depth and marks and _closes(marks[-1])
    if depth and not is_only_mention:
        thoughts.append(rest)
    else:
        answers.append(rest)
    return _on_lines(answers), _on_lines(thoughts)


def _repeats_the_mark(text: str, marks: Sequence[re.Match[str]]) -> bool:
    """Tell whether a text begins with an opening mark, as its prompt may have ended with one."""
    if not marks or _closes(marks[0]):
        return False
    return not text[: marks[0].start()].strip()


def _on_lines(passages: Iterable[str]) -> str:
    """Join passages, each on its own line: "7" and "2" around a reasoning are not 72."""
    return "\n".join(passage.strip() for passage in passages).strip()


def _split_channels(text: str) -> tuple[str, str]:
    """Split the harmony format. The channel "final" is the answer, and all others are reasoning."""
    answers: list[str] = []
    thoughts: list[str] = []
    for channel in _CHANNEL.finditer(text):
        kind = answers if channel["name"].lower() == "final" else thoughts
        kind.append(channel["content"].strip())

    # A text that breaks off inside a mark has no channel yet.
    if not answers and not thoughts:
        thoughts.append(_HARMONY_MARK.sub("", text).strip())
    return "\n".join(answers), "\n".join(thoughts)


def _split_bare_channels(text: str) -> tuple[str, str]:
    """Split the harmony format without marks. The answer follows the last "assistantfinal"."""
    before, mark, after = text.rpartition(_BARE_FINAL)
    if not mark:
        return "", text.strip()

    # A further channel may follow the answer.
    other = _BARE_OTHER.search(after)
    if other:
        before += after[other.start() :]
        after = after[: other.start()]
    return after.strip(), before.strip()
