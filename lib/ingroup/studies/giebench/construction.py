"""New items for GIEBench: topics, annotators' stances, four answers (Wang et al. 2024, 3.1, 3.2).

Three commands of ``python -m ingroup.studies.giebench.construction``, with people between them:
``topics`` asks a model for questions about each identity, ``sheet`` lays them before the
annotators, ``items`` makes labels of the filled sheet and asks a model for the answers.

The paper does not say how an item's three wrong answers come about. Those of its appendix all
oppose the identity's stance, so here they are three draws of the dialog prompt with the
opposite attitude, beside one with the identity's own. Whether a draw keeps its attitude no code
can see: new items are to be read before they are used.
"""

import inspect
import json
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from ingroup import paths
from ingroup.commands.parameters import check, converted
from ingroup.design import Block, Design, Message, filled
from ingroup.inference import (
    EngineError,
    Sampling,
    StoreError,
    generate,
    make_engine,
    open_store,
    response_folder,
)
from ingroup.inference.engine import FAILED, LENGTH
from ingroup.studies.giebench import stimuli as questions
from ingroup.studies.giebench.annotation import (
    TOPIC,
    agreement,
    annotation_sheet,
    labels,
    read_table,
)
from ingroup.studies.giebench.drafts import Found, parse_dialog, parse_topics
from ingroup.tables import InputError

STIMULI = paths.STIMULI / "giebench"
FOLDER = paths.BUILD / "giebench"

OPPOSITE = {"positive": "negative", "negative": "positive"}
DRAWS = 3  # wrong answers of an item
OPTIONS = {  # of an engine, each with its default
    name: option.default
    for name, option in inspect.signature(make_engine).parameters.items()
    if isinstance(option.default, int | str)
}


def asking(prompt: str, values: Sequence[Mapping[str, str]]) -> Design:
    """A prompt of appendix A, filled with some values one after another: one user turn a trial.

    Parameters
    ----------
    prompt : {"topic_generation", "dialog_construction"}
        Its name in ``data/stimuli/giebench/prompts.yaml``.
    values : sequence of mapping
        For each trial ``identity`` and ``example`` (a topic whose style the new ones shall have),
        or ``question`` and ``attitude`` ("positive" or "negative").
    """
    template = yaml.safe_load((STIMULI / "prompts.yaml").read_text("utf8"))[prompt]

    def render(condition: Mapping[str, Any]) -> list[Message]:
        return [{"role": "user", "content": filled(template, condition["values"])}]

    return Design([Block({"setting": prompt}, {"values": values}, render, template)])


def assemble(
    topic: Mapping[str, str], fitting: str, others: Sequence[str], rng: np.random.Generator
) -> dict[str, Any]:
    """One item in the layout of data/sample/giebench.json.

    Parameters
    ----------
    topic : mapping
        ``category``, ``identity``, ``topic``.
    fitting : str
        The answer that takes the identity's side.
    others : sequence of str
        The three that do not, in the order that they keep.
    rng : numpy.random.Generator
        Draws the letter of the fitting one, each of A to D with probability 1/4.
    """
    place = int(rng.integers(1 + DRAWS))
    answers = [*others[:place], fitting, *others[place:]]
    item = {"category": topic["category"], "identity": topic["identity"]}
    return item | {
        "question": topic["topic"],
        "answers": answers,
        "correct": questions.LETTERS[place],
    }


def dialogs(labelled: pd.DataFrame) -> list[list[dict[str, str]]]:
    """What each draw asks for: the opposite attitude; the first also, before that, the fitting one.

    ``labelled`` is of :func:`labels`; only its topics with a label count.
    """
    ready = labelled[labelled.label != ""]
    pairs = list(zip(ready.topic, ready.label, strict=True))
    fitting = [{"question": topic, "attitude": label} for topic, label in pairs]
    others = [{"question": topic, "attitude": OPPOSITE[label]} for topic, label in pairs]
    return [fitting + others, *([others] * (DRAWS - 1))]


