r"""Read a rating from a reply, or name the reason why there is none.

A number is a rating only where the reply claims it; in doubt there is no value. The rules stand in
parsing_rules.yaml: markup and mentions of the scale, which are taken off, then the patterns that
make a number a claim, the strongest first, and those by which a claim does not count.
"""

import html
import math
import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd
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


_RULES = yaml.safe_load(Path(__file__).with_name("parsing_rules.yaml").read_text("utf8"))
_PARTS = _RULES["parts"] | _RULES["refusal parts"]
for _name, _languages in _RULES["words"].items():
    _PARTS[_name] = ", ".join(_languages.values()).split(", ")


def _written_out(rule: str | list[str], high: float) -> str:
    """Put its parts into a rule. A list becomes alternatives, {TOP_DIGITS} the end of the scale."""
    if isinstance(rule, list):
        return "(?:" + "|".join(_written_out(str(one), high) for one in rule) + ")"

    parts = _PARTS | {"TOP_DIGITS": f"{high:g}", "TOP_WORD": _RULES["tops"].get(high, "-")}
    return re.sub(r"\{([A-Z_]+)\}", lambda name: _written_out(parts[name[1]], high), rule)


@lru_cache
def _rule(name: str, high: float = 100) -> re.Pattern:
    """Compile a rule of parsing_rules.yaml. "claims/label" is one of several in a section."""
    section, _, key = name.partition("/")
    rule = _written_out(_RULES[section][key] if key else _RULES[section], high)
    return re.compile(rule, re.IGNORECASE | re.MULTILINE)


# --- plain text ---

QUOTED = re.compile(
    r"(?:\"(?P<double>[^\"\n]{0,400})\"|(?<!\w)'(?P<single>(?:[^'\n]|'(?=\w)){0,400})'(?!\w))"
    r"(?P<colon>(?= ?:))?"
)
SIGNS = str.maketrans(dict.fromkeys("“”„«»「」『』", '"') | dict.fromkeys("‘’ʼ", "'"))
SIGNS |= str.maketrans("−‐‑⁄。、٪٫°", "---/.,%.x")


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
    text = html.unescape(text).translate(SIGNS)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", "".join(map(_plain_character, text)))
    text = _collapsed(text)
    if text[:1] == text[-1:] == '"' and text.count('"') == 2:
        text = text[1:-1]

    # Special tokens of a template have bars, as tables have.
    text = re.sub(r"<\|[^<>|\n]{1,40}\|>", "\n", text)
    if "|" in text:
        text = _rows_with_heads(text)
    for old, new in _RULES["markup"]:
        text = re.sub(old, new, text, flags=re.IGNORECASE | re.MULTILINE)
    return _collapsed(QUOTED.sub(_unquoted, text))


def _collapsed(text: str) -> str:
    """Collapse white space: at most one space or one new line."""
    text = re.sub(r"[^\S\n]+", " ", "\n".join(text.splitlines()))
    return re.sub(r" ?\n[ \n]*", "\n", text).strip()


@lru_cache(maxsize=4096)
def _plain_character(character: str) -> str:
    """Write a digit of any script as ASCII. Fractions and circled digits become "x"."""
    kind = unicodedata.category(character)
    if kind == "Nd":
        return str(unicodedata.decimal(character))
    # The parts of a keycap, and characters without width.
    if kind == "Cf" or character in "\ufe0f\u20e3":
        return ""
    return {"No": "x", "So": " "}.get(kind, character)


def _unquoted(quote: re.Match) -> str:
    """Keep a key or a number in quotes. What somebody else said goes."""
    content = quote["double"] or quote["single"] or ""
    is_kept = quote["colon"] is not None or not re.search(r"[^\d\s.,/%-]", content)
    return content if is_kept else " , "


def _rows_with_heads(text: str) -> str:
    """Write each cell of a table on a line, behind the head of its column and of its row."""
    lines = []
    heads: list[str] = []
    for line in text.split("\n"):
        cells = [cell.strip() for cell in line.strip(" |").split("|")]
        is_row = line.strip().startswith("|") and len(cells) > 1
        heads = (heads or cells) if is_row else []
        if not is_row:
            lines += cells
        for head, cell in zip(heads[1:], cells[1:], strict=False):
            lines += [f"{head}: {cell}", f"{cells[0]}: {cell}"]
    return "\n".join(lines)


def _number(name: str) -> float:
    """Convert a number in digits or in words: "85", "eighty-five", "八十五"."""
    if re.search(r"\d", name):
        return float(name)
    total = 0
    for word in re.findall(r"[a-z]+|\W|[^\x00-\x7f]", name.lower()):
        if word in _RULES["multipliers"]:
            total = max(total, 1) * _RULES["multipliers"][word]
        total += _RULES["number words"].get(word, 0)
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
    if not text or not text.strip():
        return Parsed(math.nan, UNPARSABLE)
    if len(text) > 40 and not without_loop(text, times=10):
        return Parsed(math.nan, CUT)

    values = _claimed_values(plain(text), high)
    if len(values) > 1:
        return Parsed(math.nan, SEVERAL)
    for value in values:
        if low <= value <= high:
            return Parsed(value, OK)
    return Parsed(math.nan, REFUSED if not values and is_refusal(text) else UNPARSABLE)


