"""New items for GIEBench: topics, annotators' stances, four answers (Wang et al. 2024, 3.1, 3.2).

The paper does not say how the three wrong answers come about. Those of its appendix all oppose the
identity's stance, so here they are three draws of the dialog prompt with the opposite attitude.
Whether a draw keeps its attitude no code can see: read new items first.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ingroup import models
from ingroup.design import Block, Design, filled
from ingroup.inference import Call
from ingroup.inference.engine import FAILED, LENGTH, free_sampling
from ingroup.parsing import one_line
from ingroup.studies.giebench import stimuli
from ingroup.tables import InputError, at, check, once, read_table, wrong

TOPIC = ["category", "identity", "topic"]
STANCES = ("positive", "negative")
OFFENSIVE = "offensive"


def writer(parameters: Mapping[str, Any]) -> tuple[str, str] | None:
    """The first of ``MODELS`` that can be asked for a text, and its engine; None without one.

    A calibrant has learnt no such prompt, and a model with stored answers only is not asked.
    """
    named = (models.split(entry, parameters["ENGINE"]) for entry in parameters["MODELS"])
    able = (one for one in named if one[1] != models.STORED and not models.is_calibrant(one[0]))
    return next(able, None)


def calls(
    parameters: Mapping[str, Any], prompt: str, values: Sequence[Mapping[str, str]], draws: int = 1
) -> list[Call]:
    """A prompt of appendix A, filled once a trial; a call and a seed for each draw.

    The :func:`writer` is asked, or the first of ``MODELS`` where there is none.
    """
    seed = parameters["SEED"]
    first = models.split(parameters["MODELS"][0], parameters["ENGINE"])
    model, engine = writer(parameters) or first
    sampling = free_sampling(parameters, model)
    if sampling.temperature == 0:
        raise InputError("TEMPERATURE must be above 0, as one prompt is to give several answers")
    template = stimuli.templates()[prompt]

    def render(condition: Mapping[str, Any]) -> list[dict[str, str]]:
        return [{"role": "user", "content": filled(template, condition["values"])}]

    design = Design([Block({"prompt": prompt}, {"values": values}, render, template)])
    part = f"{prompt}-{design.fingerprint[:12]}"
    return [
        Call(
            "giebench", "construction", model, engine, f"{part}-{draw}", design,
            replace(sampling, seed=draw), options={"system": "fold"},  # no prompt has a system turn
        )
        for draw in range(seed * draws, (seed + 1) * draws)
    ]  # fmt: skip


def read_topics(file: Path, annotated: bool = False) -> pd.DataFrame:
    """Topics, or an annotated sheet: CSV, in which capitals and spaces are forgiven.

    Texts by number of line: ``category``, ``identity``, ``topic`` and, if `annotated`,
    ``annotator_1`` and so on and ``discussed``. InputError is as of
    :func:`ingroup.tables.read_table`, and for a topic without text or twice, a category unknown to
    the paper, a mark that is none, a discussed stance against annotators who all concur.
    """
    meant = ["annotator_1", "annotator_2", "discussed"] if annotated else []
    table = read_table(file, [*TOPIC, *meant])
    marks = [name for name in table if annotated and re.fullmatch(r"annotator_\d+", name)]
    table = table[[*TOPIC, *marks, *meant[2:]]].map(one_line)
    words = dict.fromkeys(marks, ("", *STANCES, OFFENSIVE))
    words |= {"category": tuple(stimuli.categories()), "discussed": ("", *STANCES)}
    for name, column in table.items():
        forms = {word.lower(): word for word in words.get(name, ())}
        lower = column.str.lower()
        expected = ", ".join(word or "blank" for word in forms.values()) or "text"
        check(file, column, lower.isin(list(forms)) if forms else column.ne(""), expected)
        table[name] = lower.map(forms) if forms else column
    once(file, table[TOPIC[1:]], table[TOPIC[1:]].map(str.casefold))
    for line, row in table.iterrows() if annotated else ():
        if row[marks].nunique() == 1 and row.discussed not in ("", row[marks[0]]):
            expected = f"blank, as all annotators say {row[marks[0]] or 'nothing yet'}"
            raise wrong(at(file, line), repr(row.discussed), expected, "discussed")
    return table


def labels(sheet: pd.DataFrame) -> pd.DataFrame:
    """The three rules of section 3.1: each topic's ``label``, a stance or blank, and ``state``.

    (1) Where all annotators concur ("agreed"), their stance is the label. (2) Where they disagree
    ("to discuss"), it is what they settle on when they meet ("discussed"). (3) A topic that offends
    any of them is "removed", also before all are done; else it is "unfinished".
    """
    marks, settled = _marks(sheet), sheet.discussed.to_numpy(str)
    rules = {
        "removed": (marks == OFFENSIVE).any(axis=1),
        "unfinished": (marks == "").any(axis=1),
        "agreed": (marks == marks[:, :1]).all(axis=1),
        "discussed": settled != "",
    }
    state = np.select(list(rules.values()), list(rules), "to discuss")
    label = np.select([state == "agreed", state == "discussed"], [marks[:, 0], settled], "")
    return sheet.assign(label=label, state=state)


def kappa(sheet: pd.DataFrame, marks: Sequence[str] = STANCES) -> tuple[float, int]:
    """Fleiss' kappa of the annotators before they meet, by statsmodels, and over how many topics.

    With n_ij the annotators, of m, who give topic i the mark j, and p_j the share of mark j::

        kappa = (P - Q) / (1 - Q),  P = mean_i sum_j n_ij (n_ij - 1) / (m (m - 1)),  Q = sum_j p_j^2

    Over the topics with no other mark than these: not those that rule 3 removes, unless "offensive"
    is one of them, nor those with a blank. NaN where no topic, or only one mark, is left.
    """
    # Seconds to import, for which nobody has to wait who only reads or asks.
    from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

    given = _marks(sheet)
    given = given[np.isin(given, marks).all(axis=1)]
    counts, used = aggregate_raters(given)
    return float(fleiss_kappa(counts)) if len(used) > 1 else np.nan, len(given)


def _marks(sheet: pd.DataFrame) -> np.ndarray:
    """What the annotators wrote, shape (topic, annotator)."""
    return sheet.filter(regex=r"^annotator_\d+$").to_numpy(dtype=str)


def items(
    ready: pd.DataFrame, draws: Sequence[pd.DataFrame], rng: np.random.Generator
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Items in the layout of data/sample/giebench.json, and a sentence for each that lacks answers.

    ``draws`` are four tables of replies to the dialog prompt, a row for each topic of ``ready``:
    with the label's attitude, then thrice with the opposite one. ``rng`` draws the letter of the
    fitting answer, each with probability 1/4.
    """
    made: dict[str, dict[str, Any]] = {}
    problems = []
    dialogs = (found(draw, parse_dialog) for draw in draws)
    for topic, *four in zip(ready.itertuples(), *dialogs, strict=True):
        missing = next((dialog.missing for dialog in four if dialog.missing), "")
        answers = [dialog.texts[1] for dialog in four if not missing]
        # Answers that differ in a mark or a capital say the same.
        if len({re.sub(r"[\W_]", "", answer.casefold()) for answer in answers}) < len(answers):
            missing = "two of the four answers are the same; another SEED draws anew"
        if missing:
            problems.append(f"{topic.identity}, {topic.topic!r}: {missing}")
            continue
        place = int(rng.integers(len(stimuli.LETTERS)))
        answers.insert(place, answers.pop(0))
        about = {"category": topic.category, "identity": topic.identity, "question": topic.topic}
        made[str(len(made))] = about | {"answers": answers, "correct": stimuli.LETTERS[place]}
    return made, problems


