"""The reading of a response's text: a rating on a scale, or the reason why there is none.

No function here raises an error.
"""

import math
import re
import unicodedata
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

OK = "ok"
REFUSED = "refused"  # the model or its filter declined
UNPARSABLE = "unparsable"  # the text holds no answer
CUT = "cut"  # the reply ended before its answer
FAILED = "failed"  # the engine gave no text; also one of the endings of a reply

# The other endings of a reply.
STOP = "stop"  # the model ended it
LENGTH = "length"  # it was cut at max_tokens
FILTERED = "filtered"  # a content filter declined the prompt or the reply

Rule = Literal["sound", "released"]
# How a reply becomes a number (`ingroup.inference.reading.Reading`).
How = Literal["free", "greedy", "drawn", "expected"]
Ending = Literal["turn", "newline", "any"]  # of a scored number

# Characters that replies have in place of '.
APOSTROPHES = "‘’ʼ＇"

DECLINE = (
    r"\bi (?:cannot|can not|can't|will not|won't|(?:must |have to )?(?:decline|refuse)"
    r"|(?:do not|don't) feel comfortable)\b"
    r"|\bi(?:'m| am) (?:unable|not (?:able|comfortable|rating|willing|going to))\b"
)
# In a text without an answer these words count as a refusal, wherever they stand.
REFUSAL = re.compile(
    rf"{DECLINE}|\bsorry,? but\b|\bas an? (?:ai|artificial|(?:large )?language model)\b"
    r"|\b(?:cannot|can't|unable to|not (?:possible|appropriate) to)"
    r" (?:answer|rate|assist|help|provide|give|fulfil|comply)",
    re.IGNORECASE,
)


class Parsed(NamedTuple):
    """Value and status of a reply's text.

    Attributes
    ----------
    value : float
        The number that was read, NaN if there is none.
    status : str
        `OK`, `REFUSED` or `UNPARSABLE`.
    """

    value: float
    status: str


def parse_rating(text: str | None, low: float, high: float, rule: Rule = "sound") -> Parsed:
    r"""Read one rating from a reply.

    Parameters
    ----------
    text : str or None
        The reply.
    low, high : float
        The ends of the scale.
    rule : {"sound", "released"}
        One of the rules of the notes.

    Returns
    -------
    Parsed
        The value is in [low, high], in [0, 100] under ``"released"``. A text that is None, empty or
        blank is "unparsable"; under ``"released"`` it is "refused", as the released code reads it
        back as "nan".

    Notes
    -----
    Rule ``"sound"`` takes a number only where the reply leaves no doubt which number is meant:

    1. Decimal digits of every script count (85, ８５, ٨٥). Fractions, superscripts and circled
       digits do not, and a digit glued to a Latin letter is not a number (1e400, 2nd).
    2. Mentions of the scale are set aside: "0 to 100", "0 (not at all) - 100", "out of 100".
    3. A denominator has to be the top of the scale, and a per cent sign is a denominator of 100. On
       0 to 100 the replies "80/100", "80 out of 100" and "80%" are 80. "8/10" is unparsable,
       because rescaling would be a guess. So is a decimal comma ("8,5"), which may be a list.
    4. Lines with nothing but numbers, perhaps after a label ("Emotion intensity:"), are the answer
       and the other lines are reasons. Without such a line the whole text is the answer.
    5. The answer is the number if there is one distinct number and it is within the scale. A range
       ("70-80"), two numbers, one outside the scale ("-5") or in words ("eighty") are no answer.
    6. A text without an answer is refused if it has the words of a refusal, else unparsable. A text
       that opens with a refusal and has no line as in 4 is refused, whatever numbers it holds.

    Rule ``"released"`` is that of the code of Hou et al. (2025). A reply that begins with
    "I cannot", "I can't" or "I'm not rating" is refused. Otherwise whole numbers, ``\b\d+\b``, are
    taken: the only one; or the first if it is 0 to 100, else the second. If that number is not 0 to
    100, the reply is refused, and so is a reply without a number. So "8.5" gives 8, "-5" gives 5,
    and "on a scale of 0 to 100, 80" gives 0. Nothing is "unparsable". On the 0 to 10 scale a value
    may be above `high`.

    Checked with a table of replies, random text, and a second transcription of the released rule.
    """
    if rule == "released":
        return _released_rating(str(text))
    if not isinstance(text, str):
        return Parsed(math.nan, UNPARSABLE)
    return _sound_rating(text, low, high)


