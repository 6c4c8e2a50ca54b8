"""The public names of `wfe.testing`."""

from __future__ import annotations

import wfe
import wfe.testing

NAMES = """
EPOCH Call Crash CrashedRun CrashingStore Life NotEnded Run VirtualClock VirtualEngine VirtualLoop
crash_at crash_everywhere run_to_end run_to_end_async timeline until_quiet
"""


def test_the_public_names_are_these() -> None:
    assert wfe.testing.__all__ == NAMES.split()
    assert set(wfe.testing.__all__) <= set(dir(wfe.testing))


def test_every_public_name_is_there_and_says_what_it_is() -> None:
    for name in set(wfe.testing.__all__) - {"EPOCH"}:
        found = getattr(wfe.testing, name)
        assert found.__module__.startswith("wfe.testing.")
        assert found.__doc__


def test_the_package_itself_does_not_offer_them() -> None:
    assert not set(wfe.testing.__all__) & set(wfe.__all__)
