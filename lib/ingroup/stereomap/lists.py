"""Read the lists that StereoMap asks for: a rating for each word, and keywords with reasons.

The rules stand in list_rules.yaml.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from ingroup.parsing import Rules, is_refusal, one_spelling

RULES = Rules(Path(__file__).with_name("list_rules.yaml"))
_rule = RULES.pattern


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
        The rules of list_rules.yaml, or those of the authors' code.

    Returns
    -------
    Ratings
        "ok" if every word has a rating, and "incomplete" if only some have one.

    Notes
    -----
    "sound" writes a reply in one spelling, and marks words (or their nouns, in any case) and
    ratings: "<1>: [4]". A range, a number off the scale or out of another top is "[?]". The first
    claim that has a number for a word decides, and all the numbers that this claim has for the
    word have to agree.

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
        read = _claimed_ratings(text, tuple(words))
        without_any = "refused" if is_refusal(text) else "unparsable"

    values = {word: float(read.get(word, "nan")) for word in words}
    rated = read.keys() & words
    if not rated:
        return Ratings(values, without_any)
    is_complete = len(rated) == len(words)
    return Ratings(values, "ok" if is_complete else "incomplete")


# --- the rule of the authors' code


def _released(text, words):
    """Read ratings as the authors' code does."""
    lines = list(filter(None, text.split("\n")))
    first_word = words[0]
    ratings = {}
    if len(words) == 1:
        for match in _first_matches("alone", lines)[:1]:
            # Two numbers in one pattern are a choice, which the code does not make.
            if match.lastindex == 1:
                ratings[first_word] = match[1]
        return ratings

    known = RULES.sections
    first_label = known["begins"].get(first_word, first_word)
    begin = _first_line(first_label, lines)
    end = _first_line("Overall [rR]ating", lines)
    for match in _first_matches("rated", lines[begin:end]):
        name = match[1].strip()
        if first_word == "Help":
            # The prompt has the group behind each behaviour, as in "Help nurses: 4".
            name = name.split(" ")[0]
        ratings[name] = match[2]

    # A reply may say "Pride", which the code takes for "Proud".
    for name, word in known["names"].items():
        if name in ratings:
            ratings[word] = ratings[name]
    if begin < len(lines):
        for match in _first_matches("overall", lines[end : end + 1]):
            ratings["Rating"] = match[1]
    return ratings


def _first_line(pattern, lines):
    """Find the first line that a pattern fits, else the end."""
    rule = RULES.written(f"(?-i:{pattern})")
    for place, line in enumerate(lines):
        if rule.search(line):
            return place
    return len(lines)


def _first_matches(name, lines):
    """Match the first pattern that fits, in each line that one fits."""
    patterns = [RULES.written(f"(?-i:{pattern})") for pattern in RULES.sections[name]]
    matches = []
    for line in lines:
        fitting = [pattern.search(line) for pattern in patterns]
        matches += list(filter(None, fitting))[:1]
    return matches


# --- ratings that a reply claims


@lru_cache(10_000)
def _claimed_ratings(text, words):
    """Read the rating of each word from its strongest claims, if these agree.

    A notebook reads the same replies twice, for their ratings and for their reasons.
    """
    marked = _marked(text, words)
    claims = list(RULES.sections["claims"])
    if len(words) > 1:
        claims.remove("a number alone")

    values = {}
    for claim in claims:
        # What a stronger claim says of a word stays.
        values = _values(claim, marked) | values

    ratings = {}
    for number, word in enumerate(words, start=1):
        rating, *others = values.get(f"{number}", "?")
        if rating != "?" and not others:
            ratings[word] = rating
    return ratings


def _values(claim, marked):
    """Collect the different values that a claim gives to each label."""
    values = defaultdict(set)
    parts = _rule(claim).findall(marked)
    numbers = _rule("numbered").findall("\n".join(parts))
    counted = "".join(numbers)
    if len(parts) > 1 and counted == "123456789"[: len(parts)]:
        return values

    for part in parts:
        labels = re.findall(r"<(\d+)>", part) or ["1"]
        numbers = re.findall(r"\[([\d.?]+)", part)
        if len(set(labels)) == 1:
            labels = labels[:1] * len(numbers)
        if len(labels) == len(numbers):
            for label, number in zip(labels, numbers, strict=True):
                values[label].add(number)
    return values


def _marked(text, words):
    """Write the k-th word as <k>, a negated one as <0>, and numbers as [4], [4/] or [?]."""
    plain = RULES.rewrite(one_spelling(text), "ratings")
    if _rule("heads").search(plain):
        plain = RULES.rewrite(plain, "crossed")
    marked = _word_pattern(words).sub(_mark_of_word, plain)
    return RULES.rewrite(marked, "numbers")