# --- what a reply holds; whatever it says, nothing here raises

_NUMBER = re.compile(r"\s*(?:[-*•]\s+|\(?\d{1,3}[.):]\s*)")
_QUESTION = re.compile(r'["“]([^"“”]*\?)\s*["”]')
_LABEL = re.compile(r"[^?:]{1,60}:\s+")  # "Marriage: Should ...?"
_SPEAKER = re.compile(
    r"""(?:^[\s{*]{0,9}["“'*]{0,3}|[{,]\s{0,9}["“'])(user|assistant)["”'*]{0,3}\s{0,9}:""",
    re.IGNORECASE | re.MULTILINE,
)
_CLOSING = {'"': '"', "“": "”", "'": "'"}
_MARK = re.compile(r"\[\[\s*\w\s*\]\]|\[The (?:Start|End) of|\[User Question\]", re.IGNORECASE)


class Found(NamedTuple):
    """Texts of a reply, and in one sentence what is missing, empty where nothing is."""

    texts: list[str]
    missing: str


def found(replies: pd.DataFrame, parse: Callable[[str], Found]) -> list[Found]:
    """Each reply of a store, parsed; of a call that failed, and a dialog cut off, the reason."""
    read = []
    for row in replies.itertuples():
        parsed = parse(row.text if isinstance(row.text, str) else "")
        if row.finish_reason == FAILED:
            parsed = parsed._replace(missing=f"the call failed ({row.error})")
        elif row.finish_reason == LENGTH and (parse is parse_dialog or not row.text):
            parsed = parsed._replace(missing="the reply was cut off; a larger MAX_TOKENS helps")
        read.append(parsed)
    return read


