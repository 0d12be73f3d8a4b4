"""What a model's reply to a construction prompt of GIEBench holds: topics, or a dialog.

As in `ingroup.parsing`: whatever a reply says, nothing here raises.
"""

import json
import re
from collections import Counter
from typing import NamedTuple

_NUMBER = re.compile(r"\s*(?:[-*•]\s+|\(?\d{1,3}[.):]\s*)")
_QUESTION = re.compile(r'["“]([^"“”]*\?)\s*["”]')
_LABEL = re.compile(r"[^?:]{1,60}:\s+")  # "Marriage: Should ...?"
_SPEAKER = re.compile(
    r"""(?:^[\s{*]{0,9}["“'*]{0,3}|[{,]\s{0,9}["“'])(user|assistant)["”'*]{0,3}\s{0,9}:""",
    re.IGNORECASE | re.MULTILINE,
)
_CLOSING = {'"': '"', "“": "”", "'": "'"}
_MARK = re.compile(r"\[\[\s*\w\s*\]\]|\[The (?:Start|End) of|\[User Question\]", re.IGNORECASE)


class Found(NamedTuple):
    """Texts of a reply, and in one sentence what is missing, empty where nothing is."""

    texts: list[str]
    missing: str


def parse_topics(text: str) -> Found:
    """The questions in a reply to the topic prompt; whatever the text, no exception.

    A topic is a numbered, bulleted or quoted line that ends in a question mark; in a reply without
    such lines, any line that does. Numbers, quotation marks, bold marks and a short label before a
    colon are taken off; a topic that comes again is left out.
    """
    marked, bare = {}, {}
    for line in text.splitlines():
        number = _NUMBER.match(line)
        rest = plain(line[number.end() :] if number else line).replace("**", "")
        quoted = _QUESTION.search(rest)
        topic = quoted[1] if quoted else rest.rstrip("\"“”*_ '")
        if not quoted and (label := _LABEL.match(topic)):
            topic = topic[label.end() :]
        topic = re.sub(r"^[\W_]+", "", topic)  # nothing that a spreadsheet takes for a formula
        if topic.endswith("?"):
            (marked if number or quoted else bare).setdefault(topic.casefold(), topic)
    topics = list((marked or bare).values())
    return Found(topics, "" if topics else "no line of the reply is a question")


def parse_dialog(text: str) -> Found:
    """User's and assistant's turn in a reply to the dialog prompt; whatever the text, no exception.

    They stand after ``"user":`` and ``"assistant":``, in one line, as JSON, or at the start of
    lines, where the quotation marks may be missing. An answer with a mark of the evaluation
    prompts, e.g. ``[[A]]``, would speak to the judge and counts as missing.
    """
    speakers = list(_SPEAKER.finditer(text))
    rounds = Counter(speaker[1].lower() for speaker in speakers)
    if absent := [f'no "{name}":' for name in ("user", "assistant") if not rounds[name]]:
        return Found([], f"{' and '.join(absent)} in the reply")
    if max(rounds.values()) > 1:
        return Found([], f"{max(rounds.values())} rounds in the reply, expected one")
    stops = [*(speaker.start() for speaker in speakers[1:]), len(text)]
    turns = {
        speaker[1].lower(): _turn(text[speaker.end() : stop])
        for speaker, stop in zip(speakers, stops, strict=True)
    }
    missing = next((f'nothing after "{name}":' for name, turn in turns.items() if not turn), "")
    if mark := _MARK.search(turns["assistant"]):
        missing = f"{mark[0]!r} in the answer, a mark of the evaluation prompts"
    return Found([turns["user"], turns["assistant"]], missing)


def _turn(text: str) -> str:
    """What is said, without its quotation marks and what stands in the lines behind them."""
    said = text.strip(" \t\r\n*`{},")
    if closing := _CLOSING.get(said[:1]):
        end = re.search(rf"(?<!\\){closing}[ \t`,}}]*(?:[\r\n]|\Z)", said[1:])
        if end or closing not in said[1:]:  # an opening quotation mark may be of its first word
            said = said[1 : end.start() + 1 if end else None]
        try:
            said = json.loads(f'"{said}"', strict=False)  # with JSON's escapes
        except ValueError:
            said = said.replace('\\"', '"')
    return plain(said)


def plain(text: str) -> str:
    """One line, without characters that UTF-8 or a spreadsheet refuses."""
    return " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", " ", text).split())
