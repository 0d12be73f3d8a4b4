"""How the work of a parser grows with its text."""

from time import process_time


def growth(read, part: str) -> float:
    """Return how much more CPU time four times the text takes: 4 if linear, 16 if quadratic."""
    seconds = []
    for text in (part * 2_500, part * 10_000):
        repeated = []
        for _ in range(3):
            start = process_time()
            read(text)
            repeated.append(process_time() - start)
        seconds.append(min(repeated))
    return seconds[1] / seconds[0]
