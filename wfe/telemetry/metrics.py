"""Metrics for Prometheus: how many executions there are, how long steps take, how late ticks are.

What is counted here is what this process has done; several that serve one database are added up by
whoever reads them. What is read from the store is the same in all of them, and is read when somebody
asks, in the thread that answers, by a connection of its own: the loop never waits for it, and what
cannot be read is left out.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from importlib.metadata import version
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from wfe.errors import StoreError, WfeError
from wfe.model import Event, EventKind
from wfe.store.contract import Query, Reader
from wfe.store.ledger import Tick

#: Gives the store, to be read and closed again; None: there is none yet.
OpenReader = Callable[[], AbstractContextManager[Reader | None]]

#: Upper bounds of histograms, in seconds.
_DURATIONS = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600)
_LATENESS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600)

#: Name of a queue → the status of the executions in it.
_QUEUES = {"running": "running", "waiting": "waiting", "sleeping": "sleeping", "due": "interrupted"}

#: Attempts whose end is still to come; beyond that, the oldest are taken for lost.
_OPEN = 100_000

_ENDS = frozenset(
    {
        EventKind.STEP_SUCCESS,
        EventKind.STEP_FAILURE,
        EventKind.STEP_AWAITING,
        EventKind.COMPENSATE_STEP_SUCCESS,
        EventKind.COMPENSATE_STEP_FAILURE,
    }
)


class Address(NamedTuple):
    """Where metrics are to be had; port 0: any that is free."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/metrics"


class Metrics:
    """Counts what it is told, a subscriber (`on_event`) and a listener to ticks (`on_tick`)."""

    def __init__(self, open_reader: OpenReader, *, started_at: datetime) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(_Stored(open_reader))
        self._durations = Histogram(
            "wfe_step_duration_seconds",
            "How long an attempt of a step, or of its undo, took: until it returned or raised.",
            ("workflow", "step", "action"),
            registry=self.registry,
            buckets=_DURATIONS,
        )
        self._lateness = Histogram(
            "wfe_tick_lateness_seconds",
            "From the moment of a tick that was run to the moment at which that was written down.",
            ("schedule",),
            registry=self.registry,
            buckets=_LATENESS,
        )
        self._ticks = Counter(
            "wfe_ticks",
            "Ticks that were decided on, by what became of them: fired, overlap, paused, missed, error.",
            ("schedule", "outcome"),
            registry=self.registry,
        )
        started = Gauge(
            "process_start_time_seconds",
            "When this process began to serve, in seconds since 1970.",
            registry=self.registry,
        )
        started.set(started_at.timestamp())
        build = Gauge("wfe_build_info", "What serves.", ("version",), registry=self.registry)
        build.labels(version("wfe")).set(1)
        self._open: OrderedDict[tuple[str, ...], datetime] = OrderedDict()

    def on_event(self, event: Event) -> None:
        """Something has happened to an execution."""
        if event.step is None:
            return
        key = (event.workflow_id, event.run_id, event.step, str(event.action))
        if event.kind is EventKind.STEP_BEGIN:
            self._open[key] = event.time
            self._open.move_to_end(key)
            if len(self._open) > _OPEN:
                self._open.popitem(last=False)
        elif event.kind in _ENDS and (begun := self._open.pop(key, None)) is not None:
            took = (event.time - begun).total_seconds()
            self._durations.labels(event.workflow_id, event.step, str(event.action)).observe(took)

    def on_tick(self, tick: Tick) -> None:
        """A tick was decided on."""
        self._ticks.labels(tick.schedule, tick.reason or tick.state).inc()
        if tick.kind == "tick" and tick.state == "fired":
            self._lateness.labels(tick.schedule).observe(tick.late_by)

    @contextmanager
    def served(self, address: Address) -> Iterator[Address]:
        """Answer at this address until the context ends; gives the one with the real port.

        Raises:
            WfeError: it cannot be had.
        """
        try:
            server, thread = start_http_server(address.port, address.host, self.registry)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise WfeError(
                f"Metrics cannot be had at {address}: {reason}.",
                hint="Name another address: --metrics 127.0.0.1:9464",
            ) from None
        try:
            yield Address(address.host, server.server_port)
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


class _Stored(Collector):
    """What the store says at the moment at which it is asked."""

    def __init__(self, open_reader: OpenReader) -> None:
        self._open_reader = open_reader
        self._turn = threading.Lock()

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Nothing is asked only to learn the names."""
        yield from ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        readable = GaugeMetricFamily("wfe_store_readable", "Whether the store could be read.")
        families: list[GaugeMetricFamily] = []
        try:
            with self._turn, self._open_reader() as reader:
                if reader is not None:
                    families = [_executions(reader), _queues(reader)]
        except StoreError:
            families = []
        readable.add_metric((), bool(families))
        yield readable
        yield from families


def _executions(reader: Reader) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "wfe_executions", "Executions in the store, by state.", labels=("workflow", "state")
    )
    for (workflow, state), count in reader.tally().items():
        family.add_metric((workflow, str(state)), count)
    return family


def _queues(reader: Reader) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "wfe_queue_depth",
        "Unfinished executions: running, waiting for an answer, sleeping until a timer, due and in "
        "nobody's hand; and ticks that are owed: to be begun, and not begun yet.",
        labels=("queue",),
    )
    for queue, status in _QUEUES.items():
        family.add_metric((queue,), reader.count(Query(where={"shown": status})))
    family.add_metric(("owed",), reader.ledger.owed())
    return family
