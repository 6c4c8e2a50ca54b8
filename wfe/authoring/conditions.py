"""`when`: steps that run only if a condition holds."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn, TypeVar

from wfe.authoring.composition import Composition, Entry, the_body
from wfe.authoring.inputs import Inputs, refuse_captured, template
from wfe.authoring.nodes import Guard, Handler, Work
from wfe.authoring.options import checked_name
from wfe.authoring.places import refuse
from wfe.authoring.references import OutputSource, Reference, has_references
from wfe.authoring.signatures import Signature, check_function
from wfe.errors import DefinitionError, ReferenceMisuse
from wfe.model import StepKind, StepOptions

T = TypeVar("T")


async def _the_value(value: Any) -> Any:
    return value


#: What the step of a block's value does.
_VALUE = Handler(_the_value)


class When:
    """A condition: `with when(...):` around steps, or `.then(...)` for one block.

    It is evaluated once per execution, when the first of its steps becomes ready.
    """

    _wfe_instead = "A condition guards steps: `with when(...):`; its truth is no value of the body."

    def __init__(self, body: Composition, guard: Guard, *, named: bool) -> None:
        self._body = body
        self._guard = guard
        self._named = named

    def __enter__(self) -> None:
        self._body.check_current(f"The condition {self._guard.name!r}")
        self._body.enter(self._guard)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._body.leave()

    def __bool__(self) -> NoReturn:
        raise refuse(
            ReferenceMisuse,
            "A condition has no truth value while the body is composed.",
            hint="Write `with when(...):` instead of `if when(...):`.",
        )

    def then(self, block: Callable[[], T]) -> T | None:
        """Compose `block` under the condition; a reference to what it returns, None if skipped.

        A block that returns anything but a step inside it adds a step named like the `when`.

        Raises:
            DefinitionError: the block is async, or returns a value while the `when` has no name.
        """
        if inspect.iscoroutinefunction(block) or not callable(block):
            raise refuse(
                DefinitionError,
                "then() takes a function that is called at once, and is not async.",
                hint="Write .then(lambda: step(...)).",
            )
        with self:
            before = set(self._body.entries)
            returned: Any = block()
            is_step = returned is None or self._is_step_inside(returned, before)
            result: T | None = returned if is_step else self._value_step(returned)
            return result

    def _is_step_inside(self, returned: Any, before: set[str]) -> bool:
        if type(returned) is not Reference or returned._wfe_body is not self._body:
            return False
        source = returned._wfe_source
        return isinstance(source, OutputSource) and source.step not in before

    def _value_step(self, returned: Any) -> Any:
        name = self._guard.name
        value = template(returned, self._body, what=f"What the block of {name!r} returns")
        if not self._named:
            raise refuse(
                DefinitionError,
                "This block returns a value that is no step of it, which becomes a step of its own "
                "and needs a name that never changes.",
                hint='Write when(..., name="...").then(...).',
            )
        work = Work(_VALUE, Inputs(_VALUE.signature, (value,), {}, what=f"step {name!r}"))
        return self._body.add(Entry(name, StepKind.VALUE, work, StepOptions()))


def when(
    condition: object, predicate: Callable[[Any], object] | None = None, *, name: str | None = None
) -> When:
    """Guard steps by a condition: a reference (its truth), or any value with a predicate.

        with when(order.gift):
            wrap(order)
        with when(order, lambda order: order["total"] > 100, name="big"):
            inspect(order)

    The predicate may be async; it gets plain JSON values, converted where its parameter is
    annotated. What is computed in the block and skipped is None for those after it.

    Raises:
        DefinitionError: no condition that can be evaluated later.
        InvalidName: a name that no step could have.
    """
    body = the_body("when()")
    if name is not None:
        checked_name(name, what="condition")
    given, name = name, name or _unused_name(body)
    value = template(condition, body, what="A condition")
    if predicate is None:
        if not has_references(value):
            raise refuse(
                DefinitionError,
                f"The condition {condition!r} is decided already, while the body is composed.",
                hint="Give a reference, or a value with a predicate: when(x, lambda x: x is None).",
            )
        guard = Guard(name, value)
    else:
        check_function(predicate, what="A predicate", instead="Write when(x, lambda x: ...).")
        refuse_captured(predicate, what="The predicate")
        guard = Guard(name, value, predicate, _inputs(predicate, value, f"the condition {name!r}"))
    body.add_guard(guard)
    return When(body, guard, named=given is not None)


def _inputs(predicate: Callable[..., Any], value: Any, what: str) -> Inputs:
    try:
        return Inputs(Signature(predicate, context=False), (value,), {}, what=what)
    except TypeError as error:
        raise refuse(
            DefinitionError,
            f"The predicate cannot be called with one value: {error}.",
            hint="Several values go in as one: when([a, b], lambda ab: ab[0] > ab[1]).",
        ) from None


def _unused_name(body: Composition) -> str:
    number = len(body.guards) + 1
    while f"when-{number}" in body.guards:
        number += 1
    return f"when-{number}"
