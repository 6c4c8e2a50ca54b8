"""Where traces go from the command line: to an OTLP collector, as the usual `OTEL_*` variables say.

They are sent in a thread. A collector that does not answer costs a sentence, and a moment at the end.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Thread

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from wfe.telemetry.traces import OpenReader, Traces

logger = logging.getLogger("wfe")

#: Seconds that the end of a process waits for a collector that does not answer.
_PATIENCE = 2.0


@contextmanager
def exported(open_reader: OpenReader) -> Iterator[Traces]:
    """Traces that are sent until the context ends; then what is left."""
    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME)).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "wfe"}))
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    exporter = _Exporter()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    try:
        yield Traces(provider, open_reader=open_reader)
    finally:
        flushing = Thread(target=provider.force_flush, name="wfe traces", daemon=True)
        flushing.start()
        flushing.join(_PATIENCE)
        exporter.shutdown()
        provider.shutdown()


class _Exporter(SpanExporter):
    """Sends spans, and says once that they do not arrive, instead of at each attempt."""

    def __init__(self) -> None:
        self._exporter = OTLPSpanExporter()
        self._said = _Said()
        self._is_told = False
        theirs = logging.getLogger(OTLPSpanExporter.__module__)
        theirs.addHandler(self._said)
        theirs.propagate = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._said.first = ""
        result = self._exporter.export(spans)
        is_lost = result is not SpanExportResult.SUCCESS
        if is_lost and not self._is_told:
            logger.warning("Traces do not arrive at %s: %.120s", _endpoint(), self._said.first)
        self._is_told = is_lost
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]  # it says nothing of types


class _Said(logging.Handler):
    """What was said first of all."""

    first = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.first = self.first or record.getMessage()


def _endpoint() -> str:
    names = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    given = (os.environ.get(name) for name in names)
    return next(filter(None, given), "http://localhost:4318")
