"""Modules that change are imported anew; what nobody has touched stays what it was, and what fails too."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.project import Project
from wfe.discover import Catalog, load
from wfe.reloading import Reloaded, Reloader
from wfe.testing import run_to_end

FLOW = """
from wfe import WorkflowResponse, step, workflow

@step
def act() -> object:
    return WORD

@workflow("{name}")
def flow():
    return WorkflowResponse(act())
"""


class Kept:
    """A catalog that is kept up to date."""

    def __init__(self, project: Project, *sources: str) -> None:
        self._project = project
        paths = [str(project.root / source) for source in sources or ("workflows",)]
        self.catalog = load(paths, root=project.root)
        self._reloader = Reloader(self.catalog, paths, root=project.root)

    def write(self, name: str, content: str) -> Path:
        return self._project.write(name, content)

    def flow(self, name: str, head: str = "WORD = 1") -> Path:
        return self.write(f"workflows/{name}.py", head + FLOW.format(name=name))

    def changed(self, *files: Path) -> Reloaded:
        """Have it notice that files have changed."""
        reloaded = self._reloader.reload([str(file) for file in files])
        assert reloaded is not None
        self.catalog = reloaded.catalog
        return reloaded

    def notices_nothing(self, *files: Path) -> bool:
        return self._reloader.reload([str(file) for file in files]) is None

    def words(self) -> dict[str, Any]:
        """What each workflow's step gives."""
        registry = self.catalog.registry
        return {name: run_to_end(registry.get(name)).outputs["act"] for name in registry.ids()}


@pytest.fixture
def kept(project: Project) -> Kept:
    for name in ("a", "b"):
        project.write(f"workflows/{name}.py", "WORD = 1" + FLOW.format(name=name))
    return Kept(project)


def test_a_changed_module_is_imported_anew_and_the_others_stay_what_they_are(kept: Kept) -> None:
    b = kept.catalog.registry.get("b")
    reloaded = kept.changed(kept.flow("a", "WORD = 2"))
    assert [Path(file).name for file in reloaded.files] == ["a.py"]
    assert kept.words() == {"a": 2, "b": 1}
    assert kept.catalog.registry.get("b") is b


def test_a_change_within_a_second_that_leaves_the_size_is_noticed(kept: Kept) -> None:
    for number in range(2, 6):
        kept.changed(kept.flow("a", f"WORD = {number}"))
        assert kept.words()["a"] == number


@pytest.mark.parametrize(
    "how",
    [
        "import helpers; WORD = helpers.WORD",
        "from helpers import WORD",
        "from .helpers import WORD",
        "from . import helpers; WORD = helpers.WORD",
        "from between import WORD",
    ],
)
def test_who_imports_a_changed_module_is_imported_anew_however_it_does_so(
    project: Project, how: str
) -> None:
    helpers = project.write("workflows/_helpers.py", "WORD = 1").rename(
        project.root / "workflows/helpers.py"
    )
    project.write("workflows/between.py", "from . import helpers\nWORD = helpers.WORD")
    project.write("workflows/a.py", how + FLOW.format(name="a"))
    kept = Kept(project)
    helpers.write_text("WORD = 2")
    assert str(project.root / "workflows/a.py") in kept.changed(helpers).files
    assert kept.words() == {"a": 2}


def test_new_modules_are_found_and_those_that_are_gone_are_not(kept: Kept) -> None:
    kept.changed(kept.flow("c"))
    assert list(kept.words()) == ["a", "b", "c"]
    gone = kept.flow("a")
    gone.unlink()
    kept.changed(gone)
    assert list(kept.words()) == ["b", "c"]


def test_a_module_that_fails_keeps_what_it_had_defined_until_it_is_mended(kept: Kept) -> None:
    a = kept.flow("a", "WORD = = 2")
    (failure,) = kept.changed(a).failures
    assert failure.message == "workflows/a.py:1: SyntaxError: invalid syntax"
    assert kept.words() == {"a": 1, "b": 1}
    kept.changed(kept.flow("b", "WORD = 3"))
    assert kept.words() == {"a": 1, "b": 3}
    kept.changed(kept.flow("a", "WORD = 4"))
    assert kept.words() == {"a": 4, "b": 3}


