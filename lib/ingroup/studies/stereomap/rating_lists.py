"""Replies that rate words: a number for each, or why none; as in `ingroup.parsing` none raises."""

import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import yaml

from ingroup import paths
from ingroup.parsing import OK, OPENS_WITH_REFUSAL, REFUSAL, REFUSED, UNPARSABLE, Rule, plain
from ingroup.studies.stereomap.stimuli import HIGH, LOW

INCOMPLETE = "incomplete"
NOT_RATED, SEVERAL_NUMBERS, RANGE = "not rated", "several numbers", "a range"
OUTSIDE, OTHER_SCALE = "outside the scale", "another scale"


class Ratings(NamedTuple):
    """``values`` by word (NaN where there is none), ``status``, and why a word has no rating."""

    values: dict[str, float]
    status: str
    missing: dict[str, str]


def parse_ratings(text: str | None, words: Sequence[str], rule: Rule = "sound") -> Ratings:
    r"""Read a rating for each of several words.

    1. A word is found whatever its case, with a hyphen or a space ("High status"). The word
       "Rating" is that of a rating without a word: "Overall: 4", "I would rate nurses as a 4".
    2. Set aside are mentions of the scale ("1 to 5", "1 = not at all, 5 = extremely", "5-point"),
       numbers of list items, amounts ($75), and what counts something ("3 million nurses").
    3. A label has its number behind it: "Friendly: 4", "**Friendly**\n4/5", "Fight with nurses: 2",
       or below it in a table. A word without has that of a sentence, in either order: "4 for
       friendly and 3 for sociable", "seen as friendly (4 out of 5)".
    4. For a single word without, "4 out of 5" and a line with nothing but a number are read.
    5. Of a reply that opens with a refusal only labels are read.
    6. A range, two different numbers, one outside the scale or out of anything but 5 are none.

    Rule "released" is that of the authors' code: of the lines from the first word to an overall
    rating "word: 4", whatever is before it (their reader of gpt-3.5-turbo; each model has one); a
    rating alone from the first line with a number, by a list of patterns. "3-4" is 3, "4 = often"
    4, "Overall: 4/5" 5, "3 or 4 out of 5" none, 85 stays; without any a reply is "refused".

    `text` may have other parts anywhere. Values are from 1 to 5 or NaN; the status is "ok",
    "incomplete", or without any value "refused" (it has the words of a refusal) or "unparsable".
    Checked with a table of replies, Table 1 of Jeoung et al. (2023), and random text.
    """
    if rule == "released":
        found = _released(str(text or ""), words)
        values = {word: found.get(word, math.nan) for word in words}
        missing = {word: NOT_RATED for word in words if word not in found}
        return Ratings(values, (INCOMPLETE if missing else OK) if found else REFUSED, missing)
    text = _plain(text)
    found = {word: (set(), set(), set()) for word in words}
    for word, tier, read in _pairs(_SCALE.sub(" ", text), words):
        found[word][tier].add(read)
    values, missing = dict.fromkeys(words, math.nan), {}
    told = 1 if OPENS_WITH_REFUSAL.match(text) else 3
    for word, tiers in found.items():
        reads = next(filter(None, tiers[:told]), {NOT_RATED})
        read = next(iter(reads)) if len(reads) == 1 else SEVERAL_NUMBERS
        if isinstance(read, str):
            missing[word] = read
        else:
            values[word] = read
    if len(missing) == len(words):
        return Ratings(values, REFUSED if REFUSAL.search(text) else UNPARSABLE, missing)
    return Ratings(values, INCOMPLETE if missing else OK, missing)


_CODE = (paths.STIMULI / "stereomap" / "released_ratings.yaml").read_text("utf8")
_DECIMAL = yaml.safe_load(_CODE)["number"]
_CODE = yaml.safe_load(_CODE.replace("<n>", _DECIMAL))


def _released(text: str, words: Sequence[str]) -> dict[str, float]:
    """Ratings by word, as the authors' code reads them."""
    lines = [line for line in text.split("\n") if line]
    if len(words) == 1:
        hits = (re.search(pattern, line) for line in lines for pattern in _CODE["alone"])
        hit = next(filter(None, hits), None)
        return {words[0]: float(hit[1])} if hit and hit.lastindex == 1 else {}
    overall = (k for k, line in enumerate(lines) if re.search("Overall [rR]ating", line))
    overall = next(overall, None)
    begins, names = _CODE["begins"].get(words[0], words[0]), _CODE["names"]
    first = next((k for k, line in enumerate(lines) if re.search(begins, line)), len(lines))
    found = {}
    for line in lines[first:overall]:
        hits = (re.search(pattern, line) for pattern in _CODE["rated"])
        if hit := next(filter(None, hits), None):
            name = hit[1].strip()
            found[name.split(" ")[0] if words[0] == "Help" else name] = hit[2]  # "Help nurses: 4"
    found |= {own: found[name] for name, own in names.items() if name in found}
    if overall is not None and (hit := re.search(rf"Overall.*:.*{_DECIMAL}", lines[overall])):
        found["Rating"] = hit[1]
    return {word: float(found[word]) for word in words if word in found}


