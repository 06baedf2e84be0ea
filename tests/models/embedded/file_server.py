"""A real HTTP server on the loopback that gives one file, in all the ways in which servers fail."""

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self


@dataclass
class FileServer:
    """`with FileServer(content, ...) as server: ... server.url ... server.starts`."""

    content: bytes
    cuts: list[int] = field(default_factory=list)
    """So many bytes each connection gives before it breaks; the last one counts for all that follow."""
    takes_ranges: bool = True
    status: int = 0
    """Answer with this instead."""
    total: int = 0
    """Say that the file has this size."""
    starts: list[int] = field(default_factory=list)
    """The first byte that each request asked for."""
    moved: bool = False
    """Send the client to another path first, as hubs do."""
    hold: threading.Event | None = None
    """Wait for this before the last byte of the file."""

    def __enter__(self) -> Self:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.answer(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                return

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.hold is not None:
            self.hold.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/model.gguf"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        if self.moved and request.path == "/model.gguf":
            request.send_response(302)
            request.send_header("location", "/elsewhere?signed=1")
            request.send_header("content-length", "0")
            request.end_headers()
            return
        wanted = request.headers.get("range", "bytes=0-")
        start = int(wanted.removeprefix("bytes=").rstrip("-"))
        self.starts.append(start)
        request.close_connection = True
        if self.status:
            request.send_error(self.status)
            return
        total = self.total or len(self.content)
        body = self.content[start:] if self.takes_ranges else self.content
        if self.takes_ranges:
            request.send_response(206)
            request.send_header("content-range", f"bytes {start}-{total - 1}/{total}")
        else:
            request.send_response(200)
        request.send_header("content-length", str(total - start if self.takes_ranges else total))
        request.end_headers()
        limit = self.cuts[min(len(self.starts), len(self.cuts)) - 1] if self.cuts else len(body)
        try:
            self._write(request, body[:limit])
        except OSError:
            return  # the client has gone

    def _write(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        if self.hold is None:
            request.wfile.write(body)
            return
        request.wfile.write(body[:-1])
        request.wfile.flush()
        self.hold.wait(30)
        request.wfile.write(body[-1:])
