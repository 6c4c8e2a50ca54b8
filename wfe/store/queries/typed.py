"""What a person types to find executions, as conditions.

    order 0042  state=failed,reverted  created>2h  error~"connection reset"  input.customer.id=42

Each word has to be true. A bare word is looked for in the workflow, the transaction, the state and the
run id. `field=value` compares a field: `=` and `!=` with the whole value, `~` with a part of it whatever
its case, `>`, `<`, `>=` and `<=` with what sorts before or after it. Several values, separated by commas,
are alternatives. What is quoted means itself: `"a=b"` is a word. (`words` has the quotation marks.)

A field that there is not is refused, for an empty list would be taken for an answer; so is a state that
there is not, and an operator that a field has no use for.
"""

from __future__ import annotations

import re
from datetime import datetime

from wfe.errors import UsageError
from wfe.model import ExecutionState
from wfe.store.queries.conditions import Condition, Operator, Test, Word, containing, well_formed
from wfe.store.queries.fields import FIELDS, OPERATORS, STATUSES, Asked, either, near, unknown
from wfe.store.queries.words import Typed, words

#: Names that one may try, and what is meant.
_ALSO_CALLED = {
    "tx": "transaction",
    "id": "transaction",
    "name": "workflow",
    "started": "created",
    "result": "output",
    "message": "error",
    "payload": "input",
}


def conditions(text: str, now: datetime) -> tuple[Condition, ...]:
    """What `text` asks for; relative times are counted from `now`.

    Raises:
        UsageError: an unknown field or state, or what else means nothing; the message says what there is.
    """
    return tuple(_condition(word, now) for word in words(well_formed(text)) if word.text)


def states(listed: str) -> Condition:
    """One of the states and statuses in a list such as `failed,waiting`.

    Raises:
        UsageError: one that there is not.
    """
    names = [name.strip() for name in listed.split(",")]
    for name in names:
        if name not in (*ExecutionState, *STATUSES):
            raise unknown("state", name, [*map(str, ExecutionState), *STATUSES])
    stored = tuple(name for name in names if name in list(ExecutionState))
    shown = tuple(name for name in names if name not in stored)
    chosen = {"state": stored, "shown": shown}
    return either([Test(field, Operator.IN, each) for field, each in chosen.items() if each])


# --- words ---------------------------------------------------------------------------------------


def _condition(word: Typed, now: datetime) -> Condition:
    sign = _sign(word)
    if sign is None:
        return Word(containing(word.text))
    field, *path = word.part(0, sign.start()).split(".")
    name = field.text
    if name not in FIELDS:
        raise _unknown_field(word.text, name)
    asked = Asked(
        word=word.text,
        name=word.text[: sign.start()],
        path=tuple(part.text for part in path),
        sign=sign[0],
        values=tuple(value.text for value in word.part(sign.end()).split(",")),
        now=now,
    )
    if sign[0] not in OPERATORS:
        raise asked.refuse(f"there is no operator {sign[0]}. There are: {' '.join(OPERATORS)}.")
    return FIELDS[name](asked)


def _sign(word: Typed) -> re.Match[str] | None:
    """The first operator in it that was not quoted, right or wrong."""
    runs = re.finditer(r"[=!<>~]+", word.bare)
    return next((run for run in runs if run[0].strip("!")), None)


def _unknown_field(word: str, name: str) -> UsageError:
    quoted = f"To find {word!r} as it stands, put it in quotes. wfe help query tells more."
    if not name:
        return UsageError(f"{word!r} compares no field.", hint=quoted)
    meant = _ALSO_CALLED.get(name) or near(name, list(FIELDS))
    suggestion = f" Did you mean {meant}?" if meant else ""
    return UsageError(
        f"Executions have no field {name!r}.{suggestion}",
        hint=f"There are: {', '.join(map(_shown, FIELDS))}. {quoted}",
    )


def _shown(field: str) -> str:
    return {"step": "step.NAME", "input": "input.PATH", "output": "output.PATH"}.get(field, field)
