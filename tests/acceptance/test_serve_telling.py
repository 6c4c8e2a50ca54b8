"""`wfe serve` tells Prometheus, a collector of traces, and the supervisor that has started it."""

from __future__ import annotations

import gzip
import http.server
import os
import signal
import socket
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.project import Project, until

from .serving import PATIENCE, serving

PULSE = """
from wfe import Schedule, step, workflow

@step
def beat(): ...

@workflow("pulse", schedule=Schedule(interval=0.2))
def pulse():
    beat()
"""

HELD = """
import pathlib
import time

from wfe import Schedule, step, workflow

HERE = pathlib.Path(__file__).parent.parent

@step
async def hold():
    (HERE / "held").touch()
    while not (HERE / "go").exists():
        time.sleep(0.01)  # the whole loop stands still

@workflow("holding", schedule=Schedule(interval=0.2))
def holding():
    hold()
"""


@pytest.fixture
def jobs(project: Project) -> Project:
    project.write("workflows/pulse.py", PULSE)
    return project


# --- Prometheus ----------------------------------------------------------------------------------


def test_metrics_are_to_be_had_while_it_serves(jobs: Project) -> None:
    with serving(jobs, "--metrics", "127.0.0.1:0") as served:
        place = served.until(message="Metrics are at ")["message"].rpartition(" ")[2]
        served.until(event="tick", state="fired")
        served.until(event="finish")
        with urllib.request.urlopen(place) as answer:
            lines = answer.read().decode().splitlines()
    for told in (
        'wfe_executions{state="done",workflow="pulse"}',
        'wfe_ticks_total{outcome="fired",schedule="pulse"}',
        'wfe_tick_lateness_seconds_count{schedule="pulse"}',
        'wfe_step_duration_seconds_count{action="invoke",step="beat",workflow="pulse"}',
    ):
        (value,) = [line.rpartition(" ")[2] for line in lines if line.startswith(told)]
        assert float(value) >= 1, told
    assert "wfe_store_readable 1.0" in lines


def test_an_address_that_is_taken_ends_it_with_1_in_a_sentence(jobs: Project) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = jobs.execute("serve", "--metrics", place)
    assert ended.code == 1
    assert ended.err.splitlines() == [
        f"error: Metrics cannot be had at http://{place}/metrics: Address already in use.",
        "  Name another address: --metrics 127.0.0.1:9464",
    ]


# --- traces --------------------------------------------------------------------------------------


