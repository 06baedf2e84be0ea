"""The way to a server: proxies that the environment names, certificates, logins, connections used again."""

import base64
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from handrail.config.settings import ConnectionSettings
from handrail.models.connect import connect
from handrail.models.model import Model
from handrail.models.reading.collector import collect_answer
from handrail.models.wire.http_client import ProxyTarget, bypasses_proxy
from handrail.protocol.errors import FixRequest, GiveUp, RetryLater
from tests.models.fake_server import FakeServer, Said
from tests.models.wires import request

pytestmark = pytest.mark.anyio
CERTIFICATE = Path(__file__).with_name("certificate")
HI = [Said(text=("Hi",))]


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http", "https", "all", "no"):
        monkeypatch.delenv(f"{name}_proxy", raising=False)
        monkeypatch.delenv(f"{name}_proxy".upper(), raising=False)
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)


@asynccontextmanager
async def model_of(base_url: str) -> AsyncIterator[Model]:
    settings = ConnectionSettings(base_url=base_url, context_window=9000, native_tools=True, images=False)
    model = await connect("mine/m", environment={}, settings={"mine": settings})
    try:
        yield model
    finally:
        await model.aclose()


def tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE / "certificate.pem", CERTIFICATE / "key.pem")
    return context


class Tunnel:
    """A proxy for CONNECT; whatever host is asked for, it leads to one port of this machine."""

    def __init__(self, port: int, answer: bytes) -> None:
        self._port = port
        self._answer = answer
        self.heads: list[bytes] = []
        self.url = ""

    async def serve(self, client: SocketStream) -> None:
        async with client:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += await client.receive()
            self.heads.append(head)
            await client.send(self._answer)
            if b" 200 " not in self._answer:
                return
            server = await anyio.connect_tcp("127.0.0.1", self._port)
            async with server, anyio.create_task_group() as tasks:
                tasks.start_soon(relay, client, server)
                tasks.start_soon(relay, server, client)


async def relay(source: SocketStream, sink: SocketStream) -> None:
    try:
        async for data in source:
            await sink.send(data)
        await sink.send_eof()
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        pass


@asynccontextmanager
async def tunnel(port: int, answer: bytes = b"HTTP/1.1 200 OK\r\n\r\n") -> AsyncIterator[Tunnel]:
    found = Tunnel(port, answer)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0) as listener:
        port_there = listener.extra(SocketAttribute.local_port)  # noqa: S610
        found.url = f"127.0.0.1:{port_there}"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, found.serve)
            yield found
            tasks.cancel_scope.cancel()


@pytest.mark.promise("MOD-21")
async def test_server_is_asked_by_the_proxy_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with FakeServer(HI) as proxy:
        monkeypatch.setenv("http_proxy", f"http://me:a%20b@127.0.0.1:{proxy.port}")
        async with model_of("http://models.invalid/v1") as model:
            assert (await collect_answer(model.stream(request()))).text == "Hi"
    (sent,) = proxy.requests
    assert sent.path == "http://models.invalid/v1/chat/completions"
    assert sent.headers["host"] == "models.invalid"
    assert sent.headers["proxy-authorization"] == f"Basic {base64.b64encode(b'me:a b').decode()}"


@pytest.mark.promise("MOD-21")
async def test_private_certificate_is_trusted_by_ssl_cert_file_through_a_tunnel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE / "certificate.pem"))
    with FakeServer(HI, tls=tls()) as server:
        async with tunnel(server.port) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", proxy.url)
            async with model_of("https://models.invalid/v1") as model:
                assert (await collect_answer(model.stream(request()))).text == "Hi"
                assert (await collect_answer(model.stream(request()))).text == "Hi"
    assert [head.splitlines()[0] for head in proxy.heads] == [b"CONNECT models.invalid:443 HTTP/1.1"]
    assert {sent.path for sent in server.requests} == {"/v1/chat/completions"}


async def test_certificate_that_nobody_vouches_for_is_refused() -> None:
    with FakeServer(HI, tls=tls()) as server:
        async with model_of(f"https://127.0.0.1:{server.port}/v1") as model:
            with pytest.raises(GiveUp, match="SSL_CERT_FILE"):
                await collect_answer(model.stream(request()))
    assert not server.requests


async def test_certificate_for_another_host_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE / "certificate.pem"))
    with FakeServer(HI, tls=tls()) as server:
        async with tunnel(server.port) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", proxy.url)
            async with model_of("https://other.invalid/v1") as model:
                with pytest.raises(GiveUp, match="certificate"):
                    await collect_answer(model.stream(request()))
    assert not server.requests


