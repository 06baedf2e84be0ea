"""The fetch tool: get a web page; private addresses only if the user wrote the URL."""

import ipaddress
import re
import socket
from typing import TYPE_CHECKING, Annotated, NamedTuple
from urllib.parse import urljoin, urlsplit

import anyio
from msgspec import Meta

from handrail import __version__
from handrail.protocol.events import SessionCopied, UserMessage
from handrail.protocol.values import Value
from handrail.sessions.session import Session, event_from_row
from handrail.tools.tool import (
    CallContext,
    CallTarget,
    Outcome,
    Prepared,
    Tool,
    failure,
    pluralize,
    strip_control_codes,
    truncate,
)

if TYPE_CHECKING:
    import httpx2

URL_PATTERN = re.compile(r"https?://[^\s<>\"'`\\^{}|]+", re.IGNORECASE)
DEFAULT_PORTS = {"http": 80, "https": 443}


class FetchError(Exception):
    """Why a page could not be fetched, for the model."""


class Address(NamedTuple):
    scheme: str
    host: str
    port: int

    @property
    def netloc(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def urls_in(text: str) -> set[str]:
    """The URLs in a text, without the punctuation around them."""
    return {_without_fragment(_without_punctuation(found)) for found in URL_PATTERN.findall(text)}


def is_url_in(url: str, texts: list[str]) -> bool:
    """Whether one of the texts contains this URL; the part after `#` does not count."""
    return any(_without_fragment(url) in urls_in(text) for text in texts)


def address_of(url: str) -> Address:
    """Scheme, host and port of a URL; raises FetchError if it cannot be fetched."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise FetchError(f"{url[:200]} is not a URL ({error}).") from error
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
        raise FetchError(f"{url[:200]} cannot be fetched. Use an http or https address.")
    if parts.username is not None or parts.password is not None:
        raise FetchError("Addresses with a user name or password cannot be fetched. Leave them out.")
    return Address(parts.scheme, parts.hostname, port or DEFAULT_PORTS[parts.scheme])


async def resolve_address(address: Address, *, private: bool) -> list[str]:
    """The host's IPs, looked up once, so that the checked address is the one connected to."""
    try:
        found = await anyio.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise FetchError(f"{address.host} was not found ({error}).") from error
    numbers = [str(entry[4][0]).partition("%")[0] for entry in found]
    if not private and not all(is_public(number) for number in numbers):
        where = f"{address.host} is this machine or in its network"
        raise FetchError(f"{where}, so the URL has to come from the user. Ask the user for it.")
    return list(dict.fromkeys(numbers))


def is_public(number: str) -> bool:
    """Whether an IP is on the public internet; an address that wraps another counts as that."""
    ip = ipaddress.ip_address(number)
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is not None:
            return is_public(str(inner))
        if ip in ipaddress.ip_network("64:ff9b::/96"):
            return is_public(str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)))
    return ip.is_global and not ip.is_multicast


def _without_punctuation(url: str) -> str:
    url = url.rstrip(".,;:!?*_~")
    while url.endswith((")", "]")) and url.count(url[-1]) > url.count({")": "(", "]": "["}[url[-1]]):
        url = url[:-1].rstrip(".,;:!?*_~")
    return url


def _without_fragment(url: str) -> str:
    url = url.partition("#")[0]
    return url.removesuffix("/") if url.count("/") == 3 else url


def user_texts(session: Session) -> list[str]:
    """The user's messages since the last compaction or import, without attachments."""
    rows = session.log.read(session.stream, after=session.state.cut.upto)
    texts: list[str] = []
    for row in (row for row in rows if row.type in ("user_message", "session_copied")):
        match event := event_from_row(row).event:
            case UserMessage(suggested=False):
                texts.append(event.text)
            case SessionCopied(how="import"):
                texts.clear()  # they came from a file
    return texts


SECONDS = 20.0  # for the whole fetch, redirects included
CONNECT_SECONDS = 5.0
MAX_BYTES = 1_000_000
MAX_CHARACTERS = 12_000
REDIRECTS = 5
HEADERS = {
    "user-agent": f"handrail/{__version__}",
    "accept": "text/html,text/*,application/json;q=0.9,*/*;q=0.5",
}
TEXT_TYPES = ("text/", "application/json", "application/xml", "application/javascript", "application/yaml")


