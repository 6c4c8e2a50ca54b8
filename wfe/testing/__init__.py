"""What a test of workflows needs: time that jumps, runs to their end, crashes at any point.

    from wfe.testing import run_to_end

    def test_places_the_order() -> None:
        run = run_to_end(place_order, {"id": 1}, answers={"approve": {"by": "kim"}})
        assert run.state == "done"
        assert run.timeline == ["reserve", "charge", "approve?", "approve"]

Everything public is a name of this package and is loaded when it is first asked for. The fixtures of
`wfe.testing.plugin` are there wherever pytest finds wfe installed.
"""

from __future__ import annotations

# Type checkers take it for true; the plugin is imported at every start of pytest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from wfe.testing.crashes import CrashedRun, crash_at, crash_everywhere
    from wfe.testing.engine import VirtualEngine
    from wfe.testing.lives import Call, Crash, CrashingStore, Life
    from wfe.testing.outcomes import Run, timeline
    from wfe.testing.running import NotEnded, run_to_end, run_to_end_async, until_quiet
    from wfe.testing.virtual import EPOCH, VirtualClock, VirtualLoop

#: Public name → the module that has it.
_HOMES = {
    "Call": "lives",
    "Crash": "lives",
    "CrashedRun": "crashes",
    "CrashingStore": "lives",
    "EPOCH": "virtual",
    "Life": "lives",
    "NotEnded": "running",
    "Run": "outcomes",
    "VirtualClock": "virtual",
    "VirtualEngine": "engine",
    "VirtualLoop": "virtual",
    "crash_at": "crashes",
    "crash_everywhere": "crashes",
    "run_to_end": "running",
    "run_to_end_async": "running",
    "timeline": "outcomes",
    "until_quiet": "running",
}

__all__ = [
    "EPOCH",
    "Call",
    "Crash",
    "CrashedRun",
    "CrashingStore",
    "Life",
    "NotEnded",
    "Run",
    "VirtualClock",
    "VirtualEngine",
    "VirtualLoop",
    "crash_at",
    "crash_everywhere",
    "run_to_end",
    "run_to_end_async",
    "timeline",
    "until_quiet",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
