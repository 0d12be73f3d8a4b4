"""Ratings of words in replies: a number, or the reason why a word has no number.

No reply raises an error.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

import yaml

from ingroup import paths
from ingroup.parsing import OK, OPENS_WITH_REFUSAL, REFUSAL, REFUSED, UNPARSABLE, Rule, as_ascii
from ingroup.studies.stereomap.stimuli import HIGH, LOW

INCOMPLETE = "incomplete"
NOT_RATED = "not rated"
SEVERAL_NUMBERS = "several numbers"
RANGE = "a range"
OUTSIDE = "outside the scale"
OTHER_SCALE = "another scale"


class Ratings(NamedTuple):
    """``values`` by word (NaN if missing), ``status``, and the reason for each missing value."""

    values: dict[str, float]
    status: str
    missing: dict[str, str]


def parse_ratings(
    text: str | None,
    words: Sequence[str],
    rule: Rule = "sound",
) -> Ratings:
    r"""Read a rating for each of several words.

    Parameters
    ----------
    text : str or None
        The reply. It may have other parts anywhere.
    words : sequence of str
        The words to rate. "Rating" stands for a rating without a word.
    rule : {"sound", "released"}
        The rules below, or the rules of the authors' code.

    Returns
    -------
    Ratings
        Values are from 1 to 5 or NaN. The status is "ok", "incomplete", or without any value
        "refused" (the reply has the words of a refusal) or "unparsable".

    Notes
    -----
    1. A word is recognised in any case, with a hyphen or a space ("High status"). A rating without
       a word reads, for example, "Overall: 4" or "I would rate nurses as a 4".
    2. Mentions of the scale are set aside ("1 to 5", "1 = not at all, 5 = extremely", "5-point"),
       and so are numbers of list items, amounts ($75) and counts ("3 million nurses").
    3. A label has its number behind it, or below it in a table: "Friendly: 4",
       "**Friendly**\n4/5", "Fight with nurses: 2". A word without a label has the number of its
       sentence, in either order: "4 for friendly and 3 for sociable", "seen as friendly (4 out of
       5)".
    4. A single word that has neither takes "4 out of 5", or a line with nothing but a number.
    5. In a reply that opens with a refusal only labels are read.
    6. A range or two different numbers are not a rating, nor is a number outside the scale or out
       of anything but 5.

    Rule "released" is that of the authors' code (their reader of gpt-3.5-turbo; each model has
    one). It reads "word: 4" in the lines from the first word to an overall rating, with any text
    before the word. It reads a rating alone from the first line with a number, by a list of
    patterns. "3-4" is read as 3, "4 = often" as 4 and "Overall: 4/5" as 5. "3 or 4 out of 5" is no
    rating, and 85 stays. A reply without any rating is "refused".

    Checked with a table of replies, Table 1 of Jeoung et al. (2023), and random text.
    """
    if rule == "released":
        return _released(str(text or ""), words)

    reply = _plain(text)
    ratings = defaultdict(set)
    # The mentions of the scale are taken out (rule 2), as their numbers are no ratings.
    for reading in _readings(_SCALE.sub(" ", reply), words):
        ratings[reading.word, reading.tier].add(reading.rating)

    opens_with_refusal = OPENS_WITH_REFUSAL.match(reply)
    tiers = [_LABEL] if opens_with_refusal else [_LABEL, _SENTENCE, _ALONE]
    values = dict.fromkeys(words, math.nan)
    missing = {}
    for word in words:
        rating = _decide(word, tiers, ratings)
        if isinstance(rating, str):
            missing[word] = rating
        else:
            values[word] = rating

    if len(missing) == len(words):
        status = REFUSED if REFUSAL.search(reply) else UNPARSABLE
    else:
        status = INCOMPLETE if missing else OK
    return Ratings(values, status, missing)


def _decide(word: str, tiers: Sequence[int], ratings: Mapping) -> float | str:
    """Return a word's rating in the first tier with a reading, or the reason for no rating."""
    for tier in tiers:
        different = ratings[word, tier]
        if len(different) > 1:
            return SEVERAL_NUMBERS
        # The set has one rating, or none, and then the next tier decides.
        for rating in different:
            return rating
    return NOT_RATED


# --- the rule of the authors' code

