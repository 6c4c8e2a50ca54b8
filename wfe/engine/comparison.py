"""Comparison: where a loaded flow differs from the one that an execution has gone by.

It looks at the stages up to the point reached; what comes after may change freely. A step is the same
where name, kind and child are; its place is its stage, for in which order the members of a stage are
written makes no difference to what happens. Options and functions are none of its business.

What differs is listed as a person reads it, like a unified diff over the steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches

import msgspec

from wfe.errors import UsageError
from wfe.model import Flow, StepKind, StepSpec

#: How many unchanged steps are listed around a change.
_CONTEXT = 2

#: Of so many pairs of a step that is gone and a new one it is looked which are alike: a tenth of a second.
_MOST_PAIRS = 10_000


class Differences(msgspec.Struct, frozen=True):
    """What differs up to the point reached."""

    #: See `DefinitionChanged.changes`. Empty: nothing differs.
    lines: tuple[str, ...] = ()
    #: Steps that are gone, and added ones that may be them under another name.
    renames: Mapping[str, str] = msgspec.field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.lines)


class Names:
    """What the steps of a stored flow are called in the loaded one."""

    def __init__(self, stored: Flow, loaded: Flow, renames: Mapping[str, str]) -> None:
        """A pair that has been taken over already, by an earlier command, is passed over.

        Raises:
            UsageError: a pair that names no step of the flow, or two steps that would have one name.
        """
        self._steps = {
            old: new for old, new in renames.items() if not _is_past(old, new, stored, loaded)
        }
        for old, new in self._steps.items():
            if old not in stored.steps:
                raise _unknown(old, stored, f"The execution has no step {old!r} to rename.")
            if new not in loaded.steps:
                raise _unknown(
                    new, loaded, f"The workflow has no step {new!r} to rename {old!r} to."
                )
        # The condition of a block that returns a value is called like the step which holds that value.
        self._guards = {
            old: new for old, new in self._steps.items() if stored.steps[old].kind is StepKind.VALUE
        }
        taken: dict[str, str] = {}
        for old in stored.steps:
            other = taken.setdefault(self.step(old), old)
            if other != old:
                raise UsageError(
                    f"The steps {other!r} and {old!r} cannot both go on as {self.step(old)!r}.",
                    hint="Give each step that is renamed a name of its own.",
                )

    def step(self, name: str) -> str:
        """What the step is called now."""
        return self._steps.get(name, name)

    def guard(self, name: str) -> str:
        """What the condition is called now."""
        return self._guards.get(name, name)

    def guards_of(self, spec: StepSpec) -> tuple[str, ...]:
        """What the conditions of a step of the stored flow are called now."""
        return tuple(map(self.guard, spec.guards))


def _is_past(old: str, new: str, stored: Flow, loaded: Flow) -> bool:
    return (
        old not in stored.steps
        and old not in loaded.steps
        and new in stored.steps
        and new in loaded.steps
    )


def _unknown(name: str, flow: Flow, message: str) -> UsageError:
    near = get_close_matches(name, flow.steps)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"It has: {', '.join(flow.steps)}."
    return UsageError(message, hint=hint)


def is_same_step(stored: StepSpec, loaded: StepSpec) -> bool:
    """Whether two steps of one name are one step: another kind, or child, is another step, whose
    undo would know nothing of what this one did."""
    return stored.kind is loaded.kind and stored.child == loaded.child


def compare(stored: Flow, loaded: Flow, reached: int, names: Names) -> Differences:
    """What differs in the stages up to `reached`; -1: the first has not been opened."""
    passed = [[names.step(name) for name in stage] for stage in stored.stages[: reached + 1]]
    known = {names.step(name): spec for name, spec in stored.steps.items()}
    if _is_alike(passed, known, loaded, names):
        return Differences()
    return _Listing(passed, known, loaded, names).differences()


def _is_alike(
    passed: list[list[str]], known: Mapping[str, StepSpec], loaded: Flow, names: Names
) -> bool:
    same_places = [set(stage) for stage in passed] == [
        set(stage) for stage in loaded.stages[: len(passed)]
    ]
    return same_places and all(
        is_same_step(known[name], loaded.steps[name])
        and names.guards_of(known[name]) == loaded.steps[name].guards
        for stage in passed
        for name in stage
    )


class _Listing:
    """The steps up to the point reached, as they were and as they are, line by line."""

    def __init__(
        self,
        passed: list[list[str]],
        known: Mapping[str, StepSpec],
        loaded: Flow,
        names: Names,
    ) -> None:
        #: With whom each step ran.
        self._stages = {name: frozenset(stage) for stage in passed for name in stage}
        self._depth = len(passed)
        self._known = known
        self._loaded = loaded
        self._names = names
        self._before = [name for stage in passed for name in stage]
        self._places = {name: place for place, name in enumerate(self._before)}
        self._renames = self._likely_renames()
        self._after = self._steps_now()

    def differences(self) -> Differences:
        hints = {new: f"renamed? --rename {old}={new}" for old, new in self._renames.items()}
        lines: list[tuple[str, str, str]] = []
        matcher = SequenceMatcher(None, self._before, self._after, autojunk=False)
        for tag, start, end, first, last in matcher.get_opcodes():
            if tag != "equal":
                taken_out = [n for n in self._before[start:end] if n not in self._loaded.steps]
                lines += [("-", name, "") for name in taken_out]
            for place in range(first, last):
                name = self._after[place]
                if name not in self._places:
                    is_new = name not in self._known
                    how = hints.get(name, "") if is_new else "brought forward"
                    lines.append(("+" if is_new else "~", name, how))
                    continue
                moved = tag != "equal"
                ways = [f"now {self._behind(place)}"] if moved else self._company(name)
                ways += self._other_shape(name)
                lines.append(("~" if ways else " ", name, ", ".join(ways)))
        return Differences(tuple(_with_little_context(lines)), self._renames)

    def _likely_renames(self) -> dict[str, str]:
        """New names for steps that are gone, from before any step that came later."""
        added: list[str] = []
        for stage in self._loaded.stages:
            if any(name in self._known and name not in self._places for name in stage):
                break
            added += [name for name in stage if name not in self._known]
        gone = [name for name in self._before if name not in self._loaded.steps]
        found: dict[str, str] = {}
        if len(gone) * len(added) > _MOST_PAIRS:
            return found
        for name in gone:
            alike = [n for n in added if is_same_step(self._known[name], self._loaded.steps[n])]
            for other in get_close_matches(name, alike, n=1):
                found[name] = other
                added.remove(other)
        return found

    def _steps_now(self) -> list[str]:
        """The steps of the loaded flow down to the last that was passed, under whatever name; and
        further as long as there are only new ones, which may stand for those that are gone."""
        stages, steps = self._loaded.stages, self._loaded.steps
        passed = [name for name in (*self._before, *self._renames.values()) if name in steps]
        end = max((steps[name].stage for name in passed), default=-1) + 1
        while end < min(self._depth, len(stages)) and not any(
            name in self._known for name in stages[end]
        ):
            end += 1
        last = len(self._before)
        return [
            name
            for stage in stages[:end]
            for name in sorted(stage, key=lambda name: self._places.get(name, last))
        ]

    def _behind(self, place: int) -> str:
        return f"after {self._after[place - 1]}" if place else "first"

    def _company(self, name: str) -> list[str]:
        """Whether it runs together with others than before."""
        before = self._stages[name]
        after = frozenset(self._loaded.stages[self._loaded.steps[name].stage])
        lost = (before - after) & self._loaded.steps.keys()
        won = (after - before) & self._places.keys()
        how = [f"no longer together with {' and '.join(sorted(lost))}"] if lost else []
        return how + ([f"now together with {' and '.join(sorted(won))}"] if won else [])

    def _other_shape(self, name: str) -> list[str]:
        old, new = self._known[name], self._loaded.steps[name]
        how = []
        if old.kind is not new.kind:
            how.append(f"a {new.kind} now, was a {old.kind}")
        elif old.child != new.child:
            how.append(f"runs {new.child} now, ran {old.child}")
        guards = self._names.guards_of(old)
        if guards != new.guards:
            how.append(f"guarded by {_all(new.guards)} now, was by {_all(guards)}")
        return how


def _all(guards: Sequence[str]) -> str:
    return " and ".join(guards) or "nothing"


def _with_little_context(lines: Sequence[tuple[str, str, str]]) -> list[str]:
    """The changed lines and their surroundings; dots for what is left out."""
    shown = {-1, len(lines)}
    for place, (mark, _, _) in enumerate(lines):
        if mark != " ":
            shown.update(range(place - _CONTEXT, place + _CONTEXT + 1))
    found = []
    for place, (mark, name, how) in enumerate(lines):
        if place in shown or {place - 1, place + 1} <= shown:  # dots would take a line, too
            found.append(f"{mark} {name}{': ' if how else ''}{how}")
        elif place - 1 in shown or place == 0:
            found.append("  …")
    return found
