"""Answers of the empathy-gap study: responses to arrays (perceiver, experiencer, event)."""

from ingroup.inference import Call, parts, stored
from ingroup.parsing import Rule
from ingroup.studies.empathy_gap import ratings, stimuli
from ingroup.studies.empathy_gap.ratings import Ratings


def load(call: Call, rule: Rule = "sound") -> dict[str, Ratings]:
    """The ratings of one call, by category, read a few shards at a time.

    Parameters
    ----------
    call : Call
        One of :func:`ingroup.studies.empathy_gap.design.calls` that was asked.
    rule : str
        How a reply is read, see :func:`ingroup.parsing.parse_rating`.

    Returns
    -------
    dict of str to Ratings
        In the order of the design. Greedy ratings also where ``RATING`` is "expected".

    Raises
    ------
    StoreError
        Where there are no answers to these prompts.
    """
    store, scale = stored(call), stimuli.setting(call.labels["setting"])
    found = {}
    for category in [block.labels["category"] for block in call.design.blocks]:
        block, numbers = call.design.block_of(category=category)
        read = parts(store, numbers.start, numbers.stop, columns=["text"])
        found[category] = ratings.from_parts(read, block.shape, scale.low, scale.high, rule)
    return found
