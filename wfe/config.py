"""Settings: what they are, where each value comes from, and the folder a project lives in.

A flag wins over a `WFE_*` variable, that over the nearest `wfe.toml` or `[tool.wfe]` of a
pyproject.toml, that over the default. Every value remembers which of these it was. Relative paths
mean the folder of the file that says them, or the current folder where a flag or variable does.

The project root is the nearest parent with a folder `workflows/`, a `wfe.toml` or a `[tool.wfe]`;
without one it is the current folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from wfe import endings
from wfe.durations import CENTURY, duration
from wfe.errors import UsageError
from wfe.near import near

DAY = 86_400.0

#: Of `on_finish`: nobody is told of an end, whatever a workflow says.
OFF = "off"


# --- what a setting may be -----------------------------------------------------------------------


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")
    return value


def _path(value: Any, base: Path) -> Path:
    return Path(os.path.normpath(base / Path(_text(value)).expanduser()))


def looks_like_path(text: str) -> bool:
    """Whether `text` names a file or folder rather than a dotted module."""
    return text.endswith(".py") or os.sep in text or text.startswith((".", "~"))


def _apps(value: Any, base: Path) -> tuple[str, ...]:
    """Paths made absolute, dotted modules as they are."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple):
        raise ValueError(f"{value!r} is neither a text nor a list of texts")
    found = []
    for item in map(_text, items):
        path = _path(item, base)
        found.append(str(path) if looks_like_path(item) or path.exists() else item)
    return tuple(found)


def _duration(value: Any, base: Path) -> float:
    seconds = duration(value)
    if seconds > CENTURY:
        raise ValueError(f"{value!r} is longer than a century")
    return seconds


def _on_finish(value: Any, base: Path) -> str | tuple[str, ...]:
    return OFF if value == OFF or value is False else endings.target(value)


def _endings(value: Any, base: Path) -> tuple[str, ...]:
    return endings.chosen(value)


def _above_nothing(value: Any, base: Path) -> float:
    seconds = _duration(value, base)
    if seconds <= 0:
        raise ValueError(f"{value!r} is no time at all")
    return seconds


def _one_of(*words: str) -> Callable[[Any, Path], str]:
    def parse(value: Any, base: Path) -> str:
        if value not in words:
            raise ValueError(f"{value!r} is none of {', '.join(words)}")
        return str(value)

    return parse


#: How the value of each setting is read; relative paths mean a folder.
SETTINGS: Mapping[str, Callable[[Any, Path], Any]] = {
    "app": _apps,
    "db": _path,
    "color": _one_of("auto", "always", "never"),
    "retention": _duration,
    "synchronous": _one_of("full", "normal"),
    "busy_timeout": _duration,
    "grace": _duration,
    "accept_timeout": _duration,
    "on_finish": _on_finish,
    "on_finish_for": _endings,
    "on_finish_timeout": _above_nothing,
}


class Value(NamedTuple):
    """A setting's value, and the flag, variable or file that it came from."""

    value: Any
    #: `--db`, `WFE_DB`, the path of a file, or `default`.
    origin: str

    @property
    def source(self) -> Literal["flag", "environment", "file", "default"]:
        """Of which kind the origin is."""
        if self.origin.startswith("--"):
            return "flag"
        if self.origin.startswith("WFE_"):
            return "environment"
        return "default" if self.origin == "default" else "file"


@dataclass(frozen=True)
class Config:
    """Every setting of one invocation."""

    #: The project root.
    root: Path
    #: The file that settings were read from, where there is one.
    file: Path | None
    values: Mapping[str, Value]

    @property
    def app(self) -> tuple[str, ...]:
        """Where workflows are loaded from: absolute paths and dotted modules; empty where nothing
        is set and the root has no `workflows/`."""
        return tuple(self.values["app"].value)

    @property
    def db(self) -> Path:
        """The database file; it need not exist."""
        return Path(self.values["db"].value)

    @property
    def color(self) -> str:
        """`auto`, `always` or `never`."""
        return str(self.values["color"].value)

    @property
    def retention(self) -> float:
        """How long a finished execution is kept, in seconds."""
        return float(self.values["retention"].value)

    @property
    def synchronous(self) -> Literal["full", "normal"]:
        """`full`: what is accepted survives power loss, too."""
        return "full" if self.values["synchronous"].value == "full" else "normal"

    @property
    def busy_timeout(self) -> float:
        """How long a locked database is waited for, in seconds."""
        return float(self.values["busy_timeout"].value)

    @property
    def grace(self) -> float:
        """How long running steps may take to end when interrupted, in seconds."""
        return float(self.values["grace"].value)

    @property
    def accept_timeout(self) -> float:
        """Seconds that another process may take to accept a command for what it has in hand."""
        return float(self.values["accept_timeout"].value)

    @property
    def on_finish(self) -> str | tuple[str, ...] | None:
        """Who is told of ends: the words of a command, `workflow:ID`, or `off`. None: nobody, but for
        what a workflow says."""
        value: str | tuple[str, ...] | None = self.values["on_finish"].value
        return value

    @property
    def on_finish_for(self) -> tuple[str, ...]:
        """The endings that are told: see `wfe.endings`."""
        return tuple(self.values["on_finish_for"].value)

    @property
    def on_finish_timeout(self) -> float:
        """How long the command may take, in seconds."""
        return float(self.values["on_finish_timeout"].value)


