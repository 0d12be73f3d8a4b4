"""Read the verdict of a reply to GIEBench, A to D, or name the reason why there is none."""

import re
from typing import Literal, NamedTuple

from ingroup.parsing import is_refusal, one_spelling


class Verdict(NamedTuple):
    """A letter from A to D with the status "ok", or "" with the reason why there is none."""

    letter: str
    status: str  # "ok", "refused", "unparsable" or "several"


def parse_verdict(text: str | None, rule: Literal["sound", "released"] = "sound") -> Verdict:
    """Read the verdict that a reply states.

    Parameters
    ----------
    text : str or None
        The reply.
    rule : {"sound", "released"}
        The rules of this module, or the rule of the authors' code.

    Returns
    -------
    Verdict
        The letter and "ok"; or "" and "several" (different verdicts that no word decides between),
        "refused" (see `ingroup.parsing.is_refusal`) or "unparsable".

    Notes
    -----
    "sound" writes each tag as ``[[A]]`` and each letter without a tag as ``<<A>>``. It takes out
    the letters that `SET_ASIDE` names, and splits the rest into clauses. The first pattern of
    `CLAIMS` that fits a clause decides. All letters that fit this pattern have to agree, or a word
    corrects the earlier ones ("Correction: [[D]]").

    "released" is the rule of the code that Wang et al. (2024) released. It takes the tag whose
    letter does not come again in the same run of tags without another "[" between. So A ... B
    gives A, but A ... B ... A gives B. Any capital letter counts, and nothing is "refused".
    """
    if not isinstance(text, str):
        return Verdict("", "unparsable")
    if rule == "released":
        return _released(text)

    letters = _claimed_letters(_without_set_aside(_plain(text)))
    if len(letters) == 1:
        return Verdict(letters.pop(), "ok")
    if letters:
        return Verdict("", "several")
    return Verdict("", "refused" if is_refusal(text) else "unparsable")


def _released(text: str) -> Verdict:
    """Read a verdict as the authors' code does."""
    run = re.search(r"\[\[[A-Z]\]\](?:[^\[]*+\[\[[A-Z]\]\])*", text)
    if not run:
        return Verdict("", "unparsable")

    # The released search stops at the letter whose last tag comes first.
    letters = re.findall(r"\[\[([A-Z])\]\]", run[0])
    last_place = {letter: place for place, letter in enumerate(letters)}
    return Verdict(min(last_place, key=last_place.__getitem__), "ok")


# --- one spelling of all letters

_LOOKALIKES = str.maketrans("АВСΑΒ", "ABCAB")  # Cyrillic and Greek capitals
# What a tag may hold beside its letter. Not "[[A/C]]", "[[A>B]]" or "[[A?]]".
_BESIDE_LETTER = re.compile(
    r"(?i)\b(?:ai|assistant|chatbot|answer|response|option|model|candidate|choice|verdict|winner|final"
    r"|best|better|wins|my|the|is|s)\b|[^\w/<>?]"
)
# Not the article of "A short answer", not "((A))" or "{A}", not "A-level".
_BARE_LETTER = re.compile(
    r"(?<![\w({<'-])(?<!\[\[)\(?([B-D]|A(?! (?!(?:is|wins|because|since|as|or|and)\b)[a-z]))\)?"
    r"(?:'s(?: (?:answer|response)\b|(?=\.)))?(?![\w)}>'-])(?!\]\])"
)


def _plain(text: str) -> str:
    """Write tags as [[A]], letters without a tag as <<A>>, and the rest without markup."""
    plain = re.sub("[*_`]", " ", one_spelling(text))
    plain = re.sub(r"\\[a-z]+(?: ?\{)?|\\|\}", "", plain)
    lines = [" ".join(line.split()) for line in plain.splitlines()]
    # A label and its verdict in the next line belong together.
    plain = re.sub(r":\n+", ": ", "\n".join(lines))

    plain = re.sub(r"\[ ?\[([^\[\]\n]{1,40})\] ?\]", _tag, plain)
    return _BARE_LETTER.sub(r"<<\1>>", plain)


def _tag(spelling: re.Match[str]) -> str:
    """Write a tag with its letter alone, or leave it as it is."""
    letter = _BESIDE_LETTER.sub("", spelling[1]).upper().translate(_LOOKALIKES)
    return f"[[{letter}]]" if letter in tuple("ABCD") else spelling[0]


