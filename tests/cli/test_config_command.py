"""`wfe config`: whoever wonders which database is meant is told, and why."""

from __future__ import annotations

import pytest

from tests.project import Project
from wfe.config import SETTINGS


def test_each_setting_is_told_with_where_it_came_from(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WFE_GRACE", "3s")
    file = project.write("wfe.toml", "retention = '7d'")
    document = project.wfe("config", "--db", "my.db", "-o", "json").document
    settings = document["settings"]
    assert settings.keys() == SETTINGS.keys()
    assert (document["root"], document["file"]) == (str(project.root), str(file))
    db = str(project.root / "my.db")
    assert settings["db"] == {"value": db, "source": "flag", "origin": "--db"}
    assert settings["grace"] == {"value": 3.0, "source": "environment", "origin": "WFE_GRACE"}
    assert settings["retention"] == {"value": 604_800.0, "source": "file", "origin": str(file)}
    assert settings["color"] == {"value": "auto", "source": "default", "origin": "default"}


def test_a_pipe_gets_setting_value_and_origin(project: Project) -> None:
    lines = [line.split("\t") for line in project.wfe("config").lines]
    assert lines[0] == ["root", str(project.root), ""]
    assert ["db", str(project.db), "default"] in lines
    assert ["retention", "2592000.0", "default"] in lines


def test_a_terminal_gets_a_table(project: Project) -> None:
    out = project.wfe("config", "--color", "always").out
    assert "SETTING" in out
    assert "30d" in out


def test_it_reads_settings_and_nothing_else(project: Project) -> None:
    project.write("workflows/broken.py", "1 / 0")
    project.write("not-a-database", "x")
    assert project.wfe("config", "--db", "not-a-database").code == 0
    assert not project.db.exists()


def test_a_setting_that_means_nothing_is_refused_with_its_place(project: Project) -> None:
    file = project.write("wfe.toml", "grace = 'soon'")
    ended = project.wfe("config", "-o", "json")
    assert ended.code == 2
    assert str(file) in ended.document["error"]["message"]
