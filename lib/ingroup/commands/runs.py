"""``make runs``: the runs that are there, what each changed, its verdicts; ``make all`` ends so."""

import os
import sys

from ingroup import notebook, paths
from ingroup.commands.parameters import defaults
from ingroup.commands.report import VERSUS, verdicts
from ingroup.figures import read_table


def changed(run: str) -> dict[str, str]:
    """The parameters that differ from the notebooks' and the profile's: those of each value."""
    found: dict[str, list[str]] = {}
    for file in sorted(paths.executed("", run).parent.glob("[0-9]*.ipynb")):
        usual = defaults(file.stem) if (paths.NOTEBOOKS / file.name).exists() else {}
        for name, value in (notebook.ran(file.stem, run) or {}).items():
            if name != "RUN" and value != usual.get(name):
                shown = ";".join(map(str, value)) if isinstance(value, list) else value
                found.setdefault(f"{name}={shown}", []).append(file.stem[:2])
    return {about: " ".join(numbers) for about, numbers in found.items()}


def about(run: str) -> str:
    """A run in some lines: notebooks, parameters, verdicts by study, where its report is."""
    folder = paths.run_folder(run)
    ran = len([*(folder / "notebooks").glob("[0-9]*.ipynb")])
    differs = [f"{given} ({where})" for given, where in changed(run).items()]
    lines = [f"{run}: {ran} notebooks; {', '.join(differs) or 'all parameters as they stand'}"]
    for kind, name in VERSUS.items():
        for file in sorted(folder.glob(f"tables/*/{name}.csv")):
            counted = verdicts(read_table(file.parent, name)).value_counts()
            told = "; ".join(
                f"{number} {verdict}" for verdict, number in counted.items() if verdict
            )
            lines.append(f"  {file.parent.name}, {kind}: {told}")
    report = folder / "report" / "index.html"
    lines += [f"  report: {os.path.relpath(report)}"] if report.exists() else []
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Command line: the runs that are named, or all that are there, the default first."""
    there = sorted(file.parent.name for file in (paths.BUILD / "runs").glob("*/notebooks"))
    named = sys.argv[1:] if arguments is None else arguments
    print("\n".join(map(about, named or [paths.DEFAULT_RUN, *there])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
