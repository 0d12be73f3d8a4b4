"""Tables of group means on the two axes."""

import pandas as pd


def maps(points, names=None):
    """Make a table of group means from (competence, warmth) pairs."""
    names = names or [f"group {k}" for k in range(len(points))]
    index = pd.Index(names, name="group")
    return pd.DataFrame(points, index, ["Competence", "Warmth"], dtype=float)
