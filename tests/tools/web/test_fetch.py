import gzip
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import anyio
import pytest

from handrail.protocol.events import UserMessage
from handrail.sessions.export_import import export_lines, import_lines
from handrail.sessions.session import Session
from handrail.storage.log_repair import open_log
from handrail.tools.web import fetch as fetching
from handrail.tools.web.fetch import FetchError, address_of, is_public, is_url_in, urls_in, user_texts
from handrail.tools.web.html_text import html_to_text
from tests.tools.calls import Bench

pytestmark = pytest.mark.anyio
MakeBench = Callable[..., Bench]

PAGE = b"<html><head><title>T</title><style>no</style></head><body><p>Hello <b>you</b></p></body></html>"


class Handler(BaseHTTPRequestHandler):
    redirect_to: ClassVar[str] = ""
    hosts: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.hosts.append(self.headers["host"])
        match self.path:
            case "/redirect":
                self.answer(302, b"", "text/plain", location=self.redirect_to)
            case "/loop":
                self.answer(302, b"", "text/plain", location="/loop")
            case "/image":
                self.answer(200, b"\x89PNG", "image/png")
            case "/big":
                self.answer(200, b"x" * 3_000_000, "text/plain")
            case "/gzip":
                self.answer(200, gzip.compress(b"zipped"), "text/plain", **{"content-encoding": "gzip"})
            case "/missing":
                self.answer(404, b"nothing here", "text/plain")
            case "/slow":
                self.server.stop.wait(20)  # type: ignore[attr-defined]
            case _:
                self.answer(200, PAGE, "text/html; charset=utf-8")

    def answer(self, status: int, data: bytes, kind: str, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            return

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    Handler.hosts.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.stop = threading.Event()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.stop.set()  # type: ignore[attr-defined]
    server.shutdown()
    thread.join(10)
    server.server_close()


@pytest.fixture
def base(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


async def fetched(make_bench: MakeBench, url: str) -> tuple[str, str]:
    """Status and content of fetching a URL that the user wrote."""
    finished = await make_bench("explore", text=f"look at {url}.").call("fetch", url=url)
    return finished.status, finished.content


async def test_a_page_the_user_named_comes_back_as_text(make_bench: MakeBench, base: str) -> None:
    assert await fetched(make_bench, f"{base}/page") == ("ok", f"[200 {base}/page]\nT\n\nHello you")


async def test_the_server_is_asked_by_its_name(make_bench: MakeBench, server: ThreadingHTTPServer) -> None:
    port = server.server_address[1]
    status, _ = await fetched(make_bench, f"http://localhost:{port}/")
    assert status == "ok"
    assert Handler.hosts == [f"localhost:{port}"]


@pytest.mark.promise("TOOL-13")
async def test_an_address_of_this_machine_is_fetched_only_when_the_user_wrote_it(
    make_bench: MakeBench, base: str
) -> None:
    bench = make_bench("auto", text="hello")
    finished = await bench.call("fetch", url=f"{base}/")
    assert len(bench.user.asked) == 1
    assert finished.error is not None
    assert finished.error.reason == "fetch_failed"
    assert "Ask the user" in finished.content
    assert Handler.hosts == []


async def test_a_url_in_an_attached_file_is_not_the_users(make_bench: MakeBench, base: str) -> None:
    bench = make_bench("explore", text="hello")
    (bench.root / "notes.md").write_text(f"see {base}/\n")
    await bench.call("read", path="notes.md")
    finished = await bench.call("fetch", url=f"{base}/")
    assert finished.error is not None
    assert finished.error.reason == "mode_forbids"


@pytest.mark.promise("TOOL-13")
async def test_a_url_in_an_imported_session_is_not_the_users(
    make_bench: MakeBench, base: str, tmp_path: Path
) -> None:
    bench = make_bench("ask", text=f"look at {base}/")
    with closing(open_log(tmp_path / "other")) as other:
        imported = Session(other, import_lines(other, export_lines(bench.session.log, bench.session.id)))
        assert user_texts(imported.load()) == []
        assert imported.try_hold()
        imported.append(UserMessage(message_id="m_2", turn_id="t_2", text="mine"))
        assert user_texts(imported) == ["mine"]
        imported.release()


@pytest.mark.parametrize("target", ["http://127.0.0.1:9/x", "http://localhost:9/", "file:///etc/passwd"])
async def test_a_redirect_into_the_private_network_is_not_followed(
    make_bench: MakeBench, base: str, target: str
) -> None:
    Handler.redirect_to = target
    status, content = await fetched(make_bench, f"{base}/redirect")
    assert status == "failed"
    assert "has to come from the user" in content or "Use an http" in content


async def test_a_redirect_on_the_same_server_is_followed(make_bench: MakeBench, base: str) -> None:
    Handler.redirect_to = "/page"
    assert (await fetched(make_bench, f"{base}/redirect"))[1].startswith(f"[200 {base}/page]")


@pytest.mark.parametrize(("path", "word"), [("/loop", "redirects"), ("/image", "image/png")])
async def test_what_is_no_page_fails_in_words(make_bench: MakeBench, base: str, path: str, word: str) -> None:
    status, content = await fetched(make_bench, base + path)
    assert status == "failed"
    assert word in content


async def test_a_missing_page_is_a_failure_with_its_text(make_bench: MakeBench, base: str) -> None:
    assert await fetched(make_bench, f"{base}/missing") == ("failed", f"[404 {base}/missing]\nnothing here")


async def test_a_compressed_page_is_read(make_bench: MakeBench, base: str) -> None:
    assert (await fetched(make_bench, f"{base}/gzip"))[1].endswith("zipped")


async def test_a_big_page_is_cut_and_says_so(make_bench: MakeBench, base: str) -> None:
    _, content = await fetched(make_bench, f"{base}/big")
    assert len(content) < 13_000
    assert "only the first 1,000,000 bytes" in content


async def test_a_server_that_does_not_answer_is_a_timeout(
    make_bench: MakeBench, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "SECONDS", 0.3)
    with anyio.fail_after(50):
        status, content = await fetched(make_bench, f"{base}/slow")
    assert status == "failed"
    assert '"reason":"timeout"' in content


async def test_a_closed_port_fails_in_words(make_bench: MakeBench) -> None:
    status, content = await fetched(make_bench, "http://127.0.0.1:9/")
    assert status == "failed"
    assert "could not be fetched" in content


@pytest.mark.parametrize(
    "url", ["ftp://host/x", "http://", "nonsense", "http://me:pw@host/", "http://h:99999/"]
)
async def test_what_cannot_be_fetched_is_said_to_be_so(url: str) -> None:
    with pytest.raises(FetchError):
        address_of(url)


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("see https://a.example/x.", {"https://a.example/x"}),
        ("(https://a.example/x_(y))", {"https://a.example/x_(y)"}),
        ("<https://a.example/>", {"https://a.example"}),
        ("[a](http://a.example/b#c)", {"http://a.example/b"}),
        ("a.example", set()),
    ],
)
async def test_urls_are_found_in_what_people_write(text: str, urls: set[str]) -> None:
    assert urls_in(text) == urls