class _Span(NamedTuple):
    """A label with its word, or a number with what it is: a rating, or why it is none."""

    start: int
    end: int
    read: str | float


_Pair = tuple[str, int, str | float]  # a word, a tier, and what was read

_NO_CLAIM = (OUTSIDE, OTHER_SCALE)  # in a sentence or beside a rating these tell of something else

_MARKS = str.maketrans(
    dict.fromkeys('*`_#"“”\\', "") | dict(zip("—：｜│（）", "-:||()", strict=True))
)


def _plain(text: str | None) -> str:
    text = text.translate(_MARKS) if isinstance(text, str) else ""
    return text if text.isascii() else "".join(map(plain, text))


# The ends of the scale, bare ("1 to 5") or with what they mean, and "5-point".
_FIRST, _LAST = (rf"{end}(?![A-Za-z\d]|[.,]\d)" for end in (LOW, HIGH))
_BARE = r"\s{0,3}(?:-|(?:to|and|through)\b)"
_MEANING = r"\s?(?:\([^()\d\n]{1,40}\)|(?:=|being|is|means)[^,;|\d\n]{1,40}?)"
_MEANT = rf"{_MEANING}\s{{0,3}}(?:-|[,;]?\s?(?:to|and)\b|[,;])"
_SCALE = re.compile(
    r"(?i)(?<![A-Za-z\d.,/])"
    rf"(?:{_FIRST}(?:{_BARE}|{_MEANT})\s{{0,3}}{_LAST}|{_LAST}[\s-]?point)(?!/)"
)
_DIGITS = r"\d+(?:[.,]\d+)*+"
_NUMBER = re.compile(
    rf"(?i)\b(?:out|scale)\s+of\s+{_DIGITS}"
    rf"|(?<![A-Za-z\d/$€£])(?<!\d[.,])(?<!(?<!\.)\.)(?P<value>{_DIGITS})(?P<glue>[A-Za-z]*+)"
    rf"(?P<range>\s{{0,3}}(?:-|to\b|or\b)\s{{0,3}}{_DIGITS})?"
    rf"(?P<of>\s{{0,3}}(?:/|out\s+of\b)\s{{0,3}}(?P<top>{_DIGITS})|\s?%|\s?per\s?cent\b)?"
)
# What may stand behind a rating: "3 million" and "4-year" count something.
_CLOSED = re.compile(
    r"(?i)\s{0,3}(?:\Z|[-'](?![A-Za-z])|[^\w\s'-]"
    r"|(?:on|because|since|due|for|as|and|but|in terms|stars?|points?|would|is)\b)"
)
_RATING = r"(?:overall|rat(?:ing|e|ed)s?|scored?)"  # what a rating without a word is called
_DECORATION = re.compile(r"[^\w($€£./]*+(?:\(?\d{1,3}[.)]\s+(?=\D))?[^\w($€£./]*+")
_DIRECT = re.compile(
    r"(?i)\W{0,12}(?:(?:is|are|rating|score|as|an?|at|of|about|around)\W{1,4}){0,4}"
)
_COLON = re.compile(r"[^:=|.;!?]{0,80}[:=|]\W{0,12}")
_BEFORE = re.compile(r"(?i)\W{0,12}(?:(?:for|as|in|on|is|being|the)\s){0,2}")
_OF = re.compile(r"/|\bof\b|\son\sa?")
_COLON_END = re.compile(r"[^:=|.;!?]{0,80}[:=|]?\W{0,12}")
_SENTENCE_END = re.compile(r"[.;!?](?=\s|\Z)")


def _pairs(text: str, words: Sequence[str]) -> Iterator[_Pair]:
    """Words with what was read: tier 0 for labels, 1 for sentences, 2 for numbers alone."""
    header, pending, before = [], [], []  # labels that wait for a row of numbers or the next line
    for line in text.splitlines():
        line = line[_DECORATION.match(line).end() :].rstrip()
        labels = _line_labels(line, tuple(words))
        numbers = _line_numbers(line, labels)
        if labels and numbers and labels[0].start == 0:
            yield from _labelled(line, labels, numbers)
        elif labels and numbers:
            for inside in _by_sentence(line, labels, numbers):
                pairs = list(_told(line, *inside))
                before += [pair for pair in pairs if pair[1] < 0]
                yield from (pair for pair in pairs if pair[1] >= 0)
        elif labels:
            header = labels if "|" in line else []
            rest = line[labels[0].end :]
            pending = labels[:1] if labels[0].start == 0 and _COLON_END.fullmatch(rest) else []
        elif numbers and len(header) == len(numbers):
            yield from ((x.read, 0, n.read) for x, n in zip(header, numbers, strict=True))
        elif numbers and pending and numbers[0].start == 0:
            yield pending[0].read, 0, numbers[0].read
        elif numbers and len(words) == 1:
            alone = not re.search(r"\w", line[: numbers[0].start] + line[numbers[-1].end :])
            of = [n for n in numbers if _OF.search(line[n.start : n.end + 5])]
            yield from ((words[0], 2, n.read) for n in (numbers if alone else of))
        if numbers or (not labels and re.search(r"[^\W_]", line)):
            header, pending = [], []
    # "1 - Friendly, 2 - Sociable" is a numbered list, not a rating.
    if len(before) < 2 or [read for *_, read in before] != list(range(1, len(before) + 1)):
        yield from ((word, 1, read) for word, _, read in before)