_PATTERNS = (paths.STIMULI / "stereomap" / "released_ratings.yaml").read_text("utf8")
_DECIMAL = yaml.safe_load(_PATTERNS)["number"]
_CODE = yaml.safe_load(_PATTERNS.replace("<n>", _DECIMAL))
_OVERALL = "Overall [rR]ating"


def _released(text: str, words: Sequence[str]) -> Ratings:
    """Read ratings as the authors' code does."""
    lines = list(filter(None, text.split("\n")))
    read = _released_alone if len(words) == 1 else _released_list
    ratings = read(lines, words)

    values = dict.fromkeys(words, math.nan)
    missing = {}
    for word in words:
        if word in ratings:
            values[word] = float(ratings[word])
        else:
            missing[word] = NOT_RATED

    if len(missing) == len(words):
        return Ratings(values, REFUSED, missing)
    return Ratings(values, INCOMPLETE if missing else OK, missing)


def _released_alone(lines: Sequence[str], words: Sequence[str]) -> dict[str, str]:
    """Read the rating of the only word from the first line that fits a pattern.

    A pattern with two numbers gives no rating.
    """
    for line in lines:
        match = _first_match(_CODE["alone"], line)
        if match:
            # Two numbers in one pattern are a choice, which the code does not make.
            return {words[0]: match[1]} if match.lastindex == 1 else {}
    return {}


def _released_list(lines: Sequence[str], words: Sequence[str]) -> dict[str, str]:
    """Read ratings by word, from the lines between the first word and an overall rating."""
    first = _position(_CODE["begins"].get(words[0], words[0]), lines)
    overall = _position(_OVERALL, lines)
    if first is None:
        first = len(lines)

    ratings = {}
    # Without an overall rating (None) the slice goes on to the last line.
    for line in lines[first:overall]:
        match = _first_match(_CODE["rated"], line)
        if match:
            name = match[1].strip()
            if words[0] == "Help":
                # The prompt has the group behind each of these words, as in "Help nurses: 4".
                name = name.split(" ")[0]
            ratings[name] = match[2]

    # A reply may say "Pride", which the code takes for "Proud".
    for name, word in _CODE["names"].items():
        if name in ratings:
            ratings[word] = ratings[name]
    if overall is not None:
        match = re.search(rf"Overall.*:.*{_DECIMAL}", lines[overall])
        if match:
            ratings["Rating"] = match[1]
    return ratings


def _first_match(patterns: Sequence[str], line: str) -> re.Match[str] | None:
    """Return the match of the first pattern that fits somewhere in a line, or None."""
    for pattern in patterns:
        match = re.search(pattern, line)
        if match:
            return match
    return None


def _position(pattern: str, lines: Sequence[str]) -> int | None:
    """Return the index of the first line in which a pattern fits, or None."""
    for index, line in enumerate(lines):
        if re.search(pattern, line):
            return index
    return None


# --- the sound rule


class _Label(NamedTuple):
    """A word in a line, with its start and end."""

    start: int
    end: int
    word: str


class _Number(NamedTuple):
    """A number in a line, with its rating or the reason why the number is not a rating."""

    start: int
    end: int
    rating: float | str


class _Line(NamedTuple):
    """A line with its labels and numbers, or with the labels and numbers of one sentence."""

    text: str
    labels: list[_Label]
    numbers: list[_Number]


class _Reading(NamedTuple):
    """A rating that a reply gives to a word, or the reason why the number is not a rating."""

    word: str
    tier: int
    rating: float | str


# Tiers of readings: the first tier that has a reading of a word decides.
_LABEL = 0
_SENTENCE = 1
_ALONE = 2
_NUMBER_FIRST = -1  # before its word in a sentence: becomes _SENTENCE unless it numbers a list


class _Waiting(NamedTuple):
    """Labels without a number, which may have their number in a line below."""

    header: Sequence[_Label] = ()  # of a table: a row with as many numbers is expected
    label: _Label | None = None  # of the next line


_MARKS = str.maketrans("—：｜│（）", "-:||()", '*`_#"“”\\')


def _plain(text: str | None) -> str:
    """Remove marks of emphasis and quotation, and write the text in ASCII where possible.

    A text that is not a string becomes "".
    """
    if not isinstance(text, str):
        return ""
    unmarked = text.translate(_MARKS)
    return unmarked if unmarked.isascii() else "".join(map(as_ascii, unmarked))


