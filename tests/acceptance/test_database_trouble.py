"""Commands and a database that is locked, full, read-only, gone, another's or broken: one
sentence, the right exit code, and nothing lost that was there (cases P2 and P4)."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.forking import Forking
from tests.project import WFE, Ended, Project, project_in, until
from tests.store.support import kept
from wfe.store.connection import Connection
from wfe.store.database import open_for_writing

FLOWS = """
import pathlib
import time

from wfe import WorkflowResponse, step, workflow

HERE = pathlib.Path(__file__).parent.parent


@step
def echo(value):
    return value


@workflow("echo")
def echoing(value):
    return WorkflowResponse(echo(value))


@step
def first() -> int:
    (HERE / "started").touch()
    while not (HERE / "go").exists():
        time.sleep(0.01)
    return 1


@step
def second(n: int) -> int:
    return n + 1


@workflow("slow")
def slow():
    return WorkflowResponse(second(first()))


@step
def grow(size: int) -> str:
    return "x" * size


@workflow("grow")
def growing(size: int):
    return WorkflowResponse(grow.config(name="again")(second.config(name="sum")(size)))


@step(async_=True)
def ask() -> None:
    return None


@workflow("ask")
def asking():
    return WorkflowResponse(ask())
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """echo:done is done; ask:a and ask:b wait."""
    with (
        pytest.MonkeyPatch.context() as patch,
        project_in(tmp_path_factory.mktemp("made"), patch) as project,
    ):
        project.write("workflows/flows.py", FLOWS)
        assert project.wfe("run", "echo", "--tx", "done", "-i", "1").code == 0
        for tx in ("a", "b"):
            assert project.wfe("run", "ask", "--tx", tx, "--until", "waiting").code == 20
        yield project


@pytest.fixture
def stored(project: Project, made: Project) -> Project:
    """All that is in `made`, to do with as one likes."""
    project.copy(made)
    return project


def end(running: subprocess.Popen[str]) -> Ended:
    out, err = running.communicate(timeout=60)
    return Ended(running.returncode, out, err)


