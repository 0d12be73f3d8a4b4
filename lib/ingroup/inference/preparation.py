"""Two steps to ask one part of a design: to prepare its prompts, and to complete them with replies.

So the prompts of the next part can be made while the engine computes this one. A GPU does not wait
for a chat template.
"""

from collections.abc import Sequence

from ingroup.inference.engine import Engine, Reply, Sampling


def prepare(engine: Engine, design: Sequence, numbers: Sequence[int]) -> list:
    """Make the prompts of trials, in order.

    Parameters
    ----------
    engine : Engine
        The engine that is to answer.
    design : sequence of Trial
        The trials, each with its ``messages``.
    numbers : sequence of int
        The trials to prepare, by their numbers in the design.

    Returns
    -------
    list
        Token ids for an engine that loads a model, numbers of recordings for an engine of
        recordings, and chats for any other engine.

    Raises
    ------
    EngineError
        The engine's ``match`` fails, or its tokenizer breaks.
    """
    chats = [design[number].messages for number in numbers]
    if hasattr(engine, "match"):
        return engine.match(chats, numbers)
    if hasattr(engine, "prompter"):
        return engine.prompter.batch(chats)
    return chats


def complete(engine: Engine, prompts: Sequence, sampling: Sampling) -> list[Reply]:
    """Ask for one reply to each prompt, in order.

    Parameters
    ----------
    engine : Engine
        The engine that the prompts were made for.
    prompts : sequence
        The prompts that :func:`prepare` returned.
    sampling : Sampling
        How replies are drawn.

    Returns
    -------
    list of Reply
        One reply per prompt.

    Raises
    ------
    EngineError
        The engine gives up.
    """
    if hasattr(engine, "complete"):
        return engine.complete(prompts, sampling)
    return engine.answer(prompts, sampling)
