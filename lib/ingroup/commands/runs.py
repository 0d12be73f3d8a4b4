"""``make runs``: the runs that are there, what each changed, its verdicts; ``make all`` ends so."""

import os
import sys

from ingroup import notebook, paths
from ingroup.commands.parameters import defaults
from ingroup.commands.report import VERSUS, verdicts
from ingroup.figures import read_table


def about(run: str) -> str:
    """A run in some lines: what differs from the defaults, verdicts by study, the report."""
    folder, changed, ran = paths.run_folder(run), {}, []
    for file in sorted((folder / "notebooks").glob("[0-9]*.ipynb")):
        usual, given = defaults(file.stem), notebook.ran(file.stem, run) or {}
        ran.append(file.stem[:2])
        for name, value in given.items():
            if name != "RUN" and value != usual[name]:
                shown = ";".join(map(str, value)) if isinstance(value, list) else value
                changed.setdefault(f"{name}={shown}", []).append(ran[-1])
    differs = [f"{given} ({' '.join(numbers)})" for given, numbers in changed.items()]
    lines = [f"{run}: {' '.join(ran)}; {', '.join(differs) or 'nothing differs from the defaults'}"]
    for kind, name in VERSUS.items():
        for file in sorted(folder.glob(f"tables/*/{name}.csv")):
            counted = verdicts(read_table(file.parent, name)).value_counts().items()
            told = "; ".join(f"{number} {verdict}" for verdict, number in counted if verdict)
            lines.append(f"  {file.parent.name}, {kind}: {told}")
    report = folder / "report" / "index.html"
    return "\n".join(
        [*lines, *([f"  report: {os.path.relpath(report)}"] if report.exists() else [])]
    )


def main(arguments: list[str] | None = None) -> int:
    """Command line: the runs that are named, or all that are there, the default first."""
    there = sorted(file.parent.name for file in (paths.BUILD / "runs").glob("*/notebooks"))
    named = sys.argv[1:] if arguments is None else arguments
    print("\n".join(map(about, named or [paths.DEFAULT_RUN, *there])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