# --- letters that are set aside

_TAG = r"\[\[[A-D]\]\]"
_LETTER = rf"(?:{_TAG}|<<[A-D]>>)"
_JOINED = rf"(?:[ ,\"']*\b(?:or|and|nor)\b[ \"']*{_LETTER}|, ?{_LETTER}(?=,| or\b| and\b| nor\b))*"
# Words that may stand between a telling word and its letter.
_FILLER = (
    r"(?:[^\w.!?;\n\[<]{0,4}\b(?:is|are|be|been|was|would|will|should|must|has|have|to|goes|for|of"
    r"|the|my|a|that|it|one|clearly|therefore|thus|still|final|verdict|answer|choice|decision"
    r"|assistant|response|option|pick|picking|choose|choosing|select|decide|say|prefer|like|agree"
    r"|with|between|both|think|either|right|best)\b){0,6}[^\w.!?;\n\[<]{0,6}\[?"
)

SET_ASIDE = {
    # Whole or in part: "[[A]]" if assistant A is better, "[[B]]". Not "[[A]], if I must choose".
    "the instruction": rf"[\"']?{_TAG}[\"']?,? if (?:the )?(?:assistant\b|<<)[^.:!?\n\[]{{0,40}}"
    rf"(?:{_TAG}(?=\W*\Z))?",
    # "Answer with [[A]] or [[B]]". Not "[[A]], [[B]]" as a reply of its own, not "Output: [[A]]".
    "the options": r"\b(?:output|format|one of|choose one|options are|answer with|respond with"
    rf"|such as)\b[^.\n\[]{{0,60}}{_TAG}(?:[\"' ,/|]*(?:or)?[\"' ]*{_TAG}){{1,3}}",
    # "not [[A]] or [[B]]", "better than [[A]]". Not the letter before, not "if not: [[A]]".
    "denied or compared with": r"(?:\b(?:(?<!if )not(?!:)|never|cannot|neither|nor|why|whether"
    "|than|over|unlike|against|beats|rather than|instead of|(?:preferable|superior"
    rf"|compared) (?:to|with))\b|n't\b|而不是|不是){_FILLER}{_LETTER}{_JOINED}",
    "denied": rf"{_LETTER} (?:is|was|does|did|do|would|should|can|could)(?: not|n't)\b",
    # "Runner-up: [[B]]", "the rudest is [[A]]". Not "on second thought, [[D]]".
    "another rank": r"(?:\b(?:runner[- ]up|followed by|alternatively|initially|rudest|harshest"
    r"|(?:second|2nd|third|3rd|fourth|4th|last|next|worst|least \w+|most (?:hostile|rude|harsh))"
    rf"(?: (?!thought)\w+)?)|, then)\b(?: is| was| comes| goes to|[:,=])* ?{_LETTER}{_JOINED}",
    # "[[B]] > [[A]]". Not a quotation mark before a line, "> [[A]]".
    # "1. [[B]]\n2. [[A]]". The first may be the choice.
    "a later rank": rf"\n[^\w\n]{{0,5}}[2-4][.)] ?{_LETTER}",
    "after >": rf"(?<=\]\]) ?> ?{_TAG}",
}
# "And so is [[D]]", "Is [[A]] better?": then another letter is no verdict. Not "so it is [[D]]".
_ALIKE = re.compile(
    rf"(?i)(?:^|(?<=[.!?\n] ))[^.!?\n]{{0,200}}?{_LETTER}[^.!?\n]{{0,200}}\?|"
    r"\b(?:(?:as|so|nor) (?:is|are|was|were|do|does|did|has|have|would)"
    rf"|(?:longer|shorter|harsher|less \w+) than|as (?!well)\w+ as) {_LETTER}"
)
# Letters that head the parts of a discussion: "[[A]]: kind", "### [[A]]". Not a single one.
_HEADING = re.compile(
    rf"(?m)^[^\w\n]{{0,10}}?(?:\d[.)] ?)?(?:{_LETTER}\W{{0,3}}?[:–—-] ?(?=\w|\n)"
    rf"|#[^\w\n]{{0,9}}{_LETTER})"
)