async def test_proxy_that_refuses_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    async with tunnel(0, b"HTTP/1.1 407 Login first\r\ncontent-length: 0\r\n\r\n") as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        async with model_of("https://models.invalid/v1") as model:
            with pytest.raises(RetryLater, match=r"proxy.*407"):
                await collect_answer(model.stream(request()))


async def test_server_is_asked_by_a_socks_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    async def serve(client: SocketStream) -> None:
        async with client:
            await client.receive()
            await client.send(b"\x05\x00")  # no login
            asked.append(await client.receive())
            await client.send(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x50")
            there = await anyio.connect_tcp("127.0.0.1", server.port)
            async with there, anyio.create_task_group() as relays:
                relays.start_soon(relay, client, there)
                relays.start_soon(relay, there, client)

    with FakeServer(HI) as server:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, serve)
            port = listener.extra(SocketAttribute.local_port)  # noqa: S610
            monkeypatch.setenv("ALL_PROXY", f"socks5h://127.0.0.1:{port}")
            async with model_of("http://models.invalid/v1") as model:
                assert (await collect_answer(model.stream(request()))).text == "Hi"
            tasks.cancel_scope.cancel()
    assert asked == [b"\x05\x01\x00\x03\x0emodels.invalid\x00\x50"]


@pytest.mark.parametrize("words", ["socks5://127.0.0.1:9", "gopher://127.0.0.1:9", "http://:9"])
async def test_proxy_that_cannot_be_used_is_said(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)  # an extra brings it; without one it is not there
    monkeypatch.setenv("ALL_PROXY", words)
    async with model_of("http://models.invalid/v1") as model:
        with pytest.raises(GiveUp, match="proxy"):
            await collect_answer(model.stream(request()))


@pytest.mark.parametrize(
    ("exceptions", "host", "port", "excepted"),
    [
        ("", "a.example", 443, False),
        ("*", "a.example", 443, True),
        ("example", "a.example", 443, True),
        (" b.test , a.example ", "a.example", 443, True),
        ("a.example", "aa.example", 443, False),
        (".a.example", "x.a.example", 443, True),
        ("*.a.example", "x.a.example", 443, True),
        ("A.Example", "a.example", 443, True),
        ("a.example:443", "a.example", 443, True),
        ("a.example:8443", "a.example", 443, False),
        ("https://a.example", "a.example", 443, True),
        ("http://a.example", "a.example", 443, False),
        ("10.1.2.3", "10.1.2.3", 443, True),
        ("10.0.0.0/8", "10.1.2.3", 443, True),
        ("10.0.0.0/8", "11.1.2.3", 443, False),
        ("10.0.0.0/8", "a.example", 443, False),
        ("fd00::/8", "fd00::1", 443, True),
        ("::1", "::1", 443, True),
        ("[::1]:443", "::1", 443, True),
        ("[::1]:80", "::1", 443, False),
        ("10.0.0.0/99", "10.1.2.3", 443, False),
    ],
)
def test_exceptions_from_the_proxy(exceptions: str, host: str, port: int, excepted: bool) -> None:
    assert bypasses_proxy(ProxyTarget("https", host, port), exceptions) is excepted


async def test_login_in_the_address_is_sent_as_such() -> None:
    with FakeServer(HI) as server:
        async with model_of(f"http://me:a%40b@127.0.0.1:{server.port}/v1") as model:
            await collect_answer(model.stream(request()))
    sent = server.requests[-1]
    assert sent.headers["authorization"] == f"Basic {base64.b64encode(b'me:a@b').decode()}"
    assert sent.headers["host"] == f"127.0.0.1:{server.port}"


async def test_what_an_address_cannot_hold_is_escaped_once() -> None:
    with FakeServer(HI) as server:
        async with model_of(f"http://127.0.0.1:{server.port}/ä b%20c/v1") as model:
            await collect_answer(model.stream(request()))
    assert server.requests[-1].path == "/%C3%A4%20b%20c/v1/chat/completions"


@pytest.mark.parametrize("host", ["127.0.0.1:99999", "a..ä:80"])
async def test_address_that_cannot_be_one_is_said(host: str) -> None:
    async with model_of(f"http://{host}/v1") as model:
        with pytest.raises(FixRequest, match="base_url"):
            await collect_answer(model.stream(request()))


async def test_connection_is_used_again() -> None:
    with FakeServer(HI) as server:
        async with model_of(f"{server.url}/v1") as model:
            for _ in range(3):
                await collect_answer(model.stream(request()))
        assert server.accepted == 1
