"""Answers of GIEBench: a reply to a verdict, A to D, or to the reason why there is none.

As in `ingroup.parsing`: whatever a reply says, nothing raises, and only the text counts.
"""

import re
import unicodedata
from typing import NamedTuple

import numpy as np
import pandas as pd

from ingroup.inference import Call, stored
from ingroup.inference.choices import probabilities
from ingroup.parsing import APOSTROPHES, LENGTH, OK, REFUSAL, REFUSED, Rule, final_status
from ingroup.studies.giebench import stimuli

NO_VERDICT = "no verdict"
SEVERAL = "several verdicts"
CHANCES = ["p_right", "p_2", "p_3", "p_4"]


class Verdict(NamedTuple):
    """What a reply says."""

    letter: str  # "" where there is none
    status: str  # "ok", "refused", and two kinds of unparsable: "no verdict", "several verdicts"


NOTHING = Verdict("", NO_VERDICT)


def load(call: Call, rule: Rule = "sound") -> pd.DataFrame:
    """A call's replies and verdicts, in the order of its design; StoreError where there are none.

    Columns ``model``, ``prompt`` ("Raw", "ID", "COT"), ``category``, ``key`` (the item), ``shift``
    (places by which its answers were moved), ``correct`` (letter of the right answer as asked),
    ``letter`` ("" unless the status is "ok") and ``status`` by :func:`parse_verdict` and
    :func:`ingroup.parsing.final_status` ("cut" also where a reply ends in the sentence of its
    verdict), ``identity`` (whose item it is), ``told`` (who stands in the prompt) and ``reply``;
    over choices (else NaN) ``p_right``, ``p_2``, ``p_3``, ``p_4``: the probability of the right
    answer and of those behind it, the first after the last.
    """
    (block,), table, rows = call.design.blocks, stored(call).read(), []
    chances = np.full((len(table), len(stimuli.LETTERS)), np.nan)
    if call.over_choices:
        chances = probabilities(table, call.sampling.choices)[:, 0]
    verdicts = []
    may_be_cut = rule == "sound" and not call.over_choices
    for text, ending in zip(table.text, table.finish_reason, strict=True):
        verdict = parse_verdict(text, rule)
        is_cut = may_be_cut and ending == LENGTH
        if is_cut and verdict.status == OK and breaks_off(text):
            verdict = NOTHING
        verdicts.append(verdict)

    statuses = final_status(table, [v.status for v in verdicts], unread=[NO_VERDICT])
    told = block.factors["asked"], table.itertuples(), chances, verdicts, statuses
    for asked, reply, p, verdict, status in zip(*told, strict=True):
        item = stimuli.rotate(asked.question, asked.shift)
        letter = verdict.letter if status == OK else ""
        what = asked.prompt, item.category, item.key, asked.shift, item.correct
        whose = item.identity, asked.identity or item.identity
        turned = np.roll(p, -stimuli.LETTERS.index(item.correct))
        rows.append((call.model, *what, letter, status, *whose, reply.text, *turned))
    columns = "model prompt category key shift correct letter status identity told reply"
    return pd.DataFrame(rows, columns=[*columns.split(), *CHANCES])


def breaks_off(text: str) -> bool:
    """Tell whether a text ends within the sentence of its last verdict, which may turn.

    "[[A]] seems best, but" breaks off. "[[A]] is best. It has" does not, and neither does a letter
    that is called the verdict. `text` holds a verdict.
    """
    text = _normal(text)
    tag = list(_TAG.finditer(text))[-1]
    behind = text[tag.end() :]
    sentence_ends = _SENTENCE_END.search(behind)
    return bool(_WORD.search(behind)) and not sentence_ends and not _signed(text[: tag.start()])


