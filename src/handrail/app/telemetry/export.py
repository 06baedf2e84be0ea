"""Sends spans to a collector, from a thread of its own and a bounded queue: nobody ever waits for it."""

import logging
import os
import queue
from collections.abc import Mapping
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from handrail import __version__
from handrail.app.telemetry.spans import Span

if TYPE_CHECKING:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import ReadableSpan

MAX_QUEUED = 2_048
MAX_BATCH = 256
GATHER_SECONDS = 1.0
"""How long the first span of a batch waits for others."""
SEND_SECONDS = 10.0


class Collector(NamedTuple):
    """Where spans go. Empty where OpenTelemetry's own variables say it."""

    endpoint: str = ""

    @property
    def traces(self) -> str | None:
        address = self.endpoint.rstrip("/")
        return address if address.endswith("/v1/traces") or not address else f"{address}/v1/traces"


class SpanExporter:
    """A queue of spans, and the thread that sends them."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._queue: queue.Queue[Span | None] = queue.Queue(MAX_QUEUED)
        self._closing = False
        self._given_up = Event()
        self._sender: OTLPSpanExporter | None = None
        self.dropped = 0
        """Spans that found the queue full."""
        # A daemon: a collector that hangs does not keep the process.
        self._thread = Thread(target=self._run, name="telemetry", daemon=True)
        self._thread.start()

    def add(self, span: Span) -> None:
        try:
            self._queue.put_nowait(span)
        except queue.Full:
            self.dropped += 1

    def close(self) -> None:
        """Let the thread send what is left and end; `alive` says whether it still does."""
        self._closing = True
        while True:
            try:
                return self._queue.put_nowait(None)
            except queue.Full:
                self._queue.get_nowait()
                self.dropped += 1

    def give_up(self) -> None:
        """Send nothing more: the thread ends with the request under way."""
        self._given_up.set()
        self.close()
        if sender := self._sender:
            sender.shutdown()  # type: ignore[no-untyped-call]

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        # Whoever watches the terminal did not ask for the collector's troubles.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource

        self._sender = OTLPSpanExporter(endpoint=self._collector.traces, timeout=SEND_SECONDS)
        resource = Resource.create(_names())
        while batch := self._next_batch():
            if self._given_up.is_set():
                return
            spans = [span for span in batch if span is not None]
            if spans:
                self._sender.export([_readable(span, resource) for span in spans])
            if len(spans) < len(batch):
                return

    def _next_batch(self) -> list[Span | None]:
        batch = [self._queue.get()]
        while batch[-1] is not None and len(batch) < MAX_BATCH:
            try:
                batch.append(self._queue.get(timeout=0 if self._closing else GATHER_SECONDS))
            except queue.Empty:
                break
        return batch


def _names() -> dict[str, str]:
    named = {"service.version": __version__}
    resource = os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    given = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in resource
    return named if given else {"service.name": "handrail", **named}


def _readable(span: Span, resource: Any) -> "ReadableSpan":
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
    from opentelemetry.trace.status import Status, StatusCode

    def context(number: int) -> SpanContext:
        return SpanContext(span.trace_id, number, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

    attributes: Mapping[str, Any] = span.attributes
    return ReadableSpan(
        name=span.name,
        context=context(span.span_id),
        parent=context(span.parent_id) if span.parent_id else None,
        resource=resource,
        attributes=dict(attributes),
        kind=SpanKind.CLIENT if span.client else SpanKind.INTERNAL,
        instrumentation_scope=InstrumentationScope("handrail", __version__),
        status=Status(StatusCode.ERROR) if span.error else Status(StatusCode.UNSET),
        start_time=int(span.start * 1e9),
        end_time=int(span.end * 1e9),
    )
