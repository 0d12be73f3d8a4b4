"""``make ask STUDY=... MODELS=...``: ask and store, without the notebook.

STUDY is a study's name or the number of its notebook; what is stored is not asked again.
"""

import sys

from ingroup.commands.parameters import calls_of, command_line, parameters_of
from ingroup.inference import EngineError, StoreError, ask
from ingroup.tables import InputError


def main(arguments: list[str] | None = None) -> int:
    """Ask what the notebook of a study would ask; 0 when all is stored, 2 for a mistake."""
    parser = command_line(__doc__)
    parser.add_argument("notebook")
    options = parser.parse_args(arguments)
    try:
        parameters = parameters_of(options.notebook, options)
        calls = calls_of(options.notebook, parameters)
        if not all(call.settled for call in calls):  # texts that come first
            ask([call for call in calls if call.settled], parameters)
            calls = calls_of(options.notebook, parameters)
        answered = ask(calls, parameters)
    except (InputError, EngineError, StoreError) as error:
        print(error, file=sys.stderr)
        return 2
    sizes = [len(call.design) for call in answered]
    print(f"{len(sizes)} calls, {sum(sizes):,} prompts are answered and stored")
    return 0


if __name__ == "__main__":
    sys.exit(main())
