"""Settings come from the flag, else the environment, else the nearest file, else the default."""

from __future__ import annotations

from pathlib import Path

import pytest

from wfe.config import Config, load
from wfe.durations import duration
from wfe.errors import UsageError


def settings(cwd: Path, flags: dict[str, object] | None = None, **environ: str) -> Config:
    return load(flags, environ=environ, cwd=cwd)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project" / "deep" / "deeper").mkdir(parents=True)
    return tmp_path / "project"


def test_a_flag_wins_over_the_environment_that_over_the_file_that_over_the_default(
    folder: Path,
) -> None:
    assert settings(folder).values["db"].origin == "default"
    (folder / "wfe.toml").write_text('db = "file.db"')
    assert settings(folder).db == folder / "file.db"
    assert settings(folder).values["db"].origin == str(folder / "wfe.toml")
    assert settings(folder, WFE_DB="environment.db").values["db"] == (
        folder / "environment.db",
        "WFE_DB",
    )
    both = settings(folder, {"db": "flag.db"}, WFE_DB="environment.db")
    assert both.values["db"] == (folder / "flag.db", "--db")


def test_paths_in_a_file_mean_its_folder_and_those_of_flags_the_current_one(folder: Path) -> None:
    (folder / "wfe.toml").write_text('app = ["jobs", "pkg.mod"]')
    (folder / "jobs").mkdir()
    deep = folder / "deep"
    assert settings(deep).app == (str(folder / "jobs"), "pkg.mod")
    assert settings(deep, {"app": ["a.py", "pkg.mod"]}).app == (str(deep / "a.py"), "pkg.mod")
    assert settings(deep, WFE_APP="a.py:pkg.mod").app == (str(deep / "a.py"), "pkg.mod")


@pytest.mark.parametrize("marker", ["workflows", "wfe.toml", "pyproject.toml"])
def test_the_root_is_the_nearest_parent_with_a_marker(folder: Path, marker: str) -> None:
    if marker == "workflows":
        (folder / marker).mkdir()
    else:
        (folder / marker).write_text("[tool.wfe]\n" if marker == "pyproject.toml" else "")
    config = settings(folder / "deep" / "deeper")
    assert config.root == folder
    assert config.db == folder / ".wfe" / "wfe.db"


def test_without_a_marker_the_root_is_the_current_folder(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool.other]\nname = 'wfe'\n")
    assert settings(folder / "deep").root == folder / "deep"
    assert settings(folder / "deep").app == ()


def test_settings_may_lie_further_up_than_the_root(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool.wfe]\nretention = '7d'\n")
    (folder / "deep" / "workflows").mkdir()
    config = settings(folder / "deep" / "deeper")
    assert config.root == folder / "deep"
    assert config.app == (str(folder / "deep" / "workflows"),)
    assert config.retention == 7 * 86_400


def test_an_unknown_key_is_refused_with_a_near_one(folder: Path) -> None:
    (folder / "wfe.toml").write_text("retentoin = '7d'")
    with pytest.raises(UsageError, match=r"wfe\.toml: there is no setting 'retentoin'") as refused:
        settings(folder)
    assert refused.value.hint == "Did you mean retention?"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("db = 3", "3 is no text"),
        ("app = 3", "neither a text nor a list"),
        ("color = 'blue'", "'blue' is none of auto, always, never"),
        ("grace = 'soon'", "'soon' is no duration"),
        ("grace = true", "True is no duration"),
        ("accept_timeout = '99999999d'", "'99999999d' is longer than a century"),
        ("db = ", "not valid TOML"),
    ],
)
def test_a_value_that_means_nothing_is_refused_with_its_file(
    folder: Path, content: str, problem: str
) -> None:
    (folder / "wfe.toml").write_text(content)
    with pytest.raises(UsageError, match=problem) as refused:
        settings(folder)
    assert str(folder / "wfe.toml") in str(refused.value)


def test_a_bad_value_names_its_flag_or_variable(folder: Path) -> None:
    with pytest.raises(UsageError, match="WFE_SYNCHRONOUS: 'maybe' is none of full, normal"):
        settings(folder, WFE_SYNCHRONOUS="maybe")
    with pytest.raises(UsageError, match="--color: 'blue' is none of"):
        settings(folder, {"color": "blue"})


def test_an_empty_variable_counts_as_not_set(folder: Path) -> None:
    assert settings(folder, WFE_DB="").values["db"].origin == "default"


def test_two_files_with_settings_in_one_folder_are_refused(folder: Path) -> None:
    (folder / "wfe.toml").write_text("")
    (folder / "pyproject.toml").write_text("[tool.wfe]\n")
    with pytest.raises(UsageError, match="both hold settings"):
        settings(folder)


def test_a_pyproject_that_does_not_speak_of_wfe_is_not_even_parsed(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[broken")
    assert settings(folder).file is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("15m", 900),
        ("2h", 7200),
        ("7d", 604_800),
        ("45", 45),
        ("1.5h", 5400),
        (3, 3),
        ("1h30m", 5400),
        ("1d 2h", 93_600),
    ],
)
def test_durations(text: str | float, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "2 weeks", "-3s", "1e3", "30m2h", "1h1h", "h30m", "5 5"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no duration"):
        duration(text)
