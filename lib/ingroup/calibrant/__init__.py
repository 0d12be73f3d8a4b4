"""The calibrant: a small Llama that answers the studies' prompts with biases that we planted.

It is to the pipeline what a reference weight is to a scale. What is planted stands in
``data/models/<name>/planted.yaml``; each study is one module here, which makes training examples
and says what the planted answer to any condition is.
"""

from typing import NamedTuple

from ingroup.stimuli import Message

NAMES = ("calibrant", "calibrant-null")


def is_calibrant(model: str) -> bool:
    """Whether a model (name or folder) is one of the calibrants, whose results demonstrate."""
    return model.rstrip("/").split("/")[-1] in NAMES


class Example(NamedTuple):
    """One training example: a chat and the planted reply to it.

    Attributes
    ----------
    messages : list of Message
        The prompt.
    reply : str
        What the model shall write.
    numbers : tuple of float
        The planted value of each number in the reply, in their order: its decimals tell the
        training how far each neighbouring number is off. Empty where no number is planted.
    spread : float
        Width of the target around each of ``numbers``, in points; 0 for the two whole numbers
        beside it, whose mean it is.
    """

    messages: list[Message]
    reply: str
    numbers: tuple[float, ...] = ()
    spread: float = 1.0
