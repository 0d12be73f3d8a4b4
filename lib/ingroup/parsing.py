r"""Read a rating from a reply, or name the reason why there is none.

A number is a rating only where the reply claims it; in doubt there is no value. The rules stand in
parsing_rules.yaml. Markup and mentions of the scale are taken off first. Then come the patterns
that make a number a claim, the strongest first, and those by which a claim does not count.
"""

import html
import re
import unicodedata
from functools import cache
from math import nan
from pathlib import Path
from typing import NamedTuple

import yaml

OK = "ok"
REFUSED = "refused"  # the model or its filter declined
UNPARSABLE = "unparsable"  # the text claims no value
SEVERAL = "several"  # the text claims different values
CUT = "cut"  # the reply ended before its answer
FAILED = "failed"  # the engine gave no text
MISSING = "missing"  # the trial was never asked


class Parsed(NamedTuple):
    """A rating and `OK`, or NaN and the reason why there is none."""

    value: float
    status: str


class Rules:
    """Rules of reading, written as regular expressions in a file.

    {NAME} stands for the rule of that name, and a list for its alternatives. Words are given by
    language, separated by commas. Case does not matter, and ^ and $ are the ends of a line.

    Parameters
    ----------
    file : Path
        Rules in YAML, perhaps in sections. A section that is a list of pairs says what is put in
        place of what.

    Attributes
    ----------
    sections : dict
        What the file says.
    pattern : callable
        Compiles the rule of a name. Names in capitals add to the parts.
    written : callable
        Compiles a rule as it is written.
    """

    def __init__(self, file: Path):
        self.sections = yaml.safe_load(file.read_text("utf8"))
        self.rules = {}
        for name, content in self.sections.items():
            self.rules |= content if isinstance(content, dict) else {name: content}
        self.pattern = cache(self._pattern)
        self.written = cache(self._written)

    def _pattern(self, name, **parts):
        """Compile the rule of a name."""
        rule = _alternatives(self.rules[name])
        return self._written(rule, **parts)

    def _written(self, rule, **parts):
        """Compile a rule, with its parts and the parts of these in place."""
        rules = self.rules | parts
        part = r"\{([A-Z_]+)\}"
        while re.search(part, rule):
            rule = re.sub(part, lambda found: _alternatives(rules[found[1]]), rule)
        return re.compile("(?im)" + rule)

    def rewrite(self, text: str, section: str) -> str:
        """Put something else in place of each pattern of a section, in order."""
        for old, new in self.sections[section]:
            text = self.written(old).sub(new, text)
        return text


def _alternatives(rule):
    """Write a rule as one pattern."""
    if isinstance(rule, str):
        return rule
    if isinstance(rule, dict):
        rule = ", ".join(rule.values()).split(", ")
    return "(?:" + "|".join(map(str, rule)) + ")"


RULES = Rules(Path(__file__).with_name("parsing_rules.yaml"))


def _rule(name, high=100):
    """Compile a rule for a scale that ends at `high`."""
    top_word = RULES.sections["tops"].get(high, "-")
    return RULES.pattern(name, TOP_DIGITS=f"{high:g}", TOP_WORD=top_word)


# --- plain text ---


def one_spelling(text: str) -> str:
    """Write a text with one sign for all that look alike.

    Parameters
    ----------
    text : str
        Any reply.

    Returns
    -------
    str
        The text in form NFKC, with ASCII digits, quotation marks and dashes, without escapes of
        HTML and characters of no width.
    """
    text = html.unescape(text)
    text = RULES.rewrite(text, "spelling")
    text = unicodedata.normalize("NFKC", text)
    # The digits of all scripts.
    return re.sub(r"\d", lambda digit: f"{int(digit[0])}", text)


def plain(text: str) -> str:
    """Write a text with ASCII digits and signs, without quoted speech and without markup.

    Parameters
    ----------
    text : str
        Any reply.

    Returns
    -------
    str
        The text, with at most one space or new line in a row. A word in quotes before a colon, as
        in JSON, and a number in quotes only lose the quotes.
    """
    text = _collapsed(one_spelling(text))
    text = RULES.rewrite(text, "markup")
    text = _rule("quote").sub(_unquoted, text)
    return _collapsed(text)


def _collapsed(text):
    """Collapse white space: at most one space or one new line."""
    text = re.sub(r"[^\S\n]+", " ", text)
    return re.sub(r" ?\n[ \n]*", "\n", text).strip()


def _unquoted(quote):
    """Keep a key or a number in quotes. What somebody else said goes."""
    content = quote["double"] or quote["single"] or ""
    is_key = quote.lastgroup == "colon"
    is_speech = re.search(r"[^\d\s.,/%-]", content)
    return content if is_key or not is_speech else " , "


def _number(name):
    """Convert a number in digits or in words: "85", "eighty-five", "八十五"."""
    if name[-1].isdigit():
        return float(name)

    total = 0
    words = re.findall(r"[a-z]+|[^\x00-\x7f]", name.lower())
    for word in words:
        factor = RULES.sections["multipliers"].get(word, 1)
        total = max(total, factor > 1) * factor + RULES.sections["number words"].get(word, 0)
    return total


# --- ratings ---