def _released_rating(text: str) -> Parsed:
    """Read a rating as the released code does."""
    if text.startswith(("I cannot", "I can't", "I'm not rating")):
        return Parsed(math.nan, REFUSED)

    # float, not int as released: the same numbers, but int() raises beyond 4,300 digits.
    numbers = list(map(float, re.findall(r"\b\d+\b", text)))
    # Only the first two numbers count, and the second only where the first is off the scale.
    for number in numbers[:2]:
        if number <= 100:
            return Parsed(number, OK)
    return Parsed(math.nan, REFUSED)


def final_status(
    responses: pd.DataFrame,
    parsed: Sequence[str] | np.ndarray,
    unread: Collection[str] = (UNPARSABLE,),
) -> np.ndarray:
    """Tell why replies hold no answer, from their endings and the statuses of their texts.

    Parameters
    ----------
    responses : DataFrame
        One row per reply, with ``text``, ``finish_reason`` and ``reasoning``, as in a store.
    parsed : sequence of str
        The status of each text.
    unread : collection of str
        The statuses by which parsing says that a text holds no answer.

    Returns
    -------
    ndarray of str
        "failed" for a call without a text; "refused" where a filter declined; "cut" where the
        reply ended inside its reasoning, or at its limit before an answer; else as parsed. The
        four are never merged.
    """
    status = np.array(parsed, dtype=object)
    ending = responses["finish_reason"]
    at_limit = (ending == LENGTH).to_numpy()
    has_reasoning = ~_is_blank(responses["reasoning"])

    # The tokens went into reasoning, or ran out before the first word.
    before_answer = _is_blank(responses["text"]) & (has_reasoning | at_limit)
    without_answer = at_limit & np.isin(status, list(unread))

    # A filter's refusal and a failure come last, because they also explain a missing text.
    status[before_answer | without_answer] = CUT
    status[(ending == FILTERED).to_numpy()] = REFUSED
    status[(ending == FAILED).to_numpy()] = FAILED
    return status


# A number at the end of a cut text, or what may go on to a range or a denominator: "70 to", "8 /".
_UNFINISHED = re.compile(
    r"\d(?:[.,．，٫]|\s*[-–—−‐‑－/／⁄]\s*|\s+(?:to|and|or|out|out\s+of)\s*)?\Z", re.IGNORECASE
)


def ends_in_cut_number(responses: pd.DataFrame) -> np.ndarray:
    """Tell which replies reached their limit within a number: "7" may be the first half of 72.

    Likewise, "70 to" may begin a range, and "8 out of" a rating on another scale.

    Parameters
    ----------
    responses : DataFrame
        One row per reply, with ``text`` and ``finish_reason``, as a store gives them.

    Returns
    -------
    ndarray of bool
        True if the reply ended at its limit with a number, or with a number and such a word.
    """
    at_limit = responses["finish_reason"] == LENGTH
    is_cut = at_limit.to_numpy(copy=True)

    # Few replies are at their limit, so only those texts are read.
    texts = responses["text"][is_cut]
    texts = texts.astype(object).fillna("")
    is_cut[is_cut] = [bool(_UNFINISHED.search(text)) for text in texts]
    return is_cut


def _is_blank(texts: pd.Series) -> np.ndarray:
    """Tell which texts are missing or blank. Each different text is looked at once."""
    codes, different = pd.factorize(texts)
    is_blank = [not str(text).strip() for text in different]

    # A missing text has the code -1, which takes the last value.
    is_blank.append(True)
    return np.array(is_blank)[codes]


# Perhaps a sign and a point, then digits with points and commas between them: -5, .5, 1,000.
_NUMBER = r"(?<![A-Za-z\d])[-+]?(?:(?<!\.)\.)?\d(?:[\d.,]*\d)?"
# A number takes the letters glued to it along: "1e400" and "2nd" are matched whole and ignored.
_RATED = re.compile(
    rf"(?P<value>{_NUMBER})(?P<glue>[A-Za-z]*)"
    rf"(?:\s*/\s*(?P<of>{_NUMBER})|\s*(?P<percent>%|per ?cent\b))?"
    rf"|(?:out|scale)\s+of\s+(?P<top>{_NUMBER})",
    re.IGNORECASE,
)
_LABEL_WORD = re.compile(r"\b(?:intensity|rating|score|answer)\b", re.IGNORECASE)
_LABEL = re.compile(rf"[a-z' ]{{0,60}}{_LABEL_WORD.pattern}(?: is\b)?", re.IGNORECASE)

OPENS_WITH_REFUSAL = re.compile(
    rf"\W*(?:(?:i'm |i am )?(?:so |very )?sorry\W+(?:but\W+)?)?(?:{DECLINE})", re.IGNORECASE
)

