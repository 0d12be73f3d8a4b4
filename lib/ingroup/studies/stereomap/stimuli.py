"""Social groups of StereoMap, and the prompts that ask how society views them.

Both stand in ``data/stimuli/stereomap/``. The groups have the paper's names, some of which are
dated or offensive (column ``note``). A prompt has its name, "EXTENDED/Emotion", and an ablation has
its row in Table 14. `form` is "released" or "grammatical" (see `text`), and `wording` is "paper" or
"released".
"""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import pandas as pd
import yaml

from ingroup import paths, published
from ingroup.design import Message
from ingroup.tables import InputError, at, hint, once, read_table, wrong

FORMS = ("released", "grammatical")

_FOLDER = paths.STIMULI / "stereomap"
_TEXTS = yaml.safe_load((_FOLDER / "prompts.yaml").read_text("utf8"))
ANCHORS = _TEXTS["anchors"]  # by version, the groups that the paper names its clusters by, 0 to 4
# Ends of the scale of all ratings.
LOW = _TEXTS["low"]
HIGH = _TEXTS["high"]


class Prompt(NamedTuple):
    """One or several questions about one group, asked in one turn.

    ``construct`` is the type that the paper prints beside the prompt. ``parts`` are the texts in
    order, out of "keywords", "ratings" and "overall". A reply should rate ``words``, where "Rating"
    stands for a rating without a word.
    """

    construct: str
    parts: Mapping[str, str]
    words: tuple[str, ...]
    n_keywords: int


def groups() -> pd.DataFrame:
    """Read all groups, one row per group, with the forms that stand in a sentence.

    Returns
    -------
    DataFrame
        ``group`` as printed in appendix B or Table 2; ``extended`` and ``original``, as the
        released code puts it into the prompts of Tables 7 and 6 ("" where it does not ask);
        ``people``, a plural that reads right; ``sets`` (see `names`); ``table2``, the group of
        Table 2 (Fiske et al.) to compare with ("" if none; the nearest to Gay is Gay men);
        ``note``, "dated", "offensive" or "".

    Raises
    ------
    InputError
        A column is missing, a group stands twice, ``people`` is empty or there is no text for the
        prompts.
    """
    file = _FOLDER / "groups.csv"
    columns = ["group", "extended", "original", "people", "sets", "table2", "note"]
    table = read_table(file, columns)
    for line, row in table.iterrows():
        if not row.people or not (row.extended or row.original):
            found = f"nothing to put into a sentence for {row.group!r}"
            expected = "'people' and one of 'extended' and 'original'"
            raise wrong(at(file, line), found, expected)
    once(file, table[["group"]])
    return table.reset_index(drop=True)


def names(which: str = "EXTENDED") -> list[str]:
    """List the names of a set of groups.

    Parameters
    ----------
    which : {"EXTENDED", "paper", "released"}
        The 98 groups of appendix B in its order, or one of two sets of ORIGINAL: the 24 of Table 2,
        or the 37 of the code. The paper does not say which of the two were clustered.

    Returns
    -------
    list of str
        Names as in ``groups.csv``, in the order of the file.
    """
    return [group for group, row in _groups().items() if which in row.sets.split()]


def text(group: str, prompt: str = "EXTENDED", form: str = "released") -> str:
    """Return the words for a group in a prompt.

    Parameters
    ----------
    group : str
        A name as in ``groups.csv``.
    prompt : str
        Name of the prompt, or the version alone.
    form : {"released", "grammatical"}
        The form of the code ("blinds"), or one that reads right ("blind people").

    Returns
    -------
    str
        The words for the group within a sentence of the prompt.

    Raises
    ------
    InputError
        The group is unknown; the message names the nearest one.
    """
    rows = _groups()
    row = rows.get(group)
    if row is None:
        names = [part.strip() for part in group.split(",")]
        if len(names) > 1 and all(name in rows for name in names):
            raise InputError(
                f"found {group!r}, expected semicolons between groups: {';'.join(names)}"
            )
        examples = ", ".join(list(rows)[:3])
        expected = f"a group in groups.csv ({examples} ...)"
        raise InputError(f"found {group!r}, expected {expected}{hint(group, rows)}")

    if form == "grammatical":
        return row.people
    if prompt.startswith("ORIGINAL"):
        return row.original or row.extended
    return row.extended or row.original


