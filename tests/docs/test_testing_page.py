"""docs/test-your-workflows.md: every example runs."""

from __future__ import annotations

import importlib.util
import re
from collections import defaultdict
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "test-your-workflows.md").read_text()

#: A fenced block; its first line names its file, and the plugin that it needs where it needs one.
_BLOCK = re.compile(r"^```python\n# (?:(\S+): )?(\S+\.py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

_A_TEST = """
import asyncio, pytest

@pytest.mark.{mark}
async def test_time_is_virtual():
    await asyncio.sleep(30 * 24 * 3600)
    assert asyncio.get_running_loop().time() >= 30 * 24 * 3600
"""


def files(plugin: str = "") -> dict[str, str]:
    """The files that the page spells out, block by block."""
    found: dict[str, str] = defaultdict(str)
    for needs, name, content in _BLOCK.findall(PAGE):
        if needs == plugin:
            found[name] += content
    return found


def write(pytester: pytest.Pytester, contents: dict[str, str]) -> None:
    for name, content in contents.items():
        (pytester.path / name).write_text(content)


@pytest.fixture
def alone(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A pytest that has the plugins that it is given, and no others."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return pytester


def test_every_block_of_python_names_its_file() -> None:
    assert len(_BLOCK.findall(PAGE)) == PAGE.count("```python")


def test_every_example_passes(alone: pytest.Pytester) -> None:
    contents = files()
    write(alone, contents)
    result = alone.runpytest_subprocess("-p", "wfe.testing.plugin", "-W", "error")
    tests = sum(content.count("\ndef test_") for content in contents.values())
    result.assert_outcomes(passed=tests)


@pytest.mark.parametrize(
    ("plugin", "module", "mark"),
    [
        ("pytest-asyncio", "pytest_asyncio.plugin", "asyncio"),
        ("anyio", "anyio.pytest_plugin", "anyio"),
    ],
)
def test_an_async_test_has_virtual_time(
    alone: pytest.Pytester, plugin: str, module: str, mark: str
) -> None:
    contents = files(plugin)
    if importlib.util.find_spec(module.partition(".")[0]) is None:
        compile(contents["conftest.py"], "conftest.py", "exec")
        pytest.skip(f"{plugin} is not installed")
    write(alone, contents | {"test_async.py": _A_TEST.format(mark=mark)})
    alone.runpytest_subprocess("-p", module).assert_outcomes(passed=1)