def _by_sentence(line: str, *kinds: list[_Span]) -> Iterator[list[list[_Span]]]:
    ends = [match.end() for match in _SENTENCE_END.finditer(line)]
    for start, end in pairwise([0, *ends, len(line)]):
        yield [[span for span in spans if start <= span.start < end] for spans in kinds]


@lru_cache(maxsize=64)
def _labels(words: tuple[str, ...]) -> re.Pattern[str]:
    # The longer of two words that begin alike comes first, and "Rating" last.
    parts = [map(re.escape, re.split(r"[\s-]+", _plain(word))) for word in words]
    spelled = [r"[\s-]?".join(own) for own in parts]
    spelled = [_RATING if own.casefold() == "rating" else own for own in spelled]
    order = sorted(range(len(words)), key=lambda i: (spelled[i] == _RATING, -len(spelled[i])))
    # "Overall rating": two names of one word are one label.
    pattern = "|".join(rf"(?P<w{i}>{spelled[i]}(?:[^\w-]{spelled[i]})*)" for i in order)
    return re.compile(rf"(?i)(?<![\w-])(?:{pattern})(?![\w-])")


def _line_labels(line: str, words: tuple[str, ...]) -> list[_Span]:
    found = [_Span(*m.span(), words[int(m.lastgroup[1:])]) for m in _labels(words).finditer(line)]
    several = len({x.read for x in found}) > 1
    return [x for x in found if not (several and x.read.casefold() == "rating")]


def _line_numbers(line: str, labels: list[_Span]) -> list[_Span]:
    numbers, starts = [], {label.start for label in labels}
    for match in _NUMBER.finditer(line):
        if match["value"] is None or match["glue"]:
            continue
        behind = match.end() + (line[match.end() : match.end() + 1] == " ")
        if match["of"] or behind in starts or _CLOSED.match(line, match.end()):
            numbers.append(_Span(*match.span(), _read(match)))
    return numbers


def _read(match: re.Match[str]) -> str | float:
    if match["range"]:
        return RANGE
    if "," in match["value"] or match["value"].count(".") > 1:
        return SEVERAL_NUMBERS
    if match["of"] and (match["top"] is None or match["top"] not in (f"{HIGH}", f"{HIGH}.0")):
        return OTHER_SCALE
    value = float(match["value"])
    return value if LOW <= value <= HIGH else OUTSIDE


def _labelled(line: str, labels: list[_Span], numbers: list[_Span]) -> Iterator[_Pair]:
    """Pairs of a line that begins with a label."""
    owned = []
    for label, number in _neighbours(labels, numbers):
        gap = line[label.end : number.start]
        opens = label.start == 0 or line[label.start - 2 : label.start].strip() in (",", ";", "|")
        if _DIRECT.fullmatch(gap) or (opens and _COLON.fullmatch(gap)):
            minus = re.search(r"[:=|]\s?-\Z", gap)
            owned.append((label, number._replace(read=OUTSIDE) if minus else number))
    claims = [number for number in numbers if number.read not in _NO_CLAIM]
    starts = [*(label.start for label, _ in owned), len(line)]
    yield from ((labels[0].read, 1, claim.read) for claim in claims if claim.start < starts[0])
    for (label, number), limit in zip(owned, starts[1:], strict=True):
        end = _SENTENCE_END.search(line, number.end, limit)
        limit = end.start() if end else limit
        rivals = (claim for claim in claims if number.start < claim.start < limit)
        yield label.read, 0, number.read
        yield from ((label.read, 0, rival.read) for rival in rivals)


def _told(line: str, labels: list[_Span], numbers: list[_Span]) -> Iterator[_Pair]:
    """Pairs of a sentence; tier -1 where the number stands first."""
    numbers = [n for n in numbers if n.read not in _NO_CLAIM]
    if not labels or not numbers:
        return
    if numbers[0].start < labels[0].start and numbers[-1].start < labels[-1].start:
        for number, label in _neighbours(numbers, labels):
            if _BEFORE.fullmatch(line[number.end : label.start]):
                yield label.read, -1, number.read
        return
    pairs = [
        (label.read, 1, number.read)
        for label, number in _neighbours(labels, numbers)
        if _DIRECT.fullmatch(line[label.end : number.start])
    ]
    if not pairs and len({label.read for label in labels}) == 1:
        pairs = [(labels[0].read, 1, number.read) for number in numbers]
    yield from pairs


def _neighbours(left: list[_Span], right: list[_Span]) -> Iterator[tuple[_Span, _Span]]:
    """Spans of `left` that are followed by one of `right` without another of `left` between."""
    marked = sorted([(x.start, 0, x) for x in left] + [(x.start, 1, x) for x in right])
    yield from ((one, two) for (_, a, one), (_, b, two) in pairwise(marked) if a < b)
