"""Follows a session that this process runs, and sends its spans, if settings or variables say so."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import NamedTuple

import anyio

from handrail.config.extras import install_command
from handrail.config.settings import Settings
from handrail.protocol.events import Recorded
from handrail.sessions.session import Session, start_of_last_turn

PAGE_EVENTS = 200
CLOSE_SECONDS = 2.0
"""For what is left at the end; a collector that takes longer does not get it."""


class Telemetry(NamedTuple):
    """What settings and environment say about traces."""

    on: bool = False
    endpoint: str = ""
    content: bool = False


def telemetry_settings(settings: Settings, environ: Mapping[str, str]) -> Telemetry:
    """Whether traces are sent, and where: settings first, then OpenTelemetry's own variables."""
    if (
        environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
        or environ.get("OTEL_TRACES_EXPORTER") == "none"
    ):
        return Telemetry()
    own = settings.telemetry
    named = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    on = bool(own.endpoint or any(environ.get(name, "").strip() for name in named))
    captured = environ.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "").lower() == "true"
    return Telemetry(on, own.endpoint, own.content or captured)


def telemetry_notice(settings: Settings, environ: Mapping[str, str]) -> list[str]:
    """A line if traces are wanted and cannot be sent."""
    if not telemetry_settings(settings, environ).on or _installed():
        return []
    install = install_command("telemetry")
    return [f"Telemetry is configured, but its libraries are not installed: `{install}`. Nothing is sent."]


def _installed() -> bool:
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:  # another library has brought a part of it
        return False


@asynccontextmanager
async def traced(
    session: Session, telemetry: Telemetry, hide: Callable[[], Callable[[str], str]]
) -> AsyncIterator[None]:
    """Send the spans of the session while the block runs; at its end, what is left has two seconds."""
    if not telemetry.on or not _installed():
        yield
        return
    from handrail.app.telemetry.export import Collector, SpanExporter
    from handrail.app.telemetry.spans import SpanProjection

    spans = SpanProjection(session.id, hide() if telemetry.content else None)
    # What another process has run of this turn is known here, but was sent there.
    after, before = start_of_last_turn(session.log, session.stream), session.seq
    while after < before and (known := session.read_after(after, PAGE_EVENTS)):
        for recorded in known:
            list(spans.add(recorded))
        after = known[-1].seq
    exporter = SpanExporter(Collector(telemetry.endpoint))

    def send(recorded: Recorded) -> None:
        for span in spans.add(recorded):
            exporter.add(span)

    session.followers.append(send)
    try:
        yield
    finally:
        session.followers.remove(send)
        exporter.close()
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            while exporter.alive:  # noqa: ASYNC110 - a thread has no event to wait for
                await anyio.sleep(0.02)
        exporter.give_up()
