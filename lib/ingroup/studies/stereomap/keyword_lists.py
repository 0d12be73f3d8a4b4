"""Replies that list keywords, each with its reason; as in `ingroup.parsing` no reply raises."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from ingroup.parsing import APOSTROPHES, OK, REFUSAL, REFUSED, UNPARSABLE

TOO_FEW, TOO_MANY = "too few", "too many"


class Keywords(NamedTuple):
    """Different keywords in lower case, the reason of each ("" where none), and a status."""

    words: tuple[str, ...]
    reasons: tuple[str, ...]
    status: str


@lru_cache(1 << 16)  # rounds repeat replies, and each is read by several rules
def parse_keywords(text: str | None, n: int) -> Keywords:
    """Read the list of keywords that a reply gives, with the reason of each.

    1. A list is: numbered or bulleted items, words in bold or alone on their lines, the rows of a
       table, "Keyword: reason", or words with commas or semicolons between them. An item is a
       keyword of one to three words up to a colon, dash, bracket or the end, and its reason follows
       or stands in the next line.
    2. Of several lists the first that has `n` different keywords is taken, else the first. Ratings
       ("Friendly: 4"), headings ("Reasons:") and reasons ("because of history") are no items; a
       word such as "sure" or "emotion" is one where it is no heading ("2. Sure", "Emotion: x").
    3. A keyword without a reason in its list has the one that another list gives for the same word,
       or the first sentence that begins with it ("Wealth refers to ..."). Where a list gives no
       reason at all, as many numbered sentences ("1. They are seen as ...") are the reasons.

    `n` keywords were asked for; all different ones of the list are given, each once. The status is
    "ok", "too few" or "too many"; without a list "refused" if the reply has the words of a refusal,
    else "unparsable". Checked with a table of replies, Tables 1 and 11 of Jeoung et al. (2023), and
    random text.
    """
    text = text.translate(_QUOTES) if isinstance(text, str) else ""
    lists = _lists(text)
    if not lists:
        return Keywords((), (), REFUSED if REFUSAL.search(text) else UNPARSABLE)
    distinct = [dict.fromkeys(word for word, _ in items) for items in lists]
    chosen = next((i for i, words in enumerate(distinct) if len(words) == n), 0)
    given: dict[str, str] = {}
    for word, reason in lists[chosen] + [item for items in lists for item in items]:
        given[word] = given.get(word) or reason
    words = tuple(distinct[chosen])
    if not any(given[word] for word in words):
        given.update(zip(words, _numbered(text, len(words)), strict=False))
    spoken = _spoken(text) if not all(given[word] for word in words) else {}
    status = TOO_FEW if len(words) < n else TOO_MANY if len(words) > n else OK
    return Keywords(words, tuple(given[word] or spoken.get(word, "") for word in words), status)


_SENTENCE_END = re.compile(r"[.;!?](?=\s|\Z)")
_QUOTES = dict.fromkeys(map(ord, APOSTROPHES), "'") | dict.fromkeys(map(ord, '"“”«»`'), None)
_QUOTES |= dict.fromkeys(map(ord, "‐‑"), "-") | {ord("："): ": ", ord("│"): "|"}
_MARK = re.compile(
    r"(?i)(?P<indent>\s*)(?P<bullet>[-•·‣◦+–—▪●|]\s*|\*\s+)?(?P<bold>\*{2,}|__)?"
    r"(?P<number>(?:(?:keyword|verb|reason|word)\s?#?)?\(?(?P<count>\d{1,3})"
    r"(?:\s?[.):|]|\s-)(?:\s+|(?=\*)))?"
    r"(?P<inner>\*{2,}|__)?"
)
_EMPHASIS = re.compile(r"[*_#]+")
_HEAD = re.compile(
    r"(?i)(?P<head>[^:;|.,!?()=\n]{1,60}?)\s*(?P<sign>\s[-–—]+(?=\s|\Z)|[–—]|-\s|[:|(=.]|\Z"
    r"|(?P<why>,?\s(?=(?:because|due to|since|as they)\b)))"
)
_NAME = re.compile(r"[^\W\d_](?:[\w'/&-]|\.(?=\w)|\s(?=[\w&])){0,50}")
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
_WHY = re.compile(
    r"(?i)(?:because|due to|since|as (?:they|the|an?)|for (?:their|the)|they|this|these|there"
    r"|people (?:are|do|have|like|say|see|think))\b"
)
_BECAUSE = re.compile(r"(?i)(?:reasons?|explanation|description|why)\s?:\s*(.+)")
_RATED = re.compile(r"\W*\d(?:[.,]\d+)?(?:\s*/\s*\d+|\s+out\s+of\s+\d+)?\W*(?:\Z|[^\w\s%])")
_INTRODUCED = re.compile(
    r"(?i)[^:]{0,150}?\b(?:keywords?|verbs?|words|feelings|emotions|traits|characteristics|reasons"
    r"|reply|response)\b[^:]{0,150}?"
    r"(?::|\b(?:are|is|include)\b:?)\s*"
)


def _lists(text: str) -> list[list[tuple[str, str]]]:
    """Every list of a text: its keywords, each with a reason or ""."""
    found: list[tuple[str, list[tuple[str, str]]]] = []
    items: list[tuple[str, str]] = []
    kind, indent = "", 0  # of the list: "number", "bullet" or "", and where its lines begin
    for mark, rest in _lines(text):
        if not rest:
            continue
        marked = "number" if mark["number"] else "bullet" if mark["bullet"] else ""
        loose, depth = not (marked or mark["bold"] or mark["inner"]), len(mark["indent"])
        whole = _HEAD.match(rest)
        if loose and kind == "bullet" and whole and _RATED.match(rest[whole.end() :]):
            items, kind = [], ""  # a rating: what is bulleted next is another list
            continue
        because = _BECAUSE.fullmatch(rest)
        inline = [] if because and items else _inline(rest)
        head, sign, reason = _item(rest)
        heading = rest.endswith(":") if loose and kind else not head and sign
        begins = head and (not loose or sign not in (".", "|"))
        below = marked and kind not in ("", marked) and (depth > indent or not head)
        told = because or below or (loose and not heading and (kind or not begins))
        if items and told and not inline:
            word, known = items[-1]
            items[-1] = (word, known or (because[1] if because else rest))
        elif inline or not begins:
            if inline or heading or marked != kind:
                items = []
                found.append(("inline", inline))
        else:
            if not items or kind != marked or depth < indent or mark["count"] == "1":
                items, kind, indent = [], marked, depth
                found.append((kind, items))
            items.append((head, reason))
    # A single word on a line is a list only behind a number or a bullet; headings alone are none.
    listed = [items for kind, items in found if len(items) > (0 if kind else 1)]
    return [items for items in listed if not all(_EITHER.fullmatch(word) for word, _ in items)]


def _lines(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Marks of lines and what follows; a line is also broken before numbers that count on."""
    for line in text.splitlines():
        start, expected, parts = 0, 1, []
        for match in re.finditer(r"(?<![^\s,;:])\(?(\d{1,3})[.)]\s", line):
            if int(match[1]) == expected:
                if match.start() > start:
                    parts.append(line[start : match.start()].rstrip(" ,;"))
                start, expected = match.start(), expected + 1
            elif match.start() < 20 and not line[: match.start()].strip():
                expected = int(match[1]) + 1
        for part in (*parts, line[start:]):
            mark = _MARK.match(part)
            yield mark, _EMPHASIS.sub("", part[mark.end() :]).strip()