def load(
    flags: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Config:
    """The settings that hold in `cwd`. Flags that are None or empty count as not given.

    Raises:
        UsageError: an unknown key, a value that a setting cannot have, or a file that is no
            TOML; the message names the flag, variable or file.
    """
    environ = os.environ if environ is None else environ
    cwd = Path.cwd() if cwd is None else cwd
    root, file, table = _project(cwd)
    values = _defaults(root)
    for key, raw in table.items():
        assert file is not None
        _check_key(key, file)
        values[key] = _value(key, raw, str(file), file.parent)
    for key in SETTINGS:
        variable = f"WFE_{key.upper()}"
        if text := environ.get(variable):
            raw = text.split(os.pathsep) if key == "app" else text
            values[key] = _value(key, raw, variable, cwd)
    for key, raw in (flags or {}).items():
        if raw is not None and raw != []:
            values[key] = _value(key, raw, f"--{key.replace('_', '-')}", cwd)
    return Config(root, file, values)


def _defaults(root: Path) -> dict[str, Value]:
    folder = root / "workflows"
    defaults = {
        "app": (str(folder),) if folder.is_dir() else (),
        "db": root / ".wfe" / "wfe.db",
        "color": "auto",
        "retention": 30 * DAY,
        "synchronous": "full",
        "busy_timeout": 5.0,
        "grace": 10.0,
        "accept_timeout": 30.0,
        "on_finish": None,
        "on_finish_for": ("reverted", "failed", "timed_out"),
        "on_finish_timeout": 60.0,
    }
    return {key: Value(value, "default") for key, value in defaults.items()}


def _value(key: str, raw: Any, origin: str, base: Path) -> Value:
    try:
        return Value(SETTINGS[key](raw, base), origin)
    except ValueError as error:
        where = origin if origin.startswith(("--", "WFE_")) else f"{origin}: {key}"
        raise UsageError(f"{where}: {error}.") from None


def _check_key(key: str, file: Path) -> None:
    if key not in SETTINGS:
        raise UsageError(
            f"{file}: there is no setting {key!r}.",
            hint=near(key, SETTINGS) or f"There are: {', '.join(SETTINGS)}.",
        )


# --- the project ---------------------------------------------------------------------------------


def _project(cwd: Path) -> tuple[Path, Path | None, Mapping[str, Any]]:
    """The root, and the nearest file with settings (which may lie further up) with its table."""
    root: Path | None = None
    for folder in (cwd, *cwd.parents):
        found = _settings_in(folder)
        if root is None and (found or os.path.isdir(folder / "workflows")):  # noqa: PTH112 is_dir raises where a parent may not be searched
            root = folder
        if found:
            return root or folder, *found
    return root or cwd, None, {}


def _settings_in(folder: Path) -> tuple[Path, Mapping[str, Any]] | None:
    own, shared = folder / "wfe.toml", folder / "pyproject.toml"
    table = _read(own)
    project = _read(shared, unless_without=b"wfe") or {}
    tools = project.get("tool")
    section = tools.get("wfe") if isinstance(tools, dict) else None
    if section is not None and not isinstance(section, dict):
        raise UsageError(f"{shared}: [tool.wfe] is no table.")
    if table is not None and section is not None:
        raise UsageError(
            f"{own} and [tool.wfe] in {shared} both hold settings.", hint="Keep one of them."
        )
    if table is not None:
        return own, table
    return (shared, section) if section is not None else None


def _read(file: Path, *, unless_without: bytes = b"") -> dict[str, Any] | None:
    """The TOML of `file`; None where it does not exist, or lacks the given bytes."""
    try:
        content = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError, PermissionError, IsADirectoryError):
        return None
    if unless_without not in content:
        return None
    import tomllib

    try:
        return tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} is not valid TOML: {error}.") from None
