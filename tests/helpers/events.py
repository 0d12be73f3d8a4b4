"""A corpus of the paper's size."""

import pandas as pd

from ingroup.studies.empathy_gap.stimuli import EMOTIONS


def paper_size_events() -> pd.DataFrame:
    """Make as many events as crowd-enVent has, ordered by emotion, with invented texts."""
    rows = []
    for emotion in EMOTIONS:
        size = 275 if emotion in ("guilt", "shame") else 550
        rows += [(emotion, str(number)) for number in range(size)]

    table = pd.DataFrame(rows, columns=["emotion", "text_id"])
    for form in ("generated_text", "first_person_text", "third_person_text"):
        table[form] = form[0] + table.emotion + table.text_id
    table["free_text"] = table.index % 10 == 0
    return table
