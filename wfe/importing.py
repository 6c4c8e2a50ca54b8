"""Importing files that lie outside of what is installed: one file, one module.

A file has one module name, whatever leads to it: a path, a dotted name, a relative import, the
plain name of a sibling. The name is the one that Python itself would give it: counted from the
topmost package around the file, or from its folder where that is no package. To make those names
importable (in worker processes, too) the folders are *appended* to `sys.path`, so that a `queue.py`
among them never shadows the standard one. Where the natural name belongs to something else, the
folder gets a package name of its own.
"""

from __future__ import annotations

import importlib
import linecache
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import (
    cache_from_source,
    find_spec,
    module_from_spec,
    spec_from_file_location,
)
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

#: Packages that have no name by which Python would find them are called so, and by a number.
_OWN_NAME = "wfe_app_"
_numbers = count(1)

#: What the files of Python's own library begin with.
_LIBRARY = os.path.join(os.path.dirname(os.__file__), "")  # noqa: PTH118, PTH120 prefixes are texts


class Module(NamedTuple):
    """A module to be imported: its name, and the file that it must come from, where that is known."""

    name: str
    file: str | None = None

    def load(self) -> ModuleType:
        """The module; the one that is loaded already where its file is. Raises what it raises."""
        loaded = _already_loaded(self.file) if self.file else None
        if loaded is not None:
            return loaded
        if self.file is None or _origin(self.name) == self.file:
            return importlib.import_module(self.name)
        return _load_spec(spec_from_file_location(self.name, self.file))


class Folder(NamedTuple):
    """A folder that modules are loaded from, and the package name that stands for it."""

    path: str
    package: str

    @classmethod
    def of(cls, path: Path) -> Folder:
        """The folder, known to Python from now on."""
        for known in _one_name().folders:
            if path.is_relative_to(known.path):
                append_to_path(path)
                return cls(str(path), known.name_of(path))
        top = path
        while (top / "__init__.py").exists():
            top = top.parent
        top = top.parent if top == path else top
        folder = cls(str(path), ".".join(path.relative_to(top).parts))
        if path == top or not folder._is_natural(top):
            folder = folder._under_own_name()
        append_to_path(path)
        _one_name().folders.append(folder)
        return folder

    def _is_natural(self, top: Path) -> bool:
        """Whether Python finds this very folder, and all that is in it, under the package's name."""
        if top.parent == top or "." in Path(self.path).name:
            return False
        append_to_path(top)
        spec = find_spec(self.package)
        places = [] if spec is None else list(spec.submodule_search_locations or ())
        others = [place for place in places if os.path.realpath(place) != self.path]
        if spec is None or len(others) == len(places):
            return False
        own = _names_in(self.path)  # a namespace package may lie in several folders
        return all(own.isdisjoint(_names_in(place)) for place in others)

    def _under_own_name(self) -> Folder:
        folder = Folder(self.path, f"{_OWN_NAME}{next(_numbers)}")
        spec = folder.spec()
        if spec.loader is None:
            sys.modules[folder.package] = module_from_spec(spec)
        else:
            _load_spec(spec)
        return folder

    def spec(self) -> ModuleSpec:
        """What Python needs to import the package, where it would not find it by itself."""
        initial = Path(self.path, "__init__.py")
        found = spec_from_file_location(
            self.package, initial, submodule_search_locations=[self.path]
        )
        if found is None or not initial.exists():
            found = ModuleSpec(self.package, None, is_package=True)
            found.submodule_search_locations = [self.path]
        return found

    def name_of(self, file: Path) -> str:
        """The module name of a file or package folder in here."""
        parts = [part.removesuffix(".py") for part in file.relative_to(self.path).parts]
        safe = [
            part.replace(".", "_") for part in parts
        ]  # `nightly.2026.py` has no name of its own
        return ".".join([self.package, *safe]).removesuffix(".__init__")


def _names_in(folder: str) -> set[str]:
    return {name for name in os.listdir(folder) if not name.startswith("__")}  # noqa: PTH208 names only


def _already_loaded(file: str) -> ModuleType | None:
    modules = tuple(sys.modules.values())
    return next((m for m in modules if getattr(m, "__file__", None) == file), None)


def _origin(name: str) -> str | None:
    """The file that Python would take for a module of this name."""
    try:
        spec = find_spec(name)
    except ModuleNotFoundError:
        return None
    return spec.origin if spec is not None else None


