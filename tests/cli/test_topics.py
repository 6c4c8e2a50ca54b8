"""`wfe help TOPIC`: each topic is there, fits a terminal, and leaves out nothing that there is."""

from __future__ import annotations

import re

import pytest

from tests.project import Project
from wfe.cli.commands.help import TOPICS
from wfe.config import SETTINGS


@pytest.mark.parametrize("topic", TOPICS)
def test_a_topic_is_text_of_at_most_104_columns(project: Project, topic: str) -> None:
    ended = project.wfe("help", topic)
    assert (ended.code, ended.err) == (0, "")
    assert len(ended.lines) >= 5
    assert max(map(len, ended.lines)) <= 104


def test_the_topics_are_listed(project: Project) -> None:
    for text in (project.wfe("help").out, project.wfe("help", "--help").out):
        assert all(topic in text for topic in TOPICS)


def test_every_setting_and_its_default_is_explained(project: Project) -> None:
    text = project.wfe("help", "environment").out
    for setting in SETTINGS:
        assert re.search(rf"^  WFE_{setting.upper()} +{setting} ", text, re.MULTILINE)
    defaults = project.wfe("config", "-o", "json").document["settings"]
    shown = {"retention": "30d", "busy_timeout": "5s", "grace": "10s", "accept_timeout": "30s"}
    seconds = {"30d": 2_592_000, "5s": 5, "10s": 10, "30s": 30}
    for setting, text_of in shown.items():
        assert defaults[setting]["value"] == seconds[text_of]
        assert re.search(rf"^  WFE_{setting.upper()} .*; {text_of}$", text, re.MULTILINE)


def test_a_topic_that_is_none_is_refused_with_a_near_one(project: Project) -> None:
    ended = project.wfe("help", "enviroment")
    assert ended.code == 2
    assert "Did you mean environment?" in ended.err