async def test_a_url_is_the_users_only_as_a_whole() -> None:
    texts = ["look at https://a.example/doc please"]
    assert is_url_in("https://a.example/doc", texts)
    assert is_url_in("https://a.example/doc#part", texts)
    for other in (
        "https://a.example",
        "https://a.example/doc2",
        "https://a.example.evil/doc",
        "http://a.example/doc",
    ):
        assert not is_url_in(other, texts)


@pytest.mark.parametrize(
    "number",
    [
        "127.0.0.1",
        "10.1.2.3",
        "192.168.0.1",
        "172.16.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.1",
        "224.0.0.1",
        "::1",
        "::",
        "fe80::1",
        "fd00::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
    ],
)
async def test_private_addresses_are_recognised(number: str) -> None:
    assert not is_public(number)


@pytest.mark.parametrize("number", ["93.184.216.34", "2606:2800:220:1::1", "::ffff:93.184.216.34"])
async def test_public_addresses_are_recognised(number: str) -> None:
    assert is_public(number)


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>a</p><p>b", "a\n\nb"),
        ("a<br>b", "a\nb"),
        ("<ul><li>x</li><li>y</li></ul>", "- x\n\n- y"),
        ("<script>x<b></b></script>y", "y"),
        ("<pre>a\n  b</pre>", "a\n  b"),
        ("<head><title>T</title><body>x", "T\n\nx"),
        ("a &amp; b &lt;c&gt;", "a & b <c>"),
        ("<div>un<span>closed", "unclosed"),
        ("<pre>a  \n \n\t\n  b\n  c</pre>", "a\n\nb\n  c"),
        ("<pre>a<script>b</pre>c</script>d", "ad"),
        ("a<![if x]>b<![endif]>c<![ d>e", "abce"),
    ],
)
async def test_html_becomes_what_a_reader_sees(html: str, text: str) -> None:
    assert html_to_text(html) == text
