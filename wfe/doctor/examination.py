"""The examination of a project: its database, its workflows, and the machine that they are on.

    for result in examine(config, now, load_workflows): ...

Each check is a claim with what speaks against it, and the command that mends that. It changes nothing.
Modules are loaded, as unfinished executions need them; no step runs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

from wfe.config import Config
from wfe.discover import Catalog
from wfe.doctor import database, definitions, machine, readings, telling
from wfe.doctor.results import result
from wfe.errors import StoreError
from wfe.store import standing, trouble
from wfe.store.checkup import Result
from wfe.store.database import absolute, open_for_reading, open_reader


def examine(
    config: Config, now: datetime, load_workflows: Callable[[], Catalog]
) -> Iterator[Result]:
    """The result of each check as soon as it is there."""
    path = absolute(config.db)
    if not path.exists():
        yield result("database", f"there is no {path} yet: the first run makes it")
    catalog = load_workflows()
    yield definitions.modules(catalog)
    newest = None
    if path.exists():
        newest = yield from _of_database(path, config, now, catalog)
    yield telling.targets(config, catalog)
    yield machine.clock(now, newest)
    yield machine.time_zone(now)
    yield machine.software()


def _of_database(
    path: Path, config: Config, now: datetime, catalog: Catalog
) -> Generator[Result, None, datetime | None]:
    """Its checks; gives when it was last written to, where that is known."""
    patience, newest = config.busy_timeout, None
    try:
        with (
            trouble.translated(path),
            closing(open_for_reading(path, busy_timeout=patience)) as connection,
            open_reader(path, busy_timeout=patience) as reader,
        ):
            yield database.readable(path)
            yield from database.contents(connection, reader, now, patience=config.accept_timeout)
            late = now - timedelta(seconds=config.accept_timeout)
            yield telling.notices(connection, late, config, catalog)
            yield from definitions.needed(catalog, connection, reader, now)
            yield readings.readings(reader)
            newest = standing.newest(connection)
    except StoreError as error:
        yield database.unreadable(path, error)
        if database.is_another_file(path, error):
            return None
    # Now, as files that SQLite makes for a reader have the mode of the database.
    yield database.permissions(path)
    yield database.writable(path)
    return newest