class Page(NamedTuple):
    url: str
    status: int
    kind: str
    data: bytes
    cut: bool
    charset: str


class FetchArguments(Value):
    url: Annotated[str, Meta(min_length=1, max_length=4_000)]


class Fetch(Tool[FetchArguments]):
    name = "fetch"
    description = "Get a web page as text."
    action = "fetch"
    arguments = FetchArguments

    def target(self, arguments: FetchArguments) -> CallTarget:
        return CallTarget(url=arguments.url)

    def summary(self, arguments: FetchArguments, work: CallContext) -> str:
        return " ".join(arguments.url.split())

    def prepare(self, arguments: FetchArguments, work: CallContext) -> Prepared:
        return Prepared(f"GET {arguments.url}")

    async def run(self, arguments: FetchArguments, work: CallContext) -> Outcome:
        written = is_url_in(arguments.url, user_texts(work.session))
        try:
            trusted = address_of(arguments.url) if written else None
            with anyio.fail_after(SECONDS):
                page = await fetch_page(arguments.url, trusted)
        except FetchError as problem:
            return failure(self.name, "fetch_failed", str(problem))
        except TimeoutError:
            return failure(self.name, "timeout", f"The page did not arrive within {SECONDS:g} s.")
        return page_outcome(page)


async def fetch_page(url: str, trusted: Address | None, limit: int = MAX_BYTES) -> Page:
    """The page, after checked redirects; only `trusted` may be in a private network.

    Only so many bytes of it.
    """
    import httpx2

    timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)
    async with httpx2.AsyncClient(trust_env=False, timeout=timeout, headers=HEADERS) as client:
        for _ in range(REDIRECTS + 1):
            try:
                found = await _fetch_once(client, url, trusted, limit)
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                why = str(error) or type(error).__name__
                raise FetchError(f"{url} could not be fetched: {why}.") from error
            if isinstance(found, Page):
                return found
            url = found
    raise FetchError(f"More than {REDIRECTS} redirects, the last to {url}.")


async def _fetch_once(
    client: "httpx2.AsyncClient", url: str, trusted: Address | None, limit: int
) -> Page | str:
    """The page, or the URL it redirects to."""
    address = address_of(url)
    numbers = await resolve_address(address, private=address == trusted)
    response = await _connect(client, url, address, numbers)
    try:
        where = response.headers.get("location")
        if response.is_redirect and where:
            return urljoin(url, where)
        data = bytearray()
        async for chunk in response.aiter_bytes():
            data += chunk
            if len(data) > limit:
                break
    finally:
        await response.aclose()
    kind = response.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
    cut, charset = len(data) > limit, response.charset_encoding or "utf-8"
    return Page(url, response.status_code, kind, bytes(data[:limit]), cut, charset)


async def _connect(
    client: "httpx2.AsyncClient", url: str, address: Address, numbers: list[str]
) -> "httpx2.Response":
    """The response of the first checked IP that accepts the connection."""
    import httpx2

    for number in numbers:
        target = httpx2.URL(url).copy_with(host=number, fragment=None)
        request = client.build_request("GET", target, headers={"host": address.netloc})
        request.extensions["sni_hostname"] = address.host
        try:
            return await client.send(request, stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            if number == numbers[-1]:
                raise
    raise FetchError(f"{address.host} has no address.")


def page_outcome(page: Page) -> Outcome:
    """The page as the model sees it."""
    if not page.kind.startswith(TEXT_TYPES) and not page.kind.endswith(("+json", "+xml")):
        return failure("fetch", "fetch_failed", f"{page.url} is {page.kind}, not text.")
    try:
        text = page.data.decode(page.charset, errors="replace")
    except LookupError:
        text = page.data.decode(errors="replace")
    if "html" in page.kind:
        from handrail.tools.web.html_text import html_to_text

        text = html_to_text(text)
    text = strip_control_codes(text)
    note = f"\n[only the first {MAX_BYTES:,} bytes were fetched]" if page.cut else ""
    content = f"[{page.status} {page.url}]\n{truncate(text, MAX_CHARACTERS, 'The page goes on.')}{note}"
    return Outcome(
        summary=f"{page.status}, {pluralize(len(text), 'character')}",
        content=content,
        status="ok" if page.status < 400 else "failed",
        output=text.encode(errors="replace") if len(text) > MAX_CHARACTERS else b"",
    )
