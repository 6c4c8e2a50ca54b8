"""Files, folders and dotted modules → the workflows in them, and where each came from.

A module that fails to load does not hinder the others: its failure is kept, and raised to those who
need what was in it.
"""

from __future__ import annotations

import importlib
import os
import sysconfig
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from wfe.authoring.registry import Registry
from wfe.authoring.resources import Resource
from wfe.authoring.workflows import Workflow
from wfe.config import looks_like_path
from wfe.errors import (
    DefinitionError,
    DuplicateWorkflow,
    ModuleFailed,
    UsageError,
    WorkflowNotFound,
)
from wfe.glance import python_files
from wfe.importing import Folder, Module, append_to_path, forget_plain_names


class Part(NamedTuple):
    """What one module has defined."""

    module: ModuleType
    workflows: Sequence[Workflow[Any, Any]]
    resources: Sequence[Resource]


class Catalog:
    """The workflows that were found, and what kept others from being found."""

    def __init__(self, former: Catalog | None = None) -> None:
        """`former`: what was found before, for modules that are loaded still, or fail by now."""
        self.registry = Registry()
        #: Modules that did not load.
        self.failures: list[ModuleFailed] = []
        #: Ids that two places define differently.
        self.conflicts: dict[str, DuplicateWorkflow] = {}
        self._attributes: dict[str, Workflow[Any, Any]] = {}
        #: By file, or by dotted name.
        self._parts: dict[str, Part] = {}
        self._former: Mapping[str, Part] = {} if former is None else former._parts
        self._registered: list[Workflow[Any, Any]] = []

    def find(self, name: str) -> Workflow[Any, Any]:
        """The workflow of this id, or else the one a module keeps under this variable.

        Raises:
            DuplicateWorkflow: two places define it differently.
            ModuleFailed: it is not among those that loaded, and a module did not load.
            WorkflowNotFound: it is nowhere; the message lists near names.
        """
        if name in self.conflicts:
            raise self.conflicts[name]
        if self.failures and not self.registry.ids():
            raise self.failures[0]
        if name not in self.registry.ids() and name in self._attributes:
            return self._attributes[name]
        try:
            return self.registry.get(name)
        except WorkflowNotFound as missing:
            if self.failures:
                raise self._perhaps_failed(missing) from None
            raise

    def _perhaps_failed(self, missing: WorkflowNotFound) -> ModuleFailed:
        first, count = self.failures[0], len(self.failures)
        which = "a module" if count == 1 else f"{count} modules"
        return ModuleFailed(
            first.source,
            f"{missing.message} But {which} did not load: {first.message}",
            report=first.report,
            hint=first.hint or "See every module that does not load: wfe workflows list",
        )

    def _load(self, name: str, module: Module, registered: Registry) -> ModuleType:
        loaded = module.load()
        known = self._former.get(name)
        if known is None or known.module is not loaded:
            known = self._part(loaded, registered)
        self._parts[name] = known
        self._take_part(known)
        return loaded

    def _part(self, module: ModuleType, registered: Registry) -> Part:
        """What the module registered while it loaded; or, where another one had loaded it before, what
        it holds, and what was registered from its file."""
        self._registered += map(registered.get, registered.ids())
        held = vars(module).values()
        from_file = (one for one in self._registered if one.source[0] == module.__file__)
        return Part(
            module,
            workflows=(
                *map(registered.get, registered.ids()),
                *(found for found in held if isinstance(found, Workflow)),
                *from_file,
            ),
            resources=(
                *map(registered.resource, registered.resource_names()),
                *(found for found in held if isinstance(found, Resource)),
            ),
        )

    def _take_part(self, part: Part) -> None:
        for workflow in part.workflows:
            self._take(workflow)
        for resource in part.resources:
            self.registry.add_resource(resource)
        for variable, value in vars(part.module).items():
            if isinstance(value, Workflow):
                self._attributes[variable] = value

    def keep_former(self) -> None:
        """Of modules that fail by now, keep what they had defined before, unless another one defines
        it by now."""
        failed = [failure.source for failure in self.failures]
        for name, part in self._former.items():
            if name in self._parts or not any(_is_at(name, source) for source in failed):
                continue
            self._parts[name] = part
            known = {*self.registry.ids(), *self.conflicts, *self.registry.resource_names()}
            kept_workflows = [one for one in part.workflows if one.id not in known]
            kept_resources = [one for one in part.resources if one.name not in known]
            self._take_part(part._replace(workflows=kept_workflows, resources=kept_resources))

    def _take(self, workflow: Workflow[Any, Any]) -> None:
        try:
            self.registry.add(workflow)
        except DuplicateWorkflow as conflict:
            self.conflicts[workflow.id] = conflict


def load(sources: Sequence[str], *, root: Path, former: Catalog | None = None) -> Catalog:
    """The workflows of `sources`: files, folders (every `.py` in them, recursively, but for names
    that begin with `_` or `test_`) and dotted modules, which are looked for in `root`, too. `former`:
    what was found before, see `Catalog`."""
    catalog = Catalog(former)
    importlib.invalidate_caches()
    for source in sources:
        forget_plain_names()
        _load_source(catalog, source, root)
    return catalog


