"""Questions of GIEBench: the items, the prompts made of them, and what is varied in a prompt.

An item is a contested question, an identity, and four answers of which one takes that identity's
side. The project's items hold these parts, and every prompt is made of them. The released files
hold finished prompts: they are asked as they stand, and taken apart where their parts are needed.
InputError names what cannot be used: file and key, or the key of an item that cannot be so asked.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import yaml

from ingroup import corpora, paths, published
from ingroup.design import Message, filled
from ingroup.inference.engine import encodable
from ingroup.tables import InputError, decoded, read_json, wrong

LETTERS = "ABCD"

_FOLDER = paths.STIMULI / "giebench"
_PARTS = ("category", "identity", "question", "answers", "correct")
_RELEASED = ("category", "prompt", "correct")
_EDGE_CASE = '"assistant_1(correct)"'
_QUOTES = '"“” \n'
_MARKS = "\"'“”‘’"  # a picture of the authors has the identity in quotation marks
_GROUP = re.compile(
    rf"user\s+belongs\s+to\s+the\s+[{_MARKS}]*([^\s{_MARKS}].*?)[{_MARKS}]*\s+group\b", re.I
)
_note = cache(lambda sentence: print(sentence, file=sys.stderr))  # once, however often it is read
_ALIASES = {"orentation": "Orientation"}  # as the authors' files spell it
# The tags of appendix A; what stands between them is taken with its quotation marks.
_TAGS = re.compile(
    r"\[\s*User\s+Question\s*\]\s*(.*?)\s*"
    + r"\s*".join(
        rf"\[\s*The\s+Start\s+of\s+Assistant\s+{letter}['’]s\s+Answer\s*\]\s*(.*?)\s*"
        rf"\[\s*The\s+End\s+of\s+Assistant\s+{letter}['’]s\s+Answer\s*\]"
        for letter in LETTERS
    ),
    re.I | re.S,
)


class Question(NamedTuple):
    """One item; a part is None where the released prompts do not yield it."""

    key: str
    category: str
    identity: str | None  # as in identities.csv, if it is there
    question: str | None
    answers: tuple[str, ...] | None
    correct: str
    prompts: Mapping[str, str] | None = None  # the released ones by name


def load_questions(source: str | Path = "sample") -> list[Question]:
    """Read the items of the project, of the benchmark, or of a user, in the order of the file.

    The source is ``"sample"`` (79 items, written for this project), ``"giebench"`` (the released
    prompts), a folder with their three files (``COT-Prompt.json`` and so on: key -> {category,
    prompt, correct}), or a JSON file: key -> {category, identity, question, answers, correct}.
    Other fields are passed over.

    Raises InputError for a file that cannot be read or was changed; a key that comes twice, or is
    missing in one of three files; a missing field; a category unknown to the paper; no right
    answer, or several; not four different answers; files that disagree. A released prompt that
    cannot be taken apart is no fault.
    """
    place = paths.SAMPLE / "giebench.json" if source == "sample" else Path(source).expanduser()
    if source != "giebench" and not place.is_dir():
        return list(_load(place).values())
    read = {}
    for prompt in templates()["prompts"]:
        name = f"{prompt}-Prompt.json"
        file = corpora.file("giebench", f"data/{name}") if source == "giebench" else place / name
        read[file] = _load(file, prompt)
    (file, first), *others = read.items()
    for other in others:
        _agree(file, first, *other)
    return [_merged([items[key] for items in read.values()]) for key in first]


def categories() -> list[str]:
    """The eleven categories in the order of Table 1."""
    return list(dict.fromkeys(category for category, _, _ in _identities().values()))


def tuples(tables: Sequence[int] = (7, 3)) -> pd.DataFrame:
    """Identity tuples of section 4.2: those of table 7, then what table 3 has besides.

    ``identity_tuple`` is as printed, ``identity_i`` and ``identity_j`` are as in identities.csv.
    """
    printed = pd.concat([published.load("giebench", n) for n in tables], ignore_index=True)
    one, other = (printed[side].map(_identity) for side in ("identity_i", "identity_j"))
    sides = {"category": one.str[0], "identity_i": one.str[1], "identity_j": other.str[1]}
    again = pd.Series(map(frozenset, zip(one, other, strict=True))).duplicated()
    return printed[["identity_tuple"]].assign(**sides)[~again].reset_index(drop=True)


def rotate(question: Question, shift: int) -> Question:
    """Move every answer down by 0 to 3 places, the last ones to the top, the right letter with it;
    InputError for a released prompt that cannot be taken apart."""
    if shift == 0:
        return question
    if question.answers is None:
        found = "a prompt that cannot be taken apart, so its answers stay where they are"
        raise wrong(f"key {question.key!r}", found, "the tags of appendix A around each answer")
    moved = question.answers[-shift:] + question.answers[:-shift]
    correct = LETTERS[(LETTERS.index(question.correct) + shift) % len(LETTERS)]
    prompts = question.prompts and {n: _rotated(t, shift) for n, t in question.prompts.items()}
    return question._replace(answers=moved, correct=correct, prompts=prompts)


def messages(
    question: Question, prompt: str, wording: str = "straight", identity: str | None = None,
    shift: int = 0,
) -> list[Message]:  # fmt: skip
    """The chat of one trial: a single user turn, the prompt "COT", "ID" or "Raw".

    `wording` is one of prompts.yaml ("uncued": no cue in Raw; "released": as the authors' pictures
    show them); the prompts of a released file stay as they are. An `identity` stands in place of
    the item's own (the mismatch of section 4.2); `shift` is for :func:`rotate`. Raises InputError
    for a released prompt that cannot be taken apart.
    """
    question = rotate(question, shift)
    if question.prompts is None:
        texts = templates(wording)
        sentences = texts["prompts"][prompt]
        opening = " ".join(texts["sentences"][name] for name in sentences)
        if "identity" in sentences:
            opening = filled(opening, {"identity": _identity(identity or question.identity)[2]})
        asked = filled(texts["question"], {"question": question.question})
        parts = [opening, texts["instructions"], asked]
        for letter, answer in zip(LETTERS, question.answers, strict=True):
            parts.append(filled(texts["answer"], {"letter": letter, "answer": answer}))
        text = texts["join"].join(parts).rstrip("\n")
    else:
        text = question.prompts[prompt]
        if prompt != "Raw" and identity not in (None, question.identity):
            group = _GROUP.search(text)
            if not group:
                found = "a prompt that cannot be taken apart, so its identity stays"
                expected = "'The user belongs to the ... group'"
                raise wrong(f"key {question.key!r}", found, expected)
            text = text[: group.start(1)] + _identity(identity)[2] + text[group.end(1) :]
    return [{"role": "user", "content": text}]


def _rotated(text: str, shift: int) -> str:
    """A released prompt with its answers moved, each with its quotation marks."""
    spans = _TAGS.search(text).regs[2:]  # after the whole and the question
    pieces, end = [], 0
    for place, (start, stop) in enumerate(spans):
        pieces += [text[end:start], text[slice(*spans[place - shift])]]
        end = stop
    return "".join([*pieces, text[end:]])


@cache
def templates(wording: str = "straight") -> dict:
    """What the prompts are made of, as in ``prompts.yaml``."""
    texts = yaml.safe_load((_FOLDER / "prompts.yaml").read_text("utf8"))
    for part, own in texts["wordings"][wording].items():
        texts[part] = texts[part] | own if isinstance(own, dict) else own
    return texts


@cache
def _identities() -> dict[str, tuple[str, str, str]]:
    """Category, identity and its text in a prompt, by the plain name."""
    table = pd.read_csv(_FOLDER / "identities.csv", dtype=str)
    rows = table[["category", "identity", "text"]].itertuples(index=False, name=None)
    return {_plain(row[1]): row for row in rows}


def _identity(name: str) -> tuple[str, str, str]:
    """An identity under any of its printed names; one that the paper has not stands for itself."""
    return _identities().get(_plain(name), ("", name, name))


def _plain(text: str) -> str:
    return " ".join(re.sub("['’]", "", text.casefold()).replace("_", " ").split())


def _load(file: Path, prompt: str = "") -> dict[str, Question]:
    """The items of a file: parts of all prompts, or one finished `prompt`."""
    try:
        records = read_json(file)
    except InputError as problem:
        if _EDGE_CASE not in decoded(file):
            raise
        raise InputError(
            f"{str(problem).rstrip('.')}; the released edge cases are invalid JSON, and their "
            "items name no identity, so that they cannot be asked."
        ) from problem

    if not isinstance(records, dict) or not records:
        expected = "one JSON object with items by key"
        raise wrong(file, f"{str(records)[:20]!r} and no items", expected)
    return {key: _item(file, key, record, prompt) for key, record in records.items()}


def _item(file: Path, key: str, record: object, prompt: str) -> Question:
    where = f"{file}, key {key!r}"
    if not _is_whole(key):
        raise wrong(where, "half of a surrogate pair", "whole characters")
    if not isinstance(record, dict):
        raise wrong(where, repr(record), "an object with the fields of an item")
    fields = _RELEASED if prompt else _PARTS
    if marked := [name for name in record if name.endswith("(correct)")]:
        found = f"the field {marked[0]!r}, as in the released edge cases"
        raise wrong(where, found, f"the fields {', '.join(fields)}")
    for field in fields:
        if field not in record:
            raise wrong(where, f"no field {field!r}", f"the fields {', '.join(fields)}")
        if field not in ("answers", "correct") and not _is_text(record[field]):
            raise wrong(f"{where}, field {field!r}", repr(record[field]), "a text")
    if (correct := record["correct"]) not in tuple(LETTERS):
        several = isinstance(correct, str | list) and sum(x in tuple(LETTERS) for x in correct) > 1
        found = "several right answers, " * several + repr(correct)
        raise wrong(f"{where}, field 'correct'", found, f"one letter of {', '.join(LETTERS)}")
    names, told = {_plain(name): name for name in categories()}, _plain(record["category"])
    category = names.get(told, _ALIASES.get(told))
    if category is None:
        expected = f"a category of the paper: {', '.join(names.values())}"
        raise wrong(f"{where}, field 'category'", repr(record["category"]), expected)
    if told in _ALIASES:
        _note(f"{file}: the category {record['category']!r} is read as {category!r}")
    if prompt:
        return _released(key, category, prompt, record["prompt"], correct)
    answers, where = record["answers"], f"{where}, field 'answers'"
    if not isinstance(answers, list) or not all(map(_is_text, answers)):
        raise wrong(where, repr(answers), "a list of four texts")
    if (count := len(answers)) != len(LETTERS):
        raise wrong(where, f"{count} answers", "four")
    plain = [_plain(answer) for answer in answers]
    if again := [LETTERS[i] for i, answer in enumerate(plain) if plain.count(answer) > 1]:
        raise wrong(where, f"the same answer under {' and '.join(again)}", "four different ones")
    about = _identity(record["identity"])[1], record["question"]
    return Question(key, category, *about, tuple(answers), correct)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and _is_whole(value)


def _is_whole(text: str) -> bool:
    """Whether a text has no half of a surrogate pair, which JSON can spell and no file can hold."""
    return encodable(text) == text


def _released(key: str, category: str, prompt: str, text: str, correct: str) -> Question:
    """An item of a released file, with the parts that its prompt yields."""
    group, tags = _GROUP.search(text), _TAGS.search(text)
    identity = _identity(group[1])[1] if group else None
    question, *answers = [part.strip(_QUOTES) for part in tags.groups()] if tags else [None]
    own = {prompt: text}
    return Question(key, category, identity, question, tuple(answers) or None, correct, own)


def _agree(file: Path, items: dict, other_file: Path, others: dict) -> None:
    for key in sorted(items.keys() ^ others.keys()):
        here, there = (other_file, file) if key in items else (file, other_file)
        raise wrong(f"{here}, key {key!r}", "no such key", f"it as in {there.name}")
    for key, field in product(items, ("correct", "category")):
        here, there = getattr(items[key], field), getattr(others[key], field)
        if here != there:
            where = f"{other_file}, key {key!r}, field {field!r}"
            raise wrong(where, repr(there), f"{here!r} as in {file.name}")


def _merged(items: Sequence[Question]) -> Question:
    """One item out of its three prompts: answers of the first, if all of them yield theirs."""
    return items[0]._replace(
        identity=next((item.identity for item in items if item.identity), None),
        answers=items[0].answers if all(item.answers for item in items) else None,
        prompts={name: text for item in items for name, text in item.prompts.items()},
    )
