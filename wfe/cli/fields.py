"""The input of a workflow for people: a line for each field, in place of its JSON schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from wfe.cli.output import json_text


class Field(NamedTuple):
    """One line: what the field is called, what it holds, and whether it has to be given."""

    name: str
    type: str
    need: str


def of_input(schema: dict[str, Any]) -> dict[str, list[Field]]:
    """The fields of every object in the input, by the name of the object; the input itself comes
    first and has none. Empty where the input is no object with known fields."""
    objects = schema.get("$defs", {})
    top = _resolved(schema, objects)
    if "properties" not in top:
        return {}
    found = {"": list(_fields(top, objects))}
    for name, one in objects.items():
        if one is not top and "properties" in one:
            found[name] = list(_fields(one, objects))
    return found


def _fields(one: dict[str, Any], objects: dict[str, Any]) -> Iterator[Field]:
    for name, field in one["properties"].items():
        need = "required" if name in one.get("required", ()) else "optional"
        if "default" in field:
            need = f"default {json_text(field['default'])}"
        yield Field(name, _type(field, objects), need)


def _type(field: dict[str, Any], objects: dict[str, Any]) -> str:
    whole = _resolved(field, objects)
    if "properties" in whole and "$ref" in field:
        return str(field["$ref"]).rpartition("/")[2]
    if "enum" in whole:
        return " | ".join(map(json_text, whole["enum"]))
    if "anyOf" in whole:
        return " or ".join(_type(one, objects) for one in whole["anyOf"])
    if whole.get("type") == "array" and whole.get("items"):
        return f"array of {_type(whole['items'], objects)}"
    kind = str(whole.get("type", "anything"))
    return f"{kind} ({whole['format']})" if "format" in whole else kind


def _resolved(one: dict[str, Any], objects: dict[str, Any]) -> dict[str, Any]:
    name = str(one.get("$ref", "")).rpartition("/")[2]
    found: dict[str, Any] = objects.get(name, one)
    return found
