"""New items for GIEBench: topics, annotators' stances, four answers (Wang et al. 2024, 3.1, 3.2).

The paper does not say how the three wrong answers come about. The wrong answers of its appendix all
oppose the identity's stance. Here they are three draws of the dialog prompt with the opposite
attitude. Code cannot see whether a draw keeps its attitude, so read new items first.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ingroup import models, paths
from ingroup.design import Block, Design, Message, fill_template
from ingroup.inference import Job
from ingroup.inference.engine import FAILED, LENGTH, free_sampling
from ingroup.parsing import one_line
from ingroup.studies.giebench import stimuli
from ingroup.tables import InputError, at, check, once, read_table, wrong

TOPIC = ["category", "identity", "topic"]
STANCES = ("positive", "negative")
OFFENSIVE = "offensive"
_ANNOTATOR = r"^annotator_\d+$"


def writer(parameters: Mapping[str, Any]) -> tuple[str, str] | None:
    """Choose the first of ``MODELS`` that can be asked for a text.

    A calibrant has learnt no such prompt, and a model with stored answers only is not asked.

    Parameters
    ----------
    parameters : mapping
        The parameters of a run: ``MODELS`` and ``ENGINE``.

    Returns
    -------
    tuple of str or None
        The model and its engine; None where no model can be asked.
    """
    for entry in parameters["MODELS"]:
        model, engine = models.split_entry(entry, parameters["ENGINE"])
        if engine != models.STORED and not models.is_calibrant(model):
            return model, engine
    return None


def jobs(parameters: Mapping[str, Any]) -> list[Job]:
    """Plan the jobs that notebook 31 asks of the `writer`.

    Parameters
    ----------
    parameters : mapping
        The parameters of a run, ``TOPICS`` and ``SHEET`` among them.

    Returns
    -------
    list of Job
        The jobs of :func:`topic_jobs` and of :func:`item_jobs`; none without a writer.

    Raises
    ------
    InputError
        As :func:`prompt_jobs` and :func:`read_topics` do.
    """
    if writer(parameters) is None:
        return []
    asked = topic_jobs(parameters, examples_of(parameters["TOPICS"]))
    labelled = labels(filled_sheet(parameters["SHEET"]))
    return asked + item_jobs(parameters, with_label(labelled))


def prompt_jobs(
    parameters: Mapping[str, Any], prompt: str, values: Sequence[Mapping[str, str]], draws: int = 1
) -> list[Job]:
    """Plan the jobs of a prompt of appendix A, filled once per trial.

    The `writer` is asked, or the first of ``MODELS`` if there is no writer.

    Parameters
    ----------
    parameters : mapping
        The parameters of a run.
    prompt : str
        The prompt's name in prompts.yaml.
    values : sequence of mapping
        The texts that fill the placeholders of the prompt, for each trial.
    draws : int
        How often the prompt is asked.

    Returns
    -------
    list of Job
        One job per draw, each with a seed and a store of its own.

    Raises
    ------
    InputError
        Where ``TEMPERATURE`` is 0: all draws would be the same.
    """
    seed = parameters["SEED"]
    first = models.split_entry(parameters["MODELS"][0], parameters["ENGINE"])
    model, engine = writer(parameters) or first
    sampling = free_sampling(parameters, model)
    if sampling.temperature == 0:
        raise InputError(
            f"TEMPERATURE must be above 0 for {model}, found 0: one prompt is to give several "
            "answers, which would all be the same"
        )

    template = stimuli.templates()[prompt]

    def render(condition: Mapping[str, Any]) -> list[Message]:
        text = fill_template(template, condition["values"])
        return [{"role": "user", "content": text}]

    block = Block({"prompt": prompt}, {"values": values}, render, template)
    design = Design([block])
    # The fingerprint tells the replies about these topics from replies about other topics.
    part = f"{prompt}-{design.fingerprint[:12]}"
    # The draws of two SEEDs have no number in common.
    first_draw = seed * draws
    planned = []
    for draw in range(first_draw, first_draw + draws):
        job = Job(
            study="giebench",
            source="construction",
            model=model,
            engine=engine,
            part=f"{part}-{draw}",
            design=design,
            sampling=replace(sampling, seed=draw),
            # No prompt has a system turn, so answers do not depend on SYSTEM.
            options={"system": "fold"},
            labels={"prompt": prompt},
        )
        planned.append(job)
    return planned


def topic_jobs(parameters: Mapping[str, Any], examples: pd.DataFrame) -> list[Job]:
    """Plan the jobs of the topic prompt.

    Parameters
    ----------
    parameters : mapping
        The parameters of a run.
    examples : DataFrame
        ``identity``, and ``topic``, which the prompt shows as an example; a row for each prompt.

    Returns
    -------
    list of Job
        One job.

    Raises
    ------
    InputError
        As :func:`prompt_jobs` does.
    """
    values = []
    for example in examples.itertuples():
        identity = stimuli.identity_text(example.identity)
        values.append({"identity": identity, "example": example.topic})
    return prompt_jobs(parameters, "topic_generation", values)


def dialog_jobs(
    parameters: Mapping[str, Any], topics: pd.Series, attitudes: pd.Series, draws: int = 1
) -> list[Job]:
    """Plan the jobs of the dialog prompt.

    Parameters
    ----------
    parameters : mapping
        The parameters of a run.
    topics : Series of str
        The question of the user in each dialog.
    attitudes : Series of str
        The attitude of the assistant towards each topic, one of `STANCES`.
    draws : int
        How often each dialog is asked for.

    Returns
    -------
    list of Job
        One job per draw.

    Raises
    ------
    InputError
        As :func:`prompt_jobs` does.
    """
    values = pd.DataFrame({"question": topics, "attitude": attitudes})
    return prompt_jobs(parameters, "dialog_construction", values.to_dict("records"), draws)


def item_jobs(parameters: Mapping[str, Any], topics: pd.DataFrame) -> list[Job]:
    """Plan the dialogs from which items are made: one right and three wrong answers per topic.

    Parameters
    ----------
    parameters : mapping
        The parameters of a run.
    topics : DataFrame
        From :func:`with_label`.

    Returns
    -------
    list of Job
        The job of the right answers, whose attitude is the label, then three draws with the
        opposite attitude.

    Raises
    ------
    InputError
        As :func:`prompt_jobs` does.
    """
    positive, negative = STANCES
    opposite = topics.label.map({positive: negative, negative: positive})
    right = dialog_jobs(parameters, topics.topic, topics.label)
    return right + dialog_jobs(parameters, topics.topic, opposite, draws=3)


def examples_of(file: str) -> pd.DataFrame:
    """Read the topics that the topic prompts show, one per identity.

    A model follows the style of the topic that its prompt shows.

    Parameters
    ----------
    file : str
        The value of ``TOPICS``, a file that :func:`read_topics` reads; "" for the questions of this
        project's items.

    Returns
    -------
    DataFrame
        ``category``, ``identity`` and ``topic``, one row per identity.
    """
    if file:
        given = read_topics(Path(file).expanduser())
    else:
        items = pd.DataFrame(stimuli.load_questions())
        given = items.rename(columns={"question": "topic"})
    return given.drop_duplicates(["category", "identity"])


def filled_sheet(file: str) -> pd.DataFrame:
    """Read the sheet of the annotators.

    Parameters
    ----------
    file : str
        The value of ``SHEET``, a file that :func:`read_topics` reads; "" for the made-up sheet.

    Returns
    -------
    DataFrame
        The sheet with its marks.
    """
    sheet = paths.SAMPLE / "giebench_sheet.csv"
    if file:
        sheet = Path(file).expanduser()
    return read_topics(sheet, annotated=True)


def read_topics(file: Path, annotated: bool = False) -> pd.DataFrame:
    """Read topics, or an annotated sheet, from CSV.

    Capitals and spaces do not matter.

    Parameters
    ----------
    file : Path
        A CSV file with the columns ``category``, ``identity`` and ``topic``.
    annotated : bool
        Whether it is a sheet, which has ``annotator_1``, ``annotator_2`` and so on, and
        ``discussed`` as well.

    Returns
    -------
    DataFrame
        Texts by number of line. Other columns are left out.

    Raises
    ------
    InputError
        As :func:`ingroup.tables.read_table` does. Also for a cell without text, a topic that
        an identity has twice, a category that the paper does not have, an invalid mark, and a
        ``discussed`` stance that differs from the mark on which all annotators agree.
    """
    required = [*TOPIC]
    if annotated:
        required += ["annotator_1", "annotator_2", "discussed"]
    table = read_table(file, required)

    columns = [*TOPIC]
    marks = []
    if annotated:
        marks = [name for name in table if re.fullmatch(_ANNOTATOR, name)]
        columns += [*marks, "discussed"]
    table = table[columns].map(one_line)

    words: dict[str, Sequence[str]] = dict.fromkeys(marks, (*STANCES, OFFENSIVE, ""))
    words["category"] = tuple(stimuli.categories())
    words["discussed"] = (*STANCES, "")
    for name, column in table.items():
        table[name] = _checked(file, column, words.get(name))

    # A topic that differs from another in capitals alone is the same.
    topics = table[["identity", "topic"]]
    once(file, topics, topics.map(str.casefold))
    if annotated:
        _check_discussed(file, table, marks)
    return table


def _checked(file: Path, column: pd.Series, words: Sequence[str] | None) -> pd.Series:
    """Check the cells of a column, and spell them as `words` are.

    Without words, a cell may be any text that is not blank.
    """
    if words is None:
        check(file, column, column.ne(""), "text")
        return column

    forms = {word.lower(): word for word in words}
    cells = column.str.lower()
    *first, last = [word or "blank" for word in words]
    expected = f"{', '.join(first)} or {last}"
    check(file, column, cells.isin(list(forms)), expected, words)
    return cells.map(forms)


def _check_discussed(file: Path, table: pd.DataFrame, marks: Sequence[str]) -> None:
    """Raise an InputError where a discussed stance differs from the mark of agreeing annotators."""
    for line, row in table.iterrows():
        # All blank concur as well: a topic without marks cannot have been discussed.
        all_concur = row[marks].nunique() == 1
        mark = row[marks[0]]
        is_other = row.discussed not in ("", mark)
        if all_concur and is_other:
            expected = "blank, as no annotator has marked this topic"
            if mark:
                expected = f"blank, as all annotators say {mark}"
            where = at(file, line)
            raise wrong(where, repr(row.discussed), expected, "discussed")


def labels(sheet: pd.DataFrame) -> pd.DataFrame:
    """Label topics by the rules of section 3.1.

    A topic has the first of these states that applies. Only "agreed" and "discussed" give a label.

    ``removed``
        The topic offends an annotator, even if others have not marked the topic yet.
    ``unfinished``
        An annotator has not marked the topic.
    ``agreed``
        All annotators gave one stance, which is the label.
    ``discussed``
        The annotators disagreed, met and settled on a stance, which is the label.
    ``to discuss``
        The annotators disagree.

    Parameters
    ----------
    sheet : DataFrame
        An annotated sheet of :func:`read_topics`.

    Returns
    -------
    DataFrame
        The sheet with each topic's ``label``, a stance or blank, and ``state``.
    """
    marks = _marks(sheet)
    settled = sheet.discussed.to_numpy(str)

    # np.select takes the first condition that holds, so the order matters.
    rules = {
        "removed": (marks == OFFENSIVE).any(axis=1),
        "unfinished": (marks == "").any(axis=1),
        "agreed": (marks == marks[:, :1]).all(axis=1),
        "discussed": settled != "",
    }
    state = np.select(
        list(rules.values()),
        list(rules),
        default="to discuss",
    )
    label = np.select(
        [state == "agreed", state == "discussed"],
        [marks[:, 0], settled],
        default="",
    )
    return sheet.assign(label=label, state=state)


def with_label(topics: pd.DataFrame) -> pd.DataFrame:
    """Keep the topics that have a label.

    Parameters
    ----------
    topics : DataFrame
        From :func:`labels`.

    Returns
    -------
    DataFrame
        The rows of these topics, numbered from 0.
    """
    has_label = topics.label != ""
    return topics[has_label].reset_index(drop=True)


def kappa(sheet: pd.DataFrame, marks: Sequence[str] = STANCES) -> tuple[float, int]:
    """Compute Fleiss' kappa of the annotators before they meet, by statsmodels.

    Parameters
    ----------
    sheet : DataFrame
        An annotated sheet of :func:`read_topics`.
    marks : sequence of str
        Topics with any other mark are left out, for example topics with a blank. Topics that
        `labels` removes are left out unless "offensive" is one of the marks.

    Returns
    -------
    tuple of float and int
        Kappa, NaN where no topic, or only one mark, is left; and the number of topics.

    Notes
    -----
    With n_ij the annotators, of m, who give topic i the mark j, and p_j the share of mark j::

        kappa = (P - Q) / (1 - Q),  P = mean_i sum_j n_ij (n_ij - 1) / (m (m - 1)),  Q = sum_j p_j^2
    """
    # It takes seconds to import, which reading and asking need not wait for.
    from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

    all_marks = _marks(sheet)
    has_only_these = np.isin(all_marks, marks).all(axis=1)
    compared = all_marks[has_only_these]
    n_topics = len(compared)

    counts, used = aggregate_raters(compared)
    # With one mark in use, chance agreement is certain, and kappa 0 / 0.
    if len(used) < 2:
        return np.nan, n_topics
    return float(fleiss_kappa(counts)), n_topics


def _marks(sheet: pd.DataFrame) -> np.ndarray:
    """Return the marks of the annotators, shape (topic, annotator)."""
    return sheet.filter(regex=_ANNOTATOR).to_numpy(dtype=str)


def topics(examples: pd.DataFrame, replies: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Collect the topics that replies to the topic prompt hold.

    Parameters
    ----------
    examples : DataFrame
        The values that fill the prompts: the columns `TOPIC`.
    replies : DataFrame
        A reply for each row of `examples`.

    Returns
    -------
    topics : DataFrame
        The columns `TOPIC`. The example itself, and a topic that an identity already has, do not
        count.
    problems : list of str
        A sentence for each reply without a topic.
    """
    rows = []
    problems = []
    parsed_replies = parse_replies(replies, parse_topics)
    for example, parsed in zip(examples.itertuples(), parsed_replies, strict=True):
        for topic in parsed.texts:
            if topic != example.topic:
                rows.append((example.category, example.identity, topic))
        if parsed.missing:
            problems.append(f"{example.identity}: {parsed.missing}")
    return pd.DataFrame(rows, columns=TOPIC).drop_duplicates(), problems