# The ends of the scale, bare ("1 to 5") or with their meanings, and "5-point".
_ENDS_HERE = r"(?![A-Za-z\d]|[.,]\d)"
_LOW_END = rf"{LOW}{_ENDS_HERE}"
_HIGH_END = rf"{HIGH}{_ENDS_HERE}"
_BARE = r"\s{0,3}(?:-|(?:to|and|through)\b)"
_MEANING = r"\s?(?:\([^()\d\n]{1,40}\)|(?:=|being|is|means)[^,;|\d\n]{1,40}?)"
_MEANT = rf"{_MEANING}\s{{0,3}}(?:-|[,;]?\s?(?:to|and)\b|[,;])"
_SCALE = re.compile(
    r"(?i)(?<![A-Za-z\d.,/])"
    rf"(?:{_LOW_END}(?:{_BARE}|{_MEANT})\s{{0,3}}{_HIGH_END}|{_HIGH_END}[\s-]?point)(?!/)"
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
# What a line may begin with: marks, and the number of a list item.
_DECORATION = re.compile(r"[^\w($€£./]*+(?:\(?\d{1,3}[.)]\s+(?=\D))?[^\w($€£./]*+")
# Between a label and its number, directly or behind a colon.
_DIRECT = re.compile(
    r"(?i)\W{0,12}(?:(?:is|are|rating|score|as|an?|at|of|about|around)\W{1,4}){0,4}"
)
_COLON = re.compile(r"[^:=|.;!?]{0,80}[:=|]\W{0,12}")
_COLON_END = re.compile(r"[^:=|.;!?]{0,80}[:=|]?\W{0,12}")  # behind one that waits
# Between a number and the label that it stands before: "4 for friendly".
_BEFORE = re.compile(r"(?i)\W{0,12}(?:(?:for|as|in|on|is|being|the)\s){0,2}")
_OF = re.compile(r"/|\bof\b|\son\sa?")
_SENTENCE_END = re.compile(r"[.;!?](?=\s|\Z)")
_WORD_CHARACTER = re.compile(r"[^\W_]")
_MINUS = re.compile(r"[:=|]\s?-\Z")


def _readings(text: str, words: Sequence[str]) -> list[_Reading]:
    """Read all ratings of the words in a text, line by line."""
    readings = []
    waiting = _Waiting()
    for decorated in text.splitlines():
        line = _read_line(decorated, tuple(words))
        if line.labels and line.numbers:
            begins_with_label = line.labels[0].start == 0
            readings += _labelled(line) if begins_with_label else _in_sentences(line)
        elif line.numbers:
            readings += _without_label(line, waiting, words)

        if line.labels and not line.numbers:
            waiting = _wait(line)
        # Words or numbers end the wait; a blank line, or a rule of a table, does not.
        elif line.numbers or _WORD_CHARACTER.search(line.text):
            waiting = _Waiting()

    # Numbers before words may number a list, which only all of them together show.
    number_first = [reading for reading in readings if reading.tier == _NUMBER_FIRST]
    if not _number_a_list(number_first):
        for reading in number_first:
            readings.append(reading._replace(tier=_SENTENCE))
    return readings


def _read_line(decorated: str, words: tuple[str, ...]) -> _Line:
    """Take the marks and numbers of list items off a line, and find its labels and numbers."""
    decoration = _DECORATION.match(decorated)
    assert decoration is not None  # it may be empty
    text = decorated[decoration.end() :].rstrip()
    labels = _labels(text, words)
    return _Line(text, labels, _numbers(text, labels))


def _number_a_list(readings: Sequence[_Reading]) -> bool:
    """Tell whether numbers before words number a list: "1 - Friendly, 2 - Sociable"."""
    for number, reading in enumerate(readings, start=1):
        if reading.rating != number:
            return False
    return len(readings) > 1


def _wait(line: _Line) -> _Waiting:
    """Select the labels of a line without a number that lines below may rate."""
    # In a table, the numbers stand in a row below their labels.
    header = line.labels if "|" in line.text else ()
    first = line.labels[0]
    behind = line.text[first.end :]
    if first.start == 0 and _COLON_END.fullmatch(behind):
        return _Waiting(header, first)
    return _Waiting(header)


def _without_label(
    line: _Line,
    waiting: _Waiting,
    words: Sequence[str],
) -> list[_Reading]:
    """Read the ratings of a line with numbers and no label.

    Labels of a line above may wait for these numbers.
    """
    readings = []
    if len(waiting.header) == len(line.numbers):
        for label, number in zip(waiting.header, line.numbers, strict=True):
            readings.append(_Reading(label.word, _LABEL, number.rating))
        return readings

    first = line.numbers[0]
    if waiting.label and first.start == 0:
        return [_Reading(waiting.label.word, _LABEL, first.rating)]
    # A bare number is a rating only where one word is asked about (rule 4).
    if len(words) > 1:
        return []

    last = line.numbers[-1]
    around = line.text[: first.start] + line.text[last.end :]
    has_words = re.search(r"\w", around)
    for number in line.numbers:
        # Beside words, a number is a rating only with its scale behind it: "/5", "out of 5", or
        # "on a" with the scale taken out.
        behind = line.text[number.start : number.end + 5]
        if not has_words or _OF.search(behind):
            readings.append(_Reading(words[0], _ALONE, number.rating))
    return readings


@lru_cache(maxsize=64)
def _label_pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    """Compile a pattern of words, with the group w<k> for the k-th word."""
    spellings = {}
    for index, word in enumerate(words):
        spellings[f"w{index}"] = _spelling(word)

    # The longer of two words that begin alike comes first, and "Rating" last.
    longest_first = sorted(spellings, key=lambda name: len(spellings[name]), reverse=True)
    order = sorted(longest_first, key=lambda name: spellings[name] == _RATING)
    alternatives = []
    for name in order:
        spelling = spellings[name]
        # "Overall rating": two names of one word are one label.
        alternatives.append(rf"(?P<{name}>{spelling}(?:[^\w-]{spelling})*)")
    return re.compile(rf"(?i)(?<![\w-])(?:{'|'.join(alternatives)})(?![\w-])")


def _spelling(word: str) -> str:
    """Write a pattern of a word, with hyphens, spaces or nothing between its parts.

    "Rating" has a pattern of its own.
    """
    unmarked = _plain(word)
    if unmarked.casefold() == "rating":
        return _RATING
    parts = re.split(r"[\s-]+", unmarked)
    return r"[\s-]?".join(map(re.escape, parts))


def _labels(line: str, words: tuple[str, ...]) -> list[_Label]:
    """Find the words that a line names. "Rating" counts only where no other word is named."""
    labels = []
    for match in _label_pattern(words).finditer(line):
        group = match.lastgroup or ""  # each word is a group, so that one of them matched
        index = int(group.removeprefix("w"))
        labels.append(_Label(*match.span(), words[index]))

    if _count_words(labels) > 1:
        return [label for label in labels if label.word.casefold() != "rating"]
    return labels


def _count_words(labels: Sequence[_Label]) -> int:
    """Count the different words of labels."""
    return len({label.word for label in labels})


def _numbers(line: str, labels: Sequence[_Label]) -> list[_Number]:
    """Find the numbers of a line that may be ratings, without counts such as "3 million"."""
    label_starts = {label.start for label in labels}
    numbers = []
    for match in _NUMBER.finditer(line):
        # This leaves out "out of 5" with no number before it, and numbers such as "4th".
        if match["value"] is None or match["glue"]:
            continue

        end = match.end()
        following = end + 1 if line.startswith(" ", end) else end
        # "4 friendly" is a rating, while "4 million" counts something.
        is_before_label = following in label_starts
        if match["of"] or is_before_label or _CLOSED.match(line, end):
            numbers.append(_Number(*match.span(), _rating(match)))
    return numbers


def _rating(match: re.Match[str]) -> float | str:
    """Read a number as a rating, or give the reason why the number is not a rating."""
    value = match["value"]
    if match["range"]:
        return RANGE
    if "," in value or value.count(".") > 1:
        return SEVERAL_NUMBERS
    # A per cent sign has no top, and so is another scale.
    if match["of"] and match["top"] not in (f"{HIGH}", f"{HIGH}.0"):
        return OTHER_SCALE
    number = float(value)
    return number if LOW <= number <= HIGH else OUTSIDE


def _labelled(line: _Line) -> list[_Reading]:
    """Read the ratings of a line that begins with a label."""
    pairs = _labels_with_numbers(line)
    claims = _claims(line.numbers)
    # A label with a number has the line up to the next such label.
    boundaries = [label.start for label, _ in pairs]
    boundaries.append(len(line.text))

    # "Friendly: they seem kind, so I would rate them a 4" is read like a sentence.
    readings = []
    for claim in claims:
        if claim.start < boundaries[0]:
            readings.append(_Reading(line.labels[0].word, _SENTENCE, claim.rating))

    for (label, number), boundary in zip(pairs, boundaries[1:], strict=True):
        readings.append(_Reading(label.word, _LABEL, number.rating))

        # Other numbers in the same sentence leave open which one is meant.
        sentence_end = _SENTENCE_END.search(line.text, number.end, boundary)
        end = sentence_end.start() if sentence_end else boundary
        for rival in claims:
            if number.start < rival.start < end:
                readings.append(_Reading(label.word, _LABEL, rival.rating))
    return readings


def _claims(numbers: Sequence[_Number]) -> list[_Number]:
    """Leave out numbers outside the scale or of another scale.

    Such numbers are about something else in the same line.
    """
    return [number for number in numbers if number.rating not in (OUTSIDE, OTHER_SCALE)]


def _labels_with_numbers(line: _Line) -> list[tuple]:
    """Pair each label of a line with the number directly behind the label, or behind its colon.

    Other labels are left out.
    """
    pairs = []
    for label, number in _neighbours(line.labels, line.numbers):
        gap = line.text[label.end : number.start]
        before = line.text[label.start - 2 : label.start].strip()
        begins_part = label.start == 0 or before in (",", ";", "|")
        behind_colon = begins_part and _COLON.fullmatch(gap)
        if not behind_colon and not _DIRECT.fullmatch(gap):
            continue

        # In "Friendly: -4" the dash is a minus.
        if _MINUS.search(gap):
            number = number._replace(rating=OUTSIDE)
        pairs.append((label, number))
    return pairs


def _in_sentences(line: _Line) -> list[_Reading]:
    """Read the ratings of a line that does not begin with a label, sentence by sentence."""
    claims = _claims(line.numbers)
    ends = [match.end() for match in _SENTENCE_END.finditer(line.text)]

    readings = []
    for start, end in pairwise([0, *ends, len(line.text)]):
        sentence = _Line(
            line.text,
            labels=_within(line.labels, start, end),
            numbers=_within(claims, start, end),
        )
        if sentence.labels and sentence.numbers:
            readings += _in_sentence(sentence)
    return readings


def _within(spans: Sequence, start: int, end: int) -> list:
    """Select the labels or numbers that begin within a sentence."""
    return [span for span in spans if start <= span.start < end]


def _in_sentence(sentence: _Line) -> list[_Reading]:
    """Read the ratings of one sentence of a line."""
    text, labels, numbers = sentence
    readings = []
    begins_with_number = numbers[0].start < labels[0].start
    ends_with_label = numbers[-1].start < labels[-1].start
    # This reads "4 for friendly and 3 for sociable".
    if begins_with_number and ends_with_label:
        for number, label in _neighbours(numbers, labels):
            gap = text[number.end : label.start]
            if _BEFORE.fullmatch(gap):
                readings.append(_Reading(label.word, _NUMBER_FIRST, number.rating))
        return readings

    for label, number in _neighbours(labels, numbers):
        gap = text[label.end : number.start]
        if _DIRECT.fullmatch(gap):
            readings.append(_Reading(label.word, _SENTENCE, number.rating))

    # All numbers belong to the only word.
    if not readings and _count_words(labels) == 1:
        for number in numbers:
            readings.append(_Reading(labels[0].word, _SENTENCE, number.rating))
    return readings


def _neighbours(left: Sequence, right: Sequence) -> Iterator[tuple]:
    """Yield each span of `left` with the next span, if the next span is of `right`."""
    # Labels and numbers are told apart by their types.
    kind = type(left[0])
    spans = sorted([*left, *right], key=attrgetter("start"))
    for span, following in pairwise(spans):
        if isinstance(span, kind) and not isinstance(following, kind):
            yield span, following
