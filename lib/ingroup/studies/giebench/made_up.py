"""Made-up replies to the prompts of `construction`, for a run without a writer.

The replies are made of the items of this project, and say nothing about any model.
"""

from collections.abc import Iterable, Sequence

import pandas as pd

from ingroup.studies.giebench import stimuli


def topic_lists(examples: pd.DataFrame) -> pd.DataFrame:
    """Make up a reply to each topic prompt: the questions of the example's category.

    Parameters
    ----------
    examples : DataFrame
        A row for each prompt, with its ``category``.

    Returns
    -------
    DataFrame
        A numbered list for each prompt, as `replies` has them.
    """
    lines: dict[str, list[str]] = {category: [] for category in stimuli.categories()}
    for item in stimuli.load_questions():
        of_category = lines[item.category]
        number = len(of_category) + 1
        of_category.append(f"{number}. {item.question}")

    texts = []
    for category in examples.category:
        text = "\n".join(lines[category])
        texts.append(text)
    return replies(texts)


def dialogs(topics: Sequence[str]) -> list[pd.DataFrame]:
    """Make up four replies to the dialog prompt of each topic, the right answer first.

    Parameters
    ----------
    topics : sequence of str
        Questions of this project.

    Returns
    -------
    list of DataFrame
        Four tables with a row for each topic, as :func:`construction.items` takes them.

    Raises
    ------
    KeyError
        For a topic that is not a question of this project.
    """
    item_of = {item.question: item for item in stimuli.load_questions()}
    draws: list[list[str]] = [[] for _ in stimuli.LETTERS]
    for topic in topics:
        item = item_of[topic]
        assert item.answers is not None  # only released prompts lack them
        answers = list(item.answers)
        position = stimuli.LETTERS.index(item.correct)
        right_answer = answers.pop(position)
        right_first = [right_answer, *answers]
        for draw, answer in zip(draws, right_first, strict=True):
            dialog = f'"user": "{topic}", "assistant": "{answer}"'
            draw.append(dialog)

    return [replies(draw) for draw in draws]


def replies(texts: Iterable[str]) -> pd.DataFrame:
    """Give made-up texts the form of stored replies.

    Parameters
    ----------
    texts : iterable of str
        The texts.

    Returns
    -------
    DataFrame
        ``text`` and ``finish_reason``, a row for each text.
    """
    columns = {
        "text": list(texts),
        "finish_reason": "stop",
    }
    return pd.DataFrame(columns)