def parse_rating(text: str | None, low: float, high: float) -> Parsed:
    """Read the rating that a reply claims.

    Parameters
    ----------
    text : str or None
        The reply, without its reasoning.
    low, high : float
        The ends of the scale.

    Returns
    -------
    Parsed
        The rating in [low, high] and "ok", or NaN and one of "refused", "unparsable", "several"
        and "cut" (a text that is nothing but one part, ten times or more).
    """
    text = (text or "").strip()
    if len(text) > 40 and not without_loop(text, times=10):
        return Parsed(nan, CUT)

    values = _claimed_values(plain(text), high)
    status = UNPARSABLE
    if len(values) > 1:
        status = SEVERAL
    elif not values and is_refusal(text):
        status = REFUSED
    elif values and low <= min(values) <= high:
        return Parsed(values.pop(), OK)
    return Parsed(nan, status)


def _claimed_values(text, high):
    """List the different values that a plain text claims."""
    text = _collapsed(_rule("scale", high).sub(" ", text))
    text = re.sub(r" ?\( *\)| (?=[.,;:!?)])", "", text)
    for name in ("correction", "summing up"):
        text = _rule(name).sub("", text)

    other_top = _end_of_other_scale(text, high)
    values = set()
    for name in RULES.sections["claims"]:
        for claim in _rule(name, high).finditer(text):
            is_other = _is_on_another_scale(claim, high, other_top)
            if not is_other and not _is_withdrawn(claim):
                values.add(_number(claim["number"]))
        if name == "final answer" and values:
            break
    return values


def _end_of_other_scale(text, high):
    """Find the largest end of another scale that a text speaks of."""
    ends = _rule("other scale").finditer(text)
    tops = {_number(end[end.lastindex]) for end in ends}
    if _rule("probability").search(text):
        tops.add(1)
    return max(tops - {high}, default=0)


def _is_withdrawn(claim):
    """Tell whether the clause of a claim denies its number, or is about something else."""
    groups = claim.groupdict()
    if groups.get("before"):
        return False

    before = claim.string[: claim.start()][-60:]
    clause = _rule("clause end").split(before)[-1]
    filler = groups.get("filler") or ""
    is_denied = _rule("withdrawn").search(clause + claim[0])
    is_elsewhere = _rule("elsewhere").search(filler)
    return bool(is_denied or is_elsewhere)


def _is_on_another_scale(claim, high, other_top):
    """Tell whether a claimed number is, or may be, on another scale than that up to `high`."""
    if claim.groupdict().get("own"):
        return False
    if re.search("(?i)%|cent", claim["unit"]):
        return high != 100

    number = claim["number"]
    value = _number(number)
    if high > 10 and _rule("out of ten").search(claim[0]):
        return True

    is_below_top = 0 < value <= other_top
    is_fraction = 0 < value <= 1 < high and "." in number
    return is_below_top or is_fraction


def parse_cut_rating(text: str, low: float, high: float) -> Parsed:
    """Read the rating with which a cut reply begins, if nothing behind it differs.

    Parameters
    ----------
    text : str
        A reply that was cut.
    low, high : float
        The ends of the scale.

    Returns
    -------
    Parsed
        As `parse_rating`, or NaN and "cut".
    """
    whole = _rule("unfinished").sub("", without_loop(text))
    opening = _rule("opening line").match(whole)
    rating = parse_rating(whole, low, high)
    if opening and parse_rating(opening[0], low, high) == rating:
        return rating
    return Parsed(nan, CUT)


def parse_rating_released(text: str | None, low: float = 0, high: float = 100) -> Parsed:
    r"""Read a rating as the code of Hou et al. (2025) does.

    Parameters
    ----------
    text : str or None
        The reply.
    low, high : float
        Not used: that code checks 0 to 100 on every scale.

    Returns
    -------
    Parsed
        A reply that begins with "I cannot", "I can't" or "I'm not rating" is refused. Else the
        value is the first of the whole numbers, ``\b\d+\b``, or the second if the first is above
        100. If that one is above 100 too, or there is no number, the reply is refused.
    """
    text = str(text)
    declines = text.startswith(("I cannot", "I can't", "I'm not rating"))
    numbers = re.findall(r"\b\d+\b", text)[:2]
    for number in map(float, numbers):
        if number <= 100 and not declines:
            return Parsed(number, OK)
    return Parsed(nan, REFUSED)


def is_refusal(text: str) -> bool:
    """Tell whether a reply declines: in the first person, outside quotes, at a sentence's start.

    Parameters
    ----------
    text : str
        A reply in which no value was found: a value outweighs a refusal.

    Returns
    -------
    bool
        False for what others say or cannot do, and for sympathy ("I cannot imagine her pain").
    """
    refusal = _rule("refusal").search(plain(text))
    return refusal is not None


def without_loop(text: str, times: int = 3) -> str:
    """Take off the end of a text that repeats itself.

    Parameters
    ----------
    text : str
        A reply.
    times : int
        How often something has to stand at the end, with at least 20 characters in all. The last
        repetition may be broken off.

    Returns
    -------
    str
        What stands before the first repetition, "" if the reply is nothing else.
    """
    # borders[n] is the length of the longest beginning of the first n characters, read backwards,
    # that is also their end. Then they have the period n - borders[n] (Knuth, Morris and Pratt).
    backwards = text.rstrip()[::-1]
    borders = [0, 0]
    length = 0
    loop = 0
    for n, character in enumerate(backwards[1:], start=2):
        while length and character != backwards[length]:
            length = borders[length]
        length += character == backwards[length]
        borders.append(length)
        if n >= max(20, times * (n - length)):
            loop = n
    return backwards[loop:][::-1] if loop else text
