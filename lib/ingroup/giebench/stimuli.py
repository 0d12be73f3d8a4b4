"""Questions of GIEBench, the prompts made of them, and the paper's pairs of identities."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from ingroup import RAW, SAMPLE, STIMULI, published
from ingroup.tables import InputError, check, read_texts

PROMPTS = ["Raw", "ID", "COT"]
LETTERS = ["A", "B", "C", "D"]
SIDES = ["identity_i", "identity_j"]
PAIR = ["identity_tuple", *SIDES]
COLUMNS = ["category", "identity", "question", *LETTERS, "correct"]
FOLDER = STIMULI / "giebench"

# The words of appendix A around the parts of a released prompt.
GROUP = re.compile(r"(user belongs to the ['\"“‘]?)(.+?)(['\"”’]? group\b)", re.IGNORECASE)
ANSWER = re.compile(
    r"(\[\s*The Start of Assistant [A-D]['’]s Answer\s*\]\s*)"
    r"(.*?)"
    r"(\s*\[\s*The End of Assistant)",
    re.IGNORECASE | re.DOTALL,
)


def load_questions(source: str = "sample") -> pd.DataFrame:
    """Read the questions of this project, of the benchmark, or of a user.

    Parameters
    ----------
    source : str
        "sample", this project's 79 questions; "giebench", the released prompts (after ``make
        data``); a CSV file with `COLUMNS`; or a folder with the three released files.

    Returns
    -------
    DataFrame of str
        One row per question, by its key: `COLUMNS`, or, for released prompts, ``category``,
        ``identity``, ``correct`` and the text of each of `PROMPTS`.

    Raises
    ------
    InputError
        A file cannot be read, or a cell cannot be used.
    """
    known = {
        "sample": SAMPLE / "giebench.csv",
        "giebench": RAW / "giebench/data",
    }
    path = Path(known.get(source, source))
    return _released(path) if path.is_dir() else _written(path)


def categories() -> list[str]:
    """List the eleven categories in the order of Table 1."""
    return list(_identities().category.unique())


def identity_text(name: str) -> str:
    """Return how an identity reads in a prompt; an unknown identity reads as it is named."""
    return _identities().text.get(_plain(name), name)


def identity_name(name: str) -> str:
    """Return the name of an identity in identities.csv, for any of its printed spellings."""
    return _identities().identity.get(_plain(name), name)


@cache
def pairs() -> pd.DataFrame:
    """List the pairs of identities of Tables 7 and 3, each in both directions.

    Returns
    -------
    DataFrame
        `PAIR` (``identity_tuple`` as printed, ``identity_i`` and ``identity_j`` as in
        identities.csv), the ``identity`` of a question, and the other one of the pair, ``told``.
    """
    tables = []
    for number in (7, 3):
        printed = published.load("giebench", number)[PAIR]
        printed[SIDES] = printed[SIDES].map(identity_name)
        one_way = printed.assign(identity=printed.identity_i, told=printed.identity_j)
        other_way = printed.assign(identity=printed.identity_j, told=printed.identity_i)
        tables += [one_way, other_way]

    # Table 3 prints pairs of Table 7 again, one in the other order.
    both_ways = pd.concat(tables)
    return both_ways.drop_duplicates(["identity", "told"])


@cache
def template(prompt: str, wording: str) -> str:
    """Return a prompt of appendix A with ``{identity}``, ``{question}`` and ``{A}`` to ``{D}``.

    Parameters
    ----------
    prompt : {"Raw", "ID", "COT"}
        The prompt.
    wording : str
        A key of ``wordings`` in prompts.yaml.
    """
    file = FOLDER / "prompts.yaml"
    texts = yaml.safe_load(file.read_text("utf8"))
    parts = texts["wordings"][wording]
    return "\n".join([parts[prompt], parts["instructions"], parts["question"]])


def chat(
    item: Mapping[str, str],
    prompt: str,
    wording: str = "uncued",
    identity: str = "",
    shift: int = 0,
) -> list[dict[str, str]]:
    """Render the prompt of one trial, a single user turn.

    Parameters
    ----------
    item : mapping
        A row of `load_questions`.
    prompt : {"Raw", "ID", "COT"}
        The prompt.
    wording : {"uncued", "straight", "paper", "released"}
        The wording; released prompts stay as they are.
    identity : str
        The identity that the prompt names, the question's own unless given.
    shift : int
        By how many places each answer moves down, 0 to 3.

    Raises
    ------
    InputError
        A released prompt has no four answers that could be moved.
    """
    told = identity or item["identity"]
    if prompt in item:
        text = item[prompt]
        if told != item["identity"]:
            text = GROUP.sub(rf"\g<1>{identity_text(told)}\g<3>", text)
        if shift:
            text = _moved(text, shift)
    else:
        answers = [item[letter] for letter in LETTERS]
        moved = np.roll(answers, shift)
        text = template(prompt, wording).format(
            identity=identity_text(told),
            question=item["question"],
            **dict(zip(LETTERS, moved, strict=True)),
        )
    return [{"role": "user", "content": text}]


def _moved(text, shift):
    """Move the four answers of a released prompt down."""
    answers = [found[2] for found in ANSWER.finditer(text)]
    n = len(answers)
    if n != len(LETTERS):
        raise InputError(f"ORDER=rotate: found {n} answers in {text[:60]!r}, expected 4")
    moved = iter(np.roll(answers, shift))

    def replaced(found):
        before, _, after = found.groups()
        return f"{before}{next(moved)}{after}"

    return ANSWER.sub(replaced, text)


@cache
def _identities():
    """Read the identities of Tables 7 and 8, by their plain names."""
    table = pd.read_csv(FOLDER / "identities.csv")
    names = table.identity.map(_plain)
    return table.set_index(names)


def _plain(name):
    """Make the spellings of the paper's tables one: no capitals, apostrophes or underscores."""
    without = re.sub("['’]", "", name.casefold())
    return without.replace("_", " ").strip()


def _written(file):
    """Read questions from a CSV file; the key of a question is the number of its row."""
    table = read_texts(file, COLUMNS)[COLUMNS]
    known = categories()
    n_different = table[LETTERS].nunique(axis=1)
    check(file, table.category, table.category.isin(known), f"one of {', '.join(known)}")
    check(file, table.correct, table.correct.isin(LETTERS), "A, B, C or D")
    check(file, table.D, n_different == 4, "four different answers")

    table["identity"] = table.identity.map(identity_name)
    keys = table.index.astype(str)
    return table.set_index(keys.rename("key"))


def _released(folder):
    """Read the three released files, each key -> {category, prompt, correct}."""
    tables = {}
    for prompt in PROMPTS:
        file = folder / f"{prompt}-Prompt.json"
        try:
            tables[prompt] = pd.read_json(file, orient="index", convert_axes=False)
        except (OSError, ValueError) as error:
            raise InputError(f"{file} cannot be read: {error}") from error

    items = tables["Raw"][["category", "correct"]].rename_axis("key")
    for prompt, table in tables.items():
        items[prompt] = table.prompt

    # The authors' files write "orentation".
    category = items.category.str.capitalize()
    items["category"] = category.replace("Orentation", "Orientation")
    named = items.ID.str.extract(GROUP)[1]
    items["identity"] = named.fillna("").map(identity_name)
    return items