class Collector(http.server.BaseHTTPRequestHandler):
    """Takes spans: their service, and their names."""

    arrived: list[tuple[str, str]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            attributes = {one.key: one.value.string_value for one in resource.resource.attributes}
            self.arrived += [
                (attributes["service.name"], span.name)
                for scope in resource.scope_spans
                for span in scope.spans
            ]
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None: ...


@contextmanager
def collector() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Where it is, and what arrives."""
    Collector.arrived = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", Collector.arrived
        server.shutdown()


def test_traces_go_where_the_usual_variables_say(jobs: Project) -> None:
    with collector() as (place, arrived):
        with serving(jobs, "--otel", OTEL_EXPORTER_OTLP_ENDPOINT=place) as served:
            served.until(event="finish")
            served.stop()
        assert {("wfe", "beat:invoke"), ("wfe", "pulse")} <= set(arrived)
        arrived.clear()
        run = {"OTEL_EXPORTER_OTLP_ENDPOINT": place, "OTEL_SERVICE_NAME": "shop"}
        assert jobs.execute("run", "pulse", "--otel", **run).code == 0
        assert arrived == [("shop", "beat:invoke"), ("shop", "pulse")]


def test_a_collector_that_is_not_there_costs_a_sentence(jobs: Project) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        place = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        ended = jobs.execute("run", "pulse", "--otel", OTEL_EXPORTER_OTLP_ENDPOINT=place)
    assert ended.code == 0
    said = [line for line in ended.err.splitlines() if "Traces" in line]
    assert len(said) == 1
    assert said[0].startswith(f"Traces do not arrive at {place}: ")
    assert "Traceback" not in ended.err


# --- systemd -------------------------------------------------------------------------------------


class Supervisor:
    """The end of systemd: a socket that datagrams come to."""

    def __init__(self, name: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(f"\0{name[1:]}" if name.startswith("@") else name)
        self._socket.settimeout(PATIENCE)
        self.told: list[dict[str, str]] = []

    def until(self, name: str) -> dict[str, str]:
        """The next datagram that says this."""
        while True:
            lines = self._socket.recv(4096).decode().splitlines()
            self.told.append(dict(line.split("=", 1) for line in lines))
            if name in self.told[-1]:
                return self.told[-1]

    def heard(self) -> list[str]:
        """All that has come meanwhile."""
        found = []
        self._socket.setblocking(False)
        try:
            while True:
                found.append(self._socket.recv(4096).decode())
        except BlockingIOError:
            return found
        finally:
            self._socket.settimeout(PATIENCE)

    def hears_nothing_for(self, seconds: float) -> bool:
        self._socket.settimeout(seconds)
        try:
            return not self._socket.recv(4096)
        except TimeoutError:
            return True
        finally:
            self._socket.settimeout(PATIENCE)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["a file", "an abstract name"])
def supervised(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Supervisor, str]]:
    name = str(tmp_path / "notify") if request.param == "a file" else f"@wfe-test-{os.getpid()}"
    supervisor = Supervisor(name)
    yield supervisor, name
    supervisor.close()


def test_the_supervisor_hears_that_it_serves_lives_and_stops(
    jobs: Project, supervised: tuple[Supervisor, str]
) -> None:
    supervisor, name = supervised
    with serving(jobs, NOTIFY_SOCKET=name, WATCHDOG_USEC="200000") as served:
        ready = supervisor.until("READY")
        assert ready["READY"] == "1"
        assert ready["STATUS"].startswith("Serving 1 schedule, next pulse at 20")
        for _ in range(3):
            alive = supervisor.until("WATCHDOG")
            assert (alive["WATCHDOG"], alive["STATUS"][:18]) == ("1", "Serving 1 schedule")
        served.process.send_signal(signal.SIGTERM)
        assert supervisor.until("STOPPING")["STOPPING"] == "1"
        served.rest()
    assert served.process.returncode == 143


def test_a_loop_that_stands_still_does_not_say_that_it_lives(
    project: Project, tmp_path: Path
) -> None:
    supervisor = Supervisor(str(tmp_path / "notify"))
    project.write("workflows/holding.py", HELD)
    with serving(project, NOTIFY_SOCKET=str(tmp_path / "notify"), WATCHDOG_USEC="100000"):
        until((project.root / "held").exists)
        supervisor.heard()
        assert supervisor.hears_nothing_for(0.5)
        (project.root / "go").touch()
        supervisor.until("WATCHDOG")
    supervisor.close()


def test_a_watchdog_of_another_process_is_not_fed(jobs: Project, tmp_path: Path) -> None:
    supervisor = Supervisor(str(tmp_path / "notify"))
    facts = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "100000"}
    with serving(jobs, **facts, WATCHDOG_PID="1") as served:
        supervisor.until("READY")
        for _ in range(3):
            served.until(event="tick")
        assert supervisor.heard() == []
    supervisor.close()


def test_steps_and_their_programs_know_nothing_of_the_supervisor(
    project: Project, tmp_path: Path
) -> None:
    project.write(
        "workflows/env.py",
        PULSE.replace("def beat(): ...", "def beat():\n    import os; print(sorted(os.environ))"),
    )
    supervisor = Supervisor(str(tmp_path / "notify"))
    with serving(
        project, NOTIFY_SOCKET=str(tmp_path / "notify"), WATCHDOG_USEC="1000000"
    ) as served:
        printed = served.until(printed="PATH")["printed"]
    assert "NOTIFY_SOCKET" not in printed
    assert "WATCHDOG" not in printed
    supervisor.close()


def test_a_supervisor_that_is_gone_is_no_reason_to_end(jobs: Project, tmp_path: Path) -> None:
    with serving(jobs, NOTIFY_SOCKET=str(tmp_path / "nowhere"), WATCHDOG_USEC="100000") as served:
        served.until(event="tick", state="fired")
        served.until(event="tick", state="fired")
