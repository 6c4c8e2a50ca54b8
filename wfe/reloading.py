"""Reloading: modules whose files have changed are imported anew, while others use them.

Imported anew are the files that have changed and those that import them, directly or not, as far as
their text says; what nobody has touched stays the very module that it was, with all it holds. A module
that fails keeps what it had defined before.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from wfe.discover import Catalog, load
from wfe.errors import ModuleFailed
from wfe.importing import forget, loaded_below, restore


class Reloaded(NamedTuple):
    """What is there after a change."""

    catalog: Catalog
    #: Files that were imported anew, or are gone.
    files: list[str]
    #: Modules that failed, and had not failed in the same way before.
    failures: list[ModuleFailed]


class Reloader:
    """Keeps a catalog up to date with its files."""

    def __init__(self, catalog: Catalog, sources: Sequence[str], *, root: Path) -> None:
        self._catalog = catalog
        self._sources = sources
        self._root = root
        self._failed = _told(catalog)
        #: Have changed, and are what they were all the same.
        self._stale: set[str] = set()

    def folders(self) -> tuple[list[str], list[str]]:
        """Where changes matter: with all that is below them, and without."""
        deep = [os.path.realpath(source) for source in self._sources if Path(source).is_dir()]
        files = [source for source in self._sources if Path(source).is_file()]
        files += loaded_below([os.path.realpath(self._root)])
        flat = {os.path.dirname(os.path.realpath(file)) for file in files}  # noqa: PTH120 texts
        return deep, sorted(one for one in flat if not any(_is_in(one, other) for other in deep))

    def reload(self, changed: Collection[str]) -> Reloaded | None:
        """Import anew what these files make necessary; None: nothing. User code runs meanwhile."""
        before = self._loaded()
        touched = {*map(os.path.realpath, changed), *self._stale}
        wanted = _with_users(touched, before)
        forgotten = forget(wanted)
        catalog = load(self._sources, root=self._root, former=self._catalog)
        catalog.keep_former()
        self._stale = self._restored(forgotten) if catalog.failures else set()
        told, self._failed = self._failed, _told(catalog)
        self._catalog = catalog
        fresh = [failure for failure in catalog.failures if failure.message not in told]
        anew = wanted & {*before, *self._loaded()} - self._stale
        return Reloaded(catalog, sorted(anew), fresh) if anew or fresh else None

    def _loaded(self) -> Collection[str]:
        deep, flat = self.folders()
        return loaded_below([*deep, *flat])

    def _restored(self, forgotten: Mapping[str, ModuleType]) -> set[str]:
        """Let what was not imported anew, because something fails, be what it was; which files, that
        are due the next time."""
        still = {name: module for name, module in forgotten.items() if name not in sys.modules}
        restore(still)
        return {os.path.realpath(module.__file__) for module in still.values() if module.__file__}


def _told(catalog: Catalog) -> set[str]:
    return {failure.message for failure in catalog.failures}


def _is_in(folder: str, other: str) -> bool:
    return Path(folder).is_relative_to(other)


# --- who imports whom ----------------------------------------------------------------------------


def _with_users(changed: Collection[str], loaded: Collection[str]) -> set[str]:
    """These files, and those of `loaded` that import one of them, or one that does. Names are
    compared without regard to where they lead: too much is imported anew rather than too little."""
    mentioned = {file: set(_mentioned(Path(file))) for file in {*loaded, *changed}}
    found, fresh = set(changed), set(changed)
    while fresh:
        names = {_own_name(Path(file)) for file in fresh}
        fresh = {file for file in mentioned if file not in found and mentioned[file] & names}
        found |= fresh
    return found


def _own_name(file: Path) -> str:
    return file.parent.name if file.name == "__init__.py" else file.stem


def _mentioned(file: Path) -> Iterator[str]:
    """The parts of every name that a file imports."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from alias.name.split(".")
        elif isinstance(node, ast.ImportFrom):
            yield from (node.module or "").split(".")
            yield from (alias.name for alias in node.names)
            if 0 < node.level <= len(file.parents):
                yield file.parents[node.level - 1].name