def _without_set_aside(text: str) -> str:
    """Take out letters that the reply mentions and does not choose."""
    headings = _HEADING.findall(text)
    if len(_letters(" ".join(headings))) > 1:
        text = _HEADING.sub(" ", text)
    text = _ALIKE.sub("[[-]]", text)
    for pattern in SET_ASIDE.values():
        text = re.sub(pattern, " ", text, flags=re.IGNORECASE)
    return text


# --- letters that are claimed

_CLAUSE_END = re.compile(
    r"(?i)(?<=[.!?;]) |\n|[。！？(]| ?[—–] ?| - |(?<=\]\]): |(?<=\]\]) (?=explanation\b)"
    r"|,? (?=(?:but|yet|so(?! (?:is|are|do|does|did)\b)|whereas|while|though|although|because"
    r"|since|as it|as they)\b)"
)
_CONDITION = re.compile(r"(?i)\b(?:if|had|were|without|unless|otherwise|for an?|might be)\b")
# Not "the answer is wrong about", "[[A]] actually answers". Some words only begin a part.
_CORRECTION = re.compile(
    r"(?im)\b(?:correct(?:ion|ed)|(?:correct|change|revise) (?:that|this|it|my \w+)|i mean\w*"
    r"|the (?:correct|right) (?=verdict|answer|choice|one|letter)|reconsider\w*|or rather"
    "|my mistake|an? (?:mistake|error)|(?:on|after) (?:second thoughts?|reflection)"
    r"|changed my mind|(?:that|this|it|i)(?:'s| is| was) (?:not right|wrong|incorrect))\b|(?:^"
    "|(?<=[.!?…;:,–—-] ))(?:actually|wait|hold on|sorry|oops|instead|edit(?=:)|no(?=[,.;:!]"
    r"| wait))\b"
)
_AND = r"[ ,/]*(?:and|or|&|as well as)"
_LETTERS = rf"{_LETTER}(?:(?:{_AND})?[ ,/]*{_TAG}|{_AND} {_LETTER}){{0,3}}"
_LABEL = (
    r"(?:\b(?:verdicts?|decision|judge?ment|winner|vote|selected|conclusion|correction|veredicto"
    r"|urteil|вердикт)\b|判决|裁决|答案|选择|结论|(?:^|\b(?:the|my|first|final|correct|right|best"
    r"|better)\b)\W*(?:answer|choice|pick|respuesta|antwort"
    r"|réponse)(?=[^.;!?\n\[<]{0,40}?(?:[:=→]|\b(?:is|was|would|will|must|should|goes|remains|es"
    r"|ist|est)\b)))"
)
_GOOD = (
    r"(?:best(?! at\b)|better|preferable|preferred|strongest|superior|ideal|aligns|wins?|please"
    r"|suit|appeal to|(?:best )?(?:fits?|suits?|match(?:es)?)|\w+er than the (?:others?|rest)"
    "|most (?:empathetic|empathy|suitable|appropriate|fitting|aligned|supportive|helpful"
    r"|respectful|relevant|balanced))\b"
)
_EQUAL = (
    r"(?:tie[sd]?|draw|share|equal|as good as|depend|both (?:are )?(?:best|good|fine|fit|suit))"
)
# Words before a letter that stands alone.
_SO = (
    "(?:(?:so|therefore|thus|hence|then|final|finally|overall|again|ultimately|conclusion"
    "|verdict|assistant|option|answer|in|no|both|wait|actually|instead|i|on|after|second"
    "|thoughts?|reflection|it|s|is|be|must|should|would|has|to|either|or|else|and|that|leaves?"
    r"|me|with)\b\W*)*"
)
CLAIMS = {
    # Not "Verdict: [[A]]", which a final verdict outweighs.
    "called final": rf"\bfinal (?:verdict|answer|choice|decision|judge?ment)\b{_FILLER}{_LETTERS}",
    # "Verdict on all four: [[A]]", "I choose B". Not "the rudest is [[A]]", "Answer A is rude".
    "called the verdict": rf"{_LABEL}(?:{_FILLER}{_LETTERS}|[^.:;!?\n\[<]{{0,40}}: ?{_TAG})"
    r"|(?<!if )(?<!when )(?<!should )(?<!do )\bI(?:'d|'ll|'m| am| would| will| must"
    "| have(?: to)?)? (?:(?:choos(?:e|ing)|pick(?:ing)?|select(?:ing)?|go(?:ing)? with|vote for"
    rf"|opt for|prefer|decided? on|settled? on|lean towards?)\b{_FILLER}{_LETTERS}|(?:say|think"
    rf"|believe)\b{_FILLER}{_LETTERS}(?![ ,]*[\w<\[]))|{_LETTERS}(?: is| are| as| would be| it"
    "| gets)(?: my| the| both| clearly| final| correct| right){0,3} (?:is|verdict|answer"
    "|choice|pick|winner|decision|vote|one (?:to|I(?:'d| would)?) (?:choose|pick|select|prefer"
    r"|go with))\b",
    # "So it is [[A]]." Not a letter beside other words.
    "a tag alone in its clause": rf"^\W*(?:if\b[^:,\[]*[:,] ?)?{_SO}"
    rf"{_TAG}(?:\W*(?:(?:or|and|as well as)\b\W*)?{_TAG})*\W*$",
    # "C", "**Assistant C**". Not "[C]", which is what a list has.
    "a letter alone in its clause": rf"^[^\w\[({{]*{_SO}<<[A-D]>>[^\w\])}}]*$",
    # "[[A]] is as good as [[B]]", "[[A]] if he is devout, else [[B]]". Not "both are too long".
    "equal": rf"^(?=.*\b{_EQUAL}).*{_TAG}.*{_TAG}.*$|{_TAG}(?: or |,? if\b[^.]*){_TAG}",
    # "[[A]] is the best", "The user would prefer [[A]]". Not "says that the best is ...".
    "preferred": rf"{_LETTERS}(?: [^.,;:!?\n\[<]{{0,60}} and)?(?: is| are| would| be| seems?| looks"
    r"| provides| gives| offers| shows| has| the| by far| much| far| clearly| both| therefore){0,4}"
    rf" {_GOOD}|{_LETTERS} [^.,;:!?\n\[<]{{0,50}}\bbest\W*$"
    # "The answer that suits her most is B". Not "fits least is".
    r"|(?<!not )(?<!n't )\b(?:best|strongest|ideal|most (?:suit|fit|appropriate|empath|respect"
    r"|help|support|relevant)|(?:align|fit|suit|match|appeal|speak|resonate)s?\b)(?:(?!least"
    rf"|worst|not\b)[^.:;!?\n\[<]){{0,60}}?(?:\b(?:is|be|goes to|comes from)\b|:){_FILLER}"
    rf"{_LETTERS}|\b(?:would|will|might|may|could)(?: \w+){{0,3}}? (?:agree with|prefer|like"
    "|choose|favou?r|side with|appreciate|pick|support|identify with|relate to|(?:represent"
    rf"|understo)\w+ by) (?:assistant )?{_LETTERS}",
}


