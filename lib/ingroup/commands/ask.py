"""``make ask STUDY=... MODELS=...``: ask and store, without the notebook.

STUDY is a study's name, or the number of its first notebook; what is stored is not asked again.
"""

import sys
from importlib import import_module

from ingroup.commands.parameters import command_line, parameters_of, study_of
from ingroup.inference import EngineError, StoreError, ask
from ingroup.tables import InputError


def main() -> None:
    """Ask what the first notebook of a study would ask."""
    parser = command_line(__doc__)
    parser.add_argument("notebook")
    options = parser.parse_args()
    try:
        parameters = parameters_of(options.notebook, options)
        study = import_module(f"ingroup.studies.{study_of(options.notebook)}.design")
        calls = study.calls(parameters)
        if not all(call.settled for call in calls):  # texts that come first
            ask([call for call in calls if call.settled], parameters)
            calls = study.calls(parameters)
        ask(calls, parameters)
    except (InputError, EngineError, StoreError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
