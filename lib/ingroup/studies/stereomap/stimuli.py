"""Social groups of StereoMap, and the prompts that ask how society views them.

Both stand in ``data/stimuli/stereomap/``, the groups under the paper's names, some of which are
dated or offensive (column ``note``). A prompt has its name, "EXTENDED/Emotion", an ablation its row
in Table 14; `form` is "released" or "grammatical" (see `text`), `wording` "paper" or "released".
"""

import difflib
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import pandas as pd
import yaml

from ingroup import paths, published
from ingroup.design import Message
from ingroup.tables import InputError, at, once, read_table, wrong

FORMS = ("released", "grammatical")

_FOLDER = paths.STIMULI / "stereomap"
_TEXTS = yaml.safe_load((_FOLDER / "prompts.yaml").read_text("utf8"))
ANCHORS = _TEXTS["anchors"]  # by version, the groups that the paper names its clusters by, 0 to 4
LOW, HIGH = _TEXTS["low"], _TEXTS["high"]  # ends of the scale of all ratings


class Prompt(NamedTuple):
    """One question, or the few that are asked in one turn, about one group.

    ``construct`` is the type printed beside it, ``parts`` the texts in order, out of "keywords",
    "ratings" and "overall". A reply should rate ``words`` ("Rating" is the one without a word).
    """

    construct: str
    parts: Mapping[str, str]
    words: tuple[str, ...]
    n_keywords: int


def groups() -> pd.DataFrame:
    """All groups, one row each, with how they stand in a sentence.

    ``group`` as printed in appendix B or Table 2; ``extended`` and ``original``, as the released
    code puts it into the prompts of Tables 7 and 6 ("" where it does not ask); ``people``, a plural
    that reads right; ``sets`` (see `names`); ``table2``, the group of Table 2 (Fiske et al.) to
    compare with ("" if none; the nearest to Gay is Gay men); ``note``, "dated", "offensive" or "".
    InputError for a missing column, a group twice, an empty ``people`` or no text for the prompts.
    """
    file = _FOLDER / "groups.csv"
    columns = ["group", "extended", "original", "people", "sets", "table2", "note"]
    table = read_table(file, columns)
    for line, row in table.iterrows():
        if not row.people or not (row.extended or row.original):
            found = f"nothing to put into a sentence for {row.group!r}"
            raise wrong(at(file, line), found, "'people' and one of 'extended' and 'original'")
    once(file, table[["group"]])
    return table.reset_index(drop=True)


def names(which: str = "EXTENDED") -> list[str]:
    """Names of a set: "EXTENDED", the 98 of appendix B in its order; of ORIGINAL two.

    "paper" are the 24 of Table 2, "released" the 37 of the code; which were clustered is not said.
    """
    return [group for group, row in _groups().items() if which in row.sets.split()]


def text(group: str, prompt: str = "EXTENDED", form: str = "released") -> str:
    """How a group stands in a prompt (its name, or the table alone); InputError for an unknown one.

    `form` "released" is that of the code ("blinds"), "grammatical" reads right ("blind people").
    """
    row = _groups().get(group)
    if row is None:
        near = difflib.get_close_matches(group, _groups(), 3, 0.4) or [*_groups()][:3]
        raise InputError(f"{group!r} is no name in groups.csv; there are {', '.join(near)} ...")
    if form == "grammatical":
        return row.people
    one, other = row.extended, row.original
    return (other or one) if prompt.startswith("ORIGINAL") else (one or other)


@cache
def prompts(version: str = "EXTENDED") -> dict[str, Prompt]:
    """The prompts of Table 7 (``"EXTENDED"``, 7) or of Table 6 (``"ORIGINAL"``, 21) by name."""
    return {
        f"{version}/{name}": Prompt(
            entry["construct"],
            {part: asked.replace("{attribute}", name) for part, asked in entry["parts"].items()},
            tuple(entry["words"]),
            entry["n_keywords"],
        )
        for entry in _TEXTS[version]
        for name in entry["names"]
    }


