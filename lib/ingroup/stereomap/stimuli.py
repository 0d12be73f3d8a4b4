"""Groups, rated words and prompts of StereoMap, from ``data/stimuli/stereomap``.

EXTENDED prompts (Table 7) ask for a list of words about 98 groups, ORIGINAL prompts (Table 6) for
one word at a time about 24. Some groups have dated or offensive names, which are the paper's.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import pandas as pd
import yaml

from ingroup import STIMULI, published
from ingroup.inference.answers import Chat
from ingroup.inference.design import Block, Design
from ingroup.tables import InputError, check, read_table

FOLDER = STIMULI / "stereomap"
TEXTS = yaml.safe_load((FOLDER / "prompts.yaml").read_text("utf8"))
ANCHORS = TEXTS["anchors"]  # the groups by which the paper names its clusters 0 to 4, by version
ABLATIONS = list(TEXTS["ablations"])  # the rows of Table 14, the paper's own prompt first
PAPER = ABLATIONS[0]
LOW = TEXTS["low"]
HIGH = TEXTS["high"]
OVERALL = "Rating"  # stands for a rating without a word of its own


class Prompt(NamedTuple):
    """Questions about one group that are asked in one turn.

    Attributes
    ----------
    names : list of str
        The names of the prompts that share these texts. A name takes the place of "{attribute}".
    construct : str
        The type that the paper prints beside the prompt.
    n_keywords : dict of int
        How many keywords the reply to a part lists.
    words : dict of list
        The words that the reply to a part rates.
    parts : dict of str
        The texts in order, out of "keywords", "ratings" and "overall".
    """

    names: list[str]
    construct: str
    n_keywords: dict[str, int]
    words: dict[str, list[str]]
    parts: dict[str, str]


@cache
def groups() -> pd.DataFrame:
    """Read the groups, one row each, in the order of the file.

    Returns
    -------
    DataFrame
        Index ``group``; ``extended`` and ``original``, the words of the released code in either
        version; ``people``, a grammatical plural; ``sets`` (see `names`); ``table2``, the name of
        the group in Table 2; ``note``, "dated", "offensive" or "".

    Raises
    ------
    InputError
        A group stands twice.
    """
    file = FOLDER / "groups.csv"
    columns = ["group", "extended", "original", "people", "sets", "table2", "note"]
    table = read_table(file, columns)
    check(file, table.group, ~table.group.duplicated(), "each group once")
    return table.set_index("group")


def names(which: str, chosen: Sequence[str] = ()) -> list[str]:
    """List the groups of a set.

    Parameters
    ----------
    which : {"EXTENDED", "paper", "released"}
        The 98 groups of appendix B, the 24 of Table 2, or the 37 that the released code asks
        about. The last two are sets of ORIGINAL.
    chosen : sequence of str
        Only these groups, unless empty.

    Raises
    ------
    InputError
        A chosen group is unknown.
    """
    table = groups()
    for group in set(chosen).difference(table.index):
        raise InputError(f"GROUPS: found {group!r}, expected names in {FOLDER / 'groups.csv'}")
    is_in_set = table.sets.str.contains(which, regex=False)
    in_set = table.index[is_in_set]
    return [group for group in in_set if not chosen or group in chosen]


@cache
def prompts(version: str) -> dict[str, Prompt]:
    """Read the prompts of Table 7 ("EXTENDED") or Table 6 ("ORIGINAL") by their names."""
    by_name = {}
    for entry in TEXTS[version]:
        prompt = Prompt(**entry)
        by_name |= dict.fromkeys(prompt.names, prompt)
    return by_name


def words(version: str) -> pd.DataFrame:
    """List the words whose ratings make the scores: ``family``, ``dimension`` and ``word``.

    EXTENDED has those of Table 4. In ORIGINAL each axis is one dimension.
    """
    if version == "EXTENDED":
        return published.load("stereomap", 4)
    rows = []
    for name, prompt in prompts(version).items():
        if prompt.construct in ("Competence", "Warmth"):
            dimension = f"{prompt.construct} attributes"
            rows.append((prompt.construct, dimension, name))
    return pd.DataFrame(rows, columns=["family", "dimension", "word"])


def _replaced(text, replacements):
    """Make all replacements, in order."""
    for old, new in replacements.items():
        text = text.replace(old, new)
    return text


def _reduced(version, name, ablation, wording, calls):
    """Return the parts of a prompt without what an ablation leaves out."""
    parts = dict(prompts(version)[name].parts)
    left_out = TEXTS["ablations"][ablation]
    instructions = TEXTS["instructions"]
    # The released texts of reduced prompts are not known.
    if not left_out and wording == "released":
        sent = TEXTS["released"][calls]
        return sent.get(f"{version}/{name}", parts)

    if "keywords" in left_out and "keywords" in parts:
        # Instructions that stood in the keywords move to the front of the ratings.
        keywords = parts.pop("keywords")
        moved = [sentence for sentence in instructions if sentence in keywords]
        ratings = _replaced(parts["ratings"], TEXTS["opening"])
        parts["ratings"] = " ".join([*moved, ratings])

    if "instructions" in left_out:
        sentences = "|".join(map(re.escape, instructions))
        for part, text in parts.items():
            without = re.sub(f" ?(?:{sentences})", "", text)
            parts[part] = without.strip()
    return parts


def chats(
    group: str,
    version: str,
    name: str,
    ablation: str = PAPER,
    form: str = "released",
    wording: str = "paper",
    calls: str = "together",
) -> dict[str, Chat]:
    """Write a prompt about a group.

    Parameters
    ----------
    group, version, name : str
        The group, "EXTENDED" or "ORIGINAL", and the name of the prompt.
    ablation : str
        One of `ABLATIONS`. The paper prints no text of the three reduced prompts, so what they
        leave out is our reading (``prompts.yaml``).
    form : {"released", "grammatical"}
        How the group is named: "members of blinds", as released, or "the group of blind people".
    wording : {"paper", "released"}
        The printed prompts, or exactly those that the released code sends.
    calls : {"together", "separate"}
        One chat with all parts, as gpt-3.5-turbo was asked, or one for each part, as
        text-davinci-003 was asked.

    Returns
    -------
    dict of chats
        One user turn for each part, "" for all parts together.
    """
    column = "people" if form == "grammatical" else version.lower()
    people = groups().at[group, column]
    # The group comes last, so that nothing is changed in its name.
    changes = {
        **TEXTS["calls"][calls],
        **TEXTS["forms"][form],
        "{attribute}": name,
        "{group}": people,
        "{people}": people,
    }

    parts = _reduced(version, name, ablation, wording, calls)
    if calls == "together":
        parts = {"": TEXTS["join"].join(parts.values())}
    by_part = {}
    for part, text in parts.items():
        content = _replaced(text, changes)
        by_part[part] = [{"role": "user", "content": content}]
    return by_part


@cache
def expected(
    version: str, name: str, part: str = "", ablation: str = PAPER
) -> tuple[tuple[str, ...], int]:
    """Return the words and the number of keywords that the reply to a prompt, or a part, has."""
    prompt = prompts(version)[name]
    left_out = TEXTS["ablations"][ablation]
    words = []
    n_keywords = 0
    for answered in [part] if part else prompt.parts:
        if answered not in left_out:
            words += prompt.words.get(answered, [])
            n_keywords += prompt.n_keywords.get(answered, 0)
    return tuple(words), n_keywords


def design(
    version: str, groups: Sequence[str], names: Sequence[str], ablation: str = PAPER, **manner: str
) -> Design:
    """Make one round of prompts (section 3): prompt, part and group, the group fastest.

    Parameters
    ----------
    version, ablation : str
        As in `chats`.
    groups, names : sequence of str
        The groups, and the names of the prompts.
    **manner : str
        ``form``, ``wording`` and ``calls``, as in `chats`.
    """

    def render(condition):
        group = condition["group"]
        by_part = chats(group, version, condition["prompt"], ablation, **manner)
        return by_part[condition["part"]]

    blocks = []
    for name in names:
        construct = prompts(version)[name].construct
        labels = {"construct": construct, "prompt": name}
        parts = chats(groups[0], version, name, ablation, **manner)
        factors = {"part": list(parts), "group": list(groups)}
        blocks.append(Block(labels, factors, render))
    return Design(blocks)
