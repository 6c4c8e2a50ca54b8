"""The examination of `on_finish`: whether whoever is to be told of ends is there, and was told."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from wfe.config import OFF, Config
from wfe.discover import Catalog
from wfe.doctor.results import NAMED, result
from wfe.endings import WORKFLOW
from wfe.store.checkup import Result
from wfe.store.connection import Connection
from wfe.store.invariants import Finding
from wfe.store.notices import Notice
from wfe.store.sqlite_notices import owed


def targets(config: Config, catalog: Catalog) -> Result:
    """Who is named by the settings and by workflows."""
    claim = "whoever is to be told of ends (on_finish) is there"
    return result("on_finish", claim, _missing(config, catalog))


def _missing(config: Config, catalog: Catalog) -> Iterator[Finding]:
    said = config.values["on_finish"]
    if isinstance(said.value, str) and said.value.startswith(WORKFLOW):
        workflow = said.value.removeprefix(WORKFLOW)
        if workflow not in catalog.registry.ids():
            message = f"on_finish names the workflow {workflow!r}, which no module here defines."
            yield Finding(f"{message} It is set by {said.origin}.", mend="wfe workflows list")
    elif isinstance(said.value, tuple) and not _is_program(said.value, config.root):
        message = f"on_finish runs {said.value[0]!r}, and there is no such program."
        yield Finding(f"{message} It is set by {said.origin}.", mend="wfe config")
    for name in catalog.registry.ids():
        own = catalog.registry.get(name).on_finish
        if own and own.command and not _is_program(own.command, Path(own.folder or config.root)):
            message = f"on_finish of {name!r} runs {own.command[0]!r}"
            yield Finding(f"{message}, and there is no such program.", mend="wfe workflows check")


def _is_program(command: Sequence[str], folder: Path) -> bool:
    word = command[0]
    if os.sep in word:
        return os.access(folder / word, os.X_OK)
    return shutil.which(word) is not None


def notices(connection: Connection, before: datetime, config: Config, catalog: Catalog) -> Result:
    """What has been owed since before that moment, and nobody is about to tell."""
    late = [each for each in owed(connection, 10 * NAMED) if each.owed_since <= before]
    claim = "whoever is to be told of an end was told"
    return result("notices", claim, [_of_late(each, config, catalog) for each in late])


def _of_late(notice: Notice, config: Config, catalog: Catalog) -> Finding:
    at = notice.owed_since.isoformat(timespec="seconds")
    if _knows_whom(notice.key.workflow_id, config, catalog):
        why, mend = "the process that was to do so is gone", "wfe executions resume"
    else:
        why, mend = "nothing here says who is to be", "wfe config"
    return Finding(f"ended at {at}, and nobody was told: {why}.", str(notice.key), mend)


def _knows_whom(workflow_id: str, config: Config, catalog: Catalog) -> bool:
    if config.on_finish == OFF or workflow_id not in catalog.registry.ids():
        return False
    own = catalog.registry.get(workflow_id).on_finish
    if own is False:
        return False
    return config.on_finish is not None or (own is not None and own.run is not None)
