"""Workflows are found in files, folders and modules; what does not load hinders nothing else."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import queue
import sys
from pathlib import Path

import pytest

from tests.project import Project
from wfe.discover import Catalog, load, load_target
from wfe.errors import DuplicateWorkflow, ModuleFailed, WorkflowNotFound

ONE = """
from wfe import WorkflowResponse, step, workflow

@step
def act() -> int:
    return 1

@workflow("{name}")
def {variable}():
    return WorkflowResponse(act())
"""


def one(name: str) -> str:
    return ONE.format(name=name, variable=name.replace("-", "_").replace(".", "_"))


def found(project: Project, *sources: str) -> Catalog:
    paths = [str(project.root / source) if "/" in source else source for source in sources]
    return load(paths or [str(project.root / "workflows")], root=project.root)


def test_every_file_of_a_folder_is_loaded_but_for_private_ones_and_tests(project: Project) -> None:
    for name in ("a", "sub/b", "sub/deep/c", "_private", "test_d", "sub/_e/f", "my-g", "h.2026"):
        project.write(f"workflows/{name}.py", one(Path(name).name.replace("_", "x")))
    catalog = found(project)
    assert catalog.failures == []
    assert catalog.registry.ids() == ["a", "b", "c", "h.2026", "my-g"]


def test_siblings_and_relative_imports_work_whatever_the_current_folder(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    project.write("workflows/helpers.py", "from . import other\nNAME = 'sibling'")
    project.write("workflows/other.py", "")
    project.write("workflows/sub/deep.py", "from .. import helpers\nfrom ..other import __name__")
    project.write(
        "workflows/a.py",
        "import helpers\nfrom . import helpers as same\nfrom .sub import deep\nimport sub.deep\n"
        "assert helpers is same is deep.helpers and sub.deep is deep\n" + one("a"),
    )
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    catalog = found(project)
    assert [failure.message for failure in catalog.failures] == []
    assert catalog.registry.ids() == ["a"]


def test_a_package_with_relative_imports_is_loaded_under_its_full_name(project: Project) -> None:
    project.write("shop/__init__.py", "")
    project.write("shop/flows/__init__.py", "from . import base")
    project.write("shop/flows/base.py", "from .. import __name__ as parent")
    project.write("shop/flows/order.py", "from .base import parent\n" + one("order"))
    catalog = found(project, "/shop/flows/order.py"[1:])
    assert catalog.failures == []
    assert sys.modules["shop.flows.order"].order is catalog.find("order")


def test_a_file_named_like_a_standard_module_does_not_shadow_it(project: Project) -> None:
    project.write("workflows/queue.py", one("mine"))
    project.write("workflows/a.py", "import queue\nqueue.SimpleQueue\n" + one("a"))
    catalog = found(project)
    assert catalog.failures == []
    assert catalog.registry.ids() == ["a", "mine"]
    assert importlib.import_module("queue") is queue


def test_a_file_reached_by_path_and_by_name_is_one_module(project: Project) -> None:
    file = project.write(
        "workflows/once.py", "import builtins\nbuiltins.loads.append(1)\n" + one("a")
    )
    loads: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.loads", loads, raising=False)
        catalog = found(project, "workflows/", "workflows/once.py", "workflows.once", "once")
        assert catalog.failures == []
        assert sys.modules["workflows.once"].__file__ == str(file)
    assert loads == [1]


def test_two_folders_have_each_their_own_siblings(project: Project) -> None:
    for folder in ("first", "second"):
        project.write(f"{folder}/helpers.py", f"NAME = {folder!r}")
        project.write(f"{folder}/workflows/helpers.py", f"NAME = '{folder}-flow'")
        project.write(
            f"{folder}/workflows/flow.py",
            "import helpers\nfrom .helpers import NAME\nassert helpers.NAME == NAME\n"
            + one(f"{folder}-flow").replace("return 1", "return helpers.NAME"),
        )
    catalog = found(project, "first/workflows", "second/workflows")
    assert catalog.failures == []
    for name in ("first-flow", "second-flow"):
        assert catalog.find(name).run_sync() == name


def test_a_step_may_use_worker_processes(project: Project) -> None:
    project.write("workflows/work.py", "def double(n):\n    return 2 * n\n" + one("work"))
    assert found(project).failures == []
    double = sys.modules["workflows.work"].double
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(double, [3]) == [6]


def test_a_module_that_fails_is_told_with_the_users_own_frames_and_the_others_load(
    project: Project,
) -> None:
    project.write("workflows/good.py", one("good"))
    project.write("workflows/missing.py", "import helpers_of_mine\n")
    project.write("workflows/helpers_of_mine.py", "\nimport nowhere\n")
    project.write("workflows/syntax.py", "def f(:\n")
    project.write("workflows/leaves.py", "import sys\nsys.exit(3)\n")
    catalog = found(project)
    assert catalog.registry.ids() == ["good"]
    assert [failure.message for failure in catalog.failures] == [
        "workflows/helpers_of_mine.py:2: ModuleNotFoundError: No module named 'nowhere'",
        "workflows/leaves.py:2: SystemExit: 3",
        "workflows/helpers_of_mine.py:2: ModuleNotFoundError: No module named 'nowhere'",
        "workflows/syntax.py:1: SyntaxError: invalid syntax",
    ]
    frames = catalog.failures[2].report
    assert frames.count("File ") == 2
    assert "importlib" not in frames
    assert "wfe/" not in frames.replace(str(project.root), "")


def test_a_workflow_composed_wrongly_is_told_with_place_and_what_to_write(project: Project) -> None:
    project.write(
        "workflows/bad.py", one("bad").replace("    return W", "    if act(): pass\n    return W")
    )
    (failure,) = found(project).failures
    assert failure.message.startswith("workflows/bad.py:10: ")
    assert "when(" in failure.hint


def test_a_package_that_fails_is_told_once(project: Project) -> None:
    project.write("workflows/__init__.py", "1 / 0")
    project.write("workflows/a.py", one("a"))
    project.write("workflows/b.py", one("b"))
    (failure,) = found(project).failures
    assert failure.message == "workflows/__init__.py:1: ZeroDivisionError: division by zero"


def test_an_unknown_name_lists_near_ones(project: Project) -> None:
    project.write("workflows/a.py", one("order"))
    with pytest.raises(WorkflowNotFound, match="Did you mean order") as missing:
        found(project).find("ordre")
    assert missing.value.exit_code == 3


def test_an_unknown_name_that_a_failed_module_may_hold_tells_of_that_module(
    project: Project,
) -> None:
    project.write("workflows/order.py", "import nowhere")
    project.write("workflows/other.py", one("other"))
    with pytest.raises(ModuleFailed, match=r"There is no workflow 'order'.*workflows/order\.py:1"):
        found(project).find("order")


def test_two_modules_that_define_one_name_differently_are_refused_with_both_places(
    project: Project,
) -> None:
    project.write("workflows/a.py", one("same"))
    project.write("workflows/b.py", one("other") + one("same").replace("act", "deed"))
    catalog = found(project)
    assert catalog.find("other").id == "other"
    with pytest.raises(DuplicateWorkflow) as refused:
        catalog.find("same")
    assert "workflows/a.py:8" in str(refused.value)
    assert "workflows/b.py:18" in str(refused.value)
    assert refused.value.exit_code == 2


def test_one_workflow_imported_by_two_modules_is_fine(project: Project) -> None:
    project.write("workflows/base.py", one("base"))
    project.write("workflows/a.py", "from .base import base\n" + one("a"))
    project.write("workflows/b.py", "from base import base as again\n" + one("b"))
    catalog = found(project)
    assert (catalog.failures, catalog.conflicts) == ([], {})
    assert catalog.registry.ids() == ["a", "b", "base"]


@pytest.mark.parametrize(
    "target",
    ["order", "workflows/shop.py:order", "./workflows/shop.py:order", "workflows.shop:order"],
)
def test_a_target_is_a_name_or_a_name_in_a_file_or_module(project: Project, target: str) -> None:
    project.write("workflows/shop.py", one("order"))
    sources = [str(project.root / "workflows")]
    workflow, _ = load_target(target, sources, root=project.root)
    assert workflow.id == "order"


def test_a_target_may_name_the_variable_of_a_workflow(project: Project) -> None:
    project.write("workflows/shop.py", one("place-order"))
    workflow, _ = load_target("workflows/shop.py:place_order", [], root=project.root)
    assert workflow.id == "place-order"


def test_a_target_with_a_module_loads_that_module_alone(project: Project) -> None:
    project.write("workflows/shop.py", one("order"))
    project.write("workflows/broken.py", "1 / 0")
    _, catalog = load_target("workflows/shop.py:order", ["workflows"], root=project.root)
    assert catalog.failures == []


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("no/such.py", "There is no file or folder no/such.py"),
        ("notes/list.txt", "notes/list.txt is no Python file"),
        ("no.such.module", "no.such.module did not load: ModuleNotFoundError"),
    ],
)
def test_a_source_that_is_none_is_told(project: Project, source: str, problem: str) -> None:
    project.write("notes/list.txt", "")
    (failure,) = found(project, source).failures
    assert failure.message.startswith(problem)


def test_installed_packages_win_over_files_of_their_name(project: Project) -> None:
    project.write("workflows/typer.py", one("mine"))
    project.write("workflows/a.py", "import typer\ntyper.Typer\n" + one("a"))
    assert found(project).registry.ids() == ["a", "mine"]
    assert os.sep + "site-packages" + os.sep in str(importlib.import_module("typer").__file__)
