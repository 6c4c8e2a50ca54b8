"""A reader that looks again and again: what it is told of change, and what it has read already."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.support import fill
from wfe.errors import StoreUnusable
from wfe.store.database import open_reader


def test_a_reader_is_told_of_what_others_write_and_of_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "wfe.db"
    fill(path, "t1")
    with open_reader(path) as reader:
        assert reader.changed()
        assert not reader.changed()
        fill(path, "t2")
        assert reader.changed()
        assert not reader.changed()


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_was_deleted_or_replaced_is_told(tmp_path: Path, replaced: bool) -> None:
    path = tmp_path / "wfe.db"
    fill(path, "t1")
    with open_reader(path) as reader:
        path.rename(tmp_path / "moved.db")
        if replaced:
            fill(path, "t1")
        with pytest.raises(StoreUnusable, match="was deleted or replaced"):
            reader.changed()
