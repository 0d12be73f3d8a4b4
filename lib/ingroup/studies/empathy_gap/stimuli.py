"""What the study shows: identities and prompts of ``data/stimuli/empathy_gap``, events of a corpus.

The prompts stand there word for word; this module only reads, checks and fills them.
"""

from dataclasses import dataclass
from functools import cache
from numbers import Integral
from pathlib import Path

import pandas as pd
import yaml

from ingroup import corpora, paths
from ingroup.design import Message, filled
from ingroup.tables import InputError, at, check, once, read_table, wrong

UNSPECIFIED = "unspecified"  # the group of "a person", who is in no group
FOLDER = paths.STIMULI / "empathy_gap"
EMOTIONS = (
    *("anger", "boredom", "disgust", "fear", "guilt", "joy"),
    *("pride", "relief", "sadness", "shame", "surprise", "trust"),
)
REQUIRED = ("emotion", "text_id", "generated_text")
COLUMNS = (*REQUIRED, "first_person_text", "third_person_text")


def identities(category: str) -> pd.DataFrame:
    """``group`` and ``identity`` of one category in the order of Table 1, "a person" first.

    InputError for an unknown category, an identity without a group, an identity that stands twice,
    or a category that does not begin with its one unspecified identity.
    """
    file = FOLDER / "identities.csv"
    table = read_table(file, ["category", "group", "identity"])
    for column in ("group", "identity"):
        check(file, table[column], table[column] != "", "a text")
    rows = table[table.category == category]
    if rows.empty:
        known = ", ".join(repr(name) for name in table.category.unique())
        raise InputError(f"unknown category {category!r}; known are {known}")
    once(file, rows[["category", "identity"]])
    if (rows.group == UNSPECIFIED).tolist() != [True] + [False] * (len(rows) - 1):
        raise InputError(f"{file}: {category!r} must begin with its one {UNSPECIFIED!r} identity")
    return rows[["group", "identity"]].reset_index(drop=True)


def clusters(category: str) -> list[str] | None:
    """Return the cultural cluster of each identity but "a person"; None without clusters.

    Table 4 has them for nationality. InputError as `identities`.
    """
    table = read_table(FOLDER / "clusters.csv", ["identity", "cluster"])
    of_identity = table.set_index("identity").cluster
    named = identities(category).identity[1:]
    if not named.isin(of_identity.index).all():
        return None
    return of_identity[named].to_list()


def categories() -> list[str]:
    """Categories of social groups in the order of Table 1."""
    return list(read_table(FOLDER / "identities.csv", ["category"]).category.unique())


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
        """The chat of one trial: a system turn with the persona, a user turn with the task."""
        persona = filled(self.persona, {"Perceiver Social Group": perceiver})
        told = {"Experiencer Social Group": experiencer, "Emotion": emotion, "Narrative": narrative}
        return [
            {"role": "system", "content": self.join.join([persona, self.scale])},
            {"role": "user", "content": filled(self.task, told)},
        ]


@cache
def prompts() -> dict:
    """``prompts.yaml``: persona, scale, task, rewrite; the seven settings, the default first."""
    return yaml.safe_load((FOLDER / "prompts.yaml").read_text("utf8"))


def setting(name: str) -> Setting:
    """Any combination of persona, scale and task, as ``"P2,S1,T0"``; InputError for another."""
    told, kinds = prompts(), ("persona", "scale", "task")
    parts = name.split(",")
    if len(parts) != 3 or any(p not in told[k] for p, k in zip(parts, kinds, strict=True)):
        known = "; ".join(f"{kind}: {', '.join(told[kind])}" for kind in kinds)
        raise InputError(f"unknown setting {name!r}; expected one of each, as P0,S0,T0 ({known})")
    persona, scale, task = (told[kind][part] for kind, part in zip(kinds, parts, strict=True))
    ends = scale["low"], scale["high"]
    return Setting(
        name, persona, scale["text"], task["text"], told["join"], *ends, task["narrative"]
    )


