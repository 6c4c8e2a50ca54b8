"""What a person types → values: JSON, parameters, moments. Every mistake is a UsageError."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wfe.durations import duration
from wfe.errors import InvalidInput, UsageError

if TYPE_CHECKING:
    from wfe.authoring.workflows import Workflow


def workflow_input(json: str | None, parameters: Sequence[str]) -> Any:
    """The input that `-i` and `-p` say together; parameters go into the object that -i gives.
    NOT_GIVEN where neither is given."""
    from wfe.authoring.responses import NOT_GIVEN

    value: Any = NOT_GIVEN if json is None else json_value(json, "--input")
    if not parameters:
        return value
    if value is NOT_GIVEN:
        value = {}
    if not isinstance(value, dict):
        raise UsageError("-p sets a key of an object, but --input is none.")
    for parameter in parameters:
        _set(value, parameter)
    return value


def fitted(workflow: Workflow[Any, Any], value: Any, parameters: Sequence[str]) -> Any:
    """`value`, which is what `workflow_input` has made of these parameters, as the workflow takes it: a
    parameter that reads as JSON is meant as text where only that fits, as in `-p version=1.0`.

    Raises:
        InvalidInput: it does not fit.
    """
    from copy import deepcopy

    texts = {f".{key}": text for key, _, text in (each.partition("=") for each in parameters)}
    value, first = deepcopy(value), None
    while True:
        try:
            workflow.check_input(value)
        except InvalidInput as refusal:
            first = first or refusal
            text = texts.pop(refusal.path, "@")
            if text.startswith("@"):  # a file's content, or no parameter
                raise first from None
            _put(value, refusal.path[1:], text)
        else:
            return value


def json_value(text: str, flag: str) -> Any:
    """The value of JSON text, of a file (`@file.json`) or of standard input (`-`)."""
    if text == "-":
        what = f"{flag} from standard input"
        return _decode(_text(sys.stdin.buffer.read(), what, "utf-8-sig"), what)
    if text.startswith("@"):
        return _decode(_content(text[1:], flag), f"{flag} {text}")
    return _decode(text, flag)


def _set(target: dict[str, Any], parameter: str) -> None:
    """Put `a.b=value` where it belongs."""
    key, equals, text = parameter.partition("=")
    if not equals or not all(key.split(".")):
        raise UsageError(f"-p {parameter!r} does not read key=value.")
    _put(target, key, _parameter_value(text, f"-p {key}"))


def _put(target: dict[str, Any], key: str, value: Any) -> None:
    *outer, last = key.split(".")
    for part in outer:
        target = target.setdefault(part, {})
        if not isinstance(target, dict):
            raise UsageError(f"-p {key} goes into {part!r}, which is no object.")
    target[last] = value


def _parameter_value(text: str, flag: str) -> Any:
    if text.startswith("@"):
        content = _content(text[1:], flag)
        return _decode(content, f"{flag}={text}") if text.endswith(".json") else content
    try:
        return _decode(text, flag)
    except UsageError:
        return _encodable(text, flag)


def _content(name: str, flag: str) -> str:
    try:
        content = Path(name).expanduser().read_bytes()
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        raise UsageError(f"{flag}: cannot read {name!r}: {reason}.") from None
    encoding = "utf-8-sig" if name.endswith(".json") else "utf-8"
    return _text(content, f"{flag}: {name!r}", encoding)


def _text(content: bytes, what: str, encoding: str) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        raise UsageError(f"{what} is no UTF-8 text.") from None


def _encodable(text: str, flag: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{flag} is no UTF-8 text.") from None
    return text


def _decode(text: str, what: str) -> Any:
    import msgspec

    try:
        return msgspec.json.decode(_encodable(text, what).encode())
    except msgspec.DecodeError as error:
        if not text.strip():
            raise UsageError(f"{what} is empty; it has to be JSON.") from None
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        hint = "Text needs quotes in JSON: '\"text\"'."
        if what.startswith("--input"):
            hint += " Single values go with -p key=value."
        raise UsageError(f"{what} is not JSON: {error}: {shown}", hint=hint) from None
    except RecursionError:
        raise UsageError(f"{what} is nested too deep.") from None


def moment(
    text: str,
    flag: str,
    now: datetime,
    *,
    examples: str = "2h ago, 2026-11-30 or 2026-11-30T08:00Z",
) -> datetime:
    """`2h ago`, `2h`, or an ISO date or time, which is local where it names no zone."""
    from wfe.store.queries import times

    try:
        return times.moment(text, now)
    except ValueError:
        raise UsageError(f"{flag} {text!r} is no moment.", hint=f"Write {examples}.") from None


def seconds(text: str | None, flag: str) -> float | None:
    """A duration in seconds; None where none is given."""
    if text is None:
        return None
    try:
        return duration(text)
    except ValueError as error:
        raise UsageError(f"{flag}: {error}.") from None


def on_change(allow_changed: bool, renames: Sequence[str]) -> dict[str, Any]:
    """What the engine is to do where the workflow has changed meanwhile; empty where nothing is said.

    Raises:
        UsageError: a `--rename` that does not read OLD=NEW, or gives one step two names.
    """
    pairs: dict[str, str] = {}
    for pair in renames:
        old, equals, new = pair.partition("=")
        if not (old and equals and new):
            raise UsageError(f"--rename {pair!r} does not read OLD=NEW.")
        if pairs.setdefault(old, new) != new:
            raise UsageError(f"--rename gives {old!r} two names, {pairs[old]!r} and {new!r}.")
    said = {"allow_changed": allow_changed, "renames": pairs}
    return {name: value for name, value in said.items() if value}
