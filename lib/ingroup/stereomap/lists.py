"""Read the lists that StereoMap asks for: a rating for each word, and keywords with reasons."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

import yaml

from ingroup import paths
from ingroup.parsing import Rules, is_refusal, one_spelling

RULES = Rules(Path(__file__).with_name("list_rules.yaml"))


class Ratings(NamedTuple):
    """``values`` by word, NaN where there is none, with the status of the reply."""

    values: dict[str, float]
    status: str  # "ok", "incomplete"; without any value "refused" or "unparsable"


def parse_ratings(
    text: str | None, words: Sequence[str], rule: Literal["sound", "released"] = "sound"
) -> Ratings:
    """Read a rating from 1 to 5 for each of several words.

    Parameters
    ----------
    text : str or None
        The reply. It may have other parts anywhere.
    words : sequence of str
        The words to rate. "Rating" stands for a rating without a word.
    rule : {"sound", "released"}
        The rules of this module, or those of the authors' code.

    Returns
    -------
    Ratings
        "ok" if every word has a rating, and "incomplete" if only some have one.

    Notes
    -----
    "sound" writes the reply as `PLAIN` says, and marks words (or their nouns, in any case) and
    ratings: "<1>: [4]". A range, a number off the scale or out of another top is "[?]". The first
    pattern of `CLAIMS` that has a number for a word decides, and all the numbers that this pattern
    has for the word have to agree.

    "released" is the authors' reader of gpt-3.5-turbo (Jeoung et al. 2023). It reads "word: 4" in
    the lines from the first word to an overall rating; without the first word nothing is read. It
    reads a rating alone from the first line with a number. "3-4" is 3, "Overall: 4/5" is 5, and 85
    stays. A reply without any rating is "refused".
    """
    text = text or ""
    if rule == "released":
        read = _released(text, words)
        without_any = "refused"
    else:
        read = _claimed_ratings(text, words)
        without_any = "refused" if is_refusal(text) else "unparsable"

    values = {word: float(read.get(word, "nan")) for word in words}
    n_rated = len(read.keys() & words)
    if n_rated == 0:
        return Ratings(values, without_any)
    return Ratings(values, "ok" if n_rated == len(words) else "incomplete")


# --- the rule of the authors' code

_PATTERNS = (paths.STIMULI / "stereomap" / "released_ratings.yaml").read_text("utf8")
_DECIMAL = yaml.safe_load(_PATTERNS)["number"]
_CODE = yaml.safe_load(_PATTERNS.replace("<n>", _DECIMAL))


def _released(text: str, words: Sequence[str]) -> dict[str, str]:
    """Read ratings as the authors' code does."""
    lines = [line for line in text.split("\n") if line]
    if len(words) == 1:
        alone = next(_first_matches("alone", lines), None)
        # Two numbers in one pattern are a choice, which the code does not make.
        return {words[0]: alone[1]} if alone and alone.lastindex == 1 else {}

    first_word = _CODE["begins"].get(words[0], words[0])
    begin = _first_line(first_word, lines)
    end = _first_line("Overall [rR]ating", lines)
    ratings = {}
    for match in _first_matches("rated", lines[begin:end]):
        name = match[1].strip()
        # The prompt has the group behind each behaviour, as in "Help nurses: 4".
        ratings[name.split(" ")[0] if words[0] == "Help" else name] = match[2]

    # A reply may say "Pride", which the code takes for "Proud".
    for name, word in _CODE["names"].items():
        if name in ratings:
            ratings[word] = ratings[name]
    overall = re.search(rf"Overall.*:.*{_DECIMAL}", [*lines, ""][end])
    if overall and begin < len(lines):
        ratings["Rating"] = overall[1]
    return ratings


def _first_line(pattern: str, lines: Sequence[str]) -> int:
    """Find the first line that a pattern fits, else the end."""
    places = (place for place, line in enumerate(lines) if re.search(pattern, line))
    return next(places, len(lines))


def _first_matches(name: str, lines: Sequence[str]) -> Iterator[re.Match[str]]:
    """Yield the match of the first pattern that fits, for each line that one fits."""
    for line in lines:
        matches = [re.search(pattern, line) for pattern in _CODE[name]]
        yield from list(filter(None, matches))[:1]


# --- marks for words and numbers