@cache
def prompts(version: str = "EXTENDED") -> dict[str, Prompt]:
    """Return the prompts of Table 7 or of Table 6.

    Parameters
    ----------
    version : {"EXTENDED", "ORIGINAL"}
        The 7 prompts of Table 7, or the 21 of Table 6.

    Returns
    -------
    dict of str to Prompt
        The prompts by name, e.g. "EXTENDED/Emotion".
    """
    by_name = {}
    for entry in _TEXTS[version]:
        for name in entry["names"]:
            parts = {}
            for part, template in entry["parts"].items():
                # This is not str.format, as the template's {group} is filled later.
                parts[part] = template.replace("{attribute}", name)

            by_name[f"{version}/{name}"] = Prompt(
                construct=entry["construct"],
                parts=parts,
                words=tuple(entry["words"]),
                n_keywords=entry["n_keywords"],
            )
    return by_name


def words(version: str = "EXTENDED") -> pd.DataFrame:
    """List the words whose ratings make the scores.

    Parameters
    ----------
    version : {"EXTENDED", "ORIGINAL"}
        Table 4, or the prompts of the two axes, where each axis is a single dimension.

    Returns
    -------
    DataFrame
        One row per word: ``family``, ``dimension`` and ``word``.
    """
    if version == "EXTENDED":
        return published.load("stereomap", 4)

    # ORIGINAL asks for each word in a prompt of its own, which has the word as its name.
    rows = []
    for name, prompt in prompts(version).items():
        if prompt.construct in ("Competence", "Warmth"):
            row = {
                "family": prompt.construct,
                "dimension": f"{prompt.construct} attributes",
                "word": name.split("/")[1],
            }
            rows.append(row)
    return pd.DataFrame(rows)


def dimensions_of(family: str) -> list[str]:
    """List the dimensions of a family of Table 4.

    Parameters
    ----------
    family : str
        For example "Emotion".

    Returns
    -------
    list of str
        The dimensions in the order of the table.
    """
    table = published.load("stereomap", 4)
    of_family = table[table.family == family]
    return list(of_family.dimension.unique())


def constructs(version: str = "EXTENDED") -> dict[str, str]:
    """Return the construct of each prompt.

    Parameters
    ----------
    version : {"EXTENDED", "ORIGINAL"}
        The version of the prompts.

    Returns
    -------
    dict of str
        The construct by the prompt's name without its version, as tables of replies have it.
    """
    by_prompt = {}
    for name, prompt in prompts(version).items():
        _, short_name = name.split("/")
        by_prompt[short_name] = prompt.construct
    return by_prompt


def ablations() -> list[str]:
    """List the names of the four forms of a prompt.

    Returns
    -------
    list of str
        The names as in Table 14, the paper's own form first.
    """
    return list(_TEXTS["ablations"])


