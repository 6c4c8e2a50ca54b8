"""The command line. It holds no rules of its own: it parses, calls the library, renders.

Where to look: `commands` has what is typed, `app` the whole of it, `command` what all commands have in common.

* What is read: `parameters`, `keys`, `inputs`; `consent` asks; `completion` and `shells` help who types.
* What surrounds a command: `session`, `streams`, `capture`, `exit_codes`, `failures`, `extras`, `telemetry`.
* What drives an execution: `foreground`, watched by `live` or `recorder`; `conclusion` says what came of it, and
  `afterwards` does what is left. `serving` has what goes on until it is stopped. What others drive is read by
  `follow`, and lists by `watching`.
* What is said: `output` for programs, `render` for people (with `looks`, `text` and `meter`), `telling` beside both.
* Of what: `documents`, `tree` (with `family`), `timeline`, `report`, `fields`, `differences`, `checks`, `diagrams`;
  why it is so: `causes`, `endings`, and the `ways` out.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; without `arguments` those of the process, which may
    then end here."""
    is_collecting = gc.isenabled()
    gc.disable()  # modules being imported are no garbage, but looking for some takes a tenth of it
    try:
        from wfe.cli import app

        code = app.main(arguments)
    except KeyboardInterrupt:  # while the modules were imported: nothing has begun
        code = 128 + signal.SIGINT
    finally:
        if is_collecting:
            gc.enable()
    if arguments is None and "wfe.discover" not in sys.modules:
        _leave(code)
    return code


def _leave(code: int) -> None:
    """End the process without taking apart what it has imported, which is a fifth of what a short
    command takes. One that has loaded user code ends as Python does: it may have more to do."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)
