"""The examination of schedules: whether they fire as they did, now that another version of the package
that reads their expressions is here."""

from __future__ import annotations

from collections.abc import Iterator

from wfe.doctor.results import quoted, result
from wfe.errors import InvalidSchedule
from wfe.store.checkup import Result
from wfe.store.invariants import Finding
from wfe.store.ledger import ScheduleRow
from wfe.store.reader import SQLiteReader


def readings(reader: SQLiteReader) -> Result:
    """Which schedules fire otherwise than before."""
    # Nothing else needs croniter, whose import takes as long as all other checks together.
    rows = [row for row in reader.ledger.schedules() if row.fires]
    claim = "every schedule fires as it did by the croniter that was here before"
    return result("readings", claim, (finding for row in rows for finding in _of_row(row)))


def _of_row(row: ScheduleRow) -> Iterator[Finding]:
    from wfe.scheduling.cron import VERSION
    from wfe.scheduling.plan import known_plan
    from wfe.scheduling.reading import changed_reading

    try:
        change = changed_reading(known_plan(row), row)
    except InvalidSchedule as error:
        message = f"The schedule {row.name!r} cannot be read by croniter {VERSION}: {error.message}"
        yield Finding(message, mend=f"wfe schedules show {quoted(row.name)}")
        return
    if change is not None:
        yield Finding(change.sentence, mend=change.preview)
