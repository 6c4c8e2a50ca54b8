"""A scenario while rules rewrite what is expected of it: ways to the places that a rule touches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .matchers import ANY, Entry, OneOf, Open, StartsWith
from .normal import Form, stages_of_calls, stages_of_events
from .shape import Shape, Step, shapes_of

Command = Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """One command, and the place that holds its outcome."""

    command: Command
    #: Its position, or that of the command which holds it.
    place: int
    holder: Any
    index: Any
    #: As it was before any rule.
    recorded: Mapping[str, Any]

    @property
    def form(self) -> Any:
        return self.holder[self.index]

    @property
    def key(self) -> str:
        """The execution that it is about."""
        if text := self.command.get("idempotency_key"):
            return str(text).rsplit(":", 2)[0]
        return f"{self.command.get('workflow')}:{self.command.get('transaction_id', 'auto-ULID')}"

    @property
    def step(self) -> str | None:
        """The step that it is about."""
        if text := self.command.get("idempotency_key"):
            return str(text).split(":")[-2] if str(text).count(":") > 2 else None
        return self.command.get("step")

    @property
    def is_accepted(self) -> bool:
        """False where the command was refused; an error of the user's own code is no refusal."""
        form = self.form if isinstance(self.form, dict) else self.recorded
        return "refused" not in form and not isinstance(form.get("thrown"), str)


@dataclass(frozen=True)
class Call:
    """A recorded call of a handler, with what the scenario made it do."""

    key: str
    step: str
    action: str
    attempt: int
    started: int
    ended: int | None
    #: The command during which it began.
    place: int
    #: Behaviour without its sleeps and commands.
    behaviour: Mapping[str, Any]
    #: How long it slept, in seconds.
    sleeps: float
    definition: Step


@dataclass(frozen=True)
class Told:
    """A recorded event."""

    at: int
    #: The command during which it happened.
    place: int
    key: str
    event: str
    step: str | None
    raw: Mapping[str, Any]


@dataclass(frozen=True)
class Cut:
    """Where the recording can no longer say how executions go on."""

    family: frozenset[str]
    place: int
    event: int
    #: Is the outcome of the command at `place` unknown, too?
    outcome: bool
    #: The execution that ends undone after it, as well as that is possible; None: it may end anyhow.
    undone: str | None


