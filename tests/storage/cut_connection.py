"""A connection to a server that can be cut at a chosen moment."""

import socket
import threading
from contextlib import suppress
from typing import Literal

Moment = Literal["before", "after", "half"]
"""`half`: the server does not notice."""


class Proxy:
    """Forwards to a port of this machine. At the given bytes from a client it cuts that connection."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._at = b""
        self._moment: Moment = "before"
        self.cuts = 0
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, moment: Moment, at: bytes) -> None:
        """Cut the next connection that sends this: before the server gets it, or before its answer comes."""
        self._at, self._moment = at, moment

    def close(self) -> None:
        for each in (self._listening, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                self._open += [client, server]
                threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
                threading.Thread(target=self._pump, args=(server, client), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
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

    @staticmethod
    def _pump(server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                client.sendall(data)
        for each in (server, client):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
