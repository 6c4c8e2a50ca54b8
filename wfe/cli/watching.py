"""A list that is kept up to date on a terminal, until Ctrl-C."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING

from wfe.cli.exit_codes import ExitCode
from wfe.cli.follow import ending_in_order
from wfe.cli.render import Screen
from wfe.cli.session import Session
from wfe.errors import StoreBusy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from wfe.store.contract import Reader

#: Seconds between two looks at the store, and at most between two pictures: ages grow, and the death of
#: a process writes nothing.
_PACE = 0.1
_LONGEST = 1.0

#: Gives the lines to show, of a store (None: there is none yet) on a screen.
Picture = Callable[["Reader | None", Screen], "Sequence[Text]"]


def watch(session: Session, picture: Picture) -> int:
    """Show what `picture` gives on the whole terminal, again whenever the store may have changed; at the
    end it stands among what was there before."""
    screen = Screen(sys.stdout, colors=session.colors(sys.stdout))
    lines: Sequence[Text] = ()
    try:
        with ending_in_order(), screen.whole() as show:
            while True:
                with session.reader() as reader:
                    while reader is not None or not session.config.db.exists():
                        with suppress(StoreBusy):  # that passes
                            lines = picture(reader, screen)
                        show(lines)
                        _wait(reader)
    except KeyboardInterrupt:
        for line in lines:
            screen.line(line)
        return ExitCode.INTERRUPTED


def _wait(reader: Reader | None) -> None:
    """Until something may have changed."""
    began = monotonic()
    while monotonic() - began < _LONGEST:
        sleep(_PACE)
        if reader is not None and reader.changed():
            return
