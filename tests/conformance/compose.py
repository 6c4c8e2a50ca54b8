"""Builds a scenario's workflows with the public authoring API.

A handler of a scenario is a list of behaviours, used one per call of that handler within (workflow,
transaction id, step, side); the last one repeats. `World` keeps what the handlers of one scenario
share: that count, the list of calls, and the way back to the player for commands inside handlers.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from wfe import (
    Schedule,
    StepContext,
    StepResponse,
    WorkflowResponse,
    hook,
    parallel,
    step,
    transform,
    when,
    workflow,
)

from .functions import condition, function, named
from .shape import is_step_reference, name_of

Behaviour = Mapping[str, Any]
Node = Mapping[str, Any]


class World:
    """What the handlers of one scenario share."""

    def __init__(self, play: Callable[[Mapping[str, Any]], Awaitable[Any]]) -> None:
        self.play = play
        self.calls: list[dict[str, Any]] = []
        #: One higher after each restart: what an abandoned handler still does is not recorded.
        self.epoch = 0
        self._position = 0
        self._used: dict[tuple[str, str, str, str], int] = {}

    def position(self) -> int:
        """The next place in the one common order of starts and ends."""
        self._position += 1
        return self._position

    def next(self, ctx: StepContext, behaviours: Sequence[Behaviour]) -> Behaviour:
        """The behaviour of this call."""
        key = (ctx.workflow_id, ctx.transaction_id, ctx.step_name, str(ctx.action))
        used = self._used.get(key, 0)
        self._used[key] = used + 1
        return behaviours[min(used, len(behaviours) - 1)]

    def handler(self, behaviours: Sequence[Behaviour]) -> Callable[..., Awaitable[Any]]:
        """A step's function, or its undo, that behaves as the scenario says."""

        async def handle(ctx: StepContext, value: Any) -> Any:
            epoch = self.epoch
            call = {
                "workflow": ctx.workflow_id,
                "transaction_id": ctx.transaction_id,
                "step": ctx.step_name,
                "action": str(ctx.action),
                "attempt": ctx.attempt,
                "input": value,
                "started": self.position(),
                "ended": None,
            }
            self.calls.append(call)
            try:
                return await self.behave(self.next(ctx, behaviours), value)
            finally:
                if epoch == self.epoch:
                    call["ended"] = self.position()

        return handle

    async def behave(self, behaviour: Behaviour, value: Any) -> Any:
        """What a call with input `value` comes to."""
        match behaviour:
            case {"sleep": seconds, "then": rest}:
                await asyncio.sleep(seconds)
                return await self.behave(rest, value)
            case {"do": command, "then": rest}:
                await self.play(command)
                return await self.behave(rest, value)
            case {"return": output, "compensate_with": data}:
                return StepResponse(output, compensate_with=data)
            case {"return": output}:
                return StepResponse(output)
            case {"echo": _, "compensate_with": data}:
                return StepResponse(value, compensate_with=data)
            case {"echo": _}:
                return StepResponse(value)
            case {"raw": output}:
                return output
            case {"none": _} | {"wait": _}:
                return None
            case {"skip": _}:
                return StepResponse.skip()
            case {"permanent": message}:
                StepResponse.permanent_failure(
                    message, compensate_with=behaviour.get("compensate_with")
                )
            case {"return_circular": _}:
                return StepResponse(_circular())
        raise _error(behaviour)


def _circular() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


def _error(behaviour: Behaviour) -> Exception:
    """The exception that a raising behaviour asks for; its class is named as the error was."""
    match behaviour:
        case {"raise": message}:
            error = named(behaviour.get("name", "Error"), message)
            for field, data in behaviour.get("extra", {}).items():
                setattr(error, field, data)
            return error
        case {"raise_circular": message}:
            error = named("Error", message)
            setattr(error, "loop", _circular())  # noqa: B010 a field that the class does not know
            return error
        case {"medusa_error": _, "message": message}:
            return named("Error", message)
        case {"raise_value": value}:
            return Exception(text_of(value))
    raise AssertionError(f"unknown behaviour: {behaviour}")


def text_of(value: Any) -> str:
    """A thrown value that is no error, as a text: its `message`, else compact JSON."""
    if isinstance(value, dict) and "message" in value:
        return str(value["message"])
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


# --- bodies --------------------------------------------------------------------------------------


