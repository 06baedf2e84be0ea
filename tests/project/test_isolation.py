"""Tests cannot reach a hosted model, a key or the real home, even by mistake."""

import os
import socket
from pathlib import Path

import pytest


def test_nothing_beyond_the_loopback_can_be_reached() -> None:
    with socket.socket() as client, pytest.raises(RuntimeError, match="loopback"):
        client.connect(("192.0.2.1", 443))
    with pytest.raises(RuntimeError, match="loopback"):
        socket.getaddrinfo("example.com", 443)


def test_the_loopback_can() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname(), timeout=5) as client,
    ):
        assert client.getpeername() == server.getsockname()


def test_no_key_and_no_real_home_are_in_the_environment(home: Path) -> None:
    assert not [name for name in os.environ if name.endswith("_API_KEY")]
    assert Path.home() == home
    assert Path(os.environ["HANDRAIL_HOME"]).parent == home
