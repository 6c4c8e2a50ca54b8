"""`wfe` for tests that run many commands: one process has imported all of it, and forks for each.

A command finds what the installed one would find: its words, environment, folder, streams, the terminal
that is in control of it, and the signals that reach it. Left out is what comes before it begins, nine
tenths of what a short command costs: the start of Python, and importing wfe. So it proves nothing about
that: such tests take the installed command.

    Forked(["run", "order"], cwd=folder, stdout=subprocess.PIPE)
    subprocess.run(["bash", "-c", "wfe --help"], env={**os.environ, "PATH": forking().path})

In a shell a stand-in hands on the signals that it gets, so that what is killed or stopped there is the
stand-in: then the command ends, or goes on. `Forked` is the process of the command itself.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import gc
import inspect
import io
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

import wfe
from wfe.cli import main

#: Where the installed command is.
BIN = Path(sys.executable).parent

#: What Python and wfe read of the environment while they start: where that is another one, only the
#: installed command will do.
STARTING = ("PYTHON", "LANG", "LC_", "_WFE_COMPLETE")

#: Signals that are handed on to the command.
SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)

#: What stands in for `wfe` on the PATH. It imports next to nothing, because it is what is left to pay.
STAND_IN = """\
#!{python} -IS
import _signal, _socket, array, os, sys

def installed():
    os.execv({installed!r}, [{installed!r}, *sys.argv[1:]])

starting = {{k: v for k, v in os.environ.items() if k.startswith({prefixes!r})}}
if starting != {starting!r}:
    installed()
try:
    streams = [os.dup(number) for number in range(3)]
except OSError:
    installed()  # one of them is closed
handed = array.array("i", [*streams, os.open(".", os.O_RDONLY)])
ignored = [n for n in {signals!r} if _signal.getsignal(n) == _signal.SIG_IGN]
words = ["", ",".join(map(str, ignored)), str(len(sys.argv) - 1), *sys.argv[1:]]
words += [f"{{name}}={{value}}" for name, value in os.environ.items()]
message = os.fsencode("\\0".join(words))
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
server.connect({address!r})
server.sendmsg(
    [len(message).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, handed)]
)
for number in {signals!r}:
    if number not in ignored:
        _signal.signal(number, lambda number, _: server.send(bytes([number])))
server.sendall(message)
server.recv(4)  # which process it is
ended = server.recv(2)
if len(ended) < 2:
    sys.exit("the process that forks is gone")
kind, number = ended
if kind:
    if number != _signal.SIGKILL:
        _signal.signal(number, _signal.SIG_DFL)
    os.kill(os.getpid(), number)