def rewrite_messages(narrative: str) -> list[Message]:
    """The one-shot chat of appendix A.2 that puts a narrative into the third person."""
    return [{"role": "user", "content": filled(prompts()["rewrite"], {"narrative": narrative})}]


def rewritten(reply: str) -> str:
    """The narrative inside a reply to :func:`rewrite_messages`: up to the closing brace.

    The prompt ends in an open brace, so a model that follows it answers ``text}``; one that
    repeats the brace answers ``{text}``. The first line is taken where no brace closes.
    """
    return reply.strip().lstrip("{").split("}")[0].strip().split("\n")[0].strip()


def load_events(corpus: str = "sample", n_events: int | None = None) -> pd.DataFrame:
    """All events of a corpus, or `n_events` of them, balanced over the emotions.

    The sample draws nothing at random: it deals the emotions' first events, then their second
    ones, and so on, until there are enough. A smaller sample is therefore part of a larger one.

    `corpus` is ``"sample"`` (data/sample, written for this project), ``"crowd-envent"`` (needs
    ``make data``; 6,050 events), or the path of a TSV file, or of a folder of TSV files, with the
    columns `COLUMNS`; first_person_text and third_person_text may be left out.

    One row an event with the columns `COLUMNS`, all text, NaN for a form that the corpus does not
    have; emotions by name, within an emotion in the order of the files (by name) and their lines.
    Checked against the released corpus: 550 events for each of ten emotions and 275 for guilt and
    for shame, 6,050 in all (Hou et al. 2025, section 3.2, prints 225 for the two).

    InputError for a corpus that is not there, `n_events` out of range, and, naming file and line,
    for what :func:`ingroup.tables.read_table` refuses, an unknown emotion, a blank cell, or a pair
    of emotion and text_id that comes twice.
    """
    events = pd.concat(map(_read, _files(corpus)))
    names = events.emotion + " " + events.text_id
    for where in names.index[names.duplicated()]:
        before = names.index[names == names[where]][0]
        raise wrong(where, f"{names[where]}, which is there already, in {before}", "it once")
    events = events.reindex(columns=COLUMNS).astype("str")
    events = events.sort_values("emotion", kind="stable", ignore_index=True)
    if n_events is None:
        return events
    if not isinstance(n_events, Integral) or not 1 <= n_events <= len(events):
        raise InputError(
            f"n_events is {n_events!r}; corpus {corpus!r} gives a whole number from 1 to "
            f"{len(events)} (N_EVENTS=0 takes all)."
        )
    turn = events.groupby("emotion").cumcount().sort_values(kind="stable")
    return events.loc[turn.index[:n_events].sort_values()].reset_index(drop=True)


def _read(file: Path) -> pd.DataFrame:
    """The events of one file, each under its place for a sentence."""
    table = read_table(file, REQUIRED, "\t")
    table = table[[column for column in COLUMNS if column in table]]
    for column in table:
        check(file, table[column], table[column].str.strip() != "", "a text")
    check(file, table.emotion, table.emotion.isin(EMOTIONS), f"one of {', '.join(EMOTIONS)}")
    return table.set_axis([at(file, line) for line in table.index])


def _files(corpus: str) -> list[Path]:
    """The files of a corpus in a fixed order; those of a fetched one with the right hashes."""
    if corpus == "sample":
        return [paths.SAMPLE / "narratives.tsv"]
    if corpus == "crowd-envent":
        return [corpora.file(corpus, name) for name in sorted(corpora.CORPORA[corpus].files)]
    place = Path(corpus).expanduser()
    files = sorted(place.glob("*.tsv")) if place.is_dir() else [place]
    if not files:
        raise InputError(f"The folder {corpus!r} holds no .tsv file.")
    if not files[0].is_file():
        known = "neither sample nor crowd-envent nor a file or folder that exists"
        raise InputError(f"The corpus {corpus!r} is {known}.")
    return files