@lru_cache
def _word_pattern(words):
    """Compile a pattern with a group for negated words, and a group for each word."""
    forms = RULES.sections["forms"]
    patterns = ["|".join(forms.get(word, [word])) for word in words]
    any_word = "|".join(patterns)
    each_word = ")|(".join(patterns)
    return _rule("word", ANY_WORD=any_word, EACH_WORD=each_word)


def _mark_of_word(word):
    """Write a word as the number of its group."""
    return f"<{word.lastindex - 1}>"


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
    lines = map(_read_line, _item_lines(text))
    # A blank line ends no list.
    lists = _lists(line for line in lines if line.text)
    if not lists:
        return Keywords((), (), "refused" if is_refusal(text) else "unparsable")

    as_asked = (items for items in lists if len(items) == n)
    reasons = next(as_asked, lists[0])
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


def _item_lines(text):
    """Split a text into lines with one spelling of marks and one item each."""
    plain = one_spelling(RULES.rewrite(text, "keycaps"))
    plain = RULES.rewrite(plain, "items")
    if _rule("header").search(plain):
        plain = RULES.rewrite(plain, "columns")
    plain = _rule("items in a line").sub(_broken_line, plain)
    return plain.splitlines()


def _broken_line(line):
    """Begin a new line with each item of a line."""
    return RULES.rewrite(line[0], "next items")


def _read_line(line):
    """Take the mark off a line, and read the rest as one keyword or several."""
    line = line.expandtabs(4)
    mark = _rule("mark").match(line)
    kinds = filter(mark.group, ["number", "bullet", "heading", "bold"])
    kind = next(kinds, "")
    # Numbers are often indented by a space or two.
    width = 3 if kind == "number" else 2
    depth = len(mark["indent"]) // width
    is_first = mark["count"] == "1"
    rest = line[mark.end() :]
    text = re.sub(r"\*+|__", "", rest).strip()

    item = _rule("marked item" if kind else "item").fullmatch(text)
    # "1. Ethical: no meat, no milk, no eggs"
    introduction = _rule("introduction").match(text)
    is_explained = kind and item and not introduction
    items = {} if is_explained else _inline(text)
    if items:
        return _Line("inline", 0, True, items, text)
    if item:
        items = _keyword(item)
    return _Line(kind, depth, is_first, items, text)


def _keyword(item):
    """Write an item as a keyword with its reason."""
    word = item["word"].lower()
    return {word: item["reason"].strip(" )|-")}


def _inline(text):
    """Read keywords with one separator between them, up to the end of the sentence."""
    # Two parts without an introduction may be any sentence with a comma.
    n_least = 2 if _rule("introduction").match(text) else 3
    listed = RULES.rewrite(text, "words in a line")

    separator = next(filter(listed.count, [*";|·•/,", " - ", " – "]), ",")
    listed = _rule("last of a line").sub(separator, listed)
    parts = _rule("separator", SEPARATOR=re.escape(separator)).split(listed)

    items = {}
    for part in filter(str.strip, parts):
        item = _rule("marked item").fullmatch(part.strip(" '-"))
        if item is None:
            return {}
        items |= _keyword(item)
    return items if len(items) >= n_least else {}


def _lists(lines):
    """Collect lists of keywords with their reasons, in the order in which they begin."""
    lists = []
    by_mark = {}  # the open list of each kind and depth
    above = {}  # the list whose last item may have its reason below
    for line in lines:
        label = _rule("reason").match(line.text)
        if above and label:
            reason = line.text[label.end() :]
            _explain(above, reason)
            continue
        heading = _rule("HEADING" if line.kind else "heading")
        if not line.items and heading.match(line.text):
            by_mark = {}
            above = {}
            continue

        mark = (line.kind, line.depth)
        items = by_mark.get(mark)
        is_below = above and above is not items
        if is_below:
            _explain(above, line.text)
        if not line.items:
            continue

        if items is None or line.is_first:
            items = {}
            by_mark[mark] = items
            lists.append((line.kind, items))
        items |= line.items
        if line.kind == "inline":
            above = {}
        elif not is_below or line.kind != "bullet":
            above = items
    # A single word on a line of its own is no list.
    return [items for kind, items in lists if kind or len(items) > 1]


def _explain(items, reason):
    """Give the last keyword of a list its reason, if it has none."""
    word = next(reversed(items))
    items[word] = items[word] or reason
