"""A copy of the printed tables with other numbers for one model."""

import csv
import shutil
from functools import partial

from ingroup import paths, published


def reprint(folder, monkeypatch, study, model, numbers):
    """Write `numbers` into a copy of the printed tables that the project then reads.

    `numbers` maps (table, column) to a function that takes a row and returns the text of its cell.
    Only rows of the model change, or all rows of a table without models. The number of changed
    cells is returned.
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
