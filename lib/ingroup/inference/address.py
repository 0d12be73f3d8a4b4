"""The address of a server, checked before anything is written that could hold it."""

from urllib.parse import SplitResult, urlsplit

from ingroup.inference.engine import EngineError


def address(url: str) -> SplitResult:
    """The parts of a base URL; an EngineError where it is none, or holds a user or a query."""
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        sound = False
    if not sound or "@" in parts.netloc or parts.query or parts.fragment:
        # The address is not repeated: there may be a password in it.
        raise EngineError(
            "the base URL must read like http://127.0.0.1:8000/v1 and hold no user, password or "
            "query: a key belongs in OPENAI_API_KEY"
        )
    return parts