def words(version: str = "EXTENDED") -> pd.DataFrame:
    """What scores are made of: ``family``, ``dimension``, ``word``, one row each.

    Of EXTENDED Table 4; of ORIGINAL the prompts of the two axes, each axis a single dimension.
    """
    if version == "EXTENDED":
        return published.load("stereomap", 4)
    rows = [
        (about.construct, f"{about.construct} attributes", name.split("/")[1])
        for name, about in prompts(version).items()
        if about.construct in ("Competence", "Warmth")
    ]
    return pd.DataFrame(rows, columns=["family", "dimension", "word"])


def ablations() -> list[str]:
    """The four forms of a prompt by their names in Table 14, the paper's own first."""
    return list(_TEXTS["ablations"])


def chats(
    group: str, prompt: str, ablation: str = "Prompt (paper)", form: str = "released",
    wording: str = "paper", calls: str = "together",
) -> dict[str, list[Message]]:  # fmt: skip
    """What is asked of a prompt about a group: chats of one user turn, by the part that they ask.

    `calls` "together": a single chat, "", with all parts, as gpt-3.5-turbo was asked. "separate":
    one for each part, as text-davinci-003 was. No rating sees the keywords, so the chain of thought
    is lost; words are the released code's.

    ``prompts.yaml`` says what the three reduced texts, not printed, leave out; in ORIGINAL there is
    no chain of thought. `wording` "released" is what the authors' code sends; reduced prompts and
    ORIGINAL are the paper's. Checked against Tables 6 and 7 and 686 (separate: 1,078) sent prompts.
    """
    parts = dict(prompts(prompt.split("/")[0])[prompt].parts)
    left_out, instructions = _TEXTS["ablations"][ablation], _TEXTS["instructions"]
    if wording == "released" and not left_out:
        parts = dict(_TEXTS["released"][calls].get(prompt, parts))
    if "cot" in left_out and "keywords" in parts:
        keywords = parts.pop("keywords")
        kept = [sentence for sentence in instructions if sentence in keywords]
        parts["ratings"] = " ".join([*kept, _replaced(parts["ratings"], _TEXTS["opening"])])
    if "instructions" in left_out:
        gone = {f" {sentence}": "" for sentence in instructions}
        parts = {name: _replaced(f" {part}", gone).strip() for name, part in parts.items()}
    changes = dict(_TEXTS["separate"] if calls == "separate" else {})
    changes |= _TEXTS["grammatical"] if form == "grammatical" else {}
    changes |= dict.fromkeys(("{group}", "{people}"), text(group, prompt, form))
    parts = {name: _replaced(part, changes) for name, part in parts.items()}
    if calls == "together":
        parts = {"": _TEXTS["join"].join(parts.values())}
    return {part: [{"role": "user", "content": asked}] for part, asked in parts.items()}


@cache
def expected(prompt: str, part: str = "", ablation: str = "Prompt (paper)") -> Prompt:
    """A prompt with the words and keywords that a reply to it, or to one `part`, should hold."""
    about = prompts(prompt.split("/")[0])[prompt]
    read = {part} if part else set(about.parts)
    if "cot" in _TEXTS["ablations"][ablation]:
        read.discard("keywords")
    # Where there is no part of its own for the overall rating, or for keywords, ratings has it.
    overall, first = (one if one in about.parts else "ratings" for one in ("overall", "keywords"))
    words = (w for w in about.words if (overall if w == "Rating" else "ratings") in read)
    n = about.n_keywords if first in read else 0
    return about._replace(words=tuple(words), n_keywords=n)


def _replaced(template: str, replacements: Mapping[str, str]) -> str:
    for old, new in replacements.items():
        template = template.replace(old, new)
    return template


@cache
def _groups() -> dict:
    return {row.group: row for row in groups().itertuples()}
