"""`--metrics` and `--otel`: who is told, beside the person who watches, what happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from wfe.cli.extras import check_installed
from wfe.clock import SystemClock
from wfe.errors import UsageError

if TYPE_CHECKING:
    from wfe.cli.session import Session
    from wfe.telemetry.metrics import Address, Metrics
    from wfe.telemetry.traces import Traces


@contextmanager
def metrics(session: Session, text: str) -> Iterator[tuple[Metrics, Address]]:
    """Metrics that are to be had at this address until the context ends.

    Raises:
        UsageError: what they need is not installed, or that is no address.
        WfeError: the address cannot be had.
    """
    check_installed("--metrics", "prometheus_client", "prometheus-client", "metrics")
    from wfe.telemetry.metrics import Metrics

    counted = Metrics(session.reader, started_at=SystemClock().now())
    with counted.served(_address(text)) as place:
        yield counted, place


@contextmanager
def traces(session: Session) -> Iterator[Traces]:
    """Traces that are sent to where `OTEL_*` variables say, until the context ends.

    Raises:
        UsageError: what they need is not installed.
    """
    exporter = "opentelemetry.exporter.otlp.proto.http"
    check_installed("--otel", exporter, "opentelemetry-exporter-otlp-proto-http", "otel")
    from wfe.telemetry.export import exported

    with exported(session.reader) as made:
        yield made


def _address(text: str) -> Address:
    """`HOST:PORT`, or a port of this machine alone.

    Raises:
        UsageError: it is neither.
    """
    from wfe.telemetry.metrics import Address

    host, _, port = text.rpartition(":")
    if not port.isdecimal() or not port.isascii() or int(port) > 65_535:
        raise UsageError(
            f"--metrics {text!r} is no address.", hint="Write HOST:PORT: --metrics 127.0.0.1:9464"
        )
    return Address(host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port))