def test_a_failure_is_told_once(kept: Kept) -> None:
    a = kept.flow("a", "WORD = = 2")
    assert len(kept.changed(a).failures) == 1
    assert kept.notices_nothing(a)
    assert len(kept.changed(kept.flow("a", "raise OSError('no')")).failures) == 1


def test_what_a_failing_module_uses_is_up_to_date_once_it_is_mended(kept: Kept) -> None:
    helpers = kept.write("workflows/helpers.py", "WORD = 1")
    kept.changed(helpers, kept.flow("a", "from .helpers import WORD"))
    helpers.write_text("WORD = 2")
    kept.changed(helpers, kept.flow("a", "from .helpers import WORD, = 3"))
    assert kept.words()["a"] == 1
    kept.changed(kept.flow("a", "from .helpers import WORD"))
    assert kept.words()["a"] == 2


def test_who_lacks_a_module_is_tried_again_when_that_appears(kept: Kept) -> None:
    a = kept.flow("a", "from .helpers import WORD")
    assert len(kept.changed(a).failures) == 1
    kept.changed(kept.write("workflows/helpers.py", "WORD = 2"))
    assert kept.words() == {"a": 2, "b": 1}


def test_a_workflow_that_moves_to_another_module_is_the_one_that_is_there(kept: Kept) -> None:
    a = kept.flow("a", "WORD = = 1")
    c = kept.write("workflows/c.py", "WORD = 5" + FLOW.format(name="a"))
    kept.changed(a, c)
    assert kept.words() == {"a": 5, "b": 1}
    assert kept.catalog.conflicts == {}


def test_two_that_define_one_name_are_told_as_ever(kept: Kept) -> None:
    c = kept.write("workflows/c.py", "WORD = 5\n" + FLOW.format(name="a").replace("act", "acts"))
    kept.changed(c)
    assert list(kept.catalog.conflicts) == ["a"]


@pytest.mark.parametrize("folder", ["workflows", "nightly.2026"])
def test_a_folder_whose_package_fails_keeps_all_that_is_in_it(
    folder: str, project: Project
) -> None:
    """The second one has no name by which Python would find it."""
    initial = project.write(f"{folder}/__init__.py", "")
    a = project.write(f"{folder}/a.py", "WORD = 1" + FLOW.format(name="a"))
    kept = Kept(project, folder)
    initial.write_text("raise OSError('no')")
    assert len(kept.changed(initial).failures) == 1
    assert kept.words() == {"a": 1}
    initial.write_text("")
    a.write_text("WORD = 2" + FLOW.format(name="a"))
    kept.changed(initial, a)
    assert kept.words() == {"a": 2}


def test_workflows_that_no_variable_holds_stay(project: Project) -> None:
    project.write(
        "workflows/many.py",
        """
        from wfe import step, workflow
        @step
        def act(): return 1
        for name in ("x", "y"):
            @workflow(name)
            def flow():
                act()
        """,
    )
    project.write("workflows/a.py", "from . import many\nWORD = 1" + FLOW.format(name="a"))
    kept = Kept(project)
    assert list(kept.words()) == ["a", "x", "y"]
    kept.changed(kept.flow("a", "WORD = 2"))
    assert kept.words() == {"a": 2, "x": 1, "y": 1}


def test_files_of_no_use_here_change_nothing(kept: Kept) -> None:
    assert kept.notices_nothing(
        kept.write("workflows/test_a.py", "import a"), kept.write("other.py", "")
    )


def test_a_single_file_is_watched_without_what_is_below_its_folder(project: Project) -> None:
    project.write("alone/a.py", "WORD = 1" + FLOW.format(name="a"))
    kept = Kept(project, "alone/a.py")
    deep, flat = kept._reloader.folders()
    assert (deep, str(project.root / "alone") in flat) == ([], True)
    kept.changed(kept.write("alone/a.py", "WORD = 2" + FLOW.format(name="a")))
    assert kept.words() == {"a": 2}


def test_what_is_installed_is_never_imported_anew(kept: Kept) -> None:
    import wfe.model

    model = sys.modules["wfe.model"]
    kept.changed(Path(wfe.model.__file__), kept.flow("a", "import wfe.model; WORD = 2"))
    assert sys.modules["wfe.model"] is model


def test_a_catalog_without_a_former_one_keeps_nothing() -> None:
    catalog = Catalog()
    catalog.keep_former()
    assert catalog.registry.ids() == []
