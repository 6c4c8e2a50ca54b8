"""What has to be true of the executions in a database, whoever wrote them: the checks of what is in it.

Each is a question that gives the runs for which it does not hold. No question takes an index for
granted, for an index may be what is wrong; and none stumbles over what another one is to find.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from wfe.model import ExecutionState, StepState, StepStatus
from wfe.store.connection import Connection
from wfe.store.tables import FINISHED, UNFINISHED


class Finding(NamedTuple):
    """Something that is not as it should be."""

    message: str
    #: The execution that it is about.
    key: str | None = None
    #: The command that mends it.
    mend: str | None = None


class Check(NamedTuple):
    """A claim, and a function that yields a finding for each place where it does not hold."""

    name: str
    claim: str
    look: Callable[[Connection], Iterator[Finding]]


#: Each gives workflow id, transaction id, run id, and what its sentence says of that run.
_KEY = "e.workflow_id, e.transaction_id, e.run_id"


def _found(
    question: str, sentence: Callable[..., str]
) -> Callable[[Connection], Iterator[Finding]]:
    def look(connection: Connection) -> Iterator[Finding]:
        for workflow, transaction, run, *values in connection.raw.execute(question):
            yield Finding(f"run {run}: {sentence(*values)}", f"{workflow}:{transaction}")

    return look


def _list(words: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)


_TWO_UNFINISHED = f"""
SELECT {_KEY}, count(*) FROM workflow_execution e NOT INDEXED
WHERE {UNFINISHED} AND deleted_at IS NULL
GROUP BY workflow_id, transaction_id HAVING count(*) > 1
"""

_STATES = f"""
SELECT {_KEY}, 'its state ' || quote(e.state) FROM workflow_execution e NOT INDEXED
WHERE state NOT IN ({_list(ExecutionState)})
UNION ALL
SELECT {_KEY}, 'the state of step ' || s.name
FROM execution_step s JOIN workflow_execution e ON e.id = s.execution_id
WHERE s.invoke NOT IN ({_list(StepState)}) OR s.compensate NOT IN ({_list(StepState)})
   OR s.invoke_status NOT IN ({_list(StepStatus)})
   OR s.compensate_status NOT IN ({_list(StepStatus)})
"""

_ENDS = f"""
SELECT {_KEY}, e.state FROM workflow_execution e NOT INDEXED
WHERE ({FINISHED} AND ended_at IS NULL) OR ({UNFINISHED} AND expires_at IS NOT NULL)
"""

_COUNTERS = f"""
SELECT {_KEY}, e.running, e.awaiting, coalesce(s.running, 0), coalesce(s.awaiting, 0)
FROM workflow_execution e NOT INDEXED LEFT JOIN (
    SELECT execution_id, sum(awaiting) AS awaiting,
           sum(CASE WHEN json_valid(record) THEN coalesce(json_extract(record, '$.running'), 0)
               END) AS running
    FROM execution_step GROUP BY execution_id
) s ON s.execution_id = e.id
WHERE e.running <> coalesce(s.running, 0) OR e.awaiting <> coalesce(s.awaiting, 0)
"""

_VERSIONS = f"""
SELECT {_KEY}, max(v.version), e.version
FROM execution_event v JOIN workflow_execution e ON e.id = v.execution_id
GROUP BY e.serial HAVING max(v.version) > e.version
"""

_RESULTS = f"""
SELECT {_KEY} FROM workflow_execution e NOT INDEXED
LEFT JOIN execution_payload p ON p.execution_id = e.id
WHERE e.state = 'done' AND p.result IS NULL AND CASE WHEN json_valid(e.execution) THEN NOT EXISTS (
    SELECT 1 FROM json_each(e.execution, '$.errors') WHERE json_extract(value, '$.action') IS NULL
) END
"""

_TEXTS = f"""
SELECT {_KEY}, 'its head' FROM workflow_execution e NOT INDEXED WHERE NOT json_valid(execution)
UNION ALL
SELECT {_KEY}, 'its input or result'
FROM execution_payload p JOIN workflow_execution e ON e.id = p.execution_id
WHERE NOT json_valid(coalesce(p.input, 'null')) OR NOT json_valid(coalesce(p.result, 'null'))
UNION ALL
SELECT {_KEY}, 'step ' || s.name
FROM execution_step s JOIN workflow_execution e ON e.id = s.execution_id
WHERE NOT json_valid(s.record) OR NOT json_valid(coalesce(s.output, 'null'))
   OR NOT json_valid(coalesce(s.compensate_with, 'null'))
   OR NOT json_valid(coalesce(s.error, 'null'))