class Composer:
    """Composes one workflow's body: nodes in order, names to references."""

    def __init__(self, world: World, workflows: Mapping[str, Any]) -> None:
        self.world = world
        self.workflows = workflows
        self.known: dict[str, dict[str, Any]] = {
            "steps": {},
            "transforms": {},
            "hooks": {},
            "when": {},
        }
        self.hooks: list[Any] = []
        self.input: Any = None

    def value(self, template: Any) -> Any:
        """`template` with references in place of `{"$ref": …}`."""
        if isinstance(template, dict):
            if set(template) == {"$ref"}:
                return self.reference(template["$ref"])
            return {key: self.value(item) for key, item in template.items()}
        if isinstance(template, list):
            return [self.value(item) for item in template]
        return template

    def reference(self, path: str) -> Any:
        first, *parts = path.split(".")
        if first == "input":
            found = self.input
        else:
            # a name may hold dots: the longest one that is known
            lengths = range(len(parts), 0, -1)
            length = next((n for n in lengths if ".".join(parts[:n]) in self.known[first]), 0)
            if not length:
                return None
            found = self.known[first][".".join(parts[:length])]
            parts = parts[length:]
        for part in parts:
            found = found[int(part)] if part.isdigit() else found[part]
        return found

    def node(self, node: Node) -> Any:
        """Compose one node; gives its reference, None where it has none."""
        match node:
            case {"parallel": members}:
                return parallel(*[self.member(member) for member in members])
            case {"transform": name, "of": of}:
                made = transform(self.value(of), fn=function(node["fn"]))
                self.known["transforms"][name] = made
                return made
            case {"when": _}:
                return self.when(node)
            case {"hook": name}:
                return self.hook(name, node)
            case {"workflow": child}:
                made = self.child(child, node)
            case _:
                made = self.step(node)
        self.known["steps"][name_of(node)] = made
        return made

    def member(self, node: Node) -> Any:
        """One member of a parallel group: a `when` around a single step gives that step."""
        return self.when(node, grouped=True) if "when" in node else self.node(node)

    def step(self, node: Node) -> Any:
        made = step(node["step"], **options(node.get("config", {})))(
            self.world.handler(node["invoke"])
        )
        if node.get("compensate") is not None:
            made.compensate(self.world.handler(node["compensate"]))
        if "reconfig" in node:
            made = made.config(**options(node["reconfig"]))
        return made(self.value(node["input"]) if "input" in node else {})

    def child(self, child: str, node: Node) -> Any:
        made = self.workflows[child].as_step
        if "config" in node:
            made = made.config(**options(node["config"]))
        return made(self.value(node["input"]) if "input" in node else {})

    def hook(self, name: str, node: Node) -> None:
        made = hook(name, self.value(node["input"]) if "input" in node else {})
        self.hooks.append(made)
        if node.get("get_result"):
            self.known["hooks"][name] = made.result()

    def when(self, node: Node, *, grouped: bool = False) -> Any:
        what, name = node["when"], node["when"].get("name")
        guard = when(self.value(what.get("input")), condition(what["cond"]), name=name)
        if "returns" not in node and not grouped:
            with guard:
                for each in node["then"]:
                    self.node(each)
            return None

        def block() -> Any:
            made = [self.node(each) for each in node["then"]]
            if "returns" not in node:
                return made[-1]
            if is_step_reference(node["returns"]):
                return self.known["steps"][node["returns"]["$ref"].removeprefix("steps.")]
            return self.value(node["returns"])

        made = guard.then(block)
        if name:
            self.known["when"][name] = made
        return made


_RENAMED = {"async": "async_"}


def options(config: Mapping[str, Any]) -> dict[str, Any]:
    """A scenario's options as keyword arguments."""
    return {_RENAMED.get(key, key): value for key, value in config.items()}


def hook_nodes(nodes: Sequence[Node]) -> list[Node]:
    """The hooks of a body, at any depth."""
    found = []
    for node in nodes:
        found += (
            [node] if "hook" in node else hook_nodes(node.get("then") or node.get("parallel") or ())
        )
    return found


def compose(spec: Mapping[str, Any], world: World, workflows: Mapping[str, Any]) -> Any:
    """The workflow that `spec` describes, in the current registry.

    Raises:
        DefinitionError: it is refused.
    """
    composer = Composer(world, workflows)
    extra = {key: value for key, value in spec.get("options", {}).items() if key != "double_hook"}
    if "schedule" in extra:
        extra["schedule"] = Schedule(**extra["schedule"])

    def body(data: Any) -> Any:
        composer.input = data
        for node in spec["body"]:
            composer.node(node)
        result = composer.value(spec["returns"]) if "returns" in spec else None
        return WorkflowResponse(result, hooks=composer.hooks)

    made = workflow(spec["id"], **extra)(body)
    nodes = {node["hook"]: node for node in hook_nodes(spec["body"])}
    handled = [node for node in nodes.values() if "invoke" in node]
    if twice := spec.get("double_hook"):
        handled.append({"invoke": [{"none": True}], **nodes[twice]})
    for node in handled:
        register = getattr(made.hooks, node["hook"])
        registered = register(world.handler(node["invoke"]))
        if node.get("compensate") is not None:
            registered.compensate(world.handler(node["compensate"]))
    return made
