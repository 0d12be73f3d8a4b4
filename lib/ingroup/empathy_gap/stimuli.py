"""Identities (Table 1), events (section 3.2), wordings (Table 5) and prompts (section 3.3)."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import yaml

from ingroup.inference.answers import Message
from ingroup.inference.design import Block, Design
from ingroup.paths import RAW, SAMPLE, STIMULI
from ingroup.tables import InputError, read_table, wrong

FOLDER = STIMULI / "empathy_gap"
UNSPECIFIED = "a person"  # comes first in every category and is in no group
FORMS = ["generated_text", "first_person_text", "third_person_text"]


class Event(NamedTuple):
    """An event in the form that a setting shows; its name is the emotion and a number."""

    name: str
    emotion: str
    narrative: str


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


def _read(file: Path, columns: list[str]) -> pd.DataFrame:
    """Read a table of texts. An empty cell is an InputError."""
    table = read_table(file, columns)
    for column in table:
        for row in table.index[table[column].str.strip() == ""]:
            raise wrong(file, row, column, table[column][row], "a text")
    return table


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
    table = _read(file, ["category", "group", "identity"])
    firsts = table[~table.category.duplicated()]
    # Matrices rely on "a person", who is their first row and column.
    for row in firsts.index[firsts.identity != UNSPECIFIED]:
        raise wrong(file, row, "identity", table.identity[row], f"{UNSPECIFIED!r} first")

    if not category:
        return table
    if category not in set(table.category):
        known = ", ".join(table.category.unique())
        raise InputError(f"CATEGORIES: found {category!r}, expected one of {known}")
    return table[table.category == category].reset_index(drop=True)


def categories() -> list[str]:
    """List the categories of social groups, in the order of Table 1."""
    return list(identities().category.unique())


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
        all.

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
    tables = [_read_corpus(file) for file in _corpus_files(corpus)]
    events = pd.concat(tables).sort_values("emotion", kind="stable", ignore_index=True)
    if n_events > len(events):
        raise InputError(f"N_EVENTS is {n_events}, but {corpus!r} has {len(events)} events")

    turn = events.groupby("emotion").cumcount()
    taken = turn.sort_values(kind="stable").index[: n_events or None]
    return events.loc[taken.sort_values()].reset_index(drop=True)


def _corpus_files(corpus: str) -> list[Path]:
    """List the files of a corpus, in the order of their names."""
    if corpus == "sample":
        return [SAMPLE / "narratives.tsv"]
    path = RAW / corpus if corpus == "crowd-envent" else Path(corpus)
    files = sorted(path.glob("*.tsv")) if path.is_dir() else [path]
    if not files or not files[0].is_file():
        raise InputError(f"CORPUS: found no file at {path}; `make data` fetches crowd-envent")
    return files


def _read_corpus(file: Path) -> pd.DataFrame:
    """Read one file of events, and give each a name."""
    table = _read(file, ["emotion", "text_id", FORMS[0]])
    table["event"] = table.emotion + " " + table.text_id
    for row in table.index[table.event.duplicated()]:
        raise wrong(file, row, "text_id", table.text_id[row], "each event once")
    return table.reindex(columns=["event", "emotion", *FORMS], fill_value="")


def tenth(events: pd.DataFrame) -> pd.DataFrame:
    """Choose a fixed random tenth of the events, at least two, whatever the seed of a run."""
    number = max(2, -(-len(events) // 10))
    chosen = np.random.default_rng(0).choice(len(events), number, replace=False)
    return events.iloc[sorted(chosen)]


@cache
def wordings() -> dict[str, Any]:
    """Read the parts of the prompts, word for word, and the names of the seven settings."""
    return yaml.safe_load((FOLDER / "prompts.yaml").read_text("utf8"))


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
    try:
        persona_name, scale_name, task_name = name.split(",")
        persona = texts["persona"][persona_name]
        scale = texts["scale"][scale_name]
        task = texts["task"][task_name]
    except (KeyError, ValueError):
        known = "; ".join(", ".join(texts[part]) for part in ("persona", "scale", "task"))
        raise InputError(f"SETTINGS: found {name!r}, expected one of each of {known}") from None

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
    shown = events[["event", "emotion", wording.form]]
    factors = {
        "perceiver": people,
        "experiencer": people,
        "event": tuple(map(Event._make, shown.itertuples(index=False))),
    }

    def render(condition: Mapping[str, Any]) -> list[Message]:
        event = condition["event"]
        system = wording.system.replace("{Perceiver Social Group}", condition["perceiver"])
        user = wording.user.replace("{Experiencer Social Group}", condition["experiencer"])
        user = user.replace("{Emotion}", event.emotion)
        # The narrative comes last, as a participant may have written a placeholder.
        user = user.replace("{Narrative}", event.narrative)
        return [{"role": "system", "content": system}, {"role": "user", "content": user}]

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
    narratives = first_person.where(first_person != "", events.generated_text)

    def render(condition: Mapping[str, Any]) -> list[Message]:
        prompt = wordings()["rewrite"].replace("{narrative}", condition["narrative"])
        return [{"role": "user", "content": prompt}]

    return Design([Block({}, {"narrative": tuple(narratives)}, render)])


def rewritten(reply: str) -> str:
    """Take the text out of a reply to `rewriting`, up to the brace that the prompt left open."""
    text = reply.strip().removeprefix("{").partition("}")[0]
    return text.strip().partition("\n")[0].strip()
