"""Reading: whether a schedule fires as it did, now that another version of croniter reads its expression.

The last fires of a schedule are kept, each with the version that computed it (`wfe.store.ledger`). What
another version has computed is computed again, from the first of those moments to the last. Whoever has
installed a new version learns of a difference when it is served or examined, until it has fired by the
new version as often as fires are kept.
"""

from __future__ import annotations

import shlex
from datetime import datetime
from typing import NamedTuple

from wfe.scheduling.cron import VERSION
from wfe.scheduling.plan import Plan
from wfe.store.ledger import ScheduleRow


class ChangedReading(NamedTuple):
    """What fires otherwise than before."""

    sentence: str
    #: The command that shows when it fires by now.
    preview: str


def changed_reading(plan: Plan, row: ScheduleRow) -> ChangedReading | None:
    """None where the present version has it fire as it did. `row` is what the ledger has of the plan,
    which is by the same definition."""
    others = [fire for fire in row.fires if fire.by != VERSION]
    if plan.reckoned_by is None or not others:
        return None
    first, last = others[0].at, others[-1].at
    then = {fire.at for fire in row.fires if first <= fire.at <= last}
    now = set(plan.timetable.between(first - datetime.resolution, last))
    if then == now:
        return None
    moment = min(then ^ now)
    at = moment.isoformat(timespec="seconds")
    before, by = others[-1].by, f"croniter {VERSION}"
    told = (
        f"fired at {at} by croniter {before}, and would not by {by}"
        if moment in then
        else f"would have fired at {at} by {by}, and did not by croniter {before}"
    )
    return ChangedReading(f"The schedule {plan.name} {told}.", _preview(plan))


def _preview(plan: Plan) -> str:
    if plan.origin == "workflow":
        return shlex.join(["wfe", "schedules", "preview", plan.name])
    zone = plan.schedule.timezone
    words = ["wfe", "schedules", "preview", plan.timetable.timing.text]
    return shlex.join([*words, "--tz", zone] if zone != "UTC" else words)
