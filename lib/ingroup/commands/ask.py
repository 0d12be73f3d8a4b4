"""``make ask STUDY=... MODELS=...``: ask and store, without the notebook.

STUDY is a study's name or the number of its notebook; what is stored is not asked again.
"""

import sys
from importlib import import_module

from ingroup.commands.parameters import command_line, parameters_of, study_of
from ingroup.inference import EngineError, StoreError, ask
from ingroup.tables import InputError


def main(arguments: list[str] | None = None) -> int:
    """Ask what the notebook of a study would ask; 0 when all is stored, 2 for a mistake."""
    parser = command_line(__doc__)
    parser.add_argument("notebook")
    options = parser.parse_args(arguments)
    try:
        parameters = parameters_of(options.notebook, options)
        study = import_module(f"ingroup.studies.{study_of(options.notebook)}.design")
        calls = study.calls(parameters)
        if not all(call.settled for call in calls):  # texts that come first
            ask([call for call in calls if call.settled], parameters)
            calls = study.calls(parameters)
        answered = ask(calls, parameters)
    except (InputError, EngineError, StoreError) as error:
        print(error, file=sys.stderr)
        return 2
    prompts = sum(len(call.design) for call in answered)
    print(f"{len(answered)} calls, {prompts:,} prompts are answered and stored")
    return 0


if __name__ == "__main__":
    sys.exit(main())
