"""Keywords listed in replies, each with its reason.

No reply raises an error.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache
from itertools import chain, takewhile
from typing import NamedTuple

from ingroup.parsing import APOSTROPHES, OK, REFUSAL, REFUSED, UNPARSABLE

TOO_FEW = "too few"
TOO_MANY = "too many"


class Keywords(NamedTuple):
    """Different keywords in lower case, the reason of each ("" if none is given), and a status."""

    words: tuple[str, ...]
    reasons: tuple[str, ...]
    status: str


@lru_cache(1 << 16)  # rounds repeat replies, and each is read by several rules
def parse_keywords(text: str | None, n: int) -> Keywords:
    """Read the list of keywords that a reply gives, with the reason of each.

    Parameters
    ----------
    text : str or None
        The reply.
    n : int
        How many keywords were asked for.

    Returns
    -------
    Keywords
        All different keywords of the list, each once. The status is "ok", "too few" or "too many".
        Without a list it is "refused" if the reply has the words of a refusal, else "unparsable".

    Notes
    -----
    1. A list consists of numbered or bulleted items, words in bold or alone on their lines, the
       rows of a table, "Keyword: reason", or words with commas or semicolons between them. An item
       is a keyword of one to three words up to a colon, dash, bracket or the end. Its reason
       follows or stands in the next line.
    2. The first list that has `n` different keywords is taken, else the first list. Ratings
       ("Friendly: 4"), headings ("Reasons:") and reasons ("because of history") are not items. A
       word such as "sure" or "emotion" is an item where it is not a heading ("2. Sure", "Emotion:
       x").
    3. If the list gives no reason for a keyword, its reason is the one in another list. If no list
       gives any of the keywords a reason, numbered sentences ("1. They are seen as ...") are the
       reasons, if there are as many as keywords. A keyword still without one has the first
       sentence that begins with it ("Wealth refers to ...").

    Checked with a table of replies, Tables 1 and 11 of Jeoung et al. (2023), and random text.
    """
    reply = text.translate(_SPELLINGS) if isinstance(text, str) else ""
    lines = _lines(reply)
    lists = _lists(lines)
    if not lists:
        refused = REFUSAL.search(reply)
        return Keywords((), (), REFUSED if refused else UNPARSABLE)

    chosen = _choose(lists, n)
    keywords = [item.keyword for item in chosen]
    reasons = dict.fromkeys(keywords, "")
    # The chosen list comes first, so that its own reasons win.
    for item in chain(chosen, *lists):
        if item.keyword in reasons:
            reasons[item.keyword] = reasons[item.keyword] or item.reason

    if not any(reasons.values()):
        sentences = _numbered(lines, len(reasons))
        reasons.update(zip(reasons, sentences, strict=False))
    if not all(reasons.values()):
        sentences_by_start = _sentences_by_start(reply)
        for word, reason in reasons.items():
            reasons[word] = reason or sentences_by_start.get(word, "")

    status = OK
    if len(reasons) < n:
        status = TOO_FEW
    elif len(reasons) > n:
        status = TOO_MANY
    return Keywords(tuple(reasons), tuple(reasons.values()), status)


_SENTENCE_END = re.compile(r"[.;!?](?=\s|\Z)")
_SPELLINGS = str.maketrans(
    {
        **dict.fromkeys(APOSTROPHES, "'"),
        **dict.fromkeys('"“”«»`', None),
        **dict.fromkeys("‐‑", "-"),
        "：": ": ",
        "│": "|",
    }
)
# A number that may count on from one before it in the same line: "1. Caring 2. Kind".
_COUNT = re.compile(r"(?<![^\s,;:])\(?(?P<count>\d{1,3})[.)]\s")
# What a line may begin with: indent, bullet, bold, "Keyword 1:" or another number, bold.
_MARK = re.compile(
    r"(?i)(?P<indent>\s*)(?P<bullet>[-•·‣◦+–—▪●|]\s*|\*\s+)?(?P<bold>\*{2,}|__)?"
    r"(?P<number>(?:(?:keyword|verb|reason|word)\s?#?)?\(?(?P<count>\d{1,3})"
    r"(?:\s?[.):|]|\s-)(?:\s+|(?=\*)))?"
    r"(?P<inner>\*{2,}|__)?"
)
_EMPHASIS = re.compile(r"[*_#]+")
# A head of at most 60 characters and the sign that ends it.
_HEAD = re.compile(
    r"(?i)(?P<head>[^:;|.,!?()=\n]{1,60}?)\s*(?P<sign>\s[-–—]+(?=\s|\Z)|[–—]|-\s|[:|(=.]|\Z"
    r"|(?P<why>,?\s(?=(?:because|due to|since|as they)\b)))"
)
_NAME = re.compile(r"[^\W\d_](?:[\w'/&-]|\.(?=\w)|\s(?=[\w&])){0,50}")
# Headings and other openings: "The three keywords are", "Reasons for", "Here".
_NO_KEYWORD = re.compile(
    r"(?i)(?:(?:the|my|these|those|three|five|[35]|overall|some|other|for|here|sure|certainly|okay|ok|yes"
    r"|thank|and|note|please|lastly|finally|now|in)\s?)*(?:keywords?|reasons?|reasoning|ratings?|scores?"
    r"|explanations?|notes?|answers?|descriptions?|verbs?|feelings?|emotions?|traits?|words?|you"
    r"|characteristics?|summary|conclusion|overall|here|sure|certainly|disclaimer|behaviou?rs?"
    r"|justifications?|reply|response)?\b(?![\w-])(?:\s(?:for|of|to|is|are|about)\b.*)?"
)
# Headings that, without a colon, may be keywords too: "2. Sure", "sad, emotion, proud".
_EITHER = re.compile(
    r"(?i)sure|certainly|feelings?|emotions?|traits?|characteristics?|behaviou?rs?|reply|response"
)
# What a reason begins with.
_WHY = re.compile(
    r"(?i)(?:because|due to|since|as (?:they|the|an?)|for (?:their|the)|they|this|these|there"
    r"|people (?:are|do|have|like|say|see|think))\b"
)
_BECAUSE = re.compile(r"(?i)(?:reasons?|explanation|description|why)\s?:\s*(.+)")
_RATED = re.compile(r"\W*\d(?:[.,]\d+)?(?:\s*/\s*\d+|\s+out\s+of\s+\d+)?\W*(?:\Z|[^\w\s%])")
# "Keywords:", "The three words that describe them are": a list in the same line follows.
_INTRODUCED = re.compile(
    r"(?i)[^:]{0,150}?\b(?:keywords?|verbs?|words|feelings|emotions|traits|characteristics|reasons"
    r"|reply|response)\b[^:]{0,150}?"
    r"(?::|\b(?:are|is|include)\b:?)\s*"
)
_AND = re.compile(r"\A\W*(?:and|or|&)\s")
_BRACKET = re.compile(r"(\([^()]*\))")
# A comma, or the "and" before the last word.
_COMMA = re.compile(r",|\sand\s(?=\S+\Z)")


class _Item(NamedTuple):
    """A keyword ("" if there is none), the sign behind it, and the reason that follows."""

    keyword: str
    sign: str
    reason: str


_NO_ITEM = _Item("", "", "")


class _Line(NamedTuple):
    """A line of a reply, with everything that can be read from the line alone."""

    marker: str  # "number", "bullet" or ""
    digits: str  # of the number, "" without
    indent: int
    bold: bool
    text: str  # behind the marks, without emphasis
    item: _Item
    inline: list[_Item]  # keywords with commas or semicolons between them
    labelled_reason: str  # behind "Reason:"

    @property
    def loose(self) -> bool:
        """True if no mark shows that the line is an item."""
        return not self.marker and not self.bold


@dataclass
class _List:
    """A list of keywords. Lines without a mark have the marker ""."""

    marker: str = ""  # "number", "bullet", "inline" or ""
    indent: int = 0
    items: list[_Item] = field(default_factory=list)


class _Kind(Enum):
    """Kind of a line, given the list that was read up to it."""

    ITEM = auto()
    REASON = auto()  # of the last item
    HEADING = auto()  # another list follows
    INLINE = auto()  # a whole list
    RATING = auto()
    OTHER = auto()


def _lists(lines: Sequence[_Line]) -> list[list[_Item]]:
    """Group lines into lists, and return the items of each list."""
    lists: list[_List] = []
    current = _List()
    for line in lines:
        match _classify(line, current):
            case _Kind.ITEM:
                if _begins_list(line, current):
                    current = _List(line.marker, line.indent)
                    lists.append(current)
                current.items.append(line.item)
            case _Kind.REASON:
                last = current.items[-1]
                reason = last.reason or line.labelled_reason or line.text
                current.items[-1] = last._replace(reason=reason)
            case _Kind.HEADING:
                current = _List(current.marker)
            case _Kind.INLINE:
                lists.append(_List("inline", items=line.inline))
                current = _List(current.marker)
            case _Kind.RATING:
                current = _List()

    return [each.items for each in lists if _is_list(each)]


def _classify(line: _Line, current: _List) -> _Kind:
    """Decide the kind of a line, given the list that was read up to it."""
    if not line.text:
        return _Kind.OTHER
    # Bullets behind a rating are another list.
    if line.loose and current.marker == "bullet" and _is_rating(line.text):
        return _Kind.RATING

    # "Reason: poor, old, weak" below an item is its reason, not a list.
    is_reason_of_item = line.labelled_reason and current.items
    if line.inline and not is_reason_of_item:
        return _Kind.INLINE

    # A loose sentence or table cell is no item, even if it begins with a keyword.
    begins_item = bool(line.item.keyword) and not (line.loose and line.item.sign in (".", "|"))
    is_heading = _is_heading(line, current)
    if current.items and _is_reason(line, current, begins_item, is_heading):
        return _Kind.REASON
    if begins_item:
        return _Kind.ITEM
    if is_heading or line.marker != current.marker:
        return _Kind.HEADING
    return _Kind.OTHER


def _is_heading(line: _Line, current: _List) -> bool:
    """Tell whether a line may be the heading of a list."""
    # Below a marked list only a colon makes a heading: a plain word goes on with an item.
    if line.loose and current.marker:
        return line.text.endswith(":")
    return line.item.sign != "" and not line.item.keyword


def _is_reason(line: _Line, current: _List, begins_item: bool, is_heading: bool) -> bool:
    """Tell whether a line belongs to the last item of a list."""
    if line.labelled_reason or _is_below(line, current):
        return True
    # A loose line goes on with the last item, unless it may be the next one of a loose list.
    return line.loose and not is_heading and (current.marker != "" or not begins_item)


def _is_below(line: _Line, current: _List) -> bool:
    """Tell whether a marked line belongs to an item with another mark: a bullet below a number."""
    if not line.marker or current.marker in ("", line.marker):
        return False
    return line.indent > current.indent or not line.item.keyword


def _is_rating(text: str) -> bool:
    """Tell whether a line is a rating ("Friendly: 4")."""
    head = _HEAD.match(text)
    return bool(head and _RATED.match(text[head.end() :]))


def _begins_list(line: _Line, current: _List) -> bool:
    """Tell whether an item is the first of another list."""
    if not current.items or line.marker != current.marker:
        return True
    return line.indent < current.indent or line.digits == "1"


def _is_list(candidate: _List) -> bool:
    """Tell whether items are a list.

    A single item without a mark is no list, nor are items that may all be headings.
    """
    least = 1 if candidate.marker else 2
    if len(candidate.items) < least:
        return False
    return not all(_EITHER.fullmatch(item.keyword) for item in candidate.items)


def _choose(lists: Sequence[list[_Item]], n: int) -> list[_Item]:
    """Choose the first list with n different keywords, or else the first list."""
    for items in lists:
        if len({item.keyword for item in items}) == n:
            return items
    return lists[0]


def _lines(text: str) -> list[_Line]:
    """Read the lines of a text, which are also broken before consecutive numbers in a line."""
    lines = []
    for whole in text.splitlines():
        for part in _numbered_parts(whole):
            lines.append(_read_line(part))
    return lines


def _numbered_parts(line: str) -> list[str]:
    """Break a line before numbers that count on from 1, or from a number at its start."""
    parts = []
    start = 0
    expected = 1
    for match in _COUNT.finditer(line):
        count = int(match["count"])
        position = match.start()
        if count == expected:
            if position > start:
                parts.append(line[start:position].rstrip(" ,;"))
            start = position
            expected += 1
        # A line that begins with any number is counted on from there.
        elif position < 20 and not line[:position].strip():
            expected = count + 1

    return [*parts, line[start:]]


def _read_line(line: str) -> _Line:
    """Take the marks off a line.

    The rest is read as an item, as a list and as a labelled reason.
    """
    mark = _MARK.match(line)
    assert mark is not None  # each part of the pattern is optional
    text = _EMPHASIS.sub("", line[mark.end() :]).strip()
    marker = ""
    if mark["number"]:
        marker = "number"
    elif mark["bullet"]:
        marker = "bullet"

    labelled = _BECAUSE.fullmatch(text)
    return _Line(
        marker=marker,
        digits=mark["count"] or "",
        indent=len(mark["indent"]),
        bold=bool(mark["bold"] or mark["inner"]),
        text=text,
        item=_item(text),
        inline=_inline(text),
        labelled_reason=labelled[1] if labelled else "",
    )


def _item(text: str) -> _Item:
    """Read a text as an item: keyword, sign and reason.

    A heading or a rating has a sign but no keyword, and text that is not an item has neither.
    """
    match = _HEAD.match(text)
    if not match:
        return _NO_ITEM

    head = match["head"].strip(" '")
    if not _NAME.fullmatch(head) or head.count(" ") > 2 or _WHY.match(head):
        return _NO_ITEM

    sign = match["sign"].strip()
    reason = text[match.end() :]
    is_heading = _NO_KEYWORD.fullmatch(head) is not None
    if is_heading and _EITHER.fullmatch(head):
        # Such a word is a heading only with a colon and nothing behind it.
        is_heading = sign == ":" and not reason.strip()
    if is_heading or _RATED.match(reason):
        return _Item("", sign or ":", "")

    # "Kind because they help" is a sentence, which on a line without a mark is no item.
    if match["why"]:
        sign = "."
    return _Item(head.lower(), sign, reason.strip(" )|-–—"))


def _inline(text: str) -> list[_Item]:
    """Read keywords with commas or semicolons between them, up to the end of the sentence.

    Text with too few parts, or with a part that is not a keyword, gives an empty list.
    """
    introduction = _INTRODUCED.match(text)
    listed = text[introduction.end() :] if introduction else text
    # `_SENTENCE_END` has the semicolon as well, which may separate keywords here.
    if ";" not in text:
        listed = _SENTENCE_END.split(listed, maxsplit=1)[0]
    listed = listed.rstrip(" .")
    parts = listed.split(";") if ";" in listed else _between_commas(listed)

    # "kind, brave, because of history": keywords end where a reason begins.
    before_reason = takewhile(lambda part: not _WHY.match(part.strip()), parts)
    items = [_item(_AND.sub("", part).strip()) for part in before_reason]
    # Two parts without an introduction may be any sentence with a comma.
    least = 2 if introduction else 3
    if len(items) < least or not all(item.keyword for item in items):
        return []
    return items


def _between_commas(text: str) -> list[str]:
    """Split a text at commas and before a last "and", except in brackets.

    Blank parts are left out.
    """
    parts = [""]
    for number, piece in enumerate(_BRACKET.split(text)):
        # re.split gives the brackets themselves as every second piece.
        is_bracket = number % 2 == 1
        first, *others = [piece] if is_bracket else _COMMA.split(piece)
        parts[-1] += first
        parts += others
    return [part for part in parts if part.strip()]


def _numbered(lines: Sequence[_Line], count: int) -> list[str]:
    """Find the first sentences in a row that are numbered from 1 to `count`.

    Return an empty list if there are no such sentences.
    """
    sentences: list[str] = []
    for line in lines:
        if len(sentences) == count:
            break
        # Another 1 begins another numbering.
        if line.digits == "1":
            sentences = []

        counts_on = line.digits == str(len(sentences) + 1)
        is_sentence = line.text.count(" ") > 2 and not line.item.keyword
        if counts_on and is_sentence:
            sentences.append(line.text)
    return sentences if len(sentences) == count else []


def _sentences_by_start(text: str) -> dict[str, str]:
    """Find the first sentence that begins with each one, two or three words.

    Sentences of fewer than five words are left out.
    """
    sentences: dict[str, str] = {}
    for part in re.split(r"(?<=[.!?])\s|\n", _EMPHASIS.sub("", text)):
        mark = _MARK.match(part)
        assert mark is not None  # each part of the pattern is optional
        sentence = part[mark.end() :].strip()
        words = sentence.split(" ", 4)
        # A sentence of fewer than five words is hardly a reason.
        if len(words) < 5:
            continue

        for count in (1, 2, 3):
            start = " ".join(words[:count]).lower()
            sentences.setdefault(start, sentence)
    return sentences