def load_target(
    target: str, sources: Sequence[str], *, root: Path
) -> tuple[Workflow[Any, Any], Catalog]:
    """The workflow that `name`, `file.py:name` or `pkg.mod:name` means; the latter two load that
    module alone, `name` looks through `sources`.

    Raises:
        ModuleFailed: the module it is in, or might be in, does not load.
        WorkflowNotFound, DuplicateWorkflow: see `Catalog.find`.
    """
    module, colon, name = target.rpartition(":")
    catalog = load([absolute(module)] if colon else sources, root=root)
    return catalog.find(name), catalog


def check_target(target: str) -> None:
    """
    Raises:
        UsageError: a target that cannot name a workflow.
    """
    module, colon, name = target.rpartition(":")
    if not colon and name.endswith(".py"):
        raise UsageError(
            f"{target!r} is a file; the workflow in it has to be named, too.",
            hint=f"Write {target}:NAME. See what it holds with: wfe workflows list --app {target}",
        )
    if not name or (colon and not module):
        raise UsageError(
            f"{target!r} names no workflow.", hint="Write NAME, FILE.py:NAME or MODULE:NAME."
        )


def absolute(source: str) -> str:
    """`source` with a path made absolute; a dotted module as it is."""
    if looks_like_path(source) or os.path.exists(source):  # noqa: PTH110 a dotted name is no path
        return os.path.abspath(os.path.expanduser(source))  # noqa: PTH100, PTH111 keeps symlinks
    return source


def shown(file: str) -> str:
    """`file` as a person in the current folder would write it."""
    relative = os.path.relpath(file)
    return file if relative.startswith("..") else relative


# --- loading ---------------------------------------------------------------------------------------


def _load_source(catalog: Catalog, source: str, root: Path) -> None:
    with Registry().scope():
        modules = _guarded(catalog, source, lambda: _modules(source, root))
    for name, module in modules or ():
        registered = Registry()
        with registered.scope():
            loaded = _guarded(catalog, name, partial(catalog._load, name, module, registered))
        if loaded is None and module.file is None:
            return  # the package around the others: they would all fail the same


T = TypeVar("T")


def _guarded(catalog: Catalog, source: str, action: Callable[[], T]) -> T | None:
    """What `action` gives; None where it failed, which the catalog then knows."""
    try:
        return action()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a module may raise anything, SystemExit included
        catalog.failures.append(_failure(source, error))
        return None


def _modules(source: str, root: Path) -> list[tuple[str, Module]]:
    """What is to be loaded for `source`, each with what to call it in a message."""
    if not Path(source).is_absolute():
        append_to_path(root)
        append_to_path(Path.cwd())
        return [(source, Module(source))]
    place = Path(os.path.realpath(source))
    if not place.exists():
        raise ModuleFailed(source, f"There is no file or folder {shown(source)}.", hint=_SOURCES)
    if place.is_dir():
        folder = Folder.of(place)
        files = [
            (str(file), Module(folder.name_of(file), str(file))) for file in python_files(place)
        ]
        return [(source, Module(folder.package)), *files]
    if place.suffix != ".py":
        raise ModuleFailed(source, f"{shown(source)} is no Python file.", hint=_SOURCES)
    return [(source, Module(Folder.of(place.parent).name_of(place), str(place)))]


#: What can be named.
_SOURCES = "Name a file.py, a folder or a dotted.module that exists."


# --- failures ------------------------------------------------------------------------------------


def _failure(source: str, error: BaseException) -> ModuleFailed:
    if isinstance(error, ModuleFailed):
        return error
    frames = [f for f in traceback.extract_tb(error.__traceback__) if _is_users(f.filename)]
    *details, last = traceback.format_exception_only(error)
    what, hint = last.strip().partition("\n")[0], ""
    file, line = (frames[-1].filename, frames[-1].lineno) if frames else (None, None)
    if isinstance(error, SyntaxError) and error.filename:
        file, line = error.filename, error.lineno
    if isinstance(error, DefinitionError):
        what, hint, details = error.message, error.hint, []
        file, line = (error.file, error.line) if error.file else (file, line)
    place = (file, line or 1) if file else None
    begin = f"{shown(place[0])}:{place[1]}" if place else f"{shown(source)} did not load"
    report = "".join([*traceback.format_list(frames), *details]).rstrip()
    return ModuleFailed(source, f"{begin}: {what}", report=report, hint=hint, place=place)


def _is_at(name: str, source: str) -> bool:
    """Is this the module, or one in the folder?"""
    return name == source or name.startswith(source + os.sep)


def _is_users(file: str) -> bool:
    ours = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 prefixes are texts
    others = (ours + os.sep, sysconfig.get_path("stdlib") + os.sep, "<")
    return not file.startswith(others) and "site-packages" not in file
