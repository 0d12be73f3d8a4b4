"""Identities and prompt templates, read from ``data/stimuli/``.

The prompts are stimuli and stand there word for word; this module only reads, checks and fills
them. Whoever wants another identity adds a line to ``identities.csv`` and nothing else.
"""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import yaml

from ingroup import paths
from ingroup.design import Message, filled
from ingroup.tables import InputError

UNSPECIFIED = "unspecified"  # the group of "a person", who is in no group


def identities(category: str, folder: Path | None = None) -> pd.DataFrame:
    """Identity names of one category in the order of Table 1, "a person" first.

    Parameters
    ----------
    category : str
        ``"Race or Ethnicity"``, ``"Nationality"`` or ``"Religion"``.
    folder : pathlib.Path, optional
        Folder of the study's stimuli; ``data/stimuli/empathy_gap`` unless given.

    Returns
    -------
    pandas.DataFrame
        Columns ``group`` and ``identity``; row 0 is the unspecified identity.

    Raises
    ------
    InputError
        For an unknown category, an identity without a group, an identity that stands twice, or
        a category that does not begin with the unspecified identity.
    """
    file = (folder or paths.STIMULI / "empathy_gap") / "identities.csv"
    table = pd.read_csv(file, dtype=str, keep_default_na=False)
    if missing := {"category", "group", "identity"} - set(table.columns):
        raise InputError(f"{file.name}: column {sorted(missing)[0]!r} is missing")
    for number, row in enumerate(table.itertuples(), start=2):
        if not row.group or not row.identity:
            raise InputError(
                f"{file.name}, line {number}: identity {row.identity!r} has group {row.group!r}; "
                "both must be given"
            )
    rows = table[table.category == category]
    if rows.empty:
        known = ", ".join(repr(name) for name in table.category.unique())
        raise InputError(f"unknown category {category!r}; known are {known}")
    if rows.identity.duplicated().any():
        twice = rows.identity[rows.identity.duplicated()].iloc[0]
        raise InputError(f"{file.name}: {twice!r} stands twice in {category!r}")
    if (rows.group == UNSPECIFIED).tolist() != [True] + [False] * (len(rows) - 1):
        raise InputError(
            f"{file.name}: {category!r} must begin with its one {UNSPECIFIED!r} identity"
        )
    return rows[["group", "identity"]].reset_index(drop=True)


def categories() -> list[str]:
    """Categories of social groups in the order of Table 1."""
    table = pd.read_csv(paths.STIMULI / "empathy_gap" / "identities.csv", dtype=str)
    return list(table.category.unique())


def cultural_clusters() -> pd.DataFrame:
    """Inglehart-Welzel cluster of each country (Table 4): ``identity``, ``label``, ``cluster``."""
    return pd.read_csv(paths.STIMULI / "empathy_gap" / "clusters.csv", dtype=str)


@dataclass(frozen=True)
class Setting:
    """One wording of the empathy-gap prompt, e.g. ``P0,S0,T0`` (Table 5).

    Attributes
    ----------
    name : str
        Persona, scale and task, as the columns of Table 2.
    low, high : int
        Ends of the rating scale.
    narrative : str
        Column of the corpus that the task shows.
    """

    name: str
    persona: str
    scale: str
    task: str
    join: str
    low: int
    high: int
    narrative: str

    def messages(
        self, perceiver: str, experiencer: str, emotion: str, narrative: str
    ) -> list[Message]:
        """The chat of one trial: a system turn with the persona, a user turn with the task."""
        system = self.join.join(
            [filled(self.persona, {"Perceiver Social Group": perceiver}), self.scale]
        )
        values = {
            "Experiencer Social Group": experiencer,
            "Emotion": emotion,
            "Narrative": narrative,
        }
        return [
            {"role": "system", "content": system},
            {"role": "user", "content": filled(self.task, values)},
        ]


def _prompts() -> dict:
    return yaml.safe_load((paths.STIMULI / "empathy_gap" / "prompts.yaml").read_text("utf8"))


def settings() -> dict[str, Setting]:
    """The seven settings of the paper by name, the default ``P0,S0,T0`` first (section 3.3)."""
    return {name: setting(name) for name in _prompts()["settings"]}


def setting(name: str) -> Setting:
    """Any combination of persona, scale and task, e.g. ``setting("P2,S1,T0")``.

    Raises
    ------
    InputError
        Where a part of the name is unknown.
    """
    prompts = _prompts()
    parts = name.split(",")
    kinds = ("persona", "scale", "task")
    if len(parts) != 3 or any(p not in prompts[k] for p, k in zip(parts, kinds, strict=False)):
        known = "; ".join(f"{kind}: {', '.join(prompts[kind])}" for kind in kinds)
        raise InputError(f"unknown setting {name!r}; expected one of each, as P0,S0,T0 ({known})")
    persona, scale, task = (prompts[kind][part] for kind, part in zip(kinds, parts, strict=True))
    return Setting(
        name=name,
        persona=persona,
        scale=scale["text"],
        task=task["text"],
        join=prompts["join"],
        low=scale["low"],
        high=scale["high"],
        narrative=task["narrative"],
    )


def rewrite_messages(narrative: str) -> list[Message]:
    """The one-shot chat of appendix A.2 that puts a narrative into the third person."""
    return [{"role": "user", "content": filled(_prompts()["rewrite"], {"narrative": narrative})}]


def rewritten(reply: str) -> str:
    """The narrative inside a reply to :func:`rewrite_messages`: up to the closing brace.

    The prompt ends in an open brace, so a model that follows it answers ``text}``; one that
    repeats the brace answers ``{text}``. The first line is taken where no brace closes.
    """
    return reply.strip().lstrip("{").split("}")[0].strip().split("\n")[0].strip()