def _claimed_values(text: str, high: float) -> set[float]:
    """List the different values that a plain text claims."""
    text = _collapsed(_rule("scale", high).sub(" ", text))
    text = re.sub(r" ?\( *\)| (?=[.,;:!?)])", "", text)
    text = _rule("summing up").sub("", _rule("correction").sub("", text))

    # The ends of other scales that the text speaks of. Of a probability, 1 may be all of it.
    tops = {_number("".join(names)) for names in _rule("other scale").findall(text)}
    if _rule("probability").search(text):
        tops.add(1)
    other_top = max(tops - {high}, default=-math.inf)

    values = set()
    for name in _RULES["claims"]:
        rule = _rule(f"claims/{name}", high)
        claim = rule.search(text)
        while claim:
            counts = not _is_withdrawn(claim) and not _is_on_another_scale(claim, high, other_top)
            if counts:
                values.add(_number(claim["number"]))
            # Another claim may begin within one that does not count.
            claim = rule.search(text, claim.end() if counts else claim.start() + 1)
        if name == "final answer" and values:
            break
    return values


def _is_withdrawn(claim: re.Match) -> bool:
    """Tell whether the clause of a claim denies its number, or is about something else."""
    groups = claim.groupdict()
    if groups.get("before"):
        return False
    before = claim.string[max(0, claim.start() - 60) : claim.start()]
    within = claim.string[claim.start() : claim.start("number")]
    is_denied = _rule("withdrawn").search(_rule("clause end").split(before)[-1] + within)
    return bool(is_denied or _rule("elsewhere").search(groups.get("filler") or ""))


def _is_on_another_scale(claim: re.Match, high: float, other_top: float) -> bool:
    """Tell whether a claimed number is, or may be, on another scale than that up to `high`."""
    number = claim["number"].lower()
    value = _number(number)
    is_percent = re.search("%|cent", claim["unit"], re.IGNORECASE)
    if claim.groupdict().get("own") or (is_percent and high == 100):
        return False

    start = claim.start("number")
    has_article = _rule("of ten").search(claim.string[max(0, start - 30) : start])
    is_of_ten = high == 100 and value <= 10 and has_article
    # "eighty" alone, in small letters, may be any number of the eighties.
    is_vague = claim[0] == number and number.endswith("ty")
    is_fraction = 0 < value <= 1 and "." in number
    is_below_top = 0 < value <= other_top
    return bool(is_percent or is_below_top or is_of_ten or is_vague or is_fraction)


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
    if text.startswith(("I cannot", "I can't", "I'm not rating")):
        return Parsed(math.nan, REFUSED)
    for number in re.findall(r"\b\d+\b", text)[:2]:
        if float(number) <= 100:
            return Parsed(float(number), OK)
    return Parsed(math.nan, REFUSED)


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
    return bool(_rule("refusal").search(plain(text)))


# --- answers, and how they ended ---

# A number at the end of a cut text may be the first half of another, of a range or of "8 of 10".
UNFINISHED = re.compile(r"[\d.,]*\d[.,]?(?: ?(?:[-–—/]|to|and|or|out|out of) ?[\d.,]*)?\Z")
# The first line of a text, or its first sentence. "1." is no sentence.
OPENING = re.compile(r"\s*.+?(?:\n|(?:[^\d\s]|\d\d)[.!?](?=\s))")


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
        if n >= 20 and n >= times * (n - length):
            loop = n
    return backwards[loop:][::-1] if loop else text


def read_answers(
    answers: pd.DataFrame,
    parse: Callable,
    parse_cut: Callable | None = None,
) -> pd.DataFrame:
    """Parse the texts of answers, and tell why there is no value from how they ended.

    Parameters
    ----------
    answers : DataFrame
        One row per answer, with ``text``, ``finish_reason`` and perhaps ``reasoning``.
    parse : callable
        Takes a text, gives a value and a status. Each different text is parsed once.
    parse_cut : callable, optional
        The same for a text that was cut, by default `parse`.

    Returns
    -------
    DataFrame
        ``value`` (None without one) and ``status``, with the index of the answers. An answer that
        was cut before its value is "cut", one that a filter declined "refused".
    """
    texts = answers["text"].astype(object).where(answers["text"].notna(), "")
    endings = answers["finish_reason"].astype(object)
    if "reasoning" in answers:
        # All tokens went into the reasoning.
        is_unanswered = (texts.str.strip() == "") & answers["reasoning"].fillna("").ne("")
        endings = endings.mask(is_unanswered & (endings == "stop"), "length")

    parsed = {}
    for text, ending in set(zip(texts, endings, strict=True)):
        is_cut = ending == "length"
        value, status = parse_cut(text) if is_cut and parse_cut else parse(text)
        if is_cut and status not in (OK, REFUSED):
            status = CUT
        status = {"filtered": REFUSED, "failed": FAILED, "missing": MISSING}.get(ending, status)
        parsed[text, ending] = (value if status == OK else None, status)

    rows = [parsed[answer] for answer in zip(texts, endings, strict=True)]
    return pd.DataFrame(rows, index=answers.index, columns=["value", "status"])


def read_ratings(
    answers: pd.DataFrame,
    low: float,
    high: float,
    rule: Callable = parse_rating,
) -> pd.DataFrame:
    """Read ratings from answers in free text.

    Parameters
    ----------
    answers : DataFrame
        As in `read_answers`.
    low, high : float
        The ends of the scale.
    rule : {parse_rating, parse_rating_released}
        How a text is read. The released rule knows nothing of answers that were cut.

    Returns
    -------
    DataFrame
        ``value`` in points of the scale, NaN without one, and ``status``.
    """

    def parse(text: str) -> Parsed:
        return rule(text, low, high)

    def parse_cut(text: str) -> Parsed:
        """Read the rating with which a reply begins, if nothing behind it differs."""
        whole = UNFINISHED.sub("", without_loop(text))
        opening = OPENING.match(whole)
        if opening is None or parse(opening[0]) != parse(whole):
            return Parsed(math.nan, CUT)
        return parse(whole)

    table = read_answers(answers, parse, parse_cut if rule is parse_rating else None)
    table["value"] = table["value"].astype(float)
    return table
