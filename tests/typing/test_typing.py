"""Static typing: mypy finds what is wrong with a body, and nothing wrong with a right one."""

from __future__ import annotations

import runpy
from pathlib import Path

from mypy import api

from wfe import Registry

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def test_mypy_takes_bodies_for_what_they_are() -> None:
    out, err, _ = api.run(
        [
            *("--strict", "--no-error-summary", "--hide-error-context", "--no-pretty"),
            f"--config-file={ROOT / 'pyproject.toml'}",
            f"--cache-dir={ROOT / '.mypy_cache'}",
            *(str(HERE / name) for name in ("cases.py", "example.py")),
        ]
    )
    assert err == ""
    assert [line for line in out.splitlines() if "tests/typing/" in line] == []


def test_the_example_composes() -> None:
    with Registry().scope() as registry:
        runpy.run_path(str(HERE / "example.py"), run_name="example")
        flow = registry.get("place-order").flow
    assert flow.stages == (
        ("reserve_stock", "charge_card"),
        ("wrap",),
        ("validated",),
        ("approve-order",),
    )
