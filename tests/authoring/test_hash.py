"""The hash of a definition: what counts as another workflow, and what does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wfe.authoring.workflows import Workflow
from wfe.discover import load_target

MODULE = """
from wfe import hook, parallel, sleep, step, transform, when, workflow


@step(max_retries=2)
def reserve(order: dict) -> str:
    return "stock"


@reserve.compensate
def release(stock: str) -> None: ...


@step
def pack(stock: str) -> str:
    return stock


@step
def label(order: dict) -> str:
    return "label"


@workflow("invoice")
def invoice(order: dict):
    reserve.config(name="bill")(order)


@workflow("order", timeout=60)
def order(order: dict):
    stock = reserve(order)
    with when(order.gift, name="gift"):
        boxes = parallel(pack(stock), label(order))
    with when(stock, lambda stock: stock == "stock"):
        sleep(5, name="cool")
    value = when(order.big, lambda big: big > 3, name="big").then(lambda: {"of": stock})
    checked = hook("checked", {"boxes": boxes, "value": value})
    checked.result(str)
    invoice.as_step(transform(order, fn=lambda order: order))
"""

#: Edits after which it is the same definition.
UNCHANGED = {
    "a comment": (
        "    stock = reserve(order)",
        "    # first of all\n    stock = reserve(order)  # so",
    ),
    "formatting": ("reserve(order)\n    with", "reserve(\n        order,\n    )\n\n    with"),
    "a docstring": ("def order(order: dict):", 'def order(order: dict):\n    """Orders."""'),
    "the name of a variable": ("boxes", "parcels"),
    "the body of a step": ('return "label"', 'return "a label"'),
    "a lambda": ("lambda big: big > 3", "lambda size: size >= 4"),
    "the condition of a when": ("when(order.gift,", "when(order.present,"),
    "a transform": ("lambda order: order)", "lambda order: dict(order))"),
    "what a step is given": ("label(order))", "label({'only': order.id}))"),
    "an option of a step": ("max_retries=2", "max_retries=7, async_=True, no_wait=True, pure=True"),
    "an option of the workflow": ("timeout=60", "timeout=90, retention_time=5, description='x'"),
    "an undo": ("@reserve.compensate\n", ""),
    "the seconds of a sleep": ("sleep(5,", "sleep(500,"),
    "the type of a hook's result": ("result(str)", "result(int)"),
    "a step of a child": ('name="bill"', 'name="charge"'),
    "the function of a step": (
        '@step\ndef label(order: dict) -> str:\n    return "label"',
        "label = step('label')(lambda order: 'label')",
    ),
}

#: Edits after which it is another one.
CHANGED = {
    "a step more": (
        "    checked = hook",
        "    pack.config(name='again')(stock)\n    checked = hook",
    ),
    "a step less": ('        sleep(5, name="cool")', '        label.config(name="cool")(order)'),
    "the name of a step": ("stock = reserve(", 'stock = reserve.config(name="take")('),
    "the order of steps": ("parallel(pack(stock), label(order))", "label(order), pack(stock)"),
    "the order in a stage": ("pack(stock), label(order))", "label(order), pack(stock))"),
    "the name of a condition": ('name="gift"', 'name="present"'),
    "a condition around a step": (
        "    stock = reserve(",
        "    with when(order.ok):\n        stock = reserve(",
    ),
    "no condition around a step": ('    with when(order.gift, name="gift"):\n    ', ""),
    "the name of a hook": ('hook("checked"', 'hook("seen"'),
    "a result that a hook has": ("    checked.result(str)\n", ""),
    "the name of a child": ('workflow("invoice")', 'workflow("billing")'),
}


def composed(folder: Path, edit: tuple[str, str] = ("", "")) -> Workflow[object, object]:
    """The workflow, loaded from a file of its own."""
    old, new = edit
    assert MODULE.count(old) or not old
    file = folder / f"flows_{len(list(folder.iterdir()))}.py"
    file.write_text(MODULE.replace(old, new) if old else MODULE)
    return load_target(f"{file}:order", [], root=folder)[0]


@pytest.mark.parametrize("edit", UNCHANGED)
def test_does_not_count(edit: str, tmp_path: Path) -> None:
    before, after = composed(tmp_path), composed(tmp_path, UNCHANGED[edit])
    assert after.flow.hash == before.flow.hash


@pytest.mark.parametrize("edit", CHANGED)
def test_counts(edit: str, tmp_path: Path) -> None:
    before, after = composed(tmp_path), composed(tmp_path, CHANGED[edit])
    assert after.flow.hash != before.flow.hash


def test_the_id_counts(tmp_path: Path) -> None:
    text = MODULE.replace('workflow("order"', 'workflow("sale"')
    (tmp_path / "sales.py").write_text(text)
    sale = load_target(f"{tmp_path}/sales.py:sale", [], root=tmp_path)[0]
    assert sale.flow.hash != composed(tmp_path).flow.hash


def test_it_is_the_same_in_every_process_whatever_the_seed_and_the_folder(tmp_path: Path) -> None:
    here = composed(tmp_path).flow
    found = set()
    for number, seed in enumerate(("0", "1", "4294967295", "random")):
        folder = tmp_path / f"folder{number}"
        folder.mkdir()
        (folder / "flows.py").write_text(MODULE)
        done = subprocess.run(
            [
                sys.executable,
                *(["-O"] if number else []),
                "-c",
                "import flows; print(flows.order.flow.hash)",
            ],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])},
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(done.stdout.strip())
    assert found == {here.hash}


def test_it_is_the_same_in_every_release(tmp_path: Path) -> None:
    """It is kept with every execution: another way to compute it makes all of them look changed."""
    assert composed(tmp_path).flow.hash == "56e13594c52d1a7a249adca2b1ccb610"
