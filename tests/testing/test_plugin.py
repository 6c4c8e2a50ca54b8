"""The plugin for pytest: its fixtures, in a pytest of its own that knows nothing but the plugin."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]

SHOP = """
from wfe import StepContext, resource, step, workflow

@step
def charge(ctx: StepContext, total: int) -> str:
    return ctx.resolve("payments").charge(total)

@charge.compensate
def refund(ctx: StepContext, receipt: str) -> None:
    ctx.resolve("payments").refund(receipt)

@step(async_=True)
async def approve() -> None: ...

@workflow("place-order")
def place_order(total: int):
    receipt = charge(total)
    approve()
    return receipt
"""


@pytest.fixture
def shop(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with the workflows above, in which pytest has this plugin and no other."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makepyfile(shop=SHOP)
    return pytester


def run(shop: pytest.Pytester, **tests: str) -> pytest.RunResult:
    shop.makepyfile(**tests)
    return shop.runpytest_subprocess("-p", "wfe.testing.plugin", "-W", "error")


IN_MEMORY = """
import pytest
from shop import place_order

class Payments:
    def __init__(self):
        self.log = []
    def charge(self, total):
        self.log.append(total)
        return f"receipt for {total}"
    def refund(self, receipt):
        self.log.append(receipt)

@pytest.fixture
def payments():
    return Payments()

@pytest.fixture
def wfe_resources(payments):
    return {"payments": payments}

def test_an_order_waits_for_its_approval(engine, payments):
    run = engine.run(place_order, 5)
    assert run.timeline == ["charge", "approve?"]
    assert engine.answer("approve").result == "receipt for 5"
    assert payments.log == [5]

def test_a_refusal_undoes_the_charge(engine, payments):
    engine.run("place-order", 5)
    engine.fail("approve", "no", permanent=True)
    engine.advance(60)
    assert payments.log == [5, "receipt for 5"]

def test_each_test_has_an_engine_of_its_own(engine):
    assert engine.timeline == []
    assert engine.call(engine.inner.list_executions()) == []
"""

ON_DISK = """
import pytest
from wfe import step, workflow
from wfe.store.sqlite import SQLiteStore

@pytest.fixture
def wfe_store(tmp_path):
    return SQLiteStore(tmp_path / "wfe.db")

@step
def one(): return 1

@workflow
def count():
    return one()

def test_it_is_kept_where_the_test_says(engine, tmp_path):
    assert engine.run(count).result == 1
    assert (tmp_path / "wfe.db").exists()
"""

DEFINED_IN_A_TEST = """
import pytest
from wfe import step, workflow

@pytest.mark.parametrize("result", [1, 2])
def test_two_workflows_of_one_name(wfe_registry, engine, result):
    @step
    def one(): return result
    @step
    def two(): return result
    @workflow("same-name")
    def same_name():
        return one() if result == 1 else two()
    assert wfe_registry.ids() == ["same-name"]
    assert engine.run("same-name").result == result
"""


def test_the_fixtures_give_each_test_an_engine_a_store_and_a_registry(
    shop: pytest.Pytester,
) -> None:
    run(
        shop, test_memory=IN_MEMORY, test_disk=ON_DISK, test_registry=DEFINED_IN_A_TEST
    ).assert_outcomes(passed=6)


def test_a_failed_test_shows_what_happened(shop: pytest.Pytester) -> None:
    test = """
from shop import place_order

def test_result(engine):
    assert engine.run(place_order, 5).result == "receipt for 5"

def test_duration(engine):
    assert engine.run(place_order, 5).seconds == 1
"""
    result = run(shop, test_shop=test)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "*StepFailed: Step 'charge' *There is no resource 'payments'*",
            "*where 0.0 = <run of 'place-order': failed: charge! ~charge!; charge: There is no*",
        ]
    )


def test_the_plugin_loads_nothing_before_a_fixture_is_asked_for(shop: pytest.Pytester) -> None:
    script = (
        "import sys, pytest; before = set(sys.modules); import wfe.testing.plugin; "
        "print(*sorted(name for name in set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["wfe", "wfe.testing", "wfe.testing.plugin"]


def test_pytest_finds_it_where_wfe_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    name = "wfe.testing.plugin"
    assert project["entry-points"]["pytest11"] == {name: name}