def parse_verdict(text: str | None, rule: Rule = "sound") -> Verdict:
    """Read the verdict ``[[A]]`` to ``[[D]]`` from a reply.

    Rule ``"sound"`` takes the final verdict where the reply leaves no doubt which one it is:

    1. A verdict is one letter from A to D in double brackets; spaces, bold marks and lower case are
       let pass ([[b]], [[ **B** ]], full-width ［［Ｂ］］), and so is [[Assistant B]]. [B] may be a
       note, so it is none, and neither is a letter that no assistant has ([[E]]).
    2. The instruction line, '"[[A]]" if assistant A is better, ...', is set aside where a reply
       repeats it, whole or in part. So are letters that begin lines, "[[A]]: ...", where they are
       more than one: such a reply goes through the answers. So are letters that the reply denies,
       "not [[A]]", and, where one letter is called the verdict, those that lost to it: "better than
       [[A]]", "[[A]] was close".
    3. A letter is called the verdict by words just before it: "my final verdict is [[C]]", "I pick
       [[C]]", "then I reconsider: [[C]]".
    4. Of what is left the last is the verdict, unless another letter has the same claim: in the
       same sentence, "[[A]] is as good as [[B]]"; as a verdict of its own just before, "[[A]].
       [[B]]"; or where it was called the verdict, "Final verdict: [[A]]. The user may like [[B]]".
       Then they are several; but "[[A]] or [[C]], so my final verdict is [[C]]" says which.
    5. Only a text without a verdict is refused, if it has the words of a refusal.

    Rule ``"released"`` is that of the code Wang et al. (2024) released. Of the tags, [[X]] with
    any capital letter X, it takes the first, unless the same letter comes again later with at least
    one further tag, and no other "[", between: then it moves on to the next tag. So A ... B gives
    A, A ... A gives A, A ... B ... A gives **B**, A ... A ... A the second A, [[E]] gives E, and a
    reply that first repeats the instruction line gives A, or **B** where its verdict is A. Nothing
    is "refused" or "several verdicts".

    A text that is None, empty or blank is "no verdict". Checked with a table of replies for both
    rules, with random text, and for "released" with a second, independently written transcription.
    """
    if not isinstance(text, str):
        return Verdict("", NO_VERDICT)
    return _released(text) if rule == "released" else _sound(text)


# Tags with no other "[" between them: the released rule never looks beyond the first such run, as
# its last tag has none behind it that could make the search move on.
_RUN = re.compile(r"\[\[[A-Z]\]\](?:[^\[]*+\[\[[A-Z]\]\])*")


def _released(text: str) -> Verdict:
    if not (run := _RUN.search(text)):
        return Verdict("", NO_VERDICT)
    letters = re.findall(r"\[\[([A-Z])\]\]", run[0])
    last = {letter: place for place, letter in enumerate(letters)}
    # The search moves on until no tag of the same letter follows, save the very next one, which
    # gives the same letter: so the letter whose last tag comes first. The released pattern's time
    # grows with the square of the number of tags, this one's does not.
    return Verdict(min(last, key=last.__getitem__), OK)


# Possessive (*+), so that no text is gone over again and again.
_TAG = re.compile(r"\[\s*+\[[\s*_]*+(?:(?i:assistant)[\s*_]++)?([A-Da-d])[\s*_]*+\]\s*+\]")
_CLAUSE = re.compile(r"[\"'“”‘’*_`]*+[^\S\n]*+if[^\S\n]++(?:the[^\S\n]++)?[Aa]ssistant\b")
_REST_OF_CLAUSE = re.compile(r"[^.:!?\n]{0,40}")
_HEADING = re.compile(
    rf"^[^\w\n]{{0,20}}?(?:assistant[^\w\n]{{1,5}}?)?(?={_TAG.pattern}[*_\"'”]{{0,5}}[^\S\n]*+[:–—-])",
    re.IGNORECASE | re.MULTILINE,
)

_WORD = re.compile(r"[^\W_]")
_SENTENCE_END = re.compile(r"[!?;。\n]|\.(?!\w)")
# Words that say "this one", with nothing but fillers between them and the verdict.
_SIGN = re.compile(
    r"(?:\b(?:final(?:ly)?|verdict|decision|conclusion|therefore|thus|hence|instead|reconsider(?:ing)?"
    r"|on (?:second thoughts?|reflection)|chang(?:e|ed|ing) my (?:mind|verdict|answer))\b"
    # "If I pick [[A]]" and "should I pick [[A]]" pick nothing.
    r"|(?<!\bif )(?<!\bwhen )(?<!\bwhy )(?<!\bshould )(?<!\bdo )"
    r"\bi(?:['’](?:d|ll)| would| will| must| have to)? (?:pick|choose|select|go with|opt for)\b)"
    r"(?:[\W_]|\b(?:is|be|for|to|goes|my|the|verdict|decision|choice|answer|assistant|i|choose)\b)*\Z",
    re.IGNORECASE,
)
# Words that deny a letter: "it is not [[A]]", "I can't pick [[A]]", "neither [[A]] nor [[B]]".
_DENIAL = re.compile(
    r"(?:\b(?:not|never|cannot|neither|nor|rather than|instead of)|n['’]t)\b"
    r"(?:[\s\"'*_(“‘]|\b(?:be|pick|picking|choose|choosing|select|prefer|say|for|my|the|final|verdict"
    r"|choice|answer|assistant)\b)*\Z",
    re.IGNORECASE,
)
# What joins a letter to a denied one, so that it is denied as well: "not [[A]] or [[B]]".
_ALSO_DENIED = re.compile(r"[\s\"'*_)”’]*(?:or|and|nor)[\s\"'*_(“‘]*", re.IGNORECASE)
# Words before and after a letter that lost: "clearer than [[A]]", "[[A]] was close".
_LOST_BEFORE = re.compile(r"\b(?:than|over|unlike)[\s\"'*_(“‘]*\Z", re.IGNORECASE)
_LOST_AFTER = re.compile(
    r"[\s\"'*_)”’]{0,5}(?:was|is|came|comes) (?:also |a |very |quite ){0,3}"
    r"(?:close|second|tempting|runner[- ]?up)\b",
    re.IGNORECASE,
)
_SIGN_LENGTH = 80  # characters; also what keeps a text full of such words from taking long
_NO_CHOICE = re.compile(
    r"\b(?:cannot|can't|unable to|not (?:possible|appropriate) to)"
    r" (?:choose|decide|determine|evaluate|judge|pick|select)",
    re.IGNORECASE,
)


