"""What a calibrant learns from."""

from typing import NamedTuple

from ingroup.design import Message


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
