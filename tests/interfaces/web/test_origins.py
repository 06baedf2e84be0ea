"""What a page that is not Handrail's can do to a server that the same browser is signed in to: nothing."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Response, expect

from tests.interfaces.web.site import Site, ended, ready, send

ATTACK = """
async (target) => {
  const api = `${target}/api/w/shop`;
  const tried = async (promise) => {
    try {
      return await promise;
    } catch (error) {
      return error.name;
    }
  };
  const loaded = (element, address) =>
    new Promise((done) => {
      element.onload = () => done("loaded");
      element.onerror = () => done("refused");
      Object.assign(element, address);
      document.body.append(element);
    });
  const post = { method: "POST", mode: "no-cors", credentials: "include", body: '{"mode": "auto"}' };
  const frame = Object.assign(document.createElement("iframe"), { name: "frame" });
  document.body.append(frame);
  const form = Object.assign(document.createElement("form"), {
    method: "post", action: `${api}/sessions`, enctype: "text/plain", target: "frame",
  });
  const field = { name: '{"mode": "auto", "x": "', value: '"}' };
  form.append(Object.assign(document.createElement("input"), field));
  document.body.append(form);
  const sent = new Promise((done) => (frame.onload = () => done("answered")));
  form.submit();
  const json = { "content-type": "application/json" };
  return {
    form: await sent,
    frame: await tried(Promise.resolve().then(() => frame.contentWindow.document.body.innerText)),
    read: await tried(fetch(`${api}/sessions`, { credentials: "include" }).then((found) => found.text())),
    page: await tried(fetch(`${target}/`, { credentials: "include" }).then((found) => found.text())),
    blind: await tried(fetch(`${api}/sessions`, post).then((found) => found.type)),
    json: await tried(fetch(`${api}/sessions`, { ...post, mode: "cors", headers: json }).then(() => "sent")),
    script: await loaded(document.createElement("script"), { src: `${api}/sessions` }),
    style: await loaded(document.createElement("link"), { rel: "stylesheet", href: `${target}/x.css` }),
    stream: await new Promise((done) => {
      const stream = new EventSource(`${api}/sessions/any/events`, { withCredentials: true });
      stream.onopen = () => done("open");
      stream.onerror = () => done("refused");
    }),
  };
}
"""
NOTHING = {
    "form": "answered",
    "frame": "SecurityError",
    "read": "TypeError",
    "page": "TypeError",
    "blind": "TypeError",
    "json": "TypeError",
    "script": "refused",
    "style": "refused",
    "stream": "refused",
}


class Blank(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>Elsewhere</title><body></body>")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def elsewhere() -> Iterator[int]:
    """The port of another server on this machine, with an empty page."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Blank) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@pytest.mark.promise("HTTP-2")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "evil.localhost"])
def test_a_page_of_another_origin_reads_and_commands_nothing(
    site: Site, page: Page, elsewhere: int, host: str
) -> None:
    site.open(page, {"text": "Hello."})
    send(page, "a secret")
    ended(page)
    own = page.evaluate("fetch('/api/w/shop/sessions').then((found) => found.text())")
    assert "a secret" in own
    statuses: list[int] = []

    def seen(response: Response) -> None:
        if response.url.startswith(target):
            statuses.append(response.status)

    address = urlsplit(site.address)
    target = f"{address.scheme}://{address.netloc}"
    stranger = page.context.new_page()
    stranger.on("response", seen)
    stranger.goto(f"http://{host}:{elsewhere}/")
    assert stranger.evaluate(ATTACK, target) == NOTHING
    assert statuses
    assert set(statuses) <= {401, 403}
    stranger.close()
    page.goto(site.place(""))
    ready(page)
    expect(page.locator(".session")).to_have_count(1)


@pytest.mark.promise("HTTP-2")
def test_a_name_that_was_made_to_point_here_is_refused_even_with_the_token(site: Site, page: Page) -> None:
    """Browsers take every name below `localhost` to this machine, as a rebound name would be."""
    address = site.start({"text": "Hello."})
    answer = page.goto(address.replace("127.0.0.1", "rebound.localhost"))
    assert answer
    assert answer.status == 421
    assert page.context.cookies() == []
    assert page.locator("#message").count() == 0
    again = page.goto(address)
    assert again
    assert again.status == 200
