"""Identities (Table 1), events (section 3.2), wordings (Table 5) and prompts (section 3.3)."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import yaml

from ingroup import RAW, SAMPLE, STIMULI
from ingroup.inference.answers import Message
from ingroup.inference.design import Block, Design
from ingroup.tables import InputError, check, read_table, read_texts

FOLDER = STIMULI / "empathy_gap"
UNSPECIFIED = "a person"  # comes first in every category and is in no group
FORMS = ["generated_text", "first_person_text", "third_person_text"]


class Setting(NamedTuple):
    """One wording of the prompt.

    Attributes
    ----------
    name : str
        Persona, scale and task, e.g. ``P0,S0,T0``.
    system, user : str
        The two turns, with the paper's placeholders.
    low, high : int
        The ends of the scale.
    form : str
        The form of the narrative that the task shows, a column of the corpus.
    """

    name: str
    system: str
    user: str
    low: int
    high: int
    form: str


def identities(category: str = "") -> pd.DataFrame:
    """Read the identities of a category, or of all.

    Parameters
    ----------
    category : str
        A category of Table 1.

    Returns
    -------
    DataFrame
        ``category``, ``group`` and ``identity`` in the order of Table 1, "a person" first.

    Raises
    ------
    InputError
        The category is unknown, a cell is empty, or "a person" does not come first.
    """
    file = FOLDER / "identities.csv"
    table = read_texts(file, ["category", "group", "identity"])
    firsts = table.drop_duplicates("category").identity
    # Matrices rely on "a person", who is their first row and column.
    check(file, firsts, firsts == UNSPECIFIED, f"{UNSPECIFIED!r} first")
    if not category:
        return table

    of_category = table[table.category == category]
    if of_category.empty:
        known = ", ".join(table.category.unique())
        raise InputError(f"CATEGORIES: found {category!r}, expected one of {known}")
    return of_category.reset_index(drop=True)


def same_group(category: str) -> np.ndarray:
    """Mark the pairs of named identities that share a group.

    Parameters
    ----------
    category : str
        A category of Table 1.

    Returns
    -------
    ndarray of bool, (n, n)
        Without "a person". The diagonal is True.
    """
    groups = identities(category).group.to_numpy()[1:]
    return groups[:, None] == groups


def clusters() -> pd.DataFrame:
    """Read ``identity``, ``label`` and cultural ``cluster`` of the countries (Table 4)."""
    return read_table(FOLDER / "clusters.csv", ["identity", "label", "cluster"])


def load_events(corpus: str = "sample", n_events: int = 0) -> pd.DataFrame:
    """Read the events of a corpus, balanced over the emotions.

    Parameters
    ----------
    corpus : str
        "sample" (``data/sample``), "crowd-envent" (6,050 events, after ``make data``), or a TSV
        file or a folder of TSV files with ``emotion``, ``text_id``, ``generated_text`` and, where
        they exist, ``first_person_text`` and ``third_person_text``.
    n_events : int
        The first event of each emotion is taken, then the second, until there are so many; 0 takes
        all. Emotions have their turn in the order of the file.

    Returns
    -------
    DataFrame of str
        ``event`` (its name), ``emotion`` and the three forms of the narrative, "" for a form that
        the corpus lacks. Emotions are sorted.

    Raises
    ------
    InputError
        The corpus cannot be read, has an empty cell or an event twice, or has fewer events.
    """
    places = {
        "sample": SAMPLE / "narratives.tsv",
        "crowd-envent": RAW / "crowd-envent",
    }
    path = places.get(corpus, Path(corpus))
    files = [path] if path.is_file() else sorted(path.glob("*.tsv"))
    if not files:
        raise InputError(f"CORPUS: found no file at {path}; `make data` fetches crowd-envent")

    tables = [_read_corpus(file) for file in files]
    events = pd.concat(tables, ignore_index=True)
    if n_events > len(events):
        raise InputError(f"N_EVENTS is {n_events}, but {corpus!r} has {len(events)} events")

    turn = events.groupby("emotion").cumcount()
    in_turn = turn.sort_values(kind="stable").index
    taken = events.loc[in_turn[: n_events or None]]
    return taken.sort_values("emotion", kind="stable", ignore_index=True)


def _read_corpus(file: Path) -> pd.DataFrame:
    """Read one file of events, and give each a name."""
    table = read_texts(file, ["emotion", "text_id", "generated_text"])
    table["event"] = table.emotion + " " + table.text_id
    check(file, table.text_id, ~table.event.duplicated(), "each event once")
    return table.reindex(columns=["event", "emotion", *FORMS], fill_value="")


@cache
def wordings() -> dict[str, Any]:
    """Read the parts of the prompts, word for word, and the names of the seven settings."""
    text = (FOLDER / "prompts.yaml").read_text("utf8")
    return yaml.safe_load(text)


def setting(name: str) -> Setting:
    """Put a setting together from its persona, scale and task.

    Parameters
    ----------
    name : str
        E.g. ``P0,S0,T0``.

    Raises
    ------
    InputError
        A part is unknown.
    """
    texts = wordings()
    parts = [texts[kind] for kind in ("persona", "scale", "task")]
    try:
        chosen = [part[key] for part, key in zip(parts, name.split(","), strict=True)]
    except (KeyError, ValueError):
        known = "; ".join(map(", ".join, parts))
        raise InputError(f"SETTINGS: found {name!r}, expected one of each of {known}") from None

    persona, scale, task = chosen
    return Setting(
        name=name,
        system=texts["join"].join([persona, scale["text"]]),
        user=task["text"],
        low=scale["low"],
        high=scale["high"],
        form=task["narrative"],
    )


def design(events: pd.DataFrame, wording: Setting, category: str) -> Design:
    """Cross all perceivers, experiencers and events of a category (section 3.3).

    Parameters
    ----------
    events : DataFrame
        From `load_events`.
    wording : Setting
        From `setting`.
    category : str
        A category of Table 1.

    Returns
    -------
    Design
        The slowest factor comes first in the prompt, so that neighbours share a long prefix.
    """
    people = tuple(identities(category).identity)
    told = events[["event", "emotion"]].assign(narrative=events[wording.form])
    factors = {
        "perceiver": people,
        "experiencer": people,
        "event": told.to_dict("records"),
    }

    def render(condition: Mapping[str, Any]) -> list[Message]:
        event = condition["event"]
        system = wording.system.replace("{Perceiver Social Group}", condition["perceiver"])
        user = wording.user.replace("{Experiencer Social Group}", condition["experiencer"])
        user = user.replace("{Emotion}", event["emotion"])
        # The narrative comes last, as a participant may have written a placeholder.
        user = user.replace("{Narrative}", event["narrative"])
        return [
            {"role": "system", "content": system},
            {"role": "user", "content": user},
        ]

    labels = {"setting": wording.name, "category": category}
    return Design([Block(labels, factors, render)])


def rewriting(events: pd.DataFrame) -> Design:
    """Ask for each event in the third person, by the one-shot prompt of appendix A.2.

    Parameters
    ----------
    events : DataFrame
        From `load_events`. The full first-person form is shown, or else the text as written.

    Returns
    -------
    Design
        One factor, ``narrative``.
    """
    first_person = events.first_person_text
    is_written = first_person != ""
    narratives = first_person.where(is_written, events.generated_text)
    request = wordings()["rewrite"]

    def render(condition: Mapping[str, Any]) -> list[Message]:
        prompt = request.replace("{narrative}", condition["narrative"])
        return [{"role": "user", "content": prompt}]

    return Design([Block({}, {"narrative": tuple(narratives)}, render)])


def rewritten(reply: str) -> str:
    """Take the text out of a reply to `rewriting`, up to the brace that the prompt left open."""
    text, _, _ = reply.strip().removeprefix("{").partition("}")
    first_line, _, _ = text.strip().partition("\n")
    return first_line.strip()
