"""Read the lists that StereoMap asks for: a rating for each word, and keywords with reasons."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import yaml

from ingroup import paths
from ingroup.parsing import FLAGS, is_refusal, one_spelling


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

_NAMES = ["zero", "one", "two", "three", "four", "five"]
_NAME = "(?:one|two|three|four|five)"
_MEANING = r" ?(?:\([^()\d\n]{1,40}\)|(?:=|being|is|means)[^\d\n|]{1,40}?)"
# Each pattern with what takes its place, in this order.
PLAIN = {
    # "**Friendly: 2** Many say so".
    "bold ends a part": (r"(?<=: \d)[*_]{2}(?= (?-i:[A-Z]))", ";"),
    # "Friendly: < 3", "at least 3". Not "> 4", a quotation.
    "a bound": (
        r"(?:(?<=[:=|] )[<>≤≥]=?|\b(?:at least|at most|(?:more|less|fewer) than|up to)) ?(?=\d)",
        "0-",
    ),
    # Not "[4]"; a dollar before an amount stays.
    "markup": (r"</?\w[^<>\n]{0,60}>|\\[a-z]+|\\|\$(?!\d)|\$(?=[1-5]\$)|\[[xX ]\] ", " "),
    "emphasis, brackets": (r"[*`#\"{}\[\]<>]+", ""),
    "dashes": ("[—–]", "-"),
    "white space": (r"(?:[^\S\n]|_)+", " "),
    # "Friendly: four", "Four out of five". Not "three reasons".
    "a number in words": (
        rf"(?:(?<=[:=] )|(?<=say )){_NAME}(?= ?[.\n]|\Z)|\A{_NAME}(?=\.)|\b{_NAME}(?= out of)"
        r"|(?<=out of )five\b",
        lambda name: f"{_NAMES.index(name[0].lower())}",
    ),
    # "1 to 5", "1 (not at all) - 5 (extremely)". Not "3-4", "1/5".
    "the ends of the scale": (
        rf"(?<![\w.,/])1(?:{_MEANING})?,? ?(?:-|to\b|and\b|through\b) ?5"
        rf"(?:{_MEANING}(?=[.;:,)\n]|\Z))?(?![\w/]|[.,]\d)",
        " ",
    ),
    # "1 = not at all, 2 = slightly". Not "Friendly = 4".
    "its steps": (r"(?<![\w.,/=])[1-5] ?=[^\d\n=]{1,40}(?:[1-5] ?=[^\d\n=]{1,40}){1,4}", " "),
    # "2. Friendly: 4", "a) Friendly: 4". Not "(4) Friendly", "3." alone.
    "the number of an item": (r"^[^\w\n(]*(?:\d{1,3}|[a-h])[.)](?: (?=\D)|(?=[a-z]))", " "),
    # Not "4,3,2", "4, 3".
    "a decimal comma": (r"(?<![\d,.])(\d),(\d)(?![\d,.])", r"\1.\2"),
}
_NUMBER = re.compile(
    r"(?i)(?<![\w/$€£<])(?<![^.]\.)(?<!\d,)(?P<minus>(?<=[:=|] )-|(?<=[:=|])-)?"
    r"(?P<value>\d++(?:\.\d+)?+)(?![.,]\d)"
    r"(?P<range> ?(?:-|to\b|or\b) ?[1-5](?:\.\d+)?(?![\d.,]*\d|[A-Za-z]| (?:in|of)\b))?"
    r"(?:(?P<scale> ?(?:(?:/|out of\b) ?(?P<top>\d+)(?:\.0)?|%|per ?cent\b))"
    # What may follow a rating. Not "4 million", "4-year", "5 in 2002".
    r"|(?= ?<| (?:in|on|for|to) <|\s*(?:\Z|-(?!\w)|[^\w\s'+-]|\n|[点分]|(?:on|here|because|since"
    r"|due|for|as|and|but|stars?|points?|would|is)\b)))"
)


def _marked(text: str, words: tuple[str, ...]) -> str:
    """Write the k-th word as <k>, a negated one as <0>, and numbers as [4], [4/] or [?]."""
    plain = one_spelling(text)
    for pattern, replacement in PLAIN.values():
        plain = re.sub(FLAGS + pattern, replacement, plain)

    if _COLUMNS.search(plain):
        plain = _CROSSED.sub(lambda row: f"{row[1]}: {row[2].count('|')}", plain)
    marked = _word_pattern(words).sub(lambda word: f"<{word.lastindex - 1}>", plain)
    # The number of an item within a line, "... they help. 2. Sociable". Not "Friendly: 4. Honest".
    marked = re.sub(r"(?<=[.;,!?)] )\d{1,2}[.)] (?=<)", "", marked)
    return _NUMBER.sub(_mark_of_number, marked)


def _mark_of_number(number: re.Match[str]) -> str:
    """Write a number as [4], [4/] or [?]."""
    value = number["value"]
    is_on_scale = 1 <= float(value) <= 5
    has_other_scale = number["scale"] and number["top"] != "5"
    if number["minus"] or number["range"] or has_other_scale or not is_on_scale:
        return "[?]"
    return f"[{value}/]" if number["scale"] else f"[{value}]"


# "| Friendly | | | | X | |", under the heads 1 to 5. Not a row with two crosses.
_COLUMNS = re.compile(r"\b1 ?\| ?2 ?\| ?3 ?\| ?4 ?\| ?5\b")
_CROSSED = re.compile(r"^\|? ?([^|\n]{1,60})((?: ?\|)+) ?[xX✓✔✅●•][ |]*$", re.MULTILINE)


_FORMS = yaml.safe_load((paths.STIMULI / "stereomap" / "word_forms.yaml").read_text("utf8"))
_FORMS["Rating"] = ["overall rating", "overall", "ratings", "score"]
# "Not trustworthy" and "unfriendly" are other words.
_NEGATION = r"(?:(?:not|less|least|non|never|hardly|low|lack of)[ -](?:at all |very )?|un|in|dis)"


@lru_cache
def _word_pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    """Compile a pattern with a group for negated words, and a group for each word."""
    patterns = []
    for word in words:
        forms = "|".join([*_FORMS.get(word, []), word])
        patterns.append(re.sub("[ -]", "[ -]?", forms))

    negated = f"{_NEGATION}(?:{'|'.join(patterns)})"
    groups = ")|(".join([negated, *patterns])
    return re.compile(rf"(?<!\w)(?<!\w-)(?:({groups}))(?![\w-])", re.IGNORECASE)


# --- what a reply claims

_LABEL = r"<\d+>"
_VALUE = r"\[[\d.?]+/?\]"
_BULLET = r"^[^\w\n<\[]*"
_DIRECT = (
    r"[^\w\n<\[]{0,12}"
    r"(?:\b(?:is|are|would be|rating|score|as|an?|at|of|about|around|very)\b[^\w\n<\[]{1,4}){0,4}"
)
_AND = r"[^\w\n<\[]{1,12}(?:and )?"
CLAIMS = {
    # "Friendly, honest: 4, 3", and a table with the words above the numbers.
    "words, then as many numbers": rf"{_BULLET}{_LABEL}(?:{_AND}{_LABEL})+[^\w<\[]*"
    rf"(?:rating|score)?[^\w<\[]*{_VALUE}(?:{_AND}{_VALUE})*",
    # "Friendly: 4", "Help nurses: 4", and further numbers of the sentence; "Friendly:\n4".
    # Not "is friendly: 4", "Friendly\n3 for honest".
    "a word that begins its part": rf"(?:{_BULLET}|[,;:|(] ?|\. ){_LABEL}"
    rf"(?:{_DIRECT}|[^:=|.;!?\n<\[]{{0,80}}(?:[:=|]| -)[^\w\n<\[]{{0,12}}){_VALUE}(?! for <)"
    r"(?:[^<\[.;!?\n]*\[[\d.]+/?\])*"
    rf"|{_BULLET}{_LABEL}[^:=|.;!?\n<\[]{{0,80}}:?[^\w<\[]{{1,12}}"
    rf"^[^\w\n<\[]*(?:rating[^\w\n<\[]*)?{_VALUE}[^\w\n<\[]*$",
    # "Friendly: they seem kind, so 4, as ...", "How friendly? 4". Not "Friendly: 4 in 5 say so".
    "a word, a reason, the number": f"(?:{_BULLET}(?:how )?|(?<=[.;,] )){_LABEL}(?:[:,]"
    rf"|[^<\[\n]{{0,40}}\?)[^<\[\n]{{0,150}}(?<![.;!] )(?<![^\w)] - )(?<! in )(?<!not ){_VALUE}"
    r"(?=[^\w\n<\[]*(?:$|[.;,] |,? (?:because|since|as|due|given)\b))",
    # "They are friendly (4)", "being friendly, they get a 4". Not "They are friendly. 4 of them".
    "a word, then its number": rf"{_LABEL}(?![.,;!?]){_DIRECT}{_VALUE}(?! for )|{_LABEL}(?:(?:"
    r"(?:, (?:they|it|it's|i|i'd|we|society)\b)?[^.,;:!?\n<\[]{0,60}\b(?:is|at|gets?|degree of|say"
    r"|gives?(?: \w+)?|scores?|be)(?: an?)?|,(?: it's)? an?) "
    rf"{_VALUE}(?! (?:for|in|on) )|(?: \w+)? \({_VALUE}\))",
    # "4 for friendly", "(4) Friendly", "score: 4, trait: Friendly". Not "Friendly: 4, honest: no".
    "a number, then its word": rf"{_VALUE} (?:for|in|on|as) (?:being )?{_LABEL}"
    rf"|{_BULLET}{_VALUE}[^\w<\[\n]{{0,6}}{_LABEL}[^\w\n]*$|{_VALUE}, \w{{1,20}}: {_LABEL}",
}
# Weaker than these, and only where one word is asked: "4", "4 out of 5", "I'd give them a 4",
# "What is the rating? 4", "4 - very". Not "at least 3", "3 reasons", "2.\nThey help", "not a 4".
_STEP = r"(?:not at all|slight|somewhat|moderate|quite|fairly|very|extreme|neutral|mixed)"
_ALONE = (
    rf"{_BULLET}{_VALUE}(?:[^\w\n]*{_VALUE})*(?: points?)?[^\w\n.)]*$|\A\W*{_VALUE}\W*\Z"
    rf"|\[[\d.]+/\]|{_BULLET}{_VALUE}[ ,:=(-]*{_STEP}(?:ly)?\b(?: \w+)?[^\w\n]*$|\?\s*(?:A: ?)?"
    rf"{_VALUE}[^\w\n]*$|{_VALUE}(?= on an?\b)|\A[^\d:\n\[]{{1,40}}[:(] ?{_VALUE}[^\w\n]*(?:\n\n"
    rf"|\Z)|\A\W*{_VALUE} \(|\bscale[,:]? {_VALUE}[^\w\n]*$|(?:\A"
    rf"|\A[^\d\n\[]{{1,30}}, )(?:(?:around|about|\w+ly) )?(?:an? )?{_VALUE}(?=[.!]?\Z"
    r"|, (?:because|since|as)\b)|\b(?:i|we|they|this group|society)(?:'d|'ll| would| will"
    r"| can)?(?: (?!not)\w+)? (?:rated?|gives?|says?|assign|choose|pick|go with|puts?|gets?|be"
    rf"|scores?|think)\b(?:(?!not\b)[^.:\d\n\[]){{0,40}}{_VALUE}|\b(?:it's|(?:it|that|answer) is"
    rf"|would(?: \w+ly)? be|rated(?: as| at)?)(?: about| around)?(?: an?)? {_VALUE}"
)


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
    patterns = list(CLAIMS.values())
    if n_words == 1:
        patterns.append(_ALONE)

    for rank, pattern in enumerate(patterns):
        claims = [match[0] for match in re.finditer(FLAGS + pattern, marked)]
        # "1 - Friendly, 2 - Sociable" numbers a list.
        numbers = re.findall(r"^[^<\[]*\[(\d)\]", "\n".join(claims), re.MULTILINE)
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


# Each pattern with what takes its place, in this order.
ITEMS_PLAIN = {
    "JSON: objects with a keyword": (
        r"\{\s*\"(?:keyword|verb|word|trait|term|name)\"\s*:\s*\"([^\"{}]*)\""
        r"(?:\s*,\s*\"\w+\"\s*:\s*\"([^\"{}]*)\")?[^{}]*\}",
        r"\n- \1: \2\n",
    ),
    # {"keywords": [...], "group": ...}: only the list. {"keyword1": "kind"}: a number.
    "JSON: a list below its key": (
        r"\{[^\[\]{}]*\"\w*(?:words?|verbs|traits|list)\w*\"\s*:\s*(\[[^\[\]{}]*\])[^\[\]{}]*\}",
        r"\1",
    ),
    "JSON: numbered keys": (r"\"\w*\d\"\s*:\s*\"([^\"{}]*)\",?", r"\n- \1\n"),
    # Not "word": "reason", "word": "reason".
    "JSON: an array is one line": (r"\"\s*,\s*\"(?=[^\"\n]{0,60}\"\s*[,\]])", ", "),
    "check boxes": (r"^([ \t]*)(?:[-*] *)?\[[ xX✓]\] ", r"\1- "),
    "bullets of HTML": (r"<li>|\\item\b", "\n- "),
    "[1], 1.), 1/": (r"^(\s*)\[?(\d{1,2})(?:\]|\.\)|/)\s+", r"\1\2. "),
    "markup, brackets, quotation marks": (
        r"</?\w[^<>\n]{0,60}>|\\(?:begin|end)\{\w*\}|\\[a-z]+|[\\{}\[\]\"`]",
        "",
    ),
    "hash tags": (r"(?<![^\s,])#(?=\w)", ", "),
    # "| 1 | Caring | they help |". Not the rule below the header.
    "rows of a table": (
        r"^ *\| *(?:(?:\d+|#|No)\.? *\|)? *([^|\n-][^|\n]*?) *\|([^|\n]*(?:\|[^|\n]*)?)\|? *$",
        r"| \1: \2",
    ),
}
# The number, letter or bullet of an item: "Keyword 1:", "(1)", "a)", "iv.", "- ".
_MARK = re.compile(
    r"(?i)(?P<indent>\s*)(?P<heading>#{1,6}\s+)?(?P<bold>\*\*|__)?(?:(?P<number>(?:(?:keyword|verb"
    r"|word|reason)\s?#?)?\(?(?P<count>\d{1,3})(?:\s?[.):|]|\s?-\s)(?!\d)\s*|\(?(?:[a-h]"
    r"|[ivx]{1,4})[.)]\s+|(?:first|second|third|fourth|fifth)(?:ly)?\s?:\s+)"
    r"|(?P<bullet>[^\w\s#*_(\"'$€£]{1,2}\s*|\*\s+))?(?P<inner>\*\*|__)?"
)
# "The three keywords are:", "Friendly: 4". Not "kind".
_HEADING = (
    r"(?:(?:the|my|these|some|other|three|five|for|here|and|in|overall)\b ?)*"
    r"(?:keywords?|reasons?|reasoning|ratings?|scores?|explanations?|notes?|answers?|descriptions?"
    r"|verbs?|words?|you|summary|conclusion|overall|here|disclaimer|justifications?|no"
    r"|number)?(?: \d+)?(?: (?:for|of|to|is|are|about)\b.{0,60})?\s*(?:\Z|[:(=.!?|]|\s-)"
    r"|[^\W\d][^\d:=\n]{0,60}[:=]\W*\d(?:[.,]\d+)?(?:\s*/\s*\d+|\s+out of \d+)?\W*(?:\Z|[^\w\s%])"
)
_SENTENCE = (
    r"(?:because|due to|since|as|they|this|these|there|it|i|we|people (?:are|do|have|see|think))\b"
)
# A keyword of one to three words, what ends it, and its reason.
_ITEM = re.compile(
    rf"(?i)(?!{_HEADING}|{_SENTENCE})(?P<word>[^\W\d_](?:[\w'/&]"
    r"|[.-](?=\w)){0,40}(?: [\w&](?:[\w'/&]|-(?=\w)){0,40}){0,2}?)\s*(?P<end>\Z|[:(=.!?|]"
    r"|,?\s(?=because\b|due to\b|since\b)|\s-+\s|-\s|[–—])[\s|–—-]*(?P<reason>.*)"
)
_REASON_LABEL = re.compile(r"(?:reasons?|explanation|description|why)\s?:\s*(?=.)", re.IGNORECASE)
_INTRODUCTION = re.compile(
    r"(?i)\A[^:]{0,150}?\b(?:keywords?|verbs?|words|feelings|emotions|traits|characteristics|reasons)\b"
    r"[^:]{0,150}?(?::|\b(?:are|is|include)\b:?)\s*"
)


class _Line(NamedTuple):
    """A line of a reply without its mark, and the keywords that it may give."""

    kind: str  # "number", "bullet", "heading", "bold", "inline" or ""
    depth: int
    is_first: bool  # numbered 1
    items: dict[str, str]  # keywords with their reasons
    text: str


def _item_lines(text: str) -> list[str]:
    """Split a text into lines with one spelling of marks and one item each."""
    # The number of an item may be a keycap or stand in a circle.
    plain = one_spelling(re.sub(r"([①-⑨]|\d\ufe0f?\u20e3)", r"\1. ", text))
    for pattern, replacement in ITEMS_PLAIN.values():
        plain = re.sub(FLAGS + pattern, replacement, plain)
    if re.search(r"(?im)^(?:keyword|verb|word|trait)s? ?[,;|\t] ?\w+$", plain):
        plain = re.sub(r"(?m)^([^,;|\t\n]+)[,;|\t]", r"- \1: ", plain)

    lines = []
    for line in plain.splitlines():
        # "1. Caring 2. Kind"
        if re.match(r"(?=.*\b[1a][.)]\s).*\b[2b][.)]\s", line):
            line = re.sub(r"(?<=\S)[\s,;]+(?=\(?(?:\d{1,2}|[a-h])[.)]\s)", "\n", line)
        lines += line.split("\n")
    return lines


def _read_line(line: str) -> _Line:
    """Take the mark off a line, and read the rest as one keyword or several."""
    line = line.expandtabs(4)
    mark = _MARK.match(line)
    rest = line[mark.end() :]
    text = re.sub(r"\*+|__", "", rest).strip()
    kind = next(filter(mark.group, ["number", "bullet", "heading", "bold", "inner"]), "")
    # Numbers are often indented by a space or two.
    depth = len(mark["indent"]) // (3 if kind == "number" else 2)

    item = _ITEM.fullmatch(text)
    # "1. Ethical: no meat, no milk, no eggs"
    is_explained = kind and item and not _INTRODUCTION.match(text)
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
    listed = _INTRODUCTION.sub("", text)
    # Two parts without an introduction may be any sentence with a comma.
    n_least = 3 if listed == text else 2
    listed = re.split(r"[.!?](?=\s|\Z)", listed, maxsplit=1)[0]

    separator = next(filter(listed.count, [*";|·•/,", " - ", " – "]), ",")
    # The last two may have only "and" between them. Not a comma in brackets.
    listed = re.sub(r"\s(?:and|or|&)\s(?=\S+\s*\Z)", separator, listed)
    parts = re.split(rf"{re.escape(separator)}(?![^()]{{0,200}}\))", listed)

    items = {}
    for part in filter(str.strip, parts):
        item = _ITEM.fullmatch(part.strip(" '-"))
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
        label = _REASON_LABEL.match(line.text)
        if above and label:
            _explain(above, line.text[label.end() :])
            continue
        is_heading = not line.kind and line.text.endswith(":")
        if is_heading or (not line.items and re.match(_HEADING, line.text, re.IGNORECASE)):
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