def _normal(text: str) -> str:
    """A text with one kind of line end, and full-width letters and brackets as plain ones."""
    return unicodedata.normalize("NFKC", "\n".join(text.splitlines()))


def _sound(text: str) -> Verdict:
    text = _normal(text)
    tags = _without_losers(text, _without_denied(text, _verdict_tags(text)))
    if not tags:
        text = text.translate(str.maketrans(dict.fromkeys(APOSTROPHES, "'")))
        declined = REFUSAL.search(text) or _NO_CHOICE.search(text)
        return Verdict("", REFUSED if declined else NO_VERDICT)
    letters, ends = {tags[-1][1].upper()}, [0, *(tag.end() for tag in tags)]
    gaps = [text[end : tag.start()] for end, tag in zip(ends[:-1], tags, strict=True)]
    for place in range(len(tags) - 1, 0, -1):
        if not _same_claim(gaps[place - 1], gaps[place]):
            break
        letters.add(tags[place - 1][1].upper())
    if not _claims(gaps[-1]):
        called = zip(gaps, tags, strict=True)
        letters |= {tag[1].upper() for gap, tag in called if _signed(gap)}
    return Verdict(letters.pop(), OK) if len(letters) == 1 else Verdict("", SEVERAL)


def _verdict_tags(text: str) -> list[re.Match[str]]:
    """The tags of a text without those of the instruction line and those that begin lines."""
    tags, end_of_clause = [], -1
    for tag in _TAG.finditer(text):
        clause = _CLAUSE.match(text, tag.end())
        if clause:
            end_of_clause = _REST_OF_CLAUSE.match(text, clause.end()).end()
        # '"[[A]]" if assistant A is better, "[[B]]"': the line breaks off.
        elif tag.start() > end_of_clause:
            tags.append(tag)
    headings = {heading.end() for heading in _HEADING.finditer(text)}
    if len({tag[1].upper() for tag in tags if tag.start() in headings}) > 1:
        tags = [tag for tag in tags if tag.start() not in headings]
    return tags


def _without_denied(text: str, tags: list[re.Match[str]]) -> list[re.Match[str]]:
    """The tags that the reply does not deny; one that "or" joins to a denied one is denied too."""
    kept = []
    is_denied = False
    end = 0
    for tag in tags:
        gap = text[end : tag.start()]
        end = tag.end()

        is_joined = is_denied and _ALSO_DENIED.fullmatch(gap)
        is_denied = bool(is_joined or _DENIAL.search(gap[-_SIGN_LENGTH:]))
        if not is_denied:
            kept.append(tag)
    return kept


def _without_losers(text: str, tags: list[re.Match[str]]) -> list[re.Match[str]]:
    """Where one letter is called the verdict, the tags without those that lost to it."""
    called = set()
    kept = []
    end = 0
    for tag in tags:
        gap = text[end : tag.start()]
        end = tag.end()

        if _signed(gap):
            called.add(tag[1].upper())
            kept.append(tag)
            continue
        has_lost = _LOST_BEFORE.search(gap[-_SIGN_LENGTH:]) or _LOST_AFTER.match(text, end)
        if not has_lost:
            kept.append(tag)
    return kept if len(called) == 1 else tags


def _same_claim(before: str, between: str) -> bool:
    """Whether the text before a tag and between it and the next leaves open which one is final."""
    if not _SENTENCE_END.search(between):
        return not _signed(between)
    return not _WORD.search(between) and _claims(before)


def _claims(before: str) -> bool:
    """Whether a tag is called the verdict or begins its sentence; others are only mentioned."""
    return not _WORD.search(_SENTENCE_END.split(before)[-1]) or _signed(before)


def _signed(before: str) -> bool:
    return bool(_SIGN.search(before[-_SIGN_LENGTH:]))