@contextmanager
def locked(project: Project) -> Iterator[sqlite3.Connection]:
    """Somebody holds the exclusive lock, until the block rolls it back."""
    with closing(sqlite3.connect(project.db, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield other


def rows(project: Project) -> list[str]:
    with closing(sqlite3.connect(project.db)) as connection:
        return list(connection.iterdump())


def states(project: Project) -> dict[str, str]:
    """Key → status of all there is."""
    lines = project.wfe("executions", "list", "--limit", "0").lines
    return {line.split("\t")[0]: line.split("\t")[1] for line in lines}


def assert_one_sentence(ended: Ended) -> None:
    """An error, what helps, and no traceback."""
    first, *hints = ended.err.rstrip("\n").split("\n")
    assert first.startswith("error: "), ended.err
    assert all(hint.startswith("  ") for hint in hints), ended.err
    assert "internal" not in ended.err


WRITING: Sequence[tuple[str, ...]] = (
    ("run", "echo", "--tx", "new", "-i", "2"),
    ("step", "succeed", "ask:a", "--response", '"yes"'),
    ("gc", "--older", "0s", "-y"),
    ("db", "compact"),
)
READING: Sequence[tuple[str, ...]] = (
    ("executions", "list"),
    ("executions", "show", "ask:a"),
    ("gc", "--dry-run"),
    ("db", "info"),
    ("db", "check"),
)


# --- locked (P2) ---------------------------------------------------------------------------------


def test_a_lock_of_two_seconds_is_waited_for_by_every_command(stored: Project) -> None:
    with locked(stored) as other:
        running = [stored.start(*words) for words in (*WRITING, *READING)]
        time.sleep(2)  # the length of the lock is what this is about
        other.execute("ROLLBACK")
        ended = [end(each) for each in running]
    for words, each in zip((*WRITING, *READING), ended, strict=True):
        assert each.code in (0, 75), (words, each.err)
        if each.code == 75:
            assert_one_sentence(each)
    assert set(states(stored).values()) <= {"done", "waiting"}
    assert stored.wfe("db", "check").code == 0


def test_a_lock_that_stays_ends_what_writes_with_75_and_nothing_is_written(
    stored: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WFE_BUSY_TIMEOUT", "0.02")
    before = rows(stored)
    with locked(stored):
        for words in WRITING:
            ended = stored.execute(*words)
            assert ended.code == 75, (words, ended.err)
            assert_one_sentence(ended)
        for words in READING:
            assert stored.execute(*words).code == 0, words
        failed = stored.execute(*WRITING[0], "-o", "json")
    assert (failed.code, failed.document["error"]["code"]) == (75, "store_busy")
    assert rows(stored) == before


def test_where_nobody_can_read_either_every_command_ends_with_75(
    stored: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WFE_BUSY_TIMEOUT", "0.02")
    before = rows(stored)
    with closing(sqlite3.connect(stored.db, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        for words in (*WRITING, *READING, ("db", "migrate"), ("db", "backup", "copy.db")):
            ended = stored.wfe(*words)
            assert ended.code == 75, (words, ended.err)
            assert_one_sentence(ended)
    assert rows(stored) == before
    assert not (stored.root / "copy.db").exists()


def test_a_lock_that_comes_while_a_step_runs_costs_nothing_that_was_accepted(
    stored: Project,
) -> None:
    running = stored.start("run", "slow", "--tx", "t1", WFE_BUSY_TIMEOUT="0.1")
    until((stored.root / "started").exists)
    with locked(stored):
        (stored.root / "go").touch()
        ended = end(running)
    assert ended.code == 75, ended.err
    assert states(stored)["slow:t1"] == "interrupted"
    again = stored.execute("run", "slow", "--tx", "t1")
    assert (again.code, again.out) == (0, "2\n")


# --- full, read-only (P4) ------------------------------------------------------------------------


def _namespace() -> list[str]:
    """The command that runs another with mounts of its own; empty where this user may not."""
    unshare = shutil.which("unshare")
    if unshare is None or shutil.which("nsenter") is None:
        return []
    words = [unshare, "--mount"] if os.geteuid() == 0 else [unshare, "--mount", "--map-root-user"]
    tried = subprocess.run(
        [*words, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False
    )
    return words if tried.returncode == 0 else []


@pytest.fixture(scope="module")
def mounting() -> Iterator[Forking]:
    """What it forks has mounts that nobody else has."""
    within = _namespace()
    if not within:
        pytest.skip("this user may not mount anything")
    with (
        tempfile.TemporaryDirectory(prefix="wfe") as folder,
        Forking(Path(folder), os.environ, within=within) as made,
    ):
        yield made


@pytest.fixture
def script(stored: Project, mounting: Forking) -> Callable[[str], list[str]]:
    """Runs shell commands where they may mount, in the project; gives the lines they print."""
    target = ["--target", str(mounting.pid), "--mount"]
    if os.geteuid() != 0:
        target += ["--user", "--preserve-credentials"]

    def run(commands: str) -> list[str]:
        ended = subprocess.run(
            ["nsenter", *target, "/bin/sh", "-euc", f"cd '{stored.root}'\n{commands}"],
            env={**os.environ, "WFE": mounting.wfe},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.splitlines()

    return run


#: A small disk, on which the database lies; `say` runs a command and prints its exit code.
SMALL_DISK = """
say() { code=0; "$@" 2>err || code=$?; echo "code $code"; }
cp .wfe/wfe.db saved.db
mount -t tmpfs -o size=700k tmpfs .wfe
cp saved.db .wfe/wfe.db
"""


def test_a_full_disk_is_75_and_what_was_there_stays(script: Callable[[str], list[str]]) -> None:
    printed = script(f"""{SMALL_DISK}
        head -c 900000 /dev/zero | tr '\\0' x | sed 's/^/"/; s/$/"/' > big.json
        say "$WFE" run echo --tx big -i @big.json
        cat err
        say "$WFE" db check -o json > /dev/null
        say "$WFE" executions list -o key
    """)
    assert printed[0] == "code 75"
    assert "There is no space left to write the database" in printed[1]
    assert printed[-4:] == ["ask:b", "ask:a", "echo:done", "code 0"]


def test_a_disk_that_fills_up_in_the_middle_interrupts_and_fails_nothing(
    script: Callable[[str], list[str]],
) -> None:
    printed = script(f"""{SMALL_DISK}
        say "$WFE" run grow --tx g -i 900000
        "$WFE" executions list -w grow | cut -f 1,2
        mount -o remount,size=20m .wfe
        say "$WFE" run grow --tx g > out
        wc -c < out
        cat out | tail -1
    """)
    assert printed[:2] == ["code 75", "grow:g\tinterrupted"]
    assert int(printed[2]) > 900_000
    assert printed[3] == "code 0"


def test_a_copy_to_a_full_disk_leaves_no_copy(script: Callable[[str], list[str]]) -> None:
    printed = script("""
        say() { code=0; "$@" 2>err || code=$?; echo "code $code"; }
        mkdir small
        mount -t tmpfs -o size=20k tmpfs small
        say "$WFE" db backup small/copy.db
        cat err
        ls -A small
    """)
    assert printed[0] == "code 75"
    assert "no space left to write the database" in printed[1]
    assert "small/copy.db" in printed[1]
    assert len(printed) == 3


def test_a_read_only_disk_can_be_read_and_refuses_the_rest(
    script: Callable[[str], list[str]],
) -> None:
    printed = script("""
        say() { code=0; "$@" 2>err || code=$?; echo "code $code"; }
        mount --bind .wfe .wfe
        mount -o remount,bind,ro .wfe
        say "$WFE" executions list -o key
        say "$WFE" db check > /dev/null
        say "$WFE" db info > /dev/null
        say "$WFE" db backup copy.db > /dev/null
        "$WFE" executions list --db copy.db --count
        for words in "run echo -i 1" "step succeed ask:a" "gc --older 0s -y" "db compact"; do
            say "$WFE" $words
            head -1 err
        done
    """)
    assert printed[:4] == ["ask:b", "ask:a", "echo:done", "code 0"]
    assert printed[4] == "3"
    rest = printed[5:]
    assert rest[0::2] == ["code 1"] * 4
    assert all("error: The database" in line for line in rest[1::2])


# --- gone (P4) -----------------------------------------------------------------------------------


@pytest.mark.parametrize("replaced", [False, True])
def test_a_database_that_is_deleted_while_a_step_runs_is_told_and_not_made_anew(
    stored: Project, replaced: bool
) -> None:
    running = stored.start("run", "slow", "--tx", "t1")
    until((stored.root / "started").exists)
    kept_aside = stored.root / "aside.db"
    with closing(sqlite3.connect(stored.db)) as connection:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    shutil.copy(stored.db, kept_aside)
    for path in stored.db.parent.iterdir():
        path.unlink()
    if replaced:
        shutil.copy(kept_aside, stored.db)
    before = stored.db.read_bytes() if replaced else None
    (stored.root / "go").touch()
    ended = end(running)
    assert ended.code == 1, ended.err
    assert "was deleted or replaced while it was in use" in ended.err
    if replaced:
        assert stored.db.read_bytes() == before
    else:
        assert not stored.db.exists()


def test_a_database_that_is_deleted_while_an_execution_only_waits_is_told(stored: Project) -> None:
    running = stored.start("run", "ask", "--tx", "w")
    assert running.stderr is not None
    line = ""
    while "\tanswer\t" not in line:
        line = running.stderr.readline()
        assert line, "it ended before it waited"
    for path in stored.db.parent.iterdir():
        path.unlink()
    ended = end(running)
    assert ended.code == 1, ended.err
    assert "was deleted or replaced while it was in use" in ended.err
    assert not stored.db.exists()


# --- another's, broken (P4) ----------------------------------------------------------------------


def newer(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("INSERT INTO schema_version VALUES (99, 'of the future', 0)")


def text(file: Path) -> None:
    file.write_text("Dear diary,\n" * 400)


def short_text(file: Path) -> None:
    file.write_text("x")


def of_another_program(file: Path) -> None:
    file.unlink()
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE workflow_execution (id)")


def truncated(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 8192 * 4096)


def broken_schema(file: Path) -> None:
    with file.open("r+b") as stream:
        stream.seek(100)
        stream.write(b"\x55" * 3996)


def without_header(file: Path) -> None:
    with file.open("r+b") as stream:
        stream.write(b"\x55" * 100)


@pytest.mark.parametrize(
    "spoil",
    [newer, text, short_text, of_another_program, truncated, broken_schema, without_header],
    ids=lambda spoil: spoil.__name__,
)
def test_what_is_no_usable_database_is_one_sentence_and_left_as_it_is(
    stored: Project, spoil: Callable[[Path], None]
) -> None:
    with closing(sqlite3.connect(stored.db)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    spoil(stored.db)
    with closing(sqlite3.connect(stored.db)) as connection:
        if spoil is newer:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = stored.db.read_bytes()
    of_the_file = () if spoil is newer else (("db", "info"), ("db", "backup", "copy.db"))
    for words in (*WRITING, *READING[:3], ("db", "migrate"), *of_the_file):
        ended = stored.wfe(*words)
        assert ended.code == 1, (words, ended)
        assert_one_sentence(ended)
        assert str(stored.db) in ended.err
        document = stored.wfe(*words, "-o", "json").document
        assert document["ok"] is False
    assert stored.wfe("db", "check").code == 1
    assert stored.db.read_bytes() == before
    assert not (stored.root / "copy.db").exists()
    ended = stored.execute("executions", "list")
    assert ended.code == 1
    assert_one_sentence(ended)


def test_a_database_that_another_process_is_making_is_not_another_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = Connection.pragma

    def pragma(connection: Connection, name: str) -> object:
        """Just after the first look at a file that is empty, the other process has made it."""
        found = looked(connection, name)
        monkeypatch.setattr(Connection, "pragma", looked)
        open_for_writing(tmp_path / "wfe.db").close()
        return found

    monkeypatch.setattr(Connection, "pragma", pragma)
    open_for_writing(tmp_path / "wfe.db").close()
    assert kept(tmp_path / "wfe.db") == []


def test_what_was_locked_full_or_broken_for_a_while_is_all_there_afterwards(
    stored: Project,
) -> None:
    whole = stored.db.read_bytes()
    truncated(stored.db)
    assert stored.execute("run", "echo", "-i", "1").code == 1
    stored.db.write_bytes(whole)
    assert kept(stored.db) == ["done", "a", "b"]
    assert stored.execute("step", "succeed", "ask:a", "--response", '"yes"').code == 0


# --- whose it is ---------------------------------------------------------------------------------


def test_whatever_the_umask_what_is_written_is_its_owners_alone(stored: Project) -> None:
    shutil.rmtree(stored.db.parent)
    loose = "umask 000; exec"
    command = f"{loose} '{WFE}' run echo -i 1 --events events.jsonl"
    for line in (command, f"{loose} '{WFE}' db backup copy.db"):
        subprocess.run(["/bin/sh", "-c", line], cwd=stored.root, check=True, capture_output=True)
    for path in (stored.db, stored.root / "events.jsonl", stored.root / "copy.db"):
        assert path.stat().st_mode & 0o777 == 0o600, path
    assert stored.db.parent.stat().st_mode & 0o777 == 0o700