def _marked(text: str, words: tuple[str, ...]) -> str:
    """Write the k-th word as <k>, a negated one as <0>, and numbers as [4], [4/] or [?]."""
    plain = RULES.rewrite(one_spelling(text), "ratings")
    if RULES.pattern("heads").search(plain):
        plain = RULES.pattern("crossed").sub(_rated_by_cross, plain)
    marked = _word_pattern(words).sub(lambda word: f"<{word.lastindex - 1}>", plain)
    marked = RULES.pattern("number of an item").sub("", marked)
    return RULES.pattern("number").sub(_mark_of_number, marked)


def _rated_by_cross(row: re.Match[str]) -> str:
    """Write the row of a cross with the number of its column."""
    n_columns = row[2].count("|")
    return f"{row[1]}: {n_columns}"


def _mark_of_number(number: re.Match[str]) -> str:
    """Write a number as [4], [4/] or [?]."""
    value = number["value"]
    is_on_scale = 1 <= float(value) <= 5
    has_other_scale = number["scale"] and number["top"] != "5"
    if number["minus"] or number["range"] or has_other_scale or not is_on_scale:
        return "[?]"
    return f"[{value}/]" if number["scale"] else f"[{value}]"


_FORMS = yaml.safe_load((paths.STIMULI / "stereomap" / "word_forms.yaml").read_text("utf8"))
_FORMS["Rating"] = ["overall rating", "overall", "ratings", "score"]


@lru_cache
def _word_pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    """Compile a pattern with a group for negated words, and a group for each word."""
    patterns = []
    for word in words:
        forms = "|".join([*_FORMS.get(word, []), word])
        patterns.append(re.sub("[ -]", "[ -]?", forms))

    each = ")|(".join(patterns)
    return RULES.pattern("word", WORDS=f"(?:{'|'.join(patterns)})", EACH_WORD=f"({each})")


# --- what a reply claims


def _claimed_ratings(text: str, words: Sequence[str]) -> dict[str, str]:
    """Read the rating of each word from its strongest claims, if these agree."""
    by_label = defaultdict(dict)  # the values of each claim, by rank
    for rank, claim in _claims(_marked(text, tuple(words)), len(words)):
        labels = re.findall(r"<(\d+)>", claim) or ["1"]
        values = re.findall(r"\[([\d.?]+)", claim)
        if len(set(labels)) == 1:
            labels = labels[:1] * len(values)
        if len(labels) == len(values):
            for label, value in zip(labels, values, strict=True):
                by_label[label].setdefault(rank, set()).add(value)

    ratings = {}
    for number, word in enumerate(words, start=1):
        by_rank = by_label[f"{number}"]
        strongest = by_rank.get(min(by_rank, default=0), set())
        if len(strongest) == 1 and "?" not in strongest:
            ratings[word] = strongest.pop()
    return ratings


def _claims(marked: str, n_words: int) -> Iterator[tuple[int, str]]:
    """Yield the parts of a text that rate words, with their rank."""
    for rank, name in enumerate(RULES.sections["claims"]):
        if name == "a number alone" and n_words > 1:
            continue
        claims = [match[0] for match in RULES.pattern(name).finditer(marked)]
        numbers = RULES.pattern("numbered").findall("\n".join(claims))
        is_numbered = "".join(numbers) == "123456789"[: len(claims)]
        if len(claims) < 2 or not is_numbered:
            for claim in claims:
                yield rank, claim


# --- keywords


