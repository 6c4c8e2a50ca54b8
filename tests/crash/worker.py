"""The fork server: it has everything imported, and forks a process for each life.

It runs no thread, no loop and no database of its own, so that what it forks starts as a fresh process
does, but in milliseconds. Requests come as lines of JSON on stdin, what they came to goes to stdout.

By hand, a play in which two processes die; one that dies where its log would grow beyond 20,000 bytes;
and one that begins without a database:

    python -m tests.crash.worker linear 0='after commit 3' 1='before last'
    python -m tests.crash.worker linear log=20000
    python -m tests.crash.worker linear new 0='in commit 2, 7'
"""

from __future__ import annotations

import gc
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.crash import ledger, play, power, soak, takeover
from wfe.store.database import open_for_writing

#: What carries out a request.
_JOBS: dict[type, Callable[[Any], Any]] = {
    play.Play: play.perform,
    soak.Soak: soak.perform,
    takeover.Takeovers: takeover.perform,
    power.Writes: power.perform,
}

Request = play.Play | soak.Soak | takeover.Takeovers | power.Writes


class Reply(msgspec.Struct, frozen=True):
    """What a request came to."""

    value: msgspec.Raw = msgspec.Raw(b"null")
    #: The traceback, where it failed.
    trouble: str = ""


def serve() -> None:
    """Carry out requests until stdin ends."""
    gc.freeze()  # what is never looked at again is never copied for a child
    for line in sys.stdin.buffer:
        try:
            request = msgspec.json.decode(line, type=Request)
            reply = Reply(msgspec.Raw(msgspec.json.encode(_JOBS[type(request)](request))))
        except Exception:
            reply = Reply(trouble=traceback.format_exc())
        sys.stdout.buffer.write(msgspec.json.encode(reply) + b"\n")
        sys.stdout.buffer.flush()


def by_hand(flow: str, words: Sequence[str]) -> None:
    """Print what each process came to, and the ledger."""
    is_new = "new" in words
    plan = dict(word.split("=", 1) for word in words if "=" in word)
    log = plan.pop("log", None)
    scene = play.Play(
        flow=flow,
        db=f"{tempfile.mkdtemp()}/wfe.db",
        plan={int(number): point for number, point in plan.items()},
        log=None if log is None else int(log),
        is_new=is_new,
    )
    if not is_new:
        open_for_writing(Path(scene.db)).close()
    for report in play.perform(scene):
        print(msgspec.json.encode(report).decode())
    for line in ledger.read(scene.ledger):
        print(line.pid, line.what, line.key, line.attempt)
    print(scene.db)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        serve()
    else:
        by_hand(sys.argv[1], sys.argv[2:])