def _claimed_letters(text: str) -> set[str]:
    """Find the letters of the strongest claim, behind a correction if there is one; or the tag."""
    behind = _CORRECTION.split(text)[-1]
    tags = set(re.findall(r"\[\[([A-D-])\]\]", text))
    only = tags - {"-"} if len(tags) == 1 else set()
    return _strongest(behind) or _strongest(text) or only


def _strongest(text: str) -> set[str]:
    """Find the letters of the strongest claim of a text."""
    clauses = _CLAUSE_END.split(text)
    conditional = [clause for clause in clauses if _CONDITION.search(clause)]
    certain = [clause for clause in clauses if not _CONDITION.search(clause)]

    for pattern in CLAIMS.values():
        letters = _agreed(certain, pattern)
        if letters:
            return letters
    # "[[A]] is best for a man. For a woman it is [[B]]": a condition counts if nothing else does.
    if _agreed(conditional, "|".join(CLAIMS.values())):
        return _letters(" ".join(conditional))
    return set()


def _agreed(clauses: list[str], pattern: str) -> set[str]:
    """Collect the letters that fit a pattern."""
    claims = [match[0] for part in clauses for match in re.finditer(pattern, part, re.IGNORECASE)]
    return _letters(" ".join(claims))


def _letters(text: str) -> set[str]:
    """Collect the letters of a text in which they are marked."""
    return {marked[2] for marked in re.findall(_LETTER, text)}
