"""A connection to a server of this machine that a test can cut, hold up or refuse."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

Moment = Literal["before", "after", "half"]
"""`half`: the server does not notice."""


class Proxy:
    """Forwards connections to a port of this machine, as long as the test lets them through."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._at = b""
        self._moment: Moment = "before"
        self.cuts = 0
        self._refuses = False
        self._passes = threading.Event()
        self._passes.set()
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._accepting = self._start(self._accept)

    def cut(self, moment: Moment, at: bytes) -> None:
        """Cut the next connection that sends this: before the server gets it, or before its answer comes."""
        self._at, self._moment = at, moment

    def hold(self) -> None:
        """Let nothing through; connections stay open, as when a cable is pulled."""
        self._passes.clear()

    def refuse(self) -> None:
        """End all connections, and new ones at once."""
        self._refuses = True
        self._passes.set()
        for each in self._open:
            _shut(each)

    def restore(self) -> None:
        self._refuses = False
        self._passes.set()

    def close(self) -> None:
        """End everything; no thread and no socket is left for the tests after this one."""
        _shut(self._listening)
        self._accepting.join()
        self.refuse()
        for thread in self._threads:
            thread.join()
        for each in (self._listening, *self._open):
            each.close()

    def _start(self, run: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=run, args=arguments, daemon=True)
        thread.start()
        return thread

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self._open.append(client)
                server = socket.create_connection(("127.0.0.1", self._target))
                self._open.append(server)
                if self._refuses:
                    _shut(server)
                    _shut(client)
                    continue
                self._threads += [
                    self._start(self._requests, client, server),
                    self._start(self._answers, server, client),
                ]

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                self._passes.wait()
                if self._at and self._at in data:
                    self._at, self.cuts = b"", self.cuts + 1
                    client.shutdown(socket.SHUT_RDWR)
                    if self._moment == "half":
                        return
                    if self._moment == "after":
                        server.sendall(data)
                    break
                server.sendall(data)
        with suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _answers(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                self._passes.wait()
                client.sendall(data)
        _shut(server)
        _shut(client)


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