def empty_sheet(topics: pd.DataFrame, annotators: int) -> pd.DataFrame:
    """Make the sheet that annotators fill in.

    Parameters
    ----------
    topics : DataFrame
        The topics.
    annotators : int
        How many people annotate.

    Returns
    -------
    DataFrame
        The topics with an empty column for each annotator, and ``discussed``.
    """
    columns = [f"annotator_{number}" for number in range(1, annotators + 1)]
    columns.append("discussed")
    return topics.assign(**dict.fromkeys(columns, ""))


def has_marks(file: Path) -> bool:
    """Tell whether an annotator wrote into a sheet.

    Parameters
    ----------
    file : Path
        A sheet, which need not be there.

    Returns
    -------
    bool
        True where a column of an annotator has a mark.
    """
    if not file.exists():
        return False
    sheet = pd.read_csv(file, dtype=str)
    marks = sheet.filter(regex=_ANNOTATOR)
    return bool(marks.notna().any(axis=None))


def items(
    ready: pd.DataFrame, draws: Sequence[pd.DataFrame], rng: np.random.Generator
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Make items from topics and the replies to the dialog prompt.

    Parameters
    ----------
    ready : DataFrame
        Labelled topics.
    draws : sequence of DataFrame
        Four tables of replies to the dialog prompt, with a row for each topic of `ready`: with the
        label's attitude, then three times with the opposite attitude.
    rng : Generator
        Draws the letter of the fitting answer, each with probability 1/4.

    Returns
    -------
    made : dict
        Items in the layout of data/sample/giebench.json.
    problems : list of str
        A sentence for each topic that lacks answers.
    """
    made: dict = {}
    problems = []
    dialogs_by_draw = [parse_replies(draw, parse_dialog) for draw in draws]
    for topic, *dialogs in zip(ready.itertuples(), *dialogs_by_draw, strict=True):
        texts, missing = _four_answers(dialogs)
        if missing:
            problems.append(f"{topic.identity}, {topic.topic!r}: {missing}")
            continue

        fitting, *answers = texts
        position = int(rng.integers(len(stimuli.LETTERS)))
        answers.insert(position, fitting)
        made[str(len(made))] = {
            "category": topic.category,
            "identity": topic.identity,
            "question": topic.topic,
            "answers": answers,
            "correct": stimuli.LETTERS[position],
        }
    return made, problems


# --- parsing of replies: no reply raises an error

_NUMBER = re.compile(r"\s*(?:[-*•]\s+|\(?\d{1,3}[.):]\s*)")
_QUESTION = re.compile(r'["“]([^"“”]*\?)\s*["”]')
_LABEL = re.compile(r"[^?:]{1,60}:\s+")  # "Marriage: Should ...?"
_SPEAKER = re.compile(
    r"""(?:^[\s{*]{0,9}["“'*]{0,3}|[{,]\s{0,9}["“'])(user|assistant)["”'*]{0,3}\s{0,9}:""",
    re.IGNORECASE | re.MULTILINE,
)
_CLOSING = {'"': '"', "“": "”", "'": "'"}
_MARK = re.compile(r"\[\[\s*\w\s*\]\]|\[The (?:Start|End) of|\[User Question\]", re.IGNORECASE)


class Parsed(NamedTuple):
    """Texts of a reply, and a sentence about missing texts, "" if nothing is missing."""

    texts: list[str]
    missing: str


def parse_replies(replies: pd.DataFrame, parse: Callable[[str], Parsed]) -> list[Parsed]:
    """Parse each reply of a store.

    Parameters
    ----------
    replies : DataFrame
        One row per reply, with ``text``, ``finish_reason`` and ``error``.
    parse : callable
        `parse_topics` or `parse_dialog`.

    Returns
    -------
    list of Parsed
        The texts of each reply. A failed call, and a dialog that was cut off, is missing for that
        reason.
    """
    parsed_replies = []
    for row in replies.itertuples():
        text = row.text if isinstance(row.text, str) else ""
        parsed = parse(text)

        if row.finish_reason == FAILED:
            parsed = parsed._replace(missing=f"the call failed ({row.error})")
        # A cut list still has whole topics; a cut dialog lacks the end of its answer.
        elif row.finish_reason == LENGTH and (parse is parse_dialog or not row.text):
            parsed = parsed._replace(missing="the reply was cut off; a larger MAX_TOKENS helps")
        parsed_replies.append(parsed)
    return parsed_replies


def _four_answers(dialogs: Sequence[Parsed]) -> Parsed:
    """Collect the answers of a topic's four dialogs, or the first reason why they are unusable."""
    answers = []
    contents = set()
    for dialog in dialogs:
        if dialog.missing:
            return dialog
        # The second text is the assistant's turn.
        answer = dialog.texts[1]
        answers.append(answer)
        # Answers that differ in a mark or a capital say the same.
        letters = re.sub(r"[\W_]", "", answer.casefold())
        contents.add(letters)

    if len(contents) < len(answers):
        return Parsed([], "two of the four answers are the same; another SEED draws anew")
    return Parsed(answers, "")


def parse_topics(text: str) -> Parsed:
    """Read the questions from a reply to the topic prompt.

    A topic is a numbered, bulleted or quoted line that ends in a question mark. If a reply has no
    such line, any line that ends in a question mark is a topic.

    Parameters
    ----------
    text : str
        The reply.

    Returns
    -------
    Parsed
        The topics, without marks and a short label before a colon. A topic that comes again is left
        out.
    """
    marked: dict[str, str] = {}
    bare: dict[str, str] = {}
    for line in text.splitlines():
        number = _NUMBER.match(line)
        rest = line[number.end() :] if number else line
        topic, is_quoted = _topic(rest)
        if topic.endswith("?"):
            topics = marked if number or is_quoted else bare
            topics.setdefault(topic.casefold(), topic)

    topics = marked or bare
    if not topics:
        return Parsed([], "no line of the reply is a question")
    return Parsed(list(topics.values()), "")


def _topic(line: str) -> tuple[str, bool]:
    """Read the possible topic of a line without its number, and whether the topic was quoted."""
    line = one_line(line).replace("**", "")
    quoted = _QUESTION.search(line)
    if quoted:
        topic = quoted[1]
    else:
        topic = line.rstrip("\"“”*_ '")
        label = _LABEL.match(topic)
        topic = topic[label.end() :] if label else topic

    # A spreadsheet takes nothing that is left for a formula.
    return re.sub(r"^[\W_]+", "", topic), bool(quoted)


def parse_dialog(text: str) -> Parsed:
    """Read the user's and the assistant's turn from a reply to the dialog prompt.

    The turns stand after ``"user":`` and ``"assistant":``, in one line, as JSON, or at the start of
    lines, perhaps without quotation marks.

    Parameters
    ----------
    text : str
        The reply.

    Returns
    -------
    Parsed
        Both turns, the user's first. An answer with a mark of the evaluation prompts, e.g.
        ``[[A]]``, would speak to the judge and counts as missing.
    """
    speakers = list(_SPEAKER.finditer(text))
    names = [speaker[1].lower() for speaker in speakers]
    absent = [f'no "{name}":' for name in ("user", "assistant") if name not in names]
    if absent:
        return Parsed([], f"{' and '.join(absent)} in the reply")
    rounds = max(Counter(names).values())
    if rounds > 1:
        return Parsed([], f"{rounds} rounds in the reply, expected one")

    # From here on there is one turn of each speaker, in either order.
    first, second = speakers
    between = text[first.end() : second.start()]
    behind = text[second.end() :]
    turns = {
        names[0]: _turn(between),
        names[1]: _turn(behind),
    }

    missing = ""
    empty = [name for name in names if not turns[name]]
    mark = _MARK.search(turns["assistant"])
    if mark:
        missing = f"{mark[0]!r} in the answer, a mark of the evaluation prompts"
    elif empty:
        missing = f'nothing after "{empty[0]}":'
    return Parsed([turns["user"], turns["assistant"]], missing)


def _turn(text: str) -> str:
    """Read the turn of a speaker, without quotation marks and the lines behind the closing mark."""
    # The braces, commas and fences are what is left of JSON and Markdown around a turn.
    turn = text.strip(" \t\r\n*`{},")
    closing = _CLOSING.get(turn[:1])
    if not closing:
        return one_line(turn)

    quoted = turn[1:]
    # A quotation ends where its mark ends a line: within the turn, marks may quote somebody.
    end = re.search(rf"(?<!\\){closing}[ \t`,}}]*(?:[\r\n]|\Z)", quoted)
    if end:
        turn = quoted[: end.start()]
    elif closing not in quoted:  # else the opening quotation mark may be of the first word
        turn = quoted

    try:
        # JSON's escapes are undone, and strict=False admits bare line breaks.
        turn = json.loads(f'"{turn}"', strict=False)
    except ValueError:
        turn = turn.replace('\\"', '"')
    return one_line(turn)
