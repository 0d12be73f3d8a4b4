"""A copy of the printed tables in which one model's numbers are others, as if they were printed."""

import csv
import shutil
from functools import partial

from ingroup import paths, published


def reprint(folder, monkeypatch, study, model, numbers):
    """Write `numbers`, {(table, column): function of a row}, and let the project read the copy.

    Only rows of the model (all, where a table names none) are changed; a function gives the text
    to be printed. Returns how many cells were.
    """
    shutil.copytree(paths.PUBLISHED, folder, dirs_exist_ok=True)
    cells = 0
    for (table, column), text in numbers.items():
        (file,) = folder.glob(f"{study}/table{table:02d}_*.csv")
        with file.open(encoding="utf8", newline="") as lines:
            rows = list(csv.DictReader(lines))

        for row in rows:
            if row.get("model", model) == model:
                row[column] = text(row)
                cells += 1

        with file.open("w", encoding="utf8", newline="") as lines:
            writer = csv.DictWriter(lines, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)

    monkeypatch.setattr(published, "load", partial(published.load, folder=folder))
    return cells