os._exit(number)
"""


def starting(environment: Mapping[str, str]) -> dict[str, str]:
    """What of it is read while a command starts."""
    return {k: v for k, v in environment.items() if k.startswith(STARTING)}


class Forking:
    """The process that forks, and a folder with its `wfe`, until the block ends."""

    def __init__(
        self, folder: Path, environment: Mapping[str, str], *, within: Sequence[str] = ()
    ) -> None:
        """`folder` is empty, and its name is short enough for a socket. The commands will have this
        environment, or one that differs in nothing that Python reads at its start. `within` runs another
        program, and becomes it."""
        #: Where it is asked.
        self.address = address = str(folder / "socket")
        #: What the commands find in their environment while they start.
        self.starting = starting(environment)
        stand_in = folder / "bin" / "wfe"
        stand_in.parent.mkdir()
        stand_in.write_text(
            STAND_IN.format(
                python=sys.executable,
                installed=str(BIN / "wfe"),
                prefixes=STARTING,
                starting=self.starting,
                signals=tuple(map(int, SIGNALS)),
                address=address,
            )
        )
        stand_in.chmod(0o700)
        #: What is called instead of the installed command.
        self.wfe = str(stand_in)
        #: For commands: its `wfe` comes first, then the tools of this environment.
        self.path = os.pathsep.join([str(stand_in.parent), str(BIN), os.environ["PATH"]])
        self._process = subprocess.Popen(
            [*within, sys.executable, "-m", "tests.forking", address],
            cwd=Path(__file__).parents[1],
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        #: The process that forks.
        self.pid = self._process.pid
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    def __enter__(self) -> Forking:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=30)  # it ends when nobody can talk to it


#: As the tests of this process found it, whatever one of them makes of it.
_ENVIRONMENT = dict(os.environ)
#: To be left when they have all ended.
UNTIL_THE_END = contextlib.ExitStack()


@functools.cache
def forking(**environ: str) -> Forking:
    """The one for all tests of this process, begun when one of them asks: for commands that find this
    in their environment while they start."""
    folder = UNTIL_THE_END.enter_context(tempfile.TemporaryDirectory(prefix="wfe"))
    return UNTIL_THE_END.enter_context(Forking(Path(folder), {**_ENVIRONMENT, **environ}))


_GIVEN = inspect.signature(vars(subprocess.Popen)["_execute_child"])


class Forked(subprocess.Popen[Any]):
    """A command as a process like any other, which can be killed and stopped, too."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        by: Forking | None = None,
        is_on_terminal: bool = False,
        **how: Any,
    ) -> None:
        """`how` is what `Popen` takes. All streams of one that is on a terminal are that terminal, which
        nobody else has, and which will be in control of it."""
        self._by = by or forking()
        self._is_on_terminal = is_on_terminal
        self._words = arguments
        super().__init__(["wfe", *arguments], **how)

    def _execute_child(self, *given: Any) -> None:
        """In place of what starts a program."""
        names = _GIVEN.bind(self, *given).arguments
        pipes = [names[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite")]
        pipes += [names[name] for name in ("errread", "errwrite")]
        ends = enumerate((pipes[0], pipes[3], pipes[5]))
        environment = os.environ if names["env"] is None else names["env"]
        assert starting(environment) == self._by.starting, "this takes the installed command"
        words = ["terminal" if self._is_on_terminal else "", ""]
        words += [str(len(self._words)), *self._words]
        words += [f"{name}={value}" for name, value in environment.items()]
        message = os.fsencode("\0".join(words))
        folder = os.open(names["cwd"] or ".", os.O_RDONLY)
        handed = [*(number if end == -1 else end for number, end in ends), folder]
        self._server = socket.socket(socket.AF_UNIX)
        try:
            self._server.connect(self._by.address)
            socket.send_fds(self._server, [len(message).to_bytes(4, "big")], handed)
            self._server.sendall(message)
            self.pid = int.from_bytes(self._server.recv(4), "big")
            self._child_created = True
        finally:
            os.close(folder)
            closing: Any = self
            closing._close_pipe_fds(*pipes)

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._server.settimeout(timeout)
            try:
                kind, number = self._server.recv(2)
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
            self.returncode = -number if kind else number
            self._server.close()
        return self.returncode


class Request:
    """What a stand-in asks for."""

    def __init__(self, connection: socket.socket) -> None:
        head, self.handed, _, _ = socket.recv_fds(connection, 4, 4)
        left = int.from_bytes(head, "big")
        portions = []
        while left:
            portion = connection.recv(left)
            if not portion:
                raise EOFError
            portions.append(portion)
            left -= len(portion)
        terminal, ignored, count, *words = os.fsdecode(b"".join(portions)).split("\0")
        self.is_on_terminal = bool(terminal)
        self.ignored = [int(number) for number in ignored.split(",") if number]
        self.arguments = words[: int(count)]
        self.environment = dict(word.split("=", 1) for word in words[int(count) :])


class Server:
    """Forks for whoever asks, tells how it ended, and kills what nobody waits for any more."""

    def __init__(self, address: str) -> None:
        self._asked = selectors.DefaultSelector()
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(address)
        self._listening.listen(64)
        self._children: dict[int, socket.socket] = {}
        woken, waking = os.pipe()
        self._own = [woken, waking]
        for number in (waking, woken):
            os.set_blocking(number, False)
        signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._asked.register(self._listening, selectors.EVENT_READ, self._accept)
        self._asked.register(woken, selectors.EVENT_READ, self._reap)
        self._asked.register(0, selectors.EVENT_READ, None)

    def run(self) -> None:
        """Return at the end of stdin."""
        print("ready", flush=True)
        while True:
            for key, _ in self._asked.select():
                if key.data is None:
                    return
                key.data(key.fileobj)

    def _accept(self, _: object) -> None:
        connection, _address = self._listening.accept()
        try:
            request = Request(connection)
        except (EOFError, OSError):
            connection.close()
            return
        pid = os.fork()
        if pid == 0:
            connection.close()
            self._forget()
            live(request)
        for number in request.handed:
            os.close(number)
        with contextlib.suppress(OSError):
            connection.send(pid.to_bytes(4, "big"))
        self._children[pid] = connection
        self._asked.register(connection, selectors.EVENT_READ, self._hear)

    def _hear(self, connection: socket.socket) -> None:
        """A signal for a command; or nobody waits for it."""
        pid = next(pid for pid, known in self._children.items() if known is connection)
        try:
            numbers = connection.recv(16)
        except OSError:
            numbers = b""
        for number in numbers or [signal.SIGKILL]:
            os.kill(pid, number)
        if not numbers:
            self._asked.unregister(connection)

    def _reap(self, woken: int) -> None:
        os.read(woken, 1024)
        while self._children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            connection = self._children.pop(pid)
            if connection in self._asked.get_map():
                self._asked.unregister(connection)
            code = os.waitstatus_to_exitcode(status)
            with contextlib.suppress(OSError):
                connection.send(bytes([code < 0, abs(code)]))
            connection.close()

    def _forget(self) -> None:
        """In the child: nothing of the server is open."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._asked.close()
        self._listening.close()
        for connection in self._children.values():
            connection.close()
        for number in self._own:
            os.close(number)


def live(request: Request) -> None:
    """Be the command that was asked for, from its beginning to its end."""
    code = 1
    try:
        if request.is_on_terminal:
            os.setsid()
            fcntl.ioctl(request.handed[0], termios.TIOCSCTTY, 0)
        else:
            os.setpgid(0, 0)
        for ignored in request.ignored:
            signal.signal(ignored, signal.SIG_IGN)
        *streams, folder = request.handed
        for number, handed in enumerate(streams):
            os.dup2(handed, number)
        os.fchdir(folder)
        for number in request.handed:
            os.close(number)
        os.environ.clear()
        os.environ.update(request.environment)
        time.tzset()
        sys.argv = [str(BIN / "wfe"), *request.arguments]
        sys.path[0] = str(BIN)
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            stream = _stream(number, getattr(sys, name))
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
        code = main()
        ending: Any = threading
        ending._shutdown()
        ending = atexit
        ending._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _stream(number: int, like: TextIO) -> TextIO:
    """A standard stream as Python would have made it at its start."""
    assert isinstance(like, io.TextIOWrapper)
    made = open(  # noqa: SIM115
        number,
        "r" if number == 0 else "w",
        encoding=like.encoding,
        errors=like.errors,
        newline=None if number == 0 else "\n",
        closefd=False,
    )
    made.reconfigure(line_buffering=number == 2 or made.isatty(), write_through=like.write_through)
    return made


def modules() -> Sequence[str]:
    """Every module of wfe that needs nothing which is not always there."""
    found = pkgutil.walk_packages(wfe.__path__, "wfe.")
    return [
        module.name
        for module in found
        if not module.name.startswith(("wfe.testing", "wfe.telemetry"))
        and "__main__" not in module.name
    ]


if __name__ == "__main__":
    for name in modules():
        import_module(name)
    gc.collect()
    gc.freeze()
    Server(sys.argv[1]).run()
