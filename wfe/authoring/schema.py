"""The JSON schema of an annotation, for those who ask what a workflow takes."""

from __future__ import annotations

from typing import Any

import msgspec

from wfe.plain import is_pydantic_model


def schema_of(annotation: Any) -> dict[str, Any]:
    """The JSON schema of what fits the annotation; empty where anything does."""
    if annotation is None or annotation is Any:
        return {}
    if is_pydantic_model(annotation):
        return dict(annotation.model_json_schema())
    try:
        return dict(msgspec.json.schema(annotation, schema_hook=_custom))
    except Exception:  # nothing is converted to it: anything is handed over as it is
        return {}


def _custom(type_: Any) -> dict[str, Any]:
    return dict(type_.model_json_schema()) if is_pydantic_model(type_) else {}
