"""The study's stimuli: identities and prompts of ``data/stimuli/empathy_gap``, events of a corpus.

The folder holds the prompts word for word. This module only reads, checks and fills them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from ingroup import corpora, paths
from ingroup.design import Message, fill_template, tenth
from ingroup.tables import InputError, at, check, given_path, hint, once, read_table, wrong

UNSPECIFIED = "unspecified"  # the group of "a person", who is in no group
FOLDER = paths.STIMULI / "empathy_gap"
EMOTIONS = (
    "anger",
    "boredom",
    "disgust",
    "fear",
    "guilt",
    "joy",
    "pride",
    "relief",
    "sadness",
    "shame",
    "surprise",
    "trust",
)
REQUIRED = ("emotion", "text_id", "generated_text")
COLUMNS = (*REQUIRED, "first_person_text", "third_person_text")


def identities(category: str) -> pd.DataFrame:
    """Read the identities of one category.

    Parameters
    ----------
    category : str
        One of `categories`.

    Returns
    -------
    DataFrame
        ``group`` and ``identity`` in the order of Table 1, "a person" first.

    Raises
    ------
    InputError
        For an unknown category, an identity without a group, an identity that appears twice, or a
        category that does not begin with its one unspecified identity.
    """
    file = FOLDER / "identities.csv"
    table = read_table(file, ["category", "group", "identity"])
    for column in ("group", "identity"):
        check(file, table[column], table[column] != "", "a text")

    rows = table[table.category == category]
    if rows.empty:
        known = list(table.category.unique())
        names = [part.strip() for part in category.split(",")]
        if len(names) > 1 and set(names) <= set(known):
            listed = ";".join(names)
            raise InputError(
                f"found {category!r}, expected semicolons between categories: {listed}"
            )
        expected = f"one of {', '.join(known)}"
        raise InputError(f"found {category!r}, expected {expected}{hint(category, known)}")
    once(file, rows[["category", "identity"]])

    people = rows[["group", "identity"]].reset_index(drop=True)
    unspecified = people.index[people.group == UNSPECIFIED]
    # The whole study relies on row 0 being "a person": matrices drop it by [1:, 1:].
    if unspecified.tolist() != [0]:
        raise InputError(f"{file}: {category!r} must begin with its one {UNSPECIFIED!r} identity")
    return people


def clusters(category: str) -> list[str] | None:
    """Read the cultural cluster of each identity except "a person".

    Parameters
    ----------
    category : str
        One of `categories`.

    Returns
    -------
    list of str or None
        The clusters in the order of `identities`. None for a category without clusters: Table 4
        gives clusters of nationalities alone.

    Raises
    ------
    InputError
        As `identities`.
    """
    table = read_table(FOLDER / "clusters.csv", ["identity", "cluster"])
    cluster_of = table.set_index("identity").cluster
    # The first identity, "a person", belongs to no cluster.
    members = identities(category).identity[1:]
    # Only nationality has clusters: identities of other categories are not in the file.
    if not members.isin(cluster_of.index).all():
        return None
    return cluster_of[members].to_list()


def categories() -> list[str]:
    """List the categories of social groups.

    Returns
    -------
    list of str
        The categories in the order of Table 1.
    """
    table = read_table(FOLDER / "identities.csv", ["category"])
    return list(table.category.unique())


def groups(categories: Iterable[str]) -> dict[str, pd.Series]:
    """Read which group each identity belongs to.

    Parameters
    ----------
    categories : iterable of str
        Some of `categories`.

    Returns
    -------
    dict of Series
        By category: the group of each identity, with the identities as index.
    """
    group_of = {}
    for category in categories:
        people = identities(category)
        group_of[category] = people.set_index("identity").group
    return group_of


def names_by_group(categories: Iterable[str]) -> pd.DataFrame:
    """List the identities of each group: Table 1.

    Parameters
    ----------
    categories : iterable of str
        Some of `categories`.

    Returns
    -------
    DataFrame
        Index ``category`` and ``group``; ``identities``, separated by commas.
    """
    tables = []
    for category in categories:
        people = identities(category)
        tables.append(people.assign(category=category))

    rows = pd.concat(tables)
    by_group = rows.groupby(["category", "group"], sort=False)
    names = by_group.identity.agg(", ".join)
    return names.to_frame("identities")


@dataclass(frozen=True)
class Setting:
    """One wording of the prompt (Table 5)."""

    name: str  # persona, scale and task as in the columns of Table 2, e.g. P0,S0,T0
    persona: str
    scale: str
    task: str
    join: str
    low: int  # ends of the rating scale
    high: int
    narrative: str  # column of the corpus that the task shows

    def messages(
        self, perceiver: str, experiencer: str, emotion: str, narrative: str
    ) -> list[Message]:
        """Write the chat of one trial: the persona as system turn, the task as user turn.

        Parameters
        ----------
        perceiver : str
            The identity of the persona.
        experiencer : str
            The identity of the person in the event.
        emotion : str
            The emotion whose intensity is asked for.
        narrative : str
            The text of the event that this setting shows.

        Returns
        -------
        list of Message
            A system turn and a user turn.
        """
        persona = fill_template(self.persona, {"Perceiver Social Group": perceiver})
        event = {
            "Experiencer Social Group": experiencer,
            "Emotion": emotion,
            "Narrative": narrative,
        }
        return [
            # How the paper joins the two texts is not printed; prompts.yaml says how they are
            # joined here.
            {"role": "system", "content": self.join.join([persona, self.scale])},
            {"role": "user", "content": fill_template(self.task, event)},
        ]


@cache
def prompts() -> dict:
    """Read ``prompts.yaml``: persona, scale, task and rewrite, and the names of the settings.

    The paper has seven ``settings``, the default first.

    Returns
    -------
    dict
        The content of the file. Its texts hold slots in braces.
    """
    return yaml.safe_load((FOLDER / "prompts.yaml").read_text("utf8"))


def wordings() -> pd.DataFrame:
    """List the texts of which prompts are made (Table 5).

    Returns
    -------
    DataFrame
        ``part`` ("persona", "scale" or "task"), ``name`` and ``text``.
    """
    texts = prompts()
    rows = []
    for name, text in texts["persona"].items():
        rows.append(["persona", name, text])
    for part in ("scale", "task"):
        # An entry has more than its text: a scale has its ends, a task the form of the narrative.
        for name, entry in texts[part].items():
            rows.append([part, name, entry["text"]])
    return pd.DataFrame(rows, columns=["part", "name", "text"])


def setting(name: str) -> Setting:
    """Look up a setting, which combines any persona, scale and task.

    Parameters
    ----------
    name : str
        A persona, a scale and a task, e.g. ``"P2,S1,T0"``.

    Returns
    -------
    Setting
        The texts of the prompt, and the ends of its scale.

    Raises
    ------
    InputError
        For another name. The message lists the known personas, scales and tasks.
    """
    texts = prompts()
    # A wrong number of commas is a ValueError, an unknown part a KeyError.
    try:
        persona_name, scale_name, task_name = name.split(",")
        persona = texts["persona"][persona_name]
        scale = texts["scale"][scale_name]
        task = texts["task"][task_name]
    except (KeyError, ValueError):
        parts = ("persona", "scale", "task")
        known = "; ".join(f"{part}: {', '.join(texts[part])}" for part in parts)
        expected = f"one of each, as P0,S0,T0 ({known})"
        if name.count(",") > 2:
            expected = "semicolons between settings, as P0,S0,T0;P1,S0,T0"
        raise InputError(f"found {name!r}, expected {expected}") from None

    return Setting(
        name=name,
        persona=persona,
        scale=scale["text"],
        task=task["text"],
        join=texts["join"],
        low=scale["low"],
        high=scale["high"],
        narrative=task["narrative"],
    )


def chat_text(messages: Iterable[Message]) -> str:
    """Write a chat as text to be printed.

    Parameters
    ----------
    messages : iterable of Message
        The chat.

    Returns
    -------
    str
        Each message below its role in brackets, and an empty line between two messages.
    """
    texts = []
    for message in messages:
        role = message["role"]
        content = message["content"]
        texts.append(f"[{role}]\n{content}\n")
    return "\n".join(texts)


def rewrite_messages(narrative: str) -> list[Message]:
    """Write the one-shot chat of appendix A.2 that puts a narrative into the third person.

    Parameters
    ----------
    narrative : str
        An event in the first person.

    Returns
    -------
    list of Message
        One user turn.
    """
    text = fill_template(prompts()["rewrite"], {"narrative": narrative})
    return [{"role": "user", "content": text}]


def rewritten_narrative(reply: str) -> str:
    """Take the narrative out of a reply to `rewrite_messages`.

    The prompt ends in an open brace, so a model that follows it answers ``text}``. A model that
    repeats the brace answers ``{text}``. The narrative is the first line before the closing brace,
    or the first line of a reply without one.

    Parameters
    ----------
    reply : str
        A reply to this prompt.

    Returns
    -------
    str
        The narrative without white space at its ends; "" if the reply has none.
    """
    without_brace = reply.strip().lstrip("{")
    text, _, _ = without_brace.partition("}")
    first_line, _, _ = text.strip().partition("\n")
    return first_line.strip()


def load_events(corpus: str = "sample", n_events: int | None = None) -> pd.DataFrame:
    """Load all events of a corpus, or `n_events` of them, balanced over the emotions.

    Parameters
    ----------
    corpus : str
        ``"sample"`` (data/sample, written for this project), ``"crowd-envent"`` (needs
        ``make data``; 6,050 events), or the path of a TSV file, or of a folder of TSV files. Files
        have the columns `COLUMNS`; first_person_text and third_person_text may be left out.
    n_events : int, optional
        How many events are taken, from 1 to all.

    Returns
    -------
    DataFrame
        One row per event with the columns `COLUMNS`, all text, NaN for a form that the corpus does
        not have. ``free_text`` marks a fixed random tenth, at least two events, about which a
        scored model is also asked in free text. Emotions are sorted by name; an emotion's events
        keep the order of the files (by name) and their lines.

    Raises
    ------
    InputError
        For a corpus that does not exist, or `n_events` out of range. With file and line for what
        :func:`ingroup.tables.read_table` refuses, an unknown emotion, a blank cell, or a pair of
        emotion and text_id that comes twice.

    Notes
    -----
    The events are not drawn at random. The first event of each emotion is taken, then the second
    event of each, and so on, until there are `n_events`. So fewer events are part of more.

    Where `n_events` is smaller than the number of emotions, two emotions come first: those asked in
    free text when each emotion has one event. Their recorded answers serve these events, too.

    Checked against the released corpus: 550 events for each of ten emotions and 275 for guilt and
    for shame, 6,050 in all. Hou et al. 2025, section 3.2, print 225 for the two.
    """
    events = pd.concat(map(_read, _files(corpus)))
    _check_names(events.emotion + " " + events.text_id)

    # A form that the corpus lacks becomes a column of NaN, which the type "str" keeps.
    events = events.reindex(columns=COLUMNS).astype("str")
    events = events.sort_values("emotion", kind="stable", ignore_index=True)
    if n_events is None:
        return _with_tenth(events)

    if not isinstance(n_events, Integral) or not 1 <= n_events <= len(events):
        raise InputError(
            f"n_events is {n_events!r}, expected a whole number from 1 to {len(events)}, the "
            f"number of events in the corpus {corpus!r}."
        )
    emotions = list(events.emotion.unique())
    if n_events >= len(emotions):
        return _with_tenth(_first_of_each(events, n_events))

    # The recordings have free text about these emotions alone, so their events come first.
    is_free_text = events.emotion.isin(_tenth(emotions))
    with_mark = events.assign(free_text=is_free_text)
    free_text_first = with_mark.sort_values("free_text", ascending=False, kind="stable")
    return _first_of_each(free_text_first, n_events).reset_index(drop=True)


def _first_of_each(events: pd.DataFrame, n_events: int) -> pd.DataFrame:
    """Take the first event of each emotion, then the second of each, up to `n_events`.

    The events keep the order of the corpus.
    """
    # An event's turn is the number of events of its emotion that come before it.
    turns = events.groupby("emotion").cumcount()
    by_turn = turns.sort_values(kind="stable")
    # The index is sorted, so that the events go back into the order of the corpus.
    taken = by_turn.index[:n_events].sort_values()
    return events.loc[taken]


def _with_tenth(events: pd.DataFrame) -> pd.DataFrame:
    """Mark a tenth of the events in the column ``free_text``, and number all from 0."""
    events = events.reset_index(drop=True)
    return events.assign(free_text=events.index.isin(_tenth(events.index)))


def _tenth(levels: Sequence[Any]) -> list[Any]:
    """Choose a fixed random tenth of the levels, at least the two that paired tests need."""
    return tenth(levels, least=2)


def _check_names(names: pd.Series) -> None:
    """Raise an InputError if an emotion and number come twice. The index names file and line."""
    repeated = names[names.duplicated()]
    if repeated.empty:
        return

    line = repeated.index[0]
    name = repeated.iloc[0]
    first_line = names.index[names == name][0]
    raise wrong(line, f"{name} again", f"it once; it is there already in {first_line}")


def _read(file: Path) -> pd.DataFrame:
    """Read the events of one file, with the file and line of each as index."""
    table = read_table(file, REQUIRED, "\t")
    columns = [column for column in COLUMNS if column in table]
    table = table[columns]
    for column in columns:
        cells = table[column]
        check(file, cells, cells.str.strip() != "", "a text")

    known = ", ".join(EMOTIONS)
    check(file, table.emotion, table.emotion.isin(EMOTIONS), f"one of {known}", EMOTIONS)
    lines = [at(file, line) for line in table.index]
    return table.set_axis(lines)


def _files(corpus: str) -> list[Path]:
    """List the files of a corpus in a fixed order. The hashes of fetched files are checked."""
    if corpus == "sample":
        return [paths.SAMPLE / "narratives.tsv"]
    if corpus == "crowd-envent":
        names = sorted(corpora.CORPORA[corpus].files)
        return [corpora.file(corpus, name) for name in names]

    path = given_path(corpus, ("sample", "crowd-envent"), "a TSV file or a folder of them")
    files = [path]
    if path.is_dir():
        # The order of glob differs between systems, and events keep the order of files.
        files = sorted(path.glob("*.tsv"))
    if not files:
        raise InputError(f"found no .tsv file in the folder {corpus!r}, expected one or more")
    return files
