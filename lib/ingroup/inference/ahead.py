"""One part of a design through one engine in two steps: the first of the next goes ahead.

The prompts of a part are made while the engine computes another: a GPU does not wait for a chat
template.
"""

from collections.abc import Sequence

from ingroup.inference.engine import Engine, Reply, Sampling


def prepare(engine: Engine, design: Sequence, numbers: Sequence[int]) -> list:
    """Make the prompts of trials, in order: what the engine takes, or chats.

    An engine that loads a model takes token ids, one of recordings the numbers of these.
    """
    chats = [design[number].messages for number in numbers]
    if hasattr(engine, "match"):
        return engine.match(chats, numbers)
    if hasattr(engine, "complete"):
        return engine.prompter.batch(chats)
    return chats


def complete(engine: Engine, prompts: Sequence, sampling: Sampling) -> list[Reply]:
    """Ask for one reply to each prompt of :func:`prepare`, in order."""
    if hasattr(engine, "complete"):
        return engine.complete(prompts, sampling)
    return engine.answer(prompts, sampling)
