"""New questions: topics, annotators' stances and four answers (sections 3.1 and 3.2).

The paper does not say how the three wrong answers are made. Those that it prints oppose the
identity's stance, so here they are three draws of the dialog prompt with the opposite attitude.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from pydantic import Field

from ingroup.giebench import stimuli
from ingroup.inference import parameters as shared
from ingroup.inference.answers import FAILED, LENGTH, MISSING, Sampling
from ingroup.inference.design import Block, Design
from ingroup.inference.jobs import Job, answers
from ingroup.inference.models import Model
from ingroup.paths import SAMPLE, STIMULI
from ingroup.tables import read_table, wrong

TOPIC = ["category", "identity", "topic"]
STANCES = ("positive", "negative")
OFFENSIVE = "offensive"

# A line that is a question, without its number, bullet and quotation marks.
TOPIC_LINE = re.compile(r"^\W*(?:\d{1,3}[.):])?\W*(\w.*?\?)\W*$", re.MULTILINE)
SPEAKER = re.compile(r"[\"“'*]*\b(user|assistant)[\"”'*]*[^\S\n]*:", re.IGNORECASE)
EVALUATION = re.compile(r"\[\[\s*\w\s*\]\]|\[The (?:Start|End) of", re.IGNORECASE)


class Parameters(shared.Parameters):
    """The parameters of notebook 31."""

    TOPICS: str = ""
    SHEET: str = ""
    ANNOTATORS: int = Field(5, ge=2, le=1000)
    TEMPERATURE: float = Field(1.0, gt=0, le=2)  # one prompt is to give several answers
    MAX_TOKENS: shared.Count = 1024

    @property
    def writer(self) -> Model | None:
        """Return the first model that can be asked for a text, None if all are recorded."""
        able = [model for model in self.models if model.engine != "recorded"]
        return able[0] if able else None


@cache
def _prompts() -> dict[str, str]:
    """Read the prompts of construction."""
    return yaml.safe_load((STIMULI / "giebench" / "prompts.yaml").read_text("utf8"))


def topic_design(examples: pd.DataFrame) -> Design:
    """Ask for topics about identities, with one example each.

    Parameters
    ----------
    examples : DataFrame
        The columns `TOPIC`.
    """
    values = []
    for example in examples.itertuples():
        identity = stimuli.identity_text(example.identity)
        values.append({"identity": identity, "example": example.topic})
    return _filled("topic_generation", values)


def dialog_design(topics: Sequence[str], attitudes: Sequence[str]) -> Design:
    """Ask for dialogs in which the assistant keeps an attitude, one of `STANCES`."""
    values = []
    for topic, attitude in zip(topics, attitudes, strict=True):
        values.append({"question": topic, "attitude": attitude})
    return _filled("dialog_construction", values)


def _filled(prompt: str, values: list[dict[str, str]]) -> Design:
    """Fill a prompt once for each trial."""

    def render(condition: Mapping[str, Any]) -> list[dict[str, str]]:
        text = _prompts()[prompt].format(**condition["values"])
        return [{"role": "user", "content": text}]

    return Design([Block({"prompt": prompt}, {"values": values}, render)])


def job(parameters: Parameters, part: str, design: Design, draw: int = 0) -> Job:
    """Plan one draw of a design, asked of the writer; draws have seeds of their own."""
    sampling = Sampling(
        temperature=parameters.TEMPERATURE,
        top_p=parameters.TOP_P,
        max_tokens=parameters.MAX_TOKENS,
        seed=4 * parameters.SEED + draw,
    )
    return Job("giebench", f"{part}-{draw}", parameters.writer, design, sampling, {"part": part})


def replies(job: Job) -> list[str]:
    """Read the replies to a job, "" for one that failed or was cut."""
    table = answers(job, ["text"])
    is_lost = table.finish_reason.isin([FAILED, MISSING, LENGTH])
    return table.text.mask(is_lost).fillna("").tolist()


def parse_topics(text: str) -> list[str]:
    """Read the topics of a reply, the lines that are questions, each once."""
    return list(dict.fromkeys(TOPIC_LINE.findall(text)))


def parse_dialog(text: str) -> str:
    """Read the assistant's answer from a dialog of one round.

    Parameters
    ----------
    text : str
        The reply: ``"user": ..., "assistant": ...`` in one line, in several, or as JSON.

    Returns
    -------
    str
        The answer; "" unless there is exactly one turn of each, and where the answer has a mark of
        the evaluation prompts, such as ``[[A]]``, with which it would speak to the judge.
    """
    parts = SPEAKER.split(text)
    speakers = [speaker.lower() for speaker in parts[1::2]]
    if speakers != ["user", "assistant"] or EVALUATION.search(parts[-1]):
        return ""
    answer = parts[-1].strip(' \t\r\n"“”*{}`,')
    return answer.replace('\\"', '"')


def read_sheet(file: str = "") -> pd.DataFrame:
    """Read a sheet that annotators filled in.

    Parameters
    ----------
    file : str
        A CSV file with `TOPIC`, ``annotator_1``, ``annotator_2`` and so on, and ``discussed``; a
        made-up sheet of this project unless given.

    Returns
    -------
    DataFrame of str
        The file's rows, with marks in lower case.

    Raises
    ------
    InputError
        A mark is neither a stance, nor "offensive", nor empty.
    """
    path = Path(file) if file else SAMPLE / "giebench_sheet.csv"
    sheet = read_table(path, [*TOPIC, "annotator_1", "annotator_2", "discussed"])
    marks = [name for name in sheet if name.startswith("annotator_")]
    for column in (*marks, "discussed"):
        sheet[column] = sheet[column].str.strip().str.lower()
        for row, mark in enumerate(sheet[column]):
            if mark not in (*STANCES, OFFENSIVE, ""):
                raise wrong(path, row, column, mark, "positive, negative, offensive or nothing")
    return sheet


def labels(sheet: pd.DataFrame) -> pd.DataFrame:
    """Label topics by the three rules of section 3.1.

    Parameters
    ----------
    sheet : DataFrame
        From `read_sheet`.

    Returns
    -------
    DataFrame
        The sheet with ``state``, the first that applies: "removed" (it offends an annotator),
        "unfinished" (a mark is missing), "agreed", "discussed" (they settled on a stance) or "to
        discuss"; and ``label``, the stance of topics that are agreed or discussed, else "".
    """
    marks = sheet.filter(regex=r"^annotator_\d+$").to_numpy(dtype=str)
    first = marks[:, 0]
    settled = sheet.discussed.to_numpy(dtype=str)
    states = {
        "removed": (marks == OFFENSIVE).any(axis=1),
        "unfinished": (marks == "").any(axis=1),
        "agreed": (marks == first[:, None]).all(axis=1),
        "discussed": np.isin(settled, STANCES),
    }
    # np.select takes the first condition that holds.
    state = np.select(list(states.values()), list(states), "to discuss")
    label = np.select([state == "agreed", state == "discussed"], [first, settled], "")
    return sheet.assign(state=state, label=label)


def questions(
    topics: pd.DataFrame, four_answers: Sequence[Sequence[str]], rng: np.random.Generator
) -> pd.DataFrame:
    """Make questions of topics and answers, with the right answer at a random letter.

    Parameters
    ----------
    topics : DataFrame
        The columns `TOPIC`.
    four_answers : sequence
        Four texts for each topic, the right one first; "" where a dialog gave none.
    rng : numpy.random.Generator
        Draws the letters.

    Returns
    -------
    DataFrame
        `stimuli.COLUMNS`. A topic without four different answers is left out.
    """
    rows = []
    for topic, (right, *wrong_ones) in zip(topics.itertuples(), four_answers, strict=True):
        if "" in (right, *wrong_ones) or len({right, *wrong_ones}) < len(stimuli.LETTERS):
            continue
        place = int(rng.integers(len(stimuli.LETTERS)))
        in_order = [*wrong_ones[:place], right, *wrong_ones[place:]]
        letter = stimuli.LETTERS[place]
        rows.append([topic.category, topic.identity, topic.topic, *in_order, letter])
    return pd.DataFrame(rows, columns=stimuli.COLUMNS)