def _item(line: str) -> tuple[str, str, str]:
    """Keyword, sign and reason of an item; "" for the keyword where there is none."""
    match = _HEAD.match(line)
    if not match:
        return "", "", ""
    head, sign, reason = match["head"].strip(" '"), match["sign"].strip(), line[match.end() :]
    if not _NAME.fullmatch(head) or head.count(" ") > 2 or _WHY.match(head):
        return "", "", ""
    either = _EITHER.fullmatch(head) and (sign != ":" or reason.strip())
    if (_NO_KEYWORD.fullmatch(head) and not either) or _RATED.match(reason):
        return "", sign or ":", ""
    return head.lower(), "." if match["why"] else sign, reason.strip(" )|-–—")


def _inline(line: str) -> list[tuple[str, str]]:
    """Keywords with commas or semicolons between them, up to the end of the sentence."""
    introduced = _INTRODUCED.match(line)
    start = introduced.end() if introduced else 0
    end = _SENTENCE_END.search(line, start) if ";" not in line else None
    listed = line[start : end.start() if end else len(line)].rstrip(" .")
    parts = listed.split(";") if ";" in listed else _commas(listed)
    last = next((k for k, part in enumerate(parts) if k and _WHY.match(part.strip())), None)
    parts = parts[:last]  # "kind, brave, because of history"
    items = [_item(re.sub(r"\A\W*(?:and|or|&)\s", "", part).strip()) for part in parts]
    least = 2 if introduced else 3
    if len(items) < least or not all(head for head, _, _ in items):
        return []
    return [(head, reason) for head, _, reason in items]


def _commas(text: str) -> list[str]:
    """Parts between commas, of which those in brackets are none."""
    parts = [""]
    for place, piece in enumerate(re.split(r"(\([^()]*\))", text)):
        first, *others = [piece] if place % 2 else re.split(r",|\sand\s(?=\S+\Z)", piece)
        parts[-1] += first
        parts += others
    return [part for part in parts if part.strip()]


def _numbered(text: str, count: int) -> list[str]:
    """The first sentences of a text that are numbered from 1 to `count`; [] if there are none."""
    run: list[str] = []
    for mark, rest in _lines(text):
        if mark["number"] and len(run) < count:
            run = [] if mark["count"] == "1" else run
            counts_on = mark["count"] == str(len(run) + 1)
            if counts_on and rest.count(" ") > 2 and not _item(rest)[0]:
                run.append(rest)
    return run if len(run) == count else []


def _spoken(text: str) -> dict[str, str]:
    """Sentences by the one, two and three words with which they begin, the first of each."""
    sentences: dict[str, str] = {}
    for sentence in re.split(r"(?<=[.!?])\s|\n", _EMPHASIS.sub("", text)):
        sentence = sentence[_MARK.match(sentence).end() :].strip()
        words = sentence.split(" ", 4)
        for count in range(1, 4 if len(words) > 4 else 1):
            sentences.setdefault(" ".join(words[:count]).lower(), sentence)
    return sentences