@dataclass
class Case:
    """A scenario and what is expected of us; rules change it through `put` and `cut` alone."""

    scenario: Mapping[str, Any]
    expected: Form
    shapes: Mapping[str, Shape] = field(init=False)
    changed: bool = False
    cuts: list[Cut] = field(default_factory=list)
    #: What is to be put when all rules have run, because they could not read it: holder, key, value.
    late: list[tuple[Form, str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shapes = shapes_of(self.scenario)
        self.before = [
            {**form, "results": list(form["results"])} if "results" in form else dict(form)
            for form in self.expected["commands"]
        ]
        self.calls = list(self._recorded_calls())
        self.told = list(self._recorded_events())

    @property
    def recorded(self) -> Mapping[str, Any]:
        recorded: Mapping[str, Any] = self.scenario["recorded"]
        return recorded

    # --- what was recorded -----------------------------------------------------------------------

    def _place(self, counter: str, number: int) -> int:
        """The command during which the call or event of this number happened."""
        entries = self.recorded["commands"]
        after = (i for i, entry in enumerate(entries) if entry[counter] > number)
        return next(after, len(entries))

    def _recorded_calls(self) -> Iterator[Call]:
        used: dict[tuple[str, str, str], int] = {}
        for number, call in enumerate(self.recorded["calls"]):
            key = f"{call['workflow']}:{call['transaction_id']}"
            definition = self.step(key, call["step"])
            if definition is None:
                continue
            which = (key, call["step"], call["action"])
            turn = used[which] = used.get(which, -1) + 1
            behaviours = definition.node[call["action"]]
            behaviour = behaviours[min(turn, len(behaviours) - 1)]
            sleeps = 0.0
            while "then" in behaviour:
                sleeps += behaviour.get("sleep", 0)
                behaviour = behaviour["then"]
            place = self._place("calls_after", number)
            moments = (call["started"], call["ended"])
            yield Call(
                key, *which[1:], call["attempt"], *moments, place, behaviour, sleeps, definition
            )

    def _recorded_events(self) -> Iterator[Told]:
        for at, raw in enumerate(self.recorded["events"]):
            key = f"{raw['workflow']}:{raw['transaction_id']}"
            place = self._place("events_after", at)
            yield Told(at, place, key, raw["event"], raw.get("step"), raw)

    def events_before(self, place: int) -> int:
        """How many events there were when this command was given."""
        return int(self.recorded["commands"][place - 1]["events_after"]) if place else 0

    def told_of(self, call: Call, *names: str) -> Told | None:
        """The first such event of this very call."""
        turn = [c for c in self.calls if (c.key, c.step) == (call.key, call.step)].index(call) + 1
        begins = 0
        for told in self.told:
            if (told.key, told.step) != (call.key, call.step):
                continue
            begins += told.event == "onStepBegin"
            if begins == turn and told.event in names:
                return told
        return None

    def last_told(self, key: str, step: str, before: int) -> Told | None:
        """The newest event of a step before that one."""
        own = [told for told in self.told[:before] if (told.key, told.step) == (key, step)]
        return own[-1] if own else None

    def is_live(self, key: str, place: int) -> bool:
        """Was there an unfinished execution when this command was given?"""
        told = [t.event for t in self.told if t.key == key and t.place < place]
        ends = [event for event in told if event in ("onBegin", "onFinish")]
        return bool(ends) and ends[-1] == "onBegin"

    def fatal(self) -> Iterator[Told]:
        """Failures for good of steps that are not to be passed over."""
        for told in self.told:
            step = self.step(told.key, told.step)
            if told.event == "onStepFailure" and told.raw["errors"] and step is not None:
                passed = ("continue_on_permanent_failure", "skip_on_permanent_failure")
                if not any(step.options.get(option) for option in passed):
                    yield told

    def finish(self, key: str, place: int) -> Entry | None:
        """How an execution is expected to have ended by the end of that command."""
        ends = [t for t in self.told if t.key == key and t.event == "onFinish" and t.place <= place]
        events = self.expected["events"]["everything"].get(key)
        if not ends or not isinstance(events, dict):
            return None
        return next(
            (e for e in events["flow"] if e.at == ends[-1].at and e["event"] == "finish"), None
        )

    def step(self, key: str, name: str | None) -> Step | None:
        """A step's definition, by execution and name."""
        return None if name is None else self.shape(key).steps.get(name)

    def shape(self, key: str) -> Shape:
        """The workflow of an execution; one without steps where it is none of the scenario's."""
        ids = [each for each in self.shapes if key.startswith(f"{each}:")]
        return self.shapes[max(ids, key=len)] if ids else Shape(workflow_of(key), {}, {})

    def _links(self) -> set[tuple[str, str]]:
        """Which executions ran as steps of which: (parent, child)."""
        keys = {told.key for told in self.told} | {call.key for call in self.calls}
        return {
            (parent, child)
            for parent in keys
            for child in keys
            for step in self.shape(parent).steps.values()
            if child.startswith(f"{step.child}:{step.name}-{parent.partition(':')[2]}")
        }

    def roots(self) -> dict[str, set[str]]:
        """Executions that are nobody's child, each with all that ran below it."""
        links = self._links()
        children = {child for _, child in links}
        return {key: _reached(key, links) - {key} for key, _ in links if key not in children}

    def family(self, key: str) -> set[str]:
        """An execution with all those that run, or ran, as steps of it or around it."""
        links = self._links()
        return _reached(key, links | {(child, parent) for parent, child in links})

    # --- finding ---------------------------------------------------------------------------------

    def outcomes(self) -> Iterator[Outcome]:
        """Every command's outcome, those of a `concurrent` and of a `join` too."""
        commands = self.scenario["commands"]
        spawned = {each["id"]: each["do"] for each in commands if each["op"] == "spawn"}
        forms = self.expected["commands"]
        for place, command in enumerate(commands):
            if command["op"] == "concurrent":
                before = self.before[place]["results"]
                for index, each in enumerate(command["ops"]):
                    yield Outcome(each, place, forms[place]["results"], index, before[index])
            else:
                played = spawned[command["id"]] if command["op"] == "join" else command
                yield Outcome(played, place, forms, place, self.before[place])

    def looks(self, since: int = 0) -> list[Form]:
        """Every look at what is kept, the last one at the very end."""
        forms = [form for form in self.expected["commands"][since:] if form is not ANY]
        return [*(form["stored"] for form in forms if "stored" in form), self.expected["final"]]

    def stores(self, key: str | None = None, since: int = 0) -> Iterator[tuple[str, Form]]:
        """Every look at what is kept, per execution."""
        for look in self.looks(since):
            for each, stored in look.items():
                if isinstance(stored, dict) and key in (None, each):
                    yield each, stored

    def rows(self, key: str | None = None, since: int = 0) -> Iterator[tuple[str, Form]]:
        """Every row in every look."""
        for each, stored in self.stores(key, since):
            yield from ((each, row) for row in stored["rows"])

    def views(self, key: str | None = None, since: int = 0) -> Iterator[tuple[str, Form]]:
        """Every place that shows an execution's state and the states of its steps."""
        for outcome in self.outcomes():
            form = outcome.form
            shown = isinstance(form, dict) and isinstance(form.get("flow"), dict)
            if shown and outcome.place >= since and key in (None, outcome.key):
                yield outcome.key, form["flow"]
        for each, stored in self.stores(key, since):
            if stored["memory"]:
                yield each, stored["memory"]
            yield from ((each, row) for row in stored["rows"] if row["steps"] is not ANY)

    def event_lists(self) -> Iterator[tuple[str, Form]]:
        """Every list of events, per execution ("*": handlers of a command are not told which)."""
        for lists in self.expected["events"].values():
            yield from ((key, events) for key, events in lists.items() if events is not ANY)

    def step_events(self) -> Iterator[tuple[str, str, Form]]:
        """Every step's own sequence of events: execution, step, and what holds the sequences."""
        for key, events in self.event_lists():
            for name in list(events["steps"]):
                yield key, name, events["steps"]

    def error_lists(self) -> Iterator[tuple[Form, str]]:
        """Every holder of a list of errors, with the key under which it holds it."""
        for holder, name in self._error_lists():
            if all("message" in failure for failure in holder[name]):
                yield holder, name

    def _error_lists(self) -> Iterator[tuple[Form, str]]:
        for outcome in self.outcomes():
            for name in ("errors", "all_errors"):
                if isinstance(outcome.form, dict) and isinstance(outcome.form.get(name), list):
                    yield outcome.form, name
        for _, row in self.rows():
            if isinstance(row["errors"], list):
                yield row, "errors"
        for _, events in self.event_lists():
            own = [event for each in events["steps"].values() for event in each]
            for event in [*events["flow"], *own]:
                if isinstance(event.get("errors"), list):
                    yield event, "errors"

    # --- changing --------------------------------------------------------------------------------

    def put(self, holder: Any, key: Any, value: Any) -> None:
        """Expect `value` there, whatever was recorded."""
        before = holder[key] if not isinstance(holder, dict) or key in holder else None
        if before is not ANY and before is not value and before != value:
            self.changed = True
            holder[key] = value

    def replace(self, outcome: Outcome, form: Any) -> None:
        """Expect another outcome of a command."""
        if form is not ANY and isinstance(outcome.form, dict) and "op" in outcome.form:
            form = {"op": outcome.form["op"], **form}
        self.put(outcome.holder, outcome.index, form)

    def refuse(self, outcome: Outcome, kind: Any) -> None:
        """Expect a command to be refused."""
        quiet = outcome.command.get("throw_on_error", True) is False
        self.replace(outcome, {"refused" if quiet else "thrown": kind})

    def cut(
        self, key: str, *, place: int, event: int, outcome: bool = True, undone: bool = False
    ) -> None:
        """From this event on, during the command at `place`, the execution takes another course than
        recorded, and with it all of its family. What came before is compared, and so is what every
        execution is promised. `outcome` False: that very command still ends as recorded. `undone`:
        what is certain is that the execution ends reverted, or failed if an undo fails.
        """
        self.changed = True
        again = any(
            o.key == key and o.command["op"] == "run" for o in self.outcomes() if o.place > place
        )
        ends_undone = key if undone and not again else None
        family = frozenset(self.family(key))
        self.cuts.append(Cut(family, place, event, outcome, ends_undone))

    def apply_cuts(self) -> None:
        """Expect nothing more from where the executions were cut. Call it when all else is said."""
        for holder, key, value in self.late:
            holder[key] = value
        for cut in self.cuts:
            self._apply(cut)

    def _apply(self, cut: Cut) -> None:
        for outcome in list(self.outcomes()):
            if outcome.key in cut.family and outcome.place >= cut.place + (not cut.outcome):
                outcome.holder[outcome.index] = ANY
        for look in self.looks(cut.place):
            look.update(dict.fromkeys(cut.family, ANY))
        for name, lists in self.expected["events"].items():
            for each in {*lists, *cut.family} & {*cut.family, "*"}:
                if name == "everything" and isinstance(lists.get(each), dict):
                    lists[each] = told_before(lists[each], cut.event, undone=each == cut.undone)
                else:
                    lists[each] = ANY
        first_call = self._first_call(cut)
        calls = self.expected["calls"]
        for each in cut.family:
            calls["stages"][each] = ANY
            own = calls["steps"].get(each, {})
            calls["steps"][each] = Open(_all_before(own, first_call))

    def _first_call(self, cut: Cut) -> float:
        """Where the calls begin that the recording cannot answer for."""
        began = {(t.key, t.step) for t in self.told[cut.event :] if t.event == "onStepBegin"}
        late = [
            call.started
            for call in self.calls
            if call.place > cut.place
            or (call.place == cut.place and (call.key, call.step) in began)
        ]
        return min(late, default=float("inf"))

    def restage(self) -> None:
        """Tell anew in which order stages went, from events and calls as they are expected now."""
        for key, events in self.event_lists():
            if events["stages"] is not ANY:
                events["stages"] = stages_of_events(key, events, self.shapes)
        calls = self.expected["calls"]
        for key, stages in calls["stages"].items():
            if stages is not ANY:
                calls["stages"][key] = stages_of_calls(key, calls["steps"][key], self.shapes)


def _reached(key: str, links: set[tuple[str, str]]) -> set[str]:
    """`key`, and where the links lead from there."""
    found = {key}
    while more := {child for parent, child in links if parent in found} - found:
        found |= more
    return found


def workflow_of(key: str) -> str:
    """The workflow of an execution."""
    return key.partition(":")[0]


def _before(entries: Any, at: float) -> list[Entry]:
    known = entries.items if isinstance(entries, StartsWith) else entries
    return [each for each in known if each.at < at]


def _all_before(lists: Mapping[str, Any], at: float) -> dict[str, StartsWith]:
    """Per step what is known of it, where something is."""
    known = {step: _before(entries, at) for step, entries in lists.items()}
    return {step: StartsWith(entries) for step, entries in known.items() if entries}


def told_before(events: Form, at: int, *, undone: bool = False) -> Form:
    """A list of events, expected up to this one only, and how it ends."""
    steps = Open(_all_before(events["steps"], at))
    end = Open({"event": "finish", "state": OneOf(("reverted", "failed"))}) if undone else ANY
    return {"flow": StartsWith(_before(events["flow"], at), end), "steps": steps, "stages": ANY}
