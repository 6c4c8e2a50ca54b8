"""What a reference refuses, and what to write instead.

While a body is composed nothing has a value yet. Python would happily take a reference for a true
value, loop over it or print it; each of these is refused here, at the line that did it. The table
below is the whole list: operation → what it needs and what to write instead ({ref} is the reference
as the user spelled it).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wfe.authoring.places import refuse
from wfe.errors import ReferenceMisuse

_TRUTH = (
    "`if`, `and`, `or`, `not` and `assert` need a value",
    "Put the steps under `with when({ref}):`, or decide inside a step.",
)
_LOOP = (
    "looping over it or unpacking it needs a value",
    "Loop inside a step or in transform({ref}, fn=...); one item is {ref}[0].",
)
_LENGTH = ("its length is not known yet", "Write transform({ref}, fn=len).")
_TEXT = (
    "turning it into text needs a value",
    "Write transform({ref}, fn=lambda value: f'... {{value}}'); repr() shows the reference itself.",
)
_COMPARE = (
    "comparing it needs a value",
    "Write when({ref}, lambda value: value == ...) or transform({ref}, fn=lambda value: ...).",
)
_CONTAINS = (
    "`in` needs a value",
    "Write when({ref}, lambda value: ... in value) or transform({ref}, fn=lambda value: ...).",
)
_NUMBER = (
    "calculating with it needs a value",
    "Write transform({ref}, fn=lambda value: ...), or calculate inside a step.",
)
_CALL = (
    "it cannot be called, and its value has no methods yet",
    "Write transform({ref}, fn=lambda value: ...), or call it inside a step.",
)
_AWAIT = (
    "a body waits for nothing",
    "Hand {ref} to the step that needs it; a step that uses it starts after it.",
)
_WITH = ("it is no context manager", "A condition is written `with when({ref}):`.")
_CHANGE = (
    "it cannot be changed",
    "Make a changed value with transform({ref}, fn=lambda value: {{**value, ...}}).",
)
_TYPE = (
    "its type is not known yet, so that `isinstance`, `match` and encoders cannot look at it",
    "Look at the value inside a step, in transform({ref}, fn=...) or in when({ref}, ...).",
)
_COPY = (
    "it cannot be copied or pickled, since it holds no value",
    "Use {ref} itself: it may be handed to any number of steps.",
)

_ARITHMETIC = ["add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow"]
_BITWISE = ["lshift", "rshift", "and", "xor", "or"]
_GROUPS: tuple[tuple[tuple[str, str], list[str]], ...] = (
    (_TRUTH, ["bool"]),
    (_LOOP, ["iter", "next", "reversed", "aiter", "anext"]),
    (_LENGTH, ["len", "length_hint"]),
    (_TEXT, ["str", "format", "bytes", "fspath"]),
    (_COMPARE, ["eq", "ne", "lt", "le", "gt", "ge"]),
    (_CONTAINS, ["contains"]),
    (_NUMBER, [prefix + name for name in _ARITHMETIC + _BITWISE for prefix in ("", "r", "i")]),
    (_NUMBER, ["neg", "pos", "abs", "invert", "int", "float", "complex", "index", "round"]),
    (_NUMBER, ["trunc", "floor", "ceil"]),
    (_CALL, ["call"]),
    (_AWAIT, ["await"]),
    (_WITH, ["enter", "exit", "aenter", "aexit"]),
    (_CHANGE, ["setattr", "delattr", "setitem", "delitem"]),
    (_COPY, ["reduce", "reduce_ex", "copy", "deepcopy", "getstate"]),
)


def misused(reference: object, what: str, instead: str) -> ReferenceMisuse:
    """The error for one misuse, with the place in the user's code."""
    name = spelling(reference)
    return refuse(
        ReferenceMisuse,
        f"{name} is a reference: its value exists only when a step runs, and {what}.",
        hint=instead.format(ref=name),
    )


def spelling(reference: object) -> str:
    """The reference as its user spelled it: `order.total`."""
    return repr(reference).removeprefix("<reference ").removesuffix(">")


def _refusal(what: str, instead: str) -> Callable[..., Any]:
    def refuse_it(self: object, *_: object, **__: object) -> Any:
        raise misused(self, what, instead)

    return refuse_it


class _RefusingType(type):
    """Answers for the class what tools ask to find out what an instance holds."""

    def __getattr__(cls, name: str) -> Any:
        if name in ("__dataclass_fields__", "__attrs_attrs__", "__struct_fields__"):
            raise refuse(
                ReferenceMisuse,
                "A reference is no dataclass: its value exists only when a step runs.",
                hint="Look at the value inside a step or in transform(ref, fn=...).",
            )
        raise AttributeError(name)


class Refusing(metaclass=_RefusingType):
    """Every operation of the table raises ReferenceMisuse; `repr`, `hash` and identity work."""

    __slots__ = ()

    # The only way to notice isinstance(), which would quietly answer False.
    __class__ = property(_refusal(*_TYPE))

    def __hash__(self) -> int:
        return id(self)

    def __dir__(self) -> list[str]:
        return []


for _advice, _names in _GROUPS:
    for _name in _names:
        setattr(Refusing, f"__{_name}__", _refusal(*_advice))