def _load_spec(spec: ModuleSpec | None) -> ModuleType:
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[spec.name]
        raise
    return module


class _OneName(MetaPathFinder):
    """Leads every name of a file in one of `folders` to the module of its one name."""

    def __init__(self) -> None:
        #: In the order in which they came; the first that holds a file names it.
        self.folders: list[Folder] = []
        #: What was appended to `sys.path`.
        self.appended: list[str] = []
        #: Other names under which modules stand in `sys.modules`.
        self.aliases: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.startswith(_OWN_NAME) and "." not in fullname:
            # Forgotten because its `__init__.py` has changed, and asked for again by what is in it.
            return next((f.spec() for f in self.folders if f.package == fullname), None)
        if fullname.partition(".")[0] in sys.stdlib_module_names:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is None:
            return None
        first = next(iter(spec.submodule_search_locations or ()), spec.origin)
        if first is None:
            return None
        place = Path(os.path.realpath(first))
        for folder in self.folders:
            if place.is_relative_to(folder.path):
                name = folder.name_of(place)
                if name == fullname:
                    return None
                self.aliases.add(fullname)
                return ModuleSpec(fullname, _Alias(name))
        return None


class _Alias(Loader):
    """Gives the module of another name, unchanged."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.name)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec  # the import system has put its own in


def _one_name() -> _OneName:
    """The finder that this process has, made where it has none."""
    for finder in sys.meta_path:
        if isinstance(finder, _OneName):
            return finder
    made = _OneName()
    sys.meta_path.insert(0, made)
    return made


def forget_plain_names() -> None:
    """Let the next folder's `import helpers` mean its own, not that of the folder before."""
    aliases = _one_name().aliases
    for name in aliases:
        sys.modules.pop(name, None)
    aliases.clear()


def loaded_below(folders: Collection[str]) -> dict[str, ModuleType]:
    """The loaded modules whose files are below these folders, by their file; nothing installed."""
    places = tuple(os.path.join(folder, "") for folder in folders)  # noqa: PTH118 prefixes are texts
    found = {_file_of(module): module for module in tuple(sys.modules.values())}
    return {file: found[file] for file in found if file.startswith(places) and _is_apart(file)}


def _file_of(module: ModuleType) -> str:
    file: str = getattr(module, "__file__", None) or os.devnull
    # What is installed is no user's; links need not be followed for it, which is done on the disk.
    return file if "site-packages" in file or file.startswith(_LIBRARY) else os.path.realpath(file)


def _is_apart(file: str) -> bool:
    ours = os.path.dirname(os.path.realpath(__file__)) + os.sep  # noqa: PTH120 prefixes are texts
    return "site-packages" not in file and not file.startswith(ours)


def forget(files: Collection[str]) -> dict[str, ModuleType]:
    """Have these files imported anew when they are asked for next, from their source; what they were
    until now, by name."""
    own = set(filter(_is_apart, files))
    gone = {name: module for name, module in tuple(sys.modules.items()) if _file_of(module) in own}
    for name, module in gone.items():
        del sys.modules[name]
        package, variable = _where(name)
        if vars(package).get(variable) is module:
            delattr(package, variable)  # `from . import name` takes what it finds there
    for file in own:
        # What is cached counts as fresh where the source was changed within a second of it.
        Path(cache_from_source(file)).unlink(missing_ok=True)
        linecache.checkcache(file)
    return gone


def restore(forgotten: Mapping[str, ModuleType]) -> None:
    """Have those that were not imported anew be what they were."""
    for name, module in forgotten.items():
        if sys.modules.setdefault(name, module) is module:
            package, variable = _where(name)
            vars(package).setdefault(variable, module)


def _where(name: str) -> tuple[ModuleType, str]:
    """The package of a module, and what the module is called there; an empty one where there is
    none."""
    package, _, variable = name.rpartition(".")
    return sys.modules.get(package) or ModuleType(package), variable


def append_to_path(path: Path) -> None:
    """Behind all that is installed, before what was appended earlier."""
    folder, appended = str(path), _one_name().appended
    if folder in sys.path:
        if folder not in appended:
            return
        sys.path.remove(folder)
        appended.remove(folder)
    known = [sys.path.index(other) for other in appended if other in sys.path]
    sys.path.insert(min(known, default=len(sys.path)), folder)
    appended.append(folder)