def parse_topics(text: str) -> Found:
    """The questions in a reply to the topic prompt.

    A topic is a numbered, bulleted or quoted line that ends in a question mark; in a reply without
    such lines, any line that does. Marks and a short label before a colon are taken off; a topic
    that comes again is left out.
    """
    marked, bare = {}, {}
    for line in text.splitlines():
        number = _NUMBER.match(line)
        rest = one_line(line[number.end() :] if number else line).replace("**", "")
        quoted = _QUESTION.search(rest)
        topic = quoted[1] if quoted else rest.rstrip("\"“”*_ '")
        if not quoted and (label := _LABEL.match(topic)):
            topic = topic[label.end() :]
        topic = re.sub(r"^[\W_]+", "", topic)  # nothing that a spreadsheet takes for a formula
        if topic.endswith("?"):
            (marked if number or quoted else bare).setdefault(topic.casefold(), topic)
    topics = list((marked or bare).values())
    return Found(topics, "" if topics else "no line of the reply is a question")


def parse_dialog(text: str) -> Found:
    """User's and assistant's turn in a reply to the dialog prompt.

    They stand after ``"user":`` and ``"assistant":``, in one line, as JSON, or at the start of
    lines, perhaps without quotation marks. An answer with a mark of the evaluation prompts, e.g.
    ``[[A]]``, would speak to the judge and counts as missing.
    """
    speakers = list(_SPEAKER.finditer(text))
    rounds = Counter(speaker[1].lower() for speaker in speakers)
    if absent := [f'no "{name}":' for name in ("user", "assistant") if not rounds[name]]:
        return Found([], f"{' and '.join(absent)} in the reply")
    if max(rounds.values()) > 1:
        return Found([], f"{max(rounds.values())} rounds in the reply, expected one")
    said = zip(speakers, (speakers[1].start(), len(text)), strict=True)
    turns = {speaker[1].lower(): _turn(text[speaker.end() : stop]) for speaker, stop in said}
    missing = next((f'nothing after "{name}":' for name, turn in turns.items() if not turn), "")
    if mark := _MARK.search(turns["assistant"]):
        missing = f"{mark[0]!r} in the answer, a mark of the evaluation prompts"
    return Found([turns["user"], turns["assistant"]], missing)


def _turn(text: str) -> str:
    """What is said, without its quotation marks and what stands in the lines behind them."""
    said = text.strip(" \t\r\n*`{},")
    if closing := _CLOSING.get(said[:1]):
        end = re.search(rf"(?<!\\){closing}[ \t`,}}]*(?:[\r\n]|\Z)", said[1:])
        if end or closing not in said[1:]:  # an opening quotation mark may be of its first word
            said = said[1 : end.start() + 1 if end else None]
        try:
            said = json.loads(f'"{said}"', strict=False)  # with JSON's escapes
        except ValueError:
            said = said.replace('\\"', '"')
    return one_line(said)