class Keywords(NamedTuple):
    """Different keywords in lower case, the reason of each ("" if none is given), and a status."""

    words: tuple[str, ...]
    reasons: tuple[str, ...]
    status: str  # "ok", "too few", "too many"; without any "refused" or "unparsable"


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
        The keywords of the first list that has `n` different ones, else of the first list.

    Notes
    -----
    A list is what stands behind marks of one kind and indent (numbers, bullets, bold, headings,
    rows of a table), words on lines of their own, or words in one line with one separator. A
    keyword has one to three words, up to a colon, dash, bracket or the end. Its reason follows in
    the line or below.
    """
    text = text or ""
    lines = [_read_line(line) for line in _item_lines(text)]
    lists = _lists(lines)
    if not lists:
        return Keywords((), (), "refused" if is_refusal(text) else "unparsable")

    reasons = next((items for items in lists if len(items) == n), lists[0])
    status = "ok"
    if len(reasons) != n:
        status = "too few" if len(reasons) < n else "too many"
    return Keywords(tuple(reasons), tuple(reasons.values()), status)


class _Line(NamedTuple):
    """A line of a reply without its mark, and the keywords that it may give."""

    kind: str  # "number", "bullet", "heading", "bold", "inline" or ""
    depth: int
    is_first: bool  # numbered 1
    items: dict[str, str]  # keywords with their reasons
    text: str


def _item_lines(text: str) -> list[str]:
    """Split a text into lines with one spelling of marks and one item each."""
    plain = one_spelling(RULES.rewrite(text, "keycaps"))
    plain = RULES.rewrite(plain, "items")
    if RULES.pattern("header").search(plain):
        plain = RULES.rewrite(plain, "columns")

    lines = []
    for line in plain.splitlines():
        if RULES.pattern("items in a line").match(line):
            line = RULES.rewrite(line, "next items")
        lines += line.split("\n")
    return lines


def _read_line(line: str) -> _Line:
    """Take the mark off a line, and read the rest as one keyword or several."""
    line = line.expandtabs(4)
    mark = RULES.pattern("mark").match(line)
    rest = line[mark.end() :]
    text = re.sub(r"\*+|__", "", rest).strip()
    kind = next(filter(mark.group, ["number", "bullet", "heading", "bold", "inner"]), "")
    # Numbers are often indented by a space or two.
    depth = len(mark["indent"]) // (3 if kind == "number" else 2)

    item = RULES.pattern("item").fullmatch(text)
    # "1. Ethical: no meat, no milk, no eggs"
    is_explained = kind and item and not RULES.pattern("introduction").match(text)
    items = {} if is_explained else _inline(text)
    if items:
        return _Line("inline", 0, True, items, text)

    # Without a mark, "Kind. They help" is a sentence and "Kind:" a heading.
    is_sentence = item and (item["end"] in tuple(".!?|") or text.endswith(":"))
    if item and (kind or not is_sentence):
        word = item["word"].lower()
        items = {word: item["reason"].strip(" )|-")}
    return _Line(kind.replace("inner", "bold"), depth, mark["count"] == "1", items, text)


def _inline(text: str) -> dict[str, str]:
    """Read keywords with one separator between them, up to the end of the sentence."""
    listed = RULES.pattern("introduction").sub("", text)
    # Two parts without an introduction may be any sentence with a comma.
    n_least = 3 if listed == text else 2
    listed = re.split(r"[.!?](?=\s|\Z)", listed, maxsplit=1)[0]

    separator = next(filter(listed.count, [*";|·•/,", " - ", " – "]), ",")
    listed = RULES.pattern("last of a line").sub(separator, listed)
    # Not a comma in brackets.
    parts = re.split(rf"{re.escape(separator)}(?![^()]{{0,200}}\))", listed)

    items = {}
    for part in filter(str.strip, parts):
        item = RULES.pattern("item").fullmatch(part.strip(" '-"))
        if item is None:
            return {}
        word = item["word"].lower()
        items[word] = item["reason"].strip(" )")
    return items if len(items) >= n_least else {}


def _lists(lines: Sequence[_Line]) -> list[dict[str, str]]:
    """Collect lists of keywords with their reasons, in the order in which they begin."""
    lists = []
    by_mark = {}  # the open list of each kind and depth
    above = {}  # the list whose last item may have its reason below
    for line in lines:
        mark = (line.kind, line.depth)
        label = RULES.pattern("reason").match(line.text)
        if above and label:
            _explain(above, line.text[label.end() :])
            continue
        is_heading = not line.kind and line.text.endswith(":")
        if is_heading or (not line.items and RULES.pattern("HEADING").match(line.text)):
            # A blank line ends no list.
            if line.text:
                by_mark = {}
                above = {}
            continue

        is_below = above and above is not by_mark.get(mark)
        if is_below:
            _explain(above, line.text)
        if line.items:
            if mark not in by_mark or line.is_first:
                by_mark[mark] = {}
                lists.append((line.kind, by_mark[mark]))
            by_mark[mark] |= line.items
            if not (is_below and line.kind == "bullet"):
                above = by_mark[mark] if line.kind != "inline" else {}
    # A single word on a line of its own is no list.
    return [items for kind, items in lists if kind or len(items) > 1]


def _explain(items: dict[str, str], reason: str) -> None:
    """Give the last keyword of a list its reason, if it has none."""
    word = next(reversed(items))
    items[word] = items[word] or reason