UNION ALL
SELECT {_KEY}, 'an entry of its timeline'
FROM execution_event v JOIN workflow_execution e ON e.id = v.execution_id
WHERE NOT json_valid(coalesce(v.error, 'null'))
"""

#: One run for each step that a workflow has had: few, however many executions there are.
_STEPS = f"""
SELECT {_KEY}, s.name, count(*)
FROM execution_step s JOIN workflow_execution e ON e.id = s.execution_id
GROUP BY e.workflow_id, s.name
"""


def _steps(connection: Connection) -> Iterator[Finding]:
    """An execution that went on by a changed workflow keeps the records of steps that are gone; they
    are in the flow that it had before, which is kept for good."""
    names: dict[str, set[str]] = defaultdict(set)
    flows = connection.raw.execute("SELECT digest, workflow_id, flow FROM definition")
    for digest, workflow, flow in flows:
        try:
            names[workflow].update(json.loads(flow)["steps"])
        except (ValueError, KeyError, TypeError):
            yield Finding(f"The flow {digest} of workflow {workflow} cannot be read.")
    for workflow, transaction, run, step, count in connection.raw.execute(_STEPS):
        if step not in names[workflow]:
            others = f", and {count - 1} runs more have it" if count > 1 else ""
            message = f"run {run}: its workflow never had a step {step}{others}."
            yield Finding(message, f"{workflow}:{transaction}")


#: One that is owed for an end that there was; of what was taken back it may be owed still.
_NOTICES = f"""
SELECT {_KEY}, n.version, e.version
FROM execution_notice n JOIN workflow_execution e ON e.id = n.execution_id
WHERE n.version > e.version OR (n.version = e.version AND e.{UNFINISHED})
"""


INVARIANTS = (
    Check(
        "values",
        "what is stored as JSON is JSON",
        _found(_TEXTS, lambda what: f"{what} cannot be read."),
    ),
    Check(
        "states",
        "every state is one there is",
        _found(_STATES, lambda what: f"{what} is unknown."),
    ),
    Check(
        "unfinished",
        "of a key one run at most is unfinished",
        _found(_TWO_UNFINISHED, lambda count: f"{count} runs of this key are unfinished."),
    ),
    Check(
        "ends",
        "an execution has an end once it is over",
        _found(_ENDS, lambda state: f"it is {state}, and its end does not say so."),
    ),
    Check(
        "counters",
        "each execution counts its steps right",
        _found(
            _COUNTERS,
            lambda running, awaiting, really, waiting: (
                f"it says that {running} steps run and {awaiting} wait; {really} and {waiting} do."
            ),
        ),
    ),
    Check("steps", "every step is one that its workflow has or had", _steps),
    Check(
        "timelines",
        "no event is newer than its execution",
        _found(
            _VERSIONS,
            lambda event, version: f"it has version {version}, and an event of version {event}.",
        ),
    ),
    Check(
        "notices",
        "a notice is owed only of what has ended",
        _found(
            _NOTICES,
            lambda owed, version: (
                f"of version {owed} of it a notice is owed, and it is unfinished at {version}."
            ),
        ),
    ),
    Check("results", "what is done has a result", _found(_RESULTS, lambda: "its result is gone.")),
)
