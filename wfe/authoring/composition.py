"""A body while it is being composed.

The body is called once, by `workflows.py`; the steps, conditions and transforms in it add themselves to
the current Composition. What comes out is a Flow for the machine, with the nodes and guards that hold
the user's functions.

Each step opens a stage of its own; `parallel` then merges the stages of its members, which is why
they must be the last ones: they were called while its arguments were evaluated.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from wfe.authoring.nodes import Guard, Node, Work
from wfe.authoring.places import Place, caller, refuse
from wfe.authoring.references import OutputSource, Reference
from wfe.authoring.shapes import UNKNOWN, Shape
from wfe.errors import DefinitionError, DuplicateStep, InvalidOption, ReferenceMisuse
from wfe.model import Flow, StepKind, StepOptions, StepSpec, WorkflowOptions
from wfe.near import near

if TYPE_CHECKING:
    from wfe.authoring.hooks import Hook
    from wfe.authoring.workflows import Workflow

_current: ContextVar[Composition | None] = ContextVar("wfe_composition", default=None)


class Entry:
    """One step of a body, before its stage is known."""

    __slots__ = ("child", "guards", "kind", "name", "options", "place", "work")

    def __init__(
        self,
        name: str,
        kind: StepKind,
        work: Work,
        options: StepOptions,
        child: Workflow[Any, Any] | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.work = work
        self.options = options
        self.child = child
        self.guards: tuple[Guard, ...] = ()
        self.place = caller()

    @property
    def depends(self) -> frozenset[str]:
        """The steps whose output it needs before it can start."""
        return self.work.inputs.depends.union(*(guard.depends for guard in self.guards))

    def node(self, stage: int) -> Node:
        undoes = self.kind in _ALWAYS_UNDONE or self.work.handler.undo is not None
        spec = StepSpec(
            name=self.name,
            stage=stage,
            kind=self.kind,
            options=self.options,
            has_compensation=undoes,
            guards=tuple(guard.name for guard in self.guards),
            child=None if self.child is None else self.child.id,
        )
        return Node(spec, self.work, self.place, self.child)


#: Their undo is a call, if only of nothing: a handler may come later, a child must be cancelled.
_ALWAYS_UNDONE = frozenset({StepKind.HOOK, StepKind.HOOK_RESULT, StepKind.WORKFLOW})


class Composition:
    """The steps, conditions and hooks of one body, in the order in which they were written."""

    def __init__(self, workflow_id: str, place: Place) -> None:
        self.workflow_id = workflow_id
        self.place = place
        self.entries: dict[str, Entry] = {}
        self.guards: dict[str, Guard] = {}
        self.hooks: dict[str, Hook] = {}
        self._stages: list[tuple[str, ...]] = []
        self._open_guards: list[Guard] = []
        self._idle_guards: dict[str, Place] = {}
        self._transforms = 0
        #: Whether one of the steps so far is async.
        self.has_async_steps = False

    def add(self, entry: Entry, shape: Shape = UNKNOWN) -> Reference:
        """A reference to what the step will return.

        Raises:
            DuplicateStep: its name is taken.
        """
        earlier = self.entries.get(entry.name)
        if earlier is not None:
            raise refuse(
                DuplicateStep,
                f"The step {entry.name!r} is used twice, here and at {earlier.place}.",
                hint='Give each use a name of its own: .config(name="...").',
                place=entry.place,
            )
        entry.guards = tuple(dict.fromkeys(self._open_guards))
        self.entries[entry.name] = entry
        self.has_async_steps = self.has_async_steps or entry.options.async_
        self._stages.append((entry.name,))
        return Reference(self, OutputSource(entry.name), shape)

    def latest(self, number: int) -> list[Entry]:
        """The steps that were added last, so many of them at most."""
        return list(self.entries.values())[-number:]

    def merge(self, names: Sequence[str]) -> None:
        """Make one stage of these steps, which must be the last ones added.

        Raises:
            DefinitionError: they are not, or one needs the output of another.
        """
        wanted = [(name,) for name in names]
        first = len(self._stages) - len(names)
        if self._stages[max(first, 0) :] != wanted:
            raise refuse(
                DefinitionError,
                "parallel() takes steps that are called inside its parentheses, one per member.",
                hint="Write parallel(a(x), b(y)); what comes before goes on a line of its own.",
            )
        for name in names:
            for other in self.entries[name].depends.intersection(names):
                raise refuse(
                    DefinitionError,
                    f"{name!r} needs what {other!r} returns, but they would run together.",
                    hint=f"Call {other!r} before, outside of parallel().",
                )
        if names:
            self._stages[first:] = [tuple(names)]

    def add_guard(self, guard: Guard) -> None:
        """
        Raises:
            DefinitionError: its name is taken.
        """
        if guard.name in self.guards:
            raise refuse(
                DefinitionError,
                f"Two conditions are named {guard.name!r}.",
                hint="Give each `when` a name of its own; to guard several blocks by one condition, "
                "keep it in a variable: `big = when(...)`, then `with big:` twice.",
            )
        self.guards[guard.name] = guard
        self._idle_guards[guard.name] = caller()

    def enter(self, guard: Guard) -> None:
        """Steps added until `leave` are guarded by it."""
        self._idle_guards.pop(guard.name, None)
        self._open_guards.append(guard)

    def leave(self) -> None:
        """Take back the latest `enter`."""
        self._open_guards.pop()

    def check_current(self, what: str) -> None:
        """
        Raises:
            ReferenceMisuse: `what` is of this body, and used elsewhere.
        """
        if _current.get() is not self:
            raise refuse(
                ReferenceMisuse,
                f"{what} is of the body of {self.workflow_id!r}, and means nothing elsewhere.",
                hint="Make one in the body that needs it.",
            )

    def next_transform(self) -> int:
        """The number of a transform; it depends on nothing but the body."""
        self._transforms += 1
        return self._transforms

    def finish(self, options: WorkflowOptions) -> tuple[Flow, dict[str, Node]]:
        """
        Raises:
            DefinitionError: a condition that guards nothing.
            InvalidOption: `skip_on_permanent_failure` names a step that is not in a later stage.
        """
        for name, place in self._idle_guards.items():
            raise refuse(
                DefinitionError,
                f"The condition {name!r} guards no step.",
                hint="Write `with when(...):` around the steps, or when(...).then(lambda: step(...)).",
                place=place,
            )
        stage_of = {name: n for n, stage in enumerate(self._stages) for name in stage}
        nodes = {name: self.entries[name].node(n) for name, n in stage_of.items()}
        for entry in self.entries.values():
            self._check_skip(entry, stage_of)
        specs = {name: node.spec for name, node in nodes.items()}
        flow = Flow(
            workflow_id=self.workflow_id,
            stages=tuple(self._stages),
            steps=specs,
            options=options,
            hash=_hash(self.workflow_id, self._stages, specs),
        )
        return flow, nodes

    def _check_skip(self, entry: Entry, stage_of: dict[str, int]) -> None:
        target = entry.options.skip_on_permanent_failure
        if not isinstance(target, str):
            return
        later = [name for name, stage in stage_of.items() if stage > stage_of[entry.name]]
        if target not in later:
            names = f"The later steps are {', '.join(later)}." if later else "No step is later."
            raise refuse(
                InvalidOption,
                f"skip_on_permanent_failure={target!r} of step {entry.name!r} names no step of a "
                "later stage.",
                hint=near(target, later) or names,
                place=entry.place,
            )


def current() -> Composition | None:
    """The body that is being composed; None outside of one."""
    return _current.get()


def the_body(what: str) -> Composition:
    """The body that is being composed.

    Raises:
        DefinitionError: there is none; `what` was called elsewhere.
    """
    body = _current.get()
    if body is None:
        raise refuse(
            DefinitionError,
            f"{what} means something only while the body of a workflow is composed.",
            hint="Call it in a function decorated with @workflow.",
        )
    return body


@contextmanager
def composing(body: Composition) -> Iterator[None]:
    """What is called meanwhile adds itself to `body`."""
    token = _current.set(body)
    try:
        yield
    finally:
        _current.reset(token)


def _hash(workflow_id: str, stages: Sequence[tuple[str, ...]], specs: dict[str, StepSpec]) -> str:
    """Identifies the shape. Options, bodies and functions do not count: they may change meanwhile."""
    shape = [
        [[name, specs[name].kind, specs[name].guards, specs[name].child] for name in stage]
        for stage in stages
    ]
    text = json.dumps([workflow_id, shape], ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
