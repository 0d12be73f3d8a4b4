"""The separation of an answer from the reasoning before it."""

import html
import re

# Names of reasoning in a tag as of 2026, also with a further word: <seed:think>, <think_fast>.
_NAME = (
    r"(?:\w+[_:])?(?:think|thinking|thoughts?|reason|reasoning|reflection|ponder|scratchpad"
    r"|analysis|monologue|deliberation|cot)(?:[_:]\w+)?"
)
# <think effort="low">, <|think|>, [THINK] and the triangles of Kimi. A slash makes a closing mark.
_TAG = rf"<\|?\s*/?{_NAME}(?:\s[^<>\n]{{0,80}})?\|?>|\[/?THINK\]|◁/?think▷"
# Marks whose ending is not made with a slash.
_PAIRS = {
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|inner_prefix|>": "<|inner_suffix|>",
    "<|channel>thought": "<channel|>",
}
_OPENING_PAIR = "|".join(map(re.escape, _PAIRS))
_CLOSING_PAIR = "|".join(map(re.escape, _PAIRS.values()))
_MARK = re.compile(
    rf"(?P<opening>{_OPENING_PAIR})|(?P<closing>{_CLOSING_PAIR})|{_TAG}", re.IGNORECASE
)

# The harmony format has a channel for the answer. A decoder may have dropped all of its marks,
# which leaves "analysis...assistantfinal...", or the first word of the text.
_HARMONY_FINAL = re.compile(
    r"(?:<\|channel\|>\s*final|\Afinal(?=<\||\d)|assistantfinal)"
    r"(?:[^<\n]{0,40}<\|constrain\|>\w*)?(?:[^<\n]{0,40}<\|message\|>)?"
)
_HARMONY_OTHER = re.compile(r"<\|(?:channel|message)\|>|assistant(?=analysis)")
_HARMONY_END = re.compile(r"<\|(?:channel|start|end|return|call)\|>|assistant(?=analysis)")
# A text that only begins with the word, "analysis: ...", is not in this format.
_BARE_ANALYSIS = re.compile(r"\s*(?:assistant)?(?:analysis|commentary)(?![a-z]|\s*[:,;.)-])")

# A reasoning that is announced in words ends at the last heading of an answer.
_HEADING = re.compile(
    r"[\W_]*(?:💭|(?:here(?:'s| is) (?:my |a |the )?)?(?:thinking|thought|reasoning) process\b)",
    re.IGNORECASE,
)
_ANSWER_HEADING = re.compile(
    r"^[\W_]*(?:here(?:'s| is) my )?(?:final )?"
    r"(?:answer|response|output|rating|score|emotion intensity|probability)\b.{0,20}?[:\n]",
    re.IGNORECASE | re.MULTILINE,
)


def split_reasoning(text: str, opened: bool = False, ended: bool = True) -> tuple[str, str]:
    """Split a reply into its answer and its reasoning.

    Parameters
    ----------
    text : str
        The reply, with the marks in it.
    opened : bool
        Whether the prompt itself ends behind an opening mark.
    ended : bool
        Whether the model ended the reply by itself. If it was cut, a reasoning in words may be
        unfinished.

    Returns
    -------
    answer : str
        The text without reasoning. It is "" if the reply ends inside its reasoning. Where marks
        leave doubt, the text counts as reasoning: a lost answer is noticed, a wrong one is not.
    reasoning : str
        All other text. It is "" if there is no mark, and then the answer is the text, unchanged.
    """
    if "&lt;" in text:
        text = html.unescape(text)

    finals = list(_HARMONY_FINAL.finditer(text))
    if finals:
        final = finals[-1]
        reasoning = text[: final.start()].strip()
        behind = text[final.end() :]
        answer = _HARMONY_END.split(behind)[0]
        return answer.strip(), reasoning
    if _HARMONY_OTHER.search(text) or _BARE_ANALYSIS.match(text):
        return "", text.strip()

    marks = list(_MARK.finditer(text))
    if marks or opened:
        return _split_at_marks(text, marks, opened)
    if _HEADING.match(text):
        return _split_at_headings(text, ended)
    return text, ""


def _split_at_marks(text: str, marks: list[re.Match], opened: bool) -> tuple[str, str]:
    """Take as answer what stands before the first opening and behind the last closing mark."""
    closings = [mark.end() for mark in marks if _closes(mark)]
    border = max(closings, default=len(text))
    # A mark that is opened again behind the border is not closed: the reply ends inside of it.
    reopened = _MARK.search(text, border)
    end = reopened.start() if reopened else len(text)

    begins_inside = opened or _closes(marks[0])
    start = 0 if begins_inside else marks[0].start()
    before = text[:start].strip()
    behind = text[border:end].strip()
    answer = f"{before}\n{behind}".strip()
    reasoning = text[start:border] + text[end:]
    return answer, reasoning.strip()


def _closes(mark: re.Match) -> bool:
    """Tell whether a mark ends the reasoning."""
    if mark["opening"] or mark["closing"]:
        return mark["opening"] is None
    return "/" in mark[0][:4]


def _split_at_headings(text: str, ended: bool) -> tuple[str, str]:
    """Split a reasoning in words at the last heading of an answer, or before its last paragraph."""
    borders = [heading.start() for heading in _ANSWER_HEADING.finditer(text)]
    if ended:
        last_paragraph = text.rstrip().rfind("\n\n")
        borders.insert(0, max(last_paragraph, 0))
    border = borders[-1] if borders else len(text)
    answer = text[border:].strip()
    reasoning = text[:border].strip()
    return answer, reasoning


def text_before_answer(prompt: str) -> str:
    """Return what ends the reasoning of a rendered prompt, "" if the prompt opens none."""
    prompt = prompt.rstrip()
    if prompt.endswith("<|start|>assistant"):
        return "<|channel|>final<|message|>"

    last = re.search(rf"(?:{_MARK.pattern})\Z", prompt, re.IGNORECASE)
    if last is None or _closes(last):
        return ""

    mark = last[0]
    without_attributes = re.sub(r"\s[^<>]*>", ">", mark)
    closing = re.sub(r"\A(<\|?|\[|◁)", r"\1/", without_attributes)
    return f"\n{_PAIRS.get(mark, closing)}\n\n"
