"""Keys of the environment, which no file and no message may hold."""

import os
import re

_NAMES = re.compile(r"(_API_KEY|_TOKEN|_ACCESS_KEY)$")
SHORTEST = 8  # characters: a shorter value may be an ordinary word


def without_keys(text: str) -> str:
    """Mask the keys of the environment in a text, and half characters that no file can hold.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    str
        The text with "[key]" in place of each key.
    """
    for name, key in os.environ.items():
        if _NAMES.search(name) and len(key) >= SHORTEST:
            text = text.replace(key, "[key]")
    return text.encode(errors="replace").decode()