_SIGNS = {"．": ".", "٫": ".", "，": ",", "％": "%", "٪": "%"}
_SIGNS |= dict.fromkeys(APOSTROPHES, "'")
_SIGNS |= dict.fromkeys("−–‐‑－", "-")
_SIGNS |= dict.fromkeys("／⁄", "/")


def _sound_rating(text: str, low: float, high: float) -> Parsed:
    """Read a rating only if there is no doubt which number is meant."""
    in_ascii = text if text.isascii() else "".join(map(as_ascii, text))
    # splitlines knows other ends of lines than \n, too, such as a carriage return.
    in_lines = "\n".join(in_ascii.splitlines())
    without_scale = _scale_mention(low, high).sub(" ", in_lines)

    answer_lines = [line for line in without_scale.splitlines() if _is_answer(line)]
    # A line of its own with an answer outweighs a refusal at the beginning (rules 4 and 6).
    if not answer_lines and OPENS_WITH_REFUSAL.match(without_scale):
        return Parsed(math.nan, REFUSED)

    # An unreadable number is NaN. It counts as one more number, so it leaves doubt.
    numbers = set()
    for part in answer_lines or [without_scale]:
        numbers.update(_numbers(part, high))
    if len(numbers) == 1:
        value = numbers.pop()
        if low <= value <= high:
            return Parsed(value, OK)

    if REFUSAL.search(without_scale):
        return Parsed(math.nan, REFUSED)
    return Parsed(math.nan, UNPARSABLE)


def as_ascii(char: str) -> str:
    """Write a character as ASCII if it is a digit or a sign.

    Any other numeral, such as a fraction, becomes "x": then its number cannot be read.

    Parameters
    ----------
    char : str
        One character.

    Returns
    -------
    str
        A digit from 0 to 9, a sign, "x", or the character itself.
    """
    digit = unicodedata.decimal(char, None)
    if digit is not None:
        return str(digit)
    if unicodedata.numeric(char, None) is not None:
        return "x"
    return _SIGNS.get(char, char)


def one_line(text: str) -> str:
    """Write a text on one line, without characters that UTF-8 or a spreadsheet refuses.

    Parameters
    ----------
    text : str
        Any text, such as a model's reply.

    Returns
    -------
    str
        The text with single spaces instead of white space, control characters and lone surrogates.
    """
    accepted = re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", " ", text)
    return " ".join(accepted.split())


@lru_cache(maxsize=16)
def _scale_mention(low: float, high: float) -> re.Pattern[str]:
    """Compile the pattern of both ends of the scale and a few words between them.

    An example is "0 (not at all) to 100".
    """
    number_ends = r"(?![A-Za-z\d]|[.,]\d)"
    first = re.escape(f"{low:g}") + number_ends
    last = re.escape(f"{high:g}") + number_ends
    # Up to 40 characters without a digit may stand between the ends, such as "(not at all)".
    return re.compile(
        rf"(?<![A-Za-z\d.,/]){first}[^\d\n]{{0,40}}?(?:\bto|\band|-)\s*{last}", re.IGNORECASE
    )


def _is_answer(line: str) -> bool:
    """Tell whether a line has nothing but numbers, perhaps after a label."""
    label_word = _LABEL_WORD.search(line)
    if label_word:
        # No label begins earlier, and looking for one from every letter of a long line is slow.
        label = _LABEL.search(line, max(0, label_word.start() - 60))
        assert label is not None  # the word alone is one
        start, end = label.span()
        line = line[:start] + line[end:]

    # Letters that are glued to a number stay, so "2nd" is no answer.
    rest, n_numbers = _RATED.subn(_letters_behind, line)
    return n_numbers > 0 and not re.search(r"\w", rest)


def _letters_behind(number: re.Match[str]) -> str:
    """Return the letters that are glued to a number."""
    return number["glue"] or ""


def _numbers(text: str, high: float) -> list[float]:
    """List every number of a text. An undecidable number is NaN.

    A number is undecidable if it is no plain decimal, or if its denominator is not `high`.
    """
    numbers = []
    for match in _RATED.finditer(text):
        # The denominator, if the text has one; that of "out of 100" is the group `top`.
        top = match["of"] or match["top"]
        if match["percent"]:
            top = "100"

        if top is not None and _decimal(top) != high:
            numbers.append(math.nan)
        # "out of 100" alone has no value and adds no number.
        elif match["value"] and not match["glue"]:
            numbers.append(_decimal(match["value"]))
    return numbers


def _decimal(token: str) -> float:
    """Read a plain decimal number. Any other text gives NaN."""
    if re.fullmatch(r"[-+]?\d*\.?\d+", token):
        return float(token)
    return math.nan
