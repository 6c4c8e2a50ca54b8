"""The runtime is tested in the world of the tests of decisions: both stores, virtual time."""

from __future__ import annotations

from tests.decisions.conftest import pytest_pyfunc_call, recording, world

__all__ = ["pytest_pyfunc_call", "recording", "world"]
