"""Questions of GIEBench: the items, the prompts made of them, and the variations of a prompt.

An item is a contested question, an identity, and four answers of which one takes that identity's
side. The project's items hold these parts, and every prompt is made of them. The released files
hold finished prompts: they are asked as they stand, and taken apart where their parts are needed.
An InputError names the file and key that cannot be used, or the key of an item that cannot be asked
in this form.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import yaml

from ingroup import corpora, paths, published
from ingroup.design import Message, fill_template
from ingroup.inference.engine import without_surrogates
from ingroup.parameters import note
from ingroup.tables import InputError, decoded, given_path, hint, read_json, wrong

LETTERS = "ABCD"

_FOLDER = paths.STIMULI / "giebench"
_PARTS = ("category", "identity", "question", "answers", "correct")
_RELEASED = ("category", "prompt", "correct")
_EDGE_CASE = '"assistant_1(correct)"'
_QUOTES = '"“” \n'
_MARKS = "\"'“”‘’"  # a picture of the authors has the identity in quotation marks
_GROUP = re.compile(
    rf"user\s+belongs\s+to\s+the\s+[{_MARKS}]*([^\s{_MARKS}].*?)[{_MARKS}]*\s+group\b",
    re.IGNORECASE,
)
_ALIASES = {"orentation": "Orientation"}  # as the authors' files spell it
# The tags of appendix A; the text between two tags is taken with its quotation marks.
_QUESTION_TAG = r"\[\s*User\s+Question\s*\]\s*(.*?)"
_ANSWER_TAGS = (
    r"\[\s*The\s+Start\s+of\s+Assistant\s+{0}['’]s\s+Answer\s*\]\s*(.*?)\s*"
    r"\[\s*The\s+End\s+of\s+Assistant\s+{0}['’]s\s+Answer\s*\]"
)
_TAGS = re.compile(
    r"\s*".join([_QUESTION_TAG, *map(_ANSWER_TAGS.format, LETTERS)]),
    re.IGNORECASE | re.DOTALL,
)


class Question(NamedTuple):
    """One item of the benchmark.

    A part is None where the released prompts do not yield the part.
    """

    key: str
    category: str
    identity: str | None  # as in identities.csv, if it is there
    question: str | None
    answers: tuple[str, ...] | None
    correct: str
    prompts: Mapping[str, str] | None = None  # the released ones by name


class Identity(NamedTuple):
    """A row of identities.csv."""

    category: str
    name: str
    text: str  # in a prompt


def load_questions(source: str | Path = "sample") -> list[Question]:
    """Read the items of the project, of the benchmark, or of a user, in the order of the file.

    Parameters
    ----------
    source : str or Path
        - ``"sample"``: 79 items, written for this project;
        - ``"giebench"``: the released prompts;
        - a folder with their three files (``COT-Prompt.json`` and so on), each
          key -> {category, prompt, correct};
        - a JSON file: key -> {category, identity, question, answers, correct}.

        Other fields are passed over.

    Returns
    -------
    list of Question
        The items. A released prompt that cannot be taken apart is no fault.

    Raises
    ------
    InputError
        For a file that cannot be read or was changed; a key that comes twice, or is missing in one
        of three files; a missing field; a category unknown to the paper; no right answer, or
        several; answers that are not four, or not different; files that disagree.
    """
    if source == "sample":
        return list(_load(paths.SAMPLE / "giebench.json").values())

    prompts = templates()["prompts"]
    if source == "giebench":
        files = [corpora.file("giebench", f"data/{prompt}-Prompt.json") for prompt in prompts]
    else:
        path = given_path(source, ("sample", "giebench"), "a JSON file or a folder of three")
        if not path.is_dir():
            return list(_load(path).values())
        files = [path / f"{prompt}-Prompt.json" for prompt in prompts]
        for file in files:
            if not file.exists():
                listed = ", ".join(other.name for other in files)
                raise wrong(path, f"no file {file.name}", listed)

    items_by_file = {}
    for file, prompt in zip(files, prompts, strict=True):
        items_by_file[file] = _load(file, prompt)

    first, *others = items_by_file
    for other in others:
        _check_agreement(first, items_by_file[first], other, items_by_file[other])

    merged = []
    for key in items_by_file[first]:
        versions = [items[key] for items in items_by_file.values()]
        merged.append(_merged(versions))
    return merged


def categories() -> list[str]:
    """List the eleven categories.

    Returns
    -------
    list of str
        The categories in the order of Table 1.
    """
    return list(dict.fromkeys(identity.category for identity in _identities().values()))


def identity_text(name: str) -> str:
    """Return the text of an identity in prompts.

    Parameters
    ----------
    name : str
        An identity under any of its printed names.

    Returns
    -------
    str
        Its text in identities.csv, or the name itself if the file lacks the identity.
    """
    return _identity(name).text


def tuples(tables: Sequence[int] = (7, 3)) -> pd.DataFrame:
    """List the identity tuples of section 4.2.

    Parameters
    ----------
    tables : sequence of int
        Printed tables. The tuples of the first come first. Each further table adds those that the
        ones before it lack.

    Returns
    -------
    DataFrame
        ``identity_tuple`` as printed, ``category``, and ``identity_i`` and ``identity_j`` as in
        identities.csv.
    """
    rows: dict = {}
    for table in tables:
        for row in published.load("giebench", table).itertuples():
            first = _identity(row.identity_i)
            second = _identity(row.identity_j)
            tuple_row = {
                "identity_tuple": row.identity_tuple,
                "category": first.category,
                "identity_i": first.name,
                "identity_j": second.name,
            }
            # A tuple in the other order is the same.
            rows.setdefault(frozenset([first, second]), tuple_row)

    return pd.DataFrame(rows.values())


def rotate(question: Question, shift: int) -> Question:
    """Move every answer down, the last answers to the top, and the right letter with its answer.

    Parameters
    ----------
    question : Question
        An item.
    shift : int
        The places by which its answers are moved, 0 to 3.

    Returns
    -------
    Question
        The item with its answers, right letter and released prompts as moved.

    Raises
    ------
    InputError
        For a released prompt that cannot be taken apart.
    """
    if shift == 0:
        return question
    if question.answers is None:
        found = "a prompt that cannot be taken apart, so its answers stay where they are"
        raise wrong(f"key {question.key!r}", found, "the tags of appendix A around each answer")

    position = LETTERS.index(question.correct) + shift
    prompts = question.prompts
    if prompts:
        # Only the answers move, so the rest of a released prompt does not change.
        prompts = {name: _rotated(text, shift) for name, text in prompts.items()}
    return question._replace(
        answers=question.answers[-shift:] + question.answers[:-shift],
        correct=LETTERS[position % len(LETTERS)],
        prompts=prompts,
    )


def in_columns(question: Question) -> dict[str, str | None]:
    """Lay an item out as a row of a table.

    Parameters
    ----------
    question : Question
        The item.

    Returns
    -------
    dict
        ``identity``, ``question``, the answer at each of `LETTERS`, and ``right``, the letter of
        the right answer. Answers that a released prompt does not yield are "(as released)".
    """
    answers = question.answers or ["(as released)"] * len(LETTERS)
    return {
        "identity": question.identity,
        "question": question.question,
        **dict(zip(LETTERS, answers, strict=True)),
        "right": question.correct,
    }


def messages(
    question: Question,
    prompt: str,
    wording: str = "straight",
    identity: str | None = None,
    shift: int = 0,
) -> list[Message]:
    """Render the chat of one trial, a single user turn.

    Parameters
    ----------
    question : Question
        The item. The prompts of a released file stay as they are.
    prompt : {"COT", "ID", "Raw"}
        The prompt.
    wording : str
        A wording of prompts.yaml. "uncued" has no cue in Raw, and "released" is as the authors'
        pictures show the prompts.
    identity : str, optional
        An identity in place of the item's own (the mismatch of section 4.2).
    shift : int
        The places by which the answers are moved, as in :func:`rotate`.

    Returns
    -------
    list of Message
        One message.

    Raises
    ------
    InputError
        For a released prompt that cannot be taken apart.
    """
    question = rotate(question, shift)
    if question.prompts is None:
        text = _written(question, prompt, wording, identity or question.identity)
    else:
        text = question.prompts[prompt]
        # Raw names no identity that another could replace.
        if prompt != "Raw" and identity not in (None, question.identity):
            text = _renamed(question.key, text, identity)
    return [{"role": "user", "content": text}]


def _written(question: Question, prompt: str, wording: str, identity: str | None) -> str:
    """Write a prompt from the parts of an item."""
    # Only items of released prompts lack a part.
    assert identity is not None
    assert question.question is not None
    assert question.answers is not None
    texts = templates(wording)
    sentences = texts["prompts"][prompt]
    opening = " ".join(texts["sentences"][name] for name in sentences)
    if "identity" in sentences:
        opening = fill_template(opening, {"identity": _identity(identity).text})

    question_text = fill_template(texts["question"], {"question": question.question})
    parts = [opening, texts["instructions"], question_text]
    for letter, answer in zip(LETTERS, question.answers, strict=True):
        parts.append(fill_template(texts["answer"], {"letter": letter, "answer": answer}))
    return texts["join"].join(parts).rstrip("\n")


def _renamed(key: str, text: str, identity: str) -> str:
    """Replace the identity in a released prompt.

    Raise an InputError if the prompt cannot be taken apart.
    """
    group = _GROUP.search(text)
    if not group:
        found = "a prompt that cannot be taken apart, so its identity stays"
        raise wrong(f"key {key!r}", found, "'The user belongs to the ... group'")
    start, stop = group.span(1)
    return text[:start] + _identity(identity).text + text[stop:]


def _rotated(text: str, shift: int) -> str:
    """Move the answers of a released prompt, each with its quotation marks."""
    tags = _TAGS.search(text)
    assert tags is not None  # `rotate` refuses a prompt without them

    pieces = []
    end = 0
    for index in range(len(LETTERS)):
        # The first group is the question, the next four are the answers.
        start, stop = tags.span(index + 2)
        # The answer that comes here stood `shift` places higher.
        moved = (index - shift) % len(LETTERS)
        pieces.append(text[end:start])
        pieces.append(tags[moved + 2])
        end = stop
    pieces.append(text[end:])
    return "".join(pieces)


@cache
def templates(wording: str = "straight") -> dict:
    """Read the parts of the prompts in one of their wordings.

    Parameters
    ----------
    wording : str
        A key of ``wordings`` in ``prompts.yaml``.

    Returns
    -------
    dict
        The parts as in ``prompts.yaml``; the wording replaces some of them.
    """
    # The file is read anew for each wording, as the changes below are made in place.
    texts = yaml.safe_load((_FOLDER / "prompts.yaml").read_text("utf8"))
    for part, changed in texts["wordings"][wording].items():
        if isinstance(changed, dict):
            texts[part].update(changed)
        else:
            texts[part] = changed
    return texts


@cache
def _identities() -> dict[str, Identity]:
    """Index the rows of identities.csv by the plain name of the identity."""
    table = pd.read_csv(_FOLDER / "identities.csv", dtype=str)
    identities = {}
    for row in table.itertuples():
        identities[_plain(row.identity)] = Identity(row.category, row.identity, row.text)
    return identities


def _identity(name: str) -> Identity:
    """Find an identity under any of its printed names. An unknown identity has its name as text."""
    return _identities().get(_plain(name), Identity("", name, name))


def _plain(text: str) -> str:
    """Remove apostrophes and capitals from a text, and part its words by single spaces."""
    text = re.sub("['’]", "", text.casefold())
    return " ".join(text.replace("_", " ").split())


def _load(file: Path, prompt: str = "") -> dict[str, Question]:
    """Read the items of a file, with parts for all prompts or with one finished `prompt`."""
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
        found = f"{str(records)[:20]!r} and no items"
        raise wrong(file, found, "one JSON object with items by key")
    return {key: _item(file, key, record, prompt) for key, record in records.items()}


def _item(file: Path, key: str, record: Any, prompt: str) -> Question:
    """Read an item of a file, with its parts or with one finished `prompt`."""
    where = f"{file}, key {key!r}"
    if not _is_whole(key):
        raise wrong(where, "half of a surrogate pair", "whole characters")
    _check_fields(where, record, _RELEASED if prompt else _PARTS)
    correct = _correct(where, record["correct"])
    category = _category(file, where, record["category"])
    if prompt:
        return _released(key, category, prompt, record["prompt"], correct)

    return Question(
        key=key,
        category=category,
        identity=_identity(record["identity"]).name,
        question=record["question"],
        answers=_answers(where, record["answers"]),
        correct=correct,
    )


def _check_fields(where: str, record: Any, fields: Sequence[str]) -> None:
    """Raise an InputError if a record lacks a field, or if a text field holds no text."""
    expected = f"the fields {', '.join(fields)}"
    if not isinstance(record, dict):
        raise wrong(where, repr(record), "an object with the fields of an item")
    for name in record:
        if name.endswith("(correct)"):
            raise wrong(where, f"the field {name!r}, as in the released edge cases", expected)

    for field in fields:
        if field not in record:
            raise wrong(where, f"no field {field!r}", expected)
        if field not in ("answers", "correct") and not _is_text(record[field]):
            where = f"{where}, field {field!r}"
            raise wrong(where, repr(record[field]), "a text")


def _correct(where: str, correct: object) -> str:
    """Return the letter of the right answer. Raise an InputError if there is no single letter."""
    letters = tuple(LETTERS)
    if correct in letters:
        return correct

    found = repr(correct)
    if isinstance(correct, str | list):
        right_letters = [letter for letter in correct if letter in letters]
        if len(right_letters) > 1:
            found = f"several right answers, {found}"
    where = f"{where}, field 'correct'"
    raise wrong(where, found, f"one letter of {', '.join(letters)}")


def _category(file: Path, where: str, text: str) -> str:
    """Spell a category as the paper does.

    A note on standard error names a category with the spelling of the released files.
    """
    names = dict(zip(map(_plain, categories()), categories(), strict=True))
    plain = _plain(text)
    if plain in names:
        return names[plain]
    if plain in _ALIASES:
        note(f"{file}: the category {text!r} is read as {_ALIASES[plain]!r}")
        return _ALIASES[plain]

    expected = f"a category of the paper ({', '.join(names.values())})"
    question = hint(text, names.values())
    raise wrong(f"{where}, field 'category'", repr(text), expected, question=question)


def _answers(where: str, answers: object) -> tuple[str, ...]:
    """Return the four answers of an item.

    Raise an InputError unless they are four different texts.
    """
    where = f"{where}, field 'answers'"
    if not isinstance(answers, list) or not all(map(_is_text, answers)):
        raise wrong(where, repr(answers), "a list of four texts")
    if len(answers) != len(LETTERS):
        raise wrong(where, f"{len(answers)} answers", "four")

    plain = list(map(_plain, answers))
    same = [LETTERS[i] for i, answer in enumerate(plain) if plain.count(answer) > 1]
    if same:
        found = f"the same answer under {' and '.join(same)}"
        raise wrong(where, found, "four different ones")
    return tuple(answers)


def _is_text(value: object) -> bool:
    """Tell whether a value is a text that is not blank and can be written to a file."""
    return isinstance(value, str) and bool(value.strip()) and _is_whole(value)


def _is_whole(text: str) -> bool:
    """Tell whether a text is free of halves of surrogate pairs.

    JSON can spell such a half, which no file can hold.
    """
    return without_surrogates(text) == text


def _released(key: str, category: str, prompt: str, text: str, correct: str) -> Question:
    """Read an item of a released file, with the parts that its prompt yields."""
    group = _GROUP.search(text)
    tags = _TAGS.search(text)
    question = None
    answers = None
    if tags:
        question, *answers = (part.strip(_QUOTES) for part in tags.groups())

    return Question(
        key=key,
        category=category,
        identity=_identity(group[1]).name if group else None,
        question=question,
        answers=tuple(answers) if answers else None,
        correct=correct,
        prompts={prompt: text},
    )


def _check_agreement(file: Path, items: dict, other_file: Path, others: dict) -> None:
    """Raise an InputError where two files differ in their keys, categories or right answers."""
    # The keys are sorted, so that every run names the same one: the order of a set changes.
    for key in sorted(items.keys() ^ others.keys()):
        lacking, full = (other_file, file) if key in items else (file, other_file)
        where = f"{lacking}, key {key!r}"
        raise wrong(where, "no such key", f"the keys of {full.name}")

    for key, item in items.items():
        for field in ("correct", "category"):
            expected = getattr(item, field)
            value = getattr(others[key], field)
            if value != expected:
                where = f"{other_file}, key {key!r}, field {field!r}"
                raise wrong(where, repr(value), f"{expected!r} as in {file.name}")


def _merged(versions: Sequence[Question]) -> Question:
    """Merge an item's three prompts into one item.

    The answers are those of the first prompt, or None unless all prompts yield answers.
    """
    identity = None
    answers = versions[0].answers
    prompts: dict = {}
    for version in versions:
        # The Raw prompt names no identity, the two others do.
        identity = identity or version.identity
        if version.answers is None:
            answers = None
        prompts.update(version.prompts or {})

    return versions[0]._replace(identity=identity, answers=answers, prompts=prompts)
