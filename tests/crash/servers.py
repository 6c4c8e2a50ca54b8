"""The fork servers of a test run, each a process of its own: about as many as the machine has cores."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tests.crash.worker import Reply, Request

ROOT = Path(__file__).resolve().parents[2]

_T = TypeVar("_T")


class Servers:
    """Carries out requests; a context manager."""

    def __init__(self) -> None:
        self._idle: queue.SimpleQueue[_Server] = queue.SimpleQueue()
        # One more than cores: some plays wait for most of their time. Tests that run in several
        # processes share the cores.
        sharing = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        count = (min(os.cpu_count() or 1, 8) + 1) // sharing
        self._servers = [_Server() for _ in range(max(count, 1))]
        for server in self._servers:
            self._idle.put(server)

    def __enter__(self) -> Servers:
        return self

    def __exit__(self, *exception: object) -> None:
        for server in self._servers:
            server.close()

    def all(self, requests: Iterable[Request], type: type[_T]) -> Iterator[_T]:
        """What the requests came to, in their order."""
        with ThreadPoolExecutor(len(self._servers)) as threads:
            yield from threads.map(lambda request: self.one(request, type), requests)

    def one(self, request: Request, type: type[_T]) -> _T:
        """What a request came to.

        Raises:
            AssertionError: it failed.
        """
        server = self._idle.get()
        try:
            reply = server.ask(request)
        finally:
            self._idle.put(server)
        assert not reply.trouble, reply.trouble
        return msgspec.json.decode(reply.value, type=type)


class _Server:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.worker"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def ask(self, request: Any) -> Reply:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(request) + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the fork server is gone"
        return msgspec.json.decode(line, type=Reply)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=30)