def items(
    labelled: pd.DataFrame, draws: Sequence[pd.DataFrame], rng: np.random.Generator
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Items of the topics with a label, and a sentence for each that could not be made.

    ``labelled`` is of :func:`labels`, ``draws`` the responses to the prompts of :func:`dialogs`.
    """
    ready = labelled[labelled.label != ""].to_dict("records")
    replies = [_parsed(responses, parse_dialog) for responses in draws]
    made: dict[str, dict[str, Any]] = {}
    problems = []
    for number, topic in enumerate(ready):
        four = [replies[0][number], *(draw[-len(ready) :][number] for draw in replies)]
        missing = next((dialog.missing for dialog in four if dialog.missing), "")
        answers = [dialog.texts[1] for dialog in four if not missing]
        # Answers that differ in a mark or a capital say the same.
        if len({re.sub(r"[\W_]", "", answer.casefold()) for answer in answers}) < len(answers):
            missing = "two of the four answers are the same; another SEED draws anew"
        if missing:
            problems.append(f"{topic['identity']}, {topic['topic']!r}: {missing}")
        else:
            made[str(len(made))] = assemble(topic, answers[0], answers[1:], rng)
    return made, problems


def new_topics(examples: pd.DataFrame, responses: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Topics that are no example, one row each, and a sentence for each identity without any.

    ``examples`` has ``category``, ``identity`` and ``topic``, ``responses`` a reply to each.
    """
    rows, problems = [], []
    for example, reply in zip(examples.itertuples(), _parsed(responses, parse_topics), strict=True):
        found = [topic for topic in reply.texts if topic.casefold() != example.topic.casefold()]
        rows += [(example.category, example.identity, topic) for topic in found]
        if not found:
            missing = reply.missing or "the reply repeats the example alone"
            problems.append(f"{example.identity}: {missing}")
    return pd.DataFrame(rows, columns=TOPIC).drop_duplicates(), problems


def _parsed(responses: pd.DataFrame, parse: Callable[[str], Found]) -> list[Found]:
    """Each reply in order; of a call that failed, and of an answer that was cut off, the reason."""
    found = []
    for row in responses.sort_values("trial").itertuples():
        parsed = parse(row.text if isinstance(row.text, str) else "")
        if row.finish_reason == FAILED:
            parsed = parsed._replace(missing=f"the call failed ({row.error})")
        elif row.finish_reason == LENGTH and parse is parse_dialog:
            parsed = parsed._replace(missing="the reply was cut off; a larger MAX_TOKENS helps")
        found.append(parsed)
    return found


# --- the commands


def _settings(given: Sequence[str]) -> dict[str, Any]:
    """Defaults and what ``--set`` gave, checked like a notebook's parameters."""
    values: dict[str, Any] = {"MODEL": "", "ENGINE": "transformers"}
    values |= {"SEED": 0, "TEMPERATURE": 1.0, "MAX_TOKENS": 1024}
    values |= {name.upper(): default for name, default in OPTIONS.items()}
    for pair in given:
        name, _, text = pair.partition("=")
        if name not in values:
            raise InputError(f"there is no parameter {name}; there are {', '.join(values)}")
        values[name] = converted(name, text, values[name])
    for name, value in values.items():
        check(name, value)
    if values["TEMPERATURE"] <= 0:
        raise InputError("TEMPERATURE must be above 0, as one prompt is to give several answers")
    return values


def _ask(designs: Sequence[Design], values: Mapping[str, Any]) -> list[pd.DataFrame]:
    """The stored or new responses to some designs, each with a seed of its own."""
    model, name = values["MODEL"], values["ENGINE"]
    options = {option: values[option.upper()] for option in OPTIONS}
    engine = make_engine(name, model, designs=designs, **options)
    try:
        answered = []
        for draw, design in enumerate(designs):
            seed = values["SEED"] * len(designs) + draw
            sampling = Sampling(values["TEMPERATURE"], 1.0, values["MAX_TOKENS"], seed)
            prompt = design.blocks[0].labels["setting"]
            drawn = "-".join(str(value) for value in sampling.identity().values())
            part = f"{prompt}-{design.fingerprint[:12]}-{drawn}"
            folder = response_folder("giebench", "construction", model, name, part)
            store = open_store(folder, design, engine, sampling)
            title = f"{prompt}, {draw + 1} of {len(designs)}"
            answered.append(generate(design, engine, store, sampling, title))
        return answered
    finally:
        engine.close()


def _topics(options: Namespace) -> str:
    values = _settings(options.set)
    if options.file:
        examples = read_table(options.file)
    else:
        examples = pd.DataFrame(questions.load_questions()).rename(columns={"question": "topic"})
    examples = examples.drop_duplicates(["category", "identity"])
    texts = pd.read_csv(STIMULI / "identities.csv", dtype=str).set_index("identity").text
    pairs = [
        {"identity": texts.get(row.identity, row.identity), "example": row.topic}
        for row in examples.itertuples()
    ]
    found, problems = new_topics(examples, *_ask([asking("topic_generation", pairs)], values))
    _say(problems)
    if found.empty:
        raise InputError(f"no reply holds a topic; {options.out} was not written")
    options.out.write_text(found.to_csv(index=False), "utf8")
    return f"{len(found)} topics about {len(pairs) - len(problems)} of {len(pairs)} identities"


def _say(problems: Sequence[str]) -> None:
    for problem in problems:
        print(problem, file=sys.stderr)


def _sheet(options: Namespace) -> str:
    if options.annotators < 2:
        raise InputError(f"--annotators must be at least 2, found {options.annotators}")
    sheet = annotation_sheet(read_table(options.file), options.annotators)
    options.out.write_text(sheet.to_csv(index=False), "utf-8-sig")  # so that a spreadsheet knows
    return f"{len(sheet)} topics for {options.annotators} annotators"


def _items(options: Namespace) -> str:
    values = _settings(options.set)
    sheet = read_table(options.file)
    if "discussed" not in sheet:
        raise InputError(f"{options.file}, line 1: no annotator; make a sheet of it first")
    labelled, found = labels(sheet), agreement(sheet)
    print(
        f"Fleiss' kappa {found.kappa:.3f} over {found.topics} topics; with offensive as a mark "
        f"{found.kappa_offensive:.3f} over {found.topics_offensive}"
    )
    for state, what in {"unfinished": "lack a mark", "to discuss": "are to be discussed"}.items():
        if lines := labelled.line[labelled.state == state].tolist():
            raise InputError(f"{options.file}: {len(lines)} topics {what}, lines {lines}")
    if (labelled.label == "").all():
        raise InputError(f"{options.file}: all topics are removed, as each offends someone")
    designs = [asking("dialog_construction", pairs) for pairs in dialogs(labelled)]
    rng = np.random.default_rng(values["SEED"])
    made, problems = items(labelled, _ask(designs, values), rng)
    _say(problems)
    if not made:
        raise InputError(f"no topic got four answers; {options.out} was not written")
    options.out.write_text(json.dumps(made, indent=2, ensure_ascii=False) + "\n", "utf8")
    removed = (labelled.state == "removed").sum()
    return f"{len(made)} items of {len(labelled)} topics ({removed} removed by rule 3)"


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when all was written, 2 for a wrong parameter, 1 where it could not be."""
    parser = ArgumentParser(
        prog="python -m ingroup.studies.giebench.construction", description=__doc__.split("\n")[0]
    )
    commands = parser.add_subparsers(required=True, metavar="topics | sheet | items")
    for run, out, file, text in (
        (_topics, "topics.csv", None, "ask a model for topics; FILE has an example an identity"),
        (_sheet, "sheet.csv", "topics.csv", "lay the topics of FILE before the annotators"),
        (_items, "items.json", "sheet.csv", "make labels of a filled sheet, ask for the answers"),
    ):
        command = commands.add_parser(run.__name__.strip("_"), help=text, description=text)
        default = FOLDER / file if file else None
        shown = "%(default)s" if file else "the sample's"
        columns = f"CSV with category, identity, topic, ...; default: {shown}"
        command.add_argument("file", nargs="?", type=Path, default=default, help=columns)
        command.add_argument("--out", type=Path, default=FOLDER / out, help="default: %(default)s")
        command.set_defaults(run=run)
        if run is _sheet:
            command.add_argument("--annotators", type=int, default=5, help="default: %(default)s")
        else:
            what = "MODEL (needed), ENGINE, SEED, TEMPERATURE, MAX_TOKENS, options of the engine"
            command.add_argument("--set", action="append", default=[], metavar="NAME=V", help=what)
    options = parser.parse_args(arguments)
    try:
        if options.out.exists():  # people's work may be in it
            raise InputError(f"{options.out} is there already; move it, or give --out")
        options.out.parent.mkdir(parents=True, exist_ok=True)
        print(f"{options.run(options)}, written to {options.out}")
    except (InputError, EngineError, StoreError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
