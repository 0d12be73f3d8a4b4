"""What notebook 31 asks and reads: topics, dialogs, and annotators' stances (section 3.1, 3.2)."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from pydantic import Field

from ingroup.giebench.stimuli import FOLDER
from ingroup.inference import parameters as shared
from ingroup.inference.answers import FAILED, LENGTH, MISSING, Sampling
from ingroup.inference.design import Block, Design
from ingroup.inference.jobs import Job, answers
from ingroup.inference.models import Model
from ingroup.paths import SAMPLE
from ingroup.tables import read_table, wrong

TOPIC = ["category", "identity", "topic"]
STANCES = ["positive", "negative"]
OFFENSIVE = "offensive"

SPEAKER = re.compile(r"[\"“'*]*\b(user|assistant)[\"”'*]*[^\S\n]*:", re.IGNORECASE)
EVALUATION = re.compile(r"\[\[\s*\w\s*\]\]|\[The (?:Start|End) of", re.IGNORECASE)


class Parameters(shared.Parameters):
    """The parameters of notebook 31."""

    TOPICS: str = ""
    SHEET: str = ""
    TEMPERATURE: float = Field(1.0, gt=0, le=2)  # one prompt is to give several answers
    MAX_TOKENS: shared.Count = 1024

    @property
    def writer(self) -> Model | None:
        """Return the first model that can be asked for a text, None if all are recorded."""
        able = [model for model in self.models if model.engine != "recorded"]
        return able[0] if able else None


def job(parameters: Parameters, prompt: str, values: list[dict[str, str]], draw: int = 0) -> Job:
    """Plan one draw of texts by the writer.

    Parameters
    ----------
    parameters : Parameters
        The run's parameters.
    prompt : {"topic_generation", "dialog_construction"}
        A prompt of prompts.yaml.
    values : list of dict
        What fills the prompt, once for each trial.
    draw : int
        0 to 3. Draws of one prompt have seeds of their own.
    """
    text = yaml.safe_load((FOLDER / "prompts.yaml").read_text("utf8"))[prompt]

    def render(condition: Mapping[str, Any]) -> list[dict[str, str]]:
        return [{"role": "user", "content": text.format(**condition["values"])}]

    sampling = Sampling(
        temperature=parameters.TEMPERATURE,
        top_p=parameters.TOP_P,
        max_tokens=parameters.MAX_TOKENS,
        seed=4 * parameters.SEED + draw,
    )
    return Job(
        study="giebench",
        part=f"{prompt}-{draw}",
        model=parameters.writer,
        design=Design([Block({"prompt": prompt}, {"values": values}, render)]),
        sampling=sampling,
        labels={"part": prompt},
    )


def replies(job: Job) -> list[str]:
    """Read the replies to a job, "" for one that failed or was cut."""
    table = answers(job, ["text"])
    is_lost = table.finish_reason.isin([FAILED, MISSING, LENGTH])
    return table.text.mask(is_lost).fillna("").tolist()


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
    known = [*STANCES, OFFENSIVE, ""]
    for column in sheet.filter(regex="annotator_|discussed"):
        marks = sheet[column].str.strip().str.lower()
        for row in sheet.index[~marks.isin(known)]:
            raise wrong(path, row, column, marks[row], f"{', '.join(known[:3])} or nothing")
        sheet[column] = marks
    return sheet
