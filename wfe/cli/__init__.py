"""The command line. It holds no rules of its own: it parses, calls the library, renders."""

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