def chats(
    group: str,
    prompt: str,
    ablation: str = "Prompt (paper)",
    form: str = "released",
    wording: str = "paper",
    calls: str = "together",
) -> dict[str, list[Message]]:
    """Write the chats of a prompt about a group.

    Parameters
    ----------
    group, prompt : str
        The names of the group and of the prompt.
    ablation : str
        One of `ablations`. ``prompts.yaml`` says what the three reduced texts, not printed, leave
        out; in ORIGINAL there is no chain of thought.
    form : {"released", "grammatical"}
        As in `text`.
    wording : {"paper", "released"}
        "released" is what the authors' code sends; reduced prompts and ORIGINAL are the paper's.
    calls : {"together", "separate"}
        A single chat with all parts, as gpt-3.5-turbo was asked, or one for each part, as
        text-davinci-003 was. In separate chats no rating sees the keywords, so the chain of thought
        is lost; words are the released code's.

    Returns
    -------
    dict
        Chats of one user turn, by the part that they ask, "" for all parts together.

    Notes
    -----
    Checked against Tables 6 and 7 and 686 (separate: 1,078) sent prompts.
    """
    parts = _reduced(prompt, ablation, wording, calls)
    changes: dict[str, str] = {}
    if calls == "separate":
        changes |= _TEXTS["separate"]
    if form == "grammatical":
        changes |= _TEXTS["grammatical"]
    # The group comes last, so that no other change is made in its name.
    people = text(group, prompt, form)
    changes |= {"{group}": people, "{people}": people}

    contents = {}
    for name, part in parts.items():
        contents[name] = _replaced(part, changes)
    if calls == "together":
        contents = {"": _TEXTS["join"].join(contents.values())}

    turns: dict[str, list[Message]] = {}
    for name, content in contents.items():
        turns[name] = [{"role": "user", "content": content}]
    return turns


def _reduced(prompt: str, ablation: str, wording: str, calls: str) -> dict[str, str]:
    """Return the parts of a prompt without the texts that an ablation leaves out.

    The group is still to be filled in.
    """
    version = prompt.split("/")[0]
    parts = dict(prompts(version)[prompt].parts)
    left_out = _TEXTS["ablations"][ablation]
    instructions = _TEXTS["instructions"]
    # The code's texts are known for whole prompts only.
    if not left_out and wording == "released":
        return dict(_TEXTS["released"][calls].get(prompt, parts))

    if "cot" in left_out and "keywords" in parts:
        # Instructions that stood in the keywords move to the front of the ratings.
        keywords = parts.pop("keywords")
        moved = [sentence for sentence in instructions if sentence in keywords]
        ratings = _replaced(parts["ratings"], _TEXTS["opening"])
        parts["ratings"] = " ".join([*moved, ratings])

    if "instructions" in left_out:
        for name, part in parts.items():
            # With a blank in front, a sentence at the very start is found as well.
            shortened = f" {part}"
            for sentence in instructions:
                shortened = shortened.replace(f" {sentence}", "")
            parts[name] = shortened.strip()
    return parts


@cache
def expected_prompt(prompt: str, part: str = "", ablation: str = "Prompt (paper)") -> Prompt:
    """Return a prompt with the words and keywords that a reply should hold.

    Parameters
    ----------
    prompt : str
        Name of the prompt.
    part : str
        The part that the reply answers, "" for all of them.
    ablation : str
        One of `ablations`.

    Returns
    -------
    Prompt
        The whole prompt, with only these words and this number of keywords.
    """
    version = prompt.split("/")[0]
    whole = prompts(version)[prompt]
    answered = {part} if part else set(whole.parts)
    if "cot" in _TEXTS["ablations"][ablation]:
        answered.discard("keywords")

    # Where the overall rating or the keywords have no part of their own, ratings asks for them.
    overall_part = "overall" if "overall" in whole.parts else "ratings"
    keywords_part = "keywords" if "keywords" in whole.parts else "ratings"
    words = []
    for word in whole.words:
        word_part = overall_part if word == "Rating" else "ratings"
        if word_part in answered:
            words.append(word)
    n_keywords = whole.n_keywords if keywords_part in answered else 0
    return whole._replace(words=tuple(words), n_keywords=n_keywords)


def _replaced(template: str, replacements: Mapping[str, str]) -> str:
    """Make all replacements in a text, in order."""
    for old, new in replacements.items():
        template = template.replace(old, new)
    return template


@cache
def _groups() -> dict:
    """Index the rows of `groups` by name."""
    return {row.group: row for row in groups().itertuples()}
