"""A collector of traces on the loopback: decodes what it gets, or hangs, or refuses."""

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

Way = Literal["takes", "hangs", "refuses", "unavailable"]


class Collector:
    def __init__(self, way: Way = "takes") -> None:
        self.way = way
        self.spans: list[Any] = []
        self.resources: list[dict[str, str]] = []
        self.requests = 0
        self._changed = threading.Condition()
        self._stop = threading.Event()

    def __enter__(self) -> Self:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.got(self.path, body)
                if collector.way == "hangs":
                    collector._stop.wait(60)
                self.send_response({"refuses": 400, "unavailable": 503}.get(collector.way, 200))
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._server.shutdown()
        self._server.server_close()

    def got(self, path: str, body: bytes) -> None:
        assert path == "/v1/traces"
        message = ExportTraceServiceRequest.FromString(body)
        with self._changed:
            self.requests += 1
            for each in message.resource_spans:
                self.resources.append({one.key: one.value.string_value for one in each.resource.attributes})
                self.spans += [span for scope in each.scope_spans for span in scope.spans]
            self._changed.notify_all()

    def wait_until(self, condition: Callable[[], bool], seconds: float = 50.0) -> bool:
        with self._changed:
            return self._changed.wait_for(condition, seconds)

    def has(self, name: str) -> bool:
        """Whether a span of this name comes in time."""
        return self.wait_until(lambda: any(each.name == name for each in self.spans))

    def named(self, name: str) -> Any:
        """The only span of this name."""
        [span] = [each for each in self.spans if each.name == name]
        return span


def attributes(span: Any) -> dict[str, Any]:
    values = {}
    for each in span.attributes:
        kind = each.value.WhichOneof("value")
        value = getattr(each.value, kind)
        values[each.key] = [one.string_value for one in value.values] if kind == "array_value" else value
    return values
